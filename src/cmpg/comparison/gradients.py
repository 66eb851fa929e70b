"""Methods that follow gradients: exact policy gradients in direct parametrisation, steps that stay on the simplices.

In agent i's induced CMDP, ∂V^l/∂π_h(a|s) = P(s_h = s)·Q^l_h(s, a) for l = r, c_1, …, c_k; discounted, the probability
is the expected number of visits. The derivative along a change of policy is the inner product of the gradient with
the change. A step is followed by the Euclidean projection of every row to the simplex.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.evaluation import action_values, occupancy
from cmpg.cmdp.model import CMDP
from cmpg.comparison.record import Comparison, Run
from cmpg.games.game import Game, Position
from cmpg.policy import JointPolicy

STILL = 1e-24
"""A gradient method has come to rest if the squared length of its step is no more than this."""


@dataclass(frozen=True)
class LagrangianGradient:
    """Every agent follows the projected gradient of V^{r_i} − λ·V^c while λ follows the violation.

    The last iterate that meets the thresholds is returned; the last one if none does.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = LagrangianGradient(iterations=50)(game, game.uniform_policy())
    >>> found.iterates, found.infeasible_iterates > 0
    (17, True)
    """

    step_size: float = 0.1  # in units of 1 / |∇V^r|
    dual_step_size: float = 0.3  # in units of |∇V^r| / |∇V^c|²
    iterations: int = 200

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method; it is deterministic."""
        run = Run(game)
        path = list(_primal_dual(run, start, settings=self))
        feasible = [position for position in path if run.allows(position)]
        return run.ended(self, (feasible or path)[-1])


@dataclass(frozen=True)
class IndependentGradient:
    """All agents follow the projected gradients of their own values, at the same time, and ignore the constraints.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = IndependentGradient()(game, game.uniform_policy())
    >>> found.values, found.worst_violation
    (array([4., 4.]), 0.5)
    """

    step_size: float = 0.3  # in units of 1 / |∇V^r|
    iterations: int = 200

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method; it is deterministic."""
        run = Run(game)
        free = LagrangianGradient(step_size=self.step_size, dual_step_size=0.0, iterations=self.iterations)
        *_, last = _primal_dual(run, start, settings=free)
        return run.ended(self, last)


@dataclass(frozen=True)
class SwitchingGradient:
    """A step on the rewards if the constraints hold, on the worst cost if they do not, with a proximal term.

    In every round the agents are pulled to a centre. It then moves to the mean of those iterates of the round that met
    the constraints even with the proximal term added to their cost. The last centre is returned.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> found = SwitchingGradient(rounds=5)(game, game.uniform_policy())
    >>> bool(found.costs[0] <= 0.5)
    True
    """

    step_size: float = 0.1  # in units of 1 / |∇V^r|, or of 1 / |∇V^c|
    proximal_weight: float = 0.1
    rounds: int = 20
    steps_per_round: int = 15

    def __call__(self, game: Game, start: JointPolicy, *, rng: np.random.Generator | None = None) -> Comparison:  # noqa: ARG002
        """Run the method, from a feasible start if it is to do well; it is deterministic."""
        run = Run(game)
        centre = run.see(game.at(start))
        scales = Scales.of(game, centre)
        for _ in range(self.rounds):
            moved = self._round(run, centre, scales)
            still = squared_distance(moved.policy, centre.policy) <= STILL
            centre = moved
            if still:
                break
        return run.ended(self, centre)

    def _round(self, run: Run, centre: Position, scales: Scales) -> Position:
        anchor = centre.policy, self.proximal_weight
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


def policy_gradients(cmdp: CMDP, policy: FloatArray) -> FloatArray:
    """Return the gradients of V^r and of each V^{c_j} with respect to the policy: [1 + k, H, S, A].

    Parameters
    ----------
    cmdp
        The process.
    policy : [H, S, A]
        Where to differentiate.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 3.0]]]],
    ...             thresholds=[1.0], initial=[1.0], horizon=1)
    >>> policy_gradients(cmdp, np.array([[[0.5, 0.5]]]))[:, 0, 0]
    array([[0., 1.],
           [0., 3.]])
    """
    visits = occupancy(cmdp, policy).sum(axis=-1)  # [H, S]
    return np.moveaxis(visits[:, None, :, None] * action_values(cmdp, policy), 1, 0)


def project_rows(table: FloatArray) -> FloatArray:
    """Return the nearest table whose rows, along the last axis, are probability distributions.

    Examples
    --------
    >>> project_rows(np.array([[0.75, 0.75], [2.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    descending = -np.sort(-table, axis=-1)
    excess = np.cumsum(descending, axis=-1) - 1
    ranks = np.arange(1, table.shape[-1] + 1)
    support = (descending - excess / ranks > 0).sum(axis=-1, keepdims=True)
    level = np.take_along_axis(excess, support - 1, axis=-1) / support
    projected = np.maximum(table - level, 0.0)
    return np.asarray(projected / projected.sum(axis=-1, keepdims=True))


def gradient_step(
    game: Game,
    position: Position,
    weights: FloatArray,
    *,
    step_size: float,
    anchor: tuple[JointPolicy, float] | None = None,
) -> Position:
    """Let all agents at once follow the gradient of Σ_l w_l V^l, each of its own reward and of the shared costs.

    Parameters
    ----------
    game
        Any game.
    position
        Where the agents stand.
    weights : [1 + k]
        The weight of the own reward, then of each cost.
    step_size
        What the gradient is multiplied by.
    anchor
        Where to be pulled to, if anywhere.
    """
    tables = []
    for agent, table in enumerate(position.policy):
        direction = np.tensordot(weights, policy_gradients(position.induced_cmdp(agent), table), axes=1)
        if anchor is not None:
            direction = direction + anchor[1] * (anchor[0][agent] - table)
        tables.append(project_rows(table + step_size * direction))
    return game.at(JointPolicy(tuple(tables)))


def squared_distance(one: JointPolicy, other: JointPolicy) -> float:
    """Return ‖one − other‖², the sum over all entries."""
    return float(sum(((mine - theirs) ** 2).sum() for mine, theirs in zip(one, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Scales:
    """Sizes that free the step sizes of units."""

    reward: float  # |∇V^r|: the largest entry of a gradient along the simplex
    costs: FloatArray  # [k]: |∇V^c|
    thresholds: FloatArray  # [k]

    @classmethod
    def of(cls, game: Game, position: Position) -> Scales:
        """Look at two positions, because a gradient can vanish at one of them."""
        positions = (position, game.at(JointPolicy.uniform(game.policy_shapes)))
        sizes = np.max([_gradient_sizes(each, agent) for each in positions for agent in range(game.num_agents)], axis=0)
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


def _primal_dual(run: Run, start: JointPolicy, *, settings: LagrangianGradient) -> Iterator[Position]:
    """Yield the start and every iterate, until the iterations are used up or nothing moves."""
    position = run.see(run.game.at(start))
    yield position
    scales = Scales.of(run.game, position)
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
