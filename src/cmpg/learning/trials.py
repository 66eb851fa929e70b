"""The same learning problem over many seeds, each result judged afterwards with the true model.

Every seed has a stream of its own, spawned from one `SeedSequence`, so a trial has the same bits on any worker and
for any number of trials at the same time. The path of one: `trials` → `trial` → a `Method` → `learn` (`ascent.py`),
`learn_shared` (`shared.py`) or `learn_safely` (`local/safe.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from cmpg.equilibrium.discounted import prolonged
from cmpg.equilibrium.result import Step
from cmpg.errors import UnsupportedError
from cmpg.games.game import Game
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.local.game import LocalGame
from cmpg.learning.ascent import learn
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.generative import Adaptive
from cmpg.learning.local.safe import learn_safely
from cmpg.learning.local.simulator import LocalSimulator
from cmpg.learning.outcome import Judgement, LearnedResponse, LearnResult, judge
from cmpg.learning.safe import Pace, SafeExploration
from cmpg.learning.shared import Round, learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.learning.truncation import steps_until_rounding
from cmpg.policy import JointPolicy
from cmpg.runs.runner import Jobs, run_tasks
from cmpg.summaries import fields_line


@dataclass(frozen=True)
class Progress:
    """Where a trial stands."""

    samples: int  # so far, for whatever purpose
    note: str  # the current certificate
    gap: float = np.nan  # how far the bounds are apart: of the response at hand, or of what an agent can gain
    goal: float = np.nan  # how far they may be
    feasible: bool = False  # whether the policy at hand is proved to meet the constraints
    seconds: float = 0.0  # since the trial began


def samples_left(curve: Sequence[Progress]) -> float:
    """Estimate how many samples are still missing, from how the gap fell with the samples so far; nan where it did not.

    Examples
    --------
    >>> samples_left([Progress(100, "", gap=4.0, goal=1.0), Progress(400, "", gap=2.0, goal=1.0)])
    1200.0
    """
    known = [each for each in curve if np.isfinite(each.gap) and each.gap > 0]
    if len(known) < 2 or known[-1].samples <= known[-2].samples or known[-1].gap >= known[-2].gap:
        return np.nan
    before, now = known[-2:]
    slope = np.log(before.gap / now.gap) / np.log(now.samples / max(before.samples, 1))
    times = np.exp(min(np.log(max(now.gap / now.goal, 1.0)) / slope, 100.0))
    return float(now.samples * (times - 1))


Watch = Callable[[Progress], None]


class Method(Protocol):
    """Learns an equilibrium from a simulator."""

    def __call__(self, simulator: Any, watch: Watch) -> LearnResult:
        """Learn, and report on the way."""


@dataclass(frozen=True, eq=False)
class ByResponses:
    """Algorithm 2 with one of its learners."""

    _: KW_ONLY
    epsilon: float
    delta: float
    start: JointPolicy | None
    learner: Adaptive | SafeExploration
    time_limit: float = np.inf

    def __call__(self, simulator: Any, watch: Watch) -> LearnResult:
        """Run `learn`."""

        def on_round(found: LearnedResponse) -> None:
            feasible = found.meets(simulator.known.limits)
            state = "feasible" if feasible else "not proved feasible yet"
            note = f"response {state}; its gap is {found.gap:.3g}, and {self.epsilon / 4:.3g} is required"
            watch(Progress(simulator.ledger.total, note, gap=found.gap, goal=self.epsilon, feasible=feasible))

        def on_progress(step: Step) -> None:
            note = f"iteration {step.iteration}: the largest gain seen is {step.gain:.3g}"
            watch(Progress(simulator.ledger.total, note))

        return learn(
            simulator,
            epsilon=self.epsilon,
            delta=self.delta,
            start=self.start,
            learner=replace(self.learner, on_round=on_round),
            time_limit=self.time_limit,
            on_progress=on_progress,
        )


@dataclass(frozen=True, eq=False)
class BySharedModel:
    """One model for all, which is drawn from; or, from a start, explored safely by episodes (local games)."""

    _: KW_ONLY
    epsilon: float
    delta: float
    start: JointPolicy | None = None
    pace: Pace | None = None
    time_limit: float = np.inf

    def __call__(self, simulator: Any, watch: Watch) -> LearnResult:
        """Run `learn_shared`, or `learn_safely`."""

        def on_round(found: Round) -> None:
            state = "feasible" if found.feasible else "not proved feasible yet"
            note = f"{state}, gains of at most {found.gap:.3g}"
            watch(Progress(simulator.ledger.total, note, found.gap, self.epsilon, found.feasible))

        shared: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "time_limit": self.time_limit}
        if self.start is None:
            return learn_shared(simulator, **shared, on_round=on_round)
        return learn_safely(simulator, start=self.start, pace=self.pace, **shared, on_round=on_round)


class Hidden(Protocol):
    """What is learned: anything that makes simulators."""

    @property
    def game(self) -> Any:
        """The true game, which judges what was learned; None if it is unknown, and nothing is judged."""

    def simulator(self, rng: np.random.Generator) -> Any:
        """Return a simulator that draws with this generator."""


@dataclass(frozen=True, eq=False)
class HiddenGame:
    """A known game that stands for an unknown one: learners see simulators of it, and it judges them afterwards.

    Parameters
    ----------
    game
        The true game.
    budget
        Samples of one simulator at most; None for no limit.
    payoff_noise
        Rewards and costs are hidden, too, and observed with this error; None if they are known.
    reveal_support
        Whether learners know which next states are possible.
    horizon
        After how many steps a discounted game is cut off.
    """

    game: Game | DiscountedLocalGame
    _: KW_ONLY
    budget: int | None = None
    payoff_noise: float | None = None
    reveal_support: bool = False
    horizon: int | None = None

    def simulator(self, rng: np.random.Generator) -> GameSimulator | LocalSimulator:
        """Return the simulator that suits the form of the game."""
        settings: Any = {"budget": self.budget, "reveal_support": self.reveal_support, "horizon": self.horizon}
        if isinstance(self.game, (LocalGame, DiscountedLocalGame)):
            if self.payoff_noise is not None:
                advice = "Leave payoff_noise out: what is hidden are the kernels of its agents."
                raise UnsupportedError("LocalGame", "is learned with rewards and costs that are known", advice)
            return LocalSimulator(self.game, rng=rng, **settings)
        return GameSimulator(self.game, rng=rng, payoff_noise=self.payoff_noise, **settings)


@dataclass(frozen=True, eq=False)
class Trial:
    """One seed: what was learned, and what that is worth in truth."""

    index: int
    result: LearnResult
    judgement: Judgement | None  # None if the true game is unknown
    seconds: float
    curve: tuple[Progress, ...] = ()  # where it stood on the way

    __repr__ = fields_line

    @property
    def right(self) -> bool | None:
        """Whether the policy is feasible and ε-Nash in truth; None if that is unknown."""
        return None if self.judgement is None else self.judgement.right(self.result.epsilon)


Seed = tuple[int, np.random.SeedSequence]
"""The number of a trial, counted from 0, and the stream of its own that it draws with."""


def trial(hidden: Hidden, method: Method, seed: Seed, *, watch: Watch | None = None) -> Trial:
    """Learn once from samples; then judge with the true game, if it is known."""
    index, stream = seed
    began, curve = time.perf_counter(), []

    def note(progress: Progress) -> None:
        curve.append(replace(progress, seconds=time.perf_counter() - began))
        if watch is not None:
            watch(curve[-1])

    result = method(hidden.simulator(np.random.default_rng(stream)), note)
    judgement = None
    if hidden.game is not None:
        judgement = judge(hidden.game, result)
        if hidden.game.discount is not None:  # a policy of the game that is kept, and judged
            result = replace(result, policy=prolonged(result.policy, steps_until_rounding(hidden.game)))
    return Trial(index, result, judgement, time.perf_counter() - began, tuple(curve))


def trials(
    hidden: Hidden,
    method: Method,
    *,
    streams: Sequence[np.random.SeedSequence],
    done: Collection[int] = (),
    jobs: int | Jobs = 1,
    watch: Watch | None = None,
) -> Iterator[Trial]:
    """Run one trial per stream, and yield each as soon as it is done.

    Parameters
    ----------
    hidden
        What is learned.
    method
        How to learn.
    streams
        One seed each, as `SeedSequence(…).spawn(…)` gives them.
    done
        The trials, counted from 0, that are not run: their results are known.
    jobs
        Processes, or a cluster; the trials have the same bits for any number.
    watch
        Called as a trial goes on; only where there is one process.
    """
    requested = Jobs.of(jobs)
    missing = [(index, stream) for index, stream in enumerate(streams) if index not in done]
    alone = requested.in_process or (len(missing) == 1 and requested.scheduler is None)
    run = partial(trial, hidden, method, watch=watch if alone else None)
    for _, each in run_tasks(run, missing, jobs=1 if alone else requested):
        yield each


@dataclass(frozen=True)
class Proportion:
    """How many of some trials came out in a way, and between what the true rate lies."""

    count: int
    trials: int
    lowest: float  # Clopper-Pearson, 95 %
    highest: float

    @classmethod
    def of(cls, outcomes: Sequence[bool]) -> Proportion:
        """Count the true ones.

        Examples
        --------
        >>> Proportion.of([False] * 30)
        Proportion(count=0, trials=30, lowest=0.0, highest=0.1157...)
        """
        count, total = sum(outcomes), len(outcomes)
        lowest, highest = binomial_interval(np.array([count]), np.array([total]), delta=0.05)
        return cls(count, total, float(lowest[0]), float(highest[0]))
