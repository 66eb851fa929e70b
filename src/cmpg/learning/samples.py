"""What learners know beforehand, what they have seen, and what it cost.

`ProblemSpec` is everything but the transition: sizes, thresholds, the initial law, the ranges of rewards and costs,
and, unless they are to be learned too, rewards and costs themselves (the paper's assumption). `Samples` are counts. One
transition is one sample, whichever way it was drawn; an episode of H steps is H samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray, check_shape, distributions, frozen, numbers
from cmpg.cmdp.model import check_length_of_time, check_steps, check_thresholds
from cmpg.errors import BudgetError, GameError, SimulatorError
from cmpg.games.game import binds_of, checked_binds
from cmpg.games.joint.averages import average_over
from cmpg.policy import JointPolicy, PolicyShape
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame
    from cmpg.learning.truncation import Cut

BoolArray = npt.NDArray[np.bool_]

MANY_TOTALS = 100_000
"""Totals of episodes are searched for equal ones if there are at most this many different ones."""

MAX_SAMPLES = 2**53
"""Numbers above this cannot be counted one by one in floating point, so that many are never drawn."""


@dataclass(frozen=True, eq=False)
class Payoffs:
    """Rewards and costs for every step, state and action.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> payoffs = GameSimulator(spectrum(), rng=np.random.default_rng(0)).known.payoffs
    >>> payoffs.rewards.shape, payoffs.costs.shape
    ((3, 1, 4, 3, 3, 3), (1, 1, 4, 3, 3, 3))
    """

    rewards: FloatArray  # [n, H or 1, S, *A]
    costs: FloatArray  # [k, H or 1, S, *A]

    __repr__ = fields_line

    def induced(self, agent: int, policy: JointPolicy) -> tuple[FloatArray, list[FloatArray]]:
        """Return the reward and the costs of one agent while the others keep to `policy`: [H or 1, S, A_i] each."""
        costs = [average_over(cost, policy, keep=agent) for cost in self.costs]
        return average_over(self.rewards[agent], policy, keep=agent), costs

    def cheapest(self, units: FloatArray, horizon: int) -> JointPolicy:
        """Return the policy that plays what is cheapest at once, costs in these units [k], in every state."""
        sizes = self.costs.shape[3:]
        worst = (self.costs / units.reshape(-1, *(1,) * (self.costs.ndim - 1))).max(axis=0)
        flat = worst.reshape(*worst.shape[:2], -1).argmin(axis=2)
        chosen = np.unravel_index(np.broadcast_to(flat, (horizon, flat.shape[1])), sizes)
        return JointPolicy(tuple(np.eye(actions)[own] for actions, own in zip(sizes, chosen, strict=True)))


@dataclass(frozen=True, eq=False)
class CountingPayoffs:
    """Rewards and costs by how many agents play what."""

    frame: CountingGame  # the game, with a transition that says nothing

    __repr__ = fields_line

    def induced(self, agent: int, policy: JointPolicy) -> tuple[FloatArray, list[FloatArray]]:
        """Return the reward and the costs of one agent while the others keep to `policy`: [H, S, A] each."""
        cmdp = self.frame.at(policy).induced_cmdp(agent)
        return cmdp.reward, list(cmdp.costs)

    def cheapest(self, units: FloatArray, horizon: int) -> JointPolicy:
        """Return the policy that plays what is cheapest at once, costs in these units [k], in every state."""
        costs = self.frame.joint_cmdp().costs  # [k, H or 1, S, classes]
        chosen = (costs / units[:, None, None, None]).max(axis=0).argmin(axis=2)
        return self.frame.split(np.broadcast_to(chosen, (horizon, chosen.shape[1])))


@dataclass(frozen=True, eq=False)
class ProblemSpec:
    """What is known before the first sample; the transition is not among it.

    Examples
    --------
    >>> known = ProblemSpec.from_payoffs(rewards=np.ones((1, 1, 1, 2)), costs=np.zeros((0, 1, 1, 2)), thresholds=[],
    ...                            initial=[1.0], horizon=3)
    >>> known.policy_shapes
    ((3, 1, 2),)
    """

    _: KW_ONLY
    num_actions: tuple[int, ...]
    thresholds: FloatArray  # [k]
    initial: FloatArray  # [S]
    horizon: int
    reward_bounds: FloatArray  # [n, H or 1, 2]: the least and the greatest reward that can be seen
    cost_bounds: FloatArray  # [k, H or 1, 2]
    payoffs: Payoffs | CountingPayoffs | None = None  # None: to be learned from what is observed
    support: BoolArray | None = (
        None  # [H or 1, S, *A, S], or [H or 1, S, C, S]: which next states are possible, if known
    )
    stationary: bool = False  # the transition is the same at every step
    cut: Cut | None = None  # where a discounted game was cut off to be learned
    binds: BoolArray | None = None  # [n, k]: whether constraint j binds agent i; None if all bind all

    __repr__ = fields_line

    def __post_init__(self) -> None:
        check_length_of_time(self.horizon, None)
        initial = numbers("initial", self.initial)
        thresholds = numbers("thresholds", self.thresholds)
        rewards, costs = _bounds("reward_bounds", self.reward_bounds), _bounds("cost_bounds", self.cost_bounds)
        check_shape("reward_bounds", rewards.shape[:1], (len(self.num_actions),))
        for name, table in (("reward_bounds", rewards), ("cost_bounds", costs)):
            check_steps(name, table.shape[1], self.horizon)
        check_thresholds(thresholds, len(costs))
        object.__setattr__(self, "initial", distributions("initial", initial, ()))
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "reward_bounds", rewards)
        object.__setattr__(self, "cost_bounds", costs)
        object.__setattr__(self, "binds", checked_binds(self.binds, self.num_agents, len(thresholds)))
        self._check_tables()

    def _check_tables(self) -> None:
        """Raise unless payoffs and support, where they are known, fit the states and the actions."""
        entry = self.entry_shape
        if isinstance(self.payoffs, Payoffs):
            rewards, costs = self.payoffs.rewards, self.payoffs.costs
            for name, table, number in (("rewards", rewards, self.num_agents), ("costs", costs, self.num_constraints)):
                check_shape(name, table.shape, (number, *table.shape[1:2], *entry))
                check_steps(name, table.shape[1], self.horizon)
        if self.support is not None:
            check_shape("support", self.support.shape, (*self.support.shape[:1], *entry, self.num_states))
            check_steps("support", len(self.support), self.horizon)

    @classmethod
    def from_payoffs(
        cls,
        *,
        rewards: Any,
        costs: Any,
        thresholds: Any,
        initial: Any,
        horizon: int,
        support: BoolArray | None = None,
        stationary: bool = False,
    ) -> ProblemSpec:
        """Know the rewards [n, H or 1, S, *A] and the costs [k, H or 1, S, *A], as the paper assumes."""
        payoffs = _payoffs(numbers("rewards", rewards), numbers("costs", costs))
        return cls(
            num_actions=tuple(payoffs.rewards.shape[3:]),
            thresholds=thresholds,
            initial=initial,
            horizon=horizon,
            reward_bounds=observed_bounds(payoffs.rewards),
            cost_bounds=observed_bounds(payoffs.costs),
            payoffs=payoffs,
            support=support,
            stationary=stationary,
        )

    @property
    def num_agents(self) -> int:
        """n."""
        return len(self.num_actions)

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.initial)

    @property
    def num_constraints(self) -> int:
        """k."""
        return len(self.thresholds)

    @property
    def limits(self) -> FloatArray:
        """What a policy may cost: the thresholds, less what may follow where a discounted game was cut off: [k]."""
        return self.thresholds if self.cut is None else np.asarray(self.thresholds - self.cut.cost_tails)

    def bound(self, agent: int) -> BoolArray:
        """Return which constraints a deviation of agent i has to meet: [k]; a joint policy has to meet all."""
        return np.asarray(binds_of(self)[agent])

    def left_of(self, epsilon: float) -> float:
        """Return how accurate learning must be for ε, less what may follow where a discounted game was cut off."""
        return epsilon if self.cut is None else self.cut.left_of(epsilon)

    @property
    def entry_shape(self) -> tuple[int, ...]:
        """What a next state is drawn for: a state and a joint action, or a state and a class of counts."""
        if isinstance(self.payoffs, CountingPayoffs):
            return self.num_states, self.payoffs.frame.num_classes
        return self.num_states, *self.num_actions

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S, A_i] of each agent's policy."""
        return tuple((self.horizon, self.num_states, actions) for actions in self.num_actions)

    @property
    def reward_spans(self) -> FloatArray:
        """max r_{i,h} − min r_{i,h}: [n, H]."""
        return _spans(self.reward_bounds, self.horizon)

    @property
    def cost_spans(self) -> FloatArray:
        """max c_{j,h} − min c_{j,h}: [k, H]."""
        return _spans(self.cost_bounds, self.horizon)

    @property
    def reward_ranges(self) -> FloatArray:
        """G_i = Σ_h (max r_{i,h} − min r_{i,h}): [n]."""
        return np.asarray(self.reward_spans.sum(axis=1))

    def induced_payoffs(self, agent: int, policy: JointPolicy) -> tuple[FloatArray, FloatArray]:
        """Return the reward [H, S, A_i] and the costs [k, H, S, A_i] of one agent while the others keep to `policy`."""
        if self.payoffs is None:
            raise SimulatorError("rewards and costs are not known here; they must be estimated from samples.")
        shape = self.policy_shapes[agent]
        reward, costs = self.payoffs.induced(agent, policy)
        stacked = np.stack([np.broadcast_to(cost, shape) for cost in costs]) if costs else np.zeros((0, *shape))
        return frozen(np.broadcast_to(reward, shape)), frozen(stacked)

    def extreme_payoffs(self, agent: int) -> tuple[FloatArray, FloatArray]:
        """Return the greatest reward [H or 1, 1, 1] and the least costs [k, H or 1, 1, 1] that agent i can see."""
        return self.reward_bounds[agent, :, 1, None, None], self.cost_bounds[:, :, 0, None, None]

    def induced_support(self, agent: int) -> BoolArray | None:
        """Return which next states agent i's action can lead to, whatever the others do: [H or 1, S, A_i, S]."""
        if self.support is None:
            return None
        if isinstance(self.payoffs, CountingPayoffs):
            some = self.support[:, :, self.payoffs.frame.classes_that_occur].any(axis=2, keepdims=True)
            return np.broadcast_to(some, (*some.shape[:2], self.num_actions[agent], some.shape[3]))
        return np.asarray(self.support.any(axis=self._others(agent)))

    def max_successors(self, agent: int) -> int:
        """Return how many next states one action of agent i can have at most."""
        support = self.induced_support(agent)
        return self.num_states if support is None else int(support.sum(axis=3).max(initial=0))

    def first_alike(self, agent: int, policy: JointPolicy) -> IntArray:
        """Return the first step at which a state's rows have the law that they have at this one: [H − 1, S].

        Steps are alike in a state if the transition is the same at every step, and each of the others does the same.
        Where payoffs are observed with the next states, every step is drawn by itself, the last one too: [H, S].
        """
        steps = self.horizon if self.payoffs is None else self.horizon - 1
        first = np.repeat(np.arange(steps)[:, None], self.num_states, axis=1)
        if self.payoffs is None or not self.stationary:
            return first
        others = np.concatenate([first[..., None] * 0.0, *(policy[j][:steps] for j in self._all_but(agent))], axis=2)
        for h in range(1, steps):
            for earlier in reversed(range(h)):  # the earliest is the last to be written
                same = (others[h] == others[earlier]).all(axis=1)
                first[h] = np.where(same, earlier, first[h])
        return first

    def _others(self, agent: int) -> tuple[int, ...]:
        return tuple(2 + other for other in self._all_but(agent))

    def _all_but(self, agent: int) -> tuple[int, ...]:
        return tuple(other for other in range(self.num_agents) if other != agent)


def cut_settings(known: Any) -> dict[str, Any]:
    """Return what a result says about where a discounted game was cut off; nothing for any other."""
    cut: Cut | None = getattr(known, "cut", None)
    if cut is None:
        return {}
    return {"cut_off_after": cut.horizon, "lost_by_it": float(cut.reward_tails.max())}


def observed_bounds(table: FloatArray, noise: float = 0.0) -> FloatArray:
    """Return the least and the greatest entry per step of a table [m, H or 1, …], widened by noise: [m, H or 1, 2]."""
    flat = table.reshape(*table.shape[:2], int(np.prod(table.shape[2:])))
    return np.stack([flat.min(axis=2) - noise, flat.max(axis=2) + noise], axis=2)


def _payoffs(rewards: FloatArray, costs: FloatArray) -> Payoffs:
    if rewards.ndim < 4 or len(rewards) != rewards.ndim - 3:
        raise GameError(
            f"rewards has shape {list(rewards.shape)}; [n, H or 1, S, *A] is required: a table and an axis of actions "
            f"for each of n agents."
        )
    if costs.size == 0:
        return Payoffs(rewards, frozen(np.zeros((0, 1, *rewards.shape[2:]))))
    check_shape("costs", costs.shape, (*costs.shape[:2], *rewards.shape[2:]))
    return Payoffs(rewards, costs)


def _bounds(name: str, value: Any) -> FloatArray:
    table = numbers(name, value)
    if table.size == 0:
        return frozen(np.zeros((0, 1, 2)))
    if table.ndim != 3 or table.shape[2] != 2:
        raise GameError(
            f"{name} has shape {list(table.shape)}; [m, H or 1, 2] is required: least and greatest per step."
        )
    if (table[..., 0] > table[..., 1]).any():
        raise GameError(f"{name} has a least value above its greatest; give (least, greatest).")
    return table


def _spans(bounds: FloatArray, horizon: int) -> FloatArray:
    return np.broadcast_to(bounds[..., 1] - bounds[..., 0], (len(bounds), horizon))


@dataclass(frozen=True, eq=False)
class PayoffSums:
    """Sums of the rewards and costs that were observed."""

    rewards: FloatArray  # [n, H, S, *A]
    costs: FloatArray  # [k, H, S, *A]


@dataclass(frozen=True, eq=False)
class Samples:
    """How often each entry was tried, and where it led; a single action axis where one agent looks at it.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator
    >>> from cmpg.scenarios import spectrum
    >>> simulator = GameSimulator(spectrum(), rng=np.random.default_rng(0))
    >>> policy = spectrum().uniform_policy()
    >>> samples = simulator.roll_out(policy, 100) + simulator.roll_out(policy, 50)
    >>> int(samples.visits[0].sum()), samples.seen_by(0).visits.shape
    (150, (2, 4, 3))
    """

    visits: IntArray  # [H, S, *A]
    transitions: IntArray  # [H − 1, S, *A, S]: the last step leads nowhere that matters
    observed: PayoffSums | None = None  # None where rewards and costs are known

    __repr__ = fields_line

    def __add__(self, other: Samples) -> Samples:
        observed = None
        if self.observed is not None and other.observed is not None:
            observed = PayoffSums(
                self.observed.rewards + other.observed.rewards, self.observed.costs + other.observed.costs
            )
        return Samples(self.visits + other.visits, self.transitions + other.transitions, observed)

    def reused(self, first: IntArray) -> Samples:
        """Let the draws of a state at one step serve all steps that are alike (`ProblemSpec.first_alike`)."""
        states = np.arange(first.shape[1])
        visits = self.visits.copy()
        visits[: len(first)] = visits[first, states]
        return Samples(visits, self.transitions[first[: len(self.transitions)], states], self.observed)

    def seen_by(self, agent: int) -> Samples:
        """Forget what the others played: [H, S, A_i], and so on."""
        agents = self.visits.ndim - 2
        others = tuple(2 + other for other in range(agents) if other != agent)
        behind = tuple(axis + 1 for axis in others)
        observed = None
        if self.observed is not None:
            observed = PayoffSums(self.observed.rewards.sum(axis=behind), self.observed.costs.sum(axis=behind))
        return Samples(self.visits.sum(axis=others), self.transitions.sum(axis=others), observed)


@dataclass(frozen=True, eq=False)
class Played:
    """A joint policy that was really executed, and for how many episodes; kept so that it can be judged afterwards.

    Examples
    --------
    >>> from cmpg.learning import GameSimulator, InducedProblem, SafeExploration
    >>> from cmpg.scenarios import spectrum
    >>> game = spectrum()
    >>> simulator = GameSimulator(game, rng=np.random.default_rng(0))
    >>> problem = InducedProblem(simulator, 0, JointPolicy.reference(game.policy_shapes))
    >>> played = SafeExploration()(problem, epsilon=2.0, delta=0.1).played
    >>> all(bool((game.at(each.policy).costs <= game.thresholds).all()) for each in played)
    True
    """

    policy: JointPolicy
    episodes: int
    agent: int | None = None  # who explored, where one did

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Totals:
    """What whole episodes add up to: the different totals, and how many episodes had each."""

    values: FloatArray  # [different ones, m]
    counts: IntArray  # [different ones]

    def __add__(self, other: Totals) -> Totals:
        values, counts = np.concatenate([self.values, other.values]), np.concatenate([self.counts, other.counts])
        return Totals.merged(values, counts)

    @classmethod
    def merged(cls, values: FloatArray, counts: IntArray) -> Totals:
        """Gather equal totals, unless there are too many for that to pay."""
        if len(values) > MANY_TOTALS:
            return cls(values, counts)
        different, where = np.unique(values, axis=0, return_inverse=True)
        return cls(different, np.bincount(where.ravel(), counts, len(different)).astype(np.int64))

    @property
    def episodes(self) -> int:
        """How many episodes there were."""
        return int(self.counts.sum())

    @property
    def means(self) -> FloatArray:
        """The mean totals: [m]."""
        return np.asarray(self.counts @ self.values / max(self.episodes, 1))


class Ledger:
    """Samples by purpose, and the budget that they must not exceed.

    Examples
    --------
    >>> ledger = Ledger(budget=100)
    >>> ledger.charge("model", 60)
    >>> ledger.charge("values", 60)
    Traceback (most recent call last):
    cmpg.errors.BudgetError: 60 samples for "values" are needed; 40 of the budget of 100 are left. ...
    >>> ledger.total, dict(ledger.by_purpose)
    (60, {'model': 60})
    """

    def __init__(self, budget: int | None = None) -> None:
        if budget is not None and not (1 <= budget < np.inf and budget == int(budget)):
            raise SimulatorError(f"budget is {budget}; it must be a whole number of at least 1, or None for no limit.")
        self.budget = budget
        self._by_purpose: dict[str, int] = {}

    @property
    def by_purpose(self) -> Mapping[str, int]:
        """How many samples were drawn for what."""
        return dict(self._by_purpose)

    @property
    def total(self) -> int:
        """All samples so far."""
        return sum(self._by_purpose.values())

    @property
    def left(self) -> float:
        """How many samples may still be drawn; infinite where there is no budget."""
        return np.inf if self.budget is None else self.budget - self.total

    def require(self, purpose: str, samples: int) -> None:
        """Raise BudgetError unless that many samples are left, and can be counted."""
        if samples > self.left:
            raise BudgetError(
                f'{samples:.4g} samples for "{purpose}" are needed; {self.left:.4g} of the budget of '
                f"{self.budget:.4g} are left. Raise the budget, or epsilon."
            )
        if samples > MAX_SAMPLES - self.total:
            raise BudgetError(
                f'{samples:.4g} samples for "{purpose}" are needed; more than {MAX_SAMPLES:.4g} in all cannot be '
                f"counted. Raise epsilon."
            )

    def charge(self, purpose: str, samples: int) -> None:
        """Count samples, or raise BudgetError and count nothing."""
        self.require(purpose, samples)
        self._by_purpose[purpose] = self._by_purpose.get(purpose, 0) + int(samples)
