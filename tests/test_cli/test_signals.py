"""The check of signals, in short: each signal once, at a random moment of a command of its own."""

from pathlib import Path

import pytest
from checks.signals import send_signals


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="handlers are looked up in /proc")
def test_three_signals_end_commands_as_promised():
    """One command that is not resumed, one that is, one that only reads; `python -m checks signals` has them all."""
    outcomes = send_signals(["solve", "sweep", "export"], trials=3, seed=1, jobs=1)
    assert {each.signal for each in outcomes} == {"SIGINT", "SIGTERM", "SIGHUP"}
    assert [each for each in outcomes if each.wrong] == []
