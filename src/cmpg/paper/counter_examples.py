"""The paper's 2×2 games: where strong duality fails, and where it holds and does not help.

p and q are the probabilities of the agents' second actions.

The dual function, with P* and D*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.duality.dual_function import DualityReport, StrongDuality, analyse_duality, dual_function, lagrangian
from cmpg.games.contract import Game
from cmpg.games.joint.game import JointGame
from cmpg.paper.claims import (
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
from cmpg.paper.figures import BLUE, GREEN, RED, light_grid, new_figure
from cmpg.paper.runs import Setting, run_many
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import counter_example, modified_counter_example

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ROOT_HALF = 0.5**0.5
NASH = 1e-9
"""Gains below this are rounding."""

ROOM = 1e-12
"""Added to α where a policy costs exactly α, so that rounding cannot call it infeasible."""


@dataclass(frozen=True, eq=False)
class DualCurve:
    """The dual function on a grid of multipliers, and the values that it is compared with."""

    multipliers: FloatArray  # [points]
    values: FloatArray  # [points]
    primal: float
    dual: float
    best_multiplier: float


def study_counter_examples(setting: Setting) -> Section:
    """Compute everything that the paper says about its two 2×2 games."""
    setting.tick("2×2 games", 0, 2)
    first, second = (_analysed(game, setting) for game in (counter_example(), modified_counter_example()))
    setting.tick("2×2 games", 2, 2)
    captions = ("The dual function of the counter-example", "The dual function of the modified counter-example")
    names = ("dual-function", "dual-function-modified")
    pictures = [
        Picture(name, f"{caption}, at {len(each.curve.values)} multipliers in [0, 2].", partial(_draw, each.curve))
        for name, caption, each in zip(names, captions, (first, second), strict=True)
    ]
    claims = (*_primal_claims(first), *_dual_claims(first), *_starts(setting), *_modified_claims(second))
    return Section(
        title="The counter-example and its modification",
        note="Two agents, two actions each, one step: the second actions together cost 1, and α = ½.",
        claims=claims,
        pictures=tuple(pictures),
    )


@dataclass(frozen=True, eq=False)
class _Analysed:
    game: JointGame
    report: DualityReport
    curve: DualCurve
    random: FloatArray  # [m, 2]: random p and q


def _analysed(game: JointGame, setting: Setting) -> _Analysed:
    report = analyse_duality(game)
    grid = np.linspace(0.0, 2.0, setting.effort.dual_points)
    best = float(report.dual.multipliers[0])
    curve = DualCurve(grid, dual_function(game, grid), report.primal.lower, report.dual.value, best)
    return _Analysed(game, report, curve, setting.streams(1)[0].random((20, 2)))


def _draw(curve: DualCurve) -> object:
    from cmpg.paper.counter_examples import draw_dual_function

    return draw_dual_function(curve)


def play(p: float, q: float) -> JointPolicy:
    """Return the policy in which the second actions have probability p and q."""
    return JointPolicy((np.array([[[1 - p, p]]]), np.array([[[1 - q, q]]])))


def gains_of(game: Game, policy: JointPolicy) -> FloatArray:
    """Return what each agent gains by its exact best response: [n]."""
    position = game.at(policy)
    best = [Exact()(position.induced_cmdp(agent)).value for agent in range(game.num_agents)]
    return np.array(best) - position.values


def _primal_claims(found: _Analysed) -> list[Claim]:
    best, optimum = found.report.primal, 4.5 - 2**0.5
    assert best.policy is not None
    p, q = (float(table[0, 0, 1]) for table in best.policy)
    gap = float(gains_of(counter_example(threshold=0.5 + ROOM), play(ROOT_HALF, ROOT_HALF)).max())
    return [
        _matrix_claim(found),
        agreed(
            "primal-value",
            "P*, in the proof",
            paper="≈ 3.09",
            ours=f"between {written(best.lower)} and {written(best.upper)}; 9/2 − √2 = {written(optimum, digits=11)}",
            holds=best.lower <= optimum + NASH and best.upper >= optimum and close(best.lower, 3.09, tolerance=0.002),
            why="Branch and bound proves both ends.",
            numbers=(best.lower, best.upper),
        ),
        refuted(
            "primal-value-text",
            "P*, in the text after the figure",
            paper="3",
            ours=written(best.lower),
            holds=best.upper <= 3,
            why="Left-over text: 3 is what the feasible policy of the dual is worth.",
            numbers=(best.lower,),
        ),
        agreed(
            "primal-policy",
            "the maximiser plays its second action with probability √½, and is a Nash policy (Proposition 1)",
            paper="p = q = √½",
            ours=f"p = {p:.4f}, q = {q:.4f}; gains at √½: {at_most(gap, NASH)}",
            holds=max(abs(p - ROOT_HALF), abs(q - ROOT_HALF)) < 1e-3 and gap <= NASH,
            numbers=(p, q, gap),
        ),
        *_nash_claims(found.game),
    ]


def _matrix_claim(found: _Analysed) -> Claim:
    off = 0.0
    for p, q in found.random:
        position = found.game.at(play(p, q))
        reward, cost = 3 - p - q + 3 * p * q, p * q
        off = max(off, abs(float(position.values[0]) - reward), abs(float(position.costs[0]) - cost))
    return agreed(
        "matrices",
        "the common reward is 3 − p − q + 3pq, the cost is pq",
        paper="A = [[3, 2], [2, 4]], B = [[0, 0], [0, 1]]",
        ours=f"off by {at_most(off, 1e-12)} at {len(found.random)} random policies",
        holds=off <= 1e-12,
        numbers=(off,),
    )


def _nash_claims(game: JointGame) -> list[Claim]:
    roomy = counter_example(threshold=0.5 + ROOM)
    isolated = [(0.0, 0.0), (1 / 3, 1 / 3)]
    curve = [(p, 0.5 / p) for p in np.linspace(0.5, 1.0, 11)]
    values = [float(roomy.at(play(p, q)).values[0]) for p, q in isolated]
    nash = [pair for pair in (*isolated, *curve) if gains_of(roomy, play(*pair)).max() <= NASH]
    worth = [abs(float(roomy.at(play(p, q)).values[0]) - (4.5 - p - q)) for p, q in curve]
    off_curve = float(gains_of(game, play(0.4, 0.4)).max())
    position = roomy.at(play(ROOT_HALF, ROOT_HALF))
    prices = [float(Exact()(position.induced_cmdp(agent)).multipliers[0]) for agent in (0, 1)]
    return [
        refuted(
            "nash-set",
            "“these three policies are also Nash policies”",
            paper="three Nash policies",
            ours=f"(0, 0) worth {written(values[0])}, (⅓, ⅓) worth {written(values[1])}, and the curve pq = ½, "
            f"p in [½, 1], worth 4.5 − p − q: {len(nash)} of {2 + len(curve)} points tried are Nash; (0.4, 0.4) is not",
            holds=len(nash) == 3,
            why="Left-over text: one policy is listed. The Nash set is larger than the maximiser.",
            numbers=(*values, len(nash), max(worth), off_curve),
        ),
        added(
            "multipliers",
            "multipliers of both agents at p = q = √½",
            ours=f"{listed(prices, digits=10)} (3 − √2)",
            numbers=prices,
        ),
    ]


def _dual_claims(found: _Analysed) -> list[Claim]:
    report, curve = found.report, found.curve
    off = float(np.abs(curve.values - np.maximum(3 + curve.multipliers / 2, 4 - curve.multipliers / 2)).max())
    ends = curve.values[0], curve.values[-1]
    return [
        agreed(
            "dual-function",
            "the dual function, evaluated at 1000 points of [0, 2]",
            paper="figure",
            ours=f"max(3 + λ/2, 4 − λ/2), off by {at_most(off, 1e-12)}; d(0) and d(2) are {listed(ends)}",
            holds=off <= 1e-12,
            numbers=(*ends, len(curve.values)),
        ),
        agreed(
            "dual-value",
            "D* and λ*",
            paper="3.5 at λ = 1",
            ours=f"{written(report.dual.value)} at λ = {written(curve.best_multiplier)}",
            holds=close(report.dual.value, 3.5) and close(curve.best_multiplier, 1.0),
            numbers=(report.dual.value, curve.best_multiplier),
        ),
        agreed(
            "no-strong-duality",
            "strong duality does not hold (Proposition 3)",
            paper="D* > P*",
            ours=f"D* − P* is at least {written(report.least_gap, digits=7)}",
            holds=report.strong_duality is StrongDuality.FAILS,
            numbers=(report.least_gap,),
        ),
        _dual_policies_claim(report),
    ]


def _dual_policies_claim(report: DualityReport) -> Claim:
    first, *_, second = sorted(report.maximisers.found, key=lambda each: each.value)
    both = report.maximisers.complete and len(report.maximisers.found) == 2
    return agreed(
        "dual-policies",
        "the dual's policies: (1, 1) is feasible, Nash and worth less than P*; (2, 2) is infeasible",
        paper="two policies",
        ours=f"exactly {len(report.maximisers.found)} deterministic ones, worth {listed([first.value, second.value])}, "
        f"at cost {listed([first.costs[0], second.costs[0]])}; gap of the first: {at_most(first.nash_gap, NASH)}",
        holds=both
        and first.feasible
        and first.nash_gap <= NASH
        and first.value < report.primal.lower
        and not second.feasible,
        numbers=(first.value, second.value, first.costs[0], second.costs[0]),
    )


def _starts(setting: Setting) -> list[Claim]:
    count = setting.effort.matrix_starts
    runs = run_many(
        setting,
        counter_example(),
        _feasible_pair,
        count=count,
        what="counter-example: random starts",
        random_ties=False,
        common_value=True,
        epsilon=1e-9,
    )
    threes = sum(close(run.potential, 3.0) for run in runs)
    certified = sum(run.settled for run in runs)
    return [
        added(
            "starts",
            "CA-CMPG from random feasible starts ends at the worse Nash policy, worth exactly 3",
            ours=f"{share(threes, count)}; {certified} of {count} certified",
            why="Coordinate ascent finds a Nash policy, not P*.",
            numbers=(threes / count, certified / count),
        )
    ]


def _feasible_pair(game: Game, rng: np.random.Generator) -> JointPolicy:
    while True:
        p, q = rng.random(2)
        if p * q <= float(game.thresholds[0]):
            return play(float(p), float(q))


def _modified_claims(found: _Analysed) -> list[Claim]:
    report, curve = found.report, found.curve
    roomy = modified_counter_example(threshold=0.5 + ROOM)
    worth = [float(roomy.at(play(p, q)).values[0]) for p, q in ((0.5, 1.0), (1.0, 0.5))]
    lowest = float(curve.multipliers[curve.values.argmin()])
    return [
        agreed(
            "modified-primal",
            "modified game: P*, attained by (½, second action) and by its mirror",
            paper="3.5",
            ours=f"{written(report.primal.lower)} to {written(report.primal.upper)}; both are worth {listed(worth)}",
            holds=close(report.primal.lower, 3.5, tolerance=1e-6) and all(close(each, 3.5) for each in worth),
            numbers=(report.primal.lower, *worth),
        ),
        agreed(
            "modified-dual",
            "modified game: D* = P*, at λ = 1",
            paper="3.5 at λ = 1",
            ours=f"{written(report.dual.value)}; d is smallest at λ = {written(lowest, digits=3)}",
            holds=report.strong_duality is StrongDuality.HOLDS and close(curve.values.min(), 3.5, tolerance=1e-3),
            numbers=(report.dual.value, curve.values[0], curve.values[-1]),
        ),
        _modified_policies_claim(found),
    ]


def _modified_policies_claim(found: _Analysed) -> Claim:
    listed_ones = found.report.maximisers.found
    spread = max(abs(lagrangian(found.game, play(p, q), [1.0]) - 3.5) for p, q in found.random)
    middle, gain = found.game.at(play(0.5, 0.5)), float(gains_of(found.game, play(0.5, 0.5)).max())
    one_nash = any(each.feasible and each.nash_gap <= NASH for each in listed_ones)
    one_infeasible = any(not each.feasible for each in listed_ones)
    return agreed(
        "modified-dual-policies",
        "modified game: of the dual's policies one is Nash, one infeasible, and (½, ½) is feasible but not Nash",
        paper="agent 1 gains by leaving (½, ½)",
        ours=f"at λ = 1 all {len(found.random)} random policies attain 3.5 (off by {at_most(spread, 1e-12)}); (½, ½) "
        f"is worth {written(middle.values[0])} at cost {written(middle.costs[0])}, and an agent gains {written(gain)}",
        holds=spread <= 1e-12 and one_nash and one_infeasible and close(gain, 0.25) and middle.costs[0] <= 0.5,
        why="Every policy attains d(1), so the dual may return any.",
        numbers=(middle.values[0], gain, middle.costs[0]),
    )


def draw_dual_function(curve: DualCurve) -> Figure:
    """Draw d(λ), its minimum, and the level of P*."""
    figure = new_figure(4.2, 2.8)
    axes = figure.add_subplot()
    light_grid(axes)
    axes.plot(curve.multipliers, curve.values, color=BLUE, label=r"$d(\lambda)$")
    axes.plot(
        [curve.best_multiplier],
        [curve.dual],
        "o",
        color=RED,
        markersize=5,
        zorder=3,
        label=f"$D^{{*}} = {curve.dual:.4g}$",
    )
    axes.axhline(curve.primal, color=GREEN, linestyle="--", label=f"$P^{{*}} = {curve.primal:.4f}$")
    axes.set_xlim(0, 2)
    axes.set_ylim(min(curve.primal, curve.values.min()) - 0.1, curve.values.max() + 0.1)
    axes.set_xlabel(r"$\lambda$")
    axes.set_ylabel(r"$d(\lambda)$")
    axes.legend(loc="upper center", ncols=3)
    return figure
