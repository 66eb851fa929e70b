"""The congestion game: which crowds lead from state to state, read off the game's own table.

python examples/congestion_transitions.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg


def draw(out: Path = Path("congestion_transitions.svg"), *, num_agents: int = 8) -> Path:
    game = cmpg.scenarios.congestion_game(num_agents=num_agents)
    choices = np.indices(game.num_actions)  # [n, *A]: what every agent plays in every joint action
    crowd = np.max([(choices == a).sum(axis=0) for a in range(4)], axis=0)
    figure = Figure(figsize=(5, 2.6), layout="constrained")
    axes = figure.add_subplot(xlim=(-1, 4), ylim=(-0.9, 1.6), aspect="equal")
    axes.axis("off")
    places = {0: (0.0, 0.0), 1: (3.0, 0.0)}
    for state, (x, y) in places.items():
        box = {"boxstyle": "circle,pad=0.6", "facecolor": "white"}
        axes.text(x, y, game.state_names[state], ha="center", va="center", bbox=box)
    for state, (x, _) in places.items():
        for after in places:
            leads = game.transition[0, state][..., after] > 0
            text = f"k* from {crowd[leads].min()} to {crowd[leads].max()}"
            print(f"{game.state_names[state]} leads to {game.state_names[after]}: {text}")
            if state == after:
                arrow(axes, (x - 0.25, 0.5), (x + 0.25, 0.5), bend=-1.8)
                axes.text(x, 1.25, text, ha="center")
            else:
                side = 1 if after else -1
                arrow(axes, (1.5 - 0.85 * side, 0.25 * side), (1.5 + 0.85 * side, 0.25 * side), bend=-0.2)
                axes.text(1.5, 0.55 * side, text, ha="center", va="center")
    figure.savefig(out)
    return out


def arrow(axes, start, end, *, bend):
    style = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}", "color": "black"}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


if __name__ == "__main__":
    print(f"written to {draw()}")
