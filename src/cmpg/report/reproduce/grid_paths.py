"""Where a policy leads on the grid: the ways that the two agents take, with their probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.checks import GameError
from cmpg.games.joint import JointGame
from cmpg.policy import JointPolicy

NEVER = 1e-9
"""Joint actions with less probability than this are rounding."""

MOST_WAYS = 2000
"""A policy that still mixes at random has more ways than can be listed."""


@dataclass(frozen=True)
class Way:
    """The cells of one agent in order, without repeats, and how likely it goes that way."""

    cells: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class JointWay:
    """The cells of both agents at every step, and how likely that is."""

    cells: tuple[tuple[int, int], ...]
    probability: float


def joint_ways(game: JointGame, policy: JointPolicy) -> tuple[JointWay, ...]:
    """List what can happen under a joint-state policy of the grid world, whose moves are deterministic.

    Raises GameError where there are too many ways to list.
    """
    cells = round(game.num_states**0.5)
    ways: list[tuple[tuple[int, ...], float]] = [((int(state),), 1.0) for state in np.flatnonzero(game.initial)]
    for step in range(game.num_steps - 1):
        ways = [
            ((*path, after), weight * chance)
            for path, weight in ways
            for after, chance in _moves(game, policy, step, path[-1])
        ]
        if len(ways) > MOST_WAYS:
            raise GameError(f"the policy has more than {MOST_WAYS} ways; it still mixes at random.")
    return tuple(JointWay(tuple(divmod(state, cells) for state in path), weight) for path, weight in ways)


def _moves(game: JointGame, policy: JointPolicy, step: int, state: int) -> list[tuple[int, float]]:
    """The next states of one state, with the probability that the agents choose them."""
    chances = np.outer(policy[0][step, state], policy[1][step, state])
    matrix = game.transition[0]
    found: dict[int, float] = {}
    for a, b in zip(*np.nonzero(chances > NEVER), strict=True):
        row = (state * game.num_actions[0] + a) * game.num_actions[1] + b
        after = int(matrix.indices[matrix.indptr[row]])
        found[after] = found.get(after, 0.0) + float(chances[a, b])
    return list(found.items())


def agent_ways(ways: tuple[JointWay, ...], agent: int) -> tuple[Way, ...]:
    """Gather the ways of one agent, the likeliest first."""
    gathered: dict[tuple[int, ...], float] = {}
    for way in ways:
        own = tuple(pair[agent] for pair in way.cells)
        kept = tuple(cell for number, cell in enumerate(own) if number == 0 or cell != own[number - 1])
        gathered[kept] = gathered.get(kept, 0.0) + way.probability
    ranked = sorted(gathered.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Way(cells, probability) for cells, probability in ranked)


def collision_probability(ways: tuple[JointWay, ...], *, free: tuple[int, ...]) -> float:
    """Return how likely the agents ever stand on one cell other than the free ones."""
    return sum(way.probability for way in ways if any(one == two and one not in free for one, two in way.cells))
