"""Budgets on probabilities: the augmented game says what all histories say, and what cannot be claimed is refused."""

import json
from fractions import Fraction

import numpy as np
import pytest

import cmpg
from cmpg import JointGame
from cmpg.errors import GameError, TooLargeError, UnsupportedError
from cmpg.games import Chance, augmented_sizes, cost_law, lifted, with_chances
from cmpg.scenarios import charging, congestion_game_exogenous, grid_world
from command_line import cmpg as run
from oracles.histories import best_deviation, draw_risky_game, probability_above

TABLES = ("transition", "rewards", "costs", "thresholds", "initial", "horizon")


def built(game):
    return JointGame(**{name: game[name] for name in TABLES})


@pytest.mark.parametrize("seed", range(25))
def test_a_certified_policy_keeps_its_chance_and_no_deviation_with_memory_gains(seed):
    game, limit = draw_risky_game(seed)
    risky = with_chances(built(game), Chance(0, at_most=limit, probability=0.25), keep_expected=False)
    levels = risky.num_states // len(game["initial"])
    result = cmpg.solve(risky, epsilon=1e-7)
    assert result.certified, result.message
    policy = [np.asarray(table) for table in result.policy]
    exact = probability_above(game, policy, levels, limit)
    assert exact <= Fraction(0.25) + Fraction(1, 10**12)  # rows of floats, not divided by their sums
    assert float(exact) == pytest.approx(result.costs[0], abs=1e-12)
    for agent in range(len(policy)):
        best = best_deviation(game, policy, agent, levels, limit, 0.25)
        assert best <= result.values[agent] + 1e-6
        law = cost_law(risky, result.policy)[0]
        assert law.probabilities @ law.sums == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_law_of_a_cost_is_that_of_all_histories(seed):
    game, _ = draw_risky_game(seed)
    joint = built(game)
    policy = joint.random_policy(rng=np.random.default_rng(seed))
    law = cost_law(joint, policy)[0]
    assert law.mean == pytest.approx(joint.at(policy).costs[0], abs=1e-12)
    for limit in range(4):
        assert law.above(limit) == pytest.approx(float(probability_above(game, list(policy), 1, limit)), abs=1e-12)
    assert law.probabilities.sum() == pytest.approx(1.0)


def test_the_grid_world_with_any_collision_limited():
    game = grid_world()
    for probability, value in ((0.1, 23.1), (0.02, 23.02), (0.0, 23.0)):
        risky = with_chances(game, Chance("collisions", at_most=0, probability=probability), keep_expected=False)
        result = cmpg.solve(risky)
        assert result.certified
        assert result.values[0] == pytest.approx(value, abs=1e-9)
    assert augmented_sizes(game, Chance("collisions", 0, 0.1))[0] == risky.num_states == 512


def test_policies_that_see_what_was_spent_do_better():
    """Risky pays 1, and costs 1 if a coin shows heads, which the next state tells; at most one head is allowed."""
    moves = np.zeros((1, 2, 2, 2))
    moves[0, :, 0, 0] = 1.0  # careful: no heads
    moves[0, :, 1] = [0.5, 0.5]  # risky: state 1 is heads
    reward = np.zeros((1, 3, 2, 2))
    reward[0, :2, :, 1] = 1.0
    costs = np.zeros((1, 3, 2, 2))
    costs[0, 1:, 1, :] = 1.0  # what the coin of the step before has cost
    game = JointGame(transition=moves, rewards=reward, costs=costs, thresholds=[9.0], initial=[1.0, 0.0], horizon=3)
    risky = with_chances(game, Chance(0, at_most=1, probability=0.0), keep_expected=False)
    assert cmpg.solve(risky).values[0] == pytest.approx(1.5)
    blind = game.uniform_policy()
    assert cmpg.certify(risky, lifted(blind, risky)).costs[0] == pytest.approx(1 / 16)


def test_a_policy_that_ignores_what_was_spent_is_judged_against_those_that_do_not():
    game = grid_world()
    risky = with_chances(game, Chance("collisions", 0, 0.1), keep_expected=False)
    plain = cmpg.solve(game)
    judged = cmpg.certify(risky, lifted(plain.policy, risky), [[1.0], [1.0]])
    assert judged.costs[0] == pytest.approx(0.1)
    with pytest.raises(GameError, match="states"):
        lifted(plain.policy, game.without_constraints().from_matrices([[1.0]]))


def test_several_budgets_share_a_counter_and_keep_expected_thresholds():
    game = grid_world()
    risky = with_chances(game, Chance("collisions", 0, 0.5), Chance("collisions", 1, 0.01))
    assert risky.num_states == 256 * 3
    assert risky.constraint_names == ("collisions", "P(collisions > 0)", "P(collisions > 1)")
    assert cmpg.solve(risky).certified


def test_what_cannot_be_claimed_is_refused():
    game = grid_world()
    odd = game.with_constraints(game.costs * 0.1 + game.costs[:, :, ::-1] * 0.3, [1.0], ["odd"])
    with pytest.raises(TooLargeError, match="levels"):
        with_chances(odd, Chance("odd", 1.0, 0.1))
    negative = game.with_constraints(-game.costs, [1.0], ["negative"])
    with pytest.raises(GameError, match="negative"):
        with_chances(negative, Chance("negative", 0, 0.1))
    with pytest.raises(GameError, match="collisions"):
        with_chances(game, Chance("crashes", 0, 0.1))
    with pytest.raises(UnsupportedError):
        with_chances(charging(), Chance("overload", 0, 0.05))
    discounted = JointGame(
        transition=game.transition, rewards=game.rewards, costs=game.costs, thresholds=[1.0], initial=game.initial,
        discount=0.9,
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="discounted"):
        with_chances(discounted, Chance(0, 0, 0.1))
    for words in ("collisions:0.1", "collisions>x:0.1", ""):
        with pytest.raises(GameError):
            Chance.of(words)
    with pytest.raises(GameError, match="0 to 1"):
        with_chances(game, Chance(0, 0, 1.5))


def test_the_potential_is_proved_again_or_its_loss_is_told():
    assert with_chances(grid_world(), Chance("collisions", 0, 0.1)).potential_proof() is not None
    exogenous = congestion_game_exogenous(num_agents=3)
    assert exogenous.potential_proof() is not None
    name = exogenous.names.constraint(0)
    assert with_chances(exogenous, Chance(name, 0, 0.3)).potential_proof() is None
    told = run("solve", "congestion-exogenous", "--agents", "3", "--chance", f"{name}>0:0.3").err
    assert "not known to have one any more" in told


def test_the_command_solves_prints_the_law_and_draws_it(tmp_path):
    done = run("solve", "grid-world", "--chance", "collisions>0:0.02", "--out", str(tmp_path / "run"))
    assert done.code == 0
    assert "P(collisions > 0)" in done.out
    assert "law of a cost" in done.out
    assert "512" in done.err
    assert run("certify", str(tmp_path / "run" / "game.npz"), str(tmp_path / "run" / "policy.npz")).code == 0
    record = json.loads(run("solve", "grid-world", "--chance", "collisions>0:0.02", "--chances-only", "--json").out)
    assert record["laws"][0]["probabilities"] == pytest.approx([0.98, 0.02])
    assert run("report", str(tmp_path / "run")).code == 0
    assert "how likely each sum is" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "collisions&gt;" not in run("solve", "grid-world", "--chance", "nonsense").err
    assert run("solve", "grid-world", "--chances-only").code == 2
