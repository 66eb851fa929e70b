"""The parts of the script that a page hands out, one by one, beside numbers that are worked out by hand."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from cmpg.report import independent_check as script


def refused(function, *given):
    with pytest.raises(SystemExit) as ending:
        function(*given)
    return ending.value.code


# --- Numbers that are usable ------------------------------------------------------------------------------------------


def test_nothing_is_required_beyond_what_holds():
    script.require(True, "anything")
    script.require([0], "anything")
    assert refused(script.require, False, "bread") == "not proved: bread is required"
    assert refused(script.require, [], "bread") == "not proved: bread is required"


@pytest.mark.parametrize("table", [np.zeros((2, 1)), np.ones((1, 2), dtype=bool), np.array([[1.0, np.nan]])])
def test_tables_have_their_shape_and_finite_numbers(table):
    for fine in (np.zeros((1, 2)), np.zeros((1, 2), dtype=int), np.zeros((1, 2), dtype=np.uint8)):
        script.shaped("table", fine, (1, 2))
    assert refused(script.shaped, "table", table, (1, 2)) == (
        "not proved: table with finite numbers of shape [1, 2] is required"
    )


def test_rows_sum_to_one_within_a_billionth_and_are_nowhere_negative():
    for row in ([0.5, 0.5], [1.0, 0.0], [0.5, 0.5 + 0.9e-9], [0.5, 0.5 - 0.9e-9]):
        script.distributions("row", np.array(row), (2,))
    for rows in ([[0.5, 0.5], [0.5, 0.5 + 1.1e-9]], [[0.5, 0.5 - 1.1e-9], [0.5, 0.5]], [[1.1, -0.1], [1.0, 0.0]]):
        assert "row with rows that sum to 1" in refused(script.distributions, "row", np.array(rows), (2, 2))


def test_the_largest_entries_of_each_step_are_added_up():
    largest = script.ROUNDING / (4 * 2.0**-53)
    one, two = np.zeros((2, 2, 3)), np.zeros((1, 2, 3))
    one[0, 0, 1], one[1, 1, 2], two[0, 1] = -largest / 2, largest / 2, 1.0
    script.small(one, two)
    script.small(two, one)
    script.small(np.zeros((0, 2, 3)), two)
    one[0, 0, 1] -= largest * 1e-6
    for tables in ((one, two), (two, one)):
        assert "a game with smaller numbers" in refused(script.small, *tables)


def test_a_stationary_table_stands_for_every_step():
    table = np.arange(6.0).reshape(2, 1, 3)
    assert script.stretch(table, 4).shape == (2, 4, 3)
    assert (script.stretch(table, 4) == table).all()
    steps = np.arange(8.0).reshape(2, 4)
    assert script.stretch(steps, 4).tolist() == steps.tolist()
    for wrong in (np.zeros((2, 3)), np.zeros((2, 0)), np.zeros(4)):
        assert "a table with one step, or all of them" in refused(script.stretch, wrong, 4)


def test_matrices_are_read_row_by_row_and_repeated_entries_are_added():
    arrays = [np.array([0, 2, 2, 5]), np.array([0, 2, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])]
    assert script.dense(arrays, 3).tolist() == [[1.0, 0.0, 2.0], [0.0] * 3, [5.0, 7.0, 0.0]]
    for place, wrong, told in (
        (0, [0, 2, 2, 4], "a CSR matrix"),
        (0, [1, 2, 2, 5], "a CSR matrix"),
        (0, [0, 3, 2, 5], "a CSR matrix"),
        (1, [0, 3, 1, 1, 0], "columns that exist"),
        (1, [0, -1, 1, 1, 0], "columns that exist"),
        (2, [1.0] * 4, "columns that exist"),
        (2, [1.0] * 6, "columns that exist"),
    ):
        changed = [np.array(wrong) if i == place else each for i, each in enumerate(arrays)]
        assert told in refused(script.dense, changed, 3)


def test_numbers_become_the_fractions_that_they_are():
    found = script.exactly(np.array([[0.1, 2.0]]))
    assert found.tolist() == [[Fraction(0.1), Fraction(2)]]
    assert found.shape == (1, 2)


def test_actions_are_rows_of_certainty_and_some_rows_mix():
    claim = {"num_actions": np.array([9, 3]), "agent_1_actions": np.array([[2, 0], [1, 2]])}
    assert script.table_of(claim, 1).argmax(axis=-1).tolist() == [[2, 0], [1, 2]]
    assert script.table_of(claim, 1).sum() == 4
    claim |= {"agent_1_mixed": np.array([[1, 0]]), "agent_1_rows": np.array([[0.5, 0.25, 0.25]])}
    assert script.table_of(claim, 1)[1, 0].tolist() == [0.5, 0.25, 0.25]
    assert script.table_of(claim, 1)[1, 1].tolist() == [0.0, 0.0, 1.0]
    for field, wrong in (
        ("agent_1_actions", [[3, 0], [1, 2]]),
        ("agent_1_actions", [[-1, 0], [1, 2]]),
        ("agent_1_actions", [[1.0, 0.0], [1.0, 2.0]]),
        ("agent_1_mixed", [[2, 0]]),
        ("agent_1_mixed", [[0, 2]]),
        ("agent_1_mixed", [[-1, 0]]),
    ):
        assert "that exist" in refused(script.table_of, claim | {field: np.array(wrong)}, 1)
    whole = np.ones((1, 1, 1))
    assert script.table_of({"agent_0": whole}, 0) is whole


# --- Backwards and forwards -------------------------------------------------------------------------------------------


def world(seed=0, *, horizon=3, states=2, actions=2, constraints=2):
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.ones(states), size=(horizon, states, actions))
    moves[0, 0, 0] = np.eye(states)[0]
    tables = rng.integers(-4, 5, size=(1 + constraints, horizon, states, actions)) / 4
    return [moves, tables[0], tables[1:], np.full(states, 1 / states)]


def paths(problem, table):
    """Every path of a policy with its probability."""
    moves, initial = problem[0], problem[3]
    horizon, states, actions = table.shape
    for way in product(product(range(states), range(actions)), repeat=horizon):
        chance = initial[way[0][0]]
        for h, (s, a) in enumerate(way):
            chance *= table[h, s, a] * (moves[h, s, a, way[h + 1][0]] if h + 1 < horizon else 1.0)
        yield way, chance


def by_paths(problem, table, multipliers):
    totals = np.zeros(1 + len(problem[2]))
    for way, chance in paths(problem, table):
        for h, (s, a) in enumerate(way):
            costs = problem[2][:, h, s, a]
            totals += chance * np.array([problem[1][h, s, a] - multipliers @ costs, *costs])
    return totals


def test_backwards_is_what_all_paths_add_up_to():
    problem, rng = world(), np.random.default_rng(9)
    for multipliers in (np.zeros(2), np.array([0.5, 2.0])):
        table = rng.dirichlet(np.ones(2), size=(3, 2))
        assert script.backward(problem, table, multipliers) == pytest.approx(by_paths(problem, table, multipliers))


def test_backwards_without_a_policy_is_the_best_of_all_that_is_allowed():
    problem, multipliers = world(1, horizon=2), np.array([0.5, 0.25])
    plans = [np.eye(2)[np.reshape(each, (2, 2))] for each in product(range(2), repeat=4)]
    best = max(by_paths(problem, table, multipliers)[0] for table in plans)
    assert script.backward(problem, None, multipliers)[0] == pytest.approx(best)
    closed = np.zeros((2, 2, 2), dtype=bool)
    closed[0, 1, 0] = closed[1, 0, 1] = True
    allowed = [table for table in plans if not (closed & (table > 0)).any()]
    best = max(by_paths(problem, table, multipliers)[0] for table in allowed)
    assert script.backward(problem, None, multipliers, closed)[0] == pytest.approx(best)
    assert len(allowed) == 4


def test_visits_are_the_probabilities_of_paths():
    problem = world(2)
    table = np.random.default_rng(3).dirichlet(np.ones(2), size=(3, 2))
    expected = np.zeros((3, 2, 2))
    for way, chance in paths(problem, table):
        for h, (s, a) in enumerate(way):
            expected[h, s, a] += chance
    assert script.forward(problem, table) == pytest.approx(expected)


def test_what_may_be_reached_is_what_some_path_comes_to():
    moves = np.zeros((3, 3, 2, 3), dtype=bool)
    moves[:, 0, 0, 0] = moves[:, 0, 1, 1] = moves[:, 1, :, 2] = moves[:, 2, :, 2] = True
    table = np.zeros((3, 3, 2))
    table[..., 0] = 1.0
    table[1, 0] = [0.5, 0.5]
    found = script.reached(np.array([1.0, 0.0, 0.0]), moves, table)
    assert [np.argwhere(step).tolist() for step in found] == [[[0, 0]], [[0, 0], [0, 1]], [[0, 0], [1, 0]]]
    late = script.reached(np.array([0.0, 1e-300, 0.0]), moves, table)
    assert [np.argwhere(step).tolist() for step in late] == [[[1, 0]], [[2, 0]], [[2, 0]]]


def test_what_leads_to_where_all_is_forbidden_is_forbidden():
    moves = np.zeros((3, 2, 2, 2), dtype=bool)
    moves[:, :, 0, 0] = moves[:, :, 1, 1] = True
    moves[0, 0, 0, 1] = True  # may lead to either state
    closed = np.zeros((3, 2, 2), dtype=bool)
    closed[2, 1] = closed[1, 1, 0] = True
    # Action 1 leads to state 1, in which all is forbidden at the end; before it, so is action 0 there.
    expected = [[[True, True], [False, True]], [[False, True], [True, True]], [[False, False], [True, True]]]
    assert script.closure(closed.copy(), moves).tolist() == expected
    none = np.zeros((3, 2, 2), dtype=bool)
    assert not script.closure(none, moves).any()


def budget(least, most, left, *, initial=(1.0, 0.0)):
    """What is forbidden of two actions, the second of which may lead to the second state."""
    moves = np.zeros((2, 2, 2, 2), dtype=bool)
    moves[:, :, 0, 0] = moves[:, :, 1, :] = True
    tables = [script.exactly(np.array(each, dtype=float)) for each in (least, most)]
    return script.forbidden(np.array(initial), moves, *tables, Fraction(left))


def test_what_may_cost_more_than_the_least_is_forbidden():
    last = [[1.0, 2.0], [3.0, 5.0]]
    costs = [[[0.0, 0.0], [0.0, 0.0]], last]
    closed = budget(costs, costs, 1)
    # At the end the dearer action; before it what may lead to the state in which 3 is the least.
    assert closed.tolist() == [[[False, True], [False, True]], [[False, True], [False, True]]]
    for left in (0.5, 2):
        assert "nothing left of a budget" in refused(budget, costs, costs, left)
    flat = [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 2.0]]]
    assert budget(flat, flat, 1).tolist() == [[[False, False], [False, False]], [[False, False], [False, True]]]
    maybe = [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.25], [1.0, 2.0]]]
    assert budget(flat, maybe, 1).tolist() == [[[False, False], [False, False]], [[False, True], [False, True]]]
    even = budget(costs, costs, 1, initial=(0.5, 0.5))
    assert even.tolist() == closed.tolist()
    signed = [[[0.0, -1.0], [0.0, 0.0]], [[-1.0, -1.0], [-1.0, -1.0]]]
    assert budget(signed, signed, -2).tolist() == [[[True, False], [False, False]], [[False, False], [False, False]]]


def test_how_many_use_a_resource_is_a_sum_of_coins():
    used = [np.array([[0.5, 0.0]]), np.array([[0.25, 1.0]]), np.array([[1.0, 0.5]])]
    found = script.probabilities(used)
    assert found.shape == (4, 1, 2)
    assert found[:, 0, 0].tolist() == [0.0, 0.375, 0.5, 0.125]
    assert found[:, 0, 1].tolist() == [0.0, 0.5, 0.5, 0.0]
    assert script.probabilities([]).tolist() == [[[1.0]]]


# --- Problems of one agent --------------------------------------------------------------------------------------------


def joint(seed=0, *, horizon=2, steps=2):
    rng = np.random.default_rng(seed)
    choices = (2, 3, 2)
    return {
        "rewards": rng.integers(-4, 5, size=(3, steps, 2, *choices)) / 4,
        "costs": rng.integers(-4, 5, size=(2, steps, 2, *choices)) / 4,
        "transition": rng.dirichlet(np.ones(2), size=(steps, 2, *choices)),
        "initial": np.array([0.25, 0.75]),
    }, [rng.dirichlet(np.ones(count), size=(horizon, 2)) for count in choices]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_joint_game_is_averaged_over_what_the_others_play(steps):
    game, policy = joint(steps=steps)
    limits = np.array([1.0, 2.0])
    for i, (problem, costs, others, _) in enumerate(script.joint_problems(game, policy, limits)):
        rest = [j for j in range(3) if j != i]
        for h, s, own in product(range(2), range(2), range(policy[i].shape[2])):
            moves, reward, paid = np.zeros(2), 0.0, np.zeros(2)
            for played in product(*(range(policy[j].shape[2]) for j in rest)):
                actions = list(played)
                actions.insert(i, own)
                chance = np.prod([policy[j][h, s, a] for j, a in zip(rest, played, strict=True)])
                place = (min(h, steps - 1), s, *actions)
                moves += chance * game["transition"][place]
                reward += chance * game["rewards"][(i, *place)]
                paid += chance * game["costs"][(slice(None), *place)]
            assert problem[0][h, s, own] == pytest.approx(moves)
            assert problem[1][h, s, own] == pytest.approx(reward)
            assert problem[2][:, h, s, own] == pytest.approx(paid)
        assert costs == pytest.approx(by_paths(problem, policy[i], np.zeros(2))[1:])
        assert others.tolist() == [0.0, 0.0]
        assert problem[3] is game["initial"]
    assert i == 2


def test_what_is_possible_in_a_joint_game_is_what_others_may_play():
    game, policy = joint(4)
    policy[1][0, 0] = [0.0, 1.0, 0.0]
    policy[2][1, 1] = [1.0, 0.0]
    game["transition"][0, 0, 0, 1] = [1.0, 0.0]
    problems = list(script.joint_problems(game, policy, np.array([0.5, -0.25])))
    for i in range(3):
        rest = [j for j in range(3) if j != i]
        can, least, most, left = problems[i][3](1)
        assert left == Fraction(-1, 4)
        for h, s, own in product(range(2), range(2), range(policy[i].shape[2])):
            costs, leads = [], np.zeros(2, dtype=bool)
            for played in product(*(range(policy[j].shape[2]) for j in rest)):
                if all(policy[j][h, s, a] > 0 for j, a in zip(rest, played, strict=True)):
                    actions = list(played)
                    actions.insert(i, own)
                    costs.append(game["costs"][(1, h, s, *actions)])
                    leads |= game["transition"][(h, s, *actions)] > 0
            assert (least[h, s, own], most[h, s, own]) == (Fraction(min(costs)), Fraction(max(costs)))
            assert can[h, s, own].tolist() == leads.tolist()


def local(seed=0, *, horizon=2):
    """Three agents of two states and two actions at two resources; agent 2 is like agent 1 but for its reward."""
    rng = np.random.default_rng(seed)
    game = {
        "num_actions": np.array([2, 2, 2]),
        "like": np.array([0, 1, 1]),
        "delay": rng.integers(0, 5, size=(horizon, 2, 4)) / 4,
        "load_cost": rng.integers(-4, 5, size=(1, horizon, 2, 4)) / 4,
        "reward_2": rng.integers(-4, 5, size=(horizon, 2, 2)) / 4,
    }
    for i in range(2):
        game |= {
            f"transition_{i}_indptr": np.arange(0, 2 * 4 * horizon + 1, 2),
            f"transition_{i}_indices": np.tile([0, 1], 4 * horizon),
            f"transition_{i}_data": rng.dirichlet(np.ones(2), size=4 * horizon).ravel(),
            f"use_{i}_indptr": np.arange(4 * horizon + 1),
            f"use_{i}_indices": rng.integers(0, 2, size=4 * horizon),
            f"reward_{i}": rng.integers(-4, 5, size=(horizon, 2, 2)) / 4,
            f"cost_{i}": rng.integers(-4, 5, size=(1, horizon, 2, 2)) / 4,
        }
    game |= {f"initial_{i}": np.array([(i + 1) / 4, (3 - i) / 4]) for i in range(3)}
    return game, [rng.dirichlet(np.ones(2), size=(horizon, 2)) for _ in range(3)]


def plain(game, i, horizon=2):
    """The tables of one agent, read without the script."""
    kind = 1 if i == 2 else i
    moves = game[f"transition_{kind}_data"].reshape(horizon, 2, 2, 2)
    uses = np.eye(2)[game[f"use_{kind}_indices"]].reshape(horizon, 2, 2, 2)
    return moves, uses, game[f"reward_{i}"], game[f"cost_{kind}"], game[f"initial_{i}"]


def test_a_local_game_charges_delays_and_what_a_user_adds():
    game, policy = local()
    tables = [plain(game, i) for i in range(3)]
    used = []
    for i in range(3):
        moves, uses, _, _, initial = tables[i]
        visits = script.forward([moves, None, None, initial], policy[i])
        used.append((visits[..., None] * uses).sum(axis=(1, 2)))
    problems = list(script.local_problems(game, policy, np.array([1.0])))
    assert len(problems) == 3
    total = np.zeros(1)
    for h, e in product(range(2), range(2)):
        for users in product((0, 1), repeat=3):
            chance = np.prod([used[i][h, e] if x else 1 - used[i][h, e] for i, x in enumerate(users)])
            total += chance * game["load_cost"][:, h, e, sum(users)]
    private = [by_paths([t[0], t[2], t[3], t[4]], policy[i], np.zeros(1))[1:] for i, t in enumerate(tables)]
    for i, (problem, costs, others, _) in enumerate(problems):
        moves, uses, reward, own, initial = tables[i]
        rest = [j for j in range(3) if j != i]
        without = sum(private[j] for j in rest)
        meets, adds = np.zeros((2, 2)), np.zeros((2, 2))
        for h, e in product(range(2), range(2)):
            for users in product((0, 1), repeat=2):
                chance = np.prod([used[j][h, e] if x else 1 - used[j][h, e] for j, x in zip(rest, users, strict=True)])
                n = sum(users)
                meets[h, e] += chance * game["delay"][h, e, n + 1]
                adds[h, e] += chance * (game["load_cost"][0, h, e, n + 1] - game["load_cost"][0, h, e, n])
                without = without + chance * game["load_cost"][:, h, e, n]
        assert others == pytest.approx(without)
        assert costs == pytest.approx(total + sum(private))
        assert problem[0] == pytest.approx(moves)
        for h in range(2):
            assert problem[1][h] == pytest.approx(reward[h] - uses[h] @ meets[h])
            assert problem[2][0, h] == pytest.approx(own[0, h] + uses[h] @ adds[h])
        assert problem[3].tolist() == initial.tolist()


def certain_local(loads, costs, *, plays=(1, 0, 1)):
    """One step, one state; action 1 uses the one resource, and everybody plays for sure."""
    game = {
        "num_actions": np.array([2, 2, 2]),
        "like": np.array([0, 0, 0]),
        "delay": np.zeros((1, 1, 4)),
        "load_cost": np.array([[[loads]]], dtype=float),
        "transition_0_indptr": np.arange(3),
        "transition_0_indices": np.zeros(2, dtype=int),
        "transition_0_data": np.ones(2),
        "use_0_indptr": np.array([0, 0, 1]),
        "use_0_indices": np.array([0]),
        "reward_0": np.zeros((1, 1, 2)),
        "cost_0": np.array([[[costs]]], dtype=float),
    } | {f"initial_{i}": np.ones(1) for i in range(3)}
    return game, [np.array([[[1.0 - each, float(each)]]]) for each in plays]


def test_what_is_left_of_a_hard_budget_is_what_others_do_not_spend_for_sure():
    game, policy = certain_local([0.5, 1.0, 4.0, 9.0], [0.25, 0.125])
    # Agents 1 and 2 spend ¼ and ⅛ themselves, and one of them uses the resource: a load of 1 costs 1.
    moves, least, most, left = next(script.local_problems(game, policy, np.array([7.0])))[3](0)
    assert left == 7 - Fraction(1, 4) - Fraction(1, 8) - 1
    assert least.ravel().tolist() == most.ravel().tolist() == [Fraction(1, 4), Fraction(1, 8) + 3]
    assert moves.all()
    policy[1][0, 0] = [0.5, 0.5]
    problems = list(script.local_problems(game, policy, np.array([7.0])))
    told = "others who spend a hard budget whatever happens"
    assert told in refused(problems[0][3], 0)
    even, policy = certain_local([0.5, 1.0, 1.0, 9.0], [0.25, 0.25])
    policy[1][0, 0] = [0.5, 0.5]
    _, least, most, left = next(script.local_problems(even, policy, np.array([7.0])))[3](0)
    # One or two others use it, which costs 1 either way; one more makes it 1 or 9.
    assert left == 7 - Fraction(1, 2) - 1
    assert least.ravel().tolist() == [Fraction(1, 4), Fraction(1, 4)]
    assert most.ravel().tolist() == [Fraction(1, 4), Fraction(1, 4) + 8]


def test_likeness_goes_from_one_agent_to_the_next_and_costs_may_be_missing():
    game, _ = certain_local([0.0] * 4, [0.5, 0.25])
    game["like"] = np.array([0, 0, 1])
    game["reward_1"] = np.array([[[3.0, 4.0]]])
    moves, reward, costs, initial, uses = script.own_world(game, 2, (2, 1, 2), 1)
    assert reward.tolist() == [[[3.0, 4.0]]] * 2
    assert costs.tolist() == [[[[0.5, 0.25]]] * 2]
    assert uses.tolist() == [[[[0.0], [1.0]]]] * 2
    assert (moves.shape, initial.tolist()) == ((2, 1, 2, 1), [1.0])
    assert script.own_world(game, 0, (2, 1, 2), 1)[1].tolist() == [[[0.0, 0.0]]] * 2
    del game["cost_0"]
    assert script.own_world(game, 2, (2, 1, 2), 3)[2].tolist() == np.zeros((3, 2, 1, 2)).tolist()


# --- What is easily left out ------------------------------------------------------------------------------------------


def test_many_steps_of_nothing_are_small():
    script.small(np.zeros((1, 3_000_000, 1)))
    script.small(np.full((1, 2_000_000, 1), 1.0))
    assert "smaller numbers" in refused(script.small, np.full((1, 3_000_000, 1), 1.0))


def test_load_costs_count_once_for_every_resource():
    game, policy = local()
    largest = script.ROUNDING / (4 * 2.0**-53)
    for each, fits in ((0.24, True), (0.26, False)):  # at two resources, in each of two steps
        loads = game["load_cost"].copy()
        loads[0, :, 0, 3] = each * largest
        problems = script.local_problems(game | {"load_cost": loads}, policy, np.array([1.0]))
        if fits:
            next(problems)
        else:
            assert "smaller numbers" in refused(next, problems)


def test_initial_probabilities_that_do_not_quite_sum_to_one_leave_what_they_leave():
    """Ten tenths are a little more than one; what is left is compared at their own sum."""
    initial = np.full(10, 0.1)
    assert script.exactly(initial).sum() != 1
    moves = np.ones((1, 10, 2, 10), dtype=bool)
    costs = script.exactly(np.tile([3.0, 4.0], (1, 10, 1)))
    closed = script.forbidden(initial, moves, costs, costs, Fraction(3))
    assert closed.tolist() == [[[False, True]] * 10]
    for left in (Fraction(2), Fraction(4), Fraction(3) * script.exactly(initial).sum()):
        assert "nothing left of a budget" in refused(script.forbidden, initial, moves, costs, costs, left)


def test_what_is_ahead_is_the_least_and_the_most_of_where_it_may_lead():
    """Two steps: the first action leads to either state, the second to the second one, where 5 or 7 are to be paid."""
    moves = np.zeros((2, 2, 2, 2), dtype=bool)
    moves[0, :, 0, :] = moves[0, :, 1, 1] = moves[1, :, :, 0] = True
    for first, left, expected in (
        # 2 + (3 or 5) beside 0 + 5: the least that is sure is 5, and the first action may cost 7.
        ([2.0, 0.0], 5, [True, False]),
        # 0 + (3 or 5) is at least 3, but may be 5, as the second one is: nothing is left at 3 alone.
        ([0.0, 0.0], 3, [True, True]),
    ):
        least = np.array([[first, first], [[3.0, 4.0], [5.0, 7.0]]])
        closed = script.forbidden(
            np.array([1.0, 0.0]), moves, script.exactly(least), script.exactly(least), Fraction(left)
        )
        assert closed[0, 0].tolist() == expected
        assert closed[1].tolist() == [[False, True], [False, True]]


def test_agents_with_tables_of_every_step_and_of_one_are_read_alike():
    game, policy = certain_local([0.0, 1.0, 3.0, 6.0], [0.5, 0.25])
    two = [np.repeat(table, 2, axis=0) for table in policy]
    stationary = list(script.local_problems(game, two, np.array([9.0])))
    steps = game | {
        "delay": np.repeat(game["delay"], 2, axis=0),
        "load_cost": np.repeat(game["load_cost"], 2, axis=1),
        "reward_0": np.repeat(game["reward_0"], 2, axis=0),
        "cost_0": np.repeat(game["cost_0"], 2, axis=1),
        "transition_0_indptr": np.arange(5),
        "transition_0_indices": np.zeros(4, dtype=int),
        "transition_0_data": np.ones(4),
        "use_0_indptr": np.array([0, 0, 1, 1, 2]),
        "use_0_indices": np.array([0, 0]),
    }
    for one, other in zip(stationary, script.local_problems(steps, two, np.array([9.0])), strict=True):
        for left, right in zip(one[0], other[0], strict=True):
            assert left.tolist() == right.tolist()
        assert (one[1].tolist(), one[2].tolist()) == (other[1].tolist(), other[2].tolist())
        assert [np.asarray(each).tolist() for each in one[3](0)[1:3]] == [
            np.asarray(each).tolist() for each in other[3](0)[1:3]
        ]
        assert one[3](0)[3] == other[3](0)[3]
    # Agent 1 stays away: each step costs ¼ + ½ + ¼ of its own, and a load of 2 costs 3.
    assert stationary[0][1].tolist() == [2 * (0.25 + 0.5 + 0.25 + 3.0)]
    assert stationary[1][2].tolist() == [2 * (0.25 + 0.25 + 3.0)]


def test_prices_are_taken_off_rewards_and_multiplied_by_what_is_left(tmp_path, monkeypatch, capsys):
    import sys

    tables = {
        "format": "cmpg-game",
        "form": "joint",
        "horizon": 1,
        "initial": [1.0],
        "transition": [[[[1.0], [1.0], [1.0]]]],
        "rewards": [[[[0.0, 3.0, 4.0]]]],
        "costs": [[[[0.0, 1.0, 4.0]]], [[[0.0, 0.0, 1.0]]]],
        "thresholds": [2.0, 0.5],
    }
    claim = {"format": "cmpg-policy", "agent_0": [[[0.0, 1.0, 0.0]]], "multipliers": [[0.5, 1.0]]}
    for name, fields in (("game", tables), ("policy", claim)):
        np.savez(tmp_path / f"{name}.npz", **{each: np.asarray(value) for each, value in fields.items()})
    # λ·α = 1.5, and the best of 0, 3 − ½ and 4 − 2 − 1: the bound is 4, the value 3.
    for epsilon, code in (("1.0", 0), ("0.999", 1)):
        monkeypatch.setattr(sys, "argv", ["check", str(tmp_path / "game.npz"), str(tmp_path / "policy.npz"), epsilon])
        with pytest.raises(SystemExit) as ending:
            script.main()
        assert ending.value.code == code
        assert "agent 0: value 3, gains at most 1\n" in capsys.readouterr().out


def test_others_who_spend_by_chance_of_their_own_leave_no_hard_budget():
    game, policy = certain_local([0.5] * 4, [0.25, 0.125])
    policy[1][0, 0] = [0.5, 0.5]
    problems = list(script.local_problems(game, policy, np.array([7.0])))
    for agent in (0, 2):
        assert "others who spend a hard budget whatever happens" in refused(problems[agent][3], 0)
    # Whoever asks may mix itself.
    assert problems[1][3](0)[3] == 7 - Fraction(1, 8) - Fraction(1, 8) - Fraction(1, 2)
