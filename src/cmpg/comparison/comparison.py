"""One game, every method, the same start, the same judge: what a certificate is worth.

The start is a random feasible policy. The judge is that of `cmpg.judge`, the same for all methods, ours among them: for
a feasible policy it says how much an agent could gain at most by deviating, and up to rounding how much it does gain.
For an infeasible policy that gap means nothing.

An iterate is a joint policy that a method goes through, the start and the answer among them. Had the agents played
while they computed, these are the policies that they would have played.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.comparison.gradients import IndependentGradient, LagrangianGradient, SwitchingGradient
from cmpg.comparison.methods import COMPARATORS, JointPlanner, LagrangianDual, NashCA
from cmpg.comparison.record import Comparator, Comparison
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import random_start
from cmpg.errors import GameError, InfeasibleError
from cmpg.games.game import Game
from cmpg.games.potential.check import Verdict, check_potential
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

ALLOWED = 1e-9
"""Other methods do not meet a threshold to the last bit: an excess of no more than this counts as feasible."""


@dataclass(frozen=True)
class CertifiedAscent:
    """CA-CMPG from the start that it is given: every iterate is feasible, and the answer comes with its proof.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = CertifiedAscent()(game, game.uniform_policy())
    >>> found.infeasible_iterates, found.worst_violation <= 0, found.values
    (0, True, array([3., 3.]))
    """

    epsilon: float = 1e-6
    time_limit: float = np.inf

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method; the time includes the certificate."""
        began = time.process_time()
        result = uninterrupted(solve(game, start=start, epsilon=self.epsilon, rng=rng, time_limit=self.time_limit))
        seconds = time.process_time() - began
        if result.incumbent is None:
            raise InfeasibleError(f"the ascent ended without a policy: {result.message}")
        path = np.array([*(step.costs for step in result.trace if step.mover is not None), result.costs])
        excess = (path - np.asarray(game.thresholds, dtype=np.float64)).reshape(len(path), -1)
        rounding = game.at(result.policy).cost_rounding
        return Comparison(
            name=type(self).__name__,
            policy=result.policy,
            values=result.values,
            costs=result.costs,
            worst_violation=float(excess.max(initial=0.0)),
            infeasible_iterates=int((excess > rounding).any(axis=1).sum()),
            iterates=len(path),
            seconds=seconds,
            settings=repr(self),
        )


METHODS: tuple[Comparator, ...] = (CertifiedAscent(), *COMPARATORS)
"""Our method, then all others."""

QUICK_METHODS: tuple[Comparator, ...] = (
    CertifiedAscent(),
    LagrangianDual(iterations=30),
    IndependentGradient(iterations=100),
    LagrangianGradient(iterations=100),
    SwitchingGradient(rounds=10, steps_per_round=10),
    JointPlanner(),
    NashCA(),
)
"""The same methods with fewer iterations, for a first look."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What a method returned, and what the judge says of it."""

    found: Comparison
    policy: JudgedPolicy
    potential_gained: float  # Φ(answer) − Φ(start); nan if the game has no potential

    @property
    def name(self) -> str:
        """The method."""
        return self.found.name

    @property
    def certificate(self) -> Certificate:
        """What is proved of the policy."""
        return self.policy.certificate

    @property
    def welfare(self) -> float:
        """The sum of the agents' values."""
        return float(self.found.values.sum())

    @property
    def gap(self) -> float:
        """What an agent could gain by deviating, if the policy is feasible; inf if it is not."""
        return self.certificate.epsilon if self.feasible else np.inf

    @property
    def feasible(self) -> bool:
        """Whether the policy meets the thresholds, or exceeds them by what `ALLOWED` leaves to rounding."""
        return self.certificate.meets(ALLOWED)


@dataclass(frozen=True)
class Refusal:
    """A method that does not apply to the game."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class GameComparison:
    """One game under all methods.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> found = compare(counter_example(), rng=np.random.default_rng(1), methods=(CertifiedAscent(),))
    >>> found.is_potential, found.restarted.certified, len(found.judged)
    (True, True, 1)
    """

    thresholds: FloatArray  # [k]
    start_costs: FloatArray  # [k]
    is_potential: bool
    entries: tuple[Judged | Refusal, ...]  # in the order of the methods
    restarted: Result  # what `solve` finds with restarts and starts of its own
    restarted_gain: float  # Φ(its answer) − Φ(start); nan if there is none
    restarted_seconds: float
    restarts: int

    __repr__ = fields_line

    @property
    def judged(self) -> tuple[Judged, ...]:
        """The methods that apply."""
        return tuple(entry for entry in self.entries if isinstance(entry, Judged))


def compare(
    game: Game,
    *,
    rng: np.random.Generator,
    methods: Sequence[Comparator] = METHODS,
    restarts: int = 10,
    on_progress: Callable[[str], None] = lambda _: None,
) -> GameComparison:
    """Run all methods on a game from one random feasible start, and judge what they return.

    Parameters
    ----------
    game
        Any game in floats that has a feasible policy.
    rng
        Draws the start; every method has a stream of its own.
    methods
        Which ones, in which order.
    restarts
        How many starts `solve` has when it may choose its own.
    on_progress
        Called with the name of each method before it runs.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> methods = (CertifiedAscent(), NashCA())
    >>> ours, free = compare(counter_example(), rng=np.random.default_rng(1), methods=methods).judged
    >>> ours.gap < 1e-6, ours.found.infeasible_iterates, free.gap
    (True, 0, inf)
    """
    safe = feasible_start(game)
    if safe.policy is None:
        raise InfeasibleError(f"there is no feasible start to compare from ({safe.found_by}).")
    begin, restart, *streams = rng.spawn(2 + len(methods))
    start = random_start(game, safe.policy, rng=begin)
    is_potential = check_potential(game, rng=np.random.default_rng(0)).verdict is not Verdict.REFUTED
    level = game.potential(start) if is_potential else np.nan
    entries: list[Judged | Refusal] = []
    for method, stream in zip(methods, streams, strict=True):
        on_progress(type(method).__name__)
        try:
            found = method(game, start, rng=stream)
        except GameError as reason:  # a method says so if it cannot be used on a form of game
            entries.append(Refusal(type(method).__name__, str(reason)))
            continue
        gained = game.potential(found.policy) - level if is_potential else np.nan
        judged = judge_known(game, found.policy, name=found.name, time_limit=0.0)
        entries.append(Judged(found, judged, gained))
    on_progress("restarts")
    began = time.process_time()
    best = uninterrupted(solve(game, restarts=Restarts(restarts), rng=restart))
    seconds = time.process_time() - began
    return GameComparison(
        thresholds=np.asarray(game.thresholds, dtype=np.float64),
        start_costs=np.asarray(game.at(start).costs, dtype=np.float64),
        is_potential=is_potential,
        entries=tuple(entries),
        restarted=best,
        restarted_gain=game.potential(best.policy) - level if is_potential and best.incumbent is not None else np.nan,
        restarted_seconds=seconds,
        restarts=restarts,
    )
