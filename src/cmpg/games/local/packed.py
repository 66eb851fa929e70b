"""A local game as the compiled kernels read it: every table in one array of its kind, and what agents share once.

Names, formats and shapes are those of kernels/world_fields.h. What agents can reach, by any policy, is found here too:
kernels visit no other state, and no policy needs an action elsewhere.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from cmpg.cmdp.kernels.choice import LARGEST_INDEX
from cmpg.cmdp.model import drop_broadcast, total_range
from cmpg.errors import GameError
from cmpg.games.local.agent import LocalAgent, distinct, facts_of
from cmpg.games.local.kernels import compiled
from cmpg.policy import CompactTable, Stored

if TYPE_CHECKING:
    from cmpg.games.local.game import LocalGame

WIDEST_ROW = 2
"""Matrices with at most this many entries per row are padded to rows of the same length, as those of maps have."""

BY_STATE, ONE_MORE = 1, 2
"""Flags of uses: rows are listed by state; all rows of a state begin with the same entry, and have at most one more."""


@dataclass(frozen=True, eq=False)
class PackedGame:
    """The arrays of a game, and where the actions of each agent stand among those of all."""

    fields: dict[str, Any]  # sizes and arrays, by the names of kernels/world_fields.h
    actions_of: IntArray  # [n], in entries
    num_entries: int  # Σ_i H·S_i
    action_type: Any  # int8 or int16

    @classmethod
    def of(cls, game: LocalGame) -> PackedGame | None:
        """Pack a game; None where there are no compiled kernels, or where they could not count so far."""
        kernels = compiled()
        if kernels is None or not _countable(game):
            return None
        sizes = [game.horizon * agent.num_states for agent in game.agents]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        most = max(agent.num_actions for agent in game.agents)
        fields = _with_reach(kernels, game, _packed(game))
        return cls(fields, starts[:-1], int(starts[-1]), np.int8 if most <= 2**7 else np.int16)

    @property
    def kernels(self) -> Any:
        """The compiled module; a game that was packed has met it."""
        return importlib.import_module("cmpg.games.local.kernels._compiled")

    @cached_property
    def table_shape(self) -> tuple[int, int]:
        """[H, E]."""
        return self.fields["steps"], self.fields["resources"]

    @cached_property
    def num_constraints(self) -> int:
        """k."""
        return int(self.fields["constraints"])

    @cached_property
    def has_delay(self) -> bool:
        """Whether any resource delays its users."""
        return bool(self.fields["has_delay"])

    @property
    def rounding(self) -> FloatArray:
        """The `rounding` of each agent's CMDP: [n]."""
        return np.asarray(self.fields["rounding"])

    def without_rewards(self) -> PackedGame:
        """Return the game in which nothing is worth anything."""
        return replace(self, fields=self.fields | {"rewards": np.zeros_like(self.fields["rewards"])})

    def accounts(
        self, tables: Sequence[Stored], agents: Sequence[int]
    ) -> tuple[tuple[Any, ...], FloatArray, FloatArray]:
        """Return what agents do by their tables: usages (start, index, probability), private values, private costs."""
        plain = [_readable(table) for table in tables]
        values, costs = np.empty(len(agents)), np.zeros((len(agents), self.num_constraints))
        found = self.kernels.accounts(self.fields, tuple(agents), tuple(plain), values, costs)
        return read_usages(found), values, costs

    def judge(
        self, usages: tuple[Any, ...], agents: range, private: Any, multipliers: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return max V^{r − λ_i c} [n], the current V^r and V^c [n, 1 + k], and the sizes of both, of some agents.

        `private` has the values and costs of all agents.
        """
        shape = (len(multipliers), 1 + self.num_constraints)
        maxima, current, sizes = np.empty(shape[0]), np.empty(shape), np.empty(shape)
        own = [np.ascontiguousarray(each[agents.start : agents.stop]) for each in private]
        found = (*own, multipliers, maxima, current, sizes)
        self.kernels.judge(self.fields, usages, agents.start, agents.stop, *found)
        return maxima, current, sizes


def read_usages(found: tuple[bytes, bytes, bytes]) -> tuple[Any, ...]:
    """Return (start, index, probability) as arrays."""
    return tuple(
        np.frombuffer(each, dtype=kind) for each, kind in zip(found, (np.int64, np.int32, np.float64), strict=True)
    )


def _readable(table: Stored) -> Any:
    """Return actions [H, S] where all rows are certain, else the table [H, S, A]."""
    if not isinstance(table, CompactTable):
        return np.ascontiguousarray(table)
    return table.actions if not len(table.mixed) else table.table


def _countable(game: LocalGame) -> bool:
    """Whether all indices fit into the kernels' integers."""
    rows = max(agent.num_states * agent.num_actions for agent in game.agents)
    indices = max(game.horizon, 1) * game.num_resources
    actions = max(agent.num_actions for agent in game.agents)
    return max(rows, indices, game.num_agents) < LARGEST_INDEX and actions < 2**15


class _Once:
    """Items that come several times, each kept once: `index` says where."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self.items: list[Any] = []

    def index(self, key: Any, make: Callable[[], Any]) -> int:
        """Return where the item with this key stands; it is made the first time that it comes."""
        if key not in self._known:
            self._known[key] = len(self.items)
            self.items.append(make())
        return self._known[key]


def _packed(game: LocalGame) -> dict[str, Any]:
    """Return all fields; what can be reached is not known yet."""
    sizes = {
        "agents": game.num_agents,
        "steps": game.horizon,
        "resources": game.num_resources,
        "constraints": game.num_constraints,
        "states": _int([agent.num_states for agent in game.agents]),
        "actions": _int([agent.num_actions for agent in game.agents]),
        "order_of": _long([0] * game.num_agents),
        "order": _int([0]),
        "reach": _int([0]),
        "reward_range": np.array(_ranges(game)),
        "rounding": np.array(_roundings(game)),
    }
    return sizes | _packed_dynamics(game) | _packed_stages(game.agents) | _packed_loads(game)


def _packed_dynamics(game: LocalGame) -> dict[str, Any]:
    """Where agents start, how they move, and what they use."""
    agents, moves, use = game.agents, _Matrices(), _Matrices()
    of_moves = [moves.sequence(agent.transition, _padded, game.horizon) for agent in agents]
    of_uses = [use.sequence(agent.uses, _Uses(agent.num_actions), game.horizon) for agent in agents]
    starts = [np.flatnonzero(agent.initial) for agent in agents]
    return {
        "initial_of": _long([0, *np.cumsum([len(each) for each in starts])]),
        "initial_state": _int(np.concatenate(starts)),
        "initial_probability": np.concatenate([a.initial[each] for a, each in zip(agents, starts, strict=True)]),
        "moves_of": _int(of_moves),
        "moves_at": _int(moves.sequences),
        "first_row": _long(moves.first_rows),
        "row_stays": np.array([matrix.flags for matrix in moves.matrices], dtype=np.int8),
        "row_start": moves.starts,
        "target": moves.columns,
        "probability": moves.entries,
        "uses_of": _int(of_uses),
        "uses_at": _int(use.sequences),
        "first_use_row": _long(use.first_rows),
        "use_by_state": np.array([matrix.flags for matrix in use.matrices], dtype=np.int8),
        "use_start": use.starts,
        "used": use.columns,
    }


def _packed_stages(agents: Sequence[LocalAgent]) -> dict[str, Any]:
    """Private rewards and costs, and where those of each agent stand."""
    rewards, costs = _Tables(), _Tables()
    reward_of, _, reward_step, reward_columns = zip(*(rewards.layout(a.reward[None]) for a in agents), strict=True)
    layouts = [(-1, 0, 0, 1) if a.costs is None else costs.layout(a.costs) for a in agents]
    cost_of, cost_family, cost_step, cost_columns = zip(*layouts, strict=True)
    return {
        "reward_of": _long(reward_of),
        "reward_step": _long(reward_step),
        "reward_columns": _int(reward_columns),
        "rewards": rewards.entries,
        "cost_of": _long(cost_of),
        "cost_family": _long(cost_family),
        "cost_step": _long(cost_step),
        "cost_columns": _int(cost_columns),
        "costs": costs.entries,
    }


def _packed_loads(game: LocalGame) -> dict[str, Any]:
    """Delays and load costs, of quadratic and of general resources; see `LoadTables`."""
    tables = game.tables
    general_of = np.full(game.num_resources, -1, dtype=np.int32)
    general_of[tables.general] = np.arange(len(tables.general))
    return {
        "general": len(tables.general),
        "charged": tables.general_costs.shape[-1],
        "has_delay": int(tables.has_delay),
        "delay_stride": _stride(len(tables.first_delay), game.num_resources),
        "slope_stride": _stride(tables.slopes.shape[1], game.num_resources),
        "first_stride": _stride(tables.first_costs.shape[1], game.num_resources),
        "general_delay_stride": _stride(tables.general_delay.shape[1], 1),
        "general_cost_stride": _stride(tables.general_costs.shape[2], 1),
        "first_delay": np.ascontiguousarray(tables.first_delay),
        "slopes": np.ascontiguousarray(tables.slopes),
        "first_costs": np.ascontiguousarray(tables.first_costs),
        "idle_costs": np.ascontiguousarray(tables.idle_costs),
        "general_of": general_of,
        "general_delay": np.ascontiguousarray(np.moveaxis(tables.general_delay, 0, -1)),
        "general_steps": np.ascontiguousarray(np.moveaxis(tables.general_steps, 1, -1)),
        "general_costs": np.ascontiguousarray(np.moveaxis(tables.general_costs, 1, -1)),
    }


def _stride(steps: int, entries: int) -> int:
    """Return the entries from one step of a table to the next: none if it is the same at all steps."""
    return entries if steps > 1 else 0


def _with_reach(kernels: Any, game: LocalGame, fields: dict[str, Any]) -> dict[str, Any]:
    """Add which states each agent can reach: those of one kind and one start share them."""
    orders, of_agent, reaches = _Once(), [], []
    for i, agent in enumerate(game.agents):
        start = tuple(np.flatnonzero(agent.initial).tolist())

        def reached(i: int = i, agent: LocalAgent = agent) -> tuple[Any, Any]:
            order, reach = np.zeros(agent.num_states, dtype=np.int32), np.zeros(game.horizon, dtype=np.int32)
            kernels.reach(fields, i, order, reach)
            return order[: reach[-1]].copy(), reach

        of_agent.append(orders.index((id(agent.transition), start), reached))
        reaches.append(orders.items[of_agent[-1]][1])
    starts = np.concatenate([[0], np.cumsum([len(order) for order, _ in orders.items])])
    return fields | {
        "order": np.concatenate([order for order, _ in orders.items]),
        "order_of": _long(starts[of_agent]),
        "reach": np.ascontiguousarray(np.stack(reaches), dtype=np.int32),
    }


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a matrix as a kernel reads them."""

    starts: Any  # [rows]: from 0
    columns: Any
    entries: FloatArray
    flags: int = (
        0  # of a transition, whether rows have two entries, the state itself first; of uses, BY_STATE or ONE_MORE
    )


class _Matrices:
    """Matrices one after the other, each once, and the sequences of them that agents go through."""

    def __init__(self) -> None:
        self._matrices, self._sequences = _Once(), _Once()

    def sequence(self, given: Sequence[sp.csr_array], read: Callable[[sp.csr_array], _Rows], horizon: int) -> int:
        """Return which sequence of one matrix per step this is."""

        def matrices() -> list[int]:
            known = {}
            for matrix in distinct(given):
                key = (facts_of(matrix).content, read)
                known[id(matrix)] = self._matrices.index(key, partial(_rows_of, matrix, read))
            one_each = [known[id(matrix)] for matrix in given]
            return one_each * horizon if len(one_each) == 1 else one_each

        return self._sequences.index((id(given), read), matrices)

    @property
    def sequences(self) -> list[list[int]]:
        return self._sequences.items

    @property
    def matrices(self) -> list[_Rows]:
        return self._matrices.items

    @cached_property
    def first_rows(self) -> Any:
        return np.concatenate([[0], np.cumsum([len(matrix.starts) for matrix in self.matrices])])[:-1]

    @cached_property
    def starts(self) -> IntArray:
        ends = np.cumsum([len(matrix.columns) for matrix in self.matrices])
        before = np.concatenate([[0], ends[:-1]])
        parts = [matrix.starts + first for matrix, first in zip(self.matrices, before, strict=True)]
        return _long(np.concatenate([*parts, ends[-1:]]))

    @cached_property
    def columns(self) -> Any:
        return _int(np.concatenate([matrix.columns for matrix in self.matrices]))

    @cached_property
    def entries(self) -> FloatArray:
        return np.concatenate([matrix.entries for matrix in self.matrices])


def _rows_of(matrix: sp.csr_array, read: Callable[[sp.csr_array], _Rows]) -> _Rows:
    """Return the rows of a matrix, which is read once in this way."""
    rows = facts_of(matrix).rows
    if read not in rows:
        rows[read] = read(matrix)
    found: _Rows = rows[read]
    return found


def _padded(matrix: sp.csr_array) -> _Rows:
    """Return the rows of a transition; short ones filled up with zeros to the same length."""
    _check_columns(matrix)
    lengths = np.diff(matrix.indptr)
    width = int(lengths.max(initial=1))
    if width > WIDEST_ROW or not lengths.all():
        return _Rows(matrix.indptr[:-1].astype(np.int64), matrix.indices, matrix.data)
    columns = np.repeat(matrix.indices[matrix.indptr[:-1]], width)
    entries = np.zeros(len(columns))
    entry = np.repeat(np.arange(len(lengths)) * width - matrix.indptr[:-1], lengths) + np.arange(matrix.nnz)
    columns[entry], entries[entry] = matrix.indices, matrix.data
    starts, stays = np.arange(len(lengths), dtype=np.int64) * width, False
    if width == 2:
        pairs, odds = columns.reshape(-1, 2), entries.reshape(-1, 2)
        own = np.repeat(np.arange(matrix.shape[1]), len(lengths) // matrix.shape[1])
        # The state itself first: a sum of two terms has the same bits in either order.
        turned = (pairs[:, 1] == own) & (pairs[:, 0] != own)
        pairs[turned], odds[turned] = pairs[turned, ::-1], odds[turned, ::-1]
        stays = bool((pairs[:, 0] == own).all())
    return _Rows(starts, columns, entries, int(stays))


@dataclass(frozen=True)
class _Uses:
    """Reads a matrix of uses: one row for each state where the action does not matter."""

    num_actions: int

    def __call__(self, matrix: sp.csr_array) -> _Rows:
        """Return its rows."""
        _check_columns(matrix)
        starts, columns, lengths = matrix.indptr[:-1].astype(np.int64), matrix.indices, np.diff(matrix.indptr)
        first = np.repeat(starts[:: self.num_actions], self.num_actions)
        flags = 0
        if (lengths.reshape(-1, self.num_actions) == lengths[:: self.num_actions, None]).all() and np.array_equal(
            columns, columns[np.repeat(first - starts, lengths) + np.arange(len(columns))]
        ):
            # Every row of a state is its first one.
            kept = np.repeat(np.arange(len(lengths)) % self.num_actions == 0, lengths)
            columns, lengths = columns[kept], lengths[:: self.num_actions]
            starts, flags = np.concatenate([[0], np.cumsum(lengths)])[:-1], BY_STATE
        elif ((lengths == 1) | (lengths == 2)).all() and np.array_equal(columns[starts], columns[first]):
            flags = ONE_MORE
        return _Rows(starts, columns, np.ones(len(columns)), flags)


def _check_columns(matrix: sp.csr_array) -> None:
    """SciPy does not look at the indices of a matrix that is given in parts; a kernel would follow them anywhere."""
    starts, columns = matrix.indptr, matrix.indices
    if starts[0] != 0 or starts[-1] != len(columns) or (np.diff(starts) < 0).any():
        raise GameError("a sparse matrix has rows that do not follow each other.")
    if len(columns) and (columns.min() < 0 or columns.max() >= matrix.shape[1]):
        raise GameError(f"a sparse matrix has an entry outside of its {matrix.shape[1]} columns.")


class _Tables:
    """Tables [family, H or 1, S, A] one after the other, each once."""

    def __init__(self) -> None:
        self._tables, self._ends = _Once(), [0]

    def layout(self, table: FloatArray) -> tuple[int, int, int, int]:
        """Return where a table begins, its strides of family and step, and its number of columns."""
        entries = drop_broadcast(table)

        def kept() -> FloatArray:
            self._ends.append(self._ends[-1] + entries.size)
            return np.ascontiguousarray(entries)

        key = (table.__array_interface__["data"][0], table.shape, table.strides)
        begin = self._ends[self._tables.index(key, kept)]
        step = int(np.prod(entries.shape[2:]))
        return begin, step * entries.shape[1], step if entries.shape[1] > 1 else 0, entries.shape[3]

    @property
    def entries(self) -> FloatArray:
        return np.concatenate([np.zeros(0), *(table.ravel() for table in self._tables.items)])


def _ranges(game: LocalGame) -> list[float]:
    """G_i of the private rewards, which are all there is where nothing is delayed."""
    known = _Once()
    which = [known.index(id(a.reward), partial(total_range, a.reward, game.horizon, None)) for a in game.agents]
    return [known.items[each] for each in which]


def _roundings(game: LocalGame) -> list[float]:
    """The `rounding` of each agent's CMDP."""
    known = _Once()

    def rounding(agent: LocalAgent) -> float:
        row = max(facts_of(matrix).most_in_row for matrix in distinct(agent.transition))
        # Loads are summed agent by agent; see `SparseLoads.more_roundings`.
        behind = game.usage_roundings + game.tables.entry_roundings + 2 * game.num_agents + agent.max_uses + 4
        step = 6 * (row + agent.num_actions - (-behind // game.horizon)) + 2 * game.num_constraints + 8
        return (game.horizon * step + 6 * agent.num_states) * UNIT_ROUNDOFF

    keys = [(id(agent.transition), id(agent.uses), agent.num_actions) for agent in game.agents]
    which = [known.index(key, partial(rounding, a)) for key, a in zip(keys, game.agents, strict=True)]
    return [known.items[each] for each in which]


def _int(values: Any) -> Any:
    return np.ascontiguousarray(values, dtype=np.int32)


def _long(values: Any) -> IntArray:
    return np.ascontiguousarray(values, dtype=np.int64)
