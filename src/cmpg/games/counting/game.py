"""Counting games: a shared state, and rewards and transitions through how many agents choose what.

All agents have the same actions. With k_a the number of agents on action a, an agent that plays a in state s at step h
gets rewards[h, s, a, k_a] (it counts itself), plus what is its own, private_rewards[i, h, s, a], plus
class_rewards[h, s, a, class]; costs and the next state depend on the class of the counts (`LargestCount`,
`EveryCount`). The A^n joint actions are never visited: what agent i faces (Eqs. 7-9) needs, for all others, the
distribution of single counts and of the class, which `classes.py` finds without a difference of probabilities.

Guarantee: transitions, rewards and costs of an induced CMDP are those of the joint form (`to_joint`) up to
`CMDP.entry_roundings` roundings, relative for probabilities and for costs of one sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray, Numbers, frozen
from cmpg.cmdp.evaluation import occupancy
from cmpg.cmdp.model import CMDP, total_range, total_weight
from cmpg.cmdp.planning import certain_rows
from cmpg.games.counting.classes import Census, Counts, take_census
from cmpg.games.counting.position import CountingPosition
from cmpg.games.counting.tables import (
    TABLES,
    CountingSizes,
    best_stages,
    checked_tables,
    class_differences,
    joint_tables,
    why_potential,
)
from cmpg.games.counting.vectors import CountClasses, LargestCount
from cmpg.games.game import (
    Information,
    Names,
    Objective,
    Planner,
    PotentialProof,
    Stepper,
    played_policy,
    potential_by_moves,
    random_policy_of,
    uniform_policy_of,
)
from cmpg.games.joint.game import JointGame
from cmpg.games.names import explained
from cmpg.games.play import CountingStepper
from cmpg.games.rationals import Rationals, as_given
from cmpg.games.summaries import game_summary
from cmpg.policy import JointPolicy, PolicyShape
from cmpg.proof.claim import CountingTables
from cmpg.summaries import html, line, text

if TYPE_CHECKING:
    from cmpg.proof.claim import CountingTables


@dataclass(frozen=True, eq=False)
class CountingGame:
    """n agents with the same actions, who see a shared state, and whom only the counts of actions concern.

    Exactly one of `horizon` and `discount` is given. Tables that do not change with the step have a step axis of
    length one. Rewards at a count of zero are never read.

    Examples
    --------
    Three agents and two roads; who shares a road with m − 1 others loses m, and three on one road cost 1.

    >>> from cmpg.games.counting.vectors import LargestCount
    >>> game = CountingGame(rewards=[[[[0, -1, -2, -3]] * 2]], classes=LargestCount((2,)), transition=[[[[1.0]] * 2]],
    ...                     costs=[[[[0.0, 1.0]]]], thresholds=[0.5], initial=[1.0], horizon=1)
    >>> position = game.at(game.uniform_policy())
    >>> position.values, position.costs
    (array([-2., -2., -2.]), array([0.25]))
    """

    _: KW_ONLY
    rewards: FloatArray  # [H or 1, S, A, n + 1]: of an agent on action a, when m agents are
    classes: CountClasses  # which counts costs and transitions tell apart: C classes
    transition: FloatArray  # [H or 1, S, C, S]
    costs: FloatArray  # [k, H or 1, S, C]
    thresholds: FloatArray  # [k]
    initial: FloatArray  # [S]
    horizon: int | None = None
    discount: float | None = None
    private_rewards: Any = None  # [n, H or 1, S, A]; zero unless given
    class_rewards: Any = None  # [H or 1, S, A, C]; zero unless given
    agent_names: tuple[str, ...] | None = None
    state_names: tuple[str, ...] | None = None
    action_names: tuple[tuple[str, ...], ...] | None = None
    constraint_names: tuple[str, ...] | None = None
    binds: Any = None  # [n, k]: whether constraint j binds agent i; None if all do
    rationals: Rationals | None = None  # tables as they were given, for proofs

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            rewards: Numbers,
            classes: CountClasses,
            transition: Numbers,
            costs: Numbers,
            thresholds: Numbers,
            initial: Numbers,
            horizon: int | None = None,
            discount: float | None = None,
            private_rewards: Numbers | None = None,
            class_rewards: Numbers | None = None,
            agent_names: Sequence[str] | None = None,
            state_names: Sequence[str] | None = None,
            action_names: Sequence[Sequence[str]] | None = None,
            constraint_names: Sequence[str] | None = None,
            binds: Numbers | None = None,
            rationals: Rationals | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name, value in checked_tables(self).items():
            object.__setattr__(self, name, value)

    summary = game_summary
    uniform_policy, random_policy = uniform_policy_of, random_policy_of
    __repr__, __str__, _repr_html_ = line, text, html

    @property
    def num_agents(self) -> int:
        """n."""
        return int(self.rewards.shape[3]) - 1

    @property
    def num_constraints(self) -> int:
        """k."""
        return int(self.costs.shape[0])

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.rewards.shape[1])

    @property
    def num_actions(self) -> tuple[int, ...]:
        """A of each agent, the same for all."""
        return (int(self.rewards.shape[2]),) * self.num_agents

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.transition.shape[2])

    @property
    def num_steps(self) -> int:
        """The length of a policy's step axis: the horizon, or 1 where the sum is discounted."""
        return 1 if self.horizon is None else self.horizon

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S, A] of each agent's policy."""
        return tuple((self.num_steps, self.num_states, actions) for actions in self.num_actions)

    @property
    def information(self) -> Information:
        """Every agent sees the shared state."""
        return Information.JOINT_STATE

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""
        states = None if self.state_names is None else (self.state_names,) * self.num_agents
        return Names(self.agent_names, self.constraint_names, states, self.action_names)

    @cached_property
    def reward_ranges(self) -> FloatArray:
        """G_i = Σ_h (max r_{i,h} − min r_{i,h}), which bounds any change of V^{r_i}: [n]."""
        shared, by_class = self.rewards[..., 1:], self.class_rewards
        highest = shared.max(axis=-1) + by_class.max(axis=-1)
        lowest = shared.min(axis=-1) + by_class.min(axis=-1)
        ends = np.stack([highest, lowest], axis=-1)
        each = [ends + own[..., None] for own in self.private_rewards]
        return frozen(np.array([total_range(table, self.horizon, self.discount) for table in each]))

    @cached_property
    def census(self) -> Census:
        """What has to be counted."""
        return take_census(
            self.classes, self.num_agents, num_actions=self.num_actions[0], matters=class_differences(self)
        )

    @cached_property
    def number_sizes(self) -> CountingSizes:
        """How large and how small its numbers are."""
        return CountingSizes(self)

    @cached_property
    def kinds(self) -> list[int]:
        """The kind of each agent: those of one kind have the same private rewards."""
        known: dict[bytes, int] = {}
        return [known.setdefault(own.tobytes(), len(known)) for own in self.private_rewards]

    def at(self, policy: JointPolicy) -> CountingPosition:
        """Return the game as it stands at a joint policy."""
        played = played_policy(self, policy)
        return CountingPosition(self, played, Counts.at(self.census, played))

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(reference), by moving one agent at a time (Lemma 1); exact where a potential exists."""
        return potential_by_moves(self, policy)

    def potential_proof(self) -> PotentialProof | None:
        """Return why this is a Markov potential game, or None where its structure does not prove it."""
        return why_potential(self)

    def with_thresholds(self, thresholds: Any) -> CountingGame:
        """Return the same game with other thresholds: [k]."""
        return replace(self, thresholds=thresholds)

    def with_transition(self, transition: Any) -> CountingGame:
        """Return the same game with another transition: [H or 1, S, C, S]."""
        return replace(self, transition=transition)

    def with_binds(self, binds: Any) -> CountingGame:
        """Return the same game with another mask [n, k] of which constraints bind which agents; see `bind`."""
        return replace(self, binds=binds)

    def with_constraints(self, costs: Any, thresholds: Any, names: Sequence[str], *, binds: Any = None) -> CountingGame:
        """Return the same game with other constraints: tables, [k], names, and which agents they bind: [n, k]."""
        return replace(self, costs=costs, thresholds=thresholds, constraint_names=tuple(names), binds=binds)

    def stepper(self) -> Stepper:
        """Return how the game is played, step by step."""
        return CountingStepper(self)

    def planner(self, objective: Objective | None) -> Planner | None:
        """Return one planner who chooses how many agents play each action."""
        chooses = "a planner who chooses how many play each action"
        if objective is None:
            return Planner(self.joint_cmdp(), self.split, chooses)
        best = best_stages(self, objective)
        if best is None:
            return None
        reward = best.by_class
        if objective is Objective.POTENTIAL:
            # If all agents play action 0, the potential is what `potential` counts from.
            crowd = JointPolicy.reference(self.policy_shapes)
            alone = self.at(crowd).induced_cmdp(0)
            visits = occupancy(alone, crowd[0]).sum(axis=-1)
            zero = float((visits * best.crowd).sum()) / total_weight(self.horizon, self.discount)
            # Rounded down, so that the planner's rewards are no smaller than they are.
            reward = reward - zero + 2 * alone.rounding * float(np.abs(best.crowd).max())
        labels = self.classes.of(self._samples)
        step, state = np.indices((self.num_steps, self.num_states))

        def split(chosen: IntArray) -> JointPolicy:
            vectors = best.of_class[np.minimum(step, len(best.of_class) - 1), state, labels[chosen]]
            return self._assigned(best.vectors[vectors])

        return Planner(self.joint_cmdp(reward), split, chooses)

    def joint_cmdp(self, reward: FloatArray | None = None) -> CMDP:
        """Return the CMDP of one planner who chooses the class of counts, among those that occur.

        Costs and transitions depend on the class alone, so a planner who chooses a class, and for each class any joint
        action of it, is as good as one who chooses among all joint actions. The reward is zero unless given by class.
        """
        labels = self.classes_that_occur
        return CMDP(
            transition=self.transition[:, :, labels],
            reward=np.zeros((1, self.num_states, len(labels))) if reward is None else reward[..., labels],
            costs=self.costs[..., labels],
            thresholds=self.thresholds,
            initial=self.initial,
            horizon=self.horizon,
            discount=self.discount,
        )

    def split(self, chosen: IntArray) -> JointPolicy:
        """Split a planner's choice of actions of `joint_cmdp`, [H, S], into one deterministic table per agent."""
        return self._assigned(self._samples[chosen])

    def _assigned(self, counts: IntArray) -> JointPolicy:
        """Return deterministic tables by which counts [H, S, A] play each action: the first agents action 0, …."""
        ends = np.cumsum(counts, axis=-1)
        each = [(ends <= agent).sum(axis=-1) for agent in range(self.num_agents)]
        return JointPolicy(tuple(certain_rows(actions, counts.shape[-1]) for actions in each))

    @cached_property
    def classes_that_occur(self) -> IntArray:
        """The classes that some joint action has, in the order of the actions of `joint_cmdp`."""
        return np.asarray(self.classes.of(self._samples))

    @cached_property
    def _samples(self) -> IntArray:
        """One count vector of each class that occurs: [classes that occur, A]."""
        return self.classes.samples(self.num_agents, self.num_actions[0])

    def claim_tables(self) -> CountingTables:
        """Return the tables as a proof reads them."""
        tables = {name: as_given(self, name) for name in TABLES if name not in ("transition", "thresholds", "discount")}
        return CountingTables(
            transition=tuple(as_given(self, "transition").reshape(len(self.transition), -1, self.num_states)),
            **tables,
            boundaries=self.classes.boundaries if isinstance(self.classes, LargestCount) else None,
        )

    def exact(self) -> CountingGame:
        """Return the same game, claims about which are judged in rationals."""
        return replace(self, rationals=self.rationals or {})

    def to_joint(self) -> JointGame:
        """Write the same game with tables over all A^n joint actions; for few agents."""
        return JointGame(**joint_tables(self))


explained(CountingGame)
