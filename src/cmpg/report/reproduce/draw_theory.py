"""Moves against their bounds, and samples as printed, corrected and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cmpg.report.reproduce.style import BLUE, GREEN, RED, light_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cmpg.report.reproduce.theory import MoveCount

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
