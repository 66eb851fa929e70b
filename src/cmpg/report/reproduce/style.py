"""How figures look and how they are saved: the paper's colours, a serif face, the same bytes for the same run."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmpg.checks import CMPGError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
