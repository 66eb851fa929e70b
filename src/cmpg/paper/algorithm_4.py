"""Algorithm 4 to the letter: T_0 episodes of a safe policy, T of DOPE, then M of each policy, and the best is returned.

DOPE (Bura et al. 2022) is for rewards and costs in [0, 1] and one constraint. With n visits of (h, s, a) so far,

    β_h(s, a, s') = √(4 p̂ (1 − p̂) L/n) + 14 L/(3n),   L = ln(2S²AHK/δ),   K = T_0 + T,   β̄ = Σ_{s'} β,   β = 1 if n = 0,

it plays in every episode the policy of the extended problem over policies and kernels

    maximise V^{r̄}(π, p)   subject to   V^{c̄}(π, p) ≤ α,  |p − p̂| ≤ β,   c̄ = c + Hβ̄,   r̄ = r + H²β̄/(α − α_S),

one episode each, solved again every time. The last step leads nowhere, so there β̄ = 0. The paper has T = 4C²/ε² with
C = SH³√A/(α − α_S), M = 16H²/ε² ln(2C/εδ), and T_0 = S²AH⁴/(α − α_S)², all of them up to constants and logarithms that
it hides; here the hidden factors are one. Where T_0 was too short the extended problem has no solution yet, and π_S is
played on; those rounds are counted.

`OnlineToBatch` is the same as a learner for Algorithm 2: T episodes of DOPE, then M episodes of each policy that was
played, and the one with the best mean. DOPE's regret bound hides a constant, so T proves nothing by itself; the answer
is judged by an upper bound, the best value over the box, and certified if that is within ε of the mean minus
Hoeffding's radius. Half of δ goes to the box, half to the means.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.box import BoxCMDP, optimistic_response
from cmpg.errors import BudgetError, CMPGError, InfeasibleError
from cmpg.learning.bounds import SafeConstants, Size, refuse_masks, safe_constants
from cmpg.learning.confidence import (
    Interval,
    PaperInterval,
    check_accuracy,
    empirical_cmdp,
    hoeffding_count,
    hoeffding_radius,
    mixture_interval,
    transition_box,
)
from cmpg.learning.generative import bounded
from cmpg.learning.outcome import LearnedResponse, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.safe import BaselineSource, Bonus, Exploration, OwnPolicy, Pace, lack_of_slack, paper_bonus
from cmpg.learning.samples import Samples
from cmpg.summaries import fields_line


@dataclass(frozen=True, eq=False)
class DopeRun:
    """What Algorithm 4 played, and what it returns."""

    constants: SafeConstants  # T, T_0, M
    policies: tuple[FloatArray, ...]  # π_1, …, π_T: each [H, S, A]
    means: FloatArray  # [T]: the mean reward of M episodes of each
    safe_rounds: int  # rounds beyond T_0 in which the safe policy was all that was left

    @property
    def policy(self) -> FloatArray:
        """The policy with the best mean: [H, S, A]."""
        return self.policies[int(self.means.argmax())]


@dataclass(frozen=True, eq=False)
class Algorithm4:
    """Learn a best response by DOPE and its online-to-batch conversion.

    What the paper hides in its Õ is taken to be one, so the answer comes without a certificate: it is a `DopeRun`, with
    everything that was played.

    Parameters
    ----------
    safe_policy : [H, S, A]
        π_S, strictly feasible.
    safe_cost
        α_S = V^c(π_S), less than the threshold.

    Examples
    --------
    >>> from cmpg.games import JointGame
    >>> from cmpg.learning import GameSimulator
    >>> game = JointGame(transition=np.ones((1, 1, 2, 1)), rewards=[[[[0.0, 1.0]]]], costs=[[[[0.0, 1.0]]]],
    ...                  thresholds=[0.5], initial=[1.0], horizon=1)
    >>> safe = np.array([[[1.0, 0.0]]])
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> run = Algorithm4(safe, safe_cost=0.0)(problem, epsilon=0.5, delta=0.1)
    >>> len(run.policies), run.policy.shape
    (129, (1, 1, 2))
    """

    safe_policy: FloatArray
    safe_cost: float

    __repr__ = fields_line

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> DopeRun:
        """Learn the best response of one agent, with known rewards and costs in [0, 1] and one constraint."""
        _check(problem)
        refuse_masks(problem.known)
        constants = dope_constants(problem, safe_cost=self.safe_cost, epsilon=epsilon, delta=delta)
        rounds, first = int(constants.iterations), int(constants.first_phase)
        samples = problem.no_samples() + problem.roll_out(self.safe_policy, first)
        margin = float(problem.known.thresholds[0]) - self.safe_cost
        policies, safe_rounds = [], 0
        for _ in range(rounds):
            extended = extended_problem(problem, samples, margin=margin, rounds=first + rounds, delta=delta)
            policy = _exploration_policy(extended)
            safe_rounds += policy is None
            policies.append(self.safe_policy if policy is None else policy)
            samples = samples + problem.roll_out(policies[-1], 1)
        reward = problem.payoffs[0]
        seen = (problem.roll_out(policy, constants.episodes) for policy in policies)
        means = np.array([float((each.visits * reward).sum()) / constants.episodes for each in seen])
        return DopeRun(constants, tuple(policies), means, safe_rounds)


def dope_constants(problem: InducedProblem, *, safe_cost: float, epsilon: float, delta: float) -> SafeConstants:
    """Return T, T_0 and M, with one in the place of what the paper's Õ hides."""
    horizon, states, actions = problem.shape
    unit = Size(states, actions, horizon, np.ones(horizon), np.ones((1, horizon)), states)
    margin = float(problem.known.thresholds[0]) - safe_cost
    return safe_constants(unit, margin=margin, epsilon=epsilon, delta=delta, printed=True)


def _check(problem: InducedProblem) -> None:
    if problem.known.num_constraints != 1:
        raise CMPGError(f"Algorithm 4 is for one constraint; there are {problem.known.num_constraints}.")
    reward, costs = problem.payoffs
    for name, table in (("rewards", reward), ("costs", costs)):
        if table.min() < 0 or table.max() > 1:
            raise CMPGError(f"{name} are between {table.min():.4g} and {table.max():.4g}; Algorithm 4 wants [0, 1].")


def extended_problem(problem: InducedProblem, samples: Samples, *, margin: float, rounds: int, delta: float) -> BoxCMDP:
    """Return the extended problem of one episode: r̄ and c̄ over the kernels within β of p̂; K is `rounds`."""
    horizon = problem.shape[0]
    empirical = empirical_cmdp(problem, samples)
    lower, upper = empirical.transition.copy(), empirical.transition.copy()
    # The interval is for one probability: δ is shared by the S²A(H − 1) entries, which makes L what it is above.
    lower[:-1], upper[:-1] = transition_box(samples.transitions, delta=delta, interval=PaperInterval(rounds))
    radii = np.maximum(upper - empirical.transition, empirical.transition - lower).sum(axis=-1)
    program = replace(
        empirical,
        reward=empirical.reward + horizon**2 * radii / margin,
        costs=empirical.costs + horizon * radii,
        trusted=True,
    )
    return BoxCMDP(program, lower, upper, trusted=True)


def _exploration_policy(extended: BoxCMDP) -> FloatArray | None:
    """Solve the extended problem, or return None where it has no solution."""
    try:
        return optimistic_response(extended).policy
    except InfeasibleError:
        return None


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

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> response = OnlineToBatch(rounds=100)(problem, epsilon=1.0, delta=0.1)
    >>> response.status.name, response.policy.shape
    ('CERTIFIED', (1, 1, 2))
    """

    baseline: BaselineSource = field(default_factory=OwnPolicy)
    rounds: int | None = None
    bonus: Bonus = paper_bonus
    interval: Interval = mixture_interval
    pace: Pace = field(default_factory=Pace)

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response, or raise BudgetError where the exploration or the measuring is not affordable."""
        check_accuracy(epsilon, delta)
        refuse_masks(problem.known)
        run = Exploration(problem, self.baseline(problem), bonus=self.bonus, interval=self.interval, delta=delta / 2)
        lack = lack_of_slack(run, 0.0)
        if lack:
            message = f"cannot be certified: {lack}"
            return run.conclude(ResponseStatus.NO_SLACK, epsilon=epsilon, delta=delta, message=message)
        rounds = _paper_rounds(run, epsilon, delta) if self.rounds is None else self.rounds
        self._refuse_beyond(rounds, "exploring")
        while run.advance(replace(self.pace, most=int(rounds))):
            pass
        if run.episodes < rounds:
            message = f"the budget ended after {run.episodes} of {rounds:.4g} episodes of exploration."
            return run.conclude(ResponseStatus.LIMIT, epsilon=epsilon, delta=delta, message=message)
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
                f"Use SafeExploration, or raise epsilon."
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
    apart = f"the bounds are {gap:.4g} apart, not {epsilon:.4g}, or a cost is unproved."
    message = f"after {run.episodes:,} episodes {apart}"
    return run.conclude(ResponseStatus.UNPROVED, epsilon=epsilon, delta=delta, message=message)
