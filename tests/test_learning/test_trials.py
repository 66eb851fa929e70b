"""Many seeds: the same bits for any number of processes, and counts with their intervals."""

import numpy as np
import pytest
from scipy.stats import binomtest

from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import CMPGError
from cmpg.learning.generative import Adaptive
from cmpg.learning.safe import Pace, safe_learner
from cmpg.learning.trials import ByResponses, BySharedModel, HiddenGame, Proportion, trials
from cmpg.scenarios import counter_example, spectrum


def run(method, *, seeds=3, jobs=1, watch=None, game=None, **settings):
    streams = np.random.SeedSequence(4).spawn(seeds)
    done = trials(HiddenGame(game or spectrum(), **settings), method, streams=streams, jobs=jobs, watch=watch)
    return sorted(done, key=lambda each: each.index)


def bits(done):
    return [(each.index, each.result.policy.fingerprint(), dict(each.result.samples)) for each in done]


def test_processes_change_no_bit():
    method = ByResponses(epsilon=0.3, delta=0.1, start=None, learner=Adaptive())
    alone, together = run(method, seeds=2), run(method, seeds=2, jobs=2)
    assert bits(alone) == bits(together)
    assert len({key for _, key, _ in bits(alone)}) == 2  # the seeds differ from each other
    assert all(each.result.certified and each.right for each in (*alone, *together))


def test_progress_is_watched():
    seen = []
    known = HiddenGame(counter_example()).simulator(np.random.default_rng(0)).known
    start = feasible_start(counter_example()).policy
    methods = [
        ByResponses(epsilon=0.8, delta=0.1, start=start, learner=Adaptive()),
        ByResponses(
            epsilon=0.8, delta=0.1, start=start, learner=safe_learner(known, epsilon=0.8, pace=Pace(growth=0.5))
        ),
        BySharedModel(epsilon=0.8, delta=0.1),
    ]
    for method in methods:
        before = len(seen)
        done = run(method, seeds=1, watch=seen.append, payoff_noise=0.1, game=counter_example())
        assert done[0].right
        assert len(seen) > before
        assert seen[-1].samples == done[0].result.total_samples


def test_the_budget_is_for_each_seed():
    done = run(BySharedModel(epsilon=0.001, delta=0.1), budget=10_000)
    assert [each.result.certified for each in done] == [False] * 3
    assert all(0 < each.result.total_samples <= 10_000 for each in done)


@pytest.mark.parametrize(("count", "total"), [(0, 200), (3, 200), (34, 200), (5, 5)])
def test_intervals_are_those_of_another_library(count, total):
    tally = Proportion.of([True] * count + [False] * (total - count))
    other = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert (tally.count, tally.trials) == (count, total)
    assert tally.lowest == pytest.approx(other.low)
    assert tally.highest == pytest.approx(other.high)


@pytest.mark.parametrize("jobs", [0, -1, 1.5])
def test_a_wrong_number_of_processes_is_refused(jobs):
    with pytest.raises(CMPGError, match="jobs is"):
        run(BySharedModel(epsilon=0.5, delta=0.1), jobs=jobs)


def test_the_margin_of_the_safe_learner_follows_epsilon_and_the_budget():
    known = HiddenGame(spectrum()).simulator(np.random.default_rng(0)).known
    assert safe_learner(known, epsilon=0.1).margin == pytest.approx(0.15 * 0.1 / 1.8 / 16)
    assert safe_learner(known, epsilon=0.1, margin=0.02).margin == 0.02
    learner = safe_learner(known, epsilon=0.1)
    assert learner.least_slack * known.cost_spans.sum() == pytest.approx(learner.margin / 4)
