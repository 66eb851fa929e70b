"""Algorithm 2, CA-CMPG-E: the loop of CA-CMPG, with responses learned and values measured.

In iteration t each agent learns a response that is feasible and within ε/4 of its best, with probability 1 − δ′; the
agents then play the current policy, and each (response, others), for M episodes, and ε_i^t is the difference of the
means. If the greatest exceeds ε/2 that agent moves, otherwise the current policy is returned. Who has just moved is not
asked again: its response is within ε/4 of its best.

Guarantee (Theorem 2, with the true ranges G_i): T = ⌈4 Σ_i G_i/ε⌉, M = ⌈32 G²/ε² · ln(8nT/δ)⌉ and δ′ = δ/(2nT). A
mean of M episodes is off by more than ε/8 with probability at most δ/(4nT), and an iteration uses at most 2n of them:
one per agent at the current policy, one per response. So all means and all responses of T iterations are right together
with probability 1 − δ. Then each move raises the potential by more than ε/4, and where it ends nobody gains more than
ε/2 + ε/4 + ε/4 = ε.

The potential is needed for "fewer than T moves" only: a T-th move, or a policy seen before, proves with probability
1 − δ that there is none; nothing is asked beyond iteration T. The policy is feasible because every response is, and
before the first move because the start is. That is checked as far as it can be: over all transitions that are not
ruled out beforehand, V^{c_j}(start) lies between a floor and a ceiling (`cost_range`; with one step both are exact). A
ceiling of at most α proves the start, a floor above α refuses it before the first sample; otherwise somebody must vouch
for it, the M episodes at the start may refute it, and it is listed among the assumptions.

A response that its learner could not certify is never played by this loop, and never moved to. If one is left at the
end, nothing is certified. What is learned safely (`SafeExploration`) is safe on the way too: besides the start, only
policies that are proved feasible are played.

An environment that answers wrongly ends the run with SimulatorError, a start that is found out with StartError; both
hold the run so far as `result`, with every policy that was executed, and every sample is counted in the ledger.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.box import worst_case
from cmpg.equilibrium.loop import Answer, Ending, LoopLimit, OnProgress, Rules, take_turns
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.schedule import GreatestGain, Schedule
from cmpg.errors import BudgetError, SimulatorError, StartError
from cmpg.learning.bounds import AscentConstants, ascent_constants
from cmpg.learning.confidence import check_accuracy, estimate, hoeffding_radius
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import LearnedResponse, Learner, LearnResult, ResponseStatus, claim
from cmpg.learning.samples import Known, Returns, mean_returns
from cmpg.learning.simulator import InducedProblem, Logbook, Simulator
from cmpg.policy import JointPolicy

ASSUMPTIONS = (
    "samples are independent draws of the game's own law, and the declared ranges hold",
    "a potential exists: without one there may be more than T moves, and then the run ends as NOT_POTENTIAL",
)


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
        The game behind its door.
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by leaving.
    start
        A feasible joint policy; for safe exploration a strictly feasible one. Unless given, one is sought that meets
        the constraints whatever the transition is.
    learner
        Learns responses: `Adaptive()` from a generative model unless given, `SafeExploration()` from episodes.
    schedule
        Who moves next; the paper's `GreatestGain()` unless given.
    time_limit
        Seconds, looked at between responses.
    on_progress
        Called with each `Step`; its costs are measured ones.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> learn(simulator, epsilon=0.5, delta=0.1).certified
    True
    """
    check_accuracy(epsilon, delta)
    beginning = _beginning(simulator, start)
    constants = ascent_constants(simulator.known, epsilon=epsilon, delta=delta)
    run = _Run(simulator, beginning, constants, learner=learner or Adaptive(), epsilon=epsilon, delta=delta)
    rules = Rules(
        schedule=schedule or GreatestGain(),
        enough=epsilon / 2,
        max_moves=constants.max_iterations - 1,
        no_return=True,
        deadline=time.monotonic() + time_limit,
    )
    ending = take_turns(Measured(run.play, beginning.policy), run.answer, rules, on_progress=on_progress)
    result = run.conclude(ending)
    if run.error is not None:
        run.error.result = result
        raise run.error
    return result


@dataclass(frozen=True, eq=False)
class _Beginning:
    """The start, and whether it meets the constraints whatever the transition is."""

    policy: JointPolicy
    proved: bool


def _beginning(simulator: Simulator, start: JointPolicy | None) -> _Beginning:
    if start is None:
        found = safe_start(simulator)
        if found is None:
            raise StartError(
                "no start is given, and none was found that meets the constraints whatever the transition is. "
                "Pass a policy that is known to meet them."
            )
        return _Beginning(found, proved=True)
    start.check_fits(simulator.known.policy_shapes)
    ceilings = require_possible(simulator, start).ceilings
    return _Beginning(start, proved=bool(np.all(ceilings <= simulator.known.thresholds)))


@dataclass(frozen=True, eq=False)
class Measured:
    """A joint policy whose values and costs are known from episodes only."""

    play: Callable[[JointPolicy], Returns]
    policy: JointPolicy

    @cached_property
    def returns(self) -> Returns:
        """The mean returns of M episodes, played when they are first asked for."""
        return self.play(self.policy)

    @property
    def costs(self) -> FloatArray:
        """The measured costs: [k]."""
        return self.returns.costs

    def replace(self, agent: int, table: Any) -> Measured:
        """Return the policy in which one agent has moved, not measured yet."""
        return Measured(self.play, self.policy.replace(agent, table))


class _Run:
    """What the answers of one run leave behind, and what made it end before its time."""

    def __init__(
        self,
        simulator: Simulator,
        beginning: _Beginning,
        constants: AscentConstants,
        *,
        learner: Learner,
        epsilon: float,
        delta: float,
    ) -> None:
        self.simulator, self.beginning, self.constants = Logbook(simulator), beginning, constants
        self.learner, self.epsilon, self.delta = learner, epsilon, delta
        self.error: SimulatorError | StartError | None = None
        self.start_seen = ""  # what the start was measured to cost, where that matters

    def play(self, policy: JointPolicy) -> Returns:
        """Play M episodes and average; the first are those of the start."""
        try:
            samples = self.simulator.roll_out(policy, self.constants.episodes, purpose="values")
        except BudgetError as stop:
            raise LoopLimit(str(stop)) from None
        except SimulatorError as fault:
            self._stop(fault)
        returns = mean_returns(self.simulator.known, samples)
        if policy is self.beginning.policy and not self.beginning.proved:
            self._check_start(returns)
        return returns

    def _check_start(self, returns: Returns) -> None:
        found = measured_costs(self.simulator.known, returns, delta=self.delta)
        self.start_seen = str(found)
        if found.refuted:
            text = f"the start is infeasible with probability {1 - self.delta:g}: over {returns.episodes} episodes it"
            self._stop(StartError(f"{text} costs {found}. Pass a feasible start."))

    def answer(self, position: Measured, agent: int, rng: np.random.Generator | None) -> Answer:  # noqa: ARG002
        """Learn a response, play it, and compare the means; what is not certified is neither played nor moved to."""
        before = position.returns.values[agent]
        response = self._respond(position, agent)
        if not response.certified:
            return Answer(position.policy[agent], 0.0, response)
        moved = position.replace(agent, response.policy)
        return Answer(response.policy, float(moved.returns.values[agent] - before), response)

    def _respond(self, position: Measured, agent: int) -> LearnedResponse:
        problem = InducedProblem(self.simulator, agent, position.policy)
        try:
            response = self.learner(problem, epsilon=self.epsilon / 4, delta=self.constants.response_delta)
        except BudgetError as stop:
            raise LoopLimit(str(stop)) from None
        except SimulatorError as fault:
            self._stop(fault)
        if response.status is ResponseStatus.INFEASIBLE and position.policy is self.beginning.policy:
            reason = f"against it agent {agent} has no policy that meets the constraints ({response.message})"
            self._stop(StartError(f"the start is infeasible with probability {1 - self.delta:g}: {reason}"))
        return response

    def _stop(self, error: SimulatorError | StartError) -> NoReturn:
        """End the loop, so that its result can go with the error."""
        self.error = error
        raise LoopLimit(str(error)) from error

    def conclude(self, ending: Ending[Measured]) -> LearnResult:
        """Gather the result; whatever keeps it from being certified is a reason why the guarantee is void."""
        status = ending.status
        if len(ending.trace) == self.constants.max_iterations and ending.trace[-1].mover is not None:
            status = Status.NOT_POTENTIAL
        void = tuple(self._why_void(ending, status))
        if void and status is Status.CERTIFIED:
            status = Status.LIMIT
        return LearnResult(
            status=status,
            message=self._what_is_left(ending.moves) if void else claim(self.epsilon, self.delta),
            policy=ending.position.policy,
            epsilon=self.epsilon,
            delta=self.delta,
            samples=self.simulator.ledger.by_purpose,
            assumptions=(*self._about_the_start(), *ASSUMPTIONS),
            void=void,
            trace=ending.trace,
            moves=ending.moves,
            played=self.simulator.played,
            settings={
                "learner": _written(self.learner),
                "episodes": self.constants.episodes,
                "max_iterations": self.constants.max_iterations,
                "response_delta": self.constants.response_delta,
            },
        )

    def _why_void(self, ending: Ending[Measured], status: Status) -> list[str]:
        answers = ending.answers.items()
        unproved = [f"agent {i}: {each.detail.message}" for i, each in answers if not each.detail.certified]
        if status is Status.CERTIFIED:
            return unproved
        if status is Status.NOT_POTENTIAL:
            why = ending.message if ending.status is status else f"{ending.moves + 1} moves gain more than one allows."
            return [f"there is no potential, with probability {1 - self.delta:g}: {why}"]
        return [ending.message, *unproved]

    def _what_is_left(self, moves: int) -> str:
        proved = moves > 0 or self.beginning.proved
        policy = f"is feasible with probability {1 - self.delta:g}" if proved else "is the start"
        return f"nothing is certified; the last policy {policy}, and what an agent gains by leaving it is not known."

    def _about_the_start(self) -> tuple[str, ...]:
        if self.beginning.proved:
            return ()
        return (f"the start meets the constraints (measured: {self.start_seen or 'nothing'})",)


def _written(learner: Learner) -> str:
    """Write a learner with its settings; functions by their names, not by where they happen to be in memory."""
    return re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", repr(learner))


@dataclass(frozen=True, eq=False)
class CostRange:
    """Between what a policy can cost, whatever the transition is."""

    floors: FloatArray  # [k]
    ceilings: FloatArray  # [k]


def cost_range(simulator: Simulator, policy: JointPolicy) -> CostRange:
    """Bound the costs of a joint policy by what is known without a sample.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> simulator = GameSimulator(game, rng=np.random.default_rng(0))
    >>> bounds = cost_range(simulator, game.uniform_policy())
    >>> bounds.floors, bounds.ceilings
    (array([0.25]), array([0.25]))
    """
    problem = InducedProblem(simulator, 0, policy)
    belief = estimate(problem, problem.no_samples(), delta=0.5)  # without samples nothing depends on δ
    optimistic = belief.optimistic.nominal.costs
    floors = [-worst_case(belief.box, policy[0], -cost) for cost in optimistic]
    ceilings = [worst_case(belief.box, policy[0], cost) for cost in belief.worst_costs]
    return CostRange(np.array(floors), np.array(ceilings))


def safe_start(simulator: Simulator) -> JointPolicy | None:
    """Return a joint policy that meets the constraints whatever the transition is, or None where none was found.

    In every state it plays the joint action that is cheapest at once, all costs in units of their thresholds. For one
    constraint, and where every next state is possible, no policy has a lower ceiling.
    """
    known = simulator.known
    policy = _cheapest_at_once(known)
    met = np.all(cost_range(simulator, policy).ceilings <= known.thresholds)
    return policy if met else None


def _cheapest_at_once(known: Known) -> JointPolicy:
    if known.payoffs is None or known.num_constraints == 0:
        return JointPolicy.uniform(known.policy_shapes)
    costs = known.payoffs.costs
    units = np.where(known.thresholds > 0, known.thresholds, 1.0)
    worst = (costs / units.reshape(-1, *(1,) * (costs.ndim - 1))).max(axis=0)
    flat = worst.reshape(*worst.shape[:2], -1).argmin(axis=2)
    chosen = np.unravel_index(np.broadcast_to(flat, (known.horizon, known.num_states)), known.num_actions)
    return JointPolicy(tuple(np.eye(actions)[own] for actions, own in zip(known.num_actions, chosen, strict=True)))


def require_possible(simulator: Simulator, start: JointPolicy) -> CostRange:
    """Return the range of a start's costs, or raise StartError where it cannot meet the constraints."""
    bounds = cost_range(simulator, start)
    for j, threshold in enumerate(simulator.known.thresholds):
        if bounds.floors[j] > threshold:
            raise StartError(
                f"the start is infeasible: constraint {j} has the threshold {threshold:.6g}, and whatever the "
                f"transition is, the start costs at least {bounds.floors[j]:.6g}. Pass a feasible start."
            )
    return bounds


@dataclass(frozen=True, eq=False)
class MeasuredCosts:
    """What a policy was seen to cost, and how far off that can be."""

    costs: FloatArray  # [k]
    radii: FloatArray  # [k]
    thresholds: FloatArray  # [k]

    @property
    def refuted(self) -> bool:
        """Whether a cost is above its threshold even at the favourable end of its interval."""
        return bool(np.any(self.costs - self.radii > self.thresholds))

    def __str__(self) -> str:
        rows = zip(self.costs, self.radii, self.thresholds, strict=True)
        return ", ".join(f"{cost:.4g} ± {radius:.2g} against {threshold:.4g}" for cost, radius, threshold in rows)


def measured_costs(known: Known, returns: Returns, *, delta: float) -> MeasuredCosts:
    """Put Hoeffding's radius beside mean costs; all intervals hold together with probability 1 − δ."""
    spans = known.cost_spans.sum(axis=1)
    radii = hoeffding_radius(returns.episodes, span=spans, delta=delta / max(known.num_constraints, 1))
    return MeasuredCosts(returns.costs, radii, known.thresholds)
