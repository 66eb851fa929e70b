"""Whether strong duality holds: P* and D* with their bounds, and what a dual method may return, in one record."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from cmpg.duality.dual_function import DualValue, dual_value, primal_value
from cmpg.duality.gap import duality_gap
from cmpg.duality.maximisers import DualMaximisers, dual_maximisers
from cmpg.equilibrium.branch_and_bound import PrimalBound
from cmpg.errors import explains_keywords
from cmpg.games.game import Game, Names
from cmpg.games.joint.game import joint_or_none
from cmpg.summaries import Summary, html, line, text


class StrongDuality(Enum):
    """Whether P* = D*.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> analyse_duality(counter_example(), tolerance=0.01).strong_duality.name
    'FAILS'
    """

    HOLDS = "a feasible policy attains the dual value, to within the tolerance"
    FAILS = "no feasible policy attains the dual value: proved"
    UNKNOWN = "the bounds leave it open"


@dataclass(frozen=True, eq=False)
class DualityReport:
    """P*, D* and λ* with their bounds, and the policies that the dual may return, where they are enumerated.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example, modified_counter_example
    >>> games = (counter_example(), modified_counter_example())
    >>> [analyse_duality(game, tolerance=0.01).strong_duality.name for game in games]
    ['FAILS', 'HOLDS']
    """

    primal: PrimalBound
    dual: DualValue
    maximisers: DualMaximisers
    tolerance: float
    names: Names = field(default_factory=Names)

    @property
    def least_gap(self) -> float:
        """D* − P* is at least this."""
        return max(self.dual.lower - self.primal.upper, 0.0)

    @property
    def greatest_gap(self) -> float:
        """D* − P* is at most this."""
        return max(self.dual.upper - self.primal.lower, 0.0)

    @property
    def strong_duality(self) -> StrongDuality:
        """Whether P* = D*: the bounds are the proof."""
        if self.greatest_gap <= self.tolerance:
            return StrongDuality.HOLDS
        return StrongDuality.FAILS if self.least_gap > 0 else StrongDuality.UNKNOWN

    def summary(self) -> Summary:
        """Return what `print` shows."""
        from cmpg.report.display import duality_summary  # a room below: tables are made on demand

        return duality_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


@explains_keywords()
def analyse_duality(
    game: Game, *, tolerance: float = 1e-6, limit: int = 64, rng: np.random.Generator | None = None
) -> DualityReport:
    """Gather P*, D*, λ*, the gap between them, and in joint games the policies that the dual may return.

    In other forms the bounds are those of `duality_gap`, λ* is the common price of a rota, and no policies are listed;
    `dual_function_bounds` has the dual function of local games.

    Parameters
    ----------
    game
        With a potential; in joint games, one that has a `potential_reward`.
    tolerance
        How close P* and D* must be proved to be to count as equal.
    limit
        How many of the dual's policies to list.
    rng
        For random starts; a generator with seed 0 unless given.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> report = analyse_duality(counter_example())
    >>> round(report.primal.lower, 4), round(report.dual.upper, 4), report.dual.multipliers
    (3.0858, 3.5, array([1.]))

    Agents with states of their own: the bracket is proved, and closed only in small games.

    >>> from cmpg.scenarios import grid_world_local
    >>> report = analyse_duality(grid_world_local())
    >>> round(report.primal.lower, 4), round(report.dual.upper, 4), report.strong_duality.name
    (21.1, 21.1, 'HOLDS')
    """
    joint = joint_or_none(game)
    if joint is None:
        gap = duality_gap(game, epsilon=tolerance, rng=0 if rng is None else rng)
        return DualityReport(
            primal=PrimalBound(gap.primal_lower, gap.primal_upper, gap.policy, nodes=0),
            dual=DualValue(gap.dual_lower, gap.dual_upper, gap.multipliers, correlated=None),
            maximisers=DualMaximisers(gap.multipliers, (), complete=False),
            tolerance=tolerance,
            names=game.names,
        )
    dual = dual_value(joint)
    return DualityReport(
        primal=primal_value(joint, tolerance=tolerance, rng=rng),
        dual=dual,
        maximisers=dual_maximisers(joint, dual.multipliers, limit=limit),
        tolerance=tolerance,
        names=joint.names,
    )
