"""`cmpg reproduce`: every figure, number and claim of the paper, as a folder with a page.

Exit codes: 0 if every claim came out as the table of claims says, 1 if one did not, 2 for bad input, 130 interrupted:
an earlier reproduction is still there then.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from cmpg import paper
from cmpg.cli.interrupts import on_interrupt, was_interrupted, written
from cmpg.cli.options import Backend, JobsNumber, Scheduler, jobs_of, option
from cmpg.cli.output import ProgressLine


def reproduce(
    *,
    output: Annotated[
        Path, option("Folder for page, tables and figures; an earlier reproduction is replaced.", "--out")
    ] = Path("reproduction"),
    quick: Annotated[bool, option("Run a few of everything, for a first look.", "--quick")] = False,
    seed: Annotated[int, option("Random seed for starts, tie-breaking and samples.")] = 1,
    jobs: JobsNumber = 2,
    backend: Backend = None,
    scheduler: Scheduler = None,
) -> None:
    """Reproduce every figure, number and claim of the paper.

    Each claim is shown with what holds and what does not.
    """
    from rich.console import Console

    from cmpg.paper.figures import require_matplotlib
    from cmpg.paper.reproduction import check_reproduction_folder, claims_view

    where = jobs_of(jobs, backend, scheduler)
    check_reproduction_folder(output)
    on_interrupt(written(output))
    require_matplotlib()
    began = time.monotonic()
    with ProgressLine("reproducing the paper") as progress:

        def tick(what: str, done: int, total: int) -> None:
            # Whatever answered the signal with less than a whole result: no claim is made of that.
            if was_interrupted():
                raise KeyboardInterrupt
            progress.begin(what)
            progress.show(f"{what}: {done} of {total}", whole=done == total)

        found = paper.reproduce(paper.Evidence(seed, paper.QUICK if quick else paper.FULL, where, tick))
        paper.write(found, output, on_progress=tick)
    out = Console()
    out.print(claims_view(found.sections))
    out.print(f"written to {output}/ in {time.monotonic() - began:.0f} s; open {output}/index.html", soft_wrap=True)
    raise typer.Exit(1 if found.surprises else 0)
