"""A day of operation: what happens is drawn, or recorded, and plans are made again when something is seen.

`News` say at each step what game the day is, as far as it is known then: cars become known when they plug in, a robot
that has arrived gets its next goal, an incident closes a link. Agents of local games follow the plan in force, see
their states, and a new plan is made at each step at which something is seen that was not certain.

What decides the next state of an agent is one number for each agent and step, drawn before (`Luck`): so a day can be
played again by another plan with the same luck, and a clairvoyant who knows it faces a game without chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import BoolArray, FloatArray, at_step, frozen
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError, InfeasibleError
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.play import entries
from cmpg.games.rest import among
from cmpg.operation.plans import Replan, first_plan, replan
from cmpg.summaries import fields_line


class News(Protocol):
    """Says what is known of the day at each step.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> def late_news(step, states):
    ...     return game if step >= 2 else None
    >>> operate(late_news, horizon=6, thresholds=game.thresholds, epsilon=1e-2).plans[0].at
    2
    """

    def __call__(self, step: int, states: Mapping[str, int]) -> LocalGame | None:
        """Return the game of the whole day as it is known at a step, by the states of its agents; None: no agent yet.

        Where nothing is new, it returns the same object as before.
        """


@dataclass(frozen=True, eq=False)
class Fixed:
    """News of a day of which all is known from the beginning.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> Fixed(game)(3, {}) is game
    True
    """

    game: LocalGame

    def __call__(self, step: int, states: Mapping[str, int]) -> LocalGame:  # noqa: ARG002
        """Return the game."""
        return self.game


class Arrivals:
    """News of a day on which an agent becomes known at the first step at which it could use a resource.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> news = Arrivals(charging())
    >>> news(0, {}) is None, news(12, {}).num_agents < charging().num_agents
    (True, True)
    """

    def __init__(self, game: LocalGame) -> None:
        """Find out when each agent becomes known."""
        self.game = game
        self.first_steps = tuple(_first_use(game, agent) for agent in range(game.num_agents))
        self._known: dict[int, LocalGame] = {}  # by number of agents

    def __call__(self, step: int, states: Mapping[str, int]) -> LocalGame | None:  # noqa: ARG002
        """Return the game of the agents that have come."""
        here = [i for i, first in enumerate(self.first_steps) if first <= step]
        if here and len(here) not in self._known:
            self._known[len(here)] = among(self.game, here)
        return self._known.get(len(here))


class Closure:
    """News of a day on which a resource is closed from a step on, as a link by an incident.

    From then on an action that would use it does what the first action does there that does not use it: to wait, to
    stay, to idle, or to take the first open path.

    Parameters
    ----------
    news
        The game of the day before anything happens, or news of it: of arrivals, or of another closure.
    resource
        By name or number.
    at
        The step from which on it is closed, and from which on that is known.

    Examples
    --------
    >>> from cmpg.scenarios import routing
    >>> city = routing(num_agents=4)
    >>> news = Closure(city, city.all_resource_names[0], at=2)
    >>> news(1, {}) is city, news(2, {}) is news(3, {})
    (True, True)
    """

    def __init__(self, news: News | LocalGame, resource: str | int, at: int) -> None:
        """Take the news as they are; where a game is given, all of it is known."""
        self.news, self.resource, self.at = Fixed(news) if isinstance(news, LocalGame) else news, resource, at
        self._closed: dict[int, tuple[LocalGame, LocalGame]] = {}  # by identity: a game as it was, and closed
        if isinstance(news, LocalGame):
            self._index(news)

    def __call__(self, step: int, states: Mapping[str, int]) -> LocalGame | None:
        """Return the game as it is known at a step."""
        game = self.news(step, states)
        if game is None or step < self.at:
            return game
        if id(game) not in self._closed:
            self._closed[id(game)] = game, self._without(game)
        return self._closed[id(game)][1]

    def _index(self, game: LocalGame) -> int:
        names, resource = game.all_resource_names, self.resource
        if resource not in names and not (isinstance(resource, int) and 0 <= resource < len(names)):
            raise GameError(f"there is no resource {resource!r}; there are {', '.join(names[:3])}, … ({len(names)}).")
        return resource if isinstance(resource, int) else names.index(resource)

    def _without(self, game: LocalGame) -> LocalGame:
        index, kinds = self._index(game), {id(agent): agent for agent in game.agents}
        closed = {key: self._agent(game, agent, index) for key, agent in kinds.items()}
        return game.with_agents([closed[id(agent)] for agent in game.agents])

    def _agent(self, game: LocalGame, agent: LocalAgent, index: int) -> LocalAgent:
        pairs = np.arange(agent.num_states * agent.num_actions)  # of a state and an action
        every = range(game.horizon)
        moves, uses = ([at_step(each, h) for h in every] for each in (agent.transition, agent.uses))
        rewards = np.array(np.broadcast_to(agent.reward, (len(every), *agent.reward.shape[1:])))
        costs = agent.costs
        if costs is not None:
            costs = np.array(np.broadcast_to(costs, (len(costs), len(every), *costs.shape[2:])))
        for h in range(self.at, len(every)):
            shut = np.asarray(uses[h][:, [index]].toarray()[:, 0] > 0)
            table = shut.reshape(agent.num_states, agent.num_actions)
            if table.all(axis=1).any():
                name = game.all_resource_names[index]
                raise GameError(f"{name} cannot be closed: an agent has a state in which every action uses it.")
            instead = pairs // agent.num_actions * agent.num_actions + table.argmin(axis=1).repeat(agent.num_actions)
            rows = np.where(shut, instead, pairs)
            moves[h], uses[h] = moves[h][rows], uses[h][rows]
            rewards[h] = rewards[h].reshape(-1)[rows].reshape(rewards[h].shape)
            if costs is not None:
                costs[:, h] = costs[:, h].reshape(len(costs), -1)[:, rows].reshape(costs[:, h].shape)
        return replace(agent, transition=tuple(moves), uses=tuple(uses), reward=rewards, costs=costs)


def _first_use(game: LocalGame, agent: int) -> int:
    able = game.reach(agent).any(axis=1)
    return int(np.argmax(able)) if able.any() else game.horizon


@dataclass(frozen=True, eq=False)
class Luck:
    """What chance decides, for each agent by name: numbers below one for its first state, its moves and its actions.

    Examples
    --------
    >>> Luck(1)("Ada", 24).shape, bool((Luck(1)("Ada", 24) == Luck(1)("Ada", 24)).all())
    ((49,), True)
    """

    seed: int

    def __call__(self, name: str, horizon: int) -> FloatArray:
        """Return the numbers of one agent: first state, then moves and actions by step: [1 + 2H]."""
        words = [int(each) for each in name.encode()]
        return np.random.default_rng([self.seed, len(words), *words]).random(1 + 2 * horizon)


DEFAULT_LUCK = Luck(0)


@dataclass(frozen=True, eq=False)
class OperatedDay:
    """What a day of operation brought.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> done = operate(Fixed(game), horizon=6, thresholds=game.thresholds, luck=Luck(1), again=False, epsilon=1e-2)
    >>> done.certified, len(done.plans), sorted(done.values)
    (True, 1, ['agent 0', 'agent 1'])
    """

    values: dict[str, float]  # of each agent that came, as it turned out
    costs: FloatArray  # [k], as they turned out
    thresholds: FloatArray  # [k]: α of the day
    plans: tuple[Replan, ...]
    waited: dict[str, int]  # newcomers for whom there was no plan at first: at how many steps
    seconds: tuple[float, ...]  # CPU seconds of each plan

    __repr__ = fields_line

    @property
    def value(self) -> float:
        """The total value, as it turned out."""
        return float(sum(self.values.values()))

    @property
    def certified(self) -> bool:
        """Whether every plan was certified."""
        return all(plan.result.certified for plan in self.plans)


Reserve = Callable[[int], float]
"""Returns the share of the thresholds of the day that no plan may spend at a step; it falls from step to step."""


def no_reserve(step: int) -> float:  # noqa: ARG001
    """Keep nothing back."""
    return 0.0


def operate(
    news: News,
    *,
    horizon: int,
    thresholds: Sequence[float] | FloatArray,
    luck: Luck = DEFAULT_LUCK,
    reserve: Reserve = no_reserve,
    again: bool = True,
    epsilon: float = 1e-3,
    on_plan: Callable[[Replan], None] = lambda _: None,
) -> OperatedDay:
    """Play one day by the plan in force, and plan again whenever something new is seen.

    Parameters
    ----------
    news
        Say at each step what game the day is.
    horizon
        The number of steps of the day.
    thresholds : [k]
        α of the day; those of its games are not used.
    luck
        Decides first states, moves and mixed actions.
    reserve
        What share of the thresholds is kept back for newcomers at each step.
    again
        Whether to plan again where states were uncertain; if not, only where the game changes.
    epsilon
        No agent gains more than this by deviating from a plan.
    on_plan
        Called with each plan.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> day = charging()
    >>> done = operate(Arrivals(day), horizon=24, thresholds=day.thresholds, reserve=lambda h: 0.5 * (1 - h / 24))
    >>> len(done.values) == day.num_agents, done.certified
    (True, True)
    """
    play = _Play(frozen(np.asarray(thresholds, dtype=np.float64)), horizon, luck, epsilon)
    for step in range(horizon):
        known = news(step, play.states)
        if known is None:
            continue
        play.meet(known)
        if known is not play.planned_for or (again and play.uncertain):
            share = float(np.clip(reserve(step), 0.0, 1.0))
            if play.plan(known, step, share):
                on_plan(play.plans[-1])
        play.move(known, step)
    return OperatedDay(play.values, play.costs, play.alpha, tuple(play.plans), play.waited, tuple(play.seconds))


class _Play:
    """A day so far: who is where, what was spent, and which plan is in force."""

    def __init__(self, alpha: FloatArray, horizon: int, luck: Luck, epsilon: float) -> None:
        self.alpha, self.horizon, self.epsilon, self._luck = alpha, horizon, epsilon, luck
        self.planned_for: LocalGame | None = None  # the game of the plan in force
        self.plans: list[Replan] = []
        self.seconds: list[float] = []
        self.waited: dict[str, int] = {}
        self.states: dict[str, int] = {}
        self.values: dict[str, float] = {}
        self.costs = np.zeros(len(alpha))
        self.uncertain = False  # whether a state was seen that was not certain when the plan was made
        self._draws: dict[str, FloatArray] = {}
        self._live: dict[tuple[int, ...], tuple[LocalAgent, BoolArray]] = {}

    def meet(self, game: LocalGame) -> None:
        """Let chance decide in which states newcomers are."""
        for name, agent in zip(_names(game), game.agents, strict=True):
            if name not in self.states:
                self._draws[name] = self._luck(name, self.horizon)
                self.states[name] = _drawn(agent.initial, self._draws[name][0])
                self.values[name] = 0.0

    def plan(self, game: LocalGame, step: int, share: float) -> bool:
        """Make a plan for all that are known, or at least for those of the plan in force; return whether one is."""
        names = _names(game)
        active = [i for i, name in enumerate(names) if self._lively(game.agents[i])[step, self.states[name]]]
        if not active:
            return False
        began = time.process_time()
        try:
            made = self._made(game, active, step, share)
        except InfeasibleError:
            newcomers = {names[i] for i in active} - set(self._planned)
            for name in newcomers:
                self.waited[name] = self.waited.get(name, 0) + 1
            rest = [i for i in active if names[i] not in newcomers]
            if not self.plans or not rest:
                return False
            assert self.planned_for is not None
            game = self.planned_for  # the newcomers wait
            made = self._made(game, rest, step, share)
        self.seconds.append(time.process_time() - began)
        self.plans.append(made)
        self.planned_for, self.uncertain = game, False
        return True

    def _made(self, game: LocalGame, active: list[int], step: int, share: float) -> Replan:
        """Plan for those who still have something to decide or to use."""
        names = [_names(game)[i] for i in active]
        seen = {name: self.states[name] for name in dict.fromkeys([*names, *self._planned])}
        if not self.plans:
            day = among(game, active).with_thresholds(self.alpha)
            return first_plan(day, at=step, states=seen, reserve=share * self.alpha, epsilon=self.epsilon)
        plan = self.plans[-1]
        release = np.maximum(plan.budget.reserve - share * self.alpha, 0.0)
        new = None if game is self.planned_for else among(game, active)
        gone = set(self._planned) - set(names) if new is None else ()
        return replan(
            plan, at=step, states=seen, game=new, left=gone, spent=self.costs, release=release, epsilon=self.epsilon
        )

    @property
    def _planned(self) -> tuple[str, ...]:
        """Who is in the plan in force."""
        if not self.plans:
            return ()
        game = self.plans[-1].result.game
        assert game is not None
        return game.names.all_agents(game.num_agents)

    def _lively(self, agent: LocalAgent) -> BoolArray:
        """Return where an agent may still use something, or has a choice that matters to it, now or later: [H, S]."""
        key = tuple(map(id, (agent.transition, agent.uses, agent.reward, agent.costs)))
        if key not in self._live:
            self._live[key] = agent, _lively(agent, self.horizon)  # the agent stays, and with it its ids
        return self._live[key][1]

    def move(self, game: LocalGame, step: int) -> None:
        """Play one step of the game: all that are in the plan in force follow it, others take their first action."""
        tables = {}
        if self.plans:
            plan = self.plans[-1]
            result = plan.result
            assert result.game is not None
            rows = zip(_names(result.game), result.policy.floats(), strict=True)  # type: ignore[arg-type]
            tables = {name: table[step - plan.at] for name, table in rows}
        names, loads, used = _names(game), np.zeros(game.num_resources, dtype=np.int64), []
        for name, agent in zip(names, game.agents, strict=True):
            state, luck = self.states[name], self._draws[name]
            action = _drawn(tables[name][state], luck[1 + 2 * step]) if name in tables else 0
            uses = entries(at_step(agent.uses, step), state * agent.num_actions + action)[0]
            loads[uses] += 1
            used.append(uses)
            self.values[name] += float(at_step(agent.reward, step)[state, action])
            if agent.costs is not None:
                self.costs = self.costs + [at_step(each, step)[state, action] for each in agent.costs]
            columns, probabilities = entries(at_step(agent.transition, step), state * agent.num_actions + action)
            self.uncertain |= len(columns) > 1
            self.states[name] = int(columns[_drawn(probabilities, luck[2 + 2 * step])])
        for name, uses in zip(names, used, strict=True):
            self.values[name] -= float(at_step(game.delay, step)[uses, loads[uses]].sum())
        self.costs = self.costs + [at_step(each, step)[np.arange(len(loads)), loads].sum() for each in game.load_costs]


def clairvoyant(game: LocalGame, luck: Luck) -> LocalGame:
    """Return the day as one sees it who knows what chance decides: every first state and every move is certain.

    Its equilibrium meets the thresholds on this very day, where a plan made without that knowledge meets them in
    expectation.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> certain = clairvoyant(charging(), Luck(1))
    >>> max(float(matrix.data.max()) for agent in certain.agents for matrix in agent.transition)
    1.0
    """
    agents = []
    for name, agent in zip(_names(game), game.agents, strict=True):
        draws = luck(name, game.horizon)
        steps = tuple(_certain(at_step(agent.transition, h), draws[2 + 2 * h]) for h in range(game.horizon))
        first = np.zeros(agent.num_states)
        first[_drawn(agent.initial, draws[0])] = 1.0
        agents.append(replace(agent, transition=steps, initial=frozen(first)))
    return game.with_agents(agents)


@dataclass(frozen=True, eq=False)
class ComparedDay:
    """A day as it was operated, beside the day-ahead plan and a clairvoyant one, by the same luck.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> compared = compared_day("today", grid_world_local(), knows_all=True, epsilon=1e-2)
    >>> compared.certified, len(compared.operated.values)
    (True, 2)
    """

    name: str
    operated: OperatedDay
    ahead: OperatedDay  # all agents are known in the morning; planned again only where something is closed
    clairvoyant: Result  # knows what chance decides, too

    __repr__ = fields_line

    @property
    def certified(self) -> bool:
        """Whether every plan of the operated day was certified."""
        return self.operated.certified


def compared_day(
    name: str,
    game: LocalGame,
    *,
    knows_all: bool = False,
    closures: Sequence[tuple[str | int, int]] = (),
    reserve: float = 0.5,
    luck: Luck = DEFAULT_LUCK,
    epsilon: float = 1e-3,
) -> ComparedDay:
    """Operate a day event by event, and beside that by its day-ahead plan and as a clairvoyant would.

    Parameters
    ----------
    name
        Of the day.
    game
        With all agents that come on that day.
    knows_all
        Whether all agents are known in the morning; if not, they become known when they can use something.
    closures
        Resources that are closed, by name or number, each with the step from which on it is. The day-ahead plan is made
        without them, and again when one happens; the clairvoyant knows of them.
    reserve
        The share of the thresholds that is kept for newcomers in the morning; it falls to zero by the evening.
    luck
        Decides what happens.
    epsilon
        As in `operate`.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> compared = compared_day("today", grid_world_local(), knows_all=True, epsilon=1e-2)
    >>> compared.clairvoyant.certified, compared.ahead.certified
    (True, True)
    """
    all_known: News = Fixed(game)
    news: News = all_known if knows_all else Arrivals(game)
    for resource, at in closures:
        all_known, news = Closure(all_known, resource, at), Closure(news, resource, at)
    share = 0.0 if knows_all else reserve
    horizon, alpha = game.horizon, game.thresholds
    done = operate(
        news,
        horizon=horizon,
        thresholds=alpha,
        luck=luck,
        reserve=lambda step: share * (1 - step / horizon),
        epsilon=epsilon,
    )
    ahead = operate(all_known, horizon=horizon, thresholds=alpha, luck=luck, again=False, epsilon=epsilon)
    as_it_ends = all_known(horizon - 1, {})  # each closure from its step on
    assert as_it_ends is not None
    known = solve(clairvoyant(as_it_ends, luck), epsilon=epsilon, improve=None)
    return ComparedDay(name, done, ahead, known)


def _lively(agent: LocalAgent, horizon: int) -> BoolArray:
    """Return where an agent may still use something, or has a choice that matters to it, now or later: [H, S]."""
    found = np.zeros((horizon + 1, agent.num_states), dtype=bool)
    tables = [agent.reward, *([] if agent.costs is None else agent.costs)]
    for step in reversed(range(horizon)):
        uses, moves = at_step(agent.uses, step), at_step(agent.transition, step)
        pairs = (np.diff(uses.indptr) > 0) | (moves @ found[step + 1].astype(np.float64) > 0)
        found[step] = pairs.reshape(agent.num_states, -1).any(axis=1)
        for table in tables:
            row = at_step(table, step)
            found[step] |= (row != row[:, :1]).any(axis=1)
    return found


def _certain(matrix: sp.csr_array, luck: float) -> sp.csr_array:
    """Return the matrix whose rows lead for sure to where `_drawn` leads by this number."""
    chosen = [
        matrix.indices[start + _drawn(matrix.data[start:end], luck)]
        for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
    count = len(chosen)
    return sp.csr_array((np.ones(count), np.array(chosen), np.arange(count + 1)), shape=matrix.shape)


def _names(game: LocalGame) -> tuple[str, ...]:
    return game.names.all_agents(game.num_agents)


def _drawn(law: FloatArray, luck: float) -> int:
    """Return the index that a number below one picks by a law."""
    return min(int(np.searchsorted(np.cumsum(law), luck, side="right")), int(np.flatnonzero(law)[-1]))
