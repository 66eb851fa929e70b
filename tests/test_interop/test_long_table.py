"""Games as long tables, in CSV and as pandas frames."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cmpg.errors import FileError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.interop import from_frame, game_frame, read_table, table_text
from cmpg.scenarios import congestion_game, counter_example, grid_world, grid_world_local, spectrum

GAMES = {
    "one shot": counter_example,
    "several states": spectrum,
    "sparse": lambda: grid_world(horizon=2, width=2, height=2, target=(1, 1), cell_rewards={(1, 1): 1.0}),
    "costs by the step": lambda: congestion_game(num_agents=2, cost_at="first step"),
    "discounted": lambda: replace(spectrum(num_agents=1), horizon=None, discount=0.5),
    "without constraints": lambda: replace(
        spectrum(), costs=np.zeros((0, 1, 4, 3, 3, 3)), thresholds=[], constraint_names=None
    ),
}


def same(one: JointGame, other: JointGame) -> None:
    def dense(game):
        shape = (-1, game.num_states, *game.num_actions, game.num_states)
        parts = [part.toarray() for part in game.transition] if game.is_sparse else list(game.transition)
        return np.array(parts).reshape(shape)

    assert dense(one).tolist() == dense(other).tolist()
    for name in ("rewards", "costs"):
        here, there = getattr(one, name), getattr(other, name)
        assert np.broadcast_to(here, np.broadcast_shapes(here.shape, there.shape)).tolist() == there.tolist()
    assert one.thresholds.tolist() == other.thresholds.tolist()
    assert one.initial.tolist() == other.initial.tolist()
    assert (one.horizon, one.discount) == (other.horizon, other.discount)
    assert one.names.all_agents(one.num_agents) == other.names.all_agents(one.num_agents)
    assert one.names.all_actions(0, one.num_actions[0]) == other.names.all_actions(0, one.num_actions[0])


@pytest.mark.parametrize("build", GAMES.values(), ids=GAMES)
def test_out_and_in_again_is_the_same_game(tmp_path, build):
    game = build()
    (tmp_path / "game.csv").write_text(table_text(game))
    same(read_table(tmp_path / "game.csv"), game)


def test_fractions_stay_exact(tmp_path):
    game = counter_example().exact().with_thresholds([Fraction(1, 3)])
    (tmp_path / "game.csv").write_text(table_text(game))
    again = read_table(tmp_path / "game.csv", exact=True)
    assert again.rationals is not None
    assert again.rationals["thresholds"][0] == Fraction(1, 3)
    assert (again.rewards == game.rewards).all()
    assert read_table(tmp_path / "game.csv").thresholds[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("build", GAMES.values(), ids=GAMES)
def test_frames_hold_the_same(build):
    pytest.importorskip("pandas", reason="NOT TESTED WITH PANDAS: it is not installed")
    game = build()
    frame = game_frame(game)
    assert frame["value"].dtype == float
    rewards = frame[frame["quantity"] == "reward"]
    assert rewards["value"].sum() == pytest.approx(game.rewards.sum())
    same(from_frame(frame), game)


TABLE = """quantity,step,state,action of Ada,next_state,name,value
horizon,,,,,,2
threshold,,,,,noise,0.5
initial,,calm,,,,1
initial,,loud,,,,0
transition,,calm,stay,calm,,1
transition,,calm,shout,loud,,1
transition,,loud,stay,loud,,1/4
transition,,loud,stay,calm,,3/4
transition,,loud,shout,loud,,1
reward,0,calm,shout,,Ada,2
reward,1,loud,shout,,Ada,3
cost,,loud,shout,,noise,1
"""


def test_a_table_by_hand(tmp_path):
    (tmp_path / "game.csv").write_text(TABLE)
    game = read_table(tmp_path / "game.csv")
    assert game.state_names == ("calm", "loud")
    assert game.action_names == (("stay", "shout"),)
    assert game.transition[0, 1, 0].tolist() == [0.75, 0.25]
    assert game.rewards[0].tolist() == [[[0, 2], [0, 0]], [[0, 0], [0, 3]]]
    assert game.costs[0].tolist() == [[[0, 0], [0, 1]]]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("quantity,step", "quantity,when", "missing: step"),
        ("action of Ada", "Ada", "missing: action of …"),
        ("threshold,,", "limit,,", "line 3: quantity is 'limit'; one of horizon, discount"),
        ("horizon,,,,,,2\n", "", "exactly one line with a `horizon` or a `discount`"),
        ("initial,,loud", "initial,,calm", "line 5: 'calm' is given a second time"),
        ("transition,,calm,stay,calm,,1\n", "transition,,calm,stay,silent,,1\n", "line 6: next_state is 'silent'"),
        ("reward,0,", "reward,2,", "line 11: step is '2'; a number from 0 to 1, or nothing"),
        ("reward,0,", "reward,x,", "line 11: step is 'x'"),
        ("reward,0,", "reward,,", "some reward lines have a step, and some have none"),
        (",Ada,2", ",Bo,2", "line 11: name is 'Bo'; one of Ada is required"),
        (",noise,1\n", ",noise,much\n", "line 13: value is 'much'; a number is required"),
        ("cost,,loud,shout,,noise,1\n", "cost,,loud,shout,,noise,1\n" * 2, "line 14: this entry is given a second"),
        ("cost,,loud,shout", "cost,,loud,sing", "line 13: action of Ada is 'sing'"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path, old, new, problem):
    assert old in TABLE
    (tmp_path / "game.csv").write_text(TABLE.replace(old, new, 1))
    with pytest.raises(FileError, match=problem):
        read_table(tmp_path / "game.csv")


def test_a_local_game_has_no_table():
    with pytest.raises(UnsupportedError, match="a LocalGame has no table of joint actions"):
        table_text(grid_world_local())
