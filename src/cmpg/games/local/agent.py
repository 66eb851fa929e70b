"""One agent of a local game: its states and dynamics, its private reward and costs, the resources that it uses.

Its tables are checked once, when a game takes it in; an error names the agent and the coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from cmpg.arrays import (
    FloatArray,
    Numbers,
    at_step,
    check_shape,
    distributions,
    each_once,
    folded_fields,
    frozen,
    numbers,
    place,
    set_folded_fields,
    to_floats,
)
from cmpg.cmdp.model import CMDP, check_length_of_time, check_steps, checked_transition, drop_broadcast, total_range
from cmpg.deadline import check_time
from cmpg.errors import GameError
from cmpg.summaries import fields_line

DENSE_STATES = 32
"""Agents with at most this many states have their transition as a dense array."""


@dataclass(frozen=True, eq=False)
class LocalAgent:
    """An agent that moves on its own states, and uses some of the shared resources at each (state, action).

    Agents of the same kind may share arrays: pass the same objects. What is given here is checked when a `LocalGame`
    takes the agent in; there, matrices become tuples of CSR matrices, and costs that are all zero become None.

    Examples
    --------
    One state; action 1 uses the only resource and is worth 1.

    >>> agent = LocalAgent(transition=[[[[1], [1]]]], reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    """

    _: KW_ONLY
    transition: (
        Any  # one CSR [S·A, S] per step, or one for all, rows in the order (state, action); or [H or 1, S, A, S]
    )
    reward: FloatArray  # [H or 1, S, A]
    uses: Any  # one 0/1 CSR [S·A, E] per step, or one for all; or [H or 1, S, A, E]
    initial: FloatArray  # [S]
    costs: FloatArray | None = None  # [k, H or 1, S, A]; None: zeros

    __repr__ = fields_line

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            transition: Any,
            reward: Numbers,
            uses: Any,
            initial: Numbers,
            costs: Numbers | None = None,
        ) -> None: ...

    __getstate__, __setstate__ = folded_fields, set_folded_fields

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.reward.shape[1])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.reward.shape[2])

    def private_cmdp(self, thresholds: FloatArray, horizon: int) -> CMDP:
        """Return the CMDP of an agent to whom no other agent matters: private reward and costs, all of the budget."""
        costs = np.zeros((len(thresholds), 1, *self.reward.shape[1:])) if self.costs is None else self.costs
        return CMDP(
            transition=self.kernel,
            reward=self.reward,
            costs=frozen(costs),
            thresholds=thresholds,
            initial=self.initial,
            horizon=horizon,
            trusted=True,
        )

    def visits(self, table: FloatArray) -> Visits:
        """Return where a policy [H, S, A] leads."""
        present = np.empty(table.shape[:2])
        present[0] = self.initial
        for step in range(len(table) - 1):
            # Occupancy of (s, a), and from it the distribution of the next state: one product for each step.
            leaving = (present[step][:, None] * table[step]).ravel()
            present[step + 1] = at_step(self._flows, step) @ leaving
        return Visits(present, table)

    def usage(self, visits: Visits) -> FloatArray:
        """Return the probability of using each resource at each step: [H, E]."""
        where = visits.states if self._use_is_by_state else visits.pairs
        if len(self.uses) == 1:
            used = where @ self._uses[0]
        else:
            used = np.stack([matrix.T @ visit for matrix, visit in zip(self._uses, where, strict=True)])
        # The last bits of a sum can lead above one.
        return np.asarray(np.minimum(np.ascontiguousarray(used), 1.0))

    def charge(self, prices: FloatArray) -> FloatArray:
        """Return the sum of the prices [H or 1, E] of what is used at each (step, state, action): [H or 1, S, A].

        The last axis has length 1 where what is used depends on the state alone.
        """
        if len(self.uses) > 1 and len(prices) == 1:
            known = {id(matrix): matrix @ prices[0] for matrix in distinct(self._uses)}
            charged = np.stack([known[id(matrix)] for matrix in self._uses])
        elif len(self.uses) > 1:
            charged = np.stack([matrix @ price for matrix, price in zip(self._uses, prices, strict=True)])
        else:
            charged = np.ascontiguousarray((self._uses[0] @ prices.T).T)
        return charged.reshape(len(charged), self.num_states, -1)

    def reach(self, horizon: int) -> npt.NDArray[np.bool_]:
        """Return which resources the agent can use at each step, by any policy: [H, E]."""
        able = np.zeros((horizon, self.uses[0].shape[1]), dtype=bool)
        present = self.initial > 0
        stationary = len(self.uses) == len(self.transition) == 1
        for step in range(horizon):
            check_time()
            pairs = np.repeat(present, self.num_actions)
            able[step] = entered(at_step(self.uses, step), pairs)
            later = entered(at_step(self.transition, step), pairs)
            if stationary and np.array_equal(later, present):  # and so on for ever
                able[step:] = able[step]
                break
            present = later
        return able

    def reward_range(self, least_delay: FloatArray, greatest_delay: FloatArray, *, horizon: int) -> float:
        """Return Σ_h (max − min) of the reward, where delays of each resource lie between two tables [H or 1, E]."""
        if not least_delay.any() and not greatest_delay.any():
            return total_range(self.reward, horizon, None)
        best = (self.reward - self.charge(least_delay)).max(axis=(1, 2))
        worst = (self.reward - self.charge(greatest_delay)).min(axis=(1, 2))
        spans = best - worst
        return float(spans.sum() if len(spans) > 1 else spans[0] * horizon)

    @cached_property
    def step_roundings(self) -> int:
        """Roundings per step behind an entry of `usage`, and those of reading each row as divided by its exact sum."""
        moves = [facts_of(matrix) for matrix in distinct(self.transition)]
        into, out = max(each.most_in_column for each in moves), max(each.most_in_row for each in moves)
        return into + 4 * (out + self.num_actions + 1)

    @cached_property
    def max_uses(self) -> int:
        """The largest number of resources used at one (state, action), or of pairs that use one resource."""
        return max(self.uses_at_once, *(facts_of(matrix).most_in_column for matrix in distinct(self.uses)))

    @cached_property
    def uses_at_once(self) -> int:
        """The largest number of resources used at one (state, action)."""
        return max(facts_of(matrix).most_in_row for matrix in distinct(self.uses))

    @cached_property
    def kernel(self) -> Any:
        """The transition as a CMDP takes it: dense [H or 1, S, A, S] where it is small, since a sparse product costs
        10 µs.
        """
        if self.num_states > DENSE_STATES:
            return self.transition
        shape = (len(self.transition), self.num_states, self.num_actions, self.num_states)
        return frozen(np.stack([matrix.toarray() for matrix in self.transition]).reshape(shape))

    @cached_property
    def _flows(self) -> tuple[Any, ...]:
        """The transposed transitions, as views."""
        if isinstance(self.kernel, tuple):
            return tuple(matrix.T for matrix in self.kernel)
        return tuple(step.reshape(-1, self.num_states).T for step in self.kernel)

    @cached_property
    def _use_is_by_state(self) -> bool:
        """Whether what is used depends neither on the action nor on the step."""
        if len(self.uses) > 1:
            return False
        starts, columns = self.uses[0].indptr, self.uses[0].indices
        lengths = np.diff(starts).reshape(self.num_states, self.num_actions)
        if (lengths != lengths[:, :1]).any():
            return False
        # The place of each entry in the first row of its state; columns ascend in every row.
        rows = starts[:-1].reshape(lengths.shape)
        first = np.repeat((rows[:, :1] - rows).ravel(), lengths.ravel())
        return np.array_equal(columns, columns[first + np.arange(len(columns))])

    @cached_property
    def _uses(self) -> tuple[Any, ...]:
        """The uses, one row per state where the action does not matter, else as they were given."""
        return (self.uses[0][:: self.num_actions],) if self._use_is_by_state else self.uses


def distinct(matrices: Sequence[Any]) -> list[Any]:
    """Return each matrix of a sequence once; several steps may share one."""
    return list({id(matrix): matrix for matrix in matrices}.values())


def entered(matrix: sp.csr_array, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return in which columns some of the rows, a mask, have an entry."""
    found = np.zeros(matrix.shape[1], dtype=bool)
    found[matrix.indices[np.repeat(rows, matrix.indptr[1:] - matrix.indptr[:-1]) & (matrix.data > 0)]] = True
    return found


class MatrixFacts:
    """What is read off a matrix once, for all games that have it: those of a day share theirs with the rests of it."""

    def __init__(self, matrix: sp.csr_array) -> None:
        """Look at the matrix."""
        lengths = matrix.indptr[1:] - matrix.indptr[:-1]
        self.most_in_row = int(lengths.max(initial=0))
        self.most_in_column = int(np.bincount(matrix.indices, minlength=1).max())
        parts = (np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data)
        self.content = blake2b(b"".join(part.tobytes() for part in parts)).digest()  # agents often have equal ones
        self.rows: dict[Any, Any] = {}  # by how they are read; see `packed`


_FACTS: dict[int, tuple[ReferenceType[sp.csr_array], MatrixFacts]] = {}
"""By the identity of matrices that live; they are read-only."""


def facts_of(matrix: sp.csr_array) -> MatrixFacts:
    """Return what is known of a matrix of an agent."""
    key = id(matrix)
    known = _FACTS.get(key)
    if known is None or known[0]() is not matrix:
        known = _FACTS[key] = ref(matrix, lambda _: _FACTS.pop(key, None)), MatrixFacts(matrix)
    return known[1]


@dataclass(frozen=True, eq=False)
class Visits:
    """Where a policy leads."""

    states: FloatArray  # [H, S]: the probability of being there
    policy: FloatArray  # [H, S, A]

    @cached_property
    def pairs(self) -> FloatArray:
        """The occupancy, with state and action in one axis: [H, S·A]."""
        return (self.states[..., None] * self.policy).reshape(len(self.states), -1)

    def total(self, table: FloatArray) -> float:
        """Return the expected sum of a table [H or 1, S, A] along the way."""
        entries = drop_broadcast(table)
        where = self.states if entries.shape[-1] == 1 else self.pairs
        flat = entries.reshape(len(entries), -1)
        return float((where @ flat[0]).sum() if len(flat) == 1 else np.einsum("hx,hx->h", where, flat).sum())


def checked_tables(
    agents: Sequence[LocalAgent], *, horizon: int, delay: Any, load_costs: Any, thresholds: Any
) -> dict[str, Any]:
    """Return agents, delay, load costs and thresholds as read-only tables that fit together, or raise GameError."""
    check_length_of_time(horizon, None)
    if not isinstance(agents, Sequence) or not agents:  # type: ignore[redundant-expr]
        raise GameError("agents must be a sequence of at least one LocalAgent.")
    delays = _checked_delay(delay, horizon, len(agents))
    costs = _checked_load_costs(load_costs, horizon, delays.shape[1:])
    checked = to_floats(numbers("thresholds", thresholds))
    if checked.shape != costs.shape[:1]:
        raise GameError(
            f"thresholds has shape {list(checked.shape)}; load_costs has {len(costs)} constraints, "
            f"so [{len(costs)}] is required."
        )
    frame = _Frame(horizon, delays.shape[1], len(costs))
    return {
        "agents": _checked_agents(agents, frame),
        "delay": delays,
        "load_costs": costs,
        "thresholds": checked,
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
    """What the tables of agents must fit."""

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
    """Return a table [..., S, A] that does not depend on the action as a view of one column; see `drop_broadcast`."""
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
