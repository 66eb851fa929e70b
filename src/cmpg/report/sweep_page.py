"""The page of a sweep, and what the terminal shows of it: curves with their knees, prices, heat maps, all rows."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cmpg import __version__
from cmpg.errors import CMPGError
from cmpg.files.run_folder import read_drawn
from cmpg.report.charts import Chart, ChartGroup, chart_along, line_of
from cmpg.report.page import write_context_page
from cmpg.report.viewer import view_of
from cmpg.report.wording import Headline
from cmpg.scenarios import SPOKEN
from cmpg.summaries import Cell, Summary, Table, plain, significant
from cmpg.sweeps.grid import Grid
from cmpg.sweeps.rows import Sweep, SweepRow
from cmpg.sweeps.worth import SweepCurve, curves, numeric_options, worth_of_options

MAX_SHOWN = 40
"""Rows that a terminal shows; results.csv has all."""

MAX_MULTIPLES = 12
"""Small multiples of one kind on a page."""

MAX_FALLS = 3
"""Remarks on values that fall."""

MAX_LINES = 6
"""Lines of one chart; more could not be told apart."""

MAX_FAILURES = 3
"""Reasons why runs have no certificate that the terminal gives; results.csv has all."""

MAX_CELLS = 9
"""Columns of a heat map that has its numbers in it."""

MAX_PICTURES, MAX_PICTURED = 60, 6_000_000
"""Runs whose policies are drawn on the page, and characters that they may take before they are compressed."""

Multiples = dict[str, list[SweepCurve]]
"""Curves by what small multiples differ in."""

Draw = Callable[[list[SweepCurve]], dict[str, Any]]


def sweep_summaries(found: Sweep) -> list[str | Summary]:
    """Say how the runs ended, show them, and say what the options are worth."""
    found = _as_spoken(found)
    certified = sum(row.certified for row in found.rows)
    missing = len(found.grid) - len(found.rows)
    sentence = f"{certified} of {len(found.rows)} runs are certified" + (f", {missing} are missing" if missing else "")
    rows = rows_table(found, found.rows[:MAX_SHOWN])
    hidden = len(found.rows) - MAX_SHOWN
    more = [f"… and {hidden} runs more, in results.csv"] if hidden > 0 else []
    remarks = [*more, *failure_lines(found), *knee_lines(found), *fall_lines(found)]
    return [Summary(_title(found), sentence, (rows, *remarks), good=certified == len(found.grid))]


def _as_spoken(found: Sweep) -> Sweep:
    """Return a sweep with its options named as on the command line."""

    def said(by_option: Mapping[str, Any]) -> dict[str, Any]:
        return {SPOKEN.get(name, name): value for name, value in by_option.items()}

    rows = [
        replace(row, options=said(row.options), envelopes=said(row.envelopes), carried=said(row.carried))
        for row in found.rows
    ]
    return replace(found, grid=Grid(said(found.grid.fixed), said(found.grid.axes)), rows=tuple(rows))


def failure_lines(found: Sweep) -> list[str]:
    """Say why runs have no certificate: one of each reason."""
    first: dict[str, int] = {}
    for row in found.rows:
        if not row.certified and row.message:
            first.setdefault(row.message, row.run)
    return [f"run {run}: {message}" for message, run in list(first.items())[:MAX_FAILURES]]


def _title(found: Sweep) -> str:
    """Return the scenario; of game files, the file, or the folder that they are in."""
    if found.scenario != "game_file":
        return found.scenario
    files = {**found.grid.fixed, **found.grid.axes}.get("file", found.scenario)
    return Path(files).name if isinstance(files, str) else str(Path(files[0]).parent)


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


def fall_lines(found: Sweep) -> list[str]:
    """Say where the welfare is less than the policy of the run before would bring, which is feasible there, too."""
    lines = []
    for option in numeric_options(found):
        for curve in curves(found, option):
            for index in curve.falls[:MAX_FALLS]:
                row, following = curve.rows[index], curve.rows[index + 1]
                where = f" ({_group(curve.others)})" if curve.others else ""
                lines.append(
                    f"at {option} {_shown(following.options[option])}{where} the welfare is {following.welfare:.6g}, "
                    f"and the policy of {option} {_shown(row.options[option])} would bring {row.carried[option]:.6g} "
                    "there; more --restarts may find a better equilibrium"
                )
    return lines[:MAX_FALLS]


def _group(others: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in others.items())


def write_sweep_page(found: Sweep, target: Path) -> int:
    """Write the page of a sweep, whole or not at all, and return its size in bytes."""
    files = [] if found.folder is None else [found.folder / "results.csv"]
    return write_context_page(lambda: sweep_context(found), target, files)


def sweep_context(found: Sweep) -> tuple[dict[str, Any], list[ChartGroup]]:
    """Return what the template names for a sweep, and its charts."""
    found = _as_spoken(found)
    certified = sum(row.certified for row in found.rows)
    ended = f"{certified} of {len(found.rows)} runs are certified"
    others = sorted({row.status for row in found.rows if not row.certified})
    detail = (
        "“Worth” is by how much the welfare rises per unit up to the next value of the option, with an equilibrium "
        "of its own for each. “Envelope” is what one unit is worth at the margin to the agent that would pay most, "
        "while the others keep to their policies. “Bound”: no feasible policy has a greater welfare."
    )
    good = certified == len(found.rows)
    sentence = ended + (f"; the others ended {', '.join(others)}." if others else ".")
    context = {
        "title": f"{_title(found)}, swept",
        "subtitle": "; ".join(f"{name} {_span(values)}" for name, values in found.grid.axes.items()),
        "verdict": Headline("CERTIFIED" if good else "LIMIT", "good" if good else "warn", "Swept", sentence, detail),
        "facts": {
            "runs": str(len(found.rows)),
            **{f"{name}, values": str(len(values)) for name, values in found.grid.axes.items()},
        },
        "provenance": _provenance(found),
        "sweep": rows_table(found, found.rows),
        "knees": [f"{line[:1].upper()}{line[1:]}." for line in (*knee_lines(found), *fall_lines(found))],
        "chosen": json.dumps(_chosen(found), separators=(",", ":")) if found.rows else None,
    }
    return context, _charts(found)


def _chosen(found: Sweep) -> dict[str, Any]:
    """Return what the sliders choose from: the values of each option, and the numbers and the picture of each run."""
    axes = {name: list(dict.fromkeys(values)) for name, values in found.grid.axes.items()}
    views = _views(found)
    knees = [curve.rows[curve.knee] for name in numeric_options(found) for curve in curves(found, name) if curve.knee]
    first = (knees or [row for row in found.rows if row.welfare is not None] or list(found.rows))[0]

    def place(row: SweepRow) -> list[int]:
        return [values.index(row.options[name]) for name, values in axes.items()]

    every = ",".join(f'"{run}":{view}' for run, view in views.items())
    packed = gzip.compress(f"{{{every}}}".encode(), mtime=0)
    return {
        "axes": [{"name": plain(name), "values": [plain(_shown(each)) for each in axes[name]]} for name in axes],
        "first": place(first),
        "runs": [
            {"run": row.run, "at": place(row), "facts": _facts(row), "words": _words(found, row, row.run in views)}
            for row in found.rows
        ],
        "views": base64.b64encode(packed).decode(),
    }


def _views(found: Sweep) -> dict[int, str]:
    """Return the picture of each run as JSON, evenly among all if there are many; none for runs that were not kept."""
    views: dict[int, str] = {}
    pictured = [row for row in found.rows if row.welfare is not None] if found.folder is not None else []
    room = MAX_PICTURED
    for row in pictured[:: -(-len(pictured) // MAX_PICTURES) or 1]:
        try:
            game, policy, drawing = read_drawn(_run_folder(found, row))
            view = view_of(game, policy.floats(), drawing).to_json()
        except CMPGError:  # no folder, or it is too large to be drawn: the numbers stand without it
            continue
        room -= len(view)
        if room < 0:
            break
        views[row.run] = view
    return views


def _run_folder(found: Sweep, row: SweepRow) -> Path:
    return Path(found.folder or ".") / "runs" / f"{row.run:04d}"


def _facts(row: SweepRow) -> list[tuple[str, str]]:
    several = len(row.thresholds) > 1
    facts = [("run", str(row.run)), ("status", row.status)]
    facts += [
        (name, f"{value:.5g}") for name, value in (("welfare", row.welfare), ("bound", row.bound)) if value is not None
    ]
    for j, (cost, threshold) in enumerate(zip(row.costs, row.thresholds, strict=False)):
        facts.append((f"cost {j}" if several else "cost", f"{cost:.4g} of {threshold:.4g}"))
    facts += [(f"price {j}" if several else "price", f"{price:.4g}") for j, price in enumerate(row.prices)]
    return [(name, text.replace("-", "−")) for name, text in facts]


def _words(found: Sweep, row: SweepRow, pictured: bool) -> str:
    """Say what there is beyond the numbers of a run."""
    if row.welfare is None:
        return plain(row.message)
    if pictured or found.folder is None:
        return ""
    return plain(f"Its picture: cmpg report {_run_folder(found, row)}")


def _span(values: Sequence[Any]) -> str:
    return f"{_shown(values[0])} to {_shown(values[-1])}" if len(values) > 4 else ", ".join(map(_shown, values))


def _provenance(found: Sweep) -> dict[str, str]:
    fixed_options = ", ".join(f"{name} = {value}" for name, value in found.grid.fixed.items())
    return {
        "Game": _title(found),
        "The same in all runs": fixed_options or "the defaults",
        "Run folders": "every run is kept, and can be checked: cmpg certify, cmpg report",
        "Page": f"written by cmpg {__version__}",
    }


def _charts(found: Sweep) -> list[ChartGroup]:
    """Draw along the two longest options of numbers, the other one as lines, and the rest as small multiples."""
    options = sorted(numeric_options(found), key=lambda name: -len(found.grid.axes[name]))[:2]
    groups: list[ChartGroup] = []
    for place, along in enumerate(options):
        lines = options[1 - place] if len(options) > 1 else None
        multiples = _multiples(found, along, lines)
        if len(multiples) == 0:
            continue
        groups += [_values(along, lines, multiples), _worth(found, along, lines, multiples)]
        if any(row.prices for curves in multiples.values() for curve in curves for row in curve.rows):
            groups.append(_prices(along, lines, multiples))
        if place == 0 and lines is not None:
            groups.append(_heat_maps(along, lines, multiples))
    if any(len(group.charts) > 1 for group in groups):
        return groups
    singles = [
        Chart(chart.name, group.title, group.caption, chart.figure) for group in groups for chart in group.charts
    ]
    return [ChartGroup("", "", singles)]


def _multiples(found: Sweep, along: str, lines: str | None) -> Multiples:
    """Return the curves along an option by all others but that of the lines, as many as a page shows."""
    apart: Multiples = {}
    for curve in curves(found, along):
        others = {name: value for name, value in curve.others.items() if name != lines}
        apart.setdefault(_group(others), []).append(curve)
    return dict(list(apart.items())[:MAX_MULTIPLES])


def _group_of(name: str, title: str, caption: str, multiples: Multiples, draw: Draw) -> ChartGroup:
    """Return one chart for every multiple, below one title."""
    charts = [Chart(name, where, "", draw(few)) for where, few in multiples.items()]
    return ChartGroup(title, caption, charts)


def _lines_of(traces: Callable[[SweepCurve, int], list[dict[str, Any]]], **layout: Any) -> Draw:
    """Return what draws the traces of some curves, each at a place that decides its colour."""

    def draw(group: list[SweepCurve]) -> dict[str, Any]:
        data = [trace for place, curve in enumerate(_few(group)) for trace in traces(curve, place)]
        return chart_along(data, **layout)

    return draw


def _named(curve: SweepCurve, lines: str | None, fallback: str) -> str:
    return fallback if lines is None else f"{lines} {_shown(curve.others[lines])}"


def _all(multiples: Multiples) -> list[SweepCurve]:
    return [curve for few in multiples.values() for curve in _few(few)]


def _few(group: list[SweepCurve]) -> list[SweepCurve]:
    """Return as many lines as can be told apart, evenly among all."""
    if len(group) <= MAX_LINES:
        return group
    return [group[round(place * (len(group) - 1) / (MAX_LINES - 1))] for place in range(MAX_LINES)]


def _values(along: str, lines: str | None, multiples: Multiples) -> ChartGroup:
    height = [value for curve in _all(multiples) for value in curve.welfare]

    def traces(curve: SweepCurve, place: int) -> list[dict[str, Any]]:
        values = line_of(curve.x, curve.welfare, name=_named(curve, lines, "welfare"), place=place, dots=True)
        if curve.knee is None:
            return [values]
        knee = [curve.x[curve.knee]], [curve.welfare[curve.knee]]
        ring = line_of(*knee, name="knee", place=place, dots=True)
        ring |= {"mode": "markers", "showlegend": False}
        ring["marker"] = {"size": 15, "symbol": "circle-open", "color": ring["line"]["color"]}
        return [values, ring]

    caption = "The sum of the agents’ values. A ring marks the knee: behind it, more brings less."
    if any(curve.falls for curve in _all(multiples)):
        caption += (
            " Where a curve falls although the policy of the run before is still feasible and worth more, the agents "
            "play another equilibrium; more restarts may find a better one."
        )
    draw = _lines_of(traces, x=along, y="welfare", height=height)
    return _group_of("sweep-value", f"Welfare against {along}", caption, multiples, draw)


def _worth(found: Sweep, along: str, lines: str | None, multiples: Multiples) -> ChartGroup:
    worth = worth_of_options(found)[along]

    def points(curve: SweepCurve, source: Mapping[int, float]) -> list[tuple[float, float]]:
        known = zip(curve.x, curve.rows, strict=True)
        return [(x, source[row.run]) for x, row in known if row.run in source and math.isfinite(source[row.run])]

    margins = {
        row.run: row.envelopes[along] for curve in _all(multiples) for row in curve.rows if along in row.envelopes
    }
    drawn = [y for curve in _all(multiples) for source in (worth, margins) for _, y in points(curve, source)]

    def traces(curve: SweepCurve, place: int) -> list[dict[str, Any]]:
        named, data = _named(curve, lines, "up to the next value"), []
        if known := points(curve, worth):
            data.append(line_of(*zip(*known, strict=True), name=named, place=place, dots=True))
        if margin := points(curve, margins):
            dotted = line_of(*zip(*margin, strict=True), name=f"{named}, at the margin", place=place, dots=False)
            dotted["line"]["dash"] = "dot"
            data.append(dotted | {"showlegend": False})
        return data

    caption = f"Solid: by how much the welfare rises per unit of {along} up to the next value."
    if margins:
        caption += (
            " Dotted: the envelope formula, what one unit is worth at the margin to the agent who would pay most."
        )
    draw = _lines_of(traces, x=along, y="worth of one unit", height=drawn)
    return _group_of("sweep-worth", f"What {along} is worth", caption, multiples, draw)


def _prices(along: str, lines: str | None, multiples: Multiples) -> ChartGroup:
    def price(row: SweepRow) -> float:
        return max(row.prices, default=0.0)

    def traces(curve: SweepCurve, place: int) -> list[dict[str, Any]]:
        return [line_of(curve.x, [*map(price, curve.rows)], name=_named(curve, lines, "price"), place=place, dots=True)]

    prices = [price(row) for curve in _all(multiples) for row in curve.rows]
    height = [each for each in prices if math.isfinite(each)]
    caption = "The highest multiplier that an agent has: what one unit more of the budget is worth to it at most."
    if len(height) < len(prices):
        caption += " Where nothing may be spent there is no price, and no dot."
    draw = _lines_of(traces, x=along, y="price", height=height)
    return _group_of("sweep-price", f"Price of the budget against {along}", caption, multiples, draw)


def _heat_maps(along: str, lines: str, multiples: Multiples) -> ChartGroup:
    everything = [value for group in multiples.values() for curve in group for value in curve.welfare]

    def draw(group: list[SweepCurve]) -> dict[str, Any]:
        x = sorted({value for curve in group for value in curve.x})
        ordered = sorted(group, key=lambda curve: curve.others[lines])
        cells = [dict(zip(curve.x, curve.welfare, strict=True)) for curve in ordered]
        heat = {
            "type": "heatmap",
            "x": [f"{value:g}" for value in x],
            "y": [f"{curve.others[lines]:g}" for curve in ordered],
            "z": [[row.get(value) for value in x] for row in cells],
            "zmin": min(everything),
            "zmax": max(everything),
            "colorscale": [[0, "var(--soft)"], [1, "var(--series-1)"]],
            "written": len(x) <= MAX_CELLS,
        }
        return chart_along([heat], x=along, y=lines, by_category=True)

    caption = "The stronger the colour, the greater the welfare."
    return _group_of("sweep-map", f"Welfare by {along} and {lines}", caption, multiples, draw)
