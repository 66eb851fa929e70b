"""What terminals and notebooks show: results, how good they are, checks, claims, duality and learned policies.

These functions format what they are given, and compute nothing that takes time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.quality import OptimalityGap
from cmpg.equilibrium.result import Result
from cmpg.games.game import Game, Objective
from cmpg.games.summaries import size_of
from cmpg.report.certificates import MAX_PRICES, certificate_tables
from cmpg.summaries import MAX_ROWS, Cell, Summary, Table, at_most, counted, fixed, shown_of, significant

if TYPE_CHECKING:
    from cmpg.duality.analysis import DualityReport
    from cmpg.equilibrium.starts.start import Start
    from cmpg.games.names import Legend
    from cmpg.games.potential.check import PotentialCheck
    from cmpg.learning.outcome import LearnResult

MAX_COST_COLUMNS = 3
"""Costs that a table of policies shows beside their total value."""

ALIKE = 1e-6
"""Scores of runs that differ by no more than this, relative to them, are shown as one."""


# --- Results ----------------------------------------------------------------------------------------------------------


def result_summary(result: Result, gap: OptimalityGap | None = None) -> Summary:
    """Show how a run ended and what to do, agents, constraints, the work, and how good it is if that is given."""
    parts: list[str | Table] = [] if result.certified else [f"{_capitalised(result.status.value)}."]
    if result.proof is not None:
        parts.append(result.proof.sentence)
    if result.incumbent is not None:
        parts += [*certificate_tables(result.certificate), *_work_lines(result)]
        if result.witness is not None:
            parts += result.witness.description(result.certificate.names)
        if gap is not None:
            parts.append(quality_line(gap))
        if spread := spread_sentence(result):
            parts.append(f"spread: {spread}")
        if result.selfish is not None and gap is not None:
            parts.append(anarchy_table(result, gap))
    if len(result.equilibria) > 1:
        parts += ["distinct equilibria, best first:", _equilibria_table(result.equilibria)]
    return Summary(result.status.name, result.message, tuple(parts), good=result.accepted)


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _work_lines(result: Result) -> list[str]:
    """Say how many moves the ascent made, and the search before it."""
    ascent = [step for step in result.trace if step.multipliers is None]
    pairs = int(result.settings.get("pairs_moved", 0))
    joint = f", including {counted(pairs, 'joint move')} by pairs" if pairs else ""
    work = f"{counted(result.moves, 'move')} in {counted(len(ascent), 'iteration')}"
    lines = [f"{work}{joint}, of at most {counted(result.max_iterations, 'move')}"]
    if result.search_moves:
        prices = [step.multipliers for step in result.trace if step.multipliers is not None]
        at = "a common price" if all(len(price) == 1 for price in prices) else "common prices"
        rounds = counted(len(prices), "round")
        lines.append(f"to find the start, {counted(result.search_moves, 'move')} in {rounds} at {at}")
    return lines


def spread_sentence(result: Result) -> str:
    """Say how far the certified endings of several runs are apart; empty if there are not several."""
    scores = [run.score for run in result.runs if run.score is not None]
    if len(scores) < 2:
        return ""
    low, middle, high = np.quantile(scores, (0.0, 0.5, 1.0))
    if high - low <= ALIKE * (abs(low) + abs(high)):
        return f"all {len(scores)} certified runs end at the same {result.compared_by}, {high:.6g}"
    # Potentials are counted from a policy, so that zero is a value like any other: no digits of rounding around it.
    low, middle, high = (0.0 if abs(each) <= ALIKE * (high - low) else each for each in (low, middle, high))
    ends = f"{result.compared_by} from {low:.6g} to {high:.6g}, the median {middle:.6g}"
    return f"{len(scores)} certified runs: {ends}"


def equilibria_summary(equilibria: Sequence[Result]) -> Summary:
    """Show equilibria as a table, best first; it formats what is there."""
    if not equilibria:
        return Summary("no equilibria", "restarts list what they find: solve(…, restarts=Restarts(5))")
    from cmpg.report.wording import equilibria_table  # which uses sentences of this file

    word = "1 equilibrium" if len(equilibria) == 1 else f"{len(equilibria):,} equilibria"
    return Summary(word, parts=(equilibria_table(equilibria, equilibria[0].certificate.names),))


def _equilibria_table(equilibria: Sequence[Result]) -> Table:
    """List what the equilibria are compared by first, so that the order can be seen."""
    rows: list[tuple[Cell, ...]] = []
    scores = [each.score for each in equilibria if each.score is not None and each.score[0] != "total value"]
    for rank, each in enumerate(equilibria, 1):
        compared = [] if each.score is None or not scores else [fixed(each.score[1], 4)]
        costs = ", ".join(f"{cost:.4g}" for cost in each.costs[:MAX_PRICES])
        rows.append((str(rank), *compared, fixed(each.values.sum(), 4), _few(each.values), costs or "none"))
    return Table(("", *(name for name, _ in scores[:1]), "total value", "values", "costs"), tuple(rows))


def _few(values: FloatArray) -> str:
    if len(values) <= 4:
        return ", ".join(f"{value:.4f}" for value in values)
    return f"{values.min():.4f} to {values.max():.4f}"


# --- How good it is ---------------------------------------------------------------------------------------------------


def quality_line(gap: OptimalityGap) -> str:
    """Say how good a policy is, as a line."""
    return gap_sentence(gap) if gap.optimal else f"how good: {gap_sentence(gap)}"


def gap_sentence(gap: OptimalityGap) -> str:
    """Say how good a policy is, in a sentence without its full stop; percentages claim no more than is proved."""
    noun = f"the best possible {gap.objective.value}"
    if gap.bound is None:
        return f"{noun} is unknown: no bound was affordable for this game"
    if gap.optimal:
        what = "optimal" if gap.objective is Objective.WELFARE else f"optimal by {gap.objective.value}"
        return f"{what}: the proved upper bound is reached ({gap.bound.proof})"
    most = f"which is at most {at_most(gap.bound.value, 6)} ({gap.bound.proof})"
    if gap.share is not None:
        return f"at least {_rounded_down(100 * gap.share)} % of {noun}, {most}"
    if gap.objective is Objective.WELFARE and gap.value < 0 and gap.bound.value < 0:
        return f"within {_rounded_up(100 * gap.gap / -gap.bound.value)} % of {noun}, {most}"
    return f"at most {at_most(gap.gap, 4)} below {noun}, {most}"


def _rounded_down(percent: float) -> str:
    return f"{math.floor(percent * 10 + 1e-9) / 10:g}"


def _rounded_up(percent: float) -> str:
    return f"{math.ceil(percent * 10 - 1e-9) / 10:g}"


def anarchy_table(result: Result, gap: OptimalityGap) -> Table:
    """Compare selfish play, where it is known, this policy, and what is possible at most."""
    costs = [f"cost of {result.certificate.names.constraint(j)}" for j in range(len(result.costs))][:MAX_COST_COLUMNS]
    rows: list[tuple[Cell, ...]] = []
    if result.selfish is not None and result.selfish.incumbent is not None:
        rows.append(_policy_row("selfish, no constraints", result.selfish))
    rows.append(_policy_row("this policy", result))
    bound = "unknown" if gap.bound is None else fixed(gap.bound.value)
    limits = [significant(float(limit), 6) for limit in result.certificate.thresholds[:MAX_COST_COLUMNS]]
    rows.append(("no feasible policy exceeds", bound, *limits))
    return Table(("", "total value", *costs), tuple(rows))


def _policy_row(name: str, result: Result) -> tuple[Cell, ...]:
    costs = (significant(cost, 6) for cost in result.costs[:MAX_COST_COLUMNS])
    return (name, fixed(float(np.sum(result.values))), *costs)


def translation_lines(legend: Legend) -> list[str]:
    """Return how a scenario turned the user's data into the game: what was read, cut and assumed."""
    warning = [f"warning: {legend.warning}"] if legend.warning else []
    return warning + [f"{what}: {how}" for what, how in legend.translation]


def selfish_line(selfish: Result, result: Result, thresholds: FloatArray) -> str:
    """Say what the agents would do without the constraints, beside what they do with them."""
    ending = "" if selfish.certified else f" ({selfish.status.name})"
    if selfish.incumbent is None:
        return f"without the constraints{ending}: {selfish.message}"
    pairs = [f"{cost:.4g} of {float(limit):.4g}" for cost, limit in zip(selfish.costs, thresholds, strict=True)]
    costs = ", ".join(pairs[:MAX_PRICES]) + (", …" if len(pairs) > MAX_PRICES else "")
    noun = "value" if len(selfish.values) == 1 else "total value"
    beside = "" if result.incumbent is None else f" (with them {result.values.sum():.6g})"
    spent = f"{'cost' if len(pairs) == 1 else 'costs'} {costs}, {noun} {selfish.values.sum():.6g}{beside}"
    return f"without the constraints{ending}: {spent}"


# --- Checks and claims ------------------------------------------------------------------------------------------------


def check_summaries(game: Game, start: Start, potential: PotentialCheck) -> tuple[Summary, Summary, Summary]:
    """Say how large a game is, whether it is feasible, and whether it has a potential."""
    ranges = f"values range over at most {game.reward_ranges.max():.6g}"
    return Summary("well formed", f"{size_of(game)}; {ranges}", good=True), _feasibility(start), _potential(potential)


def _feasibility(start: Start) -> Summary:
    if start.policy is not None:
        slack = "" if np.isinf(start.slack) else f"; slack {start.slack:.6g}"
        return Summary("feasible", f"{start.found_by}{slack}", good=True)
    if start.proof is None:
        return Summary("feasibility unknown", f"{start.found_by}; least violation seen {-start.slack:.6g}", good=False)
    return Summary("infeasible", start.proof.sentence.removeprefix("proof: "), good=False)


def _potential(check: PotentialCheck) -> Summary:
    shown = check.summary()
    odds = check.error_probability
    wrong = "" if odds is None else f" (wrong with probability at most {odds:.1e})"
    said = f"{check.reason}{check.residual_note}".rstrip(".") if check.witness is None else "no Markov potential game"
    parts = () if check.witness is None else check.witness.description(check.names)
    return replace(shown, word=f"potential {shown.word}", sentence=f"{said}{wrong}", parts=parts)


# --- Duality and learning ---------------------------------------------------------------------------------------------


def duality_summary(report: DualityReport) -> Summary:
    """Say whether P* = D*, with the bounds, λ*, and the policies that the dual may return, if they are listed."""
    bounds = Table(
        ("", "at least", "at most"),
        (
            ("P*, best feasible policy", fixed(report.primal.lower), fixed(report.primal.upper)),
            ("D*, least dual value", fixed(report.dual.lower), fixed(report.dual.upper)),
            ("D* − P*", fixed(report.least_gap), fixed(report.greatest_gap)),
        ),
    )
    rows = tuple((report.names.constraint(j), fixed(price, 4)) for j, price in enumerate(report.dual.multipliers))
    found = report.maximisers.found
    returned = Table(
        ("the dual may return", "value", "feasible", "gains at most"),
        tuple(
            (f"policy {index}", fixed(each.value), "yes" if each.feasible else "no", significant(each.nash_gap, 2))
            for index, each in enumerate(found[:MAX_ROWS])
        ),
        shown_of(range(min(len(found), MAX_ROWS)), len(found), "first"),
    )
    parts = (bounds, Table(("constraint", "price λ*"), rows), *([returned] if found else []))
    return Summary(report.strong_duality.name, f"{report.strong_duality.value}.", parts)


def learning_summary(result: LearnResult) -> Summary:
    """Say how learning ended, why a guarantee is void, and what the samples were drawn for."""
    parts: list[str | Table] = [f"guarantee void because {reason}" for reason in result.void]
    drawn = tuple((purpose, f"{count:,}") for purpose, count in result.samples.items())
    parts += [Table(("samples for", "drawn"), drawn)] if drawn else []
    return Summary(result.status.name, result.message, tuple(parts), good=result.certified)
