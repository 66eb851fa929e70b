"""`python -m checks bench [--quick] [--page FILE] [name …]`: ratios against what a user would pick instead.

Each benchmark is a module with `main(quick)`, which prints as it goes and returns its outcomes. The last table has all
of them beside their aims, and the exit code is 1 where one is missed. "Open" is a ratio that is not decided, because
the other side was stopped at its time limit.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import time
from functools import partial
from pathlib import Path
from types import ModuleType

from checks.bench.outcome import Outcome, or_broken
from checks.bench.page import page, read_page

NAMES = ("start_up", "cmdp", "joint", "counting", "extended", "local", "simulation")


def committed(page: Path) -> str:
    """Return a page as it was last committed, so that running twice does not compare a run with itself."""
    shown = ["git", "-C", str(page.absolute().parent), "show", f"HEAD:./{page.name}"]
    found = subprocess.run(shown, capture_output=True, check=False)
    if found.returncode == 0:
        return found.stdout.decode()
    return page.read_text(encoding="utf-8") if page.exists() else ""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m checks bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; all unless given")
    parser.add_argument("--quick", action="store_true", help="small sizes and short limits: a few minutes in all")
    parser.add_argument("--page", type=Path, help="write the last table to this file, as Markdown")
    given = parser.parse_args(argv)
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}.")
    load, began = os.getloadavg()[0], time.perf_counter()
    print(f"{os.cpu_count()} cores, load {load:.1f} at the beginning")
    found: dict[ModuleType, list[Outcome]] = {}
    for name in given.names or NAMES:
        print(f"\n== {name} ==", flush=True)
        benchmark = importlib.import_module(f"checks.bench.{name}")
        start = time.perf_counter()
        found[benchmark] = or_broken(name, partial(benchmark.main, given.quick))
        print(f"{name} took {time.perf_counter() - start:.0f} s", flush=True)
    outcomes = [outcome for each in found.values() for outcome in each]
    print("\n== side by side ==")
    print("\n".join(map(str, outcomes)))
    if given.page is not None:
        minutes = (time.perf_counter() - began) / 60
        given.page.write_text(
            page(found, load=load, minutes=minutes, before=read_page(committed(given.page))), encoding="utf-8"
        )
    missed = [outcome for outcome in outcomes if outcome.verdict == "MISSED"]
    print(f"{len(missed)} of {sum(outcome.aim is not None for outcome in outcomes)} aims missed")
    return 1 if missed else 0
