"""Where a policy is judged by playing it: episodes, and what one agent sees of them.

A world has agents, a horizon, thresholds, and the ranges that rewards and costs of a step stay in. They are declared,
because no number of samples proves them; a reward outside of its range ends the audit with an error. `play` plays
episodes of the judged policy, or of one in which a single agent deviates, and returns what every episode brought and
cost, and what that agent met: its states, its actions, its rewards and the costs, step by step.

`GameWorld` is a known game that plays the unknown one, all episodes side by side. `EnvironmentWorld` steps an
environment (`cmpg.judging.environments`), and gives numbers to observations as they are met.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.errors import SimulatorError, UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game, Names, binds_of
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.games.players import PolicyTable
from cmpg.judging.policies import policy_function
from cmpg.learning.truncation import reward_ends
from cmpg.policy import JointPolicy

ENDED = -1
"""The state after the end of an episode."""

MAX_SIDE_BY_SIDE = 8192
"""Episodes of a known game that are played at once."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Episodes: what each brought and cost, and what one agent met in them."""

    returns: FloatArray  # [n, B]
    costs: FloatArray  # [k, B]
    states: IntArray  # [H + 1, B]: the state of the agent's problem, or ENDED
    own: IntArray  # [H + 1, B]: what its deviations may look at; the same, unless it sees less than the state
    actions: IntArray  # [H, B]
    rewards: FloatArray  # [H, B]: of the agent
    step_costs: FloatArray  # [k, H, B]

    @property
    def episodes(self) -> int:
        """B."""
        return int(self.returns.shape[1])


def joined(parts: list[Seen]) -> Seen:
    """Return several batches as one."""
    names = ("returns", "costs", "states", "own", "actions", "rewards", "step_costs")
    return Seen(**{name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names})


Deviating = FloatArray | Callable[[Any, Any, int], Any]
"""A deviation: a table [H, S, A] over what the agent may look at, or a function of (agent, observation, step)."""


@dataclass(frozen=True)
class Vacuity:
    """Why an upper bound says nothing of use, and what would help."""

    reason: str
    remedy: str
    upper: float = math.inf
    allowed: float = math.inf  # what the declared ranges and the agent's own value allow it to gain


class PlayedWorld(Protocol):
    """Something that policies can be played in."""

    num_actions: tuple[int, ...]  # of each agent
    horizon: int  # the steps of an episode at most
    thresholds: FloatArray  # α: [k]
    reward_bounds: FloatArray  # [n, 2]: the least and the largest reward of a step
    cost_bounds: FloatArray  # [k, 2]
    names: Names
    may_end: bool  # whether episodes can be shorter than the horizon
    initial: FloatArray | None  # the law of the first state of each agent's problem, if it is one for all and known
    num_states: int | None  # how many states there are at most, if that is known beforehand

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted and samples cannot show."""

    @property
    def obstacle(self) -> Vacuity | None:
        """What stands against an upper bound here, if anything does."""

    def prepared(self, policy: Any) -> Any:
        """Return a policy as `play` takes it, or raise if it cannot be played here."""

    def play(
        self,
        policy: Any,
        episodes: int,
        rng: np.random.Generator,
        *,
        agent: int = 0,
        deviation: Deviating | None = None,
    ) -> Seen:
        """Play episodes of a prepared policy, in which one agent may deviate; return them as that agent sees them."""


class GameWorld:
    """A known game that can only be played, as far as the judge is concerned.

    Parameters
    ----------
    game
        With a finite horizon, of any form that can be played.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> world = GameWorld(game)
    >>> seen = world.play(world.prepared(game.uniform_policy()), 1000, np.random.default_rng(0))
    >>> world.horizon, seen.returns.shape
    (1, (2, 1000))
    """

    may_end = False
    assumptions: tuple[str, ...] = ()  # the game is played as it is
    obstacle: Vacuity | None = None

    def __init__(self, game: Game) -> None:
        if game.horizon is None:
            advice = "Judge it as a known game, or cut it off after a number of steps."
            raise UnsupportedError(type(game).__name__, "with a discount has episodes without an end", advice)
        if not isinstance(game, (JointGame, CountingGame, LocalGame)):
            advice = "Wrap your simulator as an EnvironmentWorld."
            raise UnsupportedError(type(game).__name__, "has no known ranges of rewards and costs", advice)
        if not binds_of(game).all():
            advice = "Judge it as a known game."
            raise UnsupportedError(type(game).__name__, "has constraints that bind some agents only", advice)
        shapes = game.policy_shapes
        self.game, self.names, self.thresholds, self.horizon = game, game.names, game.thresholds, shapes[0][0]
        self.num_actions = tuple(shape[2] for shape in shapes)
        self.num_states: int | None = max(shape[1] for shape in shapes)
        self.initial: FloatArray | None = None if isinstance(game, LocalGame) else game.initial
        self.reward_bounds, self.cost_bounds = _payoff_bounds(game)

    def prepared(self, policy: Any) -> JointPolicy:
        """Return a policy as tables."""
        if isinstance(policy, JointPolicy):
            policy.check_fits(self.game.policy_shapes)
            return policy.floats()
        names = self.game.names.all_agents(self.game.num_agents)
        return JointPolicy.from_callable(self.game.policy_shapes, policy_function(policy, names))

    def play(
        self,
        policy: JointPolicy,
        episodes: int,
        rng: np.random.Generator,
        *,
        agent: int = 0,
        deviation: Deviating | None = None,
    ) -> Seen:
        """Play episodes side by side."""
        if deviation is not None:
            policy = policy.replace(agent, self._table(agent, deviation))
        table, stepper = PolicyTable.of(policy), self.game.stepper()
        left, parts = episodes, []
        while left:
            now = min(left, MAX_SIDE_BY_SIDE)
            parts.append(self._batch(table, stepper, now, rng, agent))
            left -= now
        return joined(parts)

    def _table(self, agent: int, deviation: Deviating) -> FloatArray:
        shape = self.game.policy_shapes[agent]
        if not callable(deviation):
            table = np.full(shape, 1 / shape[2])  # where it was not planned for, it plays anything
            known = min(deviation.shape[1], shape[1])
            table[:, :known] = deviation[:, :known]
            return table
        return JointPolicy.from_callable([shape], lambda _, state, step: deviation(agent, state, step))[0]

    def _batch(self, table: PolicyTable, stepper: Any, count: int, rng: np.random.Generator, agent: int) -> Seen:
        horizon, k = self.horizon, len(self.thresholds)
        states = np.empty((horizon + 1, count), dtype=np.int64)
        actions, rewards = np.empty((horizon, count), dtype=np.int64), np.empty((horizon, count))
        costs, returns = np.empty((k, horizon, count)), np.zeros((self.game.num_agents, count))
        now = stepper.begin(count, rng)
        for h in range(horizon):
            chosen = table.draw(h, now, rng)
            states[h], actions[h] = now[0 if len(now) == 1 else agent], chosen[agent]
            stepped = stepper.step(h, now, chosen, rng)
            rewards[h], costs[:, h] = stepped.rewards[agent], stepped.costs
            returns += stepped.rewards
            now = stepped.states
        states[horizon] = now[0 if len(now) == 1 else agent]
        return Seen(returns, costs.sum(axis=1), states, states, actions, rewards, costs)


def _payoff_bounds(game: JointGame | CountingGame | LocalGame) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest reward of a step for each agent, and of each cost: [n, 2], [k, 2]."""
    if isinstance(game, JointGame):
        return _ends(game.rewards), _ends(game.costs)
    if isinstance(game, CountingGame):
        least, most = map(_ends, reward_ends(game))
        return np.stack([least[:, 0], most[:, 1]], axis=1), _ends(game.costs)
    uses = _most_uses(game)
    delay = game.delay[..., 1:]
    early, late = uses * min(float(delay.min()), 0.0), uses * max(float(delay.max()), 0.0)
    rewards = np.array([[agent.reward.min() - late, agent.reward.max() - early] for agent in game.agents])
    # What a resource costs at load m is shared by its m users, of whom there are at most n times what one uses.
    users = np.maximum(np.arange(game.num_agents + 1.0), 1.0)
    shares = (game.load_costs - game.load_costs[..., :1]) / users
    costs = _ends(game.load_costs[..., 0].sum(axis=2)) + game.num_agents * uses * _ends(shares)
    for agent in game.agents:
        costs = costs if agent.costs is None else costs + _ends(agent.costs)
    return rewards, costs


def _ends(table: FloatArray) -> FloatArray:
    """Return the least and the greatest entry of each table: [m, 2]."""
    if not len(table):
        return np.zeros((0, 2))
    flat = table.reshape(len(table), -1)
    return np.stack([flat.min(axis=1), flat.max(axis=1)], axis=1)


def _most_uses(game: LocalGame) -> int:
    """Return how many resources an agent uses at most in a step."""
    return max(int(np.diff(each.indptr).max(initial=0)) for agent in game.agents for each in agent.uses)


def check_ranges(name: str, seen: FloatArray, bounds: FloatArray) -> None:
    """Raise if a payoff of a step [m] lies outside of its declared range [m, 2]."""
    room = 1e-9 * np.maximum(np.abs(bounds).max(axis=1, initial=0.0), 1.0)
    bad = np.flatnonzero(~((seen >= bounds[:, 0] - room) & (seen <= bounds[:, 1] + room)))
    if len(bad):
        i = int(bad[0])
        raise SimulatorError(
            f"{name} {i} of a step is {seen[i]}; its declared range is [{bounds[i, 0]:g}, {bounds[i, 1]:g}]. Declare a "
            "wider one: what is proved rests on it."
        )
