"""Where the command speaks: tables on standard output, errors and progress on standard error.

On a terminal lines are broken at its width, and progress is one live line. Elsewhere nothing is broken or coloured, and
progress is a plain line a second.
"""

from __future__ import annotations

import json
import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID

    from cmpg.equilibrium.result import Step
    from cmpg.games.contract import Game

WIDE = 10_000
"""Columns of a file or a pipe: whoever reads it breaks the lines."""


def show(*parts: RenderableType) -> None:
    """Print for people, on standard output; strings are taken as they are."""
    from rich.text import Text

    console = _console(stderr=False)
    for part in parts:
        console.print(Text(part) if isinstance(part, str) else part, highlight=False)


def show_json(record: Any) -> None:
    """Print one JSON object, and nothing else, on standard output."""
    print(json.dumps(record, allow_nan=False))


def complain(text: str) -> None:
    """Say on standard error, in one paragraph, what is wrong."""
    from rich.text import Text

    _console(stderr=True).print(Text.assemble(("error", "bold red"), f": {text}"), soft_wrap=True)


def remark(text: str) -> None:
    """Say something on standard error."""
    from rich.text import Text

    _console(stderr=True).print(Text(text), soft_wrap=True)


def speak_any_text() -> None:
    """Write what the terminal's encoding does not know as escapes, rather than stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # COLUMNS is a wish; a terminal knows its own width.
    return Console(stderr=stderr, width=None if stream.isatty() or "COLUMNS" in os.environ else WIDE)


class ProgressLine:
    """A live line on a terminal; elsewhere a plain line, the first at once and then one a second at most."""

    def __init__(self, game: Game) -> None:
        import numpy as np
        from rich.console import Console

        self._thresholds = np.asarray(game.thresholds, dtype=np.float64)
        self._names = game.names
        console = Console(stderr=True)
        self._status = console.status("looking for a feasible start") if console.is_terminal else None
        self._next = 0.0

    def __enter__(self) -> ProgressLine:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
        if kind is KeyboardInterrupt:
            remark("interrupted before a feasible policy was known: there is nothing to keep")

    def show(self, step: Step) -> None:
        """Show where the run stands."""
        from rich.text import Text

        from cmpg.report.tables import progress_line

        line = progress_line(step, self._thresholds, self._names)
        if self._status is not None:
            self._status.update(Text(line, no_wrap=True, overflow="ellipsis"))
        elif time.monotonic() >= self._next:
            print(line, file=sys.stderr, flush=True)
            self._next = time.monotonic() + 1.0


class ProgressDisplay:
    """Shows every task that it is told about; use it in a `with`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        if console.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = Progress(*columns, console=console)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def tick(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if self._bars is None:
            if done == total:
                self._console.print(f"{what}: {done} of {total}", highlight=False, soft_wrap=True)
            return
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done)
