"""Feasible starts: least cost for one constraint, columns and phase one for several, proofs where there is none."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.linear_program import independent_slack
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.infeasibility import prove_infeasible
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts import phase_one as phase_one_module
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import may_be_feasible, random_start, worst_slack
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.scenarios import counter_example, grid_world, spectrum
from oracles.random_games import draw
from oracles.sweeping import build
from test_equilibrium.small_crowds import crowd


def one_shot(costs, thresholds, rewards=None):
    """A one-step game with the given tables of costs."""
    table = np.array(costs, dtype=float)
    shape = table.shape[1:]
    return JointGame(
        transition=np.ones((1, 1, *shape, 1)),
        rewards=np.zeros((len(shape), 1, 1, *shape)) if rewards is None else rewards,
        costs=table[:, None, None],
        thresholds=thresholds,
        initial=[1.0],
        horizon=1,
    )


@pytest.mark.parametrize("game", [counter_example(), grid_world(), spectrum()])
def test_one_constraint_starts_at_the_least_cost(game):
    start = feasible_start(game)
    assert start.slack == pytest.approx(float(game.thresholds[0]))
    assert all(set(np.unique(table)) <= {0.0, 1.0} for table in start.policy)
    assert certify(game, start.policy).feasible


def test_without_constraints_anything_will_do():
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)),
        rewards=np.ones((1, 1, 1, 2)),
        costs=(),
        thresholds=(),
        initial=[1.0],
        horizon=3,
    )
    assert feasible_start(game).policy is not None


def test_several_constraints_find_a_deterministic_column():
    game = one_shot([[[5, 1], [1, 0]], [[0, 1], [1, 5]]], [1.5, 1.5])
    start = feasible_start(game)
    assert start.slack > 0
    assert certify(game, start.policy).feasible


def test_several_constraints_that_no_planner_can_meet_are_refuted():
    start = feasible_start(one_shot([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [0.4, 0.4]))
    assert start.policy is None
    assert start.proof.holds


def test_several_constraints_that_need_mixing_are_met_by_phase_one():
    start = feasible_start(one_shot([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [0.6, 0.6]))
    assert start.policy is not None
    assert start.slack >= 0


def test_the_papers_second_example_is_wrong_for_two_constraints_and_the_block_lp_is_right():
    """One agent, one state, costs (5, 5) and (0.5, 6), limits (1, 10): the recipe picks the first action."""
    cmdp = CMDP(
        transition=np.ones((1, 1, 2, 1)),
        reward=np.zeros((1, 1, 2)),
        costs=[[[[5.0, 0.5]]], [[[5.0, 6.0]]]],
        thresholds=[1.0, 10.0],
        initial=[1.0],
        horizon=1,
    )
    least_common = [max(float(cost) for cost in evaluate(cmdp, [[row]]).costs) for row in ([1.0, 0.0], [0.0, 1.0])]
    assert np.argmin(least_common) == 0
    assert (evaluate(cmdp, [[[1.0, 0.0]]]).costs > cmdp.thresholds).any()
    block = independent_slack([cmdp], cmdp.thresholds)
    assert (evaluate(cmdp, block.policies[0]).costs <= cmdp.thresholds).all()
    assert block.slack == pytest.approx(0.5)


def test_random_starts_are_feasible_and_differ():
    game, rng = grid_world(), np.random.default_rng(0)
    safe = feasible_start(game).policy
    starts = [random_start(game, safe, rng=rng) for _ in range(4)]
    assert all(worst_slack(game.at(each)) >= 0 for each in starts)
    assert len({each.fingerprint() for each in starts}) == 4


def private_game(costs, thresholds, agents=2):
    """Agents who share nothing but the sums of their private costs: one state, one step."""
    table = np.array(costs, dtype=float)[:, None, None, :]
    member = LocalAgent(
        transition=np.ones((1, 1, table.shape[-1], 1)),
        reward=np.zeros((1, 1, table.shape[-1])),
        uses=np.zeros((1, 1, table.shape[-1], 1)),
        initial=[1.0],
        costs=table,
    )
    zeros = np.zeros((1, 1, agents + 1))
    return LocalGame(
        agents=(member,) * agents,
        delay=zeros,
        load_costs=np.stack([zeros] * len(table)),
        thresholds=thresholds,
        horizon=1,
    )


def test_independent_agents_start_from_one_block_lp():
    start = feasible_start(private_game([[5.0, 0.5], [5.0, 6.0]], [2.0, 20.0]))
    assert start.found_by.startswith("a block LP")
    assert start.slack == pytest.approx(1.0)


def test_independent_agents_who_cannot_meet_the_budget_are_refuted():
    result = solve(private_game([[5.0, 0.5], [5.0, 6.0]], [2.0, 10.0]))
    assert result.status is Status.INFEASIBLE
    assert result.proof.holds


def test_a_budget_of_zero_is_met_by_idling_even_where_costs_have_both_signs():
    """Rounding is relative to what the costs might have been, and a threshold of zero leaves no room for it."""
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0, 0], [1, 1]]]], initial=[1.0])
    game = LocalGame(
        agents=(agent,),
        delay=np.zeros((1, 2, 2)),
        load_costs=[[[[0, 1.0], [0, -0.5]]]],
        thresholds=[0.0],
        horizon=1,
    )
    start = feasible_start(game)
    assert game.at(start.policy).costs.tolist() == [0.0]
    assert solve(game).status is Status.CERTIFIED


# Feasible starts where agents must differ, and proofs by prices


def desk(agents, *, threshold):
    """Exactly one agent shall be at the desk: nobody there costs 1, as two or more do."""
    member = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1.0])
    costs = [1.0, 0.0, *(1.0 for _ in range(agents - 1))]
    return LocalGame(
        agents=(member,) * agents,
        delay=np.zeros((1, 1, agents + 1)),
        load_costs=[[[costs]]],
        thresholds=[threshold],
        horizon=1,
    )


@pytest.mark.parametrize("threshold", [0.25, 0.01])
@pytest.mark.parametrize("agents", [2, 5])
def test_one_agent_is_found_who_goes_to_the_desk(agents, threshold):
    assert solve(desk(agents, threshold=threshold)).certified


@pytest.mark.parametrize("thresholds", [(0.3, 0.9), (0.45, 0.7), (0.55, 0.55), (0.6, 0.9)])
def test_all_two_by_two_games_with_two_costs_of_zero_or_one_have_a_start_where_one_exists(thresholds):
    grid = np.linspace(0, 1, 21)
    p, q = grid[:, None], grid[None]
    outcomes = np.stack([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q])
    tried = 0
    for bits in product((0.0, 1.0), repeat=8):
        costs = np.array(bits).reshape(2, 2, 2)
        left = np.array(thresholds)[:, None, None] - np.tensordot(costs.reshape(2, 4), outcomes, axes=1)
        if left.min(axis=0).max() <= 1e-9:
            continue
        tried += 1
        game = JointGame.from_matrices([[3, 2], [2, 4]], cost=costs, threshold=thresholds)
        assert feasible_start(game).policy is not None, (bits, thresholds)
    assert tried > 200


def doors(agents, *, threshold):
    """Everybody goes through one of two doors at both of two steps, and pairs at a door cost 1."""
    member = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=np.eye(2)[None, None], initial=[1.0])
    loads = np.arange(agents + 1)
    return LocalGame(
        agents=(member,) * agents,
        delay=np.zeros((1, 2, agents + 1)),
        load_costs=np.broadcast_to(loads * (loads - 1) / 2, (1, 1, 2, agents + 1)),
        thresholds=[threshold],
        horizon=2,
    )


def test_prices_prove_that_a_local_game_with_load_costs_is_infeasible():
    """Of four agents two meet at each door, at each step: 4 in all."""
    result = solve(doors(4, threshold=3.9))
    assert result.status is Status.INFEASIBLE
    assert result.proof.least_cost == pytest.approx(4)
    assert prove_infeasible(doors(4, threshold=3.9), [1.0]).holds
    assert not prove_infeasible(doors(4, threshold=4.0), [1.0]).holds
    assert solve(doors(4, threshold=4.1)).certified


@pytest.mark.parametrize("seed", range(8))
def test_prices_never_refute_what_is_feasible(seed):
    game = crowd(np.random.default_rng(seed), agents=3, horizon=2, constraints=2, rough=True)
    policy = game.random_policy(rng=np.random.default_rng(seed))
    spent = game.at(policy).costs
    tight = replace(game, thresholds=spent)
    for multipliers in ([1.0, 0.0], [0.5, 0.5], tight.tightest_multipliers()):
        assert not prove_infeasible(tight, multipliers).holds


@pytest.mark.parametrize("seed", [998, 2191])
def test_where_nobody_alone_lowers_the_worst_cost_all_do_together_in_small_steps(seed):
    game = build(draw(seed).game)
    found = feasible_start(game)
    assert found.found_by == "phase one: agents in small steps lower all that is spent too much"
    assert may_be_feasible(game.at(found.policy))


def test_many_agents_that_must_keep_apart_find_a_feasible_start():
    """Forty agents on as many resources, each with three actions that use one of them: no simple policy is feasible."""
    rng, agents = np.random.default_rng(2), 40
    uses = [np.eye(agents)[rng.choice(agents, size=(1, 1, 3))] for _ in range(agents)]
    members = tuple(
        LocalAgent(transition=np.ones((1, 1, 3, 1)), reward=rng.random((1, 1, 3)), uses=each, initial=[1.0])
        for each in uses
    )
    loads = np.arange(agents + 1.0)
    pairs = np.broadcast_to(loads * (loads - 1) / 2, (1, 1, agents, agents + 1))
    game = LocalGame(
        agents=members, delay=np.zeros((1, agents, agents + 1)), load_costs=pairs, thresholds=[12.0], horizon=2
    )
    start = phase_one_module.phase_one(game, None, np.inf)
    assert certify(game, start.policy, np.zeros((agents, 1))).feasible
