"""Feasible starts, the strictly feasible ones where they exist.

One constraint (the paper's Example 1): a planner who chooses all actions has a deterministic policy of least cost; it
splits into one policy per agent. If even that cost exceeds α, the game is infeasible, and the weight λ = 1 proves it.

Several constraints: the planner's greatest common slack, by column generation. Negative: infeasible, with proof.
Otherwise one of its deterministic columns may do; if none does, phase one: agents in turn move to their own greatest
slack, until the worst constraint is met. That descent can stop short of a feasible policy that exists, since nobody may
gain alone; other starts are tried, and small steps by which all agents gain together. If these stop short, too, the
answer is "unknown".

Forms without a planner (local games) start from simple candidates and phase one. The paper's Example 2, agents who
share nothing but sums of private costs, is one block LP (`cmpg.cmdp.linear_program.independent_slack`): its own
recipe, agent by agent, is wrong for two constraints or more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, occupancy, policy_from_occupancy
from cmpg.cmdp.exact import greatest_slack
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import certain_rows, plan
from cmpg.cmdp.response import cost_margins
from cmpg.equilibrium.loop import Answer, OnProgress, Rules, take_turns
from cmpg.equilibrium.result import Status, Step
from cmpg.errors import SolverError
from cmpg.faces import counted, fields_line
from cmpg.games.contract import (
    Bounded,
    CentralPlanner,
    ExactCosts,
    Game,
    IndependentAgents,
    Objective,
    PlansFor,
    Position,
    UpperBound,
)
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.equilibrium.infeasibility import InfeasibilityProof

MAX_PASSES = 100

MOST_STARTS, FEW_STARTS, SMALL = 24, 3, 1_000_000
"""Random starts of phase one in small games and in others; by agents × entries (step, state, action)."""

SMOOTH_STARTS, SMOOTH_ROUNDS, SMOOTH_SHARES = 4, 60, 65
SMOOTH_FIRST, SMOOTH_GROWTH = 4.0, 1.15
"""From so many starts small steps are taken, so many rounds of them, each to one of so many mixtures; t begins at so
much over the largest excess, and is multiplied by so much after each round.
"""


@dataclass(frozen=True, eq=False)
class Start:
    """A feasible policy, or a proof that there is none, or neither."""

    policy: JointPolicy | None
    slack: float  # min_j (α_j − V^{c_j}) of the policy, or of the best one seen
    proof: InfeasibilityProof | None
    found_by: str
    multipliers: FloatArray | None = None  # [k]: common to all agents, where the search found some
    trace: tuple[Step, ...] = ()  # rounds of the search
    begin: JointPolicy | None = None  # where the search began, if it did not begin here
    interrupted: bool = False  # by the user, before the search was over
    bound: UpperBound | None = None  # what no feasible policy exceeds, where the search has proved it on its way
    objective: Objective | None = None  # what the bound bounds

    __repr__ = fields_line

    @property
    def seconds(self) -> float:
        """How long the search took, as far as its trace tells."""
        return self.trace[-1].seconds if self.trace else 0.0

    @property
    def moves(self) -> int:
        """How many moves the search made."""
        return sum(step.moves for step in self.trace)


class StartMethod(Protocol):
    """Finds where the ascent begins."""

    def __call__(
        self,
        game: Game,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        on_progress: OnProgress = lambda _: None,
    ) -> Start:
        """Return a feasible policy; `begin` is one that is known already."""


@dataclass(frozen=True)
class Cheapest:
    """Begin where the constraints cost least: the planner's cheapest policy, or what phase one finds.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> Cheapest()(grid_world_local()).slack > 0
    True
    """

    def __call__(
        self,
        game: Game,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        on_progress: OnProgress = lambda _: None,  # noqa: ARG002
    ) -> Start:
        """Return `begin`, or seek a feasible policy."""
        if begin is not None:
            return Start(begin, np.nan, None, "given")
        return feasible_start(game, rng=rng, deadline=deadline)


def feasible_start(game: Game, *, rng: np.random.Generator | None = None, deadline: float = np.inf) -> Start:
    """Find a feasible joint policy, with as much slack as the method gives.

    Parameters
    ----------
    game
        Any game.
    rng
        Breaks ties at random.
    deadline
        On the clock of time.monotonic: then phase one ends where it is.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> found = feasible_start(counter_example())
    >>> found.found_by, found.slack
    ('a policy of the central planner', 0.5)
    >>> feasible_start(counter_example(threshold=-1.0)).proof.holds
    True
    """
    if len(game.thresholds) == 0:
        return Start(JointPolicy.uniform(game.policy_shapes), np.inf, None, "no constraint: everybody mixes evenly")
    if isinstance(game, CentralPlanner):
        planned = _planned_start(game, rng)
        if planned.policy is not None or planned.proof is not None:
            return planned
    if isinstance(game, IndependentAgents) and (alone := game.private_cmdps()) is not None:
        return _block_start(game, alone)
    return _phase_one(game, rng, deadline)


def _planned_start(game: Game, rng: np.random.Generator | None) -> Start:
    """Ask the central planner: a deterministic policy that is feasible, or weights that prove that there is none."""
    from cmpg.equilibrium.infeasibility import least_spending, prove_infeasible

    assert isinstance(game, CentralPlanner)
    if len(game.thresholds) == 1:
        least = least_spending(game, np.ones(1))
        policy, proof = least.policy, least.proof
        assert policy is not None
    else:
        widest = greatest_slack(game.joint_cmdp(), rng=rng)
        proof = prove_infeasible(game, widest.multipliers)
        policy = max((game.split(each.actions) for each in widest.plans), key=lambda each: worst_slack(game.at(each)))
    if proof.holds:
        return Start(None, float(proof.limit - proof.least_cost), proof, "weights that no policy can meet")
    position = game.at(policy)
    # With one constraint nothing costs less, so what is left to say is a matter of rounding.
    feasible = is_feasible(position) or (len(game.thresholds) == 1 and may_be_feasible(position))
    return Start(policy if feasible else None, worst_slack(position), None, "a policy of the central planner")


def _block_start(game: Game, alone: tuple[CMDP, ...]) -> Start:
    """Example 2, corrected: one linear program over all agents' occupancies finds the greatest common slack."""
    from cmpg.cmdp.linear_program import independent_slack  # heavy: it brings HiGHS
    from cmpg.equilibrium.infeasibility import prove_infeasible

    widest = independent_slack(alone, game.thresholds)
    found_by = "a block LP over the agents' occupancies"
    proof = prove_infeasible(game, widest.multipliers)
    if proof.holds:
        return Start(None, widest.slack, proof, found_by)
    position = game.at(JointPolicy(widest.policies))
    return Start(position.policy if may_be_feasible(position) else None, widest.slack, None, found_by)


def worst_slack(position: Position) -> float:
    """Return min_j (α_j − V^{c_j})."""
    return float(np.min(position.slacks, initial=np.inf))


def is_feasible(position: Position) -> bool:
    """Whether the thresholds are met with room for rounding."""
    return bool(np.all(position.slacks >= position.cost_rounding))


def is_surely_feasible(game: Game, policy: JointPolicy) -> bool:
    """Whether the thresholds are met: with room for rounding, or exactly, where little enough can happen."""
    position = game.at(policy)
    if is_feasible(position):
        return True
    if not may_be_feasible(position) or not isinstance(position, ExactCosts):
        return False
    costs = position.exact_costs(policy)
    return costs is not None and all(
        most <= Fraction(limit) for (_, most), limit in zip(costs, game.thresholds, strict=True)
    )


def may_be_feasible(position: Position) -> bool:
    """Whether the thresholds are met as far as floating point can tell; for policies that leave no room for more."""
    return bool(np.all(position.slacks >= -position.cost_rounding))


def _phase_one(game: Game, rng: np.random.Generator | None, deadline: float) -> Start:
    """Let agents in turn move to their greatest slack: from the best simple candidate, then from others."""
    slack, tried = -np.inf, 0
    for policy in _phase_one_starts(game, rng):
        found = _safest_near(game.at(policy), rng, deadline)
        if found.policy is not None:
            return found
        slack, tried = max(slack, found.slack), tried + 1
        if tried == 1 and (proof := _proof_by_prices(game)) is not None:
            return Start(None, slack, proof, "prices that no policy can meet")
        if time.monotonic() > deadline:
            break
    if len(game.thresholds) > 1 and game.num_agents > 1 and _work(game) <= SMALL:
        for policy in islice(_phase_one_starts(game, rng), SMOOTH_STARTS):
            found = _safest_near(_in_small_steps(game.at(policy), deadline), rng, deadline)
            if found.policy is not None:
                return replace(found, found_by="phase one: agents in small steps lower all that is spent too much")
            slack = max(slack, found.slack)
    return Start(None, slack, None, f"phase one ended without a feasible policy, from {counted(tried, 'start')}")


def _proof_by_prices(game: Game) -> InfeasibilityProof | None:
    """Look for multipliers by which agents who plan alone pay too much, where the game can bound that."""
    from cmpg.equilibrium.infeasibility import prove_infeasible

    if not isinstance(game, Bounded) or isinstance(game, CentralPlanner):
        return None
    proof = prove_infeasible(game, game.scarcest())
    return proof if proof.holds else None


def _phase_one_starts(game: Game, rng: np.random.Generator | None) -> Iterator[JointPolicy]:
    """The best simple candidate; the planner's, split; then agents who do different things, at random.

    Simple candidates are alike for all agents, and where agents must differ (exactly one at a desk) nobody gains by
    leaving them.
    """
    yield _best_candidate(game).policy
    planner = game.planner(Objective.WELFARE) if isinstance(game, PlansFor) else None
    if planner is not None and planner.marginals is not None:
        yield planner.marginals(greatest_slack(planner.cmdp, rng=rng).policy)
    draws, shapes = np.random.default_rng(0) if rng is None else rng, game.policy_shapes
    for attempt in range(MOST_STARTS if _work(game) <= SMALL else FEW_STARTS):
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

    With several constraints the worst excess has corners: what lowers one raises another, so that nobody alone gains,
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
            weights = np.exp(sharpness * (excess - excess.max()))
            cmdp, present = position.induced_cmdp(agent), position.present(agent).costs
            table = plan(cmdp, weights / weights.sum(), reward_weight=0.0).policy(cmdp.num_actions)
            change = evaluate(cmdp, table).costs - present
            ahead = sharpness * (excess[:, None] + change[:, None] * shares)
            smooth = ahead.max(axis=0) + np.log(np.exp(ahead - ahead.max(axis=0)).sum(axis=0))
            share = shares[int(smooth.argmin())]
            if share > 0:
                own = occupancy(cmdp, position.policy[agent])
                mixed = (1 - share) * own + share * occupancy(cmdp, table)
                position = position.replace(agent, policy_from_occupancy(mixed, table))
        sharpness *= SMOOTH_GROWTH
    return position


def _safest_near(position: Position, rng: np.random.Generator | None, deadline: float) -> Start:
    """Let agents in turn move to their greatest slack, until the thresholds are met or nobody gains."""
    found_by = "phase one: agents in turn lower the worst cost"
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


def _best_candidate(game: Game) -> Position:
    """Return the simple policy of greatest slack, or the first feasible one that spends nothing."""
    positions: list[Position] = []
    for policy in _candidates(game):
        positions.append(game.at(policy))
        if not np.any(positions[-1].costs) and is_feasible(positions[-1]):
            return positions[-1]
    return max(positions, key=worst_slack)


def _candidates(game: Game) -> Iterator[JointPolicy]:
    """Everybody plays action 0 always (often: wait), action 1 always, …; everybody mixes evenly."""
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


def random_start(game: Game, safe: JointPolicy, *, rng: np.random.Generator) -> JointPolicy:
    """Return a random feasible policy: a random one, moved towards a safe one until it is feasible."""
    wild = JointPolicy.random(game.policy_shapes, rng=rng)
    for weight in (1.0, 0.5, 0.25, 0.1, 0.03, 0.01):
        mixed = safe.mix(wild, weight) if weight < 1 else wild
        if is_feasible(game.at(mixed)):
            return mixed
    return safe
