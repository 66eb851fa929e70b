"""What draws the actions of many episodes at once: a policy, or a device that tells agents what to do.

The actions that a policy is sure of are looked up, and only the others are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.games.devices import CorrelatedPolicy, Device, Rota
from cmpg.games.play import SearchTable
from cmpg.policy import CompactTable, JointPolicy, Stored


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """A joint policy as the actions that are sure, and the rows that mix."""

    sure: IntArray  # [H, Σ_i S_i]: the action, or −1 − m where row m of `mixed` decides
    starts: IntArray  # [n]: where an agent's states begin
    mixed: SearchTable | None

    @classmethod
    def of(cls, policy: JointPolicy) -> PolicyTable:
        """Prepare a policy in floats."""
        parts, rows, count = [], [], 0
        widest = max(shape[2] for shape in policy.shapes)
        for stored in policy.stored:
            actions, indices, mixing = _split(stored)
            actions[indices // actions.shape[1], indices % actions.shape[1]] = -1 - count - np.arange(len(indices))
            parts.append(actions)
            rows.append(np.pad(mixing, ((0, 0), (0, widest - mixing.shape[1]))))
            count += len(indices)
        sizes = [shape[1] for shape in policy.shapes]
        table = SearchTable.of(np.concatenate(rows)) if count else None
        return cls(np.concatenate(parts, axis=1), np.concatenate([[0], np.cumsum(sizes)[:-1]]), table)

    def begin(self, episodes: int, rng: np.random.Generator) -> None:
        """Begin episodes; nothing is drawn for all of their steps."""

    def draw(self, h: int, states: IntArray, rng: np.random.Generator) -> IntArray:
        """Return an action of every agent in these states [m, B]: [n, B]."""
        chosen = self.sure[h % len(self.sure)].take(states + self.starts[:, None])
        if self.mixed is not None:
            flat = chosen.reshape(-1)
            undecided = np.flatnonzero(flat < 0)
            if len(undecided):
                flat[undecided] = self.mixed.drawn(-1 - flat[undecided], rng)
        return np.asarray(chosen)


class RotaTable:
    """A rota: which of its policies is played is drawn when an episode begins."""

    def __init__(self, rota: Rota) -> None:
        """Prepare the modes."""
        self._modes = [PolicyTable.of(mode.floats()) for mode in rota.modes]
        self._weights = SearchTable.of(np.asarray(rota.weights, dtype=np.float64)[None])
        self.drawn: IntArray = np.zeros(0, dtype=np.int64)  # [B]

    def begin(self, episodes: int, rng: np.random.Generator) -> None:
        """Draw the mode of each episode."""
        self.drawn = self._weights.drawn(np.zeros(episodes, dtype=np.int64), rng)

    def draw(self, h: int, states: IntArray, rng: np.random.Generator) -> IntArray:
        """Return an action of every agent in these states [m, B]: [n, B]."""
        chosen = np.empty((len(self._modes[0].starts), states.shape[1]), dtype=np.int64)
        for m, table in enumerate(self._modes):
            columns = np.flatnonzero(self.drawn == m)
            if len(columns):
                chosen[:, columns] = table.draw(h, states[:, columns], rng)
        return chosen


class CorrelatedTable:
    """A correlated policy: a joint action is drawn at every step."""

    def __init__(self, device: CorrelatedPolicy) -> None:
        """Prepare the laws of joint actions."""
        steps, self._states, *self._actions = device.table.shape
        rows = np.asarray(device.table, dtype=np.float64).reshape(steps * self._states, -1)
        self._steps, self._laws = steps, SearchTable.of(rows)

    def begin(self, episodes: int, rng: np.random.Generator) -> None:
        """Begin episodes; nothing is drawn for all of their steps."""

    def draw(self, h: int, states: IntArray, rng: np.random.Generator) -> IntArray:
        """Return an action of every agent in these joint states [1, B]: [n, B]."""
        outcomes = self._laws.drawn(states[0] + (h % self._steps) * self._states, rng)
        return np.stack(np.unravel_index(outcomes, self._actions))


Player = PolicyTable | RotaTable | CorrelatedTable


def player_of(policy: JointPolicy | Device) -> Player:
    """Return what draws the actions of a policy, or of a device, in many episodes at once."""
    if isinstance(policy, JointPolicy):
        return PolicyTable.of(policy.floats())
    return RotaTable(policy) if isinstance(policy, Rota) else CorrelatedTable(policy)


def _split(stored: Stored) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the sure actions [H, S], and places and rows of what mixes."""
    if isinstance(stored, CompactTable):
        return stored.actions.astype(np.int64), stored.mixed, stored.rows
    rows = stored.reshape(-1, stored.shape[2])
    indices = np.flatnonzero((rows > 0).sum(axis=1) > 1)
    return rows.argmax(axis=1).reshape(stored.shape[:2]), indices, rows[indices]
