"""Algorithm 3 to the letter: N samples of every entry, then T primal-dual steps, then one policy out of T.

    π̂_t ∈ argmax_π V̂^{r − λ_t c}(π),   λ_{t+1} = P_[0,U](λ_t − η (α′ − V̂^c(π̂_t))),   λ_0 = 0,   t = 0, …, T − 1,

and π̄ has the mean occupancy of π̂_0, …, π̂_{T−1}. T is 1e10 and more in all but toy cases, yet the loop can be run: the
dual function has finitely many pieces, on each of them one deterministic policy is the maximiser, and λ moves by a
constant. `primal_dual` takes the steps within a piece at once. Near the best multiplier two policies take turns,

    λ → λ + u  where λ < b,   λ → λ − v  where λ ≥ b:   a rotation by u of the circle [b − v, b + u),

so the place after k steps, how often either policy is played, and the sum of the multipliers are known at once, too.
All of this is done in exact rational arithmetic on V̂^r and V̂^c of the pieces (floats, each the same for all steps), η,
α′ and U: the counts are those of the loop that takes one step after the other, for every T. At a breakpoint the cheaper
policy is played.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, lcm

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import occupancy, policy_from_occupancy
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Plan, plan
from cmpg.cmdp.response import BestResponse, respond
from cmpg.errors import CMPGError, SolverError
from cmpg.learning.a_priori import judged_by_rows, refuse_beyond, sampled
from cmpg.learning.bounds import Size, paper_constants, refuse_masks
from cmpg.learning.outcome import LearnedResponse
from cmpg.learning.problem import InducedProblem

FLAT = 1e-12
"""A policy that rises above the others by less than this, relative to their size, is no piece of its own."""

MAX_STRETCHES = 1_000_000
"""The stretches allowed before two policies take turns; only a third policy within a step of them needs many."""


@dataclass(frozen=True, eq=False)
class DualPieces:
    """The policies that maximise V^{r − λc} for some λ in [0, U], and where each gives way to the next."""

    plans: tuple[Plan, ...]  # from the most expensive to the cheapest
    breakpoints: tuple[Fraction, ...]  # plans[i] is the maximiser from breakpoints[i − 1] to breakpoints[i]

    @staticmethod
    def of(cmdp: CMDP, multiplier_bound: float) -> DualPieces:
        """Find all pieces: a plan at the crossing of two lines is above it, or they are neighbours."""
        found = [plan(cmdp, np.zeros(1)), plan(cmdp, np.array([multiplier_bound]))]
        unsettled = [(found[0], found[1])]
        while unsettled:
            left, right = unsettled.pop()
            if not (left.costs[0] > right.costs[0] and left.value > right.value):
                continue
            slope = (left.value - right.value) / float(left.costs[0] - right.costs[0])
            middle = plan(cmdp, np.array([slope]))
            size = max(abs(left.value), abs(right.value), slope * float(np.abs([left.costs[0], right.costs[0]]).max()))
            if middle.value - left.value - slope * float(middle.costs[0] - left.costs[0]) > FLAT * size:
                found.append(middle)
                unsettled += [(left, middle), (middle, right)]
        return DualPieces.envelope(found)

    @staticmethod
    def envelope(plans: Sequence[Plan]) -> DualPieces:
        """Keep the plans that are the maximiser somewhere, by exact comparison of the lines V^r − λ V^c."""
        kept: list[Plan] = []
        ends: list[Fraction] = []
        for each in sorted(plans, key=lambda one: (-one.costs[0], -one.value)):
            if kept and each.costs[0] == kept[-1].costs[0]:
                continue
            while kept:
                crossing = (_exact(kept[-1].value) - _exact(each.value)) / (
                    _exact(kept[-1].costs[0]) - _exact(each.costs[0])
                )
                if crossing > (ends[-1] if ends else 0):
                    ends.append(crossing)
                    break
                kept.pop()
                if ends:
                    ends.pop()
            kept.append(each)
        return DualPieces(tuple(kept), tuple(ends))

    def at(self, multiplier: Fraction) -> int:
        """Return which piece is the maximiser at λ; at a breakpoint the cheaper one."""
        return bisect_right(self.breakpoints, multiplier)


def _exact(number: float) -> Fraction:
    return Fraction(float(number))


@dataclass(frozen=True, eq=False)
class PrimalDualRun:
    """T steps of the loop: how often each policy was the maximiser, and where the multiplier went."""

    pieces: DualPieces
    counts: tuple[int, ...]  # they add up to T
    multiplier: Fraction  # λ_T
    multiplier_sum: Fraction  # Σ_t λ_t
    weighted_slack: Fraction  # Σ_t λ_t (α′ − V̂^c(π̂_t))
    threshold: Fraction  # α′

    @property
    def iterations(self) -> int:
        """T."""
        return sum(self.counts)

    @property
    def value(self) -> float:
        """The mean of V̂^r(π̂_t)."""
        total = sum(_exact(each.value) * count for each, count in zip(self.pieces.plans, self.counts, strict=True))
        return float(total / self.iterations)

    @property
    def cost(self) -> float:
        """The mean of V̂^c(π̂_t)."""
        return float(self.threshold - self._slack / self.iterations)

    @property
    def _slack(self) -> Fraction:
        """Σ_t (α′ − V̂^c(π̂_t))."""
        pairs = zip(self.pieces.plans, self.counts, strict=True)
        return sum(((self.threshold - _exact(each.costs[0])) * count for each, count in pairs), Fraction(0))

    def dual_regret(self, multiplier: float) -> float:
        """Return Σ_t (λ_t − λ)(α′ − V̂^c(π̂_t)) (Lemma 8)."""
        return float(self.weighted_slack - _exact(multiplier) * self._slack)

    def policy(self, cmdp: CMDP) -> FloatArray:
        """Return π̄, the policy with the mean occupancy; rows that are never visited are uniform (Lemma 3)."""
        played = [(each, count) for each, count in zip(self.pieces.plans, self.counts, strict=True) if count]
        mean = sum(occupancy(cmdp, each.policy(cmdp.num_actions)) * (count / self.iterations) for each, count in played)
        return policy_from_occupancy(np.asarray(mean), np.full(cmdp.policy_shape, 1.0 / cmdp.num_actions))


def primal_dual(cmdp: CMDP, *, iterations: int, step_size: float, multiplier_bound: float) -> PrimalDualRun:
    """Run Algorithm 3's loop on a CMDP with one constraint, whose threshold is α′.

    Examples
    --------
    >>> cmdp = CMDP(transition=np.ones((1, 1, 2, 1)), reward=[[[0.0, 1.0]]], costs=[[[[0.0, 1.0]]]], thresholds=[0.25],
    ...             initial=[1.0], horizon=1)
    >>> run = primal_dual(cmdp, iterations=10**15, step_size=2.0**-20, multiplier_bound=4.0)
    >>> run.counts, float(run.multiplier)
    ((250000001048576, 749999998951424), 1.0)
    """
    if cmdp.num_constraints != 1:
        raise CMPGError(f"Algorithm 3 is for one constraint; there are {cmdp.num_constraints}.")
    walk = _Walk(
        DualPieces.of(cmdp, multiplier_bound), _exact(cmdp.thresholds[0]), _exact(step_size), _exact(multiplier_bound)
    )
    return walk.run(int(iterations))


@dataclass
class _Walk:
    """λ on its way: `steps[i]` is what piece i adds to it."""

    pieces: DualPieces
    threshold: Fraction
    step_size: Fraction
    bound: Fraction
    here: Fraction = Fraction(0)
    total: Fraction = Fraction(0)  # Σ λ_t
    weighted: Fraction = Fraction(0)  # Σ λ_t · (what is added to λ_t)
    counts: list[int] = field(default_factory=list)

    def run(self, iterations: int) -> PrimalDualRun:
        steps = [self.step_size * (_exact(each.costs[0]) - self.threshold) for each in self.pieces.plans]
        self.counts = [0] * len(steps)
        left, stretches = iterations, 0
        returns: dict[Fraction, tuple[int, list[int], Fraction, Fraction]] = {}
        while left:
            stretches += 1
            if stretches > MAX_STRETCHES:
                raise SolverError(
                    f"three policies are within one step of each other at λ = {float(self.here):.6g}: after "
                    f"{MAX_STRETCHES:,} stretches {left:,} of {iterations:,} steps are left. Take a smaller step."
                )
            piece = self.pieces.at(self.here)
            if self._alternates(piece, steps):
                left -= self._rotate(piece if steps[piece] > 0 else piece - 1, steps, left)
            else:
                left -= self._straight_on(piece, steps[piece], left)
                if self.here in (0, self.bound):
                    left = self._repeat(returns, left)
        return PrimalDualRun(
            self.pieces,
            tuple(self.counts),
            self.here,
            self.total,
            -self.weighted / self.step_size,
            self.threshold,
        )

    def _straight_on(self, piece: int, step: Fraction, most: int) -> int:
        """Go on until λ leaves the piece, or is projected; for good where no step changes it."""
        ends, moving = self.pieces.breakpoints, step
        if step == 0 or (self.here == 0 and step < 0) or (self.here == self.bound and step > 0):
            count, moving = most, Fraction(0)  # the projection undoes every step
        elif step > 0:
            end = min(ends[piece], self.bound) if piece < len(ends) else self.bound
            count = ceil((end - self.here) / step)
        elif piece:
            count = floor((self.here - ends[piece - 1]) / -step) + 1  # at the breakpoint itself the piece goes on
        else:
            count = ceil(self.here / -step)
        count = min(count, most)
        visited = self.here * count + moving * (count * (count - 1) // 2)
        self.counts[piece] += count
        self.total += visited
        self.weighted += visited * step
        self.here = min(max(self.here + step * count, Fraction(0)), self.bound)
        return count

    def _alternates(self, piece: int, steps: Sequence[Fraction]) -> bool:
        """Whether λ stays for good with two neighbours: one step from their breakpoint leads into no other piece."""
        ends, left = self.pieces.breakpoints, piece if steps[piece] > 0 else piece - 1
        if not (0 <= left < len(ends) and steps[left] > 0 > steps[left + 1]):
            return False
        lowest, highest = ends[left] + steps[left + 1], ends[left] + steps[left]
        first = ends[left - 1] if left else Fraction(0)
        last = min(ends[left + 1], self.bound) if left + 1 < len(ends) else self.bound
        return first <= lowest <= self.here < highest <= last

    def _rotate(self, left: int, steps: Sequence[Fraction], count: int) -> int:
        """Take all steps that remain: a rotation by u of a circle of length u + v."""
        up, circle = steps[left], steps[left] - steps[left + 1]
        lowest = self.pieces.breakpoints[left] + steps[left + 1]
        # With x = λ − lowest, measured in units that make everything whole: x_t = (x_0 + t·u) mod (u + v).
        unit = lcm(up.denominator, circle.denominator, (self.here - lowest).denominator)
        by, length, at = (int(each * unit) for each in (up, circle, self.here - lowest))
        rounds, rest = divmod(at + by * count, length)  # one step down for each time around
        laps = floor_sum(count, by, at, length)
        before, self.here = self.here, lowest + Fraction(rest, unit)
        self.counts[left] += count - rounds
        self.counts[left + 1] += rounds
        self.total += lowest * count + Fraction(at * count + by * (count * (count - 1) // 2) - length * laps, unit)
        # λ_{t+1}² = λ_t² + 2 λ_t s_t + s_t², summed.
        squares = (count - rounds) * steps[left] ** 2 + rounds * steps[left + 1] ** 2
        self.weighted += (self.here**2 - before**2 - squares) / 2
        return count

    def _repeat(self, returns: dict[Fraction, tuple[int, list[int], Fraction, Fraction]], left: int) -> int:
        """At a place where λ was projected before: what happened since happens again and again."""
        earlier = returns.get(self.here)
        returns[self.here] = left, list(self.counts), self.total, self.weighted
        if earlier is None or earlier[0] == left:
            return left
        period = earlier[0] - left
        times = left // period
        self.counts = [now + times * (now - then) for now, then in zip(self.counts, earlier[1], strict=True)]
        self.total += times * (self.total - earlier[2])
        self.weighted += times * (self.weighted - earlier[3])
        return left - times * period


def floor_sum(count: int, slope: int, offset: int, modulus: int) -> int:
    """Return Σ_{t<n} ⌊(a·t + b)/m⌋ for a, b ≥ 0, in as many steps as Euclid's algorithm takes.

    Examples
    --------
    >>> floor_sum(5, 3, 1, 4), sum((3 * t + 1) // 4 for t in range(5))
    (7, 7)
    """
    total = 0
    while count:
        total += (slope // modulus) * (count * (count - 1) // 2) + (offset // modulus) * count
        slope, offset = slope % modulus, offset % modulus
        last = slope * count + offset
        if last < modulus:
            return total
        # Count the lattice points under the line by rows instead of columns.
        count, offset, slope, modulus = last // modulus, last % modulus, modulus, slope
    return total


@dataclass(frozen=True)
class Algorithm3:
    """Learn a best response by the paper's Algorithm 3 with the paper's constants; one constraint.

    Parameters
    ----------
    slater
        The slack ζ of the CMDP.
    max_samples
        More are refused at once.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = InducedProblem(GameSimulator(game, rng=np.random.default_rng(0)), 0, game.uniform_policy())
    >>> response = Algorithm3(slater=0.5)(problem, epsilon=0.5, delta=0.1)
    >>> response.status.name, bool(response.cost_ceilings[0] <= 0.5)
    ('CERTIFIED', True)
    """

    slater: float
    max_samples: float = 1e15

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Learn a best response, or raise BudgetError before anything is drawn."""
        if problem.known.num_constraints != 1:
            raise CMPGError(
                f"Algorithm 3 is for one constraint; there are {problem.known.num_constraints}. Use Adaptive."
            )
        refuse_masks(problem.known)
        size = Size.of(problem.known, problem.agent)
        constants = paper_constants(size, slater=self.slater, epsilon=epsilon, delta=delta)
        drawn = float(constants.samples_per_entry) * size.entries  # the bound counts the last step, which leads nowhere
        refuse_beyond(problem, drawn, limit=self.max_samples, mode="Algorithm 3")
        empirical = sampled(problem, constants.samples_per_entry)
        run = primal_dual(
            replace(empirical, thresholds=empirical.thresholds - constants.tightening, trusted=True),
            iterations=int(constants.iterations),
            step_size=constants.step_size,
            multiplier_bound=constants.multiplier_bound,
        )
        return judged_by_rows(
            empirical,
            run.policy(empirical),
            multipliers=np.array([float(run.multiplier_sum / run.iterations)]),
            count=constants.samples_per_entry,
            work=run.iterations,
            size=size,
            epsilon=epsilon,
            delta=delta,
        )


@dataclass(frozen=True)
class AveragedPrimalDual:
    """Algorithm 3's loop on a known model, with its constant step η = U/(√T·H).

    The mean of the iterates can cost up to ε_opt more than the threshold, and nothing repairs that.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> cmdp = game.at(game.uniform_policy().replace(1, [[[0.0, 1.0]]])).induced_cmdp(0)
    >>> response = AveragedPrimalDual(iterations=1000, multiplier_bound=4.0)(cmdp)
    >>> response.costs.round(2), round(response.value, 2), round(Exact()(cmdp).value, 2)
    (array([0.52]), 3.03, 3.0)
    """

    iterations: int
    multiplier_bound: float

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:  # noqa: ARG002
        """Return the policy with the mean occupancy of all iterates, feasible or not."""
        step = self.multiplier_bound / (np.sqrt(self.iterations) * cmdp.num_steps)
        run = primal_dual(cmdp, iterations=self.iterations, step_size=step, multiplier_bound=self.multiplier_bound)
        mean = np.array([float(run.multiplier_sum / run.iterations)])
        return respond(cmdp, run.policy(cmdp), multipliers=mean, work=self.iterations)


@dataclass(frozen=True)
class UniformFill:
    """`Exact`, with every row that is never visited made uniform: the paper's equation for π̄ (Lemma 3).

    Any filling has the same value, but what others' deviations are worth depends on it.

    Examples
    --------
    >>> from cmpg import JointPolicy
    >>> from cmpg.scenarios import spectrum
    >>> game = spectrum()
    >>> cmdp = game.at(JointPolicy.reference(game.policy_shapes)).induced_cmdp(0)
    >>> abs(UniformFill()(cmdp).value - Exact()(cmdp).value) < 1e-9
    True
    """

    def __call__(self, cmdp: CMDP, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return a best response that mixes evenly where it never goes."""
        best = Exact()(cmdp, rng=rng)
        uniform = np.full(cmdp.policy_shape, 1.0 / cmdp.num_actions)
        table = policy_from_occupancy(occupancy(cmdp, best.policy), uniform)
        return respond(cmdp, table, multipliers=best.multipliers, work=best.work)
