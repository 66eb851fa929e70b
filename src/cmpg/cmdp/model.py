"""The constrained Markov decision process of one agent: its tables, their checks, and what rounding does to them.

A CMDP asks for a policy π that maximises V^r(π) subject to V^{c_j}(π) ≤ α_j for each constraint j. The horizon is
finite, or the sum is discounted; both have the same names. A discounted CMDP has stationary data and stationary
policies: its step axis has length one, and values are sums of γ^t r_t without a factor (1 − γ).

Tables are checked once, with coordinates, and are then owned by nothing else: dense ones are read-only arrays, and a
sparse transition is one CSR matrix per step, or one for all of them.

Rounding: P, π and |c| are non-negative, so the error of a float evaluation of V^c is at most γ_N·V^{|c|}, with N the
length of the longest chain of roundings; `CMDP.rounding` is that γ_N. It covers either reading of a row of floats: as
it stands, or divided by its exact sum. One step costs a product with a row of P (its m entries), a product with a row
of π (A entries), the roundings that the tables have behind them, and the distance of both rows from summing to one:
less than 6 (m + A + entry_roundings) + 8 roundings; and r − λ·c is a sum of k products, with 2k more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import (
    ROW_SUM_TOLERANCE,
    UNIT_ROUNDOFF,
    FloatArray,
    Numbers,
    check_shape,
    distributions,
    each_once,
    first_index,
    frozen,
    numbers,
    place,
    row_sum_message,
    to_floats,
)
from cmpg.cmdp.kernels.choice import packed_process
from cmpg.cmdp.mixed_rows import MixedRows, longest_row
from cmpg.errors import GameError
from cmpg.summaries import fields_line

Transition = FloatArray | tuple[sp.csr_array, ...]
"""[H or 1, S, A, S] dense, or one CSR matrix [S·A, S] per step (or one for all), rows in the order (state, action)."""


@dataclass(frozen=True, eq=False)
class CMDP:
    """One agent, its world, its reward and its constraints.

    Exactly one of `horizon` and `discount` is given. Data that do not change with the step have a step axis of length
    one.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 1.0]]]],
    ...             thresholds=[0.25], initial=[1.0], horizon=1)
    >>> from cmpg.cmdp.evaluation import evaluate
    >>> evaluate(cmdp, [[[0.5, 0.5]]]).costs
    array([0.5])
    """

    _: KW_ONLY
    transition: Any  # [H or 1, S, A, S], or a sequence of CSR matrices [S·A, S], or MixedRows
    reward: FloatArray  # [H or 1, S, A]
    costs: FloatArray  # [k, H or 1, S, A]
    thresholds: FloatArray  # [k]
    initial: FloatArray  # [S]
    horizon: int | None = None
    discount: float | None = None
    entry_roundings: int = 0  # roundings that the entries of the tables have behind them already
    # [1 + k]: the largest sums of |r| and of each |c_j| that the entries are averages of, where those have both signs
    averaged: FloatArray | None = None
    trusted: InitVar[bool] = False  # the tables were computed by this library: do not check them again

    __repr__ = fields_line

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            transition: Any,
            reward: Numbers,
            costs: Numbers,
            thresholds: Numbers,
            initial: Numbers,
            horizon: int | None = None,
            discount: float | None = None,
            entry_roundings: int = 0,
            averaged: FloatArray | None = None,
            trusted: bool = False,
        ) -> None: ...

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            for name, value in _checked_tables(self).items():
                object.__setattr__(self, name, value)

    @property
    def num_steps(self) -> int:
        """The length of a policy's step axis: the horizon, or 1 if the sum is discounted."""
        return 1 if self.horizon is None else self.horizon

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.reward.shape[1])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.reward.shape[2])

    @property
    def num_constraints(self) -> int:
        """The number of constraints."""
        return int(self.costs.shape[0])

    @property
    def policy_shape(self) -> tuple[int, int, int]:
        """The shape of a policy, an occupancy, and a reward for every step."""
        return (self.num_steps, self.num_states, self.num_actions)

    @cached_property
    def matrices(self) -> Any:
        """The transitions as matrices [S·A, S], dense or CSR: one per step, or one for all."""
        if isinstance(self.transition, MixedRows):
            return self.transition.matrices
        return self.transition if self.is_sparse else self.transition.reshape(len(self.transition), -1, self.num_states)

    @cached_property
    def packed(self) -> Any | None:
        """The arrays as the compiled kernels read them, or None if only the NumPy twins can."""
        return packed_process(self)

    def __getstate__(self) -> dict[str, Any]:
        # What was computed from the tables is computed again where they arrive.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def matrix(self, step: int) -> Any:
        """Return the transition out of `step` as a matrix [S·A, S], dense or CSR."""
        return self.matrices[0 if len(self.matrices) == 1 else step]

    @cached_property
    def reward_range(self) -> float:
        """G = Σ_h (max r_h − min r_h): no two policies differ by more in value."""
        return total_range(self.reward, self.horizon, self.discount)

    @cached_property
    def sizes(self) -> FloatArray:
        """The largest sum of |r| and of each |c_j| that a run can see: [1 + k]."""
        length = total_weight(self.horizon, self.discount)
        return frozen(np.array([_largest_sum(table, length) for table in (self.reward, *self.costs)]))

    @property
    def rounding_sizes(self) -> FloatArray:
        """What rounding errors are relative to: `sizes`, and what numbers of both signs had before their average."""
        return self.sizes if self.averaged is None else self.sizes + self.averaged

    @cached_property
    def step_sizes(self) -> FloatArray:
        """The largest |r| and the largest of each |c_j|: [1 + k]."""
        tables = [drop_broadcast(table) for table in (self.reward, *self.costs)]
        return frozen(np.array([max(float(table.max()), -float(table.min())) for table in tables]))

    @cached_property
    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """Which costs are nowhere negative: their evaluation has a purely relative error: [k].

        A cost that is an average of costs of both signs is none of them: it may be next to nothing, and its error not.
        """
        found = np.array([bool(drop_broadcast(cost).min() >= 0) for cost in self.costs], dtype=np.bool_)
        return found if self.averaged is None else found & (self.averaged[1:] == 0)

    @cached_property
    def step_rounding(self) -> float:
        """The relative error that one step adds to an evaluation of non-negative data."""
        if isinstance(self.transition, MixedRows):
            row = self.transition.longest
        else:
            row = max(map(longest_row, self.transition)) if self.is_sparse else 0
        chain = 6 * ((row or self.num_states) + self.num_actions + self.entry_roundings) + 2 * self.num_constraints + 8
        return chain * UNIT_ROUNDOFF

    @cached_property
    def rounding(self) -> float:
        """γ_N: the relative error of `evaluate` on non-negative data; discounted, relative to `sizes`."""
        if self.discount is not None:
            return 4 * self.step_rounding / (1 - self.discount)  # `solved` has checked the residual
        return self.num_steps * self.step_rounding + 6 * self.num_states * UNIT_ROUNDOFF

    @property
    def is_sparse(self) -> bool:
        """Whether the transition is a sequence of CSR matrices, written out or not."""
        return isinstance(self.transition, tuple | MixedRows)


def drop_broadcast(table: FloatArray) -> FloatArray:
    """Return a table [..., S, A] that was made by repeating one column as that column, [..., S, 1]; others as they are.

    Many tables depend on the state alone. Such a view takes an A-th of the memory, and of the time to read.
    """
    return table[..., :1] if table.strides[-1] == 0 else table


def _largest_sum(table: FloatArray, length: float) -> float:
    """Return Σ_h max |l_h| of a table whose first axis is the step, or its one step's maximum times the length."""
    flat = drop_broadcast(table).reshape(len(table), -1)
    largest = np.maximum(flat.max(axis=1), -flat.min(axis=1))
    return float(largest.sum()) if len(largest) > 1 else float(largest[0]) * length


def run_depth(initial: FloatArray, transition: Any, num_steps: int, *, paid: Sequence[FloatArray] = ()) -> float:
    """Return log₂ of the least product of probabilities of moving along a run and of a number that is paid, but zero.

    The transition is dense or CSR, by step. A number that is paid counts if its size is less than one.
    """
    steps = list(transition)
    one_each = {id(step): step for step in steps}  # the same one may come many times
    least_of = {each: _least_positive(step.data if sp.issparse(step) else step) for each, step in one_each.items()}
    along = np.log2([least_of[id(step)] for step in steps])
    moves = num_steps - 1
    total = along[0] * moves if len(along) == 1 else along[:moves].sum()
    least = min((_least_positive(np.abs(table)) for table in paid), default=1.0)
    return float(total + np.log2(_least_positive(initial)) + np.log2(least))


def _least_positive(table: Any) -> float:
    return float(np.min(table, where=np.asarray(table > 0, dtype=bool), initial=1.0))


def largest_sizes(tables: Any) -> FloatArray:
    """Return the largest absolute number of each table."""
    return np.array([float(max(table.max(), -table.min())) for table in tables])


def mixed_size(table: FloatArray, horizon: int | None, discount: float | None) -> float:
    """Return Σ_h max |l_h| of a table with numbers of both signs, and 0 of any other."""
    if not table.size or not table.min() < 0 < table.max():
        return 0.0
    return _largest_sum(table, total_weight(horizon, discount))


def total_weight(horizon: int | None, discount: float | None) -> float:
    """Return what the weights of all steps sum to: H, or 1/(1 − γ)."""
    return (horizon or 1) if discount is None else 1 / (1 - discount)


def total_range(table: FloatArray, horizon: int | None, discount: float | None) -> float:
    """Return Σ_h (max − min) of a table whose first axis is the step; discounted, the range over (1 − γ)."""
    flat = drop_broadcast(table).reshape(len(table), -1)
    ranges = flat.max(axis=1) - flat.min(axis=1)
    if discount is not None:
        return float(ranges[0]) / (1 - discount)
    return float(ranges.sum()) if len(ranges) > 1 else float(ranges[0]) * (horizon or 1)


def check_length_of_time(horizon: int | None, discount: float | None) -> None:
    """Raise unless exactly one of horizon ≥ 1 and discount in [0, 1) is given."""
    if (horizon is None) == (discount is None):
        raise GameError("give exactly one of horizon (a finite sum) and discount (an infinite one).")
    if horizon is not None and (not isinstance(horizon, (int, np.integer)) or horizon < 1):  # type: ignore[redundant-expr]
        raise GameError(f"horizon is {horizon}; it must be a whole number of at least 1.")
    if discount is not None and not 0 <= numbers("discount", discount) < 1:
        raise GameError(f"discount is {discount}; it must be at least 0 and less than 1.")


def check_steps(name: str, steps: int, num_steps: int) -> None:
    """Raise unless a step axis has length H or 1."""
    if steps not in (1, num_steps):
        raise GameError(f"{name} has {steps} steps; 1 (the same at every step) or {num_steps} is required.")


def check_thresholds(thresholds: FloatArray, num_constraints: int) -> None:
    """Raise unless there is one threshold per constraint."""
    if thresholds.shape != (num_constraints,):
        raise GameError(
            f"thresholds has shape {list(thresholds.shape)}; costs has {num_constraints} constraints, "
            f"so [{num_constraints}] is required."
        )


def _checked_tables(cmdp: CMDP) -> dict[str, Any]:
    check_length_of_time(cmdp.horizon, cmdp.discount)
    reward = numbers("reward", cmdp.reward)
    if reward.ndim != 3 or 0 in reward.shape:
        raise GameError(f"reward has shape {list(reward.shape)}; [H or 1, S, A] with no empty axis is required.")
    steps, states, actions = cmdp.num_steps, *reward.shape[1:]
    check_steps("reward", len(reward), steps)
    initial = numbers("initial", cmdp.initial)
    check_shape("initial", initial.shape, (states,))
    costs = numbers("costs", cmdp.costs)
    if costs.size == 0:
        costs = frozen(np.zeros((0, 1, states, actions)))
    if costs.ndim != 4:
        raise GameError(f"costs has shape {list(costs.shape)}; [k, H or 1, S, A] is required.")
    check_steps("costs", costs.shape[1], steps)
    check_shape("costs", costs.shape, (costs.shape[0], costs.shape[1], states, actions))
    thresholds = numbers("thresholds", cmdp.thresholds)
    check_thresholds(thresholds, costs.shape[0])
    tables = {
        "reward": reward,
        "costs": costs,
        "thresholds": thresholds,
        "initial": distributions("initial", initial, ()),
        "transition": checked_transition(cmdp.transition, (steps, states, actions)),
    }
    # Fractions are rounded; sums of floats stay floats.
    rounded = {name: table if isinstance(table, tuple) else to_floats(table) for name, table in tables.items()}
    return rounded | {"discount": None if cmdp.discount is None else float(cmdp.discount)}


def checked_transition(transition: Any, shape: tuple[int, ...]) -> Transition:
    """Return a transition with checked rows: dense as one read-only array, sparse as a tuple of CSR matrices.

    Parameters
    ----------
    transition : [H or 1, S, *A, S], or CSR matrices [S·ΠA, S]
        What the user gave.
    shape
        H, S, and the number of actions of the agent, or of each agent.
    """
    steps, states, *actions = shape
    if sp.issparse(transition):
        transition = [transition]
    if isinstance(transition, Sequence) and len(transition) and all(sp.issparse(matrix) for matrix in transition):
        check_steps("transition", len(transition), steps)
        return each_once(lambda step, matrix: checked_matrix(step, matrix, shape[1:]), transition)
    dense = numbers("transition", transition)
    if dense.ndim != 3 + len(actions):
        axes = "A" if len(actions) == 1 else "A_1, …, A_n"
        raise GameError(f"transition has shape {list(dense.shape)}; [H or 1, S, {axes}, S] is required.")
    check_steps("transition", len(dense), steps)
    check_shape("transition", dense.shape, (len(dense), states, *actions, states))
    return distributions("transition", dense, ("h", "s", *("a" for _ in actions)))


def checked_matrix(step: int, matrix: Any, states_actions: tuple[int, ...]) -> sp.csr_array:
    """Return the transition out of one step as a read-only CSR matrix of distributions, or raise with coordinates.

    Parameters
    ----------
    step
        h, for the error.
    matrix : [S·ΠA, S]
        What the user gave; rows in the order (state, actions).
    states_actions
        S, and the number of actions of the agent, or of each agent.
    """
    check_shape(f"transition[h={step}]", matrix.shape, (math.prod(states_actions), states_actions[0]))
    axes = ("h", "s", *("a" for _ in states_actions[1:]))
    csr = _own_csr(f"transition[h={step}]", matrix)
    wrong = ~np.isfinite(csr.data) | (csr.data < 0)
    if wrong.any():
        entry = first_index(wrong)[0]
        row, target = int(np.searchsorted(csr.indptr, entry, side="right")) - 1, int(csr.indices[entry])
        where = place("transition", (step, *_unravel(row, states_actions), target), (*axes, "next"))
        raise GameError(f"{where} is {csr.data[entry]}; a probability must be finite and at least 0.")
    sums = csr.sum(axis=1)
    off = np.abs(sums - 1)
    if (off > ROW_SUM_TOLERANCE).any():
        row = first_index(off > ROW_SUM_TOLERANCE)[0]
        where = place("transition", (step, *_unravel(row, states_actions)), axes)
        raise GameError(row_sum_message(where, sums[row], np.asarray(True), ()))
    lengths = np.diff(csr.indptr)
    if (off > 4 * UNIT_ROUNDOFF * int(lengths.max(initial=2))).any():
        csr.data = frozen(csr.data / np.repeat(sums, lengths))
    return csr


def _unravel(row: int, states_actions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(row, states_actions))


def _own_csr(name: str, matrix: Any) -> sp.csr_array:
    """Return a CSR matrix that nothing else can change; one that is read-only already is taken as it is."""
    csr = sp.csr_array(matrix, dtype=np.float64)
    try:
        csr.check_format(full_check=True)  # code that reads the rows later relies on the indices
    except ValueError as problem:
        raise GameError(f"{name} is not a sparse matrix that can be read: {problem}.") from None
    if csr.data.flags.writeable or not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()  # in a file, an entry may stand there twice
        index = sp.get_index_dtype(maxval=max(csr.nnz, *csr.shape))
        csr.indices, csr.indptr = csr.indices.astype(index, copy=False), csr.indptr.astype(index, copy=False)
    for array in (csr.data, csr.indices, csr.indptr):
        array.setflags(write=False)
    return csr
