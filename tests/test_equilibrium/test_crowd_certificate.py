"""Certificates of crowds beside those of the same games agent by agent, and forged claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.test_equilibrium.random_crowds import random_crowd

import cmpg
from cmpg.errors import GameError, PolicyError
from cmpg.games import CrowdGame, CrowdPolicy, crowd_of


@pytest.mark.parametrize("seed", range(8))
def test_a_crowd_is_judged_as_the_same_game_agent_by_agent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    game, policy = random_crowd(rng, agents=240 if seed == 0 else 120)
    prices = rng.random((policy.num_groups, game.num_constraints))
    found = cmpg.certify(game, policy, prices)
    one_by_one = cmpg.certify(game.spread(), policy.spread(), np.repeat(prices, policy.number, axis=0))
    first = np.concatenate([[0], np.cumsum(policy.number)])[:-1]
    assert np.allclose(found.costs, one_by_one.costs, rtol=0, atol=1e-11)
    assert np.allclose(found.gains, one_by_one.gains[first], rtol=1e-3, atol=1e-10)
    assert np.allclose(found.values, one_by_one.values[first], rtol=0, atol=1e-11)
    assert found.feasible == one_by_one.feasible
    assert found.allowance < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_multipliers_that_are_searched_for_prove_what_best_responses_prove(seed: int) -> None:
    game, policy = random_crowd(np.random.default_rng(100 + seed), agents=90)
    costs = cmpg.certify(game, policy, np.zeros((policy.num_groups, game.num_constraints))).costs
    tight = game.with_thresholds(costs + 1e-3)
    found, one_by_one = cmpg.certify(tight, policy), cmpg.certify(tight.spread(), policy.spread())
    first = np.concatenate([[0], np.cumsum(policy.number)])[:-1]
    assert found.feasible
    assert one_by_one.feasible
    assert np.all(found.gains >= one_by_one.gains[first] - 1e-9)
    assert np.allclose(
        found.gains, one_by_one.gains[first], rtol=1e-3, atol=1e-7 if game.num_constraints == 1 else 0.05
    )


def test_a_cost_above_the_threshold_by_its_last_bits_is_not_called_feasible() -> None:
    game, policy = random_crowd(np.random.default_rng(5))
    zeros = np.zeros((policy.num_groups, game.num_constraints))
    costs = cmpg.certify(game, policy, zeros).costs
    below = game.with_thresholds(np.nextafter(costs, -np.inf))
    assert not cmpg.certify(below, policy, zeros).feasible
    assert not cmpg.certify(below, policy, zeros).proves(np.inf)
    assert cmpg.certify(game.with_thresholds(costs + 1e-9), policy, zeros).feasible


def test_wrong_prices_prove_less_and_never_more() -> None:
    rng = np.random.default_rng(7)
    game, policy = random_crowd(rng)
    tight = game.with_thresholds(
        cmpg.certify(game, policy, np.zeros((policy.num_groups, game.num_constraints))).costs + 1e-6
    )
    true = cmpg.certify(tight.spread(), policy.spread()).gains
    first = np.concatenate([[0], np.cumsum(policy.number)])[:-1]
    for scale in (0.0, 0.1, 3.0, 1e6):
        prices = scale * rng.random((policy.num_groups, game.num_constraints))
        assert np.all(cmpg.certify(tight, policy, prices).gains >= true[first] - 1e-9)


def test_a_local_game_becomes_a_crowd_and_comes_back() -> None:
    game, policy = random_crowd(np.random.default_rng(11), agents=60)
    spread = game.spread()
    again = crowd_of(spread)
    assert np.array_equal(again.numbers, game.numbers)
    assert again.num_kinds == game.num_kinds
    assert np.allclose(cmpg.certify(again, policy).costs, cmpg.certify(spread, policy.spread()).costs)
    with pytest.raises(GameError, match="binds some agents only"):
        crowd_of(
            spread.with_binds(np.arange(spread.num_agents * len(spread.thresholds)).reshape(spread.num_agents, -1) > 0)
        )


def test_what_agents_use_is_not_taken_for_where_they_move() -> None:
    """With as many states as resources: a second matrix of uses of one agent is a second transition of the other."""
    stay, turn = np.eye(2), np.eye(2)[::-1]
    moves, uses, later = np.stack([stay, stay]), np.stack([stay, turn]), np.stack([turn, turn])  # [S, A, S or E]
    common = {"reward": np.zeros((1, 2, 2)), "initial": [1, 0]}
    first = cmpg.LocalAgent(transition=moves[None], uses=np.stack([uses, later]), **common)
    second = cmpg.LocalAgent(transition=np.stack([moves, uses]), uses=later[None], **common)
    game = cmpg.LocalGame(
        agents=(first, second),
        delay=np.zeros((1, 2, 3)),
        load_costs=np.zeros((0, 1, 2, 3)),
        thresholds=[],
        horizon=2,
    )
    assert crowd_of(game).num_kinds == 2


def test_groups_that_are_not_those_of_the_crowd_are_refused_with_their_numbers() -> None:
    game, policy = random_crowd(np.random.default_rng(12))
    number = policy.number.copy()
    number[0] += 1
    with pytest.raises(PolicyError, match="the groups of kind 0 have"):
        cmpg.certify(game, CrowdPolicy(policy.kind, number, policy.plans))
    with pytest.raises(PolicyError, match="a CrowdPolicy is required"):
        cmpg.certify(game, policy.plans)
    with pytest.raises(PolicyError, match="at least 1 is required"):
        CrowdPolicy(policy.kind, 0 * policy.number, policy.plans)
    with pytest.raises(GameError, match="its last point must be there"):
        replace(game, numbers=game.numbers + 1)
    with pytest.raises(GameError, match="Solve it as a crowd"):
        large(game).spread()


def large(game: CrowdGame) -> CrowdGame:
    """The same kinds, a million times as many."""
    numbers = 1_000_000 * game.numbers
    curves = [cmpg.games.LoadCurve([0, int(numbers.sum())], [0.0, 1.0])] * len(game.curves)
    return replace(game, numbers=numbers, curves=tuple(curves))


def test_agents_of_a_group_are_a_range_of_those_of_their_kind() -> None:
    game, policy = random_crowd(np.random.default_rng(13))
    held = np.zeros(game.num_kinds, dtype=int)
    for g in range(policy.num_groups):
        low, high = policy.ranges[g]
        k = policy.kind[g]
        assert low == held[k]
        assert high - low == policy.number[g]
        assert policy.of(int(k), int(high) - 1) is policy.plans[g]
        held[k] = high
    order = np.random.default_rng(0).permutation(policy.num_groups)
    shuffled = CrowdPolicy(policy.kind[order], policy.number[order], tuple(policy.plans[g] for g in order))
    assert shuffled.fingerprint() == policy.fingerprint()
