"""`judge`: one verb for policies from anywhere, in a game that is known or in one that can only be sampled."""

from __future__ import annotations

import math
from typing import Any

from cmpg.equilibrium.certificate import check_is_game
from cmpg.equilibrium.result import Result
from cmpg.games.contract import Game
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.judging.policies import policy_function
from cmpg.policy import JointPolicy


def judge(
    game: Game,
    policy: Any,
    *,
    name: str = "the policy",
    best_known: Result | float | None = None,
    exact: bool = False,
    time_limit: float = math.inf,
) -> JudgedPolicy:
    """Judge a policy from anywhere: is it feasible, what could each agent gain by deviating, how good is it for all?

    Parameters
    ----------
    game
        Any game.
    policy
        A JointPolicy; or a function of (agent, state, step), an object with `predict`, a torch module that returns
        logits, or a mapping from agents to these, which is written down as tables first. The observation is the number
        of the state; `JointPolicy.from_callable` takes others.
    name
        What the policy is called in tables.
    best_known
        A result of `solve`, or the total value of a feasible policy, to compare with.
    exact
        Prove in rationals.
    time_limit
        Seconds for the upper bound over all feasible policies.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> judged = cmpg.judge(game, lambda agent, state, step: [0.5, 0.5])
    >>> judged.feasible, round(judged.exploitability, 6)
    (True, 0.25)
    >>> print(judged)
    FEASIBLE: the policy meets every threshold; no agent gains more than 0.25 by deviating (joint-state policies).
    agent       value  best deviation  gains at most
    agent 0  2.750000        3.000000           0.25
    agent 1  2.750000        3.000000           0.25
    what agent 0 would do instead, to gain 0.25:
      step 0, only: 2 instead of 1 (seen with probability 0.5)
    constraint   cost  threshold  slack
    both play 2  0.25        0.5   0.25
    at least 78.5 % of the best possible total value, which is at most 7 (a planner who chooses all actions)
    """
    check_is_game(game)
    if not isinstance(policy, JointPolicy):
        function = policy_function(policy, game.names.all_agents(game.num_agents))
        policy = JointPolicy.from_callable(game.policy_shapes, function)
    return judge_known(game, policy, name=name, best_known=best_known, exact=exact, time_limit=time_limit)
