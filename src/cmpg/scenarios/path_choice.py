"""Static routing: every platoon chooses a whole path at once, and all that use a link meet on it.

Every trip of the table travels, in platoons of equal size; those with the same origin and destination are alike. A
platoon has one step, one state, and one action per path. What it pays is the sum over the links of its path of
free_flow_time · (1 + b · (flow / capacity)^power) / 100, so that equilibria are those of traffic assignment, up to the
size of a platoon: as it shrinks, the flows come to the minimum of Beckmann's function Σ_e ∫_0^{flow_e} time_e.

Paths are found before there is a game: by the shortest paths at the flows of the Frank-Wolfe method, which minimises
that function over all paths. A certificate is about deviations to paths that were found; `shortest_paths` tells how
much better any other one could be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, generator, require_at_least_zero
from cmpg.errors import FileError, GameError
from cmpg.games.crowd.game import CrowdGame, Curve, LoadCurve, PowerCurve, excess_curve
from cmpg.games.game import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.proof.crowd import MAX_AGENTS
from cmpg.scenarios.platoon_routing import (
    EXCESS,
    UNREAD,
    VEHICLES,
    RoutingCity,
    between_nodes,
    changed_total,
    check_vehicles,
    link_names,
    minutes_of,
    network_words,
    places_of,
    places_on_map,
    read_roads,
    road_map,
    road_tables,
    short_trips,
    unit_words,
)
from cmpg.scenarios.readers.text import FilePath, at_line, csv_rows, integer_in, number_in
from cmpg.scenarios.readers.tntp import Link, Network
from cmpg.scenarios.traffic_assignment import Demand, Path, Roads, assign, optimal_tolls, shortest_paths
from cmpg.summaries import counted

ROUNDS = 60
"""The iterations of the Frank-Wolfe method, each of which can find one more path for every pair."""

BISECTIONS = 40

OPTIMAL = "optimal"
"""The tolls that make the system optimum an equilibrium."""


def found_paths(roads: Roads, demand: Demand) -> tuple[tuple[Path, ...], ...]:
    """Return the paths that the Frank-Wolfe method meets, for each pair."""
    known: list[dict[Path, None]] = [{} for _ in demand.pairs]
    flows = np.zeros(len(roads.ends))
    for number in range(ROUNDS):
        paths, _ = shortest_paths(roads, demand, roads.costs(flows))
        target = np.zeros(len(flows))
        for place, (path, flow) in enumerate(zip(paths, demand.flows, strict=True)):
            known[place][path] = None
            target[list(path)] += flow
        flows = target if number == 0 else flows + _best_share(roads, flows, target - flows) * (target - flows)
    return tuple(tuple(paths) for paths in known)


def _best_share(roads: Roads, flows: FloatArray, ahead: FloatArray) -> float:
    """Return how far to go, by bisecting the slope of Beckmann's function."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rising = float(ahead @ roads.costs(flows + middle * ahead)) > 0
        low, high = (low, middle) if rising else (middle, high)
    return low


def chooser(paths: Sequence[Path], num_links: int, *, tolls: FloatArray | None = None) -> LocalAgent:
    """Return an agent that chooses one of some paths, once, and pays the tolls of its links."""
    paid = np.zeros(len(paths)) if tolls is None else np.array([tolls[list(path)].sum() for path in paths])
    rows = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    used = np.concatenate([np.array(path, dtype=np.int64) for path in paths])
    uses = sp.csr_array((np.ones(len(rows)), (rows, used)), shape=(len(paths), num_links))
    return LocalAgent(
        transition=np.ones((1, 1, len(paths), 1)),
        reward=-paid[None, None] / 100,
        uses=(uses,),
        initial=np.ones(1),
    )


def static_city(
    *,
    network: FilePath | None = None,
    trips: FilePath | None = None,
    nodes: FilePath | None = None,
    protected: str | Sequence[tuple[int, int]] | None = None,
    vehicles: float = VEHICLES["static"],
) -> RoutingCity:
    """Read a network, and let every trip of its table travel in platoons of so many vehicles, rounded to whole ones."""
    check_vehicles(vehicles)
    city, table, positions = read_roads(network, trips, nodes)
    travelling = short_trips(city, table, horizon=len(city.links))
    counts = [round(trip.flow / vehicles) for trip in travelling]
    if not sum(counts):
        most = max(trip.flow for trip in travelling)
        raise FileError(
            f"{table.source} has at most {most:g} vehicles between two nodes, and a platoon has {vehicles:g}. Take "
            f"smaller platoons: --vehicles 1, in Python vehicles=1."
        )
    pairs: list[tuple[int, int]] = []
    for trip, count in zip(travelling, counts, strict=True):
        pairs += [(trip.origin, trip.destination)] * count
    return RoutingCity(
        network=city,
        protected=places_of(city, () if protected is None else protected),
        origins=tuple(origin for origin, _ in pairs),
        destinations=tuple(destination for _, destination in pairs),
        positions=positions,
        trips=between_nodes(table),
        small=(counts.count(0), math.fsum(t.flow for t, count in zip(travelling, counts, strict=True) if not count)),
    )


def static_routing_game(
    city: RoutingCity,
    *,
    limit: float = 2,
    threshold: float = 0.5,
    vehicles: float = VEHICLES["static"],
    minutes: float | None = None,
    tolls: FilePath | None = None,
) -> LocalGame:
    """Return the game of platoons that choose a path each, once; those of one pair of nodes share their tables."""
    ends = list(zip(city.origins, city.destinations, strict=True))
    counts = Counter(ends)
    demand = Demand(
        tuple((origin - 1, destination - 1) for origin, destination in counts),
        vehicles * np.array([float(count) for count in counts.values()]),
    )
    roads, unit = Roads.of(city.network), minutes_of(city.network, minutes)
    charged = None if tolls is None else _tolls(tolls, city, roads, demand, unit)
    tolled = roads if charged is None else roads.with_tolls(charged)
    paths = dict(zip(counts, found_paths(tolled, demand), strict=True))
    kinds = {pair: chooser(paths[pair], len(city.network.links), tolls=charged) for pair in counts}
    seen: Counter[tuple[int, int]] = Counter()
    names = []
    for origin, destination in ends:
        names.append(f"{origin} to {destination}, platoon {seen[origin, destination]}")
        seen[origin, destination] += 1
    ways = {pair: tuple(_path_text(city.network, path) for path in paths[pair]) for pair in counts}
    return LocalGame(
        agents=tuple(kinds[pair] for pair in ends),
        horizon=1,
        agent_names=tuple(names),
        action_names=tuple(ways[pair] for pair in ends),
        **road_tables(city, np.arange(len(ends) + 1.0), vehicles=vehicles, limit=limit, threshold=threshold),
        legend=replace(
            _legend(city, vehicles, unit, charged),
            translation=_translation(city, vehicles, [len(paths[pair]) for pair in counts], tolls, minutes),
            warning=changed_total(city, vehicles),
        ),
    )


def drawn_crowd(
    *,
    network: FilePath | None = None,
    trips: FilePath | None = None,
    nodes: FilePath | None = None,
    num_agents: int,
    seed: int = 0,
    protected: str | Sequence[tuple[int, int]] | None = None,
    limit: float = 2,
    threshold: float = 0.5,
    vehicles: float = 1.0,
    minutes: float | None = None,
    tolls: FilePath | None = None,
) -> CrowdGame:
    """Return a crowd whose members are drawn from the trips, in proportion, on roads that are as much wider."""
    plain, table, positions = read_roads(network, trips, nodes)
    require_at_least_zero(limit=limit, threshold=threshold)
    if not 1 <= num_agents <= MAX_AGENTS:
        raise GameError(f"num_agents is {num_agents}; from 1 to {MAX_AGENTS} can be drawn.")
    check_vehicles(vehicles)
    travelling = short_trips(plain, table, horizon=len(plain.links))
    flows = np.array([trip.flow for trip in travelling])
    if not flows.sum() > 0:
        raise FileError(f"{table.source} has no vehicles between two nodes.")
    drawn = generator(seed, "seed").multinomial(num_agents, flows / flows.sum())
    kept = np.flatnonzero(drawn)
    wider = num_agents * vehicles / float(flows.sum())
    city = RoutingCity(  # of one member of each kind
        network=replace(plain, links=tuple(replace(link, capacity=link.capacity * wider) for link in plain.links)),
        protected=places_of(plain, () if protected is None else protected),
        origins=tuple(travelling[k].origin for k in kept),
        destinations=tuple(travelling[k].destination for k in kept),
        positions=positions,
        trips=between_nodes(table),
    )
    links, spared = city.network.links, list(city.protected)
    pairs = list(zip(city.origins, city.destinations, strict=True))
    roads, unit = Roads.of(city.network), minutes_of(plain, minutes)
    demand = Demand(tuple((origin - 1, end - 1) for origin, end in pairs), vehicles * drawn[kept].astype(np.float64))
    charged = None if tolls is None else _tolls(tolls, city, roads, demand, unit)
    paths = found_paths(roads if charged is None else roads.with_tolls(charged), demand)
    costs = np.full((1, 1, len(links)), len(links))
    costs[0, 0, spared] += 1
    what = "vehicle" if vehicles == 1 else "platoon"
    return CrowdGame(
        kinds=tuple(chooser(each, len(links), tolls=charged) for each in paths),
        numbers=drawn[kept],
        curves=(
            *(_travel_time(city.network, link, vehicles) for link in links),
            LoadCurve([0, num_agents], [0.0, 0.0]),
            excess_curve(limit * wider, num_agents),
        ),
        delay=np.arange(len(links))[None],
        load_costs=costs if spared else (),
        thresholds=[threshold] if spared else (),
        horizon=1,
        kind_names=tuple(f"{origin} to {end}" for origin, end in pairs),
        constraint_names=(EXCESS,) if spared else (),
        resource_names=link_names(plain),
        action_names=tuple(tuple(_path_text(plain, path) for path in each) for each in paths),
        legend=replace(
            _legend(city, vehicles, unit, charged),
            agent=what,
            translation=(
                ("read", f"{network_words(plain)}; {city.trips:,.0f} vehicles between its nodes"),
                (
                    "drawn",
                    f"{num_agents:,} {what}s{'' if vehicles == 1 else f' of {vehicles:g} vehicles'} from the trips, in "
                    f"proportion to the traffic (seed {seed}); capacities times {wider:.6g}"
                    + (f", and so the limit, which is {limit * wider:,.6g}; threshold as it is" if spared else ""),
                ),
                *_static_rows([len(each) for each in paths], tolls),
                ("assumed", f"{unit_words(plain, minutes)}; {UNREAD}"),
            ),
        ),
    )


def _legend(city: RoutingCity, vehicles: float, unit: float, charged: FloatArray | None) -> Legend:
    """Return what numbers are called where each agent chooses one path, and stands for so many vehicles."""
    return Legend(
        agent="platoon",
        state="origin",
        resource="link",
        states=("at its origin",),
        value=Amount("travel time" if charged is None else "travel time and tolls", "min", -100.0 * unit),
        load=Amount("traffic", "vehicles", vehicles),
        places=places_on_map(city),
        roads=road_map(city, minutes=unit, static=True, tolls=charged),
    )


def _travel_time(network: Network, link: Link, vehicles: float) -> Curve:
    """Return what a link costs its users, as in `link_delays`."""
    free = link.free_flow_time / 100
    if link.b <= 0 or link.power == 0:
        return PowerCurve(free * (1 + max(link.b, 0.0)), 0.0, 1)
    if link.power != int(link.power):
        raise at_line(
            network.source,
            link.line,
            f"the power is {link.power:g}; travel times of a crowd need whole ones. Leave num_agents out.",
        )
    return PowerCurve(free, free * link.b * (vehicles / link.capacity) ** link.power, int(link.power))


def _tolls(given: FilePath, city: RoutingCity, roads: Roads, demand: Demand, minutes: float) -> FloatArray:
    """Return the tolls of all links in units of time: those of the system optimum, or those of a file in minutes."""
    if str(given) == OPTIMAL:
        return optimal_tolls(roads, assign(roads, demand, optimum=True))
    index = {(link.tail, link.head): e for e, link in enumerate(city.network.links)}
    tolls = np.zeros(len(index))
    for row, line in csv_rows(given, ("from", "to", "toll (min)")):
        ends = integer_in(row["from"], line, name="from"), integer_in(row["to"], line, name="to")
        toll = number_in(row["toll (min)"], line, name="toll (min)")
        if ends not in index:
            raise line.error(f"{city.network.source} has no link from {ends[0]} to {ends[1]}.")
        if toll < 0:
            raise line.error(f"toll (min) is {toll:g}; a number of at least 0 is required.")
        tolls[index[ends]] = toll / minutes
    return tolls


def _translation(
    city: RoutingCity, vehicles: float, offered: Sequence[int], tolls: FilePath | None, minutes: float | None
) -> tuple[tuple[str, str], ...]:
    """Return what was read, rounded and assumed, in vehicles."""
    count, (pairs, few) = len(city.origins), city.small
    dropped = f"; {counted(pairs, 'pair')} with {few:,.0f} vehicles in all dropped" if pairs else ""
    carried = f"{count:,} of {vehicles:g} vehicle{'s' * (vehicles != 1)}, {count * vehicles:,.0f} in all"
    return (
        ("read", f"{network_words(city.network)}; {city.trips:,.0f} vehicles between its nodes"),
        ("platoons", f"{carried}, each pair of nodes rounded to whole ones{dropped}"),
        *_static_rows(offered, tolls),
        ("assumed", f"{unit_words(city.network, minutes)}; {UNREAD}"),
    )


def _static_rows(offered: Sequence[int], tolls: FilePath | None) -> tuple[tuple[str, str], ...]:
    """Return what is assumed of choices, paths and tolls."""
    span = f"{min(offered)} to {max(offered)}" if min(offered) < max(offered) else f"{max(offered)}"
    return (
        (
            "static",
            "one choice of a path, without time: all that use a link meet on it, as in traffic assignment, and its "
            "travel time is that of the whole flow",
        ),
        (
            "paths",
            f"{span} for each pair, found by {ROUNDS} iterations of the Frank-Wolfe method; what is proved is about "
            "these",
        ),
        *([] if tolls is None else [("tolls", f"{tolls}, in minutes, added to what a path costs its users")]),
    )


def _path_text(network: Network, path: tuple[int, ...]) -> str:
    return "→".join([str(network.links[path[0]].tail), *(str(network.links[e].head) for e in path)])
