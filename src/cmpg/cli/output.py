"""Where the command speaks: tables on standard output, errors and progress on standard error.

On a terminal lines are broken at its width, and progress is one live line. Elsewhere nothing is broken or coloured, and
progress is a plain line a second at most.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from cmpg.summaries import Summary, plain, summary_text, table_text

if TYPE_CHECKING:
    from rich.console import Console

    from cmpg.arrays import FloatArray
    from cmpg.equilibrium.result import Step
    from cmpg.games.game import Names

WIDE = 10_000
"""Columns of a file or a pipe: its reader breaks the lines."""

MAX_COSTS = 3
"""Costs and prices that a line of progress tells."""


def show(*parts: str | Summary) -> None:
    """Print for people, on standard output; a summary has its first word in colour, on a terminal."""
    if not sys.stdout.isatty():
        for part in parts:
            print(summary_text(part) if isinstance(part, Summary) else plain(part, lines=True))
        return
    from rich.text import Text

    console, styles = _console(stderr=False), {True: "bold green", False: "bold yellow", None: "bold"}
    for part in parts:
        summary = Summary(part) if isinstance(part, str) else part
        word = plain(summary.word, lines=True)
        style = "" if isinstance(part, str) else styles[summary.good]
        console.print(Text.assemble((word, style), plain(summary.headline, lines=True)[len(word) :]), highlight=False)
        for below in summary.parts:
            # A terminal that is too narrow for a table breaks its lines, rather than that digits or names are cut.
            shown = plain(below, lines=True) if isinstance(below, str) else table_text(below)
            console.print(Text(shown), highlight=False, soft_wrap=not isinstance(below, str))


def show_json(record: Any) -> None:
    """Print one JSON object, and nothing else, on standard output."""
    print(json.dumps(record, allow_nan=False))


def complain(text: str) -> None:
    """Say on standard error, in one paragraph, what is wrong."""
    from rich.text import Text

    _console(stderr=True).print(Text.assemble(("error", "bold red"), f": {plain(text, lines=True)}"), soft_wrap=True)


def remark(text: str) -> None:
    """Say something on standard error."""
    from rich.text import Text

    _console(stderr=True).print(Text(plain(text, lines=True)), soft_wrap=True)


def rescaling_message(rows: int) -> str:
    """Say how many rows of files were not read as they stand."""
    message = f"{rows} rows of probabilities do" if rows > 1 else "1 row of probabilities does"
    return f"exact arithmetic: {message} not sum to exactly 1, and {'were' if rows > 1 else 'was'} divided by the sum"


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
    """Shows where a run stands; use it in a `with`.

    Building a large game, or looking for a start, is one long call that tells nothing. So a thread tells which phase it
    is and how long it has taken: every second on a terminal, and elsewhere after 1, 2, 3, 3, … seconds of silence.
    """

    def __init__(self, phase: str) -> None:
        from rich.console import Console

        console = Console(stderr=True)
        self._status = console.status(phase) if console.is_terminal else None
        self._phase, self._began = phase, time.monotonic()
        self._last_shown, self._pause = self._began, 1.0
        self._next = self._began
        self._writing, self._over = threading.Lock(), threading.Event()
        self._watch = threading.Thread(target=self._tell_silence, daemon=True)

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Show nothing any more."""
        self._over.set()
        self._watch.join()
        if self._status is not None:
            self._status.stop()

    def begin(self, phase: str) -> None:
        """Say what comes next, if it takes long."""
        with self._writing:
            self._phase, self._pause = phase, 1.0

    def show(self, text: str, *, whole: bool = False) -> None:
        """Show where things stand; elsewhere than on a terminal, only `whole` lines are never left out."""
        with self._writing:
            now = time.monotonic()
            if self._status is not None or whole or now >= self._next:
                self._next = now + 1.0
                self._write(text)

    def _tell_silence(self) -> None:
        while not self._over.wait(0.2):
            with self._writing:
                now = time.monotonic()
                if now - self._last_shown >= (1.0 if self._status is not None else self._pause):
                    self._pause = min(2 * self._pause, 3.0)
                    self._write(f"{self._phase}  {now - self._began:.0f} s")

    def _write(self, text: str) -> None:
        from rich.text import Text

        self._last_shown = time.monotonic()
        if self._status is None:
            print(plain(text), file=sys.stderr, flush=True)
        else:
            self._status.update(Text(plain(text), no_wrap=True, overflow="ellipsis"))


def progress_line(step: Step, thresholds: FloatArray, names: Names) -> str:
    """Say in one line where a run stands: potential, cost against threshold, largest gain."""
    pairs = zip(step.costs[:MAX_COSTS], thresholds[:MAX_COSTS], strict=True)
    costs = ", ".join(f"{cost:.4g}/{limit:.4g}" for cost, limit in pairs) or "none"
    if step.multipliers is not None:
        prices = ", ".join(f"{price:.4g}" for price in step.multipliers[:MAX_COSTS])
        return f"a common price, round {step.iteration:>3}  cost {costs}  price {prices}  {step.seconds:.1f} s"
    gain = "largest gain" if step.mover is None else f"{names.agent(step.mover)} gains"
    return (
        f"iteration {step.iteration:>4}  potential {step.potential:+.6g}  cost {costs}  "
        f"{gain} {step.gain:.3g}  {step.seconds:.1f} s"
    )
