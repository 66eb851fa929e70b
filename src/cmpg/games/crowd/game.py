"""Crowd games: local games in which many agents are of few kinds.

A kind is a `LocalAgent`: the same initial law, transition, reward, uses and private costs. `numbers` says how many
agents are of each kind, and nothing here has one entry for each agent. Agents of one kind that play one policy are a
group (`CrowdPolicy`); each draws its own moves and actions, so the load of a resource is a sum of independent
binomials.

Delays and load costs are curves: polylines through points (load, value), from load 0 to n, or powers of the load. A
table over all loads is the polyline through all of them.

The rules are those of `LocalGame`, and `CrowdGame.spread` is that game, agent by agent. What a crowd refuses: private
constraints (`binds`), budgets on probabilities, discounting, rationals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, Numbers, frozen, numbers, to_floats
from cmpg.errors import GameError
from cmpg.games.game import Information, Names
from cmpg.games.local.agent import LocalAgent, checked_tables, facts_of
from cmpg.games.local.game import LocalGame, plain_agents
from cmpg.games.names import PLAIN, Legend, check_legend, checked_names
from cmpg.policy import PolicyShape
from cmpg.proof.crowd import MAX_AGENTS, MAX_POWER, CrowdTables, Polyline, Power
from cmpg.summaries import Summary, Table, counted, fields_line, html, line, text

MAX_SPREAD = 200_000
"""A crowd of more agents is not spread out into one agent each."""


@dataclass(frozen=True, eq=False)
class LoadCurve:
    """A function of the load: straight between points, from load 0 to the number of agents.

    Examples
    --------
    >>> overload = LoadCurve([0, 8, 20], [0, 0, 12])
    >>> overload(np.array([3, 8, 11]))
    array([0., 0., 3.])
    """

    loads: IntArray  # [p], ascending from 0
    values: FloatArray  # [p]

    __repr__ = fields_line

    if TYPE_CHECKING:

        def __init__(self, loads: Numbers, values: Numbers) -> None: ...

    def __post_init__(self) -> None:
        given, values = np.asarray(self.loads), to_floats(numbers("the values of a curve", self.values))
        loads = given.astype(np.int64) if given.dtype.kind in "iuf" else np.zeros(0, dtype=np.int64)
        if loads.ndim != 1 or len(loads) < 2 or (loads != given).any() or loads[0] != 0 or (np.diff(loads) < 1).any():
            raise GameError("the loads of a curve must be at least two whole numbers that ascend from 0.")
        if values.shape != loads.shape:
            raise GameError(
                f"a curve has {len(loads)} loads and values of shape {list(values.shape)}; one is required."
            )
        object.__setattr__(self, "loads", frozen(loads))
        object.__setattr__(self, "values", values)

    def __call__(self, load: Any) -> FloatArray:
        """Return the values at loads."""
        return np.asarray(np.interp(load, self.loads, self.values))

    @property
    def slopes(self) -> FloatArray:
        """By how much the curve rises with one more user, on each piece: [p − 1]."""
        return np.asarray(np.diff(self.values) / np.diff(self.loads))

    def plain(self) -> Polyline:
        """Return the plain table that claims are made of."""
        return Polyline(self.loads, self.values)


@dataclass(frozen=True, eq=False)
class PowerCurve:
    """A function of the load: constant + factor·load^power, such as the travel time on a road.

    Examples
    --------
    >>> road = PowerCurve(6.0, 0.9 / 40**4, 4)
    >>> road(np.array([0, 40, 80]))
    array([ 6. ,  6.9, 20.4])
    """

    constant: float
    factor: float  # not negative
    power: int  # from 1 on

    __repr__ = fields_line

    def __post_init__(self) -> None:
        for name in ("constant", "factor"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (np.isfinite(self.constant) and 0 <= self.factor < np.inf):
            raise GameError(
                f"a curve has the constant {self.constant:g} and the factor {self.factor:g}; finite numbers are "
                "required, and a factor of at least 0."
            )
        if self.power != int(self.power) or not 1 <= self.power <= MAX_POWER:
            raise GameError(f"a curve has the power {self.power}; a whole number from 1 to {MAX_POWER} is required.")
        object.__setattr__(self, "power", int(self.power))

    def __call__(self, load: Any) -> FloatArray:
        """Return the values at loads."""
        return np.asarray(self.constant + self.factor * np.asarray(load, dtype=np.float64) ** self.power)

    def plain(self) -> Power:
        """Return the plain table that claims are made of."""
        return Power(self.constant, self.factor, self.power)


Curve = LoadCurve | PowerCurve


def excess_curve(capacity: float, agents: int, weight: float = 1.0) -> LoadCurve:
    """Return weight·(load − capacity)^+, at whole loads.

    Examples
    --------
    >>> excess_curve(7.5, 20)(np.array([7, 8, 20]))
    array([ 0. ,  0.5, 12.5])
    """
    below = math.floor(min(capacity, agents))
    if below >= agents:
        return LoadCurve([0, agents], [0.0, 0.0])
    points = {0: 0.0, below: 0.0, below + 1: below + 1 - capacity, agents: agents - capacity}
    return LoadCurve(list(points), [value * weight for value in points.values()])


@dataclass(frozen=True, eq=False)
class CrowdGame:
    """Kinds of agents on states of their own, with numbers, shared resources and shared constraints.

    Examples
    --------
    A million agents, one step; action 1 uses the only resource, is worth 1, and is delayed by its users. At most
    400,000 may use it for nothing; users beyond that may be 5 in expectation.

    >>> kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = CrowdGame(kinds=[kind], numbers=[1_000_000], curves=[LoadCurve([0, 1_000_000], [0, 2.0]),
    ...                  LoadCurve([0, 400_000, 1_000_000], [0, 0, 600_000])], delay=[[0]], load_costs=[[[1]]],
    ...                  thresholds=[5.0], horizon=1)
    >>> game.num_agents, game.num_constraints
    (1000000, 1)
    """

    _: KW_ONLY
    kinds: tuple[LocalAgent, ...]  # K
    numbers: IntArray  # [K]
    curves: tuple[Curve, ...]
    delay: IntArray  # [H or 1, E]: which curve
    load_costs: IntArray  # [k, H or 1, E]: which curve
    thresholds: FloatArray  # [k]
    horizon: int
    kind_names: tuple[str, ...] | None = None
    constraint_names: tuple[str, ...] | None = None
    resource_names: tuple[str, ...] | None = None
    action_names: tuple[tuple[str, ...], ...] | None = None  # of each kind
    legend: Legend | None = None  # words and units, for people; what it says of agents is said of kinds

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            kinds: Sequence[LocalAgent],
            numbers: Numbers,
            curves: Sequence[Curve],
            delay: Numbers,
            load_costs: Numbers,
            thresholds: Numbers,
            horizon: int,
            kind_names: Sequence[str] | None = None,
            constraint_names: Sequence[str] | None = None,
            resource_names: Sequence[str] | None = None,
            action_names: Sequence[Sequence[str]] | None = None,
            legend: Legend | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        counts = _whole("numbers", self.numbers, 1)
        if len(counts) != len(self.kinds) or not len(counts):
            raise GameError(
                f"numbers has {len(counts)} entries; one for each kind is required, and there must be a kind."
            )
        if counts.min() < 1 or counts.sum() > MAX_AGENTS:
            k = int(counts.argmin())
            raise GameError(
                f"numbers[{k}] is {counts[k]}, of {counts.sum()} agents; at least one agent of each kind, and at most "
                f" {MAX_AGENTS} in all are required. Leave out kinds without agents."
            )
        delay, costs = _whole("delay", self.delay, 2), _whole("load_costs", self.load_costs, 3)
        if costs.size == 0:
            costs = np.zeros((0, 1, delay.shape[1]), dtype=np.int64)
        self._check_curves(int(counts.sum()), delay, costs)
        checked = checked_tables(  # of the kinds, in a game with one agent of each
            self.kinds,
            horizon=self.horizon,
            delay=np.zeros((len(delay), delay.shape[1], len(counts) + 1)),
            load_costs=np.zeros((*costs.shape, len(counts) + 1)),
            thresholds=self.thresholds,
        )
        for name, value in (
            ("kinds", checked["agents"]),
            ("thresholds", checked["thresholds"]),
            ("horizon", checked["horizon"]),
            ("numbers", frozen(counts)),
            ("curves", tuple(self.curves)),
            ("delay", frozen(delay)),
            ("load_costs", frozen(costs)),
        ):
            object.__setattr__(self, name, value)
        names = checked_names(
            self,
            kind_names=len(counts),
            constraint_names=len(costs),
            resource_names=delay.shape[1],
            action_names=[kind.num_actions for kind in self.kinds],
        )
        for name, value in names.items():
            object.__setattr__(self, name, value)
        if self.legend is not None:
            check_legend(self.legend, self.policy_shapes)

    def _check_curves(self, agents: int, delay: IntArray, costs: IntArray) -> None:
        for i, curve in enumerate(self.curves):
            if not isinstance(curve, LoadCurve | PowerCurve):
                raise GameError(f"curves[{i}] is a {type(curve).__name__}; a LoadCurve or a PowerCurve is required.")
            with np.errstate(over="ignore"):
                last = curve(agents)
            if not np.isfinite(last):
                raise GameError(f"curves[{i}] is not finite at load {agents}, which all agents together put on it.")
            if isinstance(curve, LoadCurve) and curve.loads[-1] != agents:
                raise GameError(
                    f"curves[{i}] ends at load {curve.loads[-1]}; {agents} agents can put the loads 0 to {agents} on a "
                    "resource, so its last point must be there."
                )
        for name, table in (("delay", delay), ("load_costs", costs)):
            if table.size and not 0 <= table.min() <= table.max() < len(self.curves):
                raise GameError(f"{name} names curves from 0 to {len(self.curves) - 1} only; it has {table.max()}.")
        if costs.shape[2] != delay.shape[1]:
            raise GameError(f"load_costs has {costs.shape[2]} resources; delay has {delay.shape[1]}.")

    @property
    def num_agents(self) -> int:
        """n."""
        return int(self.numbers.sum())

    @property
    def num_kinds(self) -> int:
        """K."""
        return len(self.kinds)

    @property
    def num_constraints(self) -> int:
        """k."""
        return len(self.thresholds)

    @property
    def num_resources(self) -> int:
        """E."""
        return int(self.delay.shape[1])

    @cached_property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S, A] of the policy of each kind."""
        return tuple((self.horizon, kind.num_states, kind.num_actions) for kind in self.kinds)

    @property
    def information(self) -> Information:
        """Every agent sees its own state."""
        return Information.OWN_STATE

    @property
    def names(self) -> Names:
        """What kinds and constraints are called; kinds stand in the place of agents."""
        kinds = self.kind_names or tuple(f"kind {k}" for k in range(self.num_kinds))
        return Names(kinds, self.constraint_names, None, self.action_names, self.legend or PLAIN)

    @property
    def all_resource_names(self) -> tuple[str, ...]:
        """What the resources are called; their numbers where they have no names: [E]."""
        return self.resource_names or tuple(f"resource {e}" for e in range(self.num_resources))

    @cached_property
    def reward_range(self) -> float:
        """max over kinds of Σ_h (max r_h − min r_h), over own states, actions and loads."""
        return self.range_with([ends_of(curve, self.num_agents) for curve in self.curves])

    def range_with(self, ends: Sequence[tuple[float, float]]) -> float:
        """Return the range of rewards where delays are between the ends that are given of each curve."""
        least, greatest = np.moveaxis(np.array(ends)[self.delay], -1, 0)
        return max(kind.reward_range(least, greatest, horizon=self.horizon) for kind in self.kinds)

    def with_thresholds(self, thresholds: Any) -> CrowdGame:
        """Return the same crowd with other thresholds: [k]."""
        return replace(self, thresholds=thresholds)

    def claim_tables(self) -> CrowdTables:
        """Return the plain tables that claims about this crowd are made of."""
        return CrowdTables(
            kinds=plain_agents(self.kinds),
            numbers=self.numbers,
            curves=tuple(curve.plain() for curve in self.curves),
            delay=self.delay,
            load_costs=self.load_costs,
        )

    def spread(self) -> LocalGame:
        """Return the same game agent by agent, kind after kind; refused if there are more than 200,000 agents."""
        agents = self.num_agents
        if agents > MAX_SPREAD:
            raise GameError(
                f"the crowd has {agents:,} agents; it is spread out up to {MAX_SPREAD:,}. Solve it as a crowd."
            )
        loads = np.arange(agents + 1)
        known = [curve(loads) for curve in self.curves]
        tables = [np.array([known[c] for c in index.ravel()]) for index in (self.delay, self.load_costs)]
        names = self.names
        return LocalGame(
            agents=tuple(np.repeat(np.array(self.kinds, dtype=object), self.numbers)),
            delay=tables[0].reshape(*self.delay.shape, agents + 1),
            load_costs=np.reshape(tables[1], (*self.load_costs.shape, agents + 1)),
            thresholds=self.thresholds,
            horizon=self.horizon,
            agent_names=tuple(
                f"{names.agent(k)}, {i + 1} of {number}"
                for k, number in enumerate(self.numbers.tolist())
                for i in range(number)
            ),
            constraint_names=self.constraint_names,
            resource_names=self.resource_names,
            action_names=None
            if self.action_names is None
            else tuple(
                own for own, number in zip(self.action_names, self.numbers.tolist(), strict=True) for _ in range(number)
            ),
        )

    def summary(self) -> Summary:
        """Return what to show of the crowd: its kinds, the largest first."""
        largest = np.argsort(-self.numbers, kind="stable")[:12]
        names = self.names
        rows = tuple(
            (names.agent(k), f"{self.numbers[k]:,}", str(self.kinds[k].num_states), str(self.kinds[k].num_actions))
            for k in largest.tolist()
        )
        more = "" if len(rows) == self.num_kinds else f"showing 12 of {self.num_kinds} kinds, the largest"
        title = f"{self.num_agents:,} {names.legend.agent}s of {counted(self.num_kinds, 'kind')}"
        title += f", {counted(self.horizon, 'step')}, {counted(self.num_resources, 'resource')}"
        title += f", {counted(self.num_constraints, 'constraint')}"
        return Summary(title, parts=(Table(("kind", "agents", "states", "actions"), rows, more),))

    __repr__, __str__, _repr_html_ = line, text, html


def ends_of(curve: Curve, agents: int) -> tuple[float, float]:
    """Return the least and the greatest value of a curve; of a power, up to a load."""
    values = curve.values if isinstance(curve, LoadCurve) else curve([0, agents])
    return float(values.min()), float(values.max())


def crowd_of(game: LocalGame) -> CrowdGame:
    """Return a local game with agents of one kind held once, by the name of the first; names of states are left behind.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> crowd_of(charging()).num_agents == charging().num_agents
    True
    """
    if not np.asarray(game.binds if game.binds is not None else True).all():
        raise GameError("a constraint binds some agents only; in a crowd, every constraint binds all agents.")
    keys: dict[tuple[Any, ...], int] = {}
    first, of = [], []
    for i, agent in enumerate(game.agents):
        key = _kind_key(agent)
        if key not in keys:
            keys[key] = len(keys)
            first.append(i)
        of.append(keys[key])
    loads = np.arange(game.num_agents + 1)
    tables = [game.delay, *game.load_costs]
    rows = np.concatenate([table.reshape(-1, len(loads)) for table in tables])
    distinct, index = np.unique(rows, axis=0, return_inverse=True)
    places = np.cumsum([0, *(table.shape[0] * table.shape[1] for table in tables)])
    index = index.reshape(-1)
    costs = [index[places[j + 1] : places[j + 2]].reshape(each.shape[:2]) for j, each in enumerate(game.load_costs)]
    legend = game.legend
    if legend is not None:
        kept: dict[str, Any] = {
            name: tuple(getattr(legend, name)[i] for i in first) for name in PER_AGENT if getattr(legend, name)
        }
        legend = replace(legend, wholes=(), roads=None, **kept)
    names = game.agent_names
    return CrowdGame(
        kinds=tuple(game.agents[i] for i in first),
        numbers=np.bincount(of).astype(np.int64),
        curves=tuple(LoadCurve(loads, row) for row in distinct),
        delay=index[: places[1]].reshape(game.delay.shape[:2]),
        load_costs=np.array(costs, dtype=np.int64).reshape(len(costs), *(costs[0].shape if costs else (1, 1))),
        thresholds=game.thresholds,
        horizon=game.horizon,
        kind_names=None if names is None else tuple(names[i] for i in first),
        constraint_names=game.constraint_names,
        resource_names=game.resource_names,
        action_names=None if game.action_names is None else tuple(game.action_names[i] for i in first),
        legend=legend,
    )


PER_AGENT = ("needs_of", "goals", "sites")
"""The fields of a legend that have an entry for each agent."""


def _kind_key(agent: LocalAgent) -> tuple[Any, ...]:
    """Return what agents of one kind have in common, by content."""
    # One tuple each: with as many states as resources, a matrix of one could be taken for one of the other.
    matrices = tuple(tuple(facts_of(matrix).content for matrix in each) for each in (agent.transition, agent.uses))
    tables = (agent.initial, agent.reward, *(() if agent.costs is None else (agent.costs,)))
    return (*matrices, *((table.shape, np.ascontiguousarray(table).tobytes()) for table in tables))


def _whole(name: str, given: Any, axes: int) -> IntArray:
    """Return whole numbers with this many axes."""
    table = np.asarray(given)
    if table.size == 0:
        return np.zeros((0,) * axes, dtype=np.int64)
    if table.dtype.kind not in "iuf" or table.ndim != axes or (table != np.floor(table)).any():
        raise GameError(f"{name} must be whole numbers with {axes} axes; see CrowdGame.")
    return table.astype(np.int64)
