"""Environments with PettingZoo's parallel API, without a dependency: anything that has its methods will do.

`from_parallel_env` walks through a deterministic environment with finitely many states, and returns it as a
`JointGame`. `LearnableEnv` hands any other environment, random ones too, to the learners. The other direction is
`cmpg.interop.parallel_env`.

The state of the game is what all agents observe together, so a policy of the game may look at everybody's
observations. That is what the paper assumes; agents who see less need a `LocalGame`.

Guarantee of `from_parallel_env`: each state is entered twice at each step, from two resets with different seeds and
along different paths where there are any, and every joint action is tried from both. Where the two differ, the
environment is random or its observations hide something, and GameError says where. Where they agree, the tables are
those of the environment, unless both runs drew alike.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, numbers
from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame

Observations = Mapping[Any, Any]
CostFunction = Callable[[Observations, Mapping[Any, int], Mapping[Any, Any]], Sequence[float]]
"""What a step costs, one number per constraint: of what was observed before, the actions, and the infos after."""

ENDED: Hashable = "ended"
SEEDS = range(20)
"""The environment must begin alike with all of these; the first and the last are followed."""


class ParallelEnv(Protocol):
    """What is used of the parallel API."""

    possible_agents: Sequence[Any]
    agents: Sequence[Any]

    def action_space(self, agent: Any) -> Any:
        """Return a space with `n` actions."""

    def reset(self, seed: int | None = None) -> tuple[Observations, Mapping[Any, Any]]:
        """Begin, and return observations and infos."""

    def step(self, actions: Mapping[Any, int]) -> tuple[Any, Any, Any, Any, Any]:
        """Return observations, rewards, terminations, truncations, infos: one entry per agent each."""


def joint_observation(observations: Observations) -> Hashable:
    """Return what all agents observe, as one key; arrays count by their entries."""
    return tuple((agent, _hashable(seen)) for agent, seen in observations.items()) or ENDED


def _hashable(seen: Any) -> Hashable:
    if isinstance(seen, Mapping):
        return tuple((name, _hashable(part)) for name, part in seen.items())
    if isinstance(seen, (list, tuple)):
        return tuple(_hashable(part) for part in seen)
    plain = np.asarray(seen).tolist()
    return _hashable(plain) if isinstance(plain, list) else plain


@dataclass(frozen=True, eq=False)
class Enumerated:
    """An environment as a game, and the observations that its states stand for."""

    game: JointGame
    keys: tuple[Hashable, ...]  # [S]

    def state_of(self, observations: Observations) -> int:
        """Return the number of the state in which the agents observe this."""
        key = joint_observation(observations)
        if key not in self.keys:
            raise GameError(f"no state has the observations {key!r}; the environment was not seen there.")
        return self.keys.index(key)


def from_parallel_env(
    env: ParallelEnv, *, costs: CostFunction, thresholds: Any, horizon: int, max_states: int = 10_000
) -> Enumerated:
    """Walk through a deterministic environment, and return it as a joint game.

    Parameters
    ----------
    env
        With discrete actions. It is copied at every state, by `copy.deepcopy`, and left as it is.
    costs
        What a step costs; the parallel API has no place for it.
    thresholds : [k]
        What each cost may be at most, summed over an episode.
    horizon
        Steps to look at. An environment that ends before stays ended, without rewards or costs.
    max_states
        More states than this are refused.

    Raises
    ------
    GameError
        The environment is random, hides part of its state, or is too large.
    """
    budgets = numbers("thresholds", thresholds)
    agents = list(env.possible_agents)
    sizes = tuple(int(env.action_space(agent).n) for agent in agents)
    walk = _Walk(agents, sizes, costs, len(budgets))
    keys: dict[Hashable, int] = {}
    layer = {key: copies for key, copies in [_begin(env)]}
    layers: list[dict[int, list[_Outcome]]] = []
    for step in range(horizon):
        outcomes = {keys.setdefault(key, len(keys)): walk.outcomes(key, copies, step) for key, copies in layer.items()}
        layers.append(outcomes)
        layer = _next_layer(outcomes)
        if len(keys) > max_states:
            raise GameError(
                f"there are more than {max_states} states by step {step}; the joint game would be too large."
            )
    for key in layer:  # where the last step leads to
        keys.setdefault(key, len(keys))
    return Enumerated(_tabulated(layers, keys, walk, thresholds=budgets), tuple(keys))


def _begin(env: ParallelEnv) -> tuple[Hashable, list[_Copy]]:
    copies = []
    for seed in SEEDS:
        fresh = copy.deepcopy(env)
        observations, _ = fresh.reset(seed=seed)
        copies.append(_Copy(fresh, dict(observations)))
    first, *others = (joint_observation(each.observations) for each in copies)
    if any(second != first for second in others):
        second = next(other for other in others if other != first)
        raise GameError(
            f"the environment begins at {first!r} with one seed and at {second!r} with another: it is random."
        )
    return first, [copies[0], copies[-1]]


@dataclass(frozen=True, eq=False)
class _Copy:
    """An environment that stands in a state."""

    env: ParallelEnv
    observations: Observations


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Where a joint action leads, and what it brings."""

    key: Hashable
    rewards: tuple[float, ...]
    costs: tuple[float, ...]
    copies: tuple[_Copy, ...]

    @property
    def seen(self) -> tuple[Hashable, ...]:
        return self.key, self.rewards, self.costs


@dataclass(frozen=True, eq=False)
class _Walk:
    """How joint actions are tried."""

    agents: list[Any]
    sizes: tuple[int, ...]
    costs: CostFunction
    num_constraints: int

    def outcomes(self, key: Hashable, copies: Sequence[_Copy], step: int) -> list[_Outcome]:
        """Try all joint actions from every copy; the copies must agree."""
        if key == ENDED:
            nothing = _Outcome(ENDED, (0.0,) * len(self.agents), (0.0,) * self.num_constraints, tuple(copies))
            return [nothing] * int(np.prod(self.sizes))
        results = []
        for joint in itertools.product(*map(range, self.sizes)):
            first, second = (self._try(each, joint) for each in copies)
            if first.seen != second.seen:
                raise GameError(
                    f"at step {step} in state {key!r}, the joint action {joint} led to {first.seen} and to "
                    f"{second.seen}: the environment is random, or its observations hide part of its state. "
                    "Learn it from samples instead (LearnableEnv)."
                )
            results.append(_Outcome(first.key, first.rewards, first.costs, (*first.copies, *second.copies)))
        return results

    def _try(self, before: _Copy, joint: Sequence[int]) -> _Outcome:
        env = copy.deepcopy(before.env)
        actions = {agent: action for agent, action in zip(self.agents, joint, strict=True) if agent in env.agents}
        observations, rewards, _, _, infos = env.step(actions)
        alive = {agent: observations[agent] for agent in env.agents}
        paid = tuple(float(cost) for cost in self.costs(before.observations, actions, infos))
        if len(paid) != self.num_constraints:
            raise GameError(f"costs returned {len(paid)} numbers; there are {self.num_constraints} thresholds.")
        got = tuple(float(rewards.get(agent, 0.0)) for agent in self.agents)
        return _Outcome(joint_observation(alive), got, paid, (_Copy(env, alive),))


def _next_layer(outcomes: Mapping[int, Sequence[_Outcome]]) -> dict[Hashable, list[_Copy]]:
    """Keep two copies of each state that comes next: the first that came, and the last, by another path if any."""
    layer: dict[Hashable, list[_Copy]] = {}
    for found in itertools.chain.from_iterable(outcomes.values()):
        first = layer.get(found.key, [found.copies[0]])[0]
        layer[found.key] = [first, found.copies[-1]]
    return layer


def _tabulated(
    layers: Sequence[Mapping[int, Sequence[_Outcome]]],
    keys: Mapping[Hashable, int],
    walk: _Walk,
    *,
    thresholds: FloatArray,
) -> JointGame:
    """Fill tables [H, S, *A]; a state that cannot be entered at a step stays as it is there, and brings nothing."""
    states, joint = len(keys), int(np.prod(walk.sizes))
    rewards = np.zeros((len(walk.agents), len(layers), states, joint))
    costs = np.zeros((len(thresholds), len(layers), states, joint))
    transition = []
    for h, layer in enumerate(layers):
        ahead = np.repeat(np.arange(states), joint)
        for state, outcomes in layer.items():
            for a, found in enumerate(outcomes):
                ahead[state * joint + a] = keys[found.key]
                rewards[:, h, state, a] = found.rewards
                costs[:, h, state, a] = found.costs
        transition.append(sp.csr_array((np.ones(len(ahead)), ahead, np.arange(len(ahead) + 1)), (len(ahead), states)))
    shape = (len(layers), states, *walk.sizes)
    return JointGame(
        transition=transition,
        rewards=rewards.reshape(-1, *shape),
        costs=costs.reshape(-1, *shape),
        thresholds=thresholds,
        initial=np.eye(states)[0],
        horizon=len(layers),
        agent_names=tuple(str(agent) for agent in walk.agents),
        state_names=tuple(str(key) for key in keys),
    )


class LearnableEnv:
    """An environment as `EnvironmentSimulator` wants it, for the learners; it may be random.

    Parameters
    ----------
    env
        With discrete actions, whose episodes last as long as the horizon that is declared to the simulator.
    state
        The number of the state in which the agents observe something.
    costs
        What a step costs.
    """

    def __init__(self, env: ParallelEnv, *, state: Callable[[Observations], int], costs: CostFunction) -> None:
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
        costs = [float(cost) for cost in self._costs(self._seen, named, infos)]
        self._seen = observations
        return self._state(observations), [float(rewards[agent]) for agent in self._agents], costs, not self._env.agents
