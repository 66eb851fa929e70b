"""Write the references of the suite again: best known values, bounds, certificates, and the rows of the methods.

    python -m checks suite [--write [--only map-,acn-]] [--data FOLDER]

Without `--write` the games are compared with the digests of the reference, and every reference policy is proved again.
With `--data` the games that can be built from the files in a folder count too; with `--only` the games whose names
begin so are computed, and what is known of the others stays.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from checks import ROOT
from cmpg.arrays import FloatArray
from cmpg.comparison.comparison import QUICK_METHODS, Judged, compare
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.quality import upper_bound
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.games.game import Game, Objective
from cmpg.policy import JointPolicy
from cmpg.report.comparison import NAMES
from cmpg.suite.games import VERSION, content_digest, suite_games
from cmpg.suite.references import prove_reference, reference_arrays
from cmpg.suite.submissions import ALLOWED, entry_of

FOLDER = ROOT / "src" / "cmpg" / "suite"


def written(builders: Mapping[str, Callable[[], Game]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of the reference, and the arrays of its policies; what is known of other games stays."""
    record = json.loads((FOLDER / "reference.json").read_text("utf-8"))
    games: dict[str, Any] = record["games"]
    rows: dict[str, dict[str, Any]] = record["rows"]
    with np.load(FOLDER / "reference.npz") as before:
        arrays: dict[str, Any] = {key: before[key] for key in before if key.rsplit("/")[0] not in builders}
    for name, build in builders.items():
        began = time.process_time()
        game = build()
        spread = float(np.max(game.reward_ranges))
        found = compare(game, rng=np.random.default_rng(1), methods=QUICK_METHODS, restarts=5)
        policy, multipliers = best_known(name, game)
        certificate = certify(game, policy, multipliers)
        values = [float(certificate.values.sum())]
        for entry in found.entries:
            reached = None
            if isinstance(entry, Judged):
                judged = entry_of(name, entry.policy, spread)
                reached = {key: value for key, value in vars(judged).items() if key != "game"}
                if entry.certificate.meets(ALLOWED) and entry.certificate.feasible:
                    values.append(judged.total_value)
            rows.setdefault(NAMES.get(entry.name, entry.name), {})[name] = reached
        common = np.median(np.where(np.isfinite(multipliers), multipliers, 0.0), axis=0)
        bound = upper_bound(game, Objective.WELFARE, policy, common)
        games[name] = {
            "sha256": content_digest(game),
            "best_known": max(values),
            "bound": None if bound is None else bound.value,
            "exploitability": certificate.epsilon,
        }
        arrays |= reference_arrays(name, policy, multipliers)
        print(f"{name}: {games[name]['best_known']:.6g}, {time.process_time() - began:.1f} CPU s", flush=True)
    return {"format": "cmpg-suite", "version": VERSION, "games": games, "rows": rows}, arrays


def best_known(name: str, game: Game) -> tuple[JointPolicy, FloatArray]:
    """Return a proved policy and its multipliers: the best of several runs, or the uniform one where that is Nash."""
    best = uninterrupted(solve(game, restarts=Restarts(10), rng=np.random.default_rng(2)))
    if best.certified:
        return best.policy, best.multipliers
    uniform, none = game.uniform_policy(), np.zeros((game.num_agents, len(game.thresholds)))
    if not certify(game, uniform, none).proves(1e-9):
        raise RuntimeError(f"{name}: no certified policy ({best.message})")
    return uniform, none


def main(argv: list[str]) -> int:
    """Write the reference, or prove it again."""
    parser = argparse.ArgumentParser(prog="python -m checks suite", description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--data", default=None)
    given = parser.parse_args(argv)
    games = suite_games(given.data)
    if given.write:
        only = tuple(given.only.split(","))
        record, arrays = written({name: build for name, build in games.items() if name.startswith(only)})
        (FOLDER / "reference.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        np.savez_compressed(FOLDER / "reference.npz", **arrays)
    wrong = 0
    for name in games:
        certificate = prove_reference(name, given.data)
        wrong += not certificate.proves(1e-5)
    print(f"{len(games)} games, {wrong} references are not proved")
    return int(wrong > 0)
