"""Charging: cars under a transformer limit, on a day of charging sessions.

Agents are the sessions that arrive on that day, on the site's clock, and need energy. There is one step per slot, 24
hours unless slots are shorter. A car's state is the energy that it still needs, in kWh. In slot h of its stay a car
that charges receives, with probability 0.9,

    min(energy still needed, 6.6 kW · the time that it is there in slot h),

so that it does not charge before it arrives or after it leaves, and its last slot delivers only what is missing. It
pays the price of that energy, and 0.02 · load for an hour on the transformer. A car that charges in a part of a slot
counts as one user for the whole slot. Energy that is missing after the last slot costs 2 for what an hour of charging
delivers. The constraint is E Σ_h (load_h − capacity)^+ ≤ 0.5 for each transformer, in cars times hours. It is a local
game: policies see the own state and the slot.

In slots of m minutes, what a user and a car too many add is m/60 of that of an hour: an hour costs the same however
the day is cut.

Cars of different power, or with a smallest rate, are parts of one unit of power each (`charging_stays.py`); the agents
are then the parts, and no part gains by deviating alone. "A car" of capacities, thresholds and prices is one with the
largest power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, frozen, generator, require_at_least_zero
from cmpg.errors import GameError
from cmpg.games.crowd.game import CrowdGame, LoadCurve, excess_curve
from cmpg.games.game import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.proof.crowd import MAX_AGENTS
from cmpg.scenarios.charging_site import HOURS, ChargingSite, Groups, charging_site, one_each, prices_of
from cmpg.scenarios.charging_stays import Presence, Stay, spread_of, stay_of
from cmpg.scenarios.moves import move_table
from cmpg.scenarios.readers.text import FilePath
from cmpg.summaries import counted

PRICES = tuple(0.12 if hour < 8 else 0.30 if 16 <= hour <= 20 else 0.17 for hour in range(HOURS))
"""What an hour of charging costs: cheap before eight, expensive from four to nine in the evening."""

CHARGE = 1
"""The action; 0 is to idle."""

LONGEST_CURRENCY = 8


def charging(
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
    threshold: float | Sequence[float] = 0.5,
    transformers: Groups | str | None = None,
    success: float = 0.9,
    attendance: float = 1.0,
    arrival_spread: Mapping[Any, Any] | str | None = None,
    departure_spread: Mapping[Any, Any] | str | None = None,
    prices: Sequence[float] = PRICES,
    tariff: FilePath | None = None,
    currency: str = "",
    load_price: float = 0.02,
    shortfall: float | None = None,
    num_agents: int | None = None,
    seed: int = 0,
) -> LocalGame | CrowdGame:
    """Return the game of one charging day; with `num_agents`, a crowd of cars at a site that is as much larger.

    Parameters
    ----------
    sessions, day, timezone, energy, columns
        As in `charging_day`.
    slot
        The length of a step in minutes: 15, 30 or 60.
    power
        With which a car charges, in kW: one number, or one for each kind of station, such as "P-0*=11; *=6.6". A column
        `power (kW)` of the session file goes first.
    min_rate
        The smallest rate at which a car can charge, in kW; it charges at multiples of that up to its power. If omitted,
        cars of one power charge at that or not at all.
    capacity
        How many cars each transformer can charge at once: one number for all, or one per transformer.
    capacity_kw
        The same in kW, instead: one number, one per transformer, or a CSV file of what is left for cars by the time of
        the day, beside solar power or other loads: columns `from` and `kw`, or one for each transformer.
    base_load
        What other loads take from the capacity, in kW: likewise.
    threshold
        Of each transformer, in cars too many times hours.
    transformers
        Which stations hang on which transformer or phase: a mapping, text such as "north=P-01,P-02; south=P-1*", or a
        CSV file with the columns `station` and `transformer`. A transformer among the members of another one hangs on
        it: "site=north,south". One transformer for all where it is left out.
    success
        The probability that a slot of charging delivers its energy.
    attendance
        The probability that a car comes at all, each by itself.
    arrival_spread, departure_spread
        By how many minutes arrival and departure may differ from the file, with probabilities, such as
        "0=0.7, 30=0.2, 60=0.1"; for each kind of station "P-0*: 0=0.5, 60=0.5; *: 0=1".
    prices : [24] or [H]
        The price of an hour of charging, in each hour or slot.
    tariff
        A CSV file of prices per kWh instead: columns `from` and `price`.
    currency
        What prices are in, for tables.
    load_price
        What each car on a transformer adds to the price of all cars on it, for an hour.
    shortfall
        The penalty for an hour's energy still needed after the last slot. Where it is left out, 2; with a tariff, six
        times what an hour's energy costs when it is most expensive, so that it pays to charge.
    num_agents
        How many cars are drawn from the sessions of the day, with replacement; the day's own cars if omitted. The site
        is as much larger: capacities are multiplied by cars drawn per car of the day, and `load_price` is divided by
        that. The thresholds stay as they are.
    seed
        Of the draw.

    Examples
    --------
    >>> day = charging()
    >>> day.num_agents, day.horizon, day.legend.agent, day.legend.load.unit
    (24, 24, 'car', 'kW')
    """
    require_at_least_zero(load_price=load_price, shortfall=2.0 if shortfall is None else shortfall)
    if len(currency) > LONGEST_CURRENCY:
        raise GameError(f"currency is {currency!r}; a sign such as EUR is required.")
    if not 0 < attendance <= 1:
        raise GameError(f"attendance is {attendance}; a probability above 0 is required.")
    site = charging_site(
        sessions=sessions,
        day=day,
        timezone=timezone,
        energy=energy,
        columns=columns,
        slot=slot,
        power=power,
        min_rate=min_rate,
        capacity=capacity,
        capacity_kw=capacity_kw,
        base_load=base_load,
        transformers=transformers,
    )
    stays = _stays(site, arrival_spread=arrival_spread, departure_spread=departure_spread, attendance=attendance)
    terms = _terms(site, prices=prices, tariff=tariff, shortfall=shortfall, success=success, hours=slot / 60)
    fleet = _fleet(site, stays, terms, attendance)
    legend = replace(
        _legend(fleet, terms, slot=slot, currency=currency),
        translation=_translation(site, stays, fleet.owners, energy=energy, success=success, attendance=attendance),
    )
    thresholds = one_each("threshold", threshold, len(site.transformers))
    if num_agents is not None:
        return _drawn_crowd(
            fleet,
            num_agents=num_agents,
            seed=seed,
            hours=slot / 60,
            load_price=load_price,
            thresholds=thresholds,
            legend=legend,
        )
    return _day_of_cars(fleet, hours=slot / 60, load_price=load_price, thresholds=thresholds, legend=legend)


def _terms(
    site: ChargingSite,
    *,
    prices: Sequence[float],
    tariff: FilePath | None,
    shortfall: float | None,
    success: float,
    hours: float,
) -> Tariff:
    """Return what charging costs at the largest power, per kWh and slot."""
    unit = site.largest * hours  # kWh
    prices_of_slots = prices_of(site.slots, prices=prices, tariff=tariff, unit=unit) / unit
    usual = 2.0 / site.largest if tariff is None else 6.0 * float(prices_of_slots.max())
    return Tariff(prices_of_slots, usual if shortfall is None else shortfall / site.largest, success)


Kind = tuple[Stay, tuple[int, ...]]  # when a car is there, and which transformers it loads


@dataclass(frozen=True)
class _Fleet:
    """The cars of a day; every part of a car is an agent."""

    site: ChargingSite
    owners: list[int]  # the car of each part
    members: list[Kind]  # of each part
    kinds: dict[Kind, LocalAgent]  # cars alike are one table, which all of them share

    @property
    def stations(self) -> list[str]:
        """Where each part charges."""
        return [self.site.cars.sessions[i].station for i in self.owners]

    @property
    def names(self) -> list[str]:
        """The car of each part."""
        return [f"car {i} at {station}" for i, station in zip(self.owners, self.stations, strict=True)]

    @property
    def rows(self) -> list[int]:
        """The index of each part's kind."""
        index = {kind: row for row, kind in enumerate(self.kinds)}
        return [index[kind] for kind in self.members]


def _fleet(site: ChargingSite, stays: Sequence[Stay], terms: Tariff, attendance: float) -> _Fleet:
    owners = [i for i, parts in enumerate(site.parts) for _ in range(parts)]
    stations = [site.cars.sessions[i].station for i in owners]
    loaded = {station: site.loaded_by(station) for station in set(stations)}
    members = [(stay, loaded[station]) for station, stay in zip(stations, stays, strict=True)]
    kinds = {
        kind: _car(*kind, num_resources=len(site.transformers), tariff=terms, attendance=attendance)
        for kind in dict.fromkeys(members)
    }
    return _Fleet(site, owners, members, kinds)


def _legend(fleet: _Fleet, terms: Tariff, *, slot: int, currency: str) -> Legend:
    """Return the words for cars, slots and transformers."""
    site = fleet.site
    return Legend(
        agent="car",
        state="energy still needed",
        step="hour" if slot == 60 else "slot",
        resource="transformer",
        steps=site.slots.names,
        actions=("idle", "charge"),
        value=Amount("cost", currency, -1.0),
        load=Amount("power", "kW", site.unit),
        need=Amount("energy", "kWh"),
        needs=tuple(tuple(float(level) for _, level in stay.states) for stay, _ in fleet.kinds),
        needs_of=tuple(fleet.rows),
        sites=tuple(fleet.stations),
        begins=site.slots.begins,
        step_seconds=60.0 * slot,
        wholes=tuple(fleet.names) if max(site.parts) > 1 else (),
        unpaid=terms.shortfall,
        warning="" if site.overstated <= 0.01 else f"powers are counted up to {site.overstated:.1%} too high",
    )


def _day_of_cars(
    fleet: _Fleet, *, hours: float, load_price: float, thresholds: FloatArray, legend: Legend
) -> LocalGame:
    """Return the game of the day's own cars."""
    site, loads = fleet.site, np.arange(len(fleet.members) + 1.0)
    share = site.unit / site.largest  # of a car, in a part
    return LocalGame(
        agents=tuple(fleet.kinds[kind] for kind in fleet.members),
        delay=frozen(np.broadcast_to(load_price * share**2 * hours * loads, (1, len(site.transformers), len(loads)))),
        load_costs=_overloads(loads, site.capacities, hours * share),
        thresholds=thresholds,
        horizon=site.slots.count,
        agent_names=_part_names(fleet.names, site.parts),
        constraint_names=tuple(f"overload of {name}" for name in site.transformers),
        resource_names=tuple(site.transformers),
        legend=legend,
    )


def _stays(site: ChargingSite, *, arrival_spread: Any, departure_spread: Any, attendance: float) -> list[Stay]:
    """Return when each part of each car is there; refuse cars of several parts whose times are drawn."""
    stays = [
        stay_of(
            car,
            power=site.powers[i],
            slots=site.slots,
            arrival=spread_of("arrival_spread", arrival_spread, car.station),
            departure=spread_of("departure_spread", departure_spread, car.station),
            parts=site.parts[i],
            part=part,
        )
        for i, car in enumerate(site.cars.sessions)
        for part in range(site.parts[i])
    ]
    drawn = attendance < 1 or any(len(stay.arrivals) > 1 or stay.arrivals[0][0].departures for stay in stays)
    if drawn and max(site.parts) > 1:
        raise GameError(
            f"a car has {max(site.parts)} parts of {site.unit:g} kW, which come and go together; attendance, "
            "arrival_spread and departure_spread are for cars of one power without min_rate."
        )
    return stays


def _part_names(names: Sequence[str], parts: Sequence[int]) -> tuple[str, ...]:
    """Return what the parts of cars are called, given the name of the car of each."""
    numbers = [(part, count) for count in parts for part in range(count)]
    return tuple(
        name if count == 1 else f"{name}, part {part + 1} of {count}"
        for name, (part, count) in zip(names, numbers, strict=True)
    )


def _drawn_crowd(
    fleet: _Fleet,
    *,
    num_agents: int,
    seed: int,
    hours: float,
    load_price: float,
    thresholds: FloatArray,
    legend: Legend,
) -> CrowdGame:
    """Return a crowd whose cars are drawn from those of the day, with replacement, at a site as much larger."""
    site, kinds, rows = fleet.site, tuple(fleet.kinds.values()), fleet.rows
    if max(site.parts) > 1:
        raise GameError(
            f"a car has {max(site.parts)} parts of {site.unit:g} kW; cars are drawn whole. Leave num_agents out, "
            "or give all cars one power, without min_rate."
        )
    firsts = [rows.index(row) for row in range(len(kinds))]  # the first car of each kind
    counts = np.bincount(rows, minlength=len(kinds))
    kind_names = tuple(fleet.names[i].replace("car", "as car", 1) for i in firsts)
    if not 1 <= num_agents <= MAX_AGENTS:
        raise GameError(f"num_agents is {num_agents}; from 1 to {MAX_AGENTS} cars can be drawn.")
    own = int(counts.sum())
    factor = num_agents / own
    drawn = generator(seed, "seed").multinomial(num_agents, counts / own)
    kept = np.flatnonzero(drawn)
    capacities = site.capacities * factor  # [E, H or 1]
    curves = [LoadCurve([0, num_agents], [0.0, load_price / factor * hours * num_agents])]
    curves.append(LoadCurve([0, num_agents], [0.0, 0.0]))
    known: dict[float, int] = {}
    alike = bool((capacities == capacities[:, :1]).all())
    steps = capacities[:, :1] if alike else capacities
    costs = np.ones((len(steps), steps.shape[1], len(steps)), dtype=np.int64)
    for j, h in np.ndindex(*steps.shape):
        capacity = float(steps[j, h])
        if capacity not in known:
            known[capacity] = len(curves)
            curves.append(excess_curve(capacity, num_agents, hours))
        costs[j, h, j] = known[capacity]
    note = (
        "drawn",
        f"{num_agents:,} cars from the {own} of the day, with replacement (seed {seed}); capacities times {factor:.6g} "
        f"(transformers can charge {_range(capacities)} cars at once), load price {load_price:g} divided by that; "
        "thresholds as they are",
    )
    return CrowdGame(
        kinds=tuple(kinds[k] for k in kept),
        numbers=drawn[kept],
        curves=tuple(curves),
        delay=np.zeros((1, len(steps)), dtype=np.int64),
        load_costs=costs,
        thresholds=thresholds,
        horizon=len(kinds[0].reward),
        kind_names=tuple(kind_names[k] for k in kept),
        constraint_names=tuple(f"overload of {name}" for name in site.transformers),
        resource_names=tuple(site.transformers),
        legend=replace(
            legend,
            needs_of=tuple(kept.tolist()),
            sites=tuple(fleet.stations[firsts[k]] for k in kept),
            translation=(*legend.translation, note),
        ),
    )


def _range(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:,.6g}" if low == high else f"{low:,.6g} to {high:,.6g}"


def _translation(
    site: ChargingSite, stays: Sequence[Stay], owners: Sequence[int], *, energy: str, success: float, attendance: float
) -> tuple[tuple[str, str], ...]:
    """Return what was read, cut and assumed, in the file's own units."""
    cars, slots, parts = site.cars, site.slots, site.parts
    needed = sum(stay.need for stay in stays)
    unmet: dict[int, Fraction] = {}  # by car
    for i, stay in zip(owners, stays, strict=True):
        if stay.unmet:
            unmet[i] = unmet.get(i, Fraction(0)) + stay.unmet
    late = sum(slots.of(car.departure) > slots.count for car in cars.sessions)
    left_out = f"; {cars.left_out} without energy left out" if cars.left_out else ""
    powers = sorted(set(site.powers))
    rates = f"{powers[0]:g} kW" if len(powers) == 1 else f"{powers[0]:g} to {powers[-1]:g} kW"
    in_file = math.fsum(car.energy for car in cars.sessions)
    rows = [
        ("read", f"{counted(len(parts), 'session')} that arrived on {cars.day}, {cars.source}{left_out}"),
        ("energy", f"{in_file:.6g} kWh {energy} in the file, {float(needed):.6g} kWh in the game"),
    ]
    if unmet:
        missing = f"{float(sum(unmet.values())):.4g} kWh of {counted(len(unmet), 'car')}"
        rows.append(("not possible", f"{missing} do not fit in at {rates}"))
    if late:
        rows.append(("cut", f"{counted(late, 'stay')} cut at the end of the day, after {slots.count} slots"))
    rows.append(
        (
            "slots",
            f"{slots.count} of {slots.minutes} minutes; a car that charges in part of a slot counts for all of it",
        )
    )
    if max(parts) > 1:
        more = f", up to {site.overstated:.1%} more than it draws" if site.overstated > 1e-9 else ""
        rows.append(
            (
                "parts",
                f"{len(parts)} cars of {rates} are {sum(parts)} parts, each counted as {site.unit:.4g} kW{more}; a "
                "part decides by itself, and what is proved is that no part gains by deviating alone",
            )
        )
    if site.overfull:
        where = f"{counted(site.overfull, 'slot')} of a transformer"
        rows.append(("base load", f"exceeds the capacity by itself in {where}, where 0 kW are left for cars"))
    one_power = (
        f"every car charges at {rates}" if len(powers) == 1 else f"cars charge at {rates}, each at its own power"
    )
    assumed = [one_power, *_assumed_of_stays(stays, success=success, attendance=attendance)]
    return (*rows, ("assumed", "; ".join(assumed)))


def _assumed_of_stays(stays: Sequence[Stay], *, success: float, attendance: float) -> list[str]:
    """Return what is taken for known of stays and of charging, and what is drawn."""
    assumed: list[str] = []
    spread = any(len(stay.arrivals) > 1 for stay in stays), any(stay.arrivals[0][0].departures for stay in stays)
    words = [word for word, drawn in zip(("arrival", "departure"), spread, strict=True) if not drawn]
    if words:
        assumed.append(f"{' and '.join(words)} {'are' if len(words) > 1 else 'is'} known")
    if any(spread):
        words = [word for word, drawn in zip(("arrival", "departure"), spread, strict=True) if drawn]
        assumed.append(f"the spread of {' and '.join(words)} is as given, independent between cars")
    if success < 1:
        assumed.append(f"a slot of charging fails with probability {1 - success:.3g}, independently")
    if attendance < 1:
        assumed.append(f"a car does not come with probability {1 - attendance:.3g}, independently")
    return assumed


@dataclass(frozen=True, eq=False)
class Tariff:
    """What charging costs a car, apart from the load, and how well it works."""

    prices: FloatArray  # [H], of a kWh
    shortfall: float  # of a kWh that is missing
    success: float

    def __post_init__(self) -> None:
        if not 0 < self.success <= 1:
            raise GameError(f"success is {self.success}; a probability above 0 is required.")


def _overloads(loads: FloatArray, capacity: FloatArray, hours: float) -> FloatArray:
    """Return what each load of each transformer costs, in slots of so many hours: [E, H or 1, E, n + 1]."""
    count = len(capacity)
    alike = bool((capacity == capacity[:, :1]).all())
    steps = capacity[:, :1] if alike else capacity
    costs = np.zeros((count, steps.shape[1], count, len(loads)))
    for j in range(count):
        costs[j, :, j] = np.maximum(loads - steps[j][:, None], 0.0) * hours
    return frozen(costs)


def _car(
    stay: Stay, resources: tuple[int, ...], *, num_resources: int, tariff: Tariff, attendance: float
) -> LocalAgent:
    """Return a car, or a part of one; an action that cannot charge is to idle."""
    states = stay.states
    index = {state: s for s, state in enumerate(states)}
    needs, unmoved = np.array([float(level) for _, level in states]), np.arange(len(states))
    resting = move_table(np.stack([unmoved, unmoved], axis=1))
    unused = sp.csr_array((2 * len(states), num_resources))
    num_slots = len(tariff.prices)
    transition, uses = [resting] * num_slots, [unused] * num_slots
    reward = np.zeros((num_slots, len(states), 2))
    tables: dict[Any, tuple[sp.csr_array, sp.csr_array, FloatArray]] = {}  # most slots offer the same
    for h in range(num_slots):
        slot = tuple(_offered(presence, h) for presence, _ in stay.arrivals)
        if not any(slot):
            continue
        if slot not in tables:
            tables[slot] = _slot_tables(index, slot, tariff.success, resources, num_resources)
        transition[h], uses[h], energy = tables[slot]
        reward[h, :, CHARGE] = -tariff.prices[h] * energy
    # The penalty falls after the last slot, so its expectation is part of that slot's reward.
    reward[-1] -= tariff.shortfall * (transition[-1] @ needs).reshape(len(states), 2)
    initial = np.zeros(len(states))
    for number, (_, probability) in enumerate(stay.arrivals):
        initial[index[number, stay.need]] += attendance * probability
    initial[index[0, Fraction(0)]] += 1 - attendance
    return LocalAgent(transition=tuple(transition), reward=frozen(reward), uses=tuple(uses), initial=frozen(initial))


Offers = tuple[tuple[float, Fraction, bool], ...]
"""What one slot offers: with which probability how much energy, and whether the car then leaves."""


def _offered(presence: Presence, h: int) -> Offers:
    """Return what slot h offers a car that arrived at one moment; nothing outside of its stay."""
    number = h - presence.first
    if not 0 <= number < len(presence.offers):
        return ()
    full = presence.offers[number]
    if not presence.departures:
        return ((1.0, full, False),)
    slot = presence.departures[number]
    stays: Offers = ((slot.stays, full, False),) if slot.stays else ()
    return (*stays, *((probability, offer, True) for offer, probability in slot.leaves))


def _move(
    arrival: int, level: Fraction, offer: tuple[float, Fraction, bool]
) -> tuple[float, Fraction, tuple[int, Fraction], tuple[int, Fraction]]:
    """Return an outcome of one slot: its probability, the energy delivered, and the state after idling and charging."""
    probability, offered, leaves = offer
    delivered = min(level, offered)
    idle, charged = level, level - delivered
    return probability, delivered, (-1 if leaves else arrival, idle), (-1 if leaves and charged else arrival, charged)


def _slot_tables(
    index: Mapping[tuple[int, Fraction], int],
    slot: Sequence[Offers],
    success: float,
    resources: tuple[int, ...],
    num_resources: int,
) -> tuple[sp.csr_array, sp.csr_array, FloatArray]:
    """Return transition [S·2, S], uses [S·2, E], and the energy that charging is expected to be offered: [S]."""
    rows: dict[tuple[int, int], float] = {}
    energy, charging = np.zeros(len(index)), []
    for (arrival, level), s in index.items():
        moves = [] if arrival < 0 or not level else [_move(arrival, level, each) for each in slot[arrival]]
        # A level that this slot cannot be entered with, as it is met only later, stays as it is.
        if not moves or not all(target in index for _, _, *targets in moves for target in targets):
            moves = [(1.0, Fraction(0), (arrival, level), (arrival, level))]
        for probability, delivered, idle, charged in moves:
            energy[s] += probability * float(delivered)
            works = success if delivered else 0.0
            for action, target, share in ((0, idle, 1.0), (CHARGE, idle, 1 - works), (CHARGE, charged, works)):
                if share:
                    key = (2 * s + action, index[target])
                    rows[key] = rows.get(key, 0.0) + probability * share
        if energy[s]:
            charging.append(2 * s + CHARGE)
    order = sorted(rows)
    chances, (pairs, targets) = np.array([rows[place] for place in order]), np.array(order).T
    transition = _by_rows(chances, pairs, targets, (2 * len(index), len(index)))
    users, links = np.repeat(charging, len(resources)), np.tile(np.sort(resources), len(charging))
    return transition, _by_rows(np.ones(len(users)), users, links, (2 * len(index), num_resources)), energy


def _by_rows(entries: FloatArray, rows: Any, columns: Any, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix of entries that are sorted by row and column; read-only, so that a game takes it as it is."""
    counts = np.bincount(rows.astype(np.int64), minlength=shape[0])
    starts, columns = (frozen(np.asarray(each, dtype=np.int32)) for each in (np.append(0, np.cumsum(counts)), columns))
    return sp.csr_array((frozen(entries), columns, starts), shape=shape)
