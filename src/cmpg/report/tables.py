"""What a person reads in a terminal: verdict first, then small tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Result, Status, Step

MOST_AGENTS = 12
"""More agents than this are summarised."""


def result_view(result: Result) -> RenderableType:
    """Lay out a result: verdict, agents, constraints, other equilibria."""
    parts: list[RenderableType] = [verdict(result.status, result.message)]
    if result.certificate is not None:
        parts.append(certificate_view(result.certificate))
        bound = f"{result.max_iterations:,}"
        parts.append(Text(f"{result.moves} moves in {len(result.trace)} iterations (at most {bound} by Theorem 1)"))
    if len(result.equilibria) > 1:
        parts.append(equilibria_table(result.equilibria))
    return Group(*parts)


def verdict(status: Status, message: str) -> Text:
    """Say how it ended, and what to do."""
    colour = "bold green" if status is Status.CERTIFIED else "bold yellow"
    text = Text(status.name, style=colour)
    text.append(f": {message}", style="default")
    if status is not Status.CERTIFIED:
        text.append(f"\n{status.value}.", style="default")
    return text


def certificate_view(certificate: Certificate) -> RenderableType:
    """Lay out agents and constraints of a certificate."""
    return Group(_agents_table(certificate), _constraints_table(certificate))


def _agents_table(certificate: Certificate) -> Table:
    table = Table(title=None, box=None, pad_edge=False)
    for name in ("agent", "value", "could get", "gains at most"):
        table.add_column(name, justify="right")
    prices = certificate.multipliers.shape[1]
    for j in range(prices):
        table.add_column("price" if prices == 1 else f"price {j}", justify="right")
    order = np.argsort(-certificate.gains, kind="stable") if len(certificate.gains) > MOST_AGENTS else None
    shown = range(len(certificate.gains)) if order is None else sorted(order[:MOST_AGENTS].tolist())
    for i in shown:
        cells = [f"{certificate.values[i]:.6f}", f"{certificate.bounds[i]:.6f}", f"{certificate.gains[i]:.1e}"]
        table.add_row(str(i), *cells, *(f"{price:.4f}" for price in certificate.multipliers[i]))
    if order is not None:
        rest = len(certificate.gains) - MOST_AGENTS
        table.add_row("…", f"and {rest} agents", "", "who gain less", *[""] * prices)
    return table


def _constraints_table(certificate: Certificate) -> RenderableType:
    if len(certificate.thresholds) == 0:
        return Text("no constraints")
    table = Table(box=None, pad_edge=False)
    for name in ("constraint", "cost", "limit", "left"):
        table.add_column(name, justify="right")
    rows = zip(certificate.costs, certificate.thresholds, certificate.slacks, strict=True)
    for j, (cost, limit, left) in enumerate(rows):
        table.add_row(str(j), f"{cost:.9g}", f"{limit:.9g}", f"{left:.2g}")
    return table


def equilibria_table(equilibria: Iterable[Result]) -> Table:
    """List the distinct equilibria, best first."""
    table = Table(title="distinct equilibria, best first", title_justify="left", box=None, pad_edge=False)
    for name in ("", "total value", "values", "costs"):
        table.add_column(name, justify="right")
    for rank, each in enumerate(equilibria, 1):
        values = ", ".join(f"{value:.4f}" for value in each.values[:8]) + (", …" if len(each.values) > 8 else "")
        costs = ", ".join(f"{cost:.4g}" for cost in each.costs)
        table.add_row(str(rank), f"{each.values.sum():.4f}", values, costs)
    return table


def progress_line(step: Step, thresholds: np.ndarray) -> str:
    """Say in one line where a run stands: potential, cost against threshold, largest gain."""
    pairs = zip(step.costs[:3], thresholds[:3], strict=True)
    costs = ", ".join(f"{cost:.4g}/{limit:.4g}" for cost, limit in pairs) or "none"
    mover = "nobody" if step.mover is None else f"agent {step.mover}"
    return (
        f"iteration {step.iteration:>4}  potential {step.potential:+.6g}  cost {costs}  "
        f"{mover} gains {step.gain:.3g}  {step.seconds:.1f} s"
    )


def claim_verdict(certificate: Certificate, epsilon: float) -> Text:
    """Say whether a claim holds, in words."""
    proved = certificate.proves(epsilon)
    text = Text("PROVED" if proved else "NOT PROVED", style="bold green" if proved else "bold yellow")
    gain = f"no agent gains more than {certificate.epsilon:.3g} by leaving"
    text.append(f": the policy {certificate.feasibility.value}; {gain} ({certificate.information}, ", style="default")
    text.append(f"{certificate.arithmetic} arithmetic).", style="default")
    if not proved and certificate.feasible:
        text.append(f" That is more than epsilon = {epsilon:g}; better multipliers may prove less.", style="default")
    return text
