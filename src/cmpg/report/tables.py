"""What a person reads in a terminal: verdict first, then small tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, InfeasibilityProof
from cmpg.equilibrium.result import Result, Status, Step
from cmpg.games.contract import Game, Names
from cmpg.report.game_view import witness_view
from cmpg.report.names import counted

MOST_ROWS = 12
"""More agents or constraints than this are summarised."""

MOST_PRICES = 3
"""The prices of more constraints than this do not fit on a line."""

NAME_COLUMNS = 26

LARGE_PRICE = 1e6
"""From here on the digits of a price say nothing, and its order says all."""


def result_view(result: Result, game: Game) -> RenderableType:
    """Lay out a result: verdict, agents, constraints, other equilibria, and the proof of a bad ending."""
    names = game.names
    parts: list[RenderableType] = [verdict(result.status, result.message)]
    if result.proof is not None:
        parts.append(_proof_line(result.proof, names))
    if result.incumbent is not None:
        parts.append(certificate_view(result.certificate, names))
        work = f"{counted(result.moves, 'move')} in {counted(len(result.trace), 'iteration')}"
        parts.append(Text(f"{work}, of at most {counted(result.max_iterations, 'move')}"))
    if len(result.equilibria) > 1:
        parts.append(equilibria_table(result.equilibria))
    if result.witness is not None:
        parts.append(witness_view(game, result.witness))
    return Group(*parts)


def verdict(status: Status, message: str) -> Text:
    """Say how it ended, and what to do."""
    colour = "bold green" if status is Status.CERTIFIED else "bold yellow"
    advice = "" if status is Status.CERTIFIED else f"\n{status.value[:1].upper()}{status.value[1:]}."
    return Text.assemble((status.name, colour), f": {message}{advice}")


def _proof_line(proof: InfeasibilityProof, names: Names) -> Text:
    """Write out what proves that no policy is feasible."""
    if len(proof.multipliers) == 1:
        text = f"{names.constraint(0)} costs at least {proof.least_cost:.9g}, whatever the agents do"
        return Text(f"proof: {text}; the limit is {proof.limit:.9g}")
    weights = ", ".join(f"{weight:.6g} · {names.constraint(j)}" for j, weight in enumerate(proof.multipliers) if weight)
    text = f"{weights} add up to at least {proof.least_cost:.9g}, whatever the agents do"
    return Text(f"proof: {text}; their limits add up to {proof.limit:.9g}")


def selfish_line(selfish: Result, result: Result, thresholds: FloatArray) -> Text:
    """Say what the agents would do without the constraints, beside what they do with them."""
    ending = "" if selfish.certified else f" ({selfish.status.name})"
    if selfish.incumbent is None:
        return Text(f"without the constraints{ending}: {selfish.message}")
    pairs = [f"{cost:.4g} of {float(limit):.4g}" for cost, limit in zip(selfish.costs, thresholds, strict=True)]
    costs = ", ".join(pairs[:MOST_PRICES]) + (", …" if len(pairs) > MOST_PRICES else "")
    noun = "value" if len(selfish.values) == 1 else "total value"
    beside = "" if result.incumbent is None else f" (with them {result.values.sum():.6g})"
    told = f"{'cost' if len(pairs) == 1 else 'costs'} {costs}, {noun} {selfish.values.sum():.6g}{beside}"
    return Text(f"without the constraints{ending}: {told}")


def certificate_view(certificate: Certificate, names: Names) -> RenderableType:
    """Lay out agents and constraints of a certificate."""
    return Group(_agents_view(certificate, names), _constraints_view(certificate, names))


def _agents_view(certificate: Certificate, names: Names) -> RenderableType:
    prices = certificate.multipliers[:, :MOST_PRICES]
    heads = ["price"] if prices.shape[1] == 1 else [f"price {j}" for j in range(prices.shape[1])]
    table = _table("agent", ["value", "could get", "gains at most", *heads])
    shown, rest = _largest(certificate.gains)
    for i in shown:
        cells = [f"{certificate.values[i]:.6f}", f"{certificate.bounds[i]:.6f}", f"{certificate.gains[i]:.1e}"]
        table.add_row(_short(names.agent(i)), *cells, *(_price(price) for price in prices[i]))
    parts: list[RenderableType] = [table]
    if rest:
        parts.append(_which(len(shown), rest, "agents with the largest gains"))
    if len(certificate.values) > 1:
        parts.append(Text(f"total value {certificate.values.sum():.6f}"))
    return Group(*parts)


def _price(price: float) -> str:
    return f"{price:.4f}" if price < LARGE_PRICE else f"{price:.4g}"


def _which(shown: int, rest: int, kind: str) -> Text:
    """Say which rows are shown, and where the others are."""
    return Text(f"these are the {shown} of {shown + rest} {kind}; all are in the output of --json")


def _constraints_view(certificate: Certificate, names: Names) -> RenderableType:
    if len(certificate.thresholds) == 0:
        return Text("no constraints")
    table = _table("constraint", ["cost", "limit", "left"])
    shown, rest = _largest(-certificate.slacks)
    for j in shown:
        cost, limit, left = certificate.costs[j], certificate.thresholds[j], certificate.slacks[j]
        table.add_row(_short(names.constraint(j)), f"{cost:.9g}", f"{limit:.9g}", f"{left:.2g}")
    if not rest:
        return table
    return Group(table, _which(len(shown), rest, "constraints with the least left"))


def _largest(numbers: FloatArray) -> tuple[Sequence[int], int]:
    """Return the places of the largest numbers, in their order, and how many are left out."""
    if len(numbers) <= MOST_ROWS:
        return range(len(numbers)), 0
    largest = np.argsort(-numbers, kind="stable")[:MOST_ROWS]
    return sorted(largest.tolist()), len(numbers) - MOST_ROWS


def _table(first: str, others: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    return table


def _short(name: str) -> Text:
    return Text(name if len(name) <= NAME_COLUMNS else f"{name[: NAME_COLUMNS - 1]}…")


def equilibria_table(equilibria: Iterable[Result]) -> RenderableType:
    """List the distinct equilibria, best first."""
    table = _table("", ["total value", "values", "costs"])
    for rank, each in enumerate(equilibria, 1):
        costs = ", ".join(f"{cost:.4g}" for cost in each.costs[:MOST_PRICES])
        table.add_row(str(rank), f"{each.values.sum():.4f}", _few(each.values), costs or "none")
    return Group(Text("distinct equilibria, best first:"), table)


def _few(values: FloatArray) -> str:
    if len(values) <= 4:
        return ", ".join(f"{value:.4f}" for value in values)
    return f"{values.min():.4f} to {values.max():.4f}"


def progress_line(step: Step, thresholds: FloatArray, names: Names) -> str:
    """Say in one line where a run stands: potential, cost against threshold, largest gain."""
    pairs = zip(step.costs[:MOST_PRICES], thresholds[:MOST_PRICES], strict=True)
    costs = ", ".join(f"{cost:.4g}/{limit:.4g}" for cost, limit in pairs) or "none"
    if step.prices is not None:
        prices = ", ".join(f"{price:.4g}" for price in step.prices[:MOST_PRICES])
        return f"a common price, round {step.iteration:>3}  cost {costs}  price {prices}  {step.seconds:.1f} s"
    mover = "nobody" if step.mover is None else names.agent(step.mover)
    return (
        f"iteration {step.iteration:>4}  potential {step.potential:+.6g}  cost {costs}  "
        f"{mover} gains {step.gain:.3g}  {step.seconds:.1f} s"
    )


def claim_verdict(certificate: Certificate, epsilon: float, names: Names) -> Text:
    """Say whether a claim holds, in words."""
    proved = certificate.proves(epsilon)
    head = ("PROVED", "bold green") if proved else ("NOT PROVED", "bold yellow")
    kind = f"({certificate.information}, {certificate.arithmetic} arithmetic)"
    if not certificate.feasible:
        worst = int(np.argmin(certificate.slacks))
        over = f"{-certificate.slacks[worst]:.3g} more than {certificate.thresholds[worst]:.9g}"
        told = f"{names.constraint(worst)} costs {certificate.costs[worst]:.9g}, {over}"
        return Text.assemble(head, f": the policy {certificate.feasibility.value}: {told} {kind}.")
    gain = f"no agent gains more than {certificate.epsilon:.3g} by leaving"
    rest = "" if proved else f" That is more than epsilon = {epsilon:g}; better multipliers may prove less."
    return Text.assemble(head, f": the policy {certificate.feasibility.value}; {gain} {kind}.{rest}")
