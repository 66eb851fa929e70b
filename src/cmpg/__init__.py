"""Nash policies of constrained Markov potential games, with a certificate behind every answer.

>>> import cmpg
>>> result = cmpg.solve(cmpg.scenarios.counter_example())
>>> result.status.name
'CERTIFIED'
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg import comparison as comparison
    from cmpg import duality as duality
    from cmpg import equilibrium as equilibrium
    from cmpg import games as games
    from cmpg import interop as interop
    from cmpg import judging as judging
    from cmpg import learning as learning
    from cmpg import operation as operation
    from cmpg import paper as paper
    from cmpg import plugins as plugins
    from cmpg import runs as runs
    from cmpg import scenarios as scenarios
    from cmpg import simulation as simulation
    from cmpg import suite as suite
    from cmpg import sweeps as sweeps
    from cmpg.citation import cite as cite
    from cmpg.cmdp.exact import Exact as Exact
    from cmpg.cmdp.linear_program import LinearProgram as LinearProgram
    from cmpg.cmdp.model import CMDP as CMDP
    from cmpg.cmdp.primal_dual import PrimalDual as PrimalDual
    from cmpg.equilibrium.ascent import Ascent as Ascent
    from cmpg.equilibrium.ascent import coordinate_ascent as coordinate_ascent
    from cmpg.equilibrium.certificate import Certificate as Certificate
    from cmpg.equilibrium.certificate import Feasibility as Feasibility
    from cmpg.equilibrium.certificate import certify as certify
    from cmpg.equilibrium.loop import GreatestGain as GreatestGain
    from cmpg.equilibrium.quality import quality as quality
    from cmpg.equilibrium.recommendations.recommend import recommend as recommend
    from cmpg.equilibrium.result import Result as Result
    from cmpg.equilibrium.result import Status as Status
    from cmpg.equilibrium.runs import Restarts as Restarts
    from cmpg.equilibrium.solve import solve as solve
    from cmpg.equilibrium.starts.common_price import CommonPrice as CommonPrice
    from cmpg.equilibrium.starts.min_cost import MinCostStart as MinCostStart
    from cmpg.equilibrium.starts.min_cost import feasible_start as feasible_start
    from cmpg.errors import CMPGError as CMPGError
    from cmpg.errors import FileError as FileError
    from cmpg.errors import GameError as GameError
    from cmpg.errors import InfeasibleError as InfeasibleError
    from cmpg.errors import PolicyError as PolicyError
    from cmpg.errors import SolverError as SolverError
    from cmpg.files.devices import load_device as load_device
    from cmpg.files.devices import load_recommendation as load_recommendation
    from cmpg.files.games import load_game as load_game
    from cmpg.files.games import save_game as save_game
    from cmpg.files.policies import load_policy as load_policy
    from cmpg.files.policy_tables import read_policy as read_policy
    from cmpg.files.run_folder import load_run as load_run
    from cmpg.games.check import check_game as check_game
    from cmpg.games.counting.game import CountingGame as CountingGame
    from cmpg.games.crowd.game import CrowdGame as CrowdGame
    from cmpg.games.crowd.policy import CrowdPolicy as CrowdPolicy
    from cmpg.games.devices import Concept as Concept
    from cmpg.games.devices import CorrelatedPolicy as CorrelatedPolicy
    from cmpg.games.devices import Rota as Rota
    from cmpg.games.game import Game as Game
    from cmpg.games.game import Position as Position
    from cmpg.games.joint.game import JointGame as JointGame
    from cmpg.games.local.agent import LocalAgent as LocalAgent
    from cmpg.games.local.discounted import DiscountedLocalGame as DiscountedLocalGame
    from cmpg.games.local.game import LocalGame as LocalGame
    from cmpg.games.potential.check import check_potential as check_potential
    from cmpg.judging.known import JudgedPolicy as JudgedPolicy
    from cmpg.judging.side_by_side import judge_side_by_side as judge_side_by_side
    from cmpg.judging.verb import judge as judge
    from cmpg.policy import JointPolicy as JointPolicy
    from cmpg.report.plots import plot as plot
    from cmpg.simulation.episodes import simulate as simulate

__version__ = "0.2.0"

# Runs are logged below "cmpg"; to see them, add a handler: docs/watching.md.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__, __getattr__, __dir__ = lazy_exports(__name__)
