"""Several runs of one game: from a few planned starts, then from random ones, one after the other or side by side.

The first run that ends where a planner proves that nothing is better ends the planned ones.
Restarts begin from random feasible policies and break ties at random, each with a stream of random numbers of its own,
so that what they find has the same bits for any number of jobs. Of all certified endings the best is taken, by what
`prefer` says; every run is listed in the result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.deadline import limited
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.result import Attempt, Result, Status, Step
from cmpg.equilibrium.starts.start import Start, StartMethod, random_start
from cmpg.errors import CMPGError, OutOfTimeError, SolverError
from cmpg.games.contract import Game, Objective, only_binding
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.equilibrium.starts.pairs import PairMoves
    from cmpg.runs.runner import Jobs

Preference = Callable[[Game, JointPolicy], float]

SAME = 1e-6
"""Two endings whose values and costs differ by no more than this, relative to them, are one equilibrium."""


NOTHING = 1e-7
"""An ending is the best possible if it misses the bound by no more than this, relative to it."""


def by_potential(game: Game, policy: JointPolicy) -> float:
    """Prefer the equilibrium of greatest potential."""
    return float(game.potential(policy))


def by_welfare(game: Game, policy: JointPolicy) -> float:
    """Prefer the equilibrium of greatest total value."""
    return float(np.sum(game.at(policy).values))


_OBJECTIVES: dict[Preference, Objective] = {by_potential: Objective.POTENTIAL, by_welfare: Objective.WELFARE}


@dataclass(frozen=True, eq=False)
class Course:
    """What all runs of one game share."""

    game: Game
    ascend: Callable[..., Result]  # from a feasible policy
    deadline: float  # on the clock of time.monotonic, which all processes of a machine share

    def seek(
        self,
        method: StartMethod,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None,
        on_progress: OnProgress = lambda _: None,
    ) -> Start:
        """Find a start; the seconds that it took are in its trace, and count. A search that fails has found none."""
        try:
            with limited(self.deadline):
                return method(self.game, begin, rng=rng, deadline=self.deadline, on_progress=on_progress)
        except SolverError as problem:
            return Start(None, -np.inf, None, f"the search for a start ended without one: {str(problem).rstrip('.')}")

    def terms(self, found: Start, *, rng: np.random.Generator | None, on_progress: OnProgress) -> dict[str, Any]:
        """Return on which terms the ascent goes up from a start."""
        return {
            "multipliers": _common_multipliers(found, self.game),
            "time_limit": 0.0 if found.interrupted else self.left,
            "rng": rng,
            "on_progress": partial(_tell_later, on_progress, found.seconds),
        }

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(self.deadline - time.monotonic(), 0.0)


@dataclass(eq=False)
class Runs:
    """The runs of one call, from the first start to the last pair: whatever stops them, what has ended is here."""

    course: Course
    score: Preference
    on_progress: OnProgress
    ended: list[Result] = field(default_factory=list)
    first: Start | None = None  # the first start that has a policy, or the first at all
    proved: bool = False  # whether an ending is the best possible
    late: bool = False  # whether a limit was reached, ours or that of whoever called

    def seek(self, method: StartMethod, *, rng: np.random.Generator | None) -> Start | None:
        """Return what a method finds; None where the time is over."""
        try:
            found = self.course.seek(method, rng=rng, on_progress=self.on_progress)
        except OutOfTimeError:
            self.late = True
            return None
        self.first = found if self.first is None or self.first.policy is None else self.first
        return found

    def keep(self, ended: Result, found: Start) -> bool:
        """Keep where an ascent ended; return whether no further start is needed, or none wanted."""
        self.ended.append(ended)
        self.proved = _is_best(self.course.game, ended, found, self.score)
        return ended.interrupted or self.proved or not self.course.left

    @property
    def go_on(self) -> bool:
        """Whether there is an ending to go on from, and nobody wants to stop."""
        return bool(self.ended) and not self.ended[-1].interrupted

    def restart(self, method: StartMethod, streams: Iterable[np.random.Generator], jobs: int | Jobs) -> None:
        """Run again from random feasible policies."""
        safe = None if self.first is None else self.first.begin or self.first.policy
        assert safe is not None
        self.ended += restarted(self.course, method, safe, streams, jobs=jobs, on_progress=self.on_progress)

    def move_together(self, improve: PairMoves | Literal["auto"]) -> PairMoves:
        """Let two agents move at once from the best ending; return what was tried."""
        from cmpg.equilibrium.starts.pairs import PairMoves, moved_together

        pairs = PairMoves() if improve == "auto" else improve
        score = partial(self.score, self.course.game)
        self.ended = moved_together(self.course, self.ended, pairs, score, on_progress=self.on_progress)
        return pairs

    def best(self, *, list_all: bool) -> Result:
        """Return the best ending."""
        game = self.course.game
        return best_of(game, self.ended, partial(_scored, game, self.score), _criterion(self.score), list_all=list_all)


class Interruptible(Protocol):
    """What a search returns that answers Ctrl-C with what it has."""

    @property
    def interrupted(self) -> bool:
        """Whether it was interrupted."""


Found = TypeVar("Found", bound=Interruptible)


def uninterrupted(result: Found) -> Found:
    """Return a result, or raise the Ctrl-C that it has answered: for callers that have more to do than this one run."""
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _scored(game: Game, prefer: Preference, run: Result) -> float:
    """Return what a certified ending is worth; its welfare is known already."""
    return float(run.values.sum()) if prefer is by_welfare else prefer(game, run.policy)


def _criterion(prefer: Preference) -> str:
    return "potential" if prefer is by_potential else "total value" if prefer is by_welfare else "preference"


def _is_best(game: Game, ended: Result, found: Start, prefer: Preference) -> bool:
    """Whether an ending is proved to be the best possible, so that no other start can matter."""
    if found.bound is None or not ended.certified or found.objective is not _OBJECTIVES.get(prefer):
        return False
    return _scored(game, prefer, ended) >= found.bound.value - NOTHING * (1 + abs(found.bound.value))


def check_restarts(restarts: int, jobs: int | Jobs, *, drawn: bool) -> None:
    """Raise if so many runs cannot be made, or not in so many processes, or not without random numbers."""
    if restarts < 1:
        raise CMPGError(f"restarts is {restarts}; at least one run is needed.")
    if restarts > 1 and not drawn:
        raise CMPGError("restarts draw random starts: pass seed=1, or rng=np.random.default_rng(1).")
    if isinstance(jobs, int) and jobs != -1 and jobs < 1:
        raise CMPGError(f"jobs is {jobs}; a number of processes is wanted, or -1 for all cores.")


def restarted(
    course: Course,
    method: StartMethod,
    safe: JointPolicy,
    streams: Iterable[np.random.Generator],
    *,
    jobs: int | Jobs,
    on_progress: OnProgress,
) -> Iterator[Result]:
    """Run from random feasible policies, one per stream; yield the results in the order of the streams."""
    if jobs == 1:
        for stream in streams:
            ended = _from_random(course, method, safe, stream, on_progress)
            if ended is None:
                return
            yield ended
            if ended.interrupted:
                return
        return
    from cmpg.runs.runner import Jobs, in_order, run_tasks  # imported where it is used, and rarely is

    asked = Jobs(os.cpu_count() or 1) if jobs == -1 else Jobs.of(jobs)
    for ended in in_order(run_tasks(partial(_from_random, course, method, safe), list(streams), jobs=asked)):
        if ended is not None:
            yield replace(ended, game=course.game)


def _from_random(
    course: Course,
    method: StartMethod,
    safe: JointPolicy,
    stream: np.random.Generator,
    on_progress: OnProgress = lambda _: None,
) -> Result | None:
    """Run once; None where the time is over before there is anything to keep. The game is not sent back."""
    if course.left == 0:
        return None
    try:
        begin = random_start(course.game, safe, rng=stream)
        found = course.seek(method, begin, rng=stream, on_progress=on_progress)
        if found.policy is None:
            return None
        terms = course.terms(found, rng=stream, on_progress=on_progress)
        ended = with_search(course.ascend(course.game, found.policy, **terms), found, method)
    except OutOfTimeError:
        return None
    return replace(ended, game=None, settings={**ended.settings, "begin": "random"})


def best_of(
    game: Game, runs: Sequence[Result], score: Callable[[Result], float], compared_by: str, *, list_all: bool
) -> Result:
    """Return the best certified ending, with all runs, and all distinct equilibria if they are to be listed."""
    if len(runs) == 1:
        return runs[0]
    scores = [score(run) if run.certified else None for run in runs]
    tried = [
        Attempt(run.settings.get("begin", run.settings["start"]), run.status, run.moves + run.search_moves, each)
        for run, each in zip(runs, scores, strict=True)
    ]
    certified = [(each, run) for each, run in zip(scores, runs, strict=True) if each is not None]
    if not certified:
        return replace(runs[0], game=game, runs=tuple(tried))
    distinct: list[Result] = []
    for each, run in sorted(certified, key=lambda pair: -pair[0]):
        if not any([_alike(run, other) for other in distinct]):
            distinct.append(replace(run, game=game, score=(compared_by, each)))
    return replace(distinct[0], runs=tuple(tried), equilibria=tuple(distinct) if list_all else ())


def _alike(one: Result, other: Result) -> bool:
    first, second = np.concatenate([one.values, one.costs]), np.concatenate([other.values, other.costs])
    return bool(np.all(np.abs(first - second) <= SAME * np.maximum(1.0, np.abs(second))))


def _common_multipliers(found: Start, game: Game) -> FloatArray | None:
    if found.multipliers is None:
        return None
    return only_binding(game, np.tile(found.multipliers, (game.num_agents, 1)))


def _tell_later(tell: OnProgress, spent: float, step: Step) -> None:
    """Count the seconds from when the search for a start began."""
    tell(replace(step, seconds=step.seconds + spent))


def with_search(run: Result, found: Start, method: StartMethod) -> Result:
    """Put the rounds of the search before the iterations of the ascent, and name the method."""
    ascent = tuple(replace(step, seconds=step.seconds + found.seconds) for step in run.trace)
    settings = {"start": repr(method), **run.settings}
    stopped = found.interrupted or run.interrupted
    result = replace(run, trace=found.trace + ascent, search_moves=found.moves, settings=settings, interrupted=stopped)
    if found.interrupted and not result.certified:
        return replace(result, status=Status.INTERRUPTED, message="interrupted by the user.")
    return result
