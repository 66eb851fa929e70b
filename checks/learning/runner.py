"""Runs what is missing, seed by seed, and appends one JSON line per seed: it can be stopped and started again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from checks.learning.cases import GAMES, Case
from cmpg.equilibrium.result import Status
from cmpg.files.learning_folder import trial_record
from cmpg.learning.trials import trial
from cmpg.runs import Jobs, run_tasks

Record = dict[str, Any]


def run_seed(case: Case, seed: int) -> Record:
    """Learn once, judge with the true model, and return a record."""
    game = GAMES[case.game]()
    for_start, for_run = case.stream(seed).spawn(2)
    method = case.method(game, np.random.default_rng(for_start))
    done = trial(case.hidden(game), method, (seed, for_run))
    if done.result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # half a run is no result
    return {"key": case.key, **trial_record(done)}


def read_results(path: Path) -> list[Record]:
    """Read the lines that are whole; a last one that was cut off is run again."""
    if not path.is_file():
        return []
    records = []
    for line in path.read_text("utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def results_of(case: Case, records: Sequence[Record]) -> list[Record]:
    """Return a case's own records, one per seed, in the order of the seeds."""
    own = {record["seed"]: record for record in records if record["key"] == case.key and record["seed"] < case.seeds}
    return [own[seed] for seed in sorted(own)]


def _run_one(task: tuple[Case, int]) -> Record:
    return run_seed(*task)


def run_missing(cases: Sequence[Case], *, path: Path, jobs: int | Jobs) -> Iterator[None]:
    """Run every seed that has no record yet; yield after each, so that a bar can move."""
    records = read_results(path)
    there = {(record["key"], record["seed"]) for record in records}
    missing = [(case, seed) for case in cases for seed in range(case.seeds) if (case.key, seed) not in there]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write("\n" if path.stat().st_size else "")  # an interrupted line ends here
        for _, record in run_tasks(_run_one, missing, jobs=jobs):
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            yield


def number_missing(cases: Sequence[Case], *, path: Path) -> int:
    """Return how many seeds have no record yet."""
    records = read_results(path)
    return sum(case.seeds - len(results_of(case, records)) for case in cases)
