"""The tables of a counting game: their checks, their structure, and what they are in other forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import (
    UNIT_ROUNDOFF,
    FloatArray,
    IntArray,
    check_shape,
    distributions,
    frozen,
    numbers,
)
from cmpg.cmdp.model import check_length_of_time, check_steps, check_thresholds, largest_sizes, run_depth, total_weight
from cmpg.errors import GameError
from cmpg.games.counting.classes import BoolArray
from cmpg.games.counting.vectors import EveryCount, LargestCount
from cmpg.games.game import Objective, PotentialKind, PotentialProof, checked_labels
from cmpg.games.joint.averages import MAX_JOINT_ENTRIES
from cmpg.games.rationals import as_given, rounded_tables

if TYPE_CHECKING:
    from cmpg.games.counting.game import CountingGame

MAX_STAGES = 5_000_000
"""Count vectors × states × steps that are looked at for a bound, at most."""

TABLES = ("transition", "rewards", "private_rewards", "class_rewards", "costs", "thresholds", "initial", "discount")
LARGEST_SIZE = 1e300
"""Sums of larger numbers than this could be none."""

MAX_AT_ONCE = 50
"""How many splits of agents are compared in the time of one count vector."""

NAMES = ("agent_names", "state_names", "action_names", "constraint_names")


def checked_tables(game: CountingGame) -> dict[str, Any]:
    """Return all tables as read-only arrays, or raise with coordinates."""
    check_length_of_time(game.horizon, game.discount)
    rewards = numbers("rewards", game.rewards)
    if rewards.ndim != 4 or 0 in rewards.shape or rewards.shape[3] < 2:
        raise GameError(
            f"rewards has shape {list(rewards.shape)}; [H or 1, S, A, n + 1] is required: one entry for each number of "
            "agents on the action, from 0 to n."
        )
    states, actions, agents = rewards.shape[1], rewards.shape[2], rewards.shape[3] - 1
    check_steps("rewards", len(rewards), game.num_steps)
    classes = game.classes.number(agents, actions)
    private = np.zeros((agents, 1, states, actions)) if game.private_rewards is None else game.private_rewards
    by_class = np.zeros((1, states, actions, classes)) if game.class_rewards is None else game.class_rewards
    tables = {
        "rewards": rewards,
        "transition": _stepped(game, "transition", game.transition, (states, classes, states)),
        "class_rewards": _stepped(game, "class_rewards", by_class, (states, actions, classes)),
        "private_rewards": _families(game, "private_rewards", private, (agents, states, actions)),
        "costs": _families(game, "costs", game.costs, (None, states, classes)),
        "thresholds": numbers("thresholds", game.thresholds),
        "initial": numbers("initial", game.initial),
    }
    check_thresholds(tables["thresholds"], len(tables["costs"]))
    check_shape("initial", tables["initial"].shape, (states,))
    tables["transition"] = distributions("transition", tables["transition"], ("h", "s", "class"))
    tables["initial"] = distributions("initial", tables["initial"], ())
    labels = checked_labels(
        game,
        [(game.num_steps, states, actions)] * agents,
        agent_names=agents,
        state_names=states,
        action_names=[actions] * agents,
        constraint_names=len(tables["costs"]),
    )
    return rounded_tables(tables | {"discount": game.discount}, game.rationals) | labels


def _stepped(game: CountingGame, name: str, value: Any, rest: tuple[int, ...]) -> FloatArray:
    """Check a table [H or 1, *rest]."""
    table = numbers(name, value)
    check_steps(name, len(table) if table.ndim else 0, game.num_steps)
    check_shape(name, table.shape, (len(table), *rest))
    return table


def _families(game: CountingGame, name: str, value: Any, required: tuple[int | None, int, int]) -> FloatArray:
    """Check a table [family, H or 1, *rest], where the family may have any length if that is None; () is none."""
    table = numbers(name, value)
    family, rest = required[0], required[1:]
    if family is None and table.size == 0 and len(table) == 0:
        return frozen(np.zeros((0, 1, *rest)))
    if table.ndim != 4:
        wanted = ["k" if family is None else family, "H or 1", *rest]
        raise GameError(f"{name} has shape {list(table.shape)}; [{', '.join(map(str, wanted))}] is required.")
    check_steps(name, table.shape[1], game.num_steps)
    check_shape(name, table.shape, (len(table) if family is None else family, table.shape[1], *rest))
    return table


def class_differences(game: CountingGame) -> BoolArray:
    """Return whether anything differs between neighbouring classes, for each step and state: [H·S, C − 1]."""
    shape = (game.num_steps, game.num_states, game.num_classes - 1)
    differs = np.zeros(shape, dtype=bool)
    differs |= (game.transition[:, :, 1:] != game.transition[:, :, :-1]).any(axis=-1)
    differs |= (game.class_rewards[..., 1:] != game.class_rewards[..., :-1]).any(axis=2)
    for cost in game.costs:
        differs |= cost[..., 1:] != cost[..., :-1]
    return differs.reshape(shape[0] * shape[1], shape[2])


@dataclass(frozen=True, eq=False)
class CountingSizes:
    """How large and how small the numbers of a game are: what rounding can do depends on it."""

    game: CountingGame

    def averaged(self, agent: int) -> FloatArray:
        """Return `CMDP.averaged` of one agent: [1 + k]."""
        return np.concatenate([self._mixed_rewards[agent : agent + 1], self._mixed_costs])

    @cached_property
    def rewards(self) -> FloatArray:
        """The largest sum of |r_i|: [n]."""
        shared, by_class = largest_sizes([self.game.rewards[..., 1:], self.game.class_rewards])
        return np.asarray(self._length * (largest_sizes(self.game.private_rewards) + shared + by_class))

    @cached_property
    def costs(self) -> FloatArray:
        """The largest sum of |c_j|: [k]."""
        return self._length * largest_sizes(self.game.costs)

    @cached_property
    def depth(self) -> float:
        """log₂ of the least product of the game's own probabilities along a run; see `Underflow`."""
        game = self.game
        paid = (game.rewards, *game.private_rewards, game.class_rewards, *game.costs)
        return run_depth(game.initial, game.transition, game.num_steps, paid=paid)

    @property
    def _length(self) -> float:
        return total_weight(self.game.horizon, self.game.discount)

    @cached_property
    def _mixed_rewards(self) -> FloatArray:
        shared = [self.game.rewards[..., 1:], self.game.class_rewards]
        low, high = min(float(each.min()) for each in shared), max(float(each.max()) for each in shared)
        both = [min(low, own.min()) < 0 < max(high, own.max()) for own in self.game.private_rewards]
        return np.where(both, self.rewards, 0.0)

    @cached_property
    def _mixed_costs(self) -> FloatArray:
        both = [bool(cost.min() < 0 < cost.max()) for cost in self.game.costs]
        return np.where(both, self.costs, 0.0)


def why_potential(game: CountingGame) -> PotentialProof | None:
    """Return why this is a Markov potential game, or None where its structure does not prove it."""
    if game.num_agents == 1 or game.num_actions[0] == 1:
        why = "a single agent, or a single action: no agent's choice concerns another's."
        return PotentialProof(PotentialKind.ONE_AGENT, why)
    by_class, private, counted = game.class_rewards, game.private_rewards, game.rewards[..., 1:]
    if (by_class != by_class[:, :, :1]).any():
        return None
    if (counted == counted[:, :, :1, :1]).all() and (private == private[:1, :, :, :1]).all():
        why = "C1: all agents have the same reward, which is the potential."
        return PotentialProof(PotentialKind.COMMON_REWARD, why)
    moves = game.transition[:-1] if game.horizon == len(game.transition) else game.transition
    if game.horizon == 1 or (moves == moves[:, :, :1]).all():
        why = "there is one step" if game.horizon == 1 else "no action moves the state"
        why = f"C2: {why}, and each stage is a congestion game (Rosenthal), with common and private terms beside it."
        return PotentialProof(PotentialKind.EXOGENOUS_STATE, why)
    return None


@dataclass(frozen=True, eq=False)
class BestStages:
    """What one stage can add to an objective at most, by the class of the counts."""

    by_class: FloatArray  # [H or 1, S, C], rounding included; −inf in classes that do not occur
    of_class: IntArray  # [H or 1, S, C]: the count vector that attains it
    vectors: IntArray  # [V, A]
    crowd: FloatArray  # [H or 1, S]: where all agents play action 0


def best_stages(game: CountingGame, objective: Objective) -> BestStages | None:
    """Return the best stage of each class over all count vectors; None where there are too many, or no potential.

    A count vector k is worth Σ_a k_a (r_a(k_a) + class reward), or Rosenthal's Σ_a Σ_{m ≤ k_a} r_a(m) plus the class
    reward that all share, plus what is private: at most the k_a largest private rewards of each action a. Within a
    class that is a sum over actions.
    """
    agents, actions = game.num_agents, game.num_actions[0]
    steps = max(len(table) for table in (game.rewards, game.class_rewards, game.private_rewards[0]))
    listed = isinstance(game.classes, EveryCount)
    work = game.num_classes if listed else game.num_classes * actions * (agents + 1) ** 2 / MAX_AT_ONCE
    if work * steps * game.num_states > MAX_STAGES:
        return None
    proof = why_potential(game) if objective is Objective.POTENTIAL else None
    if objective is Objective.POTENTIAL and (proof is None or proof.kind is PotentialKind.ONE_AGENT):
        return None
    size = agents * sum(
        float(np.abs(table).max()) for table in (game.rewards, game.class_rewards, game.private_rewards)
    )
    if not size < LARGEST_SIZE:
        return None
    loads, shape = np.arange(agents + 1), (steps, game.num_states)
    counted = np.where(loads > 0, game.rewards, 0.0)
    # What k agents on an action are worth, what each of them gets by the class, and what all share: [.., A, n + 1], …
    alone: FloatArray = counted * loads
    by_class, common = game.class_rewards, np.zeros((1, game.num_states, 1))
    if proof is not None:
        by_class, common = np.zeros_like(by_class), game.class_rewards[:, :, 0]
        alone = np.cumsum(counted, axis=-1)
    if proof is not None and proof.kind is PotentialKind.COMMON_REWARD:
        # All agents get the same, whatever they play: that is the potential.
        common = common + game.private_rewards[0][:, :, :1] + game.rewards[:, :, :1, 1]
        alone = np.zeros_like(counted)
    else:
        own = -np.sort(-game.private_rewards, axis=0)
        most = np.concatenate([np.zeros((1, *own.shape[1:])), np.cumsum(own, axis=0)])  # [n + 1, H or 1, S, A]
        alone = alone + np.moveaxis(most, 0, -1)
    alone = np.broadcast_to(alone, (*shape, actions, agents + 1))
    by_class = np.broadcast_to(by_class, (*shape, actions, game.num_classes))
    common = np.broadcast_to(common, (*shape, game.num_classes))
    best = (_best_of_all if listed else _best_by_splitting)(game, alone, by_class, common)
    crowd = int(game.classes.of(np.array([agents] + [0] * (actions - 1))))
    all_agents = common[..., crowd] + alone[..., 0, agents] + alone[..., 1:, 0].sum(axis=-1)
    rounded = (2 * agents + 4 * actions + 16) * UNIT_ROUNDOFF * size
    return BestStages(best[0] + rounded, *best[1:], all_agents + agents * by_class[..., 0, crowd])


_Best = tuple[FloatArray, IntArray, IntArray]
"""What the best stage of each class is worth, [H or 1, S, C], which count vector that is, and those: [V, A]."""


def _best_of_all(game: CountingGame, alone: FloatArray, by_class: FloatArray, common: FloatArray) -> _Best:
    """Look at every count vector, each of which is a class."""
    vectors = game.classes.samples(game.num_agents, game.num_actions[0])
    total = common.copy()
    for action, counts in enumerate(vectors.T):
        total += alone[..., action, counts] + by_class[..., action, :] * counts
    return total, np.broadcast_to(np.arange(len(vectors)), total.shape), vectors


def _best_by_splitting(game: CountingGame, alone: FloatArray, by_class: FloatArray, common: FloatArray) -> _Best:
    """Split the agents among actions, one after the other, with counts up to one boundary, and one above the other."""
    assert isinstance(game.classes, LargestCount)
    bounds = [-1, *(min(int(bound), game.num_agents) for bound in game.classes.boundaries), game.num_agents]
    loads = np.arange(game.num_agents + 1)
    best, vectors = np.full(common.shape, -np.inf), []
    for h, s, c in np.ndindex(*common.shape):
        worth = alone[h, s] + by_class[h, s, :, c, None] * loads
        value, counts = _best_split(worth, bounds[c], bounds[c + 1])
        best[h, s, c] = value + common[h, s, c]
        vectors.append(counts)
    return best, np.arange(len(vectors)).reshape(common.shape), np.array(vectors)


def _best_split(worth: FloatArray, low: int, high: int) -> tuple[float, list[int]]:
    """Return the greatest Σ_a worth[a, k_a] over counts of n agents with low < max k ≤ high, or −inf, and the counts.

    Among equals it is the last in lexicographic order.
    """
    actions, (agents, loads) = len(worth), (worth.shape[1] - 1, np.arange(worth.shape[1]))
    left = loads[:, None] - loads  # of m agents, after k
    # By whether an action has more than `low` agents yet, and by how many agents are on this action and later ones.
    ahead = np.full((2, agents + 1), -np.inf)
    ahead[0, 0] = 0.0
    chosen = np.zeros((actions, 2, agents + 1), dtype=np.int64)
    for a in reversed(range(actions)):
        behind = np.where(left >= 0, ahead[:, left], -np.inf)  # [2, m, k]
        fits = np.where(loads <= high, worth[a], -np.inf)
        few = behind[0] + np.where(loads <= low, fits, -np.inf)
        many = np.maximum(behind[1] + fits, behind[0] + np.where(loads > low, fits, -np.inf))
        for flag, options in enumerate((few, many)):
            chosen[a, flag] = agents - options[:, ::-1].argmax(axis=1)
        ahead = np.stack([few.max(axis=1), many.max(axis=1)])
        chosen[a, 1] += (agents + 1) * (behind[1] + fits >= many)[loads, chosen[a, 1]]  # one was above already
    if ahead[1, agents] == -np.inf:  # no vector has such a largest count
        return -np.inf, [agents] + [0] * (actions - 1)
    counts, m, flag = [], agents, 1
    for a in range(actions):
        above, k = divmod(int(chosen[a, flag, m]), agents + 1)
        counts.append(k)
        m, flag = m - k, above if flag else 0
    return float(ahead[1, agents]), counts


def joint_tables(game: CountingGame) -> dict[str, Any]:
    """Return the fields of a joint game with the same tables, over all A^n joint actions."""
    agents, actions, states = game.num_agents, game.num_actions[0], game.num_states
    largest = float(actions) ** agents * states * game.num_steps * max(agents, states)
    if largest > MAX_JOINT_ENTRIES:
        raise GameError(
            f"{actions}^{agents} joint actions need tables of {largest:.3g} entries; at most {MAX_JOINT_ENTRIES:.3g} "
            "are written. Work with the counting game itself."
        )
    joint = np.indices((actions,) * agents).reshape(agents, -1)
    counts = (joint[:, :, None] == np.arange(actions)).sum(axis=0)
    labels = game.classes.of(counts)
    own_counts = np.take_along_axis(counts.T, joint, axis=0)
    # Rewards of an exact game are added up in rationals.
    counted, private, by_class = (as_given(game, name) for name in ("rewards", "private_rewards", "class_rewards"))
    rewards = [
        counted[:, :, own, own_counts[agent]] + private[agent][:, :, own] + by_class[:, :, own, labels]
        for agent, own in enumerate(joint)
    ]
    table = (states, *game.num_actions)
    same = ("thresholds", "initial", "horizon", "discount", "binds", *NAMES)
    return {name: as_given(game, name) for name in same} | {
        "transition": as_given(game, "transition")[:, :, labels].reshape(-1, *table, states),
        "rewards": np.stack(rewards).reshape(agents, -1, *table),
        "costs": as_given(game, "costs")[..., labels].reshape(*game.costs.shape[:2], *table),
    }
