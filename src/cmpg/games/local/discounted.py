"""Discounted local games: agents with states of their own who meet at resources, for ever.

Nothing changes with the step but the agents' states, and with them the loads; so agent i's problem is not stationary,
and a policy states what is done at the first T steps. From step T on every agent goes on as at step T − 1. What follows
is worth γ^T/(1 − γ) of a step at most, which certificates include: they hold for the discounted game, and against
deviations of any length (`cmpg.proof.truncation` has the proof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from math import ceil, log
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, Numbers, frozen
from cmpg.cmdp.model import check_length_of_time
from cmpg.errors import CMPGError, PolicyError, TooLargeError
from cmpg.games.claims import claim_of
from cmpg.games.game import Information, Names, PotentialProof, check_is_game
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.game import LocalGame
from cmpg.games.names import Legend
from cmpg.games.summaries import game_summary
from cmpg.policy import JointPolicy, PolicyShape
from cmpg.proof.claim import LocalTables
from cmpg.proof.truncation import Tail, over_steps, tail_of, weights
from cmpg.summaries import html, line, text

REWARD_SHARE = 1 / 8
"""What follows the first steps is worth at most this share of ε."""

COST_SHARE = 1 / 64
"""What follows them costs at most this share of ε, exchanged at the rate of a range of costs for one of values."""

MAX_STEPS = 50_000
"""No search looks at more steps: what follows these is in the certificate, however much it is."""


@dataclass(frozen=True, eq=False)
class DiscountedLocalGame:
    """n agents on their own states, with shared resources and shared constraints, and sums discounted by γ.

    `solve`, `certify`, learners, files and `cmpg check` know it; everything else takes `truncated(steps)`, its first
    steps.

    Examples
    --------
    Two agents with one state; action 1 uses the only resource, is worth 1, and costs each user 0.25 per user. Both may
    use it at the same time for one step in ten, in discounted steps.

    >>> agent = LocalAgent(transition=np.ones((1, 1, 2, 1)), reward=[[[0, 1]]], uses=[[[[0], [1]]]], initial=[1])
    >>> game = DiscountedLocalGame(agents=(agent, agent), delay=[[[0, 0.25, 0.5]]], load_costs=[[[[0, 0, 1]]]],
    ...                            thresholds=[1.0], discount=0.9)
    >>> game.steps_for(1e-6), game.truncated(2).delay[:, 0, 2].tolist()
    (190, [0.5, 0.45])
    """

    _: KW_ONLY
    agents: tuple[LocalAgent, ...]  # n
    delay: FloatArray  # [1, E, n + 1]
    load_costs: FloatArray  # [k, 1, E, n + 1]
    thresholds: FloatArray  # [k]
    discount: float
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
            discount: float,
            agent_names: Sequence[str] | None = None,
            constraint_names: Sequence[str] | None = None,
            resource_names: Sequence[str] | None = None,
            state_names: Sequence[Sequence[str]] | None = None,
            action_names: Sequence[Sequence[str]] | None = None,
            legend: Legend | None = None,
            binds: Numbers | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_length_of_time(None, self.discount)
        object.__setattr__(self, "discount", float(self.discount))
        for name in self._given():
            object.__setattr__(self, name, getattr(self._step, name))

    def _given(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "discount"}

    @cached_property
    def _step(self) -> LocalGame:
        """One step, which is checked as any local game is: with a single step, no table can change with it."""
        return LocalGame(**self._given(), horizon=1)

    @property
    def num_agents(self) -> int:
        """n."""
        return len(self.agents)

    @property
    def num_constraints(self) -> int:
        """k."""
        return len(self.thresholds)

    @property
    def num_resources(self) -> int:
        """E."""
        return self._step.num_resources

    @property
    def horizon(self) -> None:
        """A discounted game has no end."""
        return

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """[1, S_i, A_i] of each agent: policies have this for each of their steps."""
        return self._step.policy_shapes

    @property
    def information(self) -> Information:
        """Every agent sees its own state."""
        return Information.OWN_STATE

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""
        return self._step.names

    @cached_property
    def reward_ranges(self) -> FloatArray:
        """(max r_i − min r_i)/(1 − γ) over own states, actions and loads: [n]."""
        return frozen(self._step.reward_ranges / (1 - self.discount))

    def potential_proof(self) -> PotentialProof:
        """Say why this is a Markov potential game."""
        return self._step.potential_proof()

    summary = game_summary
    __repr__, __str__, _repr_html_ = line, text, html

    def with_thresholds(self, thresholds: Any) -> DiscountedLocalGame:
        """Return the same game with other thresholds: [k]."""
        return replace(self, thresholds=thresholds)

    def with_binds(self, binds: Any) -> DiscountedLocalGame:
        """Return the same game with another mask [n, k] of which constraints bind which agents; see `bind`."""
        return replace(self, binds=binds)

    def steps_for(self, epsilon: float) -> int:
        """Return a number of steps after which what follows is small beside ε, in rewards and in costs.

        It is never more than `MAX_STEPS`: with a discount next to one, what follows may be large even so.
        """
        # A unit of a cost may be worth as much as the range of values is for the range of costs.
        share = COST_SHARE if self._step.cost_sizes.any() else REWARD_SHARE
        with np.errstate(over="ignore"):
            most = min(float(self.reward_ranges.max() / share / epsilon), float(np.finfo(np.float64).max))
        return 1 if most <= 1 or self.discount == 0 else min(ceil(log(most) / -log(self.discount)), MAX_STEPS)

    def truncated(self, steps: int) -> LocalGame:
        """Return the first steps as a local game: every table weighed with γ^h, the thresholds as they are."""
        if int(steps) != steps or steps < 1:
            raise CMPGError(f"steps is {steps}; a whole number of at least 1 is required.")
        scale = weights(self.discount, int(steps)).mid
        known: dict[int, Any] = {}  # agents share afterwards what they share now

        def once(table: Any, axis: int) -> Any:
            if table is not None and id(table) not in known:
                known[id(table)] = over_steps(table, scale, axis)
            return None if table is None else known[id(table)]

        agents = tuple(replace(each, reward=once(each.reward, 0), costs=once(each.costs, 1)) for each in self.agents)
        tables = {"delay": once(self.delay, 0), "load_costs": once(self.load_costs, 1)}
        return replace(self._step, agents=agents, **tables, horizon=int(steps))

    def at(self, _: JointPolicy) -> Any:
        """Refuse: what is not made for this form of game is told what to take instead."""
        check_is_game(self)

    def step_tables(self) -> LocalTables:
        """Return the tables of a step as a proof reads them."""
        return self._step.claim_tables()

    def tail(self, policy: JointPolicy, *, exactly_weighed: bool = False) -> Tail:
        """Bound what follows the steps of a policy; see `cmpg.proof.truncation`."""
        steps, nothing = self.steps_of(policy), np.zeros((self.num_agents, self.num_constraints))
        claim = claim_of(self._step, self._step.uniform_policy(), nothing)
        claim = replace(claim, horizon=steps, policy=policy.floats().tables)
        return tail_of(claim, self.discount, exactly_weighed=exactly_weighed)

    def relaxed(self, steps: int) -> LocalGame:
        """Return a game of the first steps in which every feasible policy is feasible, and worth at least as much.

        Its thresholds are α⁺, and what may follow is added to every reward of the last step: for upper bounds, and for
        proofs that nothing is feasible. It raises a `TooLargeError` where that is more than any float.
        """
        first = self.truncated(steps)
        tail = self.tail(first.uniform_policy())  # which may come to everything
        agents, thresholds = [], tail.outer(self.thresholds)
        with np.errstate(over="ignore"):
            pairs = zip(first.agents, tail.most_values, strict=True)
            last = [np.nextafter(agent.reward[-1] + most, np.inf) for agent, most in pairs]
        if not all(np.isfinite(each).all() for each in (thresholds, *last)):
            raise TooLargeError(f"what may follow the first {steps:,} steps is more than any float.")
        for agent, ending in zip(first.agents, last, strict=True):
            reward = np.array(agent.reward)
            reward[-1] = ending
            agents.append(replace(agent, reward=reward))
        return replace(first, agents=tuple(agents), thresholds=thresholds)

    def steps_of(self, policy: JointPolicy) -> int:
        """Return the number of steps that a policy states, or raise where its tables do not fit the game."""
        steps = policy.shapes[0][0]
        policy.check_fits(tuple((steps, *shape[1:]) for shape in self.policy_shapes))
        if steps < 1:
            raise PolicyError("a policy of a discounted local game states at least one step.")
        return steps
