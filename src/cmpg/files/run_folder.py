"""Run folders: what a run leaves behind for others to check, written whole, and read without trusting its claims.

`game.npz` and `policy.npz`, which holds the multipliers, are the claim; `policy_2.npz`, … are the other equilibria that
restarts found; `certificate.json` and `result.json` say what was found, `trace.csv` how, `scenario.json` where the game
came from and how to draw it. A game that was solved in exact numbers is also there as `game.json`, since a `.npz` holds
floats. `result.json` is written last: a folder without it is half-written.

Reading a folder returns what its files prove, not what they say: every certificate is computed again from game,
policy and multipliers, an infeasible game is proved to be so again, a witness is evaluated again, and the status
follows from that. A folder whose files contradict each other is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.quality import OptimalityGap
from cmpg.equilibrium.result import Equilibria, Incumbent, Result, Status
from cmpg.errors import CMPGError, FileError
from cmpg.files.containers import Fields, as_path, json_text, new_folder, number_table, read_fields, write_text
from cmpg.files.fields import choice, mapping, reading, real_number, text_of, whole_number
from cmpg.files.games import fields_of, load_game, save_game
from cmpg.files.policies import load_policy
from cmpg.files.records import (
    certificate_record,
    compare_certificate,
    proof_from_record,
    read_attempts,
    read_judged,
    read_trace,
    result_record,
    trace_table,
    witness_from_record,
)
from cmpg.files.scenario_file import check_drawing, read_scenario, write_scenario
from cmpg.games.constraints import without_constraints
from cmpg.games.game import Game
from cmpg.games.rationals import is_exact
from cmpg.policy import JointPolicy
from cmpg.scenarios import Origin
from cmpg.scenarios.drawings import Drawing, drawing_of
from cmpg.summaries import Summary, headline_line, html, text

SELFISH = "policy_selfish.npz"
"""This file holds what the agents would do without the constraints."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run with where it came from: what a run folder holds, and what a page is about."""

    game: Game
    result: Result
    origin: Origin
    drawing: Drawing | None = None
    seed: int | None = None
    versions: Mapping[str, str] | None = None  # None where the run was not read from a folder
    recorded: str = ""  # what the run said itself
    folder: Path | None = None
    game_sha256: str = ""

    def summary(self) -> Summary:
        """Return what to show: the result."""
        return self.result.summary()

    def __repr__(self) -> str:
        """Return one line, for which no bound is computed."""
        return headline_line(type(self).__name__, Summary(self.result.status.name, self.result.message))

    __str__, _repr_html_ = text, html


def save_run(
    folder: str | Path,
    result: Result,
    *,
    quality: Sequence[OptimalityGap] = (),
    seed: int | None = None,
    origin: Origin | None = None,
    drawing: Drawing | None = None,
    beside: Mapping[str, str] | None = None,
) -> Fields:
    """Write a run folder, and return the record of `result.json`.

    Parameters
    ----------
    folder
        New, or empty.
    result
        How the run ended; it knows its game.
    quality
        How good the result is, where that was computed; see `cmpg.quality`.
    seed
        Of the random numbers, where there were any.
    origin
        Where the game came from, for the page that is made of the folder.
    drawing
        How to draw it; as its origin says, unless given.
    beside
        Other files of the folder, by name: their texts.
    """
    target, game = as_path(folder), game_of(result)
    with new_folder(target):
        save_game(game, target / "game.npz")
        if is_exact(game):
            save_game(game, target / "game.json")
        if origin is not None:
            drawn = drawing_of(origin) if beside is None else drawing
            write_scenario(target / "scenario.json", origin, drawn)
        for name, content in (beside or {}).items():
            write_text(target / name, content)
        for rank, each in enumerate((result, *result.equilibria[1:]), 1):
            if each.incumbent is not None:
                each.policy.save(target / _policy_name(rank), multipliers=each.multipliers)
        if result.selfish is not None and result.selfish.incumbent is not None:
            result.selfish.policy.save(target / SELFISH, multipliers=result.selfish.multipliers)
        if result.incumbent is not None:
            write_text(target / "certificate.json", json_text(certificate_record(result.certificate)))
        write_text(target / "trace.csv", trace_table(result.trace))
        record = result_record(result, game, quality=quality, seed=seed, game_hash=_digest(target / "game.npz"))
        write_text(target / "result.json", json_text(record))
    return record


def game_of(result: Result) -> Game:
    """Return the game of a result, or raise where it was made without one."""
    if result.game is None:
        raise CMPGError("the result does not know its game; `solve` and `load_run` return results that do.")
    return result.game


def _policy_name(rank: int) -> str:
    return "policy.npz" if rank == 1 else f"policy_{rank}.npz"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load_run(folder: str | Path) -> FinishedRun:
    """Read a run folder, with everything in it computed and proved again.

    Parameters
    ----------
    folder
        What `result.save` or `cmpg solve --out` wrote.

    Raises
    ------
    FileError
        The folder is missing, half-written, of another version, or contradicts itself.

    Examples
    --------
    >>> import cmpg, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = save_run(folder, cmpg.solve(cmpg.scenarios.counter_example()))
    >>> run = load_run(folder)
    >>> run.result.certified, run.game.num_agents
    (True, 2)
    """
    source = as_path(folder)
    path = source / "result.json"
    if not source.is_dir():
        raise FileError(f"{source}: there is no such folder. Write one with: cmpg solve … --out {source}")
    if not path.exists():
        raise FileError(f"{source}: has no result.json; it is no run folder, or only half of one. Solve again.")
    record = read_fields(path, kind="cmpg-result")
    game = read_game(source)
    with reading(path, "Solve again."):
        return _run(source, record, game)


def read_drawn(folder: Path) -> tuple[Game, JointPolicy, Drawing | None]:
    """Read what is drawn of a run: game, policy, and how; nothing is proved of them."""
    game = load_game(folder / "game.npz")
    policy, _ = load_policy(folder / "policy.npz")
    policy.check_fits(game.policy_shapes)
    return game, policy, _read_origin(folder, game)[1]


def read_game(folder: Path) -> Game:
    """Read the game, with its rationals if they are there, too."""
    game = load_game(folder / "game.npz")
    if not (folder / "game.json").exists():
        return game
    exact = load_game(folder / "game.json", exact=True)
    rounded: Any = exact
    if not _same_tables(replace(rounded, rationals=None), game):
        raise FileError(f"{folder}: game.json and game.npz are different games. Solve again.")
    return exact


def _same_tables(one: Game, other: Game) -> bool:
    """Whether two games are written with the same numbers and names."""
    mine, theirs = fields_of(one), fields_of(other)
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def _run(folder: Path, record: Fields, game: Game) -> FinishedRun:
    digest = _digest(folder / "game.npz")
    if record["game_sha256"] != digest:
        raise FileError(f"{folder}: game.npz is not the game of result.json: their hashes differ. Solve again.")
    origin, drawing = _read_origin(folder, game)
    seed = record["seed"]
    return FinishedRun(
        game=game,
        result=_read_result(folder, record, game),
        origin=origin,
        drawing=drawing,
        seed=None if seed is None else whole_number("seed", seed),
        versions={name: text_of(version) for name, version in mapping("versions", record["versions"])},
        recorded=text_of(record["message"]),
        folder=folder,
        game_sha256=digest,
    )


def _read_origin(folder: Path, game: Game) -> tuple[Origin, Drawing | None]:
    path = folder / "scenario.json"
    if not path.exists():
        return Origin(folder.resolve().name, {}), None
    origin, drawing = read_scenario(path)
    if drawing is not None:
        check_drawing(path, drawing, game)
    return origin, drawing


def _read_result(folder: Path, record: Fields, game: Game) -> Result:
    incumbent = _read_incumbent(folder, record, game)
    epsilon = real_number("epsilon", record["epsilon"], least=0.0)
    trace = read_trace(folder / "trace.csv", game)
    if len(trace) != record["iterations"]:
        raise FileError(f"{folder}: trace.csv has {len(trace)} lines, and result.json another number. Solve again.")
    result = Result(
        status=choice("status", record["status"], Status),
        message="",
        epsilon=epsilon,
        incumbent=incumbent,
        game=game,
        trace=trace,
        moves=whole_number("moves", record["moves"], least=0),
        search_moves=whole_number("search_moves", record["search_moves"], least=0),
        max_iterations=whole_number("max_iterations", record["max_iterations"], least=0),
        settings={name: text_of(value) for name, value in mapping("settings", record["settings"])},
    )
    known = None if incumbent is None else incumbent.certificate
    rounded = known is not None and known.feasibility is Feasibility.TO_ROUNDING and known.epsilon <= epsilon
    if known is not None and known.proves(epsilon):
        result = replace(result, status=Status.CERTIFIED)
    elif result.status is Status.CERTIFIED or (result.status is Status.TO_ROUNDING and not rounded):
        raise FileError(
            f"{folder}: result.json says {result.status.name}, which its policy does not prove. Solve again."
        )
    result = _proved_again(result, record, game)
    result = replace(result, selfish=_read_selfish(folder, game, epsilon), runs=read_attempts(record))
    equilibria = _read_equilibria(folder, record, result)
    return replace(result, equilibria=Equilibria(equilibria), score=equilibria[0].score if equilibria else None)


def _read_selfish(folder: Path, game: Game, epsilon: float) -> Result | None:
    """Judge what the agents would do without the constraints, if the folder has it."""
    path = folder / SELFISH
    return _judged_result(path, without_constraints(game), epsilon) if path.exists() else None


def _judged_result(path: Path, game: Game, epsilon: float) -> Result:
    found = judged_policy(path, game)
    status = Status.CERTIFIED if found.certificate.proves(epsilon) else Status.LIMIT
    return Result(status, found.certificate.summary().sentence, epsilon, incumbent=found, game=game)


def _proved_again(result: Result, record: Fields, game: Game) -> Result:
    """Add the proof or the witness of an ending, and say what is now known."""
    if result.incumbent is None:
        if result.status is Status.INFEASIBLE:
            proof = proof_from_record(record["proof"], game)
            return replace(result, proof=proof, message=proof.sentence)
        if result.status is not Status.FEASIBILITY_UNKNOWN:
            raise FileError(f"it says {result.status.name} and there is no policy; the folder is not whole.")
        return replace(result, message="no feasible policy was found, and none was ruled out.")
    if result.status in (Status.INFEASIBLE, Status.FEASIBILITY_UNKNOWN):
        raise FileError(f"it says {result.status.name} and there is a policy; the folder is not whole.")
    described = replace(result, message=result.certificate.summary().sentence)
    if result.status is Status.NOT_POTENTIAL and record["witness"] is not None:
        return replace(described, witness=witness_from_record(record["witness"], game))
    return described


def _read_incumbent(folder: Path, record: Fields, game: Game) -> Incumbent | None:
    if record["multipliers"] is None and not (folder / "policy.npz").exists():
        return None
    found = judged_policy(folder / "policy.npz", game)
    fields = compare_certificate(folder / "certificate.json", found.certificate)
    for name in ("values", "costs", "multipliers"):
        ours, theirs = (read_judged(name, each[name]) for each in (record, fields))
        if not np.array_equal(ours.ravel(), theirs.ravel(), equal_nan=True):
            raise FileError(f"{folder}: result.json and certificate.json have different {name}. Solve again.")
    return found


def judged_policy(path: Path, game: Game) -> Incumbent:
    """Read a policy with its multipliers, and judge it in a game."""
    exact = is_exact(game)
    policy, multipliers = load_policy(path, exact=exact)
    try:
        certificate = certify(game, policy, multipliers, exact=exact)
    except CMPGError as problem:
        raise FileError(f"{path}: does not fit game.npz: {problem}") from None
    return Incumbent(policy, certificate.multipliers, certificate)


def _read_equilibria(folder: Path, record: Fields, result: Result) -> tuple[Result, ...]:
    """Read the equilibria that restarts found, the first of which is the result itself."""
    if not isinstance(record["equilibria"], list):
        raise FileError("equilibria is not a list.")
    found = []
    for rank, each in enumerate(record["equilibria"], 1):
        said = dict(mapping("equilibria", each))
        path = folder / _policy_name(rank)
        read = result if rank == 1 else _judged_result(path, game_of(result), result.epsilon)
        if rank > 1 and not read.certified:
            raise FileError(f"{path}: is no equilibrium: the policy {read.message}")
        for field in ("values", "costs"):
            ours, theirs = getattr(read.certificate, field), number_table(field, said[field], error=FileError)
            if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=1e-9, atol=1e-9):
                raise FileError(f"the {field} of equilibrium {rank} are not those of its policy. Solve again.")
        scored = said.get("score") is not None  # by what it was compared with the others, and how much of it it has
        score = (text_of(said["compared_by"]), real_number("score", said["score"])) if scored else None
        found.append(replace(read, score=score))
    return tuple(found)
