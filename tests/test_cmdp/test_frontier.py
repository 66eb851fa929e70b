"""The frontier search on frontiers that are written down: edges, guesses, mixtures, and the widest slack."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from cmpg.cmdp.frontier import best_mixture, widest_slack
from cmpg.errors import InfeasibleError


@dataclass(frozen=True)
class Point:
    """A plan that is nothing but its value and its costs."""

    value: float
    costs: np.ndarray

    def policy(self, num_actions):
        return np.full((1, 1, num_actions), self.value)


def point(value, *costs):
    return Point(float(value), np.array(costs, dtype=float))


class Frontier:
    """Plans to choose from; mixtures cost what their parts do on average, and `off` of that more."""

    num_actions = 2

    def __init__(self, points, thresholds, *, margins=None, off=0.0):
        self.points = points
        self.thresholds = np.array(thresholds, dtype=float)
        self.margins = np.zeros(len(self.thresholds)) if margins is None else np.array(margins, dtype=float)
        self.largest_costs = np.max([np.abs(each.costs) for each in points], axis=0, initial=0.0)
        self.off, self.tried, self.mixed = off, [], []

    def plan(self, multipliers, *, reward_weight=1.0):
        self.tried.append((reward_weight, *multipliers.tolist()))
        worth = [reward_weight * each.value - multipliers @ each.costs for each in self.points]
        return self.points[int(np.argmax(worth))]

    def mix(self, plans, *, weights, unvisited):
        assert unvisited.shape == (1, 1, 2)
        assert len(weights) == len(plans)
        self.mixed.append((list(plans), weights.tolist()))
        costs = weights @ np.array([each.costs for each in plans]) if len(self.thresholds) else np.zeros(0)
        return SimpleNamespace(
            costs=costs + self.off, policy=unvisited, value=float(weights @ [each.value for each in plans])
        )

    def infeasible(self, multipliers, least):
        return InfeasibleError(f"{multipliers.tolist()} pay {least}")


CONCAVE = [point(0, 0), point(4, 1), point(7, 2), point(9, 3), point(10, 4)]  # slopes 4, 3, 2 and 1


# --- One constraint ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "value", "slope"), [(0.5, 2.0, 4.0), (1.25, 4.75, 3.0), (2.5, 8.0, 2.0), (3.75, 9.75, 1.0)]
)
def test_the_edge_that_crosses_the_threshold_is_mixed_to_it(threshold, value, slope):
    program = Frontier(CONCAVE, [threshold])
    found = best_mixture(program)
    assert found.mixture.value == pytest.approx(value, abs=1e-12)
    assert found.mixture.costs[0] == pytest.approx(threshold, abs=1e-12)
    assert found.multipliers[0] == pytest.approx(slope, abs=1e-12)
    assert found.plans == len(program.tried)


def test_without_constraints_and_where_the_best_plan_fits_one_plan_is_enough():
    free = Frontier([point(3), point(5)], [])
    found = best_mixture(free)
    assert (found.mixture.value, found.multipliers.shape, found.plans) == (5.0, (0,), 1)
    for threshold in (4.0, 5.0):
        program = Frontier(CONCAVE, [threshold])
        found = best_mixture(program)
        assert (found.mixture.value, found.multipliers.tolist(), found.plans) == (10.0, [0.0], 1)
        assert program.tried == [(1.0, 0.0)]
        assert program.mixed == [([CONCAVE[4]], [1.0])]


def test_what_not_even_the_cheapest_plan_meets_is_infeasible_beyond_the_margin():
    with pytest.raises(InfeasibleError, match=r"\[1\.0\] pay 1\.0"):
        best_mixture(Frontier([point(1, 1), point(5, 2)], [0.5], margins=[0.25]))
    program = Frontier([point(1, 1), point(5, 2)], [0.75], margins=[0.25])
    assert best_mixture(program).mixture.value == 1.0
    assert program.tried[:2] == [(1.0, 0.0), (0.0, 1.0)]


def test_where_the_cheapest_plan_fits_by_the_oracle_the_search_goes_on_by_the_oracle():
    points = [point(0, 1), point(5, 2)]
    program = Frontier(points, [1.0], margins=[0.25])
    assert best_mixture(program, accepts=lambda plan: plan.costs[0] <= 1.0).mixture.value == 0.0
    # Without one, plans that cannot be told apart from the cheapest have to do.
    close = [point(0, 1.0), point(3, 1.2), point(5, 2)]
    assert best_mixture(Frontier(close, [1.0], margins=[0.25])).mixture.value == 3.0
    assert best_mixture(Frontier(close, [1.0], margins=[0.125])).mixture.value == 0.0


# --- Several constraints ----------------------------------------------------------------------------------------------


TWO = [point(0, 0, 0), point(6, 2, 0), point(6, 0, 2), point(9, 2, 2), point(1, 4, 4)]


@pytest.mark.parametrize(
    ("thresholds", "value"), [((1, 1), 6.0), ((2, 0.5), 6.75), ((0.5, 0.5), 3.0), ((2, 2), 9.0), ((2, 0), 6.0)]
)
def test_several_constraints_are_met_by_the_best_mixture(thresholds, value):
    program = Frontier(TWO, thresholds)
    found = best_mixture(program)
    assert found.mixture.value == pytest.approx(value, abs=1e-9)
    assert (found.mixture.costs <= program.thresholds + 1e-12).all()
    assert found.plans == len(program.tried)
    bound = found.multipliers @ program.thresholds + max(p.value - found.multipliers @ p.costs for p in TWO)
    assert bound == pytest.approx(value, abs=1e-9)


def test_costs_of_zero_everywhere_are_measured_in_units_of_one():
    found = best_mixture(Frontier([point(1, 0, 0), point(3, 0, 1)], [1.0, 0.5]))
    assert found.mixture.value == pytest.approx(2.0, abs=1e-9)


def test_the_widest_slack_is_that_of_the_worst_constraint():
    points = [point(0, 3, 1), point(0, 1, 3), point(0, 4, 4)]
    program = Frontier(points, [4.0, 4.0])
    found = widest_slack(program)
    assert found.slack == pytest.approx(2.0, abs=1e-12)
    assert found.costs.tolist() == pytest.approx([2.0, 2.0], abs=1e-12)
    assert found.multipliers.tolist() == pytest.approx([0.5, 0.5], abs=1e-12)
    assert found.least == pytest.approx(2.0, abs=1e-12)
    assert found.made == len(program.tried)
    assert all(weight == 0.0 for weight, *_ in program.tried)
    uneven = widest_slack(Frontier([point(0, 3, 0), point(0, 0, 1)], [3.0, 1.0]), units=np.array([3.0, 1.0]))
    assert uneven.costs.tolist() == pytest.approx([1.5, 0.5], abs=1e-12)
    assert uneven.slack == pytest.approx(0.5, abs=1e-12)
    assert uneven.multipliers @ [3.0, 1.0] == pytest.approx(1.0, abs=1e-12)


def test_slack_that_will_do_ends_the_search():
    points = [point(0, 3, 1), point(0, 1, 3), point(0, 4, 4)]
    early = Frontier(points, [4.0, 4.0])
    assert widest_slack(early, enough=0.5).slack == pytest.approx(1.0, abs=1e-12)
    assert len(early.tried) == 1
    assert widest_slack(Frontier(points, [4.0, 4.0]), enough=1.0).slack == pytest.approx(2.0, abs=1e-12)
