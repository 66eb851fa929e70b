"""Who uses what, as lists: the loads of a local game behind the compiled kernels.

An agent that follows a policy uses few of all pairs of step and resource, its places; only those are kept, and loads
are counted from them when they are asked for. The twin is `LoadTree`, which keeps a dense table for every group.
All sums are of non-negative numbers, added agent by agent: each has at most one rounding per agent behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, frozen
from cmpg.games.local.loads import Burden
from cmpg.games.local.packed import PackedGame


@dataclass(frozen=True, eq=False)
class SparseLoads:
    """The places of all agents, one agent after the other; those of one agent are in ascending order."""

    packed: PackedGame
    start: IntArray  # [n + 1]
    place: Any  # [m] of int32: h·E + e
    probability: FloatArray  # [m]

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Start, place and probability, as kernels take them."""
        return (self.start, self.place, self.probability)

    @property
    def more_roundings(self) -> int:
        """Roundings behind a load beyond those that `LoadTables` counts: a product and a sum for each agent."""
        return 2 * (len(self.start) - 1)

    def usage(self, agent: int) -> FloatArray:
        """Return the usage of one agent: [H, E]."""
        used = np.zeros(self.packed.table_shape)
        own = slice(self.start[agent], self.start[agent + 1])
        used.reshape(-1)[self.place[own]] = self.probability[own]
        return used

    @cached_property
    def mean(self) -> FloatArray:
        """The mean load: [H, E]."""
        total = np.bincount(self.place, weights=self.probability, minlength=int(np.prod(self.packed.table_shape)))
        return frozen(total.reshape(self.packed.table_shape))

    @cached_property
    def costs(self) -> FloatArray:
        """Σ_{h,e} E[g_j(N)] of all agents: [k]."""
        totals = np.zeros(self.packed.num_constraints)
        self.packed.kernels.totals(self.packed.arrays, self.arrays, totals)
        return frozen(totals)

    def burden(self, agent: int) -> Burden:
        """Return what one agent meets and adds on every resource, beside the others."""
        return self._beside(agent)[0]

    def costs_without(self, agent: int) -> FloatArray:
        """Return Σ_{h,e} E[g_j(N)] of everybody but one: [k]."""
        return self._beside(agent)[1]

    def _beside(self, agent: int) -> tuple[Burden, FloatArray]:
        known, told = self._last[0]
        if known != agent or told is None:
            shape, has_delay = self.packed.table_shape, self.packed.has_delay
            delay = np.empty(shape if has_delay else 0)
            costs, totals = np.empty((self.packed.num_constraints, *shape)), np.empty(self.packed.num_constraints)
            self.packed.kernels.burden(self.packed.arrays, self.arrays, agent, delay, costs, totals)
            told = Burden(delay if has_delay else None, costs), totals
            self._last[0] = (agent, told)
        return told

    @cached_property
    def _last(self) -> list[tuple[int, tuple[Burden, FloatArray] | None]]:
        # One cell that is replaced whole, so that threads may share it.
        return [(-1, None)]

    def replace(self, agent: int, usage: tuple[Any, Any, Any]) -> SparseLoads:
        """Return the loads after one agent has changed its usage, which is given as arrays of a single agent."""
        _, place, probability = usage
        first, last = self.start[agent], self.start[agent + 1]
        start = self.start.copy()
        start[agent + 1 :] += len(place) - (last - first)
        places = np.concatenate([self.place[:first], place, self.place[last:]])
        probabilities = np.concatenate([self.probability[:first], probability, self.probability[last:]])
        return SparseLoads(self.packed, frozen(start), frozen(places), frozen(probabilities))
