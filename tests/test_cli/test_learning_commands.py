"""The commands `learn` and `bounds`."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from cmpg.cli.main import app, main
from cmpg.files.games import load_game, save_game
from cmpg.policy import JointPolicy
from cmpg.scenarios import counter_example, spectrum


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


def test_a_file_and_a_start_that_the_user_vouches_for(tmp_path):
    game = spectrum(horizon=1)
    save_game(game, tmp_path / "game.npz")
    idle = JointPolicy(tuple(np.eye(3)[np.zeros((1, 4), dtype=int)] for _ in range(3)))
    idle.save(tmp_path / "start.npz")
    answer = run("learn", tmp_path / "game.npz", "--start", tmp_path / "start.npz", "--epsilon", 0.5)
    assert "certified: 1 of 1" in answer.stdout


def test_a_start_is_computed_with_the_true_model_only_where_that_is_said(tmp_path):
    """The grid world's cost depends on where one is, so nothing is safe whatever the transition."""
    answer = run("learn", "grid-world", "--mode", "generative", "--budget", 10, code=1)
    assert "computed with the true model" in answer.stderr
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
        ("robots", "--agents", 2, "--horizon", 12, "--epsilon", 5, "--reveal-support"),
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
        assert len(record["rows"]) == 8
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
