"""Games on a joint state, with tables over joint actions.

Agent i's CMDP (Eqs. 7-9) averages rewards, costs and transitions over what the others play. Averages are taken one agent's axis at
a time, so the work is that of reading the tables a few times, never a loop over joint actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from cmpg.checks import (
    FloatArray,
    GameError,
    check_shape,
    distributions,
    exact_distributions,
    frozen,
    numbers,
    to_exact,
    to_floats,
)
from cmpg.cmdp.model import (
    CMDP,
    check_length_of_time,
    check_steps,
    check_thresholds,
    checked_transition,
    evaluate,
    total_range,
)
from cmpg.games.contraction import average_over, average_rows
from cmpg.policy import JointPolicy, PolicyShape


@dataclass(frozen=True, eq=False)
class JointGame:
    """n agents who all see the joint state, and whose joint action decides rewards, costs and the next state.

    Exactly one of `horizon` and `discount` is given. Tables that do not change with the step have a step axis of length one.

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
    agents: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    actions: tuple[tuple[str, ...], ...] | None = None
    constraints: tuple[str, ...] | None = None
    trusted: InitVar[bool] = False

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            for name, value in _checked_tables(self).items():
                object.__setattr__(self, name, value)

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
    def information(self) -> str:
        """Every agent sees the joint state."""
        return "joint-state policies"

    @property
    def is_sparse(self) -> bool:
        """Whether the transition is a sequence of CSR matrices."""
        return isinstance(self.transition, tuple)

    @property
    def is_exact(self) -> bool:
        """Whether the tables hold Fractions."""
        return self.rewards.dtype == object

    @cached_property
    def reward_ranges(self) -> FloatArray:
        """G_i = Σ_h (max r_{i,h} − min r_{i,h}), which bounds any change of V^{r_i}: [n]."""
        ranges = [total_range(to_floats(reward), self.horizon, self.discount) for reward in self.rewards]
        return frozen(np.array(ranges))

    def uniform_policy(self) -> JointPolicy:
        """Return the policy by which everybody plays every action equally often."""
        return JointPolicy.uniform(self.policy_shapes)

    def random_policy(self, *, rng: np.random.Generator) -> JointPolicy:
        """Return a policy whose rows are drawn uniformly from the simplex."""
        return JointPolicy.random(self.policy_shapes, rng=rng)

    def at(self, policy: JointPolicy) -> JointPosition:
        """Return the game as it stands at a joint policy."""
        policy.check_fits(self.policy_shapes)
        return JointPosition(self, policy.exact() if self.is_exact else policy)

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(uniform), by moving one agent at a time (Lemma 1); exact where a potential exists."""
        position, total = self.at(self.uniform_policy()), 0.0
        for agent, table in enumerate(policy):
            moved = position.replace(agent, table)
            total += float(moved.value_of(agent) - position.value_of(agent))
            position = moved
        return total

    def joint_cmdp(self, reward: FloatArray | None = None) -> CMDP:
        """Return the CMDP of one planner who chooses all actions; its reward is the mean of the agents' unless given.

        Parameters
        ----------
        reward : [H or 1, S, *A]
            What the planner maximises. For a common reward, the mean is that reward.
        """
        chosen = self.rewards.mean(axis=0) if reward is None else reward
        flat = (self.num_states, int(np.prod(self.num_actions)))
        dense = None if self.is_sparse else self.transition.reshape(len(self.transition), *flat, -1)
        return CMDP(
            transition=self.transition if dense is None else dense,
            reward=chosen.reshape(len(chosen), *flat),
            costs=self.costs.reshape(*self.costs.shape[:2], *flat),
            thresholds=self.thresholds,
            initial=self.initial,
            horizon=self.horizon,
            discount=self.discount,
            trusted=True,
        )

    def exact(self) -> JointGame:
        """Read all numbers as rationals, each row of probabilities divided by its exact sum."""
        if self.is_exact:
            return self
        if self.is_sparse:
            shape = (-1, self.num_states, *self.num_actions, self.num_states)
            dense = np.stack([matrix.toarray() for matrix in self.transition]).reshape(shape)
        else:
            dense = self.transition
        return replace(
            self,
            transition=exact_distributions(dense),
            rewards=to_exact(self.rewards),
            costs=to_exact(self.costs),
            thresholds=to_exact(self.thresholds),
            initial=exact_distributions(self.initial),
            trusted=True,
        )

    def floats(self) -> JointGame:
        """Round an exact game to floats; any other is returned as it is."""
        if not self.is_exact:
            return self
        names = ("transition", "rewards", "costs", "thresholds", "initial")
        return replace(self, **{name: to_floats(getattr(self, name)) for name in names})

    @classmethod
    def from_function(
        cls,
        step: Callable[[int, tuple[int, ...]], tuple[Mapping[int, float] | Sequence[float], Any, Any]],
        *,
        num_states: int,
        num_actions: Sequence[int],
        thresholds: Any,
        initial: Any,
        horizon: int | None = None,
        discount: float | None = None,
    ) -> JointGame:
        """Build a stationary game from `step(state, actions) -> next-state distribution, rewards, costs`.

        The distribution is a dict {state: probability} or a sequence over all states; rewards has one entry per agent and
        costs one per constraint. The transition is stored sparsely where that is smaller.
        """
        return cls(
            **tabulate(step, num_states, tuple(num_actions)),
            thresholds=thresholds,
            initial=initial,
            horizon=horizon,
            discount=discount,
        )


@dataclass(frozen=True, eq=False)
class JointPosition:
    """A joint game at a joint policy."""

    game: JointGame
    policy: JointPolicy

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        return np.array([self.value_of(agent) for agent in range(self.game.num_agents)])

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return evaluate(self.induced_cmdp(0), self.policy[0]).costs

    @property
    def rounding(self) -> float:
        """The relative error of `costs`, and of `values` measured against the sum of |r|."""
        return 0.0 if self.game.is_exact else self.induced_cmdp(0).rounding

    def value_of(self, agent: int) -> float:
        """Return V^{r_i} of one agent."""
        return evaluate(self.induced_cmdp(agent), self.policy[agent]).value

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies."""
        if agent not in self._cmdps:
            self._cmdps[agent] = self._contract(agent)
        return self._cmdps[agent]

    def replace(self, agent: int, table: Any) -> JointPosition:
        """Return the position after one agent has changed its policy; what the others face is computed anew."""
        moved = JointPosition(self.game, self.policy.replace(agent, table))
        if agent in self._cmdps:
            moved._cmdps[agent] = self._cmdps[agent]
        return moved

    @cached_property
    def _cmdps(self) -> dict[int, CMDP]:
        return {}

    def _contract(self, agent: int) -> CMDP:
        game = self.game
        if game.is_sparse:
            transition: Any = average_rows(game.transition, self.policy, keep=agent)
        else:
            transition = frozen(average_over(game.transition, self.policy, keep=agent))
        return CMDP(
            transition=transition,
            reward=frozen(average_over(game.rewards[agent], self.policy, keep=agent)),
            costs=frozen(
                np.stack([average_over(cost, self.policy, keep=agent) for cost in game.costs])
                if game.num_constraints
                else np.zeros((0, 1, game.num_states, game.num_actions[agent]))
            ),
            thresholds=game.thresholds,
            initial=game.initial,
            horizon=game.horizon,
            discount=game.discount,
            entry_roundings=sum(game.num_actions) + game.num_agents,
            trusted=True,
        )


def tabulate(
    step: Callable[[int, tuple[int, ...]], tuple[Mapping[int, float] | Sequence[float], Any, Any]],
    num_states: int,
    num_actions: tuple[int, ...],
) -> dict[str, Any]:
    """Call `step` for every state and joint action, and return transition, rewards and costs as tables."""
    pairs = [(state, joint) for state in range(num_states) for joint in np.ndindex(num_actions)]
    rewards, costs = [], []
    rows, columns, probabilities = [], [], []
    for row, (state, joint) in enumerate(pairs):
        ahead, reward, cost = step(state, joint)
        items = ahead.items() if isinstance(ahead, Mapping) else enumerate(ahead)
        for target, probability in items:
            if not 0 <= target < num_states:
                raise GameError(f"step(state={state}, actions={joint}) leads to state {target}; there are {num_states}.")
            if probability:
                rows.append(row)
                columns.append(target)
                probabilities.append(probability)
        rewards.append(np.asarray(reward, dtype=np.float64))
        costs.append(np.asarray(cost, dtype=np.float64))
    matrix = sp.csr_array((probabilities, (rows, columns)), shape=(len(pairs), num_states), dtype=np.float64)
    table = (1, num_states, *num_actions)
    dense = 12 * matrix.nnz >= 8 * len(pairs) * num_states
    return {
        "transition": matrix.toarray().reshape(*table, num_states) if dense else (matrix,),
        "rewards": np.stack(rewards, axis=-1).reshape(-1, *table),
        "costs": np.stack(costs, axis=-1).reshape(-1, *table),
    }


def _checked_tables(game: JointGame) -> dict[str, Any]:
    check_length_of_time(game.horizon, game.discount)
    rewards = numbers("rewards", game.rewards)
    if rewards.ndim < 4 or rewards.ndim != 3 + rewards.shape[0]:
        raise GameError(
            f"rewards has shape {list(rewards.shape)}; [n, H or 1, S, A_1, …, A_n] is required: one action axis per agent."
        )
    if 0 in rewards.shape:
        raise GameError(f"rewards has shape {list(rewards.shape)}; every agent needs an action, and there must be a state.")
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
    tables = {
        "rewards": rewards,
        "costs": costs,
        "thresholds": thresholds,
        "initial": distributions("initial", initial, ()),
        "transition": _joint_transition(game.transition, steps, table),
    }
    return tables | _checked_names(game, rewards, len(costs))


def _joint_transition(transition: Any, steps: int, table: tuple[int, ...]) -> Any:
    if sp.issparse(transition) or (isinstance(transition, Sequence) and any(sp.issparse(m) for m in transition)):
        return checked_transition(transition, (steps, table[0], int(np.prod(table[1:]))))
    dense = numbers("transition", transition)
    check_steps("transition", len(dense) if dense.ndim else 0, steps)
    check_shape("transition", dense.shape, (len(dense), *table, table[0]))
    return distributions("transition", dense, ("h", "s", *("a" for _ in table[1:])))


def _checked_names(game: JointGame, rewards: FloatArray, num_constraints: int) -> dict[str, Any]:
    lengths = {"agents": rewards.shape[0], "states": rewards.shape[2], "constraints": num_constraints}
    names: dict[str, Any] = {}
    for field, length in lengths.items():
        given = getattr(game, field)
        if given is not None:
            if len(given) != length:
                raise GameError(f"{field} has {len(given)} names; {length} are required.")
            names[field] = tuple(str(name) for name in given)
    if game.actions is not None:
        found = tuple(len(each) for each in game.actions)
        if found != rewards.shape[3:]:
            raise GameError(f"actions names {found} actions; {rewards.shape[3:]} are required.")
        names["actions"] = tuple(tuple(str(name) for name in each) for each in game.actions)
    return names
