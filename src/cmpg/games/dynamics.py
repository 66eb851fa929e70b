"""The three forms of games, played one step at a time: what is drawn, and nothing is averaged.

Tables that do not change with the step have a step axis of length one. A discounted game goes on forever, with the same
tables at every step; whoever plays it decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.policy import draw

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame
    from cmpg.games.joint.game import JointGame
    from cmpg.games.local.game import LocalGame


@dataclass(frozen=True, eq=False)
class JointDynamics:
    """A joint game, in floats."""

    game: JointGame

    def begin(self, rng: np.random.Generator) -> IntArray:
        """Draw the joint state, which everybody sees: [n]."""
        return np.full(self.game.num_agents, draw(self.game.initial, rng))

    def step(
        self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Play one joint action [n]; return rewards [n], costs [k] and the next states [n]."""
        game, entry = self.game, (int(states[0]), *map(int, actions))
        matrix = at_step(game.transition, h)
        if game.is_sparse:
            row = int(np.ravel_multi_index(entry, (game.num_states, *game.num_actions)))
            following = draw_from_row(matrix, row, rng)
        else:
            following = draw(matrix[entry], rng)
        everybody: tuple[Any, ...] = (slice(None), *entry)
        rewards, costs = _at_step_each(game.rewards, h)[everybody], _at_step_each(game.costs, h)[everybody]
        return rewards, costs, np.full(game.num_agents, following)


@dataclass(frozen=True, eq=False)
class CountingDynamics:
    """A counting game, in floats."""

    game: CountingGame

    def begin(self, rng: np.random.Generator) -> IntArray:
        """Draw the shared state: [n]."""
        return np.full(self.game.num_agents, draw(self.game.initial, rng))

    def step(
        self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Play one joint action [n]; return rewards [n], costs [k] and the next states [n]."""
        game, s = self.game, int(states[0])
        counts = np.bincount(actions, minlength=game.num_actions[0])
        label = int(game.classes.of(counts))
        rewards = (
            at_step(game.rewards, h)[s, actions, counts[actions]]
            + _at_step_each(game.private_rewards, h)[np.arange(game.num_agents), s, actions]
            + at_step(game.class_rewards, h)[s, actions, label]
        )
        following = draw(at_step(game.transition, h)[s, label], rng)
        return rewards, _at_step_each(game.costs, h)[:, s, label], np.full(game.num_agents, following)


@dataclass(frozen=True, eq=False)
class LocalDynamics:
    """A local game: everybody moves by itself, and loads are counted."""

    game: LocalGame

    def begin(self, rng: np.random.Generator) -> IntArray:
        """Draw each agent's own state: [n]."""
        return np.array([draw(agent.initial, rng) for agent in self.game.agents])

    def step(
        self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Play one joint action [n]; return rewards [n], costs [k] and the next states [n]."""
        game = self.game
        rows = [int(s * agent.num_actions + a) for agent, s, a in zip(game.agents, states, actions, strict=True)]
        pairs = list(zip(game.agents, rows, strict=True))
        used = [places[times > 0] for places, times in (entries(at_step(agent.uses, h), row) for agent, row in pairs)]
        loads = np.bincount(np.concatenate(used), minlength=game.num_resources)
        everywhere = np.arange(game.num_resources)
        delays = at_step(game.delay, h)[everywhere, loads]
        rewards = [
            at_step(agent.reward, h).flat[row] - delays[mine].sum()
            for (agent, row), mine in zip(pairs, used, strict=True)
        ]
        costs = _at_step_each(game.load_costs, h)[:, everywhere, loads].sum(axis=1)
        for agent, row in pairs:
            if agent.costs is not None:
                costs = costs + _at_step_each(agent.costs, h).reshape(game.num_constraints, -1)[:, row]
        following = [draw_from_row(at_step(agent.transition, h), row, rng) for agent, row in pairs]
        return np.array(rewards), costs, np.array(following)


def draw_from_row(matrix: Any, row: int, rng: np.random.Generator) -> int:
    """Draw a column from one row of a CSR matrix of probabilities."""
    places, probabilities = entries(matrix, row)
    return int(places[draw(probabilities, rng)])


def entries(matrix: Any, row: int) -> tuple[IntArray, FloatArray]:
    """Return columns and numbers of one row of a CSR matrix."""
    inside = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[inside], matrix.data[inside]


def at_step(tables: Any, h: int) -> Any:
    """Return the table of a step, of tables that have one per step, or one for all."""
    return tables[0 if len(tables) == 1 else h]


def _at_step_each(tables: FloatArray, h: int) -> FloatArray:
    """Return the tables [m, …] of a step, of tables [m, H or 1, …]."""
    found: FloatArray = tables[:, 0 if tables.shape[1] == 1 else h]
    return found
