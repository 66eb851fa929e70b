"""Tests run in a random order; Hypothesis tries the same examples on every run.

`--order SEED` repeats an order, and `--order 0` is that of the files. `HYPOTHESIS_PROFILE=explore` tries new examples.
"""

import os
import random
import signal

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser):
    parser.addoption("--order", type=int, metavar="SEED", help="order of the tests; 0 for that of the files")


def pytest_configure(config):
    if config.option.order is None:
        given = getattr(config, "workerinput", {})  # what a worker of pytest-xdist was given below
        config.option.order = given.get("order", random.SystemRandom().randrange(1, 1_000_000))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["order"] = node.config.option.order


def pytest_collection_modifyitems(config, items):
    """Shuffle folders, the files of each, and the tests of each file: what they share is used while it is there."""
    if config.option.order:
        rng = random.Random(config.option.order)
        places = {place: rng.random() for item in items for place in (item.path.parent, item.path)}
        items.sort(key=lambda item: (places[item.path.parent], places[item.path], rng.random()))


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line(f"random order: repeat it with --order {config.option.order}")


# The command wraps its lines where COLUMNS says so, and a test runner may say so.
os.environ.pop("COLUMNS", None)

# A shell starts background jobs with Ctrl-C ignored, and its children inherit that; the tests of interruptions send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Under nohup, SIGHUP is ignored, and commands would inherit that: it is tested as from a terminal.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
