"""One planner for all agents of a joint game, and the stage reward whose value is the potential, where there is one.

The three classes of games that `structure.py` proves to be Markov potential games have a reward φ with Φ = V^φ, so
that a planner can maximise the potential by dynamic programming: the common reward (C1); stage potentials, where no
action moves the state (C2); agent 0's reward, where the others differ from it by what no agent can influence (C4). A
potential is defined up to a constant: for a common reward it is the common value, otherwise it is zero at
`JointPolicy.reference`, like `JointGame.potential`.

Guarantee: a unilateral change of V^φ is that of V^{r_i}, to within the residual of the structural proof.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, first_index, place
from cmpg.cmdp.model import CMDP, total_weight
from cmpg.errors import GameError
from cmpg.games.game import Objective, Planner, PotentialKind, PotentialProof
from cmpg.games.joint.averages import MAX_JOINT_ENTRIES
from cmpg.games.rationals import as_given
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.games.joint.game import JointGame


def potential_reward(game: JointGame) -> FloatArray:
    """Return a stage reward φ [H or 1, S, *A] such that V^φ is the potential that `lagrangian` uses.

    There is one if the reward is common, if rewards differ by terms whose value no agent can influence, or if no action
    moves the state and the stage games have potentials. Otherwise a GameError says where rewards differ.
    """
    if has_common_reward(game):
        return np.asarray(game.rewards[0])
    proof = game.potential_proof()
    if proof is None:
        raise _no_common_ground(game)
    if proof.kind is PotentialKind.EXOGENOUS_STATE:
        stages = stage_potential(game.rewards)
        first = tuple(slice(0, 1) for _ in game.num_actions)
        return np.asarray(stages - stages[(slice(None), slice(None), *first)])
    length = total_weight(game.horizon, game.discount)
    return np.asarray(game.rewards[0] - game.reference_value / length)


def joint_planner(game: JointGame) -> CMDP:
    """Return the CMDP of one planner who chooses all actions and maximises the potential."""
    return game.joint_cmdp(potential_reward(game))


def planner_of(game: JointGame, objective: Objective | None) -> Planner | None:
    """Return one planner who chooses all actions, for the welfare, the potential or costs alone.

    None where the tables are too large, or where the potential is none of stages. The potential is counted as by
    `game.potential`, from `JointPolicy.reference`.
    """
    chooses = "a planner who chooses all actions"
    if objective is None:
        return Planner(game.joint_cmdp(), game.split, chooses, partial(marginals, game))
    if game.is_sparse:  # what its policies take, since the game itself has room
        entries = game.num_steps * game.num_states * math.prod(game.num_actions)
    else:
        entries = game.num_steps * int(game.transition[0].size)
    if entries > MAX_JOINT_ENTRIES:
        return None
    zero = 0.0
    try:
        reward = game.rewards.sum(axis=0) if objective is Objective.WELFARE else potential_reward(game)
    except GameError:
        return None
    if objective is Objective.POTENTIAL and has_common_reward(game):
        length = total_weight(game.horizon, game.discount)
        zero = game.reference_value / length
    # The reward is a rounded sum over the agents; a potential, of averages, less the value of the reference.
    roundings = (2 * game.num_agents + 8) * UNIT_ROUNDOFF
    if objective is Objective.POTENTIAL:
        roundings += 2 * (32 + math.prod(game.num_actions).bit_length()) * UNIT_ROUNDOFF
        roundings += game.at(JointPolicy.reference(game.policy_shapes)).rounding
    rounded = roundings * float(np.abs(game.rewards).sum(axis=0).max())
    return Planner(game.joint_cmdp(reward - zero + rounded), game.split, chooses, partial(marginals, game))


def marginals(game: JointGame, joint: FloatArray) -> JointPolicy:
    """Return each agent's own part of a correlated policy [H, S, ΠA]."""
    table = joint.reshape(*joint.shape[:2], *game.num_actions)
    agents = range(game.num_agents)
    return JointPolicy(tuple(table.sum(axis=tuple(2 + j for j in agents if j != i)) for i in agents))


def common_reward_proof(game: JointGame) -> PotentialProof | None:
    """Return why a game with one common reward has a potential; None for any other game."""
    rewards = as_given(game, "rewards")
    if not all(np.array_equal(reward, rewards[0]) for reward in rewards[1:]):
        return None
    why = "C1: all agents have the same reward, and its value is a potential."
    return PotentialProof(PotentialKind.COMMON_REWARD, why)


def with_common_reward(game: JointGame) -> JointGame:
    """Return the game in which all agents get the `potential_reward`: Φ is the value of each, the equilibria stay."""
    return game.with_rewards(np.stack([potential_reward(game)] * game.num_agents))


def has_common_reward(game: JointGame) -> bool:
    """Whether all agents have the same reward."""
    return bool((game.rewards == game.rewards[0]).all())


def stage_potential(rewards: FloatArray) -> FloatArray:
    """The sum of what each agent gains by moving, in turn, from the uniform mixture to its action (Lemma 1)."""
    total = np.zeros(rewards.shape[1:])
    for i, reward in enumerate(rewards):
        later = tuple(range(2 + i + 1, reward.ndim))
        moved = reward.mean(axis=later, keepdims=True)
        # Agents before i play their actions, those after i the uniform mixture: agent i's gain from its own mixture.
        total = total + moved - moved.mean(axis=2 + i, keepdims=True)
    return total


def _no_common_ground(game: JointGame) -> GameError:
    differs = game.rewards != game.rewards[0]
    agent, *index = first_index(differs)
    where = place("rewards", (agent, *index), ("i", "h", "s", *("a" for _ in game.num_actions)))
    own, first = game.rewards[(agent, *index)], game.rewards[(0, *index)]
    return GameError(
        f"{where} is {own:.9g}, and agent 0's is {first:.9g}; the dual is a joint dynamic program, and needs a common "
        "reward, rewards that differ only by what no agent can influence, or states that no action moves and a "
        "potential in every stage. lagrangian() takes any potential."
    )
