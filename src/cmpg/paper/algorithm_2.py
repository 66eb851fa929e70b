"""Algorithm 2 to the letter: CA-CMPG-E with the printed T, M and δ′, and any learner of best responses inside.

In each of at most T iterations the agents play π^{t−1} for M episodes, and each agent i learns a response within ε/4
of the best, with probability 1 − δ′, and plays (π̂_i, π_−i) for M episodes. The agent with the greatest measured gain
moves if that is more than ε/2; otherwise the algorithm ends. Theorem 2: T = 4nH/ε, M = 32H²/ε² ln(32n²H/(εδ)), and
δ′ = εδ/(8n²H). An estimate is the mean of the rewards that were observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.errors import CMPGError
from cmpg.learning.bounds import AscentConstants, ascent_constants
from cmpg.learning.outcome import LearnedResponse
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Payoffs
from cmpg.learning.simulator import Simulator
from cmpg.policy import JointPolicy


class ResponseLearner(Protocol):
    """A sample-efficient solver of CMDPs, as Theorem 2 asks for one."""

    def __call__(self, problem: InducedProblem, *, epsilon: float, delta: float) -> LearnedResponse:
        """Return a feasible response within ε of the best, with probability at least 1 − δ."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """One iteration: who measured what, and who moved."""

    values: FloatArray  # [n]: of π^{t−1}, as measured
    gains: FloatArray  # [n]: as measured
    responses: tuple[LearnedResponse, ...]  # [n]
    mover: int | None  # None: the algorithm ended


@dataclass(frozen=True, eq=False)
class Algorithm2Run:
    """What Algorithm 2 did, and what it returns."""

    constants: AscentConstants  # T, M, δ′ as printed
    policy: JointPolicy
    iterations: tuple[Iteration, ...]

    @property
    def ended(self) -> bool:
        """Whether the algorithm ended by itself, before its T iterations were over or with the last of them."""
        return self.iterations[-1].mover is None

    @property
    def moves(self) -> int:
        """How many times an agent moved."""
        return sum(each.mover is not None for each in self.iterations)


def algorithm_2(
    simulator: Simulator, start: JointPolicy, *, learner: ResponseLearner, epsilon: float, delta: float
) -> Algorithm2Run:
    """Run Algorithm 2 from a feasible policy.

    Parameters
    ----------
    simulator
        The unknown game, with rewards that are known and lie in [0, 1].
    start
        π^S, a feasible policy.
    learner
        Learns a best response.
    epsilon, delta
        ε and δ of Theorem 2.

    Examples
    --------
    >>> from cmpg.games import JointGame
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.paper import Algorithm3
    >>> game = JointGame(transition=np.ones((1, 1, 2, 1)), rewards=[[[[0.0, 1.0]]]], costs=[[[[0.0, 1.0]]]],
    ...                  thresholds=[0.5], initial=[1.0], horizon=1)
    >>> simulator, start = GameSimulator(game, rng=np.random.default_rng(0)), JointPolicy([[[[1.0, 0.0]]]])
    >>> run = algorithm_2(simulator, start, learner=Algorithm3(slater=0.5), epsilon=0.5, delta=0.1)
    >>> run.moves, bool(game.at(run.policy).costs[0] <= 0.5)
    (1, True)
    """
    known = simulator.known
    if not isinstance(known.payoffs, Payoffs) or known.payoffs.rewards.min() < 0 or known.payoffs.rewards.max() > 1:
        raise CMPGError("Algorithm 2 as printed is for joint games whose rewards are known and lie in [0, 1].")
    rewards = known.payoffs.rewards
    constants = ascent_constants(known, epsilon=epsilon, delta=delta, printed=True)

    def measured(policy: JointPolicy) -> FloatArray:
        seen = simulator.roll_out(policy, constants.episodes, purpose="values")
        return np.array([float((seen.visits * reward).sum()) for reward in rewards]) / constants.episodes

    policy, iterations = start, list[Iteration]()
    while len(iterations) < constants.max_iterations:
        values = measured(policy)
        responses, gains = [], np.empty(known.num_agents)
        for agent in range(known.num_agents):
            problem = InducedProblem(simulator, agent, policy)
            responses.append(learner(problem, epsilon=epsilon / 4, delta=constants.response_delta))
            gains[agent] = measured(policy.replace(agent, responses[-1].policy))[agent] - values[agent]
        mover = int(gains.argmax()) if gains.max() > epsilon / 2 else None
        iterations.append(Iteration(values, gains, tuple(responses), mover))
        if mover is None:
            break
        policy = policy.replace(mover, responses[mover].policy)
    return Algorithm2Run(constants, policy, tuple(iterations))
