"""What terminals and notebooks show of plans that are made again during a day, and of days of operation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cmpg.equilibrium.result import Result
from cmpg.faces import MOST_ROWS, Cell, Face, Table, counted, fixed, largest, shown_of, significant
from cmpg.games.contract import Game
from cmpg.operation.day import OperatedDay
from cmpg.operation.plans import AgentChange, Replan

MIN_CHANGE = 1e-9
"""Changes of an agent's value below this share of the largest value are not changes."""


def replan_summary(plan: Replan) -> Face:
    """Show how a new plan ended, what its certificate covers, the budget of the day, and what changed for whom."""
    result, names = plan.result, _game(plan.result).names
    parts: list[str | Table] = [plan.covers[:1].upper() + plan.covers[1:], budget_table(plan)]
    if plan.impossible:
        shown = ", ".join(plan.impossible[:3]) + (", …" if len(plan.impossible) > 3 else "")
        parts.append(
            f"{counted(len(plan.impossible), names.legend.agent)} seen in a state that the model and the plan in force "
            f"exclude ({shown}): what the plan promises does not hold for the day so far."
        )
    parts.append(changes_table(plan.changes, names.legend.agent))
    parts.append(_changes_sentence(plan.changes, names.legend.agent))
    return Face(result.status.name, result.message, tuple(parts), good=result.accepted)


def budget_table(plan: Replan) -> Table:
    """Show what is spent, what is promised, and both against α, for each constraint."""
    budget, names = plan.budget, _game(plan.result).names
    rows: list[tuple[Cell, ...]] = []
    for j in range(len(budget.thresholds)):
        known = not math.isnan(budget.spent[j])
        rows.append(
            (
                names.constraint(j),
                significant(budget.spent[j], 4) if known else "not reported",
                significant(budget.promised[j], 4),
                significant(budget.planned[j], 4),
                significant(budget.expected[j], 4) if known else "",
                significant(budget.thresholds[j], 4),
                significant(budget.reserve[j], 4),
            )
        )
    columns = ("constraint", "spent", "promised", "planned", "spent + planned", "threshold of the day", "reserve")
    note = (
        "promised: by the plan in force, from here on; planned: by the new one. The expected cost of days planned in "
    )
    note += "this way is at most the threshold; a single day may exceed it."
    return Table(columns, tuple(rows), note)


def changes_table(changes: Sequence[AgentChange], agent: str) -> Table:
    """Show what the new plan means for each agent, those first who lose or gain most if there are many."""
    sizes = np.array([math.inf if math.isnan(each.gain) else abs(each.gain) for each in changes])
    shown = largest(sizes)
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        each = changes[i]
        what: Cell = fixed(each.gain, 4)
        if math.isnan(each.before):
            what = "new"
        elif math.isnan(each.after):
            what = "left"
        rows.append((each.agent, fixed(each.before, 4), fixed(each.after, 4), what))
    note = f"value of the rest of the day; {shown_of(shown, len(changes), agent + 's')}".rstrip("; ")
    return Table((agent, "plan in force", "new plan", "change"), tuple(rows), note)


def _changes_sentence(changes: Sequence[AgentChange], agent: str) -> str:
    gains = np.array([each.gain for each in changes if not math.isnan(each.gain)])
    scale = max((abs(each.before) for each in changes if not math.isnan(each.before)), default=0.0)
    better, worse = int((gains > MIN_CHANGE * scale).sum()), int((gains < -MIN_CHANGE * scale).sum())
    total = float(gains.sum())
    same = len(gains) - better - worse
    return f"{counted(better, agent)} better off, {worse} worse off, {same} as before; in total {total:+.4g}"


def operated_table(days: Sequence[tuple[str, OperatedDay, float, float]], word: str = "value") -> Table:
    """Show days of operation: name, day, the value of the day-ahead plan with the same luck, and of a clairvoyant."""
    rows: list[tuple[Cell, ...]] = []
    for name, day, ahead, known in days[:MOST_ROWS] if len(days) > 2 * MOST_ROWS else days:
        rows.append(
            (
                name,
                str(len(day.values)),
                str(len(day.plans)),
                ", ".join(f"{cost:.3g}" for cost in day.costs),
                ", ".join(f"{cost:.3g}" for cost in day.thresholds),
                fixed(day.value, 2),
                fixed(ahead, 2),
                fixed(known, 2),
            )
        )
    columns = ("day", "agents", "plans", "cost", "threshold", word, "day-ahead plan", "clairvoyant")
    return Table(columns, tuple(rows))


def _game(result: Result) -> Game:
    assert result.game is not None
    return result.game
