"""Write proof files (docs/proof-format.md) of games, policies and multipliers: small and slow, for these tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp

from cmpg.games import CountingGame, JointGame, LocalGame
from cmpg.games.counting.vectors import LargestCount
from cmpg.policy import JointPolicy

LARGE = 10**80
"""Stands for an infinite multiplier."""


def text(number: Any) -> str:
    """Return a number as `p` or `p/q`."""
    return str(Fraction(number))


def exact_row(row: Iterable[float]) -> list[Fraction]:
    """Return a row of probabilities as rationals that sum to one: the largest entry takes up the rounding."""
    entries = [Fraction(float(entry)) for entry in row]
    largest = max(range(len(entries)), key=entries.__getitem__)
    entries[largest] += 1 - sum(entries)
    return entries


def pairs(columns: Iterable[int], row: Iterable[float]) -> str:
    """Return next states with their probabilities."""
    return " ".join(f"{t} {text(q)}" for t, q in zip(columns, exact_row(row), strict=True))


def nonzero(table: Any) -> Iterator[tuple[str, list[int], str]]:
    """Yield the entries of a table [H or 1, …] that are not zero: step or `*`, the other indices, the value."""
    for index in np.argwhere(table):
        yield "*" if len(table) == 1 else str(index[0]), list(index[1:]), text(float(table[tuple(index)]))


def words(numbers: Iterable[Any]) -> str:
    """Return numbers with spaces between them."""
    return " ".join(map(str, numbers))


def write_policy(out: TextIO, policy: JointPolicy) -> None:
    """Write `play` and `policy` lines."""
    for i, table in enumerate(policy):
        for h, rows in enumerate(np.asarray(table)):
            pure = rows.max(axis=1) == 1
            out.write(f"play {i} {h} {words(np.where(pure, rows.argmax(axis=1).astype(str), '-'))}\n")
            for s in np.flatnonzero(~pure):
                out.write(f"policy {i} {h} {s} {words(map(text, exact_row(rows[s])))}\n")


def write_claim(
    out: TextIO, thresholds: Any, policy: JointPolicy, multipliers: Any, epsilon: Any, binds: Any = None
) -> None:
    """Write everything that the claim `nash` has in all forms."""
    for j, threshold in enumerate(thresholds):
        out.write(f"threshold {j} {text(float(threshold))}\n")
        if binds is not None:
            out.write(f"binds {j} {words(np.flatnonzero(np.asarray(binds)[:, j]))}\n")
    write_policy(out, policy)
    for (i, j), multiplier in np.ndenumerate(np.asarray(multipliers)):
        out.write(f"multiplier {i} {j} {LARGE if np.isinf(multiplier) else text(float(multiplier))}\n")
    out.write(f"epsilon {text(epsilon)}\nend\n")


def write_joint_game(
    out: TextIO, game: JointGame, claim: str = "nash", precision: int | None = None, ahead: int = 0
) -> None:
    """Write the header and the facts of a joint game, but for its thresholds."""
    length = f"horizon {game.horizon}" if game.discount is None else f"discount {text(game.discount)} {ahead}"
    out.write(f"cmpg-proof 1\nform joint\nclaim {claim}\nactions {words(game.num_actions)}\nstates {game.num_states}\n")
    out.write(f"{length}\nconstraints {game.num_constraints}\n")
    if precision is not None:
        out.write(f"precision {precision}\n")
    for s in np.flatnonzero(game.initial):
        out.write(f"initial {s} {text(exact_row(game.initial)[s])}\n")
    joint = list(product(*map(range, game.num_actions)))
    for h, table in enumerate(game.transition):
        step = "*" if len(game.transition) == 1 else h
        for row, (columns, data) in enumerate(sparse_rows(table)):
            out.write(
                f"transition {step} {row // len(joint)} {words(joint[row % len(joint)])} {pairs(columns, data)}\n"
            )
    for word, tables in (("reward", game.rewards), ("cost", game.costs)):
        for number, table in enumerate(tables):
            for h, index, value in nonzero(table):
                out.write(f"{word} {number} {h} {words(index)} {value}\n")


def sparse_rows(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns and the values of each row of a matrix that are not zero."""
    matrix = sp.csr_array(table if sp.issparse(table) else np.reshape(table, (-1, np.shape(table)[-1])))
    for row in range(matrix.shape[0]):
        inside = slice(matrix.indptr[row], matrix.indptr[row + 1])
        used = matrix.data[inside] != 0
        yield matrix.indices[inside][used], matrix.data[inside][used]


def write_joint(out: TextIO, game: JointGame, policy: JointPolicy, multipliers: Any, epsilon: Any, **more: Any) -> None:
    """Write the proof that a policy of a joint game is an ε-Nash policy."""
    write_joint_game(out, game, precision=more.pop("precision", None), ahead=more.pop("ahead", 0))
    write_claim(out, game.thresholds, policy, multipliers, epsilon, **more)


def write_infeasible(out: TextIO, game: JointGame, multipliers: Sequence[Any]) -> None:
    """Write the proof that no policy meets the thresholds of a joint game."""
    write_joint_game(out, game, claim="infeasible")
    for j, threshold in enumerate(game.thresholds):
        out.write(f"threshold {j} {text(float(threshold))}\nmultiplier {j} {text(multipliers[j])}\n")
    out.write("end\n")


def write_local(out: TextIO, game: LocalGame, policy: JointPolicy, multipliers: Any, epsilon: Any, **more: Any) -> None:
    """Write the proof that a policy of a local game is an ε-Nash policy."""
    dynamics = distinct([(id(agent.transition), id(agent.uses)) for agent in game.agents])
    payoffs = distinct([(d, id(agent.reward), id(agent.costs)) for d, agent in zip(dynamics, game.agents, strict=True)])
    movers = [game.agents[dynamics.index(d)] for d in range(max(dynamics) + 1)]
    earners = [game.agents[payoffs.index(p)] for p in range(max(payoffs) + 1)]
    curves: dict[tuple[float, ...], int] = {}
    for row in [*game.delay.reshape(-1, game.num_agents + 1), *game.load_costs.reshape(-1, game.num_agents + 1)]:
        if row.any():
            curves.setdefault(tuple(row), len(curves))
    out.write(f"cmpg-proof 1\nform local\nclaim nash\nstates {words(x.num_states for x in movers)}\n")
    out.write(f"actions {words(x.num_actions for x in movers)}\nagents {words(dynamics)}\npayoffs {words(payoffs)}\n")
    out.write(f"horizon {game.horizon}\nresources {game.num_resources}\ncurves {len(curves)}\n")
    out.write(f"constraints {game.num_constraints}\n")
    precision = more.pop("precision", None)
    if precision is not None:
        out.write(f"precision {precision}\n")
    for i, agent in enumerate(game.agents):
        for s, q in enumerate(exact_row(agent.initial)):
            if q:
                out.write(f"initial {i} {s} {text(q)}\n")
    for d, agent in enumerate(movers):
        for word, matrices in (("transition", agent.transition), ("uses", agent.uses)):
            for h, matrix in enumerate(matrices):
                step = "*" if len(matrices) == 1 else h
                for row, (columns, data) in enumerate(sparse_rows(matrix)):
                    where = f"{word} {d} {step} {row // agent.num_actions} {row % agent.num_actions}"
                    if word == "transition":
                        out.write(f"{where} {pairs(columns, data)}\n")
                    elif len(columns):
                        out.write(f"{where} {words(columns)}\n")
    for p, agent in enumerate(earners):
        for h, index, value in nonzero(agent.reward):
            out.write(f"reward {p} {h} {words(index)} {value}\n")
        for j, table in enumerate([] if agent.costs is None else agent.costs):
            for h, index, value in nonzero(table):
                out.write(f"cost {j} {p} {h} {words(index)} {value}\n")
    for curve, number in curves.items():
        out.write(f"curve {number} {words(map(text, curve))}\n")
    for word, tables in (("delay", [game.delay]), ("load-cost", game.load_costs)):
        for j, table in enumerate(tables):
            for h, rows in enumerate(table):
                for e, row in enumerate(rows):
                    if row.any():
                        number = "" if word == "delay" else f"{j} "
                        step = "*" if len(table) == 1 else h
                        out.write(f"{word} {number}{step} {e} {curves[tuple(row)]}\n")
    write_claim(out, game.thresholds, policy, multipliers, epsilon, **more)


def write_counting(
    out: TextIO, game: CountingGame, policy: JointPolicy, multipliers: Any, epsilon: Any, **more: Any
) -> None:
    """Write the proof that a policy of a counting game is an ε-Nash policy."""
    classes = game.classes
    grouping = f"largest {words(classes.boundaries)}" if isinstance(classes, LargestCount) else "every"
    out.write(f"cmpg-proof 1\nform counting\nclaim nash\nagents {game.num_agents}\nactions {game.num_actions[0]}\n")
    out.write(f"states {game.num_states}\nhorizon {game.horizon}\nclasses {grouping}\n")
    out.write(f"constraints {game.num_constraints}\n")
    precision = more.pop("precision", None)
    if precision is not None:
        out.write(f"precision {precision}\n")
    for s, q in enumerate(exact_row(game.initial)):
        out.write(f"initial {s} {text(q)}\n")
    for h, table in enumerate(game.transition):
        step = "*" if len(game.transition) == 1 else h
        for row, (columns, data) in enumerate(sparse_rows(table)):
            out.write(f"transition {step} {row // game.num_classes} {row % game.num_classes} {pairs(columns, data)}\n")
    rewards = np.array(game.rewards)
    rewards[..., 0] = 0
    tables = [("reward", rewards), ("class-reward", game.class_rewards)]
    tables += [(f"private {i}", table) for i, table in enumerate(game.private_rewards)]
    tables += [(f"cost {j}", table) for j, table in enumerate(game.costs)]
    for word, table in tables:
        for h, index, value in nonzero(table):
            out.write(f"{word} {h} {words(index)} {value}\n")
    write_claim(out, game.thresholds, policy, multipliers, epsilon, **more)


def distinct(keys: Sequence[Any]) -> list[int]:
    """Number the distinct keys in the order in which they appear."""
    known: dict[Any, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]
