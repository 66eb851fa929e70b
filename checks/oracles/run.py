"""`python -m checks oracles [--madp FOLDER]`: compare answers with those of other tools.

Ends with 1 if an answer differs by more than 1e-8. Everything is drawn by seeds, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import subprocess
import sys
import time
import warnings
from pathlib import Path

from checks import BUILD, DATA, ROOT, evidence
from checks.environments import environment
from checks.oracles.tally import page

TOOLS = {"stormpy": "stormpy", "open_spiel": "pyspiel", "pygambit": "pygambit", "quantecon": "quantecon"}
TOOLS |= {"nashpy": "nashpy", "cvxpy": "cvxpy", "gymnasium": "gymnasium"}
"""Distributions, and the modules that they bring."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m checks oracles", description=__doc__.splitlines()[0])
    madp = DATA / "madp" if (DATA / "madp").is_dir() else None
    parser.add_argument("--madp", type=Path, default=madp, help="folder of .dpomdp files of the MADP toolbox")
    given = parser.parse_args(argv)
    if any(importlib.util.find_spec(module) is None for module in TOOLS.values()):
        # The tools of others are not pinned: their new releases are what this is for. They have an environment of their
        # own; of MOMAland only the environments are used.
        ours = ("-e", ".[oracles,frames,plot]", "pytest", "hypothesis", "pygame-ce")
        python = environment("oracles", ours, ("--no-deps", "momaland"))
        pages = [python, "-m", "pytest", "-q", "tests/test_interop", "docs/coming-from", "docs/coming-from.md"]
        tested = subprocess.run(pages, cwd=ROOT).returncode
        return tested or subprocess.run([python, "-m", "checks", "oracles", *argv], cwd=ROOT).returncode
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
    BUILD.mkdir(exist_ok=True)
    (BUILD / "oracles.md").write_text(page(tallies, versions), "utf-8")
    answers, tools = sum(tally.answers for tally in tallies), len({tally.tool for tally in tallies})
    largest = max(tally.difference for tally in tallies)
    evidence.record("oracles", f"{answers:,} answers beside those of {tools} tools; largest difference {largest:.1e}")
    differ = [tally for tally in tallies if not tally.agrees]
    for tally in differ:
        print(f"DIFFERS: {tally}", file=sys.stderr)
    return 1 if differ else 0
