"""Tables from a Python function `step(state, actions) -> next-state distribution, rewards, costs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, check_shape, frozen, numbers, to_floats
from cmpg.deadline import check_time
from cmpg.errors import GameError
from cmpg.games.joint.averages import check_agents
from cmpg.sizes import require_joint_tables

StepFunction = Callable[[int, tuple[int, ...]], tuple[Mapping[int, float] | Sequence[float], Any, Any]]


def tabulate(step: StepFunction, shape: tuple[int, ...], num_constraints: int) -> dict[str, Any]:
    """Call `step` for every state and joint action, and return transition, rewards and costs as tables.

    Parameters
    ----------
    step
        Gives the next state as a dict {state: probability} or as a sequence over all states, one reward per agent and
        one cost per constraint.
    shape
        S, and the number of actions of each agent.
    num_constraints
        k.
    """
    if len(shape) < 2 or min(shape) < 1:
        raise GameError(f"num_states and num_actions are {shape[0]} and {shape[1:]}; each must be at least 1.")
    check_agents(len(shape) - 1)
    # Beside the tables, three Python objects for each entry of the transition, while it is being collected.
    require_joint_tables(shape[0], shape[1:], tables=len(shape) + num_constraints, successors=8)
    rewards = np.empty((len(shape) - 1, 1, *shape))
    costs = np.empty((num_constraints, 1, *shape))
    rows, columns, probabilities = [], [], []
    for row, (state, *joint) in enumerate(np.ndindex(shape)):
        actions = tuple(joint)
        check_time()
        where = f"step(state={state}, actions={actions})"
        ahead, reward, cost = _three(where, step(state, actions))
        for target, probability in _successors(where, ahead, shape[0]):
            rows.append(row)
            columns.append(target)
            probabilities.append(probability)
        rewards[:, 0, state, *actions] = _vector(f"the rewards of {where}", reward, len(rewards))
        costs[:, 0, state, *actions] = _vector(f"the costs of {where}", cost, len(costs))
    matrix = sp.csr_array((probabilities, (rows, columns)), shape=(row + 1, shape[0]), dtype=np.float64)
    # An entry of a CSR matrix takes 12 bytes.
    dense = 12 * matrix.nnz >= 8 * matrix.shape[0] * matrix.shape[1]
    return {
        "transition": frozen(matrix.toarray()).reshape(1, *shape, shape[0]) if dense else (matrix,),
        "rewards": frozen(rewards),
        "costs": frozen(costs),
    }


def _three(where: str, found: Any) -> tuple[Any, Any, Any]:
    """Return what a step function returned, or raise if that is not three things."""
    if isinstance(found, (tuple, list)) and len(found) == 3:
        return found[0], found[1], found[2]
    returned = f"{len(found)} things" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
    raise GameError(
        f"{where} returned {returned}; three are required: the distribution of the next state, the rewards, and the "
        "costs, which are [] in a game without constraints."
    )


def _successors(
    where: str, ahead: Mapping[int, float] | Sequence[float], num_states: int
) -> Iterator[tuple[int, float]]:
    """Yield next states and their probabilities, all but zero."""
    if not isinstance(ahead, Mapping):
        ahead = dict(enumerate(_vector(f"the distribution of {where}", ahead, num_states)))
    for target, probability in ahead.items():
        if target not in range(num_states):
            raise GameError(f"{where} leads to state {target!r}; states are numbered 0 to {num_states - 1}.")
        if probability:
            yield target, float(numbers(f"the distribution of {where}", probability))


def _vector(name: str, value: Any, length: int) -> FloatArray:
    vector = to_floats(numbers(name, value))
    if vector.size == 0 and length == 0:
        return np.zeros(0)
    check_shape(name, vector.shape, (length,))
    return vector
