"""Proofs by structure that a joint game is a Markov potential game.

A game has a potential exactly when every 4-cycle vanishes (`check.py`). Three classes have that by their tables.

- C1: all agents have the same reward, and Φ is its value.
- C2: no action moves the state, and every (step, state) is an exact potential game: the second differences of u_i − u_j
  in the actions of i and j vanish. The distribution of states is then given, and stage potentials add up.
- C4: the value of r_i − r_0 is the same under every joint policy: its maximum and its minimum over the joint MDP agree.
  Then V_0 is a potential, and the rest are terms that no agent can influence.

Guarantee. On an exact game the proof is exact. On floats, a difference counts as zero if it is no more than what
`READING_ERROR` in every entry, and the roundings of the proof itself, can make; `Proof.residual` then bounds every
4-cycle of values of the game as stored: H·4·(largest second difference) for C2, and 4·(largest range) for C4.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray
from cmpg.cmdp.model import total_weight
from cmpg.cmdp.planning import certain_rows, dual_bound
from cmpg.games.game import PotentialKind, PotentialProof
from cmpg.games.joint.planner import common_reward_proof
from cmpg.games.rationals import as_given, is_exact
from cmpg.proof.claim import Claim, JointTables
from cmpg.proof.exact import TooLarge, check_exactly

if TYPE_CHECKING:
    from cmpg.games.joint.game import JointGame

UNINFLUENCED = (
    "C4: rewards differ only by terms whose value no joint policy can change; the first agent's value is a potential."
)

MAX_EXACT_WORK = 1_000_000
"""The work in rationals that is spent on one maximum, or on the values at one corner of a 4-cycle."""

READING_ERROR = 4 * UNIT_ROUNDOFF
"""The relative error that a number in a table may have: what a few roundings on the way to it leave."""


def prove_potential(game: JointGame) -> PotentialProof | None:
    """Return a proof by one of the classes C1, C2, C4, or None where the game is in none of them.

    What is beyond all floats becomes nan, and every test here is one that nan fails.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for prove in (common_reward_proof, _exogenous_state, _uninfluenced_differences):
            proof = prove(game)
            if proof is not None and np.isfinite(proof.residual):
                return proof
    return None


def _exogenous_state(game: JointGame) -> PotentialProof | None:
    if _actions_move_the_state(game):
        return None
    largest, exact = 0.0, as_given(game, "rewards") if is_exact(game) else None
    for i, j in combinations(range(game.num_agents), 2):
        if exact is not None:
            if _second_differences(exact[i] - exact[j], i, j).any():
                return None
            continue
        second = np.abs(_second_differences(game.rewards[i] - game.rewards[j], i, j))
        # Eight entries, four of each reward: each is off by READING_ERROR at most. Only these matter, whatever sizes
        # there are elsewhere in the tables.
        sizes = _four_sums(np.abs(game.rewards[i]) + np.abs(game.rewards[j]), i, j)
        if not (second <= (4 * UNIT_ROUNDOFF + READING_ERROR) * sizes).all():
            return None
        largest = max(largest, float((second + 4 * UNIT_ROUNDOFF * sizes).max()))
    return PotentialProof(
        PotentialKind.EXOGENOUS_STATE,
        "C2: no action moves the state, and every stage is an exact potential game; the stage potentials add up.",
        4 * largest * total_weight(game.horizon, game.discount),
    )


def _actions_move_the_state(game: JointGame) -> bool:
    used = as_given(game, "transition")
    if game.horizon is not None:  # nothing happens after the last step
        used = used[: game.horizon - 1]
    if game.is_sparse:
        return any(_rows_differ(matrix, game.num_states) for matrix in used)
    flat = used.reshape(len(used), game.num_states, math.prod(game.num_actions), game.num_states)
    return bool((flat != flat[:, :, :1]).any())


def _rows_differ(matrix: Any, num_states: int) -> bool:
    """Whether two rows of one state differ, in a CSR matrix [S·ΠA, S]."""
    clean = sp.csr_array(matrix, copy=True)
    clean.sum_duplicates()
    clean.eliminate_zeros()
    lengths = np.diff(clean.indptr).reshape(num_states, -1)
    if (lengths != lengths[:, :1]).any():
        return True
    joint_actions = lengths.shape[1]
    first_rows = clean[::joint_actions]
    ahead = np.repeat(first_rows.indptr[:-1], lengths.sum(axis=1))
    index = np.arange(clean.nnz) - np.repeat(clean.indptr[:-1], np.diff(clean.indptr)) + ahead
    same = (clean.indices == first_rows.indices[index]) & (clean.data == first_rows.data[index])
    return not bool(same.all())


def _second_differences(table: FloatArray, i: int, j: int) -> FloatArray:
    """Return table(a_i, a_j) − table(0, a_j) − table(a_i, 0) + table(0, 0) for a table [H or 1, S, *A]."""
    over_i = table - np.take(table, [0], axis=2 + i)
    return over_i - np.take(over_i, [0], axis=2 + j)


def _four_sums(table: FloatArray, i: int, j: int) -> FloatArray:
    """Return the sum of the four entries that a second difference is made of."""
    over_i = table + np.take(table, [0], axis=2 + i)
    return over_i + np.take(over_i, [0], axis=2 + j)


def _uninfluenced_differences(game: JointGame) -> PotentialProof | None:
    if is_exact(game):
        return _exactly_uninfluenced(game)
    largest = 0.0
    for agent in range(1, game.num_agents):
        difference = game.rewards[agent] - game.rewards[0]
        planner = _unconstrained(game.joint_cmdp(difference))
        highest = dual_bound(planner, np.zeros(0))
        lowest = -dual_bound(_unconstrained(game.joint_cmdp(-difference)), np.zeros(0))
        spread = float(highest - lowest)
        # The most that any policy can meet, not the largest entry times the steps.
        met = np.abs(game.rewards[agent]) + np.abs(game.rewards[0])
        size = float(dual_bound(_unconstrained(game.joint_cmdp(met)), np.zeros(0)))
        rounding = 2 * (planner.rounding + UNIT_ROUNDOFF) * size
        if not spread <= rounding + 2 * READING_ERROR * size:
            return None
        largest = max(largest, spread + rounding)
    return PotentialProof(PotentialKind.UNINFLUENCED_DIFFERENCES, UNINFLUENCED, 4 * largest)


def _exactly_uninfluenced(game: JointGame) -> PotentialProof | None:
    """Compare the greatest and the least value of r_i − r_0 in rationals; None where that takes too long."""
    rewards = as_given(game, "rewards")
    for reward in rewards[1:]:
        highest, lowest = (_exact_maximum(game, sign * (reward - rewards[0])) for sign in (1, -1))
        if highest is None or lowest is None or highest != -lowest:
            return None
    return PotentialProof(PotentialKind.UNINFLUENCED_DIFFERENCES, UNINFLUENCED)


def _exact_maximum(game: JointGame, reward: FloatArray) -> Fraction | None:
    """Return the maximum of the value of a reward [H or 1, S, *A], by the kernel: one agent chooses all actions."""
    tables = game.claim_tables()
    shape = (game.num_steps, game.num_states, math.prod(game.num_actions))
    no_costs = np.zeros((0, 1, *shape[1:]))
    alone = JointTables(tables.initial, tables.transition, reward.reshape(1, -1, *shape[1:]), no_costs)
    claim = Claim(
        tables=alone,
        horizon=game.horizon,
        discount=as_given(game, "discount"),
        thresholds=np.zeros(0),
        binds=np.ones((1, 0), dtype=np.bool_),
        policy=(certain_rows(np.zeros(shape[:2], dtype=np.int64), shape[2]),),
        multipliers=np.zeros((1, 0)),
    )
    try:
        return check_exactly(claim, max_work=MAX_EXACT_WORK).bounds[0]
    except TooLarge:
        return None


def _unconstrained(planner: Any) -> Any:
    states, actions = planner.reward.shape[1:]
    return replace(planner, costs=np.zeros((0, 1, states, actions)), thresholds=np.zeros(0), trusted=True)
