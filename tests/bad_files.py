"""Ways in which a file can be wrong: bytes that changed, headers that lie, fields that hold something else."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cmpg.errors import CMPGError

JUNK = [b"1e999", b"-", b"null", b'"1/0"', b'"x"', b"[]", b"{}", b"true", b"1e400000", b"9" * 400, b"[[1]]", b'"inf"']
"""What a slip of the pen may leave in a JSON file."""

WRONG_VALUES = [
    None,
    True,
    -1,
    0,
    2.5,
    10**400,
    "three",
    "1/0",
    "1e99999999999",
    "x" * 10_000,
    [],
    [[]],
    {},
    [None],
    ["a", "b"],
    [1, [2]],
    [[1, 2], [3]],
    [[[1.0]]],
    [1.5, -1],
    [0.5, 0.5],
    [{"a": 1}],
    [10**400],
]
"""What a field may hold by mistake."""


def refused(read: Callable[[], object], path: Path) -> bool:
    """Whether a file is refused; it must be by an error on purpose that names the file, never by another one."""
    try:
        read()
    except CMPGError as problem:
        text = str(problem)
    else:
        return False
    assert str(path) in text
    return True


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes of a file after one small accident."""
    changed = bytearray(data)
    place = int(rng.integers(len(data)))
    accident = rng.integers(5)
    if accident == 0:
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            changed[at] = rng.integers(256)
    elif accident == 1:
        del changed[place:]
    elif accident == 2:
        del changed[place : place + int(rng.integers(1, 5))]
    elif accident == 3:
        changed[place:place] = rng.integers(256, size=3).astype(np.uint8).tobytes()
    else:
        changed[place : place + 1] = JUNK[rng.integers(len(JUNK))]
    return bytes(changed)


def npy(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    """Return the bytes of an array as numpy stores it."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def header(text: str, body: bytes = b"") -> bytes:
    """Return an .npy of the first version with any words as its header."""
    words = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words + body


def write_npz(path: Path, members: dict[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write an archive with any bytes under the names of arrays."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def members_of(path: Path) -> dict[str, bytes]:
    """Return the bytes of every array in an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}


def write_json(path: Path, record: object) -> Path:
    """Write any JSON, infinities and all."""
    path.write_text(json.dumps(record))
    return path


@contextmanager
def a_stranger() -> Iterator[None]:
    """Lose the rights of the owner; root, who has every right, becomes nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
