"""The contract between a game and everything that is done with it.

A `Game` knows its agents, its thresholds and its time. `game.at(policy)` is a `Position`: the game as it stands when
all agents play that policy, which can say what each agent gets, what is left below the thresholds, and which CMDP an
agent faces when only it moves. Any class that has these members runs through `solve`, `certify` and the page;
`check_game` walks through them and says what is wrong.

What some classes can do better is a function here with a default, which is always right: `planner`, `forbidden`,
`agent_bounds`, …. A class has a method of the same name, or it has not. Two things are
different in kind, and are protocols: `SharedResources` and `Playable`.

What a proof rests on is no such thing. Which constraints bind whom is the field `binds`, and what underflow can hide is
`Position.underflow`, a required member.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Required, Self, TypedDict, TypeVar, Unpack, runtime_checkable

import numpy as np

from cmpg.arrays import BoolArray, FloatArray, IntArray, check_shape, frozen, numbers
from cmpg.cmdp.evaluation import Evaluation, Underflow, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError, UnsupportedError
from cmpg.games.names import Amount as Amount
from cmpg.games.names import Legend as Legend
from cmpg.games.names import Names as Names
from cmpg.games.names import check_legend, checked_names
from cmpg.policy import JointPolicy, PolicyShape, check_is_policy
from cmpg.summaries import fields_line

if TYPE_CHECKING:
    from cmpg.cmdp.support import Forbidden


class Information(StrEnum):
    """What a policy may depend on; a Nash claim is against deviations of the same kind.

    Examples
    --------
    >>> from cmpg.scenarios import grid_world, grid_world_local
    >>> grid_world().information.name, grid_world_local().information.name
    ('JOINT_STATE', 'OWN_STATE')
    >>> print(Information.JOINT_STATE.covers)
    deviations by the joint state and all that happened before
    """

    JOINT_STATE = "joint-state policies"
    OWN_STATE = "own-state policies"

    @property
    def covers(self) -> str:
        """Which deviations a claim covers, and which it does not."""
        if self is Information.JOINT_STATE:
            return "deviations by the joint state and all that happened before"
        return (
            "deviations by an agent's own states and actions; an agent that watches loads or delays during the day is "
            "not covered"
        )


class PotentialKind(Enum):
    """Why a game is known to have a potential: the classes of docs/glossary.md, or its author's word.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example, spectrum
    >>> counter_example().potential_proof().kind.name, spectrum().potential_proof().kind.name
    ('COMMON_REWARD', 'EXOGENOUS_STATE')
    """

    ONE_AGENT = "one agent"
    COMMON_REWARD = "C1"
    EXOGENOUS_STATE = "C2"
    INDEPENDENT_DYNAMICS = "C3"
    UNINFLUENCED_DIFFERENCES = "C4"
    DECLARED = "declared"


@dataclass(frozen=True)
class PotentialProof:
    """Why a game has a potential, and what any 4-cycle of its values can sum to at most.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game, counter_example
    >>> proof = counter_example().potential_proof()
    >>> proof.kind.value, proof.residual
    ('C1', 0.0)
    >>> congestion_game(num_agents=2).potential_proof() is None
    True
    """

    kind: PotentialKind
    reason: str
    residual: float = 0.0


class Position(Protocol):
    """A game at a joint policy.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> position = game.at(game.uniform_policy())
    >>> position.values, position.costs, position.slacks
    (array([2.75, 2.75]), array([0.25]), array([0.25]))
    >>> position.replace(0, [[[1.0, 0.0]]]).costs
    array([0.])
    """

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

    def replace(self, agent: int, table: Any) -> Self:
        """Return the position after one agent has changed its policy."""


def check_is_game(game: Any) -> None:
    """Raise unless this is a game; the message says what to pass instead."""
    if isinstance(game, (str, Path)):
        raise GameError(f"the game is given as {str(game)!r}; read the file first: cmpg.load_game({str(game)!r}).")
    if hasattr(game, "truncated") and not isinstance(game, type):
        advice = "is solved and certified, and nothing else"
        raise UnsupportedError(type(game).__name__, advice, "Take truncated(steps), its first steps.")
    if isinstance(game, type) or not hasattr(game, "at") or not hasattr(game, "policy_shapes"):
        advice = "cmpg.check_game says what a game must have."
        if hasattr(game, "spread"):
            advice = "crowds are solved and certified by groups; spread() returns the game agent by agent."
        raise GameError(f"a {type(game).__name__} is not a game; {advice}")


class HasConstraints(Protocol):
    """What `binds_of` reads of a game."""

    @property
    def num_agents(self) -> int:
        """n."""

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""


class Game(Protocol):
    """Several agents, shared constraints, finite or discounted time.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game: Game = counter_example()
    >>> game.num_agents, game.policy_shapes, game.thresholds
    (2, ((1, 1, 2), (1, 1, 2)), array([0.5]))
    >>> game.at(game.uniform_policy()).values
    array([2.75, 2.75])
    """

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
        """Return Φ(policy) − Φ(`JointPolicy.reference`), which is well defined where the game has a potential."""

    def potential_proof(self) -> PotentialProof | None:
        """Return why the game has a potential, or None where its structure does not tell."""

    def with_thresholds(self, thresholds: Any) -> Self:
        """Return the same game with other thresholds: [k]."""


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


@dataclass(frozen=True, eq=False)
class Stepped:
    """What one step of B episodes brought; states have one row for all agents that see the joint state.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> stepper, rng = counter_example().stepper(), np.random.default_rng(0)
    >>> brought = stepper.step(0, stepper.begin(2, rng), np.array([[0, 1], [0, 1]]), rng)
    >>> brought.rewards, brought.costs
    (array([[3., 4.],
           [3., 4.]]), array([[0., 1.]]))
    """

    rewards: FloatArray  # [n, B]
    costs: FloatArray  # [k, B]
    states: IntArray  # [n or 1, B], after the step

    __repr__ = fields_line


class Stepper(Protocol):
    """How a game is played, B episodes side by side; everything random comes from the generator.

    Examples
    --------
    >>> from cmpg.scenarios import spectrum
    >>> rng = np.random.default_rng(0)
    >>> stepper = spectrum().stepper()
    >>> states = stepper.begin(1000, rng)
    >>> stepper.step(0, states, np.ones((3, 1000), dtype=int), rng).rewards.shape
    (3, 1000)
    """

    @property
    def payoff_scale(self) -> float:
        """The most that a step of one agent can bring it, or add to a cost; 1 if that is not known."""

    def begin(self, episodes: int, rng: np.random.Generator) -> IntArray:
        """Draw the first states: [n or 1, B]."""

    def step(self, h: int, states: IntArray, actions: IntArray, rng: np.random.Generator) -> Stepped:
        """Play joint actions [n, B] at step h in states [n or 1, B], and draw the next states."""


@runtime_checkable
class Playable(Protocol):
    """A game that can be played step by step; `cmpg.games.OneByOne` helps where one episode is all that can be.

    Examples
    --------
    >>> from cmpg.scenarios import spectrum
    >>> isinstance(spectrum(), Playable)
    True
    >>> spectrum().stepper().begin(4, np.random.default_rng(0)).shape
    (1, 4)
    """

    def stepper(self) -> Stepper:
        """Return how it is played."""


class Objective(Enum):
    """What policies are compared by.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> counter_example().planner(Objective.WELFARE).description
    'a planner who chooses all actions'
    """

    WELFARE = "total value"
    POTENTIAL = "potential"


@dataclass(frozen=True, eq=False)
class UpperBound:
    """No feasible policy is worth more, in exact arithmetic.

    Examples
    --------
    >>> from cmpg.equilibrium import PlannerStart
    >>> from cmpg.scenarios import counter_example
    >>> bound = PlannerStart()(counter_example()).bound
    >>> round(bound.value, 6), bound.multipliers, bound.proof
    (7.0, array([2.]), 'a planner who chooses all actions')
    """

    value: float  # with an allowance for rounding
    multipliers: FloatArray  # [k]: the common λ of the relaxation that proves it
    proof: str  # how, in a few words

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Planner:
    """The CMDP of one planner who chooses all actions for one objective, and how its choices are split among agents.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> planner = counter_example().planner(Objective.WELFARE)
    >>> planner.cmdp.num_actions
    4
    >>> planner.split(np.array([[3]]))[1]
    array([[[0., 1.]]])
    """

    cmdp: CMDP  # its reward is at least what any joint action adds to the objective; rounding included
    split: Callable[[IntArray], JointPolicy]  # actions [H, S] of the CMDP
    description: str  # what the planner chooses
    marginals: Callable[[FloatArray], JointPolicy] | None = None  # each agent's part of a policy [H, S, A] of the CMDP

    __repr__ = fields_line


At = TypeVar("At", covariant=True)
PositionT = TypeVar("PositionT", bound=Position)


@dataclass(frozen=True, eq=False)
class DynamicsEnd(Generic[At]):
    """Where best-response dynamics at fixed multipliers ended, after how many moves; where they began if after none."""

    position: At
    moves: int


@dataclass(frozen=True, eq=False)
class AgentBounds:
    """What every agent has, what it could get at most, and how much rounding could hide in the difference: [n] each."""

    values: FloatArray
    bounds: FloatArray
    rounding: FloatArray


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
    costs = np.where(bound[:, None, None, None], cmdp.costs, 0.0)
    return replace(cmdp, costs=frozen(costs), thresholds=frozen(np.where(bound, cmdp.thresholds, 1.0)), trusted=True)


# --- What a game may do: a method with a default ----------------------------------------------------------------------
#
# A class of games, or of positions, has these methods where it can do better than the default, which is always right:
# what a class lacks can make an answer slower, or leave it open, and never more certain.


def planner(game: Game, objective: Objective | None) -> Planner | None:
    """Return one planner who chooses all actions, by an objective or, without one, by costs alone.

    None unless `game.planner` returns one: tables may be too large, or the potential none of stages.
    """
    found: Planner | None = _own(game, "planner", objective)
    return found


def private_cmdps(game: Game) -> tuple[CMDP, ...] | None:
    """Return each agent's CMDP with its private costs, if agents share nothing but sums of those (Example 2)."""
    found: tuple[CMDP, ...] | None = _own(game, "private_cmdps")
    return found


def relaxed_bound(game: Game, objective: Objective, near: JointPolicy, multipliers: FloatArray) -> UpperBound | None:
    """Return a bound over all feasible policies, or None where `game.upper_bound` has none that is affordable.

    A good feasible policy and common multipliers [k] are known; a game may look near them. The potential is counted as
    by `potential`.
    """
    found: UpperBound | None = _own(game, "upper_bound", objective, near, multipliers)
    return found


def max_weighted_slack(game: Game, multipliers: FloatArray) -> float | None:
    """Return what λ·(α − V^c) cannot exceed, whatever the policy: where that is negative, none is feasible."""
    found: float | None = _own(game, "max_weighted_slack", multipliers)
    return found


def tightest_multipliers(game: Game) -> FloatArray | None:
    """Return multipliers [k] that sum to one, by which as little as possible is left below the thresholds."""
    found: FloatArray | None = _own(game, "tightest_multipliers")
    return found


def current(position: Position, agent: int) -> Evaluation:
    """Return what one agent's policy is worth and spends in its induced CMDP."""
    found: Evaluation | None = _own(position, "current", agent)
    return evaluate(position.induced_cmdp(agent), position.policy[agent]) if found is None else found


def forbidden(position: Position, agent: int, constraint: int) -> Forbidden | None:
    """Return which actions no feasible deviation of one agent takes where it may come to them.

    None where something is left of the budget, and if that cannot be decided without rounding.
    """
    found: Forbidden | None = _own(position, "forbidden", agent, constraint)
    return found


def agent_bounds(position: Position, multipliers: FloatArray, agents: range | None = None) -> AgentBounds | None:
    """Return weak duality's bounds at multipliers [n, k] by one call, or None: then they are computed one by one.

    If only some neighbouring agents are queried, the multipliers are theirs.
    """
    found: AgentBounds | None = _own(position, "agent_bounds", multipliers, agents)
    return found


def bounded_together(position: Position, agent: int) -> range:
    """Return an agent and those after it that `agent_bounds` bounds at little more than the price of one."""
    found: range | None = _own(position, "bounded_together", agent)
    return range(agent, agent + 1) if found is None else found


class DynamicsTerms(TypedDict, total=False):
    """How agents take turns at fixed multipliers, and when that ends."""

    turns: Required[int]  # agents that are queried, at most
    worth: Required[float]  # a gain of less than this share of an agent's range is no reason to move
    waiting: Collection[int]  # agents that keep their policies
    rng: np.random.Generator | None  # breaks ties at random
    deadline: float  # on the clock of time.monotonic
    workers: int  # threads, where a game can use them; the bits are the same for any number


def best_response_dynamics(
    position: PositionT, multipliers: FloatArray, **terms: Unpack[DynamicsTerms]
) -> DynamicsEnd[PositionT] | None:
    """Let agents in turn move to what is best for them at multipliers [k], by one call; None: one by one."""
    found: DynamicsEnd[PositionT] | None = _own(position, "best_response_dynamics", multipliers, **terms)
    return found


def _own(thing: Any, method: str, *arguments: Any, **named: Any) -> Any:
    """Return what a method of a class's own returns, or None if it has no such method."""
    own = getattr(thing, method, None)
    return None if own is None else own(*arguments, **named)


# --- What the forms do alike: they take these functions as methods ----------------------------------------------------


def uniform_policy_of(game: Game) -> JointPolicy:
    """Return the policy by which all agents play every action equally often."""
    return JointPolicy.uniform(game.policy_shapes)


def random_policy_of(game: Game, *, rng: np.random.Generator) -> JointPolicy:
    """Return a policy whose rows are drawn uniformly from the simplex."""
    return JointPolicy.random(game.policy_shapes, rng=rng)


def played_policy(game: Game, policy: JointPolicy) -> JointPolicy:
    """Return a policy as it is played, in floats, or raise unless it is one of the game."""
    check_is_policy(policy)
    policy.check_fits(game.policy_shapes)
    return policy.floats()


def checked_labels(game: Any, shapes: Sequence[PolicyShape], **names: int | Sequence[int]) -> dict[str, Any]:
    """Return names and `binds` of a game as it keeps them, or raise if these or its legend do not fit its tables.

    Parameters
    ----------
    game
        Has the fields.
    shapes
        [H, S_i, A_i] of each agent's policy.
    names
        By field, how many names there must be: a number, or one for each agent.
    """
    legend = getattr(game, "legend", None)
    if legend is not None:
        check_legend(legend, shapes)
    return checked_names(game, **names) | {"binds": checked_binds(game.binds, len(shapes), len(game.thresholds))}


def potential_by_moves(game: Game, policy: JointPolicy) -> float:
    """Return Φ(policy) − Φ(reference), by moving one agent at a time (Lemma 1); exact where a potential exists.

    No agent mixes at the reference, so averages over the others are cheap on the way to a policy that mixes little.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> potential_by_moves(game, game.uniform_policy()), game.at(game.uniform_policy()).values - 3
    (-0.25, array([-0.25, -0.25]))
    """
    position, total = game.at(JointPolicy.reference(game.policy_shapes)), 0.0
    for agent, table in enumerate(policy):
        cmdp = position.induced_cmdp(agent)
        total += float(evaluate(cmdp, table).value - evaluate(cmdp, position.policy[agent]).value)
        position = position.replace(agent, table)
    return total
