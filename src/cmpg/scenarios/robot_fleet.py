"""Robots: a fleet on a map that may be late, with a budget of collisions.

A robot's state is its cell. It can stay, or go up, right, down or left on the page that the map is printed on; a move
succeeds with probability 0.9, and else the robot stays; a move into a wall is a stay. Each of the 60 steps that is not
spent on the own goal costs 1. A robot uses the cell on which it stands, and the edge of the map across which it tries
to move. The constraint is on the expected number of collisions: pairs that stand on one cell at one step, and pairs
that cross one edge at one step, which trade places through each other:

    E Σ_h [Σ_cells m(m − 1)/2 + Σ_edges success²·m(m − 1)/2] ≤ 0.1,

since two who try to cross both succeed with probability success². It is a local game: policies see the own cell and the
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, frozen, generator, require_at_least_zero
from cmpg.errors import FileError, GameError
from cmpg.games.game import Amount, Legend
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios.moves import certain, move_table, next_cells, single_uses, standing_table
from cmpg.scenarios.readers.movingai import Cell, GridMap, Journey, read_map, read_scen
from cmpg.scenarios.readers.text import FilePath, at_line
from cmpg.scenarios.samples import sample_file
from cmpg.sizes import require_agents
from cmpg.summaries import counted

MOVES = {"stay": (0, 0), "up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}


@dataclass(frozen=True)
class RobotsWorld:
    """A map, and where each robot starts and wants to be."""

    map: GridMap
    starts: tuple[Cell, ...]
    goals: tuple[Cell, ...]
    pairs: str = "starts and goals as given"  # where they come from

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The free cells, which are the states of every robot and the first resources."""
        return self.map.free_cells()


def robots_world(
    *,
    map: FilePath | None = None,
    scen: FilePath | None = None,
    num_agents: int = 8,
    seed: int | None = None,
    horizon: int = 60,
) -> RobotsWorld:
    """Read a map, and read or draw a start and a goal for each robot.

    Parameters
    ----------
    map
        A MovingAI map; the package's own sample where it is left out.
    scen
        A MovingAI scenario for this map, of which the first `num_agents` pairs are taken. Where it is left out, pairs
        are drawn: all starts and goals on distinct free cells. With neither map nor scen nor seed, the sample's pairs.
    num_agents
        How many robots.
    seed
        Of the draw; 0 where it is left out.
    horizon
        A goal must be near enough to stand on it at one of this many steps.

    Raises
    ------
    FileError
        A file cannot be read, a robot starts or ends on a wall or cannot reach its goal in time, two robots share a
        start or a goal, or there are too few cells or pairs.
    """
    if num_agents < 1 or horizon < 1:
        raise GameError(f"there are {num_agents} agents and {horizon} steps; at least one of each is required.")
    require_agents(num_agents, 8.0 * horizon)
    if map is None and scen is not None:
        raise GameError(f"scen is {scen}, and there is no map. Pass the map that it belongs to.")
    journeys: tuple[Journey, ...] | None
    if map is None:
        with sample_file("sample.map") as sample, sample_file("sample.scen") as pairs:
            world, named = replace(read_map(sample), source="the bundled map"), "the bundled file"
            journeys = read_scen(pairs) if seed is None else None
    else:
        world, named, journeys = read_map(map), str(scen), None if scen is None else read_scen(scen)
    if journeys is None:
        return _drawn_world(world, num_agents=num_agents, seed=seed or 0, horizon=horizon)
    if len(journeys) < num_agents:
        raise FileError(
            f"{named} has {len(journeys)} pairs; {num_agents} agents need as many. Take fewer agents, or draw by seed."
        )
    found = _given_world(world, journeys[:num_agents], source=named, horizon=horizon)
    return replace(found, pairs=f"the first {num_agents} of {len(journeys)} pairs of {named}")


def _given_world(world: GridMap, journeys: Sequence[Journey], *, source: FilePath, horizon: int) -> RobotsWorld:
    roads, state_of = _roads(world), {cell: state for state, cell in enumerate(world.free_cells())}
    lines: dict[tuple[str, Cell], int] = {}
    for journey in journeys:
        if journey.map_size != (world.width, world.height):
            size = " × ".join(str(length) for length in journey.map_size)
            problem = f"the pair is for a map of {size} cells; {world.source} has {world.width} × {world.height}."
            raise at_line(source, journey.line, problem)
        for name, cell in (("start", journey.start), ("goal", journey.goal)):
            if not world.is_free(cell):
                raise at_line(source, journey.line, f"the {name} {cell} is not a free cell of {world.source}.")
            if (name, cell) in lines:
                problem = f"the {name} {cell} is that of line {lines[name, cell]} too; every robot needs its own."
                raise at_line(source, journey.line, problem)
            lines[name, cell] = journey.line
        if not _in_time(roads, state_of[journey.start], horizon)[state_of[journey.goal]]:
            problem = f"the goal {journey.goal} cannot be reached from {journey.start} within {horizon} steps."
            raise at_line(source, journey.line, problem)
    return RobotsWorld(world, tuple(each.start for each in journeys), tuple(each.goal for each in journeys))


def _drawn_world(world: GridMap, *, num_agents: int, seed: int, horizon: int) -> RobotsWorld:
    cells, roads = world.free_cells(), _roads(world)
    if 2 * num_agents > len(cells):
        raise FileError(
            f"{world.source} has {len(cells)} free cells; {num_agents} agents need {2 * num_agents} distinct ones, "
            "a start and a goal each. Take fewer agents, or a larger map."
        )
    rng = generator(seed, "seed")
    unused = np.ones(len(cells), dtype=bool)
    pairs: list[tuple[Cell, Cell]] = []
    for start in rng.permutation(len(cells)):
        if len(pairs) == num_agents:
            break
        goals = unused & _in_time(roads, int(start), horizon)
        goals[start] = False
        if unused[start] and goals.any():
            goal = rng.choice(np.flatnonzero(goals))
            unused[[start, goal]] = False
            pairs.append((cells[start], cells[goal]))
    if len(pairs) < num_agents:
        raise FileError(
            f"{world.source}: only {len(pairs)} of {num_agents} robots found a goal of their own within {horizon} "
            "steps. Take fewer agents, or a longer horizon."
        )
    starts, targets = zip(*pairs, strict=True)
    return RobotsWorld(world, starts, targets, f"starts and goals drawn at random, seed {seed}")


def _ahead(world: GridMap) -> IntArray:
    free = np.array([[world.is_free((x, y)) for x in range(world.width)] for y in range(world.height)])
    return next_cells(free, MOVES.values())


def _roads(world: GridMap) -> sp.csr_array:
    ahead = _ahead(world)
    here = np.repeat(np.arange(len(ahead)), len(MOVES))
    return sp.csr_array((np.ones(ahead.size), (here, ahead.ravel())), shape=(len(ahead), len(ahead)))


def _in_time(roads: sp.csr_array, start: int, horizon: int) -> npt.NDArray[np.bool_]:
    from scipy.sparse.csgraph import dijkstra

    # The start is where the robot stands at step 0, so that step H - 1 sees it at most H - 1 moves away.
    distances: FloatArray = dijkstra(roads, unweighted=True, indices=start, limit=horizon - 1)
    return np.isfinite(distances)


def robots(
    *,
    map: FilePath | None = None,
    scen: FilePath | None = None,
    num_agents: int = 8,
    seed: int | None = None,
    horizon: int = 60,
    threshold: float = 0.1,
    success: float = 0.9,
    edges: bool = True,
) -> LocalGame:
    """Return the game of a fleet on a map.

    Parameters
    ----------
    map, scen, num_agents, seed, horizon
        As in `robots_world`.
    threshold
        The budget: the expected number of colliding pairs, over all steps.
    success
        The probability that a move succeeds.
    edges
        Whether two robots collide that trade places in one step; without it they may pass through each other.

    Examples
    --------
    >>> game = robots(num_agents=3)
    >>> game.num_agents, game.resource_names[14], game.resource_names[-1]
    (3, 'cell (6, 1)', 'edge (10, 11)-(11, 11)')
    """
    world = robots_world(map=map, scen=scen, num_agents=num_agents, seed=seed, horizon=horizon)
    return robots_game(world, horizon=horizon, threshold=threshold, success=success, edges=edges)


def robots_game(
    world: RobotsWorld, *, horizon: int = 60, threshold: float = 0.1, success: float = 0.9, edges: bool = True
) -> LocalGame:
    """Return the game of a fleet whose starts and goals are known. All robots share the map's tables."""
    if not 0 < success <= 1:
        raise GameError(f"success is {success}; a probability above 0 is required.")
    require_at_least_zero(threshold=threshold)
    cells = world.cells
    state_of = {cell: state for state, cell in enumerate(cells)}
    ahead = _ahead(world.map)
    crossed, ends = _edges(ahead) if edges else (np.full(ahead.shape, -1), np.zeros((0, 2), dtype=np.int64))
    standing = standing_table(np.arange(len(cells)), len(MOVES))
    first = LocalAgent(
        transition=move_table(ahead, success=success),
        reward=_lateness(len(cells), state_of[world.goals[0]]),
        uses=sp.hstack([standing, single_uses(crossed.ravel(), len(ends))], format="csr") if edges else standing,
        initial=certain(len(cells), state_of[world.starts[0]]),
    )
    others = [
        replace(first, reward=_lateness(len(cells), state_of[goal]), initial=certain(len(cells), state_of[start]))
        for start, goal in zip(world.starts[1:], world.goals[1:], strict=True)
    ]
    loads = np.arange(len(world.starts) + 1.0)
    pairs = loads * (loads - 1) / 2
    costs = np.broadcast_to(pairs, (1, 1, len(cells), len(loads)))
    if edges:
        costs = np.concatenate([costs, np.broadcast_to(success**2 * pairs, (1, 1, len(ends), len(loads)))], axis=2)
    return LocalGame(
        agents=(first, *others),
        delay=np.broadcast_to(0.0, (1, costs.shape[2], len(loads))),
        load_costs=costs,
        thresholds=np.array([threshold]),
        horizon=horizon,
        agent_names=tuple(f"robot {i}" for i in range(len(world.starts))),
        constraint_names=("collisions",),
        resource_names=(
            *(f"cell {cell}" for cell in cells),
            *(f"edge {cells[one]}-{cells[other]}" for one, other in ends.tolist()),
        ),
        legend=Legend(
            agent="robot",
            state="cell",
            resource="cell or edge" if edges else "cell",
            states=tuple(f"({x}, {y})" for x, y in cells),
            actions=tuple(MOVES),
            value=Amount("travel time", "steps", -1.0),
            load=Amount("robots"),
            goals=tuple(state_of[goal] for goal in world.goals),
            places=cells,
            translation=_translation(world, horizon=horizon, success=success, edges=edges),
        ),
    )


def _translation(world: RobotsWorld, *, horizon: int, success: float, edges: bool) -> tuple[tuple[str, str], ...]:
    """Return what was read, left out and assumed, in the words of the map's file."""
    size = f"{world.map.width} × {world.map.height}"
    swamp = sum(row.count("S") for row in world.map.rows)
    rows = [
        ("read", f"{len(world.cells)} free cells of {size}, {world.map.source}; {world.pairs}"),
        ("speed", "one cell in a step in four directions, the same for all robots; diagonal moves are left out"),
    ]
    if swamp:
        rows.append(("swamp", f"{counted(swamp, 'cell')} of swamp (S) taken as ordinary ground"))
    both = "two robots on one cell at one step"
    trading = "and two that trade places" if edges else "two that trade places are not counted"
    rows += [
        ("collisions", f"{both}{',' if edges else ';'} {trading}"),
        ("time", f"{horizon} steps; a robot that has arrived stays in the world, and may be run into"),
    ]
    fails = f"a move fails with probability {1 - success:.3g}, independently" if success < 1 else "moves always succeed"
    return (*rows, ("assumed", f"{fails}; robots do not see each other"))


def _edges(ahead: IntArray) -> tuple[IntArray, IntArray]:
    """Number the edges of a map: which one each move crosses, [S, A] with −1 for a stay, and their ends, [edges, 2]."""
    here = np.broadcast_to(np.arange(len(ahead))[:, None], ahead.shape)
    ends, number = np.unique(np.sort(np.stack([here, ahead], axis=-1).reshape(-1, 2)), axis=0, return_inverse=True)
    proper = ends[:, 0] != ends[:, 1]
    renumbered = np.where(proper, np.cumsum(proper) - 1, -1)
    return renumbered[number].reshape(ahead.shape), ends[proper]


def _lateness(num_cells: int, goal: int) -> FloatArray:
    reward = np.full((1, num_cells, len(MOVES)), -1.0)
    reward[:, goal] = 0.0
    return frozen(reward)
