"""The congestion game: runs with the cost at every step and at the first step only, where they end, and the witness.

The congestion game: its transitions, its action distributions, where its runs end, and the 4-cycle by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.planning import plan
from cmpg.games.joint.game import JointGame
from cmpg.games.potential.check import Verdict, check_potential, recheck
from cmpg.learning.slater import cmdp_slack
from cmpg.paper.claims import (
    Claim,
    Picture,
    Section,
    added,
    agreed,
    at_most,
    close,
    listed,
    refuted,
    share,
    written,
)
from cmpg.paper.congestion_runs import (
    ENDINGS,
    EPSILON,
    FIGURE,
    SAFE,
    CongestionRuns,
    HandWitness,
    LargestCycle,
    action_counts,
    crowd_policy,
    ending_of,
    endings_of,
    figure_policy,
    largest_cycle,
    run_congestion_games,
    witness_by_hand,
)
from cmpg.paper.counter_examples import NASH, gains_of
from cmpg.paper.figures import BLUE, GREEN, GREY, RED, light_grid, new_figure
from cmpg.paper.runs import Setting
from cmpg.scenarios.paper import congestion_game, congestion_game_common_reward, congestion_game_exogenous

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ALPHA = 0.5


@dataclass(frozen=True, eq=False)
class CongestionStudy:
    """The section, and the runs on which other sections build."""

    section: Section
    runs: CongestionRuns


def study_congestion(setting: Setting) -> CongestionStudy:
    """Compute everything that the paper says about its congestion game."""
    found = run_congestion_games(setting)
    rng = setting.streams(1)[0]
    largest = largest_cycle(found.game, proposals=setting.effort.cycle_proposals, rng=rng)
    setting.tick("congestion game: 4-cycles", 1, 1)
    claims = (
        *_figure_claims(found.game),
        *_run_claims(found),
        *_cost_claims(found),
        *_ending_claims(found),
        _first_step_claim(found),
        _potential_claim(found.game, largest, rng),
        *_witness_claims(rng),
    )
    section = Section(
        title="The congestion game",
        note="Eight agents, four actions, two states, two steps; a crowd in unsafe costs 1, and α = 0.5.",
        claims=claims,
        pictures=(*_run_pictures(found, setting.effort.congestion_runs), *_game_pictures(largest)),
    )
    return CongestionStudy(section, found)


def _figure_claims(game: JointGame) -> list[Claim]:
    policy = figure_policy()
    position, gap = game.at(policy), float(gains_of(game, policy).max())
    values, welfare, cost = sorted(set(np.round(position.values, 9))), float(position.values.sum()), position.costs[0]
    slacks = [cmdp_slack(position.induced_cmdp(agent)) for agent in range(game.num_agents)]
    crowd = crowd_policy([[2] * 4 + [3] * 4, [3] * 8], [[3] * 8] * 2)
    unbound = float(gains_of(congestion_game(threshold=2.0), crowd).max())
    stays = float(game.transition[(0, SAFE, *(2,) * 4, *(3,) * 4)][SAFE])
    return [
        agreed(
            "congestion-figure",
            "the figure's policy: four C and four D at step 1 in both states, eight D at step 2; from safe the system "
            "stays safe",
            paper="a Nash policy with a cost close to 0.5",
            ours=f"cost {written(cost)}, values {listed(values)}, welfare {written(welfare)}; nobody gains more than "
            f"{NASH:.0e}; safe stays safe with probability {written(stays)}",
            holds=gap <= NASH and close(cost, ALPHA) and stays == 1.0,
            numbers=(cost, *values, welfare, gap),
        ),
        agreed(
            "congestion-unconstrained",
            "without the constraint all agents would play D in unsafe at step 1",
            paper="all prefer D",
            ours=f"with α = 2 eight D there are a Nash policy: gains {at_most(unbound, NASH)}",
            holds=unbound <= NASH,
            numbers=(unbound,),
        ),
        added(
            "congestion-slack",
            "slack that an agent has at the figure's policy, ζ_i",
            ours=f"{listed(sorted(set(np.round(slacks, 12))))} for all {len(slacks)} agents",
            why="There the learning theorems are void: no strictly feasible response exists.",
            numbers=(max(np.abs(slacks)),),
        ),
    ]


def _run_claims(found: CongestionRuns) -> list[Claim]:
    runs = (*found.simplex, *found.normalised)
    settled = sum(run.settled for run in runs)
    cycles = float(np.mean([len(run.costs) for run in runs]))
    outside = sum(run.violations(ALPHA) for run in (*runs, *found.vacuous))
    return [
        agreed(
            "congestion-gains",
            "the gains reach zero for all agents: they have converged to a Nash policy",
            paper="over 50 runs",
            ours=f"{settled} of {len(runs)} runs certified, after {cycles:.1f} cycles on average",
            holds=settled == len(runs),
            why=f"With ε = {EPSILON:g}. The certificate needs no potential, so it holds although the game has none.",
            numbers=(settled / len(runs), cycles),
        ),
        added(
            "congestion-feasible",
            "iterates that are infeasible",
            ours=f"{outside} in {len(runs) + len(found.vacuous)} runs",
            numbers=(outside,),
        ),
    ]


def _cost_claims(found: CongestionRuns) -> list[Claim]:
    runs = (*found.simplex, *found.normalised)
    starts = {"rows from the simplex": found.simplex, "rows normalised": found.normalised}
    first = {name: float(np.mean([run.costs[0] for run in each])) for name, each in starts.items()}
    last = float(np.mean([run.costs[-1] for run in runs]))
    full = sum(close(run.costs[-1], ALPHA, tolerance=1e-6) for run in runs)
    return [
        refuted(
            "congestion-start",
            "the agents start from a strictly feasible policy of cost 0",
            paper="0",
            ours="; ".join(f"{name}: {written(cost, digits=3)} on average" for name, cost in first.items()),
            holds=max(first.values()) == 0,
            why="Random policies are strictly feasible, and cost something.",
            numbers=tuple(first.values()),
        ),
        agreed(
            "congestion-cost",
            "the agents converge to a cost close to α = 0.5",
            paper="close to 0.5",
            ours=f"mean {written(last, digits=3)}; exactly α in {share(full, len(runs))}",
            holds=full > len(runs) / 2,
            why="The other runs end at Nash policies that spend less, most of them nothing.",
            numbers=(last, full / len(runs)),
        ),
    ]


def _ending_claims(found: CongestionRuns) -> list[Claim]:
    spread = crowd_policy([[2] * 4 + [3] * 4, [0, 0, 1, 1, 2, 2, 3, 3]], [[3] * 8] * 2)
    position, gap = found.game.at(spread), float(gains_of(found.game, spread).max())
    welfare, cost = float(position.values.sum()), float(position.costs[0])
    both = {"rows from the simplex": found.simplex, "rows normalised": found.normalised}
    counts = {name: endings_of(runs) for name, runs in both.items()}
    texts = [
        f"{name}: "
        + ", ".join(f"{kind} {share(number, sum(each))}" for kind, number in zip(ENDINGS, each, strict=True))
        for name, each in counts.items()
    ]
    return [
        refuted(
            "congestion-endings",
            "the runs end at the figure's policy",
            paper="one policy is shown",
            ours="; ".join(texts),
            holds=all(each[0] == sum(each) for each in counts.values()),
            why="There are many Nash policies, and where a run ends depends on how its random start is drawn.",
            numbers=[number / sum(each) for each in counts.values() for number in each],
        ),
        added(
            "congestion-costless",
            "2/2/2/2 in unsafe at step 1 leads back to safe",
            ours=f"cost {written(cost)}, welfare {written(welfare)}; gains {at_most(gap, NASH)}",
            why="A Nash policy that spends nothing.",
            numbers=(cost, welfare, gap),
        ),
    ]


def _first_step_claim(found: CongestionRuns) -> Claim:
    worst, every = (
        float(plan(game.joint_cmdp(), -np.ones(1), reward_weight=0.0).costs[0])
        for game in (found.first_step, found.game)
    )
    there = sum(ending_of(run.policy) == FIGURE for run in found.vacuous)
    gap = float(gains_of(found.first_step, figure_policy()).max())
    return refuted(
        "first-step",
        "the cost is paid at step h = 1",
        paper="at step h = 1",
        ours=f"the largest cost of any policy is then {written(worst)} = α, so the constraint is vacuous, and the "
        f"figure's policy is not Nash (an agent gains {written(gap, digits=4)}): {there} of {len(found.vacuous)} runs "
        f"end there. With the cost at every step the largest cost is {written(every)}, and the figure comes out",
        holds=worst > ALPHA + 1e-9,
        why="Both variants are run.",
        numbers=(worst, every, gap, there),
    )


def _potential_claim(game: JointGame, largest: LargestCycle, rng: np.random.Generator) -> Claim:
    check = check_potential(game, rng=rng)
    assert check.witness is not None
    i, j = check.witness.agents
    residual = abs(float(recheck(game, check.witness)))
    highest = plan(game.joint_cmdp(game.rewards[0]), np.zeros(1)).value
    lowest = -plan(game.joint_cmdp(-game.rewards[0]), np.zeros(1)).value
    return refuted(
        "not-a-potential-game",
        "every state is a congestion game, so this is a Markov potential game",
        paper="a potential game",
        ours=f"around a 4-cycle of agents {i + 1} and {j + 1} the gains add up to {written(residual, digits=4)}; the "
        f"largest found: {written(abs(largest.residual), digits=6)}, on values in [{listed([lowest, highest])}]",
        holds=check.verdict is not Verdict.REFUTED,
        why="What the next state is worth differs between agents. Not zero is a proof that no potential exists.",
        numbers=(residual, abs(largest.residual), lowest, highest),
    )


def _witness_claims(rng: np.random.Generator) -> list[Claim]:
    hand = witness_by_hand()
    corners = ", ".join(f"({written(i)}, {written(j)})" for i, j in hand.values)
    variants = {
        "H = 1": congestion_game(horizon=1),
        "a state that no action moves": congestion_game_exogenous(),
        "a common reward": congestion_game_common_reward(),
    }
    verdicts = {name: check_potential(game, rng=rng).verdict for name, game in variants.items()}
    return [
        added(
            "witness-by-hand",
            "a witness that can be checked by hand: two agents, from safe, no penalty",
            ours=f"(V_i, V_j) = {corners}; the cycle sums to {written(abs(hand.residual))}",
            numbers=(*hand.values.ravel(), abs(hand.residual)),
        ),
        added(
            "true-potential-games",
            "variants that are potential games",
            ours="; ".join(f"{name}: {verdict.name.lower()}" for name, verdict in verdicts.items()),
            numbers=tuple(verdict is Verdict.PROVEN for verdict in verdicts.values()),
        ),
    ]


def _run_pictures(found: CongestionRuns, shown: int) -> tuple[Picture, ...]:
    from cmpg.paper.congestion import draw_action_counts, draw_endings
    from cmpg.paper.figures import draw_runs

    columns = {"cost at every step": found.simplex[:shown], "cost at the first step": found.vacuous}
    reached = next((run.policy for run in found.simplex + found.normalised if ending_of(run.policy) == FIGURE), None)
    whose = "in a run that ends at the figure's policy" if reached is not None else "as drawn in the paper"
    endings = {"rows from\nthe simplex": endings_of(found.simplex), "rows\nnormalised": endings_of(found.normalised)}
    return (
        Picture(
            "congestion-runs",
            f"Gains per agent and cycle, and cost against α: mean and standard error over {shown} runs.",
            partial(draw_runs, columns, threshold=ALPHA),
        ),
        Picture(
            "congestion-actions",
            f"How many agents play what, at both steps, {whose}.",
            partial(draw_action_counts, action_counts(reached or figure_policy())),
        ),
        Picture("congestion-endings", "Where the runs end.", partial(draw_endings, endings, ENDINGS)),
    )


def _game_pictures(largest: LargestCycle) -> tuple[Picture, ...]:
    from cmpg.paper.congestion import draw_four_cycle, draw_transitions

    size = f"{abs(largest.residual):.6g}"
    return (
        Picture(
            "congestion-transitions",
            "The transitions of the game; k* is the size of the largest crowd.",
            draw_transitions,
        ),
        Picture(
            "congestion-four-cycle",
            f"A 4-cycle that no potential survives, by hand; the largest one that was found adds up to {size}.",
            partial(draw_four_cycle, witness_by_hand()),
        ),
    )


ACTIONS = "ABCD"


def draw_transitions() -> Figure:
    """Draw the two states, and which crowds lead where."""
    figure = new_figure(4.2, 2.0)
    axes = figure.add_subplot()
    axes.set_xlim(-0.9, 3.9)
    axes.set_ylim(-0.9, 1.35)
    axes.set_aspect("equal")
    axes.axis("off")
    for x, name in ((0.0, "safe"), (3.0, "unsafe")):
        _state(axes, x, name)
    _arrow(axes, (0.42, 0.16), (2.58, 0.16), bend=-0.25)
    _arrow(axes, (2.58, -0.16), (0.42, -0.16), bend=-0.25)
    axes.text(1.5, 0.52, r"$k^{*} > N/2$", ha="center", va="bottom")
    axes.text(1.5, -0.52, r"$k^{*} \leq N/4$", ha="center", va="top")
    for x, label in ((0.0, r"$k^{*} \leq N/2$"), (3.0, r"$k^{*} > N/4$")):
        _arrow(axes, (x - 0.2, 0.4), (x + 0.2, 0.4), bend=-1.8)
        axes.text(x, 1.0, label, ha="center", va="bottom")
    return figure


def _state(axes: Axes, x: float, name: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, 0.0), 0.44, facecolor="white", edgecolor="black", linewidth=0.9))
    axes.text(x, 0.0, name, ha="center", va="center", family="monospace", fontsize=8)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], *, bend: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    style = f"arc3,rad={bend}"
    axes.add_patch(
        FancyArrowPatch(
            start, end, connectionstyle=style, arrowstyle="-|>", mutation_scale=9, color="black", linewidth=0.9
        )
    )


def draw_action_counts(counts: FloatArray) -> Figure:
    """Draw how many agents play each action, by step and state; counts is [H, S, A]."""
    figure = new_figure(6.2, 2.6)
    panels = figure.subplots(1, len(counts), sharey=True)
    places = np.arange(counts.shape[2])
    for step, axes in enumerate(panels):
        light_grid(axes)
        axes.bar(
            places - 0.14, counts[step, 1], width=0.28, color=BLUE, edgecolor="black", linewidth=0.5, label="unsafe"
        )
        axes.bar(places + 0.14, counts[step, 0], width=0.28, color=RED, edgecolor="black", linewidth=0.5, label="safe")
        axes.set_xticks(places, list(ACTIONS))
        axes.set_yticks([2, 4, 6, 8])
        axes.set_ylim(0, 8.6)
        axes.set_title(f"step $h = {step + 1}$")
        axes.set_xlabel("action")
    panels[0].set_ylabel("number of agents")
    panels[0].legend(loc="upper left")
    return figure


def draw_endings(endings: Mapping[str, Sequence[int]], kinds: Sequence[str]) -> Figure:
    """Draw the shares of the endings, one row for each way to draw a start."""
    figure = new_figure(6.4, 1.9)
    axes = figure.add_subplot()
    colours = (BLUE, RED, GREEN, GREY)
    for row, counts in enumerate(endings.values()):
        left, total = 0.0, sum(counts)
        for kind, count, colour in zip(kinds, counts, colours, strict=True):
            width = 100 * count / total
            axes.barh(row, width, left=left, color=colour, label=kind if row == 0 else None, edgecolor="white")
            if width >= 4:
                axes.text(left + width / 2, row, f"{width:.0f} %", ha="center", va="center", color="white")
            left += width
    axes.set_yticks(range(len(endings)), [f"{name}\n({sum(counts)} runs)" for name, counts in endings.items()])
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the runs in %")
    figure.legend(loc="outside upper center", ncols=len(kinds))
    return figure


def draw_four_cycle(hand: HandWitness) -> Figure:
    """Draw the four corners with the values of both agents, and what each mover gains."""
    figure = new_figure(4.6, 2.9)
    axes = figure.add_subplot()
    axes.axis("off")
    axes.set_xlim(-0.45, 1.45)
    axes.set_ylim(-0.35, 1.35)
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    for number, (x, y) in enumerate(corners):
        i, j = hand.values[number]
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "black", "linewidth": 0.8}
        axes.text(x, y, f"$V_i = {i:g}$\n$V_j = {j:g}$", ha="center", va="center", bbox=box)
    labels = [(0.5, -0.08, "top"), (1.06, 0.5, "left"), (0.5, 1.08, "bottom"), (-0.06, 0.5, "right")]
    for number, mover in enumerate((0, 1, 0, 1)):
        here, there = np.array(corners[number]), np.array(corners[(number + 1) % 4])
        _arrow(axes, tuple(here + 0.24 * (there - here)), tuple(there - 0.24 * (there - here)), bend=0.0)
        gain = hand.values[(number + 1) % 4, mover] - hand.values[number, mover]
        x, y, side = labels[number]
        text = f"${'ij'[mover]}$ gains ${gain:+g}$"
        horizontal = {"left": "left", "right": "right"}.get(side, "center")
        axes.text(x, y, text, ha=horizontal, va=side if horizontal == "center" else "center")
    axes.text(0.5, 0.5, f"around the cycle:\n${hand.residual:+g}$, not 0", ha="center", va="center", color=RED)
    return figure
