"""The page of a learning run: what was claimed over the seeds, at what price in samples, and what is true of it.

Below it, what the terminal shows: a table over seeds, a summary, the theory's bounds; and the same as plain records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.files.containers import Fields, plain_fields
from cmpg.files.learning_folder import RECORDS, LearnedRun, LearnedSeed
from cmpg.learning.bounds import BoundRow, BoundsTable
from cmpg.learning.slater import SlaterConstant
from cmpg.learning.trials import Progress, Proportion, Trial, samples_left
from cmpg.report.charts import Chart, ChartGroup, bounds_chart, samples_chart, unsafe_chart
from cmpg.report.page import write_context_page
from cmpg.report.wording import Headline
from cmpg.summaries import Cell, Summary, Table, fixed, significant


def write_learning_page(run: LearnedRun, target: Path) -> int:
    """Write the page of a learning run, whole or not at all, and return its size in bytes."""
    return write_context_page(lambda: learning_context(run), target, [run.folder / RECORDS])


def learning_context(run: LearnedRun) -> tuple[dict[str, Any], list[ChartGroup]]:
    """Return what the template names for a learning run, and its charts."""
    context = {
        "title": f"{run.name}, learned",
        "subtitle": "policies learned from samples, judged with the true game when this page was written",
        "verdict": _headline(run),
        "facts": _facts(run.seeds),
        "provenance": _provenance(run.seeds),
        "seeds": _seeds_table(run),
    }
    return context, [ChartGroup("What it took", "", _charts(run.seeds))]


def _headline(run: LearnedRun) -> Headline:
    claimed = [each for each in run.seeds if each.claimed]
    wrong, first = sum(not each.right for each in claimed), run.seeds[0]
    sentence = (
        f"{len(claimed)} of {len(run.seeds)} seeds claim a feasible policy from which no agent gains more than "
        f"{first.epsilon:g} by deviating, each with probability {1 - first.delta:g}; {wrong} of these claims are wrong."
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
    unsafe, played = sum(each.unsafe_policies for each in seeds), _played(seeds)
    return {
        "seeds": str(len(seeds)),
        "ε": f"{seeds[0].epsilon:g}",
        "δ": f"{seeds[0].delta:g}",
        "samples, median": f"{int(np.median([each.total_samples for each in seeds])):,}",
        **({"unsafe policies played": f"{unsafe:,} of {played:,}"} if played else {}),
    }


def _seeds_table(run: LearnedRun) -> Table:
    constraints = run.game.names.all_constraints(len(run.game.thresholds))
    rows: list[tuple[Cell, ...]] = []
    for each in run.seeds:
        claim = ("right" if each.right else "wrong") if each.claimed else each.status.name
        paid = [significant(cost, 6) for cost in each.certificate.costs]
        counts = (f"{each.total_samples:,}", f"{each.unsafe_policies:,}")
        rows.append((str(each.seed), claim, fixed(each.certificate.epsilon, 4), *paid, *counts))
    limits = [f"{threshold:g}" for threshold in np.asarray(run.game.thresholds, dtype=np.float64)]
    costs = [f"true cost: {name} (at most {limit})" for name, limit in zip(constraints, limits, strict=True)]
    return Table(("seed", "claim", "true gap", *costs, "samples", "unsafe policies"), tuple(rows))


def _charts(seeds: Sequence[LearnedSeed]) -> list[Chart]:
    ordered = sorted(seeds, key=lambda each: each.total_samples)
    totals = np.array([each.total_samples for each in ordered], dtype=np.float64)
    gaps = np.array([each.certificate.epsilon for each in ordered])
    charts = [samples_chart(totals, gaps, epsilon=seeds[0].epsilon)] if totals.min() > 0 else []
    curves = {each.seed: each.curve for each in seeds if np.isfinite(each.curve[:, 1]).any()}
    if curves:
        charts.append(bounds_chart(curves, epsilon=seeds[0].epsilon))
    unsafe = np.cumsum([each.unsafe_policies for each in seeds])
    if unsafe[-1] > 0:
        charts.append(unsafe_chart(np.cumsum([each.executed_policies for each in seeds]), unsafe))
    return charts


def _played(seeds: Sequence[LearnedSeed]) -> int:
    return sum(each.executed_policies for each in seeds)


def _provenance(seeds: Sequence[LearnedSeed]) -> dict[str, str]:
    return {
        "Seeds": str(len(seeds)),
        "Settings": ", ".join(f"{name} = {_setting(value)}" for name, value in seeds[0].settings.items()) or "none",
        "Samples were drawn for": ", ".join(seeds[0].samples) or "nothing",
        "Page": f"written and judged by cmpg {__version__}",
    }


def _setting(value: Any) -> str:
    """Write a setting; of an object that was cut short, its class alone."""
    text = str(value)
    return text.partition("(")[0] if "..." in text else text


MAX_REASONS = 6
"""Reasons why a guarantee is void are summarised if there are more than this."""


def trials_summary(done: Sequence[Fields], *, thresholds: np.ndarray) -> Summary:
    """Say how many are certified and how many of those are wrong; then one line per seed, and what it took.

    Parameters
    ----------
    done
        A record per seed, as `trial_record` returns it.
    thresholds : [k]
        Of the game.
    """
    if not done:
        return Summary("nothing was learned", good=False)
    certified = [each for each in done if each["certified"]]
    message = f"{len(certified)} of {len(done)} (epsilon {done[0]['epsilon']:g}, delta {done[0]['delta']:g})"
    table = Table(
        ("seed", "status", "moves", "true gap", "true cost", "unsafe episodes", "samples", "seconds"),
        tuple(
            (
                str(each["seed"]),
                each["status"],
                str(each["moves"]) if each.get("iterations", 1) else "–",
                "–" if each["right"] is None else fixed(np.inf if each["true_gap"] is None else each["true_gap"], 4),
                _costs_text(each, thresholds),
                f"{each['unsafe_episodes']:,}" if each["executed_policies"] and each["right"] is not None else "–",
                f"{_total(each):,}",
                f"{each['seconds']:.1f}",
            )
            for each in done
        ),
    )
    right = all(each["right"] is not False for each in certified)
    return Summary("certified", message, (table, *_summary(done)), good=right and len(certified) == len(done))


def _costs_text(each: Fields, thresholds: np.ndarray) -> str:
    if each["right"] is None:
        return "–"
    paid = zip(each["true_costs"], thresholds, strict=True)
    return ", ".join(f"{cost:.5g}/{threshold:.5g}" for cost, threshold in paid) or "none"


def _total(record: Fields) -> int:
    return sum(record["samples"].values())


def _wrong_claims(done: Sequence[Fields]) -> Proportion:
    return Proportion.of([not each["right"] for each in done if each["certified"] and each["right"] is not None])


def _summary(done: Sequence[Fields]) -> list[str]:
    """Say how many claims are wrong, what was unsafe, and what it took."""
    lines = []
    wrong, delta = _wrong_claims(done), done[0]["delta"]
    if wrong.trials:
        message = tally_text(wrong) if wrong.trials > 1 else f"{wrong.count} of 1"
        lines.append(f"wrong claims: {message}; at most {delta:g} is promised (judged with the true model)")
    if done[0]["right"] is None:
        lines.append("the true game is unknown: what is claimed was not judged")
    policies = sum(each["executed_policies"] for each in done if each["right"] is not None)
    if policies:
        unsafe = sum(each["unsafe_policies"] for each in done)
        lines.append(f"policies executed: {policies:,}, of which {unsafe:,} break a constraint")
    return [*lines, f"samples: {_samples_text(done)}", *_reasons(done)]


def tally_text(tally: Proportion) -> str:
    """Write a count with its interval."""
    return f"{tally.count} of {tally.trials}, rate in [{tally.lowest:.4f}, {tally.highest:.4f}] (95 %, Clopper-Pearson)"


def _samples_text(done: Sequence[Fields]) -> str:
    totals = [_total(each) for each in done]
    purposes = sorted({purpose for each in done for purpose in each["samples"]})
    means = (np.mean([each["samples"].get(purpose, 0) for each in done]) for purpose in purposes)
    parts = ", ".join(f"{mean:,.0f} for {purpose}" for purpose, mean in zip(purposes, means, strict=True))
    if len(done) == 1:
        return parts or "none"
    spread = f"median {np.median(totals):,.0f}, from {min(totals):,} to {max(totals):,}"
    return f"{spread}; on average {parts}" if parts else spread


def _reasons(done: Sequence[Fields]) -> list[str]:
    counted = Counter(reason for each in done for reason in each["void"])
    often = [(reason, f" ({count}×)" if len(done) > 1 else "") for reason, count in counted.most_common(MAX_REASONS)]
    lines = [f"guarantee void because {reason}{times}" for reason, times in often]
    rest = len(counted) - len(lines)
    return [*lines, f"… and {rest} reasons more"] if rest > 0 else lines


def progress_text(curve: Sequence[Progress], done: Sequence[Fields], *, seed: int, seeds: int) -> str:
    """Say in one line where a trial stands, and what is about left: of its samples, and of the seeds after it."""
    now, missing = curve[-1], samples_left(curve)
    message = f"seed {seed} (of {seeds}): {now.samples:,} samples; {now.note}"
    if np.isfinite(missing):
        message += f"; about {missing:.1g} samples more"
    if done and seeds - len(done) > 1:
        message += f"; about {_time((seeds - len(done)) * np.mean([each['seconds'] for each in done]))} left"
    return message


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def trial_text(each: Trial, *, seeds: int) -> str:
    """Say in one line how a trial ended."""
    ended = f"{each.result.status.name}, {each.result.total_samples:,} samples"
    if each.judgement is not None:
        ended += f", true gap {each.judgement.gap:.4f}"
    return f"seed {each.index} (of {seeds}): {ended}, {each.seconds:.1f} s"


def trials_record(done: Sequence[Fields]) -> Fields:
    """Return all trials, a record each, and their summary as one record."""
    wrong = _wrong_claims(done)
    return {
        "format": "cmpg-learning",
        "version": 1,
        "certified": sum(each["certified"] for each in done),
        "seeds": list(done),
        "wrong_claims": {
            "count": wrong.count,
            "trials": wrong.trials,
            "interval": [wrong.lowest, wrong.highest],
            "confidence": 0.95,
        },
    }


def bounds_summary(table: BoundsTable, slater: SlaterConstant, slacks: Sequence[float]) -> Summary:
    """Lay out every bound of the theory, with what is runnable; `slacks` are the agents' at a feasible start."""
    kind = "exact" if slater.exact else "a lower bound"
    each = ", ".join(f"{slack:.4g}" for slack in slacks)
    lines = [
        f"Slater constant of Definition 1: {slater.value:.6g} ({kind})",
        f"slack of each agent's CMDP at a feasible start: {each or 'no feasible start is known'}",
    ]
    if table.slater != slater.value:
        lines.append(f"the bounds below assume a slack of {table.slater:g} instead")
    algorithm = ""
    for row in sorted(table.rows, key=lambda row: row.algorithm):
        if row.algorithm != algorithm:
            algorithm = row.algorithm
            lines.append(f"\n{algorithm}")
        lines += _bound_lines(row)
    return Summary(f"epsilon {table.epsilon:g}, delta {table.delta:g}", parts=tuple(lines))


def _bound_lines(row: BoundRow) -> list[str]:
    constants = ", ".join(f"{name} = {value:.3g}" for name, value in row.constants)
    return [f"  {row.version}: {constants}", *_spent(row), f"    {row.reason}"]


def _spent(row: BoundRow) -> list[str]:
    """Return a line on samples and dynamic programs, as far as the theory has numbers for them."""
    parts = [
        f"{_size(number)} {what}"
        for number, what in ((row.samples, "samples"), (row.programs, "dynamic programs"))
        if not np.isnan(number)
    ]
    return [f"    {'; '.join(parts)}"] if parts else []


def _size(number: float) -> str:
    if np.isinf(number):
        return "any number of"
    return f"up to {number:.3g}" if number else "no"


def bounds_record(table: BoundsTable, slater: SlaterConstant, slacks: Sequence[float]) -> Fields:
    """Return the bounds in words that JSON knows; what is infinite or not known is null."""
    return plain_fields(
        {
            "format": "cmpg-bounds",
            "version": 1,
            "epsilon": table.epsilon,
            "delta": table.delta,
            "slater": {"value": slater.value, "exact": slater.exact},
            "assumed_slack": table.slater,
            "slacks_at_start": slacks,
            "rows": [
                {
                    "algorithm": row.algorithm,
                    "version": row.version,
                    "constants": dict(row.constants),
                    "samples": row.samples,
                    "programs": row.programs,
                    "runnable": row.runnable,
                    "reason": row.reason,
                }
                for row in table.rows
            ],
        }
    )
