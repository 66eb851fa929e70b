"""How near a game is to a potential: a brute force over all moves lies between the bounds, and what follows is true."""

import json
from itertools import product

import numpy as np
import pytest

from cmpg import JointGame, solve
from cmpg.errors import TooLargeError, UnsupportedError
from cmpg.games import near_potential
from cmpg.games.potential import near, symmetric
from cmpg.games.potential.symmetric import as_symmetric
from cmpg.policy import JointPolicy
from cmpg.scenarios import (
    charging,
    congestion_game,
    congestion_game_common_reward,
    counter_example,
    counting_congestion_game,
    spectrum,
)
from command_line import cmpg as run


def random_game(seed):
    rng = np.random.default_rng((41, seed))
    states, steps = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    table = (1, states, 2, 2)
    common = rng.normal(size=table)
    return JointGame(
        transition=rng.dirichlet(np.ones(states), size=table),
        rewards=np.stack([common + rng.uniform(0, 1) * rng.normal(size=table) for _ in range(2)]),
        costs=[],
        thresholds=[],
        initial=rng.dirichlet(np.ones(states)),
        horizon=steps,
    )


def all_tables(game, agent):
    steps, states, actions = game.policy_shapes[agent]
    for choice in product(range(actions), repeat=steps * states):
        yield np.eye(actions)[np.array(choice).reshape(steps, states)]


def brute_force(game, reward):
    """α(V^φ) over all deterministic moves: values are affine in each row, so no other move is worse."""
    candidate = game.with_rewards(np.stack([reward, reward]))
    values = {}
    for one, table in enumerate(all_tables(game, 0)):
        for other, second in enumerate(all_tables(game, 1)):
            policy = JointPolicy([table, second])
            values[one, other] = game.at(policy).values - candidate.at(policy).values
    grid = np.array([[values[one, other] for other in range(other + 1)] for one in range(one + 1)])
    return max(np.ptp(grid[..., 0], axis=0).max(), np.ptp(grid[..., 1], axis=1).max())


@pytest.mark.parametrize("seed", range(6))
def test_a_brute_force_over_all_moves_lies_between_the_bounds(seed):
    game = random_game(seed)
    near = near_potential(game, rng=np.random.default_rng(seed))
    alpha = brute_force(game, np.broadcast_to(near.reward, (game.horizon, *near.reward.shape[1:])))
    assert near.lower <= alpha + 1e-12
    assert alpha <= near.upper
    for other in (game.rewards[0], game.rewards[1], game.rewards.mean(axis=0)):  # the lower bound is for every Φ
        assert near.lower <= brute_force(game, np.broadcast_to(other, (game.horizon, *other.shape[1:]))) + 1e-12


def test_one_shot_games_are_measured_exactly_by_the_best_candidate():
    game = JointGame.from_matrices([[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, -1.0]])
    near = near_potential(game, rng=np.random.default_rng(0))
    assert near.lower == pytest.approx(0.5)  # the one cycle adds up to 2
    assert near.upper == pytest.approx(0.5, abs=1e-6)


def test_a_potential_game_is_near_itself():
    for game in (counter_example(), spectrum()):
        near = near_potential(game, rng=np.random.default_rng(0))
        assert near.lower == 0.0
        assert near.upper < 1e-9


def test_the_ascent_ends_within_the_moves_that_are_promised():
    game = congestion_game(num_agents=2)
    near = near_potential(game, rng=np.random.default_rng(0))
    assert near.max_moves(near.least_epsilon) is None  # ε/2, and not ε, must exceed α
    epsilon = 4 * near.upper
    result = solve(game, epsilon=epsilon, improve=None)
    assert result.certified
    assert result.moves <= near.max_moves(epsilon)


@pytest.mark.parametrize("seed", [1, 4])
def test_moves_are_counted_by_the_range_of_the_candidate_and_not_by_those_of_the_rewards(seed):
    """No two policies differ by more in V^φ; Σ G_i of the rewards bounds that only with n·α added."""
    game = random_game(seed)
    near = near_potential(game, rng=np.random.default_rng(seed))
    reward = np.broadcast_to(near.reward, (game.horizon, *near.reward.shape[1:]))
    candidate = game.with_rewards(np.stack([reward, reward]))
    worth = [
        candidate.at(JointPolicy([first, second])).values[0]
        for first in all_tables(game, 0)
        for second in all_tables(game, 1)
    ]
    assert np.ptp(worth) <= near.reward_range
    epsilon = 5 * near.upper
    assert near.max_moves(epsilon) >= np.ptp(worth) / (epsilon / 2 - near.upper)


def test_what_is_too_large_or_has_no_such_distance_is_refused():
    game = congestion_game(num_agents=8)
    different = game.with_rewards(game.rewards * np.arange(1.0, 9.0).reshape(8, *[1] * (game.rewards.ndim - 1)))
    with pytest.raises(TooLargeError, match="joint actions"):  # agents that cannot be exchanged
        near_potential(different, rng=np.random.default_rng(0))
    with pytest.raises(TooLargeError, match="counts"):
        near_potential(counting_congestion_game(num_agents=40), rng=np.random.default_rng(0))
    with pytest.raises(UnsupportedError):
        near_potential(charging(), rng=np.random.default_rng(0))


def test_the_command_tells_how_near_a_game_without_a_potential_is():
    told = run("check", "congestion", "--agents", "2")
    assert "near a potential: no function of policies is closer to a potential than" in told.out
    assert "for every ε above" in told.out
    record = json.loads(run("check", "congestion", "--agents", "2", "--json").out)
    assert 0 < record["near_potential"]["lower"] <= record["near_potential"]["upper"]


def test_by_counts_a_symmetric_game_is_the_joint_game():
    for agents in (2, 3):
        joint, counting = congestion_game(num_agents=agents), counting_congestion_game(num_agents=agents)
        game, other = as_symmetric(joint), as_symmetric(counting)
        for name in ("initial", "rewards", "moves"):
            np.testing.assert_array_equal(getattr(game, name), getattr(other, name))
        mean = np.broadcast_to(joint.rewards.mean(axis=0), (2, *joint.rewards.shape[2:]))
        flat = mean.reshape(*mean.shape[:2], -1)
        by_joint_actions = max(near.upper(seat, flat) for seat in near.joint_seats(joint))
        assert near.upper(game, symmetric.mean_reward(game)) == pytest.approx(by_joint_actions)
        policy = joint.random_policy(rng=np.random.default_rng(agents))
        np.testing.assert_allclose(symmetric.by_counts(game).at(policy).values, joint.at(policy).values)
        drawn = np.random.default_rng(7).integers(4, size=(agents, 2, 2))
        tables = JointPolicy([np.eye(4)[each] for each in drawn])
        assert symmetric.visits(game, drawn) @ symmetric.mean_reward(game).ravel() == pytest.approx(
            joint.at(tables).values.mean()
        )
    common = as_symmetric(congestion_game_common_reward(num_agents=3))
    moves, gained = symmetric.sampled_moves(common, 20, np.random.default_rng(1))
    assert gained == pytest.approx(moves @ symmetric.mean_reward(common).ravel())  # the reward is the potential
    assert np.abs(gained).max() > 1
    uneven = joint.with_rewards(joint.rewards * np.array([1.0, 1.0, 2.0]).reshape(3, *[1] * (joint.rewards.ndim - 1)))
    assert as_symmetric(uneven) is None


def test_the_bracket_of_the_papers_congestion_game_holds_for_every_move_that_is_tried():
    game = counting_congestion_game()
    near_it = near_potential(game, rng=np.random.default_rng(0))
    assert 20 < near_it.lower < near_it.upper < 72
    assert abs(near_it.witness.residual) >= 4 * near_it.lower
    counts, rng = as_symmetric(game), np.random.default_rng(1)
    moves, gained = symmetric.sampled_moves(counts, 200, rng)
    off = np.abs(gained - moves @ near_it.reward.ravel())
    assert off.max() <= near_it.upper
    values = [symmetric.visits(counts, rng.integers(4, size=(8, 2, 2))) @ near_it.reward.ravel() for _ in range(200)]
    assert np.ptp(values) <= near_it.reward_range
