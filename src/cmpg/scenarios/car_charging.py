"""Charging: cars under a transformer limit, on a day of charging sessions.

Agents are the sessions that arrive on that day, in local time, and took energy. There are 24 steps, one per hour. A
car's state is how many units it still needs: need = ceil(delivered / 6.6 kWh), at most the hours of its stay. In the
hours

    arrival_hour ≤ h < max(arrival_hour + 1, min(24, ceil(departure in hours of that day)))

and while a unit is needed, "charge" uses the transformer, delivers a unit with probability 0.9, and costs the car
price_h + 0.02 · load; elsewhere "charge" is "idle". A unit still needed after the last hour costs 2. The constraint is
E Σ_h (load_h − capacity)^+ ≤ 0.5 for each transformer. It is a local game: policies see the own state and the hour.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, check_shape, frozen, numbers, require_at_least_zero
from cmpg.errors import FileError, GameError
from cmpg.games.contract import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios.moves import certain, move_table
from cmpg.scenarios.readers.acn import Session, read_sessions
from cmpg.scenarios.readers.text import FilePath
from cmpg.scenarios.samples import sample_file

HOURS = 24
PRICES = tuple(0.12 if hour < 8 else 0.30 if 16 <= hour <= 20 else 0.17 for hour in range(HOURS))
"""What a unit costs in each hour: cheap before eight, dear from four to nine in the evening."""

CHARGE = 1
"""The action; 0 is to idle."""


@dataclass(frozen=True)
class ChargingDay:
    """The sessions of one day that took energy, in the order of the file."""

    day: date
    sessions: tuple[Session, ...]
    source: str


@dataclass(frozen=True)
class Stay:
    """When one car can charge, first_hour ≤ h < end_hour, and how many units it needs."""

    first_hour: int
    end_hour: int
    need: int


def charging_day(*, sessions: FilePath | None = None, day: str | date | None = None) -> ChargingDay:
    """Read the cars of one day.

    Parameters
    ----------
    sessions
        An ACN session file, plain or `.gz`; the package's own sample where it is left out.
    day
        A date or its ISO form; where it is left out, the day with the most cars, the first of several.

    Raises
    ------
    FileError
        The file cannot be read, or has no car on that day.
    """
    if sessions is None:
        with sample_file("sample_sessions.csv") as sample:
            return charging_day(sessions=sample, day=day)
    cars = [session for session in read_sessions(sessions) if session.delivered > 0]
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
    return ChargingDay(chosen, tuple(car for car in cars if car.arrival.date() == chosen), str(sessions))


def _date(day: str | date) -> date:
    if isinstance(day, datetime):
        return day.date()
    if isinstance(day, date):
        return day
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise GameError(f"day is {day!r}; a date such as 2019-06-12 is required.") from None


def stay_of(session: Session, *, unit: float = 6.6) -> Stay:
    """Return the hours in which a car can charge, and the units of `unit` kWh that it needs.

    Examples
    --------
    >>> from datetime import datetime
    >>> stay_of(Session(datetime(2024, 3, 12, 8, 30), datetime(2024, 3, 12, 11, 0), 19.8, "P-01", "a"))
    Stay(first_hour=8, end_hour=11, need=3)
    """
    if unit <= 0:
        raise GameError(f"unit is {unit}; an hour of charging must deliver something.")
    first = session.arrival.hour
    midnight = datetime.combine(session.arrival.date(), time())
    departure_hour = -((midnight - session.departure.replace(tzinfo=None)) // timedelta(hours=1))
    end = max(first + 1, min(HOURS, departure_hour))
    # The decimals that the file shows are divided, not their binary neighbours: 19.8 / 6.6 is three units.
    need = math.ceil(Fraction(str(session.delivered)) / Fraction(str(unit)))
    return Stay(first, end, min(need, end - first))


def charging(
    *,
    sessions: FilePath | None = None,
    day: str | date | None = None,
    capacity: float | Sequence[float] = 8,
    threshold: float | Sequence[float] = 0.5,
    transformers: Mapping[str, Collection[str]] | None = None,
    unit: float = 6.6,
    success: float = 0.9,
    prices: Sequence[float] = PRICES,
    load_price: float = 0.02,
    shortfall: float = 2.0,
) -> LocalGame:
    """Return the game of one charging day.

    Parameters
    ----------
    sessions, day
        As in `charging_day`.
    capacity, threshold
        Of each transformer: one number for all, or one per transformer.
    transformers
        Which stations hang on which transformer, a partition of the stations; one transformer for all where left out.
    unit
        What an hour of charging delivers, in kWh.
    success
        The probability that an hour of charging delivers its unit.
    prices : [24]
        The price of charging in each hour.
    load_price
        What each car on the transformer adds to everybody's price.
    shortfall
        The penalty per unit still needed after the last hour.
    """
    require_at_least_zero(load_price=load_price, shortfall=shortfall)
    cars = charging_day(sessions=sessions, day=day).sessions
    groups = {"transformer": {car.station for car in cars}} if transformers is None else transformers
    places = _transformer_of(cars, groups)
    tariff = Tariff(numbers("prices", prices), shortfall, success)
    kinds: dict[tuple[Stay, int], LocalAgent] = {}
    members = []
    for car in cars:
        kind = (stay_of(car, unit=unit), places[car.station])
        if kind not in kinds:
            kinds[kind] = _car(kind[0], kind[1], num_transformers=len(groups), tariff=tariff)
        members.append(kinds[kind])
    loads = np.arange(len(cars) + 1.0)
    return LocalGame(
        agents=tuple(members),
        delay=frozen(np.broadcast_to(load_price * loads, (1, len(groups), len(loads)))),
        load_costs=_overloads(loads, _one_each("capacity", capacity, len(groups))),
        thresholds=_one_each("threshold", threshold, len(groups)),
        horizon=HOURS,
        agent_names=tuple(f"car {i} at {car.station}" for i, car in enumerate(cars)),
        constraint_names=tuple(f"overload of {name}" for name in groups),
        resource_names=tuple(groups),
        legend=Legend(
            agent="car",
            state="units still needed",
            step="hour",
            resource="transformer",
            steps=tuple(f"{hour:02}:00" for hour in range(HOURS)),
            states=tuple(map(str, range(HOURS + 1))),
            actions=("idle", "charge"),
            value=Amount("cost", "", -1.0),
            load=Amount("power", "kW", unit),
            use=Amount("energy", "kWh", unit * success),
            left=Amount("energy missing", "kWh", unit),
            unpaid=shortfall,
        ),
    )


@dataclass(frozen=True, eq=False)
class Tariff:
    """What charging costs a car, apart from the load, and how well it works."""

    prices: FloatArray  # [24]
    shortfall: float
    success: float

    def __post_init__(self) -> None:
        check_shape("prices", self.prices.shape, (HOURS,))
        if not 0 < self.success <= 1:
            raise GameError(f"success is {self.success}; a probability above 0 is required.")


def _transformer_of(cars: Sequence[Session], groups: Mapping[str, Collection[str]]) -> dict[str, int]:
    if not isinstance(groups, Mapping):
        raise GameError(f"transformers is {groups!r}; for each transformer its name and its stations are required.")
    places: dict[str, int] = {}
    for index, (name, stations) in enumerate(groups.items()):
        for station in stations:
            if station in places:
                raise GameError(
                    f"station {station} hangs on {list(groups)[places[station]]} and on {name}; one is required."
                )
            places[station] = index
    for car in cars:
        if car.station not in places:
            raise GameError(
                f"station {car.station} hangs on no transformer; the transformers must cover every station."
            )
    return places


def _one_each(name: str, value: float | Sequence[float], count: int) -> FloatArray:
    given = numbers(name, value)
    if given.shape not in ((), (count,)):
        raise GameError(f"{name} has shape {list(given.shape)}; one number, or one for each of {count} transformers.")
    require_at_least_zero(**{name: given})
    return frozen(np.broadcast_to(given, (count,)).copy())


def _overloads(loads: FloatArray, capacity: FloatArray) -> FloatArray:
    count = len(capacity)
    costs = np.zeros((count, 1, count, len(loads)))
    for j in range(count):
        costs[j, 0, j] = np.maximum(loads - capacity[j], 0.0)
    return frozen(costs)


def _car(stay: Stay, transformer: int, *, num_transformers: int, tariff: Tariff) -> LocalAgent:
    units = np.arange(stay.need + 1)
    plugged = np.array([stay.first_hour <= hour < stay.end_hour for hour in range(HOURS)])
    less = np.stack([units, np.maximum(units - 1, 0)], axis=1)
    resting = move_table(np.stack([units, units], axis=1))
    charging_hour = move_table(less, success=tariff.success)
    needed = np.flatnonzero(less.ravel() != np.repeat(units, 2))
    using = sp.csr_array(
        (np.ones(len(needed)), (needed, np.full(len(needed), transformer))), shape=(less.size, num_transformers)
    )
    unused = sp.csr_array(using.shape)
    reward = np.zeros((HOURS, *less.shape))
    reward[plugged, 1:, CHARGE] = -tariff.prices[plugged, None]
    # The penalty falls after the last hour, so its expectation is part of that hour's reward.
    reward[-1] -= tariff.shortfall * units[:, None]
    reward[-1, 1:, CHARGE] += tariff.shortfall * tariff.success * plugged[-1]
    return LocalAgent(
        transition=tuple(charging_hour if hour else resting for hour in plugged),
        reward=frozen(reward),
        uses=tuple(using if hour else unused for hour in plugged),
        initial=certain(len(units), stay.need),
    )
