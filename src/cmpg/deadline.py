"""One deadline for all that a call does: set at the door, and looked at wherever work is long.

There, another thread can cancel the work, too.

It is passed down by context, not by argument: backward inductions are far below the caller that knows the limit, and
every method of a game would have to hand it on. Threads that a call starts have no deadline of their own; the thread
that waits for them looks at it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from cmpg.errors import OutOfTimeError

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=inf)
_WORK: ContextVar[float] = ContextVar("work", default=inf)
_CANCELLED: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


@contextmanager
def limited(deadline: float) -> Iterator[None]:
    """Let whatever runs inside end with `OutOfTimeError` after a moment on the clock of time.monotonic.

    Examples
    --------
    >>> with limited(time.monotonic() - 1):
    ...     check_time()
    Traceback (most recent call last):
    cmpg.errors.OutOfTimeError: the time limit was reached.
    """
    token = _DEADLINE.set(min(deadline, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextmanager
def limited_work(seconds: float) -> Iterator[None]:
    """Let whatever runs inside end with `OutOfTimeError` after this many seconds of this process's own work.

    What is worth some work is worth it on a busy machine, too: seconds that other processes take do not count.

    Examples
    --------
    >>> with limited_work(-1):
    ...     check_time()
    Traceback (most recent call last):
    cmpg.errors.OutOfTimeError: the work took as long as it may.
    """
    token = _WORK.set(min(time.process_time() + seconds, _WORK.get()))
    try:
        yield
    finally:
        _WORK.reset(token)


@contextmanager
def limited_by_size() -> Iterator[None]:
    """Let whatever runs inside take the work that its own size limits, so that its answer is the same on any machine.

    Examples
    --------
    >>> with limited_work(-1), limited_by_size():
    ...     check_time()
    """
    token = _WORK.set(inf)
    try:
        yield
    finally:
        _WORK.reset(token)


@contextmanager
def cancellable(event: threading.Event) -> Iterator[None]:
    """Let whatever runs inside end with `OutOfTimeError` after another thread has set the event.

    Examples
    --------
    >>> event = threading.Event()
    >>> event.set()
    >>> with cancellable(event):
    ...     check_time()
    Traceback (most recent call last):
    cmpg.errors.OutOfTimeError: the work was cancelled.
    """
    token = _CANCELLED.set(event)
    try:
        yield
    finally:
        _CANCELLED.reset(token)


def has_deadline() -> bool:
    """Whether the work may have to end early: there is a deadline, or it can be cancelled."""
    return min(_DEADLINE.get(), _WORK.get()) < inf or _CANCELLED.get() is not None


def is_over() -> bool:
    """Whether the deadline has passed, or the work was cancelled: for work that ends with what it has."""
    try:
        check_time()
    except OutOfTimeError:
        return True
    return False


def check_time() -> None:
    """Raise if the deadline has passed, or the work was cancelled."""
    event = _CANCELLED.get()
    if event is not None and event.is_set():
        raise OutOfTimeError("the work was cancelled.")
    deadline = _DEADLINE.get()
    if deadline < inf and time.monotonic() > deadline:
        raise OutOfTimeError("the time limit was reached.")
    work = _WORK.get()
    if work < inf and time.process_time() > work:
        raise OutOfTimeError("the work took as long as it may.")
