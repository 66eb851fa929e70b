"""How games are played: one stepper for each form, which plays B episodes side by side as whole arrays.

States are arrays [m, B], with one row per agent where agents see their own states, and a single row where all see the
same one. Random numbers invert distribution functions: a row of probabilities is stored as its sums up to each entry,
padded to a power of two with infinities, and searched by halving (`SearchTable`), so that a row with one entry takes no
step, and one with two takes one. Who draws the actions is in `players`.

Tables that do not change with the step have a step axis of length one. A discounted game goes on forever, with the same
tables at every step; the caller decides when to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, at_step
from cmpg.games.game import Stepped
from cmpg.policy import draw

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame
    from cmpg.games.joint.game import JointGame
    from cmpg.games.local.game import LocalGame

MANY_RESOURCES = 24
"""With more resources per agent than this, loads are counted agent by agent, and not all resources are gone through."""


@dataclass(frozen=True, eq=False)
class SearchTable:
    """Rows of probabilities, ready to draw from.

    Examples
    --------
    >>> table = SearchTable.of(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]))
    >>> table.draw(np.array([0, 0, 1]), np.array([0.2, 0.7, 0.9])).tolist()
    [0, 2, 1]
    """

    width: int  # a power of two
    sums: FloatArray  # [rows · width]: infinite from the last entry on
    columns: IntArray  # [rows · width]

    @classmethod
    def of(cls, rows: Any) -> SearchTable:
        """Prepare a matrix of probabilities, dense or CSR, whose rows sum to one up to rounding."""
        matrix = rows if sp.issparse(rows) else sp.csr_array(rows)
        matrix = matrix if matrix.has_canonical_format and matrix.data.all() else _cleaned(matrix)
        lengths = np.diff(matrix.indptr)
        width = 1 << int(lengths.max() - 1).bit_length()
        row = np.repeat(np.arange(len(lengths)), lengths)
        index = np.arange(len(matrix.data)) - matrix.indptr[row]
        # Row by row and not as differences of one long sum, whose rounding would grow with the number of rows.
        table = np.zeros((len(lengths), width))
        table[row, index] = matrix.data
        sums = np.cumsum(table, axis=1)
        sums /= sums[:, -1:]
        sums[np.arange(width) >= lengths[:, None] - 1] = np.inf
        columns = np.zeros(table.shape, dtype=np.int64)
        columns[row, index] = matrix.indices
        return cls(width, sums.ravel(), columns.ravel())

    def draw(self, rows: IntArray, uniform: FloatArray | None) -> IntArray:
        """Return a column of each of these rows, for numbers drawn uniformly from [0, 1); None where width is 1."""
        index = rows * self.width
        half = self.width >> 1
        while half and uniform is not None:
            # How many of the sums are at most the number, bit by bit from the highest.
            index += half * (self.sums.take(index + (half - 1)) <= uniform)
            half >>= 1
        return np.asarray(self.columns.take(index))

    def drawn(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Return a column of each of these rows, at random."""
        return self.draw(rows, rng.random(rows.shape) if self.width > 1 else None)


def _cleaned(matrix: Any) -> Any:
    clean = sp.csr_array(matrix, copy=True)
    clean.sum_duplicates()
    clean.eliminate_zeros()
    return clean


@dataclass(frozen=True, eq=False)
class JointStepper:
    """A joint game, in floats."""

    game: JointGame

    def begin(self, episodes: int, rng: np.random.Generator) -> IntArray:
        """Draw the joint states: [1, B]."""
        return self._start.drawn(np.zeros((1, episodes), dtype=np.int64), rng)

    def step(self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator) -> Stepped:
        """Play step h in every episode."""
        entries = states[0]
        for size, chosen in zip(self.game.num_actions, actions, strict=True):
            entries = entries * size + chosen
        rewards, costs = at_step(self._rewards, h).take(entries, axis=1), at_step(self._costs, h).take(entries, axis=1)
        return Stepped(rewards, costs, at_step(self._transition, h).drawn(entries[None], rng))

    @cached_property
    def payoff_scale(self) -> float:
        """The largest payoff of a step."""
        return max(float(np.abs(table).max(initial=0.0)) for table in (self.game.rewards, self.game.costs))

    @cached_property
    def _start(self) -> SearchTable:
        return SearchTable.of(self.game.initial[None])

    @cached_property
    def _transition(self) -> list[SearchTable]:
        states = self.game.num_states
        steps = self.game.transition if self.game.is_sparse else self.game.transition.reshape(-1, states)
        if self.game.is_sparse:
            return [SearchTable.of(matrix) for matrix in steps]
        count = len(self.game.transition)
        return [SearchTable.of(steps[len(steps) // count * h : len(steps) // count * (h + 1)]) for h in range(count)]

    @cached_property
    def _rewards(self) -> list[FloatArray]:
        return _by_step(self.game.rewards)

    @cached_property
    def _costs(self) -> list[FloatArray]:
        return _by_step(self.game.costs)


@dataclass(frozen=True, eq=False)
class CountingStepper:
    """A counting game, in floats."""

    game: CountingGame

    def begin(self, episodes: int, rng: np.random.Generator) -> IntArray:
        """Draw the shared states: [1, B]."""
        return self._start.drawn(np.zeros((1, episodes), dtype=np.int64), rng)

    def step(self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator) -> Stepped:
        """Play step h in every episode."""
        game, shared = self.game, states[0]
        counts = np.stack([(actions == a).sum(axis=0) for a in range(game.num_actions[0])])
        labels = game.classes.of(counts.T)
        pairs = shared * game.num_actions[0] + actions
        together = np.take_along_axis(counts, actions, axis=0)
        rewards = at_step(game.rewards, h).reshape(-1).take(pairs * (game.num_agents + 1) + together)
        if self._has_class_rewards:
            rewards += at_step(game.class_rewards, h).reshape(-1).take(pairs * game.num_classes + labels)
        if self._has_private_rewards:
            own = game.private_rewards[:, h % game.private_rewards.shape[1]]
            size = own[0].size
            rewards += own.reshape(-1).take(pairs + size * np.arange(game.num_agents)[:, None])
        entries = shared * game.num_classes + labels
        costs = at_step(self._costs, h).take(entries, axis=1)
        return Stepped(rewards, costs, at_step(self._transition, h).drawn(entries[None], rng))

    @cached_property
    def payoff_scale(self) -> float:
        """The largest payoff of a step."""
        tables = (self.game.rewards[..., 1:], self.game.class_rewards, self.game.private_rewards, self.game.costs)
        return max(float(np.abs(table).max(initial=0.0)) for table in tables)

    @cached_property
    def _start(self) -> SearchTable:
        return SearchTable.of(self.game.initial[None])

    @cached_property
    def _has_class_rewards(self) -> bool:
        return bool(self.game.class_rewards.any())

    @cached_property
    def _has_private_rewards(self) -> bool:
        return bool(self.game.private_rewards.any())

    @cached_property
    def _transition(self) -> list[SearchTable]:
        return [SearchTable.of(step.reshape(-1, self.game.num_states)) for step in self.game.transition]

    @cached_property
    def _costs(self) -> list[FloatArray]:
        return _by_step(self.game.costs)


class LocalStepper:
    """A local game: agents move on their own, and loads are counted.

    The cost of a resource at load m is paid by its m users in equal shares, so that only what is used is visited.
    """

    def __init__(self, game: LocalGame) -> None:
        self._game = game
        steps, agents = range(game.horizon), game.agents
        transitions = _Stack([[at_step(agent.transition, h) for agent in agents] for h in steps])
        uses = _Stack([[at_step(agent.uses, h) for agent in agents] for h in steps])
        self._moves, self._move_rows = SearchTable.of(_below(transitions.distinct)), transitions.starts
        self._used, self._use_rows = _padded(_below(uses.distinct), game.num_resources), uses.starts
        self._initial = SearchTable.of(_below([sp.csr_array(agent.initial[None]) for agent in agents]))
        self._actions = np.array([[agent.num_actions] for agent in agents])
        rewards = _Stack([[at_step(agent.reward, h) for agent in agents] for h in steps])
        self._reward, self._reward_rows = np.concatenate([each.ravel() for each in rewards.distinct]), rewards.starts
        self._spenders = [i for i, agent in enumerate(agents) if agent.costs is not None]

    def begin(self, episodes: int, rng: np.random.Generator) -> IntArray:
        """Draw each agent's own state: [n, B]."""
        rows = np.broadcast_to(np.arange(self._game.num_agents)[:, None], (self._game.num_agents, episodes))
        return self._initial.drawn(rows, rng)

    def step(self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator) -> Stepped:
        """Play step h in every episode."""
        pairs = states * self._actions + actions
        rewards = self._reward.take(pairs + self._reward_rows[h])
        costs = np.repeat(at_step(self._idle_costs, h)[:, None], states.shape[1], axis=1)
        self._add_loads(h, pairs, rewards, costs)
        for i in self._spenders:
            own = self._game.agents[i].costs
            assert own is not None
            costs += own[:, h % own.shape[1]].reshape(len(own), -1).take(pairs[i], axis=1)
        return Stepped(rewards, costs, self._moves.drawn(pairs + self._move_rows[h], rng))

    def _add_loads(self, h: int, pairs: IntArray, rewards: FloatArray, costs: FloatArray) -> None:
        """Charge delays to rewards [n, B] and shares of load costs to costs [k, B]; both are written to."""
        game, episodes = self._game, pairs.shape[1]
        rows = pairs + self._use_rows[h]
        column = np.arange(episodes)
        if not self._used:
            return
        indices = [slot.take(rows) for slot in self._used]  # each [n, B], the last resource for none
        keys = [index * episodes + column for index in indices]
        loads = self._counted(keys, (game.num_resources + 1) * episodes)
        loads[-episodes:] = 0  # of what stands for no resource
        for index, key in zip(indices, keys, strict=True):
            entries = index * (game.num_agents + 1) + loads.take(key)
            if self._delays is not None:
                rewards -= at_step(self._delays, h).take(entries)
            for j, shares in enumerate(at_step(self._shares, h)):
                costs[j] += shares.take(entries).sum(axis=0)

    def _counted(self, keys: Sequence[IntArray], size: int) -> IntArray:
        if self._game.num_resources <= MANY_RESOURCES * self._game.num_agents:
            return np.asarray(sum(np.bincount(key.reshape(-1), minlength=size) for key in keys))
        loads: Any = np.zeros(size, dtype=np.int16)
        for key in keys:
            for own in key:  # no agent uses a resource twice, so that the keys of one agent differ
                loads[own] += 1
        return np.asarray(loads)

    @cached_property
    def payoff_scale(self) -> float:
        """The most that one agent's step can bring, or add to a cost."""
        game = self._game
        rises = [np.diff(game.load_costs, axis=-1), game.delay[..., 1:], self._reward]
        rises += [agent.costs for agent in game.agents if agent.costs is not None]
        return max(float(np.abs(table).max(initial=0.0)) for table in rises)

    @cached_property
    def _delays(self) -> list[FloatArray] | None:
        delay = self._game.delay
        return [_with_none(step).ravel() for step in delay] if delay[..., 1:].any() else None

    @cached_property
    def _shares(self) -> list[list[FloatArray]]:
        """For each step and constraint, what each of m users of a resource adds: [(E + 1) · (n + 1)]."""
        users = np.maximum(np.arange(self._game.num_agents + 1.0), 1.0)
        costs = self._game.load_costs
        added = (costs - costs[..., :1]) / users
        return [[_with_none(added[j, h]).ravel() for j in range(len(added))] for h in range(added.shape[1])]

    @cached_property
    def _idle_costs(self) -> list[FloatArray]:
        """What resources cost that no agent uses: [k] by step."""
        return list(self._game.load_costs[..., 0].sum(axis=2).T)


class _Stack:
    """Tables of all steps and agents, each once, and where the rows of each of them begin."""

    def __init__(self, tables: Sequence[Sequence[Any]]) -> None:
        first: dict[int, int] = {}
        self.distinct: list[Any] = []
        sizes = [0]
        for table in (each for step in tables for each in step):
            key = id(table) if sp.issparse(table) else table.__array_interface__["data"][0]
            if key not in first:
                first[key] = len(self.distinct)
                self.distinct.append(table)
                sizes.append(table.shape[0] if sp.issparse(table) else table.size)
        begins = np.cumsum(sizes)
        keys = [
            [id(each) if sp.issparse(each) else each.__array_interface__["data"][0] for each in step] for step in tables
        ]
        self.starts = np.array([[[begins[first[key]]] for key in step] for step in keys])  # [H, n, 1]


def _padded(uses: Any, none: int) -> list[IntArray]:
    """Return the first, second, … resource that each row uses; `none` where there are fewer."""
    lengths = np.diff(uses.indptr)
    most = int(lengths.max(initial=0))
    table = np.full((most, len(lengths)), none, dtype=np.int64)
    row = np.repeat(np.arange(len(lengths)), lengths)
    table[np.arange(len(uses.indices)) - uses.indptr[row], row] = uses.indices
    return list(table)


def _below(matrices: Sequence[Any]) -> Any:
    """Put CSR matrices below each other; those with fewer columns have nothing in the others."""
    ends = np.concatenate([[0], np.cumsum([matrix.nnz for matrix in matrices])])
    begins = [matrix.indptr[:-1] + end for matrix, end in zip(matrices, ends[:-1], strict=True)]
    data, indices = (np.concatenate([getattr(matrix, name) for matrix in matrices]) for name in ("data", "indices"))
    shape = (sum(matrix.shape[0] for matrix in matrices), max(matrix.shape[1] for matrix in matrices))
    return sp.csr_array((data, indices, np.concatenate([*begins, ends[-1:]])), shape=shape)


def _with_none(table: FloatArray) -> FloatArray:
    """Add the resource that stands for none, which costs nothing: [E + 1, n + 1]."""
    return np.vstack([table, np.zeros((1, table.shape[1]))])


def _by_step(tables: FloatArray) -> list[FloatArray]:
    """Return tables [m, H or 1, …] as one contiguous table [m, rest] per step."""
    return [
        np.ascontiguousarray(tables[:, h].reshape(len(tables), prod(tables.shape[2:]))) for h in range(tables.shape[1])
    ]


# --- One episode at a time --------------------------------------------------------------------------------------------


class OneEpisode(Protocol):
    """How one episode of a game is played; everything random comes from the generator."""

    def begin(self, rng: np.random.Generator) -> IntArray:
        """Draw the state that each agent sees at first: [n]; the same for all if they see the joint state."""

    def step(
        self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Play one joint action [n] at step h; return rewards [n], costs [k] and the next states [n]."""


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A stepper of a game that can only be played one episode at a time.

    Examples
    --------
    >>> class Coin:
    ...     def begin(self, rng):
    ...         return np.zeros(1, dtype=int)
    ...     def step(self, h, states, actions, rng):
    ...         return actions * 1.0, np.zeros(0), states
    >>> stepper, rng = OneByOne(Coin()), np.random.default_rng(0)
    >>> stepper.step(0, stepper.begin(3, rng), np.array([[0, 1, 1]]), rng).rewards
    array([[0., 1., 1.]])
    """

    episode: OneEpisode
    payoff_scale: float = 1.0  # the most that a step of one agent can bring it, or add to a cost, if that is known

    def begin(self, episodes: int, rng: np.random.Generator) -> IntArray:
        """Draw the first states: [n, B]."""
        return np.stack([self.episode.begin(rng) for _ in range(episodes)], axis=1)

    def step(self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator) -> Stepped:
        """Play step h in every episode."""
        played = [self.episode.step(h, seen, chosen, rng) for seen, chosen in zip(states.T, actions.T, strict=True)]
        rewards, costs, following = (np.stack(each, axis=1) for each in zip(*played, strict=True))
        return Stepped(rewards, costs, following)


def draw_from_row(matrix: Any, row: int, rng: np.random.Generator) -> int:
    """Draw a column from one row of a CSR matrix of probabilities."""
    indices, probabilities = entries(matrix, row)
    return int(indices[draw(probabilities, rng)])


def entries(matrix: Any, row: int) -> tuple[IntArray, FloatArray]:
    """Return columns and numbers of one row of a CSR matrix."""
    inside = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[inside], matrix.data[inside]
