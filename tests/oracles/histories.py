"""Chances by enumeration of all histories: exact probabilities, and the best deviation that remembers everything.

Nothing of the library is in here. A game is a plain dict, as in `judge`; a policy has one table [H, S·X, A_i] per
agent, whose rows are (s, x), x the sum of one cost so far in units of the greatest common divisor, cut at X − 1. Costs
are whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from oracles.deviating import Program, joint_tables
from oracles.judge import Game


def unit_of(game: Game) -> int:
    """The greatest common divisor of all costs; one if there are none."""
    return int(np.gcd.reduce(game["costs"].astype(int).ravel())) or 1


def probability_above(game: Game, policy: Any, levels: int, limit: int) -> Fraction:
    """P(sum of cost 0 > limit), by walking through every history."""
    return mean_of(game, policy, levels, lambda spent: Fraction(int(spent > limit)))


def cvar_of(game: Game, policy: Any, levels: int, level: float) -> Fraction:
    """CVaR of the sum of cost 0: the least t + E(C − t)⁺/(1 − level), by walking through every history for each t."""
    largest = int(game["costs"].max()) * game["horizon"]
    return min(
        t + mean_of(game, policy, levels, lambda spent, t=t: Fraction(max(spent - t, 0))) / (1 - Fraction(level))
        for t in range(largest + 1)
    )


def mean_of(game: Game, policy: Any, levels: int, worth: Callable[[int], Fraction]) -> Fraction:
    """E worth(sum of cost 0), by walking through every history."""
    unit = unit_of(game)

    def walk(step: int, state: int, spent: int, mass: Fraction) -> Fraction:
        if step == game["horizon"]:
            return mass * worth(spent)
        _, costs, moves = joint_tables(game, step)
        total, row = Fraction(0), state * levels + min(spent // unit, levels - 1)
        for actions in product(*(range(table.shape[2]) for table in policy)):
            chance = mass
            for i, a in enumerate(actions):
                chance *= Fraction(float(policy[i][step, row, a]))
            if chance:
                paid = spent + int(costs[(0, state, *actions)])
                for after, p in enumerate(moves[(state, *actions)]):
                    if p:
                        total += walk(step + 1, after, paid, chance * Fraction(float(p)))
        return total

    return sum((walk(0, s, 0, Fraction(float(p))) for s, p in enumerate(game["initial"]) if p), Fraction(0))


def best_deviation(game: Game, policy: Any, agent: int, levels: int, limit: int, probability: float) -> float:
    """The most that an agent gets by a strategy of its whole history with P(sum of cost 0 > limit) ≤ probability."""
    found = best_with(game, policy, agent, levels, lambda spent: float(spent > limit), probability)
    assert found > -np.inf
    return found


def best_with_cvar(game: Game, policy: Any, agent: int, levels: int, level: float, at_most: float) -> float:
    """The most that an agent gets by a strategy of its whole history with CVaR ≤ at_most: the best over every t."""
    found = max(
        best_with(game, policy, agent, levels, lambda spent, t=t: max(spent - t, 0.0), (1 - level) * (at_most - t))
        for t in range(int(at_most) + 1)
    )
    assert found > -np.inf
    return found


def best_with(
    game: Game, policy: Any, agent: int, levels: int, worth: Callable[[int], float], threshold: float
) -> float:
    """The most that an agent gets by a strategy of its whole history with E worth(sum of cost 0) ≤ threshold.

    What the sum is worth is charged at the last step, from the whole sum; −∞ if no strategy is feasible.
    """
    program, unit, last = Program(1), unit_of(game), game["horizon"] - 1
    inflow: dict[Any, dict[int, float]] = {}
    nodes = {(s, 0, ()): float(p) for s, p in enumerate(game["initial"]) if p}
    for step in range(game["horizon"]):
        rewards, costs, moves = joint_tables(game, step)
        ahead: dict[Any, dict[int, float]] = {}
        for (state, spent, past), first in nodes.items():
            row, entries = state * levels + min(spent // unit, levels - 1), {}
            for own in range(policy[agent].shape[2]):
                gained, charged, goes = 0.0, 0.0, {}
                others = [range(t.shape[2]) if i != agent else (own,) for i, t in enumerate(policy)]
                for actions in product(*others):
                    chance = np.prod([policy[i][step, row, a] for i, a in enumerate(actions) if i != agent])
                    paid = spent + int(costs[(0, state, *actions)])
                    gained += chance * rewards[(agent, state, *actions)]
                    charged += chance * worth(paid) if step == last else 0.0
                    for after, p in enumerate(moves[(state, *actions)]):
                        if chance * p:
                            key = (after, paid, (*past, (state, spent, own)))
                            goes[key] = goes.get(key, 0.0) + chance * p
                column = program.column(gained, [charged])
                entries[column] = 1.0
                for key, p in goes.items():
                    ahead.setdefault(key, {})[column] = p
            for column, p in inflow.get((state, spent, past), {}).items():
                entries[column] = entries.get(column, 0.0) - p
            program.row(entries, first if step == 0 else 0.0)
        inflow, nodes = ahead, dict.fromkeys(ahead, 0.0)
    return program.best([threshold], [True], empty=-np.inf)


def draw_risky_game(seed: int) -> tuple[Game, int]:
    """A random game with one cost of whole numbers, and a limit."""
    rng = np.random.default_rng((31, seed))
    agents, states, steps = int(rng.integers(1, 3)), int(rng.integers(1, 3)), int(rng.integers(2, 5 if seed % 3 else 4))
    if agents * states == 4:
        steps = min(steps, 3)
    table = (steps if rng.random() < 0.5 else 1, states, *(2,) * agents)
    common = rng.integers(-4, 5, size=table) / 4.0
    moves = rng.integers(0, 5, size=(*table, states)).astype(float)
    moves[..., 0] += moves.sum(axis=-1) == 0
    moves = np.where(moves.sum(axis=-1, keepdims=True) > 0, moves / moves.sum(axis=-1, keepdims=True), 1 / states)
    costs = rng.integers(0, 3, size=(1, *table)).astype(float) * (rng.random((1, *table)) < 0.6)
    costs[(0, slice(None), slice(None), *(0,) * agents)] = 0.0  # someone can always be careful
    game = {
        "form": "joint",
        "horizon": steps,
        "transition": moves,
        "rewards": np.stack([common] * agents),
        "costs": costs,
        "initial": np.eye(states)[0],
        "thresholds": np.array([float(2 * steps)]),
    }
    return game, int(rng.integers(0, 3))
