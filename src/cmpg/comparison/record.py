"""How a method is called that is to be compared, what it returns, and what its iterates did to the constraints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.games.game import Game, Position
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a method returned, and what it did to the constraints on the way.

    Examples
    --------
    >>> from cmpg.comparison import NashCA
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = NashCA()(game, game.uniform_policy())
    >>> found.name, found.iterates, found.infeasible_iterates
    ('NashCA', 3, 1)
    """

    name: str
    policy: JointPolicy
    values: FloatArray  # [n]
    costs: FloatArray  # [k]
    worst_violation: float  # the greatest V^{c_j} − α_j over all iterates and constraints, or 0
    infeasible_iterates: int
    iterates: int  # joint policies that the method went through, the start and the answer among them
    seconds: float  # of CPU time
    settings: str
    upper_bound: float = np.inf  # no feasible policy has a greater mean of the agents' values; finite if known

    __repr__ = fields_line


class Comparator(Protocol):
    """A method that turns a start into a policy, on a game in floats.

    Examples
    --------
    >>> from cmpg.comparison import NashCA
    >>> from cmpg.scenarios import counter_example
    >>> def stay(game, start, *, rng=None):
    ...     return NashCA(max_moves=0)(game, start, rng=rng)
    >>> method: Comparator = stay
    >>> method(counter_example(), counter_example().uniform_policy()).values
    array([2.75, 2.75])
    """

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method."""


@dataclass(eq=False)
class Run:
    """Watches the iterates of one run."""

    game: Game
    began: float = field(default_factory=time.process_time)
    worst: float = 0.0
    infeasible: int = 0
    iterates: int = 0

    def see(self, position: Position) -> Position:
        """Count a joint policy, and how far it exceeds the thresholds."""
        self.iterates += 1
        if len(self.game.thresholds):
            excess = np.asarray(position.costs - self.game.thresholds, dtype=np.float64)
            self.worst = max(self.worst, float(excess.max()))
            self.infeasible += not self.allows(position)
        return position

    def allows(self, position: Position) -> bool:
        """Whether a joint policy meets the thresholds, up to rounding."""
        excess = np.asarray(position.costs - self.game.thresholds, dtype=np.float64)
        return bool((excess <= position.cost_rounding).all())

    def ended(self, method: Comparator, position: Position, *, upper_bound: float = np.inf) -> Comparison:
        """Return the record of the run."""
        return Comparison(
            name=type(method).__name__,
            policy=position.policy,
            values=np.asarray(position.values, dtype=np.float64),
            costs=np.asarray(position.costs, dtype=np.float64),
            worst_violation=self.worst,
            infeasible_iterates=self.infeasible,
            iterates=self.iterates,
            seconds=time.process_time() - self.began,
            settings=repr(method),
            upper_bound=upper_bound,
        )
