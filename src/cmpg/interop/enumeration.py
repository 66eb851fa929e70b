"""From an environment with PettingZoo's parallel API to a game; anything that has its methods will do.

`from_parallel_env` plays every joint action in every state that it finds, and writes down what came of it as a
`JointGame`. A state is what all agents observe together at a step, so a policy of the game may look at the
observations of all. That is what the paper assumes; agents who see less need a `LocalGame`.

An environment is entered only by `reset(seed)` and the actions that lead to a state, never by a copy of it: copies of
environments that follow PettingZoo's EzPickle convention start from the beginning, and would be taken for another game.

Guarantee, if no randomness is declared: every replay has a seed of its own, every state is entered twice at each step,
by different actions if there are any, and every joint action is tried from both. If two of these differ, the
environment is random or its observations hide something, and GameError says where. If they all agree, the tables are
those of the environment, unless randomness never showed.

With `samples_per_entry`, randomness is declared: every joint action is played that often in every state, and the tables
are what came of it on average. What is proved about such a game is proved about the estimate.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, numbers
from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame
from cmpg.games.names import Legend
from cmpg.judging.environments import CostFunction as CostFunction
from cmpg.judging.environments import EnvStep as EnvStep
from cmpg.judging.environments import Observations as Observations
from cmpg.judging.environments import joint_observation as joint_observation
from cmpg.judging.environments import reported_costs as reported_costs
from cmpg.judging.policies import policy_function
from cmpg.policy import JointPolicy
from cmpg.summaries import counted, fields_line

ENDED: Hashable = "ended"

Joint = tuple[int, ...]


class ParallelAPI(Protocol):
    """What is used of the parallel API."""

    possible_agents: Sequence[Any]
    agents: Sequence[Any]

    def action_space(self, agent: Any) -> Any:
        """Return a space with `n` actions."""

    def reset(self, seed: int | None = None) -> tuple[Observations, Mapping[Any, Any]]:
        """Begin, and return observations and infos."""

    def step(self, actions: Mapping[Any, int]) -> tuple[Any, Any, Any, Any, Any]:
        """Return observations, rewards, terminations, truncations, infos: one entry per agent each."""


@dataclass(frozen=True, eq=False)
class EnumeratedEnv:
    """An environment as a game, and the observations that its states stand for.

    Examples
    --------
    >>> from cmpg.interop.parallel_env import to_parallel_env
    >>> from cmpg.scenarios import counter_example
    >>> found = from_parallel_env(to_parallel_env(counter_example()), horizon=1, thresholds=[0.5])
    >>> found.game.num_states, found.agents, found.samples_per_entry is None
    (2, ('agent 0', 'agent 1'), True)
    """

    game: JointGame
    keys: tuple[Hashable, ...]  # [S]
    samples_per_entry: int | None = None  # None: the tables are exact
    observations: tuple[Observations, ...] = ()  # [S]: what each agent observes, as the environment returned it
    agents: tuple[Any, ...] = ()  # [n]: as the environment names them

    __repr__ = fields_line

    def state_of(self, observations: Observations) -> int:
        """Return the number of the state in which the agents observe this."""
        key = joint_observation(observations)
        if key not in self._numbers:
            raise GameError(f"no state has the observations {key!r}; the environment was not seen there.")
        return self._numbers[key]

    def states_of(self, observations: Observations) -> list[int]:
        """Return the same number for every agent: [n]."""
        return [self.state_of(observations)] * self.game.num_agents

    def policy(self, function: Any) -> JointPolicy:
        """Write a policy for the environment down as tables of the game; `replay` says whether they do the same.

        Parameters
        ----------
        function
            A function of (number of the agent, its own observation, step), an object with `predict`, a torch module, or
            a mapping from agents to these.
        """
        chosen = policy_function(function, self.agents)
        gone = [{agent for agent in self.agents if agent not in seen} for seen in self.observations]

        def play(agent: int, state: int, step: int) -> Any:
            name, actions = self.agents[agent], self.game.policy_shapes[agent][2]
            # An agent that is gone plays anything: it does not matter.
            if name in gone[state]:
                return np.full(actions, 1 / actions)
            return chosen(agent, self.observations[state][name], step)

        return JointPolicy.from_callable(self.game.policy_shapes, play)

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {key: number for number, key in enumerate(self.keys)}


def from_parallel_env(
    env: ParallelAPI,
    *,
    horizon: int,
    thresholds: Any = (),
    costs: CostFunction = reported_costs,
    reward: Callable[[Any], float] | None = None,
    samples_per_entry: int | None = None,
    max_states: int = 10_000,
    max_episodes: int = 1_000_000,
) -> EnumeratedEnv:
    """Play an environment through, and return it as a joint game.

    Parameters
    ----------
    env
        With discrete actions and finitely many observations. It is reset again and again.
    horizon
        Steps to look at. An environment that ends before stays ended, without rewards or costs.
    thresholds : [k]
        What each cost may be at most, summed over an episode; no constraints unless given.
    costs
        What a step costs; read from the infos unless given.
    reward
        What an agent's reward is worth, for environments whose rewards are vectors (as MOMAland's are); the others of
        its entries can be costs.
    samples_per_entry
        Declares that the environment is random, and how often to play each joint action in each state at each step.
    max_states
        More states than this are refused.
    max_episodes
        More episodes than this are refused, if the environment is random.

    Raises
    ------
    GameError
        The environment is random and that was not declared, hides part of its state, or is too large.

    Examples
    --------
    >>> from cmpg.interop.parallel_env import to_parallel_env
    >>> from cmpg.scenarios import counter_example
    >>> game = from_parallel_env(to_parallel_env(counter_example()), horizon=1, thresholds=[0.5]).game
    >>> game.rewards[0, 0, 0].tolist()
    [[3.0, 2.0], [2.0, 4.0]]
    """
    player = _Player(env, costs, reward or _scalar, numbers("thresholds", thresholds), horizon, max_states)
    if samples_per_entry is None:
        _walk_through(player)
    else:
        _sample(player, samples_per_entry, max_episodes)
    seen = tuple(player.observed[key] for key in player.keys)
    game = _tabulated(player, samples_per_entry)
    return EnumeratedEnv(game, tuple(player.keys), samples_per_entry, seen, tuple(player.agents))


def _scalar(reward: Any) -> float:
    if np.ndim(reward) != 0:
        raise GameError(
            f"a reward is {reward!r}, which is more than one number. Say what it is worth: reward=lambda vector: …"
        )
    return float(reward)


@dataclass(frozen=True)
class _Outcome:
    """Where a joint action led, and what it brought."""

    key: Hashable
    rewards: tuple[float, ...]
    costs: tuple[float, ...]


class _Player:
    """An environment, how it is entered, and what came of the joint actions that were tried."""

    def __init__(
        self,
        env: ParallelAPI,
        costs: CostFunction,
        reward: Callable[[Any], float],
        thresholds: FloatArray,
        horizon: int,
        max_states: int,
    ) -> None:
        self.env, self.costs, self.reward = env, costs, reward
        self.thresholds, self.horizon, self.max_states = thresholds, horizon, max_states
        self.agents = list(env.possible_agents)
        self.sizes = tuple(int(env.action_space(agent).n) for agent in self.agents)
        self.keys: dict[Hashable, int] = {}
        self.begins: dict[Hashable, int] = {}  # how often each state came first
        self.found: list[dict[tuple[Hashable, Joint], list[_Outcome]]] = [{} for _ in range(horizon)]
        self.observed: dict[Hashable, Observations] = {ENDED: {}}
        self._seeds = itertools.count()
        self.episodes = 0
        self._seen: Observations = {}

    @property
    def joint_actions(self) -> Iterator[Joint]:
        return itertools.product(*map(range, self.sizes))

    def begin(self) -> Hashable:
        """Reset with a seed that was not used before."""
        self.episodes += 1
        self._seen, _ = self.env.reset(seed=next(self._seeds))
        self._seen = {agent: self._seen[agent] for agent in self.env.agents}
        return self._key()

    def _key(self) -> Hashable:
        """Return the key of what is observed now, and keep the observations that it stands for."""
        key = joint_observation(self._seen)
        if key not in self.observed:
            self.observed[key] = {agent: copy.deepcopy(seen) for agent, seen in self._seen.items()}
        return key

    def play(self, joint: Joint) -> _Outcome:
        """Play one joint action; nothing happens after the end."""
        if not self._seen:
            return _Outcome(ENDED, (0.0,) * len(self.agents), (0.0,) * len(self.thresholds))
        actions = {agent: a for agent, a in zip(self.agents, joint, strict=True) if agent in self.env.agents}
        observations, rewards, _, _, infos = self.env.step(actions)
        paid = self._checked_costs(EnvStep(self._seen, actions, rewards, infos))
        got = tuple(self.reward(rewards[agent]) if agent in rewards else 0.0 for agent in self.agents)
        self._seen = {agent: observations[agent] for agent in self.env.agents}
        return _Outcome(self._key(), got, paid)

    def _checked_costs(self, step: EnvStep) -> tuple[float, ...]:
        if not len(self.thresholds):
            return ()
        paid = tuple(float(cost) for cost in self.costs(step))
        if len(paid) != len(self.thresholds):
            raise GameError(f"costs returned {len(paid)} numbers; there are {len(self.thresholds)} thresholds.")
        return paid

    def count(self, key: Hashable, step: int) -> None:
        """Give a state its number."""
        self.keys.setdefault(key, len(self.keys))
        if len(self.keys) > self.max_states:
            raise GameError(
                f"there are more than {self.max_states} states by step {step}; the joint game would be too large."
            )


def _walk_through(player: _Player) -> None:
    """Try every joint action from every state of each step, along two paths of actions."""
    first = player.begin()
    layer: dict[Hashable, list[tuple[Joint, ...]]] = {first: [(), ()]}
    player.begins[first] = 1
    for step in range(player.horizon):
        ahead: dict[Hashable, list[tuple[Joint, ...]]] = {}
        for key, paths in layer.items():
            player.count(key, step)
            for joint in player.joint_actions:
                one, other = (_replayed(player, path, joint, first, key) for path in paths)
                if one != other:
                    raise _random(
                        f"at step {step} in state {key!r}, the joint action {joint} led to {one} and to {other}"
                    )
                player.found[step][key, joint] = [one]
                # The first path that leads to a state, and the last, which is another one if there is any.
                ahead[one.key] = [ahead.get(one.key, [(*paths[0], joint)])[0], (*paths[-1], joint)]
        layer = ahead
    for key in layer:
        player.count(key, player.horizon)


def _replayed(player: _Player, path: Sequence[Joint], joint: Joint, first: Hashable, expected: Hashable) -> _Outcome:
    """Enter a state by its path, and play a joint action there."""
    began = player.begin()
    if began != first:
        raise _random(f"the environment begins at {first!r} with one seed, and at {began!r} with another")
    key = began
    for before in path:
        key = player.play(before).key
    if key != expected:
        raise _random(f"the actions {list(path)} led to {expected!r} once, and to {key!r} later")
    return player.play(joint)


def _random(seen: str) -> GameError:
    return GameError(
        f"{seen}: the environment is random, or its observations hide part of its state. "
        "Declare randomness (samples_per_entry=1000), or learn from samples instead (LearnableEnv)."
    )


def _sample(player: _Player, wanted: int, max_episodes: int) -> None:
    """Play episodes, always the joint action that was tried least, until all were tried often enough."""
    if wanted < 1:
        raise GameError(f"samples_per_entry is {wanted}; at least 1 is required.")
    joint_actions = list(player.joint_actions)
    tries: dict[tuple[int, Hashable], FloatArray] = {}
    lacking = 1
    for _ in range(max_episodes):
        key = player.begin()
        player.begins[key] = player.begins.get(key, 0) + 1
        for step in range(player.horizon):
            player.count(key, step)
            if (step, key) not in tries:
                tries[step, key] = np.zeros(len(joint_actions))
                lacking += len(joint_actions)
            a = int(np.argmin(tries[step, key]))
            tries[step, key][a] += 1
            lacking -= tries[step, key][a] == wanted
            outcome = player.play(joint_actions[a])
            player.found[step].setdefault((key, joint_actions[a]), []).append(outcome)
            key = outcome.key
        player.count(key, player.horizon)
        if lacking == 1:
            return
    (step, key), least = min(tries.items(), key=lambda item: item[1].min())
    raise GameError(
        f"after {max_episodes} episodes, step {step} in state {key!r} has seen a joint action {least.min():.0f} times; "
        f"{wanted} are required. Lower samples_per_entry, or learn instead (LearnableEnv)."
    )


def _translation(player: _Player, samples: int | None) -> tuple[tuple[str, str], ...]:
    """Return what was played, cut and assumed."""
    env = getattr(player.env, "metadata", None) or {}
    name = env.get("name") if isinstance(env, Mapping) else None
    played = f"{player.episodes:,} episodes of {name or type(player.env).__name__}"
    last = {each.key for outcomes in player.found[-1].values() for each in outcomes}
    going = len(last - {ENDED})
    time = f"{counted(player.horizon, 'step')}; every episode has ended by then"
    if going:
        time = f"{counted(player.horizon, 'step')}; what comes after is cut, from {going} of {len(last)} states"
    tables = "every joint action tried twice in every state, without a difference: no randomness showed"
    if samples is not None:
        tables = f"averages of {samples} tries or more of each joint action in each state; proofs are about these"
    return (
        ("read", f"{played}: {counted(len(player.agents), 'agent')}, {counted(len(player.keys), 'state')}"),
        ("states", "what all agents observe together; a policy may look at the observations of all"),
        ("time", time),
        ("tables", tables),
        ("assumed", "the next step depends on the observations of this one alone"),
    )


def _tabulated(player: _Player, samples: int | None) -> JointGame:
    """Fill tables [H, S, *A]; a state that cannot be entered at a step stays as it is there, and brings nothing."""
    states, joint = len(player.keys), int(np.prod(player.sizes))
    rewards = np.zeros((len(player.agents), player.horizon, states, joint))
    costs = np.zeros((len(player.thresholds), player.horizon, states, joint))
    transition = []
    for h, layer in enumerate(player.found):
        rows = {s * joint + a: {s: 1.0} for s in range(states) for a in range(joint)}
        for (key, actions), outcomes in layer.items():
            s, a = player.keys[key], int(np.ravel_multi_index(actions, player.sizes))
            rewards[:, h, s, a] = np.mean([each.rewards for each in outcomes], axis=0)
            costs[:, h, s, a] = np.mean([each.costs for each in outcomes], axis=0)
            row: dict[int, float] = {}
            for each in outcomes:
                row[player.keys[each.key]] = row.get(player.keys[each.key], 0.0) + 1.0 / len(outcomes)
            rows[s * joint + a] = row
        data = [probability for row in rows.values() for probability in row.values()]
        columns = [column for row in rows.values() for column in row]
        ends = np.cumsum([0, *(len(row) for row in rows.values())])
        transition.append(sp.csr_array((data, columns, ends), (states * joint, states)))
    shape = (player.horizon, states, *player.sizes)
    initial = np.zeros(states)
    for key, times in player.begins.items():
        initial[player.keys[key]] = times / sum(player.begins.values())
    return JointGame(
        transition=transition,
        rewards=rewards.reshape(-1, *shape),
        costs=costs.reshape(-1, *shape),
        thresholds=player.thresholds,
        initial=initial,
        horizon=player.horizon,
        agent_names=tuple(str(agent) for agent in player.agents),
        state_names=tuple(str(key) for key in player.keys),
        legend=Legend(translation=_translation(player, samples)),
    )
