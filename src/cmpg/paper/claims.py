"""The claims of the paper, one by one: what it says, what this run found, and whether the two agree.

A verdict is computed, never written down. What `docs/paper-notes.md` expects of it stands beside it, so that a claim
that comes out differently from the notes is seen at once.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, SupportsFloat

NOT_STATED = "not stated"
"""What stands in the paper's column where the paper is silent."""


class Verdict(Enum):
    """How a claim fared."""

    AGREES = "agrees"
    DIFFERS = "differs"
    ADDED = "added"  # the paper gives nothing to compare with


@dataclass(frozen=True)
class Claim:
    """One claim, and what became of it."""

    key: str
    statement: str
    paper: str
    ours: str
    verdict: Verdict
    expected: Verdict
    why: str
    numbers: tuple[float, ...] = ()  # what `ours` says, unrounded

    @property
    def surprising(self) -> bool:
        """Whether this is not what the notes on the paper say."""
        return self.verdict is not self.expected


def agreed(
    key: str,
    statement: str,
    *,
    paper: str,
    ours: str,
    holds: bool,
    why: str = "",
    numbers: Iterable[SupportsFloat] = (),
) -> Claim:
    """Return a claim that the notes take to be right; `holds` is what this run found."""
    verdict = Verdict.AGREES if holds else Verdict.DIFFERS
    return Claim(key, statement, paper, ours, verdict, Verdict.AGREES, why, _plain(numbers))


def refuted(
    key: str, statement: str, *, paper: str, ours: str, holds: bool, why: str, numbers: Iterable[SupportsFloat] = ()
) -> Claim:
    """Return a claim that the notes take to be wrong; `holds` is what this run found."""
    verdict = Verdict.AGREES if holds else Verdict.DIFFERS
    return Claim(key, statement, paper, ours, verdict, Verdict.DIFFERS, why, _plain(numbers))


def added(key: str, statement: str, *, ours: str, why: str = "", numbers: Iterable[SupportsFloat] = ()) -> Claim:
    """Return a finding for which the paper gives no value."""
    return Claim(key, statement, NOT_STATED, ours, Verdict.ADDED, Verdict.ADDED, why, _plain(numbers))


def _plain(numbers: Iterable[SupportsFloat]) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)


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
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...] = ()


def close(one: SupportsFloat, other: SupportsFloat, *, tolerance: float = 1e-9) -> bool:
    """Whether two numbers are the same, relative to their size where that is above one."""
    first, second = float(one), float(other)
    return abs(first - second) <= tolerance * max(1.0, abs(first), abs(second))


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


COLUMNS = ("section", "key", "claim", "paper", "ours", "verdict", "expected", "why", "numbers")


def claims_csv(sections: Sequence[Section]) -> str:
    """Return the table as CSV, one line per claim."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in claim_records(sections):
        numbers = " ".join(repr(number) for number in record["numbers"])
        writer.writerow([numbers if name == "numbers" else record[name] for name in COLUMNS])
    return text.getvalue()


def claim_records(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Return the table as records of plain strings and numbers."""
    return [
        {
            "section": section.title,
            "key": claim.key,
            "claim": claim.statement,
            "paper": claim.paper,
            "ours": claim.ours,
            "verdict": claim.verdict.value,
            "expected": claim.expected.value,
            "why": claim.why,
            "numbers": list(claim.numbers),
        }
        for section in sections
        for claim in section.claims
    ]
