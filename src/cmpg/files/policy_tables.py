"""Policies that other programs write: rows in a `.csv`, or probabilities in a `.json`, read for a game that is known.

A `.csv` is what `cmpg export --what policy` writes: columns `agent`, `step`, `state`, `action` (whole numbers from 0)
and `probability`; other columns, such as the names, are ignored. What is not listed has probability zero, and every
(agent, step, state) must be listed.

A `.json` is a policy file (`cmpg.files.policies`), or an object without a `format` that has a table of probabilities
[H, S, A] for each agent, by its name, `agent_0`, `agent_1`, …, or `0`, `1`, …: a table [S, A], or one step, serves all
steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, is_fraction, rational
from cmpg.errors import FileError, PolicyError
from cmpg.files.containers import as_path, check_regular, number_table, read_fields, read_numbers
from cmpg.files.policies import load_policy
from cmpg.games.game import Game
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.policy import JointPolicy, policy_table
from cmpg.scenarios.readers.text import Line, csv_rows, is_whole

COLUMNS = ("agent", "step", "state", "action", "probability")


def read_policy(path: str | Path, game: Any, *, exact: bool = False) -> tuple[JointPolicy, FloatArray | None]:
    r"""Read a policy of a game from a `.npz`, `.json` or `.csv`, with its multipliers if the file has them.

    Parameters
    ----------
    path
        A policy file, rows as `cmpg export --what policy` writes them, or a `.json` of probabilities by agent.
    game
        Whose policy it is: sizes, and the names of the agents.
    exact
        Keep numbers as the rationals that are written there. If one of them is a fraction such as 1/3, they are kept
        in any case.

    Raises
    ------
    FileError, PolicyError
        The file cannot be read, or has no policy of this game.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cmpg.scenarios import counter_example
    >>> rows = "agent,step,state,action,probability\n0,0,0,1,1\n1,0,0,0,1\n"
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/mine.csv").write_text(rows)
    ...     policy, _ = read_policy(f"{folder}/mine.csv", counter_example())
    >>> policy[0].tolist(), policy[1].tolist()
    ([[[0.0, 1.0]]], [[[1.0, 0.0]]])
    """
    source = as_path(path)
    multipliers: FloatArray | None = None
    if source.suffix.lower() == ".csv":
        policy = _from_rows(source, game, exact=exact)
    elif source.suffix.lower() == ".json" and "format" not in read_fields(source):
        fields, kept = read_numbers(source, exact=exact)
        policy = _from_tables(source, fields, game, exact=kept)
    else:
        policy, multipliers = load_policy(source, exact=exact)
    try:
        if isinstance(game, DiscountedLocalGame):  # any number of steps
            game.steps_of(policy)
        else:
            policy.check_fits(game.policy_shapes)
    except PolicyError as problem:
        raise PolicyError(f"{source}: {problem} Is it the policy of another game?") from None
    return policy, multipliers


def _from_rows(source: Path, game: Game, *, exact: bool) -> JointPolicy:
    """Read a `.csv` of rows."""
    check_regular(source)
    tables: list[Any] = [
        np.full(shape, Fraction(0), dtype=object) if exact else np.full(shape, np.nan) for shape in game.policy_shapes
    ]
    listed = [np.zeros(shape, dtype=bool) for shape in game.policy_shapes]
    for row, line in csv_rows(source, COLUMNS, advice="`cmpg export RUN --what policy` writes such a file."):
        agent = _index(line, "agent", row, len(tables))
        sizes = zip(("step", "state", "action"), game.policy_shapes[agent], strict=True)
        entry = tuple(_index(line, name, row, size) for name, size in sizes)
        if listed[agent][entry]:
            raise line.error("this action is listed a second time.")
        listed[agent][entry] = True
        if not exact and is_fraction(row["probability"]):
            return _from_rows(source, game, exact=True)
        tables[agent][entry] = _probability(line, row["probability"], exact=exact)
    for agent, known in enumerate(listed):
        if not known.any(axis=2).all():
            h, s = (int(each[0]) for each in np.nonzero(~known.any(axis=2)))
            raise FileError(
                f"{source}: agent {agent} has no row for step {h}, state {s}; every step and state needs at least one."
            )
        tables[agent][~known] = Fraction(0) if exact else 0.0
    return JointPolicy(tuple(policy_table(f"{source}: agent {i}", table) for i, table in enumerate(tables)))


def _index(line: Line, name: str, row: Mapping[str, str], size: int) -> int:
    text = row[name].removesuffix(".0")
    if not (is_whole(text) and int(text) < size):
        raise line.error(f"{name} is {row[name][:40]!r}; a whole number from 0 to {size - 1} is required.")
    return int(text)


def _probability(line: Line, word: str, *, exact: bool) -> Any:
    try:
        number = rational(word)
        rounded = float(number)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise line.error(f"probability is {word[:40]!r}; a number is required.") from None
    return number if exact else rounded


def _from_tables(source: Path, fields: dict[str, Any], game: Game, *, exact: bool) -> JointPolicy:
    """Read tables of probabilities by agent."""
    tables = []
    for i, shape in enumerate(game.policy_shapes):
        names = [name for name in (game.names.agent(i), f"agent_{i}", str(i)) if name in fields]
        if not names:
            raise FileError(
                f"{source}: has no table for {game.names.agent(i)!r}; name it {f'agent_{i}'!r}, or as the game does."
            )
        table = number_table(f"{source}: {names[0]}", fields[names[0]], exact=exact, error=PolicyError)
        table = table[None] if table.ndim == 2 else table
        if table.ndim == 3 and len(table) == 1:
            table = np.broadcast_to(table, (shape[0], *table.shape[1:]))
        tables.append(policy_table(f"{source}: {names[0]}", table))
    return JointPolicy(tuple(tables))
