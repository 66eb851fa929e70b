"""One thread for linear algebra, where more of them only wait for each other.

The systems of this library are small, and BLAS with several threads takes up to thirty times as long on them as with
one. Sums are also taken in another order then, so that one thread is what makes the bits of a task those of any other
machine's. The limit is the process's, not a thread's: the first who needs it sets it, and the last one lifts it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
_LIBRARIES: dict[bool, list[Any]] = {}  # scipy brings a BLAS of its own when its linear algebra is loaded
_HELD: list[tuple[Any, int]] = []  # the libraries that are limited, with the threads that they had
_HOLDERS = [0]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread inside; nested, and from several threads at once, as you like.

    Examples
    --------
    >>> with one_thread():
    ...     with one_thread():
    ...         sum(number > 1 for number in blas_threads())
    0
    """
    with _LOCK:
        _HOLDERS[0] += 1
        held = {id(library) for library, _ in _HELD}
        for library in _libraries():
            if id(library) not in held:
                _HELD.append((library, library.num_threads))
                library.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _HOLDERS[0] -= 1
            if not _HOLDERS[0]:
                for library, threads in _HELD:
                    library.set_num_threads(threads)
                _HELD.clear()


def blas_threads() -> list[int]:
    """Return how many threads each loaded BLAS may use now."""
    return [library.num_threads for library in _libraries()]


def _libraries() -> list[Any]:
    """Look for the loaded BLAS libraries, once before and once after scipy's is among them."""
    both = "scipy.linalg" in sys.modules
    if both not in _LIBRARIES:
        from threadpoolctl import ThreadpoolController

        found = ThreadpoolController().select(user_api="blas").lib_controllers
        known = {library.filepath: library for library in _LIBRARIES.get(False, [])}
        _LIBRARIES[both] = [known.get(library.filepath, library) for library in found]
    return _LIBRARIES[both]
