"""Files of devices, and folders of recommendations.

A device file: `format` = "cmpg-device", `version` = 1, `concept` ("rota", "correlated" or "coarse"), `multipliers`
[n, k], and for a rota `weights` [M] and `mode_m_agent_i` [H, S_i, A_i] for each mode m and agent i, else `table`
[H, S, A_1, …, A_n].

A folder has `game.npz` (and `game.json` where it was given in exact numbers), `device.npz`, `certificate.json` and
`recommendation.json`, which is written last. Reading it returns what its files prove, not what they say: the
certificate is computed again, and a folder that contradicts it is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.recommendations.recommend import Recommendation, judged_status
from cmpg.equilibrium.result import Status
from cmpg.errors import FileError, PolicyError
from cmpg.files.containers import (
    Fields,
    as_path,
    json_text,
    new_folder,
    number_table,
    plain_fields,
    read_fields,
    read_numbers,
    write_fields,
    write_text,
)
from cmpg.files.fields import choice, reading, real_number, text_of
from cmpg.files.games import save_game
from cmpg.files.policies import plain_multipliers, read_multipliers
from cmpg.files.records import certificate_record, compare_certificate, names_record, versions
from cmpg.files.run_folder import read_game
from cmpg.games.devices import Concept, CorrelatedPolicy, Device, Rota
from cmpg.games.rationals import is_exact
from cmpg.policy import JointPolicy

KIND = "cmpg-device"
RECORD = "recommendation.json"


def save_device(device: Device, path: str | Path, *, multipliers: Any, concept: Concept) -> None:
    """Write a device file, `.npz` or `.json`, with the multipliers [n, k] that prove the claim."""
    in_words = as_path(path).suffix.lower() == ".json"
    fields: dict[str, Any] = {"format": KIND, "version": 1, "concept": concept.word}
    fields["multipliers"] = plain_multipliers(multipliers) if in_words else multipliers
    if isinstance(device, Rota):
        fields["weights"] = device.weights
        for m, mode in enumerate(device.modes):
            fields |= {f"mode_{m}_agent_{i}": table for i, table in enumerate(mode.tables)}
    else:
        fields["table"] = device.table
    write_fields(path, fields)


def load_device(path: str | Path, *, exact: bool = False) -> tuple[Device, FloatArray, Concept]:
    """Read a device file: the device, the multipliers [n, k], and what is claimed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> light = CorrelatedPolicy([[[[0.5, 0.0], [0.0, 0.5]]]])
    >>> with TemporaryDirectory() as folder:
    ...     light.save(f"{folder}/device.npz", multipliers=[[1.0], [1.0]])
    ...     device, multipliers, concept = load_device(f"{folder}/device.npz")
    >>> device.recommended(0).tolist(), concept.word
    ([[[0.5, 0.5]]], 'correlated')
    """
    fields, exact = read_numbers(path, kind=KIND, exact=exact)
    with reading(path, "Solve again."):
        concept = choice("concept", str(fields["concept"]).upper(), Concept)
        multipliers = read_multipliers("multipliers", fields["multipliers"], exact=exact)
        if concept is Concept.ROTA:
            return _rota(fields, exact=exact), multipliers, concept
        table = number_table("table", fields["table"], exact=exact, error=PolicyError)
        return CorrelatedPolicy(table), multipliers, concept


def _rota(fields: Fields, *, exact: bool) -> Rota:
    weights = number_table("weights", fields["weights"], exact=exact, error=PolicyError)
    if weights.ndim != 1:
        raise FileError(f"weights has shape {list(weights.shape)}; one number for each mode is required.")
    modes = []
    for m in range(len(weights)):
        agents = sum(name.startswith(f"mode_{m}_agent_") for name in fields)
        names = [f"mode_{m}_agent_{i}" for i in range(agents)]
        modes.append(JointPolicy([number_table(name, fields[name], exact=exact, error=PolicyError) for name in names]))
    return Rota(modes, weights)


def save_recommendation(folder: str | Path, found: Recommendation) -> Fields:
    """Write a folder, new or empty, and return the record of `recommendation.json`."""
    target, game = as_path(folder), found.game
    with new_folder(target):
        save_game(game, target / "game.npz")
        if is_exact(game):
            save_game(game, target / "game.json")
        if found.device is not None and found.certificate is not None:
            ending = "json" if is_exact(game) else "npz"
            save_device(found.device, target / f"device.{ending}", multipliers=found.multipliers, concept=found.concept)
            write_text(target / "certificate.json", json_text(certificate_record(found.certificate)))
        record = recommendation_record(found)
        write_text(target / RECORD, json_text(record))
    return record


def recommendation_record(found: Recommendation) -> Fields:
    """Return a recommendation as a record of plain numbers and strings."""
    known = found.certificate
    record = {
        "format": "cmpg-recommendation",
        "version": 1,
        "status": found.status.name,
        "message": found.message,
        "concept": found.concept.word,
        "promise": found.concept.value,
        "covers": found.game.information.covers,
        "epsilon": found.epsilon,
        "certified_epsilon": None if known is None else known.epsilon,
        "found_by": found.found_by,
        **names_record(found.game),
        "values": found.values,
        "costs": found.costs,
        "thresholds": np.asarray(found.game.thresholds, dtype=np.float64),
        "multipliers": plain_multipliers(found.multipliers),
        "weights": found.device.weights if isinstance(found.device, Rota) else None,
        "nash_values": None if found.nash is None else found.nash.values,
        "versions": versions(),
    }
    return plain_fields(record)


def is_recommendation(folder: str | Path) -> bool:
    """Whether a folder holds a recommendation."""
    return (as_path(folder) / RECORD).is_file()


def load_recommendation(folder: str | Path) -> Recommendation:
    """Read a folder of a recommendation, with its certificate computed again.

    Examples
    --------
    >>> import cmpg, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> cmpg.recommend(cmpg.scenarios.counter_example()).save(folder)
    >>> load_recommendation(folder).certified
    True
    """
    source = as_path(folder)
    record = read_fields(source / RECORD, kind="cmpg-recommendation")
    game = read_game(source)
    with reading(source / RECORD, "Solve again."):
        status, epsilon = choice("status", record["status"], Status), real_number("epsilon", record["epsilon"], least=0)
        concept, found_by = choice("concept", str(record["concept"]).upper(), Concept), text_of(record["found_by"])
        exact = is_exact(game)
        path = source / f"device.{'json' if exact else 'npz'}"
        if not path.exists():
            if status is Status.CERTIFIED:
                raise FileError(f"{source}: it says CERTIFIED, and has no device. Solve again.")
            return Recommendation(status, text_of(record["message"]), concept, epsilon, game, found_by=found_by)
        device, multipliers, claimed = load_device(path, exact=exact)
        if claimed is not concept:
            raise FileError(f"{path}: its concept is {claimed.word}, and that of {RECORD} is {concept.word}.")
        judged = certify(game, device, multipliers, concept=concept, exact=exact)
        compare_certificate(source / "certificate.json", judged)
    proved, message = judged_status(judged, epsilon)
    if status is Status.CERTIFIED and proved is not Status.CERTIFIED:
        raise FileError(f"{source}: {RECORD} says CERTIFIED, which its device does not prove. Solve again.")
    return Recommendation(proved, message, concept, epsilon, game, device, judged.multipliers, judged, None, found_by)
