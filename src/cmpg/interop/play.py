"""Policies and learners in environments with PettingZoo's parallel API.

`PolicyRunner` plays a joint policy in any such environment, and says what it brought and cost. `LearnableEnv` hands an
environment to the learners of `cmpg.learning`, which step it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import SimulatorError
from cmpg.games.devices import CorrelatedPolicy, Device, Rota
from cmpg.interop.enumeration import CostFunction, EnvStep, Observations, ParallelAPI, reported_costs
from cmpg.policy import JointPolicy
from cmpg.simulation.episodes import deviations

StateFunction = Callable[[Observations], Sequence[int]]
"""The number of the state that each agent's policy looks at: [n]."""


def observed_states(observations: Observations) -> list[int]:
    """Read the states that the environments of `to_parallel_env` show: the last entry of each observation."""
    return [int(np.ravel(seen)[-1]) for seen in observations.values()]


@dataclass(frozen=True, eq=False)
class Episodes:
    """What a policy brought and cost in a number of episodes.

    Examples
    --------
    >>> from cmpg.interop import to_parallel_env
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> env = to_parallel_env(game)
    >>> played = PolicyRunner(game.uniform_policy()).play(env, episodes=500, rng=np.random.default_rng(1))
    >>> low, high = played.cost_intervals()[0]
    >>> played.returns.shape, bool(low <= 0.25 <= high)
    ((500, 2), True)
    """

    returns: FloatArray  # [episodes, n]
    costs: FloatArray  # [episodes, k]

    def __repr__(self) -> str:
        means = [", ".join(f"{mean:.6g}" for mean in table.mean(axis=0)) for table in (self.returns, self.costs)]
        return f"<Episodes {len(self.returns)}, mean returns {means[0]}, mean costs {means[1] or 'none'}>"

    def return_intervals(self, confidence: float = 0.99) -> FloatArray:
        """Return lower and upper ends of a confidence interval for each agent's value: [n, 2]."""
        return mean_intervals(self.returns, confidence)

    def cost_intervals(self, confidence: float = 0.99) -> FloatArray:
        """Return lower and upper ends of a confidence interval for each cost: [k, 2]."""
        return mean_intervals(self.costs, confidence)


def mean_intervals(samples: FloatArray, confidence: float) -> FloatArray:
    """Return confidence intervals for the means of columns, by the central limit theorem: [columns, 2].

    Examples
    --------
    >>> mean_intervals(np.array([[0.0], [1.0], [0.0], [1.0]]), 0.95).round(3).tolist()
    [[-0.066, 1.066]]
    """
    if len(samples) < 2:
        raise SimulatorError(f"there are {len(samples)} episodes; an interval needs at least 2.")
    half = deviations(confidence) * samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return np.stack([samples.mean(axis=0) - half, samples.mean(axis=0) + half], axis=1)


def _first_mode(device: Device) -> JointPolicy:
    """Return a policy of the shape of what a device says: its first mode, or each agent's part of it alone."""
    if isinstance(device, Rota):
        return device.modes[0].floats()
    agents = range(device.table.ndim - 2)
    return JointPolicy([np.asarray(device.recommended(agent), dtype=np.float64) for agent in agents])


class PolicyRunner:
    """A joint policy, or a device that all agents obey, which plays in an environment with the parallel API.

    Parameters
    ----------
    policy
        One table [H, S_i, A_i] per agent, in the order of `env.possible_agents`. Where an episode is longer than the
        policy, its last step goes on; so that a stationary policy has one step. Or a `Rota`, or a `CorrelatedPolicy`
        where every agent sees the joint state.
    states
        The number of the state that each agent's policy looks at. `EnumeratedEnv.states_of` for environments that came
        in by `from_parallel_env`; the default reads what `to_parallel_env` shows.
    costs
        What a step costs; read from the infos unless given.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.interop import to_parallel_env
    >>> game = cmpg.scenarios.spectrum()
    >>> result = cmpg.solve(game)
    >>> played = PolicyRunner(result.policy).play(to_parallel_env(game), episodes=1000, rng=np.random.default_rng(1))
    >>> low, high = played.cost_intervals()[0]
    >>> bool(low <= result.costs[0] <= high)
    True
    """

    def __init__(
        self,
        policy: JointPolicy | Device,
        *,
        states: StateFunction = observed_states,
        costs: CostFunction = reported_costs,
    ) -> None:
        self._device = policy
        self._policy = policy if isinstance(policy, JointPolicy) else _first_mode(policy)
        self._states, self._costs = states, costs

    def begin(self, *, rng: np.random.Generator) -> None:
        """Begin an episode: a rota draws its mode; `play` does so by itself."""
        if isinstance(self._device, Rota):
            weights = np.asarray(self._device.weights, dtype=np.float64)
            self._policy = self._device.modes[int(rng.choice(len(weights), p=weights / weights.sum()))].floats()

    def actions(self, step: int, observations: Observations, *, rng: np.random.Generator) -> list[int]:
        """Draw an action for each agent, whether it is still there or not: [n]."""
        states = self._states(observations)
        if isinstance(self._device, CorrelatedPolicy):
            law = np.asarray(self._device.table[min(step, len(self._device.table) - 1), states[0]], dtype=np.float64)
            drawn = int(rng.choice(law.size, p=law.ravel() / law.sum()))
            return [int(action) for action in np.unravel_index(drawn, law.shape)]
        return [self._policy.act(agent, step, state, rng) for agent, state in enumerate(states)]

    def play(self, env: ParallelAPI, *, episodes: int, rng: np.random.Generator) -> Episodes:
        """Play episodes to their ends; the environment gets its seeds from the generator."""
        if len(env.possible_agents) != len(self._policy):
            raise SimulatorError(
                f"the environment has {len(env.possible_agents)} agents; the policy is one of {len(self._policy)}."
            )
        played = [self._episode(env, rng) for _ in range(episodes)]
        return Episodes(np.array([got for got, _ in played]), np.array([paid for _, paid in played]))

    def _episode(self, env: ParallelAPI, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        observations, _ = env.reset(seed=int(rng.integers(2**31)))
        self.begin(rng=rng)
        names = list(env.possible_agents)
        got, paid, step = np.zeros(len(names)), np.zeros(0), 0
        while env.agents:
            chosen = dict(zip(names, self.actions(step, observations, rng=rng), strict=True))
            actions = {agent: chosen[agent] for agent in env.agents}
            following, rewards, _, _, infos = env.step(actions)
            got += [float(rewards.get(agent, 0.0)) for agent in names]
            costs = np.asarray(self._costs(EnvStep(observations, actions, rewards, infos)), dtype=np.float64)
            paid = costs if step == 0 else paid + costs
            observations, step = {agent: following[agent] for agent in env.agents}, step + 1
        return got, paid


class LearnableEnv:
    """An environment as `EnvironmentSimulator` wants it, for the learners; it may be random.

    Parameters
    ----------
    env
        With discrete actions, whose episodes last as long as the horizon that is declared to the simulator.
    state
        The number of the state in which the agents observe something.
    costs
        What a step costs; read from the infos unless given.

    Examples
    --------
    >>> from cmpg.interop import to_parallel_env
    >>> from cmpg.scenarios import spectrum
    >>> env = LearnableEnv(to_parallel_env(spectrum()), state=lambda seen: observed_states(seen)[0])
    >>> _ = env.reset(np.random.default_rng(0))
    >>> following, rewards, costs, over = env.step([0, 0, 0])
    >>> rewards, costs
    ([0.0, 0.0, 0.0], [0.0])
    """

    def __init__(
        self, env: ParallelAPI, *, state: Callable[[Observations], int], costs: CostFunction = reported_costs
    ) -> None:
        self._env, self._state, self._costs = env, state, costs
        self._agents = list(env.possible_agents)
        self._seen: Observations = {}

    def reset(self, rng: np.random.Generator) -> int:
        """Begin an episode with a seed from the generator."""
        self._seen, _ = self._env.reset(seed=int(rng.integers(2**31)))
        return self._state(self._seen)

    def step(self, actions: Sequence[int]) -> tuple[int, list[float], list[float], bool]:
        """Play one joint action."""
        named = dict(zip(self._agents, actions, strict=True))
        observations, rewards, _, _, infos = self._env.step(named)
        costs = [float(cost) for cost in self._costs(EnvStep(self._seen, named, rewards, infos))]
        self._seen = observations
        return self._state(observations), [float(rewards[agent]) for agent in self._agents], costs, not self._env.agents
