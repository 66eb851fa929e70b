"""Local games: agents with their own states and dynamics, who meet only at shared resources.

Agent i moves on its own states by its own transition, and its policy sees its own state. At (h, s, a) it uses some
resources, each once or not at all. The load of a resource is how many agents use it at that step; each user of e at
load m gets −delay[h, e, m], and constraint j pays load_costs[j, h, e, m] once per resource and step, beside private
costs.

Because the dynamics are independent, the joint state is never built: agent i's problem is a CMDP on its own states, in
which the others appear only through the distribution of their load N on each resource (see `loads`):
    reward = private − Σ_{e used} E[delay(1 + N)],    cost_j = private + Σ_{e used} E[g_j(1 + N) − g_j(N)],
    threshold_j = α_j − what the others spend.

This is an exact Markov potential game (class C3), with Rosenthal's potential
    Φ = Σ_i private values − E Σ_h Σ_e Σ_{m = 1..load} delay[h, e, m],
among own-state policies. Nash means: against deviations to other own-state policies.

Guarantee on rounding: each threshold of an induced CMDP is lowered by the largest error that rounding can have in the
cost of all agents together, so that a response that meets it keeps V^c ≤ α in exact arithmetic; except where the
agent's current policy has no room for that, and then it may spend what it spends now. That error is `rounding`
times α where costs are non-negative and do not fall as loads grow, and times the largest cost there can be otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import (
    UNIT_ROUNDOFF,
    FloatArray,
    Numbers,
    check_shape,
    folded_fields,
    frozen,
    numbers,
    set_folded_fields,
    to_floats,
)
from cmpg.cmdp.model import CMDP, drop_broadcast, run_depth
from cmpg.games.game import (
    Information,
    Names,
    Objective,
    PotentialKind,
    PotentialProof,
    Stepper,
    UpperBound,
    checked_labels,
    played_policy,
    random_policy_of,
    uniform_policy_of,
)
from cmpg.games.local.agent import LocalAgent, checked_tables, distinct
from cmpg.games.local.kernels import compiled
from cmpg.games.local.loads import LoadTables, LoadTree, load_tables
from cmpg.games.local.packed import PackedGame
from cmpg.games.local.position import LocalPosition
from cmpg.games.local.relaxation import least_left, local_bound
from cmpg.games.local.sparse import SparseLoads
from cmpg.games.names import PLAIN, Legend, explained
from cmpg.games.play import LocalStepper
from cmpg.games.summaries import game_summary
from cmpg.policy import JointPolicy, PolicyShape
from cmpg.proof.claim import AgentTables, Csr, LocalTables
from cmpg.summaries import html, line, text

__all__ = ["LocalAgent", "LocalGame", "LocalPosition"]


@dataclass(frozen=True, eq=False)
class LocalGame:
    """n agents on their own states, with shared resources and shared constraints.

    Examples
    --------
    Two agents, one step; action 1 uses the only resource, is worth 1, and costs each user 0.25 per user. Both
    may use it at the same time with probability 0.5 at most.

    >>> agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = LocalGame(agents=(agent, agent), delay=[[[0, 0.25, 0.5]]], load_costs=[[[[0, 0, 1]]]], thresholds=[0.5],
    ...                  horizon=1)
    >>> position = game.at(game.uniform_policy())
    >>> position.values, position.costs
    (array([0.3125, 0.3125]), array([0.25]))
    """

    _: KW_ONLY
    agents: tuple[LocalAgent, ...]  # n
    delay: FloatArray  # [H or 1, E, n + 1]
    load_costs: FloatArray  # [k, H or 1, E, n + 1]
    thresholds: FloatArray  # [k]
    horizon: int
    agent_names: tuple[str, ...] | None = None
    constraint_names: tuple[str, ...] | None = None
    resource_names: tuple[str, ...] | None = None
    state_names: tuple[tuple[str, ...], ...] | None = None  # of each agent
    action_names: tuple[tuple[str, ...], ...] | None = None  # of each agent
    legend: Legend | None = None  # words and units, for people
    binds: Any = None  # [n, k]: whether constraint j binds agent i; None if all do

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            agents: Sequence[LocalAgent],
            delay: Numbers,
            load_costs: Numbers,
            thresholds: Numbers,
            horizon: int,
            agent_names: Sequence[str] | None = None,
            constraint_names: Sequence[str] | None = None,
            resource_names: Sequence[str] | None = None,
            state_names: Sequence[Sequence[str]] | None = None,
            action_names: Sequence[Sequence[str]] | None = None,
            legend: Legend | None = None,
            binds: Numbers | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        checked = checked_tables(
            self.agents,
            horizon=self.horizon,
            delay=self.delay,
            load_costs=self.load_costs,
            thresholds=self.thresholds,
        )
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        labels = checked_labels(
            self,
            self.policy_shapes,
            agent_names=self.num_agents,
            constraint_names=self.num_constraints,
            resource_names=self.num_resources,
            state_names=[agent.num_states for agent in self.agents],
            action_names=[agent.num_actions for agent in self.agents],
        )
        for name, value in labels.items():
            object.__setattr__(self, name, value)

    summary = game_summary
    uniform_policy, random_policy = uniform_policy_of, random_policy_of
    __repr__, __str__, _repr_html_ = line, text, html

    @property
    def num_agents(self) -> int:
        """n."""
        return len(self.agents)

    @property
    def num_constraints(self) -> int:
        """k."""
        return int(self.load_costs.shape[0])

    @property
    def num_resources(self) -> int:
        """E."""
        return int(self.delay.shape[1])

    @property
    def num_steps(self) -> int:
        """H: the length of a policy's step axis."""
        return self.horizon

    @property
    def discount(self) -> None:
        """Local games have a finite horizon."""
        return

    @cached_property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S_i, A_i] of each agent's policy."""
        return tuple((self.horizon, agent.num_states, agent.num_actions) for agent in self.agents)

    @property
    def information(self) -> Information:
        """Every agent sees its own state."""
        return Information.OWN_STATE

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""
        return Names(self.agent_names, self.constraint_names, self.state_names, self.action_names, self.legend or PLAIN)

    @property
    def all_resource_names(self) -> tuple[str, ...]:
        """What the resources are called; their numbers where they have no names: [E]."""
        if self.resource_names is not None:
            return self.resource_names
        return tuple(f"resource {e}" for e in range(self.num_resources))

    def potential_proof(self) -> PotentialProof:
        """Say why this is a Markov potential game."""
        return PotentialProof(
            PotentialKind.INDEPENDENT_DYNAMICS,
            "C3: independent dynamics, own-state policies, and rewards that are private or delays of shared resources, "
            "so Rosenthal's potential is exact",
        )

    def with_thresholds(self, thresholds: Any) -> LocalGame:
        """Return the same game with other thresholds: [k]; nothing else is checked or prepared again."""
        checked = to_floats(numbers("thresholds", thresholds))
        check_shape("thresholds", checked.shape, (self.num_constraints,))
        other = object.__new__(LocalGame)
        other.__dict__.update(self.__dict__, thresholds=checked)  # what is prepared does not depend on thresholds
        return other

    def with_trusted(self, **tables: Any) -> LocalGame:
        """Return the same game with other tables, parts of tables that were checked: none is checked again."""
        other = object.__new__(LocalGame)
        other.__dict__.update({each.name: getattr(self, each.name) for each in fields(self)}, **tables)
        return other

    def with_binds(self, binds: Any) -> LocalGame:
        """Return the same game with another mask [n, k] of which constraints bind which agents; see `bind`."""
        return replace(self, binds=binds)

    def with_agents(self, agents: Sequence[LocalAgent]) -> LocalGame:
        """Return the same game with other agents, of the same number."""
        return replace(self, agents=tuple(agents))

    def with_delay(self, delay: FloatArray) -> LocalGame:
        """Return the same game with another delay: [H or 1, E, n + 1]."""
        return replace(self, delay=delay)

    def with_constraints(
        self,
        costs: FloatArray,
        thresholds: Any,
        names: Sequence[str],
        *,
        agents: Sequence[LocalAgent],
        binds: Any = None,
    ) -> LocalGame:
        """Return the same game with other constraints: load costs, [k], names, mask, and agents with their costs."""
        own: dict[str, Any] = {"agents": tuple(agents), "load_costs": costs, "binds": binds}
        return replace(self, **own, thresholds=thresholds, constraint_names=tuple(names))

    def stepper(self) -> Stepper:
        """Return how the game is played, step by step."""
        return LocalStepper(self)

    @cached_property
    def reward_ranges(self) -> FloatArray:
        """G_i = Σ_h (max r_{i,h} − min r_{i,h}) over own states, actions and loads: [n]."""
        least, greatest = self.delay[..., 1:].min(axis=-1), self.delay[..., 1:].max(axis=-1)
        ranges = [agent.reward_range(least, greatest, horizon=self.horizon) for agent in self.agents]
        return frozen(np.array(ranges))

    @cached_property
    def tables(self) -> LoadTables:
        """The delay and the load costs, prepared for expectations."""
        return load_tables(self.delay, self.load_costs, horizon=self.horizon)

    @cached_property
    def rounding(self) -> float:
        """γ: the error of values relative to the sum of |r|, and of costs relative to themselves + `largest_costs`."""
        private = self.horizon + max(agent.num_states * agent.num_actions for agent in self.agents) + self.num_agents
        return (self.usage_roundings + self.tables.total_roundings + private) * UNIT_ROUNDOFF

    @cached_property
    def usage_roundings(self) -> int:
        """Roundings that the usages bring into any expectation."""
        kinds = {(id(agent.transition), id(agent.uses), agent.num_actions): agent for agent in self.agents}
        # A usage is a product along a run, H steps with a few roundings each, and then a sum; κ of these count.
        chains = [self.horizon * agent.step_roundings + agent.max_uses for agent in kinds.values()]
        return ceil(self.tables.order * max(chains))

    @cached_property
    def largest_costs(self) -> FloatArray:
        """The largest sum of absolute costs that there can be, to which rounding errors are relative: [k].

        Zero where no private cost is negative and no load cost is negative or falls as the load grows: errors are then
        relative to the costs themselves.
        """
        rises = np.diff(self.load_costs, axis=-1)
        gentle = (self.load_costs[..., 0] >= 0).all(axis=(1, 2)) & (rises >= 0).all(axis=(1, 2, 3))
        for agent in self.agents:
            if agent.costs is not None:
                gentle = gentle & (drop_broadcast(agent.costs) >= 0).all(axis=(1, 2, 3))
        return frozen(np.where(gentle, 0.0, self.cost_sizes))

    @cached_property
    def cost_sizes(self) -> FloatArray:
        """The largest sum of absolute costs that there can be: [k]."""
        rises = np.abs(np.diff(self.load_costs, axis=-1)).sum(axis=-1)
        largest = self._over_time(np.abs(self.load_costs[..., 0]) + rises).sum(axis=-1)
        for agent in self.agents:
            if agent.costs is not None:
                largest = largest + self._over_time(np.abs(drop_broadcast(agent.costs)).max(axis=(2, 3)))
        return frozen(largest)

    @cached_property
    def cancelling(self) -> FloatArray:
        """How much more |r_i| and delays can sum to than their difference, where they can have the same sign: [n].

        That is at most 2·|r_i|; where delays have both signs, which averages hide, it is all that there is. Where the
        size of a delay falls as the load grows, the error of its average is not relative to the average alone.
        """
        uses = {id(agent.uses): agent.uses_at_once for agent in self.agents}
        falling = np.array([uses[id(agent.uses)] for agent in self.agents]) * self.tables.falling_delay
        low, high = (float(end) for end in (self.delay[..., 1:].min(), self.delay[..., 1:].max()))
        if low < 0 < high:
            return frozen(self.reward_sizes + falling)
        rewards = {id(agent.reward): drop_broadcast(agent.reward) for agent in self.agents}
        sizes = {key: np.abs(table).reshape(len(table), -1).max(axis=1) for key, table in rewards.items()}
        alike = {key: max(high * table.max(), low * table.min()) > 0 for key, table in rewards.items()}
        most = {key: 2 * float(self._over_time(sizes[key][None])[0]) * alike[key] for key in rewards}
        return frozen(np.array([most[id(agent.reward)] for agent in self.agents]) + falling)

    @cached_property
    def reward_sizes(self) -> FloatArray:
        """The largest sum of absolute rewards and delays that each agent can see: [n]."""
        delays = np.abs(self.delay[..., 1:]).max(axis=-1).sum(axis=-1)
        delayed = float(delays.sum() if len(delays) > 1 else delays[0] * self.horizon)
        largest = [
            self._over_time(np.abs(drop_broadcast(agent.reward)).max(axis=(1, 2))[None])[0] for agent in self.agents
        ]
        return frozen(np.array(largest) + delayed)

    @cached_property
    def depths(self) -> FloatArray:
        """log₂ of the least product of an agent's probabilities along a run and of a private cost: [n].

        See `Underflow`.
        """
        known: dict[tuple[int, int, int], float] = {}
        keys = [(id(agent.transition), id(agent.initial), id(agent.costs)) for agent in self.agents]
        for key, agent in zip(keys, self.agents, strict=True):
            if key not in known:
                paid = () if agent.costs is None else (drop_broadcast(agent.costs),)
                known[key] = run_depth(agent.initial, agent.transition, self.horizon, paid=paid)
        return frozen(np.array([known[key] for key in keys]))

    @cached_property
    def has_private_costs(self) -> bool:
        """Whether an agent spends anything but through loads."""
        return any(agent.costs is not None for agent in self.agents)

    def private_cmdps(self) -> tuple[CMDP, ...] | None:
        """Return each agent's CMDP with its private costs, or None where a load costs something."""
        if self.load_costs.any():
            return None
        return tuple(agent.private_cmdp(self.thresholds, self.horizon) for agent in self.agents)

    def at(self, policy: JointPolicy) -> LocalPosition:
        """Return the game as it stands at a joint policy."""
        played = played_policy(self, policy)
        if compiled() is not None and self.packed is not None:
            usages, private_values, private_costs = self.packed.accounts(played.stored, range(self.num_agents))
            return LocalPosition(self, played, SparseLoads(self.packed, *usages), private_values, private_costs)
        accounts = [self.account(agent, table) for agent, table in zip(self.agents, played, strict=True)]
        values, costs = np.array([each.value for each in accounts]), np.stack([each.costs for each in accounts])
        return LocalPosition(self, played, LoadTree.grow(self.tables, [each.usage for each in accounts]), values, costs)

    def claim_tables(self) -> LocalTables:
        """Return the tables as a proof reads them; agents share there what they share here."""
        return self._claim_tables

    @cached_property
    def _claim_tables(self) -> LocalTables:
        return LocalTables(plain_agents(self.agents), self.delay, self.load_costs)

    def potential(self, policy: JointPolicy) -> float:
        """Return Rosenthal's potential of a policy, less that of `JointPolicy.reference`."""
        return self.at(policy).potential

    def upper_bound(self, objective: Objective, near: JointPolicy, multipliers: FloatArray) -> UpperBound | None:
        """Bound what any feasible policy is worth: every agent plans alone, at common prices of what it uses."""
        return local_bound(self, objective, self.at(near), multipliers)

    def max_weighted_slack(self, multipliers: FloatArray) -> float:
        """Return what λ·(α − V^c) cannot exceed, whatever the policy."""
        return least_left(self, np.asarray(multipliers, dtype=np.float64), fixed=True)[0]

    def tightest_multipliers(self) -> FloatArray:
        """Return multipliers [k] that sum to one, by which as little as possible is left below the thresholds."""
        even = np.full(self.num_constraints, 1 / max(self.num_constraints, 1))
        return even if self.num_constraints < 2 else least_left(self, even, fixed=False)[1]

    @cached_property
    def reference_potential(self) -> float:
        """Φ of the reference, from which `potential` is counted."""
        return self.at(JointPolicy.reference(self.policy_shapes)).rosenthal

    def _over_time(self, table: FloatArray) -> FloatArray:
        """Sum a table [k, H or 1, …] over all steps."""
        return np.asarray(table.sum(axis=1) * (self.horizon if table.shape[1] == 1 else 1))

    def account(self, agent: LocalAgent, table: FloatArray) -> Account:
        """Return what an agent does by a policy table, whatever the others do."""
        visits = agent.visits(table)
        costs = np.zeros(self.num_constraints)
        if agent.costs is not None:
            costs = np.array([visits.total(cost) for cost in agent.costs])
        return Account(agent.usage(visits), visits.total(agent.reward), costs)

    __getstate__, __setstate__ = folded_fields, set_folded_fields

    @property
    def keeps_actions(self) -> bool:
        """Whether a solve keeps policies as actions, and plans by compiled kernels."""
        return compiled() is not None and self.packed is not None

    @cached_property
    def packed(self) -> PackedGame | None:
        """The tables as compiled kernels read them, where there are any."""
        return PackedGame.of(self)

    @cached_property
    def _reaches(self) -> dict[int, npt.NDArray[np.bool_]]:
        return {}

    def reach(self, agent: int) -> npt.NDArray[np.bool_]:
        """Return which resources an agent can use at each step, by any policy: [H, E]."""
        if agent not in self._reaches:
            self._reaches[agent] = self.agents[agent].reach(self.horizon)
        return self._reaches[agent]


@dataclass(frozen=True, eq=False)
class Account:
    """What an agent does by its policy, whatever the others do."""

    usage: FloatArray  # [H, E]
    value: float  # of the private reward
    costs: FloatArray  # [k], private


explained(LocalGame)


def plain_agents(agents: Sequence[LocalAgent]) -> tuple[AgentTables, ...]:
    """Return agents as a proof reads them; they share there what they share here."""
    known: dict[int, tuple[Csr, ...]] = {}
    single: dict[int, Csr] = {}  # steps share what they share here, too

    def matrices(given: Any) -> tuple[Csr, ...]:
        if id(given) not in known:
            for each in distinct(given):
                if id(each) not in single:
                    single[id(each)] = Csr(each.indptr, each.indices, each.data, each.shape[1])
            known[id(given)] = tuple(single[id(each)] for each in given)
        return known[id(given)]

    return tuple(
        AgentTables(each.initial, matrices(each.transition), matrices(each.uses), each.reward, each.costs)
        for each in agents
    )
