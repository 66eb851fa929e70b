"""The check of signals, in short: each signal once, at a random moment of a command of its own."""

import random
import signal
import sys
from pathlib import Path

import pytest
from checks.signals import COMMANDS, SIGNALS, drawn, interrupted, send_signals

in_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="handlers are looked up in /proc")


def test_every_command_meets_every_signal():
    trials = drawn(list(COMMANDS), len(COMMANDS) * len(SIGNALS), random.Random(1))
    assert len({(command, kind) for _, command, kind, _ in trials}) == len(trials)


@in_proc
def test_a_command_that_says_much_before_the_signal_is_not_held_up():
    script = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
print("x" * 10**6, flush=True)  # more than a pipe holds
while True:
    sum(range(10**5))
"""
    ended = interrupted([sys.executable, "-c", script], signal.SIGTERM, 0.3)
    assert (ended.code, len(ended.out)) == (130, 10**6 + 1)


@in_proc
def test_three_signals_end_commands_as_promised():
    """One command that is not resumed, one that is, one that only reads; `python -m checks signals` has them all."""
    outcomes = send_signals(["solve", "sweep", "export"], trials=3, seed=1, jobs=1)
    assert {each.signal for each in outcomes} == {"SIGINT", "SIGTERM", "SIGHUP"}
    assert [each for each in outcomes if each.wrong] == []
