"""Discounted local games: their first T steps, and a bound on all that follows.

Even if no agent changes what it does in a state, loads change from step to step; so a policy states T steps, and from
step T on every agent goes on as at step T − 1. Nothing is assumed of deviations, which may change at every step.

Let w = γ^T/(1 − γ). At a step after T agent i gets at least l_i under the policy and at most u_i under any deviation,
and constraint j pays at least m_j, whatever is played, and at most M_j under the policy. Write V_T and C_T for sums
over the first T steps. Then
    V(policy) ≥ V_T(policy) + w·l_i,    V(deviation) ≤ V_T(deviation) + w·u_i,
    C(policy) ≤ C_T(policy) + w·M_j,    C(deviation) ≥ C_T(deviation) + w·m_j.
So the policy is feasible if C_T(policy) ≤ α − w·M =: α⁻; a feasible deviation has C_T ≤ α − w·m =: α⁺; and for λ_i ≥ 0
    gain_i ≤ [λ_i·α⁻ + max V_T^{r_i − λ_i·c} − V_T^{r_i}(policy)] + λ_i·(α⁺ − α⁻) + w·(u_i − l_i).
The bracket is a claim about a local game with T steps, rewards γ^h·r, costs γ^h·c and thresholds α⁻, which is judged as
any other. l and M are taken over what the policy may come to after T, so that a policy that never pays costs nothing.

In floats the tables of that game are rounded. An entry fl(g_h·x) differs from γ^h·x by at most |x|·(|g_h − γ^h| +
u·g_h) and an underflow; summed over steps and over the largest |x|, this is added to w·u and w·M, and taken off w·l and
w·m.

Proofs by support (λ_ij = ∞) speak of deviations that spend all that is left and no more, so they need α⁺ = α⁻. That is
so where α_j = 0, no cost is negative, and the policy pays nothing after T: then feasible means that nothing is ever
paid, whatever the weights are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.proof.claim import Claim, ClaimError, LocalTables
from cmpg.proof.exact import TooLarge
from cmpg.proof.local import Fleet
from cmpg.proof.rounding import NORMAL, TINY, UNIT, Array, Ball, Rows, exactly, stacked
from cmpg.proof.verdict import Feasibility, Findings

MAX_EXACT_ENTRIES = 500_000
"""Tables of the first steps with more entries than this are not written out in rationals."""


@dataclass(frozen=True, eq=False)
class Tail:
    """What may follow the first T steps, and what rounding the weights of these steps may hide; from outside."""

    steps: int
    values: Array  # [n]: w·(u − l)
    most_values: Array  # [n]: w·u, or zero if that is negative
    least_values: Array  # [n]: w·l, or zero if that is positive
    least_costs: Array  # [k]: w·m
    most_costs: Array  # [k]: w·M
    never_pays: Array  # [k]: the policy pays nothing after T, and no cost is negative

    def inner(self, thresholds: Array) -> Array:
        """Return α⁻, rounded down: what the policy may spend in the first steps."""
        return _rounded(thresholds, self._spread(thresholds, self.most_costs), -np.inf)

    def budgets(self, thresholds: Array) -> Array:
        """Return α⁻ as thresholds of the first steps: the least float where what follows may cost more than any."""
        inner = self.inner(thresholds)
        return np.where(np.isfinite(inner), inner, -np.finfo(np.float64).max)

    def outer(self, thresholds: Array) -> Array:
        """Return α⁺, rounded up: what a feasible deviation spends in the first steps at most."""
        return _rounded(thresholds, self._spread(thresholds, self.least_costs), np.inf)

    def gains(self, thresholds: Array, multipliers: Array) -> Array:
        """Return what is added to the gain of each agent: λ·(α⁺ − α⁻) + w·(u − l), rounded up: [n].

        It is infinite, or nan, where what follows is more than any float; of a constraint without a price it is not.
        """
        room = self.outer(thresholds) - self.inner(thresholds)  # exact zero where both are α
        raised = np.where(room <= 0, 0.0, np.nextafter(room, np.inf))
        hard = multipliers == np.inf
        soft = (multipliers > 0) & ~hard
        added = exactly(self.values)
        if multipliers.shape[1]:
            prices = exactly(np.where(soft, multipliers, 0.0))
            added = added + (prices * exactly(np.where(soft, raised, 0.0))).sum(axis=1)
        return np.where((hard & (raised != 0)).any(axis=1), np.inf, added.upper)

    def _spread(self, thresholds: Array, costs: Array) -> Array:
        return np.where(self.never_pays & (np.asarray(thresholds) == 0), 0.0, costs)


def _rounded(thresholds: Array, tail: Array, towards: float) -> Array:
    left = np.asarray(thresholds, dtype=np.float64) - tail
    return np.where(tail == 0, thresholds, np.nextafter(left, towards)).astype(np.float64)


def weights(discount: float, steps: int) -> Ball:
    """Return γ^h for the first steps: [T]."""
    found = [exactly(1.0)]
    factor = exactly(discount)
    for _ in range(steps - 1):
        found.append(found[-1] * factor)
    return stacked(found)


def over_steps(table: Array, scale: Array, axis: int) -> Array:
    """Return a table whose step axis has length one over all steps, the h-th weighed with scale[h]."""
    return np.asarray(table * scale.reshape(-1, *(1,) * (table.ndim - axis - 1)))


def first_steps(tables: LocalTables, discount: float, steps: int, *, exactly_weighed: bool = False) -> LocalTables:
    """Return the tables of the first steps, each entry weighed with γ^h: in floats, or in rationals.

    In rationals it may raise `TooLarge`.
    """
    if not exactly_weighed:
        return _weighed(tables, weights(discount, steps).mid)
    sizes = [tables.delay.size, tables.load_costs.size]
    sizes += [each.reward.size + (0 if each.costs is None else each.costs.size) for each in tables.agents]
    if steps * sum(sizes) > MAX_EXACT_ENTRIES:
        raise TooLarge
    power = [Fraction(1)]
    for _ in range(steps - 1):
        power.append(power[-1] * Fraction(discount))
    return _weighed(tables, np.array(power, dtype=object))


def _weighed(tables: LocalTables, scale: Array) -> LocalTables:
    known: dict[int, Array] = {}  # agents share afterwards what they shared before

    def once(table: Array, axis: int) -> Array:
        if id(table) not in known:
            given = table
            if scale.dtype == object:
                given = np.array([Fraction(entry) for entry in table.ravel().tolist()], dtype=object)
                given = given.reshape(table.shape)
            known[id(table)] = over_steps(given, scale, axis)
        return known[id(table)]

    agents = tuple(
        replace(each, reward=once(each.reward, 0), costs=None if each.costs is None else once(each.costs, 1))
        for each in tables.agents
    )
    return LocalTables(agents, once(tables.delay, 0), once(tables.load_costs, 1))


@np.errstate(all="ignore")  # what follows may be more than any float; then nothing is proved
def tail_of(claim: Claim, discount: float, *, exactly_weighed: bool = False) -> Tail:
    """Bound what follows the T steps of a policy.

    Parameters
    ----------
    claim
        Tables of one step, which hold at every step; its horizon is T, and so is the length of its policy.
    discount
        γ.
    exactly_weighed
        Whether the tables of the first steps are rationals, so that nothing was rounded there.
    """
    tables, steps = claim.tables, claim.steps
    if not isinstance(tables, LocalTables) or not 0 <= discount < 1:
        raise ClaimError("a local game with a discount 0 ≤ γ < 1 is required.")
    held: list[Any] = [tables.delay, tables.load_costs.swapaxes(0, 1)]
    held += [each for agent in tables.agents for each in (agent.reward, agent.transition, agent.uses)]
    held += [agent.costs.swapaxes(0, 1) for agent in tables.agents if agent.costs is not None]
    if any(len(table) != 1 for table in held):
        raise ClaimError("the tables of a discounted game must hold at every step: a step axis of length one.")
    game = Fleet(claim, support=True)
    pairs = _pairs_after(claim, game)
    scale = weights(discount, steps)
    # γ^T, and 1/(1 − γ) from above: 1 − γ is rounded once, and so is the quotient.
    last = float((scale[-1] * exactly(discount)).upper)
    factor = last / (1 - discount) * (1 + 8 * UNIT)
    off = 0.0 if exactly_weighed else float((scale.rad + 2 * UNIT * np.abs(scale.mid)).sum()) * (1 + 2.0**-20)
    agents, resources = len(tables.agents), tables.delay.shape[1]
    hidden = 0.0 if exactly_weighed else 4 * TINY * steps * (agents + resources + 1)
    lowest, highest, sizes = _rewards(tables, game, pairs)
    values = np.nextafter((highest - lowest) * factor * (1 + 8 * UNIT) + 2 * (off * sizes + hidden), np.inf)
    least, most, paid, never = _costs(tables, game, pairs, scale)
    lost = off * paid + hidden * (paid > 0)
    return Tail(
        steps,
        values,
        # w lies between zero and `factor`: what can only lower a bound is not counted.
        most_values=_outside(np.maximum(highest, 0.0), factor, off * sizes + hidden),
        least_values=_outside(np.minimum(lowest, 0.0), factor, -(off * sizes + hidden)),
        least_costs=_outside(np.minimum(least, 0.0), factor, -lost),
        most_costs=_outside(np.maximum(most, 0.0), factor, lost),
        never_pays=never,
    )


def _outside(size: Array, factor: float, lost: Array) -> Array:
    """Return size·factor + lost, of one sign, rounded away from zero; exactly zero if both terms are."""
    total = (size * factor + lost) * (1 + 8 * UNIT)
    nothing = ((size == 0) | (factor == 0)) & (lost == 0)  # a product that is too small for floats is not
    return np.where(nothing, 0.0, np.nextafter(total, np.where(size + lost < 0, -np.inf, np.inf)))


def _pairs_after(claim: Claim, game: Fleet) -> Array:
    """Return which pairs of state and action the agents may come to after T, going on as at step T − 1: [pairs]."""
    there = np.concatenate([member.initial > 0 for member in game.members])
    plays = None
    for step in range(claim.steps):
        plays = np.concatenate([table[step].ravel() > 0 for table in claim.policy])
        there = game.moves(0).entered(plays & there[game.state_of]) > 0
    assert plays is not None
    while True:
        wider = there | (game.moves(0).entered(plays & there[game.state_of]) > 0)
        if np.array_equal(wider, there):
            return np.asarray(plays & there[game.state_of])
        there = wider


def _rewards(tables: LocalTables, game: Fleet, pairs: Array) -> tuple[Array, Array, Array]:
    """Return l, u and the largest |reward| + |delays| of a step, each from outside: [n]."""
    delay = tables.delay[0][:, 1:]
    low, high = delay.min(axis=1), delay.max(axis=1)
    charges: dict[int, list[Ball]] = {}
    found = []
    for i, agent in enumerate(tables.agents):
        if id(agent.uses) not in charges:
            uses = Rows(agent.uses[0], divided=False)
            charges[id(agent.uses)] = [uses.mean(exactly(each)) for each in (low, high, np.abs(delay).max(axis=1))]
        own, (least, most, size) = exactly(agent.reward[0].ravel()), charges[id(agent.uses)]
        mine = pairs[game.first_pair[i] : game.first_pair[i + 1]]
        worst = (own - most).lower[mine].min()
        found.append((worst, (own - least).upper.max(), (exactly(np.abs(own.mid)) + size).upper.max()))
    each = np.array(found)
    return each[:, 0], each[:, 1], each[:, 2]


def _costs(tables: LocalTables, game: Fleet, pairs: Array, scale: Ball) -> tuple[Array, Array, Array, Array]:
    """Return m, M and the largest sum of |costs| of a step, each from outside, and which are never paid: [k]."""
    loads = tables.load_costs[:, 0]  # [k, E, n + 1]
    constraints, agents = len(loads), len(tables.agents)
    users = (game.uses(0).entered(pairs).reshape(agents, -1) > 0).sum(axis=0)  # [E]: how many may be on it
    possible = np.arange(agents + 1) <= users[:, None]
    parts = [(loads.min(axis=2), np.where(possible, loads, -np.inf).max(axis=2), np.abs(loads).max(axis=2))]
    negative, smallest = (loads < 0).any(axis=(1, 2)), np.inf
    for i, agent in enumerate(tables.agents):
        if agent.costs is None:
            continue
        own = agent.costs[:, 0].reshape(constraints, -1)
        mine = own[:, pairs[game.first_pair[i] : game.first_pair[i + 1]]]
        ends = own.min(axis=1), mine.max(axis=1), np.abs(own).max(axis=1)
        parts.append((ends[0][:, None], ends[1][:, None], ends[2][:, None]))
        negative |= (own < 0).any(axis=1)
        smallest = min(smallest, float(np.abs(own[own != 0]).min(initial=np.inf)))
    smallest = min(smallest, float(np.abs(loads[loads != 0]).min(initial=np.inf)))
    least, most, sizes = (exactly(np.hstack([part[end] for part in parts])).sum(axis=1) for end in range(3))
    # No weighed cost vanishes: then what is paid in the first steps is seen there.
    seen = float(scale.lower.min()) * smallest >= NORMAL
    never = ~negative & (most.upper <= 0) & seen
    return least.lower, np.where(never, 0.0, most.upper), sizes.upper, never


def with_tail(found: Findings, tail: Tail, thresholds: Array, multipliers: Array) -> Findings:
    """Return what is proved of the discounted game, given what is of its first steps at the thresholds `budgets`."""
    with np.errstate(all="ignore"):  # what follows may be more than any float; then nothing is proved
        inner, outer = tail.inner(thresholds), tail.outer(thresholds)
        known = np.isfinite(inner)
        added = tail.gains(thresholds, multipliers)
        added = np.where(np.isnan(added), np.inf, added)
        gains = np.nextafter(found.gains + added, np.inf)
        feasibility = found.feasibility if known.all() else Feasibility.OPEN
        if found.feasibility is Feasibility.VIOLATED:
            # A cost is at most `upper`, and as far above what was computed as it may be below it.
            upper = found.excess + inner
            lower = 2 * found.costs - upper
            margin = 8 * UNIT * (np.abs(found.costs) + np.abs(upper) + np.abs(outer))
            exceeded = known & (found.excess > 0) & ((inner == outer) | (lower - margin > outer))
            feasibility = Feasibility.VIOLATED if exceeded.any() else Feasibility.OPEN
        return replace(
            found,
            feasibility=feasibility,
            gains=gains,
            bounds=np.nextafter(found.bounds + added, np.inf),
            rounding=np.minimum(found.rounding + added, gains),
            excess=np.where(known, found.excess, np.inf),
            exactly=None,  # those are the numbers of the first steps
        )
