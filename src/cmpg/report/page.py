"""One self-contained page about a run: it opens offline, in light and dark, on a phone, by keyboard.

The page carries its data, its scripts, and the files of the run where they are small; charts are drawn by a script
of its own. Its content security policy forbids every request. What it says of a policy is what was
proved when the run was read; and it carries the claim itself, as a proof file, with a script that checks it again in
the reader's browser.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import logging
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.equilibrium.quality import known_gaps
from cmpg.equilibrium.result import Incumbent, Result
from cmpg.errors import FileError, TooLargeError
from cmpg.files.containers import write_atomically
from cmpg.files.games import form_of
from cmpg.files.run_folder import FinishedRun, game_of, load_run, save_run
from cmpg.games.claims import claim_of
from cmpg.games.risk import cost_law, num_law_states
from cmpg.proof.claim import ClaimError
from cmpg.proof.format import write as write_proof
from cmpg.proof.script import stand_alone
from cmpg.report.certificates import agents_table
from cmpg.report.charts import (
    Chart,
    ChartGroup,
    bar_chart,
    cost_charts,
    equilibria_chart,
    gains_chart,
    potential_chart,
    price_chart,
    resolved_chart,
    spending_charts,
    threshold_chart,
)
from cmpg.report.display import anarchy_table
from cmpg.report.tables import outcomes_table
from cmpg.report.viewer import view_of, where_spent
from cmpg.report.wording import (
    MAX_ROWS,
    ascent_table,
    course_words,
    equilibria_table,
    facts_of,
    headline_of,
    options_words,
    priced_constraints,
    provenance_of,
    quality_words,
    readable,
    search_table,
    simulated_parts,
)
from cmpg.scenarios import SCENARIOS, Origin
from cmpg.summaries import Table, plain, table_html

if TYPE_CHECKING:
    from cmpg.equilibrium.sensitivity import Sensitivity

_LOG = logging.getLogger(__name__)

FILES = ("certificate.json", "result.json", "policy.npz", "game.npz", "trace.csv", "scenario.json")
LARGEST_FILE = 150_000
"""A larger file of the run is not put inside the page."""

MAX_CLAIM = 8_000_000
"""A proof file with more characters is not put inside the page."""

MAX_UNASKED_CLAIM = 1_500_000
"""A proof file with more characters is checked when the reader asks for it."""

MAX_LAW_STATES, MAX_LAW_BARS = 2_000, 60
"""Laws of costs are drawn for games of at most this many states, and with at most this many bars."""

MIN_COURSE = 1e-3
"""An ascent that raises the potential by less than this share of the values is not among what a user looks at first."""

MAX_CONSTRAINTS = 4
"""Constraints with charts: those with the highest prices."""

VIEW_WORDS = {
    "grid": "Shade: the probability that the agent stands there at this step. Arrows: where it goes from there.",
    "network": "Width: the expected load at this step. Protected links are orange, and red above what they can carry.",
    "loads": "The expected load against the capacity, how likely each load is in the chosen hour, and who causes it.",
    "tables": "The probability of each action at this step.",
}

FLEET_WORDS = (
    "All agents come first, each in its colour: as they are expected, and in one run that was drawn at random."
)
"""Of a grid whose agents have goals."""


def write_page(run: FinishedRun, target: Path, *, sensitivity: Sensitivity | None = None) -> int:
    """Write the page of a run, whole or not at all, and return its size in bytes.

    Parameters
    ----------
    run
        As `load_run` returns it.
    target
        The file.
    sensitivity
        What other thresholds would be worth, to be drawn.

    Raises
    ------
    FileError
        The page cannot be written.
    """
    return _write(lambda: _context(run, sensitivity), target)


def write_result_page(result: Result, target: Path, *, sensitivity: Sensitivity | None = None) -> int:
    """Write the page of a result that is not in a folder; a game that has a file form is put inside the page."""
    game = game_of(result)
    if form_of(game) is None:
        run = FinishedRun(game, result, Origin(target.stem, {}), recorded=result.message)
        return write_page(run, target, sensitivity=sensitivity)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        save_run(folder, result, origin=Origin(target.stem, {}))
        return _write(lambda: _context(load_run(folder), sensitivity, shown=Path("run")), target)


def write_context_page(
    build: Callable[[], tuple[dict[str, Any], list[ChartGroup]]], target: Path, files: Sequence[Path] = ()
) -> int:
    """Write a page without a claim that the browser could check, from what the template names and its charts.

    It carries the files that are there and small enough.
    """
    return _write(lambda: _without_claim(*build(), files), target)


def _write(build: Callable[[], dict[str, Any]], target: Path) -> int:
    """Render the template with what it names, and write the page."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    if target.is_dir():
        raise FileError(f"{target}: is a folder; name a file, such as {target / 'report.html'}.")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["table"] = lambda table, name: Markup(table_html(table, name=name))
    # Characters that could turn the text around are shown as their escapes.
    environment.finalize = lambda value: plain(value, lines=True) if type(value) is str else value
    template = environment.from_string(page_part("page.html.j2"))
    context = NOTHING | {"css": page_part("page.css"), "js": "".join(map(page_part, SCRIPTS))} | build()
    safe = {name: Markup(context[name]) for name in ("css", "js", "figures", "checker")}
    if context["chosen"] is not None:
        safe["chosen"] = Markup(inside_script(context["chosen"]))
    if context["view"] is not None:
        context["view"]["json"] = Markup(context["view"]["json"])
    page = template.render(context | safe).encode(errors="backslashreplace")
    write_atomically(target, lambda stream: stream.write(page))
    return len(page)


def page_part(name: str) -> str:
    """Return a file of this room: a style, a script, a template."""
    return files("cmpg.report").joinpath(name).read_text("utf-8")


SCRIPTS = ("charts.js", "viewer.js", "page.js")

NOTHING: dict[str, Any] = dict.fromkeys(
    (
        *("agents", "budget", "chosen", "claim", "constraints", "course", "day", "equilibria", "how_good", "knees"),
        *("outcomes", "quality", "recommended", "script", "seeds", "simulated", "sweep", "translation", "view"),
    )
) | {
    **dict.fromkeys(("certify", "checker", "options", "proof"), ""),
    **dict.fromkeys(("chart_groups", "downloads", "equilibria_charts", "too_large"), ()),
    "has_course": False,
}
"""What the template names and few pages have."""


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

    def hang(self, draw: Callable[[], list[Chart]]) -> list[_Place]:
        """Give each chart a place of its own; charts that cannot be drawn are left out, and the page stands without."""
        try:
            charts = draw()
        except Exception:  # whatever it is: what is proved does not depend on a chart
            _LOG.warning("charts could not be drawn, and are left out of the page", exc_info=True)
            charts = []
        places = []
        for chart in charts:
            place = _Place(f"{chart.name}-{len(self.figures)}", chart.title, chart.caption, chart.height)
            self.figures[place.id] = chart.figure
            places.append(place)
        return places

    def to_json(self) -> str:
        """Return all figures as JSON that is safe inside a script element."""
        return inside_script(json.dumps(self.figures, separators=(",", ":")))

    def hang_group(self, group: ChartGroup) -> dict[str, Any]:
        """Give charts that are read together their places, below one title."""
        return {"title": group.title, "caption": group.caption, "places": self.hang(lambda: group.charts)}


def _context(run: FinishedRun, sensitivity: Sensitivity | None, *, shown: Path | None = None) -> dict[str, Any]:
    """Everything that the template names; `shown` is what the folder is called, if not by its own name."""
    gallery, result, found = _Gallery(), run.result, run.result.incumbent
    named, verdict, day = SCENARIOS.get(run.origin.name), headline_of(result), None
    legend = run.game.names.legend  # which may say how a scenario turned the user's data into the game
    if run.folder is not None and (run.folder / "operation.json").exists():
        from cmpg.files.plan_folder import plan_of  # on use: plans bring the solver, and other pages need none
        from cmpg.report.operation import day_parts

        plan = plan_of(run)
        assert plan is not None
        verdict = replace(verdict, detail=f"{verdict.detail} {plan.covers[:1].upper()}{plan.covers[1:]}")
        day = day_parts(plan)
    context: dict[str, Any] = {
        "title": run.origin.name,
        "subtitle": "" if named is None else re.sub("`([^`]*)`", r"“\1”", named.summary),
        "options": options_words(run),
        "verdict": verdict,
        "day": day,
        "facts": facts_of(run),
        "provenance": provenance_of(run),
        "proof": _proof_words(run),
        "certify": "" if run.folder is None else _certify_command(shown or run.folder, result),
        "script": _has_script(run),
        "claim": _claim(run),
        "checker": page_part("check.js"),
        "translation": {"rows": legend.translation, "warning": legend.warning} if legend.translation else None,
        **_downloads(run),
        **_results(run, gallery),
        "course": _course(run, gallery) if result.trace else None,
        "view": None if found is None else _view(run, found),
        "simulated": None if found is None else simulated_parts(run.game, found.policy.floats()),
        "budget": None if found is None or not len(run.game.thresholds) else _budget(run, found, sensitivity, gallery),
    }
    # The decision first; how it was found is for those who check it.
    names = {"policy": "Policy", "result": "Result", "budget": "Budget", "course": "Progress", "proof": "Proof"}
    course = context["course"]
    has_course = course is not None and bool(
        course["charts"] or course["search_charts"] or context["equilibria_charts"]
    )
    missing = {"course": has_course, "policy": context["view"], "budget": context["budget"]}
    context["has_course"] = has_course
    context["tabs"] = [{"id": key, "name": name} for key, name in names.items() if missing.get(key, True)]
    return context | {"figures": gallery.to_json()}


def _certify_command(folder: Path, result: Result) -> str:
    """Return the command that checks the claim as it was judged: same game, same arithmetic, same epsilon."""
    exact = result.incumbent is not None and result.certificate.arithmetic == "exact"
    words = ["cmpg", "certify", str(folder / ("game.json" if exact else "game.npz")), str(folder / "policy.npz")]
    return shlex.join([*words, "--epsilon", f"{result.epsilon:g}", *(["--exact"] if exact else [])])


def _without_claim(context: dict[str, Any], groups: list[ChartGroup], files: Sequence[Path]) -> dict[str, Any]:
    """Add what a page has that is about several runs: no claim to check by hand."""
    gallery = _Gallery()
    contents = {path.name: path.read_bytes() for path in files if path.is_file()}
    return context | {
        "downloads": _links({name: body for name, body in contents.items() if len(body) <= LARGEST_FILE}),
        "chart_groups": [gallery.hang_group(group) for group in groups],
        "tabs": [{"id": "result", "name": "Result"}, {"id": "proof", "name": "Provenance"}],
        "figures": gallery.to_json(),
    }


def inside_script(text: str) -> str:
    """Make JSON safe inside a script element, whatever the names in it are."""
    return text.replace("<", "\\u003c")


def _has_script(run: FinishedRun) -> bool:
    """Whether the page hands out the check as a script: there is a claim, in files of floats that it reads."""
    return run.folder is not None and run.result.incumbent is not None and (run.folder / "game.npz").is_file()


class _Limited(io.StringIO):
    """A text that may not become longer than a page can carry."""

    def write(self, text: str) -> int:
        """Add to the text, or raise."""
        if self.tell() > MAX_CLAIM:
            raise OverflowError
        return super().write(text)


def _claim(run: FinishedRun) -> dict[str, Any] | None:
    """Return the claim as a proof file that the page can check; None where there is none, or it is too large."""
    found, game = run.result.incumbent, run.game
    if found is None or form_of(game) is None or not np.isfinite(found.certificate.epsilon):
        return None
    epsilon = run.result.epsilon if run.result.certified else found.certificate.epsilon
    text = _Limited()
    try:
        write_proof(text, claim_of(game, found.policy, found.certificate.multipliers), epsilon)
    except (OverflowError, ClaimError):  # it is too long, or the format has no such games
        return None
    body = text.getvalue().encode("ascii")
    return {
        "data": base64.b64encode(gzip.compress(body, mtime=0)).decode(),
        "large": len(body) > MAX_UNASKED_CLAIM,
        "sha256": hashlib.sha256(body).hexdigest(),
        "size": _size(len(body)),
    }


def _results(run: FinishedRun, gallery: _Gallery) -> dict[str, Any]:
    names, result = run.game.names, run.result
    tables: dict[str, Table | None] = {"agents": None, "constraints": None, "equilibria": None, "outcomes": None}
    if result.incumbent is not None:
        tables["outcomes"] = outcomes_table(result)
        tables["agents"] = agents_table(result.certificate, None)
        tables["constraints"] = priced_constraints(result.certificate) if len(result.costs) else None
    several = len(result.equilibria) > 1
    if several:
        tables["equilibria"] = equilibria_table(result.equilibria, names)
    gaps = [] if result.incumbent is None else known_gaps(result)
    good = list(dict.fromkeys(quality_words(result, gaps)))  # two objectives may have the same answer
    tables["quality"] = anarchy_table(result, gaps[0]) if gaps else None

    def charts() -> list[Chart]:
        return [equilibria_chart(result.equilibria, names.constraint(0))] if several and len(result.costs) else []

    return {**tables, "how_good": good, "equilibria_charts": gallery.hang(charts)}


def _proof_words(run: FinishedRun) -> str:
    proof = run.result.proof
    if proof is None:
        return ""
    weights = ", ".join(readable(float(weight), 5) for weight in proof.multipliers)
    return (
        f"Weigh the constraints with {weights}. Even one planner who chooses all actions then pays at least "
        f"{readable(proof.least_cost, 9)}, and the thresholds, weighed alike, allow {readable(proof.limit, 9)}. That "
        "was computed again when this page was written."
    )


def _course(run: FinishedRun, gallery: _Gallery) -> dict[str, Any]:
    names, trace = run.game.names, run.result.trace
    agents, constraints = (names.all_agents(run.game.num_agents), names.all_constraints(len(run.game.thresholds)))
    rounds = [step for step in trace if step.multipliers is not None]
    ascent = [step for step in trace if step.multipliers is None]
    thresholds = np.asarray(run.game.thresholds, dtype=np.float64)

    def search() -> list[Chart]:
        if len(rounds) < 2:
            return []
        costs = cost_charts(rounds, constraints, thresholds, along="round")[:MAX_CONSTRAINTS]
        return [price_chart(rounds, constraints), *costs]

    def charts() -> list[Chart]:
        if not run.result.moves or not ascent:
            return []
        costs = cost_charts(ascent, constraints, thresholds, along="iteration")[:MAX_CONSTRAINTS]
        return [potential_chart(ascent), gains_chart(ascent, agents, epsilon=run.result.epsilon), *costs]

    drawn, size = gallery.hang(charts), float(np.abs(run.result.values).sum())
    telling = len(ascent) > 0 and abs(ascent[-1].potential - ascent[0].potential) > MIN_COURSE * size
    return {
        "words": course_words(run.result, rounds, ascent),
        "search_charts": gallery.hang(search),
        "search": search_table(rounds, names) if rounds else None,
        "charts": drawn if telling else [],
        "digits": [] if telling else drawn,  # among the proofs: a user sees nothing in them
        "trace": ascent_table(ascent, names) if ascent else None,
        "left_out": MAX_ROWS if max(len(ascent), len(rounds)) > MAX_ROWS else 0,
    }


def _view(run: FinishedRun, found: Incumbent) -> dict[str, Any]:
    try:
        view = view_of(run.game, found.policy.floats(), run.drawing)
    except TooLargeError as problem:
        return {"json": "", "words": "", "note": f"This is not drawn: {str(problem).rstrip('.')}"}
    return {
        "json": inside_script(view.to_json()),
        "words": " ".join([VIEW_WORDS[view.kind], *([FLEET_WORDS] if any(view.fields.get("goals", ())) else [])]),
        "note": view.note[:1].upper() + view.note[1:],
    }


def _budget(run: FinishedRun, found: Incumbent, sensitivity: Sensitivity | None, gallery: _Gallery) -> dict[str, Any]:
    names, certificate = run.game.names, found.certificate
    highest = np.argsort(-certificate.multipliers.max(axis=0), kind="stable")[:MAX_CONSTRAINTS]

    def spending() -> list[Chart]:
        spent = where_spent(run.game, found.policy)
        return [
            chart
            for j in sorted(highest.tolist())
            if certificate.costs[j] > 0 and spent.places
            for chart in spending_charts(
                spent.parts[j],
                spent.places,
                name=names.constraint(j),
                threshold=float(certificate.thresholds[j]),
                kind=spent.kind,
                steps=names.legend.steps,
            )
        ]

    curves = () if sensitivity is None else sensitivity.curves
    resolved = () if sensitivity is None else sensitivity.resolved
    several = len(certificate.costs) > 1
    return {
        "spending": gallery.hang(spending),
        "laws": gallery.hang(lambda: law_charts(run, found)),
        "curves": gallery.hang(
            lambda: [threshold_chart(curve, names, several=several) for curve in curves if not curve.is_flat]
        ),
        "no_curves": _no_curves(bool(curves)),
        "resolved": gallery.hang(lambda: [resolved_chart(each, names, several=several) for each in resolved]),
        "left_out": f"The {len(highest)} constraints with the highest prices are drawn."
        if len(highest) < len(certificate.costs)
        else "",
        "nothing": not certificate.costs.any(),
    }


def law_charts(run: FinishedRun, found: Incumbent) -> list[Chart]:
    """Return the distribution of each cost that has one (`cost_law`); none where it takes too many states or sums."""
    if not 0 < num_law_states(run.game) <= MAX_LAW_STATES:
        return []
    charts = []
    for law in cost_law(run.game, found.policy.floats())[:MAX_CONSTRAINTS]:
        if 1 < len(law.sums) <= MAX_LAW_BARS:
            heads = [f"{each:g}" for each in law.sums]
            caption = f"Mean {law.mean:.6g}; more than 0 with probability {law.above(0.0):.6g}."
            charts.append(
                bar_chart("law", f"{law.name}: how likely each sum is", caption, heads, law.probabilities.tolist())
            )
    return charts


def _no_curves(solved: bool) -> str:
    if solved:
        return "Another threshold would change nothing for an agent who moves alone, as far as was tried."
    return (
        "Value against the threshold is not drawn: the agents’ tables are too large to solve while a page is written."
    )


def _downloads(run: FinishedRun) -> dict[str, Any]:
    here = [] if run.folder is None else [path for path in (run.folder / name for name in FILES) if path.is_file()]
    small = [path for path in here if path.stat().st_size <= LARGEST_FILE]
    contents = {path.name: path.read_bytes() for path in small}
    if _has_script(run):
        contents["independent_check.py"] = stand_alone().encode()
    return {"downloads": _links(contents), "too_large": [path.name for path in here if path not in small]}


def _links(contents: Mapping[str, bytes]) -> list[dict[str, str]]:
    """Return files, by their names, as links that hold them."""
    kinds = {".json": "application/json", ".csv": "text/csv", ".py": "text/x-python"}
    links = []
    for name, body in contents.items():
        kind = kinds.get(Path(name).suffix, "application/octet-stream")
        href = f"data:{kind};base64,{base64.b64encode(body).decode()}"
        links.append({"name": name, "href": href, "size": _size(len(body))})
    return links


def _size(count: int) -> str:
    return f"{count / 1000:.1f} kB" if count >= 1000 else f"{count} bytes"
