"""What is run: a game, a way to learn it, an accuracy, and a number of seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from checks.learning.games import (
    discounted_congestion,
    discounted_local,
    discounted_spectrum,
    random_game,
    random_local_game,
    rare_catastrophe,
)
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import random_start
from cmpg.games.game import Game
from cmpg.learning.generative import Adaptive
from cmpg.learning.local.simulator import LocalProblemSpec
from cmpg.learning.safe import Pace, safe_learner
from cmpg.learning.trials import ByResponses, BySharedModel, HiddenGame, Method
from cmpg.learning.truncation import steps_for
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import counter_example, counting_congestion_game, grid_world_local
from cmpg.scenarios.spectrum_sharing import spectrum

DELTA = 0.1
ENTROPY = 20_240_611
"""Everything random comes from this number, the case and the seed."""

COVERAGE_SEEDS = 200
SAFETY_SEEDS = 300
MAX_FAILURES = 34
"""Of 200 seeds with a failure rate of 0.1, more than 34 fail with probability 0.0008."""

GAMES: dict[str, Callable[[], Game]] = {
    "spectrum": spectrum,
    "counter-example": counter_example,
    "random": random_game,
    "rare catastrophe": rare_catastrophe,
    "grid world, own cell": grid_world_local,
    "random, local": random_local_game,
    "congestion by counts": partial(counting_congestion_game, num_agents=6),
    "spectrum, discounted": discounted_spectrum,
    "congestion, discounted": discounted_congestion,
    "random, local, discounted": discounted_local,
}


@dataclass(frozen=True)
class Case:
    """One line of a table: many seeds of one setting."""

    experiment: str  # coverage or safety
    game: str
    mode: str  # generative, shared or safe
    epsilon: float
    seeds: int
    payoff_noise: float | None = None  # rewards and costs are observed with this error; None: they are known
    wander: bool = False  # a random feasible start for every seed, instead of the one of least cost
    start: str = "vouched for"  # or learned, by draws and episodes

    @property
    def name(self) -> str:
        """What this case is called in tables, and in the file of results."""
        return f"{self.game}, payoffs unknown" if self.payoff_noise is not None else self.game

    @property
    def key(self) -> str:
        """Everything that decides the outcome of a seed: a record is used again only where all of it agrees."""
        return repr((replace(self, seeds=0), DELTA, ENTROPY))

    def stream(self, seed: int) -> np.random.SeedSequence:
        """Return the seed's own stream of random numbers."""
        return np.random.SeedSequence([ENTROPY, *self.name.encode(), *self.mode.encode()], spawn_key=(seed,))

    def hidden(self, game: Game) -> HiddenGame:
        """Return what is learned; a discounted game is cut off where ε allows it."""
        horizon = None if game.discount is None else steps_for(game, self.epsilon)
        return HiddenGame(game, payoff_noise=self.payoff_noise, horizon=horizon)

    def method(self, game: Game, rng: np.random.Generator) -> Method:
        """Return the way to learn."""
        if self.mode == "shared":
            return BySharedModel(epsilon=self.epsilon, delta=DELTA)
        if self.mode == "generative" and self.start == "learned":
            return ByResponses(epsilon=self.epsilon, delta=DELTA, start=None, learner=Adaptive())
        start = self._start(game, rng)
        if self.mode == "generative":
            return ByResponses(epsilon=self.epsilon, delta=DELTA, start=start, learner=Adaptive())
        known: Any = self.hidden(game).simulator(rng).known
        if isinstance(known, LocalProblemSpec):
            return BySharedModel(epsilon=self.epsilon, delta=DELTA, start=start, pace=Pace(growth=0.25, most=10**12))
        pace = Pace(growth=0.2, most=10**12)
        learner = safe_learner(known, epsilon=self.epsilon, pace=pace)
        return ByResponses(epsilon=self.epsilon, delta=DELTA, start=start, learner=learner)

    def _start(self, game: Game, rng: np.random.Generator) -> JointPolicy:
        """A start that is feasible in the true game."""
        safe = feasible_start(game).policy
        if safe is None:
            raise ValueError(f"{self.game} has no feasible start")
        return random_start(game, safe, rng=rng) if self.wander else safe


def cases() -> tuple[Case, ...]:
    """Return all that is run seed by seed."""
    coverage = [
        case
        for mode in ("generative", "shared")
        for case in (
            Case("coverage", "spectrum", mode, 0.3, COVERAGE_SEEDS),
            Case("coverage", "counter-example", mode, 0.2, COVERAGE_SEEDS, wander=mode == "generative"),
            Case("coverage", "counter-example", mode, 0.4, COVERAGE_SEEDS, 0.5, wander=mode == "generative"),
            Case("coverage", "random", mode, 0.5, COVERAGE_SEEDS),
            Case("coverage", "rare catastrophe", mode, 0.5, COVERAGE_SEEDS),
        )
    ]
    safety = [
        Case("safety", "spectrum", "safe", 0.6, SAFETY_SEEDS),
        Case("safety", "rare catastrophe", "safe", 0.5, SAFETY_SEEDS),
    ]
    return (*coverage, *safety)


def structured_cases() -> tuple[Case, ...]:
    """Return what is run of local, counting and discounted games."""
    return (
        Case("coverage", "grid world, own cell", "shared", 1.0, COVERAGE_SEEDS),
        Case("coverage", "random, local", "shared", 0.5, COVERAGE_SEEDS),
        Case("coverage", "congestion by counts", "generative", 5.0, COVERAGE_SEEDS, start="learned"),
        Case("coverage", "spectrum, discounted", "generative", 0.5, COVERAGE_SEEDS, start="learned"),
        Case("coverage", "congestion, discounted", "shared", 5.0, COVERAGE_SEEDS),
        Case("coverage", "random, local, discounted", "shared", 0.5, COVERAGE_SEEDS),
        Case("safety", "grid world, own cell", "safe", 0.5, SAFETY_SEEDS),
    )
