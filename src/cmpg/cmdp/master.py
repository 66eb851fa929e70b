"""The master program of Dantzig-Wolfe decomposition: which mixture of known plans is best?

A small linear program with one column per plan and one row per constraint, solved by HiGHS and warm-started as columns arrive.
Values and costs are scaled to order one first, and the tolerances are 1e-10: at HiGHS's default of 1e-7 the column
generation stalls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cmpg.checks import FloatArray, SolverError
from cmpg.cmdp.planning import Plan

IMPROVEMENT = 1e-11
"""A column enters only if it improves by more than this, relative to the scale of the values."""


class MasterProgram:
    """Weights on plans: Σ w = 1, Σ w·costs ≤ limits, and the greatest value or the greatest common slack."""

    def __init__(self, plans: Iterable[Plan], limits: FloatArray) -> None:
        self.plans: list[Plan] = []
        self.limits = limits
        self.weights = np.zeros(0)
        self._known: set[bytes] = set()
        self._rows: list[FloatArray] = []
        for each in plans:
            self.add(each)

    def add(self, new: Plan) -> None:
        """Add a plan as a column, unless it is one already."""
        key = new.actions.tobytes()
        if key not in self._known:
            self._known.add(key)
            self.plans.append(new)

    @property
    def _costs(self) -> FloatArray:
        return np.array([each.costs for each in self.plans])

    @property
    def _values(self) -> FloatArray:
        return np.array([each.value for each in self.plans])

    @property
    def _cost_scale(self) -> FloatArray:
        return np.maximum(np.abs(self._costs).max(axis=0), np.abs(self.limits)) + 1e-300

    @property
    def slack_tolerance(self) -> float:
        """How much a slack must grow to count."""
        return IMPROVEMENT * float(self._cost_scale.max())

    def improves(self, column: Plan, multipliers: FloatArray, price: float) -> bool:
        """Whether a new plan would raise the master's value: its reduced value exceeds the price of a unit of weight."""
        scale = float(np.abs(self._values).max() + multipliers @ self._cost_scale) or 1.0
        reduced = column.value - multipliers @ column.costs
        return bool(reduced > price + IMPROVEMENT * scale) and column.actions.tobytes() not in self._known

    def maximise_value(self) -> tuple[FloatArray, float]:
        """Solve for the greatest value; return the multipliers and the price of the row Σ w = 1."""
        values, scale = self._values, self._cost_scale
        centre, spread = float(values.mean()), float(np.ptp(values)) or 1.0
        solution = _solve((values - centre) / spread, (self._costs / scale).T, self.limits / scale, slack_row=False)
        self.weights = solution.weights
        multipliers = np.maximum(solution.duals[:-1], 0.0) * spread / scale
        return multipliers, solution.duals[-1] * spread + centre

    def maximise_slack(self) -> tuple[FloatArray, float]:
        """Solve for the greatest common slack; return the weights of the constraints and the slack."""
        scale = float(self._cost_scale.max())
        solution = _solve(np.zeros(len(self.plans)), self._costs.T / scale, self.limits / scale, slack_row=True)
        self.weights = solution.weights
        prices = np.maximum(solution.duals[:-1], 0.0)
        return prices / prices.sum(), float((self.limits - solution.weights @ self._costs).min())


class _Solution:
    def __init__(self, weights: FloatArray, duals: FloatArray) -> None:
        self.weights = weights
        self.duals = duals


def _solve(values: FloatArray, costs: FloatArray, limits: FloatArray, *, slack_row: bool) -> _Solution:
    """Maximise values·w (or a slack t with costs·w + t ≤ limits) over the simplex."""
    import highspy  # heavy: imported where it is used

    columns = len(values)
    rows = len(limits)
    matrix = np.zeros((rows + 1, columns + slack_row))
    matrix[:rows, :columns] = costs
    matrix[rows, :columns] = 1.0
    objective = np.zeros(columns + slack_row)
    objective[:columns] = values
    lower = np.zeros(columns + slack_row)
    if slack_row:
        matrix[:rows, columns] = 1.0
        objective[columns] = 1.0
        lower[columns] = -highspy.kHighsInf
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns + slack_row, rows + 1
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_, model.col_lower_ = objective, lower
    model.col_upper_ = np.full(columns + slack_row, highspy.kHighsInf)
    model.row_lower_ = np.append(np.full(rows, -highspy.kHighsInf), 1.0)
    model.row_upper_ = np.append(limits, 1.0)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.arange(rows + 2) * (columns + slack_row)
    model.a_matrix_.index_ = np.tile(np.arange(columns + slack_row), rows + 1)
    model.a_matrix_.value_ = matrix.ravel()
    solver: Any = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
    solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise SolverError(f"the master program ended with {solver.modelStatusToString(solver.getModelStatus())}.")
    solution = solver.getSolution()
    weights = np.maximum(np.asarray(solution.col_value)[:columns], 0.0)
    return _Solution(weights / weights.sum(), np.asarray(solution.row_dual))
