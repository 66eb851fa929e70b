"""Run all tests under coverage, and write what they run through, room by room, to build/coverage.md.

    python -m checks cover           hours on a slow machine: coverage makes the tests about twice as slow
    python -m checks cover --again   the table of the last measurement

The exit code is 1 if an aim is missed: 95 % of the whole, 100 % of what readers of files and certificates rely on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from checks import BUILD, ROOT

PACKAGE = "src/cmpg/"
AIM = 95.0
WHOLE = ("equilibrium/certificate.py", "files/")
"""What must be run through as a whole: a file, or a room."""

COUNTED = ("num_statements", "covered_lines", "num_branches", "covered_branches")

PAGE = """# Coverage

Written by `python -m checks cover`, which runs all tests under `coverage`. A branch is a way out of a
decision: an `if` has two, and both must be taken. The aims are {aim:g} % of the whole, and all of what all users rely
on: the certificate, and the room that reads and writes files. Nothing is left out but what only type checkers read. The
kernels in C are not in the table; `python -m checks sanitize` is for them.

| room | statements | run | branches | taken | both |
|---|---:|---:|---:|---:|---:|
{rows}
"""


def sums(files: dict[str, Any]) -> dict[str, Counter[str]]:
    """Add up what was measured by room, with the files that have an aim of their own and the whole at the end."""
    found: dict[str, Counter[str]] = {}
    for path, measured in sorted(files.items()):
        name = path[path.index(PACKAGE) + len(PACKAGE) :]
        room = name.partition("/")[0] + "/" if "/" in name else "the files beside the rooms"
        for key in (room, *(name for each in WHOLE if each == name), "all"):
            found.setdefault(key, Counter()).update({what: measured["summary"][what] for what in COUNTED})
    return dict(sorted(found.items(), key=lambda each: (each[0] == "all", each[0])))


def shares(counts: Counter[str]) -> tuple[float, float, float]:
    """Return the share of statements, of branches and of both, in per cent."""
    statements, lines, branches, taken = (counts[what] for what in COUNTED)
    return (
        100 * lines / max(statements, 1),
        100 * taken / branches if branches else 100.0,
        100 * (lines + taken) / max(statements + branches, 1),
    )


def row(name: str, counts: Counter[str]) -> str:
    """Return a line of the table; what is not complete never rounds to 100 %."""
    texts = [f"{share if share == 100 else min(share, 99.9):.1f} %" for share in shares(counts)]
    label = name if " " in name or name == "all" else f"`{name}`"
    return f"| {label} | {counts[COUNTED[0]]:,} | {texts[0]} | {counts[COUNTED[2]]:,} | {texts[1]} | {texts[2]} |"


def missed(found: dict[str, Counter[str]]) -> list[str]:
    """Return the aims that are missed, by branches alone or by both."""
    wanted = {"all": AIM} | dict.fromkeys(WHOLE, 100.0)
    least = {name: min(shares(found[name])[1:]) for name in wanted}
    return [
        f"{name}: {least[name]:.2f} %, and {aim:g} % are wanted" for name, aim in wanted.items() if least[name] < aim
    ]


def measure(target: Path) -> None:
    """Run all tests under coverage, and write what was measured as JSON."""
    target.parent.mkdir(parents=True, exist_ok=True)
    tests = ("run", "-m", "pytest", "-n", "2", "--dist", "worksteal", "-q")
    for words in (("erase",), tests, ("combine", "--quiet"), ("json", "--quiet", "-o", str(target))):
        subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT, check=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="run no tests")
    data = BUILD / "coverage.json"
    if not parser.parse_args(argv).again:
        measure(data)
    found = sums(json.loads(data.read_text("utf-8"))["files"])
    page = PAGE.format(aim=AIM, rows="\n".join(row(name, counts) for name, counts in found.items()))
    (BUILD / "coverage.md").write_text(page, "utf-8")
    print(page)
    for each in missed(found):
        print(f"missed: {each}", file=sys.stderr)
    return 1 if missed(found) else 0
