"""A better start for many agents: let everybody pay the same prices for the budgets, and steer the prices.

In turns, the first agent whose constraint binds would take all that is left, and the others could only respond within
a sliver of budget whose price has no bound: slow, and hopeless to certify in floating point. Instead every agent
maximises V^{r_i} − λ·V^c, one plan and no constraint, at common prices λ; that is the paper's penalised game
(Proposition 2), a potential game as well. Nobody pays anything at first: where that breaks no budget, it is the
answer. Otherwise all pay a price that is surely high, and from then on, after each round of moves, the price of a
budget is raised where too much of it is used, and lowered where too little is; then the agents come to rest, and
where a budget does not hold, or much of it is left, its price is changed once more.

Guarantee: the policy is feasible, being the given one where nothing better is found. Where the agents rest at prices λ
and slacks s, weak duality with λ_i = λ bounds every agent's gain by λ·s plus what it could gain at the prices: so the
better the prices, the less is left for the ascent to do, and all agents' multipliers are nearly the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import Maximum, certain_rows, maximise, plan
from cmpg.equilibrium.start import is_feasible
from cmpg.games.contract import Game, Position
from cmpg.policy import JointPolicy

ROUNDS = 18
"""Rounds of moves, before each of which the prices are changed."""

AIM = 0.985
"""The share of a budget that shall be used: the price of a budget is multiplied by what is used over this."""

LARGEST_STEP = 8.0
"""But by no more than this; and by its square root, the root of that, …, each time that the direction changes."""

SMALLEST_STEP = 1.03
"""Where the largest step has become as small as this, prices are as good as they get."""

LAST_ROUNDS = 15
"""Rounds of moves at most until the agents are taken to be at rest."""

RAISES = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 10.0, 100.0, 1000.0)
"""At the last prices the agents may come to rest outside the budgets after all; those prices are then raised."""

LOWERINGS, ENOUGH = 4, 0.97
"""Lower prices are tried so many times, while less than this share of every budget is used."""

COARSE, FINE = 1e-4, 1e-7
"""While prices change, and at the end, a gain of less than this share of an agent's range is not worth a move."""

NOTHING = 1e-9

LARGEST_PRICE = 1e250
"""Where a budget is so small beside what is at stake, no price that floating point can use would keep it."""

OnRound = Callable[[Position, FloatArray], None]
"""Told after each round of moves: the position, and the prices."""


@dataclass(frozen=True, eq=False)
class PricedStart:
    """A feasible policy, and the prices of the budgets at which the agents came to it."""

    policy: JointPolicy
    multipliers: FloatArray  # [k]
    interrupted: bool = False  # by the user, before the search was over


def price_start(
    game: Game,
    start: JointPolicy,
    *,
    rng: np.random.Generator | None = None,
    deadline: float = np.inf,
    on_round: OnRound = lambda *_: None,
) -> PricedStart:
    """Return a feasible policy near which all agents agree on the prices of the budgets.

    Parameters
    ----------
    game
        A game with at least one constraint and a finite horizon.
    start
        A feasible policy; it is returned as it is where it has no slack.
    rng
        Breaks ties at random.
    deadline
        On the clock of time.monotonic. Then, as after Ctrl-C, the last feasible policy that was seen is returned.
    on_round
        Called after each round of moves.
    """
    search = _Search(game, game.at(start), rng=rng, deadline=deadline, on_round=on_round)
    interrupted = False
    try:
        if is_feasible(search.first) and np.all(search.slacks > 0):
            _look(search)
    except _OutOfTime:
        pass
    except KeyboardInterrupt:
        interrupted = True
    return PricedStart(search.best.position.policy, search.best.prices, interrupted)


def _look(search: _Search) -> None:
    """Go through all phases; what they find is `search.best`."""
    first, nothing = search.first, np.zeros(len(search.slacks))
    selfish = search.settle(first, nothing, rounds=1, worth=COARSE)
    if is_feasible(selfish) and is_feasible(search.settle(selfish, nothing, rounds=LAST_ROUNDS, worth=FINE)):
        return
    stake = float(np.abs(selfish.values - first.values).mean() + NOTHING * np.mean(search.game.reward_ranges))
    if np.any(search.slacks * LARGEST_PRICE <= stake):
        return
    dear = stake / search.slacks
    begin = search.settle(selfish, dear, rounds=1, worth=COARSE)
    if not is_feasible(begin):
        # Selfish agents can be in each other's way so that nobody alone makes room, at any price.
        begin = search.settle(first, dear, rounds=1, worth=COARSE)
    if _rest(search, _steered(search, _Priced(begin, dear))):
        _lower(search)


@dataclass(frozen=True, eq=False)
class _Priced:
    position: Position
    prices: FloatArray  # [k]


class _OutOfTime(Exception):
    """The deadline has passed."""


class _Search:
    """What the phases share: where it all began, how agents settle, and the last feasible position with its prices."""

    def __init__(
        self, game: Game, first: Position, *, rng: np.random.Generator | None, deadline: float, on_round: OnRound
    ) -> None:
        self.game, self.first, self.slacks = game, first, game.thresholds - first.costs
        self.best = _Priced(first, np.zeros(len(self.slacks)))
        self._rng, self._deadline, self._on_round = rng, deadline, on_round

    def used(self, position: Position) -> FloatArray:
        """Return what share of each budget is used, beyond what the start uses: [k]."""
        return np.asarray((position.costs - self.first.costs) / self.slacks)

    def settle(self, position: Position, prices: FloatArray, *, rounds: int, worth: float) -> Position:
        """Let agents in turn move to what is best for them at these prices, until nobody gains or for a few rounds."""
        agents, quiet = self.game.num_agents, 0
        for turn in range(rounds * agents):
            if time.monotonic() > self._deadline:
                raise _OutOfTime
            agent = turn % agents
            cmdp, present = position.induced_cmdp(agent), position.present(agent)
            best = maximise(cmdp, prices)
            gain = best.value - float(present.value - prices @ present.costs)
            quiet = quiet + 1 if gain <= 0 or gain <= _least_gain(cmdp, prices, worth) else 0
            if quiet == 0:
                position = position.replace(agent, _best_table(cmdp, best, prices, rng=self._rng))
            if agent == agents - 1:
                self._on_round(position, prices)
            if quiet >= agents:
                break
        if is_feasible(position):
            self.best = _Priced(position, prices)
        return position


def _steered(search: _Search, begin: _Priced) -> _Priced:
    """Change the prices by how much of each budget is used, let everybody move once, and so on."""
    position, prices = begin.position, begin.prices
    largest = np.full(len(prices), np.log(LARGEST_STEP))
    before = np.zeros(len(prices))
    quiet = False
    for _ in range(ROUNDS):
        used = search.used(position)
        if (quiet and ENOUGH < used.max() <= 1) or np.all(largest < np.log(SMALLEST_STEP)):
            break
        change = np.log(np.maximum(used / AIM, NOTHING))
        largest = np.where(change * before < 0, largest / 2, largest)
        prices = prices * np.exp(np.clip(change, -largest, largest))
        before = change
        moved = search.settle(position, prices, rounds=1, worth=COARSE)
        quiet, position = moved is position, moved
    return _Priced(position, prices)


def _rest(search: _Search, steered: _Priced) -> bool:
    """Let the agents come to rest, at higher prices where the budgets do not hold; return whether they hold then."""
    position, prices = steered.position, steered.prices
    for factor in RAISES:
        prices = prices * np.where(position.costs > search.game.thresholds, factor, 1.0)
        position = search.settle(position, prices, rounds=LAST_ROUNDS, worth=FINE)
        if is_feasible(position):
            return True
    return False


def _lower(search: _Search) -> None:
    """Lower the prices at which the agents rest, until nearly all of a budget is used, or it would not hold."""
    broke = np.zeros(len(search.slacks))
    for _ in range(LOWERINGS):
        held = search.best
        used = search.used(held.position)
        if used.max() > ENOUGH:
            break
        prices = held.prices * np.clip(used / AIM, 1 / LARGEST_STEP, 1.0)
        prices = np.where(prices > broke, prices, np.sqrt(held.prices * broke))
        if not is_feasible(search.settle(held.position, prices, rounds=LAST_ROUNDS, worth=FINE)):
            broke = prices


def _least_gain(cmdp: CMDP, prices: FloatArray, worth: float) -> float:
    """Return how much a move must gain to be worth it: a share of the agent's range, and more than rounding."""
    noise = 4 * cmdp.rounding * float(cmdp.sizes[0] + prices @ cmdp.sizes[1:])
    return max(noise, worth * cmdp.reward_range)


def _best_table(cmdp: CMDP, best: Maximum, prices: FloatArray, *, rng: np.random.Generator | None) -> FloatArray:
    """Return the table of the best actions; where a budget is free, that of a plan, which spends no more of it than
    it must.
    """
    if prices.all():
        return certain_rows(best.actions(rng), cmdp.num_actions)
    return plan(cmdp, prices, rng=rng).policy(cmdp.num_actions)
