"""Confidence intervals: each misses at most δ over 10,000 repeats, and shrunk to 0.3 of its size it is caught."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError
from cmpg.games.joint.game import JointGame
from cmpg.learning.bounds import Size, error_weights
from cmpg.learning.confidence import (
    _chernoff_end,
    bernstein_interval,
    bernstein_radius,
    binomial_interval,
    check_accuracy,
    estimate,
    hoeffding_count,
    hoeffding_radius,
    l1_radius,
    log_subsets,
    transition_box,
)
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Samples
from cmpg.learning.simulator import GameSimulator

REPEATS = 10_000
DELTA = 0.1


def calibrated(misses):
    """Whether a number of misses is what a bound with δ may have; wrong once in 10,000 tests."""
    return binomtest(int(misses), REPEATS, DELTA, alternative="greater").pvalue > 1e-4


def shrunk(interval):
    """The same interval, cut to 0.3 of its length on either side of the frequency."""

    def smaller(successes, trials, *, delta):
        low, high = interval(successes, trials, delta=delta)
        frequency = successes / np.maximum(trials, 1)
        return frequency - 0.3 * (frequency - low), frequency + 0.3 * (high - frequency)

    return smaller


@pytest.mark.parametrize("interval", [bernstein_interval, binomial_interval])
@pytest.mark.parametrize(("chance", "trials"), [(0.5, 50), (0.3, 400), (0.02, 1000), (0.9, 5000)])
def test_an_interval_for_a_probability_misses_at_most_delta(interval, chance, trials):
    successes = np.random.default_rng(trials).binomial(trials, chance, size=REPEATS)
    low, high = interval(successes, np.full(REPEATS, trials), delta=DELTA)
    assert calibrated(((chance < low) | (chance > high)).sum())


@pytest.mark.parametrize("interval", [bernstein_interval, binomial_interval])
def test_a_shrunk_interval_for_a_probability_is_caught(interval):
    successes = np.random.default_rng(1).binomial(400, 0.3, size=REPEATS)
    low, high = shrunk(interval)(successes, np.full(REPEATS, 400), delta=DELTA)
    assert not calibrated(((low > 0.3) | (high < 0.3)).sum())


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_hoeffding_misses_at_most_delta(factor):
    means = np.random.default_rng(2).binomial(200, 0.5, size=REPEATS) / 200 * 4.0 - 1.0
    radius = factor * hoeffding_radius(200, span=4.0, delta=DELTA)
    assert calibrated((np.abs(means - 1.0) > radius).sum()) == (factor == 1.0)


@pytest.mark.parametrize("law", [[1 / 3, 1 / 3, 1 / 3], [0.7, 0.2, 0.1], [0.5, 0.5]])
@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_the_l1_ball_misses_at_most_delta(law, factor):
    counts = np.random.default_rng(3).multinomial(300, law, size=REPEATS)
    off = np.abs(counts / 300 - law).sum(axis=1)
    radius = factor * l1_radius(300, len(law), delta=DELTA)
    assert calibrated((off > radius).sum()) == (factor == 1.0)


@pytest.mark.parametrize("interval", [bernstein_interval, binomial_interval])
def test_a_box_misses_the_kernel_at_most_delta(interval):
    rng = np.random.default_rng(4)
    kernel = rng.dirichlet(np.ones(3), size=(2, 2, 1))
    counts = np.stack([rng.multinomial(200, row, size=REPEATS) for row in kernel.reshape(-1, 3)], axis=1)

    def misses(chosen):
        # All repeats in one call: the repeats are one long axis of states, so δ is asked per repeat times their number.
        flat = counts.reshape(1, REPEATS * 4, 1, 3)
        box = transition_box(Samples(flat.sum(axis=-1), flat), delta=DELTA * REPEATS, interval=chosen)
        low, high = (ends.reshape(REPEATS, 2, 2, 1, 3) for ends in box)
        return ((kernel < low) | (kernel > high)).any(axis=(1, 2, 3, 4)).sum()

    assert calibrated(misses(interval))
    assert not calibrated(misses(shrunk(interval)))


def test_learned_payoffs_miss_at_most_delta():
    game = JointGame(
        transition=np.ones((1, 1, 3, 1)),
        rewards=[[[[0.0, 0.4, 1.0]]]],
        costs=[[[[0.0, 0.5, 0.2]]]],
        thresholds=[1.0],
        initial=[1.0],
        horizon=1,
    )
    simulator = GameSimulator(game, rng=np.random.default_rng(5), payoff_noise=2.0)
    problem = InducedProblem(simulator, 0, game.uniform_policy())
    misses = np.zeros(2)
    for _ in range(REPEATS):
        belief = estimate(problem, problem.draw(100), delta=2 * DELTA)
        reward, costs = belief.box.nominal.reward, belief.box.nominal.costs
        off = [np.abs(reward - game.rewards[0]).max(), np.abs(costs - game.costs).max()]
        allowed = [(reward - belief.worst_reward).max(), (belief.worst_costs - costs).max()]
        misses += [any(o > factor * a for o, a in zip(off, allowed, strict=True)) for factor in (1.0, 0.3)]
    assert calibrated(misses[0])
    assert not calibrated(misses[1])


def test_the_binomial_interval_is_the_textbook_one_and_shorter_than_bernstein():
    successes, trials = np.array([0, 3, 17, 50]), np.full(4, 50)
    low, high = binomial_interval(successes, trials, delta=0.01)
    for index, count in enumerate(successes):
        textbook = binomtest(int(count), 50).proportion_ci(0.99, method="exact")
        assert low[index] == pytest.approx(textbook.low, abs=1e-9)
        assert high[index] == pytest.approx(textbook.high, abs=1e-9)
    wide = bernstein_interval(successes, trials, delta=0.01)
    assert (wide[0] <= low).all()
    assert (wide[1] >= high).all()


def test_the_binomial_interval_keeps_its_upper_end_below_one_at_small_delta():
    """By 1 − δ/2, which is one below δ ≈ 1e-16, nothing would be known about the upper end."""
    low, high = binomial_interval(np.array([3]), np.array([10_000]), delta=1e-18)
    assert 0 < low[0] < 3e-4 < high[0] < 0.02
    # P(at most 3 of 10,000) at the upper end is δ/2.
    chance = sum(comb(10_000, m) * high[0] ** m * (1 - high[0]) ** (10_000 - m) for m in range(4))
    assert chance == pytest.approx(5e-19, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-15, 1e-17, 1e-200, 1e-300])
def test_the_binomial_interval_has_ends_at_any_delta(delta):
    successes, trials = np.array([0, 3, 50, 64, 500]), np.array([64, 64, 64, 64, 1000])
    low, high = binomial_interval(successes, trials, delta=delta)
    wide = binomial_interval(successes, trials, delta=1e-14)
    assert ((low >= 0) & (low <= wide[0]) & (wide[1] <= high) & (high <= 1)).all()


def test_with_no_trials_everything_is_possible():
    nothing = np.zeros(2, dtype=np.int64)
    for interval in (bernstein_interval, binomial_interval):
        low, high = interval(nothing, nothing, delta=0.1)
        assert low.tolist() == [0.0, 0.0]
        assert high.tolist() == [1.0, 1.0]
    assert bernstein_radius(np.zeros(1), np.ones(1, dtype=np.int64), log_term=3.0).tolist() == [1.0]
    assert hoeffding_radius(np.array([0, 1]), span=3.0, delta=0.1).tolist() == [3.0, 3.0]
    assert l1_radius(0, 4, delta=0.1) == 2.0


def test_a_known_support_costs_no_confidence_where_it_leaves_no_choice():
    counts = np.zeros((1, 3, 1, 3), dtype=np.int64)
    counts[0, 0, 0] = [0, 9, 0]
    counts[0, 1, 0] = [5, 0, 4]
    counts[0, 2, 0] = [3, 3, 3]
    support = np.array([[False, True, False], [True, False, True], [True, True, True]]).reshape(1, 3, 1, 3)
    low, high = transition_box(Samples(counts.sum(axis=-1), counts), delta=0.1, support=support)
    assert low[0, 0, 0].tolist() == high[0, 0, 0].tolist() == [0, 1, 0]
    assert high[0, 1, 0, 1] == 0
    alone = binomial_interval(np.array([5]), np.array([9]), delta=0.1 / 5)
    assert (low[0, 1, 0, 0], high[0, 1, 0, 0]) == (alone[0][0], alone[1][0])


def test_radii_and_counts_are_inverse_and_logarithms_do_not_overflow():
    for radius in (0.5, 0.01):
        count = hoeffding_count(radius, span=2.0, delta=0.05)
        assert hoeffding_radius(count, span=2.0, delta=0.05) <= radius
        assert hoeffding_radius(count - 1, span=2.0, delta=0.05) > radius or count == 1
    assert log_subsets(2) == pytest.approx(np.log(2))
    assert log_subsets(10) == pytest.approx(np.log(2**10 - 2))
    assert log_subsets(5000) == pytest.approx(5000 * np.log(2))
    assert l1_radius(7, 1, delta=0.1) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.1), (-1, 0.1), (np.nan, 0.1), (np.inf, 0.1), (0.1, 0.0), (0.1, 1.0)]
)
def test_accuracies_out_of_range_are_refused(epsilon, delta):
    with pytest.raises(CMPGError, match=r"(epsilon|delta) is"):
        check_accuracy(epsilon, delta)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_rows_that_are_off_by_b_change_no_value_by_more_than_b_times_d_over_two(seed, horizon, states, actions):
    rng = np.random.default_rng(seed)
    shape = (horizon, states, actions)
    tables = {"reward": rng.normal(size=shape), "costs": rng.normal(size=(1, *shape))}
    kernels = rng.dirichlet(np.ones(states), size=(2, *shape))
    weight = rng.random()
    kernels[1] = (1 - weight) * kernels[0] + weight * kernels[1]
    rest = {"thresholds": [0.0], "initial": rng.dirichlet(np.ones(states)), "horizon": horizon}
    policy = rng.dirichlet(np.ones(actions), size=shape[:2])
    first, second = (evaluate(CMDP(transition=kernel, **tables, **rest), policy) for kernel in kernels)
    row_error = np.abs(kernels[0] - kernels[1])[:-1].sum(axis=-1).max(initial=0.0)
    spans = [np.ptp(table.reshape(horizon, -1), axis=1) for table in (tables["reward"], tables["costs"][0])]
    reward, cost = error_weights(Size(states, actions, horizon, spans[0], spans[1][None], states))
    assert abs(first.value - second.value) <= row_error * reward / 2 + 1e-12
    assert abs(first.costs[0] - second.costs[0]) <= row_error * cost / 2 + 1e-12


def test_ends_that_an_inversion_puts_astray_are_moved_out():
    """SciPy 1.17 inverts 1000 hits in 1e9 trials to 1.9e-6, and SciPy 1.15 nothing above 1e12 trials."""
    hits, trials = np.meshgrid([1, 3, 1000, 10**5, 10**8], [10**9, 10**11, 10**13])
    for delta in (0.1, 1e-6, 1e-12):
        low, high = binomial_interval(hits, trials, delta=delta)
        frequencies, spread = hits / trials, np.sqrt(hits * -np.log(delta)) / trials
        assert np.all((low < frequencies) & (frequencies < high))
        assert np.all(high - low < 5 * spread - 5 * np.log(delta) / trials)
        for end, upper in ((low, False), (high, True)):
            misses = (trials - hits).ravel().astype(float)
            bound = _chernoff_end(hits.ravel().astype(float), misses, log_term=-np.log(delta / 2), upper=upper)
            assert np.all(bound >= end.ravel() - 1e-16 if upper else bound <= end.ravel() + 1e-16)


@pytest.mark.parametrize("delta", [0.2, 1e-3])
def test_chernoffs_interval_contains_that_of_clopper_and_pearson(delta):
    hits = np.arange(41.0)
    low, high = binomial_interval(hits, np.full(41, 40), delta=delta)
    outer = [_chernoff_end(hits, 40 - hits, log_term=-np.log(delta / 2), upper=upper) for upper in (False, True)]
    assert np.all(outer[0] <= low + 1e-12)
    assert np.all(outer[1] >= high - 1e-12)
    assert np.all(low - outer[0] < 0.1)
