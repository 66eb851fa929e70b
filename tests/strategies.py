"""Random games for hypothesis: cooperative, exogenous-state, single-agent, and any.

Numbers are multiples of 1/8, and probabilities multiples of 1/16, unless a game is `rough` (arbitrary floats) or
scaled: then evaluation in floats is exact for short horizons, and a threshold can be met with a slack of exactly zero.
Sizes are drawn by hypothesis, so that failures shrink to small games; entries come from a generator with a drawn seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from cmpg.cmdp.planning import plan
from cmpg.games.game import planner
from cmpg.games.joint.game import JointGame
from cmpg.games.rationals import as_given
from cmpg.policy import JointPolicy

Kind = Literal["cooperative", "exogenous", "single", "any"]
POTENTIAL_KINDS: tuple[Kind, ...] = ("cooperative", "exogenous", "single")


@dataclass(frozen=True)
class Sample:
    """A game, a policy that meets its constraints, and how the game was made."""

    game: JointGame
    start: JointPolicy
    kind: Kind
    tight: bool  # the start has a slack of exactly zero in every constraint

    def __repr__(self) -> str:
        game = self.game
        return (
            f"Sample({self.kind}, n={game.num_agents}, H={game.horizon}, S={game.num_states}, A={game.num_actions}, "
            f"k={game.num_constraints}, tight={self.tight}, sparse={game.is_sparse}, rewards={game.rewards.tolist()})"
        )


@st.composite
def samples(
    draw,
    *,
    kinds: tuple[Kind, ...] = POTENTIAL_KINDS,
    max_agents: int = 4,
    max_states: int = 8,
    max_actions: int = 4,
    max_horizon: int = 6,
    max_constraints: int = 3,
    rough: bool | None = None,
    sparse: bool | None = None,
    scales: tuple[float, ...] = (1.0,),
) -> Sample:
    """Draw a game that some policy is known to meet; see the module for the numbers in it."""
    kind = draw(st.sampled_from(kinds))
    agents = 1 if kind == "single" else draw(st.integers(min(2, max_agents), max_agents))
    actions = tuple(draw(st.lists(st.integers(1, max_actions), min_size=agents, max_size=agents)))
    states, horizon = draw(st.integers(1, max_states)), draw(st.integers(1, max_horizon))
    constraints = draw(st.integers(0, max_constraints))
    steps = draw(st.sampled_from([1, horizon]))
    is_rough = draw(st.booleans()) if rough is None else rough
    is_sparse = draw(st.booleans()) if sparse is None else sparse
    scale = draw(st.sampled_from(scales))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = (steps, states, *actions)
    transition = _transition(table, rng, moved=kind != "exogenous", rough=is_rough)
    game = JointGame(
        transition=_as_matrices(transition) if is_sparse else transition,
        rewards=scale * _rewards(kind, agents, table, rng=rng, rough=is_rough),
        costs=np.abs(_entries((constraints, *table), rng, rough=is_rough)),
        thresholds=np.zeros(constraints),
        initial=_rows((states,), rng, rough=is_rough),
        horizon=horizon,
    )
    return _with_thresholds(game, kind, rng, tight=not is_rough and draw(st.booleans()))


def games(**options):
    """Draw only the game of a sample."""
    return samples(**options).map(lambda sample: sample.game)


def plain(game: JointGame) -> dict[str, Any]:
    """Return a joint game as the exact judge reads it."""
    shape = (len(game.transition), game.num_states, *game.num_actions, game.num_states)
    dense = np.stack([step.toarray() for step in game.transition]) if game.is_sparse else game.transition
    names = ("rewards", "costs", "thresholds", "initial", "horizon", "discount")
    tables = {name: getattr(game, name) for name in names}
    return {"form": "joint", "transition": dense.reshape(shape), **tables}


def policies(game: JointGame) -> st.SearchStrategy[JointPolicy]:
    """Draw a joint policy: deterministic, with rows of dyadic numbers, or of arbitrary floats."""
    return st.tuples(st.sampled_from(["deterministic", "dyadic", "rough"]), st.integers(0, 2**32 - 1)).map(
        lambda drawn: _policy(game, drawn[0], np.random.default_rng(drawn[1]))
    )


def _policy(game: JointGame, style: str, rng: np.random.Generator) -> JointPolicy:
    if style == "deterministic":
        shapes = game.policy_shapes
        return JointPolicy(tuple(np.eye(shape[2])[rng.integers(shape[2], size=shape[:2])] for shape in shapes))
    return JointPolicy(tuple(_rows(shape, rng, rough=style == "rough") for shape in game.policy_shapes))


def _entries(shape: tuple[int, ...], rng: np.random.Generator, *, rough: bool) -> np.ndarray:
    return rng.normal(size=shape) if rough else rng.integers(-16, 17, size=shape) / 8


def _rows(shape: tuple[int, ...], rng: np.random.Generator, *, rough: bool) -> np.ndarray:
    """Return rows of probabilities along the last axis; about half of the entries of dyadic ones are zero."""
    if rough:
        return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    favoured = rng.random(shape) * (rng.random(shape) < 0.5) + 1e-3
    shares = favoured / favoured.sum(axis=-1, keepdims=True)
    return rng.multinomial(16, shares) / 16


def _transition(table: tuple[int, ...], rng: np.random.Generator, *, moved: bool, rough: bool) -> np.ndarray:
    states = table[1]
    if moved:
        return _rows((*table, states), rng, rough=rough)
    by_itself = _rows((*table[:2], states), rng, rough=rough)
    spread = by_itself.reshape(*table[:2], *(1 for _ in table[2:]), states)
    return np.broadcast_to(spread, (*table, states)).copy()


def _as_matrices(transition: np.ndarray) -> list[sp.csr_array]:
    return [sp.csr_array(step.reshape(-1, step.shape[-1])) for step in transition]


def _rewards(kind: Kind, agents: int, table: tuple[int, ...], *, rng: np.random.Generator, rough: bool) -> np.ndarray:
    if kind == "any":
        return _entries((agents, *table), rng, rough=rough)
    common = _entries(table, rng, rough=rough)
    rewards = np.stack([common] * agents)
    if kind == "exogenous":
        # To the stage potential each agent adds a term that only the others' actions move.
        for agent in range(agents):
            shape = tuple(1 if axis == 2 + agent else length for axis, length in enumerate(table))
            rewards[agent] += _entries(shape, rng, rough=rough)
    return rewards


def _with_thresholds(game: JointGame, kind: Kind, rng: np.random.Generator, *, tight: bool) -> Sample:
    """Choose thresholds that a known policy meets: the uniform one, a random one, or one of least weighted cost."""
    choice = rng.integers(3)
    if choice == 0 and not tight:
        start = game.uniform_policy()
    elif choice == 1 and not tight:
        start = _policy(game, "rough", rng)
    else:
        # Deterministic, so that its costs are exact where the tables are dyadic.
        start, _ = cheapest_policy(game, rng.integers(1, 5, size=game.num_constraints).astype(float))
    position = game.at(start)
    slack = np.zeros(game.num_constraints) if tight else rng.integers(1, 5, size=game.num_constraints) / 8
    chosen = JointGame(
        transition=game.transition,
        rewards=game.rewards,
        costs=game.costs,
        thresholds=position.costs + slack,
        initial=game.initial,
        horizon=game.horizon,
    )
    return Sample(game=chosen, start=start, kind=kind, tight=tight)


@dataclass(frozen=True)
class InFractions:
    """Tables and sizes of a joint game; the entries are Fractions."""

    transition: Any
    initial: Any
    rewards: Any
    costs: Any
    horizon: int
    num_agents: int
    num_actions: tuple[int, ...]
    num_states: int


def in_fractions(game):
    """All tables as the rationals that their floats are, rows of probabilities divided by their exact sums."""
    tables = (as_given(game.exact(), name) for name in ("transition", "initial", "rewards", "costs"))
    return InFractions(*tables, game.horizon, game.num_agents, game.num_actions, game.num_states)


def cheapest_policy(game, multipliers):
    """Return a deterministic policy of least V^{λ·c} over all joint policies, and that cost (the paper's Example 1)."""
    central = planner(game, None)
    cheapest = plan(central.cmdp, multipliers, reward_weight=0.0)
    return central.split(cheapest.actions), float(multipliers @ cheapest.costs)
