"""Budgets on CVaR: equilibria and certificates of a `CVaRGame`, whose feasible policies are a union over t.

*Certificate.* The policy is feasible at one t. A feasible deviation is feasible at some t, maybe another one; so the
values of t are covered by boxes, each with a relaxed game and multipliers of its own (`CVaRGame.between`), and a
deviation gains at most the largest of what the boxes prove. Boxes are halved where they prove too little, down to
single values of t. If there are too many, what is proved is what the boxes so far prove: a larger gain, and never a
wrong one.

*Search.* At one t the game is an ordinary one, and `solve` ends at an equilibrium of it. If an agent gains by a
response at another t, all go on from there at that t: in a game with a potential each round raises it by more than ε.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import dual_bound
from cmpg.cmdp.response import BestResponse
from cmpg.equilibrium.certificate import (
    KERNEL,
    RATIONALS,
    Certificate,
    as_certificate,
    check_claim,
    check_multipliers,
)
from cmpg.equilibrium.result import Result, Status, certified_anew
from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError, InfeasibleError, SolverError
from cmpg.games.claims import claim_of
from cmpg.games.game import Position
from cmpg.games.joint.game import JointGame
from cmpg.games.risk import CVaRGame, Levels
from cmpg.policy import JointPolicy
from cmpg.proof.alternatives import AlternativesClaim, judge_alternatives
from cmpg.proof.claim import Claim, JointTables
from cmpg.proof.exact import TooLarge
from cmpg.proof.verdict import Feasibility, affordable_costs, nearest, rounded_up
from cmpg.summaries import fields_line

SHARP = 1e-9
"""Boxes that prove gains of at most this are not halved, even if no ε is given."""

MAX_BOXES = 256
"""A certificate has at most this many boxes."""

MAX_CANDIDATES = 32
"""A policy is tried at no more values of t than this, of those at which its CVaR is attained as far as floats tell."""

MAX_STARTS = 9
"""The search begins at no more values of t than this, spread evenly; it goes on at any."""

MAX_ROUNDS = 100
"""How often the search goes on at another t, at most."""


@dataclass(frozen=True, eq=False)
class Box:
    """All t from `low` to `high`, and the multipliers that bound what deviations gain there."""

    low: Levels
    high: Levels
    multipliers: FloatArray  # [n, k]: finite

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class _Improvement:
    """A response by which an agent gains more than ε, and the t at which it is feasible."""

    t: Levels
    agent: int
    response: BestResponse


@dataclass(frozen=True, eq=False)
class _Cover:
    boxes: tuple[Box, ...]
    improvement: _Improvement | None


# --- Certificates -----------------------------------------------------------------------------------------------------


def certify_cvar(
    game: CVaRGame,
    policy: JointPolicy,
    boxes: Sequence[Box] | None = None,
    *,
    exact: bool = False,
    epsilon: float = 0.0,
) -> Certificate:
    """Check a policy on the states (s, x) of a game with budgets on CVaR.

    Parameters
    ----------
    game, policy
        What the policy is claimed to be an equilibrium of.
    boxes
        Multipliers for all t; if omitted, best responses propose them, boxes being halved until ε is proved.
    exact
        Judge in rationals.
    epsilon
        What is to be proved: boxes that prove it are not halved.
    """
    check_claim(game.base, policy)
    known = (
        propose_boxes(game, policy, epsilon=max(epsilon, SHARP), thorough=True).boxes if boxes is None else tuple(boxes)
    )
    _require_cover(game, known)
    t, is_best = _kept_at(game, policy, exact=exact)
    here = next(box for box in known if _inside(t, box))
    first = _claim(game, _point(game, t), policy, up=False, exact=exact)
    others = (_claim(game, box, policy, up=True, exact=exact) for box in known)
    # The same policy, array by array, so that it is plain that all claims are about it.
    claim = AlternativesClaim(first, tuple(replace(each, policy=first.policy) for each in others))
    try:
        found = judge_alternatives(claim, exactly=exact)
    except TooLarge:
        raise GameError(
            "the claim is too large for exact arithmetic; leave `exact` out: rounding is bounded."
        ) from None
    if found.feasibility is Feasibility.VIOLATED and not is_best:  # at this t; it may keep the budget at another
        found = replace(found, feasibility=Feasibility.TO_ROUNDING)
    plain = as_certificate(game.at(t), here.multipliers, found, judged_by=RATIONALS if exact else KERNEL)
    return _in_words(game, t, plain)


def _claim(game: CVaRGame, box: Box, policy: JointPolicy, *, up: bool, exact: bool) -> Claim:
    """Return a claim about one game; limits are exact, or rounded against what is claimed."""
    joint = game.between(box.low, box.high, up=up)
    claim = claim_of(joint, policy, check_multipliers(joint, box.multipliers))
    assert isinstance(claim.tables, JointTables)
    tables = replace(claim.tables, initial=game.base.initial, rewards=game.base.rewards)
    if not exact:
        return replace(claim, tables=tables)
    limits = [*map(Fraction, game.base.thresholds.tolist()), *game.limits(box.low)]
    return replace(claim, tables=tables, thresholds=np.array(limits, dtype=object))


def _point(game: CVaRGame, t: Levels) -> Box:
    return Box(t, t, np.zeros((game.base.num_agents, len(game.thresholds))))


def _kept_at(game: CVaRGame, policy: JointPolicy, *, exact: bool) -> tuple[Levels, bool]:
    """Return a t at which the policy keeps the budgets, if it does at one, and whether no other t is left to be tried.

    Where floats cannot tell several t apart, rationals do, as long as they can be afforded.
    """
    candidates = game.chosen(policy)
    if len(candidates) == 1:
        return candidates[0], True
    decided = len(candidates) <= MAX_CANDIDATES
    for t in reversed(candidates[-MAX_CANDIDATES:]):
        claim = _claim(game, _point(game, t), policy, up=False, exact=exact)
        costs = affordable_costs(claim)
        if costs is None:
            return candidates[-1], False
        if all(cost <= Fraction(limit) for cost, limit in zip(costs, claim.thresholds, strict=True)):
            return t, True
    return candidates[-1], decided


def _inside(t: Levels, box: Box) -> bool:
    return all(low <= each <= high for low, each, high in zip(box.low, t, box.high, strict=True))


def _require_cover(game: CVaRGame, boxes: Sequence[Box]) -> None:
    """Raise unless every t is in a box."""
    covered = np.zeros(tuple(last + 1 for last in game.last), dtype=bool)
    for box in boxes:
        covered[tuple(slice(low, high + 1) for low, high in zip(box.low, box.high, strict=True))] = True
    if not covered.all():
        missing = tuple(int(each) for each in np.argwhere(~covered)[0])
        raise GameError(f"the boxes leave out t = {missing}: deviations that keep a budget there would not be covered.")


def _in_words(game: CVaRGame, t: Levels, found: Certificate) -> Certificate:
    """Return a certificate in the user's words: CVaR and its limit instead of E(C − t)⁺, in units."""
    kept = game.base.num_constraints
    costs, excess, multipliers = found.costs.copy(), found.excess.copy(), found.multipliers.copy()
    for b, (budget, unit, level) in enumerate(zip(game.budgets, game.units, t, strict=True)):
        j, share = kept + b, 1 - Fraction(budget.level)
        # One rounding at the end: a unit of 5e-324 is no number to divide by, and what is exceeded is rounded up.
        if np.isfinite(costs[j]):
            costs[j] = nearest(unit * (level + Fraction(float(costs[j])) / share))
        if np.isfinite(excess[j]):
            excess[j] = rounded_up(unit * Fraction(float(excess[j])) / share)
        multipliers[:, j] = [nearest(Fraction(each) * share / unit) for each in multipliers[:, j].tolist()]
    names = replace(found.names, constraints=game.constraint_names)
    return replace(found, costs=costs, excess=excess, multipliers=multipliers, thresholds=game.thresholds, names=names)


# --- Multipliers for all t --------------------------------------------------------------------------------------------


def propose_boxes(game: CVaRGame, policy: JointPolicy, *, epsilon: float, thorough: bool = False) -> _Cover:
    """Cover all t by boxes with multipliers; the first improvement ends the search unless it is thorough."""
    todo = [(tuple(0 for _ in game.last), game.last)]
    done: list[Box] = []
    improvement = None
    while todo:
        low, high = todo.pop()
        multipliers, found = _box_multipliers(game.between(low, high).at(policy), epsilon)
        if found is None or low == high or len(done) + len(todo) + 2 > MAX_BOXES:
            done.append(Box(low, high, multipliers))
            if found is not None and low == high and improvement is None:
                improvement = _Improvement(low, *found)
                if not thorough:
                    break
            continue
        todo.extend(_halves(low, high))
    return _Cover((*done, *(Box(low, high, np.zeros_like(done[0].multipliers)) for low, high in todo)), improvement)


def _halves(low: Levels, high: Levels) -> Iterator[tuple[Levels, Levels]]:
    axis = int(np.argmax(np.subtract(high, low)))
    middle = (low[axis] + high[axis]) // 2
    yield low, (*high[:axis], middle, *high[axis + 1 :])
    yield (*low[:axis], middle + 1, *low[axis + 1 :]), high


def _box_multipliers(position: Position, epsilon: float) -> tuple[FloatArray, tuple[int, BestResponse] | None]:
    """Return multipliers [n, k] of all agents, and the agent that gains most with its response, if more than ε."""
    agents = len(position.values)
    prices = np.zeros((agents, len(position.costs)))
    best: tuple[float, int, BestResponse] | None = None
    for agent in range(agents):
        cmdp, value = position.induced_cmdp(agent), float(position.values[agent])
        try:
            response = Exact()(cmdp)
        except InfeasibleError as problem:
            # No deviation is feasible here: λ in that direction, so large that it outweighs every reward.
            if problem.multipliers is not None:
                ray = np.asarray(problem.multipliers, dtype=np.float64)
                prices[agent] = _large_enough(cmdp, ray / max(float(ray.max()), 1e-300), value)
            continue
        except SolverError:
            continue
        prices[agent] = np.where(np.isfinite(response.multipliers), response.multipliers, 0.0)
        gain = response.bound - value
        if gain > epsilon and (best is None or gain > best[0]):
            best = gain, agent, response
    return prices, None if best is None else best[1:]


def _large_enough(cmdp: Any, ray: FloatArray, value: float) -> FloatArray:
    """Return a multiple of a proof of infeasibility at which no deviation is worth more than a value."""
    scale = 1.0
    for _ in range(60):
        if float(dual_bound(cmdp, scale * ray)) <= value:
            return scale * ray
        scale *= 4
    return ray


# --- Search -----------------------------------------------------------------------------------------------------------


def solve_cvar(game: CVaRGame, *, epsilon: float, time_limit: float, **settings: Any) -> Result:
    """Find an equilibrium of a game with budgets on CVaR, and prove it; `solve` has the parameters."""
    deadline = time.monotonic() + time_limit
    start = settings.pop("start", None)
    results = []
    for t in _starts(game):
        left = max(deadline - time.monotonic(), 0.0)
        results.append((t, solve(game.at(t), epsilon=epsilon, start=start, time_limit=left, **settings)))
        if results[-1][1].interrupted:
            break
    found = [(t, each) for t, each in results if each.incumbent is not None]
    if not found:
        return _without_policy(game, [each for _, each in results], epsilon)
    t, result = max(found, key=lambda each: (each[1].certified, float(each[1].values.sum())))
    for _ in range(MAX_ROUNDS):
        cover = propose_boxes(game, result.policy, epsilon=epsilon)
        left = deadline - time.monotonic()
        if cover.improvement is None or left <= 0 or result.interrupted:
            break
        better = cover.improvement
        t, policy = better.t, result.policy.replace(better.agent, better.response.policy)
        moved = solve(game.at(t), epsilon=epsilon, start=policy, time_limit=left, **settings)
        if moved.incumbent is None:
            break
        result = replace(moved, moves=result.moves + moved.moves + 1, trace=(*result.trace, *moved.trace))
    certificate = certify_cvar(game, result.policy, cover.boxes, epsilon=epsilon)
    # For upper bounds, the game is one in which no policy that keeps the budgets is worth more.
    return certified_anew(result, certificate, epsilon=epsilon, game=relaxed(game))


def _starts(game: CVaRGame) -> list[Levels]:
    """Return the t at which the search begins: all of them, or some that are spread evenly."""
    number = prod(last + 1 for last in game.last)
    chosen = np.unique(np.linspace(0, number - 1, min(number, MAX_STARTS)).round().astype(int))
    shape = tuple(last + 1 for last in game.last)
    return [tuple(int(each) for each in np.unravel_index(index, shape)) for index in chosen]


def _without_policy(game: CVaRGame, results: Sequence[Result], epsilon: float) -> Result:
    """Return the ending of a search that found no feasible policy; infeasibility is proved where all t are."""
    every = len(results) == prod(last + 1 for last in game.last)
    proved = every and all(each.status is Status.INFEASIBLE for each in results)
    status = Status.INFEASIBLE if proved else Status.FEASIBILITY_UNKNOWN
    sentence = f"no policy keeps every budget, at any of {len(results)} values of t"
    if not proved:
        sentence = f"no policy was found that keeps every budget, at {len(results)} values of t that were tried"
    message = f"{sentence}; at t = {game.levels_text(game.last)}: {results[-1].message}"
    return Result(status, message, epsilon, game=relaxed(game))


def relaxed(game: CVaRGame) -> JointGame:
    """Return a game in which every policy is feasible that keeps the budgets, at whichever t: for upper bounds."""
    return game.between(tuple(0 for _ in game.last), game.last)
