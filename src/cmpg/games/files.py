"""Game files: one set of names for both containers.

A joint game: `format` = "cmpg-game", `version` = 1, `form` = "joint", `horizon` (or `discount`), `initial` [S],
`transition` [H or 1, S, *A, S], `rewards` [n, H or 1, S, *A], `costs` [k, H or 1, S, *A], `thresholds` [k]; optional
names `agents`, `states`, `actions`, `constraints`. A sparse transition is `transition_indptr`, `transition_indices`,
`transition_data`, the CSR arrays of one matrix with rows in the order (step, state, *actions). Other forms have their
own names, in the file that defines the form; every form is a pair of functions, game → fields and fields → game.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.checks import CMPGError, FileError, GameError
from cmpg.games.contract import Game
from cmpg.games.fields import checked_csr, names_of, whole_number
from cmpg.games.joint import JointGame
from cmpg.storage import Fields, check_kind, read_fields, write_fields

JOINT_NAMES = ("agents", "states", "actions", "constraints")
SPARSE = ("transition_indptr", "transition_indices", "transition_data")


def save_game(game: Game, path: str | Path) -> None:
    """Write a game file, `.npz` or `.json`."""
    for form, (kind, to_fields, _) in _forms().items():
        if isinstance(game, kind):
            write_fields(path, {"format": "cmpg-game", "version": 1, "form": form} | to_fields(game))
            return
    raise FileError(f"{path}: a {type(game).__name__} has no file form.")


def load_game(path: str | Path, *, exact: bool = False) -> Game:
    """Read a game file.

    Parameters
    ----------
    path
        A `.json` or `.npz` file.
    exact
        Keep the numbers of a joint game in a `.json` as the rationals that are written there: 0.1 is 1/10, "1/3" is
        one third.
    """
    fields = read_fields(path)
    check_kind(path, fields, kind="cmpg-game")
    form = str(fields.get("form"))
    forms = _forms()
    if form not in forms:
        raise FileError(f"{path}: its form is {form!r}; one of {', '.join(forms)} is required.")
    _, _, from_fields = forms[form]
    body = {name: value for name, value in fields.items() if name not in ("format", "version", "form")}
    try:
        game: Game = from_fields(body)
    except FileError:
        raise
    except CMPGError as problem:
        raise type(problem)(f"{path}: {problem}") from None
    except KeyError as missing:
        raise FileError(f"{path}: the field {missing} is missing.") from None
    if isinstance(game, JointGame):
        return game if exact else game.floats()
    return game


Form = tuple[type, Callable[[Any], Fields], Callable[[Fields], Any]]


def _forms() -> dict[str, Form]:
    from cmpg.games.counting import CountingGame
    from cmpg.games.counting_files import counting_fields, counting_from_fields
    from cmpg.games.local import LocalGame
    from cmpg.games.local_files import local_fields, local_from_fields

    return {
        "joint": (JointGame, _joint_fields, _joint_from_fields),
        "local": (LocalGame, local_fields, local_from_fields),
        "counting": (CountingGame, counting_fields, counting_from_fields),
    }


def _joint_fields(game: JointGame) -> Fields:
    fields: Fields = {name: getattr(game, name) for name in ("initial", "rewards", "costs", "thresholds")}
    fields |= {"horizon": game.horizon} if game.discount is None else {"discount": game.discount}
    if game.is_sparse:
        stacked = sp.vstack(game.transition, format="csr")
        fields |= dict(zip(SPARSE, (stacked.indptr, stacked.indices, stacked.data), strict=True))
    else:
        fields["transition"] = game.transition
    named = {name: getattr(game, name) for name in JOINT_NAMES if getattr(game, name) is not None}
    if "actions" in named and len({len(each) for each in named["actions"]}) > 1:
        named["actions"] = _padded(named["actions"])
    return fields | named


def _padded(actions: tuple[tuple[str, ...], ...]) -> list[list[str]]:
    longest = max(len(each) for each in actions)
    return [[*each, *[""] * (longest - len(each))] for each in actions]


def _joint_from_fields(fields: Fields) -> JointGame:
    known = {"initial", "rewards", "costs", "thresholds", "horizon", "discount", "transition", *SPARSE, *JOINT_NAMES}
    strange = set(fields) - known
    if strange:
        raise FileError(f"unknown field {', '.join(sorted(strange))}; a joint game has {', '.join(sorted(known))}.")
    horizon, discount = fields.get("horizon"), fields.get("discount")
    names = {name: names_of(fields[name]) for name in JOINT_NAMES if name in fields}
    return JointGame(
        transition=_sparse_transition(fields) if SPARSE[0] in fields else fields["transition"],
        rewards=fields["rewards"],
        costs=fields.get("costs", ()),
        thresholds=fields.get("thresholds", ()),
        initial=fields["initial"],
        horizon=None if horizon is None else whole_number("horizon", horizon),
        discount=None if discount is None else float(discount),
        **names,
    )


def _sparse_transition(fields: Fields) -> list[sp.csr_array]:
    rewards = np.asarray(fields["rewards"])
    rows_a_step, states = int(np.prod(rewards.shape[2:])), int(rewards.shape[2])
    stacked = checked_csr("transition", [fields[name] for name in SPARSE], columns=states)
    if stacked.shape[0] % rows_a_step:
        raise GameError(f"transition_indptr has {stacked.shape[0]} rows; a multiple of {rows_a_step} is required.")
    steps = stacked.shape[0] // rows_a_step
    return [stacked[step * rows_a_step : (step + 1) * rows_a_step] for step in range(steps)]
