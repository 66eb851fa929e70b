"""Reading a run folder back, and believing none of it.

The game must have the hash that the result names, the policy must fit the game, and the certificate is computed again
from game, policy and multipliers: a folder whose files contradict each other is refused, so what a page shows is what
its files prove.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, Feasibility, InfeasibilityProof, certify
from cmpg.equilibrium.result import Status, Step
from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import Fields, check_kind, read_fields
from cmpg.files.games import load_game
from cmpg.files.policies import load_policy
from cmpg.files.scenario_file import check_drawing, read_scenario
from cmpg.games.contract import Game, Information
from cmpg.policy import JointPolicy
from cmpg.scenarios.drawings import Drawing, Origin

AGREEMENT = 1e-9
"""Recorded and recomputed numbers may differ by this much of their size: the order of sums depends on the machine."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """One of the endings that the restarts found."""

    values: FloatArray  # [n]
    costs: FloatArray  # [k]
    epsilon: float


@dataclass(frozen=True, eq=False)
class Claim:
    """A policy, and what was proved about it; checked again when it was read."""

    policy: JointPolicy
    certificate: Certificate  # as recorded


@dataclass(frozen=True, eq=False)
class Run:
    """A run folder, read and checked."""

    folder: Path
    origin: Origin
    drawing: Drawing | None
    game: Game
    claim: Claim | None  # None where the run found no policy
    status: Status
    message: str
    epsilon: float  # asked for
    trace: tuple[Step, ...]
    moves: int
    max_iterations: int
    equilibria: tuple[Equilibrium, ...]
    proof: InfeasibilityProof | None
    settings: Mapping[str, Any]
    seed: int | None
    versions: Mapping[str, str]
    game_sha256: str


def read_run(folder: Path) -> Run:
    """Read a run folder that `cmpg solve --out` wrote, or raise FileError with what is wrong with it."""
    if not folder.is_dir():
        raise FileError(f"{folder}: there is no such folder. Write one with: cmpg solve … --out {folder}")
    path = folder / "result.json"
    if not path.is_file():
        raise FileError(f"{folder}: has no result.json; it is no run folder, or only half of one. Solve again.")
    record = read_fields(path)
    check_kind(path, record, kind="cmpg-result")
    game, digest = _read_game(folder)
    try:
        return _run(folder, record, game=game, digest=digest)
    except KeyError as missing:
        raise FileError(f"{path}: the field {missing} is missing; the file is not whole. Solve again.") from None
    except (TypeError, ValueError) as problem:
        raise FileError(f"{path}: a field is not what it should be ({problem}). Solve again.") from None


def _run(folder: Path, record: Fields, *, game: Game, digest: str) -> Run:
    if record["game_sha256"] != digest:
        raise FileError(f"{folder}: game.npz is not the game of result.json: their hashes differ. Solve again.")
    status = Status[str(record["status"])]
    claim = _read_claim(folder, record, game)
    if claim is None and status is Status.CERTIFIED:
        raise FileError(f"{folder}: result.json says CERTIFIED and there is no policy; the folder is not whole.")
    origin, drawing = _read_origin(folder, game)
    proof = record["proof"]
    return Run(
        folder=folder,
        origin=origin,
        drawing=drawing,
        game=game,
        claim=claim,
        status=status,
        message=str(record["message"]),
        epsilon=float(record["epsilon"]),
        trace=_read_trace(folder / "trace.csv", game),
        moves=int(record["moves"]),
        max_iterations=int(record["max_iterations"]),
        equilibria=tuple(
            Equilibrium(_floats(each["values"]), _floats(each["costs"]), float(each["epsilon"]))
            for each in record["equilibria"]
        ),
        proof=None
        if proof is None
        else InfeasibilityProof(_floats(proof["multipliers"]), float(proof["least_cost"]), float(proof["limit"])),
        settings=dict(record["settings"]),
        seed=None if record["seed"] is None else int(record["seed"]),
        versions={str(name): str(version) for name, version in record["versions"].items()},
        game_sha256=digest,
    )


def _read_game(folder: Path) -> tuple[Game, str]:
    path = folder / "game.npz"
    game = load_game(path)
    return game, hashlib.sha256(path.read_bytes()).hexdigest()


def _read_origin(folder: Path, game: Game) -> tuple[Origin, Drawing | None]:
    path = folder / "scenario.json"
    if not path.exists():
        return Origin(folder.resolve().name, {}), None
    origin, drawing = read_scenario(path)
    if drawing is not None:
        check_drawing(path, drawing, game)
    return origin, drawing


def _read_claim(folder: Path, record: Fields, game: Game) -> Claim | None:
    path = folder / "policy.npz"
    if record["multipliers"] is None and not path.exists():
        return None
    policy, multipliers = load_policy(path)
    try:
        policy.check_fits(game.policy_shapes)
    except CMPGError as problem:
        raise FileError(f"{path}: does not fit game.npz: {problem}") from None
    recorded = _read_certificate(folder / "certificate.json")
    judged = certify(game, policy, multipliers)
    _compare(folder / "certificate.json", recorded, judged)
    listed = {"values": recorded.values, "costs": recorded.costs, "multipliers": recorded.multipliers}
    for name, numbers in listed.items():
        if not np.array_equal(_floats(record[name]).ravel(), numbers.ravel()):
            raise FileError(f"{folder}: result.json and certificate.json have different {name}. Solve again.")
    return Claim(policy, recorded)


def _compare(path: Path, recorded: Certificate, judged: Certificate) -> None:
    """Raise unless the recorded certificate says what the computation just said."""
    if recorded.feasible and not judged.feasible:
        raise FileError(f"{path}: says feasible, and policy.npz {judged.feasibility.value}. Solve again.")
    rounding = 2 * (judged.rounding + recorded.rounding) if recorded.rounding.shape == judged.rounding.shape else 0.0
    for name in ("values", "costs", "thresholds", "multipliers", "bounds", "gains"):
        ours, theirs = getattr(judged, name), getattr(recorded, name)
        if ours.shape != theirs.shape:
            raise FileError(f"{path}: {name} has shape {list(theirs.shape)}; {list(ours.shape)} is required.")
        allowed = AGREEMENT * np.maximum(np.abs(ours), 1.0) + (rounding if name in ("bounds", "gains") else 0.0)
        if (np.abs(ours - theirs) > allowed).any():
            raise FileError(f"{path}: its {name} are not those of policy.npz in game.npz. Solve again.")


def _read_certificate(path: Path) -> Certificate:
    fields = read_fields(path)
    check_kind(path, fields, kind="cmpg-certificate")
    names = ("gains", "values", "bounds", "costs", "thresholds", "rounding")
    try:
        arrays: dict[str, Any] = {name: _floats(fields[name]) for name in names}
        shape = (len(arrays["values"]), len(arrays["thresholds"]))
        return Certificate(
            feasibility=Feasibility[str(fields["feasibility"])],
            epsilon=float(fields["epsilon"]),
            multipliers=_floats(fields["multipliers"]).reshape(shape),
            information=Information(fields["information"]),
            arithmetic=str(fields["arithmetic"]),
            **arrays,
        )
    except KeyError as missing:
        raise FileError(f"{path}: {missing} is missing or unknown; the file is not whole. Solve again.") from None
    except (TypeError, ValueError) as problem:
        raise FileError(f"{path}: a field is not what it should be ({problem}). Solve again.") from None


def _floats(value: Any) -> FloatArray:
    """Numbers of a JSON file are exact rationals; rounding them gives the floats that were written."""
    return np.array(value, dtype=np.float64)


def _read_trace(path: Path, game: Game) -> tuple[Step, ...]:
    try:
        lines = list(csv.reader(path.read_text("utf-8").splitlines()))
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file; the folder is not whole. Solve again.") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not a text file. Solve again.") from None
    steps = []
    for number, cells in enumerate(lines[1:], 2):
        try:
            steps.append(_step(cells, game))
        except ValueError as problem:
            raise FileError(f"{path}, line {number}: not a whole line of a trace ({problem}). Solve again.") from None
    return tuple(steps)


def _step(cells: Sequence[str], game: Game) -> Step:
    constraints, width = len(game.thresholds), 5 + len(game.thresholds) + game.num_agents
    if len(cells) != width:
        raise ValueError(f"{len(cells)} entries, {width} are required")
    gains = np.array([float(cell) if cell else np.nan for cell in cells[5 + constraints :]])
    return Step(
        iteration=int(cells[0]),
        mover=int(cells[1]) if cells[1] else None,
        gain=float(cells[2]),
        gains=gains,
        costs=np.array([float(cell) for cell in cells[5 : 5 + constraints]]),
        potential=float(cells[3]),
        seconds=float(cells[4]),
    )
