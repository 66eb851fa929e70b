"""Algorithm 2 to the letter, with responses whose quality is known."""

import numpy as np
import pytest

from cmpg.cmdp.exact import Exact
from cmpg.errors import CMPGError
from cmpg.learning.outcome import LearnedResponse, ResponseStatus
from cmpg.learning.simulator import GameSimulator
from cmpg.paper.algorithm_2 import algorithm_2
from cmpg.paper.learning import two_steps, two_steps_start
from cmpg.scenarios.paper import grid_world


class Known:
    """Learns nothing: best responses of the true game, and what was required of them."""

    def __init__(self, game):
        self.game, self.required = game, []

    def __call__(self, problem, *, epsilon, delta):
        self.required.append((epsilon, delta))
        best = Exact()(self.game.at(problem.policy).induced_cmdp(problem.agent))
        return LearnedResponse(
            status=ResponseStatus.CERTIFIED,
            message="",
            policy=best.policy,
            value_floor=best.value,
            value_ceiling=best.bound,
            cost_ceilings=best.costs,
            multipliers=best.multipliers,
            epsilon=epsilon,
            delta=delta,
            samples=0,
            samples_per_entry=0,
            work=0,
        )


def run(epsilon=0.25, seed=0):
    game = two_steps()
    learner, simulator = Known(game), GameSimulator(game, rng=np.random.default_rng(seed))
    return (
        game,
        learner,
        simulator,
        algorithm_2(simulator, two_steps_start(), learner=learner, epsilon=epsilon, delta=0.1),
    )


def test_constants_are_those_of_theorem_2():
    _, learner, _, found = run()
    agents, horizon, epsilon, delta = 2, 2, 0.25, 0.1
    assert found.constants.max_iterations == 4 * agents * horizon / epsilon
    assert found.constants.episodes == np.ceil(
        32 * horizon**2 / epsilon**2 * np.log(32 * agents**2 * horizon / (epsilon * delta))
    )
    assert set(learner.required) == {(epsilon / 4, epsilon * delta / (8 * agents**2 * horizon))}


def test_every_value_is_the_mean_of_its_own_episodes():
    _, _, simulator, found = run()
    batches = 1 + 2  # of the current policy, and of each agent's response
    assert simulator.ledger.total == len(found.iterations) * batches * found.constants.episodes * 2


def test_the_agent_with_the_greatest_gain_moves_while_that_exceeds_half_of_epsilon():
    game, _, _, found = run()
    policy = two_steps_start()
    for each in found.iterations:
        true = game.at(policy).values
        assert np.allclose(each.values, true, atol=0.05)  # the mean of 18,912 episodes
        if each.mover is None:
            assert each.gains.max() <= 0.125
        else:
            assert each.mover == each.gains.argmax()
            assert each.gains.max() > 0.125
            policy = policy.replace(each.mover, each.responses[each.mover].policy)
    assert found.moves >= 1
    assert found.ended
    assert np.array_equal(found.policy[0], policy[0])
    assert np.array_equal(found.policy[1], policy[1])


def test_what_it_ends_with_is_an_epsilon_nash_policy():
    game, _, _, found = run(seed=3)
    position = game.at(found.policy)
    assert np.all(position.slacks >= -1e-12)
    for agent in range(2):
        assert Exact()(position.induced_cmdp(agent)).bound - position.values[agent] <= 0.25


def test_rewards_outside_of_the_unit_interval_are_refused():
    game = grid_world()
    with pytest.raises(CMPGError, match=r"lie in \[0, 1\]"):
        algorithm_2(
            GameSimulator(game, rng=np.random.default_rng(0)),
            game.uniform_policy(),
            learner=Known(game),
            epsilon=1.0,
            delta=0.1,
        )
