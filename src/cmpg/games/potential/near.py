"""How far a joint game is from having a potential, and what that still says of the ascent.

For a function Φ of joint policies let α(Φ) be the most by which a unilateral move can change the mover's value and Φ
differently: max_i max |V_i(π_i′, π_{−i}) − V_i(π) − Φ(π_i′, π_{−i}) + Φ(π)|. A potential is a Φ with α(Φ) = 0.

*From below, for every Φ.* Around a 4-cycle of two agents the changes of Φ cancel, and what the movers gain adds up to
its residual R. Four moves are each off by at most α(Φ), so α(Φ) ≥ |R| / 4. Cycles with large residuals are searched for
by changing one entry of a policy at a time; the residual of the best one counts, less its rounding.

*From above, for one Φ.* Let Φ = V^φ be the value of a stage reward φ, and D_i = r_i − φ. Then the difference above is
the change of V^{D_i}. Two copies of the game are run side by side, from the same first state: in one agent i plays
π_i′, in the other π_i; the others play π_{−i} in both, with the same draws where the states are the same. For any
coupling of the next states

    U_h(s, s̃) = max [D_i(s, a_i′, a_{−i}) − D_i(s̃, a_i, ã_{−i}) + E U_{h+1}(s′, s̃′)],    a_{−i} = ã_{−i} where s = s̃,

bounds the difference of what is to come, so α(V^φ) ≤ max_i Σ_s μ(s) U_0(s, s). Here the coupling keeps both copies
together as far as their rows overlap. Candidates for φ are the mean reward, the potential of the stages (Lemma 1 of the
paper), and the best one for a sample of moves, by a linear program; any φ is valid, the least bound counts. Where
agents can be exchanged, and joint actions are too many, all of this is done by counts (`symmetric`).

*What follows.* Algorithm 1 moves an agent if it gains more than ε/2. Then Φ rises by more than ε/2 − α. So if α < ε/2,
there are fewer than range(Φ) / (ε/2 − α) moves, constraints or not, and the end is an ε-Nash policy; range(V^φ) is two
dynamic programs. It is ε/2, and not ε, that counts.

Finite horizon only. Guarantee: `lower` and `upper` include an allowance for rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any, Protocol

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, IntArray, at_step
from cmpg.errors import TooLargeError, UnsupportedError
from cmpg.games.counting.game import CountingGame
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame, as_joint
from cmpg.games.joint.planner import stage_potential
from cmpg.games.potential import symmetric
from cmpg.games.potential.check import FourCycle, four_cycle
from cmpg.games.potential.symmetric import SymmetricGame, as_symmetric
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, html, line, text

MAX_WORK = 300_000_000
"""The upper bound visits at most this many pairs of rows."""

MAX_VARIABLES, SAMPLED_MOVES = 3_000, 300
"""Stage rewards with at most 3,000 entries are fitted to 300 moves, by a linear program."""

STARTS, SWEEPS = 4, 3
"""Cycles from which the search for a large residual begins, and how many times it goes through all entries."""

BLENDS = (0.25, 0.5, 0.75)
"""Shares of the mean reward in further candidates; the rest is the potential of the stages."""

MAX_ENTRIES = 400
"""Policies with more rows than this are not improved entry by entry; a cycle is then the best of those drawn."""


@dataclass(frozen=True, eq=False)
class NearPotential:
    """α between a lower bound, for every Φ, and an upper bound, for the value of one stage reward.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game
    >>> near = near_potential(congestion_game(num_agents=2), rng=np.random.default_rng(0))
    >>> 0 < near.lower <= near.upper
    True
    """

    lower: float  # no function of joint policies is closer to a potential than this
    upper: float  # the value of `reward` is at least as close as this
    reward: FloatArray  # φ: [H, S, *A]; by counts of a symmetric game, [H, S, C]
    reward_range: float  # no two joint policies differ by more in V^φ
    witness: FourCycle  # whose residual proves the lower bound
    candidate: str  # where φ comes from

    @property
    def least_epsilon(self) -> float:
        """For every ε above this, Algorithm 1 ends: 2α."""
        return 2 * self.upper

    def max_moves(self, epsilon: float) -> int | None:
        """Return how many moves Algorithm 1 makes at most before it ends at an ε-Nash policy; None if that is open."""
        rise = epsilon / 2 - self.upper
        return ceil(self.reward_range / rise) if rise > 0 else None

    def summary(self) -> Summary:
        """Return what to show: the bracket, and what follows."""
        sentence = (
            f"no function of policies is closer to a potential than {self.lower:.4g}; one is within {self.upper:.4g}"
        )
        ends = 4 * self.upper
        follows = (
            f"for every ε above {self.least_epsilon:.4g} Algorithm 1 ends at an ε-Nash policy; at ε = {ends:.4g} after "
            f"at most {self.max_moves(ends):,} moves"
            if self.upper > 0
            else "it is one up to rounding"
        )
        return Summary("near a potential", sentence, (follows, f"candidate: {self.candidate}"))

    __repr__, __str__, _repr_html_ = line, text, html


def near_potential(game: Game, *, rng: np.random.Generator) -> NearPotential:
    """Bracket how far a game is from having a potential.

    Parameters
    ----------
    game
        A joint or counting game with a finite horizon, and at least two agents. Large ones must be symmetric.
    rng
        For cycles and sampled moves.

    Raises
    ------
    TooLargeError
        The upper bound would take too long; the message says how much work it is.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game
    >>> near = near_potential(congestion_game(num_agents=2, weights=(1.0, 2.0)), rng=np.random.default_rng(0))
    >>> near.max_moves(near.least_epsilon) is None, near.max_moves(2 * near.least_epsilon) is None
    (True, False)
    """
    if game.horizon is None or game.num_agents < 2:
        advice = "A finite horizon and two agents are needed."
        raise UnsupportedError("discounted game or single agent", "has no such distance here", advice)
    if isinstance(game, CountingGame) or (isinstance(game, JointGame) and _work(game) > MAX_WORK):
        exchanged = as_symmetric(game)
        if exchanged is not None:
            return _near_by_counts(exchanged, rng)
    joint = as_joint(game, wanted="has no distance from potentials that this library computes")
    check_work(joint)
    return _bracket(_large_cycle(joint, rng), joint_seats(joint), _candidates(joint, rng))


def _bracket(witness: FourCycle, seats: Sequence[Seat], candidates: Iterable[tuple[str, FloatArray]]) -> NearPotential:
    """Return the lower bound of a cycle, and the least upper bound of candidates φ: [H, S, *A], or [H, S, C]."""
    lower = float(max(abs(witness.residual) - witness.rounding, 0.0)) / 4
    shape = seats[0].moves.shape[:3]
    bounded = [(max(upper(seat, each.reshape(shape)) for seat in seats), name, each) for name, each in candidates]
    least, name, reward = min(bounded, key=lambda each: each[0])
    spread = _spread(seats[0], reward.reshape(shape))
    return NearPotential(lower, max(least, lower), reward, spread, witness, name)


def _near_by_counts(game: SymmetricGame, rng: np.random.Generator) -> NearPotential:
    """Bracket the distance of a symmetric game by counts."""
    work = symmetric.work_of(game)
    if work > MAX_WORK:
        raise TooLargeError(
            f"the distance from potentials takes {work:.2g} steps by counts ({len(game.others):,} counts of the "
            f"others); {MAX_WORK:.2g} are allowed. Use fewer agents, states or steps."
        )
    mean, stages = symmetric.mean_reward(game), symmetric.stage_candidate(game)
    candidates = _blends(mean, stages)
    if game.moves[..., 0].size <= MAX_VARIABLES:
        moves, gained = symmetric.sampled_moves(game, SAMPLED_MOVES, rng)
        fitted = _least_off(moves, gained, float(np.abs(game.rewards).max()))
        if fitted is not None:
            candidates.append((FITTED, fitted.reshape(game.moves.shape[:3])))
    return _bracket(_large_cycle(symmetric.by_counts(game), rng), [game], candidates)


def check_work(game: JointGame) -> None:
    """Raise if the upper bound would take too long."""
    work = _work(game)
    if work > MAX_WORK:
        outcomes = int(np.prod(game.num_actions))
        raise TooLargeError(
            f"the distance from potentials takes {work:.2g} steps ({game.num_states:,} states, {outcomes:,} joint "
            f"actions); {MAX_WORK:.2g} are allowed. Use fewer agents, states or steps, or agents that can be exchanged."
        )


def _work(game: JointGame) -> float:
    """Return how many pairs of rows the upper bound visits."""
    outcomes = float(np.prod(game.num_actions, dtype=np.float64))
    return game.num_steps * game.num_agents * float(game.num_states) ** 3 * outcomes**2


# --- From above -------------------------------------------------------------------------------------------------------


def _candidates(game: JointGame, rng: np.random.Generator) -> Iterator[tuple[str, FloatArray]]:
    shape = (game.num_steps, game.num_states, *game.num_actions)
    mean = np.broadcast_to(game.rewards.mean(axis=0), shape)
    # A potential of the stages leaves a constant of each state open, and two copies are in different states: it is
    # chosen so that all agents get the mean reward where all play their first action.
    stages = np.broadcast_to(stage_potential(game.rewards), shape)
    first = (slice(None), slice(None), *(slice(0, 1),) * game.num_agents)
    yield from _blends(mean, stages + (mean - stages)[first])
    if int(np.prod(shape)) <= MAX_VARIABLES:
        fitted = _fitted(game, rng)
        if fitted is not None:
            yield FITTED, fitted


FITTED = "the stage reward that fits sampled moves best"


def _blends(mean: FloatArray, stages: FloatArray) -> list[tuple[str, FloatArray]]:
    """Return both candidates, and mixtures of them."""
    mixed = [(f"{w:g} of the mean reward, the rest of the stages", w * mean + (1 - w) * stages) for w in BLENDS]
    return [("the mean reward", mean), ("the potential of the stages", stages), *mixed]


def _transition(game: JointGame, step: int) -> FloatArray:
    """Return the transition of a step: [S, ΠA, S]."""
    table = at_step(game.transition, step)
    return np.asarray(table.toarray() if game.is_sparse else table).reshape(game.num_states, -1, game.num_states)


class Seat(Protocol):
    """A game from the seat of one agent: what it plays, what the others do, and to which outcome both lead."""

    @property
    def initial(self) -> FloatArray:
        """μ: [S]."""

    @property
    def rewards(self) -> FloatArray:
        """The agent's reward by its action a and what the others do, m: [H, S, A, M]."""

    @property
    def moves(self) -> FloatArray:
        """The transition by outcome, a joint action or counts: [H, S, C, S]."""

    @property
    def together(self) -> IntArray:
        """The outcome of (a, m): [A, M]."""


@dataclass(frozen=True, eq=False)
class _JointSeat:
    """The seat of one agent of a joint game, whose outcomes are joint actions."""

    initial: FloatArray
    rewards: FloatArray
    moves: FloatArray
    together: IntArray


def joint_seats(game: JointGame) -> list[_JointSeat]:
    """Return a joint game with a finite horizon from the seats of all agents."""
    steps, states, actions = game.num_steps, game.num_states, game.num_actions
    moves = np.stack([_transition(game, step) for step in range(len(game.transition))])
    everything = np.broadcast_to(moves, (steps, *moves.shape[1:]))
    outcomes = np.arange(moves.shape[2]).reshape(actions)
    seats = []
    for agent, reward in enumerate(game.rewards):
        together = np.moveaxis(outcomes, agent, 0).reshape(actions[agent], -1)
        own = np.broadcast_to(reward.reshape(len(reward), states, -1)[:, :, together], (steps, states, *together.shape))
        seats.append(_JointSeat(game.initial, own, everything, together))
    return seats


def upper(seat: Seat, reward: FloatArray) -> float:
    """Bound the change of V^{r_i − φ} by a move of one agent, φ [H, S, C], by running two copies side by side."""
    steps, states = seat.rewards.shape[:2]
    ahead, size = np.zeros((states, states)), 0.0
    for step in reversed(range(steps)):
        differ = seat.rewards[step] - reward[step][:, seat.together]  # D_i: [S, A, M]
        size += 2 * float(np.abs(seat.rewards[step]).max() + np.abs(reward[step]).max())
        rows = seat.moves[step][:, seat.together]  # [S, A, M, S]
        now = np.empty((states, states))
        for s, t in product(range(states), repeat=2):
            if s == t:  # the others do the same in both copies
                worth, pairs = differ[s][:, None] - differ[s][None], (rows[s][:, None], rows[s][None])
            else:
                worth = differ[s].ravel()[:, None] - differ[t].ravel()[None]
                pairs = rows[s].reshape(-1, 1, states), rows[t].reshape(1, -1, states)
            now[s, t] = float((worth if step + 1 == steps else worth + _coupled(*pairs, ahead)).max())
        ahead = now
    # Each step adds sums of S² products, of rows that sum to one up to rounding, of numbers of at most `size`.
    rounding = 16 * steps * (states * states + 8) * UNIT_ROUNDOFF * size
    return float(seat.initial @ np.diag(ahead) + rounding)


def _coupled(first: FloatArray, second: FloatArray, ahead: FloatArray) -> FloatArray:
    """Return E U(s′, s̃′) for rows [..., S] each, coupled so that both go to the same state as often as possible."""
    shared = np.minimum(first, second)
    rest, other = first - shared, second - shared
    apart = np.maximum(rest.sum(axis=-1), other.sum(axis=-1))
    crossed = np.einsum("...i,ij,...j->...", rest, ahead, other, optimize=True)
    return np.asarray(shared @ np.diag(ahead) + np.divide(crossed, apart, out=np.zeros_like(crossed), where=apart > 0))


def _spread(seat: Seat, reward: FloatArray) -> float:
    """Return by how much V^φ of two joint policies can differ at most: two dynamic programs over outcomes."""
    most = []
    for sign in (1.0, -1.0):
        ahead = np.zeros(len(seat.initial))
        for step in reversed(range(len(reward))):
            ahead = (sign * reward[step] + seat.moves[step] @ ahead).max(axis=1)
        most.append(float(seat.initial @ ahead))
    size = float(np.abs(reward).reshape(len(reward), -1).max(axis=1).sum())
    return sum(most) + float(16 * len(reward) * (len(seat.initial) + 8) * UNIT_ROUNDOFF * size)


def _fitted(game: JointGame, rng: np.random.Generator) -> FloatArray | None:
    """Return the stage reward for which the worst of some sampled moves is off least, by a linear program."""
    shape = (game.num_steps, game.num_states, *game.num_actions)
    rows, right = [], []
    for _ in range(SAMPLED_MOVES):
        agent = int(rng.integers(game.num_agents))
        old = _deterministic(game, rng)
        new = old.copy()
        new[agent] = rng.integers(game.num_actions[agent], size=new[agent].shape)
        before, after = _visits(game, old), _visits(game, new)
        own = np.broadcast_to(game.rewards[agent], shape).ravel()
        change = after - before
        rows.append(change)
        right.append(float(change @ own))
    found = _least_off(np.array(rows), np.array(right), float(np.abs(game.rewards).max()))
    return None if found is None else found.reshape(shape)


def _least_off(moves: FloatArray, gained: FloatArray, largest: float) -> FloatArray | None:
    """Return φ for which the worst of some moves, changes of visits [moves, entries], is off least from the gains."""
    from scipy.optimize import linprog  # it is heavy

    entries = moves.shape[1]
    # |gained − moves·φ| ≤ α; a tiny weight on |φ| would need more columns, so φ is kept in a box instead.
    limit = 4 * largest + 1.0
    upper = np.hstack([np.vstack([-moves, moves]), -np.ones((2 * len(moves), 1))])
    found = linprog(
        np.append(np.zeros(entries), 1.0),
        A_ub=upper,
        b_ub=np.concatenate([-gained, gained]),
        bounds=[(-limit, limit)] * entries + [(0, None)],
        method="highs",
    )
    return np.asarray(found.x[:-1]) if found.status == 0 else None


def _deterministic(game: JointGame | CountingGame, rng: np.random.Generator) -> dict[int, IntArray]:
    return {i: rng.integers(actions, size=shape) for i, (*shape, actions) in enumerate(game.policy_shapes)}


def _visits(game: JointGame, actions: dict[int, IntArray]) -> FloatArray:
    """Return how often each (h, s, joint action) is visited: flat over [H, S, ΠA]."""
    mass = np.asarray(game.initial)
    found = np.zeros((game.num_steps, game.num_states, int(np.prod(game.num_actions))))
    states = np.arange(game.num_states)
    for step in range(game.num_steps):
        joint = np.ravel_multi_index([actions[i][step] for i in range(game.num_agents)], game.num_actions)
        found[step, states, joint] = mass
        mass = mass @ _transition(game, step)[states, joint]
    return found.ravel()


# --- From below -------------------------------------------------------------------------------------------------------


def _large_cycle(game: JointGame | CountingGame, rng: np.random.Generator) -> FourCycle:
    """Return a 4-cycle with a large residual."""
    best: FourCycle | None = None
    pairs = [(i, j) for i in range(game.num_agents) for j in range(i)]
    for _ in range(STARTS):
        i, j = pairs[int(rng.integers(len(pairs)))]
        first, second = _deterministic(game, rng), _deterministic(game, rng)
        actions = [shape[2] for shape in game.policy_shapes]
        tables = [_table(first[agent], actions[agent]) for agent in range(game.num_agents)]
        tables += [_table(second[agent], actions[agent]) for agent in (i, j)]
        cycle = _cycle(game, (i, j), tables)
        if sum(table.shape[0] * table.shape[1] for table in tables) <= MAX_ENTRIES:
            cycle = _improved(game, (i, j), tables, cycle)
        if best is None or abs(cycle.residual) > abs(best.residual):
            best = cycle
    assert best is not None
    return best


def _table(actions: IntArray, count: int) -> FloatArray:
    return np.eye(count)[actions]


def _cycle(game: JointGame | CountingGame, pair: tuple[int, int], tables: list[Any]) -> FourCycle:
    return four_cycle(game, pair, JointPolicy(tables[:-2]), (tables[-2], tables[-1]))


def _improved(game: JointGame | CountingGame, pair: tuple[int, int], tables: list[Any], cycle: FourCycle) -> FourCycle:
    """Change one row at a time to what makes the residual largest; it is affine in each row."""
    tables = [table.copy() for table in tables]
    for _ in range(SWEEPS):
        before = abs(cycle.residual)
        for table in tables:
            for h, s in np.ndindex(table.shape[:2]):
                kept = table[h, s].copy()
                for action in range(table.shape[2]):
                    row = np.eye(table.shape[2])[action]
                    if (row == kept).all():
                        continue
                    table[h, s] = row
                    tried = _cycle(game, pair, tables)
                    if abs(tried.residual) > abs(cycle.residual) * (1 + 1e-9):
                        cycle, kept = tried, row
                table[h, s] = kept
        if abs(cycle.residual) <= before * (1 + 1e-9):
            break
    return cycle
