"""Run the experiments that are missing, and write their page: of joint games, or of those with more structure.

python -m checks learning [--structured] [--jobs 2] [--seeds N] [--results build/learning] [--page docs/…]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from checks import BUILD
from checks.learning.cases import MOST_FAILURES, cases, structured_cases
from checks.learning.page import Found, page, structured_page
from checks.learning.runner import number_missing, read_results, results_of, run_missing
from checks.learning.throughput import measure
from cmpg.runs import Jobs


def main(argv: list[str]) -> int:
    """Run, write, and return 1 where something failed more often than it may."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    given = _arguments(argv)
    wanted = structured_cases() if given.structured else cases()
    chosen = [replace(case, seeds=min(case.seeds, given.seeds)) if given.seeds else case for case in wanted]
    path = given.results / "seeds.jsonl"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns) as bar:
            task = bar.add_task("seeds", total=number_missing(chosen, path=path))
            for _ in run_missing(chosen, path=path, jobs=Jobs(given.jobs, given.backend, given.scheduler)):
                bar.advance(task)
    except KeyboardInterrupt:
        print(f"stopped; what is done is in {path}, and the next run goes on from there", file=sys.stderr)
        return 1
    records = read_results(path)
    found = [Found(case, results_of(case, records)) for case in chosen]
    target = given.page or BUILD / ("experiments-structured.md" if given.structured else "experiments.md")
    target.write_text(structured_page(found) if given.structured else page(found, measure()), encoding="utf-8")
    print(f"written to {target}")
    return _verdict(found)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What learning from samples must show, over hundreds of seeds.")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--backend", choices=("loky", "threads", "dask", "ray"), help="where they run; loky if omitted")
    parser.add_argument("--scheduler", help="address of a running dask or ray cluster")
    parser.add_argument("--seeds", type=int, default=0, help="at most so many seeds of everything, for a first look")
    parser.add_argument("--results", type=Path, default=BUILD / "learning", help="folder of the records")
    parser.add_argument("--page", type=Path, help="where to write; a page in docs/ if omitted")
    parser.add_argument("--structured", action="store_true", help="local, counting and discounted games")
    return parser.parse_args(argv)


def _verdict(found: list[Found]) -> int:
    failed = 0
    for each in found:
        wrong = sum(not record["right"] for record in each.records)
        unsafe = sum(record["unsafe_policies"] > 0 for record in each.records)
        allowed = MOST_FAILURES * len(each.records) / 200
        worst = wrong if each.case.experiment == "coverage" else unsafe
        if worst > allowed:
            print(f"{each.case.name}, {each.case.mode}: {worst} failures; at most {allowed:.0f} are allowed")
            failed = 1
    return failed
