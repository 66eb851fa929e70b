"""The table of claims: what the paper says, where, how it is computed again, and what must come out.

A claim is one function. Its name is the claim's key, its docstring is the statement, and the line above it is its row:

    @agrees("Proposition 3", paper="3.5 at λ = 1", expect=near(3.5, 1.0))
    def dual_value(evidence: Evidence) -> Finding:
        '''D* and λ*'''

`expect` has one interval for each number of the finding. `cmpg reproduce` and the tests read the same rows: a claim
whose numbers leave their intervals is marked "unexpected" on the page, ends the command with exit code 1, and fails
its test. No expected number stands anywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, SupportsFloat

from cmpg.paper.evidence import Evidence

NOT_STATED = "not stated"
"""What stands in the paper's column where the paper is silent."""

Computation = Callable[[Evidence], "Finding"]

Intervals = tuple[tuple[float, float], ...]
"""Where numbers must lie, ends included."""

ANY: Intervals = ((-math.inf, math.inf),)
"""A number that is shown and may be anything."""


class Agreement(Enum):
    """What the numbers mean for the paper's claim, if they come out as expected."""

    AGREES = "agrees"
    DIFFERS = "differs"
    ADDED = "added"  # the paper gives nothing to compare with


@dataclass(frozen=True)
class Finding:
    """What a computation found: in words, and as the numbers behind them."""

    ours: str
    numbers: tuple[float, ...]

    @staticmethod
    def of(ours: str, *numbers: SupportsFloat) -> Finding:
        """Return a finding; truth values count as 1 and 0."""
        return Finding(ours, tuple(float(number) for number in numbers))


@dataclass(frozen=True)
class PaperClaim:
    """One row of the table."""

    key: str
    where: str  # in the paper
    statement: str
    paper: str  # the value that the paper gives
    agreement: Agreement
    expect: Intervals
    why: str
    compute: Computation

    def check(self, evidence: Evidence) -> CheckedClaim:
        """Compute the claim."""
        return CheckedClaim(self, self.compute(evidence))


@dataclass(frozen=True)
class CheckedClaim:
    """A row, and what this run found."""

    claim: PaperClaim
    finding: Finding

    @property
    def as_expected(self) -> bool:
        """Whether every number lies in its interval."""
        pairs = zip(self.finding.numbers, self.claim.expect, strict=True)
        return all(low <= number <= high or (low, high) in ANY for number, (low, high) in pairs)

    @property
    def verdict(self) -> str:
        """Return one word for the page: what the row says, or that it came out otherwise."""
        return self.claim.agreement.value if self.as_expected else "unexpected"


def agrees(where: str, *, paper: str, expect: Intervals, why: str = "") -> Callable[[Computation], PaperClaim]:
    """Make a row out of a function: the paper is right."""
    return lambda compute: _row(where, paper, Agreement.AGREES, expect, why, compute)


def differs(where: str, *, paper: str, expect: Intervals, why: str) -> Callable[[Computation], PaperClaim]:
    """Make a row out of a function: the paper is wrong, and the numbers show it."""
    return lambda compute: _row(where, paper, Agreement.DIFFERS, expect, why, compute)


def added(where: str, *, expect: Intervals, why: str = "") -> Callable[[Computation], PaperClaim]:
    """Make a row out of a function: the paper gives no value."""
    return lambda compute: _row(where, NOT_STATED, Agreement.ADDED, expect, why, compute)


def _row(where: str, paper: str, agreement: Agreement, expect: Intervals, why: str, compute: Computation) -> PaperClaim:
    name = compute.__name__.replace("_", "-")
    statement = " ".join((compute.__doc__ or name).split()).removesuffix(".")
    return PaperClaim(name, where, statement, paper, agreement, expect, why, compute)


def near(*values: float, tolerance: float = 1e-9) -> Intervals:
    """Return an interval around each value."""
    return tuple((value - tolerance, value + tolerance) for value in values)


def between(low: float, high: float) -> Intervals:
    """Return one interval; rows are put together with `+`."""
    return ((low, high),)


def above(low: float) -> Intervals:
    """Return the interval of everything from `low` on."""
    return ((low, math.inf),)


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn when it is asked for; `draw` returns a matplotlib Figure."""

    name: str  # of its files
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """What belongs together: claims, and the pictures that show them."""

    title: str
    note: str
    claims: tuple[PaperClaim, ...]
    pictures: Callable[[Evidence], tuple[Picture, ...]]


def rows_of(module: Mapping[str, Any]) -> tuple[PaperClaim, ...]:
    """Return the claims that a module defines, in its order."""
    return tuple(each for each in module.values() if isinstance(each, PaperClaim))


def written(number: SupportsFloat, *, digits: int = 10) -> str:
    """Write a number with so many significant digits, and rounding noise as zero.

    Examples
    --------
    >>> written(3.0857864376269046), written(1e-13), written(23.1), written(3.2e12, digits=2)
    ('3.085786438', '0', '23.1', '3.2e+12')
    """
    plain = float(number)
    if not math.isfinite(plain):
        return str(plain)
    return "0" if abs(plain) < 1e-11 else f"{plain:.{digits}g}"


def listed(numbers: Iterable[SupportsFloat], *, digits: int = 6) -> str:
    """Write several numbers, with commas."""
    return ", ".join(written(number, digits=digits) for number in numbers)


def share(part: int, whole: int) -> str:
    """Write a share in percent, with the counts.

    Examples
    --------
    >>> share(7, 20)
    '35 % (7 of 20)'
    """
    return f"{100 * part / whole:.3g} % ({part} of {whole})"


def at_most(number: float, bound: float) -> str:
    """Write that a number is noise by naming the bound that it keeps, or the number where it is more than that.

    Examples
    --------
    >>> at_most(3e-14, 1e-9), at_most(0.25, 1e-9)
    ('at most 1e-09', '0.25')
    """
    return f"at most {bound:.0e}" if number <= bound else written(number, digits=4)
