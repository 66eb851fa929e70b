"""Is what one `solve` ends with as good as before? The total value over 26 fleets and 20 charging days, side by side.

python -m experiments.endings record FILE       solve every game once; keep values, certificates and seconds
python -m experiments.endings compare OLD NEW   print both totals, the difference, and what is not certified

`record` uses nothing but what old versions have too, so that the values of before are recorded by the same file:
PYTHONPATH=old/src python experiments/endings.py record before.json. Fleets are drawn on the package's own floor, and
have no edges, which old versions do not know; days are those of the public sessions with most cars, where those are
there, and else the package's own day with other capacities.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import inspect
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cmpg
from cmpg.scenarios import charging, robots

DATA = Path(os.environ.get("CMPG_DATA", Path(__file__).parents[2] / "shared" / "data"))
SESSIONS = DATA / "acn" / "caltech_2019-05_2019-08.csv.gz"
FLEETS, DAYS = 26, 20
WORSE = 0.005
"""The share of the total by which an ending may be worse."""


def fleets() -> Iterator[tuple[str, Any]]:
    """Four to sixteen robots, two draws each."""
    known = inspect.signature(robots).parameters
    count = "num_agents" if "num_agents" in known else "agents"
    options = {"edges": False} if "edges" in known else {}
    for fleet in range(FLEETS):
        agents, seed = 4 + fleet // 2, fleet
        yield f"{agents} robots, seed {seed}", robots(**{count: agents}, seed=seed, horizon=30, **options)


def days() -> Iterator[tuple[str, Any]]:
    """The days with most cars."""
    if not SESSIONS.is_file():
        for capacity in range(3, 3 + DAYS):
            yield f"our own day, capacity {capacity}", charging(capacity=capacity)
        return
    with gzip.open(SESSIONS, "rt") as stream:
        rows = list(csv.DictReader(stream))
    for day, _ in sorted(Counter(row["arrival"][:10] for row in rows).most_common(DAYS)):
        yield f"Caltech, {day}", charging(sessions=SESSIONS, day=day)


def record(path: Path) -> None:
    """Solve every game, and write what comes out."""
    found: dict[str, dict[str, Any]] = {}
    for name, game, epsilon in [*((*each, 1e-4) for each in fleets()), *((*each, 1e-6) for each in days())]:
        began = time.process_time()
        result = cmpg.solve(game, epsilon=epsilon)
        seconds = time.process_time() - began
        value = float(result.certificate.values.sum())
        found[name] = {"value": value, "status": result.status.name, "seconds": seconds}
        print(f"{name:<28} {value:12.6f}   {result.status.name}   {seconds:.3f} s", flush=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def compare(old: Path, new: Path) -> int:
    """Print both totals, and return 1 where the new ones are worse by too much, or something is not certified."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    kinds = {"fleets": [name for name in after if "robots" in name], "days": [n for n in after if "robots" not in n]}
    bad = [name for name, each in after.items() if each["status"] != "CERTIFIED"]
    for kind, names in kinds.items():
        totals = [sum(each[name]["value"] for name in names) for each in (before, after)]
        seconds = [sum(each[name]["seconds"] for name in names) for each in (before, after)]
        gained = (totals[1] - totals[0]) / abs(totals[0])
        verdict = "fine" if gained >= -WORSE else f"WORSE by more than {WORSE:.1%}"
        print(
            f"{len(names)} {kind}: total value {totals[0]:.4f} before, {totals[1]:.4f} now ({gained:+.3%}): {verdict}"
        )
        print(f"  seconds of the processor: {seconds[0]:.2f} before, {seconds[1]:.2f} now")
        bad += [kind] if gained < -WORSE else []
    certified = sum(each["status"] == "CERTIFIED" for each in after.values())
    print(
        f"{certified} of {len(after)} certified now, {sum(e['status'] == 'CERTIFIED' for e in before.values())} before"
    )
    return 1 if bad else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("file", type=Path)
    both = commands.add_parser("compare")
    both.add_argument("old", type=Path)
    both.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.old, given.new)
    record(given.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
