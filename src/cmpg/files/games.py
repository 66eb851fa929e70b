"""Game files: `format` = "cmpg-game", `version` = 1, and a `form`, in either container.

Joint: `horizon` (or `discount`), `initial` [S], `transition` [H or 1, S, *A, S], `rewards` [n, H or 1, S, *A], `costs`
[k, H or 1, S, *A], `thresholds` [k]. A sparse transition is `transition_indptr`, `transition_indices`,
`transition_data`, the CSR arrays of one matrix with rows in the order (step, state, *actions).

Counting: `horizon` (or `discount`), `initial` [S], `rewards` [H or 1, S, A, n + 1], `transition` [H or 1, S, C, S],
`costs` [k, H or 1, S, C], `thresholds` [k]; `boundaries` [C − 1] of the largest count, or nothing where every count
vector is a class of its own, in lexicographic order; where they are not zero, `private_rewards` [n, H or 1, S, A] and
`class_rewards` [H or 1, S, A, C].

Local: `horizon` (or `discount`, and then no table changes with the step), `thresholds` [k], `num_actions` [n], `delay`
[H or 1, E, n+1], `load_cost` [k, H or 1, E, n+1], and for each agent i `initial_i` [S_i], `reward_i` [H or 1, S_i,
A_i], `cost_i` [k, H or 1, S_i, A_i] (left out: zeros), the transition as CSR with rows in the order (step, state,
action), `transition_i_indptr`, `transition_i_indices`, `transition_i_data`, and the use of resources likewise,
`use_i_indptr`, `use_i_indices`, all ones. A row block of one step is stationary. With `like` [n], agent i has the
arrays of agent `like[i]`, except `initial_i` and, where given, `reward_i`. Further names: `resources` [E], and for each
agent lists of `states` and `actions`; and `legend`, the words and units of `cmpg.games.Legend` as JSON.

Crowd: `horizon`, `thresholds` [k], `numbers` [K], `num_actions` [K], and for each kind what a local game has for each
agent. Curves: `curve_points`, how many points each has, `curve_loads` and `curve_values`, one curve after the other; a
curve without points is constant + factor·load^power, three numbers in the next row of `curve_powers`. `delay` [H or 1,
E] and `load_costs` [k, H or 1, E] name curves. Further names: `kinds` [K], `resources` [E], `actions` (K lists).

A game without constraints may leave out `costs` and `thresholds`. Optional names: `agents` [n], `states` [S], `actions`
(n lists), `constraints` [k]. Whose constraint it is: `binds` [n, k] of zeros and ones; left out, every constraint binds
all agents. Every form is a pair of functions, game → fields and fields → game; which one a game has
is decided here, and nowhere else.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.errors import CMPGError, FileError, GameError, UnsupportedError
from cmpg.files.containers import Fields, number_table, read_fields, read_numbers, write_fields
from cmpg.files.fields import (
    checked_csr,
    dense_table,
    length_of_time,
    read_names,
    refuse_strange_fields,
    step_matrices,
    whole_number,
    whole_numbers,
    written_names,
)
from cmpg.games.constraints import bind
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.vectors import CountClasses, EveryCount, LargestCount
from cmpg.games.crowd.game import CrowdGame, Curve, LoadCurve, PowerCurve
from cmpg.games.game import Game, Legend, binds_of
from cmpg.games.joint.game import JointGame
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.games.names import legend_of, legend_record
from cmpg.games.rationals import as_given

TABLES = ("initial", "rewards", "costs", "thresholds")
TIME = ("horizon", "discount")
SPARSE = ("transition_indptr", "transition_indices", "transition_data")
REWARDS = ("private_rewards", "class_rewards")

NAMES = {"agents": "agent_names", "states": "state_names", "actions": "action_names", "constraints": "constraint_names"}
"""Names of a game's fields, by the fields of a file."""


def save_game(game: Game | CrowdGame, path: str | Path) -> None:
    """Write a game file, `.npz` or `.json`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> with TemporaryDirectory() as folder:
    ...     save_game(counter_example(), f"{folder}/game.npz")
    ...     load_game(f"{folder}/game.npz").thresholds
    array([0.5])
    """
    if form_of(game) is None:
        raise FileError(
            f"{path}: a {type(game).__name__} has no file form; joint, local and counting games and crowds have one."
        )
    write_fields(path, fields_of(game))


def load_game(path: str | Path, *, exact: bool = False) -> Game:
    """Read a game file.

    Parameters
    ----------
    path
        A `.json` or `.npz` file.
    exact
        Keep the numbers of a joint or a counting game as rationals, by which claims about it are judged. Numbers in a
        `.json` are then what is written there: 0.1 is 1/10, and "1/3" is one third; a float in a `.npz` is the rational
        that it stands for. A file with a number such as "1/3" is always read like this.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> with TemporaryDirectory() as folder:
    ...     save_game(counter_example(), f"{folder}/game.json")
    ...     load_game(f"{folder}/game.json", exact=True).rationals["thresholds"]
    array([Fraction(1, 2)], dtype=object)
    """
    fields, kept = read_numbers(path, kind="cmpg-game", exact=exact)
    if kept and not exact and fields.get("form") == "local":  # has floats alone
        fields, kept = read_fields(path, kind="cmpg-game"), False
    forms, form = _forms(), fields.get("form")
    if not isinstance(form, str) or form not in forms:
        raise FileError(f"{path}: its form is {reprlib.repr(form)}; one of {', '.join(forms)} is required.")
    body = {name: value for name, value in fields.items() if name not in ("format", "version", "form", "binds")}
    try:
        game = cast(Game, forms[form].from_fields(body, exact=kept))
        if "binds" not in fields:
            return game
        return bind(game, number_table("binds", fields["binds"]))
    except KeyError as missing:
        raise FileError(f"{path}: the field {missing} is missing; a {form} game needs it.") from None
    except CMPGError as problem:
        problem.args = (f"{path}: {problem}",)
        raise


def form_of(game: Game | CrowdGame) -> str | None:
    """Return the form in which a game is stored: "joint", "local" or "counting"; None for a class of a user's own."""
    return next((name for name, form in _forms().items() if isinstance(game, form.kind)), None)


def fields_of(game: Game | CrowdGame) -> Fields:
    """Return all fields of the file of a game that has a form."""
    form = form_of(game)
    assert form is not None
    fields: Fields = {"format": "cmpg-game", "version": 1, "form": form}
    if isinstance(game, CrowdGame):  # every constraint binds all agents
        return fields | _crowd_fields(game)
    binds = binds_of(game)
    mask = {} if binds.all() else {"binds": binds.astype(np.int64)}
    return fields | _forms()[form].to_fields(game) | mask


class Form(NamedTuple):
    """How one kind of game is written and read."""

    kind: type | tuple[type, ...]
    to_fields: Callable[[Any], Fields]
    from_fields: Callable[..., Any]


def _forms() -> dict[str, Form]:
    return {
        "joint": Form(JointGame, _joint_fields, _joint_from_fields),
        "local": Form((LocalGame, DiscountedLocalGame), local_fields, local_from_fields),
        "counting": Form(CountingGame, _counting_fields, _counting_from_fields),
        "crowd": Form(CrowdGame, _crowd_fields, _crowd_from_fields),
    }


def _joint_fields(game: JointGame) -> Fields:
    if game.is_sparse:
        stacked = sp.vstack(game.transition, format="csr")
        transition = dict(zip(SPARSE, (stacked.indptr, stacked.indices, stacked.data), strict=True))
    else:
        transition = {"transition": as_given(game, "transition")}
    return _common_fields(game) | transition | _legend_fields(game)


def _joint_from_fields(fields: Fields, *, exact: bool) -> JointGame:
    refuse_strange_fields(fields, (*TABLES, *NAMES, *TIME, "transition", *SPARSE, "legend"), form="a joint game")
    read = _common_from_fields(fields, exact=exact)
    if any(name in fields for name in SPARSE):
        transition = _sparse_transition(fields, read["rewards"].shape, exact=exact)
    else:
        transition = number_table("transition", fields["transition"], exact=exact)
    return JointGame(transition=transition, legend=_legend(fields), **read)


def _sparse_transition(fields: Fields, shape: tuple[int, ...], *, exact: bool) -> Any:
    if len(shape) < 4:
        raise GameError(f"rewards has shape {list(shape)}; [n, H or 1, S, A_1, …, A_n] is required.")
    stacked = checked_csr("transition", [fields[name] for name in SPARSE], columns=shape[2])
    steps = step_matrices("transition", stacked, math.prod(shape[2:]))
    return dense_table(stacked, fields[SPARSE[2]], shape=(*shape[2:], shape[2])) if exact else steps


def _counting_fields(game: CountingGame) -> Fields:
    fields = _common_fields(game) | {"transition": as_given(game, "transition")}
    fields |= {name: as_given(game, name) for name in REWARDS if getattr(game, name).any()}
    if isinstance(game.classes, LargestCount):
        fields["boundaries"] = np.array(game.classes.boundaries, dtype=np.int64)
    return fields


def _counting_from_fields(fields: Fields, *, exact: bool) -> CountingGame:
    known = (*TABLES, *NAMES, *TIME, "transition", *REWARDS, "boundaries")
    refuse_strange_fields(fields, known, form="a counting game")
    given = ("transition", *(name for name in REWARDS if name in fields))
    tables: Fields = {name: number_table(name, fields[name], exact=exact) for name in given}
    return CountingGame(classes=_classes(fields), **tables, **_common_from_fields(fields, exact=exact))


def _classes(fields: Fields) -> CountClasses:
    if "boundaries" not in fields:
        return EveryCount()
    boundaries = number_table("boundaries", fields["boundaries"])
    if boundaries.ndim != 1:
        raise GameError(f"boundaries has shape {list(boundaries.shape)}; a plain list of numbers is required.")
    return LargestCount(tuple(boundaries.tolist()))


def _common_fields(game: JointGame | CountingGame) -> Fields:
    """Return what joint and counting games have in common."""
    fields: Fields = {name: as_given(game, name) for name in TABLES}
    fields |= {"horizon": game.horizon} if game.discount is None else {"discount": as_given(game, "discount")}
    return fields | written_names(game, NAMES, by_agent=("actions",))


def _common_from_fields(fields: Fields, *, exact: bool) -> Fields:
    given = {"costs": [], "thresholds": [], **fields}
    tables = {name: number_table(name, given[name], exact=exact) for name in TABLES}
    return tables | length_of_time(fields, exact=exact) | read_names(fields, NAMES, by_agent=("actions",))


LOCAL_NAMES = {
    "agents": "agent_names",
    "constraints": "constraint_names",
    "resources": "resource_names",
    "states": "state_names",
    "actions": "action_names",
}
"""Names of a game's fields, by the fields of a file."""

BY_AGENT = ("states", "actions")


def local_fields(game: LocalGame | DiscountedLocalGame) -> Fields:
    """Return the fields of a local game; agents that share arrays are stored once."""
    fields: Fields = {
        **({"horizon": game.horizon} if game.discount is None else {"discount": game.discount}),
        "thresholds": game.thresholds,
        "num_actions": np.array([actions for _, _, actions in game.policy_shapes]),
        "delay": game.delay,
        "load_cost": game.load_costs,
    }
    first_of_kind: dict[tuple[int, ...], int] = {}
    like = []
    for i, agent in enumerate(game.agents):
        kind = tuple(id(part) for part in (*agent.transition, *agent.uses, agent.costs))
        like.append(first_of_kind.setdefault(kind, i))
        fields |= _agent_fields(i, agent, alone=like[i] == i)
    if like != list(range(len(like))):
        fields["like"] = np.array(like)
    return fields | _legend_fields(game) | written_names(game, LOCAL_NAMES, by_agent=BY_AGENT)


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


def local_from_fields(fields: Fields, *, exact: bool) -> LocalGame | DiscountedLocalGame:
    """Build a local game from its fields."""
    if exact:
        raise UnsupportedError("LocalGame", "has no exact mode", "Leave `exact` out, and rounding is bounded instead.")
    actions = whole_numbers("num_actions", fields["num_actions"])
    delay = number_table("delay", fields["delay"])
    if len(actions) == 0 or actions.min() < 1 or delay.ndim != 3:
        raise GameError("num_actions must be [n], with an action for each agent, and delay [H or 1, E, n + 1].")
    known = [*TIME, "thresholds", "num_actions", "delay", "load_cost", "like", "legend", *LOCAL_NAMES]
    known += [name.format(i) for name in ("initial_{}", "reward_{}", *SHARED) for i in range(len(actions))]
    refuse_strange_fields(fields, known, form=f"a local game of {len(actions)} agents")
    agents = _agents(fields, actions.tolist(), resources=delay.shape[1])
    given: Fields = {
        "agents": agents,
        "delay": delay,
        "load_costs": number_table("load_cost", fields.get("load_cost", [])),
        "thresholds": number_table("thresholds", fields.get("thresholds", [])),
        "legend": _legend(fields),
        **read_names(fields, LOCAL_NAMES, by_agent=BY_AGENT),
    }
    time = length_of_time(fields, exact=False)
    if time["discount"] is None:
        return LocalGame(**given, horizon=whole_number("horizon", fields["horizon"]))
    if time["horizon"] is not None:
        raise GameError("give exactly one of horizon (a finite sum) and discount (an infinite one).")
    return DiscountedLocalGame(**given, discount=time["discount"])


CROWD_NAMES = {
    "kinds": "kind_names",
    "constraints": "constraint_names",
    "resources": "resource_names",
    "actions": "action_names",
}
CROWD_ARRAYS = ("numbers", "delay", "load_costs")


def _crowd_fields(game: CrowdGame) -> Fields:
    """Return the fields of a crowd: kinds as the agents of a local game, curves one after the other."""
    lines = [curve for curve in game.curves if isinstance(curve, LoadCurve)]
    powers = [(each.constant, each.factor, each.power) for each in game.curves if isinstance(each, PowerCurve)]
    points = [len(curve.loads) if isinstance(curve, LoadCurve) else 0 for curve in game.curves]
    fields: Fields = {
        "horizon": game.horizon,
        "thresholds": game.thresholds,
        "num_actions": np.array([actions for _, _, actions in game.policy_shapes]),
        "curve_points": np.array(points),
        "curve_loads": np.concatenate([np.zeros(0, dtype=np.int64), *(curve.loads for curve in lines)]),
        "curve_values": np.concatenate([np.zeros(0), *(curve.values for curve in lines)]),
    }
    fields |= {"curve_powers": np.array(powers)} if powers else {}
    fields |= {name: np.asarray(getattr(game, name)) for name in CROWD_ARRAYS}
    for k, kind in enumerate(game.kinds):
        fields |= _agent_fields(k, kind, alone=True)
    return fields | _legend_fields(game) | written_names(game, CROWD_NAMES, by_agent=("actions",))


def _crowd_from_fields(fields: Fields, *, exact: bool) -> CrowdGame:
    if exact:
        raise UnsupportedError("CrowdGame", "has no exact mode", "Leave `exact` out, and rounding is bounded instead.")
    actions = whole_numbers("num_actions", fields["num_actions"])
    per_kind = [name.format(k) for name in ("initial_{}", "reward_{}", *SHARED) for k in range(len(actions))]
    known = ("horizon", "thresholds", "num_actions", "legend", *CROWD_ARRAYS, *CROWD_NAMES, *per_kind)
    curves = ("curve_points", "curve_loads", "curve_values")
    refuse_strange_fields(fields, (*known, *curves, "curve_powers"), form=f"a crowd of {len(actions)} kinds")
    delay = number_table("delay", fields["delay"])
    if delay.ndim != 2 or len(actions) == 0 or actions.min() < 1:
        raise GameError("num_actions must be [K], with an action for each kind, and delay [H or 1, E], of curves.")
    return CrowdGame(
        kinds=tuple(
            _agent_from_fields(fields, k, num_actions=count, resources=delay.shape[1])
            for k, count in enumerate(actions.tolist())
        ),
        numbers=number_table("numbers", fields["numbers"]),
        curves=_curves(fields),
        delay=delay,
        load_costs=number_table("load_costs", fields["load_costs"]),
        thresholds=number_table("thresholds", fields["thresholds"]),
        horizon=whole_number("horizon", fields["horizon"]),
        legend=_legend(fields),
        **read_names(fields, CROWD_NAMES, by_agent=("actions",)),
    )


def _curves(fields: Fields) -> tuple[Curve, ...]:
    """Read the curves of a crowd, those through points and those by powers, in the order of the file."""
    points, loads = (whole_numbers(name, fields[name]) for name in ("curve_points", "curve_loads"))
    values = number_table("curve_values", fields["curve_values"])
    powers = number_table("curve_powers", fields["curve_powers"]) if "curve_powers" in fields else np.zeros((0, 3))
    if points.min(initial=0) < 0 or points.sum() != len(loads) or loads.shape != values.shape:
        raise GameError("curve_points must count the points of each curve, as many as curve_loads and curve_values.")
    if powers.ndim != 2 or powers.shape != (np.count_nonzero(points == 0), 3):
        raise GameError("curve_powers must have a row (constant, factor, power) for each curve that has no points.")
    rows, ends = iter(powers.tolist()), np.cumsum(points)
    return tuple(
        LoadCurve(loads[end - count : end], values[end - count : end]) if count else PowerCurve(*next(rows))
        for count, end in zip(points.tolist(), ends.tolist(), strict=True)
    )


def _legend_fields(game: JointGame | LocalGame | DiscountedLocalGame | CrowdGame) -> Fields:
    return {} if game.legend is None else {"legend": json.dumps(legend_record(game.legend))}


def _legend(fields: Fields) -> Legend | None:
    given = fields.get("legend")
    if given is None:
        return None
    try:
        return legend_of(json.loads(given) if isinstance(given, str) else given)
    except (ValueError, RecursionError):
        raise GameError("legend is not the JSON of words and units that it should be.") from None


def _agents(fields: Fields, num_actions: list[int], *, resources: int) -> tuple[LocalAgent, ...]:
    """Build all agents, those who are like another after that one."""
    like = whole_numbers("like", fields.get("like", list(range(len(num_actions))))).tolist()
    if len(like) != len(num_actions) or not all(0 <= twin < len(like) for twin in like):
        raise GameError(f"like is {reprlib.repr(like)}; one agent, 0 to {len(num_actions) - 1}, for each is required.")
    agents: dict[int, LocalAgent] = {}
    for agent in range(len(like)):
        chain = [agent]
        while chain[-1] not in agents and like[chain[-1]] != chain[-1]:
            chain.append(like[chain[-1]])
            if len(chain) > len(like):
                raise GameError(f"like leads from agent {agent} in a circle; one agent of a kind must be like itself.")
        for i in reversed(chain):
            if i in agents:
                continue
            if like[i] == i:
                agents[i] = _agent_from_fields(fields, i, num_actions=num_actions[i], resources=resources)
            else:
                agents[i] = _agent_like(fields, i, num_actions=num_actions[i], twin=agents[like[i]])
    return tuple(agents[i] for i in range(len(like)))


def _agent_from_fields(fields: Fields, i: int, *, num_actions: int, resources: int) -> LocalAgent:
    initial = _initial(fields, i)
    transition = checked_csr(
        f"transition_{i}",
        [fields[f"transition_{i}_{part}"] for part in ("indptr", "indices", "data")],
        columns=len(initial),
    )
    used = whole_numbers(f"use_{i}_indices", fields[f"use_{i}_indices"])
    uses = checked_csr(f"use_{i}", [fields[f"use_{i}_indptr"], used, np.ones(len(used))], columns=resources)
    rows = len(initial) * num_actions
    return LocalAgent(
        transition=step_matrices(f"transition_{i}", transition, rows),
        reward=_reward(fields, i, (len(initial), num_actions)),
        uses=step_matrices(f"use_{i}", uses, rows),
        initial=initial,
        costs=number_table(f"cost_{i}", fields[f"cost_{i}"]) if f"cost_{i}" in fields else None,
    )


def _agent_like(fields: Fields, i: int, *, num_actions: int, twin: LocalAgent) -> LocalAgent:
    """Build an agent that shares the arrays of another one; its start is its own, and its reward where given."""
    shared = [name.format(i) for name in SHARED if name.format(i) in fields]
    if shared:
        raise GameError(f"agent {i} is like another one, and has {shared[0]!r} of its own. Remove one of the two.")
    if num_actions != twin.num_actions:
        raise GameError(f"num_actions[{i}] is {num_actions}; agent {i} is like one with {twin.num_actions} actions.")
    reward = _reward(fields, i, (twin.num_states, num_actions)) if f"reward_{i}" in fields else twin.reward
    return replace(twin, initial=_initial(fields, i), reward=reward)


def _initial(fields: Fields, i: int) -> FloatArray:
    initial = number_table(f"initial_{i}", fields[f"initial_{i}"])
    if initial.ndim != 1 or not len(initial):
        raise GameError(f"initial_{i} has shape {list(initial.shape)}; [S_{i}] with at least one state is required.")
    return initial


def _reward(fields: Fields, i: int, shape: tuple[int, int]) -> FloatArray:
    reward = number_table(f"reward_{i}", fields[f"reward_{i}"])
    if reward.ndim != 3 or reward.shape[1:] != shape:
        wanted = f"[H or 1, {shape[0]}, {shape[1]}]"
        raise GameError(f"reward_{i} has shape {list(reward.shape)}; {wanted} is required: states, then actions.")
    return reward


SHARED = (
    "transition_{}_indptr",
    "transition_{}_indices",
    "transition_{}_data",
    "use_{}_indptr",
    "use_{}_indices",
    "cost_{}",
)
"""What an agent has in common with those who are like it."""
