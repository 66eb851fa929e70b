"""Proofs that no policy meets the thresholds. No solver is imported here.

An infeasibility claim is (game, λ ≥ 0): if even one planner who chooses all actions pays V^{λ·c} > λ·α, no policy is
feasible. For one constraint such a λ always exists; for several, product policies may be infeasible where correlated
ones are not, and then there is none. In local games agents who plan alone, at prices of what they use, take the
planner's place (`max_weighted_slack`), and what they pay at least may be less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, check_shape, numbers
from cmpg.cmdp.evaluation import DEEPEST, HIDDEN_BY_UNDERFLOW, Underflow, cost_rounding
from cmpg.cmdp.model import CMDP, run_depth
from cmpg.cmdp.planning import dual_bound, plan
from cmpg.equilibrium.certificate import gain_rounding
from cmpg.errors import GameError, SolverError, TooLargeError, UnsupportedError
from cmpg.games.claims import has_tables
from cmpg.games.game import Game, Names, max_weighted_slack, planner, private_cmdps
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.policy import JointPolicy
from cmpg.proof.claim import LocalTables
from cmpg.summaries import at_least, fields_line

PRECISION = 1e-6
"""A discounted local game is cut off where what follows is worth at most this ε."""


@dataclass(frozen=True, eq=False)
class InfeasibilityProof:
    """Weights on the constraints under which every joint policy spends more than it may.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> proof = prove_infeasible(counter_example(threshold=-0.5), [1.0])
    >>> proof.holds, proof.least_cost
    (True, 0.0)
    """

    multipliers: FloatArray  # [k]
    least_cost: float  # min over all joint policies of V^{λ·c}, rounding taken off
    limit: float  # λ·α
    names: Names = field(default_factory=Names)

    __repr__ = fields_line

    @property
    def sentence(self) -> str:
        """The proof in a sentence."""
        parts = [f"{weight:.6g} · {self.names.constraint(j)}" for j, weight in enumerate(self.multipliers) if weight]
        if len(self.multipliers) == 1:
            parts, limit = [self.names.constraint(0)], "the threshold is"
        else:
            limit = "their thresholds, weighted alike, add up to"
        verb = "costs" if len(parts) == 1 else "add up to"
        sentence = f"{' + '.join(parts)} {verb} at least {at_least(self.least_cost, 9)}, whatever the agents do"
        return f"proof: {sentence}; {limit} {self.limit:.9g}"

    @property
    def holds(self) -> bool:
        """Whether this is a proof."""
        return self.least_cost > self.limit


def prove_infeasible(game: Game | DiscountedLocalGame, multipliers: Any) -> InfeasibilityProof:
    """Compute what a planner who chooses all actions pays at least for λ·c, to be compared with λ·α.

    Parameters
    ----------
    game
        A game in which the joint problem can be planned for.
    multipliers : [k]
        λ ≥ 0.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> [prove_infeasible(counter_example(threshold=alpha), [1.0]).holds for alpha in (-0.5, 0.5)]
    [True, False]
    """
    given = np.asarray(numbers("multipliers", multipliers), dtype=np.float64)
    check_shape("multipliers", given.shape, (len(game.thresholds),))
    if (given < 0).any():
        raise GameError("multipliers has a negative entry; only multipliers of at least zero can prove anything.")
    nothing = InfeasibilityProof(given, -np.inf, np.inf, game.names)
    if isinstance(game, DiscountedLocalGame):
        try:
            game = game.relaxed(game.steps_for(PRECISION))
        except TooLargeError:
            return nothing
    try:
        return least_spending(game, given).proof
    except SolverError:  # a discounted sum that no float holds proves nothing
        return nothing


@dataclass(frozen=True, eq=False)
class LeastSpending:
    """What a planner who chooses all actions pays at least for λ·c."""

    policy: JointPolicy | None  # that pays no more, where one planner chose it
    proof: InfeasibilityProof  # which may hold or not


def least_spending(game: Game, multipliers: FloatArray) -> LeastSpending:
    """Plan for λ·c alone: the cheapest policy is a start, and a proof of infeasibility where even it costs too much."""
    policy, least, allowance = _least_cost(game, multipliers)
    limit = float(multipliers @ np.asarray(game.thresholds, dtype=np.float64))
    # A sum of k products, of which each has k + 1 roundings behind it at most; thresholds may cancel.
    size = float(multipliers @ np.abs(game.thresholds))
    limit += (len(multipliers) + 3) * UNIT_ROUNDOFF * size
    least -= allowance + 4e-16 * abs(least)
    if least <= limit < 0 and _never_negative(game, multipliers):
        least = 0.0  # by sign alone, where rounding is more than the threshold is away from zero
    return LeastSpending(policy, InfeasibilityProof(multipliers, least, limit, game.names))


def _never_negative(game: Game, multipliers: FloatArray) -> bool:
    """Whether no cost that counts is negative anywhere, in games that can state their tables."""
    if not has_tables(game):
        return False
    tables: Any = game.claim_tables()  # type: ignore[attr-defined]
    if isinstance(tables, LocalTables):
        costs = [tables.load_costs, *(agent.costs for agent in tables.agents if agent.costs is not None)]
    else:
        costs = [tables.costs]
    return all(bool(np.all(table[multipliers > 0] >= 0)) for table in costs)


def _least_cost(game: Game, multipliers: FloatArray) -> tuple[JointPolicy | None, float, float]:
    """The least V^{λ·c} over all joint policies, a policy that attains it, and how much rounding could hide in it."""
    central = planner(game, None)
    if central is not None:
        cmdp = central.cmdp
        cheapest = plan(cmdp, multipliers, reward_weight=0.0)
        policy, least = central.split(cheapest.actions), float(multipliers @ cheapest.costs)
        if cmdp.discount is None:
            # Another policy may seem to cost more than it does: by a share of itself, where costs have one sign;
            # otherwise by a share of what can cancel, which is at most the sizes of the signed ones.
            allowance = 2 * float(multipliers @ cost_rounding(cmdp, cheapest.costs))
            return policy, least, allowance + _underflow(cmdp, multipliers)
        # Policy iteration ends where nothing improves by more than rounding; the bound has the residual in it.
        spending = replace(cmdp, reward=np.zeros_like(cmdp.reward), trusted=True)
        least = min(least, float(multipliers @ cmdp.thresholds - dual_bound(spending, multipliers)))
        return policy, least, gain_rounding(spending, multipliers) + _underflow(cmdp, multipliers)
    alone = private_cmdps(game)
    slack = max_weighted_slack(game, multipliers) if alone is None else None
    if slack is not None:
        # Every agent plans alone, at prices of what it uses; rounding is part of the bound, underflow is not.
        return None, float(multipliers @ game.thresholds) - slack, HIDDEN_BY_UNDERFLOW * (1 + float(multipliers.sum()))
    if alone is None:
        advice = "Its infeasibility cannot be proved; search for a feasible start instead."
        raise UnsupportedError(type(game).__name__, "cannot be planned for centrally", advice)
    plans = [plan(cmdp, multipliers, reward_weight=0.0) for cmdp in alone]
    least = math.fsum(float(multipliers @ each.costs) for each in plans)  # one rounding, however many agents there are
    # Of the plan that was chosen, and of a cheaper one that seemed to cost more.
    rounding = math.fsum(2 * float(multipliers @ (cmdp.rounding * cmdp.sizes[1:])) for cmdp in alone)
    return None, least, rounding + sum(_underflow(cmdp, multipliers) for cmdp in alone)


def _underflow(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return what products too small for floats, or for all digits of one, can add to the least V^{λ·c}."""
    priced = np.flatnonzero(multipliers).tolist()
    paid = [np.abs(multipliers[j] * cmdp.costs[j]) for j in priced] + [np.abs(cmdp.costs[j]) for j in priced]
    if not any(table.any() for table in paid):
        return 0.0  # sums of zeros are exact
    if cmdp.discount is None and run_depth(cmdp.initial, cmdp.transition, cmdp.num_steps, paid=paid) > DEEPEST:
        return 0.0
    hidden = Underflow.behind(cmdp.rounding, rewards=0.0, costs=cmdp.rounding_sizes[1:])
    return float(4 * (hidden.rewards + multipliers @ hidden.costs))
