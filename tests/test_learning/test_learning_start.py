"""What is known about a start before the first sample, and what episodes add."""

from dataclasses import replace

import numpy as np
import pytest
from behind_doors import two_agent_game
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.errors import StartError
from cmpg.games.joint.game import JointGame
from cmpg.learning import ascent
from cmpg.learning.ascent import cost_range, require_possible, safe_start
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, spectrum


def hidden(game, seed=0, **options):
    return GameSimulator(game, rng=np.random.default_rng(seed), **options)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=25)
def test_the_range_holds_whatever_the_transition_is(seed, sparse, told):
    rng = np.random.default_rng(seed)
    game = two_agent_game(seed % 997, sparse=sparse)
    policy = game.random_policy(rng=rng)
    bounds = cost_range(hidden(game, reveal_support=told), policy)
    others = [game.transition]
    if not told:
        others += [rng.dirichlet(np.full(3, 0.1), size=game.transition.shape[:-1]) for _ in range(5)]
    for transition in others:
        cost = replace(game, transition=transition).at(policy).costs[0]
        assert bounds.cost_floors[0] - 1e-12 <= cost <= bounds.cost_ceilings[0] + 1e-12


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_the_ends_of_the_range_are_attained(seed):
    """By the transition that always leads to the worst, or the best, state: found by trying all of them."""
    game = two_agent_game(seed % 997, horizon=2, states=2, actions=(2, 2))
    policy = game.random_policy(rng=np.random.default_rng(seed))
    bounds = cost_range(hidden(game), policy)
    costs = []
    for target in (0, 1):
        transition = np.zeros(game.transition.shape)
        transition[..., target] = 1.0
        costs.append(replace(game, transition=transition).at(policy).costs[0])
    assert bounds.cost_floors[0] == pytest.approx(min(costs))
    assert bounds.cost_ceilings[0] == pytest.approx(max(costs))


def test_all_idle_is_a_safe_start_of_spectrum():
    policy = safe_start(hidden(spectrum()))
    assert all((table[..., 0] == 1).all() for table in policy)


def test_a_safe_start_is_safe_for_every_transition_and_two_constraints():
    game = two_agent_game(0)
    two = replace(game, costs=np.concatenate([game.costs, 1 - game.costs]), thresholds=[2.5, 2.5])
    policy = safe_start(hidden(two))
    rng = np.random.default_rng(0)
    for _ in range(20):
        transition = rng.dirichlet(np.full(3, 0.1), size=game.transition.shape[:-1])
        assert (replace(two, transition=transition).at(policy).costs <= 2.5).all()


def test_where_none_is_found_none_is_returned():
    game = two_agent_game(0)
    assert safe_start(hidden(replace(game, thresholds=[0.01]))) is None
    assert safe_start(hidden(game, payoff_noise=5.0)) is None


def test_without_constraints_any_start_is_safe():
    game = two_agent_game(0)
    free = replace(game, costs=np.zeros((0, 1, 3, 2, 3)), thresholds=[])
    assert safe_start(hidden(free)) is not None


def test_what_cannot_meet_the_constraints_is_refused():
    game = counter_example()
    policy = game.uniform_policy().replace(0, [[[0, 1]]]).replace(1, [[[0, 1]]])
    with pytest.raises(StartError, match="costs at least 1"):
        require_possible(hidden(game), policy)
    assert require_possible(hidden(game), game.uniform_policy()).cost_ceilings == pytest.approx([0.25])


def two_costs(thresholds):
    """The first step costs 0.25 of the first budget, and the second step 1 of the other one where the coin says so."""
    return JointGame(
        transition=np.full((1, 2, 2, 2), 0.5),
        rewards=np.zeros((1, 1, 2, 2)),
        costs=[[[[0.25, 1.0]] * 2, [[0.0, 0.0]] * 2], [[[0.0, 0.0]] * 2, [[0.0, 0.0], [1.0, 1.0]]]],
        thresholds=thresholds,
        initial=[1.0, 0.0],
        horizon=2,
    )


def test_a_start_may_spend_all_that_is_allowed_and_no_more():
    policy = JointPolicy((np.eye(2)[np.zeros((2, 2), dtype=int)],))
    for threshold, possible in ((0.25, True), (0.24, False)):
        simulator = GameSimulator(two_costs([threshold, 1.0]), rng=np.random.default_rng(0))
        assert (ascent.safe_start(simulator) is not None) is possible
        if possible:
            assert ascent.require_possible(simulator, policy).cost_floors.tolist() == [0.25, 0.0]
        else:
            with pytest.raises(StartError, match=r"constraint 0 has the threshold 0\.24, .* costs at least 0\.25"):
                ascent.require_possible(simulator, policy)
