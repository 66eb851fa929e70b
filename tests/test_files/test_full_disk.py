"""A full disk: the error says so, what was there is whole, and what was computed is shown."""

import errno
import os
from pathlib import Path

import pytest

import cmpg as library
from cmpg.errors import FileError
from cmpg.paper import QUICK, Evidence, counter_examples
from cmpg.paper.reproduction import reproduce, write
from command_line import cmpg

ROOM = "Make room on that disk, and run the command again."


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_learning_shows_the_seeds_that_were_kept(tmp_path, monkeypatch):
    folder, fsync = tmp_path / "run", os.fsync

    def full_after_two_seeds(descriptor):
        records = folder / "seeds.jsonl"
        if records.exists() and len(records.read_text().splitlines()) == 2:
            full()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_after_two_seeds)
    words = ["learn", "spectrum", "--agents", "1", "--mode", "shared", "--epsilon", "0.9", "--seeds", "4"]
    ran = cmpg(*words, "--out", folder)
    assert ran.code == 2
    assert ran.out.count("CERTIFIED") == 2
    assert "No space left on device" in ran.err.splitlines()[-1]
    assert ran.err.endswith(f"{ROOM}\n")
    monkeypatch.undo()
    assert cmpg(*words, "--out", folder, "--resume").code == 0


def test_a_run_folder_that_cannot_be_filled_is_not_left_half_full(tmp_path, monkeypatch):
    folder, fsync = tmp_path / "run", os.fsync
    monkeypatch.setattr(os, "fsync", lambda each: full() if (folder / "policy.npz").exists() else fsync(each))
    ran = cmpg("solve", "counter-example", "--out", folder)
    assert (ran.code, ran.out.startswith("CERTIFIED")) == (2, True)
    assert ran.err.endswith(f"{ROOM}\n")
    assert not folder.exists()


def test_an_interrupt_while_a_run_folder_is_written_leaves_an_empty_one_empty(tmp_path, monkeypatch):
    result = library.solve(library.scenarios.counter_example())

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        result.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_reproduction_that_does_not_fit_leaves_the_earlier_one(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    found = reproduce(Evidence(1, QUICK), sections=[counter_examples.SECTION])
    write(found, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(FileError, match=rf"out: cannot be written \(No space left on device\)\. {ROOM}"):
        write(found, folder)
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
