"""Digests of answers: record what the library answers, and compare two records after a change of its insides.

    python -m checks digests build/digests.json                           record
    python -m checks digests build/new.json --compare build/digests.json  record, then list what differs

Every scenario is solved with its default options, then random games of every form; every learning mode is run on small
games. A record holds the status, the CPU seconds, the total value and a hash of the policy, the multipliers and the
gains, so that a difference in bits is told apart from a difference in value.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NUM_RANDOM_GAMES = 300
SCENARIOS = (
    "counter-example",
    "modified-counter-example",
    "grid-world",
    "congestion",
    "congestion-counting",
    "congestion-common-reward",
    "congestion-exogenous",
    "grid-world-local",
    "charging",
    "robots",
    "routing",
    "spectrum",
)
LEARNING = (  # 20 seeds in all
    ("counter-example", "generative", "0.5", 5),
    ("spectrum", "shared", "0.5", 5),
    ("spectrum", "safe", "0.9", 5),
    ("grid-world-local", "generative", "1", 5),
)


def main(argv: list[str]) -> int:
    """Record digests, and compare them with an earlier record if one is given."""
    parser = argparse.ArgumentParser(prog="python -m checks digests", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("--compare", type=Path, metavar="EARLIER")
    parser.add_argument("--games", type=int, default=NUM_RANDOM_GAMES, help="number of random games")
    options = parser.parse_args(argv)
    found = dict(answers(options.games))
    options.record.parent.mkdir(parents=True, exist_ok=True)
    options.record.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} answers recorded in {options.record}")
    return 0 if options.compare is None else compare(json.loads(options.compare.read_text()), found)


def answers(num_games: int) -> Iterator[tuple[str, dict]]:
    """Solve and learn, and yield a name and a record for each answer."""
    import cmpg
    from oracles.random_games import draw, suitable_epsilon
    from oracles.sweeping import build

    for name in SCENARIOS:
        yield name, solved(cmpg.scenarios.SCENARIOS[name].build(), 1e-6)
    for seed in range(num_games):
        drawn = draw(seed)
        yield f"random {seed} ({drawn.form})", solved(build(drawn.game), suitable_epsilon(drawn.game))
    for name, mode, epsilon, seeds in LEARNING:
        command = [sys.executable, "-m", "cmpg", "learn", name, "--mode", mode, "--epsilon", epsilon]
        done = subprocess.run([*command, "--seeds", str(seeds), "--json"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        for number, record in enumerate(json.loads(done.stdout)["seeds"]):
            kept = {key: record[key] for key in ("moves", "iterations", "samples", "true_gap", "true_costs", "curve")}
            digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]
            yield f"learn {name} {mode} {number}", {"status": str(record.get("status")), "digest": digest}


def solved(game, epsilon: float) -> dict:
    """Solve one game, and return what its answer comes to."""
    import cmpg

    began = time.process_time()
    result = cmpg.solve(game, epsilon=epsilon)
    record = {"status": result.status.name, "cpu": round(time.process_time() - began, 4)}
    if result.incumbent is None:
        return record
    parts = [result.policy.fingerprint(), *(np.asarray(x).tobytes() for x in (result.multipliers, result.values))]
    digest = hashlib.sha256(b"".join(parts)).hexdigest()[:16]
    return record | {"digest": digest, "total": float(np.sum(result.values))}


def compare(earlier: dict, later: dict) -> int:
    """Print what differs, and return 1 if anything does."""
    same, rows = 0, []
    for name in sorted(earlier.keys() | later.keys(), key=str):
        old, new = earlier.get(name), later.get(name)
        if old is None or new is None:
            rows.append(f"{name}: only in the {'later' if old is None else 'earlier'} record")
        elif (old["status"], old.get("digest")) == (new["status"], new.get("digest")):
            same += 1
        elif old["status"] != new["status"]:
            rows.append(f"{name}: {old['status']} → {new['status']}")
        elif "total" in old:
            rows.append(f"{name}: total value {old['total']:.9g} → {new['total']:.9g}")
        else:
            rows.append(f"{name}: other samples")
    print("\n".join(rows))
    cpu = [sum(each.get("cpu", 0.0) for each in record.values()) for record in (earlier, later)]
    print(f"{same} the same, {len(rows)} differ; CPU seconds of all solves {cpu[0]:.1f} → {cpu[1]:.1f}")
    return int(bool(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
