"""The paper's primal-dual method: stopped by certificate, repaired to be feasible."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_cmdps import cmdps, exact_costs, fractions, one_state

from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import Exact, greatest_slack, repaired
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.cmdp.primal_dual import PrimalDual
from cmpg.cmdp.response import cost_margins
from cmpg.errors import InfeasibleError, SolverError

SEEDS = st.integers(0, 2**32 - 1)


def binding_cmdp(seed, *, constraints=1, discount=None):
    rng = np.random.default_rng(seed)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(4), size=(1, 4, 3)),
        reward=rng.random((1, 4, 3)),
        costs=rng.random((constraints, 1, 4, 3)),
        thresholds=np.zeros(constraints),
        initial=rng.dirichlet(np.ones(4)),
        horizon=None if discount else 4,
        discount=discount,
    )
    free, safe = plan(cmdp, np.zeros(constraints)).costs, greatest_slack(cmdp).costs
    return replace(cmdp, thresholds=safe + 0.5 * np.abs(free - safe), trusted=True)


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(slack=("loose",), max_states=5, max_horizon=4))
def test_the_gap_is_within_the_tolerance_and_the_thresholds_hold(cmdp):
    tolerance = 0.05 * cmdp.reward_range + 1e-9
    if cmdp.num_constraints:
        # With little slack the multipliers have a large bound, and the method takes very long.
        assume((greatest_slack(cmdp).costs <= cmdp.thresholds - 0.05 * cmdp.sizes[1:]).all())
    response = PrimalDual(tolerance=tolerance, max_iterations=20_000)(cmdp)
    assert response.gap <= tolerance * (1 + 1e-9)
    assert (response.costs <= cmdp.thresholds).all()
    assert Exact()(cmdp).value <= response.bound + 1e-9 * float(cmdp.sizes[0])
    if cmdp.discount is None:
        limits = fractions(cmdp.thresholds)
        assert all(cost <= limit for cost, limit in zip(exact_costs(cmdp, response.policy), limits, strict=True))


@pytest.mark.parametrize("constraints", [1, 2, 3])
@pytest.mark.parametrize("discount", [None, 0.8])
def test_smaller_tolerances_take_longer_and_come_closer(constraints, discount):
    cmdp = binding_cmdp(constraints, constraints=constraints, discount=discount)
    best = Exact()(cmdp).value
    loose, close = (PrimalDual(tolerance=each * cmdp.reward_range)(cmdp) for each in (0.1, 0.005))
    assert loose.work <= close.work
    assert best - close.value <= 0.005 * cmdp.reward_range + 1e-12
    assert close.multipliers.any()


def test_settings_are_part_of_the_value():
    assert PrimalDual() == PrimalDual()
    assert repr(PrimalDual(tolerance=0.5)) == "PrimalDual(tolerance=0.5, max_iterations=100000)"


def test_without_need_of_a_price_one_plan_is_enough():
    response = PrimalDual(tolerance=1e-9)(one_state([0.0, 1.0], [0.0, 1.0], thresholds=[5.0], horizon=3))
    assert (response.value, response.work, response.multipliers.tolist()) == (3.0, 1, [0.0])


def test_no_constraints():
    response = PrimalDual()(
        CMDP(transition=[[[[1.0]] * 2]], reward=[[[1.0, 2.0]]], costs=[], thresholds=[], initial=[1.0], horizon=2)
    )
    assert (response.value, response.gap) == (4.0, 0.0)


@pytest.mark.parametrize("costs", [[[1.0, 2.0]], [[1.0, 2.0], [0.0, 5.0]]])
def test_zero_slack_is_an_error_that_advises_the_exact_solver(costs):
    cmdp = one_state([0.0, 1.0], costs, thresholds=[2.0] + [4.0] * (len(costs) - 1), horizon=2)
    with pytest.raises(SolverError, match=r"no policy is strictly feasible .* Use Exact\(\)"):
        PrimalDual()(cmdp)
    assert Exact()(cmdp).value == 0.0


def test_infeasibility_is_proven():
    with pytest.raises(InfeasibleError, match=r"least possible cost is 2, above the threshold 1\.5") as caught:
        PrimalDual()(one_state([0.0, 1.0], [1.0, 2.0], thresholds=[1.5], horizon=2))
    assert caught.value.multipliers.tolist() == [1.0]


def test_running_out_of_iterations_says_how_far_it_came():
    with pytest.raises(
        SolverError, match=r"still .* from optimal after 3 iterations; 1e-09 was requested\. Allow more"
    ):
        PrimalDual(tolerance=1e-9, max_iterations=3)(binding_cmdp(0))


def test_the_same_generator_gives_the_same_bits():
    cmdp = binding_cmdp(3, constraints=2)
    one, other = (PrimalDual(tolerance=0.05)(cmdp, rng=np.random.default_rng(5)) for _ in range(2))
    assert (one.policy == other.policy).all()
    assert one.multipliers.tolist() == other.multipliers.tolist()


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(slack=("loose",), constraints=(1, 3)), seed=SEEDS)
def test_any_occupancy_is_repaired_by_the_least_mixing(cmdp, seed):
    """Of the unconstrained optimum, no more is given up than excess/(excess + slack)."""
    safe, free = greatest_slack(cmdp), plan(cmdp, np.zeros(cmdp.num_constraints), rng=np.random.default_rng(seed))
    slacks = cmdp.thresholds - 2 * cost_margins(cmdp) - safe.costs
    assume((slacks > 1e-6 * cmdp.sizes[1:]).all())
    policy = repaired(cmdp, occupancy(cmdp, free.policy(cmdp.num_actions)), safe)
    judged = evaluate(cmdp, policy)
    assert (judged.costs <= cmdp.thresholds).all()
    excess = np.maximum(free.costs - cmdp.thresholds + 2 * cost_margins(cmdp), 0.0)
    share = float(np.max(excess / (excess + slacks)))
    expected = (1 - share) * free.value + share * evaluate(cmdp, safe.policy).value
    assert judged.value >= expected - 1e-8 * float(cmdp.sizes[0])
