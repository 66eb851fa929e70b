"""The games of the experiments that are not scenarios of the library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cmpg.cmdp.planning import plan
from cmpg.games.counting.game import CountingGame
from cmpg.games.joint.game import JointGame
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios.paper import counting_congestion_game
from cmpg.scenarios.spectrum_sharing import spectrum

RANDOM_GAME_SEED = 11


def random_game() -> JointGame:
    """Return a game drawn once and for all: 2 agents, 4 states, 2 actions each, 3 steps, one common reward.

    Dirichlet rows, a reward uniform in [0, 1], and a cost of 0.7 times the reward and 0.3 times noise, so that what
    pays is expensive; the threshold is 0.5 above the least cost. A common reward makes it a Markov potential game.
    """
    rng = np.random.default_rng(RANDOM_GAME_SEED)
    states, actions, horizon = 4, (2, 2), 3
    common, noise = rng.random((2, 1, states, *actions))
    game = JointGame(
        transition=rng.dirichlet(np.ones(states), size=(1, states, *actions)),
        rewards=np.stack([common, common]),
        costs=np.stack([0.7 * common + 0.3 * noise]),
        thresholds=np.zeros(1),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    least = float(plan(game.joint_cmdp(), np.ones(1), reward_weight=0.0).costs[0])
    return JointGame(
        transition=game.transition,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=np.array([least + 0.5]),
        initial=game.initial,
        horizon=horizon,
    )


def random_local_game() -> LocalGame:
    """Return a local game drawn once and for all: 3 agents of two kinds, 3 states, 2 actions, 3 steps, 2 resources.

    Dirichlet rows, uniform rewards, a delay that grows with the load, and a cost of 1 for each pair that meets; the
    threshold is half of what it costs if all agents play at random.
    """
    rng = np.random.default_rng(RANDOM_GAME_SEED)
    kernels = [rng.dirichlet(np.ones(3), size=(1, 3, 2)) for _ in range(2)]
    uses = np.zeros((1, 3, 2, 2))
    uses[0, :, 0, 0] = uses[0, :2, 1, 1] = 1
    agents = [
        LocalAgent(transition=kernels[i % 2], reward=rng.random((1, 3, 2)), uses=uses, initial=[1.0, 0.0, 0.0])
        for i in range(3)
    ]
    game = LocalGame(
        agents=agents,
        delay=[[[0, 0, 0.2, 0.4]] * 2],
        load_costs=[[[[0, 0, 1, 3]] * 2]],
        thresholds=[1.0],
        horizon=3,
    )
    return game.with_thresholds(game.at(game.uniform_policy()).costs / 2)


def discounted_spectrum() -> JointGame:
    """Return `spectrum` with two users, for ever, with a discount of 0.6."""
    return replace(spectrum(num_agents=2), horizon=None, discount=0.6)


def discounted_congestion() -> CountingGame:
    """Return the congestion game with four agents, by counts, for ever, with a discount of 0.5."""
    return replace(counting_congestion_game(num_agents=4), horizon=None, discount=0.5)


def discounted_local() -> DiscountedLocalGame:
    """Return a local game drawn once and for all, for ever, with a discount of 0.6: 3 agents of two kinds, 3 states, 2
    actions, 2 resources, private costs, and a threshold of 90 % of what it costs if all agents play at random.
    """
    rng = np.random.default_rng(RANDOM_GAME_SEED)
    kernels = [rng.dirichlet(np.ones(3), size=(1, 3, 2)) for _ in range(2)]
    uses = np.zeros((1, 3, 2, 2))
    uses[0, :, 0, 0] = uses[0, :2, 1, 1] = 1
    agents = [
        LocalAgent(
            transition=kernels[i % 2],
            reward=rng.random((1, 3, 2)),
            uses=uses,
            initial=[1.0, 0.0, 0.0],
            costs=rng.random((1, 1, 3, 2)) / 3,
        )
        for i in range(3)
    ]
    delay, costs = [[[0, 0, 0.2, 0.4]] * 2], [[[[0, 0, 1, 3]] * 2]]
    game = DiscountedLocalGame(agents=agents, delay=delay, load_costs=costs, thresholds=[1.0], discount=0.6)
    first = game.truncated(80)
    return game.with_thresholds(0.9 * first.at(first.uniform_policy()).costs)


def rare_catastrophe(*, chance: float = 1e-3, threshold: float = 0.002, horizon: int = 3) -> JointGame:
    """Return a game in which boldness pays nearly always: 2 agents, careful or bold, with one common reward.

    In `fine` each bold agent earns 0.4 more for both, and breaks everything with the given chance, independently of the
    other. In `broken`, which is for ever, nothing is earned, and every step costs 1.
    """
    bold = np.indices((2, 2)).sum(axis=0)
    breaks = 1.0 - (1.0 - chance) ** bold
    transition = np.zeros((1, 2, 2, 2, 2))
    transition[0, 0, ..., 0], transition[0, 0, ..., 1] = 1.0 - breaks, breaks
    transition[0, 1, ..., 1] = 1.0
    common = np.zeros((1, 2, 2, 2))
    common[0, 0] = 0.2 + 0.4 * bold
    costs = np.zeros((1, 1, 2, 2, 2))
    costs[0, 0, 1] = 1.0
    return JointGame(
        transition=transition,
        rewards=np.stack([common, common]),
        costs=costs,
        thresholds=np.array([threshold]),
        initial=np.array([1.0, 0.0]),
        horizon=horizon,
        agent_names=("agent 1", "agent 2"),
        state_names=("fine", "broken"),
        action_names=(("careful", "bold"),) * 2,
        constraint_names=("steps in broken",),
    )
