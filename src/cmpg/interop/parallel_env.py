"""A joint game as an environment with PettingZoo's parallel API, for tools that step environments.

No dependency: the class has the methods of the API. Its spaces are plain numbers, with `n` and `contains`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame


def to_parallel_env(game: JointGame, *, rng: np.random.Generator) -> GameEnv:
    """Return an environment that plays a joint game with a finite horizon.

    Every agent observes the number of the state. Rewards are the game's, and `infos[agent]["costs"]` has the costs of
    the step, the same for all. After the last step all agents are truncated.

    Examples
    --------
    >>> from cmpg.games.joint.game import JointGame
    >>> game = JointGame(transition=np.ones((1, 1, 2, 1)), rewards=[[[[0, 1]]]], costs=[[[[0, 3]]]], thresholds=[1],
    ...                  initial=[1], horizon=2)
    >>> env = to_parallel_env(game, rng=np.random.default_rng(0))
    >>> observations, infos = env.reset(seed=4)
    >>> env.step({"agent_0": 1})
    ({'agent_0': 0}, {'agent_0': 1.0}, {'agent_0': False}, {'agent_0': False}, {'agent_0': {'costs': [3.0]}})
    """
    if game.horizon is None:
        raise GameError("the game is discounted: its episodes do not end. Cut it off at a finite horizon.")
    return GameEnv(game.floats(), rng)


@dataclass(frozen=True)
class Numbers:
    """The numbers 0 … n − 1, as a space."""

    n: int

    def contains(self, number: int) -> bool:
        """Whether a number is one of them."""
        return 0 <= number < self.n


class GameEnv:
    """A joint game that is stepped; see `to_parallel_env`."""

    def __init__(self, game: JointGame, rng: np.random.Generator) -> None:
        self.metadata = {"name": "cmpg"}
        self.possible_agents = list(game.agent_names or (f"agent_{i}" for i in range(game.num_agents)))
        self.agents: list[str] = []
        self._game, self._rng = game, rng
        self._step = self._state = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> GameEnv:
        twin = GameEnv(self._game, copy.deepcopy(self._rng, memo))
        twin.agents, twin._step, twin._state = list(self.agents), self._step, self._state
        return twin

    def action_space(self, agent: str) -> Numbers:
        """Return the actions of an agent."""
        return Numbers(self._game.num_actions[self.possible_agents.index(agent)])

    def observation_space(self, agent: str) -> Numbers:  # noqa: ARG002
        """Return the states, which all agents see."""
        return Numbers(self._game.num_states)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, int], dict[str, Any]]:  # noqa: ARG002
        """Begin an episode."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents, self._step = list(self.possible_agents), 0
        self._state = int(self._rng.choice(self._game.num_states, p=self._game.initial))
        return dict.fromkeys(self.agents, self._state), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, int], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Play one joint action."""
        if not self.agents:
            raise GameError("the episode is over, or has not begun; call reset first.")
        joint = tuple(int(actions[agent]) for agent in self.agents)
        where = (self._state, *joint)
        rewards = self._at(self._game.rewards)[(slice(None), *where)].tolist()
        costs = self._at(self._game.costs)[(slice(None), *where)].tolist()
        self._state = int(self._rng.choice(self._game.num_states, p=self._ahead(where)))
        self._step += 1
        names, over = self.agents, self._step == self._game.horizon
        self.agents = [] if over else names
        return (
            dict.fromkeys(names, self._state),
            dict(zip(names, rewards, strict=True)),
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            {agent: {"costs": costs} for agent in names},
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _at(self, table: FloatArray) -> Any:
        """Return a table [m, H or 1, …] at the present step."""
        return table[:, 0 if table.shape[1] == 1 else self._step]

    def _ahead(self, where: tuple[int, ...]) -> FloatArray:
        matrix = self._game.transition[0 if len(self._game.transition) == 1 else self._step]
        if not self._game.is_sparse:
            return np.asarray(matrix[where])
        row = int(np.ravel_multi_index(where, (self._game.num_states, *self._game.num_actions)))
        return np.asarray(matrix[[row]].toarray()[0])
