"""The paper's games: their tables against plain loops, and the golden facts that need nothing but evaluation."""

from itertools import product
from math import sqrt

import numpy as np
import pytest

from cmpg.cmdp.planning import dual_bound, plan
from cmpg.errors import CMPGError, GameError
from cmpg.files.policies import load_policy
from cmpg.policy import JointPolicy
from cmpg.scenarios import (
    SCENARIOS,
    charging,
    congestion_game,
    congestion_game_common_reward,
    congestion_game_exogenous,
    counter_example,
    grid_world,
    modified_counter_example,
    scenario,
    spectrum,
)
from command_line import cmpg

UP, RIGHT, DOWN, LEFT = np.eye(4)
A, B, C, D = np.eye(4)
SAFE, UNSAFE = 0, 1


# Counter-examples


def mixed(*second_actions):
    """Each agent plays its second action with the given probability."""
    return JointPolicy(tuple(np.array([[[1 - p, p]]]) for p in second_actions))


@pytest.mark.parametrize(("p", "q"), [(0, 0), (1, 1), (0.25, 0.5), (1 / 3, 1 / 3), (0.5, 1.0)])
def test_reward_and_cost_of_the_counter_example(p, q):
    position = counter_example().at(mixed(p, q))
    assert position.values == pytest.approx([3 - p - q + 3 * p * q] * 2)
    assert position.costs == pytest.approx([p * q])


def test_the_primal_value_of_the_counter_example_is_reached_at_the_root_of_a_half():
    position = counter_example().at(mixed(sqrt(0.5), sqrt(0.5)))
    assert position.values == pytest.approx([4.5 - sqrt(2)] * 2)
    assert position.costs == pytest.approx([0.5])


@pytest.mark.parametrize("price", [0.0, 0.3, 1.0, 1.7, 2.0])
def test_the_dual_function_of_the_counter_example(price):
    bound = dual_bound(counter_example().joint_cmdp(), np.array([price]))
    assert bound == pytest.approx(max(3 + price / 2, 4 - price / 2))


def test_the_modified_counter_example_leaves_a_gain_of_a_quarter_at_the_uniform_policy():
    game = modified_counter_example()
    uniform, moved = game.at(mixed(0.5, 0.5)), game.at(mixed(0.5, 1.0))
    assert uniform.values.tolist() == [3.25, 3.25]
    assert moved.values.tolist() == [3.5, 3.5]
    assert moved.costs.tolist() == [0.5]
    assert dual_bound(game.joint_cmdp(), np.array([1.0])) == 3.5  # P* = D* = 3.5
    for p, q in product((0, 0.3, 1), repeat=2):  # at λ = 1 every policy is dual-optimal
        position = game.at(mixed(p, q))
        assert position.values[0] - position.costs[0] + 0.5 == pytest.approx(3.5)


# Grid world


def on_own_cell(agent, moves, *, horizon=6, first=None):
    """Return the table of an agent that looks at its own cell only; unnamed cells move up."""
    table = np.tile(UP, (horizon, 16, 1))
    for (x, y), move in moves.items():
        table[:, 4 * y + x] = move
    if first is not None:
        table[0] = first
    return np.repeat(table, 16, axis=1) if agent == 0 else np.tile(table, (1, 16, 1))


ALONG_THE_FLOOR = {(0, 0): RIGHT, (1, 0): RIGHT, (2, 0): RIGHT, (3, 0): UP, (3, 1): UP, (3, 2): RIGHT}
THROUGH_THE_MIDDLE = {
    (1, 0): UP,
    (1, 1): UP,
    (0, 1): UP,
    (0, 2): RIGHT,
    (1, 2): RIGHT,
    (2, 2): RIGHT,
    (3, 2): RIGHT,
}


@pytest.mark.parametrize(("share", "value", "cost"), [(0.1, 23.1, 0.1), (1.0, 24.0, 1.0), (0.0, 23.0, 0.0)])
def test_the_policies_of_the_grid_world_figures(share, value, cost):
    second = on_own_cell(1, THROUGH_THE_MIDDLE, first=share * RIGHT + (1 - share) * UP)
    position = grid_world().at(JointPolicy((on_own_cell(0, ALONG_THE_FLOOR), second)))
    assert position.values == pytest.approx([value, value])
    assert position.costs == pytest.approx([cost])


def test_nothing_beats_the_figure_in_the_grid_world():
    assert dual_bound(grid_world().joint_cmdp(), np.array([1.0])) == pytest.approx(23.1)
    assert dual_bound(grid_world().joint_cmdp(), np.array([0.9])) > 23.1


def test_waiting_at_the_start_is_safe_whatever_the_other_does():
    game = grid_world()
    waits = np.tile(DOWN, (6, 256, 1))
    position = game.at(game.random_policy(rng=np.random.default_rng(0)).replace(0, waits))
    assert position.costs.tolist() == [0.0]
    assert game.thresholds.tolist() == [0.1]


def test_grid_world_tables_are_those_of_a_loop():
    game = grid_world(width=3, height=2, start=(1, 0), target=(2, 1), cell_rewards={(0, 0): 3.0, (2, 1): 5.0})
    matrix = game.transition[0].toarray().reshape(36, 4, 4, 36)
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def moved(cell, action):
        x, y = cell % 3 + steps[action][0], cell // 3 + steps[action][1]
        return 3 * y + x if 0 <= x < 3 and 0 <= y < 2 else cell

    pay = [3.0, 0, 0, 0, 0, 5.0]
    for one, other, a, b in product(range(6), range(6), range(4), range(4)):
        state = 6 * one + other
        assert matrix[state, a, b, 6 * moved(one, a) + moved(other, b)] == 1.0
        assert game.rewards[:, 0, state, a, b].tolist() == [pay[one] + pay[other]] * 2
        assert game.costs[0, 0, state, a, b] == (one == other and one not in (1, 5))
    assert game.initial[6 * 1 + 1] == 1.0
    assert matrix.sum() == 36 * 16


def test_grid_world_shape_and_names():
    game = grid_world()
    assert (game.num_states, game.num_actions, game.horizon, game.is_sparse) == (256, (4, 4), 6, True)
    assert game.action_names[0] == ("up", "right", "down", "left")
    assert game.state_names[4 * 16 + 1] == "(0,1) (1,0)"
    with pytest.raises(GameError, match=r"cell \(3, 2\) is not on the grid of 3 columns and 3 rows"):
        grid_world(width=3, height=3)


# Congestion game


def everybody(rows):
    """Return the policy with rows[h][state] = one action per agent."""
    tables = np.array(rows)  # [H, S, n, A]
    return JointPolicy(tuple(tables[:, :, agent] for agent in range(tables.shape[2])))


HALVES = [C] * 4 + [D] * 4
QUARTERS = [A] * 2 + [B] * 2 + [C] * 2 + [D] * 2
ALL_D = [D] * 8


def test_the_figure_of_the_congestion_game():
    position = congestion_game().at(everybody([[HALVES, HALVES], [ALL_D, ALL_D]]))
    assert position.values.tolist() == [-36.0] * 4 + [-28.0] * 4
    assert position.values.sum() == -256.0
    assert position.costs.tolist() == [0.5]


def test_no_agent_alone_can_lower_the_cost_of_the_figure():
    position = congestion_game().at(everybody([[HALVES, HALVES], [ALL_D, ALL_D]]))
    for agent in range(8):
        assert plan(position.induced_cmdp(agent), np.ones(1), reward_weight=0.0).costs.tolist() == [0.5]


def test_spreading_out_in_unsafe_costs_nothing_and_has_a_welfare_of_ninety():
    position = congestion_game().at(everybody([[HALVES, QUARTERS], [ALL_D, ALL_D]]))
    assert position.costs.tolist() == [0.0]
    assert position.values.sum() == 90.0


@pytest.mark.parametrize(("cost_at", "largest"), [("every step", 1.5), ("first step", 0.5)])
def test_the_constraint_is_vacuous_where_only_the_first_step_counts(cost_at, largest):
    game = congestion_game(cost_at=cost_at)
    costliest = plan(game.joint_cmdp(), -np.ones(1), reward_weight=0.0)
    assert costliest.costs.tolist() == [largest]
    assert game.thresholds.tolist() == [0.5]


def test_random_policies_of_the_congestion_game_are_strictly_feasible():
    game, rng = congestion_game(), np.random.default_rng(0)
    costs = [game.at(game.random_policy(rng=rng)).costs[0] for _ in range(20)]
    assert max(costs) < 0.5
    assert np.mean(costs) == pytest.approx(0.115, abs=0.01)


@pytest.mark.parametrize("num_agents", [1, 2, 3, 4])
def test_congestion_tables_are_those_of_a_loop(num_agents):
    game = congestion_game(num_agents=num_agents, horizon=3, weights=(1, 2, 5), cost_at="first step")
    for joint in product(range(3), repeat=num_agents):
        counts = [joint.count(a) for a in range(3)]
        crowded, spread = max(counts) > num_agents / 2, max(counts) <= num_agents / 4
        payoffs = np.array([counts[a] * (1, 2, 5)[a] for a in joint])
        assert game.rewards[:, 0, SAFE, *joint].tolist() == payoffs.tolist()
        assert game.rewards[:, 0, UNSAFE, *joint].tolist() == (payoffs - 100).tolist()
        assert game.transition[0, SAFE, *joint].tolist() == [not crowded, crowded]
        assert game.transition[0, UNSAFE, *joint].tolist() == [spread, not spread]
        assert game.costs[0, :, SAFE, *joint].tolist() == [0, 0, 0]
        assert game.costs[0, :, UNSAFE, *joint].tolist() == [crowded, 0, 0]


def test_congestion_variants_differ_in_what_they_say_only():
    game, common, exogenous = congestion_game(), congestion_game_common_reward(), congestion_game_exogenous()
    policy = game.random_policy(rng=np.random.default_rng(0))
    assert common.at(policy).values == pytest.approx([game.at(policy).values.sum()] * 8)
    assert common.at(policy).costs == pytest.approx(game.at(policy).costs)
    assert (exogenous.transition[0, SAFE] == (0.75, 0.25)).all()
    assert (exogenous.transition[0, UNSAFE] == (0.5, 0.5)).all()
    np.testing.assert_array_equal(exogenous.rewards, game.rewards)
    assert game.state_names == ("safe", "unsafe")
    assert game.action_names[7] == ("A", "B", "C", "D")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_agents": 0}, "num_agents is 0; a whole number of at least 1 is required"),
        ({"weights": ()}, r"weights has shape \[0\]"),
        ({"cost_at": "last step"}, "cost_at is 'last step'; it must be 'every step' or 'first step'"),
        ({"initial": (0.5, 0.6)}, "initial sums to 1.1"),
        ({"horizon": 0}, "horizon is 0"),
    ],
)
def test_bad_options_of_the_congestion_game(options, message):
    with pytest.raises(GameError, match=message):
        congestion_game(**{"num_agents": 2, **options})


# Spectrum


def test_spectrum_tables_are_those_of_a_loop():
    game = spectrum()
    assert game.num_states * np.prod(game.num_actions) == 108
    sensed = list(product(("free", "busy"), repeat=2))
    assert game.state_names == tuple(map(" ".join, sensed))
    change = {("free", "free"): 0.8, ("free", "busy"): 0.2, ("busy", "free"): 0.4, ("busy", "busy"): 0.6}
    for (s, now), joint in product(enumerate(sensed), product(range(3), repeat=3)):
        row = [change[now[0], then[0]] * change[now[1], then[1]] for then in sensed]
        np.testing.assert_allclose(game.transition[0, s, *joint], row, rtol=1e-15)
        rho = [{"free": 0.1, "busy": 0.9}[each] for each in now]
        costs = [rho[a - 1] if a else 0.0 for a in joint]
        rewards = [(1 - rho[a - 1]) * (1, 0.7)[a - 1] / joint.count(a) if a else 0.0 for a in joint]
        assert game.costs[0, 0, s, *joint] == pytest.approx(sum(costs) / 3, abs=1e-15)
        np.testing.assert_allclose(game.rewards[:, 0, s, *joint], rewards, rtol=1e-14)
    assert game.initial.tolist() == [0.25] * 4
    assert (game.horizon, game.thresholds.tolist()) == (2, [0.15])


def test_all_idle_is_a_safe_start_and_the_uniform_policy_is_not():
    game = spectrum()
    idle = JointPolicy((np.tile(np.eye(3)[0], (2, 4, 1)),) * 3)
    assert game.at(idle).costs.tolist() == [0.0]
    assert game.at(game.uniform_policy()).costs[0] > 0.15
    with pytest.raises(GameError, match="0 users and 2 channels"):
        spectrum(num_agents=0)


# The congestion game through the command


@pytest.mark.parametrize(
    ("name", "other"), [("congestion", "congestion-counting"), ("congestion-counting", "congestion")]
)
def test_the_congestion_game_is_refuted_and_still_solved(tmp_path, name, other):
    agents = ("--agents", "4")
    refuted = cmpg("check", name, *agents)
    assert refuted.code == 1
    assert "potential REFUTED" in refuted.out
    assert "witness: agent" in refuted.out
    folder = tmp_path / "run"
    solved = cmpg("solve", name, *agents, "--restarts", "2", "--seed", "1", "--out", folder)
    assert solved.code == 0
    assert solved.out.startswith("CERTIFIED")
    # One form proves what the other found, and refuses the claim once an agent has left.
    assert cmpg("certify", other, *agents, folder / "policy.npz").code == 0
    policy, multipliers = load_policy(folder / "policy.npz")
    policy.replace(0, np.full((2, 2, 4), 0.25)).save(tmp_path / "moved.npz", multipliers=multipliers)
    assert cmpg("certify", other, *agents, tmp_path / "moved.npz").code == 1


# Names


@pytest.mark.parametrize(
    ("name", "agents"),
    [
        ("counter-example", 2),
        ("modified-counter-example", 2),
        ("grid-world", 2),
        ("congestion", 8),
        ("congestion-common-reward", 8),
        ("congestion-exogenous", 8),
        ("spectrum", 3),
    ],
)
def test_scenarios_build_under_their_names(name, agents):
    assert scenario(name) is SCENARIOS[name]
    game = scenario(name).build(threshold=0.25)
    assert game.num_agents == agents
    assert game.thresholds.tolist() == [0.25]
    assert all(each.name == key and each.summary for key, each in SCENARIOS.items())


def test_an_unknown_scenario_or_option_is_refused_with_a_hint():
    with pytest.raises(GameError, match="no scenario 'grid_world'; did you mean 'grid-world'"):
        scenario("grid_world")
    with pytest.raises(GameError, match="no scenario 'xyz'; there are: counter-example"):
        scenario("xyz")
    with pytest.raises(GameError, match="grid-world has no option 'treshold'; did you mean 'threshold'"):
        scenario("grid-world").build(treshold=0.2)
    for name in ("robots", "routing"):
        with pytest.raises(CMPGError, match="seed is a str; a seed is required"):
            scenario(name).build(seed="a")
    with pytest.raises(GameError, match="the number of agents is required"):
        charging(agents=["Ann", "Bob"])
