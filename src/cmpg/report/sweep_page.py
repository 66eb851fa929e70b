"""The page of a sweep, and what the terminal shows of it: curves with their knees, prices, heat maps, all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cmpg import __version__
from cmpg.faces import Cell, Face, Table, significant
from cmpg.report.charts import Chart, chart_along, line_of
from cmpg.report.wording import Headline
from cmpg.sweeps.rows import Sweep, SweepRow
from cmpg.sweeps.worth import SweepCurve, curves, numeric_options, worth_of_options

MOST_SHOWN = 40
"""Rows that a terminal shows; results.csv has all."""

MOST_MULTIPLES = 12
"""Small multiples of one kind on a page."""

MOST_LINES = 8
"""Lines of one chart; more colours could not be told apart."""


def sweep_faces(found: Sweep) -> list[str | Face]:
    """Say how the runs ended, show them, and say what the options are worth."""
    certified = sum(row.certified for row in found.rows)
    missing = len(found.grid) - len(found.rows)
    told = f"{certified} of {len(found.rows)} runs are certified" + (f", {missing} are missing" if missing else "")
    rows = rows_table(found, found.rows[:MOST_SHOWN])
    hidden = len(found.rows) - MOST_SHOWN
    more = [f"… and {hidden} runs more, in results.csv"] if hidden > 0 else []
    return [Face(found.scenario, told, (rows, *more, *knee_lines(found)), good=certified == len(found.grid))]


def rows_table(found: Sweep, rows: Sequence[SweepRow]) -> Table:
    """Lay out runs, with what one unit more of each option is worth."""
    worth = worth_of_options(found)
    constraints = range(max((len(row.thresholds) for row in found.rows), default=0))
    heads = [f"{name} {j}" if len(constraints) > 1 else name for j in constraints for name in ("cost", "price")]
    heads += [f"{kind} of {name}" for name in worth for kind in ("worth", "envelope")]
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        by_constraint = [each[j] if j < len(each) else None for j in constraints for each in (row.costs, row.prices)]
        by_option = [cell for name in worth for cell in (worth[name].get(row.run), row.envelopes.get(name))]
        values = [_number(row.welfare), _number(row.bound), *map(_number, by_constraint), *map(_number, by_option)]
        lines.append((str(row.run), *(_shown(value) for value in row.options.values()), row.status, *values))
    return Table(("run", *found.grid.axes, "status", "welfare", "bound", *heads), tuple(lines))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float | None) -> Cell:
    return "–" if value is None else significant(value, 5)


def knee_lines(found: Sweep) -> list[str]:
    """Say where the curves bend most."""
    lines = []
    for option in numeric_options(found):
        along = curves(found, option)
        places: dict[float, list[SweepCurve]] = {}
        for curve in along:
            if curve.knee is not None:
                places.setdefault(curve.x[curve.knee], []).append(curve)
        for value, bent in sorted(places.items()):
            few = "; ".join(_group(curve.others) for curve in bent)
            where = f"{len(bent)} of {len(along)} curves" if len(bent) > 2 else few
            lines.append(f"knee at {option} {value:g}" + (f" ({where})" if where else ""))
    return lines


def _group(others: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in others.items())


def sweep_context(found: Sweep) -> tuple[dict[str, Any], list[Chart]]:
    """Return what the template names for a sweep, and its charts."""
    certified = sum(row.certified for row in found.rows)
    ended = f"{certified} of {len(found.rows)} runs are certified"
    others = sorted({row.status for row in found.rows if not row.certified})
    detail = (
        "“Worth” is by how much the welfare rises per unit up to the next value of the option, all agents having "
        "settled anew. “Envelope” is what one unit is worth at the margin to the agent who would pay most, while the "
        "others keep to their policies. “Bound”: no feasible policy has a greater welfare."
    )
    good = certified == len(found.rows)
    told = ended + (f"; the others ended {', '.join(others)}." if others else ".")
    context = {
        "title": f"sweep of {found.scenario}",
        "subtitle": ", ".join(f"{name}: {_span(values)}" for name, values in found.grid.axes.items()),
        "verdict": Headline("CERTIFIED" if good else "LIMIT", "good" if good else "warn", "Swept", told, detail),
        "facts": {"runs": str(len(found.rows)), **{name: str(len(values)) for name, values in found.grid.axes.items()}},
        "provenance": _provenance(found),
        "sweep": rows_table(found, found.rows),
        "knees": knee_lines(found),
    }
    return context, _charts(found)


def _span(values: Sequence[Any]) -> str:
    return f"{_shown(values[0])} to {_shown(values[-1])}" if len(values) > 4 else ", ".join(map(_shown, values))


def _provenance(found: Sweep) -> dict[str, str]:
    fixed_options = ", ".join(f"{name} = {value}" for name, value in found.grid.fixed.items())
    return {
        "Scenario": found.scenario,
        "The same in all runs": fixed_options or "the defaults",
        "Run folders": "every run is kept, and can be checked: cmpg certify, cmpg report",
        "Page": f"written by cmpg {__version__}",
    }


def _charts(found: Sweep) -> list[Chart]:
    """Draw along the options of numbers: the longest one is the axis, a second one the lines, the rest multiples."""
    options = sorted(numeric_options(found), key=lambda name: -len(found.grid.axes[name]))
    if not options:
        return []
    along, lines = options[0], options[1] if len(options) > 1 else None
    charts: list[Chart] = []
    groups: dict[str, list[SweepCurve]] = {}
    for curve in curves(found, along):
        apart = {name: value for name, value in curve.others.items() if name != lines}
        groups.setdefault(_group(apart), []).append(curve)
    worth = worth_of_options(found)
    for title, group in list(groups.items())[:MOST_MULTIPLES]:
        chosen = group[:MOST_LINES]
        charts.append(_value_chart(along, lines, title, chosen))
        charts.append(_worth_chart(along, lines, title, chosen, worth[along]))
        if any(row.prices for curve in chosen for row in curve.rows):
            charts.append(_price_chart(along, lines, title, chosen))
        if lines is not None and len(group) > 1:
            charts.append(_heat_map(along, lines, title, group))
    return charts


def _named(curve: SweepCurve, lines: str | None, fallback: str) -> str:
    return fallback if lines is None else f"{lines} {_shown(curve.others[lines])}"


def _titled(kind: str, title: str) -> str:
    return f"{kind}, {title}" if title else kind


def _value_chart(along: str, lines: str | None, title: str, group: Sequence[SweepCurve]) -> Chart:
    data = []
    for place, curve in enumerate(group):
        data.append(line_of(curve.x, curve.welfare, name=_named(curve, lines, "welfare"), place=place, dots=True))
        if curve.knee is not None:
            data.append(_mark(curve, place))
    caption = "The sum of the agents’ values, each dot certified. A ring marks the knee: behind it, more brings less."
    figure = chart_along(data, x=along, y="welfare")
    return Chart("sweep-value", _titled(f"Welfare against {along}", title), caption, figure)


def _mark(curve: SweepCurve, place: int) -> dict[str, Any]:
    knee = curve.knee or 0
    ring = line_of([curve.x[knee]], [curve.welfare[knee]], name="knee", place=place, dots=True)
    ring |= {"mode": "markers", "showlegend": False, "hovertemplate": "knee at %{x}<extra></extra>"}
    ring["marker"] = {"size": 16, "symbol": "circle-open", "color": ring["line"]["color"], "line": {"width": 3}}
    return ring


def _worth_chart(
    along: str, lines: str | None, title: str, group: Sequence[SweepCurve], worth: Mapping[int, float]
) -> Chart:
    data = []
    for place, curve in enumerate(group):
        named = _named(curve, lines, "worth")
        known = [(x, worth[row.run]) for x, row in zip(curve.x, curve.rows, strict=True) if row.run in worth]
        if known:
            data.append(line_of(*zip(*known, strict=True), name=named, place=place, dots=True))
        margin = [
            (x, row.envelopes[along]) for x, row in zip(curve.x, curve.rows, strict=True) if along in row.envelopes
        ]
        if margin:
            dashed = line_of(*zip(*margin, strict=True), name=f"{named}, at the margin", place=place, dots=False)
            dashed["line"]["dash"] = "dot"
            data.append(dashed)
    caption = (
        f"Solid: by how much the welfare rises per unit of {along} up to the next value. Dotted: the envelope formula, "
        "what one unit is worth at the margin to the agent who would pay most."
    )
    figure = chart_along(data, x=along, y="worth of one unit")
    return Chart("sweep-worth", _titled(f"What {along} is worth", title), caption, figure)


def _price_chart(along: str, lines: str | None, title: str, group: Sequence[SweepCurve]) -> Chart:
    data = []
    for place, curve in enumerate(group):
        prices = [max(row.prices, default=0.0) for row in curve.rows]
        data.append(line_of(curve.x, prices, name=_named(curve, lines, "price"), place=place, dots=True))
    caption = "The highest multiplier that an agent has: what one unit more of the budget is worth to it at most."
    figure = chart_along(data, x=along, y="price of the budget")
    return Chart("sweep-price", _titled(f"Price of the budget against {along}", title), caption, figure)


def _heat_map(along: str, lines: str, title: str, group: Sequence[SweepCurve]) -> Chart:
    x = sorted({value for curve in group for value in curve.x})
    ordered = sorted(group, key=lambda curve: curve.others[lines])
    cells = [dict(zip(curve.x, curve.welfare, strict=True)) for curve in ordered]
    heat = {
        "type": "heatmap",
        "x": [f"{value:g}" for value in x],
        "y": [f"{curve.others[lines]:g}" for curve in ordered],
        "z": [[row.get(value) for value in x] for row in cells],
        "colorscale": [[0, "var(--soft)"], [1, "var(--series-1)"]],
        "colorbar": {"thickness": 12, "title": {"text": "welfare"}},
        "hovertemplate": f"{escape(along)} %{{x}}, {escape(lines)} %{{y}}: %{{z:.5g}}<extra></extra>",
    }
    figure = chart_along([heat], x=along, y=lines, by_category=True)
    return Chart("sweep-map", _titled(f"Welfare by {along} and {lines}", title), "", figure)
