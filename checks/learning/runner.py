"""Runs what is missing, seed by seed: it can be stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from checks.learning.cases import GAMES, Case
from checks.records import Record, Records
from cmpg.equilibrium.result import Status
from cmpg.files.learning_folder import trial_record
from cmpg.learning.trials import trial
from cmpg.runs import Jobs, run_tasks


def seed_records(path: Path) -> Records:
    """Return the records of a file, a seed of a case each."""
    return Records(path, lambda record: (record["key"], record["seed"]))


def run_seed(case: Case, seed: int) -> Record:
    """Learn once, judge with the true model, and return a record."""
    game = GAMES[case.game]()
    for_start, for_run = case.stream(seed).spawn(2)
    method = case.method(game, np.random.default_rng(for_start))
    done = trial(case.hidden(game), method, (seed, for_run))
    if done.result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # half a run is no result
    return {"key": case.key, **trial_record(done)}


def results_of(case: Case, records: Records) -> list[Record]:
    """Return a case's own records, one per seed, in the order of the seeds."""
    return [records.known[case.key, seed] for seed in range(case.seeds) if (case.key, seed) in records.known]


def _run_one(task: tuple[Case, int]) -> Record:
    return run_seed(*task)


def run_missing(cases: Sequence[Case], *, path: Path, jobs: int | Jobs) -> Iterator[None]:
    """Run every seed that has no record yet; yield after each, so that a bar can move."""
    records = seed_records(path)
    missing = [(case, seed) for case in cases for seed in range(case.seeds) if (case.key, seed) not in records.known]
    for _, record in run_tasks(_run_one, missing, jobs=jobs):
        records.keep(record)
        yield


def number_missing(cases: Sequence[Case], *, path: Path) -> int:
    """Return how many seeds have no record yet."""
    records = seed_records(path)
    return sum(case.seeds - len(results_of(case, records)) for case in cases)
