"""The file form "counting": a shared state, and tables over counts and classes of counts.

Fields: `horizon` (or `discount`), `initial` [S], `rewards` [H or 1, S, A, n+1], `transition` [H or 1, S, C, S], `costs`
[k, H or 1, S, C], `thresholds` [k]; `boundaries` [C−1] of the largest count, or nothing where every count vector is a
class of its own (in lexicographic order); where they are not zero, `private_rewards` [n, H or 1, S, A] and
`class_rewards` [H or 1, S, A, C]. A game without constraints may leave out `costs` and `thresholds`. Optional names:
`agents`, `states`, `actions`, `constraints`.
"""

from __future__ import annotations

import numpy as np

from cmpg.checks import GameError
from cmpg.games.count_classes import CountClasses, EveryCount, LargestCount
from cmpg.games.counting import CountingGame
from cmpg.games.fields import length_of_time, read_names, refuse_strange_fields
from cmpg.storage import Fields, number_table

REQUIRED = ("initial", "rewards", "transition", "costs", "thresholds")
OPTIONAL = ("private_rewards", "class_rewards")
NAMES = ("agents", "states", "actions", "constraints")


def counting_fields(game: CountingGame) -> Fields:
    """Return the fields of a counting game."""
    fields: Fields = {name: getattr(game, name) for name in REQUIRED}
    fields |= {"horizon": game.horizon} if game.discount is None else {"discount": game.discount}
    fields |= {name: getattr(game, name) for name in OPTIONAL if getattr(game, name).any()}
    if isinstance(game.classes, LargestCount):
        fields["boundaries"] = np.array(game.classes.boundaries, dtype=np.int64)
    return fields | {name: getattr(game, name) for name in NAMES if getattr(game, name) is not None}


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
