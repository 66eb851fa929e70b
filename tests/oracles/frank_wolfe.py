"""Traffic assignment by Frank and Wolfe (1956), with nothing of the library in it: TNTP files, Dijkstra, line search.

Every round sends all trips along paths that are shortest at present costs, and goes as far towards that as lowers the
objective most. The objective is convex, so its value at the flows less costs · (flows − flows of the shortest paths) is
below its minimum: the best of these bounds and the last value enclose it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra


@dataclass(frozen=True)
class Enclosed:
    """Flows [links], their objective, and what no flows have less of."""

    flows: np.ndarray
    value: float
    bound: float


class Network:
    """Links and trips of two TNTP files."""

    def __init__(self, network: Path, trips: Path) -> None:
        rows = [line.split() for line in network.read_text().splitlines() if line.strip().endswith(";")]
        table = np.array([[float(word) for word in row[:7]] for row in rows if row[0].isdecimal()])
        self.tail, self.head = (table[:, :2].astype(int) - 1).T
        self.capacity, self.free, self.b, self.power = table[:, 2], table[:, 4], table[:, 5], table[:, 6]
        nodes = int(max(self.tail.max(), self.head.max())) + 1
        self.trips, origin = np.zeros((nodes, nodes)), 0
        for line in trips.read_text().splitlines():
            if line.startswith("Origin"):
                origin = int(line.split()[1]) - 1
            elif ":" in line:
                for entry in line.split(";")[:-1]:
                    destination, count = entry.split(":")
                    self.trips[origin, int(destination) - 1] = float(count)
        np.fill_diagonal(self.trips, 0.0)

    def times(self, flows: np.ndarray) -> np.ndarray:
        return self.free * (1 + self.b * (flows / self.capacity) ** self.power)

    def total_time(self, flows: np.ndarray) -> float:
        return float(flows @ self.times(flows))

    def delays(self, flows: np.ndarray) -> np.ndarray:
        """By how much one more vehicle delays all others: f·t'(f)."""
        return self.free * self.b * self.power * (flows / self.capacity) ** self.power

    def beckmann(self, flows: np.ndarray, tolls: np.ndarray) -> float:
        crowding = self.b * flows / (self.power + 1) * (flows / self.capacity) ** self.power
        return float(self.free @ (flows + crowding) + tolls @ flows)

    def optimum(self, rounds: int) -> Enclosed:
        """The flows of least total time."""
        return self._minimised(self.total_time, lambda flows: self.times(flows) + self.delays(flows), rounds)

    def equilibrium(self, tolls: np.ndarray, rounds: int) -> Enclosed:
        """The flows that nobody can improve on who pays the tolls."""
        return self._minimised(
            lambda flows: self.beckmann(flows, tolls), lambda flows: self.times(flows) + tolls, rounds
        )

    def _minimised(self, objective, costs, rounds: int) -> Enclosed:
        flows, bound = self._shortest(costs(np.zeros(len(self.tail)))), -np.inf
        for _ in range(rounds):
            prices = costs(flows)
            ahead = self._shortest(prices) - flows
            bound = max(bound, objective(flows) + float(prices @ ahead))
            share = minimize_scalar(
                lambda share, at=flows, by=ahead: objective(at + share * by), bounds=(0, 1), method="bounded"
            )
            flows = flows + share.x * ahead
        return Enclosed(flows, objective(flows), bound)

    def _shortest(self, prices: np.ndarray) -> np.ndarray:
        """Send all trips along shortest paths, and count the vehicles on each link."""
        nodes = len(self.trips)
        link = {pair: each for each, pair in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True))}
        graph = csr_array((prices, (self.tail, self.head)), shape=(nodes, nodes))
        lengths, before = dijkstra(graph, return_predecessors=True)
        flows = np.zeros(len(prices))
        for origin in range(nodes):
            through = self.trips[origin].copy()
            for node in np.argsort(
                -lengths[origin]
            ).tolist():  # the furthest first: all that passes it is known by then
                if node != origin:
                    last = int(before[origin, node])
                    flows[link[last, node]] += through[node]
                    through[last] += through[node]
        return flows
