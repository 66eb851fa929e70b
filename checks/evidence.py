"""Write docs/evidence.md: what each check found when it ran last, with the date and the commit.

    python -m checks evidence

Checks leave their headline in build/evidence when they have run in full. A headline of which there is no new record
stays as the page has it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

from checks import BUILD, ROOT

FOLDER = BUILD / "evidence"
PAGE = ROOT / "docs" / "evidence.md"

QUESTIONS = {
    "claims": "Is what is called proved true?",
    "sweep": "Is what `solve` says true?",
    "forgeries": "Are forged proofs refused?",
    "oracles": "Do other tools agree?",
    "quality": "How good is one solve?",
    "recommendations": "Does no agent gain by disobeying?",
    "learning": "Do learners keep their promises?",
    "judging": "Do audits by episodes hold?",
    "fuzz": "What do corrupted files do?",
    "signals": "Is anything lost by an interruption?",
    "mutants": "Do the tests notice a wrong line?",
    "machines": "Are the tests green everywhere?",
}
"""What each headline answers, by check, in the order of the page."""

SECTIONS = {"bench": "How long a solve takes", "learning-samples": "How many samples learning takes"}
"""Tables below the headlines that users plan with, by check."""

HEAD = """\
# Evidence

What examines the library beyond its tests, and what it found when it ran last. The table is written by
`python -m checks evidence` from the records of these runs; each can be repeated with `python -m checks` and its name,
which writes all details to `build/`.

| question | found | check | date | commit |
|---|---|---|---|---|
"""

TAIL = """
Claims and solves are judged by `tests/oracles/judge.py`: rationals only, brute force, and no line of the library in it.
A small run of most of these is part of `make test`.
"""


def record(check: str, finding: str, table: str = "") -> None:
    """Keep what a check has found that has run in full.

    The finding is a sentence without a full stop, for one cell of a table; the table, in Markdown, is for `SECTIONS`.
    """
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    FOLDER.mkdir(parents=True, exist_ok=True)
    headline = {
        "finding": finding,
        "table": table,
        "date": datetime.date.today().isoformat(),
        "commit": commit or "unknown",
    }
    (FOLDER / f"{check}.json").write_text(json.dumps(headline) + "\n", "utf-8")


def page(previous: str, folder: Path) -> str:
    """Return the page: every new record of a folder, and what the previous page has elsewhere."""
    rows = []
    for check, question in QUESTIONS.items():
        path = folder / f"{check}.json"
        earlier = re.search(rf"^\| .* \| `{check}` \| .*$", previous, re.MULTILINE)
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            rows.append(f"| {question} | {found['finding']} | `{check}` | {found['date']} | {found['commit']} |")
        elif earlier:
            rows.append(earlier[0])
    sections = []
    for check, title in SECTIONS.items():
        path = folder / f"{check}.json"
        earlier = re.search(rf"^## {title}\n.*?(?=^## |\Z)", previous, re.MULTILINE | re.DOTALL)
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            where = f"{found['finding']} (`{check}`, {found['date']}, {found['commit']})."
            sections.append(f"\n## {title}\n\n{where}\n\n{found['table']}\n")
        elif earlier:
            sections.append("\n" + earlier[0].rstrip("\n") + "\n")
    return HEAD + "\n".join(rows) + "\n" + TAIL + "".join(sections)


def main(argv: list[str]) -> int:
    """Write the page, and name the checks that are missing on it."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    text = page(PAGE.read_text("utf-8") if PAGE.exists() else "", FOLDER)
    PAGE.write_text(text, "utf-8")
    for check in (*QUESTIONS, *SECTIONS):
        if f"`{check}`" not in text:
            print(f"{check} has not run yet: python -m checks {check}", file=sys.stderr)
    return 0
