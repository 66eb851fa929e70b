"""Exploration that never leaves the constraints: optimistic for the reward, pessimistic for the costs (DOPE).

Two kernels of a box differ in V^l by at most the expectation of Σ_h b_h(s, a), where b_h is a bonus of one of these
forms (C_h is the largest minus the least entry of l at step h, and the last step, which leads nowhere, has no bonus):

- `paper_bonus`: Σ_{h'} C_{h'} · Σ_{s'} β_h(s' | s, a), β the distance from the empirical entry to the further end of
  its interval; the paper's H·β̄ for costs in [0, 1];
- `tight_bonus`: Σ_{h' > h} C_{h'} · d_h(s, a), d the largest total variation distance between rows of the box: what is
  still to come can differ by its own range only, and rows by at most one.

So if a policy meets V^{c + b}(π, p) ≤ α under some kernel p of the box, it has V^c(π) ≤ α under all of them, and
under the true one. The exploration policy solves the extended CMDP

    maximise V^{r + B}(π, p)  subject to  V^{c_j + b_j}(π, p) ≤ α_j,   B = max_j b_j · G/(α_j − α_{S,j}),

over policies and kernels of the box; where there is no solution, the baseline π_S is played. Since B makes up for
what pessimism takes away, the value is at least the true optimum whenever π_S itself meets the raised costs under the
true kernel: mix the best policy with π_S so that the raised costs meet α with weight w on π_S; this loses at most
w·G, and gains w·G from B.

Safety rests on three things only: π_S meets the constraints, the true kernel (and payoffs, where learned) are in the
box, and nothing else that is played is outside the constraints above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cmpg.checks import FloatArray, InfeasibleError
from cmpg.cmdp.optimistic import BoxCMDP, optimistic_response, worst_case
from cmpg.learning.confidence import Estimate

Bonus = Callable[[Estimate], FloatArray]
"""What the costs are raised by: [k, H, S, A]."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """A policy that is known to meet the constraints, and the most that it is known to cost."""

    policy: FloatArray  # [H, S, A]
    ceilings: FloatArray  # [k]: V^{c_j}(π_S) is at most this; infinite where only "at most α" is known

    def informed(self, belief: Estimate) -> Baseline:
        """Return the same policy with what the samples say about its costs."""
        seen = np.array([worst_case(belief.box, self.policy, cost) for cost in belief.worst_costs])
        return replace(self, ceilings=np.minimum(self.ceilings, seen))

    def floors(self, belief: Estimate) -> FloatArray:
        """Return the least that it can cost according to the samples: [k]."""
        hopeful = belief.hopeful.nominal.costs
        return np.array([-worst_case(belief.box, self.policy, -cost) for cost in hopeful])


@dataclass(frozen=True, eq=False)
class Choice:
    """The policy to play next."""

    policy: FloatArray  # [H, S, A]
    is_baseline: bool
    work: int  # dynamic programs


def tight_bonus(belief: Estimate) -> FloatArray:
    """Return the range of what is still to come times the largest distance between rows of the box: [k, H, S, A]."""
    ranges = _ranges(belief.worst_costs)
    to_come = np.cumsum(ranges[:, ::-1], axis=1)[:, ::-1] - ranges
    return np.asarray(to_come[..., None, None] * belief.box.spread)


def paper_bonus(belief: Estimate) -> FloatArray:
    """Return the range of the whole cost times the sum of the intervals' radii: [k, H, S, A]."""
    box = belief.box
    kernel = box.nominal.transition
    radii = np.maximum(box.upper - kernel, kernel - box.lower).sum(axis=-1)
    return np.asarray(_ranges(belief.worst_costs).sum(axis=1)[:, None, None, None] * radii)


def _ranges(tables: FloatArray) -> FloatArray:
    """max − min of each step: [k, H]."""
    return np.asarray(np.max(tables, axis=(2, 3)) - np.min(tables, axis=(2, 3)))


def exploration_policy(
    belief: Estimate, baseline: Baseline, *, bonus: Bonus = tight_bonus, reward_range: float
) -> Choice:
    """Return the policy that promises most among those that are safe whatever the kernel, or the baseline.

    Parameters
    ----------
    belief
        The box, with the empirical CMDP in it.
    baseline
        π_S and α_S.
    bonus
        What the costs are raised by.
    reward_range
        G: no two policies differ by more in value.
    """
    nominal = belief.box.nominal
    slacks = nominal.thresholds - baseline.ceilings
    if not np.all(slacks > 0):
        return Choice(baseline.policy, is_baseline=True, work=0)
    raised = bonus(belief)
    shares = (raised / slacks[:, None, None, None]).max(axis=0, initial=0.0)
    program = replace(
        nominal,
        reward=belief.hopeful.nominal.reward + reward_range * shares,
        costs=belief.worst_costs + raised,
        trusted=True,
    )
    try:
        found = optimistic_response(BoxCMDP(program, belief.box.lower, belief.box.upper, trusted=True))
    except InfeasibleError:
        return Choice(baseline.policy, is_baseline=True, work=2)
    return Choice(found.policy, is_baseline=False, work=found.work)
