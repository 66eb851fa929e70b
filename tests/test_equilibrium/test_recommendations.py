"""Devices: what is found is certified, what is certified is true, and what must not be offered is refused."""

from dataclasses import replace

import numpy as np
import pytest

from cmpg import JointGame, LocalAgent, LocalGame, Restarts, certify, solve
from cmpg.equilibrium.best_responses import dynamics_at
from cmpg.equilibrium.recommendations.recommend import recommend
from cmpg.equilibrium.starts.common_price import CommonPrice
from cmpg.errors import GameError, PolicyError, UnsupportedError
from cmpg.games.devices import Concept, CorrelatedPolicy, Rota, device_values
from cmpg.policy import JointPolicy
from cmpg.scenarios import charging, congestion_game, counter_example, grid_world, grid_world_local, robots
from oracles.deviating import best_correlated, correlated_gain, draw_potential_game, rota_gain, value_of
from oracles.judge import judge

TABLES = ("transition", "rewards", "costs", "thresholds", "initial", "horizon")


def built(game):
    return JointGame(**{name: game[name] for name in TABLES})


@pytest.mark.parametrize("seed", range(8))
def test_devices_of_random_potential_games_leave_no_gain_and_attain_the_dual_value(seed):
    game, potential, _ = draw_potential_game(seed)
    best = best_correlated(game, potential)
    found = recommend(built(game))
    assert found.certified, found.message
    assert len(found.device.modes) <= len(game["thresholds"]) + 1
    reached = 0.0
    for policy, weight in zip(found.device.modes, found.device.weights, strict=True):
        alone = JointGame(
            **{name: game[name] for name in TABLES if name != "rewards"}, rewards=[potential] * len(game["rewards"])
        )
        reached += weight * alone.at(policy).values[0]
    assert reached == pytest.approx(best, abs=1e-8)
    for agent in range(len(game["rewards"])):
        assert rota_gain(game, found.device.modes, found.device.weights, agent) <= 1e-8
    planned = recommend(built(game), Concept.CORRELATED)
    assert planned.certified, planned.message
    for agent in range(len(game["rewards"])):
        assert correlated_gain(game, planned.device.table, agent) <= 1e-8
    assert recommend(built(game), Concept.COARSE).certified


@pytest.mark.parametrize("seed", range(5))
def test_what_is_certified_of_a_random_device_is_at_least_what_the_best_deviation_gains(seed):
    game, _, _ = draw_potential_game(seed)
    rng = np.random.default_rng(seed)
    agents, joint = len(game["rewards"]), built(game)
    table = rng.dirichlet(np.ones(int(np.prod(joint.num_actions))), size=(game["horizon"], joint.num_states))
    table = table.reshape(game["horizon"], joint.num_states, *joint.num_actions)
    joint = joint.with_thresholds(value_of(game, list(table))[1] + 1e-6)
    game = {**game, "thresholds": joint.thresholds}
    multipliers = np.broadcast_to(rng.random(len(game["thresholds"])), (agents, len(game["thresholds"])))
    device = CorrelatedPolicy(table)
    for coarse in (False, True):
        concept = Concept.COARSE if coarse else Concept.CORRELATED
        judged, exact = (certify(joint, device, multipliers, concept=concept, exact=each) for each in (False, True))
        assert judged.feasible
        assert exact.feasible
        assert judged.gains == pytest.approx(exact.gains, abs=1e-11)
        assert (judged.gains >= exact.gains - 1e-15).all()
        for agent in range(agents):
            assert judged.gains[agent] >= correlated_gain(game, table, agent, coarse=coarse) - 1e-8
    modes = [JointPolicy.random(joint.policy_shapes, rng=rng) for _ in range(2)]
    rota = Rota(modes, [0.25, 0.75])
    joint = joint.with_thresholds(device_values(joint, rota)[1] + 1e-6)
    game = {**game, "thresholds": joint.thresholds}
    judged, exact = (certify(joint, rota, multipliers, exact=each) for each in (False, True))
    assert judged.feasible
    assert judged.gains == pytest.approx(exact.gains, abs=1e-11)
    for agent in range(agents):
        assert judged.gains[agent] >= rota_gain(game, modes, rota.weights, agent) - 1e-8


def test_a_rota_closes_the_duality_gap_of_the_counter_example():
    game = counter_example()
    found = recommend(game)
    assert found.certified
    assert found.values == pytest.approx([3.5, 3.5], abs=1e-12)
    assert solve(game, restarts=Restarts(20), rng=1).values.max() < 3.1
    exact = certify(game, found.device, found.multipliers, exact=True)
    assert exact.proves(1e-9)
    assert exact.arithmetic == "exact"
    assert exact.concept is Concept.ROTA
    cheap, dear = sorted(found.device.modes, key=lambda mode: game.at(mode).costs[0])
    assert game.at(dear).costs[0] > game.thresholds[0] > game.at(cheap).costs[0]  # the budget holds on average only


def test_the_modes_of_a_rota_must_be_claimed_at_one_price():
    from cmpg.equilibrium.recommendations.certificate import recommendation_claim
    from cmpg.proof.claim import ClaimError

    found = recommend(counter_example())
    claim = recommendation_claim(found.game, found.device, found.multipliers)
    other = replace(claim.modes[1], multipliers=2 * claim.modes[1].multipliers)
    with pytest.raises(ClaimError, match="other multipliers"):
        replace(claim, modes=(claim.modes[0], other))


@pytest.mark.parametrize("seconds", [1.0, 0.0])  # by the kernel, and by the CMDPs of the game
def test_a_mode_that_is_drawn_next_to_never_still_costs_something(monkeypatch, seconds):
    monkeypatch.setattr("cmpg.equilibrium.recommendations.certificate.MAX_KERNEL_SECONDS", seconds)
    game = JointGame.from_matrices([0.0, 0.3], cost=[0.0, 0.3], threshold=0.0)
    free, costly = (JointPolicy([np.eye(2)[[[action]]]]) for action in (0, 1))
    rota = Rota([free, costly], [1.0, 5e-324])  # costs 0.3 · 5e-324 on average, which no float holds
    assert not any(certify(game, rota, [[price]]).feasible for price in (0.0, 1.0, np.inf))
    assert certify(game, Rota([free, free], [1.0, 5e-324]), [[1.0]]).feasible
    idle = JointGame.from_matrices([0.0, 0.3], cost=[0.0, 0.0], threshold=0.0)
    assert certify(idle, Rota([costly, free], [1.0, 5e-324]), [[0.0]]).epsilon > 0


def test_equilibria_at_different_prices_make_no_rota():
    """Each mode is best at a price of its own, and what is in between is better than both."""
    game = JointGame.from_matrices([0.0, 2.0, 3.0], cost=[0.0, 1.0, 2.0], threshold=1.0)
    modes = [JointPolicy([np.eye(3)[[[action]]]]) for action in (0, 2)]
    for price in np.linspace(0, 4, 17):
        assert certify(game, Rota(modes, [0.5, 0.5]), [[price]]).gains[0] >= 0.5 - 1e-12


def test_a_large_price_need_not_end_below_the_budget():
    """Either of two agents who uses the resource costs 1, so none of two users alone saves anything, at any price."""
    uses = np.array([0.0, 1.0])[None, None, :, None]
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0.0, 1.0]]], uses=uses, initial=[1.0])
    costs = np.array([0.0, 1.0, 1.0])[None, None, None]
    game = LocalGame(agents=[agent] * 2, delay=np.zeros((1, 1, 3)), load_costs=costs, thresholds=[0.5], horizon=1)
    both = game.at(JointPolicy([[[[0.0, 1.0]]]] * 2))
    for price in (1.0, 1e3, 1e9, 1e200):
        ended, _ = dynamics_at(both, np.array([price]), turns=100, worth=1e-9, deadline=np.inf)
        assert ended.position.costs[0] == 1.0 > game.thresholds[0]
    # So nothing rests on it: common prices fall back on a feasible policy, and a rota has its certificate.
    begun = CommonPrice()(game)
    assert game.at(begun.policy).costs[0] <= 0.5
    found = recommend(game)
    assert found.certified
    assert found.costs[0] <= 0.5
    assert certify(game, found.device, found.multipliers, exact=True).proves(1e-9)


def test_a_rota_never_says_that_the_budget_holds_each_day():
    found = recommend(counter_example())
    for said in (str(found), str(found.certificate), found.message):
        assert "on average over days" in said
        assert "each day" not in said


def test_private_recommendations_are_refused_where_agents_see_their_own_state():
    for concept in (Concept.CORRELATED, Concept.COARSE):
        with pytest.raises(UnsupportedError, match="sees its own state"):
            recommend(grid_world_local(), concept)
    device = CorrelatedPolicy(np.full((1, 1, 2, 2), 0.25))
    with pytest.raises(UnsupportedError, match="rota"):
        certify(grid_world_local(), device)


def test_a_game_without_a_potential_is_refused_with_the_reason():
    with pytest.raises(GameError, match="not known to have one"):
        recommend(congestion_game())


def discounted_trap(discount=0.9):
    """Agent 1 cannot change the value of its own term by any product policy, and gains if it hears agent 2's action.

    States s and z; at s action 0 of agent 1 stays and action 1 goes to z, from where play returns. Its reward is
    (1 − γ)·f(a_2) if it stays and (1 − γ²)·f(a_2) if it goes: f(a_2) for the time until the next choice.
    """
    moves = np.zeros((1, 2, 2, 2, 2))
    moves[0, 0, 0, :, 0] = moves[0, 0, 1, :, 1] = 1.0
    moves[0, 1, :, :, 0] = 1.0
    rewards = np.zeros((2, 1, 2, 2, 2))
    f = np.array([-1.0, 1.0])
    rewards[0, 0, 0, 0] = (1 - discount) * f
    rewards[0, 0, 0, 1] = (1 - discount**2) * f
    return JointGame(transition=moves, rewards=rewards, costs=[], thresholds=[], initial=[1.0, 0.0], discount=discount)


def test_a_discounted_potential_of_product_policies_says_nothing_of_recommendations():
    discount = 0.9
    game = discounted_trap(discount)
    rng = np.random.default_rng(1)
    for _ in range(5):  # with stationary product policies agent 1 gets the same whatever it does
        policy = JointPolicy.random(game.policy_shapes, rng=rng)
        other = policy.replace(0, JointPolicy.random(game.policy_shapes, rng=rng)[0])
        assert game.at(policy).values[0] == pytest.approx(game.at(other).values[0], abs=1e-12)
    # Its recommendation tells what agent 2 is recommended, and is to keep the worse of both for longer.
    table = np.zeros((1, 2, 2, 2))
    table[0, :, 1, 0] = table[0, :, 0, 1] = 0.5
    judged = certify(game, CorrelatedPolicy(table))
    exact = certify(game, CorrelatedPolicy(table), exact=True)
    assert judged.gains[0] == pytest.approx(exact.gains[0], rel=1e-9)
    assert judged.gains[0] == pytest.approx(2 * discount / (2 + discount), rel=1e-9)
    with pytest.raises(GameError, match="not known to have one"):
        recommend(game, Concept.CORRELATED)


def lottery():
    """Agent 2 plays x at random; agent 1 matches x on advice, guesses blindly for −1, or takes reward 1 at cost 1."""
    reward = np.zeros((3, 2))
    reward[0] = [0.0, -2.0]  # plays 0: right if x is 0
    reward[1] = [-2.0, 0.0]
    reward[2] = 1.0
    cost = np.zeros((3, 2))
    cost[2] = 1.0
    return JointGame.from_matrices(reward, np.zeros((3, 2)), cost=cost, threshold=0.5)


def test_coarse_claims_cover_lots_between_following_and_deviating():
    game = lottery()
    table = np.zeros((1, 1, 3, 2))
    table[0, 0, 0, 0] = table[0, 0, 1, 1] = 0.5
    device = CorrelatedPolicy(table)
    tables = {"form": "joint", "horizon": 1, **{name: getattr(game, name) for name in TABLES if name != "horizon"}}
    assert correlated_gain(tables, table, 0, coarse=True) == pytest.approx(0.5)
    for price in np.linspace(0, 4, 17):  # without "follow", a price of 2 would certify a gain of 0
        assert certify(game, device, [[price], [0.0]], concept=Concept.COARSE).gains[0] >= 0.5 - 1e-12
    assert certify(game, device, [[1.0], [0.0]], concept=Concept.COARSE).gains[0] == pytest.approx(0.5)


def test_recommendations_of_probability_zero_drop_out():
    game = counter_example()
    table = np.zeros((1, 1, 2, 2))
    table[0, 0, 0, 0] = 1.0
    assert certify(game, CorrelatedPolicy(table), [[0.0], [0.0]]).proves(1e-12)


def test_constraints_that_some_agents_move_without_being_bound_are_refused():
    game = counter_example().with_binds([[1], [0]])
    for concept in (Concept.ROTA, Concept.CORRELATED):
        with pytest.raises(GameError, match="does not bind"):
            recommend(game, concept)


def own_budgets():
    """Two agents with a private constraint each, who meet on one resource."""
    uses, reward = [[[[1.0], [0.0]]]], [[[1.0, 0.2]]]
    agents = []
    for i in range(2):
        costs = np.zeros((2, 1, 1, 2))
        costs[i, 0, 0, 0] = 1.0
        agents.append(
            LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=reward, uses=uses, costs=costs, initial=[1.0])
        )
    return LocalGame(
        agents=agents,
        delay=[[[0.0, 0.1, 0.5]]],
        load_costs=np.zeros((2, 1, 1, 3)),
        thresholds=[0.3, 0.6],
        horizon=1,
        binds=[[1, 0], [0, 1]],
    )


def test_private_constraints_have_rotas_and_prices_of_their_own():
    found = recommend(own_budgets())
    assert found.certified, found.message
    assert found.multipliers[0, 1] == found.multipliers[1, 0] == 0.0
    assert found.costs == pytest.approx([0.3, 0.6], abs=1e-9)
    assert certify(found.game, found.device, found.multipliers, exact=True).proves(1e-9)


@pytest.mark.parametrize("build", [grid_world_local, robots, charging], ids=["grid", "robots", "charging"])
def test_rotas_by_best_responses_are_certified_and_no_worse_than_the_nash_policy_by_potential(build):
    found = recommend(build())
    assert found.certified, found.message
    game = found.game
    average = sum(w * game.potential(mode) for w, mode in zip(found.device.weights, found.device.modes, strict=True))
    assert average >= game.potential(found.nash.policy) - 1e-9
    assert "loads or delays" in found.certificate.information.covers


def test_a_rota_of_a_local_game_is_what_the_exact_judge_says():
    found = recommend(own_budgets())
    game = found.game
    agents = [
        {
            "transition": np.ones((1, 1, 2, 1)),
            "reward": np.array([[[1.0, 0.2]]]),
            "cost": np.array(game.agents[i].costs),
            "uses": np.array([[[[1.0], [0.0]]]]),
            "initial": np.ones(1),
        }
        for i in range(2)
    ]
    tables = {
        "form": "local",
        "horizon": 1,
        "agents": agents,
        "delay": np.array([[[0.0, 0.1, 0.5]]]),
        "load_costs": np.zeros((2, 1, 1, 3)),
        "thresholds": np.array([0.3, 0.6]),
    }
    judged = judge(tables)
    exact = certify(game, found.device, found.multipliers, exact=True)
    values = sum(
        float(w) * np.array([float(v) for v in judged.values([np.asarray(t) for t in mode])])
        for w, mode in zip(found.device.weights, found.device.modes, strict=True)
    )
    assert exact.values == pytest.approx(values, abs=1e-12)


def test_forged_devices_are_refused():
    """Whatever is changed: if the oracle finds a gain or an excess, the certificate must not say otherwise."""
    refused = 0
    for seed in range(10):
        game, _, _ = draw_potential_game(seed)
        rng, joint = np.random.default_rng(seed), built(game)
        found = recommend(joint)
        modes, weights = list(found.device.modes), found.device.weights.copy()
        m, i = int(rng.integers(len(modes))), int(rng.integers(joint.num_agents))
        table = np.array(modes[m][i])
        h, s = (int(rng.integers(size)) for size in table.shape[:2])
        table[h, s] = np.roll(table[h, s], 1)
        modes[m] = modes[m].replace(i, table)
        forged = certify(joint, Rota(modes, weights), found.multipliers)
        gain = (
            max(rota_gain(game, modes, weights, agent) for agent in range(joint.num_agents))
            if forged.feasible
            else np.inf
        )
        if gain > 1e-6:
            refused += 1
            assert not forged.proves(1e-7)
    assert refused >= 3


def test_a_concept_that_a_device_cannot_have_is_an_error():
    game = grid_world()
    policy = solve(game).policy
    with pytest.raises(PolicyError, match="claimed to be"):
        certify(game, Rota([policy], [1.0]), concept=Concept.COARSE)
    with pytest.raises(PolicyError, match="Nash"):
        certify(game, policy, concept=Concept.ROTA)


def test_where_nothing_is_left_of_a_budget_the_nash_policy_alone_is_a_rota_proved_by_support():
    found = recommend(robots(threshold=0.0))
    assert found.certified, found.message
    assert len(found.device.modes) == 1
    assert found.certificate.by_support.any()
