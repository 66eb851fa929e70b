"""Policy files: one table per agent, and the multipliers that prove the claim where they are known.

`format` = "cmpg-policy", `version` = 1, `agent_0` … `agent_{n−1}`, each [H, S_i, A_i], and where known `multipliers`
[n, k].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cmpg.arrays import FloatArray
from cmpg.errors import FileError, PolicyError
from cmpg.files.containers import number_table, read_fields, write_fields
from cmpg.policy import JointPolicy, policy_table


def save_policy(path: str | Path, policy: JointPolicy, *, multipliers: FloatArray | None = None) -> None:
    """Write a policy file, `.npz` or `.json`, with the multipliers that prove it where they are known."""
    fields: dict[str, Any] = {"format": "cmpg-policy", "version": 1}
    fields |= {f"agent_{i}": table for i, table in enumerate(policy.tables)}
    if multipliers is not None:
        fields["multipliers"] = multipliers
    write_fields(path, fields)


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
        prices = number_table(f"{path}: multipliers", prices, exact=exact, error=PolicyError)
    return JointPolicy(tuple(tables)), prices
