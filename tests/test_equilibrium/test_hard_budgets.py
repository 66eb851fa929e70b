"""Budgets of which nothing is left: proofs by support instead of by a multiplier."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.exact import Exact
from cmpg.equilibrium.best_responses import best_response, certify_with_best_responses
from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.files.games import save_game
from cmpg.files.policies import load_policy
from cmpg.files.run_folder import load_run
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.proof import run_files
from oracles.judge import judge
from test_equilibrium.small_crowds import always, crowd


def shared_cost_game(rng, *, threshold=0.0, scale=1.0, states=2, horizon=2):
    """Two agents with a common reward; a third of all entries cost something."""
    shape = (horizon, states, 2, 3)
    return JointGame(
        transition=rows(rng, (*shape, states)),
        rewards=np.broadcast_to(scale * rng.integers(-8, 9, size=shape) / 8, (2, *shape)).copy(),
        costs=(rng.random((1, *shape)) < 0.3) * rng.integers(1, 9, size=(1, *shape)) / 8,
        thresholds=[threshold],
        initial=rows(rng, (states,)),
        horizon=horizon,
    )


def rows(rng, shape):
    """Probabilities in sixteenths, many of them zero."""
    return rng.multinomial(16, np.ones(shape[-1]) / shape[-1], size=shape[:-1]) / 16


def pure_policies(shape):
    steps, states, actions = shape
    for choice in product(range(actions), repeat=steps * states):
        yield np.eye(actions)[np.array(choice).reshape(steps, states)]


def plain(game):
    """A joint game as the judge reads it."""
    names = ("initial", "transition", "rewards", "costs", "thresholds")
    return {"form": "joint", "horizon": game.horizon} | {name: np.asarray(getattr(game, name)) for name in names}


def best_feasible(game, policy, agent):
    """The best value of a pure deviation that meets the threshold in exact arithmetic."""
    judged, values = judge(plain(game)), []
    for table in pure_policies(game.policy_shapes[agent]):
        moved = [table if i == agent else np.asarray(each) for i, each in enumerate(policy)]
        if all(cost <= limit for cost, limit in zip(judged.costs(moved), judged.thresholds, strict=True)):
            values.append(judged.values(moved)[agent])
    return max(values)


def test_the_bound_by_support_is_the_best_feasible_deviation():
    rng, proved = np.random.default_rng(1), 0
    for _ in range(50):
        game = shared_cost_game(rng, states=1, horizon=2)
        result = solve(game, epsilon=1e-6)
        if result.status is Status.INFEASIBLE:
            continue
        certificate = certify(game, result.policy, np.full((2, 1), np.inf))
        proved += 1
        for agent in range(2):
            assert certificate.bounds[agent] == pytest.approx(
                float(best_feasible(game, result.policy, agent)), abs=1e-12
            )
    assert proved > 15


def test_an_unavoidable_cost_that_is_all_of_the_budget_is_proved_by_support():
    rng, proved = np.random.default_rng(2), 0
    for _ in range(60):
        game = shared_cost_game(rng, states=2, horizon=1)
        game = replace(game, costs=game.costs + np.array([0.25, 0.5]).reshape(1, 1, 2, 1, 1), initial=[0.25, 0.75])
        game = game.with_thresholds([0.25 * 0.25 + 0.75 * 0.5])
        result = solve(game, epsilon=1e-6)
        if result.status is Status.INFEASIBLE:
            continue
        judged = certify(game, result.policy, np.full((2, 1), np.inf))
        assert judged.proves(1e-6)
        assert judged.feasibility is Feasibility.PROVEN
        proved += 1
    assert proved > 10


def test_rewards_of_a_billion_beside_a_spent_budget_are_certified():
    rng = np.random.default_rng(3)
    for _ in range(40):
        game = shared_cost_game(rng, scale=1e9, states=3, horizon=3)
        result = solve(game, epsilon=1.0)
        assert result.status in (Status.CERTIFIED, Status.INFEASIBLE), result.message


def test_an_infinite_multiplier_proves_nothing_where_something_is_left():
    game = cmpg.scenarios.counter_example()
    policy = JointPolicy(([[[1.0, 0.0]]], [[[1.0, 0.0]]]))
    assert certify(game, policy, [[0.0], [0.0]]).proves(1e-9)
    for multipliers in ([[np.inf], [0.0]], [[0.0], [np.inf]]):
        certificate = certify(game, policy, multipliers)
        assert certificate.epsilon == np.inf
        assert not certificate.proves(1e9)


@pytest.mark.parametrize("threshold", [0.0, 5e-324, -5e-324])
def test_the_last_bit_decides_whether_nothing_is_left(threshold):
    game = cmpg.scenarios.counter_example(threshold=threshold)
    policy = JointPolicy(([[[1.0, 0.0]]], [[[1.0, 0.0]]]))
    assert certify(game, policy, [[np.inf], [np.inf]]).proves(1e-9) is (threshold == 0)


def test_a_probability_too_small_to_multiply_is_still_a_violation():
    game = cmpg.scenarios.counter_example(threshold=0.0)
    policy = JointPolicy(([[[1.0, 1e-200]]], [[[1.0, 1e-200]]]))
    assert game.at(policy).costs[0] == 0  # too small for a float
    certificate = certify(game, policy, [[np.inf], [np.inf]])
    assert certificate.feasibility is Feasibility.VIOLATED


def test_exact_mode_proves_by_support_too():
    game = cmpg.scenarios.counter_example(threshold=0.0)
    result = solve(game)
    certificate = certify(game, result.policy, result.multipliers, exact=True)
    assert certificate.by_support.all()
    assert certificate.epsilon == 0
    assert solve(game.exact()).certificate.arithmetic == "exact"


def test_a_counting_game_with_a_threshold_of_zero_is_certified():
    game = cmpg.scenarios.counting_congestion_game(num_agents=5).with_thresholds([0.0])
    result = solve(game)
    joint = game.to_joint()
    assert result.status is (Status.CERTIFIED if result.incumbent else Status.INFEASIBLE)
    if result.incumbent:
        assert certify(joint, result.policy, result.multipliers).proves(1e-6)


def test_a_discounted_game_with_a_threshold_of_zero_is_certified():
    rng = np.random.default_rng(5)
    for _ in range(20):
        game = shared_cost_game(rng, states=3, horizon=1)
        game = replace(game, horizon=None, discount=0.9)
        result = solve(game, epsilon=1e-6)
        assert result.status in (Status.CERTIFIED, Status.INFEASIBLE), result.message


def test_two_hard_budgets_and_a_soft_one_are_proved_together():
    rng, mixed = np.random.default_rng(6), 0
    for _ in range(40):
        game = shared_cost_game(rng, states=2, horizon=2)
        second = (rng.random(game.costs.shape) < 0.2) / 4
        soft = rng.random(game.costs.shape).round(2)
        costs = np.concatenate([game.costs, second, soft])
        game = replace(game, costs=costs, thresholds=[0.0, 0.0, 1.0])
        result = solve(game, epsilon=1e-6)
        if result.incumbent is None:
            continue
        assert result.certified, result.message
        mixed += bool(result.certificate.by_support[:, :2].any() and result.multipliers[:, 2].any())
        gains = judge(plain(game)).gains([np.asarray(table) for table in result.policy], result.multipliers)
        assert all(
            gain <= Fraction(float(claimed)) for gain, claimed in zip(gains, result.certificate.gains, strict=True)
        )
    assert mixed > 3


def test_a_crowd_with_thresholds_of_zero_is_certified_as_the_judge_says():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        game = crowd(rng, agents=3, horizon=3, constraints=2).with_thresholds([0.0, 0.0])
        result = solve(game, epsilon=1e-6, start=MinCostStart())
        assert result.certified, result.message
        assert result.certificate.by_support.any()
        judged = judge(local_plain(game))
        policy = [np.asarray(table) for table in result.policy]
        assert judged.costs(policy) == [0, 0]
        gains = judged.gains(policy, result.multipliers)
        assert all(
            gain <= Fraction(float(claimed)) for gain, claimed in zip(gains, result.certificate.gains, strict=True)
        )


def local_plain(game):
    """A local game as the judge reads it."""
    agents = [
        {
            "transition": [matrix.toarray().reshape(*agent.reward.shape[1:], -1) for matrix in agent.transition],
            "uses": [matrix.toarray().reshape(*agent.reward.shape[1:], -1) for matrix in agent.uses],
            "reward": np.asarray(agent.reward),
            "cost": None if agent.costs is None else np.asarray(agent.costs),
            "initial": np.asarray(agent.initial),
        }
        for agent in game.agents
    ]
    tables = {"delay": game.delay, "load_cost": game.load_costs, "thresholds": game.thresholds}
    return {"form": "local", "horizon": game.horizon, "agents": agents, **tables}


def desk(*, threshold, agents=3):
    """One desk, one step: every user is worth 1 to itself, and every one after the first costs 1."""
    one = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    loads = np.maximum(np.arange(agents + 1.0) - 1, 0)
    return LocalGame(
        agents=(one,) * agents,
        delay=np.zeros((1, 1, agents + 1)),
        load_costs=loads[None, None, None],
        thresholds=[threshold],
        horizon=1,
    )


def test_a_budget_above_zero_that_others_spend_for_sure_is_hard():
    game = desk(threshold=1.0)
    policy = JointPolicy(([[[0.0, 1.0]]], [[[0.0, 1.0]]], [[[1.0, 0.0]]]))
    position = game.at(policy)
    assert position.forbidden(2, 0).actions.tolist() == [[[False, True]]]
    assert position.forbidden(0, 0) is None  # two others leave it something to save, and to spend
    certificate = certify(game, policy, [[1.0], [1.0], [np.inf]])
    assert certificate.proves(1e-9)
    assert certificate.feasibility is Feasibility.PROVEN


def test_a_budget_that_others_spend_by_chance_is_not_hard():
    game = desk(threshold=0.5)
    policy = JointPolicy(([[[0.5, 0.5]]], [[[0.0, 1.0]]], [[[1.0, 0.0]]]))
    assert game.at(policy).costs[0] == 0.5
    assert game.at(policy).forbidden(2, 0) is None


def test_loads_that_look_quadratic_are_compared_entry_by_entry():
    # The fitted polynomial rises a little where the table does not: that must not forbid anything.
    game = desk(threshold=0.0)
    flat = np.array([[[[0.0, 0.0, 0.0, 1e-15]]]])
    game = replace(game, load_costs=flat)
    policy = JointPolicy(([[[0.0, 1.0]]], [[[1.0, 0.0]]], [[[1.0, 0.0]]]))
    assert not game.at(policy).forbidden(1, 0).actions.any()
    both = policy.replace(1, [[[0.0, 1.0]]])
    assert game.at(both).forbidden(2, 0).actions.tolist() == [[[False, True]]]


def test_a_best_response_forbids_what_leads_where_everything_is_forbidden():
    # State 1 always costs; action 1 leads there with a probability of one in 2^60.
    moves = np.array([[[[1.0, 0.0], [1.0, 2.0**-60]], [[0.0, 1.0], [0.0, 1.0]]]])
    game = JointGame(
        transition=moves,
        rewards=np.array([[[[0.0, 1.0], [0.0, 0.0]]]]),
        costs=np.array([[[[0.0, 0.0], [1.0, 1.0]]]]),
        thresholds=[0.0],
        initial=[1.0, 0.0],
        horizon=4,
    )
    start = JointPolicy((np.eye(2)[np.zeros((4, 2), dtype=int)],))
    response = best_response(game.at(start), 0, Exact())
    assert response.policy[:3, 0].tolist() == [[1.0, 0.0]] * 3
    assert response.value == 1.0  # only the last step may take it
    assert solve(game, epsilon=1e-9).values[0] == 1.0


def test_certify_without_multipliers_proves_by_support():
    game = cmpg.scenarios.robots(num_agents=4, horizon=12, threshold=0.0, seed=3)
    result = solve(game, epsilon=1e-6)
    assert certify_with_best_responses(game, result.policy).proves(1e-6)


# --- Files and the script ---------------------------------------------------------------------------------------------


def test_a_run_folder_keeps_proofs_by_support(tmp_path):
    game = cmpg.scenarios.robots(num_agents=3, horizon=6, threshold=0.0, seed=1, edges=False)
    result = solve(game, epsilon=1e-6, start=MinCostStart())
    result.save(tmp_path / "run")
    for name in ("result.json", "certificate.json"):
        said = json.loads((tmp_path / "run" / name).read_text("utf-8"))["multipliers"]
        assert said == [["support"]] * 3
    again = load_run(tmp_path / "run")
    assert again.result.certified
    assert again.result.certificate.by_support.all()
    assert script(tmp_path / "run" / "game.npz", tmp_path / "run" / "policy.npz") == 0


def test_a_policy_in_json_says_support_in_words(tmp_path):
    policy = JointPolicy.uniform([(1, 1, 2)])
    policy.save(tmp_path / "policy.json", multipliers=[[np.inf, 0.5]])
    assert '"support"' in (tmp_path / "policy.json").read_text("utf-8")
    for exact in (False, True):
        assert load_policy(tmp_path / "policy.json", exact=exact)[1].tolist() == [[np.inf, 0.5]]


def script(game, policy, epsilon=1e-6):
    return run_files.main([str(game), str(policy), str(epsilon)])


@pytest.mark.parametrize("seed", range(4))
def test_the_script_agrees_with_certify_on_claims_by_support(seed, tmp_path):
    rng = np.random.default_rng(seed)
    if seed % 2:
        game = crowd(rng, agents=3, horizon=3, constraints=1).with_thresholds([0.0])
    else:
        game = shared_cost_game(rng, states=3, horizon=3)
        game = replace(game, costs=game.costs * (rng.random(game.costs.shape) < 0.6))
    result = solve(game, epsilon=1e-6)
    assert result.certified, result.message
    claims = [result.policy, JointPolicy.uniform(game.policy_shapes), always(game, 0)]
    for place, policy in enumerate(claims):
        multipliers = np.full((game.num_agents, 1), np.inf)
        save_game(game, tmp_path / "game.npz")
        policy.save(tmp_path / f"{place}.npz", multipliers=multipliers)
        agreed = certify(game, policy, multipliers).proves(1e-6)
        assert (script(tmp_path / "game.npz", tmp_path / f"{place}.npz") == 0) is agreed
    assert certify(game, result.policy, np.full((game.num_agents, 1), np.inf)).proves(1e-6)


# --- Forgeries --------------------------------------------------------------------------------------------------------


def test_forged_claims_by_support_are_rejected():
    rng, forged, epsilon = np.random.default_rng(7), 0, 1e-6
    while forged < 300:
        game = shared_cost_game(rng, states=1, horizon=2)
        result = solve(game, epsilon=epsilon)
        if result.incumbent is None:
            continue
        for _ in range(20):
            policy, other = forgery(rng, game, result.policy)
            spent = judge(plain(other)).costs([np.asarray(table) for table in policy])
            if all(cost <= Fraction(limit) for cost, limit in zip(spent, other.thresholds, strict=True)):
                best = [best_feasible(other, policy, agent) for agent in range(2)]
                values = judge(plain(other)).values([np.asarray(table) for table in policy])
                if max(most - value for most, value in zip(best, values, strict=True)) <= Fraction(epsilon):
                    continue  # it happens to be true
            multipliers = np.where(rng.random((2, 1)) < 0.8, np.inf, rng.choice([0.0, 1.0, 1e6]))
            assert not certify(other, policy, multipliers).proves(epsilon)
            if forged % 10 == 0:
                assert not certify(other, policy, multipliers, exact=True).proves(epsilon)
            forged += 1


def forgery(rng, game, policy):
    """A policy that takes something forbidden, if with a tiny probability; one that leaves a gain; other thresholds."""
    agent = int(rng.integers(2))
    kind = rng.integers(4)
    if kind == 0:
        return policy.replace(agent, rows(rng, game.policy_shapes[agent])), game
    if kind == 1:
        tiny = rng.choice([1e-3, 1e-9, 1e-16, 1e-100, 1e-200])
        mixed = [np.asarray(table) * (1 - tiny) + tiny / table.shape[-1] for table in policy]
        return JointPolicy(tuple(mixed)), game
    if kind == 2:
        return policy, game.with_thresholds([rng.choice([-1e-300, -1e-9, 1e-3, 0.25])])
    pure = np.eye(game.policy_shapes[agent][2])[rng.integers(game.policy_shapes[agent][2], size=(2, 1))]
    return policy.replace(agent, pure), game


def test_more_capacity_is_worth_more_where_it_must_never_be_exceeded():
    """Overloads that are left at high prices have tiny probabilities: prices rise until these are given up, too."""
    welfare = []
    for capacity in (7, 8, 10):
        result = solve(cmpg.scenarios.charging(capacity=capacity, threshold=0.0))
        assert result.status is Status.CERTIFIED
        welfare.append(result.values.sum())
    assert welfare == sorted(welfare)
    assert welfare[-1] > 1.1 * result.quality().bound.value
