"""Propositions, lemmas and Theorem 1, each tried on numbers: what is right, and where a sign or an index is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, occupancy, policy_from_occupancy
from cmpg.cmdp.exact import greatest_slack
from cmpg.cmdp.linear_program import independent_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.duality.dual_function import lagrangian, penalised_game
from cmpg.equilibrium.ascent import theorem_1_bound
from cmpg.equilibrium.start import feasible_start
from cmpg.games.contract import Game
from cmpg.games.joint.game import JointGame
from cmpg.paper.claims import Claim, Picture, Section, added, agreed, at_most, listed, refuted, written
from cmpg.paper.congestion_runs import CongestionRuns
from cmpg.paper.grid_runs import GridRuns
from cmpg.paper.runs import Run, Setting
from cmpg.scenarios.paper import congestion_game, counter_example, grid_world

EPSILON = 0.1
PRICE = 0.7


@dataclass(frozen=True)
class MoveCount:
    """Moves of one game's runs, and the bounds on them."""

    name: str
    printed: float  # 2nH/ε
    corrected: int  # ⌈2 Σ G_i/ε⌉
    used: int  # the most moves of any run, which asked for a smaller ε even


def study_theory(setting: Setting, *, grid: GridRuns, congestion: CongestionRuns) -> Section:
    """Try every proposition and lemma about known models."""
    setting.tick("propositions, lemmas, Theorem 1", 0, 1)
    rng = setting.streams(1)[0]
    counts = (
        _moves("grid world, joint state", grid.joint, (*grid.joint_waiting, *grid.joint_random)),
        _moves("grid world, own cell", grid.local, grid.local_waiting),
        _moves("congestion game", congestion.game, (*congestion.simplex, *congestion.normalised)),
    )
    runs = (*grid.joint_waiting, *grid.local_waiting, *congestion.simplex)
    claims = (
        *_potential_claims(rng),
        *_range_claims(),
        *_bound_claims(counts),
        *_start_claims(),
        *_occupancy_claims(rng),
        _return_claim(runs),
    )
    setting.tick("propositions, lemmas, Theorem 1", 1, 1)
    caption = f"Moves of CA-CMPG, and Theorem 1's bound at ε = {EPSILON:g}, as printed and with the true ranges."
    return Section(
        title="Propositions, lemmas and Theorem 1",
        note="What the paper proves about known models, tried on its own games.",
        claims=claims,
        pictures=(Picture("theorem-1", caption, partial(_draw, counts)),),
    )


def _draw(counts: Sequence[MoveCount]) -> object:
    from cmpg.paper.figures import draw_moves

    return draw_moves(counts)


def _moves(name: str, game: Game, runs: Sequence[Run]) -> MoveCount:
    assert game.horizon is not None
    printed = 2 * game.num_agents * game.horizon / EPSILON
    return MoveCount(name, printed, theorem_1_bound(game, EPSILON), max(run.result.moves for run in runs))


def _potential_claims(rng: np.random.Generator) -> list[Claim]:
    game = grid_world()
    right = penalised_game(game, [PRICE])
    wrong = replace(right, rewards=2 * game.rewards - right.rewards, trusted=True)  # r + λc
    one = game.random_policy(rng=rng)
    other = one.replace(1, game.random_policy(rng=rng)[1])
    change = lagrangian(game, other, [PRICE]) - lagrangian(game, one, [PRICE])
    off, off_printed = (
        abs(float(each.at(other).values[1] - each.at(one).values[1]) - change) for each in (right, wrong)
    )
    return [
        agreed(
            "proposition-2",
            "the Lagrangian is a potential of the game with rewards r − λc (Proposition 2)",
            paper="r − λc",
            ours=f"a random move changes both by the same, off by {at_most(off, 1e-10)}",
            holds=off <= 1e-10,
            numbers=(off,),
        ),
        refuted(
            "proposition-2-proof",
            "the proof of Proposition 2 writes the rewards r + λc",
            paper="r + λc",
            ours=f"off by {written(off_printed, digits=3)} for the same move",
            holds=off_printed <= 1e-10,
            why="Both signs of λc are flipped in the proof; the statement is right.",
            numbers=(off_printed,),
        ),
    ]


def _range_claims() -> list[Claim]:
    games: Mapping[str, JointGame] = {
        "counter-example": counter_example(),
        "grid world": grid_world(),
        "congestion game": congestion_game(),
    }
    spans = {name: (float(game.rewards.min()), float(game.rewards.max())) for name, game in games.items()}
    grid = games["grid world"]
    planner, against = grid.joint_cmdp(), grid.joint_cmdp(-grid.rewards.mean(axis=0))
    spread = plan(planner, np.zeros(1)).value + plan(against, np.zeros(1)).value
    printed, corrected = float(grid.num_agents * grid.num_steps), float(grid.reward_ranges.sum())
    return [
        refuted(
            "unit-rewards",
            "rewards lie in [0, 1]",
            paper="[0, 1]",
            ours="; ".join(f"{name} [{listed(ends)}]" for name, ends in spans.items()),
            holds=any(low >= 0 and high <= 1 for low, high in spans.values()),
            why="None of the paper's games obeys it, so every bound is stated with the true ranges G_i.",
            numbers=tuple(end for ends in spans.values() for end in ends),
        ),
        refuted(
            "lemma-1",
            "the potential is bounded by nH + Φ(base) (Lemma 1)",
            paper=f"nH = {printed:g} in the grid world",
            ours=f"Φ ranges over {written(spread)}; Σ G_i = {written(corrected)} bounds it",
            holds=spread <= printed,
            why="The lemma is right for rewards in [0, 1]; in general Σ_i G_i takes the place of nH.",
            numbers=(spread, printed, corrected),
        ),
    ]


def _bound_claims(counts: Sequence[MoveCount]) -> list[Claim]:
    return [
        refuted(
            "theorem-1-bound",
            f"Theorem 1: T = 2nH/ε, here at ε = {EPSILON:g}",
            paper="; ".join(f"{each.name}: {each.printed:,.0f}" for each in counts),
            ours="; ".join(f"{each.name}: {each.corrected:,}" for each in counts),
            holds=all(each.corrected == each.printed for each in counts),
            why="T = ⌈2 Σ_i G_i/ε⌉ with the true ranges.",
            numbers=tuple(each.corrected for each in counts),
        ),
        agreed(
            "theorem-1-moves",
            "CA-CMPG ends within T iterations",
            paper="at most T",
            ours="; ".join(f"{each.name}: {each.used} moves" for each in counts),
            holds=all(each.used <= min(each.corrected, each.printed) for each in counts),
            why="The bound is far from tight: the runs asked for a smaller ε even.",
            numbers=tuple(each.used for each in counts),
        ),
    ]


def _start_claims() -> list[Claim]:
    """Examples 1 and 2. The recipe of the second minimises the largest cost of each agent, whatever α is."""
    agent = CMDP(
        transition=np.ones((1, 1, 2, 1)),
        reward=np.zeros((1, 1, 2)),
        costs=np.array([[[[5.0, 0.5]]], [[[5.0, 6.0]]]]),
        thresholds=np.array([1.0, 10.0]),
        initial=np.ones(1),
        horizon=1,
    )
    recipe = greatest_slack(replace(agent, thresholds=np.zeros(2)))
    block = independent_slack([agent], np.array([1.0, 10.0]))
    costs = evaluate(agent, block.policies[0]).costs
    starts = {"grid world": feasible_start(grid_world()), "congestion game": feasible_start(congestion_game())}
    return [
        agreed(
            "example-1",
            "Example 1: with one constraint, a deterministic policy of least cost is a feasible start",
            paper="feasible",
            ours="; ".join(f"{name}: slack {written(start.slack)}" for name, start in starts.items()),
            holds=all(start.policy is not None and start.slack >= 0 for start in starts.values()),
            numbers=tuple(start.slack for start in starts.values()),
        ),
        refuted(
            "example-2",
            "Example 2: a feasible start, found agent by agent",
            paper="feasible",
            ours=f"one agent, α = (1, 10): the recipe spends ({listed(recipe.costs)}); one LP over all agents spends "
            f"({listed(costs)})",
            holds=bool(np.all(recipe.costs <= agent.thresholds)),
            why="False for two constraints or more: the recipe never looks at α.",
            numbers=(*recipe.costs, *costs),
        ),
    ]


def _occupancy_claims(rng: np.random.Generator) -> list[Claim]:
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(3), size=(4, 3, 2)),
        reward=rng.random((4, 3, 2)),
        costs=np.zeros((0, 1, 3, 2)),
        thresholds=np.zeros(0),
        initial=np.array([1.0, 0.0, 0.0]),
        horizon=4,
    )
    policies = [rng.dirichlet(np.ones(2), size=(4, 3)) for _ in range(3)]
    values = [float(evaluate(cmdp, policy).value) for policy in policies]
    mean = np.mean([occupancy(cmdp, policy) for policy in policies], axis=0)
    merged = policy_from_occupancy(mean, np.full((4, 3, 2), 0.5))
    off = abs(float(evaluate(cmdp, merged).value) - float(np.mean(values)))
    printed = float((_printed_occupancy(cmdp, policies[0]) * cmdp.reward).sum())
    return [
        agreed(
            "occupancy-mean",
            "the policy with the mean occupancy has the mean value",
            paper="equal",
            ours=f"off by {at_most(off, 1e-12)}",
            holds=off <= 1e-12,
            numbers=(off,),
        ),
        refuted(
            "occupancy-index",
            "the occupancy recursion leads to step h with P_h",
            paper="P_h",
            ours=f"P_h gives the value {written(printed, digits=5)}; P_(h−1) gives the true one, "
            f"{written(values[0], digits=5)}",
            holds=abs(printed - values[0]) <= 1e-12,
            why="The index is h − 1; here transition[h] leads from step h to step h + 1.",
            numbers=(printed, values[0]),
        ),
    ]


def _printed_occupancy(cmdp: CMDP, policy: FloatArray) -> FloatArray:
    """The recursion as printed: ρ_h = Σ ρ_{h−1} P_h π_h."""
    found = [cmdp.initial[:, None] * policy[0]]
    for step in range(1, cmdp.num_steps):
        arrivals = found[-1].ravel() @ cmdp.matrix(step)
        found.append(arrivals[:, None] * policy[step])
    return np.array(found)


def _return_claim(runs: Sequence[Run]) -> Claim:
    quiet = sum(run.settled for run in runs)
    return added(
        "algorithm-1-return",
        "Algorithm 1 does not say what it returns",
        ours=f"π^(t−1), the policy at which nobody gained: certified in {quiet} of {len(runs)} runs",
        numbers=(quiet / len(runs),),
    )
