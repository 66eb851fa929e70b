"""Crowds in words and tables: the largest groups, constraints and what is proved; it formats and computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cmpg.summaries import Summary, Table, counted

if TYPE_CHECKING:
    from cmpg.equilibrium.crowds.certificate import CrowdCertificate

SHOWN_GROUPS = 20
"""Tables and pages show so many groups, the largest."""


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
        f"The policy {met}; no agent gains more than {certificate.epsilon:.3g} by deviating "
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


def crowd_groups_table(certificate: CrowdCertificate, most: int = SHOWN_GROUPS) -> Table:
    """Return the largest groups: agents as ranges, value, gain and prices."""
    names, sizes = certificate.names, certificate.number
    shown = np.argsort(-sizes, kind="stable")[:most].tolist()
    prices = tuple(f"price of {names.constraint(j)}" for j in range(len(certificate.thresholds)))
    rows = tuple(
        (
            names.agent(int(certificate.kind[g])),
            f"{sizes[g]:,}",
            f"{certificate.values[g]:.6g}",
            f"{certificate.gains[g]:.2g}",
            *(f"{price:.4g}" for price in certificate.multipliers[g]),
        )
        for g in shown
    )
    rest = len(sizes) - len(shown)
    more = f"and {counted(rest, 'more group')} of {int(np.delete(sizes, shown).sum()):,} agents" if rest else ""
    return Table(("kind", names.legend.agent + "s", "value of one", "could gain", *prices), rows, more)


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
