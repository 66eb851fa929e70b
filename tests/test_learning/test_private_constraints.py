"""Learning where constraints bind some agents only: a policy meets all, a deviation those that bind its agent."""

from __future__ import annotations

import numpy as np
import pytest

import cmpg
from cmpg.errors import UnsupportedError
from cmpg.games import bind, by_window
from cmpg.learning import (
    Adaptive,
    APriori,
    GameSimulator,
    InducedProblem,
    LocalModel,
    LocalSimulator,
    Pace,
    SafeExploration,
    bounds_table,
    judge,
    learn,
    learn_shared,
)
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.joint_model import model_of


def two_budgets(seed: int, *, horizon: int = 3) -> cmpg.JointGame:
    """One reward; what each agent's action costs counts against a budget of its own, which binds it alone."""
    rng = np.random.default_rng(seed)
    own = rng.random((3, 2))
    other = rng.random((3, 2))
    reward = rng.random((1, 1, 3, 2, 2))
    shape = (1, 3, 2, 2)
    game = cmpg.JointGame(
        transition=rng.dirichlet(np.ones(3), size=(1, 3, 2, 2)),
        rewards=np.concatenate([reward, reward]),
        costs=[np.broadcast_to(own[:, :, None], shape), np.broadcast_to(other[:, None, :], shape)],
        thresholds=[0.45 * horizon, 0.5 * horizon],
        initial=np.full(3, 1 / 3),
        horizon=horizon,
    )
    return bind(game, [[1, 0], [0, 1]])


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("method", [learn, learn_shared])
def test_private_budgets_are_learned(method, seed):
    game = two_budgets(seed)
    result = method(GameSimulator(game, rng=np.random.default_rng(seed)), epsilon=0.4, delta=0.1)
    assert result.certified
    assert judge(game, result).right(0.4)  # by the true game, with its mask


def test_safe_exploration_plays_nothing_that_breaks_the_budget_of_another():
    game = two_budgets(0, horizon=2)
    start = cmpg.solve(game.with_thresholds(0.8 * game.thresholds)).policy
    learner = SafeExploration(pace=Pace(growth=0.5), margin=0.02)
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    result = learn(simulator, start=start, learner=learner, epsilon=1.0, delta=0.1)
    judged = judge(game, result)
    assert result.certified
    assert judged.right(1.0)
    assert judged.unsafe_policies == 0


def test_a_response_that_breaks_the_budget_of_another_ends_the_query_and_is_never_moved_to():
    # Agent 1 earns by its second action alone, which costs agent 0's budget alone: it does not mind, and all who play
    # the game would have to.
    earns = np.broadcast_to([[0.0, 1.0]], (2, 2))
    game = cmpg.JointGame(
        transition=np.full((1, 2, 2, 2, 2), 0.5),
        rewards=np.stack([np.zeros((2, 2, 2)), np.stack([earns, earns])])[:, None],
        costs=[np.stack([earns, earns])[None]],
        thresholds=[1.0],
        initial=[0.5, 0.5],
        horizon=3,
    )
    masked = bind(game, [[1], [0]])
    still = cmpg.JointPolicy.reference(game.policy_shapes)
    result = learn(GameSimulator(masked, rng=np.random.default_rng(0)), start=still, epsilon=0.1, delta=0.1)
    assert not result.certified
    assert "breaks constraint 0, which does not bind it" in result.void[0]
    assert np.array_equal(result.policy[1], still[1])
    assert learn(GameSimulator(game, rng=np.random.default_rng(0)), start=still, epsilon=0.1, delta=0.1).certified


def test_the_ceiling_of_a_response_minds_what_binds_the_agent_and_nothing_else():
    game = two_budgets(2).with_thresholds([1.37, 1.5])
    policy = game.uniform_policy()
    best, minding_all = (cmpg.Exact()(each.at(policy).induced_cmdp(1)).value for each in (game, game.with_binds(None)))
    assert best > minding_all + 0.1  # agent 1 would break agent 0's budget
    for learner in (Adaptive(max_count=2**13), SafeExploration(pace=Pace(growth=1.0, most=2**16))):
        problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 1, policy)
        assert best <= learner(problem, epsilon=0.01, delta=0.1).value_ceiling < best + 0.3


def test_models_bound_all_costs_and_gains_by_what_binds():
    """An agent's CMDP has no cost in place of one that does not bind it: the ceilings of all must not come from it."""
    game = two_budgets(2)
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    samples = simulator.draw_all(count=4000)
    model = model_of(simulator.known, samples, delta=0.1, interval=binomial_interval)
    policy = game.uniform_policy()
    plain = GameSimulator(game.with_binds(None), rng=np.random.default_rng(0)).known
    unmasked = model_of(plain, samples, delta=0.1, interval=binomial_interval)
    truth = game.at(policy)
    assert np.array_equal(model.cost_ceilings(policy), unmasked.cost_ceilings(policy))
    assert np.all(model.cost_ceilings(policy) >= truth.costs)
    gain = max(cmpg.Exact()(truth.induced_cmdp(i)).value - truth.values[i] for i in (0, 1))
    assert model.bound(policy).gap >= gain > unmasked.bound(policy).gap  # who minds less can gain more
    assert model.game.binds is not None


def test_local_models_mind_the_mask_as_well():
    plain = cmpg.scenarios.grid_world_local()
    masked = bind(plain, [[0], [1]])
    policy = plain.uniform_policy()
    gaps = []
    for game in (plain, masked):
        simulator = LocalSimulator(game, rng=np.random.default_rng(0))
        model = LocalModel.of(simulator.known, simulator.draw_all(count=10**6), delta=0.1, interval=binomial_interval)
        gaps.append(model.bound(policy).gap)
        assert np.array_equal(simulator.known.bound(0), game.at(policy).induced_cmdp(0).costs.any(axis=(1, 2, 3)))
    best = cmpg.Exact()(masked.at(policy).induced_cmdp(0)).value - masked.at(policy).values[0]
    assert gaps[1] >= best > gaps[0]


def test_learners_of_the_theory_refuse_masks():
    game = two_budgets(1)
    simulator = GameSimulator(game, rng=np.random.default_rng(0))
    problem = InducedProblem(simulator, 0, game.uniform_policy())
    learner = APriori(slater=0.5)
    with pytest.raises(UnsupportedError, match="bind some agents only"):
        learner(problem, epsilon=0.5, delta=0.1)
    with pytest.raises(UnsupportedError, match="bind some agents only"):
        learn(simulator, start=game.uniform_policy(), learner=learner, epsilon=0.5, delta=0.1)
    with pytest.raises(UnsupportedError, match="bind some agents only"):
        bounds_table(simulator.known, slater=0.1, epsilon=0.5, delta=0.1)


def test_budgets_of_windows_are_learned():
    game = by_window(cmpg.scenarios.spectrum(), 1, 0.3)
    for method in (learn, learn_shared):
        result = method(GameSimulator(game, rng=np.random.default_rng(0)), epsilon=0.5, delta=0.1)
        assert result.certified
        assert judge(game, result).right(0.5)
