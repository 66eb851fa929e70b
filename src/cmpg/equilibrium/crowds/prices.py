"""Multipliers of each group, from the constrained best response of one of its members. A search: the checker decides.

The bound on what a member gains is convex in its λ, with subgradient (what is left to it) − (what its plan spends), so
each multiplier is found by bisection, one constraint after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.equilibrium.crowds.kinds import Kinds, Plans, Ways
from cmpg.equilibrium.crowds.laws import Laws
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.crowd.policy import CrowdPolicy

HALVINGS = 46
ROUNDS = 6
"""Several constraints are visited so often, one after the other."""


@dataclass(frozen=True, eq=False)
class GroupResponses:
    """The constrained best response of a member of each group."""

    multipliers: FloatArray  # [G, k]
    gains: FloatArray  # [G]: a bound on what it gains
    room: FloatArray  # [G, k]: what it may spend itself
    safe: Plans  # the plans at the multipliers, which spend no more than the room of the last constraint
    safe_ways: Ways
    eager: Plans  # the plans at multipliers just below
    eager_ways: Ways


def own_prices(
    kinds: Kinds,
    kind: IntArray,
    ways: Ways,
    prices: FloatArray,
    slack: FloatArray,
    start: FloatArray,
    halvings: int = HALVINGS,
) -> GroupResponses:
    """Return multipliers of a member of each group, and its best response.

    Parameters
    ----------
    kinds, kind, ways
        The kinds, that of each group [G], and where its policy leads.
    prices : [1 + k, G, H·E]
        The delay and the rise of each cost that a member meets.
    slack : [k]
        α − V^c.
    start : [k]
        Multipliers to begin with, such as those of a search at common multipliers.
    """
    groups, constraints = len(kind), len(slack)
    spent = ways.costs + np.einsum("gc,jgc->gj", ways.used, prices[1:])
    room = spent + np.maximum(slack, 0.0)
    value = ways.values - (ways.used * prices[0]).sum(axis=1)
    multipliers = np.tile(np.asarray(start, dtype=np.float64), (groups, 1))

    def at(given: FloatArray) -> tuple[Plans, Ways, FloatArray]:
        plans = kinds.plan(kind, prices[0] + np.einsum("gj,jgc->gc", given, prices[1:]), given)
        found = kinds.follow(kind, plans.actions)
        return plans, found, found.costs + np.einsum("gc,jgc->gj", found.used, prices[1:])

    below = multipliers
    for j in [] if not constraints else [*range(constraints)] * (1 if constraints == 1 else ROUNDS):
        low = np.zeros(groups)
        multipliers[:, j] = 0.0
        free = at(multipliers)[2][:, j] <= room[:, j]
        high = np.full(groups, max(2.0 * float(start[j]), 1e-6))
        for _ in range(60):
            multipliers[:, j] = high
            over = at(multipliers)[2][:, j] > room[:, j]
            if not (over & ~free).any():
                break
            low, high = np.where(over & ~free, high, low), np.where(over & ~free, 4 * high, high)
        for _ in range(halvings):
            middle = (low + high) / 2
            multipliers[:, j] = middle
            over = at(multipliers)[2][:, j] > room[:, j]
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        multipliers[:, j] = np.where(free, 0.0, high)
        below = multipliers.copy()
        below[:, j] = np.where(free, 0.0, low)
    safe, safe_ways, _ = at(multipliers)
    eager, eager_ways, _ = at(below)
    gains = safe.values + (multipliers * room).sum(axis=1) - value
    return GroupResponses(multipliers, gains, room, safe, safe_ways, eager, eager_ways)


def own_multipliers(game: CrowdGame, policy: CrowdPolicy, start: Any = None) -> FloatArray:
    """Return the multipliers that prove least for each group of a policy: [G, k]."""
    kinds = Kinds(game)
    ways = ways_of(kinds, policy)
    laws = Laws(game, policy.number, ways.used)
    slack = game.thresholds - laws.costs() - policy.number @ ways.costs
    begin = np.zeros(game.num_constraints) if start is None else start
    found = own_prices(kinds, policy.kind, ways, laws.prices(ways.used), slack, begin)
    return found.multipliers


def ways_of(kinds: Kinds, policy: CrowdPolicy) -> Ways:
    """Return where the groups of a policy lead."""
    tables = np.stack([kinds.padded(table) for table in policy.plans])
    return kinds.follow(policy.kind, tables)
