"""Claims where what is feasible is a union: a policy of one game, and deviations that are feasible in any of several.

A budget such as CVaR_β ≤ α is kept if *one* of several linear constraints is. The games differ in costs and thresholds
alone. The policy meets the thresholds of the first claim; a deviation meets those of at least one of the others, and so
gains at most the largest of what they prove.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmpg.proof.claim import Claim, ClaimError, JointTables
from cmpg.proof.verdict import Findings, judge, judge_exactly


@dataclass(frozen=True, eq=False)
class AlternativesClaim:
    """A policy that is feasible in one game, and no agent gains by a deviation that is feasible in one of several."""

    policy: Claim  # the game in which the policy is feasible; its multipliers prove nothing
    deviations: tuple[Claim, ...]  # at least one; every feasible deviation is feasible in one of them

    def __post_init__(self) -> None:
        """Refuse claims about other policies, or games that differ in more than costs and thresholds."""
        first = self.policy
        if not isinstance(first.tables, JointTables) or not self.deviations:
            raise ClaimError("a game with budgets of several kinds has tables over joint actions, and a deviation.")
        for m, other in enumerate(self.deviations):
            tables = other.tables
            same = isinstance(tables, JointTables) and all(
                getattr(tables, name) is getattr(first.tables, name) for name in ("initial", "rewards")
            )
            moves = isinstance(tables, JointTables) and all(
                one is another or all(np.array_equal(a, b) for a, b in zip(one, another, strict=True))
                for one, another in zip(tables.transition, first.tables.transition, strict=True)
            )
            if not (same and moves and other.horizon == first.horizon and other.discount == first.discount):
                raise ClaimError(f"deviation {m} is of a game that differs in more than costs and thresholds.")
            if any(one is not another for one, another in zip(other.policy, first.policy, strict=True)):
                raise ClaimError(f"deviation {m} is from another policy.")
            if not np.isfinite(np.asarray(other.multipliers, dtype=np.float64)).all():
                # Support rests on what the policy itself leaves, and the policy need not be feasible in this game.
                raise ClaimError(
                    f"deviation {m} has a multiplier that is not finite; there is no proof by support here."
                )


def judge_alternatives(claim: AlternativesClaim, *, exactly: bool = False) -> Findings:
    """Judge a claim in floats, or in rationals, which may raise `TooLarge`."""
    decide = judge_exactly if exactly else judge
    found = decide(claim.policy)
    others = [decide(each) for each in claim.deviations]
    gains = np.stack([each.gains for each in others])
    worst, agents = gains.argmax(axis=0), np.arange(gains.shape[1])
    return replace(
        found,
        gains=gains.max(axis=0),
        bounds=np.stack([each.bounds for each in others]).max(axis=0),
        rounding=np.stack([each.rounding for each in others])[worst, agents],
        rescaled=max(found.rescaled, *(each.rescaled for each in others)),
    )
