"""Routing: platoons in a city with a weak bridge.

A platoon of 3000 vehicles drives from its origin to its destination in 8 steps. Its state is its node; at each step it
takes an outgoing link or waits. Using link e at load m costs each of its users

    free_flow_time · (1 + b · (3000 · m / capacity)^power) / 100,

waiting costs 0.01, and not having arrived after the last step costs 0.60. The destination is absorbing and free. The
constraint is on protected links: E Σ_h Σ_{e protected} (m_e − 2)^+ ≤ 0.5. It is a local game: policies see the own node
and the step. Loads meet per step: two platoons delay each other on a link only if they take it at the same step.

With `mode="static"` each platoon chooses a whole path at once, and all that use a link meet on it, as in traffic
assignment (`path_choice.py`).

Nodes are numbered as in the files, from 1; node v is state v − 1. Action 0 is to wait, action j the j-th outgoing link
of the node in the order of the file; where a node has fewer links, the action is to wait.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, frozen, generator, require_at_least_zero
from cmpg.errors import FileError, GameError
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.game import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.names import RoadMap
from cmpg.scenarios.moves import certain, move_table, single_uses
from cmpg.scenarios.readers.text import FilePath, at_line
from cmpg.scenarios.readers.tntp import Network, Trips, TripTable, read_network, read_nodes, read_trips
from cmpg.scenarios.samples import sample_file
from cmpg.sizes import require_agents

HUNDREDTH_OF_AN_HOUR = 0.6
"""Minutes in the unit of time of Sioux Falls (LeBlanc, Morlok and Pierskalla 1975)."""

SIOUX_FALLS_BRIDGES = ((10, 15), (15, 10), (10, 16), (16, 10))
SAMPLE = "the bundled city"
SAMPLE_BRIDGES = ((4, 7), (7, 4))
EXCESS = "excess on protected links"

VEHICLES = {"steps": 3000.0, "static": 100.0}
"""The vehicles in a platoon, by mode."""


@dataclass(frozen=True)
class RoutingCity:
    """A network, the links that must be spared, and where each platoon wants to go."""

    network: Network
    protected: tuple[int, ...]  # places in network.links
    origins: tuple[int, ...]
    destinations: tuple[int, ...]
    positions: Mapping[int, tuple[float, float]] | None  # of the nodes, for drawing
    trips: float = 0.0  # vehicles in the trip table, between different nodes
    too_far: float = 0.0  # those of them whose way has more links than there are steps
    small: tuple[int, float] = (0, 0.0)  # pairs with too few vehicles for a platoon, and how many those are
    seed: int | None = None  # of the draw; None if nothing was drawn


def routing_city(
    *,
    network: FilePath | None = None,
    trips: FilePath | None = None,
    nodes: FilePath | None = None,
    num_agents: int = 20,
    seed: int = 0,
    horizon: int = 8,
    protected: str | Sequence[tuple[int, int]] | None = None,
) -> RoutingCity:
    """Read a network and a trip table, and draw the platoons in proportion to the traffic.

    Parameters
    ----------
    network, trips
        TNTP files; the package's own sample where both are left out.
    nodes
        A TNTP file of coordinates, where there is one.
    num_agents
        How many platoons.
    seed
        Of the draw.
    horizon
        Only trips that need at most this many links are drawn.
    protected
        Links (tail, head) that must be spared, or their text, "10-15, 15-10"; where it is left out, the bridge of the
        sample, the four links of Sioux Falls, and of any other network none.

    Raises
    ------
    FileError
        A file cannot be read, a protected link does not exist, a trip has no way to its destination, or no trip is
        short enough.
    """
    if num_agents < 1 or horizon < 1:
        raise GameError(f"there are {num_agents} agents and {horizon} steps; at least one of each is required.")
    require_agents(num_agents, 8.0 * horizon)
    city, table, positions = read_roads(network, trips, nodes)
    short = short_trips(city, table, horizon)
    flows = np.array([trip.flow for trip in short])
    drawn = generator(seed, "seed").choice(len(short), size=num_agents, p=flows / flows.sum())
    return RoutingCity(
        network=city,
        protected=places_of(city, _usual_bridges(city) if protected is None else protected),
        origins=tuple(short[i].origin for i in drawn),
        destinations=tuple(short[i].destination for i in drawn),
        positions=positions,
        trips=between_nodes(table),
        too_far=between_nodes(table) - float(flows.sum()),
        seed=seed,
    )


def read_roads(
    network: FilePath | None, trips: FilePath | None, nodes: FilePath | None
) -> tuple[Network, TripTable, dict[int, tuple[float, float]] | None]:
    """Read a network, its trip table, and where its nodes lie; the package's own sample if no file is named."""
    if network is None and trips is None:
        with (
            sample_file("sample_net.tntp") as sample_network,
            sample_file("sample_trips.tntp") as sample_trips,
            sample_file("sample_node.tntp") as sample_nodes,
        ):
            city, table, positions = read_roads(sample_network, sample_trips, sample_nodes)
            return replace(city, source=SAMPLE), replace(table, source=SAMPLE), positions
    if network is None or trips is None:
        raise GameError("a network needs its trip table, and a trip table its network. Pass both, or neither.")
    return read_network(network), read_trips(trips), None if nodes is None else read_nodes(nodes)


def between_nodes(table: TripTable) -> float:
    """Return how many vehicles of a trip table go from one node to another."""
    return math.fsum(trip.flow for trip in table.trips if trip.origin != trip.destination)


def _usual_bridges(network: Network) -> tuple[tuple[int, int], ...]:
    """Return the links that are protected unless others are named: those of the sample and of Sioux Falls."""
    if network.source == SAMPLE:
        return SAMPLE_BRIDGES
    return SIOUX_FALLS_BRIDGES if _is_sioux_falls(network) else ()


def _is_sioux_falls(network: Network) -> bool:
    """Whether a network is that of Sioux Falls, by its size and its links."""
    links = {(link.tail, link.head) for link in network.links}
    return (network.num_nodes, len(network.links)) == (24, 76) and links >= set(SIOUX_FALLS_BRIDGES)


def minutes_of(network: Network, minutes: float | None) -> float:
    """Return the minutes in a unit of time of a network: what is given, else 0.6 for Sioux Falls, else 1."""
    if minutes is None:
        return HUNDREDTH_OF_AN_HOUR if _is_sioux_falls(network) else 1.0
    if not 0 < minutes < np.inf:
        raise GameError(f"minutes is {minutes:g}; a positive number is required.")
    return minutes


def places_of(network: Network, protected: str | Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return where the protected links stand in the list of links, or raise where there is no such link."""
    places: list[int] = []
    for tail, head in _pairs_in(protected) if isinstance(protected, str) else protected:
        found = [e for e, link in enumerate(network.links) if (link.tail, link.head) == (tail, head)]
        if not found:
            raise FileError(
                f"{network.source} has no link from {tail} to {head}, which is to be protected. "
                "Name the links of this network that are, such as 4-7, 7-4."
            )
        places.extend(found)
    return tuple(dict.fromkeys(places))


def _pairs_in(text: str) -> list[tuple[int, int]]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,9})\s*-\s*(\d{1,9})", part)
        if match is None:
            raise GameError(f"protected holds {part!r}; links such as 10-15, parted by commas, are required.")
        pairs.append((int(match[1]), int(match[2])))
    return pairs


def short_trips(network: Network, table: TripTable, horizon: int) -> list[Trips]:
    """Return the trips that need at most `horizon` links; a trip that no number of links serves is an error."""
    links_needed: dict[int, FloatArray] = {}
    short: list[Trips] = []
    for trip in table.trips:
        for zone in (trip.origin, trip.destination):
            if zone > network.num_nodes:
                raise at_line(table.source, trip.line, f"zone {zone} is not among the nodes of {network.source}.")
        if trip.origin not in links_needed:
            links_needed[trip.origin] = _links_from(network, trip.origin)
        needed = links_needed[trip.origin][trip.destination - 1]
        if not np.isfinite(needed):
            problem = f"{network.source} has no way from {trip.origin} to {trip.destination}."
            raise at_line(table.source, trip.line, problem)
        if 0 < needed <= horizon:
            short.append(trip)
    if not short:
        raise FileError(f"{table.source} has no trip between two nodes that needs at most {horizon} links.")
    return short


def _links_from(network: Network, origin: int) -> FloatArray:
    from scipy.sparse.csgraph import dijkstra

    usable = [link for link in network.links if _may_leave(network, link.tail, origin)]
    tails, heads = [link.tail - 1 for link in usable], [link.head - 1 for link in usable]
    roads = sp.csr_array((np.ones(len(usable)), (tails, heads)), shape=(network.num_nodes, network.num_nodes))
    needed: FloatArray = dijkstra(roads, unweighted=True, indices=origin - 1)
    return needed


def _may_leave(network: Network, node: int, origin: int) -> bool:
    return node >= network.first_through_node or node == origin


def routing(
    *,
    network: FilePath | None = None,
    trips: FilePath | None = None,
    nodes: FilePath | None = None,
    mode: Literal["steps", "static"] = "steps",
    num_agents: int | None = None,
    seed: int = 0,
    horizon: int = 8,
    protected: str | Sequence[tuple[int, int]] | None = None,
    limit: float = 2,
    threshold: float = 0.5,
    vehicles: float | None = None,
    waiting: float = 0.01,
    late: float = 0.60,
    minutes: float | None = None,
    tolls: FilePath | None = None,
) -> LocalGame | CrowdGame:
    """Return the game of platoons in a city; in static mode with `num_agents`, a crowd on roads that are as much wider.

    Parameters
    ----------
    network, trips, nodes, seed, horizon, protected
        As in `routing_city`.
    mode
        "steps": platoons are drawn, and drive link by link. "static": all trips of the table travel, each platoon
        chooses one path at once, and nothing is drawn; no link is protected unless named.
    num_agents
        How many platoons are drawn, 20 if omitted. In static mode, so many are drawn from the trips of the table, with
        replacement, and the roads are as much wider: capacities, and the limit of protected links, are multiplied by
        vehicles drawn per vehicle of the table. The threshold stays as it is.
    limit, threshold
        A protected link can carry `limit` platoons at a time; the expected excess, summed over steps and links, is at
        most `threshold`.
    vehicles
        In a platoon; where it is left out 3000, in static mode 100, and 1 if they are drawn there.
    waiting, late
        What a step of waiting costs, and not having arrived after the last step.
    minutes
        In a unit of time of the network file, which does not name it. Where it is left out, 0.6 for Sioux Falls, whose
        times are in hundredths of an hour, and 1 for others.
    tolls
        Of links, in static mode: "optimal" for those that make the system optimum an equilibrium, or a CSV file with
        the columns `from`, `to` and `toll (min)`, such as `cmpg export RUN --what links` writes.

    Examples
    --------
    >>> game = routing(num_agents=5)
    >>> game.num_agents, game.resource_names[0]
    (5, '1→2')
    """
    if mode not in ("steps", "static"):
        raise GameError(f"mode is {mode!r}; one of steps, static is required.")
    size = vehicles if vehicles is not None else VEHICLES[mode]
    files: dict[str, Any] = {"network": network, "trips": trips, "nodes": nodes, "protected": protected}
    terms: dict[str, Any] = {"limit": limit, "threshold": threshold, "minutes": minutes}
    if mode == "static":
        # A circle: it builds on this file.
        from cmpg.scenarios.path_choice import drawn_crowd, static_city, static_routing_game

        if num_agents is not None:
            each = 1.0 if vehicles is None else vehicles
            return drawn_crowd(num_agents=num_agents, seed=seed, vehicles=each, tolls=tolls, **files, **terms)
        return static_routing_game(static_city(vehicles=size, **files), vehicles=size, tolls=tolls, **terms)
    if tolls is not None:
        raise GameError("tolls are for routes that are chosen at once: mode is static.")
    city = routing_city(num_agents=20 if num_agents is None else num_agents, seed=seed, horizon=horizon, **files)
    return routing_game(city, horizon=horizon, vehicles=size, waiting=waiting, late=late, **terms)


def routing_game(
    city: RoutingCity,
    *,
    horizon: int = 8,
    limit: float = 2,
    threshold: float = 0.5,
    vehicles: float = 3000,
    waiting: float = 0.01,
    late: float = 0.60,
    minutes: float | None = None,
) -> LocalGame:
    """Return the game of platoons that are known already. Platoons with the same destination share their tables."""
    require_at_least_zero(waiting=waiting, late=late)
    loads = np.arange(len(city.origins) + 1.0)
    kinds: dict[tuple[int, int], LocalAgent] = {}
    members: list[LocalAgent] = []
    for origin, destination in zip(city.origins, city.destinations, strict=True):
        closed_origin = origin if origin < city.network.first_through_node else 0
        kind = (destination, closed_origin)
        if kind not in kinds:
            kinds[kind] = _platoon(city.network, origin, destination, horizon=horizon, waiting=waiting, late=late)
        members.append(replace(kinds[kind], initial=certain(city.network.num_nodes, origin - 1)))
    pairs = enumerate(zip(city.origins, city.destinations, strict=True))
    return LocalGame(
        agents=tuple(members),
        horizon=horizon,
        agent_names=tuple(f"platoon {i}, {origin} to {destination}" for i, (origin, destination) in pairs),
        **road_tables(city, loads, vehicles=vehicles, limit=limit, threshold=threshold),
        legend=Legend(
            agent="platoon",
            state="node",
            resource="link",
            states=tuple(f"node {node}" for node in range(1, city.network.num_nodes + 1)),
            actions_by_state=_choices(city.network),
            value=Amount("travel time", "min", -100.0 * minutes_of(city.network, minutes)),
            load=Amount("traffic", "vehicles", vehicles),
            goals=tuple(node - 1 for node in city.destinations),
            places=places_on_map(city),
            roads=road_map(city, minutes=minutes_of(city.network, minutes)),
            translation=_translation(city, horizon=horizon, vehicles=vehicles, minutes=minutes),
            warning=changed_total(city, vehicles),
        ),
    )


def road_tables(
    city: RoutingCity, loads: FloatArray, *, vehicles: float, limit: float, threshold: float
) -> dict[str, Any]:
    """Return what links cost their users and the constraint by load, in the fields of a local game."""
    require_at_least_zero(limit=limit, threshold=threshold)
    check_vehicles(vehicles)
    excess = np.zeros((1, 1, len(city.network.links), len(loads)))
    excess[0, 0, list(city.protected)] = np.maximum(loads - limit, 0.0)
    return {
        "delay": link_delays(city.network, loads * vehicles),
        "load_costs": frozen(excess),
        "thresholds": np.array([threshold]),
        "constraint_names": (EXCESS,),
        "resource_names": link_names(city.network),
    }


def check_vehicles(vehicles: float) -> None:
    """Raise unless platoons have vehicles."""
    if not 0 < vehicles < np.inf:
        raise GameError(f"vehicles is {vehicles:g}; a platoon needs a positive number of them.")


def link_names(network: Network) -> tuple[str, ...]:
    """Return what the links are called."""
    return tuple(f"{link.tail}→{link.head}" for link in network.links)


def changed_total(city: RoutingCity, vehicles: float) -> str:
    """Return a warning if the game has more than a hundredth more or fewer vehicles than the trip table."""
    carried = len(city.origins) * vehicles
    if abs(carried - city.trips) <= 0.01 * city.trips:
        return ""
    return f"{carried:,.0f} vehicles travel in the game, {city.trips:,.0f} in the trip table"


def places_on_map(city: RoutingCity) -> tuple[tuple[float, float], ...]:
    """Return the coordinates of all nodes, or none if those of a node are missing."""
    known, nodes = city.positions or {}, range(1, city.network.num_nodes + 1)
    return tuple(known[node] for node in nodes) if all(node in known for node in nodes) else ()


def road_map(city: RoutingCity, *, minutes: float, static: bool = False, tolls: FloatArray | None = None) -> RoadMap:
    """Return the network of a city, and where its platoons go, for tables and maps."""
    links = city.network.links
    return RoadMap(
        ends=tuple((link.tail, link.head) for link in links),
        free_flow_time=tuple(link.free_flow_time for link in links),
        capacity=tuple(max(link.capacity, 0.0) for link in links),
        b=tuple(link.b for link in links),
        power=tuple(link.power for link in links),
        tolls=(0.0,) * len(links) if tolls is None else tuple(tolls.tolist()),
        trips=tuple(zip(city.origins, city.destinations, strict=True)),
        first_through_node=city.network.first_through_node,
        minutes=minutes,
        static=static,
    )


def _translation(
    city: RoutingCity, *, horizon: int, vehicles: float, minutes: float | None
) -> tuple[tuple[str, str], ...]:
    """Return what was read, drawn and assumed, in vehicles."""
    count = len(city.origins)
    far = f"; {city.too_far:,.0f} whose way has more than {horizon} links are left out" if city.too_far >= 0.5 else ""
    drawn = "" if city.seed is None else f", drawn in proportion to the traffic, seed {city.seed}"
    return (
        ("read", f"{network_words(city.network)}; {city.trips:,.0f} vehicles between its nodes{far}"),
        ("platoons", f"{count} of {vehicles:g} vehicles, {count * vehicles:,.0f} in all{drawn}"),
        (
            "time",
            f"{horizon} steps, one link in a step however long; its travel time is what it costs, not how long it "
            "is taken",
        ),
        ("loads", "platoons delay each other on a link only if they take it at the same step"),
        ("assumed", f"{unit_words(city.network, minutes)}; {UNREAD}; all platoons leave at once"),
    )


def unit_words(network: Network, minutes: float | None) -> str:
    """Return what is taken for the unit of time of a network."""
    return f"a unit of time of the network is {minutes_of(network, minutes):g} min"


UNREAD = "lengths, speeds, tolls and types of links are not used"


def network_words(network: Network) -> str:
    """Return how large a network is, and where it comes from."""
    return f"{network.num_nodes} nodes and {len(network.links)} links, {network.source}"


def _choices(network: Network) -> tuple[tuple[str, ...], ...]:
    """Return what each action is called at each node: the link that it takes."""
    out: list[list[str]] = [["wait"] for _ in range(network.num_nodes)]
    for link, name in zip(network.links, link_names(network), strict=True):
        out[link.tail - 1].append(name)
    widest = max(map(len, out))
    return tuple((*names, *["wait"] * (widest - len(names))) for names in out)


def link_delays(network: Network, flows: FloatArray) -> FloatArray:
    """Return what each link costs its users at some flows: [1, E, flows]."""
    delays = np.zeros((1, len(network.links), len(flows)))
    with np.errstate(over="ignore"):
        for e, link in enumerate(network.links):
            crowding = link.b * (flows / link.capacity) ** link.power if link.b > 0 else 0.0
            delays[0, e] = link.free_flow_time * (1 + crowding) / 100
            if not np.isfinite(delays[0, e]).all():
                raise at_line(network.source, link.line, f"the travel time at a flow of {flows[-1]:g} is not finite.")
    return frozen(delays)


def _platoon(
    network: Network, origin: int, destination: int, *, horizon: int, waiting: float, late: float
) -> LocalAgent:
    num_states = network.num_nodes
    num_actions = 1 + max(Counter(link.tail for link in network.links).values())
    ahead = np.repeat(np.arange(num_states)[:, None], num_actions, axis=1)
    link_of = np.full((num_states, num_actions), -1)
    actions: Counter[int] = Counter()
    for e, link in enumerate(network.links):
        actions[link.tail] += 1
        if link.tail != destination and _may_leave(network, link.tail, origin):
            link_of[link.tail - 1, actions[link.tail]] = e
            ahead[link.tail - 1, actions[link.tail]] = link.head - 1
    reward = np.where(link_of < 0, -waiting, 0.0)
    reward[destination - 1] = 0.0
    # The penalty falls after the last step, so it is part of that step's reward.
    rewards = np.repeat(reward[None], horizon, axis=0)
    rewards[-1] -= late * (ahead != destination - 1)
    return LocalAgent(
        transition=move_table(ahead),
        reward=frozen(rewards),
        uses=single_uses(link_of.ravel(), len(network.links)),
        initial=certain(num_states, origin - 1),
    )
