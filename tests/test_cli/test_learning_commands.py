"""The commands `learn` and `bounds`."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from cmpg.cli.main import app, main
from cmpg.files.games import load_game, save_game
from cmpg.games.constraints import bind
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, counting_congestion_game, spectrum


def run(*words, code=0):
    answer = CliRunner().invoke(app, [str(word) for word in words])
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    assert answer.exit_code == code, answer.output
    return answer


def refused(monkeypatch, capsys, *words):
    """Run the real entry point, and return its one paragraph."""
    monkeypatch.setattr(sys, "argv", ["cmpg", *(str(word) for word in words)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return shown.err


@pytest.mark.parametrize("mode", ["generative", "safe", "shared"])
def test_every_mode_learns_and_is_judged(mode):
    small = ("--agents", 1, "--growth", 0.5) if mode == "safe" else ()
    answer = run("learn", "spectrum", "--mode", mode, "--epsilon", 0.5, "--seeds", 2, *small)
    assert answer.stdout.count("CERTIFIED") == 2
    assert "certified: 2 of 2 (epsilon 0.5, delta 0.1)" in answer.stdout
    assert "wrong claims: 0 of 2" in answer.stdout
    assert "samples" in answer.stderr
    if mode == "safe":
        assert "0 break a constraint" in answer.stdout


def test_bounds_of_the_theory_refuse_a_mask_of_constraints(monkeypatch, capsys, tmp_path):
    """By counts a game becomes a joint one on the way, which has to bind the same agents."""
    masked = bind(counting_congestion_game(num_agents=2), [[1], [0]])
    assert np.array_equal(masked.to_joint().binds, masked.binds)
    save_game(masked, tmp_path / "masked.npz")
    assert "bind some agents only" in refused(monkeypatch, capsys, "bounds", tmp_path / "masked.npz", "--epsilon", 2)


def test_jobs_change_no_bit():
    words = ("learn", "spectrum", "--mode", "shared", "--epsilon", 0.9, "--seeds", 3, "--json")
    alone, together = (json.loads(run(*words, "--jobs", jobs).stdout) for jobs in (1, 2))
    for record in (*alone["seeds"], *together["seeds"]):
        del record["seconds"]
    assert alone == together
    assert alone["certified"] == 3
    assert alone["seeds"][0]["true_gap"] <= 0.9
    assert alone["seeds"][0]["samples"] == {"model": 6912}
    assert alone["agent_names"] == ["user 0", "user 1", "user 2"]


def test_a_run_without_a_certificate_says_why_and_ends_with_1():
    answer = run("learn", "spectrum", "--mode", "shared", "--epsilon", 0.01, "--budget", 20_000, code=1)
    assert "LIMIT" in answer.stdout
    assert "guarantee void because" in answer.stdout
    assert "budget of 2e+04" in " ".join(answer.stdout.split())


def test_an_accuracy_that_nobody_can_afford_ends_with_what_is_proved():
    answer = run("learn", "counter-example", "--payoff-noise", 0.5, "--epsilon", 1e-9, code=1)
    assert "with 1073741824 samples of every entry" in " ".join(answer.stdout.split())


def test_a_game_that_no_policy_meets_ends_with_1():
    """Learning proves it from samples, where the game is not told."""
    answer = run("learn", "spectrum", "--mode", "shared", "--threshold=-0.5", code=1)
    assert "INFEASIBLE" in answer.stdout


def test_a_folder_keeps_every_seed(tmp_path):
    folder = tmp_path / "learned"
    run("learn", "spectrum", "--mode", "shared", "--epsilon", 0.9, "--seeds", 2, "--out", folder)
    lines = [json.loads(line) for line in (folder / "seeds.jsonl").read_text("utf-8").splitlines()]
    assert [line["seed"] for line in lines] == [0, 1]
    game, policy = load_game(folder / "game.npz"), JointPolicy.load(folder / "policy_1.npz")
    assert game.at(policy).costs == pytest.approx(lines[1]["true_costs"])


def test_curves_are_kept_whole_after_a_run_was_resumed_and_the_page_draws_them(tmp_path):
    folder, whole = tmp_path / "learned", tmp_path / "whole"
    words = ("learn", "spectrum", "--mode", "shared", "--epsilon", 0.9)
    run(*words, "--seeds", 3, "--out", whole)
    run(*words, "--seeds", 2, "--out", folder)
    run(*words, "--seeds", 3, "--out", folder, "--resume")
    told, again = ((each / "curves.csv").read_text("utf-8").splitlines() for each in (whole, folder))
    assert told[0] == "seed,samples,gap,feasible"
    assert {line.split(",")[0] for line in told[1:]} == {"0", "1", "2"}
    assert told == again
    page = tmp_path / "page.html"
    run("report", folder, "--out", page)
    assert "spectrum, learned" in page.read_text("utf-8")
    assert "Bounds against samples" in page.read_text("utf-8")


def test_a_time_limit_ends_a_run_with_what_is_proved():
    answer = run("learn", "spectrum", "--mode", "shared", "--epsilon", 1e-4, "--time-limit", 0.01, code=1)
    assert "the time limit of 0.01 seconds has passed" in " ".join(answer.stdout.split())


def test_a_discounted_game_is_cut_off_where_epsilon_allows(tmp_path):
    save_game(replace(spectrum(num_agents=2), horizon=None, discount=0.5), tmp_path / "endless.npz")
    answer = run("learn", tmp_path / "endless.npz", "--epsilon", 0.9, "--out", tmp_path / "learned", "--json")
    record = json.loads(answer.stdout)["seeds"][0]
    assert record["certified"]
    assert record["right"]
    assert record["settings"]["cut_off_after"] > 3
    run("report", tmp_path / "learned", "--out", tmp_path / "page.html")


ENVIRONMENTS = """
import numpy as np
from cmpg import learning
from cmpg.scenarios import spectrum

game = spectrum(num_agents=2)

class Steps:
    def reset(self, rng):
        self.rng, self.now = rng, game.stepper()
        self.h, self.state = 0, self.now.begin(1, rng)
        return int(self.state[0, 0])

    def place(self, h, s):
        self.h, self.state = h, np.array([[s]])

    def step(self, actions):
        stepped = self.now.step(self.h, self.state, np.array(actions)[:, None], self.rng)
        self.h, self.state = self.h + 1, stepped.states
        return int(self.state[0, 0]), list(stepped.rewards[:, 0]), list(stepped.costs[:, 0])

def known():
    return learning.GameSimulator(game, rng=np.random.default_rng(0)).known

def steps():
    return Steps(), known()

def parallel():
    from cmpg.interop import to_parallel_env
    return to_parallel_env(game), known()

def wrong():
    return 3
"""


def test_an_environment_of_the_users_own_is_learned_and_nobody_judges(monkeypatch, capsys, tmp_path):
    (tmp_path / "envs_of_a_test.py").write_text(ENVIRONMENTS, "utf-8")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "learned"
    answer = run("learn", "--env", "envs_of_a_test:steps", "--mode", "shared", "--epsilon", 0.9, "--out", folder)
    assert "certified: 1 of 1" in answer.stdout
    assert "the true game is unknown" in answer.stdout
    assert JointPolicy.load(folder / "policy_0.npz").shapes == spectrum(num_agents=2).policy_shapes
    assert "nothing can be judged" in refused(monkeypatch, capsys, "report", folder)
    words = ("learn", "--mode", "safe", "--epsilon", 0.1, "--budget", 400)
    assert "LIMIT" in run(*words, "--env", "envs_of_a_test:parallel", code=1).stdout
    assert "(environment, known) is required" in refused(monkeypatch, capsys, "learn", "--env", "envs_of_a_test:wrong")
    assert "cannot be found" in refused(monkeypatch, capsys, "learn", "--env", "envs_of_a_test:nothing")
    assert "name a game, or an environment" in refused(monkeypatch, capsys, "learn")


def test_a_file_and_a_start_that_the_user_vouches_for(tmp_path):
    game = spectrum(horizon=1)
    save_game(game, tmp_path / "game.npz")
    idle = JointPolicy(tuple(np.eye(3)[np.zeros((1, 4), dtype=int)] for _ in range(3)))
    idle.save(tmp_path / "start.npz")
    answer = run("learn", tmp_path / "game.npz", "--start", tmp_path / "start.npz", "--epsilon", 0.5)
    assert "certified: 1 of 1" in answer.stdout


def test_a_start_is_computed_with_the_true_model_only_where_that_is_said(tmp_path):
    """The grid world's cost depends on where one is, so nothing is safe whatever the transition."""
    words = ("learn", "grid-world", "--horizon", 2, "--budget", 10)
    assert "computed with the true model" in run(*words, "--mode", "safe", code=1).stderr
    answer = run(*words, "--json", code=1)
    assert "computed with the true model" not in answer.stderr
    assert "no start is proved" in json.loads(answer.stdout)["seeds"][0]["message"]
    assert "computed with the true model" not in run("learn", "spectrum", "--budget", 10, code=1).stderr


def test_unknown_payoffs():
    answer = run("learn", "counter-example", "--payoff-noise", 0.1, "--epsilon", 0.9, "--json")
    assert json.loads(answer.stdout)["seeds"][0]["samples"]["responses"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--epsilon", 0), "epsilon is 0"),
        (("--delta", 1), "delta is 1"),
        (("--budget", 0), "budget is 0"),
        (("--seeds", 0), "--seeds is 0"),
        (("--jobs", 0), "jobs is 0"),
        (("--mode", "greedy"), "--mode is 'greedy'"),
        (("--seed", -1), "invalid value for '--seed': "),
        (("--margin", 0.1), "--margin is for --mode safe"),
        (("--growth", 0.1), "--growth is for --mode safe"),
        (("--mode", "shared", "--growth", 0.1), "--growth is for --mode safe"),
        (("--mode", "safe", "--margin", -1), "--margin is -1"),
        (
            ("--mode", "safe", "--margin", 9),
            "threshold 0.15, and costs are at least 0, so no policy keeps",
        ),
        (("--mode", "safe", "--growth", 0), "--growth is 0"),
        (("--mode", "safe", "--epsilon", -1), "epsilon is -1"),
        (("--payoff-noise", -1), "payoff_noise is -1"),
        (("--start", "nowhere.npz"), "there is no such file"),
        (("--mode", "shared", "--start", "x.npz"), "--start is not used"),
        (("--colour", "red"), "there is no option --colour"),
    ],
)
def test_bad_input_ends_with_2_and_one_paragraph(monkeypatch, capsys, words, told):
    assert told in " ".join(refused(monkeypatch, capsys, "learn", "spectrum", *words).split())


def test_a_start_that_breaks_a_constraint_is_refused(monkeypatch, capsys, tmp_path):
    game = counter_example()
    game.uniform_policy().replace(0, [[[0, 1]]]).replace(1, [[[0, 1]]]).save(tmp_path / "dear.npz")
    told = refused(monkeypatch, capsys, "learn", "counter-example", "--start", tmp_path / "dear.npz")
    assert "the start is infeasible: constraint 0" in told


@pytest.mark.parametrize(
    "words",
    [
        ("grid-world-local", "--epsilon", 2),
        ("robots", "--agents", 2, "--horizon", 20, "--epsilon", 8, "--reveal-support"),
        ("grid-world-local", "--epsilon", 4, "--mode", "safe", "--growth", 0.5),
        ("congestion-counting", "--agents", 9, "--epsilon", 5),
        ("congestion-counting", "--agents", 9, "--epsilon", 5, "--mode", "shared"),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_local_and_counting_games_are_learned_as_they_are(words):
    answer = run("learn", *words)
    assert "certified: 1 of 1" in answer.stdout
    assert "wrong claims: 0 of 1" in answer.stdout


def test_what_local_games_do_not_have_is_refused(monkeypatch, capsys):
    told = refused(monkeypatch, capsys, "learn", "grid-world-local", "--payoff-noise", 0.5)
    assert "a LocalGame is learned with rewards and costs that are known" in told
    assert "which finds its own" in refused(monkeypatch, capsys, "learn", "grid-world-local", "--start", "x.npz")
    told = refused(monkeypatch, capsys, "learn", "grid-world-local", "--mode", "safe", "--margin", 0.01)
    assert "--margin is for responses" in told
    assert "a LocalGame has no joint transition to learn" in refused(monkeypatch, capsys, "bounds", "grid-world-local")


def test_a_folder_that_is_not_empty_is_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "something").write_text("x")
    assert "is not empty" in refused(monkeypatch, capsys, "learn", "spectrum", "--out", tmp_path)


class TestBounds:
    def test_everything_is_printed_with_what_is_runnable(self):
        text = " ".join(run("bounds", "counter-example").stdout.split())
        assert "Slater constant of Definition 1: 0.5 (exact)" in text
        assert "slack of each agent's CMDP at a feasible start: 0.5, 0.5" in text
        for part in ("as printed", "corrected", "adaptive", "not runnable", "runnable: no Slater constant is needed"):
            assert part in text
        assert "up to 0 samples" not in text
        # One reward for both agents is the potential: it varies by 2, not by 4.
        assert "2 without constraints Song, Mei and Bai (2022), Theorem 7: S·ΣA/ε³ =" in text
        assert "ΔΦ = 2" in text

    def test_a_slater_constant_that_is_not_positive_voids_the_theorems(self):
        text = " ".join(run("bounds", "spectrum", "--epsilon", 0.3).stdout.split())
        assert "a lower bound of the Slater constant is -0.7247; nothing follows" in text
        assumed = " ".join(run("bounds", "spectrum", "--epsilon", 0.3, "--slack", 0.15).stdout.split())
        assert "assume a slack of 0.15 instead" in assumed
        assert "nothing follows" not in assumed
        smaller = run("bounds", "spectrum", "--epsilon", 0.3, "--slack", 0.15, "--margin", 0.1)
        assert "c = 0.1" in smaller.stdout

    def test_as_json(self):
        record = json.loads(run("bounds", "spectrum", "--json").stdout)
        assert record["slater"]["value"] < 0
        assert record["slacks_at_start"] == pytest.approx([0.15] * 3)
        assert len(record["rows"]) == 10
        assert {row["samples"] for row in record["rows"] if "nothing follows" in row["reason"]} == {None}

    @pytest.mark.parametrize(
        ("option", "value", "told"),
        [("delta", 2, "delta is 2"), ("epsilon", -1, "epsilon is -1"), ("slack", -1, "--slack is -1")],
    )
    def test_bad_input(self, monkeypatch, capsys, option, value, told):
        assert told in refused(monkeypatch, capsys, "bounds", "spectrum", f"--{option}", value)


def test_nothing_heavy_is_loaded_before_a_command_runs():
    code = "import sys; from cmpg.cli.main import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "cmpg.cli.learning" in loaded, "the help shows the first line of every command"
    assert not {"numpy", "scipy", "rich.console", "highspy", "joblib"}.intersection(loaded)
