"""What terminals, pages and tables show of a device: what is proved, and what each agent is recommended, how often."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy
from cmpg.equilibrium.quality import OptimalityGap
from cmpg.equilibrium.recommendations.recommend import Recommendation, device_of
from cmpg.games.devices import Device, Rota
from cmpg.games.game import Game
from cmpg.report.certificates import agents_table, certificate_tables
from cmpg.report.charts import Chart, ChartGroup, bar_chart
from cmpg.report.display import quality_line
from cmpg.report.formats import Row
from cmpg.report.page import write_context_page
from cmpg.report.wording import Headline, priced_constraints
from cmpg.simulation.episodes import simulate
from cmpg.summaries import MAX_ROWS, Cell, Summary, Table, counted, fixed, significant, typeset

MAX_PAGE_ROWS = 400
"""A page shows at most this many recommendations; `cmpg export` has all."""

SIMULATED = 20_000
"""Episodes that a page plays, if they are quick."""


def recommendation_summary(found: Recommendation, *gaps: OptimalityGap) -> Summary:
    """Show the status, the modes of a rota, agents and constraints, and what is covered."""
    parts: list[str | Table] = []
    if found.certificate is not None and found.device is not None:
        if isinstance(found.device, Rota):
            parts.append(modes_table(found.game, found.device))
        parts += certificate_tables(found.certificate)
        parts += [quality_line(gap) for gap in gaps]
        if found.nash is not None and found.nash.incumbent is not None:
            parts.append(f"the Nash policy that the search began with: total value {found.nash.values.sum():.6f}")
        parts += [
            f"promise: {found.concept.value}",
            f"covers: {found.certificate.information.covers}",
            f"found by: {found.found_by}; judged by: {found.certificate.judged_by}",
        ]
    return Summary(found.status.name, found.message, tuple(parts), good=found.certified)


def modes_table(game: Game, rota: Rota) -> Table:
    """Return how often each mode of a rota is played, what it is worth to all, and what it spends."""
    names = game.names.all_constraints(len(game.thresholds))[:3]
    rows: list[tuple[Cell, ...]] = []
    for m, (mode, share) in enumerate(zip(rota.modes, rota.weights, strict=True)):
        position = game.at(mode.floats())
        spent = [significant(float(position.costs[j])) for j in range(len(names))]
        rows.append((f"mode {m + 1}", fixed(100 * float(share), 4), fixed(float(np.sum(position.values))), *spent))
    note = "a single mode may exceed a threshold: they hold on average over days" if len(rota.modes) > 1 else ""
    return Table(("mode", "% of days", "total value", *(f"{name} costs" for name in names)), tuple(rows), note)


def recommended_rows(game: Game, device: Device) -> Iterator[Row]:
    """Yield what each agent is recommended where, with which probability; of a rota for each mode."""
    names = game.names
    if isinstance(device, Rota):
        for m, (mode, share) in enumerate(zip(device.modes, device.weights, strict=True)):
            for i, table in enumerate(mode.floats()):
                yield from _table_rows({"mode": m + 1, "share of days": float(share)}, names, i, table)
        return
    for i in range(game.num_agents):
        yield from _table_rows({}, names, i, np.asarray(device.recommended(i), dtype=np.float64))


def _table_rows(first: Row, names: Any, agent: int, table: FloatArray) -> Iterator[Row]:
    for h, s, a in np.argwhere(table > 0).tolist():
        yield {
            **first,
            "agent": names.agent(agent),
            "step": names.step(h),
            "state": names.state(agent, s),
            "recommended": names.action(agent, a, s),
            "probability": float(table[h, s, a]),
        }


def recommended_table(game: Game, device: Device, most: int) -> Table:
    """Return recommendations as a table of at most this many rows, those in states that are reached first."""
    rows = list(_reached_first(game, device))
    shown = [tuple(each if isinstance(each, str) else significant(each, 6) for each in row.values()) for row in rows]
    note = f"showing {most:,} of {len(rows):,} recommendations; `cmpg export` has all" if len(rows) > most else ""
    return Table(tuple(rows[0]), tuple(shown[:most]), note)


def _reached_first(game: Game, device: Device) -> Sequence[Row]:
    """Return the recommendations that someone may receive: in states that are reached by those who obey."""
    floats = game
    if not isinstance(device, Rota):
        return list(recommended_rows(floats, device))
    found: list[Row] = []
    for m, (mode, share) in enumerate(zip(device.modes, device.weights, strict=True)):
        position = floats.at(mode.floats())
        for i in range(floats.num_agents):
            visits = np.asarray(occupancy(position.induced_cmdp(i), position.policy[i]), dtype=np.float64)
            first = {"mode": f"mode {m + 1}", "share of days": float(share)}
            reached = np.where(visits.sum(axis=2, keepdims=True) > 0, np.asarray(mode.floats()[i]), 0.0)
            found += _table_rows(first, floats.names, i, reached)
    return found


def write_recommendation_page(found: Recommendation, target: Path) -> int:
    """Write the page of a recommendation, whole or not at all, and return its size in bytes."""
    return write_context_page(lambda: _context(found), target)


def _context(found: Recommendation) -> tuple[dict[str, Any], list[ChartGroup]]:
    device, certificate = device_of(found), found.certificate
    assert certificate is not None
    good, game = found.certified, found.game
    detail = (
        f"Promise: {found.concept.value}. Covers {certificate.information.covers}. In {certificate.arithmetic} "
        "arithmetic; proved again when this page was written."
    )
    word = "Proved" if good else "Not proved"
    message = re.sub(r"\d[\d.]*e[+-]\d+", lambda number: typeset(number[0]), found.message)
    subtitle = "a joint action is drawn at every step, and each agent is shown its own part"
    if isinstance(device, Rota):
        subtitle = f"a rota of {counted(len(device.modes), 'mode')}, one of which is drawn and announced each day"
    context: dict[str, Any] = {
        "title": f"{found.concept.word} recommendations",
        "subtitle": subtitle,
        "verdict": Headline(found.status.name, "good" if good else "warn", word, message, detail),
        "facts": {
            "agents": str(game.num_agents),
            "constraints": str(len(game.thresholds)),
            "ε": f"{found.epsilon:g}",
            "total value": f"{float(np.sum(found.values)):.6g}",
        },
        "provenance": {"cmpg": __version__, "found by": found.found_by, "judged by": certificate.judged_by},
        "agents": agents_table(certificate, None),
        "constraints": priced_constraints(certificate) if len(found.costs) else None,
        "recommended": {
            "modes": modes_table(game, device) if isinstance(device, Rota) else None,
            "table": recommended_table(game, device, MAX_PAGE_ROWS),
            "played": _played(game, device),
        },
    }
    return context, [ChartGroup("", "", _charts(game, device))]


def _charts(game: Game, device: Device) -> list[Chart]:
    if not isinstance(device, Rota) or not len(game.thresholds):
        return []
    positions = [game.at(mode.floats()) for mode in device.modes]
    heads = [f"mode {m + 1} ({100 * float(w):.3g} % of days)" for m, w in enumerate(device.weights)]
    return [
        bar_chart(
            f"mode-cost-{j}",
            f"{game.names.constraint(j)}, by mode",
            "The threshold holds on average over days.",
            heads,
            [float(each.costs[j]) for each in positions],
            limit=float(game.thresholds[j]),
        )
        for j in range(min(len(game.thresholds), MAX_ROWS))
    ]


def _played(game: Game, device: Device) -> Table | None:
    """Return what some episodes with the device brought, beside what is claimed."""
    if not len(game.thresholds):
        return None
    seen = simulate(game, device, SIMULATED, rng=np.random.default_rng(0), shown=0)
    return seen.costs_table()
