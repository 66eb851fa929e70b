"""Section 6, learning: constants as printed and as corrected, Slater constants, and learned games."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.runs import uninterrupted
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.learning.bounds import (
    CORRECTED,
    GENERATIVE,
    PRINTED,
    SAFE,
    SHARED,
    Size,
    ascent_constants,
    bounds_table,
    paper_constants,
    rigorous_constants,
)
from cmpg.learning.confidence import bernstein_interval
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import Judgement, LearnResult, judge
from cmpg.learning.problem import InducedProblem
from cmpg.learning.safe import Pace, safe_learner
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.slater import cmdp_slack, slater_constant
from cmpg.learning.trials import ByResponses, BySharedModel, HiddenGame, Method
from cmpg.paper.claims import (
    Evidence,
    Finding,
    Picture,
    Section,
    above,
    added,
    agrees,
    between,
    differs,
    near,
    rough,
    rows_of,
    written,
)
from cmpg.paper.figures import draw_bars, draw_regret
from cmpg.paper.runs import one_waits
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game, counter_example, grid_world, grid_world_local
from cmpg.scenarios.spectrum_sharing import spectrum

DELTA = 0.1
EPSILON = 0.1
COVERED_EPSILON = 0.1
SAFE_GRID_EPSILON = 0.5


@dataclass(frozen=True)
class SampleCount:
    """Samples of each (h, s, a) for one agent's best response."""

    name: str
    printed: float
    corrected: float
    adaptive: float  # what the adaptive mode drew; nan where it was not run
    programs: float  # dynamic programs of the printed primal-dual loop


def sample_counts(evidence: Evidence) -> tuple[SampleCount, ...]:
    """Count the samples of four problems, as printed, corrected, and where that is quick as drawn."""
    congestion, grid = evidence.streams("learning: samples", 2)
    counts = (
        _count("congestion agent", unit_size(2, 4, 2), slater=0.25, adaptive=_drawn(_congestion_agent(), congestion)),
        _count("S=5, A=3, H=4, ε=0.5", unit_size(5, 3, 4), slater=0.5, epsilon=0.5),
        _count("S=5, A=3, H=4", unit_size(5, 3, 4), slater=0.5),
        _count(
            "grid world, own cell", unit_size(16, 4, 6, successors=2), slater=0.1, adaptive=_drawn(_grid_agent(), grid)
        ),
    )
    evidence.tick("learning: samples", 1, 1)
    return counts


def unit_size(states: int, actions: int, horizon: int, *, successors: int | None = None) -> Size:
    """Return the size of a CMDP whose rewards and costs lie in [0, 1]."""
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


def behind_a_door(cmdp: CMDP, rng: np.random.Generator, **options: Any) -> InducedProblem:
    """A CMDP as a game of one agent, whose transition can only be sampled; `GameSimulator` has the options."""
    game = JointGame(
        transition=cmdp.transition,
        rewards=cmdp.reward[None],
        costs=cmdp.costs,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        horizon=cmdp.horizon,
    )
    return InducedProblem(GameSimulator(game, rng=rng, **options), 0, game.uniform_policy())


def _drawn(cmdp: CMDP, rng: np.random.Generator) -> float:
    """Return how many samples per entry the adaptive mode draws, with the box that its table in the notes used."""
    response = Adaptive(interval=bernstein_interval)(behind_a_door(cmdp, rng), epsilon=EPSILON, delta=DELTA)
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


@differs(
    "Algorithm 3, Lemma 2",
    paper="N = 400 H⁶ ln(2S²AH/δ)/(ε²ζ²)",
    expect=rough(2.7e8, 2.3e8, 5.7e9, 2.2e12)
    + rough(8.9e4, 2.7e5, 5.8e6, 1.5e9)
    + between(256, 4096)
    + between(2048, 32768),
    why="The printed N is more than a proof that holds needs; the adaptive mode stops as soon as it may.",
)
def samples_per_entry(evidence: Evidence) -> Finding:
    """N samples of each step, state and action."""
    counts = evidence.of(sample_counts)
    text = "; ".join(
        f"{each.name}: {each.corrected:.2g} (as printed {each.printed:.2g}{_adaptive(each)})" for each in counts
    )
    rows = [each.printed for each in counts] + [each.corrected for each in counts]
    return Finding.of(text, *rows, counts[0].adaptive, counts[3].adaptive)


def _adaptive(count: SampleCount) -> str:
    return "" if np.isnan(count.adaptive) else f", adaptive {count.adaptive:,.0f}"


@differs(
    "Definition 1",
    paper="ζ > 0",
    expect=near(-1.0, 0.1, 0.5, -1.0),
    why="The minimum over all others' policies is negative in the paper's own congestion game: there the learning "
    "theorems are void. The slack of the CMDP at hand is what they need.",
)
def slater(_: Evidence) -> Finding:
    """The games are strictly feasible, ζ > 0."""
    games = {"congestion game": congestion_game(), "grid world": grid_world(), "counter-example": counter_example()}
    found = {name: slater_constant(game).value for name, game in games.items()}
    text = "; ".join(f"{name}: ζ = {written(value)}" for name, value in found.items())
    # More than two agents have a lower bound only; here the others attain it when all of them play D.
    crowd = games["congestion game"]
    everybody_plays_d = JointPolicy((np.broadcast_to(np.eye(4)[3], (2, 2, 4)),) * 8)
    attained = cmdp_slack(crowd.at(everybody_plays_d).induced_cmdp(0))
    return Finding.of(f"{text}; attained where all others play D: {written(attained)}", *found.values(), attained)


# Learned games.


@dataclass(frozen=True, eq=False)
class Learned:
    """One game, learned in one mode, and what the true model says about it."""

    name: str
    epsilon: float
    result: LearnResult
    truth: Judgement
    takes_turns: bool  # whether agents learned one after the other, instead of one model for all


def _learned(evidence: Evidence) -> tuple[Learned, ...]:
    """Learn the paper's games, and the spectrum game; what takes minutes only if that much effort is requested."""
    counter, crowd, grid = two_steps(), congestion_game(), grid_world_local()
    random = crowd.random_policy(rng=evidence.rng("learning: start"))
    waits = one_waits(grid, evidence.rng("learning: one waits"))
    rows: list[tuple[str, Game, str, float, JointPolicy | None]] = [
        ("spectrum", spectrum(), "generative", 0.5, None),
        ("counter-example over two steps", counter, "generative", 0.1, two_steps_start()),
        ("counter-example over two steps", counter, "safe", 0.2, two_steps_start()),
        ("counter-example over two steps", counter, "shared", 0.1, None),
        ("congestion game, random start", crowd, "generative", 5.0, random),
        ("congestion game", crowd, "shared", 5.0, None),
        ("grid world, own cell", grid, "shared", 0.5, None),
        ("grid world, own cell", grid, "safe", SAFE_GRID_EPSILON, waits),
    ]
    if evidence.effort.learn_large_games:
        rows += [
            ("congestion game, random start", crowd, "generative", 1.0, random),
            ("congestion game, random start", crowd, "safe", 20.0, random),
            ("congestion game", crowd, "shared", 1.0, None),
            ("grid world", grid_world(), "shared", 0.5, None),
            ("grid world, authors' start", grid_world(), "generative", 0.5, None),
        ]
    found = []
    for number, (name, game, mode, epsilon, start) in enumerate(rows, 1):
        rng = evidence.rng(f"learning: {name}, {mode}, {epsilon:g}")
        if name.endswith("authors' start"):
            start = one_waits(game, rng)
        result = _learn(game, rng, mode=mode, epsilon=epsilon, start=start)
        turns = mode != "shared" and not isinstance(game, LocalGame)
        found.append(Learned(f"{name}, {mode}", epsilon, result, judge(game, result), turns))
        evidence.tick("learning: games", number, len(rows))
    return tuple(found)


def _learn(
    game: Game, rng: np.random.Generator, *, mode: str, epsilon: float, start: JointPolicy | None
) -> LearnResult:
    """Learn once; an own-cell game by the kernels of its agents."""
    simulator = HiddenGame(game).simulator(rng)
    if mode == "safe" and start is None:
        start = feasible_start(game).policy
    method: Method
    if mode == "shared" or isinstance(game, LocalGame):
        pace = Pace(growth=0.25, most=10**9)
        explored = start if mode == "safe" else None
        method = BySharedModel(epsilon=epsilon, delta=DELTA, start=explored, pace=pace)
    else:
        known: Any = simulator.known
        learner = safe_learner(known, epsilon=epsilon) if mode == "safe" else Adaptive()
        method = ByResponses(epsilon=epsilon, delta=DELTA, start=start, learner=learner)
    return uninterrupted(method(simulator, lambda _: None))


@agrees(
    "Theorem 2",
    paper="no experiment",
    expect=near(1, 1) + near(0, tolerance=0) + above(1) * 2,
    why="One seed each; the true model judges what was learned, and every policy that was played. Where agents take "
    "turns, no start is within ε of a Nash policy. A shared model is solved from the start that a planner finds in it.",
)
def learned_games(evidence: Evidence) -> Finding:
    """CA-CMPG-E returns ε-Nash policies with probability 1 − δ, here 0.9, and safe exploration is safe."""
    found = evidence.of(_learned)
    certified = sum(each.result.certified for each in found) / len(found)
    right = sum(each.truth.right(each.epsilon) for each in found) / len(found)
    unsafe = sum(each.truth.unsafe_policies for each in found if each.name.endswith("safe"))
    samples = [each.result.total_samples for each in found]
    moves = [each.result.moves for each in found if each.takes_turns]
    closest = max(found, key=lambda each: each.truth.gap / each.epsilon)
    text = (
        f"{certified:.0%} of {len(found)} runs certified, {right:.0%} right, with {min(samples):,} to "
        f"{max(samples):.2g} samples and, where agents take turns, {min(moves)} to {max(moves)} moves; "
        f"the gap that is closest to its ε is {closest.truth.gap:.2g} of "
        f"{closest.epsilon:g} ({closest.name}); unsafe policies in safe mode: {unsafe}"
    )
    return Finding.of(text, certified, right, unsafe, min(samples), min(moves))


def _safe_regret(evidence: Evidence) -> FloatArray:
    """Definition 3's regret while the own-cell grid world was explored: after each batch, episodes and regret."""
    game = grid_world_local()
    result = next(each.result for each in evidence.of(_learned) if each.name == "grid world, own cell, safe")
    points, episodes, regret = [], 0, 0.0
    for each in result.played:
        assert each.agent is not None, "an agent explored"
        position = game.at(each.policy)
        best = Exact()(position.induced_cmdp(each.agent)).bound
        episodes, regret = episodes + each.episodes, regret + each.episodes * (best - position.value_of(each.agent))
        points.append((episodes, regret))
    return np.array(points)


@added(
    "Lemma 15, Definition 3",
    expect=between(0, 1) + between(0, 1) + near(0, tolerance=0) + between(0.1, 1),
    why="Each batch counts against the best response of the agent that explored, the others as they were. Curiosity is "
    "paid for: half of the batches look for what is not known, and not for what is best. Learning shows in the others.",
)
def safe_regret(evidence: Evidence) -> Finding:
    """The regret of safe exploration on the own-cell grid world, against DOPE's SH³√(AT)/(α − α_S)."""
    episodes, regret = evidence.of(_safe_regret).T
    order = 16 * 6**3 * np.sqrt(4 * episodes[-1]) / 0.1
    rates = np.diff(regret, prepend=0.0) / np.diff(episodes, prepend=0.0)  # an episode, batch by batch
    quarter = len(rates) // 4
    first, last = (float(np.mean(each <= SAFE_GRID_EPSILON)) for each in (rates[:quarter], rates[-quarter:]))
    text = (
        f"{regret[-1]:.3g} after {episodes[-1]:,.0f} episodes, {regret[-1] / episodes[-1]:.2g} an episode, where a "
        f"response is worth up to 60; the order is {order:.2g}. In the first quarter of the batches {first:.0%} play a "
        f"policy within ε = {SAFE_GRID_EPSILON:g} of the best response, in the last {last:.0%}"
    )
    return Finding.of(text, regret[-1] / order, regret[-1] / episodes[-1] / 60, first, last)


def two_steps(*, fill: bool = False) -> JointGame:
    """Return the counter-example over two steps: each agent alone can keep the cost at 0, so ζ = α.

    Rewards lie in [0, 1]; if `fill`, from 0 to 1, which is what the paper's constants take them to do.
    """
    rewards = np.array([[[3.0, 2.0], [2.0, 4.0]], [[4.0, 1.0], [3.0, 2.0]]])
    rewards = (rewards - 1) / 3 if fill else rewards / 4
    noise = np.array([0.9, 0.1])
    transition = np.array([[[noise, noise], [noise, noise[::-1]]], [[noise[::-1], noise], [noise, noise[::-1]]]])
    return JointGame(
        transition=transition[None],
        rewards=np.broadcast_to(rewards, (2, 1, 2, 2, 2)),
        costs=np.broadcast_to([[0.0, 0.0], [0.0, 1.0]], (1, 1, 2, 2, 2)),
        thresholds=np.array([0.5]),
        initial=np.array([0.5, 0.5]),
        horizon=2,
    )


def two_steps_start() -> JointPolicy:
    """Return a start that is no Nash policy of `two_steps`: both agents play the second action with probability 0.4."""
    return JointPolicy((np.broadcast_to([0.6, 0.4], (2, 2, 2)),) * 2)


@dataclass(frozen=True)
class Coverage:
    """What became of many seeds of one mode."""

    seeds: int
    failures: int  # not certified, infeasible, or not ε-Nash, in truth
    unsafe: int  # policies that were played
    samples: float  # median


def _coverage(evidence: Evidence) -> dict[str, Coverage]:
    game, found = two_steps(), {}
    many, few = evidence.effort.coverage_seeds, -(-evidence.effort.coverage_seeds // 10)
    for mode, seeds in {"generative": many, "safe": few, "shared": many}.items():
        what, failures, unsafe, samples = f"learning, {mode}: coverage", 0, 0, []
        for number, rng in enumerate(evidence.streams(what, seeds), 1):
            result = _learn(game, rng, mode=mode, epsilon=COVERED_EPSILON, start=two_steps_start())
            truth = judge(game, result)
            failures += not (result.certified and truth.right(COVERED_EPSILON))
            unsafe += truth.unsafe_policies
            samples.append(result.total_samples)
            evidence.tick(what, number, seeds)
        found[mode] = Coverage(seeds, failures, unsafe, float(np.median(samples)))
    return found


@agrees(
    "Theorem 2",
    paper="fails with probability δ at most",
    expect=between(0, 0.17) * 3 + near(0, tolerance=0) + above(1) * 3,
    why=f"The counter-example over two steps, ε = {COVERED_EPSILON:g} and δ = {DELTA:g}, judged with the true model.",
)
def coverage(evidence: Evidence) -> Finding:
    """How often learning fails, and how often safe exploration is unsafe."""
    found = evidence.of(_coverage)
    text = "; ".join(
        f"{mode}: {each.failures} of {each.seeds} fail, {each.samples:,.0f} samples (median)"
        for mode, each in found.items()
    )
    shares = [each.failures / each.seeds for each in found.values()]
    drawn = [each.samples for each in found.values()]
    text += f"; unsafe policies in safe mode: {found['safe'].unsafe}"
    return Finding.of(text, *shares, found["safe"].unsafe, *drawn)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    counts = evidence.of(sample_counts)
    rows = {
        "as printed": [each.printed for each in counts],
        "corrected": [each.corrected for each in counts],
        "adaptive": [each.adaptive for each in counts],
    }
    caption = "Samples that one best response takes, per step, state and action: N as printed, corrected, and drawn."
    draw = partial(draw_bars, rows, [each.name for each in counts], what="samples of each (h, s, a)", width=6.4)
    pictures = (_games_picture(evidence), _learned_picture(evidence), _regret_picture(evidence))
    return (Picture("samples", caption, draw), *pictures)


def _games_picture(evidence: Evidence) -> Picture:
    """The samples of all games that were learned, by mode."""
    spent: dict[str, dict[str, float]] = {}
    for each in evidence.of(_learned):
        game, mode = each.name.rsplit(", ", 1)
        spent.setdefault(f"{game},\nε = {each.epsilon:g}".replace(", ", ",\n", 1), {})[mode] = each.result.total_samples
    rows = {mode: [each.get(mode, np.nan) for each in spent.values()] for mode in ("generative", "safe", "shared")}
    caption = "Samples that whole games took, one seed each; what safe exploration did not end on is left out."
    return Picture("learned-games", caption, partial(draw_bars, rows, list(spent), what="samples", width=8.4))


def _regret_picture(evidence: Evidence) -> Picture:
    episodes, regret = evidence.of(_safe_regret).T
    caption = "Regret while the own-cell grid world was explored safely, beside a square root through its end."
    draw = partial(draw_regret, regret, float(regret[-1] / np.sqrt(episodes[-1])), rounds=episodes)
    return Picture("safe-regret", caption, draw)


def _learned_picture(evidence: Evidence) -> Picture:
    """The samples of three modes, beside their bounds; the paper has none for the shared model."""
    known = GameSimulator(two_steps(), rng=np.random.default_rng(0)).known
    table = bounds_table(known, slater=0.5, epsilon=COVERED_EPSILON, delta=DELTA)
    bound = {(row.algorithm, row.version): row.samples for row in table.rows}
    found = evidence.of(_coverage)
    rows = {
        "as printed": [bound[GENERATIVE, PRINTED], bound[SAFE, PRINTED], np.nan],
        "corrected": [bound[name, CORRECTED] for name in (GENERATIVE, SAFE, SHARED)],
        "drawn (median)": [each.samples for each in found.values()],
    }
    caption = "Samples of CA-CMPG-E on the counter-example over two steps, as bounded and as drawn, in three modes."
    return Picture("learned-samples", caption, partial(draw_bars, rows, list(found), what="samples", width=5.6))


SECTION = Section(
    title="Learning with an unknown model",
    note=f"Constants at ε = {EPSILON:g} and δ = {DELTA:g}, unless said otherwise.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
