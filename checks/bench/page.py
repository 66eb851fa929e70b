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
nothing was tuned on. Lines without an aim are not judged."""


def page(found: Mapping[ModuleType, Sequence[Outcome]], *, load: float, minutes: float) -> str:
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
        rows = []
        for outcome in outcomes:
            what = outcome.what.strip() if outcome.what == outcome.what.strip() else f"… {outcome.what.strip()}"
            rows.append(f"| {what} | {outcome.figure} | {outcome.wish} | {outcome.verdict} |")
        parts += [f"## {title}", "\n".join(["| what | found | aim | |", "|---|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"
