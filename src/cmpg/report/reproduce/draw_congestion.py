"""The congestion game: its transitions, its action distributions, where its runs end, and the 4-cycle by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cmpg.checks import FloatArray
from cmpg.report.reproduce.style import BLUE, GREEN, GREY, RED, light_grid, new_figure
from cmpg.report.reproduce.witness import HandWitness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
