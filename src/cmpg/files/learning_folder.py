"""Learning run folders: `game.npz`, a `policy_<seed>.npz` for each seed, `seeds.jsonl`, a record a line, and
`curves.csv`, how the bounds of each seed closed with its samples.

The multipliers in a policy file prove what an agent could truly gain by deviating from it. So reading a folder judges
every learned policy again, by backward induction alone, and refuses records that say otherwise. What was drawn and
played on the way (samples, executed policies) is only recorded. Records are written whole, in the order of the seeds;
a last line that was torn off, by whatever copied the file, is left out. If an environment was learned, the game is
unknown: there is no `game.npz`, and the policies are not judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Status
from cmpg.errors import FileError
from cmpg.files.containers import (
    AGREEMENT,
    Fields,
    check_regular,
    parse_json,
    plain_fields,
    read_fields,
    write_text,
)
from cmpg.files.fields import choice, flag, mapping, names_of, number_list, reading, real_number, text_of, whole_number
from cmpg.files.games import load_game, save_game
from cmpg.files.long_runs import REQUEST, check_request, write_request
from cmpg.files.run_folder import judged_policy
from cmpg.games.game import Game
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.learning.trials import Trial

RECORDS = "seeds.jsonl"
CURVES = "curves.csv"
CURVE_HEAD = "seed,samples,gap,feasible"


def resume_learning_run(folder: Path, game: Game | None, request: Mapping[str, Any]) -> list[Fields]:
    """Begin a run in a folder of one's own, or go on with what is there; return the records of the seeds that are done.

    Parameters
    ----------
    folder
        Held by `sole_writer`.
    game
        The true game; None if it is unknown.
    request
        All that the result of a seed depends on. It must be what the run was begun with.
    """
    if not check_request(folder, request):
        write_request(folder, request)
    if game is not None and not (folder / "game.npz").exists():
        save_game(game, folder / "game.npz")
    read = [_whole_record(record, game, where) for where, record in _records(folder)]
    done = {record["seed"]: record for record in read if record["status"] != Status.INTERRUPTED.name}
    _write_records(folder, list(done.values()))
    return list(done.values())


def kept_records(folder: Path) -> list[Fields]:
    """Read the records that are in a folder now, as `keep_trial` wrote them."""
    return [record for _, record in _records(folder)]


def keep_trial(folder: Path, each: Trial) -> Fields:
    """Write the policy of a trial, with the multipliers that judge it, and then its record, which is returned."""
    multipliers = None if each.judgement is None else each.judgement.multipliers
    each.result.policy.save(folder / f"policy_{each.index}.npz", multipliers=multipliers)
    record = trial_record(each)
    _write_records(folder, [*(known for _, known in _records(folder) if known["seed"] != each.index), record])
    return record


def _lines(path: Path) -> tuple[list[tuple[str, str]], bool]:
    """Read the whole lines of a file, each with where it stands, and whether a last one was torn off."""
    check_regular(path)
    try:
        lines = path.read_text("utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{path}: is not a text file; learn again.") from None
    torn = bool(lines) and not lines[-1].endswith("\n")
    return [(f"{path}, line {number}", line) for number, line in enumerate(lines[: len(lines) - torn], 1)], torn


def _records(folder: Path) -> list[tuple[str, Fields]]:
    """Read the records that are there, each with where it stands."""
    path = folder / RECORDS
    lines = _lines(path)[0] if path.exists() else []
    return [(where, parse_json(line, where)) for where, line in lines]


def _whole_record(record: Fields, game: Game | None, where: str) -> Fields:
    """Return a record with its numbers read, as `trial_record` wrote them; raise unless all of it is there."""
    with reading(where, "Remove that line, and the seed is learned again."):
        read: Fields = {"status": choice("status", record["status"], Status).name}
        read |= {"certified": flag("certified", record["certified"]), "void": list(names_of("void", record["void"]))}
        for name in ("seed", "moves", "iterations", "executed_policies"):
            read[name] = whole_number(name, record[name], least=0)
        for name in ("epsilon", "delta", "seconds"):
            read[name] = real_number(name, record[name], least=0.0)
        read["samples"] = {name: whole_number(name, n, least=0) for name, n in mapping("samples", record["samples"])}
        read["curve"] = _points(record["curve"])
        read |= {} if game is None else _truth(record, len(game.thresholds))
        return record | read


def _truth(record: Fields, num_constraints: int) -> Fields:
    """Read the fields that only the true game can give."""
    gap = record["true_gap"]
    read: Fields = {"true_gap": None if gap is None else real_number("true_gap", gap, least=0.0)}
    read["true_costs"] = number_list("true_costs", record["true_costs"], length=num_constraints).tolist()
    read |= {name: flag(name, record[name]) for name in ("feasible", "right")}
    return read | {name: whole_number(name, record[name], least=0) for name in ("unsafe_policies", "unsafe_episodes")}


def _write_records(folder: Path, records: list[Fields]) -> None:
    """Rewrite all records, in the order of the seeds: a reader never meets half a line."""
    ordered = sorted(records, key=lambda record: int(record["seed"]))
    rows = [[record["seed"], *point] for record in ordered for point in record["curve"]]
    lines = [",".join("" if value is None else f"{value:.10g}" for value in row) for row in rows]
    write_text(folder / CURVES, "\n".join([CURVE_HEAD, *lines, ""]))
    write_text(folder / RECORDS, "".join(json.dumps(record) + "\n" for record in ordered))


def trial_record(each: Trial) -> Fields:
    """Return one trial as plain numbers and strings; what is unknown is null."""
    result, judged = each.result, each.judgement
    record = {
        "seed": each.index,
        "status": result.status.name,
        "certified": result.certified,
        "message": result.message,
        "void": list(result.void),
        "assumptions": list(result.assumptions),
        "epsilon": result.epsilon,
        "delta": result.delta,
        "moves": result.moves,
        "iterations": len(result.trace),
        "samples": dict(result.samples),
        "true_gap": None if judged is None else judged.gap,
        "true_costs": None if judged is None else judged.costs,
        "feasible": None if judged is None else judged.feasible,
        "right": each.right,
        "executed_policies": len(result.played),
        "unsafe_policies": None if judged is None else judged.unsafe_policies,
        "unsafe_episodes": None if judged is None else judged.unsafe_episodes,
        "settings": dict(result.settings),
        "curve": [[at.samples, at.gap if np.isfinite(at.gap) else None, int(at.feasible)] for at in each.curve],
        "seconds": each.seconds,
    }
    return plain_fields(record)


@dataclass(frozen=True, eq=False)
class LearnedSeed:
    """What one seed claims, and what its policy is worth in truth."""

    seed: int
    status: Status  # as recorded
    claimed: bool  # whether the learner claims an ε-Nash policy, with probability 1 − δ
    epsilon: float
    delta: float
    samples: Mapping[str, int]  # by purpose, as recorded
    executed_policies: int  # as recorded
    unsafe_policies: int  # as recorded
    settings: Mapping[str, Any]
    certificate: Certificate  # of the learned policy in the true game, computed when it was read
    curve: FloatArray  # [points, 2]: samples, and how far the bounds were apart, as recorded

    __repr__ = fields_line

    @property
    def right(self) -> bool:
        """Whether the policy is feasible and ε-Nash in truth."""
        return self.certificate.proves(self.epsilon)

    @property
    def total_samples(self) -> int:
        """All samples, for whatever purpose."""
        return sum(self.samples.values())


@dataclass(frozen=True, eq=False)
class LearnedRun:
    """A learning run folder, read and judged again."""

    folder: Path
    game: Game
    seeds: tuple[LearnedSeed, ...]
    torn: bool  # whether a last line was left out
    name: str  # of the game, as recorded; of the folder where it is not

    __repr__ = fields_line


def is_learning_run(folder: Path) -> bool:
    """Whether a folder was written by `cmpg learn`."""
    return (folder / RECORDS).exists()


def load_learning_run(folder: Path) -> LearnedRun:
    """Read a folder that `cmpg learn --out` wrote, or raise FileError with what is wrong with it."""
    path = folder / RECORDS
    lines, torn = _lines(path)
    if not (folder / "game.npz").exists() and (folder / REQUEST).exists():
        raise FileError(f"{folder}: an environment was learned, and its game is unknown, so nothing can be judged.")
    game = load_game(folder / "game.npz")
    seeds = tuple(_read_seed(folder, game, parse_json(line, where), where) for where, line in lines)
    if not seeds:
        raise FileError(f"{path}: is empty; no seed was finished.")
    if len({each.seed for each in seeds}) < len(seeds):
        raise FileError(f"{path}: has two records of one seed; learn again.")
    return LearnedRun(folder, game, seeds, torn, _name(folder))


def _read_seed(folder: Path, game: Game, line: Fields, where: str) -> LearnedSeed:
    record = _whole_record(line, game, where)
    rows = [(at, np.nan if gap is None else gap) for at, gap, _ in record["curve"]]
    copied = ("seed", "epsilon", "delta", "samples", "executed_policies", "unsafe_policies")
    with reading(where, "Learn again."):
        found = LearnedSeed(
            **{name: record[name] for name in copied},
            status=Status[record["status"]],
            claimed=record["certified"],
            settings={name: text_of(value) for name, value in mapping("settings", record["settings"])},
            certificate=judged_policy(folder / f"policy_{record['seed']}.npz", game).certificate,
            curve=np.array(rows, dtype=np.float64).reshape(-1, 2),
        )
    _compare(found, record, where)
    return found


def _name(folder: Path) -> str:
    """Return the name of the game, if the run has it."""
    if (folder / REQUEST).exists():
        name = read_fields(folder / REQUEST, kind="cmpg-request").get("name")
        if isinstance(name, str) and name:
            return text_of(name)
    return folder.resolve().name


def _points(curve: Any) -> list[list[Any]]:
    """Read a list of [samples, gap, feasible], of which the gap may be null."""
    if not isinstance(curve, list) or not all(isinstance(each, list) and len(each) == 3 for each in curve):
        raise FileError("curve is not a list of points, three numbers each; learn again.")
    return [
        [
            whole_number("samples", at, least=0),
            None if gap is None else real_number("gap", gap),
            whole_number("feasible", feasible),
        ]
        for at, gap, feasible in curve
    ]


def _compare(found: LearnedSeed, record: Fields, where: str) -> None:
    """Raise unless the record says of the policy what the computation just said."""
    judged, gap = found.certificate, np.inf if record["true_gap"] is None else record["true_gap"]
    said = np.array(record["true_costs"], dtype=np.float64)
    same = bool((np.abs(said - judged.costs) <= AGREEMENT * np.maximum(np.abs(judged.costs), 1.0)).all())
    allowed = AGREEMENT * max(judged.epsilon, 1.0) + 4 * float(judged.rounding.max())
    same &= gap == judged.epsilon or abs(gap - judged.epsilon) <= allowed
    if not same or (record["feasible"], record["right"]) != (judged.feasible, found.right):
        raise FileError(f"{where}: is not what policy_{found.seed}.npz is worth in game.npz. Learn again.")
