"""Algorithm 3, adaptive and certified: best responses from a generative model, with nothing known beforehand.

In round j there are N_j = N_0·2^(j−1) samples of every (h, s, a) that matters. What is proved in one round stays proved
in the next, and all of it fails with probability at most δ.

- Ceiling: `optimism.py`, without boxes; half of δ, for all rounds together. Draws go where the optimistic planner may
  go, and rows that have the same law at several steps share them.
- Candidate: the optimum of the empirical CMDP, its thresholds tightened by the errors that its costs are likely to
  have. It is measured by fresh episodes (`optimism.py`), only once the ceiling is near what it seems to be worth; a
  candidate that fails is tightened further. A quarter of the round's share, δ/(j(j + 1)).
  A candidate meets every constraint, also those that do not bind the agent; the ceiling minds those that do.
- The current policy of the agent, if the query is about deviations, is measured likewise; a quarter of the share.
- If rows have one or two possible next states, a box around the empirical kernel, with half of δ: the best value over
  all policies and kernels of the box is a ceiling, and the worst cases of the empirical optimum, tightened so far that
  its worst cost is at most α, are bounds that need no episodes. It takes as many samples of every entry.

It ends when the best ceiling and the best floor of a feasible policy are within ε; or, queried by Algorithm 2 at ε, as
soon as it is decided whether the agent stays (no feasible policy is worth ε more than its current one) or moves (a
feasible one is worth ε/4 more than the current one, and within ε of the best). One of both is decided at the latest
when ceiling and floor are within ε/4 and the current value is known up to ε/4.

Guarantee: with probability at least 1 − δ, what is called certified is feasible and within ε of the best; no slack need
be known. Where there is none, no candidate can be proved feasible, and the samples run out.

Where rewards and costs are not known either, there is a box, half of its share goes to them (Hoeffding), and all
bounds take their worst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.box import worst_case
from cmpg.cmdp.evaluation import action_values, evaluate, occupancy
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.cmdp.response import BestResponse
from cmpg.errors import BudgetError, InfeasibleError, SimulatorError
from cmpg.games.game import bound_cmdp
from cmpg.learning.confidence import Estimate, Interval, binomial_interval, check_accuracy, empirical_cmdp, estimate
from cmpg.learning.optimism import FIRST_EPISODES, Draws, Measurement, Optimism
from cmpg.learning.outcome import BoundedPolicy, CurrentBounds, LearnedResponse, Proved, ResponseStatus
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import BoolArray

TIGHTENINGS = 8
"""Bisections for the tightened thresholds of a box: they are found to 1 % of the error that they allow for."""

BOX_SUCCESSORS = 2
"""Where rows have more possible next states, a box, which asks for samples of every entry, hardly ever saves any."""

TRIES = 2
"""At most this many candidates are tried in one round."""

STAYS = "no policy that meets the constraints is worth epsilon more than the current one, with probability 1 − delta"

EPISODE_SHARE = 0.5
"""Measuring one policy may take this share of the samples that the model took."""


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
        How a box bounds one probability; None for no box.
    on_round
        Called with the bounds after every round.

    Examples
    --------
    >>> from cmpg import JointPolicy
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> idle = JointPolicy.reference(spectrum().policy_shapes)
    >>> response = Adaptive()(InducedProblem(simulator, 0, idle), epsilon=0.5, delta=0.1)
    >>> response.status.name, response.value_ceiling - response.value_floor <= 0.5
    ('CERTIFIED', True)
    """

    first_count: int = 64
    max_count: int = 2**30
    interval: Interval | None = binomial_interval
    on_round: Callable[[LearnedResponse], None] | None = None

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response; running out of samples is an ending, with the best policy so far."""
        check_accuracy(epsilon, delta)
        run = _Rounds(problem, self, epsilon=epsilon, delta=delta)
        response = run.judge()
        while response.status is ResponseStatus.LIMIT and run.entries:
            if self.on_round is not None:
                self.on_round(response)
            if run.target > self.max_count:
                break
            try:
                run.draw()
                response = run.judge()
            except BudgetError as stop:
                run.use_up()
                concluded = run.conclude()
                return replace(concluded, message=f"{concluded.message} {stop}")
            except SimulatorError as fault:
                fault.samples = run.samples if fault.samples is None else run.samples + fault.samples
                raise
        return response


class _Rounds:
    """One adaptive run: the samples so far, the round, and what is proved."""

    def __init__(self, problem: InducedProblem, learner: Adaptive, *, epsilon: float, delta: float) -> None:
        horizon = problem.shape[0]
        learned = problem.known.payoffs is None
        self.problem, self.epsilon, self.delta = problem, epsilon, delta
        self.bound = problem.known.bound(problem.agent)  # [k]
        self.obstacle = ""  # why no candidate can be moved to
        self.interval = learner.interval if problem.known.max_successors(problem.agent) <= BOX_SUCCESSORS else None
        if learned or horizon == 1:  # payoffs have their intervals from the box, and one step has nothing else
            self.interval = learner.interval or binomial_interval
        self.entries = problem.num_entries
        self.samples = problem.no_samples()
        self.count, self.target, self.rounds, self.work = 0, learner.first_count, 0, 0
        self.drawn = 0
        self.matter: BoolArray | None = None  # [H − 1, S, A]; None for all entries
        self.before = problem.simulator.ledger.total
        self.proved = Proved(problem.known.limits)
        unknown = np.full(problem.known.num_constraints, np.inf)
        self.latest = BoundedPolicy(problem.policy[problem.agent], -np.inf, unknown, np.zeros(len(unknown)), 0)

    @property
    def decided(self) -> bool:
        """Whether the query is decided by what is proved."""
        nash = self.problem.nash_epsilon
        if nash is None:
            return self.proved.gap <= self.epsilon
        return self.proved.stays(nash) or self.proved.moves(nash)

    @property
    def max_episodes(self) -> float:
        """How many episodes of one policy may be played in this round: as many as its batches can add up to."""
        affordable = EPISODE_SHARE * self.drawn / self.problem.shape[0] / FIRST_EPISODES
        return FIRST_EPISODES * 2.0 ** int(np.log2(max(affordable, 1.0)))

    def draw(self) -> None:
        """Draw until there are twice as many samples of every entry that matters."""
        before = self.problem.simulator.ledger.total
        self.samples = self.problem.top_up(self.samples, self.target, where=self.matter)
        self.drawn += self.problem.simulator.ledger.total - before
        self.count, self.target, self.rounds = self.target, 2 * self.target, self.rounds + 1

    def judge(self) -> LearnedResponse:
        """Prove what this round's samples can prove."""
        # The box before the first sample holds everything, so it cannot fail and costs no confidence.
        share = self.delta / (self.rounds * (self.rounds + 1)) if self.rounds else self.delta
        drawn = self.rounds > 0 and len(self.samples.transitions) > 0
        try:
            left = self.delta
            if self.interval is None:
                empirical = optimistic = empirical_cmdp(self.problem, self.samples)
            else:
                share, left = (share / 2, left / 2) if drawn else (share, left)
                belief = estimate(self.problem, self.samples, delta=share, interval=self.interval)
                empirical, optimistic = belief.box.nominal, belief.optimistic.nominal
                self._bound_by_box(belief)
            if drawn and not self.decided:
                self._bound_by_draws(empirical, optimistic, left=left, share=share)
        except InfeasibleError as proof:
            return self.conclude(ResponseStatus.INFEASIBLE, str(proof))
        if self.obstacle and not self.decided:
            return self.conclude(ResponseStatus.UNPROVED, self.obstacle)
        return self.conclude()

    def _bound_by_box(self, belief: Estimate) -> None:
        best = belief.best_deviation(self.bound)
        self.proved.lower(best.bound)
        self.latest = tightened_candidate(belief)
        self.proved.consider(self.latest)
        if self.problem.nash_epsilon is not None:
            self.proved.current &= current_in_box(belief, self.problem.policy[self.problem.agent])
        self.work += best.work + self.latest.work

    def _bound_by_draws(self, empirical: CMDP, optimistic: CMDP, *, left: float, share: float) -> None:
        known, bound = self.problem.known, self.bound
        most_reward, least_costs = known.extreme_payoffs(self.problem.agent)
        with np.errstate(divide="ignore", invalid="ignore"):  # a cost that is always the same has no range
            scales = known.reward_ranges[self.problem.agent] / known.cost_spans.sum(axis=1)
        optimism = Optimism(
            draws=Draws(self.samples.transitions, known.induced_support(self.problem.agent)),
            reward=optimistic.reward,
            costs=optimistic.costs[bound],
            fixed=None if known.payoffs is not None else (most_reward, least_costs[bound]),
            thresholds=known.thresholds[bound],
            initial=known.initial,
            scales=np.where(np.isfinite(scales) & (scales > 0), scales, 1.0)[bound],
            delta=left / 2,  # for all rounds together: its bets are fixed beforehand
        )
        try:
            best: BestResponse | None = Exact()(bound_cmdp(empirical, bound))
        except InfeasibleError:
            best = None
            optimism.require_feasible(np.flatnonzero(bound))
        near = np.full(known.num_constraints, np.inf) if best is None else best.multipliers
        ceiling = optimism.least_bound(near[bound])
        self.proved.lower(ceiling.value)
        self.work += ceiling.work + (2 if best is None else best.work)
        self._measure(empirical, best, share)
        # A box bounds all entries with numbers of draws that are fixed beforehand; without one, draws go where the
        # optimistic planner may go.
        if self.interval is None and best is not None:
            slack = max(ceiling.value - best.value, self.epsilon / 4)
            multipliers = np.zeros(known.num_constraints)
            multipliers[bound] = ceiling.multipliers
            self.matter = entries_that_matter(empirical, multipliers, optimism.worth(ceiling.multipliers), slack)

    def use_up(self) -> None:
        """Measure a candidate with what is left of the budget, so that a run that is cut short ends with a policy."""
        if self.proved.incumbent is not None or not self.rounds:
            return
        empirical, rounds = empirical_cmdp(self.problem, self.samples), self.rounds + 1
        share = self.delta / (rounds * (rounds + 1)) / 2
        try:
            episodes = max(self.problem.simulator.ledger.left / self.problem.shape[0], 1.0)
            loose = Exact()(bound_cmdp(empirical, self.bound))
            best = self._tightened(empirical, loose, share, episodes=episodes)
        except InfeasibleError:
            return
        if best is not None:
            candidate = Measurement(self.problem, best.policy, empirical, delta=share / 4)
            while candidate.next_batch * self.problem.shape[0] <= self.problem.simulator.ledger.left:
                candidate.grow()
                self._consider(best, candidate)

    def _measure(self, empirical: CMDP, best: BestResponse | None, share: float) -> None:
        """Roll out what promises to decide the query: the current policy, then candidates."""
        nash = self.problem.nash_epsilon
        current = Measurement(self.problem, self.problem.policy[self.problem.agent], empirical, delta=share / 4)
        seems = float(evaluate(empirical, current.policy).value)
        if nash is not None and self.proved.ceiling - seems <= nash:
            self._play(current, self._note_current)
        for attempt in range(TRIES):
            # Thresholds are tightened by the errors that are likely, and by twice as much after a failure.
            safer = (
                None
                if best is None
                else self._tightened(empirical, best, share, episodes=self.max_episodes, caution=2.0**attempt)
            )
            if self.decided or safer is None:
                return
            gain = safer.value - seems
            if self.proved.ceiling - safer.value > (self.epsilon if nash is None else max(nash, gain)):
                return
            if nash is not None and gain <= nash / 4:
                return
            candidate = Measurement(self.problem, safer.policy, empirical, delta=share / (4 * TRIES))
            self._play(candidate, partial(self._consider, safer))
            broken = (candidate.floors[1:] > self.problem.known.limits) & ~self.bound
            if broken.any():
                self.obstacle = (
                    f"what is best for the agent breaks constraint {int(np.argmax(broken))}, which does not bind it. "
                    "Agents that it binds would have to make room: learn_shared can propose such policies."
                )
                return
            if self.latest.meets(self.problem.known.limits):
                break
        if nash is not None and self.proved.incumbent is not None:
            self._play(current, self._note_current)

    def _play(self, one: Measurement, note: Callable[[Measurement], None]) -> None:
        """Play a policy until the query is decided, the policy is refuted, or the model is what is missing."""
        while not self.decided and one.episodes + one.next_batch <= self.max_episodes:
            one.grow()
            note(one)
            if np.any(one.floors[1:] > self.problem.known.limits):
                return

    def _note_current(self, seen: Measurement) -> None:
        self.proved.current &= seen.bounds

    def _consider(self, found: BestResponse, seen: Measurement) -> None:
        self.latest = BoundedPolicy(
            policy=found.policy,
            value_floor=float(seen.floors[0]),
            cost_ceilings=seen.ceilings[1:].copy(),
            multipliers=found.multipliers,
            work=found.work,
        )
        self.proved.consider(self.latest)

    def _tightened(
        self, empirical: CMDP, best: BestResponse, share: float, *, episodes: float, caution: float = 1.0
    ) -> BestResponse | None:
        """Solve the empirical CMDP with thresholds that allow for the errors that costs like this optimum's have.

        In a game they leave the others, if they can, as much room as is worth ε/16 to this agent: without any, others
        would have to know their costs exactly.
        """
        unmeasured = Measurement(self.problem, best.policy, empirical, delta=share)
        model, episode = cost_variances(empirical, best.policy)
        per_episode = (np.log(1 / share) + 10.0) / episodes  # what batches and bets add is about 10
        ranges = (unmeasured.ceilings - unmeasured.floors)[1:]
        errors = 2 * np.sqrt(model / self.count) + np.sqrt(2 * episode * per_episode) + ranges * per_episode
        errors *= caution
        nash = self.problem.nash_epsilon
        room = 0.0 if nash is None else nash / 16 / np.maximum(best.multipliers, 1e-300) * (best.multipliers > 0)
        for left in (errors + room, errors):
            found = self._solved(empirical, left)
            if found is not None:
                return found
        return None

    def _solved(self, empirical: CMDP, left: FloatArray) -> BestResponse | None:
        """Solve the empirical CMDP with thresholds lowered by `left` [k]; None where no policy meets them.

        The agent minds constraints that do not bind it, too, as long as it loses next to nothing by that.
        """
        found = self._best(bound_cmdp(_lowered(empirical, left), self.bound))
        if found is None or self.bound.all():
            return found
        for lower in (left, np.where(self.bound, left, 0.0)):
            other = self._best(_lowered(empirical, lower))
            if other is not None and other.value >= found.value - self.epsilon / 4:
                return other
        return found

    def _best(self, cmdp: CMDP) -> BestResponse | None:
        try:
            found = Exact()(cmdp)
        except InfeasibleError:
            return None
        self.work += found.work
        return found

    def conclude(self, status: ResponseStatus | None = None, message: str = "") -> LearnedResponse:
        """Gather what is proved."""
        proved, nash = self.proved, self.problem.nash_epsilon
        best = proved.incumbent or self.latest
        if proved.stays(nash):
            # Nothing here proves that the current policy is feasible: its costs are what was found of them.
            mine, found = self.problem.policy[self.problem.agent], proved.current
            best = BoundedPolicy(mine, found.value_floor, found.cost_ceilings, self.latest.multipliers, 0)
        if status is None:
            good = proved.stays(nash) or proved.gap <= (self.epsilon if nash is None else nash)
            better = ResponseStatus.BETTER if proved.moves(nash) else ResponseStatus.LIMIT
            status = ResponseStatus.CERTIFIED if good and self.decided else better
            message = STAYS if proved.stays(nash) else message
        if status is ResponseStatus.LIMIT:
            feasible = proved.incumbent is not None
            need = "the policy is feasible, but" if feasible else "no policy is proved to be feasible yet, and"
            apart = f"the bounds are {proved.ceiling - best.value_floor:.4g} apart, not {self.epsilon:.4g}."
            message = f"with {self.count} samples of every entry {need} {apart}"
        return LearnedResponse(
            status=status,
            message=message or status.value,
            policy=best.policy,
            value_floor=best.value_floor,
            value_ceiling=np.inf if status is ResponseStatus.INFEASIBLE else proved.ceiling,
            cost_ceilings=best.cost_ceilings,
            multipliers=best.multipliers,
            epsilon=self.epsilon,
            delta=self.delta,
            samples=self.problem.simulator.ledger.total - self.before,
            samples_per_entry=self.count,
            work=self.work,
            current=None if nash is None else proved.current,
        )


def _lowered(cmdp: CMDP, left: FloatArray) -> CMDP:
    return replace(cmdp, thresholds=cmdp.thresholds - left, trusted=True)


def current_in_box(belief: Estimate, policy: FloatArray) -> CurrentBounds:
    """Return what a box proves about a policy."""
    best = belief.optimistic.nominal
    worst = bounded(belief, policy)
    floors = [-worst_case(belief.box, policy, -cost) for cost in best.costs]
    return CurrentBounds(
        worst.value_floor, worst_case(belief.box, policy, best.reward), np.array(floors), worst.cost_ceilings
    )


def entries_that_matter(empirical: CMDP, multipliers: FloatArray, worth: FloatArray, slack: float) -> BoolArray:
    """Return the entries of which more samples are likely to lower the ceiling: [H − 1, S, A].

    They can be reached from the first state by actions that may be the best ones there, as far as an optimistic planner
    (`worth` [H, S, A]) and the empirical model differ, and that lose no more than `slack` in all. What is lost in a
    state counts as often as it is reached. No bound rests on this choice.
    """
    expected = action_values(empirical, plan(empirical, multipliers).policy(empirical.num_actions))
    means = expected[:, 0] - np.tensordot(multipliers, np.moveaxis(expected, 1, 0)[1:], axes=1)  # [H, S, A]
    losses = worth.max(axis=2, keepdims=True) - worth
    doubts = worth.max(axis=2) - means.max(axis=2)
    steps = len(worth) - 1
    kernel = np.broadcast_to(empirical.transition, (steps + 1, *empirical.transition.shape[1:]))
    matter = np.zeros(worth[:-1].shape, dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        slacks = np.where(empirical.initial > 0, slack / empirical.initial, -np.inf)  # what may still be lost: [S]
        for h in range(steps):
            left = slacks[:, None] - losses[h]
            matter[h] = (left >= 0) & (losses[h] <= doubts[h][:, None])
            reached = matter[h][..., None] & (kernel[h] > 0)
            slacks = np.where(reached, left[..., None] / kernel[h], -np.inf).max(axis=(0, 1))
    return matter


def cost_variances(empirical: CMDP, policy: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variances that the costs of a policy have: as estimated from one sample of every entry, because of
    its errors, and of one episode, because of where transitions lead: [k], [k].
    """
    visits = occupancy(empirical, policy)[:-1]
    values = (policy * np.moveaxis(action_values(empirical, policy), 1, 0)[1:]).sum(axis=-1)[:, 1:]
    kernel = np.broadcast_to(empirical.transition, (empirical.num_steps, *empirical.transition.shape[1:]))[:-1]
    variances = np.einsum("hsat,jht->jhsa", kernel, values**2) - np.einsum("hsat,jht->jhsa", kernel, values) ** 2
    variances = np.maximum(variances, 0.0)
    return np.einsum("hsa,jhsa->j", visits**2, variances), np.einsum("hsa,jhsa->j", visits, variances)


def bounded(
    belief: Estimate, policy: FloatArray, *, multipliers: FloatArray | None = None, work: int = 0
) -> BoundedPolicy:
    """Return a policy with its worst case over the box."""
    ceilings = np.array([worst_case(belief.box, policy, cost) for cost in belief.worst_costs])
    floor = -worst_case(belief.box, policy, -belief.worst_reward)
    if multipliers is None:
        multipliers = np.zeros(len(ceilings))
    return BoundedPolicy(policy, floor, ceilings, multipliers, work + 1 + len(ceilings))


def tightened_candidate(belief: Estimate) -> BoundedPolicy:
    """Return the optimum of the empirical CMDP for the loosest thresholds whose worst cost over the box is at most α.

    The thresholds are α − t·e, where e is how much the worst cost of the untightened optimum exceeds its empirical one,
    and t is found by bisection. Where no t will do, the policy of greatest slack is returned.
    """
    nominal = belief.box.nominal
    fallback = safest(belief)
    first = _solve(belief, nominal.thresholds)
    if first is None or first.meets(nominal.thresholds):
        return first or fallback
    excess = np.maximum(first.cost_ceilings - evaluate(nominal, first.policy).costs, 0.0)
    best, work = fallback, fallback.work + first.work
    low, high = 0.0, 2.0
    for _ in range(TIGHTENINGS):
        middle = (low + high) / 2
        tried = _solve(belief, nominal.thresholds - middle * excess)
        work += tried.work if tried is not None else 2
        if tried is None or tried.meets(nominal.thresholds):
            high = middle
            best = best if tried is None else tried
        else:
            low = middle
    return replace(best, work=work)


def safest(belief: Estimate) -> BoundedPolicy:
    """Return the policy of greatest empirical slack, with its worst case."""
    nominal = belief.box.nominal
    if nominal.num_constraints == 0:
        return bounded(belief, plan(nominal, np.zeros(0)).policy(nominal.num_actions), work=1)
    slack = greatest_slack(nominal)
    return bounded(belief, slack.policy, work=len(slack.plans))


def _solve(belief: Estimate, thresholds: FloatArray) -> BoundedPolicy | None:
    """Solve the empirical CMDP with other thresholds; None where no policy meets them."""
    try:
        found = Exact()(replace(belief.box.nominal, thresholds=thresholds, trusted=True))
    except InfeasibleError:
        return None
    return bounded(belief, found.policy, multipliers=found.multipliers, work=found.work)
