"""Certificates of devices: what is proved of a rota or a correlated policy. No solver is imported here.

The kernel decides (`cmpg.proof.recommendations`). A rota of a game that is too large for it is judged mode by mode by
the CMDPs that the game induces, as a policy is, and what was found is averaged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import (
    KERNEL,
    MAX_KERNEL_SECONDS,
    RATIONALS,
    Certificate,
    as_certificate,
    check_multipliers,
    holds_rationals,
    screen,
    tables_of,
)
from cmpg.errors import GameError, PolicyError, UnsupportedError
from cmpg.games.claims import claim_of
from cmpg.games.devices import Concept, CorrelatedPolicy, Device, Rota, shared_game
from cmpg.games.game import Game, binds_of
from cmpg.games.rationals import as_given, is_exact
from cmpg.proof.claim import ClaimError
from cmpg.proof.exact import TooLarge
from cmpg.proof.recommendations import (
    CorrelatedClaim,
    RecommendationClaim,
    RotaClaim,
    judge_recommendation,
    judge_recommendation_exactly,
)
from cmpg.proof.verdict import SMALLEST, Findings, decided, seconds_to_check


def certify_device(
    game: Game, device: Device, multipliers: Any = None, *, concept: Concept | None = None, exact: bool = False
) -> Certificate:
    """Check a device; `certify` has the parameters."""
    claimed = _claimed(device, concept)
    device.check_fits(game)
    given = check_multipliers(game, multipliers)
    tables = tables_of(game)
    if tables is None and (exact or isinstance(device, CorrelatedPolicy)):
        raise UnsupportedError(type(game).__name__, "cannot state its tables", "Build a joint, local or counting game.")
    rational = exact or _holds_rationals(game, device)
    seconds = seconds_to_check(tables, game.policy_shapes, discounted=game.discount is not None) if tables else np.inf
    if isinstance(device, Rota) and not rational and seconds * len(device.modes) > MAX_KERNEL_SECONDS:
        return _screened_rota(game, device, given)
    try:
        claim = recommendation_claim(game, device, given, coarse=claimed is Concept.COARSE)
    except ClaimError as problem:
        raise PolicyError(str(problem)) from None
    if not rational:
        return as_certificate(game, given, judge_recommendation(claim), judged_by=KERNEL, concept=claimed)
    try:
        found = judge_recommendation_exactly(claim)
    except TooLarge:
        raise GameError(
            "the claim is too large for exact arithmetic; leave `exact` out, and rounding is bounded instead."
        ) from None
    return as_certificate(game, given, found, judged_by=RATIONALS, concept=claimed)


def recommendation_claim(
    game: Game, device: Device, multipliers: FloatArray, *, coarse: bool = False
) -> RecommendationClaim:
    """Return a claim about a device as plain tables."""
    if isinstance(device, Rota):
        first = claim_of(game, device.modes[0], multipliers)
        rest = (replace(first, policy=mode.tables) for mode in device.modes[1:])
        return RotaClaim((first, *rest), device.weights)
    joint = shared_game(game)
    return CorrelatedClaim(
        tables=joint.claim_tables(),
        horizon=joint.horizon,
        discount=as_given(joint, "discount"),
        thresholds=as_given(joint, "thresholds"),
        binds=np.asarray(binds_of(joint)),
        policy=device.table,
        multipliers=multipliers,
        coarse=coarse,
    )


def _claimed(device: Device, concept: Concept | None) -> Concept:
    """Return what is claimed of a device, or raise where it is no such thing."""
    allowed = (Concept.ROTA,) if isinstance(device, Rota) else (Concept.CORRELATED, Concept.COARSE)
    if concept is None:
        return allowed[0]
    if concept not in allowed:
        words = " or ".join(each.word for each in allowed)
        raise PolicyError(
            f"a {type(device).__name__} is claimed to be {concept.word}; it can be claimed to be {words}."
        )
    return concept


def _holds_rationals(game: Game, device: Device) -> bool:
    if isinstance(device, CorrelatedPolicy):
        return bool(device.table.dtype == object) or is_exact(game)
    return device.weights.dtype == object or any(holds_rationals(game, mode) for mode in device.modes)


def _screened_rota(game: Game, rota: Rota, multipliers: FloatArray) -> Certificate:
    """Judge the modes by the CMDPs that the game induces, and average what was found."""
    modes = [screen(game, mode, multipliers) for mode in rota.modes]
    weights, last_bits = rota.weights, 8 * len(modes) * np.finfo(np.float64).eps
    with np.errstate(over="ignore", invalid="ignore"):
        values, bounds, allowance = (
            weights @ np.stack([getattr(mode, name) for mode in modes]) for name in ("values", "bounds", "rounding")
        )
        sizes = np.stack([np.abs(mode.values) + np.abs(mode.bounds) + mode.rounding for mode in modes])
        allowance = allowance + last_bits * (weights @ sizes) + _underflow(sizes)
        gains = np.maximum(bounds - values, 0.0) + allowance
        costs, margins = _costs(game, rota)
        margins = margins + last_bits * np.abs(costs)
    kept = [True if _by_support(modes, j) else None for j in range(len(costs))]
    feasibility, excess = decided(
        np.asarray(game.thresholds, dtype=np.float64), costs - margins, costs + margins, kept, lambda: None
    )
    found = Findings(
        feasibility, np.where(np.isnan(gains), np.inf, gains), values, bounds, costs, np.asarray(allowance), excess
    )
    return as_certificate(game, multipliers, found, judged_by=modes[0].judged_by, concept=Concept.ROTA)


def _costs(game: Game, rota: Rota) -> tuple[FloatArray, FloatArray]:
    """Return the average costs, and how far they can be from the true ones: [k] each."""
    positions = [game.at(mode.floats()) for mode in rota.modes]
    hidden = [each.underflow() for each in positions]
    margins = [
        each.cost_rounding + (0.0 if below is None else below.costs)
        for each, below in zip(positions, hidden, strict=True)
    ]
    costs, off = np.stack([each.costs for each in positions]), np.stack(margins)
    return rota.weights @ costs, rota.weights @ off + _underflow(np.abs(costs) + off)


def _underflow(sizes: FloatArray) -> FloatArray:
    """Return what products of weights and numbers of these sizes [M, m] hide that are too small for a float: [m]."""
    return np.asarray(4 * len(sizes) * SMALLEST * sizes.any(axis=0))


def _by_support(modes: list[Certificate], constraint: int) -> bool:
    """Whether every mode is proved to meet a threshold of which it leaves nothing."""
    return all(mode.feasible and bool(np.isinf(mode.multipliers[:, constraint]).any()) for mode in modes)
