"""What is known of each game of the suite: its digest, the best known value, a proved bound, and what methods reach.

`reference.json` beside this file holds it: `version`, `games` (by name `sha256`, `best_known`, `bound`, and the proved
`exploitability` of the reference policy), and `rows` (by method, by game: `feasible`, `exploitability`, `total_value`,
`relative_gain`, or null where the method does not apply). The reference policies and their multipliers are in
`reference.npz`; `cmpg suite check` proves them again. `python -m checks suite --write` writes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, certify
from cmpg.errors import FileError, GameError
from cmpg.files.containers import read_fields
from cmpg.policy import JointPolicy
from cmpg.suite.games import SUITE, VERSION, content_digest, suite_game
from cmpg.summaries import fields_line


@dataclass(frozen=True)
class Reference:
    """What is known of one game."""

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
    if name not in SUITE:
        raise GameError(f"the suite has no game {name!r}; `cmpg suite list` names them.")
    known = _record()["games"][name]
    return Reference(name, known["sha256"], known["best_known"], known["bound"], known["exploitability"])


def reference_rows() -> Mapping[str, Mapping[str, Any]]:
    """Return what each method reached, by method and game."""
    rows: Mapping[str, Mapping[str, Any]] = _record()["rows"]
    return rows


def reference_policy(name: str) -> tuple[JointPolicy, FloatArray]:
    """Return the reference policy of a game, and the multipliers that prove it."""
    shapes = suite_game(name).policy_shapes
    with as_file(files("cmpg.suite").joinpath("reference.npz")) as path, np.load(path) as found:
        tables = tuple(found[f"{name}/{i}"].reshape(shape) for i, shape in enumerate(shapes))
        return JointPolicy(tables), found[f"{name}/multipliers"]


def check_game_is_frozen(name: str) -> None:
    """Raise unless the recipe of a game gives the numbers that the reference was computed for."""
    found = content_digest(suite_game(name))
    if found != reference(name).sha256:
        raise GameError(
            f"the game {name} of the suite has the digest {found[:12]}… here, and {reference(name).sha256[:12]}… in "
            f"the reference: it is not the game of version {VERSION}, and nothing can be compared."
        )


def prove_reference(name: str) -> Certificate:
    """Prove the reference policy of a game again."""
    check_game_is_frozen(name)
    policy, multipliers = reference_policy(name)
    return certify(suite_game(name), policy, multipliers)
