"""Loads of shared resources: how many of several independent agents use each resource, and what that costs.

Agent i uses resource e at step h with probability u_i[h, e], independently of the others, so the load N = Σ_i X_i is
Poisson-binomial. Three expectations are needed: of a delay that a newcomer meets, E[d(1 + N)]; of what a newcomer adds
to a cost, E[g(1 + N) − g(N)]; and of totals, E[g(N)] and Rosenthal's E Σ_{m ≤ N} d(m).

Resources come in two kinds, found once from the tables.
* Quadratic: d is affine and every g is at most quadratic in the load. Then d(1 + N) = d_1 + d'·N and
  g(N) = g_0 + g'·N + g''·N(N − 1)/2, so that the newcomer's expectations need the mean load alone. Pairs are counted
  where two groups meet, E[N(N − 1)/2] of both = the pairs of each + mean·mean, which needs no difference of large
  numbers.
* General: anything else. The distribution of the load is kept, up to the largest load that has any probability, and the
  distribution of two groups is a convolution.

A `LoadTree` holds these for a balanced tree of groups. Replacing one agent changes the groups on one path, and
"all agents but i" is the union of the siblings along i's path: no rebuild, no deconvolution, and the bits are those of
a fresh tree.

Rounding: where g ≥ 0 does not fall with the load, E[g(N)] does not fall as a usage rises, and Σ_i u_i ∂E[g(N)]/∂u_i =
E[N·(g(N) − g(N − 1))] ≤ κ·E[g(N)] with κ = max_m m·(g(m) − g(m − 1))/g(m) ≤ n. So a relative error of 1 + γ in the
usages is one of (1 + γ)^κ in E[g(N)] at most: κ is `order`, 2 where g counts pairs, and the sums here add
`total_roundings`. For other g the order is n, and errors are relative to E of |g(0)| + Σ_{m < N} |g(m + 1) − g(m)|.
The same holds for delays as functions of the load of the others (`falling_delay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, frozen
from cmpg.games.local.kernels import compiled

BoolArray = npt.NDArray[np.bool_]

FIT = 16 * UNIT_ROUNDOFF
"""A table counts as affine or quadratic where the polynomial gives each entry to this relative accuracy."""


@dataclass(frozen=True, eq=False)
class Load:
    """The load that a group of agents puts on all resources."""

    mean: FloatArray  # [H, E]
    pairs: FloatArray  # [1 + k]: Σ_{h,e} (d' or g_j'')·E[N(N − 1)/2], over the quadratic resources
    users: IntArray  # [H, R]: how many members may use each general resource
    distribution: FloatArray  # [1 + max users, H, R]: P(N = m)


@dataclass(frozen=True, eq=False)
class MarginalCosts:
    """What one more user of each resource meets, and adds."""

    delay: FloatArray | None  # [H, E]: E[d(1 + N)]; None where no delay is ever other than zero
    costs: FloatArray  # [k, H, E]: E[g_j(1 + N) − g_j(N)]


@dataclass(frozen=True, eq=False)
class LoadTables:
    """The delay and the load costs of a game, by kind of resource; coefficients are zero on general resources."""

    steps: int
    num_agents: int
    first_delay: FloatArray  # [H or 1, E]: d(1)
    slopes: FloatArray  # [1 + k, H or 1, E]: d' and g''
    idle_costs: FloatArray  # [k]: Σ_{h,e quadratic} g(0)
    first_costs: FloatArray  # [k, H or 1, E]: g' = g(1) − g(0)
    general: IntArray  # [R]: the general resources, and first the C of them that have load costs
    general_delay: FloatArray  # [n, H or 1, R]: d(1), …, d(n)
    general_costs: FloatArray  # [k, n + 1, H or 1, C]
    general_steps: FloatArray  # [k, n, H or 1, C]: g(m + 1) − g(m)
    has_delay: bool
    has_pairs: bool

    @property
    def entry_roundings(self) -> int:
        """Roundings between the usages and an expectation: those of a convolution are at most those of its lengths."""
        return 24 + (4 * self.num_agents if len(self.general) else self.num_agents.bit_length())

    @property
    def total_roundings(self) -> int:
        """Roundings between the usages and a sum of expectations over all steps and resources."""
        return self.entry_roundings + self.steps * int(self.slopes.shape[2])

    @cached_property
    def order(self) -> float:
        """κ: how many times a relative error of the usages counts in any expectation."""
        tables = [self.general_delay, *self.general_costs, *self.general_steps]
        return max([2.0, *(_elasticity(table, limit=self.num_agents) for table in tables)])

    @cached_property
    def falling_delay(self) -> float:
        """What errors of the delay that one use of a resource at each step brings are relative to, besides that delay.

        Zero where the size of no delay falls as the load grows. Otherwise E[d(1 + N)] may depend on 1 − u alone, which
        for usages near one has an absolute error: then it is the variation of the table, the largest of all resources.

        Increments of a load cost need nothing of the kind. What their error is relative to is at most the increment
        plus E[g(N)], and the rounding of all costs is a part of every bound.
        """
        by_step = _falling_size(self.general_delay)
        return float(by_step.sum()) * (self.steps if len(by_step) == 1 else 1)

    def leaf(self, usage: FloatArray) -> Load:
        """Return the load of one agent, from its usage [H, E]."""
        general = usage[:, self.general]
        users = (general > 0).astype(np.int64)
        distribution = np.stack([1 - general, general])[: 1 + users.max(initial=0)]
        return Load(usage, np.zeros(len(self.slopes)), users, distribution)

    def no_load(self) -> Load:
        """Return the load of a group without members."""
        return self.leaf(np.zeros((self.steps, self.slopes.shape[2])))

    def union(self, one: Load, other: Load) -> Load:
        """Return the load of two groups that share no member."""
        pairs = one.pairs + other.pairs
        if self.has_pairs:
            # The members of two groups are independent: E[pairs across] = mean·mean, a product of non-negative numbers.
            pairs = pairs + _totals(self.slopes, one.mean * other.mean)
        users = one.users + other.users
        distribution = _convolve(one.distribution, other.distribution)[: 1 + users.max(initial=0)]
        return Load(one.mean + other.mean, pairs, users, distribution)

    def charged(self, load: Load) -> Load:
        """Return a load without the distributions that no load cost needs."""
        count = self.general_costs.shape[-1]
        return Load(load.mean, load.pairs, load.users[:, :count], load.distribution[..., :count])

    def marginal_costs(self, load: Load) -> MarginalCosts:
        """Return what a newcomer meets, and adds, where the others put `load` on the resources."""
        costs = self.first_costs + self.slopes[1:] * load.mean
        delay = self.first_delay + self.slopes[0] * load.mean if self.has_delay else None
        if len(self.general):
            charged = self.charged(load).distribution
            for cost, table in zip(costs, self.general_steps, strict=True):
                cost[:, self.general[: charged.shape[-1]]] = _expect(table, charged)
            if delay is not None:
                delay[:, self.general] = _expect(self.general_delay, load.distribution)
        return MarginalCosts(delay, costs)

    def costs(self, load: Load) -> FloatArray:
        """Return Σ_{h,e} E[g_j(N)]: [k]."""
        quadratic = self.idle_costs + _totals(self.first_costs, load.mean) + load.pairs[1:]
        charged = self.charged(load).distribution
        return np.asarray(quadratic + np.array([_expect(table, charged).sum() for table in self.general_costs]))

    def total_delay(self, load: Load) -> float:
        """Return Rosenthal's Σ_{h,e} E Σ_{m = 1..N} d(m)."""
        quadratic = float(_totals(self.first_delay[None], load.mean)[0] + load.pairs[0])
        if not self.has_delay or not len(self.general):
            return quadratic
        # Σ_{m ≤ N} d(m) = Σ_m d(m)·[N ≥ m]: tails of the distribution, so that no table of sums is stored.
        tails = np.cumsum(load.distribution[::-1], axis=0)[::-1][1:]
        return quadratic + float(_expect(self.general_delay, tails).sum())


def load_tables(delay: FloatArray, load_costs: FloatArray, *, horizon: int) -> LoadTables:
    """Split the tables of a game by resource.

    Parameters
    ----------
    delay : [H or 1, E, n + 1]
        What each user gets less, by the load; the entry of load 0 is never used.
    load_costs : [k, H or 1, E, n + 1]
        What each constraint pays, by the load.
    horizon
        H.
    """
    first_delay, slope, affine = _affine(delay[..., 1:])
    idle, first, second, quadratic = _quadratic(load_costs)
    quadratic = affine & quadratic
    costly = load_costs.any(axis=(0, 1, 3))
    charged = np.flatnonzero(~quadratic & costly)
    general = np.concatenate([charged, np.flatnonzero(~quadratic & ~costly)])
    steps = max(len(slope), second.shape[1])
    slopes = np.stack([np.broadcast_to(slope, (steps, delay.shape[1])), *(_stretch(each, steps) for each in second)])
    repeats = horizon if load_costs.shape[1] == 1 else 1
    by_load = np.ascontiguousarray(np.moveaxis(load_costs[:, :, charged], -1, 1))
    return LoadTables(
        steps=horizon,
        num_agents=delay.shape[-1] - 1,
        first_delay=frozen(first_delay * quadratic),
        slopes=frozen(slopes * quadratic),
        idle_costs=frozen((idle * quadratic).sum(axis=(1, 2)) * repeats),
        first_costs=frozen(first * quadratic),
        general=general,
        general_delay=frozen(np.ascontiguousarray(np.moveaxis(delay[:, general, 1:], -1, 0))),
        general_costs=frozen(by_load),
        general_steps=frozen(np.diff(by_load, axis=1)),
        has_delay=bool(delay[..., 1:].any()),
        has_pairs=bool((slopes * quadratic).any()),
    )


@dataclass(frozen=True, eq=False)
class LoadTree:
    """The loads of a balanced tree of groups of agents: leaf i is node n + i, and node p has children 2p and 2p + 1."""

    tables: LoadTables
    nodes: tuple[Load, ...]  # 2n; the root has children in 2 and 3, and is united only when it is needed
    # The unions along the last path that was needed, in a cell that is replaced whole, so that threads may share it.
    _path: list[dict[int, Load]]

    @classmethod
    def grow(cls, tables: LoadTables, usages: Sequence[FloatArray]) -> LoadTree:
        """Build the tree from one usage [H, E] per agent."""
        leaves = [tables.leaf(usage) for usage in usages]
        nodes = [leaves[0]] * len(leaves) + leaves
        for node in reversed(range(2, len(leaves))):
            nodes[node] = tables.union(nodes[2 * node], nodes[2 * node + 1])
        return cls(tables, tuple(nodes), [{}])

    @property
    def more_roundings(self) -> int:
        """Roundings behind a load beyond those that `LoadTables` counts."""
        return 0

    @property
    def _top(self) -> tuple[Load, ...]:
        """The two halves; or the only agent."""
        return self.nodes[2:4] if len(self.nodes) > 2 else self.nodes[1:]

    @cached_property
    def total(self) -> Load:
        """The load of all agents."""
        return reduce(self.tables.union, self._top)

    @cached_property
    def costs(self) -> FloatArray:
        """Σ_{h,e} E[g_j(N)] of all agents: [k]."""
        return self.tables.costs(reduce(self.tables.union, [self.tables.charged(half) for half in self._top]))

    @property
    def mean(self) -> FloatArray:
        """The mean load: [H, E]."""
        return np.asarray(sum(half.mean for half in self._top))

    def usage(self, agent: int) -> FloatArray:
        """Return the usage of one agent: [H, E]."""
        return self.nodes[len(self.nodes) // 2 + agent].mean

    def marginal_costs(self, agent: int) -> MarginalCosts:
        """Return what one agent meets and adds on every resource, beside the others."""
        return self.tables.marginal_costs(self.without(agent))

    def costs_without(self, agent: int) -> FloatArray:
        """Return Σ_{h,e} E[g_j(N)] of all agents but one: [k]."""
        return self.tables.costs(self.without(agent))

    def replace(self, agent: int, usage: FloatArray) -> LoadTree:
        """Return the tree after one agent has changed its usage."""
        nodes, node = list(self.nodes), len(self.nodes) // 2 + agent
        nodes[node] = self.tables.leaf(usage)
        path = {node}
        while node > 3:
            node //= 2
            nodes[node] = self.tables.union(nodes[2 * node], nodes[2 * node + 1])
            path.add(node)
        # What lies outside a group that holds the agent has not changed.
        kept = {group: load for group, load in self._path[0].items() if group in path}
        return LoadTree(self.tables, tuple(nodes), [kept])

    def without(self, agent: int) -> Load:
        """Return the load of all agents but one."""
        leaf = len(self.nodes) // 2 + agent
        known, path = self._path[0], {}
        outside: Load | None = None
        for depth in reversed(range(leaf.bit_length() - 1)):
            group = leaf >> depth
            sibling = self.nodes[group ^ 1]
            if group in known:
                outside = known[group]
            else:
                outside = sibling if outside is None else self.tables.union(outside, sibling)
            path[group] = outside
        self._path[0] = path
        return self.tables.no_load() if outside is None else outside


def at_loads(table: Any, loads: IntArray) -> Any:
    """Return table[h, e, loads[h, e]] of a table [H or 1, E, m] at loads [H, E]: [H, E]."""
    steps = 0 if len(table) == 1 else np.arange(len(loads))[:, None]
    return table[steps, np.arange(loads.shape[1]), loads]


def _affine(delay: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Fit d(m) = first + slope·(m − 1) to tables [H or 1, E, n] over m = 1, …, n; return both, and where it fits."""
    count = delay.shape[-1]
    first = delay[..., 0]
    slope = (delay[..., -1] - first) / max(count - 1, 1)
    polynomial = first[..., None] + slope[..., None] * np.arange(count)
    fits = _reproduces(polynomial, delay) & _same_sign(first, slope)
    return first, slope, np.asarray(fits.all(axis=0))


def _quadratic(costs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Fit g(m) = idle + first·m + second·m(m − 1)/2 to [k, H or 1, E, n + 1]; return all three, and where it fits."""
    loads = np.arange(costs.shape[-1])
    last = int(loads[-1])
    idle, first = costs[..., 0], costs[..., 1] - costs[..., 0]
    second = 2 * ((costs[..., -1] - idle) / last - first) / max(last - 1, 1)
    # A second difference that rounding alone explains is none: a linear cost shall not be taken for a quadratic one.
    second = np.where(np.abs(second) * last <= FIT * np.abs(first), 0.0, second)
    polynomial = idle[..., None] + first[..., None] * loads + second[..., None] * (loads * (loads - 1) / 2)
    fits = _reproduces(polynomial, costs) & _same_sign(idle, first, second)
    return idle, first, second, np.asarray(fits.all(axis=(0, 1)))


def _reproduces(polynomial: FloatArray, table: FloatArray) -> BoolArray:
    return np.asarray((np.abs(polynomial - table) <= FIT * np.abs(table)).all(axis=-1))


def _same_sign(*coefficients: FloatArray) -> BoolArray:
    """Whether no two differ in sign: then the polynomial has no cancellation, and its error is relative."""
    stacked = np.stack(coefficients)
    return np.asarray((stacked >= 0).all(axis=0) | (stacked <= 0).all(axis=0))


def _elasticity(table: FloatArray, *, limit: int) -> float:
    """Return max_m m·(g(m) − g(m − 1))/g(m); `limit` where g changes sign or its size falls with the load."""
    sizes = np.abs(table)
    rises = np.diff(sizes, axis=0)
    if (rises < 0).any() or not _same_sign(*table).all():
        return limit
    loads = np.arange(1, len(sizes)).reshape(-1, *(1 for _ in sizes.shape[1:]))
    shares = np.divide(loads * rises, sizes[1:], out=np.zeros_like(rises), where=sizes[1:] > 0)
    return min(float(shares.max(initial=0.0)) * (1 + 1e-12), limit)


def _falling_size(table: FloatArray) -> FloatArray:
    """Return max_e (|f(0)| + Σ_m |f(m + 1) − f(m)|) over the columns of [m, H or 1, R] in which |f| falls: [H or 1]."""
    sizes = np.abs(table)
    rising = (np.diff(sizes, axis=0) >= 0).all(axis=0) & _same_sign(*table)
    variation = sizes[0] + np.abs(np.diff(table, axis=0)).sum(axis=0)
    return np.asarray(np.where(rising, 0.0, variation).max(axis=-1, initial=0.0))


def _stretch(table: FloatArray, steps: int) -> FloatArray:
    return np.broadcast_to(table, (steps, table.shape[1]))


def _totals(tables: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Σ_{h,e} table[h, e]·weights[h, e] for tables [t, H or 1, E]: [t]."""
    if tables.shape[1] == 1:
        return np.asarray(tables[:, 0] @ weights.sum(axis=0))
    return np.asarray(tables.reshape(len(tables), -1) @ weights.ravel())


def _expect(table: FloatArray, distribution: FloatArray) -> FloatArray:
    """Return Σ_m table[m]·distribution[m] over the loads that the distribution has: [H, R]."""
    return np.asarray(np.einsum("mhe,mhe->he", table[: len(distribution)], distribution))


def _convolve(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the distribution of a sum of two independent loads; the load is the first axis."""
    short, long = sorted((one, other), key=len)
    total = np.zeros((len(short) + len(long) - 1, *long.shape[1:]))
    if not total.size:
        return total
    kernels = compiled()
    if kernels is not None:
        first, second = np.ascontiguousarray(short), np.ascontiguousarray(long)
        kernels.convolve(first, second, long[0].size, total)
        return total
    product = np.empty_like(long)
    for load, probability in enumerate(short):
        np.multiply(probability, long, out=product)
        total[load : load + len(long)] += product
    return total
