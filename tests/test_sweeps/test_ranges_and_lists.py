"""Sweeps: what is swept over, what is kept, and what it says of the options."""

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import cmpg as library
from cmpg import sweeps
from cmpg.cli.targets import converted
from cmpg.errors import CMPGError, FileError
from cmpg.report.sweep_page import fall_lines
from cmpg.scenarios import counter_example
from cmpg.sweeps.grid import values_of
from cmpg.sweeps.rows import SweepRow, proved_sweep
from cmpg.sweeps.worth import worth_of_options
from command_line import PROGRAM, cmpg

WORDS = ["sweep", "spectrum", "--threshold", "0.05,0.1", "--agents", "2:3", "--seed", "1,2"]


def digest(folder):
    return hashlib.sha256((folder / "results.csv").read_bytes()).hexdigest()


def results(folder):
    return list(csv.DictReader((folder / "results.csv").read_text().splitlines()))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    done = cmpg(*WORDS, "--out", folder)
    assert done.code == 0, done.err
    return folder


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("4", int, 4),
        ("4:7", int, [4, 5, 6, 7]),
        ("0:1:0.25", float, [0, 0.25, 0.5, 0.75, 1]),
        ("0,0.1,2", float, [0, 0.1, 2]),
        ("1:3,10", int, [1, 2, 3, 10]),
        ("2019-02-27..2019-03-01", str, ["2019-02-27", "2019-02-28", "2019-03-01"]),
        ("0.1,0.2;0.3,0.4", tuple[float, ...], [(0.1, 0.2), (0.3, 0.4)]),
        ("C:data.csv", str, "C:data.csv"),
    ],
)
def test_ranges_and_lists_are_read(text, kind, values):
    assert values_of("--option", text, lambda part: converted("--option", part, kind)) == values


@pytest.mark.parametrize("text", ["3:1", "1:2:0", "1:2:3:4", "2019-06-14..2019-06-10", "a..b"])
def test_a_range_without_values_is_refused(text):
    with pytest.raises(CMPGError, match="--option is"):
        values_of("--option", text, float)


def test_a_range_that_is_too_long_is_counted():
    with pytest.raises(CMPGError, match="a range of 1,000,000,000,001 values; at most 100,000 are swept over"):
        values_of("--option", "0:1:1e-12", float)


def test_every_combination_has_a_row_and_a_folder_that_proves_it(whole):
    rows = results(whole)
    told = {(row["num_agents"], row["threshold"], row["seed"]) for row in rows}
    assert told == {(agents, budget, seed) for budget in ("0.05", "0.1") for agents in "23" for seed in "12"}
    assert {row["status"] for row in rows} == {"CERTIFIED"}
    assert len(list((whole / "runs").iterdir())) == 8
    found = proved_sweep(whole)
    assert found.complete
    for row, told in zip(found.rows, rows, strict=True):
        run = library.load_run(whole / "runs" / f"{row.run:04d}").result
        assert float(told["welfare"]) == row.welfare == float(run.values.sum())
        assert float(told["bound"]) >= float(told["welfare"]) - 1e-9


def test_processes_change_no_byte(whole, tmp_path):
    assert cmpg(*WORDS, "--out", tmp_path / "two", "--jobs", "2", "--backend", "loky").code == 0
    assert digest(tmp_path / "two") == digest(whole)


def test_a_short_sweep_starts_no_process(tmp_path):
    def build(threshold):
        (tmp_path / str(os.getpid())).touch()
        return counter_example(threshold=threshold)

    sweeps.sweep(build, {"threshold": [0.1, 0.2, 0.3, 0.4, 0.5]}, jobs=2)
    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]


def test_a_plan_in_a_file_is_the_same_sweep(whole, tmp_path):
    plan = tmp_path / "plan.toml"
    written = {"threshold": "[0.05, 0.1]", "num_agents": '"2:3"', "seed": '"1,2"'}
    options = "".join(f"{name} = {written[name]}\n" for name in sweeps.load_sweep(whole).grid.axes)
    plan.write_text(f'scenario = "spectrum"\n[options]\n{options}')
    assert cmpg("sweep", plan, "--out", tmp_path / "run").code == 0
    assert digest(tmp_path / "run") == digest(whole)
    plan.write_text('scenario = "spectrum"\nthreshold = [1]\n')
    assert "threshold is not known there" in cmpg("sweep", plan, "--out", tmp_path / "other").err


def test_a_plan_may_use_the_words_of_the_command_line(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('scenario = "spectrum"\n\n[options]\nagents = "2:3"\n')
    assert cmpg("sweep", plan, "--out", tmp_path / "run").code == 0
    assert [row["num_agents"] for row in results(tmp_path / "run")] == ["2", "3"]


def test_a_sweep_that_is_killed_again_and_again_is_resumed_to_the_same_bytes(whole, tmp_path):
    folder = tmp_path / "run"
    for count in (1, 4):
        process = subprocess.Popen([*PROGRAM, *WORDS, "--out", folder, "--resume"], stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(folder.glob("runs/0*"))) < count:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("runs/0*")}
    done = cmpg(*WORDS, "--out", folder, "--resume")
    assert done.code == 0, done.err
    assert digest(folder) == digest(whole)
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("runs/0*")}
    assert before.items() <= after.items(), "what was there was done again"
    assert not list(folder.glob("**/.*"))


def test_hard_budgets_are_resumed_to_the_same_bytes(tmp_path):
    folder, budgets = tmp_path / "run", {"threshold": [0.0, 0.5]}
    first = sweeps.sweep("grid-world", budgets, out=folder)
    before = digest(folder)
    assert first.rows[0].prices == (np.inf,)
    shutil.rmtree(folder / "runs" / "0001")
    assert sweeps.sweep("grid-world", budgets, out=folder, resume=True).rows[0].prices == (np.inf,)
    assert digest(folder) == before


def test_another_sweep_is_not_mixed_in(whole):
    done = cmpg("sweep", "spectrum", "--threshold", "0.3,0.4", "--out", whole, "--resume")
    assert (done.code, "the run there was begun with " in done.err) == (2, True)
    assert len(done.err) < 400


def test_a_forged_row_is_refused_when_a_page_is_made(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "forged")
    path = folder / "runs" / "0003" / "row.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"welfare": record["welfare"] + 1}))
    done = cmpg("report", folder)
    assert (done.code, "its row.json is not what the run in it proves" in done.err) == (2, True)


def test_options_that_do_not_fit_are_a_row_and_not_the_end(tmp_path):
    done = cmpg("sweep", "charging", "--day", "2024-03-12,1999-01-01", "--out", tmp_path / "run")
    assert done.code == 1
    rows = results(tmp_path / "run")
    assert rows[1]["status"] == "ERROR"
    assert "no session that arrived on 1999-01-01" in rows[1]["message"]


def lonely_driver(threshold):
    """One agent, so that the equilibrium is the optimum: of three lanes, two are faster and cost something."""
    rewards = np.array([0.0, 1.0, 1.6]).reshape(1, 1, 1, 3)
    costs = np.array([0.0, 1.0, 3.0]).reshape(1, 1, 1, 3)
    return library.JointGame(
        transition=np.ones((1, 1, 3, 1)), rewards=rewards, costs=costs, thresholds=[threshold], initial=[1.0], horizon=1
    )


def test_differences_and_the_envelope_agree_where_one_agent_decides_alone():
    """The best value is piecewise linear in the threshold: slope 1 up to 1, then 0.3 up to 3, then 0."""
    found = sweeps.sweep(lonely_driver, {"threshold": [0.25, 0.5, 2.0, 2.5, 4.0, 5.0]})
    worth = worth_of_options(found)["threshold"]
    assert [worth[run] for run in (0, 2, 4)] == pytest.approx([1.0, 0.3, 0.0], abs=1e-6)
    assert [found.rows[run].envelopes["threshold"] for run in (0, 2, 4)] == pytest.approx([1.0, 0.3, 0.0], abs=1e-6)


def test_the_knee_is_where_more_begins_to_bring_less():
    rows = tuple(SweepRow(x, {"x": x}, "CERTIFIED", "", welfare=float(min(x, 3))) for x in range(9))
    assert sweeps.SweepCurve("x", {}, rows).knee == 3
    straight = tuple(SweepRow(x, {"x": x}, "CERTIFIED", "", welfare=2.0 * x) for x in range(9))
    assert sweeps.SweepCurve("x", {}, straight).knee is None


def test_a_full_disk_ends_a_sweep_with_its_name_and_leaves_what_is_there(tmp_path, monkeypatch):
    import errno
    import os

    kept = []

    def fill(row, _):
        kept.append(row.run)
        monkeypatch.setattr(os, "fsync", full)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(FileError, match="No space left on device"):
        sweeps.sweep("counter-example", {"seed": [1, 2, 3]}, out=tmp_path / "run", on_row=fill)
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "run" / "runs").iterdir()] == ["0000"]
    assert sweeps.sweep("counter-example", {"seed": [1, 2, 3]}, out=tmp_path / "run", resume=True).complete


def test_the_refusal_of_another_sweep_names_what_differs_and_is_short(tmp_path):
    sweeps.sweep("counter-example", {"seed": list(range(1, 9))}, out=tmp_path / "run")
    with pytest.raises(FileError, match=r"begun with seed 1, 2, …, 8 \(8 values\), and 20 is requested now\. Request"):
        sweeps.sweep("counter-example", {"seed": 20}, out=tmp_path / "run", resume=True)


def test_a_sweep_is_extended_to_the_bytes_of_the_larger_one(tmp_path):
    small = {"threshold": [0.1, 0.3], "num_agents": [2, 3]}
    large = {"threshold": [0.05, 0.1, 0.2, 0.3], "num_agents": [2, 3]}
    whole = sweeps.sweep("spectrum", large, out=tmp_path / "large")
    sweeps.sweep("spectrum", small, out=tmp_path / "run")
    before = {path: path.stat().st_ino for path in (tmp_path / "run" / "runs").glob("*/policy.npz")}
    done: list[int] = []
    found = sweeps.sweep(
        "spectrum", large, out=tmp_path / "run", resume=True, on_row=lambda row, _: done.append(row.run)
    )
    assert [row.options for row in found.rows] == [row.options for row in whole.rows]
    assert digest(tmp_path / "run") == digest(tmp_path / "large")
    # Of four runs, the two at 0.1 have another next value now; the two at 0.3 were kept.
    assert len(before) == 4
    assert sorted(done) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(FileError, match=r"begun with threshold 0.05, 0.1, 0.2, 0.3, and 0.1, 0.4 is requested now"):
        sweeps.sweep("spectrum", small | {"threshold": [0.1, 0.4]}, out=tmp_path / "run", resume=True)


def test_kilowatts_are_numbers_to_sweep_over(tmp_path):
    done = cmpg("sweep", "charging", "--capacity-kw", "26.4,39.6,52.8", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    rows = results(tmp_path / "run")
    assert [row["capacity_kw"] for row in rows] == ["26.4", "39.6", "52.8"]
    assert float(rows[0]["worth of capacity_kw"]) > 0
    assert float(rows[0]["envelope of capacity_kw"]) > 0
    assert "knee at capacity_kw" in done.out
    assert "What capacity_kw is worth" in (tmp_path / "run" / "report.html").read_text()


def test_a_value_that_falls_although_the_plan_before_is_feasible_is_pointed_out():
    def row(x, welfare, carried):
        return SweepRow(x, {"x": x}, "CERTIFIED", "", welfare=welfare, carried=carried)

    rows = (row(0, -3.0, {"x": -3.0}), row(1, -2.0, {"x": -2.0}), row(2, -2.5, {"x": -9.0}), row(3, -4.0, {}))
    found = sweeps.Sweep("mine", sweeps.Grid.of({"x": [0, 1, 2, 3]}), rows)
    assert sweeps.curves(found, "x")[0].falls == [1]
    (line,) = fall_lines(found)
    assert line.startswith("at x 2 the welfare is -2.5, and the policy of x 1 would bring -2 there")


def test_a_game_file_and_a_folder_of_them_are_swept(tmp_path):
    (tmp_path / "games").mkdir()
    for name, threshold in (("a", 0.5), ("b", 0.1)):
        library.save_game(library.scenarios.counter_example(threshold=threshold), tmp_path / "games" / f"{name}.json")
    (tmp_path / "games" / "notes.txt").write_text("not a game")
    one = cmpg("sweep", tmp_path / "games" / "a.json", "--threshold", "0,0.5,1", "--out", tmp_path / "one")
    assert one.code == 0, one.err
    assert "a.json: 3 of 3 runs" in one.out
    direct = sweeps.sweep("counter-example", {"threshold": [0.0, 0.5, 1.0]})
    assert [float(row["welfare"]) for row in results(tmp_path / "one")] == [row.welfare for row in direct.rows]
    all_ = cmpg("sweep", tmp_path / "games", "--seed", "1:2", "--out", tmp_path / "all")
    assert all_.code == 0, all_.err
    assert "games: 4 of 4 runs" in all_.out
    assert [(row["file"][-6:], row["seed"]) for row in results(tmp_path / "all")] == [
        ("a.json", "1"), ("a.json", "2"), ("b.json", "1"), ("b.json", "2"),
    ]  # fmt: skip
    (tmp_path / "empty").mkdir()
    assert "no game files" in cmpg("sweep", tmp_path / "empty", "--out", tmp_path / "none").err
    assert "there is no such file" in cmpg("sweep", tmp_path / "c.json", "--out", tmp_path / "none").err
    assert cmpg("report", tmp_path / "all").code == 0
