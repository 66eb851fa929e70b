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
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.evaluation import occupancy, policy_from_occupancy
from cmpg.cmdp.frontier import Slack, best_mixture, widest_slack
from cmpg.cmdp.kernels.choice import kernels_for
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, choice_rule, dual_bound, plan, run_plan
from cmpg.cmdp.response import (
    Aim,
    BestResponse,
    EvaluatedPolicy,
    cost_margins,
    infeasible,
    mixed_policy,
    move_inside,
)
from cmpg.errors import InfeasibleError, SolverError

MOST_ENTRIES = 5_000
"""Costs are not computed in rationals along more transition entries than this: that takes too long."""

MOST_BITS = 1_000
"""Nor with longer denominators than this. Costs that equal a threshold by design have short ones."""

NARROWED = (5_000, 5_000_000)
"""It pays to tell which actions matter if there are so many triples of step, state and action: 40 kB to 40 MB."""

WIDEST = 0.25
"""A box is worth a try if its multipliers change what actions are worth by this share of that at most."""

AROUND = 1.5
"""A box reaches this many times as far as the last two multipliers are away."""

MANY = 1.5
"""Actions are dropped again while there are more of them a state than this."""

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

    # If there is one constraint, a guess of its multiplier. The answer is the same but for states never visited.
    near: float | None = field(default=None, repr=False)

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return an optimal policy of the CMDP, or raise InfeasibleError."""
        # The tables of an induced CMDP are rounded already: there, only the game itself could say more than they do.
        accepts = None if cmdp.entry_roundings else partial(provably_meets, cmdp)
        found = best_mixture(_Program(cmdp, rng), accepts=accepts, near=self.near)
        return found.mixture.response(multipliers=found.multipliers, work=found.plans + 1)


@dataclass(frozen=True, eq=False)
class _Program:
    """A CMDP, as the search sees it."""

    cmdp: CMDP
    rng: np.random.Generator | None

    @property
    def num_actions(self) -> int:
        return self.cmdp.num_actions

    @property
    def thresholds(self) -> FloatArray:
        return self.cmdp.thresholds

    @cached_property
    def margins(self) -> FloatArray:
        return cost_margins(self.cmdp)

    @property
    def largest_costs(self) -> FloatArray:
        return self.cmdp.step_sizes[1:]

    @cached_property
    def narrowing(self) -> _Narrowing | None:
        compiled = None if self.cmdp.walker is not None and self.rng is None else kernels_for(self.cmdp)
        entries = prod(self.cmdp.policy_shape)
        if compiled is None or not len(self.thresholds) or not NARROWED[0] <= entries <= NARROWED[1]:
            return None
        return _Narrowing(self.cmdp, self.rng, compiled)

    def plan(self, multipliers: FloatArray, *, reward_weight: float = 1.0) -> Plan:
        if self.narrowing is not None and reward_weight == 1:
            return self.narrowing.plan(multipliers)
        return plan(self.cmdp, multipliers, reward_weight=reward_weight, rng=self.rng)

    def mix(self, plans: Sequence[Plan], *, weights: FloatArray, unvisited: FloatArray) -> EvaluatedPolicy:
        if len(plans) == 1:
            return EvaluatedPolicy(self.cmdp, plans[0].policy(self.num_actions))
        return EvaluatedPolicy(self.cmdp, mixed_policy(self.cmdp, plans, weights=weights, unvisited=unvisited))

    def infeasible(self, multipliers: FloatArray, least: float) -> InfeasibleError:
        return infeasible(self.cmdp, multipliers, least)


class _Narrowing:
    """Plans of one CMDP for multipliers that come closer and closer together; they are those of `plan`.

    Some actions are best for no multipliers of a box: with one constraint, two plans at its ends tell (between.c), with
    several a pass over all actions does (around.c). Close to the best multipliers most states have one action left,
    and a plan among those takes a fraction of the time.
    """

    def __init__(self, cmdp: CMDP, rng: np.random.Generator | None, compiled: tuple[Any, Any]) -> None:
        self.cmdp, self.rng = cmdp, rng
        self.kernels, self.process = compiled
        self.rows: Any = None  # the actions that are left, or None for all
        self.count = prod(cmdp.policy_shape)  # of them
        self.low = self.high = np.zeros(0)  # the box in which they are enough
        self.width = np.inf  # of that box, or of the last one in which too many were left
        self.records: list[tuple[float, FloatArray, FloatArray]] = []  # with one constraint: what plans leave behind
        self.recent: list[tuple[FloatArray, IntArray]] = []  # with several: the last multipliers and plans
        # By how much each table differs within one step, at most.
        self.spans = cmdp.step_sizes * np.where(np.append(False, cmdp.nonnegative), 1.0, 2.0)

    def plan(self, multipliers: FloatArray) -> Plan:
        """Return the plan for some multipliers."""
        if len(multipliers) == 1:
            self._narrow_between(multipliers)
        elif len(self.recent) == 2:
            self._narrow_around(multipliers)
        covered = self._covers(multipliers)
        shape = self.cmdp.policy_shape
        chosen = np.empty(shape[:2], dtype=np.int64)
        left_behind: tuple[FloatArray, ...] = ()
        if covered:
            kernel = partial(self.kernels.narrow_plan, self.process, self.rows)
        else:
            kernel = partial(self.kernels.plan, self.process)
            if len(multipliers) == 1:
                left_behind = np.empty(prod(shape)), np.empty((*shape[:2], 2))
        rule = choice_rule(self.cmdp, multipliers, rng=self.rng)
        totals = run_plan(kernel, self.cmdp, rule, chosen, after=left_behind)
        if left_behind:
            below, above = self._beside(multipliers[0])
            self.records = [*below, (float(multipliers[0]), left_behind[0], left_behind[1]), *above]
        self.recent = [(multipliers, chosen), *self.recent[:1]]
        return Plan(actions=chosen, value=float(totals[0]), costs=totals[1:])

    def _covers(self, at: FloatArray) -> bool:
        return self.rows is not None and bool(((self.low <= at) & (at <= self.high)).all())

    def _beside(self, at: float) -> tuple[list[Any], list[Any]]:
        """Return the record just below a multiplier, and the one just above, where there are any."""
        return [each for each in self.records if each[0] < at][-1:], [each for each in self.records if each[0] > at][:1]

    def _narrow_between(self, at: FloatArray) -> None:
        """Drop actions that cannot matter between the two plans beside a multiplier."""
        below, above = self._beside(float(at[0]))
        if self._covers(at) or not below or not above:
            return
        low, high = np.array([below[0][0]]), np.array([above[0][0]])
        found = self.kernels.narrow_between(self.process, below[0], above[0], self._margin(high), 0.5)
        if found is not None:
            (self.rows, self.count), self.low, self.high = found, low, high

    def _narrow_around(self, at: FloatArray) -> None:
        """Drop actions that cannot matter around some multipliers, if the last ones are close enough to them."""
        inside, spans, actions = self._covers(at), self.spans, self.recent[0][1]
        if inside and self.count < MANY * actions.size:
            return
        moves = np.abs([at - each for each, _ in self.recent]) * spans[1:]
        radii = np.divide(AROUND * moves.max(), spans[1:], out=np.ones(len(at)), where=spans[1:] > 0)
        low, high = np.maximum(at - radii, 0.0), at + radii
        if inside:  # what was dropped may matter outside of the old box
            low, high = np.maximum(low, self.low), np.minimum(high, self.high)
        width = float((high - low) @ spans[1:])
        if not 0 < width <= min(self.width / 2, WIDEST * float(spans @ [1.0, *high])):
            return
        box = (np.array([1.0, *-high]), np.array([1.0, *-low]), spans, self._margin(high))
        rows, share = (self.rows, 1 / MANY) if inside else (None, 0.5)
        found = self.kernels.narrow_around(self.process, rows, actions, *box, share)
        self.width = width
        if found is not None:
            (self.rows, self.count), self.low, self.high = found, low, high

    def _margin(self, high: FloatArray) -> float:
        """Return far more than what rounding and ties can do to a value, far less than what tells actions apart."""
        return 1e-9 * float(self.cmdp.sizes @ [1.0, *high])


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
    return float(dual_bound(cmdp, multipliers)) + 2 * cmdp.rounding * size


def greatest_slack(
    cmdp: CMDP, *, enough: float = np.inf, units: FloatArray | None = None, rng: np.random.Generator | None = None
) -> CMDPSlack:
    """Maximise min_j (α_j − V^{c_j})/units_j over all policies, or stop as soon as it exceeds `enough`.

    Parameters
    ----------
    cmdp
        A CMDP with at least one constraint.
    enough
        A slack that will do.
    units : [k]
        In what each constraint's slack is measured: ones unless given.
    rng
        Breaks ties at random.
    """
    return widest_slack(_Program(cmdp, rng), enough=enough, units=units)


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
            if entries > MOST_ENTRIES or reached.denominator.bit_length() > MOST_BITS:
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
