"""Agents who may never exceed anything: what is possible, told by sets alone. Nothing of the library is in here.

A game is a dict: `horizon`, `agents`, each with `transition` [H or 1, S, A, S], `reward` [H or 1, S, A], `uses`
[H or 1, S, A, E] and `initial` [S], and for all of them `delay` [H or 1, E, n + 1] and `load_cost` [H or 1, E, n + 1].
Probabilities matter only by whether they are zero: so whether nothing is ever spent, and what an agent may do without
ever spending anything, is known without rounding. What that is worth is computed in floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Game = dict[str, Any]
Policy = list[np.ndarray]


def _at(table: np.ndarray, step: int) -> np.ndarray:
    return table[0] if len(table) == 1 else table[step]


def possible_users(game: Game, policy: Policy) -> np.ndarray:
    """Return who may use a resource at a step: [n, H, E], true or false."""
    found = np.zeros((len(policy), game["horizon"], game["load_cost"].shape[1]), dtype=bool)
    for i, (agent, table) in enumerate(zip(game["agents"], policy, strict=True)):
        present = agent["initial"] > 0
        for step in range(game["horizon"]):
            taken = present[:, None] & (table[step] > 0)
            found[i, step] = _at(agent["uses"], step)[taken].any(axis=0)
            present = (_at(agent["transition"], step)[taken] > 0).any(axis=0)
    return found


def nothing_is_spent(game: Game, policy: Policy) -> bool:
    """Whether no load that is possible costs anything, where costs do not fall as the load grows."""
    users = possible_users(game, policy).sum(axis=0)
    spread = np.broadcast_to(game["load_cost"], (game["horizon"], *game["load_cost"].shape[1:]))
    assert (np.diff(spread, axis=-1) >= 0).all()
    return not np.take_along_axis(spread, users[..., None], axis=-1).any()


def gains(game: Game, policy: Policy) -> list[float]:
    """Return how much each agent would gain by the best deviation by which it never spends anything."""
    users, found = possible_users(game, policy), []
    used = [_usage(game, agent, table) for agent, table in zip(game["agents"], policy, strict=True)]
    for i, agent in enumerate(game["agents"]):
        others = [j for j in range(len(policy)) if j != i]
        most = users[others].sum(axis=0) + 1
        spread = np.broadcast_to(game["load_cost"], (game["horizon"], *game["load_cost"].shape[1:]))
        costly = np.take_along_axis(spread, most[..., None], axis=-1)[..., 0] > 0  # [H, E]
        delay = _delays(game, [used[j] for j in others])
        best = now = np.zeros(len(agent["initial"]))
        safe = np.ones(len(agent["initial"]), dtype=bool)
        for step in reversed(range(game["horizon"])):
            uses, moves = _at(agent["uses"], step), _at(agent["transition"], step)
            reward = _at(agent["reward"], step) - uses @ delay[step]
            able = ~(uses[..., costly[step]] > 0).any(axis=-1) & ~(moves[..., ~safe] > 0).any(axis=-1)
            now = (policy[i][step] * (reward + moves @ now)).sum(axis=-1)
            best = np.where(able, reward + moves @ best, -np.inf).max(axis=-1)
            safe = able.any(axis=-1)
            best = np.where(safe, best, 0.0)
        assert safe[agent["initial"] > 0].all()
        found.append(float(agent["initial"] @ (best - now)))
    return found


def _usage(game: Game, agent: dict[str, Any], table: np.ndarray) -> np.ndarray:
    """Return the probability that an agent uses a resource, by step: [H, E]."""
    present, found = agent["initial"], []
    for step in range(game["horizon"]):
        visits = present[:, None] * table[step]
        found.append(np.einsum("sa,sae->e", visits, _at(agent["uses"], step)))
        present = np.einsum("sa,sat->t", visits, _at(agent["transition"], step))
    return np.array(found)


def _delays(game: Game, used: list[np.ndarray]) -> np.ndarray:
    """Return the expected delay of one more user beside others, by step: [H, E]."""
    loads = np.zeros((game["horizon"], game["delay"].shape[1], len(used) + 2))
    loads[..., 1] = 1.0  # the one more
    for each in used:
        loads[..., 1:] = loads[..., 1:] * (1 - each[..., None]) + loads[..., :-1] * each[..., None]
    return (loads * game["delay"]).sum(axis=-1)
