"""What samples of all joint actions say about a game: bounds for costs and gains of any joint policy, by one event.

A box has one interval for each (h, s, joint action, s'); where only counts of actions matter, (h, s, class of counts,
s'). If it holds the true kernel, then for any joint policy and any agent i the averages of its ends over what the
others play are a box that holds agent i's true kernel. So one event bounds, for all policies and agents together: the
costs (worst case over the box), the value (likewise), and the best feasible deviation (the extended CMDP). Where
rewards and costs are not known, half of δ goes to Hoeffding intervals for them, and all bounds take their worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.box import BoxCMDP, optimistic_response, worst_case
from cmpg.cmdp.model import CMDP
from cmpg.errors import InfeasibleError, SimulatorError
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.position import CountingPosition
from cmpg.games.game import binds_of
from cmpg.games.joint.averages import average_over
from cmpg.games.joint.game import JointGame
from cmpg.learning.confidence import Estimate, Interval, hoeffding_radius, transition_box
from cmpg.learning.outcome import Bounds
from cmpg.learning.samples import BoolArray, CountingPayoffs, Payoffs, ProblemSpec, Samples
from cmpg.policy import JointPolicy


@dataclass(frozen=True, eq=False)
class JointModel:
    """The empirical game, and how far off it can be."""

    game: JointGame  # with the empirical transition, and the means of unknown payoffs
    lower: FloatArray  # [H, S, *A, S]
    upper: FloatArray  # [H, S, *A, S]
    reward_radii: FloatArray  # [n, H or 1, S, *A]; zeros where rewards are known
    cost_radii: FloatArray  # [k, H or 1, S, *A]

    def cost_ceilings(self, policy: JointPolicy) -> FloatArray:
        """Return the most that a policy can cost: [k]."""
        return ceilings_of_views(policy, self._views(policy))

    def bound(self, policy: JointPolicy) -> Bounds:
        """Bound the costs of a policy, and what any agent could gain by deviating."""
        return bounds_of_views(policy, self._views(policy), binds_of(self.game))

    @cached_property
    def unmasked(self) -> JointGame:
        """The empirical game in which all constraints bind all agents, so that its CMDPs have all costs."""
        return self.game if self.game.binds is None else self.game.with_binds(None)

    def _views(self, policy: JointPolicy) -> list[Estimate]:
        return [_view(self, policy, agent) for agent in range(self.game.num_agents)]

    def proof_of_infeasibility(self) -> str:
        """Say why no joint policy meets the thresholds, or nothing where one may."""
        costs = self.cost_radii.reshape(*self.cost_radii.shape[:2], self.game.num_states, -1)
        return _planners_proof(self.game.joint_cmdp(), self.lower, self.upper, costs)


def joint_model(known: ProblemSpec, samples: Samples, *, delta: float, interval: Interval) -> JointModel:
    """Turn counts over joint actions into a model that holds the true game with probability 1 − δ.

    Parameters
    ----------
    known
        Everything but the transition.
    samples
        Counts whose numbers were fixed beforehand.
    delta
        The probability that the true game lies outside.
    interval
        How one probability is bounded.
    """
    learned = known.payoffs is None
    kernel, lower, upper = _kernel_and_box(known, samples, delta=delta / 2 if learned else delta, interval=interval)
    rewards, costs, reward_radii, cost_radii = _payoffs(known, samples, delta / 2)
    game = JointGame(
        transition=kernel,
        rewards=rewards,
        costs=costs,
        thresholds=known.thresholds,
        initial=known.initial,
        horizon=known.horizon,
        binds=known.binds,
    )
    return JointModel(game, lower, upper, reward_radii, cost_radii)


def _kernel_and_box(
    known: ProblemSpec, samples: Samples, *, delta: float, interval: Interval
) -> tuple[FloatArray, FloatArray, FloatArray]:
    counts, support = samples.transitions, known.support
    if known.stationary and len(counts):
        counts = counts.sum(axis=0, keepdims=True)
    low, high = transition_box(Samples(samples.visits, counts), delta=delta, interval=interval, support=support)
    trials = counts.sum(axis=-1, keepdims=True)
    possible = np.broadcast_to(True if support is None else support[: len(counts)], counts.shape)
    guess = possible / np.maximum(possible.sum(axis=-1, keepdims=True), 1)
    mean = np.where(trials > 0, counts / np.maximum(trials, 1), guess)
    # The last step leads nowhere: any row will do.
    shape = (known.horizon, *known.entry_shape, known.num_states)
    kernel, lower, upper = (np.full(shape, 1 / known.num_states) for _ in range(3))
    kernel[:-1], lower[:-1], upper[:-1] = mean, low, high
    return kernel, lower, upper


def _payoffs(
    known: ProblemSpec, samples: Samples, delta: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rewards, costs, and their radii, which hold for all entries at once with probability 1 − δ."""
    if isinstance(known.payoffs, Payoffs):
        rewards, costs = known.payoffs.rewards, known.payoffs.costs
        return rewards, costs, np.zeros(rewards.shape), np.zeros(costs.shape)
    if samples.observed is None:
        raise SimulatorError("rewards and costs are neither known nor observed; a simulator must give one of both.")
    sums = (samples.observed.rewards, samples.observed.costs)
    share = delta / sum(table.size for table in sums)
    means, radii = [], []
    for table, bounds in zip(sums, (known.reward_bounds, known.cost_bounds), strict=True):
        wide = np.broadcast_to(bounds, (len(table), known.horizon, 2)) if len(table) else np.zeros((0, 1, 2))
        least, greatest = (wide[..., end].reshape(*wide.shape[:2], *(1,) * (table.ndim - 2)) for end in (0, 1))
        trials = np.broadcast_to(samples.visits, table.shape)
        means.append(np.where(trials > 0, table / np.maximum(trials, 1), (least + greatest) / 2))
        radii.append(hoeffding_radius(trials, span=greatest - least, delta=share))
    return means[0], means[1], radii[0], radii[1]


def ceilings_of_views(policy: JointPolicy, views: Sequence[Estimate]) -> FloatArray:
    """Return the most that a policy can cost: each agent's box bounds the same costs, so the least of the bounds."""
    pairs = list(zip(views, policy, strict=False))
    ceilings = [[worst_case(view.box, table, cost) for cost in view.worst_costs] for view, table in pairs]
    return np.asarray(np.min(ceilings, axis=0))


def bounds_of_views(policy: JointPolicy, views: Sequence[Estimate], binds: BoolArray) -> Bounds:
    """Bound costs and gains by what each agent faces; the views are in the order of the agents."""
    return Bounds(largest_gain(policy, views, binds), ceilings_of_views(policy, views))


def largest_gain(policy: JointPolicy, views: Sequence[Estimate], binds: BoolArray) -> float:
    """Return the most that any agent gains by a deviation that meets what binds it: binds is [n, k]."""
    gains = []
    for view, table, bound in zip(views, policy, binds, strict=True):
        try:
            gains.append(view.best_deviation(bound).bound + worst_case(view.box, table, -view.worst_reward))
        except InfeasibleError:
            gains.append(np.inf)
    return float(max(gains))


def _view(model: JointModel, policy: JointPolicy, agent: int) -> Estimate:
    nominal = model.unmasked.at(policy).induced_cmdp(agent)
    lower, upper = (frozen(average_over(table, policy, keep=agent)) for table in (model.lower, model.upper))
    reward_radius = average_over(model.reward_radii[agent], policy, keep=agent)
    radii = [average_over(table, policy, keep=agent) for table in model.cost_radii]
    cost_radius = np.stack(radii) if radii else np.zeros(nominal.costs.shape)
    optimistic = _with_payoffs(nominal, nominal.reward + reward_radius, nominal.costs - cost_radius)
    return Estimate(
        box=BoxCMDP(nominal, lower, upper, trusted=True),
        optimistic=BoxCMDP(optimistic, lower, upper, trusted=True),
        worst_reward=nominal.reward - reward_radius,
        worst_costs=nominal.costs + cost_radius,
    )


def _with_payoffs(cmdp: CMDP, reward: FloatArray, costs: FloatArray) -> CMDP:
    return replace(cmdp, reward=frozen(reward), costs=frozen(costs), trusted=True)


def _planners_proof(nominal: CMDP, lower: FloatArray, upper: FloatArray, radii: FloatArray | float) -> str:
    """Say why a planner who chooses all actions cannot meet the thresholds, under the most favourable game of the
    model, or nothing where one may.
    """
    optimistic = _with_payoffs(nominal, nominal.reward, nominal.costs - radii)
    rows = (-1, *nominal.policy_shape[1:], nominal.num_states)
    least, most = (frozen(table.reshape(rows)) for table in (lower, upper))
    try:
        optimistic_response(BoxCMDP(optimistic, least, most, trusted=True))
    except InfeasibleError as proof:
        return str(proof)
    return ""


@dataclass(frozen=True, eq=False)
class CountingModel:
    """The empirical game of which only counts of actions matter, and how far off its transition can be."""

    game: CountingGame  # with the empirical transition
    lower: FloatArray  # [H, S, C, S]
    upper: FloatArray  # [H, S, C, S]

    def cost_ceilings(self, policy: JointPolicy) -> FloatArray:
        """Return the most that a policy can cost: [k]; by what the first agent faces."""
        return ceilings_of_views(policy, [self._view(self.unmasked.at(policy), 0)])

    def bound(self, policy: JointPolicy) -> Bounds:
        """Bound the costs of a policy, and what any agent could gain by deviating."""
        position = self.unmasked.at(policy)
        views = [self._view(position, agent) for agent in range(self.game.num_agents)]
        return bounds_of_views(policy, views, binds_of(self.game))

    @cached_property
    def unmasked(self) -> CountingGame:
        """The empirical game in which all constraints bind all agents, so that its CMDPs have all costs."""
        return self.game if self.game.binds is None else self.game.with_binds(None)

    def _view(self, position: CountingPosition, agent: int) -> Estimate:
        nominal = position.induced_cmdp(agent)
        classes = position.class_probabilities(agent)
        lower, upper = (frozen(np.matmul(classes, table)) for table in (self.lower, self.upper))
        box = BoxCMDP(nominal, lower, upper, trusted=True)
        shape = nominal.policy_shape
        costs = np.broadcast_to(nominal.costs, (len(nominal.costs), *shape))
        return Estimate(box, box, np.broadcast_to(nominal.reward, shape), costs)

    def proof_of_infeasibility(self) -> str:
        """Say why no joint policy meets the thresholds, or nothing where one may."""
        least, most = (np.take(table, self.game.classes_that_occur, axis=2) for table in (self.lower, self.upper))
        return _planners_proof(self.game.joint_cmdp(), least, most, 0.0)


def model_of(known: ProblemSpec, samples: Samples, *, delta: float, interval: Interval) -> JointModel | CountingModel:
    """Turn counts, whose numbers were fixed beforehand, into a model that holds the true game with probability 1 − δ.

    In what form depends on whether joint actions matter, or only how many agents play what.
    """
    if not isinstance(known.payoffs, CountingPayoffs):
        return joint_model(known, samples, delta=delta, interval=interval)
    kernel, lower, upper = _kernel_and_box(known, samples, delta=delta, interval=interval)
    game = known.payoffs.frame.with_transition(kernel)
    return CountingModel(game if known.binds is None else game.with_binds(known.binds), lower, upper)
