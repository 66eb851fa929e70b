"""The runs of one `solve`: a start, an ascent and joint moves by pairs; then the same from random feasible policies.

Guarantee: run r of R restarts depends on the game, the settings and the random generator alone, not on R. So more
restarts are never worse by what the runs are compared by, run 1 is the run of a single solve, and the bits are the same
for any number of jobs. Of all certified endings the best is taken; every run is listed in the result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.deadline import limited
from cmpg.equilibrium.ascent import Ascent, coordinate_ascent
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.result import Attempt, Equilibria, Result, Status, Step
from cmpg.equilibrium.starts.pairs import PairMoves, improved_by_pairs
from cmpg.equilibrium.starts.start import Start, StartMethod, random_start
from cmpg.errors import CMPGError, OutOfTimeError, SolverError
from cmpg.games.game import Game, Objective, only_binding
from cmpg.policy import JointPolicy
from cmpg.runs.runner import Jobs, in_order, run_tasks

if TYPE_CHECKING:
    from cmpg.runs.runner import Jobs

Preference = Callable[[Game, JointPolicy], float]

SAME_EQUILIBRIUM = 1e-6
"""Two endings whose values and costs differ by no more than this, relative to them, are one equilibrium."""

OPTIMAL = 1e-7
"""An ending is optimal if it misses the proved bound by no more than this, relative to it."""


def by_potential(game: Game, policy: JointPolicy) -> float:
    """Prefer the equilibrium of greatest potential.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> by_potential(game, game.uniform_policy()) == game.potential(game.uniform_policy())
    True
    """
    return float(game.potential(policy))


def by_welfare(game: Game, policy: JointPolicy) -> float:
    """Prefer the equilibrium of greatest total value.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> by_welfare(game, game.uniform_policy()), game.at(game.uniform_policy()).values
    (5.5, array([2.75, 2.75]))
    """
    return float(np.sum(game.at(policy).values))


OBJECTIVES: dict[Preference, Objective] = {by_potential: Objective.POTENTIAL, by_welfare: Objective.WELFARE}
"""What a bound must bound to say something of endings that are compared by this."""


def criterion_of(prefer: Preference) -> str:
    """Return the name of what endings are compared by."""
    return OBJECTIVES[prefer].value if prefer in OBJECTIVES else "preference"


@dataclass(frozen=True)
class Restarts:
    """How many runs there are, which ending is the best, and where the runs are made.

    Parameters
    ----------
    count
        Number of runs: the first from `start`, the others from random feasible policies with random ties, each with
        random numbers of its own. Run 1 is the run of a single solve, so that more runs are never worse.
    prefer
        What endings are compared by: `by_potential`, `by_welfare`, or a function of a game and a policy. By potential
        in games that are known to have one, and by welfare in others, unless given.
    jobs
        Processes that the runs from random policies are spread over, −1 for all cores; or a `cmpg.runs.Jobs`, for a
        cluster. The answer has the same bits for any number.

    Examples
    --------
    >>> Restarts(20, prefer=by_welfare).count
    20
    """

    count: int = 1
    prefer: Preference | None = None
    jobs: int | Jobs = 1

    def __post_init__(self) -> None:
        """Reject numbers of runs or processes that make no sense."""
        if not isinstance(self.count, int) or self.count < 1:  # type: ignore[redundant-expr]
            raise CMPGError(f"the number of restarts is {self.count!r}; a whole number of at least 1 is required.")
        if isinstance(self.jobs, int) and self.jobs != -1 and self.jobs < 1:
            raise CMPGError(f"jobs is {self.jobs}; a number of processes is required, or -1 for all cores.")
        if self.prefer is not None and not callable(self.prefer):
            raise CMPGError(f"prefer is {self.prefer!r}; by_potential, by_welfare or another function is required.")


@dataclass(frozen=True, eq=False)
class RunContext:
    """What all runs of one solve share."""

    game: Game
    epsilon: float
    method: Ascent
    improve: PairMoves | None
    prefer: Preference
    deadline: float  # on the clock of time.monotonic, which all processes of a machine share

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return max(self.deadline - time.monotonic(), 0.0)

    def score(self, result: Result) -> float:
        """Return what a certified ending is worth; its welfare is known already."""
        return float(result.values.sum()) if self.prefer is by_welfare else self.prefer(self.game, result.policy)

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

    def ascend(
        self,
        policy: JointPolicy,
        *,
        multipliers: FloatArray | None = None,
        rng: np.random.Generator | None = None,
        on_progress: OnProgress = lambda _: None,
        out_of_time: bool = False,
    ) -> Result:
        """Run the ascent from a feasible policy, in the time that is left."""
        return coordinate_ascent(
            self.game,
            policy,
            epsilon=self.epsilon,
            method=self.method,
            multipliers=multipliers,
            time_limit=0.0 if out_of_time else self.seconds_left,
            rng=rng,
            on_progress=on_progress,
        )

    def ascend_from(
        self, found: Start, policy: JointPolicy, *, rng: np.random.Generator | None, on_progress: OnProgress
    ) -> Result:
        """Run the ascent from a start; the rounds of the search come first in the trace, and their seconds count."""
        common = found.multipliers
        tiled = None if common is None else only_binding(self.game, np.tile(common, (self.game.num_agents, 1)))
        run = self.ascend(
            policy,
            multipliers=tiled,
            rng=rng,
            on_progress=lambda step: on_progress(_later(step, found.seconds)),
            out_of_time=found.interrupted,
        )
        result = replace(
            run,
            trace=(*found.trace, *(_later(step, found.seconds) for step in run.trace)),
            search_moves=found.moves,
            interrupted=found.interrupted or run.interrupted,
        )
        if found.interrupted and not result.certified:
            return replace(result, status=Status.INTERRUPTED, message="interrupted by the user.")
        return result

    def improved(self, result: Result, bound: float, on_progress: OnProgress) -> Result:
        """Let pairs of agents move from an ending that is not proved to be optimal."""
        if self.improve is None or result.interrupted or not result.certified:
            return result
        if np.isfinite(bound) and self.score(result) >= bound - OPTIMAL * (1 + abs(bound)):
            return result
        return improved_by_pairs(self, result, self.improve, on_progress=on_progress)


def _later(step: Step, seconds: float) -> Step:
    return replace(step, seconds=step.seconds + seconds)


@dataclass(eq=False)
class Runs:
    """The runs of one solve: whatever stops them, what has ended is here."""

    context: RunContext
    on_progress: OnProgress
    ended: list[Result] = field(default_factory=list)
    start: Start | None = None
    late: bool = False  # whether time ran out before a start was known

    def first(self, method: StartMethod, *, rng: np.random.Generator | None) -> None:
        """Make the first run."""
        try:
            self.start = self.context.seek(method, rng=rng, on_progress=self.on_progress)
        except OutOfTimeError:
            self.late = True
            return
        if self.start.policy is not None:
            ended = self.context.ascend_from(self.start, self.start.policy, rng=rng, on_progress=self.on_progress)
            self.ended.append(replace(ended, settings={"start": repr(method), **ended.settings}))
            self.ended[0] = self.context.improved(self.ended[0], self.bound, self.on_progress)

    @property
    def bound(self) -> float:
        """What no feasible policy exceeds, as far as the search for the first start has proved it; else infinite."""
        start = self.start
        if start is None or start.bound is None or start.objective is not OBJECTIVES.get(self.context.prefer):
            return np.inf
        return start.bound.value

    def restart(
        self, method: StartMethod, streams: Iterable[np.random.Generator], jobs: int | Jobs, *, safe: JointPolicy
    ) -> None:
        """Run again from random feasible policies, moved towards a safe one, one run per stream."""
        again = partial(_from_random, self.context, method, safe, self.bound)
        self.ended += _all_runs(again, streams, jobs=jobs, on_progress=self.on_progress, game=self.context.game)

    @property
    def interrupted(self) -> bool:
        """Whether the user has ended a run."""
        return any(each.interrupted for each in self.ended)

    def best(self, *, list_all: bool) -> Result:
        """Return the best certified ending, with all runs, and all distinct equilibria if they are to be listed."""
        runs, game, criterion = self.ended, self.context.game, criterion_of(self.context.prefer)
        if len(runs) == 1:
            return runs[0]
        scores = [self.context.score(run) if run.certified else None for run in runs]
        tried = tuple(_attempt(run, score) for run, score in zip(runs, scores, strict=True))
        ranked = sorted((i for i, score in enumerate(scores) if score is not None), key=lambda i: -(scores[i] or 0.0))
        if not ranked:
            return replace(runs[0], game=game, runs=tried)
        distinct: list[Result] = []
        for i in ranked:
            if not any([_same_equilibrium(runs[i], other) for other in distinct]):
                distinct.append(replace(runs[i], game=game, score=(criterion, scores[i] or 0.0)))
        return replace(distinct[0], runs=tried, equilibria=Equilibria(distinct if list_all else ()))


def _all_runs(
    run: Callable[..., Result | None],
    streams: Iterable[np.random.Generator],
    *,
    jobs: int | Jobs,
    on_progress: OnProgress,
    game: Game,
) -> Iterator[Result]:
    """Make one run per stream; yield their results in the order of the streams, until time or the user ends them."""
    if jobs == 1:
        for stream in streams:
            ended = run(stream, on_progress)
            if ended is None:
                return
            yield replace(ended, game=game)
            if ended.interrupted:
                return
        return
    workers = Jobs(os.cpu_count() or 1) if jobs == -1 else Jobs.of(jobs)
    for ended in in_order(run_tasks(run, list(streams), jobs=workers)):
        if ended is not None:
            yield replace(ended, game=game)


def _from_random(
    context: RunContext,
    method: StartMethod,
    safe: JointPolicy,
    bound: float,
    stream: np.random.Generator,
    on_progress: OnProgress = lambda _: None,
) -> Result | None:
    """Run once; None where time runs out before there is anything to keep. The game is not sent back."""
    if context.seconds_left == 0:
        return None
    try:
        begin = random_start(context.game, safe, rng=stream)
        found = context.seek(method, begin, rng=stream, on_progress=on_progress)
        if found.policy is None:
            return None
        ended = context.ascend_from(found, found.policy, rng=stream, on_progress=on_progress)
        ended = context.improved(ended, bound, on_progress)
    except OutOfTimeError:
        return None
    return replace(ended, game=None, settings={"start": repr(method), **ended.settings, "begin": "random"})


def _attempt(run: Result, score: float | None) -> Attempt:
    begin = run.settings.get("begin", run.settings["start"])
    return Attempt(begin, run.status, run.moves + run.search_moves, score)


def _same_equilibrium(one: Result, other: Result) -> bool:
    first, second = np.concatenate([one.values, one.costs]), np.concatenate([other.values, other.costs])
    return bool(np.all(np.abs(first - second) <= SAME_EQUILIBRIUM * np.maximum(1.0, np.abs(second))))


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
