"""Certificates for policies that come without multipliers: best responses propose the prices, and the certificate
decides.
"""

from __future__ import annotations

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.equilibrium.certificate import Certificate, certify
from cmpg.errors import InfeasibleError
from cmpg.games.contract import Game
from cmpg.policy import JointPolicy


def proposed_multipliers(game: Game, policy: JointPolicy) -> FloatArray:
    """Return the prices at which each agent's best response trades: [n, k]; zeros where it has no feasible one."""
    position = game.at(policy)
    prices = np.zeros((game.num_agents, len(game.thresholds)))
    for agent in range(game.num_agents):
        try:
            prices[agent] = Exact()(position.induced_cmdp(agent)).multipliers
        except InfeasibleError:
            continue  # no deviation is feasible, so any price is as good: the policy itself is not feasible either
    return prices


def certify_with_best_responses(game: Game, policy: JointPolicy) -> Certificate:
    """Judge a policy as sharply as possible: the gains are those of exact best responses, up to rounding."""
    return certify(game, policy, proposed_multipliers(game, policy))
