"""Confidence intervals: each misses at most δ over 10,000 repeats, and shrunk to 0.3 of its size it is caught."""

from math import ceil, comb, log, sqrt

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, rel_entr
from scipy.stats import binom, binomtest

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError
from cmpg.games.joint.game import JointGame
from cmpg.learning import confidence
from cmpg.learning.bounds import Size, error_weights
from cmpg.learning.confidence import (
    PaperInterval,
    bernstein_interval,
    bernstein_radius,
    binomial_interval,
    check_accuracy,
    empirical_cmdp,
    estimate,
    fixed_bets,
    hoeffding_count,
    hoeffding_radius,
    l1_radius,
    log_subsets,
    mean_ceiling,
    mixture_interval,
    mixture_radius,
    transition_box,
)
from cmpg.learning.problem import InducedProblem
from cmpg.learning.simulator import GameSimulator

REPEATS = 10_000
DELTA = 0.1


def calibrated(misses, repeats=REPEATS):
    """Whether a number of misses is what a bound with δ may have; wrong once in 10,000 tests."""
    return binomtest(int(misses), repeats, DELTA, alternative="greater").pvalue > 1e-4


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
        box = transition_box(flat, delta=DELTA * REPEATS, interval=chosen)
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
    misses, repeats = np.zeros(2), 2000
    for _ in range(repeats):
        belief = estimate(problem, problem.draw(100), delta=2 * DELTA)
        reward, costs = belief.box.nominal.reward, belief.box.nominal.costs
        off = [np.abs(reward - game.rewards[0]).max(), np.abs(costs - game.costs).max()]
        allowed = [(reward - belief.worst_reward).max(), (belief.worst_costs - costs).max()]
        misses += [any(o > factor * a for o, a in zip(off, allowed, strict=True)) for factor in (1.0, 0.3)]
    assert calibrated(misses[0], repeats)
    assert not calibrated(misses[1], repeats)


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
    low, high = transition_box(counts, delta=0.1, support=support)
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


@settings(deadline=None, max_examples=30)
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
        for end in (low, high):
            assert np.all(trials * divergence(frequencies, end) <= -np.log(delta / 2) * (1 + 1e-6))


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.999, 1.001, 1.1, 2.0])
def test_every_end_passes_the_test_of_its_tail_whatever_an_inversion_says(monkeypatch, factor):
    """Ends that are nearer to the frequency than those of Clopper and Pearson are never returned."""
    hits, trials = np.array([1, 7, 30, 49]), np.full(4, 50)
    right = binomial_interval(hits, trials, delta=0.02)
    for name in ("betaincinv", "betainccinv"):
        invert = getattr(scipy.special, name)
        monkeypatch.setattr(scipy.special, name, lambda *of, invert=invert: np.clip(factor * invert(*of), 0, 1))
    low, high = binomial_interval(hits, trials, delta=0.02)
    assert np.all(low <= right[0] + 1e-9)
    assert np.all(high >= right[1] - 1e-9)
    assert np.all(binom.sf(hits - 1, trials, low) <= 0.01 * (1 + 2e-6))
    assert np.all(binom.cdf(hits, trials, high) <= 0.01 * (1 + 2e-6))


@pytest.mark.parametrize("delta", [0.2, 1e-3])
def test_chernoffs_interval_contains_that_of_clopper_and_pearson(delta):
    hits = np.arange(41.0)
    for end in binomial_interval(hits, np.full(41, 40), delta=delta):
        assert np.all(40 * divergence(hits / 40, end) <= -np.log(delta / 2) * (1 + 1e-9))


def divergence(frequency, end):
    """KL(frequency ‖ end): Chernoff's bound on the probability of such a frequency is exp(−n·KL)."""
    rest = np.where(frequency < 1, 1 - frequency, 1.0)  # of which nothing is left at 1; log1p keeps the digits
    return rel_entr(frequency, end) - np.where(frequency < 1, rest * np.log1p((frequency - end) / rest), 0.0)


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


def test_what_is_as_large_as_it_can_be_has_no_lower_ceiling():
    found = mean_ceiling(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[9, 0], [0, 0]]), most=1.0, delta=0.1)
    assert found.tolist() == [1.0, 1.0]
    rows = mean_ceiling(np.array([[0.0], [0.0]]), np.array([[100], [100]]), most=np.array([1.0, 2.0]), delta=0.1)
    assert rows[1] == pytest.approx(2 * rows[0], rel=1e-9)


@pytest.mark.parametrize("number", [20, 1000, 10**5])
@pytest.mark.parametrize("delta", [0.1, 1e-6])
@pytest.mark.parametrize(
    ("values", "law"),
    [([0, 1], [0.5, 0.5]), ([0, 1], [0.1, 0.9]), ([0, 1], [0.99, 0.01]), ([0.49, 0.51], [0.3, 0.7])],
)
def test_a_ceiling_is_that_of_the_best_of_its_bets_or_hardly_more(number, delta, values, law):
    """Lemma 1: u = min_k inf {q : W_k(q) ≥ K/δ}, found by bisection for each of the K bets."""
    seen, often = np.array(values, dtype=float), np.round(number * np.array(law)).astype(int)
    bets, mean = fixed_bets(number, delta), seen @ often / number
    low, high = np.full(len(bets), mean), np.full(len(bets), 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        factors = 1 + bets[:, None] * (middle[:, None] - seen) / np.maximum(1 - middle, 1e-300)[:, None]
        reached = np.log(factors) @ often >= np.log(len(bets) / delta)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    found = float(mean_ceiling(seen, often, most=1.0, delta=delta))
    assert high.min() - mean <= (found - mean) * (1 + 1e-6)
    assert found - mean <= 1.1 * (high.min() - mean)


def test_boxes_divide_delta_among_what_is_uncertain():
    asked = []

    def interval(successes, trials, *, delta):
        asked.append((successes.tolist(), trials.tolist(), delta))
        return np.full(len(successes), 0.25), np.full(len(successes), 0.75)

    counts = np.array([[[[0, 7, 0]], [[2, 0, 3]]]])
    support = np.array([[[[False, True, False]], [[True, False, True]]]])
    low, high = transition_box(counts, delta=0.5, interval=interval, support=support)
    assert asked == [([2, 3], [5, 5], 0.25)]
    assert low.tolist() == [[[[0, 1, 0]], [[0.25, 0, 0.25]]]]
    assert high.tolist() == [[[[0, 1, 0]], [[0.75, 0, 0.75]]]]
    transition_box(counts, delta=0.5, interval=interval)
    assert asked[1][2] == 0.5 / 6
    sure = np.array([[[[False, True, False]], [[True, False, False]]]])
    assert transition_box(counts, delta=0.5, interval=interval, support=sure)[0].sum() == 2.0
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
    kernel = empirical_cmdp(problem, problem.no_samples()).transition
    assert np.asarray(kernel).tolist() == np.full((2, 2, 3, 2), 0.5).tolist()
    once = problem.draw(1)
    assert empirical_cmdp(problem, once).transition[0].tolist() == once.transitions[0].tolist()


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
    assert sum(np.prod(shape) for shape, _, _ in asked) == tables.size
    for _, often, share in asked:
        assert (often, share) == ([25], pytest.approx(0.05 / tables.size))
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
    kernel = empirical_cmdp(problem, problem.no_samples()).transition
    assert kernel.tolist() == np.broadcast_to(possible / possible.sum(axis=-1, keepdims=True), (2, 2, 3, 2)).tolist()
    belief = estimate(problem, problem.no_samples(), delta=0.1)
    assert belief.box.lower[0].tolist() == (possible[0] & (possible[0].sum(axis=-1, keepdims=True) == 1)).tolist()
    assert belief.box.upper[0].tolist() == possible[0].tolist()
    assert belief.box.nominal.entry_roundings == confidence.average_roundings((3,))


def test_boxes_without_steps_and_boxes_of_more_steps_than_the_support_are_whole():
    counts = np.zeros((2, 1, 1, 2), dtype=int)
    low, high = transition_box(counts, delta=0.1, support=np.array([[[[True, False]]]]))
    assert (low.tolist(), high.tolist()) == ([[[[1.0, 0.0]]]] * 2, [[[[1.0, 0.0]]]] * 2)
    three = np.array([[[[True, False]]], [[[True, True]]], [[[False, True]]]])
    low, high = transition_box(counts, delta=0.1, support=three)
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
