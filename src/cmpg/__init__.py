"""Nash policies of constrained Markov potential games, with a certificate behind every answer.

>>> import cmpg
>>> result = cmpg.solve(cmpg.scenarios.counter_example())
>>> result.status.name
'CERTIFIED'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmpg import scenarios as scenarios
    from cmpg.cmdp.exact import Exact as Exact
    from cmpg.cmdp.linear_program import LinearProgram as LinearProgram
    from cmpg.cmdp.model import CMDP as CMDP
    from cmpg.cmdp.primal_dual import PrimalDual as PrimalDual
    from cmpg.cmdp.response import BestResponse as BestResponse
    from cmpg.cmdp.response import Solver as Solver
    from cmpg.duality.dual_function import analyse_duality as analyse_duality
    from cmpg.equilibrium.ascent import coordinate_ascent as coordinate_ascent
    from cmpg.equilibrium.certificate import Certificate as Certificate
    from cmpg.equilibrium.certificate import Feasibility as Feasibility
    from cmpg.equilibrium.certificate import certify as certify
    from cmpg.equilibrium.certificate import prove_infeasible as prove_infeasible
    from cmpg.equilibrium.result import Result as Result
    from cmpg.equilibrium.result import Status as Status
    from cmpg.equilibrium.schedule import GreatestGain as GreatestGain
    from cmpg.equilibrium.schedule import RoundRobin as RoundRobin
    from cmpg.equilibrium.solve import by_potential as by_potential
    from cmpg.equilibrium.solve import by_welfare as by_welfare
    from cmpg.equilibrium.solve import solve as solve
    from cmpg.equilibrium.start import feasible_start as feasible_start
    from cmpg.errors import BudgetError as BudgetError
    from cmpg.errors import CMPGError as CMPGError
    from cmpg.errors import FileError as FileError
    from cmpg.errors import GameError as GameError
    from cmpg.errors import InfeasibleError as InfeasibleError
    from cmpg.errors import PolicyError as PolicyError
    from cmpg.errors import SimulatorError as SimulatorError
    from cmpg.errors import SolverError as SolverError
    from cmpg.errors import StartError as StartError
    from cmpg.files.games import load_game as load_game
    from cmpg.files.games import save_game as save_game
    from cmpg.files.policies import load_policy as load_policy
    from cmpg.games.counting.classes import EveryCount as EveryCount
    from cmpg.games.counting.classes import LargestCount as LargestCount
    from cmpg.games.counting.game import CountingGame as CountingGame
    from cmpg.games.joint.game import JointGame as JointGame
    from cmpg.games.local.game import LocalAgent as LocalAgent
    from cmpg.games.local.game import LocalGame as LocalGame
    from cmpg.games.potential.check import check_potential as check_potential
    from cmpg.learning.a_priori import APriori as APriori
    from cmpg.learning.ascent import learn as learn
    from cmpg.learning.environment import EnvironmentSimulator as EnvironmentSimulator
    from cmpg.learning.exploration import Pace as Pace
    from cmpg.learning.generative import Adaptive as Adaptive
    from cmpg.learning.outcome import Judgement as Judgement
    from cmpg.learning.outcome import LearnResult as LearnResult
    from cmpg.learning.outcome import judge as judge
    from cmpg.learning.safe import GivenPolicy as GivenPolicy
    from cmpg.learning.safe import OnlineToBatch as OnlineToBatch
    from cmpg.learning.safe import SafeExploration as SafeExploration
    from cmpg.learning.safe import safe_learner as safe_learner
    from cmpg.learning.samples import Known as Known
    from cmpg.learning.shared import learn_shared as learn_shared
    from cmpg.learning.simulator import GameSimulator as GameSimulator
    from cmpg.learning.simulator import Simulator as Simulator
    from cmpg.policy import JointPolicy as JointPolicy

__version__ = "0.1.0"

_HOMES = {
    "errors": (
        "BudgetError",
        "CMPGError",
        "FileError",
        "GameError",
        "InfeasibleError",
        "PolicyError",
        "SimulatorError",
        "SolverError",
        "StartError",
    ),
    "cmdp.exact": ("Exact",),
    "cmdp.linear_program": ("LinearProgram",),
    "cmdp.model": ("CMDP",),
    "cmdp.primal_dual": ("PrimalDual",),
    "cmdp.response": ("BestResponse", "Solver"),
    "equilibrium.ascent": ("coordinate_ascent",),
    "equilibrium.certificate": ("Certificate", "Feasibility", "certify", "prove_infeasible"),
    "duality.dual_function": ("analyse_duality",),
    "equilibrium.result": ("Result", "Status"),
    "equilibrium.schedule": ("GreatestGain", "RoundRobin"),
    "equilibrium.solve": ("by_potential", "by_welfare", "solve"),
    "equilibrium.start": ("feasible_start",),
    "games.counting.classes": ("EveryCount", "LargestCount"),
    "games.counting.game": ("CountingGame",),
    "files.games": ("load_game", "save_game"),
    "games.joint.game": ("JointGame",),
    "games.local.game": ("LocalAgent", "LocalGame"),
    "games.potential.check": ("check_potential",),
    "learning.a_priori": ("APriori",),
    "learning.environment": ("EnvironmentSimulator",),
    "learning.exploration": ("Pace",),
    "learning.generative": ("Adaptive",),
    "learning.ascent": ("learn",),
    "learning.outcome": ("Judgement", "LearnResult", "judge"),
    "learning.safe": ("GivenPolicy", "OnlineToBatch", "SafeExploration", "safe_learner"),
    "learning.samples": ("Known",),
    "learning.shared": ("learn_shared",),
    "learning.simulator": ("GameSimulator", "Simulator"),
    "files.policies": ("load_policy",),
    "policy": ("JointPolicy",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["scenarios", *_HOME_OF]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used, so that `import cmpg` costs next to nothing."""
    if name == "scenarios":
        return importlib.import_module("cmpg.scenarios")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'cmpg' has no attribute {name!r}")
    return getattr(importlib.import_module(f"cmpg.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
