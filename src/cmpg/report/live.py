"""The page of `cmpg live`: the options of a scenario beside the answer, which follows them.

The page is data and a script. Every answer is a record of plain words, numbers and tables, which the script shows as
the page of a run does. A static page carries the answers that it shows, and makes no request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cmpg.equilibrium.quality import OptimalityGap
from cmpg.equilibrium.result import Result
from cmpg.errors import TooLargeError
from cmpg.files.run_folder import FinishedRun
from cmpg.report.page import VIEW_WORDS, inside_script, page_part
from cmpg.report.tables import outcomes_table
from cmpg.report.viewer import view_of
from cmpg.report.wording import facts_of, headline_of, priced_constraints, quality_words
from cmpg.summaries import plain, table_html


@dataclass(frozen=True)
class Control:
    """An option that the page can change: a choice, or a number, with a slider if a range is known."""

    name: str
    label: str
    meaning: str
    value: str  # what it begins with, as a word; empty: as it comes
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None


@dataclass(frozen=True)
class LivePage:
    """What the page is about."""

    title: str
    subtitle: str
    controls: Sequence[Control]
    fixed: Mapping[str, str]  # options that the page cannot change

    def html(self, answers: Sequence[Mapping[str, Any]] = (), *, static: bool = False) -> str:
        """Return the page; a static one shows the given answers, and cannot fetch others."""
        data = {
            "title": plain(self.title),
            "subtitle": plain(self.subtitle),
            "controls": [] if static else [asdict(each) for each in self.controls],
            "fixed": {name: plain(value) for name, value in self.fixed.items()},
            "answers": list(answers),
            "static": static,
        }
        scripts = page_part("viewer.js") + page_part("live.js")
        parts = {
            "REQUESTS": "'none'" if static else "'self'",
            "STYLE": page_part("page.css") + page_part("live.css"),
            "SCRIPT": scripts,
            # Last: nothing is replaced inside the data.
            "DATA": inside_script(json.dumps(data, separators=(",", ":"), allow_nan=False)),
        }
        page = page_part("live.html")
        for name, text in parts.items():
            page = page.replace(f"{{{{{name}}}}}", text)
        return page


def answer_record(
    run: FinishedRun, gap: OptimalityGap | None, *, options: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Return what the page shows of one answer.

    Parameters
    ----------
    run
        The game, its result, and how to draw it.
    gap
        The total value beside an upper bound; None if there is no policy.
    options
        What the page had chosen, as words.
    seconds
        How long the answer took.
    """
    result = run.result
    record: dict[str, Any] = {
        "options": dict(options),
        "verdict": asdict(headline_of(result, when="proved when this answer was computed")),
        "warning": plain(run.game.names.legend.warning),
        "facts": facts_of(run),
        "numbers": {},
        "good": [],
        "constraints": "",
        "outcomes": "",
        "view": None,
        "view_words": "",
        "view_note": "",
        "seconds": round(seconds, 3),
    }
    if result.incumbent is None:
        return record
    outcomes = outcomes_table(result)
    return record | {
        "numbers": _numbers(result, gap),
        "good": [] if gap is None else quality_words(result, [gap]),
        "constraints": table_html(priced_constraints(result.certificate)) if len(result.costs) else "",
        "outcomes": "" if outcomes is None else table_html(outcomes),
        **_picture(run),
    }


def _picture(run: FinishedRun) -> dict[str, Any]:
    try:
        view = view_of(run.game, run.result.policy.floats(), run.drawing)
    except TooLargeError as problem:
        return {"view_note": f"This is not drawn: {problem}"}
    data = {"kind": view.kind, "note": view.note, **view.fields}
    return {"view": data, "view_words": VIEW_WORDS[view.kind], "view_note": view.note}


def _numbers(result: Result, gap: OptimalityGap | None) -> dict[str, float | None]:
    """Return the numbers that two answers are compared by; None where one is unknown or infinite."""
    names, proof = result.certificate.names, result.certificate
    bound = None if gap is None or gap.bound is None else gap.bound.value
    numbers: dict[str, float | None] = {"total value": float(result.values.sum()), "at most possible": bound}
    for j in range(len(proof.costs)):
        name, price = plain(names.constraint(j)), float(proof.multipliers[:, j].max())
        numbers[f"threshold: {name}"] = float(proof.thresholds[j])
        numbers[f"cost: {name}"] = float(proof.costs[j])
        numbers[f"highest price: {name}"] = price if np.isfinite(price) else None
    return numbers
