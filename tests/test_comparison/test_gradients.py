"""Exact gradients against finite differences, and the projection against its optimality condition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.model import CMDP
from cmpg.comparison.gradients import gradient_step, policy_gradients, project_rows, squared_distance
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example


def random_cmdp(rng, *, discount=None):
    states, actions, steps = 3, 2, 1 if discount else 4
    return CMDP(
        transition=rng.dirichlet(np.ones(states), size=(1, states, actions)),
        reward=rng.normal(size=(steps, states, actions)),
        costs=rng.random((2, 1, states, actions)),
        thresholds=np.ones(2),
        initial=rng.dirichlet(np.ones(states)),
        horizon=None if discount else steps,
        discount=discount,
    )


@given(st.integers(0, 10**6), st.sampled_from([None, 0.8]))
@settings(deadline=None, max_examples=20)
def test_gradients_are_finite_differences(seed, discount):
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, discount=discount)
    policy, other = (rng.dirichlet(np.ones(2), size=cmdp.policy_shape[:2]) for _ in range(2))
    direction, width = other - policy, 1e-5
    ahead, behind = evaluate(cmdp, policy + width * direction), evaluate(cmdp, policy - width * direction)
    slopes = np.append(ahead.value - behind.value, ahead.costs - behind.costs) / (2 * width)
    gradients = policy_gradients(cmdp, policy)
    assert gradients.shape == (3, *cmdp.policy_shape)
    assert np.tensordot(gradients, direction, axes=3) == pytest.approx(slopes, rel=1e-5, abs=1e-7)


def test_gradients_of_a_local_game_are_those_of_its_own_values():
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    game = LocalGame(
        agents=(agent, agent), delay=[[[0, 0.25, 0.5]]], load_costs=[[[[0, 0, 1]]]], thresholds=[0.5], horizon=1
    )
    policy = game.uniform_policy()
    here = game.at(policy)
    change = np.array([[[-1e-6, 1e-6]]])
    there = here.replace(1, policy[1] + change)
    gradients = policy_gradients(here.induced_cmdp(1), policy[1])
    assert (gradients[0] * change).sum() == pytest.approx(there.values[1] - here.values[1], rel=1e-6)
    assert (gradients[1] * change).sum() == pytest.approx(there.costs[0] - here.costs[0], rel=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(deadline=None, max_examples=25)
def test_the_projection_is_the_nearest_point(seed, actions):
    """x is the projection of y exactly when (y − x)·(z − x) ≤ 0 for every vertex z of the simplex."""
    rng = np.random.default_rng(seed)
    given_rows = rng.normal(scale=rng.choice([0.1, 1.0, 100.0]), size=(4, 3, actions))
    projected = project_rows(given_rows)
    assert (projected >= 0).all()
    assert projected.sum(axis=-1) == pytest.approx(np.ones((4, 3)))
    pull = given_rows - projected
    assert ((pull - (pull * projected).sum(axis=-1, keepdims=True)) <= 1e-9 * np.abs(given_rows).max()).all()


def test_a_step_follows_the_gradient_and_an_anchor_holds_it_back():
    game = counter_example()
    position = game.at(JointPolicy.uniform(game.policy_shapes))
    free = gradient_step(game, position, np.array([1.0, 0.0]), step_size=0.1)
    # The gradient of both agents is (2.5, 3), and the projection takes off the mean.
    assert free.policy[0][0, 0] == pytest.approx([0.475, 0.525])
    assert free.values[0] > position.values[0]
    held = gradient_step(game, free, np.array([1.0, 0.0]), step_size=0.1, anchor=(position.policy, 100.0))
    assert squared_distance(held.policy, position.policy) > squared_distance(free.policy, position.policy)
    still = gradient_step(game, free, np.zeros(2), step_size=0.1, anchor=(position.policy, 10.0))
    assert squared_distance(still.policy, position.policy) == pytest.approx(0.0, abs=1e-20)
