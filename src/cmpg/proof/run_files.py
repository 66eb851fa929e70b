"""A claim from the files of a run, by numpy alone: `game.npz` and `policy.npz`.

Nothing is believed: a field that is unknown, missing or of another kind is refused with its name, and `claim` checks
every shape and every row. `main` is the command of the stand-alone script (`script`):

    python independent_check.py game.npz policy.npz [epsilon] [allowed]

prints what is proved of each agent and each constraint. Its exit code is 0 if every threshold is met, or exceeded by
no more than `allowed` (0 unless given), and no agent gains more than `epsilon` (1e-6 unless given); and 1 otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cmpg.proof.claim import AgentTables, Claim, ClaimError, CountingTables, Csr, JointTables, LocalTables
from cmpg.proof.rounding import Array
from cmpg.proof.verdict import judge

MAX_ACTIONS = 2**15
"""A compact policy has at most this many actions, so that a small file does not stand for a huge table."""

NAMES = {"agents", "states", "actions", "constraints", "resources", "legend"}
"""Fields of a game that are for readers, and prove nothing."""


class _Fields:
    """The arrays of a file."""

    def __init__(self, path: str, kind: str, versions: Iterable[int]) -> None:
        try:
            with np.load(path) as file:
                self._fields = {name: file[name] for name in file.files}
                doubled = len(self._fields) < len(file.files)
        except (OSError, ValueError, BadZipFile, EOFError, AttributeError) as problem:
            raise ClaimError(f"{path} cannot be read as a file of arrays: {problem}.") from None
        if doubled:
            raise ClaimError(f"{path} has two arrays of the same name.")
        self._path, self._read = path, {"format", "version"}
        if str(self._fields.get("format")) != kind or self._fields.get("version") not in list(versions):
            raise ClaimError(f"{path} has another format or version; {kind}, version {[*versions]}, is required.")

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def names(self, start: str) -> list[str]:
        """Return the names that begin so."""
        return [name for name in self._fields if name.startswith(start)]

    def numbers(self, name: str, axes: int | None = None) -> Array:
        """Return a table of floats with so many axes."""
        table = self._given(name)
        exact = (table.dtype.kind == "f" and table.dtype.itemsize <= 8) or (
            table.dtype.kind in "iu" and bool(np.all((table >= -(2**53)) & (table <= 2**53)))
        )
        if not exact or (axes is not None and table.ndim != axes):
            wanted = "" if axes is None else f" with {axes} axes"
            raise ClaimError(f"{name} is no table of floats{wanted}.")
        return table.astype(np.float64)

    def whole(self, name: str, axes: int) -> Array:
        """Return a table of whole numbers with so many axes."""
        table = self._given(name)
        if table.dtype.kind not in "iu" or table.ndim != axes:
            raise ClaimError(f"{name} is no table of whole numbers with {axes} axes.")
        return table.astype(np.int64)

    def word(self, name: str) -> str:
        """Return a word."""
        return str(self._given(name))

    def nothing_left(self, known: Iterable[str] = ()) -> None:
        """Raise if there is a field that was not read."""
        strange = self._fields.keys() - self._read - set(known)
        if strange:
            raise ClaimError(f"{self._path} has the field {min(strange)}, which is not known here.")

    def _given(self, name: str) -> Array:
        if name not in self._fields:
            raise ClaimError(f"{self._path} has no field {name}.")
        self._read.add(name)
        found: Array = self._fields[name]
        return found


def read_claim(game_path: str, policy_path: str) -> Claim:
    """Read the claim that a game file and a policy file make.

    Raises
    ------
    ClaimError
        A file cannot be read, or says something that no claim says.
    """
    game, given = _Fields(game_path, "cmpg-game", (1,)), _Fields(policy_path, "cmpg-policy", (1, 2))
    policy = _policy(given)
    thresholds = game.numbers("thresholds", 1) if "thresholds" in game else np.zeros(0)
    size = (len(policy), len(thresholds))
    multipliers = given.numbers("multipliers", 2) if "multipliers" in given else np.zeros(size)
    binds = game.whole("binds", 2) if "binds" in game else np.ones(size, dtype=np.int64)
    if not np.isin(binds, (0, 1)).all():
        raise ClaimError("binds has an entry other than 0 and 1.")
    readers: dict[str, Any] = {"joint": _joint, "counting": _counting, "local": _local}
    form = game.word("form")
    if form not in readers:
        raise ClaimError(f"the form of the game is {form[:20]!r}; one of {', '.join(readers)} is required.")
    tables = readers[form](game, *size)
    horizon = int(game.whole("horizon", 0)) if "horizon" in game else None
    discount = float(game.numbers("discount", 0)) if "discount" in game else None
    game.nothing_left(NAMES)
    given.nothing_left()
    return Claim(tables, horizon, discount, thresholds, binds.astype(bool), policy, multipliers)


def _policy(given: _Fields) -> tuple[Array, ...]:
    if "num_actions" not in given:
        count = len(given.names("agent_"))
        tables = [given.numbers(f"agent_{i}", 3) for i in range(count)]
    else:
        tables = [_compact(given, i, actions) for i, actions in enumerate(given.whole("num_actions", 1).tolist())]
    if not tables:
        raise ClaimError("the policy has no agents.")
    return tuple(tables)


def _compact(given: _Fields, agent: int, num_actions: int) -> Array:
    """Return the table of one agent, which version 2 of the file has as actions, and as rows that mix."""
    actions = given.whole(f"agent_{agent}_actions", 2)
    if not 0 < num_actions <= MAX_ACTIONS or np.any((actions < 0) | (actions >= num_actions)):
        raise ClaimError(f"agent_{agent}_actions has an action that does not exist.")
    table = np.zeros((*actions.shape, num_actions))
    np.put_along_axis(table, actions[..., None], 1.0, axis=2)
    if f"agent_{agent}_mixed" in given:
        mixed, rows = given.whole(f"agent_{agent}_mixed", 2), given.numbers(f"agent_{agent}_rows", 2)
        fits = mixed.shape == (len(np.unique(mixed, axis=0)), 2) and rows.shape == (len(mixed), num_actions)
        if not fits or np.any((mixed < 0) | (mixed >= actions.shape)):
            raise ClaimError(f"agent_{agent}_mixed has a step or a state that does not exist or is there twice.")
        table[tuple(mixed.T)] = rows
    return table


def _joint(game: _Fields, agents: int, constraints: int) -> JointTables:
    rewards = game.numbers("rewards", agents + 3)
    states, cells = rewards.shape[2], rewards.shape[2:]
    rows = int(np.prod(cells))
    if "transition" in game:
        dense = game.numbers("transition", agents + 3)
        if dense.shape[1:] != (*cells, states):
            raise ClaimError(f"transition has shape {list(dense.shape)}; [H or 1, S, *A, S] is required.")
        transition: tuple[Any, ...] = tuple(dense.reshape(len(dense), rows, states))
    else:
        transition = _steps(game, "transition", rows, states)
    costs = _costs(game, "costs", constraints, cells)
    return JointTables(game.numbers("initial", 1), transition, rewards, costs)


def _counting(game: _Fields, agents: int, constraints: int) -> CountingTables:
    rewards, dense = game.numbers("rewards", 4), game.numbers("transition", 4)
    (states, actions), classes = rewards.shape[1:3], dense.shape[2]
    if dense.shape[1:] != (states, classes, states):
        raise ClaimError(f"transition has shape {list(dense.shape)}; [H or 1, S, C, S] is required.")

    def more(name: str, shape: tuple[int, ...]) -> Array:
        return game.numbers(name, len(shape)) if name in game else np.zeros(shape)

    return CountingTables(
        initial=game.numbers("initial", 1),
        transition=tuple(dense.reshape(len(dense), states * classes, states)),
        rewards=rewards,
        private_rewards=more("private_rewards", (agents, 1, states, actions)),
        class_rewards=more("class_rewards", (1, states, actions, classes)),
        costs=_costs(game, "costs", constraints, (states, classes)),
        boundaries=tuple(game.whole("boundaries", 1).tolist()) if "boundaries" in game else None,
    )


def _local(game: _Fields, agents: int, constraints: int) -> LocalTables:
    num_actions, delay = game.whole("num_actions", 1), game.numbers("delay", 3)
    like = game.whole("like", 1) if "like" in game else np.arange(agents)
    if len(num_actions) != agents or len(like) != agents or np.any((like < 0) | (like >= agents)):
        raise ClaimError(f"num_actions and like need an entry for each of the {agents} agents of the policy.")
    kinds: dict[int, tuple[Any, ...]] = {}  # what agents have that are like each other
    rewards: dict[str, Array] = {}
    members = []
    for i in range(agents):
        chain = [i]
        while like[chain[-1]] != chain[-1]:
            chain.append(int(like[chain[-1]]))
            if len(chain) > agents:
                raise ClaimError(f"like leads from agent {i} in a circle.")
        kind, initial = chain[-1], game.numbers(f"initial_{i}", 1)
        if kind not in kinds:
            states = len(game.numbers(f"initial_{kind}", 1))
            rows = states * int(num_actions[kind])
            costs = game.numbers(f"cost_{kind}", 4) if f"cost_{kind}" in game else None
            moves = _steps(game, f"transition_{kind}", rows, states)
            kinds[kind] = moves, _steps(game, f"use_{kind}", rows, delay.shape[1]), costs
        own = next((f"reward_{each}" for each in chain if f"reward_{each}" in game), f"reward_{kind}")
        reward = rewards.setdefault(own, game.numbers(own, 3))
        if reward.shape[1:] != (len(initial), num_actions[i]):
            raise ClaimError(f"{own} has shape {list(reward.shape)}; [H or 1, S, A] of agent {i} is required.")
        moves, uses, costs = kinds[kind]
        members.append(AgentTables(initial, moves, uses, reward, costs))
    return LocalTables(tuple(members), delay, _costs(game, "load_cost", constraints, delay.shape[1:]))


def _costs(game: _Fields, name: str, constraints: int, shape: tuple[int, ...]) -> Array:
    """Return costs [k, H or 1, …]; a game without constraints need not have any."""
    costs = game.numbers(name) if name in game else np.zeros(0)
    return np.zeros((0, 1, *shape)) if not constraints and not costs.size else costs


def _steps(game: _Fields, name: str, rows: int, columns: int) -> tuple[Csr, ...]:
    """Return the sparse matrices of all steps, which a file has one below the other; `use` has no data, but ones."""
    starts, indices = game.whole(f"{name}_indptr", 1), game.whole(f"{name}_indices", 1)
    data = np.ones(len(indices)) if name.startswith("use_") else game.numbers(f"{name}_data", 1)
    whole = rows > 0 and len(starts) > 1 and (len(starts) - 1) % rows == 0
    if not whole or starts[0] != 0 or starts[-1] != len(indices) or np.any(np.diff(starts) < 0):
        raise ClaimError(f"{name} is no sparse matrix with {rows} rows for each step.")
    if len(data) != len(indices):
        raise ClaimError(f"{name} has {len(indices)} columns and {len(data)} entries.")
    found = []
    for first in range(0, len(starts) - 1, rows):
        part = slice(int(starts[first]), int(starts[first + rows]))
        found.append(Csr(starts[first : first + rows + 1] - starts[first], indices[part], data[part], columns))
    return tuple(found)


def main(words: list[str]) -> int:
    """Judge the claim of two files, print what is proved, and return the exit code."""
    if not 2 <= len(words) <= 4:
        print(f"usage: python {sys.argv[0]} game.npz policy.npz [epsilon] [allowed]", file=sys.stderr)
        return 2
    try:
        epsilon, allowed = (float(words[i]) if len(words) > i else usual for i, usual in ((2, 1e-6), (3, 0.0)))
        found = judge(claim := read_claim(*words[:2]))
    except ValueError as problem:  # a ClaimError, or a word that is no number
        print(f"not proved: {problem}", file=sys.stderr)
        return 1
    for i, (value, gain) in enumerate(zip(found.values, found.gains, strict=True)):
        print(f"agent {i}: value {value:.9g}, gains at most {gain:.3g}")
    for j, (cost, limit) in enumerate(zip(found.costs, claim.thresholds, strict=True)):
        print(f"constraint {j}: cost {cost:.9g}, threshold {limit:.9g}")
    excess, gain = found.excess.max(initial=0.0), found.gains.max()
    proved = bool(excess <= allowed and gain <= epsilon)
    if not proved and gain <= epsilon:
        print(f"a threshold may be exceeded by {excess:.3g}; if that is fine, allow it as a fourth argument")
    more = "" if excess == 0 else f", and no threshold is exceeded by more than {allowed:g}"
    print(f"proved: no agent gains more than {epsilon:g}{more}" if proved else "not proved")
    return 0 if proved else 1
