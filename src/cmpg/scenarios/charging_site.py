"""A charging site on one day: its cars, its tariff, its transformers and their capacities.

A day is cut into slots of 15, 30 or 60 minutes, from midnight to midnight on the site's clock. Where the time zone is
known, a day on which the clock changes has 23 or 25 hours; where only offsets are known and they differ on that day,
it is refused, because the time of the change is unknown.

A profile is a CSV file of what holds from a time of the day on: the column `from` with times such as 08:00, the first
of them 00:00, and a column of numbers; for transformers, one column each.

Transformers may form a tree: one that is named among the members of another hangs on it, and what its stations draw
loads both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

import numpy as np

from cmpg.arrays import FloatArray, frozen, numbers, require_at_least_zero
from cmpg.errors import FileError, GameError, NoSuchDayError
from cmpg.scenarios.charging_stays import Slots, parts_of, power_of
from cmpg.scenarios.readers.acn import Session, read_sessions, zone_of
from cmpg.scenarios.readers.text import FilePath, Line, csv_rows, header_of, number_in
from cmpg.scenarios.samples import sample_file

SLOTS = (15, 30, 60)
HOURS = 24

Groups = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class ChargingDay:
    """The sessions of one day that need energy, in the order of the file."""

    day: date
    sessions: tuple[Session, ...]
    source: str
    left_out: int = 0  # sessions of that day without energy


def charging_day(
    *,
    sessions: FilePath | None = None,
    day: str | date | None = None,
    timezone: str | None = None,
    energy: str = "delivered",
    columns: Mapping[str, str] | str | None = None,
) -> ChargingDay:
    """Read the cars of one day.

    Parameters
    ----------
    sessions
        ACN sessions, `.csv` or `.json`, plain or `.gz`; the package's own sample where it is left out.
    day
        A date or its ISO form; where it is left out, the day with the most cars, the first of several.
    timezone
        Where the site is, such as America/Los_Angeles; needed where the times are in UTC.
    energy
        Which energy of the file a car needs: "delivered" or "requested".
    columns
        What the columns are called, as in `read_sessions`.

    Raises
    ------
    FileError
        The file cannot be read, or has no car on that day.
    """
    source = "the bundled day" if sessions is None else str(sessions)
    with sample_file("sample_sessions.csv") as sample:
        path = sample if sessions is None else sessions
        every = read_sessions(path, timezone=timezone, energy=energy, columns=columns)
    cars = [session for session in every if session.energy > 0]
    counts = Counter(session.arrival.date() for session in cars)
    if not counts:
        raise FileError(f"{source} has no session that took energy.")
    busiest = max(sorted(counts), key=lambda one: counts[one])
    chosen = busiest if day is None else _date(day)
    if chosen not in counts:
        raise NoSuchDayError(
            f"{source} has no session that arrived on {chosen} and took energy. It goes from {min(counts)} to "
            f"{max(counts)}; its busiest day is {busiest} with {counts[busiest]} cars."
        )
    idle = sum(session.energy == 0 and session.arrival.date() == chosen for session in every)
    return ChargingDay(chosen, tuple(car for car in cars if car.arrival.date() == chosen), source, idle)


def _date(day: str | date) -> date:
    if isinstance(day, datetime):
        return day.date()
    if isinstance(day, date):
        return day
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise GameError(f"day is {day!r}; a date such as 2019-06-12 is required.") from None


def slots_of(cars: ChargingDay, *, minutes: int = 60, timezone: str | None = None) -> Slots:
    """Cut the day of some cars into slots."""
    if minutes not in SLOTS:
        raise GameError(f"slot is {minutes}; slots of 15, 30 or 60 minutes are required.")
    zone = None if timezone is None else zone_of(timezone)
    if zone is None:
        named = {str(car.arrival.tzinfo): car.arrival.tzinfo for car in cars.sessions if _has_rules(car.arrival.tzinfo)}
        if len(named) == 1:
            (zone,) = named.values()
    offsets = {car.arrival.utcoffset() for car in cars.sessions}
    if zone is None and len(offsets) > 1:
        raise FileError(
            f"{cars.source}: on {cars.day} the clock changes, since its times have several offsets from UTC, and the "
            "file does not say when. Pass the time zone, such as America/Los_Angeles."
        )
    return Slots(cars.day, minutes, zone)


def _has_rules(zone: tzinfo | None) -> bool:
    """Whether a time zone is a place, and not only an offset."""
    return zone is not None and hasattr(zone, "key")


def grouped(cars: Sequence[Session], transformers: Groups | str | None) -> dict[str, set[str]]:
    """Return the stations that load each transformer, or each phase.

    They are given as a mapping, as text such as "north=P-01,P-02; south=P-1*", where a star stands for any letters, or
    as a CSV file with the columns `station` and `transformer`. In "site=north,south" two transformers hang on a third.
    """
    stations = sorted({car.station for car in cars})
    if transformers is None:
        return {"transformer": set(stations)}
    if isinstance(transformers, str):
        transformers = _from_file(transformers) if transformers.endswith(".csv") else _from_text(transformers)
    if not isinstance(transformers, Mapping) or not transformers:  # type: ignore[redundant-expr]
        raise GameError(
            f"transformers is {transformers!r}; for each transformer its name and its stations are required, such as "
            "north=P-01,P-02; south=P-1*."
        )
    given = {str(name): [str(each) for each in members] for name, members in transformers.items()}
    direct = {
        name: {each for member in members if member not in given for each in _matching(member, stations)}
        for name, members in given.items()
    }
    _check_partition(direct, stations)
    hanging = {name: [member for member in members if member in given] for name, members in given.items()}
    _check_tree(hanging)
    return {name: set().union(*(direct[each] for each in _below(name, hanging))) for name in given}


def _check_tree(hanging: Mapping[str, Sequence[str]]) -> None:
    """Raise unless every transformer hangs on at most one other, and none on itself."""
    above: dict[str, str] = {}
    for name, members in hanging.items():
        for member in members:
            if member in above:
                raise GameError(f"transformer {member} hangs on {above[member]} and on {name}; one is required.")
            above[member] = name
    for name in above:
        way, up = {name}, above[name]
        while up in above and up not in way:
            way.add(up)
            up = above[up]
        if up in way:
            raise GameError(f"transformer {up} hangs on itself; a tree of transformers is required.")


def _below(name: str, hanging: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a transformer and all that hang on it."""
    return [name, *(each for member in hanging[name] for each in _below(member, hanging))]


def _from_text(text: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, found, members = part.partition("=")
        if not found or not name.strip():
            raise GameError(
                f"transformers is {text!r}; for each transformer its name and its stations are required, such as "
                "north=P-01,P-02; south=P-1*."
            )
        groups.setdefault(name.strip(), []).extend(each.strip() for each in members.split(",") if each.strip())
    return groups


def _from_file(path: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for row, line in csv_rows(path, ("station", "transformer")):
        if not row["station"] or not row["transformer"]:
            raise line.error("a station and its transformer are required.")
        groups.setdefault(row["transformer"], []).append(row["station"])
    return groups


def _matching(pattern: str, stations: Sequence[str]) -> list[str]:
    """Return the stations that a pattern stands for; a name stands for itself, whether a car was there or not."""
    return [each for each in stations if fnmatchcase(each, pattern)] if set("*?[") & set(pattern) else [pattern]


def _check_partition(groups: Mapping[str, Collection[str]], stations: Sequence[str]) -> None:
    fed_by: dict[str, str] = {}
    for name, members in groups.items():
        for station in sorted(members):
            if station in fed_by:
                raise GameError(f"station {station} is fed by {fed_by[station]} and by {name}; one is required.")
            fed_by[station] = name
    for station in stations:
        if station not in fed_by:
            raise GameError(f"station {station} is fed by no transformer; the transformers must cover every station.")


def read_profile(path: FilePath, slots: Slots, columns: Sequence[str]) -> FloatArray:
    """Read what holds in each slot: [columns, slots]; a file with a single column of numbers holds for all.

    Raises
    ------
    FileError
        With the file and the line: a column is missing, a time is not one, or they do not begin at 00:00 and ascend.
    """
    header = header_of(path)
    single = len(header) == 2 and not set(columns) & set(header)
    wanted = [next(name for name in header if name != "from")] * len(columns) if single else list(columns)
    begins: list[int] = []
    values: list[list[float]] = []
    for row, line in csv_rows(path, ("from", *wanted)):
        minute = _minute(row["from"], line)
        if (minute != 0) if not begins else (minute <= begins[-1]):
            raise line.error(f"from is {row['from']}; times that begin with 00:00 and ascend are required.")
        begins.append(minute)
        values.append([number_in(row[name], line, name=name) for name in wanted])
    if not begins:
        raise FileError(f"{path} has no times; a line for 00:00 is required.")
    indices = np.searchsorted(begins, slots.clocks, side="right") - 1
    return frozen(np.array(values)[indices].T)


def _minute(text: str, line: Line) -> int:
    try:
        clock = time.fromisoformat(text)
    except ValueError:
        raise line.error(f"from is {text!r}; a time of the day such as 08:00 is required.") from None
    return 60 * clock.hour + clock.minute


def kilowatts(
    name: str, groups: Mapping[str, Collection[str]], slots: Slots, given: float | Sequence[float] | FilePath
) -> FloatArray:
    """Return a power in kW of each transformer in each slot: one number for all, one each, or a profile: [E, H]."""
    if isinstance(given, str):
        found_numbers = _numbers_in(given)
        given = given if found_numbers is None else found_numbers
    if isinstance(given, (str, Path)):
        found = read_profile(given, slots, list(groups))
        if (found < 0).any():
            raise FileError(f"{given} has a power below 0; a power in kW of at least 0 is required.")
        return frozen(found)
    return frozen(np.repeat(one_each(name, cast(float, given), len(groups))[:, None], slots.count, axis=1))


def _numbers_in(text: str) -> Sequence[float] | float | None:
    """Return the numbers that a text lists; None where it lists none."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    return found if len(found) > 1 else found[0]


def one_each(name: str, value: float | Sequence[float], count: int) -> FloatArray:
    """Return one number for each transformer, where one for all or one each is given: [count]."""
    given = numbers(name, value)
    if given.shape not in ((), (count,)):
        raise GameError(f"{name} has shape {list(given.shape)}; one number, or one for each of {count} transformers.")
    require_at_least_zero(**{name: given})
    return frozen(np.broadcast_to(given, (count,)).copy())


def prices_of(slots: Slots, *, prices: Sequence[float], tariff: FilePath | None, unit: float) -> FloatArray:
    """Return the price of a unit in each slot: [H].

    A tariff file has prices per kWh. Otherwise `prices` are those of an hour of charging, one for each hour that the
    clock shows, or one for each slot.
    """
    if tariff is not None:
        return frozen(read_profile(tariff, slots, ["price"])[0] * unit)
    given = numbers("prices", prices)
    if given.shape == (HOURS,):
        given = given[np.array(slots.clocks) // 60]
    elif given.shape != (slots.count,):
        raise GameError(f"prices has shape {list(given.shape)}; one for each of {HOURS} hours, or {slots.count} slots.")
    return frozen(given * (slots.minutes / 60))


@dataclass(frozen=True, eq=False)
class ChargingSite:
    """A site on one day."""

    cars: ChargingDay
    slots: Slots
    transformers: dict[str, set[str]]  # the stations that load each
    powers: tuple[float, ...]  # of each car, in kW
    parts: tuple[int, ...]  # of how many parts each car is
    unit: float  # kW of a part
    capacities: FloatArray  # [E, H]: what is left for cars, in units of power
    overfull: int = 0  # slots of transformers in which the base load alone exceeds the capacity

    @property
    def largest(self) -> float:
        """The largest power of a car, in kW: what "a car" means in capacities and thresholds."""
        return max(self.powers)

    @property
    def overstated(self) -> float:
        """By which share the power of some car is counted too high, at most."""
        return max(self.unit * parts / power - 1 for power, parts in zip(self.powers, self.parts, strict=True))

    def loaded_by(self, station: str) -> tuple[int, ...]:
        """Return the transformers that a station loads, the nearest first."""
        found = [e for e, members in enumerate(self.transformers.values()) if station in members]
        sizes = [len(members) for members in self.transformers.values()]
        return tuple(sorted(found, key=lambda e: sizes[e]))


def charging_site(
    *,
    sessions: FilePath | None = None,
    day: str | date | None = None,
    timezone: str | None = None,
    energy: str = "delivered",
    columns: Mapping[str, str] | str | None = None,
    slot: int = 60,
    power: float | Mapping[str, float] | str = 6.6,
    min_rate: float | None = None,
    capacity: float | Sequence[float] = 8,
    capacity_kw: float | Sequence[float] | str | None = None,
    base_load: float | Sequence[float] | str | None = None,
    transformers: Groups | str | None = None,
) -> ChargingSite:
    """Read the cars of one day, and the capacities of the transformers; options as in `charging`."""
    if isinstance(power, (int, float)):
        power_of(power, "")  # refused before any file is read
    cars = charging_day(sessions=sessions, day=day, timezone=timezone, energy=energy, columns=columns)
    slots = slots_of(cars, minutes=slot, timezone=timezone)
    groups = grouped(cars.sessions, transformers)
    powers = tuple(power_of(power, car.station) if car.power is None else car.power for car in cars.sessions)
    parts, unit = parts_of(powers, smallest=min_rate)
    if capacity_kw is None:
        each = one_each("capacity", capacity, len(groups)) * (max(powers) / unit)
        left = np.repeat(each[:, None], slots.count, axis=1)
    else:
        left = kilowatts("capacity_kw", groups, slots, capacity_kw) / unit
    overfull = 0
    if base_load is not None:
        left = left - kilowatts("base_load", groups, slots, base_load) / unit
        overfull = int((left < 0).sum())
    return ChargingSite(cars, slots, groups, powers, parts, unit, frozen(np.maximum(left, 0.0)), overfull)
