"""The duality gap with certified ends, for every form of game with a potential."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from cmpg.duality import (
    StrongDuality,
    analyse_duality,
    dual_function_bounds,
    dual_value,
    duality_gap,
    penalised_local_game,
)
from cmpg.duality.dual_function import dual_function
from cmpg.errors import GameError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.local.to_joint import lift_policy, to_joint_with_potential
from cmpg.policy import JointPolicy
from cmpg.scenarios import congestion_game, counter_example, grid_world, grid_world_local, routing
from command_line import cmpg as run
from oracles.judge import judge


def test_the_gap_of_the_counter_example_is_known_to_six_digits():
    gap = duality_gap(counter_example())
    assert gap.least == pytest.approx(2**0.5 - 1, abs=2e-6)
    assert gap.greatest == pytest.approx(2**0.5 - 1, abs=2e-6)
    assert gap.rota == pytest.approx(gap.correlated) == pytest.approx(3.5)


def test_the_sentence_about_a_gap_claims_no_more_than_its_ends():
    gap = replace(duality_gap(counter_example(), restarts=1), primal_lower=1.0, primal_upper=1.0)
    ends = replace(gap, rota=1.6666666, correlated=None, dual_upper=1.6666663)
    assert str(ends).splitlines()[0].endswith("between 0.666666 and 0.666667")


def test_strong_duality_of_the_grid_world_leaves_no_gap():
    gap = duality_gap(grid_world(), restarts=2)
    assert gap.greatest < 1e-8
    assert gap.nash == pytest.approx(23.1)


def test_a_local_game_has_a_bracket_and_its_ends_are_in_order():
    gap = duality_gap(routing(num_agents=4), restarts=2)
    assert gap.nash <= gap.primal_lower <= gap.dual_lower <= gap.dual_upper
    assert gap.correlated is None


def test_the_penalised_game_has_the_lagrangian_as_its_potential():
    game, rng = grid_world_local(), np.random.default_rng(3)
    reference = JointPolicy.reference(game.policy_shapes)
    for price in (0.0, 0.7, 5.0):
        priced = penalised_local_game(game, [price])
        for _ in range(3):
            policy = game.random_policy(rng=rng)
            spent = game.at(policy).costs[0] - game.at(reference).costs[0]
            assert priced.potential(policy) == pytest.approx(game.potential(policy) - price * spent, abs=1e-9)
            for agent in range(2):  # so best responses are those of an agent that pays for the whole cost
                other = policy.replace(agent, game.random_policy(rng=rng)[agent])
                change = priced.at(other).values[agent] - priced.at(policy).values[agent]
                free = game.at(other).values[agent] - game.at(policy).values[agent]
                paid = game.at(other).costs[0] - game.at(policy).costs[0]
                assert change == pytest.approx(free - price * paid, abs=1e-9)


def test_bounds_of_the_dual_function_hold_a_tabulated_one():
    """With joint-state policies more can be had, so the joint dual function is above the lower bound."""
    local = grid_world_local()
    low, high = dual_function_bounds(local, [0.0, 1.0, 3.0])
    assert (low <= high + 1e-12).all()
    joint = grid_world()
    zero = local.at(JointPolicy.reference(local.policy_shapes)).values.sum()
    above = dual_function(joint, [0.0, 1.0, 3.0])
    assert (low + zero <= above + 1e-9).all()
    with pytest.raises(GameError, match="negative"):
        penalised_local_game(local, [-1.0])


def test_a_game_without_a_potential_has_no_gap():
    with pytest.raises(GameError):
        duality_gap(congestion_game(num_agents=4))


def test_what_has_no_planner_is_told_what_brackets_it():
    game = grid_world_local()
    for analyse in (dual_value, lambda each: dual_function(each, [1.0])):
        with pytest.raises(UnsupportedError, match=r"analyse_duality\(game\) brackets P\* and D\* of every form"):
            analyse(game)


def any_use_costs(*, threshold=0.5):
    """Two agents gain 1 each by using a resource; use by one or both costs 1. At α = ½, P* = 2 − √2 and D* = 1."""
    uses = np.array([0.0, 1.0])[None, None, :, None]
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=np.array([[[0.0, 1.0]]]), uses=uses, initial=[1.0])
    costs = np.array([0.0, 1.0, 1.0])[None, None, None]
    return LocalGame(agents=[agent] * 2, delay=np.zeros((1, 1, 3)), load_costs=costs, thresholds=[threshold], horizon=1)


def test_agents_with_states_of_their_own_can_have_a_gap_that_is_proved():
    report = analyse_duality(any_use_costs())
    assert report.strong_duality is StrongDuality.FAILS
    for end in (report.primal.lower, report.primal.upper):
        assert end == pytest.approx(2 - 2**0.5, abs=2e-6)
    for end in (report.dual.lower, report.dual.upper):
        assert end == pytest.approx(1.0, abs=1e-9)
    assert report.dual.multipliers == pytest.approx([2.0])
    game = any_use_costs()
    assert game.potential(report.primal.policy) == pytest.approx(report.primal.lower)
    assert game.at(report.primal.policy).costs[0] <= 0.5 + 1e-9
    assert not report.maximisers.found
    assert "the dual may return" not in str(report)


def test_strong_duality_of_the_local_grid_world_is_proved_by_a_planner_who_sees_all_states():
    report = analyse_duality(grid_world_local())
    assert report.strong_duality is StrongDuality.HOLDS
    assert report.dual.upper == pytest.approx(21.1)


@pytest.mark.parametrize("seed", range(5))
def test_the_bracket_of_a_small_local_game_holds_what_enumeration_finds(seed):
    """D* is the value of a linear program over all deterministic own-state policies (Theorem A′)."""
    rng = np.random.default_rng(seed)
    agents = [
        LocalAgent(
            transition=rng.dirichlet(np.ones(2), size=(1, 2, 2)),
            reward=rng.normal(size=(1, 2, 2)),
            uses=(rng.random((1, 2, 2, 2)) < 0.5).astype(float),
            initial=rng.dirichlet(np.ones(2)),
        )
        for _ in range(2)
    ]
    delay, costs = rng.random((1, 2, 3)), np.concatenate([np.zeros((1, 1, 2, 1)), rng.random((1, 1, 2, 2))], axis=-1)
    free = LocalGame(agents=agents, delay=delay, load_costs=costs, thresholds=[9.0], horizon=1)
    tables = [np.eye(2)[list(choice)][None] for choice in np.ndindex(2, 2)]
    policies = [JointPolicy((first, second)) for first in tables for second in tables]
    worth = np.array([free.potential(policy) for policy in policies])
    tabulated = to_joint_with_potential(free)
    lifted = np.array([tabulated.at(lift_policy(free, policy)).values[0] for policy in policies])
    assert lifted - lifted[0] == pytest.approx(worth)  # the first policy is the reference
    spent = np.array([free.at(policy).costs[0] for policy in policies])
    game = free.with_thresholds([0.5 * (spent.min() + spent[worth.argmax()])])
    best = linprog(-worth, A_ub=[spent], b_ub=game.thresholds, A_eq=[np.ones_like(worth)], b_eq=[1.0])
    gap = duality_gap(game, restarts=2)
    assert gap.dual_lower <= -best.fun + 1e-9
    assert gap.dual_upper >= -best.fun - 1e-9
    assert gap.primal_lower <= -best.fun + 1e-9


def test_the_command_prints_the_bracket_of_a_local_game():
    done = run("duality", "grid-world-local", "--restarts", "1")
    assert done.code == 0
    assert "D*, the least dual value    21.100000  21.100000" in done.out
    record = json.loads(run("duality", "grid-world-local", "--restarts", "1", "--json").out)
    assert record["dual_upper"] == pytest.approx(21.1)
    assert record["least_gap"] == 0.0


def test_what_policies_attain_is_rounded_down():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        reward = rng.normal(size=(3, 2, 2, 2))
        tables = {"transition": rng.dirichlet(np.ones(2), size=(3, 2, 2, 2)), "initial": np.array([0.3, 0.7])}
        tables |= {"rewards": np.stack([reward, reward]), "costs": rng.random((1, 3, 2, 2, 2))}
        game = JointGame(**tables, thresholds=[1.5], horizon=3)
        gap = duality_gap(game, restarts=1)
        judged = judge({"form": "joint", "horizon": 3, "thresholds": np.array([1.5]), **tables})
        worth = judged.values([np.asarray(table) for table in gap.policy])[0]
        assert Fraction(gap.primal_lower) <= worth
        assert float(worth) == pytest.approx(gap.primal_lower, abs=1e-11)
