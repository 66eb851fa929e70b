"""A local game at a joint policy: what all agents get and spend, and the CMDP that each agent faces.

`LocalGame` has the mathematics. Everything here is computed when it is first needed; what the next question is likely
to need is remembered in cells that are replaced whole, so that threads may share a position.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, frozen
from cmpg.cmdp.evaluation import DEEPEST, Evaluation, Underflow
from cmpg.cmdp.model import CMDP, drop_broadcast
from cmpg.cmdp.support import Forbidden
from cmpg.games.game import AgentBounds, DynamicsEnd, binds_of, bound_cmdp
from cmpg.games.local.loads import LoadTree, MarginalCosts
from cmpg.games.local.packed import read_usages
from cmpg.games.local.sparse import PossibleLoads, SparseLoads
from cmpg.policy import CompactTable, JointPolicy
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.games.local.game import LocalGame
    from cmpg.games.local.packed import PackedGame

RECENT = 3
"""A position remembers the CMDPs of this many agents: enough for a loop over agents, whatever their number."""

LONG_PLAN = 2000
"""Where agents have more steps times states than this on average, a plan takes longer than waking a thread."""

AGENTS_PER_PROPOSAL, LARGEST_BLOCK = 25, 16
"""There, one agent in 25 plans at the same time, and at most 16: more of them would be in each other's way."""


@dataclass(frozen=True, eq=False)
class LocalPosition:
    """A local game at a joint policy."""

    game: LocalGame
    policy: JointPolicy
    loads: LoadTree | SparseLoads
    private_values: FloatArray  # [n]
    private_costs: FloatArray  # [n, k]

    __repr__ = fields_line

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        if not self.game.tables.has_delay:
            return frozen(self.private_values.copy())
        judged = self.agent_bounds(np.zeros((self.game.num_agents, self.game.num_constraints)))
        if judged is not None:
            return judged.values
        return np.array([self.value_of(agent) for agent in range(self.game.num_agents)])

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return np.asarray(self.private_costs.sum(axis=0) + self.loads.costs)

    @cached_property
    def rounding(self) -> float:
        """The relative error of `costs` where none is negative, and of `values` against the sum of |r|."""
        return self.game.rounding + self.loads.more_roundings * UNIT_ROUNDOFF

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return np.asarray(self.game.thresholds - self.costs)

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        return np.asarray(self.rounding * (np.abs(self.costs) + self.game.largest_costs))

    @property
    def potential(self) -> float:
        """Φ, less that of `JointPolicy.reference`."""
        return self.rosenthal - self.game.reference_potential

    @cached_property
    def rosenthal(self) -> float:
        """Φ = Σ_i private values − E Σ_h Σ_e Σ_{m ≤ load} delay[h, e, m]."""
        private = float(self.private_values.sum())
        if not self.game.tables.has_delay:
            return private
        return private - self.game.tables.total_delay(self._tree.total)

    @property
    def expected_load(self) -> FloatArray:
        """The mean load of each resource at each step: [H, E]."""
        return self.loads.mean

    def load_probabilities(self) -> FloatArray:
        """Return the probability that m agents use a resource, by step: [n + 1, H, E]."""
        loads = np.ones((1, *self.usage(0).shape))
        for agent in range(self.game.num_agents):
            used, more = self.usage(agent), np.zeros((len(loads) + 1, *loads.shape[1:]))
            more[:-1] = loads * (1 - used)
            more[1:] += loads * used
            loads = more
        return loads

    def resource_costs(self) -> FloatArray:
        """Return E[g_j(load)] of each resource, by step: [k, H, E]."""
        costs = self.game.load_costs
        spread = np.broadcast_to(costs, (len(costs), self.game.horizon, *costs.shape[2:]))
        return np.asarray(np.einsum("mhe,khem->khe", self.load_probabilities(), spread))

    def agent_costs(self) -> FloatArray:
        """Return what each agent spends by itself, by step: [k, H, n]."""
        game = self.game
        spent = np.zeros((game.num_constraints, game.horizon, game.num_agents))
        for i, agent in enumerate(game.agents):
            if agent.costs is not None:
                visits = agent.visits(self.policy[i]).pairs.reshape(self.policy[i].shape)
                costs = np.broadcast_to(agent.costs, (len(spent), *visits.shape))
                spent[:, :, i] = np.einsum("hsa,khsa->kh", visits, costs)
        return spent

    def usage(self, agent: int) -> FloatArray:
        """Return the probability that one agent uses each resource, by step: [H, E]."""
        return self.loads.usage(agent)

    def current(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP, from its use of resources alone."""
        return Evaluation(self.value_of(agent), np.where(binds_of(self.game)[agent], self._own_costs(agent), 0.0))

    def _own_costs(self, agent: int) -> FloatArray:
        """What one agent adds to each cost: [k]."""
        prices = self._marginal_costs(agent).costs
        return np.asarray(self.private_costs[agent] + np.einsum("jhe,he->j", prices, self.usage(agent)))

    def value_of(self, agent: int) -> float:
        """Return V^{r_i} of one agent."""
        private = float(self.private_values[agent])
        delay = self._marginal_costs(agent).delay if self.game.tables.has_delay else None
        return private if delay is None else private - float((self.usage(agent) * delay).sum())

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces on its own states while the others keep to their policies."""
        recent = self._recent[0]
        for known, cmdp in recent:
            if known == agent:
                return cmdp
        cmdp = self._induce(agent)
        self._recent[0] = ((agent, cmdp), *recent[: RECENT - 1])
        return cmdp

    def replace(self, agent: int, table: Any) -> LocalPosition:
        """Return the position after one agent has changed its policy; only what that touches is computed."""
        policy = self.policy.move(agent, table)
        values, costs = self.private_values.copy(), self.private_costs.copy()
        loads: LoadTree | SparseLoads
        if isinstance(self.loads, SparseLoads):
            usage, value, spent = self.loads.packed.accounts([policy.stored[agent]], [agent])
            loads, values[agent], costs[agent] = self.loads.replace(agent, usage), value[0], spent[0]
        else:
            account = self.game.account(self.game.agents[agent], policy[agent])
            loads, values[agent], costs[agent] = self.loads.replace(agent, account.usage), account.value, account.costs
        moved = LocalPosition(self.game, policy, loads, values, costs)
        # What the others do has not changed.
        moved._last_marginal_costs[0] = (agent, self._marginal_costs(agent))
        if self._possible[0] is not None:
            moved._possible[0] = self._possible[0].replace(agent, policy[agent])
        return moved

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation of one agent takes, or None where a budget is not hard."""
        if not binds_of(self.game)[agent, constraint]:
            return None
        if isinstance(self.loads, SparseLoads) and self.loads.surely_vary(agent, self.game.load_costs[constraint]):
            return None  # nothing is hard that chance decides, and following all policies would take long
        return self._possible_loads().forbidden(agent, constraint)

    def _possible_loads(self) -> PossibleLoads:
        possible = self._possible[0]
        if possible is None:
            possible = self._possible[0] = PossibleLoads.at(self.game, self.policy)
        return possible

    def underflow(self) -> Underflow:
        """Return what products of probabilities too small for floats can hide.

        If no agent's own probabilities are that small, it is known who may use what, and which loads there can be: a
        cost that all of them have at zero is zero. Products over many agents may be too small even so; but then their
        cost is positive, and no threshold of zero is met.
        """
        game = self.game
        lost = Underflow.behind(self.rounding, rewards=game.reward_sizes, costs=game.cost_sizes)
        alone = float((self.policy.depths().sum(axis=1) + game.depths).min())
        if alone <= DEEPEST or self.costs.all():
            return lost
        users = np.sum([self.usage(agent) > 0 for agent in range(game.num_agents)], axis=0)
        largest = np.maximum.accumulate(np.abs(game.load_costs), axis=-1)
        spread = np.broadcast_to(largest, (len(largest), game.horizon, *largest.shape[2:]))
        free = ~np.take_along_axis(spread, users[None, ..., None], axis=-1).any(axis=(1, 2, 3))
        gentle = (game.largest_costs == 0) & ~self.private_costs.any(axis=0)
        return Underflow(lost.rewards, np.where(free & gentle, 0.0, lost.costs))

    def best_response_dynamics(
        self,
        multipliers: FloatArray,
        *,
        turns: int,
        worth: float,
        waiting: Collection[int] = (),
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        workers: int = 1,
    ) -> DynamicsEnd[LocalPosition] | None:
        """Let agents in turn move to what is best for them at multipliers [k]; None without compiled kernels.

        `DynamicsTerms` has the other parameters. It is over as well when no agent has moved in as many turns as there
        are agents. Where plans are long, several agents plan at once.
        """
        if not isinstance(self.loads, SparseLoads) or not binds_of(self.game).all():
            return None  # agents that different constraints bind do not pay the same
        packed, game = self.loads.packed, self.game
        values, costs = self.private_values.copy(), self.private_costs.copy()
        actions, moved = np.zeros(packed.num_entries, dtype=packed.action_type), np.zeros(len(values), dtype=np.int8)
        waits = np.isin(np.arange(len(values)), list(waiting)).astype(np.int8)
        seed = 0 if rng is None else int(rng.integers(1, 2**63))  # 0: the first action wins
        seconds = min(deadline - time.monotonic(), 1e9)
        block = 1 if seed else _block_size(packed)  # random ties are drawn turn by turn
        prices = np.ascontiguousarray(multipliers, dtype=np.float64)
        free, by_cost = np.zeros(len(prices)), not prices.all()
        # Weights of (delay, costs): what all agents pay; the delays alone, if there are any; and all costs alike, if a
        # multiplier is zero, to break ties in favour of spending less.
        weights = [[1.0, *prices]]
        if packed.has_delay:
            weights.append([1.0, *free])
        if by_cost:
            weights.append([0.0, *free + 1])
        limits = (turns, worth, seconds, block, min(workers, block))
        found, moves = packed.kernels.best_response_dynamics(
            packed.fields,
            self.loads.arrays,
            values,
            costs,
            prices,
            np.array(weights),
            by_cost,
            seed,
            *limits,
            actions,
            moved,
            waits,
            packed.actions_of,
        )
        if not moves:
            return DynamicsEnd(self, 0)
        policy = self.policy
        shapes = game.policy_shapes
        tables = list(policy.stored)
        for agent in np.flatnonzero(moved):
            steps, states, choices = shapes[agent]
            own = actions[packed.actions_of[agent] : packed.actions_of[agent] + steps * states]
            tables[agent] = CompactTable.certain(own.reshape(steps, states).copy(), choices)
        loads = SparseLoads(packed, *read_usages(found))
        return DynamicsEnd(LocalPosition(game, policy.with_tables(tables), loads, values, costs), moves)

    def agent_bounds(self, multipliers: FloatArray, agents: range | None = None) -> AgentBounds | None:
        """Bound what agents could get at their multipliers [n, k], and say what they have; None without kernels."""
        if not isinstance(self.loads, SparseLoads):
            return None
        packed, queried = self.loads.packed, range(self.game.num_agents) if agents is None else agents
        bound = binds_of(self.game)[queried.start : queried.stop]
        multipliers = np.ascontiguousarray(np.where(bound, multipliers, 0.0), dtype=np.float64)
        private = (self.private_values, self.private_costs)
        maxima, current, sizes = packed.judge(self.loads.arrays, queried, private, multipliers)
        # Weak duality: λ·(what is left for agent i) + max V^{r − λc}; what the agent spends itself is left for it, too.
        left = current[:, 1:] + self.slacks
        bounds = maxima + (multipliers * left).sum(axis=1)
        sizes[:, 0] += self.game.cancelling[queried.start : queried.stop]
        sizes[:, 1:] += self.game.largest_costs
        largest = sizes[:, 0] + (multipliers * (sizes[:, 1:] + np.abs(left))).sum(axis=1)
        rounding = 2 * packed.rounding[queried.start : queried.stop] * largest + 2 * multipliers @ self.cost_rounding
        return AgentBounds(frozen(current[:, 0].copy()), bounds, rounding)

    def bounded_together(self, agent: int) -> range:
        """Return an agent and those after it who are judged at little more than the price of one."""
        agents = self.game.num_agents
        # Counting the loads of all agents takes about as long as planning for the square root of their number.
        together = math.isqrt(agents) if isinstance(self.loads, SparseLoads) else 1
        return range(agent, min(agent + together, agents))

    @cached_property
    def _tree(self) -> LoadTree:
        """The dense loads, for what no kernel computes."""
        if isinstance(self.loads, LoadTree):
            return self.loads
        return LoadTree.grow(self.game.tables, [self.usage(agent) for agent in range(self.game.num_agents)])

    @cached_property
    def _recent(self) -> list[tuple[tuple[int, CMDP], ...]]:
        # One cell that is replaced whole, so that threads may share it.
        return [()]

    @cached_property
    def _possible(self) -> list[PossibleLoads | None]:
        return [None]

    @cached_property
    def _last_marginal_costs(self) -> list[tuple[int, MarginalCosts]]:
        return [(-1, MarginalCosts(None, np.zeros(0)))]

    def _marginal_costs(self, agent: int) -> MarginalCosts:
        known, marginal_costs = self._last_marginal_costs[0]
        if known != agent:
            marginal_costs = self.loads.marginal_costs(agent)
            self._last_marginal_costs[0] = (agent, marginal_costs)
        return marginal_costs

    def _induce(self, agent: int) -> CMDP:
        game, member = self.game, self.game.agents[agent]
        marginal = self._marginal_costs(agent)
        shape = (game.horizon, *member.reward.shape[1:])
        charged = [member.charge(prices) for prices in marginal.costs]
        costs = np.stack(charged) if charged else np.zeros((0, *shape))
        if member.costs is not None:
            costs = costs + drop_broadcast(member.costs)
        reward = (
            member.reward if marginal.delay is None else drop_broadcast(member.reward) - member.charge(marginal.delay)
        )
        behind = game.tables.entry_roundings + self.loads.more_roundings
        roundings = game.usage_roundings + behind + member.max_uses + 4
        reward, costs = _spread(reward, (len(reward), *shape[1:])), _spread(costs, (len(charged), *shape))
        cmdp = CMDP(
            transition=member.kernel,
            reward=reward,
            costs=costs,
            thresholds=frozen(self._thresholds(agent)),
            initial=member.initial,
            horizon=game.horizon,
            # A CMDP counts these once per step, as averaged transitions need; here no transition is averaged.
            entry_roundings=-(-roundings // game.horizon),
            averaged=np.concatenate([[game.cancelling[agent]], game.largest_costs]),
            trusted=True,
        )
        return bound_cmdp(cmdp, binds_of(game)[agent])

    def _thresholds(self, agent: int) -> FloatArray:
        """α less what the others spend, less the rounding of the whole; but no less than what the agent spends now."""
        game, spent = self.game, self.loads.costs_without(agent)
        if game.has_private_costs:
            spent = spent + self.private_costs[np.arange(game.num_agents) != agent].sum(axis=0)
        left = game.thresholds - spent
        # Lowered by the rounding of the whole cost, so that a response within the margin keeps V^c ≤ α exactly.
        margins = self.rounding * (np.abs(game.thresholds) + game.largest_costs)
        return np.asarray(np.maximum(left - margins, np.minimum(left, self._own_costs(agent))))


def _block_size(packed: PackedGame) -> int:
    """Return how many agents are queried at the same time when they take turns; it does not depend on threads."""
    agents = len(packed.actions_of)
    if packed.num_entries <= LONG_PLAN * agents:
        return 1
    return min(max(agents // AGENTS_PER_PROPOSAL, 1), LARGEST_BLOCK)


def _spread(table: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return a table of which some axes have length one as a view of this shape; see `drop_broadcast`."""
    return frozen(table) if table.shape == shape else np.broadcast_to(table, shape)
