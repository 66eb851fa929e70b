"""Algorithm 2, CA-CMPG-E: the loop of CA-CMPG, with responses learned and values measured.

In iteration t each agent learns a response that is feasible and within ε/4 of its best, with probability 1 − δ′; the
agents then play the current policy, and each (response, others), for M episodes, and ε_i^t is the difference of the
means. If the greatest exceeds ε/2 that agent moves, otherwise the current policy is returned.

Guarantee (Theorem 2, with the true ranges G_i): T = ⌈4 Σ_i G_i/ε⌉, M = ⌈32 G²/ε² · ln(8nT/δ)⌉ and δ′ = δ/(2nT) make
every mean right to ε/8 and every response right, for all T iterations together, with probability 1 − δ. Then each
move raises the potential by more than ε/4, and where it ends nobody gains more than ε/2 + ε/4 + ε/4 = ε. The
potential is needed for "at most T moves" only: more moves than that prove, with probability 1 − δ, that there is
none.

What is learned safely (`SafeExploration`) is safe on the way too: only policies that are proved feasible are played.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cmpg.checks import FloatArray
from cmpg.equilibrium.climb import Answer, Climb, ClimbLimit, Rules
from cmpg.equilibrium.climb import Ending as ClimbEnding
from cmpg.equilibrium.result import Status, Step
from cmpg.equilibrium.schedule import GreatestGain, Schedule
from cmpg.learning.bounds import AscentConstants, ascent_constants
from cmpg.learning.confidence import check_accuracy
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import LearnResult, Played
from cmpg.learning.response import Learner
from cmpg.learning.samples import BudgetError, Returns, mean_returns
from cmpg.learning.simulator import InducedProblem, Simulator
from cmpg.policy import JointPolicy

ASSUMPTIONS = (
    "the start meets the constraints",
    "samples are independent draws of the game's own law",
    "every response was certified by its learner",
    "a potential exists: without it there may be more than T moves, and then the run ends as NOT_POTENTIAL",
)


def learn(
    simulator: Simulator,
    *,
    epsilon: float,
    delta: float,
    start: JointPolicy,
    learner: Learner | None = None,
    schedule: Schedule | None = None,
    time_limit: float = np.inf,
    on_progress: Callable[[Step], None] | None = None,
) -> LearnResult:
    """Learn an ε-Nash policy of a game whose transition is unknown.

    Parameters
    ----------
    simulator
        The game behind its door.
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by leaving.
    start
        A feasible joint policy; for safe exploration a strictly feasible one.
    learner
        Learns responses: `Adaptive()` from a generative model unless given, `SafeExploration()` from episodes.
    schedule
        Who moves next; the paper's `GreatestGain()` unless given.
    time_limit
        Seconds.
    on_progress
        Called with each `Step`; its costs are measured ones.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> from cmpg.equilibrium.start import feasible_start
    >>> game = counter_example()
    >>> simulator = GameSimulator(game, rng=np.random.default_rng(0))
    >>> learn(simulator, epsilon=0.2, delta=0.1, start=feasible_start(game).policy).certified
    True
    """
    check_accuracy(epsilon, delta)
    start.check_fits(simulator.known.policy_shapes)
    constants = ascent_constants(simulator.known, epsilon=epsilon, delta=delta)
    run = _Run(simulator, constants, learner or Adaptive(), epsilon / 4)
    climb = Climb(
        num_agents=simulator.known.num_agents,
        answer=run.answer,
        rules=Rules(
            schedule=schedule or GreatestGain(),
            enough=epsilon / 2,
            max_moves=constants.max_iterations,
            most_gain=np.inf,
            deadline=time.monotonic() + time_limit,
        ),
        at_rest=lambda position, _: position,
        same_problem=lambda *_: False,
        on_progress=on_progress or (lambda _: None),
    )
    ending = climb.run(Measured(simulator, start, constants.episodes))
    return run.conclude(ending, epsilon=epsilon, delta=delta)


@dataclass(frozen=True, eq=False)
class Measured:
    """A joint policy whose values and costs are known from episodes only."""

    simulator: Simulator
    policy: JointPolicy
    episodes: int

    @cached_property
    def returns(self) -> Returns:
        """The mean returns of M episodes, played when they are first asked for."""
        samples = self.simulator.roll_out(self.policy, self.episodes, purpose="values")
        return mean_returns(self.simulator.known, samples)

    @property
    def costs(self) -> FloatArray:
        """The measured costs: [k]."""
        return self.returns.costs

    def replace(self, agent: int, table: Any) -> Measured:
        """Return the policy in which one agent has moved, not measured yet."""
        return Measured(self.simulator, self.policy.replace(agent, table), self.episodes)


class _Run:
    """What the answers of one run leave behind: executed policies, and why a guarantee may be void."""

    def __init__(self, simulator: Simulator, constants: AscentConstants, learner: Learner, tolerance: float) -> None:
        self.simulator, self.constants = simulator, constants
        self.learner, self.tolerance = learner, tolerance
        self.played: list[Played] = []

    def answer(self, position: Measured, agent: int, rng: np.random.Generator | None) -> Answer:  # noqa: ARG002
        """Learn a response, play it, and compare the means."""
        problem = InducedProblem(self.simulator, agent, position.policy)
        try:
            response = self.learner(problem, epsilon=self.tolerance, delta=self.constants.response_delta)
            self._note(position)
            self.played += [
                Played(position.policy.replace(agent, each.policy), each.episodes) for each in response.executed
            ]
            if not response.certified:
                return Answer(position.policy[agent], 0.0, response)  # nothing unproved is ever played or moved to
            moved = position.replace(agent, response.policy)
            gain = float(moved.returns.values[agent] - position.returns.values[agent])
        except BudgetError as stop:
            raise ClimbLimit(str(stop)) from None
        self._note(moved)
        return Answer(response.policy, gain, response)

    def _note(self, position: Measured) -> None:
        if not any(each.policy is position.policy for each in self.played):
            self.played.append(Played(position.policy, position.episodes))

    def conclude(self, ending: ClimbEnding[Measured], *, epsilon: float, delta: float) -> LearnResult:
        """Gather the result; what was not certified on the last round voids the guarantee."""
        void = tuple(_unproved(ending.answers)) if ending.status is Status.CERTIFIED else ()
        status, message = ending.status, ending.message
        if status is Status.LIMIT and ending.moves >= self.constants.max_iterations:
            status, message = Status.NOT_POTENTIAL, f"{ending.moves} moves gained more than any potential allows."
        if status is Status.CERTIFIED:
            claim = f"feasible, and no agent gains more than {epsilon:g} by leaving, with probability {1 - delta:g}"
            message = f"{claim}." if not void else "nobody was seen to gain, but not every response is certified."
        return LearnResult(
            status=status if not void else Status.LIMIT,
            message=message,
            policy=ending.position.policy,
            epsilon=epsilon,
            delta=delta,
            samples=self.simulator.ledger.by_purpose,
            assumptions=ASSUMPTIONS,
            void=void,
            trace=ending.trace,
            moves=ending.moves,
            played=tuple(self.played),
            settings={
                "learner": repr(self.learner),
                "episodes": self.constants.episodes,
                "max_iterations": self.constants.max_iterations,
                "response_delta": self.constants.response_delta,
            },
        )


def _unproved(answers: Mapping[int, Answer]) -> list[str]:
    return [f"agent {i}: {each.detail.message}" for i, each in answers.items() if not each.detail.certified]
