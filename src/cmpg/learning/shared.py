"""One model for all: explore once, outside the CMDP sub-routines, and reuse every sample for every agent and iteration.

The paper's conclusion asks whether moving the exploration outside pays; Algorithm 2 draws anew for each response. Here,
in round j there are N_j = N_0·2^(j−1) samples of every (h, s, joint action), and one `JointModel`, the empirical game
with a box around its transition. Half of the round's share of δ, δ/(j(j + 1)), goes to either way to an end:

- by the box alone. It has one interval for each (h, s, joint action, s'); steps that are alike share their samples. If
  it holds the true kernel, then for any joint policy and any agent i the averages of its ends over what the others play
  are a box that holds agent i's true kernel. So one event bounds, for all policies and agents together: the costs
  (worst case over the box), the value (likewise), and the best feasible deviation (the extended CMDP). The empirical
  game is solved by CA-CMPG with thresholds tightened just so far that the policy's worst cost is at most α.
- by a check with fresh samples. The empirical game is solved with thresholds tightened by the errors that are likely.
  What comes of it is fixed before the check, so its costs are measured by rolling it out, and every agent is asked
  whether to leave it, as in Algorithm 2. If all stay, it is an ε-Nash policy. This takes Σ_i A_i entries per step and
  state instead of Π_i A_i, and no factor of the box; it may take as many samples as the model did.

Guarantee: what is called certified is an ε-Nash policy with probability at least 1 − δ, whatever was solved on the way;
no potential, no feasible start and no slack need be known. Where there is no slack, no policy can be proved feasible,
and the samples run out. Where rewards and costs are not known, half of the box's share goes to Hoeffding intervals for
them, and all bounds take their worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.box import BoxCMDP, optimistic_response, worst_case
from cmpg.cmdp.model import CMDP
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.solve import solve
from cmpg.errors import BudgetError, CMPGError, InfeasibleError, SimulatorError
from cmpg.games.joint.game import JointGame
from cmpg.games.joint.position import average_over
from cmpg.learning.confidence import (
    Estimate,
    Interval,
    binomial_interval,
    check_accuracy,
    hoeffding_radius,
    transition_box,
)
from cmpg.learning.generative import Adaptive, cost_variances
from cmpg.learning.optimism import Measurement
from cmpg.learning.outcome import LearnResult, claim
from cmpg.learning.problem import InducedProblem
from cmpg.learning.samples import Known, Samples
from cmpg.learning.simulator import Logbook, Simulator, joint_rows
from cmpg.policy import JointPolicy

TIGHTENINGS = 6
"""Bisections for the tightened thresholds."""

ASSUMPTIONS = ("samples are independent draws of the game's own law, and the declared ranges hold",)


@dataclass(frozen=True, eq=False)
class Round:
    """What is known after one round: the policy that was found, and its bounds."""

    samples_per_entry: int
    policy: JointPolicy
    gap: float  # no agent gains more than this by leaving
    cost_ceilings: FloatArray  # [k]
    feasible: bool  # every ceiling is at most its threshold


def learn_shared(
    simulator: Simulator,
    *,
    epsilon: float,
    delta: float,
    first_count: int = 64,
    max_count: int = 2**30,
    interval: Interval = binomial_interval,
    on_round: Callable[[Round], None] | None = None,
) -> LearnResult:
    """Learn an ε-Nash policy from one shared model.

    Parameters
    ----------
    simulator
        The game behind its door; it must let itself be drawn from (generative).
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by leaving.
    first_count, max_count
        Samples of every (h, s, joint action) in the first round, and at most.
    interval
        How one probability is bounded.
    on_round
        Called with the bounds after every round.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> learn_shared(simulator, epsilon=0.5, delta=0.1).certified
    True
    """
    check_accuracy(epsilon, delta)
    if not 1 <= first_count <= max_count:
        raise CMPGError(f"first_count is {first_count} and max_count {max_count}; 1 ≤ first_count ≤ max_count.")
    run = _Run(simulator, epsilon=epsilon, delta=delta, interval=interval)
    status, reason = Status.LIMIT, f"{max_count:,} samples of every entry are not enough."
    try:
        for _ in run.rounds(first_count, max_count):
            if on_round is not None:
                on_round(run.best)
            if run.ended is not None:
                status, reason = run.ended, run.reason
                break
    except BudgetError as stop:
        reason = str(stop)
    except KeyboardInterrupt:
        status, reason = Status.INTERRUPTED, "it was interrupted."
    except SimulatorError as fault:
        fault.samples = run.with_samples_of(fault)
        fault.result = run.conclude(status, str(fault))
        raise
    return run.conclude(status, reason)


class _Run:
    """The samples so far, and the policy that was found with them."""

    def __init__(self, simulator: Simulator, *, epsilon: float, delta: float, interval: Interval) -> None:
        known = simulator.known
        self.simulator, self.epsilon, self.delta, self.interval = Logbook(simulator), epsilon, delta, interval
        self.samples: Samples | None = None
        self.number = 0
        nothing = np.full(known.num_constraints, np.inf)
        self.best = Round(0, JointPolicy.uniform(known.policy_shapes), np.inf, nothing, feasible=False)
        self.ended: Status | None = None
        self.reason = ""

    def rounds(self, first: int, most: int) -> Iterator[None]:
        """Draw, judge, and hand over, with twice the samples each time; the sizes do not depend on what is seen."""
        count, target = 0, first
        while target <= most:
            drawn = self.simulator.draw_all(count=target - count, purpose="model")
            self.samples = drawn if self.samples is None else self.samples + drawn
            count, target = target, 2 * target
            self.number += 1
            self._judge(self.samples, count)
            yield

    def _judge(self, samples: Samples, count: int) -> None:
        """Solve the empirical game, tightened as far as necessary, and see whether that is an end."""
        share = self.delta / (self.number * (self.number + 1))
        checkable = self.simulator.known.horizon > 1
        if checkable:
            share /= 2
        model = joint_model(self.simulator.known, samples, delta=share, interval=self.interval)
        found = _tightened(model, self.best.policy, epsilon=self.epsilon)
        if found is None:
            proof = proof_of_infeasibility(model)
            if proof:
                self.ended, self.reason = Status.INFEASIBLE, f"with probability {1 - self.delta:g}, {proof}"
        else:
            self.best = replace(found, samples_per_entry=count)
            if self.best.feasible and self.best.gap <= self.epsilon:
                self.ended = Status.CERTIFIED
        if self.ended is None and checkable:
            try:
                self._check(model, count, share)
            except SimulatorError as fault:
                fault.samples = None  # what one agent sees is not counted by joint actions
                raise
        if self.ended is None and not samples.visits.any():
            self.ended, self.reason = Status.LIMIT, f"{self._bounds()} There is nothing to be drawn that would help."

    def _check(self, model: JointModel, count: int, share: float) -> None:
        """Solve the empirical game with a little room, and check what comes of it with fresh samples."""
        thresholds = model.game.thresholds
        policy = self.best.policy
        likely = 3 * np.sqrt(cost_variances(model.game.joint_cmdp(), joint_table(policy))[0] / count)
        result = _ascent(model.game.with_thresholds(thresholds - likely), policy, self.epsilon / 16)
        if result.incumbent is None:
            return
        found = result.policy
        agents = range(model.game.num_agents)
        parts = share / (1 + len(agents))
        spent = self.simulator.ledger.total
        costs = Measurement(
            InducedProblem(self.simulator, 0, found, purpose="checks"),
            found[0],
            model.game.at(found).induced_cmdp(0),
            delta=parts,
        )
        while np.any(costs.ceilings[1:] > thresholds):
            if np.any(costs.floors[1:] > thresholds) or costs.episodes * 4 * model.game.num_steps > spent:
                return
            costs.grow()
        entries = sum(steps * states * actions for steps, states, actions in found.shapes)
        learner = Adaptive(first_count=max(count, 64), max_count=max(spent // entries, count, 64))
        gaps = []
        for agent in agents:
            problem = InducedProblem(self.simulator, agent, found, purpose="checks", nash_epsilon=self.epsilon)
            answer = learner(problem, epsilon=self.epsilon / 4, delta=parts)
            if answer.present is None or not answer.stays(self.epsilon):
                return
            gaps.append(answer.value_ceiling - answer.present.value_floor)
        self.best = Round(count, found, max(gaps), costs.ceilings[1:].copy(), feasible=True)
        self.ended = Status.CERTIFIED

    def _bounds(self) -> str:
        ceilings = ", ".join(f"{cost:.4g}" for cost in self.best.cost_ceilings)
        thresholds = ", ".join(f"{threshold:.4g}" for threshold in self.simulator.known.thresholds)
        costs = f"costs at most {ceilings} (thresholds {thresholds})" if ceilings else "no constraint"
        return f"what is proved: {costs}, and gains of at most {self.best.gap:.4g} (epsilon {self.epsilon:.4g})."

    def with_samples_of(self, fault: SimulatorError) -> Samples | None:
        """Return all samples, with those that a fault cut short."""
        parts = [part for part in (self.samples, fault.samples) if part is not None]
        return parts[0] + parts[1] if len(parts) == 2 else (parts[0] if parts else None)

    def conclude(self, status: Status, reason: str) -> LearnResult:
        """Gather the result."""
        certified = status is Status.CERTIFIED
        return LearnResult(
            status=status,
            message=claim(self.epsilon, self.delta) if certified else f"nothing is certified; {self._bounds()}",
            policy=self.best.policy,
            epsilon=self.epsilon,
            delta=self.delta,
            samples=self.simulator.ledger.by_purpose,
            assumptions=ASSUMPTIONS,
            void=() if certified else (reason,),
            played=self.simulator.played,
            settings={"samples_per_entry": self.best.samples_per_entry, "rounds": self.number},
        )


def _tightened(model: JointModel, start: JointPolicy, *, epsilon: float) -> Round | None:
    """Return the policy for the loosest thresholds α − t·e that bring its worst costs to α; None where none is found.

    As in `generative.tightened_candidate`, e is by how much the worst costs of the untightened policy exceed its
    empirical ones, and t is found by bisection.
    """
    thresholds = model.game.thresholds
    best = _solved(model, thresholds, start, epsilon=epsilon)
    if best is None or best.feasible:
        return best
    excess = np.maximum(best.cost_ceilings - model.game.at(best.policy).costs, 0.0)
    low, high = 0.0, 2.0
    for _ in range(TIGHTENINGS):
        middle = (low + high) / 2
        tried = _solved(model, thresholds - middle * excess, best.policy, epsilon=epsilon)
        if tried is None or tried.feasible:
            high, best = middle, tried or best
        else:
            low = middle
    return best


def _solved(model: JointModel, thresholds: FloatArray, start: JointPolicy, *, epsilon: float) -> Round | None:
    """Solve the empirical game with other thresholds, and bound what it is worth; None where no start is found."""
    game = model.game.with_thresholds(thresholds)
    result = _ascent(game, start, epsilon / 16)
    if result.incumbent is None:
        return None
    policy = result.policy
    bounds = bound_policy(model, policy)
    feasible = bool(np.all(bounds.cost_ceilings <= model.game.thresholds))
    return Round(0, policy, bounds.gap, bounds.cost_ceilings, feasible)


def _ascent(game: JointGame, start: JointPolicy, epsilon: float) -> Result:
    """Go on from the last policy where it is feasible, and from a start of the solver's own where it is not."""
    try:
        return solve(game, epsilon=epsilon, start=start)
    except InfeasibleError:
        return solve(game, epsilon=epsilon)


def joint_table(policy: JointPolicy) -> FloatArray:
    """Return the policy of a planner who chooses all actions: [H, S, ΠA]."""
    return np.stack([joint_rows(policy, h) for h in range(policy.shapes[0][0])])


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
            gaps.append(optimistic_response(view.optimistic).bound - floor)
        except InfeasibleError:
            gaps.append(np.inf)
        ceilings.append([worst_case(view.box, policy[agent], cost) for cost in view.worst_costs])
    # Each agent's box bounds the same costs, so the least of the bounds holds.
    return Bounds(float(max(gaps)), np.array(ceilings).min(axis=0))


def _view(model: JointModel, policy: JointPolicy, agent: int) -> Estimate:
    nominal = model.game.at(policy).induced_cmdp(agent)
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


def proof_of_infeasibility(model: JointModel) -> str:
    """Say why no joint policy meets the thresholds, or nothing where one may: a planner who chooses all actions, under
    the most favourable game of the model.
    """
    nominal = model.game.joint_cmdp()
    rows = (*nominal.policy_shape, model.game.num_states)
    costs = nominal.costs - model.cost_radii.reshape(*model.cost_radii.shape[:2], *nominal.policy_shape[1:])
    optimistic = _with_payoffs(nominal, nominal.reward, costs)
    lower, upper = (frozen(table.reshape(rows)) for table in (model.lower, model.upper))
    try:
        optimistic_response(BoxCMDP(optimistic, lower, upper, trusted=True))
    except InfeasibleError as proof:
        return str(proof)
    return ""
