"""P* of one-shot games against brute force: one agent on a fine grid, the other by its best mixture of two actions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cmpg.duality.dual_function import dual_value, primal_value
from cmpg.equilibrium.branch_and_bound import best_product_policy
from cmpg.equilibrium.certificate import certify
from cmpg.errors import InfeasibleError
from cmpg.games.joint.game import JointGame
from cmpg.scenarios import counter_example


def one_shot(reward, costs, thresholds):
    reward, costs = np.asarray(reward, dtype=float), np.asarray(costs, dtype=float)
    return JointGame(
        transition=np.ones((1, 1, *reward.shape, 1)),
        rewards=np.stack([reward[None, None]] * reward.ndim),
        costs=costs[:, None, None],
        thresholds=thresholds,
        initial=[1.0],
        horizon=1,
    )


def brute_force(reward, cost, threshold, *, points=4001):
    """The best value over a grid of agent 0's mixtures; agent 1 answers exactly. −∞ if nothing is feasible."""
    p = np.linspace(0, 1, points)[:, None]
    rewards, costs = (1 - p) * reward[0] + p * reward[1], (1 - p) * cost[0] + p * cost[1]
    best = np.where(costs <= threshold, rewards, -np.inf).max(axis=1)
    for a, b in combinations(range(reward.shape[1]), 2):
        crosses = (costs[:, a] - threshold) * (costs[:, b] - threshold) < 0
        share = (threshold - costs[crosses, a]) / (costs[crosses, b] - costs[crosses, a])
        value = (1 - share) * rewards[crosses, a] + share * rewards[crosses, b]
        best[crosses] = np.maximum(best[crosses], value)
    return float(best.max())


def check_bracket(game, *, known, tolerance=1e-6):
    bound = best_product_policy(game, tolerance=tolerance, max_nodes=3000)
    assert bound.lower <= bound.upper <= bound.lower + tolerance
    assert bound.upper >= known - 1e-12 * max(1.0, abs(known))
    position = game.at(bound.policy)
    assert position.values[0] == pytest.approx(bound.lower, rel=1e-12)
    assert certify(game, bound.policy).feasible
    return bound


@given(
    st.integers(2, 3).flatmap(lambda a: arrays(np.float64, (2, 2, a), elements=st.integers(0, 4))), st.integers(0, 8)
)
@settings(deadline=None, max_examples=30)
def test_brackets_brute_force_on_whole_numbers(tables, doubled_threshold):
    reward, cost = tables
    threshold = doubled_threshold / 2
    game = one_shot(reward, [cost], [threshold])
    if cost.min() > threshold:
        with pytest.raises(InfeasibleError):
            best_product_policy(game, tolerance=1e-6, max_nodes=3000)
        return
    check_bracket(game, known=brute_force(reward, cost, threshold))


@given(st.integers(0, 10**6), st.integers(2, 3))
@settings(deadline=None, max_examples=25)
def test_brackets_brute_force_on_random_numbers(seed, actions):
    rng = np.random.default_rng(seed)
    reward, cost = rng.normal(size=(2, actions)), rng.random((2, actions))
    threshold = float(np.quantile(cost, rng.uniform(0.05, 0.9)))
    check_bracket(one_shot(reward, [cost], [threshold]), known=brute_force(reward, cost, threshold))


@given(st.integers(0, 10**6), st.sampled_from([(2, 2, 2), (3, 3), (2, 1, 3)]), st.integers(0, 2))
@settings(deadline=None, max_examples=15)
def test_no_feasible_policy_is_above_the_bound(seed, shape, constraints):
    rng = np.random.default_rng(seed)
    costs = rng.random((constraints, *shape))
    game = one_shot(rng.normal(size=shape), costs, [float(np.quantile(cost, 0.5)) for cost in costs])
    try:
        bound = best_product_policy(game, tolerance=1e-3, max_nodes=30)
    except InfeasibleError:
        bound = None
    for _ in range(200):
        position = game.at(game.random_policy(rng=rng))
        if (position.costs <= game.thresholds).all():
            assert bound is not None
            assert position.values[0] <= bound.upper


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_scales(scale):
    reward = scale * np.array([[3.0, 2.0], [2.0, 4.0]])
    game = one_shot(reward, [scale * np.array([[0.0, 0.0], [0.0, 1.0]])], [scale / 2])
    bound = check_bracket(game, known=scale * (4.5 - np.sqrt(2)), tolerance=1e-6 * scale)
    assert bound.gap <= 1e-6 * scale


def test_no_slack():
    """The threshold is the least cost, so only the cheapest policies are feasible."""
    game = one_shot([[1.0, 5.0], [2.0, 9.0]], [[[0.1, 0.3], [0.1, 0.7]]], [0.1])
    assert primal_value(game).lower == pytest.approx(2.0, abs=1e-9)


def test_correlated_agents_can_meet_what_independent_ones_cannot():
    differs, same = np.array([[0.0, 1.0], [0.0, 0.0]]), np.eye(2)
    game = one_shot(np.zeros((2, 2)), [differs, differs.T, same], [0.5, 0.5, 0.2])
    assert dual_value(game).value == pytest.approx(0.0)
    with pytest.raises(InfeasibleError, match="every box of mixed actions was refuted"):
        primal_value(game)


def test_too_few_nodes_still_give_bounds():
    game = one_shot([[3.0, 2.0], [2.0, 4.0]], [[[0.0, 0.0], [0.0, 1.0]]], [0.5])
    bound = primal_value(game, max_nodes=3)
    assert bound.nodes == 3
    assert bound.lower <= 4.5 - np.sqrt(2) <= bound.upper <= 3.5
    assert bound.gap > 1e-6


def test_the_bound_of_a_discounted_game_counts_all_its_steps():
    """Tables of one step stand for infinitely many: P* is 1 / (1 − γ) times that of the stage."""
    stage = counter_example()
    game = JointGame(
        transition=stage.transition,
        rewards=stage.rewards,
        costs=stage.costs,
        thresholds=10 * stage.thresholds,
        initial=[1.0],
        discount=0.9,
    )
    assert primal_value(game).upper >= 10 * (4.5 - np.sqrt(2)) - 1e-9
