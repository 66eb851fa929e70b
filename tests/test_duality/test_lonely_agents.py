"""The primal value where there is nobody to agree with, and where nothing feasible is found."""

from unittest.mock import patch

import numpy as np
import pytest

import cmpg
from cmpg.duality import dual_value, primal_value
from cmpg.equilibrium.result import Result, Status


def lonely():
    """One agent, three lanes, of which two are faster and cost something."""
    return cmpg.JointGame(
        transition=np.ones((1, 1, 3, 1)),
        rewards=np.array([0.0, 1.0, 1.6]).reshape(1, 1, 1, 3),
        costs=np.array([0.0, 1.0, 3.0]).reshape(1, 1, 1, 3),
        thresholds=[2.0],
        initial=[1.0],
        horizon=1,
    )


def test_for_one_agent_there_is_no_gap_and_the_planner_s_policy_is_its_own():
    game = lonely()
    found = primal_value(game)
    assert (found.lower, found.upper) == pytest.approx((1.3, 1.3), abs=1e-9)
    assert game.at(found.policy).values[0] == pytest.approx(1.3, abs=1e-9)
    assert found.upper == dual_value(game).upper


def test_where_no_feasible_policy_is_found_only_the_upper_bound_is_told():
    game = cmpg.scenarios.grid_world(horizon=2)
    nothing = Result(Status.FEASIBILITY_UNKNOWN, "", 1e-6, game=game)
    with (
        patch("cmpg.duality.dual_function.solve", return_value=nothing),
        patch("cmpg.duality.dual_function.meets_thresholds", return_value=False),
    ):
        found = primal_value(game)
    assert (found.lower, found.policy) == (-np.inf, None)
    assert np.isfinite(found.upper)
