"""Section 7.1, the grid world: the figure's policies, the dual's, where runs end, and what that depends on.

The text lets policies see the joint state, the published experiment lets each agent see its own cell. Both are run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from cmpg.duality.analysis import DualityReport, StrongDuality, analyse_duality
from cmpg.duality.maximisers import DualMaximiser
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.local.to_joint import lift_policy
from cmpg.paper.claims import (
    ANY,
    REPOSITORY,
    SOURCE,
    AscentRun,
    Evidence,
    Finding,
    Picture,
    Section,
    above,
    added,
    agrees,
    at_most,
    between,
    certified,
    costs_at_the_end,
    cycles_and_certified,
    differs,
    listed,
    near,
    rows_of,
    share,
    written,
)
from cmpg.paper.counter_examples import NASH, ROOM, gap_finding, largest_gain
from cmpg.paper.figures import draw_grid_policies, draw_runs
from cmpg.paper.runs import (
    AVERAGED_STEPS,
    GRID_ALPHA,
    GRID_OPTIMUM,
    PRIMAL_DUAL_EPSILON,
    GridRuns,
    JointWay,
    agent_ways,
    collision_probability,
    grid_figure_policy,
    joint_state_gaps,
    joint_ways,
    one_waits,
    run_grid_worlds,
    second_best_policy,
    shown_ways,
)
from cmpg.scenarios.paper import grid_world, grid_world_local

FREE_CELLS = (0, 11)
"""Start and target, (0, 0) and (3, 2): standing there together costs nothing."""

TEN = 10
EXPERIMENT = "Section 7.1"
ROUTES_CAPTION = (
    "The grid with its rewards, the ways that CA-CMPG ends at with their probabilities, in both information "
    "structures, and a policy that the dual may return: it always collides. Of the runs that end at 23.1, the one "
    "with the fewest ways is drawn. Many Nash policies are worth 23.1 at cost 0.1, and the start and random ties "
    "decide which of them a run ends at: so these are not the routes of the paper's figure, in which agent 1 goes "
    "along the bottom, and agent 2 up first with probability 0.9, right first with 0.1. What agrees are the odds: "
    "one agent goes right first for certain, the other with probability 0.1. The paper's own routes are checked "
    "in figure-policy-value and figure-collisions. With joint-state policies an agent may answer to where the "
    "other one went, so that both can have two ways."
)
"""What Figure 2 shows, and why other routes are drawn than in the paper."""


def _duality(evidence: Evidence) -> DualityReport:
    return analyse_duality(grid_world(), limit=8, rng=evidence.rng("grid world: duality"))


def _infeasible(evidence: Evidence) -> DualMaximiser:
    return max(evidence.of(_duality).maximisers.found, key=lambda each: float(each.costs[0]))


def _shown(evidence: Evidence) -> tuple[tuple[JointWay, ...], tuple[JointWay, ...]]:
    """The ways that are drawn: of a joint-state ending, and of an own-cell one."""
    found = evidence.of(run_grid_worlds)
    joint, own = (*found.joint_waiting, *found.joint_random), (*found.local_waiting, *found.local_random)
    return shown_ways(found.joint, found.local, joint), shown_ways(found.joint, found.local, own)


# The policies of Figure 2.


@agrees("Figure 2b", paper="what CA-CMPG returns", expect=near(GRID_OPTIMUM, GRID_ALPHA, 0.0))
def figure_policy_value(_: Evidence) -> Finding:
    """The figure's policies: agent 1 along the bottom; agent 2 through (1, 0) with 0.1, through (0, 1) with 0.9."""
    roomy = grid_world_local(threshold=GRID_ALPHA + ROOM)
    policy = grid_figure_policy(roomy)
    position, gain = roomy.at(policy), largest_gain(roomy, policy)
    worth, cost = float(position.values.sum()), float(position.costs[0])
    text = f"worth {written(worth)} at cost {written(cost)}; a Nash policy: gains {at_most(gain, NASH)}"
    return Finding.of(text, worth, cost, gain)


@agrees(EXPERIMENT, paper="0.1", expect=near(0.1, tolerance=1e-12))
def figure_collisions(_: Evidence) -> Finding:
    """With the figure's policies the agents collide once, with probability 0.1."""
    local = grid_world_local()
    ways = joint_ways(grid_world(), lift_policy(local, grid_figure_policy(local)))
    collides = collision_probability(ways, free=FREE_CELLS)
    return Finding.of(written(collides), collides)


@agrees(
    "Figure 2b",
    paper="1 and 0.1",
    expect=near(1.0, 0.1, 1.0, 0.1, tolerance=1e-6),
    why="Of the runs that end at 23.1, the one with the fewest ways is shown.",
)
def returned_policy(evidence: Evidence) -> Finding:
    """CA-CMPG returns that policy, or one that differs in the way and not in the odds: one agent goes right, the other
    right with probability 0.1.
    """
    pairs = [sorted((_first_step_right(ways, agent) for agent in (0, 1)), reverse=True) for ways in _shown(evidence)]
    return Finding.of(f"joint-state: {listed(pairs[0])}; own-cell: {listed(pairs[1])}", *pairs[0], *pairs[1])


def _first_step_right(ways: tuple[JointWay, ...], agent: int) -> float:
    return sum(way.probability for way in agent_ways(ways, agent) if way.cells[1:2] == (1,))


@added(
    EXPERIMENT,
    expect=near(GRID_OPTIMUM, GRID_OPTIMUM, 1.0, 1),
    why="Strong duality holds here, and still the dual may return an infeasible policy.",
)
def grid_duality(evidence: Evidence) -> Finding:
    """P*, D* and λ* of the grid world."""
    found = evidence.of(_duality)
    holds = found.strong_duality is StrongDuality.HOLDS
    primal, dual, multiplier = found.primal.lower, found.dual.value, found.dual.multipliers[0]
    text = f"P* = {written(primal)}, D* = {written(dual)}, λ* = {written(multiplier)}: strong duality "
    return Finding.of(text + ("holds" if holds else "is open"), primal, dual, multiplier, holds)


@added(EXPERIMENT, expect=near(*[GRID_OPTIMUM] * 5, 0.0, 0.0, tolerance=1e-6))
def grid_gap_worth(_: Evidence) -> Finding:
    """A public coin is worth nothing in the grid world: the best Nash policy, devices and D* have one value."""
    return gap_finding(grid_world(), restarts=2)


@agrees("Figure 2c", paper="cost 1, infeasible", expect=near(24.0, 1.0, 0, tolerance=1e-12))
def grid_dual_policy(evidence: Evidence) -> Finding:
    """Solving the dual may return a policy that always has one collision."""
    worst = evidence.of(_infeasible)
    text = f"a maximiser of the dual, worth {written(worst.value)} at cost {written(worst.costs[0])}"
    return Finding.of(text, worst.value, worst.costs[0], worst.feasible)


@added(EXPERIMENT, expect=near(0.0, GRID_ALPHA, tolerance=1e-12), why="Waiting at the start costs nothing.")
def grid_least_cost(_: Evidence) -> Finding:
    """The least cost, and the slack that it leaves."""
    slack = feasible_start(grid_world()).slack
    return Finding.of(f"cost {written(GRID_ALPHA - slack)}, slack {written(slack)}", GRID_ALPHA - slack, slack)


@added(EXPERIMENT, expect=near(GRID_OPTIMUM, GRID_OPTIMUM, GRID_ALPHA, GRID_ALPHA, 1))
def grid_restarts(evidence: Evidence) -> Finding:
    """`solve` with ten restarts finds the optimum, in both information structures."""
    games = grid_world(), grid_world_local()
    rng = evidence.rng("grid world: restarts")
    joint, own = (uninterrupted(solve(game, epsilon=1e-6, restarts=Restarts(TEN), rng=rng)) for game in games)
    worth = float(joint.values[0]), float(own.values.sum())
    within = all(result.certified and result.costs[0] <= GRID_ALPHA for result in (joint, own))
    return Finding.of(
        f"{listed(worth)} at cost {listed([*joint.costs, *own.costs])}", *worth, *joint.costs, *own.costs, within
    )


# Runs, as in Figure 3a.


def _from_cost_zero(found: GridRuns) -> dict[str, tuple[AscentRun, ...]]:
    return {
        "joint-state, as printed": found.joint_uniform_fill,
        "joint-state, polished": found.joint_waiting,
        "own-cell": found.local_waiting,
    }


@agrees("Section 7.1, Figure 3a", paper="over 20 runs", expect=near(1, 1, 1) + ANY * 3)
def gains_vanish(evidence: Evidence) -> Finding:
    """The gains reach zero for both agents: they have converged to a Nash policy."""
    found = evidence.of(run_grid_worlds)
    texts, shares, cycles = [], [], []
    for name, runs in _from_cost_zero(found).items():
        taken, text = cycles_and_certified(runs)
        shares.append(certified(runs) / len(runs))
        cycles.append(taken)
        texts.append(f"{name}: {text}")
    return Finding.of("; ".join(texts), *shares, *cycles)


@agrees(
    "Section 7.1, Figure 3a",
    paper="0, then close to 0.1",
    expect=near(0.0, tolerance=0) + between(0, GRID_ALPHA) + near(GRID_ALPHA, GRID_ALPHA, tolerance=0.02),
    why="Uniform rows leave some runs at Nash policies that spend less.",
)
def grid_costs(evidence: Evidence) -> Finding:
    """The agents start from a strictly feasible policy of cost 0, and converge to a cost close to α = 0.1."""
    found = evidence.of(run_grid_worlds)
    first = max(float(run.costs[0]) for runs in _from_cost_zero(found).values() for run in runs)
    texts, means = [f"start {written(first)}"], []
    for name, runs in _from_cost_zero(found).items():
        mean, full = costs_at_the_end(runs, GRID_ALPHA)
        means.append(mean)
        texts.append(f"{name}: end {written(mean, digits=4)} on average, exactly α in {share(full, len(runs))}")
    return Finding.of("; ".join(texts), first, *means)


@added(EXPERIMENT, expect=between(0, GRID_ALPHA) + near(1, 1) + ANY + ANY)
def random_starts(evidence: Evidence) -> Finding:
    """The same from random feasible starts."""
    found = evidence.of(run_grid_worlds)
    first = float(np.mean([run.costs[0] for run in found.joint_random]))
    text = (
        f"they cost {written(first, digits=3)} on average; joint-state, polished: {_at_optimum(found.joint_random)}; "
        f"own-cell: {_at_optimum(found.local_random)}"
    )
    runs = found.joint_random, found.local_random
    return Finding.of(text, first, *map(_certified_share, runs), *map(_optimal_share, runs))


def _at_optimum(runs: Sequence[AscentRun]) -> str:
    number = round(_optimal_share(runs) * len(runs))
    return f"23.1 in {share(number, len(runs))}, mean {_mean_worth(runs):.3f}"


def _optimal_share(runs: Sequence[AscentRun]) -> float:
    return sum(abs(run.potential - GRID_OPTIMUM) <= 1e-6 for run in runs) / len(runs)


def _certified_share(runs: Sequence[AscentRun]) -> float:
    return certified(runs) / len(runs)


def _mean_worth(runs: Sequence[AscentRun]) -> float:
    return float(np.mean([run.potential for run in runs]))


@added("Section 7.1", expect=near(1.0) + between(20, GRID_OPTIMUM + 1e-6) + between(0, GRID_ALPHA))
def grid_primal_dual(evidence: Evidence) -> Finding:
    """Own-cell, with the paper's solver: primal-dual, stopped by its certificate and repaired."""
    runs = evidence.of(run_grid_worlds).local_primal_dual
    settled, (last, _) = certified(runs), costs_at_the_end(runs, GRID_ALPHA)
    text = (
        f"{settled} of {len(runs)} runs certified with ε = {PRIMAL_DUAL_EPSILON:g}; worth {_mean_worth(runs):.3f} at "
    )
    return Finding.of(f"{text}cost {last:.4f} on average", settled / len(runs), _mean_worth(runs), last)


@added(
    "Lemma 3",
    expect=between(0, 0.5) + ANY + above(0.5) + between(22.5, GRID_OPTIMUM + 1e-6),
    why="Others' deviations reach those rows. All endings are certified Nash policies.",
)
def unvisited_rows(evidence: Evidence) -> Finding:
    """Joint-state policies: what is written into rows that are never visited decides where the ascent ends."""
    found = evidence.of(run_grid_worlds)
    variants = {
        "uniform rows, the paper's equation": found.joint_uniform_fill,
        "the safest action": found.joint_safe_fill,
        "polished": found.joint_waiting,
    }
    text = "; ".join(f"{name}: {_at_optimum(runs)}" for name, runs in variants.items())
    return Finding.of(text, *map(_optimal_share, variants.values()), _mean_worth(found.joint_waiting))


# Policies on the own cell, as in the published experiment.


@differs(
    "Section 3",
    paper="text: joint state; published experiment: own cell",
    expect=near(0) + ANY + ANY,
    why="The two have different Nash sets. A certificate names the kind of policies that it refers to.",
)
def own_cell(evidence: Evidence) -> Finding:
    """Policies see the joint state."""
    found, gaps = evidence.of(run_grid_worlds), evidence.of(joint_state_gaps)
    certificates = [run.result.certificate for run in found.local_waiting]
    joint = sum(each.information == found.joint.information for each in certificates)
    lost = np.count_nonzero(gaps > 1e-6)
    text = (
        f"both are run; of {len(gaps)} own-cell Nash policies, the rarest first, {lost} are no Nash policies among "
        f"joint-state ones (largest gain {written(gaps.max(), digits=3)})"
    )
    return Finding.of(text, joint, gaps.max(), lost)


@added(EXPERIMENT, expect=near(0.0, tolerance=0))
def own_cell_start(evidence: Evidence) -> Finding:
    """Own-cell: one agent waits at the start for ever, the other is random."""
    game, rng = grid_world_local(), evidence.rng("grid world: waiting")
    cost = max(float(game.at(one_waits(game, rng)).costs[0]) for _ in range(TEN))
    return Finding.of(f"cost at most {written(cost)} in {TEN} draws", cost)


@added(EXPERIMENT, expect=near(1, 1) + ANY + ANY, why="All endings are certified Nash policies.")
def own_cell_ties(evidence: Evidence) -> Finding:
    """Own-cell: how ties are broken decides how often 23.1 is reached."""
    found = evidence.of(run_grid_worlds)
    ties = {"the first action wins": found.local_first_action, "random": found.local_waiting}
    text = "; ".join(f"{name}: {_at_optimum(runs)}" for name, runs in ties.items())
    return Finding.of(text, *map(_certified_share, ties.values()), *map(_optimal_share, ties.values()))


@added(EXPERIMENT, expect=above(0.9))
def own_cell_best_of_ten(evidence: Evidence) -> Finding:
    """Own-cell: the best of ten starts with random ties is 23.1."""
    runs = evidence.of(run_grid_worlds).local_waiting
    tens = [runs[t : t + TEN] for t in range(0, len(runs) - TEN + 1, TEN)]
    reached = sum(abs(max(run.potential for run in ten) - GRID_OPTIMUM) <= 1e-6 for ten in tens)
    return Finding.of(share(reached, len(tens)), reached / len(tens))


@added(EXPERIMENT, expect=near(20.4, 0.0), why="A genuine Nash policy below the optimum.")
def own_cell_second_best(_: Evidence) -> Finding:
    """Own-cell: agent 1 goes right, up, up, right, right; agent 2 answers."""
    game = grid_world_local()
    second = second_best_policy(game)
    worth, gain = float(game.at(second).values.sum()), largest_gain(game, second)
    return Finding.of(f"a Nash policy worth {written(worth)}: gains {at_most(gain, NASH)}", worth, gain)


@differs(
    "Section 5, equation for the CMDP solver",
    paper="feasible",
    expect=near(0, tolerance=0) + above(0.5),
    why=f"An average is feasible only up to ε_opt, and {REPOSITORY} leaves out runs that turn infeasible; mixed with a "
    "strictly feasible policy, it stays inside.",
)
def discarded_runs(evidence: Evidence) -> Finding:
    """The primal-dual solver returns feasible policies."""
    found, attempts = evidence.of(run_grid_worlds), evidence.effort.own_cell_runs
    runs = [run for each in vars(found).values() if isinstance(each, tuple) for run in each]
    outside = sum(run.violations(GRID_ALPHA) for run in runs)
    iterates = sum(len(run.costs) for run in runs)
    text = (
        f"exact responses: {outside} of {iterates} iterates of {len(runs)} runs are infeasible, none is left out; the "
        f"paper's primal-dual, averaged over {AVERAGED_STEPS:.0e} steps and not repaired: {found.infeasible_runs} of "
        f"{attempts} runs leave the feasible set"
    )
    return Finding.of(text, outside, found.infeasible_runs / attempts)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    found = evidence.of(run_grid_worlds)
    joint, own = _shown(evidence)
    panels = {
        "CA-CMPG, joint-state, polished": joint,
        "CA-CMPG, own-cell": own,
        "The dual's infeasible policy": joint_ways(found.joint, evidence.of(_infeasible).policy),
    }
    number = evidence.effort.grid_plots
    texts = "Gains per agent and cycle, and cost against α: mean and standard error over"
    waiting = {
        "joint-state, as printed": found.joint_uniform_fill[:number],
        "joint-state, polished": found.joint_waiting[:number],
        "own-cell": found.local_waiting[:number],
    }
    drawn = {"joint-state, polished": found.joint_random[:number], "own-cell": found.local_random[:number]}
    return (
        Picture(
            "grid-world-policies",
            ROUTES_CAPTION,
            partial(draw_grid_policies, panels),
        ),
        Picture(
            "grid-world-runs",
            f"{texts} {number} runs from starts of cost 0.",
            partial(draw_runs, waiting, threshold=GRID_ALPHA),
        ),
        Picture(
            "grid-world-runs-random-starts",
            f"{texts} {number} runs from random feasible starts.",
            partial(draw_runs, drawn, threshold=GRID_ALPHA),
        ),
    )


SECTION = Section(
    title="The grid world",
    note="Two agents on a 4×4 grid, six steps, a common reward, and a threshold of 0.1 collisions. Policies on the own "
    f"cell, and leaving out runs that turn infeasible, are from {SOURCE}, not from the paper.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
