"""`Exact` beside HiGHS and beside its NumPy twin on the same CMDPs in the same run; backward induction beside a read.

HiGHS is given the occupancy program as built by `LinearProgram`; only its own time counts, not the assembly. Times are
those of the processor, so that other work on the machine does not count; for HiGHS, which may use several threads, the
smaller of processor and elapsed time. The faster of its methods counts: the second is stopped when the first was done.
Both are stopped where the ratio is half beyond its aim, and it is then a lower bound. Cases are drawn from fixed
seeds; `SPARE` has others, which nothing was tuned on.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from checks.bench.outcome import Outcome, or_broken
from cmpg.cmdp.exact import Exact, greatest_slack
from cmpg.cmdp.highs import propose
from cmpg.cmdp.kernels.choice import kernels_used
from cmpg.cmdp.linear_program import occupancy_model
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import dual_bound, plan
from cmpg.errors import SolverError
from cmpg.scenarios.paper import grid_world


@dataclass(frozen=True)
class Case:
    name: str
    cmdp: CMDP
    target: float | None  # how many times faster than HiGHS's best method; None: HiGHS is not run


def grid_case() -> Case:
    """The CMDP of one agent in the paper's grid world while the other plays at random; joint states."""
    game = grid_world()
    cmdp = game.at(game.random_policy(rng=np.random.default_rng(0))).induced_cmdp(0)
    return Case("induced grid world, S=256 A=4 H=6, k=1", cmdp, 10)


def sparse_case(
    constraints: int, target: float | None, *, states=1000, actions=10, horizon=20, successors=5, seed=None
) -> Case:
    rng = np.random.default_rng(constraints if seed is None else seed)
    pairs = states * actions
    matrices = []
    for _ in range(horizon):
        index = (np.repeat(np.arange(pairs), successors), rng.integers(states, size=pairs * successors))
        shares = rng.dirichlet(np.ones(successors), size=pairs).ravel()
        matrices.append(sp.csr_array((shares, index), shape=(pairs, states)))
    name = f"sparse, S={states} A={actions} H={horizon}, {successors} successors, k={constraints}{_spare(seed)}"
    return Case(name, _with_binding_thresholds(matrices, (horizon, states, actions), constraints, rng), target)


def dense_case(target: float | None, *, states=100, actions=10, horizon=20, seed=None) -> Case:
    rng = np.random.default_rng(0 if seed is None else seed)
    transition = rng.dirichlet(np.ones(states), size=(horizon, states, actions))
    cmdp = _with_binding_thresholds(transition, (horizon, states, actions), 1, rng)
    return Case(f"dense, S={states} A={actions} H={horizon}, k=1{_spare(seed)}", cmdp, target)


def _spare(seed: int | None) -> str:
    return "" if seed is None else f", seed {seed}"


def _with_binding_thresholds(transition, shape, constraints, rng) -> CMDP:
    """Thresholds at three tenths of the way from the policy of greatest slack to the unconstrained optimum."""
    cmdp = CMDP(
        transition=transition,
        reward=rng.random(shape),
        costs=rng.random((constraints, *shape)),
        thresholds=np.zeros(constraints),
        initial=rng.dirichlet(np.ones(shape[1])),
        horizon=shape[0],
    )
    free, least = plan(cmdp, np.zeros(constraints)).costs, greatest_slack(cmdp).costs
    return replace(cmdp, thresholds=least + 0.3 * (free - least), trusted=True)


def seconds_of(work, *, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def afresh(game):
    """Return the same game without what earlier solves have left with it."""
    return game.with_thresholds(game.thresholds)


def beside_twin(work, *, rounds: int) -> tuple[float, float]:
    """Return the seconds of the kernels that run, and of their NumPy twins, in turns: a busy moment falls on both."""
    times = []
    chosen = os.environ.get("CMPG_KERNELS")
    for _ in range(rounds):
        own = seconds_of(work, repeats=2)
        os.environ["CMPG_KERNELS"] = "numpy"
        try:
            times.append((own, seconds_of(work, repeats=1)))
        finally:
            os.environ.pop("CMPG_KERNELS")
            if chosen is not None:
                os.environ["CMPG_KERNELS"] = chosen
    own, twin = np.min(times, axis=0)
    return float(own), float(twin)


@dataclass(frozen=True)
class HighsRun:
    method: str
    seconds: float
    value: float | None  # None where the time limit came first

    def __str__(self) -> str:
        return f"HiGHS {self.method} {'' if self.value is not None else '> '}{self.seconds:.3g} s"


def run_highs(cmdp: CMDP, method: str, time_limit: float) -> HighsRun:
    model = occupancy_model(cmdp)
    elapsed, processor = time.perf_counter(), time.process_time()

    def seconds() -> float:
        return min(time.perf_counter() - elapsed, time.process_time() - processor)

    try:
        proposal = propose(model, method=method, time_limit=time_limit)
    except SolverError:
        return HighsRun(method, seconds(), None)
    taken = seconds()
    rewards = np.broadcast_to(cmdp.reward, cmdp.policy_shape)
    return HighsRun(method, taken, float(proposal.values @ rewards.ravel()))


def compare(case: Case, quick: bool) -> list[Outcome]:
    """Print one block of the report."""
    cmdp = case.cmdp
    answer = Exact()(cmdp)
    fast, twin = beside_twin(lambda: Exact()(cmdp), rounds=3 if cmdp.num_constraints > 1 else 6)
    print(case.name)
    print(
        f"  Exact {1e3 * fast:.3g} ms ({kernels_used()}), {1e3 * twin:.3g} ms (numpy), {answer.work} dynamic programs,"
    )
    print(f"  gap {answer.gap:.1e}", flush=True)
    outcomes = [
        Outcome("  Exact", 1e3 * fast, unit="ms"),
        Outcome("  against the NumPy twin", twin / fast),
        Outcome("  dynamic programs", answer.work, unit=""),
    ]
    if case.target is None:
        return [replace(outcomes[0], what=case.name), *outcomes[1:]]
    limit = 5.0 if quick else max(25.0, BEYOND_THE_AIM * case.target * fast)
    runs = []
    for method in ("ipm", "simplex") if cmdp.is_sparse else ("simplex", "ipm"):  # the faster one first, mostly
        runs.append(run_highs(cmdp, method, limit))
        if runs[-1].value is not None:
            limit = min(limit, max(runs[-1].seconds, 0.1))
    done = [run for run in runs if run.value is not None]
    best = min((run.seconds for run in done), default=min(run.seconds for run in runs))
    differences = [abs(run.value - answer.value) / max(1.0, abs(answer.value)) for run in done if run.value is not None]
    memory = peak_memory(cmdp)
    print(f"  {';  '.join(map(str, runs))}")
    print(f"  ratio to HiGHS's best: {'' if done else '> '}{best / fast:.0f}×")
    print(f"  difference of values: {max(differences):.1e}" if done else "  HiGHS did not finish: no value to compare")
    print(f"  peak memory, model included: {memory:.2f} times the model's arrays", flush=True)
    outcomes = [
        Outcome(case.name, best / fast, case.target, stopped=not done),
        *outcomes,
        Outcome("  peak memory, model included, to the model", memory, 2, unit="times", at_most=True),
    ]
    if done:
        outcomes.append(Outcome("  difference of the values", max(differences), 1e-8, unit="", at_most=True))
    return outcomes


def model_bytes(cmdp: CMDP) -> int:
    if cmdp.is_sparse:
        tables = [array for m in cmdp.transition for array in (m.data, m.indices, m.indptr)]
    else:
        tables = [cmdp.transition]
    return sum(array.nbytes for array in (*tables, cmdp.reward, cmdp.costs, cmdp.initial, cmdp.thresholds))


def peak_memory(cmdp: CMDP) -> float:
    """Peak of a solve, model included, over the bytes of the model; what was cached before is forgotten."""
    fresh = replace(cmdp, trusted=True)
    tracemalloc.start()
    Exact()(fresh)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return 1 + peak / model_bytes(cmdp)


def reading(cmdp: CMDP) -> Outcome:
    """Backward induction reads each CSR array once: compare its speed with a pass that does nothing else."""
    multipliers = np.full(cmdp.num_constraints, 0.3)

    def read() -> None:
        for matrix in cmdp.transition:
            matrix.data.dot(matrix.data)
            np.bitwise_or.reduce(matrix.indices)
            np.bitwise_or.reduce(matrix.indptr)

    size = sum(array.nbytes for m in cmdp.transition for array in (m.data, m.indices, m.indptr))
    works = (read, lambda: dual_bound(cmdp, multipliers), lambda: plan(cmdp, multipliers))
    # In turns, so that a busy moment of the machine falls on all of them.
    rounds = [[seconds_of(work, repeats=2) for work in works] for _ in range(40)]
    read_once, bound, planned = np.min(rounds, axis=0)
    print(f"backward induction on the sparse CMDP, k={cmdp.num_constraints}: {size / 1e6:.1f} MB of CSR arrays")
    print(f"  one read {1e3 * read_once:.2f} ms;  dual_bound {1e3 * bound:.2f} ms;  plan {1e3 * planned:.2f} ms")
    print(f"  dual_bound runs at {read_once / bound:.0%} of the speed of the read", flush=True)
    return Outcome("backward induction, against one read of the arrays", read_once / bound, 0.3, unit="times")


SPARE = 1_000
"""The first of the seeds that nothing was tuned on."""

BEYOND_THE_AIM = 1.5
"""HiGHS is stopped where the ratio is this many times its aim."""


def cases(quick: bool) -> Iterator[Case]:
    yield grid_case()
    for constraints, target in ((1, 1000), (3, 300)) if quick else ((1, 1000), (3, 300), (10, 50)):
        yield sparse_case(constraints, target)
    yield dense_case(500)
    for seed in range(SPARE, SPARE + (1 if quick else 2)):
        for constraints in (1, 3) if quick else (1, 3, 10):
            yield sparse_case(constraints, None, seed=seed)
        yield dense_case(None if quick else 500, seed=seed)


def main(quick: bool) -> list[Outcome]:
    outcomes = [reading(sparse_case(1, None).cmdp)]
    for case in cases(quick):
        outcomes += or_broken(case.name, partial(compare, case, quick))
    return outcomes
