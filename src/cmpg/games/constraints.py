"""Whose constraint is it, and when: constraints that bind some agents only, and budgets per step or per window.

`bind(game, binds)` says by a mask [n, k] which constraints bind which agents. A policy of such a game still has to meet
every threshold; but an agent that constraint j does not bind may deviate without regard to it. A private budget binds
its owner, the limit of a transformer those who hang on it. A mask of ones is the plain game.

    ε-Nash: every threshold is met, and no agent i gains more than ε by a deviation with V^{c_j} ≤ α_j for all j that
    bind i.

An agent's CMDP then has a cost of zero, and a threshold of one, in place of a constraint that does not bind it. Where
others can spend a budget that does not bind them, there need not be an equilibrium: whoever is bound has to make room.

`by_window(game, …)` splits a budget over time: one constraint for every window of steps, with the costs of those steps
alone, so that everything that holds for several constraints holds for budgets per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from cmpg.arrays import BoolArray, FloatArray, check_shape, frozen, numbers
from cmpg.cmdp.evaluation import Evaluation
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.support import Forbidden
from cmpg.errors import GameError, UnsupportedError
from cmpg.faces import Face, html, line, text
from cmpg.games.contract import (
    Game,
    HardBudgets,
    Judgements,
    JudgesAgents,
    LeavesOut,
    Names,
    Position,
    in_floats,
)
from cmpg.games.counting.game import CountingGame
from cmpg.games.faces import game_face
from cmpg.games.joint.game import JointGame
from cmpg.games.local.game import LocalGame
from cmpg.policy import JointPolicy

Form = TypeVar("Form", bound=JointGame | LocalGame | CountingGame)


def bind(game: Game, binds: Any) -> Game:
    """Say which constraints bind which agents.

    Parameters
    ----------
    game
        Any game.
    binds : [n, k]
        Whether constraint j binds agent i: zeros and ones. A constraint must bind somebody.

    Examples
    --------
    Two agents with a budget each, which the other one does not have to mind.

    >>> from cmpg.games import JointGame
    >>> game = JointGame(transition=np.ones((1, 1, 2, 2, 1)), rewards=[[[[[0, 0], [1, 1]]]], [[[[0, 1], [0, 1]]]]],
    ...                  costs=[[[[[0, 0], [1, 1]]]], [[[[0, 1], [0, 1]]]]], thresholds=[0.5, 0.25], initial=[1.0],
    ...                  horizon=1)
    >>> from cmpg import solve
    >>> solve(bind(game, [[1, 0], [0, 1]])).values.round(6)
    array([0.5 , 0.25])
    """
    given = numbers("binds", binds)
    check_shape("binds", given.shape, (game.num_agents, len(game.thresholds)))
    if not np.isin(np.asarray(given, dtype=np.float64), (0.0, 1.0)).all():
        raise GameError("binds has an entry other than 0 and 1.")
    mask = np.asarray(given == 1)
    if len(game.thresholds) and not mask.any(axis=0).all():
        free = int(np.argmin(mask.any(axis=0)))
        raise GameError(f"constraint {free} binds nobody; leave it out, or say whom it binds.")
    return game if mask.all() else PrivateConstraints(game, frozen(mask))


@dataclass(frozen=True, eq=False)
class PrivateConstraints:
    """A game whose constraints bind some agents only; what it can do besides, its game does. See `bind`."""

    game: Game
    binds: BoolArray  # [n, k]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("game", "binds"):
            raise AttributeError(name)
        found = getattr(self.game, name)
        if name == "to_joint":  # whatever the form, the same agents are bound
            return lambda: PrivateConstraints(found(), self.binds)
        return found

    def face(self) -> Face:
        """Return what to show of the game."""
        return game_face(self)

    __repr__, __str__, _repr_html_ = line, text, html

    @property
    def num_agents(self) -> int:
        """n."""
        return self.game.num_agents

    @property
    def thresholds(self) -> FloatArray:
        """α: [k]."""
        return self.game.thresholds

    @property
    def horizon(self) -> int | None:
        """H, or None where the sum is discounted."""
        return self.game.horizon

    @property
    def discount(self) -> float | None:
        """γ, or None where the horizon is finite."""
        return self.game.discount

    @property
    def policy_shapes(self) -> tuple[tuple[int, int, int], ...]:
        """The shape [H, S_i, A_i] of each agent's policy."""
        return self.game.policy_shapes

    @property
    def reward_ranges(self) -> FloatArray:
        """G_i: [n]."""
        return self.game.reward_ranges

    @property
    def information(self) -> Any:
        """What a policy may depend on."""
        return self.game.information

    @property
    def names(self) -> Names:
        """What agents, constraints, states and actions are called."""
        return self.game.names

    def at(self, policy: JointPolicy) -> PrivatePosition:
        """Return the game as it stands at a joint policy."""
        return PrivatePosition(self.game.at(policy), self.binds)

    def potential(self, policy: JointPolicy) -> float:
        """Return Φ(policy) − Φ(uniform policy)."""
        return self.game.potential(policy)

    def potential_proof(self) -> Any:
        """Return why the game has a potential, which constraints have no part in."""
        return self.game.potential_proof()

    def with_thresholds(self, thresholds: Any) -> PrivateConstraints:
        """Return the same game with other thresholds: [k]."""
        return PrivateConstraints(self.game.with_thresholds(thresholds), self.binds)

    def exact(self) -> PrivateConstraints:
        """Read all numbers as rationals, where the form of the game can."""
        return PrivateConstraints(self._exact_form().exact(), self.binds)

    def floats(self) -> PrivateConstraints:
        """Round an exact game to floats."""
        return PrivateConstraints(self._exact_form().floats(), self.binds)

    @property
    def is_exact(self) -> bool:
        """Whether the tables hold Fractions."""
        return bool(getattr(self.game, "is_exact", False))

    def _exact_form(self) -> Any:
        if not hasattr(type(self.game), "exact"):
            advice = "Leave `exact` out, and rounding is bounded instead."
            raise UnsupportedError(type(self.game).__name__, "has no exact mode", advice)
        return self.game


@dataclass(frozen=True, eq=False)
class PrivatePosition:
    """A game with private constraints at a joint policy."""

    position: Position
    binds: BoolArray  # [n, k]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("position", "binds"):
            raise AttributeError(name)
        return getattr(self.position, name)

    @property
    def policy(self) -> JointPolicy:
        """The joint policy."""
        return self.position.policy

    @property
    def values(self) -> FloatArray:
        """V^{r_i}: [n]."""
        return self.position.values

    @property
    def costs(self) -> FloatArray:
        """V^{c_j}: [k]."""
        return self.position.costs

    @property
    def slacks(self) -> FloatArray:
        """α − V^c: [k]."""
        return self.position.slacks

    @property
    def cost_rounding(self) -> FloatArray:
        """How far each of `costs` can be from the true one: [k]."""
        return self.position.cost_rounding

    def induced_cmdp(self, agent: int) -> CMDP:
        """Return an agent's CMDP, with 0 ≤ 1 in place of each constraint that does not bind it."""
        cmdp, bound = self.position.induced_cmdp(agent), self.binds[agent]
        if bound.all():
            return cmdp
        zero, one = (cmdp.thresholds.dtype.type(each) if not cmdp.is_exact else each for each in (0, 1))
        costs = np.where(bound[:, None, None, None], cmdp.costs, zero)
        return replace(
            cmdp, costs=frozen(costs), thresholds=frozen(np.where(bound, cmdp.thresholds, one)), trusted=True
        )

    def present(self, agent: int) -> Evaluation:
        """Return what one agent's policy is worth and spends in its induced CMDP."""
        told = self.position.present(agent)
        return Evaluation(told.value, np.where(self.binds[agent], told.costs, 0))

    def replace(self, agent: int, table: Any) -> PrivatePosition:
        """Return the position after one agent has changed its policy."""
        return PrivatePosition(self.position.replace(agent, table), self.binds)

    def same_problem(self, agent: int, earlier: PrivatePosition) -> bool:
        """Whether one agent faces the same CMDP here as at an earlier position."""
        return self.position.same_problem(agent, earlier.position)

    def forbidden(self, agent: int, constraint: int) -> Forbidden | None:
        """Return which actions no feasible deviation takes; None where a constraint does not bind, or is not hard."""
        if not self.binds[agent, constraint] or not isinstance(self.position, HardBudgets):
            return None
        return self.position.forbidden(agent, constraint)

    def exact_costs(self, policy: JointPolicy) -> Any:
        """Return V^{c_j} exactly, or None where the form of the game cannot."""
        told = getattr(self.position, "exact_costs", None)
        return None if told is None else told(policy)

    def without(self, agent: int) -> PrivatePosition | None:
        """Return the position as if one agent were not there, where the form of the game can tell."""
        left = self.position.without(agent) if isinstance(self.position, LeavesOut) else None
        return None if left is None else PrivatePosition(left, self.binds)

    def settle(self, multipliers: FloatArray, **_: Any) -> None:  # noqa: ARG002
        """Return None: agents pay different prices, and are asked one by one."""
        return

    def judgements(self, multipliers: FloatArray, agents: range | None = None) -> Judgements | None:
        """Bound what agents could get at multipliers that are zero where a constraint does not bind; None if that has
        to be computed agent by agent.
        """
        asked = range(len(self.binds)) if agents is None else agents
        if not isinstance(self.position, JudgesAgents) or np.any(multipliers[~self.binds[asked.start : asked.stop]]):
            return None
        return self.position.judgements(multipliers, agents)


def without_constraints(game: Game) -> Game:
    """Return the same game, in floats, with thresholds that nobody reaches."""
    floats = in_floats(game)
    return floats.with_thresholds(np.maximum(floats.thresholds, 1e9))


def by_window(game: Form, windows: int | Sequence[tuple[int, int]], thresholds: Any, *, constraint: int = 0) -> Form:
    """Split one constraint over time: one threshold for what is spent within each window of steps.

    Parameters
    ----------
    game
        A joint, local or counting game with a finite horizon.
    windows
        Pairs (first, end) of steps, first ≤ h < end; or a number of steps, and windows of that length follow each
        other: 1 is a budget for every step. Windows may overlap; steps in none of them are free.
    thresholds : [number of windows], or one number for all
        α of each window.
    constraint
        Which one is split. The others stay as they are, and come first.

    Examples
    --------
    >>> from cmpg.scenarios import charging
    >>> game = by_window(charging(), [(0, 12), (12, 24)], [0.5, 0.1])
    >>> game.thresholds, game.names.all_constraints(2)
    (array([0.5, 0.1]), ('overload of transformer, steps 0-11', 'overload of transformer, steps 12-23'))
    """
    if not isinstance(game, (JointGame, LocalGame, CountingGame)):
        raise UnsupportedError(type(game).__name__, "cannot be split by windows", "Write its constraints by hand.")
    if game.horizon is None:
        raise GameError("a discounted game has no last step; budgets per window need a horizon.")
    steps = game.horizon
    pairs = _pairs(windows, steps)
    count = len(game.thresholds)
    if not 0 <= constraint < count:
        raise GameError(f"constraint is {constraint}; the game has {count}, which count from 0.")
    limits = np.broadcast_to(numbers("thresholds", thresholds), (len(pairs),))
    masks = np.array([[first <= h < end for h in range(steps)] for first, end in pairs])
    kept = [j for j in range(count) if j != constraint]
    names = list(game.names.all_constraints(count))
    told = [f"{names[constraint]}, steps {first}-{end - 1}" for first, end in pairs]

    def split(costs: FloatArray) -> FloatArray:
        every = np.broadcast_to(costs, (count, steps, *costs.shape[2:]))
        masked = every[constraint] * masks.reshape(len(pairs), steps, *(1 for _ in costs.shape[2:]))
        return frozen(np.concatenate([every[kept], masked]))

    limits = np.concatenate([game.thresholds[kept], limits])
    named = [*(names[j] for j in kept), *told]
    if isinstance(game, LocalGame):
        agents = [agent if agent.costs is None else replace(agent, costs=split(agent.costs)) for agent in game.agents]
        return game.with_constraints(split(game.load_costs), limits, named, agents=agents)  # type: ignore[return-value]
    return game.with_constraints(split(game.costs), limits, named)  # type: ignore[return-value]


def _pairs(windows: int | Sequence[tuple[int, int]], steps: int) -> list[tuple[int, int]]:
    if isinstance(windows, (int, np.integer)):
        if windows < 1:
            raise GameError(f"windows is {windows}; a window has at least one step.")
        return [(first, min(first + int(windows), steps)) for first in range(0, steps, int(windows))]
    pairs = [(int(first), int(end)) for first, end in windows]
    for first, end in pairs:
        if not 0 <= first < end <= steps:
            raise GameError(
                f"the window ({first}, {end}) is not within the {steps} steps; 0 ≤ first < end is required."
            )
    if not pairs:
        raise GameError("there is no window; give at least one.")
    return pairs
