"""Problems to ask about: random ones by seed, the scenarios of the library, and public ones of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import cmpg
from cmpg.cmdp.evaluation import evaluate
from cmpg.interop import from_toy_text
from cmpg.policy import JointPolicy


def random_cmdp(seed: int, *, discounted: bool = False, constraints: int | None = None) -> cmpg.CMDP:
    """A CMDP that some policy is known to meet: its thresholds are what a random policy costs, or somewhat more."""
    rng = np.random.default_rng([1, seed])
    states, actions, horizon = int(rng.integers(2, 7)), int(rng.integers(2, 5)), int(rng.integers(1, 7))
    count = int(rng.integers(1, 4)) if constraints is None else constraints
    steps = 1 if discounted else int(rng.choice([1, horizon]))
    cmdp = cmpg.CMDP(
        transition=rng.dirichlet(np.ones(states), size=(steps, states, actions)),
        reward=rng.normal(size=(steps, states, actions)),
        costs=rng.random((count, steps, states, actions)),
        thresholds=np.full(count, 1e9),
        initial=rng.dirichlet(np.ones(states)),
        horizon=None if discounted else horizon,
        discount=float(rng.uniform(0.3, 0.95)) if discounted else None,
    )
    meant = evaluate(cmdp, rng.dirichlet(np.ones(actions), size=(cmdp.num_steps, states)))
    return replace(cmdp, thresholds=meant.costs * rng.uniform(1.0, 1.2, size=count))


def scenario_cmdps() -> Iterator[tuple[str, cmpg.CMDP]]:
    """What the agents of small scenarios face at a feasible policy."""
    for name, options in {
        "counter-example": {},
        "modified-counter-example": {},
        "grid-world": {"horizon": 3},
        "grid-world-local": {"horizon": 4},
        "congestion-common-reward": {"num_agents": 3},
        "charging": {},
        "routing": {"num_agents": 2},
        "spectrum": {},
    }.items():
        game = cmpg.scenarios.scenario(name).build(**options)
        position = game.at(cmpg.solve(game).policy)
        for agent in range(game.num_agents):
            yield f"{name}, agent {agent}", position.induced_cmdp(agent)


def one_shot(*payoffs: Any) -> cmpg.JointGame:
    """A game without constraints."""
    return cmpg.JointGame.from_matrices(*payoffs)


def random_payoffs(seed: int, *, players: int = 2, most: int = 4) -> list[np.ndarray]:
    """Payoffs [players] of random sizes: whole numbers in every other game, for ties; any floats in the others."""
    rng = np.random.default_rng([2, seed])
    sizes = tuple(int(size) for size in rng.integers(2, most + 1, size=players))
    shape = (players, *sizes)
    return list(rng.integers(-9, 10, size=shape).astype(float) if seed % 2 else rng.normal(size=shape))


def random_potential_game(seed: int, *, constrained: bool) -> cmpg.JointGame:
    """A Markov potential game: a common reward, and a state that moves; thresholds that the first actions meet."""
    rng = np.random.default_rng([3, seed])
    agents, states, horizon = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    sizes = tuple(int(size) for size in rng.integers(2, 4, size=agents))
    shape = (1, states, *sizes)
    costs = rng.random((1 if constrained else 0, *shape))
    costs[(slice(None), slice(None), slice(None), *[0] * agents)] = 0.0
    return cmpg.JointGame(
        transition=rng.dirichlet(np.ones(states), size=shape),
        rewards=np.broadcast_to(rng.normal(size=shape), (agents, *shape)),
        costs=costs,
        thresholds=rng.uniform(0.2, 0.6, size=len(costs)) * horizon,
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )


def random_policy(game: cmpg.Game, seed: int) -> JointPolicy:
    rng = np.random.default_rng([4, seed])
    return JointPolicy(
        tuple(rng.dirichlet(np.ones(actions), size=(steps, states)) for steps, states, actions in game.policy_shapes)
    )


def mixed(rows: Any) -> JointPolicy:
    """A mixed profile of a one-shot game as a policy; rows that others give in floats are made to sum to one."""
    tables = [np.maximum(np.asarray(row, dtype=float), 0.0) for row in rows]
    return JointPolicy(tuple((table / table.sum())[None, None] for table in tables))


def gains(game: cmpg.Game, policy: JointPolicy) -> np.ndarray:
    """What each agent gains by its best response, without constraints: [n]."""
    position = game.at(policy)
    best = [float(cmpg.Exact()(position.induced_cmdp(agent)).value) for agent in range(game.num_agents)]
    return np.array(best) - np.asarray(position.values, dtype=float)


def toy_text() -> Iterator[tuple[str, Any, cmpg.CMDP]]:
    """Gymnasium's tables, with a price on dangerous cells where there are some; name, environment and CMDP."""
    import gymnasium

    for name, options in (
        ("FrozenLake-v1", {"is_slippery": False}),
        ("FrozenLake-v1", {"is_slippery": True}),
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}),
        ("FrozenLake-v1", {"is_slippery": True, "map_name": "8x8"}),
        ("CliffWalking-v1", {"is_slippery": False}),
        ("CliffWalking-v1", {"is_slippery": True}),
        ("Taxi-v4", {}),
        ("Taxi-v4", {"is_rainy": True}),
    ):
        env = gymnasium.make(name, **options)
        text = ", ".join(f"{key}={value}" for key, value in options.items())
        yield f"{name}({text})", env, from_toy_text(env, discount=0.9)


def with_a_limit(cmdp: cmpg.CMDP) -> cmpg.CMDP:
    """The same process with a limit on steps in every other state: nine tenths of what the best policy spends there."""
    costs = np.broadcast_to(np.arange(cmdp.num_states)[:, None] % 2, cmdp.reward.shape[1:]).astype(float)
    costly = replace(cmdp, costs=np.array([[costs]]), thresholds=[1e9])
    spent = float(evaluate(costly, cmpg.Exact()(costly).policy).costs[0])
    least = -float(cmpg.Exact()(replace(costly, reward=-costly.costs[0])).value)
    return replace(costly, thresholds=[least + 0.9 * (spent - least)])
