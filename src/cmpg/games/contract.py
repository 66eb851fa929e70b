"""The contract between a game and everything that is done with it.

A `Game` knows its agents, its budget and its time. `game.at(policy)` is a `Position`: the game as it stands when
everybody plays that policy, which can say what each agent gets, what the budget has left, and which CMDP an agent
faces when only it moves.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from cmpg.arrays import FloatArray, IntArray
from cmpg.cmdp.evaluation import Evaluation, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.policy import JointPolicy, PolicyShape

JOINT_STATE = "joint-state policies"
OWN_STATE = "own-state policies"


class Position(Protocol):
    """A game at a joint policy."""

    @property
    def policy(self) -> JointPolicy:
        """The joint policy."""

    @property
    def values(self) -> FloatArray:
        """V^{r_i}, one per agent: [n]."""

    @property
    def costs(self) -> FloatArray:
        """V^{c_j}, one per constraint: [k]."""

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies (Eqs. 7-9)."""

    def present(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP."""

    def replace(self, agent: int, table: Any) -> Position:
        """Return the position after one agent has changed its policy."""


class Game(Protocol):
    """Several agents, shared constraints, finite or discounted time."""

    @property
    def num_agents(self) -> int:
        """n."""

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""

    @property
    def horizon(self) -> int | None:
        """H, or None where the sum is discounted."""

    @property
    def discount(self) -> float | None:
        """γ, or None where the horizon is finite."""

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S_i, A_i] of each agent's policy."""

    @property
    def reward_ranges(self) -> FloatArray:
        """G_i: no two joint policies differ by more in V^{r_i}: [n]."""

    @property
    def information(self) -> str:
        """What a policy may depend on: `JOINT_STATE` or `OWN_STATE`.

        A Nash claim is against deviations of the same kind.
        """

    def at(self, policy: JointPolicy) -> Position:
        """Return the game as it stands at a joint policy."""

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(uniform policy), which is well defined where the game has a potential."""


@runtime_checkable
class CentralPlanner(Protocol):
    """A game that one planner, who chooses all actions, can plan for."""

    def joint_cmdp(self) -> CMDP:
        """Return the planner's CMDP; its costs and transitions are those of the game, in floats."""

    def split(self, joint_actions: IntArray) -> JointPolicy:
        """Split the planner's deterministic choices [H, S] into one table per agent."""


@runtime_checkable
class IndependentAgents(Protocol):
    """A game whose agents may share nothing but sums of private costs (the paper's Example 2)."""

    def private_cmdps(self) -> tuple[CMDP, ...] | None:
        """Return each agent's CMDP with its private costs, or None where the agents meet in a constraint."""


def cheapest_policy(game: CentralPlanner, weights: FloatArray) -> tuple[JointPolicy, float]:
    """Return a deterministic policy of least V^{λ·c} over all joint policies, and that cost (the paper's Example 1)."""
    cheapest = plan(game.joint_cmdp(), weights, reward_weight=0.0)
    return game.split(cheapest.actions), float(weights @ cheapest.costs)


def potential_by_moves(game: Game, policy: JointPolicy) -> float:
    """Return Φ(policy) − Φ(uniform policy), by moving one agent at a time (Lemma 1); exact where a potential exists."""
    position, total = game.at(JointPolicy.uniform(game.policy_shapes)), 0.0
    for agent, table in enumerate(policy):
        cmdp = position.induced_cmdp(agent)
        total += float(evaluate(cmdp, table).value - evaluate(cmdp, position.policy[agent]).value)
        position = position.replace(agent, table)
    return total
