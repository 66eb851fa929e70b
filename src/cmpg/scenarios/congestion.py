"""The paper's congestion game for any number of agents, as a counting game.

With 8 agents it is `paper.congestion_game`; there the tables have 4^8 joint actions, here the counts are all there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cmpg.checks import GameError, numbers
from cmpg.games.count_classes import LargestCount
from cmpg.games.counting import CountingGame
from cmpg.scenarios.paper import CostSteps

QUIET, BUSY, CROWDED = range(3)
"""The classes of the largest crowd k*: k* ≤ n/4, between, k* > n/2."""

SAFE, UNSAFE = range(2)


def counting_congestion_game(
    *,
    num_agents: int = 8,
    horizon: int = 2,
    threshold: float = 0.5,
    weights: Sequence[float] = (1.0, 2.0, 4.0, 6.0),
    unsafe_penalty: float = 100.0,
    initial: Sequence[float] = (0.5, 0.5),
    cost_at: CostSteps = "every step",
) -> CountingGame:
    """Return the congestion game: k agents on action a get k·w_a each, less a penalty in the state `unsafe`.

    With k* the size of the largest crowd, `safe` leads to `unsafe` if k* > n/2, and `unsafe` to `safe` if k* ≤ n/4. A
    crowd k* > n/2 in `unsafe` costs 1. Where the agents cannot spread that evenly (n is not a multiple of four, with
    four actions), there is no way back from `unsafe`.

    This game is not a Markov potential game unless the horizon is 1.

    Parameters
    ----------
    cost_at
        The paper writes "at step h = 1", by which no policy could break the constraint: the cost is then at most 0.5.
        Its figure comes out when the cost is paid at every step.

    Examples
    --------
    >>> game = counting_congestion_game(num_agents=100)
    >>> game.at(game.uniform_policy()).values[:2].round(3)
    array([67.425, 67.425])
    """
    if num_agents != int(num_agents) or num_agents < 1:
        raise GameError(f"num_agents is {num_agents}; a whole number of at least 1 is required.")
    per_agent = numbers("weights", weights)
    if per_agent.ndim != 1 or not len(per_agent):
        raise GameError(f"weights has shape {list(per_agent.shape)}; one weight per action is required.")
    if cost_at not in ("every step", "first step"):
        raise GameError(f"cost_at is {cost_at!r}; it must be 'every step' or 'first step'.")
    payoffs = per_agent[:, None] * np.arange(num_agents + 1)
    transition = np.zeros((1, 2, 3, 2))
    transition[0, SAFE, :, SAFE] = transition[0, UNSAFE, :, UNSAFE] = 1.0
    transition[0, SAFE, CROWDED] = [0.0, 1.0]
    transition[0, UNSAFE, QUIET] = [1.0, 0.0]
    costs = np.zeros((1, horizon if cost_at == "first step" else 1, 2, 3))
    costs[0, 0, UNSAFE, CROWDED] = 1.0
    return CountingGame(
        rewards=np.stack([payoffs, payoffs - unsafe_penalty])[None],
        classes=LargestCount((num_agents / 4, num_agents / 2)),
        transition=transition,
        costs=costs,
        thresholds=np.array([threshold]),
        initial=np.array(initial),
        horizon=horizon,
        agents=tuple(f"agent {each}" for each in range(1, num_agents + 1)),
        states=("safe", "unsafe"),
        actions=(_letters(len(per_agent)),) * num_agents,
        constraints=("a crowd in unsafe",),
    )


def _letters(number: int) -> tuple[str, ...]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return tuple(letters[:number]) if number <= len(letters) else tuple(f"action {a}" for a in range(1, number + 1))
