"""The constrained Markov decision process of one agent, its evaluation, and occupancies.

A CMDP asks for a policy π that maximises V^r(π) subject to V^{c_j}(π) ≤ α_j for each constraint j. The horizon is
finite, or the sum is discounted; both have the same names. A discounted CMDP has stationary data and stationary
policies: its step axis has length one, and values are sums of γ^t r_t without a factor (1 − γ).

Occupancy (the paper's appendix): ρ_h(s, a) = P(s_h = s, a_h = a), so that V^l = Σ ρ_h(s, a) l_h(s, a), with
ρ_{h+1}(s') = Σ ρ_h(s, a) P_h(s' | s, a). Discounted: d = μᵀ(I − γ P_π)^{-1}.

Rounding: P, π and |c| are non-negative, so the error of a float evaluation of V^c is at most γ_N·V^{|c|}, with N the
length of the longest chain of roundings; `CMDP.rounding` is that γ_N. It covers either reading of a row of floats: as
it stands, or divided by its exact sum. One step costs a product with a row of P (its m entries), a product with a row
of π (A entries), the roundings that the tables have behind them, and the distance of both rows from summing to one:
less than 6 (m + A + entry_roundings) + 8 roundings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.checks import (
    UNIT_ROUNDOFF,
    FloatArray,
    GameError,
    PolicyError,
    check_shape,
    distributions,
    each_once,
    frozen,
    numbers,
)
from cmpg.cmdp.csr import checked_matrix
from cmpg.cmdp.stationary import resolvent, solved

BLOCK = 32_768
"""So many entries (of steps, tables, states and actions) are prepared at once: 256 kB."""

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
    >>> evaluate(cmdp, [[[0.5, 0.5]]]).costs
    array([0.5])
    """

    _: KW_ONLY
    transition: Any  # [H or 1, S, A, S], or a sequence of CSR matrices [S·A, S]
    reward: FloatArray  # [H or 1, S, A]
    costs: FloatArray  # [k, H or 1, S, A]
    thresholds: FloatArray  # [k]
    initial: FloatArray  # [S]
    horizon: int | None = None
    discount: float | None = None
    entry_roundings: int = 0  # roundings that the entries of the tables have behind them already
    trusted: InitVar[bool] = False  # the tables were computed by this library: do not check them again

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            for name, value in _checked_tables(self).items():
                object.__setattr__(self, name, value)

    @property
    def num_steps(self) -> int:
        """The length of a policy's step axis: the horizon, or 1 where the sum is discounted."""
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
        """The transitions as matrices [S·A, S], dense or CSR, without a copy: one per step, or one for all."""
        return self.transition if self.is_sparse else self.transition.reshape(len(self.transition), -1, self.num_states)

    def matrix(self, step: int) -> Any:
        """Return the transition out of `step` as a matrix [S·A, S], dense or CSR, without a copy."""
        return self.matrices[0 if len(self.matrices) == 1 else step]

    @cached_property
    def stacked(self) -> FloatArray:
        """The reward and the costs, side by side: [H or 1, S·A, 1 + k]."""
        steps = max(len(self.reward), self.costs.shape[1] if self.num_constraints else 1)
        shape = (steps, *self.reward.shape[1:])
        tables = [np.broadcast_to(self.reward, shape), *(np.broadcast_to(cost, shape) for cost in self.costs)]
        return frozen(np.stack(tables, axis=-1).reshape(steps, -1, len(tables)))

    def stage(self, step: int) -> FloatArray:
        """Return the reward and the costs of one step: [S·A, 1 + k]."""
        return np.asarray(self.stacked[0 if len(self.stacked) == 1 else step])

    @cached_property
    def reward_range(self) -> float:
        """G = Σ_h (max r_h − min r_h): no two policies differ by more in value."""
        return total_range(self.reward, self.horizon, self.discount)

    @cached_property
    def sizes(self) -> FloatArray:
        """The largest sum of |r| and of each |c_j| that a run can see: [1 + k]."""
        length = self.num_steps if self.discount is None else 1 / (1 - self.discount)
        return frozen(np.array([_largest_sum(table, length) for table in (self.reward, *self.costs)]))

    @cached_property
    def step_sizes(self) -> FloatArray:
        """The largest |r| and the largest of each |c_j|: [1 + k]."""
        tables = [thin(table) for table in (self.reward, *self.costs)]
        return frozen(np.array([max(float(table.max()), -float(table.min())) for table in tables]))

    @cached_property
    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """Which costs are nowhere negative: their evaluation has a purely relative error: [k]."""
        return np.array([bool(thin(cost).min() >= 0) for cost in self.costs], dtype=np.bool_)

    @cached_property
    def step_rounding(self) -> float:
        """The relative error that one step adds to an evaluation of non-negative data."""
        row = max((int(np.diff(m.indptr).max(initial=0)) for m in self.transition), default=0) if self.is_sparse else 0
        return (6 * ((row or self.num_states) + self.num_actions + self.entry_roundings) + 8) * UNIT_ROUNDOFF

    @cached_property
    def rounding(self) -> float:
        """γ_N: the relative error of `evaluate` on non-negative data; discounted, relative to `sizes`."""
        if self.discount is not None:
            return 4 * self.step_rounding / (1 - self.discount)  # `solved` has checked the residual
        return self.num_steps * self.step_rounding + 6 * self.num_states * UNIT_ROUNDOFF

    @property
    def is_sparse(self) -> bool:
        """Whether the transition is a sequence of CSR matrices."""
        return isinstance(self.transition, tuple)

    @property
    def is_exact(self) -> bool:
        """Whether the tables hold Fractions."""
        return self.reward.dtype == object


def thin(table: FloatArray) -> FloatArray:
    """Return a table [..., S, A] that was made by repeating one column as that column, [..., S, 1]; others as they are.

    Many tables depend on the state alone. Such a view takes an A-th of the memory, and of the time to read.
    """
    return table[..., :1] if table.strides[-1] == 0 else table


def _largest_sum(table: FloatArray, length: float) -> float:
    """Return Σ_h max |l_h| of a table whose first axis is the step, or its one step's maximum times the length."""
    flat = thin(table).reshape(len(table), -1)
    largest = np.maximum(flat.max(axis=1), -flat.min(axis=1))
    return float(largest.sum()) if len(largest) > 1 else float(largest[0]) * length


def total_range(table: FloatArray, horizon: int | None, discount: float | None) -> float:
    """Return Σ_h (max − min) of a table whose first axis is the step; discounted, the range over (1 − γ)."""
    flat = thin(table).reshape(len(table), -1)
    ranges = flat.max(axis=1) - flat.min(axis=1)
    if discount is not None:
        return float(ranges[0]) / (1 - discount)
    return float(ranges.sum()) if len(ranges) > 1 else float(ranges[0]) * (horizon or 1)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy is worth, and what it spends."""

    value: float
    costs: FloatArray  # [k]


def cost_rounding(cmdp: CMDP, costs: FloatArray) -> FloatArray:
    """Return how far computed costs can be from the true ones: [k].

    Where no cost is negative the error is relative to the cost itself; otherwise to the largest sum there can be.
    """
    if cmdp.is_exact:
        # A float zero would turn the rationals that it is added to into floats.
        return frozen(np.zeros(cmdp.num_constraints, dtype=object))
    relative = cmdp.nonnegative & (cmdp.discount is None)
    return np.asarray(cmdp.rounding * np.where(relative, np.abs(costs), cmdp.sizes[1:]))


def evaluate(cmdp: CMDP, policy: Any) -> Evaluation:
    """Return V^r and V^c of a policy, by one backward pass over reward and costs together.

    Parameters
    ----------
    cmdp
        The process.
    policy : [H, S, A]
        One distribution over actions per step and state.
    """
    table = check_policy(cmdp, policy)
    if cmdp.discount is not None:
        totals = cmdp.initial @ stationary_values(cmdp, table[0])
    else:
        totals = _values_to_go(cmdp, table) @ cmdp.initial
    return Evaluation(value=totals[0], costs=totals[1:])


def _values_to_go(cmdp: CMDP, policy: FloatArray) -> FloatArray:
    """Return V_0 of the reward and of each cost under a policy [H, S, A], by a backward pass: [1 + k, S]."""
    to_go: FloatArray | None = None
    for step, worth in stages_backwards(cmdp):
        if to_go is not None:
            add_what_follows(worth, cmdp.matrix(step), to_go)
        to_go = np.einsum("sa,lsa->ls", policy[step], worth.reshape(len(worth), *policy.shape[1:]))
    return np.asarray(to_go)


def stages_backwards(cmdp: CMDP) -> Iterator[tuple[int, FloatArray]]:
    """Yield every step, the last one first, with its reward and its costs as a new array [1 + k, S·A].

    They are gathered for a block of steps at a time: in small processes calls of NumPy are what takes the time, and in
    large ones no table is copied whole.
    """
    tables = (cmdp.reward, *cmdp.costs)
    shape = (len(tables), cmdp.num_states, cmdp.num_actions)
    length = max(BLOCK // prod(shape), 1)
    for end in range(cmdp.num_steps, 0, -length):
        block = slice(max(end - length, 0), end)
        stages = np.empty((end - block.start, *shape), dtype=cmdp.reward.dtype)
        for place, table in enumerate(tables):
            stages[:, place] = table if len(table) == 1 else table[block]
        yield from zip(range(end - 1, block.start - 1, -1), stages.reshape(*stages.shape[:2], -1)[::-1], strict=True)


def add_what_follows(worth: FloatArray, matrix: Any, to_go: FloatArray) -> None:
    """Add Σ_{s'} P(s' | s, a) v_l(s') to every table l in place, for tables [1 + k, S·A] and values v [1 + k, S]."""
    # Reading a dense matrix is what takes the time, so that is done once; CSR products are faster one by one.
    if sp.issparse(matrix):
        for table, values in zip(worth, to_go, strict=True):
            table += matrix @ values
    else:
        worth += to_go @ matrix.T


def stationary_values(cmdp: CMDP, rows: FloatArray) -> FloatArray:
    """Return the discounted values [S, 1 + k] of a stationary policy [S, A], by one linear solve."""
    stage = np.stack([np.einsum("sa,sa->s", rows, table[0]) for table in (cmdp.reward, *cmdp.costs)], axis=-1)
    return solved(resolvent(cmdp.matrix(0), rows, rate(cmdp)), stage, tolerance=cmdp.step_rounding)


def rate(cmdp: CMDP) -> Any:
    """Return the discount in the arithmetic of the tables."""
    assert cmdp.discount is not None
    return Fraction(cmdp.discount) if cmdp.is_exact else cmdp.discount


def occupancy(cmdp: CMDP, policy: Any) -> FloatArray:
    """Return ρ_h(s, a), the probability of being in s and playing a at step h; discounted, the expected visits.

    Returns
    -------
    [H, S, A]
        Each step sums to one (discounted: the one step sums to 1/(1 − γ)).
    """
    table = check_policy(cmdp, policy)
    if cmdp.discount is not None:
        system = resolvent(cmdp.matrix(0), table[0], rate(cmdp)).T
        visits = solved(system, cmdp.initial, tolerance=cmdp.step_rounding)
        return np.maximum(visits, 0)[None, :, None] * table
    result = np.empty_like(table)
    states = cmdp.initial
    for step in range(cmdp.num_steps):
        result[step] = states[:, None] * table[step]
        if step + 1 < cmdp.num_steps:
            states = cmdp.matrix(step).T @ result[step].ravel()
    return result


def policy_from_occupancy(occupancy: FloatArray, unvisited: FloatArray) -> FloatArray:
    """Return π_h(a | s) = ρ_h(s, a) / Σ_a ρ_h(s, a), and the rows of `unvisited` where ρ_h(s, ·) is zero.

    The paper fills unvisited rows uniformly; any filling has the same value, but not the same equilibria: other agents'
    deviations reach those rows.
    """
    totals = occupancy.sum(axis=-1, keepdims=True)
    visited = totals > 0
    return np.where(visited, occupancy / np.where(visited, totals, 1.0), unvisited)


def check_policy(cmdp: CMDP, policy: Any) -> FloatArray:
    """Return the policy as an array of the right shape; its rows are not checked again."""
    table: FloatArray = np.asarray(policy)
    if table.dtype != object:
        table = table.astype(np.float64, copy=False)
    check_shape("policy", table.shape, cmdp.policy_shape, error=PolicyError)
    return table


def check_length_of_time(horizon: int | None, discount: float | None) -> None:
    """Raise unless exactly one of horizon ≥ 1 and discount in [0, 1) is given."""
    if (horizon is None) == (discount is None):
        raise GameError("give exactly one of horizon (a finite sum) and discount (an infinite one).")
    if horizon is not None and (not isinstance(horizon, (int, np.integer)) or horizon < 1):
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
    return {
        "reward": reward,
        "costs": costs,
        "thresholds": thresholds,
        "initial": distributions("initial", initial, ()),
        "transition": checked_transition(cmdp.transition, (steps, states, actions)),
    }


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
