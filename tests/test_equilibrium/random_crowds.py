"""Random small crowds, with groups that are pure, that mix, or that have one member."""

from __future__ import annotations

import numpy as np

from cmpg.games import CrowdGame, CrowdPolicy, LoadCurve, LocalAgent, PowerCurve


def random_curve(rng: np.random.Generator, agents: int) -> LoadCurve | PowerCurve:
    """A polyline with up to three kinks, of any shape; or a power."""
    if rng.random() < 0.3:
        power = int(rng.integers(1, 8))
        return PowerCurve(rng.normal(), rng.random() / (0.5 * agents) ** power, power)
    count = min(agents - 1, int(rng.integers(1, 4)))
    inner = np.sort(rng.choice(np.arange(1, agents), size=count, replace=False))
    loads = np.concatenate([[0], inner, [agents]])
    return LoadCurve(
        loads, np.concatenate([[0.0], np.cumsum(rng.normal(0.5, 1.0, len(loads) - 1) * np.diff(loads))]) / agents
    )


def random_crowd(rng: np.random.Generator, *, agents: int = 150) -> tuple[CrowdGame, CrowdPolicy]:
    """A crowd of up to three kinds with two resources, and a policy of it."""
    steps, resources, constraints = 2, 2, int(rng.integers(1, 3))
    counts = rng.integers(2, agents // 3, size=int(rng.integers(1, 4)))
    kinds = [
        LocalAgent(
            transition=rng.dirichlet(np.ones(2), size=(steps, 2, 2)),
            reward=rng.random((steps, 2, 2)),
            uses=(rng.random((steps, 2, 2, resources)) < 0.5) * 1.0,
            initial=rng.dirichlet(np.ones(2)),
            costs=0.01 * rng.random((constraints, steps, 2, 2)) if rng.random() < 0.5 else None,
        )
        for _ in counts
    ]
    total = int(counts.sum())
    game = CrowdGame(
        kinds=kinds,
        numbers=counts,
        curves=[random_curve(rng, total) for _ in range(4)],
        delay=rng.integers(4, size=(1, resources)),
        load_costs=rng.integers(4, size=(constraints, steps, resources)),
        thresholds=np.ones(constraints),
        horizon=steps,
    )
    kind, number, plans = [], [], []
    for k, left in enumerate(counts.tolist()):
        while left:
            members = int(rng.integers(1, left + 1))
            left -= members
            kind.append(k)
            number.append(members)
            mixed = rng.dirichlet(np.ones(2), size=(steps, 2))
            plans.append(mixed if rng.random() < 0.6 else np.eye(2)[rng.integers(2, size=(steps, 2))])
    return game, CrowdPolicy(kind, number, plans)
