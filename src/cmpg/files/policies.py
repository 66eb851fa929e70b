"""Policy files: one table per agent, and the multipliers that prove the claim where they are known.

`format` = "cmpg-policy", `version` = 1, `agent_0` … `agent_{n−1}`, each [H, S_i, A_i], and where known `multipliers`
[n, k]. A multiplier that is infinite, the word "support" in a `.json`, stands for a proof by support: nothing is left
of that budget, and what would cost more is forbidden.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.errors import CMPGError, FileError, PolicyError
from cmpg.files.containers import number_table, read_fields, write_fields
from cmpg.policy import JointPolicy, policy_table

SUPPORT = "support"
"""What an infinite multiplier is called in texts."""


def save_policy(path: str | Path, policy: JointPolicy, *, multipliers: FloatArray | None = None) -> None:
    """Write a policy file, `.npz` or `.json`, with the multipliers that prove it where they are known."""
    fields: dict[str, Any] = {"format": "cmpg-policy", "version": 1}
    fields |= {f"agent_{i}": table for i, table in enumerate(policy.tables)}
    if multipliers is not None:
        in_words = Path(path).suffix.lower() == ".json"
        fields["multipliers"] = told_multipliers(multipliers) if in_words else multipliers
    write_fields(path, fields)


def told_multipliers(multipliers: Any) -> Any:
    """Return multipliers as lists, with the word "support" where they are infinite.

    Examples
    --------
    >>> told_multipliers([[0.5, np.inf]])
    [[0.5, 'support']]
    """
    told = np.asarray(multipliers)
    if not np.asarray(told == np.inf).any():
        return multipliers
    return np.where(told == np.inf, SUPPORT, told.astype(object)).tolist()


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
        Keep the numbers of a `.json` as the rationals that are written there.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     JointPolicy.uniform([(1, 1, 2)]).save(f"{folder}/policy.npz", multipliers=[[1.5]])
    ...     policy, multipliers = load_policy(f"{folder}/policy.npz")
    >>> policy[0], multipliers
    (array([[[0.5, 0.5]]]), array([[1.5]]))
    """
    fields = read_fields(path, kind="cmpg-policy", exact=exact)
    tables: list[FloatArray] = []
    while (name := f"agent_{len(tables)}") in fields:
        table = number_table(f"{path}: {name}", fields[name], exact=exact, error=PolicyError)
        tables.append(policy_table(f"{path}: {name}", table))
    known = {"format", "version", "multipliers", *(f"agent_{i}" for i in range(len(tables)))}
    strange = ", ".join(repr(name) for name in sorted(set(fields) - known)[:5])
    if not tables or strange:
        found = f"unknown field {strange}" if strange else "there is no 'agent_0'"
        raise FileError(f"{path}: {found}; a policy file has agent_0, agent_1, … and perhaps multipliers.")
    prices = fields.get("multipliers")
    if prices is not None:
        prices = read_multipliers(f"{path}: multipliers", prices, exact=exact)
    return JointPolicy(tuple(tables)), prices
