"""Appendices B to E on numbers: occupancies, value differences, and the lemmas behind Algorithms 3 and 4.

Each lemma is tried on the same random CMDPs. Where a formula is wrong, it is computed as printed and as it should be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate, occupancy, policy_from_occupancy
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.learning.bounds import Size, paper_constants
from cmpg.learning.slater import cmdp_slack
from cmpg.paper.algorithm_3 import PrimalDualRun, primal_dual
from cmpg.paper.claims import (
    Evidence,
    Finding,
    Section,
    above,
    agrees,
    at_most,
    between,
    differs,
    near,
    rows_of,
    share,
    written,
)
from cmpg.paper.runs import grid_figure_policy
from cmpg.scenarios.paper import grid_world_local

HORIZON, STATES, ACTIONS = 4, 3, 2
DELTA, EPSILON = 0.1, 0.1
TRIED = 20
LONG = 10**12
"""Steps of the primal-dual loop in one run."""


@dataclass(frozen=True, eq=False)
class Tried:
    """A random CMDP that its threshold binds, another kernel for it, policies, and Algorithm 3's loop on it."""

    cmdp: CMDP
    kernel: FloatArray  # [H, S, A, S]
    policies: tuple[FloatArray, ...]  # each [H, S, A]
    run: PrimalDualRun
    bound: float  # U
    multiplier: float  # λ*, the best one


def _tried(evidence: Evidence) -> tuple[Tried, ...]:
    return tuple(_random(rng) for rng in evidence.streams("lemmas", TRIED))


def _random(rng: np.random.Generator) -> Tried:
    shape = (HORIZON, STATES, ACTIONS)
    cmdp = CMDP(
        transition=rng.dirichlet(np.ones(STATES), size=shape),
        reward=rng.random(shape),
        costs=rng.random((1, *shape)),
        thresholds=np.zeros(1),
        initial=rng.dirichlet(np.ones(STATES)),
        horizon=HORIZON,
    )
    least, most = plan(cmdp, np.ones(1), reward_weight=0.0).costs, plan(cmdp, np.zeros(1)).costs
    cmdp = replace(cmdp, thresholds=least + rng.uniform(0.2, 0.8) * (most - least))
    multiplier = float(Exact()(cmdp).multipliers[0])
    bound = 8 * HORIZON / cmdp_slack(cmdp)
    step = bound / (np.sqrt(LONG) * HORIZON)
    run = primal_dual(cmdp, iterations=LONG, step_size=step, multiplier_bound=bound)
    policies = tuple(rng.dirichlet(np.ones(ACTIONS), size=shape[:2]) for _ in range(3))
    return Tried(cmdp, rng.dirichlet(np.ones(STATES), size=shape), policies, run, bound, multiplier)


# Occupancy measures.


@agrees("Lemmas 3 to 6", paper="equal", expect=near(0.0, tolerance=1e-12))
def occupancy_mean(evidence: Evidence) -> Finding:
    """The policy with the mean occupancy has the mean value."""
    off = 0.0
    for each in evidence.of(_tried):
        mean = np.mean([occupancy(each.cmdp, policy) for policy in each.policies], axis=0)
        merged = policy_from_occupancy(mean, np.full(each.cmdp.policy_shape, 1 / ACTIONS))
        values = [evaluate(each.cmdp, policy).value for policy in each.policies]
        off = max(off, abs(float(evaluate(each.cmdp, merged).value - np.mean(values))))
    return Finding.of(f"off by {at_most(off, 1e-12)}", off)


@differs(
    "Definition 2",
    paper="P_h",
    expect=above(1e-3),
    why="The index is h − 1; here transition[h] leads from step h to step h + 1.",
)
def occupancy_index(evidence: Evidence) -> Finding:
    """The occupancy recursion leads to step h with P_h."""
    tried = evidence.of(_tried)[0]
    cmdp, policy = tried.cmdp, tried.policies[0]
    found = [cmdp.initial[:, None] * policy[0]]
    for step in range(1, HORIZON):
        arrivals = found[-1].ravel() @ cmdp.matrix(step)  # as printed
        found.append(arrivals[:, None] * policy[step])
    printed, true = float((np.array(found) * cmdp.reward).sum()), float(evaluate(cmdp, policy).value)
    text = f"P_h gives the value {written(printed, digits=5)}; P_(h−1) gives the true one, {written(true, digits=5)}"
    return Finding.of(text, abs(printed - true))


# Value differences.


def _values_to_go(cmdp: CMDP, policy: FloatArray) -> FloatArray:
    """V_h(s) for every step, and zero after the last: [H + 1, S]."""
    values = np.zeros((HORIZON + 1, STATES))
    for step in reversed(range(HORIZON)):
        future = cmdp.reward[step] + (cmdp.matrix(step) @ values[step + 1]).reshape(STATES, ACTIONS)
        values[step] = (policy[step] * future).sum(axis=1)
    return values


def _along(weights: FloatArray, change: FloatArray, to_go: FloatArray) -> float:
    """Σ_h E[Σ_{s'} change_h(s' | s, a) V_{h+1}(s')] under an occupancy."""
    return float(np.einsum("hsa,hsan,hn->", weights, change, to_go[1:]))


@dataclass(frozen=True)
class _Forms:
    """V − V̂, and what the forms of Lemma 13 make of it."""

    true: float
    first: float  # under P̂, with V
    first_under_true: float  # under P, with V: where the proof of Lemma 12 goes on
    first_as_expectation: float  # the sum over s' read as an expectation over s' ~ P̂, as printed
    second: float  # under P, with V̂, corrected
    per_step: float  # V_1 with l_h in the place of l_h', as printed


def _forms(evidence: Evidence) -> list[_Forms]:
    return [_forms_of(each.cmdp, each.kernel, each.policies[0]) for each in evidence.of(_tried)]


def _forms_of(cmdp: CMDP, kernel: FloatArray, policy: FloatArray) -> _Forms:
    other = replace(cmdp, transition=kernel)
    here, there = occupancy(cmdp, policy), occupancy(other, policy)
    to_go, to_go_there = _values_to_go(cmdp, policy), _values_to_go(other, policy)
    change = cmdp.transition - kernel
    return _Forms(
        true=float(evaluate(cmdp, policy).value - evaluate(other, policy).value),
        first=_along(there, change, to_go),
        first_under_true=_along(here, change, to_go),
        first_as_expectation=_along(there, change * kernel, to_go),
        second=_along(here, change, to_go_there),
        per_step=HORIZON * float((here[0] * cmdp.reward[0]).sum()) - float(evaluate(cmdp, policy).value),
    )


@agrees("Lemma 13", paper="V − V̂ = E_P̂[Σ_h (P_h − P̂_h) V_(h+1)]", expect=near(0.0, tolerance=1e-12))
def value_difference(evidence: Evidence) -> Finding:
    """Value differences, first form, with a sum over the next state."""
    off = max(abs(each.true - each.first) for each in evidence.of(_forms))
    return Finding.of(f"off by {at_most(off, 1e-12)} on {TRIED} random CMDPs", off)


@differs(
    "Lemma 13",
    paper="V − V̂ = E_P[Σ_h (P̂_h − P_h) V̂_(h+1)]",
    expect=near(0.0, tolerance=1e-12) + above(0.1),
    why="A sign: with P − P̂ it is right.",
)
def value_difference_sign(evidence: Evidence) -> Finding:
    """Value differences, second form."""
    forms = evidence.of(_forms)
    right, printed = (max(abs(each.true - sign * each.second) for each in forms) for sign in (1, -1))
    text = f"with P̂ − P off by up to {printed:.3g}; with P − P̂ by {at_most(right, 1e-12)}"
    return Finding.of(text, right, printed)


@differs(
    "Lemma 13, proof of Lemma 12",
    paper="an expectation over s_(h+1) ~ P̂_h",
    expect=above(0.05) + above(1e-3),
    why="The sum over the next state is written as an expectation, which weighs its terms once more and hides a "
    "factor S; and the proof of Lemma 12 changes from P̂ to P on the way.",
)
def value_difference_sum(evidence: Evidence) -> Finding:
    """Value differences as printed, and as the proof of the concentration lemma goes on."""
    forms = evidence.of(_forms)
    as_expectation = max(abs(each.true - each.first_as_expectation) for each in forms)
    under_true = max(abs(each.true - each.first_under_true) for each in forms)
    text = f"as an expectation off by up to {as_expectation:.3g}; with P in the place of P̂ by up to {under_true:.3g}"
    return Finding.of(text, as_expectation, under_true)


@differs(
    "Lemma 13",
    paper="V_h(s) = E[Σ_(h' ≥ h) l_h(s_h, a_h) | s_0 = s]",
    expect=above(0.1),
    why="Indices: the terms are l_h'(s_h', a_h'), and the condition is s_h = s.",
)
def value_to_go(evidence: Evidence) -> Finding:
    """The value from step h on, as printed."""
    off = max(abs(each.per_step) for each in evidence.of(_forms))
    return Finding.of(f"every step counts like the first: off by up to {off:.3g} at h = 1", off)


# The primal-dual loop.


@agrees("Lemma 7", paper="at most ε_opt", expect=between(0, 1) + between(0, 1))
def primal_dual_lemma(evidence: Evidence) -> Finding:
    """After T steps the mean value is within UH/√T of the best, the mean cost within UH/(√T (U − λ*)) of α′."""
    worst_loss, worst_cost = 0.0, 0.0
    for each in evidence.of(_tried):
        allowed = each.bound * HORIZON / np.sqrt(LONG)
        loss = Exact()(each.cmdp).bound - each.run.value
        excess = each.run.cost - float(each.cmdp.thresholds[0])
        worst_loss = max(worst_loss, loss / allowed)
        worst_cost = max(worst_cost, excess * (each.bound - each.multiplier) / allowed)
    text = f"{TRIED} runs of {LONG:.0e} steps use at most {worst_loss:.2g} and {worst_cost:.2g} of what is allowed"
    return Finding.of(text, worst_loss, worst_cost)


@agrees("Lemma 8", paper="at most U√T·H", expect=between(0, 1))
def dual_regret(evidence: Evidence) -> Finding:
    """The dual regret Σ_t (λ_t − λ)(α′ − V̂^c(π̂_t)), for every λ in [0, U]."""
    most = 0.0
    for each in evidence.of(_tried):
        worst = max(each.run.dual_regret(multiplier) for multiplier in (0.0, each.bound))  # it is linear in λ
        most = max(most, worst / (each.bound * np.sqrt(LONG) * HORIZON))
    return Finding.of(f"{TRIED} runs of {LONG:.0e} steps use at most {most:.2g} of that", most)


@agrees("Lemma 9", paper="at most β/(C − λ*)", expect=between(0, 1 + 1e-6))
def constraint_violation(evidence: Evidence) -> Finding:
    """If V^r(π*) − V^r(π) + C [V^c(π) − α′]_+ ≤ β, then the excess [V^c(π) − α′]_+ is small."""
    most, checked = 0.0, 0
    for each in evidence.of(_tried):
        best, limit = Exact()(each.cmdp).value, float(each.cmdp.thresholds[0])
        costly = plan(each.cmdp, np.array([0.9 * each.multiplier])).policy(ACTIONS)
        for policy in (*each.policies, costly):
            judged = evaluate(each.cmdp, policy)
            excess = max(float(judged.costs[0]) - limit, 0.0)
            for weight in (1.1 * each.multiplier + 0.01, 2 * each.multiplier + 1):
                loss = best - float(judged.value) + weight * excess
                most = max(most, excess * (weight - each.multiplier) / loss if excess else 0.0)
                checked += excess > 0
    return Finding.of(f"{checked} policies above α′ use at most {most:.3g} of that", most)


@agrees("Lemma 10", paper="at most 2Δλ*", expect=between(0, 1 + 1e-6))
def sensitivity(evidence: Evidence) -> Finding:
    """The best values for the thresholds α − Δ and α + Δ."""
    most = 0.0
    for each in evidence.of(_tried):
        margin = 0.3 * cmdp_slack(each.cmdp)
        tight, loose = (Exact()(replace(each.cmdp, thresholds=each.cmdp.thresholds + d)) for d in (-margin, margin))
        most = max(most, (loose.value - tight.value) / (2 * margin * float(tight.multipliers[0])))
    return Finding.of(f"{TRIED} random CMDPs use at most {most:.3g} of that", most)


def _second_agent() -> CMDP:
    """The CMDP of agent 2 while agent 1 goes along the bottom, on its own cell, with rewards within [0, 1]."""
    game = grid_world_local()
    cmdp = game.at(grid_figure_policy(game)).induced_cmdp(1)
    return replace(cmdp, reward=cmdp.reward / 10)


@agrees(
    "Lemma 11", paper="2H/ζ = 120 for agent 2 of the grid world", expect=between(0, 120) + near(120) + between(0, 1)
)
def multiplier_bound(evidence: Evidence) -> Finding:
    """The best multiplier of a CMDP is at most 2H/ζ."""
    cmdp = _second_agent()
    multiplier, limit = float(Exact()(cmdp).multipliers[0]), 2 * cmdp.num_steps / cmdp_slack(cmdp)
    used = max(each.multiplier * cmdp_slack(each.cmdp) / (2 * HORIZON) for each in evidence.of(_tried))
    return Finding.of(
        f"{written(multiplier)}; {TRIED} random CMDPs use at most {used:.2g} of it", multiplier, limit, used
    )


@differs(
    "Appendix D, proof of Lemma 2",
    paper="α′ = α + Δ; (α′ + ε_opt) − Δ + ε_opt = α",
    expect=above(0.1 + 1e-9) + between(0, 0.1) + above(1e-6),
    why="Two signs: α′ = α − Δ, as in the algorithm, and (α′ + ε_opt) + Δ − ε_opt = α.",
)
def tightening_sign(_: Evidence) -> Finding:
    """The proof of Algorithm 3's lemma takes α′ = α + Δ."""
    cmdp = _second_agent()
    size = Size(16, 4, 6, np.ones(6), np.ones((1, 6)), 16)
    constants = paper_constants(size, slater=cmdp_slack(cmdp), epsilon=EPSILON, delta=DELTA)
    outer, inner = (
        float(Exact()(replace(cmdp, thresholds=cmdp.thresholds + sign * constants.tightening)).costs[0])
        for sign in (1, -1)
    )
    off = abs(-2 * constants.tightening + 2 * constants.solver_tolerance)
    text = (
        f"a best response to α + Δ spends {written(outer, digits=8)} of 0.1, one to α − Δ {written(inner, digits=8)}; "
        f"with α′ = α − Δ the printed sum is off by {off:.2g}"
    )
    return Finding.of(text, outer, inner, off)


# From samples to values.


@differs(
    "Lemma 12",
    paper=f"fails in at most {DELTA:.0%}".replace("%", " %"),
    expect=above(0.3) + above(0.3) + near(0, tolerance=0),
    why="The proof drops a factor S: rows close in every entry need not be close in the sum.",
)
def concentration_lemma(evidence: Evidence) -> Finding:
    """N = ln(2S²AH/δ)·H⁴/ε² samples make every value right to ε = 0.1, with probability 0.9."""
    draws, horizon, lost, kept = evidence.effort.lemma_draws, 2, {}, 0
    for states, rng in zip((2000, 5000), evidence.streams("learning: concentration", 2), strict=True):
        printed = np.log(2 * states**2 * 2 * horizon / DELTA) * horizon**4 / EPSILON**2
        lost[states] = int((_worst_errors(states, int(np.ceil(printed)), draws=draws, rng=rng) > EPSILON).sum())
        enough = 2 * (states * np.log(2) + np.log(states * 2 / DELTA)) / (2 * EPSILON) ** 2
        kept += int((_worst_errors(states, int(np.ceil(enough)), draws=draws, rng=rng) > EPSILON).sum())
    text = "; ".join(f"S = {states}: fails in {share(number, draws)}" for states, number in lost.items())
    text += f"; with the corrected N: {kept} of {2 * draws}"
    return Finding.of(text, *(number / draws for number in lost.values()), kept)


def _worst_errors(states: int, count: int, *, draws: int, rng: np.random.Generator) -> np.ndarray:
    """One uniform row, then a reward that a policy may collect or not in each state.

    Over all policies the largest error of a value is the total variation distance between the row and its estimate.
    """
    sampled = rng.multinomial(count, np.full(states, 1 / states), size=draws)
    return np.asarray(0.5 * np.abs(sampled / count - 1 / states).sum(axis=1))


SECTION = Section(
    title="The appendices' lemmas",
    note=f"Tried on {TRIED} random CMDPs of {STATES} states, {ACTIONS} actions and {HORIZON} steps, or as said.",
    claims=rows_of(globals()),
    pictures=lambda _: (),
)
