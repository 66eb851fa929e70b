"""The duality gap with certified ends, for every form of game with a potential."""

import numpy as np
import pytest

from cmpg.duality import analyse_duality, dual_function_bounds, dual_value, duality_gap, penalised_local_game
from cmpg.duality.dual_function import dual_function
from cmpg.errors import GameError, UnsupportedError
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, grid_world_local, routing


def test_the_gap_of_the_counter_example_is_known_to_six_digits():
    gap = duality_gap(counter_example())
    assert gap.least == pytest.approx(2**0.5 - 1, abs=2e-6)
    assert gap.greatest == pytest.approx(2**0.5 - 1, abs=2e-6)
    assert gap.rota == pytest.approx(gap.correlated) == pytest.approx(3.5)


def test_strong_duality_of_the_grid_world_leaves_no_gap():
    gap = duality_gap(grid_world(), restarts=2)
    assert gap.greatest < 1e-8
    assert gap.nash == pytest.approx(23.1)


def test_a_local_game_has_a_bracket_and_its_ends_are_in_order():
    gap = duality_gap(routing(num_agents=4), restarts=2)
    assert gap.nash <= gap.primal_lower <= gap.dual_lower <= gap.dual_upper
    assert gap.correlated is None


def test_the_penalised_game_has_the_lagrangian_as_its_potential():
    game, rng = grid_world_local(), np.random.default_rng(3)
    reference = JointPolicy.reference(game.policy_shapes)
    for price in (0.0, 0.7, 5.0):
        priced = penalised_local_game(game, [price])
        for _ in range(3):
            policy = game.random_policy(rng=rng)
            spent = game.at(policy).costs[0] - game.at(reference).costs[0]
            assert priced.potential(policy) == pytest.approx(game.potential(policy) - price * spent, abs=1e-9)
            for agent in range(2):  # so best responses are those of an agent that pays for the whole cost
                other = policy.replace(agent, game.random_policy(rng=rng)[agent])
                change = priced.at(other).values[agent] - priced.at(policy).values[agent]
                free = game.at(other).values[agent] - game.at(policy).values[agent]
                paid = game.at(other).costs[0] - game.at(policy).costs[0]
                assert change == pytest.approx(free - price * paid, abs=1e-9)


def test_bounds_of_the_dual_function_hold_a_tabulated_one():
    """With joint-state policies more can be had, so the joint dual function is above the lower bound."""
    local = grid_world_local()
    low, high = dual_function_bounds(local, [0.0, 1.0, 3.0])
    assert (low <= high + 1e-12).all()
    joint = grid_world()
    zero = local.at(JointPolicy.reference(local.policy_shapes)).values.sum()
    above = dual_function(joint, [0.0, 1.0, 3.0])
    assert (low + zero <= above + 1e-9).all()
    with pytest.raises(GameError, match="negative"):
        penalised_local_game(local, [-1.0])


def test_a_game_without_a_potential_has_no_gap():
    with pytest.raises(GameError):
        duality_gap(congestion_game(num_agents=4))


def test_what_has_no_planner_is_told_what_brackets_it():
    game = grid_world_local()
    for analyse in (analyse_duality, dual_value, lambda each: dual_function(each, [1.0])):
        with pytest.raises(UnsupportedError, match=r"duality_gap\(game\) brackets P\* and D\* of every form"):
            analyse(game)
