"""The extended CMDP against a linear program, brute force and the exact solver."""

import itertools

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from cmpg.cmdp.box import (
    BoxCMDP,
    central_kernel,
    optimistic_bound,
    optimistic_plan,
    optimistic_response,
    worst_case,
)
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError, InfeasibleError, PolicyError
from oracles.extended_lp import extended_linear_program


def random_cmdp(rng, *, states, actions, horizon, constraints=1, share=0.4, stationary=False):
    steps = 1 if stationary else horizon
    shape = (steps, states, actions)
    return CMDP(
        transition=rng.dirichlet(np.ones(states), size=shape),
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)) if constraints else [],
        thresholds=np.full(constraints, share * horizon),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )


def boxed(cmdp, rng, *, radius):
    radii = radius * rng.random(cmdp.transition.shape)
    return BoxCMDP(cmdp, np.maximum(cmdp.transition - radii, 0.0), np.minimum(cmdp.transition + radii, 1.0))


@st.composite
def boxes(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cmdp = random_cmdp(
        rng,
        states=draw(st.integers(1, 4)),
        actions=draw(st.integers(1, 3)),
        horizon=draw(st.integers(1, 4)),
        constraints=draw(st.integers(0, 3)),
        share=draw(st.sampled_from([0.25, 0.35, 0.5])),
        stationary=draw(st.booleans()),
    )
    return boxed(cmdp, rng, radius=draw(st.sampled_from([0.0, 0.05, 0.3, 1.0])))


def in_box(box, kernel):
    lower, upper = (np.broadcast_to(table, kernel.shape) for table in (box.lower, box.upper))
    inside = (kernel >= lower - 1e-12).all() and (kernel <= upper + 1e-12).all()
    return inside and np.allclose(kernel.sum(axis=-1), 1.0, atol=1e-12)


def with_kernel(box, kernel):
    nominal = box.nominal
    return CMDP(
        transition=kernel,
        reward=nominal.reward,
        costs=nominal.costs,
        thresholds=nominal.thresholds,
        initial=nominal.initial,
        horizon=nominal.horizon,
    )


@given(boxes())
@settings(deadline=None, max_examples=30)
def test_the_search_equals_the_linear_program(box):
    try:
        expected = extended_linear_program(box)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            optimistic_response(box)
        return
    found = optimistic_response(box)
    assert found.value == pytest.approx(expected.value, abs=1e-8)
    assert found.bound - found.value <= 1e-8
    assert (found.costs <= box.nominal.thresholds + 1e-10).all()


@given(boxes())
@settings(deadline=None, max_examples=25)
def test_the_answer_is_a_kernel_of_the_box_and_what_the_policy_is_worth_under_it(box):
    try:
        found = optimistic_response(box)
    except InfeasibleError:
        reject()
    assert in_box(box, found.kernel)
    judged = evaluate(with_kernel(box, found.kernel), found.policy)
    assert judged.value == pytest.approx(found.value, abs=1e-12)
    np.testing.assert_allclose(judged.costs, found.costs, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
@settings(deadline=None, max_examples=30)
def test_a_box_of_zero_width_is_the_cmdp(seed, constraints):
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, states=4, actions=3, horizon=3, constraints=constraints, share=0.45)
    box = BoxCMDP(cmdp, cmdp.transition, cmdp.transition)
    try:
        expected = Exact()(cmdp)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            optimistic_response(box)
        return
    found = optimistic_response(box)
    assert found.value == pytest.approx(expected.value, abs=1e-10)
    np.testing.assert_allclose(found.multipliers @ cmdp.thresholds, expected.multipliers @ cmdp.thresholds, atol=1e-6)


def test_a_plan_is_worth_what_it_says():
    rng = np.random.default_rng(4)
    box = boxed(random_cmdp(rng, states=5, actions=3, horizon=4, constraints=2), rng, radius=0.2)
    plan = optimistic_plan(box, np.array([0.7, 0.2]))
    kernel = np.array(central_kernel(box))
    steps, states = np.indices(plan.actions.shape)
    kernel[steps, states, plan.actions] = plan.rows
    assert in_box(box, kernel)
    judged = evaluate(with_kernel(box, kernel), plan.policy(3))
    assert judged.value == pytest.approx(plan.value, abs=1e-12)
    np.testing.assert_allclose(judged.costs, plan.costs, atol=1e-12)
    dual = optimistic_bound(box, np.array([0.7, 0.2]))
    assert plan.value + [0.7, 0.2] @ (box.nominal.thresholds - plan.costs) == pytest.approx(dual, abs=1e-12)


def test_ties_go_to_the_kernel_that_costs_less():
    # Nothing is ever earned; state 1 costs one, state 2 nothing. Where rewards tie, the plan must steer to state 2.
    cmdp = CMDP(
        transition=np.full((1, 3, 1, 3), 1 / 3),
        reward=np.zeros((1, 3, 1)),
        costs=np.array([0.0, 1.0, 0.0]).reshape(1, 1, 3, 1),
        thresholds=[0.5],
        initial=[1.0, 0.0, 0.0],
        horizon=2,
    )
    box = BoxCMDP(cmdp, np.zeros((1, 3, 1, 3)), np.full((1, 3, 1, 3), 0.7))
    assert optimistic_plan(box, np.zeros(1)).costs[0] == pytest.approx(0.0)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=15)
def test_the_worst_case_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, states=2, actions=2, horizon=3)
    box = boxed(cmdp, rng, radius=0.4)
    policy, objective = rng.dirichlet(np.ones(2), size=(3, 2)), rng.normal(size=(3, 2, 2))
    first = box.lower[..., 0], box.upper[..., 0]
    least, greatest = np.maximum(first[0], 1 - box.upper[..., 1]), np.minimum(first[1], 1 - box.lower[..., 1])
    worst = -np.inf
    for ends in itertools.product([False, True], repeat=8):
        heads = np.where(np.array(ends + (False,) * 4).reshape(3, 2, 2), least, greatest)
        game = CMDP(
            transition=np.stack([heads, 1 - heads], axis=-1),
            reward=objective,
            costs=[],
            thresholds=[],
            initial=cmdp.initial,
            horizon=3,
        )
        worst = max(worst, evaluate(game, policy).value)
    assert worst_case(box, policy, objective) == pytest.approx(worst, abs=1e-12)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_the_worst_case_of_a_deterministic_policy_equals_a_linear_program(seed):
    """A fixed policy is an extended CMDP with one action."""
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, states=3, actions=2, horizon=3)
    box = boxed(cmdp, rng, radius=0.3)
    policy, objective = np.eye(2)[rng.integers(2, size=(3, 3))], rng.random((3, 3, 2))

    def played(table):
        return np.einsum("hsa,hsat->hst", policy, table)[:, :, None]

    lone = CMDP(
        transition=played(cmdp.transition),
        reward=(policy * objective).sum(axis=-1, keepdims=True),
        costs=[],
        thresholds=[],
        initial=cmdp.initial,
        horizon=3,
    )
    expected = extended_linear_program(BoxCMDP(lone, played(box.lower), played(box.upper)))
    assert worst_case(box, policy, objective) == pytest.approx(expected.value, abs=1e-8)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_every_kernel_of_the_box_stays_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    cmdp = random_cmdp(rng, states=4, actions=2, horizon=3, share=0.6)
    box = boxed(cmdp, rng, radius=0.3)
    policy = rng.dirichlet(np.ones(2), size=(3, 4))
    high, low = worst_case(box, policy, cmdp.reward), -worst_case(box, policy, -cmdp.reward)
    assert low <= evaluate(cmdp, policy).value <= high
    try:
        best = Exact()(cmdp)
    except InfeasibleError:
        return
    assert best.value <= optimistic_response(box).bound + 1e-12
    spread = np.broadcast_to(box.spread, (3, 4, 2))
    other = np.array(central_kernel(box))
    assert (0.5 * np.abs(other - cmdp.transition).sum(axis=-1) <= spread + 1e-12).all()


def test_bad_boxes_are_refused_with_coordinates():
    rng = np.random.default_rng(0)
    cmdp = random_cmdp(rng, states=2, actions=2, horizon=2)
    good = cmdp.transition
    crossed = np.array(good)
    crossed[1, 0, 1, 0] += 0.5
    with pytest.raises(GameError, match=r"the box\[h=1, s=0, a=1, next=0\]"):
        BoxCMDP(cmdp, crossed, good)
    with pytest.raises(GameError, match=r"the box\[h=0, s=0, a=0\] holds no distribution"):
        BoxCMDP(cmdp, np.zeros_like(good), 0.4 * good)
    with pytest.raises(GameError, match="lower has shape"):
        BoxCMDP(cmdp, good[:, :, :1], good)
    with pytest.raises(GameError, match="lower has 3 steps"):
        BoxCMDP(cmdp, np.zeros((3, 2, 2, 2)), good)
    discounted = CMDP(
        transition=good[:1], reward=cmdp.reward[:1], costs=[], thresholds=[], initial=[1, 0], discount=0.9
    )
    with pytest.raises(GameError, match="finite horizon"):
        BoxCMDP(discounted, good[:1], good[:1])
    with pytest.raises(PolicyError, match="policy has shape"):
        worst_case(BoxCMDP(cmdp, good, good), np.ones((2, 2, 3)), cmdp.reward)
