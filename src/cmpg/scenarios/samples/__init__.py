"""The package's own sample files, wherever the package is installed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path


def sample_file(name: str) -> AbstractContextManager[Path]:
    """Return a context in which a sample file is a path on disk.

    Examples
    --------
    >>> with sample_file("sample.map") as path:
    ...     path.name
    'sample.map'
    """
    return as_file(files(__name__).joinpath(name))
