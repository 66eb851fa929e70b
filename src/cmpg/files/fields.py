"""Single fields of a file: whole numbers, lengths of time, names, CSR matrices.

Every reader returns what it promises, or raises GameError with the name of the field, whatever the file holds there.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, check_shape
from cmpg.errors import CMPGError, FileError, GameError
from cmpg.files.containers import Fields, number_table

Option = TypeVar("Option", bound=Enum)

MAX_TEXT = 200

LARGEST = 2**53
"""Whole numbers beyond this are no longer distinguishable as floats, and count nothing that could be stored."""


@contextmanager
def reading(path: str | Path, advice: str = "") -> Iterator[None]:
    """Let whatever is wrong with the fields of a file be a FileError that begins with the file, and ends with advice.

    Examples
    --------
    >>> with reading("run/result.json", "Solve again."):
    ...     {}["status"]
    Traceback (most recent call last):
    cmpg.errors.FileError: run/result.json: the field 'status' is missing; the file is not whole. Solve again.
    """
    try:
        yield
    except KeyError as missing:
        problem = f"the field {missing} is missing; the file is not whole."
    except (TypeError, ValueError, OverflowError) as wrong:
        problem = f"a field is not what it should be ({wrong})."
    except CMPGError as known:
        problem, folder = str(known), Path(path).parent
        if problem.startswith((f"{path}", f"{folder}/", f"{folder}: ")):  # it says already which file is to blame
            raise FileError(problem) from None
    else:
        return
    raise FileError(f"{path}: {problem} {advice}".rstrip())


def refuse_strange_fields(fields: Fields, known: Iterable[str], *, form: str) -> None:
    """Raise where a file has a field that its form does not know: a misspelt name must not pass as a default."""
    strange = sorted(set(fields) - set(known))
    if strange:
        listed = ", ".join(repr(name) for name in strange[:5])
        raise FileError(f"unknown field {listed}; {form} has no such field. Remove it, or correct its name.")


def whole_number(name: str, value: Any, *, least: int = -LARGEST) -> int:
    """Return a field as an int, or raise."""
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    if not is_number or not abs(value) < LARGEST or int(value) != value or value < least:
        shown = str(value) if isinstance(value, Fraction) else value
        more = "" if least == -LARGEST else f" of at least {least}"
        raise GameError(f"{name} is {reprlib.repr(shown)}; a whole number{more} is required.")
    return int(value)


def real_number(name: str, value: Any, *, least: float = -math.inf) -> float:
    """Return a field as a finite float, or raise."""
    table = number_table(name, value)
    if isinstance(value, bool) or table.ndim or table < least:
        more = "" if math.isinf(least) else f" of at least {least:g}"
        raise GameError(f"{name} is {reprlib.repr(value)}; a number{more} is required.")
    return float(table)


def number_list(name: str, value: Any, *, length: int) -> FloatArray:
    """Return a field as this many floats, or raise."""
    table = number_table(name, value)
    check_shape(name, table.shape, (length,))
    return table


def flag(name: str, value: Any) -> bool:
    """Return a field as a bool, or raise."""
    if not isinstance(value, bool):
        raise GameError(f"{name} is {reprlib.repr(value)}; true or false is required.")
    return value


def choice(name: str, value: Any, options: type[Option]) -> Option:
    """Return a field as the member of an Enum that it names, or raise."""
    if not isinstance(value, str) or value not in options.__members__:
        raise GameError(f"{name} is {reprlib.repr(value)}; one of {', '.join(options.__members__)} is required.")
    return options[value]


def mapping(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Return the items of a field with named entries, or raise."""
    if not isinstance(value, dict):
        raise GameError(f"{name} is {reprlib.repr(value)}; an object with named entries is required.")
    return value.items()


def text_of(value: Any) -> str:
    """Return any entry as a short text, for people to read."""
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else reprlib.repr(value)


def whole_numbers(name: str, value: Any, *, axes: int = 1, least: int = -LARGEST, most: int = LARGEST) -> IntArray:
    """Return a field as a table of ints with this many axes, or raise."""
    table = value if isinstance(value, np.ndarray) and value.dtype.kind in "iu" else number_table(name, value)
    if table.ndim != axes:
        what = "a plain list" if axes == 1 else f"a table with {axes} axes"
        raise GameError(f"{name} has shape {list(table.shape)}; {what} of whole numbers is required.")
    wrong = (table != np.floor(table)) | (table < least) | (table > most)
    if wrong.any():
        index = np.unravel_index(int(np.argmax(wrong)), table.shape)
        span = "" if most == LARGEST else f" from {least} to {most}"
        where = ", ".join(map(str, index))
        raise GameError(f"{name}[{where}] is {table[index]:g}; a whole number{span} is required.")
    return np.asarray(table, dtype=np.int64)


def length_of_time(fields: Fields, *, exact: bool) -> dict[str, Any]:
    """Return `horizon` as an int and `discount` as a number, each None where it is left out."""
    horizon, discount = fields.get("horizon"), fields.get("discount")
    if discount is not None:
        discount = number_table("discount", discount, exact=exact)
        if discount.ndim:
            raise GameError(f"discount has shape {list(discount.shape)}; a single number is required.")
    return {
        "horizon": None if horizon is None else whole_number("horizon", horizon),
        "discount": None if discount is None else discount.item(),
    }


def read_names(fields: Fields, known: Mapping[str, str], *, by_agent: Iterable[str]) -> Fields:
    """Return the names that a file has, under what they are called in a game; some are listed agent by agent."""
    readers = {name: names_by_agent if name in by_agent else names_of for name in known if name in fields}
    return {known[name]: read(name, fields[name]) for name, read in readers.items()}


def written_names(game: Any, known: Mapping[str, str], *, by_agent: Iterable[str]) -> Fields:
    """Return the names that a game has, under what they are called in a file; lists by agent are made equally long."""
    named = {field: getattr(game, name) for field, name in known.items() if getattr(game, name) is not None}
    for field in set(by_agent) & set(named):
        longest = max(len(names) for names in named[field])
        named[field] = [[*names, *[""] * (longest - len(names))] for names in named[field]]
    return {field: list(names) for field, names in named.items()}


def names_of(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of names as a tuple, or raise."""
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(rows, list) or not all(isinstance(each, str) for each in rows):
        raise GameError(f"{name} is {reprlib.repr(rows)}; a list of names is required.")
    if any("\ud800" <= letter <= "\udfff" for each in rows for letter in each):
        raise GameError(f"{name} has half of a character in a name; write it in Unicode.")
    return tuple(rows)


def names_by_agent(name: str, value: Any) -> tuple[tuple[str, ...], ...]:
    """Return one list of names per agent; the empty names that make the lists equally long are dropped."""
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(rows, list):
        raise GameError(f"{name} is {reprlib.repr(rows)}; one list of names for each agent is required.")
    listed = (names_of(f"{name}[{i}]", row) for i, row in enumerate(rows))
    return tuple(tuple(each for each in row if each) for row in listed)


def checked_csr(name: str, arrays: list[Any], *, columns: int) -> sp.csr_array:
    """Build a CSR matrix from `indptr`, `indices` and `data`, or raise where they do not fit together."""
    indptr, indices = whole_numbers(f"{name}_indptr", arrays[0]), whole_numbers(f"{name}_indices", arrays[1])
    data = np.array(number_table(f"{name}_data", arrays[2]))
    fits = (
        data.ndim == 1
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


def dense_table(matrix: sp.csr_array, data: Any, *, shape: tuple[int, ...]) -> FloatArray:
    """Write the entries of a CSR matrix, read as Fractions, into a dense table [H or 1, …]."""
    exact = number_table("transition_data", data, exact=True)
    table = np.full(matrix.shape, Fraction(0), dtype=object)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.add.at(table, (rows, matrix.indices), exact)
    return table.reshape(-1, *shape)


def step_matrices(name: str, stacked: sp.csr_array, rows: int) -> tuple[sp.csr_array, ...]:
    """Cut a stack of step matrices into steps of `rows` rows."""
    if rows == 0 or stacked.shape[0] % rows:
        raise GameError(
            f"{name}_indptr has {stacked.shape[0]} rows; a multiple of {rows} is required: one row for each state and "
            "action, step after step."
        )
    return tuple(stacked[start : start + rows] for start in range(0, stacked.shape[0], rows))
