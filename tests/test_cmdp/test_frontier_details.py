"""The frontier search in detail: guesses, edges, mixtures and smoothing, on frontiers that are written down."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from cmpg.cmdp import frontier
from cmpg.cmdp.frontier import best_mixture, widest_slack
from cmpg.errors import InfeasibleError, SolverError


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


@pytest.mark.parametrize("near", [0.6, 2.0, 2.2, 3.4, 7.0, 100.0])
@pytest.mark.parametrize("threshold", [0.5, 1.25, 2.5])
def test_a_guess_changes_the_way_and_not_the_answer(near, threshold):
    program = Frontier(CONCAVE, [threshold])
    expected = best_mixture(Frontier(CONCAVE, [threshold]))
    found = best_mixture(program, near=near)
    assert program.tried[0] == (1.0, near)
    assert found.mixture.value == pytest.approx(expected.mixture.value, abs=1e-12)
    assert found.multipliers[0] == pytest.approx(expected.multipliers[0], abs=1e-12)
    if near != 100.0:  # given up, and begun again
        assert found.plans == len(program.tried)


def test_guesses_widen_upwards_until_something_fits_and_downwards_until_it_does_not():
    above = Frontier(CONCAVE, [2.5])
    best_mixture(above, near=1.7)
    assert above.tried[:2] == [(1.0, 1.7), (1.0, 1.7 * 1.3)]
    below = Frontier(CONCAVE, [2.5])
    best_mixture(below, near=3.5)
    assert below.tried[:3] == [(1.0, 3.5), (1.0, 3.5 / 1.3), (1.0, 3.5 / 2.5)]
    lost = Frontier(CONCAVE, [2.5])
    best_mixture(lost, near=50.0)
    assert lost.tried[:5] == [(1.0, 50.0), (1.0, 50.0 / 1.3), (1.0, 50.0 / 2.5), (1.0, 50.0 / 10.0), (1.0, 0.0)]


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


def test_a_plan_fits_by_a_margin_or_by_the_word_of_the_oracle_or_as_computed():
    program = Frontier(CONCAVE, [1.0, 1.0], margins=[0.25, 0.25])
    asked = []

    def fits(cost, word=None, other=0.0):
        def accepts(plan):
            asked.append(float(plan.costs[0]))
            return word

        return frontier._fits(program, point(0, cost, other), accepts=None if word is None else accepts)

    assert fits(0.75)
    assert fits(1.0)
    assert not fits(1.125)
    assert not fits(0.0, other=1.125)
    assert fits(0.75, False)
    assert not asked
    assert [fits(0.875, True), fits(0.875, False), fits(1.25, True)] == [True, False, True]
    assert asked == [0.875, 0.875, 1.25]
    assert not fits(1.5, True)
    assert not fits(0.5, True, other=1.5)
    assert len(asked) == 3


def test_where_the_cheapest_plan_fits_by_the_oracle_the_search_goes_on_by_the_oracle():
    points = [point(0, 1), point(5, 2)]
    program = Frontier(points, [1.0], margins=[0.25])
    assert best_mixture(program, accepts=lambda plan: plan.costs[0] <= 1.0).mixture.value == 0.0
    # Without one, plans that cannot be told apart from the cheapest have to do.
    close = [point(0, 1.0), point(3, 1.2), point(5, 2)]
    assert best_mixture(Frontier(close, [1.0], margins=[0.25])).mixture.value == 3.0
    assert best_mixture(Frontier(close, [1.0], margins=[0.125])).mixture.value == 0.0


def test_slopes_and_heights_are_those_of_the_line_through_both_ends():
    bracket = frontier._Bracket(point(1, 2), point(7, 5), np.inf, 0.0)
    assert bracket.slope == 2.0
    assert bracket.height(point(4, 3.5)) == 0.0
    assert bracket.height(point(6, 3.5)) == 2.0 / 10.0  # the largest of 1, 7, 2 · 2 and 2 · 5
    assert bracket.height(point(3, 3.5)) == -1.0 / 10.0
    assert frontier._Bracket(point(-20, 2), point(4, 5), np.inf, 0.0).height(point(-10, 2)) == 10.0 / 40.0
    assert frontier._Bracket(point(-90, 2), point(-84, 5), np.inf, 0.0).height(point(-88, 2)) == 2.0 / 90.0
    assert frontier._Bracket(point(0, -9), point(6, -6), np.inf, 0.0).height(point(1, -9)) == 1.0 / 18.0
    assert frontier._Bracket(point(0, 0), point(0, 5), np.inf, 0.0).height(point(3, 1)) == 3.0


def minimum_of_cubic(bracket, threshold):
    """The minimum of the cubic through both values and slopes of the dual function, by its derivative's roots."""
    low, high = bracket.right_multiplier, bracket.left_multiplier
    ends = ((low, bracket.right), (high, bracket.left))
    rows = [[x**3, x**2, x, 1.0] for x, _ in ends] + [[3 * x**2, 2 * x, 1.0, 0.0] for x, _ in ends]
    right = [plan.value + x * (threshold - plan.costs[0]) for x, plan in ends]
    cubic = np.linalg.solve(rows, right + [threshold - plan.costs[0] for _, plan in ends])
    roots = [root.real for root in np.roots(np.polyder(cubic)) if abs(root.imag) < 1e-12]
    return next(x for x in roots if low < x < high and np.polyval(np.polyder(cubic, 2), x) > 0)


def test_a_guess_is_the_minimum_of_the_cubic_and_goes_beyond_where_it_is_beside_an_end():
    rng, kinds = np.random.default_rng(0), set()
    for _ in range(200):
        low, width = rng.uniform(0.1, 2), rng.uniform(0.5, 3)
        high = low + width
        left, right = rng.uniform(0, 1), rng.uniform(2, 3)
        threshold = rng.uniform(left, right)
        # Convex: the tangents meet between both ends, and the values are above them.
        across = rng.uniform(low, high)
        value = right_value = rng.uniform(-1, 1)
        left_value = value + across * (right - left) * -1.0
        bracket = frontier._Bracket(point(left_value, left), point(right_value, right), high, low)
        guess, minimum = bracket.estimate(threshold), minimum_of_cubic(bracket, threshold)
        if minimum - low < 0.1 * width:
            kinds.add("low")
            minimum = low + 3 * (minimum - low)
        elif high - minimum < 0.1 * width:
            kinds.add("high")
            minimum = high - 3 * (high - minimum)
        else:
            kinds.add("inside")
        assert guess == pytest.approx(minimum, abs=1e-7)
    assert kinds == {"low", "high", "inside"}


def test_there_is_no_guess_without_both_ends_or_where_one_of_them_meets_the_threshold():
    left, right = point(0, 1), point(4, 3)
    assert frontier._Bracket(left, right, np.inf, 0.0).estimate(2.0) is None
    assert frontier._Bracket(left, right, 3.0, 1.0).estimate(3.0) is None
    assert frontier._Bracket(left, right, 3.0, 1.0).estimate(1.0) is None
    assert frontier._Bracket(left, right, 3.0, 1.0).estimate(0.5) is None
    assert frontier._Bracket(left, right, 3.0, 1.0).estimate(3.5) is None
    assert frontier._Bracket(left, right, 3.0, 1.0).estimate(2.0) == pytest.approx(2.0, abs=1e-12)


def test_spending_more_for_nothing_has_a_price_of_zero():
    for right in (point(2, 3), point(1, 3), point(9, 1)):
        program = Frontier(CONCAVE, [2.0])
        bracket = frontier._Bracket(point(2, 1), right, np.inf, 0.0)
        edge = frontier._crossing_edge(program, bracket, fits=lambda _: True, guesses=0)
        assert (edge.left is bracket.left, edge.right is bracket.left, edge.multiplier, edge.plans) == (
            True,
            True,
            0,
            0,
        )


def smooth(steps):
    """A frontier of many short edges: value √cost."""
    return [point(np.sqrt(cost), cost) for cost in np.linspace(0, 1, steps + 1)]


def test_enough_guesses_save_plans_where_edges_are_short():
    bracket = frontier._Bracket(smooth(4096)[0], smooth(4096)[-1], 8.0, 0.25)

    def plans(guesses):
        program = Frontier(smooth(4096), [0.3])
        edge = frontier._crossing_edge(program, bracket, fits=lambda plan: plan.costs[0] <= 0.3, guesses=guesses)
        assert (edge.left.costs[0], edge.right.costs[0]) == (1228 / 4096, 1229 / 4096)
        assert edge.plans == len(program.tried)
        return edge.plans, len({each for each in program.tried})

    (without, _), (with_two, _), (with_many, different) = plans(0), plans(2), plans(9)
    assert (without, with_two, with_many) == (13, 14, 9)
    assert different == with_many


# --- Mixtures ---------------------------------------------------------------------------------------------------------


def mixed_to(threshold, *, off=0.0, right=3):
    """Mix plans that cost 1 and `right`, with a margin of an eighth; return the cost, and which weights were tried."""
    program = Frontier(CONCAVE, [threshold], margins=[0.125], off=off)
    edge = frontier._Edge(point(0, 1), point(4, right), 2.0, 0)
    mixture = frontier._mix_to_target(program, edge, unvisited=np.zeros((1, 1, 2)))
    return float(mixture.costs[0]), [weights for _, weights in program.mixed]


def test_ends_are_mixed_two_margins_inside_the_threshold():
    assert mixed_to(2.0) == (1.75, [[0.625, 0.375]])
    assert mixed_to(2.0, off=0.125) == (1.875, [[0.625, 0.375]])  # within a margin of where it should be


def test_a_left_end_that_is_there_already_is_taken_alone():
    assert mixed_to(1.25) == (1.0, [[1.0]])
    assert mixed_to(1.125) == (1.0, [[1.0]])
    assert mixed_to(1.375) == (1.125, [[0.9375, 0.0625]])


def test_what_costs_more_than_it_should_is_taken_back_twice_and_the_left_end_is_the_last_resort():
    cost, weights = mixed_to(2.0, off=0.25)
    assert weights == [[0.625, 0.375], [0.875, 0.125]]
    assert cost == 1.5
    cost, weights = mixed_to(1.5, off=0.5)
    assert weights == [[0.875, 0.125], [1.0, 0.0]]
    assert cost == 1.5
    assert mixed_to(2.0, right=1) == (1.0, [[1.0, 0.0]])


# --- Several constraints ----------------------------------------------------------------------------------------------


class Scripted:
    """A master whose answers are given beforehand."""

    def __init__(self, multipliers, improves, reaches=()):
        self.multipliers, self.good, self.enough = iter(multipliers), iter(improves), set(reaches)
        self.thresholds, self.added = np.array([1.0]), []

    def maximise_value(self):
        return np.array([next(self.multipliers)])

    def reaches(self, least, multipliers):
        return (float(least), float(multipliers[0])) in self.enough

    def improves(self, column, multipliers):
        return next(self.good)

    def add(self, column):
        self.added.append(column)


def test_plans_are_made_on_the_way_from_the_best_multipliers_to_the_masters():
    """Two plans at the master's own; then shares of ½, which grows where the bound rises ahead, and falls where not."""
    program = Frontier([point(0, 0)], [1.0])  # its bound at λ is λ: the least is the smallest that was tried
    master = Scripted([8.0, 6.0, 4.0, 8.0, 2.0, 9.0], [True, True, True, True, False, True, True])
    with pytest.raises(StopIteration):
        frontier._best_multipliers(program, master)
    # excess −1: the bound rises ahead of what was tried wherever the master's multiplier is larger.
    shares = [0.5, 0.4, 0.46, 0.46 * 0.7]
    tried = [8.0, 6.0, 0.5 * 6 + 0.5 * 4]
    tried.append(shares[1] * 5.0 + 0.6 * 8.0)
    tried += [shares[2] * 5.0 + 0.54 * 2.0, 2.0]
    tried.append(shares[3] * 2.0 + (1 - shares[3]) * 9.0)
    assert [multiplier for _, multiplier in program.tried] == pytest.approx(tried, abs=1e-12)
    assert len(master.added) == 6


def test_the_multipliers_of_the_least_bound_are_returned_where_nothing_improves():
    program = Frontier([point(0, 0)], [1.0])
    master = Scripted([8.0, 6.0, 4.0], [True, True, False, False])
    multipliers, plans = frontier._best_multipliers(program, master)
    assert (multipliers.tolist(), plans) == ([4.0], 4)
    master = Scripted([8.0, 6.0], [True], reaches=[(8.0, 6.0)])
    multipliers, plans = frontier._best_multipliers(Frontier([point(0, 0)], [1.0]), master)
    assert (multipliers.tolist(), plans) == ([8.0], 1)
    master = Scripted([8.0, 6.0, 4.0], [True, True, False], reaches=[(5.0, 4.0)])
    multipliers, plans = frontier._best_multipliers(Frontier([point(0, 0)], [1.0]), master)
    assert (multipliers.tolist(), plans) == ([5.0], 3)


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
    assert len(early.tried) == 2
    assert widest_slack(Frontier(points, [4.0, 4.0]), enough=1.0).slack == pytest.approx(2.0, abs=1e-12)


def slack(least, *costs):
    return SimpleNamespace(least=least, multipliers=np.array([0.5, 0.5]), costs=np.array(costs))


def test_infeasibility_is_proved_beyond_the_margins_and_otherwise_left_open():
    program = Frontier(TWO, [1.0, 3.0], margins=[0.25, 0.25])
    frontier._check_feasible(program, slack(2.25, 1.25, 3.25))
    with pytest.raises(InfeasibleError):
        frontier._check_feasible(program, slack(2.26, 1.0, 1.0))
    for costs in ((1.26, 0.0), (0.0, 3.26)):
        with pytest.raises(SolverError, match="exceeds a threshold by"):
            frontier._check_feasible(program, slack(0.0, *costs))


# --- Every ending of a search -----------------------------------------------------------------------------------------


def test_a_mixture_is_tried_eight_times():
    class Slow(Frontier):
        """What is too much falls so slowly that no weight is enough."""

        def mix(self, plans, *, weights, unvisited):
            found = super().mix(plans, weights=weights, unvisited=unvisited)
            if len(plans) > 1:
                found.costs = np.array([1.75 + 0.126])
            return found

    program = Slow(CONCAVE, [2.0], margins=[0.125])
    edge = frontier._Edge(point(0, 1), point(4, 1.8), 2.0, 0)
    frontier._mix_to_target(program, edge, unvisited=np.zeros((1, 1, 2)))
    assert [len(plans) for plans, _ in program.mixed] == [2] * 4
    wide = Slow(CONCAVE, [2.0], margins=[0.125])
    edge = frontier._Edge(point(0, -9), point(4, 1.8), 2.0, 0)
    mixture = frontier._mix_to_target(wide, edge, unvisited=np.zeros((1, 1, 2)))
    assert [len(plans) for plans, _ in wide.mixed] == [2] * 8 + [1]
    assert mixture.costs.tolist() == [-9.0]


def generated(points, thresholds, **options):
    program = Frontier(points, thresholds, **{name: options.pop(name) for name in ("margins",) if name in options})
    return program, frontier._column_generation(program, options.pop("accepts", None))


def test_a_single_plan_that_is_best_is_taken_as_it_is_where_it_fits():
    margins = [0.01, 0.01]
    program, found = generated([point(0, 0, 0), point(5, 1, 1), point(9, 4, 4)], [1.5, 1.5], margins=margins)
    assert found.mixture.value < 9.0
    assert len(program.mixed[-1][0]) > 1
    program, found = generated([point(0, 0, 0), point(5, 1, 1)], [1.5, 1.5], margins=margins)
    assert program.mixed[-1] == ([program.points[1]], [1.0])
    assert (found.mixture.value, found.plans) == (5.0, len(program.tried))
    # At its threshold exactly, the computed cost is believed without an oracle, and an oracle's word counts.
    for accepts, alone in ((None, True), (lambda _: True, True), (lambda _: False, False)):
        program, found = generated([point(0, 0, 0), point(5, 1, 1)], [1.0, 1.0], margins=margins, accepts=accepts)
        assert (len(program.mixed[-1][0]) == 1) is alone
        assert found.plans == len(program.tried)
        if not alone:
            assert found.mixture.costs == pytest.approx([0.98, 0.98], abs=0.01)
            assert found.mixture.value == pytest.approx(4.9, abs=0.06)


def test_mixtures_of_several_constraints_keep_two_margins_inside():
    program, found = generated(TWO, [1.0, 1.0], margins=[0.05, 0.05])
    assert found.mixture.value == pytest.approx(6.0 - 2 * 0.05 * 2 * 3.0 / 2, abs=0.31)
    assert (found.mixture.costs <= 1.0 - 0.05 + 1e-12).all()
    weights = np.array(program.mixed[-1][1])
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (weights >= 0).all()
    assert found.plans == len(program.tried)


class Masters:
    """Stands in for the master of slacks: what it answers is given, and what it is told is kept."""

    def __init__(self, answers, known=()):
        self.answers, self.known, self.made = iter(answers), known, None

    def __call__(self, plans, thresholds, *, units, margins):
        self.plans, self.thresholds, self.units, self.margins = list(plans), thresholds, units, margins
        self.weights = np.array([1.0])
        return self

    def maximise_slack(self):
        return next(self.answers)

    def knows(self, column):
        return column in self.known

    def add(self, column):
        self.plans.append(column)
        self.weights = np.append(0.0 * self.weights, 1.0)


def slack_search(monkeypatch, answers, *, points=None, margins=(0.0, 0.0), known=(), **options):
    from cmpg.cmdp import columns

    points = points or [point(0, 3, 1), point(0, 1, 3)]
    master = Masters(answers, known)
    monkeypatch.setattr(columns, "MasterProgram", master)
    program = Frontier(points, [4.0, 4.0], margins=margins)
    return program, master, widest_slack(program, **options)


def test_the_search_for_slack_begins_with_even_prices_in_the_units_of_each_constraint(monkeypatch):
    even = np.array([0.5, 0.5])
    program, master, _ = slack_search(monkeypatch, [(even, 2.0)])
    assert program.tried == [(0.0, 0.5, 0.5), (0.0, 0.5, 0.5)]
    assert master.units.tolist() == [1.0, 1.0]
    program, master, _ = slack_search(monkeypatch, [(even, 2.0)], units=np.array([2.0, 8.0]))
    assert program.tried[0] == (0.0, 0.25, 0.0625)
    assert master.units.tolist() == [2.0, 8.0]


def test_the_search_for_slack_ends_where_the_bound_is_reached_within_a_quarter_of_the_margins(monkeypatch):
    """At prices of ½ each the plans cost 2, so that no slack is more than 4 − 2 = 2."""
    even = np.array([0.5, 0.5])
    for slack, margin, made in ((2.0, 0.0, 2), (1.9375, 0.25, 2), (1.9, 0.25, 3)):
        margins = (margin, margin / 2)
        _, master, found = slack_search(monkeypatch, [(even, slack), (even, 2.0)], margins=margins)
        assert (found.made, len(master.plans)) == (made, made - 1)
        assert found.multipliers.tolist() == [0.5, 0.5]
        assert found.least == 2.0
    _, _, found = slack_search(
        monkeypatch, [(even, 1.96875), (even, 2.0)], margins=(0.25, 0.5), units=np.array([2.0, 8.0])
    )
    assert found.made == 2  # a quarter of the larger of 0.125 and 0.0625


def test_the_search_for_slack_ends_where_enough_is_found_or_nothing_is_new(monkeypatch):
    even = np.array([0.5, 0.5])
    for slack, made in ((0.5, 3), (0.5 + 1e-12, 2)):
        _, _, found = slack_search(monkeypatch, [(even, slack), (even, 2.0)], enough=0.5)
        assert found.made == made
    points = [point(0, 3, 1), point(0, 1, 3)]
    _, master, found = slack_search(monkeypatch, [(even, 0.0)], points=points, known=points)
    assert (found.made, len(master.plans)) == (2, 1)
    # One plan costs 3 and 1: its worst slack is 1.
    assert found.slack == 1.0
    assert found.costs.tolist() == [3.0, 1.0]
    assert found.weights.tolist() == [1.0]
    assert found.policy.shape == (1, 1, 2)


def test_costs_beyond_all_floats_end_the_search_for_slack(monkeypatch):
    points = [point(0, np.inf, 1)]
    _, master, found = slack_search(monkeypatch, [(np.array([0.5, 0.5]), 1.0)], points=points)
    assert (found.made, len(master.plans)) == (2, 1)
    assert found.least == np.inf


def test_plans_that_never_end_are_told(monkeypatch):
    monkeypatch.setattr(frontier, "MAX_PLANS", 3)
    with pytest.raises(SolverError, match="did not end within 3 plans"):
        frontier._crossing_edge(
            Frontier(smooth(4096), [0.3]),
            frontier._Bracket(smooth(4096)[0], smooth(4096)[-1], np.inf, 0.0),
            fits=lambda plan: plan.costs[0] <= 0.3,
            guesses=0,
        )
    master = Scripted([8.0, 6.0, 4.0, 2.0], [True] * 4)
    assert frontier._best_multipliers(Frontier([point(0, 0)], [1.0]), master)[1] == 3


def test_bounds_and_centres_belong_to_the_multipliers_that_were_tried():
    """A bound is V^r − λ·(V^c − α) at the λ of the plan: 1 − 8·(½ − 1) = 5, then 1 + 2 = 3, then at 8 it is 5 again."""
    master = Scripted([8.0, 4.0, 8.0], [True, True], reaches=[(3.0, 8.0)])
    multipliers, plans = frontier._best_multipliers(Frontier([point(1, 0.5)], [1.0]), master)
    assert (multipliers.tolist(), plans) == ([4.0], 2)
    assert len(master.added) == 2


def test_room_for_guesses_grows_with_what_is_to_be_decided(monkeypatch):
    seen = []

    def edge(program, bracket, *, fits, guesses):
        seen.append(guesses)
        return frontier._Edge(point(0, 0), point(4, 1), 4.0, 5)

    monkeypatch.setattr(frontier, "_crossing_edge", edge)
    for size, guesses in ((9, 0), (10, 1), (99, 1), (100, 2)):
        left = SimpleNamespace(policy=lambda _, size=size: np.zeros((1, 1, 2)) if size == 2 else np.zeros(size))
        program = SimpleNamespace(
            num_actions=2,
            thresholds=np.array([0.5]),
            margins=np.array([0.0]),
            mix=lambda plans, *, weights, unvisited: SimpleNamespace(costs=np.array([0.5])),
        )
        bracket = frontier._Bracket(left, None, np.inf, 0.0)
        found = frontier._along_crossing_edge(program, bracket, fits=None, plans=7)
        assert (seen[-1], found.plans, found.multipliers.tolist()) == (guesses, 12, [4.0])
