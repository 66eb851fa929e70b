"""What a game takes of memory as it grows: peaks of whole solves, each in a process of its own, and their differences.

A row is one kind of game in two sizes. What one more state or agent takes is the difference of both peaks by that of
the sizes, so that neither Python nor the map counts.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from checks.bench.crowds import on_floor
from checks.bench.draws import certified, sparse_game
from checks.bench.outcome import Outcome

SEED = 4_100


def robots_on(side: int, agents: int) -> None:
    walls = np.random.default_rng(SEED).random((side, side)) < 0.1
    certified(on_floor(walls, agents, horizon=side + 40, seed=SEED), 1e-4)


@dataclass(frozen=True)
class Growing:
    """A game in two sizes, and what is aimed for."""

    name: str
    solve: Callable[[int], object]
    sizes: tuple[int, int]
    unit: str
    megabytes: float | None = None  # of one more
    peak: float | None = None  # GB, of the smaller one
    large: bool = False


GAMES = (
    Growing(
        "sparse joint game, two agents, A=4 H=20, 4 successors",
        lambda states: sparse_game(SEED, states=states)(),
        (10_000, 30_000),
        "state",
        peak=0.2,
    ),
    Growing("robots on 128 x 128 cells, H=168", lambda agents: robots_on(128, agents), (10, 40), "robot", 20.0),
    Growing(
        "robots on 256 x 256 cells, H=296", lambda agents: robots_on(256, agents), (10, 40), "robot", 20.0, large=True
    ),
)


def peak_of(index: int, size: int) -> float:
    """Return the peak memory of a process that solves a game, in MB."""
    call = f"from checks.bench import memory as m; m.GAMES[{index}].solve({size}); m.say_peak()"
    found = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    return float(found.stdout.split()[-1])


def say_peak() -> None:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(kilobytes / (1e6 if sys.platform == "darwin" else 1e3))


def main(quick: bool) -> list[Outcome]:
    outcomes = []
    for index, game in enumerate(GAMES):
        if quick and game.large:
            continue
        small, large = (peak_of(index, size) for size in game.sizes)
        each = (large - small) / (game.sizes[1] - game.sizes[0])
        print(f"  {game.name}: {small:.0f} MB for {game.sizes[0]:,}, {large:.0f} MB for {game.sizes[1]:,}", flush=True)
        name = f"{game.name}: peak with {game.sizes[0]:,}"
        outcomes += [
            Outcome(name, small / 1e3, game.peak, unit="GB", at_most=True),
            Outcome(f"  one more {game.unit}", each, game.megabytes, unit="MB", at_most=True),
        ]
    return outcomes
