"""A counting game at a joint policy: what its agents have, and what each of them faces."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.evaluation import DEEPEST, Underflow, cost_rounding, evaluate, occupancy
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.support import Forbidden, Successors, forbidden_in
from cmpg.games.counting.classes import Counts
from cmpg.games.game import binds_of, bound_cmdp
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame

MAX_DIGITS = 250
"""Where all A^n joint actions are equally probable, their probability must have fewer zeros than this to be a float."""


@dataclass(frozen=True, eq=False)
class CountingPosition:
    """A counting game at a joint policy."""

    game: CountingGame
    policy: JointPolicy
    counts: Counts
    mover: int = 0  # the agent that moved last: what it faces is known

    __repr__ = fields_line

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        # All agents see the same state, so its distribution can be read from any agent's CMDP: the mover's is at hand.
        visits = occupancy(self._unmasked(self.mover), self.policy[self.mover]).sum(axis=-1)
        by_class = self.game.class_rewards.any()
        values = []
        for agent, table in enumerate(self.policy):
            # Single counts are cheap; what all agents face is computed only where the reward needs it.
            reward = self.induced_cmdp(agent).reward if by_class else self._count_reward(agent)
            values.append((visits * (table * reward).sum(axis=-1)).sum())
        return np.array(values)

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return evaluate(self._unmasked(self.mover), self.policy[self.mover]).costs

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return np.asarray(self.game.thresholds - self.costs)

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        return cost_rounding(self._unmasked(self.mover), self.costs)

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies."""
        if binds_of(self.game)[agent].all():
            return self._unmasked(agent)
        if agent not in self._masked:
            self._masked[agent] = bound_cmdp(self._unmasked(agent), binds_of(self.game)[agent])
        return self._masked[agent]

    def _unmasked(self, agent: int) -> CMDP:
        """The same with all constraints, whether they bind the agent or not."""
        if agent not in self._cmdps:
            alike = self._alike(agent)
            self._cmdps[agent] = self._induce(agent) if alike is None else self._cmdps[alike]
        return self._cmdps[agent]

    def _alike(self, agent: int) -> int | None:
        """Return an agent of the same kind who does the same for sure: both face the same, to the last bit."""
        actions = self.counts.pure.actions[agent]
        if actions[0] < 0:
            return None
        first = self._first.setdefault((self.game.kinds[agent], actions.tobytes()), agent)
        return first if first in self._cmdps else None

    @cached_property
    def _first(self) -> dict[tuple[int, bytes], int]:
        """Which agent was queried first, of each kind and all that it does."""
        return {}

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation of one agent takes, or None where a budget is not hard."""
        game = self.game
        if not binds_of(game)[agent, constraint]:
            return None
        if game.num_agents * np.log10(game.num_actions[0]) > MAX_DIGITS:
            return None
        classes = self._possible.of_classes(agent)
        possible = np.asarray(classes > 0).reshape(game.num_steps, game.num_states, *classes.shape[1:])
        costs = np.broadcast_to(game.costs[constraint][:, :, None], possible.shape)
        first = np.take_along_axis(costs, possible.argmax(axis=-1)[..., None], axis=-1)
        among = np.where(possible, costs, first)
        moves = np.matmul(possible.astype(np.float64), np.asarray(game.transition > 0, dtype=np.float64))
        after = [Successors.of(step.reshape(-1, game.num_states)) for step in moves]
        left = Fraction(game.thresholds[constraint])
        cmdp = self.induced_cmdp(agent)
        return forbidden_in(cmdp, among.min(axis=-1), among.max(axis=-1), left=left, after=after)

    @cached_property
    def _possible(self) -> Counts:
        """The counts if all agents play all that they may play equally often: no probability is too small then."""
        played = (np.asarray(table > 0) for table in self.policy)
        even = JointPolicy(tuple(each / each.sum(axis=2, keepdims=True) for each in played))
        return Counts.at(self.game.census, even)

    def underflow(self) -> Underflow | None:
        """Return what products of probabilities too small for floats can hide, or None where none is that small."""
        game = self.game
        if game.discount is None and game.number_sizes.depth + float(self.policy.depths().sum()) > DEEPEST:
            return None
        sizes = game.number_sizes
        return Underflow.behind(self._unmasked(self.mover).rounding, rewards=sizes.rewards, costs=sizes.costs)

    def replace(self, agent: int, table: Any) -> CountingPosition:
        """Return the position after one agent has changed its policy; what that agent faces stays."""
        policy = self.policy.move(agent, table)
        moved = CountingPosition(self.game, policy, self.counts.replace(agent, policy), agent)
        if agent in self._cmdps:
            moved._cmdps[agent] = self._cmdps[agent]
        return moved

    @cached_property
    def _cmdps(self) -> dict[int, CMDP]:
        return {}

    @cached_property
    def _masked(self) -> dict[int, CMDP]:
        return {}

    def class_probabilities(self, agent: int) -> FloatArray:
        """Return how likely each class of counts is, by what one agent plays: [H, S, A, C]."""
        by_row = self.counts.of_classes(agent)
        return np.asarray(by_row.reshape(self.game.num_steps, self.game.num_states, *by_row.shape[1:]))

    def _induce(self, agent: int) -> CMDP:
        game = self.game
        probabilities = self.class_probabilities(agent)
        transition = np.matmul(probabilities, game.transition)
        costs = [np.matmul(probabilities, cost[..., None])[..., 0] for cost in game.costs]
        reward = self._count_reward(agent)
        if game.class_rewards.any():
            reward = reward + (probabilities * game.class_rewards).sum(axis=-1)
        return CMDP(
            transition=frozen(transition),
            reward=frozen(reward),
            costs=frozen(np.stack(costs)) if costs else frozen(np.zeros((0, 1, *transition.shape[1:3]))),
            thresholds=game.thresholds,
            initial=game.initial,
            horizon=game.horizon,
            discount=game.discount,
            entry_roundings=self.counts.roundings(agent) + max(game.num_classes, game.num_agents) + 3,
            averaged=game.number_sizes.averaged(agent),
            trusted=True,
        )

    def _count_reward(self, agent: int) -> FloatArray:
        """What the agent expects from its own action and how many share it: [H, S, A]."""
        return np.asarray(self.counts.expected(self.game.rewards, agent) + self.game.private_rewards[agent])
