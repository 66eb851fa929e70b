"""The examples on the command line in README and docs: the files that they print, and what the command answers."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from command_line import cmpg

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "files.md"]
MATCHES = doctest.OutputChecker().check_output
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page, kind):
    """Return the words after the kind, and the text, of every fenced block of that kind."""
    return re.findall(rf"^```{kind}(.*?)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def examples(page):
    """Return each command of the page with the answer that is printed below it."""
    for _, text in blocks(page, "console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, answer = part.partition("\n")
            yield command, answer


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_answers_as_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, text in blocks(page, "json"):
        Path(re.fullmatch(r' title="(\w+\.json)"', words)[1]).write_text(text)
    shown = list(examples(page))
    assert shown
    for command, answer in shown:
        words = shlex.split(command, comments=True)
        assert words[0] == "cmpg"
        ran = cmpg(*words[1:])
        assert MATCHES(answer, ran.out, FLAGS), f"$ {command}\n{ran.out}{ran.err}"
        assert ran.code == 0


def test_make_demo_runs_what_the_readme_shows():
    demo = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    commands = [line.strip().replace("$(BIN)/", "") for line in demo.splitlines()]
    shown = [command for command, _ in examples(ROOT / "README.md")]
    assert shown[: len(commands)] == commands


def numbers_in(table):
    """Return the first columns of a printed table of runs: what was run, how it ended, welfare and bound."""
    rows = [line.split() for line in table.splitlines() if re.match(r"\d+ ", line)]
    return [row[:4] for row in rows], [float(number) for row in rows for number in row[4:6]]


def test_the_sweep_of_many_runs_is_what_the_command_says(tmp_path, monkeypatch):
    """Row by row, without an ellipsis; an equilibrium may be another one after a change, but not a much worse one."""
    monkeypatch.chdir(tmp_path)
    command, answer = next(examples(ROOT / "docs" / "many-runs.md"))
    assert "..." not in answer
    ran = cmpg(*shlex.split(command)[1:])
    (known, printed), (runs, found) = numbers_in(answer), numbers_in(ran.out)
    assert known == runs
    assert printed == pytest.approx(found, rel=0.02)
