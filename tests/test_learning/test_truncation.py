"""Discounted games, learned over the steps that matter."""

from dataclasses import replace

import numpy as np
import pytest

from cmpg.equilibrium.discounted import prolonged
from cmpg.equilibrium.solve import solve
from cmpg.errors import CMPGError, SimulatorError
from cmpg.games.joint.game import JointGame
from cmpg.learning.ascent import learn
from cmpg.learning.outcome import judge
from cmpg.learning.safe import Pace, safe_learner
from cmpg.learning.shared import learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.truncation import cut_off, finite_form, steps_for, steps_until_rounding
from cmpg.scenarios import counting_congestion_game, grid_world_local, spectrum


def discounted(num_agents=2, discount=0.6):
    return replace(spectrum(num_agents=num_agents), horizon=None, discount=discount)


def hidden(game, epsilon, seed=0):
    return GameSimulator(game, rng=np.random.default_rng(seed), horizon=steps_for(game, epsilon))


def shifted(game, by):
    return JointGame(
        transition=game.transition,
        rewards=game.rewards + by,
        costs=game.costs + by,
        thresholds=game.thresholds + by / (1 - game.discount),
        initial=game.initial,
        discount=game.discount,
    )


@pytest.mark.parametrize(
    "build", [discounted, lambda: replace(counting_congestion_game(num_agents=4), horizon=None, discount=0.5)]
)
def test_values_and_costs_of_the_cut_game_are_off_by_no_more_than_the_tails(build):
    game = build()
    policy = game.random_policy(rng=np.random.default_rng(1))
    whole = game.at(policy)
    for horizon in (1, 3, 8):
        finite, cut = cut_off(game, horizon)
        position = finite.at(prolonged(policy, horizon))
        later = whole.costs - cut.cost_shifts - position.costs
        assert np.all(later >= -1e-9)
        assert np.all(later <= cut.cost_tails + 1e-9)
    # Values are shifted by a constant, which differences do not see.
    other = policy.replace(0, game.random_policy(rng=np.random.default_rng(2))[0])
    there = finite.at(prolonged(other, horizon)).values - position.values
    assert np.all(np.abs(there - (game.at(other).values - whole.values)) <= cut.reward_tails + 1e-9)


@pytest.mark.parametrize("horizon", [2, 7])
def test_what_follows_the_cut_is_taken_off_the_thresholds_and_off_epsilon(horizon):
    """Theorem 5: a policy may cost α − m/(1 − γ) − γ^H C/(1 − γ), and ε − γ^H R/(1 − γ) is left to learn."""
    discount = 0.6
    game = shifted(discounted(discount=discount), 0.25)
    known = GameSimulator(game, rng=np.random.default_rng(0), horizon=horizon).known
    least, most = (np.array([end(cost) for cost in game.costs]) for end in (np.min, np.max))
    tails = discount**horizon * (most - least) / (1 - discount)
    assert np.all(tails > 0)
    assert known.limits == pytest.approx(game.thresholds - least / (1 - discount) - tails)
    worst = max(np.ptp(reward) for reward in game.rewards) * discount**horizon / (1 - discount)
    assert known.left_of(10.0) == pytest.approx(10.0 - worst)


def test_the_number_of_steps_is_the_least_that_keeps_to_its_shares():
    game, epsilon = discounted(), 0.4
    steps = steps_for(game, epsilon)

    def kept(horizon):
        cut = cut_off(game, horizon)[1]
        rate = game.thresholds / game.reward_ranges.max()
        return cut.reward_tails.max() <= epsilon / 8 and np.all(cut.cost_tails <= epsilon / 16 * rate)

    assert kept(steps)
    assert not kept(steps - 1)
    assert steps_for(shifted(game, 3.0), epsilon) == steps


@pytest.mark.parametrize("mode", ["generative", "shared", "safe"])
def test_a_discounted_game_is_learned_in_every_mode(mode):
    game, epsilon = discounted(num_agents=1 if mode == "safe" else 2), 0.8
    simulator = hidden(game, epsilon)
    if mode == "shared":
        result = learn_shared(simulator, epsilon=epsilon, delta=0.1)
    else:
        safe = safe_learner(simulator.known, epsilon=epsilon, pace=Pace(growth=0.5, most=10**12))
        result = learn(simulator, epsilon=epsilon, delta=0.1, learner=safe if mode == "safe" else None)
    assert result.certified
    assert result.epsilon == epsilon
    assert result.settings["cut_off_after"] == steps_for(game, epsilon)
    judged = judge(game, result)
    assert judged.right(epsilon)
    assert judged.unsafe_policies == 0 or mode != "safe"
    # What is promised leaves room for what follows: in the first steps there is less to spend.
    finite, cut = cut_off(game, steps_for(game, epsilon))
    assert np.all(finite.at(result.policy).costs <= finite.thresholds - cut.cost_tails)


def test_costs_are_told_as_the_discounted_game_has_them():
    game, epsilon = shifted(discounted(), 0.25), 0.9
    result = learn_shared(hidden(game, epsilon), epsilon=epsilon, delta=0.1)
    judged = judge(game, result)
    assert result.certified
    assert judged.right(epsilon)
    assert np.all(judged.costs <= game.thresholds)
    assert np.all(judged.costs >= 0.25 / 0.4)


def test_the_finite_form_has_the_equilibria_of_the_discounted_game():
    game = discounted()
    found = solve(game, epsilon=1e-6)
    finite = finite_form(game)
    assert finite.horizon == steps_until_rounding(game)
    position = finite.at(prolonged(found.policy, finite.horizon))
    assert position.costs == pytest.approx(found.costs)
    assert finite_form(spectrum()) is not None


def test_too_few_steps_and_what_has_no_discount_are_refused():
    game = discounted()
    with pytest.raises(SimulatorError, match=r"discounted.*steps_for"):
        GameSimulator(game, rng=np.random.default_rng(0))
    with pytest.raises(SimulatorError, match="the game has 2 steps"):
        GameSimulator(spectrum(), rng=np.random.default_rng(0), horizon=3)
    short = GameSimulator(game, rng=np.random.default_rng(0), horizon=1)
    for way in (learn, learn_shared):
        with pytest.raises(CMPGError, match=r"cut off after 1 steps.*Take more steps"):
            way(short, epsilon=0.1, delta=0.1)
    with pytest.raises(CMPGError, match="only a discounted one"):
        cut_off(grid_world_local(), 3)
