"""Random CMDPs, and CMDPs behind a door, for the paper's Algorithms 3 and 4."""

from dataclasses import replace

import numpy as np

from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.paper.learning import behind_a_door


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
    return behind_a_door(cmdp, np.random.default_rng(0), **options)
