"""Folders that several files of tests read, and none changes."""

import pytest
from run_folders import command


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """A learning run of two seeds, written by the command."""
    folder = tmp_path_factory.mktemp("learned") / "run"
    words = ["learn", "spectrum", "--mode", "shared", "--epsilon", "0.5", "--delta", "0.1", "--seeds", "2"]
    assert command(*words, "--out", folder) == 0
    return folder
