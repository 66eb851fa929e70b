"""The options that several commands share, word for word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cmpg.runs.runner import Jobs

DEFAULT_EPSILON = 1e-6

FURTHER = "Further options"
"""The section of options that few need: `--help-all` lists it, and `--help` says so."""

Epsilon = Annotated[float, typer.Option(help="The most any agent may gain by deviating.")]
AllowRounding = Annotated[
    float,
    typer.Option(
        metavar="<float>", rich_help_panel=FURTHER, help="Accept costs above their thresholds by at most this."
    ),
]
Delta = Annotated[float, typer.Option(help="Allowed probability of failure.")]
Exact = Annotated[bool, typer.Option("--exact", help="Certify in exact rational arithmetic (small games).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[
    int | None, typer.Option(min=0, metavar="<int>", help="Random seed of drawn agents; else of starts and ties.")
]

JobsNumber = Annotated[
    int,
    typer.Option(
        "--jobs",
        metavar="<int>",
        rich_help_panel=FURTHER,
        help="Number of processes; the answer does not depend on it.",
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=FURTHER,
        help="Where they run: loky (this machine), threads, dask or ray.",
        autocompletion=lambda: ["loky", "threads", "dask", "ray"],
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="<address>", rich_help_panel=FURTHER, help="Address of a running dask or ray cluster to use."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        rich_help_panel=FURTHER,
        help="Go on with what an earlier call left in the folder, and do only what is missing.",
    ),
]


def check_out(output: Path | None, *, resume: bool) -> None:
    """Raise, before anything long begins, if the folder cannot be written or there is nothing to resume from."""
    if output is None and not resume:
        return
    from cmpg.errors import FileError
    from cmpg.files.containers import check_out_folder

    if output is None:
        raise FileError("--resume goes on with what is in a folder: name it with --out.")
    if not (resume and output.is_dir()):
        check_out_folder(output)


def jobs_of(number: int, backend: str | None, scheduler: str | None) -> Jobs:
    """Return where tasks run, as a command line says it: -1 is all cores, and the address of a cluster alone dask."""
    from cmpg.runs.runner import Jobs

    chosen: Any = "dask" if backend is None and scheduler is not None else backend
    return Jobs((os.cpu_count() or 1) if number == -1 else number, chosen, scheduler)
