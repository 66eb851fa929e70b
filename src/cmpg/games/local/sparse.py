"""Who uses what, as lists: the loads of a local game behind the compiled kernels.

An agent that follows a policy uses few of all pairs of step and resource; only the indices h·E + e of those are kept,
and loads are counted from them when they are needed. The twin is `LoadTree`, which keeps a dense table for every group.
All sums are of non-negative numbers, added agent by agent: each has at most one rounding per agent behind it.

What is possible, whatever its probability, are lists of indices, too: agents move independently, so the load that
others put on a resource can be any number from those who use it for sure to those who may use it. That is all that a
hard budget needs (`cmpg.cmdp.support`): if the others' loads cost the same in every case that is possible, it is known
without rounding what they spend, and what is left for one agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, at_step, frozen
from cmpg.cmdp.model import drop_broadcast
from cmpg.cmdp.support import (
    EXACT_FLOAT,
    Forbidden,
    PossibleCosts,
    Successors,
    forbidden_actions,
    whole_multiples,
)
from cmpg.games.local.agent import LocalAgent, distinct
from cmpg.games.local.loads import MarginalCosts, at_loads
from cmpg.games.local.packed import PackedGame

if TYPE_CHECKING:
    from cmpg.games.local.game import LocalGame

CHANCE = 1e-9
"""A computed probability between this and one less this is that of an event that may happen, and may not."""


@dataclass(frozen=True, eq=False)
class SparseLoads:
    """The indices (step, resource) that agents use, one agent after the other; those of one agent ascend."""

    packed: PackedGame
    start: IntArray  # [n + 1]
    index: Any  # [m] of int32: h·E + e
    probability: FloatArray  # [m]

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Start, index and probability, as kernels take them."""
        return (self.start, self.index, self.probability)

    @property
    def more_roundings(self) -> int:
        """Roundings behind a load beyond those that `LoadTables` counts: a product and a sum for each agent."""
        return 2 * (len(self.start) - 1)

    def usage(self, agent: int) -> FloatArray:
        """Return the usage of one agent: [H, E]."""
        used = np.zeros(self.packed.table_shape)
        own = slice(self.start[agent], self.start[agent + 1])
        used.reshape(-1)[self.index[own]] = self.probability[own]
        return used

    @cached_property
    def mean(self) -> FloatArray:
        """The mean load: [H, E]."""
        total = np.bincount(self.index, weights=self.probability, minlength=int(np.prod(self.packed.table_shape)))
        return frozen(total.reshape(self.packed.table_shape))

    @cached_property
    def costs(self) -> FloatArray:
        """Σ_{h,e} E[g_j(N)] of all agents: [k]."""
        totals = np.zeros(self.packed.num_constraints)
        self.packed.kernels.totals(self.packed.fields, self.arrays, totals)
        return frozen(totals)

    def marginal_costs(self, agent: int) -> MarginalCosts:
        """Return what one agent meets and adds on every resource, beside the others."""
        return self._beside(agent)[0]

    def costs_without(self, agent: int) -> FloatArray:
        """Return Σ_{h,e} E[g_j(N)] of all agents but one: [k]."""
        return self._beside(agent)[1]

    def _beside(self, agent: int) -> tuple[MarginalCosts, FloatArray]:
        known, found = self._last[0]
        if known != agent or found is None:
            shape, has_delay = self.packed.table_shape, self.packed.has_delay
            delay = np.empty(shape if has_delay else 0)
            costs, totals = np.empty((self.packed.num_constraints, *shape)), np.empty(self.packed.num_constraints)
            self.packed.kernels.marginal_costs(self.packed.fields, self.arrays, agent, delay, costs, totals)
            found = MarginalCosts(delay if has_delay else None, costs), totals
            self._last[0] = (agent, found)
        return found

    def surely_vary(self, agent: int, table: FloatArray) -> bool:
        """Whether what the loads of all but one agent cost by a table [H or 1, E, n + 1] surely depends on chance.

        Rounding cannot make a probability of CHANCE out of zero, so the others' loads between those of the agents that
        do not miss by as much and those of the agents that use the resource with as much are all possible.
        """
        most, least = (each.copy() for each in self._likely)
        own = slice(self.start[agent], self.start[agent + 1])
        most[self.index[own]] -= self.probability[own] > CHANCE
        least[self.index[own]] -= self.probability[own] >= 1 - CHANCE
        for index in np.flatnonzero(most > least):
            step, resource = divmod(int(index), table.shape[1])
            costs = at_step(table, step)[resource, least[index] : most[index] + 1]
            if (costs != costs[0]).any():
                return True
        return False

    @cached_property
    def _likely(self) -> tuple[IntArray, IntArray]:
        """How many agents use each index with more than CHANCE, and with all but CHANCE: [H·E] each."""
        size = int(np.prod(self.packed.table_shape))
        found = (self.probability > CHANCE, self.probability >= 1 - CHANCE)
        return tuple(np.bincount(self.index[each], minlength=size) for each in found)  # type: ignore[return-value]

    @cached_property
    def _last(self) -> list[tuple[int, tuple[MarginalCosts, FloatArray] | None]]:
        # One cell that is replaced whole, so that threads may share it.
        return [(-1, None)]

    def replace(self, agent: int, usage: tuple[Any, Any, Any]) -> SparseLoads:
        """Return the loads after one agent has changed its usage, which is given as arrays of a single agent."""
        _, index, probability = usage
        first, last = self.start[agent], self.start[agent + 1]
        start = self.start.copy()
        start[agent + 1 :] += len(index) - (last - first)
        indices = np.concatenate([self.index[:first], index, self.index[last:]])
        probabilities = np.concatenate([self.probability[:first], probability, self.probability[last:]])
        return SparseLoads(self.packed, frozen(start), frozen(indices), frozen(probabilities))


@dataclass(frozen=True, eq=False)
class PossibleUse:
    """What one agent may use by its policy, what it uses for sure, and what it spends by itself."""

    may: IntArray  # indices h·E + e
    must: IntArray
    spent: tuple[Fraction | None, ...]  # [k]: privately; None where that depends on chance


def possible_use(game: LocalGame, agent: LocalAgent, table: FloatArray) -> PossibleUse:
    """Follow everything that a policy [H, S, A] can lead to."""
    present, resources, num_actions = np.flatnonzero(agent.initial), game.num_resources, agent.num_actions
    may, must = [], []
    spent: list[Fraction | None] = [Fraction(0)] * game.num_constraints
    for step in range(game.horizon):
        taken = (present[:, None] * num_actions + np.arange(num_actions))[table[step, present] > 0]
        uses = at_step(agent.uses, step)
        counts = np.bincount(_of_rows(uses, taken), minlength=resources)
        may.append(np.flatnonzero(counts) + step * resources)
        must.append(np.flatnonzero(counts == len(taken)) + step * resources)
        if agent.costs is not None:
            costs = agent.costs[:, 0 if agent.costs.shape[1] == 1 else step].reshape(len(spent), -1)[:, taken]
            for j, own in enumerate(costs):
                before = spent[j]
                spent[j] = None if before is None or (own != own[0]).any() else before + Fraction(own[0])
        moves = at_step(agent.transition, step)
        present = np.unique(_of_rows(moves, taken))
    return PossibleUse(np.concatenate(may), np.concatenate(must), tuple(spent))


def _of_rows(matrix: Any, rows: IntArray) -> Any:
    """Return the columns of all positive entries of some rows of a CSR matrix, one row after the other."""
    starts = matrix.indptr[rows]
    lengths = matrix.indptr[rows + 1] - starts
    ends = np.cumsum(lengths)
    entries = np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)
    return matrix.indices[entries[matrix.data[entries] > 0]]


@dataclass(frozen=True, eq=False)
class PossibleLoads:
    """Which loads are possible at a joint policy."""

    game: LocalGame
    uses: tuple[PossibleUse, ...]  # n
    may: IntArray  # [H·E]: how many agents may use each resource
    must: IntArray  # [H·E]: how many do for sure

    @classmethod
    def at(cls, game: LocalGame, policy: Iterable[FloatArray]) -> PossibleLoads:
        """Follow the policies of all agents, one table [H, S, A] after the other."""
        uses = tuple(possible_use(game, agent, table) for agent, table in zip(game.agents, policy, strict=True))
        size = game.horizon * game.num_resources
        may, must = (np.bincount(np.concatenate(each), minlength=size) for each in _columns(uses))
        return cls(game, uses, may, must)

    def replace(self, agent: int, table: FloatArray) -> PossibleLoads:
        """Return the same after one agent has changed its policy."""
        own = possible_use(self.game, self.game.agents[agent], table)
        may, must = self._beside(agent)
        may[own.may] += 1
        must[own.must] += 1
        return PossibleLoads(self.game, (*self.uses[:agent], own, *self.uses[agent + 1 :]), may, must)

    def _beside(self, agent: int) -> tuple[IntArray, IntArray]:
        may, must, own = self.may.copy(), self.must.copy(), self.uses[agent]
        may[own.may] -= 1
        must[own.must] -= 1
        return may, must

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions of one agent no feasible policy can take, or None where a budget is not hard."""
        game, member = self.game, self.game.agents[agent]
        most, least = (each.reshape(game.horizon, -1) for each in self._beside(agent))
        table = game.load_costs[constraint]
        spent = self._spent(agent, constraint, table, (least, most))
        if spent is None:
            return None
        left = Fraction(game.thresholds[constraint]) - spent
        private = None if member.costs is None else drop_broadcast(member.costs[constraint])
        now, (low, high) = at_loads(table, least), _added(table, least, most)
        shape = (game.horizon, member.num_states, member.num_actions)
        after = [Successors.of(matrix) for matrix in _each_step(member)]
        if left == 0 and (low >= now).all() and (private is None or (private >= 0).all()):
            costly = member.charge((high > now).astype(np.float64)) > 0  # all that matters is what is zero
            costly = costly if private is None else costly | (private > 0)
            return Forbidden(np.broadcast_to(costly, shape), after)
        times = (game.horizon + 1) * (member.max_uses + 1) * 2
        whole, unit = whole_multiples(table, *([] if private is None else [private]), times=times)
        if times * max(int(np.abs(each).max()) for each in whole) > EXACT_FLOAT:
            return None
        rises, *own_costs = whole
        now, ends = at_loads(rises, least), _added(rises, least, most)
        costs = [sum(own_costs, member.charge((each - now).astype(np.float64))) for each in ends]
        tables = [np.broadcast_to(each, shape).astype(np.int64) for each in costs]
        return forbidden_actions(
            PossibleCosts(tables[0], tables[1], left * unit), after, member.initial, steps=game.horizon
        )

    def _spent(
        self, agent: int, constraint: int, table: FloatArray, between: tuple[IntArray, IntArray]
    ) -> Fraction | None:
        """Return what the others spend for sure, or None where that depends on chance."""
        private = [use.spent[constraint] for other, use in enumerate(self.uses) if other != agent]
        least, most = between
        # Equal counts of changes at both ends mean that the cost is the same at every load between them.
        changes = np.cumsum(np.diff(table, axis=-1, prepend=table[..., :1]) != 0, axis=-1)
        if None in private or (at_loads(changes, most) != at_loads(changes, least)).any():
            return None
        costs, times = np.unique(at_loads(table, least), return_counts=True)
        loads = sum((Fraction(cost) * int(count) for cost, count in zip(costs, times, strict=True)), Fraction(0))
        return sum((each for each in private if each is not None), loads)


def _columns(uses: Sequence[PossibleUse]) -> tuple[list[IntArray], list[IntArray]]:
    return [use.may for use in uses], [use.must for use in uses]


def _each_step(agent: LocalAgent) -> Sequence[Any]:
    once = distinct(agent.transition)
    return once if len(once) == 1 else agent.transition


def _added(table: Any, least: IntArray, most: IntArray) -> tuple[Any, Any]:
    """Return the least and the greatest entry at one more than a possible load: [H, E] each."""
    if (np.diff(table, axis=-1) >= 0).all():
        return at_loads(table, least + 1), at_loads(table, most + 1)
    low = high = at_loads(table, least + 1)
    for load in range(table.shape[-1] - 1):
        possible = (least <= load) & (load <= most)
        entry = np.broadcast_to(table[..., load + 1], low.shape)
        low = np.where(possible & (entry < low), entry, low)
        high = np.where(possible & (entry > high), entry, high)
    return low, high
