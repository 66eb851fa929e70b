"""The exact solver: optimal by its own bound, feasible in exact arithmetic, whatever the scale, slack or ties."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cmdps import cmdps, exact_costs, exact_discounted_costs, fractions, one_state, random_policy

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact, greatest_slack, provably_meets
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound, plan
from cmpg.cmdp.response import cost_margins
from cmpg.errors import InfeasibleError

SEEDS = st.integers(0, 2**32 - 1)
SCALES = (1.0, 1e9, 1e-9)


def excesses(cmdp, policy):
    """V^{c_j} − α_j in rationals."""
    return [cost - limit for cost, limit in zip(exact_costs(cmdp, policy), fractions(cmdp.thresholds), strict=True)]


# --- Optimality and feasibility ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(cmdp=cmdps(scales=SCALES))
def test_the_gap_is_rounding_and_the_thresholds_hold(cmdp):
    """Dense and sparse, stationary or not, finite or discounted, loose or with no slack at all, k = 0 to 3."""
    response = Exact()(cmdp)
    assert response.policy.shape == cmdp.policy_shape
    assert response.policy.sum(axis=2) == pytest.approx(np.ones(cmdp.policy_shape[:2]))
    assert (response.policy >= 0).all()
    assert (response.multipliers >= 0).all()
    assert response.gap <= 1e-9 * float(cmdp.sizes[0])
    assert (response.costs <= cmdp.thresholds + cost_margins(cmdp)).all()
    judged = evaluate(cmdp, response.policy)
    assert (response.value, response.bound) == (judged.value, dual_bound(cmdp, response.multipliers))
    assert response.costs.tolist() == judged.costs.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_of_zero_are_kept_at_no_price_by_mixtures(seed):
    """A plan that spends any of such a threshold must not be mixed in with a weight that is only rounding."""
    rng = np.random.default_rng(seed)
    shape = (1, 5, 2)
    some = CMDP(
        transition=np.eye(5)[rng.integers(5, size=(*shape, 2))].mean(axis=-2),
        reward=(rng.random(shape) < 0.3) * 1.0,
        costs=(rng.random((12, *shape)) < 0.25) * 1.0,
        thresholds=np.zeros(12),
        initial=np.eye(5)[0],
        horizon=3,
    )
    cheap, free = (plan(some, np.full(12, each), reward_weight=1.0 - each).costs for each in (1.0, 0.0))
    cmdp = replace(some, thresholds=cheap + np.abs(free - cheap) / 2)
    response = Exact()(cmdp)
    assert response.gap <= 1e-9
    assert (response.costs <= cmdp.thresholds + cost_margins(cmdp)).all()


@settings(deadline=None, max_examples=30)
@given(cmdp=cmdps(discounted=False, slack=("loose",), max_states=5, max_horizon=4, constraints=(1, 3), scales=SCALES))
def test_thresholds_with_slack_are_met_in_exact_arithmetic(cmdp):
    assert max(excesses(cmdp, Exact()(cmdp).policy)) <= 0


@settings(deadline=None, max_examples=30)
@given(
    cmdp=cmdps(discounted=False, slack=("tight",), rough=False, max_states=5, max_horizon=4, constraints=(1, 3)),
)
def test_zero_slack_is_met_in_exact_arithmetic_where_ties_are_exact(cmdp):
    assert max(excesses(cmdp, Exact()(cmdp).policy)) <= 0


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(discounted=False, slack=("tight",), rough=True, max_states=5, max_horizon=4, constraints=(1, 3)))
def test_zero_slack_is_never_exceeded_by_more_than_the_margin(cmdp):
    over = excesses(cmdp, Exact()(cmdp).policy)
    assert all(each <= margin for each, margin in zip(over, fractions(cost_margins(cmdp)), strict=True))


@settings(deadline=None, max_examples=15)
@given(cmdp=cmdps(discounted=True, slack=("loose",), max_states=3, max_actions=2, constraints=(1, 2)))
def test_discounted_thresholds_are_met_in_exact_arithmetic(cmdp):
    costs = exact_discounted_costs(cmdp, Exact()(cmdp).policy)
    assert all(cost <= limit for cost, limit in zip(costs, fractions(cmdp.thresholds), strict=True))


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(slack=("loose",)), seed=SEEDS)
def test_no_feasible_policy_is_worth_more(cmdp, seed):
    rng, response = np.random.default_rng(seed), Exact()(cmdp)
    for _ in range(10):
        judged = evaluate(cmdp, random_policy(cmdp, rng))
        if (judged.costs <= cmdp.thresholds).all():
            assert judged.value <= response.value + 1e-9 * float(cmdp.sizes[0])


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(slack=("loose",), constraints=(1, 3)))
def test_the_multipliers_bound_what_more_budget_is_worth(cmdp):
    """Weak duality for other thresholds: the value is concave in α, and λ is a slope of it."""
    response = Exact()(cmdp)
    more = 0.25 * np.maximum(cmdp.step_sizes[1:], 1e-9)
    richer = Exact()(replace(cmdp, thresholds=cmdp.thresholds + more, trusted=True))
    rounding = 1e-9 * float(cmdp.sizes[0])
    assert response.value - rounding <= richer.value <= response.value + response.multipliers @ more + rounding


# --- Zero slack, ties, scales, odd shapes -----------------------------------------------------------------------------


def test_a_plan_that_costs_the_threshold_to_the_last_bit_is_not_mixed():
    """One state, half the runs pay 1 at each of two steps that cannot be avoided at this reward: V^c = 0.5 = α."""
    response = Exact()(one_state([0.0, 1.0], [0.0, 0.25], thresholds=[0.5], horizon=2))
    assert response.policy.tolist() == [[[0.0, 1.0]], [[0.0, 1.0]]]
    assert response.costs.tolist() == [0.5]


@pytest.mark.parametrize(("cost", "steps", "threshold"), [(0.1, 3, 0.3), (0.1, 7, 0.7), (0.1, 6, 0.6), (1 / 3, 3, 1.0)])
def test_sums_of_decimals_are_judged_as_the_rationals_that_they_are(cost, steps, threshold):
    """Three times 0.1 is more than 0.3, and seven times more than 0.7, even where the floats agree or err."""
    cmdp = one_state([0.0, 1.0], [0.0, cost], thresholds=[threshold], horizon=steps)
    response = Exact()(cmdp)
    assert excesses(cmdp, response.policy)[0] <= 0
    assert response.value == pytest.approx(steps)
    all_in = plan(cmdp, np.zeros(1))
    assert provably_meets(cmdp, all_in) == (steps * Fraction(cost) <= Fraction(threshold))


@pytest.mark.parametrize("constraints", [1, 2, 3])
def test_everything_tied(constraints):
    cmdp = CMDP(
        transition=np.full((1, 4, 3, 4), 0.25),
        reward=np.ones((1, 4, 3)),
        costs=np.ones((constraints, 1, 4, 3)),
        thresholds=np.full(constraints, 5.0),
        initial=np.full(4, 0.25),
        horizon=5,
    )
    response = Exact()(cmdp)
    assert (response.value, response.costs.tolist()) == (5.0, [5.0] * constraints)
    assert response.gap <= 1e-12


@pytest.mark.parametrize("constraints", [1, 2])
def test_zero_cost_and_a_threshold_of_zero(constraints):
    """No rounding margin is taken off nothing: only actions that cost nothing at all are played."""
    cmdp = one_state([1.0, 2.0, 5.0], [[0.0, 0.0, 1e-18]] * constraints, thresholds=[0.0] * constraints, horizon=3)
    response = Exact()(cmdp)
    assert response.value == 6.0
    assert not response.costs.any()
    assert not response.policy[..., 2].any()


def test_single_actions():
    response = Exact()(one_state([3.0], [[2.0], [-1.0]], thresholds=[4.0, -2.0], horizon=2))
    assert (response.value, response.costs.tolist()) == (6.0, [4.0, -2.0])


def test_unreachable_states_play_the_safest_action():
    cmdp = CMDP(
        transition=np.broadcast_to(np.eye(2)[0], (1, 2, 2, 2)),
        reward=[[[0.0, 1.0], [0.0, 1.0]]],
        costs=[[[[0.0, 1.0], [0.0, 1.0]]]],
        thresholds=[1.0],
        initial=[1.0, 0.0],
        horizon=2,
    )
    response = Exact()(cmdp)
    assert response.value == pytest.approx(1.0)
    assert response.policy[:, 1].tolist() == [[1.0, 0.0]] * 2


def test_constraints_of_very_different_size():
    """A budget in euros and one in 1e-9 of something do not disturb each other."""
    rng = np.random.default_rng(3)
    scales = np.array([1e9, 1.0, 1e-9])
    tables = rng.random((3, 1, 6, 4))
    plain = CMDP(
        transition=rng.dirichlet(np.ones(6), size=(1, 6, 4)),
        reward=rng.random((1, 6, 4)),
        costs=tables,
        thresholds=[2.0, 2.05, 2.1],
        initial=rng.dirichlet(np.ones(6)),
        horizon=5,
    )
    scaled = replace(
        plain, costs=tables * scales[:, None, None, None], thresholds=plain.thresholds * scales, trusted=True
    )
    one, other = Exact()(plain), Exact()(scaled)
    assert one.multipliers.any()
    assert other.value == pytest.approx(one.value, rel=1e-10)
    assert other.multipliers * scales == pytest.approx(one.multipliers, rel=1e-6, abs=1e-9)
    assert (other.costs <= scaled.thresholds).all()


def test_many_constraints():
    rng = np.random.default_rng(0)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(6), size=(4, 6, 3)),
        reward=rng.random((4, 6, 3)),
        costs=rng.random((8, 4, 6, 3)),
        thresholds=np.full(8, 2.0),
        initial=rng.dirichlet(np.ones(6)),
        horizon=4,
    )
    response = Exact()(cmdp)
    assert response.gap <= 1e-10
    assert max(excesses(cmdp, response.policy)) <= 0


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(rough=False), seed=SEEDS)
def test_random_ties_change_the_policy_and_not_the_value(cmdp, seed):
    one, other = (Exact()(cmdp, rng=np.random.default_rng(seed)) for _ in range(2))
    assert (one.policy == other.policy).all()
    assert one.value == pytest.approx(Exact()(cmdp).value, abs=1e-9 * float(cmdp.sizes[0]))


# --- Infeasibility and slack ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(cmdp=cmdps(slack=("tight",), constraints=(1, 3)), seed=SEEDS)
def test_infeasibility_comes_with_its_proof(cmdp, seed):
    """The thresholds of a plan of least weighted cost, lowered together, cannot be met."""
    weights = np.random.default_rng(seed).integers(1, 5, size=cmdp.num_constraints).astype(float)
    least = plan(cmdp, weights, reward_weight=0.0).costs
    below = replace(cmdp, thresholds=least - 1e-6 * (1 + cmdp.sizes[1:]), trusted=True)
    with pytest.raises(InfeasibleError, match="no policy meets the constraints") as caught:
        Exact()(below)
    proof = caught.value.multipliers
    assert (proof >= 0).all()
    cheapest = plan(below, proof, reward_weight=0.0).costs
    assert proof @ cheapest > proof @ below.thresholds


def test_the_error_says_what_is_possible_and_what_is_asked():
    with pytest.raises(
        InfeasibleError, match=r"least possible cost is 2, above the threshold 1.5.*Raise the thresholds"
    ):
        Exact()(one_state([0.0, 1.0], [1.0, 2.0], thresholds=[1.5], horizon=2))


@settings(deadline=None, max_examples=25)
@given(cmdp=cmdps(constraints=(1, 3)), seed=SEEDS)
def test_the_greatest_slack_is_proven(cmdp, seed):
    found = greatest_slack(cmdp)
    size = float((cmdp.sizes[1:] + np.abs(cmdp.thresholds)).max())
    assert found.multipliers.sum() == pytest.approx(1.0)
    assert found.slack == (cmdp.thresholds - found.costs).min()
    assert evaluate(cmdp, found.policy).costs == pytest.approx(found.costs)
    assert found.slack == pytest.approx(found.multipliers @ cmdp.thresholds - found.least, abs=1e-9 * size)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        slack = (cmdp.thresholds - evaluate(cmdp, random_policy(cmdp, rng)).costs).min()
        assert slack <= found.slack + 1e-9 * size


def test_slack_can_be_measured_in_units():
    """In units of 1 and 100, costs (0, 100) and (1, 0) are balanced half and half."""
    cmdp = one_state([0.0, 0.0], [[0.0, 1.0], [100.0, 0.0]], thresholds=[1.0, 100.0])
    assert greatest_slack(cmdp, units=np.array([1.0, 100.0])).policy[0, 0] == pytest.approx([0.5, 0.5])
    assert greatest_slack(cmdp).policy[0, 0] == pytest.approx([100 / 101, 1 / 101])


def best_of_two_actions(reward, costs, thresholds):
    """By hand: the probability of the second action lies in an interval, and the best is at one of its ends."""
    low, high = Fraction(0), Fraction(1)
    for (first, second), limit in zip(costs, thresholds, strict=True):
        rise, room = Fraction(second) - Fraction(first), Fraction(limit) - Fraction(first)
        if rise > 0:
            high = min(high, room / rise)
        elif rise < 0:
            low = max(low, room / rise)
        elif room < 0:
            return None
    return max(reward[0] + (reward[1] - reward[0]) * share for share in (low, high)) if low <= high else None


@pytest.mark.parametrize("limits", list(product((0.0, 0.25, 0.5), repeat=2)))
def test_two_constraints_of_a_two_by_two_game_are_solved_exactly_even_if_every_response_spends_one(limits):
    # What one agent faces in all 2 × 2 games with two costs of 0 or 1, while the other mixes evenly.
    for number, costs in enumerate(product((0.0, 0.5, 1.0), repeat=4)):
        reward, pairs = (number % 2, 1 - number % 2), (costs[:2], costs[2:])
        cmdp = CMDP(
            transition=np.ones((1, 1, 2, 1)),
            reward=np.array(reward, dtype=float)[None, None],
            costs=np.array(pairs)[:, None, None],
            thresholds=np.array(limits),
            initial=np.ones(1),
            horizon=1,
        )
        best = best_of_two_actions(reward, pairs, limits)
        if best is None:
            with pytest.raises(InfeasibleError):
                Exact()(cmdp)
        else:
            assert Exact()(cmdp).value == pytest.approx(float(best), abs=1e-12)
