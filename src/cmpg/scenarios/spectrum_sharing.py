"""Sharing radio channels: secondary users of a licensed band, made for learning safely.

Every channel is sensed free or busy, and moves by itself: free → busy and busy → free with fixed probabilities,
whatever the users do. A user idles or takes a channel. The primary user is really there with probability ρ, which
depends on what was sensed. A user of a channel with k users and weight w gets (1 − ρ)·w/k, and the cost is the mean
of ρ over all users, zero for those who idle.

Each state is a congestion game, and no action moves the state, so this is a Markov potential game (class C2). All idle
costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import GameError
from cmpg.games.joint.averages import check_agents
from cmpg.games.joint.game import JointGame
from cmpg.games.names import Legend
from cmpg.sizes import require_joint_tables
from cmpg.summaries import counted

MANY_ENTRIES = 1_000_000
"""Tables with more entries than this are looked at first: do they fit into memory?"""


def spectrum(
    *,
    num_agents: int = 3,
    horizon: int = 2,
    threshold: float = 0.15,
    weights: Sequence[float] = (1.0, 0.7),
    to_busy: float = 0.2,
    to_free: float = 0.4,
    presence: tuple[float, float] = (0.1, 0.9),
) -> JointGame:
    """Return the game of `num_agents` users on one channel per weight; the initial state is uniform.

    Parameters
    ----------
    weights
        What a channel is worth to a user who has it alone.
    to_busy, to_free
        The probabilities by which each channel changes between two steps.
    presence
        ρ where a channel is sensed free, and where it is sensed busy.

    Examples
    --------
    >>> game = spectrum()
    >>> game.state_names, game.action_names[0]
    (('free free', 'free busy', 'busy free', 'busy busy'), ('idle', 'channel 1', 'channel 2'))
    """
    if num_agents < 1 or not len(weights):
        raise GameError(f"there are {num_agents} users and {len(weights)} channels; at least one of each is required.")
    check_agents(num_agents)
    states = 2.0 ** len(weights)
    if states * (1 + len(weights)) ** num_agents > MANY_ENTRIES:
        require_joint_tables(states, (1 + len(weights),) * num_agents, tables=2 * num_agents, successors=states)
    sensed = np.array(list(product((0, 1), repeat=len(weights))))
    present = np.asarray(presence, dtype=np.float64)[sensed]
    rewards, costs = _tables(num_agents, np.asarray(weights, dtype=np.float64), present)
    one_channel = np.array([[1 - to_busy, to_busy], [to_free, 1 - to_free]])
    flow = one_channel[sensed[:, None, :], sensed[None, :, :]].prod(axis=-1)
    transition = np.broadcast_to(
        flow.reshape(1, len(flow), *(1,) * num_agents, len(flow)), (1, *rewards.shape[2:], len(flow))
    )
    return JointGame(
        transition=transition.copy(),
        rewards=rewards,
        costs=costs,
        thresholds=np.array([threshold]),
        initial=np.full(len(flow), 1 / len(flow)),
        horizon=horizon,
        agent_names=tuple(f"user {user}" for user in range(num_agents)),
        state_names=tuple(" ".join(("free", "busy")[bit] for bit in bits) for bits in sensed),
        action_names=(("idle", *(f"channel {channel}" for channel in range(1, len(weights) + 1))),) * num_agents,
        constraint_names=("interference",),
        legend=Legend(
            agent="user",
            translation=(
                ("read", "no data: the game is made of its options"),
                ("states", f"what is sensed on {counted(len(weights), 'channel')}, which all users see"),
                ("time", f"{horizon} steps, from a uniform start"),
                (
                    "assumed",
                    "channels change independently of each other and of the users; a sensed channel is really in use "
                    f"with probability {presence[0]:g} if it seems free, {presence[1]:g} if it seems busy; users share "
                    "a channel equally",
                ),
            ),
        ),
    )


def _tables(num_agents: int, weights: FloatArray, present: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rewards [n, 1, S, *A] and the cost [1, 1, S, *A]; action 0 idles, action c + 1 takes channel c."""
    table = (len(present), *(1 + len(weights),) * num_agents)
    choices = np.indices(table[1:], sparse=True)
    rewards = np.zeros((num_agents, 1, *table))
    costs = np.zeros((1, 1, *table))
    for channel, weight in enumerate(weights):
        uses = [choice == channel + 1 for choice in choices]
        crowd = sum(use.astype(np.int64) for use in uses)
        rho = present[:, channel].reshape(-1, *(1,) * num_agents)
        share = (1 - rho) * weight / np.maximum(crowd, 1)
        for user, use in enumerate(uses):
            rewards[user, 0] += use * share
        costs[0, 0] += rho * crowd / num_agents
    return rewards, costs
