"""Values and costs of joint policies by following the joint state; and where the public files are."""

import itertools
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"NOT TESTED ON REAL DATA: there is no folder {DATA}; put the public files there"
)


def brute_force(policy, *, start, horizon, step, end):
    """Follow the joint distribution; `step(h, states, actions)` gives (rewards, costs, [(chance, next states)])."""
    present, values, costs = {start: 1.0}, 0.0, 0.0
    for h in range(horizon):
        following = defaultdict(float)
        for states, chance in present.items():
            for actions in itertools.product(*(range(table.shape[2]) for table in policy)):
                weight = chance * math.prod(table[h, s, a] for table, s, a in zip(policy, states, actions, strict=True))
                rewards, cost, outcomes = step(h, states, actions)
                values, costs = values + weight * np.array(rewards), costs + weight * np.array(cost)
                for part, states_next in outcomes:
                    following[states_next] += weight * part
        present = following
    return values + sum(chance * np.array(end(states)) for states, chance in present.items()), costs


def each_alone(outcomes):
    """Combine the agents' own outcomes [(chance, next)], which are independent."""
    for combination in itertools.product(*outcomes):
        yield math.prod(chance for chance, _ in combination), tuple(state for _, state in combination)


def assert_agrees(game, *, seed=0, **world):
    policy = game.random_policy(rng=np.random.default_rng(seed))
    values, costs = brute_force(policy, horizon=game.horizon, **world)
    position = game.at(policy)
    np.testing.assert_allclose(position.values, values, atol=1e-10)
    np.testing.assert_allclose(position.costs, costs, atol=1e-10)
