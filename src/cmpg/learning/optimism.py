"""Learning without boxes: optimism about the best response, certainty about a policy by rolling out.

Optimism tells how much the best response can be worth, from draws that are separate for every step. For multipliers λ
write w = r − λ·c. With N draws of every (h, s, a), V_{H−1} = max_a w_{H−1}, and for h < H − 1

    Q_h(s, a) = w_h(s, a) + u_h(s, a),    V_h(s) = max_a Q_h(s, a),

where u_h(s, a) is the `mean_ceiling` of V_{h+1} over the next states that were drawn, with the largest V_{h+1} of a
next state that is possible. V_{h+1} is a function of the draws of later steps, which are independent of those of step
h: given it, the draws of one row are independent values with mean P_h V_{h+1}, and no next state of its own, and no
factor |S|, has to be paid for.

Guarantee. Let Λ be a finite set that is fixed beforehand, and let each u_h(s, a) miss with probability at most
δ/(S·A·(H − 1)·|Λ|). Then with probability at least 1 − δ, for all λ in Λ: V_h ≥ V*_h everywhere (induction over h, by
monotonicity), hence λ·α + μ·V_0 ≥ λ·α + max_π V^{r − λc}, and by weak duality no policy that meets the constraints is
worth more than the least of these numbers. Which λ are looked at may depend on all samples, since the bounds hold for
all of Λ together. The proof with its constants is in docs/learning-theory.md.

Λ is 0 and `GRID` powers of 2^(1/32) around G/C, the range of the reward over that of the cost, for each constraint; the
least bound is searched by walking from the multipliers that the empirical CMDP has.

Rolling out tells what a fixed policy is worth and costs, from fresh episodes. The policy may be chosen by anything, as
long as the episodes are played afterwards. They are played in batches, each as large as all before it; after batch j
the bounds fail with probability at most δ/(j(j + 1)), so that they hold at all times together, and the caller may
stop as soon as they decide the query.

What is averaged is not the sum of payoffs, but, with any functions Q_h (those of a model that was learned from other
samples; none where there is no model) and V_h(s) = Σ_a π_h(a | s) Q_h(s, a),

    X = μ·V_0 + Σ_h (r_h(s_h, a_h) − Q_h(s_h, a_h)) + Σ_{h ≥ 1} V_h(s_h).

Its mean is V^r(π), because μ·V_0 is the mean of V_0(s_0), and V_h(s_h) that of Q_h(s_h, a_h) given s_h. If Q is nearly
right, what the first state and the actions contribute cancels, and what is left is where transitions lead. X lies
between the sums of the least and of the largest entries of each step, so `mean_ceiling` applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.evaluation import action_values, backward_induction
from cmpg.cmdp.model import CMDP
from cmpg.errors import InfeasibleError
from cmpg.learning.confidence import mean_ceiling
from cmpg.learning.outcome import CurrentBounds
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import BoolArray, Totals

FIRST_EPISODES = 256


class Measurement:
    """What is known of the value and the costs of one policy; the value stands first, then the costs.

    Parameters
    ----------
    problem
        The CMDP that is sampled; its samples are charged.
    policy : [H, S, A]
        The agent's policy, chosen before.
    model
        A CMDP that was learned from other samples, or None.
    delta
        The probability that any of the bounds fails at any time.
    """

    def __init__(self, problem: InducedProblem, policy: FloatArray, model: CMDP | None, *, delta: float) -> None:
        self.problem, self.policy, self.delta = problem, policy, delta
        self._tables, self._offsets = _corrected(problem, policy, model)
        observed = problem.known.payoffs is None
        least, greatest = self._tables.min(axis=(2, 3)), self._tables.max(axis=(2, 3))
        if observed:
            ends = [problem.known.reward_bounds[problem.agent], *problem.known.cost_bounds]
            steps = np.stack([np.broadcast_to(each, (problem.shape[0], 2)) for each in ends])
            least, greatest = least + steps[..., 0], greatest + steps[..., 1]
        shape = self._tables.shape[:2]
        self.floors = self._offsets + np.broadcast_to(least, shape).sum(axis=1)  # [1 + k]
        self.ceilings = self._offsets + np.broadcast_to(greatest, shape).sum(axis=1)  # [1 + k]
        self._least, self._most = self.floors.copy(), self.ceilings.copy()
        self._totals: Totals | None = None
        self._batches = 0

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return 0 if self._totals is None else self._totals.episodes

    @property
    def bounds(self) -> CurrentBounds:
        """The bounds, by what they bound."""
        floors, ceilings = self.floors.copy(), self.ceilings.copy()
        return CurrentBounds(float(floors[0]), float(ceilings[0]), floors[1:], ceilings[1:])

    @property
    def next_batch(self) -> int:
        """How many episodes `grow` plays."""
        return self.episodes or FIRST_EPISODES

    def grow(self) -> None:
        """Play as many episodes as there are, and tighten the bounds."""
        batch = self.problem.add_up(self.policy, self._tables, self.next_batch)
        self._totals = batch if self._totals is None else self._totals + batch
        self._batches += 1
        values, counts = self._totals.values.T + self._offsets[:, None], self._totals.counts
        share = self.delta / (self._batches * (self._batches + 1)) / (2 * len(values))
        for index, column in enumerate(values):
            above = float(mean_ceiling(column, counts, most=self._most[index], delta=share))
            below = -float(mean_ceiling(-column, counts, most=-self._least[index], delta=share))
            self.ceilings[index] = min(self.ceilings[index], above)
            self.floors[index] = max(self.floors[index], below)


def _corrected(problem: InducedProblem, policy: FloatArray, model: CMDP | None) -> tuple[FloatArray, FloatArray]:
    """Return the tables [1 + k, H, S, A] that X adds up, without payoffs that are only observed, and μ·V_0 [1 + k]."""
    known = problem.known
    tables, offsets = np.zeros((1 + known.num_constraints, *problem.shape)), np.zeros(1 + known.num_constraints)
    if model is not None:
        expected = np.moveaxis(action_values(model, policy), 1, 0)
        values = (policy * expected).sum(axis=-1)
        tables = values[..., None] - expected
        tables[:, 0] = -expected[:, 0]
        offsets = values[:, 0] @ known.initial
    if known.payoffs is not None:
        reward, costs = problem.payoffs
        tables += np.concatenate([reward[None], costs])
    return tables, offsets


GRID = 512
"""Multipliers of one constraint that are not zero."""

PER_OCTAVE = 32

FIRST_STRIDE = 4
"""The walk begins with steps of this many multipliers, twice as many after each that leads down."""

LONGEST_STRIDE = 64


@dataclass(frozen=True, eq=False)
class Draws:
    """Next states that were drawn, separately for each step, and what is known of all the others."""

    transitions: IntArray  # [H − 1, S, A, S]: their number at each entry must be fixed beforehand
    support: BoolArray | None = None  # [H or 1, S, A, S]

    @cached_property
    def rows(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """Of each step the next states that occurred in each row, and how often: [S·A, most], [S·A, most]."""
        return tuple(_compressed(step.reshape(-1, step.shape[-1])) for step in self.transitions)

    def ceilings(self, step: int, to_go: FloatArray, *, delta: float) -> FloatArray:
        """Return upper bounds for the mean of `to_go` [S] over the next state of each entry of a step: [S, A]."""
        states, counts = self.rows[step]
        most = np.full(len(states), to_go.max())
        if self.support is not None:
            possible = self.support[0 if len(self.support) == 1 else step].reshape(len(states), -1)
            most = np.where(possible, to_go, -np.inf).max(axis=1)
        found = mean_ceiling(to_go[states], counts, most=most, delta=delta)
        return found.reshape(self.transitions.shape[1:3])


def _compressed(counts: IntArray) -> tuple[IntArray, IntArray]:
    most = max(int(np.count_nonzero(counts, axis=1).max(initial=0)), 1)
    states = np.argsort(counts == 0, axis=1, kind="stable")[:, :most]
    return states, np.take_along_axis(counts, states, axis=1)


@dataclass(frozen=True, eq=False)
class Ceiling:
    """No policy that meets the constraints is worth more than `value`, and the multipliers that prove it."""

    value: float
    multipliers: FloatArray  # [k]
    work: int  # dynamic programs


@dataclass(frozen=True, eq=False)
class Optimism:
    """What one agent can hope for, with payoffs at their most favourable.

    Parameters
    ----------
    draws
        The next states that were drawn.
    reward : [H, S, A]
        No less than the true one.
    costs : [k, H, S, A]
        No more than the true ones.
    thresholds : [k]
        No less than the true ones.
    initial : [S]
        μ.
    scales : [k]
        The multiplier in the middle of each grid; fixed before the draws.
    delta
        The probability that any bound fails.
    """

    draws: Draws
    reward: FloatArray
    costs: FloatArray
    thresholds: FloatArray
    initial: FloatArray
    scales: FloatArray
    delta: float

    @cached_property
    def entry_delta(self) -> float:
        """The probability with which the bound of one entry at one λ may fail."""
        entries = int(np.prod(self.draws.transitions.shape[:3]))
        looks = MultiplierGrid(self.scales).size + len(self.costs)  # the grid, and each cost by itself
        return float(self.delta / (max(entries, 1) * looks))

    def bound(self, multipliers: FloatArray) -> float:
        """Return λ·α + μ·V_0, for λ of the grid."""
        weighted = self.reward - np.tensordot(multipliers, self.costs, axes=1)
        return float(multipliers @ self.thresholds + self.initial @ self._most(weighted))

    def require_feasible(self) -> None:
        """Raise InfeasibleError where one of the costs exceeds its threshold whatever the agent does."""
        for j, (cost, threshold) in enumerate(zip(self.costs, self.thresholds, strict=True)):
            least = -float(self.initial @ self._most(-cost))
            if least > threshold:
                place = f"constraint {j} has the threshold {threshold:.6g}"
                raise InfeasibleError(f"{place}, and costs at least {least:.6g} whatever the agent does.")

    def _most(self, stages: FloatArray) -> FloatArray:
        """Return V_0 of an optimistic planner: [S]."""

        def add_future(step: int, worth: FloatArray, to_go: FloatArray) -> None:
            worth += self.draws.ceilings(step, to_go, delta=self.entry_delta)

        backwards = ((step, stages[step].copy()) for step in reversed(range(len(stages))))
        return np.asarray(backward_induction(backwards, add_future, lambda _, worth: worth.max(axis=1)))

    def least_bound(self, near: FloatArray) -> Ceiling:
        """Walk over the grid from the multipliers `near` [k] to a bound that none of its neighbours is below."""
        return MultiplierGrid(self.scales).least(self.bound, near)


@dataclass(frozen=True, eq=False)
class MultiplierGrid:
    """Λ: for each constraint 0 and `GRID` powers of 2^(1/32) around a scale; fixed before the first sample."""

    scales: FloatArray  # [k]

    @property
    def size(self) -> float:
        """|Λ|."""
        return float(GRID + 1) ** len(self.scales)

    def least(self, bound: Callable[[FloatArray], float], near: FloatArray) -> Ceiling:
        """Walk from the multipliers `near` [k] to a bound that none of its neighbours is below."""
        known: dict[tuple[int, ...], float] = {}

        def value(place: tuple[int, ...]) -> float:
            if place not in known:
                known[place] = bound(self.multipliers(place))
            return known[place]

        best = self.place(near)
        stride = FIRST_STRIDE
        while stride:
            nearer = min(_neighbours(best, stride), key=value, default=best)
            if value(nearer) < value(best):
                best, stride = nearer, min(2 * stride, LONGEST_STRIDE)
            else:
                stride //= 2
        return Ceiling(value(best), self.multipliers(best), len(known))

    def multipliers(self, place: tuple[int, ...]) -> FloatArray:
        """Return the multipliers [k] at one place of the grid."""
        powers = np.array(place, dtype=np.float64) - 1 - GRID / 2
        return np.where(np.array(place) == 0, 0.0, self.scales * 2.0 ** (powers / PER_OCTAVE))

    def place(self, multipliers: FloatArray) -> tuple[int, ...]:
        """Return the place of the grid that is nearest to multipliers [k]."""
        with np.errstate(divide="ignore"):
            powers = PER_OCTAVE * np.log2(np.maximum(multipliers, 0.0) / self.scales)
        places = np.clip(np.round(powers) + 1 + GRID / 2, 0, GRID)
        return tuple(int(place) for place in places)


def _neighbours(place: tuple[int, ...], stride: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of the grid that are one stride away in one constraint."""
    for j, sign in product(range(len(place)), (-1, 1)):
        moved = min(max(place[j] + sign * stride, 0), GRID)
        if moved != place[j]:
            yield (*place[:j], moved, *place[j + 1 :])
