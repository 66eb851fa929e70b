"""What `cmpg check` says of a game: its size, whether it is feasible, and whether it has a potential."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cmpg.equilibrium.start import Start
from cmpg.games.contract import Game
from cmpg.games.potential import FourCycle, PotentialCheck, Verdict


def check_view(game: Game, start: Start, potential: PotentialCheck) -> RenderableType:
    """Lay out the findings, with the witness where there is one."""
    parts: list[RenderableType] = [_sizes(game), _feasibility(start), _potential(potential)]
    if potential.witness is not None:
        parts.append(_witness_table(game, potential.witness))
    return Group(*parts)


def _sizes(game: Game) -> Text:
    shapes = game.policy_shapes
    states, actions = sorted({s for _, s, _ in shapes}), sorted({a for _, _, a in shapes})
    time = f"horizon {game.horizon}" if game.discount is None else f"discount {game.discount}"
    ranges = game.reward_ranges
    return Text(
        f"well formed: {game.num_agents} agents, {_span(states)} states, {_span(actions)} actions each, {time}, "
        f"{len(game.thresholds)} constraints ({game.information}); values range over at most {ranges.max():.6g}"
    )


def _span(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _feasibility(start: Start) -> Text:
    if start.policy is not None:
        text = Text("feasible", style="bold green")
        return text.append(f": {start.found_by}; slack {start.slack:.6g}", style="default")
    text = Text("infeasible" if start.proof is not None else "feasibility unknown", style="bold yellow")
    if start.proof is None:
        return text.append(f": {start.found_by}; least violation seen {-start.slack:.6g}", style="default")
    least, limit = start.proof.least_cost, start.proof.limit
    weights = np.array2string(start.proof.multipliers, precision=4)
    return text.append(
        f": with weights {weights} every joint policy costs at least {least:.6g} > {limit:.6g}", style="default"
    )


def _potential(potential: PotentialCheck) -> Text:
    style = "bold yellow" if potential.verdict is Verdict.REFUTED else "bold green"
    text = Text("potential ", style="default").append(potential.verdict.name, style=style)
    text.append(f": {potential.reason}", style="default")
    if potential.error_probability is not None:
        text.append(f" (wrong with probability at most {potential.error_probability:.1e})", style="default")
    return text


def _witness_table(game: Game, witness: FourCycle) -> Table:
    i, j = witness.agents
    total = f"{abs(witness.residual):.6g}"
    title = f"witness: agents {i} and {j} move in turn, and their gains around the cycle add up to {total}, not 0"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("corner", f"V of agent {i}", f"V of agent {j}"):
        table.add_column(name, justify="right")
    for name, corner in zip(("start", f"{i} moved", "both moved", f"{j} moved"), witness.corners, strict=True):
        values = game.at(corner).values
        table.add_row(name, f"{float(values[i]):.6f}", f"{float(values[j]):.6f}")
    return table


def check_record(game: Game, start: Start, potential: PotentialCheck) -> dict[str, Any]:
    """Return the findings as a record; the witness carries all that is needed to check it again."""
    witness = potential.witness
    return {
        "format": "cmpg-check",
        "version": 1,
        "agents": game.num_agents,
        "constraints": len(game.thresholds),
        "horizon": game.horizon,
        "discount": game.discount,
        "information": game.information,
        "reward_ranges": game.reward_ranges.tolist(),
        "feasible": True if start.policy is not None else (None if start.proof is None else False),
        "slack": None if np.isinf(start.slack) else start.slack,
        "infeasibility_multipliers": None if start.proof is None else start.proof.multipliers.tolist(),
        "potential": potential.verdict.name,
        "potential_reason": potential.reason,
        "error_probability": potential.error_probability,
        "witness": None if witness is None else _witness_record(witness),
    }


def _witness_record(witness: FourCycle) -> dict[str, Any]:
    return {
        "agents": list(witness.agents),
        "residual": witness.residual,
        "rounding": witness.rounding,
        "policy": [table.tolist() for table in witness.policy],
        "deviations": [table.tolist() for table in witness.deviations],
    }
