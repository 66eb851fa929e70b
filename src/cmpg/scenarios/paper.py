"""The games of the paper, number by number, and true potential games beside the one that is not.

The counter-example and its modification (2×2); the grid world, for policies that see the joint state (as in the text)
and for policies on the own cell (as in the published experiment); the congestion game, as tables for a few agents and
by counts for any number. Where the paper is silent or not runnable, `docs/paper-notes.md` says what was done instead.

No Python loop visits the joint actions: all tables are array expressions over `numpy.indices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import IntArray, frozen, numbers
from cmpg.errors import GameError
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.vectors import LargestCount
from cmpg.games.game import Legend
from cmpg.games.joint.averages import MAX_JOINT_ENTRIES, check_agents
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios.moves import certain, move_table, next_cells, standing_table
from cmpg.sizes import OBJECT, require_agents, require_joint_tables, require_memory

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame
    from cmpg.games.local.game import LocalGame

Cell = tuple[int, int]
"""Column and row, counted from the bottom left."""

CostSteps = Literal["every step", "first step"]

GRID_REWARDS: Mapping[Cell, float] = MappingProxyType({(1, 0): 2.0, (0, 1): 1.0, (3, 2): 10.0})
"""What an agent gets at each step that it stands on a cell, in the paper's grid world."""

MANY_CELLS = 100
"""Grids with more cells than this are looked at first: do they fit into memory?"""

MOVES: Mapping[str, Cell] = MappingProxyType({"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)})


def counter_example(*, threshold: float = 0.5) -> JointGame:
    """Return the 2×2 game without strong duality: P* = 4.5 − √2, D* = 3.5.

    With p and q the probabilities of the second actions, the common reward is 3 − p − q + 3pq and the cost is pq.

    Examples
    --------
    >>> game = counter_example()
    >>> game.at(game.uniform_policy()).costs
    array([0.25])
    """
    return _matrix_game([[3.0, 2.0], [2.0, 4.0]], threshold)


def modified_counter_example(*, threshold: float = 0.5) -> JointGame:
    """Return the 2×2 game with strong duality, P* = D* = 3.5, whose dual still returns policies that are not Nash.

    Examples
    --------
    >>> game = modified_counter_example()
    >>> game.at(game.uniform_policy()).values
    array([3.25, 3.25])
    """
    return _matrix_game([[3.0, 3.0], [3.0, 4.0]], threshold)


def _matrix_game(reward: Sequence[Sequence[float]], threshold: float) -> JointGame:
    return JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.array([reward, reward])[:, None, None],
        costs=np.array([[0.0, 0.0], [0.0, 1.0]])[None, None, None],
        thresholds=np.array([threshold]),
        initial=np.ones(1),
        horizon=1,
        state_names=("only",),
        action_names=(("1", "2"),) * 2,
        constraint_names=("both play 2",),
    )


def grid_world(
    *,
    threshold: float = 0.1,
    horizon: int = 6,
    width: int = 4,
    height: int = 4,
    start: Cell = (0, 0),
    target: Cell = (3, 2),
    cell_rewards: Mapping[Cell, float] = GRID_REWARDS,
) -> JointGame:
    """Return the grid world of two agents, who both see both cells.

    Each step pays the sum of the rewards of the two cells on which the agents stand, to both of them. Leaving the grid
    means staying. A step on which both stand on one cell, other than start and target, costs 1. A state is a pair of
    cells, and cell (x, y) has the number y·width + x.

    Examples
    --------
    >>> game = grid_world()
    >>> game.num_states, game.state_names[16]
    (256, '(1,0) (0,0)')
    """
    _check_cells((start, target, *cell_rewards), width, height)
    cells = width * height
    if cells > MANY_CELLS:
        named = OBJECT / 12 / len(MOVES) ** 2  # every state has a name
        require_joint_tables(float(cells) ** 2, (len(MOVES),) * 2, tables=6, successors=3 + named)
    per_cell = np.zeros(cells)
    for (x, y), reward in cell_rewards.items():
        per_cell[y * width + x] = reward
    collision = np.eye(cells)
    free = [start[1] * width + start[0], target[1] * width + target[0]]
    collision[free, free] = 0.0
    initial = np.zeros((cells, cells))
    initial[free[0], free[0]] = 1.0
    table = (cells * cells, len(MOVES), len(MOVES))
    common = (per_cell[:, None] + per_cell[None, :]).reshape(-1, 1, 1)
    names = [f"({cell % width},{cell // width})" for cell in range(cells)]
    return JointGame(
        transition=(_deterministic(_moves_of_two(width, height), cells * cells),),
        rewards=np.broadcast_to(common, (2, 1, *table)).copy(),
        costs=np.broadcast_to(collision.reshape(-1, 1, 1), (1, 1, *table)).copy(),
        thresholds=np.array([threshold]),
        initial=initial.ravel(),
        horizon=horizon,
        state_names=tuple(f"{first} {second}" for first in names for second in names),
        action_names=(tuple(MOVES),) * 2,
        constraint_names=("collisions",),
    )


def _check_cells(cells: Sequence[Cell], width: int, height: int) -> None:
    for x, y in cells:
        if not (0 <= x < width and 0 <= y < height):
            raise GameError(f"cell {(x, y)} is not on the grid of {width} columns and {height} rows.")


def _moves_of_two(width: int, height: int) -> IntArray:
    """Return the next joint state of every (state, action, action), as one flat array."""
    ahead = next_cells(np.ones((height, width), dtype=bool), MOVES.values())
    pairs: IntArray = (ahead[:, None, :, None] * (width * height) + ahead[None, :, None, :]).ravel()
    return pairs


def _deterministic(targets: IntArray, num_states: int) -> sp.csr_array:
    rows = len(targets)
    return sp.csr_array((np.ones(rows), targets, np.arange(rows + 1)), shape=(rows, num_states))


def congestion_game(
    *,
    num_agents: int = 8,
    horizon: int = 2,
    threshold: float = 0.5,
    weights: Sequence[float] = (1.0, 2.0, 4.0, 6.0),
    unsafe_penalty: float = 100.0,
    initial: Sequence[float] = (0.5, 0.5),
    cost_at: CostSteps = "every step",
) -> JointGame:
    """Return the congestion game: k agents on action a get k·w_a each, less a penalty in the state `unsafe`.

    With k* the size of the largest crowd, `safe` leads to `unsafe` if k* > n/2, and `unsafe` to `safe` if k* ≤ n/4. A
    crowd k* > n/2 in `unsafe` costs 1.

    This game is not a Markov potential game unless the horizon is 1: the crowd moves the state, and what the next state
    is worth differs between agents. `check_potential` finds a witness. `congestion_game_common_reward` and
    `congestion_game_exogenous` are potential games.

    Parameters
    ----------
    cost_at
        The paper writes "at step h = 1", by which no policy could break the constraint: the cost is then at most 0.5.
        Its figure comes out when the cost is paid at every step.

    Examples
    --------
    >>> game = congestion_game(num_agents=2)
    >>> game.state_names, game.reward_ranges, game.potential_proof() is None
    (('safe', 'unsafe'), array([222., 222.]), True)
    """
    check_agents(num_agents)
    entries = 2.0 * num_agents * float(len(weights)) ** num_agents
    if entries > MAX_JOINT_ENTRIES:
        raise GameError(
            f"{num_agents} agents need tables of {entries:.3g} entries; at most {MAX_JOINT_ENTRIES:.3g} are written. "
            "Use `counting_congestion_game`, on the command line congestion-counting."
        )
    game = counting_congestion_game(
        num_agents=num_agents,
        horizon=horizon,
        threshold=threshold,
        weights=weights,
        unsafe_penalty=unsafe_penalty,
        initial=initial,
        cost_at=cost_at,
    )
    return game.to_joint()


def congestion_game_common_reward(
    *, num_agents: int = 8, horizon: int = 2, threshold: float = 0.5, cost_at: CostSteps = "every step"
) -> JointGame:
    """Return the congestion game in which every agent gets the welfare, the sum of rewards: a potential game (C1).

    Examples
    --------
    >>> congestion_game_common_reward(num_agents=2).potential_proof().kind.name
    'COMMON_REWARD'
    """
    game = congestion_game(num_agents=num_agents, horizon=horizon, threshold=threshold, cost_at=cost_at)
    welfare = game.rewards.sum(axis=0)
    return game.with_rewards(np.broadcast_to(welfare, game.rewards.shape))


def congestion_game_exogenous(
    *,
    num_agents: int = 8,
    horizon: int = 2,
    threshold: float = 0.5,
    to_unsafe: float = 0.25,
    to_safe: float = 0.5,
    cost_at: CostSteps = "every step",
) -> JointGame:
    """Return the congestion game in which the state moves by itself, whatever the agents do: a potential game (C2).

    Examples
    --------
    >>> game = congestion_game_exogenous(num_agents=2)
    >>> game.potential_proof().kind.name
    'EXOGENOUS_STATE'
    """
    game = congestion_game(num_agents=num_agents, horizon=horizon, threshold=threshold, cost_at=cost_at)
    by_itself = np.array([[1 - to_unsafe, to_unsafe], [to_safe, 1 - to_safe]])
    spread = by_itself.reshape(1, 2, *(1,) * num_agents, 2)
    return game.with_transition(np.broadcast_to(spread, game.transition.shape).copy())


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

    In the paper both get the sum of the two rewards. Here each gets its own. What the other gets does not depend on
    one's own policy, because the dynamics are independent, so every deviation gains the same in both forms: they have
    the same Nash policies, and the potential here, the sum of the values, is the paper's common value.

    Examples
    --------
    >>> game = grid_world_local()
    >>> game.policy_shapes
    ((6, 16, 4), (6, 16, 4))
    """
    _check_cells((start, target, *cell_rewards), width, height)
    if width * height > MANY_CELLS:
        what = f"the tables of {width * height:,} cells over {horizon:,} steps"
        needed = float(width * height) * (4 * OBJECT + 8 * len(MOVES) * (8 + 2 * float(horizon)))
        require_memory(what, needed, advice="Take a smaller grid, or fewer steps.")
    cells = [(x, y) for y in range(height) for x in range(width)]
    shared = [cell for cell in cells if cell not in (start, target)]
    indices = {cell: index for index, cell in enumerate(shared)}
    resource_of = np.array([indices.get(cell, -1) for cell in cells])
    reward = np.array([cell_rewards.get(cell, 0.0) for cell in cells])
    agent = LocalAgent(
        transition=move_table(next_cells(np.ones((height, width), dtype=bool), MOVES.values())),
        reward=frozen(np.repeat(reward[None, :, None], len(MOVES), axis=2)),
        uses=standing_table(resource_of, len(MOVES)),
        initial=certain(len(cells), cells.index(start)),
    )
    return LocalGame(
        agents=(agent, agent),
        delay=np.zeros((1, len(shared), 3)),
        load_costs=np.broadcast_to([0.0, 0.0, 1.0], (1, 1, len(shared), 3)),
        thresholds=np.array([threshold]),
        horizon=horizon,
        constraint_names=("collisions",),
        resource_names=tuple(f"cell {cell}" for cell in shared),
        legend=Legend(state="cell", resource="cell", states=tuple(map(str, cells)), actions=tuple(MOVES)),
    )


QUIET, BUSY, CROWDED = range(3)
"""The classes of the largest crowd k*: k* ≤ n/4, between, k* > n/2."""

SAFE, UNSAFE = range(2)


def counting_congestion_game(
    *,
    num_agents: int = 8,
    horizon: int = 2,
    threshold: float = 0.5,
    weights: Sequence[float] = (1.0, 2.0, 4.0, 6.0),
    unsafe_penalty: float = 100.0,
    initial: Sequence[float] = (0.5, 0.5),
    cost_at: CostSteps = "every step",
) -> CountingGame:
    """Return the congestion game by counts: that of `congestion_game`, without its tables of 4^n joint actions.

    With k* the size of the largest crowd, `safe` leads to `unsafe` if k* > n/2, and `unsafe` to `safe` if k* ≤ n/4. A
    crowd k* > n/2 in `unsafe` costs 1. Where the agents cannot spread that evenly (n is not a multiple of four, with
    four actions), there is no way back from `unsafe`.

    This game is not a Markov potential game unless the horizon is 1.

    Parameters
    ----------
    cost_at
        The paper writes "at step h = 1", by which no policy could break the constraint: the cost is then at most 0.5.
        Its figure comes out when the cost is paid at every step.

    Examples
    --------
    >>> game = counting_congestion_game(num_agents=100)
    >>> game.at(game.uniform_policy()).values[:2].round(3)
    array([67.425, 67.425])
    """
    if num_agents != int(num_agents) or num_agents < 1:
        raise GameError(f"num_agents is {num_agents}; a whole number of at least 1 is required.")
    per_agent = numbers("weights", weights)
    if per_agent.ndim != 1 or not len(per_agent):
        raise GameError(f"weights has shape {list(per_agent.shape)}; one weight per action is required.")
    if num_agents > MANY_CELLS:
        require_agents(num_agents, 2.0 * len(per_agent) * (2 + horizon))
    if cost_at not in ("every step", "first step"):
        raise GameError(f"cost_at is {cost_at!r}; it must be 'every step' or 'first step'.")
    payoffs = per_agent[:, None] * np.arange(num_agents + 1)
    transition = np.zeros((1, 2, 3, 2))
    transition[0, SAFE, :, SAFE] = transition[0, UNSAFE, :, UNSAFE] = 1.0
    transition[0, SAFE, CROWDED] = [0.0, 1.0]
    transition[0, UNSAFE, QUIET] = [1.0, 0.0]
    costs = np.zeros((1, horizon if cost_at == "first step" else 1, 2, 3))
    costs[0, 0, UNSAFE, CROWDED] = 1.0
    return CountingGame(
        rewards=np.stack([payoffs, payoffs - unsafe_penalty])[None],
        classes=LargestCount((num_agents / 4, num_agents / 2)),
        transition=transition,
        costs=costs,
        thresholds=np.array([threshold]),
        initial=np.array(initial),
        horizon=horizon,
        state_names=("safe", "unsafe"),
        action_names=(_letters(len(per_agent)),) * num_agents,
        constraint_names=("a crowd in unsafe",),
    )


def _letters(number: int) -> tuple[str, ...]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return tuple(letters[:number]) if number <= len(letters) else tuple(f"action {a}" for a in range(1, number + 1))
