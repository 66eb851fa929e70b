"""Discounted sums of stationary policies: values, visits and optimal actions, by relative value iteration.

Values. v = l + γ P v has the solution v = w + c·1 for any w and c with l + γ P w − w = (1 − γ) c in all states, because
the rows of P sum to one. So w needs to be found up to a constant only: with r = l + γ P w − w,
    w ← w + r − mid(r),   c = mid(r)/(1 − γ),   mid(r) = (min r + max r)/2,
and v is within (max r − min r)/(2(1 − γ)) of w + c in every state (MacQueen's bounds). The half-width of r falls as the
chain forgets where it began, which may be far sooner than γ^t falls. And the numbers that are rounded have the size of
l and of the span of v, instead of l/(1 − γ): the error that rounding leaves grows as 1/(1 − γ), and not as its
square.

Visits. d = μ + γ Pᵀ d sums to 1/(1 − γ). From any start with that sum, d ← μ + γ Pᵀ d keeps it, and errors whose sum is
zero vanish at the same rate.

Chains that hardly forget, or that go in circles, need many sweeps; there LU factors of I − γP are taken. The two
complement each other: factors fill in where states are connected at random, which is where a chain forgets at once.

Optimal actions. Policy iteration whose values are found to within a share of what the next improvement can bring. For
any w, the maximum of V is at most w + max r/(1 − γ), r = max_a (l + γ P w) − w: what is proved does not depend on how w
was found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.kernels.choice import LARGEST_INDEX, compiled, narrow
from cmpg.deadline import check_time
from cmpg.errors import SolverError
from cmpg.runs.threads import one_thread

SWEEPS_BETWEEN_CHECKS = 8
"""The half-width of the residual is compared with that of this many sweeps ago."""

MAX_SWEEPS = 400
"""If more sweeps than this are ahead at the current rate, a linear solve is cheaper or at least certain."""

MAX_REFINEMENTS = 4
"""Solutions by LU factors are refined at most this often."""

SHARE_OF_IMPROVEMENT = 0.03
"""Values of a policy that will be improved are computed to this share of the half-width of its residual."""

NEAR_ZERO = 1e-9
"""A value below this share of the largest one may be zero but for rounding."""

MAX_IMPROVEMENTS = 1_000
"""Policy iteration ends after a few improvements; one that has made this many is not going to end."""


@dataclass(frozen=True, eq=False)
class RelativeValues:
    """Values v = w + c·1 of one or several tables, kept apart because c may be far larger than w."""

    relative: FloatArray  # [S, m]
    constant: FloatArray  # [m]

    @property
    def absolute(self) -> FloatArray:
        """The values v: [S, m]."""
        return self.relative + self.constant


def flow_of(matrix: Any, rows: FloatArray) -> Any:
    """Return P_π [S, S] of a transition [S·A, S] and a stationary policy [S, A], dense or CSR as the transition is."""
    states, actions = rows.shape
    if sp.issparse(matrix):
        indptr = np.arange(0, states * actions + 1, actions)
        mixing = sp.csr_array((rows.ravel(), np.arange(states * actions), indptr), shape=(states, states * actions))
        return mixing @ matrix
    return np.matmul(rows[:, None, :], matrix.reshape(states, actions, states))[:, 0, :]


def discounted_values(
    flow: Any,
    stage: FloatArray,
    discount: float,
    *,
    rounding: float,
    rows: IntArray | None = None,
    start: FloatArray | None = None,
    aim: float = 0.0,
) -> RelativeValues:
    """Return v with v = stage + γ flow v.

    Parameters
    ----------
    flow : [S, S], or [R, S]
        P_π, dense or CSR; or a matrix of which some rows are P_π.
    stage : [S, m]
        What one step is worth, of m tables.
    discount
        γ.
    rounding
        The relative error of one sweep; the residual need not be smaller than this.
    rows : [S]
        The row of each state in `flow`.
    start : [S, m]
        Relative values to start from.
    aim
        A half-width of the residual that is small enough.
    """
    # The residual's middle is the constant part, found by one division; iteration has to narrow its width alone.
    relative = np.zeros(stage.shape) if start is None else np.array(start)
    relative, middle, done = _sweeps(
        flow, rows, stage, discount=discount, rounding=rounding, aim=aim, relative=relative
    )
    if done:
        return RelativeValues(relative, middle / (1 - discount))
    chain = flow if rows is None else flow[rows]
    solve = _linear_solver(chain, discount)
    for _ in range(MAX_REFINEMENTS):
        # One step of iterative refinement; centring keeps the numbers as small as the span of v.
        relative = relative + solve(stage + discount * (chain @ relative) - relative - middle)
        relative = relative - (relative.max(axis=0) + relative.min(axis=0)) / 2
        _, middle, excess = _residual(chain, stage, discount=discount, rounding=rounding, aim=aim, relative=relative)
        if excess <= 1.0:
            return RelativeValues(relative, middle / (1 - discount))
    raise _not_computed("a discounted value", excess)


def _not_computed(what: str, excess: float) -> SolverError:
    return SolverError(
        f"{what} could not be computed: its residual is {excess:.3g} times what rounding explains. Use a smaller "
        "discount, or a finite horizon."
    )


def _sweeps(
    flow: Any,
    rows: IntArray | None,
    stage: FloatArray,
    *,
    discount: float,
    rounding: float,
    aim: float,
    relative: FloatArray,
) -> tuple[FloatArray, FloatArray, bool]:
    """Iterate relative values [S, m] until the residual is narrow, or until that is seen to take too long.

    Returns
    -------
    [S, m], [m], bool
        Relative values, the middle of the residual, and whether it is narrow enough.
    """
    kernels = compiled() if sp.issparse(flow) and flow.nnz < LARGEST_INDEX else None
    if kernels is not None:
        middle = np.empty(stage.shape[1])
        arrays = (narrow(flow.indptr), narrow(flow.indices), flow.data)
        taken = np.arange(len(stage)) if rows is None else rows
        done = kernels.relative_sweeps(
            arrays, taken, np.ascontiguousarray(stage), discount, rounding, aim, relative, middle
        )
        return relative, middle, done
    chain = flow if rows is None else flow[rows]
    before = np.inf
    for sweep in count(1):
        ahead, middle, excess = _residual(
            chain, stage, discount=discount, rounding=rounding, aim=aim, relative=relative
        )
        if excess <= 1.0:
            return relative, middle, True
        relative = ahead - middle
        if sweep % SWEEPS_BETWEEN_CHECKS == 0:
            check_time()
            if _is_slow(excess, before):
                break
            before = excess
    return relative, middle, False


def _residual(
    flow: Any, stage: FloatArray, *, discount: float, rounding: float, aim: float, relative: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return l + γ P w [S, m], the middle of its difference to w [m], and how many times too wide that is."""
    ahead = stage + discount * (flow @ relative)
    residual = ahead - relative
    low, high = residual.min(axis=0), residual.max(axis=0)
    floor = rounding * (np.abs(stage).max(axis=0) + np.abs(relative).max(axis=0)) + np.finfo(np.float64).tiny
    return ahead, (low + high) / 2, float(np.max((high - low) / 2 / np.maximum(aim, floor), initial=0.0))


def with_exact_zeros(flow: Any, stage: FloatArray, values: FloatArray, *, rows: IntArray | None = None) -> FloatArray:
    """Return values [S, m], exactly zero where a table of one sign [S, m] is zero for ever.

    Iteration leaves rounding there, and a threshold of zero knows the difference. The chain is as in
    `discounted_values`.
    """
    found = values.copy()
    for column, paid in zip(found.T, stage.T, strict=True):
        negligible = np.abs(column) <= NEAR_ZERO * np.abs(column).max()
        if not negligible.any() or (paid.min() < 0 < paid.max()):
            continue
        chain = flow if rows is None else flow[rows]
        reached, before = paid != 0, -1
        while (number := int(np.count_nonzero(reached))) > before:  # one step further back in each round
            before = number
            reached = reached | (chain @ reached.astype(np.float64) > 0)
        column[~reached] = 0.0
    return found


def discounted_visits(flow: Any, initial: FloatArray, discount: float, *, rounding: float) -> FloatArray:
    """Return d with d = μ + γ flowᵀ d, the expected discounted visits of each state: [S].

    Parameters
    ----------
    flow : [S, S]
        P_π, dense or CSR.
    initial : [S]
        μ.
    discount
        γ.
    rounding
        The relative error of one sweep.
    """
    back = flow.T.tocsr() if sp.issparse(flow) else flow.T  # rows are read, and a CSR matrix has them together
    visits, before, sweep = initial / (1 - discount), np.inf, 0  # its sum is right already, and sweeps keep it
    while True:
        ahead = initial + discount * (back @ visits)
        # Sums of non-negative terms: one sweep errs by `rounding` of the largest entry at most.
        change = float(np.abs(ahead - visits).max() / (rounding * ahead.max()))
        visits = ahead
        if change <= 1.0:
            return np.asarray(np.maximum(visits, 0.0))
        sweep += 1
        if sweep % SWEEPS_BETWEEN_CHECKS == 0:
            check_time()
            if _is_slow(change, before):
                break
            before = change
    solve = _linear_solver(back, discount)
    for _ in range(MAX_REFINEMENTS):
        visits = visits + solve(initial + discount * (back @ visits) - visits)
        # The residual itself decides, whatever the factorisation was worth.
        left = float(np.abs(initial + discount * (back @ visits) - visits).max() / (rounding * visits.max()))
        if left <= 1.0:
            return np.asarray(np.maximum(visits, 0.0))
    raise _not_computed("a discounted occupancy", left)


def _is_slow(now: float, before: float) -> bool:
    """Whether sweeps that have come from `before` to `now` times the aim will not reach it soon."""
    if not now < before:
        return True
    if before == np.inf:
        return False
    return bool(SWEEPS_BETWEEN_CHECKS * np.log(now) > MAX_SWEEPS * np.log(before / now))


def _linear_solver(flow: Any, discount: float) -> Callable[[FloatArray], FloatArray]:
    """Return x ↦ (I − γ flow)⁻¹ x by LU factors, dense or sparse."""
    if sp.issparse(flow):
        from scipy.sparse.linalg import splu

        return splu((sp.eye_array(flow.shape[0], format="csr") - discount * flow).tocsc()).solve  # type: ignore[no-any-return]
    from scipy.linalg import lu_factor, lu_solve

    with one_thread():
        factors = lu_factor(np.eye(len(flow)) - discount * flow, check_finite=False)

    def solve(right: FloatArray) -> FloatArray:
        with one_thread():
            return np.asarray(lu_solve(factors, right, check_finite=False))

    return solve


@dataclass(frozen=True, eq=False)
class Optimum:
    """Which actions are optimal up to rounding, relative values, and a bound on the maximum."""

    actions: npt.NDArray[np.bool_]  # [S, A]
    relative: FloatArray  # [S]
    largest_residual: float  # max_s of max_a (l + γ P w) − w

    def bound(self, initial: FloatArray, discount: float) -> float:
        """Return what μ·V exceeds under no stationary policy."""
        return float(initial @ self.relative) + self.largest_residual / (1 - discount)


def optimum(
    matrix: Any,
    stage: FloatArray,
    discount: float,
    *,
    rounding: float,
    tie: float,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> Optimum:
    """Find the actions that maximise the discounted sum of one table.

    Parameters
    ----------
    matrix : [S·A, S]
        The transition, dense or CSR.
    stage : [S, A]
        What one step is worth.
    discount
        γ.
    rounding
        The relative error of one sweep.
    tie
        Action values that differ by no more than this are equal.
    allowed : [S, A]
        Which actions may be taken: all of them unless given.
    """
    states, actions = stage.shape
    first = np.arange(0, states * actions, actions)
    masked = stage if allowed is None else np.where(allowed, stage, -np.inf)
    size = float(np.abs(stage).max())
    chosen: IntArray | None = None
    relative, least, polished = np.zeros(states), np.inf, False
    for _ in range(MAX_IMPROVEMENTS):
        values = masked + discount * (matrix @ relative).reshape(states, actions)
        better = values.argmax(axis=1)  # Howard's improvement; ties keep the old action below
        best = values.ravel()[first + better]
        residual = best - relative
        low, high = float(residual.min()), float(residual.max())
        width = (high - low) / 2
        floor = rounding * (size + float(np.abs(relative).max())) + np.finfo(np.float64).tiny
        if chosen is not None:
            improves = best > values.ravel()[first + chosen] + tie
            # At the floor, an improvement either narrows the residual or is rounding.
            if polished and (not improves.any() or not width < least):
                return Optimum(values >= (best - tie)[:, None], relative, high)
            better = np.where(improves, better, chosen)
            least = width if polished else least
        repeated = chosen is not None and np.array_equal(better, chosen)
        aim = SHARE_OF_IMPROVEMENT * width
        chosen, polished = better, repeated or bool(aim <= floor)
        rows = first + chosen
        found = discounted_values(
            matrix,
            stage.ravel()[rows][:, None],
            discount,
            rounding=rounding,
            rows=rows,
            start=(relative if repeated else best - (low + high) / 2)[:, None],
            aim=floor if polished else aim,
        )
        relative = found.relative[:, 0]
    raise SolverError(
        f"policy iteration did not end within {MAX_IMPROVEMENTS:,} improvements. Use a smaller discount, or a finite "
        "horizon."
    )
