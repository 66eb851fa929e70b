"""What terminals and notebooks show of plans that are made again during a day, and of days of operation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.result import Result
from cmpg.files.containers import Fields, plain_fields
from cmpg.games.game import Game
from cmpg.operation.day import ComparedDay, OperatedDay
from cmpg.operation.plans import AgentChange, Replan
from cmpg.summaries import MAX_ROWS, Cell, Summary, Table, counted, fixed, largest, shown_of, significant

MAX_DAYS = 31
"""A table of more days than this shows the first of them."""

MIN_CHANGE = 1e-9
"""Changes of an agent's value below this share of the largest value are not changes."""


def replan_summary(plan: Replan) -> Summary:
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
    return Summary(result.status.name, result.message, tuple(parts), good=result.accepted)


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


def day_parts(plan: Replan) -> dict[str, Any]:
    """Return what a page says of a plan that was made again: the budget of the day, and what changed for whom."""
    agent = _game(plan.result).names.legend.agent
    return {
        "budget": budget_table(plan),
        "changes": changes_table(plan.changes, agent, most=None),
        "words": _changes_sentence(plan.changes, agent),
    }


def changes_table(changes: Sequence[AgentChange], agent: str, *, most: int | None = MAX_ROWS) -> Table:
    """Show what the new plan means for each agent, those first who lose or gain most if there are many."""
    sizes = np.array([math.inf if math.isnan(each.gain) else abs(each.gain) for each in changes])
    shown, least = largest(sizes, most), _least_change(changes)
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        each = changes[i]
        what: Cell = fixed(0.0 if abs(each.gain) <= least else each.gain, 4)
        if math.isnan(each.before):
            what = "new"
        elif math.isnan(each.after):
            what = "left"
        rows.append((each.agent, fixed(each.before, 4), fixed(each.after, 4), what))
    note = f"value of the rest of the day; {shown_of(shown, len(changes), agent + 's')}".rstrip("; ")
    return Table((agent, "plan in force", "new plan", "change"), tuple(rows), note)


def _changes_sentence(changes: Sequence[AgentChange], agent: str) -> str:
    gains = np.array([each.gain for each in changes if not math.isnan(each.gain)])
    least = _least_change(changes)
    better, worse = int((gains > least).sum()), int((gains < -least).sum())
    same = len(gains) - better - worse
    words = f"{counted(better, agent)} better off, {worse} worse off, {same} as before"
    return f"{words}; in total {float(gains.sum()):+.4g}" if better or worse else words


def _least_change(changes: Sequence[AgentChange]) -> float:
    return MIN_CHANGE * max((abs(each.before) for each in changes if not math.isnan(each.before)), default=0.0)


def replan_record(plan: Replan) -> Fields:
    """Return a new plan in words that JSON knows."""
    budget = plan.budget
    known = not np.isnan(budget.spent).any()
    return plain_fields(
        {
            "status": plan.result.status.name,
            "message": plan.result.message,
            "at": plan.at,
            "covers": plan.covers,
            "spent": budget.spent if known else None,
            "promised": budget.promised,
            "allowed": budget.allowed,
            "planned": budget.planned,
            "thresholds": budget.thresholds,
            "reserve": budget.reserve,
            "seen_in_impossible_states": plan.impossible,
            "changes": [{"agent": each.agent, "before": each.before, "after": each.after} for each in plan.changes],
        }
    )


def operated_summary(days: Sequence[ComparedDay]) -> Summary:
    """Show operated days: costs against thresholds, values against other plans, the time that plans took."""
    plans = sum(len(day.operated.plans) for day in days)
    certified = all(day.certified for day in days)
    word = "CERTIFIED" if certified else "NOT CERTIFIED"
    share = "all" if certified else "not all"
    sentence = f"{counted(len(days), 'day')} with {counted(plans, 'plan')}, {share} of them certified."
    parts: list[str | Table] = [_days_table(days), _means_table(days), *_times([day.operated for day in days])]
    if waited := sum(len(day.operated.waited) for day in days):
        parts.append(f"{counted(waited, 'newcomer')} waited, because there was no plan within the budget at first")
    parts.append(
        "The certificate of each plan is about the rest of its day, given what was seen. The expected cost of a day is "
        "at most its threshold; single days may exceed it."
    )
    return Summary(word, sentence, tuple(parts), good=certified)


def _times(days: Sequence[OperatedDay]) -> list[str]:
    """Say how long plans took, if there are any."""
    seconds = np.array([each for day in days for each in day.seconds])
    agents = [plan.result.certificate.values.size for day in days for plan in day.plans]
    if not len(seconds):
        return []
    return [
        f"a plan took {1e3 * np.median(seconds):.3g} ms of CPU time at the median and {1e3 * seconds.max():.3g} ms at "
        f"most, for {np.median(agents):.0f} agents at the median and {max(agents)} at most"
    ]


def tasks_summary(done: OperatedDay, completed: Sequence[int]) -> Summary:
    """Show a fleet that was operated with lifelong tasks: what each robot completed, and the cost."""
    word, share = ("CERTIFIED", "all") if done.certified else ("NOT CERTIFIED", "not all")
    sentence = (
        f"{counted(sum(completed), 'task')} completed, with {counted(len(done.plans), 'plan')}, {share} of them "
        "certified."
    )
    rows = [(name, str(count)) for name, count in zip(done.values, completed, strict=True)]
    shown = largest(np.array(completed, dtype=np.float64), MAX_ROWS)
    table = Table(("robot", "tasks completed"), tuple(rows[i] for i in shown), shown_of(shown, len(rows), "robots"))
    cost = f"cost {_several(done.costs)}; at most {_several(done.thresholds)} is expected, and one run may exceed it"
    covers = "The certificate of each plan is about the rest of the run with the goals that are known then."
    return Summary(word, sentence, (table, cost, *_times([done]), covers), good=done.certified)


def tasks_record(done: OperatedDay, completed: Sequence[int]) -> Fields:
    """Return the same in words that JSON knows."""
    return plain_fields(
        {
            "certified": done.certified,
            "completed": dict(zip(done.values, completed, strict=True)),
            "plans": len(done.plans),
            "costs": done.costs,
            "thresholds": done.thresholds,
            "cpu_seconds": done.seconds,
        }
    )


def _days_table(days: Sequence[ComparedDay]) -> Table:
    shown = range(min(len(days), MAX_DAYS))
    rows: list[tuple[Cell, ...]] = []
    for day in (days[i] for i in shown):
        done = day.operated
        rows.append(
            (
                day.name,
                str(len(done.values)),
                str(len(done.plans)),
                _several(done.costs),
                _several(done.thresholds),
                fixed(done.value, 2),
                fixed(day.ahead.value, 2),
                fixed(float(day.clairvoyant.values.sum()), 2),
            )
        )
    columns = ("day", "agents", "plans", "cost", "threshold", "value", "day-ahead plan", "clairvoyant")
    return Table(columns, tuple(rows), shown_of(list(shown), len(days), "days"))


def _several(numbers: FloatArray) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)


def _means_table(days: Sequence[ComparedDay]) -> Table:
    """Show means over days, with the standard error of the mean."""
    first = [day.operated.plans[0].budget.planned.sum() for day in days if day.operated.plans]
    columns = {
        "threshold": [day.operated.thresholds.sum() for day in days],
        "cost by the first plan": first,
        "cost": [day.operated.costs.sum() for day in days],
        "cost, day-ahead plan": [day.ahead.costs.sum() for day in days],
        "value": [day.operated.value for day in days],
        "value, day-ahead plan": [day.ahead.value for day in days],
        "value, clairvoyant": [float(day.clairvoyant.values.sum()) for day in days],
    }
    rows = []
    for name, found in columns.items():
        error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else math.nan
        mean = float(np.mean(found)) if found else math.nan
        rows.append((name, significant(mean, 5), significant(error, 2)))
    return Table(("mean over days", "mean", "standard error"), tuple(rows))


def operated_record(days: Sequence[ComparedDay]) -> Fields:
    """Return operated days in words that JSON knows."""
    return plain_fields(
        {
            "certified": all(day.certified for day in days),
            "days": [
                {
                    "day": day.name,
                    "agents": len(day.operated.values),
                    "plans": len(day.operated.plans),
                    "costs": day.operated.costs,
                    "thresholds": day.operated.thresholds,
                    "value": day.operated.value,
                    "day_ahead": {"costs": day.ahead.costs, "value": day.ahead.value},
                    "clairvoyant": {"costs": day.clairvoyant.costs, "value": day.clairvoyant.values.sum()},
                    "cpu_seconds": day.operated.seconds,
                    "waited": day.operated.waited,
                }
                for day in days
            ],
        }
    )


def _game(result: Result) -> Game:
    assert result.game is not None
    return result.game
