"""Charging sessions of ACN-Data: one row of a CSV, or one item of the site's own JSON, per stay of a car at a station.

The first line of a CSV names the columns; `arrival`, `departure`, `delivered_energy (kWh)`, `station_id` and
`session_id` are read, in any order, and others are passed over. In JSON, `_items` is a list of objects of which
`connectionTime`, `disconnectTime`, `kWhDelivered`, `spaceID` (or `stationID`), `sessionID` and `timezone` are read.

Times are ISO 8601, or in JSON as in mail headers. Which hour of the day a time is, is read and never guessed: a time
without an offset is the site's own clock; one with an offset is the clock that has this offset; one in UTC needs a
time zone, from the item or from the caller, because a site whose clock shows UTC is rare. Where there is a time zone,
all times are taken to it.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cmpg.errors import FileError, GameError
from cmpg.scenarios.readers.text import FilePath, Line, at_line, number_in, read_lines

COLUMNS = ("arrival", "departure", "delivered_energy (kWh)", "station_id", "session_id")


@dataclass(frozen=True)
class Session:
    """One stay of one car."""

    arrival: datetime  # on the site's clock
    departure: datetime
    delivered: float  # kWh
    station: str
    identifier: str


def read_sessions(path: FilePath, *, timezone: str | None = None) -> tuple[Session, ...]:
    """Read all sessions of a file in its order: `.csv` or `.json`, or either compressed (`.gz`).

    Parameters
    ----------
    path
        The file.
    timezone
        Where the site is, such as America/Los_Angeles; needed where the times are in UTC.

    Raises
    ------
    FileError
        With the file and the line: a column is missing, a row is cut, a time or an energy cannot be read, a stay ends
        before it begins, or a time is in UTC and nothing says where the site is.
    """
    stamp = _stamp(path)
    return _read(Path(path), timezone) if stamp is None else _read_once(Path(path), timezone, stamp)


def _stamp(path: FilePath) -> tuple[int, ...] | None:
    """Return what changes with a file; None where that is not sure, as clocks stand still for milliseconds."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None  # the reader says why
    settled = time.time_ns() - found.st_mtime_ns > 1_000_000_000
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if settled else None


@lru_cache(maxsize=1)  # a sweep over days and capacities asks for the same months again and again
def _read_once(path: Path, timezone: str | None, _: tuple[int, ...]) -> tuple[Session, ...]:
    return _read(path, timezone)


def _read(path: Path, timezone: str | None) -> tuple[Session, ...]:
    zone = None if timezone is None else zone_of(timezone)
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        return tuple(_item(item, number, path, zone) for number, item in enumerate(_items(path)))
    return tuple(_session(fields, line, zone) for fields, line in _rows(path))


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name, such as America/Los_Angeles.

    Examples
    --------
    >>> zone_of("Mars/Olympus")
    Traceback (most recent call last):
    cmpg.errors.GameError: timezone is 'Mars/Olympus'; a name such as America/Los_Angeles or UTC is required.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise GameError(f"timezone is {name!r}; a name such as America/Los_Angeles or UTC is required.") from None


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


def _session(fields: list[str], line: Line, zone: tzinfo | None) -> Session:
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
    if zone is None and arrival.tzinfo is not None and arrival.utcoffset() == departure.utcoffset() == timedelta(0):
        raise line.error(_IN_UTC.format(arrival_text))
    return Session(_local(arrival, zone), _local(departure, zone), delivered, station, identifier)


_IN_UTC = (
    "the time {} is in UTC, and nothing says where the site is. Pass its time zone, such as America/Los_Angeles, or "
    "UTC if its clocks show that."
)


def _local(time: datetime, zone: tzinfo | None) -> datetime:
    """Return a time on the clock of a zone; where there is none, as it was written."""
    if zone is None:
        return time
    return time.replace(tzinfo=zone) if time.tzinfo is None else time.astimezone(zone)


def _time(text: str, line: Line, *, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise line.error(f"{name} is {text!r}; a time such as 2019-06-12 08:30:00-07:00 is required.") from None


def _items(path: FilePath) -> list[Any]:
    text = "\n".join(line.text for line in read_lines(path))
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{path} is not JSON ({problem}).") from None
    items = told.get("_items") if isinstance(told, dict) else told
    if not isinstance(items, list):
        raise FileError(f"{path} has no list `_items` of sessions, as the ACN-Data interface gives them.")
    return items


def _item(item: Any, number: int, path: FilePath, zone: tzinfo | None) -> Session:
    """Read one session of the site's own JSON."""
    place = f"{path}, item {number}"
    if not isinstance(item, dict):
        raise FileError(f"{place}: an object is required.")
    if zone is None and isinstance(item.get("timezone"), str):
        zone = zone_of(item["timezone"])
    arrival, departure = (_item_time(item, name, place, zone) for name in ("connectionTime", "disconnectTime"))
    if departure < arrival:
        raise FileError(f"{place}: the stay ends ({departure}) before it begins ({arrival}).")
    energy, station = item.get("kWhDelivered"), item.get("spaceID", item.get("stationID"))
    if isinstance(energy, bool) or not isinstance(energy, (int, float)) or not 0 <= energy < float("inf"):
        raise FileError(f"{place}: kWhDelivered is {energy!r}; a number of at least 0 is required.")
    if not isinstance(station, str) or not station:
        raise FileError(f"{place}: spaceID is {station!r}; the name of a station is required.")
    return Session(arrival, departure, float(energy), station, str(item.get("sessionID", number)))


def _item_time(item: dict[str, Any], name: str, place: str, zone: tzinfo | None) -> datetime:
    text = item.get(name)
    try:
        time = parsedate_to_datetime(text) if isinstance(text, str) and "," in text else datetime.fromisoformat(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        told = "a time such as Wed, 25 Apr 2018 11:08:04 GMT is required."
        raise FileError(f"{place}: {name} is {text!r}; {told}") from None
    if "GMT" in str(text):
        time = time.replace(tzinfo=UTC)
    if zone is None and time.tzinfo is not None and time.utcoffset() == timedelta(0):
        raise FileError(f"{place}: {_IN_UTC.format(text)}")
    return _local(time, zone)
