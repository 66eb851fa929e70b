"""The extended CMDP of a box: optimistic backward induction and frontier search, beside the linear program by HiGHS.

Both are given the same boxes in the same run, and the answers are compared; the search also with its NumPy twin.
"""

import time

import numpy as np
from tests.oracles.extended_lp import extended_linear_program

from checks.bench.cmdp import SPARE, beside_twin
from checks.bench.outcome import Outcome
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
    """Return the answer and the shortest of several times, in seconds of the processor."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        answer = solve()
        best = min(best, time.process_time() - start)
    return answer, best


def compared(rng, instances):
    """Print what each box takes; return the least ratios to HiGHS and to the twin, and the largest difference."""
    ratios, twins, differences = [], [], []
    for instance in range(instances):
        box = random_box(rng, states=STATES, actions=ACTIONS, horizon=HORIZON)
        search, search_time = timed(lambda box=box: optimistic_response(box), repeats=20)
        print(
            f"instance {instance}: search   {search_time:9.5f} s   value {search.value:.10f}, bound {search.bound:.10f}"
        )
        own, twin = beside_twin(lambda box=box: optimistic_response(box), rounds=10)
        twins.append(twin / own)
        print(f"            twin     {twin:9.5f} s   {twin / own:7.1f}×")
        times = []
        for method in ("simplex", "ipm"):
            answer, seconds = timed(lambda box=box, method=method: extended_linear_program(box, method=method))
            differences.append(abs(answer.value - search.value))
            times.append(seconds)
            print(f"            {method:8} {seconds:9.4f} s   {seconds / search_time:7.0f}×   {differences[-1]:.1e}")
        ratios.append(min(times) / search_time)
    return min(ratios), min(twins), max(differences)


def main(quick):
    print(
        f"S={STATES} A={ACTIONS} H={HORIZON}: seconds of the processor, ratio to the search, difference of the values"
    )
    outcomes = []
    # Nothing was tuned on the boxes of the second seed.
    for seed, instances in ((0, 1 if quick else 3), (SPARE, 1 if quick else 2)):
        ratio, twin, difference = compared(np.random.default_rng(seed), instances)
        name = f"extended CMDP, S={STATES} A={ACTIONS} H={HORIZON}, against HiGHS's better method"
        outcomes += [
            Outcome(name if seed == 0 else f"{name}, seed {seed}", ratio, 1000),
            Outcome("  against the NumPy twin", twin),
            Outcome("  difference of the values", difference, 1e-8, unit="", at_most=True),
        ]
    return outcomes
