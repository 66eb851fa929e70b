"""Game files: `format` = "cmpg-game", `version` = 1, and a `form`, in either container.

Joint: `horizon` (or `discount`), `initial` [S], `transition` [H or 1, S, *A, S], `rewards` [n, H or 1, S, *A], `costs`
[k, H or 1, S, *A], `thresholds` [k]. A sparse transition is `transition_indptr`, `transition_indices`,
`transition_data`, the CSR arrays of one matrix with rows in the order (step, state, *actions).

Counting: `horizon` (or `discount`), `initial` [S], `rewards` [H or 1, S, A, n + 1], `transition` [H or 1, S, C, S],
`costs` [k, H or 1, S, C], `thresholds` [k]; `boundaries` [C − 1] of the largest count, or nothing where every count
vector is a class of its own, in lexicographic order; where they are not zero, `private_rewards` [n, H or 1, S, A] and
`class_rewards` [H or 1, S, A, C].

Local: see `local_games.py`.

A game without constraints may leave out `costs` and `thresholds`. Optional names: `agents` [n], `states` [S], `actions`
(n lists), `constraints` [k]. Every form is a pair of functions, game → fields and fields → game; which one a game has
is decided here, and nowhere else.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from cmpg.errors import CMPGError, FileError, GameError
from cmpg.files.containers import Fields, number_table, read_fields, write_fields
from cmpg.files.fields import (
    checked_csr,
    dense_table,
    length_of_time,
    read_names,
    refuse_strange_fields,
    step_matrices,
    written_names,
)
from cmpg.games.contract import Game
from cmpg.games.counting.classes import CountClasses, EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.joint.game import JointGame

TABLES = ("initial", "rewards", "costs", "thresholds")
TIME = ("horizon", "discount")
SPARSE = ("transition_indptr", "transition_indices", "transition_data")
REWARDS = ("private_rewards", "class_rewards")

NAMES = {"agents": "agent_names", "states": "state_names", "actions": "action_names", "constraints": "constraint_names"}
"""Fields of a file, and what they are called in a game."""


def save_game(game: Game, path: str | Path) -> None:
    """Write a game file, `.npz` or `.json`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> with TemporaryDirectory() as folder:
    ...     save_game(counter_example(), f"{folder}/game.npz")
    ...     load_game(f"{folder}/game.npz").thresholds
    array([0.5])
    """
    if form_of(game) is None:
        raise FileError(f"{path}: a {type(game).__name__} has no file form; joint, local and counting games have one.")
    write_fields(path, fields_of(game))


def load_game(path: str | Path, *, exact: bool = False) -> Game:
    """Read a game file.

    Parameters
    ----------
    path
        A `.json` or `.npz` file.
    exact
        Return a joint or a counting game in Fractions. Numbers in a `.json` are then what is written there: 0.1 is
        1/10, and "1/3" is one third; a float in a `.npz` is the rational that it stands for.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> with TemporaryDirectory() as folder:
    ...     save_game(counter_example(), f"{folder}/game.json")
    ...     load_game(f"{folder}/game.json", exact=True).thresholds
    array([Fraction(1, 2)], dtype=object)
    """
    fields = read_fields(path, kind="cmpg-game", exact=exact)
    forms, form = _forms(), fields.get("form")
    if not isinstance(form, str) or form not in forms:
        raise FileError(f"{path}: its form is {reprlib.repr(form)}; one of {', '.join(forms)} is required.")
    body = {name: value for name, value in fields.items() if name not in ("format", "version", "form")}
    try:
        return cast(Game, forms[form].from_fields(body, exact=exact))
    except KeyError as missing:
        raise FileError(f"{path}: the field {missing} is missing; a {form} game needs it.") from None
    except CMPGError as problem:
        problem.args = (f"{path}: {problem}",)
        raise


def form_of(game: Game) -> str | None:
    """Return the form in which a game is stored: "joint", "local" or "counting"; None for a class of a user's own."""
    return next((name for name, form in _forms().items() if isinstance(game, form.kind)), None)


def fields_of(game: Game) -> Fields:
    """Return all fields of the file of a game that has a form."""
    form = form_of(game)
    assert form is not None
    return {"format": "cmpg-game", "version": 1, "form": form} | _forms()[form].to_fields(game)


class Form(NamedTuple):
    """How one kind of game is written and read."""

    kind: type
    to_fields: Callable[[Any], Fields]
    from_fields: Callable[..., Any]


def _forms() -> dict[str, Form]:
    from cmpg.files.local_games import local_fields, local_from_fields
    from cmpg.games.local.game import LocalGame

    return {
        "joint": Form(JointGame, _joint_fields, _joint_from_fields),
        "local": Form(LocalGame, local_fields, local_from_fields),
        "counting": Form(CountingGame, _counting_fields, _counting_from_fields),
    }


def _joint_fields(game: JointGame) -> Fields:
    if game.is_sparse:
        stacked = sp.vstack(game.transition, format="csr")
        transition = dict(zip(SPARSE, (stacked.indptr, stacked.indices, stacked.data), strict=True))
    else:
        transition = {"transition": game.transition}
    return _common_fields(game) | transition


def _joint_from_fields(fields: Fields, *, exact: bool) -> JointGame:
    refuse_strange_fields(fields, (*TABLES, *NAMES, *TIME, "transition", *SPARSE), form="a joint game")
    read = _common_from_fields(fields, exact=exact)
    if any(name in fields for name in SPARSE):
        transition = _sparse_transition(fields, read["rewards"].shape, exact=exact)
    else:
        transition = number_table("transition", fields["transition"], exact=exact)
    return JointGame(transition=transition, **read)


def _sparse_transition(fields: Fields, shape: tuple[int, ...], *, exact: bool) -> Any:
    if len(shape) < 4:
        raise GameError(f"rewards has shape {list(shape)}; [n, H or 1, S, A_1, …, A_n] is required.")
    stacked = checked_csr("transition", [fields[name] for name in SPARSE], columns=shape[2])
    steps = step_matrices("transition", stacked, math.prod(shape[2:]))
    return dense_table(stacked, fields[SPARSE[2]], shape=(*shape[2:], shape[2])) if exact else steps


def _counting_fields(game: CountingGame) -> Fields:
    fields = _common_fields(game) | {"transition": game.transition}
    fields |= {name: getattr(game, name) for name in REWARDS if getattr(game, name).any()}
    if isinstance(game.classes, LargestCount):
        fields["boundaries"] = np.array(game.classes.boundaries, dtype=np.int64)
    return fields


def _counting_from_fields(fields: Fields, *, exact: bool) -> CountingGame:
    known = (*TABLES, *NAMES, *TIME, "transition", *REWARDS, "boundaries")
    refuse_strange_fields(fields, known, form="a counting game")
    given = ("transition", *(name for name in REWARDS if name in fields))
    tables: Fields = {name: number_table(name, fields[name], exact=exact) for name in given}
    return CountingGame(classes=_classes(fields), **tables, **_common_from_fields(fields, exact=exact))


def _classes(fields: Fields) -> CountClasses:
    if "boundaries" not in fields:
        return EveryCount()
    boundaries = number_table("boundaries", fields["boundaries"])
    if boundaries.ndim != 1:
        raise GameError(f"boundaries has shape {list(boundaries.shape)}; a plain list of numbers is required.")
    return LargestCount(tuple(boundaries.tolist()))


def _common_fields(game: JointGame | CountingGame) -> Fields:
    """Return what joint and counting games have in common."""
    fields: Fields = {name: getattr(game, name) for name in TABLES}
    fields |= {"horizon": game.horizon} if game.discount is None else {"discount": game.discount}
    return fields | written_names(game, NAMES, by_agent=("actions",))


def _common_from_fields(fields: Fields, *, exact: bool) -> Fields:
    given = {"costs": [], "thresholds": [], **fields}
    tables = {name: number_table(name, given[name], exact=exact) for name in TABLES}
    return tables | length_of_time(fields) | read_names(fields, NAMES, by_agent=("actions",))
