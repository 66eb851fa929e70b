"""Does a table do what a function does? Episodes in the environment, with both answers side by side.

`EnumeratedEnv.policy` writes a policy for an environment down as tables. A replay plays the function itself and looks
up, at every step, what the tables would have done: the same probabilities, in a state that the game knows. A table that
was written wrongly is found at the first step where it differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.errors import GameError
from cmpg.interop.enumeration import EnumeratedEnv, ParallelAPI
from cmpg.judging.policies import policy_function
from cmpg.policy import JointPolicy, action_probabilities, draw

TOLERANCE = 1e-6
"""Probabilities that are this close count as the same; neural networks compute in single precision."""


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Examples
    --------
    >>> from cmpg.interop import from_parallel_env, to_parallel_env
    >>> from cmpg.scenarios import counter_example
    >>> env = to_parallel_env(counter_example())
    >>> found = from_parallel_env(env, horizon=1, thresholds=[0.5])
    >>> def mine(agent, observation, step):
    ...     return agent
    >>> other = found.policy(lambda agent, observation, step: 0)
    >>> seen = replay(env, found, mine, other, episodes=10, rng=np.random.default_rng(1))
    >>> seen.agrees, seen.differences
    (False, 10)
    """

    episodes: int
    steps: int
    differences: int  # decisions of single agents that differ
    unknown: int  # steps in states that the game does not know
    first: str  # where it differs first, in a sentence; empty if nowhere

    @property
    def agrees(self) -> bool:
        """Whether the tables did what the function did, everywhere."""
        return not self.differences and not self.unknown

    def __str__(self) -> str:
        """Return a sentence."""
        played = f"{self.steps:,} steps of {self.episodes:,} episodes"
        if self.agrees:
            return f"the table does what the policy does in {played}."
        found = f"{self.differences:,} decisions, {self.unknown:,} unknown states"
        return f"the table differs: {found} in {played}; {self.first}"


def replay(
    env: ParallelAPI,
    found: EnumeratedEnv,
    policy: Any,
    table: JointPolicy,
    *,
    episodes: int,
    rng: np.random.Generator,
) -> Replay:
    """Play a policy in the environment that a game came from, and compare each decision with its table.

    Parameters
    ----------
    env, found
        The environment, and what `from_parallel_env` made of it.
    policy
        The function, model or mapping that is played.
    table
        What it is thought to be.
    episodes, rng
        How many, and where all randomness comes from.

    Examples
    --------
    >>> from cmpg.interop import from_parallel_env, to_parallel_env
    >>> from cmpg.scenarios import counter_example
    >>> env = to_parallel_env(counter_example())
    >>> found = from_parallel_env(env, horizon=1, thresholds=[0.5])
    >>> mine = lambda agent, observation, step: agent
    >>> print(replay(env, found, mine, found.policy(mine), episodes=10, rng=np.random.default_rng(1)))
    the table does what the policy does in 10 steps of 10 episodes.
    """
    function, names = policy_function(policy, found.agents), list(env.possible_agents)
    steps = differences = unknown = 0
    first = ""
    for _ in range(episodes):
        observations, _ = env.reset(seed=int(rng.integers(2**31)))
        for h in range(found.game.policy_shapes[0][0]):
            if not env.agents:
                break
            seen = {agent: observations[agent] for agent in env.agents}
            steps += 1
            try:
                state = found.state_of(seen)
            except GameError as problem:
                unknown, state = unknown + 1, -1
                first = first or f"step {h}: {problem}"
            actions = {}
            for i, name in enumerate(names):
                if name not in seen:
                    continue
                row = action_probabilities(function(i, seen[name], h), table.shapes[i][2])
                wanted = row if state < 0 else table.row(i, h, state)
                if np.abs(row - wanted).max() > TOLERANCE:
                    differences += 1
                    message = f"{name} at step {h} in state {state}: {np.round(row, 4).tolist()} by the policy"
                    first = first or f"{message}, {np.round(wanted, 4).tolist()} by the table."
                actions[name] = draw(row, rng)
            observations, *_ = env.step(actions)
    return Replay(episodes, steps, differences, unknown, first)
