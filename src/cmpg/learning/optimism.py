"""Learning without boxes: optimism about the best response, certainty about a policy by rolling out.

Optimism tells how much the best response can be worth, from draws of next states. For multipliers λ write w = r − λ·c,
and M_h(s) = max_a (w_h + the largest M_{h+1} that is possible next), which no draw can change. With
Û_{H−1} = max_a w_{H−1}, and for h < H − 1

    Q_h(s, a) = w_h(s, a) + u_h(s, a),    Û_h(s) = max_a Q_h(s, a),

where u_h(s, a) is the `mean_ceiling` of min(Û_{h+1}, M_{h+1}) over the next states that were drawn, with bets that are
fixed beforehand. No next state of its own, and no factor |S|, has to be paid for.

Guarantee. Let Λ be a finite set that is fixed beforehand, and let each u_h(s, a) miss with probability at most
δ/(S·A·(H − 1)·|Λ|). Then with probability at least 1 − δ, for all λ in Λ and at all times: Û_h ≥ V*_h everywhere.
The induction compares with the bounds for V*, a fixed function, so that draws may be shared between steps whose rows
have one law, and chosen by all that was seen (Ville's inequality); it needs u to be monotone in the values, hence a
fixed M. So λ·α + μ·Û_0 ≥ λ·α + max_π V^{r − λc}, and by weak duality no policy that meets the constraints is worth more
than the least of these numbers. The proof with its constants is in docs/learning-theory.md.

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
from cmpg.cmdp.evaluation import action_values
from cmpg.cmdp.model import CMDP
from cmpg.errors import InfeasibleError
from cmpg.learning.confidence import fixed_bets, mean_ceiling
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


MANY_DRAWS = 2**24
"""Bets suit up to this many draws of one entry; more are judged a little less sharply."""

GRID = 512
"""Multipliers of one constraint that are not zero."""

PER_OCTAVE = 32

FIRST_STRIDE = 4
"""The walk begins with steps of this many multipliers, twice as many after each that leads down."""

LONGEST_STRIDE = 64


@dataclass(frozen=True, eq=False)
class Draws:
    """Next states that were drawn, and what is known of all the others."""

    transitions: IntArray  # [H − 1, S, A, S]
    support: BoolArray | None = None  # [H or 1, S, A, S]

    @cached_property
    def rows(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """Of each step the next states that occurred in each row, and how often: [S·A, most], [S·A, most]."""
        return tuple(_compressed(step.reshape(-1, step.shape[-1])) for step in self.transitions)

    def most(self, step: int, values: FloatArray) -> FloatArray:
        """Return the largest of `values` [S] at a next state that is possible after each entry of a step: [S, A]."""
        if self.support is None:
            return np.full(self.transitions.shape[1:3], values.max())
        possible = self.support[0 if len(self.support) == 1 else step]
        return np.asarray(np.where(possible, values, -np.inf).max(axis=2))

    def ceilings(self, step: int, to_go: FloatArray, *, most: FloatArray, delta: float) -> FloatArray:
        """Return upper bounds for the mean of `to_go` [S], at most `most` [S, A], after each entry of a step."""
        states, counts = self.rows[step]
        bets = fixed_bets(MANY_DRAWS, delta)
        return mean_ceiling(to_go[states], counts, most=most.ravel(), delta=delta, bets=bets).reshape(most.shape)


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
    fixed
        A reward no less, and costs no more, than those above whatever is drawn; None where payoffs are known, which are
        fixed themselves.
    """

    draws: Draws
    reward: FloatArray
    costs: FloatArray
    thresholds: FloatArray
    initial: FloatArray
    scales: FloatArray
    delta: float
    fixed: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def entry_delta(self) -> float:
        """The probability with which the bound of one entry at one λ may fail."""
        entries = int(np.prod(self.draws.transitions.shape[:3]))
        looks = MultiplierGrid(self.scales).size + len(self.costs)  # the grid, and each cost by itself
        return float(self.delta / (max(entries, 1) * looks))

    def bound(self, multipliers: FloatArray) -> float:
        """Return λ·α + μ·Û_0, for λ of the grid."""
        return float(multipliers @ self.thresholds + self.initial @ self._most(1.0, multipliers))

    def require_feasible(self, constraints: IntArray | None = None) -> None:
        """Raise InfeasibleError where one of the costs exceeds its threshold whatever the agent does.

        The message has the number of the constraint, among these [k] if there are others in the game.
        """
        for j, threshold in enumerate(self.thresholds):
            least = -float(self.initial @ self._most(0.0, np.eye(len(self.thresholds))[j]))
            if least > threshold:
                place = f"constraint {j if constraints is None else constraints[j]} has the threshold {threshold:.6g}"
                raise InfeasibleError(f"{place}, and costs at least {least:.6g} whatever the agent does.")

    def worth(self, multipliers: FloatArray) -> FloatArray:
        """Return what an optimistic planner thinks of each action at these multipliers: [H, S, A]."""
        return np.stack(self._worth(1.0, multipliers))

    def _most(self, weight: float, multipliers: FloatArray) -> FloatArray:
        """Return Û_0 for the stages w = weight·r − λ·c: [S]."""
        return np.asarray(self._worth(weight, multipliers)[0].max(axis=1))

    def _worth(self, weight: float, multipliers: FloatArray) -> list[FloatArray]:
        """Return what an optimistic planner thinks of each action at each step: [S, A] each."""

        def weighted(reward: FloatArray, costs: FloatArray) -> FloatArray:
            return np.broadcast_to(weight * reward - np.tensordot(multipliers, costs, axes=1), self.reward.shape)

        stages = weighted(self.reward, self.costs)
        largest = stages if self.fixed is None else weighted(*self.fixed)
        found: list[FloatArray] = []
        limit = np.zeros(stages.shape[1])  # M
        for h in reversed(range(len(stages))):
            worth, limits = stages[h], largest[h]
            if found:
                # M must not depend on the draws: `mean_ceiling` is monotone in the values, and not in M.
                most = self.draws.most(h, limit)
                to_go = np.minimum(found[-1].max(axis=1), limit)
                worth = worth + self.draws.ceilings(h, to_go, most=most, delta=self.entry_delta)
                limits = limits + most
            limit = limits.max(axis=1)
            found.append(worth)
        return found[::-1]

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
