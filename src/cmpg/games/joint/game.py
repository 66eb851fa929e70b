"""Games on a joint state, with tables over joint actions.

Agent i's CMDP (Eqs. 7-9) averages rewards, costs and transitions over what the others play; see `position.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import (
    FloatArray,
    IntArray,
    Numbers,
    check_shape,
    distributions,
    frozen,
    numbers,
    to_floats,
)
from cmpg.cmdp.model import (
    CMDP,
    check_length_of_time,
    check_steps,
    check_thresholds,
    checked_transition,
    total_range,
)
from cmpg.errors import GameError, UnsupportedError, explains_keywords
from cmpg.games.game import (
    Game,
    Information,
    Names,
    Objective,
    Planner,
    PotentialProof,
    Stepper,
    checked_binds,
    checked_labels,
    played_policy,
    potential_by_moves,
    random_policy_of,
    uniform_policy_of,
)
from cmpg.games.joint.averages import check_agents
from cmpg.games.joint.planner import has_common_reward, planner_of
from cmpg.games.joint.position import JointPosition, NumberSizes
from cmpg.games.joint.tabulation import tabulate
from cmpg.games.names import PLAIN, Legend, explained
from cmpg.games.play import JointStepper
from cmpg.games.potential.structure import prove_potential
from cmpg.games.rationals import Rationals, as_given, rounded_tables
from cmpg.games.summaries import game_summary
from cmpg.policy import JointPolicy, PolicyShape, certain_table
from cmpg.proof.claim import Csr, JointTables
from cmpg.summaries import html, line, text

if TYPE_CHECKING:
    from cmpg.games.joint.tabulation import StepFunction

TABLES = ("transition", "rewards", "costs", "thresholds", "initial", "discount")


@dataclass(frozen=True, eq=False)
class JointGame:
    """n agents who all see the joint state, and whose joint action decides rewards, costs and the next state.

    Exactly one of `horizon` and `discount` is given. Tables that do not change with the step have a step axis of
    length one.

    Examples
    --------
    >>> game = JointGame(transition=np.ones((1, 1, 2, 2, 1)), rewards=[[[[[3, 2], [2, 4]]]]] * 2,
    ...                  costs=[[[[[0, 0], [0, 1]]]]], thresholds=[0.5], initial=[1.0], horizon=1)
    >>> game.at(game.uniform_policy()).values
    array([2.75, 2.75])
    """

    _: KW_ONLY
    transition: Any  # [H or 1, S, *A, S], or a sequence of CSR matrices [S·ΠA, S] with rows in the order (s, *a)
    rewards: FloatArray  # [n, H or 1, S, *A]
    costs: FloatArray  # [k, H or 1, S, *A]
    thresholds: FloatArray  # [k]
    initial: FloatArray  # [S]
    horizon: int | None = None
    discount: float | None = None
    agent_names: tuple[str, ...] | None = None
    state_names: tuple[str, ...] | None = None
    action_names: tuple[tuple[str, ...], ...] | None = None
    constraint_names: tuple[str, ...] | None = None
    legend: Legend | None = None  # words and units, for people
    binds: Any = None  # [n, k]: whether constraint j binds agent i; None if all do
    rationals: Rationals | None = None  # tables as they were given, for proofs
    trusted: InitVar[bool] = False

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            transition: Any,
            rewards: Numbers,
            costs: Numbers,
            thresholds: Numbers,
            initial: Numbers,
            horizon: int | None = None,
            discount: float | None = None,
            agent_names: Sequence[str] | None = None,
            state_names: Sequence[str] | None = None,
            action_names: Sequence[Sequence[str]] | None = None,
            constraint_names: Sequence[str] | None = None,
            legend: Legend | None = None,
            binds: Numbers | None = None,
            rationals: Rationals | None = None,
            trusted: bool = False,
        ) -> None: ...

    def __post_init__(self, trusted: bool) -> None:
        tables = {} if trusted else _checked_tables(self)
        if not trusted or self.rationals is not None:
            tables |= rounded_tables({name: tables.get(name, getattr(self, name)) for name in TABLES}, self.rationals)
        for name, value in tables.items():
            object.__setattr__(self, name, value)

    summary = game_summary
    uniform_policy, random_policy = uniform_policy_of, random_policy_of
    __repr__, __str__, _repr_html_ = line, text, html

    @property
    def num_agents(self) -> int:
        """n."""
        return int(self.rewards.shape[0])

    @property
    def num_constraints(self) -> int:
        """k."""
        return int(self.costs.shape[0])

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.rewards.shape[2])

    @property
    def num_actions(self) -> tuple[int, ...]:
        """A_i of each agent."""
        return tuple(self.rewards.shape[3:])

    @property
    def num_steps(self) -> int:
        """The length of a policy's step axis: the horizon, or 1 where the sum is discounted."""
        return 1 if self.horizon is None else self.horizon

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S, A_i] of each agent's policy."""
        return tuple((self.num_steps, self.num_states, actions) for actions in self.num_actions)

    @property
    def information(self) -> Information:
        """Every agent sees the joint state."""
        return Information.JOINT_STATE

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""
        states = None if self.state_names is None else (self.state_names,) * self.num_agents
        return Names(self.agent_names, self.constraint_names, states, self.action_names, self.legend or PLAIN)

    @property
    def is_sparse(self) -> bool:
        """Whether the transition is a sequence of CSR matrices."""
        return isinstance(self.transition, tuple)

    @cached_property
    def reward_ranges(self) -> FloatArray:
        """G_i = Σ_h (max r_{i,h} − min r_{i,h}), which bounds any change of V^{r_i}: [n]."""
        return frozen(np.array([total_range(each, self.horizon, self.discount) for each in self.rewards]))

    @cached_property
    def number_sizes(self) -> NumberSizes:
        """How large and how small its numbers are."""
        return NumberSizes(self)

    def at(self, policy: JointPolicy) -> JointPosition:
        """Return the game as it stands at a joint policy."""
        return JointPosition(self, played_policy(self, policy))

    @cached_property
    def reference_value(self) -> float:
        """V^{r_0} of `JointPolicy.reference`."""
        return float(self.at(JointPolicy.reference(self.policy_shapes)).values[0])

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(reference): a common value, or by moving one agent at a time (Lemma 1)."""
        if not has_common_reward(self):
            return potential_by_moves(self, policy)
        return float(self.at(policy).current(0).value) - self.reference_value

    def potential_proof(self) -> PotentialProof | None:
        """Return why the structure of the game proves a potential, or None where it does not."""
        return prove_potential(self)

    def planner(self, objective: Objective | None) -> Planner | None:
        """Return one planner who chooses all actions; a potential is counted as by `potential`."""
        return planner_of(self, objective)

    def with_thresholds(self, thresholds: Any) -> JointGame:
        """Return the same game with other thresholds: [k]."""
        return replace(self, thresholds=_checked_thresholds(thresholds, self), trusted=True)

    def with_binds(self, binds: Any) -> JointGame:
        """Return the same game with another mask [n, k] of which constraints bind which agents; see `bind`."""
        return replace(self, binds=checked_binds(binds, self.num_agents, self.num_constraints), trusted=True)

    def with_constraints(self, costs: Any, thresholds: Any, names: Sequence[str], *, binds: Any = None) -> JointGame:
        """Return the same game with other constraints: tables, [k], names, and which agents they bind: [n, k]."""
        return replace(self, costs=costs, thresholds=thresholds, constraint_names=tuple(names), binds=binds)

    def with_rewards(self, rewards: FloatArray) -> JointGame:
        """Return the same game with rewards that were computed from its own: [n, H or 1, S, *A]."""
        return replace(self, rewards=frozen(rewards), trusted=True)

    def with_transition(self, transition: Any) -> JointGame:
        """Return the same game with another transition."""
        return replace(self, transition=transition)

    def without_constraints(self) -> JointGame:
        """Return the same game without its constraints."""
        return self.with_constraints(np.zeros((0, 1, *self.rewards.shape[2:])), np.zeros(0), ())

    def stepper(self) -> Stepper:
        """Return how the game is played, step by step."""
        return JointStepper(self)

    def split(self, joint_actions: IntArray) -> JointPolicy:
        """Split a planner's deterministic policy, joint actions [H, S], into one table per agent."""
        separate = np.unravel_index(joint_actions, self.num_actions)
        return JointPolicy([certain_table(own, count) for count, own in zip(self.num_actions, separate, strict=True)])

    def joint_cmdp(self, reward: FloatArray | None = None) -> CMDP:
        """Return the CMDP of one planner who chooses all actions; its reward is the mean of the agents' unless given.

        Parameters
        ----------
        reward : [H or 1, S, *A]
            What the planner maximises. For a common reward, the mean is that reward.
        """
        chosen = self.rewards.mean(axis=0) if reward is None else reward
        flat = (self.num_states, int(np.prod(self.num_actions)))
        return CMDP(
            transition=self.transition if self.is_sparse else self.transition.reshape(len(self.transition), *flat, -1),
            reward=chosen.reshape(len(chosen), *flat),
            costs=self.costs.reshape(*self.costs.shape[:2], *flat),
            thresholds=self.thresholds,
            initial=self.initial,
            horizon=self.horizon,
            discount=self.discount,
            trusted=True,
        )

    def claim_tables(self) -> JointTables:
        """Return the tables as a proof reads them."""
        rows = self.num_states * int(np.prod(self.num_actions))
        matrices = (
            tuple(Csr(each.indptr, each.indices, each.data, self.num_states) for each in self.transition)
            if self.is_sparse
            else tuple(as_given(self, "transition").reshape(len(self.transition), rows, self.num_states))
        )
        return JointTables(as_given(self, "initial"), matrices, as_given(self, "rewards"), as_given(self, "costs"))

    def exact(self) -> JointGame:
        """Return the same game, claims about which are judged in rationals."""
        dense = _dense_transition(self.transition, self.rewards.shape[2:])
        return replace(self, transition=dense, rationals=self.rationals or {}, trusted=True)

    @classmethod
    @explains_keywords(
        agents="num_actions has one entry per agent, and agent_names are their names.",
        num_agents="num_actions has one entry per agent.",
    )
    def from_function(
        cls,
        step: StepFunction,
        *,
        num_states: int,
        num_actions: Sequence[int],
        thresholds: Any,
        initial: Any,
        horizon: int | None = None,
        discount: float | None = None,
        agent_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | None = None,
        constraint_names: Sequence[str] | None = None,
    ) -> JointGame:
        """Build a stationary game from `step(state, actions) -> next-state distribution, rewards, costs`.

        The distribution is a dict {state: probability} or a sequence over all states; rewards has one entry per agent
        and costs one per constraint. The transition is stored sparsely where that is smaller.
        """
        checked = numbers("thresholds", thresholds)
        return cls(
            **tabulate(step, (num_states, *num_actions), len(checked)),
            thresholds=checked,
            initial=initial,
            horizon=horizon,
            discount=discount,
            agent_names=agent_names,
            state_names=state_names,
            action_names=action_names,
            constraint_names=constraint_names,
        )

    @classmethod
    @explains_keywords(costs="pass cost.", thresholds="pass threshold.")
    def from_matrices(
        cls,
        *payoffs: Any,
        cost: Any = None,
        threshold: Any = None,
        agent_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | None = None,
        constraint_names: Sequence[str] | None = None,
    ) -> JointGame:
        """Build a one-shot game from payoff matrices, as game theorists write them.

        Parameters
        ----------
        payoffs : [A_1, …, A_n] each
            One for each agent, with one axis per agent; or a single one, which all agents share.
        cost : [A_1, …, A_n], or [k, A_1, …, A_n]
            Of one constraint, or of several.
        threshold : number, or [k]
            What the expected cost may be at most.

        Examples
        --------
        >>> game = JointGame.from_matrices([[3, 2], [2, 4]], cost=[[0, 0], [0, 1]], threshold=0.5)
        >>> game.num_agents, game.at(game.uniform_policy()).costs
        (2, array([0.25]))
        """
        tables = [numbers(f"payoffs[{i}]", each) for i, each in enumerate(payoffs)]
        if not tables or len(tables) not in (1, tables[0].ndim):
            needed = tables[0].ndim if tables else "at least one"
            raise GameError(f"{len(tables)} payoff matrices are given; {needed} are required, one axis for each agent.")
        for i, each in enumerate(tables):
            check_shape(f"payoffs[{i}]", each.shape, tables[0].shape)
        if (cost is None) != (threshold is None):
            raise GameError("cost and threshold go together: pass both, or neither.")
        actions = tables[0].shape
        paid = numbers("cost", [] if cost is None else cost)
        paid = paid[None] if paid.ndim == len(actions) else paid
        rewards = np.stack(tables if len(tables) > 1 else tables * len(actions))
        return cls(
            transition=np.ones((1, 1, *actions, 1)),
            rewards=rewards[:, None, None],
            costs=paid[:, None, None] if len(paid) else [],
            thresholds=np.atleast_1d(numbers("threshold", [] if threshold is None else threshold)),
            initial=[1.0],
            horizon=1,
            agent_names=agent_names,
            action_names=action_names,
            constraint_names=constraint_names,
        )


def joint_or_none(game: Game) -> JointGame | None:
    """Return a game that has tables over joint states and joint actions, or None for any other form."""
    return game if isinstance(game, JointGame) else None


def as_joint(game: Game, *, wanted: str) -> JointGame:
    """Return a game that has tables over joint states and joint actions, or raise `UnsupportedError`.

    Parameters
    ----------
    game
        Any game.
    wanted
        What the caller needs the tables for: "cannot be simulated", "has no dual function", …
    """
    joint = joint_or_none(game)
    if joint is None:
        advice = "Joint tables are needed: build a JointGame, or call `to_joint` on a small local or counting game."
        raise UnsupportedError(type(game).__name__, wanted, advice)
    return joint


def _checked_tables(game: JointGame) -> dict[str, Any]:
    check_length_of_time(game.horizon, game.discount)
    rewards = numbers("rewards", game.rewards)
    check_agents(len(rewards) if rewards.ndim else 0)
    if rewards.ndim < 4 or rewards.ndim != 3 + rewards.shape[0]:
        raise GameError(
            f"rewards has shape {list(rewards.shape)}; [n, H or 1, S, A_1, …, A_n] is required: "
            "one action axis per agent."
        )
    if 0 in rewards.shape:
        raise GameError(
            f"rewards has shape {list(rewards.shape)}; every agent needs an action, and there must be a state."
        )
    steps, table = game.num_steps, rewards.shape[2:]
    check_steps("rewards", rewards.shape[1], steps)
    initial = numbers("initial", game.initial)
    check_shape("initial", initial.shape, table[:1])
    costs = numbers("costs", game.costs)
    if costs.size == 0 and len(costs) == 0:
        costs = frozen(np.zeros((0, 1, *table)))
    if costs.ndim != rewards.ndim:
        raise GameError(f"costs has shape {list(costs.shape)}; [k, H or 1, S, A_1, …, A_n] is required.")
    check_steps("costs", costs.shape[1], steps)
    check_shape("costs", costs.shape, (*costs.shape[:2], *table))
    thresholds = numbers("thresholds", game.thresholds)
    check_thresholds(thresholds, costs.shape[0])
    tables: dict[str, Any] = {
        "rewards": rewards,
        "costs": costs,
        "thresholds": thresholds,
        "initial": distributions("initial", initial, ()),
        "transition": checked_transition(game.transition, (steps, *table)),
    }
    if object in (rewards.dtype, costs.dtype, thresholds.dtype, initial.dtype):
        tables["transition"] = _dense_transition(tables["transition"], table)
    return tables | checked_labels(
        game,
        [(steps, table[0], actions) for actions in table[1:]],
        agent_names=len(rewards),
        state_names=table[0],
        action_names=table[1:],
        constraint_names=len(costs),
    )


def _dense_transition(transition: Any, shape: Sequence[int]) -> Any:
    """Return a transition as one table [H or 1, S, *A, S]; CSR matrices hold no Fractions."""
    if not isinstance(transition, tuple):
        return transition
    return frozen(np.stack([matrix.toarray() for matrix in transition]).reshape(-1, *shape, shape[0]))


def _checked_thresholds(thresholds: Any, game: JointGame) -> FloatArray:
    given = numbers("thresholds", thresholds)
    check_thresholds(given, game.num_constraints)
    return given if game.rationals is not None else to_floats(given)


explained(JointGame)
