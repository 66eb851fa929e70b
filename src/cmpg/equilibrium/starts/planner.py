"""A start from the plan of one planner that chooses all actions, split among the agents."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.evaluation import evaluate, occupancy
from cmpg.cmdp.exact import Exact, proved_bound
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import certain_rows, plan
from cmpg.cmdp.response import BestResponse
from cmpg.equilibrium.loop import OnProgress
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.equilibrium.starts.start import Start, is_surely_feasible, moved_inside, worst_slack
from cmpg.errors import InfeasibleError, SolverError
from cmpg.games.game import Game, Objective, Planner, UpperBound, planner
from cmpg.policy import JointPolicy


@dataclass(frozen=True)
class PlannerStart:
    """Begin from what one planner who chooses all actions would do, split among the agents and made feasible.

    The planner's best policy mixes a few deterministic ones, and mixing agents cannot correlate: where its split is not
    feasible, it is moved towards one that is. Of that and the best deterministic plan the better one is taken. A game
    without a planner begins as `MinCostStart` does.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world
    >>> found = PlannerStart()(grid_world())
    >>> found.found_by, round(found.bound.value, 6)
    ('the plan of a planner who chooses all actions', 46.2)
    """

    objective: Objective = Objective.WELFARE

    def __repr__(self) -> str:
        """Return what it is called in settings and tables."""
        return f"PlannerStart({self.objective.value})"

    def __call__(
        self,
        game: Game,
        begin: JointPolicy | None = None,
        *,
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        on_progress: OnProgress = lambda _: None,  # noqa: ARG002
    ) -> Start:
        """Return `begin`, or the planner's policy."""
        if begin is not None:
            return Start(begin, np.nan, None, "given")
        central = planner(game, self.objective)
        try:
            best = None if central is None else Exact()(central.cmdp, rng=rng)
        except (InfeasibleError, SolverError):
            best = None
        policy = None if central is None or best is None else self._best_split(game, central, best, rng, deadline)
        if central is None or best is None or policy is None:
            return feasible_start(game, rng=rng, deadline=deadline)  # which has a proof, or another way
        bound = UpperBound(proved_bound(central.cmdp, best.multipliers), best.multipliers, central.description)
        found_by = f"the plan of {central.description}"
        return Start(policy, worst_slack(game.at(policy)), None, found_by, bound=bound, objective=self.objective)

    def _best_split(
        self, game: Game, planner: Planner, best: BestResponse, rng: np.random.Generator | None, deadline: float
    ) -> JointPolicy | None:
        """Return the better of the best plan and the planner's own mixture, as far as they are feasible."""
        certain = planner.split(_rounded_plan(planner.cmdp, best.multipliers, rng))
        mixed = certain if planner.marginals is None else planner.marginals(best.policy)
        found = [policy for policy in (certain, mixed) if is_surely_feasible(game, policy)]
        if mixed is not certain and not any(policy is mixed for policy in found):
            safe = certain if found else feasible_start(game, rng=rng, deadline=deadline).policy
            if safe is not None:
                found = [safe, moved_inside(game, safe, mixed)]
        if len(found) < 2 or found[0].fingerprint() == found[1].fingerprint():
            return found[0] if found else None
        if self.objective is Objective.WELFARE:
            return max(found, key=lambda policy: float(game.at(policy).values.sum()))
        return max(found, key=game.potential)


def _rounded_plan(cmdp: CMDP, multipliers: FloatArray, rng: np.random.Generator | None) -> IntArray:
    """Return a deterministic plan [H, S] that spends as much as it may, among those that are best at multipliers [k].

    At the planner's own multipliers a cheap and an expensive plan are equally good, and so is every plan that does in
    each state what one of the two does; state by state, the expensive action is taken while the thresholds are kept.
    """
    best = plan(cmdp, multipliers, rng=rng)
    if not multipliers.any():
        return best.actions
    # Rounding may hide that both are equally good, and choose the expensive one.
    fits = np.all(best.costs <= cmdp.thresholds)
    cheap = best.actions if fits else plan(cmdp, multipliers * (1 + BESIDE), rng=rng).actions
    if prod(cmdp.policy_shape) > LARGEST_ROUNDED:
        return cheap
    expensive = plan(cmdp, multipliers * (1 - BESIDE), rng=rng).actions
    visits = occupancy(cmdp, certain_rows(expensive, cmdp.num_actions)).sum(axis=-1)
    rows = np.argwhere((cheap != expensive) & (visits > 0))
    for step, state in rows[np.argsort(-visits[tuple(rows.T)], kind="stable")][:MAX_ROUNDED]:
        trial = cheap.copy()
        trial[step, state] = expensive[step, state]
        if np.all(evaluate(cmdp, certain_rows(trial, cmdp.num_actions)).costs <= cmdp.thresholds):
            cheap = trial
    return cheap


BESIDE = 1e-7
"""By this share of the multipliers more, or less, only the cheap one is best, or the expensive one."""

MAX_ROUNDED, LARGEST_ROUNDED = 24, 2_000_000
"""States in which a plan is rounded, at most, and the largest table (step, state, joint action) of which it is."""
