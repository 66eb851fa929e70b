"""What terminals, notebooks and pages show of policies that were judged. No solver is imported here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from cmpg.equilibrium.certificate import Feasibility, excess_text
from cmpg.files.containers import Fields, plain_fields
from cmpg.judging.audits import Audit, Interval, MeasuredDeviation
from cmpg.judging.known import Change, Deviation, JudgedPolicy, verdict
from cmpg.judging.side_by_side import SideBySide
from cmpg.report.certificates import constraints_table
from cmpg.report.display import gap_sentence
from cmpg.summaries import (
    MAX_ROWS,
    Cell,
    Summary,
    Table,
    at_most,
    fixed,
    largest,
    plain,
    shown_of,
    significant,
    table_html,
    table_text,
)

MAX_COSTS = 3
"""A row of a table shows the costs of this many constraints, those with the least slack."""


def judged_summary(judged: JudgedPolicy) -> Summary:
    """Show whether the thresholds are met, what each agent could gain and by what, and how good the policy is."""
    certificate = judged.certificate
    if certificate.feasibility is Feasibility.VIOLATED:
        word = "VIOLATED"
        sentence = f"{judged.name} exceeds a threshold: {excess_text(certificate)}."
    else:
        word = "FEASIBLE" if judged.feasible else certificate.feasibility.name
        rest = "" if judged.feasible else f" ({excess_text(certificate)})"
        sentence = (
            f"{judged.name} {certificate.feasibility.value}{rest}; no agent gains more than "
            f"{at_most(judged.exploitability)} by deviating ({certificate.information})."
        )
    parts: list[str | Table] = [_agents(judged)]
    worst = max((each for each in judged.deviations if each is not None), key=lambda each: each.gain, default=None)
    if worst is not None and worst.changes:
        parts += _deviation_lines(judged, worst)
    parts.append(constraints_table(certificate) if len(certificate.costs) else "no constraints")
    if certificate.feasibility is not Feasibility.VIOLATED:
        parts.append(gap_sentence(judged.quality))
        if math.isfinite(judged.best_known):
            parts.append(f"total value {judged.welfare:.6g}, {judged.to_best_known:.6g} below the best known")
    return Summary(word, sentence, tuple(parts), good=judged.feasible)


def _agents(judged: JudgedPolicy) -> Table:
    shown = largest(judged.gains)
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        deviation = judged.deviations[i]
        cells: tuple[Cell, ...] = ("none is feasible", "")
        if not judged.has_none[i]:
            found = "none was found" if deviation is None else fixed(deviation.value)
            cells = (found, significant(judged.gains[i], 3))
        rows.append((judged.names.agent(i), fixed(judged.values[i]), *cells))
    note = shown_of(shown, len(judged.values), "agents with the largest gains; --json has all")
    return Table(("agent", "value", "best deviation", "gains at most"), tuple(rows), note)


def _deviation_lines(judged: JudgedPolicy, deviation: Deviation) -> list[str]:
    names, agent = judged.names, deviation.agent
    title = f"what {names.agent(agent)} would do instead, to gain {deviation.gain:.4g}:"
    return [title, *(f"  {change_text(judged, agent, change)}" for change in deviation.changes)]


def change_text(judged: JudgedPolicy, agent: int, change: Change) -> str:
    """Say what a deviation does in one place."""
    names = judged.names
    before, after = (names.action(agent, a, change.state) for a in (change.before, change.after))
    where = f"step {names.step(change.step)}, {names.state(agent, change.state)}"
    return f"{where}: {after} instead of {before} (seen with probability {change.probability:.3g})"


def audit_summary(found: Audit) -> Summary:
    """Show intervals for costs, values and gains, what they rest on, and why an upper bound says nothing."""
    word = "FEASIBLE" if found.feasible else "VIOLATED" if found.violated else "OPEN"
    shown_text = {
        "FEASIBLE": "meets every threshold",
        "VIOLATED": "exceeds a threshold",
        "OPEN": "may or may not meet every threshold, for all that these episodes tell",
    }[word]
    range_text = f"exploitability in {_ends(found.exploitability)}"
    sentence = f"{found.name} {shown_text}; {range_text}, with probability {1 - found.delta:g}."
    shown = largest(np.array([gain.upper for gain in found.gains]))
    rows = [
        (found.names.agent(i), _ends(found.values[i]), _ends(found.gains[i]), _source(found.deviations[i]))
        for i in shown
    ]
    note = shown_of(shown, len(found.gains), "agents with the largest gains; --json has all")
    parts: list[str | Table] = [Table(("agent", "value", "could gain", "shown by"), tuple(rows), note)]
    if len(found.costs):
        limits = [
            (found.names.constraint(j), _ends(each), significant(found.thresholds[j]))
            for j, each in enumerate(found.costs)
        ]
        parts.append(Table(("constraint", "cost", "threshold"), tuple(limits)))
        parts += [
            f"whether {found.names.constraint(j)} is kept is open: the threshold lies within the interval, which four "
            "times as many episodes halve"
            for j, each in enumerate(found.costs)
            if each.lower <= found.thresholds[j] < each.upper
        ][:MAX_COSTS]
    if found.vacuous:
        parts.append(f"the upper bound is vacuous here, because {found.vacuous}")
        parts.append(f"what would help: {found.remedy}")
    unproved = [each for each in found.tried if not each.within_budget]
    if unproved:
        parts.append(
            f"{len(unproved)} of {len(found.tried)} deviations were not proved to keep the budget, and do not count"
        )
    spent = ", ".join(f"{count:,} for {purpose}" for purpose, count in found.samples.items())
    parts.append(f"{found.total_samples:,} steps: {spent}")
    parts += [f"taken for granted: {each}" for each in found.assumptions]
    return Summary(word, sentence, tuple(parts), good=found.feasible)


def _source(deviation: MeasuredDeviation | None) -> str:
    return "–" if deviation is None or deviation.gain.lower <= 0 else f"a deviation that was {deviation.source}"


def _ends(interval: Interval) -> str:
    upper = "∞" if math.isinf(interval.upper) else f"{interval.upper:.4g}"
    return f"[{interval.lower:.4g}, {upper}]"


def audit_record(found: Audit) -> Fields:
    """Return an audit in words that JSON knows; an upper end is null where there is no bound."""
    return plain_fields(
        {
            "format": "cmpg-audit",
            "version": 1,
            "policy": found.name,
            "delta": found.delta,
            "feasible": found.feasible,
            "violated": found.violated,
            "exploitability": _pair(found.exploitability),
            "gains": [_pair(gain) for gain in found.gains],
            "values": [_pair(value) for value in found.values],
            "costs": [_pair(cost) for cost in found.costs],
            "thresholds": found.thresholds,
            "vacuous": found.vacuous or None,
            "remedy": found.remedy or None,
            "samples": found.samples,
            "assumptions": found.assumptions,
        }
    )


def _pair(interval: Interval) -> tuple[float, float]:
    return interval.lower, interval.upper


def audit_table(found: Sequence[Audit]) -> Table:
    """Return a row for each policy that was judged by episodes."""
    rows = []
    for each in found:
        verdict_word = "feasible" if each.feasible else "violated" if each.violated else "open"
        costs = ", ".join(
            f"{_ends(cost)}/{limit:.4g}" for cost, limit in zip(each.costs[:MAX_COSTS], each.thresholds, strict=False)
        )
        total = Interval(sum(value.lower for value in each.values), sum(value.upper for value in each.values))
        gain = _ends(each.exploitability) + (" (vacuous)" if each.vacuous else "")
        rows.append((each.name, gain, costs or "none", _ends(total), verdict_word))
    return Table(("policy", "exploitability", "cost", "total value", "verdict"), tuple(rows))


# --- Side by side -----------------------------------------------------------------------------------------------------


def side_by_side_summary(together: SideBySide) -> Summary:
    """Show a row for each policy, and the bound for all."""
    bound = together.bound
    shown_text = "no upper bound on the total value is known"
    if bound is not None:
        shown_text = f"no feasible policy is worth more than {at_most(bound.value, 6)} in total ({bound.proof})"
    table = side_by_side_table(together)
    head, *rest = _lines(table)
    return Summary(head, "", (*rest, shown_text))


def _lines(table: Table) -> list[str]:
    return table_text(table).splitlines()


def side_by_side_table(together: SideBySide) -> Table:
    """Return a row for each policy: exploitability, costs, value, distance to the best known, verdict."""
    columns = ("policy", "exploitability", "cost", "total value", "below best known", "verdict")
    rows = []
    for judged in together.judged:
        violated = not judged.certificate.meets(together.allow_rounding)
        cells: tuple[Cell, ...] = (
            "–" if violated else significant(_rounded(judged.exploitability), 3),
            costs_text(judged.costs, judged.certificate.thresholds),
            fixed(judged.welfare),
            "–"
            if violated or not math.isfinite(judged.to_best_known)
            else significant(_rounded(judged.to_best_known), 3),
            verdict(judged, epsilon=together.epsilon, allow_rounding=together.allow_rounding),
        )
        rows.append((judged.name, *cells))
    return Table(columns, tuple(rows))


def _rounded(gain: float) -> float:
    """Return a gain as tables show it: what rounding alone leaves is nothing."""
    return 0.0 if abs(gain) < 1e-12 else gain


def costs_text(costs: Any, thresholds: Any) -> str:
    """Write costs beside their thresholds, those with the least slack first.

    Examples
    --------
    >>> costs_text(np.array([0.25]), np.array([0.5]))
    '0.25/0.5'
    """
    order = np.argsort(np.asarray(thresholds) - np.asarray(costs), kind="stable")[:MAX_COSTS].tolist()
    shown_text = ", ".join(f"{costs[j]:.4g}/{thresholds[j]:.4g}" for j in order)
    return (shown_text or "none") + (f", … ({len(costs)})" if len(costs) > MAX_COSTS else "")


def side_by_side_record(together: SideBySide) -> Fields:
    """Return the table in words that JSON knows."""
    return plain_fields(
        {
            "format": "cmpg-judged",
            "version": 1,
            "best_known": together.best_known,
            "bound": None if together.bound is None else together.bound.value,
            "policies": [_record(together, judged) for judged in together.judged],
        }
    )


def _record(together: SideBySide, judged: JudgedPolicy) -> Fields:
    certificate = judged.certificate
    return {
        "policy": judged.name,
        "verdict": verdict(judged, epsilon=together.epsilon, allow_rounding=together.allow_rounding),
        "feasible": judged.feasible,
        "feasibility": certificate.feasibility.name,
        "exploitability": judged.exploitability,
        "gains": judged.gains,
        "values": judged.values,
        "costs": judged.costs,
        "thresholds": certificate.thresholds,
        "welfare": judged.welfare,
        "below_best_known": judged.to_best_known,
        "information": certificate.information,
        "judged_by": certificate.judged_by,
        "deviations": [None if each is None else _deviation_record(judged, each) for each in judged.deviations],
    }


def _deviation_record(judged: JudgedPolicy, deviation: Deviation) -> Fields:
    return {
        "agent": judged.names.agent(deviation.agent),
        "gain": deviation.gain,
        "value": deviation.value,
        "costs": deviation.costs,
        "changes": [change_text(judged, deviation.agent, change) for change in deviation.changes],
    }


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8884; --soft: #8881; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }}
th, td {{ padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }}
th:first-child, td.words {{ text-align: left; }}
.scroll {{ overflow-x: auto; }}
section {{ border-top: 1px solid var(--line); margin-top: 2rem; }}
.bar {{ fill: #3a7bd5; }} .over {{ fill: #c0392b; }} .limit {{ stroke: currentColor; stroke-dasharray: 3 3; }}
text {{ fill: currentColor; font-size: 12px; }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""


def side_by_side_page(together: SideBySide, *, title: str) -> str:
    """Return one self-contained page: the table, a picture of what agents could gain and what is spent, each policy."""
    bound = together.bound
    parts = [f'<div class="scroll">{table_html(side_by_side_table(together))}</div>']
    if bound is not None:
        parts.append(
            f"<p>No feasible policy is worth more than {at_most(bound.value, 6)} in total ({escape(bound.proof)}).</p>"
        )
    for judged in together.judged:
        parts.append(_section(judged.name, judged_summary(judged), _picture(judged)))
    return PAGE.format(title=escape(plain(title)), body="\n".join(parts))


def _section(name: str, summary: Summary, picture: str) -> str:
    shown = "".join(_part(part) for part in summary.parts)
    head = f"<h2>{escape(plain(name))}</h2><p><b>{escape(summary.word)}</b>: {escape(plain(summary.sentence))}</p>"
    return f"<section>{head}{picture}{shown}</section>"


def _part(part: str | Table) -> str:
    if isinstance(part, str):
        return f"<p>{escape(plain(part))}</p>"
    return f'<div class="scroll">{table_html(part)}</div>'


def _picture(judged: JudgedPolicy) -> str:
    """Draw bars: what each agent could gain, and what each constraint costs beside its threshold."""
    agents, limits = largest(judged.gains, MAX_ROWS), largest(-judged.certificate.slacks, MAX_ROWS)
    bars: Bars = [(judged.names.agent(i), None, float(judged.gains[i]), None) for i in agents]
    spent: Bars = [
        (judged.names.constraint(j), None, float(judged.costs[j]), float(judged.certificate.thresholds[j]))
        for j in limits
    ]
    return _bars("what each agent could gain", bars) + (_bars("what each constraint costs", spent) if spent else "")


def audits_page(found: Sequence[Audit], *, title: str) -> str:
    """Return one self-contained page of policies that were judged by episodes: the table, and each with its picture."""
    parts = [
        f'<div class="scroll">{table_html(audit_table(found))}</div>',
        f"<p>Each row holds with probability {1 - found[0].delta:g}: all of its intervals together contain the truth. "
        "Lower ends are deviations that were played and are proved to keep the budget; upper ends hold for every "
        "deviation that keeps it.</p>",
    ]
    for each in found:
        parts.append(_section(each.name, audit_summary(each), _audit_picture(each)))
    return PAGE.format(title=escape(plain(title)), body="\n".join(parts))


def _audit_picture(found: Audit) -> str:
    """Draw intervals: what each agent could gain, and what each constraint costs beside its threshold."""
    agents = largest(np.array([gain.upper for gain in found.gains]), MAX_ROWS)
    bars: Bars = [(found.names.agent(i), found.gains[i].lower, found.gains[i].upper, None) for i in agents]
    limits = largest(np.array([cost.upper for cost in found.costs]) - found.thresholds, MAX_ROWS)
    spent: Bars = [
        (found.names.constraint(j), found.costs[j].lower, found.costs[j].upper, float(found.thresholds[j]))
        for j in limits
    ]
    return _bars("what each agent could gain", bars) + (_bars("what each constraint costs", spent) if spent else "")


Bars = list[tuple[str, float | None, float, float | None]]
"""Names, the lower end of an interval if it is one, the number or upper end, and what that should not exceed."""

LEFT, WIDE = 160, 300
"""Where bars begin, and how long the longest is, in a picture that is 600 wide."""


def _bars(title: str, bars: Bars) -> str:
    ends = [end for _, *row in bars for end in row if end is not None and math.isfinite(end)]
    scale = WIDE / (1.1 * max([1e-12, *map(abs, ends)]))
    rows, height = [], 22
    for place, (name, lower, upper, limit) in enumerate(bars):
        y = 20 + height * place
        begin, end = (scale * max(_rounded(each), 0.0) for each in (lower or 0.0, upper))
        end = min(end, WIDE)  # without an upper end the bar goes to the edge
        # Red is what is proved to exceed; an interval with the threshold inside is neither.
        over = " over" if limit is not None and (upper if lower is None else lower) > limit else ""
        rows.append(f'<text x="0" y="{y + 14}">{escape(plain(name)[:22])}</text>')
        width = max(end - begin, 0.0 if lower is None else 2.0)  # an interval of no width is still there
        rows.append(f'<rect class="bar{over}" x="{LEFT + begin:.1f}" y="{y + 3}" width="{width:.1f}" height="14"/>')
        shown = f"{_rounded(upper):.4g}" if lower is None else _ends(Interval(_rounded(lower), _rounded(upper)))
        shown += "" if limit is None else f" of {limit:.4g}"
        after = max(begin + width, 0.0 if limit is None else scale * limit)
        rows.append(f'<text x="{LEFT + 6 + after:.1f}" y="{y + 14}">{shown}</text>')
        if limit is not None:
            x = LEFT + scale * limit
            rows.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 20}"/>')
    label = f'<text x="0" y="12" font-weight="bold">{escape(title)}</text>'
    size = 24 + height * len(bars)
    # On a phone it is scrolled: shrunk to the width, its words could not be read.
    drawn = f'<svg viewBox="0 0 600 {size}" width="600" role="img">{label}{"".join(rows)}</svg>'
    return f'<div style="overflow-x:auto">{drawn}</div>'
