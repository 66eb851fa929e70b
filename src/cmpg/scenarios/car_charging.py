"""Charging: cars under a transformer limit, on a day of charging sessions.

Agents are the sessions that arrive on that day, on the site's clock, and took energy. There is one step per slot, 24
hours unless slots are shorter. A car's state is how many units it still needs: need = ceil(delivered / 6.6 kWh), at
most the slots of its stay. In the slots

    arrival_hour ≤ h < max(arrival_hour + 1, min(24, ceil(departure in hours of that day)))

and while a unit is needed, "charge" uses the transformer, delivers a unit with probability 0.9, and costs the car
price_h + 0.02 · load; elsewhere "charge" is "idle". A unit still needed after the last slot costs 2. The constraint is
E Σ_h (load_h − capacity)^+ ≤ 0.5 for each transformer, in cars times hours. It is a local game: policies see the own
state and the slot.

In slots of m minutes a unit is m/60 of that of an hour, and so are its price, what the load adds, what is lost with a
unit that is missing, and what a car too many adds to the cost: an hour costs the same however it is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, frozen, require_at_least_zero
from cmpg.errors import GameError
from cmpg.games.contract import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios.charging_site import HOURS, Groups, Stay, charging_site, one_each, prices_of, stay_of
from cmpg.scenarios.moves import certain, move_table
from cmpg.scenarios.readers.text import FilePath

PRICES = tuple(0.12 if hour < 8 else 0.30 if 16 <= hour <= 20 else 0.17 for hour in range(HOURS))
"""What an hour of charging costs: cheap before eight, dear from four to nine in the evening."""

CHARGE = 1
"""The action; 0 is to idle."""

LONGEST_CURRENCY = 8


def charging(
    *,
    sessions: FilePath | None = None,
    day: str | date | None = None,
    timezone: str | None = None,
    slot: int = 60,
    power: float = 6.6,
    capacity: float | Sequence[float] = 8,
    capacity_kw: float | Sequence[float] | str | None = None,
    threshold: float | Sequence[float] = 0.5,
    transformers: Groups | str | None = None,
    unit: float | None = None,
    success: float = 0.9,
    prices: Sequence[float] = PRICES,
    tariff: FilePath | None = None,
    currency: str = "",
    load_price: float = 0.02,
    shortfall: float | None = None,
) -> LocalGame:
    """Return the game of one charging day.

    Parameters
    ----------
    sessions, day, timezone
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
    unit
        What a slot of charging delivers, in kWh; power times slot where it is left out.
    success
        The probability that a slot of charging delivers its unit.
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
        times what an hour's energy costs when it is dearest, so that it pays to charge.
    """
    require_at_least_zero(load_price=load_price, shortfall=2.0 if shortfall is None else shortfall)
    if len(currency) > LONGEST_CURRENCY:
        raise GameError(f"currency is {currency!r}; a sign such as EUR is required.")
    site = charging_site(
        sessions=sessions,
        day=day,
        timezone=timezone,
        slot=slot,
        power=power,
        capacity=capacity,
        capacity_kw=capacity_kw,
        transformers=transformers,
    )
    cars, slots, hours = site.cars.sessions, site.slots, slot / 60
    energy = power * hours if unit is None else unit
    place = {station: e for e, members in enumerate(site.transformers.values()) for station in members}
    priced = prices_of(slots, prices=prices, tariff=tariff, unit=energy)
    usual = 2.0 * hours if tariff is None else 6.0 * float(priced.max())
    missing = usual if shortfall is None else shortfall * hours
    terms = Tariff(priced, missing, success)
    kinds: dict[tuple[Stay, int], LocalAgent] = {}
    members = []
    for car in cars:
        kind = (stay_of(car, unit=energy, slots=slots), place[car.station])
        if kind not in kinds:
            kinds[kind] = _car(kind[0], kind[1], num_transformers=len(site.transformers), tariff=terms)
        members.append(kinds[kind])
    loads = np.arange(len(cars) + 1.0)
    return LocalGame(
        agents=tuple(members),
        delay=frozen(np.broadcast_to(load_price * hours * loads, (1, len(site.transformers), len(loads)))),
        load_costs=_overloads(loads, site.capacities, hours),
        thresholds=one_each("threshold", threshold, len(site.transformers)),
        horizon=slots.count,
        agent_names=tuple(f"car {i} at {car.station}" for i, car in enumerate(cars)),
        constraint_names=tuple(f"overload of {name}" for name in site.transformers),
        resource_names=tuple(site.transformers),
        legend=Legend(
            agent="car",
            state="units still needed",
            step="hour" if slot == 60 else "slot",
            resource="transformer",
            steps=slots.names,
            states=tuple(map(str, range(max(agent.num_states for agent in members)))),
            actions=("idle", "charge"),
            value=Amount("cost", currency, -1.0),
            load=Amount("power", "kW", energy / hours),
            use=Amount("energy", "kWh", energy * success),
            left=Amount("energy missing", "kWh", energy),
            unpaid=missing,
        ),
    )


@dataclass(frozen=True, eq=False)
class Tariff:
    """What charging costs a car, apart from the load, and how well it works."""

    prices: FloatArray  # [H], of a unit
    shortfall: float
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


def _car(stay: Stay, transformer: int, *, num_transformers: int, tariff: Tariff) -> LocalAgent:
    units = np.arange(stay.need + 1)
    plugged = np.array([stay.first_hour <= h < stay.end_hour for h in range(len(tariff.prices))])
    less = np.stack([units, np.maximum(units - 1, 0)], axis=1)
    resting = move_table(np.stack([units, units], axis=1))
    charging_slot = move_table(less, success=tariff.success)
    needed = np.flatnonzero(less.ravel() != np.repeat(units, 2))
    using = sp.csr_array(
        (np.ones(len(needed)), (needed, np.full(len(needed), transformer))), shape=(less.size, num_transformers)
    )
    unused = sp.csr_array(using.shape)
    reward = np.zeros((len(plugged), *less.shape))
    reward[plugged, 1:, CHARGE] = -tariff.prices[plugged, None]
    # The penalty falls after the last slot, so its expectation is part of that slot's reward.
    reward[-1] -= tariff.shortfall * units[:, None]
    reward[-1, 1:, CHARGE] += tariff.shortfall * tariff.success * plugged[-1]
    return LocalAgent(
        transition=tuple(charging_slot if hour else resting for hour in plugged),
        reward=frozen(reward),
        uses=tuple(using if hour else unused for hour in plugged),
        initial=certain(len(units), stay.need),
    )
