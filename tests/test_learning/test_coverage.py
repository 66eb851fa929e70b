"""Coverage in small, with a negative control: what is claimed is false in at most a share δ of all runs, and if the
confidence intervals were too short, this test would show it.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from cmpg.games.joint.game import JointGame
from cmpg.learning import generative, optimism
from cmpg.learning.ascent import learn
from cmpg.learning.confidence import binomial_interval, mean_ceiling
from cmpg.learning.generative import Adaptive
from cmpg.learning.outcome import judge
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy

EPSILON, DELTA, SEEDS = 0.3, 0.1, 50


def two_drivers():
    """Both earn what both drive; each who is fast adds 0.3 to the chance of an accident, and 0.25 is allowed."""
    speed = np.add.outer([0.0, 1.0], [0.0, 1.0])
    accident = np.broadcast_to(0.3 * speed, (2, 2, 2))
    rewards, costs = np.zeros((2, 2, 2, 2, 2)), np.zeros((1, 2, 2, 2, 2))
    rewards[:, 0], costs[0, 1, 1] = speed, 1.0
    return JointGame(
        transition=np.stack([1 - accident, accident], axis=-1)[None],
        rewards=rewards,
        costs=costs,
        thresholds=[0.25],
        initial=[1.0, 0.0],
        horizon=2,
    )


def scaled(factor):
    """The interval that boxes use, with both ends drawn towards the frequency."""

    def interval(successes, trials, *, delta):
        low, high = binomial_interval(successes, trials, delta=delta)
        share = np.where(trials > 0, factor, 1.0)
        frequency = successes / np.maximum(trials, 1)
        return frequency - share * (frequency - low), frequency + share * (high - frequency)

    return interval


def scaled_ceiling(factor):
    """The bound that draws and episodes use, drawn towards the mean."""

    def ceiling(values, counts, **terms):
        found = mean_ceiling(values, counts, **terms)
        means = (counts * values).sum(axis=-1) / np.maximum(counts.sum(axis=-1), 1)
        return means + factor * (found - means)

    return ceiling


def false_claims(monkeypatch, *, box, factor):
    """How many of the runs claim what is not so: that the last policy is feasible, or, where certified, ε-Nash."""
    if not box:
        monkeypatch.setattr(optimism, "mean_ceiling", scaled_ceiling(factor))
    if factor < 1:  # candidates that are safe by themselves would hide bounds that are too short
        monkeypatch.setattr(generative._Rounds, "_tightened", lambda _, empirical, best, share, **terms: best)
    game = two_drivers()
    slow = JointPolicy(tuple(np.eye(2)[np.zeros((2, 2), dtype=int)] for _ in range(2)))
    count = 0
    for seed in range(SEEDS):
        simulator = GameSimulator(game, rng=np.random.default_rng(seed), reveal_support=True)
        learner = Adaptive(first_count=1024, interval=scaled(factor) if box else None)
        result = learn(simulator, epsilon=EPSILON, delta=DELTA, start=slow, learner=learner)
        assert result.moves > 0
        judged = judge(game, result)
        count += not judged.feasible or (result.certified and not judged.right(EPSILON))
    return count


def p_value(count):
    """The probability of so many or more, if each run fails with probability δ."""
    return binomtest(count, SEEDS, DELTA, alternative="greater").pvalue


@pytest.mark.parametrize("box", [True, False])
def test_what_is_claimed_is_false_in_no_more_than_a_share_delta(monkeypatch, box):
    assert p_value(false_claims(monkeypatch, box=box, factor=1.0)) > 0.05


@pytest.mark.parametrize("box", [True, False])
def test_bounds_that_are_too_short_are_found_out(monkeypatch, box):
    """The worst case over a box, and a union over all entries, have much to spare."""
    assert p_value(false_claims(monkeypatch, box=box, factor=0.05)) < 1e-4
