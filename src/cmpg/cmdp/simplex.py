"""A primal simplex method for programs of very few rows, exact to rounding.

Column generation solves a program of k + 1 rows again and again, and where thresholds leave no slack it must tell a
column that helps by 1e-13 from one that does not. HiGHS stops at tolerances of 1e-10, and takes a millisecond to
start. Here every iteration solves the square system of the basis anew, so that no error is carried along: with a
handful of rows that costs microseconds.

Guarantee: the objective never falls, and what is returned is a vertex, up to rounding. Ties in the ratio test go to
the largest pivot; after a run of steps of length zero, to the first index (Bland's rule), which cannot cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmpg.checks import FloatArray, IntArray, SolverError

MAX_PIVOTS = 300
PATIENCE = 20
"""Steps of length zero in a row after which Bland's rule takes over."""

NO_STEP = 1e-14
"""A step that is not longer has length zero."""


@dataclass(frozen=True, eq=False)
class Corner:
    """A vertex of A·x = b, x ≥ 0: its basis, the values of all variables, and the duals of the rows."""

    basis: IntArray  # [rows]
    values: FloatArray  # [columns]
    duals: FloatArray  # [rows]


@dataclass(frozen=True, eq=False)
class SmallProgram:
    """Maximise objective·x subject to matrix·x = right and x ≥ 0, but for the free variables."""

    objective: FloatArray  # [columns]
    matrix: FloatArray  # [rows, columns]
    right: FloatArray  # [rows]
    free: npt.NDArray[np.bool_]  # [columns]


def best_corner(program: SmallProgram, basis: IntArray) -> Corner:
    """Return an optimal vertex, starting from the basis of a feasible one whose free variables are all basic.

    Examples
    --------
    >>> program = SmallProgram(objective=np.array([3.0, 2.0, 0.0]), matrix=np.array([[2.0, 1.0, 1.0]]),
    ...                        right=np.array([4.0]), free=np.zeros(3, dtype=bool))
    >>> best_corner(program, np.array([2])).values
    array([0., 4., 0.])
    """
    basis = basis.copy()
    idle = 0
    for _ in range(MAX_PIVOTS):
        square = program.matrix[:, basis]
        values = _solved(square, program.right)
        duals = _solved(square.T, program.objective[basis])
        entering = _entering(program, basis, duals, careful=idle > PATIENCE)
        if entering is None:
            return _corner(program, basis, values, duals)
        direction = _solved(square, program.matrix[:, entering])
        ratios = _ratios(values, direction, program.free[basis])
        first = np.flatnonzero(ratios <= ratios.min() + NO_STEP)
        leaving = first[np.argmin(basis[first]) if idle > PATIENCE else np.argmax(direction[first])]
        idle = idle + 1 if ratios.min() <= NO_STEP else 0
        basis[leaving] = entering
    raise SolverError(f"a linear program of {len(basis)} rows was not solved by {MAX_PIVOTS} pivots.")


def _corner(program: SmallProgram, basis: IntArray, values: FloatArray, duals: FloatArray) -> Corner:
    full = np.zeros(len(program.objective))
    full[basis] = values
    return Corner(basis, full, duals)


def _solved(square: FloatArray, right: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(square, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise SolverError(
            "the basis of a small linear program became singular. Rescale the costs, or use LinearProgram()."
        ) from None


def _entering(program: SmallProgram, basis: IntArray, duals: FloatArray, *, careful: bool) -> int | None:
    """Return a variable that raises the objective by more than rounding: the steepest, or the first."""
    gains = program.objective - duals @ program.matrix
    gains[basis] = 0.0
    noise = np.abs(program.objective).max() + np.abs(duals) @ np.abs(program.matrix)
    worth = gains > 8 * len(duals) * np.finfo(np.float64).eps * noise
    if not worth.any():
        return None
    return int(np.argmax(worth) if careful else np.argmax(np.where(worth, gains, -np.inf)))


def _ratios(values: FloatArray, direction: FloatArray, stays: npt.NDArray[np.bool_]) -> FloatArray:
    """Return how long a step each basic variable allows before it is negative."""
    falls = (direction > 1e-10 * np.abs(direction).max()) & ~stays
    if not falls.any():
        raise SolverError("a small linear program is unbounded: its columns are not plans of one CMDP.")
    ratios = np.full(len(values), np.inf)
    ratios[falls] = np.maximum(values[falls], 0.0) / direction[falls]
    return ratios
