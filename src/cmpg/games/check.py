"""Is a user's own class a game? A walk through the contract with random policies, which says what is wrong.

Checked: every member is there and of its kind; shapes fit together; values and costs of a position are those of the
CMDPs that it induces; a move changes what it must and nothing else; the mover's CMDP stays the same; costs do not
depend on whose CMDP they are read from; other thresholds change the slacks alone; and where a potential is claimed, its
change is the mover's gain. A check by random policies can refute a game and never prove one.

`InducedPosition` is a position for games that can state nothing but the CMDPs of their agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import BoolArray, FloatArray
from cmpg.cmdp.evaluation import DEEPEST, Underflow, cost_rounding, evaluate
from cmpg.cmdp.model import CMDP, run_depth
from cmpg.cmdp.support import Forbidden, forbidden_in
from cmpg.errors import CMPGError
from cmpg.games.game import Game, Information, Names, Position, PotentialProof, binds_of, bound_cmdp, current
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

GAME, POSITION = ([name for name in vars(each) if not name.startswith("_")] for each in (Game, Position))
"""The members that the contract requires."""

TOLERANCE = 1e-8
"""Two ways to the same number may differ by this share of the sizes involved."""


@dataclass(frozen=True)
class GameCheck:
    """What `check_game` found.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> check = check_game(counter_example())
    >>> check.problems
    ()
    """

    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the game."""
        return not self.problems

    def __str__(self) -> str:
        if self.passed:
            return "the contract of a game is kept, as far as random policies can tell."
        return "\n".join(["the contract of a game is broken:", *(f"- {problem}" for problem in self.problems)])


def check_game(game: Game, *, rng: np.random.Generator | None = None, policies: int = 3) -> GameCheck:
    """Walk through the contract of a game with random policies, and say what is wrong with it.

    Parameters
    ----------
    game
        What shall be a game.
    rng
        Draws the policies.
    policies
        How many are tried.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> print(check_game(counter_example()))
    the contract of a game is kept, as far as random policies can tell.
    """
    draws = np.random.default_rng(0) if rng is None else rng
    missing = tuple(f"the game has no `{name}`." for name in GAME if not _has(game, name))
    if missing:
        return GameCheck(missing)
    problems = list(_wrong_frame(game))
    for _ in range(0 if problems else policies):
        try:
            problems += _wrong_position(game, JointPolicy.random(game.policy_shapes, rng=draws), draws)
        except (CMPGError, ArithmeticError, AttributeError, IndexError, LookupError, TypeError, ValueError) as error:
            problems.append(f"a random policy ends in {type(error).__name__}: {error}")
        if problems:
            break
    return GameCheck(tuple(problems))


def _wrong_frame(game: Any) -> Iterator[str]:
    """Yield what is wrong before any policy is played."""
    if not isinstance(game.num_agents, int) or game.num_agents < 1:
        yield f"num_agents is {game.num_agents!r}; a positive integer is required."
        return
    if not isinstance(game.thresholds, np.ndarray) or game.thresholds.ndim != 1:
        yield "thresholds must be an array [k], of length 0 without constraints."
        return
    if (game.horizon is None) == (game.discount is None):
        yield f"horizon is {game.horizon} and discount is {game.discount}; exactly one of them is None."
    if not isinstance(game.information, Information):
        yield f"information is {game.information!r}; Information.JOINT_STATE or Information.OWN_STATE is required."
    if not isinstance(game.names, Names):
        yield f"names is a {type(game.names).__name__}; cmpg.games.Names is required: Names() where there are none."
    steps = game.horizon or 1
    shapes = game.policy_shapes
    if len(shapes) != game.num_agents or any(len(shape) != 3 or shape[0] != steps for shape in shapes):
        yield f"policy_shapes is {shapes}; one [{steps}, S_i, A_i] for each of {game.num_agents} agents is required."
    if np.shape(game.reward_ranges) != (game.num_agents,) or not np.all(np.asarray(game.reward_ranges) >= 0):
        yield "reward_ranges must hold one number of at least 0 for each agent."
    proof = game.potential_proof()
    if proof is not None and not isinstance(proof, PotentialProof):
        yield f"potential_proof() returned a {type(proof).__name__}; a PotentialProof or None is required."


def _wrong_position(game: Game, policy: JointPolicy, rng: np.random.Generator) -> list[str]:
    position = game.at(policy)
    missing = [f"a position has no `{name}`." for name in POSITION if not _has(position, name)]
    wrong = missing or list(_wrong_cmdps(game, position))
    if wrong:
        return wrong
    agents, constraints = game.num_agents, len(game.thresholds)
    sized = {"values": agents, "costs": constraints, "slacks": constraints, "cost_rounding": constraints}
    wrong = [
        f"position.{name} has shape {list(np.shape(getattr(position, name)))}; [{length}] is required."
        for name, length in sized.items()
        if np.shape(getattr(position, name)) != (length,)
    ]
    if wrong:
        return wrong
    if position.policy.fingerprint() != policy.fingerprint():
        return ["position.policy is not the policy that `at` was given."]
    found = list(_differs("position.slacks", position.slacks, game.thresholds - position.costs, "α − costs"))
    for agent in range(agents):
        found += _wrong_agent(game, position, agent, rng)
    return found + list(_wrong_thresholds(game, policy, position))


def _has(thing: Any, name: str) -> bool:
    """Whether there is such a member; one that cannot be computed is there, and says itself what it lacks."""
    return name in dir(thing) or hasattr(thing, name)


def _wrong_cmdps(game: Game, position: Position) -> Iterator[str]:
    """Yield what is wrong with what agents face: values and costs follow from it."""
    for agent, shape in enumerate(game.policy_shapes):
        cmdp: Any = position.induced_cmdp(agent)
        if not isinstance(cmdp, CMDP):
            yield f"induced_cmdp({agent}) returned a {type(cmdp).__name__}; a CMDP is required."
        elif cmdp.policy_shape != shape or cmdp.num_constraints != len(game.thresholds):
            found = f"{list(cmdp.policy_shape)} and {cmdp.num_constraints} constraints"
            required = f"{list(shape)} and {len(game.thresholds)} are required"
            yield f"induced_cmdp({agent}) takes policies {found}; {required}."


def _wrong_agent(game: Game, position: Position, agent: int, rng: np.random.Generator) -> Iterator[str]:
    cmdp, where = position.induced_cmdp(agent), f"of agent {agent}"
    worth = evaluate(cmdp, position.policy[agent])
    now = current(position, agent)
    yield from _differs(f"values[{agent}]", position.values[agent], worth.value, "the value in its induced CMDP")
    yield from _differs(f"current({agent}).value", now.value, worth.value, "the value in its induced CMDP")
    yield from _differs(f"current({agent}).costs", now.costs, worth.costs, "the costs in its induced CMDP")
    table = JointPolicy.random(game.policy_shapes, rng=rng)[agent]
    moved, response = position.replace(agent, table), evaluate(cmdp, table)
    if moved.policy.fingerprint() != position.policy.replace(agent, table).fingerprint():
        yield f"replace({agent}, …) must change the policy {where}, and no other."
    yield from _differs(
        f"values[{agent}] after its move", moved.values[agent], response.value, "what its CMDP promised"
    )
    bound = binds_of(game)[agent]
    for j in np.flatnonzero(~bound).tolist():
        if cmdp.costs[j].any() or not cmdp.thresholds[j] > 0:
            yield f"constraint {j} does not bind agent {agent}: its CMDP must have 0 ≤ 1 there; see `bound_cmdp`."
    change, promised = (moved.costs - position.costs)[bound], (response.costs - worth.costs)[bound]
    yield from _differs(f"the change of costs by a move {where}", change, promised, "what its CMDP promised")
    gain, most = response.value - worth.value, game.reward_ranges[agent]
    if abs(gain) > most * (1 + TOLERANCE) + TOLERANCE:
        yield f"a move {where} changes its value by {abs(gain):.6g}, more than reward_ranges[{agent}] = {most:.6g}."
    if game.potential_proof() is not None:
        rise = game.potential(moved.policy) - game.potential(position.policy)
        yield from _differs(f"the change of the potential by a move {where}", rise, gain, "what it gains")


def _wrong_thresholds(game: Game, policy: JointPolicy, position: Position) -> Iterator[str]:
    other = game.with_thresholds(np.asarray(game.thresholds, dtype=np.float64) + 1.0)
    yield from _differs("with_thresholds(α + 1).thresholds", other.thresholds, game.thresholds + 1.0, "α + 1")
    yield from _differs("slacks at thresholds α + 1", other.at(policy).slacks, position.slacks + 1.0, "one more")


def _differs(what: str, found: Any, wanted: Any, meaning: str) -> Iterator[str]:
    one, two = (np.asarray(each, dtype=np.float64) for each in (found, wanted))
    if one.shape != two.shape:
        yield f"{what} has shape {list(one.shape)}; {list(two.shape)} is required."
        return
    size = np.maximum(1.0, np.maximum(np.abs(one), np.abs(two)))
    apart: FloatArray = np.abs(one - two)
    if not np.all(apart <= TOLERANCE * size):
        shown = (", ".join(f"{each:.9g}" for each in side.ravel()[:3]) for side in (one, two))
        yield f"{what} is {next(shown)}; {meaning} is {next(shown)}."


# --- A position for games that state nothing but the CMDPs of their agents --------------------------------------------


class Induces(Protocol):
    """A game that can state the CMDP of each agent, which is all that an `InducedPosition` needs."""

    @property
    def num_agents(self) -> int:
        """n."""

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""

    def induced_cmdp(self, policy: JointPolicy, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to the policy."""


@dataclass(frozen=True, eq=False)
class InducedPosition:
    """A position of a game that states nothing but the CMDPs of its agents: the rest follows from them.

    The costs of an induced CMDP are those of the whole game, as its thresholds are.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> class CMDPsOnly:
    ...     num_agents, thresholds = 2, np.array([0.5])
    ...     def induced_cmdp(self, policy, agent):
    ...         return counter_example().at(policy).induced_cmdp(agent)
    >>> position = InducedPosition(CMDPsOnly(), counter_example().uniform_policy())
    >>> position.values, position.costs
    (array([2.75, 2.75]), array([0.25]))
    """

    game: Induces
    policy: JointPolicy

    __repr__ = fields_line

    @cached_property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        return np.array([current(self, agent).value for agent in range(self.game.num_agents)])

    @cached_property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return np.asarray(evaluate(self._faced(0)[0], self.policy[0]).costs)

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return np.asarray(self.game.thresholds - self.costs)

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        return cost_rounding(self._faced(0)[0], self.costs)

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return the CMDP that one agent faces while the others keep to their policies."""
        return self._faced(agent)[1]

    def _faced(self, agent: int) -> tuple[CMDP, CMDP]:
        """What one agent faces: with all constraints, and with those that bind it."""
        if agent not in self._cmdps:
            cmdp = self.game.induced_cmdp(self.policy, agent)
            self._cmdps[agent] = cmdp, bound_cmdp(cmdp, self._binds[agent])
        return self._cmdps[agent]

    @cached_property
    def _binds(self) -> BoolArray:
        return binds_of(self.game)

    def underflow(self) -> Underflow | None:
        """Return what products too small for floats can hide where policies are evaluated; None if none is that small.

        What averages over other agents have lost before is the game's to know: its tables have the relative error that
        their `entry_roundings` state, whatever the size of an entry.
        """
        cmdps = [self._faced(agent)[0] for agent in range(self.game.num_agents)]
        depths = [
            run_depth(cmdp.initial, cmdp.transition, cmdp.num_steps, paid=(cmdp.reward, *cmdp.costs)) for cmdp in cmdps
        ]
        if cmdps[0].discount is None and float((self.policy.depths().sum(axis=1) + depths).min()) > DEEPEST:
            return None
        sizes = np.array([cmdp.rounding_sizes for cmdp in cmdps])
        rounding = max(cmdp.rounding for cmdp in cmdps)
        return Underflow.behind(rounding, rewards=sizes[:, 0], costs=sizes[:, 1:].max(axis=0))

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation takes, where the tables of the CMDP are what they stand for."""
        cmdp = self.induced_cmdp(agent)
        if cmdp.entry_roundings or not self._binds[agent, constraint]:
            return None
        cost = cmdp.costs[constraint]
        return forbidden_in(cmdp, cost, cost, left=Fraction(cmdp.thresholds[constraint]))

    def replace(self, agent: int, table: Any) -> InducedPosition:
        """Return the position after one agent has changed its policy."""
        return InducedPosition(self.game, self.policy.replace(agent, table))

    @cached_property
    def _cmdps(self) -> dict[int, tuple[CMDP, CMDP]]:
        return {}
