"""Charging sessions in the CSV form of ACN-Data: one row per stay of a car at a charging station.

The first line names the columns; `arrival`, `departure`, `delivered_energy (kWh)`, `station_id` and `session_id` are
read, in any order, and others are passed over. Times are ISO 8601; they are kept as the file writes them: local time.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from cmpg.errors import FileError
from cmpg.scenarios.readers.text import FilePath, Line, at_line, number_in, read_lines

COLUMNS = ("arrival", "departure", "delivered_energy (kWh)", "station_id", "session_id")


@dataclass(frozen=True)
class Session:
    """One stay of one car."""

    arrival: datetime
    departure: datetime
    delivered: float  # kWh
    station: str
    identifier: str


def read_sessions(path: FilePath) -> tuple[Session, ...]:
    """Read all sessions of a file, plain (`.csv`) or compressed (`.csv.gz`), in the order of the file.

    Raises
    ------
    FileError
        With the file and the line: a column is missing, a row is cut, a time or an energy cannot be read, or a stay
        ends before it begins.
    """
    return tuple(_session(fields, line) for fields, line in _rows(path))


def _rows(path: FilePath) -> Iterator[tuple[list[str], Line]]:
    rows = csv.reader(line.text for line in read_lines(path))
    try:
        header = [name.strip() for name in next(rows, [])]
        places = _column_places(header, path)
        for row in rows:
            line = Line(path, rows.line_num, ",".join(row))
            if row and len(row) != len(header):
                raise line.error(f"there are {len(row)} fields; the first line names {len(header)} columns.")
            if row:
                yield [row[place].strip() for place in places], line
    except csv.Error as problem:
        raise at_line(path, rows.line_num, f"this is not CSV ({problem}).") from None


def _column_places(header: list[str], path: FilePath) -> list[int]:
    if not header:
        raise FileError(f"{path} is empty; a first line that names the columns {', '.join(COLUMNS)} is required.")
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        found = ", ".join(header)
        shown = found if len(found) <= 120 else found[:120] + "…"
        raise at_line(path, 1, f"the columns are: {shown}; missing: {', '.join(missing)}.")
    return [header.index(name) for name in COLUMNS]


def _session(fields: list[str], line: Line) -> Session:
    arrival_text, departure_text, energy_text, station, identifier = fields
    arrival = _time(arrival_text, line, name="arrival")
    departure = _time(departure_text, line, name="departure")
    if (arrival.tzinfo is None) != (departure.tzinfo is None):
        raise line.error("one of arrival and departure has an offset from UTC, and the other has none.")
    if departure < arrival:
        raise line.error(f"the stay ends ({departure_text}) before it begins ({arrival_text}).")
    delivered = number_in(energy_text, line, name=COLUMNS[2])
    if delivered < 0:
        raise line.error(f"{COLUMNS[2]} is {energy_text}; it cannot be negative.")
    if not station:
        raise line.error("station_id is blank.")
    return Session(arrival, departure, delivered, station, identifier)


def _time(text: str, line: Line, *, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise line.error(f"{name} is {text!r}; a time such as 2019-06-12 08:30:00-07:00 is required.") from None
