"""From a game, a joint policy and multipliers to the plain tables that `cmpg.proof` checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmpg.errors import UnsupportedError
from cmpg.games.contract import Game, binds_of
from cmpg.policy import JointPolicy
from cmpg.proof.claim import Claim


def claim_of(game: Game, policy: JointPolicy, multipliers: Any) -> Claim:
    """Return a Nash claim as plain tables.

    Parameters
    ----------
    game
        A joint, local or counting game.
    policy
        One table per agent.
    multipliers : [n, k]
        λ; infinite where the proof is by support.

    Raises
    ------
    UnsupportedError
        The game cannot state its tables.
    """
    if not hasattr(type(game), "claim_tables"):
        raise UnsupportedError(
            type(game).__name__, "cannot state its tables", "Use `certify`, which asks its positions."
        )
    tables: Any = game.claim_tables()  # type: ignore[attr-defined]
    return Claim(
        tables=tables,
        horizon=game.horizon,
        discount=game.discount,
        thresholds=game.thresholds,
        binds=np.asarray(binds_of(game)),
        policy=policy.tables,
        multipliers=np.asarray(multipliers),
    )
