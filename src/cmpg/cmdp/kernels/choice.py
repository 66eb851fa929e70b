"""Which kernels run: the compiled ones where the package was built with them, or their plain NumPy twins.

The environment variable CMPG_KERNELS chooses: `numpy`, or `compiled`, which is an error where there are none. It is
read at every question, so that a test can compare both in one process.

A compiled kernel is an inner loop: it takes arrays and numbers, decides nothing that a twin would not decide, and knows
no Python object while it runs. It gives the interpreter's lock away, and takes it back a few times a second to see
whether somebody has pressed Ctrl-C.
"""

from __future__ import annotations

import importlib
import os
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from cmpg.errors import SolverError

LARGEST_INDEX = 2**31 - 1
"""Kernels count states, actions, resources, and pairs of step and resource, in 32 bits."""


def compiled() -> Any | None:
    """Return the module of compiled kernels, or None where the NumPy twins are to run."""
    wanted = os.environ.get("CMPG_KERNELS") or "any"
    if wanted not in ("any", "numpy", "compiled"):
        raise SolverError(f"CMPG_KERNELS is {wanted!r}; 'numpy' or 'compiled' is required, or nothing at all.")
    if wanted == "numpy":
        return None
    found = _module()
    if found is None and wanted == "compiled":
        raise SolverError(
            "CMPG_KERNELS asks for compiled kernels, and this installation has none, or has them from other sources. "
            "Install a C compiler and then the package again, or leave the variable out."
        )
    return found


def kernels_used() -> str:
    """Return "compiled" or "numpy": what runs, and what a result records."""
    return "numpy" if compiled() is None else "compiled"


@cache
def _module() -> Any | None:
    try:
        found = importlib.import_module("cmpg.cmdp.kernels._compiled")
    except ImportError:
        return None
    stub = Path(__file__).with_name("_compiled.pyi")
    # After a change of the sources an old extension can lie about: it was built for other calls than are made here.
    if stub.exists() and zlib.crc32(stub.read_bytes()) != getattr(found, "INTERFACE", None):
        return None
    return found
