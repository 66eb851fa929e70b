"""The paper's primal-dual method on a known model: the loop of Algorithm 3, stopped by certificate.

    π_t maximises V^{r − λ_t c},   λ_{t+1} = clip(λ_t − η_t (α − V^c(π_t)), 0, U),

and the answer has the mean occupancy of the π_t. The mean starts afresh whenever t is a power of two: it then holds at
least the later half of all plans, and forgets the first ones, whose prices were far off. With a strictly feasible
policy of slack ζ_j and value v, weak duality gives λ*_j ≤ (max V^r − v)/ζ_j, and U_j is twice that. With B_j the
largest |α_j − V^{c_j}|, the steps are η_t = U_j/(B_j √t); the paper's own, with √T for a T that is fixed in advance,
are in `cmpg.paper.algorithm_3`.

Guarantee: the mean is off by O(U B/√t) in value and in cost. The loop ends as soon as the best dual bound so far is
within the tolerance of what the mean is worth after its repair, so that value ≤ optimum ≤ value + tolerance, and the
policy meets the thresholds. The paper's own T is never run (it is 1e10 and more): the certificate needs no T.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import CMDPSlack, check_feasible, greatest_slack, repaired
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, plan
from cmpg.cmdp.response import BestResponse, cost_margins, respond
from cmpg.errors import SolverError


@dataclass(frozen=True)
class PrimalDual:
    """Averaged best responses to prices that follow the violation.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 1.0]]]],
    ...             thresholds=[0.25], initial=[1.0], horizon=1)
    >>> PrimalDual(tolerance=0.01)(cmdp).gap <= 0.01
    True
    """

    tolerance: float = 1e-2  # in units of the reward
    max_iterations: int = 100_000

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return a policy within the tolerance of the best one, or raise InfeasibleError or SolverError."""
        free = plan(cmdp, np.zeros(cmdp.num_constraints), rng=rng)
        if np.all(free.costs <= cmdp.thresholds - cost_margins(cmdp)):
            nothing = np.zeros(cmdp.num_constraints)
            return respond(cmdp, free.policy(cmdp.num_actions), multipliers=nothing, work=1)
        safe = _strictly_feasible(cmdp, rng)
        mean = _Mean(cmdp, safe.costs, float(evaluate(cmdp, safe.policy).value))
        bounds = 2 * (free.value - mean.safe_value) / mean.slacks
        steps = bounds / _largest_violations(cmdp)
        multipliers = best_multipliers = np.zeros(cmdp.num_constraints)
        best_bound = np.inf
        for iteration in range(1, self.max_iterations + 1):
            answer = plan(cmdp, multipliers, rng=rng)
            bound = answer.value + float(multipliers @ (cmdp.thresholds - answer.costs))
            if bound < best_bound:
                best_bound, best_multipliers = bound, multipliers
            if iteration.bit_count() == 1:  # a power of two: the mean forgets multipliers that were far off
                mean = mean.afresh()
            mean.add(answer)
            if best_bound - mean.repaired_value <= self.tolerance:
                policy = repaired(cmdp, mean.visits, safe)
                return respond(cmdp, policy, multipliers=best_multipliers, work=iteration)
            # A subgradient of the dual function is α − V^c; steps of 1/√t suit one that has no curvature to rely on.
            moved = multipliers + steps / sqrt(iteration) * (answer.costs - cmdp.thresholds)
            multipliers = np.clip(moved, 0.0, bounds)
        raise SolverError(
            f"the primal-dual method is still {best_bound - mean.repaired_value:.3g} from optimal after "
            f"{self.max_iterations} iterations; {self.tolerance:.3g} was requested. "
            "Allow more iterations or a larger tolerance, or use Exact()."
        )


def _strictly_feasible(cmdp: CMDP, rng: np.random.Generator | None) -> CMDPSlack:
    sizes = cmdp.step_sizes[1:]
    safe = greatest_slack(cmdp, units=np.where(sizes > 0, sizes, 1.0), rng=rng)
    check_feasible(cmdp, safe)
    if np.any(safe.costs >= cmdp.thresholds - 4 * cost_margins(cmdp)):
        raise SolverError(
            f"no policy is strictly feasible (the greatest slack is {safe.slack:.3g}), so the multipliers have no "
            "bound and the primal-dual method has no guarantee. Use Exact()."
        )
    return safe


def _largest_violations(cmdp: CMDP) -> FloatArray:
    """Return B_j, which |α_j − V^{c_j}| never exceeds: [k]."""
    length = cmdp.num_steps if cmdp.discount is None else 1 / (1 - cmdp.discount)
    bounds = []
    for cost, threshold in zip(cmdp.costs, cmdp.thresholds, strict=True):
        repeat = 1 if len(cost) > 1 else length
        most, least = (repeat * sum(float(pick(step)) for step in cost) for pick in (np.max, np.min))
        bounds.append(max(most - threshold, threshold - least))
    return np.array(bounds)


class _Mean:
    """The running mean of plans, and what it is worth once it is mixed with the safe policy to meet the thresholds."""

    def __init__(self, cmdp: CMDP, safe_costs: FloatArray, safe_value: float) -> None:
        self.cmdp = cmdp
        self.safe_costs = safe_costs
        self.safe_value = safe_value
        self.targets = cmdp.thresholds - 2 * cost_margins(cmdp)
        self._visits = np.zeros(cmdp.policy_shape)
        self._value = 0.0
        self._costs = np.zeros(cmdp.num_constraints)
        self._count = 0

    def afresh(self) -> _Mean:
        """Return the mean of nothing."""
        return _Mean(self.cmdp, self.safe_costs, self.safe_value)

    def add(self, new: Plan) -> None:
        """Take one more plan into the mean."""
        self._visits += occupancy(self.cmdp, new.policy(self.cmdp.num_actions))
        self._value += new.value
        self._costs = self._costs + new.costs
        self._count += 1

    @property
    def visits(self) -> FloatArray:
        """The mean occupancy: [H, S, A]."""
        return self._visits / self._count

    @property
    def slacks(self) -> FloatArray:
        """How far the safe policy is inside the thresholds: [k]."""
        return self.targets - self.safe_costs

    @property
    def repaired_value(self) -> float:
        """What is left of the mean's value after the least mixing that meets the thresholds."""
        # The least share θ of the safe policy with (1 − θ)·excess ≤ θ·slack in every constraint.
        excess = np.maximum(self._costs / self._count - self.targets, 0.0)
        share = float(np.max(excess / (excess + self.slacks)))
        return (1 - share) * self._value / self._count + share * self.safe_value
