"""What no feasible policy of a local game can exceed: agents who pay a price for every use, and plan alone.

The welfare of a policy is Σ_i private_i − Σ_{h,e} E[N·d(N)], its potential Σ_i private_i − Σ_{h,e} E[Σ_{m ≤ N} d(m)],
and constraint j costs Σ_i private_ij + Σ_{h,e} E[g_j(N)], with N the load of resource e at step h. So at multipliers
λ ≥ 0 every feasible policy is worth at most

    λ·α + Σ_i V_i^{private − λ·costs} − Σ_{h,e} E[f(N)],    f(m) = m·d(m), or Σ_{l ≤ m} d(l), plus λ·g(m).

Let p be any price for a use of (h, e), and f*(p) = max_{0 ≤ m ≤ M} (p·m − f(m)), with M the number of agents who can
use it. Then f(N) ≥ p·N − f*(p) whatever the distribution of N, and E[N] is the sum of the agents' usages; so

    bound(λ, p) = λ·α + Σ_{h,e} f*(p) + Σ_i max_{π_i} V_i^{private − λ·costs − p·uses}

holds for every policy that keeps the thresholds, even for one that correlates the agents: n dynamic programs of single
agents. The best prices are slopes of the convex envelope of f. The bound is convex in (λ, p); its subgradient is what
the conjugates would like to be used, and spent, less what the agents use and spend; a few dozen steps of Polyak's
length go down it. Any (λ, p) proves something: the search may be as rough as it likes.

The same with private rewards and delays left out bounds λ·V^c from below, for all policies: where even that exceeds
λ·α, no policy is feasible.

Guarantee: `value` includes an allowance for all rounding, so that the bound holds in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, IntArray
from cmpg.cmdp.model import CMDP, drop_broadcast
from cmpg.cmdp.planning import certain_rows, maximise
from cmpg.deadline import check_time
from cmpg.errors import OutOfTimeError
from cmpg.games.game import Objective, UpperBound
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.games.local.game import LocalGame
    from cmpg.games.local.position import LocalPosition

STEPS, FEWEST = 40, 4
"""Points at which the bound is computed, at most and at least; each is one plan of every agent."""

WARM_STEPS = 8
"""Steps towards the prices of a mean load, where there is no policy to take prices from."""

PATIENCE, MAX_HALVINGS = 6, 2
"""After 6 steps without progress the length is halved, and the search continues from the best point; it ends if no
point was better than the first after 2 halvings.
"""

PROGRESS = 0.02
"""Progress is at least this share of what is left between the bound and the value that is known."""

TIGHT = 1e-9
"""The search is over when the bound is this close, relative to its size."""

MAX_WORK = 200_000_000
"""Fewer points where this many entries (agent, step, state, action) would be visited; no bound where not a few fit."""


@dataclass(frozen=True, eq=False)
class _Curves:
    """Tables by load, each row once: most resources are alike."""

    of: IntArray  # [H or 1, E]: the curve of each resource
    loss: FloatArray  # [curves, n + 1]: without multipliers
    costs: FloatArray  # [k, curves, n + 1]

    @staticmethod
    def of_tables(loss: FloatArray, costs: FloatArray) -> _Curves:
        """Find the different rows of tables [H or 1, E, n + 1] and [k, H or 1, E, n + 1]."""
        shape = (max(len(loss), costs.shape[1]), *loss.shape[1:])
        tables = np.stack([np.broadcast_to(each, shape) for each in (loss, *costs)], axis=2).reshape(
            shape[0] * shape[1], -1
        )
        words = tables.view(np.dtype((np.void, tables.itemsize * tables.shape[1])))[:, 0]
        _, first, of = np.unique(words, return_index=True, return_inverse=True)
        rows = tables[first].reshape(len(first), 1 + len(costs), shape[2]).swapaxes(0, 1).copy()
        return _Curves(of.reshape(shape[:2]), rows[0], rows[1:])


@dataclass(frozen=True, eq=False)
class Dual:
    """The bound at one point, and which way is down."""

    value: float  # with the allowance for rounding
    spare: FloatArray  # [k]: α less what agents and conjugates spend; the slope of the bound in λ
    unused: FloatArray  # [H, E]: the loads of the conjugates less those of the agents; the slope in p
    loads: FloatArray  # [H, E]: what the agents use


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A local game whose agents pay for what they use, instead of meeting each other."""

    game: LocalGame
    objective: Objective | None  # None: nothing is worth anything, and only costs count

    @cached_property
    def load_loss(self) -> FloatArray:
        """What a load takes from the objective: [H or 1, E, n + 1]."""
        loads = np.arange(self.game.num_agents + 1)
        delay = np.where(loads > 0, self.game.delay, 0.0)
        if self.objective is None:
            return np.zeros((1, *delay.shape[1:]))
        return np.asarray(delay * loads if self.objective is Objective.WELFARE else np.cumsum(delay, axis=-1))

    @property
    def least_reference(self) -> float:
        """Φ of the reference, and its rounding taken off; and that of a difference from it."""
        game, loss = self.game, np.abs(self.load_loss).max(axis=-1)
        size = float(game.reward_sizes.sum() + loss.sum() * (game.horizon / len(loss)))
        rounding = game.at(JointPolicy.reference(game.policy_shapes)).rounding + 4 * UNIT_ROUNDOFF
        return game.reference_potential - rounding * size

    @cached_property
    def max_users(self) -> IntArray:
        """M: how many agents can use each resource at each step, by any policy: [H, E]."""
        reached = np.zeros((self.game.horizon, self.game.num_resources), dtype=np.int64)
        for agent in range(self.game.num_agents):
            reached += self.game.reach(agent)
        return reached

    def at(self, multipliers: FloatArray, prices: FloatArray) -> Dual:
        """Return the bound at multipliers [k] and prices [H, E]."""
        check_time()
        game = self.game
        agents = self._alone(multipliers, prices)
        curves, loss = self._curves, self._loss(multipliers)
        chosen = self._most_profitable(loss, prices)
        # The conjugate f*(p) = max_m p·m − f(m): what a seller of uses at these prices would keep.
        best = prices * chosen - loss[curves.of, chosen]
        limit = float(multipliers @ game.thresholds)
        # (α − what is spent, unused loads) at the maximisers is a subgradient of the bound in (λ, prices).
        spent = np.array([each[curves.of, chosen].sum() for each in curves.costs])
        value = limit + float(best.sum()) + agents.value
        # One rounding for each term of every sum, and a few for each product, of numbers of at most this size. Where a
        # load is found by bisection, each of n comparisons may be wrong by two roundings of the loss.
        largest = np.abs(curves.loss).max(axis=-1)
        for multiplier, costs in zip(multipliers, curves.costs, strict=True):
            largest = largest + abs(multiplier) * np.abs(costs).max(axis=-1)
        load_sizes = float(largest[curves.of].sum()) * (game.horizon / len(curves.of))
        size = float(np.abs(prices).sum() * game.num_agents) + load_sizes
        size = size + agents.size + float(np.abs(multipliers) @ np.abs(game.thresholds))
        count = prices.size + 4 * game.num_agents + len(multipliers) + 16
        return Dual(
            value=value + agents.rounding + count * UNIT_ROUNDOFF * size,
            spare=np.asarray(game.thresholds - spent - agents.costs),
            unused=chosen - agents.loads,
            loads=agents.loads,
        )

    @cached_property
    def _curves(self) -> _Curves:
        return _Curves.of_tables(self.load_loss, self.game.load_costs)

    def _loss(self, multipliers: FloatArray) -> FloatArray:
        """f(m) of each curve: [curves, n + 1]."""
        return np.asarray(self._curves.loss + np.tensordot(multipliers, self._curves.costs, axes=1))

    @cached_property
    def _is_convex(self) -> bool:
        """Whether f is convex in the load at any multipliers."""
        curves = self._curves
        return all(bool((np.diff(table, n=2, axis=-1) >= 0).all()) for table in (curves.loss, *curves.costs))

    def _most_profitable(self, loss: FloatArray, prices: FloatArray) -> IntArray:
        """Return the load that maximises p·m − f(m) over 0 ≤ m ≤ M, for curves f [curves, n + 1]: [H, E]."""
        of = self._curves.of
        if not self._is_convex:
            loads = np.arange(loss.shape[-1])
            conjugates = prices[..., None] * loads - loss[of]
            conjugates[loads > self.max_users[..., None]] = -np.inf
            return np.asarray(conjugates.argmax(axis=-1))
        # f rises by more and more: the first load whose rise is no less than the price, by bisection.
        rises = np.maximum.accumulate(np.diff(loss, axis=-1), axis=-1)  # rounding could let one fall
        chosen, flat = np.empty(prices.size, dtype=np.int64), prices.ravel()
        for own, members in zip(rises, self._members, strict=True):
            chosen[members] = np.searchsorted(own, flat[members])
        return np.minimum(chosen.reshape(prices.shape), self.max_users)

    @cached_property
    def _members(self) -> list[Any]:
        """Where each curve is, in order (step, resource)."""
        of = np.broadcast_to(self._curves.of, (self.game.horizon, self.game.num_resources)).ravel()
        if not of.any():
            return [slice(None)]
        ends = np.cumsum(np.bincount(of))[:-1]
        return np.split(np.argsort(of, kind="stable"), ends)

    def prices_at(self, multipliers: FloatArray, loads: FloatArray) -> FloatArray:
        """Return slopes of the convex envelope of f at mean loads [H, E]: [H, E]."""
        of, loss = self._curves.of, self._loss(multipliers)
        if self._is_convex:
            # Between two whole loads f is its chord, whose slope is a subgradient at any mean load in between.
            left = np.clip(np.floor(loads).astype(np.int64), 0, np.maximum(self.max_users - 1, 0))
            return np.asarray(np.diff(loss, axis=-1)[of, left])
        spread = np.broadcast_to(loss[of], (*loads.shape, loss.shape[-1]))
        return np.asarray(_envelope_slopes(spread, self.max_users, loads))

    def marginal_prices(self, multipliers: FloatArray, position: LocalPosition) -> FloatArray:
        """Return E[f(1 + N) − f(N)] for the loads N of a position: [H, E]."""
        of, rises = self._curves.of, np.diff(self._loss(multipliers), axis=-1)
        if not len(self.game.tables.general):  # f is quadratic, so that its rises are affine in the load
            slope = (rises[..., -1] - rises[..., 0]) / max(rises.shape[-1] - 1, 1)
            return np.asarray(rises[of, 0] + slope[of] * position.expected_load)
        spread = np.broadcast_to(rises[of], (self.game.horizon, self.game.num_resources, rises.shape[-1]))
        return np.asarray(np.einsum("mhe,hem->he", position.load_probabilities()[:-1], spread))

    def _alone(self, multipliers: FloatArray, prices: FloatArray) -> _Alone:
        game, packed = self.game, self._packed
        shape, families = (game.horizon, game.num_resources), game.num_constraints
        respond = None if packed is None else getattr(packed.kernels, "respond", None)
        loads, costs, maxima = np.zeros(shape), np.zeros((game.num_agents, families)), np.zeros(game.num_agents)
        if packed is not None and respond is not None:
            respond(
                packed.fields, np.ascontiguousarray(prices), np.ascontiguousarray(multipliers), maxima, costs, loads
            )
            roundings = packed.rounding
        else:
            roundings = np.zeros(game.num_agents)
            for i, agent in enumerate(game.agents):
                cmdp = self._private_cmdp(i, multipliers, prices)
                best = maximise(cmdp, np.zeros(0))
                account = game.account(agent, certain_rows(best.actions(None), agent.num_actions))
                maxima[i], costs[i], roundings[i] = best.value, account.costs, cmdp.rounding
                loads += account.usage
        sizes = self._rewards + self._charges @ multipliers + self._uses * float(np.abs(prices).max(axis=1).sum())
        return _Alone(
            float(maxima.sum()), costs.sum(axis=0), loads, float(2 * roundings @ sizes), float(np.abs(maxima).sum())
        )

    def _private_cmdp(self, index: int, multipliers: FloatArray, prices: FloatArray) -> CMDP:
        agent = self.game.agents[index]
        table = agent.reward.shape[1:]
        reward = -agent.charge(prices)
        if self.objective is not None:
            reward = reward + drop_broadcast(agent.reward)
        if agent.costs is not None:
            reward = reward - np.tensordot(multipliers, drop_broadcast(agent.costs), axes=1)
        return CMDP(
            transition=agent.kernel,
            reward=np.broadcast_to(reward, (len(reward), *table)),
            costs=np.zeros((0, 1, *table)),
            thresholds=np.zeros(0),
            initial=agent.initial,
            horizon=self.game.horizon,
            entry_roundings=agent.max_uses + len(multipliers) + 4,
            trusted=True,
        )

    @cached_property
    def _packed(self) -> Any:
        packed = self.game.packed
        return packed if packed is None or self.objective is not None else packed.without_rewards()

    @cached_property
    def _rewards(self) -> FloatArray:
        """Σ_h max |reward| of each agent: [n]."""
        if self.objective is None:
            return np.zeros(self.game.num_agents)
        return np.array([self._total(agent.reward[None])[0] for agent in self.game.agents])

    @cached_property
    def _charges(self) -> FloatArray:
        """Σ_h max |private costs| of each agent: [n, k]."""
        none = np.zeros(self.game.num_constraints)
        return np.array([none if a.costs is None else self._total(a.costs) for a in self.game.agents])

    @cached_property
    def _uses(self) -> FloatArray:
        """The largest number of resources that each agent uses at once: [n]."""
        return np.array([float(agent.max_uses) for agent in self.game.agents])

    def _total(self, table: FloatArray) -> FloatArray:
        largest = np.abs(drop_broadcast(table)).max(axis=(2, 3))
        return np.asarray(largest.sum(axis=1) * (self.game.horizon if largest.shape[1] == 1 else 1))


@dataclass(frozen=True, eq=False)
class _Alone:
    """What agents who plan alone get, spend and use in all."""

    value: float
    costs: FloatArray  # [k]
    loads: FloatArray  # [H, E]
    rounding: float
    size: float


def bound_near(
    relaxation: Relaxation, position: LocalPosition, multipliers: FloatArray, *, value: float, steps: int = STEPS
) -> tuple[Dual, FloatArray]:
    """Go down the bound from the prices of a position; return the least one that is found, and its multipliers.

    Parameters
    ----------
    relaxation
        Of the position's game.
    position
        A feasible policy, the better the closer the first prices.
    multipliers : [k]
        λ at first.
    value
        What the policy is worth: no bound can be less, and steps are as long as that allows.
    steps
        Steps at most.
    """
    loads = position.expected_load
    zero = np.zeros_like(multipliers)
    starts = [
        (multipliers, relaxation.marginal_prices(multipliers, position)),
        (multipliers, relaxation.prices_at(multipliers, loads)),
        *([(zero, relaxation.prices_at(zero, loads))] if multipliers.any() else []),
    ]
    tried = [(relaxation.at(*start), *start) for start in starts]
    return descend(relaxation, min(tried, key=lambda each: each[0].value), value=value, steps=steps - len(tried))


Point = tuple[Dual, FloatArray, FloatArray]
"""The bound somewhere, and where: multipliers and prices."""


def descend(relaxation: Relaxation, start: Point, *, value: float, steps: int) -> tuple[Dual, FloatArray]:
    """Take subgradient steps of Polyak's length towards a value that the bound cannot be below.

    Where time runs out, the best point so far is returned: every point proves a bound.
    """
    best = point = start
    share, idle, halvings = 1.0, 0, 0
    scale = _scale(start)
    for _ in range(steps):
        dual, multipliers, prices = point
        gap = dual.value - value
        if best[0].value - value <= TIGHT * (abs(value) + abs(best[0].value)):
            break
        # A multiplier at zero that wants to fall further stays.
        spare = np.where((multipliers > 0) | (dual.spare < 0), dual.spare, 0.0)
        norm = float((dual.unused**2).sum() + scale * (spare**2).sum())
        if norm == 0:
            break
        # Polyak: by (bound − value)/‖g‖² the point comes closer to every minimiser, if the value is the minimum.
        step = share * gap / norm
        multipliers = np.maximum(multipliers - step * scale * spare, 0.0)
        prices = prices - step * dual.unused
        try:
            point = (relaxation.at(multipliers, prices), multipliers, prices)
        except OutOfTimeError:
            break
        idle = 0 if point[0].value < best[0].value - PROGRESS * (best[0].value - value) else idle + 1
        if point[0].value < best[0].value:
            best = point
        # No progress: the target value lies below the minimum; shorter steps, from the best point so far.
        if idle > PATIENCE:
            share, idle, halvings, point = share / 2, 0, halvings + 1, best
        if halvings == MAX_HALVINGS and best is start:
            break
    return best[0], best[1]


def _scale(point: Point) -> float:
    """How much faster multipliers move than prices: they are worth a load cost each, prices a use."""
    _, multipliers, prices = point
    used = np.abs(prices[prices != 0])
    typical = float(used.mean()) if used.size else 1.0
    # The square of more than 1e154 is beyond all floats; what is that far apart is not weighed to the last digit.
    ratio = min(float(multipliers.max(initial=0.0) + typical) / max(typical, 1e-150), 1e150)
    return ratio**2


def _envelope_slopes(loss: FloatArray, most: IntArray, loads: FloatArray) -> FloatArray:
    """Slopes of the lower convex envelope of tables [H, E, n + 1], over 0 … most, at the given points [H, E]."""
    rises = np.diff(loss, axis=-1)
    left = np.clip(np.floor(loads).astype(np.int64), 0, np.maximum(most - 1, 0))
    slopes = np.take_along_axis(rises, left[..., None], axis=-1)[..., 0].copy()
    beyond = np.arange(1, rises.shape[-1]) >= most[..., None]
    bent = ~((np.diff(rises, axis=-1) >= 0) | beyond).all(axis=-1)
    for h, e in np.argwhere(bent & (most > 0)):
        table, at = loss[h, e, : most[h, e] + 1], min(float(loads[h, e]), most[h, e] - 1e-9)
        # The envelope's edge over a point joins the two loads, one on each side, whose chord is lowest there.
        low, high = np.arange(int(at) + 1)[:, None], np.arange(int(at) + 1, len(table))[None]
        chords = (table[high] - table[low]) / (high - low)
        slopes[h, e] = chords.ravel()[np.argmin(table[low] + chords * (at - low))]
    return np.asarray(slopes)


def local_bound(
    game: LocalGame, objective: Objective, position: LocalPosition, multipliers: FloatArray
) -> UpperBound | None:
    """Bound what any feasible policy is worth, by prices found near a position.

    None where that takes too long, or where the bound is beyond all floats.
    """
    entries = sum(int(np.prod(shape)) for shape in game.policy_shapes)
    steps = min(STEPS, MAX_WORK // entries)
    if steps < FEWEST:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(position.values.sum()) if objective is Objective.WELFARE else position.rosenthal
        relaxation = Relaxation(game, objective)
        dual, found = bound_near(relaxation, position, multipliers, value=value, steps=steps)
        bound = dual.value if objective is Objective.WELFARE else dual.value - relaxation.least_reference
    if not np.isfinite(bound):
        return None
    return UpperBound(bound, found, "common prices: every agent plans alone and pays for what it uses")


def least_left(game: LocalGame, multipliers: FloatArray, *, fixed: bool) -> tuple[float, FloatArray]:
    """Bound λ·(α − V^c) over all policies, by the best prices that are found; return the bound, and λ.

    The bound grows in proportion to (λ, p), so that λ can be kept at a sum of one; steps aim below zero, where it would
    prove that no policy is feasible. With `fixed`, only prices are sought.
    """
    relaxation = Relaxation(game, None)
    prices = np.zeros((game.horizon, game.num_resources))
    best = point = (relaxation.at(multipliers, prices), multipliers, prices)
    mean = np.zeros_like(prices)
    for step in range(WARM_STEPS):
        # Towards the slopes at the mean of what agents use: Frank and Wolfe's steps.
        mean += (point[0].loads - mean) / (step + 1)
        prices = relaxation.prices_at(multipliers, mean)
        point = (relaxation.at(multipliers, prices), multipliers, prices)
        best = min(best, point, key=lambda each: each[0].value)
    aim = -0.05 * float(multipliers @ np.abs(game.thresholds) + abs(best[0].value))
    share, idle, point = 1.0, 0, best
    for _ in range(STEPS):
        dual, multipliers, prices = point
        spare = np.zeros_like(multipliers) if fixed else dual.spare
        norm = float((dual.unused**2).sum() + (spare**2).sum())
        if norm == 0 or best[0].value < 0:
            break
        length = share * (dual.value - aim) / norm
        multipliers, prices = np.maximum(multipliers - length * spare, 0.0), prices - length * dual.unused
        total = float(multipliers.sum())
        if not fixed and total > 0:
            multipliers, prices = multipliers / total, prices / total
        point = (relaxation.at(multipliers, prices), multipliers, prices)
        better = point[0].value < best[0].value
        idle = 0 if better else idle + 1
        best = point if better else best
        if idle > PATIENCE:
            share, idle, point = share / 2, 0, best
    return best[0].value, best[1]
