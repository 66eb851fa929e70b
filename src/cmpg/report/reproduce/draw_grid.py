"""The grid with its rewards, and the ways that agents take on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cmpg.report.reproduce.grid_paths import JointWay, Way, agent_ways
from cmpg.report.reproduce.style import AGENTS, new_figure
from cmpg.scenarios.paper import GRID_REWARDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
