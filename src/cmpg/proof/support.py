"""Proofs by support: what no feasible deviation can do where nothing is left of a budget.

Let an outcome of (h, s, a) be whatever may happen there, with a cost and a next state, and
    m_h(s) = min over a and outcomes of [cost + m_{h+1}(next state)],    m_H = 0.
Along any path the terms cost + m_{h+1}(s′) − m_h(s) are at least zero, and they sum to what the path costs beyond
m_0(s_0). So if E m_0(s_0) is exactly what is left of the threshold, a policy meets it if and only if every such
term is zero on every path that is possible under it. An action with an outcome for which it is positive is forbidden,
and so is one that may lead to a state all of whose actions are forbidden. Nothing here depends on how probable
anything is, except the initial state; costs are whole multiples of one unit, added and compared without rounding.

Discounted sums are judged by support where the threshold is zero and no cost is negative: then whatever may cost
anything is forbidden, for ever; with discount zero, only the first step counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from cmpg.proof.rounding import Array

Outcomes = Callable[[int, Array], tuple[Array, Array]]
"""(step, m_{h+1} [S]): the least and the greatest cost + m_{h+1}(s′) of each (state, action) [S, A]."""

Leads = Callable[[int, Array], Array]
"""(step, states [S]): which (state, action) [S, A] may lead to one of the states."""


def whole(*tables: Array, times: int) -> tuple[list[Array], int]:
    """Return tables of floats or Fractions as whole multiples of 1/unit, and that unit.

    They are 64-bit integers if `times` the largest of them is one, and Python's own otherwise.
    """
    known, index = np.unique(np.concatenate([table.ravel() for table in tables]), return_inverse=True)
    numbers = [Fraction(each) for each in known]
    unit = lcm(*(number.denominator for number in numbers))
    units = [int(number * unit) for number in numbers]
    fits = times * max((abs(each) for each in units), default=0) < 2**62
    values = np.array(units, dtype=np.int64 if fits else object)[index.ravel()]
    parts = np.split(values, np.cumsum([table.size for table in tables])[:-1])
    return [part.reshape(table.shape) for part, table in zip(parts, tables, strict=True)], unit


def forbidden(outcomes: Outcomes, initial: Array, left: Fraction, shape: tuple[int, int, int], kind: Any) -> Any:
    """Return which actions [H, S, A] no policy takes that spends at most what is left, in the unit of the costs.

    None where the least that any policy spends is not exactly what is left.
    """
    closed, ahead = np.zeros(shape, dtype=bool), np.zeros(shape[1], dtype=kind)
    for step in reversed(range(shape[0])):
        low, high = outcomes(step, ahead)
        ahead = low.min(axis=1)
        closed[step] = np.asarray(high > ahead[:, None], dtype=bool)
    first = {int(s): Fraction(initial[s]) for s in np.flatnonzero(initial)}
    spent = sum((chance * int(ahead[s]) for s, chance in first.items()), Fraction(0))
    return closed if spent == left * sum(first.values()) else None


def closure(masks: Sequence[Array], leads: Leads, *, for_ever: bool) -> Array:
    """Forbid what any of the masks [H, S, A] forbids, and what may lead to a state in which all is forbidden."""
    closed: Array = np.logical_or.reduce(masks)
    if for_ever:
        while True:
            wider = closed[0] | leads(0, closed[0].all(axis=1))
            if np.array_equal(wider, closed[0]):
                return closed
            closed[0] = wider
    for step in reversed(range(len(closed) - 1)):
        closed[step] |= leads(step, closed[step + 1].all(axis=1))
    return closed
