"""Tables of agents that move from place to place: where a step leads, and what standing somewhere uses.

In a world of square cells the free cells are the states, numbered line by line. A step into a wall, or out of the
world, is a step on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, frozen


def next_cells(free: npt.NDArray[np.bool_], moves: Iterable[tuple[int, int]]) -> IntArray:
    """Return the state to which each move leads from each free cell.

    Parameters
    ----------
    free : [height, width]
        Which cells can be stood on.
    moves
        Steps (dx, dy), each -1, 0 or 1: dx along a line of `free`, dy to a line with a greater number.

    Returns
    -------
    [S, A]
        States.

    Examples
    --------
    >>> next_cells(np.array([[True, True], [True, False]]), [(1, 0), (0, 1)])
    array([[1, 2],
           [1, 1],
           [2, 2]])
    """
    height, width = free.shape
    states = np.full((height + 2, width + 2), -1, dtype=np.int64)
    inner = states[1:-1, 1:-1]
    inner[free] = here = np.arange(np.count_nonzero(free))
    leads = [states[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width][free] for dx, dy in moves]
    return np.stack([np.where(there >= 0, there, here) for there in leads], axis=1)


def move_table(ahead: IntArray, *, success: float = 1.0) -> sp.csr_array:
    """Return the transition [S·A, S] of moves that succeed with a probability, and else leave the agent where it is.

    Parameters
    ----------
    ahead : [S, A]
        Where each move leads when it succeeds.
    success
        Above 0, at most 1. A move on the spot always succeeds.
    """
    num_states, num_actions = ahead.shape
    rows, here, there = np.arange(ahead.size), np.repeat(np.arange(num_states), num_actions), ahead.ravel()
    fails = rows[there != here] if success < 1 else rows[:0]
    probabilities = np.where(there != here, success, 1.0)
    return sp.csr_array(
        (
            np.concatenate([probabilities, np.full(len(fails), 1 - success)]),
            (np.concatenate([rows, fails]), np.concatenate([there, here[fails]])),
        ),
        shape=(ahead.size, num_states),
    )


def standing_table(resource_of: IntArray, num_actions: int) -> sp.csr_array:
    """Return the use [S·A, E] of an agent that stands on a cell, whatever it does there.

    Parameters
    ----------
    resource_of : [S]
        The resource of each cell, or -1 if the cell is not a resource.
    num_actions
        A.
    """
    return single_uses(np.repeat(resource_of, num_actions), int(resource_of.max(initial=-1)) + 1)


def single_uses(resource_of: IntArray, num_resources: int) -> sp.csr_array:
    """Return the use [rows, E] of at most one resource in each row: the one that is named, or none where that is −1."""
    rows = np.flatnonzero(resource_of >= 0)
    shape = (len(resource_of), num_resources)
    return sp.csr_array((np.ones(len(rows)), (rows, resource_of[rows])), shape=shape)


def certain(num_states: int, state: int) -> FloatArray:
    """Return the distribution [S] of an agent that is in one state for sure."""
    initial = np.zeros(num_states)
    initial[state] = 1.0
    return frozen(initial)
