"""The grid world: the figure's policies, the runs, and what the text and the published experiment do differently.

The text lets policies see the joint state, the published experiment lets each agent see its own cell. Both are run. A
start is either of cost 0, as in the text (one agent waits, the other moves at random), or random and feasible.

The grid with its rewards, and the ways that agents take on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cmpg.duality.dual_function import DualityReport, StrongDuality, analyse_duality
from cmpg.duality.maximisers import DualMaximiser
from cmpg.equilibrium.start import feasible_start
from cmpg.games.local.to_joint import lift_policy
from cmpg.paper.claims import (
    Claim,
    Picture,
    Section,
    added,
    agreed,
    at_most,
    close,
    listed,
    written,
)
from cmpg.paper.counter_examples import NASH, ROOM, gains_of
from cmpg.paper.figures import AGENTS, new_figure
from cmpg.paper.grid_endings import ending_claim, feasibility_claim, own_cell_claims, run_claims
from cmpg.paper.grid_runs import (
    ALPHA,
    OPTIMUM,
    GridRuns,
    JointWay,
    Way,
    agent_ways,
    collision_probability,
    figure_policy,
    joint_state_gaps,
    joint_ways,
    run_grid_worlds,
    shown_ways,
)
from cmpg.paper.runs import Setting
from cmpg.scenarios.paper import GRID_REWARDS, grid_world_local

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FREE_CELLS = (0, 11)
"""Start and target, (0, 0) and (3, 2): standing there together costs nothing."""


@dataclass(frozen=True, eq=False)
class GridStudy:
    """The section, and the runs on which other sections build."""

    section: Section
    runs: GridRuns


def study_grid_world(setting: Setting) -> GridStudy:
    """Compute everything that the paper says about its grid world."""
    found = run_grid_worlds(setting)
    duality = analyse_duality(found.joint, limit=8, rng=setting.streams(1)[0])
    infeasible = max(duality.maximisers.found, key=lambda each: float(each.costs[0]))
    shown, own = _shown(found)
    claims = (
        *_policy_claims(found, duality, infeasible=infeasible),
        *run_claims(found),
        ending_claim(found),
        *own_cell_claims(found, gaps=joint_state_gaps(setting, found), rng=setting.streams(1)[0]),
        feasibility_claim(found, setting.effort.primal_dual_steps),
    )
    panels = {
        "CA-CMPG, joint-state policies": shown,
        "CA-CMPG, own-cell policies": own,
        "The dual's infeasible policy": joint_ways(found.joint, infeasible.policy),
    }
    section = Section(
        title="The grid world",
        note="Two agents on a 4×4 grid, six steps, a common reward, and a budget of 0.1 collisions.",
        claims=claims,
        pictures=_pictures(found, panels),
    )
    return GridStudy(section, found)


def _pictures(found: GridRuns, panels: dict[str, tuple[JointWay, ...]]) -> tuple[Picture, ...]:
    from cmpg.paper.figures import draw_runs
    from cmpg.paper.grid_world import draw_grid_policies

    number = len(found.joint_waiting)
    texts = "Gains per agent and cycle, and cost against α: mean and standard error over"
    waiting = {"joint-state policies": found.joint_waiting, "own-cell policies": found.local_waiting[:number]}
    drawn = {"joint-state policies": found.joint_random, "own-cell policies": found.local_random}
    limit = float(found.joint.thresholds[0])
    return (
        Picture(
            "grid-world-policies",
            "The grid with its rewards, the ways that CA-CMPG settles on with their probabilities, in both information "
            "structures, and a policy that the dual may return: it always collides.",
            partial(draw_grid_policies, panels),
        ),
        Picture(
            "grid-world-runs",
            f"{texts} {number} runs from starts of cost 0.",
            partial(draw_runs, waiting, threshold=limit),
        ),
        Picture(
            "grid-world-runs-random-starts",
            f"{texts} {number} runs from random feasible starts.",
            partial(draw_runs, drawn, threshold=limit),
        ),
    )


def _policy_claims(found: GridRuns, duality: DualityReport, *, infeasible: DualMaximiser) -> list[Claim]:
    return [
        *_figure_claims(found),
        _shown_claim(found),
        added(
            "grid-duality",
            "P*, D* and λ* of the grid world",
            ours=f"P* = {written(duality.primal.lower)}, D* = {written(duality.dual.value)}, "
            f"λ* = {written(duality.dual.multipliers[0])}: {_holds(duality)}",
            why="Strong duality holds here, and still the dual may return an infeasible policy.",
            numbers=(duality.primal.lower, duality.dual.value, duality.dual.multipliers[0]),
        ),
        agreed(
            "grid-dual-policy",
            "solving the dual may return a policy that always has one collision",
            paper="cost 1, infeasible",
            ours=f"a maximiser of the dual, worth {written(infeasible.value)} at cost {written(infeasible.costs[0])}",
            holds=close(infeasible.value, 24.0) and close(infeasible.costs[0], 1.0) and not infeasible.feasible,
            numbers=(infeasible.value, infeasible.costs[0]),
        ),
        _least_cost(found),
    ]


def _figure_claims(found: GridRuns) -> list[Claim]:
    policy = figure_policy(found.local)
    roomy = grid_world_local(threshold=ALPHA + ROOM)
    position, gap = roomy.at(policy), float(gains_of(roomy, policy).max())
    worth, cost = float(position.values.sum()), float(position.costs[0])
    ways = joint_ways(found.joint, lift_policy(found.local, policy))
    collides = collision_probability(ways, free=FREE_CELLS)
    return [
        agreed(
            "figure-policy",
            "the figure's policies: agent 1 along the bottom; agent 2 through (1, 0) with 0.1, through (0, 1) with 0.9",
            paper="what CA-CMPG returns",
            ours=f"worth {written(worth)} at cost {written(cost)}; a Nash policy: gains {at_most(gap, NASH)}",
            holds=close(worth, OPTIMUM) and close(cost, ALPHA) and gap <= NASH,
            numbers=(worth, cost, gap),
        ),
        agreed(
            "figure-collisions",
            "with it the agents collide once, with probability 0.1",
            paper="0.1",
            ours=written(collides),
            holds=close(collides, 0.1),
            numbers=(collides,),
        ),
    ]


def _shown(found: GridRuns) -> tuple[tuple[JointWay, ...], tuple[JointWay, ...]]:
    """The ways that are drawn: of a joint-state ending, and of an own-cell one."""
    joint, own = (*found.joint_waiting, *found.joint_random), (*found.local_waiting, *found.local_random)
    return shown_ways(found.joint, found.local, joint), shown_ways(found.joint, found.local, own)


def _holds(duality: DualityReport) -> str:
    return "strong duality holds" if duality.strong_duality is StrongDuality.HOLDS else "strong duality is open"


def _shown_claim(found: GridRuns) -> Claim:
    """How the agents leave the start in the runs that are drawn."""
    pairs = []
    for ways in _shown(found):
        right = [_first_step_right(ways, agent) for agent in (0, 1)]
        pairs.append(sorted(right, reverse=True))
    return agreed(
        "returned-policy",
        "CA-CMPG returns that policy, or one that differs in the way and not in the odds: one agent right, the other "
        "right with probability 0.1",
        paper="1 and 0.1",
        ours=f"joint-state: {listed(pairs[0])}; own-cell: {listed(pairs[1])}",
        holds=all(close(one, 1.0, tolerance=1e-6) and close(two, 0.1, tolerance=1e-6) for one, two in pairs),
        why="Of the runs that end at 23.1, the one with the fewest ways is shown.",
        numbers=(*pairs[0], *pairs[1]),
    )


def _first_step_right(ways: tuple[JointWay, ...], agent: int) -> float:
    return sum(way.probability for way in agent_ways(ways, agent) if way.cells[1:2] == (1,))


def _least_cost(found: GridRuns) -> Claim:
    start = feasible_start(found.joint)
    return added(
        "grid-least-cost",
        "the least cost, and the slack that it leaves",
        ours=f"cost {written(ALPHA - start.slack)}, slack {written(start.slack)}",
        why="Waiting at the start costs nothing.",
        numbers=(ALPHA - start.slack, start.slack),
    )


SIDE = 4
DASHES: Any = ("solid", (0, (4, 1.5)), (0, (1.5, 1.2)), (0, (6, 1, 1.2, 1)))
MOST_SHOWN = 6


def draw_grid_policies(panels: Mapping[str, tuple[JointWay, ...]]) -> Figure:
    """Draw the empty grid, and one panel for each policy."""
    figure = new_figure(2.15 * (1 + len(panels)), 2.75)
    axes = figure.subplots(1, 1 + len(panels))
    _draw_cells(axes[0])
    _draw_rewards(axes[0])
    axes[0].set_title("The grid and its rewards")
    for panel, (title, ways) in zip(axes[1:], panels.items(), strict=True):
        _draw_cells(panel)
        _draw_ways(panel, ways)
        panel.set_title(title if ways else f"{title}\n(no run ended at 23.1)")
    return figure


def _draw_cells(axes: Axes) -> None:
    for line in range(SIDE + 1):
        axes.plot([0, SIDE], [line, line], color="black", linewidth=0.7)
        axes.plot([line, line], [0, SIDE], color="black", linewidth=0.7)
    axes.set_aspect("equal")
    axes.set_xlim(-0.05, SIDE + 0.05)
    axes.set_ylim(-0.05, SIDE + 0.05)
    axes.axis("off")


def _draw_rewards(axes: Axes) -> None:
    axes.text(0.5, 0.5, "Start", ha="center", va="center")
    for (x, y), reward in GRID_REWARDS.items():
        axes.text(x + 0.5, y + 0.5, f"+{reward:g}", ha="center", va="center")


def _draw_ways(axes: Axes, ways: tuple[JointWay, ...]) -> None:
    from matplotlib.lines import Line2D

    lines = [(agent, way) for agent in (0, 1) for way in agent_ways(ways, agent)[:MOST_SHOWN]]
    entries, seen = [], [0, 0]
    for number, (agent, way) in enumerate(lines):
        # Ways that share cells run side by side.
        offset = 0.11 * (number - (len(lines) - 1) / 2)
        dash = DASHES[min(seen[agent], len(DASHES) - 1)]
        seen[agent] += 1
        _draw_way(axes, way, offset=offset, colour=AGENTS[agent], dash=dash)
        label = f"agent {agent + 1}: {way.probability:.3g}"
        entries.append(Line2D([], [], color=AGENTS[agent], linestyle=dash, label=label))
    if entries:
        axes.legend(
            handles=entries, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, handlelength=2.2, columnspacing=1.2
        )


def _draw_way(axes: Axes, way: Way, *, offset: float, colour: str, dash: Any) -> None:
    x = [cell % SIDE + 0.5 + offset for cell in way.cells]
    y = [cell // SIDE + 0.5 + offset for cell in way.cells]
    axes.plot(x, y, color=colour, linestyle=dash, solid_joinstyle="round")
    if len(x) > 1:
        style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
        axes.annotate("", xy=(x[-1], y[-1]), xytext=(x[-2], y[-2]), arrowprops=style)
