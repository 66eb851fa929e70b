"""All bounds of the theory for one game, side by side, with what could be run.

Each row is one algorithm in one version. `samples` and `programs` (dynamic programs) are what it can take in all; a row
is runnable if neither exceeds what is allowed. Rows that rest on the Slater constant are void where it is not positive.
The adaptive row is judged by one iteration: all T are hardly ever needed, and how many samples a response takes shows
only as it is learned.
"""

from __future__ import annotations

from dataclasses import dataclass

from cmpg.learning.bounds import (
    AscentConstants,
    Size,
    ascent_constants,
    known_model_constants,
    paper_constants,
    rigorous_constants,
    safe_constants,
)
from cmpg.learning.confidence import check_accuracy
from cmpg.learning.samples import Known

PRINTED = "as printed"
CORRECTED = "corrected"
ADAPTIVE = "adaptive"
KNOWN_MODEL = "1: CA-CMPG, known model"
GENERATIVE = "2 with 3: generative model"
SAFE = "2 with 4: safe exploration (orders)"


@dataclass(frozen=True)
class Allowance:
    """What may be spent: samples (free for a known game that plays the unknown one), and dynamic programs."""

    samples: float = 1e12
    programs: float = 1e7


@dataclass(frozen=True)
class Verdict:
    """Whether something can be run, and why not."""

    runnable: bool
    reason: str


@dataclass(frozen=True)
class BoundRow:
    """One algorithm in one version: its constants, and what it takes in all."""

    algorithm: str
    version: str
    constants: tuple[tuple[str, float], ...]  # (T, 240), (M, 1e6), …
    samples: float
    programs: float
    verdict: Verdict


@dataclass(frozen=True)
class BoundsTable:
    """Every bound for one game at one (ε, δ)."""

    epsilon: float
    delta: float
    slater: float
    rows: tuple[BoundRow, ...]


def bounds_table(
    known: Known, *, slater: float, epsilon: float, delta: float, allowance: Allowance | None = None
) -> BoundsTable:
    """Compute every bound of the theory.

    Parameters
    ----------
    known
        Sizes and ranges of the game.
    slater
        The Slater constant (`slater.slater_constant`), or the slack that one is willing to assume.
    epsilon, delta
        The accuracy asked of the equilibrium, and the probability of failure.
    allowance
        What may be spent.
    """
    check_accuracy(epsilon, delta)
    allowed = allowance or Allowance()
    rows = [_known_model(known, epsilon, printed=printed, allowed=allowed) for printed in (True, False)]
    for printed in (True, False):
        constants = ascent_constants(known, epsilon=epsilon, delta=delta, printed=printed)
        for build in (_generative, _safe):
            rows.append(build(known, constants, slater=slater, epsilon=epsilon, printed=printed, allowed=allowed))
    rows.append(_adaptive(known, ascent_constants(known, epsilon=epsilon, delta=delta), allowed=allowed))
    return BoundsTable(epsilon, delta, slater, tuple(rows))


def _known_model(known: Known, epsilon: float, *, printed: bool, allowed: Allowance) -> BoundRow:
    constants = known_model_constants(known, epsilon=epsilon, printed=printed)
    programs = float(constants.max_iterations) * known.num_agents
    return BoundRow(
        algorithm=KNOWN_MODEL,
        version=_version(printed),
        constants=(("T", constants.max_iterations),),
        samples=0.0,
        programs=programs,
        verdict=_verdict(0.0, programs, allowed),
    )


def _generative(
    known: Known, ascent: AscentConstants, *, slater: float, epsilon: float, printed: bool, allowed: Allowance
) -> BoundRow:
    asked = {"slater": slater, "epsilon": epsilon / 4, "delta": ascent.response_delta}
    samples, programs, shown = ascent.value_samples, 0.0, _ascent_constants(ascent)
    if not slater > 0:
        return _void(GENERATIVE, _version(printed), shown=shown, slater=slater)
    sizes = [Size.of(known, agent) for agent in range(known.num_agents)]
    if printed:
        papers = [paper_constants(size, **asked) for size in sizes]
        samples += ascent.max_iterations * sum(each.samples for each in papers)
        programs = ascent.max_iterations * sum(each.iterations for each in papers)
        largest = max(papers, key=lambda each: each.samples_per_entry)
        shown += (("N", largest.samples_per_entry), ("T of 3", largest.iterations))
        shown += (("U", largest.multiplier_bound), ("η", largest.step_size), ("α − α′", largest.tightening))
    else:
        rigorous = [rigorous_constants(size, **asked) for size in sizes]
        samples += ascent.max_iterations * sum(each.samples for each in rigorous)
        programs = float(ascent.max_iterations * len(sizes))
        most = max(rigorous, key=lambda each: each.samples_per_entry)
        shown += (("N", most.samples_per_entry), ("α − α′", most.tightening))
    verdict = _verdict(samples, programs, allowed)
    return BoundRow(GENERATIVE, _version(printed), shown, samples, programs, verdict)


def _safe(
    known: Known, ascent: AscentConstants, *, slater: float, epsilon: float, printed: bool, allowed: Allowance
) -> BoundRow:
    shown = _ascent_constants(ascent)
    if not slater > 0:
        return _void(SAFE, _version(printed), shown=shown, slater=slater)
    asked = {"margin": slater, "epsilon": epsilon / 4, "delta": ascent.response_delta}
    sizes = [Size.of(known, agent) for agent in range(known.num_agents)]
    each = [safe_constants(size, **asked, printed=printed) for size in sizes]
    samples = ascent.value_samples + ascent.max_iterations * sum(one.samples for one in each)
    programs = ascent.max_iterations * sum(one.iterations for one in each)
    largest = max(each, key=lambda one: one.iterations)
    shown += (("T of 4", largest.iterations), ("M of 4", largest.episodes), ("T_0", largest.first_phase))
    return BoundRow(SAFE, _version(printed), shown, samples, programs, _verdict(samples, programs, allowed))


def _adaptive(known: Known, ascent: AscentConstants, *, allowed: Allowance) -> BoundRow:
    once = _verdict(ascent.value_samples / ascent.max_iterations, 0.0, allowed)
    reason = "runnable: no Slater constant is needed; one iteration, without its responses, is counted"
    return BoundRow(
        algorithm=GENERATIVE,
        version=ADAPTIVE,
        constants=_ascent_constants(ascent),
        samples=ascent.value_samples,
        programs=float(ascent.max_iterations * known.num_agents),
        verdict=Verdict(True, reason) if once.runnable else once,
    )


def _ascent_constants(ascent: AscentConstants) -> tuple[tuple[str, float], ...]:
    return (("T", ascent.max_iterations), ("M", ascent.episodes), ("δ′", ascent.response_delta))


def _version(printed: bool) -> str:
    return PRINTED if printed else CORRECTED


def _void(name: str, version: str, *, shown: tuple[tuple[str, float], ...], slater: float) -> BoundRow:
    why = f"guarantee void because the Slater constant, {slater:.4g}, is not positive"
    return BoundRow(name, version, shown, float("inf"), float("inf"), Verdict(False, why))


def _verdict(samples: float, programs: float, allowed: Allowance) -> Verdict:
    if samples > allowed.samples:
        return Verdict(False, f"not runnable: {samples:.2g} samples, {allowed.samples:.2g} are allowed")
    if programs > allowed.programs:
        return Verdict(False, f"not runnable: {programs:.2g} dynamic programs, {allowed.programs:.2g} are allowed")
    return Verdict(True, "runnable")
