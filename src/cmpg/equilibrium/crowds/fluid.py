"""A crowd as a fluid: numbers of each plan as real numbers, loads as normal laws. A search: nothing of it is believed.

Columns are plans of kinds that do not mix, with x_c agents each. At multipliers λ the numbers minimise
    Σ_c x_c·(private cost of c) + Σ_cells ∫ price(L) dL,    L = Σ_c x_c·p_c,    σ² = Σ_c x_c·p_c(1 − p_c),
where price(L) is the expected delay of one more user and λ times the expected rise of the costs under a normal law with
mean L and deviation σ, which is held while the numbers are found, and renewed. New columns are best plans at the
prices.

The master problem is solved by a primal-dual interior point method. Within a few σ of a capacity the price goes from
nothing to λ, which is next to a jump where agents are many, and Newton's method on price(load) is lost there: so the
steep part q of the price is a variable of its own, and its equation is linearised as load(q).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from cmpg.arrays import FloatArray, IntArray
from cmpg.deadline import check_time
from cmpg.equilibrium.crowds.kinds import Kinds
from cmpg.equilibrium.crowds.laws import Powers, stack_of
from cmpg.games.crowd.game import CrowdGame, Curve, LoadCurve, PowerCurve, ends_of

MAX_KINKS = 64
"""Curves with more kinks are read at this many points; the moves that follow read them as they are."""

AIM = 0.97
"""The fluid is to spend this share of each threshold: what is left is for single agents."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Plans of kinds, and where each leads."""

    kind: IntArray  # [c]
    used: FloatArray  # [c, H·E]
    values: FloatArray  # [c]: private rewards
    costs: FloatArray  # [c, k]: private costs
    actions: IntArray  # [c, H, S]

    @property
    def variances(self) -> FloatArray:
        """What one agent adds to the variance of each load: [c, H·E]."""
        return self.used * (1 - self.used)

    def __getitem__(self, index: Any) -> Columns:
        return Columns(*(getattr(self, name)[index] for name in ("kind", "used", "values", "costs", "actions")))

    def keys(self) -> list[tuple[int, bytes]]:
        """Return what tells columns apart: the kind, and what is used."""
        rounded = np.round(np.column_stack([self.used, self.values]), 9)
        return [(int(k), row.tobytes()) for k, row in zip(self.kind, rounded, strict=True)]


def columns_of(kinds: Kinds, kind: IntArray, actions: IntArray) -> Columns:
    """Follow plans."""
    ways = kinds.follow(kind, actions)
    return Columns(kind, ways.used, ways.values, ways.costs, actions)


def joined(first: Columns, second: Columns, known: set[tuple[int, bytes]]) -> Columns:
    """Return columns and those of others that are not known yet."""
    new = []
    for i, key in enumerate(second.keys()):
        if key not in known:
            known.add(key)
            new.append(i)
    more = second[np.array(new, dtype=np.int64)]
    names = ("kind", "used", "values", "costs", "actions")
    return Columns(*(np.concatenate([getattr(first, name), getattr(more, name)]) for name in names))


class Prices:
    """Prices of cells as functions of normal loads."""

    def __init__(self, game: CrowdGame, cells: IntArray) -> None:
        """Read the curves of some cells."""
        self.constraints, count = game.num_constraints, len(cells)
        read = [stack_of(game, int(cell)) for cell in cells]
        stacks = [[_thinned(curve) for curve in stack] for stack in read]
        columns = 1 + self.constraints  # there may be no cell
        firsts = np.array([[curve.slopes[0] for curve in stack] for stack in stacks]).reshape(count, columns)
        self.floor = np.array([[curve.values[0] for curve in stack] for stack in stacks]).reshape(count, columns)
        self.slope = np.array([stack[0].slopes.min() for stack in stacks])  # of the delay, at least
        self.rises = firsts[:, 1:]
        self.extra = firsts[:, 0] - self.slope
        most = max((len(curve.loads) - 2 for stack in stacks for curve in stack), default=0)
        shape = (1 + self.constraints, count, max(most, 1))
        self.kinks, self.bends = np.full(shape, np.inf), np.zeros(shape)
        for c, stack in enumerate(stacks):
            for j, curve in enumerate(stack):
                kinks, bends = _merged(curve)
                self.kinks[j, c, : len(kinks)], self.bends[j, c, : len(kinks)] = kinks, bends
        self.kinks[~(self.bends != 0)] = np.inf
        self.agents = game.num_agents
        self.powers = [Powers([stack[row] for stack in read]) for row in range(columns)]
        # Below this load, by some deviations, nothing of a cell bends.
        self.first = self.kinks.min(axis=(0, 2))
        for power in self.powers:
            self.first[power.cells] = 0.0
        # One kink of one cost, and none of the delay: the inverse is that of the normal law.
        counts = np.isfinite(self.kinks).sum(axis=2)
        self._simple = (counts[0] == 0) & (counts[1:].sum(axis=0) == 1) & (self.extra == 0)
        for power in self.powers:
            self._simple[power.cells] = False

    def constant(self, multipliers: FloatArray) -> FloatArray:
        """Return what a cell costs its user at load 0, before any kink: [C]."""
        return np.asarray(self.floor[:, 0] + self.slope + self.extra + self.rises @ multipliers)

    def steep(self, load: FloatArray, spread: FloatArray, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the part of the price that is not affine in the load, and its derivative: [C], [C]."""
        value, slope = self.extra * load, self.extra.copy()
        wide = spread[:, None]
        with np.errstate(all="ignore"):
            # For a normal load N + 1 of deviation σ, E[(N + 1 − κ)⁺] = σ·(φ(z) + z·Φ(z)) with z = (load + 1 − κ)/σ.
            away = (load[:, None] + 1 - self.kinks[0]) / wide
            tail = ndtr(away)
            value = value + (
                self.bends[0] * np.where(np.isfinite(away), wide * (_density(away) + away * tail), 0.0)
            ).sum(axis=1)
            slope = slope + (self.bends[0] * np.where(np.isfinite(away), tail, 0.0)).sum(axis=1)
            for j, price in enumerate(multipliers):
                # One more user raises (N − κ)⁺ by one where N ≥ κ; 0.5 is the continuity correction of whole loads.
                away = (load[:, None] + 0.5 - self.kinks[1 + j]) / wide
                value = value + price * (self.bends[1 + j] * ndtr(away)).sum(axis=1)
                slope = slope + price * (
                    self.bends[1 + j] * np.where(np.isfinite(away), _density(away) / wide, 0.0)
                ).sum(axis=1)
        for row, power in enumerate(self.powers):
            if len(power.cells):
                price, here = (1.0, load[power.cells]) if row == 0 else (float(multipliers[row - 1]), load[power.cells])
                order = int(row > 0)  # of one more user, or of what one more user adds
                value[power.cells] += price * power.derivative(here + 1 - 0.5 * order, order)
                slope[power.cells] += price * power.derivative(here + 1 - 0.5 * order, order + 1)
        return value, slope

    def top(self, multipliers: FloatArray) -> FloatArray:
        """Return what the steep part never exceeds: [C]; infinite where delays bend."""
        bounded = (self.bends[1:].sum(axis=2).T @ multipliers) if self.constraints else np.zeros(len(self.slope))
        bends = np.isfinite(self.kinks[0]).any(axis=1) | (self.extra != 0)
        for power in self.powers:
            bends[power.cells] = True
        return np.where(bends, np.inf, bounded)

    def load(self, steep: FloatArray, spread: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the load at which the steep part has a value: [C]."""
        first = self.first
        low, high = first - 12 * spread - 2, np.full(len(steep), 2.0 * self.agents)
        found = np.zeros(len(steep))
        simple = self._simple & np.isfinite(first)
        if simple.any():
            weight = self.top(multipliers)[simple]
            with np.errstate(all="ignore"):
                # Φ⁻¹ has no value at 0 and 1; beyond these shares the load would be many σ from the kink.
                share = np.clip(steep[simple] / weight, 1e-300, 1 - 1e-12)
            found[simple] = first[simple] - 0.5 + spread[simple] * ndtri(share)
        if not simple.all():
            low = np.where(np.isfinite(low), low, 0.0)
            for _ in range(64):  # bisection to the last bit: the steep part rises with the load
                middle = (low + high) / 2
                above = self.steep(middle, spread, multipliers)[0] > steep
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            found = np.where(simple, found, (low + high) / 2)
        return found

    def spent(self, load: FloatArray, spread: FloatArray) -> FloatArray:
        """Return what loads cost: [k]."""
        found = self.floor[:, 1:].sum(axis=0) + load @ self.rises
        with np.errstate(all="ignore"):
            for j in range(self.constraints):
                away = (load[:, None] + 0.5 - self.kinks[1 + j]) / spread[:, None]
                over = np.where(np.isfinite(away), spread[:, None] * (_density(away) + away * ndtr(away)), 0.0)
                found[j] += (self.bends[1 + j] * over).sum()
                power = self.powers[1 + j]
                found[j] += power.derivative(load[power.cells], 0).sum()
        return np.asarray(found)


def _merged(curve: LoadCurve) -> tuple[FloatArray, FloatArray]:
    """Return the kinks of a curve and their sizes; two at neighbouring loads, as of a broken capacity, are one."""
    kinks, bends = curve.loads[1:-1].astype(np.float64), np.diff(curve.slopes)
    kept = bends != 0
    kinks, bends = kinks[kept], bends[kept]
    if len(kinks) == 2 and kinks[1] - kinks[0] == 1 and bends.min() > 0:
        return np.array([kinks @ bends / bends.sum()]), np.array([bends.sum()])
    return kinks, bends


def _density(z: Any) -> Any:
    return np.exp(-z * z / 2) / sqrt(2 * pi)


def _thinned(curve: Curve) -> LoadCurve:
    if isinstance(curve, PowerCurve):  # nothing but its constant: `Powers` has the rest
        return LoadCurve([0, 1], [curve.constant, curve.constant])
    if len(curve.loads) <= MAX_KINKS + 2:
        return curve
    kept = np.unique(np.round(np.linspace(0, len(curve.loads) - 1, MAX_KINKS + 2)).astype(np.int64))
    return LoadCurve(curve.loads[kept], curve.values[kept])


class Fluid:
    """Columns and their numbers, while multipliers are found."""

    def __init__(self, game: CrowdGame, kinds: Kinds, *, rng: np.random.Generator) -> None:
        """Begin with plans at a few prices."""
        self.game, self.kinds, self._rng = game, kinds, rng
        # What agents may gain or lose; a power of the load of all of them at once would be out of all proportion.
        self.unit = max(game.range_with([ends_of(curve, 1) for curve in game.curves]), 1e-12) / 32
        self.everyone = np.arange(game.num_kinds)
        reach = np.zeros(kinds.steps * kinds.resources, dtype=bool)
        for kind in game.kinds:
            reach |= kind.reach(game.horizon).ravel()
        self.cells = np.flatnonzero(reach)
        self.prices = Prices(game, self.cells)
        self._known: set[tuple[int, bytes]] = set()
        none = np.zeros(game.num_constraints)
        self.multipliers = none
        plain = self._spread(self.prices.constant(none))
        waves = [plain + self.unit * extra for extra in (0.0, 1.0, 3.0)]
        waves.append(plain + 0.02 * self.unit * np.arange(len(plain)) // kinds.resources)
        self.numbers = np.zeros(0)
        begin = kinds.plan(self.everyone, np.tile(waves[0], (len(self.everyone), 1)))
        self.columns = columns_of(kinds, self.everyone, begin.actions)
        self._known.update(self.columns.keys())
        for wave in waves[1:]:
            self._plan(wave, none)
        self.numbers = self._even()
        self.steep: FloatArray | None = None
        self.price = plain
        self.stiffness = np.zeros(len(self.cells))  # by how much the price of a cell rises with one more user: [C]

    def _spread(self, prices: FloatArray) -> FloatArray:
        """Return prices of the cells that matter as prices of all: [H·E]."""
        full = np.zeros(self.kinds.steps * self.kinds.resources)
        full[self.cells] = prices
        return full

    def _even(self) -> FloatArray:
        counts = np.bincount(self.columns.kind, minlength=self.game.num_kinds)
        return np.asarray(self.game.numbers[self.columns.kind] / counts[self.columns.kind])

    def _plan(self, price: FloatArray, multipliers: FloatArray, noise: float = 0.0) -> float:
        """Add the best plan of each kind at prices [H·E], and return what an agent gains by it on average."""
        prices = np.tile(price, (len(self.everyone), 1))
        if noise:
            prices = prices + noise * self._rng.standard_normal(prices.shape)
        charges = np.tile(multipliers, (len(self.everyone), 1))
        plans = self.kinds.plan(self.everyone, prices, charges)
        found = columns_of(self.kinds, self.everyone, plans.actions)
        self.columns = joined(self.columns, found, self._known)
        self.numbers = np.pad(self.numbers, (0, len(self.columns.kind) - len(self.numbers)))
        return float(self.game.numbers @ plans.values) / self.game.num_agents

    @property
    def worth(self) -> FloatArray:
        """What each column is worth to one that plays it: [c].

        One that surely uses a cell does not meet itself there, and one that uses it seldom meets nearly all. So the
        variance that a column adds has a price, too: half of what a price rises with the load.
        """
        columns = self.columns
        spread = columns.variances[:, self.cells] @ self.stiffness
        return np.asarray(columns.values - columns.costs @ self.multipliers - columns.used @ self.price - 0.5 * spread)

    @property
    def deviation(self) -> FloatArray:
        """σ of the load of each cell that matters: [C]."""
        # Loads are whole numbers: no law of theirs is narrower than half a user for the purpose of a price.
        return np.sqrt(np.maximum(self.numbers @ self.columns.variances[:, self.cells], 0.25))

    def solve(self, multipliers: FloatArray, *, tolerance: float, rounds: int = 40) -> FloatArray:
        """Find columns and numbers at multipliers, and return what they cost: [k]."""
        self.multipliers, agents = multipliers, self.game.num_agents
        load = spread = np.zeros(len(self.cells))
        for turn in range(rounds):
            check_time()
            for _ in range(2):
                spread = self.deviation
                self._master(multipliers, spread, 1e-9 if turn > 3 else 1e-5)
            load = self.numbers @ self.columns.used[:, self.cells]
            steep = self.prices.steep(load, spread, multipliers)[0] if self.steep is None else self.steep
            if self.steep is not None:
                flat = self.steep < 1e-9 * self.unit
                load = np.where(flat, load, self.prices.load(self.steep, spread, multipliers))
            self.stiffness = self.prices.slope + self.prices.steep(load, spread, multipliers)[1]
            self.price = self._spread(
                self.prices.constant(multipliers)
                + self.prices.slope * (self.numbers @ self.columns.used[:, self.cells])
                + steep
            )
            worth = float(self.numbers @ self.worth) / agents
            before = len(self.columns.kind)
            self._plan(self.price, multipliers)
            for _ in range(3):
                self._plan(self.price, multipliers, noise=2e-4 * self.unit)
            best = np.full(self.game.num_kinds, -np.inf)
            np.maximum.at(best, self.columns.kind, self.worth)
            if float(self.game.numbers @ best) / agents - worth < tolerance or len(self.columns.kind) == before:
                break
        return self.prices.spent(load, spread) + self.numbers @ self.columns.costs

    def _master(self, multipliers: FloatArray, spread: FloatArray, tolerance: float) -> None:
        """Find the numbers of the columns, with the deviations of the loads held."""
        order = np.argsort(self.columns.kind, kind="stable")
        columns, agents = self.columns[order], float(self.game.num_agents)
        kind = columns.kind
        starts = np.flatnonzero(np.r_[True, np.diff(kind) > 0])
        of = np.cumsum(np.r_[False, np.diff(kind) > 0])
        members = self.game.numbers[kind].astype(np.float64)
        share = members / agents
        rates = (columns.used[:, self.cells] * share[:, None]).T  # [C, c]: load, in shares of all agents
        constant = self.prices.constant(multipliers)
        own = columns.values - columns.costs @ multipliers - 0.5 * columns.variances[:, self.cells] @ self.stiffness
        worth = (-own * share + constant @ rates) / self.unit
        slope, width = self.prices.slope * agents / self.unit, spread / agents
        top = self.prices.top(multipliers) / self.unit
        counts = np.diff(np.r_[starts, len(kind)])[of]
        # Variables of order one: y is a column's share of its kind, q a steep price. Both begin inside of their bounds.
        y = 0.9 * self.numbers[order] / members + 0.1 / counts
        q = np.full(len(top), 0.2) if self.steep is None else self.steep / self.unit
        ceiling = np.where(np.isfinite(top), 0.9999 * top, np.inf)
        q = np.clip(q, np.minimum(1e-3, 0.1 * ceiling), np.where(np.isfinite(top), 0.5 * top, np.inf))
        steep = top > 0

        def by_kind(table: FloatArray) -> FloatArray:
            return np.add.reduceat(table, starts, axis=-1)

        load = rates @ y
        gradient = worth + (slope * load + q * steep) @ rates
        # Duals: ν of Σ y = 1 in each kind, just below the least gradient; so z = gradient − ν of y ≥ 0 is positive.
        z = np.maximum(gradient - (np.minimum.reduceat(gradient, starts) - 1e-2 * share[starts])[of], 1e-10)
        nu = np.minimum.reduceat(gradient, starts) - 1e-2 * share[starts]
        for _ in range(80):
            load = rates @ y
            wanted = self.prices.load(q * self.unit, spread, multipliers) / agents
            stiff = self.prices.steep(wanted * agents, spread, multipliers)[1] * agents / self.unit
            first = self.prices.first / agents
            # Nine σ below its first kink a cell is never reached, and its price would only be a singular row.
            active = steep & ~((load < first - 9 * width) & (q < 1e-9))
            stiff, rho = np.where(active, stiff, 0.0), np.where(active, wanted - load, 0.0)
            price = slope * load + np.where(steep, q, 0.0)
            gradient = worth + price @ rates
            gap, dual = float(y @ z), gradient - nu[of] - z
            if gap < tolerance and np.abs(dual).max() < tolerance and np.abs(stiff * rho).max(initial=0.0) < 1e-6:
                break
            # Newton on y·z = μ: the barrier aims at 0.15 of the mean complementarity, and eliminating dz leaves y/z.
            mu, inverse = 0.15 * gap / len(y), y / z
            right = -(gradient - nu[of] - mu / y) + (stiff * rho) @ rates
            total, weight = slope + stiff, by_kind(inverse)

            def projected(table: FloatArray, inverse: FloatArray = inverse, weight: FloatArray = weight) -> FloatArray:
                return np.asarray(inverse * (table - (by_kind(inverse * table) / weight)[..., of]))

            # Columns are many and cells few: what is left to solve is [C, C], by Woodbury's identity.
            middle = rates @ projected(rates).T  # [C, C]
            try:
                move = np.linalg.solve(np.eye(len(slope)) + middle * total, rates @ projected(right))
            except np.linalg.LinAlgError:  # slopes of hundreds of powers of ten: whole numbers go on from here
                break
            full = right - (total * move) @ rates
            dy, dnu = projected(full), -(by_kind(inverse * full) / weight)
            dz = (mu - z * dy) / y - z
            dq = stiff * (rates @ dy - rho)
            # One step length for all, 0.99 of the way to the nearest bound.
            step = min(_longest(y, dy), _longest(z, dz), _longest(ceiling - q, -dq))
            y, nu, z = y + step * dy, nu + step * dnu, z + step * dz
            # A price may fall to nothing by itself, without holding up the rest.
            q = np.maximum(q + step * dq, 0.05 * q)
            q = np.where(active, np.maximum(q, 1e-14), 1e-14)
        numbers = np.empty_like(y)
        numbers[order] = y * members
        self.numbers, self.steep = numbers, np.where(steep, q, 0.0) * self.unit


def _longest(values: FloatArray, change: FloatArray) -> float:
    """Return the longest step that keeps values positive, at most one."""
    falling = (change < 0) & np.isfinite(values)
    return min(1.0, 0.99 * float((-values[falling] / change[falling]).min())) if falling.any() else 1.0


def fluid_solution(fluid: Fluid, *, tolerance: float) -> FloatArray:
    """Find multipliers at which the fluid spends what it is to spend, and return them: [k]."""
    limits = AIM * fluid.game.thresholds
    multipliers = np.zeros(len(limits))
    spent = fluid.solve(multipliers, tolerance=100 * tolerance)
    if np.all(spent <= limits):
        fluid.solve(multipliers, tolerance=tolerance)
        return multipliers
    guess = 20 * fluid.unit * sqrt(fluid.game.num_agents / 1e6) / np.maximum(fluid.game.thresholds, 1e-9)
    multipliers = np.where(spent > limits, guess, 0.0)
    fluid.steep = None
    for _ in range(14):
        spent = fluid.solve(multipliers, tolerance=tolerance)
        ratio = spent / limits
        off = np.where(multipliers > 0, np.abs(ratio - 1), np.maximum(ratio - 1, 0.0))
        if off.max() < 0.01:
            break
        # What is spent falls about as 1/λ.
        multipliers = np.where(multipliers > 0, multipliers * np.clip(ratio, 0.1, 8.0), np.where(ratio > 1, guess, 0.0))
        multipliers = np.where(multipliers < 1e-6 * guess, 0.0, multipliers)
    return multipliers
