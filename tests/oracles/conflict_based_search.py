"""Conflict-based search (Sharon, Stern, Felner and Sturtevant 2015): the least sum of arrival times on a grid.

Robots move one cell a step, or wait; no two may stand on one cell at one step, nor trade cells in one step, and whoever
has arrived stays. A node of the search has a path for each robot, each shortest among those that its constraints allow;
the first conflict of two paths is forbidden to one robot or to the other. Nodes are expanded by the sum of their
arrival times, so the first one without conflict is optimal. Nothing of the library is in here.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count

Cell = tuple[int, int]
Path = tuple[Cell, ...]
Ban = tuple[int, Cell, Cell | None]  # (step, cell, None): not on it; (step, from, to): not across it by this step
MOVES = ((0, 0), (0, -1), (1, 0), (0, 1), (-1, 0))


def least_sum_of_costs(
    cells: Sequence[Cell], starts: Sequence[Cell], goals: Sequence[Cell], *, horizon: int, most_nodes: int = 3000
) -> int | None:
    """The least sum of arrival times with everybody home within the horizon; None if that takes too long to find."""
    free = frozenset(cells)
    distance = {goal: _distances(free, goal) for goal in goals}

    def shortest(robot: int, bans: frozenset[Ban]) -> Path | None:
        return _shortest(starts[robot], goals[robot], distance[goals[robot]], bans, horizon)

    first = [shortest(robot, frozenset()) for robot in range(len(starts))]
    if None in first:
        return None
    number = count()
    bans: tuple[frozenset[Ban], ...] = (frozenset(),) * len(starts)
    paths = tuple(path for path in first if path is not None)
    waiting = [(_cost(paths), 0, next(number), bans, paths)]
    for _ in range(most_nodes):
        if not waiting:
            return None
        cost, _, _, bans, paths = heapq.heappop(waiting)
        conflict = _first_conflict(paths)
        if conflict is None:
            return cost
        for robot, ban in conflict:
            more = bans[robot] | {ban}
            path = shortest(robot, more)
            if path is None:
                continue
            changed = (*paths[:robot], path, *paths[robot + 1 :])
            own = (*bans[:robot], more, *bans[robot + 1 :])
            heapq.heappush(waiting, (_cost(changed), _conflicts(changed), next(number), own, changed))
    return None


def _cost(paths: Sequence[Path]) -> int:
    return sum(len(path) - 1 for path in paths)


def _distances(free: frozenset[Cell], goal: Cell) -> dict[Cell, int]:
    found, waiting = {goal: 0}, deque([goal])
    while waiting:
        x, y = waiting.popleft()
        for dx, dy in MOVES[1:]:
            cell = (x + dx, y + dy)
            if cell in free and cell not in found:
                found[cell] = found[x, y] + 1
                waiting.append(cell)
    return found


def _shortest(start: Cell, goal: Cell, distance: dict[Cell, int], bans: frozenset[Ban], horizon: int) -> Path | None:
    """A shortest path in space and time, after which the robot can stay on its goal for ever."""
    if start not in distance:
        return None
    free_from = 1 + max((step for step, cell, to in bans if to is None and cell == goal), default=-1)
    waiting, before = [(distance[start], 0, start)], {(0, start): start}
    while waiting:
        _, minus, cell = heapq.heappop(waiting)
        step = -minus
        if cell == goal and step >= free_from:
            path = [cell]
            for at in range(step, 0, -1):
                path.append(before[at, path[-1]])
            return tuple(reversed(path))
        if step + 1 >= horizon:
            continue
        for dx, dy in MOVES:
            target = (cell[0] + dx, cell[1] + dy)
            known = target not in distance or (step + 1, target) in before
            if known or (step + 1, target, None) in bans or (step, cell, target) in bans:
                continue
            before[step + 1, target] = cell
            heapq.heappush(waiting, (step + 1 + distance[target], -(step + 1), target))
    return None


def _at(path: Path, step: int) -> Cell:
    return path[min(step, len(path) - 1)]


def _found(paths: Sequence[Path]):
    for step in range(max(len(path) for path in paths)):
        for one in range(len(paths)):
            for other in range(one):
                here, there = _at(paths[one], step), _at(paths[other], step)
                if here == there:
                    yield (one, (step, here, None)), (other, (step, here, None))
                ahead, beyond = _at(paths[one], step + 1), _at(paths[other], step + 1)
                if here != there and ahead == there and beyond == here:
                    yield (one, (step, here, ahead)), (other, (step, there, beyond))


def _first_conflict(paths: Sequence[Path]):
    return next(_found(paths), None)


def _conflicts(paths: Sequence[Path]) -> int:
    return sum(1 for _ in _found(paths))
