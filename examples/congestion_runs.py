"""The congestion game: gains per agent and cycle, and cost, with the cost at every step and at the first step only.

With the cost at the first step only, as the paper's text has it, no policy can break the constraint.

    python examples/congestion_runs.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cmpg


def draw(out: Path = Path("congestion_runs.svg"), *, runs: int = 50, seed: int = 1) -> Path:
    figure = Figure(figsize=(8, 5), layout="constrained")
    panels = figure.subplots(2, 2, sharex="col")
    for column, moment in enumerate(("every step", "first step")):
        game = cmpg.scenarios.congestion_game(cost_at=moment)
        gains, costs = ascend(game, runs=runs, rng=np.random.default_rng(seed))
        for agent in range(game.num_agents):
            band(panels[0, column], gains[:, :, agent], label=f"agent {agent + 1}")
        band(panels[1, column], costs, label="cost")
        panels[1, column].axhline(game.thresholds[0], color="red", linestyle="--", label="threshold")
        panels[0, column].set(title=f"cost at {moment}, {runs} runs", ylabel="reward difference")
        panels[1, column].set(xlabel="cycle", ylabel="cost", ylim=(0, None))
    panels[0, 0].legend(ncols=2, fontsize="small")
    panels[1, 0].legend()
    figure.savefig(out)
    return out


def ascend(game, *, runs, rng):
    """Gains [runs, cycles, n] and costs [runs, cycles]; a run that has ended gains nothing and keeps its cost."""
    traces = []
    for _ in range(runs):
        start = game.random_policy(rng=rng)
        method = cmpg.Ascent(schedule=cmpg.GreatestGain())
        result = cmpg.coordinate_ascent(game, start, epsilon=1e-3, method=method, rng=rng)
        print(
            f"{result.status.name}: welfare {result.values.sum():.4f}, cost {result.costs[0]:.4f}, {result.moves} moves"
        )
        traces.append(result.trace)
    cycles = range(max(len(trace) for trace in traces))
    gains = [[trace[t].gains if t < len(trace) else np.zeros(game.num_agents) for t in cycles] for trace in traces]
    costs = [[trace[min(t, len(trace) - 1)].costs[0] for t in cycles] for trace in traces]
    return np.array(gains), np.array(costs)


def band(axes, rows, *, label):
    """Plot the mean over the rows [runs, cycles], and its standard error."""
    mean, error = rows.mean(axis=0), rows.std(axis=0) / max(len(rows) - 1, 1) ** 0.5
    cycles = np.arange(1, len(mean) + 1)
    (line,) = axes.plot(cycles, mean, label=label)
    axes.fill_between(cycles, mean - error, mean + error, color=line.get_color(), alpha=0.2)


if __name__ == "__main__":
    print(f"written to {draw()}")
