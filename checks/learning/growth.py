"""How the samples of Algorithm 2 grow with ε, S, n and the slack: random games, one thing changed at a time.

Games have one reward for all, entries uniform in [0, 1], and rows uniform on the simplex. The start has the least cost.
Every result is judged afterwards with the true game. `python -m checks findings` runs it and writes its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checks.learning.runner import seed_records
from checks.records import Record
from cmpg.cmdp.planning import plan
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.joint.game import JointGame
from cmpg.learning.ascent import learn
from cmpg.learning.outcome import judge
from cmpg.learning.simulator import GameSimulator

DELTA, SEEDS = 0.1, 15


@dataclass(frozen=True)
class Point:
    """What is learned, and how accurately."""

    epsilon: float = 0.2
    states: int = 8
    agents: int = 2
    slack: float = 0.4  # the threshold's share of the way from the least cost to that of the best plan

    def game(self, seed: int) -> tuple[JointGame, float]:
        """Return game `seed` of two actions and three steps, and ζ: how far its least cost is below the threshold."""
        rng = np.random.default_rng([seed, 11])
        shape = (3, self.states, *(2,) * self.agents)
        game = JointGame(
            transition=rng.dirichlet(np.ones(self.states), size=shape),
            rewards=np.repeat(rng.random((1, *shape)), self.agents, axis=0),
            costs=rng.random((1, *shape)),
            thresholds=[0.0],
            initial=rng.dirichlet(np.ones(self.states)),
            horizon=3,
        )
        planner = game.joint_cmdp(game.rewards[0])
        least = float(plan(planner, np.ones(1), reward_weight=0.0).costs[0])
        room = self.slack * (float(plan(planner, np.zeros(1)).costs[0]) - least)
        return game.with_thresholds(np.array([least + room])), room


AXES = {
    "epsilon": [Point(epsilon=each) for each in (0.4, 0.2, 0.1, 0.05)],
    "states": [Point(states=each) for each in (4, 8, 16, 32)],
    "agents": [Point(agents=each) for each in (1, 2, 3, 4, 5)],
    "slack": [Point(slack=each) for each in (0.05, 0.1, 0.2, 0.4)],
}
THEORY = {"epsilon": -3, "states": 1, "agents": 2, "slack": -2}
"""The printed Corollary 1: T·n·S·A·H·N with T ~ n/ε and N ~ 1/(ε²ζ²), without logarithms."""


def points() -> Iterator[Point]:
    """Yield every point once."""
    yield from dict.fromkeys(point for axis in AXES.values() for point in axis)


def compute(path: Path, seeds: int = SEEDS) -> list[Record]:
    """Run what has no record yet, and return all records."""
    records = seed_records(path)
    for point in points():
        for seed in range(seeds):
            if (repr(point), seed) not in records.known:
                records.keep(run(point, seed))
    return [*records.known.values()]


def run(point: Point, seed: int) -> Record:
    """Learn once, and judge with the true game."""
    game, room = point.game(seed)
    simulator = GameSimulator(game, rng=np.random.default_rng([seed, 12]))
    result = learn(simulator, epsilon=point.epsilon, delta=DELTA, start=feasible_start(game).policy)
    right = bool(result.certified and judge(game, result).right(point.epsilon))
    return {"key": repr(point), "seed": seed, "right": right, "samples": simulator.ledger.total, "slack": room}


def exponent(sizes: Sequence[float], samples: Sequence[float]) -> tuple[float, float]:
    """Return the slope of ln samples over ln size by least squares, and 1.96 times its standard error."""
    x, y = np.log(sizes), np.log(samples)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - slope * centred
    return slope, float(1.96 * np.sqrt(rest @ rest / (len(x) - 2) / (centred @ centred)))


def table(records: Sequence[Record]) -> str:
    """Return medians and exponents, beside those of the theory."""
    names = {"epsilon": "ε", "states": "S", "agents": "n", "slack": "slack"}
    lines = ["| what changes | values | median samples | exponent | Corollary 1 | right |", "|---|---|---|---|---|---|"]
    for axis, along in AXES.items():
        rows = {point: [each for each in records if each["key"] == repr(point)] for point in along}
        sizes = [getattr(point, axis) for point, own in rows.items() for _ in own]
        slope, error = exponent(sizes, [each["samples"] for own in rows.values() for each in own])
        medians = ", ".join(f"{np.median([each['samples'] for each in own]):,.0f}" for own in rows.values())
        values = ", ".join(f"{getattr(point, axis):g}" for point in along)
        right = f"{sum(each['right'] for own in rows.values() for each in own)} of {len(sizes)}"
        lines.append(f"| {names[axis]} | {values} | {medians} | {slope:.2f} ± {error:.2f} | {THEORY[axis]} | {right} |")
    return "\n".join(lines)


def base() -> str:
    """Say what the other numbers are while one changes."""
    point = Point()
    return f"ε = {point.epsilon:g}, S = {point.states}, n = {point.agents}, slack {point.slack:g}"
