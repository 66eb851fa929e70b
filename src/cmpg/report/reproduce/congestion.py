"""The congestion game: runs with the cost at every step and at the first step only, their endings, and the witness.

An ending is told by how many agents play what, at both steps and in both states. The figure's has four C and four D at
step 1 in both states, and eight D at step 2. Its mirror spends the budget at step 1: in `unsafe` the two steps are
exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cmpg.checks import FloatArray
from cmpg.cmdp.planning import plan
from cmpg.games.contract import Game
from cmpg.games.joint import JointGame
from cmpg.games.potential import PotentialCheck, Verdict, check_potential, recheck
from cmpg.learning.slater import cmdp_slack
from cmpg.policy import JointPolicy
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
from cmpg.report.reproduce.counter_examples import NASH, gains_of
from cmpg.report.reproduce.effort import Setting
from cmpg.report.reproduce.runs import Run, run_many
from cmpg.report.reproduce.witness import HandWitness, LargestCycle, largest_cycle, witness_by_hand
from cmpg.scenarios.paper import congestion_game, congestion_game_common_reward, congestion_game_exogenous

SAFE, UNSAFE = 0, 1
SPLIT, ALL_D, SPREAD = (0, 0, 4, 4), (0, 0, 0, 8), (2, 2, 2, 2)
ALIKE = 1e-4
"""Counts of agents that differ by less than this are the same."""

FIGURE, MIRROR, COSTLESS, OTHER = "the figure's", "its mirror", "2/2/2/2 in unsafe, no cost", "others"


@dataclass(frozen=True, eq=False)
class CongestionRuns:
    """All runs of the congestion game."""

    game: JointGame  # cost at every step
    first_step: JointGame  # cost at the first step only
    simplex: tuple[Run, ...]  # every row of the start is drawn uniformly from the simplex
    normalised: tuple[Run, ...]  # every row of the start is uniform numbers, divided by their sum
    vacuous: tuple[Run, ...]  # cost at the first step only


@dataclass(frozen=True, eq=False)
class CongestionStudy:
    """The section, and the runs on which other sections build."""

    section: Section
    runs: CongestionRuns


def study_congestion(setting: Setting) -> CongestionStudy:
    """Compute everything that the paper says about its congestion game."""
    found = _run_all(setting)
    rng = setting.streams(1)[0]
    check = check_potential(found.game, rng=rng)
    largest = largest_cycle(found.game, proposals=setting.effort.cycle_proposals, rng=rng)
    setting.tick("congestion game: 4-cycles", 1, 1)
    claims = (
        *_figure_claims(found.game),
        *_run_claims(found),
        *_ending_claims(found),
        *_first_step_claims(found),
        *_potential_claims(check, largest, game=found.game, rng=rng),
    )
    section = Section(
        title="The congestion game",
        note="Eight agents, four actions, two states, two steps; a crowd in `unsafe` costs 1, and α = 0.5.",
        claims=claims,
        pictures=_pictures(found, largest, shown=setting.effort.congestion_runs),
    )
    return CongestionStudy(section, found)


def _run_all(setting: Setting) -> CongestionRuns:
    game, first_step = congestion_game(), congestion_game(cost_at="first step")
    name, count = "congestion game: ", setting.effort.congestion_endings
    return CongestionRuns(
        game=game,
        first_step=first_step,
        simplex=run_many(setting, game, _from_simplex, count=count, what=name + "starts from the simplex"),
        normalised=run_many(setting, game, _normalised, count=count, what=name + "normalised starts"),
        vacuous=run_many(
            setting,
            first_step,
            _from_simplex,
            count=setting.effort.congestion_runs,
            what=name + "cost at the first step",
        ),
    )


def _from_simplex(game: Game, rng: np.random.Generator) -> JointPolicy:
    return JointPolicy.random(game.policy_shapes, rng=rng)


def _normalised(game: Game, rng: np.random.Generator) -> JointPolicy:
    tables = [rng.random(shape) for shape in game.policy_shapes]
    return JointPolicy(tuple(table / table.sum(axis=-1, keepdims=True) for table in tables))


def action_counts(policy: JointPolicy) -> FloatArray:
    """Return how many agents play each action on average: [H, S, A]."""
    return np.sum([np.asarray(table) for table in policy], axis=0)


def ending_of(policy: JointPolicy) -> str:
    """Name an ending by its counts."""
    counts = action_counts(policy)
    if not (_alike(counts[0, SAFE], SPLIT) and _alike(counts[1, SAFE], ALL_D)):
        return OTHER
    if _alike(counts[0, UNSAFE], SPLIT) and _alike(counts[1, UNSAFE], ALL_D):
        return FIGURE
    if _alike(counts[0, UNSAFE], ALL_D) and _alike(counts[1, UNSAFE], SPLIT):
        return MIRROR
    return COSTLESS if _alike(counts[0, UNSAFE], SPREAD) else OTHER


def _alike(counts: FloatArray, expected: Sequence[int]) -> bool:
    return bool(np.abs(counts - np.array(expected)).max() <= ALIKE)


def crowd_policy(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> JointPolicy:
    """Return the deterministic policy by which agent i plays first[s][i] at step 1 and second[s][i] at step 2."""
    choices = np.array([first, second])
    return JointPolicy(tuple(np.eye(4)[choices[:, :, agent]] for agent in range(choices.shape[2])))


def figure_policy() -> JointPolicy:
    """Return the policy of the paper's figure: four C and four D at step 1 in both states, eight D at step 2."""
    split = [2] * 4 + [3] * 4
    return crowd_policy([split, split], [[3] * 8] * 2)


def _figure_claims(game: JointGame) -> list[Claim]:
    policy = figure_policy()
    position = game.at(policy)
    values, welfare, cost = sorted(set(np.round(position.values, 9))), float(position.values.sum()), position.costs[0]
    gap = float(gains_of(game, policy).max())
    slacks = [cmdp_slack(position.induced_cmdp(agent)) for agent in range(game.num_agents)]
    free = congestion_game(threshold=2.0)
    crowd = crowd_policy([[2] * 4 + [3] * 4, [3] * 8], [[3] * 8] * 2)
    unbound = float(gains_of(free, crowd).max())
    stays = float(game.transition[(0, SAFE, *(2,) * 4, *(3,) * 4)][SAFE])
    return [
        agreed(
            "congestion-figure",
            "the figure's policy: four C and four D at step 1 in both states, eight D at step 2; from safe the system "
            "stays safe",
            paper="a Nash policy with a cost close to 0.5",
            ours=f"cost {written(cost)}, values {listed(values)}, welfare {written(welfare)}; nobody gains more than "
            f"{NASH:.0e}; safe stays safe with probability {written(stays)}",
            holds=gap <= NASH and close(cost, 0.5) and stays == 1.0,
            numbers=(cost, *values, welfare, gap),
        ),
        agreed(
            "congestion-unconstrained",
            "without the constraint all agents would play D in unsafe at step 1",
            paper="all prefer D",
            ours=f"with α = 2 eight D there are a Nash policy: gains {at_most(unbound, NASH)}",
            holds=unbound <= NASH,
            numbers=(unbound,),
        ),
        added(
            "congestion-slack",
            "slack that an agent has at the figure's policy, ζ_i",
            ours=f"{listed(sorted(set(np.round(slacks, 12))))} for all {len(slacks)} agents",
            why="There the learning theorems are void: no strictly feasible response exists.",
            numbers=(max(np.abs(slacks)),),
        ),
    ]


def _run_claims(found: CongestionRuns) -> list[Claim]:
    runs = (*found.simplex, *found.normalised)
    settled = sum(run.settled for run in runs)
    starts = {"simplex": found.simplex, "normalised": found.normalised}
    first = {name: float(np.mean([run.costs[0] for run in each])) for name, each in starts.items()}
    last = float(np.mean([run.costs[-1] for run in runs]))
    full = sum(close(run.costs[-1], 0.5, tolerance=1e-6) for run in runs)
    cycles = float(np.mean([len(run.costs) for run in runs]))
    outside = sum(run.violations(0.5) for run in (*runs, *found.vacuous))
    return [
        agreed(
            "congestion-gains",
            "the gains reach zero for all agents: they have converged to a Nash policy",
            paper="over 50 runs",
            ours=f"{settled} of {len(runs)} runs certified, after {cycles:.1f} cycles on average",
            holds=settled == len(runs),
            why="The certificate needs no potential, so it holds although the game has none.",
            numbers=(settled / len(runs), cycles),
        ),
        refuted(
            "congestion-start",
            "the agents start from a strictly feasible policy of cost 0",
            paper="0",
            ours="; ".join(f"random starts ({name}) cost {written(cost, digits=3)}" for name, cost in first.items()),
            holds=max(first.values()) == 0,
            why="Random policies are strictly feasible, and cost something.",
            numbers=tuple(first.values()),
        ),
        agreed(
            "congestion-cost",
            "the agents converge to a cost close to α = 0.5",
            paper="close to 0.5",
            ours=f"mean {written(last, digits=3)}; exactly α in {share(full, len(runs))}",
            holds=full > len(runs) / 2,
            why="The other runs end at Nash policies that spend less, many of them nothing.",
            numbers=(last, full / len(runs)),
        ),
        added(
            "congestion-feasible",
            "iterates that are infeasible",
            ours=f"{outside} in {len(runs) + len(found.vacuous)} runs",
            numbers=(outside,),
        ),
    ]


def _ending_claims(found: CongestionRuns) -> list[Claim]:
    spread = crowd_policy([[2] * 4 + [3] * 4, [0, 0, 1, 1, 2, 2, 3, 3]], [[3] * 8] * 2)
    position = found.game.at(spread)
    gap = float(gains_of(found.game, spread).max())
    both = {"rows from the simplex": found.simplex, "rows normalised": found.normalised}
    counts = {name: Counter(ending_of(run.policy) for run in runs) for name, runs in both.items()}
    texts = [
        f"{name}: "
        + ", ".join(f"{kind} {share(count[kind], len(both[name]))}" for kind in (FIGURE, MIRROR, COSTLESS, OTHER))
        for name, count in counts.items()
    ]
    shares = [
        count[kind] / len(both[name]) for name, count in counts.items() for kind in (FIGURE, MIRROR, COSTLESS, OTHER)
    ]
    return [
        refuted(
            "congestion-endings",
            "the runs end at the figure's policy",
            paper="one policy is shown",
            ours="; ".join(texts),
            holds=all(count[FIGURE] == len(both[name]) for name, count in counts.items()),
            why="There are many Nash policies, and where a run ends depends on how its random start is drawn.",
            numbers=shares,
        ),
        added(
            "congestion-costless",
            "2/2/2/2 in unsafe at step 1 leads back to safe",
            ours=f"cost {written(position.costs[0])}, welfare {written(position.values.sum())}; gains {at_most(gap, NASH)}",
            why="A Nash policy that spends nothing.",
            numbers=(position.costs[0], position.values.sum(), gap),
        ),
    ]


def _first_step_claims(found: CongestionRuns) -> list[Claim]:
    worst = plan(found.first_step.joint_cmdp(), -np.ones(1), reward_weight=0.0).costs[0]
    every = plan(found.game.joint_cmdp(), -np.ones(1), reward_weight=0.0).costs[0]
    endings = Counter(ending_of(run.policy) for run in found.vacuous)
    gap = float(gains_of(found.first_step, figure_policy()).max())
    return [
        refuted(
            "first-step",
            "the cost is paid at step h = 1",
            paper="at step h = 1",
            ours=f"the largest cost of any policy is then {written(worst)} = α, so the constraint is vacuous, and the figure's policy "
            f"is not Nash (an agent gains {written(gap, digits=4)}): {endings[FIGURE]} of {len(found.vacuous)} runs end there. With "
            f"the cost at every step the largest cost is {written(every)}, and the figure comes out",
            holds=worst > 0.5 + 1e-9,
            why="Both variants are run.",
            numbers=(worst, every, gap, endings[FIGURE]),
        )
    ]


def _potential_claims(
    check: PotentialCheck, largest: LargestCycle, *, game: JointGame, rng: np.random.Generator
) -> list[Claim]:
    hand = witness_by_hand()
    assert check.witness is not None
    planner = game.joint_cmdp(game.rewards[0])
    highest = plan(planner, np.zeros(1)).value
    lowest = -plan(game.joint_cmdp(-game.rewards[0]), np.zeros(1)).value
    proven = {
        "H = 1": congestion_game(horizon=1),
        "a state that no action moves": congestion_game_exogenous(),
        "a common reward": congestion_game_common_reward(),
    }
    verdicts = {name: check_potential(each, rng=rng).verdict for name, each in proven.items()}
    corners = ", ".join(f"({written(i)}, {written(j)})" for i, j in hand.values)
    return [
        refuted(
            "not-a-potential-game",
            "every state is a congestion game, so this is a Markov potential game",
            paper="a potential game",
            ours=f"around a 4-cycle of agents {check.witness.agents[0] + 1} and {check.witness.agents[1] + 1} the gains add up to "
            f"{written(abs(recheck(game, check.witness)), digits=4)}; the largest found: {written(abs(largest.residual), digits=6)}, "
            f"on values in [{written(lowest)}, {written(highest)}]",
            holds=check.verdict is not Verdict.REFUTED,
            why="What the next state is worth differs between agents. Not zero is a proof that no potential exists.",
            numbers=(abs(recheck(game, check.witness)), abs(largest.residual), lowest, highest),
        ),
        added(
            "witness-by-hand",
            "a witness that can be checked by hand: two agents, from safe, no penalty",
            ours=f"(V_i, V_j) = {corners}; the cycle sums to {written(abs(hand.residual))}",
            numbers=(*hand.values.ravel(), abs(hand.residual)),
        ),
        added(
            "true-potential-games",
            "variants that are potential games",
            ours="; ".join(f"{name}: {verdict.name.lower()}" for name, verdict in verdicts.items()),
            numbers=tuple(float(verdict is Verdict.PROVEN) for verdict in verdicts.values()),
        ),
    ]


def _pictures(found: CongestionRuns, largest: LargestCycle, *, shown: int) -> tuple[Picture, ...]:
    from cmpg.report.reproduce.draw_congestion import (
        draw_action_counts,
        draw_endings,
        draw_four_cycle,
        draw_transitions,
    )
    from cmpg.report.reproduce.draw_runs import draw_runs

    columns = {"cost at every step": found.simplex[:shown], "cost at the first step": found.vacuous}
    reached = next((run.policy for run in found.simplex + found.normalised if ending_of(run.policy) == FIGURE), None)
    hand: HandWitness = witness_by_hand()
    kinds = (FIGURE, MIRROR, COSTLESS, OTHER)
    endings = {
        name: [sum(ending_of(run.policy) == kind for run in runs) for kind in kinds]
        for name, runs in {"simplex": found.simplex, "normalised": found.normalised}.items()
    }
    return (
        Picture(
            "congestion-transitions",
            "The transitions of the congestion game; k* is the largest crowd.",
            draw_transitions,
        ),
        Picture(
            "congestion-runs",
            f"Gains per agent and cycle, and cost against α: mean and standard error over {shown} runs.",
            partial(draw_runs, columns, threshold=0.5),
        ),
        Picture(
            "congestion-actions",
            "How many agents play what, at both steps"
            + (
                ", in a run that ends at the figure's policy."
                if reached is not None
                else "; no run ended at the figure's policy."
            ),
            partial(draw_action_counts, action_counts(reached or figure_policy())),
        ),
        Picture("congestion-endings", "Where the runs end.", partial(draw_endings, endings, kinds)),
        Picture(
            "congestion-four-cycle",
            f"A 4-cycle that no potential survives, by hand; the largest one found adds up to {abs(largest.residual):.6g}.",
            partial(draw_four_cycle, hand),
        ),
    )
