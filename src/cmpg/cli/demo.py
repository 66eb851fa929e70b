"""`cmpg demo`: the first five minutes in one command.

It runs `cmpg solve charging` and `cmpg report` on the bundled day, says which commands those are, and opens the page
if there is a display. Exit codes are those of `cmpg solve`.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from cmpg.cli.main import report
from cmpg.cli.options import option
from cmpg.cli.output import show
from cmpg.cli.risk import RiskBudgets
from cmpg.cli.solve import ClaimOptions, Execution, Search, SolveOutput, solve
from cmpg.cli.targets import Target

SCENARIO = "charging"


def demo(
    output: Annotated[
        Path | None, option("New folder for the run; cmpg-demo if omitted.", "--out", show_default=False)
    ] = None,
    opens: Annotated[
        bool | None, option("Open the page in a browser; if omitted, where there is a display.", "--open/--no-open")
    ] = None,
) -> None:
    """Solve a day of car charging, write a page on it, and open that."""
    folder = _free_folder() if output is None else output
    show(f"$ cmpg solve {SCENARIO} --out {folder}")
    ending = 0
    try:
        solve(
            target=Target(SCENARIO),
            claim=ClaimOptions(),
            budgets=RiskBudgets(),
            search=Search(),
            execution=Execution(),
            wanted=SolveOutput(output=folder),
        )
    except typer.Exit as done:  # which is how `solve` returns its exit code
        ending = done.exit_code
    show(f"\n$ cmpg report {folder}")
    report(folder)
    page = folder / "report.html"
    if _has_display() if opens is None else opens:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    show(
        f"\nNext: `cmpg show {folder}` says which car charges when; `cmpg solve {SCENARIO} --help` lists what can be "
        f"changed, such as --capacity 6; `cmpg scenarios` lists other games."
    )
    raise typer.Exit(ending)


def _free_folder() -> Path:
    """Return cmpg-demo, or the first of cmpg-demo-2, cmpg-demo-3, … that does not exist: nothing is written over."""
    names = (f"cmpg-demo{'' if number == 1 else f'-{number}'}" for number in count(1))
    return next(path for path in map(Path, names) if not path.exists())


def _has_display() -> bool:
    """Whether a browser with a window can be expected: a person at a terminal, and a screen."""
    if not sys.stdout.isatty():
        return False
    # Elsewhere `webbrowser` would start a browser of text in the terminal, and wait for its end.
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
