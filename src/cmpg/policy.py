"""Joint policies: one table per agent, and nothing that changes in place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, Numbers, check_shape, distributions, exact_distributions, frozen, numbers, to_floats
from cmpg.errors import PolicyError
from cmpg.faces import MOST_ROWS, Cell, Face, Table, fixed, html, largest, line, shown_of, text

PolicyShape = tuple[int, int, int]
"""Steps, states, actions of one agent's table."""


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

    tables: tuple[FloatArray, ...]  # n tables, each [H, S_i, A_i]

    if TYPE_CHECKING:

        def __init__(self, tables: Sequence[Numbers]) -> None: ...

    def __post_init__(self) -> None:
        tables = tuple(policy_table(f"policy[{i}]", table) for i, table in enumerate(self.tables))
        object.__setattr__(self, "tables", tables)

    def face(self) -> Face:
        """Return what to show: every row where there are few, else how many rows of each agent mix."""
        mixed = np.array([int((np.count_nonzero(table, axis=2) > 1).sum()) for table in self.tables])
        rows = sum(steps * states for steps, states, _ in self.shapes)
        told = f"{len(self)} agents" if len(self) != 1 else "1 agent"
        told += f", {int(mixed.sum()):,} of {rows:,} rows mix"
        if rows <= MOST_ROWS and len({actions for _, _, actions in self.shapes}) == 1:
            return Face(told, parts=(_rows_table(self),))
        shown = largest(mixed)
        sizes = tuple((f"agent {i}", *map(str, self.shapes[i]), f"{mixed[i]:,}") for i in shown)
        columns = ("agent", "steps", "states", "actions", "rows that mix")
        return Face(told, parts=(Table(columns, sizes, shown_of(shown, len(self), "agents who mix most")),))

    __repr__, __str__, _repr_html_ = line, text, html

    @classmethod
    def uniform(cls, shapes: Sequence[PolicyShape]) -> JointPolicy:
        """Every action is equally likely."""
        return cls(tuple(frozen(np.full(shape, 1.0 / shape[-1])) for shape in shapes))

    @classmethod
    def random(cls, shapes: Sequence[PolicyShape], *, rng: np.random.Generator) -> JointPolicy:
        """Every row is drawn uniformly from the simplex."""
        return cls(tuple(rng.dirichlet(np.ones(shape[-1]), size=shape[:2]) for shape in shapes))

    @property
    def shapes(self) -> tuple[PolicyShape, ...]:
        """The shape of each agent's table."""
        return tuple((table.shape[0], table.shape[1], table.shape[2]) for table in self.tables)

    def __getitem__(self, agent: int) -> FloatArray:
        return self.tables[agent]

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[FloatArray]:
        return iter(self.tables)

    def replace(self, agent: int, table: Numbers) -> JointPolicy:
        """Return the joint policy in which one agent plays `table` and nobody else changes."""
        return self._with(agent, policy_table(f"policy[{agent}]", table))

    def move(self, agent: int, table: Numbers) -> JointPolicy:
        """Replace one agent's table by one that is read as the old one is: in rationals, or in floats."""
        new = policy_table(f"policy[{agent}]", table)
        return self._with(agent, _exact_table(new) if self.tables[agent].dtype == object else to_floats(new))

    def _with(self, agent: int, new: FloatArray) -> JointPolicy:
        check_shape(f"policy[{agent}]", new.shape, self.tables[agent].shape, error=PolicyError)
        moved = _unchecked((*self.tables[:agent], new, *self.tables[agent + 1 :]))
        if "_digests" in self.__dict__:
            digests = (*self._digests[:agent], _table_digest(new), *self._digests[agent + 1 :])
            object.__setattr__(moved, "_digests", digests)
        return moved

    def mix(self, other: JointPolicy, weight: float) -> JointPolicy:
        """Return the policy whose rows are (1 − weight) times these plus weight times the other's."""
        pairs = zip(self.tables, other.tables, strict=True)
        return JointPolicy(tuple((1 - weight) * mine + weight * theirs for mine, theirs in pairs))

    def exact(self) -> JointPolicy:
        """Read all numbers as rationals, each row divided by its exact sum."""
        return _unchecked(tuple(_exact_table(table) for table in self.tables))

    def floats(self) -> JointPolicy:
        """Round all rationals to floats; a policy in floats is returned as it is."""
        if not any(table.dtype.hasobject for table in self.tables):
            return self
        return _unchecked(tuple(to_floats(table) for table in self.tables))

    def check_fits(self, shapes: Sequence[PolicyShape]) -> None:
        """Raise unless there is one table per agent, each of the given shape."""
        if len(self.tables) != len(shapes):
            raise PolicyError(f"the policy has {len(self.tables)} agents; the game has {len(shapes)}.")
        for i, (table, shape) in enumerate(zip(self.tables, shapes, strict=True)):
            check_shape(f"policy[{i}]", table.shape, shape, error=PolicyError)

    def save(self, path: str | Path, *, multipliers: FloatArray | None = None) -> None:
        """Write a policy file, `.npz` or `.json`, with the multipliers that prove it where they are known."""
        from cmpg.files.policies import save_policy  # a room below: files are written on demand

        save_policy(path, self, multipliers=multipliers)

    @classmethod
    def load(cls, path: str | Path) -> JointPolicy:
        """Read a policy file."""
        from cmpg.files.policies import load_policy  # a room below: files are read on demand

        return load_policy(path)[0]

    def fingerprint(self) -> bytes:
        """Return a digest that two policies share, but for a chance of 2⁻¹²⁸, only if all their floats are the same."""
        return hashlib.blake2b(b"".join(self._digests), digest_size=16).digest()

    @cached_property
    def _digests(self) -> tuple[bytes, ...]:
        return tuple(_table_digest(table) for table in self.tables)


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


def _table_digest(table: FloatArray) -> bytes:
    content = repr(table.tolist()).encode() if table.dtype == object else np.ascontiguousarray(table).tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()


def policy_table(name: str, table: Any) -> FloatArray:
    """Return one agent's table [H, S, A] with every row a distribution, or raise with coordinates."""
    array = numbers(name, table, error=PolicyError)
    if array.ndim != 3 or 0 in array.shape:
        raise PolicyError(f"{name} has shape {list(array.shape)}; [H, S, A] with no empty axis is required.")
    return distributions(name, array, ("h", "s"), error=PolicyError)


def _exact_table(table: FloatArray) -> FloatArray:
    # The rows of a table of Fractions were divided by their exact sums when it was checked.
    return table if table.dtype == object else exact_distributions(table)


def _unchecked(tables: tuple[FloatArray, ...]) -> JointPolicy:
    policy = object.__new__(JointPolicy)
    object.__setattr__(policy, "tables", tables)
    return policy
