"""The file form "counting": a shared state, and tables over counts and classes of counts.

Fields: `horizon` (or `discount`), `initial` [S], `rewards` [H or 1, S, A, n+1], `transition` [H or 1, S, C, S], `costs`
[k, H or 1, S, C], `thresholds` [k]; `boundaries` [C−1] of the largest count, or nothing where every count vector is a
class of its own (in lexicographic order); where they are not zero, `private_rewards` [n, H or 1, S, A] and
`class_rewards` [H or 1, S, A, C]. Optional names: `agents`, `states`, `actions`, `constraints`.
"""

from __future__ import annotations

import numpy as np

from cmpg.checks import FileError
from cmpg.games.count_classes import EveryCount, LargestCount
from cmpg.games.counting import CountingGame
from cmpg.games.fields import names_of, whole_number
from cmpg.storage import Fields

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


def counting_from_fields(fields: Fields) -> CountingGame:
    """Build a counting game from its fields; exact numbers are rounded to floats."""
    known = {*REQUIRED, *OPTIONAL, *NAMES, "horizon", "discount", "boundaries"}
    strange = set(fields) - known
    if strange:
        raise FileError(f"unknown field {', '.join(sorted(strange))}; a counting game has {', '.join(sorted(known))}.")
    horizon, discount, boundaries = (fields.get(name) for name in ("horizon", "discount", "boundaries"))
    game = CountingGame(
        classes=EveryCount() if boundaries is None else LargestCount(tuple(boundaries)),
        horizon=None if horizon is None else whole_number("horizon", horizon),
        discount=None if discount is None else float(discount),
        **{name: fields[name] for name in REQUIRED},
        **{name: fields[name] for name in OPTIONAL if name in fields},
        **{name: names_of(fields[name]) for name in NAMES if name in fields},
    )
    return game.floats()
