"""Where the runs of the grid world end, and what that depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.paper.claims import Claim, added, agreed, at_most, close, refuted, share, written
from cmpg.paper.counter_examples import NASH, gains_of
from cmpg.paper.grid_runs import ALPHA, OPTIMUM, GridRuns, one_waits, second_best_policy
from cmpg.paper.runs import Run

TEN = 10


def run_claims(found: GridRuns) -> list[Claim]:
    """Say how the runs from starts of cost 0, and from random ones, went."""
    waiting = {"joint-state": found.joint_waiting, "own-cell": found.local_waiting}
    settled = {name: sum(run.settled for run in runs) for name, runs in waiting.items()}
    cycles = ", ".join(f"{np.mean([len(run.costs) for run in runs]):.1f} ({name})" for name, runs in waiting.items())
    random_first = float(np.mean([run.costs[0] for run in found.joint_random]))
    return [
        agreed(
            "gains-vanish",
            "the gains reach zero for both agents: they have converged to a Nash policy",
            paper="over 20 runs",
            ours="; ".join(f"{name}: {settled[name]} of {len(runs)} runs certified" for name, runs in waiting.items()),
            holds=all(settled[name] == len(runs) for name, runs in waiting.items()),
            why=f"Cycles on average: {cycles}.",
            numbers=tuple(settled.values()),
        ),
        _cost_claim(waiting),
        added(
            "random-starts",
            "the same from random feasible starts",
            ours=f"they cost {written(random_first, digits=3)} on average; joint-state: "
            f"{_at_optimum(found.joint_random)}; own-cell: {_at_optimum(found.local_random)}",
            numbers=(random_first, _optimal_share(found.joint_random), _optimal_share(found.local_random)),
        ),
    ]


def _cost_claim(waiting: Mapping[str, Sequence[Run]]) -> Claim:
    first = max(float(run.costs[0]) for runs in waiting.values() for run in runs)
    last = {name: [float(run.costs[-1]) for run in runs] for name, runs in waiting.items()}
    means = {name: float(np.mean(costs)) for name, costs in last.items()}
    full = {name: sum(close(cost, ALPHA, tolerance=1e-6) for cost in costs) for name, costs in last.items()}
    shares = ", ".join(f"{share(full[name], len(costs))}, {name}" for name, costs in last.items())
    return agreed(
        "grid-costs",
        "the agents start from a strictly feasible policy of cost 0, and converge to a cost close to α = 0.1",
        paper="0, then close to 0.1",
        ours=f"start {written(first)}; end "
        + ", ".join(f"{written(means[name], digits=4)} ({name})" for name in means),
        holds=first == 0.0 and all(abs(mean - ALPHA) <= 0.02 for mean in means.values()),
        why=f"At exactly α end {shares}.",
        numbers=(first, *means.values()),
    )


def _at_optimum(runs: Sequence[Run]) -> str:
    number = sum(close(run.potential, OPTIMUM, tolerance=1e-6) for run in runs)
    return f"23.1 in {share(number, len(runs))}, mean {np.mean([run.potential for run in runs]):.3f}"


def _optimal_share(runs: Sequence[Run]) -> float:
    return sum(close(run.potential, OPTIMUM, tolerance=1e-6) for run in runs) / len(runs)


def ending_claim(found: GridRuns) -> Claim:
    """Compare the fillings of rows that are never visited."""
    variants = {
        "uniform rows, the paper's equation": found.joint_uniform_fill,
        "the safest action": found.joint_safe_fill,
        "polished": found.joint_waiting,
    }
    return added(
        "unvisited-rows",
        "joint-state policies: what is written into rows that are never visited decides where the ascent ends",
        ours="; ".join(f"{name}: {_at_optimum(runs)}" for name, runs in variants.items()),
        why="Others' deviations reach those rows. All endings are certified Nash policies.",
        numbers=tuple(_optimal_share(runs) for runs in variants.values()),
    )


def own_cell_claims(found: GridRuns, *, gaps: FloatArray, rng: np.random.Generator) -> list[Claim]:
    """Say what own-cell policies change; `gaps` are gains of deviations that see both cells, at own-cell endings."""
    costs = [float(found.local.at(one_waits(found.local, rng)).costs[0]) for _ in range(TEN)]
    best = [max(run.potential for run in ten) for ten in _tens(found.local_waiting)]
    reached = sum(close(each, OPTIMUM, tolerance=1e-6) for each in best)
    ties = {"the first action wins": found.local_first_action, "random": found.local_waiting}
    return [
        _information_claim(found, gaps),
        added(
            "own-cell-start",
            "own-cell: one agent waits at the start for ever, the other is random",
            ours=f"cost at most {written(max(costs))} in {TEN} draws",
            numbers=(max(costs),),
        ),
        added(
            "own-cell-ties",
            "own-cell: how ties are broken decides how often 23.1 is reached",
            ours="; ".join(f"{name}: {_at_optimum(runs)}" for name, runs in ties.items()),
            numbers=tuple(_optimal_share(runs) for runs in ties.values()),
        ),
        added(
            "own-cell-best-of-ten",
            "own-cell: the best of ten starts with random ties is 23.1",
            ours=share(reached, len(best)),
            numbers=(reached / len(best),),
        ),
        _second_best_claim(found),
    ]


def _tens(runs: Sequence[Run]) -> list[Sequence[Run]]:
    return [runs[t : t + TEN] for t in range(0, len(runs) - TEN + 1, TEN)]


def _information_claim(found: GridRuns, gaps: FloatArray) -> Claim:
    certificates = [run.result.certificate for run in found.local_waiting]
    kinds = {certificate.information for certificate in certificates if certificate is not None}
    lost = np.count_nonzero(gaps > 1e-6)
    return refuted(
        "own-cell",
        "policies see the joint state",
        paper="text: joint state; published experiment: own cell",
        ours=f"both are run; of {len(gaps)} own-cell Nash policies, the rarest first, {lost} are no Nash policies "
        f"among joint-state ones (largest gain {written(gaps.max(), digits=3)})",
        holds=kinds == {found.joint.information},
        why="The two have different Nash sets. A certificate names the kind of policies that it refers to.",
        numbers=(gaps.max(), lost),
    )


def _second_best_claim(found: GridRuns) -> Claim:
    second = second_best_policy(found.local)
    worth, gain = float(found.local.at(second).values.sum()), float(gains_of(found.local, second).max())
    return added(
        "own-cell-second-best",
        "own-cell: agent 1 right, up, up, right, right; agent 2 answers",
        ours=f"a Nash policy worth {written(worth)}: gains {at_most(gain, NASH)}",
        why="A genuine Nash policy below the optimum.",
        numbers=(worth, gain),
    )


def feasibility_claim(found: GridRuns, steps: int) -> Claim:
    """Count infeasible iterates, of exact responses and of the paper's loop with so many steps."""
    runs = [run for each in vars(found).values() if isinstance(each, tuple) for run in each]
    outside = sum(run.violations(ALPHA) for run in runs)
    iterates = sum(len(run.costs) for run in runs)
    attempts = len(found.joint_waiting)
    return refuted(
        "discarded-runs",
        "the primal-dual solver returns feasible policies; the published experiment leaves out runs that turn "
        "infeasible",
        paper="some runs are left out",
        ours=f"exact responses: {outside} of {iterates} iterates of {len(runs)} runs are infeasible, none is left out; "
        f"the paper's primal-dual, averaged over {steps} steps and not repaired: {found.infeasible_runs} of {attempts} "
        "runs leave the feasible set",
        holds=outside > 0 or found.infeasible_runs == 0,
        why="An average is feasible only up to ε_opt; mixed with a strictly feasible policy, it stays inside.",
        numbers=(outside, found.infeasible_runs / attempts),
    )
