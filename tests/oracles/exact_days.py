"""Days of small games in fractions: every course of a day is followed, so that expectations are exact.

Shares no code with the library but the tables of a game, whose floats are read as the fractions that they are.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product


def outcomes(game, tables, step, states):
    """Yield (probability, costs, next states) of one step of a local game, where agents play rows tables[i][state]."""
    choices = [
        [(action, Fraction(float(p))) for action, p in enumerate(table[state]) if p]
        for table, state in zip(tables, states, strict=True)
    ]
    for actions in product(*choices):
        chance = Fraction(1)
        for _, p in actions:
            chance *= p
        picked = [action for action, _ in actions]
        costs = [Fraction(float(each)) for each in _costs(game, step, states, picked)]
        moves = []
        for agent, state, action in zip(game.agents, states, picked, strict=True):
            row = _at(agent.transition, step)[[state * agent.num_actions + action]].toarray()[0]
            moves.append([(s, Fraction(float(p))) for s, p in enumerate(row) if p])
        for nexts in product(*moves):
            p = chance
            for _, each in nexts:
                p *= each
            yield p, costs, tuple(s for s, _ in nexts)


def _at(tables, step):
    return tables[step if len(tables) > 1 else 0]


def _costs(game, step, states, actions):
    loads = [0] * game.num_resources
    found = [Fraction(0)] * game.num_constraints
    for agent, state, action in zip(game.agents, states, actions, strict=True):
        used = _at(agent.uses, step)[[state * agent.num_actions + action]].toarray()[0]
        loads = [load + int(each) for load, each in zip(loads, used, strict=True)]
        for j in range(game.num_constraints) if agent.costs is not None else ():
            found[j] += Fraction(float(_at(agent.costs[j], step)[state, action]))
    for j in range(game.num_constraints):
        for e, load in enumerate(loads):
            found[j] += Fraction(float(_at(game.load_costs[j], step)[e, load]))
    return found


def begin(game):
    """Return the law of the first joint state: {states: probability}."""
    law = {(): Fraction(1)}
    for agent in game.agents:
        law = {
            (*states, s): p * Fraction(float(q)) for states, p in law.items() for s, q in enumerate(agent.initial) if q
        }
    return law


def expected_cost(game, policy):
    """Return the exact expected costs of a policy, by following every course: [k]."""
    law, total = begin(game), [Fraction(0)] * game.num_constraints
    for step in range(game.horizon):
        later = defaultdict(Fraction)
        for states, p in law.items():
            for q, costs, nexts in outcomes(game, [table[step] for table in policy], step, states):
                total = [sum_ + p * q * cost for sum_, cost in zip(total, costs, strict=True)]
                later[nexts] += p * q
        law = later
    return total


def law_and_spending(game, policy, steps):
    """Return, by joint state after so many steps, its probability and the expected spending with that state: exact."""
    law = {states: (p, [Fraction(0)] * game.num_constraints) for states, p in begin(game).items()}
    for step in range(steps):
        later = {}
        for states, (p, spent) in law.items():
            for q, costs, nexts in outcomes(game, [table[step] for table in policy], step, states):
                mass, paid = later.get(nexts, (Fraction(0), [Fraction(0)] * game.num_constraints))
                add = [q * (s + p * c) for s, c in zip(spent, costs, strict=True)]
                later[nexts] = mass + p * q, [one + other for one, other in zip(paid, add, strict=True)]
        law = later
    return law
