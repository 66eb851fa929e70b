"""The theory's constants: as printed in the paper, and as corrected, for any ranges of rewards and costs.

Write G_i = Σ_h (max r_{i,h} − min r_{i,h}) for agent i's range, R and C for the largest span of reward and cost in one
step. What is printed assumes [0, 1]; for other ranges it is stated for the problem divided by R and C.

Algorithm 1    T = 2nH/ε                                     corrected: T = ⌈2 Σ G_i/ε⌉
Algorithm 2    T = 4nH/ε, M = 32H²/ε² · ln(32n²H/εδ),        corrected: T = ⌈4 Σ G_i/ε⌉, M = ⌈32 G²/ε² · ln(8nT/δ)⌉,
               δ′ = εδ/8n²H                                             δ′ = δ/2nT
Algorithm 3    Δ = εζ/16H, ε_opt = Δ/5, α′ = α − Δ, U = 8H/ζ, N = 400 H⁶ ln(2S²AH/δ)/(ε²ζ²),
               T = U²H²/ε_opt² · (1 + 1/(U − λ*)²), η = U/(√T·H)
Algorithm 4    K = SH³√A/(α − α_S), T = 4K²/ε², M = 16H²/ε² · ln(2K/εδ), T_0 = S²AH⁴/(α − α_S)²; only orders, because
               the regret bound hides its constant.          corrected: M = 8G²/ε² · ln(12T/δ)

Algorithm 3, corrected (its concentration lemma drops a factor S). If every empirical row is within b of the true one in
L1, every value is within b·D/2, D = Σ_{h<H} Σ_{h'>h} span_{h'}: D_r for the reward, D_c for the worst cost. Solve the
empirical CMDP exactly with α′ = α − bD_c/2. The result is feasible, and its gap is at most b·D_r + b·D_c·G/(ζ − b·D_c),
because the multipliers of the empirical CMDP add up to at most G/(ζ − b·D_c). So b is the root of "gap = ε", and
N = 2 (ln(2^m − 2) + ln(SA(H − 1)/δ))/b², m the number of possible next states. For spans R and C at every step this is
e = bD_c/2 = (B − √(B² − 4ρεζ))/4ρ, ρ = R/C, B = ε + ρζ + HR.

One model for all (the paper's conclusion asks for it). With N samples of every (h, s, joint action), the rows that an
agent faces are averages of joint rows, so that b bounds their errors for all policies together. The empirical game with
α′ = α − bD_c/2 need be no potential game. But Algorithm 1 with ε′ = ε/4 ends in it after fewer than T = ⌈4 Σ G_i/ε′⌉
moves if b·D_r ≤ ε′/4 (Theorem 3 of docs/learning-theory.md), and then no agent gains more than ε′ plus the gap above.
So b is the lesser of the root of "gap = ε − ε′" and ε′/4D_r. There are S·ΠA·(H − 1) rows, or S·ΠA if steps are alike;
once, while Algorithm 2 takes S·ΣA·(H − 1) rows, each at ε/4, T times.

Without constraints (the remark after Corollary 1 compares with Song, Mei and Bai 2022, Theorem 7). What they publish is
an order in S, Σ A_i and ε, without ζ, times a power of H, Φ_max and logarithms: a row without samples. Beside it is the
corrected bound of Algorithm 2 for the same game without its constraints: b = ε/4D_r, T = ⌈4 ΔΦ/ε⌉, ΔΦ the range of the
potential: Σ G_i unless more is known, G in games with one reward for all.

`bounds_table` puts all of them side by side for one game, one algorithm in one version per row; rows as printed are for
the game divided by R and C, all of their constants. `samples` and `programs` (dynamic programs) are what it can take in
all; a row is runnable if neither exceeds what is allowed, but for the primal-dual loop as printed, whose programs
`cmpg.paper.Algorithm3` runs at once. Rows that rest on the Slater constant are void where it is not positive, and
nothing follows where only a lower bound is known that is not. The adaptive row is judged by one iteration: all T
are hardly ever needed, and how many samples a question takes shows only as it is answered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import CMPGError, UnsupportedError
from cmpg.games.game import HasConstraints, binds_of
from cmpg.learning.confidence import check_accuracy, log_subsets
from cmpg.learning.samples import ProblemSpec


@dataclass(frozen=True, eq=False)
class Size:
    """What the constants of one agent's CMDP depend on."""

    num_states: int
    num_actions: int
    horizon: int
    reward_spans: FloatArray  # [H]
    cost_spans: FloatArray  # [k, H]
    successors: int  # how many next states one entry can have, at most

    @classmethod
    def of(cls, known: ProblemSpec, agent: int) -> Size:
        """Read the size of agent i's CMDP, whatever the others play."""
        horizon, states, actions = known.policy_shapes[agent]
        support = known.induced_support(agent)
        successors = states if support is None else int(support.sum(axis=-1).max())
        return cls(states, actions, horizon, known.reward_spans[agent], known.cost_spans, successors)

    @classmethod
    def of_all(cls, known: ProblemSpec, agent: int) -> Size:
        """Read the size of the model that all agents share, with the rewards of one of them."""
        successors = known.num_states if known.support is None else int(known.support.sum(axis=-1).max())
        actions = math.prod(known.num_actions)
        return cls(known.num_states, actions, known.horizon, known.reward_spans[agent], known.cost_spans, successors)

    @property
    def reward_scale(self) -> float:
        """R: the largest span of the reward in one step."""
        return float(self.reward_spans.max()) or 1.0

    @property
    def cost_scale(self) -> float:
        """C: the largest span of a cost in one step."""
        return float(self.cost_spans.max(initial=0.0)) or 1.0

    @property
    def entries(self) -> int:
        """S·A·(H − 1): the rows that matter."""
        return self.num_states * self.num_actions * (self.horizon - 1)


@dataclass(frozen=True)
class AscentConstants:
    """Algorithms 1 and 2: iterations, episodes for one value, confidence of one response, samples for all values."""

    max_iterations: int  # T
    episodes: int  # M; 0 where values are computed
    response_delta: float  # δ′
    value_samples: float


def known_model_constants(known: ProblemSpec, *, epsilon: float, printed: bool = False) -> AscentConstants:
    """Return the constants of Algorithm 1."""
    total = known.num_agents * known.horizon if printed else float(known.reward_ranges.sum())
    return AscentConstants(_ceil(2 * total / epsilon), 0, 0.0, 0.0)


def ascent_constants(
    known: ProblemSpec, *, epsilon: float, delta: float, printed: bool = False, potential_range: float | None = None
) -> AscentConstants:
    """Return the constants of Algorithm 2 (Theorem 2), as corrected for the true ranges unless `printed`.

    Parameters
    ----------
    known
        Sizes and ranges.
    epsilon, delta
        No agent shall gain more than ε by deviating, with probability at least 1 − δ.
    printed
        The paper's own, which take every reward to lie in [0, 1].
    potential_range
        A bound on max Φ − min Φ that takes the place of Σ G_i.
    """
    check_accuracy(epsilon, delta)
    agents, horizon = known.num_agents, known.horizon
    total = agents * horizon if printed else float(known.reward_ranges.sum())
    if potential_range is not None:
        total = potential_range
    largest = horizon if printed else float(known.reward_ranges.max())
    iterations = max(_ceil(4 * total / epsilon), 1)
    episodes = max(_ceil(32 * largest**2 / epsilon**2 * np.log(8 * agents * iterations / delta)), 1)
    batches = 2 * agents if printed else agents + 1  # one batch of the current policy serves all agents
    return AscentConstants(
        max_iterations=iterations,
        episodes=episodes,
        response_delta=delta / (2 * agents * iterations),
        value_samples=float(batches * iterations) * episodes * horizon,
    )


@dataclass(frozen=True)
class PaperConstants:
    """Algorithm 3 as printed, with its primal-dual loop."""

    samples_per_entry: int  # N
    tightening: float  # Δ = α − α′
    solver_tolerance: float  # ε_opt
    multiplier_bound: float  # U
    iterations: float  # T: dynamic programs
    step_size: float  # η
    samples: float  # N at every (h, s, a)


def paper_constants(size: Size, *, slater: float, epsilon: float, delta: float) -> PaperConstants:
    """Return the constants of the paper's lemma on Algorithm 3, for the problem divided by R and C."""
    check_accuracy(epsilon, delta)
    check_slater(slater)
    scale = size.reward_scale / size.cost_scale
    accuracy, slack, horizon = epsilon / size.reward_scale, slater / size.cost_scale, size.horizon
    tightening = accuracy * slack / (16 * horizon)
    bound = 8 * horizon / slack
    beyond = bound - 2 * horizon / slack  # U − λ*, with λ* ≤ 2H/ζ
    iterations = (bound * horizon / (tightening / 5)) ** 2 * (1 + 1 / beyond**2)
    count = np.log(2 * size.num_states**2 * size.num_actions * horizon / delta)
    per_entry = _ceil(400 * horizon**6 * count / (accuracy * slack) ** 2)
    return PaperConstants(
        samples_per_entry=per_entry,
        tightening=tightening * size.cost_scale,
        solver_tolerance=tightening / 5 * size.cost_scale,
        multiplier_bound=bound * scale,
        iterations=float(np.ceil(iterations)),
        step_size=bound / (np.sqrt(iterations) * horizon) * scale / size.cost_scale,
        samples=float(per_entry) * size.num_states * size.num_actions * horizon,
    )


@dataclass(frozen=True)
class RigorousConstants:
    """Algorithm 3 with the empirical CMDP solved exactly, and every step of the proof holding."""

    samples_per_entry: int  # N
    row_error: float  # b: how far, in L1, an empirical row may be from the true one
    tightening: float  # e = α − α′
    reward_error: float  # how far the value of any policy can be off
    samples: float


def rigorous_constants(
    size: Size, *, slater: float, epsilon: float, delta: float, max_row_error: float = 2.0
) -> RigorousConstants:
    """Return the corrected constants of Algorithm 3; several constraints share the worst one's error.

    Parameters
    ----------
    size
        Sizes and spans.
    slater
        A slack that the CMDP has: max_π min_j (α_j − V^{c_j}) or less.
    epsilon, delta
        The response shall be within ε of the best, with probability at least 1 − δ.
    max_row_error
        Rows must be within this of the true ones, whatever ε allows.
    """
    check_accuracy(epsilon, delta)
    check_slater(slater)
    reward_weight, cost_weight = error_weights(size)
    if size.entries == 0 or size.successors <= 1 or reward_weight + cost_weight == 0:
        return RigorousConstants(0, 0.0, 0.0, 0.0, 0.0)
    slack = slater if np.isfinite(slater) else 1.0
    linear = reward_weight * slack + cost_weight * (float(size.reward_spans.sum()) + epsilon)
    root = np.sqrt(max(linear**2 - 4 * reward_weight * cost_weight * epsilon * slack, 0.0))
    row_error = min(2 * epsilon * slack / (linear + root), max_row_error)
    log_term = log_subsets(size.successors) + np.log(size.entries / delta)
    per_entry = _ceil(2 * log_term / row_error**2)
    return RigorousConstants(
        samples_per_entry=per_entry,
        row_error=row_error,
        tightening=row_error * cost_weight / 2,
        reward_error=row_error * reward_weight / 2,
        samples=float(per_entry) * size.entries,
    )


def error_weights(size: Size) -> tuple[float, float]:
    """Return D_r and D_c: a kernel whose rows are off by b in L1 changes no value by more than b·D/2."""
    reward = float((size.reward_spans * np.arange(size.horizon)).sum())
    costs = (size.cost_spans * np.arange(size.horizon)).sum(axis=1)
    return reward, float(costs.max(initial=0.0))


@dataclass(frozen=True)
class SafeConstants:
    """Algorithm 4: only orders, because DOPE's regret bound hides its constant and its logarithms."""

    iterations: float  # T
    first_phase: float  # T_0
    episodes: int  # M
    samples: float


def safe_constants(size: Size, *, margin: float, epsilon: float, delta: float, printed: bool = False) -> SafeConstants:
    """Return the orders of Algorithm 4 for a strictly feasible policy that is `margin` below the threshold."""
    check_accuracy(epsilon, delta)
    check_slater(margin)
    horizon, accuracy, slack = size.horizon, epsilon / size.reward_scale, margin / size.cost_scale
    regret = size.num_states * horizon**3 * np.sqrt(size.num_actions) / slack
    iterations = float(np.ceil(4 * regret**2 / accuracy**2))
    first = float(np.ceil(size.num_states**2 * size.num_actions * horizon**4 / slack**2))
    if printed:
        episodes = _ceil(16 * horizon**2 / accuracy**2 * np.log(2 * regret / (accuracy * delta)))
    else:
        largest = float(size.reward_spans.sum())
        episodes = _ceil(8 * largest**2 / epsilon**2 * np.log(12 * iterations / delta))
    return SafeConstants(iterations, first, episodes, (iterations * (1 + episodes) + first) * horizon)


def refuse_masks(game: HasConstraints) -> None:
    """Raise if constraints bind some agents only: the paper's theory is of constraints that bind all agents."""
    if not binds_of(game).all():
        advice = "Leave the mask out; Adaptive, SafeExploration and learn_shared learn it as it is."
        raise UnsupportedError(
            type(game).__name__, "has constraints that bind some agents only, and the theory's constants do not", advice
        )


def check_slater(slater: float) -> None:
    """Raise unless the slack is positive."""
    if not slater > 0:
        raise CMPGError(
            f"the slack is {slater:.4g}; a positive one is needed, because without it no number of samples is enough. "
            f"Raise the thresholds, or use Adaptive, which does not need it."
        )


def _ceil(number: float) -> int:
    return int(np.ceil(number))


PRINTED = "as printed"
CORRECTED = "corrected"
ADAPTIVE = "adaptive"
KNOWN_MODEL = "1: CA-CMPG, known model"
GENERATIVE = "2 with 3: generative model"
SAFE = "2 with 4: safe exploration (orders)"
SHARED = "one model for all, then 1"
UNCONSTRAINED = "2 without constraints"
PUBLISHED = "Song, Mei and Bai (2022), Theorem 7"
SHARED_TOLERANCE = 1 / 4
"""The share of ε to which the empirical game of all agents is solved: ε′ of Theorem 3."""


@dataclass(frozen=True)
class Allowance:
    """What may be spent: samples (free for a known game that plays the unknown one), and dynamic programs."""

    samples: float = 1e12
    programs: float = 1e7


@dataclass(frozen=True)
class BoundRow:
    """One algorithm in one version: its constants, and what it takes in all."""

    algorithm: str
    version: str
    constants: tuple[tuple[str, float], ...]  # (T, 240), (M, 1e6), …
    samples: float  # nan where the theory gives no number
    programs: float
    runnable: bool
    reason: str  # why it can be run, or not


@dataclass(frozen=True)
class BoundsTable:
    """Every bound for one game at one (ε, δ)."""

    epsilon: float
    delta: float
    slater: float
    rows: tuple[BoundRow, ...]


def bounds_table(
    known: ProblemSpec,
    *,
    slater: float,
    epsilon: float,
    delta: float,
    exact: bool = True,
    margin: float | None = None,
    potential_range: float | None = None,
    allowance: Allowance | None = None,
) -> BoundsTable:
    """Compute every bound of the theory.

    Parameters
    ----------
    known
        Sizes and ranges of the game.
    slater
        The Slater constant (`slater.slater_constant`), or the slack that one is willing to assume.
    epsilon, delta
        The accuracy required of the equilibrium, and the probability of failure.
    exact
        Whether `slater` is the Slater constant, or a lower bound on it.
    margin
        c of Assumption 2: the slack of the policy that every agent can obtain to explore from; the Slater constant
        unless given, and at most that.
    potential_range
        A bound on max Φ − min Φ for the rows without constraints; Σ G_i unless given, and at most that.
    allowance
        What may be spent.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, slater_constant
    >>> from cmpg.scenarios import spectrum
    >>> known = GameSimulator(spectrum(), rng=np.random.default_rng(0)).known
    >>> table = bounds_table(known, slater=slater_constant(spectrum()).value, epsilon=0.5, delta=0.1)
    >>> table.rows[0].algorithm, table.rows[0].runnable
    ('1: CA-CMPG, known model', True)
    """
    check_accuracy(epsilon, delta)
    refuse_masks(known)
    total = float(known.reward_ranges.sum())
    if potential_range is not None and not 0 <= potential_range <= total:
        raise CMPGError(f"potential_range is {potential_range:.4g}; it must be between 0 and Σ G_i, {total:.4g}.")
    if margin is not None and not 0 < margin <= slater:
        raise CMPGError(f"margin is {margin:.4g}; it must be positive, and at most the Slater constant, {slater:.4g}.")
    allowed = allowance or Allowance()
    scale = float(known.reward_spans.max()) or 1.0
    rows = []
    for printed in (True, False):
        rows.append(_known_model(known, epsilon / scale if printed else epsilon, printed=printed, allowed=allowed))
    for printed in (True, False):
        accuracy = epsilon / scale if printed else epsilon
        constants = ascent_constants(known, epsilon=accuracy, delta=delta, printed=printed)
        if slater > 0:
            sizes = [Size.of(known, agent) for agent in range(known.num_agents)]
            if printed:  # one scale for all agents
                sizes = [replace(size, reward_spans=np.full(known.horizon, scale)) for size in sizes]
            required = {"epsilon": epsilon / 4, "delta": constants.response_delta}
            rows.append(_generative(sizes, constants, required | {"slater": slater}, printed=printed, allowed=allowed))
            rows.append(
                _safe(sizes, constants, required | {"margin": margin or slater}, printed=printed, allowed=allowed)
            )
        else:
            shown = _ascent_constants(constants)
            rows += [_void(name, shown, printed=printed, slater=slater, exact=exact) for name in (GENERATIVE, SAFE)]
    rows.append(_shared(known, slater=slater, exact=exact, epsilon=epsilon, delta=delta, allowed=allowed))
    rows.append(_adaptive(known, ascent_constants(known, epsilon=epsilon, delta=delta), allowed=allowed))
    spread = total if potential_range is None else potential_range
    rows += _unconstrained(known, spread, epsilon=epsilon, delta=delta, allowed=allowed)
    return BoundsTable(epsilon, delta, slater, tuple(rows))


def _known_model(known: ProblemSpec, epsilon: float, *, printed: bool, allowed: Allowance) -> BoundRow:
    constants = known_model_constants(known, epsilon=epsilon, printed=printed)
    programs = float(constants.max_iterations) * known.num_agents
    shown = (("T", constants.max_iterations),)
    return BoundRow(KNOWN_MODEL, _version(printed), shown, 0.0, programs, *_judged(0.0, programs, allowed))


def _generative(
    sizes: Sequence[Size], ascent: AscentConstants, required: dict[str, float], *, printed: bool, allowed: Allowance
) -> BoundRow:
    samples, programs, shown = ascent.value_samples, 0.0, _ascent_constants(ascent)
    if printed:
        papers = [paper_constants(size, **required) for size in sizes]
        samples += ascent.max_iterations * sum(each.samples for each in papers)
        programs = ascent.max_iterations * sum(each.iterations for each in papers)
        largest = max(papers, key=lambda each: each.samples_per_entry)
        shown += (("N", largest.samples_per_entry), ("T of 3", largest.iterations))
        shown += (("U", largest.multiplier_bound), ("η", largest.step_size), ("α − α′", largest.tightening))
    else:
        rigorous = [rigorous_constants(size, **required) for size in sizes]
        samples += ascent.max_iterations * sum(each.samples for each in rigorous)
        programs = float(ascent.max_iterations * len(sizes))
        most = max(rigorous, key=lambda each: each.samples_per_entry)
        shown += (("N", most.samples_per_entry), ("α − α′", most.tightening))
    judged = _judged(samples, 0.0 if printed else programs, allowed)
    return BoundRow(GENERATIVE, _version(printed), shown, samples, programs, *judged)


def _shared(
    known: ProblemSpec, *, slater: float, exact: bool, epsilon: float, delta: float, allowed: Allowance
) -> BoundRow:
    sizes = [Size.of_all(known, agent) for agent in range(known.num_agents)]
    # Where one model stops paying: S·ΠA_i entries once, against S·ΣA_i in every iteration of Algorithm 2.
    steps = (known.horizon - 1) if known.stationary and known.horizon > 1 else 1
    once = sizes[0].entries / steps
    entries = (
        ("entries", once),
        ("entries of 2 in each iteration", sum(Size.of(known, i).entries for i in range(known.num_agents))),
    )
    if not slater > 0:
        return _void(SHARED, entries, printed=False, slater=slater, exact=exact)
    tolerance = SHARED_TOLERANCE * epsilon  # ε′
    # b·D_r ≤ ε′/4 for every agent: then a move in the model raises the true potential by more than ε′/4.
    reward_weight = max(error_weights(size)[0] for size in sizes)
    row_error = min(tolerance / (4 * reward_weight), 2.0) if reward_weight > 0 else 2.0
    settings = {"slater": slater, "epsilon": epsilon - tolerance, "delta": delta, "max_row_error": row_error}
    each = [rigorous_constants(size, **settings) for size in sizes]
    most = max(each, key=lambda one: one.samples_per_entry)
    samples = most.samples / steps
    moves = max(_ceil(4 * float(known.reward_ranges.sum()) / tolerance), 1)
    programs = float(moves) * known.num_agents
    shown = (("T", moves), ("ε′", tolerance), ("N", most.samples_per_entry), ("α − α′", most.tightening), *entries)
    return BoundRow(SHARED, CORRECTED, shown, samples, programs, *_judged(samples, programs, allowed))


def _safe(
    sizes: Sequence[Size], ascent: AscentConstants, required: dict[str, float], *, printed: bool, allowed: Allowance
) -> BoundRow:
    shown = _ascent_constants(ascent)
    each = [safe_constants(size, **required, printed=printed) for size in sizes]
    samples = ascent.value_samples + ascent.max_iterations * sum(one.samples for one in each)
    programs = ascent.max_iterations * sum(one.iterations for one in each)
    largest = max(each, key=lambda one: one.iterations)
    shown += (("T of 4", largest.iterations), ("M of 4", largest.episodes), ("T_0", largest.first_phase))
    shown += (("c", required["margin"]),)
    return BoundRow(SAFE, _version(printed), shown, samples, programs, *_judged(samples, programs, allowed))


def _unconstrained(
    known: ProblemSpec, potential_range: float, *, epsilon: float, delta: float, allowed: Allowance
) -> list[BoundRow]:
    """Return the bounds for the game without its constraints: what is published, and what Algorithm 2 would take."""
    scale = float(known.reward_spans.max()) or 1.0
    order = known.num_states * sum(known.num_actions) / (epsilon / scale) ** 3
    reason = "an order of episodes: powers of H, the factor Φ_max and logarithms are not in it; no slack is needed"
    published = BoundRow(UNCONSTRAINED, PUBLISHED, (("S·ΣA/ε³", order),), math.nan, math.nan, False, reason)
    ascent = ascent_constants(known, epsilon=epsilon, delta=delta, potential_range=potential_range)
    free = np.zeros((0, known.horizon))
    sizes = [replace(Size.of(known, agent), cost_spans=free) for agent in range(known.num_agents)]
    settings = {"slater": math.inf, "epsilon": epsilon / 4, "delta": ascent.response_delta}
    each = [rigorous_constants(size, **settings) for size in sizes]
    samples = ascent.value_samples + ascent.max_iterations * sum(one.samples for one in each)
    programs = float(ascent.max_iterations * known.num_agents)
    shown = (*_ascent_constants(ascent), ("N", max(one.samples_per_entry for one in each)), ("ΔΦ", potential_range))
    judged = _judged(samples, programs, allowed)
    return [published, BoundRow(UNCONSTRAINED, CORRECTED, shown, samples, programs, *judged)]


def _adaptive(known: ProblemSpec, ascent: AscentConstants, *, allowed: Allowance) -> BoundRow:
    programs = float(ascent.max_iterations * known.num_agents)
    runnable, reason = _judged(0.0, programs / ascent.max_iterations, allowed)
    if runnable:
        reason = "runnable: no Slater constant is needed; how many samples it takes shows only as it learns"
    return BoundRow(GENERATIVE, ADAPTIVE, (("T", ascent.max_iterations),), math.nan, programs, runnable, reason)


def _ascent_constants(ascent: AscentConstants) -> tuple[tuple[str, float], ...]:
    return (("T", ascent.max_iterations), ("M", ascent.episodes), ("δ′", ascent.response_delta))


def _version(printed: bool) -> str:
    return PRINTED if printed else CORRECTED


def _void(name: str, shown: tuple[tuple[str, float], ...], *, printed: bool, slater: float, exact: bool) -> BoundRow:
    why = f"a lower bound of the Slater constant is {slater:.4g}; nothing follows"
    if exact:
        why = f"guarantee void because the Slater constant, {slater:.4g}, is not positive"
    endless = float("inf")
    return BoundRow(name, _version(printed), shown, endless, endless, runnable=False, reason=why)


def _judged(samples: float, programs: float, allowed: Allowance) -> tuple[bool, str]:
    """Return whether that much may be spent, and the reason."""
    if samples > allowed.samples:
        return False, (f"not runnable: {samples:.2g} samples, {allowed.samples:.2g} are allowed")
    if programs > allowed.programs:
        return False, (f"not runnable: {programs:.2g} dynamic programs, {allowed.programs:.2g} are allowed")
    return True, "runnable"
