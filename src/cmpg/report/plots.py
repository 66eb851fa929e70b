"""Figures of results for papers and notebooks, drawn by matplotlib on axes that the caller may give.

`plot` is the verb. What it draws of a result:

    potential   Φ − Φ(start) after each iteration of the ascent, a staircase
    gains       what each agent could gain at each iteration, on a logarithmic axis
    schedule    the probability that an agent does something at a step: uses a resource, or takes an action
    loads       the expected load of each resource at each step
    map         the likeliest way of each agent with a place, or the expected load of each road

Of trials of learning it draws how far their bounds are apart against their samples, of a sweep the welfare along its
longest option of numbers. Nothing is set globally: fonts, sizes and colours are those of matplotlib at the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.equilibrium.result import Result, Step
from cmpg.errors import CMPGError, UnsupportedError
from cmpg.files.run_folder import game_of
from cmpg.games.game import Game, SharedResources
from cmpg.learning.trials import Trial
from cmpg.report.tables import rows_of
from cmpg.sweeps.rows import Sweep
from cmpg.sweeps.worth import curves, numeric_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 60
"""A schedule of more rows than this shows the first of them, and says so."""


def plot(thing: Result | Sweep | Sequence[Trial], what: str = "", *, ax: Axes | None = None) -> Axes:
    """Draw a result, trials of learning or a sweep.

    Parameters
    ----------
    thing
        What `solve`, `learning.trials` or `sweep` returned.
    what
        Of a result: potential, gains, schedule, loads or map; a map if there is one, and else the schedule, if omitted.
    ax
        The matplotlib axes to draw on; those of a new figure if omitted.

    Returns
    -------
    Axes
        To add titles to, or to save: `ax.figure.savefig("figure.pdf")`.

    Raises
    ------
    CMPGError
        matplotlib is not installed, or there is nothing of that kind to draw.

    Examples
    --------
    >>> import cmpg
    >>> result = cmpg.solve(cmpg.scenarios.charging(capacity=8))
    >>> ax = cmpg.plot(result, "loads")
    >>> ax.get_ylabel()
    'expected load (kW)'
    >>> cmpg.plot(result, "map")
    Traceback (most recent call last):
        ...
    cmpg.errors.UnsupportedError: a LocalGame has no map: its scenario states no places. Plot the schedule.
    """
    if isinstance(thing, Result):
        if what and what not in PLOTS:
            raise CMPGError(f"there is no plot {what!r} of a result; there are {', '.join(PLOTS)}.")
        draw = PLOTS[what or ("map" if game_of(thing).names.legend.places else "schedule")]
        return draw(thing, _axes(ax))
    if what:
        raise CMPGError(f"what is {what!r}; only a Result has several plots. Leave it out.")
    if isinstance(thing, Sweep):
        return _sweep(thing, _axes(ax))
    given: object = thing  # which callers without a type checker get wrong
    found = [each for each in given if isinstance(each, Trial)] if isinstance(given, list | tuple) else []
    if found:
        return _trials(found, _axes(ax))
    raise CMPGError(
        f"a {type(thing).__name__} has no plot; a Result, a Sweep, or a list of learning.Trial is required."
    )


def _axes(given: Axes | None) -> Axes:
    if given is not None:
        return given
    try:
        from matplotlib import pyplot
    except ImportError:
        raise CMPGError(
            "plots are drawn by matplotlib, which is not installed. Install it with: pip install 'cmpg[plot]'"
        ) from None
    return pyplot.subplots(layout="constrained")[1]


def _ascent(result: Result) -> list[Step]:
    """Return the iterations of the ascent, or raise if there are none."""
    steps = [step for step in result.trace if step.multipliers is None]
    if not steps:
        raise CMPGError("the result has no iterations to draw: it was found without an ascent.")
    return steps


def _potential(result: Result, ax: Axes) -> Axes:
    steps = _ascent(result)
    ax.step([step.iteration for step in steps], [step.potential for step in steps], where="post", marker=".")
    ax.set(xlabel="iteration", ylabel="Φ − Φ(start)")
    return ax


def _gains(result: Result, ax: Axes) -> Axes:
    steps = _ascent(result)
    names, gains = game_of(result).names, np.array([step.gains for step in steps])  # [iterations, n]
    positive = np.where(gains > 0, gains, np.nan)  # a logarithmic axis has no zero
    few = positive.shape[1] <= 8
    for i in range(positive.shape[1]):
        ax.plot([step.iteration for step in steps], positive[:, i], marker=".", label=names.agent(i) if few else None)
    ax.axhline(result.epsilon, color="grey", linestyle="--", label="ε")
    ax.set(xlabel="iteration", ylabel="gain", yscale="log")
    ax.legend()
    return ax


def _schedule(result: Result, ax: Axes) -> Axes:
    game = game_of(result)
    rows, table, kind = _shares(game, result)
    image = ax.imshow(table[:MAX_ROWS], aspect="auto", vmin=0, vmax=max(1.0, float(table.max())), cmap="Blues")
    ax.set_yticks(range(len(rows[:MAX_ROWS])), rows[:MAX_ROWS], fontsize="x-small" if len(rows) > 12 else "medium")
    hidden = f" (the first {MAX_ROWS} of {len(rows)})" if len(rows) > MAX_ROWS else ""
    _name_steps(ax, game, table.shape[1])
    ax.set_title(kind + hidden, loc="left", fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label="probability" if table.max() <= 1 else "expected number")
    return ax


def _shares(game: Game, result: Result) -> tuple[list[str], FloatArray, str]:
    """Return what is done at each step: names of rows, [rows, H], and what a row is."""
    names, agents = game.names, range(game.num_agents)
    if isinstance(game, SharedResources):
        shared = game.at(result.policy.floats())
        used = np.array([shared.usage(i).sum(axis=1) for i in agents])
        return [names.agent(i) for i in agents], used, f"use of a {names.legend.resource}"
    position, rows, shares = game.at(result.policy.floats()), [], []
    for i in agents:
        visits = occupancy(position.induced_cmdp(i), position.policy[i]).sum(axis=1)  # [H, A_i]
        shares.append((visits / visits.sum(axis=1, keepdims=True)).T)
        rows += [f"{names.agent(i)}: {action}" for action in names.all_actions(i, visits.shape[1])]
    return rows, np.concatenate(shares), "action"


def _name_steps(ax: Axes, game: Game, count: int) -> None:
    """Label the steps by their names, so many that they do not collide."""
    places = range(0, count, max(1, -(-count // 8)))
    ax.set_xticks(places, [game.names.step(h) for h in places])
    ax.set_xlabel(game.names.legend.step)


def _loads(result: Result, ax: Axes) -> Axes:
    game = game_of(result)
    if not isinstance(game, SharedResources):
        raise UnsupportedError(type(game).__name__, "has no loads: no resources are shared", "Plot the schedule.")
    position, legend = game.at(result.policy.floats()), game.names.legend
    loads = np.sum([position.usage(i) for i in range(game.num_agents)], axis=0) * legend.load.each  # [H, E]
    if legend.roads is not None or loads.shape[1] > 8:  # the busiest, or the lines could not be told apart
        chosen = np.argsort(-loads.max(axis=0), kind="stable")[:8]
    else:
        chosen = np.arange(loads.shape[1])
    for e in chosen:
        ax.step(range(len(loads)), loads[:, e], where="mid", label=game.all_resource_names[e])
    _name_steps(ax, game, len(loads))
    ax.set_ylabel("expected load" + (f" ({legend.load.unit})" if legend.load.unit else ""))
    ax.set_ylim(bottom=0)
    if len(chosen) > 1:
        ax.legend(fontsize="small")
    return ax


def _map(result: Result, ax: Axes) -> Axes:
    game = game_of(result)
    legend = game.names.legend
    if not legend.places:
        raise UnsupportedError(type(game).__name__, "has no map: its scenario states no places", "Plot the schedule.")
    if legend.roads is not None and isinstance(game, SharedResources):
        _roads(game, result, ax)
    else:
        _ways(game, result, ax)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _roads(game: SharedResources, result: Result, ax: Axes) -> None:
    """Draw each road as wide as its expected load, both directions beside each other."""
    from matplotlib.collections import LineCollection

    position, legend = game.at(result.policy.floats()), game.names.legend
    assert legend.roads is not None
    loads = np.sum([position.usage(i).sum(axis=0) for i in range(game.num_agents)], axis=0)  # [E]
    nodes, ends = np.array(legend.places), np.array(legend.roads.ends) - 1
    tails, heads = nodes[ends[:, 0]], nodes[ends[:, 1]]
    along = heads - tails
    beside = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.maximum(np.hypot(*along.T), 1e-300)[:, None]
    beside *= 0.012 * float(np.ptp(nodes, axis=0).max())
    segments = np.stack([tails + beside, heads + beside], axis=1)
    lines = LineCollection(list(segments), linewidths=0.5 + 4 * loads / max(loads.max(), 1e-300), cmap="viridis")
    lines.set_array(loads * legend.load.each)
    ax.add_collection(lines)
    ax.plot(*nodes.T, "o", color="white", markeredgecolor="grey", markersize=5)
    ax.autoscale()
    unit = f" ({legend.load.unit})" if legend.load.unit else ""
    ax.figure.colorbar(lines, ax=ax, label=f"expected load{unit}", shrink=0.7)


def _ways(game: Game, result: Result, ax: Axes) -> None:
    """Draw the likeliest way of each agent, from a disc to a diamond."""
    legend = game.names.legend
    cells = np.array(legend.places)
    ax.plot(*cells.T, "s", color="0.9", markersize=4, zorder=0)
    ways: dict[str, list[tuple[float, float]]] = {}
    for row in rows_of(result, "plan"):
        ways.setdefault(row[legend.agent], []).append((row["x"], row["y"]))
    for name, way in ways.items():
        [line] = ax.plot(*np.array(way).T, label=name)
        ax.plot(*way[0], "o", color=line.get_color())
        ax.plot(*way[-1], "D", color=line.get_color(), fillstyle="none", markersize=9)
    ax.invert_yaxis()  # rows of a map count downwards
    if len(ways) <= 8:
        ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _trials(found: Sequence[Trial], ax: Axes) -> Axes:
    for each in found:
        known = [(at.samples, at.gap) for at in each.curve if at.samples > 0 and at.gap > 0 and np.isfinite(at.gap)]
        if known:
            ax.plot(*np.array(known).T, marker=".", label=f"seed {each.index}")
    ax.axhline(found[0].result.epsilon, color="grey", linestyle="--", label="ε")
    ax.set(xlabel="samples", ylabel="width of the bounds", xscale="log", yscale="log")
    ax.legend(fontsize="small")
    return ax


def _sweep(found: Sweep, ax: Axes) -> Axes:
    options = sorted(numeric_options(found), key=lambda name: -len(found.grid.axes[name]))
    if not options:
        raise CMPGError("the sweep has no option of numbers to draw the welfare along.")
    for curve in curves(found, options[0]):
        label = ", ".join(f"{name} {value}" for name, value in curve.others.items())
        [line] = ax.plot(curve.x, curve.welfare, marker="o", label=label or None)
        if curve.knee is not None:
            ax.plot(
                curve.x[curve.knee], curve.welfare[curve.knee], "o", markersize=13, fillstyle="none", c=line.get_color()
            )
    ax.set(xlabel=options[0], ylabel="welfare")
    if len(found.grid.axes) > 1:
        ax.legend(fontsize="small")
    return ax


PLOTS: dict[str, Callable[[Result, Axes], Axes]] = {
    "potential": _potential,
    "gains": _gains,
    "schedule": _schedule,
    "loads": _loads,
    "map": _map,
}
"""What can be drawn of a result, by name."""
