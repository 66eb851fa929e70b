"""A CMDP as the compiled kernels read it: packed once, and asked many times.

Packing copies nothing: it holds the arrays, and checks that every index of a sparse transition leads to a state, so
that no kernel reads beyond them. What kernels cannot read is left to the NumPy twins: Fractions, discounted sums, and
sizes that do not fit their 32-bit indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmpg.cmdp.kernels.choice import LARGEST_INDEX, compiled
from cmpg.deadline import check_time, has_deadline

if TYPE_CHECKING:
    from cmpg.cmdp.model import CMDP

LONG = 1 << 27
"""A kernel that reads more triples of step, state and action than this takes a second, and cannot be stopped."""


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
    if kernels is None or cmdp.discount is not None or cmdp.is_exact:
        return None
    if cmdp.num_states * cmdp.num_actions >= LARGEST_INDEX:
        return None
    transition: Any
    if not cmdp.is_sparse:
        transition = np.ascontiguousarray(cmdp.matrices)
    elif max(each.nnz for each in cmdp.transition) < LARGEST_INDEX:
        transition = tuple((_narrow(each.indptr), _narrow(each.indices), each.data) for each in cmdp.transition)
    else:
        return None
    sizes = (cmdp.num_steps, cmdp.num_states, cmdp.num_actions, cmdp.num_constraints, len(cmdp.transition))
    return kernels.process(sizes, transition, cmdp.reward, cmdp.costs, cmdp.initial)


def _narrow(indices: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Return indices in 32 bits; those that do not fit become −1, which packing refuses."""
    if indices.dtype == np.int32:
        return indices
    return np.where(indices > LARGEST_INDEX, -1, indices).astype(np.int32)
