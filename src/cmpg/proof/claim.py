"""What is claimed: a game, a joint policy and multipliers, as plain tables.

Axes: family (agent i or constraint j), step, state, actions in agent order, next state. A step axis has length H, or 1
for what does not change with the step; a discounted game has one step. Every row of probabilities stands for the row
divided by its exact sum, which must be within `ROW_SUM_TOLERANCE` of one.

A claim says: the policy meets every threshold, and no agent i gains more than ε by a deviation that meets the
thresholds that bind it. Deviations depend on what policies of that form depend on: the shared state, or the own one.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from cmpg.proof.rounding import Array
from cmpg.proof.rounding import Csr as Csr

ROW_SUM_TOLERANCE = 1e-9


class ClaimError(ValueError):
    """A table of a claim has the wrong shape, or holds something that it must not hold."""


@dataclass(frozen=True, eq=False)
class JointTables:
    """A game on a shared state with tables over joint actions."""

    initial: Array  # [S]
    transition: tuple[Array | Csr, ...]  # one matrix [S·ΠA, S] per step, or one for all
    rewards: Array  # [n, H or 1, S, *A]
    costs: Array  # [k, H or 1, S, *A]


@dataclass(frozen=True, eq=False)
class CountingTables:
    """A game on a shared state in which rewards depend on how many agents play the same action, and all else on the
    class of the counts: by the largest count and where it lies between boundaries, or a class for every count vector.
    """

    initial: Array  # [S]
    transition: tuple[Array, ...]  # one matrix [S·C, S] per step, or one for all
    rewards: Array  # [H or 1, S, A, n + 1]: of an agent on action a, when m agents are
    private_rewards: Array  # [n, H or 1, S, A]
    class_rewards: Array  # [H or 1, S, A, C]
    costs: Array  # [k, H or 1, S, C]
    boundaries: tuple[float, ...] | None  # None: every count vector, in lexicographic order


@dataclass(frozen=True, eq=False)
class AgentTables:
    """One agent of a local game."""

    initial: Array  # [S]
    transition: tuple[Csr, ...]  # one matrix [S·A, S] per step, or one for all
    uses: tuple[Csr, ...]  # one matrix [S·A, E] of zeros and ones per step, or one for all
    reward: Array  # [H or 1, S, A]
    costs: Array | None  # [k, H or 1, S, A]; None: zeros


@dataclass(frozen=True, eq=False)
class LocalTables:
    """Agents on states of their own, who meet at resources: a user of e at load m gets −delay[h, e, m], and constraint
    j pays load_costs[j, h, e, m] once for each resource and step, beside the private costs.
    """

    agents: tuple[AgentTables, ...]
    delay: Array  # [H or 1, E, n + 1]
    load_costs: Array  # [k, H or 1, E, n + 1]


@dataclass(frozen=True, eq=False)
class Claim:
    """A game, a policy, and what proves that it is one of equilibrium."""

    tables: JointTables | CountingTables | LocalTables
    horizon: int | None  # exactly one of the two is given
    discount: Any
    thresholds: Array  # [k]
    binds: Array  # [n, k]: whether constraint j binds agent i
    policy: tuple[Array, ...]  # n tables [H, S_i, A_i]
    multipliers: Array  # [n, k]; infinite where the proof is by support

    def __post_init__(self) -> None:
        _check(self)

    @property
    def steps(self) -> int:
        """The length of a policy's step axis."""
        return 1 if self.horizon is None else self.horizon

    @property
    def is_rational(self) -> bool:
        """Whether a table holds Fractions instead of floats."""
        tables = any(table.dtype == object for table in arrays_of(self))
        return tables or isinstance(self.discount, Fraction)


def arrays_of(record: Any) -> list[Array]:
    """Return all arrays of a claim, or of its tables, that hold numbers."""
    found: list[Array] = []
    for value in vars(record).values():
        for each in value if type(value) is tuple else (value,):
            if isinstance(each, Csr):
                found.append(each.data)
            elif isinstance(each, np.ndarray):
                found.append(each)
            elif is_dataclass(each):
                found += arrays_of(each)
    return found


def at_step(tables: Any, step: int) -> Any:
    """Return what holds at a step: a sequence of length one holds at every step."""
    return tables[0 if len(tables) == 1 else step]


def policy_shapes(tables: JointTables | CountingTables | LocalTables, steps: int) -> list[tuple[int, int, int]]:
    """Return the shape [H, S_i, A_i] of each agent's policy."""
    if isinstance(tables, LocalTables):
        return [(steps, *agent.reward.shape[1:]) for agent in tables.agents]
    alike = tables.rewards.shape[2:3] * len(tables.private_rewards) if isinstance(tables, CountingTables) else ()
    return [(steps, len(tables.initial), actions) for actions in alike or tables.rewards.shape[3:]]


def uniform_policy(tables: JointTables | CountingTables | LocalTables, steps: int) -> tuple[Array, ...]:
    """Return the policy that plays anything: claims about no product policy are checked as one about it is."""
    return tuple(np.full(shape, 1 / shape[-1]) for shape in policy_shapes(tables, steps))


def _check(claim: Claim) -> None:
    """Raise unless every table has its shape, every number is finite, and every row is a distribution."""
    agents, constraints, steps = len(claim.policy), len(claim.thresholds), claim.steps
    if (claim.horizon is None) == (claim.discount is None) or steps < 1:
        raise ClaimError("exactly one of horizon and discount is required, and a horizon of at least one step.")
    if claim.discount is not None and not 0 <= claim.discount < 1:
        raise ClaimError(f"discount is {claim.discount}; 0 ≤ γ < 1 is required.")
    _shaped("thresholds", claim.thresholds, (constraints,))
    if claim.binds.dtype != bool or claim.binds.shape != (agents, constraints):
        raise ClaimError(f"binds is no table of truth values of shape {[agents, constraints]}.")
    hard = claim.multipliers == np.inf
    _shaped("multipliers", np.where(hard, 0, claim.multipliers), (agents, constraints))
    if np.any(claim.multipliers < 0):
        raise ClaimError("multipliers has a negative entry; a multiplier is at least zero.")
    if np.any((claim.multipliers != 0) & ~claim.binds):
        raise ClaimError("a multiplier is not zero although its constraint does not bind that agent.")
    tables = claim.tables
    if isinstance(tables, LocalTables):
        _check_local(tables, claim)
    else:
        _check_shared(tables, claim)
    shapes = policy_shapes(tables, steps)
    if len(shapes) != agents:
        raise ClaimError(f"the game has {len(shapes)} agents, and the policy {agents} tables.")
    for i, (table, shape) in enumerate(zip(claim.policy, shapes, strict=True)):
        _distributions(f"policy[{i}]", table, shape)


def _check_shared(tables: JointTables | CountingTables, claim: Claim) -> None:
    agents, constraints, states = len(claim.policy), len(claim.thresholds), len(tables.initial)
    _distributions("initial", tables.initial, (states,))
    if isinstance(tables, JointTables):
        outcomes = tables.rewards.shape[3:]
        _stepped("rewards", tables.rewards, claim, (agents,), (states, *outcomes))
        _stepped("costs", tables.costs, claim, (constraints,), (states, *outcomes))
    else:
        actions, classes = tables.rewards.shape[2], tables.class_rewards.shape[3]
        outcomes = (classes,)
        every = comb(agents + actions - 1, actions - 1) if tables.boundaries is None else len(tables.boundaries) + 1
        if classes != every:
            raise ClaimError(f"class_rewards has {classes} classes; the counts have {every}.")
        _stepped("rewards", tables.rewards, claim, (), (states, actions, agents + 1))
        _stepped("private_rewards", tables.private_rewards, claim, (agents,), (states, actions))
        _stepped("class_rewards", tables.class_rewards, claim, (), (states, actions, classes))
        _stepped("costs", tables.costs, claim, (constraints,), (states, classes))
    _matrices([("transition", tables.transition, (states * int(np.prod(outcomes)), states))], claim)


def _check_local(tables: LocalTables, claim: Claim) -> None:
    if claim.horizon is None:
        raise ClaimError("a local game has a horizon.")
    agents, constraints, resources = len(claim.policy), len(claim.thresholds), tables.delay.shape[1]
    _stepped("delay", tables.delay, claim, (), (resources, agents + 1))
    _stepped("load_costs", tables.load_costs, claim, (constraints,), (resources, agents + 1))
    known: set[Any] = set()
    moves: list[tuple[str, Any, tuple[int, int]]] = []
    uses: list[tuple[str, Any, tuple[int, int]]] = []
    for i, agent in enumerate(tables.agents):
        states, actions = shape = agent.reward.shape[1:]
        _distributions(f"initial of agent {i}", agent.initial, (states,))
        for name, table, family in (("reward", agent.reward, ()), ("costs", agent.costs, (constraints,))):
            if table is not None and (id(table), shape) not in known:
                _stepped(f"{name} of agent {i}", table, claim, family, shape)
        if (id(agent.transition), shape) not in known:
            moves.append((f"transition of agent {i}", agent.transition, (states * actions, states)))
        if (id(agent.uses), shape) not in known:
            uses.append((f"uses of agent {i}", agent.uses, (states * actions, resources)))
        known |= {(id(each), shape) for each in (agent.reward, agent.costs, agent.transition, agent.uses)}
    _matrices(moves, claim)
    _matrices(uses, claim, rows=False)


def _shaped(name: str, table: Array, shape: tuple[int, ...]) -> None:
    if table.shape != shape:
        raise ClaimError(f"{name} has shape {list(table.shape)}; {list(shape)} is required.")
    _numbers(name, table)
    if table.dtype != object and not np.isfinite(table).all():
        raise ClaimError(f"{name} has an entry that is not a finite number.")


def _numbers(name: str, table: Array) -> None:
    # The bounds on rounding are those of 64-bit floats, and of nothing else.
    if table.dtype not in (np.float64, object):
        raise ClaimError(f"{name} holds {table.dtype} entries; floats (float64) or Fractions are required.")


def _stepped(name: str, table: Array, claim: Claim, family: tuple[int, ...], rest: tuple[int, ...]) -> None:
    steps = table.shape[len(family)] if table.ndim > len(family) else 0
    if steps not in (1, claim.steps):
        raise ClaimError(f"{name} has {steps} steps; 1 or {claim.steps} are required.")
    _shaped(name, table, (*family, steps, *rest))


def _distributions(name: str, rows: Array, shape: tuple[int, ...]) -> None:
    _shaped(name, rows, shape)
    if np.any(rows < 0) or np.any(np.abs(rows.sum(axis=-1) - 1) > ROW_SUM_TOLERANCE):
        raise ClaimError(f"{name} has a row that is no probability distribution.")


def _matrices(given: list[tuple[str, Any, tuple[int, int]]], claim: Claim, *, rows: bool = True) -> None:
    """Check matrices, a sequence by step under each name with its shape: distributions, or zeros and ones."""
    sparse: list[tuple[str, Csr]] = []
    for name, matrices, shape in given:
        if len(matrices) not in (1, claim.steps):
            raise ClaimError(f"{name} has {len(matrices)} steps; 1 or {claim.steps} are required.")
        for matrix in {id(each): each for each in matrices}.values():
            if not isinstance(matrix, Csr):
                _distributions(name, matrix, shape)
                continue
            starts, entries = matrix.indptr, len(matrix.indices)
            fits = len(starts) == shape[0] + 1 and matrix.columns == shape[1] and len(matrix.data) == entries
            if not fits or starts[0] != 0 or starts[-1] != entries or (starts[1:] < starts[:-1]).any():
                raise ClaimError(f"{name} is no sparse matrix of shape {list(shape)}.")
            _numbers(name, matrix.data)
            sparse.append((name, matrix))
    if sparse:
        _entries(sparse, rows=rows)


def _entries(given: list[tuple[str, Csr]], *, rows: bool) -> None:
    """Check what sparse matrices hold, of all of them in one row."""
    names, matrices = zip(*given, strict=True)
    owner = np.repeat(np.arange(len(matrices)), [len(each.indptr) - 1 for each in matrices])  # of each row
    lengths = np.concatenate([each.indptr[1:] - each.indptr[:-1] for each in matrices])
    row, indices = np.repeat(np.arange(len(owner)), lengths), np.concatenate([each.indices for each in matrices])
    data = np.concatenate([each.data for each in matrices])
    columns = np.array([each.columns for each in matrices])

    def refuse(wrong: Array, of: Array, what: str) -> None:
        if wrong.any():
            at = int(of[np.argmax(wrong)])
            raise ClaimError(f"{names[at]} has {what.format(columns[at])}")

    place = "an entry outside of its {} columns, or twice in one place."
    refuse((indices < 0) | (indices >= columns[owner[row]]), owner[row], place)
    order = np.lexsort((indices, row))
    twice = (np.diff(row[order]) == 0) & (np.diff(indices[order]) == 0)
    refuse(twice, owner[row[order]][1:], place)
    if not rows:
        refuse(data != 1, owner[row], "an entry other than 0 and 1.")
        return
    if data.dtype != object:
        refuse(~np.isfinite(data), owner[row], "an entry that is not a finite number.")
    sums = np.zeros(len(owner), dtype=data.dtype)
    np.add.at(sums, row, data)
    refuse(data < 0, owner[row], "a row that is no probability distribution.")
    refuse(np.abs(sums - 1) > ROW_SUM_TOLERANCE, owner, "a row that is no probability distribution.")
