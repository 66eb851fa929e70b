"""`python -m checks bench [--quick] [name …]`: ratios against what a user would pick instead.

Each benchmark is a module with `main(quick)`, which prints as it goes and returns its outcomes. The last table has all
of them beside their aims, and the exit code is 1 where one is missed. "Open" is a ratio that is not decided, because
the other side was stopped at its time limit.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import time
from collections.abc import Sequence
from functools import partial

from checks import BUILD, evidence
from checks.bench.outcome import Outcome, or_broken

NAMES = ("start_up", "cmdp", "joint", "counting", "extended", "local", "draws", "memory", "simulation")


FEATURED = {
    "cmpg solve grid-world": "the paper's grid world: the whole command",
    "joint, S=200 A=4³ H=20: seconds of the processor": "joint game, 3 agents, 200 states, 20 steps",
    "congestion by counts, 100 agents: solve": "congestion by counts, 100 agents",
    "congestion by counts, 1000 agents: solve": "congestion by counts, 1,000 agents",
    "charging, 46 cars: seconds of the processor": "charging, 46 cars",
    "charging, 10,000 drawn cars: seconds of the processor": "charging, 10,000 cars",
    "routing, 120 platoons: seconds of the processor": "routing, 120 platoons",
    "routing, 10,000 platoons: seconds of the processor": "routing, 10,000 platoons",
    "robots, 30: seconds of the processor": "robots, 30",
    "robots, 300, on 64 x 64 cells: seconds of the processor": "robots, 300",
}
"""What users plan with: outcomes that docs/evidence.md shows, and what they are called there."""


def featured(outcomes: Sequence[Outcome]) -> str:
    """Return the table of docs/evidence.md."""
    rows = [f"| {FEATURED[each.what]} | {each.found:.2g} |" for each in outcomes if each.what in FEATURED]
    return "\n".join(["| game | CPU seconds to a certificate |", "|---|---:|", *rows])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m checks bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; all unless given")
    parser.add_argument("--quick", action="store_true", help="small sizes and short limits: a few minutes in all")
    given = parser.parse_args(argv)
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}.")
    head = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning"
    print(head)
    outcomes: list[Outcome] = []
    for name in given.names or NAMES:
        print(f"\n== {name} ==", flush=True)
        benchmark = importlib.import_module(f"checks.bench.{name}")
        start = time.perf_counter()
        outcomes += or_broken(name, partial(benchmark.main, given.quick))
        print(f"{name} took {time.perf_counter() - start:.0f} s", flush=True)
    print("\n== side by side ==")
    print("\n".join(map(str, outcomes)))
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.txt").write_text("\n".join([head, *map(str, outcomes), ""]), encoding="utf-8")
    if not given.names and not given.quick:
        evidence.record(
            "bench", f"One run on {os.cpu_count()} cores with Python {platform.python_version()}", featured(outcomes)
        )
    missed = [outcome for outcome in outcomes if outcome.verdict == "MISSED"]
    print(f"{len(missed)} of {sum(outcome.aim is not None for outcome in outcomes)} aims missed")
    return 1 if missed else 0
