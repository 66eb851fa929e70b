"""Folders that are written for long: one writer, resumed to the same bits, whatever ended the first call."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cmpg.errors import FileError
from cmpg.files.containers import write_text
from cmpg.files.long_runs import check_request, sole_writer, write_request
from command_line import PATIENCE, PROGRAM, cmpg

LEARN = ["learn", "spectrum", "--epsilon", "0.4", "--seeds", "3", "--seed", "7"]


def learned(folder):
    """All that a learning run leaves, but for how long it took."""
    records = [json.loads(line) for line in (folder / "seeds.jsonl").read_text().splitlines()]
    for record in records:
        del record["seconds"]
    return records, [path.read_bytes() for path in sorted(folder.glob("*.npz"))]


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn") / "whole"
    assert cmpg(*LEARN, "--out", folder).code == 0
    return folder


@pytest.fixture(scope="module")
def whole(whole_folder):
    return learned(whole_folder)


def ended_early(folder, number, *more):
    """Send a signal once a seed is there, and return how the command ended."""
    line = [*PROGRAM, *LEARN, "--out", str(folder), *more]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    records = folder / "seeds.jsonl"
    while not (records.exists() and records.stat().st_size):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def test_a_learning_run_that_was_killed_is_resumed_to_the_same_bits(tmp_path, whole):
    folder = tmp_path / "run"
    ended_early(folder, signal.SIGKILL)
    done = cmpg(*LEARN, "--out", folder, "--resume", "--jobs", "2")
    assert done.code == 0, done.err
    assert learned(folder) == whole
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_sigterm_is_ctrl_c_and_keeps_the_seeds_that_are_done(tmp_path, whole):
    folder = tmp_path / "run"
    code, out, err = ended_early(folder, signal.SIGTERM, "--seeds", "500")
    assert code == 1
    assert f"of 500 seeds are in {folder}; --resume goes on\n" in err
    assert "CERTIFIED" in out
    done = [record for record in learned(folder)[0] if record["status"] != "INTERRUPTED"][:3]
    assert done == whole[0][: len(done)]


def test_more_seeds_can_be_asked_for_later(tmp_path, whole):
    folder = tmp_path / "run"
    assert cmpg(*LEARN[:4], "--seeds", "1", *LEARN[6:], "--out", folder).code == 0
    assert cmpg(*LEARN, "--out", folder, "--resume").code == 0
    assert learned(folder) == whole


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("--epsilon", "0.3"), "begun with epsilon 0.4, and 0.3 is requested now"),
        (("--to-busy", "0.3"), "begun with another game"),
    ],
)
def test_only_the_same_run_is_resumed(whole_folder, change, complaint):
    done = cmpg(*LEARN, *change, "--out", whole_folder, "--resume")
    assert (done.code, complaint in done.err) == (2, True)


def test_resuming_needs_a_folder_that_holds_a_run(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "name it with --out" in cmpg(*LEARN, "--resume").err
    assert "holds notes.txt, and no run that could be resumed" in cmpg(*LEARN, "--out", tmp_path, "--resume").err
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_second_writer_is_told_who_the_first_one_is(tmp_path):
    folder = tmp_path / "run"
    with sole_writer(folder):
        for resume in (False, True):
            with (
                pytest.raises(FileError, match=rf"process {os.getpid()} on .* is writing there"),
                sole_writer(folder, resume=resume),
            ):
                pass
    with sole_writer(folder, resume=True):
        pass
    assert not list(folder.iterdir())


def test_a_lock_ends_with_its_process_and_half_written_files_are_removed(tmp_path):
    folder = tmp_path / "run"
    code = (
        "import os, signal, sys; from pathlib import Path; from cmpg.files.long_runs import sole_writer\n"
        "folder = Path(sys.argv[1])\n"
        "with sole_writer(folder):\n"
        "    (folder / '.policy.npz.0123abcd').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)])
    assert len(list(folder.iterdir())) == 2
    with pytest.raises(FileError, match="is not empty"), sole_writer(folder):
        pass
    with sole_writer(folder, resume=True):
        assert [path.name for path in folder.iterdir()] == [".writer"]


def test_a_full_disk_is_told_and_what_was_there_is_intact(tmp_path, monkeypatch):
    write_request(tmp_path, {"command": "learn"})

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"request\.json: cannot be written .No space left on device"):
        write_text(tmp_path / "request.json", "new")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["request.json"]
    assert check_request(tmp_path, {"command": "learn"})
