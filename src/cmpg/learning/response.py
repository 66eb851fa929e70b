"""What a learner returns: a policy, and how much is certain about it.

With probability at least 1 − δ over the samples: value_floor ≤ V^r(policy), no policy that meets the constraints is
worth more than value_ceiling, and V^{c_j}(policy) ≤ cost_ceilings[j].
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.learning.simulator import InducedProblem


class Ending(Enum):
    """The ways in which learning one response ends; the value says what it means, and what to do next."""

    CERTIFIED = "the policy meets the constraints and is within epsilon of the best, with probability 1 − delta"
    LIMIT = "the samples ran out first; what is known so far is given. Raise the budget, or ask for a larger epsilon"
    UNPROVED = "the samples do not bear out what was assumed. Use a smaller slack, or Adaptive"
    INFEASIBLE = "no policy meets the constraints, with probability 1 − delta. Raise the thresholds"
    NO_SLACK = "there is no strictly feasible policy to explore with: nothing can be certified. Raise the thresholds"


@dataclass(frozen=True, eq=False)
class Executed:
    """A policy that was really played, kept so that it can be judged afterwards."""

    policy: FloatArray  # [H, S, A]
    episodes: int


@dataclass(frozen=True, eq=False)
class LearnedResponse:
    """A learned policy of one agent, and its guarantee."""

    ending: Ending
    message: str
    policy: FloatArray  # [H, S, A]
    value_floor: float
    value_ceiling: float
    cost_ceilings: FloatArray  # [k]
    multipliers: FloatArray  # [k]: the price of one more unit of each budget, as estimated
    epsilon: float
    delta: float
    samples: int  # drawn for this response
    samples_per_entry: int  # 0 where episodes were played instead
    work: int  # dynamic programs, about
    executed: tuple[Executed, ...] = ()  # every policy that was played; none where a model was drawn from

    @property
    def certified(self) -> bool:
        """Whether the policy is proved, with probability 1 − δ, to be feasible and within ε of the best."""
        return self.ending is Ending.CERTIFIED

    @property
    def gap(self) -> float:
        """How far from optimal the policy can be at most."""
        return max(self.value_ceiling - self.value_floor, 0.0)

    def meets(self, thresholds: FloatArray) -> bool:
        """Whether the policy is proved to keep all costs below these thresholds."""
        return bool(np.all(self.cost_ceilings <= thresholds))


class Learner(Protocol):
    """Anything that learns a best response from samples."""

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Return a policy within ε of the best that meets the constraints, with probability 1 − δ, or say why not."""
