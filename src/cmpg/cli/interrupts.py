"""How the command ends on Ctrl-C, SIGTERM and SIGHUP.

Each of them raises KeyboardInterrupt in the main thread. What was computed is kept where there is something to keep;
otherwise the command exits with code 130, and the last line on standard error says what is on the disk.

Only modules that Python has loaded anyway are imported here: a signal may arrive while numpy is being imported, and
the answer to it must not import anything.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

EXIT_CODE = 130
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

AGAIN = 0.02
"""Seconds after which a signal is answered once more, if Python swallowed the answer."""

SAME_EVENT = 0.5
"""Seconds in which further signals belong to the first one: a closed terminal sends SIGHUP from kernel and shell."""


class _State:
    """What this process knows of its signals."""

    handled: tuple[int, ...] = ()  # those that raise KeyboardInterrupt now
    last = -float("inf")  # when one of them was raised, on the clock of time.monotonic
    terminals: tuple[int, ...] = ()  # descriptors of standard output and error that were terminals at the start
    describe: Callable[[], str] = staticmethod(lambda: "")  # what was kept


def handle_signals() -> None:
    """Let every signal raise KeyboardInterrupt, except those that the parent process has set to be ignored."""
    _State.terminals = tuple(descriptor for descriptor in (1, 2) if os.isatty(descriptor))
    _State.handled = tuple(each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN)
    for each in _State.handled:
        signal.signal(each, _interrupt)
    if _State.handled and hasattr(signal, "setitimer"):
        # Exceptions that are raised in callbacks of the interpreter, such as of weak references, go no further.
        signal.signal(signal.SIGALRM, _interrupt_again)
        sys.unraisablehook = _not_lost


def ignore_signals() -> None:
    """Ignore what `handle_signals` handles: the answer is out, or the reason why there is none is being printed."""
    for each in _State.handled:
        signal.signal(each, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def was_interrupted() -> bool:
    """Return whether a signal has arrived."""
    return _State.last > -float("inf")


def _interrupt(number: int, _: FrameType | None) -> None:
    if number not in (signal.SIGINT, signal.SIGTERM):
        _leave_closed_terminals()
    now = time.monotonic()
    if now - _State.last > SAME_EVENT:
        _State.last = now
        raise KeyboardInterrupt


def _not_lost(lost: sys.UnraisableHookArgs) -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        sys.__unraisablehook__(lost)


def _interrupt_again(*_: object) -> None:
    raise KeyboardInterrupt


def _leave_closed_terminals() -> None:
    """Write to nowhere instead of a terminal that is closed, where every write would be an error."""
    for descriptor in _State.terminals:
        if not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def on_interrupt(describe: Callable[[], str]) -> None:
    """Choose what the last line says if an interrupt ends the command from now on.

    Parameters
    ----------
    describe
        Reads from the disk what was kept, and returns it as a clause; empty if nothing was.
    """
    _State.describe = staticmethod(describe)


def written(*paths: str | os.PathLike[str] | None) -> Callable[[], str]:
    """Return a description for `on_interrupt` of files and folders that take their names when they are whole."""
    before = {path: _identity(path) for path in paths if path is not None}

    def describe() -> str:
        new = [os.fspath(path) for path, identity in before.items() if _identity(path) not in (None, identity)]
        return f"{' and '.join(new)} {'is' if len(new) == 1 else 'are'} written" if new else ""

    return describe


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_ino, found.st_mtime_ns
    return None


def exit_code(error: BaseException) -> int:
    """Say on standard error what an interrupt left, and return the exit code of the command.

    Parameters
    ----------
    error
        What ended the command. An interrupt that hits the exit itself comes after the answer, and changes nothing.
    """
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, SystemExit):
            return link.code if isinstance(link.code, int) else 0
        link = link.__cause__ or link.__context__
    ignore_signals()
    kept = _State.describe()
    # Python ends itself by SIGINT if a KeyboardInterrupt has left text that was compiled at run time (a dataclass that
    # was being imported), though it was caught later. Compiling text once more, as a namedtuple does, clears that.
    namedtuple("Cleared", ())
    with suppress(OSError, ValueError):  # standard error may be closed
        sys.stderr.write(f"interrupted: {kept}\n" if kept else "interrupted; nothing was kept\n")
        sys.stderr.flush()
    return EXIT_CODE
