"""Random claims before an exact judge: nothing is solved for, and most of what is claimed is false.

    python -m checks claims --claims 100000 --jobs 8        stop it and start it as you like
    python -m checks claims --claims 30000 --first 40000    others, such as on another Python

A claim is a game of any form with a policy and multipliers, made of the numbers that hurt (tests/oracles/
random_claims.py); two of five are about crowds, devices that recommend, budgets on risk or sums of very many terms, or
are forged (tests/oracles/rare_claims.py). It is put through every road that leads to a verdict (tests/oracles/
claiming.py, rare_claiming.py), and what is said is compared with what is true, in rationals (tests/oracles/judge.py,
rare_judges.py). Claims are numbered; what was judged is kept in
build/claims, and is judged again only after the library, the judge or Python has changed. The table of all that was
judged since then, by whatever Python, is build/claims.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from checks import BUILD, evidence, fingerprint
from checks.records import Record, Records, by_form, judged_chunks, wrong_lines

CHUNK = 100
"""Claims that are judged before anything is written down."""


def judge_chunk(chunk: int) -> Record:
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


def page(records: Sequence[Record], where: str) -> str:
    """Return the table of claims by form and verdict, how many took each road, and what is wrong."""
    counts, roads, kinds_of_arithmetic = (
        sum((Counter(record[name]) for record in records), Counter()) for name in ("counts", "roads", "arithmetic")
    )
    wrong, total = wrong_lines(records, "claim"), sum(counts.values())
    seconds = sum(record["seconds"] for record in records)
    lines = [
        f"# {total:,} claims, {len(wrong)} wrong ({where})",
        "",
        *wrong,
        *[""] * bool(wrong),
        *by_form(records, "verdict"),
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
    version = ".".join(platform.python_version_tuple()[:2])
    chunks = range(chosen.first // CHUNK, chosen.first // CHUNK - (-chosen.claims // CHUNK))
    folder, sources = BUILD / "claims", fingerprint("tests/oracles")
    path = folder / f"{sources}-{version}.jsonl"
    judged_chunks(judge_chunk, chunks, path, size=CHUNK, what="claim", jobs=chosen.jobs)
    by_python = {
        each.stem.removeprefix(f"{sources}-"): list(Records(each, lambda record: int(record["chunk"])).known.values())
        for each in sorted(folder.glob(f"{sources}-*.jsonl"))
    }
    records = list(chain.from_iterable(by_python.values()))
    where = ", ".join(f"{len(judged) * CHUNK:,} on Python {name}" for name, judged in by_python.items())
    target = BUILD / "claims.md"
    target.write_text(page(records, where), "utf-8")
    print(f"{target} is written")
    wrong = sum(len(record["wrong"]) for record in records)
    if len(records) * CHUNK >= parser.get_default("claims"):
        evidence.record("claims", f"{len(records) * CHUNK:,} random claims by every road, {where}; {wrong} wrong")
    return 1 if wrong else 0
