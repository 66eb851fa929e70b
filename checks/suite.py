"""Write the references of the suite again: best known values, bounds, certificates, and the rows of the methods.

    python -m checks suite [--write]

Without `--write` the games are compared with the digests of the reference, and every reference policy is proved again.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from checks import ROOT
from cmpg.comparison.comparison import QUICK_METHODS, Judged, compare
from cmpg.equilibrium.certificate import certify
from cmpg.equilibrium.quality import upper_bound
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.games.game import Objective
from cmpg.report.comparison import NAMES
from cmpg.suite.games import SUITE, VERSION, content_digest
from cmpg.suite.references import prove_reference
from cmpg.suite.submissions import ALLOWED, entry_of

FOLDER = ROOT / "src" / "cmpg" / "suite"


def written() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of the reference, and the arrays of its policies."""
    games: dict[str, Any] = {}
    rows: dict[str, dict[str, Any]] = {}
    arrays: dict[str, Any] = {}
    for name, build in SUITE.items():
        began = time.process_time()
        game = build()
        spread = float(np.max(game.reward_ranges))
        found = compare(game, rng=np.random.default_rng(1), methods=QUICK_METHODS, restarts=5)
        best = uninterrupted(solve(game, restarts=Restarts(10), rng=np.random.default_rng(2)))
        if not best.certified:
            raise RuntimeError(f"{name}: no certified policy ({best.message})")
        certificate = certify(game, best.policy, best.multipliers)
        values = [float(best.values.sum())]
        for entry in found.entries:
            reached = None
            if isinstance(entry, Judged):
                judged = entry_of(name, entry.policy, spread)
                reached = {key: value for key, value in vars(judged).items() if key != "game"}
                if entry.certificate.meets(ALLOWED) and entry.certificate.feasible:
                    values.append(judged.total_value)
            rows.setdefault(NAMES.get(entry.name, entry.name), {})[name] = reached
        common = np.median(np.where(np.isfinite(best.multipliers), best.multipliers, 0.0), axis=0)
        bound = upper_bound(game, Objective.WELFARE, best.policy, common)
        games[name] = {
            "sha256": content_digest(game),
            "best_known": max(values),
            "bound": None if bound is None else bound.value,
            "exploitability": certificate.epsilon,
        }
        arrays |= {f"{name}/{i}": table.astype(np.float64) for i, table in enumerate(best.policy)}
        arrays[f"{name}/multipliers"] = np.asarray(best.multipliers)
        print(f"{name}: {games[name]['best_known']:.6g}, {time.process_time() - began:.1f} CPU s", flush=True)
    return {"format": "cmpg-suite", "version": VERSION, "games": games, "rows": rows}, arrays


def main(argv: list[str]) -> int:
    """Write the reference, or prove it again."""
    parser = argparse.ArgumentParser(prog="python -m checks suite", description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args(argv).write:
        record, arrays = written()
        (FOLDER / "reference.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        np.savez_compressed(FOLDER / "reference.npz", **arrays)
    wrong = 0
    for name in SUITE:
        certificate = prove_reference(name)
        wrong += not certificate.proves(1e-5)
    print(f"{len(SUITE)} games, {wrong} references are not proved")
    return int(wrong > 0)
