"""Charging sessions of ACN-Data: one row of a CSV, or one item of the site's own JSON, per stay of a car at a station.

The first line of a CSV names the columns; `arrival`, `departure`, `station_id`, an energy and, where there is one,
`session_id` and `power (kW)` are read, in any order, and others are passed over. The energy is
`delivered_energy (kWh)`, or `requested_energy (kWh)` if that is wanted. A file with other names is read by a mapping of
columns. Fields may be separated by semicolons or tabs; numbers may then have decimal commas. In JSON, `_items` is a
list of objects of which
`connectionTime`, `disconnectTime`, `kWhDelivered` (or the last `kWhRequested` of `userInputs`), `spaceID` (or
`stationID`), `sessionID` and `timezone` are read.

Times are ISO 8601, or in JSON as in mail headers. Which hour of the day a time is, is read and never guessed: a time
without an offset is the site's own clock; one with an offset is the clock that has this offset; one in UTC needs a
time zone, from the item or from the caller, because a site whose clock shows UTC is rare. Where there is a time zone,
all times are taken to it.
"""

from __future__ import annotations

import csv
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cmpg.errors import FileError, GameError
from cmpg.scenarios.readers.text import FilePath, Line, at_line, number_in, read_lines

COLUMNS = {
    "arrival": "arrival",
    "departure": "departure",
    "energy": "delivered_energy (kWh)",
    "station": "station_id",
    "session": "session_id",
    "power": "power (kW)",
}
"""What is read of a CSV, and how ACN-Data calls its column; the power is a column of our own."""

OPTIONAL = ("session", "power")
"""Columns that a file may lack, unless they are named."""

ENERGIES = ("delivered", "requested")

Columns = tuple[tuple[str, bool], ...]
"""What the columns are called, in the order of `COLUMNS`, and whether they are required."""


@dataclass(frozen=True)
class Session:
    """One stay of one car.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_sessions.csv") as path:
    ...     first = read_sessions(path)[0]
    >>> first.station, first.energy, first.departure > first.arrival
    ('P-01', 26.149, True)
    """

    arrival: datetime  # on the site's clock
    departure: datetime
    energy: float  # kWh, delivered or requested
    station: str
    identifier: str
    power: float | None = None  # kW with which it charges, if the file says


def read_sessions(
    path: FilePath,
    *,
    timezone: str | None = None,
    energy: str = "delivered",
    columns: Mapping[str, str] | str | None = None,
) -> tuple[Session, ...]:
    """Read all sessions of a file in its order: `.csv` or `.json`, or either compressed (`.gz`).

    Parameters
    ----------
    path
        The file.
    timezone
        Where the site is, such as America/Los_Angeles; needed where the times are in UTC.
    energy
        Which energy a car needs: "delivered" or "requested".
    columns
        What the columns of a CSV are called if not as in ACN-Data: a mapping of arrival, departure, energy, station,
        session and power, or text such as "arrival=Start; departure=End; energy=kWh; station=Charger".

    Raises
    ------
    FileError
        With the file and the line: a column is missing, a row is cut, a time or an energy cannot be read, a stay ends
        before it begins, or a time is in UTC and nothing says where the site is.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample_sessions.csv") as path:
    ...     delivered, requested = read_sessions(path), read_sessions(path, energy="requested")
    >>> delivered[0].energy, requested[0].energy
    (26.149, 27.2)
    """
    if energy not in ENERGIES:
        raise GameError(f"energy is {energy!r}; delivered or requested is required.")
    given = _given_columns(columns)
    wanted = {**COLUMNS, "energy": f"{energy}_energy (kWh)", **given}
    named = tuple((name, what not in OPTIONAL or what in given) for what, name in wanted.items())
    stamp = _stamp(path)
    if stamp is None:
        return _read(Path(path), timezone, energy, named)
    return _read_once(Path(path), timezone, energy, named, stamp)


def _given_columns(columns: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return what the user calls the columns."""
    if isinstance(columns, str):
        # A comma separates only in front of the next "name=", as columns may have commas in their names.
        pairs = [part.partition("=") for part in re.split(r";|,(?=\s*\w+\s*=)", columns) if part.strip()]
        columns = {name.strip(): column.strip() for name, _, column in pairs}
    given = dict(columns or {})
    if set(given) - set(COLUMNS) or not all(given.values()):
        raise GameError(
            f"columns is {columns!r}; names of columns for some of {', '.join(COLUMNS)} are required, such as "
            "arrival=Start; departure=End; energy=kWh."
        )
    return given


def _stamp(path: FilePath) -> tuple[int, ...] | None:
    """Return what changes with a file; None where that is not sure, as clocks stand still for milliseconds."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None  # the reader says why
    settled = time.time_ns() - found.st_mtime_ns > 1_000_000_000
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if settled else None


@lru_cache(maxsize=1)  # a sweep over days and capacities asks for the same months again and again
def _read_once(
    path: Path, timezone: str | None, energy: str, columns: Columns, _: tuple[int, ...]
) -> tuple[Session, ...]:
    return _read(path, timezone, energy, columns)


def _read(path: Path, timezone: str | None, energy: str, columns: Columns) -> tuple[Session, ...]:
    zone = None if timezone is None else zone_of(timezone)
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        return tuple(_item(item, number, path, zone, energy) for number, item in enumerate(_items(path)))
    return tuple(_session(fields, line, zone, columns) for fields, line in _rows(path, columns))


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


def _rows(path: FilePath, columns: Columns) -> Iterator[tuple[list[str], Line]]:
    first = next(read_lines(path), None)
    # Where fields are separated by semicolons or tabs, a comma is a decimal comma.
    separator = "," if first is None else max(",;\t", key=first.text.count)
    rows = csv.reader((line.text for line in read_lines(path)), delimiter=separator)
    try:
        header = [name.strip() for name in next(rows, [])]
        indices = _column_indices(header, path, columns)
        for row in rows:
            line = Line(path, rows.line_num, separator.join(row))
            if row and len(row) != len(header):
                raise line.error(f"there are {len(row)} fields; the first line names {len(header)} columns.")
            if row:
                fields = ["" if index is None else row[index].strip() for index in indices]
                if separator != ",":
                    fields[2], fields[5] = fields[2].replace(",", "."), fields[5].replace(",", ".")
                yield fields, line
    except csv.Error as problem:
        raise at_line(path, rows.line_num, f"this is not CSV ({problem}).") from None


def _column_indices(header: list[str], path: FilePath, columns: Columns) -> list[int | None]:
    if not header:
        names = ", ".join(name for name, _ in columns)
        raise FileError(f"{path} is empty; a first line that names the columns {names} is required.")
    missing = [name for name, required in columns if required and name not in header]
    if missing:
        found = ", ".join(header)
        shown = found if len(found) <= 120 else found[:120] + "…"
        raise at_line(
            path,
            1,
            f"the columns are: {shown}; missing: {', '.join(missing)}. If they have other names here, say which by "
            "`columns`, such as arrival=Start; departure=End; energy=kWh; station=Charger.",
        )
    return [header.index(name) if name in header else None for name, _ in columns]


def _session(fields: list[str], line: Line, zone: tzinfo | None, columns: Columns) -> Session:
    arrival_text, departure_text, energy_text, station, identifier, power_text = fields
    (energy_name, _), (station_name, _), _, (power_name, _) = columns[2:]
    arrival = _time(arrival_text, line, name="arrival")
    departure = _time(departure_text, line, name="departure")
    if (arrival.tzinfo is None) != (departure.tzinfo is None):
        raise line.error("one of arrival and departure has an offset from UTC, and the other has none.")
    if departure < arrival:
        raise line.error(f"the stay ends ({departure_text}) before it begins ({arrival_text}).")
    energy = number_in(energy_text, line, name=energy_name)
    if energy < 0:
        raise line.error(f"{energy_name} is {energy_text}; it cannot be negative.")
    power = number_in(power_text, line, name=power_name) if power_text else None
    if power is not None and power <= 0:
        raise line.error(f"{power_name} is {power_text}; a charger needs a positive number of kW.")
    if not station:
        raise line.error(f"{station_name} is blank.")
    if zone is None and arrival.tzinfo is not None and arrival.utcoffset() == departure.utcoffset() == timedelta(0):
        raise line.error(_IN_UTC.format(arrival_text))
    name = identifier or f"line {line.number}"
    return Session(_local(arrival, zone), _local(departure, zone), energy, station, name, power)


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
        read = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{path} is not JSON ({problem}).") from None
    items = read.get("_items") if isinstance(read, dict) else read
    if not isinstance(items, list):
        raise FileError(f"{path} has no list `_items` of sessions, as the ACN-Data interface gives them.")
    return items


def _item(item: Any, number: int, path: FilePath, zone: tzinfo | None, wanted: str) -> Session:
    """Read one session of the site's own JSON."""
    place = f"{path}, item {number}"
    if not isinstance(item, dict):
        raise FileError(f"{place}: an object is required.")
    if zone is None and isinstance(item.get("timezone"), str):
        zone = zone_of(item["timezone"])
    arrival, departure = (_item_time(item, name, place, zone) for name in ("connectionTime", "disconnectTime"))
    if departure < arrival:
        raise FileError(f"{place}: the stay ends ({departure}) before it begins ({arrival}).")
    station, name = item.get("spaceID", item.get("stationID")), f"kWh{wanted.title()}"
    inputs = item.get("userInputs") or [{}]
    requested = inputs[-1] if isinstance(inputs, list) and isinstance(inputs[-1], dict) else {}
    energy = item.get(name) if wanted == "delivered" else requested.get(name)
    if isinstance(energy, bool) or not isinstance(energy, (int, float)) or not 0 <= energy < float("inf"):
        raise FileError(f"{place}: {name} is {energy!r}; a number of at least 0 is required.")
    if not isinstance(station, str) or not station:
        raise FileError(f"{place}: spaceID is {station!r}; the name of a station is required.")
    return Session(arrival, departure, float(energy), station, str(item.get("sessionID", number)))


def _item_time(item: dict[str, Any], name: str, place: str, zone: tzinfo | None) -> datetime:
    text = item.get(name)
    try:
        time = parsedate_to_datetime(text) if isinstance(text, str) and "," in text else datetime.fromisoformat(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        required = "a time such as Wed, 25 Apr 2018 11:08:04 GMT is required."
        raise FileError(f"{place}: {name} is {text!r}; {required}") from None
    if "GMT" in str(text):
        time = time.replace(tzinfo=UTC)
    if zone is None and time.tzinfo is not None and time.utcoffset() == timedelta(0):
        raise FileError(f"{place}: {_IN_UTC.format(text)}")
    return _local(time, zone)
