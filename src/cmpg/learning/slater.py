"""Slater constants: how much slack an agent can be sure of.

The paper's Definition 1: ζ = min_i min_{π_−i} max_{π_i} (α − V^c(π_i, π_−i)). Between agent i and all the others as one
opponent this is a zero-sum Markov game with a finite horizon, and backward induction over its stage games solves it:
exactly for two agents; for more, the opponent may correlate what the others play, which can only lower the value, so
the result is a lower bound. With several constraints the stage payoff is max_j (c_{j,h} − α_j/H), whose sum is at least
max_j (V^{c_j} − α_j): a lower bound again.

In coupled games this is often zero or less (the paper's own congestion game: −1.0), and then the learning theorems say
nothing. `cmdp_slack` is the slack of the one CMDP at hand, which is what the theorems really need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import add_future, backward_induction
from cmpg.cmdp.exact import greatest_slack
from cmpg.cmdp.highs import LinearModel, propose
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.errors import SolverError
from cmpg.games.joint.game import JointGame

SADDLE = 1e-12
"""A stage game has a saddle point if its two pure values differ by no more than this, relative to its size."""


@dataclass(frozen=True, eq=False)
class SlaterConstant:
    """The slack that every agent can keep whatever the others do."""

    value: float
    per_agent: FloatArray  # [n]
    exact: bool  # False: a lower bound


def slater_constant(game: JointGame) -> SlaterConstant:
    """Return ζ of Definition 1, or a lower bound on it; infinite where there is no constraint.

    Examples
    --------
    >>> game = JointGame(transition=np.ones((1, 1, 2, 2, 1)), rewards=np.zeros((2, 1, 1, 2, 2)),
    ...                  costs=[[[[[0, 0], [0, 1]]]]], thresholds=[0.5], initial=[1.0], horizon=1)
    >>> slater_constant(game).value
    0.5
    """
    if game.horizon is None:
        raise SolverError("the Slater constant is computed for a finite horizon; this game is discounted.")
    if game.num_constraints == 0:
        return SlaterConstant(np.inf, np.full(game.num_agents, np.inf), exact=True)
    slacks = np.array([_guaranteed_slack(game, agent) for agent in range(game.num_agents)])
    exact = game.num_agents <= 2 and game.num_constraints == 1
    return SlaterConstant(float(slacks.min()), slacks, exact)


def cmdp_slack(cmdp: CMDP) -> float:
    """Return max_π min_j (α_j − V^{c_j}(π)) of one CMDP; infinite where there is no constraint.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> cmdp_slack(game.at(game.uniform_policy()).induced_cmdp(0))
    0.5
    """
    if cmdp.num_constraints == 0:
        return np.inf
    if cmdp.num_constraints == 1:
        cheapest = plan(cmdp, np.ones(1), reward_weight=0.0)
        return float(cmdp.thresholds[0] - cheapest.costs[0])
    return greatest_slack(cmdp).slack


def _guaranteed_slack(game: JointGame, agent: int) -> float:
    shape = (game.num_states, *game.num_actions)
    shares = (game.thresholds / game.num_steps).reshape(-1, *(1 for _ in shape))
    steps = reversed(range(game.num_steps))
    tables = ((h, game.costs[:, 0 if game.costs.shape[1] == 1 else h]) for h in steps)
    stages = ((h, (costs - shares).max(axis=0).reshape(1, -1)) for h, costs in tables)

    def stage_values(_: int, worth: FloatArray) -> FloatArray:
        mine_first = np.moveaxis(worth.reshape(shape), 1 + agent, 1)
        return game_values(mine_first.reshape(game.num_states, game.num_actions[agent], -1))[None]

    first = backward_induction(stages, partial(add_future, game.joint_cmdp()), stage_values)
    return -float(game.initial @ first[0])


def game_values(payoffs: FloatArray) -> FloatArray:
    """Return min over mixtures of rows, max over columns, of each matrix of a stack: [m, rows, columns] gives [m].

    Saddle points are read off; the others are linear programs, whose mixture is then judged: the value returned is what
    the row player's mixture really guarantees.
    """
    worst = payoffs.max(axis=2).min(axis=1)
    best = payoffs.min(axis=1).max(axis=1)
    size = SADDLE * np.maximum(np.abs(payoffs).max(axis=(1, 2)), 1e-300)
    values = np.array(worst)
    for index in np.flatnonzero(worst - best > size):
        matrix = np.unique(payoffs[index], axis=1)
        mixture = _minimax_mixture(matrix)
        values[index] = min(values[index], float((mixture @ matrix).max()))
    return values


def _minimax_mixture(matrix: FloatArray) -> FloatArray:
    """Return the mixture x of rows that minimises v = max_b (x @ matrix)_b, by linear programming."""
    rows, columns = matrix.shape
    # Column b says (x @ matrix)_b − v ≤ 0; the last row says that x is a mixture. v is the free variable.
    table = np.zeros((columns + 1, rows + 1))
    table[:columns, :rows] = matrix.T / np.abs(matrix).max()
    table[:columns, rows] = -1.0
    table[columns, :rows] = 1.0
    found = propose(
        LinearModel(
            objective=np.append(np.zeros(rows), -1.0),
            matrix=sp.csc_array(table),
            lower=np.append(np.full(columns, -np.inf), 1.0),
            upper=np.append(np.zeros(columns), 1.0),
            num_free=1,
        )
    )
    mixture = np.maximum(found.values[:rows], 0.0)
    return np.asarray(mixture / mixture.sum())
