"""Which kernels run: the compiled ones where the package was built with them, or their plain NumPy twins.

The environment variable CMPG_KERNELS chooses: `numpy`, or `compiled`, which is an error where there are none. It is
read at every call, so that a test can compare both in one process.

A compiled kernel is an inner loop: it takes arrays and numbers, decides nothing that a twin would not decide, and knows
no Python object while it runs. It gives the interpreter's lock away, and takes it back a few times a second to see
whether Ctrl-C was pressed.

A CMDP is packed once, and queried many times. Packing copies nothing: it holds the arrays, and checks that every index
of a sparse transition leads to a state, so that no kernel reads beyond them. What kernels cannot read is left to the
NumPy twins: discounted sums, and sizes that do not fit their 32-bit indices.
"""

from __future__ import annotations

import importlib
import os
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import at_step
from cmpg.cmdp.mixed_rows import MixedRows
from cmpg.deadline import check_time, has_deadline
from cmpg.errors import SolverError

if TYPE_CHECKING:
    from cmpg.cmdp.model import CMDP

LARGEST_INDEX = 2**31 - 1
"""Kernels count states, actions, resources, and pairs of step and resource, in 32 bits."""

LONG = 1 << 27
"""A kernel that reads more triples of step, state and action than this takes a second, and cannot be stopped."""


def compiled(package: str = "cmpg.cmdp.kernels") -> Any | None:
    """Return the compiled kernels of a package, or None if the NumPy twins are to run."""
    wanted = os.environ.get("CMPG_KERNELS") or "any"
    if wanted not in ("any", "numpy", "compiled"):
        raise SolverError(f"CMPG_KERNELS is {wanted!r}; 'numpy' or 'compiled' is required, or nothing at all.")
    if wanted == "numpy":
        return None
    found = _module(package)
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
def _module(package: str) -> Any | None:
    try:
        found = importlib.import_module(f"{package}._compiled")
    except ImportError:
        return None
    folder = Path(str(importlib.import_module(package).__file__)).parent
    # After a change of the sources an old extension can lie about: it was built for other calls, or for other tables,
    # than are made here. Headers are there in a checkout alone.
    for constant, pattern in (("INTERFACE", "_compiled.pyi"), ("HEADERS", "*.h")):
        sources = b"".join(path.read_bytes() for path in sorted(folder.glob(pattern)))
        if sources and zlib.crc32(sources) & 0x7FFFFFFF != getattr(found, constant, None):
            return None
    return found


def kernels_for(cmdp: CMDP) -> tuple[Any, Any] | None:
    """Return the compiled kernels and the packed process, or None if the NumPy twins are to run."""
    check_time()  # once a call: the twins look at every block of steps
    kernels = compiled()
    if kernels is None or cmdp.packed is None:
        return None
    if has_deadline() and cmdp.num_steps * cmdp.num_states * cmdp.num_actions > LONG:
        return None
    return kernels, cmdp.packed


def packed_process(cmdp: CMDP) -> Any | None:
    """Return a capsule that holds the arrays of a CMDP, or None if the kernels cannot read them."""
    kernels = compiled()
    if kernels is None or cmdp.discount is not None:
        return None
    if cmdp.num_states * cmdp.num_actions >= LARGEST_INDEX:
        return None
    transition: Any
    if not cmdp.is_sparse:
        transition = np.ascontiguousarray(cmdp.matrices)
    else:
        averaged = isinstance(cmdp.transition, MixedRows)
        matrices = cmdp.transition.sources if averaged else cmdp.transition
        if max(max(each.nnz, each.shape[0]) for each in matrices) >= LARGEST_INDEX:
            return None
        transition = tuple((narrow(each.indptr), narrow(each.indices), each.data) for each in matrices)
        if averaged:
            transition = tuple(
                (*at_step(transition, step), each.begins, narrow(each.rows), each.weights, cmdp.transition.stride)
                for step, each in enumerate(cmdp.transition.lists)
            )
    sizes = (cmdp.num_steps, cmdp.num_states, cmdp.num_actions, cmdp.num_constraints, len(cmdp.transition))
    return kernels.process(sizes, transition, cmdp.reward, cmdp.costs, cmdp.initial)


def narrow(indices: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Return indices in 32 bits; those that do not fit become −1, which packing refuses."""
    if indices.dtype == np.int32:
        return indices
    return np.where(indices > LARGEST_INDEX, -1, indices).astype(np.int32)
