"""Multipliers of each group, from the constrained best response of one of its members. A search: the checker decides.

The bound on what a member gains is convex in its λ, a maximum of one line for each plan. Of two plans, one that spends
too much and one that does not, the lines meet at a λ between: the best plan there replaces one of the two, until none
is better. With several constraints, one after the other.
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

CUTS = 40
ROUNDS = 6
"""Several constraints are visited so often, one after the other."""


@dataclass(frozen=True, eq=False)
class GroupResponses:
    """The constrained best response of a member of each group."""

    multipliers: FloatArray  # [G, k]
    gains: FloatArray  # [G]: a bound on what it gains
    room: FloatArray  # [G, k]: what it may spend itself
    safe: Plans  # plans at the multipliers that spend no more than the room
    eager: Plans  # and plans that spend as much or more
    shares: FloatArray  # [G]: of the latter, in the mixture that spends the room
    fits: Any  # [G]: whether the mixture keeps every threshold


def own_prices(
    kinds: Kinds,
    kind: IntArray,
    ways: Ways,
    prices: FloatArray,
    slack: FloatArray,
    start: FloatArray,
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

    def at(given: FloatArray) -> _Plain:
        plans = kinds.plan(kind, prices[0] + np.einsum("gj,jgc->gc", given, prices[1:]), given)
        found = kinds.follow(kind, plans.actions)
        got = found.values - (found.used * prices[0]).sum(axis=1)
        return _Plain(plans, got, found.costs + np.einsum("gc,jgc->gj", found.used, prices[1:]))

    safe = eager = at(multipliers)
    for j in [] if not constraints else [*range(constraints)] * (1 if constraints == 1 else ROUNDS):
        multipliers[:, j] = 0.0
        eager = at(multipliers)
        free = eager.spent[:, j] <= room[:, j]
        high = np.full(groups, max(2.0 * float(start[j]), 1e-6))
        for _ in range(40):
            multipliers[:, j] = np.where(free, 0.0, high)
            safe = at(multipliers)
            over = (safe.spent[:, j] > room[:, j]) & ~free
            if not over.any():
                break
            eager, high = eager.where(over, safe), np.where(over, 4 * high, high)
        for _ in range(CUTS):
            steeper = eager.spent[:, j] - safe.spent[:, j]
            # What else is charged belongs to the lines.
            others = multipliers.copy()
            others[:, j] = 0.0
            rise = (eager.got - (others * eager.spent).sum(axis=1)) - (safe.got - (others * safe.spent).sum(axis=1))
            meet = np.where(free | (steeper <= 0), multipliers[:, j], rise / np.where(steeper > 0, steeper, 1.0))
            multipliers[:, j] = np.maximum(meet, 0.0)
            middle = at(multipliers)
            line = safe.got - (multipliers * safe.spent).sum(axis=1)
            better = ~free & (middle.plans.values > line + 1e-13 * (1 + np.abs(line)))
            if not better.any():
                break
            over = middle.spent[:, j] > room[:, j]
            eager, safe = eager.where(better & over, middle), safe.where(better & ~over, middle)
    gains = at(multipliers).plans.values + (multipliers * room).sum(axis=1) - value
    last = constraints - 1
    spread = (eager.spent - safe.spent)[:, last] if constraints else np.zeros(groups)
    left = (room - safe.spent)[:, last] if constraints else np.zeros(groups)
    shares = np.where(spread > 0, np.clip(left / np.where(spread > 0, spread, 1.0), 0.0, 1.0), 0.0)
    spent = (1 - shares)[:, None] * safe.spent + shares[:, None] * eager.spent
    fits = (spent <= room * (1 + 1e-12) + 1e-15).all(axis=1)
    return GroupResponses(multipliers, gains, room, safe.plans, eager.plans, shares, fits)


@dataclass(frozen=True, eq=False)
class _Plain:
    """Plans, with what they get and spend at the prices of the moment."""

    plans: Plans
    got: FloatArray  # [G], without charges
    spent: FloatArray  # [G, k]

    def where(self, mask: Any, other: _Plain) -> _Plain:
        """Return the other's plans where a mask says so."""
        one, two = self.plans, other.plans
        plans = Plans(
            one.kind,
            np.where(mask, two.values, one.values),
            np.where(mask[:, None, None], two.actions, one.actions),
        )
        return _Plain(plans, np.where(mask, other.got, self.got), np.where(mask[:, None], other.spent, self.spent))


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
