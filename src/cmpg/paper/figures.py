"""How figures look and how they are saved: the paper's colours, a serif face, the same bytes for the same run.

Gains and cost by cycle, as the paper plots them: mean over runs, with the standard error.

Moves against their bounds, and samples as printed, corrected and drawn.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.errors import CMPGError
from cmpg.paper.runs import Curve, Run, cost_curve, gain_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cmpg.paper.theory import MoveCount


BLUE, RED, GREEN, GREY = "#4477aa", "#ee6677", "#228833", "#777777"
AGENTS = (BLUE, RED, GREEN, "#ccbb44", "#66ccee", "#aa3377", "#555555", "#ee8866")
"""One colour for each agent, told apart by people who do not see red and green alike."""

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


def light_grid(axes: Axes) -> None:
    """Put thin lines behind the data."""
    axes.grid(True, color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write name.svg and name.pdf, without dates."""
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    figure.set_layout_engine("none")  # the layout stands; to compute it twice takes as long as drawing
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "ModDate": None, "Creator": None})


MOST_COLUMNS = 8


def draw_runs(columns: Mapping[str, Sequence[Run]], *, threshold: float) -> Figure:
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
        ncols=min(len(labels), MOST_COLUMNS),
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


WIDTH = 0.26


def draw_moves(counts: Sequence[MoveCount]) -> Figure:
    """Draw, for every game, T as printed, T with the true ranges, and the moves that were used."""
    rows: dict[str, list[float]] = {
        "$T$ as printed": [each.printed for each in counts],
        "$T$ with the true ranges": [each.corrected for each in counts],
        "moves used": [each.used for each in counts],
    }
    figure = new_figure(5.6, 2.6)
    axes = figure.add_subplot()
    _draw_bars(axes, rows, [each.name for each in counts])
    axes.set_ylabel("moves")
    return figure


def draw_samples(rows: Mapping[str, Sequence[float]], names: Sequence[str]) -> Figure:
    """Draw the samples per entry of several problems, as printed, corrected, and where known adaptive."""
    figure = new_figure(6.4, 2.8)
    axes = figure.add_subplot()
    _draw_bars(axes, rows, names)
    axes.set_ylabel("samples of each (h, s, a)")
    return figure


def _draw_bars(axes: Axes, rows: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    light_grid(axes)
    places = np.arange(len(names))
    for number, (label, values) in enumerate(rows.items()):
        heights = np.asarray(values, dtype=np.float64)
        shown = np.isfinite(heights)
        where = places + WIDTH * (number - (len(rows) - 1) / 2)
        axes.bar(where[shown], heights[shown], width=WIDTH * 0.92, color=(RED, BLUE, GREEN)[number], label=label)
        for x, height in zip(where[shown], heights[shown], strict=True):
            axes.text(x, height * 1.12, _short(height), ha="center", va="bottom", fontsize=7)
    axes.set_yscale("log")
    axes.set_ylim(top=axes.get_ylim()[1] * 6)
    axes.set_xticks(places, list(names))
    axes.legend(ncols=len(rows), loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number:.1e}"
