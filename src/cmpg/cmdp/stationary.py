"""Discounted sums of a stationary policy: the linear systems v = l_π + γ P_π v and d = μ + γ P_πᵀ d.

Floats are solved by LU factors (dense or sparse) and one step of refinement, and the residual is then compared with
what `CMDP.rounding` promises: with ‖v − l_π − γ P_π v‖ ≤ ρ, no entry of v is further than ρ/(1 − γ) from the truth.
Fractions are solved by elimination, exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.checks import FloatArray, SolverError


def resolvent(matrix: Any, rows: FloatArray, discount: float | Fraction) -> Any:
    """Return I − γ P_π for a transition [S·A, S] and a stationary policy [S, A], dense or CSR as the transition is."""
    states, actions = rows.shape
    if sp.issparse(matrix):
        indptr = np.arange(0, states * actions + 1, actions)
        mixing = sp.csr_array((rows.ravel(), np.arange(states * actions), indptr), shape=(states, states * actions))
        return sp.eye_array(states, format="csr") - discount * (mixing @ matrix)
    flow = np.matmul(rows[:, None, :], matrix.reshape(states, actions, states))[:, 0, :]
    return np.eye(states, dtype=np.int64) - discount * flow


def solved(system: Any, right: FloatArray, *, tolerance: float) -> FloatArray:
    """Return x with system·x = right.

    Parameters
    ----------
    system : [S, S]
        Dense or CSR; of Fractions, dense.
    right : [S] or [S, m]
        One or several right-hand sides.
    tolerance
        The largest residual, relative to the largest |x| of its column, that is not an error.
    """
    if not sp.issparse(system) and system.dtype == object:
        return _eliminated(system, right)
    solve = _sparse_solver(system) if sp.issparse(system) else _dense_solver(system)
    found = solve(right)
    found = found + solve(right - system @ found)
    residual = np.abs(right - system @ found).max(axis=0)
    if np.any(residual > tolerance * np.abs(found).max(axis=0)):
        raise SolverError(
            f"a discounted value could not be computed to within rounding (residual {float(np.max(residual)):.3g}). "
            "Use a smaller discount, or a finite horizon."
        )
    return np.asarray(found)


def _sparse_solver(system: Any) -> Any:
    from scipy.sparse.linalg import splu

    return splu(system.tocsc()).solve


def _dense_solver(system: FloatArray) -> Any:
    from scipy.linalg import lu_factor, lu_solve

    factors = lu_factor(system, check_finite=False)
    return lambda right: lu_solve(factors, right, check_finite=False)


def _eliminated(system: FloatArray, right: FloatArray) -> FloatArray:
    """Gauss-Jordan elimination; I − γP is diagonally dominant, so no pivot is zero."""
    columns = right.reshape(len(right), -1)
    table = np.concatenate([system, columns], axis=1)
    for pivot in range(len(table)):
        table[pivot] = table[pivot] / table[pivot, pivot]
        for other in range(len(table)):
            if other != pivot and table[other, pivot] != 0:
                table[other] = table[other] - table[other, pivot] * table[pivot]
    return table[:, len(table) :].reshape(right.shape)
