"""What claims are computed from: ways on the grid, curves, endings, witnesses, and the paper's own solvers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cmpg.cmdp.evaluation import occupancy
from cmpg.cmdp.exact import Exact
from cmpg.errors import GameError
from cmpg.games.local.to_joint import lift_policy, to_joint
from cmpg.games.potential.check import recheck
from cmpg.paper import runs
from cmpg.paper.algorithm_3 import AveragedPrimalDual, UniformFill
from cmpg.paper.claims import PAPER_ASCENT, QUICK, Evidence, cost_curve, gain_curve, run_many
from cmpg.paper.runs import agent_ways, collision_probability, joint_ways, largest_cycle
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import congestion_game, grid_world, grid_world_local


def own_evidence(seed=0, jobs=1):
    return Evidence(seed, QUICK, jobs)


# The runs.


def test_the_ways_of_the_figures_policy():
    local, joint = grid_world_local(), grid_world()
    ways = joint_ways(joint, lift_policy(local, runs.grid_figure_policy(local)))
    assert sum(way.probability for way in ways) == pytest.approx(1)
    assert agent_ways(ways, 0)[0].cells == (0, 1, 2, 3, 7, 11)
    assert [(way.cells, pytest.approx(way.probability)) for way in agent_ways(ways, 1)] == [
        ((0, 4, 8, 9, 10, 11), 0.9),
        ((0, 1, 5, 9, 10, 11), 0.1),
    ]
    assert collision_probability(ways, free=(0, 11)) == pytest.approx(0.1)


def test_ways_add_up_to_the_games_own_values_and_costs():
    """The rewards and collisions along the ways, weighted, are what the game says the policy is worth."""
    local, joint = grid_world_local(), grid_world()
    rewards = {1: 2.0, 4: 1.0, 11: 10.0}
    for policy in (runs.grid_figure_policy(local), runs.second_best_policy(local)):
        lifted = lift_policy(local, policy)
        ways = joint_ways(joint, lifted)
        value = sum(way.probability * sum(rewards.get(c, 0.0) for pair in way.cells for c in pair) for way in ways)
        cost = sum(way.probability * sum(a == b and a not in (0, 11) for a, b in way.cells) for way in ways)
        assert joint.at(lifted).values[0] == pytest.approx(value)
        assert joint.at(lifted).costs[0] == pytest.approx(cost)


def test_a_policy_that_mixes_everywhere_has_too_many_ways():
    joint = grid_world()
    with pytest.raises(GameError, match="mixes at random"):
        joint_ways(joint, joint.uniform_policy())


def test_starts_of_cost_zero_cost_nothing():
    for game in (grid_world(), grid_world_local()):
        rng = np.random.default_rng(1)
        assert all(game.at(runs.one_waits(game, rng)).costs[0] == 0 for _ in range(3))


def test_the_own_cell_form_agrees_with_the_joint_form():
    """The local form pays each agent its own cell, the paper's form pays both the sum: gains are the same."""
    local, rng = grid_world_local(), np.random.default_rng(0)
    joint, policy = to_joint(local), local.random_policy(rng=rng)
    lifted = lift_policy(local, policy)
    assert joint.at(lifted).values == pytest.approx(local.at(policy).values, abs=1e-10)
    assert joint.at(lifted).costs == pytest.approx(local.at(policy).costs, abs=1e-10)
    assert grid_world().at(lifted).values == pytest.approx([local.at(policy).values.sum()] * 2, abs=1e-10)


# Runs.


def test_curves_carry_ended_runs_on():
    found = run_many(own_evidence(), grid_world_local(), runs.one_waits, count=6, what="test")
    gains, costs = gain_curve(found), cost_curve(found)
    longest = max(len(run.costs) for run in found)
    assert gains.mean.shape == (longest, 2)
    assert gains.mean[-1] == pytest.approx([0, 0], abs=1e-6)
    assert costs.mean[0] == 0
    last = np.array([run.costs[-1] for run in found])
    assert costs.mean[-1] == pytest.approx(last.mean())
    assert costs.error[-1] == pytest.approx(last.std(ddof=1) / 6**0.5)
    assert all(run.settled and run.violations(0.1) == 0 for run in found)


def test_runs_have_the_same_bits_for_any_number_of_jobs():
    game = congestion_game()
    one, two = (run_many(own_evidence(5, jobs), game, runs.from_simplex, count=4, what="test") for jobs in (1, 2))
    assert [run.policy.fingerprint() for run in one] == [run.policy.fingerprint() for run in two]


# Endings of the congestion game.


def test_endings_are_told_by_their_counts():
    split = [2] * 4 + [3] * 4
    assert runs.ending_of(runs.congestion_figure_policy()) == runs.FIGURE
    assert runs.ending_of(runs.crowd_policy([split, [3] * 8], [[3] * 8, split])) == runs.MIRROR
    spread = runs.crowd_policy([split, [0, 0, 1, 1, 2, 2, 3, 3]], [[3] * 8] * 2)
    assert runs.ending_of(spread) == runs.COSTLESS
    assert runs.ending_of(JointPolicy.uniform(congestion_game().policy_shapes)) == runs.OTHER


def test_normalised_starts_are_policies():
    game = congestion_game()
    policy = runs.normalised(game, np.random.default_rng(0))
    assert policy.shapes == game.policy_shapes
    assert all(np.allclose(table.sum(axis=-1), 1) for table in policy)


# Witnesses.


def test_the_climb_evaluates_what_the_game_evaluates():
    game = congestion_game(num_agents=4)
    found = largest_cycle(game, proposals=300, rng=np.random.default_rng(0))
    exact = recheck(game.exact(), found)
    assert isinstance(exact, Fraction)
    assert float(exact) == pytest.approx(found.residual)
    assert abs(found.residual) > 1


# The paper's own solvers.


def agent_cmdp():
    game = grid_world_local()
    return game.at(runs.grid_figure_policy(game)).induced_cmdp(1)


def test_uniform_fill_changes_no_value_and_fills_what_is_not_visited():
    cmdp = agent_cmdp()
    filled, best = UniformFill()(cmdp), Exact()(cmdp)
    assert filled.value == pytest.approx(best.value)
    unvisited = occupancy(cmdp, best.policy).sum(axis=-1) == 0
    assert np.all(filled.policy[unvisited] == 1 / cmdp.num_actions)


def test_the_averaged_loop_exceeds_the_threshold_and_is_refused():
    cmdp = agent_cmdp()
    answer = AveragedPrimalDual(50, runs.MULTIPLIER_BOUND)(cmdp)
    assert answer.costs[0] > cmdp.thresholds[0]
    method = replace(PAPER_ASCENT, solver=AveragedPrimalDual(20, runs.MULTIPLIER_BOUND))
    led = run_many(own_evidence(), grid_world_local(), runs.one_waits, count=2, what="test", method=method, epsilon=0.1)
    assert all(run.result.refused > 0 for run in led)
