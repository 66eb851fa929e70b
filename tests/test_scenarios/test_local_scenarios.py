"""The grid world with policies on the own cell, and every local scenario on the sample files."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from cmpg.checks import GameError
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.solve import solve
from cmpg.interop.movingai import read_map
from cmpg.policy import JointPolicy
from cmpg.scenarios import SCENARIOS, sample_files, scenario
from cmpg.scenarios.grid import grid_world_local
from cmpg.scenarios.paper import MOVES as GRID_MOVES
from cmpg.scenarios.paper import grid_world
from cmpg.scenarios.robots import robots


def lifted(policy):
    """The same behaviour, as policies on the pair of cells."""
    first = np.repeat(policy[0][:, :, None], 16, axis=2).reshape(6, 256, 4)
    second = np.repeat(policy[1][:, None], 16, axis=1).reshape(6, 256, 4)
    return JointPolicy((first, second))


def walk(*routes):
    """The policy that mixes routes (chance, moves), as the mixture of their occupancies."""
    actions, occupancy = list(GRID_MOVES), np.zeros((6, 16, 4))
    for chance, letters in routes:
        x = y = 0
        for h, letter in enumerate(f"{letters}U"):
            name = next(action for action in actions if action[0].upper() == letter)
            occupancy[h, 4 * y + x, actions.index(name)] += chance
            x, y = min(max(x + GRID_MOVES[name][0], 0), 3), min(max(y + GRID_MOVES[name][1], 0), 3)
    mass = occupancy.sum(axis=2, keepdims=True)
    return np.where(mass > 0, occupancy / np.where(mass > 0, mass, 1), 0.25)


def test_the_papers_grid_policy_is_worth_23_1_and_is_nash():
    game = grid_world_local()
    policy = JointPolicy((walk((1.0, "RRRUU")), walk((0.1, "RURUR"), (0.9, "UURRR"))))
    position = game.at(policy)
    assert position.values.sum() == pytest.approx(23.1, abs=1e-12)
    assert position.costs[0] == pytest.approx(0.1, abs=1e-12)
    certificate = certify(grid_world_local(threshold=0.1 + 1e-12), policy, [[1.0], [1.0]])
    assert certificate.feasible
    assert certificate.gains.max() < 1e-9


def test_own_and_common_rewards_agree_on_every_deviation():
    local, joint, rng = grid_world_local(), grid_world(), np.random.default_rng(4)
    for _ in range(3):
        policy = local.random_policy(rng=rng)
        here, there = local.at(policy), joint.at(lifted(policy))
        np.testing.assert_allclose(there.values, here.values.sum(), rtol=1e-12)
        np.testing.assert_allclose(there.costs, here.costs, rtol=1e-12)
        for i in range(2):
            moved = policy.replace(i, local.random_policy(rng=rng)[i])
            gain = local.at(moved).values[i] - here.values[i]
            common_gain = joint.at(lifted(moved)).values[i] - there.values[i]
            assert gain == pytest.approx(common_gain, abs=1e-11)


def test_a_cell_outside_the_grid_is_refused():
    with pytest.raises(GameError, match=r"cell \(3, 2\) is not on the grid of 3 columns"):
        grid_world_local(width=3)


def test_the_sample_files_are_those_of_their_script(tmp_path):
    folder = Path(sample_files.__file__).parent / "samples"
    specification = importlib.util.spec_from_file_location("generate", folder / "generate.py")
    generate = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generate)
    generate.main(tmp_path)
    for name in generate.FILES:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
    assert read_map(folder / "sample.map").width == 12


@pytest.mark.parametrize("name", ["charging", "robots", "routing", "grid-world-local"])
def test_every_scenario_runs_with_nothing_else(name):
    assert name in SCENARIOS
    game = scenario(name).build()
    assert game.num_agents >= 2
    assert game.information == "own-state policies"
    expected = {"charging": (24, 0.5), "robots": (60, 0.1), "routing": (8, 0.5), "grid-world-local": (6, 0.1)}
    assert (game.horizon, game.thresholds[0]) == expected[name]


@pytest.mark.parametrize("name", ["charging", "routing"])
def test_the_samples_need_their_constraint_and_are_solved(name):
    selfish = solve(scenario(name).build(threshold=1e6), epsilon=1e-4)
    assert selfish.certified
    assert selfish.costs[0] > 1.0
    bounded = solve(scenario(name).build(), epsilon=1e-4)
    assert bounded.certified
    assert 0.4 < bounded.costs[0] <= 0.5


def test_the_robots_of_the_sample_are_solved():
    result = solve(robots(agents=3, horizon=30), epsilon=1e-3)
    assert result.certified
    assert result.costs[0] <= 0.1
