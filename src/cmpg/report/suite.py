"""The suite as tables and as a page that ranks: rows of methods, and of submissions beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from cmpg.report.judging import PAGE
from cmpg.suite.games import SUITE, VERSION
from cmpg.suite.references import reference
from cmpg.suite.submissions import Submission, SuiteRow, ranked
from cmpg.summaries import Cell, Summary, Table, plain, significant, table_html

COLUMNS = ("method", "Nash", "feasible", "entered", "mean relative gain", "mean shortfall")

READING = (
    "Nash: feasible, and no agent gains more than 1e-6 of its range of values by a deviation that keeps the "
    "constraints, proved. Mean relative gain: what the agent that gains most could gain, over the largest range of an "
    "agent's value, for feasible policies. Mean shortfall: how far the total value of feasible policies is below the "
    "best known, relative to it. Games that are not entered count as not solved."
)


def suite_table(rows: Sequence[SuiteRow]) -> Table:
    """Return rows, the best first."""
    cells: list[tuple[Cell, ...]] = []
    for row in ranked(list(rows)):
        counts = tuple(f"{number} of {row.games}" for number in (row.nash, row.feasible, row.entered))
        means = tuple("–" if math.isnan(mean) else significant(mean, 3) for mean in (row.mean_gain, row.mean_shortfall))
        cells.append((row.name, *counts, *means))
    return Table(COLUMNS, tuple(cells))


def games_table(games: Iterable[str] = SUITE) -> Table:
    """Return games with what is known of them."""
    cells: list[tuple[Cell, ...]] = []
    for name in games:
        known = reference(name)
        bound = "unknown" if known.bound is None else significant(known.bound, 6)
        digest = known.sha256[:12]
        cells.append((name, significant(known.best_known, 6), bound, significant(known.exploitability, 2), digest))
    return Table(("game", "best known", "bound", "its gain at most", "digest"), tuple(cells))


def submission_summary(found: Submission, rows: Sequence[SuiteRow]) -> Summary:
    """Show the row of a submission among those of the methods, and what was refused."""
    refused = [f"refused: {game}: {reason}" for game, reason in found.refused.items()]
    word = "REFUSED" if refused else "JUDGED"
    row = found.row
    sentence = f"{found.name}: {row.nash} Nash and {row.feasible} feasible of {row.games} games (version {VERSION})."
    shown = [] if refused else [row]
    return Summary(word, sentence, (*refused, suite_table([*rows, *shown])), good=not refused)


def suite_page(rows: Sequence[SuiteRow], games: Iterable[str] = SUITE) -> str:
    """Return a page that ranks rows, with the games and what is known of them."""
    counted = tuple(games)
    parts = [
        f"<p>{len(counted)} games, version {VERSION}. {escape(READING)}</p>",
        f'<div class="scroll">{table_html(suite_table(rows))}</div>',
        "<section><h2>The games</h2>",
        f'<div class="scroll">{table_html(games_table(counted))}</div></section>',
        "<p>Enter with <code>cmpg suite submit FOLDER</code>: one policy file for each game, named after it.</p>",
    ]
    return PAGE.format(title=escape(plain("The suite: who is feasible, and who is Nash?")), body="\n".join(parts))
