"""Results and certificates as plain records: what `--json` prints, and what a run folder keeps.

A run folder holds `policy.npz`, `certificate.json`, `result.json`, `trace.csv`, and `game.npz`, so that anybody can
check the claim without this run; and `scenario.json`, which says where the game came from and how to draw it.
`result.json` is written last: a folder without it is half-written.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

from cmpg import __version__
from cmpg.checks import FileError
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Result
from cmpg.games.contract import Game
from cmpg.games.files import save_game
from cmpg.report.drawings import Origin, drawing_of
from cmpg.report.scenario_file import write_scenario
from cmpg.storage import write_atomically


def certificate_record(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as a record of plain numbers and strings."""
    return {
        "format": "cmpg-certificate",
        "version": 1,
        "feasible": certificate.feasible,
        "feasibility": certificate.feasibility.name,
        "epsilon": certificate.epsilon,
        "information": certificate.information,
        "arithmetic": certificate.arithmetic,
        "values": certificate.values.tolist(),
        "bounds": certificate.bounds.tolist(),
        "gains": certificate.gains.tolist(),
        "rounding": certificate.rounding.tolist(),
        "costs": certificate.costs.tolist(),
        "thresholds": certificate.thresholds.tolist(),
        "multipliers": certificate.multipliers.tolist(),
    }


def result_record(result: Result, *, seed: int | None = None, game_hash: str | None = None) -> dict[str, Any]:
    """Return a result as a record of plain numbers and strings."""
    known = result.certificate
    gains = result.trace[-1].gains if result.trace else np.zeros(0)
    return {
        "format": "cmpg-result",
        "version": 1,
        "status": result.status.name,
        "message": result.message,
        "epsilon": result.epsilon,
        "certified_epsilon": None if known is None else known.epsilon,
        "information": None if known is None else known.information,
        "values": result.values.tolist(),
        "costs": result.costs.tolist(),
        "thresholds": [] if known is None else known.thresholds.tolist(),
        "gains": [None if np.isnan(gain) else float(gain) for gain in gains],
        "multipliers": None if result.multipliers is None else result.multipliers.tolist(),
        "iterations": len(result.trace),
        "moves": result.moves,
        "max_iterations": result.max_iterations,
        "equilibria": [
            {"values": each.values.tolist(), "costs": each.costs.tolist(), "epsilon": each.certificate.epsilon}
            for each in result.equilibria
            if each.certificate is not None
        ],
        "proof": None
        if result.proof is None
        else {
            "multipliers": result.proof.multipliers.tolist(),
            "least_cost": result.proof.least_cost,
            "limit": result.proof.limit,
        },
        "settings": dict(result.settings),
        "seed": seed,
        "versions": {"cmpg": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "game_sha256": game_hash,
    }


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
    """Raise if a run folder cannot be written without writing over something."""
    if folder.is_file():
        raise FileError(f"{folder}: is a file; name a folder that is new or empty.")
    if folder.is_dir() and any(folder.iterdir()):
        raise FileError(f"{folder}: is not empty; nothing is written over. Name a new folder, or remove this one.")
    if not folder.parent.is_dir() and not folder.is_dir():
        raise FileError(f"{folder}: its parent folder does not exist.")


def write_run(folder: Path, game: Game, result: Result, *, seed: int | None, origin: Origin | None = None) -> None:
    """Write a run folder; `origin` is where the game came from, for the page that is made of the folder."""
    check_out_folder(folder)
    folder.mkdir(exist_ok=True)
    if origin is not None:
        write_scenario(folder / "scenario.json", origin, drawing_of(origin))
    save_game(game, folder / "game.npz")
    digest = hashlib.sha256((folder / "game.npz").read_bytes()).hexdigest()
    if result.policy is not None:
        result.policy.save(folder / "policy.npz", multipliers=result.multipliers)
    if result.certificate is not None:
        _write_text(folder / "certificate.json", json.dumps(certificate_record(result.certificate), indent=1))
    _write_text(folder / "trace.csv", trace_table(result))
    _write_text(folder / "result.json", json.dumps(result_record(result, seed=seed, game_hash=digest), indent=1))


def _write_text(target: Path, text: str) -> None:
    write_atomically(target, lambda stream: stream.write(text.encode()))
