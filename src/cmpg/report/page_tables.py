"""The tables of the page: constraints, equilibria, the course of the run, facts and provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from cmpg import __version__
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Result, Step
from cmpg.faces import Cell, Table, fixed, significant
from cmpg.files.run_folder import FinishedRun
from cmpg.games.contract import Names
from cmpg.report.wording import price_words, readable

MOST_ROWS = 300
"""Of the trace; a longer one is in the file that the page carries."""

MOST_VALUES = 8


def priced_constraints(certificate: Certificate) -> Table:
    """Return the constraints of a certificate, with what one more unit of each threshold is worth, and to whom."""
    table, agents = certificate.constraints_table(None), certificate.names.all_agents(len(certificate.values))
    words = [price_words(certificate.multipliers[:, j], agents) for j in range(len(certificate.costs))]
    rows = tuple((*row, told) for row, told in zip(table.rows, words, strict=True))
    return Table((*table.columns, "price of one more unit"), rows)


def equilibria_table(equilibria: Sequence[Result], names: Names) -> Table:
    """Return the equilibria that restarts found: total value, values, costs, certified gain."""
    agents = [names.agent(i) for i in range(min(len(equilibria[0].values), MOST_VALUES))]
    costs = [f"cost: {names.constraint(j)}" for j in range(len(equilibria[0].costs))]
    rows: list[tuple[Cell, ...]] = []
    for rank, each in enumerate(equilibria, 1):
        values = [fixed(value) for value in each.values[:MOST_VALUES]]
        spent = [significant(cost, 9) for cost in each.costs]
        rows.append((str(rank), fixed(each.values.sum()), *values, *spent, significant(each.certificate.epsilon, 2)))
    return Table(("", "total value", *agents, *costs, "gains at most"), tuple(rows))


def ascent_table(steps: Sequence[Step], names: Names) -> Table:
    """Return the last iterations of the ascent: who moved, its gain, the potential, the costs."""
    rows: list[tuple[Cell, ...]] = []
    for step in steps[-MOST_ROWS:]:
        mover = "nobody" if step.mover is None else names.agent(step.mover)
        spent = [significant(cost) for cost in step.costs]
        rows.append((str(step.iteration), mover, significant(step.gain, 4), significant(step.potential), *spent))
    return Table(("iteration", "moves", "gain", "potential", *_costs(steps, names)), tuple(rows))


def search_table(rounds: Sequence[Step], names: Names) -> Table:
    """Return the last rounds of the search for a common price: how many moved, the prices, the costs."""
    rows: list[tuple[Cell, ...]] = []
    for step in rounds[-MOST_ROWS:]:
        paid = np.zeros(0) if step.multipliers is None else step.multipliers
        numbers = [significant(number) for number in (*step.costs, *paid)]
        rows.append((str(step.iteration), str(step.moves), *numbers))
    prices = [f"price: {names.constraint(j)}" for j in range(len(rounds[0].costs))]
    return Table(("round", "moves", *_costs(rounds, names), *prices), tuple(rows))


def _costs(steps: Sequence[Step], names: Names) -> list[str]:
    return [f"cost: {names.constraint(j)}" for j in range(len(steps[0].costs))]


def facts_of(run: FinishedRun) -> dict[str, str]:
    """Return the size of the game and of the answer, in a few numbers."""
    game = run.game
    states = sorted({shape[1] for shape in game.policy_shapes})
    facts = {
        "agents": f"{game.num_agents:,}",
        "states": f"{states[0]:,}" if len(states) == 1 else f"{states[0]:,} to {states[-1]:,} each",
        **({"steps": f"{game.horizon:,}"} if game.horizon is not None else {"discount": f"{game.discount:g}"}),
        "constraints": f"{len(game.thresholds):,}",
    }
    if run.result.incumbent is not None:
        moves = run.result.moves + run.result.search_moves
        facts |= {"moves": f"{moves:,}", "total value": readable(float(run.result.values.sum()))}
    return facts


def provenance_of(run: FinishedRun) -> dict[str, str]:
    """Return what made the run, so that it can be made again."""
    options = ", ".join(f"{name} = {_plain(value)}" for name, value in run.origin.options.items())
    settings = ", ".join(f"{name} = {value}" for name, value in run.result.settings.items())
    told = {
        "Game": run.origin.name,
        "Options": options or "as they come",
        "SHA-256 of game.npz": run.game_sha256,
        "Status": run.result.status.name,
        "ε asked for": readable(run.result.epsilon, 4),
        "Seed": "none" if run.seed is None else str(run.seed),
        "Settings": settings or "none",
        "Versions": ", ".join(f"{name} {version}" for name, version in (run.versions or {}).items()),
        "What the run said": run.recorded,
        "Page": f"written and checked by cmpg {__version__}",
    }
    return {name: value for name, value in told.items() if value}


def _plain(value: object) -> str:
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=float)
    return f"{float(value):g}" if isinstance(value, (float, np.floating)) else str(value)
