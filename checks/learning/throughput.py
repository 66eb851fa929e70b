"""How many steps a second: of a known game, drawn by multinomials, and of a user's environment, really stepped."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmpg.games.joint.game import JointGame
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.simulator import GameSimulator, Simulator
from cmpg.scenarios.spectrum_sharing import spectrum

SECONDS = 2.0
"""Each line is measured for at least this long."""


@dataclass(frozen=True)
class Speed:
    """Steps a second of one simulator at one size of batch."""

    what: str
    episodes: int  # in one call
    steps_per_second: float


class TableEnvironment:
    """A game with tables, stepped as a user's own environment would be."""

    def __init__(self, game: JointGame) -> None:
        self._first = np.cumsum(game.initial)[:-1].tolist()
        self._next = np.cumsum(game.transition[0], axis=-1)[..., :-1]
        self._rewards = np.moveaxis(game.rewards[:, 0], 0, -1)
        self._costs = np.moveaxis(game.costs[:, 0], 0, -1)
        self._rng = np.random.default_rng(0)
        self._state = 0

    def reset(self, rng: np.random.Generator) -> int:
        """Begin an episode."""
        self._rng = rng
        self._state = bisect_right(self._first, rng.random())
        return self._state

    def step(self, actions: Sequence[int]) -> tuple[int, list[float], list[float]]:
        """Play one joint action."""
        entry = (self._state, *actions)
        self._state = bisect_right(self._next[entry].tolist(), self._rng.random())
        return self._state, self._rewards[entry].tolist(), self._costs[entry].tolist()


def measure() -> list[Speed]:
    """Measure both simulators on spectrum, with the uniform policy."""
    game = spectrum()
    drawn = GameSimulator(game, rng=np.random.default_rng(0))
    stepped = EnvironmentSimulator(TableEnvironment(game), known=drawn.known, rng=np.random.default_rng(0))
    speeds = [_speed("a known game, by multinomials", drawn, game, episodes) for episodes in (100, 10_000, 1_000_000)]
    return [*speeds, _speed("a Python environment, step by step", stepped, game, 1000)]


def _speed(what: str, simulator: Simulator, game: JointGame, episodes: int) -> Speed:
    policy = game.uniform_policy()
    simulator.roll_out(policy, episodes)
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        simulator.roll_out(policy, episodes)
        calls += 1
    taken = time.perf_counter() - began
    return Speed(what, episodes, calls * episodes * game.num_steps / taken)
