"""Proved is proved: costs so close to a threshold, or so large, that floats cannot tell, are decided or left open."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmpg
from cmpg.equilibrium.certificate import Feasibility, certify
from cmpg.equilibrium.result import Result, Status
from cmpg.games.claims import claim_of, meets_thresholds_exactly
from cmpg.games.counting.classes import EveryCount, LargestCount
from cmpg.games.counting.game import CountingGame
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.policy import JointPolicy
from cmpg.proof.exact import exact_costs
from oracles.judge import judge
from oracles.random_games import draw, shapes_of
from oracles.sweeping import build


def one_shot(cost, threshold, **more):
    return JointGame.from_matrices(np.zeros(np.shape(cost)), cost=cost, threshold=threshold, **more)


def mixing(*shares):
    """Each agent plays action 1 so often."""
    return JointPolicy(tuple([[[1 - share, share]]] for share in shares))


def counting(threshold):
    """Two agents on two roads; both on the same road cost 1."""
    return CountingGame(
        rewards=np.zeros((1, 1, 2, 3)),
        classes=LargestCount((1,)),
        transition=np.ones((1, 1, 2, 1)),
        costs=[[[[0.0, 1.0]]]],
        thresholds=[threshold],
        initial=[1.0],
        horizon=1,
    )


def local(threshold):
    """Two agents and a desk; both at it cost 1."""
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 0]]], uses=[[[[0], [1]]]], initial=[1])
    return LocalGame(
        agents=(agent, agent), delay=[[[0, 0, 0]]], load_costs=[[[[0, 0, 1]]]], thresholds=[threshold], horizon=1
    )


# --- What is decided --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "policy", "spent"),
    [
        (lambda alpha: one_shot([[0, 0], [0, 1]], alpha), mixing(0.375, 0.625), 0.375 * 0.625),
        (counting, mixing(0.375, 0.125), 0.375 * 0.125 + 0.625 * 0.875),
        (local, mixing(0.375, 0.625), 0.375 * 0.625),
    ],
    ids=["joint", "counting", "local"],
)
def test_every_form_tells_a_threshold_that_is_met_from_one_that_is_not_by_the_last_bit(game, policy, spent):
    assert certify(game(spent), policy).feasibility is Feasibility.PROVEN
    below = np.nextafter(spent, 0)
    judged = certify(game(below), policy)
    assert judged.feasibility is Feasibility.TO_ROUNDING
    assert not judged.feasible
    assert judged.excess[0] >= spent - below
    assert judged.excess[0] == pytest.approx(spent - below)
    assert not judged.proves(1.0)
    assert judged.proves(1.0, allow_rounding=float(judged.excess[0]))
    assert not judged.proves(1.0, allow_rounding=float(spent - below) / 2)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_exact_costs_are_those_of_the_exact_judge(seed):
    drawn, rng = draw(seed), np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(actions, 0.7), size=(h, s)) for h, s, actions in shapes_of(drawn.game)]
    if rng.random() < 0.5:
        tables = [np.eye(table.shape[2])[table.argmax(axis=-1)] for table in tables]
    policy = JointPolicy(tuple(tables))
    game = build(drawn.game)
    found = exact_costs(claim_of(game, policy, np.zeros((game.num_agents, len(game.thresholds)))), max_work=10**8)
    for spent, cost in zip(found, judge(drawn.game).costs(policy.tables), strict=True):
        # Rows of the game that are not quite distributions were divided by their sums, in floats.
        assert abs(spent - cost) <= Fraction(1, 10**14) * max(abs(cost), 1)


def test_where_too_much_can_happen_the_question_is_left_open():
    """Seventeen agents mix, so there are 2^17 joint actions: too many for rationals."""
    shares = np.random.default_rng(0).random(17)
    cost = np.zeros((2,) * 17)
    cost[(1,) * 17] = 1.0
    policy = mixing(*shares)
    spent = certify(one_shot(cost, 1.0), policy).costs[0]
    judged = certify(one_shot(cost, spent), policy)
    assert judged.feasibility is Feasibility.TO_ROUNDING
    assert 0 < judged.excess[0] < 1e-13 * spent


def test_rationals_decide_where_rows_do_not_sum_to_one():
    """Both ways lead to the same state, so that exactly a half is spent, though 0.1 and 0.9 do not sum to one."""
    transition = np.zeros((2, 3, 2, 3))
    transition[0, 0, :, 1:] = [0.1, 0.9]
    transition[0, 1:, :, 0] = 1
    transition[1, ..., 0] = 1
    costs = np.zeros((1, 2, 3, 2))
    costs[0, 1, 1:, 1] = 1.0
    costs[0, 0, 0, 1] = 1.0
    game = JointGame(
        transition=transition,
        rewards=np.zeros((1, 1, 3, 2)),
        costs=costs,
        thresholds=[1.0],
        initial=[1, 0, 0],
        horizon=2,
    )
    policy = game.uniform_policy()
    assert certify(game, policy).feasibility is Feasibility.PROVEN


# --- Large numbers, small numbers, and no numbers ---------------------------------------------------------------------


def test_large_costs_of_both_signs_are_not_proved_at_what_their_rounding_hides():
    cost = [[1e15, -1e15], [-1e15, 1e15 + 7]]
    game = one_shot(cost, 0.0)
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first = float(rng.random())
        # The second agent balances the first one, to the last bit that a float has.
        by_action = [(1 - first) * cost[0][a] + first * cost[1][a] for a in (0, 1)]
        policy = (
            mixing(first, by_action[0] / (by_action[0] - by_action[1])) if by_action[0] * by_action[1] < 0 else None
        )
        if policy is None:
            continue
        spent = judge({**PLAIN, "rewards": game.rewards, "costs": game.costs}).costs(policy.tables)[0]
        judged = certify(game, policy)
        found += spent > 0
        assert judged.feasible == (spent <= 0)
        assert Fraction(float(judged.excess[0])) >= spent
    assert found > 5


PLAIN = {"form": "joint", "transition": np.ones((1, 1, 2, 2, 1)), "initial": [1.0], "thresholds": [0.0], "horizon": 1}


def test_large_costs_over_a_long_horizon_are_not_proved_at_what_their_rounding_hides():
    share = 0.3
    over = 1e9 * share / (1 - share)
    game = replace(one_shot([-over * (1 - 1e-14), 1e9], 0.0), horizon=1000, discount=None)
    policy = JointPolicy((np.tile([1 - share, share], (1000, 1, 1)),))
    spent = 1000 * ((1 - share) * -over * (1 - 1e-14) + share * 1e9)
    judged = certify(game, policy)
    assert judged.costs[0] == pytest.approx(spent, abs=20)
    assert not judged.feasible
    assert judged.excess[0] > 1e-6
    assert not judged.proves(1e-3)
    found = cmpg.solve(game, start=policy)
    assert not found.certified or certify(game, found.policy, exact=True).feasible


def test_costs_beyond_all_floats_are_violated():
    game = replace(one_shot([[1e308, 1e308], [1e308, 1e308]], 1.0), horizon=5, discount=None)
    judged = certify(game, game.uniform_policy())
    assert judged.feasibility is Feasibility.VIOLATED
    assert judged.excess[0] == np.inf
    assert not judged.proves(np.inf)
    undecided = replace(one_shot([[1e308, -1e308], [1e308, -1e308]], 1.0), horizon=5, discount=None)
    # The costs cancel out, which only rationals see.
    assert certify(undecided, undecided.uniform_policy()).feasibility is Feasibility.PROVEN


def test_products_too_small_for_floats_count():
    cost = np.zeros((2, 2, 2))
    cost[1, 1, 1] = 1e300
    rare = mixing(1e-200, 1e-200, 1e-200)
    judged = certify(one_shot(cost, 0.0), rare)
    assert judged.costs[0] == pytest.approx(1e-300)
    assert not judged.feasible
    assert judged.excess[0] == pytest.approx(1e-300)
    assert certify(one_shot(cost, 1e-299), rare).feasible
    never = mixing(1e-200, 1e-200, 0.0)
    assert certify(one_shot(cost, 0.0), never).feasible


@pytest.mark.parametrize("probability", [1e-200, 1e-5])
def test_products_too_small_for_floats_count_along_the_way_too(probability):
    """State 0 leads on with a small probability, three times; only state 3 costs anything."""
    transition = np.zeros((1, 4, 1, 4))
    for state in range(3):
        transition[0, state, 0, [state, state + 1]] = [1 - probability, probability]
    transition[0, 3, 0, 3] = 1
    game = JointGame(
        transition=transition,
        rewards=np.zeros((1, 1, 4, 1)),
        costs=[[[[0], [0], [0], [1]]]],
        thresholds=[0.0],
        initial=[1, 0, 0, 0],
        horizon=4,
    )
    assert not certify(game, game.uniform_policy()).feasible
    shorter = JointGame(
        transition=transition,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=[0.0],
        initial=game.initial,
        horizon=3,
    )
    assert certify(shorter, shorter.uniform_policy()).feasible


def test_local_games_know_who_may_meet_whom():
    """A thousand agents who each might come make products too small for any float; yet nobody comes with another."""
    assert certify(local(0.0), mixing(1e-200, 1e-200)).excess[0] > 0
    assert certify(local(0.0), mixing(1e-200, 0.0)).feasible
    crowd = 400
    agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 0]]], uses=[[[[0], [1]]]], initial=[1])
    loads = np.where(np.arange(crowd + 1) > crowd - 1, 1.0, 0.0)
    game = LocalGame(
        agents=(agent,) * crowd, delay=np.zeros((1, 1, crowd + 1)), load_costs=[[[loads]]], thresholds=[0], horizon=1
    )
    shares = np.full(crowd, 1e-3)
    assert not certify(game, mixing(*shares)).feasible
    shares[7] = 0
    assert certify(game, mixing(*shares)).feasible


# --- Results ----------------------------------------------------------------------------------------------------------


def test_up_to_rounding_is_an_ending_of_its_own_that_is_accepted_only_where_it_is_allowed():
    game = one_shot([[1, 1], [1, 1]], np.nextafter(1.0, 0))
    result = cmpg.solve(game)
    assert result.status is Status.TO_ROUNDING
    assert not result.certified
    assert not result.accepted
    assert "may cost up to 1.12e-16 more than 1" in result.message
    assert "feasible" not in result.message + result.status.value
    allowed = replace(result, allow_rounding=1e-15)
    assert allowed.accepted
    assert not allowed.certified


def test_where_there_is_room_the_answer_moves_inside_and_is_certified():
    """The best response spends the threshold to the last bit, and a hair more in rationals."""
    seen = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        game = JointGame(
            transition=rng.dirichlet(np.ones(3), size=(1, 3, 2, 2)),
            rewards=np.stack([rng.normal(size=(1, 3, 2, 2))] * 2),
            costs=rng.normal(size=(1, 1, 3, 2, 2)) * 1e9,
            thresholds=[0.0],
            initial=rng.dirichlet(np.ones(3)),
            horizon=3,
        )
        result = cmpg.solve(game.with_thresholds(game.at(game.uniform_policy()).costs))
        seen.add(result.status)
        if result.certified:
            assert certify(result.game, result.policy, result.multipliers, exact=True).feasible
    assert seen == {Status.CERTIFIED}


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), short=st.integers(5, 12))
def test_near_discount_one_nothing_is_called_feasible_that_is_not(seed, short):
    rng = np.random.default_rng(seed)
    shape = (1, 2, 2, 2)
    game = JointGame(
        transition=rng.dirichlet(np.ones(2), size=shape),
        rewards=np.stack([rng.normal(size=shape)] * 2),
        costs=rng.random((1, *shape)),
        thresholds=[0.0],
        initial=[0.5, 0.5],
        discount=1 - 10.0**-short,
    )
    game = game.with_thresholds(game.at(game.uniform_policy()).costs)
    result = cmpg.solve(game, epsilon=1e-3)
    if result.incumbent is not None and not certify(game, result.policy).feasible:
        assert not result.certified
        assert "feasible" not in (result.message + result.status.value).replace("infeasible", "")


def test_a_page_and_a_record_say_by_how_much(tmp_path):
    result = replace(cmpg.solve(one_shot([[1, 1], [1, 1]], np.nextafter(1.0, 0))), allow_rounding=1e-15)
    result.save(tmp_path / "run")
    again = cmpg.load_run(tmp_path / "run").result
    assert again.status is Status.TO_ROUNDING
    assert again.certificate.excess[0] == result.certificate.excess[0]
    # Whoever reads the folder decides anew what to accept.
    assert not again.accepted
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "may exceed a threshold by up to" in page
    assert "<h1>Proved" not in page


def test_a_result_without_a_policy_is_not_accepted():
    assert not Result(Status.LIMIT, "", 1.0, allow_rounding=np.inf).accepted


def test_every_count_is_decided_too():
    game = CountingGame(
        rewards=np.zeros((1, 1, 2, 4)),
        classes=EveryCount(),
        transition=np.ones((1, 1, 4, 1)),
        costs=[[[[0.0, 0.0, 1.0, 0.0]]]],
        thresholds=[0.375],
        initial=[1.0],
        discount=0.0,
    )
    assert certify(game, mixing(0.5, 0.5, 0.5)).feasibility is Feasibility.PROVEN
    assert not certify(game.with_thresholds([np.nextafter(0.375, 0)]), mixing(0.5, 0.5, 0.5)).feasible


def test_exact_mode_says_how_many_rows_it_divided_by_their_sums():
    game = one_shot([[0, 0], [0, 1]], 0.5)
    assert certify(game, mixing(0.25, 0.5), exact=True).rescaled == 0
    judged = certify(game, JointPolicy(([[[0.9, 0.1]]], [[[0.5, 0.5]]])), exact=True)
    assert judged.rescaled == 1
    assert "exact arithmetic; 1 row of probabilities divided by their sums)" in judged.summary().sentence
    assert certify(game, JointPolicy(([[[0.9, 0.1]]], [[[0.5, 0.5]]]))).rescaled == 0


def test_proofs_by_support_keep_the_sizes_of_the_constraints_that_are_left():
    """A budget of which nothing is left, beside one of costs of both signs."""
    cost = np.array([[[0.0, 1.0], [1.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]])
    game = JointGame.from_matrices([[1, 2], [2, 3]], cost=cost, threshold=[0.0, 1.0])
    result = cmpg.solve(game)
    assert result.certified
    hard = certify(game, result.policy, [[np.inf, 0.0], [np.inf, 0.0]])
    assert hard.feasible
    assert np.isfinite(hard.epsilon)


def test_a_state_that_cannot_occur_breaks_no_hard_budget():
    game = JointGame(
        transition=np.ones((1, 2, 1, 1, 2)) / 2,
        rewards=np.zeros((2, 1, 2, 1, 1)),
        costs=[[[[[0.0]], [[1.0]]]], [[[[1.0]], [[1.0]]]]],
        thresholds=[0.0, 1.0],
        initial=[1.0, 0.0],
        horizon=1,
    )
    assert certify(game, game.uniform_policy(), [[np.inf, 0.0], [np.inf, 0.0]]).feasible


@pytest.mark.parametrize("last_bit", [-1, 0, 1])
def test_a_threshold_is_met_exactly_if_the_policy_spends_no_more_than_its_last_bit(last_bit):
    shares = (0.3, 0.7)
    spent = Fraction(shares[0]) / (Fraction(1 - shares[0]) + Fraction(shares[0])) * Fraction(shares[1])
    spent /= Fraction(1 - shares[1]) + Fraction(shares[1])
    nearest = float(spent) if float(spent) >= spent else np.nextafter(float(spent), np.inf)
    limit = np.nextafter(nearest, last_bit * np.inf) if last_bit else nearest
    assert meets_thresholds_exactly(one_shot([[0, 0], [0, 1]], limit), mixing(*shares)) is (limit >= spent)
