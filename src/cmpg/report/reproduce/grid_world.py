"""The grid world: the figure's policies, the runs, and what the text and the published experiment do differently.

The text lets policies see the joint state, the published experiment lets each agent see its own cell. Both are run. A
start is either of cost 0, as in the text (one agent waits, the other moves at random), or random and feasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cmpg.checks import FloatArray
from cmpg.equilibrium.dual_solutions import DualMaximiser
from cmpg.equilibrium.duality import DualityReport, StrongDuality, analyse_duality
from cmpg.equilibrium.start import feasible_start
from cmpg.games.local_to_joint import lift_policy
from cmpg.report.reproduce.claims import (
    Claim,
    Picture,
    Section,
    added,
    agreed,
    at_most,
    close,
    listed,
    refuted,
    share,
    written,
)
from cmpg.report.reproduce.counter_examples import NASH, ROOM, gains_of
from cmpg.report.reproduce.effort import Setting
from cmpg.report.reproduce.grid_paths import JointWay, agent_ways, collision_probability, joint_ways
from cmpg.report.reproduce.grid_runs import (
    OPTIMUM,
    GridRuns,
    figure_policy,
    joint_state_gaps,
    one_waits,
    run_grid_worlds,
    second_best_policy,
    shown_ways,
)
from cmpg.report.reproduce.runs import Run
from cmpg.scenarios.grid import grid_world_local

FREE_CELLS = (0, 11)
"""Start and target, (0, 0) and (3, 2): standing there together costs nothing."""

TEN = 10


@dataclass(frozen=True, eq=False)
class GridStudy:
    """The section, and the runs on which other sections build."""

    section: Section
    runs: GridRuns


def study_grid_world(setting: Setting) -> GridStudy:
    """Compute everything that the paper says about its grid world."""
    found = run_grid_worlds(setting)
    duality = analyse_duality(found.joint, limit=8, rng=setting.streams(1)[0])
    infeasible = max(duality.maximisers.found, key=lambda each: float(each.costs[0]))
    shown, own = _shown(found)
    claims = (
        *_policy_claims(found, duality, infeasible=infeasible),
        *_run_claims(found),
        *_ending_claims(found),
        *_own_cell_claims(found, gaps=joint_state_gaps(setting, found), rng=setting.streams(1)[0]),
        *_feasibility_claims(found, setting.effort.primal_dual_steps),
    )
    panels = {
        "CA-CMPG, joint-state policies": shown,
        "CA-CMPG, own-cell policies": own,
        "The dual's infeasible policy": joint_ways(found.joint, infeasible.policy),
    }
    section = Section(
        title="The grid world",
        note="Two agents on a 4×4 grid, six steps, a common reward, and a budget of 0.1 collisions.",
        claims=claims,
        pictures=_pictures(found, panels),
    )
    return GridStudy(section, found)


def _pictures(found: GridRuns, panels: dict[str, tuple[JointWay, ...]]) -> tuple[Picture, ...]:
    from cmpg.report.reproduce.draw_grid import draw_grid_policies
    from cmpg.report.reproduce.draw_runs import draw_runs

    number = len(found.joint_waiting)
    texts = "Gains per agent and cycle, and cost against α: mean and standard error over"
    waiting = {"joint-state policies": found.joint_waiting, "own-cell policies": found.local_waiting[:number]}
    drawn = {"joint-state policies": found.joint_random, "own-cell policies": found.local_random}
    limit = float(found.joint.thresholds[0])
    return (
        Picture(
            "grid-world-policies",
            "The grid with its rewards, the ways that CA-CMPG settles on with their probabilities, in both information "
            "structures, and a policy that the dual may return: it always collides.",
            partial(draw_grid_policies, panels),
        ),
        Picture(
            "grid-world-runs",
            f"{texts} {number} runs from starts of cost 0.",
            partial(draw_runs, waiting, threshold=limit),
        ),
        Picture(
            "grid-world-runs-random-starts",
            f"{texts} {number} runs from random feasible starts.",
            partial(draw_runs, drawn, threshold=limit),
        ),
    )


def _policy_claims(found: GridRuns, duality: DualityReport, *, infeasible: DualMaximiser) -> list[Claim]:
    policy = figure_policy(found.local)
    roomy = grid_world_local(threshold=0.1 + ROOM)
    position, gap = roomy.at(policy), float(gains_of(roomy, policy).max())
    worth, cost = float(position.values.sum()), float(position.costs[0])
    ways = joint_ways(found.joint, lift_policy(found.local, policy))
    collides = collision_probability(ways, free=FREE_CELLS)
    return [
        agreed(
            "figure-policy",
            "the figure's policies: agent 1 along the bottom; agent 2 through (1, 0) with 0.1, through (0, 1) with 0.9",
            paper="what CA-CMPG returns",
            ours=f"worth {written(worth)} at cost {written(cost)}; a Nash policy: nobody gains more than {NASH:.0e}",
            holds=close(worth, OPTIMUM) and close(cost, 0.1) and gap <= NASH,
            numbers=(worth, cost, gap),
        ),
        agreed(
            "figure-collisions",
            "with it the agents collide once, with probability 0.1",
            paper="0.1",
            ours=written(collides),
            holds=close(collides, 0.1),
            numbers=(collides,),
        ),
        *_shown_claims(found),
        added(
            "grid-duality",
            "P*, D* and λ* of the grid world",
            ours=f"P* = {written(duality.primal.lower)}, D* = {written(duality.dual.value)}, "
            f"λ* = {written(duality.dual.multipliers[0])}: {_holds(duality)}",
            why="Strong duality holds here, and still the dual may return an infeasible policy.",
            numbers=(duality.primal.lower, duality.dual.value, duality.dual.multipliers[0]),
        ),
        agreed(
            "grid-dual-policy",
            "solving the dual may return a policy that always has one collision",
            paper="cost 1, infeasible",
            ours=f"a maximiser of the dual, worth {written(infeasible.value)} at cost {written(infeasible.costs[0])}",
            holds=close(infeasible.value, 24.0) and close(float(infeasible.costs[0]), 1.0) and not infeasible.feasible,
            numbers=(infeasible.value, infeasible.costs[0]),
        ),
        _least_cost(found),
    ]


def _shown(found: GridRuns) -> tuple[tuple[JointWay, ...], tuple[JointWay, ...]]:
    """The ways that are drawn: of a joint-state ending, and of an own-cell one."""
    joint, own = (*found.joint_waiting, *found.joint_random), (*found.local_waiting, *found.local_random)
    return shown_ways(found.joint, found.local, joint), shown_ways(found.joint, found.local, own)


def _holds(duality: DualityReport) -> str:
    return "strong duality holds" if duality.strong_duality is StrongDuality.HOLDS else "strong duality is open"


def _shown_claims(found: GridRuns) -> list[Claim]:
    """How the agents leave the start in the runs that are drawn."""
    chances = []
    for ways in _shown(found):
        for agent in (0, 1):
            chances += [sum(way.probability for way in agent_ways(ways, agent) if way.cells[1:2] == (1,))]
    pairs = [sorted(chances[:2], reverse=True), sorted(chances[2:], reverse=True)]
    return [
        agreed(
            "returned-policy",
            "CA-CMPG returns that policy, or one that differs in the way and not in the odds: one agent right, "
            "the other right with probability 0.1",
            paper="1 and 0.1",
            ours=f"joint-state: {listed(pairs[0])}; own-cell: {listed(pairs[1])}",
            holds=all(close(one, 1.0, tolerance=1e-6) and close(two, 0.1, tolerance=1e-6) for one, two in pairs),
            why="Of the runs that end at 23.1, the one with the fewest ways is shown.",
            numbers=(*pairs[0], *pairs[1]),
        )
    ]


def _least_cost(found: GridRuns) -> Claim:
    start = feasible_start(found.joint)
    return added(
        "grid-least-cost",
        "the least cost, and the slack that it leaves",
        ours=f"cost {written(0.1 - start.slack)}, slack {written(start.slack)}",
        why="Waiting at the start costs nothing.",
        numbers=(0.1 - start.slack, start.slack),
    )


def _run_claims(found: GridRuns) -> list[Claim]:
    waiting = {"joint-state": found.joint_waiting, "own-cell": found.local_waiting}
    settled = {name: sum(run.settled for run in runs) for name, runs in waiting.items()}
    first = max(float(run.costs[0]) for runs in waiting.values() for run in runs)
    last = {name: [float(run.costs[-1]) for run in runs] for name, runs in waiting.items()}
    near = {name: sum(close(cost, 0.1, tolerance=1e-6) for cost in costs) for name, costs in last.items()}
    random_first = np.mean([run.costs[0] for run in found.joint_random])
    cycles = {name: np.mean([len(run.costs) for run in runs]) for name, runs in waiting.items()}
    return [
        agreed(
            "gains-vanish",
            "the gains reach zero for both agents: they have converged to a Nash policy",
            paper="over 20 runs",
            ours="; ".join(
                f"{name}: {number} of {len(waiting[name])} runs certified" for name, number in settled.items()
            ),
            holds=all(number == len(waiting[name]) for name, number in settled.items()),
            why="After " + ", ".join(f"{cycles[name]:.1f} cycles ({name})" for name in cycles) + " on average.",
            numbers=tuple(settled.values()),
        ),
        agreed(
            "grid-costs",
            "the agents start from a strictly feasible policy of cost 0, and converge to a cost close to α = 0.1",
            paper="0, then close to 0.1",
            ours=f"start {written(first)}; end on average "
            + ", ".join(f"{written(np.mean(costs), digits=4)} ({name})" for name, costs in last.items()),
            holds=first == 0.0 and all(abs(np.mean(costs) - 0.1) <= 0.02 for costs in last.values()),
            why="At exactly α end "
            + ", ".join(f"{share(near[name], len(last[name]))} ({name})" for name in near)
            + ".",
            numbers=(first, *(np.mean(costs) for costs in last.values())),
        ),
        added(
            "random-starts",
            "the same from random feasible starts",
            ours=f"they cost {written(random_first, digits=3)} on average; joint-state: {_at_optimum(found.joint_random)}; "
            f"own-cell: {_at_optimum(found.local_random)}",
            numbers=(random_first, _optimal_share(found.joint_random), _optimal_share(found.local_random)),
        ),
    ]


def _at_optimum(runs: Sequence[Run]) -> str:
    number = sum(close(run.potential, OPTIMUM, tolerance=1e-6) for run in runs)
    return f"23.1 in {share(number, len(runs))}, mean {np.mean([run.potential for run in runs]):.3f}"


def _optimal_share(runs: Sequence[Run]) -> float:
    return sum(close(run.potential, OPTIMUM, tolerance=1e-6) for run in runs) / len(runs)


def _ending_claims(found: GridRuns) -> list[Claim]:
    variants = {
        "uniform rows, the paper's equation": found.joint_uniform_fill,
        "the safest action": found.joint_safe_fill,
        "polished": found.joint_waiting,
    }
    return [
        added(
            "unvisited-rows",
            "joint-state policies: what is written into rows that are never visited decides where the ascent ends",
            ours="; ".join(f"{name}: {_at_optimum(runs)}" for name, runs in variants.items()),
            why="Others' deviations reach those rows. All endings are certified Nash policies.",
            numbers=tuple(_optimal_share(runs) for runs in variants.values()),
        )
    ]


def _own_cell_claims(found: GridRuns, *, gaps: FloatArray, rng: np.random.Generator) -> list[Claim]:
    best = [
        max(run.potential for run in found.local_waiting[t : t + TEN])
        for t in range(0, len(found.local_waiting) - TEN + 1, TEN)
    ]
    reached = sum(close(each, OPTIMUM, tolerance=1e-6) for each in best)
    second = second_best_policy(found.local)
    worth, gain = float(found.local.at(second).values.sum()), float(gains_of(found.local, second).max())
    costs = [float(found.local.at(one_waits(found.local, rng)).costs[0]) for _ in range(TEN)]
    return [
        refuted(
            "own-cell",
            "policies see the joint state",
            paper="text: joint state; published experiment: own cell",
            ours=f"both are run; of {len(gaps)} own-cell Nash policies, the rarest first, {np.count_nonzero(gaps > 1e-6)} are no Nash "
            f"policies among joint-state ones (largest gain {written(gaps.max(), digits=3)})",
            holds=all(run.result.certificate.information == found.joint.information for run in found.local_waiting),
            why="The two have different Nash sets. A certificate names the kind of policies that it refers to.",
            numbers=(gaps.max(), np.count_nonzero(gaps > 1e-6)),
        ),
        added(
            "own-cell-start",
            "own-cell: one agent waits at the start for ever, the other is random",
            ours=f"cost {written(max(costs))} in {TEN} of {TEN} draws"
            if max(costs) == 0
            else f"cost up to {max(costs):.3g}",
            numbers=(max(costs),),
        ),
        added(
            "own-cell-ties",
            "own-cell: how ties are broken decides how often 23.1 is reached",
            ours=f"the first action wins: {_at_optimum(found.local_first_action)}; random: {_at_optimum(found.local_waiting)}",
            numbers=(_optimal_share(found.local_first_action), _optimal_share(found.local_waiting)),
        ),
        added(
            "own-cell-best-of-ten",
            "own-cell: the best of ten starts with random ties is 23.1",
            ours=share(reached, len(best)),
            numbers=(reached / len(best),),
        ),
        added(
            "own-cell-second-best",
            "own-cell: agent 1 right, up, up, right, right; agent 2 answers",
            ours=f"a Nash policy worth {written(worth)}, gains {at_most(gain, NASH)}",
            why="A genuine Nash policy below the optimum.",
            numbers=(worth, gain),
        ),
    ]


def _feasibility_claims(found: GridRuns, steps: int) -> list[Claim]:
    every = [runs for runs in vars(found).values() if isinstance(runs, tuple)]
    runs = [run for each in every for run in each]
    outside = sum(run.violations(float(found.joint.thresholds[0])) for run in runs)
    iterates = sum(len(run.costs) for run in runs)
    attempts = len(found.joint_waiting)
    return [
        refuted(
            "discarded-runs",
            "the primal-dual solver returns feasible policies; the published experiment leaves out runs that turn infeasible",
            paper="some runs are left out",
            ours=f"exact responses: {outside} of {iterates} iterates of {len(runs)} runs are infeasible, none is left out; the "
            f"paper's primal-dual, averaged over {steps} steps and not repaired: {found.infeasible_runs} of {attempts} runs "
            "leave the feasible set",
            holds=outside > 0 or found.infeasible_runs == 0,
            why="An average is feasible only up to ε_opt; repaired by mixing with a strictly feasible policy, it stays inside.",
            numbers=(outside, found.infeasible_runs / attempts),
        )
    ]
