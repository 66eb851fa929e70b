"""Plans and dual bounds, against enumeration, exact arithmetic and value iteration."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cmdps import cmdps, dense_transition, one_state, random_policy

from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.model import CMDP, drop_broadcast
from cmpg.cmdp.planning import (
    dual_bound,
    greedy_policy,
    maximise,
    plan,
    scalarised_backup,
)

SEEDS = st.integers(0, 2**32 - 1)


def multipliers_for(cmdp, seed):
    """Prices of the order of rewards over costs; some of them zero."""
    rng = np.random.default_rng(seed)
    scale = cmdp.step_sizes[0] / np.maximum(cmdp.step_sizes[1:], 1e-300)
    return scale * rng.integers(0, 4, size=cmdp.num_constraints) * rng.random(cmdp.num_constraints)


def all_plans(cmdp):
    for actions in product(range(cmdp.num_actions), repeat=cmdp.num_steps * cmdp.num_states):
        yield np.eye(cmdp.num_actions)[np.reshape(actions, cmdp.policy_shape[:2])]


def lagrangian(cmdp, policy, multipliers):
    judged = evaluate(cmdp, policy)
    return judged.value - float(multipliers @ judged.costs)


# --- Optimality -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(max_states=2, max_actions=3, max_horizon=3, constraints=(0, 2)), seed=SEEDS)
def test_a_plan_is_best_among_all_deterministic_policies(cmdp, seed):
    multipliers = multipliers_for(cmdp, seed)
    best = max(lagrangian(cmdp, policy, multipliers) for policy in all_plans(cmdp))
    scale = float(cmdp.sizes[0] + multipliers @ cmdp.sizes[1:])
    found = plan(cmdp, multipliers)
    assert found.value - multipliers @ found.costs == pytest.approx(best, abs=1e-11 * scale)
    if cmdp.num_constraints:
        least = min(float(np.ones(len(multipliers)) @ evaluate(cmdp, policy).costs) for policy in all_plans(cmdp))
        cheapest = plan(cmdp, np.ones(len(multipliers)), reward_weight=0.0)
        assert cheapest.costs.sum() == pytest.approx(least, abs=1e-11 * float(cmdp.sizes[1:].sum()))


@settings(deadline=None, max_examples=30)
@given(cmdp=cmdps(), seed=SEEDS, random_ties=st.booleans())
def test_a_plan_has_the_value_and_the_costs_that_it_claims(cmdp, seed, random_ties):
    rng = np.random.default_rng(seed) if random_ties else None
    found = plan(cmdp, multipliers_for(cmdp, seed), rng=rng)
    judged = evaluate(cmdp, found.policy(cmdp.num_actions))
    assert found.actions.shape == cmdp.policy_shape[:2]
    assert found.value == pytest.approx(judged.value, abs=1e-11 * float(cmdp.sizes[0]))
    assert found.costs == pytest.approx(judged.costs, abs=1e-11 * float(cmdp.sizes.max()))


@settings(deadline=None, max_examples=30)
@given(cmdp=cmdps(), seed=SEEDS)
def test_the_dual_bound_exceeds_every_feasible_value(cmdp, seed):
    """Also: every policy's Lagrangian, feasible or not, and a plan for the same multipliers attains it."""
    multipliers = multipliers_for(cmdp, seed)
    bound = dual_bound(cmdp, multipliers)
    scale = float(cmdp.sizes[0] + multipliers @ (cmdp.sizes[1:] + np.abs(cmdp.thresholds)))
    rng = np.random.default_rng(seed)
    for _ in range(5):
        policy = random_policy(cmdp, rng)
        judged = evaluate(cmdp, policy)
        assert judged.value + multipliers @ (cmdp.thresholds - judged.costs) <= bound + 1e-12 * scale
        if (judged.costs <= cmdp.thresholds).all():
            assert judged.value <= bound + 1e-12 * scale
    found = plan(cmdp, multipliers)
    assert found.value + multipliers @ (cmdp.thresholds - found.costs) == pytest.approx(bound, abs=1e-10 * scale)


@settings(deadline=None, max_examples=30)
@given(cmdp=cmdps(max_states=4, max_horizon=4), seed=SEEDS)
def test_a_greedy_policy_is_best_from_every_state(cmdp, seed):
    multipliers = multipliers_for(cmdp, seed)
    policy = greedy_policy(cmdp, multipliers)
    scale = float(cmdp.sizes[0] + multipliers @ cmdp.sizes[1:])
    for state in range(cmdp.num_states):
        there = replace(cmdp, initial=np.eye(cmdp.num_states)[state], trusted=True)
        best = dual_bound(there, multipliers) - float(multipliers @ cmdp.thresholds)
        assert lagrangian(there, policy, multipliers) == pytest.approx(best, abs=1e-10 * scale)


@settings(deadline=None, max_examples=20)
@given(cmdp=cmdps(discounted=True, max_states=5), seed=SEEDS)
def test_discounted_bounds_agree_with_value_iteration(cmdp, seed):
    multipliers = multipliers_for(cmdp, seed)
    to_go = np.zeros(cmdp.num_states)
    stage = cmdp.reward[0] - np.tensordot(multipliers, cmdp.costs[:, 0], axes=1)
    for _ in range(4000):
        to_go = (stage + cmdp.discount * dense_transition(cmdp)[0] @ to_go).max(axis=1)
    expected = cmdp.initial @ to_go + multipliers @ cmdp.thresholds
    scale = float(cmdp.sizes[0] + multipliers @ (cmdp.sizes[1:] + np.abs(cmdp.thresholds)))
    assert dual_bound(cmdp, multipliers) == pytest.approx(expected, abs=1e-10 * scale)


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(max_states=3, max_actions=2, max_horizon=3, constraints=(0, 2)), seed=SEEDS)
def test_the_bound_is_that_of_the_best_plan(cmdp, seed):
    multipliers = multipliers_for(cmdp, seed)
    judged = [evaluate(cmdp, policy) for policy in all_plans(cmdp)]
    best = max(each.value + multipliers @ (cmdp.thresholds - each.costs) for each in judged)
    scale = float(cmdp.sizes[0] + multipliers @ (cmdp.sizes[1:] + np.abs(cmdp.thresholds)))
    assert dual_bound(cmdp, multipliers) == pytest.approx(best, abs=1e-11 * scale)


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=False), seed=SEEDS, which=st.integers(1, 3))
def test_tables_of_the_state_alone_give_the_same_bits_when_they_are_views_of_one_column(cmdp, seed, which):
    def column(table):
        return np.broadcast_to(table[..., :1], table.shape)

    views = replace(
        cmdp,
        reward=column(cmdp.reward) if which & 1 else cmdp.reward,
        costs=column(cmdp.costs) if which & 2 else cmdp.costs,
        trusted=True,
    )
    copies = replace(views, reward=views.reward.copy(), costs=views.costs.copy(), trusted=True)
    multipliers = multipliers_for(copies, seed)
    assert drop_broadcast(views.reward).shape[-1] == 1 or not which & 1
    assert dual_bound(views, multipliers) == dual_bound(copies, multipliers)
    one, other = (maximise(each, multipliers) for each in (views, copies))
    assert one.value == other.value
    assert np.array_equal(one.actions(), other.actions())
    one, other = (plan(each, multipliers) for each in (views, copies))
    assert (one.value, one.costs.tolist()) == (other.value, other.costs.tolist())
    for name in ("sizes", "step_sizes", "reward_range", "nonnegative"):
        assert np.array_equal(getattr(views, name), getattr(copies, name))


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=False), seed=SEEDS)
def test_the_maximum_is_reached_by_its_actions_and_bounds_every_plan(cmdp, seed):
    multipliers = multipliers_for(cmdp, seed)
    best = maximise(cmdp, multipliers)
    policy = np.eye(cmdp.num_actions)[best.actions()]
    scale = float(cmdp.sizes[0] + multipliers @ cmdp.sizes[1:])
    assert best.value == pytest.approx(lagrangian(cmdp, policy, multipliers), rel=0, abs=1e-12 * scale)
    assert best.value >= lagrangian(cmdp, random_policy(cmdp, np.random.default_rng(seed)), multipliers) - 1e-12 * scale


def test_a_backup_is_stage_plus_what_follows():
    cmdp = CMDP(
        transition=[[[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]]],
        reward=[[[1.0, 0.0], [0.0, 2.0]]],
        costs=[[[[0.0, 1.0], [1.0, 0.0]]]],
        thresholds=[1.0],
        initial=[1.0, 0.0],
        discount=0.5,
    )
    to_go = np.array([8.0, 16.0])
    assert scalarised_backup(cmdp, np.array([0.5]), to_go).tolist() == [[7.0, 3.5], [7.5, 9.0]]


def test_actions_within_a_width_of_the_best_are_tied():
    cmdp = CMDP(
        transition=[[[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]]],
        reward=[[[1.0, 0.0], [0.0, 2.0]]],
        costs=[[[[0.0, 1.0], [1.0, 0.0]]]],
        thresholds=[1.0],
        initial=[1.0, 0.0],
        horizon=2,
    )
    # By hand: the last step is worth [[1, -0.5], [-0.5, 2]], its best [1, 2]; the one before [[2.5, 0.5], [1.5, 3.75]].
    best = maximise(cmdp, np.array([0.5]))
    assert best.tied(0.0).tolist() == [[[True, False], [False, True]]] * 2
    assert best.tied(2.0).tolist() == [[[True, True], [False, True]], [[True, True], [False, True]]]
    assert best.tied(2.25).tolist() == [[[True, True], [True, True]], [[True, True], [False, True]]]


# --- Ties -------------------------------------------------------------------------------------------------------------


def test_ties_go_to_the_cheaper_action_where_the_reward_counts():
    assert plan(one_state([1.0, 1.0, 0.0], [3.0, 2.0, 1.0]), np.zeros(1)).actions.tolist() == [[1]]


def test_ties_go_to_the_better_rewarded_action_where_it_does_not():
    assert plan(one_state([1.0, 2.0, 3.0], [2.0, 2.0, 3.0]), np.ones(1), reward_weight=0.0).actions.tolist() == [[1]]


@pytest.mark.parametrize("time", [{"horizon": 3}, {"horizon": None, "discount": 0.9}])
def test_what_is_still_tied_goes_to_the_first_action_or_to_a_random_one(time):
    cmdp = one_state([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], **time)
    assert not plan(cmdp, np.ones(1)).actions.any()
    rng = np.random.default_rng(0)
    seen = {int(action) for _ in range(40) for action in plan(cmdp, np.ones(1), rng=rng).actions.ravel()}
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("time", [{"horizon": 2}, {"horizon": None, "discount": 0.5}])
def test_discounted_ties_follow_the_same_rule(time):
    cheaper = one_state([1.0, 1.0], [3.0, 2.0], **time)
    assert (plan(cheaper, np.zeros(1)).actions == 1).all()
    better = one_state([1.0, 2.0], [2.0, 2.0], **time)
    assert (plan(better, np.ones(1), reward_weight=0.0).actions == 1).all()


def test_the_least_cost_is_not_lost_to_ties():
    """An action that costs 1e-16 is not tied with one that costs nothing, however large the other costs are."""
    cmdp = one_state([5.0, 0.0, 9.0], [1e-16, 0.0, 1e9], horizon=4)
    assert plan(cmdp, np.ones(1), reward_weight=0.0).costs[0] == 0.0


def test_ties_are_not_split_by_rounding():
    """0.1 + 0.2 and 0.3 are the same reward, whatever their floats say."""
    cmdp = CMDP(
        transition=[[[[0, 1.0, 0], [0, 0, 1.0]], [[0, 0, 1.0]] * 2, [[0, 0, 1.0]] * 2]],
        reward=[[[0.1, 0.3], [0.2, 0.2], [0.0, 0.0]]],
        costs=[[[[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]]],
        thresholds=[1.0],
        initial=[1.0, 0.0, 0.0],
        horizon=2,
    )
    assert plan(cmdp, np.zeros(1)).costs[0] == 0.0


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(rough=False), seed=SEEDS)
def test_the_same_generator_breaks_ties_in_the_same_way(cmdp, seed):
    multipliers = multipliers_for(cmdp, seed)
    one, other = (plan(cmdp, multipliers, rng=np.random.default_rng(seed)) for _ in range(2))
    assert (one.actions == other.actions).all()
    assert one.value == other.value


def test_single_actions_and_unreachable_states_are_no_trouble():
    cmdp = CMDP(
        transition=np.broadcast_to(np.eye(3)[0], (1, 3, 1, 3)),
        reward=[[[1.0], [7.0], [1e9]]],
        costs=[[[[2.0], [7.0], [-1e9]]]],
        thresholds=[10.0],
        initial=[1.0, 0.0, 0.0],
        horizon=3,
    )
    found = plan(cmdp, np.array([1e-12]))
    assert (found.value, found.costs[0]) == (3.0, 6.0)
    assert occupancy(cmdp, found.policy(1))[:, 1:].sum() == 0.0


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


def test_a_bound_adds_what_the_thresholds_are_worth():
    cmdp = two_costs()
    # At prices 0.5 and 2 the actions are worth 3 − 0.5 − 1 and 5 − 1 + 8, at each of four steps.
    assert dual_bound(cmdp, np.array([0.5, 2.0])) == 4 * 12.0 + 0.5 + 4.0
    assert dual_bound(one_state([1.0, 2.0], [0.0, 0.0], horizon=3), np.zeros(1)) == 6.0
    assert dual_bound(replace(cmdp, costs=np.zeros((0, 1, 1, 2)), thresholds=np.zeros(0)), np.zeros(0)) == 20.0


def test_of_several_equals_the_first_is_taken_or_a_random_one():
    best = maximise(one_state([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], horizon=3), np.zeros(1))
    assert best.actions().tolist() == [[0]] * 3
    drawn = {int(a) for seed in range(20) for a in best.actions(np.random.default_rng(seed)).ravel()}
    assert drawn == {0, 1}


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
        assert (cheapest.actions[0, 0], cheapest.costs.tolist()) == (0, [0.0])
        assert cheapest.value == pytest.approx(2.0, abs=chain().rounding * chain().sizes[0])


def values_of_stationary_policies(cmdp):
    for actions in product(range(cmdp.num_actions), repeat=cmdp.num_states):
        yield evaluate_everywhere(cmdp, np.array(actions))


def evaluate_everywhere(cmdp, actions):
    everyone = np.arange(len(actions))
    flow = np.asarray(cmdp.transition)[0][everyone, actions]
    return np.linalg.solve(np.eye(len(actions)) - cmdp.discount * flow, cmdp.reward[0][everyone, actions])


@pytest.mark.parametrize("seed", range(12))
def test_a_discounted_bound_is_that_of_the_best_stationary_policy(seed):
    rng = np.random.default_rng(seed)
    cmdp = CMDP(
        transition=rng.dirichlet(0.3 * np.ones(3), size=(1, 3, 3)),
        reward=rng.random((1, 3, 3)) * [[[1.0], [1.0], [9.0]]],
        costs=rng.random((1, 1, 3, 3)),
        thresholds=[0.5],
        initial=rng.dirichlet(np.ones(3)),
        discount=0.9,
    )
    priced = replace(cmdp, reward=cmdp.reward - 0.7 * cmdp.costs[0], trusted=True)
    most = max(cmdp.initial @ values for values in values_of_stationary_policies(priced))
    assert dual_bound(cmdp, np.array([0.7])) == pytest.approx(most + 0.35, abs=1e-11)


def test_what_is_cheapest_has_nothing_to_do_with_rewards():
    for reward in ([0.0, 100.0], [100.0, 0.0]):
        cmdp = one_state(reward, [1.0, 0.5], horizon=None, discount=0.5)
        assert plan(cmdp, np.ones(1), reward_weight=0.0).actions.tolist() == [[1]]


def test_values_that_decide_ties_are_those_of_all_that_is_tied():
    """Of three actions of the same worth the second weighting takes the cheapest; at the same cost the first."""
    for costs, chosen in (([3.0, 1.0, 2.0], 1), ([2.0, 3.0, 1.0], 2), ([1.0, 1.0, 2.0], 0)):
        for time in ({"horizon": 2}, {"horizon": None, "discount": 0.5}):
            cmdp = one_state([4.0, 4.0, 4.0], costs, **time)
            found = plan(cmdp, np.zeros(1))
            assert set(found.actions.ravel().tolist()) == {chosen}
            assert found.costs[0] == pytest.approx(2 * min(costs), abs=1e-12)
