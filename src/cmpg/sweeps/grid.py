"""What a sweep is over: options with several values each, all combinations of which are run.

A grid is a mapping: a list, a range or an array is swept over; anything else, a tuple too, is one value for all runs.
The values of a plan in a `.toml` file are the same, and texts are read as on a command line:

    4:12          4, 5, …, 12          0:1:0.25      0, 0.25, 0.5, 0.75, 1
    0,0.1,0.5     these three          2019-06-10..2019-06-14   these five days
    0.1,0.2;0.3,0.4   two lists, for an option that takes a list
"""

from __future__ import annotations

import itertools
import reprlib
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import check_regular

MAX_RUNS = 100_000
"""A sweep has at most this many runs; more are most likely a typing error."""

ALTERNATIVES = (list, range, np.ndarray)
"""What is swept over."""


@dataclass(frozen=True)
class Grid:
    """The options of all runs: those that are the same in all, and those that are swept over.

    Examples
    --------
    >>> grid = Grid.of({"num_agents": 2, "threshold": [0.1, 0.2]})
    >>> grid.fixed, len(grid), list(grid)[1]
    ({'num_agents': 2}, 2, {'num_agents': 2, 'threshold': 0.2})
    """

    fixed: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, grid: Mapping[str, Any]) -> Grid:
        """Sort what is given into the same for all, and what is swept over.

        Examples
        --------
        >>> grid = Grid.of({"day": "2019-06-10", "capacity": range(4, 7), "threshold": [0.1, 0.5]})
        >>> len(grid), next(iter(grid))
        (6, {'day': '2019-06-10', 'capacity': 4, 'threshold': 0.1})
        """
        if not isinstance(grid, Mapping):
            raise CMPGError(
                f"the grid is a {type(grid).__name__}; options by name are required, such as {{'capacity': [6, 8]}}."
            )
        axes = {name: _values(name, value) for name, value in grid.items() if isinstance(value, ALTERNATIVES)}
        made = cls({name: value for name, value in grid.items() if name not in axes}, axes)
        if len(made) > MAX_RUNS:
            raise CMPGError(f"the grid has {len(made):,} runs; at most {MAX_RUNS:,} are swept over at once.")
        return made

    def __len__(self) -> int:
        return int(np.prod([len(values) for values in self.axes.values()], dtype=object))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the options of each run; the last axis turns fastest."""
        for chosen in itertools.product(*self.axes.values()):
            yield {**self.fixed, **dict(zip(self.axes, chosen, strict=True))}

    def next_value(self, option: str, value: Any) -> Any | None:
        """Return the value after this one on an axis of numbers; None at its end, and where there are no numbers."""
        if not self.is_numeric(option):
            return None
        above = [each for each in self.axes[option] if each > value]
        return min(above) if above else None

    def is_numeric(self, option: str) -> bool:
        """Whether an axis is one of numbers."""
        return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in self.axes[option])


def extends(grid: Grid, earlier: Grid) -> bool:
    """Whether a grid has the options of an earlier one, and all of its values and more.

    Examples
    --------
    >>> extends(Grid.of({"capacity": [4, 5, 6]}), Grid.of({"capacity": [6, 4]}))
    True
    >>> extends(Grid.of({"capacity": [4, 5, 6]}), Grid.of({"capacity": [3, 4]}))
    False
    """
    if grid.axes.keys() != earlier.axes.keys() or grid.axes == earlier.axes:
        return False
    fixed = [{name: str(value) for name, value in each.fixed.items()} for each in (grid, earlier)]
    return fixed[0] == fixed[1] and all(set(values) <= set(grid.axes[name]) for name, values in earlier.axes.items())


def _values(name: str, alternatives: Any) -> tuple[Any, ...]:
    values = alternatives.tolist() if isinstance(alternatives, np.ndarray) else list(alternatives)
    try:
        unique = tuple(dict.fromkeys(tuple(each) if isinstance(each, list) else each for each in values))
    except TypeError:
        raise CMPGError(f"{name} has {reprlib.repr(values)} to sweep over; no list in a list is a value.") from None
    if not unique:
        raise CMPGError(f"{name} has no values to sweep over.")
    return unique


def values_of(option: str, text: str, read: Callable[[str], Any]) -> Any:
    """Read the text of an option: one value, or a list of several; see above for how they are written.

    Parameters
    ----------
    option
        Its name, for complaints.
    text
        Its text.
    read
        Reads one value.

    Examples
    --------
    >>> values_of("capacity", "4:6", int), values_of("capacity", "4", int)
    ([4, 5, 6], 4)
    >>> values_of("day", "2019-02-27..2019-03-01", str)
    ['2019-02-27', '2019-02-28', '2019-03-01']
    """
    if ";" in text:
        return [read(part) for part in text.split(";")]
    first, dots, last = text.partition("..")
    if dots and first and last:
        return [read(day) for day in _days(option, first, last)]
    parts = [each for part in text.split(",") for each in _range(option, part)]
    return [read(part) for part in parts] if len(parts) > 1 else read(parts[0])


def _days(option: str, first: str, last: str) -> list[str]:
    try:
        begin, end = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        raise CMPGError(f"{option} is {first}..{last}; days such as 2019-06-10..2019-06-14 are required.") from None
    if end < begin:
        raise CMPGError(f"{option} is {first}..{last}, which ends before it begins.")
    return [str(begin + timedelta(days=number)) for number in range((end - begin).days + 1)]


def _range(option: str, part: str) -> list[str]:
    """Return the numbers first, first + step, … up to last; a text without a colon is itself."""
    if ":" not in part or part.replace(":", "").strip("0123456789.eE+-"):
        return [part]
    try:
        first, last, width = (Decimal(each) for each in (part if part.count(":") > 1 else f"{part}:1").split(":"))
        count = int((last - first) / width) + 1
    except (InvalidOperation, ValueError, ArithmeticError):
        raise CMPGError(
            f"{option} is {part}; a range is first:last or first:last:step, such as 4:12 or 0:1:0.25."
        ) from None
    if count < 1 or width <= 0:
        raise CMPGError(f"{option} is {part}, a range without an end or without a value. Give first:last:step.")
    if count > MAX_RUNS:
        raise CMPGError(f"{option} is {part}, a range of {count:,} values; at most {MAX_RUNS:,} are swept over.")
    return [str(first + number * width) for number in range(count)]


@dataclass(frozen=True)
class SweepPlan:
    """What a `.toml` file asks for."""

    scenario: str
    options: Mapping[str, Any]  # as they stand in the file
    epsilon: float = 1e-6
    restarts: int = 1


def read_plan(path: Path) -> SweepPlan:
    """Read a plan: `scenario`, perhaps `epsilon` and `restarts`, and a table `[options]`."""
    check_regular(path)
    try:
        fields = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise FileError(f"{path}: is not valid TOML ({problem}).") from None
    strange = sorted(set(fields) - {"scenario", "epsilon", "restarts", "options"})
    if strange:
        raise FileError(f"{path}: {strange[0]} is not known there; options of the scenario belong into [options].")
    options = fields.get("options", {})
    if not isinstance(fields.get("scenario"), str) or not isinstance(options, dict):
        raise FileError(f'{path}: scenario = "…" and a table [options] are required.')
    for name, value in options.items():
        rows = value if isinstance(value, list) else [value]
        values = [each for row in rows for each in (row if isinstance(row, list) else [row])]
        if not all(isinstance(each, (str, bool, int, float)) or type(each) is date for each in values):
            raise FileError(f"{path}: {name} is {reprlib.repr(value)}; a number, a text or a list is required.")
    epsilon, restarts = fields.get("epsilon", 1e-6), fields.get("restarts", 1)
    usable = type(epsilon) in (int, float) and 0 <= epsilon <= sys.float_info.max
    if not usable or type(restarts) is not int or restarts < 1:
        raise FileError(f"{path}: epsilon must be a number of at least 0, and restarts a whole number of at least 1.")
    return SweepPlan(fields["scenario"], options, float(epsilon), restarts)


def word_of(value: Any) -> str:
    """Return a value of a plan as it would stand on a command line; the parts of a list are joined by commas.

    Examples
    --------
    >>> word_of([0.1, 0.2]), word_of(True)
    ('0.1,0.2', 'true')
    """
    if isinstance(value, list):
        return ",".join(map(word_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
