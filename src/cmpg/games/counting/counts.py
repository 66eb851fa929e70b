"""How many of the others play what: exact distributions of counts, for all agents but one.

Given the state, agents choose independently, so the number of agents on one action is Poisson-binomial and the vector
of all counts is Poisson-multinomial. A `Tally` says what is counted; its table is the distribution of the counts,
built by adding one agent at a time. Only products and sums of non-negative numbers occur, never a difference and never
a deconvolution, so the relative error of every entry is at most its number of roundings (`Tally.roundings`).

"All agents but i" for all i in turn: a table for all agents outside a block of agents is split into those for all
outside each half, by adding the other half. The blocks on the way to agent i are kept, log₂ n of them
(`OthersCounts`); a sweep over all agents adds n·log₂ n times, also if each agent changes its policy when it is met.

Agents who play one action for sure in every row need no table: they shift the counts of the others (`PureAgents`).
Nor do agents who all have the same rows (`AlikeAgents`): their counts are binomial, one action after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.policy import JointPolicy, are_certain

CHUNK = 64
"""Long sums are taken in pieces of at most this many terms, then sums of those: the chain of roundings stays short."""


@dataclass(frozen=True, eq=False)
class Tally:
    """A way to count: G counts of vectors side by side, each with `cells` cells, and one more that is not counted.

    The table of a tally is [R, G, L, …, L], one axis of length L for each cell, for the R rows (pairs of step and
    state) that are counted. A count of L − 1 stands for "L − 1 or more".
    """

    grouping: IntArray  # [A, G, cells + 1]: 1 in the cell in which vector g counts action a; the last is not counted
    length: int  # L
    rows: IntArray  # [R]: which of the H·S pairs of step and state, counted through

    @property
    def num_cells(self) -> int:
        """How many cells are counted in each vector."""
        return int(self.grouping.shape[2]) - 1

    @property
    def table_shape(self) -> tuple[int, ...]:
        """[R, G, L, …, L]."""
        return (len(self.rows), self.grouping.shape[1], *(self.length,) * self.num_cells)

    @property
    def num_entries(self) -> int:
        """How many entries the table has in each row: G·L^cells."""
        return int(np.prod(self.table_shape[1:]))

    def roundings(self, num_agents: int) -> int:
        """Return how many roundings an entry has behind it when all agents but one are added."""
        # Each agent: at most A − 1 to add up the probability of a cell, one product, and two sums for each cell.
        return (num_agents - 1) * (len(self.grouping) + 2 * self.num_cells)

    def empty_table(self, dtype: Any) -> FloatArray:
        """Return the table before any agent is added."""
        table = np.zeros(self.table_shape, dtype=dtype)
        table.reshape(*self.table_shape[:2], -1)[..., 0] = 1
        return table

    def add(self, table: FloatArray, policy: FloatArray, *, scratch: FloatArray) -> FloatArray:
        """Return the table after one more agent, who plays `policy` [H, S, A], is added.

        `scratch`, an array like the table, is overwritten: fresh memory is what large tables would wait for.
        """
        actions, vectors, cells = self.grouping.shape
        rows = policy.reshape(-1, actions)[self.rows]
        probabilities = (rows @ self.grouping.reshape(actions, -1)).reshape(-1, vectors, cells)
        spread = probabilities.reshape(*probabilities.shape[:2], *(1,) * self.num_cells, cells)
        # An agent that plays an action that is not counted leaves the counts as they are.
        result = table * spread[..., -1]
        played = np.asarray(probabilities.any(axis=(0, 1)))
        for cell in np.flatnonzero(played[:-1]).tolist():
            moved = np.multiply(table, spread[..., cell], out=scratch)
            axis = cell + 2
            # One more in this cell; and where the count stands for "L − 1 or more" already, that stays.
            result[_along(axis, slice(1, None))] += moved[_along(axis, slice(None, -1))]
            result[_along(axis, slice(-1, None))] += moved[_along(axis, slice(-1, None))]
        return result

    def counts_with(self, action: int) -> IntArray:
        """Return the counts at every entry, an agent that plays `action` included: [G, L, …, L, cells]."""
        own = self.grouping[action, :, :-1]
        grid = np.moveaxis(np.indices((self.length,) * self.num_cells), 0, -1)
        counts: IntArray = grid[None] + own.reshape(len(own), *(1,) * self.num_cells, self.num_cells)
        return counts


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def own_counts(num_actions: int, num_agents: int, rows: IntArray) -> Tally:
    """Return the tally of how many others play each action, one action at a time."""
    one = np.eye(num_actions, dtype=np.int64)
    return Tally(np.stack([one, 1 - one], axis=-1), num_agents, rows)


def all_counts(num_actions: int, length: int, rows: IntArray) -> Tally:
    """Return the tally of all counts together; that of the last action follows from the others."""
    return Tally(np.eye(num_actions, dtype=np.int64)[:, None], length, rows)


def split_counts(num_actions: int, length: int, rows: IntArray) -> Tally:
    """Return A − 1 tallies side by side: tally b − 1 counts the actions before b together, and b."""
    action, node = np.arange(num_actions)[:, None], np.arange(1, num_actions)[None]
    return Tally(np.stack([action < node, action == node, action > node], axis=-1).astype(np.int64), length, rows)


@dataclass(frozen=True, eq=False)
class PureAgents:
    """Agents who play one action for sure in every row: they only shift the counts. The others are `mixing`."""

    actions: IntArray  # [n, R]: what each pure agent plays; −1 for those who mix
    mixing: tuple[int, ...]  # in ascending order
    counts: IntArray  # [R, A]: of the pure agents

    @classmethod
    def at(cls, policy: JointPolicy, num_actions: int) -> PureAgents:
        """Tell agents apart at a joint policy."""
        actions = np.stack([_certain_actions(table) for table in policy])
        mixing = np.flatnonzero((actions < 0).any(axis=1))
        rest = np.delete(actions, mixing, axis=0)
        counts = (rest[:, :, None] == np.arange(num_actions)).sum(axis=0, dtype=np.int64)
        return cls(actions, tuple(mixing.tolist()), counts)

    def replace(self, agent: int, table: FloatArray) -> PureAgents:
        """Return the same after one agent has changed its policy."""
        actions, counts = self.actions.copy(), self.counts_without(agent)
        actions[agent] = _certain_actions(table)
        mixing = set(self.mixing) - {agent}
        if actions[agent, 0] < 0:
            mixing.add(agent)
        else:
            counts[np.arange(len(counts)), actions[agent]] += 1
        return PureAgents(actions, tuple(sorted(mixing)), counts)

    def mixing_without(self, agent: int) -> tuple[int, ...]:
        """Return all agents who mix, but one."""
        return tuple(other for other in self.mixing if other != agent)

    def counts_without(self, agent: int) -> IntArray:
        """Return the counts of all pure agents but one: [R, A], which the caller may change."""
        counts = self.counts.copy()
        if self.actions[agent, 0] >= 0:
            counts[np.arange(len(counts)), self.actions[agent]] -= 1
        return counts


def _certain_actions(table: FloatArray) -> IntArray:
    """Return the action of each row of a table [H, S, A] that never mixes, or −1 everywhere: [H·S]."""
    rows = table.reshape(-1, table.shape[-1])
    return np.asarray(rows.argmax(axis=1)) if are_certain(rows).all() else np.full(len(rows), -1)


@dataclass(frozen=True, eq=False)
class AlikeAgents:
    """Agents who all have the same rows: a binomial number of them plays the first action, of the rest the next, …."""

    rows: FloatArray  # [R, A]
    count: int  # m

    def own(self) -> FloatArray:
        """Return the distribution of how many play each action: [R, A, m + 1]."""
        others = np.stack([np.delete(self.rows, a, axis=1).sum(axis=1) for a in range(self.rows.shape[1])], axis=1)
        return binomial(self.rows, others, np.array(self.count))

    def largest(self, row: int, shift: IntArray, bounds: IntArray) -> FloatArray:
        """Return how likely the largest count, with others who shift it, lies between neighbouring bounds.

        Parameters
        ----------
        row
            Of the R rows.
        shift : [B, A]
            How many others play each action, in several cases.
        bounds : [C + 1]
            Class c is bounds[c] < k* ≤ bounds[c + 1].

        Returns
        -------
        [B, C]
        """
        left = np.arange(self.count + 1)
        played = left[:, None] - left  # where r agents are left before an action, and t after it
        low, high = bounds[:-1, None, None], bounds[1:, None, None]
        # By whether an action has more than the lower bound yet, and by how many agents are left.
        below = np.zeros((len(shift), len(low), 1, self.count + 1))
        below[..., -1] = 1.0
        above = np.zeros_like(below)
        for action, probability in enumerate(self.rows[row]):
            chances = binomial(probability, np.asarray(self.rows[row, action + 1 :].sum()), left)
            step = np.where(played >= 0, np.take_along_axis(chances, np.abs(played), axis=1), 0.0)
            for case, others in enumerate(shift[:, action].tolist()):
                counts = played + others
                few, many = step * (counts <= low), step * ((counts > low) & (counts <= high))
                # Once an action is above the lower bound, any count up to the upper one keeps the class.
                above[case] = above[case] @ (few + many) + below[case] @ many
                below[case] = below[case] @ few
        return np.asarray(above[..., 0, 0])

    def roundings(self) -> int:
        """Return how many roundings stand behind each of these numbers."""
        # For each action: four in each ratio, one in each sum of a binomial and of the counts, and its probability,
        # which was rounded A times, to the power of m.
        actions = self.rows.shape[1]
        return int(actions * self.count * (2 * actions + 8) + 8)


def binomial(inside: FloatArray, outside: FloatArray, counts: IntArray) -> FloatArray:
    """Return how likely k of `counts` agents are inside, by probabilities in proportion to both: [..., most + 1].

    From the likeliest number on, each entry is a product of ratios; then all are divided by their sum.

    Examples
    --------
    >>> binomial(np.array(0.5), np.array(0.5), np.array([2, 1])).tolist()
    [[0.25, 0.5, 0.25], [0.5, 0.5, 0.0]]
    """
    shape = np.broadcast_shapes(inside.shape, counts.shape)
    inside, outside = np.broadcast_to(inside, shape), np.broadcast_to(outside, shape)
    k, size, both = np.arange(int(counts.max())), np.broadcast_to(counts, shape)[..., None], inside + outside
    likeliest = np.minimum(np.floor((counts + 1) * inside / np.where(both > 0, both, 1.0)), counts)[..., None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = np.where(both > 0, inside / outside, 0.0)[..., None]  # of no agent, any will do
        ratio = np.maximum(size - k, 0) / (k + 1) * odds  # from k to k + 1
        up = np.where(k >= likeliest, np.where(k < size, ratio, 0.0), 1.0)
        down = np.where(k < likeliest, 1.0 / ratio, 1.0)
    ones = np.ones((*shape, 1))
    rise = np.concatenate([ones, np.cumprod(up, axis=-1)], axis=-1)
    fall = np.concatenate([np.cumprod(down[..., ::-1], axis=-1)[..., ::-1], ones], axis=-1)
    # Ratios to the likeliest entry are at most one, so nothing overflows, and no difference is taken anywhere.
    weights = rise * fall
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class OthersCounts:
    """The tables of one tally for all agents but one, at one joint policy."""

    tally: Tally
    policy: JointPolicy
    # One entry, exchanged as a whole: threads that ask at the same time may lose work, and nothing else.
    _known: list[tuple[_Block, ...]] = field(default_factory=lambda: [()])

    def table(self, agent: int) -> FloatArray:
        """Return the distribution of the counts of all agents but one: [R, G, L, …, L]."""
        known = self._known[0]
        path = [known[0] if known else _Block(0, len(self.policy), self.tally.empty_table(self.policy[0].dtype))]
        while path[-1].last - path[-1].first > 1:
            block, depth = path[-1], len(path)
            middle = (block.first + block.last) // 2
            halves = (block.first, middle), (middle, block.last)
            inside, outside = halves if agent < middle else halves[::-1]
            if depth < len(known) and (known[depth].first, known[depth].last) == inside:
                path.append(known[depth])
            else:
                path.append(_Block(*inside, self._with(block.others, range(*outside))))
        self._known[0] = tuple(path)
        return path[-1].others

    def _with(self, table: FloatArray, agents: range) -> FloatArray:
        scratch = np.empty_like(table)
        for agent in agents:
            table = self.tally.add(table, self.policy[agent], scratch=scratch)
        return table

    def replace(self, agent: int, policy: JointPolicy) -> OthersCounts:
        """Return the same for a policy in which only one agent has changed; blocks that contain it are kept."""
        kept = tuple(block for block in self._known[0] if block.first <= agent < block.last)
        return OthersCounts(self.tally, policy, [kept])


@dataclass(frozen=True, eq=False)
class _Block:
    """Agents first..last − 1, and the table of all others."""

    first: int
    last: int
    others: FloatArray


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of entries of a flat table, each over its own set of them."""

    entries: IntArray  # [m]: of the table
    targets: IntArray  # [m]: the sum to which that entry belongs, in ascending order
    num_entries: int
    num_targets: int

    @classmethod
    def by_label(cls, labels: IntArray, num_targets: int) -> Sums:
        """Return the sums over the entries of each label; an entry may have several labels, and −1 is none.

        Parameters
        ----------
        labels : [number of labels, number of entries]
            The targets of each entry.
        num_targets
            How many sums there are.
        """
        which, indices = np.nonzero(labels >= 0)
        targets = labels[which, indices]
        order = np.argsort(targets, kind="stable")
        return cls(indices[order], targets[order], labels.shape[1], num_targets)

    def __call__(self, table: FloatArray) -> FloatArray:
        """Return the sums over a table [R, entries]: [R, targets]."""
        sums = table.T
        for level in self._levels:
            sums = level @ sums
        return np.asarray(sums).T

    @cached_property
    def roundings(self) -> int:
        """How many roundings the longest chain of sums has."""
        return sum(int(np.diff(level.indptr).max(initial=0)) for level in self._levels)

    @cached_property
    def _levels(self) -> tuple[sp.csr_array, ...]:
        """Matrices of zeros and ones with at most CHUNK ones in a row, whose product takes the sums."""
        levels = []
        columns, targets, width = self.entries, self.targets, self.num_entries
        while True:
            starts = np.searchsorted(targets, targets, side="left")
            pieces = (np.arange(len(targets)) - starts) // CHUNK
            done = not pieces.any()
            new = np.concatenate([[True], (np.diff(targets) != 0) | (np.diff(pieces) != 0)])[: len(targets)]
            rows = targets if done else np.cumsum(new) - 1
            height = self.num_targets if done else int(new.sum())
            levels.append(sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(height, width)))
            if done:
                return tuple(levels)
            columns, targets, width = np.arange(height), targets[new], height
