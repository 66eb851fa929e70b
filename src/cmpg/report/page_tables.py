"""The tables of the page: agents, constraints, equilibria, trace, provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmpg import __version__
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Step
from cmpg.files.run_folder import Equilibrium, Run
from cmpg.report.wording import Number, number, price_words, readable, words

MOST_ROWS = 300
"""Of the trace; a longer one is in the file that the page carries."""

MOST_VALUES = 8


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    name: str
    cells: tuple[Number, ...]


@dataclass(frozen=True)
class Grid:
    """A table with names for its columns and rows."""

    id: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Fact:
    """A label and what it stands for."""

    label: str
    value: str


def agents_table(certificate: Certificate, agents: Sequence[str], constraints: Sequence[str]) -> Grid:
    """Agents × value, best deviation, certified gain, multipliers."""
    prices = ("Price",) if len(constraints) == 1 else tuple(f"Price: {name}" for name in constraints)
    rows = [
        Row(
            name,
            (
                number(certificate.values[i]),
                number(certificate.bounds[i]),
                number(certificate.gains[i], 2),
                *(number(price, 5) for price in certificate.multipliers[i]),
            ),
        )
        for i, name in enumerate(agents)
    ]
    return Grid("agents", ("Agent", "Value", "Best deviation, at most", "Gains at most", *prices), tuple(rows))


def constraints_table(certificate: Certificate, agents: tuple[str, ...], constraints: Sequence[str]) -> Grid:
    """Constraints × cost, limit, slack, price of one more unit."""
    rows = [
        Row(
            name,
            (
                number(certificate.costs[j], 9),
                number(certificate.thresholds[j], 9),
                number(certificate.slacks[j], 2),
                words(price_words(certificate.multipliers[:, j], agents)),
            ),
        )
        for j, name in enumerate(constraints)
    ]
    return Grid("constraints", ("Constraint", "Cost", "Limit", "Slack", "Price of one more unit"), tuple(rows))


def equilibria_table(equilibria: Sequence[Equilibrium], agents: Sequence[str], constraints: Sequence[str]) -> Grid:
    """The endings of the restarts × total value, values, costs, gain."""
    shown = list(agents[:MOST_VALUES])
    rows = [
        Row(
            str(rank),
            (
                number(each.values.sum()),
                *(number(value) for value in each.values[:MOST_VALUES]),
                *(number(cost) for cost in each.costs),
                number(each.epsilon, 2),
            ),
        )
        for rank, each in enumerate(equilibria, 1)
    ]
    costs = [f"Cost: {name}" for name in constraints]
    return Grid("equilibria", ("", "Total value", *shown, *costs, "Gains at most"), tuple(rows))


def trace_grid(trace: Sequence[Step], agents: Sequence[str], constraints: Sequence[str]) -> Grid:
    """The last iterations × who moved, its gain, the potential, the costs."""
    rows = [
        Row(
            str(step.iteration),
            (
                words("nobody" if step.mover is None else agents[step.mover]),
                number(step.gain, 4),
                number(step.potential),
                *(number(cost) for cost in step.costs),
            ),
        )
        for step in trace[-MOST_ROWS:]
    ]
    costs = [f"Cost: {name}" for name in constraints]
    return Grid("trace", ("Iteration", "Moves", "Gain", "Potential", *costs), tuple(rows))


def facts_of(run: Run) -> list[Fact]:
    """The size of the game and of the answer, in a few numbers."""
    game = run.game
    states = sorted({shape[1] for shape in game.policy_shapes})
    facts = [
        Fact("agents", f"{game.num_agents:,}"),
        Fact("states", f"{states[0]:,}" if len(states) == 1 else f"{states[0]:,} to {states[-1]:,} each"),
        Fact("steps", f"{game.horizon:,}") if game.discount is None else Fact("discount", f"{game.discount:g}"),
        Fact("constraints", f"{len(game.thresholds):,}"),
    ]
    if run.claim is not None:
        total = float(run.claim.certificate.values.sum())
        facts += [Fact("moves", f"{run.moves:,}"), Fact("total value", readable(total))]
    return facts


def provenance_of(run: Run) -> list[Fact]:
    """What made the run, so that it can be made again."""
    options = ", ".join(f"{name} = {_plain(value)}" for name, value in run.origin.options.items())
    settings = ", ".join(f"{name} = {value}" for name, value in run.settings.items())
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return [
        Fact("Game", run.origin.name),
        Fact("Options", options or "as they come"),
        Fact("SHA-256 of game.npz", run.game_sha256),
        Fact("Status", run.status.name),
        Fact("ε asked for", readable(run.epsilon, 4)),
        Fact("Seed", "none" if run.seed is None else str(run.seed)),
        Fact("Settings", settings or "none"),
        Fact("Versions", versions),
        Fact("Page", f"written and checked by cmpg {__version__}"),
    ]


def _plain(value: object) -> str:
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=float)
    return f"{float(value):g}" if isinstance(value, (float, np.floating)) else str(value)
