"""Folders that are written for as long as a run takes: one writer at a time, and a request that is repeated to resume.

A writer holds a lock that the system releases when its process ends, however it ends; a second writer gets an error
that names the first. `request.json` holds what was requested, with a digest of the game: `--resume` requires the same
request, so that what is there and what is added are parts of one run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.errors import FileError
from cmpg.files.containers import (
    Fields,
    check_out_folder,
    json_text,
    plain_fields,
    read_fields,
    unwritable,
    write_text,
)
from cmpg.files.games import fields_of, form_of
from cmpg.games.game import Game

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
        Another process is writing there, or the folder cannot be written, or not without overwriting something.
    """
    _refuse_if_locked(folder)
    if not (resume and folder.is_dir() and not folder.is_symlink()):
        check_out_folder(folder)
    try:
        folder.mkdir(exist_ok=True)
        lock = _locked(folder)
    except OSError as problem:
        raise unwritable(folder, problem, "Name another folder.") from None
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
            writer = os.pread(descriptor, 200, 0)
            os.close(descriptor)
            raise _occupied(folder, writer)
        # Its last holder may have removed the file between the two lines above; then this locks no file of the folder.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                break
        os.close(descriptor)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    return descriptor


def _try_lock(descriptor: int) -> bool:
    """Take a lock that ends with this process, or return False if another process has it."""
    try:
        import fcntl
    except ImportError:  # a system without such locks: users have to keep their folders apart
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _occupied(folder: Path, writer: bytes) -> FileError:
    who = writer.decode(errors="replace") or "another process"
    return FileError(f"{folder}: {who} is writing there. Wait until it is done, or name another folder.")


def write_request(folder: Path, request: Mapping[str, Any]) -> None:
    """Write down the request."""
    write_text(folder / REQUEST, json_text(_whole(request)))


def is_begun(folder: Path) -> bool:
    """Return whether a folder holds the request of a run."""
    return (folder / REQUEST).exists()


def check_request(folder: Path, request: Mapping[str, Any], *, ignoring: Collection[str] = ()) -> bool:
    """Return whether a run was begun in a folder; raise if it was begun with another request, but for some fields."""
    path = folder / REQUEST
    if not path.exists():
        left = [each.name for each in folder.iterdir() if each.name != WRITER]
        if left:
            raise FileError(f"{folder}: holds {left[0]}, and no run that could be resumed. Name another folder.")
        return False
    known, current = read_fields(path, kind="cmpg-request"), _whole(request)
    for name in sorted({*known, *current} - set(ignoring)):
        then, now = known.get(name), current.get(name)
        if then != now:
            what = "with another game" if name == "game" else f"with {_difference(name, then, now)}"
            raise FileError(f"{folder}: the run there was begun {what}. Request the same, or name another folder.")
    return True


def _difference(name: str, then: Any, now: Any) -> str:
    """Say in what two values differ; of mappings, the first entry that does.

    Examples
    --------
    >>> _difference("options", {"seed": [1, 2, 3, 4, 5]}, {"seed": [1]})
    'seed 1, 2, …, 5 (5 values), and 1 is requested now'
    """
    if isinstance(then, dict) and isinstance(now, dict):
        first = next(each for each in sorted({*then, *now}) if then.get(each) != now.get(each))
        return _difference(first, then.get(first), now.get(first))
    if then is None:
        return f"no {name}, and {_brief(now)} is requested now"
    return f"{name} {_brief(then)}, and {'none' if now is None else _brief(now)} is requested now"


def _brief(value: Any) -> str:
    if isinstance(value, list):
        words = [_brief(each) for each in value]
        return ", ".join(words) if len(words) <= 4 else f"{words[0]}, {words[1]}, …, {words[-1]} ({len(words)} values)"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _whole(request: Mapping[str, Any]) -> Fields:
    return plain_fields({"format": "cmpg-request", "version": 1, "cmpg": __version__, **request})


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
