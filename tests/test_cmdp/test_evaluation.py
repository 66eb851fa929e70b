"""Evaluation against numbers computed by hand: values of actions, rounding, occupancies, linear systems."""

from fractions import Fraction

import numpy as np
import pytest
from random_cmdps import one_state

from cmpg.arrays import UNIT_ROUNDOFF
from cmpg.cmdp.evaluation import (
    Underflow,
    action_values,
    check_policy,
    cost_rounding,
    evaluate,
    occupancy,
    policy_from_occupancy,
)
from cmpg.cmdp.model import CMDP
from cmpg.errors import PolicyError


def chain(**time):
    """Two states and two actions; stationary, with one cost of either sign and one of both."""
    return CMDP(
        transition=[[[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]]],
        reward=[[[1.0, 2.0], [4.0, 8.0]]],
        costs=[[[[1.0, 0.0], [0.5, 2.0]]], [[[1.0, -1.0], [0.0, 3.0]]]],
        thresholds=[3.0, 5.0],
        initial=[0.75, 0.25],
        **time,
    )


HALVES = np.full((1, 2, 2), 0.5)


# --- Steps ------------------------------------------------------------------------------------------------------------


def test_values_of_actions_are_the_stage_and_what_follows():
    two = action_values(chain(horizon=2), np.full((2, 2, 2), 0.5))
    assert two.shape == (2, 3, 2, 2)
    assert two[1].tolist() == [[[1, 2], [4, 8]], [[1, 0], [0.5, 2]], [[1, -1], [0, 3]]]
    # Ahead, the reward is worth 1.5 and 6, the costs 0.5 and 1.25, and 0 and 1.5.
    assert two[0, 0].tolist() == [[1 + 3.75, 2 + 6.0], [4 + 1.5, 8 + 4.875]]
    assert two[0, 2].tolist() == [[1 + 0.75, -1 + 1.5], [0.0, 3 + 1.125]]
    cmdp = chain(discount=0.5)
    for_ever = action_values(cmdp, HALVES)[0]
    values = for_ever.mean(axis=2)
    for place, table in enumerate((cmdp.reward, *cmdp.costs)):
        ahead = np.asarray(cmdp.transition)[0] @ values[place]
        assert for_ever[place] == pytest.approx(table[0] + 0.5 * ahead, abs=1e-12)


# --- Rounding ---------------------------------------------------------------------------------------------------------


def test_the_rounding_of_a_cost_is_relative_where_it_is_nowhere_negative():
    costs = np.array([3.0, -0.25])
    finite, for_ever = chain(horizon=4), chain(discount=0.5)
    assert cost_rounding(finite, costs).tolist() == [finite.rounding * 3.0, finite.rounding * 4 * 3.0]
    assert cost_rounding(finite, -costs).tolist() == [finite.rounding * 3.0, finite.rounding * 4 * 3.0]
    assert cost_rounding(for_ever, costs).tolist() == [for_ever.rounding * 4.0, for_ever.rounding * 6.0]


def test_what_underflow_hides_grows_with_the_roundings_and_the_sizes():
    hidden = Underflow.behind(10 * UNIT_ROUNDOFF, rewards=[0.0, 3.0], costs=[0.0, 1e300])
    assert hidden.rewards.tolist() == [10 * 2.0**-1073, 40 * 2.0**-1073]
    assert hidden.costs[0] == 10 * 2.0**-1073
    assert hidden.costs[1] == pytest.approx(10 * 2.0**-1073 * 1e300, rel=1e-6, abs=0.0)


# --- Policies ---------------------------------------------------------------------------------------------------------


def test_rows_that_are_never_visited_are_filled_and_the_others_divided_by_their_sums():
    visits = np.array([[[1e-300, 3e-300], [0.0, 0.0], [1.5, 0.5]]])
    filling = np.array([[[9.0, 9.0], [0.25, 0.75], [9.0, 9.0]]])
    assert policy_from_occupancy(visits, filling).tolist() == [[[0.25, 0.75], [0.25, 0.75], [0.75, 0.25]]]


def test_visits_are_never_negative_and_add_up():
    visits = occupancy(chain(discount=0.5), HALVES)
    assert visits.sum() == pytest.approx(2.0, abs=1e-12)
    assert (visits[0, :, 0] == visits[0, :, 1]).all()
    nowhere = occupancy(one_state([1.0, 1.0], [0.0, 0.0], horizon=None, discount=0.5), [[[1.0, 0.0]]])
    assert nowhere.tolist() == [[[2.0, 0.0]]]
    steps = occupancy(chain(horizon=2), np.full((2, 2, 2), 0.5))
    assert steps[0].tolist() == [[0.375, 0.375], [0.125, 0.125]]
    assert steps[1].sum(axis=1).tolist() == [0.375 * 0.5 + 0.125 + 0.125 * 0.25, 0.375 * 1.5 + 0.125 * 0.75]


def test_policies_are_read_in_floats():
    cmdp = one_state([0.0, 1.0], [0.0, 0.0])
    third = np.array([[[Fraction(1, 3), Fraction(2, 3)]]], dtype=object)
    assert check_policy(cmdp, third).dtype == np.float64
    assert check_policy(cmdp, third).tolist() == [[[1 / 3, 2 / 3]]]
    floats = np.array([[[0.25, 0.75]]])
    assert check_policy(cmdp, floats) is floats
    for wrong in ([[[0.5, 0.5], [0.5, 0.5]]], np.array([[["x", 1]]], dtype=object)):
        with pytest.raises(PolicyError):
            check_policy(cmdp, wrong)


# --- Linear systems ---------------------------------------------------------------------------------------------------


def test_discounted_values_and_costs_solve_their_equations():
    found = evaluate(chain(discount=0.5), HALVES)
    flow = np.array([[0.25, 0.75], [0.625, 0.375]])
    stage = np.array([[1.5, 0.5, 0.0], [6.0, 1.25, 1.5]])
    expected = [0.75, 0.25] @ np.linalg.solve(np.eye(2) - 0.5 * flow, stage)
    assert [found.value, *found.costs] == pytest.approx(expected, abs=1e-12)
