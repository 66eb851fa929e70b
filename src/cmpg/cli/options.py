"""The options that several commands share, word for word."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from cmpg import files
from cmpg.cli.interrupts import on_interrupt, written
from cmpg.errors import FileError
from cmpg.runs.runner import Jobs

DEFAULT_EPSILON = 1e-6

KEYWORD = inspect.Parameter.KEYWORD_ONLY

FURTHER = "further"
"""Options that few need: `--help-all` lists them, and `--help` says so."""

WHOLE = "<int>"
"""What stands for a whole number, where the parser would write its range."""


def option(
    meaning: str,
    *names: str,
    least: int | None = None,
    most: int | None = None,
    metavar: str | None = None,
    words: Iterable[str] | Callable[[], Iterable[str]] | None = None,
    show_default: bool = True,
    panel: str | None = None,
) -> Any:
    """Describe an option to the parser: what it means, its names if not that of the parameter, and what it takes.

    A flag has a name, without which the parser would add `--no-…`; `words` are what the shell completes.
    """
    complete = None if words is None else lambda: list(words() if callable(words) else words)
    return typer.Option(
        *names,
        help=meaning,
        min=least,
        max=most,
        metavar=WHOLE if metavar is None and least is not None else metavar,
        autocompletion=complete,
        show_default=show_default,
        rich_help_panel=panel,
    )


further = partial(option, panel=FURTHER)
"""Describes an option that few need."""

Epsilon = Annotated[float, option("Most any agent may gain by deviating.")]
AllowRounding = Annotated[float, further("Accept costs above their thresholds by at most this.")]
Delta = Annotated[float, option("Allowed probability of failure.")]
Exact = Annotated[bool, option("Certify in exact rational arithmetic (small games).", "--exact")]
Json = Annotated[bool, option("Print one JSON object and nothing else.", "--json")]
Seed = Annotated[int | None, option("Seed of drawn agents; else of starts and ties.", least=0)]

JobsNumber = Annotated[int, further("Number of processes; the answer does not depend on it.", "--jobs")]
Backend = Annotated[
    str | None,
    further("Where they run: loky (this machine), threads, dask or ray.", words=["loky", "threads", "dask", "ray"]),
]
Scheduler = Annotated[str | None, further("Address of a running dask or ray cluster to use.", metavar="<address>")]


@dataclass(frozen=True)
class Tasks:
    """Where many tasks run."""

    HEADING: ClassVar = "Processes"
    jobs: JobsNumber = 1
    backend: Backend = None
    scheduler: Scheduler = None

    @property
    def where(self) -> Jobs:
        """The processes or the cluster."""
        return jobs_of(self.jobs, self.backend, self.scheduler)


Resume = Annotated[
    bool, further("Go on with what an earlier call left in the folder, and do only what is missing.", "--resume")
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as the parser reads it: each record among its parameters stands for its fields, an option each.

    The attribute `headings` says under which heading of the help an option stands: the `HEADING` of its record, or of
    the record that it follows.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     HEADING: ClassVar = "How large"
    ...     width: int = 1
    ...     height: int = 2
    >>> def area(name: str, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> inspect.signature(grouped(area))
    <Signature (*, name: str, width: int = 1, height: int = 2)>
    >>> grouped(area)(name="hall", width=5, height=2)
    hall 10
    >>> grouped(area).headings
    {'name': 'Options', 'width': 'How large', 'height': 'How large'}
    """
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    records = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    options: list[inspect.Parameter] = []
    headings: dict[str, str] = {}
    heading = "Options"
    for name, parameter in inspect.signature(command).parameters.items():
        if name in records:
            names = vars(sys.modules[records[name].__module__])  # completions look things up there, when they run
            types = get_type_hints(records[name], names, include_extras=True)
            own = [(each.name, each.default, types[each.name]) for each in fields(records[name])]
            heading = vars(records[name])["HEADING"]
        else:
            own = [(name, parameter.default, hints[name])]
        options += [inspect.Parameter(each, KEYWORD, default=value, annotation=kind) for each, value, kind in own]
        headings |= {each: heading for each, _, _ in own}

    @wraps(command)
    def flat(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{each.name: given.pop(each.name) for each in fields(record)})
        command(**given)

    flat.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    flat.headings = headings  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in options}
    return flat


def changed(record: Any, *names: str) -> list[str]:
    """Return the options of a record, or those of some names, that are not as by default, as they are written."""
    known = [each for each in fields(record) if each.name in names or not names]
    given = [each.name for each in known if getattr(record, each.name) not in (each.default, [])]
    return [f"--{name.replace('_', '-')}" for name in given]


def check_out(output: Path | None, *, resume: bool) -> None:
    """Raise, before anything long begins, if the folder cannot be written or there is nothing to resume from."""
    if output is None and not resume:
        return

    if output is None:
        raise FileError("--resume goes on with what is in a folder: name it with --out.")
    if not (resume and output.is_dir()):
        files.containers.check_out_folder(output)


def check_out_file(output: Path | None, *endings: str) -> None:
    """Raise, before anything long begins, if a file cannot be written, and say of an interrupt whether it is there."""
    if output is not None:
        files.containers.checked_ending(output, endings)
        if output.is_dir() or not output.parent.is_dir():
            raise FileError(f"{output}: cannot be written there; name a file in a folder that exists.")
    on_interrupt(written(output))


def jobs_of(number: int, backend: str | None, scheduler: str | None) -> Jobs:
    """Return where tasks run, as a command line says it: -1 is all cores, and the address of a cluster alone dask."""
    chosen: Any = "dask" if backend is None and scheduler is not None else backend
    return Jobs((os.cpu_count() or 1) if number == -1 else number, chosen, scheduler)


def check_words(folder: Path, file: str, *more: str, exact: bool = False, epsilon: float) -> str:
    """Name the command that checks the claim in a folder; `more` are further options of it."""
    words = ["cmpg", "certify", f"{folder}/game.{'json' if exact else 'npz'}", f"{folder}/{file}"]
    words += [*["--exact"] * exact, *([] if epsilon == DEFAULT_EPSILON else ["--epsilon", f"{epsilon}"]), *more]
    return f"; check it with: {shlex.join(words)}"
