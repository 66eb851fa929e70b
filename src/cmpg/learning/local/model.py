"""What samples of the kernels say about a local game: bounds for costs and gains of any joint policy, by one event.

Every entry of every kernel has an interval; that all of them hold has probability 1 − δ. Then, for any joint policy
(docs/learning-theory.md, section 8, has the proofs):

- Usage. u_i(h, e), the probability that agent i uses resource e at step h, lies between bounds that follow the policy
  forward through the ends of the intervals; laws that sum to one tighten them.
- Loads. Expected delays and load costs are monotone in the usages, once delays are split into two tables that do not
  fall with the load, and load costs into two that are convex and do not fall. So what agent i's CMDP pays at most and
  at least, and what the others spend at most and at least, are expectations at the ends of the usages.
- Kernel. Agent i's own kernel is in its box, so that its values and costs are bounded by `cmpg.cmdp.box`.

An agent's `LocalView` holds its box with payoffs at their best and at their worst. What it is worth is at least the
worst case of its policy, any feasible deviation at most the optimum of the extended CMDP, and the cost of all agents at
most the worst case of the agent's share plus the most that the others spend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.box import BoxCMDP, worst_case
from cmpg.cmdp.model import CMDP
from cmpg.games.game import binds_of
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.game import LocalGame
from cmpg.games.local.loads import LoadTree, load_tables
from cmpg.learning.confidence import Estimate, Interval, kernel_and_box
from cmpg.learning.joint_model import largest_gain
from cmpg.learning.local.simulator import LocalProblemSpec, LocalSamples
from cmpg.learning.outcome import Bounds
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line


@dataclass(frozen=True, eq=False)
class Kernel:
    """What is known of the kernel of one kind: [H or 1, S, A, S] each."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The empirical game, and how far off its kernels can be.

    Examples
    --------
    >>> from cmpg.learning import LocalSimulator
    >>> from cmpg.learning.confidence import binomial_interval
    >>> from cmpg.scenarios import grid_world_local
    >>> simulator = LocalSimulator(grid_world_local(), rng=np.random.default_rng(0))
    >>> samples = simulator.draw_all(count=100_000)
    >>> model = LocalModel.of(simulator.known, samples, delta=0.1, interval=binomial_interval)
    >>> bounds = model.bound(model.game.uniform_policy())
    >>> round(bounds.gap, 1), bounds.cost_ceilings.round(2)
    (0.6, array([0.47]))
    """

    known: LocalProblemSpec
    kernels: tuple[Kernel, ...]  # of each kind

    __repr__ = fields_line

    @classmethod
    def of(cls, known: LocalProblemSpec, samples: LocalSamples, *, delta: float, interval: Interval) -> LocalModel:
        """Turn counts into a model that holds the true kernels with probability 1 − δ.

        Parameters
        ----------
        known
            Everything but the kernels.
        samples
            Counts by kind.
        delta
            The probability that any entry of any kernel lies outside its interval.
        interval
            How one probability is bounded; at all numbers of trials together, where these depend on what was seen.
        """
        sizes = np.array([counts.size for counts in samples.transitions], dtype=np.float64)
        shares = delta * sizes / max(sizes.sum(), 1.0)
        kinds = range(len(sizes))
        return cls(known, tuple(_kernel(known, samples, kind, delta=shares[kind], interval=interval) for kind in kinds))

    @cached_property
    def game(self) -> LocalGame:
        """The game with the empirical kernels."""
        return self.known.with_kernels([kernel.mean for kernel in self.kernels])

    def at(self, policy: JointPolicy) -> ModelPosition:
        """Return what is known of the game at a joint policy."""
        return ModelPosition(self, policy)

    def cost_ceilings(self, policy: JointPolicy) -> FloatArray:
        """Return the most that a policy can cost: [k]."""
        return self.at(policy).cost_ceilings

    def bound(self, policy: JointPolicy) -> Bounds:
        """Bound the costs of a policy, and what any agent could gain by deviating."""
        position = self.at(policy)
        return Bounds(position.gap, position.cost_ceilings)

    def proof_of_infeasibility(self) -> str:
        """Say nothing: kernels of single agents cannot prove that no policy meets the constraints."""
        return ""


def _kernel(known: LocalProblemSpec, samples: LocalSamples, kind: int, *, delta: float, interval: Interval) -> Kernel:
    counts = samples.transitions[kind]
    support = None if known.supports is None else known.supports[kind]
    tables = kernel_and_box(counts, len(counts) + 1, delta=delta, interval=interval, support=support)
    if known.stationary[kind] and len(counts):  # one step holds at all of them
        tables = (tables[0][:1], tables[1][:1], tables[2][:1])
    return Kernel(*tables)


@dataclass(frozen=True, eq=False)
class Ends:
    """The least and the most that something can be."""

    least: FloatArray
    most: FloatArray


@dataclass(frozen=True, eq=False)
class LocalView:
    """What one agent faces: its box with payoffs at their best and their worst, and what the others spend."""

    belief: Estimate  # thresholds are what is left at the worst, and in its optimistic box at the best
    spent: Ends  # [k]: by the others

    def cost_ceilings(self, table: FloatArray) -> FloatArray:
        """Return the most that all agents together can cost: [k]."""
        own = [worst_case(self.belief.box, table, cost) for cost in self.belief.worst_costs]
        return np.asarray(own + self.spent.most)

    def cost_floors(self, table: FloatArray) -> FloatArray:
        """Return the least that all agents together can cost: [k]."""
        own = [-worst_case(self.belief.box, table, -cost) for cost in self.belief.optimistic.nominal.costs]
        return np.asarray(own + self.spent.least)


class ModelPosition:
    """A model at a joint policy."""

    def __init__(self, model: LocalModel, policy: JointPolicy) -> None:
        self.model, self.policy = model, policy

    @cached_property
    def gap(self) -> float:
        """No agent gains more by a feasible deviation."""
        beliefs = [self.view(agent).belief for agent in range(len(self.policy))]
        return largest_gain(self.policy, beliefs, binds_of(self.model.known.frame))

    @cached_property
    def cost_ceilings(self) -> FloatArray:
        """The costs at most: [k]; what each agent faces bounds the same costs, so the least of the bounds holds."""
        ceilings = [self.view(agent).cost_ceilings(table) for agent, table in enumerate(self.policy)]
        return np.asarray(np.min(ceilings, axis=0))

    @cached_property
    def cost_floors(self) -> FloatArray:
        """The costs at least: [k]."""
        floors = [self.view(agent).cost_floors(table) for agent, table in enumerate(self.policy)]
        return np.asarray(np.max(floors, axis=0))

    def view(self, agent: int) -> LocalView:
        """Return what one agent faces."""
        if agent not in self._views:
            self._views[agent] = self._look(agent)
        return self._views[agent]

    @cached_property
    def _views(self) -> dict[int, LocalView]:
        return {}

    def _look(self, agent: int) -> LocalView:
        known, member = self.model.known, self.model.known.frame.agents[agent]
        kernel = self.model.kernels[known.kinds[agent]]
        marginal, spent = self._loads.of(agent)
        private = self._private
        others = [each for each in range(known.num_agents) if each != agent]
        spent = Ends(spent.least + private.least[others].sum(axis=0), spent.most + private.most[others].sum(axis=0))
        worst, best = (
            _payoffs(member, marginal, horizon=known.horizon) for marginal in (marginal.most, marginal.least)
        )
        nominal = CMDP(
            transition=kernel.mean,
            reward=frozen((worst[0] + best[0]) / 2),
            costs=frozen((worst[1] + best[1]) / 2),
            thresholds=frozen(known.limits - spent.most),
            initial=member.initial,
            horizon=known.horizon,
            trusted=True,
        )
        belief = Estimate.of(
            nominal, kernel.lower, kernel.upper, best=best, worst=worst, thresholds=known.thresholds - spent.least
        )
        return LocalView(belief, spent)

    @cached_property
    def _loads(self) -> LoadEnds:
        frame, usages = self.model.known.frame, []
        for agent, (member, table) in enumerate(zip(frame.agents, self.policy, strict=True)):
            usages.append(usage_ends(member, self.model.kernels[self.model.known.kinds[agent]], table))
        return LoadEnds.at(frame, usages)

    @cached_property
    def _private(self) -> Ends:
        """What each agent spends by itself: [n, k]."""
        known = self.model.known
        least, most = (np.zeros((known.num_agents, known.num_constraints)) for _ in range(2))
        for agent, member in enumerate(known.frame.agents):
            if member.costs is None:
                continue
            kernel = self.model.kernels[known.kinds[agent]]
            cmdp = replace(member.private_cmdp(known.thresholds, known.horizon), transition=kernel.mean, trusted=True)
            box = BoxCMDP(cmdp, kernel.lower, kernel.upper, trusted=True)
            most[agent] = [worst_case(box, self.policy[agent], cost) for cost in member.costs]
            least[agent] = [-worst_case(box, self.policy[agent], -cost) for cost in member.costs]
        return Ends(least, most)


def usage_ends(member: LocalAgent, kernel: Kernel, table: FloatArray) -> Ends:
    """Return how often an agent uses each resource at each step, at least and at most: [H, E] each (Lemma 3)."""
    horizon, states = table.shape[:2]
    low = high = member.initial
    least, most = [], []
    for h in range(horizon):
        uses = member.uses[0 if len(member.uses) == 1 else h].T
        below, above = ((law[:, None] * table[h]).ravel() for law in (low, high))
        used_below, used_above = uses @ below, uses @ above
        least.append(np.maximum(used_below, 1.0 - above.sum() + used_above))
        most.append(np.minimum(used_above, 1.0 - below.sum() + used_below))
        if h + 1 < horizon:
            step = 0 if len(kernel.mean) == 1 else h
            low_next = below @ kernel.lower[step].reshape(-1, states)
            high_next = above @ kernel.upper[step].reshape(-1, states)
            low = np.maximum(low_next, 1.0 - (high_next.sum() - high_next))
            high = np.minimum(high_next, 1.0 - (low_next.sum() - low_next))
    return Ends(np.clip(least, 0.0, 1.0), np.clip(most, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class UseCosts:
    """What one more user of each resource meets, and adds."""

    delay: FloatArray  # [H, E]
    costs: FloatArray  # [k, H, E]

    def __sub__(self, other: UseCosts) -> UseCosts:
        return UseCosts(self.delay - other.delay, self.costs - other.costs)


@dataclass(frozen=True, eq=False)
class UseCostEnds:
    """The least and the most that one more user can meet, and add."""

    least: UseCosts
    most: UseCosts


@dataclass(frozen=True, eq=False)
class LoadEnds:
    """Expected delays and load costs at the ends of the usages, for the rising and for the falling parts (Lemma 4)."""

    shape: tuple[int, int, int]  # k, H, E
    rising: tuple[LoadTree, LoadTree]  # at the least and at the most usage
    falling: tuple[LoadTree, LoadTree] | None  # None where nothing falls, or is concave

    @classmethod
    def at(cls, frame: LocalGame, usages: Sequence[Ends]) -> LoadEnds:
        """Prepare the loads of a game at these usages."""
        delays, costs = monotone_parts(frame.delay), convex_parts(frame.load_costs)
        shape = (frame.num_constraints, frame.horizon, frame.num_resources)

        def trees(part: int) -> tuple[LoadTree, LoadTree]:
            tables = load_tables(delays[part], costs[part], horizon=frame.horizon)
            least = LoadTree.grow(tables, [each.least for each in usages])
            return least, LoadTree.grow(tables, [each.most for each in usages])

        falls = delays[1].any() or costs[1].any()
        return cls(shape, trees(0), trees(1) if falls else None)

    def of(self, agent: int) -> tuple[UseCostEnds, Ends]:
        """Return the ends of what one agent meets and adds, and of what the others spend: [k]."""
        (low, least), (high, most) = (self._from(tree, agent) for tree in self.rising)
        if self.falling is not None:
            (off_low, saved_least), (off_high, saved_most) = (self._from(tree, agent) for tree in self.falling)
            low, least = low - off_high, least - saved_most
            high, most = high - off_low, most - saved_least
        return UseCostEnds(low, high), Ends(least, most)

    def _from(self, tree: LoadTree, agent: int) -> tuple[UseCosts, FloatArray]:
        found = tree.marginal_costs(agent)
        delay = np.zeros(self.shape[1:]) if found.delay is None else np.broadcast_to(found.delay, self.shape[1:])
        return UseCosts(delay, np.broadcast_to(found.costs, self.shape)), tree.costs_without(agent)


def _payoffs(member: LocalAgent, marginal: UseCosts, *, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Return the reward [H, S, A] and the costs [k, H, S, A] of an agent that meets these marginal costs."""
    shape = (horizon, member.num_states, member.num_actions)
    reward = np.broadcast_to(member.reward - member.charge(marginal.delay), shape)
    costs = (
        np.zeros((len(marginal.costs), *shape))
        if member.costs is None
        else np.broadcast_to(member.costs, (len(marginal.costs), *shape))
    )
    charged = [np.broadcast_to(member.charge(each), shape) for each in marginal.costs]
    return reward, costs + np.stack(charged) if charged else costs


def monotone_parts(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split a table over loads (last axis, of which load 0 is never used) into two that do not fall: f = a − b."""
    rises = np.diff(table[..., 1:], axis=-1)
    start = np.concatenate([table[..., 1:2], table[..., 1:2]], axis=-1)
    falling = np.zeros_like(table)
    falling[..., 2:] = np.cumsum(np.maximum(-rises, 0.0), axis=-1)
    rising = np.concatenate([start, start[..., 1:] + np.cumsum(np.maximum(rises, 0.0), axis=-1)], axis=-1)
    return rising, falling


def convex_parts(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split a table over loads into two that are convex and do not fall: g = a − b."""
    slopes = np.diff(table, axis=-1)
    bends = np.diff(slopes, axis=-1, prepend=0.0)
    parts = []
    for sign in (1.0, -1.0):
        part = np.zeros_like(table)
        part[..., 1:] = np.cumsum(np.cumsum(np.maximum(sign * bends, 0.0), axis=-1), axis=-1)
        parts.append(part)
    return parts[0] + table[..., :1], parts[1]
