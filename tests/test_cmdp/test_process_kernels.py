"""Compiled plans, bounds and evaluations beside their NumPy twins, on the same CMDPs; and arrays that they refuse."""

import copy
import pickle
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from random_cmdps import cmdps, random_policy
from test_box import boxed, boxes, random_cmdp

from cmpg.cmdp.box import BoxCMDP, optimistic_bound, optimistic_plan, optimistic_response, worst_case
from cmpg.cmdp.evaluation import evaluate, occupancy, plan_visits
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.kernels.choice import compiled, kernels_for
from cmpg.cmdp.mixed_rows import MixedRows, RowLists
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound, plan
from cmpg.cmdp.response import mixed_policy
from cmpg.errors import InfeasibleError

pytestmark = pytest.mark.skipif(compiled() is None, reason="there are no compiled kernels here, or they are not wanted")

finite = cmdps(discounted=False, max_states=12, max_actions=6, scales=(1e-3, 1.0, 1e3))
seeds = st.integers(0, 2**32 - 1)


@contextmanager
def numpy_twins():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMPG_KERNELS", "numpy")
        yield


def both(work):
    """What the kernels answer, and what the twins answer."""
    found = work()
    with numpy_twins():
        return found, work()


def scale(cmdp, multipliers):
    return float(cmdp.sizes[0] + np.abs(multipliers) @ (cmdp.sizes[1:] + np.abs(cmdp.thresholds))) or 1.0


def multipliers_for(cmdp, seed):
    """Multiples of 1/4, some of them zero: on dyadic tables floats are exact, and ties are ties."""
    return np.random.default_rng(seed).integers(0, 9, size=cmdp.num_constraints) / 4


def close(one, other, size):
    return np.allclose(one, other, rtol=0, atol=1e-12 * size)


@given(finite, seeds, st.booleans())
def test_plans_are_as_good_as_those_of_the_twin(cmdp, seed, by_cost):
    multipliers = multipliers_for(cmdp, seed)
    weight = 0.0 if by_cost and multipliers.any() else 1.0
    found, expected = both(lambda: plan(cmdp, multipliers, reward_weight=weight))
    size = scale(cmdp, multipliers)
    reached = [weight * each.value - multipliers @ each.costs for each in (found, expected)]
    assert close(*reached, size)
    again = evaluate(cmdp, found.policy(cmdp.num_actions))
    assert close([again.value, *again.costs], [found.value, *found.costs], max(cmdp.sizes))


@given(cmdps(discounted=False, rough=False, max_states=12, max_actions=6), seeds, st.booleans())
def test_ties_are_broken_as_by_the_twin(cmdp, seed, at_random):
    multipliers = multipliers_for(cmdp, seed)

    def chosen():
        rng = np.random.default_rng(seed) if at_random else None
        actions = plan(cmdp, multipliers, rng=rng).actions
        return actions, None if rng is None else rng.bit_generator.state

    (found, state), (expected, other) = both(chosen)
    assert found.tolist() == expected.tolist()
    assert state == other


@given(finite, seeds)
def test_bounds_evaluations_and_occupancies_are_those_of_the_twin(cmdp, seed):
    rng, multipliers = np.random.default_rng(seed), multipliers_for(cmdp, seed)
    policy = random_policy(cmdp, rng, rough=bool(rng.integers(2)))
    assert close(*both(lambda: dual_bound(cmdp, multipliers)), scale(cmdp, multipliers))
    found, expected = both(lambda: evaluate(cmdp, policy))
    assert close([found.value, *found.costs], [expected.value, *expected.costs], max(cmdp.sizes))
    assert close(*both(lambda: occupancy(cmdp, policy)), 1.0)


@given(finite, seeds)
def test_mixtures_are_those_of_the_twin(cmdp, seed):
    rng = np.random.default_rng(seed)
    plans = [plan(cmdp, multipliers_for(cmdp, seed + i), rng=rng) for i in range(4)]
    weights, unvisited = rng.dirichlet(np.ones(4)) * (rng.random(4) < 0.7), random_policy(cmdp, rng)
    if weights.any():
        found, expected = both(lambda: mixed_policy(cmdp, plans, weights=weights / weights.sum(), unvisited=unvisited))
        assert close(found, expected, 1e3)  # rows of states that are hardly visited are quotients of small numbers


@given(cmdps(discounted=False, max_states=12, max_actions=6, constraints=(0, 4)))
def test_best_responses_are_worth_what_those_of_the_twin_are(cmdp):
    found, expected = both(lambda: Exact()(cmdp))
    size = scale(cmdp, np.maximum(found.multipliers, expected.multipliers))
    assert close(found.value, expected.value, 10 * size)
    assert found.gap <= 1e-10 * size


@given(seeds)
def test_rows_that_are_averages_give_what_they_give_when_written_out(seed):
    rng = np.random.default_rng(seed)
    steps, states, actions, stride = 3, int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    sources = []
    for _ in range(int(rng.choice([1, steps]))):
        rows = rng.dirichlet(np.ones(states), size=states * actions * stride) * (rng.random(states) < 0.7)
        rows[:, int(rng.integers(states))] += 1 - rows.sum(axis=1)
        sources.append(sp.csr_array(rows))
    lists = []
    for _ in range(steps):
        lengths = rng.integers(1, 4, size=states)
        begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        weights = np.concatenate([rng.dirichlet(np.ones(length)) for length in lengths])
        first = np.repeat(np.arange(states) * actions * stride, lengths)
        lists.append(RowLists(begins, first + rng.integers(stride, size=begins[-1]), weights))
    mixed = MixedRows(tuple(sources), tuple(lists), actions, stride)
    shape, constraints = (steps, states, actions), int(rng.integers(6))
    cmdp = CMDP(
        transition=mixed,
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)),
        thresholds=np.zeros(constraints),
        initial=rng.dirichlet(np.ones(states)),
        horizon=steps,
        trusted=True,
    )
    written = replace(cmdp, transition=mixed.matrices, trusted=True)
    assert cmdp.step_rounding >= written.step_rounding
    multipliers, policy = rng.random(cmdp.num_constraints), random_policy(cmdp, rng)
    for work in (
        lambda each: dual_bound(each, multipliers),
        lambda each: plan(each, multipliers).actions,
        lambda each: plan(each, multipliers).costs,
        lambda each: evaluate(each, policy).value,
        lambda each: evaluate(each, policy).costs,
        lambda each: occupancy(each, policy),
        lambda each: plan_visits(each, plan(cmdp, multipliers).actions),
    ):
        (found, twin), (expected, _) = both(lambda work=work: work(cmdp)), both(lambda work=work: work(written))
        assert close(found, expected, 10.0)
        assert close(twin, expected, 10.0)


@given(boxes(), seeds)
def test_optimistic_plans_are_as_good_as_those_of_the_twin(box, seed):
    multipliers = multipliers_for(box.nominal, seed)
    found, expected = both(lambda: optimistic_plan(box, multipliers))
    assert close(found.value - multipliers @ found.costs, expected.value - multipliers @ expected.costs, 10.0)
    assert close(found.rows.sum(axis=-1), 1.0, 10.0)
    assert close(*both(lambda: optimistic_bound(box, multipliers)), 10.0)
    policy = random_policy(box.nominal, np.random.default_rng(seed))
    assert close(*both(lambda: worst_case(box, policy, -box.nominal.reward)), 10.0)


@given(boxes())
def test_optimistic_responses_are_those_of_the_twin(box):
    def answered():
        try:
            answer = optimistic_response(box)
        except InfeasibleError:
            return None
        return answer.value, answer.bound

    found, expected = both(answered)
    assert (found is None) == (expected is None)
    if found is not None:
        assert close(found, expected, 100.0)


def test_many_states_are_sorted_and_filled_as_by_the_twin():
    rng = np.random.default_rng(0)
    box = boxed(random_cmdp(rng, states=83, actions=3, horizon=4, constraints=2), rng, radius=0.1)
    found, expected = both(lambda: optimistic_plan(box, np.array([0.3, 0.2])))
    assert found.actions.tolist() == expected.actions.tolist()
    assert close(found.rows, expected.rows, 1.0)
    tied = BoxCMDP(replace(box.nominal, reward=np.round(box.nominal.reward), trusted=True), box.lower, box.upper)
    found, expected = both(lambda: optimistic_plan(tied, np.zeros(2)))
    assert close([found.value, *found.costs], [expected.value, *expected.costs], 10.0)


@pytest.mark.parametrize("states", [15, 16, 19, 20, 83])
@pytest.mark.parametrize("constraints", [1, 4])
def test_long_dense_rows_are_added_up_as_by_the_twin(states, constraints):
    rng = np.random.default_rng(states)
    cmdp = random_cmdp(rng, states=states, actions=3, horizon=4, constraints=constraints)
    multipliers = rng.random(constraints) / constraints
    found, expected = both(lambda: plan(cmdp, multipliers))
    assert found.actions.tolist() == expected.actions.tolist()
    assert close([found.value, *found.costs], [expected.value, *expected.costs], 10.0)
    assert close(*both(lambda: dual_bound(cmdp, multipliers)), 10.0)
    policy = random_policy(cmdp, rng)
    for found, expected in zip(*both(lambda: vars(evaluate(cmdp, policy)).values()), strict=True):
        assert close(found, expected, 10.0)


def test_tables_that_repeat_numbers_are_read_as_they_are():
    rng = np.random.default_rng(1)
    shape, by_state = (3, 5, 4), rng.random((3, 5, 1))
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(5), size=(1, 5, 4)),
        reward=np.broadcast_to(by_state, shape),
        costs=np.stack([np.broadcast_to(rng.random((5, 4)), shape), np.broadcast_to(by_state, shape)]),
        thresholds=np.ones(2),
        initial=rng.dirichlet(np.ones(5)),
        horizon=3,
    )
    viewed = replace(cmdp, reward=np.broadcast_to(by_state, shape), costs=cmdp.costs[:, :, ::-1, ::-1], trusted=True)
    multipliers = np.array([0.25, 0.5])
    for each in (cmdp, viewed):
        assert each.packed is not None
        assert close(*both(lambda each=each: dual_bound(each, multipliers)), 10.0)
        found, expected = both(lambda each=each: plan(each, multipliers))
        assert found.actions.tolist() == expected.actions.tolist()


def one_state(**changes):
    tables = {
        "transition": np.ones((1, 1, 2, 1)),
        "reward": np.array([[[0.0, 1.0]]]),
        "costs": np.array([[[[0.0, 1.0]]]]),
        "thresholds": np.array([0.5]),
        "initial": np.ones(1),
        "horizon": 2,
    }
    return CMDP(**(tables | changes))


def test_what_kernels_cannot_read_is_left_to_the_twins():
    assert kernels_for(one_state()) is not None
    assert kernels_for(one_state(horizon=None, discount=0.5)) is None


def test_a_process_travels_without_what_was_packed():
    cmdp = one_state()
    assert cmdp.packed is not None
    for other in (pickle.loads(pickle.dumps(cmdp)), copy.deepcopy(cmdp)):
        assert "packed" not in vars(other)
        assert dual_bound(other, np.zeros(1)) == dual_bound(cmdp, np.zeros(1)) == 2.0


def test_wide_indices_are_narrowed_and_bad_ones_refused():
    good = sp.csr_array(np.ones((2, 1)))
    good.indices, good.indptr = good.indices.astype(np.int64), good.indptr.astype(np.int64)
    cmdp = replace(one_state(), transition=(good,), trusted=True)
    assert dual_bound(cmdp, np.zeros(1)) == 2.0
    for indices in ([0, 1], [0, -1], [0, 2**40]):
        bad = sp.csr_array(np.ones((2, 1)))
        bad.indices = np.array(indices)
        with pytest.raises(ValueError, match="indices does not fit"):
            dual_bound(replace(one_state(), transition=(bad,), trusted=True), np.zeros(1))
    for indptr in ([0, 2, 1], [1, 1, 2], [0, 1, 3]):
        bad = sp.csr_array(np.ones((2, 1)))
        bad.indptr = np.array(indptr, dtype=np.int32)
        with pytest.raises(ValueError, match="indptr does not fit"):
            dual_bound(replace(one_state(), transition=(bad,), trusted=True), np.zeros(1))


def test_a_master_refuses_what_does_not_fit():
    room, ones, settings = np.ones((2, 2)), np.ones(1), np.array([1.0, 0.0, 1.0, 1.0])
    limits, out = (100, 20, 1e-14), (np.empty(2), np.empty(2))
    assert compiled().master(room, ones, ones, settings, *limits, np.array([0, -2]), *out) == 0
    for tables, basis in (
        ((room[:1], ones, ones, settings), [0, -2]),
        ((room, ones, np.ones(2), settings), [0, -2]),
        ((room, ones, ones, settings[:3]), [0, -2]),
        ((room, ones, ones, settings), [0, 2]),
        ((room, ones, ones, settings), [0, -3]),
        ((room, ones, ones, settings), [0]),
    ):
        with pytest.raises(ValueError, match=r"has|basis"):
            compiled().master(*tables, *limits, np.array(basis), *out)


@pytest.mark.parametrize(
    ("begins", "rows", "weights", "stride"),
    [
        ([0, 2], [0, 1], [0.5, 0.5], 2),
        ([0, 2], [0, -1], [0.5, 0.5], 1),
        ([0, 2], [0, 0], [0.5, 0.5], -1),
        ([0, 2], [0, 0], [1.0], 1),
        ([0, 1], [0, 0], [0.5, 0.5], 1),
        ([1, 2], [0, 0], [0.5, 0.5], 1),
        ([0, 1, 2], [0, 0], [0.5, 0.5], 1),
    ],
)
def test_lists_of_rows_that_are_not_there_are_refused(begins, rows, weights, stride):
    source = sp.csr_array(np.ones((3, 1)))
    lists = RowLists(np.array(begins, dtype=np.int32), np.array(rows), np.array(weights))
    cmdp = replace(one_state(), transition=MixedRows((source,), (lists,), 2, stride), trusted=True)
    with pytest.raises(ValueError, match="does not fit"):
        dual_bound(cmdp, np.zeros(1))


DENSE = np.ones((1, 2, 1))
TABLE = np.zeros((1, 1, 2))
COSTS = np.zeros((1, 1, 1, 2))
START = np.ones(1)


@pytest.mark.parametrize(
    ("sizes", "transition", "reward", "costs", "initial"),
    [
        ((0, 1, 2, 1, 1), DENSE, TABLE, COSTS, START),
        ((2, 1, 2, -1, 1), DENSE, TABLE, COSTS, START),
        ((2, 1, 2, 1, 3), DENSE, TABLE, COSTS, START),
        ((2, 2**20, 2**20, 1, 1), DENSE, TABLE, COSTS, START),
        ((2, 1, 3, 1, 1), DENSE, TABLE, COSTS, START),
        ((2, 1, 2, 2, 1), DENSE, TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), np.ones((1, 3, 1)), TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), np.ones((2, 1)), TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), DENSE.astype(np.float32), TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), DENSE, TABLE.astype(np.int64), COSTS, START),
        ((2, 1, 2, 1, 1), DENSE, np.zeros((3, 1, 2)), COSTS, START),
        ((2, 1, 2, 1, 1), DENSE, TABLE, np.zeros((1, 2, 1, 1)), START),
        ((2, 1, 2, 1, 1), DENSE, TABLE, COSTS, np.ones(2)),
        ((2, 1, 2, 1, 1), (), TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), ((1, 2),), TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), None, TABLE, COSTS, START),
        ((2, 1, 2, 1, 1), DENSE, None, COSTS, START),
    ],
)
def test_arrays_that_do_not_fit_are_refused(sizes, transition, reward, costs, initial):
    with pytest.raises((TypeError, ValueError)):
        compiled().process(sizes, transition, reward, costs, initial)


def test_kernels_refuse_what_does_not_fit_the_process():
    kernels, process = kernels_for(one_state())
    weights, totals, policy = np.ones(2), np.empty(2), np.full((2, 1, 2), 0.5)
    actions, to_go = np.zeros((2, 1), dtype=np.int64), np.empty((1, 2))
    setting = (process, None, weights, weights, 0.0, 0.0, -1.0)
    assert kernels.plan(*setting, 1, actions, None, to_go, totals, None, False) == -1
    bad = [
        lambda: kernels.bound(object(), weights),
        lambda: kernels.bound(process, np.ones(3)),
        lambda: kernels.evaluate(process, policy[:1], totals),
        lambda: kernels.evaluate(process, policy, np.empty(1)),
        lambda: kernels.occupancy(process, policy, np.empty((1, 1, 2))),
        lambda: kernels.visits(process, actions[:1], np.empty((2, 1))),
        lambda: kernels.visits(process, actions + 2, np.empty((2, 1))),
        lambda: kernels.visits(process, actions, np.empty((1, 1))),
        lambda: kernels.plan(*setting, 2, actions, None, to_go, totals, None, False),
        lambda: kernels.plan(*setting, -1, actions, None, to_go, totals, None, False),
        lambda: kernels.plan(*setting, 1, actions[:1], None, to_go, totals, None, False),
        lambda: kernels.plan(*setting, 1, actions, None, to_go[:, :1].copy(), totals, None, False),
        lambda: kernels.plan(*setting, 1, actions, None, to_go, totals, np.zeros(1), False),
        lambda: kernels.greatest_sum(process, (np.ones(2), np.ones(2)), policy, None),
        lambda: kernels.greatest_sum(process, (np.ones(2), np.ones(2), np.ones(3)), policy, None),
        lambda: kernels.greatest_sum(process, (np.ones(2), np.ones(3), np.ones(2)), policy, None),
        lambda: kernels.greatest_sum(process, (np.ones(2), np.ones(2), np.ones(2)), np.ones(3), None),
    ]
    for call in bad:
        with pytest.raises((TypeError, ValueError)):
            call()


def test_numbers_that_are_none_do_not_lead_astray():
    cmdp = one_state()
    nothing = replace(cmdp, reward=np.full((1, 1, 2), np.nan), trusted=True)
    assert plan(nothing, np.zeros(1)).actions.tolist() == [[0], [0]]
