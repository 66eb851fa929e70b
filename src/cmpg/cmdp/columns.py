"""The master program of Dantzig-Wolfe decomposition: which mixture of known plans is best?

It has one column per plan and k + 1 rows, in weights w, a common slack t and the constraints' own slacks s:

    Σ_p w_p (costs_p − thresholds) + t·units + s = 0,   Σ_p w_p = 1,   w, s ≥ 0.

With t free and as the objective it finds the greatest common slack; with t ≥ 0 and the plans' values as the objective,
the best value. A vertex of the first with t ≥ 0 is a vertex of the second, so neither needs a start of its own, and
both go on from their last vertex when a column arrives. Rows and values are scaled to order one.

The program is solved again for every new column, and if thresholds leave no slack it must tell a column that helps
by 1e-13 from one that does not. HiGHS stops at tolerances of 1e-10 and takes a millisecond to start. So `best_corner`
is a primal simplex method for very few rows: every iteration solves the square system of the basis again, and no error
is carried along. Guarantee: the objective never falls, and what is returned is a vertex, up to rounding. Ties in the
ratio test go to the largest pivot; after a run of steps of length zero, to the first index (Bland's rule), which cannot
cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.highs import LinearModel, propose
from cmpg.cmdp.kernels.choice import compiled
from cmpg.errors import SolverError

IMPROVEMENT = 1e-11
"""A column enters only if it improves by more than this, relative to the scale of the values."""

MAX_PIVOTS = 300
"""A program of a few rows takes a few pivots; after this many, the simplex method gives up and HiGHS takes over."""

PATIENCE = 20
"""Steps of length zero in a row after which Bland's rule takes over."""

NO_STEP = 1e-14
"""A step that is not longer has length zero."""


FIRST_ROOM = 16
"""A master has room for this many plans at first; the room doubles when it is full."""

LEAST_UNIT = 1e-290
"""Nothing is divided by a smaller number, whose inverse could be beyond all floats; what is smaller counts as zero."""


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
    """Weights on plans: Σ w = 1, Σ w·costs ≤ thresholds, and the greatest value or the greatest common slack."""

    def __init__(
        self, plans: Iterable[ColumnT], thresholds: FloatArray, *, units: FloatArray, margins: FloatArray
    ) -> None:
        self.plans: list[ColumnT] = []
        self.thresholds = thresholds
        self.units = units
        self.margins = margins
        self._weights = np.zeros(0)  # of the plans when the master was last solved
        self._value = -np.inf  # of that mixture, if it was solved for the value
        self._room = np.empty((FIRST_ROOM, 1 + len(thresholds)))  # the value of each plan, and what it spends too much
        self._largest, self._ends = np.zeros(1 + len(thresholds)), (np.inf, -np.inf)
        self._scaling: tuple[FloatArray, FloatArray] | None = None  # until a plan is larger than all others
        self._basis: IntArray | None = None  # slacks are numbered from the end: t is −1 − k, s_j is j − k
        for each in plans:
            self.add(each)

    def add(self, new: ColumnT) -> bool:
        """Add a plan as a column, unless it is one already; return whether it was added."""
        if self.knows(new):
            return False
        if len(self.plans) == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        row = self._room[len(self.plans)]
        row[0], row[1:] = new.value, new.costs - self.thresholds
        self.plans.append(new)
        sizes = np.abs(row)
        if not self._ends[0] <= new.value <= self._ends[1] or (sizes > self._largest).any():
            self._ends = min(self._ends[0], new.value), max(self._ends[1], new.value)
            self._largest = np.maximum(self._largest, sizes)
            self._scaling = None
        return True

    @property
    def weights(self) -> FloatArray:
        """The weights of the plans; those that came after the last solution have none."""
        return np.append(self._weights, np.zeros(len(self.plans) - len(self._weights)))

    @property
    def _values(self) -> FloatArray:
        """The values of the plans."""
        return self._room[: len(self.plans), 0]

    @property
    def _excess(self) -> FloatArray:
        """What each plan spends beyond the thresholds: [plans, k]."""
        return self._room[: len(self.plans), 1:]

    @property
    def _largest_value(self) -> float:
        """How large values are, by which rounding is measured."""
        return float(self._largest[0])

    @property
    def _largest_excess(self) -> FloatArray:
        """How large excesses are, by which rounding is measured: [k]."""
        return self._largest[1:]

    def knows(self, column: ColumnT) -> bool:
        """Whether only rounding holds a plan's value and costs apart from those of a column.

        Two such columns in one basis would make its system all but singular.
        """
        if not self.plans:
            return False
        # 1e-14: some fifty roundings of the largest value, as a plan's sum over steps and states may have.
        same = np.abs(self._values - column.value) <= 1e-14 * self._largest_value
        if not same.any():
            return False
        near = np.abs(self._excess[same] - (column.costs - self.thresholds)) <= self.margins
        return bool(near.all(axis=1).any())

    def reaches(self, bound: float, multipliers: FloatArray) -> bool:
        """Whether the value is as good as a bound, such as the Lagrangian of a plan that is optimal for r − λ·c."""
        scale = float(self._largest_value + multipliers @ self._largest_excess)
        return bound <= self._value + IMPROVEMENT * scale

    def improves(self, column: ColumnT, multipliers: FloatArray) -> bool:
        """Whether a plan's V^r − λ·(V^c − thresholds) at the master's multipliers is above the master's value."""
        return not self.reaches(float(column.value - multipliers @ (column.costs - self.thresholds)), multipliers)

    def maximise_slack(self) -> tuple[FloatArray, float]:
        """Solve for the greatest t with Σ w·costs + t·units ≤ thresholds; return λ with λ·units = 1, and t."""
        before = self._weights
        duals, scale = self._solve(slack_counts=True)
        if before.any() and self._slack_of(before) > self._slack_of(self._weights):
            self._weights = before  # columns that are nearly parallel: the new vertex is off by more than it gains
        # Rows were divided by `scale`, so their duals are multiplied by it; rounding may leave one just below zero.
        duals = np.maximum(duals[:-1], 0.0) / scale
        return duals / (duals @ self.units), self._slack_of(self._weights)

    def _slack_of(self, weights: FloatArray) -> float:
        return float((-(weights @ self._room[: len(weights), 1:]) / self.units).min())

    def maximise_value(self) -> FloatArray:
        """Solve for the greatest value, from a mixture that meets the thresholds; return the multipliers."""
        if self._basis is None:
            self.maximise_slack()
        duals, scale = self._solve(slack_counts=False)
        self._value = float(self._weights @ self._values)
        return np.maximum(duals[:-1], 0.0) * self._spread / scale

    def move_thresholds(self, thresholds: FloatArray) -> None:
        """Change the thresholds; the next solution starts afresh."""
        self._room[: len(self.plans), 1:] = np.array([each.costs for each in self.plans]) - thresholds
        self.thresholds = thresholds
        self._basis = self._scaling = None
        self._largest = np.abs(self._room[: len(self.plans)]).max(axis=0)

    @property
    def _spread(self) -> float:
        """By how much values differ."""
        return (self._ends[1] - self._ends[0]) or 1.0

    def _solve(self, *, slack_counts: bool) -> tuple[FloatArray, FloatArray]:
        """Maximise the value, or t; keep the weights, and return the duals and what each row was divided by."""
        start = self._start() if slack_counts else self._basis
        if self._scaling is None:
            self._scaling = self._scaled()
        scale, settings = self._scaling
        settings[3] = slack_counts
        self._basis = None
        found = None
        if start is not None:
            try:
                found = self._from_corner(start, scale, settings)
            except SolverError:  # the small simplex method is at a loss
                found = None
        if found is None:  # HiGHS starts from nothing
            corner = _by_highs(self._program(scale, settings))
            found = corner.values[: len(self.plans)], corner.duals
        # A basic variable of zero may be ±1e-16. A plan of such a weight would break a threshold of zero.
        weights = np.where(found[0] > NO_STEP, found[0], 0.0)
        total = weights.sum()
        if not 0 < total < np.inf:
            raise SolverError("costs and thresholds differ by more powers of ten than floats can weigh. Rescale them.")
        self._weights = weights / total
        return found[1], scale

    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        """Return what each row is divided by, and the settings of a program: unit, centre, spread, slack counts."""
        unit = min(float((self._largest_excess / self.units).max()), 1 / LEAST_UNIT)
        unit = unit if unit > LEAST_UNIT else 1.0
        # Rows of almost no excess are not blown up: the common slack would have a huge coefficient there.
        scale = np.maximum(np.maximum(self._largest_excess, 1e-4 * unit * self.units), LEAST_UNIT)
        # Σ w = 1, so a constant changes nothing; without it, a simplex multiplier is of the order of the differences.
        centre = self._ends[0] / 2 + self._ends[1] / 2
        return scale, np.array([unit, centre, self._spread, 0.0])

    def _from_corner(self, start: IntArray, scale: FloatArray, settings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Go on from a vertex; return the weights and the duals."""
        plans = len(self.plans)
        if (kernels := compiled()) is not None:
            basis, weights, duals = start.astype(np.int64), np.empty(plans), np.empty(len(start))
            tables = (self._room[:plans], self.units, scale, settings)
            ending = kernels.master(*tables, MAX_PIVOTS, PATIENCE, NO_STEP, basis, weights, duals)
            if ending:
                raise SolverError((OUT_OF_PIVOTS, SINGULAR, UNBOUNDED)[ending - 1])
            self._basis = basis
            return weights, duals
        program = self._program(scale, settings)
        columns = len(program.objective)
        corner = best_corner(program, start % columns)
        self._basis = np.where(corner.basis < plans, corner.basis, corner.basis - columns)
        return corner.values[:plans], corner.duals

    def _program(self, scale: FloatArray, settings: FloatArray) -> SmallProgram:
        """Return the program, given what its rows are divided by and how values and the common slack are scaled."""
        unit, centre, spread, slack_counts = settings
        plans, constraints = self._excess.shape
        table = np.zeros((constraints + 1, plans + 1 + constraints))
        table[:-1, :plans] = (self._excess / scale).T
        table[:-1, plans] = unit * self.units / scale
        table[:-1, plans + 1 :] = np.eye(constraints)
        table[-1, :plans] = 1.0
        objective, right = np.zeros(table.shape[1]), np.zeros(constraints + 1)
        objective[:plans] = 0.0 if slack_counts else (self._values - centre) / spread
        objective[plans], right[-1] = slack_counts, 1.0
        free = np.zeros(len(objective), dtype=np.bool_)
        free[plans] = slack_counts
        return SmallProgram(objective, table, right, free)

    def _start(self) -> IntArray:
        """Return the last basis; at first, that of the one plan with the greatest slack."""
        if self._basis is not None:
            return self._basis
        slacks = -self._excess / self.units
        best = int(slacks.min(axis=1).argmax())
        tightest = int(slacks[best].argmin())
        constraints = slacks.shape[1]
        own = [j - constraints for j in range(constraints) if j != tightest]
        return np.array([best, -1 - constraints, *own])


def _by_highs(program: SmallProgram) -> Corner:
    """Return the vertex that HiGHS finds; good to 1e-10, and without a basis to go on from."""
    order = np.argsort(program.free, kind="stable")  # free variables come last
    matrix = sp.csc_array(program.matrix[:, order])
    proposal = propose(
        LinearModel(program.objective[order], matrix, program.right, program.right, num_free=int(program.free.sum()))
    )
    if not proposal.feasible:
        raise SolverError("no mixture of plans meets thresholds that one of them meets. Rescale the costs.")
    return Corner(np.zeros(0, dtype=np.int64), proposal.values[np.argsort(order)], proposal.duals)


# --- A primal simplex method for very few rows ------------------------------------------------------------------------

OUT_OF_PIVOTS = "a small linear program was not solved within the largest number of pivots."
SINGULAR = "the basis of a small linear program became singular. Rescale the costs, or use LinearProgram()."
UNBOUNDED = "a small linear program is unbounded: its columns are not plans of one CMDP."


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
    basis = basis.astype(np.int64)  # a copy
    idle = 0
    for _ in range(MAX_PIVOTS):
        # Updating a factorisation would be cheaper for many rows; here a fresh solve costs microseconds, and no error
        # outlives its iteration.
        square = program.matrix[:, basis]
        values = _solved(square, program.right)
        duals = _solved(square.T, program.objective[basis])
        entering = _entering(program, basis, duals, careful=idle > PATIENCE)
        if entering is None:
            return _corner(program, basis, values, duals)
        direction = _solved(square, program.matrix[:, entering])
        ratios = _ratios(values, direction, program.free[basis])
        # Among the rows that allow no longer step, the largest pivot; where steps are idle, Bland's rule ends a cycle.
        first = np.flatnonzero(ratios <= ratios.min() + NO_STEP)
        leaving = first[np.argmin(basis[first]) if idle > PATIENCE else np.argmax(direction[first])]
        idle = idle + 1 if ratios.min() <= NO_STEP else 0
        basis[leaving] = entering
    raise SolverError(OUT_OF_PIVOTS)


def _corner(program: SmallProgram, basis: IntArray, values: FloatArray, duals: FloatArray) -> Corner:
    full = np.zeros(len(program.objective))
    full[basis] = values
    return Corner(basis, full, duals)


def _solved(square: FloatArray, right: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(square, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise SolverError(SINGULAR) from None


def _entering(program: SmallProgram, basis: IntArray, duals: FloatArray, *, careful: bool) -> int | None:
    """Return a variable that raises the objective by more than rounding: the steepest, or the first."""
    gains = program.objective - duals @ program.matrix
    gains[basis] = 0.0  # they are zero but for rounding
    # A gain is a difference of products: what is left of them by cancellation is no reason to enter.
    noise = np.abs(program.objective).max() + np.abs(duals) @ np.abs(program.matrix)
    worth = gains > 8 * len(duals) * np.finfo(np.float64).eps * noise
    if not worth.any():
        return None
    return int(np.argmax(worth) if careful else np.argmax(np.where(worth, gains, -np.inf)))


def _ratios(values: FloatArray, direction: FloatArray, stays: npt.NDArray[np.bool_]) -> FloatArray:
    """Return how long a step each basic variable allows before it is negative."""
    # A pivot that small would make the next basis singular; a free variable may become negative.
    falls = (direction > 1e-10 * np.abs(direction).max()) & ~stays
    if not falls.any():
        raise SolverError(UNBOUNDED)
    ratios = np.full(len(values), np.inf)
    ratios[falls] = np.maximum(values[falls], 0.0) / direction[falls]
    return ratios
