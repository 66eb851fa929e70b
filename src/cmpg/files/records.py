"""Results and certificates as plain records: what `--json` prints, and what a run folder keeps.

A run folder holds `policy.npz`, `certificate.json`, `result.json`, `trace.csv`, and `game.npz`, so that anybody can
check the claim without this run; and `scenario.json`, which says where the game came from and how to draw it. A game
that was solved in exact numbers is also there as `game.json`, since a `.npz` holds floats. `result.json` is written
last: a folder without it is half-written.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.equilibrium.certificate import Certificate, InfeasibilityProof
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.start import Start
from cmpg.errors import FileError
from cmpg.files.containers import json_text, write_atomically
from cmpg.files.games import save_game
from cmpg.files.scenario_file import write_scenario
from cmpg.games.contract import Game
from cmpg.games.potential.check import FourCycle, PotentialCheck
from cmpg.scenarios.drawings import Origin, drawing_of


def certificate_record(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as a record of plain numbers and strings."""
    arrays = ("values", "bounds", "gains", "rounding", "costs", "thresholds", "multipliers")
    record = {
        "format": "cmpg-certificate",
        "version": 1,
        "feasible": certificate.feasible,
        "feasibility": certificate.feasibility.name,
        "epsilon": certificate.epsilon,
        "information": certificate.information,
        "arithmetic": certificate.arithmetic,
        **{name: getattr(certificate, name) for name in arrays},
    }
    return {name: plain(value) for name, value in record.items()}


def names_record(game: Game) -> dict[str, Any]:
    """Return what the agents and constraints are called, in the order of every list of numbers about them."""
    names = game.names
    return {
        "agent_names": list(names.all_agents(game.num_agents)),
        "constraint_names": list(names.all_constraints(len(game.thresholds))),
    }


def result_record(
    result: Result, game: Game, *, seed: int | None = None, game_hash: str | None = None, selfish: Result | None = None
) -> dict[str, Any]:
    """Return a result as a record of plain numbers and strings; what is not finite is null."""
    found = result.incumbent
    known = None if found is None else found.certificate
    record: dict[str, Any] = {
        "format": "cmpg-result",
        "version": 1,
        "status": result.status.name,
        "message": result.message,
        "epsilon": result.epsilon,
        "certified_epsilon": None if known is None else known.epsilon,
        "information": game.information,
        "arithmetic": None if known is None else known.arithmetic,
        **names_record(game),
        "values": result.values,
        "costs": result.costs,
        "thresholds": game.thresholds,
        "gains": np.zeros(0) if known is None else known.gains,
        "multipliers": None if found is None else found.multipliers,
        "iterations": len(result.trace),
        "moves": result.moves,
        "max_iterations": result.max_iterations,
        "equilibria": [
            {
                "values": each.values,
                "costs": each.costs,
                "epsilon": each.certificate.epsilon,
                "compared_by": None if each.score is None else each.score[0],
                "score": None if each.score is None else each.score[1],
            }
            for each in result.equilibria
            if each.incumbent is not None
        ],
        "proof": _proof_record(result.proof),
        "witness": witness_record(result.witness),
        "selfish": _selfish_record(selfish),
        "settings": dict(result.settings),
        "seed": seed,
        "versions": {"cmpg": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "game_sha256": game_hash,
    }
    return {name: plain(value) for name, value in record.items()}


def _proof_record(proof: InfeasibilityProof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {"multipliers": proof.multipliers, "least_cost": proof.least_cost, "limit": proof.limit}


def _selfish_record(selfish: Result | None) -> dict[str, Any] | None:
    if selfish is None:
        return None
    return {"status": selfish.status.name, "values": selfish.values, "costs": selfish.costs}


def plain(value: Any) -> Any:
    """Return a record in what JSON knows: arrays as lists, and null for what is not finite."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.astype(np.float64).tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def trace_table(result: Result) -> str:
    """Return the trace as CSV: one line per iteration."""
    text = io.StringIO()
    writer = csv.writer(text)
    if result.trace:
        agents, constraints = len(result.trace[0].gains), len(result.trace[0].costs)
        gains, costs = [f"gain_{i}" for i in range(agents)], [f"cost_{j}" for j in range(constraints)]
        writer.writerow(["iteration", "mover", "gain", "potential", "seconds", *costs, *gains])
        for step in result.trace:
            mover = "" if step.mover is None else step.mover
            gained = ["" if np.isnan(gain) else repr(float(gain)) for gain in step.gains]
            spent = [repr(float(cost)) for cost in step.costs]
            row = [step.iteration, mover, repr(step.gain), repr(step.potential), f"{step.seconds:.6f}"]
            writer.writerow([*row, *spent, *gained])
    return text.getvalue()


def check_out_folder(folder: Path) -> None:
    """Raise if a run folder cannot be written, or not without writing over something."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise FileError(f"{folder}: is not empty; nothing is written over. Name a new folder, or empty it.")
            if not os.access(folder, os.W_OK | os.X_OK):
                raise FileError(f"{folder}: you may not write there. Name another folder.")
        elif folder.exists():
            raise FileError(f"{folder}: is a file; name a folder that is new or empty.")
        elif not folder.parent.is_dir():
            raise FileError(f"{folder}: its parent folder does not exist. Make it first.")
        else:
            # Only trying tells whether it can be made, and a long run shall not end in finding that out.
            folder.mkdir()
            folder.rmdir()
    except OSError as problem:
        raise FileError(f"{folder}: cannot be made ({problem.strerror}). Name another folder.") from None


def write_run(
    folder: Path,
    game: Game,
    result: Result,
    *,
    seed: int | None,
    origin: Origin | None = None,
    selfish: Result | None = None,
) -> dict[str, Any]:
    """Write a run folder, and return the record of `result.json`.

    Parameters
    ----------
    folder
        New, or empty.
    game, result
        What was solved, and how it ended.
    seed
        Of the random numbers, where there were any.
    origin
        Where the game came from, for the page that is made of the folder.
    selfish
        How the game without its constraints ended, where it was solved, too.
    """
    check_out_folder(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise FileError(f"{folder}: cannot be made ({problem.strerror}). Name another folder.") from None
    if origin is not None:
        write_scenario(folder / "scenario.json", origin, drawing_of(origin))
    save_game(game, folder / "game.npz")
    if getattr(game, "is_exact", False):
        save_game(game, folder / "game.json")
    digest = hashlib.sha256((folder / "game.npz").read_bytes()).hexdigest()
    if result.incumbent is not None:
        result.policy.save(folder / "policy.npz", multipliers=result.multipliers)
    if result.incumbent is not None:
        _write_text(folder / "certificate.json", json_text(certificate_record(result.certificate)))
    _write_text(folder / "trace.csv", trace_table(result))
    record = result_record(result, game, seed=seed, game_hash=digest, selfish=selfish)
    _write_text(folder / "result.json", json_text(record))
    return record


def _write_text(target: Path, text: str) -> None:
    write_atomically(target, lambda stream: stream.write(text.encode(errors="backslashreplace")))


def check_record(game: Game, start: Start, potential: PotentialCheck) -> dict[str, Any]:
    """Return the findings as a record; the witness carries all that is needed to check it again."""
    return {
        "format": "cmpg-check",
        "version": 1,
        "agents": game.num_agents,
        "constraints": len(game.thresholds),
        **names_record(game),
        "horizon": game.horizon,
        "discount": game.discount,
        "information": game.information,
        "policy_shapes": [list(shape) for shape in game.policy_shapes],
        "reward_ranges": game.reward_ranges.tolist(),
        "feasible": True if start.policy is not None else (None if start.proof is None else False),
        "feasible_by": start.found_by,
        "slack": None if np.isinf(start.slack) else start.slack,
        "infeasibility_multipliers": None if start.proof is None else start.proof.multipliers.tolist(),
        "potential": potential.verdict.name,
        "potential_reason": potential.reason,
        "error_probability": potential.error_probability,
        "witness": witness_record(potential.witness),
    }


def witness_record(witness: FourCycle | None) -> dict[str, Any] | None:
    """Return a 4-cycle as plain numbers; None where there is none."""
    if witness is None:
        return None
    return {
        "agents": list(witness.agents),
        "residual": witness.residual,
        "rounding": witness.rounding,
        "policy": [table.tolist() for table in witness.policy],
        "deviations": [table.tolist() for table in witness.deviations],
    }
