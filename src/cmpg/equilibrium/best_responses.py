"""Best responses: what the ascent needs of one agent, hard budgets, and certificates without given multipliers.

The price of a budget of which nothing is left may be larger than any float, or than what its rounding leaves of the
proof. What a feasible deviation cannot do is then known from what is possible alone (`cmpg.cmdp.support`): the agent's
CMDP without those actions and without the constraint has the same feasible policies. The multiplier of the constraint
is infinite, by which a certificate proves it by support.

For a policy that comes without multipliers best responses propose the prices, and the certificate decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from cmpg.arrays import BoolArray, FloatArray
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import best_table, dual_bound, greedy_policy, maximise
from cmpg.cmdp.response import BestResponse, Solver, cost_margins
from cmpg.cmdp.support import Restricted, restricted
from cmpg.equilibrium.certificate import Certificate, certify, gain_rounding, judge_agent, restriction
from cmpg.equilibrium.loop import Answer, OnProgress, Rules, take_turns
from cmpg.equilibrium.result import Status
from cmpg.errors import InfeasibleError, SolverError
from cmpg.games.game import (
    AgentBounds,
    DynamicsEnd,
    DynamicsTerms,
    Game,
    Position,
    PositionT,
    agent_bounds,
    best_response_dynamics,
    bounded_together,
    current,
    forbidden,
    only_binding,
)
from cmpg.policy import JointPolicy, compacted

ROUNDING_FACTOR = 8.0
"""Nothing may be left of a budget if no more is left than this times what rounding can hide in its cost."""

MAX_REDUCTIONS, REDUCTION = 24, 4.0
"""How many times, at most, a multiplier is lowered whose proof is hidden by rounding; and by how much."""


@dataclass(frozen=True, eq=False)
class RestrictedCMDP:
    """One agent's CMDP with actions forbidden in place of hard constraints."""

    hard: BoolArray  # [k]
    restricted: Restricted

    def respond(self, solver: Solver, *, rng: np.random.Generator | None = None) -> BestResponse:
        """Return a best response to the other constraints, by what is allowed."""
        found = solver(self.restricted.cmdp, rng=rng)
        costs = np.zeros(len(self.hard))
        costs[~self.hard] = found.costs
        policy = self.restricted.policy(found.policy)
        return BestResponse(policy, found.value, costs, self.multipliers(found.multipliers), found.bound, found.work)

    def multipliers(self, soft: FloatArray) -> FloatArray:
        """Return multipliers of all constraints, infinite for the hard ones: [k]."""
        full = np.full(len(self.hard), np.inf)
        full[~self.hard] = soft
        return full


def restricted_cmdp(position: Position, agent: int, spent: BoolArray) -> RestrictedCMDP | None:
    """Forbid what the hard ones among some spent budgets [k] forbid; None if none of them is provably hard."""
    found = {j: forbidden(position, agent, j) for j in np.flatnonzero(spent).tolist()}
    known = {j: each for j, each in found.items() if each is not None}
    if not known:
        return None
    hard = np.zeros(len(spent), dtype=bool)
    hard[list(known)] = True
    left = restricted(position.induced_cmdp(agent), list(known.values()), hard)
    return None if left is None else RestrictedCMDP(hard, left)


def bound_at(position: Position, agent: int, multipliers: FloatArray) -> float:
    """Return what one agent could get at most by multipliers [k], of which some are infinite."""
    hard = np.isinf(multipliers)
    found = restriction(position, agent, hard)
    return np.inf if found is None else float(dual_bound(found.cmdp, multipliers[~hard]))


def greedy_at(
    position: Position, agent: int, multipliers: FloatArray, *, rng: np.random.Generator | None = None
) -> FloatArray:
    """Return what is best from every state at multipliers [k], of which some may be infinite: [H, S, A]."""
    hard = np.isinf(multipliers)
    found = restriction(position, agent, hard) if hard.any() else None
    if found is None:
        return greedy_policy(position.induced_cmdp(agent), np.where(hard, 0.0, multipliers), rng=rng)
    return found.policy(greedy_policy(found.cmdp, multipliers[~hard], rng=rng))


def best_response(
    position: Position, agent: int, solver: Solver, *, epsilon: float = 0.0, rng: np.random.Generator | None = None
) -> BestResponse:
    """Ask a solver for a best response; where nothing is left of a budget, for the best that it allows.

    Parameters
    ----------
    position, agent
        The current position, and who responds.
    solver, rng
        Finds best responses in CMDPs, and breaks ties.
    epsilon
        What is to be proved: a budget above zero is taken to be hard only if rounding would hide more of it.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example(threshold=0.0)
    >>> position = game.at(JointPolicy(([[[1.0, 0.0]]], [[[0.0, 1.0]]])))
    >>> response = best_response(position, 0, Exact())
    >>> response.policy, response.multipliers
    (array([[[1., 0.]]]), array([inf]))
    """
    spent = np.abs(position.slacks) <= ROUNDING_FACTOR * position.cost_rounding
    unspent = spent & np.asarray(position.costs == 0)
    if unspent.any() and (hard := restricted_cmdp(position, agent, unspent)) is not None:
        return hard.respond(solver, rng=rng)
    cmdp = position.induced_cmdp(agent)
    response = solver(cmdp, rng=rng)
    # What a certificate would have to allow for: rounding of the bound, and of the costs that λ weighs.
    hidden = gain_rounding(cmdp, response.multipliers) + 2 * response.multipliers @ position.cost_rounding
    if spent.any() and hidden > epsilon / 4 and (hard := restricted_cmdp(position, agent, spent)) is not None:
        return hard.respond(solver, rng=rng)
    return response


@dataclass(frozen=True, eq=False)
class _Screened:
    """What some neighbouring agents could get at their last multipliers, at one position."""

    position: Position
    agents: range
    multipliers: FloatArray  # [agents, k]
    judged: AgentBounds


class Responses:
    """Finds a response of one agent, evaluates what the solver returned, and measures its gain: nothing is believed.

    An agent that was solved for before is first bounded at its last multipliers: one backward induction, and an agent
    that gains at most ε/2 is not solved for again. Its current policy is then as good a response as Algorithm 1 needs.
    """

    def __init__(self, solver: Solver, epsilon: float, multipliers: FloatArray | None) -> None:
        self._solver, self._epsilon = solver, epsilon
        self._last = {} if multipliers is None else dict(enumerate(multipliers))  # multipliers by agent
        self._guided = multipliers is not None
        self._screened: _Screened | None = None
        self.failure = ""  # why an agent last had no response
        self.failures = 0
        self.moved_back = False  # whether an agent moved because a budget was overspent, and not for a gain

    def __call__(self, position: Position, agent: int, rng: np.random.Generator | None) -> Answer:
        """Return a response and its gain."""
        over = position.slacks < -ROUNDING_FACTOR * position.cost_rounding
        if over.any() and (current(position, agent).costs > position.induced_cmdp(agent).thresholds).any():
            return self._feasible_again(position, agent, rng)
        bounded = self._bounded_with_neighbours(position, agent)
        return self._solved(position, agent, rng) if bounded is None else bounded

    def multipliers(self, position: Position, agent: int) -> FloatArray:
        """Return multipliers of an agent that was not solved for here: the last ones, or a best response's."""
        known = self._last.get(agent) if self._guided else None
        if known is not None:
            return np.asarray(known)
        try:
            return np.asarray(best_response(position, agent, self._solver, epsilon=self._epsilon).multipliers)
        except (InfeasibleError, SolverError) as problem:
            self.failure = f"agent {agent} has no response: {problem}"
            return np.asarray(self._last.get(agent, np.zeros(len(position.costs))))

    def _feasible_again(self, position: Position, agent: int, rng: np.random.Generator | None) -> Answer:
        """Where others have spent a budget that does not bind them, an agent that it binds moves, whatever it gains."""
        cmdp = position.induced_cmdp(agent)
        try:
            response = self._solver(cmdp, rng=rng)
        except (InfeasibleError, SolverError) as problem:
            return self._unchanged(position, agent, problem)
        self.moved_back = True
        return Answer(response.policy, cmdp.reward_range + self._epsilon, response)

    def _bounded_with_neighbours(self, position: Position, agent: int) -> Answer | None:
        """Bound the gain at the agent's last multipliers, where a position does that for several agents at once.

        The next agents are likely to be queried next: twice as many each time, until an agent moves.
        """
        if not self._has_finite_multipliers(agent):
            return self._bounded_alone(position, agent)
        known = self._screened if self._screened and self._screened.position is position else None
        if known is None or agent not in known.agents:
            stop = bounded_together(position, agent).stop if known is None else agent + 2 * len(known.agents)
            agents = self._with_finite_multipliers(agent, min(stop, len(position.policy)))
            multipliers = np.stack([self._last[i] for i in agents])
            judged = agent_bounds(position, multipliers, agents)
            if judged is None:
                return self._bounded_alone(position, agent)
            known = self._screened = _Screened(position, agents, multipliers, judged)
        index = agent - known.agents.start
        value, bound = float(known.judged.values[index]), float(known.judged.bounds[index])
        # The agent may have been solved for since, and have other multipliers now.
        if not np.array_equal(known.multipliers[index], self._last[agent]):
            return self._bounded_alone(position, agent)
        if bound - value > self._epsilon / 2:
            return None
        table: Any = position.policy.stored[agent]
        response = BestResponse(table, value, np.zeros(0), self._last[agent], bound, 1)
        return Answer(table, max(bound - value, 0.0), response)

    def _with_finite_multipliers(self, agent: int, stop: int) -> range:
        """Return an agent and those after it, up to `stop`, as long as they have finite multipliers."""
        last = agent + 1
        while last < stop and self._has_finite_multipliers(last):
            last += 1
        return range(agent, last)

    def _has_finite_multipliers(self, agent: int) -> bool:
        return agent in self._last and not np.isinf(self._last[agent]).any()

    def _bounded_alone(self, position: Position, agent: int) -> Answer | None:
        """Bound the gain of one agent at its last multipliers; None if it may be more than ε/2."""
        last = self._last.get(agent)
        if last is None:
            return None
        table, now = position.policy[agent], current(position, agent)
        hard = np.isinf(last).any()
        bound = bound_at(position, agent, last) if hard else float(dual_bound(position.induced_cmdp(agent), last))
        if bound - now.value > self._epsilon / 2:
            return None
        response = BestResponse(table, now.value, now.costs, last, bound, 1)
        return Answer(table, max(float(bound - now.value), 0.0), response)

    def _solved(self, position: Position, agent: int, rng: np.random.Generator | None) -> Answer:
        """Solve the agent's CMDP, and evaluate the response."""
        cmdp, now = position.induced_cmdp(agent), current(position, agent)
        try:
            if np.any(np.abs(position.slacks) <= ROUNDING_FACTOR * position.cost_rounding):
                response = best_response(position, agent, self._solver, epsilon=self._epsilon, rng=rng)
            else:
                response = self._solver(cmdp, rng=rng)
            judged = evaluate(cmdp, response.policy)
            self._require_feasible(agent, judged.costs - np.maximum(cmdp.thresholds, now.costs), cost_margins(cmdp))
        except (InfeasibleError, SolverError) as problem:
            return self._unchanged(position, agent, problem)
        self._last[agent] = response.multipliers
        gain = float(judged.value - now.value)
        # A gain that rounding could have made is no reason to move: large rewards would loop on noise.
        noise = gain_rounding(cmdp, np.zeros(cmdp.num_constraints))
        # Answers wait until somebody moves: large tables do so as actions and the rows that mix.
        table: Any = compacted(response.policy)
        response = replace(response, policy=table)
        return Answer(table, gain if gain > noise else min(gain, self._epsilon / 2), response)

    def _unchanged(self, position: Position, agent: int, problem: Exception) -> Answer:
        """Let an agent without a response keep its policy, which is feasible; the certificate says what that proves."""
        self.failure = f"agent {agent} has no response: {problem}"
        self.failures += 1
        table, now = position.policy[agent], current(position, agent)
        last = self._last.get(agent, np.zeros(position.induced_cmdp(agent).num_constraints))
        return Answer(table, 0.0, BestResponse(table, now.value, now.costs, last, np.inf, 0))

    def _require_feasible(self, agent: int, over: FloatArray, margins: FloatArray) -> None:
        if (over > 2 * margins).any():
            raise SolverError(
                f"{type(self._solver).__name__} returned a policy for agent {agent} that exceeds a threshold "
                f"by {over.max():.3g}. Use Exact(), or a solver that returns feasible policies."
            )


def dynamics_at(
    position: PositionT,
    multipliers: FloatArray,
    *,
    on_progress: OnProgress = lambda _: None,
    **terms: Unpack[DynamicsTerms],
) -> tuple[DynamicsEnd[PositionT], Status | None]:
    """Let agents in turn move to what is best for them at common multipliers [k], until no agent gains.

    The game makes all moves by one call if it can; then the status is None, and no step is reported. Otherwise it is
    the status of the loop.
    """
    by_one_call = best_response_dynamics(position, multipliers, **terms)
    if by_one_call is not None:
        return by_one_call, None
    waiting, worth, rng = terms.get("waiting", ()), terms["worth"], terms.get("rng")

    def answer(position: PositionT, agent: int, _: np.random.Generator | None) -> Answer:
        table = position.policy[agent]
        if agent in waiting:
            return Answer(table, 0.0)
        cmdp, now = position.induced_cmdp(agent), current(position, agent)
        best = maximise(cmdp, multipliers)
        gain = best.value - float(now.value - multipliers @ now.costs)
        noise = 4 * cmdp.rounding * float(cmdp.rounding_sizes[0] + multipliers @ cmdp.rounding_sizes[1:])
        if gain <= 0 or gain <= max(noise, worth * cmdp.reward_range):
            return Answer(table, 0.0)
        return Answer(best_table(cmdp, best, multipliers, rng=rng), gain)

    rules = Rules(max_answers=terms["turns"], deadline=terms.get("deadline", np.inf))
    ending = take_turns(position, answer, rules, on_progress=on_progress, traced=False)
    return DynamicsEnd(ending.position, ending.moves), ending.status


def proposed_multipliers(game: Game, policy: JointPolicy) -> FloatArray:
    """Return the prices at which each agent's best response trades: [n, k]; zeros where it has no feasible one.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> policy = JointPolicy(([[[0.0, 1.0]]], [[[0.5, 0.5]]]))
    >>> proposed_multipliers(game, policy)
    array([[0.],
           [2.]])
    """
    prices = np.zeros((game.num_agents, len(game.thresholds)))
    # Overflow gives inf or nan, of which no multipliers can be made; zeros prove what they prove.
    with np.errstate(over="ignore", invalid="ignore"):
        position = game.at(policy)
        for agent in range(game.num_agents):
            try:
                found = best_response(position, agent, Exact()).multipliers
            except (InfeasibleError, SolverError):
                continue  # no deviation is feasible, or floats cannot weigh them
            prices[agent] = np.where(np.isnan(found), 0.0, found)
    return only_binding(game, prices)


def certify_with_best_responses(game: Game, policy: JointPolicy) -> Certificate:
    """Judge a policy as sharply as possible: the gains are those of exact best responses, up to rounding.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> certify_with_best_responses(game, game.uniform_policy()).gains.round(6)
    array([0.25, 0.25])
    """
    return certify(game, policy, proposed_multipliers(game, policy))


def reduced_multipliers(position: Position, multipliers: FloatArray, *, epsilon: float) -> FloatArray:
    """Return multipliers [n, k], lower ones where rounding hides a proof and a lower one proves enough.

    The price at which a response trades can be as large as one over the least probable collision. No smaller price
    proves that the response is best; but one that is far smaller often proves that next to nothing is gained, and has
    next to no rounding in it.

    Parameters
    ----------
    position
        The current position.
    multipliers : [n, k]
        λ ≥ 0; infinite ones are kept.
    epsilon
        The multipliers of an agent are not lowered if it is known to gain at most half of this.
    """
    finite: BoolArray = np.asarray(np.isfinite(multipliers).all(axis=1))
    best, proved = np.where(finite[:, None], multipliers, 0.0), np.full(len(finite), np.inf)
    trial, open_to_doubt = best, finite.copy()
    for _ in range(MAX_REDUCTIONS):
        gains = _proved_gains(position, trial, open_to_doubt)
        better = open_to_doubt & (gains < proved)
        best, proved = np.where(better[:, None], trial, best), np.where(better, gains, proved)
        open_to_doubt = np.asarray(better & (proved > epsilon / 2))
        if not open_to_doubt.any():
            break
        # The bound grows by at most λ·slack, while its rounding falls with λ: geometric steps find the best of both.
        trial = np.where(open_to_doubt[:, None], best / REDUCTION, best)
    return np.asarray(np.where((proved <= epsilon)[:, None], best, multipliers))


def _proved_gains(position: Position, multipliers: FloatArray, queried: BoolArray) -> FloatArray:
    """Return what agents gain at most as multipliers [n, k] prove it, rounding included: [n]; inf if not queried."""
    judged = agent_bounds(position, multipliers)
    if judged is not None:
        return np.asarray(judged.bounds - judged.values + judged.rounding)
    gains = np.full(len(queried), np.inf)
    for agent in np.flatnonzero(queried).tolist():
        value, bound, rounding = judge_agent(position, agent, multipliers[agent])
        gains[agent] = bound - value + rounding
    return gains
