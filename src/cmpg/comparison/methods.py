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

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import evaluate
from cmpg.cmdp.exact import Exact
from cmpg.cmdp.planning import plan
from cmpg.comparison.gradients import Anchor, gradient_step, policy_gradients, squared_distance
from cmpg.duality.branch_and_bound import marginals
from cmpg.duality.dual_function import lagrangian
from cmpg.equilibrium.loop import Answer, Rules, take_turns
from cmpg.equilibrium.schedule import GreatestGain
from cmpg.errors import GameError
from cmpg.faces import fields_line
from cmpg.games.contract import Game, Position
from cmpg.games.joint.game import as_joint, joint_or_none
from cmpg.games.potential.stage_reward import joint_planner
from cmpg.policy import JointPolicy

STILL = 1e-24
"""A gradient method has come to rest if the squared length of its step is no more than this."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a method returned, and what it did to the constraints on the way."""

    name: str
    policy: JointPolicy
    values: FloatArray  # [n]
    costs: FloatArray  # [k]
    worst_violation: float  # the greatest V^{c_j} − α_j over all iterates and constraints, or 0
    infeasible_iterates: int
    iterates: int  # joint policies that the method went through, the start and the answer among them
    seconds: float
    settings: str
    upper_bound: float = np.inf  # no feasible policy has a greater mean of the agents' values; finite if known

    __repr__ = fields_line


class Comparator(Protocol):
    """A method that turns a start into a policy, on a game in floats."""

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method."""


@dataclass(frozen=True)
class LagrangianDual:
    """Minimise d(λ) by subgradient steps, and return a maximiser of L(·, λ) at the λ that was found.

    Each step is divided by the root of the summed squares of all violations so far, which frees it of their scale. The
    maximisers are exact if the joint problem can be planned for, and λ is the one of least d(λ). Otherwise they are
    found by coordinate ascent on the penalised rewards from the start, which may end at a local one; d(λ) is then not
    known, and λ is the mean over the last half of the steps.
    """

    step_size: float = 1.0  # in units of |∇V^r| / |∇V^c|
    iterations: int = 40

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method; the start matters only if the joint problem cannot be planned for."""
        run = _Run(game)
        begin = run.see(game.at(start))
        maximise = _maximiser(game, rng)
        scales = _Scales.of(game, begin)
        multipliers, squares = np.zeros(len(game.thresholds)), np.zeros(len(game.thresholds))
        path: list[tuple[float, FloatArray, Position]] = []
        for _ in range(self.iterations if len(multipliers) else 1):
            position = run.see(maximise.at(begin, multipliers))
            path.append((lagrangian(game, position.policy, multipliers), multipliers, position))
            squares = squares + scales.violation(position) ** 2
            multipliers = scales.raised(
                multipliers, position, step_size=self.step_size / np.sqrt(np.maximum(squares, 1e-300))
            )
        if maximise.exact or len(multipliers) == 0:
            return run.ended(self, min(path, key=lambda each: each[0])[2])
        mean = np.mean([tried for _, tried, _ in path[len(path) // 2 :]], axis=0)
        return run.ended(self, run.see(maximise.at(begin, mean)))


@dataclass(frozen=True)
class LagrangianGradient:
    """Everybody follows the projected gradient of V^{r_i} − λ·V^c while λ follows the violation.

    The last iterate that meets the thresholds is returned; the last one if none does.
    """

    step_size: float = 0.1  # in units of 1 / |∇V^r|
    dual_step_size: float = 0.3  # in units of |∇V^r| / |∇V^c|²
    iterations: int = 200

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method; it is deterministic."""
        run = _Run(game)
        path = list(_primal_dual(run, start, settings=self))
        feasible = [position for position in path if run.allows(position)]
        return run.ended(self, (feasible or path)[-1])


@dataclass(frozen=True)
class IndependentGradient:
    """Everybody follows the projected gradient of its own value, at the same time; nobody looks at the constraints."""

    step_size: float = 0.3  # in units of 1 / |∇V^r|
    iterations: int = 200

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method; it is deterministic."""
        run = _Run(game)
        free = LagrangianGradient(step_size=self.step_size, dual_step_size=0.0, iterations=self.iterations)
        *_, last = _primal_dual(run, start, settings=free)
        return run.ended(self, last)


@dataclass(frozen=True)
class SwitchingGradient:
    """A step on the rewards if the constraints hold, on the worst cost if they do not, with a proximal term.

    In every round the agents are pulled to a centre. It then moves to the mean of those iterates of the round that met
    the constraints even with the proximal term added to their cost. The last centre is returned.
    """

    step_size: float = 0.1  # in units of 1 / |∇V^r|, or of 1 / |∇V^c|
    proximal_weight: float = 0.1
    rounds: int = 20
    steps_per_round: int = 15

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method, from a feasible start if it is to do well; it is deterministic."""
        run = _Run(game)
        centre = run.see(game.at(start))
        scales = _Scales.of(game, centre)
        for _ in range(self.rounds):
            moved = self._round(run, centre, scales)
            still = squared_distance(moved.policy, centre.policy) <= STILL
            centre = moved
            if still:
                break
        return run.ended(self, centre)

    def _round(self, run: _Run, centre: Position, scales: _Scales) -> Position:
        anchor = Anchor(centre.policy, self.proximal_weight)
        position, kept = centre, []
        for _ in range(self.steps_per_round):
            pull = self.proximal_weight / 2 * squared_distance(position.policy, centre.policy)
            weights = scales.switched(position, pull)
            if weights[0] > 0:
                kept.append(position.policy)
            position = run.see(gradient_step(run.game, position, weights, step_size=self.step_size, anchor=anchor))
        if not kept:  # from an infeasible centre the last iterate is the best one can hope for
            return position
        means = tuple(np.mean(own, axis=0) for own in zip(*kept, strict=True))
        return run.see(run.game.at(JointPolicy(means)))


@dataclass(frozen=True)
class JointPlanner:
    """One planner solves the joint CMDP for the mean of the rewards, and every agent plays its marginal of the answer.

    The planner's bound holds for every feasible policy. The marginals need not attain it, nor meet the constraints.
    """

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method; the start does not matter."""
        joint = as_joint(game, wanted="cannot be planned for jointly")
        run = _Run(joint)
        best = Exact()(joint.floats().joint_cmdp(), rng=rng)
        return run.ended(self, run.see(joint.at(marginals(joint, best.policy))), upper_bound=best.bound)


@dataclass(frozen=True)
class NashCA:
    """The agent who gains most by ignoring the constraints moves, until nobody gains more than epsilon."""

    epsilon: float = 1e-6
    max_moves: int = 1000

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:
        """Run the method."""
        run = _Run(game)
        free = np.zeros(len(game.thresholds))

        def answer(position: Position, agent: int, _: np.random.Generator | None) -> Answer:
            chosen = _best_answer(position, agent, free, rng)
            return Answer(chosen.policy, chosen.gain)

        rules = Rules(schedule=GreatestGain(), enough=self.epsilon, max_moves=self.max_moves)
        position = run.see(game.at(start))
        ending = take_turns(position, answer, rules, on_move=run.see, traced=False)
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


@dataclass(eq=False)
class _Run:
    """Watches the iterates of one run."""

    game: Game
    began: float = field(default_factory=time.perf_counter)
    worst: float = 0.0
    infeasible: int = 0
    iterates: int = 0

    def see(self, position: Position) -> Position:
        """Count a joint policy, and how far it exceeds the thresholds."""
        self.iterates += 1
        if len(self.game.thresholds):
            excess = np.asarray(position.costs - self.game.thresholds, dtype=np.float64)
            self.worst = max(self.worst, float(excess.max()))
            self.infeasible += not self.allows(position)
        return position

    def allows(self, position: Position) -> bool:
        """Whether a joint policy meets the thresholds, up to rounding."""
        excess = np.asarray(position.costs - self.game.thresholds, dtype=np.float64)
        return bool((excess <= position.cost_rounding).all())

    def ended(self, method: Comparator, position: Position, *, upper_bound: float = np.inf) -> Comparison:
        """Return the record of the run."""
        return Comparison(
            name=type(method).__name__,
            policy=position.policy,
            values=np.asarray(position.values, dtype=np.float64),
            costs=np.asarray(position.costs, dtype=np.float64),
            worst_violation=self.worst,
            infeasible_iterates=self.infeasible,
            iterates=self.iterates,
            seconds=time.perf_counter() - self.began,
            settings=repr(method),
            upper_bound=upper_bound,
        )


@dataclass(frozen=True, eq=False)
class _Scales:
    """Sizes that free the step sizes of units."""

    reward: float  # |∇V^r|: the largest entry of a gradient along the simplex
    costs: FloatArray  # [k]: |∇V^c|
    thresholds: FloatArray  # [k]

    @classmethod
    def of(cls, game: Game, position: Position) -> _Scales:
        """Look at two places, because a gradient can vanish at one of them."""
        places = (position, game.at(JointPolicy.uniform(game.policy_shapes)))
        sizes = np.max([_gradient_sizes(place, agent) for place in places for agent in range(game.num_agents)], axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        return cls(float(sizes[0]), sizes[1:], np.asarray(game.thresholds, dtype=np.float64))

    def violation(self, position: Position) -> FloatArray:
        """(V^c − α) / |∇V^c|: [k]."""
        return np.asarray((position.costs - self.thresholds) / self.costs)

    def raised(self, multipliers: FloatArray, position: Position, *, step_size: float | FloatArray) -> FloatArray:
        """λ after a step along the violation, kept non-negative: [k]."""
        return np.maximum(multipliers + step_size * self.reward / self.costs * self.violation(position), 0.0)

    def switched(self, position: Position, pull: float) -> FloatArray:
        """Weights [1 + k]: for the reward if costs plus pull meet the thresholds, else against the worst cost."""
        excess = self.violation(position) + pull
        if len(excess) == 0 or excess.max() <= 0:
            return np.asarray(np.eye(1, 1 + len(excess))[0] / self.reward)
        worst = int(excess.argmax())
        return np.asarray(-np.eye(1 + len(excess))[1 + worst] / self.costs[worst])


def _gradient_sizes(position: Position, agent: int) -> FloatArray:
    """The largest entries of ∇V^r and of each ∇V^c with respect to one agent's policy, along the simplex: [1 + k]."""
    gradients = policy_gradients(position.induced_cmdp(agent), position.policy[agent])
    along = gradients - gradients.mean(axis=-1, keepdims=True)
    return np.asarray(np.abs(along).max(axis=(1, 2, 3)))


def _primal_dual(run: _Run, start: JointPolicy, *, settings: LagrangianGradient) -> Iterator[Position]:
    """Yield the start and every iterate, until the iterations are used up or nothing moves."""
    position = run.see(run.game.at(start))
    yield position
    scales = _Scales.of(run.game, position)
    multipliers = np.zeros(len(run.game.thresholds))
    for _ in range(settings.iterations):
        raised = scales.raised(multipliers, position, step_size=settings.dual_step_size)
        weights = np.concatenate([[1.0], -raised]) / scales.reward
        moved = run.see(gradient_step(run.game, position, weights, step_size=settings.step_size))
        rests = squared_distance(moved.policy, position.policy) <= STILL and np.allclose(
            raised, multipliers, rtol=1e-12
        )
        position, multipliers = moved, raised
        yield position
        if rests:
            break


@dataclass(frozen=True, eq=False)
class _Maximiser:
    """How to maximise L(·, λ), and whether the answer is a maximiser of all policies."""

    at: Callable[[Position, FloatArray], Position]
    exact: bool


def _maximiser(game: Game, rng: np.random.Generator | None) -> _Maximiser:
    """Plan jointly if the potential is the value of one reward, else ascend from where one stands."""
    joint = joint_or_none(game)
    if joint is not None:
        try:
            planner = joint_planner(joint)
        except GameError:
            return _Maximiser(lambda position, multipliers: _penalised_ascent(position, multipliers, rng), exact=False)
        return _Maximiser(
            lambda _, multipliers: game.at(joint.split(plan(planner, multipliers, rng=rng).actions)), exact=True
        )
    return _Maximiser(lambda position, multipliers: _penalised_ascent(position, multipliers, rng), exact=False)


def _penalised_ascent(
    position: Position, prices: FloatArray, rng: np.random.Generator | None, *, max_rounds: int = 50
) -> Position:
    def answer(position: Position, agent: int, _: np.random.Generator | None) -> Answer:
        chosen = _best_answer(position, agent, prices, rng)
        worth = chosen.gain > 1e-9 * max(1.0, abs(chosen.value))
        return Answer(chosen.policy, chosen.gain if worth else 0.0)

    rules = Rules(max_answers=max_rounds * len(position.policy))
    return take_turns(position, answer, rules, traced=False).position


@dataclass(frozen=True, eq=False)
class _Answer:
    policy: FloatArray  # [H, S, A]
    value: float  # of r_i − λ·c
    gain: float


def _best_answer(position: Position, agent: int, prices: FloatArray, rng: np.random.Generator | None) -> _Answer:
    """What an agent would do about r_i − λ·c alone."""
    cmdp = position.induced_cmdp(agent)
    best, present = plan(cmdp, prices, rng=rng), evaluate(cmdp, position.policy[agent])
    value = float(best.value - prices @ best.costs)
    return _Answer(best.policy(cmdp.num_actions), value, value - float(present.value - prices @ present.costs))
