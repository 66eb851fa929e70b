"""Certificates: proofs that anybody can check, by backward induction alone. No solver is imported here.

A Nash claim is (game, policy, multipliers). For any λ_i ≥ 0, weak duality bounds what agent i could get by any
deviation that keeps the constraints, so
    gain_i ≤ λ_i·α + max_π V^{r_i − λ_i·c}(π, π_{−i}) − V^{r_i}(π_i, π_{−i}),
and the policy is an ε-Nash policy if it is feasible and every right-hand side is at most ε. The multipliers may come
from anywhere: bad ones make the bound loose, never wrong.

Where nothing is left of a budget, so that its price may have no bound, λ_ij = ∞ stands for another proof, by support:
what no feasible deviation of agent i can do is forbidden, and constraint j is left out (`cmpg.cmdp.support`). Where it
is not provable that nothing is left, such a multiplier proves nothing: the bound is infinite.

An infeasibility claim is (game, λ ≥ 0): if even one planner who chooses all actions pays V^{λ·c} > λ·α, no policy is
feasible. For one constraint such a λ always exists; for several, product policies may be infeasible where correlated
ones are not, and then there is none.

Rounding is part of the proof: floats are evaluated with a rigorous error bound, which is added to every gain. Where it
leaves open whether a threshold is met, exact arithmetic decides if little enough can happen under the policy;
otherwise the certificate says "up to rounding".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import BoolArray, FloatArray, check_shape, frozen, numbers, to_exact
from cmpg.cmdp.evaluation import cost_rounding, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound, plan
from cmpg.errors import GameError, PolicyError, UnsupportedError
from cmpg.faces import (
    MOST_ROWS,
    Cell,
    Face,
    Table,
    fields_line,
    fixed,
    html,
    largest,
    line,
    shown_of,
    significant,
    text,
)
from cmpg.games.contract import (
    CentralPlanner,
    ExactCosts,
    ExactForm,
    Game,
    HardBudgets,
    IndependentAgents,
    Information,
    JudgesAgents,
    Names,
    Position,
    in_floats,
)
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.cmdp.support import Restricted

MOST_PRICES = 3
"""The prices of more constraints than this do not fit on a line."""


class Feasibility(Enum):
    """Whether a policy meets the thresholds."""

    PROVEN = "meets every threshold"
    TO_ROUNDING = "meets every threshold up to rounding"
    VIOLATED = "violates a threshold"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What has been proved about a joint policy.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> certificate = certify(game, game.uniform_policy())
    >>> certificate.feasible, certificate.proves(1e-6), round(certificate.epsilon, 6)
    (True, False, 0.25)
    """

    feasibility: Feasibility
    epsilon: float  # no agent gains more than this by any deviation that keeps the constraints
    gains: FloatArray  # [n]: the proven bound of each agent's gain, rounding included
    values: FloatArray  # [n]
    bounds: FloatArray  # [n]: what each agent could get at most
    costs: FloatArray  # [k]
    thresholds: FloatArray  # [k]
    multipliers: FloatArray  # [n, k]; infinite where the proof is by support
    rounding: FloatArray  # [n]: how much of each gain is an allowance for rounding
    information: Information
    arithmetic: str  # "floating point", "exact"
    names: Names = field(default_factory=Names)

    @property
    def feasible(self) -> bool:
        """Whether the policy meets every threshold, at least up to rounding."""
        return self.feasibility is not Feasibility.VIOLATED

    @property
    def by_support(self) -> BoolArray:
        """Which proofs are by support instead of by a multiplier, per agent and constraint: [n, k]."""
        return np.isinf(self.multipliers)

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return self.thresholds - self.costs

    def proves(self, epsilon: float) -> bool:
        """Whether this proves an ε-Nash policy."""
        return self.feasible and self.epsilon <= epsilon

    def face(self) -> Face:
        """Return what to show: what is proved, agents with values, gains and prices, constraints with costs."""
        kind = f"({self.information}, {self.arithmetic} arithmetic)"
        if self.feasible:
            rest = f"; no agent gains more than {self.epsilon:.3g} by leaving"
        else:
            worst = int(np.argmin(self.slacks))
            over = f"{-self.slacks[worst]:.3g} more than {self.thresholds[worst]:.9g}"
            rest = f": {self.names.constraint(worst)} costs {self.costs[worst]:.9g}, {over}"
        told = f"the policy {self.feasibility.value}{rest} {kind}."
        return Face(self.feasibility.name, told, self.tables(), good=self.feasible)

    __repr__, __str__, _repr_html_ = line, text, html

    def tables(self, most: int | None = MOST_ROWS) -> tuple[str | Table, ...]:
        """Return agents and constraints as tables, each of at most so many rows."""
        total = [f"total value {self.values.sum():.6f}"] if len(self.values) > 1 else []
        return self.agents_table(most), *total, self.constraints_table(most) if len(self.costs) else "no constraints"

    def agents_table(self, most: int | None = MOST_ROWS) -> Table:
        """Return who gets what, could get at most, and pays which price for a unit of each threshold."""
        shown, num_prices = largest(self.gains, most), self.multipliers.shape[1]
        if most is not None:
            num_prices = min(num_prices, MOST_PRICES)
        prices = [f"price {j}" if most else f"price of {self.names.constraint(j)}" for j in range(num_prices)]
        prices = ["price"] if self.multipliers.shape[1] == 1 else prices
        rows: list[tuple[Cell, ...]] = []
        for i in shown:
            cells = (fixed(self.values[i]), fixed(self.bounds[i]), significant(self.gains[i], 2))
            rows.append((self.names.agent(i), *cells, *(_price(self.multipliers[i, j]) for j in range(num_prices))))
        note = shown_of(shown, len(self.gains), "agents with the largest gains; --json has all")
        return Table(("agent", "value", "could get", "gains at most", *prices), tuple(rows), note)

    def constraints_table(self, most: int | None = MOST_ROWS) -> Table:
        """Return what each constraint costs, and what is left below its threshold."""
        shown = largest(-self.slacks, most)
        rows: list[tuple[Cell, ...]] = []
        for j in shown:
            cells = (significant(self.costs[j], 9), significant(self.thresholds[j], 9), significant(self.slacks[j], 2))
            rows.append((self.names.constraint(j), *cells))
        note = shown_of(shown, len(self.costs), "constraints with the least slack; --json has all")
        return Table(("constraint", "cost", "threshold", "slack"), tuple(rows), note)


def _price(multiplier: float) -> Cell:
    """Show a multiplier; a proof by support has none."""
    return "support" if multiplier == np.inf else fixed(multiplier, 4)


def certify(game: Game, policy: JointPolicy, multipliers: Any = None, *, exact: bool = False) -> Certificate:
    """Check a joint policy: does it meet the constraints, and how much could an agent gain by leaving?

    Parameters
    ----------
    game
        Any game; with `exact`, one that can be read as rationals.
    policy
        One table per agent.
    multipliers : [n, k]
        The multipliers that prove the gains; zeros where they are not given, which is enough where no constraint binds.
        Infinity stands for a proof by support: nothing is left of that budget, and what would cost more is forbidden.
    exact
        Compute with rationals: then "feasible" means V^c ≤ α exactly, and rounding is zero.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> policy = JointPolicy.uniform(game.policy_shapes).replace(0, [[[1, 0]]]).replace(1, [[[1, 0]]])
    >>> certify(game, policy, [[0.0], [0.0]]).epsilon < 1e-12
    True
    """
    judged = _exact_game(game) if exact else game
    told = check_multipliers(game, multipliers)
    hard = np.asarray(told == np.inf)
    judging = np.where(hard, 0, told)
    if _is_exact(judged):
        judging = to_exact(judging)
    position = judged.at(policy)
    judged_at_once = position.judgements(judging) if isinstance(position, JudgesAgents) and not hard.all() else None
    if judged_at_once is not None:
        values, bounds, allowance = judged_at_once.values, judged_at_once.bounds.copy(), judged_at_once.rounding.copy()
        asked = np.flatnonzero(hard.any(axis=1)).tolist()
        for agent in asked:
            _, bounds[agent], allowance[agent] = judge_agent(position, agent, judging[agent], hard[agent])
    else:
        agents = range(game.num_agents)
        judged_agents = [judge_agent(position, agent, judging[agent], hard[agent]) for agent in agents]
        values, bounds, allowance = (np.array(column) for column in zip(*judged_agents, strict=True))
    gains = np.maximum(np.asarray(bounds - values, dtype=np.float64), 0.0) + allowance
    return Certificate(
        feasibility=_judge_feasibility(judged, position, policy, hard),
        epsilon=float(gains.max()),
        gains=gains,
        values=values.astype(np.float64),
        bounds=bounds.astype(np.float64),
        costs=np.asarray(position.costs, dtype=np.float64),
        thresholds=np.asarray(judged.thresholds, dtype=np.float64),
        multipliers=np.asarray(told, dtype=np.float64),
        rounding=allowance,
        information=game.information,
        arithmetic="exact" if _is_exact(judged) else "floating point",
        names=game.names,
    )


def judge_agent(
    position: Position, agent: int, multipliers: FloatArray, hard: BoolArray | None = None
) -> tuple[Any, Any, float]:
    """Return what one agent gets, what it could get at most, and how much rounding could hide in the difference.

    Parameters
    ----------
    position
        Where everybody stands.
    agent
        Who may leave.
    multipliers : [k]
        λ ≥ 0; of hard constraints they play no part.
    hard : [k]
        Constraints of which nothing is left: proofs by support.
    """
    cmdp = position.induced_cmdp(agent)
    present = evaluate(cmdp, position.policy[agent])
    if hard is not None and hard.any():
        within = restriction(position, agent, hard)
        if within is None:
            return present.value, np.inf, 0.0
        soft = multipliers[~hard]
        withheld = soft @ (present.costs + position.slacks - cmdp.thresholds)[~hard] if len(soft) else 0
        allowance = gain_rounding(cmdp, np.where(hard, 0, multipliers))
        allowance += float(2 * np.asarray(soft, dtype=np.float64) @ position.cost_rounding[~hard])
        return present.value, dual_bound(within.cmdp, soft) + withheld, allowance
    # A game may hand its agents a little less than is left, for rounding; a deviation may spend all that is left.
    withheld = multipliers @ (present.costs + position.slacks - cmdp.thresholds) if cmdp.num_constraints else 0
    allowance = gain_rounding(cmdp, multipliers)
    allowance += float(2 * np.asarray(multipliers, dtype=np.float64) @ position.cost_rounding)
    return present.value, dual_bound(cmdp, multipliers) + withheld, allowance


def restriction(position: Position, agent: int, hard: BoolArray) -> Restricted | None:
    """Return one agent's CMDP with actions forbidden in place of hard constraints [k]; None if those are not hard."""
    if not isinstance(position, HardBudgets):
        return None
    forbidden = [position.forbidden(agent, j) for j in np.flatnonzero(hard).tolist()]
    known = [each for each in forbidden if each is not None]
    if len(known) < len(forbidden):
        return None
    from cmpg.cmdp.support import restricted  # few budgets are hard

    return restricted(position.induced_cmdp(agent), known, hard)


def gain_rounding(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return how much rounding could hide in `dual_bound` minus `evaluate`, as a rigorous bound."""
    if cmdp.is_exact:
        return 0.0
    multipliers = np.asarray(multipliers, dtype=np.float64)
    return 2 * cmdp.rounding * float(cmdp.sizes[0] + multipliers @ (cmdp.sizes[1:] + np.abs(cmdp.thresholds)))


def check_multipliers(game: Game, multipliers: Any) -> FloatArray:
    """Return multipliers as an array [n, k] of non-negative numbers or infinities; zeros where none are given."""
    shape = (game.num_agents, len(game.thresholds))
    if multipliers is None:
        return np.zeros(shape)
    told = np.array(multipliers)
    hard = np.asarray(told == np.inf)
    given = numbers("multipliers", np.where(hard, 0, told) if hard.any() else multipliers, error=PolicyError)
    if given.size == 0 and 0 in shape:
        return np.zeros(shape)
    check_shape("multipliers", given.shape, shape, error=PolicyError)
    if (given < 0).any():
        raise PolicyError("multipliers has a negative entry; a multiplier is at least zero.")
    return frozen(np.where(hard, np.inf, given)) if hard.any() else given


def _judge_feasibility(game: Game, position: Position, policy: JointPolicy, hard: BoolArray) -> Feasibility:
    """Say whether the policy, as it was given, meets every threshold; the position may know a rounded one."""
    kept = [_kept_exactly(position, j, np.flatnonzero(hard[:, j]).tolist()) for j in range(len(game.thresholds))]
    if False in kept:
        return Feasibility.VIOLATED
    left = np.array([each is None for each in kept], dtype=bool)
    costs, thresholds, margins = position.costs[left], game.thresholds[left], position.cost_rounding[left]
    if np.all(costs + margins <= thresholds):
        return Feasibility.PROVEN
    if np.any(costs - margins > thresholds):
        return Feasibility.VIOLATED
    exact = position.exact_costs(policy) if isinstance(position, ExactCosts) and left.all() else None
    met = exact is not None and all(cost <= Fraction(limit) for cost, limit in zip(exact, thresholds, strict=True))
    return Feasibility.PROVEN if met else Feasibility.TO_ROUNDING


def _kept_exactly(position: Position, constraint: int, agents: Sequence[int]) -> bool | None:
    """Whether a hard budget is kept, from what is possible alone; None where nobody's proof is by support."""
    for agent in agents:
        forbidden = position.forbidden(agent, constraint) if isinstance(position, HardBudgets) else None
        if forbidden is not None:
            return not forbidden.taken_by(position.policy[agent], position.induced_cmdp(agent).initial)
    return None


def _is_exact(game: Any) -> bool:
    return isinstance(game, ExactForm) and game.is_exact


def _exact_game(game: Game) -> Game:
    if not isinstance(game, ExactForm):
        advice = "Leave `exact` out, and rounding is bounded instead."
        raise UnsupportedError(type(game).__name__, "has no exact mode", advice)
    if game.discount is not None:
        raise GameError("exact mode needs a finite horizon; leave `exact` out, and rounding is bounded instead.")
    converted: Game = game.exact()
    return converted


@dataclass(frozen=True, eq=False)
class InfeasibilityProof:
    """Weights on the constraints under which every joint policy spends more than it may."""

    multipliers: FloatArray  # [k]
    least_cost: float  # min over all joint policies of V^{λ·c}, rounding taken off
    limit: float  # λ·α
    names: Names = field(default_factory=Names)

    __repr__ = fields_line

    @property
    def told(self) -> str:
        """The proof in a sentence."""
        parts = [f"{weight:.6g} · {self.names.constraint(j)}" for j, weight in enumerate(self.multipliers) if weight]
        if len(self.multipliers) == 1:
            parts, limit = [self.names.constraint(0)], "the threshold is"
        else:
            limit = "their thresholds, weighted alike, add up to"
        verb = "costs" if len(parts) == 1 else "add up to"
        told = f"{' + '.join(parts)} {verb} at least {self.least_cost:.9g}, whatever the agents do"
        return f"proof: {told}; {limit} {self.limit:.9g}"

    @property
    def holds(self) -> bool:
        """Whether this is a proof."""
        return self.least_cost > self.limit


def prove_infeasible(game: Game, multipliers: Any) -> InfeasibilityProof:
    """Compute what a planner who chooses all actions pays at least for λ·c, to be compared with λ·α.

    Parameters
    ----------
    game
        A game in which the joint problem can be planned for.
    multipliers : [k]
        λ ≥ 0.
    """
    given = np.asarray(numbers("multipliers", multipliers), dtype=np.float64)
    check_shape("multipliers", given.shape, (len(game.thresholds),))
    if (given < 0).any():
        raise GameError("multipliers has a negative entry; only multipliers of at least zero can prove anything.")
    return least_spending(game, given).proof


@dataclass(frozen=True, eq=False)
class LeastSpending:
    """What a planner who chooses all actions pays at least for λ·c."""

    policy: JointPolicy | None  # that pays no more, where one planner chose it
    proof: InfeasibilityProof  # which may hold or not


def least_spending(game: Game, multipliers: FloatArray) -> LeastSpending:
    """Plan for λ·c alone: the cheapest policy is a start, and a proof of infeasibility where even it costs too much."""
    policy, least, allowance = _least_cost(game, multipliers)
    limit = float(multipliers @ np.asarray(game.thresholds, dtype=np.float64))
    least, limit = least - allowance - 4e-16 * abs(least), limit + 4e-16 * abs(limit)
    return LeastSpending(policy, InfeasibilityProof(multipliers, least, limit, game.names))


def _least_cost(game: Game, multipliers: FloatArray) -> tuple[JointPolicy | None, float, float]:
    """The least V^{λ·c} over all joint policies, a policy that attains it, and how much rounding could hide in it."""
    if isinstance(game, CentralPlanner):
        planner: Any = in_floats(game)
        cmdp = planner.joint_cmdp()
        cheapest = plan(cmdp, multipliers, reward_weight=0.0)
        policy, least = planner.split(cheapest.actions), float(multipliers @ cheapest.costs)
        if cmdp.discount is None:
            # Another policy may seem dearer than it is. Where costs have one sign, it seems so by a share of itself;
            # otherwise by a share of what can cancel, which is at most the sizes of the signed ones.
            return policy, least, 2 * float(multipliers @ cost_rounding(cmdp, cheapest.costs))
        # Policy iteration ends where nothing improves by more than rounding; the bound has the residual in it.
        spending = replace(cmdp, reward=np.zeros_like(cmdp.reward), trusted=True)
        least = min(least, float(multipliers @ cmdp.thresholds - dual_bound(spending, multipliers)))
        return policy, least, gain_rounding(spending, multipliers)
    alone = game.private_cmdps() if isinstance(game, IndependentAgents) else None
    if alone is None:
        advice = "Its infeasibility cannot be proved; search for a feasible start instead."
        raise UnsupportedError(type(game).__name__, "cannot be planned for centrally", advice)
    plans = [plan(cmdp, multipliers, reward_weight=0.0) for cmdp in alone]
    least = float(sum(multipliers @ each.costs for each in plans))
    allowance = sum(float(multipliers @ (cmdp.rounding * cmdp.sizes[1:])) for cmdp in alone)
    return None, least, allowance
