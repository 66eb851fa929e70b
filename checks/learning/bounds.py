"""Do the bounds hold as often as they say, and how tight are they? Many repeats, and a negative control that must fail.

    python -m checks bounds [--repeats 10000]

Counts, for δ = 0.1, how often each bound missed the truth: as it is, and, for a tenth of the repeats, with its
intervals drawn to a tenth of their length. What is done is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from checks import BUILD, fingerprint
from checks.records import Record, Records
from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.game import LocalGame
from cmpg.learning import optimism
from cmpg.learning.confidence import Interval, binomial_interval, fixed_bets, mean_ceiling, mixture_interval
from cmpg.learning.local.model import LocalModel
from cmpg.learning.local.simulator import LocalProblemSpec, LocalSamples, LocalSimulator
from cmpg.learning.trials import Proportion
from cmpg.paper.learning import behind_a_door

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


def random_cmdp(states: int, actions: int, horizon: int, seed: int) -> CMDP:
    """Dirichlet ½ rows, uniform payoffs, and a threshold half-way between the cheapest and the selfish policy."""
    rng = np.random.default_rng(seed)
    shape = (horizon, states, actions)
    cmdp = CMDP(
        transition=rng.dirichlet(np.full(states, 0.5), size=shape),
        reward=rng.random(shape),
        costs=rng.random((1, *shape)),
        thresholds=[float(horizon)],
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    ends = [plan(cmdp, np.ones(1), reward_weight=0.0).costs[0], plan(cmdp, np.zeros(1)).costs[0]]
    return replace(cmdp, thresholds=np.array([np.mean(ends)]))


SMALL_CMDP = random_cmdp(3, 2, 3, 0)
BEST = Exact()(SMALL_CMDP)


def optimism_misses(rng: np.random.Generator, share: float) -> bool:
    """The ceiling of a CMDP with 3 states, 2 actions and 3 steps, from 20 draws of each entry."""
    kernel = np.broadcast_to(SMALL_CMDP.transition, (3, 3, 2, 3))[:-1]
    drawn = rng.multinomial(20, kernel)
    costs = np.broadcast_to(SMALL_CMDP.costs, (1, 3, 3, 2))
    scales = np.maximum(BEST.multipliers, 1e-3)

    def least(draws: IntArray) -> float:
        look = optimism.Optimism(
            optimism.Draws(draws), SMALL_CMDP.reward, costs, SMALL_CMDP.thresholds, SMALL_CMDP.initial, scales, DELTA
        )
        return look.least_bound(BEST.multipliers).value

    found = least(drawn)
    if share < 1:  # towards what the frequencies say themselves
        seen = least(drawn * 10**9)
        found = seen + share * (found - seen)
    return found < BEST.value


BATCHES = 2


def rolling_out_misses(rng: np.random.Generator, share: float) -> bool:
    """Value and cost of the same CMDP's optimum, by episodes beside a model that is wrong, looked at after 256 and
    512 of them.
    """
    problem = behind_a_door(SMALL_CMDP, rng)
    seen = optimism.Measurement(problem, BEST.policy, WRONG, delta=DELTA)
    for _ in range(BATCHES):
        seen.grow()
        middle, half = (seen.ceilings + seen.floors) / 2, share * (seen.ceilings - seen.floors) / 2
        if np.any(np.abs(TRUE_PAYOFFS - middle) > half + 1e-12):
            return True
    return False


WRONG = random_cmdp(3, 2, 3, 1)
TRUE_PAYOFFS = np.array([BEST.value, *BEST.costs])


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
KNOWN = LocalProblemSpec.of(SMALL.game)


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
    "local game, by a fixed number of draws": partial(local_misses, binomial_interval),
    "local game, at all times": anytime_misses,
    "ceiling of a response, by draws": optimism_misses,
    "value and costs, by rolling out": rolling_out_misses,
}


HEAD = f"""\
# Experiments: the bounds themselves

Written by `python -m checks bounds`, and nothing is edited by hand.

## How often they miss

Each bound is computed many times, and compared with the truth, on games small enough for that, at δ = {DELTA:g}. In the
negative control its intervals are drawn to {SHRUNK:g} of their length: it has to miss more often than δ allows, or
misses would not be seen. Rates are Clopper-Pearson at 95 %."""

CHUNK = 500
"""Repeats of one record; each has random numbers of its own."""


def count_misses(name: str, share: float, chunk: int) -> Record:
    """Repeat one bound, and return how often it missed."""
    rng = np.random.default_rng([7, chunk])
    missed = sum(BOUNDS[name](rng, share) for _ in range(CHUNK))
    return {"bound": name, "share": share, "chunk": chunk, "missed": missed}


def run_missing(repeats: int, path: Path) -> list[Record]:
    """Run what has no record yet, and return all records."""
    records = Records(path, lambda record: tuple(map(record.get, ("bound", "share", "chunk"))))
    for name in BOUNDS:
        for share, number in ((SHRUNK, repeats // 10), (1.0, repeats)):
            for chunk in range(number // CHUNK):
                if (name, share, chunk) not in records.known:
                    records.keep(count_misses(name, share, chunk))
                    print(f"{name}, {share:g} of the length: {(chunk + 1) * CHUNK:,}", flush=True)
    return [*records.known.values()]


BETS = """How many samples would other bets take, compared with the better of K bets at level K/δ? Samples fall with the
square of the distance between mean and bound, so these are squared distances over those of `mean_ceiling`, for shares
0.5, 0.1, 0.01 of 0/1 values, 256, 4,096 and 65,536 of them, and δ of 1e-3, 1e-6, 1e-9: least, median and largest. The
*mixture* of all K bets is another valid bound, with Σ_k W_k/K at level 1/δ; the *best bet in hindsight* at level 1/δ is
none: no bets that are fixed beforehand can save more."""


def wealth(bound: float, frequency: float, number: int, bet: FloatArray) -> FloatArray:
    """ln W_θ(q) of Lemma 1 for values 0 and 1, the largest of which is 1, by bets [K]."""
    lost, won = np.log1p(-bet), np.log(1 - bet + bet / (1 - bound))
    return np.asarray(number * (frequency * lost + (1 - frequency) * won))


def least_bound(reached: Callable[[float], bool], frequency: float) -> float:
    """Bisect for the least bound at which the wealth is enough."""
    low, high = frequency, 1 - 1e-12
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def bet_savings() -> list[str]:
    """Return the rows of a table: what a mixture takes, and what the best bet in hindsight would."""
    ratios = []
    for share, number, delta in product((0.5, 0.1, 0.01), (256, 4096, 65536), (1e-3, 1e-6, 1e-9)):
        ones, level = round(share * number), -np.log(delta)
        seen, often, bets = np.array([0.0, 1.0]), np.array([number - ones, ones]), fixed_bets(number, delta)
        frequency, grown = ones / number, partial(wealth, frequency=ones / number, number=number)
        now = float(mean_ceiling(seen, often, most=1.0, delta=delta)) - frequency
        mixed = least_bound(lambda q: logsumexp(grown(q, bet=bets)) >= level + np.log(len(bets)), frequency)  # noqa: B023
        single = np.geomspace(0.999, 1e-4, 150)
        best = least_bound(lambda q: grown(q, bet=single).max() >= level, frequency)  # noqa: B023
        ratios.append([((bound - frequency) / now) ** 2 for bound in (mixed, best)])
    names = ("mixture of all bets", "best bet in hindsight")
    columns = zip(names, np.array(ratios).T, strict=True)
    return [f"| {name} | {min(each):.2f} | {np.median(each):.2f} | {max(each):.2f} |" for name, each in columns]


def page(records: Sequence[Record]) -> str:
    """Return the page, of what is done."""
    lines = ["| bound | repeats | misses | rate | negative control: repeats | misses | rate |", "|" + " --- |" * 7]
    for name in BOUNDS:
        counts = [
            [each["missed"] for each in records if each["bound"] == name and each["share"] == share]
            for share in (1.0, SHRUNK)
        ]
        if all(counts):
            lines.append(f"| {' | '.join([name, *_tally(counts[0]), *_tally(counts[1])])} |")
    bets = ["| samples, compared | least | median | largest |", "|" + " --- |" * 4, *bet_savings()]
    return "\n\n".join([HEAD, "\n".join(lines), BETS, "\n".join(bets)]) + "\n"


def _tally(missed: Sequence[int]) -> list[str]:
    repeats = CHUNK * len(missed)
    rate = Proportion.of([number < sum(missed) for number in range(repeats)])
    return [f"{repeats:,}", f"{sum(missed):,}", f"[{rate.lowest:.4f}, {rate.highest:.4f}]"]


def main(argv: list[str]) -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description="How often bounds miss, and how tight they are.")
    parser.add_argument("--repeats", type=int, default=10_000)
    given = parser.parse_args(argv)
    text = page(run_missing(given.repeats, BUILD / "learning" / fingerprint() / "bounds.jsonl"))
    (BUILD / "bounds.md").write_text(text, encoding="utf-8")
    print(text)
