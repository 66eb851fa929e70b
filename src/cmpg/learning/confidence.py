"""Confidence intervals for what is sampled, all in one place.

Each bound misses with probability at most δ, for a number of samples that is fixed before they are drawn:

- Hoeffding, a mean of n values that lie within a span R:  |mean − μ| ≤ R √(ln(2/δ) / 2n).
- Empirical Bernstein (Maurer and Pontil), a frequency p̂ of n trials:
  |p̂ − p| ≤ √(2 p̂(1 − p̂) L / (n − 1)) + 7L / (3(n − 1)),  L = ln(4/δ).
- Binomial (Clopper and Pearson), the same by inverting the binomial tails: exact, and shorter; the default.
- L1 (Weissman et al.), an empirical law over m outcomes:  ‖p̂ − p‖₁ ≤ √(2 (ln(2^m − 2) + ln(1/δ)) / n).

Several at once: δ is divided by their number (union bound). A box takes one interval for each (h, s, a, s'), leaves out
next states that are known to be impossible, and does not pay for rows with a single possible next state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cmpg.checks import CMPGError, FloatArray, IntArray, frozen
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.optimistic import BoxCMDP
from cmpg.games.contraction import average_roundings
from cmpg.learning.samples import BoolArray, Samples, SimulatorError
from cmpg.learning.simulator import InducedProblem

Interval = Callable[..., tuple[FloatArray, FloatArray]]
"""Called as interval(successes, trials, delta=…); returns the lower and the upper ends for the probability."""

Radius = Callable[..., FloatArray]
"""Called as radius(count, span=…, delta=…); returns how far the mean of that many values can be off."""


def check_accuracy(epsilon: float, delta: float) -> None:
    """Raise unless ε is positive and δ is strictly between 0 and 1."""
    if not 0 < epsilon < np.inf:
        raise CMPGError(f"epsilon is {epsilon}; it must be a positive number.")
    if not 0 < delta < 1:
        raise CMPGError(f"delta is {delta}; it is a probability of failure, strictly between 0 and 1.")


def hoeffding_radius(count: FloatArray | IntArray | float, *, span: FloatArray | float, delta: float) -> FloatArray:
    """Return how far the mean of `count` values within a span can be from its expectation; the span where count is 0.

    Examples
    --------
    >>> float(hoeffding_radius(1000, span=2.0, delta=0.05).round(4))
    0.0859
    """
    trials = np.asarray(count, dtype=np.float64)
    radius = np.sqrt(np.log(2 / delta) / (2 * np.maximum(trials, 1)))
    return np.asarray(span * np.minimum(radius, 1.0))


def hoeffding_count(radius: float, *, span: float, delta: float) -> int:
    """Return how many values make Hoeffding's radius at most `radius`."""
    return max(int(np.ceil(np.log(2 / delta) * span**2 / (2 * radius**2))), 1)


def bernstein_radius(frequencies: FloatArray, trials: IntArray, *, log_term: float) -> FloatArray:
    """Return √(2 p̂(1 − p̂) L/(n − 1)) + 7L/(3(n − 1)); 1 where n ≤ 1, and never more.

    Parameters
    ----------
    frequencies : [...]
        p̂.
    trials : [...]
        n.
    log_term
        L: ln(4/δ) for a two-sided bound that misses with probability at most δ.
    """
    others = np.maximum(np.asarray(trials, dtype=np.float64) - 1, 0.0)
    safe = np.where(others > 0, others, 1.0)
    radius = np.sqrt(2 * frequencies * (1 - frequencies) * log_term / safe) + 7 * log_term / (3 * safe)
    return np.where(others > 0, np.minimum(radius, 1.0), 1.0)


def bernstein_interval(successes: IntArray, trials: IntArray, *, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the empirical Bernstein interval for a probability; [0, 1] where nothing was tried."""
    frequencies = successes / np.maximum(trials, 1)
    radius = bernstein_radius(frequencies, trials, log_term=float(np.log(4 / delta)))
    return np.maximum(frequencies - radius, 0.0), np.minimum(frequencies + radius, 1.0)


def binomial_interval(successes: IntArray, trials: IntArray, *, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the Clopper-Pearson interval for a probability; [0, 1] where nothing was tried."""
    from scipy.special import betaincinv  # heavy: imported where it is used

    # In a box few pairs are distinct, and each is an iterative inversion.
    pairs, where = np.unique(successes + 1j * trials, return_inverse=True)
    hits, misses = pairs.real, pairs.imag - pairs.real
    low, high = np.zeros(len(pairs)), np.ones(len(pairs))
    low[hits > 0] = betaincinv(hits[hits > 0], misses[hits > 0] + 1, delta / 2)
    high[misses > 0] = betaincinv(hits[misses > 0] + 1, misses[misses > 0], 1 - delta / 2)
    # Below δ ≈ 1e-150 some inversions fail; then nothing is known about that end.
    low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
    shape = np.shape(successes)
    return low[where].reshape(shape), high[where].reshape(shape)


def l1_radius(count: int, outcomes: int, *, delta: float) -> float:
    """Return how far, in the sum of absolute differences, an empirical law over `outcomes` can be from the true one."""
    if outcomes <= 1:
        return 0.0
    return min(float(np.sqrt(2 * (log_subsets(outcomes) - np.log(delta)) / count)), 2.0) if count else 2.0


def log_subsets(outcomes: int) -> float:
    """Return ln(2^m − 2), for m ≥ 2 outcomes of any number."""
    return float(outcomes * np.log(2) + np.log1p(-(2.0 ** (1 - outcomes))))


def transition_box(
    samples: Samples, *, delta: float, interval: Interval = binomial_interval, support: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds [H − 1, S, A, S] that hold for all entries at once with probability 1 − δ.

    Parameters
    ----------
    samples
        Counts that one agent sees, their number fixed beforehand.
    delta
        The probability that any entry of the true kernel lies outside.
    interval
        One interval for one probability.
    support : [H or 1, S, A, S]
        Which next states are possible; all of them unless given.
    """
    counts = samples.transitions
    possible = np.broadcast_to(True if support is None else support[: len(counts)], counts.shape)
    certain = possible & (possible.sum(axis=-1, keepdims=True) == 1)
    uncertain = possible & ~certain
    lower, upper = np.zeros(counts.shape), np.zeros(counts.shape)
    lower[certain] = upper[certain] = 1.0
    trials = np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)
    number = max(int(uncertain.sum()), 1)
    lower[uncertain], upper[uncertain] = interval(counts[uncertain], trials[uncertain], delta=delta / number)
    return lower, upper


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the samples say about one agent's CMDP: the empirical one, and how far off it can be.

    With probability 1 − δ the true kernel lies in the box, the true payoffs between the worst and the best ones.
    """

    box: BoxCMDP  # its nominal CMDP is the empirical one
    hopeful: BoxCMDP  # the same kernels, with the most favourable payoffs
    worst_reward: FloatArray  # [H, S, A]
    worst_costs: FloatArray  # [k, H, S, A]


def estimate(
    problem: InducedProblem,
    samples: Samples,
    *,
    delta: float,
    interval: Interval = binomial_interval,
    radius: Radius = hoeffding_radius,
) -> Estimate:
    """Turn counts into the empirical CMDP and its box; half of δ goes to the payoffs where they are not known.

    Where the numbers of samples depend on what was seen, interval and radius must hold for all numbers at once
    (`cmpg.learning.anytime`).
    """
    learned = problem.known.payoffs is None
    payoffs = _learned_payoffs(problem, samples, delta / 2, radius) if learned else _known_payoffs(problem)
    kernel = empirical_kernel(problem, samples)
    lower, upper = kernel.copy(), kernel.copy()
    lower[:-1], upper[:-1] = transition_box(
        samples,
        delta=delta / 2 if learned else delta,
        interval=interval,
        support=problem.known.induced_support(problem.agent),
    )
    empirical = _cmdp(problem, kernel, reward=payoffs.reward, costs=payoffs.costs)
    bounds = {"lower": frozen(lower), "upper": frozen(upper)}
    best_reward, best_costs = payoffs.reward + payoffs.reward_radius, payoffs.costs - payoffs.cost_radius
    hopeful = _cmdp(problem, kernel, reward=best_reward, costs=best_costs)
    return Estimate(
        box=BoxCMDP(empirical, **bounds, trusted=True),
        hopeful=BoxCMDP(hopeful, **bounds, trusted=True),
        worst_reward=payoffs.reward - payoffs.reward_radius,
        worst_costs=payoffs.costs + payoffs.cost_radius,
    )


def empirical_cmdp(problem: InducedProblem, samples: Samples) -> CMDP:
    """Return the CMDP with the empirical kernel; rewards and costs must be known."""
    reward, costs = problem.payoffs
    return _cmdp(problem, empirical_kernel(problem, samples), reward=reward, costs=costs)


def empirical_kernel(problem: InducedProblem, samples: Samples) -> FloatArray:
    """Return p̂ = n(s')/n: [H, S, A, S]; uniform over the possible states where nothing was tried."""
    support = problem.known.induced_support(problem.agent)
    kernel = np.ones((*problem.shape, problem.shape[1])) if support is None else support * np.ones((*problem.shape, 1))
    kernel /= kernel.sum(axis=-1, keepdims=True)
    trials = samples.transitions.sum(axis=-1, keepdims=True)
    kernel[:-1] = np.where(trials > 0, samples.transitions / np.maximum(trials, 1), kernel[:-1])
    return frozen(kernel)


def _cmdp(problem: InducedProblem, kernel: FloatArray, *, reward: FloatArray, costs: FloatArray) -> CMDP:
    known = problem.known
    return CMDP(
        transition=kernel,
        reward=frozen(reward),
        costs=frozen(costs),
        thresholds=known.thresholds,
        initial=known.initial,
        horizon=known.horizon,
        entry_roundings=average_roundings(known.num_actions),
        trusted=True,
    )


@dataclass(frozen=True, eq=False)
class _Payoffs:
    reward: FloatArray  # [H, S, A]
    costs: FloatArray  # [k, H, S, A]
    reward_radius: FloatArray | float  # [H, S, A]
    cost_radius: FloatArray | float  # [k, H, S, A]


def _known_payoffs(problem: InducedProblem) -> _Payoffs:
    reward, costs = problem.payoffs
    return _Payoffs(reward, costs, 0.0, 0.0)


def _learned_payoffs(problem: InducedProblem, samples: Samples, delta: float, bound: Radius) -> _Payoffs:
    """Means of what was observed, with a radius that holds for all entries of the reward and of the costs at once."""
    if samples.observed is None:
        raise SimulatorError("rewards and costs are neither known nor observed; a simulator must give one of both.")
    known, agent = problem.known, problem.agent
    tables = np.concatenate([samples.observed.rewards[agent : agent + 1], samples.observed.costs])
    bounds = np.broadcast_to(known.reward_bounds[agent], (known.horizon, 2))[None]
    if known.num_constraints:
        cost_bounds = np.broadcast_to(known.cost_bounds, (known.num_constraints, known.horizon, 2))
        bounds = np.concatenate([bounds, cost_bounds])
    least, greatest = (bounds[..., end, None, None] for end in (0, 1))
    trials = np.broadcast_to(samples.visits, tables.shape)
    means = np.where(trials > 0, tables / np.maximum(trials, 1), (least + greatest) / 2)
    radius = bound(trials, span=greatest - least, delta=delta / tables.size)
    return _Payoffs(means[0], means[1:], radius[0], radius[1:])
