"""Linear programs over occupancies: beside `Exact`, beside cvxpy, and when HiGHS is wrong."""

from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cmdps import cmdps, dense_transition, every_step, exact_costs, fractions, one_state

import cmpg.cmdp.linear_program as linear_program
from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.highs import LinearModel, propose
from cmpg.cmdp.linear_program import LinearProgram, independent_slack, occupancy_model
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.cmdp.response import cost_margins
from cmpg.errors import GameError, InfeasibleError, SolverError

SEEDS = st.integers(0, 2**32 - 1)
SCALES = (1.0, 1e9, 1e-9)


def random_cmdp(seed, *, states=5, actions=3, horizon=4, constraints=2, discount=None):
    """Dense, and with thresholds that bind."""
    rng = np.random.default_rng(seed)
    steps = 1 if discount else horizon
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(states), size=(steps, states, actions)),
        reward=rng.random((steps, states, actions)),
        costs=rng.random((constraints, steps, states, actions)),
        thresholds=np.zeros(constraints),
        initial=rng.dirichlet(np.ones(states)),
        horizon=None if discount else horizon,
        discount=discount,
    )
    free, safe = plan(cmdp, np.zeros(constraints)).costs, greatest_slack(cmdp).costs
    return replace(cmdp, thresholds=safe + 0.3 * np.abs(free - safe), trusted=True)


def occupancy_constraints(cmdp, visits):
    """The flow equations of one agent in cvxpy, written out step by step; `visits` has one variable [S, A] per step."""
    transition, before = dense_transition(cmdp), cmdp.initial
    rules = []
    for h, here in enumerate(visits):
        flat = transition[h].reshape(-1, cmdp.num_states)
        onward = cvxpy.reshape(here, (flat.shape[0],), order="C") @ flat
        if cmdp.discount is not None:
            before = cmdp.initial + cmdp.discount * onward
        rules.append(cvxpy.sum(here, axis=1) == before)
        before = onward
    return rules


def total(cmdp, visits, table):
    return sum(
        cvxpy.sum(cvxpy.multiply(each, here)) for each, here in zip(every_step(cmdp, table), visits, strict=True)
    )


def solve_by_cvxpy(cmdp):
    visits = [cvxpy.Variable(cmdp.policy_shape[1:], nonneg=True) for _ in range(cmdp.num_steps)]
    limits = [total(cmdp, visits, cost) <= limit for cost, limit in zip(cmdp.costs, cmdp.thresholds, strict=True)]
    problem = cvxpy.Problem(
        cvxpy.Maximize(total(cmdp, visits, cmdp.reward)), occupancy_constraints(cmdp, visits) + limits
    )
    value = problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return value, np.array([float(limit.dual_value) for limit in limits])


# --- Agreement --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(cmdp=cmdps(scales=SCALES), method=st.sampled_from(["simplex", "ipm"]))
def test_exact_and_linear_program_agree(cmdp, method):
    exact, program = Exact()(cmdp), LinearProgram(method)(cmdp)
    assert program.value == pytest.approx(exact.value, rel=1e-8, abs=1e-8 * float(cmdp.sizes[0]))
    assert program.gap <= 1e-8 * (float(cmdp.sizes[0]) or 1.0)
    assert (program.costs <= cmdp.thresholds + cost_margins(cmdp)).all()
    assert program.value <= exact.bound + 1e-12 * float(cmdp.sizes[0])


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=False, slack=("loose",), max_states=4, max_horizon=4, constraints=(1, 3), scales=SCALES))
def test_thresholds_with_slack_are_met_in_exact_arithmetic(cmdp):
    costs = exact_costs(cmdp, LinearProgram()(cmdp).policy)
    assert all(cost <= limit for cost, limit in zip(costs, fractions(cmdp.thresholds), strict=True))


@pytest.mark.parametrize("discount", [None, 0.9])
@pytest.mark.parametrize("constraints", [1, 3])
def test_cvxpy_agrees_on_value_and_multipliers(discount, constraints):
    cmdp = random_cmdp(constraints, constraints=constraints, discount=discount)
    value, duals = solve_by_cvxpy(cmdp)
    for solver in (Exact(), LinearProgram()):
        response = solver(cmdp)
        assert response.value == pytest.approx(value, rel=1e-7)
        assert response.multipliers == pytest.approx(duals, abs=1e-5)


def test_the_program_holds_at_every_occupancy():
    """Rows of the program are the lemmas: equalities at the occupancy of any policy, and V^c ≤ α below."""
    for cmdp in (random_cmdp(0), random_cmdp(0, discount=0.8)):
        model = occupancy_model(cmdp)
        policy = np.random.default_rng(1).dirichlet(np.ones(cmdp.num_actions), size=cmdp.policy_shape[:2])
        values = model.matrix @ occupancy(cmdp, policy).ravel()
        flows = len(values) - cmdp.num_constraints
        assert values[:flows] == pytest.approx(model.lower[:flows])
        assert (model.lower[:flows] == model.upper[:flows]).all()
        assert values[flows:] * cmdp.step_sizes[1:] == pytest.approx(evaluate(cmdp, policy).costs)


# --- Endings ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(slack=("tight",), constraints=(1, 3)))
def test_infeasibility_comes_with_its_proof(cmdp):
    below = replace(cmdp, thresholds=greatest_slack(cmdp).costs - 1e-6 * (1 + cmdp.sizes[1:]), trusted=True)
    with pytest.raises(InfeasibleError) as caught:
        LinearProgram()(below)
    proof = caught.value.multipliers
    assert proof @ plan(below, proof, reward_weight=0.0).costs > proof @ below.thresholds


def spoil(proposal):
    return replace(proposal, values=np.roll(proposal.values, 1), duals=proposal.duals + 5.0)


def test_an_answer_that_does_not_check_is_tried_again_by_the_other_method(monkeypatch):
    cmdp, asked = random_cmdp(2), []

    def half_broken(model, *, method, time_limit):
        asked.append(method)
        proposal = propose(model, method=method, time_limit=time_limit)
        return spoil(proposal) if method == "simplex" else proposal

    monkeypatch.setattr(linear_program, "propose", half_broken)
    response = LinearProgram()(cmdp)
    assert asked == ["simplex", "ipm"]
    assert response.value == pytest.approx(Exact()(cmdp).value, rel=1e-8)


def test_a_false_claim_of_infeasibility_is_not_believed(monkeypatch):
    cmdp = random_cmdp(3)

    def pessimist(model, *, method, time_limit):
        proposal = propose(model, method=method, time_limit=time_limit)
        return replace(proposal, feasible=method == "simplex")

    monkeypatch.setattr(linear_program, "propose", pessimist)
    assert LinearProgram("ipm")(cmdp).value == pytest.approx(Exact()(cmdp).value, rel=1e-8)


def test_a_method_that_breaks_down_is_replaced_by_the_other(monkeypatch):
    cmdp = random_cmdp(6)

    def breaks_down(model, *, method, time_limit):
        if method == "simplex":
            raise SolverError("HiGHS (simplex) ended with 'Unknown'.")
        return propose(model, method=method, time_limit=time_limit)

    monkeypatch.setattr(linear_program, "propose", breaks_down)
    assert LinearProgram()(cmdp).value == pytest.approx(Exact()(cmdp).value, rel=1e-8)


def test_two_answers_that_do_not_check_are_an_error(monkeypatch):
    monkeypatch.setattr(linear_program, "propose", lambda model, **how: spoil(propose(model, **how)))
    with pytest.raises(
        SolverError, match=r"neither HiGHS method .* checks: the answer of HiGHS \(ipm\) has a gap of .* Use Exact"
    ):
        LinearProgram()(random_cmdp(4))


def test_a_time_limit_is_an_error_that_says_so():
    cmdp = random_cmdp(5, states=60, actions=5, horizon=8)
    with pytest.raises(
        SolverError, match=r"HiGHS \(simplex\) ended with 'Time limit reached' on a program of 482 rows"
    ):
        LinearProgram("ipm", time_limit=1e-6)(cmdp)


def test_highs_is_told_which_variables_are_free():
    """Maximise −x − y with x + y ≥ −3 and only y free: x = 0, y = −3."""
    matrix = linear_program.sp.csc_array(np.ones((1, 2)))
    model = LinearModel(-np.ones(2), matrix, np.array([-3.0]), np.array([np.inf]), num_free=1)
    assert propose(model).values.tolist() == [0.0, -3.0]


# --- Independent agents: the corrected Example 2 ----------------------------------------------------------------------


def test_the_papers_recipe_fails_where_the_block_program_does_not():
    """Costs (5, 5) and (0.5, 6), α = (1, 10): least largest cost picks the infeasible action."""
    agent = one_state([0.0, 0.0], [[5.0, 0.5], [5.0, 6.0]])
    found = independent_slack([agent], np.array([1.0, 10.0]))
    assert found.policies[0].tolist() == [[[0.0, 1.0]]]
    assert found.slack == pytest.approx(0.5)
    assert found.multipliers == pytest.approx([1.0, 0.0])


def joint_planner(cmdps, thresholds):
    """All agents as one process on the product of their states and actions; two agents."""
    one, other = cmdps
    states, actions = one.num_states * other.num_states, one.num_actions * other.num_actions
    first, second = dense_transition(one), dense_transition(other)
    transition = np.einsum("hsau,htbv->hstabuv", first, second).reshape(-1, states, actions, states)
    shape = (-1, one.num_steps, states, actions)
    left = np.broadcast_to(one.costs, (one.num_constraints, *one.policy_shape))
    right = np.broadcast_to(other.costs, (other.num_constraints, *other.policy_shape))
    return CMDP(
        transition=transition,
        reward=np.zeros((1, states, actions)),
        costs=(left[:, :, :, None, :, None] + right[:, :, None, :, None, :]).reshape(shape),
        thresholds=thresholds,
        initial=np.outer(one.initial, other.initial).ravel(),
        horizon=one.horizon,
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), SEEDS)
def test_independent_agents_do_as_well_as_one_planner(constraints, seed):
    rng = np.random.default_rng(seed)
    cmdps = [
        random_cmdp(rng.integers(1 << 30), states=s, actions=a, horizon=3, constraints=constraints)
        for s, a in [(3, 2), (2, 3)]
    ]
    thresholds = rng.random(constraints) * 4
    found = independent_slack(cmdps, thresholds)
    assert found.slack == pytest.approx(greatest_slack(joint_planner(cmdps, thresholds)).slack, abs=1e-7)
    assert found.bound == pytest.approx(found.slack, abs=1e-7)
    totals = sum(evaluate(cmdp, policy).costs for cmdp, policy in zip(cmdps, found.policies, strict=True))
    assert found.costs == pytest.approx(totals)
    assert found.multipliers.sum() == pytest.approx(1.0)


def test_independent_agents_of_different_kinds_agree_with_cvxpy():
    cmdps = [random_cmdp(1, horizon=4), random_cmdp(2, states=3, horizon=2), random_cmdp(3, states=2, discount=0.7)]
    thresholds = np.array([5.5, 5.0])
    flows = [[cvxpy.Variable(c.policy_shape[1:], nonneg=True) for _ in range(c.num_steps)] for c in cmdps]
    slack = cvxpy.Variable()
    rules = [rule for c, flow in zip(cmdps, flows, strict=True) for rule in occupancy_constraints(c, flow)]
    for j, limit in enumerate(thresholds):
        rules.append(sum(total(c, flow, c.costs[j]) for c, flow in zip(cmdps, flows, strict=True)) + slack <= limit)
    expected = cvxpy.Problem(cvxpy.Maximize(slack), rules).solve(solver=cvxpy.CLARABEL)
    assert independent_slack(cmdps, thresholds).slack == pytest.approx(expected, abs=1e-6)


def test_thresholds_out_of_reach_are_proven_so():
    agents = [one_state([0.0, 0.0], [1.0, 2.0]), one_state([0.0], [3.0])]
    found = independent_slack(agents, np.array([3.5]))
    assert (found.slack, found.bound) == pytest.approx((-0.5, -0.5))


def test_independent_slack_refuses_what_makes_no_sense():
    agent = one_state([0.0, 0.0], [1.0, 2.0])
    with pytest.raises(GameError, match="at least one agent and at least one constraint"):
        independent_slack([], np.array([1.0]))
    with pytest.raises(GameError, match=r"thresholds has shape \[2\]; costs has 1 constraints"):
        independent_slack([agent], np.array([1.0, 2.0]))
