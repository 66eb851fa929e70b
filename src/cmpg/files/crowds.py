"""Files of crowds: policies by groups, and run folders.

A policy: `format` = "cmpg-crowd-policy", `version` = 1, `kind` [G], `number` [G], and the tables of the groups as in
version 2 of a policy file (`num_actions` [G], `agent_g_actions`, …); where known, `multipliers` [G, k].

A run folder has `game.npz`, `policy.npz`, `certificate.json`, `result.json`, `groups.csv`, `loads.csv` and `page.html`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cmpg
from cmpg.arrays import FloatArray
from cmpg.errors import PolicyError
from cmpg.files.containers import (
    as_path,
    json_text,
    new_folder,
    number_table,
    plain,
    read_fields,
    write_fields,
    write_text,
)
from cmpg.files.fields import reading, refuse_strange_fields
from cmpg.files.games import save_game
from cmpg.files.policies import compact_fields, compact_tables
from cmpg.games.crowd.policy import CrowdPolicy
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.equilibrium.crowds.certificate import CrowdCertificate
    from cmpg.equilibrium.crowds.solve import CrowdResult

KIND = "cmpg-crowd-policy"


def save_crowd_policy(path: str | Path, policy: CrowdPolicy, *, multipliers: Any = None) -> None:
    """Write a policy by groups, `.npz` or `.json`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> policy = CrowdPolicy([0, 0], [7, 3], ([[[1.0, 0.0]]], [[[0.5, 0.5]]]))
    >>> with TemporaryDirectory() as folder:
    ...     save_crowd_policy(f"{folder}/policy.npz", policy, multipliers=[[1.5], [0.0]])
    ...     again, multipliers = load_crowd_policy(f"{folder}/policy.npz")
    >>> again.fingerprint() == policy.fingerprint(), multipliers.tolist()
    (True, [[1.5], [0.0]])
    """
    fields: dict[str, Any] = {"format": KIND, "version": 1, "kind": policy.kind, "number": policy.number}
    fields |= compact_fields(policy.plans)
    if multipliers is not None:
        fields["multipliers"] = np.asarray(multipliers, dtype=np.float64)
    write_fields(path, fields)


def load_crowd_policy(path: str | Path) -> tuple[CrowdPolicy, FloatArray | None]:
    """Read a policy by groups, and its multipliers where it has them.

    Examples
    --------
    See `save_crowd_policy`.

    >>> load_crowd_policy("nowhere.npz")
    Traceback (most recent call last):
    cmpg.errors.FileError: nowhere.npz: there is no such file. Check the name and the folder.
    """
    fields = read_fields(path, kind=KIND)
    with reading(path):
        tables, known = compact_tables(fields, False)
        known |= {"format", "version", "kind", "number", "multipliers"}
        refuse_strange_fields(fields, known, form="a policy of a crowd")
        kind, number = (number_table(name, fields[name], error=PolicyError) for name in ("kind", "number"))
        prices = fields.get("multipliers")
        if prices is not None:
            prices = number_table("multipliers", prices, error=PolicyError)
    return CrowdPolicy(kind, number, JointPolicy(tuple(tables))), prices


def crowd_certificate_record(certificate: CrowdCertificate) -> dict[str, Any]:
    """Return a certificate in words that JSON knows."""
    return {
        "format": "cmpg-crowd-certificate",
        "version": 1,
        "feasibility": certificate.feasibility.name,
        "epsilon": certificate.epsilon,
        "costs": certificate.costs,
        "thresholds": certificate.thresholds,
        "excess": certificate.excess,
        "allowance": {
            "gain": certificate.allowance,
            "of_cut_tails": float(certificate.cut.max()),
            "cost": float(certificate.cost_rounding.max(initial=0.0)),
        },
        "laws": certificate.laws,
        "widest_law": certificate.widest,
        "information": str(certificate.information),
        "arithmetic": certificate.arithmetic,
        "judged_by": certificate.judged_by,
        "kind": certificate.kind,
        "number": certificate.number,
        "gains": certificate.gains,
        "values": certificate.values,
        "bounds": certificate.bounds,
        "multipliers": certificate.multipliers,
    }


def crowd_result_record(result: CrowdResult, *, seed: int | None = None) -> dict[str, Any]:
    """Return a result in words that JSON knows."""
    record: dict[str, Any] = {
        "format": "cmpg-crowd-result",
        "version": 1,
        "status": result.status.name,
        "message": result.message,
        "epsilon": result.epsilon,
        "agents": result.game.num_agents,
        "kinds": result.game.num_kinds,
        "moves": result.moves,
        "turns": result.turns,
        "seconds": result.phases,
        "seed": seed,
        "cmpg": cmpg.__version__,
    }
    if result.certificate_or_none is not None:
        record["groups"] = result.policy.num_groups
        record["welfare"] = result.certificate.welfare
        record["certificate"] = crowd_certificate_record(result.certificate)
    return dict(plain(record))


def save_crowd_run(folder: str | Path, result: CrowdResult, *, seed: int | None = None) -> dict[str, Any]:
    """Write a run folder of a crowd, and return the record of `result.json`."""
    from cmpg.report.crowds import crowd_page, group_rows, load_rows, rows_csv  # a room below: formats

    target = as_path(folder)
    with new_folder(target):
        save_game(result.game, target / "game.npz")
        record = crowd_result_record(result, seed=seed)
        record["game_hash"] = hashlib.sha256((target / "game.npz").read_bytes()).hexdigest()
        if result.certificate_or_none is not None:
            save_crowd_policy(target / "policy.npz", result.policy, multipliers=result.multipliers)
            certificate = crowd_certificate_record(result.certificate)
            write_text(target / "certificate.json", json_text(plain(certificate)))
            write_text(target / "groups.csv", rows_csv(group_rows(result)))
            write_text(target / "loads.csv", rows_csv(load_rows(result)))
        write_text(target / "page.html", crowd_page(result))
        write_text(target / "result.json", json_text(record))
    return record
