"""Array types, tolerances, read-only arrays, and the checks that every table passes once, when it is given.

What is computed with are 64-bit floats. A table that is given as `fractions.Fraction`s is an array of dtype object:
games round it, and keep it for the proof (`cmpg.games.rationals`), and policies keep it until they are played.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmpg.deadline import check_time
from cmpg.errors import CMPGError, GameError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Numbers: TypeAlias = "npt.ArrayLike | Fraction | Sequence[Numbers]"
"""What a table may be given as: an array, or nested sequences of numbers. Fields hold it as a read-only array."""

ROW_SUM_TOLERANCE = 1e-9
"""How far a given row of probabilities may be from summing to one; it is then divided by its sum."""

UNIT_ROUNDOFF = 2.0**-53

LEAST_FLOAT = 2.0**-1074

FRACTION = re.compile(r"\s*[-+]?\d+\s*/\s*\d+\s*", re.ASCII)

LARGEST_POWER = 400
"""A number that is given as text has at most this power of ten; floats end at 1e308."""


LARGEST_WHOLE = 2.0**53
"""All smaller whole numbers are floats."""


def numbers(name: str, value: Any, *, error: type[CMPGError] = GameError) -> FloatArray:
    """Return `value` as a read-only array of finite floats, or of Fractions where it holds any.

    An array that is read-only already is taken as it is. A read-only view of one that can still change is copied; axes
    that repeat the same numbers go on repeating them, and take no memory.

    Examples
    --------
    >>> numbers("rewards", [[1, 2], [3, float("nan")]])
    Traceback (most recent call last):
    cmpg.errors.GameError: rewards[1, 1] is nan; every entry must be a finite number.
    """
    if isinstance(value, np.ndarray) and not value.flags.writeable and value.dtype in (np.float64, object):
        array = value if _cannot_change(value) else _own(value)
    else:
        array = _fresh_array(name, value, error)
    if array.dtype == object:
        return array
    finite = np.isfinite(array)
    if not finite.all():
        index = first_index(~finite)
        raise error(f"{name}{_brackets(index)} is {array[index]}; every entry must be a finite number.")
    return array


def _cannot_change(array: npt.NDArray[Any]) -> bool:
    """Whether everything that the array is a view of is read-only too."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None or isinstance(owner, bytes)


def _own(view: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy what a view shows; where a stride is zero, once."""
    return unfolded(folded(view))


@dataclass(frozen=True, eq=False)
class Folded:
    """An array of which some axes repeat the same numbers: those numbers once, and its shape. It pickles small."""

    core: npt.NDArray[Any]
    shape: tuple[int, ...]


def folded(array: npt.NDArray[Any]) -> Folded:
    """Return a copy of what an array holds; axes with a stride of zero are kept once."""
    core = array[(..., *(slice(1) if stride == 0 else slice(None) for stride in array.strides))]
    return Folded(frozen(np.array(core)), array.shape)


def unfolded(kept: Folded) -> npt.NDArray[Any]:
    """Return the array again, as a read-only view."""
    return np.broadcast_to(frozen(kept.core), kept.shape)


def folded_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as its pickled state: arrays folded, and nothing that was computed from them."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: folded(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}


def set_folded_fields(record: Any, state: dict[str, Any]) -> None:
    """Set the fields of a dataclass from such a state."""
    for name, value in state.items():
        object.__setattr__(record, name, unfolded(value) if isinstance(value, Folded) else value)


def _fresh_array(name: str, value: Any, error: type[CMPGError]) -> FloatArray:
    try:
        raw = np.array(value)
    except ValueError as problem:
        raise error(f"{name} is ragged: its rows have different lengths ({problem}).") from None
    if raw.dtype == object:
        return _exact_array(name, raw, error)
    if raw.dtype.kind not in "biuf":
        raise error(f"{name} holds {raw.dtype} entries; numbers are required.")
    table = raw.astype(np.float64, copy=False)
    if raw.dtype.kind in "iu" or not isinstance(value, np.ndarray):
        check_held(name, raw if raw.dtype.kind in "iu" else value, table, error)
    elif raw.dtype.itemsize > table.dtype.itemsize and np.any(raw != table):
        raise error(f"{name} holds {raw.dtype} entries with more digits than a float has. Round them to float64 first.")
    return frozen(table)


def check_held(name: str, value: Any, table: FloatArray, error: type[CMPGError]) -> None:
    """Raise if a whole number was rounded when it became a float: what is proved would not be true of it.

    Examples
    --------
    >>> check_held("costs", [2**53, 2**53 + 1], np.array([2.0**53, 2.0**53]), GameError)
    Traceback (most recent call last):
    cmpg.errors.GameError: costs[1] is 9007199254740993, which no float holds. Round it, or pass a Fraction.
    """
    large = np.abs(table) >= LARGEST_WHOLE
    if not large.any():
        return
    given = np.asarray(value, dtype=object)
    for index in map(tuple, np.argwhere(large).tolist()):
        entry = given[index]
        if isinstance(entry, (int, np.integer)) and int(entry) != int(table[index]):
            raise error(f"{name}{_brackets(index)} is {entry}, which no float holds. Round it, or pass a Fraction.")


def _exact_array(name: str, raw: npt.NDArray[Any], error: type[CMPGError]) -> FloatArray:
    exact = np.empty(raw.shape, dtype=object)
    for index, entry in np.ndenumerate(raw):
        if isinstance(entry, (list, tuple)):
            raise error(f"{name} is ragged at {_brackets(index)}: its rows have different lengths.")
        try:
            exact[index] = rational(entry) if isinstance(entry, str) else Fraction(entry)
            float(exact[index])
        except (TypeError, ValueError, ArithmeticError):
            shown = reprlib.repr(entry)
            raise error(f"{name}{_brackets(index)} is {shown}; every entry must be a finite number.") from None
    return frozen(exact)


def rational(text: str) -> Fraction:
    """Read "1/3" or "0.1" as the rational that is written there, or raise ValueError.

    A power of ten beyond any float is refused before it is computed: its digits alone could fill the memory. So are
    digits of other scripts and "1_0", which Python reads and other readers of the same file do not.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(f"{reprlib.repr(text)} is no number")
    _, _, power = text.lower().partition("e")
    if power and abs(int(power)) > LARGEST_POWER:
        raise ValueError(f"{reprlib.repr(text)} is beyond every float")
    return Fraction(text)


def is_fraction(word: Any) -> bool:
    """Whether a word is written as a fraction: the reader of a file then keeps its numbers as they are written.

    Examples
    --------
    >>> is_fraction("-1/3"), is_fraction("0.1"), is_fraction("left/right")
    (True, False, False)
    """
    return isinstance(word, str) and FRACTION.fullmatch(word) is not None


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return a random generator: one that is given, or that of a seed.

    Examples
    --------
    >>> generator("a")
    Traceback (most recent call last):
    cmpg.errors.CMPGError: rng is a str; a seed is required, or np.random.default_rng(1).
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    what = f"{rng}" if isinstance(rng, (int, np.integer)) else f"a {type(rng).__name__}"
    raise CMPGError(f"{name} is {what}; a seed is required, or np.random.default_rng(1).")


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only, in place, and return it."""
    array.setflags(write=False)
    return array


def to_exact(array: FloatArray) -> FloatArray:
    """Read every entry as the rational number that it is."""
    if array.dtype == object:
        return array
    exact = np.empty(array.shape, dtype=object)
    exact.ravel()[:] = [Fraction(float(entry)) for entry in array.ravel()]
    return frozen(exact)


def exact_distributions(array: FloatArray) -> FloatArray:
    """Read every entry as a rational number, and divide every row by its exact sum."""
    exact = to_exact(array)
    sums = exact.sum(axis=-1, keepdims=True)
    uneven = int((sums != 1).sum())
    if not uneven:
        return exact
    _count_rescaled(uneven)
    return frozen(exact / sums)


class Rescaling:
    """How many rows of probabilities were divided by their sums, because those are not exactly one."""

    rows = 0


_RESCALING: ContextVar[Rescaling | None] = ContextVar("rescaling", default=None)


@contextmanager
def counted_rescaling() -> Iterator[Rescaling]:
    """Count the rows that are divided by their exact sums inside.

    Examples
    --------
    >>> with counted_rescaling() as count:
    ...     _ = exact_distributions(np.array([[0.5, 0.5], [0.1, 0.9]]))
    >>> count.rows
    1
    """
    count, outside = Rescaling(), _RESCALING.get()
    token = _RESCALING.set(count)
    try:
        yield count
    finally:
        _RESCALING.reset(token)
        if outside is not None:
            outside.rows += count.rows


def _count_rescaled(rows: int) -> None:
    count = _RESCALING.get()
    if count is not None:
        count.rows += rows


def to_floats(array: FloatArray) -> FloatArray:
    """Round an exact array to floats; a float array is returned as it is.

    What is not zero stays so: a rational closer to zero than every float becomes the least float of its sign. Whether
    anything is possible, or costs anything, decides proofs by support.

    Examples
    --------
    >>> to_floats(np.array([Fraction(1, 4), Fraction(1, 10**400)]))
    array([2.5e-001, 4.9e-324])
    """
    if array.dtype != object:
        return array
    rounded = np.asarray(array.astype(np.float64))
    lost = np.asarray((rounded == 0) & (array != 0), dtype=bool)
    if lost.any():
        rounded = np.where(lost, np.where(array > 0, LEAST_FLOAT, -LEAST_FLOAT), rounded)
    return frozen(rounded)


def first_index(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the coordinates of the first True."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _brackets(index: Sequence[int]) -> str:
    return "[" + ", ".join(str(i) for i in index) + "]" if index else ""


def place(name: str, index: Sequence[int], axes: Sequence[str]) -> str:
    """Write coordinates with the names of their axes; the agents' actions are gathered in one tuple.

    Examples
    --------
    >>> place("transition", (1, 3, 0, 2), ("h", "s", "a", "a"))
    'transition[h=1, s=3, a=(0, 2)]'
    """
    actions = [str(i) for i, axis in zip(index, axes, strict=True) if axis == "a"]
    parts: list[str] = []
    for i, axis in zip(index, axes, strict=True):
        if axis != "a":
            parts.append(f"{axis}={i}")
        elif len(actions) == 1:
            parts.append(f"a={i}")
        elif actions:
            parts.append(f"a=({', '.join(actions)})")
            actions = []
    return f"{name}[{', '.join(parts)}]"


def check_shape(
    name: str, shape: Sequence[int], required: Sequence[int], *, error: type[CMPGError] = GameError
) -> None:
    """Raise unless the shape is the required one."""
    if tuple(shape) != tuple(required):
        raise error(f"{name} has shape {_shape(shape)}; {_shape(required)} is required.")


def _shape(shape: Sequence[int]) -> str:
    return "[" + ", ".join(str(length) for length in shape) + "]"


def distributions(
    name: str, array: FloatArray, axes: Sequence[str], *, error: type[CMPGError] = GameError
) -> FloatArray:
    """Return `array` with every row along the last axis a probability distribution, or raise with coordinates.

    Rows within `ROW_SUM_TOLERANCE` of one are divided by their sum, so that later error bounds can rely on it.

    Parameters
    ----------
    name
        How the array is called in the error.
    array : [..., m]
        Rows of probabilities.
    axes
        The names of all axes but the last, as `place` writes them.

    Examples
    --------
    >>> distributions("initial", numbers("initial", [0.5, 0.4]), ())
    Traceback (most recent call last):
    cmpg.errors.GameError: initial sums to 0.9; it must sum to 1 (tolerance 1e-09). Normalise it, or pass one that does.
    """
    check_time()
    if array.size and array.min() < 0:
        index = first_index(array < 0)
        raise error(f"{place(name, index, (*axes, 'entry'))} is {array[index]}; a probability cannot be negative.")
    # A product with ones sums many short rows ten times faster than NumPy's sum.
    sums = array.sum(axis=-1) if array.dtype == object else array @ np.ones(array.shape[-1])
    off = np.abs(sums - 1)
    bad = off > ROW_SUM_TOLERANCE
    if np.any(bad):
        raise error(row_sum_message(name, np.asarray(sums), np.asarray(bad), axes))
    rounding = 0 if array.dtype == object else 4 * UNIT_ROUNDOFF * max(array.shape[-1], 2)
    if np.any(off > rounding):
        _count_rescaled(int(np.sum(off > 0)))
        return frozen(array / np.asarray(sums)[..., None])
    return array


def at_step(tables: Any, step: int) -> Any:
    """Return the table of a step, of tables that have one per step, or one for all steps."""
    return tables[0 if len(tables) == 1 else step]


def each_once(check: Callable[[int, Any], Any], items: Sequence[Any]) -> tuple[Any, ...]:
    """Return check(place, item) of every item; one that comes again is not checked again, and stays shared."""
    checked: dict[int, Any] = {}
    for index, item in enumerate(items):
        if id(item) not in checked:
            check_time()
            checked[id(item)] = check(index, item)
    return tuple(checked[id(item)] for item in items)


def row_sum_message(name: str, sums: FloatArray, bad: npt.NDArray[np.bool_], axes: Sequence[str]) -> str:
    """Say which row of probabilities does not sum to one, and what to do."""
    index = first_index(bad) if bad.ndim else ()
    where = place(name, index, axes) if axes else name
    every = "every row" if axes else "it"
    fix = "rows that do" if axes else "one that does"
    return (
        f"{where} sums to {float(sums[index]):.9g}; {every} must sum to 1 (tolerance {ROW_SUM_TOLERANCE:g}). "
        f"Normalise it, or pass {fix}."
    )


def require_at_least_zero(**amounts: Any) -> None:
    """Raise unless every number is finite and at least zero.

    Examples
    --------
    >>> require_at_least_zero(threshold=0.5, capacity=[8, -1])
    Traceback (most recent call last):
    cmpg.errors.GameError: capacity[1] is -1; a number of at least 0 is required.
    """
    for name, value in amounts.items():
        given = numbers(name, value)
        if (given < 0).any():
            index = first_index(given < 0) if given.ndim else ()
            where = f"{name}[{', '.join(map(str, index))}]" if index else name
            raise GameError(f"{where} is {given[index]:g}; a number of at least 0 is required.")


def check_number(name: str, value: Any) -> None:
    """Raise unless a value is one number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        raise CMPGError(f"{name} is {value!r}; a number is required.")


def check_positive(name: str, value: Any) -> None:
    """Raise unless a value is one number above 0."""
    check_number(name, value)
    if not value > 0:
        raise CMPGError(f"{name} is {value}; it must be positive.")
