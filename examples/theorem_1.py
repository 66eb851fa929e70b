"""Theorem 1: how many moves CA-CMPG may take, as printed and with the true ranges, and how many it takes.

python examples/theorem_1.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg
from cmpg.equilibrium.ascent import theorem_1_bound
from cmpg.equilibrium.starts.start import random_start
from cmpg.scenarios.paper import grid_world_local

EPSILON = 0.1


def draw(out: Path = Path("theorem_1.svg"), *, runs: int = 10, seed: int = 1) -> Path:
    games = {
        "counter-example": cmpg.scenarios.counter_example(),
        "grid world, joint state": cmpg.scenarios.grid_world(),
        "grid world, own cell": grid_world_local(),
        "congestion game": cmpg.scenarios.congestion_game(),
    }
    rows = {"T = 2nH/ε, as printed": [], "T with the true ranges": [], "moves used": []}
    for name, game in games.items():
        rng, safe, moves = np.random.default_rng(seed), cmpg.feasible_start(game).policy, []
        for _ in range(runs):
            start = random_start(game, safe, rng=rng)
            result = cmpg.coordinate_ascent(
                game, start, epsilon=EPSILON, method=cmpg.Ascent(schedule=cmpg.GreatestGain()), rng=rng
            )
            moves.append(result.moves)
        numbers = 2 * game.num_agents * game.horizon / EPSILON, theorem_1_bound(game, EPSILON), max(moves)
        for row, number in zip(rows.values(), numbers, strict=True):
            row.append(number)
        print(f"{name}: printed {numbers[0]:.0f}, corrected {numbers[1]}, used {numbers[2]}")
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot(yscale="log", ylabel="moves")
    for number, (label, heights) in enumerate(rows.items()):
        bars = axes.bar(np.arange(len(games)) + 0.27 * (number - 1), heights, width=0.25, label=label)
        axes.bar_label(bars, fontsize="small", fmt="{:.0f}")
    axes.set_xticks(range(len(games)), games)
    axes.legend()
    figure.savefig(out)
    return out


if __name__ == "__main__":
    print(f"written to {draw()}")
