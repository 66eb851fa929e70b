"""The two containers: `.json`, which people edit and whose numbers are read exactly, and `.npz`, for arrays.

Nothing is unpickled. The header of every array in a `.npz` is checked against the size of the file before anything is
allocated. Writing goes to a temporary file first, so that a reader never meets half a file.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np

from cmpg.checks import FileError

Fields = dict[str, Any]


def read_fields(path: str | Path) -> Fields:
    """Read a `.json` or `.npz` file as a dict; numbers in a `.json` come back as Fractions and ints, exactly as
    written.
    """
    source = Path(path)
    if not source.is_file():
        raise FileError(f"{source}: there is no such file.")
    if source.suffix == ".json":
        return _read_json(source)
    if source.suffix == ".npz":
        return _read_npz(source)
    raise FileError(f"{source}: unknown ending {source.suffix!r}; .json or .npz is required.")


def write_fields(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write a dict of numbers, strings and arrays as `.json` or `.npz`; a Fraction in a `.json` becomes "p/q"."""
    target = Path(path)
    if target.suffix == ".json":
        text = json.dumps({name: _plain(value) for name, value in fields.items()}, indent=1)
        write_atomically(target, lambda stream: stream.write(text.encode()))
    elif target.suffix == ".npz":
        arrays = {name: _storable(name, value) for name, value in fields.items()}
        write_atomically(target, lambda stream: np.savez_compressed(stream, **arrays))
    else:
        raise FileError(f"{target}: unknown ending {target.suffix!r}; .json or .npz is required.")


def write_atomically(target: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write through a temporary file in the same folder, which takes the target's name only when it is whole."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as problem:
        raise FileError(f"{target}: cannot be written ({problem.strerror}).") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_kind(path: str | Path, fields: Fields, *, kind: str) -> None:
    """Raise unless the file says that it is of this kind, in a version that can be read."""
    found = str(fields.get("format", "nothing"))
    if found != kind:
        raise FileError(f"{path}: its format is {found!r}; {kind!r} is required.")
    version = fields.get("version")
    if version is None or int(version) != 1:
        raise FileError(f"{path}: its version is {version}; this release reads version 1.")


def _read_json(source: Path) -> Fields:
    def no_constant(name: str) -> Any:
        raise FileError(f"{source}: {name} is not a number that can be used; every entry must be finite.")

    try:
        fields = json.loads(source.read_text("utf-8"), parse_float=Fraction, parse_constant=no_constant)
    except json.JSONDecodeError as problem:
        raise FileError(f"{source}, line {problem.lineno}: not valid JSON ({problem.msg}).") from None
    except UnicodeDecodeError:
        raise FileError(f"{source}: not a text file.") from None
    if not isinstance(fields, dict):
        raise FileError(f"{source}: a JSON object with named fields is required.")
    return fields


def _read_npz(source: Path) -> Fields:
    try:
        with zipfile.ZipFile(source) as archive:
            for member in archive.infolist():
                _check_member(source, archive, member)
        with np.load(source, allow_pickle=False) as arrays:
            return {name: _scalar(arrays[name]) for name in arrays.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as problem:
        raise FileError(f"{source}: not a whole .npz file ({problem}).") from None


def _check_member(source: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Compare what an array's header promises with what the archive says that it holds."""
    with archive.open(member) as stream:
        major, _ = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        promised = int(np.prod([int(length) for length in shape], dtype=object)) * dtype.itemsize
        if dtype.hasobject:
            raise FileError(f"{source}: {member.filename} holds Python objects, which are never read.")
        if promised != member.file_size - stream.tell():
            raise FileError(f"{source}: {member.filename} promises {promised} bytes and holds {member.file_size}.")


def _scalar(array: Any) -> Any:
    return array.item() if array.ndim == 0 else array


def _plain(value: Any) -> Any:
    """Turn arrays and Fractions into what JSON knows."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else str(value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def _storable(name: str, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype != object:
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise FileError(f"{name} cannot be stored in a .npz file; use .json.") from None
