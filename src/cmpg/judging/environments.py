"""Environments of other libraries as worlds: PettingZoo's parallel and AEC interfaces, and the library's own.

What all agents observe together is the key of a state, and states get their numbers as they are met. Three kinds are
recognised by their methods: `possible_agents` with `agent_iter` is an AEC environment, `possible_agents` without it a
parallel one, and `reset(rng)` with `step(actions)` the library's own (`cmpg.learning.Environment`), whose states are
whole numbers.

In an AEC environment one agent acts at a time; a step of the world is one action, and what the others choose at that
step does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import FloatArray, numbers
from cmpg.errors import SimulatorError
from cmpg.games.game import Names
from cmpg.judging.policies import PolicyFunction, policy_function
from cmpg.judging.worlds import ENDED, Deviating, Seen, Vacuity, check_ranges
from cmpg.policy import action_probabilities, draw
from cmpg.summaries import fields_line

MAX_STATES = 10_000
"""With more different observations than this, they are taken to be continuous, and are not distinguished any more."""

Observations = Mapping[Any, Any]


@dataclass(frozen=True)
class EnvStep:
    """One step of an environment, as its costs are computed from.

    Examples
    --------
    >>> step = EnvStep(observations={"a": 0}, actions={"a": 1}, rewards={"a": 1.0}, infos={"a": {"cost": 2.0}})
    >>> reported_costs(step)
    [2.0]
    """

    observations: Observations  # before
    actions: Mapping[Any, int]
    rewards: Mapping[Any, Any]
    infos: Mapping[Any, Mapping[str, Any]]  # after

    __repr__ = fields_line


CostFunction = Callable[[EnvStep], Sequence[float]]
"""What a step costs: one number per constraint."""


def reported_costs(step: EnvStep) -> list[float]:
    """Read the costs of a step from the infos of the first agent: `"costs"`, by constraint, or else `"cost"`.

    Examples
    --------
    >>> [reported_costs(EnvStep({}, {}, {}, {"a": info})) for info in ({"cost": 2.0}, {"costs": [1, 0]})]
    [[2.0], [1.0, 0.0]]
    """
    info = next(iter(step.infos.values()), {})
    costs = info.get("costs", [info.get("cost", 0.0)])
    return [float(cost) for cost in (costs.values() if isinstance(costs, Mapping) else costs)]


def hashable(seen: Any) -> Hashable:
    """Return an observation as a key; arrays count by their entries."""
    if isinstance(seen, Mapping):
        return tuple((name, hashable(part)) for name, part in seen.items())
    if isinstance(seen, (list, tuple)):
        return tuple(hashable(part) for part in seen)
    plain = np.asarray(seen).tolist()
    return hashable(plain) if isinstance(plain, list) else plain


def joint_observation(observations: Observations) -> Hashable:
    """Return what all agents observe, as one key; `"ended"` if there is none left."""
    return tuple((agent, hashable(seen)) for agent, seen in observations.items()) or "ended"


@dataclass(frozen=True, eq=False)
class Turned:
    """What one step of an environment led to."""

    observations: Observations  # of the agents that are left; none at the end
    rewards: FloatArray  # [n]
    costs: FloatArray  # [k]


class Episodic(Protocol):
    """An environment as a world plays it: one episode at a time."""

    agents: tuple[Any, ...]

    def begin(self, rng: np.random.Generator) -> Observations:
        """Begin an episode, and return what each agent observes."""

    def step(self, actions: Sequence[int]) -> Turned:
        """Play one action of each agent [n]."""


class ParallelEpisodes:
    """A PettingZoo environment with the parallel interface."""

    def __init__(self, env: Any, costs: CostFunction, num_constraints: int) -> None:
        self._env, self._costs, self._k = env, costs, num_constraints
        self.agents = tuple(env.possible_agents)
        self._seen: Observations = {}

    def begin(self, rng: np.random.Generator) -> Observations:
        """Reset with a seed from the generator."""
        observations, _ = self._env.reset(seed=int(rng.integers(2**31)))
        self._seen = {agent: observations[agent] for agent in self._env.agents}
        return self._seen

    def step(self, actions: Sequence[int]) -> Turned:
        """Play one joint action; agents that are gone do nothing."""
        named = {agent: a for agent, a in zip(self.agents, actions, strict=True) if agent in self._env.agents}
        observations, rewards, _, _, infos = self._env.step(named)
        paid = _costs(self._costs, EnvStep(self._seen, named, rewards, infos), self._k)
        got = np.array([float(rewards.get(agent, 0.0)) for agent in self.agents])
        self._seen = {agent: observations[agent] for agent in self._env.agents}
        return Turned(self._seen, got, paid)


class TurnEpisodes:
    """A PettingZoo environment in which agents act one after another (AEC)."""

    def __init__(self, env: Any, costs: CostFunction, num_constraints: int) -> None:
        self._env, self._costs, self._k = env, costs, num_constraints
        self.agents = tuple(env.possible_agents)

    def begin(self, rng: np.random.Generator) -> Observations:
        """Reset with a seed from the generator."""
        self._env.reset(seed=int(rng.integers(2**31)))
        return self._observed()

    def _observed(self) -> Observations:
        """What each agent observes, and who is to act: the key of a state has both."""
        while self._env.agents:
            acting = self._env.agent_selection
            if not (self._env.terminations[acting] or self._env.truncations[acting]):
                seen = {agent: self._env.observe(agent) for agent in self._env.agents}
                return {agent: {"acting": acting, "observation": each} for agent, each in seen.items()}
            self._env.step(None)  # an agent that is done is stepped out of the way
        return {}

    def step(self, actions: Sequence[int]) -> Turned:
        """Play the action of the agent that is to act."""
        acting = self._env.agent_selection
        before = {acting: self._env.observe(acting)}
        action = actions[self.agents.index(acting)]
        mask = _mask(before[acting])
        if mask is not None and not mask[action]:
            action = int(np.flatnonzero(mask)[0]) if mask.any() else action  # an illegal action is the first legal one
        self._env.step(action)
        rewards = {agent: self._env.rewards.get(agent, 0.0) for agent in self.agents}
        infos = {acting: self._env.infos.get(acting, {})}
        paid = _costs(self._costs, EnvStep(before, {acting: action}, rewards, infos), self._k)
        return Turned(self._observed(), np.array([float(rewards[agent]) for agent in self.agents]), paid)


def _mask(observation: Any) -> Any:
    """Return which actions an observation says to be legal, if it says so."""
    if isinstance(observation, Mapping) and "action_mask" in observation:
        return np.asarray(observation["action_mask"], dtype=bool)
    return None


class OwnEpisodes:
    """An environment of the library's own protocol: `reset(rng)`, `step(actions)`; states are whole numbers."""

    def __init__(self, env: Any, num_agents: int) -> None:
        self._env = env
        self.agents = tuple(range(num_agents))

    def begin(self, rng: np.random.Generator) -> Observations:
        """Reset with the generator."""
        return dict.fromkeys(self.agents, self._env.reset(rng))

    def step(self, actions: Sequence[int]) -> Turned:
        """Play one joint action."""
        answer = self._env.step(tuple(actions))
        if not isinstance(answer, tuple) or len(answer) not in (3, 4):
            raise SimulatorError(f"step({tuple(actions)}) returned {answer!r}; (state, rewards, costs) is required.")
        over = len(answer) == 4 and bool(answer[3])
        following = {} if over else dict.fromkeys(self.agents, answer[0])
        return Turned(following, np.asarray(answer[1], dtype=np.float64), np.asarray(answer[2], dtype=np.float64))


def _costs(function: CostFunction, step: EnvStep, number: int) -> FloatArray:
    if not number:
        return np.zeros(0)
    paid = np.asarray([float(cost) for cost in function(step)])
    if len(paid) != number:
        raise SimulatorError(f"costs returned {len(paid)} numbers; there are {number} thresholds.")
    return paid


class EnvironmentWorld:
    """An environment to judge policies in.

    Parameters
    ----------
    env
        PettingZoo's parallel or AEC interface, or the library's own: `reset(rng)`, `step(actions)`.
    horizon
        Steps of an episode at most; one that is longer is cut off there.
    reward_range
        The least and the largest reward of a step: one pair, or one for each agent.
    thresholds : [k]
        What each cost may be at most, summed over an episode; no constraints unless given.
    cost_range
        The least and the largest cost of a step: one pair, or one for each constraint.
    costs
        What a step costs, by an `EnvStep`; read from the infos unless given.
    num_actions
        Of each agent; read from the action spaces unless given.
    markov
        Whether what all agents observe together is the state: given it and the step, what follows does not depend on
        the past. Without it there is no upper bound.
    memory
        Whether the judged policy remembers; then it is judged by episodes alone, without an upper bound. A policy with
        a method `reset` is reset at the beginning of every episode.
    own
        Whether a deviation may look at the agent's own observation only, instead of everything that is observed.
    max_states
        With more different observations than this there is no upper bound.

    Examples
    --------
    >>> class Coin:
    ...     '''One agent guesses a coin.'''
    ...     def reset(self, rng):
    ...         self.coin = int(rng.integers(2))
    ...         return self.coin
    ...     def step(self, actions):
    ...         return 0, [float(actions[0] == self.coin)], [], True
    >>> world = EnvironmentWorld(Coin(), horizon=1, reward_range=(0, 1), num_actions=(2,))
    >>> seen = world.play(world.prepared(lambda agent, coin, step: 1 - coin), 10, np.random.default_rng(1))
    >>> float(seen.returns.sum())
    0.0
    """

    def __init__(
        self,
        env: Any,
        *,
        horizon: int,
        reward_range: Any,
        thresholds: Any = (),
        cost_range: Any = (0.0, 1.0),
        costs: CostFunction = reported_costs,
        num_actions: Sequence[int] | None = None,
        markov: bool = True,
        memory: bool = False,
        own: bool = False,
        max_states: int = MAX_STATES,
    ) -> None:
        self.env = env
        self.thresholds = numbers("thresholds", thresholds).reshape(-1)
        k = len(self.thresholds)
        self.num_actions = _num_actions(env) if num_actions is None else tuple(int(each) for each in num_actions)
        self.episodic: Episodic
        if hasattr(env, "possible_agents"):
            kind = TurnEpisodes if hasattr(env, "agent_iter") else ParallelEpisodes
            self.episodic = kind(env, costs, k)
        elif hasattr(env, "reset") and hasattr(env, "step"):
            self.episodic = OwnEpisodes(env, len(self.num_actions))
        else:
            raise SimulatorError(f"a {type(env).__name__} is no environment; reset and step are required.")
        if horizon < 1:
            raise SimulatorError(f"horizon is {horizon}; at least one step is required.")
        self.horizon = int(horizon)
        self.reward_bounds = _ranges("reward_range", reward_range, len(self.episodic.agents))
        self.cost_bounds = _ranges("cost_range", cost_range, k)
        self.names = Names(agents=tuple(str(agent) for agent in self.episodic.agents))
        self.own, self.markov, self.memory, self.max_states = own, markov, memory, max_states
        self.may_end = True
        self.num_states: int | None = None
        self.initial: FloatArray | None = None
        self._joint: dict[Hashable, int] = {}
        self._own: list[dict[Hashable, int]] = [{} for _ in self.episodic.agents]
        self.overflowed = False
        self._policy_object: Any = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What samples cannot tell."""
        found = ["rewards and costs of a step stay within the declared ranges"]
        if self.markov:
            found.append("what all agents observe together, and the step, is the state of the environment")
        return tuple(found)

    @property
    def obstacle(self) -> Vacuity | None:
        """What stands against an upper bound here, and what would help."""
        if self.memory:
            return Vacuity(
                "the policy has memory, so that the agents who deviate do not face a Markov decision process",
                "an environment whose observations include what the policy remembers",
            )
        if not self.markov:
            return Vacuity(
                "the observations are not declared to be the state (markov=True)",
                "markov=True, if given what all agents observe and the step the past does not matter; or observations "
                "that include what is hidden",
            )
        if self.overflowed:
            return Vacuity(
                f"more than {self.max_states:,} different observations were met: they are taken to be continuous",
                "observations that are rounded to fewer values in a wrapper, or a larger max_states if they are finite",
            )
        return None

    def prepared(self, policy: Any) -> PolicyFunction:
        """Return a policy as a function of (number of the agent, observation, step)."""
        self._policy_object = policy
        return policy_function(policy, self.episodic.agents)

    def play(
        self,
        policy: PolicyFunction,
        episodes: int,
        rng: np.random.Generator,
        *,
        agent: int = 0,
        deviation: Deviating | None = None,
    ) -> Seen:
        """Play episodes one after another."""
        n, k, horizon = len(self.episodic.agents), len(self.thresholds), self.horizon
        returns, paid = np.zeros((n, episodes)), np.zeros((k, episodes))
        states, own = (np.full((horizon + 1, episodes), ENDED, dtype=np.int64) for _ in range(2))
        actions, rewards = np.zeros((horizon, episodes), dtype=np.int64), np.zeros((horizon, episodes))
        costs = np.zeros((k, horizon, episodes))
        for b in range(episodes):
            self._reset_policy()
            seen = self.episodic.begin(rng)
            states[0, b], own[0, b] = self._numbers(seen, agent)
            for h in range(horizon):
                if not seen:
                    break
                chosen = self._choose(policy, seen, h=h, rng=rng, agent=agent, deviation=deviation, own=int(own[h, b]))
                turned = self.episodic.step(chosen)
                check_ranges("the reward of agent", turned.rewards, self.reward_bounds)
                check_ranges("the cost of constraint", turned.costs, self.cost_bounds)
                actions[h, b], rewards[h, b], costs[:, h, b] = chosen[agent], turned.rewards[agent], turned.costs
                returns[:, b] += turned.rewards
                paid[:, b] += turned.costs
                seen = turned.observations
                states[h + 1, b], own[h + 1, b] = self._numbers(seen, agent)
        return Seen(returns, paid, states, own, actions, rewards, costs)

    def _reset_policy(self) -> None:
        reset = getattr(self._policy_object, "reset", None)
        if self.memory and callable(reset):
            reset()

    def _numbers(self, seen: Observations, agent: int) -> tuple[int, int]:
        """Return the number of the state, and of what one agent's deviation may look at."""
        if not seen:
            return ENDED, ENDED
        state = self._number(joint_observation(seen), self._joint)
        if not self.own:
            return state, state
        name = self.episodic.agents[agent]
        return state, self._number(hashable(seen.get(name, "gone")), self._own[agent])

    def _number(self, key: Hashable, known: dict[Hashable, int]) -> int:
        if key not in known:
            if len(known) >= self.max_states:
                self.overflowed = True
                return self.max_states
            known[key] = len(known)
        return known[key]

    def _choose(
        self,
        policy: PolicyFunction,
        seen: Observations,
        *,
        h: int,
        rng: np.random.Generator,
        agent: int,
        deviation: Deviating | None,
        own: int,
    ) -> list[int]:
        chosen = []
        for i, name in enumerate(self.episodic.agents):
            count = self.num_actions[i]
            if name not in seen:
                chosen.append(0)
            elif i == agent and deviation is not None and not callable(deviation):
                # What the deviation does where it was not planned for: anything.
                known = own < deviation.shape[1]
                chosen.append(draw(deviation[h, own] if known else np.full(count, 1 / count), rng))
            else:
                function = deviation if i == agent and callable(deviation) else policy
                where = f"the policy of {name} answers {{}} at step {h}"
                answer = function(i, observed(seen[name]), h)
                chosen.append(draw(action_probabilities(answer, count, where), rng))
        return chosen


def observed(seen: Any) -> Any:
    """Return what a policy is called with: in AEC environments the observation without whose turn it is."""
    return seen["observation"] if isinstance(seen, Mapping) and set(seen) == {"acting", "observation"} else seen


def _num_actions(env: Any) -> tuple[int, ...]:
    if not hasattr(env, "possible_agents"):
        raise SimulatorError(
            "the environment does not say how many actions there are: give num_actions, one per agent."
        )
    sizes = [getattr(env.action_space(agent), "n", None) for agent in env.possible_agents]
    known = tuple(int(size) for size in sizes if size is not None)
    if len(known) < len(sizes):
        raise SimulatorError("an agent has no discrete actions (a space with `n`); those alone can be judged.")
    return known


def _ranges(name: str, given: Any, number: int) -> FloatArray:
    """Return ranges of a step: [number, 2]."""
    table = numbers(name, given, error=SimulatorError)
    if table.shape not in ((2,), (number, 2)):
        raise SimulatorError(f"{name} has shape {list(table.shape)}; a pair (least, largest), or {number} of them.")
    full = np.broadcast_to(table, (number, 2)).astype(np.float64)
    if (full[:, 0] > full[:, 1]).any():
        raise SimulatorError(f"{name} is {given!r}; the least must not be larger than the largest.")
    return full
