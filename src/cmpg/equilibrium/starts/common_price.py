"""Where all agents agree on the price of the thresholds: a better start for many agents.

In turns, the first agent whose constraint binds would take all that is left, and the others could only respond within
a sliver whose price has no bound: slow, and hopeless to certify in floating point. Instead every agent maximises
V^{r_i} − λ·V^c, one plan and no constraint, at common multipliers λ; that is the paper's penalised game (Proposition
2), a potential game as well. No agent pays anything at first: if that breaks no threshold, it is the answer. Otherwise
all pay a price that is surely high. From then on, after each round of moves, a multiplier is raised where too much of
its threshold is used, and lowered where too little is; then the agents come to rest, and where a threshold is not met,
or much of it is left, its multiplier is changed once more. In the end a few agents take what is left, and the others
rest again beside them.

Guarantee: the policy is feasible, being the given one if nothing better is found. Where the agents rest at λ with
slacks s, weak duality with λ_i = λ bounds every agent's gain by λ·s plus what it could gain at λ: so the better λ, the
less is left for the ascent to do, and the agents' own multipliers are nearly the same. Those who took what was left
play best responses, at multipliers of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import repeat

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import maximise
from cmpg.deadline import check_time
from cmpg.equilibrium.best_responses import dynamics_at
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.result import Status, Step
from cmpg.equilibrium.starts.min_cost import MinCostStart
from cmpg.equilibrium.starts.start import Start, is_feasible, moved_inside, worst_slack
from cmpg.errors import InfeasibleError, OutOfTimeError, SolverError
from cmpg.games.game import (
    DynamicsEnd,
    Game,
    Information,
    Position,
    agent_bounds,
    current,
)
from cmpg.policy import JointPolicy

ROUNDS = 18
"""Rounds of moves; the multipliers are changed before each of them."""

AIM = 0.985
"""The share of a threshold to use: its multiplier is multiplied by what is used over this."""

LARGEST_STEP = 8.0
"""The largest factor of one change; its square root, the root of that, …, each time that the direction changes."""

SMALLEST_STEP = 1.03
"""Once the largest step is as small as this, the multipliers are as good as they get."""

UNMOVED = 0.5
"""Where more than this share of what was missing is still missing after a change, the next one is twice as large."""

LAST_ROUNDS = 200
"""Rounds of moves at most until the agents are taken to be at rest."""

RAISES = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 10.0, 100.0, 1000.0)
"""At the last multipliers the agents may come to rest above a threshold after all; its multiplier is then raised."""

LOWERINGS, ENOUGH = 4, 0.97
"""Lower multipliers are tried this many times, while less than this share of every threshold is used."""

COARSE, FINE, FINEST = 1e-4, 1e-7, 1e-8
"""While multipliers change, where agents rest, and in the end: a gain of less than this share of an agent's range is no
reason to move.
"""

SHARES, TAKERS, LOWER = 20, 6, (0.9, 0.5, 0.0)
"""What is left is shared out at most 20 times, to at most 6 more agents each time: those that have other plans at 0.9,
0.5 or 0 times the multipliers.
"""

PATIENCE = 6
"""The sharing out ends where a round has more than half of the moves of the sixth round before it, and not few."""

LAST_STEP = 1.1
"""Meanwhile multipliers change by no more than this; not at all where more is left, since single agents count there."""

NEGLIGIBLE = 1e-9
"""A share of a threshold, or of what is at stake, that counts for nothing."""

LOWEST_SHARE, RISE, RISES = 0.02, 1.5, 24
"""Where nothing is left, a price begins at 2 % of what is at stake for each unit that selfish agents spend, and is
multiplied by 1.5, at most 24 times.
"""

LAST_RISE, LAST_RISES = 10.0, 12
"""What is still spent then is spent with a tiny probability: the price is multiplied by 10, at most 12 times."""

LARGEST_PRICE = 1e250
"""Where a budget is so small beside what is at stake, no price that floating point can use would keep it."""


@dataclass(frozen=True)
class CommonPrice:
    """Begin where all agents agree on the multipliers; from a feasible policy, which is sought unless given.

    Parameters
    ----------
    workers
        Threads that plan for several agents of a local game at once, where plans are long. The answer has the same bits
        for any number.

    Examples
    --------
    >>> from cmpg.scenarios import routing
    >>> found = CommonPrice()(routing(num_agents=4))
    >>> found.slack >= 0
    True
    """

    workers: int = field(default=1, repr=False)

    def __call__(
        self,
        game: Game,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        on_progress: OnProgress = lambda _: None,
    ) -> Start:
        """Return a feasible policy near which all agents agree on the multipliers.

        Parameters
        ----------
        game
            A game with a finite horizon.
        begin
            A feasible policy; it is returned as it is where it spends all of a threshold above zero.
        rng
            Breaks ties at random.
        deadline
            On the clock of time.monotonic. Then, as after Ctrl-C, the last feasible policy that was seen is returned.
        on_progress
            Called with each move, or by compiled kernels each round, with the multipliers that all agents pay.
        """
        terms = _Terms(rng, deadline, self.workers, on_progress)
        return _sought(game, MinCostStart()(game, begin, deadline=terms.deadline), terms, _look)


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Begin near a policy that was found for a similar game: other thresholds, other initial states, other prices.

    Where agents see their own states only, they trade at the multipliers of that policy first, and these change from
    there; with them the search takes fewer rounds than `CommonPrice`. Of what it finds and the policy itself, where
    that is feasible, the one of greater potential is the start. Elsewhere the start is the policy itself; if it is not
    feasible, a mixture of it with a feasible policy, with as little of that as meets the thresholds.

    Parameters
    ----------
    policy
        It need not be feasible.
    multipliers : [n, k] or [k]
        Those that were found with it; without them, prices are sought from the beginning.

    Examples
    --------
    >>> from cmpg.equilibrium.solve import solve
    >>> from cmpg.scenarios import charging
    >>> day = charging()
    >>> earlier = solve(day, epsilon=1e-3)
    >>> tighter = day.with_thresholds([0.4])
    >>> solve(tighter, epsilon=1e-3, start=WarmStart(earlier.policy, earlier.multipliers)).certified
    True
    """

    policy: JointPolicy
    multipliers: FloatArray | None = None
    workers: int = 1

    def __repr__(self) -> str:
        """Return what it is called in settings and tables."""
        return "WarmStart"

    def __call__(
        self,
        game: Game,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        on_progress: OnProgress = lambda _: None,
    ) -> Start:
        """Return a feasible policy near the given one; `begin` is another that is known to be feasible."""
        self.policy.check_fits(game.policy_shapes)
        given = game.at(self.policy)
        prices = game.information is Information.OWN_STATE and len(game.thresholds) > 0
        if is_feasible(given) and not prices:
            return Start(self.policy, worst_slack(given), None, "given")
        if not prices:
            found = MinCostStart()(game, begin, rng=rng, deadline=deadline)
            if found.policy is None:
                return found
            return replace(found, policy=moved_inside(game, found.policy, self.policy), found_by=MOVED_INSIDE)
        terms = _Terms(rng, deadline, self.workers, on_progress)
        common = None if self.multipliers is None else _common(np.asarray(self.multipliers, dtype=np.float64))
        cold = common is None or not np.any(common)
        look = _look if cold else lambda search: _look_near(search, _Priced(given, common))  # type: ignore[arg-type]
        found = _sought(game, MinCostStart()(game, begin, deadline=deadline), terms, look)
        if is_feasible(given) and (found.policy is None or game.potential(self.policy) >= game.potential(found.policy)):
            return replace(found, policy=self.policy, slack=worst_slack(given), found_by="given", begin=None)
        return found


MOVED_INSIDE = "the given policy, mixed with a feasible one until it meets the thresholds"


def _common(multipliers: FloatArray) -> FloatArray:
    """Return one multiplier for each constraint where every agent may have its own: [k]."""
    if multipliers.ndim == 1:
        return multipliers
    # Those of zero belong to agents that the constraint does not concern; infinity is no price.
    rows = np.where((multipliers > 0) & np.isfinite(multipliers), multipliers, np.nan)
    return np.array([np.nanmedian(row) if np.any(row > 0) else 0.0 for row in rows.T])


def _sought(game: Game, found: Start, terms: _Terms, look: Callable[[_Search], bool]) -> Start:
    """Return the best that a search finds from a feasible policy, or that policy."""
    if found.policy is None or len(game.thresholds) == 0:
        return found
    search = _Search(game, game.at(found.policy), terms)
    interrupted = False
    try:
        if is_feasible(search.first) and np.all(search.slacks > 0):
            if look(search):
                _share_out(search)
        elif is_feasible(search.first) and not np.any(search.first.costs[search.slacks <= 0]):
            _look_without_room(search)
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        interrupted = True
    best = search.best
    return Start(
        best.position.policy,
        worst_slack(best.position),
        None,
        f"common multipliers, from {found.found_by}",
        multipliers=best.multipliers,
        trace=tuple(search.trace),
        begin=found.policy,
        interrupted=interrupted,
    )


def _look_near(search: _Search, near: _Priced) -> bool:
    """Begin at the multipliers of a similar game; if agents do not come to rest from there, look everywhere."""
    if not np.all(near.multipliers > 0):  # a constraint that did not bind may do so now: it has no price to begin with
        return _look(search)
    begin = search.rest_at(near.position, near.multipliers, rounds=1, worth=COARSE)
    if not _rest(search, _steered(search, _Priced(begin, near.multipliers))):
        return _look(search)
    _lower(search)
    return True


def _look(search: _Search) -> bool:
    """Go through all phases; what they find is `search.best`. Return whether agents rest there at a price."""
    first, nothing = search.first, np.zeros(len(search.slacks))
    selfish = search.rest_at(first, nothing, rounds=1, worth=COARSE)
    if is_feasible(selfish) and is_feasible(search.rest_at(selfish, nothing, rounds=LAST_ROUNDS, worth=FINE)):
        return False
    stake = float(np.abs(selfish.values - first.values).mean() + NEGLIGIBLE * np.mean(search.game.reward_ranges))
    if np.any(search.slacks * LARGEST_PRICE <= stake):
        return False
    high = stake / search.slacks
    begin = search.rest_at(selfish, high, rounds=1, worth=COARSE)
    if not is_feasible(begin):
        # Selfish agents can be in each other's way so that no agent alone makes room, at any price.
        begin = search.rest_at(first, high, rounds=1, worth=COARSE)
    if not _rest(search, _steered(search, _Priced(begin, high))):
        return False
    _lower(search)
    return True


def _look_without_room(search: _Search) -> None:
    """Where a threshold is zero, raise the multipliers from low ones until no agent spends anything.

    Prices that rise slowly let those give way who lose least by it.
    """
    first, nothing = search.first, np.zeros(len(search.slacks))
    position = search.rest_at(first, nothing, rounds=LAST_ROUNDS, worth=COARSE)
    stake = float(np.abs(position.values - first.values).mean() + NEGLIGIBLE * np.mean(search.game.reward_ranges))
    spent = position.costs - search.game.thresholds
    if is_feasible(position) or np.any(np.abs(spent[spent > 0]) * LARGEST_PRICE <= stake):
        return
    multipliers = np.where(spent > 0, LOWEST_SHARE * stake / np.where(spent > 0, spent, 1.0), 0.0)
    for rise in (*repeat(RISE, RISES), *repeat(LAST_RISE, LAST_RISES)):
        position = search.rest_at(position, multipliers, rounds=LAST_ROUNDS, worth=COARSE)
        if is_feasible(position) and is_feasible(search.rest_at(position, multipliers, rounds=LAST_ROUNDS, worth=FINE)):
            if rise == LAST_RISE:
                # A price so high proves nothing in floating point: that more is impossible is proved by support.
                search.best = _Priced(search.best.position, nothing)
            return
        spent = position.costs - search.game.thresholds
        lowest = LOWEST_SHARE * stake / np.where(spent > 0, spent, 1.0)
        multipliers = np.where(spent > 0, np.where(multipliers == 0, lowest, rise * multipliers), multipliers)
        if np.any(multipliers > LARGEST_PRICE):
            return


@dataclass(frozen=True, eq=False)
class _Terms:
    rng: np.random.Generator | None
    deadline: float
    workers: int
    on_progress: OnProgress


@dataclass(frozen=True, eq=False)
class _Priced:
    position: Position
    multipliers: FloatArray  # [k]


class _Search:
    """What the phases share: where it all began, how agents come to rest, and the last feasible position."""

    def __init__(self, game: Game, first: Position, terms: _Terms) -> None:
        self.game, self.first, self.slacks = game, first, game.thresholds - first.costs
        self.best = _Priced(first, np.zeros(len(self.slacks)))
        self.trace: list[Step] = []
        self._terms, self._began = terms, time.monotonic()

    def used(self, position: Position) -> FloatArray:
        """Return what share of each threshold is used, beyond what the start uses: [k]."""
        return np.asarray((position.costs - self.first.costs) / self.slacks)

    def rest_at(self, position: Position, multipliers: FloatArray, *, rounds: int, worth: float) -> Position:
        """Let agents in turn move to what is best for them at these multipliers, until no agent gains."""
        return self.rest_beside((), position, multipliers, rounds=rounds, worth=worth)

    def rest_beside(
        self, waiting: Collection[int], position: Position, multipliers: FloatArray, *, rounds: int, worth: float
    ) -> Position:
        """The same beside agents that keep their policies."""

        def report(step: Step) -> None:
            number, seconds = len(self.trace) + 1, time.monotonic() - self._began
            self._terms.on_progress(replace(step, iteration=number, seconds=seconds, multipliers=multipliers))

        done, status = dynamics_at(
            position,
            multipliers,
            turns=rounds * self.game.num_agents,
            worth=worth,
            waiting=waiting,
            rng=self._terms.rng,
            deadline=self._terms.deadline,
            workers=self._terms.workers,
            on_progress=report,
        )
        self._record(done, multipliers)
        if status is None:
            self._terms.on_progress(self.trace[-1])
        if is_feasible(done.position):
            self.best = _Priced(done.position, multipliers)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if time.monotonic() > self._terms.deadline:
            raise OutOfTimeError
        return done.position

    def _record(self, ending: DynamicsEnd[Position], multipliers: FloatArray) -> None:
        unknown = np.full(self.game.num_agents, np.nan)
        costs, seconds = np.asarray(ending.position.costs, dtype=np.float64), time.monotonic() - self._began
        step = Step(len(self.trace) + 1, None, np.nan, unknown, costs, 0.0, seconds, multipliers, ending.moves)
        self.trace.append(step)


def _steered(search: _Search, begin: _Priced) -> _Priced:
    """Change the multipliers by how much of each threshold is used, let all agents move once, and so on."""
    position, multipliers = begin.position, begin.multipliers
    largest = np.full(len(multipliers), np.log(LARGEST_STEP))
    before, step = np.zeros(len(multipliers)), np.zeros(len(multipliers))
    factor = np.ones(len(multipliers))  # of the step, where agents hardly answer to prices
    quiet = False
    for _ in range(ROUNDS):
        used = search.used(position)
        if (quiet and ENOUGH < used.max() <= 1) or np.all(largest < np.log(SMALLEST_STEP)):
            break
        # Steps in log λ, so that λ stays positive; a change of sign has passed the target, and halves the step.
        change = np.log(np.maximum(used / AIM, NEGLIGIBLE))
        passed = change * before < 0
        largest = np.where(passed, np.where(factor > 1, np.abs(step), largest) / 2, largest)
        unmoved = (before != 0) & (np.abs(change) > UNMOVED * np.abs(before))
        factor = np.where(passed, 1.0, np.where(unmoved, 2.0 * factor, factor))
        before, step = change, np.clip(factor * change, -largest, largest)
        multipliers = multipliers * np.exp(step)
        moved = search.rest_at(position, multipliers, rounds=1, worth=COARSE)
        quiet, position = moved is position, moved
    return _Priced(position, multipliers)


def _rest(search: _Search, steered: _Priced) -> bool:
    """Let the agents come to rest, at higher multipliers where a threshold is not met; return whether all are."""
    position, multipliers = steered.position, steered.multipliers
    for factor in RAISES:
        raised = np.clip(search.used(position) / AIM, factor, LARGEST_STEP * factor)
        multipliers = multipliers * np.where(position.costs > search.game.thresholds, raised, 1.0)
        position = search.rest_at(position, multipliers, rounds=LAST_ROUNDS, worth=FINE)
        if is_feasible(position):
            return True
    return False


def _lower(search: _Search) -> None:
    """Lower the multipliers at which the agents rest, until nearly all of a threshold is used, or one is not met."""
    broke = np.zeros(len(search.slacks))
    for _ in range(LOWERINGS):
        held = search.best
        used = search.used(held.position)
        if used.max() > ENOUGH:
            break
        multipliers = held.multipliers * np.clip(used / AIM, 1 / LARGEST_STEP, 1.0)
        # Between what holds and what broke a threshold: their geometric mean
        multipliers = np.where(multipliers > broke, multipliers, np.sqrt(held.multipliers * broke))
        if not is_feasible(search.rest_at(held.position, multipliers, rounds=LAST_ROUNDS, worth=FINE)):
            broke = multipliers


def _share_out(search: _Search) -> None:
    """Let a few agents take what is left, and the others rest again beside them; keep that if no agent moves any more.

    The ascent would go on in turns within nothing: what one takes changes the prices of many, and then they can only
    mix, one after the other. Here the few mix, and all others trade at the common multipliers. A crowd gives way to
    an agent that takes something: so multipliers are lowered by what it leaves, less each time.
    """
    held = search.best
    position, multipliers, ranges = held.position, held.multipliers, search.game.reward_ranges
    takers: list[int] = []
    moves: list[int] = []  # of each round
    for share in range(SHARES):
        if share >= PATIENCE and moves[-1] > max(moves[-PATIENCE], search.game.num_agents) / 2:
            break  # it will not come to rest; agents of few kinds, who are all indifferent at one price, never do
        used = search.used(position)
        queue, eager = list(takers), False  # those who took something before respond first
        while not _is_taken(search, position, multipliers):
            if not queue and not eager:
                queue, eager = _eager(position, multipliers, but=takers), True
            if not queue:
                break
            check_time()
            agent = queue.pop(0)
            with suppress(InfeasibleError, SolverError):
                response = Exact()(_problem(position, agent))
                if not is_feasible(position) or response.value > current(position, agent).value:
                    position = position.replace(agent, response.policy)
                    takers += [agent] * (agent not in takers)
        feasible = is_feasible(position)  # where it is not, the few cannot make up for what the others spend
        change = np.where(used < 1 / LAST_STEP, 1.0, np.minimum(used, LAST_STEP))
        multipliers = multipliers * change ** (1 / (1 + share) if feasible else 1.0)
        # An agent that took something long ago may be far from its best by now: it trades with the others again.
        takers = [i for i in takers if i == takers[-1] or _gain(position, i, multipliers) <= COARSE * ranges[i]]
        rested = search.rest_beside(takers, position, multipliers, rounds=LAST_ROUNDS, worth=FINEST)
        moves.append(search.trace[-1].moves)
        if rested is position and feasible:
            return
        position = rested
    search.best = held


def _is_taken(search: _Search, position: Position, multipliers: FloatArray) -> bool:
    """Whether nothing is left of what has a price, and nothing is overspent."""
    enough = np.maximum(NEGLIGIBLE * search.slacks, 8 * position.cost_rounding)
    return is_feasible(position) and bool(np.all((position.slacks <= enough) | (multipliers == 0)))


def _problem(position: Position, agent: int) -> CMDP:
    """Return an agent's CMDP; where too much is spent, it has to make up for that, with room for rounding."""
    cmdp = position.induced_cmdp(agent)
    if is_feasible(position):
        return cmdp
    return replace(cmdp, thresholds=cmdp.thresholds - 2 * position.cost_rounding, trusted=True)


def _eager(position: Position, multipliers: FloatArray, *, but: Collection[int]) -> list[int]:
    """Return who would spend more at slightly lower multipliers, the first of them who gain most by that."""
    others = np.setdiff1d(np.arange(len(position.policy)), list(but))
    for share in LOWER:
        lower = np.tile(share * multipliers, (len(position.policy), 1))
        judged = agent_bounds(position, lower)
        if judged is None:
            break
        # An agent that has the same plan as before is bounded by what the slack is worth.
        gains = judged.bounds - judged.values - share * float(multipliers @ position.slacks) - judged.rounding
        if (gains[others] > 0).any():
            return [int(agent) for agent in others[np.argsort(-gains[others], kind="stable")][:TAKERS]]
    return [int(agent) for agent in others[:TAKERS]]


def _gain(position: Position, agent: int, multipliers: FloatArray) -> float:
    """Return what an agent gains by its best plan at these multipliers."""
    own = current(position, agent)
    best = maximise(position.induced_cmdp(agent), multipliers).value
    return best - float(own.value - multipliers @ own.costs)
