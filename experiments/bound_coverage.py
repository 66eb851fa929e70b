"""Do the bounds hold as often as they say? Many repeats of each, with a negative control that must fail.

python -m experiments.bound_coverage [repeats] prints, for δ = 0.1, how often each bound missed the truth: as it is,
and, for a tenth of the repeats, with its intervals drawn to a tenth of their length.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.exact import Exact
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.game import LocalGame
from cmpg.learning import optimism
from cmpg.learning.confidence import Interval, binomial_interval, mean_ceiling, mixture_interval
from cmpg.learning.local.model import LocalModel
from cmpg.learning.local.simulator import LocalKnown, LocalSamples, LocalSimulator
from cmpg.learning.trials import Proportion
from experiments.side_by_side import random_cmdp

DELTA = 0.1
SHRUNK = 0.1
"""The negative control has intervals of this share of their length."""


def shrunk(interval: Interval, successes: IntArray, trials: IntArray, *, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return an interval with both ends drawn towards the frequency."""
    low, high = interval(successes, trials, delta=delta)
    frequency = np.where(trials > 0, successes / np.maximum(trials, 1), (low + high) / 2)
    return frequency - SHRUNK * (frequency - low), frequency + SHRUNK * (high - frequency)


def mean_misses(rng: np.random.Generator, share: float) -> bool:
    """One mean: 40 values, 0 or 1, of mean 0.3."""
    ones = int(rng.binomial(40, 0.3))
    bound = float(mean_ceiling(np.array([0.0, 1.0]), np.array([40 - ones, ones]), most=1.0, delta=DELTA))
    mean = ones / 40
    return mean + share * (bound - mean) < 0.3


CMDP = random_cmdp(3, 2, 3, 0)
BEST = Exact()(CMDP)


def optimism_misses(rng: np.random.Generator, share: float) -> bool:
    """The ceiling of a CMDP with 3 states, 2 actions and 3 steps, from 20 draws of each entry."""
    kernel = np.broadcast_to(CMDP.transition, (3, 3, 2, 3))[:-1]
    drawn = rng.multinomial(20, kernel)
    costs = np.broadcast_to(CMDP.costs, (1, 3, 3, 2))
    scales = np.maximum(BEST.multipliers, 1e-3)

    def least(draws: IntArray) -> float:
        look = optimism.Optimism(
            optimism.Draws(draws), CMDP.reward, costs, CMDP.thresholds, CMDP.initial, scales, DELTA
        )
        return look.least_bound(BEST.multipliers).value

    found = least(drawn)
    if share < 1:  # towards what the frequencies say themselves
        seen = least(drawn * 10**9)
        found = seen + share * (found - seen)
    return found < BEST.value


@dataclass(frozen=True, eq=False)
class Small:
    """A local game of two agents of one kind, small enough for thousands of repeats."""

    game: LocalGame
    gap: float
    cost: float


def small() -> Small:
    """Draw it once and for all, with the uniform policy judged."""
    rng = np.random.default_rng(3)
    agent = LocalAgent(
        transition=rng.dirichlet(np.ones(2), size=(1, 2, 2)),
        reward=rng.random((3, 2, 2)),
        uses=np.array([[[[1], [0]], [[0], [1]]]]),
        initial=np.array([0.5, 0.5]),
    )
    game = LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0.5]]], load_costs=[[[[0, 0, 1]]]], thresholds=[0.8], horizon=3
    )
    judged = certify_with_best_responses(game, game.uniform_policy())
    return Small(game, judged.epsilon, float(judged.costs[0]))


SMALL = small()
KNOWN = LocalKnown.of(SMALL.game)


def local_misses(interval: Interval, rng: np.random.Generator, share: float) -> bool:
    """Kernel, cost ceiling or gap of a local game, from 30 draws of each entry."""
    samples = LocalSimulator(SMALL.game, rng=rng).draw_all(count=30)
    return model_misses(samples, interval, share)


def anytime_misses(rng: np.random.Generator, share: float) -> bool:
    """The same by intervals for all times, looked at after 10, 40 and 160 draws of each entry."""
    simulator, samples = LocalSimulator(SMALL.game, rng=rng), None
    for count in (10, 30, 120):
        drawn = simulator.draw_all(count=count)
        samples = drawn if samples is None else samples + drawn
        if model_misses(samples, mixture_interval, share):
            return True
    return False


def model_misses(samples: LocalSamples, interval: Interval, share: float) -> bool:
    """Whether the model does not hold the true kernel, or a bound of the uniform policy is wrong, looked at in every
    eighth repeat: if the kernel is held, it follows that it is right.
    """
    used = interval if share == 1 else partial(shrunk, interval)
    model = LocalModel.of(KNOWN, samples, delta=DELTA, interval=used)
    kernel, true = model.kernels[0], np.asarray(SMALL.game.agents[0].kernel)
    outside = bool(np.any(true < kernel.lower - 1e-12) or np.any(true > kernel.upper + 1e-12))
    if outside or int(samples.transitions[0][0, 0, 0, 0]) % 8:
        return outside
    bounds = model.bound(SMALL.game.uniform_policy())
    return bool(bounds.cost_ceilings[0] < SMALL.cost or bounds.gap < SMALL.gap)


BOUNDS: dict[str, Callable[[np.random.Generator, float], bool]] = {
    "one mean, by bets": mean_misses,
    "ceiling of a response, by draws": optimism_misses,
    "local game, by a fixed number of draws": partial(local_misses, binomial_interval),
    "local game, at all times": anytime_misses,
}


def measure(repeats: int) -> Iterator[str]:
    """Yield a line per bound."""
    for name, misses in BOUNDS.items():
        told = []
        for share, number in ((1.0, repeats), (SHRUNK, max(repeats // 10, 1))):
            rng = np.random.default_rng(7)
            tally = Proportion.of([misses(rng, share) for _ in range(number)])
            told.append(f"{tally.count:,} of {number:,}, rate in [{tally.lowest:.4f}, {tally.highest:.4f}]")
        yield f"{name}: misses {told[0]}; at {SHRUNK:g} of the length {told[1]}"


if __name__ == "__main__":
    for line in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000):
        print(line, flush=True)
