"""Exact best responses by dynamic programming alone: frontier search for one constraint, Dantzig-Wolfe for several.

The pairs (V^c, V^r) of all policies form a convex polytope whose vertices belong to deterministic policies, and a
plan for r − λ·c finds the vertex that is extreme in that direction. `frontier.py` has the search among them; here it
is given a CMDP: plans are backward inductions, and a mixture of plans is the policy with their mean occupancy.

Guarantee: value ≤ optimum ≤ bound with a gap that is rounding; and V^c ≤ α holds in exact arithmetic wherever the least
cost leaves room for it, because the cost stays below α by the rounding margin of its own evaluation, or was found to
be at most α in rationals. The tables of an agent's CMDP in a game are rounded themselves: there, a plan whose computed
cost is exactly α is accepted, and whether the game agrees to the last bit is for the game's certificate to say.

The costs of a plan in exact arithmetic: what decides where a computed cost cannot be told from the threshold.

Numbers are read as the rationals that they are, and rows of probabilities are divided by their exact sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.cmdp.frontier import best_blend, widest_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, plan
from cmpg.cmdp.response import BestResponse, Candidate, cost_margins, infeasible, mixture
from cmpg.errors import InfeasibleError


@dataclass(frozen=True)
class Exact:
    """The default solver: as exact as floating point allows, and fast on large state spaces."""

    # Where there is one constraint, a guess of its multiplier. The answer is the same but for states never visited.
    near: float | None = field(default=None, repr=False)

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return an optimal policy of the CMDP, or raise InfeasibleError."""
        # The tables of an induced CMDP are rounded already: there, only the game itself could say more than they do.
        accepts = None if cmdp.entry_roundings else partial(provably_meets, cmdp)
        found = best_blend(_Program(cmdp, rng), accepts=accepts, near=self.near)
        return found.blend.response(multipliers=found.multipliers, work=found.plans + 1)


@dataclass(frozen=True, eq=False)
class _Program:
    """A CMDP, as the search sees it."""

    cmdp: CMDP
    rng: np.random.Generator | None

    @property
    def num_actions(self) -> int:
        return self.cmdp.num_actions

    @property
    def thresholds(self) -> FloatArray:
        return self.cmdp.thresholds

    @cached_property
    def margins(self) -> FloatArray:
        return cost_margins(self.cmdp)

    @property
    def largest_costs(self) -> FloatArray:
        return self.cmdp.step_sizes[1:]

    def plan(self, multipliers: FloatArray, *, reward_weight: float = 1.0) -> Plan:
        return plan(self.cmdp, multipliers, reward_weight=reward_weight, rng=self.rng)

    def blend(self, plans: Sequence[Plan], *, weights: FloatArray, unvisited: FloatArray) -> Candidate:
        if len(plans) == 1:
            return Candidate(self.cmdp, plans[0].policy(self.num_actions))
        return Candidate(self.cmdp, mixture(self.cmdp, plans, weights=weights, unvisited=unvisited))

    def infeasible(self, multipliers: FloatArray, least: float) -> InfeasibleError:
        return infeasible(self.cmdp, multipliers, least)


@dataclass(frozen=True, eq=False)
class Slack:
    """The policy that keeps the worst constraint furthest below its threshold, and the proof that none does better."""

    policy: FloatArray  # [H, S, A]
    costs: FloatArray  # [k]
    slack: float  # min_j (α_j − V^{c_j})
    multipliers: FloatArray  # [k], with λ·units = 1
    least: float  # the least V^{λ·c}; so no policy has more slack, in those units, than λ·α − least
    plans: tuple[Plan, ...]
    weights: FloatArray


def greatest_slack(
    cmdp: CMDP,
    *,
    enough: float = np.inf,
    units: FloatArray | None = None,
    rng: np.random.Generator | None = None,
) -> Slack:
    """Maximise min_j (α_j − V^{c_j})/units_j over all policies, or stop as soon as it exceeds `enough`.

    Parameters
    ----------
    cmdp
        A CMDP with at least one constraint.
    enough
        A slack that will do.
    units : [k]
        In what each constraint's slack is measured: ones unless given.
    rng
        Breaks ties at random.
    """
    widest = widest_slack(_Program(cmdp, rng), enough=enough, units=units)
    return Slack(
        policy=widest.blend.policy,
        costs=widest.blend.costs,
        slack=widest.slack,
        multipliers=widest.multipliers,
        least=widest.least,
        plans=widest.plans,
        weights=widest.weights,
    )


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
