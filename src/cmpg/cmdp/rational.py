"""The costs of a plan in exact arithmetic: what decides where a computed cost cannot be told from the threshold.

Numbers are read as the rationals that they are, and rows of probabilities are divided by their exact sums.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan

MOST_ENTRIES = 5_000
"""More transition entries than this take too long in rationals."""

MOST_BITS = 1_000
"""So do longer denominators. Costs that equal a threshold by design have short ones."""


def provably_meets(cmdp: CMDP, plan: Plan) -> bool:
    """Whether V^{c_j} ≤ α_j holds exactly for a plan; False also where finding out would take too long."""
    if cmdp.discount is not None:
        return False
    visits = _shares({s: Fraction(float(p)) for s, p in enumerate(cmdp.initial) if p})
    totals = [Fraction(0)] * cmdp.num_constraints
    entries = 0
    for step in range(cmdp.num_steps):
        ahead: dict[int, Fraction] = {}
        for state, chance in visits.items():
            action = int(plan.actions[step, state])
            for j, cost in enumerate(cmdp.costs):
                totals[j] += chance * Fraction(float(cost[0 if len(cost) == 1 else step, state, action]))
            row = _row(cmdp, step, state * cmdp.num_actions + action) if step < cmdp.num_steps - 1 else {}
            entries += len(row)
            if entries > MOST_ENTRIES or chance.denominator.bit_length() > MOST_BITS:
                return False
            for target, probability in row.items():
                ahead[target] = ahead.get(target, Fraction(0)) + chance * probability
        visits = ahead
    return all(total <= Fraction(float(limit)) for total, limit in zip(totals, cmdp.thresholds, strict=True))


def _row(cmdp: CMDP, step: int, pair: int) -> dict[int, Fraction]:
    matrix = cmdp.matrix(step)
    if sp.issparse(matrix):
        span = slice(matrix.indptr[pair], matrix.indptr[pair + 1])
        targets, chances = matrix.indices[span], matrix.data[span]
    else:
        targets = np.flatnonzero(matrix[pair])
        chances = matrix[pair, targets]
    return _shares({int(s): Fraction(float(p)) for s, p in zip(targets, chances, strict=True)})


def _shares(weights: dict[int, Fraction]) -> dict[int, Fraction]:
    total = sum(weights.values())
    return {state: weight / total for state, weight in weights.items()}
