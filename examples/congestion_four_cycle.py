"""Why the congestion game is not a Markov potential game: a 4-cycle of policies around which the gains do not cancel.

python examples/congestion_four_cycle.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg

CORNERS = [(0, 0), (1, 0), (1, 1), (0, 1)]


def draw(out: Path = Path("congestion_four_cycle.svg"), *, seed: int = 1) -> Path:
    game = cmpg.scenarios.congestion_game()
    check = cmpg.check_potential(game, rng=np.random.default_rng(seed))
    print(check)
    i, j = check.witness.agents
    values = [game.at(corner).values[[i, j]] for corner in check.witness.corners]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlim=(-0.8, 1.8), ylim=(-0.3, 1.3))
    axes.axis("off")
    total = 0.0
    for number, (here, there) in enumerate(zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True)):
        mover = number % 2  # i, j, i, j move in turn
        gain = values[(number + 1) % 4][mover] - values[number][mover]
        total += gain
        text = f"V of agent {i}: {values[number][0]:.3f}\nV of agent {j}: {values[number][1]:.3f}"
        axes.text(*here, text, ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "white"})
        start, end = (0.6 * np.array(a) + 0.4 * np.array(b) for a, b in ((here, there), (there, here)))
        axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>"})
        middle = ((start + end) / 2 - 0.5) * (1.8, 1.4) + 0.5
        axes.text(*middle, f"agent {(i, j)[mover]} gains {gain:+.3f}", ha="center", va="center")
    axes.text(0.5, 0.5, f"in all {total:+.3f}, not 0", ha="center", va="center", color="red")
    figure.savefig(out)
    return out


if __name__ == "__main__":
    print(f"written to {draw()}")
