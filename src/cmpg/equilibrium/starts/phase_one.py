"""Phase one: agents in turn move to their greatest slack, until the worst constraint is met.

That descent can stop short of a feasible policy that exists, since no agent may gain alone; other starts are tried, and
small steps by which all agents gain together. If these stop short, too, the answer is "unknown".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import prod

import numpy as np

from cmpg.cmdp.evaluation import evaluate, occupancy, policy_from_occupancy
from cmpg.cmdp.exact import greatest_slack
from cmpg.cmdp.planning import certain_rows, plan
from cmpg.cmdp.response import cost_margins
from cmpg.equilibrium.infeasibility import InfeasibilityProof, prove_infeasible
from cmpg.equilibrium.loop import Answer, Rules, take_turns
from cmpg.equilibrium.result import Status
from cmpg.equilibrium.starts.start import Start, is_feasible, may_be_feasible, worst_slack
from cmpg.errors import SolverError
from cmpg.games.game import (
    Game,
    Objective,
    Position,
    best_response_dynamics,
    current,
    planner,
    tightest_multipliers,
)
from cmpg.policy import JointPolicy
from cmpg.summaries import counted

MAX_PASSES = 100

STRESS = 1e3
"""At high multipliers, the excess of a cost has this many times the range of all rewards as its price."""

MAX_STARTS, FEW_STARTS, SMALL = 24, 3, 1_000_000
"""Random starts of phase one in small games and in others; by agents × entries (step, state, action)."""

SMOOTH_STARTS, SMOOTH_ROUNDS, SMOOTH_SHARES = 4, 60, 65
SMOOTH_FIRST, SMOOTH_GROWTH = 4.0, 1.15
"""Small steps are taken from 4 starts, for 60 rounds, each to one of 65 mixtures; t begins at 4 over the largest
excess, and is multiplied by 1.15 after each round.
"""


def phase_one(game: Game, rng: np.random.Generator | None, deadline: float) -> Start:
    """Let agents in turn move to their greatest slack: from the best simple candidate, then from others."""
    slack, tried = -np.inf, 0
    for policy in _phase_one_starts(game, rng):
        found = _safest_near(game, game.at(policy), rng, deadline)
        if found.policy is not None:
            return found
        slack, tried = max(slack, found.slack), tried + 1
        if tried == 1 and (proof := _proof_by_prices(game)) is not None:
            return Start(None, slack, proof, "prices that no policy can meet")
        if time.monotonic() > deadline:
            break
    if len(game.thresholds) > 1 and game.num_agents > 1 and _work(game) <= SMALL:
        for policy in islice(_phase_one_starts(game, rng), SMOOTH_STARTS):
            found = _safest_near(game, _in_small_steps(game.at(policy), deadline), rng, deadline)
            if found.policy is not None:
                return replace(found, found_by="phase one: agents in small steps lower all that is spent too much")
            slack = max(slack, found.slack)
    return Start(None, slack, None, f"phase one ended without a feasible policy, from {counted(tried, 'start')}")


def _proof_by_prices(game: Game) -> InfeasibilityProof | None:
    """Look for multipliers by which agents who plan alone pay too much, where the game can bound that."""
    multipliers = tightest_multipliers(game)
    proof = None if multipliers is None else prove_infeasible(game, multipliers)
    return proof if proof is not None and proof.holds else None


def _phase_one_starts(game: Game, rng: np.random.Generator | None) -> Iterator[JointPolicy]:
    """The best simple candidate; the planner's, split; then agents who do different things, at random.

    Simple candidates are alike for all agents, and where agents must differ (exactly one at a desk) no agent gains by
    deviating from them.
    """
    yield _best_candidate(game).policy
    central = planner(game, Objective.WELFARE)
    if central is not None and central.marginals is not None:
        yield central.marginals(greatest_slack(central.cmdp, rng=rng).policy)
    draws, shapes = np.random.default_rng(0) if rng is None else rng, game.policy_shapes
    for attempt in range(MAX_STARTS if _work(game) <= SMALL else FEW_STARTS):
        if attempt % 2:
            yield JointPolicy.random(shapes, rng=draws)
            continue
        chosen = [np.full(shape[:2], draws.integers(shape[2])) for shape in shapes]
        yield JointPolicy(tuple(certain_rows(each, shape[2]) for each, shape in zip(chosen, shapes, strict=True))).mix(
            JointPolicy.uniform(shapes), 0.1
        )


def _work(game: Game) -> int:
    return game.num_agents * sum(prod(shape) for shape in game.policy_shapes)


def _in_small_steps(position: Position, deadline: float) -> Position:
    """Let agents in turn lower a smooth maximum of the excesses, log Σ_j exp(t·(V^{c_j} − α_j)), whose t grows.

    With several constraints the worst excess has corners: what lowers one raises another, so that no agent alone gains,
    although all would together. The smooth maximum has none. Each agent plans by its gradient, and goes so far towards
    that plan as is best: along a mixture of occupancies costs are linear.
    """
    shares = np.linspace(0.0, 1.0, SMOOTH_SHARES)
    sharpness = SMOOTH_FIRST / max(float(np.abs(position.slacks).max()), 1e-300)
    for _ in range(SMOOTH_ROUNDS):
        for agent in range(len(position.policy)):
            if is_feasible(position) or time.monotonic() > deadline:
                return position
            excess = -position.slacks
            weights = np.exp(sharpness * (excess - excess.max()))  # the gradient's direction; the shift avoids overflow
            cmdp, spent = position.induced_cmdp(agent), current(position, agent).costs
            table = plan(cmdp, weights / weights.sum(), reward_weight=0.0).policy(cmdp.num_actions)
            change = evaluate(cmdp, table).costs - spent
            ahead = sharpness * (excess[:, None] + change[:, None] * shares)
            # log Σ exp, with its largest term taken out
            smooth = ahead.max(axis=0) + np.log(np.exp(ahead - ahead.max(axis=0)).sum(axis=0))
            share = shares[int(smooth.argmin())]
            if share > 0:
                own = occupancy(cmdp, position.policy[agent])
                mixed = (1 - share) * own + share * occupancy(cmdp, table)
                position = position.replace(agent, policy_from_occupancy(mixed, table))
        sharpness *= SMOOTH_GROWTH
    return position


def _safest_near(game: Game, position: Position, rng: np.random.Generator | None, deadline: float) -> Start:
    """Let agents in turn move to their greatest slack, until the thresholds are met or no agent gains."""
    found_by = "phase one: agents in turn lower the worst cost"
    position = _at_high_multipliers(game, position, rng, deadline)
    rules = Rules(max_answers=len(position.policy), deadline=deadline)
    for _ in range(MAX_PASSES):
        if is_feasible(position):
            return Start(position.policy, worst_slack(position), None, found_by)
        before = worst_slack(position)
        ending = take_turns(position, lambda position, agent, _: _safer(position, agent, rng), rules, traced=False)
        position = ending.position
        if ending.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if worst_slack(position) <= before + 1e-12 * abs(before):
            break
    if may_be_feasible(position):
        return Start(position.policy, worst_slack(position), None, found_by)
    return Start(None, worst_slack(position), None, "phase one ended without a feasible policy")


def _at_high_multipliers(game: Game, position: Position, rng: np.random.Generator | None, deadline: float) -> Position:
    """Let agents in turn respond to multipliers so high that costs alone matter, where a game does that in one call.

    For n agents with rewards of the same range, to lower a cost by 1/(STRESS·n) of its excess is worth the whole range,
    and less is not worth a move. The turns of single agents go on from where this ends, if that is better.
    """
    excess, total_range = -position.slacks, float(np.sum(game.reward_ranges))
    over = excess > 0
    if not over.any() or not 0 < total_range < np.inf:
        return position
    with np.errstate(over="ignore"):  # an excess next to nothing needs no pressure
        multipliers = np.where(over, STRESS * total_range / np.where(over, excess, 1.0), 0.0)
    if not np.isfinite(multipliers).all():
        return position
    turns = MAX_PASSES * game.num_agents
    done = best_response_dynamics(position, multipliers, turns=turns, worth=1.0, rng=rng, deadline=deadline)
    return position if done is None or worst_slack(done.position) <= worst_slack(position) else done.position


def _best_candidate(game: Game) -> Position:
    """Return the simple policy of greatest slack, or the first feasible one that spends nothing."""
    positions: list[Position] = []
    for policy in _candidates(game):
        positions.append(game.at(policy))
        if not np.any(positions[-1].costs) and is_feasible(positions[-1]):
            return positions[-1]
    return max(positions, key=worst_slack)


def _candidates(game: Game) -> Iterator[JointPolicy]:
    """All agents play action 0 always (often: wait), action 1 always, …; all agents mix evenly."""
    shapes = game.policy_shapes
    for action in range(max(actions for _, _, actions in shapes)):
        chosen = {shape: certain_rows(np.full(shape[:2], min(action, shape[2] - 1)), shape[2]) for shape in set(shapes)}
        yield JointPolicy(tuple(chosen[shape] for shape in shapes))
    yield JointPolicy.uniform(shapes)


def _safer(position: Position, agent: int, rng: np.random.Generator | None) -> Answer:
    """Return the response of greatest slack; what it gains is slack, if that is more than rounding."""
    cmdp = position.induced_cmdp(agent)
    try:
        if cmdp.num_constraints == 1:
            table = plan(cmdp, np.ones(1), reward_weight=0.0, rng=rng).policy(cmdp.num_actions)
        else:
            table = greatest_slack(cmdp, rng=rng).policy
    except SolverError:  # an agent without a response keeps its policy
        return Answer(position.policy[agent], 0.0)
    moved = position.replace(agent, table)
    gain = worst_slack(moved) - worst_slack(position)
    return Answer(table, gain if gain > float(cost_margins(cmdp).max()) else 0.0, moved=moved)
