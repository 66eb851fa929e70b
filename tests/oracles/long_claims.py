"""Random claims about discounted local games whose truth is found in finitely many steps; no library here.

`draw_long(7)` is the same claim for ever. Where states never change, or are drawn anew at each step whatever is done,
nobody who plays from step T on is led anywhere by it: those steps are worth one step with the weight γ^T/(1 − γ), for
policies that go on as they are and for deviations of any length. So a game of T + 1 steps with weighted payoffs, judged
in rationals, is the discounted game.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.judge import Game, LocalJudge, judge
from oracles.random_claims import Numbers, draw_agent, thresholds_near

DISCOUNTS = (0.0, 5e-324, 1e-160, 0.1, 1 / 3, 0.5, 0.75, 0.9, 0.99)
"""Next to one, the library looks ahead for seconds."""


@dataclass(frozen=True, eq=False)
class LongDraw:
    """A policy of the first steps, whose last step is played for ever, with multipliers [n, k]."""

    seed: int
    game: Game
    policy: list[Any]
    binds: np.ndarray
    multipliers: np.ndarray
    weights: np.ndarray  # [k], by which infeasibility may be proved
    judged: LocalJudge
    forged: str = ""
    form: str = "discounted local"
    arithmetic: str = "floats"


def draw_long(seed: int) -> LongDraw:
    """Draw a claim."""
    rng = np.random.default_rng((20_266, seed))
    numbers = Numbers(rng, hard=rng.random() < 0.3, rational=False)
    constraints = int(rng.choice(4, p=(0.1, 0.6, 0.2, 0.1)))
    count, resources = int(rng.choice([1, 2, 3], p=(0.3, 0.5, 0.2))), int(rng.integers(1, 3))
    agents = [draw_agent(numbers, 1, resources, constraints) for _ in range(count)]
    stays = rng.random() < 0.5
    for agent in agents:
        states, actions = agent["reward"].shape[1:]
        rows = np.eye(states)[:, None] if stays else numbers.rows((states,))
        agent["transition"] = np.broadcast_to(rows, (1, states, actions, states)).copy()
    load_cost = numbers.entries((constraints, 1, resources, count + 1), cost=True)
    if rng.random() < 0.5 and np.abs(load_cost).max(initial=0) < 1e300:
        load_cost = np.cumsum(np.abs(load_cost), axis=-1)
    game = {
        "form": "local",
        "discount": float(rng.choice(DISCOUNTS)),
        "agents": agents,
        "delay": numbers.entries((1, resources, count + 1)),
        "load_cost": load_cost,
        "thresholds": np.zeros(constraints),
    }
    steps = int(rng.choice([1, 2, 3, 6], p=(0.4, 0.3, 0.2, 0.1)))
    policy = [numbers.policy((steps, *agent["reward"].shape[1:])) for agent in agents]
    binds = np.ones((count, constraints), dtype=int)
    if constraints and rng.random() < 0.25:
        binds = rng.integers(2, size=binds.shape)
        binds[rng.integers(count, size=constraints), np.arange(constraints)] = 1
    judged = judge(in_finite_steps(game, steps))
    game["thresholds"] = thresholds_near(judged.costs(for_ever(policy)), numbers)
    multipliers = numbers.multipliers(binds.shape) * 1.0
    multipliers[binds == 0] = 0.0
    weights = np.abs(rng.normal(size=constraints)) * (rng.random(constraints) < 0.7)
    return LongDraw(seed, game, policy, binds, multipliers, weights, judged.with_thresholds(game["thresholds"]))


def in_finite_steps(game: Game, steps: int) -> Game:
    """Return the game of `steps` steps and one more, for all that follow, with weighted payoffs as Fractions."""
    discount = Fraction(game["discount"])
    weights = [*(discount**step for step in range(steps)), discount**steps / (1 - discount)]

    def weighted(table: Any) -> np.ndarray:
        entries = [Fraction(entry) for entry in np.asarray(table).ravel().tolist()]
        rows = [[weight * entry for entry in entries] for weight in weights]
        return np.array(rows, dtype=object).reshape(len(weights), *np.shape(table))

    agents = [
        agent
        | {
            "reward": weighted(agent["reward"][0]),
            "cost": None if agent["cost"] is None else [weighted(cost[0]) for cost in agent["cost"]],
        }
        for agent in game["agents"]
    ]
    return {
        "form": "local",
        "horizon": len(weights),
        "agents": agents,
        "delay": weighted(game["delay"][0]),
        "load_cost": [weighted(cost[0]) for cost in game["load_cost"]],
        "thresholds": game["thresholds"],
    }


def for_ever(policy: list[Any]) -> list[Any]:
    """Return a policy with its last step once more, for all that follow."""
    return [np.concatenate([table, table[-1:]]) for table in policy]
