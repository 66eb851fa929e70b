"""Section 7.2, the congestion game: the figure's policy, where runs end, the cost at every step or at the first only.

The paper calls it a Markov potential game. It is none: gains around a 4-cycle of policies do not add up to zero.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cmpg.cmdp.planning import plan
from cmpg.games.potential.check import FourCycle, Verdict, check_potential, recheck
from cmpg.learning.slater import cmdp_slack
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
from cmpg.paper.counter_examples import NASH, gap_finding, largest_gain
from cmpg.paper.figures import draw_action_counts, draw_endings, draw_four_cycle, draw_runs, draw_transitions
from cmpg.paper.runs import (
    CONGESTION_EPSILON,
    ENDINGS,
    FIGURE,
    SAFE,
    action_counts,
    congestion_figure_policy,
    crowd_policy,
    ending_of,
    endings_of,
    largest_cycle,
    run_congestion_games,
    witness_by_hand,
)
from cmpg.scenarios.paper import congestion_game, congestion_game_common_reward, congestion_game_exogenous

ALPHA = 0.5
EXPERIMENT = "Section 7.2"
SPLIT, SPREAD = [2] * 4 + [3] * 4, [0, 0, 1, 1, 2, 2, 3, 3]
"""Four C and four D; two of each action."""


def _random_starts(evidence: Evidence) -> dict[str, tuple[AscentRun, ...]]:
    found = evidence.of(run_congestion_games)
    return {"rows from the simplex": found.simplex, "rows normalised": found.normalised}


def _largest(evidence: Evidence) -> FourCycle:
    rng = evidence.rng("congestion game: 4-cycles")
    found = largest_cycle(congestion_game(), proposals=evidence.effort.cycle_proposals, rng=rng)
    evidence.tick("congestion game: 4-cycles", 1, 1)
    return found


# The policy of Figure 5.


@agrees(
    "Section 7.2, Figure 5",
    paper="a Nash policy with a cost close to 0.5",
    expect=near(ALPHA, -36.0, -28.0, -256.0, 0.0, 1.0),
)
def congestion_figure(_: Evidence) -> Finding:
    """The figure's policy: four C and four D at step 1 in both states, eight D at step 2; from safe the system stays
    safe.
    """
    game, policy = congestion_game(), congestion_figure_policy()
    position, gain = game.at(policy), largest_gain(game, policy)
    low, high = position.values.min(), position.values.max()
    welfare, cost = float(position.values.sum()), position.costs[0]
    stays = float(game.transition[(0, SAFE, *SPLIT)][SAFE])
    text = (
        f"cost {written(cost)}, values {listed([low, high])}, welfare {written(welfare)}; no agent gains more than "
        f"{NASH:.0e}; safe stays safe with probability {written(stays)}"
    )
    return Finding.of(text, cost, low, high, welfare, gain, stays)


@agrees(EXPERIMENT, paper="all prefer D", expect=near(0.0))
def congestion_unconstrained(_: Evidence) -> Finding:
    """Without the constraint all agents would play D in unsafe at step 1."""
    gain = largest_gain(congestion_game(threshold=2.0), crowd_policy([SPLIT, [3] * 8], [[3] * 8] * 2))
    return Finding.of(f"with α = 2 eight D there are a Nash policy: gains {at_most(gain, NASH)}", gain)


@added(
    "Definition 1",
    expect=near(0.0, tolerance=1e-12),
    why="There the learning theorems are void: no strictly feasible response exists.",
)
def congestion_slack(_: Evidence) -> Finding:
    """Slack that an agent has at the figure's policy, ζ_i."""
    position = congestion_game().at(congestion_figure_policy())
    slacks = [cmdp_slack(position.induced_cmdp(agent)) for agent in range(8)]
    return Finding.of(f"{listed(sorted(set(np.round(slacks, 12))))} for all 8 agents", max(np.abs(slacks)))


# Runs, as in Figure 3b.


@agrees(
    "Section 7.2, Figure 3b",
    paper="over 50 runs",
    expect=near(1.0) + between(10.5, 15.5),
    why=f"With ε = {CONGESTION_EPSILON:g}. The certificate needs no potential, so it holds although the game has none.",
)
def congestion_gains(evidence: Evidence) -> Finding:
    """The gains reach zero for all agents: they have converged to a Nash policy."""
    runs = [run for each in _random_starts(evidence).values() for run in each]
    cycles, text = cycles_and_certified(runs)
    return Finding.of(text, certified(runs) / len(runs), cycles)


@added(EXPERIMENT, expect=near(0.0, tolerance=0))
def congestion_feasible(evidence: Evidence) -> Finding:
    """Iterates that are infeasible."""
    found = evidence.of(run_congestion_games)
    runs = (*found.simplex, *found.normalised, *found.costless, *found.vacuous)
    outside = sum(run.violations(ALPHA) for run in runs)
    return Finding.of(f"{outside} in {len(runs)} runs", outside)


@differs(
    "Section 7.2, Figure 3b",
    paper="0",
    expect=near(0.115, 0.115, tolerance=0.05),
    why=f"In {REPOSITORY} starts are random policies: strictly feasible, and they cost something.",
)
def congestion_start(evidence: Evidence) -> Finding:
    """The agents start from a strictly feasible policy of cost 0."""
    first = {name: float(np.mean([run.costs[0] for run in runs])) for name, runs in _random_starts(evidence).items()}
    text = "; ".join(f"{name}: {written(cost, digits=3)} on average" for name, cost in first.items())
    return Finding.of(text, *first.values())


@agrees(
    "Section 7.2, Figure 3b",
    paper="close to 0.5",
    expect=between(0.25, ALPHA) + above(0.5),
    why="The other runs end at Nash policies that spend less, most of them nothing.",
)
def congestion_cost(evidence: Evidence) -> Finding:
    """The agents converge to a cost close to α = 0.5."""
    runs = [run for each in _random_starts(evidence).values() for run in each]
    mean, full = costs_at_the_end(runs, ALPHA)
    return Finding.of(f"mean {written(mean, digits=3)}; exactly α in {share(full, len(runs))}", mean, full / len(runs))


@differs(
    "Section 7.2, Figure 3b",
    paper="0, then close to 0.5",
    expect=near(0.0, tolerance=0) + near(1.0) + between(0.2, 0.9),
    why="Two runs in five end at Nash policies that spend less.",
)
def congestion_costless_starts(evidence: Evidence) -> Finding:
    """From starts of cost 0, as the text has it, the agents converge to a cost close to α = 0.5."""
    runs = evidence.of(run_congestion_games).costless
    first, (mean, full), settled = max(run.costs[0] for run in runs), costs_at_the_end(runs, ALPHA), certified(runs)
    text = f"start {written(first)}; mean {written(mean, digits=3)} at the end, exactly α in "
    text += f"{share(full, len(runs))}; {settled} of {len(runs)} certified"
    return Finding.of(text, first, settled / len(runs), full / len(runs))


@added(
    "Section 7.2",
    expect=above(0.8) + between(0, ALPHA + 1e-9),
    why="Where an agent has no slack, now and then no answer of the LP solver checks; the run ends there.",
)
def congestion_linear_program(evidence: Evidence) -> Finding:
    """The same with the paper's solver, a linear program for each best response."""
    runs = evidence.of(run_congestion_games).linear_program
    settled, (last, _) = certified(runs), costs_at_the_end(runs, ALPHA)
    text = f"{settled} of {len(runs)} runs certified, mean cost {written(last, digits=3)}; where they end: "
    text += ", ".join(f"{kind} {number}" for kind, number in zip(ENDINGS, endings_of(runs), strict=True))
    return Finding.of(text, settled / len(runs), last)


@differs(
    "Section 7.2, Figure 5",
    paper="one policy is shown",
    expect=between(0, 0.9) + ANY * 12,
    why="There are many Nash policies, and where a run ends depends on how its random start is drawn.",
)
def congestion_endings(evidence: Evidence) -> Finding:
    """The runs end at the figure's policy."""
    starts = _random_starts(evidence) | {"cost 0": evidence.of(run_congestion_games).costless}
    counts = {name: endings_of(runs) for name, runs in starts.items()}
    text = "; ".join(
        f"{name}: "
        + ", ".join(f"{kind} {share(number, sum(each))}" for kind, number in zip(ENDINGS, each, strict=True))
        for name, each in counts.items()
    )
    there = sum(each[0] for each in counts.values()) / sum(map(sum, counts.values()))
    return Finding.of(text, there, *(number / sum(each) for each in counts.values() for number in each))


@added(EXPERIMENT, expect=near(0.0, 90.0, 0.0), why="A Nash policy that spends nothing.")
def congestion_costless(_: Evidence) -> Finding:
    """2/2/2/2 in unsafe at step 1 leads back to safe."""
    game, policy = congestion_game(), crowd_policy([SPLIT, SPREAD], [[3] * 8] * 2)
    position, gain = game.at(policy), largest_gain(game, policy)
    welfare, cost = float(position.values.sum()), float(position.costs[0])
    text = f"cost {written(cost)}, welfare {written(welfare)}; gains {at_most(gain, NASH)}"
    return Finding.of(text, cost, welfare, gain)


@differs(
    EXPERIMENT,
    paper="at step h = 1",
    expect=near(0.5, 1.5, tolerance=1e-12) + above(1.0) + near(0, tolerance=0),
    why=f"In {REPOSITORY} it is paid at every step. Both variants are run.",
)
def first_step(evidence: Evidence) -> Finding:
    """The cost is paid at step h = 1."""
    found = evidence.of(run_congestion_games)
    games = found.first_step, found.game
    worst, every = (float(plan(game.joint_cmdp(), -np.ones(1), reward_weight=0.0).costs[0]) for game in games)
    there = sum(ending_of(run.policy) == FIGURE for run in found.vacuous)
    gain = largest_gain(found.first_step, congestion_figure_policy())
    text = (
        f"the largest cost of any policy is then {written(worst)} = α, so the constraint is vacuous, and the figure's "
        f"policy is not Nash (an agent gains {written(gain, digits=4)}): {there} of {len(found.vacuous)} runs end "
        f"there. With the cost at every step the largest cost is {written(every)}, and the figure comes out"
    )
    return Finding.of(text, worst, every, gain, there)


# No potential.


@differs(
    EXPERIMENT,
    paper="a potential game",
    expect=near(1) + above(1e-3) + above(50) + near(-148.0, 16.0),
    why="What the next state is worth differs between agents. Not zero is a proof that no potential exists.",
)
def not_a_potential_game(evidence: Evidence) -> Finding:
    """Every state is a congestion game, so this is a Markov potential game."""
    game, largest = congestion_game(), evidence.of(_largest)
    check = check_potential(game, rng=evidence.rng("congestion game: potential"))
    assert check.witness is not None
    i, j = check.witness.agents
    residual = abs(float(recheck(game, check.witness)))
    highest = plan(game.joint_cmdp(game.rewards[0]), np.zeros(1)).value
    lowest = -plan(game.joint_cmdp(-game.rewards[0]), np.zeros(1)).value
    text = (
        f"around a 4-cycle of agents {i + 1} and {j + 1} the gains add up to {written(residual, digits=4)}; the "
        f"largest found: {written(abs(largest.residual), digits=6)}, on values in [{listed([lowest, highest])}]"
    )
    refuted = check.verdict is Verdict.REFUTED
    return Finding.of(text, refuted, residual, abs(largest.residual), lowest, highest)


@added(EXPERIMENT, expect=near(4, 4, 4, 3, 4, 3, 3, 8, 5, tolerance=1e-12))
def witness_values(_: Evidence) -> Finding:
    """A witness that can be checked by hand: two agents, from safe, no penalty."""
    hand = witness_by_hand()
    assert hand.values is not None, "they were computed"
    corners = ", ".join(f"({written(i)}, {written(j)})" for i, j in hand.values)
    text = f"(V_i, V_j) = {corners}; the cycle sums to {written(abs(hand.residual))}"
    return Finding.of(text, *hand.values.ravel(), abs(hand.residual))


@added(EXPERIMENT, expect=near(1, 1, 1))
def true_potential_games(evidence: Evidence) -> Finding:
    """Variants that are potential games."""
    variants = {
        "H = 1": congestion_game(horizon=1),
        "a state that no action moves": congestion_game_exogenous(),
        "a common reward": congestion_game_common_reward(),
    }
    rng = evidence.rng("congestion game: variants")
    verdicts = {name: check_potential(game, rng=rng).verdict for name, game in variants.items()}
    text = "; ".join(f"{name}: {verdict.name.lower()}" for name, verdict in verdicts.items())
    return Finding.of(text, *(verdict is Verdict.PROVEN for verdict in verdicts.values()))


@added(EXPERIMENT, expect=near(*[-77.5] * 5, 0.0, 0.0, tolerance=1e-5))
def common_reward_gap_worth(_: Evidence) -> Finding:
    """A public coin is worth nothing to four agents with a common reward: the best Nash policy, devices and D* have one
    value.
    """
    return gap_finding(congestion_game_common_reward(num_agents=4), restarts=2)


@added(EXPERIMENT, expect=near(*[88.75] * 5, 0.0, 0.0, tolerance=1e-5))
def exogenous_gap_worth(_: Evidence) -> Finding:
    """Nor is it worth anything to four agents whose actions do not move the state; the potential is counted from all
    agents playing A.
    """
    return gap_finding(congestion_game_exogenous(num_agents=4), restarts=2)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    found, shown = evidence.of(run_congestion_games), evidence.effort.congestion_plots
    columns = {"cost at every step": found.simplex[:shown], "cost at the first step": found.vacuous}
    reached = next((run.policy for run in found.simplex + found.normalised if ending_of(run.policy) == FIGURE), None)
    whose = "in a run that ends at the figure's policy" if reached is not None else "as drawn in the paper"
    starts = _random_starts(evidence) | {"cost 0": found.costless}
    endings = {name: endings_of(runs) for name, runs in starts.items()}
    size = f"{abs(evidence.of(_largest).residual):.6g}"
    return (
        Picture(
            "congestion-runs",
            f"Gains per agent and cycle, and cost against α: mean and standard error over {shown} runs.",
            partial(draw_runs, columns, threshold=ALPHA),
        ),
        Picture(
            "congestion-actions",
            f"How many agents play what, at both steps, {whose}.",
            partial(draw_action_counts, action_counts(reached or congestion_figure_policy())),
        ),
        Picture("congestion-endings", "Where the runs end.", partial(draw_endings, endings, ENDINGS)),
        Picture(
            "congestion-transitions",
            "The transitions of the game; k* is the size of the largest crowd.",
            draw_transitions,
        ),
        Picture(
            "congestion-four-cycle",
            f"A 4-cycle that no potential survives, by hand; the largest one that was found adds up to {size}.",
            partial(draw_four_cycle, witness_by_hand()),
        ),
    )


SECTION = Section(
    title="The congestion game",
    note="Eight agents, four actions, two states, two steps; a crowd in unsafe costs 1, and α = 0.5. From "
    f"{SOURCE}, not in the paper: the weights 1, 2, 4, 6, the offset 100, the cost at every step, random starts.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
