"""The words and tables of the page: how a run ended in a sentence, numbers as people read them, and the tables of
constraints, equilibria, the course of the run, facts and provenance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, Feasibility
from cmpg.equilibrium.quality import OptimalityGap
from cmpg.equilibrium.result import Result, Status, Step
from cmpg.errors import UnsupportedError
from cmpg.files.run_folder import FinishedRun
from cmpg.games.game import Game, Names
from cmpg.policy import JointPolicy
from cmpg.report.certificates import constraints_table
from cmpg.report.display import gap_sentence, spread_sentence
from cmpg.scenarios import SPOKEN
from cmpg.simulation.episodes import simulate
from cmpg.summaries import Cell, Table, at_most, counted, fixed, significant, typeset


def readable(number: float, digits: int = 6) -> str:
    r"""Write a number for people, to so many significant digits.

    Examples
    --------
    >>> readable(-23.1), readable(0.0), readable(1 / 3, 3), readable(6.76e-11, 2)
    ('−23.1', '0', '0.333', '6.8\xa0×\xa010⁻¹¹')
    """
    small = f"{number:.{digits}g}"
    return typeset(f"{number:.0f}" if "e+" in small and abs(number) < 1e6 else small)


@dataclass(frozen=True)
class Headline:
    """How a run ended, in words."""

    status: str
    tone: str  # "good", "warn"
    word: str
    sentence: str
    detail: str


def headline_of(result: Result, *, when: str = "proved again when this page was written") -> Headline:
    """Say how a run ended: what is proved first, then what that rests on, and when it was proved."""
    word, sentence = _claim(result)
    if result.certified:
        proof = result.certificate
        rounding = "" if proof.arithmetic == "exact" else " with its rounding bounded"
        detail = (
            f"The claim is against deviations to other {proof.information}, in {proof.arithmetic} "
            f"arithmetic{rounding}. It was {when}."
        )
    else:
        detail = f"{result.status.value[:1].upper()}{result.status.value[1:]}."
    return Headline(result.status.name, "good" if result.certified else "warn", word, sentence, detail)


def _claim(result: Result) -> tuple[str, str]:
    if result.incumbent is None:
        if result.proof is not None:
            return "Proved impossible", "no joint policy meets the thresholds."
        return "Undecided", "no policy that meets the thresholds was found, and none was ruled out."
    gain = typeset(at_most(result.certificate.epsilon, 2))
    kept = _thresholds_met(result.certificate)
    if result.certified:
        return "Proved", f"{kept}no agent gains more than {gain} by deviating."
    if result.status is Status.TO_ROUNDING:
        word = "Accepted up to rounding" if result.accepted else "Proved up to rounding alone"
        return word, f"{kept}no agent gains more than {gain} by deviating."
    rest = f"an agent may still gain up to {gain} by deviating, where {readable(result.epsilon, 2)} was asked for."
    if result.status is Status.NOT_POTENTIAL:
        return ("Not a potential game" if result.witness is not None else "Perhaps not a potential game"), kept + rest
    return ("Interrupted" if result.status is Status.INTERRUPTED else "Not proved"), kept + rest


def _thresholds_met(certificate: Certificate) -> str:
    if len(certificate.thresholds) == 0:
        return ""
    most = typeset(at_most(certificate.excess.max(), 2))
    return {
        Feasibility.PROVEN: "these policies meet every threshold, and ",
        Feasibility.TO_ROUNDING: f"these policies may exceed a threshold by up to {most}, and ",
        Feasibility.OPEN: f"these policies may exceed a threshold by up to {most}, and ",
        Feasibility.VIOLATED: f"these policies exceed a threshold by up to {most}, and ",
    }[certificate.feasibility]


def course_words(result: Result, rounds: Sequence[Step], ascent: Sequence[Step]) -> str:
    """Say how many moves there were, and what the theory allows."""
    seconds = f"{max(result.trace[-1].seconds, 0.01):.2g} s"
    allowed = f"Theorem 1 allows at most {counted(result.max_iterations, 'move')} in a potential game."
    searched = ""
    if rounds:
        made = f"{counted(result.search_moves, 'move')} in {counted(len(rounds), 'round')}"
        searched = f"First all agents were charged a common price, raised or lowered from round to round: {made}. "
    if result.moves == 0:
        why = ", since the start was an equilibrium already" if result.certified else ""
        message = f"{'Then no agent' if rounds else 'No agent'} moved{why}."
    else:
        message = f"{counted(result.moves, 'move')} in {counted(len(ascent), 'iteration')}."
        message = f"Then {message}" if rounds else message
    return f"{searched}{message} {allowed} The run took {seconds}. All of this is as the run recorded it."


def price_words(prices: FloatArray, agents: Sequence[str]) -> str:
    """Say what one more unit is worth, and to whom."""
    hard = np.isinf(prices)
    if hard.any():
        who = "all agents" if hard.all() else f"{hard.sum()} of {len(agents)} agents"
        message = f"none for {who}: nothing is left, and what would cost more is forbidden"
        names = [name for name, closed in zip(agents, hard, strict=True) if not closed]
        return message if hard.all() else f"{message}; {price_words(prices[~hard], names)}"
    if len(agents) <= 3:
        return ", ".join(f"{name}: {readable(price, 5)}" for name, price in zip(agents, prices, strict=True))
    if not prices.any():
        return "0 for all agents"
    most, free = int(prices.argmax()), int((prices == 0).sum())
    rest = f"; 0 for {free} of {len(agents)} agents" if free else f"; at least {readable(float(prices.min()), 5)}"
    return f"up to {readable(float(prices[most]), 5)} ({agents[most]}){rest}"


MAX_ROWS = 300
"""A page shows at most this many rows of the trace; the file that it carries has all."""

MAX_VALUES = 8

MAX_BOUND = 8
"""Agents that are named whom a constraint binds, where it does not bind all."""


def priced_constraints(certificate: Certificate) -> Table:
    """Return the constraints of a certificate, with what one more unit of each threshold is worth, and to whom."""
    table, agents = constraints_table(certificate, None), certificate.names.all_agents(len(certificate.values))
    words = [price_words(certificate.multipliers[:, j], agents) for j in range(len(certificate.costs))]
    if certificate.binds is not None:
        bound = [", ".join(np.asarray(agents)[each][:MAX_BOUND].tolist()) for each in certificate.binds.T]
        more = [", …" if each.sum() > MAX_BOUND else "" for each in certificate.binds.T]
        words = [f"{message} (binds: {who}{etc})" for message, who, etc in zip(words, bound, more, strict=True)]
    rows = tuple((*row, message) for row, message in zip(table.rows, words, strict=True))
    return Table((*table.columns, "price of one more unit"), rows)


def equilibria_table(equilibria: Sequence[Result], names: Names) -> Table:
    """Return the equilibria that restarts found: total value, values, costs, certified gain."""
    agents = [names.agent(i) for i in range(min(len(equilibria[0].values), MAX_VALUES))]
    costs = [f"cost: {names.constraint(j)}" for j in range(len(equilibria[0].costs))]
    rows: list[tuple[Cell, ...]] = []
    for rank, each in enumerate(equilibria, 1):
        values = [fixed(value) for value in each.values[:MAX_VALUES]]
        spent = [significant(cost, 9) for cost in each.costs]
        rows.append((str(rank), fixed(each.values.sum()), *values, *spent, significant(each.certificate.epsilon, 2)))
    return Table(("", "total value", *agents, *costs, "gains at most"), tuple(rows))


def ascent_table(steps: Sequence[Step], names: Names) -> Table:
    """Return the last iterations of the ascent: who moved, its gain, the potential, the costs."""
    rows: list[tuple[Cell, ...]] = []
    for step in steps[-MAX_ROWS:]:
        mover = "no agent" if step.mover is None else names.agent(step.mover)
        spent = [significant(cost) for cost in step.costs]
        rows.append((str(step.iteration), mover, significant(step.gain, 4), significant(step.potential), *spent))
    return Table(("iteration", "moves", "gain", "potential", *_costs(steps, names)), tuple(rows))


def search_table(rounds: Sequence[Step], names: Names) -> Table:
    """Return the last rounds of the search for a common price: how many moved, the prices, the costs."""
    rows: list[tuple[Cell, ...]] = []
    for step in rounds[-MAX_ROWS:]:
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


def quality_words(result: Result, gaps: Sequence[OptimalityGap]) -> list[str]:
    """Say how good the policy is among all feasible ones, and among the endings of all runs."""
    sentences = [*map(gap_sentence, gaps), *([spread] if (spread := spread_sentence(result)) else [])]
    return [re.sub(r"(?<!\w)-(?=\d)", "−", f"{each[:1].upper()}{each[1:]}.") for each in sentences]


def options_words(run: FinishedRun) -> str:
    """Say which options the game was built with, files by their names alone: what tells two pages apart.

    Examples
    --------
    >>> from cmpg.scenarios import Origin
    >>> from types import SimpleNamespace
    >>> given = {"sessions": "data/june.csv", "timezone": "Europe/Zurich", "capacity": 8}
    >>> options_words(SimpleNamespace(origin=Origin("charging", given)))
    'sessions june.csv, timezone Europe/Zurich, capacity 8'
    """
    words = []
    for name, value in run.origin.options.items():
        shown = _plain(value) if name == "timezone" else re.sub(r"[^ ]*[/\\\\]", "", str(_plain(value)))
        words.append(f"{SPOKEN.get(name, name).replace('_', '-')} {shown}")
    return ", ".join(words)


EPISODES, AGENT_STEPS = 4_000, 2_000_000
"""Episodes that a page draws, and steps of agents in all, at most: it is written while a user waits."""


def simulated_parts(game: Game, policy: JointPolicy) -> dict[str, Any] | None:
    """Return episodes of the policy beside the claims, and two of them whole; None for a game that cannot be played."""
    steps = game.num_agents * (game.horizon or 100)
    episodes = max(20, min(EPISODES, AGENT_STEPS // steps))
    try:
        seen = simulate(game, policy, episodes, rng=np.random.default_rng(0), shown=1)
    except UnsupportedError:
        return None
    agrees = "agrees with what is claimed" if seen.agrees else "DISAGREES with what is claimed"
    return {
        "words": f"{counted(episodes, 'episode')} were drawn with seed 0 when this page was written. What was seen "
        f"{agrees}: no mean is further than {readable(seen.largest_z, 2)} standard errors away. More of them: cmpg "
        "simulate.",
        "tables": [seen.costs_table(), seen.spread_table()] if len(seen.thresholds) else [],
        "episodes": [(f"Episode {each.number}, {each.why}", each.table(seen.names)) for each in seen.shown[:2]],
    }


def provenance_of(run: FinishedRun) -> dict[str, str]:
    """Return what made the run, so that it can be made again."""
    options = ", ".join(f"{name} = {_plain(value)}" for name, value in run.origin.options.items())
    settings = ", ".join(f"{name} = {value}" for name, value in run.result.settings.items())
    message = {
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
    return {name: value for name, value in message.items() if value}


def _plain(value: object) -> str:
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=float)
    return f"{float(value):g}" if isinstance(value, (float, np.floating)) else str(value)
