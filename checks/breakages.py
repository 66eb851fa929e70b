"""Claims that are tried broken: each row of `cmpg.paper.CLAIMS` must notice that something it rests on is wrong.

    python -m checks breakages                      all of them, in two minutes
    python -m checks breakages dual-value slater    the breakages of these claims

A breakage replaces one name of one module in this process (a wrong matrix, a sign, a constant, a learner that does
nothing), and computes its claims from fresh evidence. A claim notices if its numbers leave their intervals. An
exception does not count: it says that the breakage is clumsy, not that the claim can fail. The table is
build/breakages.md.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from checks import BUILD
from cmpg.paper import CLAIMS, QUICK, Evidence

Change = Callable[[Any], Any]
"""Returns what is to stand in the place of the original."""

FEW = replace(
    QUICK,
    matrix_starts=60,
    grid_plots=2,
    joint_runs=2,
    own_cell_runs=10,
    deviation_checks=3,
    congestion_plots=2,
    congestion_runs=3,
    solver_runs=1,
    coverage_seeds=5,
)
"""So much is run of everything."""

NOTICED, SILENT, RAISED, UNTRIED = "notices", "does not notice", "raises", "is not tried"


@dataclass(frozen=True)
class Breakage:
    """One thing that is wrong, and the claims that must notice."""

    what: str
    target: str  # module of cmpg.paper, and name in it
    change: Change
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    """What one claim made of one breakage."""

    claim: str
    what: str
    outcome: str
    ours: str


def remade(**settings: Any) -> Change:
    """Call the original with other settings, whatever it is called with."""
    return lambda original: lambda *args, **given: original(*args, **(given | settings))


def afterwards(change: Change) -> Change:
    """Change what the original returns."""
    return lambda original: lambda *args, **given: change(original(*args, **given))


def with_fields(**changes: Change) -> Change:
    """Change fields of the record that the original returns."""
    return afterwards(lambda found: replace(found, **{name: do(getattr(found, name)) for name, do in changes.items()}))


def scaled(factor: float) -> Change:
    """Multiply the rewards of the game that the original returns."""
    return afterwards(lambda game: game.with_rewards(factor * game.rewards))


def instead(other: Any) -> Change:
    """Put something else in the place of the original."""
    return lambda _: other


def _wrong_entry(game: Any) -> Any:
    rewards = game.rewards.copy()
    rewards[..., 1, 1] += 1.0
    return game.with_rewards(rewards)


def _mirrored(game: Any, penalised: Any) -> Any:
    return penalised.with_rewards(2 * game.rewards - penalised.rewards)  # r + λc


def _no_coupling(game: Any) -> Any:
    return replace(game, costs=np.array([[0.0, 1.0], [0.5, 0.2]]).reshape(1, 1, 1, 2, 2))


def _solver(change: Change) -> Change:
    """Break every answer of a solver class."""
    return lambda original: lambda *args: afterwards(change)(original(*args))


def _of_true_thresholds(original: Any) -> Any:
    return lambda cmdp: original(replace(cmdp, thresholds=np.array([1.0, 10.0])))


def _swapped_odds(policy: Any) -> Any:
    table = policy[1].copy()
    row = table[0, 0]
    first, second = np.argsort(row)[-2:]
    row[first], row[second] = row[second], row[first]
    return policy.replace(1, table)


def _stops_at_once(original: Any) -> Any:
    def ascent(game: Any, start: Any, *, method: Any, **given: Any) -> Any:
        return original(game, start, method=replace(method, max_iterations=1), **given)

    return ascent


def _plays_safe(original: Any) -> Any:
    def build(policy: Any, cost: float) -> Any:
        def run(problem: Any, **given: Any) -> Any:
            found = original(policy, cost)(problem, **given)
            return replace(found, policies=(policy,) * len(found.policies))

        return run

    return build


def _keeps_to_the_start(original: Any) -> Any:
    def learn(kernels: Any, *, start: Any, **given: Any) -> Any:
        found = original(kernels, start=start, **given)
        return replace(found, played=tuple(replace(each, policy=start) for each in found.played))

    return learn


def _stationary(found: Any) -> Any:
    return tuple(
        replace(each, cmdp=replace(each.cmdp, transition=np.repeat(each.cmdp.transition[:1], 4, axis=0)))
        for each in found
    )


def _constant_reward(found: Any) -> Any:
    return tuple(replace(each, cmdp=replace(each.cmdp, reward=np.full((4, 3, 2), 0.5))) for each in found)


def _entry_by_entry(states: int, count: int, *, draws: int, rng: np.random.Generator) -> np.ndarray:
    sampled = rng.multinomial(count, np.full(states, 1 / states), size=draws)
    return np.asarray(np.abs(sampled / count - 1 / states).max(axis=1))


def _negative(number: Any) -> Any:
    return -number


def _half(number: Any) -> Any:
    return number / 2


def _twice(number: Any) -> Any:
    return 2 * number


def _any_start(game: Any, rng: np.random.Generator) -> Any:
    return game.random_policy(rng=rng)


def _by_adaptive(original: Any) -> Any:
    from cmpg.learning.generative import Adaptive

    return remade(learner=Adaptive())(original)


def breakages() -> tuple[Breakage, ...]:
    """Return all breakages, in the order of the paper's parts."""
    from cmpg.cmdp.exact import Exact
    from cmpg.learning.bounds import paper_constants
    from cmpg.paper.runs import grid_figure_policy, without_cost
    from cmpg.scenarios.paper import congestion_game, counter_example

    return (
        Breakage(
            "a wrong entry of the reward matrix",
            "counter_examples.counter_example",
            afterwards(_wrong_entry),
            (
                *("matrices", "primal-value", "primal-value-text", "nash-set", "multipliers", "dual-function-curve"),
                *("dual-value", "rota", "gap-worth", "dual-policies", "planner-does-not-factor"),
            ),
        ),
        Breakage(
            "threshold 0.4",
            "counter_examples.counter_example",
            remade(threshold=0.4),
            ("primal-policy", "no-strong-duality"),
        ),
        Breakage("another cost matrix", "counter_examples._stuck_game", afterwards(_no_coupling), ("stuck-outside",)),
        Breakage(
            "the game that was to be modified",
            "counter_examples.modified_counter_example",
            instead(counter_example),
            ("modified-primal", "modified-dual", "modified-dual-policies"),
        ),
        # Runs.
        Breakage(
            "an ascent that stops after one iteration",
            "claims.coordinate_ascent",
            _stops_at_once,
            (
                *("starts", "algorithm-1-return", "returned-policy", "gains-vanish", "grid-primal-dual"),
                *("unvisited-rows", "own-cell-best-of-ten", "own-cell-ties", "random-starts", "congestion-gains"),
                *("congestion-costless-starts", "congestion-linear-program"),
            ),
        ),
        Breakage(
            "an ascent that is content with any gain",
            "claims.coordinate_ascent",
            remade(epsilon=1e9),
            (
                *("starts", "theorem-1-moves", "algorithm-1-return", "gains-vanish", "grid-costs", "random-starts"),
                *("own-cell-ties", "congestion-gains", "congestion-cost"),
            ),
        ),
        # Propositions and theorems.
        Breakage(
            "r + λc for r − λc",
            "theory.penalised_game",
            lambda original: lambda game, multipliers: _mirrored(game, original(game, multipliers)),
            ("proposition-2", "proposition-2-proof"),
        ),
        Breakage("rewards doubled", "theory.grid_world", scaled(2.0), ("unit-rewards", "lemma-1")),
        Breakage("T doubled", "theory.theorem_1_bound", afterwards(_twice), ("theorem-1-iterations",)),
        Breakage(
            "a bound of best responses that is too large",
            "theory.Exact",
            _solver(lambda best: replace(best, bound=best.bound + 1)),
            ("theorem-1-proof",),
        ),
        Breakage("threshold 0.4", "theory.congestion_game", remade(threshold=0.4), ("example-1",)),
        Breakage("a recipe that knows α", "theory.greatest_slack", _of_true_thresholds, ("example-2",)),
        # The grid world.
        Breakage(
            "the odds of agent 2 exchanged",
            "grid_world.grid_figure_policy",
            afterwards(_swapped_odds),
            ("figure-policy-value", "figure-collisions"),
        ),
        Breakage(
            "rewards doubled",
            "grid_world.grid_world",
            scaled(2.0),
            ("grid-duality", "grid-gap-worth", "grid-dual-policy", "grid-restarts"),
        ),
        Breakage("threshold 0.2", "grid_world.grid_world", remade(threshold=0.2), ("grid-least-cost",)),
        Breakage(
            "certificates that do not say what policies see",
            "grid_world.run_grid_worlds",
            afterwards(lambda found: replace(found, joint=found.local)),
            ("own-cell",),
        ),
        Breakage("both agents move at random", "grid_world.one_waits", instead(_any_start), ("own-cell-start",)),
        Breakage(
            "the figure's policy",
            "grid_world.second_best_policy",
            instead(grid_figure_policy),
            ("own-cell-second-best",),
        ),
        Breakage(
            "responses that are always feasible",
            "runs.AveragedPrimalDual",
            instead(lambda *_: Exact()),
            ("discarded-runs",),
        ),
        # The congestion game.
        Breakage(
            "the sign of rewards",
            "congestion.congestion_game",
            scaled(-1.0),
            ("congestion-figure", "congestion-unconstrained", "congestion-costless"),
        ),
        Breakage("threshold 0.6", "congestion.congestion_game", remade(threshold=0.6), ("congestion-slack",)),
        Breakage(
            "threshold 0.7 while agents move", "runs.congestion_game", remade(threshold=0.7), ("congestion-feasible",)
        ),
        Breakage("starts of cost 0", "runs.from_simplex", instead(without_cost), ("congestion-start",)),
        Breakage("all endings are alike", "runs._alike", instead(lambda *_: True), ("congestion-endings",)),
        Breakage(
            "the cost at every step", "runs.congestion_game", instead(lambda **_: congestion_game()), ("first-step",)
        ),
        Breakage(
            "cycles that add up to zero", "congestion.recheck", instead(lambda *_: 0.0), ("not-a-potential-game",)
        ),
        Breakage("rewards doubled", "runs.congestion_game", scaled(2.0), ("witness-values",)),
        Breakage(
            "a state that actions move",
            "congestion.congestion_game_exogenous",
            instead(congestion_game),
            ("true-potential-games",),
        ),
        Breakage(
            "rewards doubled",
            "congestion.congestion_game_common_reward",
            scaled(2.0),
            ("common-reward-gap-worth",),
        ),
        Breakage("rewards doubled", "congestion.congestion_game_exogenous", scaled(2.0), ("exogenous-gap-worth",)),
        # Learning.
        Breakage(
            "T doubled", "learning.ascent_constants", with_fields(max_iterations=_twice), ("theorem-2-constants",)
        ),
        Breakage(
            "half of N", "learning.rigorous_constants", with_fields(samples_per_entry=_half), ("samples-per-entry",)
        ),
        Breakage(
            "a thousand steps of the loop",
            "learning.paper_constants",
            with_fields(iterations=lambda _: 1e3),
            ("algorithm-3-programs",),
        ),
        Breakage("|ζ|", "learning.slater_constant", with_fields(value=abs), ("slater",)),
        Breakage(
            "a learner that is content with any gain",
            "learning.learn",
            remade(epsilon=1e6),
            ("learned-games", "coverage"),
        ),
        Breakage(
            "a learner that plays the start for ever", "learning.learn_safely", _keeps_to_the_start, ("safe-regret",)
        ),
        Breakage(
            "half of N drawn",
            "algorithm_3.paper_constants",
            with_fields(samples_per_entry=lambda count: count // 2),
            ("algorithm-3-run",),
        ),
        Breakage(
            "a learner that plays the safe policy for ever",
            "literal.Algorithm4",
            _plays_safe,
            ("algorithm-4-run", "dope-regret"),
        ),
        Breakage("no factor S", "literal.rigorous_constants", instead(paper_constants), ("corollary-1",)),
        Breakage("another learner inside Algorithm 2", "literal.algorithm_2", _by_adaptive, ("corollary-1-run",)),
        Breakage("c is ignored", "literal.safe_constants", remade(margin=1.0), ("corollary-2",)),
        # The appendices.
        Breakage(
            "the rows of the fallback",
            "lemmas.policy_from_occupancy",
            instead(lambda _, fallback: fallback),
            ("occupancy-mean",),
        ),
        Breakage("one kernel for all steps", "lemmas._tried", afterwards(_stationary), ("occupancy-index",)),
        Breakage(
            "half of the values to go",
            "lemmas._values_to_go",
            afterwards(_half),
            ("value-difference", "value-difference-sign"),
        ),
        Breakage(
            "two kernels that are the same",
            "lemmas._forms_of",
            lambda original: lambda cmdp, _, policy: original(cmdp, cmdp.transition, policy),
            ("value-difference-sign", "value-difference-sum"),
        ),
        Breakage("one reward for all", "lemmas._tried", afterwards(_constant_reward), ("value-to-go",)),
        Breakage(
            "a step size that is a millionth",
            "lemmas.primal_dual",
            lambda original: lambda cmdp, *, step_size, **given: original(cmdp, step_size=step_size / 1e6, **given),
            ("primal-dual-lemma", "dual-regret"),
        ),
        Breakage(
            "half of the multipliers",
            "lemmas._random",
            with_fields(multiplier=_half),
            ("constraint-violation",),
        ),
        Breakage(
            "half of the multipliers",
            "lemmas.Exact",
            _solver(lambda best: replace(best, multipliers=best.multipliers / 2)),
            ("sensitivity",),
        ),
        Breakage("twice the slack", "lemmas.cmdp_slack", afterwards(_twice), ("multiplier-bound",)),
        Breakage("α′ = α + Δ", "lemmas.paper_constants", with_fields(tightening=_negative), ("tightening-sign",)),
        Breakage("errors entry by entry", "lemmas._worst_errors", instead(_entry_by_entry), ("concentration-lemma",)),
    )


def attempt(breakage: Breakage, claims: Sequence[str]) -> list[Tried]:
    """Break one thing, and compute these claims from fresh evidence."""
    module, name = breakage.target.split(".")
    home = importlib.import_module(f"cmpg.paper.{module}")
    rows = {claim.key: claim for claim in CLAIMS}
    evidence, found = Evidence(seed=1, effort=FEW), []
    with mock.patch.object(home, name, breakage.change(getattr(home, name))):
        for key in claims:
            try:
                checked = rows[key].check(evidence)
            except Exception as error:  # whatever a breakage leads to is reported
                found.append(Tried(key, breakage.what, RAISED, f"{type(error).__name__}: {error}"))
            else:
                outcome = SILENT if checked.as_expected else NOTICED
                found.append(Tried(key, breakage.what, outcome, checked.finding.ours))
    return found


def untried(rows: Sequence[Breakage]) -> list[str]:
    """Return the claims without a breakage."""
    tried = {key for row in rows for key in row.claims}
    return [claim.key for claim in CLAIMS if claim.key not in tried]


def page(found: Sequence[Tried]) -> str:
    """Return the table: those that do not notice come first."""
    ranked = sorted(found, key=lambda each: each.outcome == NOTICED)
    lines = ["| claim | broken | outcome | what it says then |", "|---|---|---|---|"]
    lines += [f"| `{each.claim}` | {each.what} | {each.outcome} | {each.ours.replace('|', '/')} |" for each in ranked]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> int:
    """Try every claim broken, and list those that do not notice."""
    parser = argparse.ArgumentParser(prog="python -m checks breakages", description=__doc__)
    parser.add_argument("claims", nargs="*", help="only these claims")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.claims) - {claim.key for claim in CLAIMS})
    if unknown:
        print(f"there is no claim {unknown[0]!r}")
        return 2
    rows, found, began = breakages(), [], time.process_time()
    for row in rows:
        wanted = [key for key in row.claims if not options.claims or key in options.claims]
        tried = attempt(row, wanted) if wanted else []
        for each in tried:
            print(f"{each.claim}: {each.outcome} ({each.what})", flush=True)
        found += tried
    if not options.claims:
        found += [Tried(key, "nothing", UNTRIED, "") for key in untried(rows)]
        BUILD.mkdir(exist_ok=True)
        (BUILD / "breakages.md").write_text(page(found), encoding="utf-8")
    missed = [each for each in found if each.outcome != NOTICED]
    claims = {each.claim for each in found}
    print(f"{len(found)} trials of {len(claims)} claims in {time.process_time() - began:.0f} CPU seconds")
    for each in missed:
        print(f"  {each.claim} {each.outcome}: {each.what}. {each.ours}")
    return 1 if missed else 0
