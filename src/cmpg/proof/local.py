"""Local games as the check sees them: agents on states of their own, who meet at resources.

All agents are followed side by side: their states stand in one row, agent after agent, and so do the pairs of state and
action, and the resources as each agent sees them. Forwards there are occupancies, and from them how likely each agent
uses each resource at each step, a cell (h, e). Agents are independent, so the load of a cell is a sum of independent
draws. An agent that surely uses a cell, as every pair that it may be at does, is counted and not drawn; with m others
X_1, …, X_m, who use it with probability p_r,
    T_m = f,    T_{r−1}(t) = (1 − p_r)·T_r(t) + p_r·T_r(t + 1),    E f(t + ΣX) = T_0(t),
    E f(t + Σ_{l ≠ r} X_l) = Σ_q P(X_1 + … + X_{r−1} = q)·T_r(t + q),
so what each of m users meets takes m² operations for all of them together. Agent i's problem is then a CMDP on its own
states with
    reward − Σ_{e used} E delay(1 + N_{−i}),    cost_j + Σ_{e used} E[g_j(1 + N_{−i}) − g_j(N_{−i})],
and what is left of α_j is α_j − Σ_{h, e} E g_j(N_{−i}) − what the others spend by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cmpg.proof.claim import Claim, LocalTables, at_step
from cmpg.proof.rounding import (
    Array,
    Ball,
    Csr,
    Rows,
    difference,
    exactly,
    gathered,
    joined,
    probabilities,
    rows_of,
    split,
    stacked,
)
from cmpg.proof.support import closure, forbidden, whole

BLOCK = 100_000
"""So many numbers, or a few more, are computed with at once."""


def check_local(claim: Claim) -> tuple[Ball, Array, Array, Ball, tuple[bool | None, ...]]:
    """Return values [n], bounds [n] and by how much rounding raised them, costs [k], and what the support keeps."""
    game = Fleet(claim)
    reached = reach(claim, game)
    forward = _forward(claim, game, reached)
    loads = Loads(game.tables, forward.used, reached)
    hard = claim.multipliers == np.inf
    multipliers = np.where(hard, 0.0, claim.multipliers)
    costs = forward.costs.sum(axis=0) + loads.spent(None)
    kept: list[bool | None] = [None] * len(costs.mid)
    agents = range(len(claim.policy))
    closed = [closed_local(claim, game, i, reached, np.flatnonzero(hard[i]).tolist(), kept) for i in agents]
    prices = [loads.prices(i) for i in agents]  # each [1 + k, H, E]
    best, raised = best_of_all(claim, game, prices, multipliers, closed)
    delays = joined([(forward.used[own] * stacked(prices[own])[:, 0]).sum(axis=(1, 2)) for own in _blocks(prices)])
    bounds = np.full(len(agents), np.inf)
    for i in agents:
        bound = best[i]
        if multipliers[i].any():
            left = exactly(claim.thresholds) - (forward.costs[np.arange(len(agents)) != i].sum(axis=0) + loads.spent(i))
            bound = bound + (exactly(multipliers[i]) * left).sum()
        lost = closed[i] is None or np.any(closed[i][0].all(axis=1) & (game.tables.agents[i].initial > 0))
        bounds[i] = np.inf if lost else float(bound.upper)
        raised[i] += float(bound.rad)
    return forward.values - delays, bounds, raised, costs, tuple(kept)


def _blocks(prices: list[Ball]) -> list[slice]:
    """Return the agents in parts whose prices fit side by side into little memory."""
    count = 1 + BLOCK // prices[0].mid.size
    return [slice(begin, begin + count) for begin in range(0, len(prices), count)]


class Fleet:
    """All agents of a local game in one row: their states, their pairs of state and action, the resources of each."""

    def __init__(self, claim: Claim, *, support: bool = False) -> None:
        """Read the tables; with `support`, only what is possible."""
        assert isinstance(claim.tables, LocalTables)
        self.tables, self._support = claim.tables, support
        self.members = members = claim.tables.agents
        shapes = [member.reward.shape[1:] for member in members]
        states = np.array([shape[0] for shape in shapes])
        choices = np.repeat([shape[1] for shape in shapes], states)
        self.resources = claim.tables.delay.shape[1]
        self.first_pair = np.concatenate([[0], np.cumsum([s * a for s, a in shapes])])
        self.first_state = np.concatenate([[0], np.cumsum(states)])
        self.pair_starts = np.cumsum(choices) - choices  # where the pairs of each state begin
        self.agent_at = np.repeat(np.arange(len(members)), states)
        self.state_of = np.repeat(np.arange(len(choices)), choices)
        self.agent_of = np.repeat(np.arange(len(members)), [s * a for s, a in shapes])
        self.has_private_costs = any(member.costs is not None for member in members)
        self._known: dict[Any, Rows] = {}
        self._stages: dict[Any, Array] = {}
        self._possible: dict[int, list[Rows]] = {}
        self._whole: dict[int, WholeCosts] = {}
        self._steps = claim.steps

    def start(self) -> Ball:
        """Return how likely each agent begins in each of its states: [states]."""
        return probabilities(np.concatenate([member.initial for member in self.members]), self.first_state[:-1])

    def moves(self, step: int) -> Rows:
        """Return the transition of a step: [pairs, states]."""
        return self._union([at_step(each.transition, step) for each in self.members], self.first_state)

    def uses(self, step: int) -> Rows:
        """Return who uses what at a step: [pairs, n·E]."""
        columns = np.arange(len(self.members) + 1) * self.resources
        return self._union([at_step(each.uses, step) for each in self.members], columns, support=True)

    def _union(self, matrices: list[Csr], columns: Array, *, support: bool = False) -> Rows:
        """Return matrices of all agents below and beside each other; once for all steps that have the same ones."""
        key = (support, *map(id, matrices))
        if key not in self._known:
            sizes = np.array([len(matrix.indices) for matrix in matrices])
            starts = np.concatenate([matrix.indptr[:-1] for matrix in matrices])
            starts = np.append(starts + np.repeat(np.cumsum(sizes) - sizes, np.diff(self.first_pair)), sizes.sum())
            indices = np.concatenate([matrix.indices for matrix in matrices]) + np.repeat(columns[:-1], sizes)
            union = Csr(starts, indices, np.concatenate([matrix.data for matrix in matrices]), int(columns[-1]))
            self._known[key] = rows_of([union], support=support or self._support)[0]
        return self._known[key]

    def rewards(self, step: int) -> Array:
        """Return the private rewards of all agents at a step: [pairs]."""
        return self._stage("reward", [each.reward for each in self.members], step)

    def _stage(self, name: Any, tables: list[Array], step: int) -> Array:
        """Return tables [H or 1, S, A] of all agents at a step: [pairs]; once, if they do not change with the step."""
        if all(len(table) == 1 for table in tables):
            if name not in self._stages:
                self._stages[name] = np.concatenate([table[0].ravel() for table in tables])
            return self._stages[name]
        return np.concatenate([at_step(table, step).ravel() for table in tables])

    def possible(self, matrices: tuple[Csr, ...]) -> list[Rows]:
        """Return ones where matrices of an agent have an entry; once for all agents that share them."""
        key = id(matrices)
        if key not in self._possible:
            self._possible[key] = rows_of(matrices, support=True)
        return self._possible[key]

    def whole_costs(self, constraint: int) -> WholeCosts:
        """Return what a constraint pays as whole numbers; once for all agents."""
        if constraint not in self._whole:
            private = {id(each.costs): each.costs for each in self.members if each.costs is not None}
            uses = {id(matrix): matrix for each in self.members for matrix in each.uses}
            most_used = max(int(np.diff(matrix.indptr).max(initial=0)) for matrix in uses.values())
            tables = [self.tables.load_costs[constraint], *(table[constraint] for table in private.values())]
            (loads, *parts), unit = whole(*tables, times=4 * self._steps * (most_used + 1))
            changes = np.cumsum(np.diff(loads, axis=-1, prepend=loads[..., :1]) != 0, axis=-1)
            self._whole[constraint] = WholeCosts(loads, changes, dict(zip(private, parts, strict=True)), unit)
        return self._whole[constraint]

    def private_costs(self, constraint: int, step: int) -> Array:
        """Return what constraint j pays for each agent by itself at a step: [pairs]."""
        none = [np.zeros((1, each.reward[0].size)) for each in self.members]
        each = zip(self.members, none, strict=True)
        given = [zeros if member.costs is None else member.costs[constraint] for member, zeros in each]
        return self._stage(constraint, given, step)


@dataclass(frozen=True, eq=False)
class WholeCosts:
    """What a constraint pays, as whole multiples of 1/unit."""

    loads: Array  # [H or 1, E, n + 1]
    changes: Array  # [H or 1, E, n + 1]: how often the load costs change up to each load
    private: dict[int, Array]  # by the identity of the private costs of agents: [H or 1, S, A]
    unit: int


@dataclass(frozen=True, eq=False)
class Reach:
    """What may happen under a policy, however improbable it is."""

    played: Array  # [H, pairs]: the policies of all agents
    pairs: Array  # [H, pairs]: which pairs of state and action each agent may come to
    may: Array  # [n, H, E]: whether an agent may use a resource
    sure: Array  # [n, H, E]: whether it surely does

    def pairs_of(self, game: Fleet, agent: int) -> Array:
        """Return where one agent may come to: [H, S, A]."""
        own = self.pairs[:, game.first_pair[agent] : game.first_pair[agent + 1]]
        return own.reshape(len(own), *game.members[agent].reward.shape[1:])


def reach(claim: Claim, game: Fleet) -> Reach:
    """Follow what may happen, without probabilities."""
    there = np.concatenate([member.initial > 0 for member in game.members])
    played = np.concatenate([table.reshape(claim.steps, -1) for table in claim.policy], axis=1)
    pairs, may, sure = [], [], []
    for step in range(claim.steps):
        pairs.append((played[step] > 0) & there[game.state_of])
        users = game.uses(step).entered(pairs[-1]).reshape(len(game.members), game.resources)
        may.append(users > 0)
        sure.append(users == np.add.reduceat(pairs[-1], game.first_pair[:-1], dtype=np.int64)[:, None])
        there = game.moves(step).entered(pairs[-1]) > 0
    return Reach(played, np.stack(pairs), np.stack(may, axis=1), np.stack(sure, axis=1))


@dataclass(frozen=True, eq=False)
class Forward:
    """What each agent does by its policy, whatever the others do."""

    values: Ball  # [n]: private rewards
    costs: Ball  # [n, k]: private costs
    used: Ball  # [n, H, E]: how likely it uses each resource


def _forward(claim: Claim, game: Fleet, reached: Reach) -> Forward:
    """Follow every agent by itself."""
    agents, constraints = claim.multipliers.shape
    mass = game.start()
    values, costs = exactly(np.zeros(agents)), [exactly(np.zeros(agents)) for _ in range(constraints)]
    used = []
    for step in range(claim.steps):
        pairs = np.flatnonzero(reached.pairs[step])  # all others have no mass
        visits = probabilities(reached.played[step], game.pair_starts)[pairs] * mass[game.state_of[pairs]]
        used.append(game.uses(step).push(visits, pairs).reshape(agents, game.resources))
        owner, got = game.agent_of[pairs], game.rewards(step)[pairs]
        values = values + gathered(visits * exactly(got), owner, agents)
        for j in range(constraints) if game.has_private_costs else ():
            costs[j] = costs[j] + gathered(visits * exactly(game.private_costs(j, step)[pairs]), owner, agents)
        mass = game.moves(step).push(visits, pairs)
    spent = stacked(costs, axis=1) if costs else exactly(np.zeros((agents, 0)))
    drawn, certain = stacked(used, axis=1), reached.sure | ~reached.may
    # What is certain by what may happen has no rounding in it.
    exact = Ball(np.where(reached.sure, 1.0, drawn.mid), np.where(certain, 0.0, drawn.rad))
    return Forward(values, spent, exact)


class Loads:
    """What the loads of the cells make agents expect, of functions of the load of the others: the delay of one more,
    what each constraint pays, and by how much that rises with one more: [1 + 2k, cells].
    """

    def __init__(self, tables: LocalTables, used: Ball, reached: Reach) -> None:
        """Compute all expectations."""
        agents, steps, resources = reached.may.shape
        self._constraints, self._shape = len(tables.load_costs), (steps, resources)
        # Tables that do not change with the step are read once for all of them.
        length = 1 if len(tables.delay) == tables.load_costs.shape[1] == 1 else steps
        delay = np.broadcast_to(tables.delay, (length, resources, agents + 1))
        costs = np.broadcast_to(tables.load_costs, (self._constraints, *delay.shape))
        # With all agents on a cell there is no other one whom it could delay, or who could add anything.
        last = [(0, 0)] * 3 + [(0, 1)]
        after, more = (np.pad(table[..., 1:], last, mode="edge") for table in (delay[None], costs))
        functions = joined([exactly(after), exactly(costs), difference(more, costs)])
        self._functions = functions.reshape(len(functions.mid), length * resources, agents + 1)
        may, self._sure = reached.may.reshape(agents, -1), reached.sure.reshape(agents, -1)
        self._drawn, self._used = may & ~self._sure, used.reshape(agents, -1)
        self._users = [np.flatnonzero(row) for row in may]
        # As agents meet the cells that they may use: one after the other, in the rows of `_users`.
        self._place = np.cumsum(may).reshape(may.shape) - 1
        self._without = _zeros(len(functions.mid), int(may.sum()))
        # As an agent meets a cell that it does not use now.
        self._free = _zeros(len(functions.mid), steps * resources)
        count = self._drawn.sum(axis=0)
        for many in np.unique(count).tolist():
            cells = np.flatnonzero(count == many)
            for begin in range(0, len(cells), 1 + BLOCK // (many + 1) ** 2):
                self._fill(cells[begin : begin + 1 + BLOCK // (many + 1) ** 2], many)

    def _fill(self, cells: Array, many: int) -> None:
        """Compute the expectations on cells in which so many agents are drawn."""
        who = np.nonzero(self._drawn[:, cells].T)[1].reshape(len(cells), many)
        chances = self._used[who, cells[:, None]]  # [cells, many]
        base = self._sure[:, cells].sum(axis=0)
        both = stacked([exactly(1.0) - chances, chances])[..., None]  # not used, used: [2, cells, many, 1]

        # T_0, …, T_many from the load base − 1 on; what lies outside of the tables is never used.
        loads = np.clip(base[:, None] + np.arange(-1, many + 1), 0, len(self._drawn))
        tables = [self._functions[:, cells[:, None] % self._functions.mid.shape[1], loads]]
        for r in reversed(range(many)):
            stay, join = split(tables[0] * both[:, None, :, r])
            tables.insert(0, stay[..., :-1] + join[..., 1:])
        raw = tables[-1]

        def common(expected: Ball, low: int, high: int) -> Ball:
            """Return an expectation over some loads of the window; exactly what they have in common, if it is one."""
            window = raw[..., low:high]
            same = (window.mid == window.mid[..., :1]).all(axis=-1)
            return Ball(
                np.where(same, window.mid[..., 0], expected.mid), np.where(same, window.rad.max(axis=-1), expected.rad)
            )

        _put(self._free, np.s_[:, cells], common(tables[0][..., 1], 1, many + 2))
        agents, at = np.nonzero(self._sure[:, cells])  # one of those who are sure is left out
        _put(self._without, np.s_[:, self._place[agents, cells[at]]], common(tables[0][..., 0], 0, many + 1)[:, at])
        if not many:
            return
        before, none = exactly(np.ones((len(cells), 1))), exactly(np.zeros((len(cells), 1)))
        # What those before the r-th do, and what all functions make of that with those after it.
        chance, ahead = _zeros(many, 1, len(cells), many), _zeros(many, len(raw.mid), len(cells), many)
        for r in range(many):
            _put(chance, np.s_[r, 0, :, : r + 1], before)
            _put(ahead, np.s_[r, ..., : r + 1], tables[r + 1][..., 1 : r + 2])
            stay, join = split(before * both[:, :, r])
            before = _beside(stay, none) + _beside(none, join)
        expected = common((chance * ahead).sum(axis=3), 1, many + 1)
        _put(self._without, np.s_[:, self._place[who, cells[:, None]]], expected.moveaxis(0, 2))

    def _seen(self, agent: int) -> Ball:
        """Return all expectations as one agent meets them: [1 + 2k, cells]."""
        seen = Ball(self._free.mid.copy(), self._free.rad.copy())
        own = self._users[agent]
        if len(own):
            begin = self._place[agent, own[0]]
            _put(seen, np.s_[:, own], self._without[:, begin : begin + len(own)])
        return seen

    def prices(self, agent: int) -> Ball:
        """Return the delay that an agent meets on each cell, and what it adds to each cost: [1 + k, H, E]."""
        kept = [0, *range(1 + self._constraints, 1 + 2 * self._constraints)]
        return self._seen(agent)[kept].reshape(1 + self._constraints, *self._shape)

    def spent(self, agent: int | None) -> Ball:
        """Return what the loads cost, or what they cost without one agent: [k]."""
        return (self._free if agent is None else self._seen(agent))[1 : 1 + self._constraints].sum(axis=1)


def _put(table: Ball, places: Any, entries: Ball) -> None:
    """Write into parts of a table, in place."""
    table.mid[places], table.rad[places] = entries.mid, entries.rad


def _zeros(*shape: int) -> Ball:
    return exactly(np.zeros(shape))


def _beside(first: Ball, second: Ball) -> Ball:
    return Ball(np.hstack([first.mid, second.mid]), np.hstack([first.rad, second.rad]))


def best_of_all(
    claim: Claim, game: Fleet, prices: list[Ball], multipliers: Array, closed: list[Any]
) -> tuple[Ball, Array]:
    """Return max V^{r − λ·c} of each agent among what is allowed, from above, and how much of it is rounding [n]."""
    members = game.members
    weights = exactly(np.concatenate([np.ones((len(members), 1)), multipliers], axis=1)[..., None, None])
    charged = [(stacked(prices[own]) * weights[own]).sum(axis=1) for own in _blocks(prices)]  # each [agents, H, E]
    charge = joined(charged).moveaxis(0, 1).reshape(claim.steps, -1)  # what each cell costs, with λ·c: [H, n·E]
    mask = None
    if any(each is not None and each.any() for each in closed):
        masks = [
            np.zeros((claim.steps, each.reward[0].size)) if m is None else m
            for m, each in zip(closed, members, strict=True)
        ]
        mask = np.concatenate([each.reshape(claim.steps, -1) for each in masks], axis=1)
    best, raised = np.zeros(game.first_state[-1]), np.zeros(len(members))
    for step in reversed(range(claim.steps)):
        worth = exactly(game.rewards(step)) - game.uses(step).mean(charge[step])
        for j in np.flatnonzero(multipliers.any(axis=0)).tolist():
            if game.has_private_costs:
                worth = worth - exactly(game.private_costs(j, step)) * exactly(multipliers[game.agent_of, j])
        if step + 1 < claim.steps:
            worth = worth + game.moves(step).mean(exactly(best))
        upper = worth.upper
        raised += np.maximum.reduceat(worth.rad, game.first_pair[:-1])
        if mask is not None:
            upper = np.where(mask[step], -np.inf, upper)
        best = np.maximum.reduceat(upper, game.pair_starts)
        if mask is not None:  # no play comes to a state in which everything is forbidden
            best = np.where(np.logical_and.reduceat(mask[step], game.pair_starts), 0.0, best)
    start = game.start()
    begins = np.flatnonzero(start.mid)
    return gathered(start[begins] * exactly(best[begins]), game.agent_at[begins], len(members)), raised


def closed_local(
    claim: Claim, game: Fleet, agent: int, reached: Reach, constraints: list[int], kept: list[bool | None]
) -> Any:
    """Return what proofs by support forbid one agent [H, S, A], or None where such a claim is not true.

    Whether the policy keeps each threshold is noted in `kept`.
    """
    masks = [np.zeros(claim.policy[agent].shape, dtype=bool)]
    if not constraints:
        return masks[0]
    moves = game.possible(game.members[agent].transition)
    for j in constraints:
        found = _forbidden(claim, game, agent, j, reached, moves)
        if found is None:
            return None
        kept[j] = not np.any(reached.pairs_of(game, agent) & found)
        masks.append(found)

    def leads(step: int, states: Array) -> Array:
        return np.asarray(at_step(moves, step).highest(states).reshape(masks[0].shape[1:]))

    return closure(masks, leads, for_ever=False)


def _forbidden(claim: Claim, game: Fleet, agent: int, constraint: int, reached: Reach, moves: list[Rows]) -> Any:
    """Return what one constraint, of which nothing is left, forbids one agent; None where that is not certain.

    Between the least and the greatest number of others on a cell the load cost must be the same, and so must be what
    each other spends by itself at each step. An agent that is neither sure to use a cell nor sure not to makes what is
    added there uncertain, and then what is expected is above the least: so an action may be forbidden for it even if
    several such cells do not reach their greatest together.
    """
    members, steps = game.members, claim.steps
    others = np.arange(len(members)) != agent
    costs = game.whole_costs(constraint)
    left = Fraction(claim.thresholds[constraint]) * costs.unit
    for i in np.flatnonzero(others).tolist():
        if members[i].costs is not None:
            ways = reached.pairs_of(game, i)
            for step in range(steps):
                spent = at_step(costs.private[id(members[i].costs)], step)[ways[step]]
                if (spent != spent[0]).any():
                    return None
                left -= int(spent[0])
    low, high = reached.sure[others].sum(axis=0)[..., None], reached.may[others].sum(axis=0)[..., None]
    # Tables that do not change with the step are looked up, and not copied for every step.
    loads, changes = (np.broadcast_to(table, (steps, *table.shape[1:])) for table in (costs.loads, costs.changes))
    if (np.take_along_axis(changes, low, axis=-1) != np.take_along_axis(changes, high, axis=-1)).any():
        return None
    before, after = (np.take_along_axis(loads, index, axis=-1)[..., 0] for index in (low, high + 1))
    left -= sum(before.ravel().tolist())
    rises, open_ = after - before, (high > low)[..., 0]
    least, most = np.where(open_, np.minimum(rises, 0), rises), np.where(open_, np.maximum(rises, 0), rises)
    shape = claim.policy[agent].shape
    uses, own = game.possible(members[agent].uses), members[agent].costs

    def outcomes(step: int, ahead: Array) -> tuple[Array, Array]:
        stage: Any = 0 if own is None else at_step(costs.private[id(own)], step).ravel()
        low = stage + _added(at_step(uses, step), least[step]) + at_step(moves, step).lowest(ahead)
        high = stage + _added(at_step(uses, step), most[step]) + at_step(moves, step).highest(ahead)
        return low.reshape(shape[1:]), high.reshape(shape[1:])

    return forbidden(outcomes, members[agent].initial, left, shape, loads.dtype)


def _added(uses: Rows, prices: Array) -> Array:
    """Return the sum of whole numbers [E] over what is used: [S·A]."""
    total = np.zeros(len(uses.counts), dtype=prices.dtype)
    some = uses.counts > 0
    if some.any():
        total[some] = np.add.reduceat(prices[uses.indices], (np.cumsum(uses.counts) - uses.counts)[some])
    return total
