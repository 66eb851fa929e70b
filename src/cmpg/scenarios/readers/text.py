"""Text files, plain or compressed, read line by line, so that every complaint can name the file and the line.

Only a regular file is opened, since a pipe or a device may never end, and compressed text may unpack to a few times its
size only: ten bytes can be packed so that they unpack to ten thousand.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from cmpg.errors import CMPGError, FileError
from cmpg.summaries import counted

FilePath = str | PathLike[str]

GZIP_MARK = b"\x1f\x8b"

MAX_UNPACKED = 3_000_000
"""The bytes to which a compressed text may unpack. The limit of a large one is `MAX_UNPACKED_RATIO` times its size."""

MAX_UNPACKED_RATIO = 10

LEAST_LINE = 8
"""A line counts as this many bytes at least: empty ones take time, too."""

LONGEST_LINE = 2**24
"""A line has at most this many bytes."""

MAX_ENTRIES = 3_000_000
"""A file of any size may describe this many entries of tables; a large one, half as many as it has bytes."""


def at_line(path: FilePath, line: int, problem: str) -> FileError:
    """Return the error that points at one line of a file.

    Examples
    --------
    >>> str(at_line("city.map", 3, "the width is missing."))
    'city.map, line 3: the width is missing.'
    """
    return FileError(f"{path}, line {line}: {problem}")


class Line(NamedTuple):
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
    number, spent = 0, 0
    try:
        with _opened(Path(path)) as file:
            size = Path(path).stat().st_size if Path(path).suffix == ".gz" else math.inf
            trusted = max(MAX_UNPACKED, MAX_UNPACKED_RATIO * size)
            while raw := file.readline(LONGEST_LINE + 1):
                number += 1
                spent += max(len(raw), LEAST_LINE)
                if spent > trusted:
                    raise FileError(
                        f"{path} unpacks to more than {trusted / 1e6:,.0f} MB, which is more than is trusted of a file "
                        "of its size. If it is yours, unpack it with gunzip, and name what comes out."
                    )
                if len(raw) > LONGEST_LINE:
                    raise at_line(
                        path, number, f"the line has more than {LONGEST_LINE} bytes; a text file is required."
                    )
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
    if "\0" in str(path):
        raise FileError(f"{str(path)!r} is no name that a file can have.")
    if path.exists() and not path.is_dir() and not path.is_file():
        raise FileError(f"{path} is a pipe or a device; copy what it holds to a file first.")
    if path.suffix == ".gz":
        return cast(BinaryIO, io.BufferedReader(gzip.open(path, "rb")))
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


@contextmanager
def blaming(path: FilePath) -> Iterator[None]:
    """Begin with the file every complaint about the game that is made of it."""
    try:
        yield
    except CMPGError as problem:
        if str(path) not in str(problem):
            problem.args = (f"{path}: {problem}",)
        raise


def check_entries(path: FilePath, entries: int) -> None:
    """Raise where a table would be far larger than the file that describes it.

    A file that lists its entries has two bytes for each, at least.
    """
    most = max(MAX_ENTRIES, Path(path).stat().st_size // 2)
    if entries > most:
        raise FileError(
            f"{path} describes tables of {entries:.3g} entries; at most {most:.3g} are read from a file of its size. "
            "Give a smaller game, or write it as a .npz file with a sparse transition."
        )


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
        raise line.error(f"{name} is {text[:40]!r}; a finite number is required.")
    return value


def integer_in(text: str, line: Line, *, name: str) -> int:
    """Return the whole number, zero or more, that a field of a line holds."""
    if not is_whole(text):
        raise line.error(f"{name} is {text[:40]!r}; a whole number is required.")
    return int(text)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, zero or more, of at most 18 digits.

    Examples
    --------
    >>> is_whole("12"), is_whole("-1"), is_whole("²"), is_whole("9" * 5000)
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < 19


def header_of(path: FilePath, *, separator: str = ",") -> list[str]:
    """Return the names of the columns of a CSV file."""
    first = next(read_lines(path), None)
    return [] if first is None else [name.strip() for name in next(csv.reader([first.text], delimiter=separator))]


def csv_rows(
    path: FilePath, columns: Sequence[str] = (), *, separator: str = ",", advice: str = "", strip: bool = True
) -> Iterator[tuple[dict[str, str], Line]]:
    """Yield the rows of a CSV file by its columns, each with its line, for complaints.

    Parameters
    ----------
    path
        The file; its first line names the columns.
    columns
        Those that it must have; `advice` says what to do where one is missing.
    separator
        Of the fields.
    strip
        Whether spaces around a field are none of it.
    """
    header = header_of(path, separator=separator)
    missing = [name for name in columns if name not in header]
    if missing:
        shown = ", ".join(header) or "none"
        shown = shown if len(shown) <= 120 else f"{shown[:120]}…"
        problem = f"the columns are: {shown}; missing: {', '.join(missing)}."
        raise at_line(path, 1, f"{problem} {advice}".rstrip())
    rows = csv.reader((line.text for line in read_lines(path)), delimiter=separator)
    try:
        next(rows, None)
        for row in rows:
            line = Line(path, rows.line_num, separator.join(row))
            if not line.text.strip():
                continue
            if len(row) != len(header):
                found = f"there {'is' if len(row) == 1 else 'are'} {counted(len(row), 'field')}"
                raise line.error(f"{found}; the first line names {counted(len(header), 'column')}.")
            yield dict(zip(header, (field.strip() if strip else field for field in row), strict=True)), line
    except csv.Error as problem:
        raise at_line(path, rows.line_num, f"this is not CSV ({problem}).") from None
