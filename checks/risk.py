"""Budgets on risk, before an enumeration of all histories.

    python -m checks risk [--games 500]

Random games with up to four steps: the probability that a certified policy exceeds its limit is computed in exact
arithmetic by walking through every history, and what an agent gains by the best deviation of its whole history, which
keeps the budget, by a linear program over the tree of histories. The same games with a budget on CVaR: there the
program is solved for every t. The grid world with P(any collision) ≤ 0.1, 0.02 and 0, and with budgets on CVaR, is
solved and played. Everything is written to build/risk.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from checks import BUILD
from cmpg import JointGame, simulate, solve
from cmpg.games import Chance, CVaR, cost_law, with_chances, with_cvar
from cmpg.scenarios import grid_world
from oracles.histories import best_deviation, best_with_cvar, cvar_of, draw_risky_game, probability_above

LEVELS, LIMITS = (0.0, 0.5, 0.75, 0.9), (0.0, 0.5, 1.0, 2.5, 3.25)
PROBABILITIES = (0.0, 0.1, 0.25, 0.5)


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks risk", description=__doc__)
    parser.add_argument("--games", type=int, default=500)
    chosen = parser.parse_args(argv)
    sentences, bad = zip(*(judged(each, chosen.games) for each in (judge, judge_cvar)), strict=True)
    lines = [*sentences, *grid_lines()]
    BUILD.mkdir(exist_ok=True)
    (BUILD / "risk.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))
    return 1 if any(bad) else 0


def judged(by: Callable[[int], tuple[str, Fraction, float]], games: int) -> tuple[str, int]:
    """Judge random games; return a sentence, and how many certified ones are wrong."""
    bad, statuses = 0, dict[str, int]()
    gain = excess = Fraction(0)
    for seed in range(games):
        status, over, gained = by(seed)
        statuses[status] = statuses.get(status, 0) + 1
        gain, excess = max(gain, Fraction(gained)), max(excess, over)
        bad += status == "CERTIFIED" and (over > Fraction(1, 10**12) or gained > 1e-6)
    ended = ", ".join(f"{number} {name}" for name, number in sorted(statuses.items()))
    what = "probability" if by is judge else "CVaR"
    return (
        f"{games} random games with a budget on a {what}: {ended}; of the certified ones {bad} are wrong; largest "
        f"excess {float(excess):.1e}, largest gain of a deviation with memory {float(gain):.1e}",
        bad,
    )


def judge_cvar(seed: int) -> tuple[str, Fraction, float]:
    """Solve a random game with a budget on CVaR, and judge it by all histories and every t."""
    game, _ = draw_risky_game(seed)
    level, limit = LEVELS[seed % len(LEVELS)], LIMITS[seed % len(LIMITS)]
    names = ("transition", "rewards", "costs", "thresholds", "initial", "horizon")
    risky = with_cvar(JointGame(**{name: game[name] for name in names}), CVaR(0, level, limit), keep_expected=False)
    levels = risky.base.num_states // len(game["initial"])
    result = solve(risky, epsilon=1e-7)
    if not result.certified:
        return result.status.name, Fraction(0), 0.0
    policy = [np.asarray(table) for table in result.policy]
    gains = [
        best_with_cvar(game, policy, agent, levels, level, limit) - float(result.values[agent])
        for agent in range(len(policy))
    ]
    return result.status.name, cvar_of(game, policy, levels, level) - Fraction(limit), max(gains)


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
        cells = ", ".join(f"{x:g}: {p:.6g}" for x, p in zip(law.sums, law.probabilities, strict=True))
        lines.append(
            f"| {probability} | {result.values[0]:.6f} | {result.status.name} | {cells} | {seen.costs.seen[0]:.5f} |"
        )
    lines += [
        "",
        "| CVaR 0.9 of collisions at most | value | proved | law | CVaR of 100,000 episodes |",
        "|---|---|---|---|---|",
    ]
    for limit in (1.0, 0.5, 0.1, 0.0):
        worst = with_cvar(grid_world(), CVaR("collisions", 0.9, limit), keep_expected=False)
        found = solve(worst)
        law = worst.laws(found.policy)[0]
        cells = ", ".join(f"{x:g}: {p:.6g}" for x, p in zip(law.sums, law.probabilities, strict=True))
        sums = np.sort(simulate(worst.paying, found.policy, 100_000, rng=np.random.default_rng(1)).realised[0])
        lines.append(
            f"| {limit} | {found.values[0]:.6f} | {found.status.name} | {cells} | {sums[-10_000:].mean():.5f} |"
        )
    return lines
