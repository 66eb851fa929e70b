"""The contract between a game and everything that is done with it.

A `Game` knows its agents, its thresholds and its time. `game.at(policy)` is a `Position`: the game as it stands when
everybody plays that policy, which can say what each agent gets, what is left below the thresholds, and which CMDP an
agent faces when only it moves. Any class that has these members runs through `solve`, `certify` and the page;
`check_game` walks through them and says what is wrong.

What only some games can do is a protocol with a name of its own: `CentralPlanner`, `IndependentAgents`, `ExactForm`,
`ExactCosts`, `HardBudgets`, `SharedResources`, `Settles`, `JudgesAgents`, `LeavesOut`, `PlansFor`,
`Bounded`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from cmpg.arrays import BoolArray, FloatArray, IntArray, check_shape, frozen, numbers
from cmpg.cmdp.evaluation import Evaluation, Underflow, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import plan
from cmpg.errors import GameError
from cmpg.faces import fields_line
from cmpg.games.names import Amount as Amount
from cmpg.games.names import Legend as Legend
from cmpg.games.names import Names as Names
from cmpg.policy import JointPolicy, PolicyShape

if TYPE_CHECKING:
    from cmpg.cmdp.support import Forbidden


class Information(StrEnum):
    """What a policy may depend on; a Nash claim is against deviations of the same kind."""

    JOINT_STATE = "joint-state policies"
    OWN_STATE = "own-state policies"


class PotentialKind(Enum):
    """Why a game is known to have a potential: the classes of docs/glossary.md, or its author's word."""

    ONE_AGENT = "one agent"
    COMMON_REWARD = "C1"
    EXOGENOUS_STATE = "C2"
    INDEPENDENT_DYNAMICS = "C3"
    UNINFLUENCED_DIFFERENCES = "C4"
    DECLARED = "declared"


@dataclass(frozen=True)
class PotentialProof:
    """Why a game has a potential, and what any 4-cycle of its values can sum to at most."""

    kind: PotentialKind
    reason: str
    residual: float = 0.0


class Position(Protocol):
    """A game at a joint policy."""

    @property
    def policy(self) -> JointPolicy:
        """The joint policy."""

    @property
    def values(self) -> FloatArray:
        """V^{r_i}, one per agent: [n]."""

    @property
    def costs(self) -> FloatArray:
        """V^{c_j}, one per constraint: [k]."""

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""

    def underflow(self) -> Underflow | None:
        """Return what products of probabilities too small for floats can hide, or None where none is that small."""

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies (Eqs. 7-9).

        It has 0 ≤ 1 in place of each constraint that does not bind the agent; `bound_cmdp` makes it so.
        """

    def present(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP."""

    def replace(self, agent: int, table: Any) -> Self:
        """Return the position after one agent has changed its policy."""

    def same_problem(self, agent: int, earlier: Self) -> bool:
        """Whether one agent faces the same CMDP here as at an earlier position; False where that is costly to tell."""


class HasConstraints(Protocol):
    """What `binds_of` reads of a game."""

    @property
    def num_agents(self) -> int:
        """n."""

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""


class Game(Protocol):
    """Several agents, shared constraints, finite or discounted time."""

    @property
    def num_agents(self) -> int:
        """n."""

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""

    @property
    def horizon(self) -> int | None:
        """H, or None where the sum is discounted."""

    @property
    def discount(self) -> float | None:
        """γ, or None where the horizon is finite."""

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S_i, A_i] of each agent's policy."""

    @property
    def reward_ranges(self) -> FloatArray:
        """G_i: no two joint policies differ by more in V^{r_i}: [n]."""

    @property
    def information(self) -> Information:
        """What a policy may depend on."""

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""

    def at(self, policy: JointPolicy) -> Position:
        """Return the game as it stands at a joint policy."""

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(uniform policy), which is well defined where the game has a potential."""

    def potential_proof(self) -> PotentialProof | None:
        """Return why the game has a potential, or None where its structure does not tell."""

    def with_thresholds(self, thresholds: Any) -> Self:
        """Return the same game with other thresholds: [k]."""


@runtime_checkable
class CentralPlanner(Protocol):
    """A game that one planner, who chooses all actions, can plan for."""

    def joint_cmdp(self) -> CMDP:
        """Return the planner's CMDP; its costs and transitions are those of the game, in floats."""

    def split(self, joint_actions: IntArray) -> JointPolicy:
        """Split the planner's deterministic choices [H, S] into one table per agent."""


@runtime_checkable
class IndependentAgents(Protocol):
    """A game whose agents may share nothing but sums of private costs (the paper's Example 2)."""

    def private_cmdps(self) -> tuple[CMDP, ...] | None:
        """Return each agent's CMDP with its private costs, or None where the agents meet in a constraint."""


@runtime_checkable
class ExactForm(Protocol):
    """A game that can be read as exact rationals."""

    @property
    def is_exact(self) -> bool:
        """Whether the tables hold Fractions already."""

    def exact(self) -> Any:
        """Return the same game with every number read as a rational."""

    def floats(self) -> Any:
        """Return the same game in floats."""


@runtime_checkable
class ExactCosts(Protocol):
    """A position that can compare its costs with the thresholds exactly, if little enough can happen there."""

    def exact_costs(self, policy: JointPolicy) -> Sequence[tuple[Fraction, Fraction]] | None:
        """Return the least and the most that V^{c_j} of the policy as it was given can be, or None: that takes long.

        Both are the same, or close enough to tell whether the threshold is met, or as close as can be afforded.
        """


@runtime_checkable
class HardBudgets(Protocol):
    """A position that can tell what a budget forbids of which nothing is left, from what is possible alone."""

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation of one agent takes where it may come to them.

        None where something is left of the budget, or where that cannot be told without rounding.
        """


class ResourcePosition(Position, Protocol):
    """A position whose agents meet at shared resources, and who uses which of them when."""

    def usage(self, agent: int) -> FloatArray:
        """Return the probability that one agent uses each resource, by step: [H, E]."""

    def load_probabilities(self) -> FloatArray:
        """Return the probability that m agents use a resource, by step: [n + 1, H, E]."""

    def resource_costs(self) -> FloatArray:
        """Return what each resource adds to each cost, by step: [k, H, E]."""

    def agent_costs(self) -> FloatArray:
        """Return what each agent adds to each cost by itself, by step: [k, H, n]."""


@runtime_checkable
class SharedResources(Game, Protocol):
    """A game whose agents meet at shared resources."""

    @property
    def all_resource_names(self) -> tuple[str, ...]:
        """What the resources are called: [E]."""

    def at(self, policy: JointPolicy) -> ResourcePosition:
        """Return the game as it stands at a joint policy."""


class Dynamics(Protocol):
    """How a game is played, one step at a time; everything random comes from the generator."""

    def begin(self, rng: np.random.Generator) -> IntArray:
        """Draw the state that each agent sees at first: [n]; the same for all who see the joint state."""

    def step(
        self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Play one joint action [n] at step h; return rewards [n], costs [k] and the next states [n]."""


@runtime_checkable
class Playable(Protocol):
    """A game that can be played step by step, as an environment is."""

    def dynamics(self) -> Dynamics:
        """Return how it is played."""


@dataclass(frozen=True, eq=False)
class BatchStep:
    """One step of B episodes; whoever sees the joint state sees one row of states, and else there is one per agent."""

    actions: IntArray  # [n, B]
    rewards: FloatArray  # [n, B]
    costs: FloatArray  # [k, B]
    states: IntArray  # [n or 1, B], after the step

    __repr__ = fields_line


class BatchDynamics(Protocol):
    """How many episodes of a game are played side by side under one policy."""

    @property
    def payoff_scale(self) -> float:
        """The most that a step of one agent can bring it, or add to a cost, where that is known."""

    def begin(self, episodes: int, rng: np.random.Generator) -> IntArray:
        """Draw the first states: [n or 1, B]."""

    def play(self, h: int, states: IntArray, rng: np.random.Generator) -> BatchStep:
        """Draw actions and next states at step h, in every episode."""


@runtime_checkable
class PlayableInBatches(Protocol):
    """A game of which many episodes can be played side by side."""

    def batch(self, policy: JointPolicy) -> BatchDynamics:
        """Return how they are played under a policy."""


class Objective(Enum):
    """What policies are compared by."""

    WELFARE = "total value"
    POTENTIAL = "potential"


@dataclass(frozen=True, eq=False)
class UpperBound:
    """No feasible policy is worth more, in exact arithmetic."""

    value: float  # with an allowance for rounding
    multipliers: FloatArray  # [k]: the common λ that proves it
    proof: str  # how, in a few words

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Planner:
    """The CMDP of one planner who chooses all actions for one objective, and how its choices are split among agents."""

    cmdp: CMDP  # its reward is at least what any joint action adds to the objective; rounding included
    split: Callable[[IntArray], JointPolicy]  # actions [H, S] of the CMDP
    told: str  # what the planner chooses
    marginals: Callable[[FloatArray], JointPolicy] | None = None  # each agent's part of a policy [H, S, A] of the CMDP

    __repr__ = fields_line


@runtime_checkable
class PlansFor(Protocol):
    """A game that one planner, who chooses all actions, can plan for by an objective."""

    def planner(self, objective: Objective) -> Planner | None:
        """Return the planner, or None where the tables are too large, or the potential is none of stages."""


@runtime_checkable
class Bounded(Protocol):
    """A game that can bound what any feasible policy is worth."""

    def upper_bound(self, objective: Objective, near: JointPolicy, multipliers: FloatArray) -> UpperBound | None:
        """Return a bound over all feasible policies, or None where none is affordable.

        A good feasible policy and common multipliers [k] are known; a game may look near them. The potential is counted
        as by `potential`.
        """

    def most_left(self, multipliers: FloatArray) -> float:
        """Return what λ·(α − V^c) cannot exceed, whatever the policy: where that is negative, none is feasible."""

    def scarcest(self) -> FloatArray:
        """Return multipliers [k] that sum to one, by which as little as possible is left below the thresholds."""


At = TypeVar("At", covariant=True)


@dataclass(frozen=True, eq=False)
class Settlement(Generic[At]):
    """Where agents came to by turns at common multipliers, and in how many moves; the same position if in none."""

    position: At
    moves: int


@runtime_checkable
class Settles(Protocol):
    """A position whose agents can take many turns at common multipliers in one call."""

    def settle(
        self,
        multipliers: FloatArray,
        *,
        turns: int,
        worth: float,
        waiting: Collection[int] = (),
        rng: np.random.Generator | None = None,
        deadline: float = np.inf,
        workers: int = 1,
    ) -> Settlement[Self] | None:
        """Let agents who do not wait move to what is best for them, in turn; or return None: they are asked then."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """What every agent has, what it could get at most, and how much rounding could hide in the difference: [n] each."""

    values: FloatArray
    bounds: FloatArray
    rounding: FloatArray


@runtime_checkable
class JudgesAgents(Protocol):
    """A position that can bound what all its agents could get in one call."""

    def judgements(self, multipliers: FloatArray, agents: range | None = None) -> Judgements | None:
        """Return weak duality's bounds at multipliers [n, k], or None: then they are computed agent by agent.

        Where only some neighbouring agents are asked for, the multipliers are theirs.
        """

    def neighbours(self, agent: int) -> range:
        """Return an agent and those after it who are judged at little more than the price of one."""


@runtime_checkable
class LeavesOut(Protocol):
    """A position that can leave one agent out."""

    def without(self, agent: int) -> Self | None:
        """Return the position as if one agent were not there, until it moves; None where that means nothing."""


def binds_of(game: HasConstraints) -> BoolArray:
    """Return whether constraint j binds agent i: [n, k].

    The constraints of a game bind all agents if its field `binds` is None, or if it has no such field.
    """
    stated = getattr(game, "binds", None)
    return np.broadcast_to(np.True_, (game.num_agents, len(game.thresholds))) if stated is None else stated


def checked_binds(binds: Any, num_agents: int, num_constraints: int) -> BoolArray | None:
    """Return a mask [n, k] of zeros and ones as a read-only array; None if all constraints bind all agents."""
    if binds is None:
        return None
    given = numbers("binds", binds)
    check_shape("binds", given.shape, (num_agents, num_constraints))
    if not np.isin(np.asarray(given, dtype=np.float64), (0.0, 1.0)).all():
        raise GameError("binds has an entry other than 0 and 1.")
    mask = np.asarray(given == 1, dtype=bool)
    if num_constraints and not mask.any(axis=0).all():
        free = int(np.argmin(mask.any(axis=0)))
        raise GameError(f"constraint {free} binds no agent; leave it out, or say which agents it binds.")
    return None if mask.all() else frozen(mask)


def only_binding(game: Game, multipliers: FloatArray) -> FloatArray:
    """Return multipliers [n, k] of which those are zero that belong to constraints that do not bind their agent."""
    return np.where(binds_of(game), multipliers, 0.0)


def bound_cmdp(cmdp: CMDP, bound: BoolArray) -> CMDP:
    """Return an agent's CMDP with 0 ≤ 1 in place of each constraint that does not bind the agent: bound is [k]."""
    if bound.all():
        return cmdp
    zero, one = (cmdp.thresholds.dtype.type(each) if not cmdp.is_exact else each for each in (0, 1))
    costs = np.where(bound[:, None, None, None], cmdp.costs, zero)
    return replace(cmdp, costs=frozen(costs), thresholds=frozen(np.where(bound, cmdp.thresholds, one)), trusted=True)


def in_floats(game: Game) -> Game:
    """Return a game in exact numbers rounded to floats, which solvers need; any other as it is."""
    if not isinstance(game, ExactForm) or not game.is_exact:
        return game
    rounded: Game = game.floats()
    return rounded


def cheapest_policy(game: CentralPlanner, multipliers: FloatArray) -> tuple[JointPolicy, float]:
    """Return a deterministic policy of least V^{λ·c} over all joint policies, and that cost (the paper's Example 1)."""
    cheapest = plan(game.joint_cmdp(), multipliers, reward_weight=0.0)
    return game.split(cheapest.actions), float(multipliers @ cheapest.costs)


def potential_by_moves(game: Game, policy: JointPolicy) -> float:
    """Return Φ(policy) − Φ(uniform policy), by moving one agent at a time (Lemma 1); exact where a potential exists."""
    position, total = game.at(JointPolicy.uniform(game.policy_shapes)), 0.0
    for agent, table in enumerate(policy):
        cmdp = position.induced_cmdp(agent)
        total += float(evaluate(cmdp, table).value - evaluate(cmdp, position.policy[agent]).value)
        position = position.replace(agent, table)
    return total
