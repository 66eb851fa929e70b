"""Game files: one set of names for both containers.

A joint game: `format` = "cmpg-game", `version` = 1, `form` = "joint", `horizon` (or `discount`), `initial` [S],
`transition` [H or 1, S, *A, S], `rewards` [n, H or 1, S, *A], `costs` [k, H or 1, S, *A], `thresholds` [k]; optional
names `agents`, `states`, `actions`, `constraints`. A sparse transition is `transition_indptr`, `transition_indices`,
`transition_data`, the CSR arrays of one matrix with rows in the order (step, state, *actions). Other forms have their
own names, in the file that defines the form; every form is a pair of functions, game → fields and fields → game.

Reading single fields of a game file: whole numbers, tables, names, CSR matrices.

Every reader returns what it promises or raises GameError with the name of the field, whatever the file holds there.

The file form "counting": a shared state, and tables over counts and classes of counts.

Fields: `horizon` (or `discount`), `initial` [S], `rewards` [H or 1, S, A, n+1], `transition` [H or 1, S, C, S], `costs`
[k, H or 1, S, C], `thresholds` [k]; `boundaries` [C−1] of the largest count, or nothing where every count vector is a
class of its own (in lexicographic order); where they are not zero, `private_rewards` [n, H or 1, S, A] and
`class_rewards` [H or 1, S, A, C]. A game without constraints may leave out `costs` and `thresholds`. Optional names:
`agents`, `states`, `actions`, `constraints`.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import CMPGError, FileError, GameError
from cmpg.files.containers import Fields, check_kind, number_table, read_fields, write_fields
from cmpg.games.contract import Game
from cmpg.games.counting.classes import CountClasses, EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.joint.game import JointGame

NAMES = {"agents": "agent_names", "states": "state_names", "actions": "action_names", "constraints": "constraint_names"}
"""Fields of a file, and what they are called in a game."""

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
    from cmpg.files.local_games import local_fields, local_from_fields
    from cmpg.games.counting.game import CountingGame
    from cmpg.games.local.game import LocalGame

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
    named = written_names(game, NAMES)
    if "actions" in named and len({len(each) for each in named["actions"]}) > 1:
        named["actions"] = _padded(named["actions"])
    return fields | named


def _padded(actions: tuple[tuple[str, ...], ...]) -> list[list[str]]:
    longest = max(len(each) for each in actions)
    return [[*each, *[""] * (longest - len(each))] for each in actions]


def _joint_from_fields(fields: Fields, *, exact: bool) -> JointGame:
    tables = ("initial", "rewards", "costs", "thresholds")
    known = (*tables, "horizon", "discount", "transition", *SPARSE, *NAMES)
    refuse_strange_fields(fields, known, form="a joint game")
    given = {"costs": [], "thresholds": [], **fields}
    read: Fields = {name: number_table(name, given[name], exact=exact) for name in tables}
    names = read_names(fields, NAMES)
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


LARGEST = 2**53
"""Whole numbers beyond this are no longer told apart as floats, and count nothing that could be stored."""


def refuse_strange_fields(fields: Fields, known: Iterable[str], *, form: str) -> None:
    """Raise where a file has a field that its form does not know: a misspelt name must not pass as a default."""
    strange = sorted(set(fields) - set(known))
    if strange:
        listed = ", ".join(repr(name) for name in strange[:5])
        raise FileError(f"unknown field {listed}; {form} has no such field. Remove it, or correct its name.")


def whole_number(name: str, value: Any) -> int:
    """Return a field as an int, or raise."""
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    if not is_number or not abs(value) < LARGEST or int(value) != value:
        shown = str(value) if isinstance(value, Fraction) else value
        raise GameError(f"{name} is {reprlib.repr(shown)}; a whole number is required.")
    return int(value)


def whole_numbers(name: str, value: Any) -> IntArray:
    """Return a field as a list of ints: [m], or raise."""
    table = number_table(name, value)
    if table.ndim != 1:
        raise GameError(f"{name} has shape {list(table.shape)}; a plain list of whole numbers is required.")
    wrong = (table != np.floor(table)) | (np.abs(table) > LARGEST)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise GameError(f"{name}[{place}] is {table[place]:g}; a whole number is required.")
    return table.astype(np.int64)


def length_of_time(fields: Fields) -> dict[str, Any]:
    """Return `horizon` as an int and `discount` as a float, each None where it is left out."""
    horizon, discount = fields.get("horizon"), fields.get("discount")
    if discount is not None:
        discount = number_table("discount", discount)
        if discount.ndim:
            raise GameError(f"discount has shape {list(discount.shape)}; a single number is required.")
    return {
        "horizon": None if horizon is None else whole_number("horizon", horizon),
        "discount": None if discount is None else float(discount),
    }


def read_names(fields: Fields, known: Mapping[str, str]) -> Fields:
    """Return the names that a file has, under what they are called in a game; `actions` are listed agent by agent."""
    readers = {name: names_by_agent if name == "actions" else names_of for name in known if name in fields}
    return {known[name]: read(name, fields[name]) for name, read in readers.items()}


def written_names(game: Any, known: Mapping[str, str]) -> Fields:
    """Return the names that a game has, under what they are called in a file."""
    named = {field: getattr(game, name) for field, name in known.items()}
    return {field: names for field, names in named.items() if names is not None}


def names_of(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of names as a tuple, or raise."""
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(rows, list) or not all(isinstance(each, str) for each in rows):
        raise GameError(f"{name} is {reprlib.repr(rows)}; a list of names is required.")
    return tuple(rows)


def names_by_agent(name: str, value: Any) -> tuple[tuple[str, ...], ...]:
    """Return one list of names per agent; the empty names that make the lists equally long are dropped."""
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(rows, list):
        raise GameError(f"{name} is {reprlib.repr(rows)}; one list of names for each agent is required.")
    listed = (names_of(f"{name}[{i}]", row) for i, row in enumerate(rows))
    return tuple(tuple(each for each in row if each) for row in listed)


def checked_csr(name: str, arrays: list[Any], *, columns: int) -> sp.csr_array:
    """Build a CSR matrix from `indptr`, `indices` and `data`, or raise where they do not fit together."""
    indptr, indices = whole_numbers(f"{name}_indptr", arrays[0]), whole_numbers(f"{name}_indices", arrays[1])
    data = np.array(number_table(f"{name}_data", arrays[2]))
    fits = (
        data.ndim == 1
        and len(indptr) > 1
        and indptr[0] == 0
        and indptr[-1] == len(indices) == len(data)
        and bool((np.diff(indptr) >= 0).all())
    )
    if not fits:
        raise GameError(f"{name}: its indptr, indices and data do not fit together as a CSR matrix.")
    if len(indices) and not (indices.min() >= 0 and indices.max() < columns):
        raise GameError(f"{name}_indices has entries outside 0..{columns - 1}.")
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, columns))


def dense_table(matrix: sp.csr_array, data: Any, *, shape: tuple[int, ...]) -> FloatArray:
    """Write the entries of a CSR matrix, read as Fractions, into a dense table [H or 1, …]."""
    exact = number_table("transition_data", data, exact=True)
    table = np.full(matrix.shape, Fraction(0), dtype=object)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.add.at(table, (rows, matrix.indices), exact)
    return table.reshape(-1, *shape)


def step_matrices(name: str, stacked: sp.csr_array, rows: int) -> tuple[sp.csr_array, ...]:
    """Cut a stack of step matrices into steps of `rows` rows."""
    if rows == 0 or stacked.shape[0] % rows:
        raise GameError(
            f"{name}_indptr has {stacked.shape[0]} rows; a multiple of {rows} is required: one row for each state and "
            "action, step after step."
        )
    return tuple(stacked[start : start + rows] for start in range(0, stacked.shape[0], rows))


REQUIRED = ("initial", "rewards", "transition", "costs", "thresholds")
OPTIONAL = ("private_rewards", "class_rewards")


def counting_fields(game: CountingGame) -> Fields:
    """Return the fields of a counting game."""
    fields: Fields = {name: getattr(game, name) for name in REQUIRED}
    fields |= {"horizon": game.horizon} if game.discount is None else {"discount": game.discount}
    fields |= {name: getattr(game, name) for name in OPTIONAL if getattr(game, name).any()}
    if isinstance(game.classes, LargestCount):
        fields["boundaries"] = np.array(game.classes.boundaries, dtype=np.int64)
    return fields | written_names(game, NAMES)


def counting_from_fields(fields: Fields, *, exact: bool) -> CountingGame:
    """Build a counting game from its fields."""
    known = (*REQUIRED, *OPTIONAL, *NAMES, "horizon", "discount", "boundaries")
    refuse_strange_fields(fields, known, form="a counting game")
    given = {"costs": [], "thresholds": [], **fields}
    tables: Fields = {name: number_table(name, given[name], exact=exact) for name in REQUIRED}
    tables |= {name: number_table(name, fields[name], exact=exact) for name in OPTIONAL if name in fields}
    names = read_names(fields, NAMES)
    return CountingGame(classes=_classes(fields), **tables, **length_of_time(fields), **names)


def _classes(fields: Fields) -> CountClasses:
    if "boundaries" not in fields:
        return EveryCount()
    boundaries = number_table("boundaries", fields["boundaries"])
    if boundaries.ndim != 1:
        raise GameError(f"boundaries has shape {list(boundaries.shape)}; a plain list of numbers is required.")
    return LargestCount(tuple(boundaries.tolist()))
