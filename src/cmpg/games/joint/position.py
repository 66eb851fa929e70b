"""A joint game at a joint policy: what all agents get and spend, and the CMDP that each agent faces (Eqs. 7-9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, frozen
from cmpg.cmdp.evaluation import DEEPEST, Evaluation, Underflow, cost_rounding, evaluate
from cmpg.cmdp.mixed_rows import MixedRows
from cmpg.cmdp.model import CMDP, largest_sizes, mixed_size, run_depth, total_weight
from cmpg.cmdp.support import Successors, forbidden_in
from cmpg.games.game import binds_of, bound_cmdp
from cmpg.games.joint.averages import (
    BLOCK,
    Others,
    average_roundings,
    by_rows,
    over_others,
    played_rows,
    possible_moves,
    sparse_average,
)
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.cmdp.support import Forbidden
    from cmpg.games.joint.game import JointGame


MAX_ENTRIES = 20_000_000
"""What is possible is not looked up in tables with more entries than this."""

LARGE = 1 << 23
"""Where the CMDPs of all agents have more probabilities than this, only two are kept."""


@dataclass(frozen=True, eq=False)
class NumberSizes:
    """How large and how small the numbers of a game are: what rounding can do depends on it."""

    game: JointGame

    def averaged(self, agent: int | None) -> FloatArray:
        """Return `CMDP.averaged` of one agent, [1 + k], or of all: [n + k]."""
        if agent is None:
            return self._mixed
        return self._mixed[[agent, *range(self.game.num_agents, len(self._mixed))]]

    @cached_property
    def _mixed(self) -> FloatArray:
        """The largest sums of |r_i| and |c_j| in tables with both signs, and zero for the others: [n + k]."""
        game = self.game
        return np.array([mixed_size(table, game.horizon, game.discount) for table in (*game.rewards, *game.costs)])

    @cached_property
    def depth(self) -> float:
        """log₂ of the least product of the game's own probabilities along a run; see `Underflow`."""
        game = self.game
        return run_depth(game.initial, game.transition, game.num_steps, paid=(*game.rewards, *game.costs))


@dataclass(frozen=True, eq=False)
class JointPosition:
    """A joint game at a joint policy."""

    game: JointGame
    policy: JointPolicy
    recent: dict[int, tuple[Sequence[Any], CMDP, CMDP]] = field(default_factory=dict, repr=False)
    """The last CMDPs, with what the others played: shared by all positions that came from one another by moves."""

    __repr__ = fields_line

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        if self.game.is_sparse:
            return self._by_chain[0][: self.game.num_agents]
        return np.array([self.current(agent).value for agent in range(self.game.num_agents)])

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        if self.game.is_sparse:
            return self._by_chain[0][self.game.num_agents :]
        if binds_of(self.game)[0].all():
            return self.current(0).costs
        return evaluate(self._unmasked(0), self.policy[0]).costs

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return np.asarray(self.game.thresholds - self.costs)

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        if self.game.is_sparse:
            return self._by_chain[1]
        return cost_rounding(self._unmasked(0), self.costs)

    @property
    def rounding(self) -> float:
        """The error of values relative to the largest sum of |r|."""
        return self._by_chain[2] if self.game.is_sparse else self._unmasked(0).rounding

    def current(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP."""
        if self.game.is_sparse:
            return Evaluation(self.values[agent], np.where(binds_of(self.game)[agent], self.costs, 0.0))
        if agent not in self._evaluations:
            self._evaluations[agent] = evaluate(self.induced_cmdp(agent), self.policy[agent])
        return self._evaluations[agent]

    @cached_property
    def _by_chain(self) -> tuple[FloatArray, FloatArray, float]:
        """V^{r_i} and V^{c_j}, [n + k], how far the latter can be from the true ones, and the relative rounding.

        By the Markov chain of the policy: a CMDP of one action, whose costs are the rewards of agents 1, …, then c.
        """
        game = self.game
        lists, alone = played_rows(self.policy), np.zeros(1, dtype=np.int64)
        transition = MixedRows(game.transition, lists, 1, 0)
        tables = np.stack([by_rows(table, lists, alone)[..., 0] for table in (*game.rewards, *game.costs)])
        chain = CMDP(
            transition=transition,
            reward=frozen(tables[0, ..., None]),
            costs=frozen(tables[1:, ..., None]),
            thresholds=frozen(np.zeros(len(tables) - 1)),
            initial=game.initial,
            horizon=game.horizon,
            discount=game.discount,
            entry_roundings=self._roundings + 2 * game.num_actions[0] + 2,
            averaged=game.number_sizes.averaged(None),
            trusted=True,
        )
        found = evaluate(chain, np.ones((game.num_steps, game.num_states, 1)))
        rounding = cost_rounding(chain, found.costs)[game.num_agents - 1 :]
        return frozen(np.array([found.value, *found.costs])), frozen(rounding), chain.rounding

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies."""
        return self._known(agent)[2]

    def _unmasked(self, agent: int) -> CMDP:
        """The same with all constraints, whether they bind the agent or not."""
        return self._known(agent)[1]

    def _known(self, agent: int) -> tuple[Sequence[Any], CMDP, CMDP]:
        others = tuple(table for i, table in enumerate(self.policy.stored) if i != agent)
        known = self.recent.get(agent)
        if known is None or any(one is not other for one, other in zip(known[0], others, strict=True)):
            self.recent.pop(agent, None)
            while len(self.recent) >= self._most_recent:
                self.recent.pop(next(iter(self.recent)), None)
            cmdp = self._induce(agent)
            known = self.recent[agent] = others, cmdp, bound_cmdp(cmdp, binds_of(self.game)[agent])
        return known

    def underflow(self) -> Underflow | None:
        """Return what products of probabilities too small for floats can hide, or None where none is that small."""
        game = self.game
        if game.discount is None and game.number_sizes.depth + float(self.policy.depths().sum()) > DEEPEST:
            return None
        length = total_weight(game.horizon, game.discount)
        rewards, costs = (length * largest_sizes(tables) for tables in (game.rewards, game.costs))
        return Underflow.behind(self.rounding, rewards=rewards, costs=costs)

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation of one agent takes, or None where a budget is not hard."""
        game = self.game
        if not binds_of(game)[agent, constraint]:
            return None
        size = game.num_steps * game.num_states * math.prod(game.num_actions)
        if size * (1 if game.is_sparse else game.num_states) > MAX_ENTRIES:
            return None
        possible = [np.asarray(table > 0) for table in self.policy]
        least, most = over_others(game.costs[constraint], possible, keep=agent)
        left = Fraction(game.thresholds[constraint])
        after = [Successors.of(matrix) for matrix in possible_moves(game.transition, possible, keep=agent)]
        return forbidden_in(self.induced_cmdp(agent), least, most, left=left, after=after)

    def replace(self, agent: int, table: Any) -> JointPosition:
        """Return the position after one agent has changed its policy; what the others face is computed again."""
        moved = JointPosition(self.game, self.policy.move(agent, table), self.recent)
        # A half that was averaged over the agents of the other half, which have not moved, is still right.
        own_half = self._others.in_first_half(agent)
        moved._halves.update({key: mean for key, mean in self._halves.items() if key[1] == own_half})
        return moved

    @property
    def _most_recent(self) -> int:
        """How many CMDPs are kept: of every agent, where they are small."""
        agents, steps, states = self.game.num_agents, self.game.num_steps, self.game.num_states
        dense = steps * states * max(self.game.num_actions) * states
        return agents if self.game.is_sparse or agents * dense <= LARGE else 2

    @cached_property
    def _evaluations(self) -> dict[int, Evaluation]:
        return {}

    @cached_property
    def _others(self) -> Others:
        return Others(tuple(self.policy))

    @property
    def _roundings(self) -> int:
        dense = average_roundings(self.game.num_actions)
        return max(dense, average_roundings(self.game.num_actions, sparse=True)) if self.game.is_sparse else dense

    @cached_property
    def _halves(self) -> dict[tuple[str, bool], FloatArray]:
        """Tables that all agents share, averaged over one half of the agents, by name and half that is left."""
        return {}

    def _shared_average(self, name: str, table: FloatArray, agent: int) -> FloatArray:
        if self._others.start_size(table, keep=agent) > BLOCK:
            return self._others.average(table, keep=agent)
        key = (name, self._others.in_first_half(agent))
        if key not in self._halves:
            self._halves[key] = self._others.start(table, keep=agent)
        return self._others.finish(self._halves[key], keep=agent)

    def _induce(self, agent: int) -> CMDP:
        game = self.game
        transition: Any
        if game.is_sparse:
            transition, average = sparse_average(game.transition, self.policy, keep=agent)
            reward, costs = average(game.rewards[agent]), [average(cost) for cost in game.costs]
        else:
            transition = frozen(self._shared_average("transition", game.transition, agent))
            reward = self._others.average(game.rewards[agent], keep=agent)
            costs = [self._shared_average(f"cost {j}", cost, agent) for j, cost in enumerate(game.costs)]
        return CMDP(
            transition=transition,
            reward=frozen(reward),
            costs=frozen(np.stack(costs) if costs else np.zeros((0, 1, game.num_states, game.num_actions[agent]))),
            thresholds=game.thresholds,
            initial=game.initial,
            horizon=game.horizon,
            discount=game.discount,
            entry_roundings=self._roundings,
            averaged=game.number_sizes.averaged(agent),
            trusted=True,
        )
