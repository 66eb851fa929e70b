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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, frozen, require_at_least_zero
from cmpg.errors import GameError
from cmpg.faces import counted
from cmpg.games.contract import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios.charging_site import (
    HOURS,
    ChargingSite,
    Groups,
    Stay,
    charging_site,
    one_each,
    prices_of,
    stay_of,
)
from cmpg.scenarios.moves import move_table
from cmpg.scenarios.readers.text import FilePath

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
    power: float = 6.6,
    capacity: float | Sequence[float] = 8,
    capacity_kw: float | Sequence[float] | str | None = None,
    threshold: float | Sequence[float] = 0.5,
    transformers: Groups | str | None = None,
    success: float = 0.9,
    attendance: float = 1.0,
    prices: Sequence[float] = PRICES,
    tariff: FilePath | None = None,
    currency: str = "",
    load_price: float = 0.02,
    shortfall: float | None = None,
) -> LocalGame:
    """Return the game of one charging day.

    Parameters
    ----------
    sessions, day, timezone, energy, columns
        As in `charging_day`.
    slot
        The length of a step in minutes: 15, 30 or 60.
    power
        With which a car charges, in kW.
    capacity
        How many cars each transformer bears at once: one number for all, or one per transformer.
    capacity_kw
        The same in kW, instead: one number, one per transformer, or a CSV file of what is left for cars by the time of
        the day, beside solar power or other loads: columns `from` and `kw`, or one for each transformer.
    threshold
        Of each transformer, in cars too many times hours.
    transformers
        Which stations hang on which transformer or phase, a partition of the stations: a mapping, text such as
        "north=P-01,P-02; south=P-1*", or a CSV file with the columns `station` and `transformer`. One transformer for
        all where it is left out.
    success
        The probability that a slot of charging delivers its energy.
    attendance
        The probability that a car comes at all, each by itself.
    prices : [24] or [H]
        The price of an hour of charging, in each hour or slot.
    tariff
        A CSV file of prices per kWh instead: columns `from` and `price`.
    currency
        What prices are in, for tables.
    load_price
        What each car on the transformer adds to everybody's price, for an hour.
    shortfall
        The penalty for an hour's energy still needed after the last slot. Where it is left out, 2; with a tariff, six
        times what an hour's energy costs when it is most expensive, so that it pays to charge.
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
        capacity=capacity,
        capacity_kw=capacity_kw,
        transformers=transformers,
    )
    cars, slots, hours = site.cars.sessions, site.slots, slot / 60
    unit = power * hours  # kWh
    transformer_of = {station: e for e, members in enumerate(site.transformers.values()) for station in members}
    prices_of_slots = prices_of(slots, prices=prices, tariff=tariff, unit=unit) / unit
    usual = 2.0 / power if tariff is None else 6.0 * float(prices_of_slots.max())
    terms = Tariff(prices_of_slots, usual if shortfall is None else shortfall / power, success)
    stays = [stay_of(car, power=power, slots=slots) for car in cars]
    kinds: dict[tuple[Stay, int], LocalAgent] = {}
    for car, stay in zip(cars, stays, strict=True):
        kind = (stay, transformer_of[car.station])
        if kind not in kinds:
            kinds[kind] = _car(*kind, num_transformers=len(site.transformers), tariff=terms, attendance=attendance)
    rows = {kind: row for row, kind in enumerate(kinds)}
    members = [(stay, transformer_of[car.station]) for car, stay in zip(cars, stays, strict=True)]
    loads = np.arange(len(cars) + 1.0)
    return LocalGame(
        agents=tuple(kinds[kind] for kind in members),
        delay=frozen(np.broadcast_to(load_price * hours * loads, (1, len(site.transformers), len(loads)))),
        load_costs=_overloads(loads, site.capacities, hours),
        thresholds=one_each("threshold", threshold, len(site.transformers)),
        horizon=slots.count,
        agent_names=tuple(f"car {i} at {car.station}" for i, car in enumerate(cars)),
        constraint_names=tuple(f"overload of {name}" for name in site.transformers),
        resource_names=tuple(site.transformers),
        legend=Legend(
            agent="car",
            state="energy still needed",
            step="hour" if slot == 60 else "slot",
            resource="transformer",
            steps=slots.names,
            actions=("idle", "charge"),
            value=Amount("cost", currency, -1.0),
            load=Amount("power", "kW", power),
            need=Amount("energy", "kWh"),
            needs=tuple(tuple(map(float, stay.levels)) for stay, _ in kinds),
            needs_of=tuple(rows[kind] for kind in members),
            unpaid=terms.shortfall,
            translation=_translation(site, stays, power=power, energy=energy, success=success, attendance=attendance),
        ),
    )


def _translation(
    site: ChargingSite, stays: Sequence[Stay], *, power: float, energy: str, success: float, attendance: float
) -> tuple[tuple[str, str], ...]:
    """Return what was read, cut and assumed, in the file's own units."""
    cars, slots = site.cars, site.slots
    asked, unmet = sum(stay.need for stay in stays), [stay.unmet for stay in stays if stay.unmet]
    late = sum(slots.of(car.departure) > slots.count for car in cars.sessions)
    left_out = f"; {cars.left_out} without energy left out" if cars.left_out else ""
    rows = [
        ("read", f"{counted(len(stays), 'session')} that arrived on {cars.day}, {cars.source}{left_out}"),
        ("energy", f"{float(asked):.6g} kWh {energy} in the file, {float(asked):.6g} kWh in the game"),
    ]
    if unmet:
        rows.append(
            (
                "not possible",
                f"{float(sum(unmet)):.4g} kWh of {counted(len(unmet), 'car')} do not fit in at {power:g} kW",
            )
        )
    if late:
        rows.append(("cut", f"{counted(late, 'stay')} cut at the end of the day, after {slots.count} slots"))
    rows.append(
        (
            "slots",
            f"{slots.count} of {slots.minutes} minutes; a car that charges in part of a slot counts for all of it",
        )
    )
    assumed = [f"every car charges at {power:g} kW", "arrival and departure are known"]
    if success < 1:
        assumed.append(f"a slot of charging fails with probability {1 - success:.3g}, independently")
    if attendance < 1:
        assumed.append(f"a car does not come with probability {1 - attendance:.3g}, independently")
    return (*rows, ("assumed", "; ".join(assumed)))


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


def _car(stay: Stay, transformer: int, *, num_transformers: int, tariff: Tariff, attendance: float) -> LocalAgent:
    levels = stay.levels
    index = {level: s for s, level in enumerate(levels)}
    needs, unmoved = np.array([float(level) for level in levels]), np.arange(len(levels))
    resting = move_table(np.stack([unmoved, unmoved], axis=1))
    unused = sp.csr_array((2 * len(levels), num_transformers))
    num_slots = len(tariff.prices)
    transition, uses = [resting] * num_slots, [unused] * num_slots
    reward = np.zeros((num_slots, len(levels), 2))
    missing = np.stack([needs, needs], axis=1)  # after the last slot, in expectation
    tables: dict[Fraction, tuple[sp.csr_array, sp.csr_array, FloatArray]] = {}  # most slots offer the same
    for h, offer in enumerate(stay.offers, stay.first):
        if offer not in tables:
            # A level that this slot cannot be entered with, as it is met only later, stays as it is.
            after = np.array([index.get(max(Fraction(0), level - offer), s) for s, level in enumerate(levels)])
            charges = np.flatnonzero(after != unmoved)
            used = (np.ones(len(charges)), (2 * charges + CHARGE, np.full(len(charges), transformer)))
            using = sp.csr_array(used, shape=unused.shape)
            tables[offer] = move_table(np.stack([unmoved, after], axis=1), success=tariff.success), using, needs[after]
        transition[h], uses[h], left = tables[offer]
        reward[h, :, CHARGE] = -tariff.prices[h] * (needs - left)
        if h == num_slots - 1:
            missing[:, CHARGE] -= tariff.success * (needs - left)
    # The penalty falls after the last slot, so its expectation is part of that slot's reward.
    reward[-1] -= tariff.shortfall * missing
    initial = np.zeros(len(levels))
    initial[index[stay.need]] += attendance
    initial[0] += 1 - attendance
    return LocalAgent(transition=tuple(transition), reward=frozen(reward), uses=tuple(uses), initial=frozen(initial))
