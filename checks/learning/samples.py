"""How many samples learning takes: medians over seeds, at the accuracies and from the starts of the paper's games.

    python -m checks learning-samples [--seeds 20] [--only WORDS]

Runs the seeds that have no record yet in build/learning, writes a record as soon as one is done, and then the table. It
can be stopped and started again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checks import BUILD, evidence, fingerprint
from checks.learning.runner import seed_records
from checks.records import Record
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import random_start
from cmpg.games.game import Game
from cmpg.learning.ascent import learn
from cmpg.learning.local.simulator import LocalSimulator
from cmpg.learning.outcome import LearnResult, judge
from cmpg.learning.safe import Pace, safe_learner
from cmpg.learning.shared import learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.paper.runs import one_waits
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game, counting_congestion_game, grid_world, grid_world_local
from cmpg.scenarios.robot_fleet import robots
from cmpg.scenarios.spectrum_sharing import spectrum

DELTA = 0.1
ENTROPY = 20

NOTE = (
    f"Medians over the seeds at δ = {DELTA:g}; every result was judged afterwards with the true game. Samples are "
    "draws and steps of episodes, all purposes together. In the grid world one agent waits for ever, and the other "
    "is random, as in the authors' code. The congestion game is learned from what is safe whatever the transition is, "
    "which `learn` finds by itself, and from random starts as in the paper's experiments"
)


@dataclass(frozen=True)
class Row:
    """One game, and how it is learned."""

    name: str
    how: str
    game: Callable[[], Game]
    epsilon: float
    run: Callable[[Game, float, np.random.Generator], LearnResult]
    seeds: int = 20
    safe: bool = False  # nothing that was played may break a constraint

    @property
    def key(self) -> str:
        """What a record belongs to."""
        return repr((self.name, self.how, self.epsilon, DELTA, ENTROPY))


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


def safely_by_map(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """Safe exploration from a random feasible start, by a learner who has the map: which next states are possible."""
    simulator = GameSimulator(game, rng=rng, reveal_support=True)
    safe = feasible_start(game).policy
    assert safe is not None
    start = random_start(game, safe, rng=rng)
    learner = safe_learner(simulator.known, epsilon=epsilon, pace=Pace(growth=0.5, first=1024))
    return learn(simulator, epsilon=epsilon, delta=DELTA, start=start, learner=learner)


def by_model(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """One model for all."""
    return learn_shared(GameSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA)


def by_kernels(game: Game, epsilon: float, rng: np.random.Generator) -> LearnResult:
    """The kernels of a local game."""
    return learn_shared(LocalSimulator(game, rng=rng), epsilon=epsilon, delta=DELTA)


SHARED = "shared model"

ROWS = (
    Row("spectrum", SHARED, spectrum, 0.3, by_model),
    Row("grid world, own cell", SHARED, grid_world_local, 0.5, by_kernels),
    Row("congestion game", "Algorithm 2, no start given", congestion_game, 1.0, from_nothing),
    Row("congestion game", "Algorithm 2, random starts", congestion_game, 1.0, from_random),
    Row("congestion game of 30, by counts", SHARED, lambda: counting_congestion_game(num_agents=30), 1.0, by_model, 3),
    Row("8 robots, sample floor", SHARED, lambda: robots(num_agents=8), 0.5, by_kernels, 3),
    Row("grid world", "Algorithm 2, authors' start", grid_world, 0.5, from_waiting),
    Row("grid world, map known", "safe exploration, random feasible starts", grid_world, 0.5, safely_by_map, safe=True),
)


def run_seed(row: Row, seed: int) -> Record:
    """Learn once, judge with the true game, and return a record."""
    game, began = row.game(), time.perf_counter()
    stream = np.random.SeedSequence(ENTROPY, spawn_key=(seed,))
    result = row.run(game, row.epsilon, np.random.default_rng(stream))
    seconds = time.perf_counter() - began
    judged = judge(game, result)
    right = result.certified and judged.right(row.epsilon) and not (row.safe and judged.unsafe_policies)
    return {"key": row.key, "seed": seed, "right": right, "samples": dict(result.samples), "seconds": seconds}


def run_missing(rows: Sequence[Row], seeds: int, path: Path) -> None:
    """Run every seed that has no record yet, and append its record."""
    records = seed_records(path)
    for row in rows:
        for seed in range(min(seeds, row.seeds)):
            if (row.key, seed) not in records.known:
                record = records.keep(run_seed(row, seed))
                total = sum(record["samples"].values())
                print(f"{row.name}, {row.how}, seed {seed}: {total:,}, {record['seconds']:.1f} s", flush=True)


def table(rows: Sequence[Row], records: Sequence[Record]) -> str:
    """Return the table of the rows that have records."""
    columns = ("game", "method", "ε", "seeds", "certified and right", "median", "least", "most", "seconds a seed")
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for row in rows:
        own = [record for record in records if record["key"] == row.key]
        if own:
            totals = [sum(record["samples"].values()) for record in own]
            right, seconds = sum(record["right"] for record in own), np.median([record["seconds"] for record in own])
            numbers = [f"{number:,.0f}" for number in (np.median(totals), min(totals), max(totals))]
            cells = [row.name, row.how, f"{row.epsilon:g}", str(len(own)), str(right), *numbers, f"{seconds:.1f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: list[str]) -> None:
    """Run what is missing, and record the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="at most so many seeds of everything, for a first look")
    parser.add_argument("--only", default="", help="games and methods with these words in their names")
    given = parser.parse_args(argv)
    path = BUILD / "learning" / fingerprint() / "samples.jsonl"
    run_missing([row for row in ROWS if given.only in f"{row.name}, {row.how}"], given.seeds, path)
    found = table(ROWS, [*seed_records(path).known.values()])
    print(found)
    evidence.record("learning-samples", NOTE, found)
