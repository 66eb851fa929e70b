"""The great sweep: solve random games of every form and kind, and have an exact judge look at every claim.

    python -m checks sweep --games 100000 --jobs 8        stop it and start it as you like

Games are numbered; what is done is kept in build/sweep, and is done again only after the library has changed. The page
is written at the end, and also when the sweep is interrupted: with as many games as were judged.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

from checks import BUILD, ROOT, evidence

CHUNK = 200
"""Games that are solved before anything is written down."""


INTRODUCTION = """# The great sweep

Written by `python -m checks sweep`. Random games of every form and kind are solved by the library, and every claim is
judged by `tests/oracles/judge.py`: rationals only, brute force, and not a line of the library in it. The games are
small and nasty: entries that tie, thresholds that are met with nothing to spare or missed by a hair, scales from
1e-9 to 1e9, unreachable states, probabilities of 1e-300, discounts up to 1 − 2⁻²⁰, costs of both signs, no to three
constraints.

A claim is wrong if a policy that is called feasible exceeds a threshold in exact arithmetic by however little, if one
that is called infeasible does not, if an agent's gain by the bound of its multipliers is above what the certificate
says, if a game that is called infeasible has a policy that pays no more than the weighted thresholds, if a game with a
potential is said to have none, or if anything is raised.
"""


def fingerprint() -> str:
    """Return what identifies the library and the judge."""
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.[ch]"),
        *(ROOT / "tests" / "oracles").rglob("*.py"),
    ]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def sweep_chunk(chunk: int) -> dict:
    """Solve and judge one chunk of games, and return what is to be kept of it; those below zero have masks."""
    from oracles.sweeping import sweep_bound, sweep_one

    if chunk < 0:
        endings = [sweep_bound(seed) for seed in range((-1 - chunk) * CHUNK, -chunk * CHUNK)]
    else:
        endings = [sweep_one(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
    counts = Counter(f"{each.form}/{each.status}" for each in endings)
    slowest = max(endings, key=lambda each: each.seconds)
    return {
        "chunk": chunk,
        "counts": dict(counts),
        "missed": sum(each.missed for each in endings),
        "by_support": sum(each.by_support for each in endings),
        "seconds": sum(each.seconds for each in endings),
        "slowest": [slowest.seconds, slowest.seed],
        "wrong": [[each.seed, each.status, *each.wrong] for each in endings if each.wrong],
    }


def kept(path: Path) -> dict[int, dict]:
    """Return the chunks that were judged before; a line that was torn off is judged again."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[record["chunk"]] = record
    return found


def sweep(wanted: int, masked: int, jobs: int, path: Path) -> dict[int, dict]:
    """Judge what has not been judged, and return all of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = kept(path)
    left = [chunk for chunk in range(-(masked // CHUNK), -(-wanted // CHUNK)) if chunk not in done]
    print(f"{len(done) * CHUNK:,} games are judged, {len(left) * CHUNK:,} are left", flush=True)
    began = time.monotonic()
    with path.open("a") as log, get_context("spawn").Pool(jobs) as pool:
        try:
            for number, record in enumerate(pool.imap_unordered(sweep_chunk, left), 1):
                log.write(json.dumps(record) + "\n")
                log.flush()
                done[record["chunk"]] = record
                for seed, status, *problems in record["wrong"]:
                    print(f"game {seed} ended {status}: {'; '.join(problems)}", flush=True)
                if number % 10 == 0:
                    rate = number * CHUNK / (time.monotonic() - began)
                    print(f"{len(done) * CHUNK:,} games, {rate:.0f} a second", flush=True)
        except KeyboardInterrupt:
            print("interrupted; the next run goes on from here")
    return done


def table(records: Iterable[dict]) -> list[str]:
    """Return how many games of each form ended how, and what was wrong."""
    counts = Counter()
    for record in records:
        counts.update(record["counts"])
    forms = sorted({name.split("/")[0] for name in counts})
    endings = sorted({name.split("/")[1] for name in counts})
    games, wrong = sum(counts.values()), [each for record in records for each in record["wrong"]]
    rows = [[ending, *(counts[f"{form}/{ending}"] for form in forms)] for ending in endings]
    rows = [[*row, sum(row[1:])] for row in rows]
    rows.append(["all", *(sum(row[at] for row in rows) for at in range(1, len(forms) + 2))])
    lines = ["| ending | " + " | ".join([*forms, "all"]) + " |", "|---|" + "---:|" * (len(forms) + 1)]
    lines += [f"| {row[0]} | " + " | ".join(f"{number:,}" for number in row[1:]) + " |" for row in rows]
    findings = "Nothing that the library said was wrong." if not wrong else f"**{len(wrong)} claims were wrong:**"
    listed = [f"- game {seed}, {status}: {'; '.join(problems)}" for seed, status, *problems in wrong[:50]]
    return [f"{games:,} games. {findings}", "", *listed, *([""] if listed else []), *lines, ""]


def page(records: Iterable[dict], masked: Iterable[dict]) -> str:
    """Return build/sweep.md."""
    records, masked = list(records), list(masked)
    games = sum(sum(record["counts"].values()) for record in records)
    slowest = max(record["slowest"] for record in records)
    mean = 1000 * sum(record["seconds"] for record in records) / games
    missed = sum(record["missed"] for record in records)
    parts = [
        INTRODUCTION,
        *table(records),
        f"A solve took {mean:.1f} ms of a processor's time on average, and {slowest[0]:.2f} s at worst (game "
        f"{slowest[1]}).",
        f"In {missed:,} games no start was found though some policy is known to meet the thresholds: with several",
        "constraints, or agents who see their own states only, to find one is a hard problem, and the ending says",
        "that nothing was ruled out.",
        "",
    ]
    if masked:
        proofs = sum(record["by_support"] for record in masked)
        parts += [
            "## Masks, and budgets of zero",
            "",
            "Games of every form whose constraints bind some agents only, by a random mask, every other one with costs",
            "that are zero half of the time and thresholds of zero. Where constraints bind some agents only there need",
            "not be an equilibrium, and the moves may go in a circle, which ends at a limit.",
            f"{proofs:,} of the policies are proved by support, for some agent and constraint.",
            "",
            *table(masked),
        ]
    return "\n".join(parts)


def main(argv: list[str]) -> int:
    """Sweep, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=100_000)
    parser.add_argument("--masked", type=int, default=2_000, help="games with masks and hard budgets")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", type=Path, default=BUILD / "sweep.md")
    chosen = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = "1"
    done = sweep(chosen.games, chosen.masked, chosen.jobs, BUILD / "sweep" / f"{fingerprint()}.jsonl")
    records = [record for chunk, record in sorted(done.items()) if 0 <= chunk * CHUNK < chosen.games]
    masked = [record for chunk, record in sorted(done.items()) if -chosen.masked <= chunk * CHUNK < 0]
    if not records:
        return 1
    chosen.page.write_text(page(records, masked), "utf-8")
    print(f"{chosen.page} is written")
    games = sum(sum(record["counts"].values()) for record in (*records, *masked))
    wrong = sum(len(record["wrong"]) for record in (*records, *masked))
    if chosen.games >= parser.get_default("games"):
        evidence.record("sweep", f"{games:,} random games of every form; {wrong} wrong claims")
    return 1 if any(record["wrong"] for record in (*records, *masked)) else 0
