"""Exact best responses by dynamic programming alone, and the policy of greatest slack that every solver can lean on.

The pairs (V^c, V^r) of all policies form a convex polytope whose vertices belong to deterministic policies, and a
plan for r − λ·c finds the vertex that is extreme in that direction. `frontier.py` has the search among them; here it
is given a CMDP: plans are backward inductions, and a mixture of plans is the policy with their mean occupancy.

Guarantee: value ≤ optimum ≤ bound with a gap that is rounding; and V^c ≤ α holds in exact arithmetic wherever the least
cost leaves room for it, because the cost stays below α by the rounding margin of its own evaluation, or was found to
be at most α in rationals. The tables of an agent's CMDP in a game are rounded themselves: there, a plan whose computed
cost is exactly α is accepted, and whether the game agrees to the last bit is for the game's certificate to say.

Repair: costs are linear in the occupancy, so a mixture with the policy of greatest slack meets the thresholds as soon
as its share is excess/(excess + slack), and it loses no more than that share of the reward range. The paper's remark
asks for it, since CA-CMPG breaks on any violation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import HIDDEN_BY_UNDERFLOW, occupancy, policy_from_occupancy
from cmpg.cmdp.frontier import CMDPProgram, Slack, best_mixture, widest_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, dual_bound, plan
from cmpg.cmdp.response import (
    Aim,
    BestResponse,
    EvaluatedPolicy,
    cost_margins,
    infeasible,
    mixed_policy,
    move_inside,
)
from cmpg.errors import SolverError

MAX_ENTRIES = 5_000
"""Costs are not computed in rationals along more transition entries than this: that takes too long."""

MAX_BITS = 1_000
"""Nor with longer denominators than this. Costs that equal a threshold by design have short ones."""

CMDPSlack = Slack[Plan, EvaluatedPolicy]
"""The policy of a CMDP that keeps the worst constraint furthest below its threshold, and the proof."""


@dataclass(frozen=True)
class Exact:
    """The default solver: as exact as floating point allows, and fast on large state spaces.

    Examples
    --------
    Two steps of work are worth 2, and cost 2; half of that is allowed.

    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0, 1]]], costs=[[[[0, 1]]]], thresholds=[1.0],
    ...             initial=[1.0], horizon=2)
    >>> best = Exact()(cmdp)
    >>> round(best.value, 9), best.multipliers.round(9)
    (1.0, array([1.]))
    """

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return an optimal policy of the CMDP, or raise InfeasibleError."""
        # The tables of an induced CMDP are rounded already: there, only the game itself could say more than they do.
        accepts = None if cmdp.entry_roundings else partial(provably_meets, cmdp)
        found = best_mixture(_program(cmdp, rng), accepts=accepts)
        return found.mixture.response(multipliers=found.multipliers, work=found.plans + 1)


def _program(cmdp: CMDP, rng: np.random.Generator | None) -> CMDPProgram[Plan, EvaluatedPolicy]:
    """Return the CMDP as the search sees it: plans are backward inductions, a mixture has their mean occupancy."""

    def mix(plans: Sequence[Plan], *, weights: FloatArray, unvisited: FloatArray) -> EvaluatedPolicy:
        if len(plans) == 1:
            return EvaluatedPolicy(cmdp, plans[0].policy(cmdp.num_actions))
        return EvaluatedPolicy(cmdp, mixed_policy(cmdp, plans, weights=weights, unvisited=unvisited))

    return CMDPProgram(cmdp, partial(plan, cmdp, rng=rng), mix)


def proved_maximum(cmdp: CMDP) -> tuple[float, FloatArray]:
    """Return what no policy that meets the constraints exceeds, in exact arithmetic, and multipliers [k] that prove it.

    Raises InfeasibleError if no policy meets them.
    """
    try:
        multipliers = Exact()(cmdp).multipliers
    except SolverError:
        multipliers = np.zeros(cmdp.num_constraints)  # any multipliers prove something
    return proved_bound(cmdp, multipliers), multipliers


def proved_bound(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return the dual bound at multipliers [k], with an allowance for all rounding in it."""
    size = float(cmdp.sizes[0] + multipliers @ (cmdp.sizes[1:] + np.abs(cmdp.thresholds)))
    hidden = HIDDEN_BY_UNDERFLOW if cmdp.sizes[0] or multipliers.any() else 0.0  # sums of zeros are exact
    return float(dual_bound(cmdp, multipliers)) + 2 * cmdp.rounding * size + hidden


def greatest_slack(cmdp: CMDP, *, units: FloatArray | None = None, rng: np.random.Generator | None = None) -> CMDPSlack:
    """Maximise min_j (α_j − V^{c_j})/units_j over all policies.

    Parameters
    ----------
    cmdp
        A CMDP with at least one constraint.
    units : [k]
        In what each constraint's slack is measured: ones unless given.
    rng
        Breaks ties at random.
    """
    return widest_slack(_program(cmdp, rng), units=units)


def check_feasible(cmdp: CMDP, safe: CMDPSlack) -> None:
    """Raise InfeasibleError if the greatest slack is proven negative, beyond what rounding can do."""
    if safe.least > safe.multipliers @ (cmdp.thresholds + cost_margins(cmdp)):
        raise infeasible(cmdp, safe.multipliers, safe.least)


def repaired(cmdp: CMDP, visits: FloatArray, safe: CMDPSlack) -> FloatArray:
    """Return the policy of an occupancy, mixed with the safe policy's by as much as the thresholds make necessary.

    Parameters
    ----------
    cmdp
        The process.
    visits : [H, S, A]
        The occupancy of a policy, up to rounding.
    safe
        A policy that meets the thresholds; it also fills the rows that are never visited.
    """
    retreat = occupancy(cmdp, safe.policy)
    aim = Aim.at(cmdp.thresholds, cost_margins(cmdp), safe_costs=safe.costs)

    def mixture_at(share: float) -> EvaluatedPolicy:
        return EvaluatedPolicy(cmdp, policy_from_occupancy((1 - share) * visits + share * retreat, safe.policy))

    return move_inside(mixture_at, aim).policy


def provably_meets(cmdp: CMDP, plan: Plan) -> bool:
    """Whether V^{c_j} ≤ α_j holds exactly for a plan; False also if finding out would take too long.

    Numbers are read as the rationals that they are, and rows of probabilities are divided by their exact sums.
    """
    if cmdp.discount is not None:
        return False
    visits = _divided_by_sum({s: Fraction(float(p)) for s, p in enumerate(cmdp.initial) if p})
    totals = [Fraction(0)] * cmdp.num_constraints
    entries = 0
    for step in range(cmdp.num_steps):
        ahead: dict[int, Fraction] = {}
        for state, reached in visits.items():
            action = int(plan.actions[step, state])
            for j, cost in enumerate(cmdp.costs):
                totals[j] += reached * Fraction(float(cost[0 if len(cost) == 1 else step, state, action]))
            row = _row(cmdp, step, state * cmdp.num_actions + action) if step < cmdp.num_steps - 1 else {}
            entries += len(row)
            if entries > MAX_ENTRIES or reached.denominator.bit_length() > MAX_BITS:
                return False
            for target, probability in row.items():
                ahead[target] = ahead.get(target, Fraction(0)) + reached * probability
        visits = ahead
    return all(total <= Fraction(float(most)) for total, most in zip(totals, cmdp.thresholds, strict=True))


def _row(cmdp: CMDP, step: int, pair: int) -> dict[int, Fraction]:
    """Return where a state and action lead, with exact probabilities."""
    matrix = cmdp.matrix(step)
    if sp.issparse(matrix):
        span = slice(matrix.indptr[pair], matrix.indptr[pair + 1])
        targets, entries = matrix.indices[span], matrix.data[span]
    else:
        targets = np.flatnonzero(matrix[pair])
        entries = matrix[pair, targets]
    return _divided_by_sum({int(s): Fraction(float(p)) for s, p in zip(targets, entries, strict=True)})


def _divided_by_sum(weights: dict[int, Fraction]) -> dict[int, Fraction]:
    total = sum(weights.values())
    return {state: weight / total for state, weight in weights.items()}
