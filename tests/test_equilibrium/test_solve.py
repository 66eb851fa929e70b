"""The door of `solve`: words beside objects, arguments of the wrong kind, and nothing that is ignored."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.exact import Exact
from cmpg.deadline import check_time, limited
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.runs import by_potential
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.errors import CMPGError, GameError, PolicyError, SolverError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.scenarios import (
    charging,
    congestion_game,
    counter_example,
    counting_congestion_game,
    grid_world,
    grid_world_local,
    spectrum,
)


def test_a_seed_is_a_generator():
    one, other = cmpg.solve(spectrum(), rng=3), cmpg.solve(spectrum(), rng=np.random.default_rng(3))
    assert one.policy.fingerprint() == other.policy.fingerprint()
    assert one.settings == other.settings


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"rng": "1"}, CMPGError, r"rng is a str; a seed is required"),
        ({"start": [[[[1, 0]]], [[[1, 0]]]]}, PolicyError, "start is a list; a JointPolicy is required"),
        ({"restarts": 2, "rng": 1}, CMPGError, r"restarts is 2; pass Restarts\(2\)"),
        ({"restarts": cmpg.Restarts(2)}, CMPGError, "restarts draw random starts: pass rng=1"),
        ({"epsilon": 0.0}, CMPGError, "epsilon is 0.0"),
    ],
)
def test_arguments_of_the_wrong_kind_are_told(wrong, error, told):
    with pytest.raises(error, match=told):
        cmpg.solve(counter_example(), **wrong)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: cmpg.Ascent(solver="lp"), r"solver is 'lp'; a solver is required, such as Exact\(\)"),
        (lambda: cmpg.Ascent(schedule="random"), "schedule is 'random'; GreatestGain"),
        (lambda: cmpg.Restarts(2, prefer="welfare"), "prefer is 'welfare'; by_potential, by_welfare or"),
        (lambda: cmpg.Restarts(0), "the number of restarts is 0"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_where_they_are_made(make, told):
    with pytest.raises(CMPGError, match=told):
        make()


@pytest.mark.parametrize("path", ["game.json", Path("game.json")])
def test_a_path_is_not_a_game(path):
    with pytest.raises(GameError, match=r"read the file first: cmpg.load_game\('game.json'\)"):
        cmpg.solve(path)
    with pytest.raises(GameError, match=r"a dict is not a game; cmpg\.check_game says"):
        cmpg.solve({})


def test_the_solver_is_honoured_after_the_search_for_a_common_price():
    calls = []

    class Noted:
        def __call__(self, cmdp, *, rng=None):
            calls.append(cmdp)
            return Exact()(cmdp, rng=rng)

        def __repr__(self):
            return "Noted()"

    result = cmpg.solve(charging(), method=cmpg.Ascent(solver=Noted()))
    assert result.certified
    assert calls
    assert (result.settings["start"], result.settings["solver"]) == ("CommonPrice()", "Noted()")


def test_equilibria_are_ranked_by_welfare_where_there_is_no_potential():
    result = cmpg.solve(counting_congestion_game(num_agents=30), restarts=cmpg.Restarts(5), rng=1)
    welfare = [run.values.sum() for run in result.equilibria]
    assert len(welfare) > 1
    assert welfare == sorted(welfare, reverse=True)
    assert result.values.sum() == welfare[0]
    with pytest.raises(CMPGError, match="has no potential to compare equilibria by"):
        cmpg.solve(congestion_game(num_agents=3), restarts=cmpg.Restarts(2, prefer=by_potential), rng=1)


def test_a_result_without_a_policy_says_why():
    result = cmpg.solve(counter_example(threshold=-1.0))
    assert result.incumbent is None
    with pytest.raises(cmpg.InfeasibleError, match="ended INFEASIBLE: every joint policy spends at least"):
        result.policy  # noqa: B018
    assert (result.values.size, result.costs.size) == (0, 0)


def test_a_search_for_a_start_that_fails_ends_with_a_status():
    def lost(*_, **__):
        raise SolverError("no value can be computed.")

    result = cmpg.solve(grid_world(), start=lost)
    assert result.status.name == "FEASIBILITY_UNKNOWN"
    assert result.message == (
        "the search for a start ended without one: no value can be computed. Pass a feasible `start` if you know one."
    )


def test_a_restart_whose_start_fails_keeps_what_is_known():
    calls = []

    def lost_later(*arguments, **options):
        calls.append(None)
        if len(calls) > 1:
            raise SolverError("no value can be computed.")
        return MinCostStart()(*arguments, **options)

    result = cmpg.solve(grid_world(), start=lost_later, restarts=cmpg.Restarts(3), rng=1)
    assert (result.certified, len(calls)) == (True, 2)


def test_the_deadline_holds_while_a_potential_is_looked_for(monkeypatch):
    def endless(_):
        while True:
            check_time()

    monkeypatch.setattr(JointGame, "potential_proof", endless)
    result = cmpg.solve(grid_world(), time_limit=0.2)
    assert result.status.name == "FEASIBILITY_UNKNOWN"
    assert "the time limit was reached" in result.message


@pytest.mark.parametrize("build", [grid_world, lambda: charging(capacity=5)])
def test_how_good_a_policy_is_stays_unknown_where_time_is_up(build):
    result = cmpg.solve(build())
    with limited(0.0):
        assert result.quality().bound is None
    assert result.quality(time_limit=0.0).bound is None


def test_one_deadline_holds_for_all_runs():
    for seconds in (0.3, 3.0, 30.0, 300.0):  # until this machine has found a start
        result = cmpg.solve(grid_world(), restarts=cmpg.Restarts(100_000), rng=1, time_limit=seconds)
        assert len(result.runs) < 100_000
        if result.incumbent is not None:
            break
    assert result.certificate.feasible


@pytest.mark.parametrize(
    "ask",
    [
        lambda: cmpg.duality.dual_value(charging()),
        lambda: cmpg.duality.dual_value(counting_congestion_game()),
        lambda: cmpg.learning.GameSimulator(charging(), rng=np.random.default_rng(1)),
    ],
)
def test_what_a_form_cannot_do_is_a_typed_error_that_names_the_form(ask):
    with pytest.raises(UnsupportedError) as caught:
        ask()
    assert caught.value.form in ("LocalGame", "CountingGame")
    assert caught.value.wanted
    assert caught.value.form in str(caught.value)


# --- Interruptions ----------------------------------------------------------------------------------------------------


class InterruptedAt:
    """Presses Ctrl-C at one call of the library: the n-th since the start was known."""

    def __init__(self, call):
        self.call, self.calls, self.known = call, 0, False

    def watch(self, frame, event, _):
        if event != "call" or "cmpg" not in frame.f_code.co_filename:
            return
        self.known = self.known or frame.f_code.co_name == "coordinate_ascent"
        self.calls += self.known
        if self.known and self.calls == self.call:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def solve(self, game):
        sys.setprofile(self.watch)
        try:
            return cmpg.solve(game)
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize(
    "game", [counter_example(), counter_example().exact(), grid_world_local()], ids=["joint", "exact", "local"]
)
def test_ctrl_c_keeps_the_incumbent_wherever_it_is_pressed(game):
    whole = InterruptedAt(0)
    assert whole.solve(game).certified
    step = max(whole.calls // 30, 1)
    for call in [*range(1, whole.calls, step), *range(max(whole.calls - 30, 1), whole.calls)]:
        result = InterruptedAt(call).solve(game)
        assert result.incumbent is not None, call
        assert result.status in (Status.INTERRUPTED, Status.CERTIFIED), call
        assert result.certificate.feasible, call
        assert result.certified == (
            result.certificate.proves(result.epsilon) and result.status is not Status.INTERRUPTED
        )


@pytest.mark.parametrize("build", [grid_world, counter_example])
def test_a_limit_of_whoever_calls_is_no_interruption(build):
    game = build()
    with limited(time.monotonic() - 1):
        result = cmpg.solve(game)
    assert result.status is Status.FEASIBILITY_UNKNOWN
    assert "time limit" in result.message
