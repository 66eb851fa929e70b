"""How long a user waits before anything happens: the import, and the first command."""

from __future__ import annotations

import subprocess
import sys
import time

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


def main(*, quick: bool = False) -> None:
    for name, command, limit in CASES:
        seconds = best_of(command, 2 if quick else 5)
        print(f"{name:<24} {seconds:6.2f} s   limit {limit} s   {seconds / limit:5.2f} of it")


if __name__ == "__main__":
    main()
