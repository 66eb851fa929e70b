"""A local game that can only be sampled: the kernels of its agents are drawn from, or played in episodes, not read.

Everything else is known: who there is and where they begin, rewards, which resources each (state, action) uses, delays,
costs, thresholds; and which agents are of one kind, that is, move by one kernel. What is counted is kept by kind, so
agents of one kind share their samples; so do all steps, where a kernel is the same at every step.

One transition that is drawn is one sample; a step of an episode, in which all agents move, is one sample, too.
`LocalSimulator` is a known game that plays the unknown one. Agents move independently, so the counts of B episodes are,
agent by agent, a chain of multinomial draws (`cmpg.learning.simulator`), and the work does not grow with B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import FloatArray, IntArray, at_step
from cmpg.errors import UnsupportedError
from cmpg.games.game import Game, binds_of
from cmpg.games.local.agent import LocalAgent
from cmpg.games.local.discounted import DiscountedLocalGame
from cmpg.games.local.game import LocalGame
from cmpg.learning.multinomials import spread, walk
from cmpg.learning.samples import BoolArray, Ledger
from cmpg.learning.simulator import check_count
from cmpg.learning.truncation import Cut, check_cut, cut_off_local
from cmpg.policy import JointPolicy, PolicyShape
from cmpg.summaries import fields_line

MAX_ENTRIES = 50_000_000
"""Kernels of one kind with more entries than this, counting every next state, are refused."""


@dataclass(frozen=True, eq=False)
class LocalProblemSpec:
    """What is known of a local game before the first sample; the kernels are not among it."""

    frame: LocalGame  # the game, in which all agents stay where they are
    kinds: tuple[int, ...]  # of each agent: those of one kind have the same kernel
    stationary: tuple[bool, ...]  # of each kind: whether its kernel is the same at every step
    supports: tuple[BoolArray, ...] | None = None  # of each kind [H or 1, S, A, S]: which next states are possible
    cut: Cut | None = None  # where a discounted game was cut off to be learned

    __repr__ = fields_line

    @classmethod
    def of(cls, game: LocalGame, *, reveal_support: bool = False, cut: Cut | None = None) -> LocalProblemSpec:
        """Forget the kernels of a game; agents that share one are of one kind."""
        keys = [id(agent.transition) for agent in game.agents]
        numbers = {key: kind for kind, key in enumerate(dict.fromkeys(keys))}
        firsts = [game.agents[keys.index(key)] for key in numbers]
        for agent in firsts:
            entries = len(agent.transition) * agent.num_states**2 * agent.num_actions
            if entries > MAX_ENTRIES:
                what = f"has a kernel with {entries:.3g} entries to learn; at most {MAX_ENTRIES:.3g} are kept"
                raise UnsupportedError("LocalGame", what, "Use a smaller map, or solve the game with its true kernels.")
        staying = [_staying(agent.num_states, agent.num_actions) for agent in firsts]
        kinds = tuple(numbers[key] for key in keys)
        agents = [replace(agent, transition=staying[kind]) for agent, kind in zip(game.agents, kinds, strict=True)]
        return cls(
            frame=game.with_agents(agents),
            kinds=kinds,
            stationary=tuple(len(agent.transition) == 1 for agent in firsts),
            supports=tuple(_possible(agent) for agent in firsts) if reveal_support else None,
            cut=cut,
        )

    @property
    def num_agents(self) -> int:
        """n."""
        return self.frame.num_agents

    @property
    def num_constraints(self) -> int:
        """k."""
        return self.frame.num_constraints

    @property
    def thresholds(self) -> FloatArray:
        """α, or what a feasible policy of a discounted game costs at most before it was cut off: [k]."""
        return self.frame.thresholds

    @property
    def limits(self) -> FloatArray:
        """What a policy may cost: the thresholds, less what may follow where a discounted game was cut off: [k]."""
        return self.thresholds if self.cut is None else np.asarray(self.thresholds - self.cut.cost_tails)

    def bound(self, agent: int) -> BoolArray:
        """Return which constraints a deviation of agent i has to meet: [k]; a joint policy has to meet all."""
        return np.asarray(binds_of(self.frame)[agent])

    def left_of(self, epsilon: float) -> float:
        """Return how accurate learning must be for ε, less what may follow where a discounted game was cut off."""
        return epsilon if self.cut is None else self.cut.left_of(epsilon)

    @property
    def horizon(self) -> int:
        """H."""
        return self.frame.horizon

    @property
    def policy_shapes(self) -> tuple[PolicyShape, ...]:
        """The shape [H, S_i, A_i] of each agent's policy."""
        return self.frame.policy_shapes

    @property
    def shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """The shape [H − 1 or 1, S, A, S] of the counts of each kind; the last step leads nowhere that matters."""
        found = []
        for kind, stationary in enumerate(self.stationary):
            agent = self.frame.agents[self.kinds.index(kind)]
            steps = min(1, self.horizon - 1) if stationary else self.horizon - 1
            found.append((steps, agent.num_states, agent.num_actions, agent.num_states))
        return tuple(found)

    def with_kernels(self, kernels: Sequence[FloatArray]) -> LocalGame:
        """Return the game with one kernel [H or 1, S, A, S] for each kind."""
        rows = [tuple(sp.csr_array(step.reshape(-1, step.shape[-1])) for step in kernel) for kernel in kernels]
        pairs = zip(self.frame.agents, self.kinds, strict=True)
        return self.frame.with_agents([replace(agent, transition=rows[kind]) for agent, kind in pairs])


@dataclass(frozen=True, eq=False)
class LocalSamples:
    """How often each state followed, by kind of agent."""

    transitions: tuple[IntArray, ...]  # of each kind: [H − 1 or 1, S, A, S]

    __repr__ = fields_line

    def __add__(self, other: LocalSamples) -> LocalSamples:
        pairs = zip(self.transitions, other.transitions, strict=True)
        return LocalSamples(tuple(one + another for one, another in pairs))


class LocalSimulator:
    """A known local game that hides the kernels of its agents.

    Parameters
    ----------
    game
        A local game, or a discounted one.
    rng
        All draws come from it.
    budget
        Samples at most; None for no limit.
    reveal_support
        Whether the learners know which next states are possible.
    horizon
        Discounted games only: after how many steps it is cut off (`steps_for`).

    Examples
    --------
    >>> from cmpg.scenarios import grid_world_local
    >>> simulator = LocalSimulator(grid_world_local(), rng=np.random.default_rng(0))
    >>> drawn = simulator.draw_all(count=10)
    >>> drawn.transitions[0].shape, simulator.ledger.total          # two agents of one kind, all steps alike
    ((1, 16, 4, 16), 640)
    """

    def __init__(
        self,
        game: Game | DiscountedLocalGame,
        *,
        rng: np.random.Generator,
        budget: int | None = None,
        reveal_support: bool = False,
        horizon: int | None = None,
    ) -> None:
        if not isinstance(game, (LocalGame, DiscountedLocalGame)):
            advice = "Pass a local game; GameSimulator hides the other forms."
            raise UnsupportedError(type(game).__name__, "has no agents with kernels of their own", advice)
        check_cut(game, horizon)
        cut = None
        if isinstance(game, DiscountedLocalGame):
            game, cut = cut_off_local(game, horizon or 1)
        self.known = LocalProblemSpec.of(game, reveal_support=reveal_support, cut=cut)
        self.ledger = Ledger(budget)
        self._rng = rng
        firsts = [game.agents[self.known.kinds.index(kind)] for kind in range(len(self.known.stationary))]
        self._kernels = [_tables(agent.transition) for agent in firsts]  # of each kind [S·A, S] by step

    def draw_all(self, *, count: int, purpose: str = "draws") -> LocalSamples:
        """Draw `count` times at every (s, a) of every kind; at every step where steps are not alike."""
        check_count("count", count)
        shapes = self.known.shapes
        self.ledger.charge(purpose, count * sum(int(np.prod(shape[:3])) for shape in shapes))
        drawn = [
            [spread(np.full(len(rows), count), rows, rng=self._rng) for rows in kernel[: shape[0]]]
            for kernel, shape in zip(self._kernels, shapes, strict=True)
        ]
        pairs = zip(drawn, shapes, strict=True)
        return LocalSamples(tuple(np.array(each, dtype=np.int64).reshape(shape) for each, shape in pairs))

    def roll_out(self, policy: JointPolicy, episodes: int, *, purpose: str = "episodes") -> LocalSamples:
        """Play whole episodes; return where the agents moved."""
        policy.check_fits(self.known.policy_shapes)
        check_count("episodes", episodes)
        self.ledger.charge(purpose, episodes * self.known.horizon)
        counts = [np.zeros(shape, dtype=np.int64) for shape in self.known.shapes]
        steps = range(self.known.horizon - 1)
        for member, kind, table in zip(self.known.frame.agents, self.known.kinds, policy, strict=True):
            kernel = [at_step(self._kernels[kind], h) for h in steps]
            for h, (_, moved) in enumerate(walk(episodes, member.initial, table[:-1], kernel, rng=self._rng)):
                if moved is not None:
                    at_step(counts[kind], h)[...] += moved.reshape(counts[kind].shape[1:])
        return LocalSamples(tuple(counts))


def _tables(transition: Sequence[sp.csr_array]) -> list[FloatArray]:
    return [np.asarray(matrix.toarray()) for matrix in transition]


def _possible(agent: LocalAgent) -> BoolArray:
    """Which next states an agent's kernel allows: [H or 1, S, A, S]."""
    rows = np.stack([table > 0 for table in _tables(agent.transition)])
    return rows.reshape(len(rows), agent.num_states, agent.num_actions, agent.num_states)


def _staying(states: int, actions: int) -> tuple[sp.csr_array]:
    """The kernel of an agent that stays where it is."""
    return (sp.csr_array(np.repeat(np.eye(states), actions, axis=0)),)
