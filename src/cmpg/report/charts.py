"""The charts of the page, as figures in plain JSON, in words that `charts.js` reads.

Colours are variables of the page, such as `var(--series-1)`, which mean another colour in light and in dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.result import Result, Step
from cmpg.games.game import Names
from cmpg.report.wording import readable

if TYPE_CHECKING:
    from cmpg.equilibrium.sensitivity import Resolved, ThresholdCurve

MAX_SERIES = 4
"""One line per agent up to this many agents; above, a line for who moves and dots for all."""

MAX_POINTS = 2000
"""A longer trace is thinned evenly for drawing; its first and last iterations stay."""

MAX_PLACES = 12

MAX_LEGEND = 8
"""Seeds that a legend names; more would have the same colours, and leave no room for the chart."""

MAX_DOTS = 40
"""A line through more points than this has no dots on it."""


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure with its words."""

    name: str
    title: str
    caption: str
    figure: dict[str, Any]

    @property
    def height(self) -> int | None:
        """In pixels, where the figure asks for one."""
        height: int | None = self.figure["layout"].get("height")
        return height


@dataclass(frozen=True, eq=False)
class ChartGroup:
    """Charts that are read together, below one title."""

    title: str
    caption: str
    charts: list[Chart]


def _label(name: str) -> str:
    """Make a name safe in a figure, whose texts may hold tags."""
    return escape(name, quote=False)


def _colour(index: int) -> str:
    return f"var(--series-{index % 8 + 1})"


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": title, **more}


def _figure(data: list[dict[str, Any]], *, x: dict[str, Any], y: dict[str, Any], **layout: Any) -> dict[str, Any]:
    # A legend of one entry says nothing that the title does not.
    several = sum(1 for each in data if each.get("name") and each.get("showlegend", True)) > 1
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "showlegend": several, **layout}}


def _line(x: Any, y: Any, *, name: str, colour: str, **more: Any) -> dict[str, Any]:
    line = {"color": colour, "width": 2, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines", "x": _plain(x), "y": _plain(y), "name": name, "line": line, **more}


def _plain(values: Any) -> list[float | None]:
    """Return numbers as JSON knows them: what is not finite is left open."""
    return [float(value) if np.isfinite(value) else None for value in np.asarray(values, dtype=np.float64)]


def _limit_line(x: Sequence[float], limit: float, name: str) -> dict[str, Any]:
    ends = [float(x[0]), float(x[-1])] if len(x) > 1 else [float(x[0]) - 0.5, float(x[0]) + 0.5]
    return _line(ends, [limit, limit], name=name, colour="var(--limit)", line={"dash": "dash", "width": 1.5})


def _thinned(trace: Sequence[Step]) -> list[Step]:
    if len(trace) <= MAX_POINTS:
        return list(trace)
    return [trace[int(place)] for place in np.linspace(0, len(trace) - 1, MAX_POINTS)]


def gains_chart(trace: Sequence[Step], agents: Sequence[str], *, epsilon: float) -> Chart:
    """Draw what each agent could gain at each iteration, on a logarithmic axis."""
    steps = _thinned(trace)
    x = [step.iteration for step in steps]
    table = np.array([step.gains for step in steps])
    shown = np.where(table > 0, table, np.nan)
    dots = _dots(len(x)) | {"connectgaps": False}
    if len(agents) <= MAX_SERIES:
        lines = [_line(x, shown[:, i], name=_label(name), colour=_colour(i), **dots) for i, name in enumerate(agents)]
    else:
        moved = [step.gain if step.gain > 0 else np.nan for step in steps]
        lines = [_all_gains(x, shown), _line(x, moved, name="who moved", colour=_colour(0), **dots)]
    lines.append(_limit_line(x, epsilon / 2, "ε/2"))
    caption = (
        "What an agent could gain by its best response, at each iteration. More than ε/2 is enough to move; gains of "
        "zero are below the axis."
    )
    figure = _figure(lines, x=_counted("iteration", len(trace)), y=_decades("gain", np.append(shown, epsilon / 2)))
    return Chart("gains", "Gains", caption, figure)


def _all_gains(x: Sequence[int], gains: FloatArray) -> dict[str, Any]:
    """Draw the gains of all agents that were queried, as small dots."""
    rows, agents = np.nonzero(np.isfinite(gains))
    chosen = slice(None, None, max(1, len(rows) // MAX_POINTS))
    along, up = np.asarray(x)[rows][chosen], gains[rows, agents][chosen]
    marker = {"size": 4, "color": "var(--limit)", "opacity": 0.6}
    return _line(along, up, name="all agents", colour="var(--limit)", mode="markers", marker=marker)


def _dots(points: int) -> dict[str, Any]:
    """Return the style of a line: with dots, unless they would hide it."""
    return {"mode": "lines+markers", "marker": {"size": 6}} if points <= MAX_DOTS else {}


def _decades(title: str, values: FloatArray) -> dict[str, Any]:
    """Return a logarithmic axis for these values, with powers of ten as its ticks, or 1, 2 and 5 between them."""
    known = values[np.isfinite(values) & (values > 0)]
    low, high = (np.log10(known.min()), np.log10(known.max())) if len(known) else (0.0, 1.0)
    edge = 0.06 * max(high - low, 0.5)
    ends = [float(low - edge), float(high + edge)]
    apart = max(1, round((high - low) / 5))
    powers = [power for power in range(int(np.floor(ends[0])), int(np.ceil(ends[1])) + 1) if power % apart == 0]
    factors = (1,) if high - low >= 2 else (1, 2, 5)
    ticks = [(factor, power) for power in powers for factor in factors]
    inside = [tick for tick in ticks if ends[0] <= np.log10(tick[0]) + tick[1] <= ends[1]]
    if len(inside) < 2 and ends[1] - ends[0] < 1:  # so short a piece of a decade has ticks of its own, in two digits
        between = sorted({float(f"{10**each:.2g}") for each in np.linspace(ends[0], ends[1], 5)[1:4]})
        return _axis(title, type="log", range=ends, tickvals=between, ticktext=[f"{each:g}" for each in between])
    return _axis(
        title,
        type="log",
        range=ends,
        tickvals=[factor * 10.0**power for factor, power in inside],
        ticktext=[_tick(factor, power) for factor, power in inside],
    )


def _tick(factor: int, power: int) -> str:
    if -3 <= power <= 3:
        return f"{factor * 10.0**power:g}"
    return f"{factor}·10<sup>{power}</sup>" if factor > 1 else f"10<sup>{power}</sup>"


def _counted(title: str, count: int, *, first: int = 1) -> dict[str, Any]:
    """Return an axis of whole numbers, with ticks at each or at round ones."""
    wanted = count / 8
    apart = next(unit * 10**power for power in range(12) for unit in (1, 2, 5) if unit * 10**power >= wanted)
    return _axis(title, tick0=first if apart == 1 else 0, dtick=apart)


def cost_charts(
    steps: Sequence[Step], constraints: Sequence[str], thresholds: FloatArray, *, along: str
) -> list[Chart]:
    """Draw each cost against its threshold at each iteration, or round."""
    thinned = _thinned(steps)
    x = [step.iteration for step in thinned]
    # Rounds look for a price, and may spend too much on the way; the ascent never does.
    kept = (
        "Every policy on the way meets the threshold." if along == "iteration" else "A round may exceed the threshold."
    )
    charts = []
    for j, name in enumerate(constraints):
        spent = [step.costs[j] for step in thinned]
        lines = [
            _line(x, spent, name="cost", colour=_colour(0), **_dots(len(x))),
            _limit_line(x, float(thresholds[j]), "threshold"),
        ]
        figure = _figure(lines, x=_counted(along, len(steps)), y=_axis("cost", rangemode="tozero"))
        charts.append(Chart(f"cost-{along}-{j}", f"Cost: {name}", kept, figure))
    return charts


def price_chart(rounds: Sequence[Step], constraints: Sequence[str]) -> Chart:
    """Draw the price of each constraint on which all agents are asked to agree, by round."""
    thinned = _thinned(rounds)
    x = [step.iteration for step in thinned]
    lines = []
    for j, name in enumerate(constraints[:MAX_SERIES]):
        paid = [np.nan if step.multipliers is None else step.multipliers[j] for step in thinned]
        lines.append(_line(x, paid, name=_label(name), colour=_colour(j), **_dots(len(x))))
    caption = "All agents pay one price for a unit: higher where a threshold was exceeded, lower where much was left."
    figure = _figure(lines, x=_counted("round", len(rounds)), y=_axis("price", rangemode="tozero"))
    return Chart("prices", "Search for a common price", caption, figure)


def potential_chart(trace: Sequence[Step]) -> Chart:
    """Draw the potential as a staircase: each move raises it by what the mover gained."""
    steps = _thinned(trace)
    line = _line(
        [step.iteration for step in steps],
        [step.potential for step in steps],
        name="potential",
        colour=_colour(0),
        line={"shape": "hv"},
        **_dots(len(steps)),
    )
    caption = "The sum of the gains so far. In a potential game this is the potential, less that of the start."
    figure = _figure([line], x=_counted("iteration", len(trace)), y=_axis("Φ − Φ(start)", rangemode="tozero"))
    return Chart("potential", "Potential", caption, figure)


def equilibria_chart(equilibria: Sequence[Result], constraint: str) -> Chart:
    """Draw the equilibria that restarts found: total value against the first cost, or by number if all cost the same.

    An axis along which they hardly differ would show nothing but the last digits.
    """
    costs = np.array([float(each.costs[0]) for each in equilibria])
    values = np.array([float(each.values.sum()) for each in equilibria])
    dots = {
        "type": "scatter",
        "mode": "markers+text",
        "x": costs.tolist(),
        "y": values.tolist(),
        "text": [str(rank) for rank in range(1, len(equilibria) + 1)],
        "marker": {"size": 11, "color": _colour(0)},
        "name": "",
    }
    x, message = _axis(f"cost: {_label(constraint)}", **_room(costs)), ""
    if np.ptp(costs) <= 1e-6 * max(1.0, float(np.abs(costs).max())):
        dots["x"] = list(range(1, len(equilibria) + 1))
        ends = [0.5, len(equilibria) + 0.5]
        x = _counted("equilibrium", len(equilibria)) | {"range": ends}
        message = f" All of them cost {readable(costs[0], 4)}."
    figure = _figure([dots], x=x, y=_axis("total value", **_room(values)))
    caption = f"Numbered as in the table; the page shows number 1.{message}"
    return Chart("equilibria", "Equilibria found", caption, figure)


def _room(numbers: FloatArray) -> dict[str, Any]:
    """Return a range that holds all numbers with room around them, and ticks of few digits."""
    low, high = float(numbers.min()), float(numbers.max())
    room = max(0.15 * (high - low), 0.02 * max(abs(low), abs(high), 1e-6))
    return {"range": [low - room, high + room], "nticks": 6}


def spending_charts(
    parts: FloatArray, places: Sequence[str], *, name: str, threshold: float, kind: str, steps: Sequence[str] = ()
) -> list[Chart]:
    """Draw one cost by step, with the steps' names where they have any, and by place.

    Parameters
    ----------
    parts : [H, places]
        What is spent at each step and place.
    """
    by_step, by_place = parts.sum(axis=1), parts.sum(axis=0)
    order = [place for place in np.argsort(-by_place, kind="stable")[:MAX_PLACES] if by_place[place] > 0][::-1]
    bars = _bars(list(steps) or list(range(len(by_step))), by_step, horizontal=False)
    where = _bars([_label(places[place]) for place in order], by_place[order], horizontal=True)
    total, rest = float(by_place.sum()), int((by_place > 0).sum()) - len(order)
    caption = f"{total:.6g} of {threshold:.6g} is spent in all."
    most = f"The {kind}s on which most is spent" + (f"; on {rest:,} others it is less." if rest > 0 else ".")
    tall = {"height": 120 + 26 * len(order), "bargap": 0.35}
    charts = []
    if len(by_step) > 1:
        named = _axis("", type="category", nticks=9) if steps else _counted("step", len(by_step), first=0)
        figure = _figure([bars], x=named, y=_axis("cost"))
        charts.append(Chart("steps", f"{name}: by step", caption, figure))
    if len(places) > 1:
        figure = _figure([where], x=_axis("cost", rangemode="tozero"), y=_axis("", type="category"), **tall)
        charts.append(Chart("places", f"{name}: by {kind}", most, figure))
    return charts


def bar_chart(
    name: str, title: str, caption: str, heads: Sequence[str], heights: Sequence[float], *, limit: float | None = None
) -> Chart:
    """Draw a bar for each head, and a dashed line where a limit is."""
    data = [_bars([_label(head) for head in heads], np.asarray(heights, dtype=np.float64), horizontal=False)]
    if limit is not None:
        ends = [_label(heads[0]), _label(heads[-1])]
        dashes = {"dash": "dash", "width": 1.5, "color": "var(--limit)"}
        data.append(
            {"type": "scatter", "mode": "lines", "x": ends, "y": [limit, limit], "line": dashes, "name": "threshold"}
        )
    return Chart(name, title, caption, _figure(data, x=_axis("", type="category"), y=_axis("", rangemode="tozero")))


def _bars(names: Sequence[Any], heights: FloatArray, *, horizontal: bool) -> dict[str, Any]:
    along, across = ("y", "x") if horizontal else ("x", "y")
    bars = {"type": "bar", along: list(names), across: _plain(heights), "marker": {"color": _colour(0)}}
    return bars | {"orientation": "h" if horizontal else "v", "name": ""}


def threshold_chart(curve: ThresholdCurve, names: Names, *, several: bool) -> Chart:
    """Draw an agent's best value against a threshold, and the line whose slope is its multiplier.

    The constraint is named where the game has several.
    """
    known = curve.values[np.isfinite(curve.values)]
    low, high = float(known.min()), float(known.max())
    room = 0.12 * (high - low) if high - low > 1e-9 * max(abs(high), 1.0) else 0.05 * max(abs(high), 1.0)
    line = _clipped_line(curve, low - room, high + room)
    marker = {"size": 10, "color": _colour(1)}
    data = [
        _line(curve.thresholds, curve.values, name="best value", colour=_colour(0)),
        _line(line[0], line[1], name=f"slope {curve.multiplier:.4g}", colour=_colour(1), line={"dash": "dot"}),
        _line([curve.at], [curve.bound], name="now", colour=_colour(1), mode="markers", marker=marker),
    ]
    y = _axis("value", range=[low - room, high + room])
    figure = _figure(data, x=_threshold_axis(curve.constraint, names, several=several), y=y, showlegend=False)
    return Chart("threshold", names.agent(curve.agent), f"price {readable(curve.multiplier, 4)}", figure)


def _threshold_axis(constraint: int, names: Names, *, several: bool) -> dict[str, Any]:
    return _axis(f"threshold of {_label(names.constraint(constraint))}" if several else "threshold")


def _clipped_line(curve: ThresholdCurve, low: float, high: float) -> tuple[list[float], list[float]]:
    """Return the ends of the bounding line inside the chart: a steep price would leave it at once."""
    left, right = float(curve.thresholds[0]), float(curve.thresholds[-1])
    if curve.multiplier > 0:
        left = max(left, curve.at + (low - curve.bound) / curve.multiplier)
        right = min(right, curve.at + (high - curve.bound) / curve.multiplier)
    ends = [left, right]
    return ends, [curve.bound + curve.multiplier * (end - curve.at) for end in ends]


def resolved_chart(resolved: Resolved, names: Names, *, several: bool) -> Chart:
    """Draw the total value of the equilibria found at other thresholds: dots, because nothing holds between them."""
    dots = _line(resolved.thresholds, resolved.welfare, name="total value", colour=_colour(2), mode="markers")
    dots["marker"] = {"size": 9, "color": _colour(2)}
    span = [float(np.min(resolved.welfare)), float(np.max(resolved.welfare))]
    dashed = {"dash": "dash", "width": 1.5}
    now = _line([resolved.at] * 2, span, name="threshold now", colour="var(--limit)", line=dashed)
    caption = (
        "Where the agents settle if they go on from this policy at another threshold, all of them moving in turn. "
        "Each dot is certified; nothing is claimed between the dots, and a jump is another equilibrium."
    )
    x = _threshold_axis(resolved.constraint, names, several=several)
    return Chart("resolved", "All agents together", caption, _figure([dots, now], x=x, y=_axis("total value")))


def samples_chart(samples: FloatArray, gaps: FloatArray, *, epsilon: float) -> Chart:
    """Draw the largest gain of an agent against the samples spent, one dot per seed of a learning run.

    Parameters
    ----------
    samples, gaps : [m]
        Samples in all, and what an agent could truly gain at the end.
    """
    line = _line(samples, np.where(gaps > 0, gaps, np.nan), name="gap", colour=_colour(0), mode="markers")
    figure = _figure(
        [line, _limit_line(samples.tolist(), epsilon, "ε")],
        x=_decades("samples", samples),
        y=_decades("largest gain", np.append(gaps, epsilon)),
    )
    return Chart(
        "samples",
        "Samples against gap",
        "What an agent could truly gain at the end, and the samples of that seed.",
        figure,
    )


def bounds_chart(curves: Mapping[int, FloatArray], *, epsilon: float) -> Chart:
    """Draw how the bounds of each seed closed with its samples.

    Parameters
    ----------
    curves : [points, 2] each
        Of each seed: samples so far, and how far the bounds were apart.
    """
    drawn = {seed: _broken(curve[(curve[:, 0] > 0) & (curve[:, 1] > 0)]) for seed, curve in curves.items()}
    thin = {"line": {"width": 1.2}, "connectgaps": False, "mode": "lines+markers", "marker": {"size": 3}}
    few = len(drawn) <= MAX_LEGEND
    lines = [
        _line(curve[:, 0], curve[:, 1], name=f"seed {seed}", colour=_colour(index), showlegend=few, **thin)
        for index, (seed, curve) in enumerate(drawn.items())
    ]
    samples, apart = np.concatenate(list(drawn.values())).T
    ends = [float(np.nanmin(samples, initial=np.inf)), float(np.nanmax(samples, initial=1.0))]
    figure = _figure(
        [*lines, _limit_line([min(ends), max(ends)], epsilon, "ε")],
        x=_decades("samples so far", samples),
        y=_decades("width of the bounds", np.append(apart, epsilon)),
    )
    caption = (
        "How far upper and lower bounds were apart while each seed, in its colour, learned. Where responses are "
        "learned one by one, each has a line of its own. Dashed: ε."
    )
    return Chart("bounds", "Bounds against samples", caption, figure)


def _broken(curve: FloatArray) -> FloatArray:
    """Return a curve with a gap wherever it jumps up: another response was begun."""
    jumps = 1 + np.flatnonzero(np.diff(curve[:, 1]) > 0)
    return np.asarray(np.insert(curve, jumps, np.nan, axis=0))


def unsafe_chart(executed: FloatArray, unsafe: FloatArray) -> Chart:
    """Draw how many of the policies executed so far break a constraint.

    Parameters
    ----------
    executed, unsafe : [m]
        Policies executed so far, seed after seed, and those among them that are unsafe.
    """
    line = _line(executed, unsafe, name="unsafe policies", colour=_colour(5), line={"shape": "hv"})
    caption = f"{int(unsafe[-1]):,} of {int(executed[-1]):,} executed policies exceed a threshold."
    figure = _figure([line], x=_axis("executed policies"), y=_axis("unsafe so far", rangemode="tozero"))
    return Chart("unsafe", "Safety of what was executed", caption, figure)


def line_of(x: Any, y: Any, *, name: str, place: int, dots: bool) -> dict[str, Any]:
    """Return one line of a chart of a sweep; its place decides its colour."""
    style = {"mode": "lines+markers", "marker": {"size": 7}} if dots else {}
    return _line(x, y, name=_label(name), colour=_colour(place), **style)


def chart_along(
    data: list[dict[str, Any]], *, x: str, y: str, by_category: bool = False, height: Sequence[float] = ()
) -> dict[str, Any]:
    """Return a figure of lines against an option, or of cells by two options; `height` is what its y axis spans."""
    kind: dict[str, Any] = {"type": "category"} if by_category else {}
    ends = _room(np.array(height)) if len(height) else {}
    return _figure(data, x=_axis(_label(x), **kind), y=_axis(_label(y), **kind, **ends))
