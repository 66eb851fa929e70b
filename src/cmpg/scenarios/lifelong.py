"""Lifelong tasks: a robot that arrives gets its next goal, as news for `cmpg.operation.operate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cmpg.arrays import generator
from cmpg.games.local.game import LocalGame
from cmpg.scenarios.readers.movingai import Cell
from cmpg.scenarios.robot_fleet import RobotsWorld, robots_game


class LifelongTasks:
    """A fleet whose robots get a next goal, drawn from the free cells, when they are seen on their goal.

    Goals of different robots are distinct. The number of tasks that each robot has completed is in `completed`.

    Parameters
    ----------
    world
        The map, with starts and first goals.
    horizon, threshold, success, edges
        As in `robots_game`.
    seed
        Of the goals that follow.

    Examples
    --------
    >>> from cmpg.operation import Luck, operate
    >>> from cmpg.scenarios.robot_fleet import robots_world
    >>> tasks = LifelongTasks(robots_world(num_agents=2), horizon=40)
    >>> done = operate(tasks, horizon=40, thresholds=[0.1], luck=Luck(1), again=False, epsilon=1e-2)
    >>> sum(tasks.completed) > 0, done.certified
    (True, True)
    """

    def __init__(
        self,
        world: RobotsWorld,
        *,
        horizon: int = 60,
        threshold: float = 0.1,
        success: float = 0.9,
        edges: bool = True,
        seed: int = 0,
    ) -> None:
        """Begin with the first goals."""
        self.world, self.completed = world, [0] * len(world.starts)
        self._settings = {"horizon": horizon, "threshold": threshold, "success": success, "edges": edges}
        self._rng = generator(seed, "seed")
        self._game = self._built()

    def _built(self) -> LocalGame:
        return robots_game(self.world, **self._settings)  # type: ignore[arg-type]

    def __call__(self, step: int, states: Mapping[str, int]) -> LocalGame:  # noqa: ARG002
        """Return the game with the goals that hold at a step."""
        cells, goals = self.world.cells, list(self.world.goals)
        for i, goal in enumerate(goals):
            state = states.get(f"robot {i}")
            if state is not None and cells[state] == goal:
                goals[i] = self._next(cells, goals)
                self.completed[i] += 1
        if tuple(goals) != self.world.goals:
            self.world = replace(self.world, goals=tuple(goals))
            self._game = self._built()
        return self._game

    def _next(self, cells: tuple[Cell, ...], goals: list[Cell]) -> Cell:
        free = [cell for cell in cells if cell not in goals]
        return free[int(self._rng.integers(len(free)))]
