"""The joint form of a local game: for small games, where it shows what seeing the states of all agents would change.

The joint state is the tuple of own states, numbered with the last agent's varying fastest, so the joint game has Π S_i
states and Π A_i joint actions. An own-state policy, lifted, has the same values and costs. A Nash policy of the local
game need not be one of the joint game, which allows deviations that react to the others' states.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, at_step
from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy

MAX_ENTRIES = 50_000_000
"""A joint transition with more entries than this is not built."""


def to_joint(game: LocalGame) -> JointGame:
    """Write a local game over joint states and joint actions.

    Raises
    ------
    GameError
        Where the joint transition would be too large to hold.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> local = grid_world_local()
    >>> joint = to_joint(local)
    >>> [agent.num_states for agent in local.agents], joint.num_states
    ([16, 16], 256)
    >>> policy = local.uniform_policy()
    >>> bool(np.allclose(local.at(policy).costs, joint.at(lift_policy(local, policy)).costs))
    True
    """
    states = [agent.num_states for agent in game.agents]
    actions = [agent.num_actions for agent in game.agents]
    steps = game.horizon if any(len(agent.transition) > 1 for agent in game.agents) else 1
    entries = float(np.prod(np.array([*states, *states, *actions, steps], dtype=np.float64)))
    if entries > MAX_ENTRIES:
        raise GameError(f"the joint transition would have {entries:.3g} entries; at most {MAX_ENTRIES:.0e} are built.")
    # Axes while building: step, then each agent's state, then each agent's action.
    rewards, costs = _stage_tables(game)
    table = (int(np.prod(states)), *actions)
    return JointGame(
        transition=np.stack([_joint_step(game, step) for step in range(steps)]),
        rewards=rewards.reshape(game.num_agents, game.horizon, *table),
        costs=costs.reshape(game.num_constraints, game.horizon, *table),
        thresholds=game.thresholds,
        initial=reduce(np.multiply.outer, [agent.initial for agent in game.agents]).ravel(),
        horizon=game.horizon,
        agent_names=game.agent_names,
        constraint_names=game.constraint_names,
        binds=game.binds,
    )


def to_joint_with_potential(game: LocalGame) -> JointGame:
    """Write a local game over joint states and joint actions, where all agents get the stage reward of its potential.

    The reward is φ = Σ_i private_i − Σ_e Σ_{m ≤ n_e} delay_e(m), so that V^φ of a lifted policy is Rosenthal's
    potential of the own-state one: no less than that, and more by the rounding of the table at most.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> policy, reference = game.uniform_policy(), JointPolicy.reference(game.policy_shapes)
    >>> first, second = (to_joint_with_potential(game).at(lift_policy(game, each)) for each in (policy, reference))
    >>> bool(np.isclose(first.values[0] - second.values[0], game.potential(policy)))
    True
    """
    joint = to_joint(game)
    cumulated = game.delay.cumsum(axis=-1) - game.delay[..., :1]  # by the load: what all its users pay, one by one
    agents = [replace(agent, costs=-agent.reward[None]) for agent in game.agents]
    charged = game.with_constraints(cumulated[None], np.zeros(1), ("minus the potential",), agents=agents)
    ((minus,),) = _stage_tables(charged)[1:]
    # Each entry is a sum of one private reward by agent and one cumulated delay by resource, of n + 1 terms each.
    largest = sum(float(np.abs(agent.reward).max()) for agent in game.agents)
    largest += float(np.abs(game.delay).sum(axis=(-2, -1)).max(initial=0.0))
    rounding = 2 * (2 * game.num_agents + game.num_resources + 2) * UNIT_ROUNDOFF * largest
    reward = (rounding - minus).reshape(joint.rewards.shape[1:])
    return joint.with_rewards(np.stack([reward] * game.num_agents))


def lift_policy(game: LocalGame, policy: JointPolicy) -> JointPolicy:
    """Return an own-state policy as one on joint states, which looks at the own state only.

    Parameters
    ----------
    game
        The local game.
    policy
        Tables [H, S_i, A_i].

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> lift_policy(game, game.uniform_policy()).shapes
    ((6, 256, 4), (6, 256, 4))
    """
    policy.check_fits(game.policy_shapes)
    own = np.indices([agent.num_states for agent in game.agents]).reshape(game.num_agents, -1)
    return JointPolicy(tuple(table[:, mine] for table, mine in zip(policy, own, strict=True)))


def _joint_step(game: LocalGame, step: int) -> FloatArray:
    """P(s' | s, a) of one step: [Π S, *A, Π S]."""
    n = game.num_agents
    parts = []
    for agent in game.agents:
        matrix = at_step(agent.transition, step).toarray()
        parts.append(matrix.reshape(agent.num_states, agent.num_actions, agent.num_states))
    product = reduce(np.multiply.outer, parts)  # [S_1, A_1, S_1, S_2, A_2, S_2, …]
    grouped = product.transpose([3 * i + part for part in range(3) for i in range(n)])
    states = int(np.prod(grouped.shape[:n]))
    return np.asarray(grouped.reshape(states, *grouped.shape[n : 2 * n], states))


def _stage_tables(game: LocalGame) -> tuple[FloatArray, FloatArray]:
    """The rewards [n, H, *S, *A] and costs [k, H, *S, *A] of all joint states and actions."""
    shape = (
        game.horizon,
        *(agent.num_states for agent in game.agents),
        *(agent.num_actions for agent in game.agents),
    )
    rewards, costs = np.zeros((game.num_agents, *shape)), np.zeros((game.num_constraints, *shape))
    uses = [_spread(game, i, _uses_table(agent, game.horizon)) for i, agent in enumerate(game.agents)]
    for i, agent in enumerate(game.agents):
        rewards[i] += _spread(game, i, np.broadcast_to(agent.reward, (game.horizon, *agent.reward.shape[1:])))
        if agent.costs is not None:
            for cost, private in zip(costs, agent.costs, strict=True):
                cost += _spread(game, i, np.broadcast_to(private, (game.horizon, *private.shape[1:])))
    step = np.arange(game.horizon).reshape(-1, *(1 for _ in shape[1:]))
    for resource in range(game.num_resources):
        load = np.broadcast_to(sum(use[..., resource] for use in uses), shape).astype(np.int64)
        delay = game.delay[step % len(game.delay), resource, load]
        for i, use in enumerate(uses):
            rewards[i] -= use[..., resource] * delay
        for cost, paid in zip(costs, game.load_costs, strict=True):
            cost += paid[step % len(paid), resource, load]
    return rewards, costs


def _uses_table(agent: LocalAgent, horizon: int) -> FloatArray:
    shape = (agent.num_states, agent.num_actions, -1)
    tables = [matrix.toarray().reshape(shape) for matrix in agent.uses]
    return np.stack(tables * (horizon if len(tables) == 1 else 1))


def _spread(game: LocalGame, agent: int, table: npt.NDArray[np.float64]) -> FloatArray:
    """Give a table [H, S_i, A_i, …] the axes [H, *S, *A, …] of the joint form, of length one where others vary."""
    ones = [1] * game.num_agents
    states, actions = list(ones), list(ones)
    states[agent], actions[agent] = table.shape[1], table.shape[2]
    return table.reshape(table.shape[0], *states, *actions, *table.shape[3:])
