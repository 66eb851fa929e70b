"""Budgets on probabilities in local games: own costs by counters in own states, and loads by a sum over steps.

*Own costs.* If a cost is paid by one agent alone, by what it does itself, x_i counts it in that agent's own state: the
augmented game is a local game again, with (s_i, x_i) for s_i, and a cost of 1 at the step that passes the limit. No
other agent can move that cost, so it is a potential game as before (C3), and all that is claimed of local games holds:
against deviations that depend on the agent's own states, actions and costs.

*Loads.* What resources cost depends on where all agents are, which no agent sees; no own state can count it. By the
union bound

    P(c > 0 at some step) ≤ Σ_h P(c_h > 0),

and the right-hand side is an expected cost: 1 at every step and resource that costs something. It is this *sum* that is
constrained and certified, and that the constraint is named after. It is a stronger demand than the probability, so a
policy that meets it meets that; but deviations are those that keep the sum, and not those that keep the probability.
What several agents pay by themselves is summed over agents, too.

*Laws.* Agents with own-state policies move independently of each other. So what each pays by itself has a law by one
forward pass over its own states, and what they pay together the convolution of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, to_floats
from cmpg.errors import GameError, TooLargeError, UnsupportedError
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.game import LocalGame
from cmpg.games.names import Legend
from cmpg.games.risk import MAX_ATOMS, MAX_LEVELS, Chance, CostLaw, augmented_rows, law_of_sums, units_of
from cmpg.policy import JointPolicy


def with_local_chances(game: LocalGame, budgets: Sequence[Chance], *, keep_expected: bool) -> LocalGame:
    """Return a local game with a constraint for each budget; `cmpg.games.with_chances` has the parameters."""
    found, limited = game, set()
    for budget in budgets:
        constraint, agent = _resolved(game, budget)
        limited.add(constraint)
        found = _with_sum(found, constraint, budget) if agent is None else _counted(found, constraint, agent, budget)
    kept = [j for j in range(found.num_constraints) if keep_expected or j not in limited]
    return _only(found, kept)


def is_sum(game: LocalGame, budget: Chance) -> bool:
    """Whether what is constrained is the sum of probabilities over steps, instead of the probability itself."""
    return _resolved(game, budget)[1] is None


def _resolved(game: LocalGame, budget: Chance) -> tuple[int, int | None]:
    """Return which constraint is meant, and whose own costs are counted; None for the sum over steps."""
    j, agent = _named(game, budget)
    name = game.names.constraint(j)
    own = {i: each.costs[j] for i, each in enumerate(game.agents) if each.costs is not None and np.any(each.costs[j])}
    if min(float(np.min(table)) for table in (game.load_costs[j], *own.values())) < 0:
        raise GameError(f"{name} has negative costs; what exceeds a limit could come back below it.")
    loads = bool(np.any(game.load_costs[j]))
    if agent is not None and loads:
        raise GameError(
            f"{name} is what resources cost, which depends on where all agents are: no agent sees that in its own "
            f"state. Limit P({name} > 0), which is bounded by its sum over steps, or costs of an agent's own."
        )
    if agent is None and not loads and len(own) == 1:
        agent = next(iter(own))
    if agent is None and budget.at_most > 0:
        raise GameError(
            f"P({name} > {budget.at_most:g}) is about what all agents spend together, which no agent sees in its "
            f"own state. Limit P({name} > 0), which is bounded by its sum over steps, or the costs of one agent, "
            f"such as '{name} of {game.names.agent(0)}'."
        )
    return j, agent


def _named(game: LocalGame, budget: Chance) -> tuple[int, int | None]:
    """Return the constraint that a budget names, by number or by name, and the agent in "fuel of robot 1", or None."""
    names, agents = game.names.all_constraints(game.num_constraints), game.names.all_agents(game.num_agents)
    if not isinstance(budget.cost, str):
        if not 0 <= budget.cost < len(names):
            raise GameError(f"there is no constraint {budget.cost}; they count from 0 to {len(names) - 1}.")
        return budget.cost, None
    if budget.cost in names:
        return names.index(budget.cost), None
    cost, _, agent = budget.cost.rpartition(" of ")
    if cost not in names or agent not in agents:
        message = f"there is no cost {budget.cost!r}; the costs of this game are {', '.join(names) or 'none'}"
        raise GameError(f"{message}, or those of one agent, such as '{(*names, 'cost')[0]} of {agents[0]}'.")
    return names.index(cost), agents.index(agent)


def _with_sum(game: LocalGame, constraint: int, budget: Chance) -> LocalGame:
    """Add the constraint Σ P(c > 0) ≤ δ, over steps, resources and agents."""
    name = game.names.constraint(constraint)
    loads = (game.load_costs[constraint] > 0).astype(np.float64)
    own = [None if each.costs is None else (to_floats(each.costs[constraint]) > 0) for each in game.agents]
    over = ["steps"]
    over += ["resources"] if np.count_nonzero(np.any(loads, axis=(0, 2))) > 1 else []
    over += ["agents"] if any(np.any(each) for each in own if each is not None) else []
    listed = " and ".join([", ".join(over[:-1]), over[-1]] if len(over) > 1 else over)
    return _extended(game, loads, own, budget, f"sum over {listed} of P({name} > 0)", like=constraint)


def _extended(
    game: LocalGame, loads: FloatArray, own: Sequence[Any], budget: Chance, name: str, *, like: int
) -> LocalGame:
    """Return a game with one more constraint, its load costs [H or 1, E, n + 1] and own costs [H or 1, S, A] given.

    It binds whom the constraint `like` binds: a limit on a probability holds for those who had one on the mean.
    """
    steps = max(game.load_costs.shape[1], len(loads))
    stretched = [np.broadcast_to(each, (len(each), steps, *each.shape[2:])) for each in (game.load_costs, loads[None])]
    agents = [_paying(agent, each, game.num_constraints) for agent, each in zip(game.agents, own, strict=True)]
    names = [*game.names.all_constraints(game.num_constraints), name]
    binds = None if game.binds is None else np.column_stack([game.binds, np.asarray(game.binds)[:, like]])
    thresholds = [*game.thresholds, budget.probability]
    return game.with_constraints(np.concatenate(stretched), thresholds, names, agents=agents, binds=binds)


def _paying(agent: LocalAgent, more: Any, constraints: int) -> LocalAgent:
    """Return an agent with own costs of one more constraint."""
    if more is None and agent.costs is None:
        return agent
    shape = agent.reward.shape[1:]
    given = np.zeros((constraints, 1, *shape)) if agent.costs is None else to_floats(agent.costs)
    extra = np.zeros((1, *shape)) if more is None else np.asarray(more, dtype=np.float64)
    steps = max(given.shape[1], len(extra))
    parts = [np.broadcast_to(each, (len(each), steps, *shape)) for each in (given, extra[None])]
    return replace(agent, costs=np.concatenate(parts))


def _counted(game: LocalGame, constraint: int, agent: int, budget: Chance) -> LocalGame:
    """Count one agent's own cost in its state, and add the constraint P(c > at_most) ≤ δ."""
    one, name = game.agents[agent], game.names.constraint(constraint)
    states, actions = one.reward.shape[1:]
    table = np.zeros((1, states, actions)) if one.costs is None else to_floats(one.costs[constraint])
    unit, amounts = units_of(table)
    limit = floor(Fraction(budget.at_most) / unit)
    largest = amounts.reshape(len(amounts), -1).max(axis=1)
    most = int(largest.sum() if len(largest) > 1 else largest[0] * game.horizon)
    levels = min(limit, most) + 2
    if levels > MAX_LEVELS:
        raise TooLargeError(
            f"the costs of {name} are multiples of {float(unit):.3g}, and up to {budget.at_most:g} there are "
            f"{levels:,} levels; {MAX_LEVELS:,} are allowed. State the costs in coarser units."
        )
    spent = np.arange(levels)
    cut = np.minimum(amounts, levels - 1).astype(np.int64)
    after = [np.minimum(spent + each[..., None], levels - 1) for each in cut]  # [S, A, levels] at each step
    steps = max(len(one.transition), len(after))
    matrices = tuple(
        augmented_rows(one.transition[min(h, len(one.transition) - 1)], after[min(h, len(after) - 1)], levels)
        for h in range(steps)
    )
    passes = [np.moveaxis((spent <= limit) & (each > limit), 2, 1).reshape(-1, actions) for each in after]
    rows = np.arange(states * actions).reshape(states, 1, actions)
    order = np.broadcast_to(rows, (states, levels, actions)).ravel()
    counted = LocalAgent(
        transition=matrices,
        reward=np.repeat(to_floats(one.reward), levels, axis=1),
        uses=tuple(each[order] for each in one.uses),
        initial=np.kron(to_floats(one.initial), np.eye(levels)[0]),
        costs=None if one.costs is None else np.repeat(to_floats(one.costs), levels, axis=2),
    )
    agents = [*game.agents[:agent], counted, *game.agents[agent + 1 :]]
    own: list[Any] = [None] * game.num_agents
    own[agent] = np.stack(passes).astype(np.float64)
    who = game.names.agent(agent)
    names = [game.names.all_states(i, each.num_states) for i, each in enumerate(game.agents)]
    labels = [f"{float(x * unit):g}" if x < levels - 1 else "over" for x in spent.tolist()]
    names[agent] = tuple(f"{state} | {name} {each}" for state in names[agent] for each in labels)
    loads = np.zeros((1, *game.load_costs.shape[2:]))
    widened = replace(game, agents=tuple(agents), state_names=tuple(names), legend=_kept_legend(game))
    return _extended(widened, loads, own, budget, f"P({name} of {who} > {budget.at_most:g})", like=constraint)


def own_cost_laws(game: LocalGame, policy: JointPolicy) -> tuple[CostLaw, ...]:
    """Return the law of every cost that agents pay by what they do themselves; `cmpg.games.cost_law` is the way in."""
    laws = []
    for j in np.flatnonzero(~game.load_costs.any(axis=(1, 2, 3))).tolist():
        name = game.names.constraint(j)
        tables = {i: to_floats(each.costs[j]) for i, each in enumerate(game.agents) if each.costs is not None}
        # One unit for all, so that sums of several agents are whole numbers, and equal ones are seen to be equal.
        unit, flat = units_of(np.concatenate([np.zeros(1), *(each.ravel() for each in tables.values())]))
        parts = np.split(flat[1:], np.cumsum([each.size for each in tables.values()])[:-1]) if tables else []
        sums: IntArray = np.array([0], dtype=object)
        probabilities: FloatArray = np.ones(1)
        for (i, table), part in zip(tables.items(), parts, strict=True):
            agent, amounts = game.agents[i], part.reshape(table.shape)
            kernel, rows = agent.transition, np.asarray(policy[i])
            steps = (
                (rows[h], amounts[min(h, len(amounts) - 1)], kernel[min(h, len(kernel) - 1)])
                for h in range(game.horizon)
            )
            own, mass = law_of_sums(to_floats(agent.initial), steps, name)
            sums, index = np.unique(sums[:, None] + own[None, :], return_inverse=True)
            if len(sums) > MAX_ATOMS:
                raise TooLargeError(f"{name} has {len(sums):,} different sums; {MAX_ATOMS:,} are allowed.")
            together = np.bincount(index.ravel(), weights=np.outer(probabilities, mass).ravel())
            probabilities = np.asarray(together, dtype=np.float64)
        laws.append(CostLaw(name, np.array([float(each * unit) for each in sums]), probabilities))
    if not laws and game.num_constraints:
        advice = "What resources cost depends on where all agents are: simulate(game, policy, …) measures its law."
        raise UnsupportedError("LocalGame", "has no cost that agents pay by themselves", advice)
    return tuple(laws)


def _kept_legend(game: LocalGame) -> Legend | None:
    """Return the words of a legend that do not depend on what the states are."""
    if game.legend is None:
        return None
    kept = ("agent", "step", "resource", "steps", "actions", "value", "load", "translation", "warning")
    return Legend(**{name: getattr(game.legend, name) for name in kept})


def _only(game: LocalGame, kept: Sequence[int]) -> LocalGame:
    """Return a game with some of its constraints."""
    if len(kept) == game.num_constraints:
        return game
    chosen = list(kept)
    names = game.names.all_constraints(game.num_constraints)
    agents = [each if each.costs is None else replace(each, costs=each.costs[chosen]) for each in game.agents]
    binds = None if game.binds is None else np.asarray(game.binds)[:, chosen]
    return game.with_constraints(
        game.load_costs[chosen], game.thresholds[chosen], [names[j] for j in chosen], agents=agents, binds=binds
    )
