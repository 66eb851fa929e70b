"""Writes build/benchmarks.md: every number on it comes from one run of all benchmarks."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from types import ModuleType

import numpy as np
import scipy

from checks.bench.outcome import Outcome

HEAD = """\
# Benchmarks

Written by `make bench`, and nothing is edited by hand: one run of {minutes:.0f} minutes on {cores} cores, load
{load:.1f} at the beginning, with Python {python}, numpy {numpy} and scipy {scipy}. Both sides of a ratio ran in that
run, one after the other; seconds are those of the processor, of whole solves to a certificate. "> " means that the
other side was stopped at its time limit, so that the ratio is at least this. Seeds 7 and 1000 and above are ones that
nothing was tuned on. Lines without an aim are told, not judged. "Before" is what the page of the last commit said."""

Before = dict[tuple[str, str, str], str]
"""What a page said: the figure of each row, by its section, the last row before it that stands for itself, and its own
name.
"""


def read_page(text: str) -> Before:
    """Return the figures of a page that was written by an earlier run."""
    found: Before = {}
    section = first = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("## "):
            section, first = line[3:], ""
        elif line.startswith("| ") and len(cells) >= 3 and cells[0] != "what":
            first = first if cells[0].startswith("…") else cells[0]
            found[section, first, cells[0]] = cells[1]
    return found


def page(found: Mapping[ModuleType, Sequence[Outcome]], *, load: float, minutes: float, before: Before) -> str:
    """Return the whole page, a table for each benchmark."""
    parts = [
        HEAD.format(
            cores=os.cpu_count(),
            load=load,
            minutes=minutes,
            python=platform.python_version(),
            numpy=np.__version__,
            scipy=scipy.__version__,
        )
    ]
    for benchmark, outcomes in found.items():
        title = (benchmark.__doc__ or benchmark.__name__).splitlines()[0].rstrip(".")
        rows, first = [], ""
        for outcome in outcomes:
            what = outcome.what.strip() if outcome.what == outcome.what.strip() else f"… {outcome.what.strip()}"
            first = first if what.startswith("…") else what
            told = before.get((title, first, what), "")
            rows.append(f"| {what} | {outcome.figure} | {told} | {outcome.wish} | {outcome.verdict} |")
        parts += [f"## {title}", "\n".join(["| what | found | before | aim | |", "|---|---|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"
