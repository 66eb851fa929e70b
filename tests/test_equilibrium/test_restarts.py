"""Several runs: planned starts, the best certified ending, restarts side by side."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cmpg.equilibrium.result import Status
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.common_price import CommonPrice
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.equilibrium.starts.planner import PlannerStart
from cmpg.equilibrium.starts.start import is_feasible, moved_inside
from cmpg.errors import CMPGError, PolicyError
from cmpg.games.contract import Objective
from cmpg.games.joint.game import JointGame
from cmpg.scenarios import congestion_game_exogenous, counting_congestion_game, grid_world, routing, spectrum, team
from strategies import games


def stag_hunt(**options):
    """Both hunt the stag for 4, or one keeps to hares, for 1: cheapest is to stay at home, which is Nash too."""
    return JointGame.from_matrices([[1, 1], [1, 4]], cost=[[0, 0], [0, 1]], threshold=2.0, **options)


def test_the_planner_s_plan_is_found_where_turns_from_the_cheapest_policy_end_below_it():
    cheap, best = solve(stag_hunt(), start=MinCostStart()), solve(stag_hunt())
    assert cheap.values[0] == pytest.approx(1)
    assert best.values[0] == pytest.approx(4)
    assert cheap.certified
    assert best.certified


def test_no_other_start_is_tried_where_the_first_ending_is_the_best_possible():
    assert solve(stag_hunt()).runs == ()
    tried = solve(spectrum(), start=(MinCostStart(), PlannerStart(Objective.POTENTIAL))).runs
    assert [run.start for run in tried] == ["MinCostStart()", "PlannerStart(potential)"]


def test_the_best_ending_is_taken_and_all_are_told():
    result = solve(spectrum(), start=(MinCostStart(), PlannerStart(Objective.POTENTIAL)))
    scores = [run.score for run in result.runs]
    assert result.score == ("potential", max(scores))
    assert scores[1] > scores[0]
    assert "the best of 2 starts, by potential: MinCostStart() -0.22" in str(result)


def test_a_default_solve_is_no_worse_than_one_from_the_cheapest_policy():
    for game in (grid_world(), team(), counting_congestion_game(num_agents=6), spectrum()):
        old, new = solve(game, start=MinCostStart()), solve(game)
        assert new.certified
        assert new.values.sum() >= old.values.sum() - 1e-9


def test_a_plan_that_meets_its_budget_to_the_last_bit_is_found_among_its_ties():
    game = congestion_game_exogenous()
    result = solve(game)
    assert result.quality(Objective.POTENTIAL).gap == pytest.approx(0, abs=1e-6)
    assert result.costs[0] == pytest.approx(0.5)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(games(), st.integers(0, 5))
def test_a_planned_start_is_feasible_and_its_bound_holds(game, seed):
    found = PlannerStart()(game, rng=np.random.default_rng(seed))
    if found.policy is None:
        return
    position = game.at(found.policy)
    assert np.all(position.slacks >= -position.cost_rounding)
    if found.bound is not None:
        assert position.values.sum() <= found.bound.value + 1e-12


def test_a_mixture_moved_inside_keeps_most_of_what_is_wanted():
    game = JointGame.from_matrices([[0, 0], [0, 1]], cost=[[0, 0], [0, 1]], threshold=0.25)
    safe, wild = (game.split(np.array([[action]])) for action in (0, 3))
    moved = moved_inside(game, safe, wild)
    assert is_feasible(game.at(moved))
    assert game.at(moved).costs[0] == pytest.approx(0.25, abs=1e-3)


def test_a_game_without_a_planner_has_no_planned_start():
    game = routing(num_agents=3)
    assert PlannerStart()(game).policy is None
    assert solve(game, start=PlannerStart(), epsilon=1e-2).status is Status.FEASIBILITY_UNKNOWN
    assert solve(game, start=(PlannerStart(), CommonPrice()), epsilon=1e-2).certified


@pytest.mark.parametrize("game", [spectrum(), routing(num_agents=6)], ids=["joint", "local"])
def test_restarts_have_the_same_bits_for_any_number_of_jobs(game):
    one, two = (solve(game, epsilon=1e-2, restarts=4, seed=5, jobs=jobs) for jobs in (1, 2))
    assert one.policy.fingerprint() == two.policy.fingerprint()
    assert [run.score for run in one.runs] == [run.score for run in two.runs]
    assert [each.policy.fingerprint() for each in one.equilibria] == [
        each.policy.fingerprint() for each in two.equilibria
    ]


def test_each_restart_has_a_stream_of_its_own():
    """So one restart more does not change those before it."""
    few, more = (solve(spectrum(), restarts=restarts, seed=5).runs for restarts in (3, 5))
    assert [run.score for run in few] == [run.score for run in more][: len(few)]


def test_a_time_limit_ends_restarts_with_what_they_found():
    for seconds in (0.2, 2.0, 20.0, 200.0):  # until this machine has done more than one
        result = solve(spectrum(), restarts=10**6, seed=1, time_limit=seconds, jobs=1)
        assert len(result.runs) < 10**6
        if len(result.runs) > 1:
            break
    assert result.certified
    assert len(result.runs) > 1


@pytest.mark.parametrize("jobs", [0, -2])
def test_a_number_of_jobs_that_makes_no_sense_is_refused(jobs):
    with pytest.raises(CMPGError, match="jobs is"):
        solve(spectrum(), restarts=2, seed=1, jobs=jobs)


@pytest.mark.parametrize("start", [(), (3,), "cheapest"])
def test_what_is_no_start_is_refused(start):
    with pytest.raises(PolicyError, match="a JointPolicy is wanted"):
        solve(spectrum(), start=start)
