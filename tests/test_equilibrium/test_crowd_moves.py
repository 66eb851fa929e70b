"""How groups move, and what a group's mixed policy means: the potential rises with every move, and coins are their own.

Every agent of these crowds takes one of two roads once; the curves are what a road costs its users by their number.
"""

from __future__ import annotations

import numpy as np
import pytest

from cmpg.equilibrium.crowds.certificate import certify_crowd
from cmpg.equilibrium.crowds.fluid import columns_of
from cmpg.equilibrium.crowds.groups import Groups
from cmpg.equilibrium.crowds.kinds import Kinds
from cmpg.equilibrium.crowds.laws import Laws
from cmpg.games import CrowdGame, CrowdPolicy, LoadCurve, LocalAgent

NO_PRICES = np.zeros(0)


def two_roads(first: LoadCurve, second: LoadCurve, numbers: list[int]) -> CrowdGame:
    """Kinds who differ in name only, and roads whose delays are given."""
    uses = np.array([[[[1.0, 0.0], [0.0, 1.0]]]])
    kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=np.zeros((1, 1, 2)), uses=uses, initial=[1])
    return CrowdGame(
        kinds=[kind] * len(numbers), numbers=numbers, curves=[first, second], delay=[[0, 1]], load_costs=[],
        thresholds=[], horizon=1,
    )  # fmt: skip


def all_on_the_first(game: CrowdGame) -> Groups:
    kinds, everyone = Kinds(game), np.arange(game.num_kinds)
    columns = columns_of(kinds, everyone, np.zeros((game.num_kinds, 1, 1), dtype=np.int64))
    return Groups.of(kinds, columns, np.asarray(game.numbers))


def rosenthal(game: CrowdGame, groups: Groups) -> float:
    """Return the potential: on each road its users pay one by one."""
    loads = np.round(groups.number @ groups.ways.used).astype(int)
    delays = [
        np.interp(np.arange(1, load + 1), curve.loads, curve.values).sum()
        for load, curve in zip(loads, game.curves, strict=True)
    ]
    return -float(sum(delays))


def test_a_batch_is_not_taken_because_its_members_are_better_off_than_before(monkeypatch):
    """Ten pay 5 each; five who leave for 4.9 are better off than before, and each of them would rather be back at 1."""
    monkeypatch.setattr(Laws, "stiffness", lambda laws, _: np.zeros_like(laws.mean))  # batches as large as may be
    game = two_roads(LoadCurve([0, 8, 9, 10], [1, 1, 5, 5]), LoadCurve([0, 10], [4.9, 4.9]), [10])
    groups = all_on_the_first(game)
    before, moves = rosenthal(game, groups), 0
    while True:
        _, moved = groups.move(NO_PRICES, tolerance=1e-9, most=1)
        if not moved:
            break
        after = rosenthal(game, groups)
        assert after > before
        before, moves = after, moves + 1
    assert moves > 0
    assert groups.number[0] == 8  # a ninth would pay 5 there, and nobody else gains


def test_groups_move_one_at_a_time():
    """Each of two agents gains 1 by taking the second road alone; both together would lose 3 each."""
    game = two_roads(LoadCurve([0, 2], [2, 2]), LoadCurve([0, 1, 2], [1, 1, 5]), [1, 1])
    groups = all_on_the_first(game)
    left, moves = groups.move(NO_PRICES, tolerance=1e-9, most=50)
    assert moves == 1
    assert left <= 1e-9
    assert rosenthal(game, groups) == pytest.approx(-3.0)


def test_a_mixed_policy_of_a_group_is_a_coin_of_each_member_and_not_a_share_of_them():
    """Ten who toss coins are more than five on a road at times; five and five never are."""
    uses = np.array([[[[1.0], [0.0]]]])
    kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=np.zeros((1, 1, 2)), uses=uses, initial=[1])
    game = CrowdGame(
        kinds=[kind], numbers=[10], curves=[LoadCurve([0, 10], [0, 0]), LoadCurve([0, 5, 10], [0, 0, 5])],
        delay=[[0]], load_costs=[[[1]]], thresholds=[9.0], horizon=1,
    )  # fmt: skip
    coins = CrowdPolicy([0], [10], ([[[0.5, 0.5]]],))
    halves = CrowdPolicy([0, 0], [5, 5], ([[[1.0, 0.0]]], [[[0.0, 1.0]]]))
    assert certify_crowd(game, coins).costs[0] == pytest.approx(630 / 1024)  # E (N − 5)⁺ of Bin(10, ½)
    assert certify_crowd(game, halves).costs[0] == 0.0
    assert all((table == 0.5).all() for table in coins.spread())
    assert game.spread().at(coins.spread()).costs[0] == pytest.approx(630 / 1024)
