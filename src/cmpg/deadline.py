"""One deadline for all that a call does: set at the door, and looked at wherever work is long.

It is passed down by context, not by argument: backward inductions are far below whoever knows the limit, and every
method of a game would have to hand it on. Threads that a call starts have no deadline of their own; whoever waits for
them looks at it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from cmpg.errors import OutOfTimeError

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=np.inf)


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


def has_deadline() -> bool:
    """Whether there is a deadline at all."""
    return _DEADLINE.get() < np.inf


def check_time() -> None:
    """Raise if the deadline has passed."""
    deadline = _DEADLINE.get()
    if deadline < np.inf and time.monotonic() > deadline:
        raise OutOfTimeError("the time limit was reached.")
