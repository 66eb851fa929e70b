"""The checks that the tables of a local game pass once, at the door; an error names the agent and the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, check_shape, distributions, each_once, frozen, numbers, place, to_floats
from cmpg.cmdp.model import check_length_of_time, check_steps, checked_transition
from cmpg.errors import GameError
from cmpg.games.local.agent import LocalAgent


def checked_tables(
    agents: Sequence[LocalAgent], *, horizon: int, delay: Any, load_costs: Any, thresholds: Any
) -> dict[str, Any]:
    """Return agents, delay, load costs and thresholds as read-only tables that fit together, or raise GameError."""
    check_length_of_time(horizon, None)
    if not isinstance(agents, Sequence) or not agents:
        raise GameError("agents must be a sequence of at least one LocalAgent.")
    delays = _checked_delay(delay, horizon, len(agents))
    costs = _checked_load_costs(load_costs, horizon, delays.shape[1:])
    limits = to_floats(numbers("thresholds", thresholds))
    if limits.shape != costs.shape[:1]:
        raise GameError(
            f"thresholds has shape {list(limits.shape)}; load_costs has {len(costs)} constraints, "
            f"so [{len(costs)}] is required."
        )
    frame = _Frame(horizon, delays.shape[1], len(costs))
    return {
        "agents": _checked_agents(agents, frame),
        "delay": delays,
        "load_costs": costs,
        "thresholds": limits,
        "horizon": int(horizon),
    }


def _checked_delay(given: Any, horizon: int, num_agents: int) -> FloatArray:
    delay = to_floats(numbers("delay", given))
    if delay.ndim != 3 or 0 in delay.shape:
        raise GameError(f"delay has shape {list(delay.shape)}; [H or 1, E, n + 1] with no empty axis is required.")
    check_steps("delay", len(delay), horizon)
    _check_loads("delay", delay, num_agents)
    return delay


def _checked_load_costs(given: Any, horizon: int, table: tuple[int, ...]) -> FloatArray:
    costs = to_floats(numbers("load_costs", given))
    if costs.size == 0 and len(costs) == 0:
        return frozen(np.zeros((0, 1, *table)))
    if costs.ndim != 4:
        raise GameError(f"load_costs has shape {list(costs.shape)}; [k, H or 1, E, n + 1] is required.")
    check_steps("load_costs", costs.shape[1], horizon)
    if costs.shape[2] != table[0]:
        raise GameError(f"load_costs has {costs.shape[2]} resources; delay has {table[0]}, and they must be the same.")
    _check_loads("load_costs", costs, table[1] - 1)
    return costs


def _check_loads(name: str, table: FloatArray, num_agents: int) -> None:
    if table.shape[-1] != num_agents + 1:
        raise GameError(
            f"{name} has {table.shape[-1]} entries per resource; {num_agents} agents can put the loads "
            f"0, …, {num_agents} on one, so {num_agents + 1} entries are required."
        )


@dataclass(frozen=True)
class _Frame:
    """What the game asks of the shapes of its agents."""

    num_steps: int
    num_resources: int
    num_constraints: int


def _checked_agents(agents: Sequence[LocalAgent], frame: _Frame) -> tuple[LocalAgent, ...]:
    """Return the agents with checked tables; what they shared before, they share after."""
    known: dict[tuple[Any, ...], Any] = {}

    def check(i: int, agent: Any) -> LocalAgent:
        if not isinstance(agent, LocalAgent):
            raise GameError(f"agents[{i}] is a {type(agent).__name__}; every agent must be a LocalAgent.")
        try:
            return _checked_agent(agent, frame, known)
        except GameError as problem:
            raise GameError(f"agent {i}: {problem}") from None

    return each_once(check, agents)


def _checked_agent(agent: LocalAgent, frame: _Frame, known: dict[tuple[Any, ...], Any]) -> LocalAgent:
    def once(name: str, check: Callable[..., Any], *arguments: Any) -> Any:
        """Check an object only the first time that it comes."""
        key = (name, id(getattr(agent, name)), *arguments)
        if key not in known:
            known[key] = check(getattr(agent, name), *arguments)
        return known[key]

    reward = once("reward", _checked_reward, frame)
    shape = (frame.num_steps, *reward.shape[1:])
    initial = to_floats(numbers("initial", agent.initial))
    check_shape("initial", initial.shape, shape[1:2])
    return LocalAgent(
        transition=once("transition", _checked_matrices, shape),
        reward=reward,
        uses=once("uses", _checked_uses, shape, frame.num_resources),
        initial=distributions("initial", initial, ()),
        costs=once("costs", _checked_costs, shape, frame.num_constraints),
    )


def _checked_reward(given: Any, frame: _Frame) -> FloatArray:
    reward = to_floats(numbers("reward", given))
    if reward.ndim != 3 or 0 in reward.shape:
        raise GameError(f"reward has shape {list(reward.shape)}; [H or 1, S, A] with no empty axis is required.")
    check_steps("reward", len(reward), frame.num_steps)
    return _by_state(reward)


def _checked_costs(given: Any, shape: tuple[int, int, int], num_constraints: int) -> FloatArray | None:
    if given is None:
        return None
    costs = to_floats(numbers("costs", given))
    if costs.size == 0 and num_constraints == 0:
        return None
    if costs.ndim != 4:
        raise GameError(f"costs has shape {list(costs.shape)}; [k, H or 1, S, A] is required.")
    check_steps("costs", costs.shape[1], shape[0])
    check_shape("costs", costs.shape, (num_constraints, costs.shape[1], *shape[1:]))
    return _by_state(costs) if costs.any() else None


def _by_state(table: FloatArray) -> FloatArray:
    """Return a table [..., S, A] that does not depend on the action as a view of one column; see `thin`."""
    column = table[..., :1]
    return np.broadcast_to(column.copy(), table.shape) if (table == column).all() else table


def _checked_matrices(given: Any, shape: tuple[int, int, int]) -> tuple[sp.csr_array, ...]:
    transition = checked_transition(given, shape)
    if isinstance(transition, tuple):
        return transition
    dense = to_floats(transition)
    return tuple(sp.csr_array(table.reshape(-1, shape[1])) for table in dense)


def _checked_uses(given: Any, shape: tuple[int, int, int], num_resources: int) -> tuple[sp.csr_array, ...]:
    steps, states, actions = shape
    if sp.issparse(given):
        given = [given]
    if not (isinstance(given, Sequence) and len(given) and all(sp.issparse(matrix) for matrix in given)):
        dense = to_floats(numbers("uses", given))
        required = (len(dense) if dense.ndim else 0, states, actions, num_resources)
        check_shape("uses", dense.shape, required)
        given = [sp.csr_array(table.reshape(-1, num_resources)) for table in dense]
    check_steps("uses", len(given), steps)
    return each_once(lambda h, matrix: _checked_use(h, matrix, (states, actions, num_resources)), given)


def _checked_use(step: int, given: Any, shape: tuple[int, int, int]) -> sp.csr_array:
    states, actions, resources = shape
    matrix = sp.csr_array(given, dtype=np.float64)
    check_shape(f"uses[h={step}]", matrix.shape, (states * actions, resources))
    if not matrix.has_canonical_format or not (matrix.data == 1).all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    strange = np.flatnonzero(matrix.data != 1)
    if len(strange):
        row = int(np.searchsorted(matrix.indptr, strange[0], side="right")) - 1
        index = (step, row // actions, row % actions, int(matrix.indices[strange[0]]))
        raise GameError(
            f"{place('uses', index, ('h', 's', 'a', 'e'))} is {matrix.data[strange[0]]:g}; an agent uses a resource "
            "or does not: 1 or 0 is required."
        )
    matrix.data.setflags(write=False)
    return matrix
