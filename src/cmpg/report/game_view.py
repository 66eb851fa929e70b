"""What `cmpg check` says of a game: its size, whether it is feasible, and whether it has a potential."""

from __future__ import annotations

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg.equilibrium.start import Start
from cmpg.games.contract import Game
from cmpg.games.potential.check import FourCycle, PotentialCheck
from cmpg.report.names import counted


def check_view(game: Game, start: Start, potential: PotentialCheck) -> RenderableType:
    """Lay out the findings, with the witness where there is one."""
    parts: list[RenderableType] = [_sizes(game), _feasibility(start), _potential(potential)]
    if potential.witness is not None:
        parts.append(witness_view(game, potential.witness))
    return Group(*parts)


def _sizes(game: Game) -> Text:
    shapes = game.policy_shapes
    states, actions = sorted({s for _, s, _ in shapes}), sorted({a for _, _, a in shapes})
    time = f"horizon {game.horizon}" if game.discount is None else f"discount {game.discount}"
    each = " each" if game.num_agents > 1 else ""
    parts = [
        counted(game.num_agents, "agent"),
        _span(states, "state"),
        f"{_span(actions, 'action')}{each}",
        time,
        counted(len(game.thresholds), "constraint"),
        game.information,
    ]
    ranges = f"values range over at most {game.reward_ranges.max():.6g}"
    return Text.assemble(("well formed", "bold green"), f": {', '.join(parts)}; {ranges}")


def _span(numbers: list[int], noun: str) -> str:
    return counted(numbers[0], noun) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} {noun}s"


def _feasibility(start: Start) -> Text:
    if start.policy is not None:
        slack = "" if np.isinf(start.slack) else f"; slack {start.slack:.6g}"
        return Text.assemble(("feasible", "bold green"), f": {start.found_by}{slack}")
    if start.proof is None:
        told = f"{start.found_by}; least violation seen {-start.slack:.6g}"
        return Text.assemble(("feasibility unknown", "bold yellow"), f": {told}")
    weights = ", ".join(f"{weight:.4g}" for weight in start.proof.multipliers)
    given = "" if len(start.proof.multipliers) == 1 else f"with the weights {weights} "
    least, limit = start.proof.least_cost, start.proof.limit
    told = f"{given}every joint policy costs at least {least:.6g}, and {limit:.6g} is allowed"
    return Text.assemble(("infeasible", "bold yellow"), f": {told}")


def _potential(potential: PotentialCheck) -> Text:
    if potential.witness is not None:
        return Text.assemble("potential ", (potential.verdict.name, "bold yellow"), ": no Markov potential game")
    told = potential.reason.rstrip(".")
    if potential.error_probability is not None:
        told += f" (wrong with probability at most {potential.error_probability:.1e})"
    return Text.assemble("potential ", (potential.verdict.name, "bold green"), f": {told}")


def witness_view(game: Game, witness: FourCycle) -> RenderableType:
    """Lay out the four corners of a cycle that no potential allows, with the values of the two who move."""
    names = game.names
    one, other = (names.agent(agent) for agent in witness.agents)
    told = f"{one} and {other} move in turn, and around the cycle their gains add up to {abs(witness.residual):.6g}"
    rounding = f"rounding explains at most {witness.rounding:.1g}" if witness.rounding else "in exact numbers"
    table = Table(box=None, pad_edge=False)
    table.add_column("corner")
    for name in (one, other):
        table.add_column(Text(f"value of {name}"), justify="right")
    for corner, policy in zip(("start", f"{one} moved", "both moved", f"{other} moved"), witness.corners, strict=True):
        values = game.at(policy).values
        table.add_row(Text(corner), *(f"{float(values[agent]):.6f}" for agent in witness.agents))
    return Group(Text(f"witness: {told}, not 0 ({rounding})"), table)
