"""How tight are the bounds on the distance from potentials?

    python -m checks near-potential [--games 200]

Random joint games without a potential: the lower bound, which holds for every function of policies, beside the upper
bound, which one stage reward attains. Everything is written to build/near-potential.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from checks import BUILD
from cmpg import JointGame
from cmpg.games import near_potential


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks near-potential", description=__doc__)
    parser.add_argument("--games", type=int, default=200)
    chosen = parser.parse_args(argv)
    ratios, wrong = [], 0
    for seed in range(chosen.games):
        near = near_potential(random_game(seed), rng=np.random.default_rng(seed))
        wrong += near.lower > near.upper
        if near.lower > 1e-9:
            ratios.append(near.upper / near.lower)
    shares = ", ".join(f"{np.quantile(ratios, share):.3g}" for share in (0.1, 0.5, 0.9, 1.0))
    text = (
        f"{chosen.games} random games: {wrong} with a lower bound above the upper one; upper / lower at 10, 50, 90 and "
        f"100 %: {shares}"
    )
    BUILD.mkdir(exist_ok=True)
    (BUILD / "near-potential.md").write_text(text + "\n", "utf-8")
    print(text)
    return 1 if wrong else 0


def random_game(seed: int) -> JointGame:
    """Return a game of two or three agents whose rewards differ from a common one."""
    rng = np.random.default_rng((42, seed))
    agents, states, steps = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    table = (1, states, *(2,) * agents)
    common, share = rng.normal(size=table), float(rng.uniform(0.05, 1))
    return JointGame(
        transition=rng.dirichlet(np.ones(states), size=table),
        rewards=np.stack([common + share * rng.normal(size=table) for _ in range(agents)]),
        costs=[],
        thresholds=[],
        initial=rng.dirichlet(np.ones(states)),
        horizon=steps,
    )
