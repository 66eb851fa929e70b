"""The dual functions of the two 2×2 games: strong duality fails in the first, and holds in the second.

python examples/dual_function.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg
from cmpg.duality.dual_function import dual_function


def draw(out: Path = Path("dual_function.svg"), *, points: int = 1000) -> Path:
    games = {
        "counter-example": cmpg.scenarios.counter_example(),
        "modified": cmpg.scenarios.modified_counter_example(),
    }
    multipliers = np.linspace(0, 2, points)
    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, (name, game) in zip(figure.subplots(1, 2), games.items(), strict=True):
        report = cmpg.duality.analyse_duality(game)
        axes.plot(multipliers, dual_function(game, multipliers), label="d(λ)")
        axes.plot(report.dual.multipliers, [report.dual.value], "o", label=f"D* = {report.dual.value:.4f}")
        axes.axhline(report.primal.lower, color="green", linestyle="--", label=f"P* = {report.primal.lower:.4f}")
        axes.set(title=name, xlabel="λ", xlim=(0, 2))
        axes.legend()
        print(f"{name}: strong duality {report.strong_duality.name.lower()}")
        for policy in report.maximisers.found:
            print(f"  the dual may return a policy worth {policy.value:g}, cost {policy.costs[0]:g}: ", end="")
            print(f"gap {policy.nash_gap:.2g}" if policy.feasible else "infeasible")
    figure.savefig(out)
    return out


if __name__ == "__main__":
    print(f"written to {draw()}")
