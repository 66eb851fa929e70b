"""Counting games are learned by classes of counts, and never by joint actions."""

import numpy as np
import pytest

from cmpg.errors import UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.learning.ascent import learn, safe_start
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.joint_model import JointModel, model_of
from cmpg.learning.outcome import judge
from cmpg.learning.shared import learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.scenarios import counting_congestion_game


def hidden(game, seed=0, **options):
    return GameSimulator(game, rng=np.random.default_rng(seed), **options)


def test_what_is_known_is_that_of_the_joint_form():
    game = counting_congestion_game(num_agents=3)
    counting, joint = hidden(game).known, hidden(game.to_joint()).known
    policy = game.random_policy(rng=np.random.default_rng(1))
    for agent in range(3):
        for here, there in zip(
            counting.induced_payoffs(agent, policy), joint.induced_payoffs(agent, policy), strict=True
        ):
            assert here == pytest.approx(there)
    assert counting.reward_ranges == pytest.approx(joint.reward_ranges)
    assert counting.entry_shape == (2, game.num_classes)
    revealed = hidden(game, reveal_support=True).known.induced_support(0)
    assert np.array_equal(revealed, hidden(game.to_joint(), reveal_support=True).known.induced_support(0))


def test_draws_are_by_class_and_charged_so():
    game = counting_congestion_game(num_agents=30)
    simulator = hidden(game)
    samples = simulator.draw_all(count=5)
    assert samples.visits.shape == (2, 2, game.num_classes)
    assert simulator.ledger.total == 5 * 2 * game.num_classes
    everybody_on_a = simulator.draw(h=0, s=0, a=(0,) * 30, count=1000)
    label = int(game.classes.of(np.array([30, 0, 0, 0])))
    row = game.transition[0, 0, label]
    assert everybody_on_a / 1000 == pytest.approx(row, abs=0.1)


def test_what_one_agent_sees_of_episodes_has_its_own_law():
    game = counting_congestion_game(num_agents=6)
    policy = game.random_policy(rng=np.random.default_rng(3))
    seen = hidden(game).roll_out(policy, 1_000_000, agent=2)
    cmdp = game.at(policy).induced_cmdp(2)
    visits = game.initial[:, None] * policy[2][0]
    assert seen.visits[0] / 1e6 == pytest.approx(visits, abs=0.003)
    rates = seen.transitions[0] / np.maximum(seen.transitions[0].sum(axis=-1, keepdims=True), 1)
    often = seen.visits[0] > 10_000
    assert rates[often] == pytest.approx(np.asarray(cmdp.transition)[0][often], abs=0.02)


def test_the_model_by_classes_bounds_as_much_as_the_model_by_joint_actions():
    """The same box, written once for each class and once for each joint action."""
    game = counting_congestion_game(num_agents=3)
    simulator = hidden(game)
    model = model_of(simulator.known, simulator.draw_all(count=200), delta=0.1, interval=binomial_interval)
    assert isinstance(model.game, CountingGame)
    classes = np.array([int(game.classes.of(np.bincount(a, minlength=4))) for a in np.ndindex(4, 4, 4)])
    joint = model.game.to_joint()
    ends = [np.take(table, classes, axis=2).reshape(2, 2, 4, 4, 4, 2) for table in (model.lower, model.upper)]
    written = JointModel(joint, *ends)
    policy = game.random_policy(rng=np.random.default_rng(5))
    here, there = model.bound(policy), written.bound(policy)
    assert here.gap == pytest.approx(there.gap)
    assert here.cost_ceilings == pytest.approx(there.cost_ceilings)
    assert model.proof_of_infeasibility() == written.proof_of_infeasibility() == ""
    impossible = JointModel(model.game.with_thresholds([-1.0]), model.lower, model.upper)
    assert "constraint" in impossible.proof_of_infeasibility()


@pytest.mark.parametrize(("way", "num_agents"), [(learn, 12), (learn_shared, 6)])
def test_many_agents_are_learned(way, num_agents):
    game = counting_congestion_game(num_agents=num_agents)
    result = way(hidden(game), epsilon=5.0, delta=0.1)
    assert result.certified
    assert judge(game, result).right(5.0)


def test_a_start_that_is_safe_whatever_happens_is_found_by_classes():
    game = counting_congestion_game(num_agents=8)
    start = safe_start(hidden(game))
    assert start is not None
    assert np.all(game.at(start).costs <= game.thresholds)


def test_payoffs_that_are_unknown_are_refused():
    with pytest.raises(UnsupportedError, match="a CountingGame is learned with rewards and costs that are known"):
        hidden(counting_congestion_game(num_agents=3), payoff_noise=0.1)
