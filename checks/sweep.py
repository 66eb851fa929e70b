"""Solve random games of every form and kind, and have an exact judge look at every claim.

    python -m checks sweep --games 100000 --jobs 8        stop it and start it as you like

Games are numbered; what is done is kept in build/sweep, and is done again only after the library has changed. The page
is written at the end, and also when the sweep is interrupted: with as many games as were judged.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from checks import BUILD, evidence, fingerprint
from checks.records import Record, by_form, judged_chunks, wrong_lines

CHUNK = 200
"""Games that are solved before anything is written down."""


INTRODUCTION = """# Random games before an exact judge

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


def sweep_chunk(chunk: int) -> Record:
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


def table(records: Sequence[Record]) -> list[str]:
    """Return how many games of each form ended how, and what was wrong."""
    games, wrong = sum(sum(record["counts"].values()) for record in records), wrong_lines(records, "game")
    findings = "Nothing that the library said was wrong." if not wrong else f"**{len(wrong)} claims were wrong:**"
    return [f"{games:,} games. {findings}", "", *wrong[:50], *[""] * bool(wrong), *by_form(records, "ending"), ""]


def page(records: Sequence[Record], masked: Sequence[Record]) -> str:
    """Return build/sweep.md."""
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
    chunks, path = range(-(chosen.masked // CHUNK), -(-chosen.games // CHUNK)), fingerprint("tests/oracles")
    done = judged_chunks(
        sweep_chunk, chunks, BUILD / "sweep" / f"{path}.jsonl", size=CHUNK, what="game", jobs=chosen.jobs
    )
    records = [record for record in done if record["chunk"] >= 0]
    masked = [record for record in done if record["chunk"] < 0]
    if not records:
        return 1
    chosen.page.write_text(page(records, masked), "utf-8")
    print(f"{chosen.page} is written")
    games = sum(sum(record["counts"].values()) for record in (*records, *masked))
    wrong = sum(len(record["wrong"]) for record in (*records, *masked))
    if chosen.games >= parser.get_default("games"):
        evidence.record("sweep", f"{games:,} random games of every form; {wrong} wrong claims")
    return 1 if any(record["wrong"] for record in (*records, *masked)) else 0
