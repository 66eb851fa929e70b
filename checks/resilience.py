"""Kill what is long, again and again, and see that nothing is torn and nothing lost.

python -m checks resilience [--sessions FILE] [--kills 20] [--only sweep learn speed]

A sweep of 60 charging games and `learn --seeds 20` are run whole once. Then each is killed with SIGKILL at random
moments, resumed, killed again, … until it is over, and compared with the whole one: results.csv by its SHA-256,
policies byte for byte, records but for their seconds. Workers are killed, too, on this machine and of a dask cluster.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

DAYS = "2019-06-10..2019-06-14"
SWEEP = ["sweep", "charging", "--day", DAYS, "--capacity", "4,6,8,10", "--threshold", "0.1,0.5,2"]
SAMPLE_SWEEP = ["sweep", "charging", "--capacity", "1:20", "--threshold", "0.1,0.5,2"]
LEARN = ["learn", "spectrum", "--epsilon", "0.3", "--seeds", "20", "--seed", "7"]

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def started(*words: str) -> subprocess.Popen[bytes]:
    """Begin a command, in a session of its own."""
    line = [sys.executable, "-m", "cmpg", *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(line, stdout=quiet, stderr=quiet, env=ENVIRONMENT, start_new_session=True)


def whole(*words: str) -> float:
    """Run a command to its end, and return the seconds that it took."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "cmpg", *words], check=False, capture_output=True, env=ENVIRONMENT)
    return time.perf_counter() - began


def digest(folder: Path) -> str:
    """Return what a sweep must end with."""
    return hashlib.sha256((folder / "results.csv").read_bytes()).hexdigest()


def learned(folder: Path) -> str:
    """Return what a learning run must end with: all but the seconds."""
    records = [json.loads(line) for line in (folder / "seeds.jsonl").read_text().splitlines()]
    for record in records:
        del record["seconds"]
    policies = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.npz"))]
    return hashlib.sha256(json.dumps([records, policies]).encode()).hexdigest()


def wait_randomly(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a random time, or until the command is over."""
    end = time.monotonic() + random.uniform(0.0, seconds)
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.005)


def killed_until_done(
    words: list[str], folder: Path, *, kills: int, seconds: float, outcome: Callable[[Path], str], want: str
) -> tuple[int, int, int]:
    """Kill and resume; return kills, runs that were brought to their end, and wrong ones."""
    done = ended = wrong = 0
    while done < kills:
        target = folder / f"try_{ended}"
        process = started(*words, "--out", str(target), "--resume")
        wait_randomly(process, seconds)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            done += 1
        process.wait()
        if done % 5 == 0 or done == kills or process.returncode == 0:
            whole(*words, "--out", str(target), "--resume")
            wrong += outcome(target) != want
            ended += 1
    return done, ended, wrong


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    direct = [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and f"\nPPid:\t{pid}\n" in (_status(path) or "")
    ]
    return direct + [each for child in direct for each in children(child)]


def _status(path: Path) -> str | None:
    try:
        return (path / "status").read_text()
    except OSError:
        return None


def worker_killed(words: list[str], folder: Path, *, runs: int) -> bool:
    """Kill a busy worker once some runs are there; return whether one was killed."""
    process = started(*words, "--out", str(folder))
    while process.poll() is None and len(list(folder.glob("runs/0*"))) < runs:
        time.sleep(0.02)
    busy = [pid for pid in children(process.pid) if b"resource_tracker" not in _line(pid)]
    hit = False
    if process.poll() is None and busy:
        os.kill(max(busy, key=_ticks), signal.SIGKILL)
        hit = True
    process.wait()
    return hit


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"resource_tracker"


def _ticks(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
    except OSError:
        return -1


def main(argv: list[str]) -> int:
    """Run what was chosen; return 1 if anything came out otherwise."""
    given = _arguments(argv)
    random.seed(given.seed)
    sweep = SAMPLE_SWEEP if given.sessions is None else [*SWEEP, "--sessions", str(given.sessions)]
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        if "sweep" in given.only or "speed" in given.only:
            alone = whole(*sweep, "--out", str(base / "one"))
            want = digest(base / "one")
            print(f"sweep of {len(list((base / 'one' / 'runs').iterdir()))} games: {want[:16]}", flush=True)
        if "speed" in given.only:
            two = whole(*sweep, "--out", str(base / "two"), "--jobs", "2")
            same = digest(base / "two") == want
            failed += not same
            load, text = os.getloadavg()[0], _described(same)
            print(
                f"jobs 1: {alone:.1f} s, jobs 2: {two:.1f} s, {alone / two:.2f} times as fast (load {load:.1f}), {text}"
            )
        if "sweep" in given.only:
            whole(*sweep, "--out", str(base / "dask"), "--jobs", "2", "--backend", "dask")
            same = digest(base / "dask") == want
            print(f"dask with 2 workers: {_described(same)}", flush=True)
            failed += not same
            for number, backend in enumerate(("loky", "dask")):
                folder = base / f"worker_{number}"
                hit = worker_killed([*sweep, "--jobs", "2", "--backend", backend], folder, runs=5)
                same = digest(folder) == want
                print(f"{backend}, a worker killed: {hit}, {_described(same)}", flush=True)
                failed += not (same and hit)
            failed += _killed("sweep", sweep, base, digest, want, kills=given.kills, seconds=alone / 3)
        if "learn" in given.only:
            seconds = whole(*LEARN, "--out", str(base / "learn"))
            want = learned(base / "learn")
            failed += _killed("learn", LEARN, base, learned, want, kills=given.kills, seconds=seconds / 3)
    return 1 if failed else 0


def _described(same: bool) -> str:
    return "the same bytes" if same else "OTHER BYTES"


def _killed(
    what: str,
    words: list[str],
    base: Path,
    outcome: Callable[[Path], str],
    want: str,
    *,
    kills: int,
    seconds: float,
) -> int:
    """Kill a command again and again, say how that went, and return how many runs came out otherwise."""
    folder = base / f"{what}, killed"
    folder.mkdir()
    done, ended, wrong = killed_until_done(words, folder, kills=kills, seconds=seconds, outcome=outcome, want=want)
    print(f"{what}: {done} kills; {ended} runs brought to their end, {wrong} with other bytes", flush=True)
    return wrong


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Kill what is long, and see that nothing is lost.")
    parser.add_argument("--sessions", type=Path, help="ACN session file of summer 2019; the sample if omitted")
    parser.add_argument("--kills", type=int, default=20, help="kills of the sweep's and of the learner's client")
    parser.add_argument("--seed", type=int, default=1, help="for the moments of the kills")
    parser.add_argument("--only", nargs="+", default=["speed", "sweep", "learn"])
    return parser.parse_args(argv)
