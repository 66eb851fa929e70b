"""What a larger or smaller budget would be worth to one agent, and to all.

Let v_i(α) be the best value that agent i reaches by a deviation that keeps the thresholds α, while the others keep to
their policies. It is concave and does not fall as a threshold rises, and for the multipliers λ_i of the certificate

    v_i(α + δ e_j) ≤ V_i + gain_i + λ_ij δ    for every δ, positive or negative:

a straight line above the whole curve, which touches it at δ = 0 up to the certified gain. So λ_ij is a slope of v_i at
α, and at a kink one between the slopes on both sides. That is a statement about one agent who moves alone. The prices
of several agents do not add up, because one unit of budget is spent once; and what all agents come to at another
threshold is an equilibrium of another game, for which no slope is claimed: it can only be solved for.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.certificate import Certificate
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.runs import uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.errors import CMPGError, InfeasibleError
from cmpg.games.game import Game
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

POINTS = 21
"""Thresholds at which a curve is computed; odd, so that the game's own is one of them."""

MAX_AGENTS = 4
"""Curves of one constraint: those of the agents with the highest prices."""

MAX_CONSTRAINTS = 4
"""Thresholds that are tried: those with the highest prices."""

LARGEST_TABLE = 100_000
"""An agent with more entries (step, state, action) than this gets no curve: the page would take too long to write."""


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """v_i against one threshold, and the line that bounds it."""

    agent: int
    constraint: int
    thresholds: FloatArray  # [points]
    values: FloatArray  # [points]; nan where the agent could not keep the threshold, whatever it did
    multiplier: float  # λ_ij
    at: float  # the game's own threshold
    bound: float  # V_i + gain_i

    __repr__ = fields_line

    @property
    def is_flat(self) -> bool:
        """Whether no threshold that was tried makes a difference."""
        known = self.values[np.isfinite(self.values)]
        return len(known) == 0 or bool(np.ptp(known) <= 1e-9 * max(abs(self.bound), 1.0))

    @property
    def line(self) -> FloatArray:
        """The bound at every threshold: [points]."""
        return np.asarray(self.bound + self.multiplier * (self.thresholds - self.at))


def threshold_curves(
    game: Game, policy: JointPolicy, certificate: Certificate, *, constraint: int
) -> tuple[ThresholdCurve, ...]:
    """Compute the curves of the agents with the highest prices of one constraint.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> result = solve(game)
    >>> curve = threshold_curves(game, result.policy, result.certificate, constraint=0)[0]
    >>> bool(np.nanmax(curve.values - curve.line) < 1e-12)
    True
    """
    prices = certificate.multipliers[:, constraint]
    sizes = [int(np.prod(shape)) for shape in game.policy_shapes]
    # Where nothing is left and the proof is by support, there is no price whose line could be drawn.
    small = [i for i, size in enumerate(sizes) if size <= LARGEST_TABLE and np.isfinite(prices[i])]
    chosen = sorted(small, key=lambda agent: -prices[agent])[:MAX_AGENTS]
    at = float(game.thresholds[constraint])
    thresholds = around(at, float(certificate.costs[constraint]))
    position = game.at(policy)
    return tuple(
        ThresholdCurve(
            agent=agent,
            constraint=constraint,
            thresholds=thresholds,
            values=_best_values(position.induced_cmdp(agent), thresholds - at, constraint),
            multiplier=float(prices[agent]),
            at=at,
            bound=float(certificate.values[agent] + certificate.gains[agent]),
        )
        for agent in sorted(chosen)
    )


def around(threshold: float, cost: float) -> FloatArray:
    """Return thresholds on both sides of the game's own: as far as zero, or as the cost is away."""
    width = max(abs(threshold), abs(threshold - cost)) or 1.0
    thresholds = threshold + width * np.linspace(-1.0, 1.0, POINTS)
    thresholds[POINTS // 2] = threshold
    return thresholds


def _best_values(cmdp: CMDP, changes: FloatArray, constraint: int) -> FloatArray:
    values = np.full(len(changes), np.nan)
    for index, change in enumerate(changes):
        thresholds = cmdp.thresholds.copy()
        thresholds[constraint] += change
        try:
            values[index] = Exact()(replace(cmdp, thresholds=thresholds, trusted=True)).value
        except InfeasibleError:
            continue
    return values


MAX_WORK = 500_000
"""Games in which moves × agents × table entries exceed this are not solved again for the page."""


@dataclass(frozen=True, eq=False)
class Resolved:
    """Where the ascent leads at other thresholds of one constraint."""

    constraint: int
    at: float  # the game's own threshold
    thresholds: FloatArray  # [m]
    welfare: FloatArray  # [m]: the sum of the agents' values

    __repr__ = fields_line


def is_cheap(game: Game, moves: int) -> bool:
    """Whether the game can be solved a few more times while the page is waited for."""
    entries = sum(int(np.prod(shape)) for shape in game.policy_shapes)
    return (moves + 1) * game.num_agents * entries <= MAX_WORK


def solve_around(game: Game, policy: JointPolicy, *, constraint: int, epsilon: float) -> Resolved:
    """Go on from a policy at a few other thresholds; those without a certified answer in time are left out.

    Below what the policy spends, `solve` moves it towards a feasible one, just far enough, and starts there.
    """
    found: list[tuple[float, float]] = []
    cost = float(game.at(policy).costs[constraint])
    for threshold in around(float(game.thresholds[constraint]), cost)[:: POINTS // 10]:
        thresholds = game.thresholds.copy()
        thresholds[constraint] = threshold
        other = game.with_thresholds(thresholds)
        result = uninterrupted(solve(other, epsilon=epsilon, start=policy, time_limit=2.0))
        if result.certified:
            found.append((float(threshold), float(result.values.sum())))
    columns = np.array(found).reshape(-1, 2).T
    return Resolved(constraint, float(game.thresholds[constraint]), columns[0], columns[1])


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """What other thresholds would be worth: of the constraints with the highest prices, as far as that is cheap."""

    curves: tuple[ThresholdCurve, ...] = ()
    resolved: tuple[Resolved, ...] = ()

    __repr__ = fields_line


def sensitivity(result: Result) -> Sensitivity:
    """Try other thresholds of a result's game; what cannot be solved is left out.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> found = sensitivity(solve(counter_example()))
    >>> [curve.agent for curve in found.curves], len(found.resolved)
    ([0, 1], 1)
    """
    if result.incumbent is None or result.game is None or not len(result.costs):
        return Sensitivity()
    game, certificate = result.game, result.certificate
    policy = result.policy.floats()
    highest = np.argsort(-certificate.multipliers.max(axis=0), kind="stable")[:MAX_CONSTRAINTS]
    curves: list[ThresholdCurve] = []
    resolved: list[Resolved] = []
    for j in sorted(highest.tolist()):
        with suppress(CMPGError):
            curves += threshold_curves(game, policy, certificate, constraint=j)
            if result.certified and is_cheap(game, result.moves + result.search_moves):
                resolved.append(solve_around(game, policy, constraint=j, epsilon=result.epsilon))
    known = [curve for curve in curves if np.isfinite(curve.values).any()]
    return Sensitivity(tuple(known), tuple(each for each in resolved if len(each.thresholds) > 1))
