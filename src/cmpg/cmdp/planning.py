"""Planning without constraints: backward induction, policy iteration, and the dual bound.

Everything that the solvers and the certificate do with a CMDP is a sequence of plans for the scalarised reward
w·r − λ·c. `plan` backs up reward and costs apart, so that it knows what its policy spends; `maximise` and `dual_bound`
back up r − λ·c alone, a quarter of the work.

Guarantee (weak duality): for every λ ≥ 0 and every policy with V^{c_j} ≤ α_j,
    V^r(π) ≤ λ·α + max_π V^{r − λc},
and the right-hand side is one backward induction: `dual_bound`.

Ties: if the reward counts, action values closer than 1e-12 of the scale are tied. A plan for the least cost may
lose no more than `CMDP.rounding` of it to ties, since thresholds can be that tight: there, action values are tied if
one step's rounding can separate them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray, frozen
from cmpg.cmdp.discounted import Optimum, optimum
from cmpg.cmdp.evaluation import (
    NEXT_TO_OVERFLOW,
    add_future,
    backward_induction,
    blocks_backwards,
    plan_values,
    stages_backwards,
    steps_backwards,
)
from cmpg.cmdp.kernels.choice import kernels_for
from cmpg.cmdp.model import CMDP, drop_broadcast
from cmpg.errors import SolverError

TIE = 1e-12
"""Two action values are tied if they differ by less than this, relative to the scale of the rewards."""


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

    Ties go to the cheaper action if the reward counts, and to the better rewarded one if it does not (w = 0);
    what is still tied goes to the first action, or to a random one if a generator is given.

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
    rule = choice_rule(cmdp, multipliers, reward_weight=reward_weight, rng=rng)
    if cmdp.discount is not None:
        return _policy_iteration(cmdp, rule)
    chosen = np.empty(cmdp.policy_shape[:2], dtype=np.int64)
    totals = compiled_plan(cmdp, rule, chosen)
    if totals is not None:
        return Plan(actions=chosen, value=float(totals[0]), costs=totals[1:])

    def choose(step: int, worth: FloatArray) -> FloatArray:
        chosen[step], to_go = rule.choose(worth, cmdp.num_actions)
        return to_go

    first = backward_induction(stages_backwards(cmdp), partial(add_future, cmdp), choose)
    totals = first @ cmdp.initial
    return Plan(actions=chosen, value=float(totals[0]), costs=totals[1:])


def compiled_plan(
    cmdp: CMDP, rule: ChoiceRule, chosen: IntArray, *, box: Any = None, rows: FloatArray | None = None
) -> FloatArray | None:
    """Plan with the compiled kernel; return the reward and the costs [1 + k], or None if the NumPy twin is to run.

    Parameters
    ----------
    cmdp, rule
        What to plan for.
    chosen : [H, S]
        Where the actions go.
    box
        The tables of a box of transitions (`BoxCMDP.packed`), to plan with its best rows.
    rows : [H, S, S]
        Where the rows of the box go.
    """
    if (compiled := kernels_for(cmdp)) is None:
        return None
    kernels, process = compiled
    to_go, totals = np.empty((cmdp.num_states, len(rule.weights))), np.empty(len(rule.weights))
    relative = -1.0 if rule.relative_tie is None else rule.relative_tie
    setting = (process, box, rule.weights, rule.second, rule.tie, rule.second_tie, relative)
    arrays, ask = (chosen, rows, to_go, totals), rule.rng is not None
    step, noise = cmdp.num_steps - 1, None
    # The kernel stops at a step whose ties are to be broken at random, and goes on with the noise for it.
    while (step := kernels.plan(*setting, step, *arrays, noise, ask)) >= 0:
        assert rule.rng is not None
        noise = rule.rng.random((cmdp.num_actions, cmdp.num_states))
    return totals


def greedy_policy(cmdp: CMDP, multipliers: FloatArray, *, rng: np.random.Generator | None = None) -> FloatArray:
    """Return the policy [H, S, A] that maximises V^{r − λc} from every state, visited or not."""
    return plan(cmdp, multipliers, rng=rng).policy(cmdp.num_actions)


@dataclass(frozen=True, eq=False)
class ChoiceRule:
    """Picks the action of largest weighted value; among ties by a second weighting, then the first or a random one."""

    weights: FloatArray  # [1 + k]: of the reward and of each cost
    second: FloatArray  # [1 + k]
    tie: float
    second_tie: float
    rng: np.random.Generator | None
    relative_tie: float | None = None  # ties are not wider than this share of the largest value either

    def choose(self, worth: FloatArray, num_actions: int) -> tuple[IntArray, FloatArray]:
        """Return what to play, and what it is worth, given action values [1 + k, S·A]: [S], [1 + k, S]."""
        by_action = _by_action(self.weights @ worth, num_actions)
        best = np.maximum.reduce(by_action)
        width = self.tie if self.relative_tie is None else np.minimum(self.tie, self.relative_tie * np.abs(best))
        tied = by_action >= best - width
        if np.count_nonzero(tied) == len(best):
            chosen = np.asarray(tied.argmax(axis=0))
        else:
            chosen = self.among(tied, _by_action(self.second @ worth, num_actions))
        return chosen, worth.take(np.arange(0, worth.shape[1], num_actions) + chosen, axis=1)

    def among(self, tied: npt.NDArray[np.bool_], second: FloatArray) -> IntArray:
        """Choose among tied actions [A, S] by what the second weighting makes of them [A, S]."""
        worth = np.where(tied, second, -np.inf)
        best = worth >= np.maximum.reduce(worth) - self.second_tie
        return _one_of_each_column(best, self.rng)


def choice_rule(
    cmdp: CMDP, multipliers: FloatArray, *, reward_weight: float = 1.0, rng: np.random.Generator | None = None
) -> ChoiceRule:
    """Return how `plan` chooses among actions: by w·r − λ·c, then by its rule for ties."""
    weights = np.empty(1 + cmdp.num_constraints)
    weights[0] = reward_weight
    weights[1:] = multipliers
    np.negative(weights[1:], out=weights[1:])
    second = _second_weighting(len(weights), by_cost=reward_weight != 0)
    if reward_weight:
        tie = TIE * _scale(cmdp, weights)
        relative = None
    else:
        # What a tie may lose at each step adds up over the steps to no more than the rounding of the least cost, which
        # is relative to the cost itself where no cost is negative.
        tie = cmdp.step_rounding * float(np.abs(weights) @ cmdp.sizes)
        relative = cmdp.step_rounding if cmdp.nonnegative[weights[1:] < 0].all() else None
    return ChoiceRule(weights, second, tie, TIE * _scale(cmdp, second), rng, relative)


@cache
def _second_weighting(tables: int, *, by_cost: bool) -> FloatArray:
    """Return the weights that decide ties: −1 for every cost, or 1 for the reward."""
    reward = np.arange(tables) == 0
    return frozen(np.where(reward, 0.0, -1.0) if by_cost else np.where(reward, 1.0, 0.0))


def _scale(cmdp: CMDP, weights: FloatArray) -> float:
    return float(np.abs(weights) @ cmdp.step_sizes) or 1.0


def _by_action(values: npt.NDArray[Any], num_actions: int) -> npt.NDArray[Any]:
    """Return values [S·A] as [A, S]: NumPy reduces many short rows four times slower than a few long ones."""
    return np.ascontiguousarray(values.reshape(-1, num_actions).T)


def _one_of_each_column(mask: npt.NDArray[np.bool_], rng: np.random.Generator | None) -> IntArray:
    """Return the row of the first True of each column of masks [..., A, S], or of a random one."""
    if rng is None:
        return np.asarray(mask.argmax(axis=-2))
    return np.asarray(np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=-2))


def dual_bound(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return λ·α + max_π V^{r − λc}: no policy that meets the constraints is worth more.

    On a discounted CMDP the remaining residual of policy iteration is added.

    Parameters
    ----------
    cmdp
        The process.
    multipliers : [k]
        λ ≥ 0.
    """
    spent: Any = multipliers @ cmdp.thresholds if cmdp.num_constraints else 0
    if cmdp.discount is not None:
        try:
            most = _optimum(cmdp, _scalarisation(multipliers)).bound(cmdp.initial, cmdp.discount)
        except SolverError:
            if cmdp.sizes.max() < NEXT_TO_OVERFLOW:
                raise
            return np.inf  # sums that overflow are bounded by nothing
        return most + float(spent)
    if (compiled := kernels_for(cmdp)) is not None:
        kernels, process = compiled
        return kernels.bound(process, _scalarisation(multipliers)) + spent  # type: ignore[no-any-return]
    best = backward_induction(
        _scalar_stages(cmdp, multipliers), partial(_add_scalar_future, cmdp), lambda _, worth: np.maximum.reduce(worth)
    )
    return cmdp.initial @ best + spent  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Maximum:
    """The maximum of V^{r − λc}, and the actions that reach it."""

    value: float
    _values: FloatArray  # [H, S]
    _blocks: list[FloatArray]  # each [B, A, S]: the action values, from the last steps to the first

    def actions(self, rng: np.random.Generator | None = None) -> IntArray:
        """Return the best actions [H, S]: of several equals the first, or a random one."""
        return np.concatenate([_one_of_each_column(mask, rng) for mask in self._masks(0.0)])

    def tied(self, width: float) -> npt.NDArray[np.bool_]:
        """Return which actions are within `width` of the best: [H, S, A]."""
        return np.concatenate([mask.transpose(0, 2, 1) for mask in self._masks(width)])

    def _masks(self, width: float) -> Iterator[npt.NDArray[np.bool_]]:
        begin = 0
        for block in reversed(self._blocks):
            yield block >= self._values[begin : begin + len(block), None] - width
            begin += len(block)


def maximise(cmdp: CMDP, multipliers: FloatArray) -> Maximum:
    """Maximise V^{r − λc} on a finite horizon by one scalar backward induction.

    Parameters
    ----------
    cmdp
        A process with a finite horizon; its thresholds play no part.
    multipliers : [k]
        λ.
    """
    blocks: list[FloatArray] = []
    values = np.empty(cmdp.policy_shape[:2], dtype=cmdp.reward.dtype)
    first = backward_induction(
        _scalar_stages(cmdp, multipliers, blocks),
        partial(_add_scalar_future, cmdp),
        lambda step, worth: np.maximum.reduce(worth, out=values[step]),
    )
    return Maximum(float(cmdp.initial @ first), values, blocks)


def best_table(
    cmdp: CMDP, best: Maximum, multipliers: FloatArray, *, rng: np.random.Generator | None = None
) -> FloatArray:
    """Return the best actions as a table; where a constraint is free, those that spend no more of it than they must."""
    if multipliers.all():
        return certain_rows(best.actions(rng), cmdp.num_actions)
    return plan(cmdp, multipliers, rng=rng).policy(cmdp.num_actions)


def _scalar_stages(
    cmdp: CMDP, multipliers: FloatArray, blocks: list[FloatArray] | None = None
) -> Iterator[tuple[int, FloatArray]]:
    """Yield every step, the last one first, with (r − λ·c)_h as a new array [A, S]; `blocks` gathers them.

    A step is a few products and sums of small arrays, and calling NumPy takes longer than they do: what does not wait
    for the next step is done for a block of steps at once, which is small enough to stay in the cache.
    """
    steps, states, actions = cmdp.policy_shape
    for block in blocks_backwards(steps, states * actions):
        total = drop_broadcast(cmdp.reward if len(cmdp.reward) == 1 else cmdp.reward[block])
        for multiplier, cost in zip(multipliers, cmdp.costs, strict=True):
            if multiplier:
                total = total - multiplier * drop_broadcast(cost if len(cost) == 1 else cost[block])
        stages = np.empty((block.stop - block.start, actions, states), dtype=total.dtype)
        stages[:] = total.transpose(0, 2, 1)
        if blocks is not None:
            blocks.append(stages)
        yield from steps_backwards(block, stages)


def _add_scalar_future(cmdp: CMDP, step: int, worth: FloatArray, to_go: FloatArray) -> None:
    """Add Σ_{s'} P_h(s' | s, a) v(s') in place, for action values [A, S]."""
    worth += (cmdp.matrix(step) @ to_go).reshape(worth.shape[::-1]).T


def scalarised_backup(cmdp: CMDP, multipliers: FloatArray, to_go: FloatArray) -> FloatArray:
    """Return (r − λ·c)(s, a) + γ Σ_{s'} P(s' | s, a) v(s') of a discounted CMDP: [S, A]."""
    assert cmdp.discount is not None
    total = _weighted_stage(cmdp, _scalarisation(multipliers))
    return np.asarray(total + cmdp.discount * (cmdp.matrix(0) @ to_go).reshape(total.shape))


def _scalarisation(multipliers: FloatArray) -> FloatArray:
    """Return the weights of the reward and of each cost in r − λ·c: [1 + k]."""
    return np.concatenate([[1.0], -np.asarray(multipliers, dtype=np.float64)])


def _weighted_stage(cmdp: CMDP, weights: FloatArray) -> FloatArray:
    """Return Σ_l w_l l(s, a) of a discounted CMDP: [S, A]; if only the reward counts, that is the table itself."""
    total = cmdp.reward[0]
    if weights[0] != 1:
        total = weights[0] * total
    for weight, cost in zip(weights[1:], cmdp.costs, strict=True):
        if weight:
            total = total + weight * cost[0]
    return np.asarray(total)


def _policy_iteration(cmdp: CMDP, rule: ChoiceRule) -> Plan:
    """Find the actions that are optimal for the first weighting, then among them those that are for the second."""
    # Lexicographic: only actions that are optimal for the first weighting are open to the second.
    tied = _optimum(cmdp, rule.weights).actions
    if np.count_nonzero(tied) == len(tied):
        chosen = np.asarray(tied.argmax(axis=1))
    else:
        best = _optimum(cmdp, rule.second, tied).actions if rule.second.any() else tied
        chosen = rule.among(tied.T, np.where(best, 1.0, 0.0).T)
    totals = cmdp.initial @ plan_values(cmdp, chosen)
    return Plan(actions=chosen[None], value=float(totals[0]), costs=totals[1:])


def _optimum(cmdp: CMDP, weights: FloatArray, allowed: npt.NDArray[np.bool_] | None = None) -> Optimum:
    """Find the actions that are optimal for Σ_l w_l l among those that are allowed [S, A]."""
    assert cmdp.discount is not None
    # What rounding can do to an action value; a whole policy of such actions loses at most 1/(1 − γ) times as much.
    tie = 2 * cmdp.step_rounding * float(np.abs(weights) @ cmdp.sizes)
    stage = _weighted_stage(cmdp, weights)
    return optimum(cmdp.matrix(0), stage, cmdp.discount, rounding=cmdp.step_rounding, tie=tie, allowed=allowed)
