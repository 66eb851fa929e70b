"""Decentralised problems in the `.dpomdp` form of the MADP toolbox, read as if all agents saw the state.

The head has `agents`, `discount`, `values`, `states`, `start`, `actions` and `observations`, each once. Below it, `T:`
gives transitions and `R:` rewards, and what comes later replaces what came before; `O:` gives observations, which are
needed only for rewards that depend on them. Actions, states and observations are named, or counted from 0; `*` stands
for all. `#` begins a comment.

    T: <actions> : <state> : <next state> : p        or  T: <actions> : <state> :    with a row below,
                                                     or  T: <actions> :              with a matrix below
    R: <actions> : <state> : <next state> : <observations> : r,  and shorter with a row or a matrix below

A row of probabilities is `uniform`, and a matrix is `uniform` or `identity`, if these words stand there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.errors import FileError
from cmpg.scenarios.readers.text import FilePath, Line, check_entries, is_whole, number_in, read_lines

HEAD = ("agents", "discount", "values", "states", "start", "actions", "observations")

MAX_NAMES = 100_000
"""A file names at most this many agents, states, joint observations, and actions or observations of one agent."""

MAX_AGENTS = 28
"""A table has an axis for every agent, and arrays have at most 32."""

MAX_WRITTEN = 100_000_000
"""All statements together may write this many entries: each can write all entries of a table."""

WRITTEN_ONE_BY_ONE = 200
"""Rewards that depend on observations are kept one by one, which takes this many times as long."""

ROW_TOLERANCE = 1e-5
"""Published probabilities have a few decimals, and their sums are off by as little as this."""

Names = tuple[str, ...]


class _Known:
    """Names, or numbers, and their indices."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._places = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.names)

    def place(self, word: str, line: Line, *, kind: str) -> int:
        """Return the index of a name, or of a number that stands for it."""
        if word in self._places:
            return self._places[word]
        if is_whole(word) and int(word) < len(self):
            return int(word)
        some = f"{', '.join(self.names[:6])}{', …' * (len(self) > 6)}"
        raise line.error(f"there is no {kind} {word[:40]!r}; there are {len(self)}: {some}.")

    def places(self, word: str, line: Line, *, kind: str) -> list[int]:
        """Return the indices that a word stands for."""
        return list(range(len(self))) if word == "*" else [self.place(word, line, kind=kind)]


@dataclass(frozen=True, eq=False)
class TeamProblem:
    """Several agents with one reward, all of whom see the state.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample.dpomdp") as path:
    ...     problem = read_dpomdp(path)
    >>> problem.agent_names, problem.state_names, problem.discount
    (('agent 0', 'agent 1'), ('hidden-left', 'hidden-right', 'found'), 0.95)
    """

    agent_names: Names
    state_names: Names
    action_names: tuple[Names, ...]
    discount: float
    initial: FloatArray  # [S]
    transition: FloatArray  # [S, *A, S]
    reward: FloatArray  # [S, *A]
    num_observations: int = 1  # of all agents together, which are not used
    averaged: bool = False  # whether rewards depended on observations
    source: str = "a problem"  # the file


def read_dpomdp(path: FilePath) -> TeamProblem:
    """Read a `.dpomdp` file.

    Raises
    ------
    FileError
        With the file and the line: the head is not whole, a name is not known, a number cannot be read, a row does not
        sum to one, or the tables would be too large.

    Examples
    --------
    >>> from cmpg.scenarios.samples import sample_file
    >>> with sample_file("sample.dpomdp") as path:
    ...     problem = read_dpomdp(path)
    >>> problem.transition.shape, problem.reward.shape
    ((3, 3, 3, 3), (3, 3, 3))
    """
    lines = [line for line in map(_without_comment, read_lines(path)) if line.text]
    statements = list(_statements(lines))
    head = _head(path, [each for each in statements if each.key not in ("T", "O", "R")])
    tables = _Tables(head)
    readers = {"T": tables.read_transition, "O": tables.read_observation, "R": tables.read_reward}
    for statement in statements:
        if statement.key in readers:
            readers[statement.key](statement)
    sizes = [len(names) for names in head.actions]
    _normalise_rows(path, head, tables.transition)
    transition = tables.transition.reshape(*sizes, head.num_states, head.num_states)
    reward = tables.expected_reward(path).reshape(*sizes, head.num_states)
    return TeamProblem(
        head.agents,
        head.states.names,
        tuple(own.names for own in head.actions),
        head.discount,
        head.initial,
        frozen(np.moveaxis(transition, -2, 0).copy()),
        frozen(np.moveaxis(reward, -1, 0).copy()),
        num_observations=tables.num_observations,
        averaged=bool(tables.by_observation),
        source=str(path),
    )


def _without_comment(line: Line) -> Line:
    return Line(line.source, line.number, line.text.partition("#")[0].strip())


@dataclass(frozen=True)
class _Statement:
    """A line that begins with a keyword, and the lines below it that do not."""

    key: str
    fields: tuple[str, ...]  # between colons
    line: Line
    below: list[Line] = field(default_factory=list)


def _statements(lines: Sequence[Line]) -> Iterator[_Statement]:
    current: _Statement | None = None
    for line in lines:
        key, colon, rest = line.text.partition(":")
        words = key.split()
        if colon and words and words[0] in (*HEAD, "T", "O", "R"):
            if current is not None:
                yield current
            fields = [part.strip() for part in rest.split(":")]
            while fields and not fields[-1]:
                fields.pop()
            current = _Statement(" ".join(words), tuple(fields), line)
        elif current is None:
            raise line.error(f"{line.text[:40]!r} comes before the first keyword, `agents:`.")
        else:
            current.below.append(line)
    if current is not None:
        yield current


@dataclass(frozen=True)
class _Head:
    """What the head of the file says."""

    agents: Names
    discount: float
    sign: float  # -1 where values are costs
    states: _Known
    initial: FloatArray
    actions: tuple[_Known, ...]
    observations: tuple[_Known, ...]

    @property
    def num_states(self) -> int:
        return len(self.states)


def _head(path: FilePath, statements: Sequence[_Statement]) -> _Head:
    found: dict[str, _Statement] = {}
    for statement in statements:
        name = statement.key.split()[0]
        if name in found:
            raise statement.line.error(f"`{name}:` is given a second time.")
        found[name] = statement
    for name in HEAD:
        if name not in found:
            raise FileError(f"{path} has no line `{name}:`; it is not a .dpomdp file, or it is cut short.")
    agents = _declared(found["agents"], "agent")
    if len(agents) > MAX_AGENTS:
        raise found["agents"].line.error(f"there are {len(agents)} agents; at most {MAX_AGENTS} are read.")
    states = _Known(_declared(found["states"], "state"))
    actions, observations = (
        _declared_each(found[name], name[:-1], len(agents)) for name in ("actions", "observations")
    )
    values, discount = found["values"], found["discount"]
    if values.fields not in (("reward",), ("cost",)):
        raise values.line.error("`values:` must be reward or cost.")
    check_entries(path, math.prod(map(len, actions)) * len(states) ** 2)
    if math.prod(map(len, observations)) > MAX_NAMES:
        raise found["observations"].line.error(f"there are more than {MAX_NAMES} joint observations.")
    return _Head(
        agents,
        number_in(" ".join(discount.fields), discount.line, name="discount"),
        -1.0 if values.fields == ("cost",) else 1.0,
        states,
        _start(found["start"], states),
        actions,
        observations,
    )


def _declared(statement: _Statement, kind: str) -> Names:
    words = " ".join(statement.fields).split() or " ".join(line.text for line in statement.below).split()
    return _names(words, statement.line, kind)


def _declared_each(statement: _Statement, kind: str, num_agents: int) -> tuple[_Known, ...]:
    if statement.fields or len(statement.below) != num_agents:
        raise statement.line.error(
            f"`{statement.key}:` must be followed by one line for each of {num_agents} agents; there are "
            f"{len(statement.below)}."
        )
    return tuple(_Known(_names(line.text.split(), line, kind)) for line in statement.below)


def _names(words: Sequence[str], line: Line, kind: str) -> Names:
    if len(words) == 1 and words[0].isascii() and words[0].isdigit():
        count = int(words[0]) if is_whole(words[0]) else None
        if count is None or not 1 <= count <= MAX_NAMES:
            raise line.error(f"there are {words[0][:40]} {kind}s; at least one, and at most {MAX_NAMES}, are read.")
        return tuple(f"{kind} {number}" for number in range(count))
    if not words:
        raise line.error(f"a number of {kind}s, or their names, are required.")
    if len(set(words)) < len(words):
        raise line.error(f"two {kind}s have the same name.")
    return tuple(words)


def _start(statement: _Statement, states: _Known) -> FloatArray:
    line, words = statement.line, " ".join(statement.fields).split()
    initial = np.zeros(len(states))
    if statement.key != "start":
        chosen = {states.place(word, line, kind="state") for word in words}
        included = statement.key == "start include"
        initial[[s for s in range(len(states)) if (s in chosen) == included]] = 1.0
    elif len(words) == 1 and words != ["uniform"] and not (len(states) == 1 and "." in words[0]):
        initial[states.place(words[0], line, kind="state")] = 1.0
    else:
        words = words or " ".join(each.text for each in statement.below).split()
        initial[:] = _numbers(words, (len(states),), line)
    with np.errstate(over="ignore"):
        total = initial.sum()
    if not 0 < total < np.inf or (initial < 0).any():
        raise line.error("no state has a positive probability to be the first.")
    return frozen(initial / total)


def _joint_places(text: str, names: Sequence[_Known], line: Line, *, kind: str) -> list[int]:
    """Read a joint action or observation: `*`, its number, or one word for each agent."""
    words, sizes = text.split(), [len(each) for each in names]
    if words == ["*"]:
        return list(range(math.prod(sizes)))
    if len(words) == 1 and len(names) > 1 and is_whole(words[0]) and int(words[0]) < math.prod(sizes):
        return [int(words[0])]
    if len(words) != len(names):
        raise line.error(f"{text[:40]!r} is not a joint {kind}: one word for each of {len(names)} agents is required.")
    each = [own.places(word, line, kind=kind) for word, own in zip(words, names, strict=True)]
    return [int(np.ravel_multi_index(places, sizes)) for places in itertools.product(*each)]


def _numbers(words: Sequence[str], shape: tuple[int, ...], line: Line) -> FloatArray:
    """Read a row or a matrix, or the words that stand for one."""
    if list(words) == ["uniform"]:
        return np.full(shape, 1.0 / shape[-1])
    if list(words) == ["identity"] and len(shape) == 2 and shape[0] == shape[1]:
        return np.eye(shape[0])
    if len(words) != math.prod(shape):
        expected = " × ".join(map(str, shape))
        raise line.error(f"there are {len(words)} words; {expected} numbers, or a word such as uniform, are required.")
    return np.array([number_in(word, line, name="an entry") for word in words]).reshape(shape)


class _Tables:
    """The tables as they are filled, statement by statement: [JA, S, …], joint actions in one axis."""

    def __init__(self, head: _Head) -> None:
        self.head = head
        joint, states = math.prod(map(len, head.actions)), head.num_states
        self.num_observations = math.prod(map(len, head.observations))
        self.transition = np.zeros((joint, states, states))
        self.reward = np.zeros((joint, states, states))
        self.by_observation: dict[tuple[int, int, int], FloatArray] = {}  # rewards that depend on the observation
        self.observed: dict[tuple[int, int], FloatArray] = {}  # (joint action, next state) → [JO]
        self._later: list[_Statement] = []
        self._written = 0

    def read_transition(self, statement: _Statement) -> None:
        """Read transitions."""
        states, (actions, rest) = self.head.states, self._joint_action(statement, (0, 1, 3))
        where = [actions, *(states.places(word, statement.line, kind="state") for word in rest[:2])]
        self._count(statement, math.prod(map(len, where)) * len(states) ** (2 - len(rest[:2])))
        if len(rest) == 3:
            self.transition[np.ix_(*where)] = number_in(rest[2], statement.line, name="the probability")
        else:
            shape = (len(states),) * (2 - len(rest))
            self.transition[np.ix_(*where)] = self._below(statement, shape)

    def read_observation(self, statement: _Statement) -> None:
        """Keep observations for later: most rewards do not need them."""
        self._later.append(statement)

    def read_reward(self, statement: _Statement) -> None:
        """Read rewards."""
        states, line = self.head.states, statement.line
        actions, rest = self._joint_action(statement, (1, 2, 4))
        where = [actions, *(states.places(word, line, kind="state") for word in rest[:2])]
        entries = math.prod(map(len, where)) * len(states) ** (2 - len(rest[:2]))
        slowly = WRITTEN_ONE_BY_ONE + self.num_observations if self.by_observation or rest[2:3] != ["*"] else 1
        self._count(statement, entries * slowly)
        if len(rest) == 4 and rest[2] == "*":
            self.reward[np.ix_(*where)] = number_in(rest[3], line, name="the reward")
            if self.by_observation:
                for a, s, following in itertools.product(*where):
                    self.by_observation.pop((a, s, following), None)
            return
        if len(rest) == 4:
            observations = _joint_places(rest[2], self.head.observations, line, kind="observation")
            row = np.full(self.num_observations, np.nan)
            row[observations] = number_in(rest[3], line, name="the reward")
            rows = np.broadcast_to(row, (len(states), self.num_observations))
        elif len(rest) == 2:
            rows = np.broadcast_to(
                self._below(statement, (self.num_observations,)), (len(states), self.num_observations)
            )
        else:
            rows = self._below(statement, (len(states), self.num_observations))
            where.append(list(range(len(states))))
        for a, s, following in itertools.product(*where):
            known = self.by_observation.get((a, s, following))
            known = np.full(self.num_observations, self.reward[a, s, following]) if known is None else known
            self.by_observation[a, s, following] = np.where(np.isnan(rows[following]), known, rows[following])

    def expected_reward(self, path: FilePath) -> FloatArray:
        """Average the reward over next states and observations: [JA, S]."""
        if self.by_observation:
            self._read_observations()
        for (a, s, following), rewards in self.by_observation.items():
            if self.transition[a, s, following] > 0:
                self.reward[a, s, following] = self._observations(path, a, following) @ rewards
        with np.errstate(over="ignore", invalid="ignore"):
            averaged: FloatArray = self.head.sign * (self.transition * self.reward).sum(axis=2)
        return averaged

    def _observations(self, path: FilePath, joint: int, following: int) -> FloatArray:
        """Return the probabilities of what is observed [JO], by which a reward is averaged."""
        row = self.observed.get((joint, following), np.zeros(self.num_observations))
        if not abs(row.sum() - 1) <= ROW_TOLERANCE or (row < 0).any():
            where = f"after {_named(self.head, joint)!r} in state {self.head.states.names[following]!r}"
            raise FileError(
                f"{path}: a reward depends on what is observed {where}, and the probabilities of that sum to "
                f"{row.sum():.9g}, or one of them is negative; they must sum to 1."
            )
        return np.asarray(row / row.sum())

    def _read_observations(self) -> None:
        names, states = self.head.observations, self.head.states
        for statement in self._later:
            line, (actions, rest) = statement.line, self._joint_action(statement, (0, 1, 3))
            chosen = states.places(rest[0] if rest else "*", line, kind="state")
            self._count(statement, len(actions) * len(chosen) * (WRITTEN_ONE_BY_ONE + self.num_observations))
            for a, following in itertools.product(actions, chosen):
                row = self.observed.setdefault((a, following), np.zeros(self.num_observations))
                if len(rest) == 3:
                    places = _joint_places(rest[1], names, line, kind="observation")
                    row[places] = number_in(rest[2], line, name="the probability")
                elif rest:
                    row[:] = self._below(statement, (self.num_observations,))
                else:
                    row[:] = self._below(statement, (len(states), self.num_observations))[following]

    def _count(self, statement: _Statement, entries: int) -> None:
        """Raise where statements write the same entries over and over."""
        self._written += entries
        if self._written > MAX_WRITTEN:
            raise statement.line.error("the statements up to here write more entries than can be read in a short time.")

    def _joint_action(self, statement: _Statement, allowed: tuple[int, ...]) -> tuple[list[int], list[str]]:
        """Return the joint actions that a statement is about, and its other fields, of which so many are allowed."""
        actions, *rest = statement.fields or [""]
        if len(rest) not in allowed:
            numbers = ", ".join(map(str, allowed[:-1])) + f" or {allowed[-1]}"
            raise statement.line.error(f"there are {len(rest)} fields after the joint action; {numbers} are required.")
        if len(rest) == allowed[-1] and statement.below:
            raise statement.below[0].error("this line belongs to nothing: the statement above it is whole.")
        return _joint_places(actions, self.head.actions, statement.line, kind="action"), rest

    def _below(self, statement: _Statement, shape: tuple[int, ...]) -> FloatArray:
        words = " ".join(line.text for line in statement.below).split()
        return _numbers(words, shape, statement.below[0] if statement.below else statement.line)


def _normalise_rows(path: FilePath, head: _Head, transition: FloatArray) -> None:
    """Divide each row by its sum, which decimals may miss by a little; raise if it is no distribution."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = transition.sum(axis=2)
    wrong = np.argwhere(~(np.abs(sums - 1) <= ROW_TOLERANCE) | (transition < 0).any(axis=2))
    if len(wrong):
        joint, s = (int(place) for place in wrong[0])
        where = f"after {_named(head, joint)!r} in state {head.states.names[s]!r}"
        raise FileError(
            f"{path}: {where} the probabilities of the next state sum to {sums[joint, s]:.9g}, or one of them is "
            "negative; they must sum to 1."
        )
    transition /= sums[..., None]


def _named(head: _Head, joint: int) -> str:
    """Return the names of the agents' actions in a joint action."""
    actions = np.unravel_index(joint, [len(names) for names in head.actions])
    return " ".join(own.names[a] for own, a in zip(head.actions, actions, strict=True))
