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

Joint and counting games are walked joint action by joint action. In local games the agents are independent: the load of
a resource is a sum of independent draws, one per agent; only `least_cost` builds the joint states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np

Game = dict[str, Any]
Policy = Sequence[Any]
ZERO, ONE = Fraction(0), Fraction(1)


def judge(game: Game) -> JointJudge | LocalJudge:
    """Return the judge of one game."""
    if game["form"] == "local":
        return LocalJudge(game)
    return JointJudge(_counted_out(game) if game["form"] == "counting" else _joint(game))


def row(probabilities: Any) -> dict[int, Fraction]:
    """The support of a row of probabilities, divided by its exact sum."""
    given = {place: Fraction(entry) for place, entry in enumerate(np.asarray(probabilities).tolist()) if entry}
    total = sum(given.values())
    return given if total == 1 else {place: chance / total for place, chance in given.items()}


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
        reward=cache(lambda i, h, s, joint: Fraction(look["reward"](i, h, s, joint))),
        cost=cache(lambda j, h, s, joint: Fraction(look["cost"](j, h, s, joint))),
    )


def _joint(game: Game) -> Process:
    """A joint game reads its tables."""
    return _process(
        game,
        tuple(game["rewards"].shape[3:]),
        {
            "transition": lambda h, s, joint: at(game["transition"], h)[(s, *joint)],
            "reward": lambda i, h, s, joint: at(game["rewards"][i], h)[(s, *joint)].item(),
            "cost": lambda j, h, s, joint: at(game["costs"][j], h)[(s, *joint)].item(),
        },
    )


def _counted_out(game: Game) -> Process:
    """A counting game counts who chose what, at every joint action."""
    choices, agents = game["rewards"].shape[2], game["rewards"].shape[3] - 1
    boundaries = game.get("boundaries")
    vectors = sorted(
        {tuple(joint.count(a) for a in range(choices)) for joint in product(range(choices), repeat=agents)}
    )

    def class_of(joint: tuple[int, ...]) -> int:
        counts = tuple(joint.count(action) for action in range(choices))
        if boundaries is None:
            return vectors.index(counts)
        return sum(max(counts) > limit for limit in np.asarray(boundaries).tolist())

    def reward(agent: int, step: int, state: int, joint: tuple[int, ...]) -> Fraction:
        action = joint[agent]
        total = Fraction(at(game["rewards"], step)[state, action, joint.count(action)].item())
        if game.get("private_rewards") is not None:
            total += Fraction(at(game["private_rewards"][agent], step)[state, action].item())
        if game.get("class_rewards") is not None:
            total += Fraction(at(game["class_rewards"], step)[state, action, class_of(joint)].item())
        return total

    return _process(
        game,
        (choices,) * agents,
        {
            "transition": lambda h, s, joint: at(game["transition"], h)[s, class_of(joint)],
            "reward": reward,
            "cost": lambda j, h, s, joint: at(game["costs"][j], h)[s, class_of(joint)].item(),
        },
    )


@dataclass(frozen=True)
class JointJudge:
    """Judges games in which everybody sees the joint state."""

    process: Process

    @property
    def thresholds(self) -> list[Fraction]:
        """α."""
        return self.process.thresholds

    def values(self, policy: Policy) -> list[Fraction]:
        """V^{r_i} of every agent."""
        game = self.process
        return [self._sum(policy, lambda *w, i=i: game.reward(i, *w)) for i in range(len(game.actions))]

    def costs(self, policy: Policy) -> list[Fraction]:
        """V^{c_j} of every constraint."""
        return [self._sum(policy, lambda *w, j=j: self.process.cost(j, *w)) for j in range(self.process.constraints)]

    def gains(self, policy: Policy, multipliers: Any) -> list[Fraction]:
        """What each agent could gain at most, by the bound of these multipliers [n, k]."""
        found, present = [], self.values(policy)
        for agent, prices in enumerate(np.asarray(multipliers).tolist()):
            charged, hard = split_prices(prices)
            others = [table for i, table in enumerate(policy) if i != agent]

            def together(own: int, rest: tuple[int, ...], i: int = agent) -> tuple[int, ...]:
                return (*rest[:i], own, *rest[i:])

            allowed = None
            for j in hard:
                only = [ONE if constraint == j else ZERO for constraint in range(len(charged))]
                process = self._chosen(together, others, None, only, choices=self.process.actions[agent])
                allowed = cheapest(process, self.process.initial, self.thresholds[j], allowed)
            best = planned(self._chosen(together, others, agent, charged), self.process.initial, allowed)
            limit = sum((price * most for price, most in zip(charged, self.thresholds, strict=True)), ZERO)
            found.append(limit + best - present[agent])
        return found

    def least_cost(self, weights: Any) -> Fraction:
        """What one planner who chooses all actions pays at least."""
        charged = [Fraction(weight) for weight in np.asarray(weights).tolist()]
        joints = list(product(*map(range, self.process.actions)))
        process = self._chosen(lambda own, _: joints[own], [], None, charged, choices=len(joints))
        return -planned(process, self.process.initial)

    def _sum(self, policy: Policy, entry: Callable[..., Fraction]) -> Fraction:
        """Follow the policy forward through everything that can happen."""
        game = self.process
        if game.discount is not None:
            return self._discounted_sum(policy, entry)
        total, present = ZERO, dict(game.initial)
        for step in range(game.steps):
            ahead: dict[int, Fraction] = defaultdict(Fraction)
            for state, reached in present.items():
                for joint, chance in _joint_row([table[step][state] for table in policy]):
                    total += reached * chance * entry(step, state, joint)
                    if step + 1 < game.steps:
                        for target, probability in game.moves(step, state, joint).items():
                            ahead[target] += reached * chance * probability
            present = ahead
        return total

    def _discounted_sum(self, policy: Policy, entry: Callable[..., Fraction]) -> Fraction:
        rows = [list(_joint_row([table[0][state] for table in policy])) for state in range(self.process.states)]
        values = self._solved(rows, entry)
        return sum((chance * values[state] for state, chance in self.process.initial.items()), ZERO)

    def _solved(self, rows: Sequence[Iterable[Any]], entry: Callable[..., Fraction]) -> list[Fraction]:
        """Solve V = r + γ·P·V by Gauss's elimination."""
        game = self.process
        matrix = [[ZERO] * (game.states + 1) for _ in range(game.states)]
        for state, joints in enumerate(rows):
            matrix[state][state] += ONE
            for joint, chance in joints:
                matrix[state][-1] += chance * entry(0, state, joint)
                for target, probability in game.moves(0, state, joint).items():
                    matrix[state][target] -= game.discount * chance * probability
        return _eliminated(matrix)

    def _chosen(
        self,
        together: Callable[[int, tuple[int, ...]], tuple[int, ...]],
        others: Sequence[Any],
        agent: int | None,
        charged: list[Fraction],
        choices: int | None = None,
    ) -> Chosen:
        """What somebody gets of r − λ·c (nobody: of −λ·c) by choosing `own` while the others keep theirs."""
        game = self.process

        def outcomes(step: int, state: int, own: int) -> list[tuple[tuple[int, ...], Fraction]]:
            rest = _joint_row([table[step][state] for table in others])
            return [(together(own, joint), chance) for joint, chance in rest]

        def worth(step: int, state: int, own: int) -> Fraction:
            total = ZERO
            for joint, chance in outcomes(step, state, own):
                got = ZERO if agent is None else game.reward(agent, step, state, joint)
                spent = sum((p * game.cost(j, step, state, joint) for j, p in enumerate(charged) if p), ZERO)
                total += chance * (got - spent)
            return total

        def moves(step: int, state: int, own: int) -> dict[int, Fraction]:
            ahead: dict[int, Fraction] = defaultdict(Fraction)
            for joint, chance in outcomes(step, state, own):
                for target, probability in game.moves(step, state, joint).items():
                    ahead[target] += chance * probability
            return ahead

        count = choices if choices is not None else game.actions[agent]  # type: ignore[index]
        return Chosen(game.steps, game.discount, game.states, count, cache(worth), cache(moves))


@dataclass(frozen=True)
class Chosen:
    """What one chooser faces: functions of (step, state, own action)."""

    steps: int  # 1 in a discounted problem
    discount: Fraction | None
    states: int
    actions: int
    worth: Callable[[int, int, int], Fraction]
    moves: Callable[[int, int, int], dict[int, Fraction]]

    def score(self, step: int, state: int, own: int, ahead: Sequence[Fraction | None]) -> Fraction | None:
        """What an action is worth with what comes after it; None where that may lead to where nothing is allowed."""
        total, factor = self.worth(step, state, own), ONE if self.discount is None else self.discount
        for target, probability in self.moves(step, state, own).items() if ahead else ():
            later = ahead[target]
            if later is None:
                return None
            total += factor * probability * later
        return total


Allowed = set[tuple[int, int, int]]  # (step, state, action)


def split_prices(prices: Sequence[float]) -> tuple[list[Fraction], list[int]]:
    """Multipliers, zero where they are infinite, and which ones are."""
    hard = [j for j, price in enumerate(prices) if price == float("inf")]
    return [ZERO if j in hard else Fraction(price) for j, price in enumerate(prices)], hard


def best_values(process: Chosen, allowed: Allowed | None = None) -> list[list[Fraction | None]]:
    """The greatest value from every state at every step, among what is allowed; None where nothing is."""
    able = [
        [[a for a in range(process.actions) if allowed is None or (h, s, a) in allowed] for s in range(process.states)]
        for h in range(process.steps)
    ]
    if process.discount is not None:
        return [_policy_iteration(process, able[0])]
    found: list[list[Fraction | None]] = [[]]
    for step in reversed(range(process.steps)):
        scores = [[process.score(step, s, a, found[0]) for a in own] for s, own in enumerate(able[step])]
        found.insert(0, [max((x for x in each if x is not None), default=None) for each in scores])
    return found


def _policy_iteration(process: Chosen, able: list[list[int]]) -> list[Fraction | None]:
    """Improve until nothing is better: in exact arithmetic that ends."""
    lost: set[int] = set()
    while True:  # states from which something forbidden cannot be avoided
        kept = [[a for a in own if not lost & set(process.moves(0, s, a))] for s, own in enumerate(able)]
        more = {s for s, own in enumerate(kept) if not own}
        if more == lost:
            break
        lost, able = more, kept
    chosen = [own[0] if own else 0 for own in able]
    while True:
        matrix = [[ZERO] * (process.states + 1) for _ in range(process.states)]
        for s in range(process.states):
            matrix[s][s] += ONE
            matrix[s][-1] = process.worth(0, s, chosen[s])
            for target, probability in process.moves(0, s, chosen[s]).items():
                matrix[s][target] -= process.discount * probability  # type: ignore[operator]
        values = _eliminated(matrix)
        better = False
        for s, own in enumerate(able):
            scores = {a: process.score(0, s, a, values) for a in own}
            best = max(scores, key=lambda a: scores[a], default=None)  # type: ignore[arg-type, return-value]
            if best is not None and scores[best] > values[s]:  # type: ignore[operator]
                chosen[s], better = best, True
        if not better:
            return [None if s in lost else value for s, value in enumerate(values)]


def planned(process: Chosen, initial: dict[int, Fraction], allowed: Allowed | None = None) -> Fraction:
    """The most that can be had from the initial states."""
    values = best_values(process, allowed)[0]
    return sum((chance * values[state] for state, chance in initial.items()), ZERO)  # type: ignore[operator]


def cheapest(process: Chosen, initial: dict[int, Fraction], left: Fraction, allowed: Allowed | None) -> Allowed:
    """The actions that cost least, which must be all that is left, among those that are allowed: −cost is maximised."""
    values = best_values(process)
    spent = sum((-chance * values[0][state] for state, chance in initial.items()), ZERO)  # type: ignore[operator]
    if spent != left:
        raise AssertionError(f"{float(left)!r} is left of a budget that is called hard, and {float(spent)!r} suffices")
    found = set()
    for step in range(process.steps):
        ahead = values[0 if process.discount is not None else step + 1]
        for state in range(process.states):
            for own in range(process.actions):
                if process.score(step, state, own, ahead) == values[step][state]:
                    found.add((step, state, own))
    return found if allowed is None else found & allowed


def _joint_row(rows: Sequence[Any]) -> Iterable[tuple[tuple[int, ...], Fraction]]:
    """Every joint action that can happen, with its probability."""
    for joint in product(*(row(each).items() for each in rows)):
        chance = ONE
        for _, probability in joint:
            chance *= probability
        yield tuple(action for action, _ in joint), chance


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
class LocalJudge:
    """Judges games of agents with states of their own, who meet at resources."""

    game: Game

    @property
    def thresholds(self) -> list[Fraction]:
        """α."""
        return [Fraction(limit) for limit in np.asarray(self.game["thresholds"]).tolist()]

    def values(self, policy: Policy) -> list[Fraction]:
        """V^{r_i} of every agent."""
        used = self._used(policy)
        return [self._alone(agent, policy[agent], self._rewards(agent, used)) for agent in range(len(policy))]

    def costs(self, policy: Policy) -> list[Fraction]:
        """V^{c_j} of every constraint."""
        used, found = self._used(policy), []
        for j in range(len(self.thresholds)):
            private = [self._alone(agent, table, self._private(agent, j)) for agent, table in enumerate(policy)]
            shared = [
                chance * self._load_cost(j, step, place, load)
                for step in range(self.game["horizon"])
                for place in range(self._resources)
                for load, chance in enumerate(_loads([each[step][place] for each in used]))
            ]
            found.append(sum(private, ZERO) + sum(shared, ZERO))
        return found

    def gains(self, policy: Policy, multipliers: Any) -> list[Fraction]:
        """What each agent could gain at most, by the bound of these multipliers [n, k]."""
        used, present, spent, found = self._used(policy), self.values(policy), self.costs(policy), []
        for agent, prices in enumerate(np.asarray(multipliers).tolist()):
            charged, hard = split_prices(prices)
            rewards = self._rewards(agent, used)
            spending = [self._marginal(agent, used, j) for j in range(len(charged))]

            def worth(
                *where: int, rewards: Any = rewards, spending: Any = spending, charged: Any = charged
            ) -> Fraction:
                return rewards(*where) - sum((p * c(*where) for p, c in zip(charged, spending, strict=True) if p), ZERO)

            # What the others spend is the total less what the agent adds to it.
            others = [total - self._alone(agent, policy[agent], c) for total, c in zip(spent, spending, strict=True)]
            room = [limit - other for limit, other in zip(self.thresholds, others, strict=True)]
            limit = sum((price * left for price, left in zip(charged, room, strict=True)), ZERO)
            initial, allowed = row(self.game["agents"][agent]["initial"]), None
            for j in hard:
                least = self._process(agent, lambda *where, c=spending[j]: -c(*where))
                allowed = cheapest(least, initial, room[j], allowed)
            found.append(limit + planned(self._process(agent, worth), initial, allowed) - present[agent])
        return found

    def _process(self, agent: int, worth: Callable[[int, int, int], Fraction]) -> Chosen:
        own = self.game["agents"][agent]
        states, actions = np.asarray(own["reward"]).shape[1:]
        moves = cache(lambda h, s, a: row(at(own["transition"], h)[s][a]))
        return Chosen(self.game["horizon"], None, states, actions, cache(worth), moves)

    def least_cost(self, weights: Any) -> Fraction:
        """What one planner who sees and chooses everything pays at least."""
        charged = [Fraction(weight) for weight in np.asarray(weights).tolist()]
        agents = self.game["agents"]
        joints = list(product(*(range(np.asarray(each["initial"]).size) for each in agents)))
        actions = list(product(*(range(np.asarray(each["reward"]).shape[2]) for each in agents)))
        values = dict.fromkeys(joints, ZERO)
        for step in reversed(range(self.game["horizon"])):
            last = step + 1 == self.game["horizon"]
            values = {
                states: min(self._paid(step, states, joint, charged, None if last else values) for joint in actions)
                for states in joints
            }
        starts = product(*(row(each["initial"]).items() for each in agents))
        return sum((_chance(start) * values[tuple(s for s, _ in start)] for start in starts), ZERO)

    def _paid(
        self, step: int, states: tuple[int, ...], joint: tuple[int, ...], charged: list[Fraction], values: Any
    ) -> Fraction:
        total, agents = ZERO, self.game["agents"]
        for j, price in enumerate(charged):
            private = (self._private(i, j)(step, s, a) for i, (s, a) in enumerate(zip(states, joint, strict=True)))
            total += price * sum(private, ZERO)
            for place in range(self._resources):
                load = sum(self._uses(i, step, s, a, place) for i, (s, a) in enumerate(zip(states, joint, strict=True)))
                total += price * self._load_cost(j, step, place, load)
        if values is not None:
            rows = [row(at(each["transition"], step)[s][a]) for each, s, a in zip(agents, states, joint, strict=True)]
            for ahead in product(*(each.items() for each in rows)):
                total += _chance(ahead) * values[tuple(state for state, _ in ahead)]
        return total

    @property
    def _resources(self) -> int:
        return int(np.asarray(self.game["delay"]).shape[1])

    def _uses(self, agent: int, step: int, state: int, action: int, place: int) -> bool:
        return bool(at(self.game["agents"][agent]["uses"], step)[state][action][place])

    def _load_cost(self, j: int, step: int, place: int, load: int) -> Fraction:
        return Fraction(at(self.game["load_cost"][j], step)[place][load].item())

    def _private(self, agent: int, j: int) -> Callable[[int, int, int], Fraction]:
        cost = self.game["agents"][agent].get("cost")
        return lambda step, state, action: ZERO if cost is None else Fraction(at(cost[j], step)[state][action].item())

    def _used(self, policy: Policy) -> list[list[list[Fraction]]]:
        """How likely each agent uses each resource, by step."""
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

    def _present(self, agent: int, table: Any) -> Iterable[dict[tuple[int, int], Fraction]]:
        """How likely an agent is in each state and plays each action, by step."""
        own = self.game["agents"][agent]
        states = row(own["initial"])
        for step in range(self.game["horizon"]):
            pairs = {(s, a): reached * p for s, reached in states.items() for a, p in row(table[step][s]).items()}
            yield pairs
            ahead: dict[int, Fraction] = defaultdict(Fraction)
            for (state, action), chance in pairs.items():
                for target, probability in row(at(own["transition"], step)[state][action]).items():
                    ahead[target] += chance * probability
            states = ahead

    def _rewards(self, agent: int, used: Any) -> Callable[[int, int, int], Fraction]:
        """What an agent gets: its own reward less the delays that it expects, being one of those who load."""
        loads = self._loads_of_others(agent, used)

        @cache
        def delay(step: int, place: int) -> Fraction:
            given = at(self.game["delay"], step)[place]
            return sum((p * Fraction(given[load + 1].item()) for load, p in enumerate(loads(step, place))), ZERO)

        def reward(step: int, state: int, action: int) -> Fraction:
            private = Fraction(at(self.game["agents"][agent]["reward"], step)[state][action].item())
            places = (place for place in range(self._resources) if self._uses(agent, step, state, action, place))
            return private - sum((delay(step, place) for place in places), ZERO)

        return reward

    def _marginal(self, agent: int, used: Any, j: int) -> Callable[[int, int, int], Fraction]:
        """What an agent adds to the spending: its own cost, and what the load costs more with it than without."""
        loads, private = self._loads_of_others(agent, used), self._private(agent, j)

        @cache
        def added(step: int, place: int) -> Fraction:
            steps = (
                p * (self._load_cost(j, step, place, load + 1) - self._load_cost(j, step, place, load))
                for load, p in enumerate(loads(step, place))
            )
            return sum(steps, ZERO)

        def cost(step: int, state: int, action: int) -> Fraction:
            places = (place for place in range(self._resources) if self._uses(agent, step, state, action, place))
            return private(step, state, action) + sum((added(step, place) for place in places), ZERO)

        return cost

    def _loads_of_others(self, agent: int, used: Any) -> Callable[[int, int], list[Fraction]]:
        @cache
        def loads(step: int, place: int) -> list[Fraction]:
            return _loads([each[step][place] for other, each in enumerate(used) if other != agent])

        return loads

    def _alone(self, agent: int, table: Any, worth: Callable[[int, int, int], Fraction]) -> Fraction:
        """What an agent's policy collects of `worth`."""
        there = enumerate(self._present(agent, table))
        return sum((p * worth(step, *pair) for step, pairs in there for pair, p in pairs.items()), ZERO)


def _loads(chances: Iterable[Fraction]) -> list[Fraction]:
    """The distribution of how many of independent events happen."""
    found = [ONE]
    for chance in chances:
        stay, join = [*(p * (1 - chance) for p in found), ZERO], [ZERO, *(p * chance for p in found)]
        found = [a + b for a, b in zip(stay, join, strict=True)]
    return found


def _chance(outcome: Sequence[tuple[int, Fraction]]) -> Fraction:
    chance = ONE
    for _, probability in outcome:
        chance *= probability
    return chance
