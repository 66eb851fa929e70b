"""What the duality gap is worth, in any game with a potential: P*, the best Nash policy known, rotas and D*.

    P* = the greatest potential of a feasible policy,    D* = min_{λ ≥ 0} d(λ),    d(λ) = max_π Φ(π) + λ·(α − V^c(π)).

A feasible policy bounds P* from below. A rota that keeps the budget on average bounds D* from below, for it is a law of
policies, and Σ_m w_m Φ(π^m) ≤ d(λ) for every λ ≥ 0. From above D* is bounded by d at any λ, or by what bounds that: a
planner's dynamic program in joint and counting games, agents who plan alone at common prices in local ones, and a
planner who sees all states in small local ones, whose own-state policies are among its own. So D* − P* is what a public
coin is worth at most.

The dual function of a local game is that of a local game without constraints: λ·E g(N) = Σ_{m ≤ N} λ·(g(m) − g(m − 1))
is Rosenthal's potential of a delay, so that Φ − λ·V^c is the potential of the game with delays
d(m) + λ·(g(m) − g(m − 1)) and private rewards r − λ·c (`penalised_local_game`; Proposition 2 of the paper).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, numbers, to_floats
from cmpg.duality.dual_function import checked_multipliers, primal_value
from cmpg.equilibrium.branch_and_bound import is_searchable
from cmpg.equilibrium.quality import upper_bound
from cmpg.equilibrium.recommendations.quality import average_potential
from cmpg.equilibrium.recommendations.recommend import check_applies, recommend
from cmpg.equilibrium.runs import Restarts, by_potential
from cmpg.equilibrium.solve import solve
from cmpg.errors import GameError, InfeasibleError, explains_keywords
from cmpg.games.devices import Concept
from cmpg.games.game import Game, Objective
from cmpg.games.joint.game import JointGame, joint_or_none
from cmpg.games.joint.planner import has_common_reward
from cmpg.games.local.game import LocalGame
from cmpg.games.local.to_joint import to_joint_with_potential
from cmpg.policy import JointPolicy
from cmpg.summaries import Cell, Summary, Table, at_least, at_most, fixed, html, line, text

MAX_ENTRIES = 20_000_000
"""A local game gets tables over joint states for a bound if they have at most this many entries over all steps and
agents.
"""


@dataclass(frozen=True, eq=False)
class DualityGap:
    """P* and D* between what is attained and what is proved; potentials are common values where the reward is common.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> gap = duality_gap(counter_example())
    >>> round(gap.rota, 6), round(gap.dual_upper, 6), round(gap.least, 3)
    (3.5, 3.5, 0.414)
    """

    nash: float  # the potential of the best Nash policy that is known
    primal_lower: float  # of the best feasible policy that is known
    primal_upper: float  # no feasible policy has more
    rota: float  # the potential of a certified rota, on average
    correlated: float | None  # of the certified correlated policy; None where there is none
    dual_upper: float  # D* is at most this
    multipliers: FloatArray  # [k]: the common price of the rota's modes
    policy: JointPolicy  # feasible, and worth `primal_lower`

    @property
    def dual_lower(self) -> float:
        """D* is at least this: what a rota attains, or a policy."""
        return max(self.rota, self.primal_lower)

    @property
    def least(self) -> float:
        """D* − P* is at least this."""
        return max(self.dual_lower - self.primal_upper, 0.0)

    @property
    def greatest(self) -> float:
        """D* − P* is at most this."""
        return max(self.dual_upper - self.primal_lower, 0.0)

    def summary(self) -> Summary:
        """Return what to show: the four values, and the gap."""
        rows: list[tuple[Cell, ...]] = [("P*, the best policy", fixed(self.primal_lower), fixed(self.primal_upper))]
        rows.append(("the best Nash policy known", fixed(self.nash), ""))
        if self.correlated is not None:
            rows.append(("a correlated device", fixed(self.correlated), fixed(self.dual_upper)))
        rows += [
            ("a rota", fixed(self.rota), fixed(self.dual_upper)),
            ("D*, the least dual value", fixed(self.dual_lower), fixed(self.dual_upper)),
            ("D* − P*", fixed(self.least), fixed(self.greatest)),
        ]
        table = Table(("potential", "at least", "at most"), tuple(rows))
        sentence = f"a public coin is worth between {at_least(self.least, 6)} and {at_most(self.greatest, 6)}"
        return Summary("duality gap", sentence, (table,))

    __repr__, __str__, _repr_html_ = line, text, html


@explains_keywords()
def duality_gap(
    game: Game, *, epsilon: float = 1e-6, restarts: int = 10, rng: np.random.Generator | int = 0
) -> DualityGap:
    """Bracket P* and D* of any game that is known to have a potential, with certified ends.

    Parameters
    ----------
    game
        With a potential, and constraints that bind all agents, or that those they do not bind cannot change.
    epsilon
        No agent gains more than this from the Nash policy and the devices.
    restarts
        Runs of `solve`, whose best ending by potential counts.
    rng
        For the restarts: a generator, or the seed of one.

    Raises
    ------
    GameError
        No potential is known.
    InfeasibleError
        No policy that meets the thresholds was found.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> gap = duality_gap(counter_example(), restarts=2)
    >>> round(gap.least, 3)
    0.414
    """
    check_applies(game, Concept.ROTA)
    ended = solve(game, epsilon=epsilon, restarts=Restarts(restarts, prefer=by_potential), rng=rng)
    found = recommend(game, epsilon=epsilon, rng=rng)
    if found.device is None or not found.certified or not ended.certified:
        raise InfeasibleError(f"there is no certified rota and Nash policy to compare: {found.message} {ended.message}")
    joint, correlated = joint_or_none(game), None
    # Potentials are counted from the reference, or are common values.
    zero = 0.0 if joint is None or not has_common_reward(joint) else joint.reference_value
    if joint is not None:
        planned = recommend(game, Concept.CORRELATED, epsilon=epsilon)
        correlated = average_potential(game, planned.device) if planned.certified and planned.device else None
    common = found.multipliers.max(axis=0, initial=0.0)
    bound = upper_bound(game, Objective.POTENTIAL, ended.policy.floats(), common)
    if bound is None:
        raise GameError("no upper bound on the potential is known for this form of game.")
    policy = ended.policy.floats()
    shift = zero - _potential_rounding(game, policy)  # of what is attained, so that it is attained for certain
    nash, rota = float(game.potential(policy)) + shift, average_potential(game, found.device) + shift
    upper = bound.value + zero
    lower, most = nash, upper
    tables = _small_tables(game) if joint is None else joint
    if joint is None and tables is not None:
        central = upper_bound(tables, Objective.POTENTIAL, policy, common)
        upper = upper if central is None else min(upper, central.value)
    if tables is not None and (joint is not None or is_searchable(tables)):
        primal = primal_value(tables, rng=np.random.default_rng(rng))
        origin = zero - tables.reference_value if has_common_reward(tables) else zero
        most = min(most, primal.upper + origin)
        if primal.policy is not None and primal.lower + origin > lower:
            lower, policy = float(game.potential(primal.policy)) + shift, primal.policy
    correlated = None if correlated is None else correlated + shift
    upper = max(upper, rota, lower)
    return DualityGap(nash, lower, max(min(most, upper), lower), rota, correlated, upper, common, policy)


def _potential_rounding(game: Game, policy: JointPolicy) -> float:
    """Return what rounding can do to a potential: differences of two values for each agent, and as much for sums.

    No payoff, at whatever load, is larger than those that an agent sees at the policy by more than its range.
    """
    position = game.at(policy)
    cmdps = [position.induced_cmdp(agent) for agent in range(game.num_agents)]
    sizes = [cmdp.rounding * float(cmdp.rounding_sizes[0]) for cmdp in cmdps]
    ranges = [cmdp.rounding * float(each) for cmdp, each in zip(cmdps, game.reward_ranges, strict=True)]
    return 4 * (sum(sizes) + sum(ranges))


def _small_tables(game: Game) -> JointGame | None:
    """Return a small local game with a planner of its potential; None for a large one, and for other forms."""
    if not isinstance(game, LocalGame):
        return None
    sizes = [agent.num_states**2 * agent.num_actions for agent in game.agents]
    entries = game.num_agents * math.prod(sizes) * game.horizon  # of the rewards, and more than those of the transition
    return to_joint_with_potential(game) if entries <= MAX_ENTRIES else None


def penalised_local_game(game: LocalGame, multipliers: Any) -> LocalGame:
    """Return the local game without constraints whose potential is Φ − λ·V^c, up to a constant (Proposition 2).

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> game = grid_world_local()
    >>> priced, policy = penalised_local_game(game, [2.0]), game.random_policy(rng=np.random.default_rng(1))
    >>> spent = game.at(policy).costs - game.at(JointPolicy.reference(game.policy_shapes)).costs
    >>> bool(np.isclose(priced.potential(policy), game.potential(policy) - 2.0 * spent[0]))
    True
    """
    prices = to_floats(checked_multipliers(game, multipliers))
    charge = np.tensordot(prices, np.diff(game.load_costs, axis=-1), axes=1)  # of the m-th user
    steps = max(len(game.delay), len(charge))
    delay = np.broadcast_to(game.delay, (steps, *game.delay.shape[1:])).copy()
    delay[..., 1:] += charge
    agents = []
    for agent in game.agents:
        reward = agent.reward
        if agent.costs is not None:
            reward = reward - np.tensordot(prices, agent.costs, axes=1)
        agents.append(replace(agent, reward=reward, costs=None))
    empty = np.zeros((0, 1, *game.load_costs.shape[2:]))
    return game.with_delay(delay).with_constraints(empty, np.zeros(0), (), agents=agents)


def dual_function_bounds(game: LocalGame, multipliers: Any, *, epsilon: float = 1e-6) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on d(λ) of a local game, for many λ: [m] each.

    From below by where best responses end in the penalised game, from above by agents who plan alone at common prices.
    The potential is counted from `JointPolicy.reference`.

    Parameters
    ----------
    game
        A local game.
    multipliers : [m, k], or [m] for one constraint
        The points λ ≥ 0.
    epsilon
        How precisely the penalised games are solved.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> low, high = dual_function_bounds(grid_world_local(), [0.0, 1.0])
    >>> bool((low <= high).all())
    True
    """
    grid = numbers("multipliers", multipliers)
    grid = grid[:, None] if grid.ndim == 1 and len(game.thresholds) == 1 else grid
    reference = game.at(JointPolicy.reference(game.policy_shapes)).costs
    lower, upper = [], []
    for each in grid:
        priced = penalised_local_game(game, each)
        rest = solve(priced, epsilon=epsilon)
        shift = float(each @ (game.thresholds - reference))
        low = float(priced.potential(rest.policy)) + shift
        bound = upper_bound(priced, Objective.POTENTIAL, rest.policy, np.zeros(0))
        lower.append(low)
        upper.append(np.inf if bound is None else max(bound.value + shift, low))
    return np.array(lower), np.array(upper)
