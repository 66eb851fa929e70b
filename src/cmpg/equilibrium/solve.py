"""From a game to a certified equilibrium in one call: a feasible start, coordinate ascent, restarts, and a choice
among the endings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.ascent import OnProgress, coordinate_ascent, proved_text
from cmpg.equilibrium.certificate import Certificate, Feasibility, certify
from cmpg.equilibrium.common_price import price_start
from cmpg.equilibrium.result import Incumbent, Result, Status, Step
from cmpg.equilibrium.start import Start, feasible_start, is_feasible, random_start
from cmpg.errors import CMPGError
from cmpg.games.contract import Game, Information, Position, in_floats
from cmpg.games.potential.check import check_potential
from cmpg.policy import JointPolicy

Preference = Callable[[Game, JointPolicy], float]


def by_potential(game: Game, policy: JointPolicy) -> float:
    """Prefer the equilibrium of greatest potential."""
    return float(game.potential(policy))


def by_welfare(game: Game, policy: JointPolicy) -> float:
    """Prefer the equilibrium of greatest total value."""
    return float(np.sum(game.at(policy).values))


def solve(
    game: Game,
    *,
    epsilon: float = 1e-6,
    start: JointPolicy | None = None,
    restarts: int = 1,
    prefer: Preference = by_potential,
    rng: np.random.Generator | None = None,
    **settings: Any,
) -> Result:
    """Find a feasible policy from which no agent gains more than epsilon by leaving, and prove it.

    Parameters
    ----------
    game
        Any game.
    epsilon
        No agent shall gain more than this.
    start
        A feasible joint policy; sought where it is not given.
    restarts
        Runs in all: the first from `start`, the others from random feasible policies with random ties.
    prefer
        Which of the distinct equilibria is returned; all are in `result.equilibria`.
    rng
        For random starts and ties; needed with restarts.
    settings
        Passed on to `coordinate_ascent`: solver, schedule, polish, max_iterations, time_limit, workers, on_progress.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> result = solve(counter_example(), epsilon=1e-6)
    >>> result.status.name, result.certificate.feasible
    ('CERTIFIED', True)
    """
    if restarts < 1:
        raise CMPGError(f"restarts is {restarts}; at least one run is needed.")
    if restarts > 1 and rng is None:
        raise CMPGError("restarts draw random starts: pass rng=np.random.default_rng(seed).")
    played = in_floats(game)
    found = Start(start, np.nan, None, "given") if start is not None else feasible_start(played)
    if found.policy is None:
        return _without_start(found, epsilon)
    ascend = partial(_ascend, played, epsilon=epsilon, settings=settings)
    runs = [ascend(found.policy, priced=start is None, rng=rng if restarts == 1 else None)]
    # Ctrl-C keeps what the runs so far have found.
    with suppress(KeyboardInterrupt):
        while len(runs) < restarts and runs[-1].status is not Status.INTERRUPTED:
            assert rng is not None
            runs.append(ascend(random_start(played, found.policy, rng=rng), priced=True, rng=rng))
    result = _with_witness(played, _best_of(played, runs, prefer))
    result = _moved_inside(played, result, rng=rng, settings=settings)
    return _judged_exactly(game, result) if played is not game else result


def _ascend(
    game: Game,
    start: JointPolicy,
    *,
    priced: bool,
    epsilon: float,
    rng: np.random.Generator | None,
    settings: dict[str, Any],
) -> Result:
    """Run the ascent; among agents who see their own states only, from where all agree on the price of the budget."""
    if not priced or game.information is not Information.OWN_STATE or len(game.thresholds) == 0:
        return coordinate_ascent(game, start, epsilon=epsilon, rng=rng, **settings)
    began, limit = time.monotonic(), settings.get("time_limit", np.inf)
    tell = settings.get("on_progress") or (lambda _: None)
    rounds = count(1)

    def on_round(position: Position, prices: FloatArray) -> None:
        unknown = np.full(game.num_agents, np.nan)
        costs, seconds = np.asarray(position.costs, dtype=np.float64), time.monotonic() - began
        tell(Step(next(rounds), None, np.nan, unknown, costs, 0.0, seconds, prices))

    better = price_start(game, start, rng=rng, deadline=began + limit, on_round=on_round)
    spent = time.monotonic() - began
    left = {"time_limit": 0.0 if better.interrupted else max(limit - spent, 0.0), "on_progress": _later(tell, spent)}
    prices = np.tile(better.multipliers, (game.num_agents, 1))
    result = coordinate_ascent(
        game, better.policy, epsilon=epsilon, multipliers=prices, rng=rng, **{**settings, **left}
    )
    trace = tuple(replace(step, seconds=step.seconds + spent) for step in result.trace)
    if better.interrupted and not result.certified:
        return _with(result, trace=trace, status=Status.INTERRUPTED, message="interrupted by the user.")
    return _with(result, trace=trace)


def _later(tell: OnProgress, spent: float) -> OnProgress:
    """Count the seconds from when the search for a price began."""
    return lambda step: tell(replace(step, seconds=step.seconds + spent))


def _without_start(found: Start, epsilon: float) -> Result:
    if found.proof is not None:
        least, limit = found.proof.least_cost, found.proof.limit
        text = f"every joint policy spends at least {least:.9g} of a weighted budget of {limit:.9g}."
        return Result(Status.INFEASIBLE, text, epsilon, None, proof=found.proof)
    text = f"{found.found_by}; the least violation seen is {-found.slack:.6g}. Pass a feasible `start` if you know one."
    return Result(Status.FEASIBILITY_UNKNOWN, text, epsilon, None)


def _best_of(game: Game, runs: list[Result], prefer: Preference) -> Result:
    """Rank the certified endings, and drop those that repeat another's values and costs."""
    certified = [run for run in runs if run.certified]
    if not certified:
        return runs[0]
    if len(runs) == 1:
        return runs[0]
    ranked = sorted(certified, key=lambda run: -prefer(game, run.policy))
    distinct: list[Result] = []
    for run in ranked:
        if not any(_alike(run, other) for other in distinct):
            distinct.append(run)
    return _with(distinct[0], equilibria=tuple(distinct))


def _alike(one: Result, other: Result) -> bool:
    first, second = np.concatenate([one.values, one.costs]), np.concatenate([other.values, other.costs])
    return bool(np.all(np.abs(first - second) <= 1e-6 * np.maximum(1.0, np.abs(second))))


def _with(result: Result, **changes: Any) -> Result:
    return replace(result, **changes)


def _judged(result: Result, certificate: Certificate, message: str) -> Result:
    """Return a result about the same policy with another certificate."""
    return replace(result, message=message, incumbent=Incumbent(result.policy, result.multipliers, certificate))


def _moved_inside(game: Game, result: Result, *, rng: np.random.Generator | None, settings: dict[str, Any]) -> Result:
    """Where a threshold is met only up to rounding, try again with thresholds lowered by what rounding can hide."""
    start = result.start
    if start is None or not result.certified:
        return result
    if result.certificate.feasibility is Feasibility.PROVEN:
        return result
    room = 4 * game.at(start).cost_rounding + 4 * game.at(result.policy).cost_rounding
    inner = game.with_thresholds(game.thresholds - room)
    if not is_feasible(inner.at(start)):
        return result
    again = coordinate_ascent(inner, start, epsilon=result.epsilon, rng=rng, **settings)
    if not again.certified:
        return result
    certificate = certify(game, again.policy, again.multipliers)
    proved = certificate.proves(result.epsilon) and certificate.feasibility is Feasibility.PROVEN
    if not proved:
        return result
    judged = _judged(again, certificate, proved_text(certificate))
    return _with(judged, equilibria=result.equilibria)


def _with_witness(game: Game, result: Result) -> Result:
    """Where the ascent found that there is no potential, add a 4-cycle that anybody can check again."""
    if result.status is not Status.NOT_POTENTIAL:
        return result
    return _with(result, witness=check_potential(game, rng=np.random.default_rng(0)).witness)


def _judged_exactly(game: Game, result: Result) -> Result:
    """A game given in exact numbers gets its certificate in exact numbers."""
    if result.incumbent is None:
        return result
    certificate = certify(game, result.policy, result.multipliers, exact=True)
    if result.certified and not certificate.proves(result.epsilon):
        text = (
            f"in exact arithmetic the gap is {certificate.epsilon:.3g} and the policy {certificate.feasibility.value}."
        )
        return _with(_judged(result, certificate, text), status=Status.LIMIT)
    if not result.certified:
        return _judged(result, certificate, result.message)
    gain, kind = certificate.epsilon, certificate.information
    text = f"feasible, and no agent gains more than {gain:.3g} by leaving ({kind}, exact arithmetic)."
    return _judged(result, certificate, text)
