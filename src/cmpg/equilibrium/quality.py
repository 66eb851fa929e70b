"""How good a result is: its value beside an upper bound over all feasible policies.

A certificate says that no agent gains by deviating; there may be other equilibria, and feasible policies that are not
equilibria, that are worth more to all. An upper bound over all feasible policies says how much more at most. The game
proves it: by a planner that chooses all actions (joint and counting games), or by agents that plan alone and pay common
prices (local games). If a planner of a one-shot game could do better than the policy, branch and bound over the
agents' mixed actions bounds what they can do without correlation. docs/quality.md has the proofs. The bound takes time
of its own, so it is computed by name only: `quality(result)`.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.deadline import limited, limited_by_size
from cmpg.equilibrium.result import Result
from cmpg.errors import CMPGError, GameError, InfeasibleError, OutOfTimeError
from cmpg.games.game import Game, Objective, Planner, UpperBound, planner, relaxed_bound
from cmpg.games.joint.game import joint_or_none
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

OPTIMAL = 1e-6
"""A value this close to its upper bound, relative to both, counts as optimal."""

MAX_NODES = 200
"""Boxes of mixed actions that a search for a smaller upper bound looks at, at most."""

MAX_PAIRS = 50_000
"""Pairs of agents' joint actions that it looks at in all boxes: a fraction of a second, on any machine the same."""


@dataclass(frozen=True, eq=False)
class OptimalityGap:
    """The value of a policy by one objective, and what no feasible policy exceeds.

    Examples
    --------
    >>> bound = UpperBound(80.0, np.zeros(0), "a planner who chooses all actions")
    >>> gap = OptimalityGap(Objective.WELFARE, 60.0, bound)
    >>> gap.gap, gap.share, gap.optimal
    (20.0, 0.75, False)
    >>> print(gap)
    at least 75 % of the best possible total value, which is at most 80 (a planner who chooses all actions)
    """

    objective: Objective
    value: float
    bound: UpperBound | None  # None: unknown

    __repr__ = fields_line

    def __str__(self) -> str:
        """Return a sentence without its full stop."""
        from cmpg.report.display import gap_sentence  # a room below: sentences are made on demand

        return gap_sentence(self)

    @property
    def gap(self) -> float:
        """No feasible policy is worth more than this much more; infinite if no bound is known."""
        return math.inf if self.bound is None else max(self.bound.value - self.value, 0.0)

    @property
    def optimal(self) -> bool:
        """Whether the upper bound is reached."""
        return self.bound is not None and self.gap <= OPTIMAL * (abs(self.value) + abs(self.bound.value))

    @property
    def share(self) -> float | None:
        """The value as a share of the bound, where both are positive; None otherwise, and for a potential.

        A potential is defined up to a constant, so only its differences mean anything.
        """
        if self.bound is None or self.objective is Objective.POTENTIAL or self.value <= 0 or self.bound.value <= 0:
            return None
        return min(self.value / self.bound.value, 1.0)


def quality(result: Result, objective: Objective = Objective.WELFARE, *, time_limit: float = np.inf) -> OptimalityGap:
    """Compare a result's policy with an upper bound over all feasible policies.

    Parameters
    ----------
    result
        With a policy, and its game.
    objective
        What policies are compared by: the sum of the agents' values, or the potential, counted from that of
        `JointPolicy.reference`.
    time_limit
        Seconds for the bound. A local game then gives the best bound that was proved by then; others give none. The
        search of a one-shot game comes after it, and is limited by its own size.

    Raises
    ------
    InfeasibleError
        The result has no policy.
    GameError
        The potential is requested, and the game is not known to have one.

    Examples
    --------
    >>> from cmpg.equilibrium.solve import solve
    >>> from cmpg.scenarios import grid_world
    >>> print(quality(solve(grid_world())))
    optimal: the proved upper bound is reached (a planner who chooses all actions)
    """
    if not isinstance(result, Result):
        raise CMPGError(f"the result is a {type(result).__name__}; what `cmpg.solve` returns is required.")
    if not isinstance(objective, Objective):
        raise CMPGError(f"objective is {objective!r}; Objective.WELFARE or Objective.POTENTIAL is required.")
    policy = result.policy.floats()
    if result.game is None:
        raise CMPGError("the result does not know its game; `solve` and `load_run` return results that do.")
    stated: Any = result.game
    game, lost = (
        (stated, 0.0) if not isinstance(stated, DiscountedLocalGame) else _first_steps(stated, policy, objective)
    )
    with limited(time.monotonic() + time_limit):
        if objective is Objective.WELFARE:
            value = float(np.sum(result.values)) - lost
        elif game.potential_proof() is not None:
            value = float(game.potential(policy)) - lost
        else:
            raise GameError("this game is not known to have a potential; cmpg.check_potential says what is known.")
        multipliers = np.asarray(result.multipliers, dtype=np.float64)
        common = np.median(np.where(np.isfinite(multipliers), multipliers, 0.0), axis=0)
        gap = OptimalityGap(objective, value, upper_bound(game, objective, policy, common))
    return without_correlation(game, gap)


def _first_steps(game: DiscountedLocalGame, policy: JointPolicy, objective: Objective) -> tuple[Game, float]:
    """Return a game of the steps of a policy, what is added for later ones included, and what the policy may lose then.

    Potentials are counted from a policy to which as much is added, so that all that may differ later counts.
    """
    tail = game.tail(policy)
    lost = -tail.least_values if objective is Objective.WELFARE else tail.values
    return game.relaxed(policy.shapes[0][0]), math.fsum(lost.tolist())


def known_gaps(result: Result, *, time_limit: float = np.inf) -> list[OptimalityGap]:
    """Return how good a result is by welfare, and by its potential if the game is known to have one."""
    began = time.monotonic()
    gaps = [quality(result, time_limit=time_limit)]
    with suppress(GameError, OutOfTimeError):
        gaps.append(quality(result, Objective.POTENTIAL, time_limit=time_limit - (time.monotonic() - began)))
    return gaps


def without_correlation(game: Game, gap: OptimalityGap) -> OptimalityGap:
    """Return the gap of a policy by the smaller of its bound and that of branch and bound over mixed actions.

    A planner's bound holds for agents who correlate; where none knows another's action, one-shot games allow less.
    """
    from cmpg.equilibrium.branch_and_bound import best_product_policy, is_searchable  # on demand, as above

    joint, known = joint_or_none(game), gap.bound
    if known is None or gap.optimal or joint is None or not is_searchable(joint):
        return gap
    central = planner(joint, gap.objective)
    if central is None:
        return gap
    # What the planner maximises counts rounding against the policy, so its bound is one for the game as it is given.
    common = joint.with_rewards(np.stack([central.cmdp.reward.reshape(joint.rewards.shape[1:])] * joint.num_agents))
    tolerance = OPTIMAL / 2 * (abs(gap.value) + abs(known.value))
    pairs = math.comb(joint.num_agents, 2) * math.prod(joint.num_actions)
    with suppress(CMPGError), limited_by_size():
        found = best_product_policy(common, tolerance=tolerance, max_nodes=min(MAX_NODES, MAX_PAIRS // max(pairs, 1)))
        if found.upper < known.value:
            bound = UpperBound(found.upper, known.multipliers, "branch and bound over mixed actions")
            return replace(gap, bound=bound)
    return gap


def upper_bound(game: Game, objective: Objective, near: JointPolicy, multipliers: FloatArray) -> UpperBound | None:
    """Return what no feasible policy of a game in floats, and no public or private device, exceeds; None if unknown.

    Parameters
    ----------
    game
        Any game.
    objective
        What policies are compared by; a potential is counted as by `game.potential`.
    near
        A good feasible policy, near which a bound may be sought.
    multipliers : [k]
        A guess of common multipliers there.
    """
    try:
        central = planner(game, objective)
        return relaxed_bound(game, objective, near, multipliers) if central is None else planned_bound(central)
    except CMPGError:
        return None


def planned_bound(central: Planner | None) -> UpperBound | None:
    """Return what a planner's optimum proves of all feasible policies; None without a planner or a feasible plan."""
    from cmpg.cmdp.exact import proved_maximum  # on demand: pages import this module, and load no solver

    if central is None:
        return None
    try:
        value, multipliers = proved_maximum(central.cmdp)
    except InfeasibleError:
        return None
    return UpperBound(value, multipliers, central.description)
