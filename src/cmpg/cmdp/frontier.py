"""The search behind every exact solver: the best mixture of plans that meets the constraints.

What a solver can reach, seen as pairs (V^c, V^r), is a convex polytope whose vertices are plans, and planning for r −
λ·c finds the vertex that is extreme in that direction. How a plan is made does not matter here: a `Program` is
anything that can plan for a direction and mix plans, be it a CMDP or a CMDP whose transition is only known to lie in
a box.

With one constraint, only the edge of the upper-left frontier that crosses V^c = α matters: keep one end on each side
of α, plan for the slope of the line between them, replace an end, stop when nothing lies above the line. Mixing the
ends so that the cost meets α is optimal, and the slope is the multiplier. With several constraints the same vertices
are columns of a small linear program (Dantzig-Wolfe decomposition), whose duals are the next direction.

Computed costs are trusted to within a margin M. A mixture aims at α − 2M, which leaves room for whoever evaluates the
answer in another order of sums. A single plan cannot be moved, and in games of few numbers its cost often is α to the
last bit: within M of α an oracle in exact arithmetic decides (`Accepts`), and if there is none the computed cost is
believed. Where the least cost is so close to α that nothing has room, costs up to the least plus M count as tied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.columns import MasterProgram
from cmpg.errors import InfeasibleError, SolverError

FLAT = 1e-13
"""A point lies above a line only if it does so by more than this, relative to the size of the numbers."""

MAX_PLANS = 10_000
"""Searches end after a few dozen plans; one that has made this many is not going to end."""

WIDENINGS = (1.3, 2.5, 10.0)
"""Factors by which a guessed multiplier is raised or lowered before the guess is given up."""

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


class Mixture(Protocol):
    """A mixture of plans that is one policy."""

    @property
    def policy(self) -> FloatArray:
        """The policy: [H, S, A]."""

    @property
    def costs(self) -> FloatArray:
        """V^c, evaluated and not averaged: [k]."""


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
class Found(Generic[MixtureT]):
    """The best mixture, the multipliers that prove it, and the number of plans that it took."""

    mixture: MixtureT
    multipliers: FloatArray  # [k]
    plans: int


Accepts = Callable[[VertexT], bool]
"""Whether a plan meets the thresholds exactly; asked if its computed costs are within the margins of them."""


def best_mixture(
    program: Program[VertexT, MixtureT], *, accepts: Accepts[VertexT] | None = None, near: float | None = None
) -> Found[MixtureT]:
    """Return the best policy that meets the constraints, or raise InfeasibleError.

    Parameters
    ----------
    program
        What is planned for.
    accepts
        Decides about single plans if rounding could; unless given, the computed costs are believed.
    near
        If there is one constraint, a guess of its multiplier: a good one saves half of the plans.
    """
    if len(program.thresholds) == 0:
        best = program.plan(np.zeros(0))
        return Found(_alone(program, best), np.zeros(0), 1)
    if len(program.thresholds) > 1:
        return _column_generation(program, accepts)
    found = _search_near(program, near, fits=partial(_fits, program, accepts=accepts)) if near else None
    return _frontier_search(program, accepts) if found is None else found


def _alone(program: Program[VertexT, MixtureT], plan: VertexT) -> MixtureT:
    return program.mix([plan], weights=np.ones(1), unvisited=plan.policy(program.num_actions))


def _fits(program: Program[VertexT, MixtureT], plan: VertexT, *, accepts: Accepts[VertexT] | None) -> bool:
    """Whether a single plan meets the thresholds: by a margin, or by the word of the oracle, or as computed."""
    over = plan.costs - program.thresholds
    if np.all(over <= -program.margins):
        return True
    if accepts is None:
        return bool(np.all(over <= 0))
    return bool(np.all(over <= program.margins)) and accepts(plan)


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
        # Not even the cheapest plan fits beyond doubt: what cannot be told apart from it has to do.
        fits = partial(_costs_at_most, most=max(threshold, least + margin))
    return _along_crossing_edge(program, left, right, fits=fits, plans=2)


def _search_near(
    program: Program[VertexT, MixtureT], near: float, *, fits: Callable[[VertexT], bool]
) -> Found[MixtureT] | None:
    """Begin with plans at a guess and beside it, one that fits and one that does not; None if there is no such pair.

    The larger the multiplier, the less is spent: if the plan at the guess fits, smaller ones are tried, else larger.
    """
    last = program.plan(np.array([near]))
    low = fits(last)
    for plans, factor in enumerate(WIDENINGS, start=2):
        each = program.plan(np.array([near / factor if low else near * factor]))
        if fits(each) != low:
            left, right = (last, each) if low else (each, last)
            return _along_crossing_edge(program, left, right, fits=fits, plans=plans)
        last = each
    return None


def _costs_at_most(plan: Vertex, *, most: float) -> bool:
    return bool(plan.costs[0] <= most)


def _along_crossing_edge(
    program: Program[VertexT, MixtureT],
    left: VertexT,
    right: VertexT,
    *,
    fits: Callable[[VertexT], bool],
    plans: int,
) -> Found[MixtureT]:
    """Find the edge of the frontier between a plan that fits and one that does not, and mix its ends."""
    edge = _crossing_edge(program, left, right, fits=fits)
    mixture = _mix_to_target(program, edge, unvisited=left.policy(program.num_actions))
    return Found(mixture, np.array([edge.multiplier]), edge.plans + plans)


@dataclass(frozen=True, eq=False)
class _Edge(Generic[VertexT]):
    """An edge of the frontier: V^r rises by `multiplier` for each unit of cost from left to right."""

    left: VertexT
    right: VertexT
    multiplier: float
    plans: int


def _crossing_edge(
    program: Program[VertexT, MixtureT], left: VertexT, right: VertexT, *, fits: Callable[[VertexT], bool]
) -> _Edge[VertexT]:
    """Find the edge of the frontier whose left end fits and whose right end does not, given such a pair of points."""
    for plans in range(MAX_PLANS):
        # Spending more for nothing, or nothing more to spend: the left end alone is best, and its price is zero.
        if right.costs[0] <= left.costs[0] or right.value <= left.value:
            return _Edge(left, left, 0.0, plans)
        slope = float((right.value - left.value) / (right.costs[0] - left.costs[0]))
        middle = program.plan(np.array([slope]))
        line = left.value - slope * left.costs[0]
        above = middle.value - slope * middle.costs[0] - line
        size = max(abs(left.value), abs(right.value), slope * abs(left.costs[0]), slope * abs(right.costs[0]))
        # No plan lies above the line through both ends, so it is an edge, and its slope the multiplier.
        if above <= FLAT * size:
            return _Edge(left, right, slope, plans + 1)
        if fits(middle):
            left = middle
        else:
            right = middle
    raise SolverError(f"the frontier search did not end within {MAX_PLANS} plans.")


def _mix_to_target(program: Program[VertexT, MixtureT], edge: _Edge[VertexT], *, unvisited: FloatArray) -> MixtureT:
    """Mix the ends of the edge so that the cost meets α − 2M and, evaluated, is at most a margin above that."""
    target = float(program.thresholds[0] - 2 * program.margins[0])
    low, high = float(edge.left.costs[0]), float(edge.right.costs[0])
    if low >= target:
        return program.mix([edge.left], weights=np.ones(1), unvisited=unvisited)
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
    units = np.where(sizes > 0, sizes, 1.0)
    safe = widest_slack(program, enough=ENOUGH, units=units)
    _check_feasible(program, safe)
    # Where rounding alone puts the safe mixture above a threshold, the master has to be feasible all the same.
    met = np.maximum(program.thresholds, safe.costs)
    master = MasterProgram(safe.plans, met, units=units, margins=program.margins)
    master.add(program.plan(np.zeros(len(sizes))))
    multipliers = _best_multipliers(program, master)
    alone = master.plans[int(master.weights.argmax())]
    if master.weights.max() > 1 - 1e-12 and _fits(program, alone, accepts=accepts):
        return Found(_alone(program, alone), multipliers, len(master.plans) + len(safe.plans))
    # A mixture can be moved: solve once more for the targets inside the thresholds, with the columns at hand.
    aim = Aim.at(program.thresholds, program.margins, safe_costs=safe.costs)
    master.move_thresholds(aim.targets)
    multipliers = _best_multipliers(program, master)

    def mixture_at(share: float) -> MixtureT:
        weights = np.concatenate([(1 - share) * master.weights, share * safe.weights])
        return program.mix([*master.plans, *safe.plans], weights=weights, unvisited=safe.policy)

    return Found(move_inside(mixture_at, aim), multipliers, len(master.plans) + len(safe.plans))


def _best_multipliers(program: Program[VertexT, MixtureT], master: MasterProgram[VertexT]) -> FloatArray:
    """Add columns until none improves; return the multipliers."""
    for _ in range(MAX_PLANS):
        multipliers = master.maximise_value()
        column = program.plan(multipliers)
        if not master.improves(column, multipliers):
            break
        master.add(column)
    return multipliers


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

    @property
    def policy(self) -> FloatArray:
        """The mixture as one policy: [H, S, A]."""
        return self.mixture.policy

    @property
    def costs(self) -> FloatArray:
        """V^c: [k]."""
        return self.mixture.costs


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
    multipliers = 1.0 / scale / len(scale)
    first = program.plan(multipliers, reward_weight=0.0)
    master = MasterProgram((first,), thresholds, units=scale, margins=program.margins)
    for _ in range(MAX_PLANS):
        multipliers, slack = master.maximise_slack()
        column = program.plan(multipliers, reward_weight=0.0)
        least = float(multipliers @ column.costs)
        if slack > enough or multipliers @ thresholds - least <= slack + tolerance or master.knows(column):
            break
        master.add(column)
    mixture = program.mix(master.plans, weights=master.weights, unvisited=column.policy(program.num_actions))
    achieved = float((thresholds - mixture.costs).min())
    return Slack(mixture, achieved, multipliers, least, tuple(master.plans), master.weights)


# --- Moving a mixture inside the thresholds ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Aim:
    """Which costs to aim at, and which to accept, given a safe policy to retreat to."""

    safe_costs: FloatArray  # [k]
    targets: FloatArray  # [k]
    accepted: FloatArray  # [k]

    @classmethod
    def at(cls, thresholds: FloatArray, margins: FloatArray, *, safe_costs: FloatArray) -> Aim:
        """Stay two margins inside if the safe policy has that room; see the module's docstring."""
        beside = np.maximum(np.minimum(safe_costs + margins, thresholds), safe_costs)
        targets = np.maximum(thresholds - 2 * margins, beside)
        # Where the safe policy has no room for rounding itself, nothing can be kept further inside than the margin.
        inside = np.maximum(targets, thresholds - margins)
        accepted = np.where(safe_costs > thresholds - margins, thresholds + margins, inside)
        return cls(safe_costs, targets, accepted)


def move_inside(mixture_at: Callable[[float], MixtureT], aim: Aim) -> MixtureT:
    """Return the first mixture whose evaluated costs are accepted, from share 0 to share 1 of the safe policy."""
    room = np.maximum(aim.targets - aim.safe_costs, 0.0)
    share = 0.0
    for _ in range(8):
        mixture = mixture_at(share)
        if np.all(mixture.costs <= aim.accepted):
            return mixture
        # Costs are linear in the share: excess/(excess + room) of what is left brings the worst one to its target.
        excess = np.maximum(mixture.costs - aim.targets, 0.0)
        needed = np.divide(excess, excess + room, out=np.zeros(len(excess)), where=excess > 0)
        share += (1 - share) * float(needed.max())
    return mixture_at(1.0)
