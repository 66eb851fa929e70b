"""How many samples one best response takes: the paper's number, the corrected one, and what the adaptive mode draws.

python examples/sample_bounds.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg
from cmpg.learning.bounds import Size, paper_constants, rigorous_constants
from cmpg.learning.generative import Adaptive
from cmpg.learning.problem import InducedProblem
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.slater import cmdp_slack

DELTA = 0.1


def draw(
    out: Path = Path("sample_bounds.svg"), *, accuracies: tuple[float, ...] = (0.4, 0.2, 0.1), seed: int = 1
) -> Path:
    game = cmpg.scenarios.spectrum()
    others = cmpg.feasible_start(game).policy
    slack = cmdp_slack(game.at(others).induced_cmdp(0))
    rows = {"as printed": [], "corrected": [], "adaptive": []}
    for epsilon in accuracies:
        simulator = GameSimulator(game, rng=np.random.default_rng(seed))
        problem = InducedProblem(simulator, 0, others)
        size = Size.of(simulator.known, 0)
        accuracy = {"epsilon": epsilon, "delta": DELTA}
        rows["as printed"].append(paper_constants(size, slater=slack, **accuracy).samples_per_entry)
        rows["corrected"].append(rigorous_constants(size, slater=slack, **accuracy).samples_per_entry)
        rows["adaptive"].append(Adaptive()(problem, **accuracy).samples_per_entry)
        print(f"ε = {epsilon:g}: " + ", ".join(f"{name} {row[-1]:,}" for name, row in rows.items()))
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="ε", ylabel="samples of each (h, s, a)")
    for label, numbers in rows.items():
        axes.plot(accuracies, numbers, marker="o", label=label)
    axes.legend()
    figure.savefig(out)
    return out


if __name__ == "__main__":
    print(f"written to {draw()}")
