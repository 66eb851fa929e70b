"""How commands end: broken off, with something missing, or with an answer that is written elsewhere."""

import json
import signal
import subprocess
import sys
import time
from operator import attrgetter
from unittest.mock import patch

import pytest

import cmpg as library
from cmpg.deadline import is_over, limited
from cmpg.equilibrium import runs
from cmpg.equilibrium.quality import OptimalityGap
from cmpg.errors import FileError
from cmpg.games import Objective
from command_line import PATIENCE, PROGRAM, cmpg

SWEEP = ["sweep", "spectrum", "--agents", "2", "--threshold", "0.05:0.4:0.005"]


def test_a_sweep_that_is_broken_off_keeps_its_rows_and_says_how_to_go_on(tmp_path):
    folder, finer = tmp_path / "run", [*SWEEP[:-1], "0.05:0.4:0.001"]  # hundreds of runs, so that it is not over first
    with subprocess.Popen(
        [*PROGRAM, *finer, "--out", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        while not list(folder.glob("runs/0*")):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    assert "Traceback" not in err
    assert f"of 351 runs are in {folder}; --resume goes on\n" in err
    assert "are missing" in out
    assert "report.html" not in out
    assert library.sweeps.load_sweep(folder).rows


def test_a_sweep_that_is_broken_off_before_its_first_row_leaves_nothing_to_tell(tmp_path):
    with patch("cmpg.sweeps.running.solve", side_effect=KeyboardInterrupt):
        ran = cmpg(*SWEEP, "--out", tmp_path / "run")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.splitlines()[-1] == f"interrupted: 0 of 71 runs are in {tmp_path / 'run'}; --resume goes on"
    assert not list((tmp_path / "run" / "runs").iterdir())


@pytest.mark.parametrize("place", ["RunContext.ascend_from", "RunContext.improved", "Runs.best"])
def test_no_row_is_kept_of_a_solve_that_was_interrupted_though_it_may_be_certified(place, tmp_path):
    """With fewer starts, or no pairs, it could be another row than that of a sweep that nobody disturbs."""
    calls, held = [], attrgetter(place)(runs)

    def interrupted(*words, **options):
        calls.append(place)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return held(*words, **options)

    with patch(f"cmpg.equilibrium.runs.{place}", interrupted):
        ran = cmpg(*SWEEP, "--out", tmp_path / "run")
    assert (ran.code, len(calls)) in [(1, 2), (130, 2)]
    rows = library.sweeps.load_sweep(tmp_path / "run").rows
    assert [row.run for row in rows] == list(range(len(rows)))
    assert len(rows) < 20
    if ran.code == 1:
        assert f"interrupted: {len(rows)} of 71 runs are in " in ran.err


def test_a_comparison_that_is_interrupted_while_it_solves_is_over():
    with patch("cmpg.equilibrium.runs.RunContext.improved", side_effect=KeyboardInterrupt):
        ran = cmpg("compare", "counter-example", "--quick", "--restarts", "2")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.splitlines()[-1] == "interrupted; nothing was kept"


def test_a_sweep_over_a_file_that_there_is_not():
    ran = cmpg("sweep", "game.json", "--out", "run")
    assert ran.code == 2
    assert "game.json: there is no such file" in ran.err


def test_a_sweep_whose_page_cannot_be_written_says_so(tmp_path):
    with patch("cmpg.report.sweep_page.write_sweep_page", side_effect=FileError("report.html: cannot be written.")):
        ran = cmpg(*SWEEP[:-1], "0.1,0.2", "--out", tmp_path / "run")
    assert (ran.code, ran.err.splitlines()[-1]) == (2, "error: report.html: cannot be written.")


def test_the_seed_of_a_sweep_may_stand_among_the_words_of_its_plan(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('scenario = "counter-example"\n[options]\nseed = [1, 2]\n')
    assert cmpg("sweep", plan, "--out", tmp_path / "run").code == 0
    assert library.sweeps.load_sweep(tmp_path / "run").grid.axes == {"seed": (1, 2)}


@pytest.mark.parametrize(("word", "told"), [("none", "None"), ("thorough", "PairMoves(trades=16, ")])
def test_the_command_line_decides_whether_pairs_move(word, told):
    ran = cmpg("solve", "spectrum", "--agents", "2", "--improve", word, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["settings"]["improve"].startswith(told)


def test_a_solver_is_chosen_by_its_name():
    ran = cmpg("solve", "counter-example", "--solver", "primal-dual", "--epsilon", "0.01", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["settings"]["solver"].startswith("PrimalDual(tolerance=0.0025")
    assert (
        "--solver is 'simplex'; one of exact, lp, primal-dual"
        in cmpg("solve", "counter-example", "--solver", "simplex").err
    )


def test_an_error_of_the_system_is_one_line():
    problem = OSError(28, "No space left on device", "/tmp/spill")
    with patch("cmpg.equilibrium.solve.solve", side_effect=problem):
        ran = cmpg("solve", "counter-example")
    advice = "Make room on that disk, and run the command again."
    assert (ran.code, ran.err) == (2, f"error: /tmp/spill: No space left on device. {advice}\n")


def test_a_reader_who_goes_away_ends_the_command_without_a_word():
    line = f"{sys.executable} -m cmpg scenarios | true"
    code = subprocess.run(["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], capture_output=True, check=False)
    assert (code.returncode in (0, 1), code.stderr) == (True, b"")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("runs") / "run"
    assert cmpg("solve", "counter-example", "--out", target).code == 0
    return target


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_table_is_written_to_a_file(folder, kind, tmp_path):
    words = ["export", folder, "--what", "policy", "--format", kind]
    told = cmpg(*words)
    ran = cmpg(*words, "--out", tmp_path / "policy.txt")
    assert (told.code, ran.code) == (0, 0)
    assert ran.out == f"written to {tmp_path / 'policy.txt'} (2 rows)\n"
    assert (tmp_path / "policy.txt").read_text() == told.out
    refused = cmpg(*words, "--out", tmp_path / "nowhere" / "policy.csv")
    assert (refused.code, "policy.csv: cannot be written" in refused.err) == (2, True)


def test_what_stands_after_two_dashes_is_no_option():
    ran = cmpg("solve", "--epsilon", "0.1", "--", "counter-example")
    assert (ran.code, ran.out.startswith("CERTIFIED")) == (0, True)


def test_games_are_compared_in_processes_and_shown_as_tables():
    words = ["compare", "counter-example", "--quick", "--restarts", "2"]
    alone, apart = cmpg(*words, "--json"), cmpg(*words, "--json", "--jobs", "2")
    assert alone.code == apart.code

    def told(ran):
        methods = json.loads(ran.out)["games"]["counter-example"]["methods"]
        return [{name: value for name, value in each.items() if name != "seconds"} for each in methods]

    assert told(alone) == told(apart)
    shown = cmpg(*words)
    assert shown.out.startswith("counter-example: potential game")
    assert "CA-CMPG: 1 of 1 answers with a gap of at most 1e-6" in shown.out


def test_the_upper_bound_may_take_work_and_not_time(monkeypatch):
    """A machine that is busy with something else leaves it as much as a quiet one."""
    ended = []

    def bounded(result, *, time_limit):
        with monkeypatch.context() as clock, limited(time.monotonic() + time_limit):
            clock.setattr("time.monotonic", lambda: 1e9)
            ended.append(is_over())
            clock.setattr("time.process_time", lambda: 1e9)
            ended.append(is_over())
        return OptimalityGap(Objective.WELFARE, float(result.values.sum()), None)

    monkeypatch.setattr("cmpg.equilibrium.quality.quality", bounded)
    assert cmpg("solve", "counter-example").code == 0
    assert ended == [False, True]
