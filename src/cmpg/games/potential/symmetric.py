"""How far a symmetric game is from having a potential, by counts: joint actions that are permutations count once.

If agents can be exchanged, rewards and the next state depend on the own action and on how many of the others play what.
The distance α(Φ) of `near` is convex in Φ and does not change when agents are exchanged, so the mean of Φ over all
exchanges is at least as close: candidates that are functions φ(h, s, counts) lose nothing. What the pair of copies
visits are then (own action, counts of the others): C(n + A − 2, A − 1)·A rows instead of A^n, 480 instead of 65,536 for
eight agents and four actions. One agent stands for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from cmpg.arrays import FloatArray, IntArray, to_floats
from cmpg.games.counting.game import CountingGame
from cmpg.games.counting.vectors import EveryCount
from cmpg.games.game import Game
from cmpg.games.joint.game import JointGame
from cmpg.summaries import fields_line


@dataclass(frozen=True, eq=False)
class SymmetricGame:
    """A game whose agents can be exchanged, by counts."""

    initial: FloatArray  # [S]
    rewards: FloatArray  # [H, S, A, M]: on action a, the others having counts m of `others`
    moves: FloatArray  # [H, S, C, S]: by the counts c of `everyone`
    num_agents: int

    __repr__ = fields_line

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.rewards.shape[2])

    @cached_property
    def others(self) -> IntArray:
        """Counts of n − 1 agents: [M, A]."""
        return count_vectors(self.num_agents - 1, self.num_actions)

    @cached_property
    def everyone(self) -> IntArray:
        """Counts of n agents: [C, A]."""
        return count_vectors(self.num_agents, self.num_actions)

    @cached_property
    def together(self) -> IntArray:
        """The counts of all agents, by own action and those of the others: [A, M], numbers of rows of `everyone`."""
        indices = {tuple(row): c for c, row in enumerate(self.everyone.tolist())}
        unit = np.eye(self.num_actions, dtype=int)
        whole = [(self.others + unit[a]).tolist() for a in range(self.num_actions)]
        return np.array([[indices[tuple(row)] for row in rows] for rows in whole])


def count_vectors(agents: int, actions: int) -> IntArray:
    """Return all vectors of counts, in lexicographic order: [C, A]."""
    if actions == 1:
        return np.array([[agents]])
    rest = [(first, count_vectors(agents - first, actions - 1).tolist()) for first in range(agents + 1)]
    return np.array([(first, *row) for first, rows in rest for row in rows])


def as_symmetric(game: Game) -> SymmetricGame | None:
    """Return a game with a finite horizon by counts, if its agents can be exchanged, exactly; None otherwise."""
    if isinstance(game, CountingGame):
        return _from_counting(game)
    if isinstance(game, JointGame) and not game.is_sparse:
        return _from_joint(game)
    return None


def _from_joint(game: JointGame) -> SymmetricGame | None:
    agents, actions, steps = game.num_agents, game.num_actions, game.num_steps
    if len(set(actions)) != 1:
        return None
    rewards, moves = to_floats(game.rewards), to_floats(game.transition)
    for i in range(agents - 1):  # neighbours that can be exchanged: then all can
        first = 2 + i
        if not np.array_equal(moves, np.swapaxes(moves, first, first + 1)):
            return None
        for j in range(agents):
            other = {i: i + 1, i + 1: i}.get(j, j)
            if not np.array_equal(rewards[j], np.swapaxes(rewards[other], first, first + 1)):
                return None
    every = np.arange(actions[0])
    rest = count_vectors(agents - 1, actions[0])
    mine = [(a, *np.repeat(every, m)) for a, m in product(every.tolist(), rest)]  # one joint action of each kind
    all_of = [tuple(np.repeat(every, c)) for c in count_vectors(agents, actions[0])]
    own = rewards[0].reshape(*rewards.shape[1:3], -1)[:, :, np.ravel_multi_index(np.array(mine).T, actions)]
    kept = moves.reshape(*moves.shape[:2], -1, game.num_states)[:, :, np.ravel_multi_index(np.array(all_of).T, actions)]
    return _built(game.initial, own.reshape(*own.shape[:2], actions[0], -1), moves=kept, steps=steps, agents=agents)


def _from_counting(game: CountingGame) -> SymmetricGame | None:
    agents, actions, steps = game.num_agents, game.num_actions[0], game.num_steps
    private = to_floats(game.private_rewards)
    if game.horizon is None or not (private == private[:1]).all():
        return None
    others, everyone = count_vectors(agents - 1, actions), count_vectors(agents, actions)
    classes = game.classes.of(everyone)
    whole = others[None] + np.eye(actions, dtype=int)[:, None]  # [A, M, A]
    own = np.arange(actions)[:, None]
    # rewards[h, s, a, k_a] + private[h, s, a] + class_rewards[h, s, a, class]
    length = max(len(game.rewards), len(private[0]), len(game.class_rewards))
    given = (to_floats(game.rewards), private[0], to_floats(game.class_rewards))
    tables = [np.broadcast_to(each, (length, *each.shape[1:])) for each in given]
    rewards = tables[0][:, :, own, whole[own, np.arange(len(others))[None], own]] + tables[1][..., None]
    rewards = rewards + tables[2][:, :, own, game.classes.of(whole)]
    return _built(game.initial, rewards, moves=to_floats(game.transition)[:, :, classes], steps=steps, agents=agents)


def _built(initial: FloatArray, rewards: FloatArray, *, moves: FloatArray, steps: int, agents: int) -> SymmetricGame:
    every = [np.broadcast_to(each, (steps, *each.shape[1:])) for each in (rewards, moves)]
    return SymmetricGame(np.asarray(initial), every[0], every[1], agents)


def by_counts(game: SymmetricGame) -> CountingGame:
    """Return a symmetric game without constraints as a counting game, whose positions are cheap."""
    steps, states, actions, _ = game.rewards.shape
    agents = game.num_agents
    class_rewards = np.zeros((steps, states, actions, len(game.everyone)))
    for a in range(actions):
        class_rewards[:, :, a, game.together[a]] = game.rewards[:, :, a]
    return CountingGame(
        rewards=np.zeros((1, states, actions, agents + 1)),
        class_rewards=class_rewards,
        classes=EveryCount(),
        transition=game.moves,
        costs=np.zeros((0, 1, states, len(game.everyone))),
        thresholds=[],
        initial=game.initial,
        horizon=steps,
    )


# --- Candidates -------------------------------------------------------------------------------------------------------


def mean_reward(game: SymmetricGame) -> FloatArray:
    """Return the mean reward of all agents, by counts: [H, S, C]."""
    mean = np.zeros(game.moves.shape[:3])
    for a in range(game.num_actions):
        c = game.together[a]  # counts in which an agent is on a: no two of them are the same
        mean[:, :, c] += game.rewards[:, :, a] * game.everyone[c, a] / game.num_agents
    return mean


def stage_candidate(game: SymmetricGame) -> FloatArray:
    """Return what agents gain who go to their actions one after another, from all on the first one: [H, S, C].

    That is the potential of the stages where they have one (Lemma 1 of the paper).
    """
    found = np.zeros(game.moves.shape[:3])
    indices = {tuple(row): m for m, row in enumerate(game.others.tolist())}
    for c, counts in enumerate(game.everyone.tolist()):
        now = [game.num_agents, *([0] * (game.num_actions - 1))]
        for a in range(1, game.num_actions):
            for _ in range(counts[a]):
                now[0] -= 1
                m = indices[tuple(now)]
                found[:, :, c] += game.rewards[:, :, a, m] - game.rewards[:, :, 0, m]
                now[a] += 1
        everyone_first = indices[(game.num_agents - 1, *([0] * (game.num_actions - 1)))]
        found[:, :, c] += game.rewards[:, :, 0, everyone_first]
    return found


def visits(game: SymmetricGame, actions: IntArray) -> FloatArray:
    """Return how often each (h, s, counts) is visited by deterministic policies [n, H, S]: flat over [H, S, C]."""
    steps, states, counts, _ = game.moves.shape
    indices = {tuple(row): c for c, row in enumerate(game.everyone.tolist())}
    found, mass = np.zeros((steps, states, counts)), game.initial
    for h in range(steps):
        chosen = [indices[tuple(np.bincount(actions[:, h, s], minlength=game.num_actions))] for s in range(states)]
        found[h, np.arange(states), chosen] = mass
        mass = mass @ game.moves[h, np.arange(states), chosen]
    return found.ravel()


def sampled_moves(game: SymmetricGame, number: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return how moves of one agent change visits [moves, H·S·C], and what the mover gains by them: [moves]."""
    steps, states = game.rewards.shape[:2]
    rows, gained = [], []
    for _ in range(number):
        # Crowds matter most: half of the time all others do the same in a state.
        old = rng.integers(game.num_actions, size=(game.num_agents, steps, states))
        if rng.random() < 0.5:
            old[1:] = old[1]
        new = old.copy()
        new[0] = rng.integers(game.num_actions, size=new[0].shape)
        rows.append(visits(game, new) - visits(game, old))
        gained.append(_value(game, new) - _value(game, old))
    return np.array(rows), np.array(gained)


def _value(game: SymmetricGame, actions: IntArray) -> float:
    """Return what the first agent gets."""
    steps, states = game.rewards.shape[:2]
    everyone = {tuple(row): c for c, row in enumerate(game.everyone.tolist())}
    others = {tuple(row): m for m, row in enumerate(game.others.tolist())}
    total, mass = 0.0, game.initial
    for h in range(steps):
        ahead = np.zeros(states)
        for s in np.flatnonzero(mass):
            rest = np.bincount(actions[1:, h, s], minlength=game.num_actions)
            total += mass[s] * game.rewards[h, s, actions[0, h, s], others[tuple(rest)]]
            rest[actions[0, h, s]] += 1
            ahead += mass[s] * game.moves[h, s, everyone[tuple(rest)]]
        mass = ahead
    return float(total)


def work_of(game: SymmetricGame) -> float:
    """Return how many pairs of rows an upper bound visits."""
    steps, states, actions, others = game.rewards.shape
    return float(steps * states**3 * (actions * others) ** 2)
