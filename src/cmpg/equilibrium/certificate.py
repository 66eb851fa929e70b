"""Certificates: proofs that anybody can check, by backward induction alone. No solver is imported here.

A Nash claim is (game, policy, multipliers). For any λ_i ≥ 0, weak duality bounds what agent i could get by any
deviation that keeps the constraints, so
    gain_i ≤ λ_i·α + max_π V^{r_i − λ_i·c}(π, π_{−i}) − V^{r_i}(π_i, π_{−i}),
and the policy is an ε-Nash policy if it is feasible and every right-hand side is at most ε. The multipliers may come
from anywhere: bad ones make the bound loose, never wrong.

Where nothing is left of a budget, so that its price may have no bound, λ_ij = ∞ stands for another proof, by support:
what no feasible deviation of agent i can do is forbidden, and constraint j is left out (`cmpg.cmdp.support`). Where it
is not provable that nothing is left, such a multiplier proves nothing: the bound is infinite.

Rounding is part of the proof: floats are evaluated with a rigorous error bound, which is added to every gain. Where it
leaves open whether a threshold is met, exact arithmetic decides if little enough can happen under the policy. What is
left open even then is not proved: the certificate says by how much a threshold may be exceeded, and whoever accepts
that says so (`allow_rounding`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import BoolArray, FloatArray, check_shape, counted_rescaling, frozen, numbers, to_exact
from cmpg.cmdp.evaluation import Underflow, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound
from cmpg.errors import GameError, PolicyError
from cmpg.faces import (
    MOST_ROWS,
    Cell,
    Face,
    Table,
    counted,
    fixed,
    html,
    largest,
    line,
    shown_of,
    significant,
    text,
)
from cmpg.games.contract import (
    Game,
    Information,
    Names,
    Position,
    agent_bounds,
    binds_of,
    exact_costs,
    forbidden,
    in_rationals,
    is_exact,
)
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.cmdp.support import Restricted

MOST_PRICES = 3
"""The prices of more constraints than this do not fit on a line."""


LARGEST = Fraction(np.finfo(np.float64).max)
SMALLEST = float(np.nextafter(0.0, 1.0))


class Feasibility(Enum):
    """Whether a policy meets the thresholds: proved, refuted, or too close to tell."""

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
    excess: FloatArray  # [k]: by how much each threshold may be exceeded at most; zero where it is proved to be met
    information: Information
    arithmetic: str  # "floating point", "exact"
    names: Names = field(default_factory=Names)
    rescaled: int = 0  # rows of probabilities that exact arithmetic divided by their sums, which were not exactly one
    binds: BoolArray | None = None  # [n, k]: where constraints bind some agents only

    @property
    def feasible(self) -> bool:
        """Whether the policy is proved to meet every threshold."""
        return self.feasibility is Feasibility.PROVEN

    def meets(self, allow_rounding: float) -> bool:
        """Whether no threshold can be exceeded by more than this."""
        return self.feasible or bool((self.excess <= allow_rounding).all())

    @property
    def by_support(self) -> BoolArray:
        """Which proofs are by support instead of by a multiplier, per agent and constraint: [n, k]."""
        return np.isinf(self.multipliers)

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return self.thresholds - self.costs

    def proves(self, epsilon: float, *, allow_rounding: float = 0.0) -> bool:
        """Whether this proves an ε-Nash policy; with `allow_rounding`, one that may exceed thresholds by that much."""
        return self.meets(allow_rounding) and self.epsilon <= epsilon

    def face(self) -> Face:
        """Return what to show: what is proved, agents with values, gains and prices, constraints with costs."""
        kind = f"({self.information}, {self.arithmetic} arithmetic{self.told_rescaling})"
        rest = "" if self.feasible else f": {self.told_excess}"
        if self.feasibility is not Feasibility.VIOLATED:
            rest += f"; no agent gains more than {self.epsilon:.3g} by leaving"
        told = f"the policy {self.feasibility.value}{rest} {kind}."
        return Face(self.feasibility.name, told, self.tables(), good=self.feasible)

    @property
    def told_rescaling(self) -> str:
        """How many rows were not read as they stand."""
        return f"; {counted(self.rescaled, 'row')} of probabilities divided by their sums" if self.rescaled else ""

    @property
    def told_feasibility(self) -> str:
        """Whether the thresholds are met, in a sentence."""
        return f"The policy {self.feasibility.value}" + ("" if self.feasible else f": {self.told_excess}")

    @property
    def told_excess(self) -> str:
        """What the constraint costs that is exceeded most, or may be."""
        worst = int(np.argmax(self.excess))
        over = f"{self.excess[worst]:.3g} more than {self.thresholds[worst]:.9g}"
        if self.feasibility is Feasibility.VIOLATED:
            return f"{self.names.constraint(worst)} costs {self.costs[worst]:.9g}, {over}"
        return f"{self.names.constraint(worst)} may cost up to {over}"

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
            rows.append((self.names.agent(i), *cells, *(self._price(i, j) for j in range(num_prices))))
        note = shown_of(shown, len(self.gains), "agents with the largest gains; --json has all")
        return Table(("agent", "value", "could get", "gains at most", *prices), tuple(rows), note)

    def _price(self, agent: int, constraint: int) -> Cell:
        """Show a multiplier; a proof by support has none, nor has a constraint that does not bind the agent."""
        if self.binds is not None and not self.binds[agent, constraint]:
            return "not bound"
        multiplier = float(self.multipliers[agent, constraint])
        return "support" if multiplier == np.inf else fixed(multiplier, 4)

    def constraints_table(self, most: int | None = MOST_ROWS) -> Table:
        """Return what each constraint costs, and what is left below its threshold."""
        shown = largest(-self.slacks, most)
        rows: list[tuple[Cell, ...]] = []
        for j in shown:
            cells = (significant(self.costs[j], 9), significant(self.thresholds[j], 9), significant(self.slacks[j], 2))
            rows.append((self.names.constraint(j), *cells))
        note = shown_of(shown, len(self.costs), "constraints with the least slack; --json has all")
        return Table(("constraint", "cost", "threshold", "slack"), tuple(rows), note)


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
    with counted_rescaling() as rescaling:
        judged = _exact_game(game) if exact else game
        position = judged.at(policy)
    told = check_multipliers(game, multipliers)
    hard = np.asarray(told == np.inf)
    judging = np.where(hard, 0, told)
    if is_exact(judged):
        judging = to_exact(judging)
    # What is beyond all floats is no number, and no number proves nothing: there is no need to warn of it.
    with np.errstate(over="ignore", invalid="ignore"):
        return replace(_certified(judged, position, policy, judging, hard), rescaled=rescaling.rows)


def _certified(
    game: Game, position: Position, policy: JointPolicy, judging: FloatArray, hard: BoolArray
) -> Certificate:
    """Judge every agent, and the thresholds, in the arithmetic of the game."""
    judged_at_once = None if hard.all() else agent_bounds(position, judging)
    if judged_at_once is not None:
        values, bounds, allowance = judged_at_once.values, judged_at_once.bounds.copy(), judged_at_once.rounding.copy()
        asked = np.flatnonzero(hard.any(axis=1)).tolist()
        for agent in asked:
            _, bounds[agent], allowance[agent] = judge_agent(position, agent, judging[agent], hard[agent])
    else:
        agents = range(game.num_agents)
        judged_agents = [judge_agent(position, agent, judging[agent], hard[agent]) for agent in agents]
        values, bounds, allowance = (np.array(column) for column in zip(*judged_agents, strict=True))
    hidden = position.underflow()
    if hidden is not None:
        allowance = allowance + 4 * (hidden.rewards + np.asarray(judging, dtype=np.float64) @ hidden.costs)
    gains = np.maximum(np.asarray(bounds - values, dtype=np.float64), 0.0) + allowance
    gains = np.where(np.isnan(gains), np.inf, gains)
    feasibility, excess = _judge_feasibility(game.thresholds, position, policy, hard, hidden)
    return Certificate(
        feasibility=feasibility,
        epsilon=float(gains.max()),
        gains=gains,
        values=values.astype(np.float64),
        bounds=bounds.astype(np.float64),
        costs=np.asarray(position.costs, dtype=np.float64),
        thresholds=np.asarray(game.thresholds, dtype=np.float64),
        multipliers=np.where(hard, np.inf, np.asarray(judging, dtype=np.float64)),
        rounding=allowance,
        excess=excess,
        information=game.information,
        arithmetic="exact" if is_exact(game) else "floating point",
        names=game.names,
        binds=None if binds_of(game).all() else binds_of(game),
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
    found = [forbidden(position, agent, j) for j in np.flatnonzero(hard).tolist()]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    from cmpg.cmdp.support import restricted  # few budgets are hard

    return restricted(position.induced_cmdp(agent), known, hard)


def certificate_seconds(position: Position, num_agents: int) -> float:
    """Return about how long the certificate at the end will take: a bound for every agent, of which one is timed."""
    began = time.monotonic()
    cmdp = position.induced_cmdp(0)
    dual_bound(cmdp, np.zeros(cmdp.num_constraints))
    return 1.5 * num_agents * (time.monotonic() - began)


def gain_rounding(cmdp: CMDP, multipliers: FloatArray) -> float:
    """Return how much rounding could hide in `dual_bound` minus `evaluate`, as a rigorous bound."""
    if cmdp.is_exact:
        return 0.0
    multipliers = np.asarray(multipliers, dtype=np.float64)
    sizes = cmdp.rounding_sizes
    return 2 * cmdp.rounding * float(sizes[0] + multipliers @ (sizes[1:] + np.abs(cmdp.thresholds)))


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
    if (free := ((given != 0) | hard) & ~binds_of(game)).any():
        i, j = (int(place[0]) for place in np.nonzero(free))
        raise PolicyError(f"multipliers[{i}, {j}] is not zero; constraint {j} does not bind agent {i}.")
    return frozen(np.where(hard, np.inf, given)) if hard.any() else given


def _judge_feasibility(
    thresholds: FloatArray, position: Position, policy: JointPolicy, hard: BoolArray, hidden: Underflow | None
) -> tuple[Feasibility, FloatArray]:
    """Say whether the policy, as it was given, meets every threshold, and by how much it may exceed each.

    The position may know a rounded policy: rationals are read from the one that was given.
    """
    costs = position.costs
    margins = position.cost_rounding if hidden is None else position.cost_rounding + hidden.costs
    # What the support of the policy decides has no rounding in it.
    kept = [_kept_exactly(position, j, np.flatnonzero(hard[:, j]).tolist()) for j in range(len(thresholds))]
    certain = np.array([each is True for each in kept], dtype=bool)
    most = costs + margins
    excess = np.where(certain, 0.0, _rounded_up(most - thresholds))
    broken = np.array([each is False for each in kept], dtype=bool)
    if broken.any():  # however little: it may be too little for a float
        return Feasibility.VIOLATED, np.where(broken, np.maximum(excess, SMALLEST), excess)
    if not excess.any():
        return Feasibility.PROVEN, excess
    if np.any((costs - margins > thresholds) & ~certain):
        return Feasibility.VIOLATED, excess
    exact = exact_costs(position, policy)
    if exact is not None:
        limits = [Fraction(limit) for limit in thresholds]
        excess = _rounded_up([most - limit for (_, most), limit in zip(exact, limits, strict=True)])
        if not excess.any():
            return Feasibility.PROVEN, excess
    finite = np.isfinite(np.asarray(most, dtype=np.float64)).all()
    return Feasibility.TO_ROUNDING if finite else Feasibility.VIOLATED, excess


def _rounded_up(excess: Any) -> FloatArray:
    """Return what is above zero as floats that are no smaller; infinity for what is no number, or beyond all floats."""
    exceeded = np.array([not each <= 0 for each in excess], dtype=bool)
    nearest = np.array([float(max(min(each, LARGEST), 0)) if each == each else np.inf for each in excess])
    return np.where(exceeded, np.nextafter(nearest, np.inf), 0.0)


def _kept_exactly(position: Position, constraint: int, agents: Sequence[int]) -> bool | None:
    """Whether a hard budget is kept, from what is possible alone; None where nobody's proof is by support."""
    for agent in agents:
        found = forbidden(position, agent, constraint)
        if found is not None:
            return not found.taken_by(position.policy[agent], position.induced_cmdp(agent).initial)
    return None


def _exact_game(game: Game) -> Game:
    if game.discount is not None:
        raise GameError("exact mode needs a finite horizon; leave `exact` out, and rounding is bounded instead.")
    return in_rationals(game)


def proved_text(certificate: Certificate) -> str:
    """Say in a sentence what a certificate of a Nash policy proves."""
    kind = f"{certificate.information}{', exact arithmetic' if certificate.arithmetic == 'exact' else ''}"
    kind += certificate.told_rescaling
    return f"feasible, and no agent gains more than {certificate.epsilon:.3g} by leaving ({kind})."


def rounded_text(certificate: Certificate) -> str:
    """Say in a sentence what is proved of a policy that meets a threshold up to rounding, and what is not."""
    proved = f"no agent gains more than {certificate.epsilon:.3g} by leaving ({certificate.information})"
    return f"{proved}, but thresholds are met up to rounding alone: {certificate.told_excess}."
