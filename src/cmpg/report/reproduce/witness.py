"""The congestion game is not a potential game: the witness by hand, the checker's, and a search for the largest one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.checks import FloatArray, IntArray
from cmpg.games.joint import JointGame
from cmpg.games.potential import FourCycle, recheck
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game

A, B, D = 0, 1, 3
SAFE, UNSAFE = 0, 1


@dataclass(frozen=True, eq=False)
class HandWitness:
    """Two agents, two steps, from `safe`, no penalty: the values at the four corners, and what the gains add up to."""

    values: FloatArray  # [4, 2]: i moves from corner 0 to 1, j to 2, i back to 3, j back to 0
    residual: float


def witness_by_hand() -> HandWitness:
    """Evaluate the 4-cycle that can be checked by hand.

    j plays A at step 1. i plays A, which leads to `unsafe`, or B, which stays in `safe`. At step 2 all play A, except
    that j in `unsafe` plays A or D.
    """
    game = congestion_game(num_agents=2, unsafe_penalty=0.0, initial=(1.0, 0.0))
    everything_a = np.zeros((2, 2, 4))
    everything_a[..., A] = 1.0
    new_i, new_j = everything_a.copy(), everything_a.copy()
    new_i[0] = np.eye(4)[B]
    new_j[1, UNSAFE] = np.eye(4)[D]
    cycle = FourCycle((0, 1), JointPolicy((everything_a, everything_a)), (new_i, new_j), np.nan, 0.0)
    values = np.array([game.at(corner).values for corner in cycle.corners])
    return HandWitness(values, float(recheck(game, cycle)))


@dataclass(frozen=True, eq=False)
class LargestCycle:
    """A deterministic 4-cycle of the agents 0 and 1, found by hill climbing, evaluated by the game itself."""

    cycle: FourCycle
    residual: float


def largest_cycle(game: JointGame, *, proposals: int, rng: np.random.Generator) -> LargestCycle:
    """Climb to a 4-cycle of large residual: change one deterministic choice at a time, keep what is not worse.

    Transitions must be deterministic, so that the values of a proposal are a few table look-ups.
    """
    agents, actions = game.num_agents, game.num_actions[0]
    # One row of choices per agent, then the other policies of agents 0 and 1: [n + 2, H, S].
    choices = rng.integers(actions, size=(agents + 2, game.num_steps, game.num_states))
    best = _residual(game, choices)
    for _ in range(proposals):
        place = tuple(int(rng.integers(length)) for length in choices.shape)
        before = choices[place]
        choices[place] = rng.integers(actions)
        found = _residual(game, choices)
        if abs(found) >= abs(best):
            best = found
        else:
            choices[place] = before
    tables = np.eye(actions)[choices]
    cycle = FourCycle((0, 1), JointPolicy(tuple(tables[:agents])), (tables[agents], tables[agents + 1]), best, 1e-9)
    return LargestCycle(cycle, float(recheck(game, cycle)))


def _residual(game: JointGame, choices: IntArray) -> float:
    """The residual of a deterministic 4-cycle, by following the four corners through the tables."""
    total = 0.0
    others = choices[2 : game.num_agents]
    old, new = choices[:2], choices[game.num_agents :]
    for sign, own in ((1, (old[0], old[1])), (-1, (new[0], old[1])), (1, (new[0], new[1])), (-1, (old[0], new[1]))):
        gains = _values_of_two(game, np.array([*own, *others]))
        total += sign * (gains[1] - gains[0])
    return total


def _values_of_two(game: JointGame, choices: IntArray) -> FloatArray:
    """V of the agents 0 and 1 under deterministic choices [n, H, S]."""
    values = np.zeros(2)
    for first in np.flatnonzero(game.initial):
        state, weight = int(first), float(game.initial[first])
        for step in range(game.num_steps):
            joint = (state, *choices[:, step, state].tolist())
            values += weight * game.rewards[:2, 0][(slice(None), *joint)]
            state = int(game.transition[(0, *joint)].argmax())
    return values
