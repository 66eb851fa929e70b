"""Try spoilt files at a door, or solve games with hard numbers, and tell what broke: a bad error, time, or memory."""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

import cmpg
from cmpg.errors import CMPGError
from fuzzing.doors import BY_NAME
from fuzzing.mutations import spoil_numbers

LOAD_SECONDS = 2.0
"""A file below a megabyte is read, or refused, within this."""

LOAD_MEGABYTES = 200
"""And within this much memory."""

SOLVE_SECONDS = 10.0
"""A game of a few numbers is solved, or given up, within this."""


@dataclass(frozen=True)
class Finding:
    """Something that broke, with the bytes that broke it."""

    door: str
    problem: str
    data: bytes


class _SlowError(BaseException):
    """The time is up; no reader may catch this by accident."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `_SlowError` after so many seconds of this process's own time; others may keep the machine busy."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise _SlowError

    before = signal.signal(signal.SIGVTALRM, ring)
    traced = sys.gettrace() is not None  # whoever measures coverage pays many times over for every line
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds * (20 if traced else 1))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def try_door(name: str, numbers: range) -> list[Finding]:
    """Try spoilt files, one for each number, at a door."""
    door, found = BY_NAME[name], []
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as where, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(where)
        door.prepare(folder)
        for number in numbers:
            data = door.spoilt(Random(f"{name}/{number}"))
            before = _megabytes()
            try:
                with at_most(LOAD_SECONDS):
                    problem = door.try_file(folder, data)
            except _SlowError:
                problem = f"takes more than {LOAD_SECONDS:g} seconds"
            if problem is None and _megabytes() > before + LOAD_MEGABYTES:
                problem = f"takes {_megabytes() - before:.0f} MB"
            if problem is not None:
                found.append(Finding(name, problem, data))
    return found


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def try_solving(numbers: range) -> tuple[int, list[Finding]]:
    """Solve games with hard numbers, one for each number, and return how many could be read, and what broke."""
    seeds, found, solved = BY_NAME["game json"].seeds(), [], 0
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as where, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(where) / "game.json"
        for number in numbers:
            rng = Random(f"solve/{number}")
            data = spoil_numbers(seeds[rng.randrange(len(seeds))], rng)
            path.write_bytes(data)
            try:
                game = cmpg.load_game(path)
            except CMPGError:
                continue
            solved += 1
            problem = None
            try:
                with at_most(SOLVE_SECONDS):
                    cmpg.solve(game, time_limit=SOLVE_SECONDS / 2)
            except _SlowError:
                problem = f"takes more than {SOLVE_SECONDS:g} seconds, with a limit of half of that"
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            if problem is not None:
                found.append(Finding("solve", problem, data))
    return solved, found
