"""What terminals, notebooks and pages show of a certificate and of a claim. No solver is imported here."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cmpg.equilibrium.certificate import Certificate, Feasibility, excess_text, rescaling_text
from cmpg.games.devices import Concept
from cmpg.summaries import (
    MAX_ROWS,
    Cell,
    Number,
    Summary,
    Table,
    at_most,
    bounded,
    counted,
    fixed,
    largest,
    shown_of,
    significant,
)

if TYPE_CHECKING:
    from cmpg.equilibrium.verified import Verification

_SUBJECTS = {
    Concept.NASH: "the policy",
    Concept.COARSE: "the device",
    Concept.CORRELATED: "the device",
    Concept.ROTA: "on average over days the rota",
}

_DEVIATING = {
    Concept.NASH: "deviating",
    Concept.COARSE: "ignoring the device",
    Concept.CORRELATED: "disobeying",
    Concept.ROTA: "disobeying, the mode being announced",
}

MAX_FRACTION = 14
"""Characters of a fraction that is shown as one; a longer one, such as that of a float, is shown in decimals."""

MAX_PRICES = 3
"""The prices of more constraints than this do not fit on a line."""


def certificate_summary(certificate: Certificate) -> Summary:
    """Show what is proved, agents with values, gains and prices, constraints with costs."""
    arithmetic = f"{certificate.arithmetic} arithmetic{rescaling_text(certificate)}"
    rest = "" if certificate.feasible else f": {excess_text(certificate)}"
    if certificate.feasibility is not Feasibility.VIOLATED:
        rest += f"; no agent gains more than {at_most(certificate.epsilon)} by {_DEVIATING[certificate.concept]}"
    what = _SUBJECTS[certificate.concept]
    if certificate.model_error:
        some = "some" if certificate.feasibility is Feasibility.VIOLATED else "every"
        what = f"in {some} model of the box {what}"
    sentence = f"{what} {certificate.feasibility.value}{rest} ({certificate.information}, {arithmetic})."
    covers = f"covers: {certificate.information.covers}"
    if certificate.model_error:
        covers += (
            f"; every model whose transition is within {certificate.model_error:g} of each entry (worst case shown)"
        )
    if (tail := certificate.tail) is not None:
        cost = f", and costs at most {at_most(tail.most_costs.max(), 2)}" if len(tail.most_costs) else ""
        covers += (
            f"; deviations of any length: values and costs are of {counted(tail.steps, 'step')}; what follows them is "
            f"worth at most {at_most(tail.values.max(), 2)} more to a deviation{cost}, which the proof includes"
        )
    if certificate.worst_case_gains is not None:
        raised = float(certificate.worst_case_gains.max())
        covers += (
            f"\nworst cases alone: no deviation that keeps the thresholds in all of them raises an agent's worst value "
            f"by more than {at_most(raised)}"
        )
    promise = () if certificate.concept is Concept.NASH else (f"promise: {certificate.concept.value}",)
    tables = (*certificate_tables(certificate), *promise, covers, f"judged by: {certificate.judged_by}")
    return Summary(certificate.feasibility.name, sentence, tables, good=certificate.feasible)


def certificate_tables(certificate: Certificate, most: int | None = MAX_ROWS) -> tuple[str | Table, ...]:
    """Return agents and constraints as tables, each of at most this many rows."""
    known = certificate.exactly
    sum_ = _exact(None if known is None else sum(known.values, Fraction(0)), fixed(certificate.values.sum()))
    total = [f"total value {sum_.text}"] if len(certificate.values) > 1 else []
    constraints = constraints_table(certificate, most) if len(certificate.costs) else "no constraints"
    return agents_table(certificate, most), *total, constraints


def agents_table(certificate: Certificate, most: int | None = MAX_ROWS) -> Table:
    """Return what each agent gets, could get at most, and pays for a unit of each threshold."""
    shown, num_prices = largest(certificate.gains, most), certificate.multipliers.shape[1]
    if most is not None:
        num_prices = min(num_prices, MAX_PRICES)
    prices = [f"price {j}" if most else f"price of {certificate.names.constraint(j)}" for j in range(num_prices)]
    prices = ["price"] if certificate.multipliers.shape[1] == 1 else prices
    rows: list[tuple[Cell, ...]] = []
    for i in shown:
        cells = [fixed(certificate.values[i]), fixed(certificate.bounds[i]), bounded(certificate.gains[i])]
        if (known := certificate.exactly) is not None:
            exactly = (known.values[i], known.bounds[i], known.gains[i])
            cells = [_exact(*each) for each in zip(exactly, cells, strict=True)]
        rows.append((certificate.names.agent(i), *cells, *(_price(certificate, i, j) for j in range(num_prices))))
    note = shown_of(shown, len(certificate.gains), "agents with the largest gains; --json has all")
    return Table(("agent", "value", "could get", "gains at most", *prices), tuple(rows), note)


def _exact(number: Fraction | None, rounded: Number) -> Number:
    """Show a number as the fraction that it is, if that is known and short."""
    # Digits are counted only of what has few: Python writes none of numbers with thousands.
    few = number is not None and max(abs(number.numerator), number.denominator) < 10**MAX_FRACTION
    return Number(rounded.value, str(number)) if few and len(str(number)) <= MAX_FRACTION else rounded


def _price(certificate: Certificate, agent: int, constraint: int) -> Cell:
    """Show a multiplier; a proof by support has none, nor has a constraint that does not bind the agent."""
    if certificate.binds is not None and not certificate.binds[agent, constraint]:
        return "not bound"
    multiplier = float(certificate.multipliers[agent, constraint])
    return "support" if multiplier == np.inf else fixed(multiplier, 4)


def constraints_table(certificate: Certificate, most: int | None = MAX_ROWS) -> Table:
    """Return what each constraint costs, and what is left below its threshold."""
    shown = largest(-certificate.slacks, most)
    rows: list[tuple[Cell, ...]] = []
    for j in shown:
        numbers = ((certificate.costs[j], 9), (certificate.thresholds[j], 9), (certificate.slacks[j], 2))
        cost, *rest = (significant(each, digits) for each, digits in numbers)
        known = None if certificate.exactly is None else certificate.exactly.costs[j]
        rows.append((certificate.names.constraint(j), _exact(known, cost), *rest))
    note = shown_of(shown, len(certificate.costs), "constraints with the least slack; --json has all")
    return Table(("constraint", "cost", "threshold", "slack"), tuple(rows), note)


def claim_summary(certificate: Certificate, epsilon: float, *, allow_rounding: float = 0.0) -> Summary:
    """Say whether a claim holds."""
    summary, accepted = certificate_summary(certificate), certificate.proves(epsilon, allow_rounding=allow_rounding)
    word = "PROVED" if certificate.proves(epsilon) else "ACCEPTED" if accepted else "NOT PROVED"
    rest = ""
    if certificate.epsilon > epsilon and certificate.feasibility is not Feasibility.VIOLATED:
        rest = f" That is more than epsilon = {epsilon:g}; better multipliers may prove less."
    elif certificate.feasibility in (Feasibility.TO_ROUNDING, Feasibility.OPEN) and not accepted:
        rest = f" Accept it with --allow-rounding {at_most(certificate.excess.max(), 2)}."
    return replace(summary, word=word, sentence=f"{summary.sentence}{rest}", good=accepted)


def verification_summary(found: Verification) -> Summary:
    """Say what the verified checker said, and of which file."""
    word, _, words = found.message.partition(": ")
    sentence, *details = words.splitlines()
    rows = f"; {counted(found.divided, 'row')} of probabilities divided by their sums" if found.divided else ""
    parts = (*details, f"proof file: SHA-256 {found.sha256}{rows}")
    return Summary(word if found.proved else "NOT VERIFIED", sentence, parts, good=found.proved)
