"""What is known of each game of the suite: its digest, the best known value, a proved bound, and what methods reach.

`reference.json` beside this file holds it: `version`, `games` (by name `sha256`, `best_known`, `bound`, and the proved
`exploitability` of the reference policy), and `rows` (by method, by game: `feasible`, `exploitability`, `total_value`,
`relative_gain`, or null where the method does not apply). The reference policies and their multipliers are in
`reference.npz`, large ones as actions and the rows that mix; `cmpg suite check` proves them again. `python -m checks
suite --write` writes both. Games that are built from data files have their entries here too, and no number of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, certify
from cmpg.errors import FileError, GameError
from cmpg.files.containers import read_fields
from cmpg.games.game import Game
from cmpg.policy import CompactTable, JointPolicy, compacted
from cmpg.suite.data_games import RECIPES
from cmpg.suite.games import SUITE, VERSION, content_digest, suite_game
from cmpg.summaries import fields_line


@dataclass(frozen=True)
class Reference:
    """What is known of one game.

    Examples
    --------
    >>> known = reference("counter-example")
    >>> known.best_known <= known.bound, known.exploitability < 1e-6
    (True, True)
    """

    name: str
    sha256: str
    best_known: float  # the largest total value of a feasible policy that is known
    bound: float | None  # no feasible policy has a larger total value
    exploitability: float  # of the reference policy, proved

    __repr__ = fields_line


@cache
def _record() -> Mapping[str, Any]:
    with as_file(files("cmpg.suite").joinpath("reference.json")) as path:
        record = read_fields(path)
    if record.get("version") != VERSION:
        raise FileError(f"reference.json has version {record.get('version')!r}; the suite has version {VERSION}.")
    return record


def reference(name: str) -> Reference:
    """Return what is known of a game of the suite.

    Examples
    --------
    >>> round(reference("counter-example").best_known, 4)
    6.1586
    """
    if name not in SUITE and name not in RECIPES:
        raise GameError(f"the suite has no game {name!r}; `cmpg suite list` names them.")
    known = _record()["games"][name]
    return Reference(name, known["sha256"], known["best_known"], known["bound"], known["exploitability"])


def reference_rows() -> Mapping[str, Mapping[str, Any]]:
    """Return what each method reached, by method and game."""
    rows: Mapping[str, Mapping[str, Any]] = _record()["rows"]
    return rows


def reference_policy(name: str, data: str | Path | None = None) -> tuple[JointPolicy, FloatArray]:
    """Return the reference policy of a game, and the multipliers that prove it."""
    shapes = suite_game(name, data).policy_shapes
    with as_file(files("cmpg.suite").joinpath("reference.npz")) as path, np.load(path) as found:
        tables = []
        for i, shape in enumerate(shapes):
            if f"{name}/{i}" in found:
                tables.append(found[f"{name}/{i}"].reshape(shape))
            else:
                actions, mixed, rows = (found[f"{name}/{i}/{part}"] for part in ("actions", "mixed", "rows"))
                tables.append(CompactTable(actions, shape[2], mixed, rows).table)
        return JointPolicy(tuple(tables)), found[f"{name}/multipliers"]


def reference_arrays(name: str, policy: JointPolicy, multipliers: FloatArray) -> dict[str, Any]:
    """Return what `reference.npz` holds of a game: tables, large ones as actions and rows that mix."""
    arrays: dict[str, Any] = {f"{name}/multipliers": np.asarray(multipliers)}
    for i, table in enumerate(policy):
        stored = compacted(table.astype(np.float64))
        if isinstance(stored, CompactTable):
            parts = {"actions": stored.actions, "mixed": stored.mixed, "rows": stored.rows}
            arrays |= {f"{name}/{i}/{part}": array for part, array in parts.items()}
        else:
            arrays[f"{name}/{i}"] = stored
    return arrays


def check_game_is_frozen(name: str, data: str | Path | None = None) -> Game:
    """Return a game of the suite; raise unless it has the numbers that the reference was computed for."""
    game = suite_game(name, data)
    found = content_digest(game)
    if found != reference(name).sha256:
        made_from = f" from {', '.join(RECIPES[name].files) or RECIPES[name].package}" if name in RECIPES else ""
        raise GameError(
            f"the game {name} of the suite has the digest {found[:12]}… here{made_from}, and "
            f"{reference(name).sha256[:12]}… in the reference: it is not the game of version {VERSION}, and nothing "
            "can be compared."
        )
    return game


def prove_reference(name: str, data: str | Path | None = None) -> Certificate:
    """Prove the reference policy of a game again."""
    game = check_game_is_frozen(name, data)
    policy, multipliers = reference_policy(name, data)
    return certify(game, policy, multipliers)
