"""Simulated episodes beside the claims about them.

B episodes are played side by side in blocks (`games/play.py`), all from one generator: the same generator gives the
same bits. Agents' returns are kept as means and variances, and realised costs one by one, because a budget in
expectation says nothing about single episodes. An episode worth looking at is found by its cost and played again, from
the state that the generator had when its block began.

A claim agrees with what was seen if they differ by less than four standard errors. Where hardly any episode differed
from the others, the sample's variance says little; then that of rare events of the game's own size is taken, which for
a difference d are d / scale events an episode: (standard error)² = d · scale / B.

A discounted sum is cut off where all that could follow is less than a millionth of what could have been before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, generator
from cmpg.errors import SimulatorError, UnsupportedError, explains_keywords
from cmpg.games.devices import Device, device_values
from cmpg.games.game import Game, Names, Playable, SharedResources, Stepped, Stepper
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.players import player_of
from cmpg.policy import JointPolicy, check_is_policy
from cmpg.summaries import (
    Cell,
    Summary,
    Table,
    counted,
    fields_line,
    fixed,
    html,
    largest,
    line,
    shown_of,
    significant,
    text,
)

BLOCK = 65_536
"""Agents times episodes that are played at once: their arrays stay in a processor's cache."""

LARGEST_BLOCK = 400_000
"""Loads of resources times episodes that are held at once, at most."""

FEW = 30
"""With fewer episodes than this that differ from the others, the variance of the sample is not trusted alone."""

DISAGREES = 4.0
"""A claim and a simulation disagree from this many standard errors on."""

CUT_OFF = 1e-6
"""At most this share of a discounted sum may be missing."""

MAX_CHANGES, MAX_AGENTS, MAX_STEPS, MAX_COSTS = 40, 8, 60, 8
"""The table of an episode shows at most so many changes of an agent, agents, steps of a shared state, costly steps."""

QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Means over episodes, beside what was claimed.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.spectrum()
    >>> values = simulate(game, cmpg.solve(game).policy, 1000, rng=np.random.default_rng(1)).values
    >>> bool((abs(values.seen - values.claimed) <= 3 * values.errors).all())
    True
    """

    claimed: FloatArray  # [m]
    seen: FloatArray  # [m]
    errors: FloatArray  # [m]: standard errors

    __repr__ = fields_line

    @property
    def z(self) -> FloatArray:
        """(seen − claimed) / standard error: [m]; zero where they are equal up to rounding."""
        apart = self.seen - self.claimed
        small = np.abs(apart) <= 1e-9 * np.maximum(1.0, np.abs(self.claimed))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(small, 0.0, apart / self.errors))

    def intervals(self, confidence: float = 0.99) -> FloatArray:
        """Return lower and upper ends of confidence intervals, by the central limit theorem: [m, 2]."""
        half = deviations(confidence) * self.errors
        return np.stack([self.seen - half, self.seen + half], axis=1)


def deviations(confidence: float) -> float:
    """Return the half width of a confidence interval, in standard errors.

    Examples
    --------
    >>> round(deviations(0.95), 2)
    1.96
    """
    if not 0 < confidence < 1:
        raise SimulatorError(f"confidence is {confidence}; a number between 0 and 1 is required.")
    return NormalDist().inv_cdf((1 + confidence) / 2)


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode as it happened.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.spectrum()
    >>> seen = simulate(game, cmpg.solve(game).policy, 100, rng=np.random.default_rng(1))
    >>> seen.shown[0].states.shape, seen.shown[0].actions.shape
    ((2, 1), (2, 3))
    """

    number: int  # among those of the simulation
    why: str  # it is shown
    states: IntArray  # [H, n or 1], before each step
    actions: IntArray  # [H, n]
    rewards: FloatArray  # [H, n]
    costs: FloatArray  # [H, k]

    def __repr__(self) -> str:
        return f"<Episode {self.number} ({self.why}), {len(self.actions)} steps>"

    def rows(self, names: Names) -> list[dict[str, Any]]:
        """Return one row per step and agent: step, agent, state, action, reward."""
        steps, agents = self.actions.shape
        seen = np.broadcast_to(self.states, (steps, agents))
        return [
            {
                "episode": self.number,
                "step": names.step(h),
                "agent": names.agent(i),
                "state": names.state(i, int(seen[h, i])),
                "action": names.action(i, int(self.actions[h, i]), int(seen[h, i])),
                "reward": float(self.rewards[h, i]),
            }
            for h in range(steps)
            for i in range(agents)
        ]

    def table(self, names: Names) -> Table:
        """Return who did what: a row for each agent, with its changes, or for each step of a shared state."""
        steps, agents = self.actions.shape
        rows: list[tuple[Cell, ...]] = []
        if self.states.shape[1] < agents:
            heads = names.all_agents(min(agents, MAX_AGENTS))
            for h in range(min(steps, MAX_STEPS)):
                did = (names.action(i, int(self.actions[h, i])) for i in range(len(heads)))
                when = (names.step(h), names.state(0, int(self.states[h, 0])))
                rows.append((*when, *did, fixed(self.rewards[h].sum(), 3)))
            columns = (names.legend.step, names.legend.state, *heads, "rewards of all")
            left = f"; {counted(agents - len(heads), 'agent')} more" if agents > len(heads) else ""
            left += f"; {counted(steps - len(rows), 'step')} more" if steps > len(rows) else ""
            return Table(columns, tuple(rows), self._spent(names) + left)
        for i in range(agents):
            does = [names.action(i, int(self.actions[h, i]), int(self.states[h, i])) for h in range(steps)]
            begun = [f"{names.step(h)} {does[h]}" for h in range(steps) if h == 0 or does[h] != does[h - 1]]
            begun[MAX_CHANGES:] = ["…"] if len(begun) > MAX_CHANGES else []
            rows.append((names.agent(i), fixed(self.rewards[:, i].sum(), 3), ", ".join(begun)))
        columns = (names.legend.agent, "return", f"from which {names.legend.step} on it did what")
        return Table(columns, tuple(rows), self._spent(names))

    def _spent(self, names: Names) -> str:
        """Say what the episode cost, and when."""
        sums = []
        for j, spent in enumerate(self.costs.T):
            when = ", ".join(names.step(int(h)) for h in np.flatnonzero(spent > 0)[:MAX_COSTS])
            sums.append(f"{names.constraint(j)} {spent.sum():.6g}" + (f" ({names.legend.step} {when})" if when else ""))
        return f"spent: {'; '.join(sums)}" if sums else ""


@dataclass(frozen=True, eq=False)
class Simulation:
    """What a policy brought and cost in many episodes.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.spectrum()
    >>> seen = simulate(game, cmpg.solve(game).policy, 1000, rng=np.random.default_rng(1))
    >>> seen.episodes, seen.agrees, seen.realised.shape
    (1000, True, (1, 1000))
    """

    names: Names
    thresholds: FloatArray  # [k]
    episodes: int
    values: Estimates  # [n]
    costs: Estimates  # [k]
    realised: FloatArray  # [k, episodes]: the costs of each
    welfare: FloatArray  # [episodes]: the sum of all returns of each
    shown: tuple[Episode, ...]
    agent_steps: int
    seconds: float
    confidence: float = 0.99

    @property
    def agrees(self) -> bool:
        """Whether every mean is within four standard errors of its claim."""
        return self.largest_z < DISAGREES

    @property
    def largest_z(self) -> float:
        """The largest distance of a mean from its claim, in standard errors."""
        return float(np.max(np.abs(np.concatenate([self.values.z, self.costs.z])), initial=0.0))

    @property
    def exceeding(self) -> FloatArray:
        """The share of episodes whose own cost is above the threshold: [k]."""
        return np.asarray((self.realised > self._limits).mean(axis=1))

    @property
    def _limits(self) -> FloatArray:
        """The thresholds with room for the rounding of a sum."""
        return (self.thresholds + 1e-9 * np.maximum(1.0, np.abs(self.thresholds)))[:, None]

    def quantiles(self, shares: tuple[float, ...] = QUANTILES) -> FloatArray:
        """Return quantiles of the realised costs: [k, shares]."""
        return np.quantile(self.realised, shares, axis=1, method="inverted_cdf").T

    def frequencies(self, constraint: int) -> tuple[FloatArray, IntArray]:
        """Return the realised costs of one constraint, each once and ascending, and how many episodes had them."""
        # Sums of the same payoffs in another order differ in their last bits.
        values, counts = np.unique(np.round(self.realised[constraint], 9), return_counts=True)
        return values, counts

    def summary(self) -> Summary:
        """Return what to show: whether claims and episodes agree, costs and how they spread, agents, rare events."""
        sentence = f"{counted(self.episodes, 'episode')}; no mean is further than {self.largest_z:.2g} standard errors "
        sentence += "from its claim" if self.agrees else "from its claim, which is too far to be random"
        parts: list[str | Table] = []
        if len(self.thresholds):
            parts += [self.costs_table(), self.spread_table(), self.rare_table()]
        return Summary(
            "agrees" if self.agrees else "DISAGREES", sentence, (*parts, self.agents_table()), good=self.agrees
        )

    __repr__, __str__, _repr_html_ = line, text, html

    def costs_table(self) -> Table:
        """Return every cost, claimed and seen."""
        names = self.names.all_constraints(len(self.thresholds))
        limits = [("threshold", self.thresholds)]
        return _comparison(
            "constraint", names, self.costs, confidence=self.confidence, rows=range(len(names)), more=limits
        )

    def agents_table(self, most: int | None = 12) -> Table:
        """Return the agents' values, claimed and seen; those that are furthest apart where there are many."""
        names = self.names.all_agents(len(self.values.seen))
        rows = largest(np.abs(self.values.z), most)
        table = _comparison("agent", names, self.values, confidence=self.confidence, rows=rows, more=[])
        return Table(table.columns, table.rows, shown_of(rows, len(names), "agents whose means are furthest apart"))

    def spread_table(self) -> Table:
        """Return how the costs of single episodes are distributed."""
        columns = ("cost of an episode", "above the threshold", "median", "90 %", "99 %", "99.9 %", "largest")
        rows: list[tuple[Cell, ...]] = []
        for j, quantiles in enumerate(self.quantiles()):
            numbers = [significant(each, 4) for each in (*quantiles, self.realised[j].max())]
            rows.append((self.names.constraint(j), significant(self.exceeding[j], 3), *numbers))
        return Table(columns, tuple(rows))

    def rare_table(self, most: int = 3) -> Table:
        """Return the most expensive episodes of every constraint: their costs, and how many there were."""
        rows: list[tuple[Cell, ...]] = []
        for j in range(len(self.thresholds)):
            values, counts = self.frequencies(j)
            for value, count in list(zip(values, counts, strict=True))[: -most - 1 : -1]:
                cells = (significant(value), significant(count, 12), significant(count / self.episodes, 3))
                rows.append((self.names.constraint(j), *cells))
        return Table(("rarest events", "cost", "episodes", "share"), tuple(rows))


def _comparison(
    kind: str,
    names: tuple[str, ...],
    estimates: Estimates,
    *,
    confidence: float,
    rows: Any,
    more: list[tuple[str, FloatArray]],
) -> Table:
    half = deviations(confidence) * estimates.errors
    body: list[tuple[Cell, ...]] = []
    for i in rows:
        verdict = "agrees" if abs(estimates.z[i]) < DISAGREES else "disagrees"
        numbers = [fixed(estimates.claimed[i], 4), fixed(estimates.seen[i], 4), significant(half[i], 2)]
        body.append((names[i], *(significant(table[i]) for _, table in more), *numbers, verdict))
    return Table((kind, *(name for name, _ in more), "claimed", "seen", f"± at {confidence:.0%}", ""), tuple(body))


@explains_keywords()
def simulate(
    game: Game | DiscountedLocalGame,
    policy: JointPolicy | Device,
    episodes: int,
    *,
    rng: np.random.Generator | int,
    confidence: float = 0.99,
    shown: int = 2,
) -> Simulation:
    """Play a policy many times, and compare what it brought and cost with what is claimed.

    Parameters
    ----------
    game
        Of any form. A class of your own needs `stepper()` (`cmpg.games.Playable`). Of a discounted local game the steps
        of the policy are played.
    policy
        One table per agent; or a device, a `Rota` or a `CorrelatedPolicy`, which all agents obey.
    episodes
        How many; at least 2.
    rng
        Everything random comes from it.
    confidence
        Of the intervals that are shown.
    shown
        How many whole episodes are kept, beside the one of highest cost for each constraint: those of median welfare.

    Raises
    ------
    UnsupportedError
        The game cannot be played.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> seen = simulate(game, cmpg.solve(game).policy, 1000, rng=np.random.default_rng(1))
    >>> seen.agrees, seen.values.seen.tolist(), seen.exceeding.tolist()
    (True, [3.0, 3.0], [0.0])
    """
    if not 2 <= episodes < 2**53 or episodes != int(episodes):
        raise SimulatorError(f"episodes is {episodes}; a whole number of at least 2 is required.")
    deviations(confidence)
    if isinstance(game, DiscountedLocalGame):
        if not isinstance(policy, JointPolicy):
            raise UnsupportedError("DiscountedLocalGame", "has no devices", "Pass a JointPolicy.")
        game = game.truncated(game.steps_of(policy))
    began = time.perf_counter()
    walk = _Walk(game, policy, int(episodes))
    means = _Moments(game.num_agents)
    realised, welfare = np.empty((len(game.thresholds), episodes)), np.empty(episodes)
    rng = generator(rng)
    for block in walk.blocks(rng):
        totals, spent = walk.totals(block, rng)
        means.add(totals)
        realised[:, block.episodes], welfare[block.episodes] = spent, totals.sum(axis=0)
    spending = _Moments(len(realised))
    spending.add(realised)
    values, costs = _claimed(game, policy)
    return Simulation(
        names=game.names,
        thresholds=_floats(game.thresholds),
        episodes=int(episodes),
        values=means.estimates(values, walk.scale),
        costs=spending.estimates(costs, walk.scale),
        realised=realised,
        welfare=welfare,
        shown=walk.again(_interesting(realised, welfare, shown)),
        agent_steps=int(episodes) * walk.steps * game.num_agents,
        seconds=time.perf_counter() - began,
        confidence=confidence,
    )


def _claimed(game: Game, policy: JointPolicy | Device) -> tuple[FloatArray, FloatArray]:
    """Return what each agent gets and what is spent, as computed: [n], [k]."""
    if isinstance(policy, JointPolicy):
        position = game.at(policy)
        return _floats(position.values), _floats(position.costs)
    values, costs = device_values(game, policy)
    return _floats(values), _floats(costs)


def _floats(numbers: Any) -> FloatArray:
    return np.asarray(numbers, dtype=np.float64)


def _stepper(game: Game) -> Stepper:
    if not isinstance(game, Playable):
        advice = "Give it a method stepper() that returns how it is played (cmpg.games.Stepper)."
        raise UnsupportedError(type(game).__name__, "cannot be played", advice)
    return game.stepper()


@dataclass(frozen=True, eq=False)
class _Block:
    """Episodes that are played at once, and the generator as it was before."""

    episodes: slice
    state: Any


class _Walk:
    """Plays a game's episodes block by block, and single ones again."""

    def __init__(self, game: Game, policy: JointPolicy | Device, episodes: int) -> None:
        if not hasattr(policy, "check_fits"):
            check_is_policy(policy)
        if isinstance(policy, JointPolicy):
            policy.check_fits(game.policy_shapes)
        else:
            policy.check_fits(game)
        self._stepper, self._player, self._episodes = _stepper(game), player_of(policy), episodes
        self._agents = game.num_agents
        self.steps = game.horizon if game.horizon is not None else _cut_off(game.discount or 0.0)
        self._factors = np.ones(self.steps) if game.discount is None else game.discount ** np.arange(self.steps)
        loads = len(game.all_resource_names) + 1 if isinstance(game, SharedResources) else 1
        self._size = max(16, min(BLOCK // game.num_agents, LARGEST_BLOCK // loads))
        self._blocks: list[_Block] = []
        self._generator: Any = None

    @property
    def scale(self) -> float:
        """The most that a step of an agent brings or costs."""
        return self._stepper.payoff_scale

    def blocks(self, rng: np.random.Generator) -> Iterator[_Block]:
        """Yield the blocks; each must be played before the next is drawn."""
        self._generator = type(rng.bit_generator)
        for first in range(0, self._episodes, self._size):
            here = slice(first, min(first + self._size, self._episodes))
            self._blocks.append(_Block(here, rng.bit_generator.state))
            yield self._blocks[-1]

    def totals(self, block: _Block, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Play a block; return what each agent got [n, B] and what was spent [k, B]."""
        totals: FloatArray | None = None
        for h, (_, _, step) in enumerate(self._steps(block, rng)):
            rewards, costs = self._factors[h] * step.rewards, self._factors[h] * step.costs
            if totals is None:
                totals, spent = rewards, costs
            else:
                totals += rewards
                spent += costs
        assert totals is not None
        return totals, spent

    def _steps(self, block: _Block, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray, Stepped]]:
        """Yield the states before each step, the actions, and what they brought."""
        episodes = block.episodes.stop - block.episodes.start
        states = self._stepper.begin(episodes, rng)
        self._player.begin(episodes, rng)
        for h in range(self.steps):
            actions = self._player.draw(h, states, rng)
            step = self._stepper.step(h, states, actions, rng)
            yield states, actions, step
            states = step.states

    def again(self, wanted: dict[int, str]) -> tuple[Episode, ...]:
        """Play single episodes once more, and keep all that happens in them."""
        episodes = []
        for number, why in wanted.items():
            block = self._blocks[number // self._size]
            generator = self._generator()
            generator.state = block.state
            column = number - block.episodes.start
            parts: list[tuple[Any, ...]] = []
            for states, actions, step in self._steps(block, np.random.Generator(generator)):
                parts.append(tuple(each[:, column] for each in (states, actions, step.rewards, step.costs)))
            episodes.append(Episode(number, why, *(np.stack(each) for each in zip(*parts, strict=True))))
        return tuple(episodes)


def _cut_off(discount: float) -> int:
    return max(1, math.ceil(math.log(CUT_OFF) / math.log(discount))) if discount > 0 else 1


def _interesting(realised: FloatArray, welfare: FloatArray, shown: int) -> dict[int, str]:
    """Choose episodes of median welfare, and the one of highest cost for every constraint whose costs differ."""
    middle = np.argsort(welfare, kind="stable")[len(welfare) // 2 :][:shown]
    chosen = {int(number): "median welfare" for number in middle}
    for costs in realised[:4]:
        if np.ptp(costs) > 0:
            chosen.setdefault(int(costs.argmax()), "highest cost")
    return chosen


class _Moments:
    """Means and variances of columns that come in blocks."""

    def __init__(self, columns: int) -> None:
        self._count, self._mean, self._squares = 0, np.zeros(columns), np.zeros(columns)
        self._first: FloatArray | None = None
        self._different = np.zeros(columns, dtype=np.int64)

    def add(self, block: FloatArray) -> None:
        """Take in a block [columns, B]."""
        if self._first is None:
            self._first = np.median(block, axis=1)
        # Few of them differ from the first block's median only where they hardly differ at all.
        self._different += (np.abs(block - self._first[:, None]) > 1e-9).sum(axis=1)
        size, mean = block.shape[1], block.mean(axis=1)
        apart, total = mean - self._mean, self._count + size
        self._squares += ((block - mean[:, None]) ** 2).sum(axis=1) + apart**2 * self._count * size / total
        self._mean += apart * size / total
        self._count = total

    def estimates(self, claimed: FloatArray, scale: float) -> Estimates:
        """Return the means beside the claims."""
        variances = self._squares / (self._count - 1)
        rare = np.where(self._different < FEW, np.abs(self._mean - claimed) * scale, 0.0)
        return Estimates(claimed, self._mean, np.sqrt(np.maximum(variances, rare) / self._count))
