"""Algorithm 3, adaptive and certified: best responses from a generative model, with nothing known beforehand.

In round j there are N_j = N_0·2^(j−1) samples of every (h, s, a), and a box that holds the true kernel with probability
1 − δ/(j(j + 1)); over all rounds the boxes fail with probability at most δ. Upper bound: the best value over all
policies and all kernels of the box (the extended CMDP). Candidate: the optimum of the empirical CMDP, its thresholds
tightened just so far that its worst cost over the box is at most α. Lower bound: the candidate's worst reward over the
box. It ends when the bounds are within ε.

Guarantee: with probability at least 1 − δ, what is called certified is feasible and within ε of the best; no slack need
be known. Where there is none, no candidate can be proved feasible, and the samples run out.

Where rewards and costs are not known either, half of each δ goes to them (Hoeffding), and all bounds take their worst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.box import optimistic_response, worst_case
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.errors import BudgetError, InfeasibleError, SimulatorError
from cmpg.learning.confidence import Estimate, Interval, binomial_interval, check_accuracy, estimate
from cmpg.learning.outcome import LearnedResponse, ResponseStatus
from cmpg.learning.simulator import InducedProblem

TIGHTENINGS = 8
"""Bisections for the tightened thresholds: they are found to 1 % of the error that they allow for."""


@dataclass(frozen=True)
class Adaptive:
    """Double the samples until upper and lower bound meet; the answer is certified, and no slack need be known.

    Parameters
    ----------
    first_count
        Samples of every (h, s, a) in the first round.
    max_count
        Samples of every (h, s, a) at most; the simulator's own budget holds besides.
    interval
        How one probability is bounded; `confidence.bernstein_interval` draws two to eight times as many samples.
    on_round
        Called with the bounds after every round.
    """

    first_count: int = 64
    max_count: int = 2**30
    interval: Interval = binomial_interval
    on_round: Callable[[LearnedResponse], None] | None = None

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response; running out of samples is an ending, with the best policy so far."""
        check_accuracy(epsilon, delta)
        run = _Run(problem, epsilon=epsilon, delta=delta, first=self.first_count)
        response = run.judge(self.interval)
        while response.status is ResponseStatus.LIMIT and run.entries:
            if self.on_round is not None:
                self.on_round(response)
            if run.target > self.max_count:
                break
            try:
                run.draw()
            except BudgetError as stop:
                return replace(response, message=f"{response.message} {stop}")
            response = run.judge(self.interval)
        return response


class _Run:
    """One adaptive run: the samples so far, and the round."""

    def __init__(self, problem: InducedProblem, *, epsilon: float, delta: float, first: int) -> None:
        horizon, states, actions = problem.shape
        self.problem, self.epsilon, self.delta = problem, epsilon, delta
        self.entries = states * actions * (horizon if problem.known.payoffs is None else horizon - 1)
        self.samples = problem.no_samples()
        self.count, self.target, self.rounds, self.work = 0, first, 0, 0

    def draw(self) -> None:
        try:
            self.samples = self.samples + self.problem.draw(self.target - self.count)
        except SimulatorError as fault:
            fault.samples = self.samples if fault.samples is None else self.samples + fault.samples
            raise
        self.count, self.target, self.rounds = self.target, 2 * self.target, self.rounds + 1

    def judge(self, interval: Interval) -> LearnedResponse:
        # The box before the first sample holds everything, so it cannot fail and costs no confidence.
        share = self.delta / (self.rounds * (self.rounds + 1)) if self.rounds else self.delta
        belief = estimate(self.problem, self.samples, delta=share, interval=interval)
        try:
            best = optimistic_response(belief.optimistic)
        except InfeasibleError as proof:
            return self._conclude(safest(belief), ResponseStatus.INFEASIBLE, ceiling=np.inf, told=str(proof))
        candidate = tightened_candidate(belief)
        self.work += best.work + candidate.work
        gap = best.bound - candidate.value_floor
        feasible = bool(np.all(candidate.cost_ceilings <= self.problem.known.thresholds))
        if feasible and gap <= self.epsilon:
            return self._conclude(candidate, ResponseStatus.CERTIFIED, ceiling=best.bound)
        need = "the policy is feasible, but" if feasible else "no policy is proved to be feasible yet, and"
        told = (
            f"with {self.count} samples of every entry {need} the bounds are {gap:.4g} apart, not {self.epsilon:.4g}."
        )
        return self._conclude(candidate, ResponseStatus.LIMIT, ceiling=best.bound, told=told)

    def _conclude(
        self, candidate: BoundedPolicy, status: ResponseStatus, *, ceiling: float, told: str = ""
    ) -> LearnedResponse:
        return LearnedResponse(
            status=status,
            message=told or status.value,
            policy=candidate.policy,
            value_floor=candidate.value_floor,
            value_ceiling=ceiling,
            cost_ceilings=candidate.cost_ceilings,
            multipliers=candidate.multipliers,
            epsilon=self.epsilon,
            delta=self.delta,
            samples=self.count * self.entries,
            samples_per_entry=self.count,
            work=self.work,
        )


@dataclass(frozen=True, eq=False)
class BoundedPolicy:
    """A policy, and its worst case over a box."""

    policy: FloatArray  # [H, S, A]
    value_floor: float
    cost_ceilings: FloatArray  # [k]
    multipliers: FloatArray  # [k]
    work: int


def tightened_candidate(belief: Estimate) -> BoundedPolicy:
    """Return the optimum of the empirical CMDP for the loosest thresholds whose worst cost over the box is at most α.

    The thresholds are α − t·e, where e is how much the worst cost of the untightened optimum exceeds its empirical one,
    and t is found by bisection. Where no t will do, the policy of greatest slack is returned.
    """
    nominal = belief.box.nominal
    fallback = safest(belief)
    first = _solve(belief, nominal.thresholds)
    if first is None or _feasible(nominal, first):
        return first or fallback
    excess = np.maximum(first.cost_ceilings - evaluate(nominal, first.policy).costs, 0.0)
    best, work = fallback, fallback.work + first.work
    low, high = 0.0, 2.0
    for _ in range(TIGHTENINGS):
        middle = (low + high) / 2
        tried = _solve(belief, nominal.thresholds - middle * excess)
        work += tried.work if tried is not None else 2
        if tried is None or _feasible(nominal, tried):
            high = middle
            best = best if tried is None else tried
        else:
            low = middle
    return replace(best, work=work)


def safest(belief: Estimate) -> BoundedPolicy:
    """Return the policy of greatest empirical slack, with its worst case."""
    nominal = belief.box.nominal
    if nominal.num_constraints == 0:
        return _judged(belief, plan(nominal, np.zeros(0)).policy(nominal.num_actions), multipliers=np.zeros(0), work=1)
    slack = greatest_slack(nominal)
    return _judged(belief, slack.policy, multipliers=np.zeros(nominal.num_constraints), work=len(slack.plans))


def _solve(belief: Estimate, thresholds: FloatArray) -> BoundedPolicy | None:
    """Solve the empirical CMDP with other thresholds; None where no policy meets them."""
    try:
        found = Exact()(replace(belief.box.nominal, thresholds=thresholds, trusted=True))
    except InfeasibleError:
        return None
    return _judged(belief, found.policy, multipliers=found.multipliers, work=found.work)


def _judged(belief: Estimate, policy: FloatArray, *, multipliers: FloatArray, work: int) -> BoundedPolicy:
    ceilings = np.array([worst_case(belief.box, policy, cost) for cost in belief.worst_costs])
    floor = -worst_case(belief.box, policy, -belief.worst_reward)
    return BoundedPolicy(policy, floor, ceilings, multipliers, work + 1 + len(ceilings))


def _feasible(nominal: CMDP, candidate: BoundedPolicy) -> bool:
    return bool(np.all(candidate.cost_ceilings <= nominal.thresholds))
