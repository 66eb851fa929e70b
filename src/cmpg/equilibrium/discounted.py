"""Equilibria and certificates of discounted local games: their first steps are solved and judged, and what follows is
bounded (`cmpg.proof.truncation`).

*Search.* The game of the first T steps is solved with thresholds that leave room for what follows. If what follows is
too large for ε in the end, T is doubled, and the policy that was found is where the search begins again.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import (
    KERNEL,
    RATIONALS,
    Certificate,
    as_certificate,
    check_multipliers,
    holds_rationals,
    kernel_judges,
    screen,
)
from cmpg.equilibrium.infeasibility import InfeasibilityProof, prove_infeasible
from cmpg.equilibrium.result import Result, Status, certified_anew
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.common_price import WarmStart
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import Start
from cmpg.errors import GameError, TooLargeError
from cmpg.games.claims import claim_of
from cmpg.games.local.discounted import MAX_STEPS, DiscountedLocalGame
from cmpg.games.local.game import LocalGame
from cmpg.policy import JointPolicy
from cmpg.proof.exact import TooLarge
from cmpg.proof.truncation import first_steps, with_tail
from cmpg.proof.verdict import Findings, judge, judge_exactly
from cmpg.summaries import at_least

ROUNDS = 3
"""How often the number of steps is doubled, at most."""

SHARE = 3 / 4
"""The first steps are solved up to this share of ε."""


def certify_discounted(
    game: DiscountedLocalGame, policy: JointPolicy, multipliers: Any = None, *, exact: bool = False
) -> Certificate:
    """Judge a policy of a discounted local game: against deviations of any length, whatever they do at each step."""
    steps, exact = game.steps_of(policy), exact or holds_rationals(game, policy)
    tail = game.tail(policy, exactly_weighed=exact)
    inner = game.truncated(steps).with_thresholds(tail.budgets(game.thresholds))
    if multipliers is None and len(game.thresholds):
        from cmpg.equilibrium.best_responses import proposed_multipliers  # the only solver, and its word is checked

        multipliers = proposed_multipliers(inner, policy.floats())
    given = check_multipliers(inner, multipliers)
    judged_by, found = _judged(game, inner, policy, given, exact=exact)
    findings = with_tail(found, tail, np.asarray(game.thresholds), np.asarray(given, dtype=np.float64))
    certificate = as_certificate(inner, given, findings, judged_by=judged_by)
    return replace(certificate, thresholds=np.asarray(game.thresholds, dtype=np.float64), tail=tail)


def _judged(
    game: DiscountedLocalGame, inner: LocalGame, policy: JointPolicy, given: Any, *, exact: bool
) -> tuple[str, Findings]:
    """Judge the first steps: by the kernel, in rationals, or by the compiled judge if there is too much for these."""
    if not exact and not kernel_judges(inner):
        found = screen(inner, policy, given)
        names = ("feasibility", "gains", "values", "bounds", "costs", "rounding", "excess")
        return found.judged_by, Findings(**{name: getattr(found, name) for name in names})
    claim = claim_of(inner, policy, given)
    try:
        tables = first_steps(game.step_tables(), game.discount, inner.horizon, exactly_weighed=exact)
        claim = replace(claim, tables=tables)
        return (RATIONALS, judge_exactly(claim)) if exact else (KERNEL, judge(claim))
    except TooLarge:
        raise GameError(
            "the first steps are too many for exact arithmetic; leave `exact` out, and give the policy in floats: "
            "rounding is bounded then."
        ) from None


def solve_discounted(game: DiscountedLocalGame, *, epsilon: float, time_limit: float, **settings: Any) -> Result:
    """Find an equilibrium of a discounted local game, and prove it; `solve` has the parameters."""
    deadline = time.monotonic() + time_limit
    steps, start = game.steps_for(epsilon), settings.pop("start", None)
    if isinstance(start, JointPolicy):
        steps = max(steps, game.steps_of(start))
        start = prolonged(start, steps)
    result = None
    for _ in range(ROUNDS):
        inner = _within(game, steps)
        left = max(deadline - time.monotonic(), 0.0)
        found = solve(inner, epsilon=SHARE * epsilon, start=start, time_limit=left, **settings)
        if found.incumbent is None:
            return result or _without_policy(game, found, steps, epsilon)
        certificate = certify_discounted(game, found.policy, found.multipliers)
        result = certified_anew(found, certificate, epsilon=epsilon, game=game)
        if not found.certified or result.certified or found.interrupted or deadline <= time.monotonic():
            break
        if steps >= MAX_STEPS:
            break
        steps = min(2 * steps, MAX_STEPS)
        start = WarmStart(prolonged(found.policy, steps), found.multipliers)
    assert result is not None
    return result


def discounted_start(game: DiscountedLocalGame, steps: int) -> Start:
    """Look for a policy that is feasible with room for what follows its steps, or a proof that none is feasible."""
    found = feasible_start(_within(game, steps))
    if found.proof is None:
        return found
    return replace(found, proof=_proof(game, steps, found.proof.multipliers))


def _within(game: DiscountedLocalGame, steps: int) -> LocalGame:
    """Return the first steps, with thresholds that leave room for what follows any policy where there is some."""
    first = game.truncated(steps)
    tail = game.tail(first.uniform_policy())  # which may come to everything
    # Where nothing may be paid at all, there is no room; a policy that never pays needs none.
    room = np.where(game.thresholds > 0, tail.inner(game.thresholds), game.thresholds)
    kept = np.isfinite(room) & ((room > 0) | (game.thresholds < 0))
    return first.with_thresholds(np.where(kept, room, game.thresholds))


def prolonged(policy: JointPolicy, steps: int) -> JointPolicy:
    """Return a policy over more steps, in which all agents go on as in its last step."""
    rows = np.minimum(np.arange(steps), policy.shapes[0][0] - 1)
    return JointPolicy(tuple(table[rows] for table in policy))


def _proof(game: DiscountedLocalGame, steps: int, multipliers: FloatArray) -> InfeasibilityProof | None:
    """Return a proof that nothing is feasible, whatever follows the first steps; None if that is none."""
    try:
        proof = prove_infeasible(game.relaxed(steps), multipliers)
    except TooLargeError:
        return None
    return proof if proof.holds else None


def _without_policy(game: DiscountedLocalGame, found: Result, steps: int, epsilon: float) -> Result:
    """Return an ending without a policy; it is infeasible if already its first steps are, whatever follows them."""
    if found.status is not Status.INFEASIBLE:
        return replace(found, game=game, epsilon=epsilon)  # type: ignore[arg-type]
    assert found.proof is not None
    proof = _proof(game, steps, found.proof.multipliers)
    if proof is not None:
        least, limit = at_least(proof.least_cost, 9), proof.limit
        text = f"every joint policy spends at least {least} of a weighted budget of {limit:.9g}."
        return Result(Status.INFEASIBLE, text, epsilon, game=game, proof=proof)  # type: ignore[arg-type]
    message = f"no policy leaves room for what follows the first {steps} steps, and whether one needs it is not known."
    return Result(Status.FEASIBILITY_UNKNOWN, message, epsilon, game=game)  # type: ignore[arg-type]
