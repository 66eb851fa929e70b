"""How long a user waits before anything happens: the import, and the first command, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import time

from checks.bench.outcome import Outcome

CASES = (
    ("import cmpg", [sys.executable, "-c", "import cmpg"], 0.4),
    ("cmpg solve grid-world", [sys.executable, "-m", "cmpg", "solve", "grid-world"], 3.0),
)


def best_of(command: list[str], times: int) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main(quick: bool) -> list[Outcome]:
    times = 2 if quick else 5
    outcomes = []
    for name, command, aim in CASES:
        seconds = best_of(command, times)
        print(f"{name:<24} {seconds:6.2f} s, the best of {times}", flush=True)
        outcomes.append(Outcome(name, seconds, aim, unit="s", at_most=True))
    return outcomes
