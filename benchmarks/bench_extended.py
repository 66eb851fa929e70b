"""The extended CMDP of a box: optimistic backward induction and frontier search, beside the linear program by HiGHS.

Both are given the same boxes in the same run, and the answers are compared; the search also with its NumPy twin.
"""

import time

import numpy as np
from tests.oracles.extended_lp import extended_linear_program

from benchmarks.bench_cmdp import beside_twin
from benchmarks.outcome import Outcome
from cmpg.cmdp.box import BoxCMDP, optimistic_response
from cmpg.cmdp.model import CMDP

STATES, ACTIONS, HORIZON = 20, 4, 6


def random_box(rng, *, states, actions, horizon):
    """Dense Dirichlet rows, a radius of up to 0.05 on each entry, and a threshold that binds."""
    shape = (horizon, states, actions)
    transition = rng.dirichlet(np.ones(states), size=shape)
    radii = 0.05 * rng.random(transition.shape)
    cmdp = CMDP(
        transition=transition,
        reward=rng.random(shape),
        costs=rng.random((1, *shape)),
        thresholds=[0.35 * horizon],
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    return BoxCMDP(cmdp, np.maximum(transition - radii, 0.0), np.minimum(transition + radii, 1.0))


def timed(solve, repeats=1):
    """Return the answer and the shortest of several times."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        answer = solve()
        best = min(best, time.perf_counter() - start)
    return answer, best


def main(quick):
    rng = np.random.default_rng(0)
    print(f"S={STATES} A={ACTIONS} H={HORIZON}: seconds, ratio to the search, difference of the values")
    worst_ratio, worst_difference, twins = np.inf, 0.0, []
    for instance in range(1 if quick else 3):
        box = random_box(rng, states=STATES, actions=ACTIONS, horizon=HORIZON)
        search, search_time = timed(lambda box=box: optimistic_response(box), repeats=5)
        print(
            f"instance {instance}: search   {search_time:9.4f} s   value {search.value:.10f}, bound {search.bound:.10f}"
        )
        own, twin = beside_twin(lambda box=box: optimistic_response(box), rounds=10)
        twins.append(twin / own)
        print(f"            twin     {twin:9.4f} s   {twin / own:7.1f}×")
        times = []
        for method in ("simplex", "ipm"):
            answer, seconds = timed(lambda box=box, method=method: extended_linear_program(box, method=method))
            difference = abs(answer.value - search.value)
            worst_difference = max(worst_difference, difference)
            times.append(seconds)
            print(f"            {method:8} {seconds:9.4f} s   {seconds / search_time:7.0f}×   {difference:.1e}")
        worst_ratio = min(worst_ratio, min(times) / search_time)
    return [
        Outcome(f"extended CMDP, S={STATES} A={ACTIONS} H={HORIZON}, against HiGHS's better method", worst_ratio, 1000),
        Outcome("  against the NumPy twin", min(twins)),
        Outcome("  difference of the values", worst_difference, 1e-8, unit="", at_most=True),
    ]
