"""cvxpy: the best response as the textbook's linear program over occupancies, solved by an interior-point method."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import cmpg

NAME = "cvxpy"


def best_value(cmdp: cmpg.CMDP) -> float:
    """The value of the best policy that meets the constraints."""
    steps, pairs = cmdp.num_steps, cmdp.num_states * cmdp.num_actions
    occupancy = [cp.Variable(pairs, nonneg=True) for _ in range(steps)]
    leaves = sp.kron(sp.eye_array(cmdp.num_states), np.ones((1, cmdp.num_actions))).tocsr()  # Σ_a ρ(s, a)
    matrices = [sp.csr_array(cmdp.matrices[min(h, len(cmdp.matrices) - 1)]) for h in range(steps)]
    if cmdp.discount is None:
        arrives = [cmdp.initial, *(matrices[h].T @ occupancy[h] for h in range(steps - 1))]
    else:
        arrives = [cmdp.initial + cmdp.discount * (matrices[0].T @ occupancy[0])]
    flow = [leaves @ own == came for own, came in zip(occupancy, arrives, strict=True)]

    def total(table: np.ndarray) -> cp.Expression:
        return sum(table[min(h, len(table) - 1)].ravel() @ occupancy[h] for h in range(steps))

    limits = [total(costs) <= limit for costs, limit in zip(cmdp.costs, cmdp.thresholds, strict=True)]
    problem = cp.Problem(cp.Maximize(total(cmdp.reward)), [*flow, *limits])
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    problem.solve(solver=cp.CLARABEL, **tight)
    return float(problem.value)
