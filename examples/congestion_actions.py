"""The congestion game: how many agents play what at both steps, in the first run that ends as in the paper's figure.

python examples/congestion_actions.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg


def draw(out: Path = Path("congestion_actions.svg"), *, runs: int = 50, seed: int = 1) -> Path:
    game, rng = cmpg.scenarios.congestion_game(), np.random.default_rng(seed)
    for number in range(1, runs + 1):
        start = game.random_policy(rng=rng)
        result = cmpg.coordinate_ascent(game, start, epsilon=1e-3, rng=rng)
        counts = sum(result.policy)  # [H, S, A]
        print(f"run {number}: {result.status.name}, welfare {result.values.sum():.2f}, cost {result.costs[0]:.4f}")
        if is_the_figures(counts):
            print("this is the figure's policy")
            break
    figure = Figure(figsize=(8, 3), layout="constrained")
    panels = figure.subplots(1, game.horizon, sharey=True)
    for step, axes in enumerate(panels):
        for state, shift in ((1, -0.15), (0, 0.15)):
            axes.bar(np.arange(4) + shift, counts[step, state], width=0.3, label=game.state_names[state])
        axes.set(
            title=f"step {step + 1}", xlabel="action", xticks=range(4), xticklabels=game.action_names[0], ylim=(0, 8.5)
        )
    panels[0].set_ylabel("number of agents")
    panels[0].legend()
    figure.savefig(out)
    return out


def is_the_figures(counts) -> bool:
    """Four C and four D at step 1 in both states, eight D at step 2."""
    split, crowd = [0, 0, 4, 4], [0, 0, 0, 8]
    return np.allclose(counts[0], [split, split], atol=1e-4) and np.allclose(counts[1], [crowd, crowd], atol=1e-4)


if __name__ == "__main__":
    print(f"written to {draw()}")
