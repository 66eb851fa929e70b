"""Plans in detail: how wide a tie is, who wins it, what a compiled plan is told, and what a bound has in it."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from random_cmdps import as_exact, one_state

from cmpg.cmdp import evaluation, planning
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import ChoiceRule, certain_rows, choice_rule, dual_bound, maximise, plan, run_plan


def two_costs(reward=(3.0, 5.0), costs=((1.0, 2.0), (0.5, -4.0)), **time):
    """One state, two actions; the second cost has both signs."""
    return CMDP(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[list(reward)]],
        costs=[[[list(cost)]] for cost in costs],
        thresholds=[1.0, 2.0],
        initial=[1.0],
        **(time or {"horizon": 4}),
    )


def test_certain_rows_have_a_one_where_the_action_is():
    assert certain_rows(np.array([[2, 0], [1, 1]]), 3).tolist() == [[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]]


# --- Rules for ties ---------------------------------------------------------------------------------------------------


def test_where_the_reward_counts_ties_are_as_wide_as_the_scale_and_go_to_what_costs_less():
    cmdp = two_costs()
    rule = choice_rule(cmdp, np.array([0.5, 2.0]))
    assert rule.weights.tolist() == [1.0, -0.5, -2.0]
    assert rule.second.tolist() == [0.0, -1.0, -1.0]
    assert rule.tie == planning.TIE * (5.0 + 0.5 * 2.0 + 2.0 * 4.0)
    assert rule.second_tie == planning.TIE * (2.0 + 4.0)
    assert (rule.relative_tie, rule.rng) == (None, None)


def test_where_it_does_not_ties_are_as_wide_as_rounding_and_go_to_what_is_worth_more():
    cmdp = two_costs()
    rule = choice_rule(cmdp, np.array([0.5, 2.0]), reward_weight=0.0)
    assert rule.weights.tolist() == [0.0, -0.5, -2.0]
    assert rule.second.tolist() == [1.0, 0.0, 0.0]
    assert rule.tie == cmdp.step_rounding * 4 * (0.5 * 2.0 + 2.0 * 4.0)
    assert rule.second_tie == planning.TIE * 5.0


def test_ties_of_costs_are_relative_where_no_cost_that_counts_is_ever_negative():
    signed = two_costs()
    for multipliers, relative in (([1.0, 0.0], True), ([0.0, 0.5], False), ([1.0, 1.0], False)):
        rule = choice_rule(signed, np.array(multipliers), reward_weight=0.0)
        assert rule.relative_tie == (signed.step_rounding if relative else None)


def test_a_process_of_zeros_has_a_scale_of_one():
    nothing = two_costs(reward=(0.0, 0.0), costs=((0.0, 0.0), (0.0, 0.0)))
    assert choice_rule(nothing, np.ones(2)).tie == planning.TIE


def rule_with(*, tie=0.0, second_tie=0.0, relative=None, rng=None):
    return ChoiceRule(np.array([1.0, -1.0]), np.array([0.0, -1.0]), tie, second_tie, rng, relative)


def chosen_by(rule, rewards, costs):
    """What a rule picks in one state, and what that is worth."""
    actions, worth = rule.choose(np.array([rewards, costs], dtype=float), len(rewards))
    return int(actions[0]), worth[:, 0].tolist()


def test_the_largest_weighted_value_wins_and_what_is_within_the_tie_goes_by_the_second_weighting():
    rewards, costs = [9.0, 7.0, 4.5], [5.0, 3.5, 1.0]  # 4, 3.5 and 3.5
    assert chosen_by(rule_with(), rewards, costs) == (0, [9.0, 5.0])
    assert chosen_by(rule_with(tie=0.25), rewards, costs) == (0, [9.0, 5.0])
    assert chosen_by(rule_with(tie=0.5), rewards, costs) == (2, [4.5, 1.0])
    assert chosen_by(rule_with(tie=0.5, second_tie=2.25), rewards, costs) == (2, [4.5, 1.0])
    assert chosen_by(rule_with(tie=0.5, second_tie=2.5), rewards, costs) == (1, [7.0, 3.5])
    assert chosen_by(rule_with(tie=0.5, second_tie=4.0), rewards, costs) == (0, [9.0, 5.0])


def test_a_relative_tie_is_a_share_of_the_best_and_never_wider_than_the_other():
    rewards, costs = [9.0, 7.0, 4.5], [5.0, 3.5, 1.0]
    assert chosen_by(rule_with(tie=0.5, relative=0.125), rewards, costs)[0] == 2  # 0.125 · 4 is just enough
    assert chosen_by(rule_with(tie=0.5, relative=0.1), rewards, costs)[0] == 0
    assert chosen_by(rule_with(tie=0.25, relative=1.0), rewards, costs)[0] == 0
    assert chosen_by(rule_with(tie=9.0, relative=0.125), rewards, costs)[0] == 2


def test_states_are_chosen_for_side_by_side():
    rule = rule_with()
    worth = np.array([[1.0, 2.0, 8.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 2.0, 1.0, 1.0]])  # three states of two actions
    actions, found = rule.choose(worth, 2)
    assert actions.tolist() == [1, 0, 0]
    assert found.tolist() == [[2.0, 8.0, 3.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("size", [(3, 2), (7, 200), (4, 5, 300), (1000, 1), (300, 7)])
def test_the_first_true_of_each_column_is_found_in_small_masks_and_large_ones(size):
    mask = np.random.default_rng(0).random(size) < 0.2
    mask[..., -1, :] = True
    expected = [[column.tolist().index(True) for column in part.T] for part in mask.reshape(-1, *size[-2:])]
    assert planning._first_of_each_column(mask).reshape(-1, size[-1]).tolist() == expected


def test_a_random_one_of_each_column_is_true_and_each_has_its_turn():
    mask = np.array([[True, False, True], [True, True, False], [False, True, True]])
    drawn = np.array([planning._one_of_each_column(mask, np.random.default_rng(seed)) for seed in range(60)])
    assert [set(column.tolist()) for column in drawn.T] == [{0, 1}, {1, 2}, {0, 2}]


# --- Compiled plans ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relative", [None, 0.25])
def test_a_compiled_plan_begins_at_the_last_step_and_is_given_noise_where_it_stops(relative):
    cmdp = two_costs()
    rng = np.random.default_rng(3)
    rule = ChoiceRule(np.array([1.0, -1, -1]), np.array([0.0, -1, -1]), 0.5, 0.75, rng, relative)
    stops, calls = iter([2, 0, -1]), []

    def kernel(weights, second, tie, second_tie, relative_tie, step, chosen, extra, to_go, totals, noise, ask):
        calls.append((step, None if noise is None else noise.shape, ask))
        assert (weights is rule.weights, second is rule.second, tie, second_tie) == (True, True, 0.5, 0.75)
        assert relative_tie == (-1.0 if relative is None else relative)
        assert (to_go.shape, totals.shape, chosen.shape, extra) == ((1, 3), (3,), (4, 1), "before")
        totals[:] = 7.0, 8.0, 9.0
        return next(stops)

    totals = run_plan(kernel, cmdp, rule, np.empty((4, 1), dtype=int), before=("before",))
    assert totals.tolist() == [7.0, 8.0, 9.0]
    assert calls == [(3, None, True), (2, (2, 1), True), (0, (2, 1), True)]
    calls.clear()
    stops = iter([-1])
    run_plan(kernel, cmdp, replace(rule, rng=None), np.empty((4, 1), dtype=int), before=("before",))
    assert calls == [(3, None, False)]


def test_compiled_plans_and_bounds_are_read_as_the_kernels_give_them(monkeypatch):
    cmdp, told = two_costs(), []

    def kernel(process, weights, *rest):
        told.append((process, weights.tolist()))
        rest[4 + 1][:], rest[4 + 3][:] = 1, (6.0, 7.0, 8.0)
        return -1

    def bound(process, weights):
        told.append((process, weights.tolist()))
        return 10.0

    monkeypatch.setattr(planning, "kernels_for", lambda _: (SimpleNamespace(plan=kernel, bound=bound), "process"))
    found = plan(cmdp, np.array([0.5, 2.0]))
    assert (found.value, found.costs.tolist(), found.actions.tolist()) == (6.0, [7.0, 8.0], [[1]] * 4)
    assert dual_bound(cmdp, np.array([0.5, 2.0])) == 10.0 + 0.5 * 1.0 + 2.0 * 2.0
    assert told == [("process", [1.0, -0.5, -2.0])] * 2


# --- Maxima -----------------------------------------------------------------------------------------------------------


def test_a_bound_adds_what_the_thresholds_are_worth():
    cmdp = two_costs()
    # At prices 0.5 and 2 the actions are worth 3 − 0.5 − 1 and 5 − 1 + 8, at each of four steps.
    assert dual_bound(cmdp, np.array([0.5, 2.0])) == 4 * 12.0 + 0.5 + 4.0
    assert dual_bound(one_state([1.0, 2.0], [0.0, 0.0], horizon=3), np.zeros(1)) == 6.0
    assert dual_bound(replace(cmdp, costs=np.zeros((0, 1, 1, 2)), thresholds=np.zeros(0)), np.zeros(0)) == 20.0


@pytest.mark.parametrize("block", [4, 12, 10_000])
def test_steps_may_be_gathered_in_blocks_of_any_size(block, monkeypatch):
    rng = np.random.default_rng(1)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(2), size=(5, 2, 2)),
        reward=rng.random((5, 2, 2)),
        costs=rng.random((1, 5, 2, 2)),
        thresholds=[1.0],
        initial=[0.5, 0.5],
        horizon=5,
    )
    expected = plan(cmdp, np.array([0.7]))
    monkeypatch.setattr(evaluation, "BLOCK", block)
    found = maximise(cmdp, np.array([0.7]))
    assert found.actions().tolist() == expected.actions.tolist()
    assert found.value == pytest.approx(expected.value - 0.7 * expected.costs[0], abs=1e-13)
    assert found.tied(np.inf).all()
    assert found.tied(0.0).sum(axis=2).tolist() == [[1, 1]] * 5
    again = plan(cmdp, np.array([0.7]))
    assert (again.value, again.actions.tolist()) == (expected.value, expected.actions.tolist())


@pytest.mark.parametrize("block", [2, 4])
@pytest.mark.parametrize("horizon", [2, 5])
def test_stationary_tables_and_tables_of_every_step_may_be_in_several_blocks(block, horizon, monkeypatch):
    stationary = two_costs(horizon=horizon)
    steps = replace(
        stationary, reward=np.repeat(stationary.reward, horizon, 0), costs=np.repeat(stationary.costs, horizon, 1)
    )
    monkeypatch.setattr(evaluation, "BLOCK", block)
    for cmdp in (stationary, steps):
        assert maximise(cmdp, np.array([0.5, 2.0])).value == 12.0 * horizon
        assert evaluation.evaluate(cmdp, np.full((horizon, 1, 2), 0.5)).value == 4.0 * horizon
        assert evaluation.evaluate(cmdp, np.full((horizon, 1, 2), 0.5)).costs.tolist() == [
            1.5 * horizon,
            -1.75 * horizon,
        ]


def test_of_several_equals_the_first_is_taken_or_a_random_one():
    best = maximise(one_state([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], horizon=3), np.zeros(1))
    assert best.actions().tolist() == [[0]] * 3
    drawn = {int(a) for seed in range(20) for a in best.actions(np.random.default_rng(seed)).ravel()}
    assert drawn == {0, 1}


# --- Discounted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "tied"), [(1.5, True), (2.5, False), (-2.5, False)])
def test_discounted_actions_are_tied_up_to_twice_the_rounding_of_a_step(share, tied):
    cmdp = one_state([1.0, 1.0], [0.0, 0.0], horizon=None, discount=0.5)
    width = cmdp.step_rounding * float(cmdp.sizes[0])
    cmdp = replace(cmdp, reward=np.array([[[1.0, 1.0 - share * width]]]), trusted=True)
    found = planning._optimal_actions(cmdp, np.array([1.0, 0.0]), np.ones((1, 2), dtype=bool))
    assert found.tolist() == [[share > 0 or tied, share < 0 or tied]]


def test_only_allowed_actions_are_optimal():
    cmdp = one_state([1.0, 5.0, 3.0], [0.0, 0.0, 0.0], horizon=None, discount=0.5)
    found = planning._optimal_actions(cmdp, np.array([1.0, 0.0]), np.array([[True, False, True]]))
    assert found.tolist() == [[False, False, True]]


def chain(**changes):
    """Two states: the first leads on or stays, by choice; staying is worth 1 and leading on 0, to a state worth 3."""
    tables = {
        "transition": [[[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]],
        "reward": [[[1.0, 0.0], [3.0, 3.0]]],
        "costs": [[[[0.0, 0.5], [2.0, 1.0]]]],
        "thresholds": [4.0],
        "initial": [1.0, 0.0],
        "discount": 0.5,
    }
    return CMDP(**tables | changes)


def test_a_discounted_plan_looks_ahead_and_ties_go_to_what_costs_less():
    found = plan(chain(), np.zeros(1))
    assert found.actions.tolist() == [[1, 1]]
    assert (found.value, found.costs.tolist()) == (3.0, [0.5 + 1.0])
    dear = plan(chain(), np.array([1.0]))  # 2 for staying; 0 − 0.5 + (3 − 1) for leading on
    assert dear.actions.tolist() == [[0, 1]]
    for price in (1.0, 1e-3):
        cheapest = plan(chain(), np.array([price]), reward_weight=0.0)
        assert (cheapest.actions[0, 0], cheapest.value, cheapest.costs.tolist()) == (0, 2.0, [0.0])


def stationary_policies(cmdp, allowed):
    for actions in product(*(np.flatnonzero(row).tolist() for row in allowed)):
        yield actions, evaluate_everywhere(cmdp, np.array(actions))


def evaluate_everywhere(cmdp, actions):
    everyone = np.arange(len(actions))
    flow = np.asarray(cmdp.transition)[0][everyone, actions]
    return np.linalg.solve(np.eye(len(actions)) - cmdp.discount * flow, cmdp.reward[0][everyone, actions])


@pytest.mark.parametrize("seed", range(12))
def test_policy_iteration_finds_what_is_best_of_all_that_is_allowed(seed):
    rng = np.random.default_rng(seed)
    cmdp = CMDP(
        transition=rng.dirichlet(0.3 * np.ones(3), size=(1, 3, 3)),
        reward=rng.random((1, 3, 3)) * [[[1.0], [1.0], [9.0]]],
        costs=rng.random((1, 1, 3, 3)),
        thresholds=[0.5],
        initial=rng.dirichlet(np.ones(3)),
        discount=0.9,
    )
    allowed = rng.random((3, 3)) < 0.7
    allowed[:, seed % 3] = True
    best = max(stationary_policies(cmdp, allowed), key=lambda each: each[1].sum())[0]
    assert planning._optimal_actions(cmdp, np.array([1.0, 0.0]), allowed).tolist() == np.eye(3)[list(best)].tolist()
    priced = replace(cmdp, reward=cmdp.reward - 0.7 * cmdp.costs[0], trusted=True)
    most = max(cmdp.initial @ values for _, values in stationary_policies(priced, np.ones((3, 3))))
    assert dual_bound(cmdp, np.array([0.7])) == pytest.approx(most + 0.35, abs=1e-11)


def corridor(length, **more):
    """Staying is worth a little everywhere and much at the end; whoever looks one step ahead only stays."""
    moves = np.zeros((1, length, 3, length))
    for state in range(length):
        moves[0, state, [0, 2], state] = 1.0
        moves[0, state, 1, min(state + 1, length - 1)] = 1.0
    reward = np.tile([0.1, 0.0, 100.0], (1, length, 1))
    reward[0, -1] = 10.0, 0.0, 100.0
    tables = {"costs": np.zeros((0, 1, length, 3)), "thresholds": np.zeros(0), "initial": np.eye(length)[0]}
    return CMDP(transition=moves, reward=reward, discount=0.9, **tables | more)


def test_policy_iteration_goes_on_while_anybody_improves_and_never_looks_at_what_is_forbidden():
    allowed = np.tile([True, True, False], (5, 1))
    found = planning._optimal_actions(corridor(5), np.array([1.0]), allowed)
    assert found.argmax(axis=1).tolist() == [1, 1, 1, 1, 0]
    assert found.sum(axis=1).tolist() == [1] * 5


def test_what_is_cheapest_has_nothing_to_do_with_rewards():
    for reward in ([0.0, 100.0], [100.0, 0.0]):
        cmdp = one_state(reward, [1.0, 0.5], horizon=None, discount=0.5)
        assert plan(cmdp, np.ones(1), reward_weight=0.0).actions.tolist() == [[1]]


def test_as_many_multipliers_are_needed_as_there_are_costs():
    with pytest.raises(ValueError, match="zip"):
        maximise(two_costs(), np.ones(3))
    with pytest.raises(ValueError, match="zip"):
        planning.scalarised_backup(chain(), np.ones(2), np.zeros(2))


def test_a_discounted_bound_holds_whatever_policy_iteration_ends_with(monkeypatch):
    cmdp, price = chain(), np.array([0.25])
    # Staying for ever is worth 2; by one step of leading on, v(0) rises from 2 to 0 − 1/8 + v(1)/2 with v(1) = 5.5.
    assert dual_bound(cmdp, price) == pytest.approx(-0.125 + 5.5 / 2 + 1.0, abs=1e-12)
    monkeypatch.setattr(planning, "_optimal_actions", lambda *_: np.array([[True, False], [False, True]]))
    assert dual_bound(cmdp, price) == pytest.approx(2.0 + (2.625 - 2.0) / (1 - 0.5) + 1.0, abs=1e-12)
    monkeypatch.setattr(planning, "_optimal_actions", lambda *_: np.array([[False, True], [False, True]]))
    assert dual_bound(cmdp, price) == pytest.approx(2.625 + 1.0, abs=1e-12)


def test_a_discounted_bound_in_fractions_is_exact():
    bound = dual_bound(as_exact(chain()), np.array([Fraction(1, 3)], dtype=object))
    assert bound == Fraction(-1, 6) + (6 - Fraction(2, 3)) / 2 + Fraction(4, 3)
    assert isinstance(bound, Fraction)


# --- Walkers ----------------------------------------------------------------------------------------------------------


def test_what_kernels_know_more_of_is_planned_by_them_where_rewards_count_and_ties_do_not(monkeypatch):
    told = []

    def walker_plan(walker, multiplier, tie, second_tie, chosen, totals):
        told.append((walker, multiplier, tie, second_tie, chosen.shape))
        chosen[:], totals[:] = 1, (6.0, 7.0)

    def plain(*_):
        raise LookupError("the usual kernel")

    kernels = SimpleNamespace(walker_plan=walker_plan, plan=plain)
    monkeypatch.setattr(planning, "kernels_for", lambda _: (kernels, SimpleNamespace(plan=None)))
    cmdp = one_state([1.0, 2.0], [0.5, 0.25], horizon=3)
    cmdp.with_walker("walker")
    found = plan(cmdp, np.array([0.75]))
    rule = choice_rule(cmdp, np.array([0.75]))
    assert told == [("walker", 0.75, rule.tie, rule.second_tie, (3, 1))]
    assert (found.value, found.costs.tolist(), found.actions.tolist()) == (6.0, [7.0], [[1]] * 3)
    for options in ({"reward_weight": 0.0}, {"rng": np.random.default_rng(0)}):
        with pytest.raises(LookupError):
            plan(cmdp, np.array([0.75]), **options)
    monkeypatch.setattr(planning, "kernels_for", lambda _: None)
    assert plan(cmdp, np.array([0.75])).actions.tolist() == [[1]] * 3
    assert len(told) == 1


def test_values_that_decide_ties_are_those_of_all_that_is_tied():
    """Of three actions of the same worth the second weighting takes the cheapest; at the same cost the first."""
    for costs, chosen in (([3.0, 1.0, 2.0], 1), ([2.0, 3.0, 1.0], 2), ([1.0, 1.0, 2.0], 0)):
        for time in ({"horizon": 2}, {"horizon": None, "discount": 0.5}):
            cmdp = one_state([4.0, 4.0, 4.0], costs, **time)
            found = plan(cmdp, np.zeros(1))
            assert set(found.actions.ravel().tolist()) == {chosen}
            assert found.costs[0] == pytest.approx(2 * min(costs), abs=1e-12)


def test_tables_of_certainty_have_a_one_in_each_row():
    table = planning.certain_rows(np.array([[2, 0], [1, 2]]), 3)
    assert table.tolist() == [[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 0, 1]]]
    assert not table.flags.writeable
