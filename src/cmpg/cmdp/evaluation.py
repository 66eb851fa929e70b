"""What a policy of a CMDP is worth, what it spends, and where it leads.

Values. V_h(s) = Σ_a π_h(a | s) Q_h(s, a) with Q_h = l_h + P_h V_{h+1}, for the reward and every cost l together, from
the last step to the first. `backward_induction` is that loop. Plans, bounds and optimistic plans are the same loop
with another rule in place of the average over a, or another P; there is no second one in the library.

Occupancy (the paper's appendix). ρ_h(s, a) = P(s_h = s, a_h = a), so that V^l = Σ ρ_h(s, a) l_h(s, a), with
ρ_{h+1}(s') = Σ ρ_h(s, a) P_h(s' | s, a).

Discounted sums of a stationary policy solve v = l_π + γ P_π v, and its expected visits d = μ + γ P_πᵀ d: `discounted`
does both.

Guarantee: `CMDP.rounding` bounds the error of `evaluate`, with a finite horizon and discounted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, check_shape, numbers, to_floats
from cmpg.cmdp.discounted import discounted_values, discounted_visits, flow_of, with_exact_zeros
from cmpg.cmdp.kernels.choice import kernels_for
from cmpg.cmdp.model import CMDP
from cmpg.deadline import check_time
from cmpg.errors import PolicyError, SolverError

BLOCK = 32_768
"""Entries (of steps, tables, states and actions) that are gathered at once: 256 kB, which stay in the cache."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy is worth, and what it spends."""

    value: float
    costs: FloatArray  # [k]


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
    elif (compiled := kernels_for(cmdp)) is not None:
        kernels, process = compiled
        totals = np.empty(1 + cmdp.num_constraints)
        kernels.evaluate(process, np.ascontiguousarray(table), totals)
    else:
        first = backward_induction(stages_backwards(cmdp), partial(add_future, cmdp), partial(_average, table))
        totals = first @ cmdp.initial
    return Evaluation(value=totals[0], costs=totals[1:])


def cost_rounding(cmdp: CMDP, costs: FloatArray) -> FloatArray:
    """Return how far computed costs can be from the true ones: [k].

    Where no cost is negative the error is relative to the cost itself; otherwise to the largest sum there can be.
    """
    relative = cmdp.nonnegative & (cmdp.discount is None)
    return np.asarray(cmdp.rounding * np.where(relative, np.abs(costs), cmdp.rounding_sizes[1:]))


SMALLEST = 2.0**-1073
"""A product that is too small for a float, or for all digits of one, loses less than this."""

NEXT_TO_OVERFLOW = 1e300
"""Sums that may be larger than this may overflow on the way."""

DEEPEST = -960.0
"""Products above this power of 2 are far from the smallest float with all its digits, 2^−1022."""


HIDDEN_BY_UNDERFLOW = 1e-290
"""Underflow hides less than this in backward induction: at most 5e-324 for each of fewer than 10^30 products, which are
weighed by probabilities alone after that. What a multiplier is multiplied with is among them."""


@dataclass(frozen=True, eq=False)
class Underflow:
    """What products of probabilities that are too small for floats can hide at most.

    Bounds on rounding are relative, and a product that becomes zero has lost all of itself; but no more than 2^−1074.
    That counts where a cost of 1e300 hangs on it, or where a threshold is exactly zero.
    """

    rewards: FloatArray  # [n]: in V^{r_i}
    costs: FloatArray  # [k]: in V^{c_j}

    @classmethod
    def behind(cls, rounding: float, *, rewards: Any, costs: Any) -> Underflow:
        """Return what may be hidden.

        Parameters
        ----------
        rounding
            The relative error of an evaluation, which counts the roundings that can come one after the other.
        rewards, costs : [n], [k]
            The largest sums of absolute rewards and costs that there can be.
        """
        lost = SMALLEST * (rounding / UNIT_ROUNDOFF)
        return cls(lost * (1 + np.asarray(rewards)), lost * (1 + np.asarray(costs)))


def action_values(cmdp: CMDP, policy: FloatArray) -> FloatArray:
    """Return Q_h(s, a) of the reward and of every cost under a policy [H, S, A]: [H, 1 + k, S, A]."""
    found = np.empty((cmdp.num_steps, 1 + cmdp.num_constraints, *cmdp.policy_shape[1:]))
    if cmdp.discount is not None:
        ahead = cmdp.discount * (cmdp.matrix(0) @ stationary_values(cmdp, policy[0]))
        for index, table in enumerate((cmdp.reward, *cmdp.costs)):
            found[0, index] = table[0] + ahead[:, index].reshape(table[0].shape)
        return found

    def average(step: int, worth: FloatArray) -> FloatArray:
        found[step] = worth.reshape(found[step].shape)
        return _average(policy, step, worth)

    backward_induction(stages_backwards(cmdp), partial(add_future, cmdp), average)
    return found


def _average(policy: FloatArray, step: int, worth: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("sa,lsa->ls", policy[step], worth.reshape(len(worth), *policy.shape[1:])))


def backward_induction(
    stages: Iterable[tuple[int, npt.NDArray[Any]]],
    add_future: Callable[[int, npt.NDArray[Any], npt.NDArray[Any]], None],
    choose: Callable[[int, npt.NDArray[Any]], npt.NDArray[Any]],
) -> npt.NDArray[Any]:
    """Return V_0, where V_h = choose(h, Q_h) and Q_h is the stage h with what follows from V_{h+1} added to it.

    Parameters
    ----------
    stages
        Steps, the last one first, each with its stage in an array that becomes Q_h.
    add_future
        Called with h, that array and V_{h+1}: adds what follows, in place.
    choose
        Called with h and Q_h: an average over actions, a maximum, or what an agent chooses.
    """
    to_go: npt.NDArray[Any] | None = None
    for step, worth in stages:
        if to_go is not None:
            add_future(step, worth, to_go)
        to_go = choose(step, worth)
    assert to_go is not None, "every horizon has a step"
    return to_go


def stages_backwards(cmdp: CMDP) -> Iterator[tuple[int, FloatArray]]:
    """Yield every step, the last one first, with its reward and its costs as a new array [1 + k, S·A]."""
    tables = (cmdp.reward, *cmdp.costs)
    shape = (len(tables), cmdp.num_states, cmdp.num_actions)
    # A block of steps at a time: in small processes the calls of NumPy take the time, and no large table is copied.
    for block in blocks_backwards(cmdp.num_steps, prod(shape)):
        stages = np.empty((block.stop - block.start, *shape), dtype=cmdp.reward.dtype)
        for index, table in enumerate(tables):
            stages[:, index] = table if len(table) == 1 else table[block]
        yield from steps_backwards(block, stages.reshape(*stages.shape[:2], -1))


def blocks_backwards(num_steps: int, entries: int) -> Iterator[slice]:
    """Yield slices of steps, the last ones first, each of about BLOCK entries unless one step has more."""
    length = max(BLOCK // entries, 1)
    for end in range(num_steps, 0, -length):
        check_time()
        yield slice(max(end - length, 0), end)


def steps_backwards(block: slice, stages: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the steps of a block, the last one first, each with its row of `stages` [B, ...]."""
    return zip(range(block.stop - 1, block.start - 1, -1), stages[::-1], strict=True)


def add_future(cmdp: CMDP, step: int, worth: FloatArray, to_go: FloatArray) -> None:
    """Add Σ_{s'} P_h(s' | s, a) v_l(s') to every table l in place, for tables [1 + k, S·A] and values v [1 + k, S]."""
    matrix = cmdp.matrix(step)
    # Reading a dense matrix is what takes the time, so it is read once; CSR products are faster one by one.
    if sp.issparse(matrix):
        for table, values in zip(worth, to_go, strict=True):
            table += matrix @ values
    else:
        worth += (matrix @ to_go.T.copy()).T  # BLAS takes twice as long for columns that are apart in memory


def occupancy(cmdp: CMDP, policy: Any) -> FloatArray:
    """Return ρ_h(s, a), the probability of being in s and playing a at step h; discounted, the expected visits.

    Returns
    -------
    [H, S, A]
        Each step sums to one (discounted: the one step sums to 1/(1 − γ)).
    """
    table = check_policy(cmdp, policy)
    if cmdp.discount is not None:
        flow = flow_of(cmdp.matrix(0), table[0])
        visits = discounted_visits(flow, cmdp.initial, cmdp.discount, rounding=cmdp.step_rounding)
        return visits[None, :, None] * table
    result = np.empty(table.shape, dtype=table.dtype)
    if (compiled := kernels_for(cmdp)) is not None:
        kernels, process = compiled
        kernels.occupancy(process, np.ascontiguousarray(table), result)
        return result
    states = cmdp.initial
    for step in range(cmdp.num_steps):
        check_time()
        result[step] = states[:, None] * table[step]
        if step + 1 < cmdp.num_steps:
            states = cmdp.matrix(step).T @ result[step].ravel()
    return result


def plan_visits(cmdp: CMDP, actions: IntArray) -> FloatArray:
    """Return how probable states are on a finite horizon, if actions [H, S] are played for sure: [H, S]."""
    found = np.zeros(actions.shape)
    if (compiled := kernels_for(cmdp)) is not None:
        kernels, process = compiled
        kernels.visits(process, np.ascontiguousarray(actions), found)
        return found
    found[0] = cmdp.initial
    for step in range(cmdp.num_steps - 1):
        check_time()
        pairs = np.zeros(cmdp.policy_shape[1:])
        pairs[np.arange(cmdp.num_states), actions[step]] = found[step]
        found[step + 1] = cmdp.matrix(step).T @ pairs.ravel()
    return found


def policy_from_occupancy(occupancy: FloatArray, unvisited: FloatArray) -> FloatArray:
    """Return π_h(a | s) = ρ_h(s, a) / Σ_a ρ_h(s, a), and the rows of `unvisited` where ρ_h(s, ·) is zero.

    The paper fills unvisited rows uniformly; any filling has the same value, but not the same equilibria: other agents'
    deviations reach those rows.
    """
    totals = occupancy.sum(axis=-1, keepdims=True)
    visited = totals > 0
    return np.where(visited, occupancy / np.where(visited, totals, 1.0), unvisited)


def check_policy(cmdp: CMDP, policy: Any) -> FloatArray:
    """Return the policy as an array of floats of the right shape."""
    table: FloatArray = np.asarray(policy)
    check_shape("policy", table.shape, cmdp.policy_shape, error=PolicyError)
    if table.dtype.hasobject:
        return to_floats(numbers("policy", table, error=PolicyError))
    return table.astype(np.float64, copy=False)


def stationary_values(cmdp: CMDP, rows: FloatArray) -> FloatArray:
    """Return the discounted values of the reward and of every cost of a stationary policy [S, A]: [S, 1 + k]."""
    stage = np.stack([np.einsum("sa,sa->s", rows, table[0]) for table in (cmdp.reward, *cmdp.costs)], axis=-1)
    return _stationary_values(cmdp, stage, flow_of(cmdp.matrix(0), rows))


def plan_values(cmdp: CMDP, actions: IntArray) -> FloatArray:
    """Return the same if actions [S] are played for sure: [S, 1 + k]."""
    rows = np.arange(0, cmdp.num_states * cmdp.num_actions, cmdp.num_actions) + actions
    stage = np.stack([table[0].ravel()[rows] for table in (cmdp.reward, *cmdp.costs)], axis=-1)
    return _stationary_values(cmdp, stage, cmdp.matrix(0), rows)


def _stationary_values(cmdp: CMDP, stage: FloatArray, flow: Any, rows: IntArray | None = None) -> FloatArray:
    assert cmdp.discount is not None
    try:
        found = discounted_values(flow, stage, cmdp.discount, rounding=cmdp.step_rounding, rows=rows)
    except SolverError:
        if cmdp.sizes.max() < NEXT_TO_OVERFLOW:
            raise
        return np.full(stage.shape, np.nan)  # overflow, of which sums over a finite horizon are no numbers either
    return with_exact_zeros(flow, stage, found.absolute, rows=rows)
