"""Ask for a hundred things that are too large, in an address space of 1 GiB: each is answered, or refused with a size.

    python -m checks oversized [--requests 100]

None may be killed, end in a traceback, or say nothing for more than five seconds. Prints one line for each request that
did, and the counts; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from checks import ROOT

GIBIBYTE = 1 << 30
PATIENCE = 60.0
SIZE = re.compile(r"\d[\d.,e+]*\s*(kB|MB|GB|TB|GiB|MiB|agents|entries|numbers|states|bytes|joint actions)")


def requests(folder: Path) -> list[list[str]]:
    """Return the command lines."""
    found: list[list[str]] = []
    for size in (30, 50, 100, 300, 1_000, 10_000):
        found.append(["solve", "grid-world", "--width", f"{size}", "--height", f"{size}"])
        found.append(["check", "grid-world", "--width", f"{size}", "--height", f"{size}"])
    for size in (300, 1_000, 3_000, 100_000):
        found.append(["solve", "grid-world-local", "--width", f"{size}", "--height", f"{size}", "--time-limit", "20"])
    for horizon in (10_000, 100_000, 1_000_000, 40_000_000, 10**9, 10**12):
        for name in ("grid-world", "grid-world-local", "congestion", "congestion-counting", "spectrum", "charging"):
            options = [] if name == "charging" else ["--horizon", f"{horizon}"]
            found.append(["solve", name, *options, "--time-limit", "20"])
    for agents in (12, 40, 1_000, 10**6, 10**9, 10**15):
        for name in ("congestion", "congestion-counting", "spectrum", "routing", "robots"):
            found.append(["solve", name, "--agents", f"{agents}", "--time-limit", "20"])
    for horizon in (10**5, 10**6, 4 * 10**7, 10**9, 10**15):
        path = folder / f"horizon_{horizon}.json"
        path.write_text(json.dumps(SMALL | {"horizon": horizon}), "utf-8")
        found.append(["solve", str(path), "--time-limit", "20"])
        found.append(["solve", str(path)])
        found.append(["check", str(path)])
        found.append(["convert", str(path), str(folder / f"horizon_{horizon}.csv")])
    return found


SMALL = {
    "format": "cmpg-game",
    "version": 1,
    "form": "joint",
    "initial": [1],
    "transition": [[[[[1], [1]], [[1], [1]]]]],
    "rewards": [[[[[3, 2], [2, 4]]]]] * 2,
    "costs": [[[[[0, 0], [0, 1]]]]],
    "thresholds": [0.5],
}


def attempt(words: list[str]) -> tuple[str, str]:
    """Run one request; return how it ended, and what is wrong with that."""
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    running = subprocess.Popen(
        [sys.executable, "-m", "cmpg", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | limits,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (GIBIBYTE, GIBIBYTE)),
    )
    assert running.stdout is not None
    output, began = b"", time.monotonic()
    heard, silence = began, 0.0
    while True:
        ready, _, _ = select.select([running.stdout], [], [], 0.1)
        now = time.monotonic()
        silence = max(silence, now - heard)
        if ready:
            piece = os.read(running.stdout.fileno(), 65_536)
            if not piece:
                break
            output, heard = output + piece, now
        if now - began > PATIENCE:
            running.kill()
            break
    code, said = running.wait(), output.decode("utf-8", "replace")
    ending = {0: "answered", 1: "ended without a certificate", 2: "refused"}.get(code, f"ended with {code}")
    if code not in (0, 1, 2):
        return ending, f"ended with {code} after {now - began:.0f} s: {said[-200:]!r}"
    if "Traceback" in said:
        return ending, f"ended in a traceback: {said[-300:]!r}"
    if code == 2 and not SIZE.search(said):
        return ending, f"was refused without a size: {said[-300:]!r}"
    if silence > 5:
        return ending, f"was silent for {silence:.1f} s"
    return ending, ""


def main(argv: list[str]) -> int:
    """Ask for everything, and say how it went."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--requests", type=int, default=100)
    endings: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for words in requests(Path(folder))[: options.parse_args(argv).requests]:
            ending, mistake = attempt(words)
            endings[ending] += 1
            if mistake:
                wrong += 1
                print(f"cmpg {' '.join(words)}: {mistake}", flush=True)
    for ending, count in endings.most_common():
        print(f"{count:5d}  {ending}")
    print(f"{sum(endings.values())} requests, {wrong} mistakes")
    return 1 if wrong else 0
