"""One self-contained page about a run: it opens offline, in light and dark, on a phone, by keyboard.

The page carries its data, its script, the files of the run where they are small, and plotly once, which is started
only after the page stands. Its content security policy forbids every request.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.equilibrium.sensitivity import is_cheap, solve_around, threshold_curves
from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import write_atomically
from cmpg.files.run_folder import Claim, Run, read_run
from cmpg.games.counting.game import CountingGame
from cmpg.report.charts import (
    Chart,
    cost_charts,
    equilibria_chart,
    gains_chart,
    potential_chart,
    resolved_chart,
    spending_charts,
    threshold_chart,
)
from cmpg.report.learning_page import RECORDS, is_learning_run, learning_context
from cmpg.report.page_tables import (
    MOST_ROWS,
    Grid,
    agents_table,
    constraints_table,
    equilibria_table,
    facts_of,
    provenance_of,
    trace_grid,
)
from cmpg.report.spending import where_spent
from cmpg.report.viewer import view_of
from cmpg.report.wording import course_words, readable, verdict_of
from cmpg.scenarios import SCENARIOS

FILES = ("certificate.json", "result.json", "policy.npz", "game.npz", "trace.csv", "scenario.json")
LARGEST_FILE = 150_000
"""A larger file of the run is not put inside the page."""

MOST_CONSTRAINTS = 4
"""Constraints with charts: those with the highest prices."""

VIEW_WORDS = {
    "grid": "Shade: the probability that the agent stands there at this step. Arrows: where it goes from there.",
    "network": "Width: the expected load at this step. Protected links are orange, and red above what they bear.",
    "loads": "The expected load against the capacity, how likely each load is in the chosen hour, and who causes it.",
    "tables": "The probability of each action at this step.",
}


def write_page(folder: Path, target: Path) -> int:
    """Write the page of a run folder, whole or not at all, and return its size in bytes.

    Raises
    ------
    CMPGError
        The optional extra is not installed.
    FileError
        The folder is missing, half-written, of another version, or contradicts itself; or the page cannot be written.
    """
    if target.is_dir():
        raise FileError(f"{target}: is a folder; name a file, such as {target / 'report.html'}.")
    render, plotly = _extras()
    context = _learned(folder) if is_learning_run(folder) else _context(read_run(folder))
    page = render(context | {"plotly": plotly}).encode()
    write_atomically(target, lambda stream: stream.write(page))
    return len(page)


def _extras() -> tuple[Callable[[dict[str, Any]], str], str]:
    """Return what renders the template, and the chart library's script; both come with an optional extra."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as missing:
        raise CMPGError(
            f"a page is made with jinja2 and plotly, and {missing.name} is not installed. Install both with: "
            "pip install 'cmpg[report]'"
        ) from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_part("page.html.j2"))
    raw = ("css", "js", "figures", "plotly")

    def render(context: dict[str, Any]) -> str:
        safe = {name: Markup(context[name]) for name in raw}
        if context["view"] is not None:
            context["view"]["json"] = Markup(context["view"]["json"])
        return template.render(context | safe)

    return render, get_plotlyjs()


def _part(name: str) -> str:
    return files("cmpg.report").joinpath(name).read_text("utf-8")


@dataclass(frozen=True)
class _Place:
    """A chart where it stands on the page."""

    id: str
    title: str
    caption: str
    height: int | None


class _Gallery:
    """The figures of the page, by the places where the script draws them."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}

    def hang(self, charts: list[Chart]) -> list[_Place]:
        """Give each chart a place of its own."""
        places = []
        for chart in charts:
            place = _Place(f"{chart.name}-{len(self.figures)}", chart.title, chart.caption, chart.height)
            self.figures[place.id] = chart.figure
            places.append(place)
        return places


def _context(run: Run) -> dict[str, Any]:
    """Everything that the template names."""
    gallery, claim = _Gallery(), run.claim
    named = SCENARIOS.get(run.origin.name)
    context: dict[str, Any] = {
        "title": run.origin.name,
        "subtitle": "" if named is None else re.sub("`([^`]*)`", r"“\1”", named.summary),
        "verdict": verdict_of(run),
        "facts": facts_of(run),
        "provenance": provenance_of(run),
        "proof": _proof_words(run),
        "folder": run.folder,
        "epsilon": f"{run.epsilon:g}",
        "seeds": None,
        "seed_charts": [],
        "script": _part("independent_check.py") if _is_checked_by_hand(run) else None,
        "css": _part("page.css"),
        "js": _part("page.js"),
        **_downloads(run),
        **_results(run, gallery),
        "course": _course(run, gallery) if run.trace else None,
        "view": None if claim is None else _view(run, claim),
        "budget": None if claim is None or not len(run.game.thresholds) else _budget(run, claim, gallery),
    }
    names = {"result": "Result", "course": "Course", "policy": "Policy", "budget": "Budget", "proof": "Proof"}
    missing = {"course": context["course"], "policy": context["view"], "budget": context["budget"]}
    context["tabs"] = [{"id": key, "name": name} for key, name in names.items() if missing.get(key, True)]
    context["figures"] = _inside_script(json.dumps(gallery.figures, separators=(",", ":")))
    return context


def _learned(folder: Path) -> dict[str, Any]:
    """Everything that the template names, for a learning run: no claim to check by hand, but a table of seeds."""
    gallery = _Gallery()
    context, charts = learning_context(folder)
    nothing = ("agents", "constraints", "equilibria", "course", "view", "budget", "script")
    context |= {name: None for name in nothing} | {"proof": "", "too_large": [], "equilibria_charts": []}
    records = (folder / RECORDS).read_bytes()
    link = {"name": RECORDS, "href": _data_uri(RECORDS, records), "size": _size(len(records))}
    context |= {
        "folder": folder,
        "epsilon": "",
        "css": _part("page.css"),
        "js": _part("page.js"),
        "downloads": [link] if len(records) <= LARGEST_FILE else [],
        "seed_charts": gallery.hang(charts),
        "tabs": [{"id": "result", "name": "Result"}, {"id": "proof", "name": "Provenance"}],
        "figures": _inside_script(json.dumps(gallery.figures, separators=(",", ":"))),
    }
    return context


def _inside_script(text: str) -> str:
    """Make JSON safe inside a script element, whatever the names in it are."""
    return text.replace("<", "\\u003c")


def _agents(run: Run) -> tuple[str, ...]:
    return run.game.names.all_agents(run.game.num_agents)


def _constraints(run: Run) -> tuple[str, ...]:
    return run.game.names.all_constraints(len(run.game.thresholds))


def _is_checked_by_hand(run: Run) -> bool:
    """Whether the script beside the page reads this form of game."""
    return run.game.discount is None and not isinstance(run.game, CountingGame)


def _results(run: Run, gallery: _Gallery) -> dict[str, Any]:
    agents, constraints = _agents(run), _constraints(run)
    tables: dict[str, Grid | None] = {"agents": None, "constraints": None, "equilibria": None}
    if run.claim is not None:
        tables["agents"] = agents_table(run.claim.certificate, agents, constraints)
        if constraints:
            tables["constraints"] = constraints_table(run.claim.certificate, agents, constraints)
    charts: list[Chart] = []
    if len(run.equilibria) > 1:
        tables["equilibria"] = equilibria_table(run.equilibria, agents, constraints)
        charts = [equilibria_chart(run.equilibria, constraints[0])] if constraints else []
    return {**tables, "equilibria_charts": gallery.hang(charts)}


def _proof_words(run: Run) -> str:
    if run.proof is None:
        return ""
    weights = ", ".join(readable(float(weight), 5) for weight in run.proof.multipliers)
    return (
        f"Weigh the constraints with {weights}. Even one planner who chooses all actions then pays at least "
        f"{readable(run.proof.least_cost, 9)}, and the limits, weighed alike, allow {readable(run.proof.limit, 9)}."
    )


def _course(run: Run, gallery: _Gallery) -> dict[str, Any]:
    agents, constraints = _agents(run), _constraints(run)
    charts = [potential_chart(run.trace), gains_chart(run.trace, agents, epsilon=run.epsilon)]
    charts += cost_charts(run.trace, constraints, np.asarray(run.game.thresholds))[:MOST_CONSTRAINTS]
    return {
        "words": course_words(run),
        "charts": gallery.hang(charts if run.moves else []),
        "trace": trace_grid(run.trace, agents, constraints),
        "left_out": len(run.trace) > MOST_ROWS,
    }


def _view(run: Run, claim: Claim) -> dict[str, Any]:
    view = view_of(run.game, claim.policy, run.drawing)
    return {
        "json": _inside_script(view.to_json()),
        "words": VIEW_WORDS[view.kind],
        "note": view.note[:1].upper() + view.note[1:],
        "steps": claim.policy.shapes[0][0],
    }


def _budget(run: Run, claim: Claim, gallery: _Gallery) -> dict[str, Any]:
    game, certificate, names = run.game, claim.certificate, _constraints(run)
    spent = where_spent(game, claim.policy)
    highest = np.argsort(-certificate.multipliers.max(axis=0), kind="stable")[:MOST_CONSTRAINTS]
    spending: list[Chart] = []
    curves: list[Chart] = []
    resolved: list[Chart] = []
    solved = False
    for j in sorted(highest.tolist()):
        limit, name = float(game.thresholds[j]), names[j]
        axis = name if len(names) > 1 else ""
        if certificate.costs[j] > 0 and spent.places:
            spending += spending_charts(spent.parts[j], spent.places, name=name, limit=limit, kind=spent.kind)
        for curve in threshold_curves(game, claim.policy, certificate, constraint=j):
            solved = True
            if not curve.is_flat:
                curves.append(threshold_chart(curve, _agents(run)[curve.agent], axis))
        if run.status.name == "CERTIFIED" and is_cheap(game, run.moves):
            found = solve_around(game, claim.policy, constraint=j, epsilon=run.epsilon)
            resolved += [resolved_chart(found, axis, at=limit)] if len(found.thresholds) > 1 else []
    few = len(highest) < len(names)
    return {
        "spending": gallery.hang(spending),
        "curves": gallery.hang(curves),
        "no_curves": _no_curves(solved),
        "resolved": gallery.hang(resolved),
        "left_out": f"The {len(highest)} constraints with the highest prices are drawn." if few else "",
        "nothing": not certificate.costs.any(),
    }


def _no_curves(solved: bool) -> str:
    if solved:
        return "Another limit, higher or lower, would change nothing for an agent who moves alone, as far as was tried."
    return "Value against the limit is not drawn: the agents’ tables are too large to solve while a page is written."


def _downloads(run: Run) -> dict[str, Any]:
    here = [path for path in (run.folder / name for name in FILES) if path.is_file()]
    small = [path for path in here if path.stat().st_size <= LARGEST_FILE]
    contents = {path.name: path.read_bytes() for path in small}
    if _is_checked_by_hand(run) and run.claim is not None:
        contents["independent_check.py"] = _part("independent_check.py").encode()
    links = [{"name": name, "href": _data_uri(name, body), "size": _size(len(body))} for name, body in contents.items()]
    return {"downloads": links, "too_large": [path.name for path in here if path not in small]}


def _data_uri(name: str, body: bytes) -> str:
    kinds = {".json": "application/json", ".csv": "text/csv", ".py": "text/x-python"}
    kind = kinds.get(Path(name).suffix, "application/octet-stream")
    return f"data:{kind};base64,{base64.b64encode(body).decode()}"


def _size(count: int) -> str:
    return f"{count / 1000:.1f} kB" if count >= 1000 else f"{count} bytes"
