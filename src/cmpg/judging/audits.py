"""Judging a policy in a world that can only be played: intervals that hold with probability 1 − δ.

Values and costs are means of episodes. A lower bound on exploitability is any deviation that is *proved* to keep the
budget: its cost and its value are measured by fresh episodes of its own, played after it was chosen. An upper bound is
a ceiling on what deviations can be worth (`cmpg.judging.ceilings`, Theorem 6), less the floor of what the agent has.

δ is divided beforehand: a quarter to the values and costs of the policy, a half to the ceilings, in equal parts to the
agents, a quarter to the deviations, in equal parts to the agents and to the deviations that may be tried. Every
statement is a means-bound that fails with its own share at most, so all hold together with probability 1 − δ.

Where a ceiling looks next is decided by optimism: the deviating agent plays what the ceiling itself thinks best, at the
multipliers of the least bound, so that what is too optimistic is tried, and corrected. The numbers of visits then
depend on what was seen, which Theorem 6 allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.model import CMDP
from cmpg.errors import CMPGError, InfeasibleError, SolverError
from cmpg.games.game import Names
from cmpg.judging.ceilings import Ceilings, StepOutcomes, outcomes
from cmpg.judging.policies import single_function
from cmpg.judging.single_agent import SingleAgentEnv
from cmpg.judging.worlds import ENDED, Deviating, PlayedWorld, Seen, Vacuity, joined
from cmpg.learning.confidence import mean_ceiling
from cmpg.summaries import Summary, fields_line, html, line, text

PLANNED = 2
"""Deviations that are planned for each agent: the second, with more room below the thresholds, if the first fails."""

ROUNDS = (1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the exploring episodes, between which the agent plans again."""

WANDERING = 0.2
"""The probability with which an exploring agent plays any action, in half of its episodes."""

VACUOUS = 0.25
"""An interval that is wider than this share of what the declared ranges alone allow says nothing of use."""


@dataclass(frozen=True, eq=False)
class Interval:
    """Two numbers that a third one lies between, with the probability that the audit states.

    Examples
    --------
    >>> gain = Interval(0.1, 0.3)
    >>> 0.25 in gain, round(gain.width, 9)
    (True, 0.2)
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How far they are apart."""
        return self.upper - self.lower

    def __contains__(self, number: float) -> bool:
        return self.lower <= number <= self.upper

    def __repr__(self) -> str:
        return f"[{self.lower:.6g}, {self.upper:.6g}]"


@dataclass(frozen=True, eq=False)
class MeasuredDeviation:
    """A deviation of one agent, measured by episodes that were played after it was chosen.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.judging import GameWorld
    >>> game = cmpg.scenarios.counter_example()
    >>> found = audit(GameWorld(game), game.uniform_policy(), episodes=2000, rng=np.random.default_rng(1))
    >>> deviation = found.deviations[0]
    >>> deviation.source, deviation.within_budget, 0.25 in deviation.gain
    ('planned', True, True)
    """

    agent: int
    source: str  # "planned", "given", "trained"
    deviation: Any  # a table [H, S, A], or a function
    value: Interval
    costs: tuple[Interval, ...]  # [k]: of all agents together
    within_budget: bool  # whether all costs are proved to be within the thresholds
    gain: Interval

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Audit:
    """What episodes prove about a policy; all of it holds together with probability 1 − δ.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.judging import GameWorld
    >>> game = cmpg.scenarios.counter_example()
    >>> found = audit(GameWorld(game), game.uniform_policy(), episodes=20_000, rng=np.random.default_rng(1))
    >>> found.feasible, found.exploitability.lower > 0.1, 0.25 in found.exploitability
    (True, True, True)
    """

    name: str
    delta: float
    values: tuple[Interval, ...]  # [n]
    costs: tuple[Interval, ...]  # [k]
    thresholds: FloatArray  # [k]
    gains: tuple[Interval, ...]  # [n]: upper is infinite where there is no bound
    deviations: tuple[MeasuredDeviation | None, ...]  # [n]: what proves the lower ends; None where nothing does
    tried: tuple[MeasuredDeviation, ...]  # all that were measured
    vacuous: str  # why the upper bound says nothing of use; empty if it does
    remedy: str  # what would help then
    samples: Mapping[str, int]  # steps of the world, by purpose
    assumptions: tuple[str, ...]
    names: Names

    @property
    def feasible(self) -> bool:
        """Whether every cost is proved to be within its threshold."""
        pairs = zip(self.costs, self.thresholds, strict=True)
        return all(cost.upper <= limit for cost, limit in pairs)

    @property
    def violated(self) -> bool:
        """Whether some cost is proved to exceed its threshold."""
        return any(cost.lower > limit for cost, limit in zip(self.costs, self.thresholds, strict=True))

    @property
    def exploitability(self) -> Interval:
        """What the agent that gains most could gain by a deviation that keeps the constraints."""
        return Interval(max(gain.lower for gain in self.gains), max(gain.upper for gain in self.gains))

    @property
    def total_samples(self) -> int:
        """All steps of the world."""
        return sum(self.samples.values())

    def summary(self) -> Summary:
        """Return what `print` shows; it formats what is here."""
        from cmpg.report.judging import audit_summary  # a room below: tables are made on demand

        return audit_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


Trainer = Callable[[Any], Any]
"""Takes a single-agent Gymnasium environment in which the others are frozen, and returns a policy of any kind."""


def audit(
    world: PlayedWorld,
    policy: Any,
    *,
    rng: np.random.Generator,
    episodes: int = 2_000,
    delta: float = 0.1,
    name: str = "the policy",
    deviations: Mapping[int, Sequence[Any]] | None = None,
    train: Trainer | None = None,
    agents: Sequence[int] | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Judge a policy by playing it, and by playing deviations from it.

    Parameters
    ----------
    world
        A `GameWorld` or an `EnvironmentWorld`.
    policy
        A JointPolicy, a function of (agent, observation, step), an object with `predict`, a torch module, or a mapping
        from agents to these. It must have been chosen without the episodes that are played here.
    rng
        Everything random comes from it.
    episodes
        Of the policy itself; of each agent, as many to explore, and as many for each deviation that is measured.
    delta
        The probability that any statement of the audit is wrong.
    name
        What the policy is called in tables.
    deviations
        For each agent, policies that it may deviate to, to be measured beside those that are planned here.
    train
        A function that trains a deviation: it is called for each agent with a single-agent Gymnasium environment.
    agents
        Whose deviations are looked at; all unless given. Without all there is no upper bound.
    on_progress
        Called with what is done next.

    Examples
    --------
    >>> import cmpg
    >>> from cmpg.judging import GameWorld
    >>> game = cmpg.scenarios.counter_example()
    >>> found = audit(GameWorld(game), cmpg.solve(game).policy, episodes=2000, rng=np.random.default_rng(1))
    >>> found.feasible, 3.0 in found.values[0], found.exploitability.lower
    (True, True, 0.0)
    """
    if not 0 < delta < 1:
        raise CMPGError(f"delta is {delta}; it is a probability of failure, strictly between 0 and 1.")
    if episodes < 16:
        raise CMPGError(f"episodes is {episodes}; at least 16 are required.")
    prepared, n = world.prepared(policy), len(world.num_actions)
    chosen = range(n) if agents is None else sorted(set(agents))
    given = {agent: list(found) for agent, found in (deviations or {}).items()}
    samples: dict[str, int] = {}

    on_progress(f"playing {name}")
    own = world.play(prepared, episodes, rng)
    _charge(samples, "the policy", own)
    values, costs = _means(world, own, range(n), delta / 4)

    gains: list[Interval] = [Interval(0.0, math.inf) for _ in range(n)]
    best: list[MeasuredDeviation | None] = [None] * n
    tried: list[MeasuredDeviation] = []
    reasons: list[Vacuity] = []
    for agent in chosen:
        on_progress(f"exploring deviations of {world.names.agent(agent)}")
        explorer = _Explorer(world, prepared, agent, episodes, delta / 2 / n, rng)
        explored = explorer.explore()
        _charge(samples, "exploring", explored)
        upper, reason = _upper(world, explorer, values[agent])
        candidates = _candidates(world, explorer, given.get(agent, []), train=train, policy=prepared, rng=rng)
        parts = PLANNED + len(given.get(agent, [])) + (train is not None)
        for source, deviation in candidates:
            if source == "planned again" and any(each.agent == agent and each.within_budget for each in tried):
                continue
            on_progress(f"measuring a deviation of {world.names.agent(agent)}")
            seen = world.play(prepared, episodes, rng, agent=agent, deviation=deviation)
            _charge(samples, "deviations", seen)
            tried.append(_measured(world, agent, source, deviation, seen, values[agent], delta / 4 / n / parts))
        mine = [each for each in tried if each.agent == agent and each.within_budget]
        best[agent] = max(mine, key=lambda each: each.gain.lower, default=None)
        lower = max([0.0, *(each.gain.lower for each in mine)])
        gains[agent] = Interval(lower, max(upper, lower))
        # An upper end near the largest possible number says something if the lower end is near it, too.
        if reason is not None and upper - lower >= VACUOUS * reason.allowed:
            reasons.append(reason)
    if len(chosen) < n:
        looked_at = f"the deviations of {len(chosen)} of {n} agents were looked at"
        reasons.append(Vacuity(looked_at, "look at all agents"))
    # The reason of the largest upper end is the one that exploitability suffers from.
    nothing = max(reasons, key=lambda each: each.upper, default=Vacuity("", ""))
    return Audit(
        name=name,
        delta=delta,
        values=tuple(values),
        costs=costs,
        thresholds=np.asarray(world.thresholds, dtype=np.float64),
        gains=tuple(gains),
        deviations=tuple(best),
        tried=tuple(tried),
        vacuous=nothing.reason,
        remedy=nothing.remedy,
        samples=samples,
        assumptions=world.assumptions,
        names=world.names,
    )


def _charge(samples: dict[str, int], purpose: str, seen: Seen) -> None:
    samples[purpose] = samples.get(purpose, 0) + int((seen.states[:-1] != ENDED).sum())


def _means(
    world: PlayedWorld, seen: Seen, agents: Sequence[int], delta: float
) -> tuple[list[Interval], tuple[Interval, ...]]:
    """Bound the values of some agents, and all costs, by episodes; together they fail with probability δ."""
    share = delta / (len(agents) + len(world.thresholds))
    values = [_mean(world, seen.returns[i], world.reward_bounds[i], share) for i in agents]
    costs = zip(seen.costs, world.cost_bounds, strict=True)
    return values, tuple(_mean(world, paid, bounds, share) for paid, bounds in costs)


def _mean(world: PlayedWorld, returns: FloatArray, bounds: FloatArray, delta: float) -> Interval:
    """Bound the mean of sums over an episode, whose steps stay within bounds [2], on both sides."""
    least, most = _range(world, bounds)
    values, counts = np.unique(np.clip(returns, least, most), return_counts=True)
    above = float(mean_ceiling(values, counts, most=most, delta=delta / 2))
    below = -float(mean_ceiling(-values, counts, most=-least, delta=delta / 2))
    return Interval(max(below, least), min(above, most))


def _range(world: PlayedWorld, bounds: FloatArray) -> tuple[float, float]:
    """Return what a sum over an episode lies between, given the bounds [2] of a step."""
    least, most = world.horizon * float(bounds[0]), world.horizon * float(bounds[1])
    return (min(least, 0.0), max(most, 0.0)) if world.may_end else (least, most)


def _measured(
    world: PlayedWorld, agent: int, source: str, deviation: Any, seen: Seen, own: Interval, delta: float
) -> MeasuredDeviation:
    """Bound the value and the costs of a deviation by its own episodes."""
    (value,), costs = _means(world, seen, [agent], delta)
    within = all(cost.upper <= limit for cost, limit in zip(costs, world.thresholds, strict=True))
    gain = Interval(value.lower - own.upper, value.upper - own.lower)
    return MeasuredDeviation(agent, source, deviation, value, costs, within, gain)


# --- Exploring, and the upper bound -----------------------------------------------------------------------------------


class _Explorer:
    """Episodes in which one agent deviates to learn what deviations are worth."""

    def __init__(
        self, world: PlayedWorld, policy: Any, agent: int, episodes: int, delta: float, rng: np.random.Generator
    ) -> None:
        self.world, self.policy, self.agent, self.rng = world, policy, agent, rng
        self.episodes, self.delta = episodes, delta
        self.multipliers = np.zeros(len(world.thresholds))
        self.seen: Seen | None = None

    def explore(self) -> Seen:
        """Play all exploring episodes, planning again between the rounds."""
        sizes = [max(round(share * self.episodes), 1) for share in ROUNDS[:-1]]
        sizes.append(max(self.episodes - sum(sizes), 1))
        parts: list[Seen] = []
        for size in sizes:
            for deviation, count in self._next(size):
                played = self.world.play(self.policy, count, self.rng, agent=self.agent, deviation=deviation)
                parts.append(played)
            self.seen = joined(parts)
        assert self.seen is not None
        return self.seen

    def _next(self, size: int) -> list[tuple[Deviating, int]]:
        """Return what to play next, and how often."""
        if self.seen is None or self.world.obstacle is not None:
            return [(self._uniform, size)]
        ceilings = self.ceilings()
        self.multipliers = ceilings.least(self.multipliers).multipliers
        greedy = ceilings.optimistic_policy(self.multipliers)
        if self._sees_less:
            return [(self._uniform, size)]
        wandering = (1 - WANDERING) * greedy + WANDERING / greedy.shape[2]
        half = size // 2
        return [(greedy, size - half), *([(wandering, half)] if half else [])]

    @property
    def _sees_less(self) -> bool:
        """Whether deviations may not look at the whole state; then what is best there cannot be played."""
        return self.seen is not None and bool((self.seen.own != self.seen.states).any())

    @property
    def _uniform(self) -> FloatArray:
        actions = self.world.num_actions[self.agent]
        # A table without states: where a deviation was not planned for, it plays anything.
        states = self.world.num_states or 0
        return np.full((self.world.horizon, states, actions), 1 / actions)

    def ceilings(self) -> Ceilings:
        """Return what the episodes say so far."""
        assert self.seen is not None
        met = max(int(self.seen.states.max()) + 1, self.world.num_states or 0, 1)
        first = np.bincount(self.seen.states[0][self.seen.states[0] != ENDED], minlength=met)
        return Ceilings(self.world, self.agent, outcomes(self.seen), first, self.episodes, self.delta)


def _upper(world: PlayedWorld, explorer: _Explorer, own: Interval) -> tuple[float, Vacuity | None]:
    """Return an upper bound on the gain, and why it says nothing of use if it does not."""
    if world.obstacle is not None:
        return math.inf, world.obstacle
    ceilings = explorer.ceilings()
    found = ceilings.least(explorer.multipliers)
    explorer.multipliers = found.multipliers
    bounds = world.reward_bounds[explorer.agent]
    most = _range(world, bounds)[1]
    allowed = most - own.lower
    upper = max(min(found.value, most) - own.lower, 0.0)
    # An agent that has nearly all there is cannot gain much, and that is said by the ranges and by its own value.
    small = upper <= 0.05 * world.horizon * float(bounds[1] - bounds[0])
    if small or upper < VACUOUS * allowed:
        return upper, None
    return upper, _vacuity(ceilings, upper, allowed)


def _vacuity(ceilings: Ceilings, upper: float, allowed: float) -> Vacuity:
    """Say what an upper bound suffers from: entries without a visit, few visits, wide ranges."""
    effort = ceilings.effort
    agent = ceilings.world.names.agent(ceilings.agent)
    untried = f", {effort.untried:,} of them never tried" if effort.untried else ""
    reason = (
        f"it is {upper:.4g} for {agent}, where the declared ranges alone allow {allowed:.4g}: "
        f"{ceilings.max_episodes:,} exploring episodes are too few for {effort.entries:,} met (step, state, action)"
        f"{untried}; the median of visits to the others is {effort.visits:,}, and about {effort.needed:,} are needed"
    )
    # An episode visits one entry of each step, so the step with the most entries decides.
    helps = [f"about {_two_digits(effort.needed * effort.widest):,} episodes", "fewer states or a shorter horizon"]
    declared, seen = float(ceilings.world.reward_bounds[ceilings.agent, 1]), effort.largest_reward
    if seen < declared:
        helps.append(
            f"a narrower range of rewards, if there is one (no step of the exploring episodes paid {agent} more than "
            f"{seen:.4g}, and {declared:.4g} is declared)"
        )
    return Vacuity(reason, "; ".join(helps), upper, allowed)


def _two_digits(number: int) -> int:
    """Round up to two significant digits: rules of thumb have no more."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return -(-number // unit) * unit


# --- Deviations -------------------------------------------------------------------------------------------------------


def _candidates(
    world: PlayedWorld,
    explorer: _Explorer,
    given: Sequence[Any],
    *,
    train: Trainer | None,
    policy: Any,
    rng: np.random.Generator,
) -> list[tuple[str, Deviating]]:
    """Return deviations to measure: planned in the estimated model, given, and trained."""
    found: list[tuple[str, Deviating]] = []
    for index, room in enumerate((1.0, 3.0)):
        planned = _planned(world, explorer, room)
        if planned is not None:
            found.append(("planned" if index == 0 else "planned again", planned))
    found += [("given", each if isinstance(each, np.ndarray) else single_function(each)) for each in given]
    if train is not None:
        seed = int(rng.integers(2**31))
        trained = train(SingleAgentEnv(world, policy, explorer.agent, seed=seed))
        found.append(("trained", trained if isinstance(trained, np.ndarray) else single_function(trained)))
    return found


def _planned(world: PlayedWorld, explorer: _Explorer, room: float) -> FloatArray | None:
    """Return the best deviation of the estimated model, with some room below the thresholds; None if it has none."""
    seen = explorer.seen
    assert seen is not None
    steps = outcomes(seen, own=True)
    states = max(int(seen.own.max()) + 1, 1)
    if world.obstacle is not None and states > 2_000:
        return None  # continuous observations: nothing was met twice
    cmdp = _estimated(world, explorer.agent, steps, seen.own[0], states)
    k, count = len(world.thresholds), max(explorer.episodes, 1)
    # About how far a cost will be measured to be from its mean: its spread, and its range, over the episodes.
    log_term = math.log(16 * (1 + k) * len(world.num_actions) / explorer.delta)
    spread = seen.costs.std(axis=1) if k else np.zeros(0)
    span = world.horizon * np.diff(world.cost_bounds, axis=1).reshape(-1)
    margin = room * (spread * math.sqrt(2 * log_term / count) + span * log_term / count)
    try:
        table: FloatArray = Exact()(cmdp(world.thresholds - margin)).policy
    except (InfeasibleError, SolverError):
        return None
    return table[:, :states]


def _estimated(
    world: PlayedWorld, agent: int, steps: Sequence[StepOutcomes], first: Any, states: int
) -> Callable[[FloatArray], CMDP]:
    """Return the empirical CMDP of one agent by its thresholds; what was never tried is as bad as can be.

    There are two states more: one after the end of an episode, and one for what was never tried.
    """
    k, actions, horizon = len(world.thresholds), world.num_actions[agent], world.horizon
    ended, unknown = states, states + 1
    size = states + 2
    reward = np.full((horizon, size, actions), float(world.reward_bounds[agent, 0]))
    costs = np.broadcast_to(world.cost_bounds[:, 1].reshape(k, 1, 1, 1), (k, horizon, size, actions)).copy()
    reward[:, ended], costs[:, :, ended] = 0.0, 0.0
    transition = []
    for h, step in enumerate(steps):
        total = step.counts.sum(axis=1)
        weights = step.counts / np.maximum(total, 1)[:, None]
        reward[h, step.states, step.actions] = (weights * step.rewards).sum(axis=1)
        for j in range(k):
            costs[j, h, step.states, step.actions] = (weights * step.costs[j]).sum(axis=1)
        tried = np.zeros((size, actions), dtype=bool)
        tried[step.states, step.actions] = True
        tried[ended] = True
        rest = np.flatnonzero(~tried.reshape(-1))
        row, column = np.nonzero(step.counts)
        rows = np.concatenate([(step.states * actions + step.actions)[row], rest, ended * actions + np.arange(actions)])
        following = np.where(step.following == ENDED, ended, step.following)[row, column]
        columns = np.concatenate([following, np.full(len(rest), unknown), np.full(actions, ended)])
        data = np.concatenate([weights[row, column], np.ones(len(rest) + actions)])
        matrix = sp.csr_array((data, (rows, columns)), shape=(size * actions, size))
        matrix.sum_duplicates()
        transition.append(matrix)
    start = np.bincount(np.where(first == ENDED, ended, first), minlength=size) / len(first)
    return lambda thresholds: CMDP(
        transition=transition, reward=reward, costs=costs, thresholds=thresholds, initial=start, horizon=horizon
    )
