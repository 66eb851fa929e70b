"""What a game is: one contract, three forms, and whether there is a potential."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.games.check import GameCheck as GameCheck
    from cmpg.games.check import InducedPosition as InducedPosition
    from cmpg.games.check import check_game as check_game
    from cmpg.games.constraints import bind as bind
    from cmpg.games.constraints import by_window as by_window
    from cmpg.games.counting.game import CountingGame as CountingGame
    from cmpg.games.counting.vectors import EveryCount as EveryCount
    from cmpg.games.counting.vectors import LargestCount as LargestCount
    from cmpg.games.crowd.game import CrowdGame as CrowdGame
    from cmpg.games.crowd.game import LoadCurve as LoadCurve
    from cmpg.games.crowd.game import PowerCurve as PowerCurve
    from cmpg.games.crowd.game import crowd_of as crowd_of
    from cmpg.games.crowd.policy import CrowdPolicy as CrowdPolicy
    from cmpg.games.game import Amount as Amount
    from cmpg.games.game import Game as Game
    from cmpg.games.game import Information as Information
    from cmpg.games.game import Legend as Legend
    from cmpg.games.game import Names as Names
    from cmpg.games.game import Objective as Objective
    from cmpg.games.game import Planner as Planner
    from cmpg.games.game import Playable as Playable
    from cmpg.games.game import Position as Position
    from cmpg.games.game import PotentialKind as PotentialKind
    from cmpg.games.game import PotentialProof as PotentialProof
    from cmpg.games.game import Stepped as Stepped
    from cmpg.games.game import Stepper as Stepper
    from cmpg.games.game import UpperBound as UpperBound
    from cmpg.games.game import potential_by_moves as potential_by_moves
    from cmpg.games.joint.game import JointGame as JointGame
    from cmpg.games.joint.tabulation import StepFunction as StepFunction
    from cmpg.games.local.agent import LocalAgent as LocalAgent
    from cmpg.games.local.discounted import DiscountedLocalGame as DiscountedLocalGame
    from cmpg.games.local.game import LocalGame as LocalGame
    from cmpg.games.local.to_joint import lift_policy as lift_policy
    from cmpg.games.local.to_joint import to_joint as to_joint
    from cmpg.games.play import OneByOne as OneByOne
    from cmpg.games.potential.check import FourCycle as FourCycle
    from cmpg.games.potential.check import PotentialCheck as PotentialCheck
    from cmpg.games.potential.check import Verdict as Verdict
    from cmpg.games.potential.check import check_potential as check_potential
    from cmpg.games.potential.check import recheck as recheck
    from cmpg.games.potential.near import NearPotential as NearPotential
    from cmpg.games.potential.near import near_potential as near_potential
    from cmpg.games.rest import among as among
    from cmpg.games.rest import laws_at as laws_at
    from cmpg.games.rest import rest_of as rest_of
    from cmpg.games.risk import Chance as Chance
    from cmpg.games.risk import CostLaw as CostLaw
    from cmpg.games.risk import CVaR as CVaR
    from cmpg.games.risk import CVaRGame as CVaRGame
    from cmpg.games.risk import augmented_sizes as augmented_sizes
    from cmpg.games.risk import cost_law as cost_law
    from cmpg.games.risk import lifted as lifted
    from cmpg.games.risk import with_chances as with_chances
    from cmpg.games.risk import with_cvar as with_cvar

__all__, __getattr__, __dir__ = lazy_exports(__name__)
