"""Joint policies: one table per agent, and nothing that changes in place.

A large table in which most rows play one action for sure is kept as those actions, one or two bytes each, and the rows
that mix (`CompactTable`); the table [H, S, A] is computed on demand, `policy[i]`, with the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cmpg.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Numbers,
    check_shape,
    distributions,
    exact_distributions,
    frozen,
    numbers,
    to_floats,
)
from cmpg.errors import PolicyError
from cmpg.summaries import MAX_ROWS, Cell, Summary, Table, counted, fixed, html, largest, line, shown_of, text

PolicyShape = tuple[int, int, int]
"""Steps, states, actions of one agent's table."""


COMPACT_FROM = 4_096
"""Tables with at least this many entries are kept as actions where that is smaller; small ones are faster as arrays."""


@dataclass(frozen=True, eq=False)
class CompactTable:
    """One agent's table as the action of each row that plays one for sure, and the rows that mix."""

    actions: Any  # [H, S] of int8, int16 or int32; 0 where the row mixes
    num_actions: int  # A
    mixed: IntArray  # [m]: h·S + s of each row that mixes, ascending
    rows: FloatArray  # [m, A]

    @classmethod
    def certain(cls, actions: Any, num_actions: int) -> CompactTable:
        """Return the table that plays the given actions [H, S] for sure."""
        small = frozen(np.ascontiguousarray(actions, dtype=_action_type(num_actions)))
        return cls(small, num_actions, np.zeros(0, dtype=np.int64), np.zeros((0, num_actions)))

    @property
    def shape(self) -> PolicyShape:
        """[H, S, A]."""
        return (*self.actions.shape, self.num_actions)

    @property
    def table(self) -> FloatArray:
        """The probabilities: [H, S, A]."""
        exact = self.rows.dtype == object
        table = np.full(self.shape, Fraction(0)) if exact else np.zeros(self.shape)
        flat = table.reshape(-1, self.num_actions)
        flat.reshape(-1)[np.arange(0, table.size, self.num_actions) + self.actions.ravel()] = (
            Fraction(1) if exact else 1.0
        )
        flat[self.mixed] = self.rows
        return frozen(table)

    def digest(self) -> bytes:
        """Return a digest of the probabilities."""
        content = (self.actions.tobytes(), self.mixed.tobytes(), self.rows.tobytes())
        return hashlib.blake2b(b"".join(content), digest_size=16).digest()


Stored = FloatArray | CompactTable


def _action_type(num_actions: int) -> Any:
    return np.int8 if num_actions <= 2**7 else np.int16 if num_actions <= 2**15 else np.int32


def are_certain(table: FloatArray) -> BoolArray:
    """Return which rows of a table [..., A] play one action for sure: one entry is 1, every other exactly 0.

    An entry of 1 alone does not make a row certain: in floats [1.0, 1e-17] sums to 1.0, and a cost of 1e20 may depend
    on the second action.

    Examples
    --------
    >>> are_certain(np.array([[1.0, 0.0], [1.0, 1e-17]]))
    array([ True, False])
    """
    # Products count faster than NumPy's sums over short rows.
    ones = np.ones(table.shape[-1])
    return np.asarray(((table != 0) @ ones == 1) & ((table == 1) @ ones == 1))


def compacted(table: Stored) -> Stored:
    """Return a large table of floats as actions and mixed rows, where that is at most half as large."""
    if isinstance(table, CompactTable) or table.size < COMPACT_FROM or table.dtype == object:
        return table
    mixed = np.flatnonzero(~are_certain(table))
    return split_table(table, mixed) if _is_smaller(table.shape, len(mixed)) else table


def _is_smaller(shape: tuple[int, ...], num_mixed: int) -> bool:
    """Whether actions, and so many rows that mix, are at most half as large as the table [H, S, A]."""
    num_rows = shape[0] * shape[1]
    return 2 * (num_mixed * (shape[2] + 1) + num_rows / 8) <= num_rows * shape[2]


def split_table(table: FloatArray, mixed: IntArray) -> CompactTable:
    """Return a table [H, S, A] as actions and the named rows h·S + s; all others play one action for sure."""
    rows = table.reshape(-1, table.shape[-1])
    played = (rows == 1).argmax(axis=1) if table.dtype == object else rows @ np.arange(rows.shape[1])
    actions = played.astype(_action_type(rows.shape[1]))
    actions[mixed] = 0
    return CompactTable(frozen(actions.reshape(table.shape[:2])), rows.shape[1], mixed, frozen(rows[mixed]))


def joined_table(actions: Any, mixed: IntArray, rows: FloatArray) -> Stored:
    """Return the table of actions [H, S] and of rows [m, A] that stand in place of some, stored as all tables are.

    `mixed` [m] names each row, h·S + s, once and in ascending order.
    """
    num_actions = rows.shape[1]
    sure = are_certain(rows)
    played = np.array(actions, dtype=_action_type(num_actions))
    played.reshape(-1)[mixed] = np.where(sure, (rows == 1).argmax(axis=1), 0)
    apart = CompactTable(frozen(played), num_actions, mixed[~sure], frozen(rows[~sure]))
    large = played.size * num_actions >= COMPACT_FROM and rows.dtype != object
    return apart if large and _is_smaller(apart.shape, len(apart.mixed)) else apart.table


def certain_table(actions: IntArray, num_actions: int) -> Stored:
    """Return the table [H, S, A] that plays the given actions [H, S] for sure, compact if it is large."""
    if actions.size * num_actions < COMPACT_FROM:
        return frozen(np.eye(num_actions)[actions])
    return CompactTable.certain(actions, num_actions)


def _table(stored: Stored) -> FloatArray:
    return stored.table if isinstance(stored, CompactTable) else stored


def check_is_policy(given: Any) -> None:
    """Raise unless this is a joint policy; the message says how it becomes one."""
    if not isinstance(given, JointPolicy):
        raise PolicyError(f"the policy is a {type(given).__name__}; {_as_policy(given)}")


def _as_policy(given: Any) -> str:
    if isinstance(getattr(given, "policy", None), JointPolicy):
        return f"a JointPolicy is required: pass the policy that it has, {type(given).__name__.lower()}.policy."
    if isinstance(given, (str, Path)):
        return f"a JointPolicy is required, such as cmpg.read_policy({str(given)!r}, game)[0]."
    if isinstance(given, (list, tuple)) and len(given):
        return "a JointPolicy is required: JointPolicy(tables), with one table [H, S, A_i] for each agent."
    if callable(given) or hasattr(given, "predict"):
        return (
            "a JointPolicy is required: JointPolicy.from_callable(game.policy_shapes, function) writes a function of "
            "(agent, observation, step) down as tables."
        )
    return "a JointPolicy is required, such as JointPolicy((table_0, table_1)), each table [H, S, A_i]."


def _check_shapes(shapes: Any) -> None:
    """Raise unless these are shapes of tables, one for each agent."""
    if isinstance(shapes, str) or not isinstance(shapes, Sequence):
        raise PolicyError(
            f"shapes is a {type(shapes).__name__}; one [H, S, A_i] for each agent is required: game.policy_shapes."
        )


@dataclass(frozen=True, eq=False)
class JointPolicy:
    """What every agent does: `policy[i][h, s, a]` is the probability that agent i plays a in state s at step h.

    Agents choose independently of each other, given the state.

    Examples
    --------
    >>> policy = JointPolicy.uniform([(1, 1, 2), (1, 1, 2)])
    >>> policy.replace(0, [[[0.0, 1.0]]])[0]
    array([[[0., 1.]]])
    """

    stored: tuple[Stored, ...]  # n tables, each [H, S_i, A_i], as arrays or compact

    if TYPE_CHECKING:

        def __init__(self, stored: Sequence[Numbers | CompactTable]) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.stored, Iterable):
            raise PolicyError(
                f"a policy is made of one table [H, S, A_i] for each agent, such as JointPolicy((table_0, table_1)); "
                f"{self.stored!r} is given."
            )
        known: dict[int, Stored] = {}
        for i, table in enumerate(self.stored):
            if id(table) not in known:
                known[id(table)] = _checked(f"policy[{i}]", table)
        object.__setattr__(self, "stored", tuple(known[id(table)] for table in self.stored))

    @property
    def tables(self) -> tuple[FloatArray, ...]:
        """All tables as arrays: n of [H, S_i, A_i]."""
        return tuple(self)

    def summary(self) -> Summary:
        """Return what to show: every row where there are few, else how many rows of each agent mix."""
        mixed = np.array([_rows_that_mix(table) for table in self.stored])
        rows = sum(steps * states for steps, states, _ in self.shapes)
        headline = f"{counted(len(self), 'agent')}, {int(mixed.sum()):,} of {rows:,} rows mix"
        if rows <= MAX_ROWS and len({actions for _, _, actions in self.shapes}) == 1:
            return Summary(headline, parts=(_rows_table(self),))
        shown = largest(mixed)
        sizes = tuple((f"agent {i}", *map(str, self.shapes[i]), f"{mixed[i]:,}") for i in shown)
        columns = ("agent", "steps", "states", "actions", "rows that mix")
        return Summary(headline, parts=(Table(columns, sizes, shown_of(shown, len(self), "agents who mix most")),))

    __repr__, __str__, _repr_html_ = line, text, html

    @classmethod
    def uniform(cls, shapes: Sequence[PolicyShape]) -> JointPolicy:
        """Every action is equally likely; agents with tables of one shape share theirs."""
        _check_shapes(shapes)
        known = {shape: frozen(np.full(shape, 1.0 / shape[-1])) for shape in {tuple(each) for each in shapes}}
        return cls(tuple(known[tuple(shape)] for shape in shapes))

    @classmethod
    def reference(cls, shapes: Sequence[PolicyShape]) -> JointPolicy:
        """Every agent always plays action 0: the policy from which potentials are counted."""
        _check_shapes(shapes)
        known = {shape: certain_table(np.zeros(shape[:2], dtype=np.int64), shape[2]) for shape in map(tuple, shapes)}
        return cls(tuple(known[tuple(shape)] for shape in shapes))

    @classmethod
    def random(cls, shapes: Sequence[PolicyShape], *, rng: np.random.Generator) -> JointPolicy:
        """Every row is drawn uniformly from the simplex."""
        _check_shapes(shapes)
        return cls(tuple(rng.dirichlet(np.ones(shape[-1]), size=shape[:2]) for shape in shapes))

    @classmethod
    def from_callable(
        cls,
        shapes: Sequence[PolicyShape],
        function: Callable[[int, Any, int], Any],
        *,
        observations: Sequence[Sequence[Any]] | None = None,
    ) -> JointPolicy:
        """Write a function down as tables: it is called for every agent, state and step, and once more to compare.

        Parameters
        ----------
        shapes
            [H, S_i, A_i] of each agent: `game.policy_shapes`.
        function
            Called as `function(agent, observation, step)`. It returns the number of an action, or the probability of
            each. It must have no memory: the same arguments, the same answer.
        observations
            What agent i observes in state s, `observations[i][s]`; the number of the state unless given.

        Examples
        --------
        >>> policy = JointPolicy.from_callable([(2, 2, 2)], lambda agent, state, step: state)
        >>> policy[0][1].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> JointPolicy.from_callable([(1, 1, 2)], lambda agent, state, step: 2)
        Traceback (most recent call last):
        cmpg.errors.PolicyError: the policy of agent 0 answers 2 at step 0 in state 0; there are 2 actions, from 0 to 1.
        """
        _check_shapes(shapes)
        if not callable(function):
            raise PolicyError(
                f"the policy is a {type(function).__name__}; a function of (agent, observation, step) is required."
            )

        def answer(i: int, h: int, s: int) -> FloatArray:
            seen = s if observations is None else observations[i][s]
            where = f"the policy of agent {i} answers {{}} at step {h} in state {s}"
            return action_probabilities(function(i, seen, h), shapes[i][2], where)

        tables = [np.zeros(shape) for shape in shapes]
        entries = [(i, h, s) for i, shape in enumerate(shapes) for h, s in np.ndindex(*shape[:2])]
        for i, h, s in entries:
            tables[i][h, s] = answer(i, h, s)
        # In the opposite order, so that what depends on the calls before shows.
        for i, h, s in reversed(entries):
            if not np.array_equal(tables[i][h, s], answer(i, h, s)):
                raise PolicyError(
                    f"the policy of agent {i} answers twice, and differently, at step {h} in state {s}: it has memory, "
                    "or draws its actions. Return the probability of each action, or judge it by episodes in a "
                    "simulator."
                )
        return cls(tuple(tables))

    @property
    def shapes(self) -> tuple[PolicyShape, ...]:
        """The shape of each agent's table."""
        return tuple((table.shape[0], table.shape[1], table.shape[2]) for table in self.stored)

    def __getitem__(self, agent: int) -> FloatArray:
        return _table(self.stored[agent])

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[FloatArray]:
        return map(_table, self.stored)

    def row(self, agent: int, step: int, state: int) -> FloatArray:
        """Return the probabilities of one agent's actions: [A].

        Where an episode is longer than the policy, its last step goes on; a stationary policy has one step.
        """
        stored = self.stored[agent]
        steps, states, actions = stored.shape
        if not (0 <= state < states and step >= 0):
            raise PolicyError(f"agent {agent} has no state {state} at step {step}; its {states} states count from 0.")
        h = min(step, steps - 1)
        if not isinstance(stored, CompactTable):
            found: FloatArray = stored[h, state]
            return found
        index = h * states + state
        mixed = int(np.searchsorted(stored.mixed, index))
        if mixed < len(stored.mixed) and stored.mixed[mixed] == index:
            return np.asarray(stored.rows[mixed])
        row = np.zeros(actions)
        row[stored.actions[h, state]] = 1.0
        return row

    def act(self, agent: int, step: int, state: int, rng: np.random.Generator) -> int:
        """Draw what one agent does: the decision of a controller that runs the policy.

        Examples
        --------
        >>> policy = JointPolicy(([[[0.0, 1.0]]],))
        >>> policy.act(0, 0, 0, np.random.default_rng(1))
        1
        """
        return draw(to_floats(self.row(agent, step, state)), rng)

    def replace(self, agent: int, table: Numbers) -> JointPolicy:
        """Return the joint policy in which one agent plays `table` and no other agent changes."""
        return self._with(agent, _checked(f"policy[{agent}]", table))

    def move(self, agent: int, table: Numbers) -> JointPolicy:
        """Replace one agent's table by one that is read as the old one is: in rationals, or in floats."""
        new = _checked(f"policy[{agent}]", table)
        if _is_exact(self.stored[agent]):
            return self._with(agent, _exact_table(_table(new)))
        return self._with(agent, to_floats(_table(new)) if _is_exact(new) else new)

    def _with(self, agent: int, new: Stored) -> JointPolicy:
        if agent not in range(len(self)):
            raise PolicyError(f"there is no agent {agent!r}; the {len(self)} agents count from 0.")
        check_shape(f"policy[{agent}]", new.shape, self.stored[agent].shape, error=PolicyError)
        moved = _unchecked((*self.stored[:agent], new, *self.stored[agent + 1 :]))
        if "_digests" in self.__dict__:
            digests = (*self._digests[:agent], _table_digest(new), *self._digests[agent + 1 :])
            object.__setattr__(moved, "_digests", digests)
        return moved

    def with_tables(self, tables: Sequence[Stored]) -> JointPolicy:
        """Return the joint policy of these tables, of which only those that are not this policy's own are checked."""
        if len(tables) != len(self):
            raise PolicyError(f"there are {len(tables)} tables; the policy has {len(self)} agents.")
        pairs = enumerate(zip(tables, self.stored, strict=True))
        changed = {i: _checked(f"policy[{i}]", new) for i, (new, old) in pairs if new is not old}
        for i, new in changed.items():
            check_shape(f"policy[{i}]", new.shape, self.stored[i].shape, error=PolicyError)
        return _unchecked(tuple(changed.get(i, old) for i, old in enumerate(self.stored))) if changed else self

    def mix(self, other: JointPolicy, weight: float) -> JointPolicy:
        """Return the policy whose rows are (1 − weight) times these plus weight times the other's."""
        pairs = zip(self, other, strict=True)
        return JointPolicy(tuple((1 - weight) * mine + weight * theirs for mine, theirs in pairs))

    def exact(self) -> JointPolicy:
        """Read all numbers as rationals, each row divided by its exact sum."""
        return _unchecked(tuple(_exact_table(table) for table in self))

    def floats(self) -> JointPolicy:
        """Round all rationals to floats; a policy in floats is returned as it is."""
        if not any(map(_is_exact, self.stored)):
            return self
        return _unchecked(tuple(to_floats(_table(table)) if _is_exact(table) else table for table in self.stored))

    def check_fits(self, shapes: Sequence[PolicyShape]) -> None:
        """Raise unless there is one table per agent, each of the given shape."""
        if len(self) != len(shapes):
            raise PolicyError(f"the policy has {len(self)} agents; the game has {len(shapes)}.")
        for i, (table, shape) in enumerate(zip(self.stored, shapes, strict=True)):
            check_shape(f"policy[{i}]", table.shape, shape, error=PolicyError)

    def save(
        self, path: str | Path, *, multipliers: FloatArray | None = None, version: Literal[1, 2] | None = None
    ) -> None:
        """Write a policy file, `.npz` or `.json`, with the multipliers that prove it where they are known.

        Version 1 has a table for each agent, version 2 actions and the rows that mix. Unless given, it is 2 in a `.npz`
        of large tables that are kept like that.
        """
        from cmpg.files.policies import save_policy  # a room below: files are written on demand

        save_policy(path, self, multipliers=multipliers, version=version)

    @classmethod
    def load(cls, path: str | Path) -> JointPolicy:
        """Read a policy file."""
        from cmpg.files.policies import load_policy  # a room below: files are read on demand

        return load_policy(path)[0]

    def depths(self) -> FloatArray:
        """Return log₂ of the least positive probability of each agent's table at each step: [n, H]."""
        known: dict[int, FloatArray] = {}
        for table in self.stored:
            if id(table) not in known:
                known[id(table)] = _depths(table)
        return np.stack([known[id(table)] for table in self.stored])

    def fingerprint(self) -> bytes:
        """Return a digest that two policies share, but for a chance of 2⁻¹²⁸, only if all their floats are the same."""
        return hashlib.blake2b(b"".join(self._digests), digest_size=16).digest()

    @cached_property
    def _digests(self) -> tuple[bytes, ...]:
        return tuple(_table_digest(table) for table in self.stored)


def action_probabilities(answer: Any, num_actions: int, where: str = "the policy answers {}") -> FloatArray:
    """Return what a policy answered, the number of an action or probabilities, as probabilities: [A].

    Examples
    --------
    >>> action_probabilities(1, 3).tolist(), action_probabilities([0.5, 0.5], 2).tolist()
    ([0.0, 1.0, 0.0], [0.5, 0.5])
    """
    given = np.asarray(answer)
    if given.ndim == 0 or given.size == 1:
        if given.dtype.kind in "iub" and 0 <= int(given.reshape(-1)[0]) < num_actions:
            return np.asarray(np.eye(num_actions)[int(given.reshape(-1)[0])])
        raise PolicyError(
            f"{where.format(_shown(answer))}; there are {num_actions} actions, from 0 to {num_actions - 1}."
        )
    if given.dtype.kind not in "iuf" or given.shape != (num_actions,):
        raise PolicyError(
            f"{where.format(_shown(answer))}; the number of an action, or {num_actions} probabilities, are required."
        )
    row = np.asarray(given, dtype=np.float64)
    if not (np.isfinite(row).all() and (row >= 0).all() and abs(row.sum() - 1) <= 1e-6):
        raise PolicyError(f"{where.format(_shown(answer))}; probabilities must be at least 0 and sum to 1.")
    return np.asarray(row / row.sum())


def _shown(answer: Any) -> str:
    shown = repr(answer)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def draw(probabilities: FloatArray, rng: np.random.Generator) -> int:
    """Draw a place from a distribution, whose sum may be off by rounding.

    Examples
    --------
    >>> draw(np.array([0.0, 1.0, 0.0]), np.random.default_rng(0))
    1
    """
    sums = probabilities.cumsum()
    index = int(sums.searchsorted(rng.random() * sums[-1], side="right"))
    # Rounding can take a draw up to the sum itself; what is meant is the last place with a probability.
    return index if index < len(sums) else int(sums.searchsorted(sums[-1]))


def _rows_that_mix(table: Stored) -> int:
    return len(table.mixed) if isinstance(table, CompactTable) else int((np.count_nonzero(table, axis=2) > 1).sum())


def _depths(table: Stored) -> FloatArray:
    if not isinstance(table, CompactTable):
        return np.asarray(np.log2(np.min(table, axis=(1, 2), where=table > 0, initial=1.0)))
    least = np.ones(table.shape[0])
    rows = np.min(table.rows, axis=1, where=table.rows > 0, initial=1.0)
    np.minimum.at(least, table.mixed // table.shape[1], rows)
    return np.asarray(np.log2(least))


def _rows_table(policy: JointPolicy) -> Table:
    """Return every row of a small policy, with the probability of each action."""
    actions = range(policy.shapes[0][2])
    rows: list[tuple[Cell, ...]] = [
        (f"agent {i}, step {h}, state {s}", *(fixed(table[h, s, a]) for a in actions))
        for i, table in enumerate(policy.tables)
        for h in range(table.shape[0])
        for s in range(table.shape[1])
    ]
    return Table(("", *(f"action {a}" for a in actions)), tuple(rows))


def _table_digest(given: Stored) -> bytes:
    # The same probabilities have the same digest, however they are stored.
    small = isinstance(given, CompactTable) and prod(given.shape) < COMPACT_FROM
    table = _table(given) if small else compacted(given)
    if isinstance(table, CompactTable):
        return table.digest()
    content = repr(table.tolist()).encode() if table.dtype == object else np.ascontiguousarray(table).tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()


def policy_table(name: str, table: Any) -> FloatArray:
    """Return one agent's table [H, S, A] with every row a distribution, or raise with coordinates."""
    array = numbers(name, table, error=PolicyError)
    if array.ndim != 3 or 0 in array.shape:
        raise PolicyError(f"{name} has shape {list(array.shape)}; [H, S, A] with no empty axis is required.")
    return distributions(name, array, ("h", "s"), error=PolicyError)


def _checked(name: str, table: Any) -> Stored:
    if not isinstance(table, CompactTable):
        return compacted(policy_table(name, table))
    actions, steps_states = table.actions, table.actions.size
    if actions.ndim != 2 or not actions.size or actions.min() < 0 or actions.max() >= table.num_actions:
        raise PolicyError(f"{name} has actions outside of 0, …, {table.num_actions - 1}, or no step or no state.")
    if table.mixed.size and not (table.mixed[0] >= 0 and table.mixed[-1] < steps_states):
        raise PolicyError(f"{name} mixes in rows that it does not have.")
    check_shape(f"{name} where it mixes", table.rows.shape, (table.mixed.size, table.num_actions), error=PolicyError)
    if table.mixed.size:
        distributions(f"{name} where it mixes", table.rows, ("row",), error=PolicyError)
    return table


def _is_exact(table: Stored) -> bool:
    return not isinstance(table, CompactTable) and table.dtype.hasobject


def _exact_table(table: FloatArray) -> FloatArray:
    # The rows of a table of Fractions were divided by their exact sums when it was checked.
    return table if table.dtype == object else exact_distributions(table)


def _unchecked(tables: tuple[Stored, ...]) -> JointPolicy:
    policy = object.__new__(JointPolicy)
    object.__setattr__(policy, "stored", tables)
    return policy
