"""What a start is, and what feasible means: the thresholds are met with room for rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.result import Step
from cmpg.games.claims import meets_thresholds_exactly
from cmpg.games.game import Game, Objective, Position, UpperBound
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.equilibrium.infeasibility import InfeasibilityProof


@dataclass(frozen=True, eq=False)
class Start:
    """A feasible policy, or a proof that there is none, or neither.

    Examples
    --------
    >>> from cmpg.equilibrium import feasible_start
    >>> from cmpg.scenarios import counter_example
    >>> start = feasible_start(counter_example())
    >>> start.slack, start.policy is None, start.proof
    (0.5, False, None)
    """

    policy: JointPolicy | None
    slack: float  # min_j (α_j − V^{c_j}) of the policy, or of the best one seen
    proof: InfeasibilityProof | None
    found_by: str
    multipliers: FloatArray | None = None  # [k]: common to all agents, where the search found some
    trace: tuple[Step, ...] = ()  # rounds of the search
    begin: JointPolicy | None = None  # where the search began, if it did not begin here
    interrupted: bool = False  # by the user, before the search was over
    bound: UpperBound | None = None  # what no feasible policy exceeds, where the search has proved it on its way
    objective: Objective | None = None  # what the bound bounds

    __repr__ = fields_line

    @property
    def seconds(self) -> float:
        """How long the search took, as far as its trace tells."""
        return self.trace[-1].seconds if self.trace else 0.0

    @property
    def moves(self) -> int:
        """How many moves the search made."""
        return sum(step.moves for step in self.trace)


class StartMethod(Protocol):
    """Finds where the ascent begins.

    Examples
    --------
    >>> from cmpg import solve
    >>> from cmpg.scenarios import counter_example
    >>> def uniform(game, begin=None, **_):
    ...     return Start(game.uniform_policy(), float(game.at(game.uniform_policy()).slacks.min()), None, "uniform")
    >>> solve(counter_example(), start=uniform).certified
    True
    """

    def __call__(
        self,
        game: Game,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        on_progress: OnProgress = lambda _: None,
    ) -> Start:
        """Return a feasible policy; `begin` is one that is known already."""


def worst_slack(position: Position) -> float:
    """Return min_j (α_j − V^{c_j})."""
    return float(np.min(position.slacks, initial=np.inf))


def is_feasible(position: Position) -> bool:
    """Whether the thresholds are met with room for rounding."""
    return bool(np.all(position.slacks >= position.cost_rounding))


def is_surely_feasible(game: Game, policy: JointPolicy) -> bool:
    """Whether the thresholds are met: with room for rounding, or exactly, where little enough can happen."""
    position = game.at(policy)
    return is_feasible(position) or (may_be_feasible(position) and meets_thresholds_exactly(game, policy))


def may_be_feasible(position: Position) -> bool:
    """Whether the thresholds are met as far as floating point can tell; for policies that leave no room for more."""
    return bool(np.all(position.slacks >= -position.cost_rounding))


def random_start(game: Game, safe: JointPolicy, *, rng: np.random.Generator) -> JointPolicy:
    """Return a random feasible policy: a random one, moved towards a safe one until it is feasible.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game, rng = counter_example(threshold=0.01), np.random.default_rng(0)
    >>> safe = JointPolicy.reference(game.policy_shapes)
    >>> all(game.at(random_start(game, safe, rng=rng)).costs[0] <= 0.01 for _ in range(20))
    True
    """
    wild = JointPolicy.random(game.policy_shapes, rng=rng)
    for weight in (1.0, 0.5, 0.25, 0.1, 0.03, 0.01):
        mixed = safe.mix(wild, weight) if weight < 1 else wild
        if is_feasible(game.at(mixed)):
            return mixed
    return safe


HALVINGS = 12
"""How often the distance to a feasible policy is halved when a start is moved inside."""


def moved_inside(game: Game, safe: JointPolicy, wild: JointPolicy) -> JointPolicy:
    """Return a feasible mixture of a feasible policy and another one, with about as much of the other as can be."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_feasible(game.at(safe.mix(wild, middle))) else (low, middle)
    return safe.mix(wild, low) if low else safe
