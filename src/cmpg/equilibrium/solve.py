"""From a game to a certified equilibrium in one call: a feasible start, coordinate ascent, joint moves by pairs,
restarts, and the best of the endings.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cmpg.arrays import check_number, check_positive
from cmpg.deadline import limited
from cmpg.equilibrium.ascent import Ascent
from cmpg.equilibrium.certificate import certify, feasibility_text, kernel_judges, proved_text
from cmpg.equilibrium.loop import OnProgress, interrupted_at
from cmpg.equilibrium.result import Incumbent, Result, Status
from cmpg.equilibrium.runs import Preference, Restarts, RunContext, Runs, by_potential, by_welfare
from cmpg.equilibrium.starts.common_price import CommonPrice, WarmStart
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.equilibrium.starts.pairs import PairMoves
from cmpg.equilibrium.starts.planner import PlannerStart
from cmpg.equilibrium.starts.start import Start, StartMethod, is_feasible, may_be_feasible
from cmpg.errors import CMPGError, GameError, OutOfTimeError, PolicyError, explains_keywords
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.game import Game, Information, Objective, check_is_game, planner
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.potential.check import Verdict, check_potential
from cmpg.games.risk import CVaRGame
from cmpg.policy import JointPolicy
from cmpg.sizes import require_solve
from cmpg.summaries import at_least

if TYPE_CHECKING:
    from cmpg.equilibrium.crowds.solve import CrowdResult

LARGE = 1_000_000
"""For policies with more entries than this, memory and time are estimated before anything is done."""

_LOG = logging.getLogger(__name__)


@overload
def solve(
    game: CrowdGame, *, epsilon: float = ..., time_limit: float = ..., rng: np.random.Generator | int | None = ...
) -> CrowdResult: ...
@overload
def solve(
    game: Game | CVaRGame | DiscountedLocalGame,
    *,
    epsilon: float = 1e-6,
    start: JointPolicy | StartMethod | None = None,
    method: Ascent = Ascent(),
    restarts: Restarts = Restarts(),
    improve: PairMoves | None = PairMoves(),
    time_limit: float = np.inf,
    rng: np.random.Generator | int | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result: ...
@explains_keywords(
    seed="pass it as rng: `solve(game, rng=1)`.",
    solver="pass it in the method: `solve(game, method=Ascent(solver=…))`.",
)
def solve(
    game: Any,
    *,
    epsilon: float = 1e-6,
    start: JointPolicy | StartMethod | None = None,
    method: Ascent = Ascent(),
    restarts: Restarts = Restarts(),
    improve: PairMoves | None = PairMoves(),
    time_limit: float = np.inf,
    rng: np.random.Generator | int | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Any:
    """Find a feasible policy from which no agent gains more than epsilon by deviating, and prove it.

    Parameters
    ----------
    game
        Any game; one with budgets on CVaR, which is solved at several t; or a discounted local game, whose policy
        states as many steps as ε needs.
    epsilon
        No agent shall gain more than this.
    start
        A joint policy, or a method that finds one; if the policy does not meet the thresholds, the start is sought near
        it, as by `WarmStart`. Unless given: `CommonPrice()` where agents see their own states only and there are
        constraints; `PlannerStart()` where a planner can choose for all; else `MinCostStart()`. For a game that is
        similar to one that was solved, `WarmStart(result.policy, result.multipliers)`.
    method
        The ascent: how best responses are found, who moves next, and when to stop.
    restarts
        How many runs there are, which ending is the best, and where the runs are made. With several runs, all distinct
        equilibria are in `result.equilibria`.
    improve
        Where an ending is not proved to be optimal, let two agents move together, and ascend again while that is
        better; None: do not.
    time_limit
        Seconds for everything: starts, ascents and restarts.
    rng
        For random starts and ties: a generator, or the seed of one; needed with restarts. Without it ties go to the
        first action.
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
    if isinstance(game, CrowdGame):
        from cmpg.equilibrium.crowds.solve import solve_crowd  # few games are crowds

        if start is not None or restarts.count > 1:
            raise GameError("a crowd is solved from a fluid, once: leave start and restarts out.")
        return solve_crowd(game, epsilon=epsilon, time_limit=time_limit, rng=rng)
    terms: Any = {"start": start, "method": method, "restarts": restarts, "improve": improve, "rng": rng}
    if isinstance(game, CVaRGame):
        from cmpg.equilibrium.cvar import solve_cvar  # few games have such budgets

        return solve_cvar(game, epsilon=epsilon, time_limit=time_limit, on_progress=on_progress, **terms)
    if isinstance(game, DiscountedLocalGame):
        from cmpg.equilibrium.discounted import solve_discounted  # few games are of this form

        return solve_discounted(game, epsilon=epsilon, time_limit=time_limit, on_progress=on_progress, **terms)
    began = time.monotonic()
    generator = _check_arguments(game, start, restarts, time_limit, rng)
    _check_method(epsilon, method, improve, on_progress)
    _LOG.info("solving %r, epsilon %g", game, epsilon)
    deadline = began + time_limit
    try:
        with limited(deadline):
            prefer = _preference(game, restarts)
            begin = _start_method(game, start, prefer, method.workers)
    except OutOfTimeError:
        return _logged(_without_policy(game, None, epsilon), began)
    runs = Runs(RunContext(game, epsilon, method, improve, prefer, deadline), on_progress)
    interrupted = True
    with suppress(KeyboardInterrupt):  # Ctrl-C keeps what the runs so far have found
        runs.first(begin, rng=generator)
        if restarts.count > 1 and runs.ended and not runs.interrupted:
            _restart(runs, restarts, begin, generator)
        interrupted = runs.interrupted
    conclude = partial(_concluded, game, runs, generator, list_all=restarts.count > 1)
    try:
        return _logged(conclude(interrupted=interrupted), began)
    except KeyboardInterrupt:  # just before or after the conclusion
        return conclude(interrupted=True)


def _restart(runs: Runs, restarts: Restarts, begin: StartMethod, generator: np.random.Generator | None) -> None:
    """Make the runs from random policies, which continue as the first run did."""
    assert generator is not None
    assert runs.start is not None
    safe = runs.start.begin or runs.start.policy
    assert safe is not None
    game, workers = runs.context.game, runs.context.method.workers
    again = _default_start(game, Objective.WELFARE, workers) if isinstance(begin, GivenStart) else begin
    streams = (generator.spawn(1)[0] for _ in range(restarts.count - 1))  # as they are needed: there may be many
    runs.restart(again, streams, restarts.jobs, safe=safe)


# --- What was requested -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenStart:
    """Begin from a policy of the caller; if it does not meet the thresholds, near it."""

    policy: JointPolicy

    def __call__(self, game: Game, begin: JointPolicy | None = None, **terms: Any) -> Start:
        """Return the policy if it is feasible, and what `WarmStart` makes of it otherwise."""
        self.policy.check_fits(game.policy_shapes)
        if may_be_feasible(game.at(self.policy)):
            return Start(self.policy, np.nan, None, "given")
        return WarmStart(self.policy)(game, begin, **terms)

    def __repr__(self) -> str:
        """Return what it is called in settings and tables."""
        return "a given policy"


def _check_arguments(
    game: Game, start: object, restarts: Restarts, time_limit: float, rng: np.random.Generator | int | None
) -> np.random.Generator | None:
    """Return the random generator, if there is one; reject what is not a game, a start, or too large."""
    check_is_game(game)
    if start is not None and not isinstance(start, JointPolicy) and not callable(start):
        raise PolicyError(
            f"start is a {type(start).__name__}; a JointPolicy is required, such as JointPolicy((table_0, table_1)), "
            "or a method: PlannerStart(), MinCostStart() or CommonPrice()."
        )
    if not isinstance(restarts, Restarts):
        raise CMPGError(f"restarts is {restarts!r}; pass Restarts({restarts!r}).")
    if rng is not None and not isinstance(rng, (int, np.integer, np.random.Generator)):
        raise CMPGError(f"rng is a {type(rng).__name__}; a seed is required, or np.random.default_rng(1).")
    if restarts.count > 1 and rng is None:
        raise CMPGError("restarts draw random starts: pass rng=1, or rng=np.random.default_rng(1).")
    check_number("time_limit", time_limit)
    if sum(prod(map(float, shape)) for shape in game.policy_shapes) > LARGE:
        require_solve(game, time_limit)
    return None if rng is None else np.random.default_rng(rng)


def _check_method(epsilon: object, method: object, improve: object, on_progress: object) -> None:
    """Reject words and values of another kind where a value of the library is required."""
    check_positive("epsilon", epsilon)
    if not isinstance(method, Ascent):
        inside = f"Ascent(solver={method!r})" if callable(method) or hasattr(method, "solve") else "Ascent()"
        raise CMPGError(f"method is {method!r}; an Ascent is required, such as {inside}.")
    if improve is not None and not isinstance(improve, PairMoves):
        raise CMPGError(f"improve is {improve!r}; PairMoves() or None is required.")
    if on_progress is not None and not callable(on_progress):
        raise CMPGError(f"on_progress is {on_progress!r}; a function of one step is required.")


def _preference(game: Game, restarts: Restarts) -> Preference:
    """Return how to compare endings: by potential only where there is one."""
    if restarts.prefer is None:
        return by_welfare if game.potential_proof() is None else by_potential
    if restarts.prefer is by_potential and check_potential(game, rng=0).verdict is Verdict.REFUTED:
        raise CMPGError("this game has no potential to compare equilibria by: use Restarts(prefer=by_welfare).")
    return restarts.prefer


def _start_method(game: Game, start: JointPolicy | StartMethod | None, prefer: Preference, workers: int) -> StartMethod:
    if isinstance(start, JointPolicy):
        return GivenStart(start)
    if start is not None:
        return start
    by_known_potential = prefer is by_potential and game.potential_proof() is not None
    return _default_start(game, Objective.POTENTIAL if by_known_potential else Objective.WELFARE, workers)


def _default_start(game: Game, objective: Objective, workers: int) -> StartMethod:
    """Return the start that is worth its time: docs/quality.md compares them over many games."""
    if game.information is Information.OWN_STATE and len(game.thresholds):
        return CommonPrice(workers)
    if game.information is Information.OWN_STATE or planner(game, None) is None:
        return MinCostStart()
    return PlannerStart(objective)


# --- What is returned -------------------------------------------------------------------------------------------------


def _concluded(
    game: Game, runs: Runs, generator: np.random.Generator | None, *, interrupted: bool, list_all: bool
) -> Result:
    """Return the best ending, proved by the kernel, and inside the thresholds."""
    context, start = runs.context, runs.start
    if not runs.ended:
        if start is None or start.policy is None:
            if start is None and not runs.late and context.seconds_left > 0:
                raise KeyboardInterrupt  # before anything was known of a start
            late = runs.late or context.seconds_left == 0
            known = None if late and (start is None or start.proof is None) else start
            return replace(_without_policy(game, known, context.epsilon), interrupted=interrupted)
        runs.ended.append(interrupted_at(context.game, start.policy, epsilon=context.epsilon))
    result = replace(runs.ended[0], game=game, interrupted=interrupted)
    try:
        best = runs.best(list_all=list_all)
        settings = {**best.settings, "improve": str(context.improve)}
        result = _with_witness(context.game, replace(best, game=game, settings=settings, interrupted=interrupted))
        result = _proved(game, result)
        return _moved_inside(game, result, context, generator)
    except KeyboardInterrupt:
        if context.game is not game and result.certified and result.certificate.arithmetic != "exact":
            result = replace(result, status=Status.INTERRUPTED, message="interrupted by the user.")
        return replace(result, interrupted=True)


def _logged(result: Result, began: float) -> Result:
    seconds = time.monotonic() - began
    _LOG.info("%s after %.3g s, %d moves: %s", result.status.name, seconds, result.moves, result.message)
    return result


def _without_policy(game: Game, start: Start | None, epsilon: float) -> Result:
    """Say why there is no policy: there was no time, there is none, or none was found."""
    if start is None:
        text = "the time limit was reached before a feasible policy was known."
        return Result(Status.FEASIBILITY_UNKNOWN, text, epsilon, game=game)
    if start.proof is not None:
        least, limit = start.proof.least_cost, start.proof.limit
        text = f"every joint policy spends at least {at_least(least, 9)} of a weighted budget of {limit:.9g}."
        return Result(Status.INFEASIBLE, text, epsilon, game=game, proof=start.proof)
    seen = f"; the least violation seen is {-start.slack:.6g}." if np.isfinite(start.slack) else "."
    text = f"{start.found_by}{seen} Pass a feasible `start` if you know one."
    return Result(Status.FEASIBILITY_UNKNOWN, text, epsilon, game=game)


def _moved_inside(game: Game, result: Result, context: RunContext, generator: np.random.Generator | None) -> Result:
    """Where a threshold is met only up to rounding, try again with thresholds lowered by what rounding can hide."""
    if result.status not in (Status.TO_ROUNDING, Status.LIMIT) or result.incumbent is None or result.start is None:
        return result
    if result.certificate.feasible or result.certificate.epsilon > result.epsilon:
        return result
    played, start = context.game, result.start
    room = 4 * played.at(start).cost_rounding + 4 * played.at(result.policy).cost_rounding
    with suppress(OutOfTimeError), limited(context.deadline):
        # Subnormal rooms would be lost in the subtraction.
        lowered = np.nextafter(played.thresholds - room, -np.inf)
        if not np.isfinite(lowered).all():  # a cost overflows, and nothing can be said about it
            return result
        inner = played.with_thresholds(lowered)
        if not is_feasible(inner.at(start)):
            found = MinCostStart()(inner, deadline=context.deadline).policy
            if found is None:
                return result
            start = found
        again = replace(context, game=inner).ascend(start, rng=generator)
        if again.status in (Status.CERTIFIED, Status.TO_ROUNDING):
            certificate = certify(game, again.policy, again.multipliers)
            if certificate.proves(result.epsilon):
                return _replaced(result, again, Incumbent(again.policy, again.multipliers, certificate))
    return result


def _replaced(result: Result, again: Result, incumbent: Incumbent) -> Result:
    """Return a result with the policy of an ascent inside the thresholds, which is certified."""
    return replace(
        result,
        status=Status.CERTIFIED,
        message=proved_text(incumbent.certificate),
        incumbent=incumbent,
        trace=tuple(step for step in result.trace if step.multipliers is not None) + again.trace,
        moves=again.moves,
        settings={**result.settings, "moved_inside": True},
    )


def _with_witness(game: Game, result: Result) -> Result:
    """Where the ascent found that there is no potential, add a 4-cycle that anyone can check again."""
    if result.status is not Status.NOT_POTENTIAL:
        return result
    return replace(result, witness=check_potential(game, rng=np.random.default_rng(0)).witness)


def _proved(game: Game, result: Result) -> Result:
    """Have the policy that is returned judged by the kernel, or in rationals if the game is given in them.

    The runs were compared by what `screen` says. Nothing of that is believed here: where the kernel proves less, the
    status says so, and where rounding alone had left a proof open, it may prove more.
    """
    if result.incumbent is None or not kernel_judges(game):
        return result
    certificate = certify(game, result.policy, result.multipliers)
    judged = replace(result, incumbent=replace(result.incumbent, certificate=certificate))
    if result.status not in (Status.CERTIFIED, Status.TO_ROUNDING, Status.LIMIT):
        return judged
    if certificate.proves(result.epsilon):
        return replace(judged, status=Status.CERTIFIED, message=proved_text(certificate))
    if result.status is Status.LIMIT or (
        result.status is Status.TO_ROUNDING and certificate.epsilon <= result.epsilon and not certificate.feasible
    ):
        return judged
    text = (
        f"the gap is {certificate.epsilon:.3g} as judged by {certificate.judged_by}. {feasibility_text(certificate)}."
    )
    return replace(judged, status=Status.LIMIT, message=text)
