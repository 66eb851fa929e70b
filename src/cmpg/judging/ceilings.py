"""What a deviation can be worth at most, from episodes: upper bounds that hold with probability 1 − δ.

The others' policies are fixed before the first episode and depend on the step and the state alone, so agent i faces a
Markov decision process. For multipliers λ write w = r_i − λ·c, V* for the optimal value of w, which is no function of
the data, and M_h ≥ max V*_h for a fixed number: the sum of the largest w of the steps h, …, H − 1, or more. Put Û_H = 0
and, for h = H − 1, …, 0,

    Û_h(s) = max_a u( { w + min(Û_{h+1}(s'), M_{h+1}) : (w, s') what was seen after (h, s, a) };  max w_h + M_{h+1} ),

u the ceiling of Lemma 1 (`mean_ceiling`) with bets that are fixed beforehand, and its largest value where (h, s, a) was
never tried.

Theorem 6 (docs/learning-theory.md). If each u misses with probability at most δ(h, s, a)/|Λ|, and these add up to δ,
then with probability at least 1 − δ, for all λ in Λ together, Û_h ≥ V*_h everywhere.

Proof. Fix λ. Call u*(h, s, a) the ceiling of the values w + V*_{h+1}(s') that were seen after (h, s, a). Given all that
went before, each of them has the mean Q*_h(s, a): V* is a fixed function, and the episode's past does not matter.
So W of Lemma 1 is a martingale over the visits, however many there are and whatever they depend on, and by Ville's
inequality u* ≥ Q* with probability at least 1 − δ(h, s, a)/|Λ| at all times. On the event that this is so for all
entries and λ, Û ≥ V* by induction: at H both are zero, and u never falls when a value rises while its largest value is
kept, so that Û_{h+1} ≥ V*_{h+1} and V*_{h+1} ≤ M_{h+1} give u ≥ u* ≥ Q*. ∎

Weak duality then bounds what any deviation that keeps the constraints is worth by λ·α + μ·Û_0, for each λ in Λ; an
unknown μ costs one more ceiling, over the first states. The code takes the best of a few bets instead of all: a larger
number, so the induction stands. What u may not have is a largest value that depends on the data (u is not monotone in
it), and what may not be is that the others' policies were chosen with these episodes.

States are numbered as they are met: an entry of the state with number s has δ/(H·A·(s + 1)(s + 2)), which is known
before the first visit to it and adds up to at most δ. If the number S of states is known, it is δ/(H·A·S).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.judging.worlds import ENDED, PlayedWorld, Seen
from cmpg.learning.confidence import fixed_bets, mean_ceiling
from cmpg.learning.optimism import Ceiling, MultiplierGrid


@dataclass(frozen=True, eq=False)
class StepOutcomes:
    """What was seen after each (state, action) of one step: different outcomes, and how often; rows are padded."""

    states: IntArray  # [rows]
    actions: IntArray  # [rows]
    rewards: FloatArray  # [rows, m]
    costs: FloatArray  # [k, rows, m]
    following: IntArray  # [rows, m]: next states, or ENDED
    counts: IntArray  # [rows, m]: zero where there are fewer


def outcomes(seen: Seen, *, own: bool = False) -> tuple[StepOutcomes, ...]:
    """Count what one agent met, step by step; by what its deviations may look at if `own`, else by state."""
    states = seen.own if own else seen.states
    return tuple(_step_outcomes(states[h], states[h + 1], seen, h) for h in range(len(seen.actions)))


def _step_outcomes(now: IntArray, after: IntArray, seen: Seen, h: int) -> StepOutcomes:
    alive = now != ENDED
    columns = [now, seen.actions[h], after, seen.rewards[h], *seen.step_costs[:, h]]
    table = np.stack([np.asarray(column, dtype=np.float64)[alive] for column in columns], axis=1)
    k = len(seen.step_costs)
    if not len(table):
        none = np.zeros(0, dtype=np.int64)
        empty = np.zeros((0, 1))
        zeros = np.zeros((0, 1), dtype=np.int64)
        return StepOutcomes(none, none, empty, np.zeros((k, 0, 1)), zeros, zeros)
    distinct, often = np.unique(table, axis=0, return_counts=True)
    entries, row = np.unique(distinct[:, :2], axis=0, return_inverse=True)
    row = row.reshape(-1)
    # np.unique sorts by (state, action) first, so that the outcomes of one row are neighbours.
    begins = np.searchsorted(row, np.arange(len(entries)))
    column = np.arange(len(row)) - begins[row]
    shape = (len(entries), int(column.max()) + 1)
    rewards, following = np.zeros(shape), np.full(shape, ENDED, dtype=np.int64)
    costs, counts = np.zeros((k, *shape)), np.zeros(shape, dtype=np.int64)
    counts[row, column], rewards[row, column] = often, distinct[:, 3]
    following[row, column] = distinct[:, 2].astype(np.int64)
    for j in range(k):
        costs[j][row, column] = distinct[:, 4 + j]
    return StepOutcomes(
        entries[:, 0].astype(np.int64), entries[:, 1].astype(np.int64), rewards, costs, following, counts
    )


@dataclass(frozen=True)
class Visited:
    """What was tried of what an agent met, in (step, state, action)."""

    entries: int  # of the states that were met
    untried: int
    visits: int  # to those that were tried, in the median
    needed: int  # visits to each, about, for a bound that says something
    widest: int  # entries of the step that has the most
    largest_reward: float  # of a step that was seen


@dataclass(frozen=True, eq=False)
class Ceilings:
    """What agent i's deviations can be worth at most, as far as the episodes say.

    Parameters
    ----------
    world, agent
        Where it deviates, and who.
    steps
        What was seen, for each step.
    first : [S]
        How often each state came first.
    max_episodes
        No more than this many episodes are played; fixed beforehand, for the bets.
    delta
        The probability that any of the bounds fails at any time.
    """

    world: PlayedWorld
    agent: int
    steps: tuple[StepOutcomes, ...]
    first: IntArray
    max_episodes: int
    delta: float

    @cached_property
    def grid(self) -> MultiplierGrid:
        """Λ, from the declared ranges."""
        gained = max(float(np.diff(self.world.reward_bounds[self.agent])[0]), 1e-12)
        spent = np.diff(self.world.cost_bounds, axis=1).reshape(-1)
        return MultiplierGrid(np.where(spent > 0, gained / np.where(spent > 0, spent, 1.0), 1.0))

    @cached_property
    def bets(self) -> FloatArray:
        """Bets for every row, fixed beforehand."""
        return fixed_bets(self.max_episodes, self.delta / self.grid.size)

    @property
    def num_states(self) -> int:
        """States that were met so far."""
        return len(self.first)

    def _entry_deltas(self, states: IntArray) -> FloatArray:
        """Return with what probability the ceiling of an entry of each of these states may miss: [rows]."""
        actions, horizon = self.world.num_actions[self.agent], self.world.horizon
        share = 0.5 * self.delta / (self.grid.size * horizon * actions)
        if self.world.num_states is not None:
            return np.full(len(states), share / self.world.num_states)
        return np.asarray(share / ((states + 1.0) * (states + 2.0)))

    def values(self, multipliers: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return min(Û_h, M_h) of each step [S], and what Û_h thinks of each action [S, A], untried ones included."""
        high = self.world.reward_bounds[self.agent, 1]
        stage = float(high - multipliers @ self.world.cost_bounds[:, 0])  # the largest w of a step
        horizon, actions = self.world.horizon, self.world.num_actions[self.agent]
        to_go, limit = np.zeros(self.num_states), 0.0
        found: list[FloatArray] = []
        choices: list[FloatArray] = []
        for h in reversed(range(horizon)):
            step, most = self.steps[h], stage + limit
            worth = np.full((self.num_states, actions), most)
            if len(step.states):
                future = np.where(step.following == ENDED, 0.0, to_go[np.maximum(step.following, 0)])
                seen = step.rewards - np.tensordot(multipliers, step.costs, axes=1) + future
                # Padding has no weight; a value above the largest possible one could only come from rounding.
                seen = np.where(step.counts > 0, np.minimum(seen, most), most)
                worth[step.states, step.actions] = mean_ceiling(
                    seen, step.counts, most=most, delta=self._entry_deltas(step.states), bets=self.bets
                )
            limit = max(most, 0.0) if self.world.may_end else most
            to_go = np.minimum(worth.max(axis=1), limit)
            found.append(to_go)
            choices.append(worth)
        return found[::-1], choices[::-1]

    def bound(self, multipliers: FloatArray) -> float:
        """Return λ·α + μ·Û_0, for λ of the grid."""
        values, _ = self.values(multipliers)
        fixed = float(multipliers @ self.world.thresholds)
        if self.world.initial is not None:
            law = np.zeros(self.num_states)
            law[: len(self.world.initial)] = self.world.initial
            return fixed + float(law @ values[0])
        high = self.world.reward_bounds[self.agent, 1]
        most = self.world.horizon * float(high - multipliers @ self.world.cost_bounds[:, 0])
        most = max(most, 0.0) if self.world.may_end else most
        first = np.minimum(values[0], most)[None]
        share = 0.5 * self.delta / self.grid.size
        return fixed + float(mean_ceiling(first, self.first[None], most=most, delta=share, bets=self.bets)[0])

    def least(self, near: FloatArray) -> Ceiling:
        """Return the least bound that a walk over Λ finds from the multipliers `near` [k]."""
        return self.grid.least(self.bound, near)

    def optimistic_policy(self, multipliers: FloatArray) -> FloatArray:
        """Return what looks best to an optimist at some multipliers: [H, S, A]; ties are shared."""
        _, choices = self.values(multipliers)
        tables = []
        for worth in choices:
            best = worth >= worth.max(axis=1, keepdims=True) - 1e-12 * np.abs(worth).max(initial=1.0)
            tables.append(best / best.sum(axis=1, keepdims=True))
        return np.stack(tables)

    @property
    def effort(self) -> Visited:
        """How much was tried of what was met, and how much it takes for bounds that say something.

        After n visits that all brought the same, a ceiling is still 1 − δ^(1/n) of the way from there to the largest
        possible value. Over H steps these shares add up: 1/(8H) each leave an eighth of the range, and the spread of
        what was seen is given as much.
        """
        actions, horizon = self.world.num_actions[self.agent], self.world.horizon
        met = [len(np.unique(step.states)) * actions for step in self.steps]
        visits = np.concatenate([step.counts.sum(axis=1) for step in self.steps])
        known = np.concatenate([step.states for step in self.steps])
        largest = max((float(step.rewards[step.counts > 0].max(initial=-np.inf)) for step in self.steps), default=0.0)
        share = float(np.median(self._entry_deltas(known)))
        return Visited(
            entries=sum(met),
            untried=sum(met) - len(visits),
            visits=int(np.median(visits)),
            needed=math.ceil(math.log(share) / math.log1p(-1 / (8 * horizon))),
            widest=max(met),
            largest_reward=largest,
        )
