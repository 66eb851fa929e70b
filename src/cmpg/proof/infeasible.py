"""Proofs that no policy meets all thresholds, of a game with a horizon: what λ·c costs at least, whatever agents do.

If even agents who choose their actions together pay more than λ·α for λ·c, no policy is feasible. On a shared state the
least is found by backward induction over all outcomes, joint actions or classes of counts:
    L_h(s) = min_o λ·c_h(s, o) + P_h(s, o) L_{h+1}.
In local games it is bounded by prices y, one for each resource and step. If m users meet at (h, e), then
    Σ λ·g_{h,e}(m_{h,e}) ≥ Σ min_m (λ·g_{h,e}(m) − y_{h,e} m) + Σ y_{h,e} m_{h,e},
and the last sum is what agents pay who are charged y for every use, each of whom is bounded alone. Multipliers λ ≥ 0
and prices may come from anywhere: bad ones make the bound loose, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.proof.claim import Claim, ClaimError, CountingTables, JointTables, LocalTables, at_step, uniform_policy
from cmpg.proof.exact import exact, matrix_row
from cmpg.proof.rounding import Array, Ball, Rows, exactly, rows_of


@dataclass(frozen=True, eq=False)
class InfeasibilityClaim:
    """A game, and what proves that no policy of it is feasible."""

    tables: JointTables | CountingTables | LocalTables
    horizon: int
    thresholds: Array  # [k]
    multipliers: Array  # [k]
    prices: Array | None = None  # [H, E], of a local game; None: zeros

    def __post_init__(self) -> None:
        constraints = len(self.thresholds)
        policy = uniform_policy(self.tables, self.horizon)
        binds = np.ones((len(policy), constraints), dtype=bool)
        Claim(self.tables, self.horizon, None, self.thresholds, binds, policy, np.zeros(binds.shape))  # is it a game?
        if not constraints:
            raise ClaimError("a game without constraints has a feasible policy.")
        if self.multipliers.shape != (constraints,) or not all(0 <= each < np.inf for each in self.multipliers):
            raise ClaimError(f"multipliers: {constraints} finite numbers of at least zero are required.")
        if self.prices is not None:
            if not isinstance(self.tables, LocalTables):
                raise ClaimError("prices are for local games.")
            shape = (self.horizon, self.tables.delay.shape[1])
            if self.prices.shape != shape or not all(-np.inf < each < np.inf for each in self.prices.flat):
                raise ClaimError(f"prices: finite numbers of shape {list(shape)} are required.")


def proves_infeasible(claim: InfeasibilityClaim) -> bool:
    """Whether a claim in floats is proved: its least λ·c, rounded down, is more than its λ·α, rounded up."""
    least, limit = bounds(claim)
    return least > limit


def bounds(claim: InfeasibilityClaim) -> tuple[float, float]:
    """Return what λ·c costs at least, rounded down, and λ·α, rounded up."""
    with np.errstate(all="ignore"):  # what overflows is not finite, and proves nothing
        limit = float((exactly(claim.multipliers) * exactly(claim.thresholds)).sum().upper)
        parts = [each.lower for each in _parts(claim, _Floats(claim))]
        least = float(exactly(np.array(parts)).sum().lower)
    return (-np.inf if np.isnan(least) else least), (np.inf if np.isnan(limit) else limit)


def exact_bounds(claim: InfeasibilityClaim) -> tuple[Fraction, Fraction]:
    """Return what λ·c costs at least, and λ·α, in rationals."""
    pairs = zip(claim.multipliers.tolist(), claim.thresholds.tolist(), strict=True)
    limit = sum((exact(price) * exact(each) for price, each in pairs), Fraction(0))
    return sum(_parts(claim, _Rationals(claim)), Fraction(0)), limit


def _parts(claim: InfeasibilityClaim, numbers: _Floats | _Rationals) -> list[Any]:
    """Return numbers whose sum λ·c is never below: of local games, one for each agent and each step."""
    tables, steps = claim.tables, claim.horizon
    if not isinstance(tables, LocalTables):
        kept = _classes(tables) if isinstance(tables, CountingTables) else slice(None)

        def stage(step: int) -> Any:
            return numbers.weighed([at_step(table, step).ravel() for table in tables.costs])

        return [numbers.least(tables.initial, tables.transition, stage, steps, kept)]
    found = [numbers.meetings([at_step(table, step) for table in tables.load_costs], step) for step in range(steps)]
    for agent in tables.agents:

        def own(step: int, agent: Any = agent) -> Any:
            private = [] if agent.costs is None else [at_step(table, step).ravel() for table in agent.costs]
            return numbers.charged(private, at_step(agent.uses, step), step)

        found.append(numbers.least(agent.initial, agent.transition, own, steps, slice(None)))
    return found


def _classes(tables: CountingTables) -> Any:
    """Return the classes that counts can be in: the largest of A counts of n agents is at least n/A."""
    if tables.boundaries is None:
        return slice(None)
    agents, actions = len(tables.private_rewards), tables.rewards.shape[2]
    largest = range(-(-agents // actions), agents + 1) if actions > 1 else [agents]
    return sorted({sum(most > boundary for boundary in tables.boundaries) for most in largest})


class _Floats:
    """Balls, whose lower ends are carried backwards."""

    def __init__(self, claim: InfeasibilityClaim) -> None:
        self.claim = claim

    def weighed(self, tables: Sequence[Array]) -> Ball:
        total = exactly(np.zeros(tables[0].shape))
        for price, table in zip(self.claim.multipliers, tables, strict=True):
            total = total + exactly(price) * exactly(table) if price else total
        return total

    def charged(self, private: Sequence[Array], uses: Any, step: int) -> Ball:
        paid = self.weighed(private) if private else exactly(np.zeros(len(uses.indptr) - 1))
        if self.claim.prices is None:
            return paid
        return paid + rows_of([uses], support=True)[0].mean(exactly(self.claim.prices[step][:, None]))[:, 0]

    def meetings(self, tables: Sequence[Array], step: int) -> Ball:
        costs = self.weighed(tables)  # [E, n + 1]
        if self.claim.prices is not None:
            users = np.arange(costs.mid.shape[1], dtype=np.float64)
            costs = costs - exactly(self.claim.prices[step][:, None]) * exactly(users[None])
        return exactly(costs.lower.min(axis=1)).sum()

    def least(self, initial: Array, matrices: Any, stage: Callable[[int], Any], steps: int, kept: Any) -> Ball:
        rows, ahead = rows_of(matrices), np.zeros(len(initial))
        for step in reversed(range(steps)):
            worth = stage(step) + at_step(rows, step).mean(exactly(ahead[:, None]))[:, 0]
            ahead = worth.lower.reshape(len(initial), -1)[:, kept].min(axis=1)
        return Rows(initial[None]).mean(exactly(ahead[:, None]))[0, 0]


class _Rationals:
    """The same in Fractions."""

    def __init__(self, claim: InfeasibilityClaim) -> None:
        self.claim = claim
        self.multipliers = [exact(each) for each in claim.multipliers.tolist()]

    def weighed(self, tables: Sequence[Array]) -> Array:
        total = np.full(tables[0].shape, Fraction(0), dtype=object)
        for price, table in zip(self.multipliers, tables, strict=True):
            total = total + price * np.vectorize(exact, otypes=[object])(table)
        return total

    def charged(self, private: Sequence[Array], uses: Any, step: int) -> Array:
        paid = self.weighed(private) if private else np.full(len(uses.indptr) - 1, Fraction(0), dtype=object)
        if self.claim.prices is not None:
            prices = [exact(each) for each in self.claim.prices[step].tolist()]
            for row in range(len(paid)):
                paid[row] += sum(
                    (prices[e] for e in uses.indices[uses.indptr[row] : uses.indptr[row + 1]]), Fraction(0)
                )
        return paid

    def meetings(self, tables: Sequence[Array], step: int) -> Fraction:
        costs = self.weighed(tables)
        if self.claim.prices is not None:
            prices = np.array([exact(each) for each in self.claim.prices[step].tolist()], dtype=object)
            costs = costs - prices[:, None] * np.arange(costs.shape[1])[None]
        return sum((min(row) for row in costs.tolist()), Fraction(0))

    def least(self, initial: Array, matrices: Any, stage: Callable[[int], Any], steps: int, kept: Any) -> Fraction:
        ahead = [Fraction(0)] * len(initial)
        for step in reversed(range(steps)):
            worth, matrix = stage(step), at_step(matrices, step)
            for row in range(len(worth)):
                moves = matrix_row(matrix, row)
                worth[row] += (
                    sum((weight * ahead[target] for target, weight in moves.entries), Fraction(0)) / moves.total
                )
            ahead = [min(row) for row in worth.reshape(len(initial), -1)[:, kept].tolist()]
        start = matrix_row(initial[None], 0)
        return sum((weight * ahead[state] for state, weight in start.entries), Fraction(0)) / start.total
