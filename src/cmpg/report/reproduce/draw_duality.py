"""The dual function, with P* and D*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.report.reproduce.style import BLUE, GREEN, RED, light_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cmpg.report.reproduce.counter_examples import DualCurve


def draw_dual_function(curve: DualCurve) -> Figure:
    """Draw d(λ), its minimum, and the level of P*."""
    figure = new_figure(4.2, 2.8)
    axes = figure.add_subplot()
    light_grid(axes)
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
