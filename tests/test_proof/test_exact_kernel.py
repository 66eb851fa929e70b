"""The check in rationals says exactly what an exact judge says, of every form of game."""

from fractions import Fraction

import numpy as np
import pytest

from cmpg.games import CountingGame, JointGame
from cmpg.games.counting.vectors import EveryCount
from cmpg.games.rationals import as_given
from cmpg.policy import JointPolicy
from cmpg.proof.check import check
from cmpg.proof.claim import Claim
from cmpg.proof.exact import TooLarge, check_exactly, exact_costs
from cmpg.proof.shared import class_of
from cmpg.scenarios import grid_world, grid_world_local
from oracles.claiming import truth_of
from oracles.judge import judge
from oracles.random_claims import draw_claim
from oracles.sweeping import build


def claimed(game, policy, multipliers, binds=None):
    shape = (game.num_agents, len(game.thresholds))
    mask = np.ones(shape, dtype=bool) if binds is None else np.asarray(binds, dtype=bool)
    tables = JointPolicy(tuple(policy)).tables
    discount, thresholds = as_given(game, "discount"), as_given(game, "thresholds")
    return Claim(game.claim_tables(), game.horizon, discount, thresholds, mask, tables, np.asarray(multipliers))


@pytest.mark.filterwarnings("ignore")
def test_values_costs_and_gains_are_those_of_an_exact_judge():
    proved = 0
    for seed in range(60):
        claim = draw_claim(seed)
        if claim.large:
            continue
        said = check_exactly(claimed(build(claim.game), claim.policy, claim.multipliers, claim.binds))
        judged, truth = judge(claim.game), truth_of(claim)
        assert said.values == judged.values(claim.policy), seed
        assert said.costs == judged.costs(claim.policy), seed
        for i, gain in enumerate(truth.gains):
            bound = said.bounds[i]
            if bound is None:
                assert np.isinf(claim.multipliers[i]).any(), seed
            else:
                proved += 1
                assert i not in truth.unfounded, seed
                assert gain is None or bound - said.values[i] == gain, seed
    assert proved > 50


@pytest.mark.parametrize("scenario", [grid_world, grid_world_local])
def test_the_check_in_floats_holds_what_is_exact(scenario):
    game = scenario()
    policy = game.random_policy(rng=np.random.default_rng(0))
    policy = [np.where(np.arange(table.shape[1])[:, None] % 3, np.eye(table.shape[2])[0], table) for table in policy]
    claim = claimed(game, policy, np.full((2, 1), 0.7))
    exactly, floats = check_exactly(claim), check(claim)
    for i, value in enumerate(exactly.values):
        assert Fraction(float(floats.values.lower[i])) <= value <= Fraction(float(floats.values.upper[i]))
        assert exactly.bounds[i] <= Fraction(float(floats.bounds[i])) <= exactly.bounds[i] + Fraction(1, 10**10)
    assert Fraction(float(floats.costs.lower[0])) <= exactly.costs[0] <= Fraction(float(floats.costs.upper[0]))


def test_rationals_that_no_float_holds_are_read_as_they_are():
    small = Fraction(1, 10**400)
    game = JointGame(
        transition=np.ones((1, 1, 2, 1)), rewards=[[[[0, small]]]], costs=[], thresholds=[], initial=[1.0], horizon=1
    )
    said = check_exactly(claimed(game, [[[[1.0, 0.0]]]], np.zeros((1, 0))))
    assert said.gains == [small]
    rare = np.array([[[1 - small, small]]], dtype=object)
    costly = game.with_constraints([[[[0, 1]]]], [0.0], ["never"])
    assert exact_costs(claimed(costly, [rare], [[np.inf]]), max_work=1000) == [small]


def test_rows_that_do_not_sum_to_exactly_one_are_counted():
    game = grid_world_local()
    policy = game.uniform_policy()
    even = check_exactly(claimed(game, policy, np.zeros((2, 1)))).rescaled
    tables = [np.array(table) for table in policy]
    tables[0][0, 0] = [0.1, 0.2, 0.3, 0.4]
    assert sum(Fraction(x) for x in (0.1, 0.2, 0.3, 0.4)) != 1
    assert check_exactly(claimed(game, tables, np.zeros((2, 1)))).rescaled == even + 1


def test_more_work_than_is_allowed_raises():
    game = grid_world()
    claim = claimed(game, game.uniform_policy(), np.zeros((2, 1)))
    with pytest.raises(TooLarge):
        check_exactly(claim, max_work=100)
    with pytest.raises(TooLarge):
        exact_costs(claim, max_work=100)


@pytest.mark.parametrize(("agents", "actions"), [(1, 1), (3, 2), (4, 3), (2, 4)])
def test_count_vectors_are_numbered_as_the_game_numbers_them(agents, actions):
    vectors = EveryCount().samples(agents, actions)
    assert [class_of(tuple(vector), None) for vector in vectors.tolist()] == list(range(len(vectors)))
    assert class_of((3, 1), (1, 2)) == 2
    assert class_of((2, 2), (1, 2)) == 1


def test_counting_games_with_one_action_are_checked():
    game = CountingGame(
        rewards=[[[[0.0, 1.0, 2.0]]]],
        classes=EveryCount(),
        transition=[[[[1.0]]]],
        costs=[[[[3.0]]]],
        thresholds=[4.0],
        initial=[1.0],
        horizon=1,
    )
    claim = claimed(game, [np.ones((1, 1, 1))] * 2, np.zeros((2, 1)))
    assert check_exactly(claim).values == [2, 2]
    assert check(claim).costs.upper == check_exactly(claim).costs == [3]
