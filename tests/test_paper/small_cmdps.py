"""Random CMDPs, and CMDPs behind a door, for the paper's Algorithms 3 and 4."""

from dataclasses import replace

import numpy as np

from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.games.joint.game import JointGame
from cmpg.learning.problem import InducedProblem
from cmpg.learning.simulator import GameSimulator


def random_cmdp(seed, *, states=4, actions=3, horizon=3, share=0.4, constraints=1):
    """The threshold is this share of the way from the least cost to that of the best policy."""
    rng = np.random.default_rng(seed)
    shape = (horizon, states, actions)
    cmdp = CMDP(
        transition=rng.dirichlet(np.full(states, 0.5), size=shape),
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)),
        thresholds=np.zeros(constraints),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    least = plan(cmdp, np.ones(constraints), reward_weight=0.0).costs
    return replace(cmdp, thresholds=least + share * (plan(cmdp, np.zeros(constraints)).costs - least))


def alone(cmdp, **options):
    game = JointGame(
        transition=cmdp.transition,
        rewards=cmdp.reward[None],
        costs=cmdp.costs,
        thresholds=cmdp.thresholds,
        initial=cmdp.initial,
        horizon=cmdp.horizon,
    )
    return InducedProblem(GameSimulator(game, rng=np.random.default_rng(0), **options), 0, game.uniform_policy())
