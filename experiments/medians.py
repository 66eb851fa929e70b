"""How many samples learning takes: medians over seeds, at the accuracies and from the starts of the paper's games.

python -m experiments.medians [seeds] prints a line per game as soon as it is done, and how long a seed took.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cmpg.games.contract import Game
from cmpg.learning.ascent import learn
from cmpg.learning.local.simulator import LocalSimulator
from cmpg.learning.outcome import LearnResult, judge
from cmpg.learning.shared import learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.paper.runs import one_waits
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game, counting_congestion_game, grid_world, grid_world_local
from cmpg.scenarios.robot_fleet import robots
from cmpg.scenarios.spectrum_sharing import spectrum

DELTA = 0.1


@dataclass(frozen=True)
class Row:
    """One game, and how it is learned."""

    name: str
    game: Callable[[], Game]
    epsilon: float
    run: Callable[[Game, float, np.random.Generator], LearnResult]
    seeds: int = 20


def from_waiting(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """Algorithm 2 from the authors' start: one agent waits where it is for ever, the other is random."""
    return learn(GameSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA, start=one_waits(game, rng))


def from_nothing(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """Algorithm 2 from what is safe whatever the transition is."""
    return learn(GameSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA)


def from_random(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """Algorithm 2 from a random start, as in the paper's experiments."""
    start = JointPolicy.random(game.policy_shapes, rng=rng)
    return learn(GameSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA, start=start)


def by_model(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """One model for all."""
    return learn_shared(GameSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA)


def by_kernels(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """The kernels of a local game."""
    return learn_shared(LocalSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA)


ROWS = (
    Row("spectrum, shared model", spectrum, 0.3, by_model),
    Row("grid world, own cell", grid_world_local, 0.5, by_kernels),
    Row("congestion game, no start given", congestion_game, 1.0, from_nothing),
    Row("congestion game, random starts", congestion_game, 1.0, from_random),
    Row("grid world, authors' start", grid_world, 0.5, from_waiting),
    Row("congestion game of 30, by counts", lambda: counting_congestion_game(num_agents=30), 1.0, by_model, 1),
    Row("8 robots", lambda: robots(num_agents=8), 0.5, by_kernels, 1),
)


def measure(rows: tuple[Row, ...], seeds: int) -> Iterator[str]:
    """Yield a line per game."""
    for row in rows:
        game, totals, right, began = row.game(), [], 0, time.perf_counter()
        streams = np.random.SeedSequence(20).spawn(min(seeds, row.seeds))
        for stream in streams:
            result = row.run(game, row.epsilon, np.random.default_rng(stream))
            right += result.certified and judge(game, result).right(row.epsilon)
            totals.append(result.total_samples)
        each = (time.perf_counter() - began) / len(streams)
        spread = f"from {min(totals):,} to {max(totals):,}" if len(totals) > 1 else "one seed"
        yield (
            f"{row.name}, ε = {row.epsilon:g}: median {np.median(totals):,.0f} ({spread}), {right} of {len(streams)} "
            f"certified and right, {each:.1f} s a seed"
        )


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chosen = tuple(row for row in ROWS if len(sys.argv) < 3 or sys.argv[2] in row.name)
    for line in measure(chosen, wanted):
        print(line, flush=True)
