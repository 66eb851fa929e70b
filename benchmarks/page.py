"""Writes docs/benchmarks.md: every number on it comes from one run of all benchmarks."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from types import ModuleType

import numpy as np
import scipy

from benchmarks.outcome import Outcome

HEAD = """\
# Benchmarks

Written by `make bench`, and nothing is edited by hand: one run on {cores} cores, load {load:.1f} at the beginning, with
Python {python}, numpy {numpy} and scipy {scipy}. Both sides of a ratio ran in that run, one after the other. "> " means
that the other side was stopped at its time limit, so that the ratio is at least this. Lines without an aim are told,
not judged."""


def page(found: Mapping[ModuleType, Sequence[Outcome]], *, load: float) -> str:
    """Return the whole page, a table for each benchmark."""
    parts = [
        HEAD.format(
            cores=os.cpu_count(),
            load=load,
            python=platform.python_version(),
            numpy=np.__version__,
            scipy=scipy.__version__,
        )
    ]
    for benchmark, outcomes in found.items():
        title = (benchmark.__doc__ or benchmark.__name__).splitlines()[0].rstrip(".")
        parts += [f"## {title}", "\n".join(["| what | found | aim | |", "|---|---|---|---|", *map(_row, outcomes)])]
    return "\n\n".join(parts) + "\n"


def _row(outcome: Outcome) -> str:
    what = outcome.what.strip() if outcome.what == outcome.what.strip() else f"… {outcome.what.strip()}"
    return f"| {what} | {outcome.figure} | {outcome.wish} | {outcome.verdict} |"
