"""Intervals for a probability that hold at every number of trials at once: for a learner that decides as it goes.

A learner that chooses its next policy by what it saw has random numbers of trials, so an interval for a fixed number
will not do. What is here misses with probability at most δ over all n together, and has the signatures that
`confidence.estimate` asks for.

- `mixture_interval` (Robbins; Ville's inequality). If p is the true probability, the ratio of the likelihood averaged
  over a uniform prior to the likelihood at p is a martingale that starts at 1, and the probability that it ever reaches
  1/δ is at most δ. So with probability 1 − δ, for all n together, p is in
      { p :  k ln p + (n − k) ln(1 − p)  >  ln B(k + 1, n − k + 1) − ln(1/δ) },
  an interval with n·kl(p̂, p) ≤ ln(1/δ) + ½ ln n + O(1) at its ends. It needs no number of episodes.
- `mixture_radius`, the same for means of values within a span R, whose sums are sub-Gaussian with R²/4 each, and a
  Gaussian prior of weight ρ:  n·|mean − μ| ≤ (R/2) √((n + ρ)(ln(1 + n/ρ) + 2 ln(1/δ))).
- `PaperInterval`, DOPE's own: |p̂ − p| ≤ √(4 p̂(1 − p̂) L/n) + 14L/(3n), L = ln(2K/δ), for all n ≤ K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from cmpg.checks import CMPGError, FloatArray, IntArray

BISECTIONS = 45

PRIOR_WEIGHT = 32.0
"""ρ: the radius is shortest, compared with the best for a fixed n, at some hundreds of values."""


def mixture_interval(successes: IntArray, trials: IntArray, *, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the mixture interval for a probability; [0, 1] where nothing was tried.

    Parameters
    ----------
    successes : [...]
        k.
    trials : [...]
        n.
    delta
        The probability that the interval misses at any n.

    Examples
    --------
    >>> low, high = mixture_interval(np.array([0, 50]), np.array([100, 100]), delta=0.05)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.345]), array([0.073, 0.655]))
    """
    hits, misses = np.asarray(successes, dtype=np.float64), np.asarray(trials - successes, dtype=np.float64)
    level = betaln(hits + 1, misses + 1) + np.log(delta)
    mode = hits / np.maximum(hits + misses, 1)
    low = _crossing(hits, misses, level=level, outside=np.zeros_like(mode), inside=mode)
    high = _crossing(hits, misses, level=level, outside=np.ones_like(mode), inside=mode)
    return np.where(hits > 0, low, 0.0), np.where(misses > 0, high, 1.0)


def _crossing(
    hits: FloatArray, misses: FloatArray, *, level: FloatArray, outside: FloatArray, inside: FloatArray
) -> FloatArray:
    """Bisect for where the log-likelihood falls to `level`; the outer end is returned, so that nothing is lost."""
    for _ in range(BISECTIONS):
        middle = (outside + inside) / 2
        likely = xlogy(hits, middle) + xlog1py(misses, -middle) > level
        outside, inside = np.where(likely, outside, middle), np.where(likely, middle, inside)
    return outside


def mixture_radius(count: FloatArray | IntArray | float, *, span: FloatArray | float, delta: float) -> FloatArray:
    """Return how far the mean of `count` values within a span can be from its expectation; the span where count is 0.

    Examples
    --------
    >>> float(mixture_radius(1000, span=2.0, delta=0.05).round(4))
    0.0988
    """
    trials = np.asarray(count, dtype=np.float64)
    spread = (trials + PRIOR_WEIGHT) * (np.log1p(trials / PRIOR_WEIGHT) - 2 * np.log(delta))
    radius = np.asarray(span) / 2 * np.sqrt(spread) / np.maximum(trials, 1)
    return np.asarray(np.minimum(radius, np.broadcast_to(span, radius.shape)))


@dataclass(frozen=True)
class PaperInterval:
    """The interval of DOPE, for a number of episodes that is given beforehand."""

    episodes: int

    def __call__(self, successes: IntArray, trials: IntArray, *, delta: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval for a probability; [0, 1] where nothing was tried."""
        if np.max(trials, initial=0) > self.episodes:
            raise CMPGError(
                f"PaperInterval holds for {self.episodes} trials; there were {np.max(trials)}. Give it more."
            )
        count = np.maximum(trials, 1)
        frequency = successes / count
        log_term = np.log(2 * self.episodes / delta)
        radius = np.sqrt(4 * frequency * (1 - frequency) * log_term / count) + 14 * log_term / (3 * count)
        radius = np.where(trials > 0, radius, 1.0)
        return np.maximum(frequency - radius, 0.0), np.minimum(frequency + radius, 1.0)
