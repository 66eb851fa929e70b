"""Many agents: the loop, its starts, Algorithm 1, certificates and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.equilibrium.ascent import Ascent as Ascent
    from cmpg.equilibrium.ascent import coordinate_ascent as coordinate_ascent
    from cmpg.equilibrium.ascent import theorem_1_bound as theorem_1_bound
    from cmpg.equilibrium.best_responses import certify_with_best_responses as certify_with_best_responses
    from cmpg.equilibrium.best_responses import proposed_multipliers as proposed_multipliers
    from cmpg.equilibrium.certificate import Certificate as Certificate
    from cmpg.equilibrium.certificate import Feasibility as Feasibility
    from cmpg.equilibrium.certificate import certify as certify
    from cmpg.equilibrium.crowds.certificate import CrowdCertificate as CrowdCertificate
    from cmpg.equilibrium.crowds.certificate import certify_crowd as certify_crowd
    from cmpg.equilibrium.crowds.solve import CrowdResult as CrowdResult
    from cmpg.equilibrium.crowds.solve import solve_crowd as solve_crowd
    from cmpg.equilibrium.infeasibility import InfeasibilityProof as InfeasibilityProof
    from cmpg.equilibrium.infeasibility import prove_infeasible as prove_infeasible
    from cmpg.equilibrium.loop import Answer as Answer
    from cmpg.equilibrium.loop import Ending as Ending
    from cmpg.equilibrium.loop import GreatestGain as GreatestGain
    from cmpg.equilibrium.loop import OnProgress as OnProgress
    from cmpg.equilibrium.loop import RoundRobin as RoundRobin
    from cmpg.equilibrium.loop import Rules as Rules
    from cmpg.equilibrium.loop import Schedule as Schedule
    from cmpg.equilibrium.loop import take_turns as take_turns
    from cmpg.equilibrium.quality import OptimalityGap as OptimalityGap
    from cmpg.equilibrium.recommendations.recommend import Recommendation as Recommendation
    from cmpg.equilibrium.recommendations.recommend import recommend as recommend
    from cmpg.equilibrium.result import Attempt as Attempt
    from cmpg.equilibrium.result import Incumbent as Incumbent
    from cmpg.equilibrium.result import Result as Result
    from cmpg.equilibrium.result import Status as Status
    from cmpg.equilibrium.result import Step as Step
    from cmpg.equilibrium.runs import Restarts as Restarts
    from cmpg.equilibrium.runs import by_potential as by_potential
    from cmpg.equilibrium.runs import by_welfare as by_welfare
    from cmpg.equilibrium.solve import solve as solve
    from cmpg.equilibrium.starts.common_price import CommonPrice as CommonPrice
    from cmpg.equilibrium.starts.common_price import WarmStart as WarmStart
    from cmpg.equilibrium.starts.min_cost import MinCostStart as MinCostStart
    from cmpg.equilibrium.starts.min_cost import feasible_start as feasible_start
    from cmpg.equilibrium.starts.pairs import PairMoves as PairMoves
    from cmpg.equilibrium.starts.planner import PlannerStart as PlannerStart
    from cmpg.equilibrium.starts.start import Start as Start
    from cmpg.equilibrium.starts.start import StartMethod as StartMethod
    from cmpg.equilibrium.starts.start import random_start as random_start

__all__, __getattr__, __dir__ = lazy_exports(__name__)
