"""Intervals that hold at all numbers of trials at once: coverage along whole paths, and a control that must fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import betaln
from scipy.stats import binomtest

from cmpg.errors import CMPGError
from cmpg.learning.confidence import PaperInterval, mixture_interval, mixture_radius

PATHS, LENGTH, DELTA = 10_000, 500, 0.1
CHECKPOINTS = np.unique(np.geomspace(1, LENGTH, 24).astype(int))


def misses(missed_at):
    """Count the paths along which the interval misses at any checkpoint: an adversary may stop wherever it likes."""
    missed = np.zeros(PATHS, dtype=bool)
    for n in CHECKPOINTS:
        missed |= missed_at(n)
    return int(missed.sum())


def holds(count):
    """Whether a miss rate of at most δ is credible."""
    return bool(binomtest(count, PATHS, DELTA, alternative="greater").pvalue > 1e-4)


def paths(chance):
    return np.cumsum(np.random.default_rng(11).random((PATHS, LENGTH)) < chance, axis=1)


@pytest.mark.parametrize("chance", [0.001, 0.5, 0.9])
@pytest.mark.parametrize("interval", [mixture_interval, PaperInterval(LENGTH)])
def test_an_interval_misses_at_any_time_with_probability_at_most_delta(chance, interval):
    hits = paths(chance)

    def missed_at(n):
        low, high = interval(hits[:, n - 1], np.full(PATHS, n), delta=DELTA)
        return (chance < low) | (chance > high)

    assert holds(misses(missed_at))


def test_an_interval_of_a_third_of_the_width_fails():
    hits = paths(0.5)

    def missed_at(n):
        low, high = mixture_interval(hits[:, n - 1], np.full(PATHS, n), delta=DELTA)
        centre = hits[:, n - 1] / n
        return (centre + 0.3 * (low - centre) > 0.5) | (centre + 0.3 * (high - centre) < 0.5)

    assert not holds(misses(missed_at))


@pytest.mark.parametrize(("shrink", "expected"), [(1.0, True), (0.3, False)])
def test_the_radius_of_a_mean_misses_at_any_time_with_probability_at_most_delta(shrink, expected):
    sums = 2.0 * paths(0.5) - np.arange(1, LENGTH + 1)

    def missed_at(n):
        return np.abs(sums[:, n - 1] / n) > shrink * mixture_radius(n, span=2.0, delta=DELTA)

    assert holds(misses(missed_at)) is expected


@given(st.integers(1, 10**7), st.floats(0, 1), st.floats(1e-9, 0.5))
@settings(deadline=None, max_examples=30)
def test_the_ends_are_where_the_likelihood_falls_to_the_level(trials, share, delta):
    hits = round(share * trials)
    low, high = mixture_interval(np.array([hits]), np.array([trials]), delta=delta)

    def excess(p):
        log_likelihood = (hits * np.log(p) if hits else 0.0) + (
            (trials - hits) * np.log1p(-p) if trials > hits else 0.0
        )
        return log_likelihood - betaln(hits + 1, trials - hits + 1) - np.log(delta)

    mode = hits / trials
    expected_low = brentq(excess, 1e-300, mode, xtol=1e-13) if hits else 0.0
    expected_high = brentq(excess, mode, 1 - 1e-16, xtol=1e-13) if trials > hits else 1.0
    assert low[0] == pytest.approx(expected_low, abs=1e-9)
    assert high[0] == pytest.approx(expected_high, abs=1e-9)


def test_nothing_tried_is_nothing_known():
    for interval in (mixture_interval, PaperInterval(10)):
        low, high = interval(np.zeros(1, dtype=int), np.zeros(1, dtype=int), delta=0.1)
        assert (low[0], high[0]) == (0.0, 1.0)
    assert mixture_radius(0, span=3.0, delta=0.1) == 3.0


def test_the_paper_s_interval_has_its_printed_constants():
    """|p̂ − p| ≤ √(4 p̂(1 − p̂) L/n) + 14L/(3n) with L = ln(2K/δ)."""
    episodes, delta = 10**6, 0.1
    log_term = np.log(2 * episodes / delta)
    low, high = PaperInterval(episodes)(np.array([0, 5000]), np.array([10_000, 10_000]), delta=delta)
    assert low[0] == 0.0
    assert high[0] == pytest.approx(14 * log_term / 30_000, rel=1e-12)
    radius = np.sqrt(log_term / 10_000) + 14 * log_term / 30_000
    assert (0.5 - low[1], high[1] - 0.5) == pytest.approx((radius, radius), rel=1e-12)


def test_the_paper_s_interval_refuses_more_trials_than_it_holds_for():
    with pytest.raises(CMPGError, match="holds for 10 trials; there were 11"):
        PaperInterval(10)(np.array([3]), np.array([11]), delta=0.1)
