"""Which count vectors are alike: by their largest count, or none.

A count vector says how many agents play each action. `LargestCount` looks at the largest count k* alone; `EveryCount`
tells all count vectors apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from cmpg.arrays import IntArray, numbers, to_floats
from cmpg.errors import GameError


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
        # Beyond any number of agents, one boundary is like another.
        whole = np.minimum(np.floor(given), 2.0**62)
        object.__setattr__(self, "boundaries", tuple(int(boundary) for boundary in whole))

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
    """Fill actions with `largest` agents each until none is left."""
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
