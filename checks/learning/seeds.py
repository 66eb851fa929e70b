"""Run the experiments that are missing, and write their page: of joint games, or of those with more structure.

python -m checks learning [--structured] [--jobs 2] [--seeds N]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from checks import BUILD, evidence, fingerprint
from checks.learning.cases import DELTA, MAX_FAILURES, cases, structured_cases
from checks.learning.page import Found, page, structured_page
from checks.learning.runner import number_missing, results_of, run_missing, seed_records
from cmpg.runs import Jobs


def main(argv: list[str]) -> int:
    """Run, write, and return 1 where something failed more often than it may."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    given = _arguments(argv)
    wanted = structured_cases() if given.structured else cases()
    chosen = [replace(case, seeds=min(case.seeds, given.seeds)) if given.seeds else case for case in wanted]
    path = BUILD / "learning" / fingerprint() / "seeds.jsonl"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns) as bar:
            task = bar.add_task("seeds", total=number_missing(chosen, path=path))
            for _ in run_missing(chosen, path=path, jobs=Jobs(given.jobs, given.backend, given.scheduler)):
                bar.advance(task)
    except KeyboardInterrupt:
        print(f"stopped; what is done is in {path}, and the next run goes on from there", file=sys.stderr)
        return 1
    records = seed_records(path)
    found = [Found(case, results_of(case, records)) for case in chosen]
    target = BUILD / ("learning-structured.md" if given.structured else "learning.md")
    target.write_text(structured_page(found) if given.structured else page(found), encoding="utf-8")
    print(f"written to {target}")
    if not given.seeds:
        _headline(path)
    return _verdict(found)


def _headline(path: Path) -> None:
    """Record what both lists of cases found, when all of their seeds are there."""
    records = seed_records(path)
    everything = [Found(case, results_of(case, records)) for case in (*cases(), *structured_cases())]
    if all(len(each.records) == each.case.seeds for each in everything):
        wrong = sum(not record["right"] for each in everything for record in each.records)
        runs = sum(len(each.records) for each in everything)
        executed, unsafe = (
            sum(record[name] for each in everything for record in each.records if each.case.experiment == "safety")
            for name in ("executed_policies", "unsafe_policies")
        )
        evidence.record(
            "learning",
            f"{runs:,} runs that may fail with probability {DELTA:g}: {wrong} wrong claims; {executed:,} policies "
            f"executed by safe exploration, {unsafe} unsafe",
        )


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What learning from samples must show, over hundreds of seeds.")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--backend", choices=("loky", "threads", "dask", "ray"), help="where they run; loky if omitted")
    parser.add_argument("--scheduler", help="address of a running dask or ray cluster")
    parser.add_argument("--seeds", type=int, default=0, help="at most so many seeds of everything, for a first look")
    parser.add_argument("--structured", action="store_true", help="local, counting and discounted games")
    return parser.parse_args(argv)


def _verdict(found: list[Found]) -> int:
    failed = 0
    for each in found:
        wrong = sum(not record["right"] for record in each.records)
        unsafe = sum(record["unsafe_policies"] > 0 for record in each.records)
        allowed = MAX_FAILURES * len(each.records) / 200
        worst = wrong if each.case.experiment == "coverage" else unsafe
        if worst > allowed:
            print(f"{each.case.name}, {each.case.mode}: {worst} failures; at most {allowed:.0f} are allowed")
            failed = 1
    return failed
