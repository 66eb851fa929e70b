"""Games on a shared state as the check sees them: outcomes of a step, and how likely the others make each of them.

In a joint game an outcome is a joint action; in a counting game it is a class of counts. The transition and the costs
depend on the state and the outcome. For agent i, `average` turns a table over outcomes into one over its own actions,
the expectation while the others keep to their policies (Eqs. 7-9 of the paper).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import comb
from typing import Any, Protocol

import numpy as np

from cmpg.proof.claim import Claim, CountingTables, JointTables, at_step
from cmpg.proof.rounding import Array, Ball, Csr, Mixtures, Rows, exactly, rows_of, stacked


class Shared(Protocol):
    """A game on a shared state of S states with O outcomes."""

    initial: Array  # [S]
    moves: list[Rows]  # [S·O, S], one per step or one for all
    mixtures: list[list[Mixtures]]  # [H][n]

    def costs(self, step: int) -> Array:
        """Return what each constraint pays: [k, S, O]."""

    def reward(self, step: int, agent: int) -> Ball:
        """Return the expected reward of an agent, by its own action: [S, A]."""

    def average(self, step: int, agent: int, table: Ball) -> Ball:
        """Return the expectation of a table [S, O, m] by one agent's own action: [S, A, m]."""

    def likely(self, step: int, agent: int) -> Array:
        """Return about how likely each outcome is by one agent's own action: [S, A, O]. It proves nothing."""

    def possible(self, step: int, agent: int) -> Array:
        """Return which outcomes are possible by one agent's own action: [S, A, O]."""


class Joint:
    """A joint game."""

    def __init__(self, claim: Claim, *, support: bool = False) -> None:
        """Read the tables; with `support`, only what is possible."""
        assert isinstance(claim.tables, JointTables)
        self._tables, self._shape = claim.tables, claim.tables.rewards.shape[2:]
        self._outcomes = int(np.prod(self._shape[1:]))
        self.initial, self.moves = claim.tables.initial, rows_of(claim.tables.transition, support=support)
        self.mixtures = mixtures_of(claim, support=support)

    def costs(self, step: int) -> Array:
        """Return what each constraint pays: [k, S, O]."""
        costs = self._tables.costs
        at = costs[:, 0 if costs.shape[1] == 1 else step]
        return at.reshape(len(costs), self._shape[0], self._outcomes)

    def reward(self, step: int, agent: int) -> Ball:
        """Return the expected reward of an agent, by its own action: [S, A]."""
        return self.average(step, agent, exactly(at_step(self._tables.rewards[agent], step))[..., None])[..., 0]

    def average(self, step: int, agent: int, table: Ball) -> Ball:
        """Return the expectation of a table [S, O, m] by one agent's own action: [S, A, m]."""
        full = table.reshape(*self._shape, table.mid.shape[-1])
        axes = [0, *range(1, len(self._shape))]  # the agents whose axes are left, after that of the state
        # Agents that play one action for sure are read first: that is exact, and leaves less to average.
        for other in sorted(range(len(self._shape) - 1), key=lambda j: not self.mixtures[step][j].certain):
            if other != agent:
                axis = axes.index(other + 1)
                full = self.mixtures[step][other].over(full.moveaxis(axis, 1))
                del axes[axis]
        return full

    def likely(self, step: int, agent: int) -> Array:
        """Return about how likely each outcome is by one agent's own action: [S, A, O]."""
        return self._products([each.table for each in self.mixtures[step]], agent)

    def possible(self, step: int, agent: int) -> Array:
        """Return which outcomes are possible by one agent's own action: [S, A, O]."""
        return self._products([each.possible for each in self.mixtures[step]], agent)

    def _products(self, rows: list[Array], agent: int) -> Array:
        states, *actions = self._shape
        result = np.ones((states, 1), dtype=rows[0].dtype)
        for other, table in enumerate(rows):
            if other == agent:
                table = np.ones_like(table)
            result = (result[:, :, None] * table[:, None, :]).reshape(states, -1)
        own = np.indices(actions)[agent].ravel() == np.arange(actions[agent])[:, None]
        return np.asarray(result[:, None, :] * own)


class Counting:
    """A counting game: n agents with the same A actions, and classes of how many play which."""

    def __init__(self, claim: Claim, *, support: bool = False) -> None:
        """Read the tables; with `support`, only what is possible."""
        assert isinstance(claim.tables, CountingTables)
        self._tables = tables = claim.tables
        self._agents, self._actions = len(claim.policy), tables.rewards.shape[2]
        self.initial, self.moves = tables.initial, rows_of(tables.transition, support=support)
        self.mixtures = mixtures_of(claim, support=support)
        self._kept: dict[Any, Any] = {}

    def costs(self, step: int) -> Array:
        """Return what each constraint pays: [k, S, C]."""
        costs = self._tables.costs
        return costs[:, 0 if costs.shape[1] == 1 else step]

    def reward(self, step: int, agent: int) -> Ball:
        """Return the expected reward of an agent, by its own action: [S, A]."""
        tables = self._tables
        by_count = at_step(tables.rewards, step)[..., 1:]
        total = (self._own_counts(step, agent) * exactly(by_count)).sum(axis=-1)
        by_class = at_step(tables.class_rewards, step)
        if by_class.any():
            total = total + (self._classes(step, agent) * exactly(by_class)).sum(axis=-1)
        return total + exactly(at_step(tables.private_rewards[agent], step))

    def average(self, step: int, agent: int, table: Ball) -> Ball:
        """Return the expectation of a table [S, C, m] by one agent's own action: [S, A, m]."""
        classes = self._classes(step, agent)
        return (classes[..., None] * table[:, None]).sum(axis=2)

    def likely(self, step: int, agent: int) -> Array:
        """Return about how likely each class is by one agent's own action: [S, A, C]."""
        return self._classes(step, agent).mid

    def possible(self, step: int, agent: int) -> Array:
        """Return which classes are possible by one agent's own action: [S, A, C]."""
        rows = [each.possible for each in self.mixtures[step]]
        counts = self._counted(rows[:agent] + rows[agent + 1 :], np.zeros_like(rows[0], shape=self._box(len(rows[0]))))
        flat = counts.reshape(len(counts), -1)
        number = self._tables.class_rewards.shape[3]
        return np.stack(
            [[np.bincount(self._labels[a][row], minlength=number) > 0 for a in range(self._actions)] for row in flat]
        )

    def _box(self, states: int) -> tuple[int, ...]:
        """Return the shape of a table over how many others play each action but the last."""
        return (states, *(self._agents,) * (self._actions - 1))

    def _others(self, step: int, agent: int) -> Ball:
        """Return how likely each number of others on each action is: [V, S], flat over the box of counts."""
        mixtures = self.mixtures[step]
        key = (step, mixtures[agent].table.tobytes())
        if key not in self._kept:
            others = [each.ball for i, each in enumerate(mixtures) if i != agent]
            none = np.zeros(self._box(len(mixtures[agent].table)))
            counted = self._counted(others, Ball(none, none.copy()))
            self._kept[key] = counted.reshape(len(none), -1).moveaxis(1, 0)
        found: Ball = self._kept[key]
        return found

    def _counted(self, others: list[Any], none: Any) -> Any:
        """Add agents, whose rows [S, A] are balls or masks, one by one to a table of counts that begins empty."""
        counts = none
        first = (slice(None), *(0,) * (self._actions - 1))
        (counts.mid if isinstance(counts, Ball) else counts)[first] = 1
        ones = (1,) * (self._actions - 1)
        for rows in others:
            total = counts * rows[:, -1].reshape(-1, *ones)
            for a in range(self._actions - 1):
                total = total + _shifted(counts, 1 + a) * rows[:, a].reshape(-1, *ones)
            counts = total
        return counts

    def _own_counts(self, step: int, agent: int) -> Ball:
        """Return how likely it is that so many others play each action: [S, A, n]."""
        others = self._others(step, agent)
        each = [_gathered(self._counts[:, a].clip(0), self._agents).push(others) for a in range(self._actions)]
        return stacked(each).moveaxis(2, 0)  # from [A, n, S]

    def _classes(self, step: int, agent: int) -> Ball:
        """Return how likely each class is by one agent's own action: [S, A, C]."""
        key = (step, self.mixtures[step][agent].table.tobytes(), "classes")
        if key not in self._kept:
            others, number = self._others(step, agent), self._tables.class_rewards.shape[3]
            each = [_gathered(self._labels[a], number).push(others) for a in range(self._actions)]
            self._kept[key] = stacked(each).moveaxis(2, 0)
        found: Ball = self._kept[key]
        return found

    @cached_property
    def _counts(self) -> Array:
        """The counts of all actions at each index of the box: [V, A]; of the last, negative if the others exceed n."""
        box = list(product(range(self._agents), repeat=self._actions - 1))
        first = np.array(box, dtype=np.int64).reshape(len(box), self._actions - 1)
        return np.column_stack([first, self._agents - 1 - first.sum(axis=1)])

    @cached_property
    def _labels(self) -> list[Array]:
        """The class of each index of the box with one more agent on each action: A of [V]."""
        boundaries = self._tables.boundaries
        found = []
        for action in range(self._actions):
            counts = self._counts + (np.arange(self._actions) == action)
            if boundaries is not None:
                labels = (counts.max(axis=1)[:, None] > np.array(boundaries)).sum(axis=1)
            else:
                labels = np.array([0 if min(row) < 0 else class_of(row, None) for row in counts.tolist()])
            found.append(labels)
        return found


def mixtures_of(claim: Claim, *, support: bool) -> list[list[Mixtures]]:
    """Return what each agent plays at each step; with `support`, all that it may play equally often."""
    tables = [(table > 0).astype(np.float64) for table in claim.policy] if support else claim.policy
    return [[Mixtures(table[step]) for table in tables] for step in range(claim.steps)]


def class_of(counts: Sequence[int], boundaries: Sequence[float] | None) -> int:
    """Return the class of a count vector."""
    if boundaries is not None:
        return sum(max(counts) > boundary for boundary in boundaries)
    rank, left = 0, sum(counts)
    for place, count in enumerate(counts[:-1]):
        behind = len(counts) - place - 2  # actions after the next one
        # Vectors before this one that have less here: of those who are left, fewer than `count` are on this action.
        rank += sum(comb(left - fewer + behind, behind) for fewer in range(count))
        left -= count
    return rank


def _gathered(labels: Array, number: int) -> Rows:
    """Return the matrix of zeros and ones that adds up what has the same label."""
    count = len(labels)
    return Rows(Csr(np.arange(count + 1), labels, np.ones(count), number), divided=False)


def _shifted(table: Any, axis: int) -> Any:
    """Return a table of counts with one more on an axis."""
    if isinstance(table, Ball):
        return Ball(_shifted(table.mid, axis), _shifted(table.rad, axis))
    moved = np.zeros_like(table)
    ahead: list[Any] = [slice(None)] * table.ndim
    behind = list(ahead)
    ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
    moved[tuple(ahead)] = table[tuple(behind)]
    return moved
