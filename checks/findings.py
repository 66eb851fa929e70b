"""What random games show: duality gaps, endings of coordinate ascent, prices of budgets, samples (docs/findings.md).

    python -m checks findings [--games 100] [--write]      stop it and start it as you like

Games are numbered; what was computed is kept in build/findings, and is computed again only after the library has
changed. P* and D* are brackets that branch and bound and the dual prove; every ending that is counted has a certificate
with ε = 1e-6. `--write` writes docs/findings.md and its charts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from checks import BUILD, ROOT, agents, fingerprint, wilson
from checks.learning import growth
from checks.records import Record, Records
from cmpg.cmdp.planning import plan
from cmpg.duality.analysis import analyse_duality
from cmpg.equilibrium.ascent import coordinate_ascent
from cmpg.equilibrium.runs import Restarts
from cmpg.equilibrium.solve import solve
from cmpg.equilibrium.starts.min_cost import MinCostStart, feasible_start
from cmpg.equilibrium.starts.start import random_start
from cmpg.games.joint.game import JointGame

STARTS, EPSILON, CLOSED = 20, 1e-6, 1e-5
"""Random starts of each game; ε of every run; potentials that differ by less are the same."""

SWEPT = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Thresholds of the prices: shares of the way from the least cost to that of the best unconstrained plan."""


@dataclass(frozen=True)
class Kind:
    """A class of random games: entries uniform in [0, 1], rows of transitions uniform on the simplex."""

    name: str
    actions: tuple[int, ...]
    states: int = 1
    steps: int = 1
    common: bool = True  # one reward for all; otherwise rewards also differ by what the others do

    def draw(self, seed: int, share: float) -> tuple[JointGame, JointGame] | None:
        """Return game `seed` with a threshold that binds a planner, and the game whose common reward is its potential.

        None if no threshold binds.
        """
        rng = np.random.default_rng([seed, *self.actions, self.states, self.steps, self.common])
        agents, shape = len(self.actions), (self.steps, self.states, *self.actions)
        shared = rewards = np.repeat(rng.random((1, *shape)), agents, axis=0)
        if not self.common:
            # d_i(a_−i) leaves the potential as it is, and changes what a policy is worth to agent i.
            rewards = rewards + np.stack(
                [np.broadcast_to(rng.random(shape).mean(axis=2 + i, keepdims=True), shape) for i in range(agents)]
            )
        game = JointGame(
            transition=rng.dirichlet(np.ones(self.states), size=shape),
            rewards=rewards,
            costs=rng.random((1, *shape)),
            thresholds=[0.0],
            initial=rng.dirichlet(np.ones(self.states)),
            horizon=self.steps,
        )
        planner = game.joint_cmdp(shared[0])
        least = float(plan(planner, np.ones(1), reward_weight=0.0).costs[0])
        most = float(plan(planner, np.zeros(1)).costs[0])
        if most - least < 1e-3:
            return None
        game = game.with_thresholds(np.array([least + share * (most - least)]))
        return game, game.with_rewards(shared)


KINDS = {
    each.name: each
    for each in (
        Kind("2 agents, 2 actions, one step", (2, 2)),
        Kind("2 agents, 3 actions, one step", (3, 3)),
        Kind("3 agents, 2 actions, one step", (2, 2, 2)),
        Kind("2 agents, 2 actions, 2 states, 2 steps", (2, 2), 2, 2),
        Kind("2 agents, 2 actions, 3 states, 3 steps", (2, 2), 3, 3),
        Kind("different rewards, 2 agents, 2 actions, one step", (2, 2), common=False),
    )
}
PRICED = ("2 agents, 2 actions, one step", "different rewards, 2 agents, 2 actions, one step")


def tasks(games: int) -> Iterator[tuple[str, int, float]]:
    """Yield what is to be examined: each class at random thresholds, then two classes at fixed ones."""
    for name in KINDS:
        for seed in range(games):
            yield name, seed, round(float(np.random.default_rng([7, seed]).uniform(0.1, 0.9)), 6)
    for name in PRICED:
        for seed in range(games):
            for share in SWEPT:
                yield name, seed, share


def examine(name: str, seed: int, share: float) -> Record:
    """Return brackets of P* and D*, and the endings of one game: potential, welfare, moves."""
    drawn = KINDS[name].draw(seed, share)
    if drawn is None:
        return {"binds": False}
    game, potential = drawn
    report = analyse_duality(potential)
    total = np.repeat(game.rewards.sum(axis=0, keepdims=True), game.num_agents, axis=0)
    best = analyse_duality(game.with_rewards(total)).primal
    rng = np.random.default_rng([seed, 1])
    safe = feasible_start(game).policy
    assert safe is not None, "the least cost is below the threshold"
    runs = [coordinate_ascent(game, random_start(game, safe, rng=rng), epsilon=EPSILON, rng=rng) for _ in range(STARTS)]
    named = {"planned, pair moves": solve(game, epsilon=EPSILON)}
    if share not in SWEPT:
        ten = Restarts(10)
        named |= {
            "least cost": solve(game, epsilon=EPSILON, start=MinCostStart(), improve=None),
            "planned": solve(game, epsilon=EPSILON, improve=None),
            "planned, 10 restarts": solve(game, epsilon=EPSILON, improve=None, restarts=ten, rng=seed),
            "all": solve(game, epsilon=EPSILON, restarts=ten, rng=seed),
        }

    def ending(result: Any) -> Record:
        certified = result.certified and result.certificate.epsilon <= EPSILON
        values = float(potential.at(result.policy).values[0]), float(result.values.sum())
        return {"certified": bool(certified), "potential": values[0], "welfare": values[1]}

    return {
        "binds": True,
        "primal": [report.primal.lower, report.primal.upper],
        "dual": [report.dual.lower, report.dual.upper],
        "welfare": [best.lower, best.upper],
        "random": [ending(run) for run in runs],
        "named": {key: ending(run) for key, run in named.items()},
    }


def compute(games: int, path: Path, look: Callable[[str, int, float], Record] = examine) -> dict[str, Record]:
    """Examine what has not been examined, and return all of it by task."""
    records, began = Records(path, lambda record: str(record["task"])), time.process_time()
    wanted = {f"{name}/{seed}/{share}": (name, seed, share) for name, seed, share in tasks(games)}
    for key, task in wanted.items():
        if key not in records.known:
            records.keep({"task": key, **look(*task)})
    print(f"{len(wanted)} games, {time.process_time() - began:.0f} CPU seconds")
    return {key: records.known[key] for key in wanted}


# Statistics.


def mean_error(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean over games, and 1.96 times its standard error."""
    found = np.asarray(values, dtype=float)
    return float(found.mean()), float(1.96 * found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0


def percent(part: int, whole: int) -> str:
    """Write a share with its interval."""
    low, high = wilson(part, whole)
    return f"{part / max(whole, 1):.0%} ({low:.0%} to {high:.0%})".replace("%", " %")


@dataclass(frozen=True)
class Summary:
    """What one class of games shows."""

    name: str
    drawn: int
    games: int  # with a threshold that binds
    gaps: int  # D* > P* is proved
    loose: tuple[float, ...]  # 1 − P*/D* at most, where a gap is neither proved nor excluded to CLOSED
    relative: tuple[float, ...]  # 1 − P*/D* of those, at least
    reached: dict[str, tuple[int, int]]  # endings at P*, and certified endings, by start
    shares: tuple[float, ...]  # of random starts that end at P*, by game
    worst: tuple[float, ...]  # the worst ending's welfare over that of the best one, by game
    uncertified: int


def summarise(name: str, records: Sequence[Record]) -> Summary:
    """Count; games whose P* is open are left out of what is said about reaching it."""
    found = [each for each in records if each["binds"]]
    closed = [each for each in found if each["primal"][1] - each["primal"][0] <= CLOSED]
    gaps = [each for each in found if each["dual"][0] - each["primal"][1] > CLOSED]
    undecided = [
        each for each in found if each["dual"][1] - each["primal"][0] > CLOSED >= each["dual"][0] - each["primal"][1]
    ]
    reached, shares, worst = {}, [], []

    def at_best(record: Record, ending: Record) -> bool:
        return bool(ending["potential"] >= record["primal"][1] - 2 * CLOSED)

    for key in ("least cost", "planned", "planned, pair moves", "planned, 10 restarts", "all"):
        ends = [(each, each["named"][key]) for each in closed if each["named"][key]["certified"]]
        reached[key] = sum(at_best(each, end) for each, end in ends), len(ends)
    for each in closed:
        ends = [end for end in each["random"] if end["certified"]]
        if ends:
            shares.append(float(np.mean([at_best(each, end) for end in ends])))
            known = [end for end in each["named"].values() if end["certified"]]
            best = max(end["welfare"] for end in (*ends, *known))
            worst.append(min(end["welfare"] for end in ends) / best)
    everything = [end for each in found for end in (*each["random"], *each["named"].values())]
    return Summary(
        name,
        len(records),
        len(found),
        len(gaps),
        tuple(1 - each["primal"][0] / each["dual"][1] for each in undecided),
        tuple(1 - each["primal"][1] / each["dual"][0] for each in gaps),
        reached,
        tuple(shares),
        tuple(worst),
        sum(not end["certified"] for end in everything),
    )


def prices(records: dict[str, Record], name: str) -> list[tuple[float, list[float], list[float]]]:
    """Return for each threshold the worst and the best ending's welfare over the best welfare of any policy."""
    found = []
    for share in SWEPT:
        worst, best = [], []
        for key, each in records.items():
            if key.startswith(f"{name}/") and key.endswith(f"/{share}") and each["binds"]:
                ends = [end["welfare"] for end in (*each["random"], *each["named"].values()) if end["certified"]]
                worst.append(min(ends) / each["welfare"][1])
                best.append(max(ends) / each["welfare"][0])
        found.append((share, worst, best))
    return found


# The page.


def charts(summaries: Sequence[Summary], records: dict[str, Record], of_agents: Sequence[Record], folder: Path) -> None:
    """Draw the charts of the page."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "findings"  # the same file for the same numbers
    labels = [each.name.replace(", ", ",\n", 1) for each in summaries]
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    shares = [each.gaps / max(each.games, 1) for each in summaries]
    ends = np.array([wilson(each.gaps, each.games) for each in summaries])
    errors = np.abs(ends.T - np.array(shares))
    errors[:, [KINDS[each.name].steps > 1 for each in summaries]] = np.nan  # no gap can be proved there
    axes.barh(labels, shares, xerr=errors, color="#4477aa", capsize=3, label="D* > P* proved, with 95 % interval")
    undecided = [len(each.loose) / max(each.games, 1) for each in summaries]
    axes.barh(labels, undecided, left=shares, color="#cccccc", label="open")
    axes.invert_yaxis()
    axes.legend()
    axes.set_xlabel("share of games")
    _save(figure, folder / "findings-gaps.svg")

    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    kinds = ["random", *summaries[0].reached]
    for row, kind in enumerate(kinds):
        middle, low, high = [], [], []
        for each in summaries:
            if kind == "random":
                mean, error = mean_error(each.shares)
                bounds = (mean - error, mean + error)
            else:
                part, whole = each.reached[kind]
                mean, bounds = part / max(whole, 1), wilson(part, whole)
            middle.append(mean)
            low.append(mean - bounds[0])
            high.append(bounds[1] - mean)
        heights = np.arange(len(summaries)) + 0.13 * (row - 2.5)
        axes.errorbar(middle, heights, xerr=np.abs([low, high]), fmt="o", ms=4, capsize=2, label=kind)
    axes.set_yticks(range(len(summaries)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("share that ends at P*, and its 95 % interval")
    axes.legend(title="start", fontsize=8)
    _save(figure, folder / "findings-starts.svg")

    figure, panels = plt.subplots(1, len(PRICED), figsize=(8, 3.2), sharey=True, layout="constrained")
    for panel, name in zip(panels, PRICED, strict=True):
        rows = prices(records, name)
        for label, index in (("best ending", 2), ("worst ending", 1)):
            found = np.array([mean_error(row[index]) for row in rows])
            panel.errorbar([row[0] for row in rows], found[:, 0], yerr=found[:, 1], fmt="o-", capsize=3, label=label)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("threshold")
    panels[0].set_ylabel("welfare / best welfare")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    _save(figure, folder / "findings-prices.svg")

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    agents.chart(of_agents, axes)
    _save(figure, folder / "findings-agents.svg")


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)


def page(summaries: Sequence[Summary], records: dict[str, Record], games: int, by_agents: str, samples: str) -> str:
    """Return docs/findings.md."""
    gaps = [
        "| games | binding threshold | D* > P* proved | P* = D* proved | open | mean of 1 − P*/D* if proved | largest "
        "| if open, at most (mean) |",
        "|---" * 8 + "|",
    ]
    for each in summaries:
        size = largest = at_most = "–"
        if each.relative:
            mean, error = mean_error(each.relative)
            size, largest = f"{100 * mean:.2f} % ± {100 * error:.2f}", f"{100 * max(each.relative):.1f} %"
        if each.loose:
            at_most = f"{100 * float(np.mean(each.loose)):.2f} %"
        closed = each.games - each.gaps - len(each.loose)
        proved = percent(each.gaps, each.games) if KINDS[each.name].steps == 1 else "not tried"
        cells = (proved, percent(closed, each.games), str(len(each.loose)))
        gaps.append(
            f"| {each.name} | {each.games} of {each.drawn} | {' | '.join(cells)} | {size} | {largest} | {at_most} |"
        )
    names = list(summaries[0].reached)
    starts = ["| games | random start | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for each in summaries:
        mean, error = mean_error(each.shares)
        cells = [percent(*each.reached[name]) for name in names]
        starts.append(f"| {each.name} | {100 * mean:.0f} % ± {100 * error:.0f} | " + " | ".join(cells) + " |")
    worst = [
        "| games | every random start ends at P* | worst ending over best ending: mean | least |",
        "|---|---|---|---|",
    ]
    for each in summaries:
        mean, error = mean_error(each.worst)
        every = percent(sum(share == 1 for share in each.shares), len(each.shares))
        worst.append(f"| {each.name} | {every} | {mean:.3f} ± {error:.3f} | {min(each.worst):.3f} |")
    tables = []
    for name in PRICED:
        tables += [
            "",
            f"*{name[0].upper()}{name[1:]}*",
            "",
            "| threshold | games | worst ending | best ending |",
            "|---|---|---|---|",
        ]
        for share, low, high in prices(records, name):
            (bad, bad_error), (good, good_error) = mean_error(low), mean_error(high)
            row = f"| {share} | {len(low)} | {bad:.3f} ± {bad_error:.3f} (least {min(low):.3f}) | "
            tables.append(row + f"{good:.4f} ± {good_error:.4f} (least {min(high):.3f}) |")
    return TEXT.format(
        last=games - 1,
        starts=STARTS,
        gaps="\n".join(gaps),
        reached="\n".join(starts),
        worst="\n".join(worst),
        prices="\n".join(tables),
        by_agents=by_agents,
        of_agents=agents.SEEDS,
        resamples=agents.RESAMPLES,
        said=SAID,
        growth=samples,
        base=growth.base(),
        seeds=growth.SEEDS,
        delta=growth.DELTA,
        uncertified=sum(each.uncertified for each in summaries),
        endings=sum(each.games for each in summaries) * (STARTS + len(names)),
    )


SAID = """
With independent entries a gap becomes the rule as n grows, and from n = 4 on a smaller one. On the roads, where loads
and the budget grow with n, what a public coin is worth to each is at most what falls about as fast as 1/n. Where agents
are alike and the cost is concave in the shares, the upper ends do not fall: for n = 2 and 3 they are the gap itself.
"""

TEXT = """# Findings in random games

What the library finds out about constrained Markov potential games that the theory leaves open. `python -m checks
findings --write` computes every number on this page, in minutes and resumable, and draws its charts; the code is
`checks/findings.py`.

**The games.** Seeds 0 to {last} of each class. Rewards and costs are uniform in [0, 1], rows of transitions
uniform on the simplex; agents have one reward for all, except in the last class, where agent i's reward has a further
part that the others alone decide (so that there is a potential, and interests differ). One constraint; its threshold
is drawn uniformly between 10 % and 90 % of the way from the least cost to the cost of the best plan without a
constraint. Games in which that plan has the least cost are left out: nothing binds.

**What is certified.** P*, the best potential of any feasible product policy, is between a policy and a bound by
branch and bound, and D*, the value of the dual, between a mixture of plans and a weak-duality bound; a gap is counted
only if the lower end of D* is above the upper end of P* by 1e-5. Every ending is a Nash policy with a certificate of
ε = 1e-6; {uncertified} of {endings} runs ended without one and are left out. Intervals have 95 % (Wilson's for shares
of games, 1.96 standard errors over games for means).

## How frequent and how large is the duality gap?

{gaps}

![Share of games with a duality gap](findings-gaps.svg)

*Open* games have brackets that neither show nor exclude a gap. Branch and bound closes P* in games of one step. Over
several steps the only upper end of P* is that of D*, so a gap cannot be proved there: in the games that are not open
P* = D* is proved, and for the others the last column says how large the gap is at most.

## How do gaps change with the number of agents?

{of_agents} seeds of each class and size. *Independent entries*: one step, two actions, one reward for all and one cost,
both tables uniform in [0, 1]; the gap is in units of the reward, whose range is 1. *Agents alike*: one step, three
actions; the worth of an action is w − d·x², x the share of all agents who choose it, and the cost is n·Σ v·√x, with
w, d, v uniform in [0, 1] and the same for every n. *Three roads*: local games; each agent chooses one of three roads
once, its worth is its own, delays are quadratic in the share, and the budget of crowding the first road is in
proportion to n. Gaps of these two are divided by n. Lower ends are proved by branch and bound, in the games by counts
for n ≤ 3 and on the roads for n = 2 only; beyond, no upper bound on P* but D* is known. Upper ends are an upper bound
on D* less the best certified policy.

{by_agents}

![Gaps by the number of agents](findings-agents.svg)

The exponent is that of a power law through the mean upper ends, by least squares in logarithms; its interval is that
of {resamples} draws of the games with replacement. A gap of one size that n agents share would fall as 1/n.
{said}
## How often does coordinate ascent reach the best Nash policy?

The maximiser of the potential is a Nash policy, and the best one by potential. Shares of runs that end at it, for
{starts} random feasible starts of each game (averaged by game), the start of least cost, and the planner's start;
then with moves by pairs, with ten restarts, and with both. Games whose P* is open are left out. Over
several steps P* is closed only if a policy that attains D* was found, and planned starts are how it is found: the
100 % there are by selection, and say nothing about the games that are left out.

{reached}

![Share of runs that end at P*, by start](findings-starts.svg)

How bad is the worst of the {starts} endings? Welfare, the sum of values, of the worst ending over that of the best
ending known:

{worst}

## What do budgets cost? Anarchy and stability against the threshold

Welfare of the worst and of the best Nash policy that was found ({starts} random starts and one run of `solve`), over
the best welfare of any feasible product policy. The threshold is the share of the way from the least cost to that of
the best plan. A worse Nash policy than the worst that was found may exist, so the first column bounds the price of
anarchy from one side only, and so does the second for stability. With one reward for all the best Nash policy is the
best policy.
{prices}

![Welfare of the worst and the best ending, by threshold](findings-prices.svg)

## How do the samples of learning grow?

Algorithm 2 with `Adaptive` at δ = {delta:g}, from a start of least cost: two actions, three steps, one reward for all;
{base}, and one of these changed at a time. Samples are draws and steps of episodes; {seeds} seeds each; every result
was judged with the true game. The exponent is that of a power law, by least squares over all runs, with 1.96 standard
errors; beside it that of the paper's Corollary 1 (in ζ, the slack that every agent can keep, for the slack).

{growth}

So samples grow like ε⁻², and hardly faster than in proportion to n. Slack matters far less than ζ⁻², and still matters:
a response has to be *proved* feasible.

## What is not known

- These are laws of small games with independent entries. Games from applications have structure, and
  [quality.md](quality.md) has some of those.
- The worst Nash policy of a game is not computed; random starts may miss it.
- Whether strong duality holds for a class of games (independent dynamics with private costs, many agents) is not
  decided by samples.
- The exponents of samples are those of small random games over a factor of eight; they are no law.
"""


def main(argv: Sequence[str]) -> int:
    """Compute, and write the page where that is wanted."""
    parser = argparse.ArgumentParser(prog="python -m checks findings", description=__doc__)
    parser.add_argument("--games", type=int, default=100, help="of each class")
    parser.add_argument("--write", action="store_true", help="write docs/findings.md and its charts")
    options = parser.parse_args(argv)
    of_agents = agents.compute(BUILD / "findings" / f"{fingerprint('checks')}-agents.jsonl")
    print(agents.table(of_agents), flush=True)
    records = compute(options.games, BUILD / "findings" / f"{fingerprint('checks')}.jsonl")
    samples = growth.table(growth.compute(BUILD / "findings" / f"{fingerprint('checks')}-samples.jsonl"))
    swept = {f"/{share}" for share in SWEPT}
    first = {key: each for key, each in records.items() if not any(key.endswith(share) for share in swept)}
    summaries = [summarise(name, [each for key, each in first.items() if key.startswith(f"{name}/")]) for name in KINDS]
    folder = ROOT / "docs" if options.write else BUILD / "findings"
    charts(summaries, records, of_agents, folder)
    (folder / "findings.md").write_text(
        page(summaries, records, options.games, agents.table(of_agents), samples), encoding="utf-8"
    )
    print(f"written to {folder / 'findings.md'}")
    return 0
