"""Lagrangian duality for constrained potential games (the paper's section 4): what it proves, and where it fails.

    L(π, λ) = Φ(π) + Σ_j λ_j (α_j − V^{c_j}(π)),   d(λ) = max_π L(π, λ),
    P* = max_π min_{λ ≥ 0} L(π, λ),   D* = min_{λ ≥ 0} d(λ).

π ranges over product policies. L(·, λ) is a potential of the game with rewards r_i − λ·c and no constraints
(Proposition 2; the proof in the paper has the signs of λ·c reversed, its statement is right).

Where Φ is the value V^φ of one stage reward φ (`potential_reward`), d is one joint dynamic program: some maximiser of
L(·, λ) over all joint policies is deterministic, so it splits into one policy per agent, and product policies lose
nothing. Therefore D* is the optimum of the joint CMDP, for which strong duality holds. P* can be less, because a
feasible mixture of joint actions need not be a product.

Guarantees: `DualValue.lower` ≤ D* ≤ `DualValue.upper`, by a feasible correlated policy and by d(λ*).
`PrimalBound.lower` ≤ P* ≤ `PrimalBound.upper`, by a feasible policy and by branch and bound, or by D* if the game
is too large for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, check_shape, first_index, numbers, place, to_floats
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import dual_bound
from cmpg.cmdp.response import BestResponse
from cmpg.equilibrium.branch_and_bound import (
    PrimalBound,
    after_best_responses,
    best_product_policy,
    is_searchable,
    least_value,
    meets_thresholds,
)
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.start import is_surely_feasible
from cmpg.errors import GameError, UnsupportedError
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame, joint_or_none
from cmpg.games.joint.planner import has_common_reward, joint_planner, marginals, with_common_reward
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line


def lagrangian(game: Game, policy: JointPolicy, multipliers: Any) -> float:
    """Return L(π, λ) = Φ(π) + Σ_j λ_j (α_j − V^{c_j}(π)).

    Φ is the common value if all agents have the same reward. Otherwise a potential is defined up to a constant, and
    Φ is `game.potential`, which is zero at `JointPolicy.reference`.

    Parameters
    ----------
    game
        Any game with a potential.
    policy
        One table per agent.
    multipliers : [k]
        λ ≥ 0.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> lagrangian(game, JointPolicy.uniform(game.policy_shapes), [1.0])
    3.0
    """
    checked = checked_multipliers(game, multipliers)
    position = game.at(policy)
    joint = joint_or_none(game)
    common = joint is not None and has_common_reward(joint)
    potential = position.values[0] if common else game.potential(policy)
    return float(potential + checked @ np.asarray(game.thresholds - position.costs, dtype=np.float64))


def penalised_game(game: JointGame, multipliers: Any) -> JointGame:
    """Return the game with rewards r_i − Σ_j λ_j c_j and no constraints, of which L(·, λ) is a potential (Prop. 2).

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> priced = penalised_game(game, [2.0])
    >>> priced.thresholds, priced.at(game.uniform_policy()).values
    (array([], dtype=float64), array([2.25, 2.25]))
    """
    game = with_planner(game)
    penalty = (
        np.tensordot(to_floats(checked_multipliers(game, multipliers)), game.costs, axes=1)
        if game.num_constraints
        else 0.0
    )
    return game.with_rewards(game.rewards - penalty).without_constraints()


def dual_function(game: JointGame, multipliers: Any) -> FloatArray:
    """Return d(λ) = max_π L(π, λ) for many λ at once.

    Parameters
    ----------
    game
        A joint game that has a `potential_reward`.
    multipliers : [m, k], or [m] for one constraint
        The points λ ≥ 0.

    Returns
    -------
    [m]

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> dual_function(counter_example(), [0.0, 1.0, 2.0])
    array([4. , 3.5, 4. ])
    """
    game = with_planner(game)
    grid = numbers("multipliers", multipliers)
    if grid.ndim == 1 and game.num_constraints == 1:
        grid = grid[:, None]
    check_shape("multipliers", grid.shape, (len(grid) if grid.ndim else 0, game.num_constraints))
    if (grid < 0).any():
        raise GameError(f"{place('multipliers', first_index(grid < 0), ('m', 'j'))} is negative; λ ≥ 0 is required.")
    cmdp = joint_planner(game)
    return np.array([float(dual_bound(cmdp, each)) for each in grid])


@dataclass(frozen=True, eq=False)
class DualValue:
    """lower ≤ D* ≤ upper; in joint games upper is d(λ*), and they differ by rounding.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> answer = dual_value(counter_example())
    >>> round(answer.upper, 6), answer.multipliers, answer.correlated.round(6)
    (3.5, array([1.]), array([[[0.5, 0. , 0. , 0.5]]]))
    """

    lower: float
    upper: float
    multipliers: FloatArray  # [k]: λ*
    correlated: FloatArray | None  # [H, S, ΠA]: the planner's policy, worth `lower`, perhaps no product; joint games

    __repr__ = fields_line

    @property
    def value(self) -> float:
        """D*."""
        return self.upper


def dual_value(game: JointGame) -> DualValue:
    """Return D* = min_{λ ≥ 0} d(λ), the optimum of the joint CMDP, with a λ* that attains it.

    Raises InfeasibleError if not even a correlated policy meets the constraints, for then D* is −∞.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> answer = dual_value(counter_example())
    >>> round(answer.value, 9), answer.multipliers
    (3.5, array([1.]))
    """
    return _value_of(Exact()(joint_planner(with_planner(game))))


def _value_of(planned: BestResponse) -> DualValue:
    value = float(planned.value)
    return DualValue(value, max(planned.bound, value), planned.multipliers, planned.policy)


def primal_value(
    game: JointGame,
    *,
    tolerance: float = 1e-6,
    max_nodes: int = 5000,
    restarts: int = 10,
    rng: np.random.Generator | None = None,
) -> PrimalBound:
    """Return P*, the potential of the best feasible policy, between a lower and an upper bound.

    One-shot games with up to 128 joint actions are searched by branch and bound, and the bounds meet to within
    `tolerance` unless `max_nodes` is too few. Elsewhere the lower bound is the best policy that ascent from the
    planner's policy and `restarts` runs of `solve` find, and the upper bound is D*.

    Parameters
    ----------
    game
        A joint game that has a `potential_reward`.
    tolerance
        How far apart the bounds should be.
    max_nodes
        Boxes that branch and bound may look at.
    restarts
        Runs of coordinate ascent if there is no branch and bound.
    rng
        For random starts; a generator with seed 0 unless given.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> round(primal_value(counter_example()).lower, 4), round(dual_value(counter_example()).upper, 4)
    (3.0858, 3.5)
    """
    game = with_planner(game)
    common = with_common_reward(game)
    planned = Exact()(joint_planner(common))
    dual = _value_of(planned)
    start = common.at(marginals(common, planned.policy))
    if common.num_agents > 1 and is_searchable(common):
        found = best_product_policy(common, tolerance=tolerance, max_nodes=max_nodes)
        return replace(found, upper=max(found.lower, min(found.upper, dual.upper)))
    if common.num_agents == 1:  # the planner is the agent; what is feasible up to rounding is not feasible
        feasible = [start] if is_surely_feasible(common, start.policy) else []
    else:
        candidates = [after_best_responses(start)]
        if not (meets_thresholds(candidates[0]) and candidates[0].current(0).value >= dual.upper - tolerance):
            generator = np.random.default_rng(0) if rng is None else rng
            runs = uninterrupted(solve(common, epsilon=tolerance, restarts=Restarts(restarts), rng=generator))
            candidates += [common.at(runs.policy)] if runs.incumbent is not None else []
        feasible = [candidate for candidate in candidates if meets_thresholds(candidate)]
    if not feasible:
        return PrimalBound(-np.inf, dual.upper, None, nodes=0)
    best = max(feasible, key=lambda candidate: float(candidate.current(0).value))
    return PrimalBound(least_value(common, best.policy), dual.upper, best.policy, nodes=0)


def with_planner(game: Game) -> JointGame:
    """Return a game whose dual function one dynamic program maximises, or raise, and name what there is instead."""
    joint = joint_or_none(game)
    if joint is None:
        advice = (
            "analyse_duality(game) brackets P* and D* of every form, and dual_function_bounds(game, multipliers) the "
            "dual function of local games; or build a joint game of a small one (cmpg.games.to_joint)."
        )
        raise UnsupportedError(type(game).__name__, "has no planner that maximises its Lagrangian exactly", advice)
    return joint


def checked_multipliers(game: Game, multipliers: Any) -> FloatArray:
    """Return multipliers [k], or raise unless there is one of at least zero for each constraint."""
    checked = numbers("multipliers", multipliers)
    check_shape("multipliers", checked.shape, (len(game.thresholds),))
    if (checked < 0).any():
        raise GameError(f"{place('multipliers', first_index(checked < 0), ('j',))} is negative; λ ≥ 0 is required.")
    return checked
