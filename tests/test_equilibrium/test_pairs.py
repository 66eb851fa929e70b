"""Two agents who move together: trades of a budget, and never a worse answer than without."""

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cmpg.equilibrium.ascent import Ascent, coordinate_ascent
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.runs import Restarts, RunContext, by_potential, by_welfare
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.pairs import PairMoves, improved_by_pairs
from cmpg.errors import CMPGError
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from oracles.random_games import draw, suitable_epsilon
from oracles.sweeping import build, findings
from test_equilibrium.small_crowds import crowd

THOROUGH = PairMoves(trades=8, worth=0.0, most=4)


def buyers(*worth, threshold=1.0):
    """Everybody may buy one unit, which is worth something else to each; so many units are there."""
    agents = [
        LocalAgent(
            transition=np.ones((1, 1, 2, 1)),
            reward=np.array([[[0.0, each]]]),
            uses=np.zeros((1, 1, 2, 1)),
            initial=np.ones(1),
            costs=np.array([[[[0.0, 1.0]]]]),
        )
        for each in worth
    ]
    nothing = np.zeros((1, 1, len(worth) + 1))
    return LocalGame(agents=agents, delay=nothing, load_costs=nothing[None], thresholds=[threshold], horizon=1)


def pure(*actions, of=2):
    return JointPolicy(tuple(np.eye(of)[[[action]]] for action in actions))


def test_a_budget_goes_to_whoever_pays_most_for_it():
    game, start = buyers(1.0, 3.0), pure(1, 0)
    alone, together = solve(game, start=start, improve=None), solve(game, start=start)
    assert alone.values.tolist() == [1, 0]
    assert together.values == pytest.approx([0, 3])
    assert alone.certified
    assert together.certified
    assert together.settings["improve"] == repr(PairMoves())
    assert alone.settings["improve"] == "None"


def test_a_budget_is_traded_in_joint_games_too():
    # Only one of three may act; agent 0 does, for 1, though agent 2 would for 4.
    acts = np.indices((2, 2, 2))
    reward = acts[0] + 2 * acts[1] + 4 * acts[2]
    game = JointGame(
        transition=np.ones((1, 1, 2, 2, 2, 1)),
        rewards=np.stack([reward.astype(float)[None, None]] * 3),
        costs=acts.sum(axis=0).astype(float)[None, None, None],
        thresholds=[1.0],
        initial=[1.0],
        horizon=1,
    )
    assert solve(game, start=pure(1, 0, 0), improve=None).values[0] == pytest.approx(1)
    assert solve(game, start=pure(1, 0, 0)).values[0] == pytest.approx(4)


def test_prices_that_are_the_same_leave_nothing_to_trade():
    result = solve(buyers(2.0, 2.0), start=pure(1, 0))
    assert result.values.sum() == pytest.approx(2)
    assert "pairs_moved" not in result.settings


def test_what_promises_too_little_is_not_tried():
    start = pure(1, 0)
    assert solve(buyers(1.0, 1.5), start=start, improve=PairMoves(worth=0.6)).values.tolist() == [1, 0]
    assert solve(buyers(1.0, 1.5), start=start, improve=PairMoves(worth=0.4)).values == pytest.approx([0, 1.5])


def test_the_trace_tells_every_move_and_adds_up():
    game = buyers(1.0, 2.0, 4.0, 8.0)
    start = pure(1, 0, 0, 0)
    result = solve(game, start=start, restarts=Restarts(prefer=by_potential))
    assert result.values == pytest.approx([0, 0, 0, 8])
    assert result.moves == sum(step.mover is not None for step in result.trace)
    assert [step.iteration for step in result.trace] == list(range(1, len(result.trace) + 1))
    raised = game.potential(result.policy) - game.potential(start)
    assert result.trace[-1].potential == pytest.approx(raised, abs=1e-9)
    assert result.start is start
    assert "joint move" in str(result)


def test_no_more_pairs_move_than_are_allowed():
    many, one = (solve(buyers(1.0, 2.0, 4.0), start=pure(1, 0, 0), improve=PairMoves(1, most=most)) for most in (9, 1))
    assert one.settings["pairs_moved"] == 1
    assert one.values.sum() <= many.values.sum() == pytest.approx(4)
    assert "pairs_moved" not in solve(buyers(1.0, 2.0), start=pure(1, 0), improve=PairMoves(most=0)).settings


def context(game, *, seconds=np.inf):
    return RunContext(game, 1e-6, Ascent(), PairMoves(), by_welfare, time.monotonic() + seconds)


def test_after_the_deadline_no_pair_moves():
    game = buyers(1.0, 3.0)
    rest = coordinate_ascent(game, pure(1, 0))
    assert improved_by_pairs(context(game), rest, PairMoves(), on_progress=lambda _: None).values[1] > 0
    assert improved_by_pairs(context(game, seconds=-1), rest, PairMoves(), on_progress=lambda _: None) is rest


def test_an_interruption_keeps_the_equilibrium_of_before():
    game = buyers(1.0, 3.0)
    rest = coordinate_ascent(game, pure(1, 0))

    def press(_):
        raise KeyboardInterrupt

    kept = improved_by_pairs(context(game), rest, PairMoves(), on_progress=press)
    assert (kept.interrupted, kept.certified) == (True, True)
    assert kept.policy.fingerprint() == rest.policy.fingerprint()


def test_a_number_of_tries_is_no_less_than_none():
    with pytest.raises(CMPGError, match="trades is -1; a number of at least 0 is wanted"):
        PairMoves(trades=-1)


@pytest.mark.parametrize("chunk", range(3))
def test_in_random_games_of_every_form_the_answer_is_certified_and_no_worse_than_without(chunk):
    for seed in range(5000 + 20 * chunk, 5020 + 20 * chunk):
        drawn = draw(seed)
        game, epsilon = build(drawn.game), suitable_epsilon(drawn.game)
        without = solve(game, epsilon=epsilon, improve=None, restarts=Restarts(prefer=by_welfare))
        result = solve(game, epsilon=epsilon, improve=THOROUGH, restarts=Restarts(prefer=by_welfare))
        assert findings(drawn, result) == []
        assert result.certified >= without.certified
        if without.certified:
            assert result.values.sum() >= without.values.sum() - 1e-12 * np.abs(without.values).sum()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
def test_in_random_crowds_pairs_only_raise_the_potential(seed):
    rng = np.random.default_rng(seed)
    game = crowd(rng, agents=int(rng.integers(2, 6)), horizon=2, constraints=int(rng.integers(1, 3)))
    without, result = (solve(game, epsilon=1e-6, improve=improve) for improve in (None, THOROUGH))
    assert result.certified >= without.certified
    if without.certified:
        assert by_potential(game, result.policy) >= by_potential(game, without.policy) - 1e-12
        assert certify(game, result.policy, result.multipliers).proves(1e-6)
