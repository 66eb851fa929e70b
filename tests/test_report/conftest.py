"""Folders that several files of tests read, and none changes."""

from functools import cache

import pytest
from run_folders import PageReader, command, solve_into


class Memory:
    """What a function answers, by its argument: asked for as in a dict, and made at the first time."""

    def __init__(self, make):
        self._make = cache(make)

    def __getitem__(self, name):
        return self._make(name)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The run folder of a scenario, with its page in it, both written by the command."""
    folder = tmp_path_factory.mktemp("runs")

    def solved(name):
        run = solve_into(folder / name, name)
        assert command("report", run) == 0
        return run

    return Memory(solved)


@pytest.fixture(scope="session")
def pages(runs):
    """The page of a scenario, as it was read."""
    return Memory(lambda name: PageReader((runs[name] / "report.html").read_text("utf-8")))


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """A learning run of two seeds, written by the command."""
    folder = tmp_path_factory.mktemp("learned") / "run"
    words = ["learn", "spectrum", "--mode", "shared", "--epsilon", "0.5", "--delta", "0.1", "--seeds", "2"]
    assert command(*words, "--out", folder) == 0
    return folder
