"""Algorithm 4: best responses by safe exploration, from episodes alone: optimistic for the reward, pessimistic for the
costs (DOPE).

Two kernels of a box differ in V^l by at most the expectation of Σ_h b_h(s, a), where b_h is a bonus of one of these
forms (C_h is the largest minus the least entry of l at step h, and the last step, which leads nowhere, has no bonus):

- `paper_bonus`: Σ_{h'} C_{h'} · Σ_{s'} β_h(s' | s, a), β the distance from the empirical entry to the further end of
  its interval; the paper's H·β̄ for costs in [0, 1];
- `tight_bonus`: Σ_{h' > h} C_{h'} · d_h(s, a), d the largest total variation distance between rows of the box: what is
  still to come can differ by its own range only, and rows by at most one.

So if a policy meets V^{c + b}(π, p) ≤ α under some kernel p of the box, it has V^c(π) ≤ α under all of them, and
under the true one. The exploration policy solves the extended CMDP

    maximise V^{r + B}(π, p)  subject to  V^{c_j + b_j}(π, p) ≤ α_j,   B = max_j b_j · G/(α_j − α_{S,j}),

over policies and kernels of the box; where there is no solution, the baseline π_S is played. Since B makes up for
what pessimism takes away, the value is at least the true optimum whenever π_S itself meets the raised costs under the
true kernel: mix the best policy with π_S so that the raised costs meet α with weight w on π_S; this loses at most
w·G, and gains w·G from B.

Safety rests on three things only: π_S meets the constraints, the true kernel (and payoffs, where learned) are in the
box, and nothing else that is played is outside the constraints above. On the event that the box holds at all times
(probability 1 − δ) nothing that was proved once is lost: in an `Exploration` the ceiling on the optimum only falls, and
the incumbent is replaced only by a better one.

`SafeExploration` plays only such policies, and a baseline π_S that the caller vouches for; every policy that was played
is in the response, with its number of episodes. It ends by certificate. The box holds the true kernel with probability
1 − δ at all times together (`mixture_interval`), so at any time: the best value over the box bounds the optimum from
above, the worst case over the box bounds the value of a candidate from below and its costs from above. It ends when the
bounds are within ε and the candidate's costs at most α − margin. It needs no number of episodes beforehand, and no T_0:
the baseline is played while nothing else is proved safe. Policies are solved for after every 2 % more episodes: what
was safe stays safe, as no promise depends on when it was made. The paper's conversion is `cmpg.paper.OnlineToBatch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import FloatArray, check_shape, distributions, numbers
from cmpg.cmdp.box import BoxCMDP, optimistic_response, worst_case
from cmpg.cmdp.exact import Exact
from cmpg.errors import CMPGError, InfeasibleError, PolicyError, SimulatorError
from cmpg.learning.confidence import Estimate, Interval, check_accuracy, estimate, mixture_interval, mixture_radius
from cmpg.learning.generative import bounded, current_in_box, tightened_candidate
from cmpg.learning.outcome import LearnedResponse, Proved, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Played, ProblemSpec, Samples
from cmpg.summaries import fields_line

Bonus = Callable[[Estimate], FloatArray]
"""What the costs are raised by: [k, H, S, A]."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """A policy that is known to meet the constraints, and the most that it is known to cost."""

    policy: FloatArray  # [H, S, A]
    ceilings: FloatArray  # [k]: V^{c_j}(π_S) is at most this; infinite where only "at most α" is known

    def informed(self, belief: Estimate) -> Baseline:
        """Return the same policy with what the samples say about its costs."""
        seen = np.array([worst_case(belief.box, self.policy, cost) for cost in belief.worst_costs])
        return replace(self, ceilings=np.minimum(self.ceilings, seen))

    def floors(self, belief: Estimate) -> FloatArray:
        """Return the least that it can cost according to the samples: [k]."""
        optimistic = belief.optimistic.nominal.costs
        return np.array([-worst_case(belief.box, self.policy, -cost) for cost in optimistic])


@dataclass(frozen=True, eq=False)
class Choice:
    """The policy to play next."""

    policy: FloatArray  # [H, S, A]
    is_baseline: bool
    work: int  # dynamic programs


def tight_bonus(belief: Estimate) -> FloatArray:
    """Return the range of what is still to come times the largest distance between rows of the box: [k, H, S, A]."""
    ranges = _ranges(belief.worst_costs)
    to_come = np.cumsum(ranges[:, ::-1], axis=1)[:, ::-1] - ranges
    return np.asarray(to_come[..., None, None] * belief.box.spread)


def paper_bonus(belief: Estimate) -> FloatArray:
    """Return the range of the whole cost times the sum of the intervals' radii: [k, H, S, A]."""
    box = belief.box
    kernel = box.nominal.transition
    radii = np.maximum(box.upper - kernel, kernel - box.lower).sum(axis=-1)
    return np.asarray(_ranges(belief.worst_costs).sum(axis=1)[:, None, None, None] * radii)


def _ranges(tables: FloatArray) -> FloatArray:
    """max − min of each step: [k, H]."""
    return np.asarray(np.max(tables, axis=(2, 3)) - np.min(tables, axis=(2, 3)))


def exploration_policy(
    belief: Estimate, baseline: Baseline, *, bonus: Bonus = tight_bonus, reward_range: float
) -> Choice:
    """Return the policy that promises most among those that are safe whatever the kernel, or the baseline.

    Parameters
    ----------
    belief
        The box, with the empirical CMDP in it.
    baseline
        π_S and α_S.
    bonus
        What the costs are raised by.
    reward_range
        G: no two policies differ by more in value.
    """
    nominal = belief.box.nominal
    slacks = nominal.thresholds - baseline.ceilings
    if not np.all(slacks > 0):
        return Choice(baseline.policy, is_baseline=True, work=0)
    raised = bonus(belief)
    shares = (raised / slacks[:, None, None, None]).max(axis=0, initial=0.0)
    program = replace(
        nominal,
        reward=belief.optimistic.nominal.reward + reward_range * shares,
        costs=belief.worst_costs + raised,
        trusted=True,
    )
    try:
        found = optimistic_response(BoxCMDP(program, belief.box.lower, belief.box.upper, trusted=True))
    except InfeasibleError:
        return Choice(baseline.policy, is_baseline=True, work=2)
    return Choice(found.policy, is_baseline=False, work=found.work)


@dataclass(frozen=True)
class Pace:
    """How many episodes, and how often to solve again.

    Examples
    --------
    >>> SafeExploration(pace=Pace(growth=0.5, first=64)).pace
    Pace(growth=0.5, first=64, most=100000000)
    """

    growth: float = 0.02  # solve after this share of more episodes
    first: int = 8  # and after no fewer than this
    most: int = 100_000_000  # episodes at most; the simulator's own budget holds besides

    def __post_init__(self) -> None:
        if not (self.growth > 0 and self.first >= 1 and self.most >= 1):
            raise CMPGError(f"{self} does not advance; growth must be positive, first and most at least 1.")


class Exploration:
    """The state of one run of DOPE against one agent's unknown CMDP."""

    def __init__(
        self,
        problem: InducedProblem,
        baseline: Baseline,
        *,
        bonus: Bonus,
        interval: Interval,
        delta: float,
        margin: float = 0.0,
    ) -> None:
        self.problem, self.baseline, self.bonus, self.interval, self.delta = problem, baseline, bonus, interval, delta
        self.given_costs = baseline.ceilings
        self.samples = problem.no_samples()
        self.episodes, self.work = 0, 0
        self.proved = Proved(problem.known.limits - margin)
        self.proof_of_infeasibility = ""
        self._next_search = 0
        self._played: dict[bytes, Played] = {}
        self._believe()

    @property
    def played(self) -> tuple[Played, ...]:
        """Every joint policy that was executed, with its number of episodes."""
        return tuple(self._played.values())

    @property
    def reward_range(self) -> float:
        """G of this agent."""
        return float(self.problem.known.reward_ranges[self.problem.agent])

    def play(self, policy: FloatArray, episodes: int) -> Samples:
        """Play episodes of one policy, and learn from them."""
        try:
            seen = self.problem.roll_out(policy, episodes)
        except SimulatorError as fault:
            fault.samples = self.samples if fault.samples is None else self.samples + fault.samples
            raise
        self.samples = self.samples + seen
        self.episodes += episodes
        joint = self.problem.policy.replace(self.problem.agent, policy)
        before = self._played.get(policy.tobytes())
        self._played[policy.tobytes()] = Played(joint, episodes + (before.episodes if before else 0))
        self._believe()
        return seen

    def advance(self, pace: Pace) -> bool:
        """Play the next batch; False where no episode is left."""
        affordable = self.problem.simulator.ledger.left / self.problem.known.horizon
        left = min(pace.most - self.episodes, affordable)
        if left < 1:
            return False
        choice = exploration_policy(self.belief, self.baseline, bonus=self.bonus, reward_range=self.reward_range)
        self.work += choice.work
        batch = max(pace.first, int(np.ceil(pace.growth * self.episodes)))
        self.play(choice.policy, int(min(batch, left)))
        return True

    def _believe(self) -> None:
        self.belief = estimate(
            self.problem, self.samples, delta=self.delta, interval=self.interval, radius=mixture_radius
        )
        self.baseline = self.baseline.informed(self.belief)

    def bound(self) -> None:
        """Lower the ceiling on what any policy that meets the constraints can be worth."""
        try:
            best = self.belief.best_deviation(self.problem.known.bound(self.problem.agent))
        except InfeasibleError as proof:
            self.proof_of_infeasibility = str(proof)
            return
        self.work += best.work
        self.proved.lower(best.bound)

    def propose(self, *, close: float = np.inf) -> None:
        """Look for a better policy among those that keep to the thresholds, less the margin, under all kernels.

        The incumbent is judged every time. The search for another one takes most of the time, so while it cannot bring
        the bounds within `close` of each other it waits for twice as many episodes.
        """
        proved = self.proved
        proved.consider(replace(bounded(self.belief, self.baseline.policy), cost_ceilings=self.baseline.ceilings))
        if proved.incumbent is not None:
            proved.consider(bounded(self.belief, proved.incumbent.policy, multipliers=proved.incumbent.multipliers))
        if self.problem.nash_epsilon is not None:
            proved.current &= current_in_box(self.belief, self.problem.policy[self.problem.agent])
        belief = _with_thresholds(self.belief, proved.thresholds)
        if self.episodes < self._next_search and proved.gap > close and not self._promising(belief, close):
            return
        self._next_search = 2 * self.episodes + 1
        found = tightened_candidate(belief)
        self.work += found.work
        proved.consider(found)

    def _promising(self, belief: Estimate, close: float) -> bool:
        """Whether a candidate's floor could be within `close` of the ceiling: it is at most the empirical optimum."""
        self.work += 1
        try:
            return self.proved.ceiling - Exact()(belief.box.nominal).bound <= close
        except InfeasibleError:
            return False

    def conclude(self, status: ResponseStatus, *, epsilon: float, delta: float, message: str = "") -> LearnedResponse:
        """Return what is known now; the baseline where nothing is proved to keep to the thresholds."""
        best, nash = self.proved.incumbent, self.problem.nash_epsilon
        if best is None:
            best = replace(bounded(self.belief, self.baseline.policy), cost_ceilings=self.baseline.ceilings)
        return LearnedResponse(
            status=status,
            message=message or status.value,
            policy=best.policy,
            value_floor=best.value_floor,
            value_ceiling=self.proved.ceiling,
            cost_ceilings=best.cost_ceilings,
            multipliers=best.multipliers,
            epsilon=epsilon,
            delta=delta,
            samples=self.episodes * self.problem.known.horizon,
            samples_per_entry=0,
            work=self.work,
            played=self.played,
            current=None if nash is None else self.proved.current,
        )


def _with_thresholds(belief: Estimate, thresholds: FloatArray) -> Estimate:
    nominal = replace(belief.box.nominal, thresholds=thresholds, trusted=True)
    return replace(belief, box=BoxCMDP(nominal, belief.box.lower, belief.box.upper, trusted=True))


class BaselineSource(Protocol):
    """Says which policy is safe to begin with."""

    def __call__(self, problem: InducedProblem) -> Baseline:
        """Return a policy of the agent that meets the constraints, with the most that it is known to cost."""


@dataclass(frozen=True)
class OwnPolicy:
    """The policy that the agent plays already, which meets the constraints; its slack is found out from samples.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, InducedProblem
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> OwnPolicy()(problem).policy
    array([[[0.5, 0.5]]])
    """

    def __call__(self, problem: InducedProblem) -> Baseline:
        """Return the agent's table of the joint policy."""
        return Baseline(problem.policy[problem.agent], np.full(problem.known.num_constraints, np.inf))


@dataclass(frozen=True, eq=False)
class GivenPolicy:
    """A policy that the caller vouches for, and, where that is known, what it costs.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> GivenPolicy([[[1.0, 0.0]]], costs=[0.0])(problem).policy
    array([[[1., 0.]]])
    """

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

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, InducedProblem
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> response = SafeExploration(pace=Pace(growth=0.5))(problem, epsilon=0.1, delta=0.1)
    >>> response.status.name, round(response.value_floor, 3), response.cost_ceilings.round(3)
    ('CERTIFIED', 3.0, array([0.5]))
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
        if proved.gap <= epsilon or proved.stays(nash) or (proved.moves(nash) and proved.gap <= (nash or 0.0)):
            return ResponseStatus.CERTIFIED, ""
        if proved.moves(nash):
            return ResponseStatus.BETTER, ""
        lack = lack_of_slack(run, self.least_slack)
        if lack:
            return ResponseStatus.NO_SLACK, f"cannot be certified: {lack}"
        if proved.incumbent is None:
            reason = "no policy is proved to meet the constraints yet."
        else:
            reason = f"the bounds are {proved.gap:.4g} apart, not {epsilon:.4g}."
        return ResponseStatus.LIMIT, f"after {run.episodes:,} episodes {reason}"


def safe_learner(
    known: ProblemSpec, *, epsilon: float, margin: float | None = None, pace: Pace | None = None
) -> SafeExploration:
    """Return the safe learner for `learn` at ε, where every response must leave the others something to explore with.

    Parameters
    ----------
    known
        Sizes and ranges of the game.
    epsilon
        The accuracy required of the equilibrium.
    margin
        What a response leaves of every budget; unless given, ε/16 at the rate of exchange α/G, the least over
        constraints. A larger one is budget that the others gain by using; a smaller one slows down their exploration.
    pace
        Episodes, and solves.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> known = GameSimulator(counter_example(), rng=np.random.default_rng(0)).known
    >>> safe_learner(known, epsilon=0.1).margin > 0
    True
    """
    left = _margin(known, epsilon) if margin is None else margin
    widest = float(known.cost_spans.sum(axis=1).max(initial=0.0))
    # The margin is all the slack that there is after the first move: less than a quarter of it is called none.
    least = min(1e-3, left / (4 * widest)) if widest > 0 and left > 0 else 1e-3
    return SafeExploration(margin=left, pace=pace or Pace(), least_slack=least)


def _margin(known: ProblemSpec, epsilon: float) -> float:
    largest = float(known.reward_ranges.max())
    if known.num_constraints == 0 or largest == 0:
        return 0.0
    budgets = np.where(known.thresholds > 0, known.thresholds, known.cost_spans.sum(axis=1))
    return float(budgets.min()) * min(epsilon / largest, 1.0) / 16


def lack_of_slack(run: Exploration, least_slack: float) -> str:
    """Say why the baseline cannot be used to explore, or nothing where it can or may yet."""
    known, ceilings = run.problem.known, run.baseline.ceilings
    floors = run.baseline.floors(run.belief)
    for j, threshold in enumerate(known.limits):
        found = f"constraint {j} has the threshold {threshold:.6g}"
        if floors[j] > threshold:
            return f"{found}, but the policy that was called safe costs at least {floors[j]:.6g}. Give another one."
        if run.given_costs[j] >= threshold and np.isfinite(run.given_costs[j]):
            return f"{found}, and the safe policy costs {run.given_costs[j]:.6g}: no slack is left to explore with."
        if ceilings[j] >= threshold and threshold - floors[j] < least_slack * float(known.cost_spans[j].sum()):
            return f"{found}, and the safe policy costs at least {floors[j]:.6g}: too little slack to explore with."
    return ""
