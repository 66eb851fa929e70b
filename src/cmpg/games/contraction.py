"""Averages of tables over what the other agents play: the sums over a_{−i} of Eqs. 7-9, one agent's axis at a time."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cmpg.checks import FloatArray
from cmpg.policy import JointPolicy


def average_over(table: FloatArray, policy: JointPolicy, *, keep: int) -> FloatArray:
    """Average a table [H or 1, S, A_1, …, A_n, …] over every agent's action but one's; return [H, S, A_keep, …].

    Works on floats and on Fractions.
    """
    agents = len(policy)
    # The agents before `keep` go first, from the front, so that every product runs over contiguous memory.
    for agent in range(keep):
        table = _average_axis(table, policy[agent], 2)
    for agent in reversed(range(keep + 1, agents)):
        table = _average_axis(table, policy[agent], 3 + agent - keep - 1)
    return table if agents > 1 else np.ascontiguousarray(table)


def _average_axis(table: FloatArray, rows: FloatArray, axis: int) -> FloatArray:
    """Return Σ_a rows[h, s, a] · table[h, s, …, a, …], the sum over one axis."""
    before, after = table.shape[2:axis], table.shape[axis + 1 :]
    size_before, size_after = int(np.prod(before)), int(np.prod(after))
    actions = table.shape[axis]
    if size_after == 1:
        flat = table.reshape(*table.shape[:2], size_before, actions)
        mean = np.matmul(flat, rows[..., None])[..., 0]
    else:
        flat = table.reshape(*table.shape[:2], size_before, actions, size_after)
        mean = np.matmul(rows[:, :, None, None, :], flat)[..., 0, :]
    return mean.reshape(*mean.shape[:2], *before, *after)


def average_rows(
    matrices: tuple[sp.csr_array, ...], policy: JointPolicy, *, keep: int
) -> tuple[sp.csr_array, ...]:
    """The same average for a sparse transition: matrices [S·ΠA, S] become [S·A_keep, S], one per step."""
    steps, states, _ = policy.shapes[0]
    actions = tuple(shape[2] for shape in policy.shapes)
    own_row = np.broadcast_to(
        np.arange(states * actions[keep]).reshape(states, *(a if i == keep else 1 for i, a in enumerate(actions))),
        (states, *actions),
    ).ravel()
    averaged = []
    for step in range(steps):
        matrix = matrices[0 if len(matrices) == 1 else step]
        weights = np.ones((states, *actions))
        for agent, table in enumerate(policy):
            if agent != keep:
                spread = [states] + [a if i == agent else 1 for i, a in enumerate(actions)]
                weights *= table[step].reshape(spread)
        sums = sp.csr_array(
            (weights.ravel(), (own_row, np.arange(len(own_row)))), shape=(states * actions[keep], len(own_row))
        )
        averaged.append(sp.csr_array(sums @ matrix))
    return tuple(averaged)
