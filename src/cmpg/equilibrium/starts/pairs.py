"""Two agents move together, where no agent gains by moving alone.

At rest every agent plays a best response, and its multipliers λ_i are its own price of what the others leave below the
thresholds. Where prices differ, the budget is in the wrong hands, and two agents do better together by a trade: agent i
plans at the higher price of agent j, which frees some of the budget; j responds within what is free then, and i within
what j leaves. What i would gain if it could buy and sell at that price, max V^{r − λ_j·c} − (V^r − λ_j·V^c), is what
the trade promises: one backward induction, and right but for what the two do to each other's rewards. Only trades that
promise enough are tried.

Guarantee: where a pair of moves ends feasible, and raises what equilibria are compared by by more than ε/2, the ascent
goes on from there, and what it ends with is certified as any ending is. If that is not certified, or is no better, the
equilibrium of before is kept. So the answer is never worse than without, and needs no proof of another kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import maximise, plan
from cmpg.deadline import check_time, limited
from cmpg.equilibrium.best_responses import best_response
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.result import Result, Step
from cmpg.equilibrium.starts.start import may_be_feasible
from cmpg.errors import CMPGError, InfeasibleError, OutOfTimeError, SolverError
from cmpg.games.game import Position, agent_bounds, current
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.equilibrium.runs import RunContext

DIGITS = 6
"""Prices are the same if they are so to this many digits."""

MAX_PRICES = 4
"""At most this many prices are looked at, those of the most agents first."""

FEW_SELLERS = 8
"""More agents than this are queried all at once."""


@dataclass(frozen=True)
class PairMoves:
    """At rest, let two agents move together: one gives some of a budget to another that pays more for it.

    Parameters
    ----------
    trades
        Trades that are tried at each rest, the most promising first; of these the best is made.
    worth
        A trade is tried only if it promises more than this share of Σ_i |V^{r_i}|.
    most
        Pairs that move, one after the other, in all.

    Examples
    --------
    >>> from cmpg.equilibrium.solve import solve
    >>> from cmpg.scenarios import routing
    >>> result = solve(routing(num_agents=6), improve=PairMoves(trades=8))
    >>> result.certified, result.settings["improve"]
    (True, 'PairMoves(trades=8, worth=0.002, most=16)')
    """

    trades: int = 4
    worth: float = 2e-3
    most: int = 16

    def __post_init__(self) -> None:
        """Refuse what is no number of tries."""
        for name in ("trades", "worth", "most"):
            if not getattr(self, name) >= 0:
                raise CMPGError(f"{name} is {getattr(self, name)}; a number of at least 0 is wanted.")

    def __call__(self, position: Position, terms: Terms) -> PairMove | None:
        """Return the best pair of moves of those that are tried, or None if none is worth it."""
        enough = max(self.worth * float(np.abs(position.values).sum()), terms.epsilon)
        pairs = islice(_promising_trades(position, terms, enough), self.trades)
        found = [
            moved for i, j, price in pairs if (moved := _traded(position, i, j, price=price, terms=terms)) is not None
        ]
        return max(found, key=lambda each: each.score, default=None)


@dataclass(frozen=True, eq=False)
class Terms:
    """What holds for all pairs at one rest."""

    rest: Result
    score: Callable[[JointPolicy], float]  # what equilibria are compared by

    @property
    def prices(self) -> FloatArray:
        """What each agent pays: [n, k]."""
        return self.rest.multipliers

    @property
    def epsilon(self) -> float:
        """What no agent gains more than, moving alone."""
        return self.rest.epsilon

    @cached_property
    def level(self) -> float:
        """The score at rest; computed only if a pair could move."""
        return self.score(self.rest.policy)


@dataclass(frozen=True, eq=False)
class PairMove:
    """Where a pair of moves led, and who moved from where to where."""

    position: Position
    score: float
    moves: tuple[tuple[int, Position, Position], ...]


def _promising_trades(position: Position, terms: Terms, enough: float) -> Iterator[tuple[int, int, FloatArray]]:
    """Find who could give some of a budget to whom, the best first: seller, buyer, and the price of the buyer [k]."""
    promised: list[tuple[float, int, int]] = []
    prices = _finite(position, terms.prices)
    groups = _by_price(prices)
    for buyers in groups[:MAX_PRICES]:
        price = prices[buyers[0]]
        cheaper = [each for each in groups if each is not buyers and np.any(price > prices[each[0]])]
        for promise, i in _promises(
            position, [i for each in cheaper for i in each], price=price, prices=prices, enough=enough
        ):
            promised += [(promise, i, j) for j in buyers if promise > enough]
    for _, i, j in sorted(promised, key=lambda each: -each[0]):
        yield i, j, prices[j]


def _promises(
    position: Position, sellers: list[int], *, price: FloatArray, prices: FloatArray, enough: float
) -> Iterator[tuple[float, int]]:
    """Find what sellers could gain at a buyer's price, by one call where they are many."""
    many = len(sellers) > FEW_SELLERS
    judged = agent_bounds(position, np.tile(price, (len(prices), 1))) if many else None
    if judged is not None:
        gains = judged.bounds - judged.values - float(price @ position.slacks)
        yield from ((float(gains[i]), i) for i in sellers)
        return
    for i in sellers:
        # By its own price i loses at least what it frees is worth to it: so this is what can be gained at most.
        own = current(position, i)
        if np.abs(price - prices[i]) @ np.abs(own.costs) > enough:
            yield maximise(position.induced_cmdp(i), price).value - float(own.value - price @ own.costs), i


def _finite(position: Position, prices: FloatArray) -> FloatArray:
    """Return what agents to whom nothing is left of a budget would pay for the first of it: [n, k].

    Their price has no bound; where others have spent something that they could sell, a solver tells a finite one.
    """
    found = prices.copy()
    for agent in np.flatnonzero((np.isinf(prices) & (position.costs > 0)).any(axis=1)).tolist():
        with suppress(InfeasibleError, SolverError):
            found[agent] = Exact()(position.induced_cmdp(agent)).multipliers
    return found


def _by_price(prices: FloatArray) -> list[list[int]]:
    """Return agents who pay the same, the most numerous first; agents with a price without bound are left out."""
    bounded = np.flatnonzero(np.isfinite(prices).all(axis=1))
    mantissas, exponents = np.frexp(prices[bounded])
    alike = np.ldexp(np.round(mantissas, DIGITS), exponents)
    _, group = np.unique(alike, axis=0, return_inverse=True)
    groups = [bounded[group.reshape(-1) == each].tolist() for each in range(int(group.max(initial=-1)) + 1)]
    return sorted(groups, key=lambda each: (-len(each), each[0]))


def _traded(position: Position, i: int, j: int, *, price: FloatArray, terms: Terms) -> PairMove | None:
    """Let i plan at the price of j, then j respond, then i; None if that is not feasible, or not worth it."""
    cmdp = position.induced_cmdp(i)
    sold = position.replace(i, plan(cmdp, price).policy(cmdp.num_actions))
    moves = [(i, position, sold)]
    for agent in (j, i):
        check_time()
        before = moves[-1][2]
        try:
            response = best_response(before, agent, Exact(), epsilon=terms.epsilon)
        except (InfeasibleError, SolverError):
            return None
        moves.append((agent, before, before.replace(agent, response.policy)))
    ended = moves[-1][2]
    if not may_be_feasible(ended):
        return None
    score = terms.score(ended.policy)
    return PairMove(ended, score, tuple(moves)) if score > terms.level + terms.epsilon / 2 else None


def improved_by_pairs(context: RunContext, rest: Result, pairs: PairMoves, *, on_progress: OnProgress) -> Result:
    """Continue a certified ending by moves of pairs while that raises its score.

    An interruption keeps the ending of before, and is noted.
    """
    try:
        for _ in range(pairs.most):
            further = _further(context, rest, pairs, on_progress)
            if further is None:
                break
            rest = further
            if rest.interrupted:
                break
    except KeyboardInterrupt:
        return replace(rest, interrupted=True)
    return rest


def _further(context: RunContext, rest: Result, pairs: PairMoves, on_progress: OnProgress) -> Result | None:
    """Let a pair move, and ascend from there; None where that ends no better, or without a certificate."""
    if (rest.multipliers == rest.multipliers[0]).all():
        return None  # no agent pays more than another
    began, terms = time.monotonic(), Terms(rest, partial(context.prefer, context.game))
    try:
        with limited(context.deadline):
            moved = pairs(context.game.at(rest.policy), terms)
            steps = () if moved is None else _steps(moved, rest, began)
    except OutOfTimeError:
        return None
    if moved is None:
        return None
    for step in steps:
        on_progress(step)
    numbered = partial(_numbered, steps[-1])
    ended = context.ascend(moved.position.policy, on_progress=lambda step: on_progress(numbered(step)))
    if not ended.certified or terms.score(ended.policy) <= terms.level:
        return replace(rest, interrupted=True) if ended.interrupted else None
    return replace(
        ended,
        start=rest.start,
        trace=(*rest.trace, *steps, *map(numbered, ended.trace)),
        moves=rest.moves + len(steps) + ended.moves,
        search_moves=rest.search_moves,
        refused=rest.refused + ended.refused,
        settings={**rest.settings, "pairs_moved": rest.settings.get("pairs_moved", 0) + 1},
    )


def _steps(move: PairMove, rest: Result, began: float) -> tuple[Step, ...]:
    """Return the moves of a pair as steps of the trace; who makes room for the other gains less than nothing."""
    last = rest.trace[-1] if rest.trace else Step(0, None, 0.0, np.zeros(0), np.zeros(0), 0.0, 0.0)
    steps: list[Step] = []
    total = last.potential
    for agent, before, after in move.moves:
        gains = np.full(len(before.policy), np.nan)
        gains[agent] = float(current(after, agent).value - current(before, agent).value)
        seconds = last.seconds + time.monotonic() - began
        steps.append(Step(last.iteration + len(steps) + 1, agent, gains[agent], gains, before.costs, total, seconds))
        total += gains[agent]
    return tuple(steps)


def _numbered(last: Step, step: Step) -> Step:
    """Count an iteration, its seconds and its potential from the last move of a pair."""
    return replace(
        step,
        iteration=last.iteration + step.iteration,
        seconds=last.seconds + step.seconds,
        potential=last.potential + last.gain + step.potential,
    )
