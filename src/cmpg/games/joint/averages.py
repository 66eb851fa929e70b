"""Averages of tables over what the other agents play: the sums over a_{−i} of Eqs. 7-9.

The agents are split into two halves. For an agent of one half, the table is first averaged over the joint action of the
other half, by one matrix product that reads the table once for all steps; what is left is small, and is averaged over
the rest of the own half one axis at a time. The first average is the same for all agents of a half, so it can be kept
if several agents are queried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import BoolArray, FloatArray, at_step
from cmpg.deadline import check_time
from cmpg.errors import UnsupportedError
from cmpg.policy import JointPolicy, are_certain

BLOCK = 1 << 19
"""Averages of more numbers than this are made for some states after the others, and no half is kept."""


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
        place = np.ravel_multi_index(np.broadcast_arrays(*before, *actions), table.shape[: 2 + agents])
        trailing = table.shape[2 + agents :]
        # Clipping changes nothing, and lets NumPy write to the answer at once.
        np.take(table.reshape(-1, *trailing), place, axis=0, out=out, mode="clip")

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


def average_rows(matrices: tuple[sp.csr_array, ...], policy: JointPolicy, *, keep: int) -> tuple[sp.csr_array, ...]:
    """The same average for a sparse transition: matrices [S·ΠA, S] become [S·A_keep, S], one per step."""
    if len(policy) == 1:
        return matrices
    _, states, own = policy.shapes[keep]
    rows = np.arange(matrices[0].shape[0]).reshape(states, *(table.shape[2] for table in policy))
    rows = np.moveaxis(rows, 1 + keep, 1).reshape(states, own, -1)
    others = [table for agent, table in enumerate(policy) if agent != keep]
    averaged = []
    for step in range(len(others[0])):
        check_time()
        at, which, weights = _played([own[step] for own in others])  # the rest would leave zeros behind
        averaged.append(_mixed_rows(at_step(matrices, step), rows[at, :, which], weights, at, states))
    return tuple(averaged)


def chain_of(
    matrices: tuple[sp.csr_array, ...], tables: Sequence[FloatArray], policy: JointPolicy
) -> tuple[tuple[sp.csr_array, ...], FloatArray]:
    """Average a sparse transition and tables [H or 1, S, *A] over all that is played.

    Returns
    -------
    The Markov chain of the policy, [S, S] for each step, and the averages: [tables, H, S].
    """
    steps, states, _ = policy.shapes[0]
    flat = [table.reshape(len(table), states, -1) for table in tables]
    means, chain, own_tables = np.empty((len(tables), steps, states)), [], tuple(policy)
    for step in range(steps):
        check_time()
        at, which, weights = _played([own[step] for own in own_tables])
        rows = at * flat[0].shape[2] + which
        chain.append(_mixed_rows(at_step(matrices, step), rows[:, None], weights, at, states))
        first = np.searchsorted(at, np.arange(states))
        for mean, table in zip(means, flat, strict=True):
            mean[step] = np.add.reduceat(weights * at_step(table, step).ravel()[rows], first)
    return tuple(chain), means


def _played(tables: Sequence[FloatArray]) -> tuple[Any, Any, FloatArray]:
    """Return what is played with positive probability by tables [S, A_i]: states, ascending, joint actions, weights."""
    each = [np.nonzero(table) for table in tables]
    if all(len(at) == len(table) for (at, _), table in zip(each, tables, strict=True)):  # no agent mixes
        which = np.ravel_multi_index([own for _, own in each], [table.shape[1] for table in tables])
        chosen = [table[at, own] for (at, own), table in zip(each, tables, strict=True)]
        return each[0][0], which, np.asarray(np.multiply.reduce(chosen))
    joint = _joint_rows([table[None] for table in tables])[0]
    at, which = np.nonzero(joint)
    return at, which, joint[at, which]


def _mixed_rows(matrix: sp.csr_array, rows: Any, weights: FloatArray, targets: Any, num_targets: int) -> sp.csr_array:
    """Return Σ weights · matrix[rows] by target: rows [m, B] and weights [m] become [targets · B, S]."""
    width = rows.shape[1]
    if len(targets) == num_targets and (weights == 1).all():  # a selection: nothing is multiplied
        return sp.csr_array(matrix[rows.ravel()])
    into = targets[:, None] * width + np.arange(width)
    shape = (num_targets * width, matrix.shape[0])
    mixing = sp.csr_array((np.repeat(weights, width), (into.ravel(), rows.ravel())), shape=shape)
    return sp.csr_array(mixing @ matrix)


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
        places = np.expand_dims(instead, tuple(axis for axis in range(2, low.ndim) if axis != 2 + agent))
        low, high = (np.take_along_axis(each, places, axis=2 + agent) for each in (low, high))
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
        return average_rows(ones, counted, keep=keep)
    counts = average_over(np.asarray(transition > 0, dtype=np.float64), counted, keep=keep)
    return list(counts.reshape(len(counts), -1, counts.shape[-1]))


def check_agents(count: int) -> None:
    """Raise if there are more agents than tables over joint actions can have axes for."""
    if count > MAX_AGENTS:
        raise UnsupportedError("JointGame", f"has at most {MAX_AGENTS} agents, not {count}", OTHER_FORMS)
