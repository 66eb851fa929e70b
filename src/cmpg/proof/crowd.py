"""Claims about crowds: agents that are alike in kind and policy are a group, held once, with a number.

A member of group g uses cell (h, e) with probability p_g, on its own coins, so the load of a cell is a sum of
independent binomials, N = Σ_g Bin(n_g, p_g), and a member of g meets N_{−g}, with n_g − 1 in place of n_g, whatever it
does itself. Its problem is the CMDP of `local` with
    reward − Σ_{used} E d(1 + N_{−g}),    cost_j + Σ_{used} E Δg_j(N_{−g}),    Δg(m) = g(m + 1) − g(m),
and E g_j(N) = E g_j(N_{−g}) + p_g·E Δg_j(N_{−g}), so that what is left to it is α_j − V^{c_j} + what it spends itself.
For any λ_g ≥ 0 of its own, no member of g gains more by a deviation that keeps the thresholds than
    max V^{r − λ_g·c} − V^{r − λ_g·c}(π_g) + λ_g·(α − V^c):
one law for each cell, and one backward induction for each group, whatever the numbers.

Curves. Delays and load costs are polylines through given points (load, value), on every load from 0 to n; beyond, they
are continued as they end, which no load ever meets. Or they are constant + factor·load^power, which bends everywhere.
On each side of its mean a load keeps within t with
P(|N − μ| > t) ≤ 2·exp(−t² / (2(v + t/3))) (Bernstein), v its variance. Where a curve has no kink in that window, its
expectation is its affine piece at the mean, up to P(outside)·max|f − piece| over all loads.

Laws. Elsewhere the law of N is computed. Bin(n, p) on its window: ratios of neighbours from the mode on, divided by
their sum. The law of a sum: convolutions of non-negative windows, shortest first; what is trimmed at the ends is
added up. Numbers that are not negative have relative errors: `Law.error` bounds that of every entry, from p, from the
ratios and from the sums; `Law.cut` is what the law lost in total variation, and E f moves by at most 2·cut·max|f| over
all loads.

One member left out. For p ≤ ½, N = N_{−g} + B gives E f(N_{−g}) = E f(N) − p·E Δf(N_{−g}), and, again and again,
    E f(N_{−g}) = Σ_{r < R} (−p)^r·E Δ^r f(N) + (−p)^R·E Δ^R f(N_{−g});
for p > ½ likewise about N − 1 in powers of 1 − p. One law serves all groups. The last term: Δ² of a polyline is carried
by its kinks, whose sizes add up to K, and the s-th difference of the law of N_{−g} is at most
    max_t t^s·exp(−v t² / 2) over 0 ≤ t ≤ 2,
since its characteristic function has modulus at most exp(−2v sin²(ω/2)). So it is at most 2^−R·K·(…) with s = R − 2,
which needs a variance of some size; with less, the law without the member is computed for each group by itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, floor, log, sqrt
from typing import NamedTuple, Protocol

import numpy as np

from cmpg.proof.claim import AgentTables, Claim, ClaimError, LocalTables
from cmpg.proof.local import Fleet, Reach, best_of_all, reach
from cmpg.proof.rounding import (
    NORMAL,
    TINY,
    UNIT,
    Array,
    Ball,
    exactly,
    gathered,
    probabilities,
    stacked,
)

MAX_AGENTS = 2**40
"""Loads, and products of them with what is counted here, are whole numbers that floats hold exactly."""

EXPONENT = 60.0
"""Windows leave out exp(−60) on each side."""

TRIMMED = 2.0**-90
"""So much is trimmed at each end of a law."""

DIRECT = 40.0
"""Below this variance the law without a member is computed for each group, and not from the law of all."""

MAX_TERMS = 100
"""The series that leaves a member out has at most this many terms."""

MAX_POWER = 20
"""Powers of loads are products of so many factors at most."""

MAX_ERROR = 2.0**-20
"""Relative errors of at most this add up, times 1 + 2^−16; of a law with larger ones nothing is proved."""


class Polyline(NamedTuple):
    """A function of the load: straight between given points, from load 0 to the number of agents."""

    loads: Array  # [p] of int64, ascending from 0
    values: Array  # [p]


class Power(NamedTuple):
    """A function of the load: constant + factor·load^power."""

    constant: float
    factor: float  # not negative
    power: int  # from 1 to MAX_POWER


@dataclass(frozen=True, eq=False)
class CrowdTables:
    """Kinds of agents with numbers, who meet at resources."""

    kinds: tuple[AgentTables, ...]
    numbers: Array  # [K] of int64
    curves: tuple[Polyline | Power, ...]
    delay: Array  # [H or 1, E]: which curve each user of a resource pays
    load_costs: Array  # [k, H or 1, E]: which curve each constraint pays, once for each resource and step


@dataclass(frozen=True, eq=False)
class CrowdClaim:
    """A crowd, the groups that it is in, and what proves that no member of a group gains more than ε."""

    tables: CrowdTables
    horizon: int
    thresholds: Array  # [k]
    kind: Array  # [G] of int64
    number: Array  # [G] of int64
    policy: tuple[Array, ...]  # G tables [H, S, A]
    multipliers: Array  # [G, k], finite

    def __post_init__(self) -> None:
        _check(self)

    @property
    def members(self) -> Claim:
        """One member of each group, in a game of its own without delays: the tables that all groups share."""
        tables, groups, constraints = self.tables, len(self.kind), len(self.thresholds)
        shape = (1, tables.delay.shape[1], groups + 1)
        return Claim(
            tables=LocalTables(
                agents=tuple(tables.kinds[k] for k in self.kind.tolist()),
                delay=np.zeros(shape),
                load_costs=np.broadcast_to(np.zeros(1), (constraints, *shape)),
            ),
            horizon=self.horizon,
            discount=None,
            thresholds=self.thresholds,
            binds=np.ones((groups, constraints), dtype=bool),
            policy=self.policy,
            multipliers=self.multipliers,
        )


@dataclass(frozen=True, eq=False)
class CrowdChecked:
    """What was found out about a claim; gains and costs are bounds that hold in exact arithmetic."""

    values: Ball  # [G], of one member
    bounds: Array  # [G]: what a member could get at most
    costs: Ball  # [k]
    gains: Array  # [G]
    rounding: Array  # [G]: how much of each gain is an allowance, for rounding and for what was cut
    cut: Array  # [G]: how much of that is for mass that was cut from laws, at most
    loads: Ball  # [H, E]: the mean of every load
    variances: Ball  # [H, E]
    laws: int  # how many laws were computed
    widest: int  # entries of the widest one


def check_crowd(claim: CrowdClaim) -> CrowdChecked:
    """Judge a claim whose tables hold floats."""
    with np.errstate(all="ignore"):  # what overflows is not finite, and proves nothing
        return _checked(claim)


def _checked(claim: CrowdClaim) -> CrowdChecked:
    members = claim.members
    game = Fleet(members)
    forward = _forward(members, game, reach(members, game))
    loads = CrowdLoads(claim, forward)
    number = exactly(claim.number)[:, None]
    costs = (number * forward.costs).sum(axis=0) + loads.costs
    shape = (len(claim.kind), claim.horizon, claim.tables.delay.shape[1])
    prices = [each.reshape(*shape) for each in loads.prices]  # 1 + k of [G, H, E]
    used = forward.used
    values = forward.values - (used * prices[0]).sum(axis=(1, 2))
    by_group = [stacked([price[g] for price in prices]) for g in range(shape[0])]
    bound, raised = best_of_all(members, game, by_group, claim.multipliers, [None] * shape[0])
    cut = 2 * loads.cut[0].sum(axis=1)
    for j, limit in enumerate(claim.thresholds):
        own = forward.costs[:, j] + (used * prices[1 + j]).sum(axis=(1, 2))
        price = exactly(claim.multipliers[:, j])
        bound = bound + price * ((exactly(limit) - costs[j]) + own)
        cut = cut + claim.multipliers[:, j] * (2 * loads.cut[1 + j].sum(axis=1) + loads.cut_costs[j])
    gaps = exactly(bound.upper) - values
    gains = np.maximum(gaps.upper, 0.0)
    rounding = np.minimum(raised + bound.rad + (gains - np.maximum(gaps.mid, 0.0)), gains)
    gains, bounds, rounding = (np.where(np.isnan(each), np.inf, each) for each in (gains, bound.upper, rounding))
    return CrowdChecked(
        values,
        bounds,
        costs,
        gains,
        rounding,
        np.minimum(cut, rounding),
        loads.mean.reshape(*shape[1:]),
        loads.variance.reshape(*shape[1:]),
        loads.laws,
        loads.widest,
    )


@dataclass(frozen=True, eq=False)
class CrowdForward:
    """What a member of each group does, whatever the others do."""

    values: Ball  # [G]: private rewards
    costs: Ball  # [G, k]: private costs
    used: Ball  # [G, H, E]: how likely it uses each resource
    idle: Ball  # [G, H, E]: how likely it does not
    reached: Reach


def _forward(claim: Claim, game: Fleet, reached: Reach) -> CrowdForward:
    """Follow a member of each group; what it does not use is added up by itself, so that errors are relative to it."""
    groups, constraints = claim.multipliers.shape
    mass = game.start()
    values, costs = exactly(np.zeros(groups)), [exactly(np.zeros(groups)) for _ in range(constraints)]
    used, idle = [], []
    for step in range(claim.steps):
        pairs = np.flatnonzero(reached.pairs[step])  # all others have no mass
        visits = probabilities(reached.played[step], game.pair_starts)[pairs] * mass[game.state_of[pairs]]
        uses, owner = game.uses(step), game.agent_of[pairs]
        here = uses.push(visits, pairs).reshape(groups, game.resources)
        rest = exactly(1.0) - here
        rest = Ball(rest.mid.copy(), rest.rad.copy())
        open_ = reached.may[:, step] & ~reached.sure[:, step] & (here.mid > 0.25)
        for e in np.flatnonzero(open_.any(axis=0)).tolist():
            of_e = np.zeros(len(uses.counts), dtype=bool)
            of_e[uses.row[uses.indices % game.resources == e]] = True
            apart = np.flatnonzero(~of_e[pairs])
            sums = gathered(visits[apart], owner[apart], groups)
            chosen = open_[:, e]
            rest.mid[chosen, e], rest.rad[chosen, e] = sums.mid[chosen], sums.rad[chosen]
        used.append(here)
        idle.append(rest)
        values = values + gathered(visits * exactly(game.rewards(step)[pairs]), owner, groups)
        for j in range(constraints) if game.has_private_costs else ():
            costs[j] = costs[j] + gathered(visits * exactly(game.private_costs(j, step)[pairs]), owner, groups)
        mass = game.moves(step).push(visits, pairs)
    spent = stacked(costs, axis=1) if costs else exactly(np.zeros((groups, 0)))
    never, sure = ~reached.may, reached.sure
    # What is certain by what may happen has no rounding in it.
    return CrowdForward(
        values,
        spent,
        _certain(stacked(used, axis=1), never, sure),
        _certain(stacked(idle, axis=1), sure, never),
        reached,
    )


def _certain(table: Ball, zero: Array, one: Array) -> Ball:
    return Ball(np.where(one, 1.0, np.where(zero, 0.0, table.mid)), np.where(one | zero, 0.0, table.rad))


# --- Laws of sums of binomials ----------------------------------------------------------------------------------------


class Law(NamedTuple):
    """The law of a whole number, which differs from what it stands for by `cut` in total variation, after every entry
    was multiplied by some number within `error` of one.
    """

    low: int
    mass: Array  # [w], not negative, of low, low + 1, …
    error: float
    cut: float

    def shifted(self, by: int) -> Law:
        """Return the law of so much more."""
        return self._replace(low=self.low + by)


SURE = Law(0, np.ones(1), 0.0, 0.0)


def binomial(number: int, used: Ball, idle: Ball) -> Law:
    """Return the law of how many of so many use a cell; `used` and `idle` are p > 0 and 1 − p > 0."""
    if number == 0:
        return SURE
    # That one of them does, or that one does not, is as good as impossible; its digits may be lost to underflow.
    for chance, load in ((used, 0), (idle, number)):
        if number * float(chance.upper) <= TRIMMED:
            return Law(load, np.ones(1), 0.0, TRIMMED)
    p, q = float(used.mid), float(idle.mid)
    off = float(used.rad) / p + float(idle.rad) / q  # of the odds, relative
    mean, variance = number * p, number * p * q * (1 + 2 * off) + UNIT * number
    reach_ = bernstein(variance) + number * float(used.rad) + 2
    low, high = max(0, floor(mean - reach_)), min(number, ceil(mean + reach_))
    mode = min(max(floor((number + 1) * p), low), high)
    up, down = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    above = np.cumprod((number - up) / (up + 1) * (p / q))
    below = np.cumprod(down / (number - down + 1) * (q / p))
    mass = np.concatenate([below[::-1], np.ones(1), above])
    mass /= mass.sum()
    # A factor is off by that of the odds, and is rounded five times with the product; and so is the sum.
    error = (2 * max(len(up), len(down)) * (off + 5 * UNIT) + (len(mass) + 4) * UNIT) * (1 + 2.0**-16)
    whole = low == 0 and high == number
    return _trimmed(low, mass, error, 0.0 if whole else 2 * exp(-EXPONENT) * (1 + 2.0**-20))


def bernstein(variance: float) -> float:
    """Return t with exp(−t² / (2(v + t/3))) = exp(−EXPONENT)."""
    third = EXPONENT / 3
    return third + sqrt(third * third + 2 * EXPONENT * variance)


def _trimmed(low: int, mass: Array, error: float, cut: float) -> Law:
    """Return a law without the ends that hold next to nothing, so that no product of entries underflows."""
    if not error <= MAX_ERROR:
        return Law(low, mass, np.inf, cut)
    left, right = (int(np.searchsorted(np.cumsum(side), TRIMMED)) for side in (mass, mass[::-1]))
    kept = mass[left : len(mass) - right]
    # Each end holds at most TRIMMED, in sums that are rounded and of entries that are off by their error.
    return Law(low + left, kept, error, cut + 2.1 * TRIMMED * (left + right > 0))


def convolved(first: Law, second: Law) -> Law:
    """Return the law of the sum of two independent numbers."""
    short = min(len(first.mass), len(second.mass))
    if short == 1:
        one, other = (first, second) if len(first.mass) == 1 else (second, first)
        mass, rounding = other.mass * one.mass[0], 0.0 if one.mass[0] == 1 else UNIT
    else:
        mass, rounding = np.convolve(first.mass, second.mass), (short + 1) * UNIT
    error = (first.error + second.error + rounding) * (1 + 2.0**-16)
    return _trimmed(first.low + second.low, mass, error, first.cut + second.cut)


def sum_law(laws: list[Law]) -> Law:
    """Return the law of the sum of independent numbers, shortest first."""
    waiting = [(len(law.mass), i, law) for i, law in enumerate(laws)]
    heapq.heapify(waiting)
    for i in range(len(laws), 2 * len(laws) - 1):
        (_, _, first), (_, _, second) = heapq.heappop(waiting), heapq.heappop(waiting)
        law = convolved(first, second)
        heapq.heappush(waiting, (len(law.mass), i, law))
    return waiting[0][2] if waiting else SURE


# --- Functions of the load --------------------------------------------------------------------------------------------


class Function(Protocol):
    """A curve read as a function of the load of others: d(1 + m), g(m), or Δg(m) = g(m + 1) − g(m)."""

    size: float  # max|f| over all loads, at least
    kinks: float  # Σ|Δ²f|, at least

    def at(self, loads: Array) -> Ball:
        """Evaluate it at whole loads: [m]."""
        ...

    def straight(self, low: int, high: int, mean: Ball) -> tuple[Ball, float] | None:
        """Where it is straight between two loads, return its piece at means there, and max|f − piece| at most."""
        ...


def function_of(curve: Polyline | Power, what: str, agents: int) -> Function:
    """Read a curve; `what` is "delay", "cost" or "rise"."""
    return PowerFunction(curve, what, agents) if isinstance(curve, Power) else PolylineFunction(curve, what)


class PowerFunction:
    """A power as a function of the load; below load 0 it is what it is at 0, so that its rises grow with the load."""

    def __init__(self, curve: Power, what: str, agents: int) -> None:
        """Read a curve of a crowd of so many agents."""
        self._curve, self._shift, self._rise = curve, int(what == "delay"), what == "rise"
        top = exactly(float(agents + MAX_TERMS + 4))
        # g(m + 1) − g(m) ≤ power·factor·(m + 1)^(power − 1); rises grow, so Σ|Δ²f| ends with the last of them.
        steepest = exactly(float(curve.power)) * exactly(curve.factor) * _power(top, curve.power - 1)
        self.kinks = float(steepest.upper) * (2 if self._rise else 1)  # a rise by itself: Σ|Δ²Δg| ≤ 2·Σ|ΔΔg|
        most = (
            steepest if self._rise else exactly(abs(curve.constant)) + exactly(curve.factor) * _power(top, curve.power)
        )
        self.size = float(most.upper)

    def at(self, loads: Array) -> Ball:
        """Evaluate it at whole loads: [m]."""
        where = loads + self._shift
        return (
            self._value(where + 1) - self._value(where)
            if self._rise
            else self._value(where) + exactly(np.full(len(where), self._curve.constant))
        )

    def _value(self, loads: Array) -> Ball:
        base = exactly(np.maximum(loads, 0).astype(np.float64))
        return exactly(self._curve.factor) * _power(base, self._curve.power)

    def straight(self, low: int, high: int, mean: Ball) -> tuple[Ball, float] | None:  # noqa: ARG002
        """It bends everywhere."""
        return None


def _power(base: Ball, power: int) -> Ball:
    """Return a power by products."""
    result = exactly(np.ones_like(base.mid))
    for _ in range(power):
        result = result * base
    return result


class PolylineFunction:
    """A polyline as a function of the load; beyond its ends it goes on as it ends, which no load ever meets."""

    def __init__(self, curve: Polyline, what: str) -> None:
        """Read a curve; `what` is "delay", "cost" or "rise"."""
        self._loads, self._values = curve.loads, curve.values
        self._shift, self._rise = int(what == "delay"), what == "rise"
        gaps = np.diff(self._loads).astype(np.float64)
        rises = exactly(self._values[1:]) - exactly(self._values[:-1])
        mid = rises.mid / gaps
        # A quotient below the normal numbers is off by up to half of the least one, and may be zero.
        off = (rises.rad / gaps + UNIT * np.abs(mid)) * (1 + 2.0**-30) + TINY * (np.abs(mid) < NORMAL)
        self._slopes = Ball(mid, np.where(rises.mid == 0, 0.0, off))
        ends = Ball(self._slopes.mid[1:], self._slopes.rad[1:]) - Ball(self._slopes.mid[:-1], self._slopes.rad[:-1])
        bends = np.abs(ends.mid) + ends.rad
        # Points on one straight line are no kinks, if that is exactly known.
        self._kinks = self._loads[1:-1][bends > 0] - self._shift
        self.kinks = float(bends.sum()) * (2 if self._rise else 1)  # Σ|Δ²f|, or 2·Σ|Δf| of a step function
        beyond = MAX_TERMS + 2
        far = np.array([-beyond, *self._loads.tolist(), int(self._loads[-1]) + beyond]) - self._shift
        seen = self.at(far)
        most = self._slopes if self._rise else seen
        self.size = float((np.abs(most.mid) + most.rad).max()) * (1 + 2.0**-30)  # max|f| over all loads

    def bent(self, low: int, high: int) -> bool:
        """Say whether the function has a kink between two loads."""
        # A rise changes at the kink itself, a polyline only behind it.
        last = np.searchsorted(self._kinks, high, "right" if self._rise else "left")
        return bool(last > np.searchsorted(self._kinks, low, "right"))

    def at(self, loads: Array) -> Ball:
        """Evaluate it at whole loads: [m]."""
        where = loads + self._shift
        piece = np.clip(np.searchsorted(self._loads, where, "right") - 1, 0, len(self._slopes.mid) - 1)
        slopes = self._slopes[piece]
        if self._rise:
            return slopes
        return exactly(self._values[piece]) + slopes * exactly((where - self._loads[piece]).astype(np.float64))

    def straight(self, low: int, high: int, mean: Ball) -> tuple[Ball, float] | None:
        """Where it is straight between two loads, return its piece at means there, and max|f − piece| at most."""
        return None if self.bent(low, high) else (self.at_mean(low, mean), self.far_from(low))

    def at_mean(self, low: int, mean: Ball) -> Ball:
        """Evaluate the piece on which a load lies at a mean: [m]."""
        where = low + self._shift
        piece = int(np.clip(np.searchsorted(self._loads, where, "right") - 1, 0, len(self._slopes.mid) - 1))
        slope = Ball(self._slopes.mid[piece : piece + 1], self._slopes.rad[piece : piece + 1])
        if self._rise:
            return Ball(np.repeat(slope.mid, len(mean.mid)), np.repeat(slope.rad, len(mean.mid)))
        first = exactly(float(self._shift - int(self._loads[piece])))
        return exactly(self._values[piece]) + slope * (mean + first)

    def far_from(self, low: int) -> float:
        """Return a bound on |f − piece| over all loads, of the piece on which a load lies."""
        if not self._rise:
            ends = np.array([0, *self._kinks.tolist(), int(self._loads[-1]) - self._shift])
            ends = ends[(ends >= 0) & (ends <= self._loads[-1])]
            off = self.at(ends) - self.at_mean(low, exactly(ends.astype(np.float64)))
            return float((np.abs(off.mid) + off.rad).max()) if len(self._kinks) else 0.0
        return 2 * self.size if len(self._kinks) else 0.0


def expected(function: Function, law: Law) -> tuple[Ball, float]:
    """Return E f of a law, and the allowance for what was cut from it."""
    table = function.at(law.low + np.arange(len(law.mass)))
    got = Ball(law.mass, law.mass * law.error * (1 + 2.0**-16)) * table
    return got.sum(), _times(2 * law.cut, function.size)


def _times(part: float, size: float) -> float:
    """Return part·size for an allowance: a product that underflows is not nothing."""
    product = part * size
    return product + TINY * (part > 0 and size > 0 and product < NORMAL)


class CrowdLoads:
    """What the loads of all cells make a member of each group expect."""

    def __init__(self, claim: CrowdClaim, forward: CrowdForward) -> None:
        """Compute all expectations."""
        tables, (groups, steps, resources) = claim.tables, forward.used.mid.shape
        constraints, cells = len(tables.load_costs), steps * resources
        self._number = claim.number
        self._used, self._idle = (each.reshape(groups, cells) for each in (forward.used, forward.idle))
        self._may = forward.reached.may.reshape(groups, cells)
        self._sure = forward.reached.sure.reshape(groups, cells)
        number = exactly(claim.number)[:, None]
        sure = exactly((self._sure * claim.number[:, None]).sum(axis=0))  # whole numbers: exact
        drawn = number * self._used
        drawn = Ball(np.where(self._sure, 0.0, drawn.mid), np.where(self._sure, 0.0, drawn.rad))
        self.mean = sure + drawn.sum(axis=0)  # [cells]
        self.variance = (drawn * self._idle).sum(axis=0)
        self._total = int(claim.number.sum())
        shape = (1 + constraints, groups, cells)
        mid, rad, self.cut = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        costs: list[list[Ball]] = [[] for _ in range(constraints)]
        self.cut_costs, self.laws, self.widest = np.zeros(constraints), 0, 0
        known: dict[tuple[int, str], Function] = {}

        def function(index: Array, cell: int, what: str) -> Function:
            curve = int(index[0 if len(index) == 1 else cell // resources, cell % resources])
            if (curve, what) not in known:
                known[curve, what] = function_of(tables.curves[curve], what, self._total)
            return known[curve, what]

        for cell in np.flatnonzero(self._touched(claim)).tolist():
            functions = [function(tables.delay, cell, "delay")]
            functions += [function(index, cell, "rise") for index in tables.load_costs]
            totals = [function(index, cell, "cost") for index in tables.load_costs]
            found, spent = self._cell(cell, functions, totals)
            for row, (ball, cut) in enumerate(found):
                mid[row, :, cell], rad[row, :, cell], self.cut[row, :, cell] = ball.mid, ball.rad + cut, cut
            for j, (ball, cut) in enumerate(spent):
                costs[j].append(Ball(ball.mid, ball.rad + cut))
                self.cut_costs[j] += cut
        self.prices = [Ball(*pair) for pair in zip(mid, rad, strict=True)]
        self.costs = stacked([_added(each) for each in costs]) if costs else exactly(np.zeros(0))

    def _touched(self, claim: CrowdClaim) -> Array:
        """Say which cells matter: those that a kind can use, or at which no load costs something: [cells]."""
        tables, (steps, resources) = claim.tables, (claim.horizon, claim.tables.delay.shape[1])
        touched = np.zeros((steps, resources), dtype=bool)
        for kind in tables.kinds:
            for step in range(steps):
                matrix = kind.uses[0 if len(kind.uses) == 1 else step]
                touched[step, matrix.indices] = True
        free = np.array(
            [bool((curve.constant if isinstance(curve, Power) else curve.values[0]) != 0) for curve in tables.curves]
        )
        for index in tables.load_costs:
            touched |= free[index]
        return touched.ravel()

    def _cell(
        self, cell: int, functions: list[Function], totals: list[Function]
    ) -> tuple[list[tuple[Ball, float]], list[tuple[Ball, float]]]:
        """Return what a member of each group expects of functions on a cell [G], and what is expected of totals."""
        mean, variance = self.mean[cell], float(self.variance[cell].upper)
        spread = bernstein(variance) + float(mean.rad) + 2 if variance > 0 else 1.0
        low = int(max(0, floor(float(mean.mid) - spread)))
        high = int(min(self._total, ceil(float(mean.mid) + spread)))
        seen = Ball(np.full(len(self._number), mean.mid), np.full(len(self._number), mean.rad)) - self._used[:, cell]
        everyone = mean.reshape(1)
        pieces = [each.straight(low, high, seen) for each in functions]
        pieces += [each.straight(low, high, everyone) for each in totals]
        cut = 2 * exp(-EXPONENT) * (1 + 2.0**-20) if variance > 0 else 0.0
        law = self._law(cell) if None in pieces else None
        without = None if law is None else self._without(cell, law, variance)
        found, spent = [], []
        for each, piece in zip(functions, pieces, strict=False):
            if piece is not None:
                found.append((piece[0], _times(cut, piece[1])))
            elif without is not None:
                found.append(without(each))
        for each, piece in zip(totals, pieces[len(functions) :], strict=True):
            if piece is not None:
                spent.append((piece[0][0], _times(cut, piece[1])))
            elif law is not None:
                spent.append(expected(each, law))
        return found, spent

    def _parts(self, cell: int) -> tuple[int, Array]:
        """Return how many agents surely use a cell, and the groups that are neither sure to nor sure not to."""
        sure = self._sure[:, cell]
        return int(self._number[sure].sum()), np.flatnonzero(self._may[:, cell] & ~sure)

    def _binomial(self, group: int, cell: int, number: int) -> Law:
        return binomial(number, self._used[group, cell], self._idle[group, cell])

    def _law(self, cell: int) -> Law:
        """Return the law of the load of a cell."""
        sure, drawn = self._parts(cell)
        law = sum_law([self._binomial(g, cell, int(self._number[g])) for g in drawn.tolist()]).shifted(sure)
        self.laws, self.widest = self.laws + 1, max(self.widest, len(law.mass))
        return law

    def _without(self, cell: int, law: Law, variance: float) -> Callable[[Function], tuple[Ball, float]]:
        """Return a verb: what a member of each group expects of a function of the load of others [G], and the cut."""
        if variance < DIRECT or not law.error <= MAX_ERROR:
            return self._one_by_one(cell, law)
        least, terms = float(self.variance[cell].lower) - 0.25, 2
        while terms < MAX_TERMS and _remainder(terms, least) > 2.0**-90:
            terms += 1
        p, q = self._used[:, cell], self._idle[:, cell]
        near = p.mid > 0.5  # those that are sure to use it among them

        def without(function: Function) -> tuple[Ball, float]:
            below = _horner(_moments(function, law, terms, forwards=True), -p)
            above = _horner(_moments(function, law, terms, forwards=False), q)
            rest = _times(_remainder(terms, least) * (1 + 2.0**-20), function.kinks)
            ball = Ball(np.where(near, above.mid, below.mid), np.where(near, above.rad, below.rad) + rest)
            return ball, _times(2 * (terms + 1) * law.cut, function.size)

        return without

    def _one_by_one(self, cell: int, law: Law) -> Callable[[Function], tuple[Ball, float]]:
        """Return the same, from the law without a member of each group by itself."""
        sure, drawn = self._parts(cell)
        whole = [self._binomial(g, cell, int(self._number[g])) for g in drawn.tolist()]
        before, after = [SURE.shifted(sure)], [SURE]
        for first, last in zip(whole, reversed(whole), strict=True):
            before.append(convolved(before[-1], first))
            after.append(convolved(last, after[-1]))
        laws = {}
        for r, g in enumerate(drawn.tolist()):
            fewer = self._binomial(g, cell, int(self._number[g]) - 1)
            laws[g] = convolved(convolved(before[r], fewer), after[len(whole) - 1 - r])

        def without(function: Function) -> tuple[Ball, float]:
            everyone, one_less = expected(function, law), expected(function, law.shifted(-1))
            is_sure = self._sure[:, cell]
            mid = np.where(is_sure, one_less[0].mid, everyone[0].mid)
            rad = np.where(is_sure, one_less[0].rad, everyone[0].rad)
            cut = max(everyone[1], one_less[1])
            for g, own in laws.items():
                ball, more = expected(function, own)
                mid[g], rad[g], cut = ball.mid, ball.rad, max(cut, more)
            return Ball(mid, rad), cut

        return without


def _remainder(terms: int, variance: float) -> float:
    """Return 2^−R·max_t t^(R − 2)·exp(−v t² / 2) over 0 ≤ t ≤ 2, for a kink of size one."""
    power = terms - 2
    if power == 0:
        return 2.0**-terms
    inside = power <= 4 * variance
    peak = power / 2 * (log(power / variance) - 1) if inside else power * log(2) - 2 * variance
    return exp(peak - terms * log(2)) * (1 + 2.0**-30)


def _moments(function: Function, law: Law, terms: int, *, forwards: bool) -> list[Ball]:
    """Return E Δ^r f(N) for r < R; backwards, E ∇^r f(N − 1) with ∇f(m) = f(m) − f(m − 1): R numbers."""
    mass = np.pad(law.mass, terms)
    table = function.at(law.low - terms - (not forwards) + np.arange(len(mass)))
    each, found = Ball(mass, mass * law.error * (1 + 2.0**-16)), []
    for _ in range(terms):
        found.append((each * table).sum())
        # E Δf = Σ f(m)·(P(m − 1) − P(m)), and E ∇f = Σ f(m)·(P(m) − P(m + 1)): the padding takes the shifts.
        earlier = Ball(np.roll(each.mid, 1), np.roll(each.rad, 1)) if forwards else each
        later = each if forwards else Ball(np.roll(each.mid, -1), np.roll(each.rad, -1))
        each = earlier - later
    return found


def _horner(moments: list[Ball], powers: Ball) -> Ball:
    """Return Σ_r moment_r·x^r: [G]."""
    total = Ball(np.full(len(powers.mid), moments[-1].mid), np.full(len(powers.mid), moments[-1].rad))
    for moment in reversed(moments[:-1]):
        total = total * powers + moment
    return total


def _added(balls: list[Ball]) -> Ball:
    return stacked(balls).sum() if balls else exactly(0.0)


def _check(claim: CrowdClaim) -> None:
    """Raise unless groups and curves fit together; what kinds and policies hold is checked with `members`."""
    _check_groups(claim)
    total = int(claim.number.sum())
    if total > MAX_AGENTS:
        raise ClaimError(f"there are {total} agents; at most {MAX_AGENTS} are counted exactly.")
    for i, curve in enumerate(claim.tables.curves):
        _check_power(i, curve) if isinstance(curve, Power) else _check_curve(i, *curve, total)
    _check_curve_indices("delay", claim.tables.delay, (), claim)
    _check_curve_indices("load_costs", claim.tables.load_costs, (len(claim.thresholds),), claim)
    if not np.isfinite(claim.multipliers).all():
        raise ClaimError("a multiplier of a group is not a finite number.")


def _check_groups(claim: CrowdClaim) -> None:
    """Raise unless the groups of every kind have as many members as there are agents of it."""
    tables, groups = claim.tables, len(claim.kind)
    for name, table in (("numbers", tables.numbers), ("kind", claim.kind), ("number", claim.number)):
        if table.dtype != np.int64 or table.ndim != 1:
            raise ClaimError(f"{name} is no list of whole numbers (int64).")
    if len(tables.numbers) != len(tables.kinds) or len(claim.number) != groups or len(claim.policy) != groups:
        raise ClaimError("numbers need one entry for each kind; kind, number and policy one for each group.")
    if not groups or claim.kind.min() < 0 or claim.kind.max() >= len(tables.kinds):
        raise ClaimError("there is no group, or one of a kind that does not exist.")
    if claim.number.min() < 1 or tables.numbers.min() < 0 or claim.number.max() > MAX_AGENTS:
        raise ClaimError(f"a group has no members, or more than {MAX_AGENTS}.")
    held = np.zeros(len(tables.kinds), dtype=np.int64)
    np.add.at(held, claim.kind, claim.number)
    wrong = np.flatnonzero(held != tables.numbers)
    if len(wrong):
        k = int(wrong[0])
        raise ClaimError(f"the groups of kind {k} have {held[k]} members; there are {tables.numbers[k]} agents of it.")


def _check_power(i: int, curve: Power) -> None:
    """Raise unless curve i is a constant and a factor, which is not negative, times a power of the load."""
    if not (np.isfinite(curve.constant) and 0 <= curve.factor < np.inf):
        raise ClaimError(f"curve {i} has a constant or a factor that is not a finite number, or a negative factor.")
    if not 1 <= curve.power <= MAX_POWER:
        raise ClaimError(f"curve {i} has no whole power from 1 to {MAX_POWER}.")


def _check_curve(i: int, loads: Array, values: Array, total: int) -> None:
    """Raise unless curve i has a value at 0 and at the number of agents, at ascending loads between."""
    if loads.dtype != np.int64 or values.dtype != np.float64 or loads.shape != values.shape or loads.ndim != 1:
        raise ClaimError(f"curve {i} is no list of points: whole loads (int64), and as many values (float64).")
    if len(loads) < 2 or loads[0] != 0 or loads[-1] != total or np.any(np.diff(loads) < 1):
        raise ClaimError(f"the loads of curve {i} do not ascend from 0 to {total}, the number of agents.")
    if not np.isfinite(values).all():
        raise ClaimError(f"curve {i} has a value that is not a finite number.")


def _check_curve_indices(name: str, table: Array, family: tuple[int, ...], claim: CrowdClaim) -> None:
    """Raise unless a table names a curve of each step and resource: [*family, H or 1, E]."""
    if table.dtype != np.int64 or table.ndim != len(family) + 2 or table.shape[: len(family)] != family:
        raise ClaimError(f"{name} names no curve of each step and resource.")
    if table.shape[-2] not in (1, claim.horizon) or table.shape[-1] != claim.tables.delay.shape[1]:
        raise ClaimError(f"{name} has shape {list(table.shape)}; 1 or {claim.horizon} steps are required.")
    if table.size and (table.min() < 0 or table.max() >= len(claim.tables.curves)):
        raise ClaimError(f"{name} names a curve that does not exist.")
