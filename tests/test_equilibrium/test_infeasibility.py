"""Proofs of infeasibility term by term: what rounding takes off the least cost, and adds to the limit."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.evaluation import cost_rounding
from cmpg.cmdp.planning import plan
from cmpg.equilibrium import infeasibility
from cmpg.equilibrium.certificate import gain_rounding
from cmpg.equilibrium.infeasibility import InfeasibilityProof, least_spending, prove_infeasible
from cmpg.errors import GameError

LAST_BITS, ROUNDING = 4e-16, 2.0**-53
WEIGHTS = np.array([1.0, 2.0])


def two_costs(**episode):
    """One agent whose rewards, were they counted, would lead to the dearer action; costs of both signs."""
    return cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[0.0, 100.0]]]],
        costs=[[[[1.0, 2.0]]], [[[-0.25, 0.5]]]],
        thresholds=[0.125, -0.75],
        initial=[1.0],
        **episode,
    )


def test_the_last_bits_speak_against_a_proof_on_both_sides():
    game = two_costs(horizon=1)
    game = dataclasses.replace(game, costs=game.costs - np.array([4.0, 0.0])[:, None, None, None])
    proof = least_spending(game, WEIGHTS).proof
    rounding = float(WEIGHTS @ cost_rounding(game.joint_cmdp(), np.array([-3.0, -0.25])))
    assert proof.least_cost == -3.5 - 2 * rounding - LAST_BITS * 3.5 < -3.5
    assert proof.limit == -1.375 + 5 * ROUNDING * 1.625 > -1.375  # 2 products and more, of sizes 0.125 and 2 · 0.75


def test_a_proof_needs_more_than_the_limit():
    assert not InfeasibilityProof(WEIGHTS, 1.0, 1.0).holds
    assert InfeasibilityProof(WEIGHTS, np.nextafter(1.0, 2), 1.0).holds


def test_the_rounding_of_two_evaluations_is_taken_off_the_planners_least_cost():
    game = two_costs(horizon=4)
    cmdp, found = game.joint_cmdp(), least_spending(game, WEIGHTS)
    cheapest = plan(cmdp, WEIGHTS, reward_weight=0.0)
    assert cheapest.costs.tolist() == [4.0, -1.0]
    rounding = cost_rounding(cmdp, cheapest.costs)
    assert found.proof.least_cost == 2.0 - 2 * float(WEIGHTS @ rounding) - LAST_BITS * 2.0
    assert found.policy[0].tolist() == [[[1.0, 0.0]]] * 4


@pytest.mark.parametrize(("by_bound", "least"), [(1.5, 1.5), (2.5, 2.0)])
def test_of_what_a_discounted_planner_pays_and_the_bound_below_it_the_smaller_counts(monkeypatch, by_bound, least):
    game = two_costs(discount=0.75)
    cmdp = game.joint_cmdp()
    paid = least_spending(game, WEIGHTS).policy
    assert float(WEIGHTS @ game.at(paid).costs) == pytest.approx(2.0, abs=1e-12)
    asked = []

    def dual_bound(spending, multipliers):
        asked.append(spending)
        return float(multipliers @ cmdp.thresholds) - by_bound

    monkeypatch.setattr(infeasibility, "dual_bound", dual_bound)
    proof = prove_infeasible(game, WEIGHTS)
    assert not asked[0].reward.any()
    taken_off = gain_rounding(asked[0], WEIGHTS)
    assert 0 < taken_off < 1e-10
    assert least - proof.least_cost == pytest.approx(taken_off + LAST_BITS * least, rel=0.2)


def test_agents_who_never_meet_are_planned_for_without_their_rewards():
    agent = cmpg.LocalAgent(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[[0, 100]]],
        uses=np.zeros((1, 1, 2, 1)),
        initial=[1],
        costs=[[[[2, 3]]], [[[512, 512]]]],
    )
    game = cmpg.LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0]]], load_costs=np.zeros((2, 1, 1, 3)), thresholds=[11.0, 1.0], horizon=3
    )
    proof = prove_infeasible(game, WEIGHTS)
    least = 2 * 3 * (2.0 + 2 * 512.0)
    rounding = sum(2 * float(WEIGHTS @ (cmdp.rounding * cmdp.sizes[1:])) for cmdp in game.private_cmdps())
    assert proof.least_cost == least - (rounding + LAST_BITS * least)
    assert rounding > 0
    assert least_spending(game, WEIGHTS).policy is None


def test_what_agents_who_meet_can_save_at_most_is_taken_off_the_limit():
    """Of three agents two meet at one of two doors, and pairs cost 1."""
    agent = cmpg.LocalAgent(
        transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=np.eye(2)[None, None], initial=[1]
    )
    game = cmpg.LocalGame(
        agents=(agent,) * 3,
        delay=np.zeros((1, 2, 4)),
        load_costs=[[[[0, 0, 1, 3]] * 2]],
        thresholds=[0.75],
        horizon=1,
    )
    least = 2 * 0.75 - game.max_weighted_slack(np.array([2.0]))
    assert least == pytest.approx(2.0, abs=1e-9)
    assert prove_infeasible(game, [2.0]).least_cost == least - LAST_BITS * least


# --- Rewards play no part, and every term has its sign ----------------------------------------------------------------


def private_game(rewards, costs, thresholds, *, horizon=1):
    """Agents who never meet, each with its own rewards and costs [k, A]."""
    agents = tuple(
        cmpg.LocalAgent(
            transition=np.ones((1, 1, len(reward), 1)),
            reward=[[reward]],
            uses=np.zeros((1, 1, len(reward), 1)),
            initial=[1],
            costs=np.asarray(cost, dtype=float)[:, None, None],
        )
        for reward, cost in zip(rewards, costs, strict=True)
    )
    loads = np.zeros((len(thresholds), 1, 1, len(agents) + 1))
    return cmpg.LocalGame(
        agents=agents, delay=np.zeros((1, 1, len(agents) + 1)), load_costs=loads, thresholds=thresholds, horizon=horizon
    )


@pytest.mark.parametrize("rewards", [(0.0, 9.0), (9.0, 0.0), (-9.0, 0.0), (0.0, -9.0), (0.0, 0.0)])
@pytest.mark.parametrize("cheap", [0, 1])
def test_the_least_cost_is_that_of_the_cheapest_action_whatever_it_is_worth(rewards, cheap):
    costs = [2.0, 3.0] if cheap == 0 else [3.0, 2.0]
    for time, least in (({"horizon": 2}, 4.0), ({"discount": 0.5}, 4.0)):
        game = cmpg.JointGame(
            transition=np.ones((1, 1, 2, 1)),
            rewards=[[[rewards]]],
            costs=[[[costs]]],
            thresholds=[1.0],
            initial=[1.0],
            **time,
        )
        found = least_spending(game, np.ones(1))
        assert found.proof.least_cost == pytest.approx(least, abs=1e-12)
        assert found.policy[0].argmax(axis=-1).tolist() == [[cheap]] * game.num_steps
    alone = private_game([rewards, rewards[::-1]], [[costs], [costs]], [1.0], horizon=2)
    assert prove_infeasible(alone, [1.0]).least_cost == pytest.approx(8.0, abs=1e-12)


def test_agents_who_never_meet_add_up_with_the_rounding_of_each():
    game = private_game([[0.0, 1.0], [0.0, 1.0, 2.0]], [[[1, 2], [8, 4]], [[5, 3, 4], [1, 1, 0]]], [1.0, 1.0])
    for weights in ([1.0, 0.0], [0.0, 1.0], [1.0, 0.5], [0.25, 2.0]):
        least = sum(
            min(weights[0] * a + weights[1] * b for a, b in zip(*cost, strict=True))
            for cost in ([[1, 2], [8, 4]], [[5, 3, 4], [1, 1, 0]])
        )
        proof = prove_infeasible(game, weights)
        rounding = sum(2 * cmdp.rounding * float(np.array(weights) @ cmdp.sizes[1:]) for cmdp in game.private_cmdps())
        assert least - proof.least_cost == pytest.approx(rounding + LAST_BITS * least, rel=1e-2, abs=2e-15)
        assert proof.limit == pytest.approx(sum(weights), rel=1e-15)
        assert proof.limit > sum(weights)


@pytest.mark.parametrize("thresholds", [[3.0, -5.0], [-3.0, 5.0], [0.0, 0.0]])
def test_limits_are_weighted_alike_and_rounded_away_from_a_proof(thresholds):
    game = two_costs(horizon=1).with_thresholds(thresholds)
    for weights in ([1.0, 2.0], [0.0, 1.0], [0.5, 0.0]):
        limit = weights[0] * thresholds[0] + weights[1] * thresholds[1]
        proof = prove_infeasible(game, weights)
        size = weights[0] * abs(thresholds[0]) + weights[1] * abs(thresholds[1])  # not of the limit: they may cancel
        assert proof.limit == limit + 5 * ROUNDING * size >= limit
        least = min(weights[0] * 1.0 - weights[1] * 0.25, weights[0] * 2.0 + weights[1] * 0.5)
        assert 0 <= least - proof.least_cost < 1e-13
        assert proof.multipliers.tolist() == weights


def test_exact_games_are_planned_for_in_floats():
    game = two_costs(horizon=3)
    assert least_spending(game.exact(), WEIGHTS).proof.least_cost == least_spending(game, WEIGHTS).proof.least_cost


def test_weights_are_as_many_as_constraints_and_none_is_negative():
    game = two_costs(horizon=1)
    assert prove_infeasible(game, [0.0, 0.0]).holds is False
    for wrong in ([1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]):
        with pytest.raises(cmpg.errors.GameError, match="multipliers has shape"):
            prove_infeasible(game, wrong)
    for wrong in ([-1.0, 0.0], [0.0, -1e-300], [-1.0, -1.0]):
        with pytest.raises(cmpg.errors.GameError, match="negative entry"):
            prove_infeasible(game, wrong)


def test_a_discounted_proof_allows_for_the_rounding_of_what_is_spent_alone():
    game = two_costs(discount=0.75)
    cmdp = game.joint_cmdp()
    spending = dataclasses.replace(cmdp, reward=np.zeros_like(cmdp.reward), trusted=True)
    proof = prove_infeasible(game, WEIGHTS)
    exact = 4 * min(1.0 - 0.5, 2.0 + 1.0)
    taken_off = gain_rounding(spending, WEIGHTS)
    assert gain_rounding(cmdp, WEIGHTS) > 10 * taken_off  # rewards of 100 would
    assert taken_off <= exact - proof.least_cost <= 2 * taken_off


def one_agent():
    """Three actions: the first costs nothing of a budget of nothing; each takes some of another budget."""
    return cmpg.JointGame(
        transition=np.ones((1, 1, 3, 1)),
        rewards=[[[[1.0, 2.0, 3.0]]]],
        costs=[[[[0.0, 1.0, 1.0]]], [[[0.5, 0.25, 0.125]]]],
        thresholds=[0.0, 0.625],
        initial=[1.0],
        horizon=1,
    )


@pytest.mark.parametrize(("limit", "holds"), [(0.1, True), (0.125, False), (0.2, False)])
def test_weights_prove_infeasibility_only_above_the_least_cost(limit, holds):
    game = one_agent().with_thresholds([5.0, limit])
    proof = prove_infeasible(game, [0.0, 1.0])
    assert proof.holds is holds
    assert proof.least_cost == pytest.approx(0.125, abs=1e-14)
    assert proof.least_cost < 0.125
    assert proof.limit == pytest.approx(limit, abs=1e-14)
    assert proof.limit >= limit


def test_weights_add_up_over_constraints_and_discounted_steps():
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=[[[[9.0, 9.0]]]],
        costs=[[[[1.0, 2.0]]], [[[2.0, 0.5]]]],
        thresholds=[3.0, 3.0],
        initial=[1.0],
        discount=0.5,
    )
    proof = prove_infeasible(game, [1.0, 2.0])
    assert proof.least_cost == pytest.approx(2 * min(1.0 + 4.0, 2.0 + 1.0), abs=1e-9)  # Σ γ^t = 2
    assert proof.least_cost < 6.0
    assert proof.limit == pytest.approx(9.0, abs=1e-12)
    assert "add up to at least" in proof.sentence
    with pytest.raises(GameError, match="negative entry"):
        prove_infeasible(game, [1.0, -1e-300])


def test_agents_who_never_meet_spend_the_sum_of_what_each_must():
    agent = cmpg.LocalAgent(
        transition=np.ones((1, 1, 2, 1)),
        reward=[[[0, 1]]],
        uses=np.zeros((1, 1, 2, 1)),
        initial=[1],
        costs=[[[[2, 3]]]],
    )
    game = cmpg.LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0]]], load_costs=[[[[0, 0, 0]]]], thresholds=[11.0], horizon=3
    )
    proof = prove_infeasible(game, [2.0])
    assert "costs at least 23.9999999, whatever the agents do; the threshold is 22" in proof.sentence
    assert proof.least_cost == pytest.approx(24.0, abs=1e-11)
    assert proof.least_cost < 24.0
    assert proof.limit == pytest.approx(22.0, abs=1e-12)
    assert proof.holds


@pytest.mark.parametrize("constraints", [100, 1000])
def test_many_constraints_that_round_up_one_by_one_prove_nothing(constraints):
    costs = np.full((constraints, 1, 1, 2), [0.0, 1.01 * ROUNDING])  # of the second action: too little for each sum
    costs[0] = [[[1.0, 1.0]]]
    thresholds = costs[:, 0, 0, 1]  # which the second action meets exactly
    for beyond in np.linspace(1.0, 2.0, 9):
        costs[0, 0, 0, 0] = 1.0 + beyond * constraints * ROUNDING
        game = cmpg.JointGame(
            transition=np.ones((1, 1, 2, 1)),
            rewards=np.zeros((1, 1, 1, 2)),
            costs=costs,
            thresholds=thresholds,
            initial=[1.0],
            horizon=1,
        )
        assert not prove_infeasible(game, np.ones(constraints)).holds


def test_many_agents_who_round_up_one_by_one_prove_nothing():
    agents = 300
    tiny = 1.01 * ROUNDING
    game = private_game([[0.0]] * agents, [[[1.0]], *([[tiny]] for _ in range(agents - 1))], [0.0])
    total = 1 + (agents - 1) * Fraction(tiny)
    limit = float(total) if Fraction(float(total)) >= total else float(np.nextafter(float(total), 2.0))
    game = game.with_thresholds([limit])
    assert not prove_infeasible(game, [1.0]).holds
    assert cmpg.solve(game).status is cmpg.Status.CERTIFIED
    assert prove_infeasible(game.with_thresholds([1 - 1e-13]), [1.0]).holds


@pytest.mark.parametrize("time", [{"horizon": 3}, {"discount": 0.0}, {"discount": 0.99}])
@pytest.mark.parametrize("thresholds", [[-1e-12], [-5e-324], [0.0, -1e-15], [-5e-324, 5.0]])
def test_no_policy_costs_less_than_nothing_however_near_to_zero_the_threshold_is(time, thresholds):
    costs = np.zeros((2, 1, 1, 2, 2))
    costs[0, ..., 1, 1] = costs[1, ..., 0, 0] = 1.0
    game = cmpg.JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.ones((2, 1, 1, 2, 2)),
        costs=costs[: len(thresholds)],
        thresholds=thresholds,
        initial=[1.0],
        **time,
    )
    assert cmpg.solve(game).status is cmpg.Status.INFEASIBLE


def test_a_negative_threshold_is_not_met_where_agents_meet():
    agent = cmpg.LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    game = cmpg.LocalGame(
        agents=(agent,) * 2, delay=[[[0, 0, 0]]], load_costs=[[[[0, 0, 1]]]], thresholds=[-1e-300], horizon=2
    )
    assert cmpg.solve(game).status is cmpg.Status.INFEASIBLE
