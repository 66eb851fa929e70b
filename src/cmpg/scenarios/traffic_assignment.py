"""Traffic assignment: flows on a network that no vehicle can improve on, those that are best for all, and tolls.

Demand d_w of every pair w of nodes travels on paths. With travel time t_e(f) and a toll on each link,
- a user equilibrium has no path in use that is longer than another one of its pair, tolls included (Wardrop). It
  minimises Beckmann's function Σ_e ∫_0^{f_e} t_e + Σ_e toll_e f_e;
- a system optimum minimises the total travel time Σ_e f_e t_e(f_e);
- with the tolls f_e t_e'(f_e) at the system optimum, what every vehicle adds to the time of the others, the system
  optimum is a user equilibrium (Pigou; Beckmann, McGuire and Winsten 1956).

Both are found by gradient projection on path flows (Jayakrishnan et al. 1994): pair by pair, flow moves from longer
paths to the shortest, by a Newton step for the difference of their lengths. The relative gap 1 − Σ_w d_w u_w / Σ_e f_e
c_e, with u_w the shortest length of a pair at costs c, is zero at a solution and only there, because a solution is a
minimum of a convex function whose gradient c is: so it is what is reported, whatever found the flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import FileError
from cmpg.games.names import RoadMap
from cmpg.scenarios.readers.tntp import Network
from cmpg.summaries import fields_line

Path = tuple[int, ...]
"""The indices of links."""

ITERATIONS = 200

SMALLEST_FLOW = 1e-9
"""A path with less of its pair's flow than this share is dropped."""


@dataclass(frozen=True, eq=False)
class Roads:
    """The links of a network as arrays."""

    num_nodes: int
    ends: IntArray  # [E, 2]: tail and head, counted from 0
    free_flow_time: FloatArray  # [E]
    capacity: FloatArray  # [E]
    b: FloatArray  # [E]
    power: FloatArray  # [E]
    closed: int = 0  # nodes below this number are left only by trips that begin there
    tolls: FloatArray | None = None  # [E], in units of time; None: zeros

    __repr__ = fields_line

    @classmethod
    def of(cls, network: Network) -> Roads:
        """Read the links of a network."""
        links = network.links
        columns = [[getattr(link, name) for link in links] for name in ("free_flow_time", "capacity", "b", "power")]
        ends = np.array([(link.tail - 1, link.head - 1) for link in links])
        time, capacity, b, power = (np.array(column, dtype=np.float64) for column in columns)
        # A link without congestion may come without a capacity.
        return cls(
            network.num_nodes, ends, time, np.where(b > 0, capacity, 1.0), b, power, network.first_through_node - 1
        )

    @classmethod
    def on(cls, roads: RoadMap) -> Roads:
        """Read the links of a game's legend."""
        b = np.array(roads.b)
        return cls(
            max(max(pair) for pair in (*roads.ends, *roads.trips)),
            np.array(roads.ends) - 1,
            np.array(roads.free_flow_time),
            np.where(b > 0, roads.capacity, 1.0),
            b,
            np.array(roads.power),
            roads.first_through_node - 1,
            np.array(roads.tolls) if any(roads.tolls) else None,
        )

    def times(self, flows: FloatArray) -> FloatArray:
        """Return the travel time of each link: [E]."""
        return np.asarray(self.free_flow_time * (1 + self.b * (flows / self.capacity) ** self.power))

    def marginal_delays(self, flows: FloatArray) -> FloatArray:
        """Return f·t'(f), by which one more vehicle delays all others on a link: [E]."""
        crowding = (flows / self.capacity) ** self.power
        return np.asarray(self.free_flow_time * self.b * self.power * crowding)

    def beckmann(self, flows: FloatArray) -> float:
        """Return Beckmann's function: Σ_e ∫_0^{flow_e} time_e.

        Examples
        --------
        >>> from cmpg.scenarios.readers.tntp import Link
        >>> roads = Roads.of(Network(2, 2, 1, (Link(1, 2, 1.0, 1.0, 3.0, 0.0, 4.0, 1),), "two nodes"))
        >>> roads.beckmann(np.array([2.0]))
        6.0
        """
        crowding = self.b * self.capacity / (self.power + 1) * (flows / self.capacity) ** (self.power + 1)
        return float((self.free_flow_time * (flows + crowding)).sum())

    def with_tolls(self, tolls: FloatArray) -> Roads:
        """Return the same links with tolls [E]."""
        return replace(self, tolls=np.asarray(tolls, dtype=np.float64))

    def costs(self, flows: FloatArray, *, optimum: bool = False) -> FloatArray:
        """Return travel time and toll of each link: [E]; for the optimum, with what is added to others, untolled."""
        if optimum:
            return self.times(flows) + self.marginal_delays(flows)
        return self.times(flows) if self.tolls is None else self.times(flows) + self.tolls

    def slopes(self, flows: FloatArray, *, optimum: bool) -> FloatArray:
        """Return how `costs` rise with the flow: [E]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(flows > 0, self.marginal_delays(flows) / flows, 0.0)
        return np.asarray(rise * (1 + self.power) if optimum else rise)


@dataclass(frozen=True, eq=False)
class Demand:
    """Who wants to go where: pairs of nodes, counted from 0, with their flow in vehicles."""

    pairs: tuple[tuple[int, int], ...]
    flows: FloatArray  # [pairs]

    @classmethod
    def on(cls, roads: RoadMap, vehicles: float) -> Demand:
        """Count the trips of a game whose agents have this many vehicles each."""
        counts = Counter((origin - 1, destination - 1) for origin, destination in roads.trips)
        return cls(tuple(counts), vehicles * np.array(list(counts.values()), dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Assignment:
    """Flows of all links, and how far they are from what they should be."""

    flows: FloatArray  # [E], in vehicles
    total_time: float  # Σ f·t, without tolls
    relative_gap: float

    __repr__ = fields_line


def shortest_paths(roads: Roads, demand: Demand, times: FloatArray) -> tuple[list[Path], FloatArray]:
    """Return a shortest path of every pair, and how long it takes: [pairs]."""
    from scipy.sparse.csgraph import dijkstra

    fastest: dict[tuple[int, int], int] = {}
    for e, (tail, head) in enumerate(roads.ends.tolist()):
        if (tail, head) not in fastest or times[e] < times[fastest[tail, head]]:
            fastest[tail, head] = e
    paths: dict[tuple[int, int], Path] = {}
    lengths: dict[tuple[int, int], float] = {}
    shape = (roads.num_nodes, roads.num_nodes)
    for origin in sorted({origin for origin, _ in demand.pairs}):
        # Zones that are closed to through traffic are left only by trips that begin there.
        used = [e for (tail, _), e in fastest.items() if tail >= roads.closed or tail == origin]
        matrix = sp.csr_array((times[used], (roads.ends[used, 0], roads.ends[used, 1])), shape=shape)
        distance, before = dijkstra(matrix, indices=origin, return_predecessors=True)
        for pair in {pair for pair in demand.pairs if pair[0] == origin}:
            paths[pair] = _way_back(before, pair, fastest)
            lengths[pair] = float(distance[pair[1]])
    return [paths[pair] for pair in demand.pairs], np.array([lengths[pair] for pair in demand.pairs])


def _way_back(before: IntArray, pair: tuple[int, int], links: Mapping[tuple[int, int], int]) -> Path:
    way, node = [], pair[1]
    while node != pair[0]:
        previous = int(before[node])
        if previous < 0:
            raise FileError(f"there is no way from {pair[0] + 1} to {pair[1] + 1}.")
        way.append(links[previous, node])
        node = previous
    return tuple(reversed(way))


def relative_gap(roads: Roads, demand: Demand, flows: FloatArray, *, optimum: bool = False) -> float:
    """Return 1 − Σ_w d_w u_w / Σ_e f_e c_e: the share of all costs that shortest paths would save at these costs.

    Parameters
    ----------
    roads, demand
        The problem.
    flows : [E]
        Of the links.
    optimum
        Costs are what one more vehicle costs all vehicles, so that the gap is zero at a system optimum.
    """
    costs = roads.costs(flows, optimum=optimum)
    _, lengths = shortest_paths(roads, demand, costs)
    total = float(costs @ flows)
    return 1 - float(demand.flows @ lengths) / total if total > 0 else 0.0


def assign(
    roads: Roads, demand: Demand, *, optimum: bool = False, gap: float = 1e-9, iterations: int = ITERATIONS
) -> Assignment:
    """Find the flows of a user equilibrium, or of a system optimum.

    Parameters
    ----------
    roads
        The network, perhaps with tolls, which a system optimum does not see.
    demand
        Who wants to go where.
    optimum
        Whether to minimise the total travel time instead.
    gap, iterations
        It ends with this relative gap, or after this many iterations; the gap is part of the answer.

    Examples
    --------
    Pigou's example: two roads, one of which takes 1 whatever the flow, the other as long as its share of the flow.

    >>> from cmpg.scenarios.readers.tntp import Link
    >>> links = (Link(1, 2, 1.0, 1.0, 1.0, 0.0, 1.0, 1), Link(1, 2, 1.0, 1.0, 1e-9, 1e9, 1.0, 2))
    >>> roads, demand = Roads.of(Network(2, 2, 1, links, "Pigou")), Demand(((0, 1),), np.array([1.0]))
    >>> assign(roads, demand).flows.round(6).tolist(), assign(roads, demand, optimum=True).flows.round(6).tolist()
    ([0.0, 1.0], [0.5, 0.5])
    """
    flows = np.zeros(len(roads.ends))
    used: list[dict[Path, float]] = [{} for _ in demand.pairs]
    for number in range(iterations):
        paths, lengths = shortest_paths(roads, demand, roads.costs(flows, optimum=optimum))
        if number == 0:
            for own, path, flow in zip(used, paths, demand.flows.tolist(), strict=True):
                own[path] = flow
                flows[list(path)] += flow
            continue
        total = float(roads.costs(flows, optimum=optimum) @ flows)
        if total <= 0 or 1 - float(demand.flows @ lengths) / total <= gap:
            break
        for own, path, flow in zip(used, paths, demand.flows.tolist(), strict=True):
            own.setdefault(path, 0.0)
            if len(own) > 1:
                _project(roads, flows, own, flow, optimum=optimum)
        flows = _total(used, len(flows))  # without what rounding has left behind
    return Assignment(flows, float(roads.times(flows) @ flows), relative_gap(roads, demand, flows, optimum=optimum))


def _project(roads: Roads, flows: FloatArray, own: dict[Path, float], demand: float, *, optimum: bool) -> None:
    """Move the flow of one pair from longer paths to its shortest, in place."""
    links = np.unique(np.concatenate([np.array(path) for path in own]))
    part = replace(
        roads,
        free_flow_time=roads.free_flow_time[links],
        capacity=roads.capacity[links],
        b=roads.b[links],
        power=roads.power[links],
        tolls=None if roads.tolls is None else roads.tolls[links],
    )
    on = np.array([np.isin(links, path) for path in own], dtype=np.float64)  # [paths, links]
    amounts, now = np.array(list(own.values())), flows[links]
    costs, slopes = part.costs(now, optimum=optimum), part.slopes(now, optimum=optimum)
    lengths = on @ costs
    best = int(np.argmin(lengths))
    apart = np.abs(on - on[best]) @ slopes
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(lengths > lengths[best], (lengths - lengths[best]) / apart, 0.0)
    after = amounts - np.minimum(amounts, wanted)
    after[after <= SMALLEST_FLOW * demand] = 0.0
    after[best] += demand - after.sum()
    flows[links] = np.maximum(now + on.T @ (after - amounts), 0.0)
    for path, amount in zip(list(own), after.tolist(), strict=True):
        own[path] = amount
        if amount == 0.0:
            del own[path]


def _total(used: list[dict[Path, float]], num_links: int) -> FloatArray:
    flows = np.zeros(num_links)
    for own in used:
        for path, flow in own.items():
            flows[list(path)] += flow
    return flows


def optimal_tolls(roads: Roads, optimum: Assignment) -> FloatArray:
    """Return the tolls by which a system optimum is a user equilibrium, in units of time: [E]."""
    return roads.marginal_delays(optimum.flows)
