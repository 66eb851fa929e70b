"""Best responses as the paper's text has them, for comparison: they are not what this library would use.

`UniformFill`: an exact best response whose rows of zero occupancy are uniform (the paper's equation for π̄); any
filling has the same value, but what others' deviations are worth depends on it.

`AveragedPrimalDual`: the loop of Algorithm 3 on a known model for a fixed number of iterations, and the average of what
it saw. Its cost exceeds the threshold by up to ε_opt, and nothing repairs that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.cmdp.evaluation import occupancy, policy_from_occupancy
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.response import BestResponse, respond
from cmpg.learning.a_priori import primal_dual


@dataclass(frozen=True)
class UniformFill:
    """`Exact`, with every row that is never visited made uniform."""

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return a best response that mixes evenly where it never goes."""
        best = Exact()(cmdp, rng=rng)
        uniform = np.full(cmdp.policy_shape, 1.0 / cmdp.num_actions)
        table = policy_from_occupancy(occupancy(cmdp, best.policy), uniform)
        return respond(cmdp, table, multipliers=best.multipliers, work=best.work)


@dataclass(frozen=True)
class AveragedPrimalDual:
    """The paper's primal-dual loop with its constant step η = U/(√T·H), and no repair."""

    iterations: int
    multiplier_bound: float

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:  # noqa: ARG002
        """Return the policy with the mean occupancy of all iterates, feasible or not."""
        step = self.multiplier_bound / (np.sqrt(self.iterations) * cmdp.num_steps)
        found = primal_dual(cmdp, iterations=self.iterations, step_size=step, multiplier_bound=self.multiplier_bound)
        return respond(cmdp, found.policy, multipliers=found.multipliers, work=self.iterations)
