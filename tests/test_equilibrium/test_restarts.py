"""Several runs: the planner's start, the best certified ending, restarts and what they promise."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cmpg.equilibrium.runs import Restarts, by_potential
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.equilibrium.starts.planner import PlannerStart
from cmpg.equilibrium.starts.start import is_feasible, moved_inside
from cmpg.errors import CMPGError, PolicyError
from cmpg.games.game import Objective
from cmpg.games.joint.game import JointGame
from cmpg.scenarios import (
    charging,
    congestion_game_exogenous,
    counter_example,
    counting_congestion_game,
    routing,
    spectrum,
)
from oracles.random_games import draw
from oracles.sweeping import build
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


def test_a_plan_that_meets_its_budget_to_the_last_bit_is_found_among_its_ties():
    game = congestion_game_exogenous()
    result = solve(game)
    assert result.quality(Objective.POTENTIAL).gap == pytest.approx(0, abs=1e-6)
    assert result.costs[0] == pytest.approx(0.5)


def test_of_two_plans_that_rounding_cannot_tell_apart_the_cheap_one_is_found():
    rng, states, shape = np.random.default_rng(1), 300, (1, 300, 2, 2)
    index = (np.repeat(np.arange(4 * states), 3), rng.integers(states, size=12 * states))
    rows = sp.csr_array((rng.dirichlet(np.ones(3), size=4 * states).ravel(), index), shape=(4 * states, states))
    game = JointGame(
        transition=(rows,),
        rewards=np.broadcast_to(rng.random(shape), (2, *shape)),
        costs=rng.random((1, *shape)),
        thresholds=[3.5],
        initial=np.full(states, 1 / states),
        horizon=10,
    )
    found = PlannerStart()(game)
    assert found.slack >= 0
    # The mixture of both plans is worth 3e-6 more than the cheap one, and cannot be played without a device.
    assert found.bound.value - game.at(found.policy).values.sum() < 1e-5


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


def test_a_game_without_a_planner_begins_at_least_cost():
    game = routing(num_agents=3)
    planned, cheapest = PlannerStart()(game), MinCostStart()(game)
    assert planned.policy.fingerprint() == cheapest.policy.fingerprint()
    assert planned.bound is None


PROMISED = [
    counter_example(),
    spectrum(),
    routing(num_agents=4),
    charging(capacity=3),
    counting_congestion_game(num_agents=5),
    *(build(draw(seed).game) for seed in (3, 8, 21)),
]


@pytest.mark.parametrize("game", PROMISED, ids=lambda game: type(game).__name__)
@pytest.mark.parametrize("seed", [1, 5])
def test_run_1_is_the_run_of_a_single_solve_and_more_restarts_are_never_worse(game, seed):
    single = solve(game, rng=seed)
    assert single.certified
    results = [solve(game, restarts=Restarts(count), rng=seed) for count in (2, 3, 6)]
    assert [len(result.runs) for result in results] == [2, 3, 6]
    for result in results:
        first = result.runs[0]
        assert (first.status, first.moves) == (single.status, single.moves + single.search_moves)
        assert first.score <= result.score[1]
    scores = [result.score[1] for result in results]
    assert scores == sorted(scores)


def test_the_first_of_several_runs_scores_what_a_single_solve_scores():
    game = spectrum()
    for seed in range(6):
        single, several = solve(game, rng=seed), solve(game, restarts=Restarts(4), rng=seed)
        assert several.runs[0].score == pytest.approx(by_potential(game, single.policy), abs=1e-12)
        assert several.score[1] >= by_potential(game, single.policy) - 1e-12


@pytest.mark.parametrize("count", [2, 7])
def test_as_many_runs_are_counted_as_were_requested(count):
    result = solve(counter_example(), restarts=Restarts(count), rng=1)
    assert len(result.runs) == count
    assert f"{count} certified runs" in str(result)


@pytest.mark.parametrize("game", [spectrum(), routing(num_agents=6)], ids=["joint", "local"])
def test_restarts_have_the_same_bits_for_any_number_of_jobs(game):
    one, two = (solve(game, epsilon=1e-2, restarts=Restarts(4, jobs=jobs), rng=5) for jobs in (1, 2))
    assert one.policy.fingerprint() == two.policy.fingerprint()
    assert [run.score for run in one.runs] == [run.score for run in two.runs]
    assert [each.policy.fingerprint() for each in one.equilibria] == [
        each.policy.fingerprint() for each in two.equilibria
    ]


def test_each_restart_has_a_stream_of_its_own():
    """So one restart more does not change those before it."""
    few, more = (solve(spectrum(), restarts=Restarts(restarts), rng=5).runs for restarts in (3, 5))
    assert [run.score for run in few] == [run.score for run in more][: len(few)]


def test_a_time_limit_ends_restarts_with_what_they_found():
    for seconds in (0.2, 2.0, 20.0, 200.0):  # until this machine has done more than one
        result = solve(spectrum(), restarts=Restarts(10**6, jobs=1), rng=1, time_limit=seconds)
        assert len(result.runs) < 10**6
        if len(result.runs) > 1:
            break
    assert result.certified
    assert len(result.runs) > 1


@pytest.mark.parametrize("jobs", [0, -2])
def test_a_number_of_jobs_that_makes_no_sense_is_refused(jobs):
    with pytest.raises(CMPGError, match="jobs is"):
        solve(spectrum(), restarts=Restarts(2, jobs=jobs), rng=1)


@pytest.mark.parametrize("start", [(), (3,), "cheapest"])
def test_what_is_no_start_is_refused(start):
    with pytest.raises(PolicyError, match="a JointPolicy is required"):
        solve(spectrum(), start=start)


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_number_of_runs_that_makes_no_sense_is_refused(count):
    with pytest.raises(CMPGError, match="the number of restarts is"):
        Restarts(count)
