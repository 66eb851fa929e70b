"""Game files: one set of names for both containers.

A joint game: `format` = "cmpg-game", `version` = 1, `form` = "joint", `horizon` (or `discount`), `initial` [S],
`transition` [H or 1, S, *A, S], `rewards` [n, H or 1, S, *A], `costs` [k, H or 1, S, *A], `thresholds` [k]; optional
names `agents`, `states`, `actions`, `constraints`. A sparse transition is `transition_indptr`, `transition_indices`,
`transition_data`, the CSR arrays of one matrix with rows in the order (step, state, *actions). Other forms have their
own names, in the file that defines the form; every form is a pair of functions, game → fields and fields → game.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import scipy.sparse as sp

from cmpg.checks import CMPGError, FileError, GameError
from cmpg.games.contract import Game
from cmpg.games.fields import (
    checked_csr,
    dense_table,
    length_of_time,
    read_names,
    refuse_strange_fields,
    step_matrices,
)
from cmpg.games.joint import JointGame
from cmpg.storage import Fields, check_kind, number_table, read_fields, write_fields

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
        Return a joint or a counting game in Fractions. Numbers in a `.json` are then what is written there: 0.1 is
        1/10, and "1/3" is one third; a float in a `.npz` is the rational that it stands for.
    """
    fields = read_fields(path, exact=exact)
    check_kind(path, fields, kind="cmpg-game")
    forms = _forms()
    form = fields.get("form")
    if not isinstance(form, str) or form not in forms:
        raise FileError(f"{path}: its form is {reprlib.repr(form)}; one of {', '.join(forms)} is required.")
    _, _, from_fields = forms[form]
    body = {name: value for name, value in fields.items() if name not in ("format", "version", "form")}
    try:
        return cast(Game, from_fields(body, exact=exact))
    except KeyError as missing:
        raise FileError(f"{path}: the field {missing} is missing; a {form} game needs it.") from None
    except CMPGError as problem:
        raise type(problem)(f"{path}: {problem}") from None


Form = tuple[type, Callable[[Any], Fields], Callable[..., Any]]


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


def _joint_from_fields(fields: Fields, *, exact: bool) -> JointGame:
    tables = ("initial", "rewards", "costs", "thresholds")
    known = (*tables, "horizon", "discount", "transition", *SPARSE, *JOINT_NAMES)
    refuse_strange_fields(fields, known, form="a joint game")
    given = {"costs": [], "thresholds": [], **fields}
    read: Fields = {name: number_table(name, given[name], exact=exact) for name in tables}
    names = read_names(fields, JOINT_NAMES)
    if any(name in fields for name in SPARSE):
        transition = _sparse_transition(fields, read["rewards"].shape, exact=exact)
    else:
        transition = number_table("transition", fields["transition"], exact=exact)
    return JointGame(transition=transition, **read, **length_of_time(fields), **names)


def _sparse_transition(fields: Fields, shape: tuple[int, ...], *, exact: bool) -> Any:
    if len(shape) < 4:
        raise GameError(f"rewards has shape {list(shape)}; [n, H or 1, S, A_1, …, A_n] is required.")
    stacked = checked_csr("transition", [fields[name] for name in SPARSE], columns=shape[2])
    steps = step_matrices("transition", stacked, math.prod(shape[2:]))
    return dense_table(stacked, fields[SPARSE[2]], shape=(*shape[2:], shape[2])) if exact else steps
