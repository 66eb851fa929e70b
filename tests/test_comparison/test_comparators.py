"""What other methods do, and that their records are true."""

from dataclasses import replace

import numpy as np
import pytest

from cmpg.comparison.methods import (
    COMPARATORS,
    IndependentGradient,
    JointPlanner,
    LagrangianDual,
    LagrangianGradient,
    NashCA,
    SwitchingGradient,
)
from cmpg.duality.dual_function import dual_value, penalised_game
from cmpg.duality.maximisers import certify_with_best_responses
from cmpg.errors import GameError
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, modified_counter_example, routing, spectrum

SHORT = (
    LagrangianDual(iterations=40),
    IndependentGradient(iterations=40),
    LagrangianGradient(iterations=40),
    SwitchingGradient(rounds=5, steps_per_round=8),
    JointPlanner(),
    NashCA(),
)


def uniform(game):
    return JointPolicy.uniform(game.policy_shapes)


def idle(game):
    """Everybody plays the first action, always."""
    return JointPolicy(tuple(np.eye(a)[np.zeros((h, s), dtype=int)] for h, s, a in game.policy_shapes))


def small_local_game():
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    return LocalGame(
        agents=(agent, agent), delay=[[[0, 0.25, 0.5]]], load_costs=[[[[0, 0, 1]]]], thresholds=[0.5], horizon=1
    )


@pytest.mark.parametrize("method", SHORT, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("build", [counter_example, spectrum])
def test_the_record_is_that_of_the_policy(method, build):
    game = build()
    found = method(game, idle(game), rng=np.random.default_rng(0))
    position = game.at(found.policy)
    assert found.values == pytest.approx(position.values)
    assert found.costs == pytest.approx(position.costs)
    assert found.worst_violation >= max((position.costs - game.thresholds).max(), 0.0) - 1e-15
    assert 0 <= found.infeasible_iterates <= found.iterates
    assert (found.infeasible_iterates > 0) == (found.worst_violation > 1e-12)
    assert found.seconds >= 0
    assert found.settings.startswith(found.name + "(")


@pytest.mark.parametrize("method", SHORT, ids=lambda method: type(method).__name__)
def test_same_generator_same_bits(method):
    game = spectrum()
    one, two = (method(game, uniform(game), rng=np.random.default_rng(3)) for _ in range(2))
    assert one.policy.fingerprint() == two.policy.fingerprint()


@pytest.mark.parametrize("method", [m for m in COMPARATORS if not isinstance(m, JointPlanner)])
def test_local_games_can_be_compared_too(method):
    game = small_local_game()
    found = method(game, idle(game), rng=np.random.default_rng(0))
    assert found.values == pytest.approx(game.at(found.policy).values)
    assert found.values.sum() > game.at(idle(game)).values.sum()


def test_a_joint_planner_needs_joint_tables():
    with pytest.raises(GameError, match="cannot be planned for jointly"):
        JointPlanner()(small_local_game(), idle(small_local_game()))


def test_the_dual_returns_one_of_two_pure_policies_on_the_counter_example():
    """Which one depends on the length of the steps, by no virtue of its own; the one that costs 1 is not feasible."""
    game = counter_example()
    answers = [LagrangianDual(step_size=size)(game, uniform(game)) for size in (0.5, 0.7, 0.9, 1.1, 1.3)]
    assert {found.costs[0] for found in answers} == {0.0, 1.0}
    for found in answers:
        assert found.worst_violation == 0.5
        assert found.infeasible_iterates >= found.iterates // 4
        assert certify_with_best_responses(game, found.policy).feasible == (found.costs[0] == 0.0)


def test_the_dual_finds_the_dual_value():
    game = spectrum()
    found = LagrangianDual(iterations=400)(game, uniform(game))
    best = dual_value(game)
    assert game.potential(found.policy) + best.multipliers @ (game.thresholds - found.costs) == pytest.approx(
        best.value, rel=0.02
    )


def test_the_dual_on_a_game_that_cannot_be_planned_for_jointly():
    """The congestion game has no potential; the inner problem is then solved agent by agent."""
    game = congestion_game(num_agents=3)
    found = LagrangianDual(iterations=20)(game, uniform(game))
    assert found.iterates == 22  # the start, one for each of the 20 multipliers, and one for their mean
    assert found.values == pytest.approx(game.at(found.policy).values)


def test_gradients_without_constraints_break_them():
    game = counter_example()
    found = IndependentGradient()(game, uniform(game))
    assert found.values == pytest.approx([4.0, 4.0])
    assert found.costs == pytest.approx([1.0])
    assert found.worst_violation == pytest.approx(0.5)
    assert found.iterates < 50  # it came to rest


def test_the_lagrangian_gradient_breaks_the_constraint_on_its_way():
    game = counter_example()
    found = LagrangianGradient()(game, uniform(game))
    assert found.infeasible_iterates > 0
    assert found.worst_violation > 0.1


def test_the_switching_gradient_climbs_and_stays_close_to_feasible():
    game = modified_counter_example()
    found = SwitchingGradient()(game, uniform(game))
    assert found.values[0] > 3.3
    assert found.costs[0] <= 0.5
    assert found.worst_violation < 0.25
    longer = SwitchingGradient(rounds=60)(game, uniform(game))
    assert longer.values[0] > found.values[0]


def test_the_switching_gradient_leaves_an_infeasible_start():
    game = counter_example()
    both_second = JointPolicy(tuple([[[0.0, 1.0]]] for _ in range(2)))
    found = SwitchingGradient()(game, both_second)
    assert found.worst_violation == 0.5
    assert found.costs[0] <= 0.5 + 1e-9


def test_the_planner_bounds_everybody_and_its_marginals_do_not_attain_it():
    game = counter_example()
    found = JointPlanner()(game, uniform(game))
    assert found.upper_bound == pytest.approx(3.5)
    assert found.values == pytest.approx([2.75, 2.75])


def test_nash_ca_is_right_without_constraints():
    game = penalised_game(spectrum(), [6.3])
    found = NashCA(epsilon=1e-9)(game, uniform(game))
    assert found.worst_violation == 0.0
    assert certify_with_best_responses(game, found.policy).epsilon <= 1e-8


def test_nash_ca_ignores_constraints():
    game = counter_example()
    found = NashCA()(game, uniform(game))
    assert found.costs == pytest.approx([1.0])
    assert found.infeasible_iterates == 1


def test_a_game_without_constraints():
    game = penalised_game(modified_counter_example(), [0.0])
    for method in COMPARATORS:
        found = method(game, uniform(game), rng=np.random.default_rng(0))
        assert found.infeasible_iterates == 0
        assert found.values == pytest.approx([4.0, 4.0], abs=1e-3), found.name


def test_a_discounted_game():
    rng = np.random.default_rng(5)
    reward = rng.normal(size=(1, 2, 2, 2))
    game = JointGame(
        transition=rng.dirichlet(np.ones(2), size=(1, 2, 2, 2)),
        rewards=np.stack([reward, reward]),
        costs=rng.random((1, 1, 2, 2, 2)),
        thresholds=[2.5],
        initial=[0.5, 0.5],
        discount=0.8,
    )
    bound = JointPlanner()(game, uniform(game)).upper_bound
    for method in SHORT:
        found = method(game, uniform(game), rng=np.random.default_rng(0))
        if found.costs[0] <= 2.5:
            assert found.values.mean() <= bound + 1e-9, found.name


@pytest.mark.parametrize("method", [IndependentGradient(), LagrangianGradient(), SwitchingGradient(), LagrangianDual()])
def test_steps_do_not_depend_on_the_currency(method):
    """Rewards in another unit, costs in another unit: the same policies."""
    game = spectrum()
    dear = replace(game, rewards=1024 * game.rewards, costs=game.costs / 8, thresholds=game.thresholds / 8)
    one, other = (method(each, uniform(each)) for each in (game, dear))
    for mine, theirs in zip(one.policy, other.policy, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-6)


def test_the_gradient_comes_to_a_nash_policy_where_there_are_many_agents():
    """With steps in units of the range of rewards, it used to crawl where delays at impossible loads are large."""
    game = routing(num_agents=8)
    found = IndependentGradient(iterations=100)(game, uniform(game))
    free = NashCA()(game, uniform(game))
    assert game.potential(found.policy) > 0.9 * game.potential(free.policy)


def test_the_lagrangian_gradient_returns_its_last_feasible_iterate():
    game = modified_counter_example()
    for steps in range(40, 60, 5):
        found = LagrangianGradient(iterations=steps)(game, uniform(game))
        assert found.costs[0] <= 0.5
