"""Section 4 and Appendix A: the 2×2 game without strong duality, and the one where strong duality does not help.

p and q are the probabilities of the agents' second actions. The counter-example has the common reward 3 − p − q + 3pq
and the cost pq ≤ ½; its modification has the reward 3 + pq and the same cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.duality.analysis import DualityReport, StrongDuality, analyse_duality
from cmpg.duality.dual_function import dual_function, lagrangian
from cmpg.duality.gap import duality_gap
from cmpg.equilibrium.ascent import coordinate_ascent
from cmpg.equilibrium.recommendations.recommend import recommend
from cmpg.errors import InfeasibleError
from cmpg.games.devices import Rota
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.paper.claims import (
    PAPER_ASCENT,
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
    differs,
    listed,
    near,
    rows_of,
    run_many,
    share,
    written,
)
from cmpg.paper.figures import DualCurve, draw_dual_function
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import counter_example, modified_counter_example

OPTIMUM = 4.5 - 2**0.5
ROOT_HALF = 0.5**0.5
NASH = 1e-9
"""Gains below this are rounding."""

ROOM = 1e-12
"""Added to α where a policy costs exactly α, so that rounding cannot call it infeasible."""


def play(p: float, q: float) -> JointPolicy:
    """Return the policy in which the second actions have probability p and q."""
    return JointPolicy((np.array([[[1 - p, p]]]), np.array([[[1 - q, q]]])))


def gains_of(game: Game, policy: JointPolicy) -> FloatArray:
    """Return what each agent gains by its exact best response: [n]."""
    position = game.at(policy)
    best = [Exact()(position.induced_cmdp(agent)).value for agent in range(game.num_agents)]
    return np.array(best) - position.values


def largest_gain(game: Game, policy: JointPolicy) -> float:
    """Return what the agent gains who gains most."""
    return float(gains_of(game, policy).max())


@dataclass(frozen=True, eq=False)
class _Analysed:
    game: JointGame
    report: DualityReport
    curve: DualCurve
    random: FloatArray  # [20, 2]: random p and q


def _original(evidence: Evidence) -> _Analysed:
    return _analysed(evidence, counter_example(), "counter-example")


def _modified(evidence: Evidence) -> _Analysed:
    return _analysed(evidence, modified_counter_example(), "modified counter-example")


def _analysed(evidence: Evidence, game: JointGame, name: str) -> _Analysed:
    report = analyse_duality(game)
    grid = np.linspace(0.0, 2.0, evidence.effort.dual_points)
    best = float(report.dual.multipliers[0])
    curve = DualCurve(grid, dual_function(game, grid), report.primal.lower, report.dual.value, best)
    return _Analysed(game, report, curve, evidence.rng(name).random((20, 2)))


@agrees(
    "Section 4, Proposition 3", paper="A = [[3, 2], [2, 4]], B = [[0, 0], [0, 1]]", expect=near(0.0, tolerance=1e-12)
)
def matrices(evidence: Evidence) -> Finding:
    """The common reward is 3 − p − q + 3pq, the cost is pq."""
    found, off = evidence.of(_original), 0.0
    for p, q in found.random:
        position = found.game.at(play(p, q))
        reward, cost = 3 - p - q + 3 * p * q, p * q
        off = max(off, abs(float(position.values[0]) - reward), abs(float(position.costs[0]) - cost))
    return Finding.of(f"off by {at_most(off, 1e-12)} at {len(found.random)} random policies", off)


@agrees(
    "Section 4, Proposition 3",
    paper="≈ 3.09",
    expect=near(OPTIMUM, OPTIMUM, tolerance=1e-6) + between(0, 1e-6),
    why="Branch and bound proves both ends.",
)
def primal_value(evidence: Evidence) -> Finding:
    """P*, in the proof."""
    best = evidence.of(_original).report.primal
    text = f"between {written(best.lower)} and {written(best.upper)}; 9/2 − √2 = {written(OPTIMUM, digits=11)}"
    return Finding.of(text, best.lower, best.upper, best.upper - best.lower)


@differs(
    "Section 4, Proposition 3",
    paper="3",
    expect=near(OPTIMUM, tolerance=1e-6),
    why="Left-over text: 3 is what the feasible policy of the dual is worth.",
)
def primal_value_text(evidence: Evidence) -> Finding:
    """P*, in the text after the figure."""
    best = evidence.of(_original).report.primal
    return Finding.of(written(best.lower), best.lower)


@agrees(
    "Section 4, Propositions 1 and 3",
    paper="p = q = √½",
    expect=near(ROOT_HALF, ROOT_HALF, tolerance=1e-3) + between(-NASH, NASH) + between(-NASH, 1e-5),
)
def primal_policy(evidence: Evidence) -> Finding:
    """The maximiser plays its second action with probability √½, and is a Nash policy."""
    policy = evidence.of(_original).report.primal.policy
    assert policy is not None
    p, q = (float(table[0, 0, 1]) for table in policy)
    gain = largest_gain(counter_example(threshold=0.5 + ROOM), play(ROOT_HALF, ROOT_HALF))
    text = f"p = {p:.4f}, q = {q:.4f}; gains at √½: {at_most(gain, NASH)}"
    return Finding.of(text, p, q, gain, largest_gain(counter_example(), policy))


@differs(
    "Section 4, Proposition 3",
    paper="three Nash policies",
    expect=near(3.0, 8 / 3, 13, 0) + above(0.05),
    why="Left-over text: one policy is listed. The Nash set is larger than the maximiser.",
)
def nash_set(evidence: Evidence) -> Finding:
    """“These three policies are also Nash policies.”"""
    roomy = counter_example(threshold=0.5 + ROOM)
    isolated = [(0.0, 0.0), (1 / 3, 1 / 3)]
    curve = [(p, 0.5 / p) for p in np.linspace(0.5, 1.0, 11)]
    values = [float(roomy.at(play(p, q)).values[0]) for p, q in isolated]
    nash = [pair for pair in (*isolated, *curve) if largest_gain(roomy, play(*pair)) <= NASH]
    off = max(abs(float(roomy.at(play(p, q)).values[0]) - (4.5 - p - q)) for p, q in curve)
    text = (
        f"(0, 0) worth {written(values[0])}, (⅓, ⅓) worth {written(values[1])}, and the curve pq = ½, p in [½, 1], "
        f"worth 4.5 − p − q: {len(nash)} of {2 + len(curve)} points tried are Nash; (0.4, 0.4) is not"
    )
    return Finding.of(text, *values, len(nash), off, largest_gain(evidence.of(_original).game, play(0.4, 0.4)))


@added("Section 4, Proposition 3", expect=near(3 - 2**0.5, 3 - 2**0.5))
def multipliers(_: Evidence) -> Finding:
    """Multipliers of both agents at p = q = √½."""
    position = counter_example(threshold=0.5 + ROOM).at(play(ROOT_HALF, ROOT_HALF))
    found = [float(Exact()(position.induced_cmdp(agent)).multipliers[0]) for agent in (0, 1)]
    return Finding.of(f"{listed(found, digits=10)} (3 − √2)", *found)


@agrees("Figure 1", paper="figure", expect=near(4.0, 4.0, 0.0, 1000, tolerance=1e-12))
def dual_function_curve(evidence: Evidence) -> Finding:
    """The dual function, evaluated at 1000 points of [0, 2]."""
    curve = evidence.of(_original).curve
    off = float(np.abs(curve.values - np.maximum(3 + curve.multipliers / 2, 4 - curve.multipliers / 2)).max())
    ends = curve.values[0], curve.values[-1]
    text = f"max(3 + λ/2, 4 − λ/2), off by {at_most(off, 1e-12)}; d(0) and d(2) are {listed(ends)}"
    return Finding.of(text, *ends, off, len(curve.values))


@agrees("Section 4, Proposition 3", paper="3.5 at λ = 1", expect=near(3.5, 3.5, 1.0))
def dual_value(evidence: Evidence) -> Finding:
    """D* and λ*."""
    dual = evidence.of(_original).report.dual
    text = f"{written(dual.value)} at λ = {written(dual.multipliers[0])}"
    return Finding.of(text, dual.lower, dual.upper, dual.multipliers[0])


def gap_finding(game: Game, *, restarts: int = 10) -> Finding:
    """Say what the gap between P* and D* is worth: what each kind of plan attains, and what none exceeds."""
    gap = duality_gap(game, restarts=restarts)
    correlated = np.nan if gap.correlated is None else gap.correlated
    text = (
        f"P* = {written(gap.primal_lower)}, best Nash policy known {written(gap.nash)}, correlated device "
        f"{written(correlated)}, rota {written(gap.rota)}, D* = {written(gap.dual_upper)}: a public coin is worth "
        f"{written(gap.least)} to {written(gap.greatest)}"
    )
    return Finding.of(text, gap.primal_lower, gap.nash, correlated, gap.rota, gap.dual_upper, gap.least, gap.greatest)


@added(
    "Section 4, Proposition 3",
    expect=near(4.5 - 2**0.5, tolerance=1e-5)
    + between(3.08, 3.0858)
    + near(3.5, 3.5, 3.5, 2**0.5 - 1, 2**0.5 - 1, tolerance=1e-5),
    why="A coin that all agents see attains D*; policies that are drawn independently do not. `cmpg duality GAME` "
    "prints this for any game that has a potential.",
)
def gap_worth(_: Evidence) -> Finding:
    """What the duality gap means: the best policy, the best Nash policy known, devices, and D*."""
    return gap_finding(counter_example())


@added("Section 4, Proposition 3", expect=near(3.5, 3.5, 0.5, 1, 2, tolerance=1e-9))
def rota(_: Evidence) -> Finding:
    """A public coin closes the gap: a certified rota of two policies attains D*."""
    found = recommend(counter_example())
    weights = found.device.weights if isinstance(found.device, Rota) else np.zeros(0)
    text = f"{written(float(found.values[0]))} to each agent, cost {written(float(found.costs[0]))} on average"
    return Finding.of(text, *found.values, found.costs[0], found.certified, len(weights))


@agrees("Section 4, Proposition 3", paper="D* > P*", expect=near(2**0.5 - 1, tolerance=1e-5) + near(1))
def no_strong_duality(evidence: Evidence) -> Finding:
    """Strong duality does not hold."""
    report = evidence.of(_original).report
    fails = report.strong_duality is StrongDuality.FAILS
    return Finding.of(f"D* − P* is at least {written(report.least_gap, digits=7)}", report.least_gap, fails)


@agrees(
    "Section 4, Proposition 3",
    paper="two policies",
    expect=near(1, 2) + near(3, 0, 1, 0) + near(4, 1, 0),
)
def dual_policies(evidence: Evidence) -> Finding:
    """The dual's policies: (1, 1) is feasible, Nash and worth less than P*; (2, 2) is infeasible."""
    found = evidence.of(_original).report.maximisers
    first, *_, second = sorted(found.found, key=lambda each: each.value)
    text = (
        f"exactly {len(found.found)} deterministic ones, worth {listed([first.value, second.value])}, at cost "
        f"{listed([first.costs[0], second.costs[0]])}; gap of the first: {at_most(first.nash_gap, NASH)}"
    )
    nash = first.value, first.costs[0], first.feasible, first.nash_gap
    return Finding.of(text, found.complete, len(found.found), *nash, second.value, second.costs[0], second.feasible)


@agrees(
    "Section 4, remark",
    paper="need not factor into independent policies",
    expect=near(3.5, 0.5, 2.75, 0.25, tolerance=1e-9) + near(2),
    why="A planner who draws joint actions mixes (1, 1) and (2, 2): the agents' actions are the same, and a product of "
    "policies cannot say that. Its marginals alone are worth less, though no more than a half of the budget is spent.",
)
def planner_does_not_factor(_: Evidence) -> Finding:
    """The best distribution over joint actions, and the product of its marginals."""
    game = counter_example()
    joint = CMDP(
        transition=game.transition.reshape(1, 1, 4, 1),
        reward=game.rewards[0].reshape(1, 1, 4),
        costs=game.costs.reshape(1, 1, 1, 4),
        thresholds=game.thresholds,
        initial=game.initial,
        horizon=1,
    )
    best = Exact()(joint)
    drawn = best.policy.reshape(2, 2)
    alone = game.at(play(drawn[1].sum(), drawn[:, 1].sum()))
    rank = int(np.linalg.matrix_rank(drawn, tol=1e-9))
    text = (
        f"worth {written(best.value)} at cost {written(best.costs[0])}; its marginals are worth "
        f"{written(alone.values[0])} at cost {written(alone.costs[0])}: the table of probabilities has rank {rank}"
    )
    return Finding.of(text, best.value, best.costs[0], alone.values[0], alone.costs[0], rank)


def _stuck_game() -> JointGame:
    """Return a 2×2 game with the common reward 0.1p + q and the cost 0.5p(1 − q) + q ≤ 0.6."""
    reward = np.array([[0.0, 1.0], [0.1, 1.1]])
    return JointGame(
        transition=np.ones((1, 1, 2, 2, 1)),
        rewards=np.broadcast_to(reward, (2, 1, 1, 2, 2)),
        costs=np.array([[0.0, 1.0], [0.5, 1.0]]).reshape(1, 1, 1, 2, 2),
        thresholds=np.array([0.6]),
        initial=np.ones(1),
        horizon=1,
    )


@agrees(
    "Section 5, remark",
    paper="gets stuck",
    expect=near(0.65, 0.6, tolerance=1e-9) + near(1, 0, 1, 1, tolerance=0),
    why="Responses that may exceed the threshold by 0.05, from p = q = 0. The first move leaves the other agent "
    "without a feasible policy. With feasible responses the same start ends at a Nash policy.",
)
def stuck_outside(_: Evidence) -> Finding:
    """Coordinate ascent whose responses are feasible only up to a tolerance ends at a policy that is not feasible."""
    game, tolerance = _stuck_game(), 0.05
    first = game.at(play(0, 0)).induced_cmdp(1)
    response = Exact()(replace(first, thresholds=first.thresholds + tolerance))
    moved = game.at(play(0, 0).replace(1, response.policy))
    gains = []
    for agent in range(2):
        try:
            gains.append(Exact()(moved.induced_cmdp(agent)).value - moved.values[agent])
        except InfeasibleError:
            gains.append(np.nan)  # there is nothing feasible to move to
    left = sum(gain > NASH for gain in gains)
    exact = coordinate_ascent(game, play(0, 0), method=PAPER_ASCENT)
    text = (
        f"one move to q = {written(response.policy[0, 0, 1])}, cost {written(moved.costs[0])} of 0.6; the other agent "
        f"has no feasible policy, and {left} agents gain by one. With feasible responses: {exact.status.name.lower()}"
    )
    within = exact.certificate.epsilon <= 1e-6
    return Finding.of(text, moved.costs[0], game.thresholds[0], np.isnan(gains[0]), left, exact.certified, within)


@added(
    "Section 5",
    expect=between(0.137, 0.437) + near(1),
    why="Coordinate ascent finds a Nash policy, not P*. 28.7 % of 2000 starts end there.",
)
def starts(evidence: Evidence) -> Finding:
    """CA-CMPG from random feasible starts ends at the worse Nash policy, worth exactly 3."""
    count = evidence.effort.matrix_starts
    runs = run_many(
        evidence,
        counter_example(),
        _feasible_pair,
        count=count,
        what="counter-example: random starts",
        random_ties=False,
        common_value=True,
        epsilon=1e-9,
    )
    threes = sum(abs(run.potential - 3.0) <= 1e-9 for run in runs)
    settled = certified(runs)
    return Finding.of(f"{share(threes, count)}; {settled} of {count} certified", threes / count, settled / count)


def _feasible_pair(game: Game, rng: np.random.Generator) -> JointPolicy:
    while True:
        p, q = rng.random(2)
        if p * q <= float(game.thresholds[0]):
            return play(float(p), float(q))


@agrees("Appendix A", paper="3.5", expect=near(3.5, 3.5, tolerance=1e-6) + near(3.5, 3.5))
def modified_primal(evidence: Evidence) -> Finding:
    """Modified game: P*, attained by (½, second action) and by its mirror."""
    primal = evidence.of(_modified).report.primal
    roomy = modified_counter_example(threshold=0.5 + ROOM)
    worth = [float(roomy.at(play(p, q)).values[0]) for p, q in ((0.5, 1.0), (1.0, 0.5))]
    text = f"{written(primal.lower)} to {written(primal.upper)}; both are worth {listed(worth)}"
    return Finding.of(text, primal.lower, primal.upper, *worth)


@agrees("Appendix A, Figure 6", paper="3.5 at λ = 1", expect=near(3.5, 3.5, 1) + near(3.5, 1.0, tolerance=2e-3))
def modified_dual(evidence: Evidence) -> Finding:
    """Modified game: D* = P*, at λ = 1."""
    found = evidence.of(_modified)
    dual, curve = found.report.dual, found.curve
    lowest = float(curve.multipliers[curve.values.argmin()])
    holds = found.report.strong_duality is StrongDuality.HOLDS
    text = f"{written(dual.value)}; d is smallest at λ = {written(lowest, digits=3)}"
    return Finding.of(text, dual.lower, dual.upper, holds, curve.values.min(), lowest)


@agrees(
    "Appendix A",
    paper="agent 1 gains by deviating from (½, ½)",
    expect=near(0.0, tolerance=1e-12) + near(1, 1) + near(3.25, 0.25, 0.25, 0.25),
    why="Every policy attains d(1), so the dual may return any.",
)
def modified_dual_policies(evidence: Evidence) -> Finding:
    """Modified game: of the dual's policies one is Nash, one infeasible, and (½, ½) is feasible but not Nash."""
    found = evidence.of(_modified)
    maximisers = found.report.maximisers.found
    spread = max(abs(lagrangian(found.game, play(p, q), [1.0]) - 3.5) for p, q in found.random)
    middle, gains = found.game.at(play(0.5, 0.5)), gains_of(found.game, play(0.5, 0.5))
    one_nash = any(each.feasible and each.nash_gap <= NASH for each in maximisers)
    one_infeasible = any(not each.feasible for each in maximisers)
    text = (
        f"at λ = 1 all {len(found.random)} random policies attain 3.5 (off by {at_most(spread, 1e-12)}); (½, ½) is "
        f"worth {written(middle.values[0])} at cost {written(middle.costs[0])}, and an agent gains {written(gains[0])}"
    )
    return Finding.of(text, spread, one_nash, one_infeasible, middle.values[0], middle.costs[0], *gains)


def _pictures(evidence: Evidence) -> tuple[Picture, ...]:
    rows = (
        ("dual-function", "The dual function of the counter-example", _original),
        ("dual-function-modified", "The dual function of the modified counter-example", _modified),
    )
    return tuple(
        Picture(name, f"{caption}, at {len(curve.values)} multipliers in [0, 2].", partial(draw_dual_function, curve))
        for name, caption, study in rows
        for curve in (evidence.of(study).curve,)
    )


SECTION = Section(
    title="The counter-example and its modification",
    note="Two agents, two actions each, one step: the second actions together cost 1, and α = ½.",
    claims=rows_of(globals()),
    pictures=_pictures,
)
