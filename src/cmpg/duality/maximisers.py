"""The deterministic policies that maximise the Lagrangian at given multipliers: what a dual method may return.

A policy maximises L(·, λ) exactly when, in every state that it visits, it plays a joint action that is tied for the
best in the joint dynamic program. So the maximisers are enumerated from the start forwards: a visited state gets one
of its tied actions, its successors are visited next, and what is never visited is left at the planner's own choice.
With ties taken to within τ, each policy attains d(λ) to within H·τ (discounted: τ/(1 − γ)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray, to_floats
from cmpg.cmdp.evaluation import evaluate, stationary_values
from cmpg.cmdp.model import CMDP
from cmpg.cmdp.planning import maximise, plan, scalarised_backup
from cmpg.duality.dual_function import checked_multipliers, with_planner
from cmpg.equilibrium.best_responses import certify_with_best_responses
from cmpg.games.joint.game import JointGame
from cmpg.games.joint.planner import joint_planner
from cmpg.policy import JointPolicy
from cmpg.summaries import fields_line

Node = tuple[int, int]
"""Step and state; the step is 0 if the sum is discounted."""


@dataclass(frozen=True, eq=False)
class DualMaximiser:
    """A policy that attains d(λ), and what it is good for."""

    policy: JointPolicy
    value: float  # Φ
    costs: FloatArray  # [k]
    feasible: bool
    nash_gap: float  # what an agent could gain by deviating, proved; inf if the policy is not feasible

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class DualMaximisers:
    """Policies that attain d(λ).

    Examples
    --------
    >>> from cmpg.duality import dual_maximisers
    >>> from cmpg.scenarios import counter_example
    >>> found = dual_maximisers(counter_example(), [1.0])
    >>> found.complete, [each.feasible for each in found.found]
    (True, [True, False])
    """

    multipliers: FloatArray  # [k]
    found: tuple[DualMaximiser, ...]
    complete: bool  # whether these are all deterministic ones, up to states that they do not visit

    __repr__ = fields_line


def dual_maximisers(game: JointGame, multipliers: Any, *, limit: int = 64, tolerance: float = 1e-9) -> DualMaximisers:
    """Return the deterministic policies that attain d(λ): what a dual method may return, feasible or not.

    Policies that differ only in states that neither visits count as one. For every constraint the cheapest and the
    most expensive come first, then the others up to the limit.

    Parameters
    ----------
    game
        A joint game that has a `potential_reward`.
    multipliers : [k]
        λ, usually λ*.
    limit
        How many to list.
    tolerance
        Two actions are tied if their values in the joint dynamic program differ by at most this, relative to the
        largest reward.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> [(each.value, each.feasible) for each in dual_maximisers(counter_example(), [1.0]).found]
    [(3.0, True), (4.0, False)]
    """
    game = with_planner(game)
    planner, checked = joint_planner(game), to_floats(checked_multipliers(game, multipliers))
    tied = _tied_actions(planner, checked, tolerance)
    default = plan(planner, checked).actions
    distinct: dict[bytes, IntArray] = {}
    complete = True
    for actions in chain(_extremes(planner, tied, default), _visiting_policies(planner, tied, default)):
        key = actions.tobytes()
        if key not in distinct and len(distinct) == limit:
            complete = False
            break
        distinct[key] = actions
    found = tuple(_judge(game, planner, actions) for actions in distinct.values())
    return DualMaximisers(checked, found, complete)


def _judge(game: JointGame, planner: CMDP, actions: IntArray) -> DualMaximiser:
    policy = game.split(actions)
    worth = evaluate(planner, np.asarray(actions[..., None] == np.arange(planner.num_actions), dtype=np.float64))
    certificate = certify_with_best_responses(game, policy)
    gap = certificate.epsilon if certificate.feasible else np.inf
    return DualMaximiser(policy, float(worth.value), worth.costs, certificate.feasible, gap)


def _tied_actions(cmdp: CMDP, multipliers: FloatArray, tolerance: float) -> npt.NDArray[np.bool_]:
    """Which actions are tied for the best, by step and state: [H, S, A]."""
    tie = tolerance * (float(np.abs(cmdp.reward).max()) + float(multipliers @ _largest(cmdp)))
    if cmdp.discount is None:
        return maximise(cmdp, multipliers).tied(tie)
    best = plan(cmdp, multipliers).policy(cmdp.num_actions)
    to_go = stationary_values(cmdp, best[0]) @ np.concatenate([[1.0], -multipliers])
    values = scalarised_backup(cmdp, multipliers, to_go)
    return np.asarray(values >= values.max(axis=1, keepdims=True) - tie)[None]


def _largest(cmdp: CMDP) -> FloatArray:
    return np.asarray(np.abs(cmdp.costs).max(axis=(1, 2, 3), initial=0.0))


def _extremes(cmdp: CMDP, tied: npt.NDArray[np.bool_], default: IntArray) -> Iterator[IntArray]:
    """For every constraint, the cheapest and the most expensive of the tied policies."""
    steps = cmdp.num_steps if cmdp.discount is None else 1 / (1 - cmdp.discount)
    for j, largest in enumerate(_largest(cmdp)):
        forbidden = -(2 * largest * steps + 1)  # more than any difference in cost can make up for
        for sign in (-1.0, 1.0):
            reward = np.where(tied, sign * cmdp.costs[j], forbidden)
            # Without weights on the costs, and with its own reward, the same CMDP asks for that extreme.
            extreme = plan(replace(cmdp, reward=reward, trusted=True), np.zeros(cmdp.num_constraints))
            yield _on_path(cmdp, extreme.actions, default)


def _on_path(cmdp: CMDP, actions: IntArray, default: IntArray) -> IntArray:
    """Keep the actions in visited states, and take the default elsewhere."""
    kept = default.copy()
    waiting, seen = set(_initial_nodes(cmdp)), set(_initial_nodes(cmdp))
    while waiting:
        node = waiting.pop()
        kept[node] = actions[node]
        new = set(_successors(cmdp, node, int(actions[node]))) - seen
        waiting |= new
        seen |= new
    return kept


def _visiting_policies(cmdp: CMDP, tied: npt.NDArray[np.bool_], default: IntArray) -> Iterator[IntArray]:
    """All ways to choose tied actions in visited states, depth first; each frame on the stack is one decided state."""
    chosen = default.copy()
    frames: list[tuple[Node, frozenset[Node], Iterator[int]]] = []
    decided: set[Node] = set()

    def open_frame(waiting: frozenset[Node]) -> None:
        node = min(waiting)
        frames.append((node, waiting - {node}, iter(np.flatnonzero(tied[node]).tolist())))
        decided.add(node)

    open_frame(frozenset(_initial_nodes(cmdp)))
    while frames:
        node, waiting, choices = frames[-1]
        action = next(choices, None)
        if action is None:
            frames.pop()
            decided.remove(node)
            chosen[node] = default[node]
            continue
        chosen[node] = action
        ahead = waiting | (set(_successors(cmdp, node, action)) - decided)
        if ahead:
            open_frame(ahead)
        else:
            yield chosen.copy()


def _initial_nodes(cmdp: CMDP) -> list[Node]:
    return [(0, int(s)) for s in np.flatnonzero(cmdp.initial)]


def _successors(cmdp: CMDP, node: Node, action: int) -> list[Node]:
    step, state = node
    if cmdp.discount is None and step == cmdp.num_steps - 1:
        return []
    row = cmdp.matrix(step)[[state * cmdp.num_actions + action]]
    after = 0 if cmdp.discount is not None else step + 1
    return [(after, int(s)) for s in row.nonzero()[1]]
