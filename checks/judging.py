"""How often audits by episodes hold, how wide they are, and what broken bounds do.

    python -m checks judging [--audits 1000] [--seed 0]

Policies whose exploitability is known, because their games are: joint, local, counting and coin games drawn at random;
policies that are Nash, 0.01 from it, and drawn at random, feasible and not. Each is audited by 250, 1,000 or 4,000
episodes at δ = 0.1; an audit fails if any of its statements (values, costs, feasibility, exploitability) is wrong.
Three broken judges are tried on the same kinds of policies, a tenth as often, and each must be noticed by the end that
it breaks: one that takes means for the truth, one that takes the best response that it found for an upper bound, as is
usual where policies are trained, and one that counts deviations which are not proved to keep the budget.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from checks import BUILD, evidence
from cmpg.equilibrium.solve import solve
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalAgent, LocalGame
from cmpg.judging import audits as audit_room
from cmpg.judging import ceilings as ceilings_room
from cmpg.judging.known import JudgedPolicy, judge_known
from cmpg.judging.worlds import GameWorld
from cmpg.policy import JointPolicy
from cmpg.scenarios.paper import counting_congestion_game

DELTA = 0.1
EPISODES = (250, 1_000, 4_000)
KINDS = ("Nash", "0.01 from Nash", "drawn at random")
FORMS = ("joint", "local", "counting", "coin")


@dataclass(frozen=True)
class Control:
    """A broken judge, what it is tried on, and which end of its intervals must be wrong more often than δ."""

    forms: tuple[str, ...]
    kinds: tuple[str, ...]
    end: str


AS_IT_IS, MEANS, TRAINED, UNPROVED = (
    "as it is",
    "means are taken for the truth",
    "a best response is taken for the upper end",
    "unproved deviations count",
)
CONTROLS = {
    # One entry decides a coin, and a mean is below its expectation about half of the time.
    MEANS: Control(("coin",), KINDS[1:], "upper"),
    # A deviation that was found is worth no more than the best one, and less if it keeps some room below a threshold.
    TRAINED: Control(FORMS, KINDS[1:], "upper"),
    # Breaking the budget is worth more than keeping it wherever the budget binds.
    UNPROVED: Control(FORMS[:3], KINDS, "lower"),
}
"""Broken judges by name. No upper end can be wrong where nothing is gained, so they are tried where something is."""


def random_joint(rng: np.random.Generator) -> JointGame:
    """Return two agents with a common reward, two states, two actions, two steps."""
    shape = (1, 2, 2, 2, 2)
    common = rng.random(shape)
    costs = np.where(rng.random(shape) < 0.5, rng.random(shape), 0.0)
    return JointGame(
        transition=rng.dirichlet(np.ones(2), size=(2, 2, 2, 2)),
        rewards=np.concatenate([common, common]),
        costs=costs,
        thresholds=[float(rng.uniform(0.2, 0.9))],
        initial=rng.dirichlet(np.ones(2)),
        horizon=2,
    )


def random_local(rng: np.random.Generator) -> LocalGame:
    """Return two agents on three states of their own, who meet at two resources."""
    uses = (rng.random((1, 3, 2, 2)) < 0.5).astype(float)
    agents = tuple(
        LocalAgent(
            transition=rng.dirichlet(np.ones(3), size=(1, 3, 2)),
            reward=rng.random((1, 3, 2)),
            uses=uses,
            initial=rng.dirichlet(np.ones(3)),
        )
        for _ in range(2)
    )
    delay = np.broadcast_to([0.0, 0.1, 0.3], (1, 2, 3))
    loads = np.broadcast_to([0.0, 0.0, 1.0], (1, 1, 2, 3))
    return LocalGame(agents=agents, delay=delay, load_costs=loads, thresholds=[float(rng.uniform(0.2, 0.9))], horizon=2)


def random_counting(rng: np.random.Generator) -> CountingGame:
    """Return the congestion game of the paper with three agents, two steps and a threshold of its own."""
    weights = rng.uniform(0.2, 1.0, size=4)
    limit = float(rng.uniform(0.1, 0.8))
    return counting_congestion_game(num_agents=3, horizon=2, threshold=limit, weights=weights, unsafe_penalty=1.0)


def random_coin(rng: np.random.Generator) -> JointGame:
    """Return one agent that may toss a coin, whose reward comes in the second step."""
    transition = np.zeros((1, 2, 2, 2))
    transition[0, :, 0, 0] = 1.0
    transition[0, :, 1] = [1 - (p := float(rng.uniform(0.2, 0.8))), p]
    rewards = np.zeros((1, 2, 2, 2))
    rewards[0, 1, 1] = 1.0
    costs = np.zeros((1, 1, 2, 2))
    start = [1.0, 0.0]
    return JointGame(transition=transition, rewards=rewards, costs=costs, thresholds=[1.0], initial=start, horizon=2)


BUILDERS: dict[str, Callable[[np.random.Generator], Game]] = {
    "joint": random_joint,
    "local": random_local,
    "counting": random_counting,
    "coin": random_coin,
}


def case(form: str, kind: str, rng: np.random.Generator) -> tuple[Game, JudgedPolicy]:
    """Return a game and a policy of one kind, with the truth about it."""
    for attempt in range(50):
        game = BUILDERS[form](rng)
        drawn = JointPolicy.random(game.policy_shapes, rng=rng)
        if kind == "drawn at random":
            return game, judge_known(game, drawn, time_limit=0)
        result = solve(game)
        if not result.certified:
            continue
        if kind == "Nash":
            return game, judge_known(game, result.policy, time_limit=0)
        # Towards a random policy, or towards what is an equilibrium within half of the budget.
        within_half = solve(game.with_thresholds(0.5 * game.thresholds))
        if within_half.incumbent is None:
            continue
        other = drawn if attempt % 2 else within_half.policy
        low, high = 0.0, 1.0
        for _ in range(20):
            weight = (low + high) / 2
            judged = judge_known(game, result.policy.mix(other, weight), time_limit=0)
            low, high = (weight, high) if truth(judged) <= 0.01 else (low, weight)
        judged = judge_known(game, result.policy.mix(other, low), time_limit=0)
        if 0.005 < truth(judged) <= 0.0101:
            return game, judged
    raise RuntimeError(f"no {form} game had a policy that is {kind}")


def truth(judged: JudgedPolicy) -> float:
    """Return the exploitability: the best deviation within the constraints, or none."""
    return max([0.0, *(each.gain for each in judged.deviations if each is not None)])


@dataclass(frozen=True)
class Trial:
    """One audit."""

    form: str
    kind: str
    episodes: int
    feasible: bool
    true: float
    lower: float
    upper: float
    wrong: tuple[str, ...]


def trial(form: str, kind: str, episodes: int, seed: int, control: str) -> Trial:
    """Audit one policy, and say which statements are wrong."""
    rng = np.random.default_rng([seed, FORMS.index(form), KINDS.index(kind)])
    game, judged = case(form, kind, rng)
    with ExitStack() as broken:
        if control == MEANS:
            broken.enter_context(patch.object(ceilings_room, "mean_ceiling", _plain_mean))
            broken.enter_context(patch.object(audit_room, "mean_ceiling", _plain_mean))
        elif control == UNPROVED:
            honest = audit_room._measured
            broken.enter_context(
                patch.object(audit_room, "_measured", lambda *given: replace(honest(*given), within_budget=True))
            )
            broken.enter_context(patch.object(audit_room, "_planned", _greedy_plan))
        found = audit_room.audit(GameWorld(game), judged.policy, episodes=episodes, delta=DELTA, rng=rng)
    if control == TRAINED:
        found = replace(found, gains=_found_gains(found))
    true, slack = truth(judged), 1e-9
    wrong = []
    for what, numbers, intervals in (("values", judged.values, found.values), ("costs", judged.costs, found.costs)):
        pairs = zip(numbers, intervals, strict=True)
        if any(not known.lower - slack <= number <= known.upper + slack for number, known in pairs):
            wrong.append(what)
    if found.exploitability.lower > true + slack:
        wrong.append("lower")
    if found.exploitability.upper < true - slack:
        wrong.append("upper")
    exceeded = bool((judged.costs > judged.certificate.thresholds + slack).any())
    if (found.feasible and exceeded) or (found.violated and judged.feasible):
        wrong.append("feasibility")
    ends = found.exploitability
    return Trial(form, kind, episodes, judged.feasible, true, ends.lower, ends.upper, tuple(wrong))


def _plain_mean(values: Any, counts: Any, *, most: Any, delta: Any, bets: Any = None) -> Any:
    """Return the mean, as if samples were the truth."""
    del delta, bets
    total = counts.sum(axis=-1)
    return np.where(total > 0, (values * counts).sum(axis=-1) / np.maximum(total, 1), most)


def _found_gains(found: audit_room.Audit) -> tuple[audit_room.Interval, ...]:
    """Return gains whose upper ends are what the best measured deviation within the budget brings in the mean."""
    ends = []
    for agent, gain in enumerate(found.gains):
        mine = [each.gain for each in found.tried if each.agent == agent and each.within_budget]
        means = [(each.lower + each.upper) / 2 for each in mine]
        ends.append(audit_room.Interval(gain.lower, max([gain.lower, *means])))
    return tuple(ends)


def _greedy_plan(world: Any, explorer: Any, room: float) -> Any:
    """Plan a deviation that ignores the budget."""
    del room
    seen = explorer.seen
    steps, states = ceilings_room.outcomes(seen, own=True), int(seen.own.max()) + 1
    free = audit_room._estimated(world, explorer.agent, steps, seen.own[0], states)
    table: Any = audit_room.Exact()(free(np.full(len(world.thresholds), 1e9))).policy
    return table[:, :states]


def coverage(audits: int, seed: int) -> dict[str, list[Trial]]:
    """Audit policies of all kinds; a tenth as many by each broken judge."""
    found: dict[str, list[Trial]] = {}
    everything = Control(FORMS, KINDS, "")
    for control, given in {AS_IT_IS: everything, **CONTROLS}.items():
        cells = [(form, kind, episodes) for form in given.forms for kind in given.kinds for episodes in EPISODES]
        count = audits if control == AS_IT_IS else max(audits // 10, 9)
        trials = []
        for number in range(count):
            form, kind, episodes = cells[number % len(cells)]
            trials.append(trial(form, kind, episodes, seed + number, control))
            if number % 100 == 99:
                wrong = sum(bool(each.wrong) for each in trials)
                print(f"{control}: {number + 1} audits, {wrong} wrong", flush=True)
        found[control] = trials
    return found


def coverage_table(found: dict[str, list[Trial]]) -> str:
    """Return failures and widths in Markdown."""
    lines = ["| judge | audits | wrong | of these upper, lower | share (δ = 0.1) |", "|---|---:|---:|---:|---:|"]
    for control, trials in found.items():
        wrong = [each for each in trials if each.wrong]
        upper, lower = (sum(end in each.wrong for each in wrong) for end in ("upper", "lower"))
        share = len(wrong) / len(trials)
        lines.append(f"| {control} | {len(trials)} | {len(wrong)} | {upper}, {lower} | {share:.3f} |")
    lines += [
        "",
        "| form | policy | audits | median width at " + ", ".join(f"{count:,}" for count in EPISODES) + " |",
        "|---|---|---:|---:|",
    ]
    honest = found[AS_IT_IS]
    for form in FORMS:
        for kind in KINDS:
            mine = [each for each in honest if (each.form, each.kind) == (form, kind)]
            widths = []
            for count in EPISODES:
                these = [each.upper - each.lower for each in mine if each.episodes == count]
                widths.append(f"{np.median(these):.3g}" if these else "–")
            lines.append(f"| {form} | {kind} | {len(mine)} | {', '.join(widths)} |")
    infeasible = sum(not each.feasible for each in honest)
    shown = sum(each.lower > 0 for each in honest if each.true > 0.05)
    large = sum(each.true > 0.05 for each in honest)
    proved = f"of {large} with an exploitability above 0.05, {shown} are proved to have some."
    lines += ["", f"{infeasible} of {len(honest)} policies break a threshold; {proved}"]
    return "\n".join(lines)


def noticed(trials: list[Trial], ends: tuple[str, ...]) -> bool:
    """Whether these ends of a judge are wrong more often than δ allows, beyond three standard deviations."""
    count = len(trials)
    wrong = sum(bool({*each.wrong} & {*ends}) for each in trials)
    return wrong > DELTA * count + 3 * np.sqrt(DELTA * (1 - DELTA) * count)


def main(argv: list[str]) -> int:
    """Run the check."""
    parser = argparse.ArgumentParser(prog="python -m checks judging", description=__doc__)
    parser.add_argument("--audits", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    BUILD.mkdir(exist_ok=True)
    began = time.process_time()
    found = coverage(given.audits, given.seed)
    table = coverage_table(found)
    print(table)
    print(f"{time.process_time() - began:.0f} CPU seconds")
    (BUILD / "judging.md").write_text(table + "\n")
    rows = {control: [vars(each) for each in trials] for control, trials in found.items()}
    (BUILD / "judging.json").write_text(json.dumps(rows))
    good = not noticed(found[AS_IT_IS], ("values", "costs", "lower", "upper", "feasibility"))
    missed = [name for name, control in CONTROLS.items() if not noticed(found[name], (control.end,))]
    if given.audits >= 1_000:
        wrong = sum(bool(each.wrong) for each in found[AS_IT_IS])
        counts = [sum(control.end in each.wrong for each in found[name]) for name, control in CONTROLS.items()]
        controls = ", ".join(f"{count} of {len(found[name])}" for count, name in zip(counts, CONTROLS, strict=True))
        evidence.record(
            "judging", f"{wrong} of {len(found[AS_IT_IS])} audits by episodes had a wrong statement, at δ = 0.1; "
            f"of three broken judges {controls}"
        )  # fmt: skip
    print("broken judges were noticed" if not missed else f"NOT NOTICED: {', '.join(missed)}")
    return 0 if good and not missed else 1
