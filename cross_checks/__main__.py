"""`python -m cross_checks [--madp FOLDER] [--page FILE]`: ask the tools of others, and write down how far apart we are.

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

from cross_checks.tally import page

TOOLS = {"stormpy": "stormpy", "open_spiel": "pyspiel", "pygambit": "pygambit", "quantecon": "quantecon"}
TOOLS |= {"nashpy": "nashpy", "cvxpy": "cvxpy", "gymnasium": "gymnasium"}
"""Distributions, and the modules that they bring."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cross_checks", description=__doc__.splitlines()[0])
    parser.add_argument("--madp", type=Path, help="folder of .dpomdp files of the MADP toolbox")
    parser.add_argument("--page", type=Path, help="write the table to this file, as Markdown")
    given = parser.parse_args()
    missing = [tool for tool, module in TOOLS.items() if importlib.util.find_spec(module) is None]
    if missing:
        parser.error(f"{', '.join(missing)} cannot be asked: install them with pip install 'cmpg[oracles]'.")
    from cross_checks import checks

    warnings.simplefilter("ignore", DeprecationWarning)  # of the tools among themselves
    tallies = []
    for check in (
        checks.constrained_responses,
        checks.free_responses,
        checks.equilibria_of_others,
        checks.equilibria_of_ours,
        checks.public_games,
        lambda: checks.public_processes(given.madp),
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


if __name__ == "__main__":
    sys.exit(main())
