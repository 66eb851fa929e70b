"""Confidence intervals, all in one place, and what samples say about one agent's CMDP.

For a number of samples n that is fixed before they are drawn, each misses with probability at most δ:

- `hoeffding_radius`, a mean of n values that lie within a span R:  |mean − μ| ≤ R √(ln(2/δ) / 2n).
- `bernstein_interval` (Maurer and Pontil), a frequency p̂ of n trials:
  |p̂ − p| ≤ √(2 p̂(1 − p̂) L / (n − 1)) + 7L / (3(n − 1)),  L = ln(4/δ).
- `binomial_interval` (Clopper and Pearson), the same by inverting the binomial tails: exact, and shorter; the default.
- `mean_ceiling`, an upper bound for a mean of values of which only the largest possible one, M, is known, by bets
  (Waudby-Smith and Ramdas). Were the mean q or more, W(q) = Π_i (1 + θ (q − x_i)/(M − q)), 0 < θ < 1, would be
  non-negative with expectation at most 1, so W(q) ≥ K/δ has probability at most δ/K; and W grows with q. K bets are
  fixed by n and δ, the bounds of all hold together, and each row takes the one that suits its variance v: about
  mean + √(2vL/n), and mean + (M − mean) L/n where all values are the same, L = ln(K/δ). Empirical Bernstein has
  7 (M − least) L/(3n) there. What matters is only how often each value occurs.
- `l1_radius` (Weissman et al.), an empirical law over m outcomes:  ‖p̂ − p‖₁ ≤ √(2 (ln(2^m − 2) + ln(1/δ)) / n).

A learner that chooses its next policy by what it saw has random numbers of trials. What follows misses with probability
at most δ over all n together:

- `mixture_interval` (Robbins; Ville's inequality). If p is the true probability, the ratio of the likelihood averaged
  over a uniform prior to the likelihood at p is a martingale that starts at 1, and the probability that it ever reaches
  1/δ is at most δ. So with probability 1 − δ, for all n together, p is in
      { p :  k ln p + (n − k) ln(1 − p)  >  ln B(k + 1, n − k + 1) − ln(1/δ) },
  an interval with n·kl(p̂, p) ≤ ln(1/δ) + ½ ln n + O(1) at its ends. It needs no number of episodes.
- `mixture_radius`, the same for means of values within a span R, whose sums are sub-Gaussian with R²/4 each, and a
  Gaussian prior of weight ρ:  n·|mean − μ| ≤ (R/2) √((n + ρ)(ln(1 + n/ρ) + 2 ln(1/δ))).
- `PaperInterval`, DOPE's own: |p̂ − p| ≤ √(4 p̂(1 − p̂) L/n) + 14L/(3n), L = ln(2K/δ), for all n ≤ K.

Several at once: δ is divided by their number (union bound). A box (`transition_box`) takes one interval for each
(h, s, a, s'), leaves out next states that are known to be impossible, and does not pay for rows with a single possible
next state. `estimate` puts the empirical CMDP into its box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from cmpg.arrays import FloatArray, IntArray, frozen
from cmpg.cmdp.box import BoxCMDP, OptimisticResponse, optimistic_response
from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError, SimulatorError
from cmpg.games.game import bound_cmdp
from cmpg.games.joint.averages import average_roundings
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import BoolArray, ProblemSpec, Samples

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
    from scipy.special import betainc, betaincc, betainccinv, betaincinv  # heavy: imported where they are used

    # In a box few pairs are distinct, and each is an inversion.
    pairs, where = np.unique(successes + 1j * trials, return_inverse=True)
    hits, misses, tail = pairs.real, pairs.imag - pairs.real, delta / 2
    low, high, hit, missed = np.zeros(len(pairs)), np.ones(len(pairs)), hits > 0, misses > 0
    low[hit] = betaincinv(hits[hit], misses[hit] + 1, tail)
    # By the other tail: 1 − δ/2 would be rounded, and to one below δ ≈ 1e-16.
    high[missed] = betainccinv(hits[missed] + 1, misses[missed], tail)
    # Some inversions fail (δ ≈ 1e-150, 1e12 trials), and some go astray without a word: SciPy 1.17 puts the low end of
    # 1000 hits in 1e9 trials at 1.9e-6. So every end has to pass the test of the tail beyond it.
    frequencies, most = hits / np.maximum(hits + misses, 1), (1 + 1e-6) * tail
    low_stands = ~hit | ((low <= frequencies) & (betainc(np.maximum(hits, 1), misses + 1, low) <= most))
    high_stands = ~missed | ((high >= frequencies) & (betaincc(hits + 1, np.maximum(misses, 1), high) <= most))
    for ends, stands, upper in ((low, low_stands, False), (high, high_stands, True)):
        if not stands.all():
            ends[~stands] = _chernoff_end(hits[~stands], misses[~stands], log_term=float(-np.log(tail)), upper=upper)
    return low[where].reshape(np.shape(successes)), high[where].reshape(np.shape(successes))


def _chernoff_end(hits: FloatArray, misses: FloatArray, *, log_term: float, upper: bool) -> FloatArray:
    """Return where n · KL(p̂ ‖ q) is L, Chernoff's end of an interval: never nearer than that of Clopper and Pearson."""
    inside = frequencies = hits / (hits + misses)
    outside = np.full_like(frequencies, float(upper))
    for _ in range(200):  # more halvings than a float has digits
        middle = (inside + outside) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            of_hits = np.where(hits > 0, hits * np.log1p((middle - frequencies) / frequencies), 0.0)
            of_misses = np.where(misses > 0, misses * np.log1p((frequencies - middle) / (1 - frequencies)), 0.0)
        far = -(of_hits + of_misses) >= log_term
        inside, outside = np.where(far, inside, middle), np.where(far, middle, outside)
    return outside


BET_RATIO = 1.5
"""Bets are so far apart: the nearest one needs at most 3 % more distance than the best."""

LARGEST_BET = 0.99

NEWTON_STEPS = 6

LEAST_LOG = -500.0
"""Below this power of e a distance from the largest value counts as zero."""


def mean_ceiling(
    values: FloatArray,
    counts: IntArray,
    *,
    most: FloatArray | float,
    delta: FloatArray | float,
    bets: FloatArray | None = None,
) -> FloatArray:
    """Return an upper bound for the mean of each row of independent values; the largest possible one where none is.

    Without `bets` the number of values in a row must be fixed beforehand. With bets that are fixed beforehand the bound
    holds for all numbers of values together, which may then depend on what was seen: W is a martingale in the values,
    and the probability that it ever reaches K/δ is at most δ/K (Ville's inequality).

    Parameters
    ----------
    values : [..., m]
        The different values that were seen.
    counts : [..., m]
        How often.
    most : [...]
        No value can be larger.
    delta : [...]
        The probability that the mean is above the bound, for each row.
    bets : [K]
        From the largest to the least, each 1.5 times the next (`fixed_bets`).

    Examples
    --------
    >>> seen, often = np.array([[0.0, 1.0], [0.3, 0.3]]), np.array([[500, 500], [1000, 0]])
    >>> mean_ceiling(seen, often, most=1.0, delta=0.05).round(4)
    array([0.5515, 0.3037])
    """
    below = np.maximum(np.asarray(most)[..., None] - values, 0.0)
    number = counts.sum(axis=-1)
    mean = (counts * below).sum(axis=-1) / np.maximum(number, 1)
    apart = mean > 0
    ratios = np.where(apart[..., None], below / np.where(apart, mean, 1.0)[..., None], 1.0)
    spread = np.maximum((counts * (ratios - 1) ** 2).sum(axis=-1) / np.maximum(number, 1), 1e-300)
    grid = fixed_bets(int(number.max(initial=0)), float(np.min(delta))) if bets is None else bets
    needed = np.log(len(grid)) - np.log(delta)
    scale = np.sqrt(2 * needed / np.maximum(number, 1))
    bet = _nearest(scale / np.sqrt(spread), grid)
    log_z = _ruin(counts, ratios, bet, needed, first=np.log(np.clip(1 - scale * np.sqrt(spread), 0.1, 1.0)))
    # The bet that suits a normal law need not be the best one: look for a better one there, and take the better bound.
    there = ratios * np.exp(-log_z)[..., None] - 1
    wealth = [(counts * np.log1p(each * there)).sum(axis=-1) for each in grid]
    better = grid[np.argmax(wealth, axis=0)]
    log_z = np.maximum(log_z, _ruin(counts, ratios, better, needed, first=log_z))
    return np.asarray(np.where(apart, most - mean * np.exp(log_z), most))


def _ruin(counts: IntArray, ratios: FloatArray, bet: FloatArray, needed: float, *, first: FloatArray) -> FloatArray:
    """Return ln z at which the wealth of a bet reaches its level, or less; differences are in units of their mean.

    With z = M − q the bet θ turns one into (1 − θ) + θ (M − x)/z. Its logarithm is convex in ln z and falls, so that
    after one step of Newton's all iterates are on the safe side.
    """
    log_z, stake = first, bet[..., None]
    for _ in range(NEWTON_STEPS):
        grown = stake * ratios * np.exp(-log_z)[..., None]
        wealth = (counts * np.log(1 - stake + grown)).sum(axis=-1)
        slope = (counts * (grown / (1 - stake + grown))).sum(axis=-1)
        log_z = np.clip(log_z + (wealth - needed) / np.where(slope > 0, slope, 1.0), LEAST_LOG, 0.0)
    return log_z


def _nearest(bet: FloatArray, grid: FloatArray) -> FloatArray:
    wanted = np.log(LARGEST_BET / np.clip(bet, grid[-1], LARGEST_BET))
    return np.asarray(grid[np.round(wanted / np.log(BET_RATIO)).astype(np.int64)])


def fixed_bets(number: int, delta: float) -> FloatArray:
    """Return bets for at most so many values: from the largest down to half of what suits the largest variance."""
    least = min(np.sqrt(-np.log(delta) / max(number, 1)) / 2, LARGEST_BET)
    steps = int(np.ceil(np.log(LARGEST_BET / least) / np.log(BET_RATIO)))
    return np.asarray(LARGEST_BET * BET_RATIO ** -np.arange(steps + 1.0))


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


def l1_radius(count: int, outcomes: int, *, delta: float) -> float:
    """Return how far, in the sum of absolute differences, an empirical law over `outcomes` can be from the true one."""
    if outcomes <= 1:
        return 0.0
    return min(float(np.sqrt(2 * (log_subsets(outcomes) - np.log(delta)) / count)), 2.0) if count else 2.0


def log_subsets(outcomes: int) -> float:
    """Return ln(2^m − 2), for m ≥ 2 outcomes of any number."""
    return float(outcomes * np.log(2) + np.log1p(-(2.0 ** (1 - outcomes))))


def transition_box(
    counts: IntArray, *, delta: float, interval: Interval = binomial_interval, support: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds [H − 1, …, S] that hold for all entries at once with probability 1 − δ.

    Parameters
    ----------
    counts : [H − 1, …, S]
        How often each state followed each entry, the number of draws fixed beforehand.
    delta
        The probability that any entry of the true kernel lies outside.
    interval
        One interval for one probability.
    support : [H or 1, …, S]
        Which next states are possible; all of them unless given.
    """
    possible = np.broadcast_to(True if support is None else support[: len(counts)], counts.shape)
    certain = possible & (possible.sum(axis=-1, keepdims=True) == 1)
    uncertain = possible & ~certain
    lower, upper = np.zeros(counts.shape), np.zeros(counts.shape)
    lower[certain] = upper[certain] = 1.0
    trials = np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)
    number = max(int(uncertain.sum()), 1)
    lower[uncertain], upper[uncertain] = interval(counts[uncertain], trials[uncertain], delta=delta / number)
    return lower, upper


PayoffTables = tuple[FloatArray, FloatArray]
"""The reward [H, S, A] and the costs [k, H, S, A] of one agent."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the samples say about one agent's CMDP: the empirical one, and how far off it can be.

    Thresholds are what a policy may cost, and in the optimistic box what a deviation may cost; the same, unless a
    discounted game was cut off.

    With probability 1 − δ the true kernel lies in the box, the true payoffs between the worst and the best ones.
    """

    box: BoxCMDP  # its nominal CMDP is the empirical one
    optimistic: BoxCMDP  # the same kernels, with the most favourable payoffs
    worst_reward: FloatArray  # [H, S, A]
    worst_costs: FloatArray  # [k, H, S, A]

    @classmethod
    def of(
        cls,
        nominal: CMDP,
        lower: FloatArray,
        upper: FloatArray,
        *,
        best: PayoffTables,
        worst: PayoffTables,
        thresholds: FloatArray,
    ) -> Estimate:
        """Put the empirical CMDP into its box, with payoffs at their best and at their worst.

        Parameters
        ----------
        nominal
            The empirical CMDP.
        lower, upper : [H, S, A, S]
            The box around its kernel.
        best, worst : [H, S, A], [k, H, S, A]
            The reward and the costs, most and least favourable.
        thresholds : [k]
            What a deviation may cost.
        """
        reward, costs = map(frozen, best)
        optimistic = replace(nominal, reward=reward, costs=costs, thresholds=frozen(thresholds), trusted=True)
        box, favourable = (BoxCMDP(each, frozen(lower), frozen(upper), trusted=True) for each in (nominal, optimistic))
        return cls(box, favourable, *map(frozen, worst))

    def best_deviation(self, bound: BoolArray) -> OptimisticResponse:
        """Solve the extended CMDP, in which a deviation has to meet the constraints that bind the agent: bound is [k].

        Its `bound` is at least the value of any of them with probability 1 − δ.
        """
        if bound.all():
            return optimistic_response(self.optimistic)
        deviating = bound_cmdp(self.optimistic.nominal, bound)
        return optimistic_response(replace(self.optimistic, nominal=deviating, trusted=True))


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
    (`mixture_interval`, `mixture_radius`).
    """
    known, agent = problem.known, problem.agent
    learned = known.payoffs is None
    box = kernel_and_box(
        samples.transitions,
        known.horizon,
        delta=delta / 2 if learned else delta,
        interval=interval,
        support=known.induced_support(agent),
    )
    if learned:
        mine = slice(agent, agent + 1)
        (rewards, costs), radii = learned_payoffs(known, samples, delta / 2, agents=mine, radius=radius)
        reward, off, costs_off = rewards[0], radii[0][0], radii[1]
    else:
        reward, costs = problem.payoffs
        off = costs_off = np.zeros(1)
    return Estimate.of(
        _cmdp(problem, box[0], reward, costs),
        *box[1:],
        best=(reward + off, costs - costs_off),
        worst=(reward - off, costs + costs_off),
        thresholds=known.thresholds,
    )


def empirical_cmdp(problem: InducedProblem, samples: Samples) -> CMDP:
    """Return the CMDP with the empirical kernel; rewards and costs must be known."""
    support = problem.known.induced_support(problem.agent)
    return _cmdp(problem, empirical_kernel(samples.transitions, support), *problem.payoffs)


def empirical_kernel(counts: IntArray, support: BoolArray | None = None) -> FloatArray:
    """Return p̂ = n(s')/n [H, …, S] from counts [H − 1, …, S]; uniform over the possible states where nothing was tried,
    and at the last step, which leads nowhere.
    """
    full = np.concatenate([counts, np.zeros((1, *counts.shape[1:]), dtype=np.int64)])
    possible = np.broadcast_to(True if support is None else support, full.shape)
    guess = possible / np.maximum(possible.sum(axis=-1, keepdims=True), 1)
    trials = full.sum(axis=-1, keepdims=True)
    return frozen(np.where(trials > 0, full / np.maximum(trials, 1), guess))


def kernel_and_box(
    counts: IntArray, horizon: int, *, delta: float, interval: Interval, support: BoolArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the empirical kernel and its box, [H, …, S] each, from counts [H − 1, …, S], or [1, …, S] of all steps."""
    kernel = empirical_kernel(np.broadcast_to(counts, (horizon - 1, *counts.shape[1:])), support)
    lower, upper = kernel.copy(), kernel.copy()
    lower[:-1], upper[:-1] = transition_box(counts, delta=delta, interval=interval, support=support)
    return kernel, frozen(lower), frozen(upper)


def _cmdp(problem: InducedProblem, kernel: FloatArray, reward: FloatArray, costs: FloatArray) -> CMDP:
    known = problem.known
    return CMDP(
        transition=kernel,
        reward=frozen(reward),
        costs=frozen(costs),
        thresholds=known.limits,
        initial=known.initial,
        horizon=known.horizon,
        entry_roundings=average_roundings(known.num_actions),
        trusted=True,
    )


def learned_payoffs(
    known: ProblemSpec, samples: Samples, delta: float, *, agents: slice, radius: Radius = hoeffding_radius
) -> tuple[PayoffTables, PayoffTables]:
    """Return the means of the rewards of some agents and of the costs that were observed, and their radii, which hold
    for all entries at once with probability 1 − δ.
    """
    if samples.observed is None:
        raise SimulatorError("rewards and costs are neither known nor observed; a simulator must give one of both.")
    sums = (samples.observed.rewards[agents], samples.observed.costs)
    share = delta / sum(table.size for table in sums)
    means, radii = [], []
    for table, bounds in zip(sums, (known.reward_bounds[agents], known.cost_bounds), strict=True):
        wide = np.broadcast_to(bounds, (len(table), known.horizon, 2))
        least, greatest = (wide[..., end].reshape(*wide.shape[:2], *(1,) * (table.ndim - 2)) for end in (0, 1))
        trials = np.broadcast_to(samples.visits, table.shape)
        means.append(np.where(trials > 0, table / np.maximum(trials, 1), (least + greatest) / 2))
        radii.append(radius(trials, span=greatest - least, delta=share))
    return (means[0], means[1]), (radii[0], radii[1])
