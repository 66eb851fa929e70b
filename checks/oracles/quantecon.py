"""QuantEcon: dynamic programming without constraints, and equilibria of one-shot games."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import quantecon
import quantecon.game_theory as theory

import cmpg

NAME = "quantecon"


def best_value(cmdp: cmpg.CMDP) -> float:
    """The value of the best policy of a stationary CMDP without constraints."""
    transition = np.asarray(cmdp.transition[0].toarray() if cmdp.is_sparse else cmdp.transition[0])
    transition = transition.reshape(cmdp.num_states, cmdp.num_actions, cmdp.num_states)
    reward = np.array(cmdp.reward[0], dtype=float)
    if cmdp.discount is not None:
        found = quantecon.markov.DiscreteDP(reward, transition, cmdp.discount).solve(method="policy_iteration")
        return float(cmdp.initial @ found.v)
    process = quantecon.markov.DiscreteDP(reward, transition, 1.0 - 1e-16)
    values, _ = quantecon.markov.backward_induction(process, cmdp.horizon)
    return float(cmdp.initial @ values[0])


def normal_form(payoffs: list[np.ndarray]) -> Any:
    """A one-shot game; QuantEcon wants a player's own actions on the first axis, then those of the next players."""
    axes = np.arange(len(payoffs))
    players = [
        theory.Player(np.ascontiguousarray(np.transpose(table, np.roll(axes, -player))))
        for player, table in enumerate(payoffs)
    ]
    return theory.NormalFormGame(players)


def equilibria(payoffs: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Equilibria by support enumeration of two players, by search over pure actions of more."""
    game = normal_form(payoffs)
    if len(payoffs) == 2:
        yield from (list(rows) for rows in theory.support_enumeration(game))
        yield from (list(rows) for rows in theory.vertex_enumeration(game))
        yield list(theory.lemke_howson(game))
    else:
        for actions in theory.pure_nash_brute(game):
            yield [np.eye(size)[action] for size, action in zip(payoffs[0].shape, actions, strict=True)]


def largest_gain(payoffs: list[np.ndarray], rows: list[np.ndarray]) -> float:
    """What some player gains at most by deviating from a mixed profile."""
    game, gain = normal_form(payoffs), 0.0
    for player in range(len(payoffs)):
        others = [rows[(player + 1 + other) % len(rows)] for other in range(len(rows) - 1)]
        values = game.players[player].payoff_vector(others[0] if len(others) == 1 else others)
        gain = max(gain, float(values.max() - values @ rows[player]))
    return gain


def families() -> Iterator[tuple[str, list[np.ndarray]]]:
    """Games of the generators that QuantEcon ships."""
    from quantecon.game_theory import game_generators as made

    for name, game in {
        "blotto_game(2, 4, rho=0.5)": made.blotto_game(2, 4, 0.5, random_state=0),
        "ranking_game(6)": made.ranking_game(6, random_state=0),
        "sgc_game(3)": made.sgc_game(3),
        "tournament_game(4, 2)": made.tournament_game(4, 2, random_state=0),
        "unit_vector_game(8)": made.unit_vector_game(8, random_state=0),
    }.items():
        first, second = (np.asarray(player.payoff_array, dtype=float) for player in game.players)
        yield name, [first, second.T]
