"""The games of the paper, number by number, and true potential games beside the one that is not.

Where the paper is silent or not runnable, `docs/paper-notes.md` says what was done instead. No Python loop visits the
joint actions: all tables are array expressions over `numpy.indices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from cmpg.checks import FloatArray, GameError, IntArray, frozen
from cmpg.games.counting_tables import MAX_JOINT_ENTRIES
from cmpg.games.joint import JointGame

Cell = tuple[int, int]
"""Column and row, counted from the bottom left."""

CostSteps = Literal["every step", "first step"]

GRID_REWARDS: Mapping[Cell, float] = MappingProxyType({(1, 0): 2.0, (0, 1): 1.0, (3, 2): 10.0})
"""What an agent gets at each step that it stands on a cell, in the paper's grid world."""

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
    """Return the 2×2 game with strong duality, P* = D* = 3.5, whose dual still returns policies that are not Nash."""
    return _matrix_game([[3.0, 3.0], [3.0, 4.0]], threshold)


def _matrix_game(reward: Sequence[Sequence[float]], threshold: float) -> JointGame:
    return JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.array([reward, reward])[:, None, None],
        costs=np.array([[0.0, 0.0], [0.0, 1.0]])[None, None, None],
        thresholds=np.array([threshold]),
        initial=np.ones(1),
        horizon=1,
        agents=_names("agent", 2),
        states=("only",),
        actions=(("1", "2"),) * 2,
        constraints=("both play 2",),
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
    >>> game.num_states, game.states[16]
    (256, '(1,0) (0,0)')
    """
    for cell in (start, target, *cell_rewards):
        if not (0 <= cell[0] < width and 0 <= cell[1] < height):
            raise GameError(f"cell {cell} is not on the grid of {width} columns and {height} rows.")
    cells = width * height
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
        agents=_names("agent", 2),
        states=tuple(f"{first} {second}" for first in names for second in names),
        actions=(tuple(MOVES),) * 2,
        constraints=("collisions",),
    )


def _moves_of_two(width: int, height: int) -> IntArray:
    """Return the next joint state of every (state, action, action), as one flat array."""
    rows, columns = np.divmod(np.arange(width * height), width)
    steps = np.array(list(MOVES.values()))
    x, y = columns[:, None] + steps[:, 0], rows[:, None] + steps[:, 1]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    ahead = np.where(inside, y * width + x, np.arange(width * height)[:, None])
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
    """
    crowd, rewards = _congestion_tables(num_agents, np.asarray(weights, dtype=np.float64), unsafe_penalty)
    leaves = np.stack([crowd > num_agents / 2, crowd <= num_agents / 4])
    stays = ~leaves
    transition = np.stack([np.stack([stays[0], leaves[0]], axis=-1), np.stack([leaves[1], stays[1]], axis=-1)])
    return JointGame(
        transition=frozen(transition[None].astype(np.float64)),
        rewards=frozen(rewards),
        costs=_crowd_costs(crowd, horizon, cost_at),
        thresholds=np.array([threshold]),
        initial=np.asarray(initial),
        horizon=horizon,
        agents=_names("agent", num_agents),
        states=("safe", "unsafe"),
        actions=(tuple(chr(ord("A") + a) for a in range(len(weights))),) * num_agents,
        constraints=("a crowd in unsafe",),
    )


def congestion_game_common_reward(
    *, num_agents: int = 8, horizon: int = 2, threshold: float = 0.5, cost_at: CostSteps = "every step"
) -> JointGame:
    """Return the congestion game in which everybody gets the welfare, the sum of all rewards: a potential game (C1)."""
    game = congestion_game(num_agents=num_agents, horizon=horizon, threshold=threshold, cost_at=cost_at)
    welfare = game.rewards.sum(axis=0)
    return replace(game, rewards=np.broadcast_to(welfare, game.rewards.shape), trusted=True)


def congestion_game_exogenous(
    *,
    num_agents: int = 8,
    horizon: int = 2,
    threshold: float = 0.5,
    to_unsafe: float = 0.25,
    to_safe: float = 0.5,
    cost_at: CostSteps = "every step",
) -> JointGame:
    """Return the congestion game in which the state moves by itself, whatever the agents do: a potential game (C2)."""
    game = congestion_game(num_agents=num_agents, horizon=horizon, threshold=threshold, cost_at=cost_at)
    by_itself = np.array([[1 - to_unsafe, to_unsafe], [to_safe, 1 - to_safe]])
    spread = by_itself.reshape(1, 2, *(1,) * num_agents, 2)
    return replace(game, transition=np.broadcast_to(spread, game.transition.shape).copy())


def _congestion_tables(num_agents: int, weights: FloatArray, unsafe_penalty: float) -> tuple[IntArray, FloatArray]:
    """Return k* [*A] and the rewards [n, 1, 2, *A]."""
    if num_agents < 1:
        raise GameError(f"num_agents is {num_agents}; at least 1 is required.")
    if weights.ndim != 1 or not len(weights):
        raise GameError(f"weights has shape {list(weights.shape)}; one weight per action is required.")
    joint = (len(weights),) * num_agents
    entries = 2.0 * num_agents * float(len(weights)) ** num_agents
    if entries > MAX_JOINT_ENTRIES:
        raise GameError(
            f"{num_agents} agents need tables of {entries:.3g} entries; at most {MAX_JOINT_ENTRIES:.3g} are written. "
            "Use `counting_congestion_game`, on the command line congestion-counting."
        )
    choices = np.indices(joint, sparse=True)
    counts = np.stack([sum((choice == a).astype(np.int64) for choice in choices) for a in range(len(weights))])
    payoffs = counts * weights.reshape(-1, *(1,) * num_agents)
    rewards = np.empty((num_agents, 1, 2, *joint))
    for agent, choice in enumerate(choices):
        rewards[agent, 0, 0] = np.take_along_axis(payoffs, np.broadcast_to(choice, (1, *joint)), axis=0)[0]
    rewards[:, :, 1] = rewards[:, :, 0] - unsafe_penalty
    return counts.max(axis=0), rewards


def _crowd_costs(crowd: IntArray, horizon: int, cost_at: CostSteps) -> FloatArray:
    """Return the cost [1, H or 1, 2, *A]."""
    if cost_at not in get_args(CostSteps):
        raise GameError(f"cost_at is {cost_at!r}; it must be one of {', '.join(map(repr, get_args(CostSteps)))}.")
    steps = horizon if cost_at == "first step" else 1
    costs = np.zeros((1, steps, 2, *crowd.shape))
    costs[0, 0, 1] = crowd > crowd.ndim / 2
    return costs


def _names(kind: str, number: int) -> tuple[str, ...]:
    return tuple(f"{kind} {each}" for each in range(1, number + 1))
