"""From a game to a certified equilibrium in one call: a feasible start, coordinate ascent, restarts, and a choice
among the endings.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from cmpg.cmdp.exact import Exact
from cmpg.cmdp.response import Solver
from cmpg.deadline import limited
from cmpg.equilibrium.ascent import coordinate_ascent
from cmpg.equilibrium.certificate import certify, proved_text
from cmpg.equilibrium.loop import GreatestGain, OnProgress, RoundRobin, Schedule, interrupted_at
from cmpg.equilibrium.result import Incumbent, Result, Status
from cmpg.equilibrium.runs import Course, Preference, Runs, by_potential, by_welfare, check_restarts, with_search
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.equilibrium.starts.planner import PlannerStart
from cmpg.equilibrium.starts.start import Start, StartMethod, is_feasible
from cmpg.errors import CMPGError, GameError, OutOfTimeError, PolicyError
from cmpg.games.contract import Game, Information, Objective, in_floats, planner
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.equilibrium.starts.pairs import PairMoves
    from cmpg.runs.runner import Jobs

LARGE = 1_000_000
"""Policies with more entries than this are looked at before anything is done: is there memory and time for them?"""

_LOG = logging.getLogger(__name__)


def solve(
    game: Game,
    *,
    epsilon: float = 1e-6,
    start: JointPolicy | StartMethod | Sequence[StartMethod] | None = None,
    solver: Solver | Literal["exact", "lp", "primal-dual"] = "exact",
    schedule: Schedule | Literal["greatest-gain", "round-robin"] | None = None,
    polish: bool = True,
    improve: PairMoves | Literal["auto"] | None = "auto",
    restarts: int = 1,
    prefer: Preference | Literal["potential", "welfare"] | None = None,
    max_iterations: int | None = None,
    time_limit: float = np.inf,
    allow_rounding: float = 0.0,
    workers: int = 1,
    jobs: int | Jobs = 1,
    rng: np.random.Generator | None = None,
    seed: int | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result:
    """Find a feasible policy from which no agent gains more than epsilon by leaving, and prove it.

    Parameters
    ----------
    game
        Any game.
    epsilon
        No agent shall gain more than this.
    start
        A feasible joint policy, a method that finds one, or several methods, of which the best certified ending is
        taken; later ones are left out when an ending is proved to be the best possible. Unless given:
        `CommonPrice()` where agents see their own states only and there are constraints; `PlannerStart()`, then
        `MinCostStart()`, where a planner can choose for all; else `MinCostStart()`.
    solver
        Finds the best responses of the ascent. The search for a common price needs none: it plans without constraints.
    schedule
        Who moves next: by greatest gain up to four agents, in turns above, unless given.
    polish
        At the end, refill the rows of states that nobody visits with what is best there, and go on if somebody gains.
    improve
        Where the best ending is not proved to be the best possible, let two agents move together, and ascend again
        while that is better: by `PairMoves()` unless given, or not at all, None.
    restarts
        Runs in all: the first from `start` (its methods count as one), the others from random feasible policies with
        random ties, each with random numbers of its own.
    prefer
        Which ending is the best. By potential in games that are known to have one, and by welfare in others, unless
        given. With restarts, all distinct equilibria are in `result.equilibria`.
    max_iterations
        Moves of one ascent at most; Theorem 1's bound unless given.
    time_limit
        Seconds for everything: starts, ascents and restarts.
    allow_rounding
        Where rounding leaves open whether a threshold is met (status TO_ROUNDING), `result.accepted` holds if it is
        exceeded by no more than this. Nothing that is computed depends on it, and no such policy is called certified.
    workers
        Threads: those that plan for several agents of a local game at once while a common price is sought, and those
        that solve CMDPs at the same time, if the schedule asks several agents at once. The answer has the same bits for
        any number.
    jobs
        Processes that restarts are spread over, −1 for all cores; or a `cmpg.runs.Jobs`, for a cluster. The answer has
        the same bits for any number.
    rng, seed
        For random starts and ties: a generator, or the seed of one; needed with restarts.
    on_progress
        Called with each `Step`, in the thread of the caller; while a common price is sought, its `multipliers` are set.
        What it raises ends the run; a KeyboardInterrupt keeps the incumbent.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> result = solve(counter_example(), epsilon=1e-6)
    >>> result.status.name, result.certificate.feasible
    ('CERTIFIED', True)
    """
    _require_game(game)
    began = asked = time.monotonic()
    _LOG.info("solving %r, epsilon %g", game, epsilon)
    deadline = began + time_limit
    draws = _generator(rng, seed)
    if not allow_rounding >= 0:
        raise CMPGError(f"allow_rounding is {allow_rounding}; it must be a number of at least 0.")
    check_restarts(restarts, jobs, drawn=draws is not None)
    if sum(prod(map(float, shape)) for shape in game.policy_shapes) > LARGE:
        from cmpg.sizes import require_solve

        require_solve(game, time_limit)
    played = in_floats(game)
    asks_potential = prefer in (None, "potential") or prefer is by_potential
    try:
        with limited(deadline):
            methods = _start_methods(played, start, by_potential=asks_potential, workers=workers)
            several = restarts > 1 or len(methods) > 1
            score = _preference(game, prefer) if several or improve is not None else by_welfare
    except OutOfTimeError:
        return _told(_without_run(game, None, epsilon, late=True), asked)
    ascend = partial(
        coordinate_ascent,
        epsilon=epsilon,
        solver=_solver(solver),
        schedule=_schedule(schedule),
        polish=polish,
        max_iterations=max_iterations,
        workers=workers,
    )
    runs = Runs(Course(played, ascend, deadline), score, on_progress)
    # Ctrl-C keeps what the runs so far have found.
    stopped = True
    with suppress(KeyboardInterrupt):
        ties = draws if restarts == 1 else None
        for method in methods:
            found = runs.seek(method, rng=ties)
            if found is None:
                break
            if found.proof is not None:
                return _told(_without_start(game, found, epsilon), asked)
            if found.policy is None:
                continue
            terms = runs.course.terms(found, rng=ties, on_progress=on_progress)
            if runs.keep(with_search(ascend(played, found.policy, **terms), found, method), found):
                break
        if restarts > 1 and runs.go_on:
            assert draws is not None
            streams = (draws.spawn(1)[0] for _ in range(restarts - 1))  # as they are needed: there may be many
            runs.restart(_again(methods, played), streams, jobs)
        if improve is not None and not runs.proved and runs.go_on:
            improve = runs.move_together(improve)
        stopped = any(each.interrupted for each in runs.ended)
    first = runs.first
    if not runs.ended:
        if first is None or first.policy is None:
            late = runs.late or time.monotonic() >= deadline
            return _told(replace(_without_run(game, first, epsilon, late=late), interrupted=stopped), asked)
        runs.ended = [interrupted_at(played, first.policy, epsilon=epsilon)]  # just before or after an ascent
    result = replace(runs.ended[0], game=game, allow_rounding=allow_rounding, interrupted=stopped)
    try:
        chosen = replace(runs.best(list_all=restarts > 1), interrupted=stopped)
        settings = {**chosen.settings, "improve": str(improve)}
        result = _with_witness(played, replace(chosen, game=game, allow_rounding=allow_rounding, settings=settings))
        result = _judged_exactly(game, result) if played is not game else result
        result = _moved_inside(game, result, partial(ascend, rng=draws), deadline)
        _told(result, asked)
    except KeyboardInterrupt:
        result = replace(result, interrupted=True)
        if played is not game and result.certified and result.certificate.arithmetic != "exact":
            result = replace(result, status=Status.INTERRUPTED, message="interrupted by the user.")
    return result


def _without_run(game: Game, found: Start | None, epsilon: float, *, late: bool) -> Result:
    """Say how it ended where there was nothing to ascend from."""
    if found is None and not late:
        raise KeyboardInterrupt  # before anything was known of a start
    if found is None or (late and found.proof is None):
        text = "the time limit was reached before a feasible policy was known."
        return Result(Status.FEASIBILITY_UNKNOWN, text, epsilon, game=game)
    return _without_start(game, found, epsilon)


def _told(result: Result, asked: float) -> Result:
    """Log how a run ended."""
    _LOG.info(
        "%s after %.3g s, %d moves: %s", result.status.name, time.monotonic() - asked, result.moves, result.message
    )
    return result


@dataclass(frozen=True)
class _Given:
    """Begin from a policy that the caller knows to be feasible."""

    policy: JointPolicy

    def __call__(self, *_: Any, **__: Any) -> Start:
        return Start(self.policy, np.nan, None, "given")

    def __repr__(self) -> str:
        return "a given policy"


def _start_methods(
    game: Game, start: JointPolicy | StartMethod | Sequence[StartMethod] | None, *, by_potential: bool, workers: int
) -> tuple[StartMethod, ...]:
    if isinstance(start, JointPolicy):
        return (_Given(start),)
    if start is None:
        return _default_starts(game, by_potential=by_potential, workers=workers)
    methods = tuple(start) if isinstance(start, Sequence) else (start,)
    if not methods or not all(callable(method) for method in methods):
        wrong = next((type(each).__name__ for each in methods if not callable(each)), "an empty sequence")
        raise PolicyError(
            f"start is a {wrong}; a JointPolicy is wanted, such as JointPolicy((table_0, table_1)), "
            "or a method: PlannerStart(), MinCostStart() or CommonPrice(), or several of them."
        )
    return methods


def _default_starts(game: Game, *, by_potential: bool, workers: int) -> tuple[StartMethod, ...]:
    """Return the starts that are worth their time: a table over many games is in docs/quality.md."""
    if game.information is Information.OWN_STATE:
        if len(game.thresholds) == 0:
            return (MinCostStart(),)
        from cmpg.equilibrium.starts.common_price import CommonPrice

        return (CommonPrice(workers),)
    if planner(game, None) is None:
        return (MinCostStart(),)
    known = by_potential and game.potential_proof() is not None
    return (PlannerStart(Objective.POTENTIAL if known else Objective.WELFARE), MinCostStart())


def _again(methods: Sequence[StartMethod], game: Game) -> StartMethod:
    """Return how a restart goes on from a random policy: as the first run did, but not from the same policy again."""
    own_state = game.information is Information.OWN_STATE and len(game.thresholds) > 0
    if isinstance(methods[0], _Given) and own_state:
        return _default_starts(game, by_potential=False, workers=1)[0]
    return MinCostStart() if isinstance(methods[0], _Given | PlannerStart) else methods[0]


def _solver(solver: Solver | str) -> Solver:
    if not isinstance(solver, str):
        return _callable("solver", solver)
    if solver == "exact":
        return Exact()
    if solver == "lp":
        from cmpg.cmdp.linear_program import LinearProgram  # heavy: it brings HiGHS

        return LinearProgram()
    if solver == "primal-dual":
        from cmpg.cmdp.primal_dual import PrimalDual

        return PrimalDual()
    raise _unknown("solver", solver, ("exact", "lp", "primal-dual"))


def _schedule(schedule: Schedule | str | None) -> Schedule | None:
    named: dict[str, Schedule] = {"greatest-gain": GreatestGain(), "round-robin": RoundRobin()}
    if not isinstance(schedule, str):
        return schedule
    if schedule not in named:
        raise _unknown("schedule", schedule, named)
    return named[schedule]


def _preference(game: Game, prefer: Preference | str | None) -> Preference:
    """Return how to compare equilibria; a potential only where there is one."""
    if prefer is None:
        return by_welfare if game.potential_proof() is None else by_potential
    if not isinstance(prefer, str):
        chosen = _callable("prefer", prefer)
    elif prefer in ("potential", "welfare"):
        chosen = by_potential if prefer == "potential" else by_welfare
    else:
        raise _unknown("prefer", prefer, ("potential", "welfare"))
    from cmpg.games.potential.check import Verdict, check_potential

    if chosen is by_potential and check_potential(game, rng=np.random.default_rng(0)).verdict is Verdict.REFUTED:
        raise CMPGError("this game has no potential to compare equilibria by: use prefer='welfare'.")
    return chosen


def _generator(rng: np.random.Generator | None, seed: int | None) -> np.random.Generator | None:
    if rng is None:
        return None if seed is None else np.random.default_rng(seed)
    if seed is not None:
        raise CMPGError("both rng and seed are given; one of them is enough.")
    if not isinstance(rng, np.random.Generator):
        raise CMPGError(f"rng is a {type(rng).__name__}; pass seed=1, or rng=np.random.default_rng(1).")
    return rng


Value = TypeVar("Value")


def _callable(name: str, value: Value) -> Value:
    if not callable(value):
        raise CMPGError(f"{name} is a {type(value).__name__}, which cannot be called; see the documentation of solve.")
    return value


def _unknown(name: str, value: str, known: Iterable[str]) -> CMPGError:
    return CMPGError(f"{name} is {value!r}; one of {', '.join(map(repr, known))} is known.")


def _require_game(game: Game) -> None:
    """Refuse what is not a game at all; `check_game` finds what is wrong with one."""
    if isinstance(game, (str, Path)):
        raise GameError(f"the game is given as {str(game)!r}; read the file first: cmpg.load_game({str(game)!r}).")
    if not hasattr(type(game), "at") or not hasattr(type(game), "policy_shapes"):
        raise GameError(f"a {type(game).__name__} is not a game; cmpg.check_game says what a game must have.")


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)


def _without_start(game: Game, found: Start, epsilon: float) -> Result:
    if found.proof is not None:
        least, limit = found.proof.least_cost, found.proof.limit
        text = f"every joint policy spends at least {least:.9g} of a weighted budget of {limit:.9g}."
        return Result(Status.INFEASIBLE, text, epsilon, game=game, proof=found.proof)
    seen = f"; the least violation seen is {-found.slack:.6g}." if np.isfinite(found.slack) else "."
    text = f"{found.found_by}{seen} Pass a feasible `start` if you know one."
    return Result(Status.FEASIBILITY_UNKNOWN, text, epsilon, game=game)


def _moved_inside(game: Game, result: Result, ascend: Callable[..., Result], deadline: float) -> Result:
    """Where a threshold is met only up to rounding, try again with thresholds lowered by what rounding can hide."""
    if result.incumbent is None or result.start is None or result.certificate.feasible:
        return result
    if result.status not in (Status.TO_ROUNDING, Status.LIMIT) or result.certificate.epsilon > result.epsilon:
        return result
    played = in_floats(game)
    room = 4 * played.at(result.start).cost_rounding + 4 * played.at(result.policy).cost_rounding
    with suppress(OutOfTimeError), limited(deadline):
        # Subnormal rooms would be lost in the subtraction.
        inner = played.with_thresholds(np.nextafter(played.thresholds - room, -np.inf))
        start: JointPolicy | None = result.start
        if not is_feasible(inner.at(result.start)):
            start = MinCostStart()(inner, deadline=deadline).policy
        if start is None:
            return result
        again = ascend(inner, start, time_limit=_left(deadline))
        if not again.accepted and again.status is not Status.TO_ROUNDING:
            return result
        certificate = certify(game, again.policy, again.multipliers)
        if certificate.proves(result.epsilon):
            trace = tuple(step for step in result.trace if step.multipliers is not None) + again.trace
            return replace(
                result,
                status=Status.CERTIFIED,
                message=proved_text(certificate),
                incumbent=Incumbent(again.policy, again.multipliers, certificate),
                trace=trace,
                moves=again.moves,
                settings={**result.settings, "moved_inside": True},
            )
    return result


def _with_witness(game: Game, result: Result) -> Result:
    """Where the ascent found that there is no potential, add a 4-cycle that anybody can check again."""
    if result.status is not Status.NOT_POTENTIAL:
        return result
    from cmpg.games.potential.check import check_potential

    return replace(result, witness=check_potential(game, rng=np.random.default_rng(0)).witness)


def _judged_exactly(game: Game, result: Result) -> Result:
    """Give a game in exact numbers a certificate in exact numbers."""
    if result.incumbent is None:
        return result
    certificate = certify(game, result.policy, result.multipliers)
    judged = replace(result, incumbent=replace(result.incumbent, certificate=certificate))
    if result.status not in (Status.CERTIFIED, Status.TO_ROUNDING, Status.LIMIT):
        return judged
    if certificate.proves(result.epsilon):  # whatever the rounding of floats had left open
        return replace(judged, status=Status.CERTIFIED, message=proved_text(certificate))
    if result.status is Status.LIMIT:
        return judged
    text = f"in exact arithmetic the gap is {certificate.epsilon:.3g}. {certificate.told_feasibility}."
    return replace(judged, status=Status.LIMIT, message=text)
