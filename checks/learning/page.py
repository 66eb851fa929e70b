"""Writes build/learning.md: every number on it comes from the records of the run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from checks.learning.cases import COVERAGE_SEEDS, DELTA, GAMES, MAX_FAILURES, Case
from checks.records import Record
from cmpg.equilibrium.starts.min_cost import feasible_start
from cmpg.games.joint.game import JointGame
from cmpg.learning.bounds import CORRECTED, GENERATIVE, PRINTED, bounds_table
from cmpg.learning.slater import cmdp_slack, slater_constant
from cmpg.learning.trials import Proportion

MODE_NAMES = {"generative": "Algorithm 2, generative", "shared": "shared model", "safe": "Algorithm 2, safe"}

HEAD = """\
# Learning over hundreds of seeds

Written by `python -m checks learning`. Every number comes from that run, and nothing is edited by hand. Run it again to
check: policies, samples and judgements have the same bits for any number of processes; only times differ. This run took
{minutes:.0f} minutes on the clock, added up over the seeds, with Python {python} and numpy {numpy}.

The probability of failure that is allowed is δ = {delta:g} everywhere. Every result is judged afterwards with the true
model, which the learners do not see. Intervals are Clopper-Pearson at 95 %.

`spectrum` and `counter-example` are scenarios of the library. `random` (2 agents, 4 states, 3 steps, a common reward,
drawn once) and `rare catastrophe` (2 agents, careful or bold; each bold step breaks everything with probability 0.001)
are in `checks/learning/games.py`. "Payoffs unknown": rewards and costs are observed with an error of ±0.5, and learned
too. Algorithm 2 needs a feasible start: it is the cheapest joint policy of the true game; in the counter-example a
random feasible one for every seed."""

STRUCTURED = """\
# Learning over hundreds of seeds: local, counting and discounted games

Written by `python -m checks learning --structured`: every number comes from that run, and nothing is edited by hand.
This run took {minutes:.0f} minutes on the clock, added up over the seeds, with Python {python} and numpy {numpy}.
δ = {delta:g} everywhere; every result is judged afterwards with the true game. How many seeds were done when this page
was written is in the tables; the rest follows when it is run again.

`grid world, own cell` is `cmpg learn grid-world-local`; `random, local` has 3 agents of two kinds, drawn once
(`checks/learning/games.py`); `congestion by counts` has six agents, `congestion, discounted` four and a discount of
0.5; `spectrum, discounted` has two users and a discount of 0.6. No start is given, except for safe exploration, which
begins with the cheapest joint policy."""

COVERAGE = """\
## Coverage

A failure is a policy that is infeasible, or from which an agent gains more than ε, in truth. Up to {most} of {seeds}
are allowed: a rate of exactly {delta:g} would exceed that with probability {chance:.1g}. Rates far below δ are the
price of bounds that hold for every game: a worst case over a confidence set, and a union over entries, agents and
iterations. That failures would be seen is what `tests/test_learning/test_coverage.py` shows, with intervals of a tenth
of the length."""

SAFETY = """\
## Safe exploration

Everything that was executed, by any agent at any time, is judged with the true model: the start, the policies of the
exploration, the responses and the iterates. A run is unsafe if one of them breaks a constraint; at most δ of the runs
may be. ε and the pace of new solutions were chosen after trials on `spectrum`: that every run certifies there is for
settings that suit it. Safety does not depend on them."""

SAMPLES = """\
## Samples

What the theory asks for beforehand, and what was used (medians over the seeds above). The bounds need a slack: the
Slater constant of the paper's Definition 1, where it is positive. Where it is not, the theorem says nothing; the bounds
in brackets are those that the slack of the CMDPs at the start would give if it never shrank. The counter-example has
one step and payoffs that are known, so there is nothing to learn, and nothing is drawn."""


@dataclass(frozen=True, eq=False)
class Found:
    """The records of one case."""

    case: Case
    records: Sequence[Record]


def page(found: Sequence[Found]) -> str:
    """Return the whole page."""
    coverage = [each for each in found if each.case.experiment == "coverage"]
    safety = [each for each in found if each.case.experiment == "safety"]
    seconds = sum(record["seconds"] for each in found for record in each.records)
    chance = float(binom.sf(MAX_FAILURES, COVERAGE_SEEDS, DELTA))
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    parts = [
        HEAD.format(minutes=seconds / 60, delta=DELTA, **versions),
        COVERAGE.format(most=MAX_FAILURES, seeds=COVERAGE_SEEDS, delta=DELTA, chance=chance),
        _table(COVERAGE_COLUMNS, [_coverage_row(each) for each in coverage]),
        SAFETY,
        _table(SAFETY_COLUMNS, [_safety_row(each) for each in safety]),
        SAMPLES,
        _table(SAMPLES_COLUMNS, [_samples_row(*pair) for pair in _pairs(coverage)]),
    ]
    return "\n\n".join(parts) + "\n"


def structured_page(found: Sequence[Found]) -> str:
    """Return the page of local, counting and discounted games."""
    coverage = [each for each in found if each.case.experiment == "coverage"]
    safety = [each for each in found if each.case.experiment == "safety"]
    seconds = sum(record["seconds"] for each in found for record in each.records)
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    spent = [[*_coverage_row(each)[:3], f"{_median_samples(each):,.0f}"] for each in found]
    parts = [
        STRUCTURED.format(minutes=seconds / 60, delta=DELTA, **versions),
        "## Coverage\n\nA failure is a policy that is infeasible, or from which an agent gains more than ε, in truth."
        f"\nUp to {MAX_FAILURES} of {COVERAGE_SEEDS} are allowed.",
        _table(COVERAGE_COLUMNS, [_coverage_row(each) for each in coverage]),
        "## Safe exploration\n\nEverything that was executed is judged with the true game.",
        _table(SAFETY_COLUMNS, [_safety_row(each) for each in safety]),
        "## Samples\n\nMedians over the seeds above.",
        _table(("game", "method", "ε", "samples"), spent),
    ]
    return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


COVERAGE_COLUMNS = ("game", "method", "ε", "seeds", "certified", "failures", "rate", "mean gap", "largest gap")


def _coverage_row(each: Found) -> list[str]:
    wrong = Proportion.of([not record["right"] for record in each.records])
    gaps = [record["true_gap"] for record in each.records]
    certified = sum(record["certified"] for record in each.records)
    counts = [str(number) for number in (wrong.trials, certified, wrong.count)]
    head = [each.case.name, MODE_NAMES[each.case.mode], f"{each.case.epsilon:g}"]
    return [*head, *counts, _rate(wrong), f"{np.mean(gaps):.4f}", f"{max(gaps):.4f}"]


def _rate(tally: Proportion) -> str:
    return f"[{tally.lowest:.4f}, {tally.highest:.4f}]"


SAFETY_COLUMNS = (
    "game",
    "ε",
    "runs",
    "certified",
    "wrong claims",
    "policies executed",
    "of them unsafe",
    "unsafe runs",
    "rate",
    "episodes (median)",
)


def _safety_row(each: Found) -> list[str]:
    records, case = each.records, each.case
    unsafe = Proportion.of([record["unsafe_policies"] > 0 for record in records])
    steps = GAMES[case.game]().policy_shapes[0][0]
    episodes = np.median([sum(record["samples"].values()) / steps for record in records])
    certified = [record for record in records if record["certified"]]
    wrong = sum(not record["right"] for record in certified)
    executed, broken = (sum(record[name] for record in records) for name in ("executed_policies", "unsafe_policies"))
    head = [case.name, f"{case.epsilon:g}", str(unsafe.trials), str(len(certified)), str(wrong)]
    return [*head, f"{executed:,}", str(broken), str(unsafe.count), _rate(unsafe), f"{episodes:.2g}"]


SAMPLES_COLUMNS = (
    "game",
    "ε",
    "Slater constant",
    "paper's bound",
    "rigorous bound",
    "Algorithm 2, adaptive",
    "shared model",
    "ratio of the last two",
)


def _pairs(found: Sequence[Found]) -> list[tuple[Found, Found]]:
    """Return the two methods' records of each game whose payoffs are known."""
    known = [each for each in found if each.case.payoff_noise is None]
    shared = {each.case.game: each for each in known if each.case.mode == "shared"}
    return [(each, shared[each.case.game]) for each in known if each.case.mode == "generative"]


def _samples_row(responses: Found, shared: Found) -> list[str]:
    case = responses.case
    game = GAMES[case.game]()
    slater = slater_constant(game).value
    slack = slater if slater > 0 else _slack_at_start(game)
    known = case.hidden(game).simulator(np.random.default_rng(0)).known
    rows = bounds_table(known, slater=slack, epsilon=case.epsilon, delta=DELTA).rows
    bounds = {row.version: row.samples for row in rows if row.algorithm == GENERATIVE}
    texts = [f"{bounds[version]:.1e}" for version in (PRINTED, CORRECTED)]
    shown = texts if slater > 0 else [f"({text})" for text in texts]
    used = [_median_samples(each) for each in (responses, shared)]
    ratio = f"{used[0] / used[1]:.2g}" if used[1] > 0 else "–"
    head = [case.name, f"{case.epsilon:g}", f"{slater:.4g}"]
    return [*head, *shown, f"{used[0]:,.0f}", f"{used[1]:,.0f}", ratio]


def _median_samples(found: Found) -> float:
    return float(np.median([sum(record["samples"].values()) for record in found.records]))


def _slack_at_start(game: JointGame) -> float:
    policy = feasible_start(game).policy
    if policy is None:
        raise ValueError("the game has no feasible start")
    return min(cmdp_slack(game.at(policy).induced_cmdp(agent)) for agent in range(game.num_agents))
