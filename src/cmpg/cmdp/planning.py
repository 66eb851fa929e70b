"""Planning without constraints: backward induction, policy iteration, and the dual bound.

Everything that the solvers and the certificate do with a CMDP is a sequence of plans for the scalarised reward w·r − λ·c.

Guarantee (weak duality): for every λ ≥ 0 and every policy with V^{c_j} ≤ α_j,
    V^r(π) ≤ λ·α + max_π V^{r − λc},
and the right-hand side is one backward induction: `dual_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.checks import FloatArray, IntArray
from cmpg.cmdp.model import CMDP, stationary_values

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
        return np.eye(num_actions)[self.actions]


def plan(
    cmdp: CMDP, multipliers: FloatArray, *, reward_weight: float = 1.0, rng: np.random.Generator | None = None
) -> Plan:
    """Maximise w·V^r − λ·V^c over all policies.

    Ties go to the cheaper action where the reward counts, and to the better rewarded one where it does not (w = 0); what is
    still tied goes to the first action, or to a random one where a generator is given.

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
    weights = np.concatenate([[reward_weight], -np.asarray(multipliers, dtype=np.float64)])
    second = np.concatenate([[0.0], -np.ones(cmdp.num_constraints)]) if reward_weight else np.eye(1, len(weights))[0]
    chooser = _Chooser(weights, second, TIE * _scale(cmdp, weights), TIE * _scale(cmdp, second), rng)
    return _policy_iteration(cmdp, chooser) if cmdp.discount is not None else _backward_induction(cmdp, chooser)


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
    budget = multipliers @ cmdp.thresholds if cmdp.num_constraints else 0
    if cmdp.discount is not None:
        return float(budget + _discounted_maximum(cmdp, np.concatenate([[1.0], -multipliers])))
    to_go = np.zeros(cmdp.num_states, dtype=cmdp.reward.dtype)
    for step in reversed(range(cmdp.num_steps)):
        to_go = scalarised_backup(cmdp, multipliers, step, to_go).max(axis=1)
    return cmdp.initial @ to_go + budget  # type: ignore[no-any-return]


def greedy_policy(cmdp: CMDP, multipliers: FloatArray, *, rng: np.random.Generator | None = None) -> FloatArray:
    """Return the policy [H, S, A] that maximises V^{r − λc} from every state, visited or not."""
    return plan(cmdp, multipliers, rng=rng).policy(cmdp.num_actions)


def scalarised_backup(cmdp: CMDP, multipliers: FloatArray, step: int, to_go: FloatArray) -> FloatArray:
    """Return (r − λ·c)_h(s, a) + Σ_{s'} P_h(s' | s, a) v(s'): [S, A]."""
    stage = cmdp.reward[0 if len(cmdp.reward) == 1 else step]
    if cmdp.num_constraints:
        costs = cmdp.costs[:, 0 if cmdp.costs.shape[1] == 1 else step]
        stage = stage - np.tensordot(multipliers, costs, axes=1)
    if step == cmdp.num_steps - 1 and cmdp.discount is None:
        return stage
    ahead = (cmdp.matrix(step) @ to_go).reshape(stage.shape)
    return stage + (ahead if cmdp.discount is None else cmdp.discount * ahead)


def _scale(cmdp: CMDP, weights: FloatArray) -> float:
    sizes = np.abs(cmdp.stacked).max(axis=(0, 1))
    return float(np.abs(weights) @ sizes) or 1.0


@dataclass(frozen=True, eq=False)
class _Chooser:
    """Picks the action of largest weighted value; ties by a second weighting, then first or at random."""

    weights: FloatArray  # [1 + k]
    second: FloatArray  # [1 + k]
    tie: float
    second_tie: float
    rng: np.random.Generator | None

    def __call__(self, action_values: FloatArray) -> IntArray:
        """Choose for action values [S, A, 1 + k]."""
        first = action_values @ self.weights
        best = first >= first.max(axis=1, keepdims=True) - self.tie
        if not (best.sum(axis=1) > 1).any():
            return best.argmax(axis=1)
        second = np.where(best, action_values @ self.second, -np.inf)
        best = second >= second.max(axis=1, keepdims=True) - self.second_tie
        if self.rng is None:
            return best.argmax(axis=1)
        return np.where(best, self.rng.random(best.shape), -1.0).argmax(axis=1)


def _backward_induction(cmdp: CMDP, choose: _Chooser) -> Plan:
    steps, states, actions = cmdp.policy_shape
    chosen = np.empty((steps, states), dtype=np.int64)
    rows = np.arange(states)
    to_go = np.zeros((states, 1 + cmdp.num_constraints))
    for step in reversed(range(steps)):
        action_values = cmdp.stage(step)
        if step < steps - 1:
            action_values = action_values + cmdp.matrix(step) @ to_go
        action_values = action_values.reshape(states, actions, -1)
        chosen[step] = choose(action_values)
        to_go = action_values[rows, chosen[step]]
    totals = cmdp.initial @ to_go
    return Plan(actions=chosen, value=float(totals[0]), costs=totals[1:])


def _policy_iteration(cmdp: CMDP, choose: _Chooser) -> Plan:
    _, states, actions = cmdp.policy_shape
    rows = np.arange(states)
    chosen = choose(cmdp.stage(0).reshape(states, actions, -1))
    while True:
        to_go = stationary_values(cmdp, np.eye(actions)[chosen])
        ahead = cmdp.discount * (cmdp.matrix(0) @ to_go)
        action_values = (cmdp.stage(0) + ahead).reshape(states, actions, -1)
        weighted = action_values @ choose.weights
        better = choose(action_values)
        # Only strict improvements count, or rounding and random ties could make the iteration turn in circles.
        improves = weighted[rows, better] > weighted[rows, chosen] + choose.tie / (1 - (cmdp.discount or 0.0))
        if not improves.any():
            break
        chosen = np.where(improves, better, chosen)
    totals = cmdp.initial @ to_go
    return Plan(actions=chosen[None], value=float(totals[0]), costs=totals[1:])


def _discounted_maximum(cmdp: CMDP, weights: FloatArray) -> float:
    """An upper bound on max_π V^{w·(r, c)}: for any v, the optimum is at most v + max(Tv − v)⁺/(1 − γ)."""
    chooser = _Chooser(weights, weights, TIE * _scale(cmdp, weights), np.inf, None)
    best = _policy_iteration(cmdp, chooser)
    to_go = stationary_values(cmdp, np.eye(cmdp.num_actions)[best.actions[0]]) @ weights
    backed_up = scalarised_backup(cmdp, -weights[1:], 0, to_go).max(axis=1)
    assert cmdp.discount is not None
    residual = max(float((backed_up - to_go).max()), 0.0)
    return float(cmdp.initial @ to_go) + residual / (1 - cmdp.discount)
