"""One model for all: explore once, outside the CMDP sub-routines, and reuse every sample for every agent and iteration.

The paper's conclusion asks whether moving the exploration outside pays; Algorithm 2 draws anew for each response.
Here, in round j there are N_j = N_0·2^(j−1) samples of every (h, s, joint action), and one box that holds the true
kernel with probability 1 − δ/(j(j + 1)). The empirical game is solved by CA-CMPG with thresholds tightened just so
far that the policy's worst cost over the box is at most α.

Guarantee: the box fails in any round with probability at most δ. While it holds, the policy's costs are at most their
worst case, V^{r_i} is at least its worst case, and no feasible deviation of agent i is worth more than the optimum of
its extended CMDP, whose box is the average of the joint box over what the others play. So what is called certified is
an ε-Nash policy, whatever was solved on the way; no potential and no slack need be known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cmpg.checks import CMPGError, FloatArray, InfeasibleError, frozen
from cmpg.cmdp.optimistic import BoxCMDP, optimistic_response, worst_case
from cmpg.equilibrium.result import Result, Status
from cmpg.equilibrium.solve import solve
from cmpg.games.contraction import average_over
from cmpg.games.joint import JointGame
from cmpg.learning.confidence import Interval, binomial_interval, check_accuracy
from cmpg.learning.outcome import LearnResult
from cmpg.learning.samples import BudgetError, Known, Samples
from cmpg.learning.simulator import Simulator
from cmpg.policy import JointPolicy

TIGHTENINGS = 6
"""Bisections for the tightened thresholds."""

ASSUMPTIONS = ("samples are independent draws of the game's own law", "rewards and costs are known")


@dataclass(frozen=True, eq=False)
class Round:
    """What is known after one round: the bounds of the best policy so far."""

    samples_per_entry: int
    gap: float  # no agent gains more than this
    cost_ceilings: FloatArray  # [k]
    feasible: bool


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
        The game behind its door; it must let itself be drawn from (generative), and rewards and costs must be known.
    epsilon, delta
        With probability at least 1 − δ no agent gains more than ε by leaving.
    first_count, max_count
        Samples of every (h, s, joint action) in the first round, and at most.
    interval
        How one probability is bounded.
    on_round
        Called with the bounds after every round.
    """
    check_accuracy(epsilon, delta)
    if simulator.known.payoffs is None:
        raise CMPGError("the shared model needs known rewards and costs. Use learn(...), which can estimate them.")
    model = _Model(simulator.known, epsilon)
    samples, count, rounds = None, 0, 0
    best = _Judged(
        JointPolicy.uniform(simulator.known.policy_shapes), np.inf, np.full(simulator.known.num_constraints, np.inf)
    )
    status, message = Status.LIMIT, "the samples ran out."
    while count < max_count:
        target = first_count * 2**rounds
        try:
            drawn = simulator.draw_all(count=target - count, purpose="model")
        except BudgetError as stop:
            message = str(stop)
            break
        samples = drawn if samples is None else samples + drawn
        count, rounds = target, rounds + 1
        best = model.judge(samples, delta=delta / (rounds * (rounds + 1)), interval=interval, before=best)
        if on_round is not None:
            on_round(Round(count, best.gap, best.cost_ceilings, model.feasible(best)))
        if model.feasible(best) and best.gap <= epsilon:
            status = Status.CERTIFIED
            message = f"feasible, and no agent gains more than {epsilon:g} by leaving, with probability {1 - delta:g}."
            break
        if not np.any(model.uncertain(samples)):
            message = f"the model is known, and still the gap is {best.gap:.4g}."
            break
    return LearnResult(
        status=status,
        message=message,
        policy=best.policy,
        epsilon=epsilon,
        delta=delta,
        samples=simulator.ledger.by_purpose,
        assumptions=ASSUMPTIONS,
        void=() if status is Status.CERTIFIED else (f"the bounds are {best.gap:.4g} apart, or a cost is unproved",),
        settings={"samples_per_entry": count, "rounds": rounds},
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """A joint policy and its worst case over a box."""

    policy: JointPolicy
    gap: float
    cost_ceilings: FloatArray  # [k]


class _Model:
    """The empirical game, its box, and what can be said of a policy in it."""

    def __init__(self, known: Known, epsilon: float) -> None:
        self.known, self.epsilon = known, epsilon

    def feasible(self, judged: _Judged) -> bool:
        """Whether every worst cost is at most its threshold."""
        return bool(np.all(judged.cost_ceilings <= self.known.thresholds))

    def uncertain(self, samples: Samples) -> bool:
        """Whether there is anything left to learn: a game of one step or one state has no transition to learn."""
        return self.known.horizon > 1 and self.known.num_states > 1 and samples.transitions.size > 0

    def judge(self, samples: Samples, *, delta: float, interval: Interval, before: _Judged) -> _Judged:
        """Solve the empirical game, tightened as far as the box makes necessary, and bound what it is worth."""
        kernel, lower, upper = self._box(samples, delta=delta, interval=interval)
        game = self._game(kernel)
        boxes = (lower, upper)
        untightened = self._solved(game, self.known.thresholds, boxes, start=before.policy)
        if untightened is None:
            return replace(before, gap=np.inf)
        if self.feasible(untightened):
            return untightened
        excess = np.maximum(untightened.cost_ceilings - game.at(untightened.policy).costs, 0.0)
        best, low, high = untightened, 0.0, 2.0
        for _ in range(TIGHTENINGS):
            middle = (low + high) / 2
            tried = self._solved(game, self.known.thresholds - middle * excess, boxes, start=best.policy)
            if tried is None or self.feasible(tried):
                high, best = middle, best if tried is None else tried
            else:
                low = middle
        return best

    def _box(self, samples: Samples, *, delta: float, interval: Interval) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The empirical kernel and its bounds [H or 1, S, *A, S]; steps that are alike share their samples."""
        known = self.known
        shape = (known.horizon, known.num_states, *known.num_actions, known.num_states)
        counts = samples.transitions
        if known.stationary and len(counts):
            counts = counts.sum(axis=0, keepdims=True)
        trials = np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)
        possible = np.broadcast_to(True if known.support is None else known.support[: len(counts)], counts.shape)
        number = max(int(possible.sum()), 1)
        low, high = interval(counts, trials, delta=delta / number)
        low, high = np.where(possible, low, 0.0), np.where(possible, high, 0.0)
        mean = np.where(trials > 0, counts / np.maximum(trials, 1), possible / possible.sum(axis=-1, keepdims=True))
        kernel, lower, upper = (np.full(shape, 1 / known.num_states) for _ in range(3))
        for table, estimate in ((kernel, mean), (lower, low), (upper, high)):
            if len(estimate):
                table[:-1] = estimate
        return kernel, lower, upper

    def _game(self, kernel: FloatArray) -> JointGame:
        assert self.known.payoffs is not None
        return JointGame(
            transition=kernel,
            rewards=self.known.payoffs.rewards,
            costs=self.known.payoffs.costs,
            thresholds=self.known.thresholds,
            initial=self.known.initial,
            horizon=self.known.horizon,
        )

    def _solved(
        self, game: JointGame, thresholds: FloatArray, boxes: tuple[FloatArray, FloatArray], *, start: JointPolicy
    ) -> _Judged | None:
        """Solve the empirical game with other thresholds, and judge its policy; None where no start is found."""
        tightened = replace(game, thresholds=frozen(np.asarray(thresholds)), trusted=True)
        result = _ascent(tightened, start, self.epsilon / 16)
        return None if result.policy is None else self._bounds(game, result.policy, boxes)

    def _bounds(self, game: JointGame, policy: JointPolicy, boxes: tuple[FloatArray, FloatArray]) -> _Judged:
        gaps, ceilings = [], np.zeros(self.known.num_constraints)
        for agent in range(self.known.num_agents):
            nominal = game.at(policy).induced_cmdp(agent)
            lower, upper = (average_over(table, policy, keep=agent) for table in boxes)
            box = BoxCMDP(nominal, lower=frozen(lower), upper=frozen(upper), trusted=True)
            floor = -worst_case(box, policy[agent], -nominal.reward)
            try:
                ceiling = optimistic_response(box).bound
            except InfeasibleError:
                ceiling = np.inf
            gaps.append(ceiling - floor)
            if agent == 0:
                ceilings = np.array([worst_case(box, policy[0], cost) for cost in nominal.costs])
        return _Judged(policy, float(max(gaps)), ceilings)


def _ascent(game: JointGame, start: JointPolicy, epsilon: float) -> Result:
    """Go on from the last policy where it is feasible, and from a start of the solver's own where it is not."""
    try:
        return solve(game, epsilon=epsilon, start=start)
    except InfeasibleError:
        return solve(game, epsilon=epsilon)
