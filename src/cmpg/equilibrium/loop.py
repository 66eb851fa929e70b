"""The loop: agents take turns, and an agent that gains enough moves, until none does.

CA-CMPG, CA-CMPG-E, the search for a common price, phase one, Nash-CA and the penalised game are all this loop. What
tells them apart are the answers (`answer(position, agent, rng)` finds a response and measures its gain: exactly where
the model is known, from episodes where it is not), the schedule (which agent is queried next), and the rules (when to
move, and when to stop). `at_rest(position, answers)` is called when no agent gains enough, and may go on from another
position.

The loop ends on any game if moves, answers or time are limited, or if a policy seen before, or gains that add up to
more than a potential allows, end it with NOT_POTENTIAL. Ctrl-C keeps the incumbent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import (
    Certificate,
    Feasibility,
    feasibility_text,
    proved_text,
    rounded_text,
    screen,
)
from cmpg.equilibrium.result import Incumbent, Result, Status, Step
from cmpg.errors import OutOfTimeError
from cmpg.games.game import Game
from cmpg.policy import JointPolicy
from cmpg.runs.runner import Jobs, run_tasks
from cmpg.summaries import fields_line

OnProgress = Callable[[Step], None]
"""Called with each step as it is made, in the thread of the caller."""

_LOG = logging.getLogger(__name__)


# --- Who moves next? Two answers with the same guarantee: every move gains enough, and the end is quiet everywhere ----

Gains = Callable[[Iterable[int]], FloatArray]
"""The gains of the named agents at the current position; asking is what costs."""


class Schedule(Protocol):
    """Chooses the next mover.

    Examples
    --------
    >>> class LastFirst:
    ...     def next_mover(self, gains, num_agents, *, last, enough):
    ...         return next((i for i in reversed(range(num_agents)) if gains([i])[0] > enough), None)
    >>> gains = np.array([0.5, 0.3, 0.1])
    >>> LastFirst().next_mover(lambda agents: gains[list(agents)], 3, last=-1, enough=0.2)
    1
    """

    def next_mover(self, gains: Gains, num_agents: int, *, last: int, enough: float) -> int | None:
        """Return an agent that gains more than `enough`, or None if none does; `last` is who moved last, or −1."""


@dataclass(frozen=True)
class GreatestGain:
    """The paper's rule: all agents are solved for, and the one who gains most moves.

    Examples
    --------
    >>> gains = np.array([0.1, 0.5, 0.3])
    >>> GreatestGain().next_mover(lambda agents: gains[list(agents)], 3, last=-1, enough=0.2)
    1
    """

    def next_mover(self, gains: Gains, num_agents: int, *, last: int, enough: float) -> int | None:  # noqa: ARG002
        """Return the agent of greatest gain, if that is enough."""
        all_gains = gains(range(num_agents))
        best = int(np.argmax(all_gains))
        return best if all_gains[best] > enough else None


@dataclass(frozen=True)
class RoundRobin:
    """Agents take turns, and an agent that gains enough moves at once: often one solve per move instead of n.

    Examples
    --------
    >>> gains = np.array([0.1, 0.5, 0.3])
    >>> RoundRobin().next_mover(lambda agents: gains[list(agents)], 3, last=1, enough=0.2)
    2
    """

    def next_mover(self, gains: Gains, num_agents: int, *, last: int, enough: float) -> int | None:
        """Return the first agent after the last mover that gains enough."""
        for offset in range(1, num_agents + 1):
            agent = (last + offset) % num_agents
            if gains([agent])[0] > enough:
                return agent
        return None


# --- The loop ---------------------------------------------------------------------------------------------------------


class Place(Protocol):
    """Where the loop stands: all that it needs to know of a position."""

    @property
    def policy(self) -> JointPolicy:
        """The joint policy."""

    @property
    def costs(self) -> FloatArray:
        """What is known of the costs there: [k]."""

    def replace(self, agent: int, table: Any) -> Self:
        """Return the position after one agent has changed its policy."""


Where = TypeVar("Where", bound=Place)


@dataclass(frozen=True, eq=False)
class Answer:
    """A response of one agent, and how much it gains by it.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> position = counter_example().at(counter_example().uniform_policy())
    >>> table = np.array([[[0.0, 1.0]]])
    >>> Answer(table, gain=float((position.replace(0, table).values - position.values)[0])).gain
    0.25
    """

    table: FloatArray  # [H, S_i, A_i]
    gain: float
    detail: Any = None  # what found it: a BestResponse, or what a learner knows
    moved: Any = None  # the position after the move, where measuring the gain has made it already

    __repr__ = fields_line


@dataclass(frozen=True)
class Rules:
    """When to move, and when to stop.

    Examples
    --------
    >>> Rules(schedule=GreatestGain(), enough=0.01, max_moves=100).enough
    0.01
    """

    schedule: Schedule = field(default_factory=RoundRobin)
    enough: float = 0.0  # only a larger gain moves: ε/2 in CA-CMPG
    max_moves: float = np.inf
    max_answers: float = np.inf  # requested in all; n of them are one round
    most_gain: float = np.inf  # Σ G_i: more than this in all proves that there is no potential
    no_return: bool = False  # whether a policy seen before proves that too, since every move gained
    deadline: float = np.inf  # on the clock of time.monotonic


@dataclass(frozen=True, eq=False)
class Ending(Generic[Where]):
    """Where the loop ended, and why.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> position = counter_example().at(counter_example().uniform_policy())
    >>> ending = take_turns(position, lambda at, i, rng: Answer(at.policy[i], gain=0.0), Rules())
    >>> ending.status.name, ending.moves, ending.position.costs
    ('CERTIFIED', 0, array([0.25]))
    """

    status: Status
    message: str
    position: Where
    answers: Mapping[int, Answer]  # known at the position
    trace: tuple[Step, ...]
    moves: int

    __repr__ = fields_line

    @property
    def interrupted(self) -> bool:
        """Whether the user has interrupted it."""
        return self.status is Status.INTERRUPTED


class LoopLimit(Exception):
    """Raised inside the loop, or by an answer, when time, moves or samples run out; it ends with status LIMIT."""


def take_turns(
    position: Where,
    answer: Callable[[Where, int, np.random.Generator | None], Answer],
    rules: Rules,
    *,
    at_rest: Callable[[Where, Mapping[int, Answer]], Where] = lambda position, _: position,
    workers: int = 1,
    rng: np.random.Generator | None = None,
    on_progress: OnProgress = lambda _: None,
    on_move: Callable[[Where], Any] = lambda _: None,
    traced: bool = True,
) -> Ending[Where]:
    """Let agents take turns until no agent gains enough, or something else ends it.

    Parameters
    ----------
    position
        Where to begin.
    answer
        Finds a response of one agent and its gain.
    rules
        Which agent is queried next, when to move, when to stop.
    at_rest
        Called with the position and all answers when no agent gains enough; what it returns is gone on from,
        unless that is the same position.
    workers
        Threads that answer at the same time, if the schedule queries several agents at once.
    rng
        Each answer gets a stream of its own, so that the bits do not depend on the workers.
    on_progress
        Called with each `Step`.
    on_move
        Called with each new position.
    traced
        Whether the ending keeps all steps.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> def second_action(position, agent, rng):
    ...     table = np.array([[[0.0, 1.0]]])
    ...     return Answer(table, float((position.replace(agent, table).values - position.values)[agent]))
    >>> position = counter_example().at(counter_example().uniform_policy())
    >>> ending = take_turns(position, second_action, Rules(enough=1e-9))
    >>> ending.moves, ending.position.values, ending.position.costs
    (2, array([4., 4.]), array([1.]))
    """
    turns = _Turns(answer, rules, workers, rng, on_progress, traced, num_agents=len(position.policy))
    seen = {position.policy.fingerprint()} if rules.no_return else set()
    try:
        while True:
            gains = partial(turns.gains, position)
            mover = rules.schedule.next_mover(gains, turns.num_agents, last=turns.last, enough=rules.enough)
            turns.record(position, mover)
            if mover is None:
                rested = at_rest(position, turns.answers)
                if rested is position:
                    return turns.ending(Status.CERTIFIED, "no agent gains enough.", position)
                position, turns.answers = rested, {}
                continue
            position = turns.move(position, mover)
            on_move(position)
            key = position.policy.fingerprint() if rules.no_return else b""
            if key in seen or turns.total > rules.most_gain:
                return turns.ending(Status.NOT_POTENTIAL, turns.why_not_potential(key in seen), position)
            if rules.no_return:
                seen.add(key)
    except KeyboardInterrupt:
        return turns.ending(Status.INTERRUPTED, "interrupted by the user.", position)
    except (LoopLimit, OutOfTimeError) as limit:
        return turns.ending(Status.LIMIT, str(limit), position)


@dataclass(eq=False)
class _Turns(Generic[Where]):
    """The state of one run: the trace so far, and the answers known at the current position."""

    answer: Callable[[Where, int, np.random.Generator | None], Answer]
    rules: Rules
    workers: int
    rng: np.random.Generator | None
    on_progress: OnProgress
    traced: bool
    num_agents: int
    trace: list[Step] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)
    decisions: int = 0
    computed: int = 0
    moves: int = 0
    total: float = 0.0  # of the gains
    last: int = -1  # who moved last
    began: float = field(default_factory=time.monotonic)

    def gains(self, position: Where, agents: Iterable[int]) -> FloatArray:
        """Return the gains of the named agents; those that are not known yet are computed."""
        agents = list(agents)
        missing = [agent for agent in agents if agent not in self.answers]
        if missing:
            self._require_time_and_answers()
            self.computed += len(missing)
        streams = [None] * len(missing) if self.rng is None else self.rng.spawn(len(missing))
        if self.workers > 1 and len(missing) > 1:
            # Answers share what they learn of the agents: they stay threads, whatever joblib is set to elsewhere.
            threads = Jobs(self.workers, backend="threads")
            tasks = list(zip(missing, streams, strict=True))
            found = dict(run_tasks(lambda task: self.answer(position, *task), tasks, jobs=threads))
            self.answers.update({agent: found[index] for index, agent in enumerate(missing)})
        else:
            for agent, stream in zip(missing, streams, strict=True):
                self.answers[agent] = self.answer(position, agent, stream)
        return np.array([self.answers[agent].gain for agent in agents])

    def _require_time_and_answers(self) -> None:
        if time.monotonic() > self.rules.deadline:
            raise LoopLimit("the time limit was reached. Allow more time, or a larger epsilon.")
        if self.computed >= self.rules.max_answers:
            raise LoopLimit(f"{self.computed} answers were computed, as many as allowed.")

    def record(self, position: Where, mover: int | None) -> None:
        """Note who could gain how much, and who moves."""
        gains = np.full(self.num_agents, np.nan)
        for agent, answer in self.answers.items():
            gains[agent] = answer.gain
        gain = float(np.nanmax(gains)) if mover is None else float(gains[mover])
        costs = np.asarray(position.costs, dtype=np.float64)
        seconds = time.monotonic() - self.began
        step = Step(self.decisions + 1, mover, gain, gains, costs, self.total, seconds)
        self.decisions += 1
        if self.traced:
            self.trace.append(step)
        _LOG.debug("iteration %d: mover %s, gain %.6g, costs %s", step.iteration, mover, gain, costs)
        self.on_progress(step)

    def move(self, position: Where, mover: int) -> Where:
        """Let one agent play its answer."""
        if self.moves >= self.rules.max_moves:
            raise LoopLimit(f"the limit of {self.rules.max_moves} moves was reached. Allow more, or a larger epsilon.")
        chosen = self.answers[mover]
        moved: Where = position.replace(mover, chosen.table) if chosen.moved is None else chosen.moved
        # The mover's own problem has not changed, and it plays the answer now.
        self.answers, self.last = {mover: Answer(chosen.table, 0.0, chosen.detail)}, mover
        self.moves += 1
        self.total += chosen.gain
        return moved

    def why_not_potential(self, repeated: bool) -> str:
        """Say what proves that the game has no potential."""
        if repeated:
            return f"move {self.moves} leads back to a policy seen before, though every move gained."
        return (
            f"{self.moves} moves gained {self.total:.6g} in all, more than the {self.rules.most_gain:.6g} "
            "that a potential allows."
        )

    def ending(self, status: Status, message: str, position: Where) -> Ending[Where]:
        """Return where the loop stands."""
        return Ending(status, message, position, dict(self.answers), tuple(self.trace), self.moves)


def interrupted_at(game: Game, policy: JointPolicy, *, epsilon: float) -> Result:
    """Judge a policy at which something was interrupted, without any more search."""
    certificate = screen(game, policy)
    incumbent = Incumbent(policy, certificate.multipliers, certificate)
    if certificate.proves(epsilon):
        message = proved_text(certificate)
        return Result(Status.CERTIFIED, message, epsilon, incumbent=incumbent, game=game, interrupted=True)
    more = "" if certificate.feasible else f" {feasibility_text(certificate)}."
    message = f"interrupted by the user.{more}"
    return Result(Status.INTERRUPTED, message, epsilon, incumbent=incumbent, game=game, interrupted=True)


def verdict(
    ending: Ending[Any], certificate: Certificate, *, epsilon: float, ranges: FloatArray, failed: str
) -> tuple[Status, str]:
    """Say how a loop ended whose last policy was judged; the certificate decides."""
    if certificate.proves(epsilon) and ending.status is not Status.NOT_POTENTIAL:
        return Status.CERTIFIED, proved_text(certificate)
    open_to_rounding = certificate.feasibility is Feasibility.TO_ROUNDING and certificate.epsilon <= epsilon
    if open_to_rounding and ending.status is not Status.NOT_POTENTIAL:
        return Status.TO_ROUNDING, rounded_text(certificate)
    status, message = _unproved(ending, certificate, epsilon=epsilon, ranges=ranges, failed=failed)
    return status, message if certificate.feasible else f"{message} {feasibility_text(certificate)}."


def _unproved(
    ending: Ending[Any], certificate: Certificate, *, epsilon: float, ranges: FloatArray, failed: str
) -> tuple[Status, str]:
    """Say why nothing is proved of the gains."""
    if ending.status is not Status.CERTIFIED:
        return ending.status, ending.message
    if failed:
        return Status.LIMIT, f"{failed} The last policy is kept."
    rounding = float(certificate.rounding.max())
    if rounding > max(epsilon / 4, float(np.max(ranges))) and certificate.multipliers.any():
        return Status.LIMIT, (
            "no agent gains more than epsilon/2 as far as floating point can tell, but next to nothing is left of a "
            "budget, and its price has no bound that floating point can use. Raise its threshold a little; or lower it "
            "to what the policy spends for sure: what no agent may spend at all is proved without a price."
        )
    if rounding > epsilon / 4:
        return Status.LIMIT, (
            f"no agent gains more than epsilon/2 as far as floating point can tell, but its rounding error here "
            f"is up to {rounding:.3g}. Ask for an epsilon of at least {4 * rounding:.1g}, or rescale the rewards."
        )
    return Status.LIMIT, (
        f"the solver's own gap leaves {certificate.epsilon:.3g} unproved, more than epsilon = {epsilon:.3g}. "
        "Use Exact(), or a smaller tolerance."
    )
