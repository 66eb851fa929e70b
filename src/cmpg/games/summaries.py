"""What a game of any form looks like: its size in a sentence, then its agents and its constraints."""

from __future__ import annotations

import numpy as np

from cmpg.games.game import Game
from cmpg.summaries import Summary, Table, counted, fixed, largest, shown_of, significant


def game_summary(game: Game) -> Summary:
    """Return what to show of a game.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> print(counter_example())
    2 agents, 1 state, 2 actions each, horizon 1, 1 constraint, joint-state policies
    agent    states  actions  values range over
    agent 0       1        2           2.000000
    agent 1       1        2           2.000000
    constraint   threshold
    both play 2        0.5
    """
    names, ranges = game.names, np.asarray(game.reward_ranges, dtype=np.float64)
    shown = largest(ranges)
    agents = Table(
        ("agent", "states", "actions", "values range over"),
        tuple(
            (names.agent(i), str(game.policy_shapes[i][1]), str(game.policy_shapes[i][2]), fixed(ranges[i]))
            for i in shown
        ),
        shown_of(shown, game.num_agents, "agents with the widest ranges"),
    )
    tight = largest(-np.asarray(game.thresholds, dtype=np.float64))
    constraints = Table(
        ("constraint", "threshold"),
        tuple((names.constraint(j), significant(game.thresholds[j], 9)) for j in tight),
        shown_of(tight, len(game.thresholds), "constraints with the lowest thresholds"),
    )
    return Summary(size_of(game), parts=(agents, constraints) if len(game.thresholds) else (agents,))


def size_of(game: Game) -> str:
    """Say how large a game is."""
    shapes = game.policy_shapes
    states, actions = sorted({s for _, s, _ in shapes}), sorted({a for _, _, a in shapes})
    parts = [
        counted(game.num_agents, "agent"),
        _span(states, "state"),
        _span(actions, "action") + (" each" if game.num_agents > 1 else ""),
        f"horizon {game.horizon}" if game.discount is None else f"discount {game.discount}",
        counted(len(game.thresholds), "constraint"),
        str(game.information),
    ]
    return ", ".join(parts)


def _span(numbers: list[int], noun: str) -> str:
    return counted(numbers[0], noun) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} {noun}s"
