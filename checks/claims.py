"""Random claims before an exact judge: nothing is solved for, and most of what is claimed is false.

    python -m checks claims --claims 100000 --jobs 8        stop it and start it as you like
    python -m checks claims --claims 30000 --first 40000    others, such as on another Python

A claim is a game of any form with a policy and multipliers, made of the numbers that hurt (tests/oracles/
random_claims.py); two of five are about crowds, devices that recommend, budgets on risk or sums of very many terms, or
are forged (tests/oracles/rare_claims.py). It is put through every road that leads to a verdict (tests/oracles/
claiming.py, rare_claiming.py), and what is said is compared with what is true, in rationals (tests/oracles/judge.py,
rare_judges.py). Claims are numbered; what was judged is kept in
build/claims, and is judged again only after the library, the judge or Python has changed. The table is build/claims.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from checks import BUILD, evidence
from checks.sweep import fingerprint, kept

CHUNK = 100
"""Claims that are judged before anything is written down."""


def judge_chunk(chunk: int) -> dict[str, Any]:
    """Judge one chunk of claims, and return what is to be kept of it."""
    from oracles.rare_claiming import examine_any

    warnings.simplefilter("ignore")  # numbers that overflow are part of the claims
    said = [examine_any(number) for number in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
    slowest = max(said, key=lambda each: each.seconds)
    return {
        "chunk": chunk,
        "counts": dict(Counter(f"{each.form}/{each.verdict}" for each in said)),
        "arithmetic": dict(Counter(each.arithmetic for each in said)),
        "roads": dict(Counter(road for each in said for road in each.roads)),
        "seconds": sum(each.seconds for each in said),
        "slowest": [slowest.seconds, slowest.seed],
        "wrong": [[each.seed, f"{each.form}, {each.arithmetic}", *each.wrong] for each in said if each.wrong],
    }


def judge_claims(first: int, wanted: int, jobs: int, path: Path) -> list[dict[str, Any]]:
    """Judge what has not been judged, and return all of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chunks = range(first // CHUNK, first // CHUNK - (-wanted // CHUNK))
    done = kept(path)
    left = [chunk for chunk in chunks if chunk not in done]
    print(f"{len(done) * CHUNK:,} claims are judged, {len(left) * CHUNK:,} are left", flush=True)
    began = time.monotonic()
    with path.open("a") as log, get_context("spawn").Pool(jobs) as pool:
        try:
            for number, record in enumerate(pool.imap_unordered(judge_chunk, left), 1):
                log.write(json.dumps(record) + "\n")
                log.flush()
                done[record["chunk"]] = record
                for seed, kind, *problems in record["wrong"]:
                    print(f"claim {seed} ({kind}): {'; '.join(problems)}", flush=True)
                if number % 20 == 0:
                    rate = number * CHUNK / (time.monotonic() - began)
                    print(f"{len(done) * CHUNK:,} claims, {rate:.0f} a second", flush=True)
        except KeyboardInterrupt:
            print("interrupted; the next run goes on from here")
    return [done[chunk] for chunk in chunks if chunk in done]


def page(records: Sequence[dict[str, Any]]) -> str:
    """Return the table of claims by form and verdict, how many took each road, and what is wrong."""
    counts, roads, kinds_of_arithmetic = (
        sum((Counter(record[name]) for record in records), Counter()) for name in ("counts", "roads", "arithmetic")
    )
    forms = sorted({name.split("/")[0] for name in counts})
    verdicts = sorted({name.split("/")[1] for name in counts})
    rows = [[verdict, *(counts[f"{form}/{verdict}"] for form in forms)] for verdict in verdicts]
    rows = [[*row, sum(row[1:])] for row in rows]
    rows.append(["all", *(sum(row[at] for row in rows) for at in range(1, len(forms) + 2))])
    wrong = [each for record in records for each in record["wrong"]]
    total, seconds = sum(counts.values()), sum(record["seconds"] for record in records)
    lines = [
        f"# {total:,} claims, {len(wrong)} wrong (Python {platform.python_version()})",
        "",
        *(f"- claim {seed}, {kind}: {'; '.join(problems)}" for seed, kind, *problems in wrong),
        *([""] if wrong else []),
        "| verdict | " + " | ".join([*forms, "all"]) + " |",
        "|---|" + "---:|" * (len(forms) + 1),
        *(f"| {row[0]} | " + " | ".join(f"{number:,}" for number in row[1:]) + " |" for row in rows),
        "",
        "| road | claims |",
        "|---|---:|",
        *(f"| {road} | {number:,} |" for road, number in roads.most_common()),
        "",
        "; ".join(f"{number:,} in {name}" for name, number in kinds_of_arithmetic.most_common()) + ".",
        f"{1000 * seconds / max(total, 1):.1f} ms of a processor's time for a claim, on average.",
        "",
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Judge claims, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first claim, in hundreds (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = "1"
    version = "".join(platform.python_version_tuple()[:2])
    records = judge_claims(
        chosen.first, chosen.claims, chosen.jobs, BUILD / "claims" / f"{fingerprint()}-{version}.jsonl"
    )
    target = BUILD / "claims.md"
    target.write_text(page(records), "utf-8")
    print(f"{target} is written")
    if len(records) * CHUNK >= parser.get_default("claims"):
        wrong = sum(len(record["wrong"]) for record in records)
        judged = f"{len(records) * CHUNK:,} random claims by every road on Python {platform.python_version()}"
        evidence.record("claims", f"{judged}; {wrong} wrong")
    return 1 if any(record["wrong"] for record in records) else 0
