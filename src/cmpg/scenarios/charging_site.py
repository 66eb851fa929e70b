"""A charging site on one day: its slots, its cars, its tariff, its transformers and their capacities.

A day is cut into slots of 15, 30 or 60 minutes, from midnight to midnight on the site's clock. Where the time zone is
known, a day on which the clock changes has 23 or 25 hours; where only offsets are known and they differ on that day,
it is refused, because the time of the change is unknown.

A profile is a CSV file of what holds from a time of the day on: the column `from` with times such as 08:00, the first
of them 00:00, and a column of numbers; for transformers, one column each.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path

import numpy as np

from cmpg.arrays import FloatArray, frozen, numbers, require_at_least_zero
from cmpg.errors import FileError, GameError
from cmpg.scenarios.readers.acn import Session, read_sessions, zone_of
from cmpg.scenarios.readers.text import FilePath, Line, number_in, read_lines
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


@dataclass(frozen=True)
class Stay:
    """How much one car needs, and how much each slot of its stay can deliver, in kWh.

    A slot that the car is there for in part delivers that part. What the car needs beyond the sum of all slots cannot
    be delivered at its power; it stays part of the need, so that it is missing in every plan.
    """

    first: int  # the first slot
    offers: tuple[Fraction, ...]  # of the slots from the first on
    need: Fraction

    @property
    def unmet(self) -> Fraction:
        """What cannot be delivered whatever the plan."""
        return max(Fraction(0), self.need - sum(self.offers, Fraction(0)))

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """What the car may still need at some time, ascending: the states of its problem."""
        found = {self.need}
        for offer in self.offers:
            found |= {max(Fraction(0), level - offer) for level in found}
        return tuple(sorted(found | {Fraction(0)}))


@dataclass(frozen=True)
class Slots:
    """The slots of one day."""

    day: date
    minutes: int
    zone: tzinfo | None = None

    @property
    def count(self) -> int:
        """How many there are: those of 23, 24 or 25 hours."""
        following = _midnight(self.day + timedelta(days=1), self.zone)
        return int((following - _midnight(self.day, self.zone)) / timedelta(minutes=self.minutes))

    def of(self, moment: datetime) -> Fraction:
        """Return how many slots after midnight a moment is."""
        if self.zone is None:
            apart = moment.replace(tzinfo=None) - _midnight(self.day, None)
        else:
            apart = moment.astimezone(UTC) - _midnight(self.day, self.zone)
        return Fraction(apart // timedelta(microseconds=1), self.minutes * 60_000_000)

    @property
    def clocks(self) -> tuple[int, ...]:
        """The minute of the day that the clock shows when each slot begins."""
        starts = (_midnight(self.day, self.zone) + k * timedelta(minutes=self.minutes) for k in range(self.count))
        shown = [start if self.zone is None else start.astimezone(self.zone) for start in starts]
        return tuple(60 * start.hour + start.minute for start in shown)

    @property
    def names(self) -> tuple[str, ...]:
        """What each slot is called: the time at which it begins, and which of two where the clock shows it twice."""
        names: list[str] = []
        for clock in self.clocks:
            name = f"{clock // 60:02}:{clock % 60:02}"
            names.append(f"{name} again" if name in names else name)
        return tuple(names)


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC) if zone is not None else datetime.combine(day, time())


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
    if sessions is None:
        with sample_file("sample_sessions.csv") as sample:
            found = charging_day(sessions=sample, day=day, timezone=timezone, energy=energy, columns=columns)
            return replace(found, source="the bundled day")
    every = read_sessions(sessions, timezone=timezone, energy=energy, columns=columns)
    cars = [session for session in every if session.energy > 0]
    counts = Counter(session.arrival.date() for session in cars)
    if not counts:
        raise FileError(f"{sessions} has no session that took energy.")
    busiest = max(sorted(counts), key=lambda one: counts[one])
    chosen = busiest if day is None else _date(day)
    if chosen not in counts:
        raise FileError(
            f"{sessions} has no session that arrived on {chosen} and took energy. It goes from {min(counts)} to "
            f"{max(counts)}; its busiest day is {busiest} with {counts[busiest]} cars."
        )
    idle = sum(session.energy == 0 and session.arrival.date() == chosen for session in every)
    return ChargingDay(chosen, tuple(car for car in cars if car.arrival.date() == chosen), str(sessions), idle)


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


def stay_of(session: Session, *, power: float = 6.6, slots: Slots | None = None) -> Stay:
    """Return what a car needs, and what each slot of its stay delivers at a power in kW; slots are hours by default.

    Examples
    --------
    >>> from datetime import datetime
    >>> stay = stay_of(Session(datetime(2024, 3, 12, 8, 30), datetime(2024, 3, 12, 11, 0), 14.2, "P-01", "a"))
    >>> stay.first, [float(each) for each in stay.offers], [float(each) for each in stay.levels]
    (8, [3.3, 6.6, 6.6], [0.0, 1.0, 4.3, 7.6, 10.9, 14.2])
    """
    if not 0 < power < math.inf:
        raise GameError(f"power is {power}; a charger needs a positive number of kW.")
    cut = Slots(session.arrival.date(), 60) if slots is None else slots
    # The decimals that the file shows are meant, not their binary neighbours: 19.8 kWh at 6.6 kW are three hours.
    unit = Fraction(str(power)) * Fraction(cut.minutes, 60)
    begin, end = cut.of(session.arrival), min(Fraction(cut.count), cut.of(session.departure))
    first = math.floor(begin)
    overlaps = (min(end, Fraction(h + 1)) - max(begin, Fraction(h)) for h in range(first, math.ceil(end)))
    return Stay(first, tuple(unit * overlap for overlap in overlaps), Fraction(str(session.energy)))


def grouped(cars: Sequence[Session], transformers: Groups | str | None) -> dict[str, set[str]]:
    """Return the stations of each transformer, or of each phase.

    They are given as a mapping, as text such as "north=P-01,P-02; south=P-1*", where a star stands for any letters, or
    as a CSV file with the columns `station` and `transformer`.
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
    groups = {
        str(name): {each for given in members for each in _matching(given, stations)}
        for name, members in transformers.items()
    }
    _check_partition(groups, stations)
    return groups


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
    for row, line in _table(path, ("station", "transformer")):
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
    header = _header(path)
    single = len(header) == 2 and not set(columns) & set(header)
    wanted = [next(name for name in header if name != "from")] * len(columns) if single else list(columns)
    begins: list[int] = []
    values: list[list[float]] = []
    for row, line in _table(path, ("from", *wanted)):
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


def _header(path: FilePath) -> list[str]:
    first = next(read_lines(path), None)
    return [] if first is None else [name.strip() for name in next(csv.reader([first.text]))]


def _table(path: FilePath, columns: Sequence[str]) -> list[tuple[dict[str, str], Line]]:
    header, found = _header(path), []
    missing = [name for name in columns if name not in header]
    if missing:
        raise FileError(f"{path}, line 1: the columns are: {', '.join(header)}; missing: {', '.join(missing)}.")
    for line in read_lines(path):
        if line.number > 1 and line.text.strip():
            fields = [field.strip() for field in next(csv.reader([line.text]))]
            if len(fields) != len(header):
                raise line.error(f"there are {len(fields)} fields; the first line names {len(header)} columns.")
            found.append((dict(zip(header, fields, strict=True)), line))
    return found


def capacities(
    groups: Mapping[str, Collection[str]],
    slots: Slots,
    *,
    cars: float | Sequence[float],
    kilowatts: float | Sequence[float] | FilePath | None,
    power: float,
) -> FloatArray:
    """Return how many cars each transformer bears in each slot: [E, H].

    Where kilowatts are given, one number for all, one each, or a profile, they are divided by the power of a car.
    """
    if isinstance(kilowatts, str):
        found_numbers = _numbers_in(kilowatts)
        kilowatts = kilowatts if found_numbers is None else found_numbers
    if isinstance(kilowatts, (str, Path)):
        found = read_profile(kilowatts, slots, list(groups)) / power
        if (found < 0).any():
            raise FileError(f"{kilowatts} has a power below 0; what is left for cars is required.")
        return frozen(found)
    given = one_each("capacity", cars, len(groups)) if kilowatts is None else None
    if given is None:
        given = one_each("capacity_kw", kilowatts, len(groups)) / power  # type: ignore[arg-type]
    return frozen(np.repeat(given[:, None], slots.count, axis=1))


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
    transformers: dict[str, set[str]]
    capacities: FloatArray  # [E, H], in cars


def charging_site(
    *,
    sessions: FilePath | None = None,
    day: str | date | None = None,
    timezone: str | None = None,
    energy: str = "delivered",
    columns: Mapping[str, str] | str | None = None,
    slot: int = 60,
    power: float = 6.6,
    capacity: float | Sequence[float] = 8,
    capacity_kw: float | Sequence[float] | str | None = None,
    transformers: Groups | str | None = None,
) -> ChargingSite:
    """Read the cars of one day, and what the transformers bear; options as in `charging`."""
    if not 0 < power < np.inf:
        raise GameError(f"power is {power}; a charger needs a positive number of kW.")
    cars = charging_day(sessions=sessions, day=day, timezone=timezone, energy=energy, columns=columns)
    slots = slots_of(cars, minutes=slot, timezone=timezone)
    groups = grouped(cars.sessions, transformers)
    borne = capacities(groups, slots, cars=capacity, kilowatts=capacity_kw, power=power)
    return ChargingSite(cars, slots, groups, borne)
