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

import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cmpg.errors import FileError, GameError
from cmpg.scenarios.readers.text import FilePath, Line, csv_rows, number_in, read_lines

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
    required = tuple(part for part in wanted if part not in OPTIONAL or part in given)
    request = Path(path), timezone, energy, tuple(wanted.items()), required
    stamp = _stamp(path)
    return _read(*request) if stamp is None else _read_once(stamp, *request)


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


def _read(
    path: Path, timezone: str | None, energy: str, columns: tuple[tuple[str, str], ...], required: tuple[str, ...]
) -> tuple[Session, ...]:
    zone = None if timezone is None else zone_of(timezone)
    if path.name.removesuffix(".gz").endswith(".json"):
        return tuple(_item(item, number, path, zone, energy) for number, item in enumerate(_items(path)))
    return tuple(_csv_sessions(path, dict(columns), required, zone))


@lru_cache(maxsize=1)  # a sweep over days and capacities asks for the same months again and again
def _read_once(_: tuple[int, ...], *request: Any) -> tuple[Session, ...]:
    return _read(*request)


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


def _csv_sessions(
    path: FilePath, columns: Mapping[str, str], required: Collection[str], zone: tzinfo | None
) -> Iterator[Session]:
    """Yield the sessions of a CSV; `columns` says what each part of a session is called there."""
    # Where fields are separated by semicolons or tabs, a comma is a decimal comma.
    separator = max(",;\t", key=next(read_lines(path), Line(path, 1, "")).text.count)
    advice = (
        "If they have other names here, say which by `columns`, such as arrival=Start; departure=End; energy=kWh; "
        "station=Charger."
    )
    for row, line in csv_rows(path, [columns[each] for each in required], separator=separator, advice=advice):
        fields = {part: row.get(name, "") for part, name in columns.items()}
        if separator != ",":
            fields |= {part: fields[part].replace(",", ".") for part in ("energy", "power")}
        yield _session(fields, line, zone, columns)


def _session(fields: Mapping[str, str], line: Line, zone: tzinfo | None, columns: Mapping[str, str]) -> Session:
    arrival, departure = (_time(fields[name], line, name=name) for name in ("arrival", "departure"))
    if (arrival.tzinfo is None) != (departure.tzinfo is None):
        raise line.error("one of arrival and departure has an offset from UTC, and the other has none.")
    if departure < arrival:
        raise line.error(f"the stay ends ({fields['departure']}) before it begins ({fields['arrival']}).")
    energy = number_in(fields["energy"], line, name=columns["energy"])
    if energy < 0:
        raise line.error(f"{columns['energy']} is {fields['energy']}; it cannot be negative.")
    power = number_in(fields["power"], line, name=columns["power"]) if fields["power"] else None
    if power is not None and power <= 0:
        raise line.error(f"{columns['power']} is {fields['power']}; a charger needs a positive number of kW.")
    if not fields["station"]:
        raise line.error(f"{columns['station']} is blank.")
    if zone is None and arrival.tzinfo is not None and arrival.utcoffset() == departure.utcoffset() == timedelta(0):
        raise line.error(_IN_UTC.format(fields["arrival"]))
    name = fields["session"] or f"line {line.number}"
    return Session(_local(arrival, zone), _local(departure, zone), energy, fields["station"], name, power)


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
