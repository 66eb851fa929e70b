"""Gambit's strategic form: in, out, by hand, and against Gambit itself if it is installed."""

from fractions import Fraction

import numpy as np
import pytest

from cmpg.equilibrium.certificate import certify
from cmpg.errors import FileError, GameError, UnsupportedError
from cmpg.games.joint.game import JointGame
from cmpg.interop import nfg_text, read_nfg
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, grid_world_local, spectrum

PAYOFFS = """NFG 1 R "a \\"game\\"" { "Ada" "Bo" }
{ { "up" "down" } { "left" "middle" "right" } }
"a comment"
1 2   3 4
5 6   7 8
1/3 -1.5   2e1 0
"""
OUTCOMES = """NFG 1 D "by outcomes" { "Ada" "Bo" "Cy" } { 2 1 2 }
{ { "first" 1, 2, 3 } { "second" 4 5 6 } }
1 2
0 1
"""


def written(tmp_path, text):
    path = tmp_path / "game.nfg"
    path.write_text(text)
    return path


def one_shot(*payoffs):
    tables = np.asarray(payoffs)[:, None, None]
    shape = tables.shape[3:]
    return JointGame(
        transition=np.ones((1, 1, *shape, 1)),
        rewards=tables,
        costs=np.zeros((0, 1, 1, *shape)),
        thresholds=[],
        initial=[1.0],
        horizon=1,
    )


def test_payoffs_are_read_the_first_player_changing_fastest(tmp_path):
    game = read_nfg(written(tmp_path, PAYOFFS))
    assert game.agent_names == ("Ada", "Bo")
    assert game.action_names == (("up", "down"), ("left", "middle", "right"))
    assert game.rewards[0, 0, 0] == pytest.approx(np.array([[1, 5, 1 / 3], [3, 7, 20]]))
    assert game.rewards[1, 0, 0].tolist() == [[2, 6, -1.5], [4, 8, 0]]
    exact = read_nfg(written(tmp_path, PAYOFFS), exact=True)
    assert exact.rationals is not None
    assert exact.rationals["rewards"][0, 0, 0, 0, 2] == Fraction(1, 3)


def test_texts_may_go_over_several_lines_and_lines_are_still_counted(tmp_path):
    told = PAYOFFS.replace('"a comment"', '"a comment\n\nof \\"three\\" lines"')
    assert read_nfg(written(tmp_path, told)).rewards.tolist() == read_nfg(written(tmp_path, PAYOFFS)).rewards.tolist()
    with pytest.raises(FileError, match="line 7: 'eight' stands where a number is required"):
        read_nfg(written(tmp_path, told.replace("7 8", "7 eight")))


def test_outcomes_are_read_with_zero_for_none(tmp_path):
    game = read_nfg(written(tmp_path, OUTCOMES))
    assert game.num_actions == (2, 1, 2)
    assert game.rewards[:, 0, 0, 0, 0, 0].tolist() == [1, 2, 3]
    assert game.rewards[:, 0, 0, 1, 0, 0].tolist() == [4, 5, 6]
    assert game.rewards[:, 0, 0, 0, 0, 1].tolist() == [0, 0, 0]
    assert game.rewards[:, 0, 0, 1, 0, 1].tolist() == [1, 2, 3]


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 3, 4), (1, 5)])
def test_out_and_in_again_is_the_same_game(tmp_path, sizes):
    rng = np.random.default_rng(len(sizes))
    game = one_shot(*rng.normal(size=(len(sizes), *sizes)))
    again = read_nfg(written(tmp_path, nfg_text(game)))
    assert again.rewards.tolist() == game.rewards.tolist()
    exact = one_shot(*(np.vectorize(Fraction)(rng.integers(-9, 9, size=sizes), 7) for _ in sizes))
    again = read_nfg(written(tmp_path, nfg_text(exact)), exact=True)
    assert (again.rationals["rewards"] == exact.rationals["rewards"]).all()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("NFG", "EFG", "line 1: 'EFG' stands where NFG is required"),
        ('{ "Ada" "Bo" }', "{ }", "line 1: the list is empty"),
        ('"Bo"', "Bo", "line 1: 'Bo' stands where a text in quotes is required"),
        ("7 8", "7 eight", "line 5: 'eight' stands where a number is required"),
        ("7 8", "7 1/0", "line 5: '1/0' stands where a number is required"),
        ("2e1 0", "2e1", "ends where a number is required"),
        ("2e1 0", "2e1 0 9", "line 6: '9' follows after the last number"),
        ('{ "up" "down" }', "0", "line 2: '0' stands where a number below"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, old, new, problem):
    assert old in PAYOFFS
    with pytest.raises(FileError, match=problem):
        read_nfg(written(tmp_path, PAYOFFS.replace(old, new, 1)))
    with pytest.raises(FileError, match=r"line 4: '3' stands where a number below 3 is required"):
        read_nfg(written(tmp_path, OUTCOMES.replace("1 2\n0 1", "1 2\n3 1")))


def test_games_that_have_no_strategic_form_are_refused():
    with pytest.raises(GameError, match="has 4 states and horizon 2; a strategic form has one of each"):
        nfg_text(spectrum())
    with pytest.raises(GameError, match="a strategic form cannot hold them"):
        nfg_text(counter_example())
    with pytest.raises(UnsupportedError, match="a LocalGame has no strategic form"):
        nfg_text(grid_world_local())


def test_gambit_reads_what_is_written_and_its_equilibria_are_certified(tmp_path):
    gambit = pytest.importorskip("pygambit", reason="NOT TESTED AGAINST GAMBIT: pygambit is not installed")
    rng = np.random.default_rng(5)
    for sizes in ((2, 2), (3, 3), (2, 4)):
        game = one_shot(*rng.integers(-9, 9, size=(2, *sizes)).astype(float))
        path = written(tmp_path, nfg_text(game))
        theirs = gambit.read_nfg(str(path))
        assert [table.astype(float).tolist() for table in theirs.to_arrays()] == game.rewards[:, 0, 0].tolist()
        for profile in gambit.nash.enummixed_solve(theirs).equilibria:
            rows = [[float(profile[strategy]) for strategy in player.strategies] for player in theirs.players]
            policy = JointPolicy(tuple(np.array(row)[None, None] for row in rows))
            assert certify(game, policy, np.zeros((2, 0))).epsilon <= 1e-9
        again = written(tmp_path, theirs.to_nfg())
        assert read_nfg(again).rewards.tolist() == game.rewards.tolist()
