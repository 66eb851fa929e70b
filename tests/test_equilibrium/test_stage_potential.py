"""One stage reward whose value is the potential: common rewards, terms that nobody influences, exogenous states."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from cmpg.cmdp.evaluation import evaluate
from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame
from cmpg.games.joint.planner import joint_planner, potential_reward, with_common_reward
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, congestion_game_exogenous, counter_example, spectrum


def joint_table(policy):
    first, second, *rest = policy
    table = np.einsum("hsa,hsb->hsab", first, second)
    for each in rest:
        table = np.einsum("hs...,hsc->hs...c", table, each)
    return table.reshape(*table.shape[:2], -1)


def potential_value(game, policy):
    return evaluate(joint_planner(game), joint_table(policy)).value


def test_a_common_reward_is_its_own_potential():
    game = counter_example()
    assert np.array_equal(potential_reward(game), game.rewards[0])


@pytest.mark.parametrize("build", [spectrum, lambda: congestion_game_exogenous(num_agents=3)])
def test_exogenous_states(build):
    game, rng = build(), np.random.default_rng(0)
    assert potential_value(game, JointPolicy.reference(game.policy_shapes)) == pytest.approx(0.0, abs=1e-12)
    for _ in range(5):
        policy = game.random_policy(rng=rng)
        assert potential_value(game, policy) == pytest.approx(game.potential(policy), abs=1e-9)
        assert with_common_reward(game).at(policy).values == pytest.approx(game.potential(policy), abs=1e-9)


def test_exogenous_states_in_sparse_form():
    game = spectrum()
    rows = game.transition.reshape(len(game.transition), -1, game.num_states)
    sparse = replace(game, transition=tuple(sp.csr_array(step) for step in rows))
    assert potential_reward(sparse) == pytest.approx(potential_reward(game))


@pytest.mark.parametrize("time", [{"horizon": 3}, {"discount": 0.8}])
def test_terms_that_nobody_influences(time):
    """Half of the state moves by itself and pays agent 1 a bonus; the other half is moved by the actions."""
    rng = np.random.default_rng(1)
    outside = rng.dirichlet(np.ones(2), size=2)
    inside = rng.dirichlet(np.ones(2), size=(2, 2, 2))
    transition = np.einsum("uv,sabt->usabvt", outside, inside).reshape(1, 4, 2, 2, 4)
    reward = rng.normal(size=(1, 4, 2, 2))
    bonus = np.repeat([1.0, 5.0], 2).reshape(1, 4, 1, 1)
    game = JointGame(
        transition=transition,
        rewards=np.stack([reward, reward + bonus]),
        costs=np.zeros((0, 1, 4, 2, 2)),
        thresholds=[],
        initial=[0.25] * 4,
        **time,
    )
    policy = game.random_policy(rng=rng)
    assert potential_value(game, policy) == pytest.approx(game.potential(policy), abs=1e-9)


def test_a_game_without_one_is_refused_with_coordinates():
    with pytest.raises(GameError, match=r"rewards\[i=1, h=0, s=0, a=\(0, 1, 1\)\] is 4, and agent 0's is 1"):
        potential_reward(congestion_game(num_agents=3))


def test_stage_games_without_potentials_are_refused():
    matching = np.array([[1.0, -1.0], [-1.0, 1.0]])
    game = replace(counter_example(), rewards=np.stack([matching, -matching])[:, None, None])
    with pytest.raises(GameError, match="a potential in every stage"):
        potential_reward(game)
