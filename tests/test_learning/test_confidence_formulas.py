"""Confidence intervals beside their formulas, written down again; and what an estimate puts where."""

from math import ceil, exp, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln
from scipy.stats import binom

from cmpg.errors import CMPGError, SimulatorError
from cmpg.games.joint.game import JointGame
from cmpg.learning import confidence
from cmpg.learning.confidence import (
    PaperInterval,
    bernstein_interval,
    bernstein_radius,
    binomial_interval,
    empirical_cmdp,
    estimate,
    hoeffding_count,
    hoeffding_radius,
    l1_radius,
    mean_ceiling,
    mixture_interval,
    mixture_radius,
    transition_box,
)
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Samples
from cmpg.learning.simulator import GameSimulator

# --- Formulas ---------------------------------------------------------------------------------------------------------


def test_hoeffdings_radius_and_count():
    assert hoeffding_radius(50, span=3.0, delta=0.1) == pytest.approx(3 * sqrt(log(20) / 100), rel=1e-12)
    assert hoeffding_radius(np.array([0, 1]), span=np.array([3.0, 5.0]), delta=0.9).tolist() == pytest.approx(
        [3 * sqrt(log(2 / 0.9) / 2), 5 * sqrt(log(2 / 0.9) / 2)], rel=1e-12
    )
    assert hoeffding_radius(1, span=3.0, delta=1e-3) == 3.0
    assert hoeffding_count(0.25, span=3.0, delta=0.1) == ceil(log(20) * 9 / (2 * 0.0625))
    assert hoeffding_count(9.0, span=3.0, delta=0.5) == 1


def test_bernsteins_radius_is_that_of_maurer_and_pontil():
    assert bernstein_radius(np.array([0.25]), np.array([101]), log_term=2.0)[0] == pytest.approx(
        sqrt(2 * 0.25 * 0.75 * 2 / 100) + 7 * 2 / 300, rel=1e-12
    )
    assert bernstein_radius(np.full(4, 0.5), np.array([0, 1, 2, 1000]), log_term=2.0).tolist() == pytest.approx(
        [1.0, 1.0, 1.0, sqrt(2 * 0.25 * 2 / 999) + 14 / 2997], rel=1e-12
    )
    assert bernstein_radius(np.full(2, 0.5), np.array([0, 1]), log_term=1e-3).tolist() == [1.0, 1.0]
    low, high = bernstein_interval(np.array([0, 30, 120, 0]), np.array([120, 120, 120, 0]), delta=0.2)
    radius = bernstein_radius(np.array([0.0, 0.25]), np.array([120, 120]), log_term=log(20))
    assert low.tolist() == pytest.approx([0.0, max(0.25 - radius[1], 0), 1 - radius[0], 0.0])
    assert high.tolist() == pytest.approx([radius[0], 0.25 + radius[1], 1.0, 1.0])


@pytest.mark.parametrize("delta", [0.5, 1e-4])
def test_the_ends_of_clopper_and_pearson_leave_half_of_delta_in_either_tail(delta):
    hits, trials = np.array([[0, 1, 7], [20, 19, 3]]), np.array([[20, 20, 20], [20, 20, 4]])
    low, high = binomial_interval(hits, trials, delta=delta)
    for place in np.ndindex(hits.shape):
        k, n = hits[place], trials[place]
        assert low[place] == (0.0 if k == 0 else pytest.approx(low[place]))
        assert high[place] == (1.0 if k == n else pytest.approx(high[place]))
        if k > 0:
            assert binom.sf(k - 1, n, low[place]) == pytest.approx(delta / 2, rel=1e-6)
        if k < n:
            assert binom.cdf(k, n, high[place]) == pytest.approx(delta / 2, rel=1e-6)


def test_an_inversion_that_is_too_short_is_replaced_by_chernoffs_end(monkeypatch):
    """Ends whose tails are larger than half of δ, or that lie on the wrong side, do not stand."""
    import scipy.special

    hits, trials = np.array([5, 9]), np.array([40, 40])
    fine = binomial_interval(hits, trials, delta=0.1)
    outer = [
        confidence._chernoff_end(hits.astype(float), (trials - hits).astype(float), log_term=log(20), upper=upper)
        for upper in (False, True)
    ]
    for name, place, factors in (("betaincinv", 5, (1.01, 9.0)), ("betainccinv", 6, (0.99, 0.01))):
        for factor in factors:
            right = getattr(scipy.special, name)

            def wrong(a, b, tail, right=right, place=place, factor=factor):
                return np.where(a == place, factor, 1.0) * right(a, b, tail)

            with monkeypatch.context() as patch:
                patch.setattr(scipy.special, name, wrong)
                low, high = binomial_interval(hits, trials, delta=0.1)
            assert low.tolist() == [outer[0][0] if place == 5 else fine[0][0], fine[0][1]]
            assert high.tolist() == [outer[1][0] if place == 6 else fine[1][0], fine[1][1]]


@pytest.mark.parametrize(("hits", "misses"), [(0.0, 30.0), (3.0, 27.0), (30.0, 0.0), (29.0, 1.0), (1.0, 999.0)])
def test_chernoffs_end_is_where_the_divergence_is_the_level(hits, misses):
    n = hits + misses
    mean = hits / n

    def divergence(q):
        return (hits * log(mean / q) if hits else 0.0) + (misses * log((1 - mean) / (1 - q)) if misses else 0.0)

    for upper in (False, True):
        [end] = confidence._chernoff_end(np.array([hits]), np.array([misses]), log_term=3.0, upper=upper)
        if mean == upper:
            assert end == upper
            continue
        assert bool(end > mean) is upper
        expected = brentq(
            lambda q: divergence(q) - 3.0, *((mean + 1e-300, 1 - 1e-16) if upper else (1e-300, mean)), xtol=1e-18
        )
        assert end == pytest.approx(expected, rel=1e-6)


def test_chernoffs_end_may_have_exactly_the_level():
    level = -float(np.log1p(0.5) + np.log1p(-0.5))  # of q = 3/4 after a hit and a miss
    assert confidence._chernoff_end(np.ones(1), np.ones(1), log_term=level, upper=True).tolist() == [0.75]


def test_the_mixture_interval_ends_where_the_likelihood_falls_to_its_level():
    hits, trials = np.array([0, 4, 10, 0]), np.array([10, 10, 10, 0])
    low, high = mixture_interval(hits, trials, delta=0.05)
    for k, n, left, right in zip(hits, trials, low, high, strict=True):
        level = betaln(k + 1, n - k + 1) + log(0.05)
        for end, edge in ((left, 0.0), (right, 1.0)):
            if end in (0.0, 1.0):
                assert (k if edge == 0.0 else n - k) == 0
                continue
            likelihood = (k * log(end) if k else 0.0) + ((n - k) * log(1 - end) if n - k else 0.0)
            assert likelihood == pytest.approx(level, abs=1e-9)
            assert likelihood <= level + 1e-11  # the outer end


def test_the_mixture_radius_is_that_of_a_gaussian_prior():
    for count in (1, 40, 10_000):
        spread = (count + 32) * (log(1 + count / 32) + 2 * log(1 / 0.05))
        assert mixture_radius(count, span=3.0, delta=0.05) == pytest.approx(
            min(1.5 * sqrt(spread) / count, 3.0), rel=1e-12
        )
    assert mixture_radius(np.array([0, 10_000]), span=np.array([3.0, 0.0]), delta=0.05).tolist() == [3.0, 0.0]


def test_the_papers_interval_is_dopes():
    low, high = PaperInterval(2000)(np.array([50, 0, 0, 1000]), np.array([1000, 1000, 0, 2000]), delta=0.1)
    log_term = log(2 * 2000 / 0.1)
    radius = sqrt(4 * 0.05 * 0.95 * log_term / 1000) + 14 * log_term / 3000
    half = sqrt(4 * 0.25 * log_term / 2000) + 14 * log_term / 6000
    assert low.tolist() == pytest.approx([0.0, 0.0, 0.0, 0.5 - half])
    assert high.tolist() == pytest.approx([0.05 + radius, 14 * log_term / 3000, 1.0, 0.5 + half])
    with pytest.raises(CMPGError, match="holds for 2000 trials; there were 2001"):
        PaperInterval(2000)(np.array([1]), np.array([2001]), delta=0.1)


def test_the_l1_radius_is_weissmans():
    assert l1_radius(1000, 3, delta=0.1) == pytest.approx(sqrt(2 * (log(6) + log(10)) / 1000), rel=1e-12)
    assert l1_radius(1, 3, delta=0.1) == 2.0
    assert l1_radius(1000, 2, delta=0.1) == pytest.approx(sqrt(2 * (log(2) + log(10)) / 1000), rel=1e-12)


# --- Bets -------------------------------------------------------------------------------------------------------------


def test_bets_are_a_grid_from_the_largest_down_to_half_of_what_suits_the_largest_variance():
    grid = confidence._bets(1000, 0.05)
    assert grid[0] == 0.99
    assert grid[:-1] / grid[1:] == pytest.approx(1.5)
    least = sqrt(log(20) / 1000) / 2
    assert grid[-1] <= least < 1.5 * grid[-1]
    assert confidence._bets(0, 0.05).tolist() == confidence._bets(1, 0.05).tolist()
    assert confidence._bets(1, 1e-9).tolist() == [0.99]
    assert len(confidence._bets(1, 0.9)) == 1 + ceil(log(0.99 / (sqrt(-log(0.9)) / 2)) / log(1.5)) == 6
    assert confidence._nearest(np.array([5.0, 0.99, 0.8, 0.66, 1e-9]), grid).tolist() == pytest.approx(
        [0.99, 0.99, 0.66 if 0.99 / sqrt(1.5) > 0.8 else 0.99, 0.66, grid[-1]]
    )


def wealth(q, values, counts, most, bet):
    return sum(n * log(1 + bet * (q - x) / (most - q)) for x, n in zip(values, counts, strict=True))


@pytest.mark.parametrize(
    ("values", "counts", "most"),
    [
        ([0.0, 1.0], [500, 500], 1.0),
        ([0.3, 0.3], [1000, 0], 1.0),
        ([0.1, 0.2, 0.9], [700, 250, 50], 2.0),
        ([-3.0, -1.0], [30, 70], 5.0),
    ],
)
def test_a_ceiling_is_where_the_wealth_of_the_best_bet_reaches_its_level(values, counts, most):
    delta = 0.05
    found = float(mean_ceiling(np.array([values]), np.array([counts]), most=most, delta=delta)[0])
    grid = confidence._bets(sum(counts), delta)
    needed = log(len(grid)) - log(delta)
    mean = float(np.average(values, weights=counts))
    ends = [
        brentq(lambda q, bet=bet: wealth(q, values, counts, most, bet) - needed, mean, most - 1e-9)
        for bet in grid
        if wealth(most - 1e-9, values, counts, most, bet) > needed
    ]
    assert found >= min(ends) - 1e-9 > mean  # never below any bet's bound
    assert found <= min(ends) * (1 + 0.02 * np.sign(min(ends))) + 0.002 * (most - mean)


def test_what_is_as_large_as_it_can_be_has_no_lower_ceiling():
    found = mean_ceiling(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[9, 0], [0, 0]]), most=1.0, delta=0.1)
    assert found.tolist() == [1.0, 1.0]
    rows = mean_ceiling(np.array([[0.0], [0.0]]), np.array([[100], [100]]), most=np.array([1.0, 2.0]), delta=0.1)
    assert rows[1] == pytest.approx(2 * rows[0], rel=1e-9)


def test_newtons_steps_end_on_the_safe_side_of_where_the_wealth_is_enough():
    counts, ratios = np.array([[600, 400]]), np.array([[0.5, 1.75]])  # mean one
    for bet in (0.05, 0.3, 0.99):
        for first in (-0.01, -1.0):
            [place] = confidence._ruin(counts, ratios, np.array([bet]), 4.0, first=np.array([first]))
            reached = (counts * np.log(1 - bet + bet * ratios * exp(-place))).sum()
            assert place <= 0
            assert reached == pytest.approx(4.0, abs=1e-6)
            assert reached >= 4.0 - 1e-9
    # Where nothing can be won the place is as far as it goes.
    [none] = confidence._ruin(np.array([[0, 0]]), ratios, np.array([0.5]), 4.0, first=np.array([0.0]))
    assert none < -20


# --- Estimates --------------------------------------------------------------------------------------------------------


def test_boxes_divide_delta_among_what_is_uncertain():
    asked = []

    def interval(successes, trials, *, delta):
        asked.append((successes.tolist(), trials.tolist(), delta))
        return np.full(len(successes), 0.25), np.full(len(successes), 0.75)

    counts = np.array([[[[0, 7, 0]], [[2, 0, 3]]]])
    samples = Samples(counts.sum(axis=-1), counts)
    support = np.array([[[[False, True, False]], [[True, False, True]]]])
    low, high = transition_box(samples, delta=0.5, interval=interval, support=support)
    assert asked == [([2, 3], [5, 5], 0.25)]
    assert low.tolist() == [[[[0, 1, 0]], [[0.25, 0, 0.25]]]]
    assert high.tolist() == [[[[0, 1, 0]], [[0.75, 0, 0.75]]]]
    transition_box(samples, delta=0.5, interval=interval)
    assert asked[1][2] == 0.5 / 6
    sure = np.array([[[[False, True, False]], [[True, False, False]]]])
    assert transition_box(samples, delta=0.5, interval=interval, support=sure)[0].sum() == 2.0
    assert asked[2] == ([], [], 0.5)


def learner(**options):
    """One agent, two states, three actions, two steps; rewards in [0, 2], costs in [−1, 1]."""
    game = JointGame(
        transition=[[[[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]]]] * 2,
        rewards=[[[[0.0, 2.0, 0.0], [1.0, 0.5, 0.0]]] * 2],
        costs=[[[[-1.0, 1.0, 0.0], [0.0, 0.5, 0.0]]] * 2],
        thresholds=[1.5],
        initial=[0.5, 0.5],
        horizon=2,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(0), **options)
    return InducedProblem(simulator, 0, game.uniform_policy())


def test_known_payoffs_are_where_they_are_and_all_of_delta_is_for_the_kernel():
    problem, asked = learner(), []

    def interval(successes, trials, *, delta):
        asked.append(delta)
        return binomial_interval(successes, trials, delta=delta)

    samples = problem.draw(40)
    belief = estimate(problem, samples, delta=0.1, interval=interval)
    reward, costs = problem.payoffs
    for table in (belief.worst_reward, belief.box.nominal.reward, belief.optimistic.nominal.reward):
        assert table.tolist() == reward.tolist()
    assert belief.worst_costs.tolist() == belief.optimistic.nominal.costs.tolist() == costs.tolist()
    assert asked == [0.1 / samples.transitions.size]
    kernel = np.asarray(belief.box.nominal.transition)
    assert kernel[0] == pytest.approx(samples.transitions[0] / 40)
    assert belief.box.lower[1].tolist() == belief.box.upper[1].tolist() == kernel[1].tolist()
    assert (belief.box.lower[0] <= kernel[0]).all()
    assert empirical_cmdp(problem, samples).transition.tolist() == kernel.tolist()


def test_where_nothing_was_tried_everything_is_equally_likely():
    problem = learner()
    kernel = confidence.empirical_kernel(problem, problem.no_samples())
    assert np.asarray(kernel).tolist() == np.full((2, 2, 3, 2), 0.5).tolist()
    once = problem.draw(1)
    assert confidence.empirical_kernel(problem, once)[0].tolist() == once.transitions[0].tolist()


def test_payoffs_that_were_observed_have_half_of_delta_and_lie_between_the_worst_and_the_best():
    problem, asked = learner(payoff_noise=0.5), []
    samples = problem.draw(25)

    def radius(count, *, span, delta):
        asked.append((np.asarray(count).shape, np.unique(count).tolist(), delta))
        return np.broadcast_to(np.asarray(span) / 8, np.shape(count))

    shares = []

    def interval(successes, trials, *, delta):
        shares.append(delta * successes.size)
        return binomial_interval(successes, trials, delta=delta)

    belief = estimate(problem, samples, delta=0.1, radius=radius, interval=interval)
    assert shares == pytest.approx([0.05])
    tables = np.concatenate([samples.observed.rewards[:1], samples.observed.costs])
    assert asked == [(tables.shape, [25], pytest.approx(0.05 / tables.size))]
    means = tables / 25
    bounds = problem.known.reward_bounds[0], problem.known.cost_bounds[0]
    widths = [np.ptp(np.broadcast_to(each, (2, 2)), axis=1)[:, None, None] / 8 for each in bounds]
    assert belief.box.nominal.reward == pytest.approx(means[0])
    assert belief.worst_reward == pytest.approx(means[0] - widths[0])
    assert belief.optimistic.nominal.reward == pytest.approx(means[0] + widths[0])
    assert belief.worst_costs[0] == pytest.approx(means[1] + widths[1])
    assert belief.optimistic.nominal.costs[0] == pytest.approx(means[1] - widths[1])
    nothing = estimate(problem, problem.no_samples(), delta=0.1, radius=radius)
    middle = [np.broadcast_to(each, (2, 2)).mean(axis=1)[:, None, None] * np.ones((2, 2, 3)) for each in bounds]
    assert nothing.box.nominal.reward == pytest.approx(middle[0])
    assert nothing.box.nominal.costs[0] == pytest.approx(middle[1])


def test_payoffs_that_are_neither_known_nor_observed_are_refused():
    problem = learner(payoff_noise=0.5)
    blind = SimpleNamespace(observed=None)
    with pytest.raises(SimulatorError, match="neither known nor observed"):
        confidence._learned_payoffs(problem, blind, 0.1, hoeffding_radius)


# --- Every part of a formula ------------------------------------------------------------------------------------------


def root(values, counts, most, bet, needed):
    """Where the wealth of one bet is just what is needed, or the largest value where it never is."""
    mean = float(np.average(values, weights=counts))
    if wealth(most - 1e-12, values, counts, most, bet) < needed:
        return most
    return brentq(lambda q: wealth(q, values, counts, most, bet) - needed, mean, most - 1e-12, xtol=1e-14)


@pytest.mark.parametrize("delta", [0.05, 1e-4])
@pytest.mark.parametrize(
    ("values", "counts", "most"),
    [
        ([0.0, 1.0], [500, 500], 1.0),
        ([0.1, 0.2, 0.9], [700, 250, 50], 2.0),
        ([-3.0, -1.0, 4.0], [300, 690, 10], 5.0),
        ([0.0, 1.0], [3, 2], 1.0),
        ([0.3, 0.31], [40_000, 60_000], 1.0),
        ([0.9, -50.0], [990, 10], 1.0),
    ],
)
def test_a_ceiling_is_that_of_the_bet_that_suits_the_variance_or_of_the_one_that_is_best_there(
    values, counts, most, delta
):
    number = sum(counts)
    grid = confidence._bets(number, delta)
    needed = log(len(grid)) + log(1 / delta)
    below = most - np.array(values)
    mean = float(np.average(below, weights=counts))
    variance = float(np.average((below / mean - 1) ** 2, weights=counts))
    wanted = min(max(sqrt(2 * needed / number / variance), grid[-1]), 0.99)
    first = grid[int(np.argmin(np.abs(np.log(grid / wanted))))]
    place = root(values, counts, most, first, needed)
    best = max(grid, key=lambda bet: wealth(min(place, most - 1e-12), values, counts, most, bet))
    expected = min(place, root(values, counts, most, best, needed))
    [found] = mean_ceiling(np.array([values]), np.array([counts]), most=most, delta=delta)
    assert found == pytest.approx(expected, abs=1e-7 * (most - min(values)))
    assert found >= expected - 1e-12 * (most - min(values))


def test_ceilings_of_several_rows_are_those_of_each():
    values = np.array([[0.0, 1.0, 0.5], [0.2, 0.2, 0.2], [1.0, 1.0, 1.0], [0.1, 0.9, 0.0]])
    counts = np.array([[10, 20, 970], [1000, 0, 0], [1000, 0, 0], [500, 500, 0]])
    together = mean_ceiling(values, counts, most=np.ones(4), delta=0.05)
    for row in range(4):
        [alone] = mean_ceiling(values[row : row + 1], counts[row : row + 1], most=1.0, delta=0.05)
        assert together[row] == pytest.approx(alone, rel=1e-12)
    assert together[2] == 1.0
    larger = mean_ceiling(3 * values - 1, counts, most=np.full(4, 2.0), delta=0.05)
    assert larger == pytest.approx(3 * together - 1, rel=1e-12)


@pytest.mark.parametrize(("factor", "stands"), [(1 + 1e-10, True), (1 + 1e-5, False)])
def test_ends_may_be_off_by_a_millionth_of_their_tails_and_no_more(monkeypatch, factor, stands):
    import scipy.special

    hits, trials = np.array([500]), np.array([1000])
    low, high = binomial_interval(hits, trials, delta=0.1)
    right = scipy.special.betaincinv
    monkeypatch.setattr(scipy.special, "betaincinv", lambda a, b, tail: factor * right(a, b, tail))
    moved, same = binomial_interval(hits, trials, delta=0.1)
    assert same == high
    outer = confidence._chernoff_end(np.array([500.0]), np.array([500.0]), log_term=log(20), upper=False)
    assert moved[0] == (factor * low[0] if stands else outer[0])


def test_nothing_is_known_of_what_was_never_tried():
    for interval in (bernstein_interval, binomial_interval, mixture_interval, PaperInterval(5)):
        low, high = interval(np.zeros((2, 1), dtype=int), np.zeros((2, 1), dtype=int), delta=0.1)
        assert (low.tolist(), high.tolist()) == ([[0.0]] * 2, [[1.0]] * 2)
    assert l1_radius(0, 3, delta=0.1) == 2.0
    assert l1_radius(10, 1, delta=0.1) == l1_radius(0, 0, delta=0.1) == 0.0
    assert l1_radius(10**6, 2, delta=0.1) > 0
    for outcomes in (2, 3, 10):
        assert confidence.log_subsets(outcomes) == pytest.approx(log(2**outcomes - 2), rel=1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.5), (np.inf, 0.5), (1.0, 0.0), (1.0, 1.0), (np.nan, 0.5)])
def test_accuracies_are_strictly_inside_their_ranges(epsilon, delta):
    confidence.check_accuracy(1e-300, 1 - 1e-16)
    with pytest.raises(CMPGError):
        confidence.check_accuracy(epsilon, delta)


def test_a_known_support_is_all_that_is_possible():
    problem = learner(reveal_support=True)
    possible = np.asarray(problem.known.induced_support(0))
    assert possible.shape[-3:] == (2, 3, 2)
    kernel = confidence.empirical_kernel(problem, problem.no_samples())
    assert kernel.tolist() == np.broadcast_to(possible / possible.sum(axis=-1, keepdims=True), (2, 2, 3, 2)).tolist()
    belief = estimate(problem, problem.no_samples(), delta=0.1)
    assert belief.box.lower[0].tolist() == (possible[0] & (possible[0].sum(axis=-1, keepdims=True) == 1)).tolist()
    assert belief.box.upper[0].tolist() == possible[0].tolist()
    assert belief.box.nominal.entry_roundings == confidence.average_roundings((3,))


def test_boxes_without_steps_and_boxes_of_more_steps_than_the_support_are_whole():
    counts = np.zeros((2, 1, 1, 2), dtype=int)
    low, high = transition_box(Samples(counts.sum(axis=-1), counts), delta=0.1, support=np.array([[[[True, False]]]]))
    assert (low.tolist(), high.tolist()) == ([[[[1.0, 0.0]]]] * 2, [[[[1.0, 0.0]]]] * 2)
    three = np.array([[[[True, False]]], [[[True, True]]], [[[False, True]]]])
    low, high = transition_box(Samples(counts.sum(axis=-1), counts), delta=0.1, support=three)
    assert (low.tolist(), high.tolist()) == ([[[[1.0, 0.0]]], [[[0.0, 0.0]]]], [[[[1.0, 0.0]]], [[[1.0, 1.0]]]])


def test_payoffs_are_learned_for_the_agent_that_asks_also_without_constraints():
    game = JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=[[[[[0.0, 0.0], [0.0, 0.0]]]], [[[[4.0, 4.0], [8.0, 8.0]]]]],
        costs=np.zeros((0, 1, 1, 2, 2)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(0), payoff_noise=0.5)
    problem = InducedProblem(simulator, 1, game.uniform_policy().replace(0, [[[1.0, 0.0]]]))
    belief = estimate(problem, problem.draw(400), delta=0.1)
    assert belief.box.nominal.reward[0, 0] == pytest.approx([4.0, 4.0], abs=0.2)
    width = hoeffding_radius(400, span=float(np.ptp(simulator.known.reward_bounds[1])), delta=0.05 / 2)
    assert belief.optimistic.nominal.reward - belief.box.nominal.reward == pytest.approx(np.full((1, 1, 2), width))
    assert belief.box.nominal.costs.shape == belief.worst_costs.shape == (0, 1, 1, 2)
