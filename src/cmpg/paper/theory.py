"""Sections 4 and 5 on numbers: the propositions, Lemma 1, Theorem 1, Examples 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.linear_program import independent_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.duality.dual_function import lagrangian, penalised_game
from cmpg.equilibrium.ascent import theorem_1_bound
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.game import Game
from cmpg.paper.claims import (
    AscentRun,
    Evidence,
    Finding,
    Picture,
    Section,
    above,
    added,
    agrees,
    at_most,
    between,
    certified,
    differs,
    listed,
    near,
    rows_of,
    written,
)
from cmpg.paper.figures import draw_bars
from cmpg.paper.runs import one_waits, run_congestion_games, run_grid_worlds
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game, counter_example, grid_world

EPSILON = 0.1
MULTIPLIER = 0.7


def _one_move(evidence: Evidence) -> tuple[JointPolicy, JointPolicy]:
    """Two random policies of the grid world that differ in agent 1's."""
    game, rng = grid_world(), evidence.rng("Proposition 2")
    one = game.random_policy(rng=rng)
    return one, one.replace(1, game.random_policy(rng=rng)[1])


@agrees("Proposition 2", paper="r − λc", expect=near(0.0, tolerance=1e-10))
def proposition_2(evidence: Evidence) -> Finding:
    """The Lagrangian is a potential of the game with rewards r − λc."""
    game, (one, other) = grid_world(), evidence.of(_one_move)
    penalised = penalised_game(game, [MULTIPLIER])
    change = lagrangian(game, other, [MULTIPLIER]) - lagrangian(game, one, [MULTIPLIER])
    off = abs(float(penalised.at(other).values[1] - penalised.at(one).values[1]) - change)
    return Finding.of(f"a random move changes both by the same, off by {at_most(off, 1e-10)}", off)


@differs(
    "Appendix A, proof of Proposition 2",
    paper="r + λc",
    expect=above(1e-3),
    why="Both signs of λc are flipped in the proof; the statement is right.",
)
def proposition_2_proof(evidence: Evidence) -> Finding:
    """The proof of Proposition 2 writes the rewards r + λc."""
    game, (one, other) = grid_world(), evidence.of(_one_move)
    right = penalised_game(game, [MULTIPLIER])
    wrong = right.with_rewards(2 * game.rewards - right.rewards)  # r + λc
    change = lagrangian(game, other, [MULTIPLIER]) - lagrangian(game, one, [MULTIPLIER])
    off = abs(float(wrong.at(other).values[1] - wrong.at(one).values[1]) - change)
    return Finding.of(f"off by {written(off, digits=3)} for the same move", off)


@differs(
    "Section 3",
    paper="[0, 1]",
    expect=near(2, 4, 0, 20, -99, 48),
    why="None of the paper's games obeys it, so every bound is stated with the true ranges G_i.",
)
def unit_rewards(_: Evidence) -> Finding:
    """Rewards lie in [0, 1]."""
    games = {"counter-example": counter_example(), "grid world": grid_world(), "congestion game": congestion_game()}
    ends = {name: (game.rewards.min(), game.rewards.max()) for name, game in games.items()}
    text = "; ".join(f"{name} [{listed(pair)}]" for name, pair in ends.items())
    return Finding.of(text, *(end for pair in ends.values() for end in pair))


@differs(
    "Lemma 1",
    paper="nH = 12 in the grid world",
    expect=near(24, 12, 240),
    why="The lemma is right for rewards in [0, 1]; in general Σ_i G_i takes the place of nH.",
)
def lemma_1(_: Evidence) -> Finding:
    """The potential is bounded by nH + Φ(base)."""
    grid = grid_world()
    best, worst = (plan(grid.joint_cmdp(sign * grid.rewards.mean(axis=0)), np.zeros(1)).value for sign in (1, -1))
    corrected = float(grid.reward_ranges.sum())
    text = f"Φ ranges over {written(best + worst)}; Σ G_i = {written(corrected)} bounds it"
    return Finding.of(text, best + worst, grid.num_agents * grid.num_steps, corrected)


@dataclass(frozen=True)
class MoveCount:
    """Moves of one game's runs, and the bounds on them."""

    name: str
    printed: float  # 2nH/ε
    corrected: int  # ⌈2 Σ G_i/ε⌉
    used: int  # the most moves of any run; the runs had an even smaller ε


def _moves(evidence: Evidence) -> tuple[MoveCount, ...]:
    grid, congestion = evidence.of(run_grid_worlds), evidence.of(run_congestion_games)
    rows: tuple[tuple[str, Game, tuple[AscentRun, ...]], ...] = (
        ("grid world, joint state", grid.joint, (*grid.joint_waiting, *grid.joint_random)),
        ("grid world, own cell", grid.local, grid.local_waiting),
        ("congestion game", congestion.game, (*congestion.simplex, *congestion.normalised)),
    )
    return tuple(
        MoveCount(
            name,
            2 * game.num_agents * (game.horizon or 0) / EPSILON,
            theorem_1_bound(game, EPSILON),
            max(run.result.moves for run in runs),
        )
        for name, game, runs in rows
    )


@differs(
    "Theorem 1",
    paper="T = 2nH/ε",
    expect=near(240, 240, 320, 4800, 2400, 47040, 80, tolerance=0),
    why="T = ⌈2 Σ_i G_i/ε⌉ with the true ranges.",
)
def theorem_1_iterations(evidence: Evidence) -> Finding:
    """Theorem 1's T, here at ε = 0.1."""
    counts, small = evidence.of(_moves), theorem_1_bound(counter_example(), EPSILON)
    text = "; ".join(f"{each.name}: {each.corrected:,} (as printed {each.printed:,.0f})" for each in counts)
    bounds = [each.printed for each in counts] + [each.corrected for each in counts]
    return Finding.of(f"{text}; counter-example: {small}", *bounds, small)


@agrees(
    "Theorem 1",
    paper="at most T",
    expect=between(1, 240) + between(1, 240) + between(1, 320),
    why="The bound is far from tight: the runs had an even smaller ε.",
)
def theorem_1_moves(evidence: Evidence) -> Finding:
    """CA-CMPG ends within T iterations."""
    counts = evidence.of(_moves)
    return Finding.of("; ".join(f"{each.name}: {each.used} moves" for each in counts), *(each.used for each in counts))


@differs(
    "Appendix B, proof of Theorem 1",
    paper="max_π V(π) − V(π̂^T) ≤ ε",
    expect=near(0.0) + above(1.0),
    why="V(π^(T−1)) is meant: against the best response π̂^T itself no agent ever gains. The proof also cites Lemma 11, "
    "on multipliers, where Lemma 1, on the potential, is meant.",
)
def theorem_1_proof(evidence: Evidence) -> Finding:
    """The last display of Theorem 1's proof, at a start that is no Nash policy."""
    game = grid_world()
    position = game.at(one_waits(game, evidence.rng("Theorem 1's proof")))
    gains, printed = [], []
    for agent in range(game.num_agents):
        best = Exact()(position.induced_cmdp(agent))
        gains.append(best.value - float(position.values[agent]))
        printed.append(best.bound - best.value)
    text = f"as printed at most {at_most(max(printed), 1e-9)}, although an agent gains {max(gains):.3g} by deviating"
    return Finding.of(text, max(printed), max(gains))


@added("Algorithm 1", expect=near(1.0))
def algorithm_1_return(evidence: Evidence) -> Finding:
    """Algorithm 1 does not say what it returns."""
    grid, congestion = evidence.of(run_grid_worlds), evidence.of(run_congestion_games)
    runs = (*grid.joint_waiting, *grid.local_waiting, *congestion.simplex)
    quiet = certified(runs)
    text = f"π^(t−1), the policy at which no agent gained: certified in {quiet} of {len(runs)} runs"
    return Finding.of(text, quiet / len(runs))


@agrees("Example 1", paper="feasible", expect=near(0.1, 0.5, 1, 1))
def example_1(_: Evidence) -> Finding:
    """With one constraint, a deterministic policy of least cost is a feasible start."""
    starts = {"grid world": feasible_start(grid_world()), "congestion game": feasible_start(congestion_game())}
    text = "; ".join(f"{name}: slack {written(start.slack)}" for name, start in starts.items())
    found = [start.policy is not None for start in starts.values()]
    return Finding.of(text, *(start.slack for start in starts.values()), *found)


@differs(
    "Example 2",
    paper="feasible",
    expect=near(5, 5, 0.5, 6),
    why="False for two constraints or more: the recipe minimises the largest cost of each agent, whatever α is.",
)
def example_2(_: Evidence) -> Finding:
    """A feasible start, found agent by agent."""
    agent = CMDP(
        transition=np.ones((1, 1, 2, 1)),
        reward=np.zeros((1, 1, 2)),
        costs=np.array([[[[5.0, 0.5]]], [[[5.0, 6.0]]]]),
        thresholds=np.array([1.0, 10.0]),
        initial=np.ones(1),
        horizon=1,
    )
    recipe = greatest_slack(replace(agent, thresholds=np.zeros(2))).costs
    block = evaluate(agent, independent_slack([agent], agent.thresholds).policies[0]).costs
    text = (
        f"one agent, α = (1, 10): the recipe spends ({listed(recipe)}); one LP over all agents spends ({listed(block)})"
    )
    return Finding.of(text, *recipe, *block)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    counts = evidence.of(_moves)
    rows = {
        "$T$ as printed": [each.printed for each in counts],
        "$T$ with the true ranges": [float(each.corrected) for each in counts],
        "moves used": [float(each.used) for each in counts],
    }
    caption = f"Moves of CA-CMPG, and Theorem 1's bound at ε = {EPSILON:g}, as printed and with the true ranges."
    draw = partial(draw_bars, rows, [each.name for each in counts], what="moves", width=5.6)
    return (Picture("theorem-1", caption, draw),)


SECTION = Section(
    title="Propositions, Lemma 1 and Theorem 1",
    note="What the paper proves about known models, tried on its own games.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
