"""Every figure: how it looks, how it is drawn, and how it is saved: the same bytes for the same run.

The paper's colours and a serif face. In this order: style and files; the dual functions (Figures 1 and 6); gains and
cost by cycle (Figure 3); the grid and the ways that agents take on it (Figure 2); the congestion game's transitions and
actions (Figures 4 and 5), where its runs end, and its 4-cycle; bounds and what they are compared with.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import CMPGError
from cmpg.paper.claims import AscentRun, Curve, cost_curve, gain_curve
from cmpg.paper.runs import JointWay, Way, agent_ways
from cmpg.scenarios.paper import GRID_REWARDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cmpg.games.potential.check import FourCycle


BLUE, RED, GREEN, GREY = "#4477aa", "#ee6677", "#228833", "#777777"
AGENTS = (BLUE, RED, GREEN, "#ccbb44", "#66ccee", "#aa3377", "#555555", "#ee8866")
"""One colour for each agent; people who cannot distinguish red from green can distinguish them."""

SETTINGS: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 10.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "cmpg",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def require_matplotlib() -> None:
    """Raise, before anything is computed, where figures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CMPGError("figures need matplotlib, which is not installed. Install it with: pip install 'cmpg[plot]'")


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw and save in the paper's style; what the user has set is put back at the end."""
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def single_panel(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one panel, and thin lines behind its data."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    light_grid(axes)
    return figure, axes


def blank_panel(width: float, height: float, x: tuple[float, float], y: tuple[float, float]) -> tuple[Figure, Axes]:
    """Return a figure with one panel without axes, to draw shapes in."""
    figure = new_figure(width, height)
    axes = figure.add_subplot(xlim=x, ylim=y)
    axes.axis("off")
    return figure, axes


def light_grid(axes: Axes) -> None:
    """Put thin lines behind the data."""
    axes.grid(True, color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write name.svg and name.pdf, without dates."""
    svg, pdf = io.BytesIO(), io.BytesIO()  # matplotlib does not tell a full disk from a fault of its own
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    figure.set_layout_engine("none")  # the layout stands; to compute it twice takes as long as drawing
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "ModDate": None, "Creator": None})
    (folder / f"{name}.svg").write_bytes(svg.getvalue())
    (folder / f"{name}.pdf").write_bytes(pdf.getvalue())


@dataclass(frozen=True, eq=False)
class DualCurve:
    """The dual function on a grid of multipliers, and the values that it is compared with."""

    multipliers: FloatArray  # [points]
    values: FloatArray  # [points]
    primal: float
    dual: float
    best_multiplier: float


def draw_dual_function(curve: DualCurve) -> Figure:
    """Draw d(λ), its minimum, and the level of P*."""
    figure, axes = single_panel(4.2, 2.8)
    axes.plot(curve.multipliers, curve.values, color=BLUE, label=r"$d(\lambda)$")
    axes.plot(
        [curve.best_multiplier],
        [curve.dual],
        "o",
        color=RED,
        markersize=5,
        zorder=3,
        label=f"$D^{{*}} = {curve.dual:.4g}$",
    )
    axes.axhline(curve.primal, color=GREEN, linestyle="--", label=f"$P^{{*}} = {curve.primal:.4f}$")
    axes.set_xlim(0, 2)
    axes.set_ylim(min(curve.primal, curve.values.min()) - 0.1, curve.values.max() + 0.1)
    axes.set_xlabel(r"$\lambda$")
    axes.set_ylabel(r"$d(\lambda)$")
    axes.legend(loc="upper center", ncols=3)
    return figure


MAX_COLUMNS = 8
"""A legend has at most this many columns."""


def draw_runs(columns: Mapping[str, Sequence[AscentRun]], *, threshold: float) -> Figure:
    """Draw one column for each set of runs: gains above, cost below."""
    figure = new_figure(3.3 * len(columns), 4.1)
    axes = figure.subplots(2, len(columns), sharex="col", squeeze=False)
    for column, (title, runs) in enumerate(columns.items()):
        _draw_gains(axes[0, column], gain_curve(runs))
        _draw_cost(axes[1, column], cost_curve(runs), threshold)
        axes[0, column].set_title(f"{title}, {len(runs)} runs")
        axes[1, column].set_xlabel("cycle")
    axes[0, 0].set_ylabel("reward difference")
    axes[1, 0].set_ylabel("cost")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        lines,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), MAX_COLUMNS),
        columnspacing=1.0,
        handlelength=1.4,
    )
    return figure


def _draw_gains(axes: Axes, curve: Curve) -> None:
    light_grid(axes)
    cycles = np.arange(1, len(curve.mean) + 1)
    for agent in range(curve.mean.shape[1]):
        mean, error, colour = curve.mean[:, agent], curve.error[:, agent], AGENTS[agent % len(AGENTS)]
        axes.fill_between(cycles, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        axes.plot(cycles, mean, color=colour, marker=".", markersize=4, label=f"agent {agent + 1}")
    axes.set_ylim(bottom=0)


def _draw_cost(axes: Axes, curve: Curve, threshold: float) -> None:
    light_grid(axes)
    cycles = np.arange(1, len(curve.mean) + 1)
    axes.fill_between(cycles, curve.mean - curve.error, curve.mean + curve.error, color=GREEN, alpha=0.2, linewidth=0)
    axes.plot(cycles, curve.mean, color=GREEN, marker=".", markersize=4, label="cost")
    axes.axhline(threshold, color=RED, linestyle="--", label=rf"$\alpha = {threshold:g}$")
    axes.set_xlim(1, max(len(curve.mean), 2))
    axes.set_ylim(0, threshold * 1.35)
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="lower right")


SIDE = 4
DASHES: Any = ("solid", (0, (4, 1.5)), (0, (1.5, 1.2)), (0, (6, 1, 1.2, 1)))
MAX_SHOWN = 6
"""At most this many ways of one agent are drawn, the most probable ones."""


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

    lines = [(agent, way) for agent in (0, 1) for way in agent_ways(ways, agent)[:MAX_SHOWN]]
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


ACTIONS = "ABCD"


def draw_transitions() -> Figure:
    """Draw the two states, and which crowds lead where."""
    figure, axes = blank_panel(4.2, 2.0, (-0.9, 3.9), (-0.9, 1.35))
    axes.set_aspect("equal")
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
    figure = new_figure(6.4, 0.9 + 0.5 * len(endings))
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


def draw_four_cycle(hand: FourCycle) -> Figure:
    """Draw the four corners with the values of both agents, and what each mover gains."""
    figure, axes = blank_panel(4.6, 2.9, (-0.45, 1.45), (-0.35, 1.35))
    assert hand.values is not None, "they were computed"
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


def draw_regret(regret: FloatArray, order: float, *, rounds: FloatArray | None = None) -> Figure:
    """Draw the regret of every round, or after these numbers of rounds, added up, beside its order C√t."""
    figure, axes = single_panel(4.2, 2.7)
    rounds = np.arange(1.0, len(regret) + 1) if rounds is None else rounds
    axes.plot(rounds, regret, color=BLUE, label="regret")
    axes.plot(rounds, order * np.sqrt(rounds), color=GREY, linestyle="--", label=r"$C\sqrt{t}$")
    axes.set_xlabel("round $t$")
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right")
    return figure


WIDTH = 0.26
"""The width of one bar; the names are 1 apart."""


def draw_bars(rows: Mapping[str, Sequence[float]], names: Sequence[str], *, what: str, width: float) -> Figure:
    """Draw a group of bars for each name, one bar for each row; what is not finite is left out."""
    figure, axes = single_panel(width, 2.7)
    places = np.arange(len(names))
    for number, (label, values) in enumerate(rows.items()):
        heights = np.asarray(values, dtype=np.float64)
        shown = np.isfinite(heights)
        where = places + WIDTH * (number - (len(rows) - 1) / 2)
        axes.bar(where[shown], heights[shown], width=WIDTH * 0.92, color=(RED, BLUE, GREEN)[number], label=label)
        for x, height in zip(where[shown], heights[shown], strict=True):
            # Zero has no place on a logarithmic axis: it is written at its foot.
            y, across = (height * 1.12, axes.transData) if height > 0 else (0.01, axes.get_xaxis_transform())
            axes.text(x, y, _short(height), ha="center", va="bottom", fontsize=7, transform=across)
    axes.set_yscale("log")
    axes.set_ylim(top=axes.get_ylim()[1] * 6)
    axes.set_xticks(places, list(names))
    axes.legend(ncols=len(rows), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.set_ylabel(what)
    return figure


def _short(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number:.1e}"
