"""Theorem 3 of docs/learning-theory.md on random games: the ascent in an empirical game that is no potential game."""

from dataclasses import replace

import numpy as np
import pytest

from cmpg.cmdp.exact import Exact
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.joint.game import JointGame
from cmpg.games.potential.check import Verdict, check_potential
from cmpg.learning.slater import slater_constant

TOLERANCE = 0.2  # ε′
SLATER = 1.0
STEPS = np.arange(3)


def potential_game(rng):
    """States that no action moves, and rewards that differ by what the other agent alone decides: a potential game."""
    shared, own = rng.random((3, 3, 2, 2)), rng.random((2, 3, 3, 2))
    rewards = np.stack([shared + own[0][:, :, None, :], shared + own[1][:, :, :, None]])
    rows = rng.dirichlet(np.ones(3), size=(3, 3, 1, 1))
    costs = rng.random((1, 3, 3, 2, 1)) + rng.random((1, 3, 3, 1, 2))
    game = JointGame(
        transition=np.broadcast_to(rows, (3, 3, 2, 2, 3)).copy(),
        rewards=rewards,
        costs=costs,
        thresholds=[3.0],
        initial=[0.3, 0.3, 0.4],
        horizon=3,
    )
    return game.with_thresholds(game.thresholds - slater_constant(game).value + SLATER), rows


def empirical(game, rows, draws, rng):
    """Estimate every row by itself, so that actions seem to move the state; and return b, how far a row is off."""
    true = np.broadcast_to(rows, (3, 3, 2, 2, 3))
    estimate = rng.multinomial(draws, true) / draws
    return replace(game, transition=estimate), float(np.abs(estimate - true).sum(axis=-1).max())


def ascend(model, policy, tolerance):
    """CA-CMPG: the agent that gains most moves, if it gains more than ε′/2; return all policies and movers."""
    visited, movers = [policy], []
    while True:
        position = model.at(visited[-1])
        responses = [Exact()(position.induced_cmdp(agent)) for agent in range(2)]
        gains = [response.value - value for response, value in zip(responses, position.values, strict=True)]
        mover = int(np.argmax(gains))
        if gains[mover] <= tolerance / 2:
            return visited, movers
        visited.append(visited[-1].replace(mover, responses[mover].policy))
        movers.append(mover)


@pytest.mark.parametrize("seed", range(10))
def test_the_ascent_in_the_model_ends_at_an_equilibrium_of_the_game(seed):
    rng = np.random.default_rng(seed)
    game, rows = potential_game(rng)
    model, error = empirical(game, rows, 200_000, rng)
    assert check_potential(game, rng=rng).verdict is Verdict.PROVEN
    assert check_potential(model, rng=rng).verdict is Verdict.REFUTED
    reward_weight = (np.ptp(game.rewards, axis=(2, 3, 4)) @ STEPS).max()
    cost_weight = (np.ptp(game.costs, axis=(2, 3, 4)) @ STEPS).max()
    assert error * reward_weight <= TOLERANCE / 4, "the theorem speaks of such models"
    assert slater_constant(game).value == pytest.approx(SLATER)

    tightened = model.with_thresholds(game.thresholds - error * cost_weight / 2)
    start = feasible_start(tightened).policy
    assert start is not None, "there is one, because ζ > b·D_c"
    visited, movers = ascend(tightened, start, TOLERANCE)
    assert len(movers) < 4 * game.reward_ranges.sum() / TOLERANCE
    values = [game.at(policy).values for policy in visited]
    for mover, before, after in zip(movers, values[:-1], values[1:], strict=True):
        # The true potential rises with what the mover truly gains.
        assert after[mover] - before[mover] > TOLERANCE / 2 - error * reward_weight

    exchange = float(game.reward_ranges.max()) / (SLATER - error * cost_weight)
    allowed = error * reward_weight + error * cost_weight * exchange + TOLERANCE
    judged = certify_with_best_responses(game, visited[-1])
    assert judged.feasible
    assert judged.epsilon <= allowed
