"""A figure beside what was aimed for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    what: str
    found: float
    aim: float | None = None  # None: told, not judged
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

    def __str__(self) -> str:
        sign = "> " if self.stopped else ""
        aim = "" if self.aim is None else f"{'≤' if self.at_most else '≥'} {self.aim:g} {self.unit}"
        return f"{self.what:<62} {f'{sign}{self.found:.4g} {self.unit}':>14}   {aim:<12} {self.verdict}"
