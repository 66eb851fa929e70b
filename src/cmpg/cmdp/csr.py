"""Sparse transitions of one step, checked with coordinates and owned by nobody else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.checks import (
    ROW_SUM_TOLERANCE,
    UNIT_ROUNDOFF,
    GameError,
    check_shape,
    first_index,
    frozen,
    place,
    row_sum_message,
)


def checked_matrix(step: int, matrix: Any, states_actions: tuple[int, ...]) -> sp.csr_array:
    """Return the transition out of one step as a read-only CSR matrix of distributions, or raise with coordinates.

    Parameters
    ----------
    step
        h, for the error.
    matrix : [S·ΠA, S]
        What the user gave; rows in the order (state, actions).
    states_actions
        S, and the number of actions of the agent, or of each agent.
    """
    check_shape(f"transition[h={step}]", matrix.shape, (math.prod(states_actions), states_actions[0]))
    axes = ("h", "s", *("a" for _ in states_actions[1:]))
    csr = _own_csr(matrix)
    wrong = ~np.isfinite(csr.data) | (csr.data < 0)
    if wrong.any():
        entry = first_index(wrong)[0]
        row, target = int(np.searchsorted(csr.indptr, entry, side="right")) - 1, int(csr.indices[entry])
        where = place("transition", (step, *_unravel(row, states_actions), target), (*axes, "next"))
        raise GameError(f"{where} is {csr.data[entry]}; a probability must be finite and at least 0.")
    sums = csr.sum(axis=1)
    off = np.abs(sums - 1)
    if (off > ROW_SUM_TOLERANCE).any():
        row = first_index(off > ROW_SUM_TOLERANCE)[0]
        where = place("transition", (step, *_unravel(row, states_actions)), axes)
        raise GameError(row_sum_message(where, sums[row], np.asarray(True), ()))
    lengths = np.diff(csr.indptr)
    if (off > 4 * UNIT_ROUNDOFF * int(lengths.max(initial=2))).any():
        csr.data = frozen(csr.data / np.repeat(sums, lengths))
    return csr


def _unravel(row: int, states_actions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(row, states_actions))


def _own_csr(matrix: Any) -> sp.csr_array:
    """Return a CSR matrix that nobody else can change; one that is read-only already is taken as it is."""
    csr = sp.csr_array(matrix, dtype=np.float64)
    if csr.data.flags.writeable:
        csr = csr.copy()
        csr.sum_duplicates()
        index = sp.get_index_dtype(maxval=max(csr.nnz, *csr.shape))
        csr.indices, csr.indptr = csr.indices.astype(index, copy=False), csr.indptr.astype(index, copy=False)
    for array in (csr.data, csr.indices, csr.indptr):
        array.setflags(write=False)
    return csr
