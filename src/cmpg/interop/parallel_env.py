"""A game as a PettingZoo environment with the parallel API, for tools that step environments.

Agents have the game's names. An agent observes the step and its state, `[h, s]`: the joint state, or its own where
policies see no more. `infos[agent]` has the costs of the step: `"cost"`, their sum; `"costs"`, by constraint;
`"cost_limit"` and `"cost_limits"`, the thresholds that the sums over an episode shall keep, in expectation.

After the last step of the horizon all agents are truncated. A discounted game ends after each step with probability
1 − γ, all agents terminated: the expected sum over such an episode is the discounted sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import SimulatorError, UnsupportedError
from cmpg.games.game import Game, Information, Playable

try:
    from gymnasium.spaces import Discrete, MultiDiscrete
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"{missing.name} is not installed; PettingZoo environments need it: pip install 'cmpg[pettingzoo]'",
        name=missing.name,
    ) from None


def to_parallel_env(game: Game, *, rng: np.random.Generator | None = None) -> GameEnv:
    """Return an environment that plays a game.

    Parameters
    ----------
    game
        Joint, local, counting, or any that is `Playable`.
    rng
        Draws what is random until `reset` is given a seed; fresh unless given.

    Examples
    --------
    >>> from cmpg.scenarios import spectrum
    >>> env = to_parallel_env(spectrum())
    >>> observations, infos = env.reset(seed=4)
    >>> observations["user 0"]
    array([0, 3])
    >>> observations, rewards, terminations, truncations, infos = env.step({agent: 0 for agent in env.agents})
    >>> infos["user 0"]["costs"], infos["user 0"]["cost_limits"]
    ({'interference': 0.0}, {'interference': 0.15})
    """
    if not isinstance(game, Playable):
        advice = "It needs a method `stepper` (cmpg.games.Playable)."
        raise UnsupportedError(type(game).__name__, "cannot be played step by step", advice)
    return GameEnv(game, np.random.default_rng() if rng is None else rng)


class GameEnv(ParallelEnv[str, IntArray, int]):  # type: ignore[misc]  # PettingZoo has no types
    """A game that is stepped; see `to_parallel_env`.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> env = GameEnv(counter_example(), np.random.default_rng(0))
    >>> _ = env.reset()
    >>> observations, rewards, terminations, truncations, infos = env.step({"agent 0": 1, "agent 1": 1})
    >>> rewards, infos["agent 0"]["costs"]
    ({'agent 0': 4.0, 'agent 1': 4.0}, {'both play 2': 1.0})
    """

    def __init__(self, game: Game, rng: np.random.Generator) -> None:
        assert isinstance(game, Playable)
        self.metadata = {"name": "cmpg", "render_modes": []}
        self.render_mode = None
        self.possible_agents = unique_names(game.names.all_agents(game.num_agents))
        self.agents: list[str] = []
        self._game, self._stepper, self._rng = game, game.stepper(), rng
        self._steps = 1 if game.horizon is None else game.horizon + 1
        self._constraints = unique_names(game.names.all_constraints(len(game.thresholds)))
        self._limits = dict(zip(self._constraints, map(float, game.thresholds), strict=True))
        sizes = [(states, actions) for _, states, actions in game.policy_shapes]
        self.observation_spaces = {
            agent: MultiDiscrete([self._steps, states])
            for agent, (states, _) in zip(self.possible_agents, sizes, strict=True)
        }
        self.action_spaces = {
            agent: Discrete(actions) for agent, (_, actions) in zip(self.possible_agents, sizes, strict=True)
        }
        observed = sizes if game.information is Information.OWN_STATE else sizes[:1]
        self.state_space = MultiDiscrete([self._steps, *(states for states, _ in observed)])
        self._step, self._states = 0, np.zeros(game.num_agents, dtype=np.int64)

    def observation_space(self, agent: str) -> MultiDiscrete:
        """Return the pairs of step and state that an agent may observe."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the actions of an agent."""
        return self.action_spaces[agent]

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[dict[str, IntArray], dict[str, dict[str, Any]]]:
        """Begin an episode; with a seed, always the same."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents, self._step = list(self.possible_agents), 0
        self._see(self._stepper.begin(1, self._rng))
        return self._observed(), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, IntArray], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one joint action.

        Raises
        ------
        SimulatorError
            Before `reset`, after the end, or where an action is missing or is none of the agent's.
        """
        joint = self._checked(actions)
        h = 0 if self._game.horizon is None else self._step
        seen_by = self._states if self._game.information is Information.OWN_STATE else self._states[:1]
        stepped = self._stepper.step(h, seen_by[:, None], joint[:, None], self._rng)
        self._see(stepped.states)
        self._step += 1
        truncated = self._step == self._game.horizon
        terminated = self._game.discount is not None and self._rng.random() >= self._game.discount
        acted, seen = self.agents, self._observed()
        self.agents = [] if truncated or terminated else acted
        return (
            seen,
            dict(zip(acted, map(float, stepped.rewards[:, 0]), strict=True)),
            dict.fromkeys(acted, terminated),
            dict.fromkeys(acted, truncated),
            self._infos(stepped.costs[:, 0]),
        )

    def _see(self, states: IntArray) -> None:
        """Keep the states of a batch of one [n or 1, 1] as each agent sees them: [n]."""
        self._states = np.broadcast_to(states[:, 0], self._game.num_agents)

    def state(self) -> IntArray:
        """Return the step and the joint state, or the step and the states of all agents."""
        own_states = self._game.information is Information.OWN_STATE
        return np.array([self._shown_step, *(self._states if own_states else self._states[:1])])

    def render(self) -> None:
        """There is nothing to draw; `cmpg report` draws a game and its policy."""

    def close(self) -> None:
        """Nothing is held open."""

    @property
    def _shown_step(self) -> int:
        return min(self._step, self._steps - 1)

    def _observed(self) -> dict[str, IntArray]:
        pairs = zip(self.possible_agents, self._states, strict=True)
        return {agent: np.array([self._shown_step, state]) for agent, state in pairs}

    def _infos(self, costs: FloatArray) -> dict[str, dict[str, Any]]:
        spent = dict(zip(self._constraints, costs.tolist(), strict=True))
        total, limit = float(costs.sum()), sum(self._limits.values())
        return {
            agent: {"cost": total, "costs": {**spent}, "cost_limit": limit, "cost_limits": {**self._limits}}
            for agent in self.possible_agents
        }

    def _checked(self, actions: Mapping[str, int]) -> IntArray:
        """Return the actions of all agents as numbers, or raise."""
        if not self.agents:
            raise SimulatorError("the episode is over, or has not begun; call reset first.")
        for agent in self.agents:
            if agent not in actions:
                raise SimulatorError(f"there is no action of {agent!r}; one for each of {self.agents} is required.")
            if not self.action_spaces[agent].contains(actions[agent]):
                most = self.action_spaces[agent].n - 1
                raise SimulatorError(
                    f"the action of {agent!r} is {actions[agent]!r}; a number from 0 to {most} is required."
                )
        strangers = [agent for agent in actions if agent not in self.agents]
        if strangers:
            raise SimulatorError(f"there is no agent {strangers[0]!r}; the agents are {self.agents}.")
        return np.array([int(actions[agent]) for agent in self.agents])


def unique_names(names: tuple[str, ...]) -> list[str]:
    """Return names as keys: with their numbers, where two are the same.

    Examples
    --------
    >>> unique_names(("car", "car")), unique_names(("Ada", "Bo"))
    (['car (0)', 'car (1)'], ['Ada', 'Bo'])
    """
    if len(set(names)) == len(names):
        return list(names)
    return [f"{name} ({i})" for i, name in enumerate(names)]
