"""What was executed is in the result, however the run ends."""

from dataclasses import replace

import numpy as np
import pytest
from behind_doors import WRONG, Faulty, common_reward_game, known_of

from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.errors import BudgetError, SimulatorError
from cmpg.learning.ascent import learn
from cmpg.learning.environment import EnvironmentSimulator
from cmpg.learning.outcome import judge
from cmpg.learning.safe import Pace, safe_learner
from cmpg.learning.simulator import GameSimulator, Logbook
from cmpg.paper.algorithm_4 import OnlineToBatch
from cmpg.scenarios import spectrum

GAME = common_reward_game(0)  # two steps
START = feasible_start(GAME).policy


def steps_played(result):
    return sum(each.episodes for each in result.played) * 2


@pytest.mark.parametrize("kind", ["state", "nan"])
@pytest.mark.parametrize("answered", [1500, 1501])
def test_an_environment_that_fails_in_the_middle_of_a_safe_response(kind, answered):
    environment = Faulty(GAME, at=answered + 1, answer=WRONG[kind][0])
    simulator = EnvironmentSimulator(environment, known=known_of(GAME), rng=np.random.default_rng(0))
    learner = safe_learner(simulator.known, epsilon=0.05, pace=Pace(growth=0.2))
    with pytest.raises(SimulatorError) as caught:
        learn(simulator, epsilon=0.05, delta=0.1, start=START, learner=learner)
    result = caught.value.result
    assert sum(result.samples.values()) == answered + 1
    assert 500 < caught.value.samples.visits.sum() <= answered  # of the response at hand
    assert len(result.played) > 5
    assert steps_played(result) == 1502  # the episode that was cut short was begun
    assert judge(GAME, result).unsafe_policies == 0


def test_an_interrupt_in_the_middle_of_a_response():
    simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    rounds = []

    def stop(response):
        rounds.append(response)
        if len(rounds) == 3:
            raise KeyboardInterrupt

    learner = replace(safe_learner(simulator.known, epsilon=0.4), on_round=stop)
    result = learn(simulator, epsilon=0.4, delta=0.1, learner=learner)
    assert result.status is Status.INTERRUPTED
    assert result.samples["responses"] == rounds[-1].samples > 0
    assert steps_played(result) == result.total_samples


def test_a_response_that_is_refused_half_way():
    """DOPE's episodes are played before the measuring is found to be too much."""
    simulator = GameSimulator(GAME, rng=np.random.default_rng(0), budget=300)
    result = learn(simulator, epsilon=1.5, delta=0.1, start=START, learner=OnlineToBatch(rounds=100))
    assert any('samples for "measuring" are needed' in each for each in result.void)
    assert result.samples["responses"] == 200
    assert steps_played(result) == result.total_samples


def test_what_is_refused_or_only_drawn_is_not_executed():
    book = Logbook(GameSimulator(GAME, rng=np.random.default_rng(0), budget=200))
    with pytest.raises(BudgetError):
        book.roll_out(START, 101)
    book.draw(h=0, s=0, a=(0, 0), count=2)
    book.draw_all(count=1)
    book.draw_induced(0, START, count=1)
    assert book.played == ()
    book.roll_out(START, 3)
    book.roll_out(START, 4)
    (played,) = book.played
    assert (played.policy, played.episodes) == (START, 7)
