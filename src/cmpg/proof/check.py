"""The check of a claim in floats. It uses numpy alone: no solver, no cache, no compiled code of this library.

For any λ_i ≥ 0, weak duality bounds what agent i could get by any deviation that meets the thresholds,
    gain_i ≤ λ_i·α + max_π V^{r_i − λ_i·c}(π, π_{−i}) − V^{r_i}(π_i, π_{−i}),
and the maximum is found by backward induction. An infinite λ_ij stands for a proof by support (`support`): constraint j
is left out, and actions are forbidden instead. The claim is proved if every threshold is met and every bound is at
most ε.

Rounding. All numbers are balls (`rounding`), so every quantity below comes with a bound on its error:

- U_h(s) is a float that is at least the upper end of r − λ·c + P U_{h+1} for every action that is allowed. By induction
  U_h ≥ max V_h, whatever the rounding of the steps before: the proof is the inequality, not the way to it.
- V^{r_i} and V^{c_j} of the policy are balls that are carried backwards; in local games forwards, as occupancies.
- Discounted sums: rows sum to one exactly, so for any table w and r = T w − w, where T is the operator of Bellman,
  max V ≤ w + max r / (1 − γ); and the value of the policy lies in w + [min r, max r] / (1 − γ), with the residual r of
  its own operator over the states that it may come to. So w may come from anywhere: here from policy iteration in
  floats, of which nothing is believed. r is taken from the ends of balls, whose radii have the size of w. With w the
  values themselves, r is zero where floats hold them exactly; with w centred about zero, it is as large as one step
  and the span of w, and rounding costs 1 / (1 − γ) instead of its square. The tighter one of the two counts.

Where the ball of a cost holds its threshold, floats leave open whether it is met; `exact` may decide then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from cmpg.proof.claim import Claim, JointTables, LocalTables, at_step
from cmpg.proof.local import check_local
from cmpg.proof.rounding import UNIT, Array, Ball, Rows, exactly, split, stacked
from cmpg.proof.shared import Counting, Joint, Shared
from cmpg.proof.support import closure, forbidden, whole


@dataclass(frozen=True, eq=False)
class Checked:
    """What was found out about a claim; gains and costs are bounds that hold in exact arithmetic."""

    values: Ball  # [n]
    bounds: Array  # [n]: what each agent could get at most
    costs: Ball  # [k]
    gains: Array  # [n]
    rounding: Array  # [n]: how much of each gain is an allowance for rounding, at most
    kept: tuple[bool | None, ...]  # [k]: whether the support of the policy keeps a threshold; None: it does not tell


def check(claim: Claim) -> Checked:
    """Judge a claim whose tables hold floats."""
    with np.errstate(all="ignore"):  # what overflows is not finite, and proves nothing
        return concluded(*(check_local(claim) if isinstance(claim.tables, LocalTables) else _check_shared(claim)))


def concluded(values: Ball, bounds: Array, raised: Array, costs: Ball, kept: tuple[bool | None, ...]) -> Checked:
    """Return what follows of gains, given by how much rounding raised each bound: [n]."""
    gaps = exactly(bounds) - values
    gains = np.maximum(gaps.upper, 0.0)
    rounding = np.minimum(raised + (gains - np.maximum(gaps.mid, 0.0)), gains)
    gains, bounds, rounding = (np.where(np.isnan(each), np.inf, each) for each in (gains, bounds, rounding))
    return Checked(values, bounds, costs, gains, rounding, kept)


def _check_shared(claim: Claim) -> tuple[Ball, Array, Array, Ball, tuple[bool | None, ...]]:
    """Return values [n], bounds [n] and by how much rounding raised them, costs [k], and what the support keeps."""
    game: Shared = Joint(claim) if isinstance(claim.tables, JointTables) else Counting(claim)
    hard = claim.multipliers == np.inf
    multipliers = np.where(hard, 0.0, claim.multipliers)
    closed, kept = closed_shared(claim, game, hard)
    if claim.discount is None:
        shape = len(game.initial), *multipliers.shape
        found = by_induction(lambda step: Stage(game, step, multipliers, closed), claim.steps, shape)
    else:
        found = _discounted(claim, game, multipliers, closed)
    values, costs, limits, raised = from_start(found, game.initial, multipliers, claim.thresholds)
    lost = np.array([mask is None or np.any(mask[0].all(axis=1) & (game.initial > 0)) for mask in closed])
    return values, np.where(lost, np.inf, limits.upper), raised, costs, kept


class Steps(Protocol):
    """One step of a play: what comes after it, what agents can get from it at most, and what is played."""

    multipliers: Array  # [n, k]: finite

    def ahead(self, table: Ball) -> Ball:
        """Return what is expected of a table [S, m] at the next step, by outcome: [S, O, m]."""

    def most(self, agent: int, ahead: Ball) -> Most:
        """Return what an agent can get at most from each state, by what follows each outcome [S, O]."""

    def followed(self, ahead: Ball) -> Ball:
        """Return what is got and paid from this step on [S, n + k], by the same after it [S, O, n + k]."""


class Most(NamedTuple):
    """What an agent can get at most from each state, and how much of that rounding adds."""

    upper: Array  # [S]
    rounding: float


class StateValues(NamedTuple):
    """What each agent can get at most, what is got and paid, by state, and by how much rounding raised the former."""

    best: Array  # [S, n]
    current: Ball  # [S, n + k]
    raised: Array  # [n]


def by_induction(stage_at: Callable[[int], Steps], steps: int, shape: tuple[int, int, int]) -> StateValues:
    """Sum over steps, backwards; the shape is S, n, k."""
    states, agents, constraints = shape
    found = StateValues(np.zeros((states, agents)), exactly(np.zeros((states, agents + constraints))), np.zeros(agents))
    for step in reversed(range(steps)):
        stage, (best, current, raised) = stage_at(step), found
        # What is best is a float that is at least the true maximum, and needs no radius; what is played is a ball.
        ahead = stage.ahead(Ball(np.hstack([best, current.mid]), np.hstack([0 * best, current.rad])))
        most = [stage.most(i, ahead[..., i]) for i in range(agents)]
        upper = np.stack([each.upper for each in most], axis=1)
        found = StateValues(upper, stage.followed(ahead[..., agents:]), raised + [each.rounding for each in most])
    return found


def from_start(
    found: StateValues, initial: Array, multipliers: Array, thresholds: Array
) -> tuple[Ball, Ball, Ball, Array]:
    """Return values [n], costs [k], what each agent can get at most within its budgets [n], and its rounding [n]."""
    start = Rows(initial[None])
    totals, most = start.mean(found.current)[0], start.mean(exactly(found.best))[0]
    limits = with_budgets(most, multipliers, thresholds)
    agents = len(multipliers)
    return totals[:agents], totals[agents:], limits, found.raised + limits.rad


def with_budgets(values: Ball, multipliers: Array, thresholds: Array) -> Ball:
    """Return values [n] and λ_i·α."""
    found = []
    for value, own in zip(split(values), multipliers, strict=True):
        for price, limit in zip(own, thresholds, strict=True):
            value = value + exactly(price) * exactly(limit)
        found.append(value)
    return stacked(found)


class Stage:
    """One step of a game: the expected rewards and the costs, and what comes after them."""

    def __init__(
        self, game: Shared, step: int, multipliers: Array, closed: Sequence[Any], discount: float = 1.0
    ) -> None:
        """Read the tables of a step h; γ, or one."""
        self._game, self._step, self._discount = game, step, discount
        self.multipliers, self._closed = multipliers, closed
        self._mixtures = game.mixtures[step]
        self._costs = exactly(np.moveaxis(game.costs(step), 0, -1))  # [S, O, k]
        self._rewards = [game.reward(step, i) for i in range(len(self._mixtures))]  # n of [S, A_i]

    def ahead(self, table: Ball) -> Ball:
        """Return what is expected of a table [S, m] at the next step, by outcome: [S, O, m]."""
        return ahead_of(at_step(self._game.moves, self._step), table, self._discount)

    def worth(self, agent: int, ahead: Ball, *, charged: bool = True) -> Ball:
        """Return what each action of one agent is worth [S, A_i], by what follows each outcome [S, O]; λ·c is charged.

        The multipliers are zero where a proof is by support.
        """
        own = self.multipliers[agent]
        for j in np.flatnonzero(own) if charged else ():
            ahead = ahead - self._costs[..., j] * exactly(own[j])
        return self._rewards[agent] + self._game.average(self._step, agent, ahead[..., None])[..., 0]

    def most(self, agent: int, ahead: Ball) -> Most:
        """Return the greatest of what is allowed in each state; zero where nothing is: no play comes there."""
        worth, closed = self.worth(agent, ahead), self._closed[agent]
        if closed is None:  # the claim is not true, and this agent's bound is infinite in the end
            return Most(np.zeros(len(worth.mid)), float(worth.rad.max()))
        shut = closed[self._step]
        upper = np.where(shut.all(axis=1), 0.0, np.where(shut, -np.inf, worth.upper).max(axis=1))
        return Most(upper, float(worth.rad.max()))

    def paid(self, constraint: int, ahead: Ball) -> Ball:
        """Return what a constraint pays from this step on under the policy [S], by what follows each outcome [S, O]."""
        total = (self._costs[..., constraint] + ahead)[..., None]
        return self._mixtures[0].over(self._game.average(self._step, 0, total)[..., 0])

    def followed(self, ahead: Ball) -> Ball:
        """Return what the policy gets and costs from this step on [S, n + k], by the same after it [S, O, n + k]."""
        agents, own = len(self._mixtures), self._mixtures[0]
        totals = [rows.over(reward) for rows, reward in zip(self._mixtures, self._rewards, strict=True)]
        spent = own.over(self._game.average(self._step, 0, ahead[..., :agents]))
        paid = own.over(self._game.average(self._step, 0, ahead[..., agents:] + self._costs))
        now = spent + stacked(totals, axis=1)
        return Ball(np.hstack([now.mid, paid.mid]), np.hstack([now.rad, paid.rad]))


def ahead_of(moves: Rows, table: Ball, discount: float) -> Ball:
    """Return γ times what is expected of a table [S, m] after each outcome: [S, O, m]."""
    mean = moves.mean(table)
    return (mean if discount == 1 else mean * exactly(discount)).reshape(len(table.mid), -1, table.mid.shape[1])


def _discounted(claim: Claim, game: Shared, multipliers: Array, closed: list[Any]) -> StateValues:
    """Sum for ever."""
    discount, agents = float(claim.discount), len(claim.policy)
    own = [rows.table for rows in game.mixtures[0]]
    stage = Stage(game, 0, multipliers, closed, discount)
    reached = _reached(claim, game, discount)[0]
    kept = for_ever(stage, chain(game.moves[0], _played(game, 0, own[0])), reached, discount)
    best, raised = np.zeros((len(own[0]), agents)), np.zeros(agents)
    for i, (rows, mask) in enumerate(zip(own, closed, strict=True)):
        shut = np.zeros(rows.shape, dtype=bool) if mask is None else mask[0]
        used = ~shut.all(axis=1)
        bounds = []

        def worth_of(table: Array, agent: int = i) -> Ball:
            return stage.worth(agent, stage.ahead(exactly(table[:, None]))[..., 0])

        for table in _policy_iteration(game, discount, i, shut, worth_of):
            worth = worth_of(table) - exactly(table[:, None])
            above = np.where(shut, -np.inf, worth.upper)[used]
            about = np.where(shut, -np.inf, worth.mid)[used].max(axis=1)
            most = endless(above.max(initial=-np.inf if used.any() else 0.0), discount)
            bounds.append((exactly(table) + exactly(most)).upper)
            raised[i] = most - about.min(initial=np.inf if used.any() else 0.0) / (1 - discount)
        # Both are bounds, and so is the lesser one; that of a table with numbers that are not finite is none.
        best[:, i] = np.fmin(*bounds)
    return StateValues(best, kept, np.maximum(raised, 0.0))


def for_ever(stage: Steps, likely: Array, reached: Array, discount: float) -> Ball:
    """Return what is got and paid for ever [S, n + k], in states that are reached: a mask [S].

    `likely` [S, S] is about how likely each next state is; of it nothing is believed.
    """
    system, agents = np.eye(len(likely)) - discount * likely, len(stage.multipliers)

    def residual(table: Array) -> Ball:
        return stage.followed(stage.ahead(exactly(table))) - exactly(table)

    current = np.zeros((len(likely), agents + stage.multipliers.shape[1]))
    for _ in range(3):  # the first solves, the others refine
        current = current + _about_solved(system, residual(current).mid)
    centred = _centred(current)
    for _ in range(2):
        centred = _centred(centred + _about_solved(system, _centred(residual(centred).mid)))
    held = []
    for table in (current, centred):
        # Wherever a table comes from, the sum lies in table + [least, greatest residual] / (1 − γ).
        off = residual(table)[reached]
        low, high = endless(off.lower.min(axis=0), discount, -np.inf), endless(off.upper.max(axis=0), discount)
        middle = low / 2 + high / 2
        around = np.maximum(np.nextafter(high - middle, np.inf), np.nextafter(middle - low, np.inf))
        held.append(exactly(table) + Ball(middle, np.where(low == high, 0.0, around)))
    narrower = held[1].rad.max(axis=0) < held[0].rad.max(axis=0)
    return Ball(*(np.where(narrower, getattr(held[1], end), getattr(held[0], end)) for end in ("mid", "rad")))


def _centred(table: Array) -> Array:
    """Shift columns [S, m] so that their least and greatest entries are of one size."""
    return np.asarray(table - (table.min(axis=0) / 2 + table.max(axis=0) / 2))


def endless(each: Array, discount: float, towards: float = np.inf) -> Array:
    """Return x / (1 − γ), rounded up, or down: what x at every step sums to."""
    total = each / (1 - discount)  # 1 − γ and the quotient are rounded once each
    wider = total + 8 * UNIT * np.abs(total) * np.sign(towards)
    return np.asarray(np.where(each == 0, 0.0, np.nextafter(wider, towards)))


def _about_solved(system: Array, right: Array) -> Array:
    """Return about the solution of a linear system; zero where it is singular in floats. It proves nothing."""
    try:
        return np.asarray(np.linalg.solve(system, right))
    except np.linalg.LinAlgError:  # a discount next to one
        return np.zeros_like(right)


def chain(moves: Rows, outcomes: Array) -> Array:
    """Return about how likely each next state is [S, S], given how likely each outcome is [S, O]. It proves nothing."""
    states, weights = len(outcomes), outcomes.ravel()
    matrix = np.zeros(states * states)
    np.add.at(matrix, moves.row // outcomes.shape[1] * states + moves.indices, weights[moves.row] * moves.data)
    return matrix.reshape(states, states)


def _played(game: Shared, agent: int, own: Array) -> Array:
    """Return about how likely each outcome is if one agent plays rows [S, A]: [S, O]. It proves nothing."""
    return np.asarray((own[:, :, None] * game.likely(0, agent)).sum(axis=1))


def _policy_iteration(
    game: Shared, discount: float, agent: int, closed: Array, worth_of: Callable[[Array], Ball]
) -> tuple[Array, Array]:
    """Return about what one agent can get from each state by what is allowed [S], and the same centred about zero.

    It proves nothing. `worth_of` returns what actions are worth [S, A], by what states are worth after them [S].
    """
    states = len(game.initial)
    best, chosen = np.zeros(states), np.full(states, -1)

    def worth(table: Array) -> Array:
        return np.where(closed & ~closed.all(axis=1, keepdims=True), -np.inf, worth_of(table).mid)

    stage, system = worth(best), np.eye(states)
    for _ in range(100):
        scores = worth(best)
        better = scores.argmax(axis=1)
        gain = scores.max(axis=1) - scores[np.arange(states), chosen]
        move = (chosen < 0) | (gain > 1e-14 * (1 + np.abs(scores).max(where=np.isfinite(scores), initial=0.0)))
        if not move.any():
            break
        chosen = np.where(move, better, chosen)
        rows = np.eye(closed.shape[1])[chosen]
        system = np.eye(states) - discount * chain(game.moves[0], _played(game, agent, rows))
        best = _about_solved(system, stage[np.arange(states), chosen])
    centred = _centred(best)
    for _ in range(2):
        off = worth(centred)[np.arange(states), chosen] - centred
        centred = _centred(centred + _about_solved(system, _centred(off)))
    return best, centred


def closed_shared(claim: Claim, game: Shared, hard: Array) -> tuple[list[Any], tuple[bool | None, ...]]:
    """Return what proofs by support forbid each agent [H, S, A], and whether the policy keeps each such threshold.

    None in place of a mask where a claim of that kind is not true.
    """
    kept: list[bool | None] = [None] * len(claim.thresholds)
    closed: list[Any] = []
    for i, table in enumerate(claim.policy):
        constraints, masks = np.flatnonzero(hard[i]).tolist(), [np.zeros(table.shape, dtype=bool)]
        for j in constraints:
            mask = _forbidden(claim, game, i, j)
            masks.append(mask)
            if mask is not None:
                reached = _reached(claim, game, 1.0 if claim.discount is None else float(claim.discount))
                kept[j] = not np.any(reached[..., None] & (table > 0) & mask)
        if any(mask is None for mask in masks):
            closed.append(None)
            continue
        if claim.discount == 0:
            closed.append(np.logical_or.reduce(masks))
            continue

        def leads(step: int, states: Array, agent: int = i) -> Array:
            return _among(game, step, agent, at_step(game.moves, step).highest(states))[1]

        closed.append(closure(masks, leads, for_ever=claim.discount is not None) if constraints else masks[0])
    return closed, tuple(kept)


def _forbidden(claim: Claim, game: Shared, agent: int, constraint: int) -> Any:
    """Return what one constraint, of which nothing is left, forbids one agent: [H, S, A], or None."""
    shape, limit = claim.policy[agent].shape, Fraction(claim.thresholds[constraint])
    steps = range(claim.steps)
    if claim.discount is not None:
        least, most = _among(game, 0, agent, game.costs(0)[constraint].ravel())
        return (most > 0)[None] if limit == 0 and not (least < 0).any() else None
    costs, unit = whole(np.stack([game.costs(step)[constraint].ravel() for step in steps]), times=len(steps) + 1)

    def outcomes(step: int, ahead: Array) -> tuple[Array, Array]:
        moves = at_step(game.moves, step)
        low = _among(game, step, agent, costs[0][step] + moves.lowest(ahead))[0]
        return low, _among(game, step, agent, costs[0][step] + moves.highest(ahead))[1]

    return forbidden(outcomes, game.initial, limit * unit, shape, costs[0].dtype)


def _among(game: Shared, step: int, agent: int, table: Array) -> tuple[Array, Array]:
    """Return the least and the greatest entry of a table [S·O] over what is possible by one agent's own action."""
    possible = game.possible(step, agent)
    full = table.reshape(len(possible), 1, -1)
    return np.where(possible, full, table.max()).min(axis=2), np.where(possible, full, table.min()).max(axis=2)


def _reached(claim: Claim, game: Shared, discount: float) -> Array:
    """Return which states the policy may come to at each step [H, S]; discounted, ever [1, S]."""
    there = game.initial > 0
    if claim.discount is not None:
        while discount > 0:
            wider = there | _next(game, 0, there)
            if np.array_equal(wider, there):
                break
            there = wider
        return there[None]
    found = [there]
    for step in range(claim.steps - 1):
        found.append(_next(game, step, found[-1]))
    return np.stack(found)


def _next(game: Shared, step: int, there: Array) -> Array:
    """Return which states may follow some states [S] under the policy."""
    played = (game.possible(step, 0) & game.mixtures[step][0].possible[..., None]).any(axis=1)
    return np.asarray(at_step(game.moves, step).entered((played & there[:, None]).ravel()) > 0)
