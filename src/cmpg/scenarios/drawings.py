"""How a game is drawn: on cells, on a network, or as loads against capacities.

A game file has tables and no picture, so a run folder keeps the picture beside it, in `scenario.json`. It is made when
the game is, from the scenario's own options, because the files that they name may be gone later. A game without a
drawing is shown as tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.scenarios import SCENARIOS, Origin

if TYPE_CHECKING:
    from cmpg.scenarios.platoon_routing import RoutingCity
    from cmpg.scenarios.readers.tntp import Network

Cell = tuple[int, int]


@dataclass(frozen=True)
class Mark:
    """A word on a cell, for all agents or for one."""

    cell: Cell
    text: str
    agent: int | None = None


@dataclass(frozen=True)
class GridDrawing:
    """Cells on which agents stand; what is no cell of any state is a wall."""

    width: int
    height: int
    upwards: bool  # whether y grows towards the top of the page
    cells: tuple[Cell, ...]  # of each own state
    moves: tuple[Cell, ...]  # (dx, dy) of each action
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class NetworkDrawing:
    """Nodes, which are the agents' states, and links, which are the resources."""

    nodes: tuple[tuple[float, float], ...]  # in the unit square, y downwards
    links: tuple[tuple[int, int], ...]  # states at both ends
    protected: tuple[int, ...]  # indices in `links`
    limit: float  # of a protected link
    origins: tuple[int, ...]
    destinations: tuple[int, ...]


@dataclass(frozen=True)
class LoadDrawing:
    """Resources with capacities, over named steps."""

    capacities: tuple[tuple[float, ...], ...]  # [E][H], in users
    steps: tuple[str, ...]


Drawing = GridDrawing | NetworkDrawing | LoadDrawing


def drawing_of(origin: Origin) -> Drawing | None:
    """Return how to draw the game of a scenario; None where there is no picture of it."""
    named = SCENARIOS.get(origin.name)
    maker = None if named is None else _MAKERS.get(named.name)
    return None if named is None or maker is None else maker({**named.options, **origin.options})


def _grid_drawing(options: Mapping[str, Any]) -> GridDrawing:
    from cmpg.scenarios.paper import MOVES  # on use, as below: a drawing needs one scenario, and pages need none

    width, height = int(options["width"]), int(options["height"])
    marks = [Mark(tuple(cell), f"{reward:+g}") for cell, reward in options["cell_rewards"].items()]
    return GridDrawing(
        width=width,
        height=height,
        upwards=True,
        cells=tuple((x, y) for y in range(height) for x in range(width)),
        moves=tuple(MOVES.values()),
        marks=(Mark(tuple(options["start"]), "start"), *marks),
    )


def _robots_drawing(options: Mapping[str, Any]) -> GridDrawing:
    from cmpg.scenarios.robot_fleet import MOVES, robots_world

    world = robots_world(**_accepted(robots_world, options))
    goals = [Mark(cell, "goal", agent) for agent, cell in enumerate(world.goals)]
    starts = [Mark(cell, "start", agent) for agent, cell in enumerate(world.starts)]
    return GridDrawing(
        width=world.map.width,
        height=world.map.height,
        upwards=False,
        cells=world.cells,
        moves=tuple(MOVES.values()),
        marks=(*starts, *goals),
    )


def _charging_drawing(options: Mapping[str, Any]) -> LoadDrawing:
    from cmpg.scenarios.charging_site import charging_site

    site = charging_site(**_accepted(charging_site, options))
    return LoadDrawing(tuple(map(tuple, site.capacities.tolist())), site.slots.names)


def _routing_drawing(options: Mapping[str, Any]) -> NetworkDrawing:
    from cmpg.scenarios.path_choice import static_city
    from cmpg.scenarios.platoon_routing import VEHICLES, routing_city

    static = options["mode"] == "static"
    sized = {**options, "vehicles": options["vehicles"] or VEHICLES[options["mode"]]}
    city = static_city(**_accepted(static_city, sized)) if static else routing_city(**_accepted(routing_city, sized))
    return NetworkDrawing(
        nodes=_node_places(city, options["network"]),
        links=tuple((link.tail - 1, link.head - 1) for link in city.network.links),
        protected=city.protected,
        limit=float(options["limit"]),
        origins=tuple(node - 1 for node in city.origins),
        destinations=tuple(node - 1 for node in city.destinations),
    )


def _accepted(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the options that a function takes and that are given."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known and value is not None}


def _node_places(city: RoutingCity, network: Any) -> tuple[tuple[float, float], ...]:
    """Take the nodes' coordinates from the city, or from the node file beside the network, or from its distances."""
    from cmpg.scenarios.readers.tntp import read_nodes

    places = city.positions
    if places is None and network is not None:
        beside = Path(network).with_name(Path(network).name.replace("_net.", "_node."))
        places = read_nodes(beside) if beside != Path(network) and beside.is_file() else None
    if places is None or any(node not in places for node in range(1, city.network.num_nodes + 1)):
        return unit_square(apart(np.array(unit_square(_spread(city.network)))))
    # Maps have north at the top, and the page counts downwards.
    known = [(places[node][0], -places[node][1]) for node in range(1, city.network.num_nodes + 1)]
    return unit_square(apart(np.array(unit_square(np.array(known)))))


def _spread(network: Network) -> FloatArray:
    """Place nodes so that distances on paper are near those in links: classical scaling of the distance matrix."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import dijkstra

    tails, heads = [link.tail - 1 for link in network.links], [link.head - 1 for link in network.links]
    roads = sp.csr_array((np.ones(len(tails)), (tails, heads)), shape=(network.num_nodes, network.num_nodes))
    distances = dijkstra(roads, unweighted=True, directed=False)
    squares = np.where(np.isfinite(distances), distances, network.num_nodes) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    sizes, axes = np.linalg.eigh(-centred / 2)
    spread: FloatArray = axes[:, [-1, -2]] * np.sqrt(np.maximum(sizes[[-1, -2]], 0.0))
    return spread


def apart(points: FloatArray, *, least: float = 0.085) -> FloatArray:
    """Push points [m, 2] of the unit square away from each other until none overlap, and no further.

    Examples
    --------
    >>> apart(np.array([[0.5, 0.5], [0.5, 0.52]]), least=0.1).round(2).tolist()
    [[0.5, 0.46], [0.5, 0.56]]
    """
    least = min(least, 0.7 / max(len(points), 1) ** 0.5)
    moved, order = points.astype(np.float64), np.arange(len(points))
    for _ in range(200):  # few points need more than a dozen; a picture may overlap a little
        lines = moved[:, None] - moved[None]
        lengths = np.sqrt((lines**2).sum(axis=2))
        lengths[order, order] = np.inf
        if (lengths >= least - 1e-9).all():
            break
        # Points on the same spot part to the sides, the later one to the right.
        sides = np.stack([np.sign(order[:, None] - order), np.zeros(lengths.shape)], axis=2)
        ways = np.where(lengths[..., None] > 1e-9, lines / np.maximum(lengths, 1e-9)[..., None], sides)
        moved += (ways * np.maximum(least - lengths, 0.0)[..., None] / 2).sum(axis=1)
    return moved


def unit_square(points: FloatArray) -> tuple[tuple[float, float], ...]:
    """Scale points [m, 2] into the unit square, without changing their proportions."""
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    scaled = (points - low) / max(float(size.max()), 1e-300)
    return tuple((round(float(x), 4), round(float(y), 4)) for x, y in scaled)


_MAKERS: dict[str, Callable[[Mapping[str, Any]], Drawing]] = {
    "grid-world": _grid_drawing,
    "grid-world-local": _grid_drawing,
    "robots": _robots_drawing,
    "charging": _charging_drawing,
    "routing": _routing_drawing,
}
