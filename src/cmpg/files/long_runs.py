"""Folders that are written for as long as a run takes: one writer at a time, and a request that is repeated to go on.

A writer holds a lock that the system takes back when its process ends, however it ends; a second writer is told who the
first one is. `request.json` says what was asked for, with a digest of the game: whoever goes on with `--resume` must
ask for the same, so that what is there and what is added are parts of one run.

`checkpoint.npz` holds the notes of a long solve as JSON, whose arrays are beside it; it is replaced whole, so a process
that is killed while it writes leaves the one before. Nothing is unpickled, and only values of a few known kinds are
built. What it claims is not believed at the end either: certificates are computed anew from the policies.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.arrays import frozen
from cmpg.cmdp.response import BestResponse
from cmpg.equilibrium.loop import Answer
from cmpg.equilibrium.result import Step
from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import (
    Fields,
    check_out_folder,
    json_text,
    plain,
    read_fields,
    write_fields,
    write_text,
)
from cmpg.files.games import fields_of, form_of
from cmpg.games.contract import Game
from cmpg.policy import CompactTable, JointPolicy
from cmpg.runs.checkpoints import Note, Notebook, noting

REQUEST = "request.json"
WRITER = ".writer"

TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")
"""Names of files that were being written when their writer was killed."""


@contextlib.contextmanager
def sole_writer(folder: Path, *, resume: bool = False) -> Iterator[None]:
    """Be the only one who writes into a folder, which is made if it is not there.

    Parameters
    ----------
    folder
        New or empty, unless a run is resumed.
    resume
        Whether what an earlier writer left is kept and gone on from; its half-written files are removed.

    Raises
    ------
    FileError
        Somebody else is writing there, or the folder cannot be written, or not without writing over something.
    """
    _refuse_if_locked(folder)
    if not (resume and folder.is_dir() and not folder.is_symlink()):
        check_out_folder(folder)
    try:
        folder.mkdir(exist_ok=True)
        lock = _locked(folder)
    except OSError as problem:
        raise FileError(f"{folder}: cannot be written ({problem.strerror or problem}). Name another folder.") from None
    try:
        left = [each for each in folder.iterdir() if each.name != WRITER]
        if left and not resume:
            raise FileError(f"{folder}: is not empty; nothing is written over. Name a new folder, or empty it.")
        for each in left:
            if TEMPORARY.fullmatch(each.name) and each.is_file():
                each.unlink()
        yield
    finally:
        (folder / WRITER).unlink(missing_ok=True)
        os.close(lock)


def _refuse_if_locked(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / WRITER, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if not _try_lock(descriptor):
                raise _occupied(folder, os.pread(descriptor, 200, 0))
        finally:
            os.close(descriptor)


def _locked(folder: Path) -> int:
    """Lock the writer's file, and return its descriptor."""
    path = folder / WRITER
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        if not _try_lock(descriptor):
            told = os.pread(descriptor, 200, 0)
            os.close(descriptor)
            raise _occupied(folder, told)
        # Whoever had it before may have removed it between the two lines above; then it is nobody's lock.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                break
        os.close(descriptor)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    return descriptor


def _try_lock(descriptor: int) -> bool:
    """Take a lock that ends with this process, or return False if somebody else has it."""
    try:
        import fcntl
    except ImportError:  # a system without such locks: folders are told apart by their users
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _occupied(folder: Path, told: bytes) -> FileError:
    who = told.decode(errors="replace") or "somebody else"
    return FileError(f"{folder}: {who} is writing there. Wait until it is done, or name another folder.")


def write_request(folder: Path, request: Mapping[str, Any]) -> None:
    """Write down what is asked for."""
    write_text(folder / REQUEST, json_text(_whole(request)))


def check_request(folder: Path, request: Mapping[str, Any]) -> bool:
    """Return whether a run was begun in a folder; raise if it was another one than is asked for now."""
    path = folder / REQUEST
    if not path.exists():
        left = [each.name for each in folder.iterdir() if each.name != WRITER]
        if left:
            raise FileError(f"{folder}: holds {left[0]}, and no run that could be resumed. Name another folder.")
        return False
    known, asked = read_fields(path, kind="cmpg-request"), _whole(request)
    for name in sorted({*known, *asked}):
        then, now = known.get(name), asked.get(name)
        if then != now:
            what = f"with {name} {json.dumps(then)}, and {json.dumps(now)} is asked for now"
            what = "with another game" if name == "game" else what
            raise FileError(f"{folder}: the run there was begun {what}. Ask for the same, or name another folder.")
    return True


def _whole(request: Mapping[str, Any]) -> Fields:
    kind = {"format": "cmpg-request", "version": 1, "cmpg": __version__}
    return {name: plain(value) for name, value in {**kind, **request}.items()}


def game_digest(game: Game) -> str:
    """Return a digest that two games share only if they are written with the same numbers and names."""
    if form_of(game) is None:
        raise FileError(f"a {type(game).__name__} has no file form, so no run of it can be resumed.")
    digest = hashlib.sha256()
    for name, value in sorted(fields_of(game).items()):
        table = np.asarray(value)
        content = repr(table.tolist()).encode() if table.dtype == object else np.ascontiguousarray(table).tobytes()
        digest.update(f"{name} {table.dtype} {table.shape} ".encode() + content)
    return digest.hexdigest()


CHECKPOINT = "checkpoint.npz"

KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "policy": (JointPolicy, ("stored",)),
    "compact": (CompactTable, ("actions", "num_actions", "mixed", "rows")),
    "answer": (Answer, ("table", "gain", "detail")),
    "response": (BestResponse, ("policy", "value", "costs", "multipliers", "bound", "work")),
}
"""What may be built, and from which fields."""

COLUMNS = ("iteration", "gain", "potential", "seconds", "moves")
"""The numbers of a step."""


def write_checkpoint(path: Path, notes: Mapping[str, Note]) -> None:
    """Replace a checkpoint by what is noted now."""
    packing = _Packing()
    text = json.dumps(packing.packed(notes))
    layout, pools = packing.pooled()
    fields = {"format": "cmpg-checkpoint", "version": 1, "notes": text, "layout": json.dumps(layout)}
    write_fields(path, {**fields, **pools})


def read_checkpoint(path: Path) -> dict[str, Note]:
    """Read a checkpoint; raise FileError if it is not a whole one."""
    fields = read_fields(path, kind="cmpg-checkpoint")
    try:
        notes = _unpacked(json.loads(fields["notes"]), _arrays(fields))
        return {str(name): dict(note) for name, note in notes.items()}
    except (CMPGError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise FileError(f"{path}: is not a whole checkpoint ({problem}). Remove it, and solve again.") from None


class LongRun:
    """A run in a folder of its own, which is held until the run is over, broken off or killed."""

    def __init__(self, folder: Path, notebook: Notebook) -> None:
        self._folder, self._notebook, self._over = folder, notebook, False

    def over(self) -> None:
        """Say that the run is over and kept: nothing is left to resume."""
        self._over = True
        (self._folder / CHECKPOINT).unlink(missing_ok=True)

    def flush(self) -> None:
        """Write down what was noted last, unless the run is over."""
        if not self._over and self._notebook.notes:
            self._notebook.write()


@contextlib.contextmanager
def long_run(
    folder: Path,
    request: Mapping[str, Any],
    *,
    every: float,
    resume: bool,
    on_failure: Callable[[FileError], None] = lambda _: None,
) -> Iterator[LongRun]:
    """Keep checkpoints of what is solved inside, and go on from one that is there.

    Parameters
    ----------
    folder
        New or empty, unless a run is resumed.
    request
        All that the result depends on; a run that is resumed must have been begun with the same.
    every
        Seconds between two checkpoints.
    resume
        Whether to go on.
    on_failure
        Told when a checkpoint cannot be written: the run goes on, and the last checkpoint is still there.
    """
    path = folder / CHECKPOINT

    def write(notes: Mapping[str, Note]) -> None:
        try:
            write_checkpoint(path, notes)
        except FileError as problem:
            on_failure(problem)

    with sole_writer(folder, resume=resume):
        if not check_request(folder, request):
            write_request(folder, request)
        notebook = Notebook(write, every=every, known=read_checkpoint(path) if path.exists() else {})
        run = LongRun(folder, notebook)
        with noting(notebook):
            try:
                yield run
            finally:
                run.flush()


class _Packing:
    """Turns values into JSON, and collects their arrays; an array that is shared is there once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._places: dict[int, int] = {}

    def packed(self, value: Any) -> Any:
        """Return a value as JSON knows it."""
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, np.ndarray):
            return {"array": self._place(value)}
        if isinstance(value, Mapping):
            return {"map": [[self.packed(key), self.packed(each)] for key, each in value.items()]}
        if isinstance(value, (list, tuple)):
            if value and all(isinstance(each, Step) for each in value):
                return {"steps": {name: self._place(column) for name, column in _columns(value).items()}}
            return {"list": [self.packed(each) for each in value]}
        for kind, (known, names) in KINDS.items():
            if type(value) is known:
                return {"kind": kind, "fields": {name: self.packed(getattr(value, name)) for name in names}}
        raise FileError(f"a {type(value).__name__} cannot be written into a checkpoint.")

    def _place(self, array: Any) -> int:
        if id(array) not in self._places:
            self._places[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._places[id(array)]

    def pooled(self) -> tuple[list[tuple[str, int, list[int]]], dict[str, Any]]:
        """Return for each array its pool, its place there and its shape, and the pools, one for each kind of number.

        The arrays are many and small, and a file of a few long ones is written and read a hundred times as fast.
        """
        members: dict[str, list[Any]] = {}
        filled: Counter[str] = Counter()
        layout = []
        for array in map(np.asarray, self.arrays):
            name = f"pool_{array.dtype.name}"
            layout.append((name, filled[name], list(array.shape)))
            members.setdefault(name, []).append(array.ravel())
            filled[name] += array.size
        return layout, {name: np.concatenate(pool) for name, pool in members.items()}


def _arrays(fields: Fields) -> list[Any]:
    """Take the arrays out of their pools."""
    layout = [(np.atleast_1d(fields[pool]), first, shape) for pool, first, shape in json.loads(fields["layout"])]
    return [frozen(pool[first : first + math.prod(shape)].reshape(shape)) for pool, first, shape in layout]


def _columns(steps: Sequence[Step]) -> dict[str, Any]:
    """Return steps as columns; a mover of −1 is none, and multipliers are nan where nobody pays."""
    nothing = np.full(len(steps[0].costs), np.nan)
    columns = {name: np.array([getattr(step, name) for step in steps]) for name in COLUMNS}
    return {
        **columns,
        "mover": np.array([-1 if step.mover is None else step.mover for step in steps]),
        "gains": np.array([step.gains for step in steps]),
        "costs": np.array([step.costs for step in steps]),
        "paid": np.array([step.multipliers is not None for step in steps]),
        "multipliers": np.array([nothing if step.multipliers is None else step.multipliers for step in steps]),
    }


def _steps(columns: Mapping[str, Any]) -> tuple[Step, ...]:
    rows = zip(*(columns[name].tolist() for name in (*COLUMNS, "mover", "paid")), strict=True)
    return tuple(
        Step(
            iteration=iteration,
            mover=None if mover < 0 else mover,
            gain=gain,
            gains=columns["gains"][place],
            costs=columns["costs"][place],
            potential=potential,
            seconds=seconds,
            multipliers=columns["multipliers"][place] if paid else None,
            moves=moves,
        )
        for place, (iteration, gain, potential, seconds, moves, mover, paid) in enumerate(rows)
    )


def _unpacked(value: Any, arrays: Sequence[Any]) -> Any:
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        return bytes.fromhex(value["bytes"])
    if "array" in value:
        return arrays[value["array"]]
    if "map" in value:
        return {_unpacked(key, arrays): _unpacked(each, arrays) for key, each in value["map"]}
    if "list" in value:
        return tuple(_unpacked(each, arrays) for each in value["list"])
    if "steps" in value:
        return _steps({name: arrays[place] for name, place in value["steps"].items()})
    known, names = KINDS[value["kind"]]
    return known(**{name: _unpacked(value["fields"][name], arrays) for name in names})
