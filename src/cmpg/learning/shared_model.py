"""The empirical game with one box around its joint transition: what samples say about all agents at once.

The box has one interval for each (h, s, joint action, s'); steps that are alike share their samples. If it holds the
true kernel, then for any joint policy and any agent i the averages of its ends over what the others play are a box that
holds agent i's true kernel. So one event of probability 1 − δ bounds, for all policies and agents together: the costs
(worst case over the box), the value (likewise), and the best feasible deviation (the extended CMDP). Where rewards and
costs are not known, half of δ goes to Hoeffding intervals for them, and all bounds take their worst.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmpg.checks import FloatArray, InfeasibleError, frozen
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.optimistic import BoxCMDP, optimistic_response, worst_case
from cmpg.games.contraction import average_over
from cmpg.games.joint import JointGame
from cmpg.learning.confidence import Interval, hoeffding_radius, transition_box
from cmpg.learning.samples import Known, Samples, SimulatorError
from cmpg.policy import JointPolicy


@dataclass(frozen=True, eq=False)
class JointModel:
    """The empirical game, and how far off it can be."""

    game: JointGame  # with the empirical transition, and the means of unknown payoffs
    lower: FloatArray  # [H, S, *A, S]
    upper: FloatArray  # [H, S, *A, S]
    reward_radii: FloatArray  # [n, H or 1, S, *A]; zeros where rewards are known
    cost_radii: FloatArray  # [k, H or 1, S, *A]


@dataclass(frozen=True, eq=False)
class Bounds:
    """What holds of a joint policy whatever the game is, within the model."""

    gap: float  # no agent gains more by a feasible deviation
    cost_ceilings: FloatArray  # [k]


def joint_model(known: Known, samples: Samples, *, delta: float, interval: Interval) -> JointModel:
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
    )
    return JointModel(game, lower, upper, reward_radii, cost_radii)


def _kernel_and_box(
    known: Known, samples: Samples, *, delta: float, interval: Interval
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
    shape = (known.horizon, known.num_states, *known.num_actions, known.num_states)
    kernel, lower, upper = (np.full(shape, 1 / known.num_states) for _ in range(3))
    kernel[:-1], lower[:-1], upper[:-1] = mean, low, high
    return kernel, lower, upper


def _payoffs(known: Known, samples: Samples, delta: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rewards, costs, and their radii, which hold for all entries at once with probability 1 − δ."""
    if known.payoffs is not None:
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


def bound_policy(model: JointModel, policy: JointPolicy) -> Bounds:
    """Bound the costs of a policy, and what any agent could gain by leaving it."""
    gaps, ceilings = [], []
    for agent in range(model.game.num_agents):
        view = _view(model, policy, agent)
        floor = -worst_case(view.box, policy[agent], -view.worst_reward)
        try:
            gaps.append(optimistic_response(view.hopeful).bound - floor)
        except InfeasibleError:
            gaps.append(np.inf)
        ceilings.append([worst_case(view.box, policy[agent], cost) for cost in view.worst_costs])
    # Each agent's box bounds the same costs, so the least of the bounds holds.
    return Bounds(float(max(gaps)), np.array(ceilings).min(axis=0))


@dataclass(frozen=True, eq=False)
class _View:
    """What one agent's CMDP can be, while the others keep to their policies."""

    box: BoxCMDP
    hopeful: BoxCMDP  # the same kernels, with the most favourable payoffs
    worst_reward: FloatArray  # [H or 1, S, A]
    worst_costs: FloatArray  # [k, H or 1, S, A]


def _view(model: JointModel, policy: JointPolicy, agent: int) -> _View:
    nominal = model.game.at(policy).induced_cmdp(agent)
    lower, upper = (frozen(average_over(table, policy, keep=agent)) for table in (model.lower, model.upper))
    reward_radius = average_over(model.reward_radii[agent], policy, keep=agent)
    radii = [average_over(table, policy, keep=agent) for table in model.cost_radii]
    cost_radius = np.stack(radii) if radii else np.zeros(nominal.costs.shape)
    hopeful = _with_payoffs(nominal, nominal.reward + reward_radius, nominal.costs - cost_radius)
    return _View(
        box=BoxCMDP(nominal, lower, upper, trusted=True),
        hopeful=BoxCMDP(hopeful, lower, upper, trusted=True),
        worst_reward=nominal.reward - reward_radius,
        worst_costs=nominal.costs + cost_radius,
    )


def _with_payoffs(cmdp: CMDP, reward: FloatArray, costs: FloatArray) -> CMDP:
    return replace(cmdp, reward=frozen(reward), costs=frozen(costs), trusted=True)


def proof_of_infeasibility(model: JointModel) -> str:
    """Say why no joint policy meets the thresholds, or nothing where one may: a planner who chooses all actions, under
    the most favourable game of the model.
    """
    nominal = model.game.joint_cmdp()
    rows = (*nominal.policy_shape, model.game.num_states)
    costs = nominal.costs - model.cost_radii.reshape(*model.cost_radii.shape[:2], *nominal.policy_shape[1:])
    hopeful = _with_payoffs(nominal, nominal.reward, costs)
    lower, upper = (frozen(table.reshape(rows)) for table in (model.lower, model.upper))
    try:
        optimistic_response(BoxCMDP(hopeful, lower, upper, trusted=True))
    except InfeasibleError as proof:
        return str(proof)
    return ""
