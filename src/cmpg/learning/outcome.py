"""What learning ends in: a response of one agent, an equilibrium, and how both are judged afterwards.

`LearnedResponse`: with probability at least 1 − δ over the samples, value_floor ≤ V^r(policy), no policy that meets the
constraints is worth more than value_ceiling, and V^{c_j}(policy) ≤ cost_ceilings[j].

`LearnResult`: with probability at least 1 − δ the joint policy is feasible, and no agent gains more than ε by
deviating. `judge` says whether that is so, with the true model, which learners never see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.equilibrium.discounted import prolonged
from cmpg.equilibrium.result import Status, Step
from cmpg.games.game import Game
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Played
from cmpg.learning.truncation import finite_form
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, fields_line, html, line, text


class ResponseStatus(Enum):
    """The ways in which learning one response ends; the value says what it means, and what to do next.

    Examples
    --------
    >>> from cmpg.learning import Adaptive, GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0), budget=5000)
    >>> problem = InducedProblem(simulator, 0, JointPolicy.reference(spectrum().policy_shapes))
    >>> Adaptive()(problem, epsilon=0.1, delta=0.1).status.name
    'LIMIT'
    >>> print(ResponseStatus.LIMIT.value)
    the samples ran out first; what is known so far is given. Raise the budget, or epsilon
    """

    CERTIFIED = "the policy meets the constraints and is within epsilon of the best, with probability 1 − delta"
    BETTER = "the policy meets the constraints and is better than the current one, with probability 1 − delta"
    LIMIT = "the samples ran out first; what is known so far is given. Raise the budget, or epsilon"
    UNPROVED = "the samples do not bear out what was assumed. Use a smaller slack, or Adaptive"
    INFEASIBLE = "no policy meets the constraints, with probability 1 − delta. Raise the thresholds"
    NO_SLACK = "there is no strictly feasible policy to explore with: nothing can be certified. Raise the thresholds"


@dataclass(frozen=True, eq=False)
class BoundedPolicy:
    """A policy of one agent, and what is proved about it."""

    policy: FloatArray  # [H, S, A]
    value_floor: float
    cost_ceilings: FloatArray  # [k]
    multipliers: FloatArray  # [k]: of the problem that it was found by
    work: int  # dynamic programs, about

    def meets(self, thresholds: FloatArray) -> bool:
        """Whether the policy is proved to keep all costs below these thresholds."""
        return bool(np.all(self.cost_ceilings <= thresholds))


@dataclass(frozen=True, eq=False)
class Bounds:
    """What holds of a joint policy whatever the game is, within the model."""

    gap: float  # no agent gains more by a feasible deviation
    cost_ceilings: FloatArray  # [k]


@dataclass(frozen=True, eq=False)
class CurrentBounds:
    """What is proved about the policy that an agent plays already; all of it may be unknown."""

    value_floor: float
    value_ceiling: float
    cost_floors: FloatArray  # [k]
    cost_ceilings: FloatArray  # [k]

    @classmethod
    def unknown(cls, num_constraints: int) -> CurrentBounds:
        """Know nothing."""
        infinite = np.full(num_constraints, np.inf)
        return cls(-np.inf, np.inf, -infinite, infinite)

    def __and__(self, other: CurrentBounds) -> CurrentBounds:
        """Return what both prove."""
        return CurrentBounds(
            value_floor=max(self.value_floor, other.value_floor),
            value_ceiling=min(self.value_ceiling, other.value_ceiling),
            cost_floors=np.maximum(self.cost_floors, other.cost_floors),
            cost_ceilings=np.minimum(self.cost_ceilings, other.cost_ceilings),
        )


class Proved:
    """What is proved about one response so far; nothing that was proved once is lost."""

    def __init__(self, thresholds: FloatArray) -> None:
        self.thresholds = thresholds
        self.ceiling = np.inf  # no policy that meets the constraints is worth more
        self.incumbent: BoundedPolicy | None = None  # the best that is proved to meet the thresholds
        self.current = CurrentBounds.unknown(len(thresholds))

    @property
    def gap(self) -> float:
        """How far the ceiling is above the incumbent's floor; infinite where there is none."""
        return np.inf if self.incumbent is None else self.ceiling - self.incumbent.value_floor

    def lower(self, ceiling: float) -> None:
        """Take in another ceiling."""
        self.ceiling = min(self.ceiling, ceiling)

    def consider(self, candidate: BoundedPolicy) -> None:
        """Make a candidate the incumbent if it is proved to meet the thresholds, and to be worth more."""
        better = self.incumbent is None or candidate.value_floor > self.incumbent.value_floor
        if better and candidate.meets(self.thresholds):
            self.incumbent = candidate

    def stays(self, epsilon: float | None) -> bool:
        """Whether no feasible policy is worth ε more than the current one."""
        return epsilon is not None and self.ceiling - self.current.value_floor <= epsilon

    def moves(self, epsilon: float | None) -> bool:
        """Whether the incumbent is worth ε/4 more than the current policy, and no other one is worth more than ε, or
        more than that gain, beyond it.
        """
        if epsilon is None or self.incumbent is None:
            return False
        gain = self.incumbent.value_floor - self.current.value_ceiling
        return gain > epsilon / 4 and self.gap <= max(epsilon, gain)


@dataclass(frozen=True, eq=False)
class LearnedResponse:
    """A learned policy of one agent, and its guarantee.

    Examples
    --------
    >>> from cmpg.learning import Adaptive, GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> idle = JointPolicy.reference(spectrum().policy_shapes)
    >>> response = Adaptive()(InducedProblem(simulator, 0, idle), epsilon=1.0, delta=0.1)
    >>> response.policy.shape, response.samples == simulator.ledger.total
    ((2, 4, 3), True)
    """

    status: ResponseStatus
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
    played: tuple[Played, ...] = ()  # every joint policy that was executed; none where a model was drawn from
    current: CurrentBounds | None = None  # the agent's current policy, if the query was about deviations from it

    __repr__ = fields_line

    @property
    def certified(self) -> bool:
        """Whether the policy is proved, with probability 1 − δ, to be feasible and within ε of the best.

        Of an agent that stays the latter is proved; `meets` tells whether its current policy was found to be feasible.
        """
        return self.status is ResponseStatus.CERTIFIED

    @property
    def gap(self) -> float:
        """How far from optimal the policy can be at most."""
        return max(self.value_ceiling - self.value_floor, 0.0)

    def meets(self, thresholds: FloatArray) -> bool:
        """Whether the policy is proved to keep all costs below these thresholds."""
        return bool(np.all(self.cost_ceilings <= thresholds))

    def stays(self, epsilon: float) -> bool:
        """Whether it is proved that no feasible policy is worth ε more than the current one."""
        return self.current is not None and self.value_ceiling - self.current.value_floor <= epsilon

    @property
    def gain_floor(self) -> float:
        """By how much the policy is proved to be better than the current one."""
        return -np.inf if self.current is None else self.value_floor - self.current.value_ceiling


class Learner(Protocol):
    """Anything that learns a best response from samples.

    Examples
    --------
    >>> from cmpg.learning import Adaptive, GameSimulator, learn
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> learn(simulator, learner=Adaptive(first_count=1024), epsilon=0.9, delta=0.1).certified
    True
    """

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Return a policy within ε of the best that meets the constraints, with probability 1 − δ, or say why not."""


@dataclass(frozen=True, eq=False)
class LearnResult:
    """The ending of `learn` or `learn_shared`.

    The guarantee: with probability at least 1 − δ over the samples, the policy is feasible and no agent gains more than
    ε by deviating. It holds under the `assumptions` if `void` is empty; otherwise `void` says why it does not.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, learn_shared
    >>> from cmpg.scenarios import spectrum
    >>> result = learn_shared(GameSimulator(spectrum(), rng=np.random.default_rng(0)), epsilon=0.9, delta=0.1)
    >>> result.certified, result.void, result.total_samples == sum(result.samples.values())
    (True, (), True)
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
    def interrupted(self) -> bool:
        """Whether the user has interrupted it."""
        return self.status is Status.INTERRUPTED

    @property
    def total_samples(self) -> int:
        """All samples, for whatever purpose."""
        return sum(self.samples.values())

    def summary(self) -> Summary:
        """Return what `print` shows."""
        from cmpg.report.display import learning_summary  # a room below: tables are made on demand

        return learning_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


def claim(epsilon: float, delta: float) -> str:
    """Say what a certified result promises."""
    return f"feasible, and no agent gains more than {epsilon:g} by deviating, with probability {1 - delta:g}."


@dataclass(frozen=True, eq=False)
class Judgement:
    """A learned policy, and all that was executed on the way, judged with the true model.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, learn_shared
    >>> from cmpg.scenarios import spectrum
    >>> result = learn_shared(GameSimulator(spectrum(), rng=np.random.default_rng(0)), epsilon=0.9, delta=0.1)
    >>> judgement = judge(spectrum(), result)
    >>> judgement.feasible, judgement.gap <= 0.9, judgement.right(0.9)
    (True, True, True)
    """

    gap: float  # the largest true gain of an agent
    costs: FloatArray  # [k]
    feasible: bool
    unsafe_policies: int  # executed policies that break a constraint
    unsafe_episodes: int
    multipliers: FloatArray  # [n, k]: they prove the gap

    __repr__ = fields_line

    def right(self, epsilon: float) -> bool:
        """Whether the policy is what was promised: feasible, and ε-Nash."""
        return self.feasible and self.gap <= epsilon


def judge(game: Game | DiscountedLocalGame, result: LearnResult) -> Judgement:
    """Judge a result with the game that the simulator hid; a discounted one is cut off where the rest is rounding.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, learn_shared
    >>> from cmpg.scenarios import spectrum
    >>> result = learn_shared(GameSimulator(spectrum(), rng=np.random.default_rng(0)), epsilon=0.9, delta=0.1)
    >>> judge(spectrum(), result).right(result.epsilon)
    True
    """
    if game.discount is not None:
        game = finite_form(game)
        steps = game.horizon or 1
        played = tuple(replace(each, policy=prolonged(each.policy, steps)) for each in result.played)
        result = replace(result, policy=prolonged(result.policy, steps), played=played)
    certificate = certify_with_best_responses(game, result.policy)
    unsafe = [each for each in result.played if _breaks(game, each.policy)]
    return Judgement(
        gap=certificate.epsilon,
        costs=certificate.costs,
        feasible=certificate.feasible,
        unsafe_policies=len(unsafe),
        unsafe_episodes=sum(each.episodes for each in unsafe),
        multipliers=certificate.multipliers,
    )


def _breaks(game: Game, policy: JointPolicy) -> bool:
    position = game.at(policy)
    return bool(np.any(position.costs > game.thresholds + position.cost_rounding))
