"""Is `make test` green on any machine? Run it in fresh clones: other Pythons, a busy machine, one core, random orders.

    python -m checks machines              all ten runs; those that this commit has had already are not repeated
    python -m checks machines --only 3.12  the runs whose names contain this text
    python -m checks machines --at-once 3  three at a time: each has the load of the others, and busy loops are shared
    python -m checks machines --list

Logs and outcomes are in build/machines. The order of the tests is random in every run, and part of the outcome, so
that `make test ORDER=…` repeats it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checks import BUILD, DATA, ROOT, evidence
from checks.environments import pythons
from checks.records import Records

FOLDER = BUILD / "machines"
BUSY_LOOPS = 4
INHERITED = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "MAKEFLAGS", "MAKELEVEL")
"""Variables of the environment that a fresh clone does not see."""


@dataclass(frozen=True)
class Machine:
    """How one run of `make test` is made harder."""

    python: str
    busy: bool = False
    one_core: bool = False
    repetition: int = 1

    @property
    def name(self) -> str:
        """What the run is called in tables, and its log."""
        hard = [f"{BUSY_LOOPS} busy loops"] * self.busy + ["one core"] * self.one_core
        return ", ".join([f"Python {self.python}", *hard, f"run {self.repetition}"])


MACHINES = (
    *(Machine(version) for version in ("3.11", "3.12", "3.13")),
    *(Machine(version, busy=True) for version in ("3.11", "3.12", "3.13")),
    *(Machine(version, one_core=True) for version in ("3.11", "3.13")),
    *(Machine(version, repetition=2) for version in ("3.11", "3.12")),
)


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Keep so many processes busy beside what runs inside."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(machine: Machine, python: str, commit: str) -> dict[str, object]:
    """Clone, run `make test`, and return the outcome."""
    log = FOLDER / f"{machine.name.replace(', ', '-').replace(' ', '-')}.log"
    core = ["taskset", "-c", "0"] if machine.one_core else []
    environment = {name: value for name, value in os.environ.items() if name not in INHERITED}
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "cmpg"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "checkout", "--quiet", commit], cwd=clone, check=True)
        if DATA.is_dir():  # the public files, where the tests of a clone look for them
            (clone.parent / "shared").mkdir()
            (clone.parent / "shared" / "data").symlink_to(DATA)
        began = time.monotonic()
        with log.open("w") as output:
            words = [*core, "make", "test", f"PYTHON={python}"]
            code = subprocess.run(words, cwd=clone, env=environment, stdout=output, stderr=output).returncode
    text = log.read_text("utf-8", errors="replace")
    ending = re.findall(r"^.*(?:passed|failed|error).* in .*$", text, re.MULTILINE)
    order = re.findall(r"--order (\d+)", text)
    return {
        "machine": machine.name,
        "commit": commit,
        "passed": code == 0,
        "outcome": ending[-1].strip("= ") if ending else f"ended with {code}",
        "order": int(order[-1]) if order else None,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "failed": re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE),
    }


def main(argv: list[str]) -> int:
    """Run what is missing, and print the table of outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text that the names of the runs contain")
    parser.add_argument("--list", action="store_true", help="print the names of the runs")
    parser.add_argument("--at-once", type=int, default=1, metavar="<int>", help="how many runs share the machine (1)")
    given = parser.parse_args(argv)
    if given.at_once < 1:
        parser.error(f"--at-once is {given.at_once}; at least one run is required.")
    chosen = [machine for machine in MACHINES if given.only in machine.name]
    if given.list:
        print("\n".join(machine.name for machine in chosen))
        return 0
    available = pythons()
    missing = {machine.python for machine in chosen} - set(available)
    if missing:
        parser.error(f"Python {', '.join(sorted(missing))} is not installed here; put it on the path, or use --only.")
    if any(machine.one_core for machine in chosen) and shutil.which("taskset") is None:
        parser.error("taskset is not installed here, and pins a run to one core; use --only.")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    FOLDER.mkdir(parents=True, exist_ok=True)
    records = Records(FOLDER / "outcomes.jsonl", lambda record: (record["machine"], record["commit"]))
    known = {name: each for (name, at), each in records.known.items() if at == commit}

    def begun(machine: Machine) -> dict[str, object]:
        print(f"{machine.name} …", flush=True)
        return run(machine, available[machine.python], commit)

    for busy in (False, True):
        left = [machine for machine in chosen if machine.name not in known and machine.busy is busy]
        with busy_loops(BUSY_LOOPS if left and busy else 0), ThreadPoolExecutor(given.at_once) as pool:
            for ended in as_completed([pool.submit(begun, machine) for machine in left]):
                outcome = records.keep(ended.result())
                known[outcome["machine"]] = outcome
    for machine in chosen:
        each = known[machine.name]
        print(f"{machine.name:36} {'green' if each['passed'] else 'RED':6} {each['outcome']} (--order {each['order']})")
        for test in each["failed"]:
            print(f"    {test}")
    green = sum(bool(known[machine.name]["passed"]) for machine in chosen)
    if chosen == list(MACHINES):
        evidence.record(
            "machines",
            f"{green} of {len(chosen)} runs of `make test` in fresh clones passed: Python 3.11 to 3.13, beside "
            f"{BUSY_LOOPS} busy loops, on one core, in random orders"
            + f", {given.at_once} at once"
            * (given.at_once > 1),
        )
    return 0 if green == len(chosen) else 1
