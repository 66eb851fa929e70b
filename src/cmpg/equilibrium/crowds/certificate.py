"""Certificates of crowds: what is proved about a policy by groups. No solver is imported here.

The claim is (crowd, groups, multipliers of each group), and `cmpg.proof.crowd` decides: one law for each resource and
step, one backward induction for each group. Gains are those of one member of a group by a deviation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, check_shape, numbers
from cmpg.errors import GameError, PolicyError
from cmpg.games.crowd.game import CrowdGame
from cmpg.games.crowd.policy import CrowdPolicy
from cmpg.games.game import Information, Names
from cmpg.proof.crowd import CrowdClaim, check_crowd
from cmpg.proof.verdict import Feasibility, decided
from cmpg.summaries import Summary, html, line, text

CROWD_KERNEL = "crowd kernel"
"""Who judged."""


@dataclass(frozen=True, eq=False)
class CrowdCertificate:
    """What has been proved about a policy of a crowd; gains and values are those of one member of each group.

    Examples
    --------
    >>> from cmpg.games import CrowdPolicy, LoadCurve, LocalAgent
    >>> kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = CrowdGame(kinds=[kind], numbers=[1000], curves=[LoadCurve([0, 1000], [0, 2.0])],
    ...                  delay=[[0]], load_costs=[], thresholds=[], horizon=1)
    >>> certificate = certify_crowd(game, CrowdPolicy([0], [1000], ([[[0.0, 1.0]]],)))
    >>> certificate.feasible, certificate.gains.round(3)
    (True, array([1.]))
    """

    feasibility: Feasibility
    gains: FloatArray  # [G]: the proven bound of what a member gains, allowance included
    values: FloatArray  # [G]
    bounds: FloatArray  # [G]: what a member could get at most
    costs: FloatArray  # [k]
    thresholds: FloatArray  # [k]
    multipliers: FloatArray  # [G, k]
    rounding: FloatArray  # [G]: how much of each gain is an allowance, for rounding and for cut tails
    cut: FloatArray  # [G]: how much of the allowance is for tails that were cut off the laws of loads, at most
    excess: FloatArray  # [k]: by how much each threshold may be exceeded at most; zero where it is proved to be met
    cost_rounding: FloatArray  # [k]: how much of each cost is an allowance
    kind: IntArray  # [G]
    number: IntArray  # [G]
    loads: FloatArray  # [H, E]: the mean of every load
    deviations: FloatArray  # [H, E]: and its standard deviation
    laws: int  # how many laws of loads were computed
    widest: int  # entries of the widest of them
    information: Information = Information.OWN_STATE
    arithmetic: str = "floating point"
    judged_by: str = CROWD_KERNEL
    names: Names = field(default_factory=Names)

    @property
    def epsilon(self) -> float:
        """No agent gains more than this by any deviation that keeps the constraints."""
        return float(self.gains.max())

    @property
    def feasible(self) -> bool:
        """Whether the policy is proved to meet every threshold."""
        return self.feasibility is Feasibility.PROVEN

    @property
    def allowance(self) -> float:
        """The largest allowance in a gain, for rounding and for cut tails."""
        return float(self.rounding.max())

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return self.thresholds - self.costs

    @property
    def welfare(self) -> float:
        """The sum of the values of all agents."""
        return float(self.number @ self.values)

    def proves(self, epsilon: float, *, allow_rounding: float = 0.0) -> bool:
        """Whether this proves an ε-Nash policy; with `allow_rounding`, one that may exceed thresholds by that much."""
        return (self.feasible or bool((self.excess <= allow_rounding).all())) and self.epsilon <= epsilon

    def summary(self) -> Summary:
        """Return what `print` shows: what is proved, groups and constraints."""
        from cmpg.report.crowds import crowd_certificate_summary  # a room below: tables are made on demand

        return crowd_certificate_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


def certify_crowd(game: CrowdGame, policy: CrowdPolicy, multipliers: Any = None) -> CrowdCertificate:
    """Check a policy of a crowd; see `cmpg.certify`.

    Parameters
    ----------
    game, policy
        A crowd, and its groups.
    multipliers : [G, k]
        λ of each group. If they are not given, the constrained best response of a member of each group proposes them.

    Examples
    --------
    >>> from cmpg.games import CrowdPolicy, LoadCurve
    >>> from cmpg.games import LocalAgent
    >>> kind = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = CrowdGame(kinds=[kind], numbers=[1000], curves=[LoadCurve([0, 1000], [0, 2.0])],
    ...                  delay=[[0]], load_costs=[], thresholds=[], horizon=1)
    >>> half = CrowdPolicy([0, 0], [500, 500], ([[[1.0, 0.0]]], [[[0.0, 1.0]]]))
    >>> certificate = certify_crowd(game, half)
    >>> certificate.feasible, certificate.epsilon < 1e-12, certificate.costs
    (True, True, array([], dtype=float64))
    """
    if not isinstance(game, CrowdGame):
        raise GameError(f"the game is a {type(game).__name__}; a CrowdGame is required, such as crowd_of(game).")
    if not isinstance(policy, CrowdPolicy):
        raise PolicyError(f"the policy is a {type(policy).__name__}; a CrowdPolicy is required for a crowd.")
    policy.check_fits(game)
    if multipliers is None and game.num_constraints:
        from cmpg.equilibrium.crowds.prices import own_multipliers  # a search, and its word is checked

        proposed = own_multipliers(game, policy)
        multipliers = np.where(np.isfinite(proposed), proposed, 0.0)  # no price is large enough: nothing is proved
    given = _multipliers(game, policy, multipliers)
    claim = CrowdClaim(
        tables=game.claim_tables(),
        horizon=game.horizon,
        thresholds=game.thresholds,
        kind=policy.kind,
        number=policy.number,
        policy=tuple(np.asarray(table, dtype=np.float64) for table in policy.plans),
        multipliers=given,
    )
    found = check_crowd(claim)
    with np.errstate(all="ignore"):  # what is not finite meets no threshold
        lower, upper = found.costs.lower, found.costs.upper
    open_ = [None] * game.num_constraints
    feasibility, excess = decided(game.thresholds, lower, upper, open_, lambda: None)
    return CrowdCertificate(
        feasibility=feasibility,
        gains=found.gains,
        values=found.values.mid,
        bounds=found.bounds,
        costs=found.costs.mid,
        thresholds=game.thresholds,
        multipliers=given,
        rounding=found.rounding,
        cut=found.cut,
        excess=excess,
        cost_rounding=found.costs.rad,
        kind=policy.kind,
        number=policy.number,
        loads=found.loads.mid,
        deviations=np.sqrt(np.maximum(found.variances.mid, 0.0)),
        laws=found.laws,
        widest=found.widest,
        names=game.names,
    )


def _multipliers(game: CrowdGame, policy: CrowdPolicy, multipliers: Any) -> FloatArray:
    """Return multipliers as an array [G, k] of finite numbers that are not negative."""
    shape = (policy.num_groups, game.num_constraints)
    if multipliers is None:
        return np.zeros(shape)
    given = np.asarray(numbers("multipliers", multipliers, error=PolicyError), dtype=np.float64)
    if given.size == 0 and 0 in shape:
        return np.zeros(shape)
    check_shape("multipliers", given.shape, shape, error=PolicyError)
    if (given < 0).any():
        raise PolicyError("multipliers has a negative entry; a multiplier is at least zero.")
    return given
