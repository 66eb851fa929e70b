"""Progress of the command while nothing else is printed, and no work after its time limit."""

import io
import sys
import threading
from contextlib import redirect_stderr
from unittest.mock import patch

import pytest

from cmpg.cli.main import main
from cmpg.cli.output import ProgressLine
from cmpg.cmdp.exact import Exact
from command_line import PATIENCE, cmpg


class _Waiting(io.StringIO):
    """Standard error that wakes whoever waits for a text."""

    def __init__(self, text):
        super().__init__()
        self._text, self.came = text, threading.Event()

    def write(self, text):
        if self._text in text:
            self.came.set()
        return super().write(text)


@pytest.mark.parametrize(
    ("slow", "told"),
    [
        ("cmpg.cli.targets.Target.build", "building the game  "),
        ("cmpg.equilibrium.starts.min_cost.feasible_start", "looking for a feasible start  "),
    ],
)
def test_a_long_silence_is_told_with_its_phase(slow, told, monkeypatch):
    err = _Waiting(told)

    def wait(*_, **__):
        assert err.came.wait(PATIENCE)
        raise MemoryError

    monkeypatch.setattr(sys, "argv", ["cmpg", "solve", "counter-example", "--start", "min-cost"])
    with patch(slow, wait), redirect_stderr(err), pytest.raises(SystemExit):
        main()
    assert err.came.is_set()


def test_a_line_goes_on_after_a_silence():
    err = _Waiting("weighing  ")
    with redirect_stderr(err), ProgressLine("weighing") as line:
        assert err.came.wait(PATIENCE)
        line.show("weighed", whole=True)
    assert err.getvalue().splitlines()[-1] == "weighed"


@pytest.mark.parametrize("name", ["spectrum", "grid-world"])
def test_no_best_response_is_computed_after_the_time_limit(name):
    with patch.object(Exact, "__call__", side_effect=AssertionError("a best response after the deadline")):
        assert cmpg("solve", name, "--time-limit", 0).code == 1
