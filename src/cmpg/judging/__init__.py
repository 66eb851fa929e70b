"""Judge a policy that was not computed here: what it costs, what each agent could gain, and how good it is.

>>> from cmpg import judging, scenarios
>>> game = scenarios.counter_example()
>>> judging.judge(game, game.uniform_policy()).feasible
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.judging.audits import Audit as Audit
    from cmpg.judging.audits import Interval as Interval
    from cmpg.judging.audits import MeasuredDeviation as MeasuredDeviation
    from cmpg.judging.audits import audit as audit
    from cmpg.judging.environments import EnvironmentWorld as EnvironmentWorld
    from cmpg.judging.environments import EnvStep as EnvStep
    from cmpg.judging.known import Change as Change
    from cmpg.judging.known import Deviation as Deviation
    from cmpg.judging.known import JudgedPolicy as JudgedPolicy
    from cmpg.judging.policies import RecurrentPolicyError as RecurrentPolicyError
    from cmpg.judging.policies import policy_function as policy_function
    from cmpg.judging.side_by_side import SideBySide as SideBySide
    from cmpg.judging.side_by_side import judge_side_by_side as judge_side_by_side
    from cmpg.judging.single_agent import SingleAgentEnv as SingleAgentEnv
    from cmpg.judging.verb import judge as judge
    from cmpg.judging.worlds import GameWorld as GameWorld

__all__, __getattr__, __dir__ = lazy_exports(__name__)
