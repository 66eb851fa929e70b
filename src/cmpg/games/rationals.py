"""Rationals that a game was given: a game computes in floats, and a proof reads what was given.

A table that is given as Fractions is rounded to floats, and is kept beside them, by its name, in the field `rationals`
of the game. Searches see the floats alone. A claim about a game that has this field, if only an empty one, is judged
in rationals (`cmpg.proof.exact`); every other number is read as the rational that its float is.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import exact_distributions, to_exact, to_floats
from cmpg.errors import UnsupportedError

if TYPE_CHECKING:
    from cmpg.games.game import Game

PROBABILITIES = ("transition", "initial")

Rationals = Mapping[str, Any]
"""Tables of Fractions by name, and a discount."""


def is_exact(game: Any) -> bool:
    """Whether claims about a game are judged in rationals."""
    return getattr(game, "rationals", None) is not None


def in_rationals(game: Game) -> Game:
    """Return the same game, claims about which are judged in rationals, or raise UnsupportedError."""
    if not hasattr(game, "exact"):
        advice = "Leave `exact` out, and rounding is bounded instead."
        raise UnsupportedError(type(game).__name__, "has no exact mode", advice)
    exact: Game = game.exact()
    return exact


def as_given(game: Any, name: str) -> Any:
    """Return a table as a proof reads it: in floats, or, if the game is exact, in Fractions."""
    table = getattr(game, name)
    if not is_exact(game):
        return table
    if name in game.rationals:
        return game.rationals[name]
    if isinstance(table, np.ndarray):
        return to_exact(table)
    return Fraction(table) if isinstance(table, float) else table


def rounded_tables(tables: Mapping[str, Any], kept: Rationals | None) -> dict[str, Any]:
    """Return the tables of a game in floats, and the rationals that they were rounded from under "rationals".

    Parameters
    ----------
    tables
        All tables of the game by name, in floats or Fractions. In an exact game, each row of probabilities is divided
        by its exact sum.
    kept
        The rationals of the game from which this one was made. Those of a table that has changed since are dropped.
    """
    given = {name: table for name, table in tables.items() if _holds_rationals(table)}
    if kept is None and not any(isinstance(each, np.ndarray) for each in given.values()):
        # A discount alone does not make a game exact.
        return {name: _rounded(table) for name, table in tables.items()} | {"rationals": None}
    same = {name: each for name, each in (kept or {}).items() if _is_rounded_from(each, tables[name])}
    rows = {name: exact_distributions(tables[name]) for name in PROBABILITIES if name not in same}
    rationals = same | given | rows
    return {name: _rounded(rationals.get(name, table)) for name, table in tables.items()} | {"rationals": rationals}


def _is_rounded_from(rational: Any, table: Any) -> bool:
    return not _holds_rationals(table) and np.array_equal(_rounded(rational), table)


def _holds_rationals(table: Any) -> bool:
    return isinstance(table, Fraction) or (isinstance(table, np.ndarray) and table.dtype == object)


def _rounded(table: Any) -> Any:
    if isinstance(table, np.ndarray):
        return to_floats(table)
    return float(table) if isinstance(table, Fraction) else table
