"""The same learning problem over many seeds, each result judged afterwards with the true model.

Every seed has a stream of its own, spawned from one `SeedSequence`, so a trial has the same bits whoever runs it and
however many run at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from cmpg.errors import UnsupportedError
from cmpg.faces import fields_line
from cmpg.games.contract import Game
from cmpg.games.local.game import LocalGame
from cmpg.learning.ascent import learn
from cmpg.learning.confidence import binomial_interval
from cmpg.learning.generative import Adaptive
from cmpg.learning.local.simulator import LocalSimulator
from cmpg.learning.outcome import Judgement, LearnedResponse, LearnResult, judge
from cmpg.learning.safe import SafeExploration
from cmpg.learning.shared import Round, learn_shared
from cmpg.learning.simulator import GameSimulator
from cmpg.policy import JointPolicy
from cmpg.runs.runner import Jobs, run_tasks


@dataclass(frozen=True)
class Progress:
    """Where a trial stands."""

    samples: int  # so far, for whatever purpose
    note: str  # the current certificate


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

        def show(note: str) -> None:
            watch(Progress(simulator.ledger.total, note))

        def on_round(found: LearnedResponse) -> None:
            state = "feasible" if found.meets(simulator.known.thresholds) else "not proved feasible yet"
            show(f"a response is {state}, and best up to {found.gap:.3g} ({self.epsilon / 4:.3g} is asked for)")

        return learn(
            simulator,
            epsilon=self.epsilon,
            delta=self.delta,
            start=self.start,
            learner=replace(self.learner, on_round=on_round),
            time_limit=self.time_limit,
            on_progress=lambda step: show(f"iteration {step.iteration}: the largest gain seen is {step.gain:.3g}"),
        )


@dataclass(frozen=True, eq=False)
class BySharedModel:
    """The variant that explores once; local games are learned in no other way."""

    _: KW_ONLY
    epsilon: float
    delta: float
    time_limit: float = np.inf

    def __call__(self, simulator: Any, watch: Watch) -> LearnResult:
        """Run `learn_shared`."""

        def on_round(found: Round) -> None:
            state = "feasible" if found.feasible else "not proved feasible yet"
            watch(Progress(simulator.ledger.total, f"{state}, gains of at most {found.gap:.3g}"))

        return learn_shared(
            simulator, epsilon=self.epsilon, delta=self.delta, time_limit=self.time_limit, on_round=on_round
        )


@dataclass(frozen=True)
class Behind:
    """How the game is hidden: the options of its simulator."""

    _: KW_ONLY
    budget: int | None = None
    payoff_noise: float | None = None
    reveal_support: bool = False

    def hide(self, game: Game, *, rng: np.random.Generator) -> GameSimulator | LocalSimulator:
        """Put a game behind the door that suits its form."""
        if isinstance(game, LocalGame):
            if self.payoff_noise is not None:
                advice = "Leave payoff_noise out: what is hidden are the kernels of its agents."
                raise UnsupportedError("LocalGame", "is learned with rewards and costs that are known", advice)
            return LocalSimulator(game, rng=rng, budget=self.budget, reveal_support=self.reveal_support)
        return GameSimulator(
            game, rng=rng, budget=self.budget, payoff_noise=self.payoff_noise, reveal_support=self.reveal_support
        )


@dataclass(frozen=True, eq=False)
class Trial:
    """One seed: what was learned, and what that is worth in truth."""

    index: int
    result: LearnResult
    judgement: Judgement
    seconds: float

    __repr__ = fields_line

    @property
    def right(self) -> bool:
        """Whether the policy is feasible and ε-Nash in truth."""
        return self.judgement.right(self.result.epsilon)


def trial(
    game: Game,
    method: Method,
    *,
    index: int,
    stream: np.random.SeedSequence,
    behind: Behind,
    watch: Watch = lambda _: None,
) -> Trial:
    """Learn once behind the door, then open it and judge."""
    began = time.perf_counter()
    result = method(behind.hide(game, rng=np.random.default_rng(stream)), watch)
    return Trial(index, result, judge(game, result), time.perf_counter() - began)


def trials(
    game: Game,
    method: Method,
    *,
    streams: Sequence[np.random.SeedSequence],
    done: Collection[int] = (),
    jobs: int | Jobs = 1,
    behind: Behind | None = None,
    watch: Watch = lambda _: None,
) -> Iterator[Trial]:
    """Run one trial per stream, and yield each as soon as it is done.

    Parameters
    ----------
    game
        The true game, which only the simulator and the judge see.
    method
        How to learn.
    streams
        One seed each, as `SeedSequence(…).spawn(…)` gives them.
    done
        The trials, counted from 0, that are not run: their results are known.
    jobs
        Processes, or a cluster; the trials have the same bits for any number.
    behind
        The budget of each trial, and what is hidden besides the transition.
    watch
        Called as a trial goes on; only where there is one process.
    """
    asked, hidden = Jobs.of(jobs), behind or Behind()
    missing = [(index, stream) for index, stream in enumerate(streams) if index not in done]
    alone = asked.in_process or (len(missing) == 1 and asked.scheduler is None)
    run = partial(_indexed_trial, game, method, behind=hidden, watch=watch if alone else None)
    for _, each in run_tasks(run, missing, jobs=1 if alone else asked):
        yield each


def _indexed_trial(
    game: Game, method: Method, task: tuple[int, np.random.SeedSequence], *, behind: Behind, watch: Watch | None
) -> Trial:
    return trial(game, method, index=task[0], stream=task[1], behind=behind, watch=watch or (lambda _: None))


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


def wrong_claims(done: Sequence[Trial]) -> Proportion:
    """Count, among the certified trials, those whose policy is not what was promised; at most δ of them may be."""
    return Proportion.of([not each.right for each in done if each.result.certified])
