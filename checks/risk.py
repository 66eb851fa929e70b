"""Budgets on probabilities, before an enumeration of all histories.

    python -m checks risk [--games 500]

Random games with up to four steps: the probability that a certified policy exceeds its limit is computed in exact
arithmetic by walking through every history, and what an agent gains by the best deviation of its whole history, which
keeps the budget, by a linear program over the tree of histories. The grid world with P(any collision) ≤ 0.1, 0.02 and 0
is solved and played. Everything is written to build/risk.md.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from checks import BUILD
from cmpg import JointGame, simulate, solve
from cmpg.games import Chance, cost_law, with_chances
from cmpg.scenarios import grid_world
from oracles.histories import best_deviation, draw_risky_game, probability_above

PROBABILITIES = (0.0, 0.1, 0.25, 0.5)


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks risk", description=__doc__)
    parser.add_argument("--games", type=int, default=500)
    chosen = parser.parse_args(argv)
    bad, statuses = [], dict[str, int]()
    gain = excess = Fraction(0)
    for seed in range(chosen.games):
        status, over, gained = judge(seed)
        statuses[status] = statuses.get(status, 0) + 1
        gain, excess = max(gain, Fraction(gained)), max(excess, over)
        if status == "CERTIFIED" and (over > Fraction(1, 10**12) or gained > 1e-6):
            bad.append(seed)
    ended = ", ".join(f"{number} {name}" for name, number in sorted(statuses.items()))
    lines = [
        f"{chosen.games} random games: {ended}; of the certified ones {len(bad)} are wrong; largest excess of a "
        f"probability {float(excess):.1e}, largest gain of a deviation with memory {float(gain):.1e}",
        *grid_lines(),
    ]
    BUILD.mkdir(exist_ok=True)
    (BUILD / "risk.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))
    return 1 if bad else 0


def judge(seed: int) -> tuple[str, Fraction, float]:
    """Solve a random game; return its status, by how much its probability is exceeded, and what an agent gains."""
    game, limit = draw_risky_game(seed)
    probability = PROBABILITIES[seed % len(PROBABILITIES)]
    names = ("transition", "rewards", "costs", "thresholds", "initial", "horizon")
    joint = JointGame(**{name: game[name] for name in names})
    risky = with_chances(joint, Chance(0, at_most=limit, probability=probability), keep_expected=False)
    levels = risky.num_states // len(game["initial"])
    result = solve(risky, epsilon=1e-7)
    if not result.certified:
        return result.status.name, Fraction(0), 0.0
    policy = [np.asarray(table) for table in result.policy]
    over = probability_above(game, policy, levels, limit) - Fraction(probability)
    gains = [
        best_deviation(game, policy, agent, levels, limit, probability) - float(result.values[agent])
        for agent in range(len(policy))
    ]
    return result.status.name, over, max(gains)


def grid_lines() -> list[str]:
    """Solve and play the grid world with budgets on any collision."""
    lines = [
        "",
        "| P(any collision) at most | value | proved | law | seen in 100,000 episodes |",
        "|---|---|---|---|---|",
    ]
    for probability in (0.1, 0.02, 0.0):
        risky = with_chances(grid_world(), Chance("collisions", 0, probability), keep_expected=False)
        result = solve(risky)
        law = cost_law(risky, result.policy)[0]
        seen = simulate(risky, result.policy, 100_000, rng=np.random.default_rng(1))
        told = ", ".join(f"{x:g}: {p:.6g}" for x, p in zip(law.sums, law.probabilities, strict=True))
        lines.append(
            f"| {probability} | {result.values[0]:.6f} | {result.status.name} | {told} | {seen.costs.seen[0]:.5f} |"
        )
    return lines
