"""Exact policy gradients in direct parametrisation, and steps along them that stay on the simplices.

In agent i's induced CMDP, ∂V^l/∂π_h(a|s) = P(s_h = s)·Q^l_h(s, a) for l = r, c_1, …, c_k; discounted, the probability
is the expected number of visits. The derivative along a change of policy is the inner product of the gradient with
the change. A step is followed by the Euclidean projection of every row to the simplex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import action_values, occupancy
from cmpg.cmdp.model import CMDP
from cmpg.games.contract import Game, Position
from cmpg.policy import JointPolicy


def policy_gradients(cmdp: CMDP, policy: FloatArray) -> FloatArray:
    """Return the gradients of V^r and of each V^{c_j} with respect to the policy: [1 + k, H, S, A].

    Parameters
    ----------
    cmdp
        The process.
    policy : [H, S, A]
        Where to differentiate.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 3.0]]]],
    ...             thresholds=[1.0], initial=[1.0], horizon=1)
    >>> policy_gradients(cmdp, np.array([[[0.5, 0.5]]]))[:, 0, 0]
    array([[0., 1.],
           [0., 3.]])
    """
    visits = occupancy(cmdp, policy).sum(axis=-1)  # [H, S]
    return np.moveaxis(visits[:, None, :, None] * action_values(cmdp, policy), 1, 0)


def project_rows(table: FloatArray) -> FloatArray:
    """Return the nearest table whose rows, along the last axis, are probability distributions.

    Examples
    --------
    >>> project_rows(np.array([[0.75, 0.75], [2.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    descending = -np.sort(-table, axis=-1)
    excess = np.cumsum(descending, axis=-1) - 1
    ranks = np.arange(1, table.shape[-1] + 1)
    support = (descending - excess / ranks > 0).sum(axis=-1, keepdims=True)
    level = np.take_along_axis(excess, support - 1, axis=-1) / support
    projected = np.maximum(table - level, 0.0)
    return np.asarray(projected / projected.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Anchor:
    """A policy that the agents are pulled back to, by the gradient of −weight/2·‖π − policy‖²."""

    policy: JointPolicy
    weight: float


def gradient_step(
    game: Game, position: Position, weights: FloatArray, *, step_size: float, anchor: Anchor | None = None
) -> Position:
    """Let all agents at once follow the gradient of Σ_l w_l V^l, each of its own reward and of the shared costs.

    Parameters
    ----------
    game
        Any game.
    position
        Where the agents stand.
    weights : [1 + k]
        The weight of the own reward, then of each cost.
    step_size
        What the gradient is multiplied by.
    anchor
        Where to be pulled to, if anywhere.
    """
    tables = []
    for agent, table in enumerate(position.policy):
        direction = np.tensordot(weights, policy_gradients(position.induced_cmdp(agent), table), axes=1)
        if anchor is not None:
            direction = direction + anchor.weight * (anchor.policy[agent] - table)
        tables.append(project_rows(table + step_size * direction))
    return game.at(JointPolicy(tuple(tables)))


def squared_distance(one: JointPolicy, other: JointPolicy) -> float:
    """Return ‖one − other‖², the sum over all entries."""
    return float(sum(((mine - theirs) ** 2).sum() for mine, theirs in zip(one, other, strict=True)))
