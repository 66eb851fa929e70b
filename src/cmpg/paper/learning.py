"""Section 6, learning: constants as printed and as corrected, Slater constants, the lemmas of Appendices D and E."""

from __future__ import annotations

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
from cmpg.learning.simulator import GameSimulator, InducedProblem
from cmpg.learning.slater import cmdp_slack, slater_constant
from cmpg.paper.claims import (
    Finding,
    Picture,
    Section,
    above,
    added,
    agrees,
    between,
    differs,
    near,
    rows_of,
    share,
    written,
)
from cmpg.paper.evidence import Evidence
from cmpg.paper.figures import draw_bars
from cmpg.paper.grid_runs import figure_policy
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


def _sample_counts(evidence: Evidence) -> tuple[SampleCount, ...]:
    congestion, grid = evidence.streams("learning: samples", 2)
    counts = (
        _count("congestion agent", _size(2, 4, 2), slater=0.25, adaptive=_drawn(_congestion_agent(), congestion)),
        _count("S=5, A=3, H=4, ε=0.5", _size(5, 3, 4), slater=0.5, epsilon=0.5),
        _count("S=5, A=3, H=4", _size(5, 3, 4), slater=0.5),
        _count("grid world, own cell", _size(16, 4, 6, successors=2), slater=0.1, adaptive=_drawn(_grid_agent(), grid)),
    )
    evidence.tick("learning: samples", 1, 1)
    return counts


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


@differs(
    "Theorem 2",
    paper="T = 4nH/ε, M = 32H²/ε² ln(32n²H/εδ)",
    expect=near(480, 640, 9600, 94080, tolerance=0),
    why="T = ⌈4 Σ G_i/ε⌉ and M = ⌈32 G²/ε² ln(8nT/δ)⌉ with the true ranges.",
)
def theorem_2_constants(_: Evidence) -> Finding:
    """Theorem 2's T iterations, and M episodes for one value."""
    texts, iterations = [], []
    for printed in (True, False):
        for name, game in {"grid world": grid_world(), "congestion game": congestion_game()}.items():
            known = GameSimulator(game, rng=np.random.default_rng(0)).known
            found = ascent_constants(known, epsilon=EPSILON, delta=DELTA, printed=printed)
            iterations.append(found.max_iterations)
            words = "as printed" if printed else "corrected"
            texts.append(f"{name}, {words}: T = {found.max_iterations:,}, M = {found.episodes:.2g}")
    return Finding.of("; ".join(texts), *iterations)


def _rough(*values: float) -> tuple[tuple[float, float], ...]:
    """To the two digits that the notes give."""
    return tuple((0.97 * value, 1.03 * value) for value in values)


@differs(
    "Algorithm 3, Lemma 2",
    paper="N = 400 H⁶ ln(2S²AH/δ)/(ε²ζ²)",
    expect=_rough(2.7e8, 2.3e8, 5.7e9, 2.2e12)
    + _rough(8.9e4, 2.7e5, 5.8e6, 1.5e9)
    + between(256, 4096)
    + between(2048, 32768),
    why="The printed N is more than a proof that holds needs; the adaptive mode stops as soon as it may.",
)
def samples_per_entry(evidence: Evidence) -> Finding:
    """N samples of each step, state and action."""
    counts = evidence.of(_sample_counts)
    text = "; ".join(
        f"{each.name}: {each.corrected:.2g} (as printed {each.printed:.2g}{_adaptive(each)})" for each in counts
    )
    rows = [each.printed for each in counts] + [each.corrected for each in counts]
    return Finding.of(text, *rows, counts[0].adaptive, counts[3].adaptive)


def _adaptive(count: SampleCount) -> str:
    return "" if np.isnan(count.adaptive) else f", adaptive {count.adaptive:,.0f}"


@added(
    "Algorithm 3, Lemma 7",
    expect=above(1e9) + above(1e15),
    why="The empirical problem is solved exactly instead.",
)
def algorithm_3_programs(evidence: Evidence) -> Finding:
    """Dynamic programs that Algorithm 3's primal-dual loop takes as printed."""
    programs = [each.programs for each in evidence.of(_sample_counts)]
    text = f"{min(programs):.1e} to {max(programs):.1e}: printed here, never run"
    return Finding.of(text, min(programs), max(programs))


def _second_agent() -> CMDP:
    """The CMDP of agent 2 while agent 1 goes along the bottom, on its own cell, with rewards within [0, 1]."""
    game = grid_world_local()
    cmdp = game.at(figure_policy(game)).induced_cmdp(1)
    return replace(cmdp, reward=cmdp.reward / 10)


@agrees("Lemma 11", paper="2H/ζ = 120 for agent 2 of the grid world", expect=between(0, 120) + near(120))
def multiplier_bound(_: Evidence) -> Finding:
    """The best multiplier of a CMDP is at most 2H/ζ."""
    cmdp = _second_agent()
    multiplier, limit = float(Exact()(cmdp).multipliers[0]), 2 * cmdp.num_steps / cmdp_slack(cmdp)
    return Finding.of(written(multiplier), multiplier, limit)


@differs(
    "Appendix D, proof of Lemma 2",
    paper="α + Δ",
    expect=above(0.1 + 1e-9) + between(0, 0.1),
    why="A sign: the algorithm and the rest of the proof have α′ = α − Δ.",
)
def tightening_sign(_: Evidence) -> Finding:
    """The proof of Algorithm 3's lemma takes α′ = α + Δ."""
    cmdp = _second_agent()
    margin = paper_constants(_size(16, 4, 6), slater=cmdp_slack(cmdp), epsilon=EPSILON, delta=DELTA).tightening
    outer, inner = (
        float(Exact()(replace(cmdp, thresholds=cmdp.thresholds + sign * margin)).costs[0]) for sign in (1, -1)
    )
    text = f"a best response to α + Δ spends {written(outer, digits=8)} of 0.1, one to α − Δ {written(inner, digits=8)}"
    return Finding.of(text, outer, inner)


@differs(
    "Definition 1",
    paper="ζ > 0",
    expect=near(-1.0, 0.1, 0.5),
    why="The minimum over all others' policies is negative in the paper's own congestion game: there the learning "
    "theorems are void. The slack of the CMDP at hand is what they need.",
)
def slater(_: Evidence) -> Finding:
    """The games are strictly feasible, ζ > 0."""
    games = {"congestion game": congestion_game(), "grid world": grid_world(), "counter-example": counter_example()}
    found = {name: slater_constant(game).value for name, game in games.items()}
    return Finding.of("; ".join(f"{name}: ζ = {written(value)}" for name, value in found.items()), *found.values())


@differs(
    "Lemma 12",
    paper=f"fails in at most {DELTA:.0%}".replace("%", " %"),
    expect=above(0.3) + above(0.3) + near(0, tolerance=0),
    why="The proof drops a factor S: rows close in every entry need not be close in the sum.",
)
def concentration_lemma(evidence: Evidence) -> Finding:
    """N = ln(2S²AH/δ)·H⁴/ε² samples make every value right to ε = 0.1, with probability 0.9."""
    draws, horizon, lost, kept = evidence.effort.lemma_draws, 2, {}, 0
    for states, rng in zip((2000, 5000), evidence.streams("learning: concentration", 2), strict=True):
        printed = np.log(2 * states**2 * 2 * horizon / DELTA) * horizon**4 / EPSILON**2
        lost[states] = int((_worst_errors(states, int(np.ceil(printed)), draws=draws, rng=rng) > EPSILON).sum())
        enough = 2 * (states * np.log(2) + np.log(states * 2 / DELTA)) / (2 * EPSILON) ** 2
        kept += int((_worst_errors(states, int(np.ceil(enough)), draws=draws, rng=rng) > EPSILON).sum())
    text = "; ".join(f"S = {states}: fails in {share(number, draws)}" for states, number in lost.items())
    text += f"; with the corrected N: {kept} of {2 * draws}"
    return Finding.of(text, *(number / draws for number in lost.values()), kept)


def _worst_errors(states: int, count: int, *, draws: int, rng: np.random.Generator) -> np.ndarray:
    """One uniform row, then a reward that a policy may collect or not in each state.

    Over all policies the largest error of a value is the total variation distance between the row and its estimate.
    """
    sampled = rng.multinomial(count, np.full(states, 1 / states), size=draws)
    return np.asarray(0.5 * np.abs(sampled / count - 1 / states).sum(axis=1))


@differs("Lemma 16", paper="fails with at most δ, here 0.9", expect=near(1.62, 0.9), why="Right only for δ ≤ ½.")
def regret_lemma(_: Evidence) -> Finding:
    """Regret to samples: M = 16H²/ε² ln(2C/εδ) episodes are enough for every δ in (0, 1)."""
    # With T = 4C²/ε², the union bound over T values gives 2T exp(−Mε²/8H²) = 2δ².
    delta, constant, horizon, epsilon = 0.9, 10.0, 2, 0.1
    rounds = 4 * constant**2 / epsilon**2
    episodes = 16 * horizon**2 / epsilon**2 * np.log(2 * constant / (epsilon * delta))
    enough = 8 * horizon**2 / epsilon**2 * np.log(2 * rounds / delta)
    failure, corrected = (2 * rounds * np.exp(-each * epsilon**2 / (8 * horizon**2)) for each in (episodes, enough))
    text = f"its own bound is 2δ² = {failure:.4g}; M = 8H²/ε² ln(2T/δ) gives {corrected:.4g}"
    return Finding.of(text, failure, corrected)


@agrees(
    "Theorem 2",
    paper="no experiment",
    expect=near(1, 1) + between(0, 0.2) + between(0, 0.25) + near(0, tolerance=0),
    why="One seed; the true model judges what was learned.",
)
def theorem_2_run(evidence: Evidence) -> Finding:
    """CA-CMPG-E returns an ε-Nash policy with probability 1 − δ."""
    game, epsilon = spectrum(), 0.2
    start = feasible_start(game).policy
    assert start is not None
    simulator = GameSimulator(game, rng=evidence.rng("learning: one run"))
    result = learn(simulator, epsilon=epsilon, delta=DELTA, start=start)
    truth = judge(game, result)
    evidence.tick("learning: one run", 1, 1)
    text = (
        f"spectrum game, ε = {epsilon:g}, δ = {DELTA:g}: {result.status.name.lower()}, moves: {result.moves}, "
        f"{result.total_samples:,} samples; true gap {written(truth.gap, digits=3)}, cost "
        f"{written(truth.costs[0], digits=4)} of {written(game.thresholds[0])}"
    )
    right = result.certified, truth.right(epsilon)
    return Finding.of(text, *right, truth.gap, truth.costs[0], truth.unsafe_policies)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    counts = evidence.of(_sample_counts)
    rows = {
        "as printed": [each.printed for each in counts],
        "corrected": [each.corrected for each in counts],
        "adaptive": [each.adaptive for each in counts],
    }
    caption = "Samples that one best response takes, per step, state and action: N as printed, corrected, and drawn."
    draw = partial(draw_bars, rows, [each.name for each in counts], what="samples of each (h, s, a)", width=6.4)
    return (Picture("samples", caption, draw),)


SECTION = Section(
    title="Learning with an unknown model",
    note=f"Constants at ε = {EPSILON:g} and δ = {DELTA:g}, unless said otherwise.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
