"""Reading single fields of a game file: whole numbers, names, CSR matrices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.checks import GameError


def whole_number(name: str, value: Any) -> int:
    """Return a field as an int, or raise."""
    if not isinstance(value, (int, np.integer, float, Fraction)) or int(value) != value:
        raise GameError(f"{name} is {value!r}; a whole number is required.")
    return int(value)


def names_of(value: Any) -> Any:
    """Return a list of names, or one list of names per agent, as tuples; padding is dropped."""
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if rows and isinstance(rows[0], (list, tuple)):
        return tuple(tuple(str(name) for name in row if name != "") for row in rows)
    return tuple(str(name) for name in rows)


def checked_csr(name: str, arrays: list[Any], *, columns: int) -> sp.csr_array:
    """Build a CSR matrix from `indptr`, `indices` and `data`, or raise where they do not fit together."""
    indptr, indices = (np.asarray(part, dtype=np.int64) for part in arrays[:2])
    data = np.asarray(arrays[2], dtype=np.float64)
    fits = (
        indptr.ndim == indices.ndim == data.ndim == 1
        and len(indptr) > 1
        and indptr[0] == 0
        and indptr[-1] == len(indices) == len(data)
        and bool((np.diff(indptr) >= 0).all())
    )
    if not fits:
        raise GameError(f"{name}: its indptr, indices and data do not fit together as a CSR matrix.")
    if len(indices) and not (indices.min() >= 0 and indices.max() < columns):
        raise GameError(f"{name}_indices has entries outside 0..{columns - 1}.")
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, columns))
