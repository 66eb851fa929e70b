"""From a game, a joint policy and multipliers to the plain tables that `cmpg.proof` checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmpg.errors import UnsupportedError
from cmpg.games.contract import BindsSome, Game
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
    binds = game.binds if isinstance(game, BindsSome) else np.ones((game.num_agents, len(game.thresholds)), dtype=bool)
    form: Any = game.game if isinstance(game, BindsSome) else game
    if not hasattr(type(form), "claim_tables"):
        raise UnsupportedError(
            type(form).__name__, "cannot state its tables", "Use `certify`, which asks its positions."
        )
    return Claim(
        tables=form.claim_tables(),
        horizon=game.horizon,
        discount=game.discount,
        thresholds=game.thresholds,
        binds=np.asarray(binds, dtype=bool),
        policy=policy.tables,
        multipliers=np.asarray(multipliers),
    )
