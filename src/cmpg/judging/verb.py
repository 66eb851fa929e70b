"""`judge`: one verb for policies from anywhere, in a game that is known or in one that can only be sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from cmpg.equilibrium.result import Result
from cmpg.errors import CMPGError, explains_keywords
from cmpg.games.game import Game, check_is_game
from cmpg.judging.audits import Audit, Trainer, audit
from cmpg.judging.environments import EnvironmentWorld
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.judging.policies import policy_function
from cmpg.judging.worlds import GameWorld
from cmpg.policy import JointPolicy


@overload
def judge(
    game: GameWorld | EnvironmentWorld,
    policy: Any,
    *,
    name: str = ...,
    episodes: int = ...,
    delta: float = ...,
    rng: np.random.Generator | int | None = ...,
    deviations: Mapping[int, Sequence[Any]] | None = ...,
    train: Trainer | None = ...,
) -> Audit: ...


@overload
def judge(
    game: Game,
    policy: Any,
    *,
    name: str = ...,
    best_known: Result | float | None = ...,
    exact: bool = ...,
    time_limit: float = ...,
) -> JudgedPolicy: ...


@explains_keywords()
def judge(
    game: Any,
    policy: Any,
    *,
    name: str = "the policy",
    best_known: Result | float | None = None,
    exact: bool = False,
    time_limit: float = math.inf,
    episodes: int = 2_000,
    delta: float = 0.1,
    rng: np.random.Generator | int | None = None,
    deviations: Mapping[int, Sequence[Any]] | None = None,
    train: Trainer | None = None,
) -> JudgedPolicy | Audit:
    """Judge a policy from anywhere: is it feasible, what could each agent gain by deviating, how good is it for all?

    Parameters
    ----------
    game
        Any game; or a world that can only be played: `EnvironmentWorld(env, …)`, or `GameWorld(game)`.
    policy
        A JointPolicy; or a function of (agent, observation, step), an object with `predict`, a torch module that
        returns logits, or a mapping from agents to these. In a known game it is written down as tables first, and the
        observation is the number of the state; `JointPolicy.from_callable` takes others.
    name
        What the policy is called in tables.
    best_known, exact, time_limit
        Known games: a result of `solve`, or the total value of a feasible policy, to compare with; prove in rationals;
        seconds for the upper bound over all feasible policies.
    episodes, delta, rng, deviations, train
        Worlds: see `cmpg.judging.audit`.

    Returns
    -------
    JudgedPolicy or Audit
        Both have `feasible` and `exploitability`: a number where the game is known, and an interval with `lower` and
        `upper`, which holds with probability 1 − δ, where it is not.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> judged = cmpg.judge(game, lambda agent, state, step: [0.5, 0.5])
    >>> judged.feasible, round(judged.exploitability, 6)
    (True, 0.25)
    >>> print(judged)
    FEASIBLE: the policy meets every threshold; no agent gains more than 0.251 by deviating (joint-state policies).
    agent       value  best deviation  gains at most
    agent 0  2.750000        3.000000           0.25
    agent 1  2.750000        3.000000           0.25
    what agent 0 would do instead, to gain 0.25:
      step 0, only: 2 instead of 1 (seen with probability 0.5)
    constraint   cost  threshold  slack
    both play 2  0.25        0.5   0.25
    at least 89.1 % of the best possible total value, which is at most 6.17158 (branch and bound over mixed actions)
    """
    if isinstance(game, (GameWorld, EnvironmentWorld)):
        if rng is None:
            raise CMPGError("a world is judged by random episodes: pass rng=1, or rng=np.random.default_rng(1).")
        generator = np.random.default_rng(rng)
        return audit(
            game,
            policy,
            rng=generator,
            episodes=episodes,
            delta=delta,
            name=name,
            deviations=deviations,
            train=train,
        )
    if hasattr(game, "reset") and hasattr(game, "step"):
        raise CMPGError(
            f"a {type(game).__name__} is an environment: say what is known of it, "
            "cmpg.judging.EnvironmentWorld(env, horizon=…, reward_range=(least, largest), thresholds=…)."
        )
    check_is_game(game)
    if not isinstance(policy, JointPolicy):
        function = policy_function(policy, game.names.all_agents(game.num_agents))
        policy = JointPolicy.from_callable(game.policy_shapes, function)
    return judge_known(game, policy, name=name, best_known=best_known, exact=exact, time_limit=time_limit)
