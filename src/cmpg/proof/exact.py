"""The check of a claim in rationals: no rounding, for every form of game.

Every float is read as the rational number that it is, and every row of probabilities as divided by its exact sum.
Numbers are Python's integers over a common denominator, one for each step: going back one step multiplies it by the
least common multiple of the sums of the rows, so that every division is exact.

What a policy costs and is worth is found forwards, from what can happen under it; what a deviation could get backwards,
from what the others may do. Both touch only what has a probability, so a claim about a policy that mixes little is
checked exactly in games whose tables are far too large for a sum over all of them.

Discounted sums of a policy are solved for, by elimination, over the states that it may come to. The maximum is bounded
as in floats (`check`): for any v with T v ≤ v + ρ it is at most v + ρ / (1 − γ), and ρ is zero if v is the value of a
best policy. `TooLarge` is raised where the digits or the work would be too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import pairwise, product
from math import fsum, gcd, lcm, prod
from typing import Any

import numpy as np

from cmpg.proof.check import closed_shared
from cmpg.proof.claim import AgentTables, Claim, CountingTables, Csr, JointTables, LocalTables, at_step
from cmpg.proof.local import Fleet, closed_local, reach
from cmpg.proof.rounding import Array, num_rows
from cmpg.proof.shared import Counting, Joint, class_of
from cmpg.proof.support import whole

MAX_BITS = 200_000
"""Common denominators with more bits than this are not computed with."""

MAX_WORK = 20_000_000
"""Products and sums of large integers that one check may take."""

MAX_LINEAR_STATES = 40
"""Larger systems of linear equations, for discounted sums, are not solved in rationals."""


class TooLarge(Exception):
    """A claim has too many digits, or too much can happen."""


@dataclass(frozen=True, eq=False)
class ExactlyChecked:
    """What is true of a claim."""

    values: list[Fraction]  # [n]
    bounds: list[Fraction | None]  # [n]: what each agent could get at most; None where nothing is proved
    costs: list[Fraction]  # [k]
    rescaled: int  # rows of probabilities whose sum is not exactly one

    @property
    def gains(self) -> list[Fraction | None]:
        """What each agent gains at most; None where nothing is proved."""
        each = zip(self.bounds, self.values, strict=True)
        return [None if bound is None else max(bound - value, Fraction(0)) for bound, value in each]


def check_exactly(claim: Claim, *, max_work: int = MAX_WORK) -> ExactlyChecked:
    """Judge a claim in rationals, or raise `TooLarge`."""
    game = _game(claim, max_work)
    costs = game.costs()
    tables = claim.tables
    holders: Sequence[Any] = tables.agents if isinstance(tables, LocalTables) else (tables,)
    return ExactlyChecked(game.values(), game.bounds(), costs, uneven_rows(holders, claim.policy))


def exact_costs(claim: Claim, *, max_work: int) -> list[Fraction]:
    """Return what the policy costs, or raise `TooLarge`."""
    return _game(claim, max_work).costs()


def exact_values(claim: Claim, *, max_work: int) -> list[Fraction]:
    """Return what the policy is worth to each agent, or raise `TooLarge`."""
    return _game(claim, max_work).values()


def _game(claim: Claim, max_work: int) -> _LocalGame | _SharedGame:
    return (_LocalGame if isinstance(claim.tables, LocalTables) else _SharedGame)(claim, Budget(max_work))


class Budget:
    """Counts the work, and looks at the digits."""

    def __init__(self, work: int) -> None:
        """Allow so much work."""
        self._left = work

    def spend(self, work: int, number: int = 0) -> None:
        """Count some work with numbers of this size."""
        bits = number.bit_length()
        self._left -= work * (1 + bits // 500)
        if self._left < 0 or bits > MAX_BITS:
            raise TooLarge


@dataclass(frozen=True)
class Row:
    """A row of probabilities: whole numbers, and what they are divided by."""

    entries: tuple[tuple[int, int], ...]  # index and weight, where it is not zero
    total: int


def _row(pairs: Iterable[tuple[int, Any]]) -> Row:
    given = [(index, *ratio(entry)) for index, entry in pairs if entry]
    unit = lcm(*(bottom for _, _, bottom in given))
    whole = [(index, top * (unit // bottom)) for index, top, bottom in given]
    common = gcd(*(weight for _, weight in whole))
    entries = tuple((index, weight // common) for index, weight in whole)
    return Row(entries, sum(weight for _, weight in entries))


def ratio(number: Any) -> tuple[int, int]:
    """Return a float or a Fraction as numerator and denominator."""
    if isinstance(number, Fraction):
        return number.numerator, number.denominator
    top, bottom = float(number).as_integer_ratio()
    return top, bottom


def exact(number: Any) -> Fraction:
    """Return a float or a Fraction as a Fraction."""
    return number if isinstance(number, Fraction) else Fraction(float(number))


def matrix_row(matrix: Array | Csr, row: int) -> Row:
    """Return a row of probabilities of a matrix, dense or sparse."""
    if isinstance(matrix, Csr):
        entries = slice(int(matrix.indptr[row]), int(matrix.indptr[row + 1]))
        return _row(zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True))
    some = np.flatnonzero(matrix[row])
    return _row(zip(some.tolist(), matrix[row, some].tolist(), strict=True))


def uneven_rows(holders: Sequence[Any], policy: Iterable[Array]) -> int:
    """Return how many rows of probabilities do not sum to exactly one, of tables with a transition and of policies."""
    matrices = {id(each): each for holder in holders for each in holder.transition}
    rows = [holder.initial.tolist() for holder in holders]
    for table in policy:
        rows += table.reshape(-1, table.shape[-1]).tolist()
    for matrix in matrices.values():
        if isinstance(matrix, Csr):
            data, starts = matrix.data.tolist(), matrix.indptr.tolist()
            rows += [data[a:b] for a, b in pairwise(starts)]
        else:
            rows += matrix.tolist()
    # A correctly rounded sum is zero only if the exact one is.
    return sum([sum(row) != 1 if Fraction in map(type, row) else fsum([*row, -1.0]) != 0 for row in rows])


def _greatest(
    worth: Mapping[tuple[int, int], Fraction],
    follows: Mapping[tuple[int, int], int],
    states: int,
    *,
    unit: int,
    unit_ahead: int,
) -> list[int]:
    """Return the largest worth + what follows of each state's actions, in whole multiples of 1/unit: [S].

    Parameters
    ----------
    worth
        Of each (state, action) that is allowed; its denominator divides `unit`.
    follows
        In multiples of 1/unit_ahead, which divides `unit`; nothing follows the last step.
    states, unit, unit_ahead
        S, and the two units.
    """
    times = unit // unit_ahead
    best: dict[int, int] = {}
    for (state, action), stage in worth.items():
        # All numbers have one denominator, so that whole numbers are added and compared, and no fraction is reduced.
        total = stage.numerator * (unit // stage.denominator) + times * follows.get((state, action), 0)
        best[state] = max(total, best.get(state, total))
    return [best.get(state, 0) for state in range(states)]  # no play comes to a state where everything is forbidden


class ExactPlay:
    """What happens on a shared state, given how likely each outcome of a step is."""

    def __init__(
        self,
        tables: JointTables | CountingTables,
        steps: int,
        discount: Fraction | None,
        played: Callable[[int, int], Iterable[tuple[int, Fraction]]],
        budget: Budget,
    ) -> None:
        """Take the tables, and what returns outcomes with their probabilities, by step and state."""
        self.initial = matrix_row(tables.initial[None], 0)
        self._steps, self._discount, self._played, self._budget = steps, discount, played, budget
        self._transition, self._outcomes = tables.transition, num_rows(tables.transition[0]) // len(tables.initial)
        self._rows = cache(lambda index, row: matrix_row(self._transition[index], row))

    def moves(self, step: int, state: int, outcome: int) -> Row:
        """Return where an outcome leads."""
        return self._rows(0 if len(self._transition) == 1 else step, state * self._outcomes + outcome)

    def at_start(self, value: Callable[[int], Fraction]) -> Fraction:
        """Return the mean of what states are worth at the start."""
        return sum((w * value(s) for s, w in self.initial.entries), Fraction(0)) / self.initial.total

    def expected(self, entry: Callable[[int, int], Fraction]) -> Fraction:
        """Return the sum of entry(step, state) along what happens."""
        if self._discount is None:
            return sum((p * entry(h, s) for h, here in enumerate(self.mass) for s, p in here.items()), Fraction(0))
        # Solve v = r + γ P v over the states that may be come to.
        chain: dict[int, tuple[Fraction, dict[int, Fraction]]] = {}
        waiting = [s for s, _ in self.initial.entries]
        while waiting:
            state = waiting.pop()
            if state in chain:
                continue
            ahead: dict[int, Fraction] = {}
            for outcome, share in self._played(0, state) if self._discount else ():
                row = self.moves(0, state, outcome)
                for target, weight in row.entries:
                    ahead[target] = ahead.get(target, Fraction(0)) + share * Fraction(weight, row.total)
            chain[state] = entry(0, state), ahead
            waiting += ahead
        values = solved_chain(chain, self._discount, self._budget)
        return self.at_start(lambda state: values[state])

    @cached_property
    def mass(self) -> list[dict[int, Fraction]]:
        """How likely each state is at each step."""
        here = dict(self.initial.entries)
        scale, found = self.initial.total, []
        for step in range(self._steps):
            found.append({s: Fraction(weight, scale) for s, weight in here.items()})
            if step + 1 == self._steps:
                break
            ways = [
                (weight * share.numerator, share.denominator * row.total, row)
                for s, weight in here.items()
                for outcome, share in self._played(step, s)
                for row in [self.moves(step, s, outcome)]
            ]
            factor = lcm(*(bottom for _, bottom, _ in ways))
            scale *= factor
            self._budget.spend(sum(len(row.entries) for *_, row in ways), scale)
            here = {}
            for weight, bottom, row in ways:
                times = weight * (factor // bottom)
                for target, chance in row.entries:
                    here[target] = here.get(target, 0) + times * chance
        return found


def budgets(multipliers: Sequence[Fraction], thresholds: Array) -> Fraction:
    """Return λ·α."""
    limits = map(exact, thresholds.tolist())
    return sum((price * limit for price, limit in zip(multipliers, limits, strict=True)), Fraction(0))


class _SharedGame:
    """A game on a shared state."""

    def __init__(self, claim: Claim, budget: Budget) -> None:
        assert isinstance(claim.tables, (JointTables, CountingTables))
        self.claim, self.tables, self.budget = claim, claim.tables, budget
        self.agents, self.states = len(claim.policy), len(claim.tables.initial)
        self.counting = isinstance(claim.tables, CountingTables)
        self.actions = [table.shape[2] for table in claim.policy]
        self.plays = cache(lambda step, state, agent: _row(enumerate(claim.policy[agent][step, state].tolist())))
        self.others = cache(self._others)
        self.stage = cache(self._stage)
        discount = None if claim.discount is None else exact(claim.discount)
        self.play = ExactPlay(claim.tables, claim.steps, discount, self.played, budget)

    def _others(self, step: int, state: int, agent: int) -> tuple[list[tuple[Any, int]], int]:
        """Return what the others may do, and what the weights are divided by."""
        rows = [self.plays(step, state, other) for other in range(self.agents) if other != agent]
        total = prod(row.total for row in rows)
        if not self.counting:
            self.budget.spend(prod(len(row.entries) for row in rows))
            joint = product(*(row.entries for row in rows))
            return [(tuple(a for a, _ in each), prod(w for _, w in each)) for each in joint], total
        counted: dict[tuple[int, ...], int] = {(0,) * self.actions[agent]: 1}
        for row in rows:
            self.budget.spend(len(counted) * len(row.entries))
            more: dict[tuple[int, ...], int] = {}
            for counts, weight in counted.items():
                for action, chance in row.entries:
                    key = (*counts[:action], counts[action] + 1, *counts[action + 1 :])
                    more[key] = more.get(key, 0) + weight * chance
            counted = more
        return list(counted.items()), total

    def outcome(self, others: Any, agent: int, action: int) -> int:
        """Return what comes of what the others do and one agent's own action."""
        if self.counting:
            counts = (*others[:action], others[action] + 1, *others[action + 1 :])
            return class_of(counts, self.tables.boundaries)  # type: ignore[union-attr]
        index = 0
        for a, size in zip((*others[:agent], action, *others[agent:]), self.actions, strict=True):
            index = index * size + a
        return index

    def _stage(self, step: int, state: int, agent: int, action: int) -> tuple[list[tuple[int, int]], Fraction, int]:
        """Return outcomes with their weights, the expected reward, and what the weights are divided by."""
        branches, total = self.others(step, state, agent)
        weights: dict[int, int] = {}
        reward = Fraction(0)
        for others, weight in branches:
            outcome = self.outcome(others, agent, action)
            weights[outcome] = weights.get(outcome, 0) + weight
            reward += weight * self._reward(step, state, agent, action, others, outcome)
        return list(weights.items()), reward / total, total

    def _reward(self, step: int, state: int, agent: int, action: int, others: Any, outcome: int) -> Fraction:
        if isinstance(self.tables, CountingTables):
            counted = exact(at_step(self.tables.rewards, step)[state, action, others[action] + 1])
            private = exact(at_step(self.tables.private_rewards[agent], step)[state, action])
            return counted + private + exact(at_step(self.tables.class_rewards, step)[state, action, outcome])
        return exact(at_step(self.tables.rewards[agent], step)[state].flat[outcome])

    def cost(self, constraint: int, step: int, state: int, outcome: int) -> Fraction:
        """Return what a constraint pays for an outcome."""
        return exact(at_step(self.tables.costs[constraint], step)[state].flat[outcome])

    def played(self, step: int, state: int) -> list[tuple[int, Fraction]]:
        """Return how likely each outcome is under the policy."""
        found: dict[int, Fraction] = {}
        own = self.plays(step, state, 0)
        for action, chance in own.entries:
            branches, _, total = self.stage(step, state, 0, action)
            for outcome, weight in branches:
                share = Fraction(chance * weight, own.total * total)
                found[outcome] = found.get(outcome, Fraction(0)) + share
        return list(found.items())

    def values(self) -> list[Fraction]:
        """Return V^{r_i}."""

        def reward(agent: int, step: int, state: int) -> Fraction:
            row = self.plays(step, state, agent)
            got = sum((w * self.stage(step, state, agent, a)[1] for a, w in row.entries), Fraction(0))
            return got / row.total

        return [self.play.expected(partial(reward, i)) for i in range(self.agents)]

    def costs(self) -> list[Fraction]:
        """Return V^{c_j}."""

        def paid(constraint: int, step: int, state: int) -> Fraction:
            each = self.played(step, state)
            return sum((p * self.cost(constraint, step, state, outcome) for outcome, p in each), Fraction(0))

        count = len(self.claim.thresholds)
        return [self.play.expected(partial(paid, j)) for j in range(count)]

    def bounds(self) -> list[Fraction | None]:
        """Return what each agent could get at most by a deviation that meets the thresholds."""
        claim, hard = self.claim, self.claim.multipliers == np.inf
        form = Joint if isinstance(self.tables, JointTables) else Counting
        closed = closed_shared(claim, form(claim, support=True), hard)[0] if hard.any() else [None] * self.agents
        found: list[Fraction | None] = []
        for i in range(self.agents):
            own = [Fraction(0) if hard[i, j] else exact(each) for j, each in enumerate(claim.multipliers[i].tolist())]
            mask = closed[i]
            if hard[i].any() and (mask is None or any([mask[0, s].all() for s, _ in self.play.initial.entries])):
                found.append(None)
                continue
            best = self._best(i, own, mask) if claim.discount is None else self._discounted_best(i, own, mask)
            found.append(self.play.at_start(best) + budgets(own, claim.thresholds))
        return found

    def charged(self, step: int, state: int, agent: int, action: int, multipliers: Sequence[Fraction]) -> Fraction:
        """Return what an action is worth at once, with λ·c charged."""
        branches, reward, total = self.stage(step, state, agent, action)
        paid = Fraction(0)
        for j, price in enumerate(multipliers):
            if price:
                paid += price * sum((w * self.cost(j, step, state, o) for o, w in branches), Fraction(0))
        return reward - paid / total

    def _best(self, agent: int, multipliers: Sequence[Fraction], closed: Any) -> Any:
        """Return max V^{r − λ·c} from each state, by backward induction."""
        ahead, scale = [0] * self.states, 1
        for step in reversed(range(self.claim.steps)):
            pairs = [
                (state, action)
                for state in range(self.states)
                for action in range(self.actions[agent])
                if closed is None or not closed[step, state, action]
            ]
            worth = {pair: self.charged(step, pair[0], agent, pair[1], multipliers) for pair in pairs}
            last = step + 1 == self.claim.steps
            ways = {} if last else {pair: self.stage(step, pair[0], agent, pair[1]) for pair in pairs}
            rows = {
                (pair[0], outcome): self.play.moves(step, pair[0], outcome)
                for pair, (branches, *_) in ways.items()
                for outcome, _ in branches
            }
            moving = lcm(1, *(row.total for row in rows.values()))
            mixing = lcm(1, *(total for *_, total in ways.values()))
            stages = lcm(1, *(each.denominator for each in worth.values()))
            grown = lcm(scale * moving * mixing, stages)
            self.budget.spend(len(pairs) + sum(len(row.entries) for row in rows.values()), grown)
            later = {
                key: (moving // row.total) * sum(w * ahead[target] for target, w in row.entries)
                for key, row in rows.items()
            }
            follows = {
                (state, action): (mixing // divided) * sum(w * later[state, outcome] for outcome, w in branches)
                for (state, action), (branches, _, divided) in ways.items()
            }
            ahead = _greatest(worth, follows, self.states, unit=grown, unit_ahead=scale * moving * mixing)
            scale = grown
        return lambda state: Fraction(ahead[state], scale)

    def _discounted_best(self, agent: int, multipliers: Sequence[Fraction], closed: Any) -> Any:
        """Return a bound on max V^{r − λ·c} from each state: the value of a policy, and its residual."""
        discount = exact(self.claim.discount)
        mask = np.zeros((1, self.states, self.actions[agent]), dtype=bool) if closed is None else closed
        lost = mask[0].all(axis=1)
        allowed = [np.flatnonzero(~row).tolist() or [0] for row in mask[0]]
        worth = {
            (s, a): self.charged(0, s, agent, a, multipliers) for s, actions in enumerate(allowed) for a in actions
        }

        @cache
        def ahead(state: int, action: int) -> dict[int, Fraction]:
            found: dict[int, Fraction] = {}
            branches, _, total = self.stage(0, state, agent, action)
            for outcome, weight in branches:
                row = self.play.moves(0, state, outcome)
                for target, chance in row.entries:
                    found[target] = found.get(target, Fraction(0)) + Fraction(weight * chance, total * row.total)
            return found

        def score(state: int, action: int) -> Fraction:
            follows = sum((p * values[target] for target, p in ahead(state, action).items()), Fraction(0))
            return worth[state, action] + discount * follows

        values = [Fraction(0)] * self.states
        chosen = [actions[0] for actions in allowed]
        for _ in range(20):
            chain = {s: (worth[s, a], ahead(s, a) if discount else {}) for s, a in enumerate(chosen)}
            solved = solved_chain(chain, discount, self.budget)
            values = [solved[s] for s in range(self.states)]
            better = list(chosen)
            for s, actions in enumerate(allowed):
                for a in actions:
                    if score(s, a) > score(s, better[s]):
                        better[s] = a
            if better == chosen:
                break
            chosen = better
        gaps = (score(s, a) - values[s] for s, actions in enumerate(allowed) if not lost[s] for a in actions)
        residual = max((gap for gap in gaps if gap > 0), default=Fraction(0)) / (1 - discount)
        return lambda state: values[state] + residual


def solved_chain(
    chain: dict[int, tuple[Fraction, dict[int, Fraction]]], discount: Fraction, budget: Budget
) -> dict[int, Fraction]:
    """Solve v = r + γ P v by elimination; I − γP is diagonally dominant, so no pivot is zero."""
    order = list(chain)
    if discount and len(order) > MAX_LINEAR_STATES:
        raise TooLarge
    if not discount:
        return {state: reward for state, (reward, _) in chain.items()}
    lines = [
        [Fraction(int(one == other)) - discount * chain[one][1].get(other, 0) for other in order] + [chain[one][0]]
        for one in order
    ]
    for pivot in range(len(order)):
        top = lines[pivot][pivot]
        lines[pivot] = [entry / top for entry in lines[pivot]]
        budget.spend(len(order) ** 2, max(entry.denominator for entry in lines[pivot]))
        for other in range(len(order)):
            factor = lines[other][pivot]
            if other != pivot and factor:
                lines[other] = [x - factor * y for x, y in zip(lines[other], lines[pivot], strict=True)]
    return {state: line[-1] for state, line in zip(order, lines, strict=True)}


Cell = tuple[int, int]
"""A step and a resource."""

Met = tuple[Fraction, list[Fraction], list[Fraction]]
"""The delay that one more user of a cell meets, what each constraint pays for its load, and what one more adds."""


class _LocalGame:
    """A local game: agents are followed one by one, and the loads of the cells are sums of independent draws."""

    def __init__(self, claim: Claim, budget: Budget) -> None:
        assert isinstance(claim.tables, LocalTables)
        self.claim, self.tables, self.budget = claim, claim.tables, budget
        self.members = claim.tables.agents
        self._rows = cache(lambda agent, index, row: matrix_row(self.members[agent].transition[index], row))
        # Agents of one kind share their rows.
        kinds = {id(member.transition): i for i, member in reversed(list(enumerate(self.members)))}
        self._kind = [kinds[id(member.transition)] for member in self.members]
        self.pairs = [list(self._followed(i)) for i in range(len(self.members))]
        self._used = [self._usage(i) for i in range(len(self.members))]
        self.users: dict[Cell, list[int]] = {}
        for i, used in enumerate(self._used):
            for cell in used:
                self.users.setdefault(cell, []).append(i)
        (self._delay, self._load_costs), self._unit = whole(self.tables.delay, self.tables.load_costs, times=1)
        self._expected = cache(self._expectation)

    def _moves(self, agent: int, step: int, pair: int) -> Row:
        index = 0 if len(self.members[agent].transition) == 1 else step
        return self._rows(self._kind[agent], index, pair)

    def _followed(self, agent: int) -> Iterable[dict[int, Fraction]]:
        """Yield how likely each pair of state and action is, step by step."""
        member, table = self.members[agent], self.claim.policy[agent]
        start = _row(enumerate(member.initial.tolist()))
        states, scale, actions = dict(start.entries), start.total, table.shape[2]
        for step in range(self.claim.steps):
            plays = {s: _row(enumerate(table[step, s].tolist())) for s in states}
            factor = lcm(*(row.total for row in plays.values()))
            scale *= factor
            pairs = {
                s * actions + a: weight * (factor // plays[s].total) * chance
                for s, weight in states.items()
                for a, chance in plays[s].entries
            }
            self.budget.spend(len(pairs), scale)
            yield {pair: Fraction(weight, scale) for pair, weight in pairs.items()}
            if step + 1 == self.claim.steps:
                return
            moves = {pair: self._moves(agent, step, pair) for pair in pairs}
            factor = lcm(*(row.total for row in moves.values()))
            scale, states = scale * factor, {}
            self.budget.spend(sum(len(row.entries) for row in moves.values()), scale)
            for pair, weight in pairs.items():
                times = weight * (factor // moves[pair].total)
                for target, chance in moves[pair].entries:
                    states[target] = states.get(target, 0) + times * chance

    def _resources(self, agent: int, step: int, pair: int) -> list[int]:
        matrix = at_step(self.members[agent].uses, step)
        found: list[int] = matrix.indices[matrix.indptr[pair] : matrix.indptr[pair + 1]].tolist()
        return found

    def _usage(self, agent: int) -> dict[Cell, Fraction]:
        """Return how likely one agent uses each cell (h, e), where it may."""
        used: dict[Cell, Fraction] = {}
        for step, pairs in enumerate(self.pairs[agent]):
            for pair, chance in pairs.items():
                for resource in self._resources(agent, step, pair):
                    used[step, resource] = used.get((step, resource), Fraction(0)) + chance
        return used

    def _loads(self, cell: Cell, without: int | None) -> tuple[list[int], int]:
        """Return how likely each load of a cell is, with one agent left out or none: weights and their sum."""
        found, total = [1], 1
        for agent in self.users.get(cell, ()):
            if agent != without:
                chance = self._used[agent][cell]
                join, stay = chance.numerator, chance.denominator - chance.numerator
                found = [a * stay + b * join for a, b in zip([*found, 0], [0, *found], strict=True)]
                total *= chance.denominator
                self.budget.spend(2 * len(found), total)
        return found, total

    def _expectation(self, cell: Cell, without: int | None) -> Met:
        """Return what one more meets on a cell, what its load costs, and what one more adds."""
        step, resource = cell
        weights, total = self._loads(cell, without)
        total *= self._unit

        def mean(table: Array, more: int) -> int:
            row = at_step(table, step)[resource, more:].tolist()
            return sum(weight * each for weight, each in zip(weights, row, strict=False) if weight)

        costs = [mean(table, 0) for table in self._load_costs]
        after = [mean(table, 1) for table in self._load_costs]
        adds = [Fraction(more - less, total) for more, less in zip(after, costs, strict=True)]
        return Fraction(mean(self._delay, 1), total), [Fraction(each, total) for each in costs], adds

    def met(self, agent: int, cell: Cell) -> Met:
        """Return what one agent meets on a cell."""
        return self._expected(cell, agent if agent in self.users.get(cell, ()) else None)

    def _private(self, agent: int, table: Array | None) -> Fraction:
        """Return the sum of a private table along what one agent does."""
        if table is None:
            return Fraction(0)
        return sum(
            (
                p * exact(at_step(table, h).flat[pair])
                for h, pairs in enumerate(self.pairs[agent])
                for pair, p in pairs.items()
            ),
            Fraction(0),
        )

    def values(self) -> list[Fraction]:
        """Return V^{r_i}."""
        found = []
        for i, member in enumerate(self.members):
            delays = sum((p * self.met(i, cell)[0] for cell, p in self._used[i].items()), Fraction(0))
            found.append(self._private(i, member.reward) - delays)
        return found

    def spent(self, constraint: int, without: int | None) -> Fraction:
        """Return what a constraint pays, or pays without one agent."""
        total = Fraction(0)
        for i, member in enumerate(self.members):
            if i != without and member.costs is not None:
                total += self._private(i, member.costs[constraint])
        table = self.tables.load_costs[constraint]
        for step in range(self.claim.steps):
            empty = at_step(table, step)[:, 0]
            idle = [e for e in np.flatnonzero(empty).tolist() if (step, e) not in self.users]
            total += sum((exact(empty[e]) for e in idle), Fraction(0))
        for cell in self.users:
            left_out = without if without in self.users[cell] else None
            total += self._expected(cell, left_out)[1][constraint]
        return total

    def costs(self) -> list[Fraction]:
        """Return V^{c_j}."""
        return [self.spent(j, None) for j in range(len(self.claim.thresholds))]

    def bounds(self) -> list[Fraction | None]:
        """Return what each agent could get at most by a deviation that meets the thresholds."""
        claim, hard = self.claim, self.claim.multipliers == np.inf
        fleet = Fleet(claim, support=True) if hard.any() else None
        reached = None if fleet is None else reach(claim, fleet)
        found: list[Fraction | None] = []
        for i, member in enumerate(self.members):
            own = [Fraction(0) if hard[i, j] else exact(each) for j, each in enumerate(claim.multipliers[i].tolist())]
            mask = None
            if fleet is not None and reached is not None and hard[i].any():
                mask = closed_local(claim, fleet, i, reached, np.flatnonzero(hard[i]).tolist(), [None] * len(own))
                if mask is None or np.any(mask[0].all(axis=1) & (member.initial > 0)):
                    found.append(None)
                    continue
            total = self._best(i, own, mask)
            for j, price in enumerate(own):
                if price:
                    total += price * (exact(claim.thresholds[j]) - self.spent(j, i))
            found.append(total)
        return found

    def _best(self, agent: int, multipliers: Sequence[Fraction], closed: Any) -> Fraction:
        """Return max V^{r − λ·c}, by backward induction over own states."""
        member: AgentTables = self.members[agent]
        states, actions = member.reward.shape[1:]
        charged = [j for j, price in enumerate(multipliers) if price]
        ahead, scale = [0] * states, 1
        for step in reversed(range(self.claim.steps)):
            reward = at_step(member.reward, step).ravel().tolist()
            private = [] if member.costs is None else [at_step(member.costs[j], step).ravel().tolist() for j in charged]
            prices: dict[int, Fraction] = {}
            worth: dict[tuple[int, int], Fraction] = {}
            for pair in range(states * actions):
                if closed is not None and closed[step].flat[pair]:
                    continue
                total = exact(reward[pair])
                for j, table in zip(charged, private, strict=bool(private)):
                    total -= multipliers[j] * exact(table[pair])
                for resource in self._resources(agent, step, pair):
                    if resource not in prices:
                        delay, _, adds = self.met(agent, (step, resource))
                        prices[resource] = delay + sum((multipliers[j] * adds[j] for j in charged), Fraction(0))
                    total -= prices[resource]
                worth[divmod(pair, actions)] = total
            last = step + 1 == self.claim.steps
            rows = {} if last else {(s, a): self._moves(agent, step, s * actions + a) for s, a in worth}
            moving = lcm(1, *{row.total for row in rows.values()})
            grown = lcm(scale * moving, *{each.denominator for each in worth.values()})
            self.budget.spend(len(worth) + sum(len(row.entries) for row in rows.values()), grown)
            follows = {
                pair: (moving // row.total) * sum(w * ahead[target] for target, w in row.entries)
                for pair, row in rows.items()
            }
            ahead, scale = _greatest(worth, follows, states, unit=grown, unit_ahead=scale * moving), grown
        start = _row(enumerate(member.initial.tolist()))
        return Fraction(sum(w * ahead[s] for s, w in start.entries), start.total * scale)
