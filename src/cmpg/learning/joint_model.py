"""What samples of all joint actions say about a game: bounds for costs and gains of any joint policy, by one event.

A box has one interval for each (h, s, joint action, s'); where only counts of actions matter, (h, s, class of counts,
s'). If it holds the true kernel, then for any joint policy and any agent i the averages of its ends over what the
others play are a box that holds agent i's true kernel. So one event bounds, for all policies and agents together: the
costs (worst case over the box), the value (likewise), and the best feasible deviation (the extended CMDP). Where
rewards and costs are not known, half of δ goes to Hoeffding intervals for them, and all bounds take their worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.box import BoxCMDP, optimistic_response, worst_case
from cmpg.errors import InfeasibleError
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.position import CountingPosition
from cmpg.games.game import binds_of
from cmpg.games.joint.averages import average_over
from cmpg.games.joint.game import JointGame
from cmpg.games.joint.position import JointPosition
from cmpg.learning.confidence import Estimate, Interval, kernel_and_box, learned_payoffs
from cmpg.learning.outcome import Bounds
from cmpg.learning.samples import BoolArray, CountingPayoffs, ProblemSpec, Samples
from cmpg.policy import JointPolicy


@dataclass(frozen=True, eq=False)
class JointModel:
    """The empirical game, and how far off it can be."""

    game: JointGame | CountingGame  # with the empirical transition, and the means of unknown payoffs
    lower: FloatArray  # [H, S, *A, S], or [H, S, C, S]
    upper: FloatArray  # [H, S, *A, S], or [H, S, C, S]
    radii: tuple[FloatArray, FloatArray] | None = None  # of rewards and costs, where they are learned, too

    def cost_ceilings(self, policy: JointPolicy) -> FloatArray:
        """Return the most that a policy can cost: [k]; where counts matter by what the first agent faces."""
        some = range(1) if isinstance(self.game, CountingGame) else range(self.game.num_agents)
        return ceilings_of_views(policy, self._views(policy, some))

    def bound(self, policy: JointPolicy) -> Bounds:
        """Bound the costs of a policy, and what any agent could gain by deviating."""
        views = self._views(policy, range(self.game.num_agents))
        return Bounds(largest_gain(policy, views, binds_of(self.game)), ceilings_of_views(policy, views))

    @cached_property
    def unmasked(self) -> JointGame | CountingGame:
        """The empirical game in which all constraints bind all agents, so that its CMDPs have all costs."""
        return self.game if self.game.binds is None else self.game.with_binds(None)

    def _views(self, policy: JointPolicy, agents: Iterable[int]) -> list[Estimate]:
        """Return what agents face while the others keep to a policy."""
        position = self.unmasked.at(policy)
        return [self._view(position, agent) for agent in agents]

    def _view(self, position: JointPosition | CountingPosition, agent: int) -> Estimate:
        nominal = position.induced_cmdp(agent)
        averaged: Callable[[FloatArray], FloatArray] = (
            partial(np.matmul, position.class_probabilities(agent))
            if isinstance(position, CountingPosition)
            else partial(average_over, policy=position.policy, keep=agent)
        )
        shape = nominal.policy_shape
        reward, costs = (np.broadcast_to(each, (*each.shape[:-3], *shape)) for each in (nominal.reward, nominal.costs))
        off = costs_off = np.zeros(1)
        if self.radii is not None:
            off, costs_off = averaged(self.radii[0][agent]), np.reshape([*map(averaged, self.radii[1])], costs.shape)
        return Estimate.of(
            nominal,
            averaged(self.lower),
            averaged(self.upper),
            best=(reward + off, costs - costs_off),
            worst=(reward - off, costs + costs_off),
            thresholds=nominal.thresholds,
        )

    def proof_of_infeasibility(self) -> str:
        """Say why no joint policy meets the thresholds, or nothing where one may: why a planner who chooses all actions
        cannot, under the most favourable game of the model.
        """
        nominal, box = self.game.joint_cmdp(), (self.lower, self.upper)
        if isinstance(self.game, CountingGame):
            least, most = (np.take(table, self.game.classes_that_occur, axis=2) for table in box)
        else:
            least, most = (table.reshape(-1, *nominal.policy_shape[1:], nominal.num_states) for table in box)
        off = 0.0 if self.radii is None else self.radii[1].reshape(nominal.costs.shape)
        optimistic = replace(nominal, costs=frozen(nominal.costs - off), trusted=True)
        try:
            optimistic_response(BoxCMDP(optimistic, frozen(least), frozen(most), trusted=True))
        except InfeasibleError as proof:
            return str(proof)
        return ""


def model_of(known: ProblemSpec, samples: Samples, *, delta: float, interval: Interval) -> JointModel:
    """Turn counts into a model that holds the true game with probability 1 − δ.

    Parameters
    ----------
    known
        Everything but the transition. It says whether joint actions matter, or only how many agents play what.
    samples
        Counts whose numbers were fixed beforehand.
    delta
        The probability that the true game lies outside.
    interval
        How one probability is bounded.
    """
    counts = samples.transitions
    if known.stationary and len(counts):
        counts = counts.sum(axis=0, keepdims=True)
    share = delta / 2 if known.payoffs is None else delta
    kernel, lower, upper = kernel_and_box(counts, known.horizon, delta=share, interval=interval, support=known.support)
    if isinstance(known.payoffs, CountingPayoffs):
        counted = known.payoffs.frame.with_transition(kernel)
        return JointModel(counted if known.binds is None else counted.with_binds(known.binds), lower, upper)
    radii = None
    if known.payoffs is None:
        (rewards, costs), radii = learned_payoffs(known, samples, delta / 2, agents=slice(None))
    else:
        rewards, costs = known.payoffs.rewards, known.payoffs.costs
    game = JointGame(
        transition=kernel,
        rewards=rewards,
        costs=costs,
        thresholds=known.thresholds,
        initial=known.initial,
        horizon=known.horizon,
        binds=known.binds,
    )
    return JointModel(game, lower, upper, radii)


def ceilings_of_views(policy: JointPolicy, views: Sequence[Estimate]) -> FloatArray:
    """Return the most that a policy can cost: each agent's box bounds the same costs, so the least of the bounds."""
    pairs = list(zip(views, policy, strict=False))
    ceilings = [[worst_case(view.box, table, cost) for cost in view.worst_costs] for view, table in pairs]
    return np.asarray(np.min(ceilings, axis=0))


def largest_gain(policy: JointPolicy, views: Sequence[Estimate], binds: BoolArray) -> float:
    """Return the most that any agent gains by a deviation that meets what binds it: binds is [n, k]."""
    gains = []
    for view, table, bound in zip(views, policy, binds, strict=True):
        try:
            gains.append(view.best_deviation(bound).bound + worst_case(view.box, table, -view.worst_reward))
        except InfeasibleError:
            gains.append(np.inf)
    return float(max(gains))
