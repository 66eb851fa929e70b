"""Duality: the 2×2 games of the paper to the last digit; weak duality, Proposition 2, convexity on random games."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from cmpg.cmdp.exact import Exact
from cmpg.duality.analysis import StrongDuality, analyse_duality
from cmpg.duality.dual_function import (
    dual_function,
    dual_value,
    lagrangian,
    penalised_game,
    primal_value,
)
from cmpg.duality.maximisers import dual_maximisers
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.certificate import certify
from cmpg.errors import GameError, InfeasibleError
from cmpg.games.joint.game import JointGame
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, modified_counter_example, spectrum
from oracles.judge import judge
from oracles.sweeping import build


def mixed(*second):
    """Each agent plays its second action with the given probability."""
    return JointPolicy(tuple([[[1 - p, p]]] for p in second))


def random_cooperative_game(rng, *, agents=2, states=2, steps=2, constraints=1, discount=None):
    table = (states, *rng.integers(1, 4, size=agents))
    transition = rng.dirichlet(np.ones(states), size=(1, *table))
    reward = rng.normal(size=(1 if discount else steps, *table))
    costs = rng.random((constraints, 1, *table))
    length = steps if discount is None else 1 / (1 - discount)
    return JointGame(
        transition=transition,
        rewards=np.stack([reward] * agents),
        costs=costs,
        thresholds=np.full(constraints, 0.6 * length),
        initial=rng.dirichlet(np.ones(states)),
        horizon=None if discount else steps,
        discount=discount,
    )


class TestCounterExample:
    def test_strong_duality_fails(self):
        report = analyse_duality(counter_example())
        assert report.strong_duality is StrongDuality.FAILS
        assert report.primal.lower <= 4.5 - np.sqrt(2) <= report.primal.upper
        assert report.primal.gap <= 1e-6
        assert report.dual.value == pytest.approx(3.5, abs=1e-14)
        assert report.dual.multipliers == pytest.approx([1.0], abs=1e-14)
        assert 0 < report.least_gap <= np.sqrt(2) - 1 <= report.greatest_gap + 1e-15
        assert [policy[0, 0, 1] for policy in report.primal.policy] == pytest.approx([np.sqrt(0.5)] * 2, abs=2e-3)

    def test_exactly_two_dual_solutions(self):
        first, second = analyse_duality(counter_example()).maximisers.found
        assert (first.value, first.costs[0], first.feasible) == (3.0, 0.0, True)
        assert first.nash_gap <= 1e-12
        assert (second.value, second.costs[0], second.feasible) == (4.0, 1.0, False)
        assert second.nash_gap == np.inf
        assert analyse_duality(counter_example()).maximisers.complete

    def test_dual_function(self):
        grid = np.linspace(0, 2, 1000)
        assert dual_function(counter_example(), grid) == pytest.approx(
            np.maximum(3 + grid / 2, 4 - grid / 2), abs=1e-14
        )
        assert dual_function(counter_example(), [0.0, 2.0]).tolist() == [4.0, 4.0]

    def test_multipliers_at_the_optimum(self):
        root = np.sqrt(0.5)
        position = counter_example().at(mixed(root, root))
        multipliers = [Exact()(position.induced_cmdp(agent)).multipliers for agent in (0, 1)]
        assert np.ravel(multipliers) == pytest.approx([3 - np.sqrt(2)] * 2, abs=1e-12)

    @pytest.mark.parametrize(("p", "q", "value"), [(0, 0, 3), (1 / 3, 1 / 3, 8 / 3)])
    def test_isolated_nash_policies(self, p, q, value):
        certificate = certify_with_best_responses(counter_example(), mixed(p, q))
        assert certificate.feasible
        assert certificate.epsilon <= 1e-12
        assert certificate.values == pytest.approx([value] * 2)

    @pytest.mark.parametrize("p", [0.5, 0.6, 0.8, 1.0])
    def test_the_curve_of_nash_policies(self, p):
        q = Fraction(1, 2) / Fraction(p)
        game = counter_example().exact()
        policy = JointPolicy((np.array([[[1 - Fraction(p), Fraction(p)]]]), np.array([[[1 - q, q]]])))
        certificate = certify(game, policy, [[3 - 1 / float(q)], [3 - 1 / p]], exact=True)
        assert certificate.feasible
        assert certificate.epsilon <= 1e-12
        assert certificate.values == pytest.approx([4.5 - p - float(q)] * 2)

    def test_exact_numbers_are_rounded_for_the_search(self):
        game = counter_example().exact()
        assert analyse_duality(game).strong_duality is StrongDuality.FAILS
        assert penalised_game(game, [Fraction(1, 3)]).rewards[0, 0, 0, 1, 1] == pytest.approx(11 / 3, rel=1e-15)


class TestModifiedCounterExample:
    def test_strong_duality_holds(self):
        report = analyse_duality(modified_counter_example())
        assert report.strong_duality is StrongDuality.HOLDS
        assert report.primal.lower == pytest.approx(3.5, abs=1e-9)
        assert report.dual.value == pytest.approx(3.5, abs=1e-12)
        assert report.dual.multipliers == pytest.approx([1.0])

    @given(st.floats(0, 1), st.floats(0, 1))
    @settings(deadline=None, max_examples=25)
    def test_every_policy_is_a_dual_solution(self, p, q):
        assert lagrangian(modified_counter_example(), mixed(p, q), [1.0]) == pytest.approx(3.5, abs=1e-12)

    def test_a_feasible_dual_solution_that_is_not_nash(self):
        certificate = certify_with_best_responses(modified_counter_example(), mixed(0.5, 0.5))
        assert certificate.feasible
        assert certificate.values == pytest.approx([3.25, 3.25])
        assert certificate.gains == pytest.approx([0.25, 0.25], abs=1e-12)

    def test_all_four_pure_policies_are_listed(self):
        found = dual_maximisers(modified_counter_example(), [1.0])
        assert found.complete
        assert sorted((each.value, each.feasible) for each in found.found) == [(3, True)] * 3 + [(4, False)]


def test_grid_world_has_strong_duality_and_an_infeasible_dual_solution():
    report = analyse_duality(grid_world(), limit=8)
    assert report.strong_duality is StrongDuality.HOLDS
    assert report.primal.lower == pytest.approx(23.1, abs=1e-9)
    assert report.dual.value == pytest.approx(23.1, abs=1e-9)
    assert report.dual.multipliers == pytest.approx([1.0], abs=1e-9)
    assert not report.maximisers.complete
    dearest = max(report.maximisers.found, key=lambda each: each.costs[0])
    assert (dearest.value, dearest.costs[0], dearest.feasible) == (24.0, 1.0, False)
    certified = certify_with_best_responses(grid_world(), report.primal.policy)
    assert certified.feasible
    assert certified.values == pytest.approx([23.1] * 2)


def test_the_dual_needs_one_reward_and_says_so():
    with pytest.raises(GameError, match=r"rewards\[i=1, h=0.*needs a common reward"):
        dual_function(congestion_game(num_agents=3), [0.0])
    with pytest.raises(GameError, match=r"multipliers\[j=0\] is negative"):
        lagrangian(counter_example(), mixed(0, 0), [-1.0])
    with pytest.raises(GameError, match=r"multipliers\[m=1, j=0\] is negative"):
        dual_function(counter_example(), [0.0, -1.0])
    with pytest.raises(GameError, match=r"multipliers has shape \[2\]; \[1\] is required"):
        dual_maximisers(counter_example(), [1.0, 1.0])
    with pytest.raises(InfeasibleError):
        dual_value(counter_example(threshold=-0.1))


def test_spectrum_is_not_cooperative_but_has_a_stage_potential():
    report = analyse_duality(spectrum(), limit=4)
    assert report.strong_duality is StrongDuality.HOLDS
    game, policy = spectrum(), report.primal.policy
    assert game.potential(policy) == pytest.approx(report.primal.lower, abs=1e-9)
    for each in report.maximisers.found:
        assert lagrangian(game, each.policy, report.dual.multipliers) == pytest.approx(report.dual.value, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(0, 2), st.sampled_from([None, 0.7]))
@settings(deadline=None, max_examples=20)
def test_weak_duality(seed, agents, constraints, discount):
    rng = np.random.default_rng(seed)
    game = random_cooperative_game(rng, agents=agents, constraints=constraints, discount=discount)
    try:
        dual = dual_value(game)
    except InfeasibleError:
        return
    assert dual.lower == pytest.approx(dual.upper, abs=1e-9)
    primal = primal_value(game, restarts=2)
    assert primal.lower <= primal.upper <= dual.upper + 1e-12
    multipliers = rng.exponential(size=(20, constraints))
    values = dual_function(game, multipliers)
    assert (values >= dual.lower - 1e-9).all()
    assert dual_function(game, dual.multipliers[None])[0] == pytest.approx(dual.value, abs=1e-9)
    for price, value in zip(multipliers, values, strict=True):
        policy = game.random_policy(rng=rng)
        assert lagrangian(game, policy, price) <= value + 1e-9
        if (game.at(policy).costs <= game.thresholds).all():
            assert game.at(policy).values[0] <= primal.upper + 1e-9
    if primal.policy is not None:
        assert game.at(primal.policy).values[0] == pytest.approx(primal.lower, abs=1e-12)
        assert certify(game, primal.policy).feasible


@given(st.integers(0, 10**6), st.sampled_from([None, 0.7]))
@settings(deadline=None, max_examples=15)
def test_the_dual_function_is_convex(seed, discount):
    rng = np.random.default_rng(seed)
    game = random_cooperative_game(rng, constraints=2, discount=discount)
    origin, direction = rng.exponential(size=2), rng.exponential(size=2)
    values = dual_function(game, origin + np.linspace(0, 3, 41)[:, None] * direction)
    assert (values[:-2] + values[2:] - 2 * values[1:-1] >= -1e-9).all()


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=25)
def test_the_dual_value_is_that_of_the_linear_program_over_joint_actions(seed):
    rng = np.random.default_rng(seed)
    game = random_cooperative_game(rng, agents=3, states=1, steps=1, constraints=2)
    answer = linprog(
        -game.rewards[0].ravel(),
        A_ub=game.costs.reshape(2, -1),
        b_ub=game.thresholds,
        A_eq=np.ones((1, game.rewards[0].size)),
        b_eq=[1.0],
    )
    if answer.status == 2:
        with pytest.raises(InfeasibleError):
            dual_value(game)
    else:
        assert dual_value(game).value == pytest.approx(-answer.fun, abs=1e-8)


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=25)
def test_the_lagrangian_is_a_potential_of_the_penalised_game(seed, cooperative):
    rng = np.random.default_rng(seed)
    game = random_cooperative_game(rng, constraints=2) if cooperative else spectrum()
    multipliers = rng.exponential(size=game.num_constraints)
    penalised = penalised_game(game, multipliers)
    assert penalised.num_constraints == 0
    policy = game.random_policy(rng=rng)
    agent = int(rng.integers(game.num_agents))
    moved = policy.replace(agent, game.random_policy(rng=rng)[agent])
    rise = lagrangian(game, moved, multipliers) - lagrangian(game, policy, multipliers)
    gain = penalised.at(moved).values[agent] - penalised.at(policy).values[agent]
    assert rise == pytest.approx(gain, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([None, 0.5]))
@settings(deadline=None, max_examples=15)
def test_maximisers_attain_the_dual_function(seed, discount):
    rng = np.random.default_rng(seed)
    game = random_cooperative_game(rng, states=3, discount=discount)
    # Whole numbers make ties.
    game = replace(game, rewards=np.stack([np.round(game.rewards[0])] * 2), costs=np.round(game.costs))
    multipliers = rng.integers(0, 3, size=1).astype(float)
    found = dual_maximisers(game, multipliers, limit=20)
    assert found.found
    best = dual_function(game, multipliers[None])[0]
    for each in found.found:
        assert lagrangian(game, each.policy, multipliers) == pytest.approx(best, abs=1e-7)
        assert each.value == pytest.approx(game.at(each.policy).values[0])
        assert each.costs == pytest.approx(game.at(each.policy).costs)


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=15)
def test_maximisers_are_complete(seed):
    """In a deterministic two-step game all joint plans can be listed by hand."""
    rng = np.random.default_rng(seed)
    reward = rng.integers(0, 2, size=(2, 2, 2, 2)).astype(float)
    game = JointGame(
        transition=np.eye(2)[rng.integers(0, 2, size=(1, 2, 2, 2))],
        rewards=np.stack([reward] * 2),
        costs=rng.integers(0, 2, size=(1, 1, 2, 2, 2)),
        thresholds=[1.0],
        initial=[1.0, 0.0],
        horizon=2,
    )
    found = dual_maximisers(game, [0.5], limit=1000)
    assert found.complete
    totals = []
    for first in np.ndindex(2, 2):
        ahead = int(np.argmax(game.transition[0, 0, *first]))
        for second in np.ndindex(2, 2):
            spent = game.costs[0, 0, 0, *first] + game.costs[0, 0, ahead, *second]
            totals.append(reward[0, 0, *first] + reward[1, ahead, *second] - 0.5 * spent)
    assert len(found.found) == int((np.array(totals) >= max(totals) - 1e-9).sum())


def one_choice(threshold, *, agents=1):
    """Agents with a single action, which costs one half and is worth a tenth."""
    shape = (1, 1, *(1 for _ in range(agents)))
    return JointGame(
        transition=np.ones((*shape, 1)),
        rewards=np.full((agents, *shape), 0.1),
        costs=np.full((1, *shape), 0.5),
        thresholds=[threshold],
        initial=[1.0],
        horizon=1,
    )


@pytest.mark.parametrize("agents", [1, 2])
def test_a_policy_that_exceeds_a_threshold_by_a_hair_is_no_lower_bound(agents):
    # The single policy costs more than the threshold, by less than rounding in general: there is no feasible one.
    found = primal_value(one_choice(np.nextafter(0.5, 0.0), agents=agents), max_nodes=10)
    assert (found.lower, found.policy) == (-np.inf, None)
    met = primal_value(one_choice(0.5, agents=agents), max_nodes=10)
    assert met.policy is not None
    assert met.lower <= 0.1 <= met.upper


@pytest.mark.parametrize("seed", range(3))
def test_no_policy_is_worth_less_than_the_lower_bound_says(seed):
    rng = np.random.default_rng(seed)
    tables = {"rewards": np.repeat(rng.normal(size=(1, 1, 1, 2, 2)), 2, axis=0), "costs": rng.random((1, 1, 1, 2, 2))}
    game = {"form": "joint", "horizon": 1, "initial": np.ones(1), "transition": np.ones((1, 1, 2, 2, 1)), **tables}
    game["thresholds"] = np.array([float(np.median(tables["costs"]))])
    found, judged = primal_value(build(game), max_nodes=30), judge(game)
    policy = [np.asarray(table) for table in found.policy]
    assert judged.values(policy)[0] >= Fraction(found.lower)
    assert judged.costs(policy)[0] <= judged.thresholds[0]
