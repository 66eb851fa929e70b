"""Run folders of plans that were made again: a run folder about the rest of a day, and `operation.json` beside it.

`operation.json` says at which step of the day the plan begins, and how the budget of the day stands: `thresholds`,
`spent` (null where it was not reported), `promised`, `reserve`, `tolerance`, and `changes`, what each agent had and
has. What the plan may spend and what it spends are not read there: they are the thresholds of the game, and the costs
that are computed again from it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.equilibrium.result import Result
from cmpg.errors import FileError
from cmpg.files.containers import Fields, json_text, plain_fields, read_fields
from cmpg.files.fields import number_list, reading, text_of, whole_number
from cmpg.files.run_folder import FinishedRun, load_run, save_run
from cmpg.operation.plans import AgentChange, DayBudget, Replan
from cmpg.scenarios import Origin
from cmpg.scenarios.drawings import Drawing, LoadDrawing

NAME = "operation.json"


def save_plan(folder: str | Path, plan: Replan, *, before: FinishedRun) -> Fields:
    """Write a run folder about the rest of the day, new or empty; `before` is the run that the plan was made from."""
    budget = plan.budget
    record = plain_fields(
        {
            "format": "cmpg-operation",
            "version": 1,
            "at": plan.at,
            "covers": plan.covers,
            "thresholds": budget.thresholds,
            "spent": None if np.isnan(budget.spent).any() else budget.spent,
            "promised": budget.promised,
            "reserve": budget.reserve,
            "tolerance": budget.tolerance,
            "changes": [[each.agent, each.before, each.after] for each in plan.changes],
        }
    )
    assert plan.result.game is not None
    steps = plan.at - begin_of(before)
    same = plan.result.game.names.agents == before.game.names.agents
    return save_run(
        folder,
        plan.result,
        origin=Origin(before.origin.name, before.origin.options),
        drawing=_rest_of_drawing(before.drawing, steps, same_agents=same),
        beside={NAME: json_text(record)},
    )


def load_plan(folder: str | Path) -> tuple[Result | Replan, FinishedRun]:
    """Read the plan of a run folder, proved again: the result of a first plan, or a plan that was made again.

    Raises
    ------
    FileError
        As `load_run`; or `operation.json` is not whole.
    """
    run = load_run(folder)
    return plan_of(run) or run.result, run


def plan_of(run: FinishedRun) -> Replan | None:
    """Return the plan of a run folder if it was made again during a day; None of a first plan, or without a folder."""
    path = None if run.folder is None else run.folder / NAME
    if path is None or not path.exists():
        return None
    fields = read_fields(path, kind="cmpg-operation")
    with reading(path, "Plan again."):
        return _plan(fields, run.result)


def begin_of(run: FinishedRun) -> int:
    """Return the step of the day at which the plan of a run folder begins."""
    path = None if run.folder is None else run.folder / NAME
    return 0 if path is None or not path.exists() else int(read_fields(path, kind="cmpg-operation")["at"])


def _plan(fields: Fields, result: Result) -> Replan:
    assert result.game is not None
    count = len(result.game.thresholds)

    def amounts(name: str) -> FloatArray:
        found = number_list(name, fields[name], length=count)
        if np.any(found < 0) and name != "thresholds":
            raise FileError(f"{name} has a number below 0.")
        return frozen(np.asarray(found, dtype=np.float64))

    spent = fields["spent"]
    budget = DayBudget(
        thresholds=amounts("thresholds"),
        spent=frozen(np.full(count, np.nan)) if spent is None else number_list("spent", spent, length=count),
        promised=amounts("promised"),
        allowed=np.asarray(result.game.thresholds, dtype=np.float64),
        planned=result.costs,
        reserve=amounts("reserve"),
        tolerance=amounts("tolerance"),
    )
    changes = tuple(AgentChange(text_of(name), _or_nan(had), _or_nan(has)) for name, had, has in fields["changes"])
    return Replan(result, whole_number("at", fields["at"], least=0), budget, changes, ())


def _or_nan(value: Any) -> float:
    return math.nan if value is None else float(value)


def _rest_of_drawing(drawing: Drawing | None, steps: int, *, same_agents: bool) -> Drawing | None:
    """Return how to draw the rest of a day; a map shows agents where they began, so it needs the same ones."""
    if isinstance(drawing, LoadDrawing):
        capacities = tuple(row[steps:] for row in drawing.capacities)
        return replace(drawing, capacities=capacities, steps=drawing.steps[steps:])
    return drawing if same_agents else None
