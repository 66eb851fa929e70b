"""How `cmpg learn` ends: interrupted, without a start, or with options that an environment does not have."""

import json
from unittest.mock import patch

import numpy as np
import pytest

import cmpg as library
from command_line import cmpg

ENVIRONMENT = """
import numpy as np
from cmpg import learning
from cmpg.interop import to_parallel_env
from cmpg.scenarios import spectrum

GAME = spectrum(num_agents=1)
NOTHING = 3

def made():
    return to_parallel_env(GAME), learning.GameSimulator(GAME, rng=np.random.default_rng(0)).known
"""

LEARN = ["learn", "spectrum", "--agents", "1", "--mode", "shared", "--epsilon", "0.9"]


@pytest.fixture
def environment(tmp_path, monkeypatch):
    (tmp_path / "envs_with_endings.py").write_text(ENVIRONMENT, "utf-8")
    monkeypatch.chdir(tmp_path)
    return "envs_with_endings:made"


@pytest.mark.parametrize("words", [["--payoff-noise", "0.1"], ["--reveal-support"]])
def test_an_environment_says_itself_what_is_known(words, environment):
    ran = cmpg("learn", "--env", environment, *words)
    assert (ran.code, "an environment says itself what is known" in ran.err) == (2, True)


def test_what_makes_an_environment_is_a_function(environment):
    ran = cmpg("learn", "--env", "envs_with_endings:NOTHING")
    assert (ran.code, "is a int; a function that makes an environment is required" in ran.err) == (2, True)


def test_an_environment_is_learned_from_a_start_that_the_user_vouches_for(environment, tmp_path):
    game = library.scenarios.spectrum(num_agents=1)
    idle = library.JointPolicy(tuple(np.eye(3)[np.zeros(shape[:2], dtype=int)] for shape in game.policy_shapes))
    idle.save(tmp_path / "idle.npz")
    words = ["learn", "--env", environment, "--mode", "safe", "--epsilon", "0.9", "--growth", "1"]
    ran = cmpg(*words, "--start", tmp_path / "idle.npz", "--json")
    assert (ran.code, json.loads(ran.out)["seeds"][0]["status"]) == (0, "CERTIFIED")
    library.JointPolicy.uniform([(1, 1, 2)]).save(tmp_path / "other.npz")
    refused = cmpg(*words, "--start", tmp_path / "other.npz")
    assert (refused.code, "shape" in refused.err) == (2, True)


def test_safe_exploration_of_a_game_without_a_feasible_policy_is_refused():
    ran = cmpg("learn", "grid-world-local", "--mode", "safe", "--threshold", "-1")
    assert ran.code == 2
    assert "no feasible start is known" in ran.err
    assert "Pass --start, or raise the thresholds" in ran.err


def test_an_interruption_before_the_first_seed_leaves_nothing():
    with patch("cmpg.learning.trials.trials", side_effect=KeyboardInterrupt):
        ran = cmpg(*LEARN)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.splitlines()[-1] == "interrupted; nothing was kept"


def test_a_seed_that_is_interrupted_ends_the_run_and_is_learned_again(tmp_path):
    words = [*LEARN, "--seeds", "2", "--out", tmp_path / "run"]
    with patch("cmpg.cli.output.ProgressLine.show", side_effect=[KeyboardInterrupt, None, None]):
        ran = cmpg(*words)
    assert ran.code == 1
    assert "INTERRUPTED" in ran.out
    assert f"interrupted: 0 of 2 seeds are in {tmp_path / 'run'}; --resume goes on\n" in ran.err
    again = cmpg(*words, "--resume")
    assert (again.code, again.out.count("CERTIFIED")) == (0, 2)


def test_a_margin_that_some_policy_may_keep_is_taken():
    ran = cmpg("learn", "spectrum", "--agents", "1", "--mode", "safe", "--margin", "0.05", "--budget", "50", "--json")
    assert (ran.code, json.loads(ran.out)["seeds"][0]["status"]) == (1, "LIMIT")
