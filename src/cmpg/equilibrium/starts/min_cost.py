"""A start of least cost, strictly feasible where that exists.

One constraint (the paper's Example 1): a planner that chooses all actions has a deterministic policy of least cost; it
splits into one policy per agent. If even that cost exceeds α, the game is infeasible, and the weight λ = 1 proves it.

Several constraints: the planner's greatest common slack, by column generation. Negative: infeasible, with proof.
Otherwise one of its deterministic columns may do; if none does, phase one begins.

Forms without a planner (local games) begin with phase one. The paper's Example 2, agents that share nothing but sums of
private costs, is one block LP (`cmpg.cmdp.linear_program.independent_slack`): its own recipe, agent by agent, is wrong
for two constraints or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.cmdp.exact import greatest_slack
from cmpg.cmdp.linear_program import independent_slack
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.infeasibility import least_spending, prove_infeasible
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.starts.phase_one import phase_one
from cmpg.equilibrium.starts.start import Start, is_feasible, may_be_feasible, worst_slack
from cmpg.errors import UnsupportedError
from cmpg.games.game import Game, Planner, check_is_game, planner, private_cmdps
from cmpg.policy import JointPolicy


@dataclass(frozen=True)
class MinCostStart:
    """Begin where the constraints cost least: the planner's cheapest policy, or what phase one finds.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> MinCostStart()(grid_world_local()).slack > 0
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
    check_is_game(game)
    if len(game.thresholds) == 0:
        return Start(JointPolicy.uniform(game.policy_shapes), np.inf, None, "no constraint: all agents mix evenly")
    if (below := _below_zero(game)) is not None:
        return below
    central = planner(game, None)
    if central is not None:
        planned = _planned_start(game, central, rng)
        if planned.policy is not None or planned.proof is not None:
            return planned
    if (alone := private_cmdps(game)) is not None:
        return _block_start(game, alone)
    return phase_one(game, rng, deadline)


def _below_zero(game: Game) -> Start | None:
    """Return a proof that a single negative threshold is below all costs: no search is that fine next to zero."""
    for j in np.flatnonzero(np.asarray(game.thresholds) < 0):
        try:
            proof = prove_infeasible(game, np.arange(len(game.thresholds)) == j)
        except UnsupportedError:
            return None
        if proof.holds:
            return Start(None, float(proof.limit - proof.least_cost), proof, "a threshold that is below all costs")
    return None


def _planned_start(game: Game, central: Planner, rng: np.random.Generator | None) -> Start:
    """Ask the central planner: a deterministic policy that is feasible, or weights that prove that there is none."""
    if len(game.thresholds) == 1:
        least = least_spending(game, np.ones(1))
        policy, proof = least.policy, least.proof
        assert policy is not None
    else:
        widest = greatest_slack(central.cmdp, rng=rng)
        proof = prove_infeasible(game, widest.multipliers)
        policy = max(
            (central.split(each.actions) for each in widest.plans), key=lambda each: worst_slack(game.at(each))
        )
    if proof.holds:
        return Start(None, float(proof.limit - proof.least_cost), proof, "weights that no policy can meet")
    position = game.at(policy)
    # With one constraint nothing costs less, so what is left to say is a matter of rounding.
    feasible = is_feasible(position) or (len(game.thresholds) == 1 and may_be_feasible(position))
    return Start(policy if feasible else None, worst_slack(position), None, "a policy of the central planner")


def _block_start(game: Game, alone: tuple[CMDP, ...]) -> Start:
    """Example 2, corrected: one linear program over all agents' occupancies finds the greatest common slack."""
    widest = independent_slack(alone, game.thresholds)
    found_by = "a block LP over the agents' occupancies"
    proof = prove_infeasible(game, widest.multipliers)
    if proof.holds:
        return Start(None, widest.slack, proof, found_by)
    position = game.at(JointPolicy(widest.policies))
    return Start(position.policy if may_be_feasible(position) else None, widest.slack, None, found_by)
