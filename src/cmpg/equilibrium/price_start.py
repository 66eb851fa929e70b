"""A better start for many agents: let everybody pay the same price for the budget, and lower it while the budget holds.

In turns, the first agent whose constraint binds would take all that is left, and the others could only respond within
a sliver of budget whose price has no bound: slow, and hopeless to certify in floating point. Instead every agent
maximises V^{r_i} − t·u·V^c, one plan and no constraint, at a common price t; that is the paper's penalised game
(Proposition 2), a potential game as well. From a feasible policy with slack s, no move at a price t ≥ Σ_i G_i/s can
leave the feasible set, since Φ − t·V^c only rises. From there the price is lowered step by step, and then bisected,
as long as the budget holds.

Where it ends, at price t and slack s, weak duality with λ_i = t·u bounds every agent's gain by t·u·s plus what it
could gain at the price: so the better the price, the less is left for the ascent to do, and all agents' multipliers
are nearly the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.checks import FloatArray, IntArray
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import certain_rows, maximise, plan
from cmpg.equilibrium.start import is_feasible, worst_slack
from cmpg.games.contract import Game, Position
from cmpg.policy import JointPolicy

LOWERING = 8.0
"""The price is divided by this until the budget breaks."""

REFINEMENTS = 3
"""Prices tried between the last one that held and the first that broke."""

LAST_CYCLES = 15
"""Rounds of moves at the last price; while it is sought, one round at each price is enough."""

MOST_RAISES = 20
RAISING = 1.2
"""What settles at the last price may break the budget after all; then the price is raised by this factor."""

SMALL = 1e-7
"""A gain of less than this share of an agent's range is not worth a move."""

CHEAP = 1e-9
"""A price that takes less than this share of the values is as good as none."""


@dataclass(frozen=True, eq=False)
class PricedStart:
    """A feasible policy, and the price of the budget at which the agents came to it."""

    policy: JointPolicy
    multipliers: FloatArray  # [k]


def price_start(game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> PricedStart:
    """Return a feasible policy near which all agents agree on the price of the budget.

    Parameters
    ----------
    game
        A game with at least one constraint.
    start
        A feasible policy; it is returned as it is where it has no slack.
    rng
        Breaks ties at random.
    """
    units = _units(game)
    position = game.at(start)
    slack, most = worst_slack(position), float(np.sum(game.reward_ranges))
    if not slack > 0 or not most > 0:
        return PricedStart(start, np.zeros(len(units)))
    safe = most / slack
    search = _Search(game, units, _Stop(position, safe), rng)
    search.try_price(safe / game.num_agents)
    while search.held.price == safe and search.broke is not None and search.broke.price * LOWERING < safe:
        search.try_price(search.broke.price * LOWERING)
    if search.broke is None and not np.any(search.held.position.costs):
        search.try_free()
    while search.broke is None and search.held.price > 0:
        price = search.held.price / LOWERING
        cheap = price * float(np.abs(game.thresholds @ units) + slack) < CHEAP * most
        search.try_price(0.0 if cheap else price)
    if search.held.price > 0:
        search.refine()
    last = search.settled_for_good()
    return PricedStart(last.position.policy, last.price * units)


@dataclass(frozen=True, eq=False)
class _Stop:
    """Where the agents came to rest at a price."""

    position: Position
    price: float


class _Search:
    """The lowest price so far at which the budget held, and the highest at which it broke."""

    def __init__(self, game: Game, units: FloatArray, held: _Stop, rng: np.random.Generator | None) -> None:
        self.game, self.units, self.rng = game, units, rng
        self.held = held
        self.broke: _Stop | None = None

    def try_price(self, price: float) -> None:
        """Let the agents settle at a price, from where the budget held last."""
        stop = _Stop(_settle(self.held.position, price * self.units, cycles=1, rng=self.rng), price)
        if is_feasible(stop.position):
            self.held = stop
        else:
            self.broke = stop

    def try_free(self) -> None:
        """Let the agents settle at no price at all; if that breaks the budget, it says little about other prices."""
        self.try_price(0.0)
        self.broke = None

    def refine(self) -> None:
        """Try prices in between, where the budget would just be spent if its use were a power of the price."""
        for _ in range(REFINEMENTS):
            if self.broke is None or self.broke.price <= 0:
                return
            low, high = self.broke.price, self.held.price
            most, least = _used(self.game, self.broke.position), _used(self.game, self.held.position)
            share = np.log(most) / (np.log(most) - np.log(least)) if 0 < least < 1 < most else 0.5
            self.try_price(float(low ** (1 - share) * high**share) if 0.1 < share < 0.9 else float(np.sqrt(low * high)))

    def settled_for_good(self) -> _Stop:
        """Let the agents come to rest at the price that held, or at the next higher one at which they stay feasible."""
        position, price = self.held.position, self.held.price
        for _ in range(MOST_RAISES):
            position = _settle(position, price * self.units, cycles=LAST_CYCLES, rng=self.rng)
            if is_feasible(position):
                return _Stop(position, price)
            price = max(price * RAISING, CHEAP)
        return self.held


def _units(game: Game) -> FloatArray:
    """Price every constraint in units of its own threshold, so that none counts for nothing: [k]."""
    sizes = np.abs(np.asarray(game.thresholds, dtype=np.float64))
    largest = float(sizes.max()) or 1.0
    return np.asarray(largest / np.where(sizes > 1e-9 * largest, sizes, largest))


def _used(game: Game, position: Position) -> float:
    """Return the largest share of a threshold that is spent."""
    limits = np.asarray(game.thresholds, dtype=np.float64)
    return float(np.max(position.costs / np.where(limits > 0, limits, np.inf)))


def _settle(position: Position, prices: FloatArray, *, cycles: int, rng: np.random.Generator | None) -> Position:
    """Let agents in turn move to their best plan at these prices, until nobody gains or for a few rounds."""
    agents = len(position.policy)
    quiet = 0
    for turn in range(cycles * agents):
        agent = turn % agents
        cmdp, present = position.induced_cmdp(agent), position.present(agent)
        best = maximise(cmdp, prices)
        gain = best.value - float(present.value - prices @ present.costs)
        noise = 4 * cmdp.rounding * float(cmdp.sizes[0] + prices @ cmdp.sizes[1:])
        quiet = quiet + 1 if gain <= max(noise, SMALL * cmdp.reward_range) else 0
        if quiet >= agents:
            break
        if quiet == 0:
            position = position.replace(agent, _best_table(cmdp, best.actions, prices, rng=rng))
    return position


def _best_table(cmdp: CMDP, actions: IntArray, prices: FloatArray, *, rng: np.random.Generator | None) -> FloatArray:
    """Return the table of the best actions; where a rule for ties counts, that of a plan."""
    if rng is None and prices.all():
        return certain_rows(actions, cmdp.num_actions)
    return plan(cmdp, prices, rng=rng).policy(cmdp.num_actions)
