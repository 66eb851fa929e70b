"""The check of signals, in short: one for each of five commands, at random moments."""

from pathlib import Path

import pytest
from checks.signals import send_signals


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="handlers are looked up in /proc")
def test_five_signals_end_commands_as_promised():
    commands = ["solve", "learn", "sweep --jobs 2", "report", "export"]
    outcomes = send_signals(commands, trials=5, seed=1, jobs=1)
    assert len(outcomes) == 5
    assert [each for each in outcomes if each.wrong] == []
