"""Algorithm 2, CA-CMPG-E: the loop of CA-CMPG, with responses learned and gains proved from samples.

In turn, or all of them in every iteration, agents are queried: does a deviation gain enough? The t-th query of
a run is answered wrongly with probability at most δ/(t(t + 1)), so that all answers are right with probability 1 − δ:

- the agent stays: no feasible policy is worth ε more to it than the current one;
- the agent moves, to a feasible policy that is worth more than ε/4 more than the current one, and that is within ε of
  the best, or else gains at least half of what can be gained; in that case it is queried again before the end.

A learner that knows the query (`Adaptive`, `SafeExploration`) ends as soon as its own bounds decide. Any other one
returns a response within ε/4 of the best; then the current policy is played, in batches, until its value is known well
enough (`optimism.py`): with ceiling C and floor F of the response, C − F ≤ ε/4, and an interval of half-width ε/4 for
the current value, C − ε ≤ lower end or F − ε/4 > upper end. What the response is worth need not be measured. Half of
the share of δ goes to the learner, half to this.

Guarantee (Theorem 2, with the true ranges G_i): each move raises the potential by more than ε/4, so there are fewer
than T = ⌈4 Σ_i G_i/ε⌉; and where it ends no agent gains more than ε, for the last mover has a policy within ε of its
best, and all others stay. The potential is needed for "fewer than T moves" only: a T-th move, or a policy seen before,
proves with probability 1 − δ that there is none; there are no queries beyond iteration T.

The policy is feasible because every response is, and before the first move because the start is. That is checked as
far as it can be: over all transitions that are not ruled out beforehand, V^{c_j}(start) lies between a floor and a
ceiling (`cost_range`; with one step both are exact). A ceiling of at most α proves the start, a floor above α refuses
it before the first sample; otherwise samples may prove or refute it, and until they do it is one of the assumptions.

Where constraints bind some agents only, an agent stays if no policy that meets those that bind it is worth ε more, and
moves only to one that meets all of them (docs/learning-theory.md, section 5).

A response that its learner could not certify is never moved to; if one is left at the end, nothing is certified. What
is learned safely (`SafeExploration`) is safe on the way too: besides the start, only policies that are proved feasible
are played. A generative model is not the world: there `Adaptive` rolls out candidates before they are proved feasible.
An environment that answers wrongly ends the run with SimulatorError, a start that is found out with StartError; both
hold the run so far as `result`, with every policy that was executed, and every sample is counted in the ledger.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.deadline import limited
from cmpg.equilibrium.loop import Answer, Ending, LoopLimit, OnProgress, RoundRobin, Rules, Schedule, take_turns
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import BudgetError, OutOfTimeError, SimulatorError, StartError, UnsupportedError, explains_keywords
from cmpg.learning.bounds import ascent_constants, refuse_masks
from cmpg.learning.confidence import binomial_interval, check_accuracy, estimate
from cmpg.learning.generative import Adaptive, current_in_box
from cmpg.learning.joint_model import model_of
from cmpg.learning.local.simulator import LocalProblemSpec
from cmpg.learning.optimism import Measurement
from cmpg.learning.outcome import CurrentBounds, LearnedResponse, Learner, LearnResult, ResponseStatus, claim
from cmpg.learning.problem import InducedProblem
from cmpg.learning.safe import SafeExploration
from cmpg.learning.samples import ProblemSpec, cut_settings
from cmpg.learning.simulator import Logbook, Simulator
from cmpg.policy import JointPolicy

_LOG = logging.getLogger(__name__)

GOOD = (ResponseStatus.CERTIFIED, ResponseStatus.BETTER)
"""An agent moves only to responses with one of these statuses."""

FIRST_DRAWS = 64
"""Every entry is drawn so many times at first, if a start has to be learned."""

START_EPISODES = 1024
"""A candidate for the start is given up after this many episodes for each draw of an entry."""

ASSUMPTIONS = (
    "samples are independent draws of the game's own law, and the declared ranges hold",
    "a potential exists: without one there may be more than T moves, and then the run ends as NOT_POTENTIAL",
)


@explains_keywords()
def learn(
    simulator: Simulator,
    *,
    epsilon: float,
    delta: float,
    start: JointPolicy | None = None,
    learner: Learner | None = None,
    schedule: Schedule | None = None,
    time_limit: float = np.inf,
    on_progress: OnProgress = lambda _: None,
) -> LearnResult:
    """Learn an ε-Nash policy of a game whose transition is unknown.

    Parameters
    ----------
    simulator
        The game, which can only be sampled.
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by deviating.
    start
        A feasible joint policy; for safe exploration a strictly feasible one. Unless given, one is searched that meets
        the constraints whatever the transition is; and if there is none, one is learned (`learned_start`) by the
        default learner, as the first query of the run.
    learner
        Learns responses: `Adaptive()` from a generative model unless given, `SafeExploration()` from episodes.
    schedule
        Who is queried next: agents in turn unless given; `GreatestGain()` is the paper's, and queries all every time.
    time_limit
        Seconds; a response that is not learned by then is given up.
    on_progress
        Called with each `Step`; its gains are what is proved to be gained at least, its costs measured ones.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> learn(simulator, epsilon=0.5, delta=0.1).certified
    True
    """
    check_accuracy(epsilon, delta)
    known: Any = simulator.known
    if isinstance(known, LocalProblemSpec):
        wanted = "has kernels that do not depend on what others play, so that one model serves all responses"
        raise UnsupportedError("LocalGame", wanted, "Use learn_shared, or learn_safely from episodes.")
    if not isinstance(learner or Adaptive(), (Adaptive, SafeExploration)):
        refuse_masks(known)  # any other learner takes it that all constraints bind its agent
    known.left_of(epsilon)  # refuses what is cut off too early before anything else
    deadline = time.monotonic() + time_limit
    run = _Queries(simulator, learner or Adaptive(), epsilon=epsilon, delta=delta)
    try:
        run.begin(start, deadline)
    except (BudgetError, OutOfTimeError) as stop:
        return run.without_start(str(stop))
    rules = Rules(
        schedule=schedule or RoundRobin(),
        enough=run.epsilon / 4,
        max_moves=run.max_iterations - 1,
        no_return=True,
        deadline=deadline,
    )
    position = LearningPosition(run.start, [CurrentBounds.unknown(known.num_constraints)])
    with limited(deadline):
        ending = take_turns(position, run.answer, rules, at_rest=run.at_rest, on_progress=on_progress)
    result = run.conclude(ending)
    _LOG.info("%s: %s", result.status.name, result.message)
    if run.error is not None:
        run.error.result = result
        raise run.error
    return result


@dataclass(frozen=True, eq=False)
class LearningPosition:
    """A joint policy at which agents are queried, and what their answers say about its costs."""

    policy: JointPolicy
    seen: list[CurrentBounds]  # what was found out so far, in a cell that is replaced

    @property
    def costs(self) -> FloatArray:
        """The middle of what is proved about each cost: [k]; nan where nothing is."""
        known = self.seen[0]
        bounded = np.isfinite(known.cost_floors) & np.isfinite(known.cost_ceilings)
        ends = (np.where(bounded, end, np.nan) for end in (known.cost_floors, known.cost_ceilings))
        return np.asarray(sum(ends) / 2)

    def replace(self, agent: int, table: Any) -> LearningPosition:
        """Return the policy in which one agent has moved."""
        return LearningPosition(self.policy.replace(agent, table), [CurrentBounds.unknown(len(self.costs))])


class _Queries:
    """Answers the queries of the loop by learning, and keeps what one run leaves behind."""

    def __init__(self, simulator: Simulator, learner: Learner, *, epsilon: float, delta: float) -> None:
        self.simulator, self.learner = Logbook(simulator), learner
        self.claimed, self.delta = epsilon, delta
        self.epsilon = simulator.known.left_of(epsilon)
        self.max_iterations = ascent_constants(simulator.known, epsilon=self.epsilon, delta=delta).max_iterations
        self.queries = 0
        self.error: SimulatorError | StartError | None = None
        self.start = JointPolicy.uniform(simulator.known.policy_shapes)
        self.source = "none"
        self.start_proved = False
        self.start_seen = ""  # what the start was found to cost, where that matters

    def begin(self, given: JointPolicy | None, deadline: float) -> None:
        """Take a start that is given, or find one that is proved to meet the constraints, or raise."""
        if given is not None:
            given.check_fits(self.simulator.known.policy_shapes)
            ceilings = require_possible(self.simulator, given).cost_ceilings
            self.start, self.source = given, "given"
            self.start_proved = bool(np.all(ceilings <= self.simulator.known.limits))
            return
        found = safe_start(self.simulator)
        if found is None and not isinstance(self.learner, Adaptive):
            raise StartError(
                "no start is given, and none was found that meets the constraints whatever the transition is. "
                "Pass a policy that is known to meet them."
            )
        self.source = "safe whatever the transition is"
        if found is None:
            with limited(deadline):
                found = learned_start(self.simulator, delta=self.delta / 2)  # the first query of the run
            self.source, self.queries = "learned from samples", 1
        self.start, self.start_proved = found, True

    def without_start(self, reason: str) -> LearnResult:
        """Gather the result where the samples ran out before a start was proved to meet the constraints."""
        return LearnResult(
            status=Status.LIMIT,
            message="nothing is certified; no start is proved to meet the constraints, and the policy is the uniform "
            "one.",
            policy=self.start,
            epsilon=self.claimed,
            delta=self.delta,
            samples=self.simulator.ledger.by_purpose,
            assumptions=ASSUMPTIONS,
            void=(reason,),
            played=self.simulator.played,
        )

    def answer(self, position: LearningPosition, agent: int, rng: np.random.Generator | None) -> Answer:  # noqa: ARG002
        """Query one agent for a deviation that gains enough; no agent moves to a response that is not certified."""
        self.queries += 1
        share = self.delta / (self.queries * (self.queries + 1))
        try:
            response = self._respond(position.policy, agent, share / 2)
            if response.certified and not self._decides(response):
                response = self._compared(position.policy, agent, response, share / 2)
        except BudgetError as stop:
            raise LoopLimit(str(stop)) from None
        except SimulatorError as fault:
            self._stop(fault)
        if response.current is not None:
            position.seen[0] &= response.current
            self._check_start(position)
        if response.stays(self.epsilon) or response.status not in GOOD:
            return Answer(position.policy[agent], 0.0, response)
        return Answer(response.policy, response.gain_floor, response)

    def at_rest(self, position: LearningPosition, answers: Mapping[int, Answer]) -> LearningPosition:
        """If no agent moves, the last mover is queried again, unless its policy is proved to be near the best."""
        again = any(each.detail.status is ResponseStatus.BETTER for each in answers.values())
        return LearningPosition(position.policy, position.seen) if again else position

    def _decides(self, response: LearnedResponse) -> bool:
        return response.stays(self.epsilon) or response.gain_floor > self.epsilon / 4

    def _respond(self, policy: JointPolicy, agent: int, delta: float) -> LearnedResponse:
        problem = InducedProblem(self.simulator, agent, policy, nash_epsilon=self.epsilon)
        response = self.learner(problem, epsilon=self.epsilon / 4, delta=delta)
        if response.status is ResponseStatus.INFEASIBLE and policy is self.start:
            reason = f"against it agent {agent} has no policy that meets the constraints ({response.message})"
            self._stop(StartError(f"the start is infeasible with probability {1 - self.delta:g}: {reason}"))
        return response

    def _compared(self, policy: JointPolicy, agent: int, response: LearnedResponse, delta: float) -> LearnedResponse:
        """Play the current policy until it is decided whether to move to a response within ε/4 of the best."""
        problem = InducedProblem(self.simulator, agent, policy, purpose="values")
        current = Measurement(problem, policy[agent], None, delta=delta)
        response = replace(response, current=current.bounds)
        while not self._decides(response):
            if current.ceilings[0] - current.floors[0] <= self.epsilon / 2:
                message = "the response is not as close to the best as it is said to be."
                return replace(response, status=ResponseStatus.UNPROVED, message=message)
            current.grow()
            response = replace(response, current=current.bounds)
        return response

    def _check_start(self, position: LearningPosition) -> None:
        """Prove or refute the start by what an answer found out about its costs."""
        if position.policy is not self.start or self.start_proved:
            return
        found, thresholds = position.seen[0], self.simulator.known.limits
        rows = zip(found.cost_floors, found.cost_ceilings, thresholds, strict=True)
        self.start_seen = ", ".join(f"{low:.4g} to {high:.4g} against {most:.4g}" for low, high, most in rows)
        self.start_proved = bool(np.all(found.cost_ceilings <= thresholds))
        if np.any(found.cost_floors > thresholds):
            text = f"the start is infeasible with probability {1 - self.delta:g}: it costs {self.start_seen}"
            self._stop(StartError(f"{text}. Pass a feasible start."))

    def _stop(self, error: SimulatorError | StartError) -> NoReturn:
        """End the loop, so that its result can go with the error."""
        self.error = error
        raise LoopLimit(str(error)) from error

    def conclude(self, ending: Ending[LearningPosition]) -> LearnResult:
        """Gather the result; whatever keeps it from being certified is a reason why the guarantee is void."""
        status = ending.status
        if ending.moves == self.max_iterations - 1 and ending.trace and ending.trace[-1].mover is not None:
            status = Status.NOT_POTENTIAL
        void = tuple(self._why_void(ending, status))
        if void and status is Status.CERTIFIED:
            status = Status.LIMIT
        return LearnResult(
            status=status,
            message=self._what_is_left(ending.moves) if void else claim(self.claimed, self.delta),
            policy=ending.position.policy,
            epsilon=self.claimed,
            delta=self.delta,
            samples=self.simulator.ledger.by_purpose,
            assumptions=(*self._about_the_start(), *ASSUMPTIONS),
            void=void,
            trace=ending.trace,
            moves=ending.moves,
            played=self.simulator.played,
            settings={
                "learner": _written(self.learner),
                "max_iterations": self.max_iterations,
                "queries": self.queries,
                "start": self.source,
                **cut_settings(self.simulator.known),
            },
        )

    def _why_void(self, ending: Ending[LearningPosition], status: Status) -> list[str]:
        answers = ending.answers.items()
        unproved = [f"agent {i}: {each.detail.message}" for i, each in answers if not each.detail.certified]
        if status is Status.CERTIFIED:
            return unproved
        if status is Status.NOT_POTENTIAL:
            why = ending.message if ending.status is status else f"{ending.moves + 1} moves gain more than one allows."
            return [f"there is no potential, with probability {1 - self.delta:g}: {why}"]
        return [ending.message, *unproved]

    def _what_is_left(self, moves: int) -> str:
        proved = moves > 0 or self.start_proved
        policy = f"is feasible with probability {1 - self.delta:g}" if proved else "is the start"
        return f"nothing is certified; the last policy {policy}, and what an agent gains by deviating is not known."

    def _about_the_start(self) -> tuple[str, ...]:
        if self.start_proved:
            return ()
        return (f"the start meets the constraints (measured: {self.start_seen or 'nothing'})",)


def _written(learner: Learner) -> str:
    """Write a learner with its settings; functions by their names, not by where they happen to be in memory."""
    return re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", repr(learner))


def cost_range(simulator: Simulator, policy: JointPolicy) -> CurrentBounds:
    """Bound the costs of a joint policy by what is known without a sample.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> simulator = GameSimulator(game, rng=np.random.default_rng(0))
    >>> bounds = cost_range(simulator, game.uniform_policy())
    >>> bounds.cost_floors, bounds.cost_ceilings
    (array([0.25]), array([0.25]))
    """
    problem = InducedProblem(simulator, 0, policy)
    belief = estimate(problem, problem.no_samples(), delta=0.5)  # without samples nothing depends on δ
    return current_in_box(belief, policy[0])


def safe_start(simulator: Simulator) -> JointPolicy | None:
    """Return a joint policy that meets the constraints whatever the transition is, or None where none was found.

    In every state it plays the joint action that is cheapest at once, all costs in units of their thresholds. For one
    constraint, and where every next state is possible, no policy has a lower ceiling.
    """
    known = simulator.known
    policy = _cheapest_at_once(known)
    met = np.all(cost_range(simulator, policy).cost_ceilings <= known.limits)
    return policy if met else None


def learned_start(simulator: Simulator, *, delta: float, max_count: int = 2**24) -> JointPolicy:
    """Return a joint policy that is proved to meet the constraints with probability 1 − δ, from draws and episodes.

    The empirical game of N draws of every entry has a policy of least cost, which is rolled out until its costs are
    proved or refuted; then N is four times as large. Candidate j takes δ/(j(j + 1)).

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> game = spectrum()
    >>> start = learned_start(GameSimulator(game, rng=np.random.default_rng(0)), delta=0.1)
    >>> bool((game.at(start).costs <= game.thresholds).all())
    True
    """
    limits, samples, count, number = simulator.known.limits, None, 0, 0
    while count < max_count:
        more = max(3 * count, FIRST_DRAWS)
        drawn = simulator.draw_all(count=more, purpose="start")
        samples, count, number = drawn if samples is None else samples + drawn, count + more, number + 1
        game = model_of(simulator.known, samples, delta=delta, interval=binomial_interval).unmasked
        found = feasible_start(game.with_thresholds(limits)).policy
        if found is None:
            continue
        problem = InducedProblem(simulator, 0, found, purpose="start")
        seen = Measurement(problem, found[0], game.at(found).induced_cmdp(0), delta=delta / (number * (number + 1)))
        while seen.episodes <= START_EPISODES * count and np.all(seen.floors[1:] <= limits):
            seen.grow()
            if np.all(seen.ceilings[1:] <= limits):
                return found
    raise StartError(
        f"no start is given, none was found that meets the constraints whatever the transition is, and {count:,} "
        "draws of every entry prove none. Pass a policy that is known to meet them, or raise the thresholds."
    )


def _cheapest_at_once(known: ProblemSpec) -> JointPolicy:
    if known.payoffs is None or known.num_constraints == 0:
        return JointPolicy.uniform(known.policy_shapes)
    units = np.where(known.thresholds > 0, known.thresholds, 1.0)
    return known.payoffs.cheapest(units, known.horizon)


def require_possible(simulator: Simulator, start: JointPolicy) -> CurrentBounds:
    """Return the range of a start's costs, or raise StartError where it cannot meet the constraints."""
    bounds = cost_range(simulator, start)
    for j, threshold in enumerate(simulator.known.limits):
        if bounds.cost_floors[j] > threshold:
            raise StartError(
                f"the start is infeasible: constraint {j} has the threshold {threshold:.6g}, and whatever the "
                f"transition is, the start costs at least {bounds.cost_floors[j]:.6g}. Pass a feasible start."
            )
    return bounds
