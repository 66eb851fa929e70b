"""A joint game at a joint policy: what everybody gets and spends, and the CMDP that each agent faces (Eqs. 7-9).

Exact costs follow only what can happen: every number is read as the rational that it is, and every row of
probabilities is divided by its exact sum. Near-deterministic policies touch few states and joint actions, so this
decides thresholds that are met to the last bit even in games whose tables are far too large for exact arithmetic.

Averages of tables over what the other agents play are the sums over a_{−i} of Eqs. 7-9. The agents are split into two
halves. For an agent of one half, the table is first averaged over the joint action of the other half, by one matrix
product that reads the table once for all steps; what is left is small, and is averaged over the rest of the own half
one axis at a time. The first average is the same for all agents of a half, so whoever asks for several agents can keep
it. Everything works on floats and on Fractions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import BoolArray, FloatArray, frozen
from cmpg.cmdp.evaluation import Evaluation, cost_rounding, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.faces import fields_line
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.cmdp.support import Forbidden
    from cmpg.games.joint.game import JointGame


MOST_ENTRIES = 20_000_000
"""What is possible is not looked up in tables with more entries than this."""

MOST_OUTCOMES = 50_000
"""More (step, state, joint action) triples than this are not followed."""


@dataclass(frozen=True, eq=False)
class JointPosition:
    """A joint game at a joint policy."""

    game: JointGame
    policy: JointPolicy

    __repr__ = fields_line

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        return np.array([self.present(agent).value for agent in range(self.game.num_agents)])

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return evaluate(self.induced_cmdp(0), self.policy[0]).costs

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return np.asarray(self.game.thresholds - self.costs)

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        return cost_rounding(self.induced_cmdp(0), self.costs)

    def present(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP."""
        return evaluate(self.induced_cmdp(agent), self.policy[agent])

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies."""
        if agent not in self._cmdps:
            self._cmdps[agent] = self._induce(agent)
        return self._cmdps[agent]

    def same_problem(self, agent: int, earlier: JointPosition) -> bool:  # noqa: ARG002
        """Return False: whoever moves changes the averages of everybody else."""
        return False

    def exact_costs(self, policy: JointPolicy) -> list[Fraction] | None:
        """Return V^{c_j} of the policy as it was given, exactly, or None where too much can happen."""
        return exact_costs(self.game, policy)

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation of one agent takes, or None where a budget is not hard."""
        game = self.game
        size = game.num_steps * game.num_states * prod(game.num_actions)
        if size * (1 if game.is_sparse else game.num_states) > MOST_ENTRIES:
            return None
        from cmpg.cmdp.support import Successors, forbidden_in  # few budgets are hard

        possible = [np.asarray(table > 0) for table in self.policy]
        least, most = over_others(game.costs[constraint], possible, keep=agent)
        left = Fraction(game.thresholds[constraint])
        after = [Successors.of(matrix) for matrix in possible_moves(game.transition, possible, keep=agent)]
        return forbidden_in(self.induced_cmdp(agent), least, most, left=left, after=after)

    def replace(self, agent: int, table: Any) -> JointPosition:
        """Return the position after one agent has changed its policy; what the others face is computed anew."""
        moved = JointPosition(self.game, self.policy.move(agent, table))
        if agent in self._cmdps:
            moved._cmdps[agent] = self._cmdps[agent]
        own_half = self._others.in_first_half(agent)
        moved._halves.update({key: mean for key, mean in self._halves.items() if key[1] == own_half})
        return moved

    @cached_property
    def _cmdps(self) -> dict[int, CMDP]:
        return {}

    @cached_property
    def _others(self) -> Others:
        return Others(self.policy)

    @property
    def _roundings(self) -> int:
        dense = average_roundings(self.game.num_actions)
        return max(dense, average_roundings(self.game.num_actions, sparse=True)) if self.game.is_sparse else dense

    @cached_property
    def _halves(self) -> dict[tuple[str, bool], FloatArray]:
        """Tables that all agents share, averaged over one half of the agents, by name and half that is left."""
        return {}

    def _shared_average(self, name: str, table: FloatArray, agent: int) -> FloatArray:
        key = (name, self._others.in_first_half(agent))
        if key not in self._halves:
            self._halves[key] = self._others.start(table, keep=agent)
        return self._others.finish(self._halves[key], keep=agent)

    def _induce(self, agent: int) -> CMDP:
        game = self.game
        if game.is_sparse:
            transition: Any = average_rows(game.transition, self.policy, keep=agent)
        else:
            transition = frozen(self._shared_average("transition", game.transition, agent))
        costs = [self._shared_average(f"cost {j}", cost, agent) for j, cost in enumerate(game.costs)]
        return CMDP(
            transition=transition,
            reward=frozen(self._others.average(game.rewards[agent], keep=agent)),
            costs=frozen(np.stack(costs) if costs else np.zeros((0, 1, game.num_states, game.num_actions[agent]))),
            thresholds=game.thresholds,
            initial=game.initial,
            horizon=game.horizon,
            discount=game.discount,
            entry_roundings=self._roundings,
            trusted=True,
        )


def exact_costs(game: JointGame, policy: JointPolicy) -> list[Fraction] | None:
    """Return V^{c_j} exactly, one per constraint, or None where too much can happen (or the sum is discounted)."""
    if game.discount is not None:
        return None
    totals = [Fraction(0)] * game.num_constraints
    states = _distribution(game.initial)
    followed = 0
    for step in range(game.num_steps):
        ahead: dict[int, Fraction] = defaultdict(Fraction)
        for state, reached in states.items():
            rows = [_distribution(table[step, state]) for table in policy]
            followed += prod(len(row) for row in rows)
            if followed > MOST_OUTCOMES:
                return None
            for joint in product(*(row.items() for row in rows)):
                chance = reached * prod((probability for _, probability in joint), start=Fraction(1))
                where = (state, *(action for action, _ in joint))
                for j, cost in enumerate(game.costs):
                    totals[j] += chance * Fraction(cost[(0 if len(cost) == 1 else step, *where)])
                if step + 1 < game.num_steps:
                    for target, probability in _next_states(game, step, where).items():
                        ahead[target] += chance * probability
        states = ahead
    return totals


def _distribution(row: Any) -> dict[int, Fraction]:
    """Return the support of a row with exact probabilities that sum to one."""
    support = {int(index): Fraction(row[index]) for index in np.flatnonzero(row)}
    total = sum(support.values(), start=Fraction(0))
    return {index: chance / total for index, chance in support.items()}


def _next_states(game: JointGame, step: int, where: tuple[int, ...]) -> dict[int, Fraction]:
    """Return the exact distribution of the next state after a state and joint action."""
    table = game.transition[0 if len(game.transition) == 1 else step]
    if not sp.issparse(table):
        return _distribution(table[where])
    row = int(np.ravel_multi_index(where, (game.num_states, *game.num_actions)))
    begin, end = int(table.indptr[row]), int(table.indptr[row + 1])
    chances = _distribution(table.data[begin:end])
    targets = table.indices[begin:end]
    return {int(targets[index]): chance for index, chance in chances.items()}


# --- Averages over what the others play -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Others:
    """What the others play, from the point of view of each agent at one joint policy."""

    policy: JointPolicy

    @cached_property
    def middle(self) -> int:
        """The first agent of the second half."""
        return _middle([shape[2] for shape in self.policy.shapes])

    def in_first_half(self, agent: int) -> bool:
        """Whether an agent belongs to the first half."""
        return agent < self.middle

    def average(self, table: FloatArray, *, keep: int) -> FloatArray:
        """Average a table [H or 1, S, A_1, …, A_n, …] over every agent's action but one's.

        Returns
        -------
        [H, S, A_keep, …]
            Of a single agent's game, the table itself.
        """
        return self.finish(self.start(table, keep=keep), keep=keep)

    def start(self, table: FloatArray, *, keep: int) -> FloatArray:
        """Average over the half to which the kept agent does not belong; all agents of its half share the answer.

        Returns
        -------
        [H, S, actions of the half of `keep`, …]
            The table that `finish` takes.
        """
        agents, middle = len(self.policy), self.middle
        if agents == 1:
            return table
        first, second, trailing = (
            table.shape[2 : 2 + middle],
            table.shape[2 + middle : 2 + agents],
            table.shape[2 + agents :],
        )
        split = table.reshape(*table.shape[:2], math.prod(first), math.prod(second), math.prod(trailing))
        if self.in_first_half(keep):
            mean, kept = _average_second(split, self._second), first
        else:
            mean, kept = _average_first(split, self._first), second
        return mean.reshape(*mean.shape[:2], *kept, *trailing)

    def finish(self, table: FloatArray, *, keep: int) -> FloatArray:
        """Average what `start` left over the other agents of the half of `keep`."""
        if len(self.policy) == 1:
            return table
        half = range(self.middle) if self.in_first_half(keep) else range(self.middle, len(self.policy))
        for agent in (agent for agent in half if agent < keep):
            table = _average_axis(table, self.policy[agent], 2)
        for agent in (agent for agent in half if agent > keep):
            table = _average_axis(table, self.policy[agent], 3)
        return table

    @cached_property
    def _first(self) -> FloatArray:
        return _joint_rows([self.policy[agent] for agent in range(self.middle)])

    @cached_property
    def _second(self) -> FloatArray:
        return _joint_rows([self.policy[agent] for agent in range(self.middle, len(self.policy))])


def average_over(table: FloatArray, policy: JointPolicy, *, keep: int) -> FloatArray:
    """Average one table [H or 1, S, A_1, …, A_n, …] over every agent's action but one's; return [H, S, A_keep, …]."""
    return Others(policy).average(table, keep=keep)


def average_roundings(num_actions: Sequence[int], *, sparse: bool = False) -> int:
    """Return how many roundings an average has behind it at most: products of rows, sums over joint actions."""
    if len(num_actions) == 1:
        return 0
    if sparse:  # one sum over all joint actions of the others
        return math.prod(num_actions) // min(num_actions) + len(num_actions)
    middle = _middle(num_actions)
    halves = math.prod(num_actions[:middle]) + math.prod(num_actions[middle:])
    return halves + sum(num_actions) + len(num_actions)


def _middle(num_actions: Sequence[int]) -> int:
    """Return the cut that makes the joint actions of the two halves fewest."""
    cuts = range(1, len(num_actions))
    return min(cuts, key=lambda cut: math.prod(num_actions[:cut]) + math.prod(num_actions[cut:]), default=1)


def _joint_rows(tables: list[FloatArray]) -> FloatArray:
    """Return the probabilities [H, S, ΠA] of the joint actions of some agents."""
    joint = tables[0]
    for table in tables[1:]:
        joint = (joint[..., :, None] * table[..., None, :]).reshape(*joint.shape[:2], -1)
    return joint


def _average_first(table: FloatArray, rows: FloatArray) -> FloatArray:
    """Return Σ_a rows[h, s, a] · table[h, s, a, b, …] for a table [H or 1, S, A, B, T]: [H, S, B, T]."""
    steps, states = table.shape[:2]
    flat = table.reshape(steps, states, table.shape[2], -1)
    mean = np.matmul(_columns(rows, steps), flat)
    return _steps_first(mean).reshape(len(rows), states, *table.shape[3:])


def _average_second(table: FloatArray, rows: FloatArray) -> FloatArray:
    """Return Σ_b rows[h, s, b] · table[h, s, a, b, …] for a table [H or 1, S, A, B, T]: [H, S, A, T]."""
    columns = _columns(rows, len(table))
    if table.shape[-1] == 1:
        mean = np.matmul(table[..., 0], columns.swapaxes(2, 3)).swapaxes(2, 3)[..., None]
    else:
        mean = np.matmul(columns[:, :, None], table).swapaxes(2, 3)
    return _steps_first(mean)


def _columns(rows: FloatArray, steps: int) -> FloatArray:
    """Return rows [H, S, A] as [1, S, H, A] for a table that is the same at every step, else as [H, S, 1, A]."""
    return rows.swapaxes(0, 1)[None] if steps == 1 else rows[:, :, None]


def _steps_first(mean: FloatArray) -> FloatArray:
    """Undo `_columns`: [1, S, H, …] or [H, S, 1, …] becomes [H, S, …]."""
    return np.ascontiguousarray(mean[0].swapaxes(0, 1) if len(mean) == 1 else mean[:, :, 0])


def _average_axis(table: FloatArray, rows: FloatArray, axis: int) -> FloatArray:
    """Return Σ_a rows[h, s, a] · table[h, s, …, a, …], the sum over one axis."""
    before, after = table.shape[2:axis], table.shape[axis + 1 :]
    flat = table.reshape(*table.shape[:2], math.prod(before), table.shape[axis], math.prod(after))
    mean: FloatArray = np.matmul(rows[:, :, None, None, :], flat)[..., 0, :]
    return mean.reshape(*mean.shape[:2], *before, *after)


def average_rows(matrices: tuple[sp.csr_array, ...], policy: JointPolicy, *, keep: int) -> tuple[sp.csr_array, ...]:
    """The same average for a sparse transition: matrices [S·ΠA, S] become [S·A_keep, S], one per step."""
    if len(policy) == 1:
        return matrices
    steps, states, own = policy.shapes[keep]
    shape = (states, *(table.shape[2] for table in policy))
    rows = math.prod(shape)
    # The rows that are averaged into one are gathered side by side, so that the averaging matrix needs no sorting.
    columns = np.moveaxis(np.arange(rows).reshape(shape), 1 + keep, 1).ravel()
    starts = np.arange(0, rows + 1, rows // (states * own))
    joint = _joint_rows([table for agent, table in enumerate(policy) if agent != keep])
    averaged = []
    for step in range(steps):
        weights = np.broadcast_to(joint[step][:, None, :], (states, own, joint.shape[2])).ravel()
        mixing = sp.csr_array((weights, columns, starts), shape=(states * own, rows))
        averaged.append(sp.csr_array(mixing @ matrices[0 if len(matrices) == 1 else step]))
    return tuple(averaged)


def over_others(table: FloatArray, possible: Sequence[BoolArray], *, keep: int) -> tuple[Any, Any]:
    """Return the least and the greatest entry of a table [H or 1, S, *A] over what the others may play.

    Parameters
    ----------
    table : [H or 1, S, A_1, …, A_n]
        Floats or Fractions.
    possible : n tables [H, S, A_i]
        What each agent may play.
    keep
        The agent whose actions are kept.

    Returns
    -------
    [H, S, A_keep]
        Twice.
    """
    low = high = np.broadcast_to(table, (len(possible[0]), *table.shape[1:]))
    for agent in reversed(range(len(possible))):
        if agent == keep:
            continue
        # Actions that are not possible stand for one that is.
        own = possible[agent]
        instead = np.where(own, np.arange(own.shape[2]), own.argmax(axis=2)[..., None])
        places = np.expand_dims(instead, tuple(axis for axis in range(2, low.ndim) if axis != 2 + agent))
        low, high = (np.take_along_axis(each, places, axis=2 + agent) for each in (low, high))
        low, high = low.min(axis=2 + agent), high.max(axis=2 + agent)
    return low, high


def possible_moves(transition: Any, possible: Sequence[BoolArray], *, keep: int) -> Sequence[Any]:
    """Return matrices [S·A_keep, S] that are positive where an agent's action can lead, one per step or one for all.

    Parameters
    ----------
    transition : [H or 1, S, *A, S], or CSR matrices [S·ΠA, S]
        Of the game.
    possible : n tables [H, S, A_i]
        What each agent may play.
    keep
        The agent whose actions are kept.
    """
    # Whatever is possible is taken to be as probable as the rest: some probabilities are too small to multiply.
    counted = JointPolicy(tuple(each / each.sum(axis=2, keepdims=True) for each in possible))
    if isinstance(transition, tuple):
        ones = tuple(sp.csr_array(((m.data > 0).astype(np.float64), m.indices, m.indptr), m.shape) for m in transition)
        return average_rows(ones, counted, keep=keep)
    counts = average_over(np.asarray(transition > 0, dtype=np.float64), counted, keep=keep)
    return list(counts.reshape(len(counts), -1, counts.shape[-1]))
