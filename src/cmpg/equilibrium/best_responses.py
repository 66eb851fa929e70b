"""Best responses beside hard budgets, and certificates for policies that come without multipliers.

The price of a budget of which nothing is left may be larger than any float, or than what its rounding leaves of the
proof. What a feasible deviation cannot do is then known from what is possible alone (`cmpg.cmdp.support`): the agent's
CMDP without those actions and without the constraint has the same feasible policies. The multiplier of the constraint
is infinite, which is how a certificate is told to prove it by support.

For a policy that comes without multipliers best responses propose the prices, and the certificate decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.arrays import BoolArray, FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import dual_bound, greedy_policy
from cmpg.cmdp.response import BestResponse, Solver
from cmpg.cmdp.support import Restricted, restricted
from cmpg.equilibrium.ascent import best_response
from cmpg.equilibrium.certificate import Certificate, certify, judge_agent, restriction
from cmpg.errors import InfeasibleError
from cmpg.games.contract import Game, Position, agent_bounds, forbidden, only_binding
from cmpg.policy import JointPolicy

LOWERINGS, LOWERED = 24, 4.0
"""How many times, at most, a multiplier is lowered whose proof is hidden by rounding; and by how much."""


@dataclass(frozen=True, eq=False)
class Within:
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


def within(position: Position, agent: int, spent: BoolArray) -> Within | None:
    """Forbid what the hard ones among some spent budgets [k] forbid; None if none of them is provably hard."""
    found = {j: forbidden(position, agent, j) for j in np.flatnonzero(spent).tolist()}
    known = {j: each for j, each in found.items() if each is not None}
    if not known:
        return None
    hard = np.zeros(len(spent), dtype=bool)
    hard[list(known)] = True
    left = restricted(position.induced_cmdp(agent), list(known.values()), hard)
    return None if left is None else Within(hard, left)


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


def proposed_multipliers(game: Game, policy: JointPolicy) -> FloatArray:
    """Return the prices at which each agent's best response trades: [n, k]; zeros where it has no feasible one."""
    position = game.at(policy)
    prices = np.zeros((game.num_agents, len(game.thresholds)))
    for agent in range(game.num_agents):
        try:
            prices[agent] = best_response(position, agent, Exact()).multipliers
        except InfeasibleError:
            continue  # no deviation is feasible, so any price is as good: the policy itself is not feasible either
    return only_binding(game, prices)


def certify_with_best_responses(game: Game, policy: JointPolicy) -> Certificate:
    """Judge a policy as sharply as possible: the gains are those of exact best responses, up to rounding."""
    return certify(game, policy, proposed_multipliers(game, policy))


def gentler_multipliers(position: Position, multipliers: FloatArray, *, epsilon: float) -> FloatArray:
    """Return multipliers [n, k], lower ones where rounding hides a proof and a lower one proves enough.

    The price at which a response trades can be as large as one over the least probable collision. No smaller price
    proves that the response is best; but one that is far smaller often proves that next to nothing is gained, and has
    next to no rounding in it.

    Parameters
    ----------
    position
        Where everybody stands.
    multipliers : [n, k]
        λ ≥ 0; whoever has an infinite one keeps it.
    epsilon
        Nobody's multipliers are lowered who is known to gain at most half of this.
    """
    finite: BoolArray = np.asarray(np.isfinite(multipliers).all(axis=1))
    best, proved = np.where(finite[:, None], multipliers, 0.0), np.full(len(finite), np.inf)
    trial, open_to_doubt = best, finite.copy()
    for _ in range(LOWERINGS):
        gains = _proved_gains(position, trial, open_to_doubt)
        better = open_to_doubt & (gains < proved)
        best, proved = np.where(better[:, None], trial, best), np.where(better, gains, proved)
        open_to_doubt = np.asarray(better & (proved > epsilon / 2))
        if not open_to_doubt.any():
            break
        trial = np.where(open_to_doubt[:, None], best / LOWERED, best)
    return np.asarray(np.where((proved <= epsilon)[:, None], best, multipliers))


def _proved_gains(position: Position, multipliers: FloatArray, asked: BoolArray) -> FloatArray:
    """Return what agents gain at most as multipliers [n, k] prove it, rounding included: [n]; inf where not asked."""
    judged = agent_bounds(position, multipliers)
    if judged is not None:
        return np.asarray(judged.bounds - judged.values + judged.rounding)
    gains = np.full(len(asked), np.inf)
    for agent in np.flatnonzero(asked).tolist():
        value, bound, rounding = judge_agent(position, agent, multipliers[agent])
        gains[agent] = bound - value + rounding
    return gains
