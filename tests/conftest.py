"""Hypothesis tries the same examples on every run; `HYPOTHESIS_PROFILE=explore` tries new ones."""

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True)
def no_width_from_outside(monkeypatch):
    """The command wraps its lines where COLUMNS says so, and a test runner may say so."""
    monkeypatch.delenv("COLUMNS", raising=False)


# A shell starts background jobs with Ctrl-C ignored, and its children inherit that; the tests of interruptions send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
