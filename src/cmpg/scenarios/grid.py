"""The paper's grid world with policies on the own cell, as in its published experiment: a local game.

Both agents walk on a grid of cells (x, y), counted from the bottom left. Each step pays an agent the reward of its own
cell; a step on which both stand on one cell, other than start and target, costs 1.

In the paper both get the sum of the two rewards. Here each gets its own. What the other gets does not depend on one's
own policy, because the dynamics are independent, so every deviation gains the same in both forms: they have the same
Nash policies, and the potential here, the sum of the values, is the paper's common value (23.1 at the optimum).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cmpg.checks import GameError, frozen
from cmpg.games.local import LocalAgent, LocalGame
from cmpg.scenarios.moves import certain, move_table, next_cells, standing_table
from cmpg.scenarios.paper import GRID_REWARDS, MOVES, Cell


def grid_world_local(
    *,
    threshold: float = 0.1,
    horizon: int = 6,
    width: int = 4,
    height: int = 4,
    start: Cell = (0, 0),
    target: Cell = (3, 2),
    cell_rewards: Mapping[Cell, float] = GRID_REWARDS,
) -> LocalGame:
    """Return the grid world of two agents, each of whom sees its own cell only.

    Cell (x, y) is state y·width + x; the actions are up, right, down, left, and leaving the grid means staying.

    Examples
    --------
    >>> game = grid_world_local()
    >>> game.policy_shapes
    ((6, 16, 4), (6, 16, 4))
    """
    for cell in (start, target, *cell_rewards):
        if not (0 <= cell[0] < width and 0 <= cell[1] < height):
            raise GameError(f"cell {cell} is not on the grid of {width} columns and {height} rows.")
    cells = [(x, y) for y in range(height) for x in range(width)]
    shared = [cell for cell in cells if cell not in (start, target)]
    resource_of = np.array([shared.index(cell) if cell in shared else -1 for cell in cells])
    reward = np.array([cell_rewards.get(cell, 0.0) for cell in cells])
    agent = LocalAgent(
        transition=move_table(next_cells(np.ones((height, width), dtype=bool), MOVES.values())),
        reward=frozen(np.repeat(reward[None, :, None], len(MOVES), axis=2)),
        uses=standing_table(resource_of, len(MOVES)),
        initial=certain(len(cells), cells.index(start)),
    )
    return LocalGame(
        members=(agent, agent),
        delay=np.zeros((1, len(shared), 3)),
        load_costs=np.broadcast_to([0.0, 0.0, 1.0], (1, 1, len(shared), 3)),
        thresholds=np.array([threshold]),
        horizon=horizon,
        agents=("agent 0", "agent 1"),
        constraints=("collisions",),
        resources=tuple(f"cell {cell}" for cell in shared),
    )
