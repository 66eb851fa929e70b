"""Exploration that never leaves the constraints: optimistic for the reward, pessimistic for the costs (DOPE).

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.box import BoxCMDP, optimistic_response, worst_case
from cmpg.cmdp.exact import Exact
from cmpg.errors import CMPGError, InfeasibleError, SimulatorError
from cmpg.learning.confidence import Estimate, Interval, estimate, mixture_radius
from cmpg.learning.generative import bounded, present_in_box, tightened_candidate
from cmpg.learning.outcome import LearnedResponse, Proved, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Played, Samples

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
    """How many episodes, and how often to solve anew."""

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
            best = optimistic_response(self.belief.optimistic)
        except InfeasibleError as proof:
            self.proof_of_infeasibility = str(proof)
            return
        self.work += best.work
        self.proved.lower(best.bound)

    def propose(self, *, close: float = np.inf) -> None:
        """Look for a better policy among those that keep to the thresholds, less the margin, under all kernels.

        The incumbent is always judged anew. The search for another one takes most of the time, so while it cannot bring
        the bounds within `close` of each other it waits for twice as many episodes.
        """
        proved = self.proved
        proved.consider(replace(bounded(self.belief, self.baseline.policy), cost_ceilings=self.baseline.ceilings))
        if proved.incumbent is not None:
            proved.consider(bounded(self.belief, proved.incumbent.policy, multipliers=proved.incumbent.multipliers))
        if self.problem.nash_epsilon is not None:
            proved.present &= present_in_box(self.belief, self.problem.policy[self.problem.agent])
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
            present=None if nash is None else self.proved.present,
        )


def _with_thresholds(belief: Estimate, thresholds: FloatArray) -> Estimate:
    nominal = replace(belief.box.nominal, thresholds=thresholds, trusted=True)
    return replace(belief, box=BoxCMDP(nominal, belief.box.lower, belief.box.upper, trusted=True))
