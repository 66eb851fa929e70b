"""What the duality gap is: P*, the best Nash policy, devices and D*, over random games; and how it falls with n.

    python -m checks duality [--games 1000] [--sizes 2,4,8,16,32,64]

One-shot games with a common reward have P* by branch and bound, so that the gap is known from both sides. Local games
of n agents that share resources, with delays and budgets that grow with n, have certified brackets. Everything is
written to build/duality.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from checks import BUILD
from cmpg import JointGame
from cmpg.duality import duality_gap
from cmpg.errors import CMPGError
from cmpg.games.local.game import LocalAgent, LocalGame

CROWDS = 10
"""Local games of each size."""


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks duality", description=__doc__)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--sizes", default="2,4,8,16,32,64")
    chosen = parser.parse_args(argv)
    lines = [*random_lines(chosen.games), "", *crowd_lines([int(each) for each in chosen.sizes.split(",") if each])]
    BUILD.mkdir(exist_ok=True)
    (BUILD / "duality.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))
    return 0


def random_lines(count: int) -> list[str]:
    """Say how large the gap of one-shot games is, in shares of the range of the reward."""
    least, beyond, short, failed, missed = [], 0, [], 0, 0.0
    for seed in range(count):
        game = one_shot(seed)
        try:
            gap = duality_gap(game, restarts=2, rng=seed)
        except CMPGError:
            failed += 1
            continue
        least.append(gap.least / float(game.reward_ranges[0]))
        beyond += gap.least > 1e-6
        missed = max(missed, gap.dual_upper - gap.rota)
        short.append((gap.primal_lower - gap.nash) / float(game.reward_ranges[0]))
    if not least:
        return []
    positive = [each for each in least if each > 1e-6]
    shares = ", ".join(f"{np.quantile(positive, q):.3g}" for q in (0.5, 0.9, 1.0)) if positive else "none"
    return [
        f"{count} one-shot games with a common reward ({failed} without an answer): the gap is proved to be positive "
        f"in {beyond}; there it is, in shares of the reward's range, at 50, 90 and 100 %: {shares}; the better of two "
        f"Nash policies falls short of P* by {np.mean(short):.3g} on average, a rota of D* by {missed:.1e} at most"
    ]


def one_shot(seed: int) -> JointGame:
    """Return a one-shot game of two agents with a common reward and a cost that it may spend half of."""
    rng = np.random.default_rng((61, seed))
    actions = tuple(int(each) for each in rng.integers(2, 4, size=2))
    reward = rng.random(actions)
    cost = 0.6 * reward + 0.4 * rng.random(actions)
    threshold = float(cost.min() + rng.uniform(0.2, 0.8) * (cost.flat[int(reward.argmax())] - cost.min()))
    return JointGame.from_matrices(reward, cost=cost, threshold=threshold)


def crowd_lines(sizes: list[int]) -> list[str]:
    """Say how the bracket of the gap falls with the number of agents."""
    if not sizes:
        return []
    lines = [
        f"Means over {CROWDS} games: what D* − P* is at most, for each agent, and how much of D* a rota may miss.",
        "",
        "| agents | D* − P* at most, per agent | rota short of D* by at most, per agent |",
        "|---|---|---|",
    ]
    gaps = []
    for size in sizes:
        found = [duality_gap(crowd(size, seed), epsilon=1e-5, restarts=3, rng=seed) for seed in range(CROWDS)]
        gaps.append(float(np.mean([each.greatest for each in found])) / size)
        short = float(np.mean([each.dual_upper - each.dual_lower for each in found])) / size
        lines.append(f"| {size} | {gaps[-1]:.3g} | {short:.3g} |")
    slope = np.polyfit(np.log(sizes), np.log(np.maximum(gaps, 1e-15)), 1)[0]
    return [*lines, "", f"the bracket per agent falls as n^{slope:.2f} over these sizes"]


def crowd(size: int, seed: int) -> LocalGame:
    """Return n agents who choose one of three roads twice; delays and the budget of crowding grow with n."""
    rng = np.random.default_rng((62, seed))
    worth = rng.random((size, 3)) + np.array([0.8, 0.0, 0.0])
    uses = np.eye(3)[None, None]
    agents = [
        LocalAgent(transition=np.ones((1, 1, 3, 1)), reward=(1 + worth[i])[None, None], uses=uses, initial=[1.0])
        for i in range(size)
    ]
    loads = np.arange(size + 1) / size
    delay = np.array([[0.5, 1.0, 1.5]])[..., None] * loads**2
    crowding = np.maximum(np.arange(size + 1) - 0.3 * size, 0.0)[None, None, None] * np.array([1.0, 0.0, 0.0])[:, None]
    return LocalGame(agents=agents, delay=delay, load_costs=crowding, thresholds=[0.03 * size + 0.03], horizon=2)
