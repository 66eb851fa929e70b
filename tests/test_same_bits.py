"""The same call has the same bits, whatever the hashes, threads, processes and what ran before: answers and files."""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cmpg
from cmpg.cmdp.kernels.choice import compiled
from cmpg.files.learning_folder import keep_trial
from cmpg.learning.trials import BySharedModel, HiddenGame, trials
from oracles.random_games import draw, suitable_epsilon
from oracles.sweeping import build

SEEDS = (0, 3, 4, 7, 9, 12)
"""Random games of several forms."""


def digests(folder: Path, *, jobs: int = 1, workers: int = 1) -> dict[str, str]:
    """Solve, learn, sweep and write, and return what every answer and every file comes to."""
    found = {}
    for seed in SEEDS:
        drawn = draw(seed)
        result = cmpg.solve(
            build(drawn.game),
            epsilon=suitable_epsilon(drawn.game),
            restarts=cmpg.Restarts(3),
            rng=seed,
            method=cmpg.Ascent(schedule=cmpg.GreatestGain(), workers=workers),
        )
        found[f"{seed} {drawn.form}"] = answer(result)
    grid = cmpg.solve(cmpg.scenarios.grid_world_local(), method=cmpg.Ascent(workers=workers))
    found["grid"] = answer(grid)
    grid.save(folder / "run")
    game = cmpg.scenarios.counter_example()
    (folder / "learn").mkdir()
    cmpg.save_game(game, folder / "learn" / "game.npz")
    hidden, method = HiddenGame(game, budget=2000), BySharedModel(epsilon=0.5, delta=0.1)
    for each in trials(hidden, method, streams=np.random.SeedSequence(1).spawn(3), jobs=jobs):
        keep_trial(folder / "learn", each)
    cmpg.sweeps.sweep("spectrum", {"threshold": [0.1, 0.3], "num_agents": 2}, out=folder / "sweep", jobs=jobs)
    timed = ("timings.csv", "row.json")  # seconds, beside what results.csv has without them
    files = sorted(path for path in folder.rglob("*.*") if path.is_file() and path.name not in timed)
    found |= {str(path.relative_to(folder)): file_digest(path) for path in files}
    return found


def answer(result) -> str:
    """What a result comes to: its ending, and every bit of the policy, of the proof, and of all other equilibria."""
    told = [result.status.name, result.message]
    for each in (result, *result.equilibria):
        if each.incumbent is not None:
            numbers = (each.multipliers, each.values, each.costs, each.certificate.gains)
            told += [each.policy.fingerprint().hex(), *(array.tobytes().hex() for array in numbers)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """What a file comes to, without the seconds and the number of workers that it records."""
    data = path.read_bytes()
    if path.name == "trace.csv":
        rows = list(csv.DictReader(io.StringIO(data.decode())))
        data = repr([{name: cell for name, cell in row.items() if name != "seconds"} for row in rows]).encode()
    elif path.suffix == ".jsonl":
        records = [json.loads(line) for line in data.decode().splitlines()]
        data = repr([{name: value for name, value in each.items() if name != "seconds"} for each in records]).encode()
    elif path.name == "result.json":
        record = json.loads(data)
        del record["settings"]["workers"]
        data = repr(record).encode()
    return hashlib.sha256(data).hexdigest()


def elsewhere(folder: Path, *, hashes: str, threads: int, jobs: int = 1, workers: int = 1) -> dict[str, str]:
    """The same in a process of its own."""
    folder.mkdir()
    code = (
        "import json, pathlib, sys; sys.path.insert(0, sys.argv[1]); from test_same_bits import digests;"
        f"print(json.dumps(digests(pathlib.Path(sys.argv[2]), jobs={jobs}, workers={workers})))"
    )
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | {"PYTHONHASHSEED": hashes} | dict.fromkeys(names, str(threads))
    words = [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_hashes_threads_and_processes_change_no_bit(tmp_path):
    here = elsewhere(tmp_path / "a", hashes="0", threads=1)
    there = elsewhere(tmp_path / "b", hashes="4242", threads=2, jobs=2, workers=2)
    assert here == there
    assert {name.split("/")[0] for name in here} >= {"run", "learn", "grid", "sweep"}


def test_what_ran_before_in_the_same_process_changes_no_bit(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


def test_a_change_would_be_seen(tmp_path):
    result = cmpg.solve(cmpg.scenarios.counter_example())
    other = cmpg.solve(cmpg.scenarios.spectrum())
    assert answer(result) == answer(cmpg.solve(cmpg.scenarios.counter_example()))
    assert answer(result) != answer(other)
    for name, game in (("a", result), ("b", other)):
        game.save(tmp_path / name)
    assert file_digest(tmp_path / "a" / "policy.npz") != file_digest(tmp_path / "b" / "policy.npz")


def test_threads_of_joblib_give_the_bits_of_its_processes():
    import joblib

    hidden = HiddenGame(cmpg.scenarios.counter_example(), budget=2000)
    method = BySharedModel(epsilon=0.5, delta=0.1)
    streams = np.random.SeedSequence(1).spawn(3)
    alone = [each.result.policy.fingerprint() for each in trials(hidden, method, streams=streams)]
    with joblib.parallel_config(backend="threading"):
        threaded = list(trials(hidden, method, streams=streams, jobs=2))
    assert [each.result.policy.fingerprint() for each in threaded] == alone


@pytest.mark.skipif(compiled() is None, reason="there are no compiled kernels here, or they are not wanted")
def test_certificates_of_one_claim_are_the_same_under_either_kernels_up_to_rounding(monkeypatch):
    """Bits are promised under one kind of kernels; under the other, a claim is worth the same up to its rounding."""
    for seed in SEEDS:
        drawn = draw(seed)
        game = build(drawn.game)
        result = cmpg.solve(game, epsilon=suitable_epsilon(drawn.game))
        if result.incumbent is None:
            continue
        monkeypatch.setenv("CMPG_KERNELS", "numpy")
        judged = cmpg.certify(build(drawn.game), result.policy, result.multipliers)
        monkeypatch.delenv("CMPG_KERNELS")
        allowed = 2 * (judged.rounding + result.certificate.rounding)
        assert (np.abs(judged.gains - result.certificate.gains) <= allowed).all()
        assert judged.feasibility is result.certificate.feasibility
