"""What agents, constraints, states and actions are called, and what their numbers mean outside of the game."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import reprlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from cmpg.errors import GameError, unknown_keyword
from cmpg.summaries import fields_line

NAMES = {"agents": "agent_names", "states": "state_names", "actions": "action_names", "constraints": "constraint_names"}
"""What names are called in a game, by what they are called in its file."""


def explained(cls: type[Any]) -> type[Any]:
    """Let a class of games say what a keyword that it does not have was probably meant to be."""
    init, known = cls.__init__, set(inspect.signature(cls.__init__).parameters) - {"self"}

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given:
            if name not in known:
                raise GameError(unknown_keyword(f"a {cls.__name__}", name, known))
        init(self, *args, **given)

    cls.__init__ = checked
    return cls


@dataclass(frozen=True)
class Amount:
    """A number of the game in the unit that people know.

    Examples
    --------
    >>> Amount("energy", "kWh", 6.6).title
    'energy (kWh)'
    """

    name: str
    unit: str = ""
    each: float = 1.0  # of the unit, in one

    @property
    def title(self) -> str:
        """Name and unit, as the head of a column."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class RoadMap:
    """A network of roads whose links are the resources of a game, as its files describe it.

    The time of a link is free_flow_time·(1 + b·(flow/capacity)^power), in units of `minutes`.
    """

    ends: tuple[tuple[int, int], ...]  # [E]: tail and head, nodes counted from 1
    free_flow_time: tuple[float, ...]  # [E]
    capacity: tuple[float, ...]  # [E], in vehicles
    b: tuple[float, ...]  # [E]
    power: tuple[float, ...]  # [E]
    tolls: tuple[float, ...]  # [E], in units of time
    trips: tuple[tuple[int, int], ...]  # [n]: origin and destination of each agent
    first_through_node: int = 1  # nodes before it are left only by trips that begin there
    minutes: float = 1.0  # in a unit of time
    static: bool = False  # whether all that use a link meet on it

    __repr__ = fields_line

    def __post_init__(self) -> None:
        """Check that every link has its numbers."""
        for name in ("free_flow_time", "capacity", "b", "power", "tolls"):
            given = getattr(self, name)
            if len(given) != len(self.ends) or not all(each >= 0 for each in given):
                required = f"{len(self.ends)} numbers of at least 0 are required"
                raise GameError(f"legend.roads.{name} is {reprlib.repr(given)}; {required}.")


@dataclass(frozen=True)
class Legend:
    """The words and units that a scenario states for what its game is about; all have a default.

    Reports, pages and exported tables read them, so that none of them knows a scenario.

    Examples
    --------
    >>> legend = Legend(agent="car", step="hour", resource="transformer")
    >>> legend.agent, legend.state
    ('car', 'state')
    """

    agent: str = "agent"
    state: str = "state"
    step: str = "step"
    resource: str = "resource"
    steps: tuple[str, ...] = ()  # [H]: what each step is called
    states: tuple[str, ...] = ()  # what a state is called, the same for all agents; some may have fewer
    actions: tuple[str, ...] = ()  # likewise
    actions_by_state: tuple[tuple[str, ...], ...] = ()  # [S][A], where an action means another thing in every state
    value: Amount = dataclasses.field(default_factory=lambda: Amount("value"))  # what one unit of value is
    load: Amount = dataclasses.field(default_factory=lambda: Amount("load"))  # what one user puts on a resource
    need: Amount | None = None  # what the agents need, such as energy; `needs` says how much
    needs: tuple[tuple[float, ...], ...] = ()  # how much an agent still needs in each of its states, one row per kind
    needs_of: tuple[int, ...] = ()  # [n]: the row of each agent
    wholes: tuple[str, ...] = ()  # [n]: what each agent is a part of, if agents are parts; tables add them up
    unpaid: float = 0.0  # the part of the value that one unit still needed at the end takes away, and no agent pays
    goals: tuple[int, ...] = ()  # [n]: the state in which each agent has arrived
    places: tuple[tuple[float, float], ...] = ()  # x and y of each cell or node, on the scenario's own map
    roads: RoadMap | None = None  # if the resources are links
    sites: tuple[str, ...] = ()  # [n]: where each agent is, if it stays there
    begins: str = ""  # when step 0 begins, as in ISO 8601
    step_seconds: float = 0.0  # the length of a step, if steps are time
    translation: tuple[tuple[str, str], ...] = ()  # what the scenario read, rounded, dropped or assumed: what, how
    warning: str = ""  # set if a total of the game differs from the data by more than a hundredth

    __repr__ = fields_line


PLAIN = Legend()

WORDS = {str: "a word", int: "a whole number", bool: "true or false"}
"""What a field of a legend holds, for messages."""


@dataclass(frozen=True)
class Names:
    """What agents, constraints, states and actions are called; numbers, counted from 0, where they have no names.

    Examples
    --------
    >>> Names(agents=("Ada", "Bo")).agent(1), Names().agent(1), Names().constraint(0)
    ('Bo', 'agent 1', 'constraint 0')
    """

    agents: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    states: tuple[tuple[str, ...], ...] | None = None  # of each agent
    actions: tuple[tuple[str, ...], ...] | None = None  # of each agent
    legend: Legend = PLAIN

    __repr__ = fields_line

    def step(self, h: int) -> str:
        """Return what step h is called."""
        return self.legend.steps[h] if h < len(self.legend.steps) else str(h)

    def agent(self, i: int) -> str:
        """Return what agent i is called."""
        return f"agent {i}" if self.agents is None else self.agents[i]

    def constraint(self, j: int) -> str:
        """Return what constraint j is called."""
        return f"constraint {j}" if self.constraints is None else self.constraints[j]

    def state(self, i: int, s: int) -> str:
        """Return what agent i calls state s."""
        if self.states is None:
            if self.legend.needs and self.legend.need is not None:
                return f"{self.legend.needs[self.legend.needs_of[i]][s]:.6g} {self.legend.need.unit}".rstrip()
            return self.legend.states[s] if s < len(self.legend.states) else f"state {s}"
        return self.states[i][s]

    def action(self, i: int, a: int, s: int | None = None) -> str:
        """Return what agent i calls action a, in state s where that makes a difference."""
        if s is not None and s < len(self.legend.actions_by_state):
            return self.legend.actions_by_state[s][a]
        if self.actions is None:
            return self.legend.actions[a] if a < len(self.legend.actions) else f"action {a}"
        return self.actions[i][a]

    def all_agents(self, count: int) -> tuple[str, ...]:
        """Return what the agents are called, of whom there are `count`."""
        return tuple(self.agent(i) for i in range(count))

    def all_constraints(self, count: int) -> tuple[str, ...]:
        """Return what the constraints are called, of which there are `count`."""
        return tuple(self.constraint(j) for j in range(count))

    def all_states(self, i: int, count: int) -> tuple[str, ...]:
        """Return what agent i calls its states, of which there are `count`."""
        return tuple(self.state(i, s) for s in range(count))

    def all_actions(self, i: int, count: int) -> tuple[str, ...]:
        """Return what agent i calls its actions, of which there are `count`."""
        return tuple(self.action(i, a) for a in range(count))


def legend_record(legend: Legend) -> dict[str, Any]:
    """Return what a legend says beyond its defaults, in words that JSON knows; see `legend_of`."""
    return {name: value for name, value in asdict(legend).items() if value != asdict(PLAIN)[name]}


def legend_of(record: Any) -> Legend:
    """Read a legend from what `legend_record` returned, or raise GameError.

    Examples
    --------
    >>> legend_of({"agent": "car", "need": {"name": "energy", "unit": "kWh"}}).need.title
    'energy (kWh)'
    """
    legend: Legend = _read("legend", record, Legend)
    return legend


def _read(where: str, value: Any, kind: Any) -> Any:
    """Return what JSON holds as the type that a field is declared with, or raise GameError with its coordinates."""
    parts = get_args(kind)
    if is_dataclass(kind):
        return _read_fields(where, value, kind)
    if get_origin(kind) is UnionType:  # of a record and None, which is the default and is not written
        return _read_fields(where, value, parts[0])
    if get_origin(kind) is tuple and isinstance(value, (list, tuple)):
        kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
        if len(kinds) != len(value):
            raise GameError(f"{where} is {reprlib.repr(value)}; {len(kinds)} entries are required.")
        return tuple(_read(f"{where}[{i}]", *each) for i, each in enumerate(zip(value, kinds, strict=True)))
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if kind in WORDS and type(value) is kind:
        return value
    required = "a list" if get_origin(kind) is tuple else WORDS.get(kind, "a finite number")
    raise GameError(f"{where} is {reprlib.repr(value)}; {required} is required.")


def _read_fields(where: str, record: Any, kind: Any) -> Any:
    kinds = get_type_hints(kind)
    if not isinstance(record, dict) or set(record) - set(kinds):
        strange = ", ".join(sorted(set(record) - set(kinds))[:3]) if isinstance(record, dict) else type(record).__name__
        raise GameError(f"{where} has {strange}; {', '.join(sorted(kinds))} are what it may have.")
    read = {name: _read(f"{where}.{name}", value, kinds[name]) for name, value in record.items()}
    missing = [each.name for each in fields(kind) if each.name not in read and _is_required(each)]
    if missing:
        raise GameError(f"{where} has no {missing[0]}.")
    return kind(**read)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


ONE_FOR_EACH_AGENT = ("sites", "wholes", "needs_of", "goals")
"""The fields of a legend that have an entry for each agent, or none at all."""


def check_legend(legend: Legend, shapes: Sequence[tuple[int, int, int]]) -> None:
    """Raise unless a legend fits the policies' shapes."""
    agents, horizon = len(shapes), shapes[0][0]
    if legend.steps and len(legend.steps) != horizon:
        raise GameError(f"legend.steps has {len(legend.steps)} names; {horizon} are required.")
    for name in ONE_FOR_EACH_AGENT:
        if getattr(legend, name) and len(getattr(legend, name)) != agents:
            found = len(getattr(legend, name))
            raise GameError(f"legend.{name} has {found} entries; {agents} are required, one for each agent.")
    if legend.roads is not None and len(legend.roads.trips) != agents:
        raise GameError(f"legend.roads.trips has {len(legend.roads.trips)} pairs; {agents} are required.")
    if legend.goals and not all(0 <= goal < states for goal, (_, states, _) in zip(legend.goals, shapes, strict=True)):
        raise GameError(
            f"legend.goals is {reprlib.repr(legend.goals)}; a state of each of {agents} agents is required."
        )
    _check_needs(legend, shapes)
    widest = max(shape[2] for shape in shapes)
    if any(len(row) < widest for row in legend.actions_by_state):
        raise GameError(f"legend.actions_by_state has a state with fewer than {widest} actions.")


def _check_needs(legend: Legend, shapes: Sequence[tuple[int, int, int]]) -> None:
    """Raise unless every agent has a row of needs, with a number of at least 0 for each of its states, or none has."""
    if not all(each >= 0 for row in legend.needs for each in row):
        raise GameError(f"legend.needs is {reprlib.repr(legend.needs)}; numbers of at least 0 are required.")
    if not legend.needs and not legend.needs_of:
        return
    rows = dict(enumerate(legend.needs))
    lengths = [len(rows.get(kind, ())) for kind in legend.needs_of]
    if lengths != [states for _, states, _ in shapes]:
        raise GameError(
            f"legend.needs_of is {reprlib.repr(legend.needs_of)}; for each of {len(shapes)} agents a row of "
            "legend.needs with a number for each of its states is required."
        )


def checked_names(game: Any, **sizes: int | Sequence[int]) -> dict[str, Any]:
    """Return the named fields of a game as tuples of strings, or raise where there are more or fewer names than things.

    Parameters
    ----------
    game
        Has the fields, each None or a sequence of names.
    sizes
        By field, how many names it must have: a number, or one for each agent.
    """
    names: dict[str, Any] = {}
    for field, size in sizes.items():
        given, things = getattr(game, field), field.removesuffix("_names") + "s"
        if given is None or isinstance(size, int):
            names[field] = given if given is None else _strings(things, given, cast(int, size))
        else:
            _strings(things, given, len(size))
            pairs = enumerate(zip(given, size, strict=True))
            names[field] = tuple(_strings(f"{things}[{i}]", each, count) for i, (each, count) in pairs)
    return names


def _strings(things: str, names: Sequence[Any], count: int) -> tuple[str, ...]:
    if len(names) != count:
        raise GameError(f"{things} has {len(names)} names; {count} are required.")
    return tuple(str(name) for name in names)
