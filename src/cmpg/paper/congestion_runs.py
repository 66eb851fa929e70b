"""Section 7.2, the runs of the congestion game and their endings, and 4-cycles that no potential survives.

An ending is told by how many agents play what, at both steps and in both states. The figure's has four C and four D at
step 1 in both states, and eight D at step 2. Its mirror spends the budget at step 1: in `unsafe` the two steps are
exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.games.contract import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.potential.check import FourCycle, recheck
from cmpg.paper.evidence import AscentRun, Evidence, run_many
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game

EPSILON = 1e-3
"""Values are of the order of 100. Agents without slack have multipliers of 1e6 and more, and so much rounding beside
them that a smaller ε could not be certified in a few per cent of the runs."""

SAFE, UNSAFE = 0, 1
SPLIT, ALL_D, SPREAD = (0, 0, 4, 4), (0, 0, 0, 8), (2, 2, 2, 2)
ALIKE = 1e-4
"""Counts of agents that differ by less than this are the same."""

FIGURE, MIRROR, COSTLESS, OTHER = "the figure's", "its mirror", "2/2/2/2 in unsafe, no cost", "others"
ENDINGS = (FIGURE, MIRROR, COSTLESS, OTHER)


@dataclass(frozen=True, eq=False)
class CongestionRuns:
    """All runs of the congestion game."""

    game: JointGame  # cost at every step
    first_step: JointGame  # cost at the first step only
    simplex: tuple[AscentRun, ...]  # every row of the start is drawn uniformly from the simplex
    normalised: tuple[AscentRun, ...]  # every row of the start is uniform numbers, divided by their sum
    vacuous: tuple[AscentRun, ...]  # cost at the first step only


def run_congestion_games(evidence: Evidence) -> CongestionRuns:
    """Run both variants of the cost, and both ways to draw a start."""
    game, first_step = congestion_game(), congestion_game(cost_at="first step")
    name, effort = "congestion game: ", evidence.effort
    runs = partial(run_many, evidence, epsilon=EPSILON)
    both = partial(runs, game, count=effort.congestion_endings)
    return CongestionRuns(
        game=game,
        first_step=first_step,
        simplex=both(from_simplex, what=name + "starts from the simplex"),
        normalised=both(normalised, what=name + "normalised starts"),
        vacuous=runs(first_step, from_simplex, count=effort.congestion_runs, what=name + "cost at the first step"),
    )


def from_simplex(game: Game, rng: np.random.Generator) -> JointPolicy:
    """Draw every row uniformly from the simplex."""
    return JointPolicy.random(game.policy_shapes, rng=rng)


def normalised(game: Game, rng: np.random.Generator) -> JointPolicy:
    """Draw uniform numbers, and divide every row by its sum: such rows are nearer to even."""
    tables = [rng.random(shape) for shape in game.policy_shapes]
    return JointPolicy(tuple(table / table.sum(axis=-1, keepdims=True) for table in tables))


def action_counts(policy: JointPolicy) -> FloatArray:
    """Return how many agents play each action on average: [H, S, A]."""
    return np.asarray(np.sum([np.asarray(table) for table in policy], axis=0))


def ending_of(policy: JointPolicy) -> str:
    """Name an ending by its counts."""
    counts = action_counts(policy)
    if not (_alike(counts[0, SAFE], SPLIT) and _alike(counts[1, SAFE], ALL_D)):
        return OTHER
    if _alike(counts[0, UNSAFE], SPLIT) and _alike(counts[1, UNSAFE], ALL_D):
        return FIGURE
    if _alike(counts[0, UNSAFE], ALL_D) and _alike(counts[1, UNSAFE], SPLIT):
        return MIRROR
    return COSTLESS if _alike(counts[0, UNSAFE], SPREAD) else OTHER


def endings_of(runs: Sequence[AscentRun]) -> list[int]:
    """Count the endings, in the order of `ENDINGS`."""
    counts = Counter(ending_of(run.policy) for run in runs)
    return [counts[kind] for kind in ENDINGS]


def _alike(counts: FloatArray, expected: Sequence[int]) -> bool:
    return bool(np.abs(counts - np.array(expected)).max() <= ALIKE)


def crowd_policy(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> JointPolicy:
    """Return the deterministic policy by which agent i plays first[s][i] at step 1 and second[s][i] at step 2."""
    choices = np.array([first, second])
    return JointPolicy(tuple(np.eye(4)[choices[:, :, agent]] for agent in range(choices.shape[2])))


def figure_policy() -> JointPolicy:
    """Return the policy of the paper's figure: four C and four D at step 1 in both states, eight D at step 2."""
    split = [2] * 4 + [3] * 4
    return crowd_policy([split, split], [[3] * 8] * 2)


A, B, D = 0, 1, 3


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
