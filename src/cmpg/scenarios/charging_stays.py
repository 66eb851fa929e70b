"""When cars are at a charging site, how much they need, and at which power they charge.

A car charges on or off at its power. If powers differ, or if a smallest rate is given, a car of w times a unit of power
is w parts of one unit each, which decide separately: so the load of a transformer is a number of units, and a car
charges at any multiple of the unit up to its power. Its energy is shared out in whole slots of charging, as evenly as
that goes, with what is left over for one part; equally where the stay is too short for that. Powers that are no
multiples of one unit are matched within `LARGEST_MISMATCH`; a part then counts for the largest of all parts, never for
less than it draws.

Arrival and departure may be uncertain: by how many minutes they differ from those of the file, with probabilities. When
it arrives, a car has had no decision to make, so the moment of its arrival is drawn with its initial state. When it
departs is not known in advance: within every slot of its stay the car may leave, with the probability of that given
that it is still there.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from cmpg.errors import GameError
from cmpg.scenarios.readers.acn import Session

LARGEST_MISMATCH = 0.02
"""Parts of one unit may differ in power by this share."""

MAX_PARTS = 64
"""A car has at most this many parts."""

Spread = tuple[tuple[Fraction, float], ...]
"""Minutes by which a time differs from that of the file, ascending, with probabilities."""

CERTAIN: Spread = ((Fraction(0), 1.0),)


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

    @property
    def begins(self) -> str:
        """When the first slot begins, in ISO 8601; with its offset from UTC where the time zone is known."""
        return datetime.combine(self.day, time(), self.zone).isoformat()

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


@dataclass(frozen=True)
class Departures:
    """When a car may leave within one slot, given that it is still there when the slot begins.

    With probability `stays` it stays, and is offered the slot's energy; otherwise it leaves after it was offered less.
    """

    stays: float
    leaves: tuple[tuple[Fraction, float], ...]  # energy offered in kWh, probability


@dataclass(frozen=True)
class Presence:
    """What each slot offers a car that arrived at one moment, in kWh.

    A slot that the car is there for in part offers that part.
    """

    first: int  # the first slot
    offers: tuple[Fraction, ...]  # of the slots from the first on, if it stays to the end of the slot
    departures: tuple[Departures, ...] = ()  # likewise; empty if the departure is certain


@dataclass(frozen=True)
class Stay:
    """How much one car, or one part of it, needs, and what each slot can deliver to it, in kWh.

    What the car needs beyond the sum of all slots cannot be delivered at its power; it stays part of the need, so that
    it is missing in every plan.
    """

    need: Fraction
    arrivals: tuple[tuple[Presence, float], ...]  # with probabilities

    @property
    def unmet(self) -> Fraction:
        """What cannot be delivered even if the car arrives first and leaves last."""
        return max(Fraction(0), self.need - max(sum(each.offers, Fraction(0)) for each, _ in self.arrivals))

    @property
    def states(self) -> tuple[tuple[int, Fraction], ...]:
        """Every (arrival, energy still needed) that may occur, and (−1, energy) of a car that left with that missing.

        They ascend, those of cars that left coming last.
        """
        found: list[tuple[int, Fraction]] = []
        left: set[Fraction] = set()
        for number, (presence, _) in enumerate(self.arrivals):
            levels = {self.need}
            for index, offer in enumerate(presence.offers):
                if presence.departures:
                    partial = [each for each, _ in presence.departures[index].leaves]
                    left |= {level - min(level, each) for level in levels for each in (Fraction(0), *partial)}
                levels |= {level - min(level, offer) for level in levels}
            found += [(number, level) for level in sorted(levels | {Fraction(0)})]
        return (*found, *((-1, level) for level in sorted(left) if level))


def stay_of(
    session: Session,
    *,
    power: float | None = None,
    slots: Slots | None = None,
    arrival: Spread = CERTAIN,
    departure: Spread = CERTAIN,
    parts: int = 1,
    part: int = 0,
) -> Stay:
    """Return what a car needs, and what each slot of its stay delivers; slots are hours by default.

    Parameters
    ----------
    session
        The car.
    power
        In kW; 6.6 if omitted.
    slots
        Of the day.
    arrival, departure
        By how many minutes its times may differ. An arrival is not put after the departure of the file, and a departure
        not before the last arrival.
    parts, part
        The stay is that of one of so many parts of the car, all of the same power.

    Examples
    --------
    >>> from datetime import datetime
    >>> stay = stay_of(Session(datetime(2024, 3, 12, 8, 30), datetime(2024, 3, 12, 11, 0), 14.2, "P-01", "a"))
    >>> (presence, _), = stay.arrivals
    >>> presence.first, [float(each) for each in presence.offers], [float(level) for _, level in stay.states]
    (8, [3.3, 6.6, 6.6], [0.0, 1.0, 4.3, 7.6, 10.9, 14.2])
    """
    rate = 6.6 if power is None else power
    if not 0 < rate < math.inf:
        raise GameError(f"power is {rate}; a charger needs a positive number of kW.")
    cut = Slots(session.arrival.date(), 60) if slots is None else slots
    # The decimals that the file shows are meant, not their binary neighbours: 19.8 kWh at 6.6 kW are three hours.
    unit = Fraction(str(rate)) * Fraction(cut.minutes, 60) / parts
    end = cut.of(session.departure)
    begins = [
        (max(Fraction(0), min(end, cut.of(session.arrival) + minutes / cut.minutes)), probability)
        for minutes, probability in arrival
    ]
    last = max(begin for begin, _ in begins)
    ends = [(max(last, end + minutes / cut.minutes), probability) for minutes, probability in departure]
    arrivals = [(_presence(begin, ends, unit, cut.count), probability) for begin, probability in begins]
    longest = max(sum(presence.offers, Fraction(0)) for presence, _ in arrivals)
    shares = _shares(Fraction(str(session.energy)), unit, parts)
    need = shares[part] if max(shares) <= longest else Fraction(str(session.energy)) / parts
    return Stay(need, tuple(arrivals))


def _shares(energy: Fraction, unit: Fraction, parts: int) -> list[Fraction]:
    """Share out energy among parts in whole slots of charging, and what is left over to one of them.

    Examples
    --------
    >>> [float(share) for share in _shares(Fraction(9), Fraction(2), 3)]
    [4.0, 3.0, 2.0]
    """
    whole, rest = divmod(energy, unit)
    each, more = divmod(int(whole), parts)
    return [unit * (each + (part < more)) + (rest if part == more else 0) for part in range(parts)]


def _presence(begin: Fraction, ends: Sequence[tuple[Fraction, float]], unit: Fraction, count: int) -> Presence:
    """Return what the slots offer from a moment on, given when the car may leave, in slots after midnight."""
    first = math.floor(begin)
    if len(ends) == 1:
        end = min(Fraction(count), ends[0][0])
        overlaps = (min(end, Fraction(h + 1)) - max(begin, Fraction(h)) for h in range(first, math.ceil(end)))
        return Presence(first, tuple(unit * overlap for overlap in overlaps))
    offers, departures = [], []
    for h in range(first, count):
        start = max(begin, Fraction(h))
        there = [(end, probability) for end, probability in ends if end > start or h == first]
        going = [(end, probability) for end, probability in there if end <= h + 1 and end < count]
        total = math.fsum(probability for _, probability in there)
        leaves = tuple((unit * max(Fraction(0), end - start), probability / total) for end, probability in going)
        stays = 0.0 if len(going) == len(there) else 1.0 - math.fsum(share for _, share in leaves)
        offers.append(unit * (h + 1 - start))
        departures.append(Departures(stays, leaves))
        if not stays:
            break
    return Presence(first, tuple(offers), tuple(departures))


def spread_of(name: str, given: Mapping[Any, Any] | str | None, station: str) -> Spread:
    """Return by how many minutes a time at one station may differ from the file, with probabilities.

    Parameters
    ----------
    name
        Of the option.
    given
        Minutes and probabilities, as a mapping or as text such as "0=0.7, 30=0.2, 60=0.1"; or one of these for each
        kind of station, such as "P-0*: 0=0.5, 60=0.5; *: 0=1", the first that fits. None: nothing differs.
    station
        The station.

    Examples
    --------
    >>> spread_of("arrival_spread", "P-0*: -15=0.5, 15=0.5; *: 0=1", "P-07")
    ((Fraction(-15, 1), 0.5), (Fraction(15, 1), 0.5))
    """
    if given is None:
        return CERTAIN
    error = GameError(
        f"{name} is {reprlib.repr(given)}; minutes and probabilities that sum to 1 are required, such as "
        "0=0.7, 30=0.2, 60=0.1, or of each kind of station, such as P-0*: 0=0.5, 60=0.5; *: 0=1."
    )
    kinds = _by_kind(given, ":")
    if isinstance(given, Mapping) and not any(isinstance(each, (Mapping, str)) for each in given.values()):
        kinds = [("*", given)]
    found: Spread | None = None
    for kind, each in kinds:  # all are read, so that a mistake shows whichever station is there
        read = _outcomes(each)
        if read is None:
            raise error
        if found is None and fnmatchcase(station, kind):
            found = read
    return CERTAIN if found is None else found


def _by_kind(given: Any, mark: str) -> list[tuple[str, Any]]:
    """Return what is given for each kind of station, as a mapping or as text; a value without a kind is for all."""
    if isinstance(given, Mapping):
        return [(str(kind), each) for kind, each in given.items()]
    if not isinstance(given, str):
        return [("*", given)]
    parts = [part.rpartition(mark) for part in given.split(";") if part.strip()]
    return [(kind.strip() if found else "*", each) for kind, found, each in parts]


def _outcomes(given: Any) -> Spread | None:
    """Read minutes with their probabilities; None if they are not that."""
    if isinstance(given, str):
        words = [part.partition("=") for part in given.split(",") if part.strip()]
        given = {minutes: share for minutes, _, share in words}
    try:
        pairs = sorted((Fraction(str(minutes).strip()), float(share)) for minutes, share in given.items())
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        return None
    total = math.fsum(share for _, share in pairs)
    if not pairs or any(share < 0 for _, share in pairs) or not abs(total - 1) <= 1e-9:
        return None
    return tuple((minutes, share / total) for minutes, share in pairs if share > 0)


def power_of(given: float | Mapping[str, float] | str, station: str) -> float:
    """Return the power in kW at a station: one number for all, or "P-0*=11; *=6.6", the first that fits.

    Examples
    --------
    >>> power_of("P-0*=11; *=6.6", "P-07"), power_of(7.4, "P-07")
    (11.0, 7.4)
    """
    required = "a positive number of kW is required, or one for each kind of station, such as P-0*=11; *=6.6."
    error = GameError(f"power is {reprlib.repr(given)}; {required}")
    kinds = _by_kind(given, "=")
    found = 0.0
    for kind, power in kinds:
        try:
            number = float(power)
        except (TypeError, ValueError):
            raise error from None
        if not 0 < number < math.inf or not kind:
            raise error
        if not found and fnmatchcase(station, kind):
            found = number
    if not found:
        raise GameError(f"power is {reprlib.repr(given)}, which says nothing of station {station}; add *=6.6.")
    return found


def parts_of(powers: Sequence[float], *, smallest: float | None) -> tuple[tuple[int, ...], float]:
    """Return of how many parts each car is, and the power of a unit in kW: the largest of all parts.

    Parameters
    ----------
    powers
        Of the cars, in kW.
    smallest
        The smallest rate at which a car can charge; None for the largest unit of which all powers are multiples.

    Examples
    --------
    >>> parts_of([3.7, 11.0, 7.4], smallest=None)
    ((1, 3, 2), 3.7)
    >>> parts_of([8.0, 8.0], smallest=2.0)
    ((4, 4), 2.0)
    """
    distinct = sorted(set(powers))
    if smallest is not None and not 0 < smallest <= distinct[0]:
        raise GameError(f"min_rate is {smallest}; a positive number of at most {distinct[0]:g} kW is required.")
    # With a smallest rate the finest unit that is not below it, otherwise the coarsest of all.
    finest = MAX_PARTS if smallest is None else min(MAX_PARTS, math.floor(distinct[0] / smallest * (1 + 1e-9)))
    for pieces in range(1, finest + 1) if smallest is None else range(finest, 0, -1):
        counts = {power: round(power / distinct[0] * pieces) for power in distinct}
        sizes = [power / count for power, count in counts.items()]
        if max(counts.values()) <= MAX_PARTS and min(sizes) >= (1 - LARGEST_MISMATCH) * max(sizes):
            return tuple(counts[power] for power in powers), max(sizes)
    shown = ", ".join(f"{power:g}" for power in distinct[:8])
    least = "" if smallest is None else f" of at least {smallest:g} kW"
    raise GameError(
        f"cars charge at {shown} kW, and no unit of power{least} divides them, within 2 %. Round the powers."
    )
