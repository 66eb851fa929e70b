"""The learning theorems: constants as printed and as corrected, Slater constants, the concentration lemma, one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.start import feasible_start
from cmpg.games.joint.game import JointGame
from cmpg.learning.ascent import learn
from cmpg.learning.bounds import Size, ascent_constants, paper_constants, rigorous_constants
from cmpg.learning.confidence import bernstein_interval
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import judge
from cmpg.learning.samples import Known
from cmpg.learning.simulator import GameSimulator, InducedProblem
from cmpg.learning.slater import cmdp_slack, slater_constant
from cmpg.paper.claims import Claim, Picture, Section, added, agreed, refuted, share, written
from cmpg.paper.grid_runs import figure_policy
from cmpg.paper.runs import Setting
from cmpg.scenarios.paper import congestion_game, counter_example, grid_world, grid_world_local
from cmpg.scenarios.spectrum_sharing import spectrum

DELTA = 0.1
EPSILON = 0.1


@dataclass(frozen=True)
class SampleCount:
    """Samples of each (h, s, a) for one agent's best response."""

    name: str
    printed: float
    corrected: float
    adaptive: float  # what the adaptive mode drew; nan where it was not run
    programs: float  # dynamic programs of the printed primal-dual loop


def study_learning(setting: Setting) -> Section:
    """Compute the constants, and learn one equilibrium."""
    what = "learning"
    setting.tick(what, 0, 4)
    counts = _sample_counts(setting)
    setting.tick(what, 1, 4)
    constants = _constant_claims(counts)
    setting.tick(what, 2, 4)
    lemmas = [*_lemma_claims(setting), _regret_claim()]
    setting.tick(what, 3, 4)
    claims = (*constants, *_multiplier_claims(), *_slater_claims(), *lemmas, *_run_claims(setting))
    setting.tick(what, 4, 4)
    caption = "Samples that one best response takes, per step, state and action: N as printed, corrected, and drawn."
    return Section(
        title="Learning with an unknown model",
        note=f"Constants at ε = {EPSILON:g} and δ = {DELTA:g}, unless said otherwise.",
        claims=claims,
        pictures=(Picture("samples", caption, partial(_draw, counts)),),
    )


def _draw(counts: Sequence[SampleCount]) -> object:
    from cmpg.paper.figures import draw_samples

    rows = {
        "as printed": [each.printed for each in counts],
        "corrected": [each.corrected for each in counts],
        "adaptive": [each.adaptive for each in counts],
    }
    return draw_samples(rows, [each.name for each in counts])


def _sample_counts(setting: Setting) -> tuple[SampleCount, ...]:
    congestion, grid = setting.streams(2)
    return (
        _count("congestion agent", _size(2, 4, 2), slater=0.25, adaptive=_drawn(_congestion_agent(), congestion)),
        _count("S=5, A=3, H=4, ε=0.5", _size(5, 3, 4), slater=0.5, epsilon=0.5),
        _count("S=5, A=3, H=4", _size(5, 3, 4), slater=0.5),
        _count("grid world, own cell", _size(16, 4, 6, successors=2), slater=0.1, adaptive=_drawn(_grid_agent(), grid)),
    )


def _size(states: int, actions: int, horizon: int, *, successors: int | None = None) -> Size:
    return Size(states, actions, horizon, np.ones(horizon), np.ones((1, horizon)), successors or states)


def _count(name: str, size: Size, *, slater: float, epsilon: float = EPSILON, adaptive: float = np.nan) -> SampleCount:
    printed = paper_constants(size, slater=slater, epsilon=epsilon, delta=DELTA)
    corrected = rigorous_constants(size, slater=slater, epsilon=epsilon, delta=DELTA)
    return SampleCount(name, printed.samples_per_entry, corrected.samples_per_entry, adaptive, printed.iterations)


def _congestion_agent() -> CMDP:
    """One agent among uniform others, its reward scaled to [0, 1], its threshold set to leave a slack of 0.25."""
    game = congestion_game()
    cmdp = game.at(game.uniform_policy()).induced_cmdp(0)
    scaled = replace(cmdp, reward=(cmdp.reward - cmdp.reward.min()) / np.ptp(cmdp.reward))
    return replace(scaled, thresholds=scaled.thresholds + 0.25 - cmdp_slack(scaled))


def _grid_agent() -> CMDP:
    """One agent on its own cell, its reward scaled to [0, 1], the other at random."""
    game = grid_world_local()
    cmdp = game.at(game.random_policy(rng=np.random.default_rng(0))).induced_cmdp(0)
    return replace(cmdp, reward=cmdp.reward / 10)


def _drawn(cmdp: CMDP, rng: np.random.Generator) -> float:
    """Return how many samples per entry the adaptive mode draws, with the box that its table in the notes used."""
    game = JointGame(
        transition=cmdp.transition,
        rewards=cmdp.reward[None],
        costs=cmdp.costs,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        horizon=cmdp.horizon,
    )
    problem = InducedProblem(GameSimulator(game, rng=rng), 0, game.uniform_policy())
    response = Adaptive(interval=bernstein_interval)(problem, epsilon=EPSILON, delta=DELTA)
    return float(response.samples_per_entry) if response.certified else np.nan


def _constant_claims(counts: Sequence[SampleCount]) -> list[Claim]:
    known = {"grid world": _known(grid_world()), "congestion game": _known(congestion_game())}
    printed, corrected = (
        {name: ascent_constants(each, epsilon=EPSILON, delta=DELTA, printed=flag) for name, each in known.items()}
        for flag in (True, False)
    )
    programs = [each.programs for each in counts]
    return [
        refuted(
            "theorem-2-constants",
            "Theorem 2: T = 4nH/ε iterations, M episodes for one value",
            paper="; ".join(
                f"{name}: T = {each.max_iterations:,}, M = {each.episodes:.2g}" for name, each in printed.items()
            ),
            ours="; ".join(
                f"{name}: T = {each.max_iterations:,}, M = {each.episodes:.2g}" for name, each in corrected.items()
            ),
            holds=all(printed[name].max_iterations == corrected[name].max_iterations for name in known),
            why="T = ⌈4 Σ G_i/ε⌉ and M = ⌈32 G²/ε² ln(8nT/δ)⌉ with the true ranges.",
            numbers=tuple(float(each.max_iterations) for each in corrected.values()),
        ),
        refuted(
            "samples-per-entry",
            "Algorithm 3: N samples of each step, state and action",
            paper="; ".join(f"{each.name}: {each.printed:.2g}" for each in counts),
            ours="; ".join(f"{each.name}: {each.corrected:.2g}{_adaptive(each)}" for each in counts),
            holds=all(each.printed <= each.corrected for each in counts),
            why="The printed N is more than a proof that holds needs; the adaptive mode stops as soon as it may.",
            numbers=tuple(number for each in counts for number in (each.printed, each.corrected, each.adaptive)),
        ),
        added(
            "algorithm-3-programs",
            "dynamic programs that Algorithm 3's primal-dual loop takes as printed",
            ours=f"{min(programs):.1e} to {max(programs):.1e}: printed here, never run",
            why="The empirical problem is solved exactly instead.",
            numbers=(min(programs), max(programs)),
        ),
    ]


def _adaptive(count: SampleCount) -> str:
    return "" if np.isnan(count.adaptive) else f" (adaptive: {count.adaptive:,.0f})"


def _known(game: JointGame) -> Known:
    return GameSimulator(game, rng=np.random.default_rng(0)).known


def _multiplier_claims() -> list[Claim]:
    """The CMDP of agent 2 while agent 1 goes along the bottom, on its own cell, with rewards within [0, 1]."""
    game = grid_world_local()
    cmdp = game.at(figure_policy(game)).induced_cmdp(1)
    scaled = replace(cmdp, reward=cmdp.reward / 10)
    slack, horizon = cmdp_slack(scaled), scaled.num_steps
    price, limit = float(Exact()(scaled).multipliers[0]), 2 * horizon / slack
    margin = paper_constants(_size(16, 4, 6), slater=slack, epsilon=EPSILON, delta=DELTA).tightening
    outer, inner = (
        float(Exact()(replace(scaled, thresholds=scaled.thresholds + sign * margin)).costs[0]) for sign in (1, -1)
    )
    return [
        agreed(
            "multiplier-bound",
            "the best multiplier of a CMDP is at most 2H/ζ",
            paper=f"{limit:.4g} for agent 2 of the grid world",
            ours=written(price),
            holds=price <= limit,
            numbers=(price, limit),
        ),
        refuted(
            "tightening-sign",
            "the proof of Algorithm 3's lemma takes α′ = α + Δ",
            paper="α + Δ",
            ours=f"a best response to α + Δ spends {written(outer, digits=8)} of 0.1, one to α − Δ "
            f"{written(inner, digits=8)}",
            holds=outer <= 0.1,
            why="A sign: the algorithm and the rest of the proof have α′ = α − Δ.",
            numbers=(outer, inner),
        ),
    ]


def _slater_claims() -> list[Claim]:
    games = {"congestion game": congestion_game(), "grid world": grid_world(), "counter-example": counter_example()}
    found = {name: slater_constant(game).value for name, game in games.items()}
    return [
        refuted(
            "slater",
            "Definition 1: the games are strictly feasible, ζ > 0",
            paper="ζ > 0",
            ours="; ".join(f"{name}: ζ = {written(value)}" for name, value in found.items()),
            holds=all(value > 0 for value in found.values()),
            why="The minimum over all others' policies is negative in the paper's own congestion game: there the "
            "learning theorems are void. The slack of the CMDP at hand is what they need.",
            numbers=tuple(found.values()),
        )
    ]


def _lemma_claims(setting: Setting) -> list[Claim]:
    draws, horizon = setting.effort.lemma_draws, 2
    lost, kept = {}, 0
    for states, rng in zip((2000, 5000), setting.streams(2), strict=True):
        printed = np.log(2 * states**2 * 2 * horizon / DELTA) * horizon**4 / EPSILON**2
        lost[states] = int((_worst_errors(states, int(np.ceil(printed)), draws=draws, rng=rng) > EPSILON).sum())
        enough = 2 * (states * np.log(2) + np.log(states * 2 / DELTA)) / (2 * EPSILON) ** 2
        kept += int((_worst_errors(states, int(np.ceil(enough)), draws=draws, rng=rng) > EPSILON).sum())
    return [
        refuted(
            "concentration-lemma",
            f"N = ln(2S²AH/δ)·H⁴/ε² samples make every value right to ε = {EPSILON:g}, with probability {1 - DELTA:g}",
            paper=f"fails in at most {DELTA:.0%}".replace("%", " %"),
            ours="; ".join(f"S = {states}: fails in {share(number, draws)}" for states, number in lost.items())
            + f"; with the corrected N: {kept} of {2 * draws}",
            holds=all(number <= DELTA * draws for number in lost.values()),
            why="The proof drops a factor S: rows close in every entry need not be close in the sum.",
            numbers=(*(number / draws for number in lost.values()), kept / (2 * draws)),
        )
    ]


def _worst_errors(states: int, count: int, *, draws: int, rng: np.random.Generator) -> np.ndarray:
    """One uniform row, then a reward that a policy may collect or not in each state.

    Over all policies the largest error of a value is the total variation distance between the row and its estimate.
    """
    sampled = rng.multinomial(count, np.full(states, 1 / states), size=draws)
    return np.asarray(0.5 * np.abs(sampled / count - 1 / states).sum(axis=1))


def _regret_claim() -> Claim:
    """M = 16H²/ε² ln(2C/εδ) with T = 4C²/ε²: the union bound over T values gives 2T exp(−Mε²/8H²) = 2δ²."""
    delta, constant, horizon, epsilon = 0.9, 10.0, 2, 0.1
    rounds = 4 * constant**2 / epsilon**2
    episodes = 16 * horizon**2 / epsilon**2 * np.log(2 * constant / (epsilon * delta))
    failure = 2 * rounds * np.exp(-episodes * epsilon**2 / (8 * horizon**2))
    enough = 8 * horizon**2 / epsilon**2 * np.log(2 * rounds / delta)
    corrected = 2 * rounds * np.exp(-enough * epsilon**2 / (8 * horizon**2))
    return refuted(
        "regret-lemma",
        "regret to samples: M = 16H²/ε² ln(2C/εδ) episodes are enough for every δ in (0, 1)",
        paper=f"fails with at most δ, here {delta:g}",
        ours=f"its own bound is 2δ² = {written(failure, digits=4)}; M = 8H²/ε² ln(2T/δ) gives "
        f"{written(corrected, digits=4)}",
        holds=failure <= delta,
        why="Right only for δ ≤ ½.",
        numbers=(failure, corrected),
    )


def _run_claims(setting: Setting) -> list[Claim]:
    game, epsilon = spectrum(), 0.2
    start = feasible_start(game).policy
    assert start is not None
    simulator = GameSimulator(game, rng=setting.streams(1)[0])
    result = learn(simulator, epsilon=epsilon, delta=DELTA, start=start)
    truth = judge(game, result)
    return [
        agreed(
            "theorem-2-run",
            "CA-CMPG-E returns an ε-Nash policy with probability 1 − δ (Theorem 2)",
            paper="no experiment",
            ours=f"spectrum game, ε = {epsilon:g}, δ = {DELTA:g}: {result.status.name.lower()}, moves: {result.moves}, "
            f"{result.total_samples:,} samples; true gap {written(truth.gap, digits=3)}, cost "
            f"{written(truth.costs[0], digits=4)} of {written(game.thresholds[0])}",
            holds=result.certified and truth.right(epsilon),
            why="One seed; the true model judges what was learned.",
            numbers=(truth.gap, truth.costs[0], result.total_samples, truth.unsafe_policies),
        )
    ]
