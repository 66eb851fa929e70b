"""What the shared budget changes: each scenario with and without its constraint. Prints the guide pages' numbers,
draws their pictures.

    python docs/guide/with_and_without.py               prints
    python docs/guide/with_and_without.py docs/guide    draws, too
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cmpg

EPSILON = {"charging": 1e-6, "robots": 1e-4, "routing": 1e-6, "spectrum": 1e-6}


@dataclass(frozen=True)
class Comparison:
    """One scenario, solved selfishly and within its budget."""

    name: str
    game: Any
    selfish: cmpg.Result
    bounded: cmpg.Result

    def rows(self) -> list[str]:
        """The numbers that the guide page quotes."""
        prices = self.bounded.multipliers
        return [
            f"{self.name}: {self.game.num_agents} agents, limit {self.game.thresholds[0]:g}",
            f"selfish: cost {self.selfish.costs[0]:.3f}, total value {self.selfish.values.sum():.3f}",
            f"bounded: cost {self.bounded.costs[0]:.3f}, total value {self.bounded.values.sum():.3f}",
            f"price of one more unit: {prices.min():.3f} to {prices.max():.3f}",
            f"certified: {self.bounded.certified}",
        ]


def compare(name: str) -> Comparison:
    """Solve a scenario's own sample with and without its constraint."""
    game: Any = cmpg.scenarios.scenario(name).build()
    free = game.with_thresholds(np.full(len(game.thresholds), 1e9))
    epsilon = EPSILON[name]
    return Comparison(name, game, cmpg.solve(free, epsilon=epsilon), cmpg.solve(game, epsilon=epsilon))


def draw(comparison: Comparison, target: Path) -> None:
    """Draw the expected load of the most expensive resource by step, or the joint use of the channels, both ways."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "cmpg"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    for label, result, colour in (
        ("selfish", comparison.selfish, "#ee6677"),
        ("bounded", comparison.bounded, "#4477aa"),
    ):
        steps, heights, words = _profile(comparison, result)
        axes.plot(steps, heights, color=colour, label=label, drawstyle="steps-mid", linewidth=1.6)
    axes.set(xlabel=words[0], ylabel=words[1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def _profile(comparison: Comparison, result: cmpg.Result) -> tuple[np.ndarray, np.ndarray, tuple[str, str]]:
    """What is drawn against the step: the load that the constraint is about."""
    game, name = comparison.game, comparison.name
    if name == "spectrum":
        busy = [sum(1 - float(table[step, state, 0]) for table in result.policy) for step, state in np.ndindex(2, 4)]
        return np.arange(len(busy)), np.array(busy), ("step and sensed state", "users on the air")
    position = game.at(result.policy)
    if name == "robots":
        load = position.expected_load
        used = np.stack([position.usage(agent) for agent in range(game.num_agents)])
        pairs = (load**2 - (used**2).sum(axis=0)).sum(axis=1) / 2
        return np.arange(len(pairs)), pairs, ("step", "expected colliding pairs")
    charged = game.load_costs[0].reshape(-1, game.num_resources, game.num_agents + 1)[0].any(axis=-1)
    load = position.expected_load[:, charged].max(axis=1)
    axis = "hour" if name == "charging" else "step"
    return np.arange(len(load)), load, (axis, "expected load")


def main(folders: list[str]) -> None:
    for name in EPSILON:
        comparison = compare(name)
        print("\n".join(comparison.rows()), end="\n\n")
        for folder in folders:
            draw(comparison, Path(folder) / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
