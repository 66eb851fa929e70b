"""From a game, a joint policy and multipliers to the plain tables that `cmpg.proof` checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmpg.errors import UnsupportedError
from cmpg.games.game import Game, binds_of
from cmpg.games.rationals import as_given
from cmpg.policy import JointPolicy
from cmpg.proof.claim import Claim
from cmpg.proof.infeasible import InfeasibilityClaim
from cmpg.proof.verdict import costs_proved


def has_tables(game: Game) -> bool:
    """Whether a game can state its tables; a class of a user's own may have none, and is judged by its CMDPs."""
    return hasattr(type(game), "claim_tables")


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
    if not has_tables(game):
        raise UnsupportedError(
            type(game).__name__, "cannot state its tables", "Use `certify`, which uses its positions."
        )
    tables: Any = game.claim_tables()  # type: ignore[attr-defined]
    return Claim(
        tables=tables,
        horizon=game.horizon,
        discount=as_given(game, "discount"),
        thresholds=as_given(game, "thresholds"),
        binds=np.asarray(binds_of(game)),
        policy=policy.tables,
        multipliers=np.asarray(multipliers),
    )


def infeasibility_claim(game: Game, multipliers: Any) -> InfeasibilityClaim:
    """Return the claim that no policy of a game with a horizon is feasible, as multipliers [k] prove it."""
    if not has_tables(game) or game.horizon is None:
        raise UnsupportedError(type(game).__name__, "has no such claim as tables", "A finite horizon is needed.")
    tables: Any = game.claim_tables()  # type: ignore[attr-defined]
    return InfeasibilityClaim(tables, game.horizon, as_given(game, "thresholds"), np.asarray(multipliers))


def meets_thresholds_exactly(game: Game, policy: JointPolicy) -> bool:
    """Whether the policy is proved, in rationals, to meet every threshold; False if that takes too long."""
    return has_tables(game) and costs_proved(claim_of(game, policy, np.zeros((game.num_agents, len(game.thresholds)))))
