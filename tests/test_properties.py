"""What holds for every game that hypothesis can invent: exactly feasible, certified, monotone, bounded."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.equilibrium.ascent import Ascent, coordinate_ascent, theorem_1_bound
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.loop import GreatestGain, RoundRobin
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.runs import Restarts
from cmpg.equilibrium.solve import solve
from cmpg.games.joint.game import JointGame
from cmpg.policy import JointPolicy
from oracles.judge import judge
from strategies import plain, policies, samples


def suitable_epsilon(game):
    """1e-6 in units of the largest value that there can be."""
    return 1e-6 * max(float(np.abs(game.rewards).max()) * game.horizon, 1e-300)


@settings(deadline=None, max_examples=40)
@given(sample=samples(scales=(1.0, 1e9, 1e-9)), schedule=st.sampled_from([GreatestGain(), RoundRobin()]))
def test_ascent_is_feasible_monotone_bounded_and_certified(sample, schedule):
    game, epsilon, steps = sample.game, suitable_epsilon(sample.game), []
    result = coordinate_ascent(
        game, sample.start, epsilon=epsilon, method=Ascent(schedule=schedule), on_progress=steps.append
    )
    if result.multipliers.size and result.multipliers.max() * game.costs.max() > 1e9 * np.abs(game.rewards).max():
        # A budget that is met to the last bit can leave the others a sliver of it whose price has no bound; then
        # floating point may not prove what holds, and says so.
        assert result.certified or "rounding" in result.message
    else:
        assert result.status is Status.CERTIFIED, result.message
        assert result.certificate.proves(epsilon)
    assert result.moves <= theorem_1_bound(game, epsilon)
    potentials = [step.potential for step in steps]
    assert potentials == sorted(potentials)
    gained = game.potential(result.policy) - game.potential(sample.start)
    assert gained == pytest.approx(potentials[-1], abs=1e-2 * epsilon)
    spent = judge(plain(game)).costs(result.policy.tables)
    assert all(cost <= Fraction(limit) for cost, limit in zip(spent, game.thresholds, strict=True))


@settings(deadline=None, max_examples=30)
@given(sample=samples(max_agents=3, max_states=4, max_horizon=4), seed=st.integers(0, 2**32 - 1))
def test_solve_finds_its_own_start_and_repeats_to_the_bit(sample, seed):
    game, epsilon = sample.game, suitable_epsilon(sample.game)
    first, second = (
        solve(game, epsilon=epsilon, restarts=Restarts(2), rng=np.random.default_rng(seed)) for _ in range(2)
    )
    if sample.game.num_constraints < 2:
        assert first.certified, first.message
    assert first.status is second.status
    assert first.status in (Status.CERTIFIED, Status.FEASIBILITY_UNKNOWN)
    if first.incumbent is not None:
        assert first.policy.fingerprint() == second.policy.fingerprint()
        exact = certify(game, first.policy, first.multipliers, exact=True)
        assert exact.epsilon <= epsilon


@settings(deadline=None, max_examples=25)
@given(sample=samples(kinds=("any",), max_agents=3, max_states=3, max_horizon=3))
def test_any_game_ends_with_a_feasible_policy(sample):
    game = sample.game
    result = coordinate_ascent(game, sample.start, epsilon=1e-3 * max(float(game.reward_ranges.max()), 1e-9))
    assert result.status in (Status.CERTIFIED, Status.NOT_POTENTIAL, Status.LIMIT)
    assert result.certificate.feasible


def renamed(game, agents, states):
    """The same game with agents and states in another order."""
    order = (0, 1, *(2 + agent for agent in agents))
    dense = game.transition
    if game.is_sparse:
        shape = (len(dense), game.num_states, *game.num_actions, game.num_states)
        dense = np.stack([matrix.toarray() for matrix in dense]).reshape(shape)
    moved = dense.transpose(*order, 2 + len(agents))[:, states][..., states]
    shuffle = [table.transpose(*order)[:, states] for table in (*game.rewards, *game.costs)]
    rewards = np.stack([shuffle[agent] for agent in agents])
    costs = np.stack(shuffle[len(agents) :]) if game.num_constraints else ()
    return JointGame(
        transition=moved,
        rewards=rewards,
        costs=costs,
        thresholds=game.thresholds,
        initial=game.initial[states],
        horizon=game.horizon,
    )


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_names_do_not_matter(data):
    game = data.draw(samples(max_agents=3, max_states=4, max_horizon=3)).game
    policy = data.draw(policies(game))
    agents = data.draw(st.permutations(range(game.num_agents)))
    states = data.draw(st.permutations(range(game.num_states)))
    other = renamed(game, agents, list(states))
    moved = JointPolicy(tuple(policy[agent][:, list(states)] for agent in agents))
    prices = np.abs(np.random.default_rng(0).normal(size=(game.num_agents, game.num_constraints)))
    before, after = certify(game, policy, prices), certify(other, moved, prices[list(agents)])
    scale = max(1.0, float(np.abs(before.bounds).max()))
    assert after.values == pytest.approx(before.values[list(agents)], abs=1e-10 * scale)
    assert after.bounds == pytest.approx(before.bounds[list(agents)], abs=1e-10 * scale)
    assert after.costs == pytest.approx(before.costs, abs=1e-10)


@settings(deadline=None, max_examples=30)
@given(sample=samples(max_agents=3, max_states=4, max_horizon=3, sparse=False))
def test_sparse_and_dense_games_end_alike(sample):
    game = sample.game
    matrices = tuple(sp.csr_array(step.reshape(-1, game.num_states)) for step in game.transition)
    sparse = JointGame(
        transition=matrices,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=game.thresholds,
        initial=game.initial,
        horizon=game.horizon,
    )
    epsilon = suitable_epsilon(game)
    runs = [coordinate_ascent(each, sample.start, epsilon=epsilon) for each in (game, sparse)]
    assert all(run.certified for run in runs)
    certificate = certify(game, runs[1].policy, runs[1].multipliers)
    assert certificate.proves(epsilon)
