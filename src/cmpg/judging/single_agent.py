"""One agent's side of a world as a single-agent Gymnasium environment, with the others frozen inside.

Any library that trains a policy for such an environment can propose a deviation: Stable-Baselines3, CleanRL, a search
of one's own. What it proposes is measured by fresh episodes, so nothing about the training is believed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cmpg.errors import CMPGError, UnsupportedError
from cmpg.judging.environments import EnvironmentWorld, observed
from cmpg.judging.worlds import PlayedWorld
from cmpg.policy import action_probabilities, draw

_Env: Any = object
try:
    import gymnasium

    _Env = gymnasium.Env  # Stable-Baselines3 takes environments of this type alone
except ModuleNotFoundError:
    pass  # a trainer that does not ask for the type can still train here


class SingleAgentEnv(_Env):  # type: ignore[misc]
    """A Gymnasium environment in which one agent acts and the others play the judged policy.

    Parameters
    ----------
    world
        An `EnvironmentWorld`.
    policy
        The judged policy, as the world prepared it.
    agent
        Who acts.
    seed
        Of everything random.

    `reset` and `step` return what Gymnasium wants. The reward is the agent's own; `info["costs"]` has the costs of the
    step, so that a learner for constraints can read them.

    Examples
    --------
    >>> class Matching:
    ...     def reset(self, rng):
    ...         return 0
    ...     def step(self, actions):
    ...         return 0, [float(actions[0] == actions[1])] * 2, [], True
    >>> world = EnvironmentWorld(Matching(), horizon=1, reward_range=(0, 1), num_actions=(2, 2))
    >>> env = SingleAgentEnv(world, world.prepared(lambda agent, observation, step: 1), agent=0)
    >>> _ = env.reset(seed=0)
    >>> env.step(1)[1]
    1.0
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012
    render_mode = None
    spec = None

    def __init__(self, world: PlayedWorld, policy: Any, agent: int, *, seed: int = 0) -> None:
        if not isinstance(world, EnvironmentWorld):
            advice = "Plan deviations in it, or give them."
            raise UnsupportedError(type(world).__name__, "has no observations to train from", advice)
        self.world, self.agent = world, agent
        self._policy, self._rng = policy, np.random.default_rng(seed)
        self._seen: Any = {}
        self._step = 0
        self._name, env = world.episodic.agents[agent], world.env
        self.action_space = env.action_space(self._name) if hasattr(env, "action_space") else None
        self.observation_space = env.observation_space(self._name) if hasattr(env, "observation_space") else None
        self._last: Any = None

    @property
    def unwrapped(self) -> SingleAgentEnv:
        """Itself."""
        return self

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return what the agent observes."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._seen, self._step = self.world.episodic.begin(self._rng), 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the agent's action, and the others' as the judged policy has it."""
        if not self._seen:
            raise CMPGError("the episode is over; call reset first.")
        chosen = []
        for i, name in enumerate(self.world.episodic.agents):
            if i == self.agent:
                chosen.append(int(np.asarray(action).reshape(-1)[0]))
            elif name not in self._seen:
                chosen.append(0)
            else:
                answer = self._policy(i, observed(self._seen[name]), self._step)
                chosen.append(draw(action_probabilities(answer, self.world.num_actions[i]), self._rng))
        turned = self.world.episodic.step(chosen)
        self._seen, self._step = turned.observations, self._step + 1
        over = self._name not in self._seen
        cut = not over and self._step >= self.world.horizon
        info = {"costs": turned.costs.tolist(), "cost": float(turned.costs.sum())}
        return self._observation(), float(turned.rewards[self.agent]), over, cut, info

    def _observation(self) -> Any:
        if self._name in self._seen:
            self._last = observed(self._seen[self._name])
        return self._last

    def render(self) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Leave the environment as it is."""
