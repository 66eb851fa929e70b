"""Budgets on probabilities: the augmented game says what all histories say, and what cannot be claimed is refused."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cmpg
from cmpg import JointGame
from cmpg.equilibrium.cvar import Box, certify_cvar, propose_boxes
from cmpg.errors import GameError, PolicyError, TooLargeError, UnsupportedError
from cmpg.files.games import save_game
from cmpg.games import (
    Chance,
    CVaR,
    LocalAgent,
    LocalGame,
    augmented_sizes,
    cost_law,
    lift_policy,
    lifted,
    to_joint,
    with_chances,
    with_cvar,
)
from cmpg.proof.alternatives import AlternativesClaim
from cmpg.proof.claim import ClaimError
from cmpg.scenarios import charging, congestion_game_exogenous, grid_world
from command_line import cmpg as run
from oracles.histories import best_deviation, best_with_cvar, cvar_of, draw_risky_game, probability_above

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


def test_a_policy_that_sees_what_was_spent_is_not_played_where_that_is_not_seen():
    game = grid_world()
    policy = with_chances(game, Chance("collisions", 0, 0.1)).uniform_policy()
    for play in (game.at, lambda each: cmpg.certify(game, each), lambda each: cmpg.simulate(game, each, 10, rng=1)):
        with pytest.raises(PolicyError, match="512"):
            play(policy)


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
    with pytest.raises(GameError, match="there is no cost 'overload'"):
        with_chances(charging(), Chance("overload", 0, 0.05))
    with pytest.raises(UnsupportedError):
        with_cvar(charging(), CVaR(0, 0.9, 1.0))
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


# --- Budgets on CVaR --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_certified_policy_keeps_its_cvar_and_no_deviation_with_memory_gains_at_any_t(seed):
    game, _ = draw_risky_game(seed)
    level, limit = (0.0, 0.5, 0.75, 0.9)[seed % 4], (0.0, 0.5, 1.0, 2.5, 3.25)[seed % 5]
    risky = with_cvar(built(game), CVaR(0, level, limit), keep_expected=False)
    result = cmpg.solve(risky, epsilon=1e-7)
    assert result.certified, result.message
    levels, policy = risky.base.num_states // len(game["initial"]), [np.asarray(table) for table in result.policy]
    exact = cvar_of(game, policy, levels, level)
    assert exact <= Fraction(limit) + Fraction(1, 10**12)  # rows of floats, not divided by their sums
    assert result.costs[0] == pytest.approx(float(exact), abs=1e-9)
    for agent in range(len(policy)):
        assert best_with_cvar(game, policy, agent, levels, level, limit) <= result.values[agent] + 1e-6
    judged = cmpg.certify(risky, result.policy, exact=True)
    assert judged.proves(1e-7)
    assert judged.arithmetic == "exact"


@pytest.mark.parametrize("seed", [8, 12, 24, 34])
def test_an_equilibrium_at_one_t_is_refused_where_an_agent_gains_at_another(seed):
    game, _ = draw_risky_game(seed)
    risky = with_cvar(built(game), CVaR(0, 0.75, 2.5), keep_expected=False)
    at_zero = cmpg.solve(risky.at((0,)))
    assert at_zero.certified
    judged = cmpg.certify(risky, at_zero.policy)
    levels, policy = risky.base.num_states // len(game["initial"]), [np.asarray(t) for t in at_zero.policy]
    gains = [best_with_cvar(game, policy, i, levels, 0.75, 2.5) - at_zero.values[i] for i in range(len(policy))]
    assert judged.feasible
    assert max(gains) > 0.1
    np.testing.assert_allclose(judged.gains, gains, atol=1e-8)  # for each t multipliers of its own: nothing is lost
    one = propose_boxes(risky, at_zero.policy, epsilon=0.0, thorough=True).boxes[-1].multipliers
    boxes = [Box(t, t, one) for t in product(*(range(last + 1) for last in risky.last))]
    assert certify_cvar(risky, at_zero.policy, boxes).epsilon >= max(gains) - 1e-9
    with pytest.raises(GameError, match="leave out t"):
        certify_cvar(risky, at_zero.policy, boxes[:-1])


def heavy_game(agents=2):
    """Twelve steps; a choice between doing nothing and acts that cost 7 and 17, or 3 more if the other acts, too."""
    rewards = np.broadcast_to(np.array([0.0, 1.0, 2.0])[:, None] + np.array([0.0, 0.5]), (1, 1, 3, 2))
    costs = [[[[[0.0, 3.0], [7.0, 11.0], [17.0, 23.0]]]]]
    return JointGame(
        transition=np.ones((1, 1, 3, 2, 1)), rewards=np.stack([rewards] * agents), costs=costs, thresholds=[1e9],
        initial=[1.0], horizon=12,
    )  # fmt: skip


def test_few_relaxed_games_prove_what_many_values_of_t_would():
    risky = with_cvar(heavy_game(), CVaR(0, 0.9, 100.0), keep_expected=False)
    result = cmpg.solve(risky)
    assert result.certified
    assert risky.last == (100,)
    boxes = propose_boxes(risky, result.policy, epsilon=1e-6, thorough=True).boxes
    assert len(boxes) < 20
    for low, high in (((10,), (30,)), ((0,), (100,))):  # the relaxed game costs less, and allows more
        for t in (low, high, ((low[0] + high[0]) // 2,)):
            wide, point = risky.between(low, high), risky.at(t)
            assert (wide.costs <= point.costs).all()
            assert wide.thresholds[0] >= point.thresholds[0]


def test_what_is_beyond_the_last_level_counts_in_full():
    """One lottery: 50 with probability 0.1. Its mean is within 6, and the mean of its worst tenth is not."""
    moves = np.zeros((1, 3, 2, 3))
    moves[0, :, 0, 0] = 1.0
    moves[0, 0, 1] = [0.9, 0.0, 0.1]
    moves[0, 1:, 1, 0] = 1.0
    rewards, costs = np.zeros((1, 2, 3, 2)), np.zeros((1, 2, 3, 2))
    rewards[0, 0, 0, 1], costs[0, 1, 2] = 1.0, 50.0
    game = JointGame(transition=moves, rewards=rewards, costs=costs, thresholds=[99.0], initial=[1, 0, 0], horizon=2)
    for level, limit, value in ((0.0, 6.0, 1.0), (0.0, 2.5, 0.5), (0.9, 6.0, 0.12), (0.9, 50.0, 1.0), (0.5, 5.0, 0.5)):
        result = cmpg.solve(with_cvar(game, CVaR(0, level, limit), keep_expected=False))
        assert result.certified
        assert result.values[0] == pytest.approx(value)
        assert result.costs[0] <= limit


def test_the_counter_of_a_cvar_budget_is_cut_and_its_cost_is_not():
    """Three acts by coins, each costs 1; the counter ends at 2, and the third act counts: E (C − t)⁺ of Bin(3, ½)."""
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)), rewards=[[[[0.0, 1.0]]]], costs=[[[[0.0, 1.0]]]], thresholds=[9.0],
        initial=[1.0], horizon=3,
    )  # fmt: skip
    risky = with_cvar(game, CVaR(0, 0.5, 1.0), keep_expected=False)
    policy = risky.base.uniform_policy()
    assert risky.base.num_states == 3
    assert [risky.at((t,)).at(policy).costs[0] for t in (0, 1)] == pytest.approx([12 / 8, 5 / 8])
    assert cmpg.certify(risky, policy).costs[0] == pytest.approx(1 + (5 / 8) / 0.5)


def test_cvar_is_mixed_with_chances_and_expected_thresholds():
    risky = with_cvar(grid_world(), CVaR("collisions", 0.9, 0.4), Chance("collisions", 0, 0.03))
    assert risky.constraint_names == ("collisions", "P(collisions > 0)", "CVaR 0.9 of collisions")
    result = cmpg.solve(risky)
    assert result.certified
    assert result.values[0] == pytest.approx(23.03)
    np.testing.assert_allclose(result.certificate.thresholds, [0.1, 0.03, 0.4])
    np.testing.assert_allclose(result.costs, [0.03, 0.03, 0.3], atol=1e-9)
    assert result.quality().bound.value == pytest.approx(46.06)


def test_cvar_that_nothing_keeps_is_infeasible_and_what_is_no_budget_is_refused():
    unavoidable = JointGame(
        transition=np.ones((1, 1, 2, 1)), rewards=np.ones((1, 1, 1, 2)), costs=np.ones((1, 1, 1, 2)), thresholds=[9.0],
        initial=[1.0], horizon=3,
    )  # fmt: skip
    ended = cmpg.solve(with_cvar(unavoidable, CVaR(0, 0.5, 2.0)))
    assert ended.status is cmpg.Status.INFEASIBLE
    assert "t = 2" in str(ended)
    game = grid_world()
    for budget, match in ((CVaR(0, 1.0, 1.0), "level"), (CVaR(0, 0.5, -1.0), "at_most"), (CVaR("odd", 0, 1), "odd")):
        with pytest.raises(GameError, match=match):
            with_cvar(game, budget)
    with pytest.raises(GameError, match="with_cvar"):
        with_chances(game, CVaR(0, 0.5, 1.0))
    with pytest.raises(GameError, match="with_chances"):
        with_cvar(game, Chance(0, 0, 0.1))
    for words in ("collisions:0.9", "collisions:x:1", "collisions:0.9:1/0"):
        with pytest.raises(GameError):
            CVaR.of(words)


@pytest.mark.parametrize("words", ["collisions>0:2/3", "collisions>1/3:0.5", "collisions:2/3:1", "collisions:0.5:1/3"])
def test_a_fraction_that_is_no_decimal_is_not_rounded_in_secret(words):
    with pytest.raises(GameError, match=r"is none\. Write the one that you mean, such as 0\.\d+"):
        (Chance if ">" in words else CVaR).of(words)


def test_a_fraction_that_is_a_decimal_is_read_exactly():
    assert Chance.of("collisions>1/2:3/8") == Chance("collisions", 0.5, 0.375)
    assert CVaR.of("collisions:3/4:1/2") == CVaR("collisions", 0.75, 0.5)


def test_claims_about_other_games_or_policies_and_proofs_by_support_are_no_alternatives():
    risky = with_cvar(heavy_game(), CVaR(0, 0.9, 30.0), keep_expected=False)
    from cmpg.games.claims import claim_of

    game, policy = risky.at((0,)), risky.base.uniform_policy()
    claim = claim_of(game, policy, np.zeros((2, 1)))
    AlternativesClaim(claim, (claim,))
    other = claim_of(game.with_rewards(2 * game.rewards), policy, np.zeros((2, 1)))
    moved = claim_of(game, game.random_policy(rng=np.random.default_rng(0)), np.zeros((2, 1)))
    hard = claim_of(game, policy, np.full((2, 1), np.inf))
    for wrong in (other, moved, hard):
        with pytest.raises(ClaimError):
            AlternativesClaim(claim, (wrong,))
    with pytest.raises(ClaimError):
        AlternativesClaim(claim, ())


def test_the_command_solves_and_certifies_cvar_in_the_users_words(tmp_path):
    done = run("solve", "grid-world", "--cvar", "collisions:0.9:0.5", "--chances-only", "--out", str(tmp_path / "run"))
    assert done.code == 0
    assert "CVaR 0.9 of collisions" in done.out
    assert "law of a cost" in done.out
    files = [str(tmp_path / "run" / name) for name in ("game.npz", "policy.npz")]
    for more, code in (([], 0), (["--exact"], 0), (["--epsilon", "0"], 1)):
        assert run("certify", *files, "--cvar", "collisions:0.9:0.5", "--chances-only", *more).code == code
    assert run("certify", *files, "--cvar", "collisions:0.9:0.4", "--chances-only").code == 1
    assert run("certify", *files, "--cvar", "collisions:0.9:0.5", "--verified").code == 2
    record = json.loads(run("solve", "grid-world", "--cvar", "collisions:0.9:0.5", "--json").out)
    assert record["constraint_names"] == ["collisions", "CVaR 0.9 of collisions"]
    assert record["thresholds"] == [0.1, 0.5]
    assert record["costs"][1] == pytest.approx(0.5)
    assert run("solve", "grid-world", "--cvar", "nonsense").code == 2


# --- Local games ------------------------------------------------------------------------------------------------------


def lone_walkers(seed, owners=(0,)):
    """Two agents on two states each, who share a resource; some pay whole-number costs of their own."""
    rng = np.random.default_rng((77, seed))
    agents = []
    for i in range(2):
        costs = np.zeros((1, 1, 2, 2))
        if i in owners:
            costs[0, 0] = rng.integers(0, 3, size=(2, 2))
            costs[0, 0, :, 0] = 0.0  # an agent can always be careful
        agents.append(
            LocalAgent(
                transition=rng.dirichlet(np.ones(2), size=(1, 2, 2)), reward=rng.normal(size=(1, 2, 2)),
                uses=np.array([[[[0.0], [1.0]], [[0.0], [1.0]]]]), initial=[1.0, 0.0], costs=costs,
            )
        )  # fmt: skip
    return LocalGame(
        agents=agents, delay=[[[0.0, 0.1, 0.4]]], load_costs=np.zeros((1, 1, 1, 3)), thresholds=[9.0], horizon=3,
        constraint_names=["fuel"], agent_names=["Ada", "Bo"],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_own_costs_are_counted_in_the_own_state(seed):
    game = lone_walkers(seed)
    risky = with_chances(game, Chance("fuel of Ada", at_most=1, probability=0.2), keep_expected=False)
    assert risky.constraint_names == ("P(fuel of Ada > 1)",)
    levels = risky.agents[0].num_states // 2  # units may be two
    assert risky.agents[1].num_states == 2
    result = cmpg.solve(risky, epsilon=1e-7)
    assert result.certified
    assert cmpg.certify(risky, result.policy, result.multipliers, exact=True).proves(1e-7)
    # What Ada faces alone, by every history: Bo matters through the resource only, and not to her costs.
    ada, load = game.agents[0], result.policy
    moves = np.stack([m.toarray() for m in ada.transition]).reshape(1, 2, 2, 2)
    visits = risky.agents[1].usage(risky.agents[1].visits(np.asarray(load[1])))[:, 0]  # [H]
    delay = (1 - visits) * 0.1 + visits * 0.4
    reward = np.broadcast_to(ada.reward, (3, 2, 2)).copy()
    reward[:, :, 1] -= delay[:, None]
    alone = {
        "form": "joint", "horizon": 3, "transition": moves, "rewards": reward[None], "initial": np.array([1.0, 0.0]),
        "costs": np.broadcast_to(np.asarray(ada.costs)[0], (1, 1, 2, 2)), "thresholds": np.array([9.0]),
    }  # fmt: skip
    table = [np.asarray(load[0])]
    assert probability_above(alone, table, levels, 1) <= Fraction(0.2) + Fraction(1, 10**12)
    assert float(probability_above(alone, table, levels, 1)) == pytest.approx(result.costs[0], abs=1e-12)
    assert best_deviation(alone, table, 0, levels, 1, 0.2) == pytest.approx(result.values[0], abs=1e-6)


def test_the_only_one_who_pays_need_not_be_named_and_several_must_be():
    one = with_chances(lone_walkers(0), Chance("fuel", 1, 0.2))
    assert one.constraint_names == ("fuel", "P(fuel of Ada > 1)")
    both = lone_walkers(0, owners=(0, 1))
    with pytest.raises(GameError, match="fuel of Ada"):
        with_chances(both, Chance("fuel", 1, 0.2))
    each = with_chances(both, Chance("fuel of Ada", 1, 0.2), Chance("fuel of Bo", 1, 0.1), keep_expected=False)
    assert each.constraint_names == ("P(fuel of Ada > 1)", "P(fuel of Bo > 1)")
    assert cmpg.solve(each).certified
    anyone = with_chances(both, Chance("fuel", 0, 0.2), keep_expected=False)
    assert anyone.constraint_names == ("sum over steps and agents of P(fuel > 0)",)


def test_a_budget_on_risk_binds_whom_its_cost_binds():
    both = lone_walkers(0, owners=(0, 1))
    private = replace(both, binds=[[True], [False]])
    for budget in (Chance("fuel of Ada", 1, 0.2), Chance("fuel", 0, 0.2)):
        assert with_chances(private, budget, keep_expected=False).binds.tolist() == [[True], [False]]


@pytest.mark.parametrize("seed", range(4))
def test_the_law_of_own_costs_is_that_of_the_joint_game(seed):
    """Agents move independently, and what they pay together is a convolution; the joint game knows nothing of that."""
    game = lone_walkers(seed, owners=(0, 1))
    policy = game.random_policy(rng=np.random.default_rng(seed))
    (law,) = cost_law(game, policy)
    (joint,) = cost_law(to_joint(game), lift_policy(game, policy))
    assert law.sums.tolist() == joint.sums.tolist()
    assert law.probabilities == pytest.approx(joint.probabilities, abs=1e-14)
    assert law.mean == pytest.approx(game.at(policy).costs[0])


def test_costs_of_resources_have_no_law_and_that_is_said(tmp_path):
    game = charging()
    with pytest.raises(UnsupportedError, match="where all agents are"):
        cost_law(game, game.uniform_policy())
    game = lone_walkers(1)
    save_game(game, tmp_path / "game.npz")
    done = run("solve", str(tmp_path / "game.npz"), "--chance", "fuel of Ada>1:0.2", "--out", str(tmp_path / "run"))
    assert done.code == 0
    assert "law of a cost" in done.out
    assert run("report", str(tmp_path / "run")).code == 0
    assert "how likely each sum is" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_loads_are_limited_by_a_sum_that_is_named_and_never_counted_in_own_states():
    game = charging()
    name = game.constraint_names[0]
    risky = with_chances(game, Chance(name, 0, 0.05), keep_expected=False)
    assert risky.constraint_names == (f"sum over steps of P({name} > 0)",)
    assert risky.policy_shapes == game.policy_shapes
    result = cmpg.solve(risky, epsilon=1e-5)
    assert result.certified
    assert "sum over steps" in str(result)
    seen = (cmpg.simulate(game, result.policy, 20_000, rng=1).realised[0] > 0).mean()
    assert seen <= 0.05 + 4 * np.sqrt(0.05 / 20_000)  # the sum bounds the probability of any overload
    laws = result.costs[0]
    assert seen <= laws + 4 * np.sqrt(laws / 20_000)
    for words in (f"{name} of {game.names.agent(0)}>0:0.1", f"{name}>1:0.1"):
        with pytest.raises(GameError, match="own state"):
            with_chances(game, Chance.of(words))


def test_the_command_says_that_the_sum_is_what_is_certified():
    done = run("solve", "charging", "--chance", "overload of transformer>0:0.05", "--chances-only")
    assert done.code == 0
    assert "sum over steps of P(" in done.out
    assert "it is this sum that is constrained and certified" in " ".join(done.err.split())
    assert run("solve", "charging", "--cvar", "overload of transformer:0.9:1").code == 2
