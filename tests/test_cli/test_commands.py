"""The command as its users meet it: what it says, where it says it, what it leaves behind, and its exit codes."""

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import cmpg as library
from bad_files import a_stranger, write_json
from cmpg.cli.main import HOMES, app
from cmpg.cli.targets import MEANINGS, listed_options, spoken
from cmpg.cmdp.kernels.choice import kernels_used
from cmpg.errors import FileError
from cmpg.files.policies import load_policy
from cmpg.policy import JointPolicy
from cmpg.scenarios import SCENARIOS
from command_line import PATIENCE, PROGRAM, cmpg, on_a_terminal, program

COMMANDS = ("scenarios", "solve", "check", "certify", "report", "learn", "bounds", "compare", "convert", "reproduce")

RADIOS = {
    "format": "cmpg-game",
    "version": 1,
    "form": "joint",
    "horizon": 1,
    "initial": [1],
    "transition": [[[[[1], [1]], [[1], [1]]]]],
    "rewards": [[[[[0, 0], [1, 0]]]], [[[[0, 1], [0, 0]]]]],
    "costs": [[[[[0, 0], [0, 1]]]]],
    "thresholds": ["1/4"],
    "agents": ["Ada", "Bo"],
    "actions": [["silent", "send"], ["silent", "send"]],
    "constraints": ["clashes"],
}

PENNIES = {
    "format": "cmpg-game",
    "version": 1,
    "form": "joint",
    "horizon": 1,
    "initial": [1],
    "transition": [[[[[1], [1]], [[1], [1]]]]],
    "rewards": [[[[[1, -1], [-1, 1]]]], [[[[-1, 1], [1, -1]]]]],
}


@pytest.fixture
def radios(tmp_path):
    return write_json(tmp_path / "radios.json", RADIOS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder of the counter-example."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert cmpg("solve", "counter-example", "--out", folder).code == 0
    return folder


def policy_file(path, *tables, **fields):
    agents = {f"agent_{i}": table for i, table in enumerate(tables)}
    return write_json(path, {"format": "cmpg-policy", "version": 1, **agents, **fields})


def is_one_paragraph(text):
    return text.startswith("error: ") and text.count("\n") == 1 and "Traceback" not in text


# What there is


def test_every_command_has_a_short_help():
    listed = CliRunner().invoke(app, ["--help"])
    assert listed.exit_code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z]", listed.output, re.MULTILINE)
        told = CliRunner().invoke(app, [name, "--help"])
        assert told.exit_code == 0
        assert told.output.startswith("Usage: ")
        assert max(len(line) for line in told.output.splitlines()) <= 80
        assert CliRunner().invoke(app, [name, "-h"]).output == told.output
    assert all(len(line) <= 80 for line in listed.output.splitlines())
    assert not [line for line in listed.output.splitlines() if line.startswith("  ") and line.endswith("...")]


@pytest.mark.parametrize("name", HOMES)
def test_the_help_of_every_command_fits_a_screen(name):
    told = cmpg(name, "--help").out
    assert len(told.splitlines()) <= 30


@pytest.mark.parametrize("name", ["solve", "judge", "learn", "sweep", "certify"])
def test_options_that_few_need_are_counted_and_listed_on_request(name):
    told, everything = cmpg(name, "--help").out, cmpg(name, "--help-all").out
    options = re.compile(r"^ +(?:-\w, )?(--[\w-]+)", re.MULTILINE)
    short, full = options.findall(told), options.findall(everything)
    hidden = [option for option in full if option not in short]
    assert set(short) < set(full)
    assert f"{len(hidden)} more: `cmpg {name} --help-all` lists them." in told
    assert "more:" not in everything
    command = typer.main.get_command(app).get_command(None, name)
    assert {*full} == {"--help"} | {
        option for param in command.params for option in param.opts if option.startswith("--")
    }


def test_the_options_of_solve_stand_under_what_a_user_decides():
    headed = cmpg("solve", "counter-example", "--help-all").out.split("\n\n")
    options = {part.partition(":")[0].strip(): re.findall(r"^ +(?:-\w, )?(--[\w-]+)", part, re.M) for part in headed}
    assert options["What to find"] == ["--concept", "--epsilon", "--exact", "--allow-rounding"]
    assert options["Constraints"] == ["--chance", "--cvar", "--chances-only"]
    assert {"--restarts", "--solver", "--start"} <= set(options["How to find it"])
    assert {"--time-limit", "--seed", "--jobs"} <= set(options["Time, seed and processes"])
    assert options["Output"] == ["--selfish", "--out", "--tensorboard", "--json", "--help"]


def test_nothing_to_do_is_answered_with_what_can_be_done_next():
    ran = cmpg()
    assert ran.code == 2
    assert len(ran.err.splitlines()) <= 24
    named = re.findall(r"^  cmpg (\w+)", ran.err, re.MULTILINE)
    assert named[0] == "demo"
    assert set(named) <= set(HOMES)
    assert "cmpg --help" in ran.err


def test_the_demo_solves_a_day_and_writes_its_page_each_time_in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cmpg-demo").mkdir()
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    ran = cmpg("demo")
    assert (ran.code, opened) == (0, [])  # there is no terminal
    assert "CERTIFIED" in ran.out
    page = tmp_path / "cmpg-demo-2" / "report.html"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert list((tmp_path / "cmpg-demo").iterdir()) == []
    # The commands that it names do the same.
    assert re.findall(r"^\$ (.*)$", ran.out, re.MULTILINE) == [
        "cmpg solve charging --out cmpg-demo-2",
        "cmpg report cmpg-demo-2",
    ]
    assert cmpg("demo", "--out", "mine", "--open").code == 0
    assert opened == [(tmp_path / "mine" / "report.html").as_uri()]


def test_the_version():
    told = f"{library.__version__} ({kernels_used()} kernels)\n"
    assert cmpg("--version") == type(cmpg("--version"))(0, told, "")
    assert program("--version").out == told


def test_every_scenario_is_listed():
    listed = cmpg("scenarios")
    assert listed.code == 0
    for each in SCENARIOS.values():
        assert re.search(rf"^{each.name} +{re.escape(each.summary)}", listed.out, re.MULTILINE)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_option_of_a_scenario_is_explained(name):
    told = cmpg("scenarios", name)
    assert told.code == 0
    for option in listed_options(SCENARIOS[name]):
        assert MEANINGS[option]
        assert f"{spoken(option)} " in told.out


# solve


def test_solve_says_the_verdict_first_and_uses_names(radios):
    ran = cmpg("solve", radios)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("CERTIFIED: feasible, and no agent gains more than ")
    assert lines[0].endswith("by deviating (joint-state policies, exact arithmetic).")  # the file has fractions
    assert any(line.startswith("Ada ") for line in lines)
    assert any(line.startswith("clashes ") for line in lines)
    assert "\x1b" not in ran.out + ran.err


def test_progress_is_plain_lines_on_standard_error():
    ran = cmpg("solve", "grid-world", "--start", "min-cost")
    assert re.fullmatch(
        r"iteration +1  potential \+0  cost 0/0.1  agent 0 gains 0.1  \d+\.\d s\n", ran.err.splitlines(True)[0]
    )
    assert "iteration" not in ran.out.replace("iterations", "")


def test_json_is_one_object_and_nothing_else():
    ran = cmpg("solve", "counter-example", "--restarts", "3", "--json")
    assert ran.out.count("\n") == 1
    record = json.loads(ran.out)
    assert record["status"] == "CERTIFIED"
    assert record["settings"]["restarts"] == 3
    assert len(record["equilibria"]) >= 1
    narrow = program("solve", "counter-example", "--restarts", "3", "--json", COLUMNS="20")
    assert json.loads(narrow.out)["values"] == record["values"]


def test_json_names_agents_and_constraints(tmp_path, radios):
    assert cmpg("solve", radios, "--out", tmp_path / "run").code == 0
    claim = tmp_path / "run" / "policy.npz"
    for words in (("solve", radios), ("check", radios), ("certify", radios, claim), ("bounds", radios)):
        record = json.loads(cmpg(*words, "--json").out)
        assert record["agent_names"] == ["Ada", "Bo"]
        assert record["constraint_names"] == ["clashes"]
    assert json.loads((tmp_path / "run" / "result.json").read_text())["agent_names"] == ["Ada", "Bo"]
    nameless = write_json(tmp_path / "pennies.json", PENNIES | {"costs": [[[[[0, 1], [1, 0]]]]], "thresholds": [1]})
    record = json.loads(cmpg("check", nameless, "--json").out)
    assert record["agent_names"] == ["agent 0", "agent 1"]
    assert record["constraint_names"] == ["constraint 0"]


def test_the_same_seed_gives_the_same_answer(tmp_path):
    for name in ("a", "b"):
        cmpg("solve", "counter-example", "--restarts", 5, "--seed", 3, "--out", tmp_path / name)
    for name in ("policy.npz", "game.npz", "certificate.json", "result.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_restarts_without_a_seed_are_repeatable_and_say_with_which():
    one, other = (json.loads(cmpg("solve", "counter-example", "--restarts", 4, "--json").out) for _ in range(2))
    assert one == other
    assert one["seed"] == 0


@pytest.mark.parametrize(
    ("words", "criterion"),
    [
        (("congestion-counting", "--agents", 30, "--restarts", 5, "--seed", 1), "total value"),
        (("counter-example", "--restarts", 10, "--seed", 1), "potential"),
        (("counter-example", "--restarts", 10, "--seed", 1, "--prefer", "welfare"), "total value"),
    ],
)
def test_equilibria_are_listed_by_what_is_shown_first(words, criterion):
    told = cmpg("solve", *words).out
    table = told[told.index("distinct equilibria, best first:") :].splitlines()[1:]
    assert table[0].split()[: len(criterion.split())] == criterion.split()
    column = [float(line.split()[1]) for line in table[1:]]
    assert len(column) > 1
    assert column == sorted(column, reverse=True)
    listed = json.loads(cmpg("solve", *words, "--json").out)["equilibria"]
    assert {each["compared_by"] for each in listed} == {criterion}
    assert [each["score"] for each in listed] == pytest.approx(column, abs=1e-4)


def test_a_potential_that_there_is_not_ranks_nothing():
    ran = cmpg("solve", "congestion", "--agents", 3, "--restarts", 3, "--prefer", "potential")
    assert ran.code == 2
    assert "this game has no potential to compare equilibria by" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("--solver", "lp"),
        ("--solver", "primal-dual", "--epsilon", "0.01"),
        ("--schedule", "round-robin"),
        ("--schedule", "greatest-gain", "--workers", "2"),
        ("--restarts", "3", "--prefer", "welfare"),
        ("--seed", "5"),
        ("--exact",),
        ("--time-limit", "60", "--max-iterations", "1000"),
    ],
)
def test_options_of_solve(words):
    ran = cmpg("solve", "counter-example", *words, "--json")
    assert ran.code == 0
    record = json.loads(ran.out)
    assert record["certified_epsilon"] <= record["epsilon"]
    assert record["arithmetic"] == ("exact" if "--exact" in words else "floating point")


STEP = ("iteration", "mover", "gain", "potential", "seconds", "moves")


def test_a_run_folder_has_all_that_a_doubter_needs(run):
    assert sorted(each.name for each in run.iterdir()) == [
        "certificate.json",
        "game.npz",
        "policy.npz",
        "result.json",
        "scenario.json",
        "trace.csv",
    ]
    result, certificate = (json.loads((run / f"{name}.json").read_text()) for name in ("result", "certificate"))
    assert result["format"] == "cmpg-result"
    assert result["status"] == "CERTIFIED"
    assert result["message"]
    assert result["epsilon"] == 1e-6
    assert result["thresholds"] == [0.5]
    assert result["values"] == certificate["values"]
    assert result["costs"] == certificate["costs"]
    assert result["gains"] == certificate["gains"]
    assert result["iterations"] >= 1
    assert {"solver", "schedule", "workers", "restarts", "prefer", "time_limit"} <= set(result["settings"])
    assert result["seed"] is None
    assert result["versions"]["cmpg"] == library.__version__
    assert result["game_sha256"] == hashlib.sha256((run / "game.npz").read_bytes()).hexdigest()
    assert certificate["feasibility"] == "PROVEN"
    _, multipliers = load_policy(run / "policy.npz")
    assert multipliers.tolist() == result["multipliers"] == certificate["multipliers"]
    with (run / "trace.csv").open(newline="") as lines:
        trace = list(csv.DictReader(lines))
    assert len(trace) == result["iterations"]
    assert list(trace[0]) == [*STEP, "cost_0", "multiplier_0", "gain_0", "gain_1"]


def test_a_run_can_be_checked_from_its_folder_alone(run):
    ran = cmpg("certify", run / "game.npz", run / "policy.npz", "--exact")
    assert ran.code == 0
    assert ran.out.startswith("PROVED: ")


def test_the_folder_is_named_with_the_command_that_checks_it(tmp_path):
    ran = cmpg("solve", "counter-example", "--out", tmp_path / "a [b]")
    last = ran.out.splitlines()[-1]
    folder = f"{tmp_path}/a [b]"
    assert last == f"written to {folder}/; check it with: cmpg certify '{folder}/game.npz' '{folder}/policy.npz'"


def test_the_command_that_checks_a_folder_claims_what_the_run_claimed(tmp_path, monkeypatch, radios):
    monkeypatch.chdir(tmp_path)
    silent = policy_file(tmp_path / "silent.json", [[[1, 0]]], [[[1, 0]]])  # each would gain 1 by sending
    last = cmpg("solve", radios, "--start", silent, "--epsilon", 10, "--out", "run").out.splitlines()[-1]
    advised = last.partition("check it with: cmpg ")[2]
    assert advised == "certify run/game.json run/policy.npz --exact --epsilon 10.0"  # the file has fractions
    assert cmpg(*advised.split()).code == 0
    assert cmpg("certify", "run/game.npz", "run/policy.npz").code == 1


def test_an_exact_run_keeps_the_exact_game_too(tmp_path, radios):
    third = write_json(tmp_path / "third.json", RADIOS | {"thresholds": ["1/3"]})
    ran = cmpg("solve", third, "--exact", "--out", tmp_path / "run")
    assert ran.code == 0
    advised = ran.out.splitlines()[-1].partition("check it with: cmpg ")[2]
    assert advised == f"certify {tmp_path}/run/game.json {tmp_path}/run/policy.npz --exact"
    assert "exact arithmetic" in cmpg(*advised.split()).out
    assert "exact arithmetic" in ran.out
    assert str(library.load_game(tmp_path / "run" / "game.json", exact=True).rationals["thresholds"][0]) == "1/3"
    assert cmpg("certify", tmp_path / "run" / "game.json", tmp_path / "run" / "policy.npz", "--exact").code == 0


def test_nothing_is_written_over(run):
    before = {each.name: each.read_bytes() for each in run.iterdir()}
    ran = cmpg("solve", "grid-world", "--out", run)
    assert ran.code == 2
    assert is_one_paragraph(ran.err)
    assert "is not empty; nothing is written over" in ran.err
    assert {each.name: each.read_bytes() for each in run.iterdir()} == before


def test_an_empty_folder_may_be_filled(tmp_path):
    assert cmpg("solve", "counter-example", "--out", tmp_path).code == 0
    assert (tmp_path / "result.json").exists()


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    cases = {
        tmp_path / "file": "is a file",
        tmp_path / "no" / "where": "its parent folder does not exist",
        tmp_path / "file" / "below": "its parent folder does not exist",
        tmp_path / ("long" * 100): "cannot be made",
    }
    for folder, words in cases.items():
        ran = cmpg("solve", "counter-example", "--out", folder)
        assert ran.code == 2
        assert is_one_paragraph(ran.err)
        assert words in ran.err
        assert ran.out == ""
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_folders_in_which_one_may_not_write(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside").chmod(0o555)
    with a_stranger():
        for folder in (tmp_path / "inside", tmp_path / "inside" / "run"):
            ran = cmpg("solve", "counter-example", "--out", folder)
            assert ran.code == 2
            assert is_one_paragraph(ran.err)
    (tmp_path / "inside").chmod(0o755)


def test_a_result_is_shown_even_where_it_cannot_be_written(tmp_path):
    with patch("cmpg.files.run_folder.save_game", side_effect=FileError("game.npz: cannot be written (disk full).")):
        ran = cmpg("solve", "counter-example", "--out", tmp_path / "run")
    assert ran.code == 2
    assert ran.out.startswith("CERTIFIED")
    assert ran.err.splitlines()[-1] == "error: game.npz: cannot be written (disk full)."


def test_an_infeasible_game_ends_with_its_proof(tmp_path):
    ran = cmpg("solve", "counter-example", "--threshold", "-1", "--out", tmp_path / "run")
    assert ran.code == 1
    assert ran.out.startswith("INFEASIBLE: ")
    assert "proof: both play 2 costs at least 0, whatever the agents do; the threshold is -1" in ran.out
    assert "cmpg certify" not in ran.out
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert record["status"] == "INFEASIBLE"
    assert record["proof"] == {"multipliers": [1.0], "least_cost": 0.0, "limit": pytest.approx(-1.0, rel=1e-12)}
    assert record["thresholds"] == [-1.0]
    assert sorted(each.name for each in (tmp_path / "run").iterdir()) == [
        "game.npz",
        "result.json",
        "scenario.json",
        "trace.csv",
    ]


def test_a_limit_ends_with_the_incumbent(tmp_path, radios):
    silent = policy_file(tmp_path / "silent.json", [[[1, 0]]], [[[1, 0]]])  # each would gain 1 by sending
    ran = cmpg("solve", radios, "--start", silent, "--max-iterations", "0", "--json")
    assert ran.code == 1
    record = json.loads(ran.out)
    assert record["status"] == "LIMIT"
    assert record["certified_epsilon"] > record["epsilon"]
    assert record["values"] == [0, 0]


def test_a_time_limit_can_end_before_there_is_an_incumbent():
    ran = cmpg("solve", "grid-world", "--time-limit", 0)
    assert ran.code == 1
    assert ran.out.startswith("FEASIBILITY_UNKNOWN: the time limit was reached before a feasible policy was known.")


def test_a_time_limit_holds_while_a_game_is_built_or_loaded(radios):
    for target in (["robots"], [radios]):
        ran = cmpg("solve", *target, "--time-limit", 0, "--json")
        assert ran.code == 1
        assert json.loads(ran.out)["message"].endswith("The game was still being built.")


def test_a_game_without_a_potential_ends_with_a_witness(tmp_path):
    game = write_json(tmp_path / "pennies.json", PENNIES)
    start = policy_file(tmp_path / "start.json", [[[1, 0]]], [[[1, 0]]])
    ran = cmpg("solve", game, "--start", start)
    assert ran.code == 1
    assert ran.out.startswith("NOT_POTENTIAL: ")
    assert "witness: agent 0 and agent 1 move in turn" in ran.out
    record = json.loads(cmpg("solve", game, "--start", start, "--json").out)
    assert abs(record["witness"]["residual"]) > record["witness"]["rounding"]


def test_from_a_start_that_breaks_the_budget_a_feasible_one_is_sought_near_it(tmp_path, radios):
    start = policy_file(tmp_path / "start.json", [[[0, 1]]], [[[0, 1]]])
    record = json.loads(cmpg("solve", radios, "--start", start, "--json").out)
    assert record["status"] == "CERTIFIED"
    assert record["costs"] <= record["thresholds"]


def test_an_interrupted_run_keeps_its_incumbent(tmp_path):
    shown = []

    def stop(_, step):
        shown.append(step)
        raise KeyboardInterrupt

    with patch("cmpg.cli.output.ProgressLine.show", stop):
        ran = cmpg("solve", "grid-world", "--start", "min-cost", "--out", tmp_path / "run")
    assert ran.code == 1
    assert ran.out.startswith("INTERRUPTED: ")
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert record["status"] == "INTERRUPTED"
    assert cmpg("certify", tmp_path / "run" / "game.npz", tmp_path / "run" / "policy.npz", "--epsilon", 1).code == 0


def test_ctrl_c_from_outside(tmp_path):
    words = ["solve", "congestion-counting", "--agents", "60", "--restarts", "500", "--out", str(tmp_path / "run")]
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            while not running.stderr.readline().startswith("iteration"):  # a slow machine says first what it waits for
                assert running.poll() is None
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert "Traceback" not in err
    assert (running.returncode, out.split(":")[0]) in [(1, "INTERRUPTED"), (0, "CERTIFIED")]
    assert (tmp_path / "run" / "result.json").exists()


def test_ctrl_c_between_restarts_keeps_the_best_so_far():
    with patch("cmpg.equilibrium.runs.random_start", side_effect=KeyboardInterrupt):
        ran = cmpg("solve", "counter-example", "--restarts", "10", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["status"] == "CERTIFIED"


def test_too_little_memory_is_no_traceback():
    with patch("cmpg.equilibrium.starts.min_cost.feasible_start", side_effect=MemoryError):
        ran = cmpg("solve", "grid-world", "--start", "min-cost")
    assert ran.code == 2
    assert is_one_paragraph(ran.err)


# check


def test_check_refutes_the_congestion_game_with_a_witness():
    words = ("check", "congestion", "--agents", "3")
    ran = cmpg(*words)
    assert ran.code == 1
    assert "potential REFUTED" in ran.out
    assert re.search(r"witness: agent \d and agent \d move in turn, .* add up to [\d.]+, not 0", ran.out)
    record = json.loads(cmpg(*words, "--json").out)
    game = SCENARIOS["congestion"].build(num_agents=3)
    i, j = record["witness"]["agents"]
    old = JointPolicy(tuple(np.array(table) for table in record["witness"]["policy"]))
    new_i, new_j = record["witness"]["deviations"]
    corners = [old, old.replace(i, new_i), old.replace(i, new_i).replace(j, new_j), old.replace(j, new_j)]
    gaps = [game.at(corner).values[j] - game.at(corner).values[i] for corner in corners]
    assert gaps[0] - gaps[1] + gaps[2] - gaps[3] == pytest.approx(record["witness"]["residual"])
    assert cmpg(*words).out == ran.out


@pytest.mark.parametrize("name", ["grid-world", "charging", "spectrum", "congestion-exogenous"])
def test_check_of_a_feasible_potential_game(name):
    ran = cmpg("check", name)
    assert ran.code == 0
    assert ran.out.splitlines()[0].startswith("well formed: ")
    assert ran.out.splitlines()[1].startswith("feasible: ")
    assert "potential PROVEN: " in ran.out


def test_check_of_an_infeasible_game():
    ran = cmpg("check", "counter-example", "--threshold=-1")
    assert ran.code == 1
    assert "infeasible: both play 2 costs at least 0, whatever the agents do; the threshold is -1" in ran.out
    record = json.loads(cmpg("check", "counter-example", "--threshold=-1", "--json").out)
    assert record["feasible"] is False
    assert record["infeasibility_multipliers"] == [1.0]


def test_check_of_a_game_without_constraints(tmp_path):
    ran = cmpg("check", write_json(tmp_path / "pennies.json", PENNIES))
    assert ran.code == 1
    assert "0 constraints" in ran.out
    assert "feasible: no constraint" in ran.out
    assert "inf" not in ran.out.replace("infeasible", "")


# certify


def test_certify_a_claim_that_holds(tmp_path, radios):
    good = policy_file(tmp_path / "p.json", [[[0, 1]]], [[["3/4", "1/4"]]], multipliers=[[0], [0]])
    ran = cmpg("certify", radios, good, "--exact")
    assert ran.code == 0
    assert re.match(r"PROVED: the policy meets every threshold; .* \(joint-state policies, exact arithmetic\)", ran.out)
    record = json.loads(cmpg("certify", radios, good, "--json").out)
    assert record["proved"] is True
    assert record["claimed_epsilon"] == 1e-6
    assert record["format"] == "cmpg-certificate"


def test_certify_a_claim_that_does_not_hold(tmp_path, radios):
    bad = policy_file(tmp_path / "p.json", [[[1, 0]]], [[[1, 0]]], multipliers=[[0], [0]])
    ran = cmpg("certify", radios, bad)
    assert ran.code == 1
    assert ran.out.startswith("NOT PROVED: the policy meets every threshold; no agent gains more than 1 by deviating")
    assert "better multipliers may prove less" in ran.out
    assert cmpg("certify", radios, bad, "--epsilon", "1.01").code == 0


@pytest.mark.parametrize("fields", [{}, {"multipliers": [[1], [1]]}])
def test_certify_a_policy_that_breaks_the_budget(tmp_path, radios, fields):
    over = policy_file(tmp_path / "p.json", [[[0, 1]]], [[[0.5, 0.5]]], **fields)
    ran = cmpg("certify", radios, over)
    assert ran.code == 1
    assert ran.out.startswith("NOT PROVED: the policy violates a threshold: clashes costs 0.5, 0.25 more than 0.25")
    assert json.loads(cmpg("certify", radios, over, "--json").out)["feasible"] is False


def test_certify_without_multipliers_proposes_some(tmp_path, run):
    policy, _ = load_policy(run / "policy.npz")
    policy.save(tmp_path / "p.npz")
    for words in ((), ("--exact",)):
        ran = cmpg("certify", "counter-example", tmp_path / "p.npz", *words)
        assert ran.code == 0
        assert "best responses are computed" in ran.err
        assert ran.out.startswith("PROVED")


@pytest.mark.parametrize(
    ("tables", "fields", "words"),
    [
        (([[[1, 0]]],), {}, "the policy has 1 agents; the game has 2"),
        (([[[1, 0]]], [[[1, 0, 0]]]), {}, r"policy[1] has shape [1, 1, 3]; [1, 1, 2] is required"),
        (([[[1, 0]]], [[[1, 1]]]), {}, "agent_1[h=0, s=0] sums to 2"),
        (([[[1, 0]]], [[[1, 0]]]), {"multipliers": [[0, 1], [0, 1]]}, "multipliers has shape [2, 2]; [2, 1]"),
        (([[[1, 0]]], [[[1, 0]]]), {"multipliers": [[0], [-1]]}, "a multiplier is at least zero"),
    ],
)
def test_policies_of_another_shape(tmp_path, radios, tables, fields, words):
    path = policy_file(tmp_path / "p.json", *tables, **fields)
    ran = cmpg("certify", radios, path)
    assert ran.code == 2
    assert is_one_paragraph(ran.err)
    assert str(path) in ran.err
    assert words in ran.err


def test_exact_certificates_tell_a_hair_from_nothing(tmp_path):
    game = write_json(tmp_path / "game.json", RADIOS | {"thresholds": ["1/3"]})
    at = policy_file(tmp_path / "at.json", [[[0, 1]]], [[["2/3", "1/3"]]], multipliers=[[0], [0]])
    hair = {
        "agent_1": [
            [["1999999999999999999999/3000000000000000000000", "1000000000000000000001/3000000000000000000000"]]
        ]
    }
    above = write_json(tmp_path / "above.json", json.loads(at.read_text()) | hair)
    assert cmpg("certify", game, at, "--exact").code == 0
    assert cmpg("certify", game, above, "--exact").code == 1
    # Files with fractions are proved in rationals, with the option and without.
    ran = cmpg("certify", game, above)
    assert ran.code == 1
    assert "costs 0.333333333, 3.33e-22 more than 0.333333333" in ran.out
    allowed = cmpg("certify", game, above, "--allow-rounding", "1e-21")
    assert allowed.code == 0
    assert allowed.out.startswith("ACCEPTED: ")
    assert cmpg("certify", game, above, "--allow-rounding", "1e-22").code == 1


def test_exact_mode_says_when_rows_of_files_do_not_sum_to_one(tmp_path):
    game = write_json(tmp_path / "game.json", RADIOS | {"thresholds": ["1/3"]})
    even = policy_file(tmp_path / "even.json", [[[0, 1]]], [[["2/3", "1/3"]]], multipliers=[[0], [0]])
    off = policy_file(tmp_path / "off.json", [[[0, 1]]], [[["0.6666666666", "0.3333333333"]]], multipliers=[[0], [0]])
    assert "divided" not in cmpg("certify", game, even, "--exact").err
    ran = cmpg("certify", game, off, "--exact")
    assert "1 row of probabilities does not sum to exactly 1, and was divided by the sum" in ran.err
    assert ran.code == 0


# What a command line may get wrong


def test_scenario_options_reach_the_scenario():
    record = json.loads(cmpg("check", "robots", "--agents", "3", "--seed", "1", "--horizon=20", "--json").out)
    assert record["agents"] == 3
    assert record["horizon"] == 20
    assert (
        json.loads(cmpg("check", "charging", "--capacity", "7.5", "--day", "2024-03-12", "--json").out)["agents"] == 24
    )
    record = json.loads(cmpg("check", "congestion", "--agents", "3", "--weights", "1,2", "--json").out)
    assert record["policy_shapes"] == [[2, 2, 2]] * 3
    record = json.loads(cmpg("check", "grid-world", "--target", "4,2", "--width", "5", "--json").out)
    assert record["policy_shapes"] == [[6, 400, 4]] * 2


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["solve", "nothing-like-it"], "there is no scenario 'nothing-like-it'; there are: counter-example,"),
        (["solve", "grid-wrld"], "did you mean 'grid-world'?"),
        (["scenarios", "grid-wrld"], "did you mean 'grid-world'?"),
        (["solve", "grid-world", "--foo", "3"], "there is no option --foo; those of grid-world are --threshold,"),
        (["solve", "grid-world", "--cell-rewards", "3"], "there is no option --cell-rewards"),
        (["check", "grid-world", "--start", "0,0"], "there is no option --start"),
        (["solve", "grid-world", "--threshold"], "option '--threshold' requires an argument"),
        (["solve", "grid-world", "--threshold", "much"], "--threshold is 'much'; a number is required"),
        (["solve", "grid-world", "--threshold", "nan"], "--threshold is 'nan'; a number is required"),
        (["solve", "grid-world", "--horizon", "2.5"], "--horizon is '2.5'; a whole number is required"),
        (["solve", "grid-world", "--horizon", "0"], "horizon"),
        (["solve", "grid-world", "--width", "2"], "is not on the grid"),
        (["solve", "congestion", "--weights", "1,x"], "--weights is 'x'; a number is required"),
        (["solve", "congestion", "--cost-at", "never"], "one of every step, first step is required"),
        (["check", "congestion", "--agents", "14"], "on the command line congestion-counting"),
        (["solve", "grid-world", "extra"], "unexpected extra argument"),
        (["solve", "grid-world", "--prefer", "me"], "--prefer is 'me'; one of auto, potential, welfare is required"),
        (["solve", "grid-world", "--solver", "magic"], "one of exact, lp, primal-dual is required"),
        (["solve", "grid-world", "--schedule", "never"], "one of auto, greatest-gain, round-robin is required"),
        (["solve", "grid-world", "--epsilon", "0"], "--epsilon is 0.0; a finite number above 0 is required"),
        (["solve", "grid-world", "--epsilon", "nan"], "--epsilon is nan; a finite number above 0 is required"),
        (
            ["solve", "grid-world", "--time-limit", "-1"],
            "--time-limit is -1.0; a finite number of at least 0 is required",
        ),
        (["certify", "grid-world", "x.npz", "--epsilon", "inf"], "--epsilon is inf"),
        (["solve", "nowhere.json"], "nowhere.json: there is no such file"),
        (["solve", "nowhere.json", "--threshold", "1"], "only scenarios have options of their own"),
        (["solve", "some/game.txt"], "a game file ends in one of .json, .npz, .nfg, .csv, .dpomdp"),
        (["solve", "/"], "is a folder; name the game file in it"),
        (["solve", "grid-world", "--start", "nowhere.npz"], "nowhere.npz: there is no such file"),
        (["certify", "grid-world", "nowhere.npz"], "nowhere.npz: there is no such file"),
        (["certify", "grid-world", "/"], "is a folder; name the file in it"),
        (["solve", "charging", "--exact"], "charging has no exact mode"),
        (["solve", "charging", "--day", "1999-01-01"], "has no session that arrived on 1999-01-01"),
        (["solve", "charging", "--day", "soon"], "a date such as 2019-06-12 is required"),
        (["solve", "robots", "--agents", "0"], "there are 0 agents and 60 steps; at least one of each is required"),
        (["solve", "robots", "--agents", "100000", "--seed", "1"], "100000"),
        (["solve", "robots", "--map", "nowhere.map"], "nowhere.map"),
        (["solve", "routing", "--network", "nowhere.tntp"], "Pass both, or neither"),
    ],
)
def test_bad_words_are_answered_in_one_paragraph(words, answer):
    ran = cmpg(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert is_one_paragraph(ran.err)
    assert answer in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["solve"],
        ["certify", "grid-world"],
        ["solve", "grid-world", "--epsilon", "abc"],
        ["solve", "grid-world", "--restarts", "0"],
        ["solve", "grid-world", "--workers", "0"],
        ["solve", "grid-world", "--workers", "two"],
        ["solve", "grid-world", "--max-iterations", "-1"],
        ["solve", "grid-world", "--seed", "-1"],
        ["check", "grid-world", "--seed", "x"],
    ],
)
def test_what_the_parser_refuses(words):
    ran = cmpg(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert is_one_paragraph(ran.err)
    assert re.search(r"See cmpg .*--help\.\n$", ran.err)


def test_files_of_another_kind(tmp_path, run):
    ran = cmpg("certify", run / "policy.npz", run / "game.npz")
    assert ran.code == 2
    assert "its format is 'cmpg-policy'; 'cmpg-game' is required" in ran.err
    (tmp_path / "broken.npz").write_bytes((run / "game.npz").read_bytes()[:100])
    ran = cmpg("solve", tmp_path / "broken.npz")
    assert ran.code == 2
    assert is_one_paragraph(ran.err)


def test_a_folder_called_like_a_scenario_is_in_nobodys_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counter-example").mkdir()
    assert cmpg("solve", "counter-example").code == 0


# Pipes and terminals


def test_a_closed_pipe_is_no_reason_for_a_traceback():
    for words in (["scenarios"], ["solve", "counter-example", "--json"]):
        running = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.stdout.close()
        said = running.stderr.read().decode()
        running.stderr.close()
        assert running.wait() == 1
        assert "Traceback" not in said
        assert "BrokenPipe" not in said


def test_lines_are_broken_for_terminals_and_left_whole_in_pipes():
    code, said = on_a_terminal("check", "charging", columns=60, NO_COLOR="1")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said)
    assert code == 0
    assert max(len(line) for line in re.split(r"[\r\n]", plain)) <= 60  # a slow machine rewrites its line of progress
    piped = program("check", "charging")
    assert "own-state policies; values range over" in piped.out
    assert "\x1b" not in piped.out


def test_tables_fit_a_narrow_terminal():
    code, said = on_a_terminal("solve", "routing", columns=80)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said).replace("\r", "")
    assert code == 0
    table = plain[plain.index("\nagent ") + 1 :]
    assert max(len(line) for line in table.splitlines()) <= 80
    assert len(re.findall(r"^platoon \d+, \d+ to \d+ +-\d\.\d{6} ", table, re.MULTILINE)) == 12


def test_nothing_is_cut_where_a_terminal_is_too_narrow_for_a_table():
    told = program("solve", "routing", COLUMNS="30").out
    assert "…" not in told
    assert (
        len(re.findall(r"^platoon \d+, \d+ to \d+ +-\d\.\d{6} +-\d\.\d{6} +\d\S* +\d\.\d{4}$", told, re.MULTILINE))
        == 12
    )


def test_progress_is_one_live_line_on_a_terminal():
    code, said = on_a_terminal("solve", "grid-world")
    assert code == 0
    assert "\x1b[2K" in said  # the line is wiped
    assert re.search(r"iteration +\d+ +potential", said)
    assert said.index("potential") < said.index("CERTIFIED")


def test_no_colour_where_none_is_wanted():
    _, said = on_a_terminal("solve", "nothing-like-it")
    assert "\x1b[1;31m" in said
    _, said = on_a_terminal("solve", "nothing-like-it", NO_COLOR="1")
    assert "31m" not in said


def test_names_that_the_terminal_cannot_write(tmp_path):
    game = write_json(tmp_path / "game.json", RADIOS | {"agents": ["Ærøskøbing", "Bo"]})
    ran = program("solve", game, PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert r"\xc6r\xf8sk\xf8bing" in ran.out


def test_names_are_never_taken_for_markup(tmp_path):
    game = write_json(tmp_path / "game.json", RADIOS | {"agents": ["[bold]Ada", "[/]"], "constraints": ["[red]"]})
    ran = cmpg("solve", game)
    assert ran.code == 0
    assert "[bold]Ada" in ran.out
    assert "[red]" in ran.out
    assert cmpg("check", game).code == 0


def test_many_agents_and_constraints_are_summarised(tmp_path):
    agents, limits = 14, 14
    game = {
        "format": "cmpg-game",
        "version": 1,
        "form": "counting",
        "horizon": 1,
        "initial": [1],
        "rewards": [[[[0] * (agents + 1), list(range(agents + 1))]]],
        "transition": [[[[1], [1]]]],
        "boundaries": [agents - 1],
        "costs": [[[[0, 1]]]] * limits,
        "thresholds": [0.5 + 0.01 * j for j in range(limits)],
    }
    ran = cmpg("solve", write_json(tmp_path / "game.json", game))
    assert ran.code == 0
    assert "showing 12 of 14 agents with the largest gains; --json has all" in ran.out
    assert "showing 12 of 14 constraints with the least slack; --json has all" in ran.out
    total = sum(json.loads(cmpg("solve", tmp_path / "game.json", "--json").out)["values"])
    assert f"total value {total:.6f}\n" in ran.out
    assert "price 2" in ran.out
    assert "price 3" not in ran.out


def test_a_price_without_bound_is_printed_by_its_order(tmp_path, radios):
    silent = [[[1, 0]]]
    claim = policy_file(tmp_path / "p.json", silent, silent, multipliers=[[123456789012.0], [2.0]])
    ran = cmpg("certify", radios, claim)
    assert " 1.235e+11\n" in ran.out
    assert " 2.0000\n" in ran.out


# Selfish play


def test_selfish_play_is_shown_beside_the_result(radios, tmp_path):
    ran = cmpg("solve", radios, "--selfish", "--out", tmp_path / "run")
    assert ran.code == 0
    assert re.search(
        r"^without the constraints: cost \S+ of 0.25, total value \S+ \(with them \S+\)$", ran.out, re.MULTILINE
    )
    kept = json.loads((tmp_path / "run" / "result.json").read_text())["selfish"]
    assert kept["status"] == "CERTIFIED"
    assert len(kept["values"]) == 2
    assert "without the constraints" not in cmpg("solve", radios).out


@pytest.mark.parametrize("words", [(), ("--exact",), ("--solver", "lp")])
def test_selfish_play_is_what_a_game_without_limits_gives(words):
    bounded = json.loads(cmpg("solve", "spectrum", "--selfish", "--json", *words).out)
    free = json.loads(cmpg("solve", "spectrum", "--threshold", 1e9, "--json").out)
    selfish = bounded["selfish"]
    assert selfish["status"] == "CERTIFIED"
    assert selfish["values"] == pytest.approx(free["values"], rel=1e-12)  # from rationals, the last bit may differ
    assert selfish["costs"] == pytest.approx(free["costs"], rel=1e-12)
    (limit,), (cost,) = bounded["thresholds"], free["costs"]
    assert cost > limit
    told = f"cost {cost:.4g} of {limit:.4g}, total value {sum(free['values']):.6g}"
    line = cmpg("solve", "spectrum", "--selfish", *words).out.splitlines()[-1]
    assert line == f"without the constraints: {told} (with them {sum(bounded['values']):.6g})"


def test_selfish_play_is_shown_where_the_constraints_cannot_be_met(tmp_path):
    game = write_json(tmp_path / "game.json", RADIOS | {"thresholds": [-1]})
    ran = cmpg("solve", game, "--selfish")
    assert ran.code == 1
    assert ran.out.startswith("INFEASIBLE")
    assert re.search(r"^without the constraints: cost \S+ of -1, total value \S+$", ran.out, re.MULTILINE)


def test_an_interruption_of_selfish_play_keeps_the_result(radios):
    ended, module = library.solve(library.load_game(radios)), sys.modules["cmpg.equilibrium.solve"]
    with patch.object(module, "solve", side_effect=[ended, KeyboardInterrupt]):
        ran = cmpg("solve", radios, "--selfish")
    assert ran.code == 0
    assert ran.out.startswith("CERTIFIED")
    assert "without the constraints" not in ran.out


def test_a_game_without_constraints_has_no_other_selfish_play(tmp_path):
    ran = cmpg("solve", write_json(tmp_path / "game.json", PENNIES), "--selfish")
    assert ran.code == 2
    assert is_one_paragraph(ran.err)
    assert "no constraints" in ran.err
    assert "Leave --selfish out" in ran.err


@pytest.mark.parametrize("command", ["solve", "check", "certify", "learn", "bounds"])
def test_the_help_of_a_command_lists_the_options_of_the_scenario_that_it_names(command):
    told = cmpg(command, "charging", "--help")
    assert told.code == 0
    assert "\nOptions of charging:\n" in told.out
    own, _, of_charging = told.out.partition("\nOptions of charging:\n")
    for option in listed_options(SCENARIOS["charging"]):
        assert (f"  {spoken(option)} " in of_charging) != (f"  {spoken(option)} " in own), "listed once"
    assert max(map(len, told.out.splitlines())) <= 80
    assert "lists the options of the scenario" in " ".join(cmpg(command, "--help").out.split())


def test_what_a_command_has_itself_is_not_listed_again():
    told = cmpg("solve", "robots", "--help").out
    assert len(re.findall(r"^  --seed ", told, re.MULTILINE)) == 1
    assert "--agents <int>" in told


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_number_of_agents_is_asked_for_by_one_name(name):
    options = {spoken(option) for option in listed_options(SCENARIOS[name])}
    assert not options & {"--cars", "--robots", "--platoons", "--users", "--num-agents", "--num-users"}
    if "--agents" in options:
        command = "solve" if name == "charging" else "check"  # cars that are drawn are a crowd
        assert json.loads(cmpg(command, name, "--agents", 2, "--json").out)["agents"] == 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["solve", "charging", "--capcity", "3"], "--capacity"),
        (["solve", "routing", "--vehicels=3"], "--vehicles"),
        (["check", "robots", "--num-agents", "3"], "--agents"),
        (["solve", "spectrum", "--epsilom", "1"], "--epsilon"),
        (["report", "run", "--outt", "x"], "--out"),
    ],
)
def test_a_misspelt_option_gets_a_suggestion(words, meant):
    ran = cmpg(*words)
    assert ran.code == 2
    assert is_one_paragraph(ran.err)
    wrong = next(word for word in words if word.startswith("--")).partition("=")[0]
    assert f"there is no option {wrong}; did you mean {meant}?" in ran.err


def test_the_scenario_is_questioned_before_its_options():
    assert "did you mean 'charging'?" in cmpg("solve", "chargin", "--capacity", 3).err
    assert "did you mean 'charging'?" in cmpg("solve", "chargin", "--help").err


def test_options_may_stand_before_the_game():
    record = json.loads(cmpg("check", "--horizon", 20, "--agents=3", "robots", "--json").out)
    assert (record["agents"], record["horizon"]) == (3, 20)


def completions(*words, run=program):
    """What a shell offers for the last word."""
    line = {"_CMPG_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    with patch.dict(os.environ, line):
        return run().out.split()


def test_a_shell_completes_commands_scenarios_files_and_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("charm.json", "chart.npz", "chaff.txt"):
        (tmp_path / name).touch()
    (tmp_path / "chapter").mkdir()
    assert completions("cmpg", "so") == ["solve"]
    here = partial(completions, run=cmpg)
    assert here("cmpg", "solve", "cha") == ["charging", "chapter/", "charm.json", "chart.npz"]
    assert here("cmpg", "solve", "charging", "--cap") == ["--capacity", "--capacity-kw"]
    assert here("cmpg", "scenarios", "sp") == ["spectrum"]
    assert here("cmpg", "solve", "spectrum", "--solver", "l") == ["lp"]
    assert here("cmpg", "solve", "chargin", "--cap") == []


def test_the_command_starts_without_what_is_heavy():
    heavy = "('highspy', 'joblib', 'matplotlib', 'plotly', 'jinja2', 'cvxpy')"
    code = f"import sys, cmpg.cli.main; assert not [name for name in {heavy} if name in sys.modules]"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_simulating_a_run_sets_what_happens_beside_what_is_claimed(tmp_path):
    assert cmpg("solve", "spectrum", "--out", tmp_path / "run").code == 0
    told = cmpg("simulate", tmp_path / "run", "--episodes", 2000, "--seed", 1)
    assert told.code == 0
    assert told.out.startswith("agrees: 2,000 episodes")
    assert "interference" in told.out
    words = ("simulate", tmp_path / "run", "--episodes", 50, "--show", 1)
    shown = cmpg(*words, "--out", tmp_path / "episodes.csv")
    assert shown.out.count("\nepisode ") >= 1
    assert (tmp_path / "episodes.csv").read_text().startswith("episode,step,agent,state,action,reward")
    assert ".csv, .json or .parquet is required" in cmpg(*words, "--out", tmp_path / "episodes.txt").err
    record = json.loads(cmpg("simulate", tmp_path / "run", "--episodes", 2000, "--seed", 1, "--json").out)
    assert record["agrees"]
    assert [each["agent"] for each in record["values"]] == ["user 0", "user 1", "user 2"]
    assert abs(record["costs"][0]["seen"] - record["costs"][0]["claimed"]) < 4 * record["costs"][0]["standard_error"]


def test_restarts_find_the_same_wherever_they_run(tmp_path):
    words = ("solve", "counter-example", "--restarts", 4, "--seed", 1, "--json")
    alone = json.loads(cmpg(*words).out)
    for where in (("--jobs", 2, "--backend", "threads"), ("--jobs", 2, "--backend", "loky")):
        assert json.loads(cmpg(*words, *where).out) == alone
    refused = cmpg(*words, "--backend", "mpi")
    assert (refused.code, "one of loky, threads, dask, ray" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "random"),
    [
        (["counter-example", "--seed", "1"], True),
        (["robots", "--agents", "2", "--horizon", "6", "--seed", "1"], False),
        (["robots", "--agents", "2", "--horizon", "6", "--seed", "1", "--restarts", "2"], True),
    ],
)
def test_a_seed_that_has_drawn_the_agents_breaks_no_ties_of_a_single_run(arguments, random):
    assert json.loads(cmpg("solve", *arguments, "--json").out)["settings"]["random_ties"] is random
