"""Crowds in words and tables: the largest groups, constraints and what is proved; it formats and computes nothing."""

from __future__ import annotations

import csv
import io
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.scenarios.traffic_assignment import Demand, Roads, relative_gap, shortest_paths
from cmpg.summaries import Summary, Table, at_most, counted, table_html

if TYPE_CHECKING:
    from cmpg.equilibrium.crowds.certificate import CrowdCertificate
    from cmpg.equilibrium.crowds.solve import CrowdResult

SHOWN_GROUPS = 20
"""Tables and pages show this many groups, the largest."""


def crowd_certificate_summary(certificate: CrowdCertificate) -> Summary:
    """Return what is proved of a crowd, its largest groups and its constraints."""
    tables = (crowd_groups_table(certificate), crowd_constraints_table(certificate))
    return Summary(
        proved_of_crowd(certificate),
        allowance_text(certificate),
        parts=tuple(table for table in tables if table.rows),
        good=certificate.feasible,
    )


def proved_of_crowd(certificate: CrowdCertificate) -> str:
    """Say in a sentence what is proved of a policy by groups."""
    met = certificate.feasibility.value
    return (
        f"The policy {met}; no agent gains more than {at_most(certificate.epsilon)} by deviating "
        f"({certificate.information}; {int(certificate.number.sum()):,} agents in "
        f"{counted(len(certificate.number), 'group')})"
    )


def allowance_text(certificate: CrowdCertificate) -> str:
    """Say how much of the proof is an allowance, and for what."""
    laws = f"{counted(certificate.laws, 'law')} of loads, of up to {certificate.widest:,} entries"
    return (
        f"allowance for rounding in a gain {certificate.allowance:.2g}, of which for cut tails "
        f"{float(certificate.cut.max()):.2g}; in a cost {float(certificate.cost_rounding.max(initial=0.0)):.2g}; {laws}"
    )


def crowd_groups_table(certificate: CrowdCertificate, *, ranges: IntArray | None = None) -> Table:
    """Return the largest groups: agents as ranges, value, gain and prices."""
    names, sizes = certificate.names, certificate.number
    shown = np.argsort(-sizes, kind="stable")[:SHOWN_GROUPS].tolist()
    prices = tuple(f"price of {names.constraint(j)}" for j in range(len(certificate.thresholds)))
    rows = tuple(
        (
            names.agent(int(certificate.kind[g])),
            *(() if ranges is None else (f"{ranges[g, 0]:,} to {ranges[g, 1] - 1:,}",)),
            f"{sizes[g]:,}",
            f"{certificate.values[g] * names.legend.value.each:.6g}",
            f"{certificate.gains[g]:.2g}",
            *(f"{price:.4g}" for price in certificate.multipliers[g]),
        )
        for g in shown
    )
    rest = len(sizes) - len(shown)
    more = f"and {counted(rest, 'more group')} of {int(np.delete(sizes, shown).sum()):,} agents" if rest else ""
    which = () if ranges is None else (f"{names.legend.agent}s of the kind",)
    value = f"{names.legend.value.title} of one"
    return Table(("kind", *which, "number", value, "could gain", *prices), rows, more)


def crowd_constraints_table(certificate: CrowdCertificate) -> Table:
    """Return costs beside thresholds."""
    rows = tuple(
        (
            certificate.names.constraint(j),
            f"{certificate.costs[j]:.9g}",
            f"{certificate.thresholds[j]:.9g}",
            f"{certificate.thresholds[j] - certificate.costs[j]:.3g}",
        )
        for j in range(len(certificate.costs))
    )
    return Table(("constraint", "expected", "limit", "left"), rows)


def crowd_summary(result: CrowdResult) -> Summary:
    """Return what is printed of a result: the status, groups, constraints, and the work."""
    if result.certificate_or_none is None:
        return Summary(result.status.name, result.message, good=False)
    certificate = result.certificate
    mixed = int(result.policy.number[result.policy.mixes].sum())
    legend = certificate.names.legend
    work = (
        f"{result.game.num_agents:,} {legend.agent}s of {counted(result.game.num_kinds, 'kind')} in "
        f"{counted(result.policy.num_groups, 'group')}, of whom {mixed:,} mix; total {legend.value.title} "
        f"{certificate.welfare * legend.value.each:.9g}; {counted(result.moves, 'batch move')}, "
        f"{counted(result.turns, 'single move')}"
    )
    return Summary(
        result.status.name,
        result.message,
        parts=(
            crowd_groups_table(certificate, ranges=result.policy.ranges),
            crowd_constraints_table(certificate),
            work,
            allowance_text(certificate),
            *roads_text(result),
        ),
        good=result.certified,
    )


def roads_text(result: CrowdResult) -> tuple[str, ...]:
    """Say what the flows are worth on all paths of the network, also those that the game does not offer."""
    certificate, legend = result.certificate, result.game.names.legend
    if legend.roads is None:
        return ()
    roads, vehicles = Roads.on(legend.roads), legend.load.each
    flows, minutes = vehicles * certificate.loads[0], legend.roads.minutes
    ends = tuple((origin - 1, end - 1) for origin, end in legend.roads.trips)
    saved = 0.0
    for g, k in enumerate(certificate.kind.tolist()):
        own = result.game.kinds[k].uses[0].T @ result.policy.plans[g][0, 0]
        # Times are convex in the load, so a deviator expects at least the time at the mean of what it meets.
        met = roads.costs(flows + vehicles * (1 - own))
        _, least = shortest_paths(roads, Demand((ends[k],), np.ones(1)), met)
        saved = max(saved, float(certificate.values[g] * legend.value.each - least[0] * minutes))
    demand = Demand(ends, vehicles * result.game.numbers.astype(np.float64))
    return (
        f"over all paths of the network, offered or not: no {legend.agent} saves more than {saved:.2g} min by another "
        f"one (computed in floats, not proved); relative gap of the flows {relative_gap(roads, demand, flows):.2g}; "
        f"total travel time at mean flows {float(flows @ roads.times(flows)) * minutes / 60:,.6g} vehicle-hours",
    )


Row = dict[str, Any]


def group_rows(result: CrowdResult) -> list[Row]:
    """Return one row for each group, the largest first: agents as a range, value, gain, prices, resources used."""
    certificate, policy, names = result.certificate, result.policy, result.game.names
    rows = []
    for g in np.argsort(-policy.number, kind="stable").tolist():
        row: Row = {
            "kind": names.agent(int(policy.kind[g])),
            "first": int(policy.ranges[g, 0]),
            "last": int(policy.ranges[g, 1]) - 1,
            "number": int(policy.number[g]),
            "share": float(policy.number[g] / result.game.numbers[policy.kind[g]]),
            names.legend.value.title: float(certificate.values[g]) * names.legend.value.each,
            "could gain": float(certificate.gains[g]),
            "mixes": bool(policy.mixes[g]),
            **({} if names.actions is None else {"plays": _played(result, g)}),
        }
        for j in range(len(certificate.thresholds)):
            row[f"price of {names.constraint(j)}"] = float(certificate.multipliers[g, j])
        rows.append(row)
    return rows


def _played(result: CrowdResult, group: int) -> str:
    """Return what a group plays at the first step and state, if that is all there is: the names of actions."""
    table, kind = result.policy.plans[group], int(result.policy.kind[group])
    if table.shape[:2] != (1, 1):
        return ""
    names = result.game.names
    shares = [(float(table[0, 0, a]), names.action(kind, a)) for a in np.flatnonzero(table[0, 0]).tolist()]
    return shares[0][1] if len(shares) == 1 else ", ".join(f"{name} ({share:.6g})" for share, name in shares)


def load_rows(result: CrowdResult) -> list[Row]:
    """Return a row for each step and resource: the mean of the load, three deviations around it, and times of roads."""
    certificate, names = result.certificate, result.game.names
    rows, roads, each = [], names.legend.roads, names.legend.load.each
    times = None if roads is None else Roads.on(roads).times(each * certificate.loads) * roads.minutes
    for h, e in np.ndindex(*certificate.loads.shape):
        mean, spread = float(certificate.loads[h, e]), 3 * float(certificate.deviations[h, e])
        row: Row = {
            names.legend.step: names.step(h),
            names.legend.resource: result.game.all_resource_names[e],
            "users": mean,
            "users, less 3 deviations": max(mean - spread, 0.0),
            "users, plus 3 deviations": mean + spread,
        }
        if roads is not None and times is not None:
            row |= {
                "travel time (min)": float(times[h, e]),
                "free flow time (min)": roads.free_flow_time[e] * roads.minutes,
            }
            if roads.capacity[e]:
                row |= {"capacity (vehicles)": roads.capacity[e], "volume/capacity": each * mean / roads.capacity[e]}
        rows.append(row)
    return rows


def rows_csv(rows: list[Row]) -> str:
    """Write rows as CSV."""
    target = io.StringIO()
    writer = csv.DictWriter(target, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue()


STYLE = (
    "main > .scroll, main > figure{margin:1rem 0}figure svg{display:block;width:100%;max-width:44rem;height:auto}"
    "figure text{fill:var(--quiet)}.mean{fill:var(--series-1);opacity:.55}.band{fill:var(--text)}"
)


def crowd_page(result: CrowdResult) -> str:
    """Return one self-contained page: what is proved, loads by step with their band, groups, what was assumed."""
    from cmpg.report.page import page_part  # on use: it loads the readers of run folders

    summary = crowd_summary(result)
    parts = [] if result.certificate_or_none is None else [_bands(result)]
    for part in summary.parts:
        parts.append(
            f"<p>{escape(part)}</p>" if isinstance(part, str) else f'<div class="scroll">{table_html(part)}</div>'
        )
    translation = result.game.names.legend.translation
    if translation:
        rows = "".join(f'<tr><th scope="row">{escape(a)}</th><td>{escape(b)}</td></tr>' for a, b in translation)
        parts.append(
            f'<h2>How the data became this game</h2><div class="scroll"><table class="facts-table">{rows}</table></div>'
        )
    tone = "good" if result.certified else "warn"
    title = f"{result.game.num_agents:,} {result.game.names.legend.agent}s"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{page_part('page.css')}{STYLE}</style></head><body><header><h1>{escape(title)}</h1>"
        f'<div class="verdict {tone}"><strong><span>{escape(summary.word)}:</span> {escape(summary.sentence)}</strong>'
        f"</div></header><main>{''.join(parts)}</main></body></html>\n"
    )


MAX_BANDS, MAX_BARS = 6, 24
"""A page draws the loads of this many resources, the most used; of games of one step, in one picture."""


def _bands(result: CrowdResult) -> str:
    """Draw the loads of the most used resources: the mean, and three standard deviations around it."""
    certificate, names = result.certificate, result.game.names
    if len(certificate.loads) == 1:  # one picture of resources side by side
        shown = np.argsort(-certificate.loads[0], kind="stable")[:MAX_BARS]
        what = f"the {len(shown)} most used {names.legend.resource}s" if len(shown) > 1 else "the resource"
        return _band(what, certificate.loads[0, shown], certificate.deviations[0, shown],
                     [result.game.all_resource_names[e] for e in shown.tolist()])  # fmt: skip
    shown = np.argsort(-certificate.loads.max(axis=0), kind="stable")[:MAX_BANDS]
    return "".join(_band(result.game.all_resource_names[e], certificate.loads[:, e], certificate.deviations[:, e],
                         [names.step(h) for h in range(len(certificate.loads))]) for e in shown.tolist())  # fmt: skip


def _band(name: str, mean: FloatArray, deviation: FloatArray, steps: list[str]) -> str:
    width, height, left, bottom = 480.0, 225.0, 60.0, 45.0
    top = float((mean + 3 * deviation).max()) or 1.0
    cell = (width - left) / len(steps)

    def y(value: float) -> float:
        return (height - bottom) * (1 - max(value, 0.0) / top) + 12

    bars = []
    for h, (load, spread) in enumerate(zip(mean.tolist(), deviation.tolist(), strict=True)):
        x, low, high = left + h * cell, y(load - 3 * spread), y(load + 3 * spread)
        words = f"{steps[h]}: {load:,.1f} ± {3 * spread:,.1f}"
        bars.append(
            f"<g><title>{escape(words)}</title>"
            f"{_rectangle(x + 1, y(load), cell - 2, y(0) - y(load), 'mean')}"
            f"{_rectangle(x + cell / 2 - 1, high, 2, max(low - high, 1), 'band')}</g>"
        )
    every = max(1, len(steps) // 8)
    labels = "".join(
        f'<text x="{left + (h + 0.5) * cell:.1f}" y="{height - 16:.0f}" text-anchor="middle">{escape(step)}</text>'
        for h, step in enumerate(steps)
        if h % every == 0
    )
    ends = "".join(
        f'<text x="{left - 8:.0f}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>' for value in (0.0, top)
    )
    return (
        f"<figure><h3>Users of {escape(name)}</h3>"
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" font-size="12" role="img">{"".join(bars)}{labels}{ends}</svg>'
        "<figcaption>Mean, and three standard deviations around it.</figcaption></figure>"
    )


def _rectangle(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{kind}"/>'
