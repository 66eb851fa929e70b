"""Starts: what can be said about a joint policy's costs before anything is learned.

The transition is unknown, but costs (or their bounds), the initial law and perhaps the possible next states are known.
Over all transitions that this leaves, V^{c_j}(π) lies between a floor and a ceiling; with one step both are exact.

- Ceilings at most α: the policy meets the constraints whatever the transition is; nothing need be assumed.
- A floor above α: it cannot meet them, and is refused before the first sample.
- Otherwise somebody must vouch for it. Episodes can refute that (`refuted`), never quite prove it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.cmdp.box import worst_case
from cmpg.errors import InfeasibleError
from cmpg.learning.confidence import estimate, hoeffding_radius
from cmpg.learning.samples import Known, Returns
from cmpg.learning.simulator import InducedProblem, Simulator
from cmpg.policy import JointPolicy


class StartError(InfeasibleError):
    """A start does not meet the constraints; `result` holds how far the run had come, where it had begun."""

    result: object = None


@dataclass(frozen=True, eq=False)
class CostRange:
    """Between what a policy can cost, whatever the transition is."""

    floors: FloatArray  # [k]
    ceilings: FloatArray  # [k]


def cost_range(simulator: Simulator, policy: JointPolicy) -> CostRange:
    """Bound the costs of a joint policy by what is known without a sample.

    Examples
    --------
    >>> from cmpg.learning.simulator import GameSimulator
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> simulator = GameSimulator(game, rng=np.random.default_rng(0))
    >>> bounds = cost_range(simulator, game.uniform_policy())
    >>> bounds.floors, bounds.ceilings
    (array([0.25]), array([0.25]))
    """
    problem = InducedProblem(simulator, 0, policy)
    belief = estimate(problem, problem.no_samples(), delta=0.5)  # without samples nothing depends on δ
    hopeful = belief.hopeful.nominal.costs
    floors = [-worst_case(belief.box, policy[0], -cost) for cost in hopeful]
    ceilings = [worst_case(belief.box, policy[0], cost) for cost in belief.worst_costs]
    return CostRange(np.array(floors), np.array(ceilings))


def safe_start(simulator: Simulator) -> JointPolicy | None:
    """Return a joint policy that meets the constraints whatever the transition is, or None where none was found.

    In every state it plays the joint action that is cheapest at once, all costs in units of their thresholds. For one
    constraint, and where every next state is possible, no policy has a lower ceiling.
    """
    known = simulator.known
    policy = _cheapest_at_once(known)
    met = np.all(cost_range(simulator, policy).ceilings <= known.thresholds)
    return policy if met else None


def _cheapest_at_once(known: Known) -> JointPolicy:
    if known.payoffs is None or known.num_constraints == 0:
        return JointPolicy.uniform(known.policy_shapes)
    costs = known.payoffs.costs
    units = np.where(known.thresholds > 0, known.thresholds, 1.0)
    worst = (costs / units.reshape(-1, *(1,) * (costs.ndim - 1))).max(axis=0)
    flat = worst.reshape(*worst.shape[:2], -1).argmin(axis=2)
    chosen = np.unravel_index(np.broadcast_to(flat, (known.horizon, known.num_states)), known.num_actions)
    return JointPolicy(tuple(np.eye(actions)[own] for actions, own in zip(known.num_actions, chosen, strict=True)))


def require_possible(simulator: Simulator, start: JointPolicy) -> CostRange:
    """Return the range of a start's costs, or raise StartError where it cannot meet the constraints."""
    bounds = cost_range(simulator, start)
    for j, threshold in enumerate(simulator.known.thresholds):
        if bounds.floors[j] > threshold:
            raise StartError(
                f"the start is infeasible: constraint {j} has the threshold {threshold:.6g}, and whatever the "
                f"transition is, the start costs at least {bounds.floors[j]:.6g}. Pass a feasible start."
            )
    return bounds


@dataclass(frozen=True, eq=False)
class MeasuredCosts:
    """What a policy was seen to cost, and how far off that can be."""

    costs: FloatArray  # [k]
    radii: FloatArray  # [k]
    thresholds: FloatArray  # [k]

    @property
    def refuted(self) -> bool:
        """Whether a cost is above its threshold even at the favourable end of its interval."""
        return bool(np.any(self.costs - self.radii > self.thresholds))

    def __str__(self) -> str:
        rows = zip(self.costs, self.radii, self.thresholds, strict=True)
        return ", ".join(f"{cost:.4g} ± {radius:.2g} against {limit:.4g}" for cost, radius, limit in rows)


def measured_costs(known: Known, returns: Returns, *, delta: float) -> MeasuredCosts:
    """Put Hoeffding's radius beside mean costs; all intervals hold together with probability 1 − δ."""
    spans = known.cost_spans.sum(axis=1)
    radii = hoeffding_radius(returns.episodes, span=spans, delta=delta / max(known.num_constraints, 1))
    return MeasuredCosts(returns.costs, radii, known.thresholds)
