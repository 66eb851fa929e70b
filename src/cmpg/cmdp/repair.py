"""Making a proposed occupancy feasible: the paper's remark asks for it, since CA-CMPG breaks on any violation.

Costs are linear in the occupancy, so a mixture with a policy of greatest slack meets the thresholds as soon as its
share is excess/(excess + slack), and it loses no more than that share of the reward range.
"""

from __future__ import annotations

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy, policy_from_occupancy
from cmpg.cmdp.exact import Slack
from cmpg.cmdp.frontier import Aim, move_inside
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.response import Candidate, cost_margins, infeasible


def repaired(cmdp: CMDP, visits: FloatArray, safe: Slack) -> FloatArray:
    """Return the policy of an occupancy, mixed with the safe policy's by as much as the thresholds make necessary.

    Parameters
    ----------
    cmdp
        The process.
    visits : [H, S, A]
        The occupancy of a policy, up to rounding.
    safe
        A policy that meets the thresholds; it also fills the rows that are never visited.
    """
    retreat = occupancy(cmdp, safe.policy)
    aim = Aim.at(cmdp.thresholds, cost_margins(cmdp), safe_costs=safe.costs)

    def blend_at(share: float) -> Candidate:
        return Candidate(cmdp, policy_from_occupancy((1 - share) * visits + share * retreat, safe.policy))

    return move_inside(blend_at, aim).policy


def check_feasible(cmdp: CMDP, safe: Slack) -> None:
    """Raise InfeasibleError where the greatest slack is proven negative, beyond what rounding can do."""
    if safe.least > safe.multipliers @ (cmdp.thresholds + cost_margins(cmdp)):
        raise infeasible(cmdp, safe.multipliers, safe.least)
