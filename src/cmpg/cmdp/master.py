"""The master program of Dantzig-Wolfe decomposition: which mixture of known plans is best?

A small linear program with one column per plan and one row per constraint, solved by HiGHS. Its rows are what a plan
spends beyond the limit, and rows and values are scaled to order one: then a tolerance means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from cmpg.checks import FloatArray, SolverError
from cmpg.cmdp.highs import LinearModel, Proposal, propose

IMPROVEMENT = 1e-11
"""A column enters only if it improves by more than this, relative to the scale of the values."""


class Column(Protocol):
    """A plan, as the master sees it."""

    @property
    def value(self) -> float:
        """V^r."""

    @property
    def costs(self) -> FloatArray:
        """V^c: [k]."""


ColumnT = TypeVar("ColumnT", bound=Column)


class MasterProgram(Generic[ColumnT]):
    """Weights on plans: Σ w = 1, Σ w·costs ≤ limits, and the greatest value or the greatest common slack."""

    def __init__(self, plans: Iterable[ColumnT], limits: FloatArray, *, sizes: FloatArray) -> None:
        self.plans: list[ColumnT] = []
        self.limits = limits
        self.sizes = sizes  # the largest |c| of one step: [k]
        self.weights = np.zeros(0)
        self._known: set[bytes] = set()
        for each in plans:
            self.add(each)

    def add(self, new: ColumnT) -> None:
        """Add a plan as a column, unless it is one already."""
        if not self.knows(new):
            self._known.add(_key(new))
            self.plans.append(new)

    def knows(self, column: ColumnT) -> bool:
        """Whether a plan with this value and these costs is a column."""
        return _key(column) in self._known

    def improves(self, column: ColumnT, multipliers: FloatArray) -> bool:
        """Whether a plan for r − λ·c is new and proves that the master's value can still rise.

        Its Lagrangian V^r − λ·(V^c − limits) bounds the value of every mixture from above.
        """
        values, excess = self._values, self._excess
        scale = float(np.abs(values).max() + multipliers @ np.abs(excess).max(axis=0))
        bound = column.value - multipliers @ (column.costs - self.limits)
        return bool(bound > self.weights @ values + IMPROVEMENT * scale) and not self.knows(column)

    def maximise_value(self) -> FloatArray:
        """Solve for the greatest value; return the multipliers."""
        values, excess = self._values, self._excess
        scale = self._scale(excess)
        centre, spread = float(values.mean()), float(np.ptp(values)) or 1.0
        solution = self._solve((values - centre) / spread, excess / scale)
        return np.maximum(solution.duals[:-1], 0.0) * spread / scale

    def maximise_slack(self, units: FloatArray) -> tuple[FloatArray, float]:
        """Solve for the greatest t with Σ w·costs + t·units ≤ limits; return λ with λ·units = 1, and t."""
        scale = self._scale(self._excess)
        unit = float((scale / units).max())
        # A coefficient beyond 1e8 would be more than HiGHS can take; that row then counts for little.
        scale = np.maximum(scale, 1e-8 * unit * units)
        solution = self._solve(np.zeros(len(self.plans)), self._excess / scale, slack=unit * units / scale)
        prices = np.maximum(solution.duals[:-1], 0.0) / scale
        slack = float((-(self.weights @ self._excess) / units).min())
        return prices / (prices @ units), slack

    @property
    def _values(self) -> FloatArray:
        return np.array([each.value for each in self.plans])

    @property
    def _excess(self) -> FloatArray:
        """What each plan spends beyond the limits: [plans, k]."""
        return np.array([each.costs for each in self.plans]) - self.limits

    def _scale(self, excess: FloatArray) -> FloatArray:
        """Return what each row is divided by: its largest entry, unless that is all but nothing: [k]."""
        scale = np.maximum(np.abs(excess).max(axis=0), 1e-6 * self.sizes)
        return np.where(scale > 0, scale, 1.0)

    def _solve(self, values: FloatArray, excess: FloatArray, *, slack: FloatArray | None = None) -> Proposal:
        """Maximise values·w, or the slack variable where its column is given, and keep the weights."""
        plans, constraints = excess.shape
        table = np.ones((constraints + 1, plans))
        table[:-1] = 1e5 * excess.T
        if slack is not None:
            table = np.column_stack([table, np.append(1e5 * slack, 0.0)])
        proposal = propose(
            LinearModel(
                objective=1e5 * (values if slack is None else np.append(values, 1.0)),
                matrix=sp.csc_array(table),
                lower=np.append(np.full(constraints, -np.inf), 1.0),
                upper=np.append(np.zeros(constraints), 1.0),
                num_free=0 if slack is None else 1,
            )
        )
        if not proposal.feasible:
            raise SolverError(
                "HiGHS claims that a mixture of plans which meets the limits does not. Rescale the costs."
            )
        weights = np.maximum(proposal.values[:plans], 0.0)
        self.weights = weights / weights.sum()
        return proposal


def _key(column: Column) -> bytes:
    """Two plans of the same value and the same costs are one column."""
    return np.append(column.costs, column.value).tobytes()
