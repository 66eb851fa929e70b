"""Gains and cost by cycle, as the paper plots them: mean over runs, with the standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cmpg.report.reproduce.runs import Curve, Run, cost_curve, gain_curve
from cmpg.report.reproduce.style import AGENTS, GREEN, RED, light_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
