"""The contract between a game and everything that is done with it.

A `Game` knows its agents, its budget and its time. `game.at(policy)` is a `Position`: the game as it stands when everybody plays
that policy, which can say what each agent gets, what the budget has left, and which CMDP an agent faces when only it moves.
"""

from __future__ import annotations

from typing import Any, Protocol

from cmpg.checks import FloatArray
from cmpg.cmdp.model import CMDP
from cmpg.policy import JointPolicy, PolicyShape


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
    def rounding(self) -> float:
        """The relative error of `costs`, and of `values` measured against the sum of |r|."""

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies (Eqs. 7-9)."""

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
        """What a policy may depend on: "joint-state policies" or "own-state policies"."""

    def at(self, policy: JointPolicy) -> Position:
        """Return the game as it stands at a joint policy."""

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(uniform policy), which is well defined where the game has a potential."""
