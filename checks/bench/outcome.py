"""A figure beside what was aimed for."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    what: str
    found: float
    aim: float | None = None  # None: shown, not judged
    unit: str = "×"
    stopped: bool = False  # the other side was stopped: the ratio is at least `found`
    at_most: bool = False  # small is good

    @property
    def verdict(self) -> str:
        if self.aim is None:
            return ""
        if (self.found <= self.aim) if self.at_most else (self.found >= self.aim):
            return "met"
        return "open" if self.stopped else "MISSED"

    @property
    def figure(self) -> str:
        return f"{'> ' if self.stopped else ''}{self.found:.4g} {self.unit}".strip()

    @property
    def wish(self) -> str:
        return "" if self.aim is None else f"{'≤' if self.at_most else '≥'} {self.aim:g} {self.unit}".strip()

    def __str__(self) -> str:
        return f"{self.what:<62} {self.figure:>14}   {self.wish:<12} {self.verdict}"


def or_broken(name: str, work: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Return the outcomes of some work; if it breaks off, say so, and let the others go on."""
    try:
        return work()
    except Exception as problem:
        traceback.print_exc()
        return [Outcome(f"{name}: broke off, {type(problem).__name__}", 0.0, 1.0, unit="")]
