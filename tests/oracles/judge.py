"""An exact judge of games, policies and proofs: rationals only, brute force, and not a line of the library in it.

A game is a plain dict with the field names of docs/files.md, and arrays as values; local games are given agent by agent
(`agents`: a list of dicts with `transition` [H or 1, S, A, S], `reward`, `cost`, `uses` [H or 1, S, A, E], `initial`).
A policy is a list of tables [H, S_i, A_i]. Every float is read as the rational that it is, and every row of
probabilities is divided by its exact sum, which is what such a row stands for.

    judged = judge(game)
    judged.costs(policy)                 V^{c_j}, exactly
    judged.values(policy)                V^{r_i}, exactly
    judged.gains(policy, multipliers)    λ_i·α + max V^{r_i − λ_i·c} − V^{r_i}, exactly: no agent gains more; where a
                                         multiplier is infinite, the maximum is over what costs that constraint least,
                                         which must be all that is left of it
    judged.least_cost(weights)           min over all joint policies of V^{λ·c}, exactly

    judged.best_gain(policy, agent, binds)   a gain that some deviation attains which keeps the constraints that bind

What cannot be reached from the initial states is left out, so that a small game may be hidden in a large one. Joint and
counting games are walked joint action by joint action. In local games the agents are independent: the load of
a resource is a sum of independent draws, one per agent; only `least_cost` builds the joint states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from itertools import islice, product
from math import lcm, prod
from typing import Any

import numpy as np

Game = dict[str, Any]
Policy = Sequence[Any]
Loads = Callable[[int, int], "Law"]  # by step and resource
ZERO, ONE = Fraction(0), Fraction(1)

MAX_JOINT_PAIRS = 300_000
"""Joint states with joint actions that `LocalJudge.least_cost` enumerates at a step, in half a minute."""


def judge(game: Game) -> JointJudge | LocalJudge:
    """Return the judge of one game."""
    if game["form"] == "local":
        return LocalJudge(game)
    return JointJudge(_counted_out(game) if game["form"] == "counting" else _joint(game))


def always_exceeded(judged: Any, weights: Any) -> bool | None:
    """Whether every joint policy costs more than the thresholds, both weighted; None if that is not found out."""
    limit = weighed(zip(map(Fraction, np.asarray(weights).tolist()), judged.thresholds, strict=True))
    if isinstance(judged, LocalJudge) and judged.cost_floor(weights) > limit:
        return True
    least = judged.least_cost(weights)
    return None if least is None else least > limit


def number(entry: Any) -> Fraction:
    """Read an entry of a table, a float or a Fraction, as the rational that it is."""
    return Fraction(entry.item() if isinstance(entry, np.generic) else entry)


def row(probabilities: Any) -> dict[int, Fraction]:
    """The support of a row of probabilities, divided by its exact sum."""
    given = {place: Fraction(entry) for place, entry in enumerate(np.asarray(probabilities).tolist()) if entry}
    total = sum(given.values())
    return given if total == 1 else {place: chance / total for place, chance in given.items()}


def weighed(terms: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Σ p·x, added up over one denominator: cancelling at every step would take nearly all of the time."""
    over: dict[int, int] = defaultdict(int)  # numerators by denominator
    for p, x in terms:
        if x:
            over[p.denominator * x.denominator] += p.numerator * x.numerator
    common = lcm(*over)
    return Fraction(sum(numerator * (common // denominator) for denominator, numerator in over.items()), common)


def mixed(rows: Iterable[tuple[Fraction, dict[int, Fraction]]]) -> dict[int, Fraction]:
    """The mixture of rows, each with its probability."""
    terms: dict[int, list[tuple[Fraction, Fraction]]] = defaultdict(list)
    for chance, each in rows:
        for place, probability in each.items():
            terms[place].append((chance, probability))
    return {place: weighed(each) for place, each in terms.items()}


def at(table: Any, step: int) -> Any:
    """The part of a table for one step; a table of one step holds at every step."""
    return table[0 if len(table) == 1 else step]


@dataclass(frozen=True)
class Process:
    """What happens in a joint game: functions of (step, state, joint action), and everything else about it."""

    steps: int  # 1 in a discounted game
    discount: Fraction | None
    states: int
    actions: tuple[int, ...]
    constraints: int
    initial: dict[int, Fraction]
    thresholds: list[Fraction]
    moves: Callable[[int, int, tuple[int, ...]], dict[int, Fraction]]
    reward: Callable[[int, int, int, tuple[int, ...]], Fraction]  # agent first
    cost: Callable[[int, int, int, tuple[int, ...]], Fraction]  # constraint first


def _process(game: Game, actions: tuple[int, ...], look: dict[str, Callable[..., Any]]) -> Process:
    discount = game.get("discount")
    return Process(
        steps=1 if discount is not None else int(game["horizon"]),
        discount=None if discount is None else Fraction(discount),
        states=len(game["initial"]),
        actions=actions,
        constraints=len(game["thresholds"]),
        initial=row(game["initial"]),
        thresholds=[Fraction(limit) for limit in np.asarray(game["thresholds"]).tolist()],
        moves=cache(lambda h, s, joint: row(look["transition"](h, s, joint))),
        reward=cache(lambda i, h, s, joint: number(look["reward"](i, h, s, joint))),
        cost=cache(lambda j, h, s, joint: number(look["cost"](j, h, s, joint))),
    )


def _joint(game: Game) -> Process:
    """A joint game reads its tables."""
    return _process(
        game,
        tuple(game["rewards"].shape[3:]),
        {
            "transition": lambda h, s, joint: at(game["transition"], h)[(s, *joint)],
            "reward": lambda i, h, s, joint: at(game["rewards"][i], h)[(s, *joint)],
            "cost": lambda j, h, s, joint: at(game["costs"][j], h)[(s, *joint)],
        },
    )


def _counted_out(game: Game) -> Process:
    """A counting game counts who chose what, at every joint action."""
    choices, agents = game["rewards"].shape[2], game["rewards"].shape[3] - 1
    boundaries = game.get("boundaries")
    vectors = [] if boundaries is not None else count_vectors(agents, choices)

    @cache
    def class_of(joint: tuple[int, ...]) -> int:
        counts = tuple(joint.count(action) for action in range(choices))
        if boundaries is None:
            return vectors.index(counts)
        return sum(max(counts) > limit for limit in np.asarray(boundaries).tolist())

    def reward(agent: int, step: int, state: int, joint: tuple[int, ...]) -> Fraction:
        action = joint[agent]
        total = number(at(game["rewards"], step)[state, action, joint.count(action)])
        if game.get("private_rewards") is not None:
            total += number(at(game["private_rewards"][agent], step)[state, action])
        if game.get("class_rewards") is not None:
            total += number(at(game["class_rewards"], step)[state, action, class_of(joint)])
        return total

    return _process(
        game,
        (choices,) * agents,
        {
            "transition": lambda h, s, joint: at(game["transition"], h)[s, class_of(joint)],
            "reward": reward,
            "cost": lambda j, h, s, joint: at(game["costs"][j], h)[s, class_of(joint)],
        },
    )


def count_vectors(agents: int, choices: int) -> list[tuple[int, ...]]:
    """All ways in which agents can be spread over choices, in lexicographic order."""
    if choices == 1:
        return [(agents,)]
    return [(first, *rest) for first in range(agents + 1) for rest in count_vectors(agents - first, choices - 1)]


@dataclass(frozen=True)
class JointJudge:
    """Judges games in which everybody sees the joint state."""

    process: Process
    _known: list[Any] = field(default_factory=list)  # the last policy, and what happens under it

    @property
    def thresholds(self) -> list[Fraction]:
        """α."""
        return self.process.thresholds

    def with_thresholds(self, thresholds: Any) -> JointJudge:
        """The judge of the same game with other thresholds, who need not follow the last policy again."""
        limits = [Fraction(limit) for limit in np.asarray(thresholds).tolist()]
        return JointJudge(replace(self.process, thresholds=limits), self._known)

    def values(self, policy: Policy) -> list[Fraction]:
        """V^{r_i} of every agent."""
        game = self.process
        return [self._sum(policy, lambda *w, i=i: game.reward(i, *w)) for i in range(len(game.actions))]

    def costs(self, policy: Policy) -> list[Fraction]:
        """V^{c_j} of every constraint."""
        return [self._sum(policy, lambda *w, j=j: self.process.cost(j, *w)) for j in range(self.process.constraints)]

    def gains(self, policy: Policy, multipliers: Any) -> list[Fraction]:
        """What each agent could gain at most, by the bound of these multipliers [n, k]."""
        return [self.gain(policy, i, prices) for i, prices in enumerate(np.asarray(multipliers).tolist())]

    def gain(self, policy: Policy, agent: int, prices: Sequence[float]) -> Fraction:
        """What one agent could gain at most, by the bound of its multipliers [k]."""
        present = self._sum(policy, lambda *w: self.process.reward(agent, *w))
        charged, hard = split_prices(prices)
        faces = self._facing(policy, agent)
        allowed = None
        for j in hard:
            only = [ONE if constraint == j else ZERO for constraint in range(len(charged))]
            allowed = cheapest(faces(None, only), self.process.initial, self.thresholds[j], allowed)
        best = planned(faces(agent, charged), self.process.initial, allowed)
        limit = sum((price * most for price, most in zip(charged, self.thresholds, strict=True)), ZERO)
        return limit + best - present

    def best_gain(self, policy: Policy, agent: int, binds: Sequence[Any], most: int = 64) -> Fraction | None:
        """The best gain of deviations that are tried: pure ones, and mixtures of two, that keep what binds the agent.

        At most so many pure deviations are tried; None if none of them is feasible.
        """
        faces, none = self._facing(policy, agent), [ZERO] * self.process.constraints
        units = [[ONE if j == i else ZERO for j in range(len(none))] for i in range(len(none))]
        rewards, spending = faces(agent, none), [faces(None, unit) for unit in units]
        worth = [rewards.worth, *(lambda *w, c=c: -c.worth(*w) for c in spending)]
        tried = deviations(rewards, worth, self.process.initial, most)
        left = [limit for limit, bound in zip(self.thresholds, binds, strict=True) if bound]
        totals = [(each[0], *(c for c, bound in zip(each[1:], binds, strict=True) if bound)) for each in tried]
        best = best_mixture(totals, left)
        return None if best is None else best - self._sum(policy, lambda *w: self.process.reward(agent, *w))

    def least_alone(self, policy: Policy, agent: int, j: int) -> Fraction:
        """The least of one cost that one agent can bring about while the others keep theirs."""
        only = [ONE if constraint == j else ZERO for constraint in range(self.process.constraints)]
        return -planned(self._facing(policy, agent)(None, only), self.process.initial)

    def _facing(self, policy: Policy, agent: int) -> Callable[[int | None, list[Fraction]], Chosen]:
        """Return what an agent chooses among while the others keep theirs, by whose reward and which multipliers."""
        others = [table for i, table in enumerate(policy) if i != agent]

        def together(own: int, rest: tuple[int, ...]) -> tuple[int, ...]:
            return (*rest[:agent], own, *rest[agent:])

        return self._chooser(together, others, self.process.actions[agent])

    def least_cost(self, weights: Any) -> Fraction:
        """What one planner who chooses all actions pays at least."""
        charged = [Fraction(weight) for weight in np.asarray(weights).tolist()]
        joints = list(product(*map(range, self.process.actions)))
        process = self._chooser(lambda own, _: joints[own], [], len(joints))(None, charged)
        return -planned(process, self.process.initial)

    def _sum(self, policy: Policy, entry: Callable[..., Fraction]) -> Fraction:
        """What a policy collects of some entries."""
        if not self._known or self._known[0] is not policy:
            self._known[:] = [policy, self._visits(policy)]
        return weighed((chance, entry(*where)) for where, chance in self._known[1].items())

    def _visits(self, policy: Policy) -> dict[tuple[int, int, tuple[int, ...]], Fraction]:
        """How likely, or discounted how often, each (step, state, joint action) happens."""
        game = self.process

        @cache
        def rows(step: int, state: int) -> list[tuple[tuple[int, ...], Fraction]]:
            return list(_joint_row([table[step][state] for table in policy]))

        def moves(step: int, state: int) -> dict[int, Fraction]:
            return mixed((chance, game.moves(step, state, joint)) for joint, chance in rows(step, state))

        reached = [dict(game.initial)]
        if game.discount is not None:
            states = closure(game.initial, lambda s: moves(0, s))
            into: dict[int, list[tuple[int, Fraction]]] = defaultdict(list)
            for state in states:
                for target, probability in moves(0, state).items():
                    into[target].append((state, probability))
            reached = [solved(states, game.discount, lambda s: game.initial.get(s, ZERO), lambda s: into[s])]
        while len(reached) < game.steps:
            step = len(reached) - 1
            reached.append(mixed((chance, moves(step, state)) for state, chance in reached[-1].items()))
        return {
            (step, state, joint): here * chance
            for step, states_here in enumerate(reached)
            for state, here in states_here.items()
            for joint, chance in rows(step, state)
        }

    def _chooser(
        self, together: Callable[[int, tuple[int, ...]], tuple[int, ...]], others: Sequence[Any], choices: int
    ) -> Callable[[int | None, list[Fraction]], Chosen]:
        """Return what a chooser gets of r − λ·c (of no agent: of −λ·c) by `own` while the others keep theirs."""
        game = self.process

        @cache
        def outcomes(step: int, state: int, own: int) -> list[tuple[tuple[int, ...], Fraction]]:
            return [(together(own, joint), chance) for joint, chance in played(step, state)]

        @cache
        def played(step: int, state: int) -> list[tuple[tuple[int, ...], Fraction]]:
            return list(_joint_row([table[step][state] for table in others]))

        @cache
        def moves(step: int, state: int, own: int) -> dict[int, Fraction]:
            if game.discount == 0:  # nothing that comes later counts, so nothing that is forbidden there does
                return {}
            return mixed((chance, game.moves(step, state, joint)) for joint, chance in outcomes(step, state, own))

        def chosen(agent: int | None, charged: list[Fraction]) -> Chosen:
            def worth(step: int, state: int, own: int) -> Fraction:
                terms = []
                for joint, chance in outcomes(step, state, own):
                    if agent is not None:
                        terms.append((chance, game.reward(agent, step, state, joint)))
                    terms += [(-p * chance, game.cost(j, step, state, joint)) for j, p in enumerate(charged) if p]
                return weighed(terms)

            return Chosen(game.steps, game.discount, game.states, choices, cache(worth), moves)

        return chosen


@dataclass(frozen=True)
class Chosen:
    """What one chooser faces: functions of (step, state, own action)."""

    steps: int  # 1 in a discounted problem
    discount: Fraction | None
    states: int
    actions: int
    worth: Callable[[int, int, int], Fraction]
    moves: Callable[[int, int, int], dict[int, Fraction]]

    def score(self, step: int, state: int, own: int, ahead: dict[int, Fraction | None]) -> Fraction | None:
        """What an action is worth with what comes after it; None where that may lead to where nothing is allowed."""
        factor = ONE if self.discount is None else self.discount
        terms = [(ONE, self.worth(step, state, own))]
        for target, probability in self.moves(step, state, own).items() if ahead else ():
            later = ahead[target]
            if later is None:
                return None
            terms.append((factor * probability, later))
        return weighed(terms)

    def reached(self, initial: Iterable[int]) -> list[list[int]]:
        """The states that some choices lead to, by step; of a discounted problem, ever."""
        if self.discount is not None:
            return [closure(initial, lambda s: (t for a in range(self.actions) for t in self.moves(0, s, a)))]
        found = [sorted(initial)]
        for step in range(self.steps - 1):
            found.append(sorted({t for s in found[-1] for a in range(self.actions) for t in self.moves(step, s, a)}))
        return found


Allowed = set[tuple[int, int, int]]  # (step, state, action)


class NotHard(AssertionError):
    """A budget of which something is left, or of which even the least is too much, is called hard."""

    def __init__(self, least: Fraction, left: Fraction) -> None:
        state = "nothing is feasible" if least > left else "something is left of it"
        super().__init__(f"a budget is called hard, and {state}")
        self.nothing_is_feasible = least > left


def closure(first: Iterable[int], follow: Callable[[int], Iterable[int]]) -> list[int]:
    """Everything that can be come to, in order."""
    found, waiting = set(first), list(first)
    while waiting:
        new = set(follow(waiting.pop())) - found
        found |= new
        waiting += new
    return sorted(found)


def solved(
    states: Sequence[int],
    discount: Fraction,
    worth: Callable[[int], Fraction],
    moves: Callable[[int], Iterable[tuple[int, Fraction]]],
) -> dict[int, Fraction]:
    """Solve V = r + γ·P·V by Gauss's elimination, over states that lead to no others."""
    index = {state: place for place, state in enumerate(states)}
    matrix = [[ZERO] * (len(states) + 1) for _ in states]
    for state, line in zip(states, matrix, strict=True):
        line[index[state]] += ONE
        line[-1] = worth(state)
        for target, probability in moves(state) if discount else ():
            line[index[target]] -= discount * probability
    return dict(zip(states, _eliminated(matrix), strict=True))


def split_prices(prices: Sequence[float]) -> tuple[list[Fraction], list[int]]:
    """Multipliers, zero where they are infinite, and which ones are."""
    hard = [j for j, price in enumerate(prices) if price == float("inf")]
    return [ZERO if j in hard else Fraction(price) for j, price in enumerate(prices)], hard


Values = list[dict[int, Fraction | None]]  # of the states that can be reached, by step


def best_values(process: Chosen, initial: Iterable[int], allowed: Allowed | None = None) -> Values:
    """The greatest value from every state at every step, among what is allowed; None where nothing is."""
    able = [
        {s: [a for a in range(process.actions) if allowed is None or (h, s, a) in allowed] for s in states}
        for h, states in enumerate(process.reached(initial))
    ]
    if process.discount is not None:
        return [_policy_iteration(process, able[0])]
    found: Values = [{}]
    for step in reversed(range(process.steps)):
        scores = {s: [process.score(step, s, a, found[0]) for a in own] for s, own in able[step].items()}
        found.insert(0, {s: max((x for x in each if x is not None), default=None) for s, each in scores.items()})
    return found


def _policy_iteration(process: Chosen, able: dict[int, list[int]]) -> dict[int, Fraction | None]:
    """Improve until nothing is better: in exact arithmetic that ends."""
    lost: set[int] = set()
    while True:  # states from which something forbidden cannot be avoided
        kept = {s: [a for a in own if not lost & set(process.moves(0, s, a))] for s, own in able.items()}
        more = {s for s, own in kept.items() if not own}
        if more == lost:
            break
        lost, able = more, kept
    chosen = {s: own[0] if own else 0 for s, own in able.items()}
    while True:
        values = solved(
            list(able),
            process.discount,  # type: ignore[arg-type]
            lambda s: process.worth(0, s, chosen[s]),
            lambda s: process.moves(0, s, chosen[s]).items(),
        )
        better = False
        for s, own in able.items():
            scores = {a: process.score(0, s, a, values) for a in own}  # type: ignore[arg-type]
            best = max(scores, key=lambda a: scores[a], default=None)  # type: ignore[arg-type, return-value]
            if best is not None and scores[best] > values[s]:  # type: ignore[operator]
                chosen[s], better = best, True
        if not better:
            return {s: None if s in lost else value for s, value in values.items()}


def planned(process: Chosen, initial: dict[int, Fraction], allowed: Allowed | None = None) -> Fraction:
    """The most that can be had from the initial states; minus infinity is a NotHard: nothing is feasible."""
    values = best_values(process, initial, allowed)[0]
    if any(values[state] is None for state in initial):
        raise NotHard(ONE, ZERO)
    return sum((chance * values[state] for state, chance in initial.items()), ZERO)  # type: ignore[operator]


def cheapest(process: Chosen, initial: dict[int, Fraction], left: Fraction, allowed: Allowed | None) -> Allowed:
    """The actions that cost least, which must be all that is left, among those that are allowed: −cost is maximised."""
    values = best_values(process, initial)
    spent = sum((-chance * values[0][state] for state, chance in initial.items()), ZERO)  # type: ignore[operator]
    if spent != left:
        raise NotHard(spent, left)
    found = set()
    for step, here in enumerate(values[: process.steps]):
        ahead = here if process.discount is not None else values[step + 1]
        for state, best in here.items():
            for own in range(process.actions):
                if process.score(step, state, own, ahead) == best:
                    found.add((step, state, own))
    return found if allowed is None else found & allowed


def deviations(
    process: Chosen, worth: Sequence[Callable[[int, int, int], Fraction]], initial: dict[int, Fraction], most: int
) -> list[tuple[Fraction, ...]]:
    """What pure deviations collect of several tables, in lexicographic order of their actions, at most so many."""
    reached = [(step, state) for step, states in enumerate(process.reached(initial)) for state in states]
    found = []
    for choice in islice(product(range(process.actions), repeat=len(reached)), most):
        own = dict(zip(reached, choice, strict=True))
        found.append(tuple(_collected(process, each, initial, own) for each in worth))
    return found


def _collected(
    process: Chosen,
    worth: Callable[[int, int, int], Fraction],
    initial: dict[int, Fraction],
    own: dict[tuple[int, int], int],
) -> Fraction:
    if process.discount is not None:
        values = solved(
            [state for _, state in own],
            process.discount,
            lambda s: worth(0, s, own[0, s]),
            lambda s: process.moves(0, s, own[0, s]).items(),
        )
        return sum((chance * values[state] for state, chance in initial.items()), ZERO)
    total, present = ZERO, initial
    for step in range(process.steps):
        ahead: dict[int, Fraction] = defaultdict(Fraction)
        for state, chance in present.items():
            total += chance * worth(step, state, own[step, state])
            for target, p in process.moves(step, state, own[step, state]).items() if step + 1 < process.steps else ():
                ahead[target] += chance * p
        present = ahead
    return total


def best_mixture(totals: Sequence[tuple[Fraction, ...]], left: Sequence[Fraction]) -> Fraction | None:
    """The greatest first entry of mixtures of at most two rows whose other entries are at most what is left."""
    kept = [all(c <= most for c, most in zip(each[1:], left, strict=True)) for each in totals]
    best = max((each[0] for each, fine in zip(totals, kept, strict=True) if fine), default=None)
    for good in (each for each, fine in zip(totals, kept, strict=True) if fine):
        for other in (each for each, fine in zip(totals, kept, strict=True) if not fine and each[0] > good[0]):
            rooms = ((most - g, o - g) for g, o, most in zip(good[1:], other[1:], left, strict=True))
            share = min(room / rise for room, rise in rooms if rise > room)
            best = max(best, good[0] + share * (other[0] - good[0]))  # type: ignore[type-var]
    return best


def _joint_row(rows: Sequence[Any]) -> Iterable[tuple[tuple[int, ...], Fraction]]:
    """Every joint action that can happen, with its probability."""
    for joint in product(*(row(each).items() for each in rows)):
        yield tuple(action for action, _ in joint), _chance(joint)


def _eliminated(matrix: list[list[Fraction]]) -> list[Fraction]:
    """Solve a system whose diagonal stays away from zero, given with its right-hand side as the last column."""
    size = len(matrix)
    for pivot in range(size):
        for other in range(size):
            if other != pivot and matrix[other][pivot]:
                factor = matrix[other][pivot] / matrix[pivot][pivot]
                matrix[other] = [a - factor * b for a, b in zip(matrix[other], matrix[pivot], strict=True)]
    return [line[-1] / line[place] for place, line in enumerate(matrix)]


@dataclass(frozen=True)
class Law:
    """How likely it is that 0, 1, 2, … of independent events happen: numerators, over one denominator."""

    numerators: list[int]
    common: int

    @classmethod
    def of(cls, chances: Iterable[Fraction]) -> Law:
        """The law of events with these probabilities."""
        found, common = [1], 1
        for chance in chances:
            yes, no = chance.numerator, chance.denominator - chance.numerator
            found = [stay * no + join * yes for stay, join in zip([*found, 0], [0, *found], strict=True)]
            common *= chance.denominator
        return cls(found, common)

    def mean(self, worth: Callable[[int], Fraction]) -> Fraction:
        """The mean of what each number is worth."""
        each = [worth(number) for number in range(len(self.numerators))]
        over = lcm(*(x.denominator for x in each))
        terms = zip(self.numerators, each, strict=True)
        return Fraction(sum(n * x.numerator * (over // x.denominator) for n, x in terms if x), self.common * over)


@dataclass(frozen=True)
class LocalJudge:
    """Judges games of agents with states of their own, who meet at resources."""

    game: Game
    _known: dict[Any, Any] = field(default_factory=dict)
    """By agent: the last table, what happens under it, and what it costs; by "used": the same of the last policy."""

    @property
    def thresholds(self) -> list[Fraction]:
        """α."""
        return [Fraction(limit) for limit in np.asarray(self.game["thresholds"]).tolist()]

    def with_thresholds(self, thresholds: Any) -> LocalJudge:
        """The judge of the same game with other thresholds, who need not follow the last policy again."""
        return LocalJudge(self.game | {"thresholds": thresholds}, self._known)

    def values(self, policy: Policy) -> list[Fraction]:
        """V^{r_i} of every agent."""
        used = self._used(policy)
        rewards = [self._rewards(agent, self._loads_without(agent, used)) for agent in range(len(policy))]
        return [self._alone(agent, policy[agent], rewards[agent]) for agent in range(len(policy))]

    def costs(self, policy: Policy) -> list[Fraction]:
        """V^{c_j} of every constraint."""
        loads, found = self._loads_without(None, self._used(policy)), []
        for j in range(len(self.thresholds)):
            private = [self._spent(agent, table, j) for agent, table in enumerate(policy)]
            shared = self._shared_cost(j, loads)
            found.append(sum(private, shared))
        return found

    def gains(self, policy: Policy, multipliers: Any) -> list[Fraction]:
        """What each agent could gain at most, by the bound of these multipliers [n, k]."""
        return [self.gain(policy, i, prices) for i, prices in enumerate(np.asarray(multipliers).tolist())]

    def gain(self, policy: Policy, agent: int, prices: Sequence[float]) -> Fraction:
        """What one agent could gain at most, by the bound of its multipliers [k]."""
        charged, hard = split_prices(prices)
        rewards, spending, room = self._facing(policy, agent)

        def worth(*where: int) -> Fraction:
            return rewards(*where) - sum((p * c(*where) for p, c in zip(charged, spending, strict=True) if p), ZERO)

        limit = sum((price * left for price, left in zip(charged, room, strict=True)), ZERO)
        initial, allowed = row(self.game["agents"][agent]["initial"]), None
        for j in hard:
            least = self._process(agent, lambda *where, c=spending[j]: -c(*where))
            allowed = cheapest(least, initial, room[j], allowed)
        present = self._alone(agent, policy[agent], rewards)
        return limit + planned(self._process(agent, worth), initial, allowed) - present

    def best_gain(self, policy: Policy, agent: int, binds: Sequence[Any], most: int = 64) -> Fraction | None:
        """The best gain of deviations that are tried: pure ones, and mixtures of two, that keep what binds the agent.

        At most so many pure deviations are tried; None if none of them is feasible.
        """
        rewards, spending, room = self._facing(policy, agent)
        bound = [j for j, each in enumerate(binds) if each]
        tables = [rewards, *(spending[j] for j in bound)]
        initial = row(self.game["agents"][agent]["initial"])
        tried = deviations(self._process(agent, rewards), tables, initial, most)
        best = best_mixture(tried, [room[j] for j in bound])
        return None if best is None else best - self._alone(agent, policy[agent], rewards)

    def least_alone(self, policy: Policy, agent: int, j: int) -> Fraction:
        """The least of one cost that one agent can bring about while the others keep theirs."""
        _, spending, room = self._facing(policy, agent)
        least = self._process(agent, lambda *where: -spending[j](*where))
        return self.thresholds[j] - room[j] - planned(least, row(self.game["agents"][agent]["initial"]))

    def _facing(self, policy: Policy, agent: int) -> tuple[Any, list[Any], list[Fraction]]:
        """Return an agent's rewards, what it adds to each cost, and what the others leave of each threshold."""
        loads, room = self._loads_without(agent, self._used(policy)), []
        rewards = self._rewards(agent, loads)
        spending = [self._marginal(agent, loads, j) for j in range(len(self.thresholds))]
        for j, limit in enumerate(self.thresholds):
            private = (self._spent(i, table, j) for i, table in enumerate(policy) if i != agent)
            shared = self._shared_cost(j, loads)
            room.append(limit - sum(private, shared))
        return rewards, spending, room

    def _process(self, agent: int, worth: Callable[[int, int, int], Fraction]) -> Chosen:
        own = self.game["agents"][agent]
        states, actions = np.asarray(own["reward"]).shape[1:]
        moves = partial(self._moves, agent)
        return Chosen(self.game["horizon"], None, states, actions, cache(worth), moves)

    def least_cost(self, weights: Any) -> Fraction | None:
        """What one planner who sees and chooses everything pays at least; None if that is too much to enumerate."""
        agents = self.game["agents"]
        if not any(np.asarray(each["uses"]).any() for each in agents):
            return self.cost_floor(weights)
        charged = [Fraction(weight) for weight in np.asarray(weights).tolist()]
        shapes = [np.asarray(each["reward"]).shape[1:] for each in agents]
        if prod(states * actions for states, actions in shapes) > MAX_JOINT_PAIRS:
            return None
        values = np.full([states for states, _ in shapes], ZERO, dtype=object)
        for step in reversed(range(self.game["horizon"])):
            ahead = values
            for i, (states, actions) in enumerate(shapes):
                # Agents move independently: the axis of a state becomes that of a pair, one agent after the other.
                moves = [self._moves(i, step, s, a) for s, a in product(range(states), range(actions))]
                ahead = np.tensordot(ahead, _full(moves, states), axes=(0, 1))
            paid = self._paid(step, shapes, charged)
            chosen = (ahead + paid).reshape([size for shape in shapes for size in shape])
            values = np.asarray(chosen.min(axis=tuple(range(1, 2 * len(shapes), 2))), dtype=object)
        for each in agents:
            initial = np.asarray(each["initial"])
            values = np.tensordot(values, _full([row(initial)], initial.size)[0], axes=(0, 0))
        return Fraction(values[()] if isinstance(values, np.ndarray) else values)

    def cost_floor(self, weights: Any) -> Fraction:
        """What nobody can go below, and what is paid at least where nobody uses anything.

        Each agent pays its own least, and each resource its least over all loads that there may be.
        """
        charged = [Fraction(weight) for weight in np.asarray(weights).tolist()]
        agents = self.game["agents"]
        most = sum(bool(np.asarray(each["uses"]).any()) for each in agents)
        total = ZERO
        for step, place in product(range(self.game["horizon"]), range(self._resources)):
            total += min(
                weighed((price, self._load_cost(j, step, place, load)) for j, price in enumerate(charged))
                for load in range(most + 1)
            )
        for agent, own in enumerate(agents):
            spent = [(price, self._private(agent, j)) for j, price in enumerate(charged)]
            worth = self._process(agent, lambda *at, spent=spent: -weighed((price, cost(*at)) for price, cost in spent))
            total -= planned(worth, row(own["initial"]))
        return total

    def _paid(self, step: int, shapes: Sequence[tuple[int, int]], charged: list[Fraction]) -> np.ndarray:
        """What agents pay together at a step, by the pair of state and action that each of them is in."""
        pairs = [list(product(range(states), range(actions))) for states, actions in shapes]

        def axis(i: int, each: list[Any], kind: Any) -> np.ndarray:
            return np.array(each, dtype=kind).reshape([-1 if at == i else 1 for at in range(len(shapes))])

        total = np.full([len(each) for each in pairs], ZERO, dtype=object)
        for j, price in ((j, price) for j, price in enumerate(charged) if price):
            for i, own in enumerate(pairs):
                total = total + axis(i, [price * self._private(i, j)(step, s, a) for s, a in own], object)
            for place in range(self._resources):
                loads = [
                    axis(i, [self._uses(i, step, s, a, place) for s, a in own], int) for i, own in enumerate(pairs)
                ]
                by_load = [price * self._load_cost(j, step, place, load) for load in range(len(shapes) + 1)]
                total = total + np.array(by_load, dtype=object)[sum(loads)]
        return total

    @property
    def _resources(self) -> int:
        return int(np.asarray(self.game["delay"]).shape[1])

    def _uses(self, agent: int, step: int, state: int, action: int, place: int) -> bool:
        return bool(at(self.game["agents"][agent]["uses"], step)[state][action][place])

    def _load_cost(self, j: int, step: int, place: int, load: int) -> Fraction:
        return number(at(self.game["load_cost"][j], step)[place][load])

    def _shared_cost(self, j: int, loads: Loads) -> Fraction:
        """What the loads cost, over all steps and resources."""
        places = product(range(self.game["horizon"]), range(self._resources))
        return weighed((ONE, loads(*where).mean(partial(self._load_cost, j, *where))) for where in places)

    def _private(self, agent: int, j: int) -> Callable[[int, int, int], Fraction]:
        cost = self.game["agents"][agent].get("cost")
        return lambda step, state, action: ZERO if cost is None else number(at(cost[j], step)[state][action])

    def _used(self, policy: Policy) -> list[list[list[Fraction]]]:
        """How likely each agent uses each resource, by step."""
        known = self._known.get("used")
        if known is None or not all(one is other for one, other in zip(known[0], policy, strict=True)):
            known = self._known["used"] = (*policy,), self._uses_of_all(policy)
        return known[1]  # type: ignore[no-any-return]

    def _uses_of_all(self, policy: Policy) -> list[list[list[Fraction]]]:
        found = []
        for agent, table in enumerate(policy):
            at_step = [[ZERO] * self._resources for _ in range(self.game["horizon"])]
            for step, present in enumerate(self._present(agent, table)):
                for (state, action), chance in present.items():
                    for place in range(self._resources):
                        if self._uses(agent, step, state, action, place):
                            at_step[step][place] += chance
            found.append(at_step)
        return found

    def _present(self, agent: int, table: Any) -> list[dict[tuple[int, int], Fraction]]:
        """How likely an agent is in each state and plays each action, by step."""
        if agent not in self._known or self._known[agent][0] is not table:
            self._known[agent] = table, list(self._followed(agent, table)), {}
        found: list[dict[tuple[int, int], Fraction]] = self._known[agent][1]
        return found

    def _spent(self, agent: int, table: Any, j: int) -> Fraction:
        """What an agent pays by itself of one cost."""
        self._present(agent, table)
        spent: dict[int, Fraction] = self._known[agent][2]
        if j not in spent:
            spent[j] = self._alone(agent, table, self._private(agent, j))
        return spent[j]

    def _moves(self, agent: int, step: int, state: int, action: int) -> dict[int, Fraction]:
        """Where an agent's action leads."""
        table = self.game["agents"][agent]["transition"]
        place = (agent, 0 if len(table) == 1 else step, state, action)
        if place not in self._known:
            self._known[place] = row(table[place[1]][state][action])
        return self._known[place]  # type: ignore[no-any-return]

    def _followed(self, agent: int, table: Any) -> Iterable[dict[tuple[int, int], Fraction]]:
        own = self.game["agents"][agent]
        states = row(own["initial"])
        for step in range(self.game["horizon"]):
            pairs = {(s, a): reached * p for s, reached in states.items() for a, p in row(table[step][s]).items()}
            yield pairs
            states = mixed((chance, self._moves(agent, step, s, a)) for (s, a), chance in pairs.items())

    def _rewards(self, agent: int, loads: Loads) -> Callable[[int, int, int], Fraction]:
        """What an agent gets: its own reward less the delays that it expects, being one of those who load."""

        @cache
        def delay(step: int, place: int) -> Fraction:
            given = at(self.game["delay"], step)[place]
            return loads(step, place).mean(lambda load: number(given[load + 1]))

        def reward(step: int, state: int, action: int) -> Fraction:
            private = number(at(self.game["agents"][agent]["reward"], step)[state][action])
            places = (place for place in range(self._resources) if self._uses(agent, step, state, action, place))
            return private - sum((delay(step, place) for place in places), ZERO)

        return reward

    def _marginal(self, agent: int, loads: Loads, j: int) -> Callable[[int, int, int], Fraction]:
        """What an agent adds to the spending: its own cost, and what the load costs more with it than without."""
        private = self._private(agent, j)

        @cache
        def added(step: int, place: int) -> Fraction:
            paid = partial(self._load_cost, j, step, place)
            return loads(step, place).mean(lambda load: paid(load + 1) - paid(load))

        def cost(step: int, state: int, action: int) -> Fraction:
            places = (place for place in range(self._resources) if self._uses(agent, step, state, action, place))
            return private(step, state, action) + sum((added(step, place) for place in places), ZERO)

        return cost

    def _loads_without(self, agent: int | None, used: Any) -> Loads:
        """The distribution of the load of each resource at each step, without one agent."""

        @cache
        def loads(step: int, place: int) -> Law:
            return Law.of([each[step][place] for other, each in enumerate(used) if other != agent])

        return loads

    def _alone(self, agent: int, table: Any, worth: Callable[[int, int, int], Fraction]) -> Fraction:
        """What an agent's policy collects of `worth`."""
        there = enumerate(self._present(agent, table))
        return weighed((p, worth(step, *pair)) for step, pairs in there for pair, p in pairs.items())


def _full(rows: Sequence[dict[int, Fraction]], columns: int) -> Any:
    """Rows as a table of fractions."""
    table = np.full((len(rows), columns), ZERO, dtype=object)
    for place, each in enumerate(rows):
        for column, chance in each.items():
            table[place, column] = chance
    return table


def _chance(outcome: Sequence[tuple[int, Fraction]]) -> Fraction:
    """The probability that independent draws come out so."""
    chances = [chance for _, chance in outcome if chance != 1]
    return Fraction(prod(each.numerator for each in chances), prod(each.denominator for each in chances))
