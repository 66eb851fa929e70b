"""Small days in numbers that are exact in binary, so that fractions can follow them."""

import numpy as np

import cmpg


def small_day(seed, *, horizon=3, states=3, threshold=0.5):
    """Two agents that need up to two units; each use succeeds with probability 1/2, 3/4 or 1, and loads of 2 cost 1."""
    rng = np.random.default_rng(seed)
    agents = []
    for _ in range(2):
        success = rng.choice([0.5, 0.75, 1.0])
        transition = np.zeros((1, states, 2, states))
        for s in range(states):
            transition[0, s, 0, s] = 1
            transition[0, s, 1, max(s - 1, 0)] += success
            transition[0, s, 1, s] += 1 - success
        reward = np.zeros((horizon, states, 2))
        reward[:, 1:, 1] = rng.integers(0, 8, (horizon, 1)) / 8
        reward[-1] -= np.arange(states)[:, None]
        uses = np.zeros((1, states, 2, 1))
        uses[0, 1:, 1, 0] = 1
        costs = np.zeros((1, 1, states, 2))
        costs[0, 0, 1:, 1] = rng.integers(0, 2) / 8
        initial = np.zeros(states)
        initial[1:] = 1 / (states - 1)
        agents.append(cmpg.LocalAgent(transition=transition, reward=reward, uses=uses, initial=initial, costs=costs))
    return cmpg.LocalGame(
        agents=tuple(agents),
        delay=[[[0, 0, 0.25]]],
        load_costs=[[[[0, 0, 1]]]],
        thresholds=[threshold],
        horizon=horizon,
    )


def small_joint_day(seed, *, horizon=3):
    """Two agents, two joint states, costs and moves in eighths."""
    rng = np.random.default_rng(seed)
    eighths = rng.integers(0, 9, (horizon, 2, 2, 2)) / 8
    transition = np.stack([eighths, 1 - eighths], axis=-1)
    reward = rng.integers(0, 8, (horizon, 2, 2, 2)) / 8
    costs = rng.integers(0, 4, (1, horizon, 2, 2, 2)) / 8
    costs[..., 0, 0] = 0
    return cmpg.JointGame(
        transition=transition,
        rewards=np.stack([reward, reward]),
        costs=costs,
        thresholds=[0.25],
        initial=[0.5, 0.5],
        horizon=horizon,
    )
