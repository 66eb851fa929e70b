"""The runs of the congestion game, and the names of their endings.

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

from cmpg.checks import FloatArray
from cmpg.games.contract import Game
from cmpg.games.joint import JointGame
from cmpg.policy import JointPolicy
from cmpg.report.reproduce.effort import Setting
from cmpg.report.reproduce.runs import Run, run_many
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
    simplex: tuple[Run, ...]  # every row of the start is drawn uniformly from the simplex
    normalised: tuple[Run, ...]  # every row of the start is uniform numbers, divided by their sum
    vacuous: tuple[Run, ...]  # cost at the first step only


def run_congestion_games(setting: Setting) -> CongestionRuns:
    """Run both variants of the cost, and both ways to draw a start."""
    game, first_step = congestion_game(), congestion_game(cost_at="first step")
    name, effort = "congestion game: ", setting.effort
    runs = partial(run_many, setting, epsilon=EPSILON)
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


def endings_of(runs: Sequence[Run]) -> list[int]:
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
