"""A joint game at a joint policy: what everybody gets and spends, and the CMDP that each agent faces (Eqs. 7-9)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.evaluation import Evaluation, cost_rounding, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.games.joint.averages import Others, average_roundings, average_rows
from cmpg.games.joint.exact_costs import exact_costs
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.games.joint.game import JointGame


@dataclass(frozen=True, eq=False)
class JointPosition:
    """A joint game at a joint policy."""

    game: JointGame
    policy: JointPolicy

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        return np.array([self.present(agent).value for agent in range(self.game.num_agents)])

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return evaluate(self.induced_cmdp(0), self.policy[0]).costs

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return np.asarray(self.game.thresholds - self.costs)

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        return cost_rounding(self.induced_cmdp(0), self.costs)

    def present(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP."""
        return evaluate(self.induced_cmdp(agent), self.policy[agent])

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies."""
        if agent not in self._cmdps:
            self._cmdps[agent] = self._induce(agent)
        return self._cmdps[agent]

    def same_problem(self, agent: int, earlier: JointPosition) -> bool:  # noqa: ARG002
        """Return False: whoever moves changes the averages of everybody else."""
        return False

    def exact_costs(self, policy: JointPolicy) -> list[Fraction] | None:
        """Return V^{c_j} of the policy as it was given, exactly, or None where too much can happen."""
        return exact_costs(self.game, policy)

    def replace(self, agent: int, table: Any) -> JointPosition:
        """Return the position after one agent has changed its policy; what the others face is computed anew."""
        moved = JointPosition(self.game, self.policy.move(agent, table))
        if agent in self._cmdps:
            moved._cmdps[agent] = self._cmdps[agent]
        own_half = self._others.in_first_half(agent)
        moved._halves.update({key: mean for key, mean in self._halves.items() if key[1] == own_half})
        return moved

    @cached_property
    def _cmdps(self) -> dict[int, CMDP]:
        return {}

    @cached_property
    def _others(self) -> Others:
        return Others(self.policy)

    @property
    def _roundings(self) -> int:
        dense = average_roundings(self.game.num_actions)
        return max(dense, average_roundings(self.game.num_actions, sparse=True)) if self.game.is_sparse else dense

    @cached_property
    def _halves(self) -> dict[tuple[str, bool], FloatArray]:
        """Tables that all agents share, averaged over one half of the agents, by name and half that is left."""
        return {}

    def _shared_average(self, name: str, table: FloatArray, agent: int) -> FloatArray:
        key = (name, self._others.in_first_half(agent))
        if key not in self._halves:
            self._halves[key] = self._others.start(table, keep=agent)
        return self._others.finish(self._halves[key], keep=agent)

    def _induce(self, agent: int) -> CMDP:
        game = self.game
        if game.is_sparse:
            transition: Any = average_rows(game.transition, self.policy, keep=agent)
        else:
            transition = frozen(self._shared_average("transition", game.transition, agent))
        costs = [self._shared_average(f"cost {j}", cost, agent) for j, cost in enumerate(game.costs)]
        return CMDP(
            transition=transition,
            reward=frozen(self._others.average(game.rewards[agent], keep=agent)),
            costs=frozen(np.stack(costs) if costs else np.zeros((0, 1, game.num_states, game.num_actions[agent]))),
            thresholds=game.thresholds,
            initial=game.initial,
            horizon=game.horizon,
            discount=game.discount,
            entry_roundings=self._roundings,
            trusted=True,
        )
