"""OpenSpiel: how much the players of a game can gain, by its own best responses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as spiel_policy
from open_spiel.python.algorithms import best_response, exploitability

import cmpg
from cmpg.policy import JointPolicy

NAME = "open_spiel"
MATRIX_GAMES = (
    *("matrix_bos", "matrix_brps", "matrix_cd", "matrix_coordination", "matrix_mp", "matrix_pd", "matrix_rps"),
    *("matrix_rpsw", "matrix_sh", "matrix_shapleys_game", "blotto(coins=5,fields=3)"),
)
LONGER_GAMES = (
    "goofspiel(num_cards=3,points_order=descending,returns_type=total_points)",
    "goofspiel(num_cards=4,points_order=descending,returns_type=win_loss)",
    "oshi_zumo(coins=4,size=1,horizon=4)",
)


def matrix_game(payoffs: list[np.ndarray]) -> Any:
    """A one-shot game of OpenSpiel."""
    if len(payoffs) == 2:
        return pyspiel.create_matrix_game(*(table.tolist() for table in payoffs))
    return pyspiel.create_tensor_game([table.ravel().tolist() for table in payoffs], list(payoffs[0].shape))


def load(name: str) -> Any:
    return pyspiel.load_game(name)


def payoffs(game: Any) -> list[np.ndarray]:
    """What each player gets for each joint action of a one-shot game."""
    state = game.new_initial_state()
    sizes = [len(state.legal_actions(player)) for player in range(game.num_players())]
    tables = np.zeros((len(sizes), *sizes))
    for joint in np.ndindex(*sizes):
        tables[(slice(None), *joint)] = _after(state, joint).returns()
    return list(tables)


def _after(state: Any, actions: Any) -> Any:
    ahead = state.clone()
    ahead.apply_actions([int(action) for action in actions])
    return ahead


def from_openspiel(game: Any) -> tuple[cmpg.JointGame, list[dict[str, int]]]:
    """A simultaneous game without chance, in which all agents see the state, as tables; and the states of each step."""
    layers = [{"": game.new_initial_state()}]
    moves: list[dict[tuple[str, tuple[int, ...]], tuple[str, list[float]]]] = []
    actions = game.num_distinct_actions()
    players = game.num_players()
    while layers[-1]:
        layers.append({})
        moves.append({})
        for name, state in layers[-2].items():
            for joint in np.ndindex(*(actions,) * players):
                legal = [state.legal_actions(player) for player in range(players)]
                chosen = [action if action in own else own[0] for action, own in zip(joint, legal, strict=True)]
                child = _after(state, chosen)
                ahead = "over" if child.is_terminal() else child.history_str()
                moves[-1][name, joint] = (ahead, child.rewards())
                if ahead != "over":
                    layers[-1].setdefault(ahead, child)
    horizon = len(moves)
    places = [{name: s for s, name in enumerate(layer)} for layer in layers[:-1]]
    size = 1 + max(map(len, places))  # the last state is the end
    shape = (size, *(actions,) * players)
    transition, rewards = np.zeros((horizon, *shape, size)), np.zeros((players, horizon, *shape))
    transition[..., -1] = 1.0
    for h, layer in enumerate(moves):
        for (name, joint), (ahead, got) in layer.items():
            place = (h, places[h][name], *joint)
            rewards[(slice(None), *place)] = got
            if ahead != "over" and h + 1 < horizon:
                transition[place] = np.eye(size)[places[h + 1][ahead]]
    tables = cmpg.JointGame(
        transition=transition,
        rewards=rewards,
        costs=np.zeros((0, 1, *shape)),
        thresholds=[],
        initial=np.eye(size)[0],
        horizon=horizon,
    )
    return tables, places


def gains(game: Any, rows: list[np.ndarray]) -> list[float]:
    """What each player of a one-shot game gains by its best response to mixed strategies."""
    turns = pyspiel.convert_to_turn_based(game)
    mixed = spiel_policy.TabularPolicy(turns)
    for state, row in zip(mixed.states, mixed.action_probability_array, strict=True):
        row[:] = 0.0
        row[: len(rows[state.current_player()])] = rows[state.current_player()]
    return _gains(turns, mixed)


def uniform_gains(game: Any) -> list[float]:
    """What each player gains against the uniform policy of the others."""
    turns = pyspiel.convert_to_turn_based(game)
    return _gains(turns, spiel_policy.UniformRandomPolicy(turns))


def _gains(turns: Any, policy: Any) -> list[float]:
    from open_spiel.python.algorithms import expected_game_score

    values = expected_game_score.policy_value(turns.new_initial_state(), [policy] * turns.num_players())
    best = [
        best_response.BestResponsePolicy(turns, player, policy).value(turns.new_initial_state())
        for player in range(turns.num_players())
    ]
    found = [float(there - here) for there, here in zip(best, values, strict=True)]
    assert abs(sum(found) - exploitability.nash_conv(turns, policy)) < 1e-9
    return found


def uniform_over_legal(game: Any, tables: cmpg.JointGame, places: list[dict[str, int]]) -> JointPolicy:
    """The uniform policy over legal actions; what is not legal plays the first legal action."""
    size, actions = tables.num_states, tables.num_actions[0]
    rows = np.full((tables.num_agents, tables.horizon, size, actions), 1.0 / actions)
    states = {"": game.new_initial_state()}
    for h, layer in enumerate(places):
        ahead = {}
        for name, s in layer.items():
            for player in range(tables.num_agents):
                legal = states[name].legal_actions(player)
                rows[player, h, s] = 0.0
                rows[player, h, s, legal] = 1.0 / len(legal)
            own = [states[name].legal_actions(player) for player in range(tables.num_agents)]
            for joint in np.ndindex(*map(len, own)):
                child = _after(states[name], [legal[a] for legal, a in zip(own, joint, strict=True)])
                if not child.is_terminal():
                    ahead.setdefault(child.history_str(), child)
        states = ahead
    return JointPolicy(tuple(rows))
