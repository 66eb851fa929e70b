"""The constants of the theory: the table of the notes, the corrections, Slater constants, and what is runnable."""

import dataclasses
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError
from cmpg.games.joint.game import JointGame
from cmpg.learning.bounds import (
    ADAPTIVE,
    CORRECTED,
    GENERATIVE,
    PRINTED,
    PUBLISHED,
    SAFE,
    SHARED,
    UNCONSTRAINED,
    Allowance,
    Size,
    ascent_constants,
    bounds_table,
    known_model_constants,
    paper_constants,
    rigorous_constants,
    safe_constants,
)
from cmpg.learning.confidence import l1_radius
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.slater import cmdp_slack, game_values, slater_constant
from cmpg.scenarios.paper import congestion_game, counter_example, grid_world


def unit_size(states, actions, horizon, successors=None):
    """A CMDP whose rewards and costs span [0, 1] at every step."""
    return Size(states, actions, horizon, np.ones(horizon), np.ones((1, horizon)), successors or states)


def known_of(game):
    return GameSimulator(game, rng=np.random.default_rng(0)).known


@pytest.mark.parametrize(
    ("size", "slater", "epsilon", "paper", "rigorous"),
    [
        (unit_size(2, 4, 2), 0.25, 0.1, 2.7e8, 8.9e4),
        (unit_size(5, 3, 4), 0.5, 0.5, 2.3e8, 2.7e5),
        (unit_size(5, 3, 4), 0.5, 0.1, 5.7e9, 5.8e6),
        (unit_size(16, 4, 6, successors=2), 0.1, 0.1, 2.2e12, 1.5e9),
    ],
)
def test_samples_per_entry_are_those_of_the_notes(size, slater, epsilon, paper, rigorous):
    asked = {"slater": slater, "epsilon": epsilon, "delta": 0.1}
    assert paper_constants(size, **asked).samples_per_entry == pytest.approx(paper, rel=0.03)
    assert rigorous_constants(size, **asked).samples_per_entry == pytest.approx(rigorous, rel=0.03)


def test_the_papers_constants_are_the_printed_formulas():
    size, slater, epsilon = unit_size(4, 3, 5), 0.5, 0.2
    constants = paper_constants(size, slater=slater, epsilon=epsilon, delta=0.1)
    assert constants.tightening == pytest.approx(epsilon * slater / 80)
    assert constants.solver_tolerance == pytest.approx(constants.tightening / 5)
    assert constants.multiplier_bound == pytest.approx(80)
    leading = 409600 * 5**6 / (epsilon**2 * slater**4)
    assert constants.iterations == pytest.approx(leading * (1 + 1 / 60**2))
    assert constants.step_size == pytest.approx(80 / (np.sqrt(constants.iterations) * 5))
    assert constants.samples == constants.samples_per_entry * 4 * 3 * 5


@settings(deadline=None, max_examples=30)
@given(
    st.integers(2, 8), st.integers(1, 5), st.integers(2, 8),
    st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0.01, 2), st.floats(0.01, 2),
)  # fmt: skip
def test_the_rigorous_constants_solve_their_own_equation(states, actions, horizon, reward, cost, slater, epsilon):
    size = Size(states, actions, horizon, np.full(horizon, reward), np.full((1, horizon), cost), states)
    found = rigorous_constants(size, slater=slater, epsilon=epsilon, delta=0.1)
    # The closed form of the notes, for equal spans at every step.
    ratio = reward / cost
    linear = epsilon + ratio * slater + horizon * reward
    closed = (linear - np.sqrt(linear**2 - 4 * ratio * epsilon * slater)) / (4 * ratio)
    if found.row_error < 2:
        assert found.tightening == pytest.approx(closed, rel=1e-6)
        gap = 2 * found.reward_error + 2 * found.tightening * horizon * reward / (slater - 2 * found.tightening)
        assert gap == pytest.approx(epsilon, rel=1e-9)
    assert l1_radius(found.samples_per_entry, states, delta=0.1 / size.entries) <= found.row_error * (1 + 1e-12)


def test_constants_scale_with_the_units_of_rewards_and_costs():
    base, scaled = unit_size(3, 2, 4), Size(3, 2, 4, np.full(4, 7.0), np.full((1, 4), 0.2), 3)
    for compute in (paper_constants, rigorous_constants):
        first = compute(base, slater=0.5, epsilon=0.3, delta=0.1)
        second = compute(scaled, slater=0.1, epsilon=2.1, delta=0.1)
        assert second.samples_per_entry == pytest.approx(first.samples_per_entry, rel=1e-6)
        assert second.tightening == pytest.approx(0.2 * first.tightening)
    price = paper_constants(scaled, slater=0.1, epsilon=2.1, delta=0.1)
    assert price.multiplier_bound == pytest.approx(7 / 0.2 * 64)


def test_nothing_needs_to_be_drawn_where_the_transition_does_not_matter():
    for size in (unit_size(5, 3, 1), unit_size(5, 3, 4, successors=1), Size(2, 2, 3, np.zeros(3), np.zeros((1, 3)), 2)):
        found = rigorous_constants(size, slater=0.1, epsilon=0.1, delta=0.1)
        assert set(vars(found).values()) == {0}
    unconstrained = Size(2, 2, 3, np.ones(3), np.zeros((0, 3)), 2)
    assert rigorous_constants(unconstrained, slater=np.inf, epsilon=0.3, delta=0.1).row_error == pytest.approx(0.1)


def test_without_slack_there_are_no_constants():
    for slater in (0.0, -1.0, np.nan):
        with pytest.raises(CMPGError, match="a positive one is needed"):
            rigorous_constants(unit_size(2, 2, 2), slater=slater, epsilon=0.1, delta=0.1)
        with pytest.raises(CMPGError, match="a positive one is needed"):
            paper_constants(unit_size(2, 2, 2), slater=slater, epsilon=0.1, delta=0.1)


def test_iterations_and_episodes_with_true_ranges():
    known = known_of(grid_world())
    # The common reward of a step is 0 to 20, six steps, two agents.
    assert known.reward_ranges.tolist() == [120.0, 120.0]
    assert known_model_constants(known, epsilon=0.1).max_iterations == 4800
    assert known_model_constants(known, epsilon=0.1, printed=True).max_iterations == 240
    constants = ascent_constants(known, epsilon=0.1, delta=0.1)
    assert constants.max_iterations == 9600
    assert constants.episodes == np.ceil(32 * 120**2 / 0.01 * np.log(8 * 2 * 9600 / 0.1))
    assert constants.response_delta == pytest.approx(0.1 / (2 * 2 * 9600))


def test_printed_and_corrected_agree_where_rewards_fill_the_unit_interval():
    shape = (2, 3, 1, 2, 2)
    game = JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.broadcast_to(np.arange(4.0).reshape(1, 1, 1, 2, 2) / 3, shape),
        costs=np.zeros((0, 1, 1, 2, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=3,
    )
    known = known_of(game)
    printed, corrected = (ascent_constants(known, epsilon=0.5, delta=0.1, printed=flag) for flag in (True, False))
    assert printed.max_iterations == corrected.max_iterations == 48
    assert printed.episodes == corrected.episodes == np.ceil(32 * 9 / 0.25 * np.log(32 * 4 * 3 / 0.05))
    assert printed.response_delta == pytest.approx(0.5 * 0.1 / (8 * 4 * 3))


def test_safe_exploration_orders():
    size = unit_size(4, 9, 2)
    printed = safe_constants(size, margin=0.5, epsilon=0.5, delta=0.1, printed=True)
    regret = 4 * 8 * 3 / 0.5
    assert printed.iterations == 4 * regret**2 / 0.25
    assert printed.first_phase == 16 * 9 * 16 / 0.25
    assert printed.episodes == np.ceil(16 * 4 / 0.25 * np.log(2 * regret / 0.05))
    corrected = safe_constants(size, margin=0.5, epsilon=0.5, delta=0.1)
    assert corrected.episodes == np.ceil(8 * 4 / 0.25 * np.log(12 * printed.iterations / 0.1))


# The concentration lemma of Algorithm 3 drops a factor S.


def test_the_papers_concentration_lemma_is_refuted():
    """One row, uniform over S states, then a reward that a policy may collect or not in each of them.

    Over all policies, the largest error of the value is the total variation distance between the row and its estimate.
    """
    states, horizon, epsilon, delta = 5000, 2, 0.1, 0.1
    count = int(np.ceil(np.log(2 * states**2 * 2 * horizon / delta) * horizon**4 / epsilon**2))
    draws = np.random.default_rng(0).multinomial(count, np.full(states, 1 / states), size=50)
    worst = 0.5 * np.abs(draws / count - 1 / states).sum(axis=1)
    assert (worst > epsilon).all()
    # The corrected number for the same statement: rows within 2ε in L1.
    enough = int(np.ceil(2 * (states * np.log(2) + np.log(states * 2 / delta)) / (2 * epsilon) ** 2))
    draws = np.random.default_rng(1).multinomial(enough, np.full(states, 1 / states), size=50)
    assert (0.5 * np.abs(draws / enough - 1 / states).sum(axis=1) <= epsilon).all()


# Slater constants.


def test_slater_constants_of_the_papers_games():
    congestion = slater_constant(congestion_game())
    assert congestion.value == pytest.approx(-1.0)
    assert not congestion.exact
    grid = slater_constant(grid_world())
    assert grid.value == pytest.approx(0.1)
    assert grid.exact
    # Agent 1 can always play its first action, which costs nothing.
    assert slater_constant(counter_example()).value == pytest.approx(0.5)


def test_the_slater_constant_is_that_of_the_agent_who_can_do_least():
    """Only agent 0 decides about the cost: it can keep a slack of ½, and agent 1 can be left with −½."""
    costs = np.array([[0.0, 0.0], [1.0, 1.0]])[None, None, None]
    game = JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.zeros((2, 1, 1, 2, 2)),
        costs=costs,
        thresholds=[0.5],
        initial=[1.0],
        horizon=1,
    )
    found = slater_constant(game)
    assert found.per_agent.tolist() == [0.5, -0.5]
    assert found.value == -0.5


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_values_of_matrix_games_are_those_of_another_solver(seed, rows, columns):
    matrix = np.random.default_rng(seed).integers(-3, 4, size=(rows, columns)).astype(float)
    other = linprog(
        np.append(np.zeros(rows), 1.0),
        A_ub=np.hstack([matrix.T, -np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=[[1.0] * rows + [0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * rows + [(None, None)],
    )
    assert game_values(matrix[None])[0] == pytest.approx(other.fun, abs=1e-8)


def random_game(rng, *, agents, constraints, horizon=2, states=2):
    actions = (2,) * agents
    return JointGame(
        transition=rng.dirichlet(np.ones(states), size=(horizon, states, *actions)),
        rewards=np.zeros((agents, 1, states, *actions)),
        costs=rng.random((constraints, horizon, states, *actions)),
        thresholds=rng.random(constraints) + 0.5,
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )


@pytest.mark.parametrize(("agents", "constraints"), [(2, 1), (3, 1), (2, 2)])
def test_no_opponents_leave_less_slack_than_the_slater_constant(agents, constraints):
    rng = np.random.default_rng(agents + 10 * constraints)
    for _ in range(5):
        game = random_game(rng, agents=agents, constraints=constraints)
        found = slater_constant(game)
        assert found.exact == (agents == 2 and constraints == 1)
        for agent, _ in itertools.product(range(agents), range(20)):
            policy = game.random_policy(rng=rng)
            assert cmdp_slack(game.at(policy).induced_cmdp(agent)) >= found.per_agent[agent] - 1e-9


def test_for_two_agents_some_opponent_attains_the_slater_constant():
    """Against the opponent's minimax policy, found by backward induction here, the slack is the constant."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        game = random_game(rng, agents=2, constraints=1)
        to_go, rows = np.zeros(2), np.zeros((2, 2, 2))
        for h in (1, 0):
            stage = game.costs[0, h] + game.transition[h] @ to_go
            for s in range(2):
                # The opponent (columns) maximises the least cost over the agent's rows.
                best = linprog([0, 0, -1], A_ub=np.hstack([-stage[s], np.ones((2, 1))]), b_ub=[0, 0],
                               A_eq=[[1, 1, 0]], b_eq=[1], bounds=[(0, 1), (0, 1), (None, None)])  # fmt: skip
                rows[h, s], to_go[s] = best.x[:2], -best.fun
        policy = game.uniform_policy().replace(1, rows / rows.sum(axis=-1, keepdims=True))
        attained = cmdp_slack(game.at(policy).induced_cmdp(0))
        assert attained == pytest.approx(slater_constant(game).per_agent[0], abs=1e-8)


def test_the_slack_of_one_cmdp():
    tables = {"transition": np.ones((1, 1, 2, 1)), "reward": np.zeros((1, 1, 2)), "initial": [1.0], "horizon": 1}
    assert cmdp_slack(CMDP(**tables, costs=np.zeros((0, 1, 1, 2)), thresholds=[])) == np.inf
    assert cmdp_slack(CMDP(**tables, costs=[[[[0.2, 0.7]]]], thresholds=[0.5])) == pytest.approx(0.3)
    # Two constraints that pull apart: half and half is best.
    both = CMDP(**tables, costs=[[[[0.0, 1.0]]], [[[1.0, 0.0]]]], thresholds=[0.75, 0.75])
    assert cmdp_slack(both) == pytest.approx(0.25)


# The table.


def test_the_table_says_what_is_runnable_and_what_is_void():
    game = congestion_game()
    table = bounds_table(known_of(game), slater=slater_constant(game).value, epsilon=0.1, delta=0.1)
    rows = {(row.algorithm, row.version): row for row in table.rows}
    assert len(rows) == len(table.rows) == 10
    assert "void because the Slater constant, -1" in rows[GENERATIVE, CORRECTED].reason
    assert not rows[GENERATIVE, PRINTED].runnable
    assert rows[GENERATIVE, ADAPTIVE].runnable
    unsure = bounds_table(known_of(game), slater=-0.1, exact=False, epsilon=0.1, delta=0.1)
    assert {row.reason for row in unsure.rows if np.isinf(row.samples)} == {
        "a lower bound of the Slater constant is -0.1; nothing follows"
    }
    # With a slack that one is willing to assume. The printed loop takes many dynamic programs, which are run at once.
    assumed = bounds_table(known_of(counter_example()), slater=0.5, epsilon=0.1, delta=0.1)
    rows = {(row.algorithm, row.version): row for row in assumed.rows}
    assert rows[GENERATIVE, PRINTED].programs > 1e9
    assert rows[GENERATIVE, PRINTED].runnable
    assert "samples, 1e+12 are allowed" in rows[SAFE, PRINTED].reason
    slow = bounds_table(known_of(counter_example()), slater=0.5, epsilon=0.1, delta=0.1, allowance=Allowance(1e30, 1e3))
    assert (
        "dynamic programs, 1e+03 are allowed" in {(r.algorithm, r.version): r for r in slow.rows}[SAFE, PRINTED].reason
    )
    assert rows[GENERATIVE, CORRECTED].runnable
    assert dict(rows[GENERATIVE, CORRECTED].constants)["N"] == 0
    poor = bounds_table(
        known_of(counter_example()), slater=0.5, epsilon=0.1, delta=0.1, allowance=Allowance(samples=1e3)
    )
    assert not any(row.runnable for row in poor.rows if row.algorithm == GENERATIVE and row.version != ADAPTIVE)


def test_one_model_for_all_takes_fewer_samples_until_joint_actions_are_too_many():
    """S·ΠA rows once, against S·ΣA rows T times."""
    taken = []
    for agents in (2, 6, 12):
        rows = bounds_table(known_of(crowd(agents)), slater=0.3, epsilon=0.1, delta=0.1).rows
        samples = {row.algorithm: row.samples for row in rows if row.version == CORRECTED}
        taken.append((samples[SHARED], samples[GENERATIVE]))
    assert taken[0][0] < taken[0][1]
    assert taken[2][0] / taken[2][1] > 50 * taken[0][0] / taken[0][1]


@pytest.mark.parametrize("slater", [0.3, -0.1])
def test_the_table_says_how_many_entries_one_model_has_and_algorithm_2_in_each_iteration(slater):
    """The bounds cross where S·ΠA outgrows T·S·ΣA; two steps, of which the last needs no draw."""
    (row,) = (
        row
        for row in bounds_table(known_of(crowd(4)), slater=slater, epsilon=0.1, delta=0.1).rows
        if row.algorithm == SHARED
    )
    told = dict(row.constants)
    assert told["entries"] == 2 * 3**4
    assert told["entries of 2 in each iteration"] == 2 * 3 * 4


def test_the_shared_bound_is_the_rigorous_one_with_joint_rows():
    game = crowd(3)
    known = known_of(game)
    (row,) = (row for row in bounds_table(known, slater=0.3, epsilon=0.1, delta=0.1).rows if row.algorithm == SHARED)
    size = dataclasses.replace(Size.of(known, 0), num_actions=3**3)
    # ε′ = ε/4 is spent on solving the model; b is at most ε′/(4 D_r), which is what binds here: costs are zero.
    reward_weight = float(known.reward_spans[:, 1].max())
    within = 0.025 / (4 * reward_weight)
    asked = {"slater": 0.3, "epsilon": 0.075, "delta": 0.1}
    assert row.samples == rigorous_constants(size, **asked, max_row_error=within).samples
    assert row.samples > rigorous_constants(size, **asked).samples
    assert dict(row.constants)["N"] == np.ceil(2 * np.log(2 * 27 * 2 / 0.1) / within**2)
    assert dict(row.constants)["T"] == np.ceil(4 * known.reward_ranges.sum() / 0.025)
    assert row.programs == 3 * dict(row.constants)["T"]


def test_without_constraints_there_is_no_slack_and_the_range_of_the_potential_counts():
    """The remark after Corollary 1: no ζ, and Φ_max for nH."""
    known = known_of(crowd(3))
    tables = [
        bounds_table(known, slater=slater, epsilon=0.1, delta=0.1, potential_range=spread)
        for slater, spread in ((0.3, None), (-1.0, None), (0.3, 0.5))
    ]
    rows = [{row.version: row for row in table.rows if row.algorithm == UNCONSTRAINED} for table in tables]
    assert rows[0][CORRECTED] == rows[1][CORRECTED]
    scale = known.reward_spans.max()
    assert dict(rows[0][PUBLISHED].constants)["S·ΣA/ε³"] == pytest.approx(2 * 9 * (scale / 0.1) ** 3)
    assert np.isnan(rows[0][PUBLISHED].samples), "the theorem's constant is not known here"
    for each, spread in ((rows[0], known.reward_ranges.sum()), (rows[2], 0.5)):
        constants = dict(each[CORRECTED].constants)
        assert constants["ΔΦ"] == spread
        assert constants["T"] == np.ceil(4 * spread / 0.1)
        # Rows within b = ε/(4 D_r): nothing is left for costs.
        within = 0.025 / known.reward_spans[:, 1].max()
        assert constants["N"] == np.ceil(2 * np.log(2 * 2 * 3 / constants["δ′"]) / within**2)
        entries, episodes = 3 * 2 * 3, 4 * constants["M"] * 2
        assert each[CORRECTED].samples <= constants["T"] * (entries * constants["N"] + episodes)
        assert each[CORRECTED].samples >= constants["T"] * (2 * 3 * constants["N"] + episodes)
    for wrong in (-1.0, 1e9):
        with pytest.raises(CMPGError, match="potential_range is"):
            bounds_table(known, slater=0.3, epsilon=0.1, delta=0.1, potential_range=wrong)


def crowd(agents):
    """Two states, three actions each, two steps that differ."""
    joint = (3,) * agents
    return JointGame(
        transition=np.full((2, 2, *joint, 2), 0.5),
        rewards=np.random.default_rng(0).random((agents, 1, 2, *joint)),
        costs=np.zeros((1, 1, 2, *joint)),
        thresholds=[0.3],
        initial=[1.0, 0.0],
        horizon=2,
    )


def test_rows_as_printed_have_one_scale():
    """A game in other units, with ε in those units, has the same numbers of iterations, episodes and samples."""
    game = grid_world()
    tables = [
        bounds_table(known_of(replace(game, rewards=unit * game.rewards)), slater=0.1, epsilon=0.1 * unit, delta=0.1)
        for unit in (1.0, 1 / 20, 8.0)
    ]
    for rows in zip(*(table.rows for table in tables), strict=True):
        assert [row.samples for row in rows] == pytest.approx([rows[0].samples] * 3, rel=1e-9, nan_ok=True)
        for name in ("T", "M", "δ′", "N", "T of 3", "T of 4", "M of 4"):
            values = [dict(row.constants).get(name, 0.0) for row in rows]
            assert values == pytest.approx([values[0]] * 3, rel=1e-9)
    # T = 4nH/ε with ε/20, as the rewards of the grid world go up to 20.
    row = next(row for row in tables[0].rows if (row.algorithm, row.version) == (GENERATIVE, PRINTED))
    assert dict(row.constants)["T"] == 4 * 2 * 6 * 20 / 0.1


def test_the_margin_of_assumption_2_has_rows_of_its_own():
    known = known_of(counter_example())
    whole, half = (bounds_table(known, slater=0.5, margin=margin, epsilon=0.1, delta=0.1) for margin in (None, 0.25))
    for one, other in zip(whole.rows, half.rows, strict=True):
        if one.algorithm == SAFE:
            assert dict(other.constants)["T of 4"] == pytest.approx(4 * dict(one.constants)["T of 4"])
            assert (dict(one.constants)["c"], dict(other.constants)["c"]) == (0.5, 0.25)
        else:
            assert repr(one) == repr(other)  # numbers that the theory does not give are nan, which equals nothing
    for margin in (0.0, 0.6):
        with pytest.raises(CMPGError, match=f"margin is {margin:g}"):
            bounds_table(known, slater=0.5, margin=margin, epsilon=0.1, delta=0.1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (0.1, 0), (0.1, 1.5)])
def test_the_table_refuses_accuracies_out_of_range(epsilon, delta):
    with pytest.raises(CMPGError, match=r"(epsilon|delta) is"):
        bounds_table(known_of(counter_example()), slater=0.5, epsilon=epsilon, delta=delta)
