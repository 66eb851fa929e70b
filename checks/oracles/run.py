"""`python -m checks oracles [--madp FOLDER] [--page FILE]`: compare answers with those of other tools.

Ends with 1 if an answer differs by more than 1e-8. Everything is drawn by seeds, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
import time
import warnings
from pathlib import Path

from checks.oracles.tally import page

TOOLS = {"stormpy": "stormpy", "open_spiel": "pyspiel", "pygambit": "pygambit", "quantecon": "quantecon"}
TOOLS |= {"nashpy": "nashpy", "cvxpy": "cvxpy", "gymnasium": "gymnasium"}
"""Distributions, and the modules that they bring."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m checks oracles", description=__doc__.splitlines()[0])
    parser.add_argument("--madp", type=Path, help="folder of .dpomdp files of the MADP toolbox")
    parser.add_argument("--page", type=Path, help="write the table to this file, as Markdown")
    given = parser.parse_args(argv)
    missing = [tool for tool, module in TOOLS.items() if importlib.util.find_spec(module) is None]
    if missing:
        parser.error(f"{', '.join(missing)} cannot be asked: install them with pip install 'cmpg[oracles]'.")
    from checks.oracles import questions

    warnings.simplefilter("ignore", DeprecationWarning)  # of the tools among themselves
    tallies = []
    for check in (
        questions.constrained_responses,
        questions.free_responses,
        questions.equilibria_of_others,
        questions.equilibria_of_ours,
        questions.public_games,
        lambda: questions.public_processes(given.madp),
    ):
        began = time.monotonic()
        for tally in check():
            tallies.append(tally)
            print(f"{tally}  ({time.monotonic() - began:.0f} s)", flush=True)
            began = time.monotonic()
    versions = {tool: importlib.metadata.version(tool) for tool in TOOLS}
    if given.page is not None:
        given.page.write_text(page(tallies, versions), "utf-8")
    differ = [tally for tally in tallies if not tally.agrees]
    for tally in differ:
        print(f"DIFFERS: {tally}", file=sys.stderr)
    return 1 if differ else 0
