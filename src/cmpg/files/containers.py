"""The two containers: `.json`, which people edit and whose numbers can be read exactly, and `.npz`, for arrays.

Reading believes nothing. Only a regular file is opened, since a pipe or a device may never end. Nothing is unpickled or
evaluated. What the header of an array in a `.npz` promises is compared with what the archive holds, and that with the
size of the file, before anything is allocated; whether it is a file of the right kind is looked at first of all.

Writing goes to a temporary file first, so that a reader never meets half a file, a failure leaves nothing behind, and a
link that an attacker planted under the name is replaced, not followed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import reprlib
import secrets
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np

from cmpg.arrays import FloatArray, check_held, frozen, is_fraction, numbers, rational, to_exact, to_floats
from cmpg.errors import CMPGError, FileError, GameError

Fields = dict[str, Any]

ENDINGS = (".json", ".npz")

VERSIONS = {"cmpg-policy": (1, 2)}
"""Which versions of a format are read, where there are several."""

MAX_RATIO = 1040
"""Deflate makes nothing smaller than 1 in 1032: an archive that promises more is forged."""

MAX_UNPACKED = 50_000_000
"""The bytes to which any archive may unpack. The limit of a large archive is `MAX_UNPACKED_RATIO` times its size."""

MAX_UNPACKED_RATIO = 50

HEADER = re.compile(
    r"\{'descr': '([<>|=][biufU]\d{1,9})', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n?"
)
"""What numpy writes before the numbers of an array."""

LONGEST_HEADER = 10_000

MAX_AXES = 32

SMALL_DECIMALS = re.compile(r"[eE]-0*[1-9]\d\d|0{300}")
"""This pattern matches in every text with a decimal that a float may round to zero."""

WORDS = ("agents", "states", "actions", "constraints", "resources", "legend")
"""Fields of words, which may look like numbers."""

BLOCK = 2**20
"""This many bytes are unpacked at a time."""

UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What `zipfile` raises on bytes that are no archive."""

MAX_BITS = 14_000
"""Of the numbers of a fraction in a text: Python reads and writes no more than 4,300 digits."""

AGREEMENT = 1e-9
"""Recorded and recomputed numbers may differ by this much of their size: the order of sums depends on the machine."""

JSON_COLUMNS = 100
"""Lists and objects that are longer than this are broken into lines."""


def as_path(path: str | Path) -> Path:
    """Return a path, or raise if it is none."""
    if not isinstance(path, (str, os.PathLike)):
        raise FileError(f"a path is required, such as 'run/game.npz'; a {type(path).__name__} is given.")
    return Path(path)


def read_fields(path: str | Path, *, kind: str | None = None, exact: bool = False) -> Fields:
    """Read a `.json` or `.npz` file as a dict.

    Parameters
    ----------
    path
        The file.
    kind
        The format that it must have, in a version that can be read.
    exact
        Return the decimals of a `.json` as Fractions.
    """
    source = as_path(path)
    ending = checked_ending(source)
    check_regular(source)
    try:
        fields = _read_json(source, exact) if ending == ".json" else _read_npz(source, kind)
    except OSError as problem:
        raise FileError(f"{source}: cannot be read ({_reason(problem)}).") from None
    except MemoryError:
        raise FileError(f"{source}: does not fit into memory.") from None
    if kind is not None:
        check_kind(source, fields, kind=kind)
    return fields


def read_numbers(path: str | Path, *, kind: str | None = None, exact: bool = False) -> tuple[Fields, bool]:
    """Read a file as `read_fields` does, and say whether its numbers are to be kept as they are written.

    They are if that is asked for, or if one of them is written as a fraction: no float is 1/3, and what is proved of
    a float next to it need not be true of 1/3.
    """
    fields = read_fields(path, kind=kind, exact=exact)
    if exact or not any(_holds_fraction(value) for name, value in fields.items() if name not in WORDS):
        return fields, exact
    return read_fields(path, kind=kind, exact=True), True


def _holds_fraction(value: Any) -> bool:
    """Whether a fraction is written somewhere in nested lists."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, list):
            left.extend(each)
        elif is_fraction(each):
            return True
    return False


def file_kind(path: str | Path) -> str | None:
    """Return the format that a file says it has; None where it says nothing that can be read."""
    source = as_path(path)
    if source.suffix.lower() == ".json":
        fields = read_fields(source)
    else:
        check_regular(source)
        try:
            with zipfile.ZipFile(source) as archive:
                _check_archive(source, archive.infolist())
                fields = {"format": _read_member(archive, archive.getinfo("format.npy"))}
        except (OSError, *UNREADABLE):
            return None
    kind = fields.get("format")
    return kind if isinstance(kind, str) else None


def check_regular(source: Path) -> None:
    """Raise unless this is a file that ends: no folder, and no pipe or device, which could keep a reader for ever."""
    try:
        if source.is_dir():
            raise FileError(f"{source}: is a folder; name the file in it.")
        if not source.exists():
            raise FileError(f"{source}: there is no such file. Check the name and the folder.")
        if not source.is_file():
            raise FileError(f"{source}: is a pipe or a device; copy what it holds to a file first.")
    except OSError as problem:
        raise FileError(f"{source}: cannot be read ({_reason(problem)}).") from None


def write_fields(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write a dict of numbers, strings and arrays as `.json` or `.npz`; a Fraction in a `.json` becomes "p/q"."""
    target = as_path(path)
    if checked_ending(target) == ".json":
        write_text(target, json_text(plain_fields(fields)))
        return
    arrays = {name: _storable(name, value) for name, value in fields.items()}
    write_atomically(target, lambda stream: _write_npz(stream, arrays))


def _write_npz(stream: IO[bytes], arrays: dict[str, Any]) -> None:
    np.savez_compressed(stream, **arrays)
    unpacked = sum(array.nbytes for array in arrays.values())
    if unpacked > 0.9 * max(MAX_UNPACKED, MAX_UNPACKED_RATIO * stream.tell()):
        # What packs as well as this would not be trusted when it is read.
        stream.seek(0)
        stream.truncate()
        np.savez(stream, **arrays)


def write_text(target: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_atomically(target, lambda stream: stream.write(text.encode(errors="backslashreplace")))


def write_atomically(target: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write through a temporary file in the same folder, which takes the target's name only when it is on the disk."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            # All users may read it and only the owner may change it, whatever the umask allows.
            with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, 0o644)) as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as problem:
        raise unwritable(target, problem, "Name a file in a folder that exists and is yours.") from None


FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)


def unwritable(target: Path, problem: OSError, advice: str) -> FileError:
    """Return the error for what cannot be written; where the disk is full, the advice is about that."""
    if problem.errno in FULL:
        advice = "Make room on that disk, and run the command again."
    return FileError(f"{target}: cannot be written ({_reason(problem)}). {advice}")


def check_new_file(path: Path) -> None:
    """Raise if there is a file of this name already."""
    if path.exists():
        raise FileError(f"{path} is there already, and nothing is written over. Name another file, or remove it.")


def check_out_folder(folder: Path) -> None:
    """Raise if a folder cannot be written, or not without writing over something or through a link."""
    try:
        if folder.is_symlink():
            raise FileError(f"{folder}: is a link, and none is followed. Name a folder that is new or empty.")
        if folder.is_dir():
            if any(folder.iterdir()):
                raise FileError(f"{folder}: is not empty; nothing is written over. Name a new folder, or empty it.")
            if not os.access(folder, os.W_OK | os.X_OK):
                raise FileError(f"{folder}: you may not write there. Name another folder.")
        elif folder.exists():
            raise FileError(f"{folder}: is a file; name a folder that is new or empty.")
        elif not folder.parent.is_dir():
            raise FileError(f"{folder}: its parent folder does not exist. Make it first.")
        else:
            # Only trying tells whether it can be made, and a long run shall not end in finding that out.
            folder.mkdir()
            folder.rmdir()
    except OSError as problem:
        raise FileError(f"{folder}: cannot be made ({problem.strerror}). Name another folder.") from None


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make a folder, or take an empty one, for one writer alone; the block fills it, or it is left as it was.

    Of several who try at the same time one succeeds, and the others are refused before they write anything.
    """
    check_out_folder(folder)
    was_there = folder.is_dir()
    claim = folder / ".claimed"
    refusal = FileError(f"{folder}: another process is writing there. Name another folder.")
    try:
        folder.mkdir(exist_ok=True)
        claim.open("xb").close()
    except FileExistsError:
        raise refusal from None
    except OSError as problem:
        raise unwritable(folder, problem, "Name another folder.") from None
    try:
        if any(each != claim for each in folder.iterdir()):
            raise refusal
        try:
            yield
        except BaseException:  # interrupted, or the disk is full: no half of a folder is left
            for each in folder.iterdir():
                each.unlink()
            if not was_there:
                folder.rmdir()
            raise
    finally:
        claim.unlink(missing_ok=True)


def check_kind(path: str | Path, fields: Fields, *, kind: str) -> None:
    """Raise unless the file says that it is of this kind, in a version that can be read."""
    if "format" not in fields:
        raise FileError(f"{path}: has no field 'format'; 'format': {kind!r} is required.")
    found, version = fields["format"], fields.get("version")
    if not isinstance(found, str) or found != kind:
        raise FileError(f"{path}: its format is {reprlib.repr(found)}; {kind!r} is required.")
    readable = VERSIONS.get(kind, (1,))
    if type(version) is not int or version not in readable:
        versions = " and ".join(map(str, readable))
        raise FileError(f"{path}: its version is {reprlib.repr(version)}; this release reads version {versions}.")


def number_table(name: str, value: Any, *, exact: bool = False, error: type[CMPGError] = GameError) -> FloatArray:
    """Return a field as a read-only array of finite floats or, with `exact`, of Fractions; "1/4" is a quarter.

    Without `exact`, a fraction that no float holds is refused.

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
    """Read nested lists; numpy never makes an array of strings, which would be as wide as the longest."""
    axes, inner = 0, value  # counted here: numpy has a limit of its own, which depends on its version
    while isinstance(inner, list) and inner:
        axes, inner = axes + 1, inner[0]
    if axes > MAX_AXES:
        raise error(f"{name} has {axes} axes; no table has more than {MAX_AXES}.")
    raw = np.array(value, dtype=object)
    if not exact and all(isinstance(entry, (int, float)) for entry in raw.flat):
        with contextlib.suppress(OverflowError):
            table = raw.astype(np.float64)
            check_held(name, raw, table, error)
            return numbers(name, table, error=error)
    table = numbers(name, raw, error=error)
    for index, entry in np.ndenumerate(raw):
        if not exact and is_fraction(entry) and float(table[index]) != table[index]:
            advice = f"This table has floats: write the one that you mean, {float(table[index])}."
            raise error(f"{name}{list(index)} is {entry}, which no float holds. {advice}")
    return table


def checked_ending(path: Path, endings: Sequence[str] = ENDINGS) -> str:
    """Return the ending of a file, or raise with those that it may have.

    Examples
    --------
    >>> checked_ending(Path("table.PDF"), (".csv", ".tex", ".md"))
    Traceback (most recent call last):
    cmpg.errors.FileError: table.PDF: its ending is '.PDF'; .csv, .tex or .md is required.
    """
    ending = path.suffix.lower()
    if ending not in endings:
        required = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise FileError(f"{path}: its ending is {path.suffix!r}; {required} is required.")
    return ending


def _reason(problem: OSError) -> str:
    return problem.strerror or type(problem).__name__


def _read_json(source: Path, exact: bool) -> Fields:
    try:
        text = source.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{source}: is not a text file, though its name says JSON.") from None
    return parse_json(text, str(source), exact=exact)


def parse_json(text: str, where: str, *, exact: bool = False) -> Fields:
    """Return the object that a text in JSON holds; `where` begins every complaint, and its line numbers follow."""

    def no_constant(name: str) -> Any:
        raise FileError(f"{where}: {name} is no number that can be used; every entry must be finite.")

    def unique(pairs: list[tuple[str, Any]]) -> Fields:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise FileError(f"{where}: the field {twice!r} is there more than once; keep one.")
        return fields

    try:
        tiny = not exact and SMALL_DECIMALS.search(text) is not None
        read_float = rational if exact else _nonzero_float if tiny else float
        fields = json.loads(text, parse_float=read_float, parse_constant=no_constant, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        raise FileError(f"{where}, line {problem.lineno}: not valid JSON ({problem.msg}).") from None
    except RecursionError:
        raise FileError(f"{where}: its lists are nested too deeply for any table.") from None
    except ValueError as problem:
        raise FileError(f"{where}: holds a number that cannot be read ({problem}).") from None
    if not isinstance(fields, dict):
        raise FileError(f"{where}: a JSON object with named fields, {{…}}, is required.")
    return fields


def _nonzero_float(text: str) -> float:
    """Read a decimal as a float that is zero only if zero is written there, or raise ValueError."""
    return float(text) or float(to_floats(np.array(rational(text))))


def _read_npz(source: Path, kind: str | None) -> Fields:
    try:
        with zipfile.ZipFile(source) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            _check_archive(source, archive.infolist())
            if kind is not None:
                said = {name: members[name] for name in ("format", "version") if name in members}
                check_kind(source, {name: _read_member(archive, member) for name, member in said.items()}, kind=kind)
            return {name: _read_member(archive, member) for name, member in members.items()}
    except UNREADABLE as problem:
        raise FileError(f"{source}: is not a whole .npz file ({problem}).") from None


def _check_archive(source: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise where the archive promises more than its bytes can hold, or holds what numpy never writes."""
    if len({member.filename.removesuffix(".npy") for member in members}) < len(members):
        raise FileError(f"{source}: has two arrays of the same name; every field is there once.")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise FileError(f"{source}: {member.filename} is packed in a way that numpy does not use.")
        if member.file_size > MAX_RATIO * member.compress_size:
            raise FileError(f"{source}: {member.filename} promises {member.file_size} bytes, which it cannot hold.")
    size, unpacked = source.stat().st_size, sum(member.file_size for member in members)
    if sum(member.compress_size for member in members) > size:
        raise FileError(f"{source}: its arrays promise more bytes than the file has.")
    if unpacked > max(MAX_UNPACKED, MAX_UNPACKED_RATIO * size):
        raise FileError(
            f"{source}: unpacks to {unpacked / 1e6:,.0f} MB, {unpacked / size:.0f} times its size, which is more than "
            "is trusted. If it is yours, write it with numpy.savez, which does not pack."
        )


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Compare what an array's header promises with what the archive holds, and only then read the array."""
    with archive.open(member) as stream:
        magic = stream.read(8)
        width = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4, b"\x93NUMPY\x03\x00": 4}.get(magic)
        if width is None:
            raise ValueError(f"{member.filename} does not begin as an array does")
        length = int.from_bytes(stream.read(width), "little")
        header = HEADER.fullmatch(stream.read(min(length, LONGEST_HEADER)).decode("latin-1"))
        if header is None or length > LONGEST_HEADER:
            raise ValueError(f"the header of {member.filename} is not one of an array of numbers or names")
        dtype, shape = np.dtype(header[1]), tuple(int(each) for each in header[3].split(",") if each.strip())
        promised, held = math.prod(shape) * dtype.itemsize, member.file_size - len(magic) - width - length
        if dtype.itemsize == 0 or (dtype.kind != "U" and dtype.itemsize > 8):
            raise ValueError(f"{member.filename} has entries of {8 * dtype.itemsize} bits")
        if promised != held:
            raise ValueError(f"{member.filename} promises {promised} bytes and holds {held}")
        array = np.empty(math.prod(shape), dtype)
        held_bytes = array.view(np.uint8)
        for start in range(0, promised, BLOCK):
            block = stream.read(min(BLOCK, promised - start))
            if len(block) < min(BLOCK, promised - start):  # the archive lies: the rest would be whatever memory held
                raise ValueError(f"{member.filename} ends before its last number")
            held_bytes[start : start + len(block)] = np.frombuffer(block, np.uint8)
    if dtype.kind == "U" and array.size and int(array.view(array.dtype.byteorder + "u4").max()) > sys.maxunicode:
        raise ValueError(f"{member.filename} has characters that do not exist")
    array = frozen(array.astype(dtype.newbyteorder("="), copy=False))
    array = array.reshape(shape, order="F" if header[2] == "True" else "C")
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


def fits_in_text(number: Fraction) -> bool:
    """Whether Python can write a fraction in digits, and read it again."""
    return max(number.numerator.bit_length(), number.denominator.bit_length()) <= MAX_BITS


def plain_fields(record: Mapping[str, Any]) -> Fields:
    """Return a record in what JSON knows: arrays as lists, "p/q" for a Fraction, null for what is not finite."""
    return {str(name): plain(value) for name, value in record.items()}


def plain(value: Any) -> Any:
    """Return a value of a record in what JSON knows."""
    if isinstance(value, Mapping):
        return plain_fields(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, Fraction):
        if not fits_in_text(value):
            raise FileError(f"a fraction of more than {MAX_BITS:,} bits is not written as text; round it before.")
        return value.numerator if value.denominator == 1 else str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _storable(name: str, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype != object:
        return array
    try:
        return to_floats(array)
    except (TypeError, ValueError):
        raise FileError(f"{name} cannot be stored in a .npz file; use .json.") from None
