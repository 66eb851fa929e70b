"""The page of a learning run: what was claimed over the seeds, at what price in samples, and what is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.faces import Cell, Table, fixed, significant
from cmpg.files.learning_folder import LearnedRun, LearnedSeed
from cmpg.report.charts import Chart, samples_chart, unsafe_chart
from cmpg.report.wording import Headline


def learning_context(run: LearnedRun) -> tuple[dict[str, Any], list[Chart]]:
    """Return what the template names for a learning run, and its charts."""
    context = {
        "title": f"learning run {run.folder.resolve().name}",
        "subtitle": "policies learned from samples, judged with the true game when this page was written",
        "verdict": _headline(run),
        "facts": _facts(run.seeds),
        "provenance": _provenance(run.seeds),
        "seeds": _seeds_table(run),
    }
    return context, _charts(run.seeds)


def _headline(run: LearnedRun) -> Headline:
    claimed = [each for each in run.seeds if each.claimed]
    wrong, first = sum(not each.right for each in claimed), run.seeds[0]
    sentence = (
        f"{len(claimed)} of {len(run.seeds)} seeds claim a feasible policy from which no agent gains more than "
        f"{first.epsilon:g} by leaving, each with probability {1 - first.delta:g}; {wrong} of these claims are wrong."
    )
    detail = (
        "Whether a claim is right was judged again with the true game, which the learners never saw. What was drawn "
        "and played on the way is as the run recorded it."
    )
    if run.torn:
        detail += " The last record was torn off, and is left out."
    good = len(claimed) == len(run.seeds) and not wrong
    return Headline("CERTIFIED" if good else "LIMIT", "good" if good else "warn", "Learned", sentence, detail)


def _facts(seeds: Sequence[LearnedSeed]) -> dict[str, str]:
    return {
        "seeds": str(len(seeds)),
        "ε": f"{seeds[0].epsilon:g}",
        "δ": f"{seeds[0].delta:g}",
        "samples, median": f"{int(np.median([each.total_samples for each in seeds])):,}",
        "unsafe policies played": str(sum(each.unsafe_policies for each in seeds)),
    }


def _seeds_table(run: LearnedRun) -> Table:
    constraints = run.game.names.all_constraints(len(run.game.thresholds))
    rows: list[tuple[Cell, ...]] = []
    for each in run.seeds:
        claim = ("right" if each.right else "wrong") if each.claimed else each.status.name
        paid = [significant(cost, 6) for cost in each.certificate.costs]
        counts = (f"{each.total_samples:,}", f"{each.unsafe_policies:,}")
        rows.append((str(each.seed), claim, fixed(each.certificate.epsilon, 4), *paid, *counts))
    costs = [f"true cost: {name}" for name in constraints]
    return Table(("seed", "claim", "true gap", *costs, "samples", "unsafe policies"), tuple(rows))


def _charts(seeds: Sequence[LearnedSeed]) -> list[Chart]:
    ordered = sorted(seeds, key=lambda each: each.total_samples)
    totals = np.array([each.total_samples for each in ordered], dtype=np.float64)
    gaps = np.array([each.certificate.epsilon for each in ordered])
    charts = [samples_chart(totals, gaps, epsilon=seeds[0].epsilon)] if totals.min() > 0 else []
    played = np.cumsum([each.executed_policies for each in seeds])
    if played[-1] > 0:
        charts.append(unsafe_chart(played, np.cumsum([each.unsafe_policies for each in seeds])))
    return charts


def _provenance(seeds: Sequence[LearnedSeed]) -> dict[str, str]:
    return {
        "Seeds": str(len(seeds)),
        "Settings": ", ".join(f"{name} = {value}" for name, value in seeds[0].settings.items()) or "none",
        "Samples were drawn for": ", ".join(seeds[0].samples) or "nothing",
        "Page": f"written and judged by cmpg {__version__}",
    }
