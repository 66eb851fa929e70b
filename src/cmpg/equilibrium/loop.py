"""The loop that CA-CMPG and CA-CMPG-E share: ask for answers, let somebody move, until everybody is quiet.

It has two slots. `answer(position, agent, rng)` finds a response and measures its gain: computed where the model is
known, estimated from episodes where it is not. `at_rest(position, answers)` is asked when nobody gains enough, and
may go on from another position.

The loop ends on any game: a policy seen before, or gains that add up to more than a potential allows, end it with
NOT_POTENTIAL; time and moves are limited; Ctrl-C keeps the incumbent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.result import Status, Step
from cmpg.equilibrium.schedule import Schedule
from cmpg.policy import JointPolicy


class Place(Protocol):
    """Where the climb stands: all that the loop needs to know of a position."""

    @property
    def policy(self) -> JointPolicy:
        """The joint policy."""

    @property
    def costs(self) -> FloatArray:
        """What is known of the costs there: [k]."""

    def replace(self, agent: int, table: Any) -> Self:
        """Return the place after one agent has changed its policy."""


Where = TypeVar("Where", bound=Place)


@dataclass(frozen=True, eq=False)
class Answer:
    """A response of one agent, and how much it gains by it."""

    table: FloatArray  # [H, S_i, A_i]
    gain: float
    detail: Any  # what found it: a BestResponse, or what a learner knows


@dataclass(frozen=True)
class Rules:
    """When to move, and when to stop."""

    schedule: Schedule
    enough: float  # ε/2: smaller gains do not move
    max_moves: int
    most_gain: float  # Σ G_i: more than this in all proves that there is no potential
    deadline: float = np.inf  # on the clock of time.monotonic


@dataclass(frozen=True, eq=False)
class Ending(Generic[Where]):
    """Where a climb ended, and why."""

    status: Status
    message: str
    position: Where
    answers: Mapping[int, Answer]  # known at the position
    trace: tuple[Step, ...]
    moves: int


class ClimbLimit(Exception):
    """Raised inside the loop, or by an answer, when time, moves or samples run out; it ends with status LIMIT."""


@dataclass(eq=False)
class Climb(Generic[Where]):
    """One run of the loop; its state is the trace so far and the answers known at the current position."""

    num_agents: int
    answer: Callable[[Where, int, np.random.Generator | None], Answer]
    rules: Rules
    at_rest: Callable[[Where, Mapping[int, Answer]], Where]
    same_problem: Callable[[Where, int, Where], bool]  # whether an agent's problem is the same at two positions
    workers: int = 1
    rng: np.random.Generator | None = None
    on_progress: Callable[[Step], None] = field(default=lambda _: None)

    def __post_init__(self) -> None:
        self._trace: list[Step] = []
        self._answers: dict[int, Answer] = {}
        self._moves = 0
        self._total = 0.0
        self._last = -1
        self._began = time.monotonic()

    def run(self, position: Where) -> Ending[Where]:
        """Climb until nobody gains enough, or something else ends it."""
        seen = {position.policy.fingerprint()}
        try:
            while True:
                mover = self._next_mover(position)
                if mover is None:
                    rested = self.at_rest(position, self._answers)
                    if rested is position:
                        return self._ending(Status.CERTIFIED, "nobody gains enough.", position)
                    position, self._answers = rested, {}
                    continue
                position = self._move(position, mover)
                key = position.policy.fingerprint()
                if key in seen or self._total > self.rules.most_gain:
                    return self._ending(Status.NOT_POTENTIAL, self._why_not_potential(key in seen), position)
                seen.add(key)
        except KeyboardInterrupt:
            return self._ending(Status.INTERRUPTED, "interrupted by the user.", position)
        except ClimbLimit as limit:
            return self._ending(Status.LIMIT, str(limit), position)

    def _next_mover(self, position: Where) -> int | None:
        def gains(agents: Iterable[int]) -> FloatArray:
            return self._gains(position, list(agents))

        mover = self.rules.schedule.next_mover(gains, self.num_agents, last=self._last, enough=self.rules.enough)
        self._record(position, mover)
        return mover

    def _gains(self, position: Where, agents: list[int]) -> FloatArray:
        missing = [agent for agent in agents if agent not in self._answers]
        if missing and time.monotonic() > self.rules.deadline:
            raise ClimbLimit("the time limit was reached.")
        streams = [None] * len(missing) if self.rng is None else self.rng.spawn(len(missing))
        jobs = list(zip(missing, streams, strict=True))
        if self.workers > 1 and len(jobs) > 1:
            from joblib import Parallel, delayed  # heavy: imported where it is used

            run = Parallel(n_jobs=self.workers, prefer="threads")
            answers = run(delayed(self.answer)(position, agent, stream) for agent, stream in jobs)
        else:
            answers = [self.answer(position, agent, stream) for agent, stream in jobs]
        self._answers.update(zip(missing, answers, strict=True))
        return np.array([self._answers[agent].gain for agent in agents])

    def _record(self, position: Where, mover: int | None) -> None:
        gains = np.full(self.num_agents, np.nan)
        for agent, answer in self._answers.items():
            gains[agent] = answer.gain
        gain = float(np.nanmax(gains)) if mover is None else float(gains[mover])
        costs = np.asarray(position.costs, dtype=np.float64)
        seconds = time.monotonic() - self._began
        self._trace.append(Step(len(self._trace) + 1, mover, gain, gains, costs, self._total, seconds))
        self.on_progress(self._trace[-1])

    def _move(self, position: Where, mover: int) -> Where:
        if self._moves >= self.rules.max_moves:
            raise ClimbLimit(f"the limit of {self.rules.max_moves} moves was reached.")
        chosen = self._answers[mover]
        moved = position.replace(mover, chosen.table)
        # The mover's own problem has not changed, and it plays the answer now.
        kept = {mover: Answer(chosen.table, 0.0, chosen.detail)}
        for agent, answer in self._answers.items():
            if agent != mover and self.same_problem(moved, agent, position):
                kept[agent] = answer
        self._answers, self._last = kept, mover
        self._moves += 1
        self._total += chosen.gain
        return moved

    def _why_not_potential(self, repeated: bool) -> str:
        if repeated:
            return f"move {self._moves} leads back to a policy seen before, though every move gained."
        return (
            f"{self._moves} moves gained {self._total:.6g} in all, more than the {self.rules.most_gain:.6g} "
            "that a potential allows."
        )

    def _ending(self, status: Status, message: str, position: Where) -> Ending[Where]:
        return Ending(status, message, position, dict(self._answers), tuple(self._trace), self._moves)
