"""A solve that is broken off anywhere and gone on with has the bits of one that was not."""

import errno
import os
import signal
import subprocess
import time

import numpy as np
import pytest

import cmpg as library
from cmpg import scenarios
from cmpg.errors import FileError
from cmpg.files import long_runs as files
from cmpg.files.long_runs import long_run, read_checkpoint, write_checkpoint
from cmpg.runs import checkpoints
from cmpg.runs.checkpoints import Notebook, generator_note, noting, restore_generator
from command_line import PROGRAM, cmpg


class Killed(BaseException):
    """What a kill is to a process: nothing of it is caught."""


CASES = {
    "joint, polished": (scenarios.grid_world, {}),
    "joint, restarts, ties at random": (scenarios.spectrum, {"seed": 3, "restarts": 3}),
    "local, a common price, ties at random": (scenarios.charging, {"seed": 1}),
    "local, many moves": (scenarios.charging, {"start": library.Cheapest(), "seed": 2}),
    "local, restarts": (scenarios.grid_world_local, {"seed": 1, "restarts": 2}),
    "local, restarts that search for a price": (lambda: scenarios.charging(capacity=3), {"seed": 1, "restarts": 6}),
    "counting, ties at random": (scenarios.counting_congestion_game, {"seed": 2}),
    "routing": (lambda: scenarios.routing(num_agents=6), {}),
}


def facts(result):
    """All that a result says, but for how long it took."""
    steps = [
        (step.iteration, step.mover, step.gain, step.gains.tobytes(), step.costs.tobytes(), step.potential, step.moves)
        for step in result.trace
    ]
    found = (result.policy.fingerprint(), result.multipliers.tobytes(), result.values.tobytes())
    others = [(each.policy.fingerprint(), each.score) for each in result.equilibria]
    return str(result.status), result.message, found, str(steps), result.moves, result.search_moves, others


def solved(case, path, *, die_at=None):
    """Solve with a checkpoint at every note; die after some of them."""
    build, options = CASES[case]
    written = [0]

    def write(notes):
        written[0] += 1
        if written[0] == die_at:
            write_checkpoint(path, notes)
            raise Killed

    notebook = Notebook(write, every=0.0, known=read_checkpoint(path) if path.exists() else {})
    with noting(notebook):
        return library.solve(build(), **options), written[0]


@pytest.mark.parametrize("case", CASES)
def test_a_solve_that_dies_at_any_note_is_gone_on_with_to_the_same_bits(case, tmp_path):
    build, options = CASES[case]
    whole = facts(library.solve(build(), **options))
    noted, count = solved(case, tmp_path / "never.npz")
    assert facts(noted) == whole
    assert count > 0
    for die_at in sorted({1, count // 3 or 1, count // 2 or 1, count - count // 4, count}):
        path = tmp_path / f"{die_at}.npz"
        with pytest.raises(Killed):
            solved(case, path, die_at=die_at)
        again, rest = solved(case, path)
        assert facts(again) == whole, f"died at note {die_at}"
        assert rest <= count - die_at, "what was over was done again"


def test_generators_are_brought_back_with_all_that_they_have_spawned():
    rng, other = np.random.default_rng(5), np.random.default_rng(5)
    rng.random(3), rng.spawn(4)
    restore_generator(other, generator_note(rng))
    assert other.random() == rng.random()
    assert other.spawn(1)[0].random() == rng.spawn(1)[0].random()


WORDS = ["solve", "charging", "--capacity", "3", "--seed", "1", "--restarts", "12"]


def left(folder):
    return [(folder / name).read_bytes() for name in ("policy.npz", "certificate.json", "game.npz")]


def test_the_command_is_killed_and_resumed_and_the_folder_is_the_same(tmp_path):
    assert cmpg(*WORDS, "--out", tmp_path / "whole").code == 0
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [*PROGRAM, *WORDS, "--out", folder, "--checkpoint", "0.001"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not (folder / "checkpoint.npz").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = cmpg(*WORDS, "--out", folder, "--resume")
    assert done.code == 0, done.err
    assert left(folder) == left(tmp_path / "whole")
    assert sorted(path.name for path in folder.iterdir() if "policy" not in path.name) == [
        *("certificate.json", "game.npz", "request.json", "result.json", "scenario.json", "trace.csv")
    ]
    assert library.load_run(folder).result.certified


def test_only_the_same_question_is_resumed(tmp_path):
    with pytest.raises(Killed), long_run(tmp_path / "run", {"epsilon": 1}, every=1.0, resume=False):
        raise Killed
    with (
        pytest.raises(FileError, match="begun with epsilon 1, and 2 is asked for now"),
        long_run(tmp_path / "run", {"epsilon": 2}, every=1.0, resume=True),
    ):
        pass


def test_a_checkpoint_that_cannot_be_written_is_told_and_the_one_before_is_intact(tmp_path, monkeypatch):
    told = []
    with long_run(tmp_path / "run", {}, every=0.0, resume=False, on_failure=told.append) as run:
        notebook = run._notebook
        notebook.keep("ascent 0", {"moves": 1})

        def full(_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        notebook.keep("ascent 0", {"moves": 2})
        assert "No space left on device" in str(told[0])
        assert read_checkpoint(tmp_path / "run" / files.CHECKPOINT) == {"ascent 0": {"moves": 1}}
        monkeypatch.undo()
    assert read_checkpoint(tmp_path / "run" / files.CHECKPOINT) == {"ascent 0": {"moves": 2}}


def test_writing_takes_a_fifth_of_the_time_at_most(monkeypatch):
    clock, written = [0.0], []

    def write(_):
        written.append(clock[0])
        clock[0] += 3.0

    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])
    notebook = Notebook(write, every=1.0)
    for clock[0] in (
        0.5,
        1.5,
        16.0,
        16.5,
        17.0,
    ):  # the first writing lasts from 1.5 to 4.5, and the next waits for 12 s
        notebook.keep("ascent 0", {})
    assert written == [1.5, 16.5]


def test_a_checkpoint_builds_nothing_but_what_it_may(tmp_path):
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(FileError, match="cannot be written into a checkpoint"):
        write_checkpoint(path, {"ascent 0": {"game": scenarios.counter_example()}})
    write_checkpoint(path, {"ascent 0": {"answers": {0: None}, "seen": (b"\x00\xff",), "cost": float("nan")}})
    assert read_checkpoint(path)["ascent 0"]["seen"] == (b"\x00\xff",)
    files.write_fields(path, {"format": "cmpg-checkpoint", "version": 1, "notes": '{"kind": "os.system"}'})
    with pytest.raises(FileError, match="is not a whole checkpoint"):
        read_checkpoint(path)


def test_checkpoints_need_a_folder():
    assert "name it with --out" in cmpg("solve", "grid-world", "--checkpoint", "1").err
