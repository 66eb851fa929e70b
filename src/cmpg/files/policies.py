"""Policy files: one table per agent, and the multipliers that prove the claim where they are known.

`format` = "cmpg-policy", `version` = 1, `agent_0` … `agent_{n−1}`, each [H, S_i, A_i], and where known `multipliers`
[n, k].

`version` = 2 is for large tables in which most rows play one action for sure: `num_actions` [n], `agent_i_actions`
[H, S_i], and where rows mix `agent_i_mixed` [m, 2], the step and the state of each, in ascending order, and
`agent_i_rows` [m, A_i], their probabilities. What the actions say of rows that mix does not count.

A multiplier that is infinite, the word "support" in a `.json`, stands for a proof by support: nothing is left
of that budget, and what would cost more is forbidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cmpg.arrays import FloatArray, IntArray, check_shape, distributions, frozen
from cmpg.errors import CMPGError, FileError, PolicyError
from cmpg.files.containers import as_path, number_table, read_numbers, write_fields
from cmpg.files.fields import reading, refuse_strange_fields, whole_numbers
from cmpg.policy import CompactTable, JointPolicy, Stored, are_certain, joined_table, policy_table, split_table
from cmpg.sizes import bytes_text, memory_left

MAX_ACTIONS = 2**15
"""Version 2 is for agents with at most this many actions: a small file shall not stand for a table beyond bounds."""

SUPPORT = "support"
"""This word stands for an infinite multiplier in texts."""


def save_policy(
    path: str | Path,
    policy: JointPolicy,
    *,
    multipliers: FloatArray | None = None,
    version: Literal[1, 2] | None = None,
) -> None:
    """Write a policy file, `.npz` or `.json`, with the multipliers that prove it where they are known.

    Parameters
    ----------
    path, policy
        Where to, and what.
    multipliers : [n, k]
        λ.
    version
        1: a table for each agent; 2: actions, and the rows that mix. Unless given, 2 in a `.npz` of large tables that
        are kept like that, and else 1.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> policy = JointPolicy(([[[0.0, 1.0], [0.5, 0.5]]],))
    >>> with TemporaryDirectory() as folder:
    ...     save_policy(f"{folder}/policy.json", policy, version=2)
    ...     print(Path(f"{folder}/policy.json").read_text())
    {
     "format": "cmpg-policy",
     "version": 2,
     "num_actions": [2],
     "agent_0_actions": [[1, 0]],
     "agent_0_mixed": [[0, 1]],
     "agent_0_rows": [[0.5, 0.5]]
    }
    <BLANKLINE>
    """
    in_words = as_path(path).suffix.lower() == ".json"
    if version is None:
        version = 2 if not in_words and any(isinstance(table, CompactTable) for table in policy.stored) else 1
    fields: dict[str, Any] = {"format": "cmpg-policy", "version": version}
    if version == 1:
        fields |= {f"agent_{i}": table for i, table in enumerate(policy.tables)}
    else:
        fields |= compact_fields(policy)
    if multipliers is not None:
        fields["multipliers"] = plain_multipliers(multipliers) if in_words else multipliers
    write_fields(path, fields)


def compact_fields(policy: JointPolicy) -> dict[str, Any]:
    """Return the tables of a policy as the fields of version 2."""
    fields: dict[str, Any] = {"num_actions": np.array([actions for _, _, actions in policy.shapes])}
    for i, stored in enumerate(policy.stored):
        if isinstance(stored, CompactTable):
            table = stored
        else:
            table = split_table(stored, np.flatnonzero(~are_certain(stored)))
        fields[f"agent_{i}_actions"] = table.actions
        if len(table.mixed):
            cells = np.stack(np.divmod(table.mixed, table.shape[1]), axis=1)
            fields |= {f"agent_{i}_mixed": cells.astype(np.int32), f"agent_{i}_rows": table.rows}
    return fields


def plain_multipliers(multipliers: Any) -> Any:
    """Return multipliers as lists, with the word "support" where they are infinite.

    Examples
    --------
    >>> plain_multipliers([[0.5, np.inf]])
    [[0.5, 'support']]
    """
    table = np.asarray(multipliers)
    if not np.asarray(table == np.inf).any():
        return multipliers
    return np.where(table == np.inf, SUPPORT, table.astype(object)).tolist()


def read_multipliers(name: str, value: Any, *, exact: bool = False, error: type[CMPGError] = PolicyError) -> FloatArray:
    """Read multipliers, of which some may be infinite, or the word "support"."""
    if isinstance(value, np.ndarray):
        hard = np.asarray(value == np.inf) if value.dtype.kind == "f" else np.zeros(value.shape, dtype=bool)
        finite: Any = np.where(hard, 0.0, value) if hard.any() else value
    else:
        raw = np.array(value, dtype=object)
        hard = np.array([isinstance(each, str) and each == SUPPORT for each in raw.flat], dtype=bool)
        hard = hard.reshape(raw.shape)
        finite = np.where(hard, 0, raw).tolist() if hard.any() else value
    table = number_table(name, finite, exact=exact, error=error)
    return frozen(np.where(hard, np.inf, table)) if hard.any() else table


def load_policy(path: str | Path, *, exact: bool = False) -> tuple[JointPolicy, FloatArray | None]:
    """Read a policy file, and the multipliers where it has them.

    Parameters
    ----------
    path
        A `.json` or `.npz` file.
    exact
        Keep the numbers of a `.json` as the rationals that are written there. If one of them is a fraction such as
        "1/3", they are kept in any case.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     JointPolicy.uniform([(1, 1, 2)]).save(f"{folder}/policy.npz", multipliers=[[1.5]])
    ...     policy, multipliers = load_policy(f"{folder}/policy.npz")
    >>> policy[0], multipliers
    (array([[[0.5, 0.5]]]), array([[1.5]]))
    """
    fields, exact = read_numbers(path, kind="cmpg-policy", exact=exact)
    first = fields["version"] == 1
    with reading(path):
        tables, known = (_tables if first else compact_tables)(fields, exact)
        prices = fields.get("multipliers")
        if prices is not None:
            prices = read_multipliers("multipliers", prices, exact=exact)
        named = "agent_0, agent_1, …" if first else "num_actions, agent_0_actions, …"
        known |= {"format", "version", "multipliers"}
        refuse_strange_fields(fields, known, form=f"a policy file with {named}")
    return JointPolicy(tuple(tables)), prices


def _tables(fields: Mapping[str, Any], exact: bool) -> tuple[list[Stored], set[str]]:
    """Read version 1, and say which fields it has."""
    tables: list[Stored] = []
    while not tables or f"agent_{len(tables)}" in fields:
        name = f"agent_{len(tables)}"
        tables.append(policy_table(name, number_table(name, fields[name], exact=exact, error=PolicyError)))
    return tables, {f"agent_{i}" for i in range(len(tables))}


def compact_tables(fields: Mapping[str, Any], exact: bool) -> tuple[list[Stored], set[str]]:
    """Read version 2, and say which fields it has."""
    counts = whole_numbers("num_actions", fields["num_actions"], least=1, most=MAX_ACTIONS)
    if not counts.size:
        raise FileError("num_actions is empty; there must be an agent.")
    tables: list[Stored] = []
    known, left = {"num_actions"}, memory_left()
    for i, count in enumerate(counts.tolist()):
        names = [f"agent_{i}_{part}" for part in ("actions", "mixed", "rows")]
        actions = whole_numbers(names[0], fields[names[0]], axes=2, least=0, most=count - 1)
        if 0 in actions.shape:
            raise FileError(f"{names[0]} has shape {list(actions.shape)}; [H, S] with no empty axis is required.")
        if (100 if exact else 8) * actions.size * count > left:
            size = f"{bytes_text(8 * actions.size * count)}, and {bytes_text(left)} may be used"
            raise FileError(f"the table of agent {i} would take {size}. Read it where there is more memory.")
        known |= {names[0]}
        mixed, rows = np.zeros(0, dtype=np.int64), np.zeros((0, count), dtype=object if exact else np.float64)
        if names[1] in fields or names[2] in fields:
            known |= set(names)
            mixed, rows = _mixed_rows(fields, names, actions.shape, count, exact)
        tables.append(joined_table(actions, mixed, rows))
    return tables, known


def _mixed_rows(
    fields: Mapping[str, Any], names: list[str], shape: tuple[int, ...], count: int, exact: bool
) -> tuple[IntArray, FloatArray]:
    """Return which rows h·S + s of a table mix, and their probabilities [m, A]."""
    cells = whole_numbers(names[1], fields[names[1]], axes=2, least=0)
    check_shape(names[1], cells.shape, (len(cells), 2), error=FileError)
    mixed = cells[:, 0] * shape[1] + cells[:, 1]
    if (cells >= shape).any() or (np.diff(mixed) <= 0).any():
        raise FileError(
            f"{names[1]} must name steps below {shape[0]} and states below {shape[1]}, each row once and in ascending "
            "order."
        )
    rows = number_table(names[2], fields[names[2]], exact=exact, error=FileError)
    check_shape(names[2], rows.shape, (len(mixed), count), error=FileError)
    return mixed, distributions(names[2], rows, ("row",), error=FileError)
