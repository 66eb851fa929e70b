"""The file form "local": own states, own dynamics, shared resources.

Fields: `horizon`, `thresholds` [k], `num_actions` [n], `delay` [H or 1, E, n+1], `load_cost` [k, H or 1, E, n+1], and
for each agent i `initial_i` [S_i], `reward_i` [H or 1, S_i, A_i], `cost_i` [k, H or 1, S_i, A_i] (left out: zeros),
the transition as CSR with rows in the order (step, state, action), `transition_i_indptr`, `transition_i_indices`,
`transition_i_data`, and the use of resources likewise, `use_i_indptr`, `use_i_indices`, all ones. A row block of one
step is stationary. With `like` [n], agent i has the arrays of agent `like[i]`, except `initial_i` and, where given,
`reward_i`. Optional names: `agents`, `constraints`, `resources`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.checks import FileError, FloatArray, GameError
from cmpg.games.fields import checked_csr, names_of, whole_number
from cmpg.games.local import LocalAgent, LocalGame
from cmpg.storage import Fields

NAMES = ("agents", "constraints", "resources")


def local_fields(game: LocalGame) -> Fields:
    """Return the fields of a local game; agents that share arrays are stored once."""
    fields: Fields = {
        "horizon": game.horizon,
        "thresholds": game.thresholds,
        "num_actions": np.array([actions for _, _, actions in game.policy_shapes]),
        "delay": game.delay,
        "load_cost": game.load_costs,
    }
    first_of_kind: dict[tuple[int, ...], int] = {}
    like = []
    for i, agent in enumerate(game.members):
        kind = tuple(id(part) for part in (*agent.transition, *agent.uses, agent.costs))
        like.append(first_of_kind.setdefault(kind, i))
        fields |= _agent_fields(i, agent, alone=like[i] == i)
    if like != list(range(len(like))):
        fields["like"] = np.array(like)
    return fields | {name: list(getattr(game, name)) for name in NAMES if getattr(game, name) is not None}


def _agent_fields(i: int, agent: LocalAgent, *, alone: bool) -> Fields:
    fields: Fields = {f"initial_{i}": agent.initial, f"reward_{i}": agent.reward}
    if alone:
        transition, uses = sp.vstack(agent.transition, format="csr"), sp.vstack(agent.uses, format="csr")
        fields |= {
            f"transition_{i}_indptr": transition.indptr,
            f"transition_{i}_indices": transition.indices,
            f"transition_{i}_data": transition.data,
            f"use_{i}_indptr": uses.indptr,
            f"use_{i}_indices": uses.indices,
        }
        if agent.costs is not None and np.any(agent.costs):
            fields[f"cost_{i}"] = agent.costs
    return fields


def local_from_fields(fields: Fields) -> LocalGame:
    """Build a local game from its fields."""
    actions = np.asarray(fields["num_actions"], dtype=np.int64)
    delay = _floats("delay", fields["delay"])
    if actions.ndim != 1 or len(actions) == 0 or delay.ndim != 3:
        raise GameError("num_actions must be [n] and delay [H or 1, E, n + 1].")
    _refuse_strange_fields(fields, len(actions))
    like = np.asarray(fields.get("like", np.arange(len(actions))), dtype=np.int64)
    if like.shape != actions.shape or like.min() < 0 or (like > np.arange(len(like))).any():
        raise GameError(f"like is {like.tolist()}; every agent must be like itself or an earlier one.")
    members: list[LocalAgent] = []
    for i, count in enumerate(actions.tolist()):
        twin = members[like[i]] if like[i] != i else None
        members.append(_agent_from_fields(fields, i, num_actions=count, resources=delay.shape[1], twin=twin))
    return LocalGame(
        members=tuple(members),
        delay=delay,
        load_costs=_floats("load_cost", fields["load_cost"]),
        thresholds=_floats("thresholds", fields["thresholds"]),
        horizon=whole_number("horizon", fields["horizon"]),
        **{name: names_of(fields[name]) for name in NAMES if name in fields},
    )


def _agent_from_fields(
    fields: Fields, i: int, *, num_actions: int, resources: int, twin: LocalAgent | None
) -> LocalAgent:
    initial = _floats(f"initial_{i}", fields[f"initial_{i}"])
    if twin is not None:
        reward = _floats(f"reward_{i}", fields[f"reward_{i}"]) if f"reward_{i}" in fields else twin.reward
        return LocalAgent(transition=twin.transition, reward=reward, uses=twin.uses, initial=initial, costs=twin.costs)
    rows = len(initial) * num_actions
    transition = checked_csr(
        f"transition_{i}",
        [fields[f"transition_{i}_{part}"] for part in ("indptr", "indices", "data")],
        columns=len(initial),
    )
    ones = np.ones(len(np.asarray(fields[f"use_{i}_indices"])))
    uses = checked_csr(f"use_{i}", [fields[f"use_{i}_indptr"], fields[f"use_{i}_indices"], ones], columns=resources)
    return LocalAgent(
        transition=_steps(f"transition_{i}", transition, rows),
        reward=_floats(f"reward_{i}", fields[f"reward_{i}"]),
        uses=_steps(f"use_{i}", uses, rows),
        initial=initial,
        costs=_floats(f"cost_{i}", fields[f"cost_{i}"]) if f"cost_{i}" in fields else None,
    )


def _steps(name: str, stacked: sp.csr_array, rows: int) -> tuple[sp.csr_array, ...]:
    """Cut a stack of step matrices into steps."""
    if rows == 0 or stacked.shape[0] % rows:
        raise GameError(f"{name}_indptr has {stacked.shape[0]} rows; a multiple of S·A = {rows} is required.")
    return tuple(stacked[start : start + rows] for start in range(0, stacked.shape[0], rows))


def _floats(name: str, value: Any) -> FloatArray:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise GameError(f"{name} is not a rectangular array of numbers.") from None


def _refuse_strange_fields(fields: Fields, num_agents: int) -> None:
    per_agent = (
        "initial_{}",
        "reward_{}",
        "cost_{}",
        "transition_{}_indptr",
        "transition_{}_indices",
        "transition_{}_data",
    )
    known = {"horizon", "thresholds", "num_actions", "delay", "load_cost", "like", *NAMES}
    known |= {name.format(i) for name in (*per_agent, "use_{}_indptr", "use_{}_indices") for i in range(num_agents)}
    strange = sorted(set(fields) - known)
    if strange:
        raise FileError(
            f"unknown field {', '.join(strange[:5])}; a local game of {num_agents} agents has no such field."
        )
