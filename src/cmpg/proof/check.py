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

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.proof.claim import Claim, JointTables, LocalTables
from cmpg.proof.local import check_local
from cmpg.proof.rounding import UNIT, Array, Ball, Rows, exactly, stacked
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
        if isinstance(claim.tables, LocalTables):
            values, bounds, raised, costs, kept = check_local(claim)
        else:
            values, bounds, raised, costs, kept = _check_shared(claim)
        gaps = exactly(bounds) - values
        gains = np.maximum(gaps.upper, 0.0)
        rounding = np.minimum(raised + (gains - np.maximum(gaps.mid, 0.0)), gains)
    gains, bounds, rounding = (np.where(np.isnan(each), np.inf, each) for each in (gains, bounds, rounding))
    return Checked(values, bounds, costs, gains, rounding, kept)


def _check_shared(claim: Claim) -> tuple[Ball, Array, Array, Ball, tuple[bool | None, ...]]:
    """Return values [n], bounds [n] and by how much rounding raised them, costs [k], and what the support keeps."""
    game: Shared = Joint(claim) if isinstance(claim.tables, JointTables) else Counting(claim)
    agents, states = len(claim.policy), len(game.initial)
    hard = claim.multipliers == np.inf
    multipliers = np.where(hard, 0.0, claim.multipliers)
    closed, kept = closed_shared(claim, game, hard)
    raised = np.zeros(agents)
    if claim.discount is None:
        best, current = np.zeros((states, agents)), exactly(np.zeros((states, agents + len(claim.thresholds))))
        for step in reversed(range(claim.steps)):
            stage = _Stage(game, step)
            ahead = stage.ahead(Ball(np.hstack([best, current.mid]), np.hstack([0 * best, current.rad])))
            worth = [stage.worth(i, own, ahead[..., i]) for i, own in enumerate(multipliers)]
            current = stage.followed(ahead[..., agents:])
            best = np.stack([_maximum(q, mask, step) for q, mask in zip(worth, closed, strict=True)], axis=1)
            raised += [float(q.rad.max()) for q in worth]
    else:
        best, current, raised = _discounted(claim, game, multipliers, closed)
    start = Rows(game.initial[None])
    totals, most = start.mean(current)[0], start.mean(exactly(best))[0]
    bounds = []
    for i, own in enumerate(multipliers):
        bound = most[i]
        for price, limit in zip(own, claim.thresholds, strict=True):
            bound = bound + exactly(price) * exactly(limit)
        lost = closed[i] is None or np.any(closed[i][0].all(axis=1) & (game.initial > 0))
        bounds.append(np.inf if lost else bound.upper)
        raised[i] += bound.rad
    return totals[:agents], np.array(bounds), raised, totals[agents:], kept


class _Stage:
    """One step of a game: the expected rewards and the costs, and what comes after them."""

    def __init__(self, game: Shared, step: int, discount: float = 1.0) -> None:
        """Read the tables of a step h; γ, or one."""
        self._game, self._step, self._discount = game, step, discount
        self._mixtures = game.mixtures[step]
        self._costs = exactly(np.moveaxis(game.costs(step), 0, -1))  # [S, O, k]
        self._rewards = [game.reward(step, i) for i in range(len(self._mixtures))]  # n of [S, A_i]

    def ahead(self, table: Ball) -> Ball:
        """Return what is expected of a table [S, m] at the next step, by outcome: [S, O, m]."""
        states, columns = table.mid.shape
        mean = at_moves(self._game, self._step).mean(table)
        return (mean if self._discount == 1 else mean * exactly(self._discount)).reshape(states, -1, columns)

    def worth(self, agent: int, prices: Array, ahead: Ball) -> Ball:
        """Return what each action of one agent is worth at most, with λ·c charged: [S, A_i].

        Parameters
        ----------
        agent
            i.
        prices : [k]
            λ_i, zero where a proof is by support.
        ahead : [S, O]
            What it can get at most from the next step on, by outcome.
        """
        for j in np.flatnonzero(prices):
            ahead = ahead - self._costs[..., j] * exactly(prices[j])
        return self._rewards[agent] + self._game.average(self._step, agent, ahead[..., None])[..., 0]

    def followed(self, ahead: Ball) -> Ball:
        """Return what the policy gets and costs from this step on [S, n + k], by the same after it [S, O, n + k]."""
        agents, own = len(self._mixtures), self._mixtures[0]
        totals = [rows.over(reward) for rows, reward in zip(self._mixtures, self._rewards, strict=True)]
        spent = own.over(self._game.average(self._step, 0, ahead[..., :agents]))
        paid = own.over(self._game.average(self._step, 0, ahead[..., agents:] + self._costs))
        now = spent + stacked(totals, axis=1)
        return Ball(np.hstack([now.mid, paid.mid]), np.hstack([now.rad, paid.rad]))


def at_moves(game: Shared, step: int) -> Rows:
    """Return the transition of a step."""
    return game.moves[0 if len(game.moves) == 1 else step]


def _maximum(worth: Ball, closed: Array | None, step: int) -> Array:
    """Return the greatest of what is allowed in each state, rounded up; zero where nothing is: no play comes there."""
    if closed is None:  # the claim is not true, and this agent's bound is infinite in the end
        return np.zeros(len(worth.mid))
    lost = closed[step].all(axis=1)
    return np.where(lost, 0.0, np.where(closed[step], -np.inf, worth.upper).max(axis=1))


def _discounted(claim: Claim, game: Shared, multipliers: Array, closed: list[Any]) -> tuple[Array, Ball, Array]:
    """Return what each agent can get at most from each state [S, n], what the policy gets and costs [S, n + k], and by
    how much the residuals raised the former [n].
    """
    discount, (states, agents) = float(claim.discount), (len(game.initial), len(claim.policy))
    shape = (states, agents + len(claim.thresholds))
    own = [rows.table for rows in game.mixtures[0]]
    system = np.eye(states) - discount * _chain(game, 0, own[0])
    stage = _Stage(game, 0, discount)

    def residual(table: Array) -> Ball:
        return stage.followed(stage.ahead(exactly(table))) - exactly(table)

    current = np.zeros(shape)
    for _ in range(3):  # the first solves, the others refine
        current = current + _about_solved(system, residual(current).mid)
    centred = _centred(current)
    for _ in range(2):
        centred = _centred(centred + _about_solved(system, _centred(residual(centred).mid)))
    reached = _reached(claim, game, discount)[0]
    held = []
    for table in (current, centred):
        off = residual(table)[reached]
        low, high = _for_ever(off.lower.min(axis=0), discount, -np.inf), _for_ever(off.upper.max(axis=0), discount)
        middle = low / 2 + high / 2
        around = np.maximum(np.nextafter(high - middle, np.inf), np.nextafter(middle - low, np.inf))
        held.append(exactly(table) + Ball(middle, np.where(low == high, 0.0, around)))
    narrower = held[1].rad.max(axis=0) < held[0].rad.max(axis=0)
    kept = Ball(*(np.where(narrower, getattr(held[1], end), getattr(held[0], end)) for end in ("mid", "rad")))

    best, raised = np.zeros((states, agents)), np.zeros(agents)
    for i, (rows, mask) in enumerate(zip(own, closed, strict=True)):
        shut = np.zeros(rows.shape, dtype=bool) if mask is None else mask[0]
        used = ~shut.all(axis=1)
        bounds = []

        def worth_of(table: Array, agent: int = i) -> Ball:
            return stage.worth(agent, multipliers[agent], stage.ahead(exactly(table[:, None]))[..., 0])

        for table in _policy_iteration(game, discount, i, shut, worth_of):
            worth = worth_of(table) - exactly(table[:, None])
            above = np.where(shut, -np.inf, worth.upper)[used]
            about = np.where(shut, -np.inf, worth.mid)[used].max(axis=1)
            most = _for_ever(above.max(initial=-np.inf if used.any() else 0.0), discount)
            bounds.append((exactly(table) + exactly(most)).upper)
            raised[i] = most - about.min(initial=np.inf if used.any() else 0.0) / (1 - discount)
        # Both are bounds, and so is the lesser one; that of a table with numbers that are not finite is none.
        best[:, i] = np.fmin(*bounds)
    return best, kept, np.maximum(raised, 0.0)


def _centred(table: Array) -> Array:
    """Shift columns [S, m] so that their least and greatest entries are of one size."""
    return np.asarray(table - (table.min(axis=0) / 2 + table.max(axis=0) / 2))


def _for_ever(each: Array, discount: float, towards: float = np.inf) -> Array:
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


def _chain(game: Shared, agent: int, own: Array) -> Array:
    """Return about how likely each next state is if one agent plays rows [S, A]: [S, S]. It proves nothing."""
    rows, states = game.moves[0], len(own)
    weights = (own[:, :, None] * game.likely(0, agent)).sum(axis=1).ravel()
    matrix = np.zeros(states * states)
    outcomes = len(weights) // states
    np.add.at(matrix, rows.row // outcomes * states + rows.indices, weights[rows.row] * rows.data)
    return matrix.reshape(states, states)


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
        system = np.eye(states) - discount * _chain(game, agent, rows)
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
            return _among(game, step, agent, at_moves(game, step).highest(states))[1]

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
        moves = at_moves(game, step)
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
    present = game.initial > 0
    if claim.discount is not None:
        while discount > 0:
            wider = present | _next(game, 0, present)
            if np.array_equal(wider, present):
                break
            present = wider
        return present[None]
    found = [present]
    for step in range(claim.steps - 1):
        found.append(_next(game, step, found[-1]))
    return np.stack(found)


def _next(game: Shared, step: int, present: Array) -> Array:
    """Return which states may follow some states [S] under the policy."""
    played = (game.possible(step, 0) & game.mixtures[step][0].possible[..., None]).any(axis=1)
    return at_moves(game, step).entered((played & present[:, None]).ravel()) > 0
