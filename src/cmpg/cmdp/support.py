"""Hard budgets: which actions no feasible policy can take, found from what is possible alone.

Let least_h(s, a) and most_h(s, a) be the least and the most that an action can cost, and
    m_h(s) = min_a [least_h(s, a) + min_{s′ possible} m_{h+1}(s′)],    m_H = 0:
no path from s costs less. Where E m_0(s_0) is all that is left of a threshold, a policy is feasible if and only if
every path that is possible under it costs exactly m_0. An action is forbidden where it may cost more, most_h(s, a) +
max_{s′ possible} m_{h+1}(s′) > m_h(s), and where it may lead to a state all of whose actions are forbidden. A threshold
of zero, with costs that are not negative, is the plain case: m is zero, and whatever may cost anything is forbidden.

Guarantee: a policy that keeps such a threshold takes no forbidden action in any state that it reaches, and a policy
that takes none keeps it. So the constraint can be replaced by forbidding actions, and needs no multiplier, which could
be larger than any float. Nothing here depends on how probable anything is, except on the initial state; costs are
whole multiples of one unit, and are added and compared without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import BoolArray, FloatArray, IntArray, frozen
from cmpg.cmdp.model import CMDP

EXACT_FLOAT = 2.0**52
"""Whole numbers up to this are added without rounding in floats, too."""


@dataclass(frozen=True, eq=False)
class Successors:
    """Which states can follow each (state, action), of one step or of all."""

    starts: IntArray  # [S·A]: where each pair's list begins
    states: IntArray

    @classmethod
    def of(cls, matrix: Any) -> Successors:
        """Read them from a transition matrix [S·A, S], dense or CSR."""
        if sp.issparse(matrix):
            possible = matrix.data > 0
            lengths = np.add.reduceat(possible, matrix.indptr[:-1], dtype=np.int64)
            return cls(_starts(lengths), matrix.indices[possible])
        pairs, states = np.nonzero(matrix > 0)
        return cls(_starts(np.bincount(pairs, minlength=len(matrix))), states)

    def least(self, ahead: Any) -> Any:
        """Return the least of some numbers [S] over what can follow: [S·A]."""
        return np.minimum.reduceat(ahead[self.states], self.starts)

    def most(self, ahead: Any) -> Any:
        """Return the greatest of some numbers [S] over what can follow: [S·A]."""
        return np.maximum.reduceat(ahead[self.states], self.starts)


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]])


def successors(cmdp: CMDP) -> list[Successors]:
    """Return what can follow what in a CMDP: one per step, or one for all."""
    return [Successors.of(matrix) for matrix in cmdp.matrices]


@dataclass(frozen=True, eq=False)
class Forbidden:
    """Actions that no feasible policy takes where it may come to them, and what can follow each action."""

    actions: BoolArray  # [H, S, A]
    after: Sequence[Successors]  # one per step, or one for all
    for_ever: bool = False  # the sum is discounted, and every step counts; at a discount of zero the first alone does

    def taken_by(self, table: FloatArray, initial: FloatArray) -> bool:
        """Whether a policy [H, S, A] may come to one of them from its initial states [S]; discounted, ever."""
        present = np.asarray(initial > 0)
        seen, step, last = present, 0, len(table) - 1
        while True:
            pairs = present[:, None] & np.asarray(table[min(step, last)] > 0)
            if (pairs & self.actions[min(step, last)]).any():
                return True
            following = self.after[0 if len(self.after) == 1 else min(step, last)]
            lengths = np.diff(np.append(following.starts, len(following.states)))
            present = np.zeros(len(initial), dtype=bool)
            present[following.states[np.repeat(pairs.ravel(), lengths)]] = True
            step += 1
            if (not self.for_ever and step > last) or (self.for_ever and not (present & ~seen).any()):
                return False
            if self.for_ever:
                seen = present = present | seen


@dataclass(frozen=True, eq=False)
class PossibleCosts:
    """What an agent's actions can cost one constraint, in whole multiples of some unit, and what is left of it."""

    least: Any  # [H or 1, S, A] of whole numbers
    most: Any  # [H or 1, S, A]
    left: Fraction

    @classmethod
    def between(cls, least: Any, most: Any, left: Fraction, *, horizon: int) -> PossibleCosts:
        """Read costs, floats or Fractions, exactly."""
        (low, high), unit = whole_multiples(least, most, times=horizon + 1)
        return cls(low, high, left * unit)


def whole_multiples(*tables: Any, times: int = 1) -> tuple[list[Any], int]:
    """Return tables of floats or Fractions as whole multiples of 1/unit, and that unit.

    They are 64-bit integers where `times` the largest of them is one, and Python's own elsewhere.
    """
    known, indices = np.unique(np.concatenate([table.ravel() for table in tables]), return_inverse=True)
    numbers = [Fraction(each) for each in known]
    unit = lcm(*(number.denominator for number in numbers))
    units = [int(number * unit) for number in numbers]
    fits = times * max(abs(units[0]), abs(units[-1])) < 2**62
    whole = np.array(units, dtype=np.int64 if fits else object)[indices]
    parts = np.split(whole, np.cumsum([table.size for table in tables])[:-1])
    return [part.reshape(table.shape) for part, table in zip(parts, tables, strict=True)], unit


def forbidden_actions(
    costs: PossibleCosts, after: Sequence[Successors], initial: FloatArray, *, steps: int
) -> Forbidden | None:
    """Return which actions no policy can take that spends at most what is left, or None if that is not provable.

    Parameters
    ----------
    costs
        What actions can cost.
    after
        What can follow each (state, action): one per step, or one for all.
    initial : [S]
        The distribution of the initial state; rows are read as divided by their exact sum.
    steps
        H.
    """
    _, states, actions = costs.least.shape
    forbidden = np.zeros((steps, states, actions), dtype=bool)
    ahead = np.zeros(states, dtype=costs.least.dtype)
    for step in reversed(range(steps)):
        following = after[0 if len(after) == 1 else step]
        least, most = (each[0 if len(each) == 1 else step] for each in (costs.least, costs.most))
        low = least + following.least(ahead).reshape(states, actions)
        high = most + following.most(ahead).reshape(states, actions)
        ahead = low.min(axis=1)
        forbidden[step] = np.asarray(high > ahead[:, None], dtype=bool)
    first = {int(s): Fraction(initial[s]) for s in np.flatnonzero(initial)}
    if sum(chance * int(ahead[s]) for s, chance in first.items()) != costs.left * sum(first.values()):
        return None
    return Forbidden(forbidden, after)


def forbidden_in(
    cmdp: CMDP, least: Any, most: Any, *, left: Fraction, after: Sequence[Successors] | None = None
) -> Forbidden | None:
    """Return which actions of a CMDP no policy can take that spends at most what is left; None if that is not provable.

    Parameters
    ----------
    cmdp
        The process; its costs and thresholds play no part.
    least, most : [H or 1, S, A]
        What each action can cost, in floats or Fractions that are read exactly.
    left
        What may be spent.
    after
        What can follow each (state, action), unless it is what the transition of the CMDP says.
    """
    following = after or successors(cmdp)
    if left == 0 and not (least < 0).any():  # all that matters is what is zero
        costly = np.broadcast_to(np.asarray(most > 0, dtype=bool), cmdp.policy_shape)
        return Forbidden(costly, following, for_ever=_goes_on(cmdp))
    if cmdp.discount is not None:
        return None
    costs = PossibleCosts.between(least, most, left, horizon=cmdp.num_steps)
    return forbidden_actions(costs, following, cmdp.initial, steps=cmdp.num_steps)


def _goes_on(cmdp: CMDP) -> bool:
    """Whether steps after the last one of a policy count: not at a discount of zero, where only the first does."""
    return cmdp.discount is not None and cmdp.discount > 0


def cannot_be_safe(forbidden: BoolArray, after: Sequence[Successors], *, for_ever: bool = False) -> BoolArray:
    """Forbid as well what can lead to a state all of whose actions are forbidden: [H, S, A]."""
    closed = forbidden.copy()
    shape = closed.shape[1:]
    if for_ever:
        while True:
            lost = closed[0].all(axis=1)
            wider = closed[0] | after[0].most(lost).reshape(shape)
            if np.array_equal(wider, closed[0]):
                return closed
            closed[0] = wider
    for step in reversed(range(len(closed) - 1)):
        lost = closed[step + 1].all(axis=1)
        if lost.any():
            closed[step] |= after[0 if len(after) == 1 else step].most(lost).reshape(shape)
    return closed


@dataclass(frozen=True, eq=False)
class Restricted:
    """A CMDP without some actions and without the constraints that forbid them."""

    cmdp: CMDP
    instead: IntArray | None  # [H, S, A]: the action that stands in for each; None if forbidden ones are only bad

    def policy(self, table: FloatArray) -> FloatArray:
        """Return a policy of the restricted CMDP as one of the original."""
        if self.instead is None:
            return table
        moved = np.zeros(self.instead.shape, dtype=table.dtype)
        count = self.instead.shape
        steps, states = np.arange(count[0])[:, None], np.arange(count[1])
        for action in range(count[2]):
            moved[steps, states, self.instead[..., action]] += table[..., action]
        return moved


def restricted(cmdp: CMDP, forbidden: Sequence[Forbidden], hard: BoolArray) -> Restricted | None:
    """Forbid actions in place of some constraints; None if the initial state is lost, so that no policy is feasible.

    What is allowed leads only to states where something is allowed. So if no constraint is left on a finite horizon, it
    is enough to make what is forbidden worse than everything else: nothing that is allowed is worth less for it.
    Otherwise another action stands in for it: a low cost could make up for any reward, and bounds on discounted sums
    are as exact as values are near to each other, which those of lost states, paid for ever, would not be.

    Parameters
    ----------
    cmdp
        The process.
    forbidden
        Actions that each of the hard constraints forbids.
    hard : [k]
        Which constraints those are: they are left out.
    """
    actions = np.logical_or.reduce([each.actions for each in forbidden])
    closed = cannot_be_safe(actions, forbidden[0].after, for_ever=_goes_on(cmdp))
    lost = np.asarray(closed.all(axis=2))
    if lost[0][np.flatnonzero(cmdp.initial)].any():
        return None
    kept: dict[str, Any] = {"costs": cmdp.costs[~hard], "thresholds": frozen(cmdp.thresholds[~hard])}
    if cmdp.averaged is not None:
        kept["averaged"] = cmdp.averaged[np.append(True, ~hard)]
    if not closed.any():
        return Restricted(replace(cmdp, **kept, trusted=True), None)
    if hard.all() and cmdp.discount is None:
        reward = np.broadcast_to(cmdp.reward, closed.shape).copy()
        reward[closed] -= 2 * cmdp.reward_range + 1
        return Restricted(replace(cmdp, reward=frozen(reward), **kept, trusted=True), None)
    # Lost states are never reached by what is left, so what happens there does not matter.
    allowed = ~closed | lost[..., None]
    instead = np.where(allowed, np.arange(cmdp.num_actions), allowed.argmax(axis=2)[..., None])
    costs = kept["costs"]
    if len(costs):
        kept["costs"] = frozen(np.stack([_instead(cost, instead) for cost in costs]))
    rows = (np.arange(cmdp.num_states)[:, None] * cmdp.num_actions + instead).reshape(len(instead), -1)
    matrices: list[Any] = [cmdp.matrix(step)[each] for step, each in enumerate(rows)]
    moves: Any = tuple(matrices)
    if not cmdp.is_sparse:
        moves = frozen(np.stack(matrices).reshape(*instead.shape, cmdp.num_states))
    reward = frozen(_instead(cmdp.reward, instead))
    return Restricted(replace(cmdp, transition=moves, reward=reward, **kept, trusted=True), instead)


def _instead(table: FloatArray, instead: IntArray) -> FloatArray:
    """Give every action what the one has that stands in for it."""
    return np.take_along_axis(np.broadcast_to(table, instead.shape), instead, axis=2)
