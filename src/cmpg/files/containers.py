"""The two containers: `.json`, which people edit and whose numbers can be read exactly, and `.npz`, for arrays.

Nothing is unpickled. What the header of an array in a `.npz` promises is compared with what the archive holds, and that
with the size of the file, before anything is allocated. Writing goes to a temporary file first, so that a reader never
meets half a file, and a failure leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import reprlib
import secrets
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from cmpg.arrays import FloatArray, numbers, rational, to_exact, to_floats
from cmpg.errors import CMPGError, FileError, GameError

Fields = dict[str, Any]

ENDINGS = (".json", ".npz")

MAX_RATIO = 1040
"""Deflate makes nothing smaller than 1 in 1032: an archive that promises more is forged."""

JSON_COLUMNS = 100
"""Lists and objects that are longer than this are broken into lines."""


def read_fields(path: str | Path, *, exact: bool = False) -> Fields:
    """Read a `.json` or `.npz` file as a dict; with `exact`, decimals in a `.json` come back as Fractions."""
    source = Path(path)
    ending = _checked_ending(source)
    try:
        if source.is_dir():
            raise FileError(f"{source}: is a folder; name the file in it.")
        if not source.exists():
            raise FileError(f"{source}: there is no such file. Check the name and the folder.")
        return _read_json(source, exact) if ending == ".json" else _read_npz(source)
    except OSError as problem:
        raise FileError(f"{source}: cannot be read ({_reason(problem)}).") from None
    except MemoryError:
        raise FileError(f"{source}: does not fit into memory.") from None


def write_fields(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write a dict of numbers, strings and arrays as `.json` or `.npz`; a Fraction in a `.json` becomes "p/q"."""
    target = Path(path)
    if _checked_ending(target) == ".json":
        text = json_text({name: _plain(value) for name, value in fields.items()})
        write_atomically(target, lambda stream: stream.write(text.encode(errors="backslashreplace")))
    else:
        arrays = {name: _storable(name, value) for name, value in fields.items()}
        write_atomically(target, lambda stream: np.savez_compressed(stream, **arrays))


def write_atomically(target: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write through a temporary file in the same folder, which takes the target's name only when it is whole."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            with open(temporary, "xb") as stream:
                write(stream)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as problem:
        raise FileError(
            f"{target}: cannot be written ({_reason(problem)}). Name a file in a folder that exists and is yours."
        ) from None


def check_kind(path: str | Path, fields: Fields, *, kind: str) -> None:
    """Raise unless the file says that it is of this kind, in a version that can be read."""
    if "format" not in fields:
        raise FileError(f"{path}: has no field 'format'; 'format': {kind!r} is required.")
    found, version = fields["format"], fields.get("version")
    if not isinstance(found, str) or found != kind:
        raise FileError(f"{path}: its format is {reprlib.repr(found)}; {kind!r} is required.")
    if type(version) is not int or version != 1:
        raise FileError(f"{path}: its version is {reprlib.repr(version)}; this release reads version 1.")


def number_table(name: str, value: Any, *, exact: bool = False, error: type[CMPGError] = GameError) -> FloatArray:
    """Return a field as a read-only array of finite floats or, with `exact`, of Fractions; "1/3" is one third.

    Examples
    --------
    >>> number_table("initial", ["1/4", 0.75])
    array([0.25, 0.75])
    """
    if isinstance(value, np.ndarray):
        array = numbers(name, value, error=error)
    else:
        array = _table_of_lists(name, value, exact=exact, error=error)
    return to_exact(array) if exact else to_floats(array)


def _table_of_lists(name: str, value: Any, *, exact: bool, error: type[CMPGError]) -> FloatArray:
    """Read nested lists; numpy is never asked for an array of strings, which would be as wide as the longest."""
    raw = np.array(value, dtype=object)
    if not exact and all(isinstance(entry, (int, float)) for entry in raw.flat):
        with contextlib.suppress(OverflowError):
            return numbers(name, raw.astype(np.float64), error=error)
    return numbers(name, raw, error=error)


def _checked_ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"{path}: its ending is {ending!r}; {' or '.join(ENDINGS)} is required.")
    return ending


def _reason(problem: OSError) -> str:
    return problem.strerror or type(problem).__name__


def _read_json(source: Path, exact: bool) -> Fields:
    def no_constant(name: str) -> Any:
        raise FileError(f"{source}: {name} is no number that can be used; every entry must be finite.")

    def unique(pairs: list[tuple[str, Any]]) -> Fields:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice = next(name for name in fields if sum(name == other for other, _ in pairs) > 1)
            raise FileError(f"{source}: the field {twice!r} is there more than once; keep one.")
        return fields

    try:
        text = source.read_text("utf-8-sig")
        read_float = rational if exact else float
        fields = json.loads(text, parse_float=read_float, parse_constant=no_constant, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        raise FileError(f"{source}, line {problem.lineno}: not valid JSON ({problem.msg}).") from None
    except UnicodeDecodeError:
        raise FileError(f"{source}: is not a text file, though its name says JSON.") from None
    except RecursionError:
        raise FileError(f"{source}: its lists are nested too deeply for any table.") from None
    except ValueError as problem:
        raise FileError(f"{source}: holds a number that cannot be read ({problem}).") from None
    if not isinstance(fields, dict):
        raise FileError(f"{source}: a JSON object with named fields, {{…}}, is required.")
    return fields


def _read_npz(source: Path) -> Fields:
    unreadable = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, TokenError, Warning)
    try:
        # numpy warns of headers that it has to guess at: such a file is not one of ours.
        with warnings.catch_warnings(action="error"), zipfile.ZipFile(source) as archive:
            members = archive.infolist()
            _check_archive(source, members)
            return {member.filename.removesuffix(".npy"): _read_member(source, archive, member) for member in members}
    except unreadable as problem:
        raise FileError(f"{source}: is not a whole .npz file ({problem}).") from None


def _check_archive(source: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise where the archive promises more than its bytes can hold, or holds what numpy never writes."""
    if len({member.filename for member in members}) < len(members):
        raise FileError(f"{source}: has two arrays of the same name; every field is there once.")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise FileError(f"{source}: {member.filename} is packed in a way that numpy does not use.")
        if member.file_size > MAX_RATIO * member.compress_size:
            raise FileError(f"{source}: {member.filename} promises {member.file_size} bytes, which it cannot hold.")
    if sum(member.compress_size for member in members) > source.stat().st_size:
        raise FileError(f"{source}: its arrays promise more bytes than the file has.")


def _read_member(source: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Compare what an array's header promises with what the archive holds, and only then read the array."""
    with archive.open(member) as stream:
        major, _ = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        held = member.file_size - stream.tell()
    if dtype.kind not in "biufU" or dtype.itemsize == 0:
        raise FileError(f"{source}: {member.filename} holds {dtype} entries; only numbers and names are read.")
    promised = int(np.prod([int(length) for length in shape], dtype=object)) * dtype.itemsize
    if promised != held or any(length < 0 for length in shape):
        raise FileError(f"{source}: {member.filename} promises {promised} bytes and holds {held}.")
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    return array.item() if array.ndim == 0 else array


def json_text(value: Any) -> str:
    """Write JSON that people can read: what fits on a line stands on a line."""
    return _json_lines(value, "") + "\n"


def _json_lines(value: Any, indent: str) -> str:
    flat = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if not isinstance(value, (list, dict)) or not value or (indent and len(flat) <= JSON_COLUMNS):
        return flat
    deeper = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(name, ensure_ascii=False)}: {_json_lines(each, deeper)}" for name, each in value.items()]
        opening, closing = "{", "}"
    elif any(isinstance(each, (list, dict)) for each in value):
        items, opening, closing = [_json_lines(each, deeper) for each in value], "[", "]"
    else:
        return flat
    lines = f",\n{deeper}".join(items)
    return f"{opening}\n{deeper}{lines}\n{indent}{closing}"


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
