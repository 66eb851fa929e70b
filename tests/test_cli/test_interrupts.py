"""Signals: the command says in its last line what was kept, and nothing that was there before is lost."""

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from command_line import PROGRAM, cmpg

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
NOTHING = "interrupted; nothing was kept"
LIMIT = 600  # seconds until a command that does not end counts as hanging, on however slow a machine

WHILE_IMPORTING = """
import os, sys
number, name = int(sys.argv.pop(1)), sys.argv.pop(1)
class Interrupting:
    def find_spec(self, module, *_):
        if module == name:
            sys.meta_path.remove(self)
            exec("os.kill(os.getpid(), number)")  # as in a dataclass, which is made of text: Python remembers that
sys.meta_path.insert(0, Interrupting())
"""
"""Sends a signal to this process when a module is about to be imported."""

COMMAND = "from cmpg.__main__ import main; main()"


def run(script, *words):
    """Run a script and the command after it, as a module: there Python has more to say about the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "command_and_signal.py").write_text(script + COMMAND, "utf-8")
        line = [sys.executable, "-m", "command_and_signal", *map(str, words)]
        paths = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PYTHONPATH": paths}
        return subprocess.run(line, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)


def last_line(text):
    return text.rstrip("\n").rpartition("\n")[2]


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert cmpg("solve", "counter-example", "--out", folder).code == 0
    return folder


@pytest.mark.parametrize(
    ("module", "number"),
    [
        *(("numpy", number) for number in SIGNALS),
        *((module, signal.SIGINT) for module in ("typer", "numpy.linalg", "cmpg.policy", "cmpg.equilibrium")),
    ],
)
def test_a_signal_while_modules_are_imported_is_answered_in_one_line(module, number):
    ran = run(WHILE_IMPORTING, int(number), module, "solve", "counter-example")
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, "", NOTHING)


@pytest.mark.parametrize(
    ("module", "words", "number"),
    [
        ("cmpg.report.page", ["report", "{run}"], signal.SIGINT),
        ("cmpg.report.tables", ["export", "{run}", "--out", "{new}"], signal.SIGTERM),
        *(("cmpg.paper.literal", ["reproduce", "--quick", "--out", "{new}"], number) for number in SIGNALS),
        ("cmpg.sweeps.running", ["sweep", "counter-example", "--seed", "1:3", "--out", "{new}"], signal.SIGHUP),
        *(("cmpg.equilibrium.solve", ["solve", "counter-example", "--out", "{new}"], number) for number in SIGNALS),
        ("cmpg.comparison.comparison", ["compare", "counter-example", "--quick", "--out", "{new}.md"], signal.SIGINT),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_command_says_that_nothing_was_kept(module, words, number, solved, tmp_path):
    filled = [word.format(run=solved, new=tmp_path / "new") for word in words]
    ran = run(WHILE_IMPORTING, int(number), module, *filled)
    assert (ran.returncode, ran.stdout, last_line(ran.stderr)) == (130, "", NOTHING)
    assert not list(tmp_path.iterdir())
    assert not (solved / "report.html").exists()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_after_the_answer_changes_nothing(number):
    at_exit = f"import atexit, os; atexit.register(os.kill, os.getpid(), {int(number)}); "
    ran = run(at_exit, "scenarios")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "grid-world" in ran.stdout


def test_a_signal_that_hits_the_exit_itself_comes_after_the_answer():
    at_flush = """
import os, signal, sys
class Stdout:
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name): return getattr(self.inner, name)
    def flush(self):
        self.inner.flush()
        sys.setprofile(lambda frame, event, _: event == "call" and frame.f_code.co_name == "ignore_signals"
                       and (sys.setprofile(None), os.kill(os.getpid(), signal.SIGTERM)))
sys.stdout = Stdout(sys.stdout)
"""
    ran = run(at_flush, "scenarios")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_signal_while_a_class_is_made_is_answered_in_one_line():
    """Before Python 3.12 an interrupt inside `__set_name__` comes out as a RuntimeError."""
    script = """
import os, signal, time
import cmpg.__main__, cmpg.cli.main

class Interrupted:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

def run():
    class Made:
        field = Interrupted()

cmpg.cli.main.main = run
cmpg.__main__.main()
"""
    done = run(script)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


CALLED_BACK = """
import os, signal, sys, time, weakref
import cmpg.__main__, cmpg.cli.main

class Thing: pass

def command():
    thing = Thing()
    reference = weakref.ref(thing, lambda _: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0)))
    del thing  # what the callback raises is ignored by Python
    for _ in range(3000):
        time.sleep(0.02)
    sys.exit(0)

cmpg.cli.main.main = command
cmpg.__main__.main()
"""

CLEANING_UP = """
import os, signal, sys
import cmpg.__main__, cmpg.cli.main

def command():
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        sum(range(10**6))
    finally:
        None.position  # what a library does that is interrupted while it writes

cmpg.cli.main.main = command
cmpg.__main__.main()
"""


@pytest.mark.parametrize("command", [CALLED_BACK, CLEANING_UP])
def test_a_signal_is_answered_in_one_line_though_other_code_swallows_the_exception(command):
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (130, "interrupted; nothing was kept\n")


def test_a_signal_that_the_parent_ignores_stays_ignored():
    line = [*PROGRAM, "solve", "counter-example"]
    with subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as running:
        running.send_signal(signal.SIGHUP)
        out, _ = running.communicate(timeout=LIMIT)
    assert (running.returncode, out.startswith("CERTIFIED")) == (0, True)


def test_a_closed_terminal_keeps_the_runs_of_a_sweep(tmp_path):
    folder = tmp_path / "run"
    words = ["sweep", "spectrum", "--agents", "2", "--threshold", "0.05:0.4:0.001", "--out", str(folder)]
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [*PROGRAM, *words])
    while not list(folder.glob("runs/0*")):
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.close(terminal)  # the kernel sends SIGHUP, and whatever is written to the terminal is an error
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    rows = (folder / "results.csv").read_text().splitlines()
    assert len(rows) - 1 == len(list(folder.glob("runs/*"))) < 351
    assert {path.name for path in folder.iterdir()} == {"request.json", "results.csv", "timings.csv", "runs"}


AFTER_SEED = """
import os, pathlib, signal
replace = pathlib.Path.replace
def interrupted(self, target):
    done = replace(self, target)
    if target.name == "seeds.jsonl" and len(target.read_text().splitlines()) == SEEDS:
        os.kill(os.getpid(), signal.SIGTERM)
    return done
pathlib.Path.replace = interrupted
"""
"""Sends SIGTERM as soon as so many seeds are on the disk."""


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_seed_that_is_on_the_disk_counts_though_the_signal_came_at_once(seeds, tmp_path):
    folder = tmp_path / "run"
    words = ["learn", "spectrum", "--agents", "1", "--mode", "shared", "--epsilon", "0.9", "--seeds", "4"]
    ran = run(AFTER_SEED.replace("SEEDS", str(seeds)), *words, "--out", folder)
    assert ran.returncode == 1, ran.stderr
    assert last_line(ran.stderr) == f"interrupted: {seeds} of 4 seeds are in {folder}; --resume goes on"
    assert ran.stdout.count("CERTIFIED") == seeds
    records = [json.loads(line) for line in (folder / "seeds.jsonl").read_text().splitlines()]
    assert [record["seed"] for record in records] == list(range(seeds))
    assert cmpg(*words, "--out", folder, "--resume").code == 0


def test_learning_that_is_interrupted_before_its_first_seed_can_be_resumed(tmp_path):
    folder = tmp_path / "run"
    words = ["learn", "spectrum", "--agents", "1", "--mode", "shared", "--epsilon", "0.9", "--seeds", "2"]
    ran = run(WHILE_IMPORTING, int(signal.SIGHUP), "cmpg.report.learning_page", *words, "--out", folder)
    assert ran.returncode == 130
    ran = run(AFTER_SEED.replace("SEEDS", "0"), *words, "--out", folder, "--resume")
    assert last_line(ran.stderr) == f"interrupted: 0 of 2 seeds are in {folder}; --resume goes on"
    assert cmpg(*words, "--out", folder, "--resume").code == 0


def test_an_interrupted_solve_answers_at_once_without_an_upper_bound():
    with patch("cmpg.cli.output.ProgressLine.show", side_effect=KeyboardInterrupt):
        ran = cmpg("solve", "grid-world", "--seed", "1", "--json")
    assert not json.loads(ran.out)["quality"]
    assert json.loads(cmpg("solve", "grid-world", "--seed", "1", "--json").out)["quality"]
