"""Classes of joint actions by their counts, and how likely each class is.

In a counting game, transitions and costs see a joint action only through its class, a function of the counts k_a of
agents on each action. `LargestCount` looks at the largest count k* alone; `EveryCount` tells all count vectors apart.

What has to be counted, for boundaries b of k* (`Census`):

- b ≥ n/2: at most one action can have more than b agents, so P(k* > b) = Σ_a P(k_a > b), tails of single counts. And
  k* ≤ b means that, adding the actions up one after the other, the first sum that exceeds b is that of two parts
  which do not: P(k* ≤ b) = Σ_{c ≥ 1} P(k_0 + … + k_{c−1} ≤ b, k_c ≤ b, together > b), counts of two cells. Nothing is
  subtracted from one.
- b < n/2: the counts of all actions together, up to b (or up to the first boundary above n/2, where the class between
  the two is asked for).

Boundaries at which nothing changes in some state, or which no joint action can lie on both sides of, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray, numbers, to_floats
from cmpg.errors import GameError
from cmpg.games.counting.counts import OthersCounts, Sums, Tally, all_counts, own_counts, split_counts
from cmpg.policy import JointPolicy

BoolArray = npt.NDArray[np.bool_]

FEW_ENTRIES = 8_192

MAX_ENTRIES = 10_000_000
"""Tables of counts with more entries than this are refused."""


@dataclass(frozen=True)
class LargestCount:
    """Class j: the largest count k* has boundaries[j − 1] < k* ≤ boundaries[j].

    Boundaries need not be whole numbers: k* ≤ 2.5 means k* ≤ 2. A class may be empty.

    Examples
    --------
    >>> LargestCount((2, 4)).of(np.array([[2, 2, 2, 2], [4, 4, 0, 0], [8, 0, 0, 0]]))
    array([0, 1, 2])
    """

    boundaries: tuple[float, ...]  # kept as whole numbers

    def __post_init__(self) -> None:
        given = to_floats(numbers("boundaries", self.boundaries))
        if given.ndim != 1 or (np.diff(given) < 0).any() or (given < 0).any():
            raise GameError(f"boundaries is {self.boundaries}; numbers of at least 0 in ascending order are required.")
        object.__setattr__(self, "boundaries", tuple(int(boundary) for boundary in np.floor(given)))

    def number(self, num_agents: int, num_actions: int) -> int:  # noqa: ARG002
        """Return how many classes there are."""
        return len(self.boundaries) + 1

    def of(self, counts: IntArray) -> IntArray:
        """Return the class of each count vector [..., A]."""
        boundaries = np.array(self.boundaries, dtype=np.int64)
        return np.asarray(np.searchsorted(boundaries, counts.max(axis=-1), side="left"), dtype=np.int64)

    def samples(self, num_agents: int, num_actions: int) -> IntArray:
        """Return one count vector of each class that is not empty: [classes that occur, A]."""
        least = -(-num_agents // num_actions)
        lowest = {int(self.of(np.array([m]))): m for m in range(num_agents, least - 1, -1)}
        vectors = [_filled(lowest[label], num_agents, num_actions) for label in sorted(lowest)]
        return np.array(vectors, dtype=np.int64)


def _filled(largest: int, num_agents: int, num_actions: int) -> list[int]:
    """Fill actions with `largest` agents each until nobody is left."""
    return [min(largest, max(num_agents - action * largest, 0)) for action in range(num_actions)]


@dataclass(frozen=True)
class EveryCount:
    """Every count vector is a class of its own, in lexicographic order; for few agents and actions.

    Examples
    --------
    >>> EveryCount().samples(2, 2)
    array([[0, 2],
           [1, 1],
           [2, 0]])
    """

    def number(self, num_agents: int, num_actions: int) -> int:
        """Return how many classes there are."""
        return comb(num_agents + num_actions - 1, num_actions - 1)

    def of(self, counts: IntArray) -> IntArray:
        """Return the class of each count vector [..., A]: the number of vectors with the same sum before it."""
        rank = np.zeros(counts.shape[:-1], dtype=np.int64)
        actions = counts.shape[-1]
        left = counts.sum(axis=-1)
        for action in range(actions - 1):
            ahead = counts[..., action + 1 :].sum(axis=-1)
            behind = actions - action - 1
            # Vectors with a smaller count here: those of `left` on the actions from here on, less those of `ahead`.
            table = np.array([comb(total + behind, behind) for total in range(int(left.max(initial=0)) + 1)])
            rank += table[left] - table[ahead]
            left = ahead
        return rank

    def samples(self, num_agents: int, num_actions: int) -> IntArray:
        """Return all count vectors: [classes, A]."""
        bars = list(combinations(range(num_agents + num_actions - 1), num_actions - 1))
        places = np.array(bars, dtype=np.int64).reshape(len(bars), num_actions - 1)
        ends = np.pad(places, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, num_agents + num_actions - 1)))
        vectors: IntArray = np.diff(ends, axis=1) - 1
        return vectors


CountClasses = LargestCount | EveryCount


@dataclass(frozen=True, eq=False)
class Part:
    """Sums over the table of one tally, which are the chances of some classes in some rows."""

    tally: int  # which of the census
    places: IntArray  # the rows of the tally's table
    rows: IntArray  # the rows of the game that they belong to
    sums: Sums  # from the places of the table to (own action, class)


@dataclass(frozen=True, eq=False)
class Census:
    """What is counted in a game, and how the chances of its classes follow; row h·S + s is state s at step h."""

    tallies: tuple[Tally, ...]  # the first counts single actions in all rows
    parts: tuple[Part, ...]
    shape: tuple[int, int, int]  # rows, A, classes
    certain: IntArray  # the rows in which all classes are alike
    certain_class: int  # a class that occurs, to which they are given

    @property
    def entries(self) -> int:
        """How many entries the tables have."""
        return sum(int(np.prod(tally.table_shape)) for tally in self.tallies)

    def roundings(self, num_agents: int) -> int:
        """Return how many roundings the chance of a class, and of a count, has behind it."""
        sums = max((part.sums.roundings for part in self.parts), default=0)
        return max(tally.roundings(num_agents) for tally in self.tallies) + sums


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of everybody but one agent, at one joint policy."""

    census: Census
    others: tuple[OthersCounts, ...]

    @classmethod
    def at(cls, census: Census, policy: JointPolicy) -> Counts:
        """Return the counts at a joint policy; nothing is computed yet."""
        return cls(census, tuple(OthersCounts(tally, policy) for tally in census.tallies))

    def replace(self, agent: int, policy: JointPolicy) -> Counts:
        """Return the counts at a policy in which only one agent has changed."""
        return Counts(self.census, tuple(each.replace(agent, policy) for each in self.others))

    def of_actions(self, agent: int) -> FloatArray:
        """Return how likely it is that m others play action a: [rows, A, n]."""
        return self.others[0].table(agent)

    def of_classes(self, agent: int) -> FloatArray:
        """Return how likely each class is if the agent plays action a: [rows, A, classes]."""
        tables = [each.table(agent) for each in self.others]
        chances = np.zeros(self.census.shape, dtype=tables[0].dtype)
        chances[self.census.certain, :, self.census.certain_class] = 1
        for part in self.census.parts:
            table = tables[part.tally]
            sums = part.sums(table.reshape(len(table), -1)[part.places])
            chances[part.rows] += sums.reshape(-1, *self.census.shape[1:])
        return chances


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
    rows = np.arange(len(matters))
    own = own_counts(num_actions, num_agents, rows)
    shape = (len(rows), num_actions, classes.number(num_agents, num_actions))
    if isinstance(classes, EveryCount):
        tally = _checked(all_counts(num_actions, num_agents, rows))
        part = Part(1, rows, rows, _sums_of_all(tally, classes, num_agents, largest=num_agents, shape=shape))
        return Census((own, tally), (part,), shape, rows[:0], 0)
    need = _Need.of(classes, num_agents, num_actions=num_actions, matters=matters)
    tallies, parts = [own], []
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
    certain = np.setdiff1d(rows, np.concatenate([need.tails, need.boxes]))
    return Census(tuple(tallies), tuple(parts), shape, certain, int(classes.of(np.array([num_agents]))))


@dataclass(frozen=True, eq=False)
class _Need:
    """Which rows need which counts, for boundaries of the largest count."""

    tails: IntArray  # rows in which only boundaries ≥ n/2 matter, and counting all together would be dearer
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
    """Each place of the table of all counts belongs to the class of its counts, if that has k* ≤ largest."""
    _, actions, num_classes = shape
    labels = []
    for action in range(actions):
        counted = tally.counts_with(action).reshape(tally.num_places, actions - 1)
        last = num_agents - counted.sum(axis=1, keepdims=True)
        counts = np.concatenate([counted, np.maximum(last, 0)], axis=1)
        possible = (last[:, 0] >= 0) & (counts.max(axis=1) <= largest)
        label = np.full(len(counts), -1)
        label[possible] = action * num_classes + classes.of(counts[possible])
        labels.append(label)
    return Sums.by_label(np.stack(labels), actions * num_classes)


def _sums_below(tally: Tally, need: _Need, shape: tuple[int, int, int]) -> Sums:
    """The places at which two parts of the agents do not exceed the boundary, and their sum does: k* is at most it."""
    _, actions, num_classes = shape
    labels = []
    for action in range(actions):
        counts = tally.counts_with(action).reshape(-1, 2)
        first = (counts.max(axis=1) <= need.half_boundary) & (counts.sum(axis=1) > need.half_boundary)
        labels.append(np.where(first, action * num_classes + need.half, -1))
    return Sums.by_label(np.stack(labels), actions * num_classes)


def _sums_above(own: Tally, classes: LargestCount, need: _Need, shape: tuple[int, int, int]) -> Sums:
    """The places at which a single count exceeds the boundary that only one can: it is k*."""
    _, actions, num_classes = shape
    labels = []
    for action in range(actions):
        counts = own.counts_with(action).reshape(-1, 1)
        label: Any = action * num_classes + classes.of(counts)
        labels.append(np.where(counts[:, 0] > need.half_boundary, label, -1))
    return Sums.by_label(np.stack(labels), actions * num_classes)
