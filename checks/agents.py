"""How the duality gap changes with the number of agents: three families of random games.

Every bracket of D* − P* is certified (`cmpg.duality.duality_gap`). `python -m checks findings` runs it, and writes its
table and its chart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from checks import wilson
from checks.duality import crowd
from checks.records import Record, Records
from cmpg.duality.gap import duality_gap
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.vectors import EveryCount
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame

SEEDS = 25
RESAMPLES = 1000
"""How often games are drawn again, with replacement, for the interval of an exponent."""

CLOSED = 1e-5
"""A bracket whose upper end is at most this proves that there is no gap worth the name; one whose lower end is above
proves a gap.
"""


@dataclass(frozen=True)
class Family:
    """Games of one kind, with any number of agents."""

    name: str
    draw: Callable[[int, int], Game | None]  # n, seed: None where no threshold binds
    sizes: tuple[int, ...]
    searched: int  # P* is closed by branch and bound up to so many agents
    per_agent: bool = True  # whether a gap is divided by n: not that of one reward for all


def unstructured(agents: int, seed: int) -> JointGame | None:
    """Return a one-shot game of two actions each, with a reward for all and a cost, both of independent entries."""
    rng = np.random.default_rng([91, agents, seed])
    shape = (1, 1, *(2,) * agents)
    reward, cost = rng.random(shape), rng.random(shape)
    best = float(cost.flat[int(reward.argmax())])
    if best - cost.min() < 1e-3:
        return None
    return JointGame(
        transition=np.ones((*shape, 1)),
        rewards=np.repeat(reward[None], agents, axis=0),
        costs=cost[None],
        thresholds=[cost.min() + rng.uniform(0.1, 0.9) * (best - cost.min())],
        initial=[1.0],
        horizon=1,
    )


def alike(agents: int, seed: int) -> CountingGame | None:
    """Return a one-shot game of agents who are alike: three actions, whose worth falls with the share of all agents who
    choose them, and a cost that is a root of the shares (the first to come costs most); both are random.
    """
    rng = np.random.default_rng([92, seed])  # the same shares for every n
    worth, fall, weight, part = rng.random(3), rng.random(3), rng.random(3), rng.uniform(0.1, 0.9)
    share, counts = np.arange(agents + 1) / agents, EveryCount().samples(agents, 3)
    rewards = worth[:, None] - fall[:, None] * share**2
    potentials = sum(np.cumsum(np.where(share > 0, rewards[a], 0.0))[counts[:, a]] for a in range(3))
    costs = agents * (np.sqrt(counts / agents) @ weight)
    best = float(costs[int(np.argmax(potentials))])
    if best - costs.min() < 1e-3 * agents:
        return None
    return CountingGame(
        rewards=rewards[None, None],
        classes=EveryCount(),
        transition=np.ones((1, 1, len(counts), 1)),
        costs=costs[None, None, None],
        thresholds=[costs.min() + part * (best - costs.min())],
        initial=[1.0],
        horizon=1,
    )


def roads(agents: int, seed: int) -> LocalGame:
    """Return n agents who choose one of three roads once: delays and the budget of crowding grow with n."""
    twice = crowd(agents, seed)
    return replace(twice, horizon=1, thresholds=twice.thresholds / 2)


FAMILIES = (
    Family("one reward for all, independent entries", unstructured, (2, 3, 4, 5, 6, 7), 7, per_agent=False),
    Family("agents alike, by counts", alike, (2, 3, 8, 16, 32), 3),
    Family("local, three roads", roads, (2, 8, 16, 32, 64), 2),
)

MOST_JOINT_ACTIONS = 27
"""Games by counts with at most so many are written out, so that branch and bound closes P*."""


def compute(path: Path, seeds: int = SEEDS) -> list[Record]:
    """Bracket the gaps that have no record yet, and return all records."""
    records = Records(path, lambda record: (record["family"], record["agents"], record["seed"]))
    for family in FAMILIES:
        for agents in family.sizes:
            for seed in range(seeds):
                if (family.name, agents, seed) not in records.known:
                    records.keep(
                        {"family": family.name, "agents": agents, "seed": seed, **bracket(family, agents, seed)}
                    )
    return [*records.known.values()]


def bracket(family: Family, agents: int, seed: int) -> Record:
    """Return what D* − P* is at least and at most, per agent where that is the unit."""
    game = family.draw(agents, seed)
    if game is None:
        return {"binds": False}
    if isinstance(game, CountingGame) and 3**agents <= MOST_JOINT_ACTIONS:
        game = game.to_joint()
    gap, unit = duality_gap(game, epsilon=1e-6, restarts=5, rng=seed), agents if family.per_agent else 1
    return {"binds": True, "least": gap.least / unit, "greatest": gap.greatest / unit}


@dataclass(frozen=True)
class Point:
    """The games of a family with n agents: brackets in rows [games, 2]."""

    agents: int
    brackets: Any

    @property
    def means(self) -> Any:
        """The mean of what gaps are at least, and at most."""
        return self.brackets.mean(axis=0)

    @property
    def errors(self) -> Any:
        """1.96 standard errors of both."""
        return 1.96 * self.brackets.std(axis=0, ddof=1) / np.sqrt(len(self.brackets))


def points(family: Family, records: Sequence[Record]) -> list[Point]:
    """Gather the games of a family by n."""
    found = []
    for agents in family.sizes:
        own = [each for each in records if (each["family"], each["agents"]) == (family.name, agents) and each["binds"]]
        found.append(Point(agents, np.array([(each["least"], each["greatest"]) for each in own])))
    return found


def exponent(along: Sequence[Point]) -> tuple[float, float, float]:
    """Fit a power law to the means of what gaps are at most; return it and the ends of its interval over games."""
    sizes = np.log([each.agents for each in along])

    def slope(means: Sequence[float]) -> float:
        return float(np.polyfit(sizes, np.log(np.maximum(means, 1e-12)), 1)[0])

    rng = np.random.default_rng(0)
    drawn = [
        slope([rng.choice(each.brackets[:, 1], len(each.brackets)).mean() for each in along]) for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return slope([each.means[1] for each in along]), float(low), float(high)


def table(records: Sequence[Record]) -> str:
    """Return brackets and shares by n, and the exponents."""
    lines = [
        "| games | n | binding | D* > P* proved | no gap above 1e-5 | mean gap at least | at most |",
        "|---" * 7 + "|",
    ]
    fits = ["| games | gaps, at most, grow like n to the power | 95 % interval |", "|---" * 3 + "|"]
    for family in FAMILIES:
        along = points(family, records)
        for each in along:
            count = len(each.brackets)
            proved, none = (each.brackets[:, 0] > CLOSED).sum(), (each.brackets[:, 1] <= CLOSED).sum()
            low, high = wilson(int(proved), count)
            (least, most), (below, above) = each.means, each.errors
            shown, at_least = "not tried", "–"
            if each.agents <= family.searched:
                shown, at_least = f"{proved / count:.0%} ({low:.0%} to {high:.0%})", f"{least:.2g} ± {below:.1g}"
            shares = f"{shown} | {none / count:.0%}".replace("%", " %")
            begins = f"| {family.name} | {each.agents} | {count} of {SEEDS} | {shares} "
            lines.append(f"{begins}| {at_least} | {most:.2g} ± {above:.1g} |")
        slope, low, high = exponent(along)
        fits.append(f"| {family.name} | {slope:.2f} | {low:.2f} to {high:.2f} |")
    return "\n".join([*lines, "", *fits])


def chart(records: Sequence[Record], axes: Any) -> None:
    """Draw both ends by n, and what falls as 1/n."""
    for color, family in zip(("#4477aa", "#ee6677", "#228833"), FAMILIES, strict=True):
        along = points(family, records)
        sizes = [each.agents for each in along]
        for end, style in ((1, "o-"), (0, "v:")):
            means = np.array([each.means[end] for each in along])
            shown = np.where(means > CLOSED / 100, means, np.nan)
            label = f"{family.name}: {'at most' if end else 'at least'}"
            if np.isfinite(shown).any():
                errors = np.array([each.errors[end] for each in along])
                axes.errorbar(sizes, shown, yerr=np.minimum(errors, 0.9 * means), fmt=style, color=color, ms=4,
                              capsize=2, label=label)  # fmt: skip
    ends = np.array([2.0, 64.0])
    axes.plot(ends, 0.1 / ends, "--", color="#888888", label="1/n")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("number of agents n")
    axes.set_ylabel("mean of D* − P*, per agent")
    axes.legend(fontsize=7)
