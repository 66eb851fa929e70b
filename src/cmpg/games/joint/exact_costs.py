"""The exact costs of a policy in a joint game, by following only what can happen.

Every number is read as the rational that it is, and every row of probabilities is divided by its exact sum.
Near-deterministic policies touch few states and joint actions, so this decides thresholds that are met to the last
bit even in games whose tables are far too large for exact arithmetic as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.games.joint.game import JointGame

MOST_OUTCOMES = 50_000
"""More (step, state, joint action) triples than this are not followed."""


def exact_costs(game: JointGame, policy: JointPolicy) -> list[Fraction] | None:
    """Return V^{c_j} exactly, one per constraint, or None where too much can happen (or the sum is discounted)."""
    if game.discount is not None:
        return None
    totals = [Fraction(0)] * game.num_constraints
    states = _distribution(game.initial)
    followed = 0
    for step in range(game.num_steps):
        ahead: dict[int, Fraction] = defaultdict(Fraction)
        for state, reached in states.items():
            rows = [_distribution(table[step, state]) for table in policy]
            followed += prod(len(row) for row in rows)
            if followed > MOST_OUTCOMES:
                return None
            for joint in product(*(row.items() for row in rows)):
                chance = reached * prod((probability for _, probability in joint), start=Fraction(1))
                where = (state, *(action for action, _ in joint))
                for j, cost in enumerate(game.costs):
                    totals[j] += chance * Fraction(cost[(0 if len(cost) == 1 else step, *where)])
                if step + 1 < game.num_steps:
                    for target, probability in _next_states(game, step, where).items():
                        ahead[target] += chance * probability
        states = ahead
    return totals


def _distribution(row: Any) -> dict[int, Fraction]:
    """Return the support of a row with exact probabilities that sum to one."""
    support = {int(index): Fraction(row[index]) for index in np.flatnonzero(row)}
    total = sum(support.values(), start=Fraction(0))
    return {index: chance / total for index, chance in support.items()}


def _next_states(game: JointGame, step: int, where: tuple[int, ...]) -> dict[int, Fraction]:
    """Return the exact distribution of the next state after a state and joint action."""
    table = game.transition[0 if len(game.transition) == 1 else step]
    if not sp.issparse(table):
        return _distribution(table[where])
    row = int(np.ravel_multi_index(where, (game.num_states, *game.num_actions)))
    begin, end = int(table.indptr[row]), int(table.indptr[row + 1])
    chances = _distribution(table.data[begin:end])
    targets = table.indices[begin:end]
    return {int(targets[index]): chance for index, chance in chances.items()}
