"""Claims about recommendations: rotas, correlated policies and coarse ones; the check in floats and in rationals.

A **rota** draws one of the product policies π^1 … π^M with probabilities w, and announces which. With the same λ_i for
all modes, a deviation that knows the mode m, and keeps Σ_m w_m V^c ≤ α where it binds agent i, gains at most
    Σ_m w_m [λ_i·α + max V^{r_i − λ_i·c}(·, π^m_{−i}) − V^{r_i}(π^m)],
since Σ_m w_m λ_i·(α − V^c) ≥ 0 for it. So a rota is checked as its modes are, each at the same multipliers, and what
was found is averaged; that a single mode exceeds a threshold does not matter. An infinite λ_ij stands for a proof by
support of every mode: where each mode leaves nothing of α_j, no deviation spends more than the least in any of them.

A **correlated** policy draws a joint action a ~ π_h(·|s) afresh at every step, and shows agent i its own part b. The
state and b are a Markov state of what a deviation faces, so
    U_h(s) = Σ_b max_{a′} Σ_{a_{−i}} π_h(b, a_{−i}|s) [r_i − λ_i·c + P U_{h+1}](s, a′, a_{−i})
bounds every deviation, without dividing by the probability of b. A **coarse** claim lets a deviation choose, in each
state, between following unseen and an action of its own:
    U_h(s) = max(Σ_a π_h(a|s) […](s, a), max_{a′} Σ_a π_h(a|s) […](s, a′, a_{−i})).
Without the choice of following, lots drawn between following and deviating would not be covered.

Both need a shared state that every agent sees. With own-state policies a device that correlates actions makes the
agents' states dependent, so the own state and b are no Markov state: such a claim is refused, and a rota is what there
is. Rounding is that of `check`: all numbers are balls, and U is a float that is at least the upper end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.proof.check import (
    Checked,
    Most,
    StateValues,
    ahead_of,
    by_induction,
    chain,
    check,
    concluded,
    endless,
    for_ever,
    from_start,
)
from cmpg.proof.claim import (
    ROW_SUM_TOLERANCE,
    Claim,
    ClaimError,
    Csr,
    JointTables,
    LocalTables,
    at_step,
    uniform_policy,
)
from cmpg.proof.exact import (
    MAX_WORK,
    Budget,
    ExactlyChecked,
    ExactPlay,
    TooLarge,
    budgets,
    check_exactly,
    exact,
    exact_costs,
    matrix_row,
    uneven_rows,
)
from cmpg.proof.rounding import Array, Ball, Mixtures, Rows, exactly, rows_of, stacked
from cmpg.proof.verdict import MAX_DECIDING_WORK, Findings, exact_findings, findings


@dataclass(frozen=True, eq=False)
class RotaClaim:
    """Modes, which are claims about one game that differ in their policies alone, and how often each is drawn."""

    modes: tuple[Claim, ...]
    weights: Array  # [M]: positive; they stand for what they are divided by their exact sum

    def __post_init__(self) -> None:
        """Refuse modes of different games, or at different multipliers."""
        if not self.modes or self.weights.shape != (len(self.modes),):
            raise ClaimError(f"a rota of {len(self.modes)} modes has weights of shape {list(self.weights.shape)}.")
        if np.any(self.weights <= 0) or abs(float(self.weights.sum()) - 1) > ROW_SUM_TOLERANCE:
            raise ClaimError("the weights of a rota must be positive, and sum to one.")
        first = self.modes[0]
        for m, mode in enumerate(self.modes):
            same = mode.tables is first.tables and (mode.horizon, mode.discount) == (first.horizon, first.discount)
            if not (same and np.array_equal(mode.thresholds, first.thresholds)):
                raise ClaimError(f"mode {m} of the rota is of another game than mode 0.")
            if not np.array_equal(mode.binds, first.binds):
                raise ClaimError(f"mode {m} of the rota has constraints that bind other agents than those of mode 0.")
            if not np.array_equal(mode.multipliers, first.multipliers):
                # Each could be an equilibrium at its own price, and an agent would still gain by spending more in one.
                raise ClaimError(f"mode {m} of the rota is claimed at other multipliers than mode 0.")


@dataclass(frozen=True, eq=False)
class CorrelatedClaim:
    """A game on a shared state, a law of joint actions for each step and state, and multipliers."""

    tables: JointTables
    horizon: int | None  # exactly one of the two is given
    discount: Any
    thresholds: Array  # [k]
    binds: Array  # [n, k]
    policy: Array  # [H, S, *A]
    multipliers: Array  # [n, k]; finite
    coarse: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no such claim, with the reason."""
        if isinstance(self.tables, LocalTables):
            raise ClaimError(
                "recommendations of single actions need a state that every agent sees; with own-state policies they "
                "would make the agents' states depend on each other. Use a rota."
            )
        if not isinstance(self.tables, JointTables):
            raise ClaimError("a correlated policy is a law of joint actions, which needs tables over joint actions.")
        shape = self.tables.rewards.shape[2:]
        steps = 1 if self.horizon is None else self.horizon
        if self.policy.shape != (steps, *shape):
            raise ClaimError(f"policy has shape {list(self.policy.shape)}; {[steps, *shape]} is required.")
        if not np.isfinite(np.asarray(self.multipliers, dtype=np.float64)).all():
            raise ClaimError("multipliers has an entry that is not finite; there is no proof by support here.")
        flat = self.policy.reshape(-1, int(np.prod(shape[1:])))
        if np.any(flat < 0) or np.any(np.abs(flat.sum(axis=1) - 1) > ROW_SUM_TOLERANCE):
            raise ClaimError("policy has a row that is no probability distribution over joint actions.")
        # Everything else is checked as it is for a claim about a product policy.
        policy = uniform_policy(self.tables, steps)
        Claim(self.tables, self.horizon, self.discount, self.thresholds, self.binds, policy, self.multipliers)

    @property
    def steps(self) -> int:
        """The length of the policy's step axis."""
        return len(self.policy)


RecommendationClaim = RotaClaim | CorrelatedClaim


def judge_recommendation(claim: RecommendationClaim) -> Findings:
    """Judge a claim whose tables hold floats."""
    found = check_rota(claim) if isinstance(claim, RotaClaim) else check_correlated(claim)
    limits = claim.modes[0].thresholds if isinstance(claim, RotaClaim) else claim.thresholds
    return findings(found, limits, lambda: _affordable_costs(claim))


def judge_recommendation_exactly(claim: RecommendationClaim) -> Findings:
    """Judge a claim in rationals, or raise `TooLarge`."""
    if isinstance(claim, RotaClaim):
        return exact_findings(_rota_exactly(claim), claim.modes[0].thresholds)
    return exact_findings(_CorrelatedGame(claim, Budget(MAX_WORK)).checked(), claim.thresholds)


def _affordable_costs(claim: RecommendationClaim) -> list[Fraction] | None:
    """Return what is spent exactly; None where that takes long."""
    try:
        if isinstance(claim, CorrelatedClaim):
            return _CorrelatedGame(claim, Budget(MAX_DECIDING_WORK)).costs()
        return _averaged(claim, [exact_costs(mode, max_work=MAX_DECIDING_WORK) for mode in claim.modes])
    except TooLarge:
        return None


# --- Rotas ------------------------------------------------------------------------------------------------------------


def check_rota(claim: RotaClaim) -> Checked:
    """Check the modes, and average what was found."""
    found = [check(mode) for mode in claim.modes]
    with np.errstate(all="ignore"):
        shares = Rows(claim.weights[None])
        values, costs = (
            shares.mean(stacked(each))[0] for each in zip(*((f.values, f.costs) for f in found), strict=True)
        )
        bounds = shares.mean(exactly(np.stack([each.bounds for each in found])))[0]
        most = np.where(np.isnan(bounds.upper), np.inf, bounds.upper)
        gaps = exactly(most) - values
        # A mode's own gap may be negative: what it leaves of the budget is not lost to the others.
        gains = np.where(np.isnan(gaps.upper), np.inf, np.maximum(gaps.upper, 0.0))
        raised = shares.mean(exactly(np.stack([each.rounding for each in found])))[0].upper + bounds.rad + values.rad
    kept = [_kept([each.kept[j] for each in found]) for j in range(len(costs.mid))]
    return Checked(values, most, costs, gains, np.minimum(np.nan_to_num(raised, nan=np.inf), gains), tuple(kept))


def _kept(modes: Sequence[bool | None]) -> bool | None:
    """Whether a threshold of which no mode leaves anything is kept; None unless the support tells it of all modes."""
    if None in modes:
        return None
    return all(each is True for each in modes)


def _rota_exactly(claim: RotaClaim) -> ExactlyChecked:
    found = [check_exactly(mode) for mode in claim.modes]
    agents = range(len(found[0].values))
    bounds: list[Fraction | None] = []
    for i in agents:
        each = [mode.bounds[i] for mode in found]
        proved = [bound for bound in each if bound is not None]
        bounds.append(_averaged(claim, [[bound] for bound in proved])[0] if len(proved) == len(each) else None)
    return ExactlyChecked(
        values=_averaged(claim, [mode.values for mode in found]),
        bounds=bounds,
        costs=_averaged(claim, [mode.costs for mode in found]),
        rescaled=max(mode.rescaled for mode in found) + int(sum(map(exact, claim.weights.tolist())) != 1),
    )


def _averaged(claim: RotaClaim, rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """Return the weighted averages of numbers, one row for each mode."""
    weights = [exact(each) for each in claim.weights.tolist()]
    total = sum(weights)
    return [
        sum((w * x for w, x in zip(weights, column, strict=True)), Fraction(0)) / total
        for column in zip(*rows, strict=True)
    ]


# --- Correlated policies, in floats -----------------------------------------------------------------------------------


def check_correlated(claim: CorrelatedClaim) -> Checked:
    """Bound what every agent could gain by not doing as it is recommended."""
    with np.errstate(all="ignore"):
        game = _Recommended(claim)
        if claim.discount is None:
            shape = game.states, *claim.multipliers.shape
            found = by_induction(lambda step: _Shown(game, step), claim.steps, shape)
        else:
            found = game.for_ever()
        initial, multipliers = claim.tables.initial, claim.multipliers
        values, costs, limits, raised = from_start(found, initial, multipliers, claim.thresholds)
        return concluded(values, limits.upper, raised, costs, (None,) * len(claim.thresholds))


class _Recommended:
    """A joint game whose joint actions a device draws."""

    def __init__(self, claim: CorrelatedClaim) -> None:
        self.claim, self.shape = claim, claim.tables.rewards.shape[2:]
        self.states, self.actions = self.shape[0], self.shape[1:]
        self.moves = rows_of(claim.tables.transition)
        self.laws = [Mixtures(table.reshape(self.states, -1)) for table in claim.policy]

    def for_ever(self) -> StateValues:
        """Bound discounted sums by residuals, as `check` does: v comes from policy iteration, and is not believed."""
        discount = float(self.claim.discount)
        stage = _Shown(self, 0, discount)
        everywhere = np.ones(self.states, dtype=bool)
        held = for_ever(stage, chain(self.moves[0], self.laws[0].table), everywhere, discount)
        agents = range(len(self.claim.multipliers))
        best, raised = np.stack([self.likely_best(i) for i in agents], axis=1), np.zeros(len(agents))
        for i in agents:
            # For any v with T v ≤ v + ρ the maximum is at most v + ρ / (1 − γ).
            after = exactly(stage.most(i, stage.ahead(exactly(best[:, [i]]))[..., 0]).upper)
            residual = max(float((after - exactly(best[:, i])).upper.max()), 0.0)
            raised[i] = endless(np.array(residual), discount)
            best[:, i] = (exactly(best[:, i]) + exactly(raised[i])).upper
        return StateValues(best, held, raised)

    def likely_best(self, agent: int) -> Array:
        """Return about what one agent can get from each state [S]. It proves nothing."""
        claim, discount = self.claim, float(self.claim.discount)
        prices = np.asarray(claim.multipliers[agent], dtype=np.float64)
        stage = np.asarray(claim.tables.rewards[agent, 0], dtype=np.float64).reshape(self.states, -1)
        stage = stage - np.tensordot(prices, claim.tables.costs[:, 0].reshape(len(prices), *stage.shape), axes=1)
        law, own = self.laws[0].table, self.actions[agent]
        by_own = np.moveaxis(law.reshape(self.shape), 1 + agent, 1).reshape(self.states, own, -1)  # [S, b, rest]
        ahead, value = self.moves[0], np.zeros(self.states)
        for _ in range(100):
            worth = stage + discount * ahead.mean(exactly(value)).mid.reshape(stage.shape)
            worths = np.moveaxis(worth.reshape(self.shape), 1 + agent, 1).reshape(self.states, own, -1)
            replies = np.einsum("sbr,sar->sba", by_own, worths)
            if claim.coarse:
                blind, follows = replies.sum(axis=1), (law * worth).sum(axis=1)
                chosen = np.repeat(blind.argmax(axis=1)[:, None], own, axis=1)
                chosen = np.where((follows >= blind.max(axis=1))[:, None], np.arange(own), chosen)
            else:
                chosen = replies.argmax(axis=2)
            moved = np.zeros_like(worths)
            for b in range(own):
                np.add.at(moved, (np.arange(self.states), chosen[:, b]), by_own[:, b])
            outcomes = np.moveaxis(moved.reshape(self.states, own, *np.delete(self.actions, agent)), 1, 1 + agent)
            outcomes = outcomes.reshape(stage.shape)
            better = np.linalg.solve(
                np.eye(self.states) - discount * chain(self.moves[0], outcomes), (outcomes * stage).sum(axis=1)
            )
            if np.all(better <= value + 1e-14 * (1 + np.abs(better).max())) and np.any(value):
                break
            value = better
        return value


class _Shown:
    """One step of the game: what agents may do with what they are shown."""

    def __init__(self, game: _Recommended, step: int, discount: float = 1.0) -> None:
        claim = game.claim
        self._game, self._law, self._coarse = game, game.laws[step], claim.coarse
        self._moves, self._discount = at_step(game.moves, step), discount
        self.multipliers = claim.multipliers
        tables = [*claim.tables.rewards, *claim.tables.costs]
        self._stage = [exactly(at_step(each, step).reshape(game.states, -1)) for each in tables]  # n + k of [S, ΠA]

    def ahead(self, table: Ball) -> Ball:
        """Return what is expected of a table [S, m] at the next step, by joint action: [S, ΠA, m]."""
        return ahead_of(self._moves, table, self._discount)

    def most(self, agent: int, ahead: Ball) -> Most:
        """Return what an agent can get at most from each state, whatever it does about its recommendation."""
        worth, own = self._stage[agent] + ahead, self.multipliers[agent]
        for j in np.flatnonzero(own):
            worth = worth - self._stage[len(self.multipliers) + j] * exactly(own[j])
        replies = self._replies(agent, worth)
        if not self._coarse:
            total = exactly(replies.upper.max(axis=2)).sum(axis=1)
            return Most(total.upper, float((total.rad + replies.rad.max(axis=2).sum(axis=1)).max()))
        followed, blind = self._law.over(worth), replies.sum(axis=1)
        most = np.maximum(followed.upper, blind.upper.max(axis=1))
        return Most(most, float(max(followed.rad.max(), blind.rad.max())))

    def followed(self, ahead: Ball) -> Ball:
        """Return what is got and paid from this step on [S, n + k], by the same after it [S, ΠA, n + k]."""
        return self._law.over(stacked(self._stage, axis=2) + ahead)

    def _replies(self, agent: int, worth: Ball) -> Ball:
        """Return Σ_{a_{−i}} π(b, a_{−i}|s)·worth(s, a′, a_{−i}): [S, b, a′]."""
        shape, own = self._game.shape, self._game.actions[agent]
        weights, worths = (
            each.reshape(*shape).moveaxis(1 + agent, 1).reshape(shape[0], own, -1) for each in (self._law.ball, worth)
        )
        return (weights[:, :, None, :] * worths[:, None, :, :]).sum(axis=3)


# --- Correlated policies, in rationals --------------------------------------------------------------------------------


class _CorrelatedGame:
    """A joint game whose joint actions a device draws, in rationals."""

    def __init__(self, claim: CorrelatedClaim, budget: Budget) -> None:
        self.claim, self.tables, self.budget = claim, claim.tables, budget
        self.shape = claim.tables.rewards.shape[2:]
        self.states = self.shape[0]
        self.laws = [
            [matrix_row(law, s) for s in range(self.states)]
            for law in claim.policy.reshape(len(claim.policy), self.states, -1)
        ]
        discount = None if claim.discount is None else exact(claim.discount)
        self.play = ExactPlay(claim.tables, claim.steps, discount, self.drawn, budget)

    def drawn(self, step: int, state: int) -> list[tuple[int, Fraction]]:
        """Return how likely each joint action is."""
        law = self.laws[step][state]
        return [(outcome, Fraction(weight, law.total)) for outcome, weight in law.entries]

    def checked(self) -> ExactlyChecked:
        """Return values, bounds and costs."""
        agents = range(len(self.claim.multipliers))
        uneven = uneven_rows([self.tables], [table.reshape(self.states, -1) for table in self.claim.policy])
        values = list(map(self.sum_of, self.tables.rewards))
        return ExactlyChecked(values, [self.bound(i) for i in agents], self.costs(), uneven)

    def costs(self) -> list[Fraction]:
        """Return V^{c_j}."""
        return list(map(self.sum_of, self.tables.costs))

    def sum_of(self, table: Array) -> Fraction:
        """Return what a table [H or 1, S, *A] adds up to along the play."""

        def mean(step: int, state: int) -> Fraction:
            stage = at_step(table, step)[state]
            return sum((p * exact(stage.flat[outcome]) for outcome, p in self.drawn(step, state)), Fraction(0))

        return self.play.expected(mean)

    def bound(self, agent: int) -> Fraction:
        """Return what one agent could get at most by a deviation that meets the thresholds."""
        claim = self.claim
        prices = [exact(each) for each in claim.multipliers[agent].tolist()]
        total = budgets(prices, claim.thresholds)
        if claim.discount is None:
            ahead = [Fraction(0)] * self.states
            for step in reversed(range(claim.steps)):
                ahead = [self._best(step, s, agent, prices, ahead, Fraction(1)) for s in range(self.states)]
            return total + self.play.at_start(lambda s: ahead[s])
        discount = exact(claim.discount)
        with np.errstate(all="ignore"):
            near = _Recommended(_in_floats(claim)).likely_best(agent)
        # Any v proves something; where floats overflow, zero does.
        values = [Fraction(float(each)) if np.isfinite(each) else Fraction(0) for each in near]
        after = [self._best(0, s, agent, prices, values, discount) for s in range(self.states)]
        residual = max(max(new - old for new, old in zip(after, values, strict=True)), Fraction(0))
        return total + self.play.at_start(lambda s: values[s]) + residual / (1 - discount)

    def _best(
        self, step: int, state: int, agent: int, prices: list[Fraction], ahead: Sequence[Fraction], discount: Fraction
    ) -> Fraction:
        """Return U_h(s), division-free."""
        tables, own = self.claim.tables, self.shape[1 + agent]
        worth: dict[int, Fraction] = {}

        def of(outcome: int) -> Fraction:
            if outcome not in worth:
                found = exact(at_step(tables.rewards[agent], step)[state].flat[outcome])
                for price, table in zip(prices, tables.costs, strict=True):
                    if price:
                        found -= price * exact(at_step(table, step)[state].flat[outcome])
                row = self.play.moves(step, state, outcome)
                self.budget.spend(len(row.entries), max(ahead[target].denominator for target, _ in row.entries))
                later = sum((w * ahead[target] for target, w in row.entries), Fraction(0)) / row.total
                worth[outcome] = found + discount * later
            return worth[outcome]

        replies = [[Fraction(0)] * own for _ in range(own)]
        for outcome, p in self.drawn(step, state):
            joint = [int(a) for a in np.unravel_index(outcome, self.shape[1:])]
            shown = joint[agent]
            for action in range(own):
                joint[agent] = action
                replies[shown][action] += p * of(int(np.ravel_multi_index(joint, self.shape[1:])))
        if not self.claim.coarse:
            return sum((max(row) for row in replies), Fraction(0))
        followed = sum((row[b] for b, row in enumerate(replies)), Fraction(0))
        return max(followed, *(sum((row[a] for row in replies), Fraction(0)) for a in range(own)))


def _in_floats(claim: CorrelatedClaim) -> CorrelatedClaim:
    """Return a claim rounded to floats, to search with."""

    def rounded(table: Any) -> Any:
        return table._replace(data=rounded(table.data)) if isinstance(table, Csr) else np.asarray(table, dtype=float)

    tables = claim.tables
    return CorrelatedClaim(
        JointTables(
            rounded(tables.initial),
            tuple(map(rounded, tables.transition)),
            rounded(tables.rewards),
            rounded(tables.costs),
        ),
        claim.horizon,
        None if claim.discount is None else float(claim.discount),
        rounded(claim.thresholds),
        claim.binds,
        rounded(claim.policy),
        rounded(claim.multipliers),
        claim.coarse,
    )
