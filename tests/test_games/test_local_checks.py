"""Local games that are not well formed are refused, with coordinates; and what is taken in belongs to the game."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from cmpg.errors import GameError, PolicyError
from cmpg.games.local.game import LocalAgent, LocalGame


def agent_with(**changes):
    tables = {
        "transition": np.full((1, 2, 2, 2), 0.5),
        "reward": np.zeros((1, 2, 2)),
        "uses": np.ones((1, 2, 2, 3)),
        "initial": [0.5, 0.5],
    }
    return LocalAgent(**(tables | changes))


def game_with(**changes):
    tables = {
        "agents": [agent_with(), agent_with()],
        "delay": np.zeros((1, 3, 3)),
        "load_costs": np.zeros((1, 1, 3, 3)),
        "thresholds": [1.0],
        "horizon": 4,
    }
    return LocalGame(**(tables | changes))


half_used = sp.csr_array(np.ones((4, 3)))
half_used[3, 1] = 0.5
twice_used = sp.csr_array((np.ones(2), ([0, 0], [0, 0])), shape=(4, 3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": []}, "at least one LocalAgent"),
        ({"agents": [3, 4]}, r"agents\[0\] is a int"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": None}, "horizon"),
        ({"delay": np.zeros((1, 3, 2))}, r"delay has 2 entries per resource; 2 agents .* so 3 entries are required"),
        ({"delay": np.zeros((2, 3, 3))}, r"delay has 2 steps; 1 .* or 4 is required"),
        ({"delay": np.zeros((3, 3))}, r"delay has shape \[3, 3\]"),
        ({"delay": np.full((1, 3, 3), np.nan)}, r"delay\[0, 0, 0\] is nan"),
        ({"load_costs": np.zeros((1, 1, 3, 4))}, "load_costs has 4 entries per resource"),
        ({"load_costs": np.zeros((1, 1, 2, 3))}, "load_costs has 2 resources; delay has 3"),
        ({"load_costs": np.zeros((1, 3, 3))}, r"load_costs has shape \[1, 3, 3\]"),
        ({"load_costs": np.zeros((1, 3, 3, 3))}, "load_costs has 3 steps"),
        ({"thresholds": [1.0, 2.0]}, r"thresholds has shape \[2\]; load_costs has 1 constraints, so \[1\]"),
        ({"agent_names": ("a",)}, "agents has 1 names; 2 are required"),
        ({"resource_names": ("a",)}, "resources has 1 names; 3 are required"),
    ],
)
def test_bad_tables_are_refused(changes, message):
    with pytest.raises(GameError, match=message):
        game_with(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transition": np.full((1, 2, 2, 2), 0.4)}, r"agent 1: transition\[h=0, s=0, a=0\] sums to 0.8"),
        ({"transition": np.full((1, 3, 2, 3), 1 / 3)}, r"agent 1: transition has shape \[1, 3, 2, 3\]"),
        ({"transition": sp.csr_array(np.full((4, 2), 0.3))}, r"agent 1: transition\[h=0, s=0, a=0\] sums to 0.6"),
        ({"transition": sp.csr_array(np.ones((3, 2)))}, r"agent 1: transition\[h=0\] has shape \[3, 2\]"),
        ({"reward": np.zeros((2, 2))}, r"agent 1: reward has shape \[2, 2\]"),
        ({"reward": np.zeros((3, 2, 2))}, "agent 1: reward has 3 steps"),
        ({"reward": np.full((1, 2, 2), np.inf)}, r"agent 1: reward\[0, 0, 0\] is inf"),
        ({"uses": half_used}, r"agent 1: uses\[h=0, s=1, a=1, e=1\] is 0.5; .* 1 or 0 is required"),
        ({"uses": twice_used}, r"agent 1: uses\[h=0, s=0, a=0, e=0\] is 2"),
        ({"uses": sp.csr_array(np.ones((4, 2)))}, r"agent 1: uses\[h=0\] has shape \[4, 2\]; \[4, 3\]"),
        ({"uses": [half_used] * 2}, "agent 1: uses has 2 steps"),
        ({"uses": np.ones((2, 2, 3))}, r"agent 1: uses has shape \[2, 2, 3\]"),
        ({"initial": [1.0]}, r"agent 1: initial has shape \[1\]; \[2\]"),
        ({"initial": [0.5, 0.4]}, "agent 1: initial sums to 0.9"),
        ({"costs": np.zeros((2, 1, 2, 2))}, r"agent 1: costs has shape \[2, 1, 2, 2\]; \[1, 1, 2, 2\]"),
        ({"costs": np.zeros((1, 2, 2))}, r"agent 1: costs has shape \[1, 2, 2\]"),
        ({"costs": np.zeros((1, 2, 2, 2))}, "agent 1: costs has 2 steps"),
    ],
)
def test_bad_agents_are_refused(changes, message):
    with pytest.raises(GameError, match=message):
        game_with(agents=[agent_with(), agent_with(**changes)])


def test_policies_of_another_shape_are_refused():
    game = game_with()
    with pytest.raises(PolicyError, match="shape"):
        game.at(game_with(horizon=3).uniform_policy())


# --- Ownership --------------------------------------------------------------------------------------------------------


def test_views_of_what_the_user_keeps_are_copied_but_not_spread():
    rng = np.random.default_rng(0)
    reward, costs, loads = rng.random((1, 2, 2)), rng.random((1, 1, 2, 2)), rng.random((1, 1, 1, 3))
    member = agent_with(reward=np.broadcast_to(reward, (4, 2, 2)), costs=np.broadcast_to(costs, (1, 4, 2, 2)))
    load_costs = np.broadcast_to(loads, (1, 4, 3, 3))
    game = game_with(agents=[member, member], load_costs=load_costs)
    expected = [table.copy() for table in (member.reward, member.costs, load_costs)]
    for kept in (reward, costs, loads):
        kept += 7
    for owned, before in zip((game.agents[0].reward, game.agents[0].costs, game.load_costs), expected, strict=True):
        assert np.array_equal(owned, before)
    assert game.agents[0].reward.strides[0] == 0
    assert game.agents[0].costs.strides[1] == 0
    assert game.load_costs.strides[1:3] == (0, 0)
    assert game.agents[0].reward is game.agents[1].reward
    assert game.agents[0].costs is game.agents[1].costs


def test_tables_that_cannot_change_are_taken_as_they_are():
    reward, loads = np.random.default_rng(0).random((4, 2, 2)), np.random.default_rng(1).random((1, 1, 1, 3))
    reward.setflags(write=False)
    loads.setflags(write=False)
    wide = np.broadcast_to(loads, (1, 4, 3, 3))
    game = game_with(agents=[agent_with(reward=reward), agent_with(reward=reward)], load_costs=wide)
    assert all(member.reward is reward for member in game.agents)
    assert game.load_costs is wide


# --- Floats and Fractions ---------------------------------------------------------------------------------------------


def test_fractions_in_a_policy_are_read_in_floats():
    reward = np.random.default_rng(0).random((4, 2, 2))
    game = game_with(agents=[agent_with(reward=reward), agent_with()], delay=np.ones((1, 3, 3)))
    thirds = np.full((4, 2, 2), Fraction(1, 3), dtype=object)
    thirds[..., 1] = Fraction(2, 3)
    start = game.uniform_policy()
    rounded = game.at(start.replace(0, thirds.astype(np.float64)))
    for position in (game.at(start.replace(0, thirds)), game.at(start).replace(0, thirds)):
        assert all(table.dtype == np.float64 for table in position.policy)
        assert position.values.tolist() == rounded.values.tolist()
        assert position.costs.tolist() == rounded.costs.tolist()
        assert position.induced_cmdp(1).reward.tolist() == rounded.induced_cmdp(1).reward.tolist()
    assert game.at(start).policy is start
