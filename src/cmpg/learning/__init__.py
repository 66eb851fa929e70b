"""Nash policies of games whose transition is unknown: learned from samples, with a promise that names its probability.

>>> import numpy as np
>>> from cmpg import learning, scenarios
>>> simulator = learning.GameSimulator(scenarios.spectrum(), rng=np.random.default_rng(0))
>>> learning.learn_shared(simulator, epsilon=0.9, delta=0.1).certified
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmpg.lazy import lazy_exports

if TYPE_CHECKING:
    from cmpg.learning.a_priori import APriori as APriori
    from cmpg.learning.ascent import learn as learn
    from cmpg.learning.ascent import learned_start as learned_start
    from cmpg.learning.bounds import bounds_table as bounds_table
    from cmpg.learning.environment import Environment as Environment
    from cmpg.learning.environment import EnvironmentSimulator as EnvironmentSimulator
    from cmpg.learning.generative import Adaptive as Adaptive
    from cmpg.learning.local.model import LocalModel as LocalModel
    from cmpg.learning.local.safe import learn_safely as learn_safely
    from cmpg.learning.local.simulator import LocalSimulator as LocalSimulator
    from cmpg.learning.outcome import Judgement as Judgement
    from cmpg.learning.outcome import LearnedResponse as LearnedResponse
    from cmpg.learning.outcome import Learner as Learner
    from cmpg.learning.outcome import LearnResult as LearnResult
    from cmpg.learning.outcome import ResponseStatus as ResponseStatus
    from cmpg.learning.outcome import judge as judge
    from cmpg.learning.problem import InducedProblem as InducedProblem
    from cmpg.learning.safe import GivenPolicy as GivenPolicy
    from cmpg.learning.safe import OwnPolicy as OwnPolicy
    from cmpg.learning.safe import Pace as Pace
    from cmpg.learning.safe import SafeExploration as SafeExploration
    from cmpg.learning.safe import safe_learner as safe_learner
    from cmpg.learning.samples import Ledger as Ledger
    from cmpg.learning.samples import Payoffs as Payoffs
    from cmpg.learning.samples import Played as Played
    from cmpg.learning.samples import ProblemSpec as ProblemSpec
    from cmpg.learning.samples import Samples as Samples
    from cmpg.learning.shared import Round as Round
    from cmpg.learning.shared import learn_shared as learn_shared
    from cmpg.learning.simulator import GameSimulator as GameSimulator
    from cmpg.learning.simulator import Simulator as Simulator
    from cmpg.learning.slater import cmdp_slack as cmdp_slack
    from cmpg.learning.slater import slater_constant as slater_constant
    from cmpg.learning.truncation import steps_for as steps_for

__all__, __getattr__, __dir__ = lazy_exports(__name__)
