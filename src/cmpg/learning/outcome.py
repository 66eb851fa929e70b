"""How learning an equilibrium ends, and how it is judged afterwards, by somebody who knows the true model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.result import Status, Step
from cmpg.games.contract import Game
from cmpg.policy import JointPolicy


@dataclass(frozen=True, eq=False)
class Played:
    """A joint policy that was really executed, and for how many episodes."""

    policy: JointPolicy
    episodes: int


@dataclass(frozen=True, eq=False)
class LearnResult:
    """The ending of `learn` or `learn_shared`.

    The guarantee: with probability at least 1 − δ over the samples, the policy is feasible and no agent gains more than
    ε by leaving. It holds under the `assumptions` where `void` is empty; where it does not hold, `void` says why.
    """

    status: Status
    message: str
    policy: JointPolicy
    epsilon: float
    delta: float
    samples: Mapping[str, int]  # by purpose
    assumptions: tuple[str, ...]  # what the guarantee rests on
    void: tuple[str, ...]  # "guarantee void because …"; empty if and only if the status is CERTIFIED
    trace: tuple[Step, ...] = ()
    moves: int = 0
    played: tuple[Played, ...] = ()  # every joint policy that was executed; none where a model was drawn from
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def certified(self) -> bool:
        """Whether the policy is an ε-Nash policy with probability 1 − δ."""
        return self.status is Status.CERTIFIED and not self.void

    @property
    def total_samples(self) -> int:
        """All samples, for whatever purpose."""
        return sum(self.samples.values())

    def __str__(self) -> str:
        lines = [f"{self.status.name}: {self.message}"]
        lines += [f"guarantee void because {reason}" for reason in self.void]
        lines += [f"{count:>16,} samples for {purpose}" for purpose, count in self.samples.items()]
        return "\n".join(lines)


def claim(epsilon: float, delta: float) -> str:
    """Say what a certified result promises."""
    return f"feasible, and no agent gains more than {epsilon:g} by leaving, with probability {1 - delta:g}."


@dataclass(frozen=True, eq=False)
class Judgement:
    """A learned policy, and all that was executed on the way, judged with the true model."""

    gap: float  # the largest true gain of an agent
    costs: FloatArray  # [k]
    feasible: bool
    unsafe_policies: int  # executed policies that break a constraint
    unsafe_episodes: int

    def right(self, epsilon: float) -> bool:
        """Whether the policy is what was promised: feasible, and ε-Nash."""
        return self.feasible and self.gap <= epsilon


def judge(game: Game, result: LearnResult) -> Judgement:
    """Judge a result with the game that the simulator hid."""
    certificate = certify_with_best_responses(game, result.policy)
    unsafe = [each for each in result.played if _breaks(game, each.policy)]
    return Judgement(
        gap=certificate.epsilon,
        costs=certificate.costs,
        feasible=certificate.feasible,
        unsafe_policies=len(unsafe),
        unsafe_episodes=sum(each.episodes for each in unsafe),
    )


def _breaks(game: Game, policy: JointPolicy) -> bool:
    position = game.at(policy)
    return bool(np.any(position.costs > game.thresholds + position.cost_rounding))
