"""What a CMDP solver returns, and the tools that all solvers share.

Solvers propose: every response is evaluated again with the model at hand, and carries an upper bound by weak duality
that holds whatever the solver did. `value ≤ optimum ≤ bound`, and the policy meets every threshold with a margin for
rounding, unless the least possible cost leaves no room for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import Evaluation, evaluate, occupancy, plan_visits, policy_from_occupancy
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, dual_bound
from cmpg.errors import InfeasibleError
from cmpg.summaries import fields_line


@dataclass(frozen=True, eq=False)
class BestResponse:
    """A policy, what it is worth, and a proof of how much better any other could be."""

    policy: FloatArray  # [H, S, A]
    value: float
    costs: FloatArray  # [k]
    multipliers: FloatArray  # [k]: what one more unit of each threshold is worth
    bound: float
    work: int  # dynamic programs, or iterations of an LP solver

    __repr__ = fields_line

    @property
    def gap(self) -> float:
        """How far from optimal the policy can be at most."""
        return max(self.bound - self.value, 0.0)


class Solver(Protocol):
    """Anything that finds a best response; `rng` is for ties, and may be ignored."""

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return a policy that meets the constraints, or raise InfeasibleError with the multipliers that prove it."""


@dataclass(frozen=True, eq=False)
class EvaluatedPolicy:
    """A policy in a CMDP; it is evaluated once, when it is first needed."""

    cmdp: CMDP
    policy: FloatArray  # [H, S, A]

    @cached_property
    def evaluation(self) -> Evaluation:
        """V^r and V^c."""
        return evaluate(self.cmdp, self.policy)

    @property
    def costs(self) -> FloatArray:
        """V^c: [k]."""
        return self.evaluation.costs

    def response(self, *, multipliers: FloatArray, work: int) -> BestResponse:
        """Bound the optimum by the multipliers, and return the policy with what it was found to be worth."""
        multipliers = np.maximum(multipliers, 0.0)
        bound = float(dual_bound(self.cmdp, multipliers))
        return BestResponse(self.policy, float(self.evaluation.value), self.costs, multipliers, bound, work)


def respond(cmdp: CMDP, policy: FloatArray, *, multipliers: FloatArray, work: int) -> BestResponse:
    """Evaluate a proposed policy, bound the optimum by its multipliers, and return both."""
    return EvaluatedPolicy(cmdp, policy).response(multipliers=multipliers, work=work)


def cost_margins(cmdp: CMDP) -> FloatArray:
    """Return how far the computed cost of any policy can be from its true one, per constraint: [k]."""
    if cmdp.num_constraints == 0:
        return np.zeros(0)
    sizes = cmdp.rounding_sizes[1:]
    if cmdp.discount is None:
        # Where no cost is negative the error is relative to the cost itself, and that is at most the threshold.
        sizes = np.where(cmdp.nonnegative, np.clip(cmdp.thresholds, 0.0, sizes), sizes)
    return np.asarray(cmdp.rounding * sizes)


def mixed_policy(cmdp: CMDP, plans: Sequence[Plan], *, weights: FloatArray, unvisited: FloatArray) -> FloatArray:
    """Return one policy whose value and costs are the weighted averages of the plans': it has their mean occupancy."""
    if cmdp.discount is not None:
        visits = np.zeros(cmdp.policy_shape)
        for weight, each in zip(weights, plans, strict=True):
            if weight > 0:
                visits += weight * occupancy(cmdp, each.policy(cmdp.num_actions))
        return policy_from_occupancy(visits, unvisited)
    # A plan plays one action in each state: one table [H, S, A], of the answer, is all that is needed.
    table, totals = np.zeros(cmdp.policy_shape), np.zeros(cmdp.policy_shape[:2])
    first = np.arange(0, table.size, cmdp.num_actions)
    for weight, each in zip(weights, plans, strict=True):
        if weight > 0:
            share = weight * plan_visits(cmdp, each.actions)
            table.reshape(-1)[first + each.actions.ravel()] += share.ravel()
            totals += share
    visited = totals > 0
    np.divide(table, totals[..., None], out=table, where=visited[..., None])
    np.copyto(table, unvisited, where=~visited[..., None])
    return table


def infeasible(cmdp: CMDP, multipliers: FloatArray, least: float) -> InfeasibleError:
    """Build the error that says why no policy meets the constraints, with the proof inside.

    Parameters
    ----------
    cmdp
        The process.
    multipliers : [k]
        λ ≥ 0, not all zero; the error has them with sum one.
    least
        The least V^{λ·c} of any policy, which is more than λ·α.
    """
    least, multipliers = least / float(multipliers.sum()), multipliers / multipliers.sum()
    if cmdp.num_constraints == 1:
        text = f"the least possible cost is {least:.9g}, above the threshold {cmdp.thresholds[0]:.9g}."
    else:
        text = (
            f"with weights {multipliers} on the constraints, every policy costs at least {least:.9g}, "
            f"more than {float(multipliers @ cmdp.thresholds):.9g}."
        )
    advice = "Raise the thresholds, or give the agent a cheaper action."
    return InfeasibleError(f"no policy meets the constraints: {text} {advice}", multipliers=multipliers)


class Mixture(Protocol):
    """A mixture of plans that is one policy."""

    @property
    def policy(self) -> FloatArray:
        """The policy: [H, S, A]."""

    @property
    def costs(self) -> FloatArray:
        """V^c, evaluated and not averaged: [k]."""


MixtureT = TypeVar("MixtureT", bound=Mixture)


@dataclass(frozen=True, eq=False)
class Aim:
    """Which costs to aim at, and which to accept, given a safe policy to retreat to."""

    safe_costs: FloatArray  # [k]
    targets: FloatArray  # [k]
    accepted: FloatArray  # [k]

    @classmethod
    def at(cls, thresholds: FloatArray, margins: FloatArray, *, safe_costs: FloatArray) -> Aim:
        """Stay two margins inside if the safe policy has that room; see `frontier.py`."""
        beside = np.maximum(np.minimum(safe_costs + margins, thresholds), safe_costs)
        targets = np.maximum(thresholds - 2 * margins, beside)
        # Where the safe policy has no room for rounding itself, nothing can be kept further inside than the margin.
        inside = np.maximum(targets, thresholds - margins)
        accepted = np.where(safe_costs > thresholds - margins, thresholds + margins, inside)
        return cls(safe_costs, targets, accepted)


def move_inside(mixture_at: Callable[[float], MixtureT], aim: Aim) -> MixtureT:
    """Return the first mixture whose evaluated costs are accepted, from share 0 to share 1 of the safe policy."""
    room = np.maximum(aim.targets - aim.safe_costs, 0.0)
    share = 0.0
    for _ in range(8):
        mixture = mixture_at(share)
        if np.all(mixture.costs <= aim.accepted):
            return mixture
        # Costs are linear in the share: excess/(excess + room) of what is left brings the worst one to its target.
        excess = np.maximum(mixture.costs - aim.targets, 0.0)
        needed = np.divide(excess, excess + room, out=np.zeros(len(excess)), where=excess > 0)
        share += (1 - share) * float(needed.max())
    return mixture_at(1.0)
