"""Exact best responses by dynamic programming alone: frontier search for one constraint, Dantzig-Wolfe for several.

The pairs (V^c, V^r) of all policies form a convex polytope whose vertices belong to deterministic policies, and a plan for
r − λ·c finds the vertex that is extreme in that direction. With one constraint, only the edge of the upper-left frontier
that crosses V^c = α matters: keep one end on each side of α, plan for the slope of the line between them, replace an end,
stop when nothing lies above the line. Mixing the occupancies of the ends so that the cost meets α is optimal, and the slope is the
multiplier. With several constraints the same vertices are columns of a small linear program (Dantzig-Wolfe decomposition),
whose duals are the next direction.

Guarantee: value ≤ optimum ≤ bound with a gap that is rounding; the cost stays below α by the rounding margin of its own
evaluation, so that V^c ≤ α holds in exact arithmetic wherever the least cost leaves room for that margin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cmpg.checks import FloatArray, SolverError
from cmpg.cmdp.master import MasterProgram
from cmpg.cmdp.model import CMDP, evaluate
from cmpg.cmdp.planning import Plan, plan
from cmpg.cmdp.response import BestResponse, cost_margins, infeasible, mixture, respond

FLAT = 1e-13
"""A point lies above a line only if it does so by more than this, relative to the size of the numbers."""

MAX_PLANS = 10_000

Planner = Callable[..., Plan]
"""Called as plan(cmdp, multipliers, reward_weight=…, rng=…)."""


@dataclass(frozen=True)
class Exact:
    """The default solver: as exact as floating point allows, and fast on large state spaces."""

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return an optimal policy of the CMDP, or raise InfeasibleError."""
        if cmdp.num_constraints == 0:
            best = plan(cmdp, np.zeros(0), rng=rng)
            return respond(cmdp, best.policy(cmdp.num_actions), multipliers=np.zeros(0), work=2)
        if cmdp.num_constraints == 1:
            return _frontier_search(cmdp, rng)
        return _column_generation(cmdp, rng)


def _frontier_search(cmdp: CMDP, rng: np.random.Generator | None) -> BestResponse:
    threshold, margin = float(cmdp.thresholds[0]), float(cost_margins(cmdp)[0])
    right = plan(cmdp, np.zeros(1), rng=rng)
    if right.costs[0] <= threshold - margin:
        return respond(cmdp, right.policy(cmdp.num_actions), multipliers=np.zeros(1), work=2)
    safest = left = plan(cmdp, np.ones(1), reward_weight=0.0, rng=rng)
    if left.costs[0] > threshold + margin:
        raise infeasible(cmdp, np.ones(1), float(left.costs[0]))
    target = max(threshold - 2 * margin, float(left.costs[0]))
    edge = _crossing_edge(cmdp, left, right, target=target, rng=rng)
    unvisited = safest.policy(cmdp.num_actions)
    policy = _mix_to_target(cmdp, edge, target=target, unvisited=unvisited)
    return respond(cmdp, policy, multipliers=np.array([edge.slope]), work=edge.plans + 3)


@dataclass(frozen=True, eq=False)
class _Edge:
    """An edge of the frontier: V^r rises by `slope` for each unit of cost from left to right."""

    left: Plan
    right: Plan
    slope: float
    plans: int


def _crossing_edge(
    cmdp: CMDP, left: Plan, right: Plan, *, target: float, rng: np.random.Generator | None
) -> _Edge:
    """Find the edge of the frontier above `target`, given a point on each side of it."""
    width = 1e-14 * max(abs(left.costs[0]), abs(right.costs[0]), float(np.abs(cmdp.costs).max()))
    for plans in range(MAX_PLANS):
        if right.costs[0] - left.costs[0] <= width or right.value <= left.value:
            return _Edge(left, right, 0.0, plans)
        slope = (right.value - left.value) / (right.costs[0] - left.costs[0])
        middle = plan(cmdp, np.array([slope]), rng=rng)
        line = left.value - slope * left.costs[0]
        above = middle.value - slope * middle.costs[0] - line
        size = max(abs(left.value), abs(right.value), slope * abs(left.costs[0]), slope * abs(right.costs[0]))
        if above <= FLAT * size:
            return _Edge(left, right, slope, plans + 1)
        if middle.costs[0] <= target:
            left = middle
        else:
            right = middle
    raise SolverError(f"the frontier search did not end within {MAX_PLANS} plans.")


def _mix_to_target(cmdp: CMDP, edge: _Edge, *, target: float, unvisited: FloatArray) -> FloatArray:
    """Mix the ends of the edge so that the cost, evaluated, is at most the target."""
    low, high = float(edge.left.costs[0]), float(edge.right.costs[0])
    weight = (target - low) / (high - low) if high > low else 0.0
    for _ in range(8):
        weights = np.array([1 - weight, weight])
        policy = mixture(cmdp, [edge.left, edge.right], weights=weights, unvisited=unvisited)
        excess = float(evaluate(cmdp, policy).costs[0]) - target
        if excess <= 0 or weight <= 0:
            return policy
        weight = max(weight - 2 * excess / (high - low), 0.0)
    return mixture(cmdp, [edge.left], weights=np.ones(1), unvisited=unvisited)


def _column_generation(cmdp: CMDP, rng: np.random.Generator | None) -> BestResponse:
    """Dantzig-Wolfe: find the greatest common slack first, then the best value."""
    safe = greatest_slack(cmdp, enough=0.0, rng=rng)
    margins = cost_margins(cmdp)
    if safe.slack < -float(margins.max()):
        raise infeasible(cmdp, safe.multipliers, safe.least)
    master = MasterProgram(safe.plans, np.minimum(cmdp.thresholds, cmdp.thresholds - 2 * margins + max(-safe.slack, 0.0)))
    master.add(plan(cmdp, np.zeros(cmdp.num_constraints), rng=rng))
    for _ in range(MAX_PLANS):
        multipliers, price = master.maximise_value()
        column = plan(cmdp, multipliers, rng=rng)
        if not master.improves(column, multipliers, price):
            break
        master.add(column)
    return _feasible_mixture(cmdp, master, safe, multipliers)


def _feasible_mixture(cmdp: CMDP, master: MasterProgram, safe: Slack, multipliers: FloatArray) -> BestResponse:
    """Turn the master's weights into a policy, moved towards the safe one by what its own rounding makes necessary."""
    unvisited = safe.policy
    policy = mixture(cmdp, master.plans, weights=master.weights, unvisited=unvisited)
    excess = evaluate(cmdp, policy).costs - master.limits
    if (excess > 0).any():
        room = np.maximum(master.limits - safe.costs, 0.0)
        share = float(np.max(np.where(excess > 0, excess / np.maximum(excess + room, 1e-300), 0.0)))
        towards = np.array([1 - min(2 * share, 1.0), min(2 * share, 1.0)])
        blend = np.concatenate([towards[0] * master.weights, towards[1] * safe.weights])
        policy = mixture(cmdp, [*master.plans, *safe.plans], weights=blend, unvisited=unvisited)
    return respond(cmdp, policy, multipliers=multipliers, work=len(master.plans) + len(safe.plans) + 1)


@dataclass(frozen=True, eq=False)
class Slack:
    """The policy that keeps the worst constraint furthest below its threshold, and the proof that none does better."""

    policy: FloatArray  # [H, S, A]
    costs: FloatArray  # [k]
    slack: float  # min_j (α_j − V^{c_j})
    multipliers: FloatArray  # [k], summing to one
    least: float  # the least V^{λ·c}; so no policy has more slack than λ·α − least
    plans: tuple[Plan, ...]
    weights: FloatArray


def greatest_slack(cmdp: CMDP, *, enough: float = np.inf, rng: np.random.Generator | None = None) -> Slack:
    """Maximise min_j (α_j − V^{c_j}) over all policies, or stop as soon as it exceeds `enough`.

    Parameters
    ----------
    cmdp
        A CMDP with at least one constraint.
    enough
        A slack that will do.
    rng
        Breaks ties at random.
    """
    weights = np.full(cmdp.num_constraints, 1.0 / cmdp.num_constraints)
    first = plan(cmdp, weights, reward_weight=0.0, rng=rng)
    master = MasterProgram((first,), cmdp.thresholds)
    for _ in range(MAX_PLANS):
        weights, slack = master.maximise_slack()
        column = plan(cmdp, weights, reward_weight=0.0, rng=rng)
        least = float(weights @ column.costs)
        if slack > enough or least >= float(weights @ cmdp.thresholds) - slack - master.slack_tolerance:
            break
        master.add(column)
    policy = mixture(
        cmdp, master.plans, weights=master.weights, unvisited=column.policy(cmdp.num_actions)
    )
    costs = evaluate(cmdp, policy).costs
    achieved = float((cmdp.thresholds - costs).min())
    return Slack(policy, costs, achieved, weights, least, tuple(master.plans), master.weights)
