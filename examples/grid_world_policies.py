"""The grid world: where the agents go under the policy that CA-CMPG finds, and under one that the dual may return.

python examples/grid_world_policies.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg

WIDTH = 4


def draw(out: Path = Path("grid_world_policies.svg"), *, restarts: int = 5, seed: int = 1) -> Path:
    game = cmpg.scenarios.grid_world()
    found = cmpg.solve(game, restarts=cmpg.Restarts(restarts), rng=np.random.default_rng(seed))
    dual = max(cmpg.duality.analyse_duality(game, limit=8).maximisers.found, key=lambda each: each.costs[0])
    figure = Figure(figsize=(8, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    show(panels[0], game, found.policy)
    panels[0].set_title(f"CA-CMPG: value {found.values[0]:.4g}, cost {found.costs[0]:.4g}")
    show(panels[1], game, dual.policy)
    panels[1].set_title(f"the dual: value {dual.value:.4g}, cost {dual.costs[0]:.4g}, infeasible")
    figure.savefig(out)
    return out


def show(axes, game, policy):
    """Draw each way of each agent, as wide as it is likely."""
    axes.set(xticks=range(WIDTH + 1), yticks=range(WIDTH + 1), aspect="equal", xlim=(0, WIDTH), ylim=(0, WIDTH))
    axes.grid(True)
    ways = journeys(game, policy)
    for agent, colour in enumerate(("tab:blue", "tab:red")):
        for path, probability in ways:
            cells = [divmod(state, WIDTH * WIDTH)[agent] for state in path]
            x = [cell % WIDTH + 0.4 + 0.2 * agent for cell in cells]
            y = [cell // WIDTH + 0.4 + 0.2 * agent for cell in cells]
            label = f"agent {agent + 1}: {probability:.2f}"
            axes.plot(x, y, color=colour, linewidth=1 + 3 * probability, alpha=0.8, label=label)
    axes.legend()


def journeys(game, policy):
    """List what can happen, with its probability: sequences of joint states."""
    ways = [((int(np.argmax(game.initial)),), 1.0)]
    for step in range(game.horizon - 1):
        further = []
        for path, probability in ways:
            odds = np.outer(policy[0][step, path[-1]], policy[1][step, path[-1]]).ravel()
            after = game.transition[0][path[-1] * len(odds) + np.arange(len(odds))].toarray().argmax(axis=1)
            further += [((*path, int(after[a])), probability * odds[a]) for a in np.flatnonzero(odds > 1e-9)]
        ways = further
    return ways


if __name__ == "__main__":
    print(f"written to {draw()}")
