"""Whose constraint is it, and when: constraints that bind some agents only, and budgets per step or per window.

`bind(game, binds)` says by a mask [n, k] which constraints bind which agents. A policy of such a game still has to meet
every threshold; but an agent that constraint j does not bind may deviate without regard to it. A private budget binds
its owner, the limit of a transformer those who hang on it. A mask of ones is the plain game.

    ε-Nash: every threshold is met, and no agent i gains more than ε by a deviation with V^{c_j} ≤ α_j for all j that
    bind i.

The mask is the field `binds` of every form of game; `bind` returns the same game with another one. An agent's CMDP has
a cost of zero, and a threshold of one, in place of a constraint that does not bind it. Where agents can spend a budget
that does not bind them, there need not be an equilibrium: the agents that it binds have to make room.

`by_window(game, …)` splits a budget over time: one constraint for every window of steps, with the costs of those steps
alone, so that everything that holds for several constraints holds for budgets per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from cmpg.arrays import FloatArray, frozen, numbers
from cmpg.errors import GameError, UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game, binds_of
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.games.rationals import as_given

Form = TypeVar("Form", bound=JointGame | LocalGame | CountingGame)


def bind(game: Game, binds: Any) -> Game:
    """Say which constraints bind which agents.

    Parameters
    ----------
    game
        Any game.
    binds : [n, k]
        Whether constraint j binds agent i: zeros and ones. A constraint must bind an agent.

    Examples
    --------
    Two agents with a budget each, which the other one does not have to mind.

    >>> from cmpg.games import JointGame
    >>> game = JointGame(transition=np.ones((1, 1, 2, 2, 1)), rewards=[[[[[0, 0], [1, 1]]]], [[[[0, 1], [0, 1]]]]],
    ...                  costs=[[[[[0, 0], [1, 1]]]], [[[[0, 1], [0, 1]]]]], thresholds=[0.5, 0.25], initial=[1.0],
    ...                  horizon=1)
    >>> from cmpg import solve
    >>> solve(bind(game, [[1, 0], [0, 1]])).values.round(6)
    array([0.5 , 0.25])
    """
    try:
        with_binds = game.with_binds  # type: ignore[attr-defined]
    except AttributeError:
        advice = "Give the class a field `binds` [n, k], and let its positions leave out what does not bind an agent."
        raise UnsupportedError(type(game).__name__, "has no `with_binds`", advice) from None
    masked: Game = with_binds(binds)
    return masked


def without_constraints(game: Game) -> Game:
    """Return the same game with thresholds that no policy reaches."""
    return game.with_thresholds(np.maximum(game.thresholds, 1e9))


def by_window(game: Form, windows: int | Sequence[tuple[int, int]], thresholds: Any, *, constraint: int = 0) -> Form:
    """Split one constraint over time: one threshold for what is spent within each window of steps.

    Parameters
    ----------
    game
        A joint, local or counting game with a finite horizon.
    windows
        Pairs (first, end) of steps, first ≤ h < end; or a number of steps, and windows of that length follow each
        other: 1 is a budget for every step. Windows may overlap; steps in none of them are free.
    thresholds : [number of windows], or one number for all
        α of each window.
    constraint
        Which one is split. The others stay as they are, and come first.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> game = by_window(charging(), [(0, 12), (12, 24)], [0.5, 0.1])
    >>> game.thresholds, game.names.all_constraints(2)
    (array([0.5, 0.1]), ('overload of transformer, steps 0-11', 'overload of transformer, steps 12-23'))
    """
    if not isinstance(game, (JointGame, LocalGame, CountingGame)):
        raise UnsupportedError(type(game).__name__, "cannot be split by windows", "Write its constraints by hand.")
    if game.horizon is None:
        raise GameError("a discounted game has no last step; budgets per window need a horizon.")
    steps = game.horizon
    pairs = _pairs(windows, steps)
    count = len(game.thresholds)
    if not 0 <= constraint < count:
        raise GameError(f"constraint is {constraint}; the game has {count}, which count from 0.")
    given = numbers("thresholds", thresholds)
    if given.shape not in ((), (len(pairs),)):
        raise GameError(
            f"thresholds has shape {list(given.shape)}; one number, or one for each of {len(pairs)} windows, is "
            "required."
        )
    limits = np.broadcast_to(given, (len(pairs),))
    masks = np.array([[first <= h < end for h in range(steps)] for first, end in pairs])
    kept = [j for j in range(count) if j != constraint]
    names = list(game.names.all_constraints(count))
    named = [f"{names[constraint]}, steps {first}-{end - 1}" for first, end in pairs]

    def split(costs: FloatArray) -> FloatArray:
        every = np.broadcast_to(costs, (count, steps, *costs.shape[2:]))
        masked = every[constraint] * masks.reshape(len(pairs), steps, *(1 for _ in costs.shape[2:]))
        return frozen(np.concatenate([every[kept], masked]))

    limits = np.concatenate([as_given(game, "thresholds")[kept], limits])
    all_names = [*(names[j] for j in kept), *named]
    binds = binds_of(game)[:, [*kept, *(constraint for _ in pairs)]]
    if isinstance(game, LocalGame):
        agents = [agent if agent.costs is None else replace(agent, costs=split(agent.costs)) for agent in game.agents]
        return game.with_constraints(split(game.load_costs), limits, all_names, binds=binds, agents=agents)  # type: ignore[return-value]
    return game.with_constraints(split(as_given(game, "costs")), limits, all_names, binds=binds)  # type: ignore[return-value]


def _pairs(windows: int | Sequence[tuple[int, int]], steps: int) -> list[tuple[int, int]]:
    if isinstance(windows, (int, np.integer)):
        if windows < 1:
            raise GameError(f"windows is {windows}; a window has at least one step.")
        return [(first, min(first + int(windows), steps)) for first in range(0, steps, int(windows))]
    try:
        pairs = [(int(first), int(end)) for first, end in windows]
    except (TypeError, ValueError):
        raise GameError(
            f"windows is {windows!r}; a number of steps, or pairs (first, end) are required, such as "
            "[(0, 12), (12, 24)]."
        ) from None
    for first, end in pairs:
        if not 0 <= first < end <= steps:
            raise GameError(
                f"the window ({first}, {end}) is not within the {steps} steps; 0 ≤ first < end is required."
            )
    if not pairs:
        raise GameError("there is no window; give at least one.")
    return pairs
