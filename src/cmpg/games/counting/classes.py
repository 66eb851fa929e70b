"""Classes of joint actions by their counts, and how likely each class is.

In a counting game, transitions and costs see a joint action only through its class, a function of the counts k_a of
agents on each action (vectors.py). Where few agents mix, or all who mix have the same rows, how likely a class is
needs no large table (`Counts`). What has to be counted otherwise, for boundaries b of k* (`Census`):

- b ≥ n/2: at most one action can have more than b agents, so P(k* > b) = Σ_a P(k_a > b), tails of single counts. And
  k* ≤ b means that, adding the actions up one after the other, the first sum that exceeds b is that of two parts
  which do not: P(k* ≤ b) = Σ_{c ≥ 1} P(k_0 + … + k_{c−1} ≤ b, k_c ≤ b, together > b), counts of two cells. Nothing is
  subtracted from one.
- b < n/2: the counts of all actions together, up to b (or up to the first boundary above n/2, where the class between
  the two is needed).

Boundaries at which nothing changes in some state, or which no joint action can lie on both sides of, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import GameError
from cmpg.games.counting.counts import (
    AlikeAgents,
    OthersCounts,
    PureAgents,
    Sums,
    Tally,
    all_counts,
    own_counts,
    split_counts,
)
from cmpg.games.counting.vectors import CountClasses, EveryCount, LargestCount
from cmpg.policy import JointPolicy

BoolArray = npt.NDArray[np.bool_]

FEW_ENTRIES = 8_192
"""Tables of counts with at most this many entries are quicker than any other way to count."""

MANY = 8
"""If more agents than this mix, their counts are not shifted but counted with those of all others."""

MAX_ENTRIES = 10_000_000
"""Tables of counts with more entries than this are refused."""


@dataclass(frozen=True, eq=False)
class Part:
    """Sums over the table of one tally, which are the probabilities of some classes in some rows."""

    tally: int  # which of the census
    entries: IntArray  # the rows of the tally's table
    rows: IntArray  # the rows of the game that they belong to
    sums: Sums  # from the entries of the table to (own action, class)


@dataclass(frozen=True, eq=False)
class Census:
    """What is counted in a game, and how the probabilities of its classes follow; row h·S + s is state s at step h.

    Tallies and parts are for agents who mix, and are decided upon when they are needed: their tables can grow like n³.
    """

    classes: CountClasses
    num_agents: int  # n
    shape: tuple[int, int, int]  # rows, A, classes
    matters: BoolArray  # [rows, classes − 1]

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """What is counted; the first tally counts single actions in all rows."""
        return self._plan[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """How the probabilities of classes are sums over the tables of the tallies."""
        return self._plan[1]

    @cached_property
    def certain(self) -> IntArray:
        """The rows in which all classes are alike."""
        rows = np.arange(self.shape[0])
        if isinstance(self.classes, EveryCount):
            return rows[:0]
        return np.setdiff1d(rows, np.concatenate([self._need.tails, self._need.boxes]))

    @cached_property
    def certain_class(self) -> int:
        """A class that occurs, to which those rows are given."""
        return 0 if isinstance(self.classes, EveryCount) else int(self.classes.of(np.array([self.num_agents])))

    @cached_property
    def roundings(self) -> int:
        """How many roundings the probability of a class, and of a count, has behind it if all agents mix."""
        sums = max((part.sums.roundings for part in self.parts), default=0)
        return max(tally.roundings(self.num_agents) for tally in self.tallies) + sums

    @cached_property
    def _need(self) -> _Need:
        assert isinstance(self.classes, LargestCount)
        return _Need.of(self.classes, self.num_agents, num_actions=self.shape[1], matters=self.matters)

    @cached_property
    def _plan(self) -> tuple[tuple[Tally, ...], tuple[Part, ...]]:
        classes, num_agents, shape = self.classes, self.num_agents, self.shape
        num_actions, rows = shape[1], np.arange(shape[0])
        own = own_counts(num_actions, num_agents, rows)
        if isinstance(classes, EveryCount):
            tally = _checked(all_counts(num_actions, num_agents, rows))
            sums = _sums_of_all(tally, classes, num_agents, largest=num_agents, shape=shape)
            return (own, tally), (Part(1, rows, rows, sums),)
        need, tallies, parts = self._need, [own], []
        if len(need.tails):
            tally = split_counts(num_actions, need.half_boundary + 2, need.tails)
            parts.append(Part(len(tallies), np.arange(len(need.tails)), need.tails, _sums_below(tally, need, shape)))
            tallies.append(tally)
        if len(need.boxes):
            tally = _checked(all_counts(num_actions, need.box_boundary + 2, need.boxes))
            largest = need.box_boundary if need.tails_above else num_agents
            sums = _sums_of_all(tally, classes, num_agents, largest=largest, shape=shape)
            parts.append(Part(len(tallies), np.arange(len(need.boxes)), need.boxes, sums))
            tallies.append(tally)
        above = np.concatenate([need.tails, need.boxes]) if need.tails_above else need.tails
        if len(above):
            parts.append(Part(0, above, above, _sums_above(own, classes, need, shape)))
        return tuple(tallies), tuple(parts)


def take_census(classes: CountClasses, num_agents: int, *, num_actions: int, matters: BoolArray) -> Census:
    """Decide what has to be counted.

    Parameters
    ----------
    classes
        The classes of the game.
    num_agents
        n.
    num_actions
        A.
    matters : [rows, classes − 1]
        Whether, in that row of step and state, anything differs between class j and class j + 1.
    """
    return Census(classes, num_agents, (len(matters), num_actions, classes.number(num_agents, num_actions)), matters)


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of all agents but one, at one joint policy.

    Agents who never mix only shift the counts of the others. While few others mix, their counts are a small table, and
    an entry of it, shifted, has one class for each own action; else the tables of the census are needed.
    """

    census: Census
    policy: JointPolicy
    pure: PureAgents
    # The tables of all agents who mix, in a cell that is filled when they are needed.
    _others: list[tuple[OthersCounts, ...] | None]

    @classmethod
    def at(cls, census: Census, policy: JointPolicy) -> Counts:
        """Return the counts at a joint policy; no table is computed yet."""
        counts = cls(census, policy, PureAgents.at(policy, census.shape[1]), [None])
        mixing = counts.pure.mixing
        few = counts._are_few(mixing[1:])
        if not few and (not mixing or counts._alike(mixing[0], mixing[1:]) is None):
            # Whichever agent is queried, tables are needed; if they are too large, that is said here.
            assert census.tallies
        return counts

    def replace(self, agent: int, policy: JointPolicy) -> Counts:
        """Return the counts at a policy in which only one agent has changed."""
        known = self._others[0]
        others = None if known is None else tuple(each.replace(agent, policy) for each in known)
        return Counts(self.census, policy, self.pure.replace(agent, policy[agent]), [others])

    def roundings(self, agent: int) -> int:
        """Return how many roundings the probability of a class, or of a count, has behind it."""
        mixing = self.pure.mixing_without(agent)
        if not self._are_few(mixing):
            alike = self._alike(agent, mixing)
            return self.census.roundings if alike is None else alike.roundings()
        tally = self._small_tally(mixing)
        # Each entry is added to the class that it belongs to.
        return tally.roundings(len(mixing) + 1) + tally.num_entries

    def expected(self, rewards: FloatArray, agent: int) -> FloatArray:
        """Return E[rewards[h, s, a, 1 + N]] with N others on action a, for rewards [H or 1, S, A, n + 1]: [H, S, A]."""
        steps, states, actions = self.policy.stored[agent].shape
        mixing = self.pure.mixing_without(agent)
        if self._are_few(mixing):
            tally = own_counts(actions, len(mixing) + 1, np.arange(steps * states))
            few = self._counted(tally, mixing).reshape(steps, states, actions, -1)
        elif (alike := self._alike(agent, mixing)) is not None:
            few = alike.own().reshape(steps, states, actions, -1)
        else:
            others = self._tables(agent)[0].reshape(steps, states, actions, self.census.num_agents)
            return np.asarray((others * rewards[..., 1:]).sum(axis=-1))
        shift = self.pure.counts_without(agent).reshape(steps, states, actions, 1)
        by_count = np.broadcast_to(rewards, (steps, *rewards.shape[1:]))
        met = np.take_along_axis(by_count, 1 + shift + np.arange(few.shape[-1]), axis=-1)
        return np.asarray((few * met).sum(axis=-1))

    def of_classes(self, agent: int) -> FloatArray:
        """Return how likely each class is if the agent plays action a: [rows, A, classes]."""
        mixing = self.pure.mixing_without(agent)
        if self._are_few(mixing):
            return self._shifted(agent, mixing)
        alike = self._alike(agent, mixing)
        return self._summed(agent) if alike is None else self._by_binomials(agent, alike)

    def _alike(self, agent: int, mixing: tuple[int, ...]) -> AlikeAgents | None:
        """Return those who mix, if all have the same rows, and classes are those of the largest count; else None."""
        entries = self.census.shape[2] * (len(mixing) + 1) ** 2
        if len(mixing) <= MANY or entries > MAX_ENTRIES or not isinstance(self.census.classes, LargestCount):
            return None
        whose, known = self._same[0]
        if whose != agent:
            first = self.policy[mixing[0]]
            same = first.dtype != object and all(np.array_equal(self.policy[other], first) for other in mixing[1:])
            known = AlikeAgents(first.reshape(-1, first.shape[-1]), len(mixing)) if same else None
            self._same[0] = (agent, known)
        return known

    def _by_binomials(self, agent: int, alike: AlikeAgents) -> FloatArray:
        assert isinstance(self.census.classes, LargestCount)
        rows, actions, _ = self.census.shape
        shift = self.pure.counts_without(agent)[:, None] + np.eye(actions, dtype=np.int64)
        limits = [min(int(bound), self.census.num_agents) for bound in self.census.classes.boundaries]
        bounds = np.array([-1, *limits, self.census.num_agents])
        key = (alike.count, alike.rows.tobytes(), shift.tobytes())
        if self._classes_of[0][0] != key:
            result = np.zeros(self.census.shape)
            result[self.census.certain, :, self.census.certain_class] = 1
            for row in np.setdiff1d(np.arange(rows), self.census.certain).tolist():
                result[row] = alike.largest(row, shift[row], bounds)
            self._classes_of[0] = (key, result)
        return self._classes_of[0][1]

    @cached_property
    def _same(self) -> list[tuple[int, AlikeAgents | None]]:
        # One cell that is replaced whole, so that threads may share it.
        return [(-1, None)]

    @cached_property
    def _classes_of(self) -> list[tuple[Any, FloatArray]]:
        return [(None, np.zeros(0))]

    def _are_few(self, mixing: tuple[int, ...]) -> bool:
        rows, actions, _ = self.census.shape
        return len(mixing) <= MANY and rows * float(len(mixing) + 1) ** (actions - 1) <= FEW_ENTRIES

    def _small_tally(self, mixing: tuple[int, ...]) -> Tally:
        rows, actions, _ = self.census.shape
        return all_counts(actions, len(mixing) + 1, np.arange(rows))

    def _counted(self, tally: Tally, mixing: tuple[int, ...]) -> FloatArray:
        """Return the distribution of the counts of a few agents, the entries of each row in one axis: [rows, …]."""
        table = tally.empty_table(self.policy[0].dtype)
        for other in mixing:
            table = tally.add(table, self.policy[other], scratch=np.empty_like(table))
        return table.reshape(len(table), -1)

    def _shifted(self, agent: int, mixing: tuple[int, ...]) -> FloatArray:
        rows, actions, num_classes = self.census.shape
        tally = self._small_tally(mixing)
        probabilities = self._counted(tally, mixing)
        counted = np.indices((tally.length,) * tally.num_cells).reshape(tally.num_cells, tally.num_entries).T
        last = len(mixing) - counted.sum(axis=1, keepdims=True)
        # Places with more agents than there are have no probability, and any class.
        small = np.concatenate([counted, np.maximum(last, 0)], axis=1)[(last >= 0)[:, 0]]
        probabilities = probabilities[:, (last >= 0)[:, 0]]
        shift = self.pure.counts_without(agent)[:, None] + np.eye(actions, dtype=np.int64)
        # Pure agents only shift the counts of those who mix: one class for each entry of the small table.
        labels = self.census.classes.of(shift[:, :, None] + small)  # [rows, A, entries]
        labels[self.census.certain] = self.census.certain_class
        result = np.zeros((rows * actions, num_classes), dtype=probabilities.dtype)
        spread = np.broadcast_to(probabilities[:, None], labels.shape).reshape(rows * actions, -1)
        np.add.at(result, (np.arange(rows * actions)[:, None], labels.reshape(rows * actions, -1)), spread)
        return result.reshape(self.census.shape)

    def _tables(self, agent: int) -> list[FloatArray]:
        others = self._others[0]
        if others is None:
            others = self._others[0] = tuple(OthersCounts(tally, self.policy) for tally in self.census.tallies)
        return [each.table(agent) for each in others]

    def _summed(self, agent: int) -> FloatArray:
        tables = self._tables(agent)
        result = np.zeros(self.census.shape, dtype=tables[0].dtype)
        result[self.census.certain, :, self.census.certain_class] = 1
        for part in self.census.parts:
            table = tables[part.tally]
            sums = part.sums(table.reshape(len(table), -1)[part.entries])
            result[part.rows] += sums.reshape(-1, *self.census.shape[1:])
        return result


@dataclass(frozen=True, eq=False)
class _Need:
    """Which rows need which counts, for boundaries of the largest count."""

    tails: IntArray  # rows in which only boundaries ≥ n/2 matter, and counting all together would cost more
    boxes: IntArray  # rows in which all counts are needed together
    half: int  # the first boundary that at most one action can exceed
    half_boundary: int
    box_boundary: int  # up to where all counts are needed
    tails_above: bool  # whether classes above it are found by tails in those rows too

    @classmethod
    def of(cls, classes: LargestCount, num_agents: int, *, num_actions: int, matters: BoolArray) -> _Need:
        boundaries = np.array(classes.boundaries, dtype=np.int64)
        splits = (boundaries >= -(-num_agents // num_actions)) & (boundaries < num_agents)
        used = matters & splits
        half = int(np.searchsorted(2 * (boundaries + 1), num_agents, side="right"))
        counted = used.any(axis=1)
        half_boundary = int(boundaries[half]) if half < len(boundaries) else num_agents
        # With three actions or fewer, all counts together are no more than the pairs of counts of the tails; and
        # where they are few, one table is quicker than two.
        few = num_actions <= 3 or counted.sum() * float(half_boundary + 2) ** (num_actions - 1) <= FEW_ENTRIES
        boxed = counted if few else used[:, :half].any(axis=1)
        tails_above = bool(used[boxed, half + 1 :].any())
        below = np.flatnonzero(used[boxed].any(axis=0)) if boxed.any() else np.zeros(0, dtype=np.int64)
        top = half if tails_above else int(below.max(initial=0))
        return cls(
            tails=np.flatnonzero(counted & ~boxed),
            boxes=np.flatnonzero(boxed),
            half=half,
            half_boundary=half_boundary,
            box_boundary=int(boundaries[top]) if len(boundaries) else 0,
            tails_above=tails_above,
        )


def _checked(tally: Tally) -> Tally:
    entries = int(np.prod([float(length) for length in tally.table_shape]))
    if entries > MAX_ENTRIES:
        raise GameError(
            f"the counts of {len(tally.grouping)} actions up to {tally.length - 1}, in {len(tally.rows)} pairs of step "
            f"and state, are {entries:.3g} numbers; at most {MAX_ENTRIES:.3g} are kept. Use fewer actions, or "
            "boundaries of the largest count of at least half the agents."
        )
    return tally


def _sums_of_all(
    tally: Tally, classes: CountClasses, num_agents: int, *, largest: int, shape: tuple[int, int, int]
) -> Sums:
    """Each entry of the table of all counts belongs to the class of its counts, if that has k* ≤ largest."""
    _, actions, num_classes = shape
    labels = []
    for action in range(actions):
        counted = tally.counts_with(action).reshape(tally.num_entries, actions - 1)
        last = num_agents - counted.sum(axis=1, keepdims=True)
        counts = np.concatenate([counted, np.maximum(last, 0)], axis=1)
        possible = (last[:, 0] >= 0) & (counts.max(axis=1) <= largest)
        label = np.full(len(counts), -1)
        label[possible] = action * num_classes + classes.of(counts[possible])
        labels.append(label)
    return Sums.by_label(np.stack(labels), actions * num_classes)


def _sums_below(tally: Tally, need: _Need, shape: tuple[int, int, int]) -> Sums:
    """The entries at which two parts of the agents do not exceed the boundary, and their sum does: k* is at most it."""
    _, actions, num_classes = shape
    labels = []
    for action in range(actions):
        counts = tally.counts_with(action).reshape(-1, 2)
        first = (counts.max(axis=1) <= need.half_boundary) & (counts.sum(axis=1) > need.half_boundary)
        labels.append(np.where(first, action * num_classes + need.half, -1))
    return Sums.by_label(np.stack(labels), actions * num_classes)


def _sums_above(own: Tally, classes: LargestCount, need: _Need, shape: tuple[int, int, int]) -> Sums:
    """The entries at which a single count exceeds the boundary that only one can: it is k*."""
    _, actions, num_classes = shape
    labels = []
    for action in range(actions):
        counts = own.counts_with(action).reshape(-1, 1)
        label: Any = action * num_classes + classes.of(counts)
        labels.append(np.where(counts[:, 0] > need.half_boundary, label, -1))
    return Sums.by_label(np.stack(labels), actions * num_classes)
