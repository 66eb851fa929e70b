"""`cmpg convert`: every way in, every way out."""

import json

import numpy as np
import pytest

from cmpg.files.games import load_game
from cmpg.policy import JointPolicy
from cmpg.scenarios import spectrum
from command_line import cmpg


def values(path):
    game = load_game(path)
    return game.at(game.uniform_policy()).values


@pytest.mark.parametrize("kind", [".json", ".npz", ".csv"])
def test_a_scenario_goes_out_and_comes_in_again(tmp_path, kind):
    middle, end = tmp_path / f"middle{kind}", tmp_path / "end.npz"
    told = cmpg("convert", "spectrum", middle, "--agents", 2)
    assert told.code == 0
    assert told.out == f"written to {middle}\n"
    assert cmpg("convert", middle, end).code == 0
    game = spectrum(num_agents=2)
    assert values(end) == pytest.approx(game.at(game.uniform_policy()).values)
    assert load_game(end).agent_names == ("user 0", "user 1")


def test_strategic_forms(tmp_path):
    path = tmp_path / "game.nfg"
    refused = cmpg("convert", "counter-example", path)
    assert refused.code == 2
    assert "--without-constraints" in refused.err
    assert not path.exists()
    assert cmpg("convert", "counter-example", path, "--without-constraints").code == 0
    assert cmpg("solve", path).out.startswith("CERTIFIED")
    path.write_text(path.read_text().replace("3 3", "1/3 3"))
    assert cmpg("convert", path, tmp_path / "game.json", "--exact").code == 0
    assert json.loads((tmp_path / "game.json").read_text())["rewards"][0] == [[[["1/3", 2], [2, 4]]]]


def test_problems_of_teams_have_the_options_of_teams(tmp_path):
    problem = tmp_path / "problem.dpomdp"
    problem.write_text(
        "agents: 1\ndiscount: 1\nvalues: reward\nstates: 2\nstart: 0\nactions:\n2\nobservations:\n1\n"
        "T: * :\nidentity\nR: 1 : * : * : * : 3\n"
    )
    assert cmpg("convert", problem, tmp_path / "game.json", "--horizon", 5).code == 0
    game = load_game(tmp_path / "game.json")
    assert game.horizon == 5
    assert game.at(game.uniform_policy()).values == pytest.approx([7.5])
    assert cmpg("solve", problem, "--horizon", 2, "--json").code == 0
    assert "Options of team" in cmpg("solve", problem, "--help").out


def test_the_problem_of_an_agent_goes_out_with_its_question(tmp_path):
    assert cmpg("solve", "spectrum", "--out", tmp_path / "run").code == 0
    words = ("--agent", 1, "--policy", tmp_path / "run" / "policy.npz")
    assert cmpg("convert", "spectrum", tmp_path / "a.prism", *words).code == 0
    assert "module agent" in (tmp_path / "a.prism").read_text()
    assert (tmp_path / "a.props").read_text().startswith("multi(")
    assert cmpg("convert", "spectrum", tmp_path / "b.prism").code == 0
    assert (tmp_path / "a.prism").read_text() != (tmp_path / "b.prism").read_text()


def test_a_counting_game_is_written_with_joint_tables(tmp_path):
    assert cmpg("convert", "congestion-counting", tmp_path / "game.csv", "--agents", 2).code == 0
    assert np.isfinite(load_game_values(tmp_path)).all()


def load_game_values(tmp_path):
    assert cmpg("convert", tmp_path / "game.csv", tmp_path / "game.npz").code == 0
    return values(tmp_path / "game.npz")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["spectrum", "game.txt"], "its ending is '.txt'; .json, .npz, .nfg, .csv or .prism is required"),
        (["spectrum", "there.json"], "is there already, and nothing is written over"),
        (["spectrum", "no/where.csv"], "no/where.csv: cannot be written"),
        (["spectrum", "game.prism", "--agent", "9"], "--agent is 9; the agents are counted from 0 to 2"),
        (["charging", "game.csv"], "a LocalGame has no table of joint actions"),
        (["spectrum", "game.nfg"], "has 4 states and horizon 2"),
        (["missing.nfg", "game.json"], "missing.nfg"),
        (["broken.csv", "game.json"], "broken.csv has the columns"),
        (["game.foo", "game.json"], "a game file ends in one of .json, .npz, .nfg, .csv, .dpomdp"),
    ],
)
def test_bad_words_are_answered_in_one_paragraph(tmp_path, monkeypatch, words, answer):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.json").write_text("mine")
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n")
    ran = cmpg("convert", *words)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert answer in ran.err
    assert (tmp_path / "there.json").read_text() == "mine"


def test_a_policy_goes_from_one_version_of_its_file_to_the_other_and_back(tmp_path):
    policy = JointPolicy(([[[0.0, 1.0], [0.5, 0.5]]],))
    policy.save(tmp_path / "one.json", multipliers=[[2.0]])
    assert cmpg("convert", tmp_path / "one.json", tmp_path / "two.npz", "--policy-version", 2).code == 0
    told = cmpg("convert", tmp_path / "two.npz", tmp_path / "again.json", "--policy-version", 1)
    assert told.out == f"written to {tmp_path / 'again.json'}\n"
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    refused = cmpg("convert", tmp_path / "one.json", tmp_path / "policy.csv")
    assert refused.code == 2
    assert "cmpg export" in refused.err
