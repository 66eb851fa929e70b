"""A sparse transition whose rows are averages of rows of larger matrices, and are not written out.

The CMDP of an agent in a game averages the game's transition over what the others play. Where they play one action for
sure, that is a choice of rows; written out it is one matrix for each step, many times the memory of the game. The
compiled kernels read the rows where they are; everything else gets them written out (`MixedRows.matrices`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, at_step
from cmpg.deadline import check_time


@dataclass(frozen=True, eq=False)
class RowLists:
    """The rows of one step: P(· | s, a) = Σ_i weights[i]·row(rows[i] + a·stride), for begins[s] ≤ i < begins[s + 1]."""

    begins: npt.NDArray[np.int32]  # [S + 1]
    rows: IntArray  # [m]
    weights: FloatArray  # [m]

    def average(self, table: FloatArray, places: IntArray) -> FloatArray:
        """Return the averages [S, A] of a table of numbers by row, given places [A] relative to those in `rows`."""
        found = table.take(self.rows[:, None] + places)
        if len(found) == len(self.begins) - 1 and (self.weights == 1).all():  # a selection: nothing is multiplied
            return found
        found *= self.weights[:, None]
        return np.asarray(np.add.reduceat(found, self.begins[:-1], axis=0))


@dataclass(frozen=True, eq=False)
class MixedRows:
    """The transition out of every step: rows [S·A] that are averages."""

    sources: tuple[sp.csr_array, ...]  # [R, S] each, one per step or one for all
    lists: tuple[RowLists, ...]  # one per step; no list is empty
    num_actions: int  # A
    stride: int  # rows between an action and the next

    def __len__(self) -> int:
        return len(self.lists)

    def __iter__(self) -> Iterator[sp.csr_array]:
        return iter(self.matrices)

    def __getitem__(self, step: int) -> sp.csr_array:
        return self.matrices[step]

    @cached_property
    def matrices(self) -> tuple[sp.csr_array, ...]:
        """The transition written out: matrices [S·A, S], one per step."""
        return tuple(map(self._written, range(len(self.lists))))

    @cached_property
    def longest(self) -> int:
        """The terms of the longest row, as rounding counts them: whether it is written out, or summed where it is."""
        most = max(int(np.diff(each.begins).max()) for each in self.lists)
        length = max(map(longest_row, self.sources))
        return max(most + length - 1, min(most * length, int(self.sources[0].shape[1])))

    def _written(self, step: int) -> sp.csr_array:
        check_time()
        source, lists = at_step(self.sources, step), self.lists[step]
        states, width = len(lists.begins) - 1, self.num_actions
        rows = lists.rows[:, None] + self.stride * np.arange(width)
        if len(rows) == states and (lists.weights == 1).all():
            return sp.csr_array(source[rows.ravel()])
        into = np.repeat(np.arange(states), np.diff(lists.begins))[:, None] * width + np.arange(width)
        mixing = sp.csr_array(
            (np.repeat(lists.weights, width), (into.ravel(), rows.ravel())), shape=(states * width, source.shape[0])
        )
        return sp.csr_array(mixing @ source)


def longest_row(matrix: sp.csr_array) -> int:
    """Return the number of entries of the longest row of a CSR matrix."""
    return int(np.diff(matrix.indptr).max(initial=0))
