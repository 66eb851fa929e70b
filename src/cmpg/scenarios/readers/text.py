"""Text files, plain or compressed, read line by line, so that every complaint can name the file and the line."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from cmpg.errors import FileError

FilePath = str | PathLike[str]

GZIP_MARK = b"\x1f\x8b"


def at_line(path: FilePath, line: int, problem: str) -> FileError:
    """Return the error that points at one line of a file.

    Examples
    --------
    >>> str(at_line("city.map", 3, "the width is missing."))
    'city.map, line 3: the width is missing.'
    """
    return FileError(f"{path}, line {line}: {problem}")


@dataclass(frozen=True)
class Line:
    """One line of a file, counted from 1, without its end."""

    source: FilePath
    number: int
    text: str

    def error(self, problem: str) -> FileError:
        """Return the error that points at this line."""
        return at_line(self.source, self.number, problem)


def read_lines(path: FilePath) -> Iterator[Line]:
    """Yield every line of a text file.

    A file whose name ends in `.gz` must be compressed, and no other may be.

    Raises
    ------
    FileError
        The file is missing, is not what its name says, ends too early, or is not text in UTF-8.
    """
    number = 0
    try:
        with _opened(Path(path)) as file:
            for raw in file:
                number += 1
                yield _decoded(path, number, raw)
    except (gzip.BadGzipFile, zlib.error) as problem:
        raise FileError(
            f"{path} is not the gzip file that its name says ({problem}). Rename it, or compress it again."
        ) from None
    except EOFError:
        raise at_line(path, number, "the compressed data end here, too early. Fetch the file again.") from None
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {problem.strerror}.") from None


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    file = path.open("rb")
    if file.peek(2)[:2] == GZIP_MARK:
        file.close()
        raise FileError(f"{path} is compressed, and its name does not say so. Let the name end in .gz.")
    return file


def _decoded(path: FilePath, number: int, raw: bytes) -> Line:
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as problem:
        raise at_line(path, number, f"byte {problem.start + 1} is not UTF-8; a text file is required.") from None
    if "\0" in text:
        raise at_line(path, number, "there is a zero byte; a text file is required.")
    return Line(path, number, text.rstrip("\r\n"))


def number_in(text: str, line: Line, *, name: str) -> float:
    """Return the finite number that a field of a line holds.

    Examples
    --------
    >>> number_in("6,5", Line("city_net.tntp", 12, "1 2 6,5 ;"), name="capacity")
    Traceback (most recent call last):
    cmpg.errors.FileError: city_net.tntp, line 12: capacity is '6,5'; a finite number is required.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise line.error(f"{name} is {text!r}; a finite number is required.")
    return value


def integer_in(text: str, line: Line, *, name: str) -> int:
    """Return the whole number, zero or more, that a field of a line holds."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise line.error(f"{name} is {text!r}; a whole number is required.")
    return int(text)
