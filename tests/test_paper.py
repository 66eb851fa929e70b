"""One test per claim and number of the paper, as corrected in docs/paper-notes.md.

Equilibria are not unique: "is Nash" is asserted, never "equals P*", except where the claim is about the optimum itself.
"""

from collections import Counter

import numpy as np
import pytest

from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import plan
from cmpg.duality.dual_function import (
    analyse_duality,
    dual_function,
    dual_maximisers,
    dual_value,
    lagrangian,
    penalised_game,
    primal_value,
)
from cmpg.equilibrium.ascent import coordinate_ascent, theorem_1_bound
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.start import feasible_start, random_start
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.games.potential.check import Verdict, check_potential, recheck
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, modified_counter_example
from cmpg.scenarios.paper import grid_world_local

ROOT_HALF = 0.5**0.5


def play(p, q):
    """The 2×2 games' policy in which the second actions have probability p and q."""
    return JointPolicy(([[[1 - p, p]]], [[[1 - q, q]]]))


def gains_by_best_response(game, policy):
    """The exact gain of each agent, by solving its CMDP."""
    position = game.at(policy)
    gains = []
    for agent in range(game.num_agents):
        gains.append(Exact()(position.induced_cmdp(agent)).value - float(position.values[agent]))
    return np.array(gains)


# --- Section 4: the counter-example ---------------------------------------------------------------------------------


def test_counter_example_reward_and_cost_formulas():
    game = counter_example()
    for p, q in [(0.2, 0.7), (0.5, 0.5), (1.0, 0.3)]:
        position = game.at(play(p, q))
        assert position.values == pytest.approx([3 - p - q + 3 * p * q] * 2)
        assert position.costs == pytest.approx([p * q])


def test_counter_example_primal_value():
    bound = primal_value(counter_example(), tolerance=1e-6)
    assert bound.lower == pytest.approx(4.5 - 2**0.5, abs=1e-6)
    assert bound.upper - bound.lower <= 1e-6
    assert [float(table[0, 0, 1]) for table in bound.policy] == pytest.approx([ROOT_HALF] * 2, abs=1e-2)


def test_counter_example_dual_function():
    prices = np.linspace(0, 2, 1000)
    assert dual_function(counter_example(), prices) == pytest.approx(np.maximum(3 + prices / 2, 4 - prices / 2))
    assert dual_function(counter_example(), [0.0, 2.0]) == pytest.approx([4.0, 4.0])


def test_counter_example_dual_value():
    dual = dual_value(counter_example())
    assert dual.upper == pytest.approx(3.5)
    assert dual.lower == pytest.approx(3.5)
    assert dual.multipliers == pytest.approx([1.0])


def test_counter_example_strong_duality_fails():
    report = analyse_duality(counter_example())
    assert report.primal.upper < report.dual.lower - 0.4


def test_counter_example_has_exactly_two_dual_solutions():
    found = dual_maximisers(counter_example(), [1.0])
    assert found.complete
    seen = sorted((each.value, float(each.costs[0]), each.feasible) for each in found.found)
    assert seen == [(3.0, 0.0, True), (4.0, 1.0, False)]


def test_counter_example_nash_set():
    game = counter_example()
    slightly_more = counter_example(threshold=0.5 + 1e-12)
    for p, q, value in [(0, 0, 3.0), (1 / 3, 1 / 3, 8 / 3)]:
        assert game.at(play(p, q)).values[0] == pytest.approx(value)
        assert gains_by_best_response(game, play(p, q)).max() < 1e-9
    for p in np.linspace(0.5, 1, 6):
        q = 0.5 / p
        assert slightly_more.at(play(p, q)).values[0] == pytest.approx(4.5 - p - q)
        assert gains_by_best_response(slightly_more, play(p, q)).max() < 1e-9
    assert gains_by_best_response(game, play(0.4, 0.4)).max() > 0.05


def test_counter_example_multipliers_at_the_optimum():
    game = counter_example()
    position = game.at(play(ROOT_HALF, ROOT_HALF))
    for agent in (0, 1):
        assert Exact()(position.induced_cmdp(agent)).multipliers == pytest.approx([3 - 2**0.5])


def test_counter_example_ends_at_three_in_about_a_quarter_of_random_starts():
    """28.7 % of 2000 uniform starts; a start that is infeasible does not count."""
    game, rng = counter_example(), np.random.default_rng(0)
    ends = Counter()
    while ends.total() < 300:
        start = play(*rng.random(2))
        if game.at(start).costs[0] > 0.5:
            continue
        result = coordinate_ascent(game, start, epsilon=1e-9)
        assert result.certified
        ends[bool(abs(result.values[0] - 3.0) < 1e-9)] += 1
    assert 0.2 < ends[True] / 300 < 0.4


# --- Appendix: the modified counter-example, Propositions 1 and 2 -----------------------------------------------------


def test_modified_counter_example_has_strong_duality():
    report = analyse_duality(modified_counter_example())
    assert report.primal.lower == pytest.approx(3.5, abs=1e-6)
    assert report.dual.upper == pytest.approx(3.5)


def test_modified_counter_example_every_policy_is_dual_optimal():
    rng = np.random.default_rng(0)
    for p, q in rng.random((20, 2)):
        assert lagrangian(modified_counter_example(), play(p, q), [1.0]) == pytest.approx(3.5)


def test_modified_counter_example_the_dual_may_return_a_policy_that_is_not_nash():
    game = modified_counter_example()
    assert game.at(play(0.5, 0.5)).values == pytest.approx([3.25, 3.25])
    assert certify(game, play(0.5, 0.5), [[1.0], [1.0]]).feasible
    assert gains_by_best_response(game, play(0.5, 0.5)) == pytest.approx([0.25, 0.25])


def test_a_constrained_maximiser_of_the_potential_is_nash():
    bound = primal_value(counter_example(), tolerance=1e-6)
    assert gains_by_best_response(counter_example(), bound.policy).max() < 1e-5


def test_penalised_game_has_the_lagrangian_as_potential():
    game, rng = grid_world(), np.random.default_rng(0)
    penalised = penalised_game(game, [0.7])
    one = game.random_policy(rng=rng)
    other = one.replace(1, game.random_policy(rng=rng)[1])
    change = lagrangian(game, other, [0.7]) - lagrangian(game, one, [0.7])
    assert penalised.at(other).values[1] - penalised.at(one).values[1] == pytest.approx(change, abs=1e-10)


# --- Section 5: Theorem 1 ---------------------------------------------------------------------------------------------


def test_theorem_1_bound_uses_the_true_ranges():
    assert theorem_1_bound(counter_example(), 0.1) == 2 * (2 + 2) / 0.1
    assert theorem_1_bound(grid_world(), 0.1) == 2 * (120 + 120) / 0.1


def test_theorem_1_bound_is_kept():
    for game in (counter_example(), grid_world()):
        result = solve(game, epsilon=0.5)
        assert result.certified
        assert result.moves <= theorem_1_bound(game, 0.5)


# --- Section 7: the grid world ----------------------------------------------------------------------------------------


def test_grid_world_optimum_and_duality():
    dual = dual_value(grid_world())
    assert dual.upper == pytest.approx(23.1)
    assert dual.multipliers == pytest.approx([1.0])
    result = solve(grid_world(), epsilon=1e-6, restarts=5, rng=np.random.default_rng(0))
    assert result.certified
    assert result.values == pytest.approx([23.1, 23.1])
    assert result.costs == pytest.approx([0.1])
    assert result.costs[0] <= 0.1


def test_grid_world_dual_maximiser_is_infeasible():
    found = dual_maximisers(grid_world(), [1.0], limit=200)
    infeasible = [each for each in found.found if not each.feasible]
    assert any(each.value == pytest.approx(24.0) and each.costs == pytest.approx([1.0]) for each in infeasible)


def test_grid_world_least_cost_is_zero():
    start = feasible_start(grid_world())
    assert start.slack == pytest.approx(0.1)


def test_grid_world_with_polishing_usually_ends_at_the_optimum():
    """88-97 % of runs; the bound here leaves room for the small number of runs."""
    game, rng = grid_world(), np.random.default_rng(1)
    safe = feasible_start(game).policy
    values = []
    for _ in range(20):
        result = coordinate_ascent(game, random_start(game, safe, rng=rng), rng=rng)
        assert result.certified
        values.append(float(result.values[0]))
    assert np.mean(np.isclose(values, 23.1)) >= 0.75
    assert np.mean(values) > 23.0


def test_grid_world_own_cell_optimum():
    game = grid_world_local()
    result = solve(game, restarts=10, rng=np.random.default_rng(0))
    assert result.certified
    assert result.values.sum() == pytest.approx(23.1)
    assert result.certificate.information == "own-state policies"


def test_grid_world_own_cell_has_a_nash_policy_worth_20_4():
    """Agent 1 walks R, U, U, R, R; agent 2 answers."""
    game = grid_world_local()
    route = walk(game, [1, 0, 0, 1, 1, 1])
    start = JointPolicy.uniform(game.policy_shapes).replace(0, route).replace(1, wait(game))
    result = coordinate_ascent(game, start)
    assert result.certified
    other = Exact()(game.at(start).induced_cmdp(1)).policy
    nash = start.replace(1, other)
    total = game.at(nash).values.sum()
    assert total == pytest.approx(20.4)
    assert gains_by_best_response(game, nash).max() < 1e-9


def test_grid_world_waiting_at_the_start_costs_nothing():
    game, rng = grid_world_local(), np.random.default_rng(0)
    for _ in range(5):
        policy = game.random_policy(rng=rng).replace(0, wait(game))
        assert game.at(policy).costs[0] == 0.0


def test_grid_world_own_cell_form_agrees_with_the_joint_form():
    """The local form pays each agent its own cell, the paper's form pays both the sum: gains are the same."""
    local, rng = grid_world_local(), np.random.default_rng(0)
    joint = to_joint(local)
    policy = local.random_policy(rng=rng)
    lifted = lift_policy(local, policy)
    assert joint.at(lifted).values == pytest.approx(local.at(policy).values, abs=1e-10)
    assert joint.at(lifted).costs == pytest.approx(local.at(policy).costs, abs=1e-10)


def walk(game, actions):
    """The policy that plays a fixed action at each step, whatever the cell."""
    _, states, count = game.policy_shapes[0]
    return np.eye(count)[np.repeat(np.array(actions)[:, None], states, axis=1)]


def wait(game):
    """Walk into the wall at the start for ever."""
    return walk(game, [2] * game.horizon)


# --- Section 7: the congestion game -----------------------------------------------------------------------------------


def crowd_policy(first, second):
    """Everybody deterministic: agent i plays first[s][i] at step 1 and second[s][i] at step 2."""
    actions = np.array([first, second])
    return JointPolicy(tuple(np.eye(4)[actions[:, :, agent]] for agent in range(8)))


def figure_policy():
    split = [2] * 4 + [3] * 4
    return crowd_policy([split, split], [[3] * 8, [3] * 8])


def test_congestion_figure_policy():
    game = congestion_game()
    position = game.at(figure_policy())
    assert position.costs == pytest.approx([0.5])
    assert sorted(set(np.round(position.values, 9))) == [-36.0, -28.0]
    assert position.values.sum() == pytest.approx(-256)
    assert gains_by_best_response(game, figure_policy()).max() < 1e-9


def test_congestion_figure_policy_leaves_no_slack():
    position = congestion_game().at(figure_policy())
    for agent in range(8):
        least = plan(position.induced_cmdp(agent), np.ones(1), reward_weight=0.0)
        assert least.costs == pytest.approx([0.5])


def test_congestion_has_a_nash_policy_without_cost():
    """2/2/2/2 in `unsafe` at the first step leads back to `safe`."""
    game = congestion_game()
    spread = [0, 0, 1, 1, 2, 2, 3, 3]
    ends = []
    for first in ([2] * 4 + [3] * 4, [3] * 4 + [2] * 4):
        policy = crowd_policy([first, spread], [[3] * 8, [3] * 8])
        result = coordinate_ascent(game, policy)
        assert result.certified
        ends.append((round(float(result.values.sum()), 6), round(float(result.costs[0]), 6)))
    assert (90.0, 0.0) in ends


def test_congestion_cost_at_the_first_step_is_vacuous():
    game = congestion_game(cost_at="first step")
    worst = plan(game.joint_cmdp(), -np.ones(1), reward_weight=0.0)
    assert worst.costs[0] == pytest.approx(0.5)
    assert game.thresholds[0] == 0.5


def test_congestion_ends_at_nash_policies_from_random_starts():
    game, rng = congestion_game(), np.random.default_rng(0)
    costs = []
    for _ in range(12):
        start = game.random_policy(rng=rng)
        costs.append(float(game.at(start).costs[0]))
        assert coordinate_ascent(game, start, rng=rng).certified
    assert np.mean(costs) == pytest.approx(0.115, abs=0.05)


def test_congestion_game_is_not_a_potential_game():
    check = check_potential(congestion_game(), rng=np.random.default_rng(0))
    assert check.verdict is Verdict.REFUTED
    assert abs(recheck(congestion_game(), check.witness)) > 1.0


def test_congestion_game_of_one_step_is_a_potential_game():
    assert check_potential(congestion_game(horizon=1), rng=np.random.default_rng(0)).verdict is not Verdict.REFUTED
