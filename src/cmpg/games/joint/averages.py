"""Averages of tables over what the other agents play: the sums over a_{−i} of Eqs. 7-9.

The agents are split into two halves. For an agent of one half, the table is first averaged over the joint action of the
other half, by one matrix product that reads the table once for all steps; what is left is small, and is averaged over
the rest of the own half one axis at a time. The first average is the same for all agents of a half, so it can be kept
if several agents are queried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import BoolArray, FloatArray, IntArray, at_step
from cmpg.cmdp.mixed_rows import MixedRows, RowLists
from cmpg.deadline import check_time
from cmpg.errors import UnsupportedError
from cmpg.policy import CompactTable, JointPolicy, Stored, are_certain, split_table

BLOCK = 1 << 19
"""Averages of more numbers than this are made for some states after the others, and no half is kept."""


MAX_JOINT_ENTRIES = 50_000_000
"""Tables over joint actions with more entries than this are not written out."""

MAX_AGENTS = 28
"""Arrays have few axes more than this that everything can be done with."""

OTHER_FORMS = "Many agents are a LocalGame, if they meet at resources, or a CountingGame, if only counts matter."


@dataclass(frozen=True, eq=False)
class Others:
    """What the others play, from the point of view of each agent at one joint policy."""

    policy: Sequence[FloatArray]  # [H, S, A_i], one per agent

    @cached_property
    def middle(self) -> int:
        """The first agent of the second half."""
        return _middle([own.shape[2] for own in self.policy])

    def in_first_half(self, agent: int) -> bool:
        """Whether an agent belongs to the first half."""
        return agent < self.middle

    def average(self, table: FloatArray, *, keep: int) -> FloatArray:
        """Average a table [H or 1, S, A_1, …, A_n, …] over every agent's action but one's.

        Returns
        -------
        [H, S, A_keep, …]
            Of a single agent's game, the table itself.
        """
        if len(self.policy) == 1:
            return table
        states = table.shape[1]
        block = max(1, states * BLOCK // max(self.start_size(table, keep=keep), 1))
        if block >= states:
            return self.finish(self.start(table, keep=keep), keep=keep)
        mean = np.empty((len(self.policy[keep]), states, table.shape[2 + keep], *table.shape[2 + len(self.policy) :]))
        self.select(table, keep=keep, out=mean)
        mixed = np.flatnonzero(~self.certain_states(keep))
        for first in range(0, len(mixed), block):
            part = mixed[first : first + block]
            some = Others([own[:, part] for own in self.policy])
            mean[:, part] = some.finish(some.start(table[:, part], keep=keep), keep=keep)
        return mean

    def certain_states(self, keep: int) -> BoolArray:
        """Return where every agent but one has one action for sure, at every step: [S]."""
        others = (own for agent, own in enumerate(self.policy) if agent != keep)
        return np.asarray(np.logical_and.reduce([are_certain(own).all(axis=0) for own in others]))

    def select(self, table: FloatArray, *, keep: int, out: FloatArray) -> None:
        """Copy the entries of the others' first best actions, which are the average if those are certain, to `out`."""
        steps, states, agents = *out.shape[:2], len(self.policy)
        actions = [own.argmax(axis=2)[..., None] for own in self.policy]
        actions[keep] = np.arange(table.shape[2 + keep])
        before = (np.arange(steps)[:, None, None] if len(table) > 1 else 0, np.arange(states)[:, None])
        index = np.ravel_multi_index(np.broadcast_arrays(*before, *actions), table.shape[: 2 + agents])
        trailing = table.shape[2 + agents :]
        # Clipping changes nothing, and lets NumPy write to the answer at once.
        np.take(table.reshape(-1, *trailing), index, axis=0, out=out, mode="clip")

    def start_size(self, table: FloatArray, *, keep: int) -> int:
        """Return how many numbers `start` would return."""
        agents, middle = len(self.policy), self.middle
        half = slice(2, 2 + middle) if self.in_first_half(keep) else slice(2 + middle, 2 + agents)
        return math.prod(
            (len(self.policy[keep]), table.shape[1], *table.shape[half], *table.shape[2 + agents :]), start=1
        )

    def start(self, table: FloatArray, *, keep: int) -> FloatArray:
        """Average over the half to which the kept agent does not belong; all agents of its half share the answer.

        Returns
        -------
        [H, S, actions of the half of `keep`, …]
            The table that `finish` takes.
        """
        check_time()
        agents, middle = len(self.policy), self.middle
        if agents == 1:
            return table
        first, second, trailing = (
            table.shape[2 : 2 + middle],
            table.shape[2 + middle : 2 + agents],
            table.shape[2 + agents :],
        )
        split = table.reshape(*table.shape[:2], math.prod(first), math.prod(second), math.prod(trailing))
        if self.in_first_half(keep):
            mean, kept = _average_second(split, self._second), first
        else:
            mean, kept = _average_first(split, self._first), second
        return mean.reshape(*mean.shape[:2], *kept, *trailing)

    def finish(self, table: FloatArray, *, keep: int) -> FloatArray:
        """Average what `start` left over the other agents of the half of `keep`."""
        if len(self.policy) == 1:
            return table
        half = range(self.middle) if self.in_first_half(keep) else range(self.middle, len(self.policy))
        for agent in (agent for agent in half if agent < keep):
            table = _average_axis(table, self.policy[agent], 2)
        for agent in (agent for agent in half if agent > keep):
            table = _average_axis(table, self.policy[agent], 3)
        return table

    @cached_property
    def _first(self) -> FloatArray:
        return _joint_rows([self.policy[agent] for agent in range(self.middle)])

    @cached_property
    def _second(self) -> FloatArray:
        return _joint_rows([self.policy[agent] for agent in range(self.middle, len(self.policy))])


def average_over(table: FloatArray, policy: JointPolicy, *, keep: int) -> FloatArray:
    """Average one table [H or 1, S, A_1, …, A_n, …] over every agent's action but one's; return [H, S, A_keep, …]."""
    return Others(tuple(policy)).average(table, keep=keep)


def average_roundings(num_actions: Sequence[int], *, sparse: bool = False) -> int:
    """Return how many roundings an average has behind it at most: products of rows, sums over joint actions."""
    if len(num_actions) == 1:
        return 0
    if sparse:  # one sum over all joint actions of the others
        return math.prod(num_actions) // min(num_actions) + len(num_actions)
    middle = _middle(num_actions)
    halves = math.prod(num_actions[:middle]) + math.prod(num_actions[middle:])
    return halves + sum(num_actions) + len(num_actions)


def _middle(num_actions: Sequence[int]) -> int:
    """Return the cut that makes the joint actions of the two halves fewest."""
    cuts = range(1, len(num_actions))
    return min(cuts, key=lambda cut: math.prod(num_actions[:cut]) + math.prod(num_actions[cut:]), default=1)


def _joint_rows(tables: list[FloatArray]) -> FloatArray:
    """Return the probabilities [H, S, ΠA] of the joint actions of some agents."""
    joint = tables[0]
    for table in tables[1:]:
        joint = (joint[..., :, None] * table[..., None, :]).reshape(*joint.shape[:2], -1)
    return joint


def _average_first(table: FloatArray, rows: FloatArray) -> FloatArray:
    """Return Σ_a rows[h, s, a] · table[h, s, a, b, …] for a table [H or 1, S, A, B, T]: [H, S, B, T]."""
    steps, states = table.shape[:2]
    flat = table.reshape(steps, states, table.shape[2], -1)
    mean = np.matmul(_columns(rows, steps), flat)
    return _steps_first(mean).reshape(len(rows), states, *table.shape[3:])


def _average_second(table: FloatArray, rows: FloatArray) -> FloatArray:
    """Return Σ_b rows[h, s, b] · table[h, s, a, b, …] for a table [H or 1, S, A, B, T]: [H, S, A, T]."""
    columns = _columns(rows, len(table))
    if table.shape[-1] == 1:
        mean = np.matmul(table[..., 0], columns.swapaxes(2, 3)).swapaxes(2, 3)[..., None]
    else:
        mean = np.matmul(columns[:, :, None], table).swapaxes(2, 3)
    return _steps_first(mean)


def _columns(rows: FloatArray, steps: int) -> FloatArray:
    """Return rows [H, S, A] as [1, S, H, A] for a table that is the same at every step, else as [H, S, 1, A]."""
    return rows.swapaxes(0, 1)[None] if steps == 1 else rows[:, :, None]


def _steps_first(mean: FloatArray) -> FloatArray:
    """Undo `_columns`: [1, S, H, …] or [H, S, 1, …] becomes [H, S, …]."""
    return np.ascontiguousarray(mean[0].swapaxes(0, 1) if len(mean) == 1 else mean[:, :, 0])


def _average_axis(table: FloatArray, rows: FloatArray, axis: int) -> FloatArray:
    """Return Σ_a rows[h, s, a] · table[h, s, …, a, …], the sum over one axis."""
    before, after = table.shape[2:axis], table.shape[axis + 1 :]
    flat = table.reshape(*table.shape[:2], math.prod(before), table.shape[axis], math.prod(after))
    mean: FloatArray = np.matmul(rows[:, :, None, None, :], flat)[..., 0, :]
    return mean.reshape(*mean.shape[:2], *before, *after)


def played_rows(policy: JointPolicy, *, keep: int | None = None) -> tuple[RowLists, ...]:
    """Return which joint actions are played in each state, as rows of a sparse transition [S·ΠA, S], by step.

    Of the agent that is kept, action 0 is named: its others are so many rows further as its own axis is long.
    """
    steps, states, _ = policy.shapes[0]
    strides = _strides([shape[2] for shape in policy.shapes])
    others = [(_apart(table), strides[i]) for i, table in enumerate(policy.stored) if i != keep]
    first = np.arange(states) * math.prod(shape[2] for shape in policy.shapes)
    one_each, certain = np.arange(states + 1, dtype=np.int32), np.ones(states)
    lists = []
    for step in range(steps):
        check_time()
        rows = first.copy()
        for own, stride in others:
            rows += stride * own.actions[step].astype(np.int64)
        mixed = [np.searchsorted(own.mixed, (step * states, (step + 1) * states)) for own, _ in others]
        if all(begin == end for begin, end in mixed):
            lists.append(RowLists(one_each, rows, certain))
        else:
            lists.append(_mixed_lists(step, first, rows, others, mixed))
    return tuple(lists)


def _strides(num_actions: Sequence[int]) -> list[int]:
    """Return how many joint actions lie between an action of each agent and the next."""
    return [math.prod(num_actions[agent + 1 :]) for agent in range(len(num_actions))]


def _apart(table: Stored) -> CompactTable:
    """Return a table of floats as actions and the rows that mix."""
    return table if isinstance(table, CompactTable) else split_table(table, np.flatnonzero(~are_certain(table)))


def _mixed_lists(
    step: int, first: IntArray, rows: IntArray, others: Sequence[tuple[CompactTable, int]], mixed: Sequence[Any]
) -> RowLists:
    """Return the lists of a step, given the rows [S] where nobody mixes and which of each agent's mixed rows it has."""
    states = len(first)
    own_states = [own.mixed[begin:end] - step * states for (own, _), (begin, end) in zip(others, mixed, strict=True)]
    at = np.unique(np.concatenate(own_states))
    joint, places = np.ones((len(at), 1)), np.zeros(1, dtype=np.int64)
    for (own, stride), states_of, (begin, end) in zip(others, own_states, mixed, strict=True):
        each = np.zeros((len(at), own.num_actions))
        each[np.arange(len(at)), own.actions[step, at]] = 1.0
        each[np.searchsorted(at, states_of)] = own.rows[begin:end]
        joint = (joint[:, :, None] * each[:, None, :]).reshape(len(at), -1)
        places = (places[:, None] + stride * np.arange(own.num_actions)).ravel()
    played = joint > 0  # the rest would leave zeros behind
    played[~played.any(axis=1), 0] = True  # products that are too small for floats leave nothing: no list is empty
    index, which = np.nonzero(played)
    lengths = np.ones(states, dtype=np.int64)
    lengths[at] = played.sum(axis=1)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    among, listed, weights = np.repeat(lengths > 1, lengths), np.repeat(rows, lengths), np.ones(begins[-1])
    among[begins[at]] = True  # of a state that mixes one entry may be left
    listed[among], weights[among] = first[at[index]] + places[which], joint[index, which]
    return RowLists(begins.astype(np.int32), listed, weights)


def by_rows(table: FloatArray, lists: tuple[RowLists, ...], places: IntArray) -> FloatArray:
    """Average a table [H or 1, S, *A] along lists of joint actions; return [H, S, A], of the places [A] in each row."""
    flat = table.reshape(len(table), -1)
    mean = np.empty((len(lists), table.shape[1], len(places)))
    for step, each in enumerate(lists):
        check_time()
        mean[step] = each.average(at_step(flat, step), places)
    return mean


def sparse_average(
    matrices: tuple[sp.csr_array, ...], policy: JointPolicy, *, keep: int
) -> tuple[tuple[sp.csr_array, ...] | MixedRows, Callable[[FloatArray], FloatArray]]:
    """Return a sparse transition [S·ΠA, S] averaged over every agent's action but one's, and how tables are."""
    if len(policy) == 1:
        return matrices, lambda table: table
    actions = [shape[2] for shape in policy.shapes]
    stride, lists = _strides(actions)[keep], played_rows(policy, keep=keep)
    places = stride * np.arange(actions[keep])
    return MixedRows(matrices, lists, actions[keep], stride), lambda table: by_rows(table, lists, places)


def over_others(table: FloatArray, possible: Sequence[BoolArray], *, keep: int) -> tuple[Any, Any]:
    """Return the least and the greatest entry of a table [H or 1, S, *A] over what the others may play.

    Parameters
    ----------
    table : [H or 1, S, A_1, …, A_n]
        Floats or Fractions.
    possible : n tables [H, S, A_i]
        What each agent may play.
    keep
        The agent whose actions are kept.

    Returns
    -------
    [H, S, A_keep]
        Twice.
    """
    low = high = np.broadcast_to(table, (len(possible[0]), *table.shape[1:]))
    for agent in reversed(range(len(possible))):
        if agent == keep:
            continue
        # Actions that are not possible stand for one that is.
        own = possible[agent]
        instead = np.where(own, np.arange(own.shape[2]), own.argmax(axis=2)[..., None])
        indices = np.expand_dims(instead, tuple(axis for axis in range(2, low.ndim) if axis != 2 + agent))
        low, high = (np.take_along_axis(each, indices, axis=2 + agent) for each in (low, high))
        low, high = low.min(axis=2 + agent), high.max(axis=2 + agent)
    return low, high


def possible_moves(transition: Any, possible: Sequence[BoolArray], *, keep: int) -> Sequence[Any]:
    """Return matrices [S·A_keep, S] that are positive where an agent's action can lead, one per step or one for all.

    Parameters
    ----------
    transition : [H or 1, S, *A, S], or CSR matrices [S·ΠA, S]
        Of the game.
    possible : n tables [H, S, A_i]
        What each agent may play.
    keep
        The agent whose actions are kept.
    """
    # Whatever is possible is taken to be as probable as the rest: some probabilities are too small to multiply.
    counted = JointPolicy(tuple(each / each.sum(axis=2, keepdims=True) for each in possible))
    if isinstance(transition, tuple):
        ones = tuple(sp.csr_array(((m.data > 0).astype(np.float64), m.indices, m.indptr), m.shape) for m in transition)
        return list(sparse_average(ones, counted, keep=keep)[0])
    counts = average_over(np.asarray(transition > 0, dtype=np.float64), counted, keep=keep)
    return list(counts.reshape(len(counts), -1, counts.shape[-1]))


def check_agents(count: int) -> None:
    """Raise if there are more agents than tables over joint actions can have axes for."""
    if count > MAX_AGENTS:
        raise UnsupportedError("JointGame", f"has at most {MAX_AGENTS} agents, not {count}", OTHER_FORMS)
