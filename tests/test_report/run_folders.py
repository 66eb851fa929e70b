"""Run folders for the tests of the page, and a reader of its tables that knows nothing of how the page is made."""

import sys
from html.parser import HTMLParser
from pathlib import Path

from cmpg.cli.main import main
from cmpg.equilibrium.sensitivity import sensitivity
from cmpg.files.learning_folder import is_learning_run, load_learning_run
from cmpg.files.run_folder import load_run
from cmpg.report import page
from cmpg.report.learning_page import write_learning_page

SOLVED = {
    "counter-example": ["--restarts", "10", "--seed", "1"],
    "grid-world": [],
    "grid-world-local": [],
    "congestion": [],
    "spectrum": [],
    "charging": [],
    "robots": ["--agents", "3", "--horizon", "20", "--epsilon", "0.01"],
    "routing": ["--agents", "8"],
}
"""Scenarios, and the options that make them small enough for a test."""


def command(*words):
    """Run `cmpg …` in this process, and return its exit code."""
    before = sys.argv
    sys.argv = ["cmpg", *(str(word) for word in words)]
    try:
        main()
    except SystemExit as ending:
        return ending.code or 0
    finally:
        sys.argv = before
    return 0


def solve_into(folder: Path, scenario: str) -> Path:
    """Solve a scenario into a new run folder."""
    assert command("solve", scenario, *SOLVED[scenario], "--out", folder) in (0, 1)
    return folder


def write_page(folder: Path, target: Path) -> int:
    """Write the page of a folder as `cmpg report` does, and return its size."""
    if is_learning_run(folder):
        return write_learning_page(load_learning_run(folder), target)
    run = load_run(folder)
    return page.write_page(run, target, sensitivity=sensitivity(run.result))


class PageReader(HTMLParser):
    """Collects the tables by id, the links, and the visible words."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.links, self.words, self.attributes = {}, {}, [], []
        self._table, self._row, self._cell, self._silent = None, None, None, 0
        self.source = text
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.attributes.append((tag, given))
        if tag in ("script", "style"):
            self._silent += 1
        elif tag == "table" and "id" in given:
            self._table = self.tables.setdefault(given["id"], [])
        elif tag == "tr" and self._table is not None:
            self._row = []
            self._table.append(self._row)
        elif tag in ("td", "th") and self._row is not None:
            self._row.append("")
        elif tag == "data" and self._row:
            self._row[-1] = float(given["value"])
        elif tag == "a" and "download" in given:
            self.links[given["download"]] = given["href"]

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._silent -= 1
        elif tag == "table":
            self._table = self._row = None
        elif tag == "tr":
            self._row = None

    def handle_data(self, data):
        if self._silent:
            return
        self.words.append(data)
        if self._row and isinstance(self._row[-1], str):
            self._row[-1] += data.strip()

    @property
    def text(self):
        """All visible words, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def column(self, table, place):
        """One column of a table, without its head."""
        return [row[place] for row in self.tables[table][1:]]
