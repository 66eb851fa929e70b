"""Algorithm 4: best responses by safe exploration, from episodes alone.

Both learners play only policies that `exploration.py` proves to be safe, and a baseline π_S that the caller vouches
for. Every policy that was played is in the response, with its number of episodes, so that it can be judged afterwards.

`SafeExploration` (the default) ends by certificate. The box holds the true kernel with probability 1 − δ at all times
together (`mixture_interval`), so at any time: the best value over the box bounds the optimum from above, the worst case
over the box bounds the value of a candidate from below and its costs from above. It ends when the bounds are within ε
and the candidate's costs at most α − margin. It needs no number of episodes beforehand, and no T_0: the baseline is
played while nothing else is proved safe.

`OnlineToBatch` is the paper's: T episodes of DOPE, then M episodes of each policy that was played, and the one with
the best mean. DOPE's regret bound hides a constant, so T proves nothing by itself; the answer is judged by the same
upper bound, and certified if that is within ε of the mean minus Hoeffding's radius. Half of δ goes to the box, half
to the means.

Policies are solved for anew after 2 % more episodes: what was safe stays safe, as no promise depends on when it was
made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import check_shape, distributions, numbers
from cmpg.errors import BudgetError, CMPGError, PolicyError
from cmpg.faces import fields_line
from cmpg.learning.bounds import Size, safe_constants
from cmpg.learning.confidence import Interval, check_accuracy, hoeffding_count, hoeffding_radius, mixture_interval
from cmpg.learning.exploration import Baseline, Bonus, Exploration, Pace, paper_bonus, tight_bonus
from cmpg.learning.generative import bounded
from cmpg.learning.outcome import LearnedResponse, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Known, Samples


class BaselineSource(Protocol):
    """Says which policy is safe to begin with."""

    def __call__(self, problem: InducedProblem) -> Baseline:
        """Return a policy of the agent that meets the constraints, with the most that it is known to cost."""


@dataclass(frozen=True)
class OwnPolicy:
    """The policy that the agent plays already, which meets the constraints; its slack is found out from samples."""

    def __call__(self, problem: InducedProblem) -> Baseline:
        """Return the agent's table of the joint policy."""
        return Baseline(problem.policy[problem.agent], np.full(problem.known.num_constraints, np.inf))


@dataclass(frozen=True, eq=False)
class GivenPolicy:
    """A policy that the caller vouches for, and, where that is known, what it costs."""

    policy: Any  # [H, S, A]
    costs: Any = None  # [k]: α_S

    __repr__ = fields_line

    def __call__(self, problem: InducedProblem) -> Baseline:
        """Return the policy, checked against the problem's shape."""
        table = numbers("safe policy", self.policy, error=PolicyError)
        check_shape("safe policy", table.shape, problem.shape, error=PolicyError)
        table = distributions("safe policy", table, ("h", "s"), error=PolicyError)
        unknown = np.full(problem.known.num_constraints, np.inf)
        costs = unknown if self.costs is None else numbers("costs", self.costs, error=PolicyError)
        check_shape("costs", costs.shape, unknown.shape, error=PolicyError)
        return Baseline(table, costs)


@dataclass(frozen=True)
class SafeExploration:
    """Explore safely until upper and lower bound meet; the answer is certified.

    Parameters
    ----------
    baseline
        Where the strictly feasible policy comes from.
    margin
        The response shall cost at most α − margin, so that it can be the next baseline. This may take up to
        margin·G/(ζ − margin) of its value, which counts against ε.
    bonus
        What the costs are raised by while exploring.
    interval
        How one probability is bounded, at all numbers of trials together.
    pace
        Episodes, and solves.
    least_slack
        A baseline whose slack is proved to be less than this share of the cost's range ends the exploration.
    on_round
        Called with what is known after every solve.
    """

    baseline: BaselineSource = field(default_factory=OwnPolicy)
    margin: float = 0.0
    bonus: Bonus = tight_bonus
    interval: Interval = mixture_interval
    pace: Pace = field(default_factory=Pace)
    least_slack: float = 1e-3
    on_round: Callable[[LearnedResponse], None] | None = None

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response; running out of episodes is an ending, with the best policy so far."""
        check_accuracy(epsilon, delta)
        if not 0 <= self.margin < np.inf:
            raise CMPGError(f"margin is {self.margin}; it must be a number of at least 0.")
        run = Exploration(
            problem,
            self.baseline(problem),
            bonus=self.bonus,
            interval=self.interval,
            delta=delta,
            margin=self.margin,
        )
        response = self._judge(run, epsilon)
        while response.status is ResponseStatus.LIMIT and run.advance(self.pace):
            response = self._judge(run, epsilon)
            if self.on_round is not None:
                self.on_round(response)
        return response

    def _judge(self, run: Exploration, epsilon: float) -> LearnedResponse:
        run.bound()
        if run.proof_of_infeasibility:
            status, message = ResponseStatus.INFEASIBLE, run.proof_of_infeasibility
        else:
            nash = run.problem.nash_epsilon
            run.propose(close=1.3 * (epsilon if nash is None else nash))
            status, message = self._status(run, epsilon)
        return run.conclude(status, epsilon=epsilon, delta=run.delta, message=message)

    def _status(self, run: Exploration, epsilon: float) -> tuple[ResponseStatus, str]:
        proved, nash = run.proved, run.problem.nash_epsilon
        if proved.gap <= epsilon or proved.stays(nash) or (proved.leaves(nash) and proved.gap <= (nash or 0.0)):
            return ResponseStatus.CERTIFIED, ""
        if proved.leaves(nash):
            return ResponseStatus.BETTER, ""
        lack = _lack_of_slack(run, self.least_slack)
        if lack:
            return ResponseStatus.NO_SLACK, f"cannot be certified: {lack}"
        if proved.incumbent is None:
            told = "no policy is proved to meet the constraints yet."
        else:
            told = f"the bounds are {proved.gap:.4g} apart, not {epsilon:.4g}."
        return ResponseStatus.LIMIT, f"after {run.episodes:,} episodes {told}"


def safe_learner(
    known: Known, *, epsilon: float, margin: float | None = None, pace: Pace | None = None
) -> SafeExploration:
    """Return the safe learner for `learn` at ε, where every response must leave the others something to explore with.

    Parameters
    ----------
    known
        Sizes and ranges of the game.
    epsilon
        The accuracy asked of the equilibrium.
    margin
        What a response leaves of every budget; unless given, ε/16 at the rate of exchange α/G, the least over
        constraints. A larger one is budget that the others gain by using; a smaller one slows down their exploration.
    pace
        Episodes, and solves.
    """
    left = _margin(known, epsilon) if margin is None else margin
    widest = float(known.cost_spans.sum(axis=1).max(initial=0.0))
    # The margin is all the slack that there is after the first move: less than a quarter of it is called none.
    least = min(1e-3, left / (4 * widest)) if widest > 0 and left > 0 else 1e-3
    return SafeExploration(margin=left, pace=pace or Pace(), least_slack=least)


def _margin(known: Known, epsilon: float) -> float:
    largest = float(known.reward_ranges.max())
    if known.num_constraints == 0 or largest == 0:
        return 0.0
    budgets = np.where(known.thresholds > 0, known.thresholds, known.cost_spans.sum(axis=1))
    return float(budgets.min()) * min(epsilon / largest, 1.0) / 16


def _lack_of_slack(run: Exploration, least_slack: float) -> str:
    """Say why the baseline cannot be used to explore, or nothing where it can or may yet."""
    known, ceilings = run.problem.known, run.baseline.ceilings
    floors = run.baseline.floors(run.belief)
    for j, threshold in enumerate(known.limits):
        place = f"constraint {j} has the threshold {threshold:.6g}"
        if floors[j] > threshold:
            return f"{place}, but the policy that was called safe costs at least {floors[j]:.6g}. Give another one."
        if run.given_costs[j] >= threshold and np.isfinite(run.given_costs[j]):
            return f"{place}, and the safe policy costs {run.given_costs[j]:.6g}: no slack is left to explore with."
        if ceilings[j] >= threshold and threshold - floors[j] < least_slack * float(known.cost_spans[j].sum()):
            return f"{place}, and the safe policy costs at least {floors[j]:.6g}: too little slack to explore with."
    return ""


@dataclass(frozen=True)
class OnlineToBatch:
    """The paper's Algorithm 4: explore for T episodes, measure every policy that was played, return the best.

    Parameters
    ----------
    baseline
        Where the strictly feasible policy comes from.
    rounds
        T; None for the order that the paper's lemma gives, which needs the baseline's costs.
    bonus
        What the costs are raised by while exploring.
    interval
        How one probability is bounded, at all numbers of trials together.
    pace
        Episodes, and solves; more than `pace.most` in all is refused before anything is played.
    """

    baseline: BaselineSource = field(default_factory=OwnPolicy)
    rounds: int | None = None
    bonus: Bonus = paper_bonus
    interval: Interval = mixture_interval
    pace: Pace = field(default_factory=Pace)

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response, or raise BudgetError where the exploration or the measuring is not affordable."""
        check_accuracy(epsilon, delta)
        run = Exploration(problem, self.baseline(problem), bonus=self.bonus, interval=self.interval, delta=delta / 2)
        lack = _lack_of_slack(run, 0.0)
        if lack:
            told = f"cannot be certified: {lack}"
            return run.conclude(ResponseStatus.NO_SLACK, epsilon=epsilon, delta=delta, message=told)
        rounds = _paper_rounds(run, epsilon, delta) if self.rounds is None else self.rounds
        self._refuse_beyond(rounds, "exploring")
        while run.advance(replace(self.pace, most=int(rounds))):
            pass
        if run.episodes < rounds:
            told = f"the budget ended after {run.episodes} of {rounds:.4g} episodes of exploration."
            return run.conclude(ResponseStatus.LIMIT, epsilon=epsilon, delta=delta, message=told)
        self._select(run, epsilon, delta / 2)
        return _measured_response(run, epsilon, delta)

    def _select(self, run: Exploration, epsilon: float, delta: float) -> None:
        """Play every policy M times more, and make the one with the best mean the incumbent."""
        policies = [each.policy[run.problem.agent] for each in run.played]
        share = delta / len(policies)
        episodes = hoeffding_count(epsilon / 4, span=run.reward_range, delta=share)
        run.problem.simulator.ledger.require("measuring", episodes * len(policies) * run.problem.known.horizon)
        self._refuse_beyond(run.episodes + episodes * len(policies), f"measuring {len(policies)} policies")
        radius = float(hoeffding_radius(episodes, span=run.reward_range, delta=share))
        means = [_mean_value(run.problem, run.play(policy, episodes)) for policy in policies]
        best = int(np.argmax(means))
        run.proved.incumbent = replace(bounded(run.belief, policies[best]), value_floor=means[best] - radius)

    def _refuse_beyond(self, episodes: float, purpose: str) -> None:
        if episodes > self.pace.most:
            raise BudgetError(
                f"OnlineToBatch would need {episodes:.3g} episodes for {purpose}; pace.most is {self.pace.most:.3g}. "
                f"Use SafeExploration, or ask for a larger epsilon."
            )


def _paper_rounds(run: Exploration, epsilon: float, delta: float) -> float:
    """T of the paper's lemma, without its hidden constant."""
    known = run.problem.known
    slack = float((known.thresholds - run.given_costs).min(initial=np.inf))
    if not np.isfinite(slack):
        raise CMPGError("T depends on what the safe policy costs. Use GivenPolicy(policy, costs), or give the rounds.")
    return safe_constants(Size.of(known, run.problem.agent), margin=slack, epsilon=epsilon, delta=delta).iterations


def _mean_value(problem: InducedProblem, seen: Samples) -> float:
    """The mean of the total reward over episodes; a sum of counts decides it."""
    episodes = int(seen.visits[0].sum())
    if seen.observed is not None:
        return float(seen.observed.rewards[problem.agent].sum()) / episodes
    return float((seen.visits * problem.payoffs[0]).sum()) / episodes


def _measured_response(run: Exploration, epsilon: float, delta: float) -> LearnedResponse:
    run.bound()
    best, gap = run.proved.incumbent, run.proved.gap
    assert best is not None, "a policy was measured"
    if run.proof_of_infeasibility:
        return run.conclude(ResponseStatus.INFEASIBLE, epsilon=epsilon, delta=delta, message=run.proof_of_infeasibility)
    if bool(np.all(best.cost_ceilings <= run.problem.known.thresholds)) and gap <= epsilon:
        return run.conclude(ResponseStatus.CERTIFIED, epsilon=epsilon, delta=delta)
    told = f"after {run.episodes:,} episodes the bounds are {gap:.4g} apart, not {epsilon:.4g}, or a cost is unproved."
    return run.conclude(ResponseStatus.UNPROVED, epsilon=epsilon, delta=delta, message=told)
