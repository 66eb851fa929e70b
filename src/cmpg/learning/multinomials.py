"""Many draws at once: counts that are split at random, by rows of probabilities, have the law of single draws.

N draws from one row are one multinomial draw, so the work does not grow with N. Episodes that agree so far are a group,
and groups are split in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.learning.samples import Totals

FEW = 4
"""Groups of at most this many episodes are drawn from one by one."""

CHUNK = 4_000_000
"""Tables of probabilities have at most about this many entries at a time."""


def spread(counts: IntArray, rows: Any, *, rng: np.random.Generator) -> IntArray:
    """Split each count at random by its row of probabilities, sparse or not: counts [R], rows [R, m] give [R, m]."""
    drawn = np.zeros(rows.shape, dtype=np.int64)
    tried = np.flatnonzero(counts)
    if len(tried) == 0:
        return drawn
    # Averages of rows can round to just above one, which multinomial refuses. What rounding leaves over falls to the
    # last category: let that be the likeliest one, never an impossible one.
    probabilities, lines = np.minimum(dense(rows[tried]), 1.0), np.arange(len(tried))
    likeliest = probabilities.argmax(axis=1)
    last = probabilities[:, -1].copy()
    probabilities[:, -1] = probabilities[lines, likeliest]
    probabilities[lines, likeliest] = last
    result = rng.multinomial(counts[tried], probabilities)
    last_count = result[:, -1].copy()
    result[:, -1] = result[lines, likeliest]
    result[lines, likeliest] = last_count
    drawn[tried] = result
    return drawn


def walk(
    episodes: int, initial: FloatArray, laws: Iterable[FloatArray], matrices: Sequence[Any], *, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray | None]]:
    """Play episodes; yield for each step how often each (s, a) was played [S, A], and where that led [S·A, S].

    Parameters
    ----------
    episodes
        How many.
    initial : [S]
        The law of the first state.
    laws
        For each step the law of actions in each state: [S, A].
    matrices
        For each step the law of what follows: [S·A, S]. Of steps beyond them nothing follows, and None is yielded.
    rng
        All draws come from it.
    """
    states = spread(np.array([episodes]), initial[None], rng=rng)[0]
    for step, law in enumerate(laws):
        chosen, moved = spread(states, law, rng=rng), None
        if step < len(matrices):
            moved = spread(chosen.ravel(), matrices[step], rng=rng)
            states = moved.sum(axis=0)
        yield chosen, moved


@dataclass(frozen=True, eq=False)
class Parts:
    """Groups that were split: from which group each part comes, into which cell it falls, and how large it is."""

    groups: IntArray  # [parts]
    cells: IntArray  # [parts]
    counts: IntArray  # [parts]


def split(counts: IntArray, rows: Any, which: IntArray, *, rng: np.random.Generator) -> Parts:
    """Split groups of these sizes [G] at random by their rows of probabilities, `which` [G] of the rows [R, m].

    Large groups are multinomial draws; the members of small ones are drawn one by one.
    """
    laws = dense(rows)
    chunk = max(CHUNK // laws.shape[1], 1)
    parts = []
    large = np.flatnonzero(counts > FEW)
    for group in np.array_split(large, max(-(-len(large) // chunk), 1)):
        drawn = spread(counts[group], laws[which[group]], rng=rng)
        row, cells = np.nonzero(drawn)
        parts.append(Parts(group[row], cells, drawn[row, cells]))
    small = np.flatnonzero(counts <= FEW)
    members = np.repeat(small, counts[small])
    sums = np.cumsum(laws, axis=1)
    sums /= sums[:, -1:]
    for group in np.array_split(members, max(-(-len(members) // chunk), 1)):
        cells = (sums[which[group]] <= rng.random(len(group))[:, None]).sum(axis=1)
        parts.append(Parts(group, cells, np.ones(len(group), dtype=np.int64)))
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("groups", "cells", "counts")]
    return Parts(*columns)


def merge(states: IntArray, totals: FloatArray, counts: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Gather groups of episodes that are in the same state with the same totals."""
    found = Totals.merged(np.column_stack([states, totals]), counts)
    return found.values[:, 0].astype(np.int64), found.values[:, 1:], found.counts


def dense(matrix: Any) -> FloatArray:
    """Return a matrix, sparse or not, as an array."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
