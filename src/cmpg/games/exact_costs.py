"""What a policy spends, exactly or to three hundred digits: for costs so close to a threshold that floats cannot tell.

Play is followed step by step through everything that can happen under the policy, in integers. A probability is a
whole multiple of 2^−BITS, rounded down, so nothing has to be estimated: the probabilities of a step sum to one, and
what is missing from one is what rounding has lost. A cost lies between what was counted plus that loss at the least
that could be paid there, and the same at the most. Numbers with few digits lose nothing, and their costs are exact.

Where an interval still holds its threshold, play is followed once more in rationals, which always decide. Rows of
probabilities are read as divided by their exact sums. None is returned where too much can happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from cmpg.deadline import check_time

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame
    from cmpg.games.joint.game import JointGame
    from cmpg.games.local.agent import LocalAgent
    from cmpg.games.local.game import LocalGame
    from cmpg.policy import JointPolicy

BITS = 1_200
"""The smallest float is 2^−1074."""

FINEST = 1_074
"""Every float is a whole multiple of 2^−1074."""

MOST_WORK = 100_000
"""More outcomes, and next states of outcomes, than this are not followed."""

MOST_RATIONAL_WORK = 20_000
MOST_RATIONAL_BITS = 4_000
"""In rationals fewer are followed, and none with longer denominators."""

MOST_LINEAR_STATES = 16
"""Larger systems of linear equations, for discounted sums, are not solved in rationals."""

Interval = tuple[Fraction, Fraction]
Row = dict[int, Any]
"""Where a row of probabilities is not zero, and its probabilities in the arithmetic that is used."""


class TooMuch(Exception):
    """More can happen than is followed."""


class Arithmetic(Protocol):
    """Probabilities: integers rounded down, or rationals."""

    one: Any

    def row(self, entries: Iterable[tuple[int, Any]]) -> Row:
        """Return a row of probabilities divided by its exact sum, without its zeros."""

    def times(self, first: Any, second: Any) -> Any:
        """Return the product of two probabilities."""

    def spend(self, work: int, probability: Any = 0) -> None:
        """Count what was followed, and raise `TooMuch` where that is more than allowed."""


class Rounded:
    """Multiples of 2^−BITS, rounded down."""

    one = 1 << BITS

    def __init__(self) -> None:
        self._work = 0

    def row(self, entries: Iterable[tuple[int, Any]]) -> Row:
        """Return the row in integers."""
        found = [(place, *_ratio(entry)) for place, entry in entries if entry]
        if len(found) == 1:
            return {found[0][0]: self.one}
        scale = max(bottom for _, _, bottom in found)
        if any(scale % bottom for _, _, bottom in found):  # rationals that are no floats
            shares = {place: Fraction(top, bottom) for place, top, bottom in found}
            total = sum(shares.values(), Fraction(0))
            return {place: int(share / total * self.one) for place, share in shares.items()}
        tops = {place: top * (scale // bottom) for place, top, bottom in found}
        whole = sum(tops.values())
        return {place: (top << BITS) // whole for place, top in tops.items()}

    def times(self, first: Any, second: Any) -> Any:
        """Return the product, rounded down."""
        return second if first is self.one else first if second is self.one else first * second >> BITS

    def spend(self, work: int, probability: Any = 0) -> None:  # noqa: ARG002
        """Count the work."""
        self._work += work
        if self._work > MOST_WORK:
            raise TooMuch


class Rational:
    """Exact rationals."""

    one = Fraction(1)

    def __init__(self) -> None:
        self._work = 0

    def row(self, entries: Iterable[tuple[int, Any]]) -> Row:
        """Return the row in Fractions."""
        shares = {place: Fraction(*_ratio(entry)) for place, entry in entries if entry}
        total = sum(shares.values(), Fraction(0))
        return {place: share / total for place, share in shares.items()}

    def times(self, first: Any, second: Any) -> Any:
        """Return the product."""
        return first * second

    def spend(self, work: int, probability: Any = Fraction(0)) -> None:
        """Count the work, and look at the digits."""
        self._work += work
        if self._work > MOST_RATIONAL_WORK or probability.denominator.bit_length() > MOST_RATIONAL_BITS:
            raise TooMuch


def _ratio(number: Any) -> tuple[int, int]:
    if isinstance(number, Fraction):
        return number.numerator, number.denominator
    top, bottom = float(number).as_integer_ratio()
    return top, bottom


@dataclass
class SpentSoFar:
    """What is spent on one constraint so far, in multiples of 2^−FINEST and of the smallest probability."""

    least: Any = 0
    most: Any = 0

    def pay(self, outcomes: Iterable[tuple[Any, Any]], one: Any) -> None:
        """Add Σ probability·cost over outcomes that are all there is; what they lack of one costs something among them.

        Costs are floats or Fractions. Outcomes whose probability was rounded down to nothing are listed too.
        """
        counted, missing, low, high = 0, one, None, None
        for probability, cost in outcomes:
            scaled = _scaled(cost)
            counted += probability * scaled
            missing -= probability
            low = scaled if low is None or scaled < low else low
            high = scaled if high is None or scaled > high else high
        self.least += counted + missing * (low or 0)
        self.most += counted + missing * (high or 0)

    def interval(self, one: Any) -> Interval:
        """Return what was spent at least and at most."""
        unit = one * (1 << FINEST)
        return Fraction(self.least) / unit, Fraction(self.most) / unit


def _scaled(cost: Any) -> Any:
    top, bottom = _ratio(cost)
    return Fraction(top << FINEST, bottom) if (1 << FINEST) % bottom else top * ((1 << FINEST) // bottom)


@dataclass(frozen=True)
class Branch:
    """One thing that may happen in a state: how likely it is, what it costs, and where it leads."""

    probability: Any
    costs: Sequence[Any]  # [k]
    ahead: Callable[[], Row]


@dataclass(frozen=True)
class SharedPlay:
    """A game on a shared state under a policy, as it is followed."""

    initial: Any  # [S]
    steps: int
    discount: Any  # or None
    num_constraints: int
    branches: Callable[[Arithmetic, int, int], list[Branch]]  # (arithmetic, step, state): all that may happen

    def intervals(self, arithmetic: Arithmetic) -> list[Interval]:
        """Return what is spent on each constraint, at least and at most."""
        if self.discount is not None:
            return self._discounted()
        spent = [SpentSoFar() for _ in range(self.num_constraints)]
        states = arithmetic.row(enumerate(self.initial))
        for step in range(self.steps):
            check_time()
            outcomes: list[tuple[Any, Sequence[Any]]] = []
            ahead: Row = {}
            for state, reached in states.items():
                for branch in self.branches(arithmetic, step, state):
                    mass = arithmetic.times(reached, branch.probability)
                    outcomes.append((mass, branch.costs))
                    if step + 1 < self.steps:
                        row = branch.ahead()
                        arithmetic.spend(len(row), mass)
                        for target, probability in row.items():
                            ahead[target] = ahead.get(target, 0) + arithmetic.times(mass, probability)
            for j, each in enumerate(spent):
                each.pay(((mass, costs[j]) for mass, costs in outcomes), arithmetic.one)
            states = ahead
        return [each.interval(arithmetic.one) for each in spent]

    def _discounted(self) -> list[Interval]:
        """Solve v = c + γ P v by elimination, over the states that can be reached."""
        arithmetic, found = Rational(), dict[int, tuple[list[Fraction], Row]]()
        initial = arithmetic.row(enumerate(self.initial))
        waiting = list(initial)
        while waiting:
            check_time()
            state = waiting.pop()
            if state in found:
                continue
            if len(found) == MOST_LINEAR_STATES:
                raise TooMuch
            paid, ahead = [Fraction(0)] * self.num_constraints, dict[int, Fraction]()
            for branch in self.branches(arithmetic, 0, state):
                paid = [
                    sum_ + branch.probability * Fraction(*_ratio(cost))
                    for sum_, cost in zip(paid, branch.costs, strict=True)
                ]
                for target, probability in branch.ahead().items():
                    ahead[target] = ahead.get(target, Fraction(0)) + branch.probability * probability
            found[state] = paid, ahead
            waiting += ahead
        values = _solved(found, Fraction(*_ratio(self.discount)))
        totals = [sum((p * values[s][j] for s, p in initial.items()), Fraction(0)) for j in range(self.num_constraints)]
        return [(total, total) for total in totals]


def _solved(chain: dict[int, tuple[list[Fraction], Row]], discount: Fraction) -> dict[int, list[Fraction]]:
    """Return the discounted sums from each state of a chain; I − γP is diagonally dominant, so no pivot is zero."""
    order = list(chain)
    lines = [
        [Fraction(int(one == other)) - discount * chain[one][1].get(other, 0) for other in order] + chain[one][0]
        for one in order
    ]
    for pivot in range(len(order)):
        check_time()
        lines[pivot] = [entry / lines[pivot][pivot] for entry in lines[pivot]]
        for other in range(len(order)):
            factor = lines[other][pivot]
            if other != pivot and factor:
                lines[other] = [x - factor * y for x, y in zip(lines[other], lines[pivot], strict=True)]
    return {state: line[len(order) :] for state, line in zip(order, lines, strict=True)}


def decided_costs(
    intervals: Callable[[Arithmetic], list[Interval]], thresholds: Iterable[Any]
) -> list[Interval] | None:
    """Return what is spent on each constraint, as closely as it takes to compare it with its threshold, or as it can.

    Parameters
    ----------
    intervals
        Follows play in a given arithmetic.
    thresholds : [k]
        α.
    """
    try:
        found = intervals(Rounded())
    except TooMuch:
        return None
    limits = [Fraction(*_ratio(limit)) for limit in thresholds]
    if all(most <= limit or least > limit for (least, most), limit in zip(found, limits, strict=True)):
        return found
    try:
        return intervals(Rational())
    except TooMuch:
        return found


def convolved(first: Sequence[Any], second: Sequence[Any], arithmetic: Arithmetic) -> list[Any]:
    """Return the distribution of a sum of two independent numbers, each given by its probabilities from 0 on."""
    total = [0] * (len(first) + len(second) - 1)
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            total[i + j] += arithmetic.times(one, other)
    return total


def joint_costs(game: JointGame, policy: JointPolicy) -> list[Interval] | None:
    """Return the costs of a joint game; the policy may be in rationals where the game is in floats."""
    tables = policy.tables

    def branches(arithmetic: Arithmetic, step: int, state: int) -> list[Branch]:
        rows = [arithmetic.row(enumerate(table[step, state])) for table in tables]
        arithmetic.spend(prod(len(row) for row in rows))
        found = []
        for joint in product(*(row.items() for row in rows)):
            where = (state, *(action for action, _ in joint))
            costs = [cost[(0 if len(cost) == 1 else step, *where)] for cost in game.costs]
            ahead = partial(_next_states, game, arithmetic, step, where)
            found.append(Branch(reduce(arithmetic.times, (chance for _, chance in joint)), costs, ahead))
        return found

    play = SharedPlay(game.initial, game.num_steps, game.discount, game.num_constraints, branches)
    return decided_costs(play.intervals, game.thresholds)


def _next_states(game: JointGame, arithmetic: Arithmetic, step: int, where: tuple[int, ...]) -> Row:
    """Return where a state and joint action lead."""
    table = game.transition[0 if len(game.transition) == 1 else step]
    if not sp.issparse(table):
        return arithmetic.row(enumerate(table[where]))
    row = int(np.ravel_multi_index(where, (game.num_states, *game.num_actions)))
    entries = slice(int(table.indptr[row]), int(table.indptr[row + 1]))
    return arithmetic.row(zip(table.indices[entries].tolist(), table.data[entries], strict=True))


def counting_costs(game: CountingGame, policy: JointPolicy) -> list[Interval] | None:
    """Return the costs of a counting game, from the probabilities of the classes of counts."""
    tables, actions = policy.tables, game.num_actions[0]

    def branches(arithmetic: Arithmetic, step: int, state: int) -> list[Branch]:
        counted: dict[tuple[int, ...], Any] = {(0,) * actions: arithmetic.one}
        for table in tables:
            row = arithmetic.row(enumerate(table[step, state]))
            arithmetic.spend(len(counted) * len(row))
            more: dict[tuple[int, ...], Any] = {}
            for (counts, chance), (action, probability) in product(counted.items(), row.items()):
                key = (*counts[:action], counts[action] + 1, *counts[action + 1 :])
                more[key] = more.get(key, 0) + arithmetic.times(chance, probability)
            counted = more
        by_class: dict[int, Any] = {}
        for label, chance in zip(game.classes.of(np.array(list(counted))).tolist(), counted.values(), strict=True):
            by_class[label] = by_class.get(label, 0) + chance
        transition = game.transition[0 if len(game.transition) == 1 else step, state]
        paid = [cost[0 if len(cost) == 1 else step, state] for cost in game.costs]
        return [
            Branch(chance, [cost[label] for cost in paid], partial(arithmetic.row, list(enumerate(transition[label]))))
            for label, chance in by_class.items()
        ]

    play = SharedPlay(game.initial, game.num_steps, game.discount, game.num_constraints, branches)
    return decided_costs(play.intervals, game.thresholds)


def local_costs(game: LocalGame, policy: JointPolicy) -> list[Interval] | None:
    """Return the costs of a local game, from the loads that independent agents put on the resources."""
    return decided_costs(partial(_spent, game, policy), game.thresholds)


def _spent(game: LocalGame, policy: JointPolicy, arithmetic: Arithmetic) -> list[Interval]:
    """Follow every agent by itself; then count the loads of the resources that cost something."""
    spent = [SpentSoFar() for _ in range(game.num_constraints)]
    costly = np.broadcast_to((game.load_costs != 0).any(axis=(0, 3)), (game.horizon, game.num_resources))
    loads = [{e: _Users([arithmetic.one]) for e in np.flatnonzero(row).tolist()} for row in costly]
    for member, table in zip(game.agents, policy, strict=True):
        states = arithmetic.row(enumerate(member.initial))
        for step in range(game.horizon):
            check_time()
            pairs: dict[int, Any] = {}
            for state, reached in states.items():
                for action, chance in arithmetic.row(enumerate(table[step, state])).items():
                    pairs[state * member.num_actions + action] = arithmetic.times(reached, chance)
            arithmetic.spend(len(pairs))
            if member.costs is not None:
                for each, cost in zip(spent, member.costs, strict=True):
                    stage = cost[0 if len(cost) == 1 else step].ravel()
                    each.pay(((mass, stage[pair]) for pair, mass in pairs.items()), arithmetic.one)
            _count_users(member, step, pairs, loads[step], arithmetic)
            states = _moved(member, step, pairs, arithmetic) if step + 1 < game.horizon else {}
    for step, by_resource in enumerate(loads):
        for each, cost in zip(spent, game.load_costs, strict=True):
            stage = cost[0 if len(cost) == 1 else step]
            for resource, users in by_resource.items():
                counted = enumerate(users.probabilities, users.sure)
                each.pay(((mass, stage[resource, count]) for count, mass in counted), arithmetic.one)
    return [each.interval(arithmetic.one) for each in spent]


@dataclass
class _Users:
    """How many agents use a resource at a step: some for sure, and the probabilities of 0, 1, … others."""

    probabilities: list[Any]
    sure: int = 0


def _count_users(
    member: LocalAgent, step: int, pairs: dict[int, Any], resources: dict[int, _Users], arithmetic: Arithmetic
) -> None:
    """Add one agent, who is at pairs of state and action with these probabilities, to the users of the resources."""
    matrix = member.uses[0 if len(member.uses) == 1 else step]
    used: dict[int, list[int]] = {}
    for pair in pairs:
        for resource in matrix.indices[matrix.indptr[pair] : matrix.indptr[pair + 1]].tolist():
            if resource in resources:
                used.setdefault(resource, []).append(pair)
    for resource, by in used.items():
        users, using = resources[resource], sum(pairs[pair] for pair in by)
        arithmetic.spend(2 * len(users.probabilities), users.probabilities[0])
        if len(by) == len(pairs):
            users.sure += 1
            users.probabilities = [arithmetic.times(each, using) for each in users.probabilities]
        else:
            idle = sum(mass for pair, mass in pairs.items() if pair not in by)
            users.probabilities = convolved(users.probabilities, [idle, using], arithmetic)


def _moved(member: LocalAgent, step: int, pairs: dict[int, Any], arithmetic: Arithmetic) -> Row:
    """Return where an agent is at the next step."""
    matrix = member.transition[0 if len(member.transition) == 1 else step]
    states: Row = {}
    for pair, mass in pairs.items():
        entries = slice(int(matrix.indptr[pair]), int(matrix.indptr[pair + 1]))
        row = arithmetic.row(zip(matrix.indices[entries].tolist(), matrix.data[entries], strict=True))
        arithmetic.spend(len(row), mass)
        for target, probability in row.items():
            states[target] = states.get(target, 0) + arithmetic.times(mass, probability)
    return states
