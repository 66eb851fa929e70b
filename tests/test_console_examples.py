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
    for name, text in blocks(page, "json"):
        Path(name.strip()).write_text(text)
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
