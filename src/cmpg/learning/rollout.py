"""Certainty by rolling out: what a fixed policy is worth and costs, from fresh episodes.

The policy may be chosen by anything, as long as the episodes are played afterwards. They are played in batches, each as
large as all before it; after batch j the bounds fail with probability at most δ/(j(j + 1)), so that they hold at all
times together, and whoever asks may stop as soon as they decide what is to be decided.

What is averaged is not the sum of payoffs, but, with any functions Q_h (those of a model that was learned from other
samples; none where there is no model) and V_h(s) = Σ_a π_h(a | s) Q_h(s, a),

    X = μ·V_0 + Σ_h (r_h(s_h, a_h) − Q_h(s_h, a_h)) + Σ_{h ≥ 1} V_h(s_h).

Its mean is V^r(π), because μ·V_0 is the mean of V_0(s_0), and V_h(s_h) that of Q_h(s_h, a_h) given s_h. If Q is nearly
right, what the first state and the actions contribute cancels, and what is left is where transitions lead. X lies
between the sums of the least and of the largest entries of each step, so `mean_ceiling` applies.
"""

from __future__ import annotations

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import action_values
from cmpg.cmdp.model import CMDP
from cmpg.learning.confidence import mean_ceiling
from cmpg.learning.outcome import Present
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Totals

FIRST_EPISODES = 256


class Measurement:
    """What is known of the value and the costs of one policy; the value stands first, then the costs.

    Parameters
    ----------
    problem
        Behind the door; its samples are charged.
    policy : [H, S, A]
        The agent's policy, chosen before.
    model
        A CMDP that was learned from other samples, or None.
    delta
        The probability that any of the bounds fails at any time.
    """

    def __init__(self, problem: InducedProblem, policy: FloatArray, model: CMDP | None, *, delta: float) -> None:
        self.problem, self.policy, self.delta = problem, policy, delta
        self._tables, self._offsets = _corrected(problem, policy, model)
        observed = problem.known.payoffs is None
        least, greatest = self._tables.min(axis=(2, 3)), self._tables.max(axis=(2, 3))
        if observed:
            ends = [problem.known.reward_bounds[problem.agent], *problem.known.cost_bounds]
            steps = np.stack([np.broadcast_to(each, (problem.shape[0], 2)) for each in ends])
            least, greatest = least + steps[..., 0], greatest + steps[..., 1]
        shape = self._tables.shape[:2]
        self.floors = self._offsets + np.broadcast_to(least, shape).sum(axis=1)  # [1 + k]
        self.ceilings = self._offsets + np.broadcast_to(greatest, shape).sum(axis=1)  # [1 + k]
        self._least, self._most = self.floors.copy(), self.ceilings.copy()
        self._totals: Totals | None = None
        self._batches = 0

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return 0 if self._totals is None else self._totals.episodes

    @property
    def present(self) -> Present:
        """The bounds, by what they bound."""
        floors, ceilings = self.floors.copy(), self.ceilings.copy()
        return Present(float(floors[0]), float(ceilings[0]), floors[1:], ceilings[1:])

    @property
    def next_batch(self) -> int:
        """How many episodes `grow` plays."""
        return self.episodes or FIRST_EPISODES

    def grow(self) -> None:
        """Play as many episodes as there are, and tighten the bounds."""
        batch = self.problem.add_up(self.policy, self._tables, self.next_batch)
        self._totals = batch if self._totals is None else self._totals + batch
        self._batches += 1
        values, counts = self._totals.values.T + self._offsets[:, None], self._totals.counts
        share = self.delta / (self._batches * (self._batches + 1)) / (2 * len(values))
        for index, column in enumerate(values):
            above = float(mean_ceiling(column, counts, most=self._most[index], delta=share))
            below = -float(mean_ceiling(-column, counts, most=-self._least[index], delta=share))
            self.ceilings[index] = min(self.ceilings[index], above)
            self.floors[index] = max(self.floors[index], below)


def _corrected(problem: InducedProblem, policy: FloatArray, model: CMDP | None) -> tuple[FloatArray, FloatArray]:
    """Return the tables [1 + k, H, S, A] that X adds up, without payoffs that are only observed, and μ·V_0 [1 + k]."""
    known = problem.known
    tables, offsets = np.zeros((1 + known.num_constraints, *problem.shape)), np.zeros(1 + known.num_constraints)
    if model is not None:
        expected = np.moveaxis(action_values(model, policy), 1, 0)
        values = (policy * expected).sum(axis=-1)
        tables = values[..., None] - expected
        tables[:, 0] = -expected[:, 0]
        offsets = values[:, 0] @ known.initial
    if known.payoffs is not None:
        reward, costs = problem.payoffs
        tables += np.concatenate([reward[None], costs])
    return tables, offsets
