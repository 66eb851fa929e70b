"""The search behind every exact solver: the best mixture of plans that meets the constraints.

What a solver can reach, seen as pairs (V^c, V^r), is a convex polytope whose vertices are plans, and planning for r −
λ·c finds the vertex that is extreme in that direction. How a plan is made does not matter here: a `Program` is
anything that can plan for a direction and mix plans, be it a CMDP or a CMDP whose transition is only known to lie in
a box.

With one constraint, only the edge of the upper-left frontier that crosses V^c = α matters: keep one end on each side
of α, plan for the slope of the line between them (or, at first, for a better guess), replace an end, stop when nothing
lies above the line. Mixing the ends so that the cost meets α is optimal, and the slope is the multiplier. With several
constraints the same vertices are columns of a small linear program (Dantzig-Wolfe decomposition), and its duals,
smoothed, are the next direction.

Computed costs are trusted to within a margin M. A mixture aims at α − 2M, which leaves room for code that evaluates the
answer in another order of sums. A single plan cannot be moved, and in games of few numbers its cost often is α to the
last bit: within M of α an oracle in exact arithmetic decides (`Accepts`), and if there is none the computed cost is
believed. Where the least cost is so close to α that nothing has room, costs up to the least plus M count as tied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import log10, sqrt
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.columns import LEAST_UNIT, MasterProgram
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.response import Aim, Mixture, cost_margins, infeasible, move_inside
from cmpg.deadline import check_time
from cmpg.errors import InfeasibleError, SolverError

if TYPE_CHECKING:
    from cmpg.cmdp.columns import MasterProgram

FLAT = 1e-13
"""A point lies above a line only if it does so by more than this, relative to the size of the numbers."""

MAX_PLANS = 10_000
"""Searches end after a few dozen plans; one that has made this many is not going to end."""

BESIDE, BEYOND = 0.1, 3.0
"""A guess closer to an end than this share of the bracket goes this many times as far."""

SMOOTHING = 0.5
"""How far from the master's multipliers, towards the best ones so far, the first smoothed plans are made."""

ENOUGH = 1e-3
"""A common slack of this many times the largest cost of a step leaves room for every repair."""


class Vertex(Protocol):
    """A plan: what it is worth, what it spends, what it does."""

    @property
    def value(self) -> float:
        """V^r."""

    @property
    def costs(self) -> FloatArray:
        """V^c: [k]."""

    def policy(self, num_actions: int) -> FloatArray:
        """Return the policy as a table [H, S, A]."""


VertexT = TypeVar("VertexT", bound=Vertex)
MixtureT = TypeVar("MixtureT", bound=Mixture, covariant=True)


class Program(Protocol[VertexT, MixtureT]):
    """Something that can be planned for, and whose plans can be mixed."""

    @property
    def num_actions(self) -> int:
        """A."""

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""

    @property
    def margins(self) -> FloatArray:
        """How far a computed cost can be from the true one: [k]."""

    @property
    def largest_costs(self) -> FloatArray:
        """The largest |c| of one step: [k]."""

    def plan(self, multipliers: FloatArray, *, reward_weight: float = 1.0) -> VertexT:
        """Maximise w·V^r − λ·V^c."""

    def mix(self, plans: Sequence[VertexT], *, weights: FloatArray, unvisited: FloatArray) -> MixtureT:
        """Return the policy with the plans' mean occupancy; rows that it never visits are those of `unvisited`."""

    def infeasible(self, multipliers: FloatArray, least: float) -> InfeasibleError:
        """Build the error that says that V^{λ·c} ≥ least > λ·α for every policy."""


@dataclass(frozen=True, eq=False)
class CMDPProgram(Generic[VertexT, MixtureT]):
    """A CMDP as the search sees it, given how to plan for a direction and how to mix plans."""

    cmdp: CMDP
    plan: Callable[..., VertexT]
    mix: Callable[..., MixtureT]

    @property
    def num_actions(self) -> int:
        """A."""
        return self.cmdp.num_actions

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""
        return self.cmdp.thresholds

    @cached_property
    def margins(self) -> FloatArray:
        """How far a computed cost can be from the true one: [k]."""
        return cost_margins(self.cmdp)

    @property
    def largest_costs(self) -> FloatArray:
        """The largest |c| of one step: [k]."""
        return self.cmdp.step_sizes[1:]

    def infeasible(self, multipliers: FloatArray, least: float) -> InfeasibleError:
        """Build the error that says that V^{λ·c} ≥ least > λ·α for every policy."""
        return infeasible(self.cmdp, multipliers, least)


@dataclass(frozen=True, eq=False)
class Found(Generic[MixtureT]):
    """The best mixture, the multipliers that prove it, and the number of plans that it took."""

    mixture: MixtureT
    multipliers: FloatArray  # [k]
    plans: int


Accepts = Callable[[VertexT], bool]
"""Whether a plan meets the thresholds exactly; called if its computed costs are within the margins of them."""


@np.errstate(over="ignore", invalid="ignore")  # what is beyond all floats ends the search, in words
def best_mixture(program: Program[VertexT, MixtureT], *, accepts: Accepts[VertexT] | None = None) -> Found[MixtureT]:
    """Return the best policy that meets the constraints, or raise InfeasibleError.

    Parameters
    ----------
    program
        What is planned for.
    accepts
        Decides about single plans if rounding could; unless given, the computed costs are believed.
    """
    if len(program.thresholds) == 0:
        best = program.plan(np.zeros(0))
        return Found(_alone(program, best), np.zeros(0), 1)
    if len(program.thresholds) > 1:
        return _column_generation(program, accepts)
    return _frontier_search(program, accepts)


def _alone(program: Program[VertexT, MixtureT], plan: VertexT) -> MixtureT:
    return program.mix([plan], weights=np.ones(1), unvisited=plan.policy(program.num_actions))


def _fits(program: Program[VertexT, MixtureT], plan: VertexT, *, accepts: Accepts[VertexT] | None) -> bool:
    """Whether a single plan meets the thresholds: by a margin, or by the word of the oracle, or as computed."""
    over = plan.costs - program.thresholds
    if (over <= -program.margins).all():
        return True
    if accepts is None:
        return bool((over <= 0).all())
    return bool((over <= program.margins).all()) and accepts(plan)


# --- One constraint: the edge of the frontier that crosses the threshold ----------------------------------------------


def _frontier_search(program: Program[VertexT, MixtureT], accepts: Accepts[VertexT] | None) -> Found[MixtureT]:
    threshold, margin = float(program.thresholds[0]), float(program.margins[0])
    fits: Callable[[VertexT], bool] = partial(_fits, program, accepts=accepts)
    right = program.plan(np.zeros(1))
    if fits(right):
        return Found(_alone(program, right), np.zeros(1), 1)
    left = program.plan(np.ones(1), reward_weight=0.0)
    least = float(left.costs[0])
    if least > threshold + margin:
        raise program.infeasible(np.ones(1), least)
    if least > threshold - margin and (accepts is None or not fits(left)):
        # Not even the cheapest plan fits beyond doubt: what cannot be distinguished from it has to do.
        fits = partial(_costs_at_most, most=max(threshold, least + margin))
    return _along_crossing_edge(program, _Bracket(left, right, np.inf, 0.0), fits=fits, plans=2)


def _costs_at_most(plan: Vertex, *, most: float) -> bool:
    return bool(plan.costs[0] <= most)


@dataclass(frozen=True, eq=False)
class _Bracket(Generic[VertexT]):
    """A plan that fits and one that does not, and the multipliers for which they are optimal."""

    left: VertexT
    right: VertexT
    left_multiplier: float  # infinite for a plan of least cost
    right_multiplier: float

    @property
    def slope(self) -> float:
        """By how much V^r rises for each unit of cost, from left to right."""
        return float((self.right.value - self.left.value) / (self.right.costs[0] - self.left.costs[0]))

    def height(self, middle: VertexT) -> float:
        """By how much a plan lies above the line through both, relative to the size of the numbers."""
        slope, left, right = self.slope, self.left, self.right
        above = middle.value - slope * middle.costs[0] - (left.value - slope * left.costs[0])
        size = max(abs(left.value), abs(right.value), slope * abs(left.costs[0]), slope * abs(right.costs[0]))
        return float(above / size) if size else float(above)

    def estimate(self, threshold: float) -> float | None:
        """Guess the multiplier whose plan costs as much as the threshold; None if there is no guess inside.

        The dual function d(λ) = max V^r − λ (V^c − α) is convex, with the slope α − V^c of the plan at λ. Where the
        frontier has many short edges it is all but smooth: a cubic through both values and slopes has its minimum near
        that of d. A guess beside one end would leave the other one far away: it goes beyond, and brackets from there.
        """
        low, high = self.right_multiplier, self.left_multiplier
        width = high - low
        falls, rises = threshold - float(self.right.costs[0]), threshold - float(self.left.costs[0])
        if not np.isfinite(width) or falls >= 0 or rises <= 0:
            return None
        # Both ends of d, from its values and slopes; then the minimum of the cubic (Nocedal and Wright, Eq. 3.59).
        rise = float(self.left.value) + high * rises - float(self.right.value) - low * falls
        middle = falls + rises - 3 * rise / width
        root = sqrt(middle * middle - falls * rises)
        guess = high - width * (rises + root - middle) / (rises - falls + 2 * root)
        if guess - low < BESIDE * width:
            guess = low + BEYOND * (guess - low)
        elif high - guess < BESIDE * width:
            guess = high - BEYOND * (high - guess)
        return guess if low < guess < high else None


@dataclass(frozen=True, eq=False)
class _Edge(Generic[VertexT]):
    """An edge of the frontier: V^r rises by `multiplier` for each unit of cost from left to right."""

    left: VertexT
    right: VertexT
    multiplier: float
    plans: int


def _along_crossing_edge(
    program: Program[VertexT, MixtureT], bracket: _Bracket[VertexT], *, fits: Callable[[VertexT], bool], plans: int
) -> Found[MixtureT]:
    """Find the edge of the frontier between a plan that fits and one that does not, and mix its ends."""
    unvisited = bracket.left.policy(program.num_actions)
    # The more there is to decide, the shorter the edges, and the more guesses before one of them fills the bracket.
    edge = _crossing_edge(program, bracket, fits=fits, guesses=int(log10(unvisited.size)))
    mixture = _mix_to_target(program, edge, unvisited=unvisited)
    return Found(mixture, np.array([edge.multiplier]), edge.plans + plans)


def _crossing_edge(
    program: Program[VertexT, MixtureT], bracket: _Bracket[VertexT], *, fits: Callable[[VertexT], bool], guesses: int
) -> _Edge[VertexT]:
    """Find the edge of the frontier whose left end fits and whose right end does not, given such a pair of points.

    The slope of the line between both finds a plan above that line, or proves that there is none; but it halves the
    bracket at best. So a few guesses come first.
    """
    for plans in range(MAX_PLANS):
        left, right = bracket.left, bracket.right
        # Spending more for nothing, or nothing more to spend: the left end alone is best, and its price is zero.
        if right.costs[0] <= left.costs[0] or right.value <= left.value:
            return _Edge(left, left, 0.0, plans)
        guess = bracket.estimate(float(program.thresholds[0])) if guesses else None
        multiplier = bracket.slope if guess is None else guess
        middle = program.plan(np.array([multiplier]))
        if guess is None and bracket.height(middle) <= FLAT:
            return _Edge(left, right, multiplier, plans + 1)
        fitting = fits(middle)
        end = left if fitting else right
        # A guess that finds an end again has come as close as guesses can.
        known = middle.value == end.value and middle.costs[0] == end.costs[0]
        guesses = 0 if known else guesses - (guess is not None)
        if fitting:
            bracket = _Bracket(middle, right, multiplier, bracket.right_multiplier)
        else:
            bracket = _Bracket(left, middle, bracket.left_multiplier, multiplier)
    raise SolverError(f"the frontier search did not end within {MAX_PLANS} plans.")


def _mix_to_target(program: Program[VertexT, MixtureT], edge: _Edge[VertexT], *, unvisited: FloatArray) -> MixtureT:
    """Mix the ends of the edge so that the cost meets α − 2M and, evaluated, is at most a margin above that."""
    target = float(program.thresholds[0] - 2 * program.margins[0])
    low, high = float(edge.left.costs[0]), float(edge.right.costs[0])
    if low >= target:
        return program.mix([edge.left], weights=np.ones(1), unvisited=unvisited)
    # Costs are linear along the edge: this weight meets the target but for rounding.
    weight = (target - low) / (high - low) if high > low else 0.0
    for _ in range(8):
        weights = np.array([1 - weight, weight])
        mixture = program.mix([edge.left, edge.right], weights=weights, unvisited=unvisited)
        excess = float(mixture.costs[0]) - target
        if excess <= program.margins[0] or weight <= 0:
            return mixture
        # The evaluated cost is linear in the weight but for rounding: twice the excess overshoots it, and ends here.
        weight = max(weight - 2 * excess / (high - low), 0.0)
    return program.mix([edge.left], weights=np.ones(1), unvisited=unvisited)


# --- Several constraints: Dantzig-Wolfe decomposition -----------------------------------------------------------------


def _column_generation(program: Program[VertexT, MixtureT], accepts: Accepts[VertexT] | None) -> Found[MixtureT]:
    """Find a common slack first, then the best value."""
    sizes = program.largest_costs
    units = np.where(sizes > LEAST_UNIT, sizes, 1.0)
    safe = widest_slack(program, enough=ENOUGH, units=units)
    _check_feasible(program, safe)
    # Where rounding alone puts the safe mixture above a threshold, the master has to be feasible all the same.
    met = np.maximum(program.thresholds, safe.costs)
    master = MasterProgram(safe.plans, met, units=units, margins=program.margins)
    free = program.plan(np.zeros(len(sizes)))
    master.add(free)
    guess = _common_slope(safe, free, program.thresholds)
    middle = program.plan(guess) if guess.any() else free
    master.add(middle)
    known = _Dual(guess, float(middle.value - guess @ (middle.costs - met)))
    dual, plans = _best_multipliers(program, master, known)
    multipliers, plans = dual.multipliers, plans + safe.made + 1 + bool(guess.any())
    alone = master.plans[int(master.weights.argmax())]
    if master.weights.max() > 1 - 1e-12 and _fits(program, alone, accepts=accepts):
        return Found(_alone(program, alone), multipliers, plans)
    # A mixture can be moved: solve once more for the targets inside the thresholds, with the columns at hand.
    aim = Aim.at(program.thresholds, program.margins, safe_costs=safe.costs)
    moved = float(dual.multipliers @ (aim.targets - master.thresholds))
    master.move_thresholds(aim.targets)
    dual, more = _best_multipliers(program, master, _Dual(dual.multipliers, dual.bound + moved))

    def mixture_at(share: float) -> MixtureT:
        weights = np.concatenate([(1 - share) * master.weights, share * safe.weights])
        return program.mix([*master.plans, *safe.plans], weights=weights, unvisited=safe.policy)

    return Found(move_inside(mixture_at, aim), dual.multipliers, plans + more)


@dataclass(frozen=True, eq=False)
class _Dual:
    """Multipliers, and what they prove that no mixture exceeds."""

    multipliers: FloatArray  # [k]
    bound: float


def _common_slope(safe: Slack[VertexT, MixtureT], free: VertexT, thresholds: FloatArray) -> FloatArray:
    """Guess multipliers from what is gained on the way from the safe mixture to the plan that is best without any.

    All that this plan spends too much is charged alike; the master would charge the one constraint that it meets first.
    The frontier is flat at that plan and steep at the safe one: its slope is taken to be that of a quarter of an
    ellipse, where it is t/√(1 − t²) times the slope of the chord after a share t of the way back.
    """
    over = np.maximum(free.costs - thresholds, 0.0)
    value = float(safe.weights @ np.array([each.value for each in safe.plans]))
    charged = float(over @ np.maximum(free.costs - safe.costs, 0.0))
    share = float(over @ over) / charged if charged > 0 else 0.0
    slope = max((free.value - value) / charged, 0.0) * share / sqrt(1 - share * share) if 0 < share < 1 else 0.0
    return slope * over if np.isfinite(slope * over).all() else np.zeros(len(over))


def _best_multipliers(
    program: Program[VertexT, MixtureT], master: MasterProgram[VertexT], known: _Dual
) -> tuple[_Dual, int]:
    """Add columns until none improves; return the multipliers of the least dual bound, and how many plans it took.

    The master's multipliers jump about while it knows few columns. So plans are made on the way to them, some share of
    it from those of the least dual bound so far (Wentges' smoothing). That share grows where the dual function rises
    ahead, and falls where it does not. A plan that does not help is followed by one at the master's own multipliers,
    and so are all plans after it: the optimum is among vertices that are known.
    """
    centre, least, share, plans = known.multipliers, known.bound, SMOOTHING, 0
    while plans < MAX_PLANS:
        multipliers = master.maximise_value()
        if master.reaches(least, multipliers):
            break
        for smoothed in (True, False) if share > 0 else (False,):
            tried = share * centre + (1 - share) * multipliers if smoothed else multipliers
            column = program.plan(tried)
            plans += 1
            excess = column.costs - master.thresholds
            # Weak duality at any λ ≥ 0: V^r − λ·(V^c − α) of the plan that maximises it bounds every feasible policy.
            bound = float(column.value - tried @ excess)
            if bound < least:
                centre, least = tried, bound
            if master.improves(column, multipliers) and master.add(column):
                if smoothed:
                    # α − V^c is a subgradient of the dual function at `tried`; its sign along the way says which side.
                    rises = excess @ (multipliers - tried) < 0
                    share = share + 0.1 * (1 - share) if rises else max(share - 0.1, 0.0)
                break
            if master.reaches(least, multipliers) or not smoothed:
                return _Dual(centre, least), plans
            share = 0.0
    return _Dual(centre, least), plans


def _check_feasible(program: Program[VertexT, MixtureT], safe: Slack[VertexT, MixtureT]) -> None:
    """Raise if the proof of infeasibility holds beyond rounding, or if rounding leaves the question open."""
    if safe.least > safe.multipliers @ (program.thresholds + program.margins):
        raise program.infeasible(safe.multipliers, safe.least)
    over = safe.costs - program.thresholds
    if (over > program.margins).any():
        raise SolverError(
            f"floating point cannot tell whether the constraints can be met: the best policy exceeds a threshold by "
            f"{float(over.max()):.3g}, and nothing proves that none does better. Raise the thresholds by that much."
        )


@dataclass(frozen=True, eq=False)
class Slack(Generic[VertexT, MixtureT]):
    """The mixture that keeps the worst constraint furthest below its threshold, and the proof that none does better."""

    mixture: MixtureT
    slack: float  # min_j (α_j − V^{c_j})
    multipliers: FloatArray  # [k], with λ·units = 1
    least: float  # the least V^{λ·c}; so nothing has more slack, in those units, than λ·α − least
    plans: tuple[VertexT, ...]
    weights: FloatArray  # of the plans in the mixture
    made: int  # plans that it took

    @property
    def policy(self) -> FloatArray:
        """The mixture as one policy: [H, S, A]."""
        return self.mixture.policy

    @property
    def costs(self) -> FloatArray:
        """V^c: [k]."""
        return self.mixture.costs


@np.errstate(over="ignore", invalid="ignore")  # what is beyond all floats ends the search, in words
def widest_slack(
    program: Program[VertexT, MixtureT], *, enough: float = np.inf, units: FloatArray | None = None
) -> Slack[VertexT, MixtureT]:
    """Maximise min_j (α_j − V^{c_j})/units_j over all mixtures, or stop as soon as it exceeds `enough`.

    Parameters
    ----------
    program
        What is planned for.
    enough
        A slack that will do.
    units : [k]
        In what each constraint's slack is measured: ones unless given.
    """
    thresholds = program.thresholds
    scale = np.ones(len(thresholds)) if units is None else units
    # The margins are what rounding does to a whole policy; the bound may be missed by less than that.
    tolerance = float((program.margins / scale).max()) / 4
    multipliers = 1.0 / scale / len(scale)  # λ·units = 1, as the master's are
    column = program.plan(multipliers, reward_weight=0.0)
    master = MasterProgram((column,), thresholds, units=scale, margins=program.margins)
    made = 1
    while made < MAX_PLANS:
        check_time()
        ahead, slack = master.maximise_slack()
        if slack > enough:
            break
        multipliers = ahead
        column = program.plan(multipliers, reward_weight=0.0)
        made += 1
        left = float(multipliers @ thresholds - multipliers @ column.costs)  # what nothing has more of
        # Costs beyond all floats cannot be weighed.
        if not np.isfinite(left) or left <= slack + tolerance or not master.add(column):
            break
    mixture = program.mix(master.plans, weights=master.weights, unvisited=column.policy(program.num_actions))
    achieved = float((thresholds - mixture.costs).min())
    least = float(multipliers @ column.costs)
    return Slack(mixture, achieved, multipliers, least, tuple(master.plans), master.weights, made)
