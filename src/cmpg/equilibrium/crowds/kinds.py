"""All kinds of a crowd side by side: plans at given prices, and where plans lead. A search: nothing of it is believed.

The states of all kinds stand in one row, and so do pairs of state and action, with the same number of actions for all
kinds: where a kind has fewer, its first action stands for the others. Each kind may have several queries at once,
in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.local.agent import LocalAgent

DENSE_PAIRS = 500
"""Kinds with at most this many pairs of state and action have dense matrices: a sparse product takes 20 µs."""


@dataclass(frozen=True, eq=False)
class Plans:
    """Plans of some kinds: what they are worth at the prices at which they were made, and what they do."""

    kind: IntArray  # [G]
    values: FloatArray  # [G]
    actions: IntArray  # [G, H, S]; S is that of the kind with most states


@dataclass(frozen=True, eq=False)
class Ways:
    """Where tables of some kinds lead, whatever the others do."""

    used: FloatArray  # [G, H·E]: how likely each resource is used
    values: FloatArray  # [G]: private rewards
    costs: FloatArray  # [G, k]: private costs


class Kinds:
    """The kinds of a crowd in one row."""

    def __init__(self, game: CrowdGame, kinds: Sequence[LocalAgent] | None = None) -> None:
        """Put the tables of all kinds together, or of some of them."""
        self.game, steps = game, game.horizon
        self._kinds = kinds = game.kinds if kinds is None else kinds
        self.steps, self.resources, self.constraints = steps, game.num_resources, game.num_constraints
        self.states = np.array([kind.num_states for kind in kinds])
        self.first = np.concatenate([[0], np.cumsum(self.states)])
        self.actions = max(kind.num_actions for kind in kinds)
        self.widest = int(self.states.max())
        self._moves = self._blocks([kind.transition for kind in kinds])
        self._uses = self._blocks([kind.uses for kind in kinds])
        self._pushes = _each(self._moves, lambda matrix: matrix.T.tocsr())
        self._users = _each(self._uses, lambda matrix: matrix.T.tocsr())
        if int(self.first[-1]) * self.actions <= DENSE_PAIRS:
            tables = (self._moves, self._uses, self._pushes, self._users)
            self._moves, self._uses, self._pushes, self._users = (_each(t, lambda m: m.toarray()) for t in tables)
        self._singles: dict[int, Kinds] = {}
        self._rewards = self._stages([kind.reward for kind in kinds])
        paid = [kind.costs for kind in kinds]
        self.has_private_costs = any(each is not None for each in paid)
        self._costs = [
            self._stages(
                [
                    np.zeros((1, *kind.reward.shape[1:])) if c is None else c[j]
                    for kind, c in zip(kinds, paid, strict=True)
                ]
            )
            for j in range(self.constraints if self.has_private_costs else 0)
        ]
        self._initial = np.concatenate([kind.initial for kind in kinds])
        # Where the entries of the table [S] of each kind stand among all states, padded by its first state.
        inside = np.arange(self.widest) < self.states[:, None]
        self._entries = self.first[:-1, None] + np.where(inside, np.arange(self.widest), 0)

    def _rows(self, kind: int) -> IntArray:
        """Return which rows of a kind stand for its pairs, of which all kinds have as many: [S·A]."""
        own = self._kinds[kind].num_actions
        chosen = np.where(np.arange(self.actions) < own, np.arange(self.actions), 0)
        return np.asarray((np.arange(self.states[kind])[:, None] * own + chosen).ravel())

    def _blocks(self, tables: list[Any]) -> list[Any]:
        """Return one block diagonal matrix for each step, or one for all."""
        length = 1 if all(len(each) == 1 for each in tables) else self.steps
        rows = [self._rows(k) for k in range(len(tables))]
        known: dict[tuple[int, ...], Any] = {}
        widths = [each[0].shape[1] for each in tables]
        offsets = np.concatenate([[0], np.cumsum(widths)])
        cut: dict[tuple[int, int], Any] = {}
        found = []
        for h in range(length):
            step = [each[0 if len(each) == 1 else h] for each in tables]
            key = tuple(map(id, step))
            if key not in known:
                parts = []
                for k, matrix in enumerate(step):
                    if (k, id(matrix)) not in cut:
                        cut[k, id(matrix)] = matrix if len(rows[k]) == matrix.shape[0] else matrix[rows[k]]
                    parts.append(cut[k, id(matrix)])
                data = np.concatenate([part.data for part in parts])
                indices = np.concatenate([part.indices + offsets[k] for k, part in enumerate(parts)])
                ends = np.cumsum([0, *(len(part.data) for part in parts)])
                starts = np.concatenate([part.indptr[:-1] + ends[k] for k, part in enumerate(parts)] + [ends[-1:]])
                known[key] = sp.csr_array((data, indices, starts), shape=(len(starts) - 1, int(offsets[-1])))
            found.append(known[key])
        return found

    def _stages(self, tables: list[FloatArray]) -> FloatArray:
        """Return tables [H or 1, S, A] of all kinds in one row: [H or 1, pairs]."""
        length = 1 if all(len(each) == 1 for each in tables) else self.steps
        rows = [np.broadcast_to(each.reshape(len(each), -1)[:, self._rows(k)], (length, self.states[k] * self.actions))
                for k, each in enumerate(tables)]  # fmt: skip
        return np.concatenate(rows, axis=1)

    def columns(self, kind: IntArray) -> tuple[IntArray, int]:
        """Return the column of each question about a kind, and how many columns there are."""
        order = np.argsort(kind, kind="stable")
        ordered = kind[order]
        column = np.empty(len(kind), dtype=np.int64)
        column[order] = np.arange(len(kind)) - np.searchsorted(ordered, ordered, "left")
        return column, int(column.max(initial=0)) + 1

    def plan(self, kind: IntArray, prices: FloatArray, charges: FloatArray | None = None) -> Plans:
        """Return the best plan of a member of each kind at prices of its own.

        Parameters
        ----------
        kind : [G]
            Which kind; several questions about one are answered side by side.
        prices : [G, H·E]
            What each resource costs its user.
        charges : [G, k]
            What a unit of private cost is charged.
        """
        column, width = self.columns(kind)
        count = len(self._kinds)
        table = np.zeros((self.steps, count, self.resources, width))
        table[:, kind, :, column] = prices.reshape(len(kind), self.steps, self.resources)
        charged = table.reshape(self.steps, count * self.resources, width)
        paid = None
        if charges is not None and self.has_private_costs:
            paid = np.zeros((count, self.constraints, width))
            paid[kind, :, column] = charges
        of = np.repeat(np.arange(count), self.states)
        best = np.zeros((int(self.first[-1]), width))
        chosen = np.zeros((self.steps, len(best), width), dtype=np.int16)
        for h in reversed(range(self.steps)):
            worth = self._at(self._rewards, h)[:, None] - self._at(self._uses, h) @ charged[h]
            for j in range(len(self._costs) if paid is not None else 0):
                worth -= self._at(self._costs[j], h)[:, None] * np.repeat(paid[of, j], self.actions, axis=0)  # type: ignore[index]
            if h + 1 < self.steps:
                worth += self._at(self._moves, h) @ best
            worth = worth.reshape(len(best), self.actions, width)
            best = worth[:, 0]
            here = chosen[h]
            for a in range(1, self.actions):  # actions are few; the first of the best wins
                better = worth[:, a] > best
                best = np.where(better, worth[:, a], best)
                here[better] = a
        weights = sp.csr_array((self._initial, np.arange(len(best)), self.first), shape=(count, len(best)))
        values = weights @ best
        return Plans(kind, values[kind, column], self._tables(chosen, kind, column))

    def _tables(self, chosen: Any, kind: IntArray, column: IntArray) -> IntArray:
        """Return what stands in columns [H, states, m] by question: [G, H, S]."""
        return np.moveaxis(chosen[:, self._entries[kind], column[:, None]], 0, 1)

    def follow(self, kind: IntArray, tables: Any) -> Ways:
        """Return where plans of kinds lead: actions [G, H, S], or probabilities [G, H, S, A]."""
        if len(kind) > 1 or len(self.states) == 1 or self._kinds[kind[0]].num_actions < self.actions:
            return self._follow(kind, tables)[0]
        single = self._single(int(kind[0]))
        return single._follow(np.zeros(1, dtype=np.int64), tables[:, :, : single.widest])[0]

    def _single(self, kind: int) -> Kinds:
        """Return one kind by itself: a plan of it need not be followed among the states of all others."""
        if kind not in self._singles:
            self._singles[kind] = Kinds(self.game, self._kinds[kind : kind + 1])
        return self._singles[kind]

    def occupancies(self, kind: int, actions: IntArray) -> FloatArray:
        """Return how likely a plan [H, S] of one kind comes to each pair: [H, S, A]."""
        visits = self._follow(np.array([kind]), actions[None])[1]
        own = slice(self.first[kind] * self.actions, self.first[kind + 1] * self.actions)
        return visits[:, own, 0].reshape(self.steps, int(self.states[kind]), self.actions)

    def _follow(self, kind: IntArray, tables: Any) -> tuple[Ways, FloatArray]:
        column, width = self.columns(kind)
        count, total = len(self._kinds), int(self.first[-1])
        sure = tables.ndim == 3
        here = np.zeros((total, width)) + self._initial[:, None]
        used = np.zeros((self.steps, count * self.resources, width))
        inside = np.arange(self.widest) < self.states[kind][:, None]
        rows, columns = self._entries[kind][inside], np.broadcast_to(column[:, None], inside.shape)[inside]
        visits = np.empty((self.steps, total * self.actions, width))
        for h in range(self.steps):
            share = np.zeros((total, self.actions, width))
            if sure:
                share[rows, tables[:, h][inside], columns] = 1.0
            else:
                share[rows, :, columns] = tables[:, h][inside]
            mass = (here[:, None, :] * share).reshape(-1, width)
            visits[h] = mass
            used[h] = self._at(self._users, h) @ mass
            here = self._at(self._pushes, h) @ mass
        cells = used.reshape(self.steps, count, self.resources, width)[:, kind, :, column]  # [G, H, E]
        spent = np.zeros((len(kind), self.constraints))
        if self._costs:
            spent = np.stack([self._expected(cost, visits)[kind, column] for cost in self._costs], axis=1)
        # The last bits of a sum can lead above one.
        values = self._expected(self._rewards, visits)[kind, column]
        return Ways(np.minimum(cells.reshape(len(kind), -1), 1.0), values, spent), visits

    def _expected(self, table: FloatArray, visits: FloatArray) -> FloatArray:
        """Return the sum of a table [H or 1, pairs] along visits [H, pairs, m], kind by kind: [K, m]."""
        by_pair = table[0][:, None] * visits.sum(axis=0) if len(table) == 1 else np.einsum("hp,hpm->pm", table, visits)
        return np.asarray(np.add.reduceat(by_pair, self.first[:-1] * self.actions, axis=0))

    @staticmethod
    def _at(tables: Any, step: int) -> Any:
        return tables[0 if len(tables) == 1 else step]

    def table(self, kind: int, actions: Any) -> FloatArray:
        """Return actions [H, S] or probabilities [H, S, A] of this page as a table of the kind's own shape."""
        states, own = int(self.states[kind]), self._kinds[kind].num_actions
        if actions.ndim == 2:
            return np.eye(own)[np.where(actions[:, :states] < own, actions[:, :states], 0)]
        rows = np.array(actions[:, :states, :own])
        rows[..., 0] += actions[:, :states, own:].sum(axis=-1)
        return rows

    def padded(self, table: FloatArray) -> FloatArray:
        """Return a table [H, S, A] in the shape that all kinds have here."""
        full = np.zeros((self.steps, self.widest, self.actions))
        full[:, : table.shape[1], : table.shape[2]] = table
        return full


def _each(matrices: list[Any], change: Any) -> list[Any]:
    known = {id(matrix): change(matrix) for matrix in matrices}
    return [known[id(matrix)] for matrix in matrices]
