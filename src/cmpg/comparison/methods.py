"""What others would do: methods without a certificate, to be compared on equal terms.

Every comparator is a value with its settings, called as `comparator(game, start, rng=rng)`, and answers with one
`Comparison`: the policy that it returns, and how far its iterates went beyond the thresholds on the way. How far that
policy is from a constrained Nash policy is for `certify_with_best_responses` to say.

- `LagrangianDual`: the subgradient method on d(λ); the policy is a maximiser of L(·, λ) at the λ that it finds.
- `IndependentGradient`: all agents follow the projected gradients of their own values, and the constraints are
  ignored (as Leonardos et al. do for potential games without constraints).
- `LagrangianGradient`: the same on r_i − λ·c, while λ follows the violation; the last feasible iterate.
- `SwitchingGradient`: a step on the reward if the constraints hold and on the worst cost if they do not (as in
  CRPO), with a proximal term that keeps the agents near a centre, which moves from round to round.
- `JointPlanner`: the best correlated policy, of which every agent plays its marginal; and the planner's bound.
- `NashCA`: coordinate ascent that ignores the constraints; right if there are none.

Step sizes are in units of the gradients at the start and at the uniform policy, so that the same settings fit games
of any size and any currency; the defaults were chosen from a grid over the library's scenarios. A method that may
choose among its iterates returns a feasible one.

Guarantee: none for the policies, which is the point. The numbers in a `Comparison` are evaluated from the model, and
`upper_bound` is proved by weak duality.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import plan
from cmpg.comparison.gradients import IndependentGradient, LagrangianGradient, Scales, SwitchingGradient
from cmpg.comparison.record import Comparator, Comparison, Run
from cmpg.duality.dual_function import lagrangian
from cmpg.equilibrium.loop import Answer, GreatestGain, Rules, take_turns
from cmpg.equilibrium.runs import uninterrupted
from cmpg.errors import GameError
from cmpg.games.game import Game, Position
from cmpg.games.joint.game import as_joint, joint_or_none
from cmpg.games.joint.planner import joint_planner, marginals
from cmpg.policy import JointPolicy


@dataclass(frozen=True)
class LagrangianDual:
    """Minimise d(λ) by subgradient steps, and return a maximiser of L(·, λ) at the λ that was found.

    Each step is divided by the root of the summed squares of all violations so far, which frees it of their scale. The
    maximisers are exact if the joint problem can be planned for, and λ is the one of least d(λ). Otherwise they are
    found by coordinate ascent on the penalised rewards from the start, which may end at a local one; d(λ) is then not
    known, and λ is the mean over the last half of the steps.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = LagrangianDual()(game, game.uniform_policy())
    >>> found.costs, found.values
    (array([0.]), array([3., 3.]))
    """

    step_size: float = 1.0  # in units of |∇V^r| / |∇V^c|
    iterations: int = 40

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method; the start matters only if the joint problem cannot be planned for."""
        run = Run(game)
        begin = run.see(game.at(start))
        maximise, is_exact = _maximiser(game, rng)
        scales = Scales.of(game, begin)
        multipliers, squares = np.zeros(len(game.thresholds)), np.zeros(len(game.thresholds))
        path: list[tuple[float, FloatArray, Position]] = []
        for _ in range(self.iterations if len(multipliers) else 1):
            position = run.see(maximise(begin, multipliers))
            path.append((lagrangian(game, position.policy, multipliers), multipliers, position))
            squares = squares + scales.violation(position) ** 2
            multipliers = scales.raised(
                multipliers, position, step_size=self.step_size / np.sqrt(np.maximum(squares, 1e-300))
            )
        if is_exact or len(multipliers) == 0:
            return run.ended(self, min(path, key=lambda each: each[0])[2])
        mean = np.mean([tried for _, tried, _ in path[len(path) // 2 :]], axis=0)
        return run.ended(self, run.see(maximise(begin, mean)))


@dataclass(frozen=True)
class JointPlanner:
    """One planner solves the joint CMDP for the mean of the rewards, and every agent plays its marginal of the answer.

    The planner's bound holds for every feasible policy. The marginals need not attain it, nor meet the constraints.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = JointPlanner()(game, game.uniform_policy())
    >>> round(found.upper_bound, 6), found.values
    (3.5, array([2.75, 2.75]))
    """

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method; the start does not matter."""
        joint = as_joint(game, wanted="cannot be planned for jointly")
        run = Run(joint)
        best = Exact()(joint.joint_cmdp(), rng=rng)
        return run.ended(self, run.see(joint.at(marginals(joint, best.policy))), upper_bound=best.bound)


@dataclass(frozen=True)
class NashCA:
    """The agent who gains most by ignoring the constraints moves, until no agent gains more than epsilon.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = NashCA()(game, game.uniform_policy())
    >>> found.values, found.costs, found.worst_violation
    (array([4., 4.]), array([1.]), 0.5)
    """

    epsilon: float = 1e-6
    max_moves: int = 1000

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method."""
        run = Run(game)
        free = np.zeros(len(game.thresholds))

        def answer(position: Position, agent: int, _: np.random.Generator | None) -> Answer:
            policy, _value, gain = _best_answer(position, agent, free, rng)
            return Answer(policy, gain)

        rules = Rules(schedule=GreatestGain(), enough=self.epsilon, max_moves=self.max_moves)
        position = run.see(game.at(start))
        ending = uninterrupted(take_turns(position, answer, rules, on_move=run.see, traced=False))
        return run.ended(self, ending.position)


COMPARATORS: tuple[Comparator, ...] = (
    LagrangianDual(),
    IndependentGradient(),
    LagrangianGradient(),
    SwitchingGradient(),
    JointPlanner(),
    NashCA(),
)
"""All comparators, with their default settings."""


Maximise = Callable[[Position, FloatArray], Position]
"""From where the agents stand, and λ, to a maximiser of L(·, λ)."""


def _maximiser(game: Game, rng: np.random.Generator | None) -> tuple[Maximise, bool]:
    """Return what maximises L(·, λ), and whether among all policies: where a joint plan is for the potential."""
    joint = joint_or_none(game)
    with suppress(GameError):  # the potential is not the value of one reward
        planner = None if joint is None else joint_planner(joint)
        if joint is not None and planner is not None:
            return lambda _, multipliers: game.at(joint.split(plan(planner, multipliers, rng=rng).actions)), True
    return lambda position, multipliers: _penalised_ascent(position, multipliers, rng), False


MAX_ROUNDS = 50
"""Answers per agent at most, while all maximise r − λ·c in turn; multipliers that no method can use take this long."""


def _penalised_ascent(position: Position, prices: FloatArray, rng: np.random.Generator | None) -> Position:
    def answer(position: Position, agent: int, _: np.random.Generator | None) -> Answer:
        policy, value, gain = _best_answer(position, agent, prices, rng)
        return Answer(policy, gain if gain > 1e-9 * max(1.0, abs(value)) else 0.0)

    rules = Rules(max_answers=MAX_ROUNDS * len(position.policy))
    return uninterrupted(take_turns(position, answer, rules, traced=False)).position


def _best_answer(
    position: Position, agent: int, prices: FloatArray, rng: np.random.Generator | None
) -> tuple[FloatArray, float, float]:
    """Return what an agent would do about r_i − λ·c alone [H, S, A], the value of that, and the gain."""
    cmdp = position.induced_cmdp(agent)
    best, present = plan(cmdp, prices, rng=rng), evaluate(cmdp, position.policy[agent])
    value = float(best.value - prices @ best.costs)
    return best.policy(cmdp.num_actions), value, value - float(present.value - prices @ present.costs)
