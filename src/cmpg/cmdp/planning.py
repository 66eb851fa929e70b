"""Planning without constraints: backward induction, policy iteration, and the dual bound.

Everything that the solvers and the certificate do with a CMDP is a sequence of plans for the scalarised reward
w·r − λ·c.

Guarantee (weak duality): for every λ ≥ 0 and every policy with V^{c_j} ≤ α_j,
    V^r(π) ≤ λ·α + max_π V^{r − λc},
and the right-hand side is one backward induction: `dual_bound`.

Ties: where the reward counts, action values closer than 1e-12 of the scale are tied. A plan for the least cost may
lose no more than `CMDP.rounding` of it to ties, since thresholds can be that tight: there, action values are tied when
one step's rounding can separate them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray, frozen, to_floats
from cmpg.cmdp.evaluation import (
    add_what_follows,
    blocks_backwards,
    rate,
    resolvent,
    solved,
    stages_backwards,
    stationary_values,
)
from cmpg.cmdp.model import CMDP, thin

SMALL_MASK = 1_000
"""NumPy finds the first True of each column faster than we do in masks of fewer entries than this."""

TIE = 1e-12
"""Two action values are tied when they differ by less than this, relative to the scale of the rewards."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A deterministic policy, optimal for w·r − λ·c, with the value and the costs that it has."""

    actions: IntArray  # [H, S]
    value: float
    costs: FloatArray  # [k]

    def policy(self, num_actions: int) -> FloatArray:
        """Return the policy as a table [H, S, A] of zeros and ones."""
        return certain_rows(self.actions, num_actions)


def certain_rows(actions: IntArray, num_actions: int) -> FloatArray:
    """Return the table [..., A] that plays the given actions [...] for sure."""
    table = np.zeros((*actions.shape, num_actions))
    table.reshape(-1)[np.arange(0, table.size, num_actions) + actions.ravel()] = 1.0
    return frozen(table)


def plan(
    cmdp: CMDP, multipliers: FloatArray, *, reward_weight: float = 1.0, rng: np.random.Generator | None = None
) -> Plan:
    """Maximise w·V^r − λ·V^c over all policies.

    Ties go to the cheaper action where the reward counts, and to the better rewarded one where it does not (w = 0);
    what is still tied goes to the first action, or to a random one where a generator is given.

    Parameters
    ----------
    cmdp
        The process; its thresholds play no part.
    multipliers : [k]
        λ.
    reward_weight
        w: 1, or 0 to minimise λ·V^c.
    rng
        Breaks ties at random.
    """
    choose = choice_rule(cmdp, multipliers, reward_weight=reward_weight, rng=rng)
    return _policy_iteration(cmdp, choose) if cmdp.discount is not None else _backward_induction(cmdp, choose)


def choice_rule(
    cmdp: CMDP, multipliers: FloatArray, *, reward_weight: float = 1.0, rng: np.random.Generator | None = None
) -> Chooser:
    """Return how `plan` chooses among actions: by w·r − λ·c, then by its rule for ties."""
    prices = np.asarray(multipliers, dtype=np.float64)
    weights = np.concatenate([[reward_weight], -prices])
    if reward_weight:
        second = -np.ones(len(weights))
        second[0] = 0.0
        tie = TIE * _scale(cmdp, weights)
        relative = None
    else:
        second = np.zeros(len(weights))
        second[0] = 1.0
        tie = cmdp.step_rounding * float(np.abs(weights) @ cmdp.sizes)
        relative = cmdp.step_rounding if cmdp.nonnegative[prices > 0].all() else None
    return Chooser(weights, second, tie, TIE * _scale(cmdp, second), rng, relative)


def dual_bound(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return λ·α + max_π V^{r − λc}: no policy that meets the constraints is worth more.

    Works on floats and on Fractions; on a discounted CMDP the remaining residual of policy iteration is added.

    Parameters
    ----------
    cmdp
        The process.
    multipliers : [k]
        λ ≥ 0.
    """
    budget: Any = multipliers @ cmdp.thresholds if cmdp.num_constraints else 0
    if cmdp.discount is not None:
        return _discounted_maximum(cmdp, multipliers) + budget  # type: ignore[no-any-return]
    for block in _scalar_induction(cmdp, multipliers):
        first = block.values[0]
    return cmdp.initial @ first + budget  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Maximum:
    """The maximum of V^{r − λc}, and the actions that reach it."""

    value: float
    _blocks: list[_Block]  # from the last steps to the first

    def actions(self, rng: np.random.Generator | None = None) -> IntArray:
        """Return the best actions [H, S]: of several equals the first, or a random one."""
        best = (block.by_action == block.values[:, None] for block in reversed(self._blocks))
        return np.concatenate([_one_of_each_column(mask, rng) for mask in best])


def maximise(cmdp: CMDP, multipliers: FloatArray) -> Maximum:
    """Maximise V^{r − λc} on a finite horizon by one scalar backward induction.

    A quarter of the work of `plan`, which knows reward and costs apart, and whose rule for ties needs that.

    Parameters
    ----------
    cmdp
        A process with a finite horizon; its thresholds play no part.
    multipliers : [k]
        λ.
    """
    blocks = list(_scalar_induction(cmdp, multipliers))
    return Maximum(float(cmdp.initial @ blocks[-1].values[0]), blocks)


@dataclass(frozen=True, eq=False)
class _Block:
    """A few steps of a backward induction."""

    by_action: FloatArray  # [B, A, S]
    values: FloatArray  # [B, S]


def _scalar_induction(cmdp: CMDP, multipliers: FloatArray) -> Iterator[_Block]:
    """Maximise V^{r − λc} backwards, and yield blocks of steps, the last ones first.

    A step is a few products and sums of small arrays, and calling NumPy takes longer than they do: what does not wait
    for the next step is done for a block of steps at once, which is small enough to stay in the cache.
    """
    steps, states, actions = cmdp.policy_shape
    to_go: FloatArray | None = None
    for block in blocks_backwards(steps, states * actions):
        stages = _scalar_stages(cmdp, multipliers, block)
        by_action = np.empty((block.stop - block.start, actions, states), dtype=stages.dtype)
        values = np.empty((len(by_action), states), dtype=stages.dtype)
        for row in reversed(range(len(values))):
            stage = stages[row if len(stages) > 1 else 0].T
            if to_go is None:
                by_action[row] = stage
            else:
                ahead = cmdp.matrix(block.start + row) @ to_go
                np.add(ahead.reshape(states, actions).T, stage, out=by_action[row])
            to_go = np.maximum.reduce(by_action[row], out=values[row])
        yield _Block(by_action, values)


def _scalar_stages(cmdp: CMDP, multipliers: FloatArray, block: slice) -> FloatArray:
    """Return (r − λ·c)_h(s, a) for a block of steps, or one for all of them: [B or 1, S, A or 1]."""
    total = thin(cmdp.reward if len(cmdp.reward) == 1 else cmdp.reward[block])
    for multiplier, cost in zip(multipliers, cmdp.costs, strict=True):
        if multiplier:
            total = total - multiplier * thin(cost if len(cost) == 1 else cost[block])
    return np.asarray(total)


def greedy_policy(cmdp: CMDP, multipliers: FloatArray, *, rng: np.random.Generator | None = None) -> FloatArray:
    """Return the policy [H, S, A] that maximises V^{r − λc} from every state, visited or not."""
    return plan(cmdp, multipliers, rng=rng).policy(cmdp.num_actions)


def scalarised_backup(cmdp: CMDP, multipliers: FloatArray, step: int, to_go: FloatArray) -> FloatArray:
    """Return (r − λ·c)_h(s, a) + γ Σ_{s'} P_h(s' | s, a) v(s'), where γ is 1 unless sums are discounted: [S, A]."""
    return _backup(cmdp, [1, *(-multiplier for multiplier in multipliers)], step, to_go)


def _backup(cmdp: CMDP, weights: FloatArray | list[float], step: int, to_go: FloatArray) -> FloatArray:
    """Return Σ_l w_l l_h(s, a) + γ Σ_{s'} P_h(s' | s, a) v(s') for the tables l = r, c_1, …: [S, A]."""
    total = _weighted_stage(cmdp, weights, step)
    if cmdp.discount is not None:
        total = total + rate(cmdp) * (cmdp.matrix(0) @ to_go).reshape(total.shape)
    elif step < cmdp.num_steps - 1:
        total = total + (cmdp.matrix(step) @ to_go).reshape(total.shape)
    return total


def _weighted_stage(cmdp: CMDP, weights: FloatArray | list[float], step: int) -> FloatArray:
    """Return Σ_l w_l l_h(s, a): [S, A]; where only the reward counts, that is the table itself."""
    total = cmdp.reward[0 if len(cmdp.reward) == 1 else step]
    if weights[0] != 1:
        total = weights[0] * total
    for weight, cost in zip(weights[1:], cmdp.costs, strict=True):
        if weight:
            total = total + weight * cost[0 if len(cost) == 1 else step]
    return np.asarray(total)


def _by_action(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a table [S, A] as [A, S]: NumPy reduces many short rows four times slower than a few long ones."""
    return np.ascontiguousarray(table.T)


def _one_of_each_column(mask: npt.NDArray[np.bool_], rng: np.random.Generator | None) -> IntArray:
    """Return the row of the first True of each column of masks [..., A, S], or of a random one."""
    if rng is None:
        return _first_of_each_column(mask)
    return np.asarray(np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=-2))


def _first_of_each_column(mask: npt.NDArray[np.bool_]) -> IntArray:
    """Return mask.argmax(axis=-2) of masks [..., A, S] with a True in each column; NumPy is slow at large ones."""
    if mask.size < SMALL_MASK:
        return np.asarray(mask.argmax(axis=-2))
    count = mask.shape[-2]
    ranks = np.arange(count, 0, -1, dtype=np.min_scalar_type(count))[:, None]
    return np.asarray(count - np.maximum.reduce(mask * ranks, axis=-2).astype(np.int64))


def _scale(cmdp: CMDP, weights: FloatArray) -> float:
    return float(np.abs(weights) @ cmdp.step_sizes) or 1.0


@dataclass(frozen=True, eq=False)
class Chooser:
    """Picks the action of largest weighted value; ties by a second weighting, then first or at random."""

    weights: FloatArray  # [1 + k]
    second: FloatArray  # [1 + k]
    tie: float
    second_tie: float
    rng: np.random.Generator | None
    relative_tie: float | None = None  # ties are not wider than this share of the largest value either

    def __call__(self, action_values: FloatArray) -> IntArray:
        """Choose for action values [S, A, 1 + k]."""
        return self.pick(action_values @ self.weights, lambda: action_values @ self.second)

    def pick(self, first: FloatArray, second: Callable[[], FloatArray]) -> IntArray:
        """Choose by `first` [S, A]; `second()` [S, A] is asked for only where there are ties."""
        by_action = _by_action(first)
        best = np.maximum.reduce(by_action)
        width = self.tie if self.relative_tie is None else np.minimum(self.tie, self.relative_tie * np.abs(best))
        tied = by_action >= best - width
        if np.count_nonzero(tied) == len(best):
            return _first_of_each_column(tied)
        return self._among(tied, _by_action(second()))

    def among(self, tied: npt.NDArray[np.bool_], second: FloatArray) -> IntArray:
        """Choose among tied actions [S, A] by the second weighting, then the first or a random one."""
        return self._among(_by_action(tied), _by_action(second))

    def _among(self, tied: npt.NDArray[np.bool_], second: FloatArray) -> IntArray:
        worth = np.where(tied, second, -np.inf)
        best = worth >= np.maximum.reduce(worth) - self.second_tie
        return _one_of_each_column(best, self.rng)


def _backward_induction(cmdp: CMDP, choose: Chooser) -> Plan:
    """Back up the reward and each cost of every action, and keep those of the chosen ones."""
    steps, *shape = cmdp.policy_shape
    chosen = np.empty((steps, shape[0]), dtype=np.int64)
    offsets = np.arange(0, prod(shape), shape[1])
    to_go: FloatArray | None = None
    for step, worth in stages_backwards(cmdp):
        if to_go is not None:
            add_what_follows(worth, cmdp.matrix(step), to_go)
        first, second = choose.weights @ worth, partial(np.matmul, choose.second, worth)
        chosen[step] = choose.pick(first.reshape(shape), lambda: second().reshape(shape))  # noqa: B023
        to_go = worth.take(offsets + chosen[step], axis=1)
    totals = np.asarray(to_go) @ cmdp.initial
    return Plan(actions=chosen, value=float(totals[0]), costs=totals[1:])


def _policy_iteration(cmdp: CMDP, choose: Chooser) -> Plan:
    """Find the actions that are optimal for the first weighting, then among them those that are for the second."""
    anything = np.ones(cmdp.policy_shape[1:], dtype=np.bool_)
    tied = _optimal_actions(cmdp, choose.weights, anything)
    worth = np.zeros(tied.shape)
    if np.count_nonzero(tied) > len(tied) and choose.second.any():
        worth = np.where(_optimal_actions(cmdp, choose.second, tied), 1.0, 0.0)
    chosen = choose.among(tied, worth)
    totals = cmdp.initial @ stationary_values(cmdp, np.eye(cmdp.num_actions)[chosen])
    return Plan(actions=chosen[None], value=float(totals[0]), costs=totals[1:])


def _optimal_actions(cmdp: CMDP, weights: FloatArray, allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which of the allowed actions are optimal, up to rounding, by policy iteration: [S, A]."""
    everyone = np.arange(len(allowed))
    # What rounding can do to an action value; a whole policy of such actions loses at most 1/(1 − γ) times as much.
    tie = 2 * cmdp.step_rounding * float(np.abs(weights) @ cmdp.sizes)
    stage = _weighted_stage(cmdp, weights, 0)
    chosen = np.where(allowed, stage, -np.inf).argmax(axis=1)
    reached = -np.inf
    while True:
        rows = np.eye(allowed.shape[1])[chosen]
        system = resolvent(cmdp.matrix(0), rows, rate(cmdp))
        to_go = solved(system, stage[everyone, chosen], tolerance=cmdp.step_rounding)
        values = np.where(allowed, _backup(cmdp, weights, 0, to_go), -np.inf)
        better = values.argmax(axis=1)
        improves = values[everyone, better] > values[everyone, chosen] + tie
        # Each round of policy iteration adds something; where it does not, what is left is rounding.
        if not improves.any() or to_go.sum() <= reached:
            return np.asarray(values >= (values.max(axis=1) - tie)[:, None])
        chosen, reached = np.where(improves, better, chosen), to_go.sum()


def _discounted_maximum(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return an upper bound on max_π V^{r − λc}: for any v, the optimum is at most v + max(Tv − v)⁺/(1 − γ)."""
    weights = np.concatenate([[1.0], -np.asarray(multipliers, dtype=np.float64)])
    floats = _rounded(cmdp) if cmdp.is_exact else cmdp
    optimal = _optimal_actions(floats, weights, np.ones(cmdp.policy_shape[1:], dtype=np.bool_))
    everyone, chosen = np.arange(len(optimal)), optimal.argmax(axis=1)
    rows = np.eye(cmdp.num_actions, dtype=np.int64)[chosen]
    stage = scalarised_backup(cmdp, multipliers, 0, np.zeros(cmdp.num_states, dtype=cmdp.reward.dtype))
    system = resolvent(cmdp.matrix(0), rows, rate(cmdp))
    to_go = solved(system, stage[everyone, chosen], tolerance=cmdp.step_rounding)
    residual = (scalarised_backup(cmdp, multipliers, 0, to_go).max(axis=1) - to_go).max()
    return cmdp.initial @ to_go + max(residual, 0) / (1 - rate(cmdp))  # type: ignore[no-any-return]


def _rounded(cmdp: CMDP) -> CMDP:
    """Return an exact CMDP in floats."""
    return replace(
        cmdp,
        transition=to_floats(cmdp.transition),
        reward=to_floats(cmdp.reward),
        costs=to_floats(cmdp.costs),
        thresholds=to_floats(cmdp.thresholds),
        initial=to_floats(cmdp.initial),
        trusted=True,
    )
