"""Is a game a Markov potential game? Proven by structure, tested at random, or refuted by a witness.

Take agents i and j, two policies of each, and fix the others. Around the four corners i, j, i, j move in turn; the
residual of that 4-cycle is the sum of what the movers gain,
    (V_j − V_i)(old, old) − (V_j − V_i)(new, old) + (V_j − V_i)(new, new) − (V_j − V_i)(old, new).
A potential exists exactly when the residual of every 4-cycle is zero; one that is not zero proves that there is none.

Guarantee.
- PROVEN: `structure.py`; or the game's own form says so (`potential_proof`).
- REFUTED: the residual of the witness exceeds `FourCycle.rounding`, a rigorous bound on the rounding error of its
  computation; 0 if it was computed in rationals.
- REFUTED, too, if the test modulo random primes finds a loop that is not zero, which is certain; the witness is then a
  4-cycle in rationals, or there is none, where the game is too large for them.
- TESTED: no 4-cycle was found to differ from zero. Modulo random primes (`modular.py`) the answer is wrong with at most
  the stated probability, for all pairs of agents together; in floating point alone no probability is stated.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from cmpg.arrays import UNIT_ROUNDOFF, FloatArray, generator
from cmpg.cmdp.evaluation import SMALLEST, evaluate
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError, explains_keywords
from cmpg.games.claims import claim_of
from cmpg.games.game import Game, Names, Position, PotentialKind, PotentialProof
from cmpg.games.joint.game import JointGame, joint_or_none
from cmpg.games.potential.modular import loop_test
from cmpg.games.potential.structure import MAX_EXACT_WORK
from cmpg.games.rationals import is_exact
from cmpg.policy import JointPolicy
from cmpg.proof.exact import TooLarge, exact_values
from cmpg.summaries import Summary, Table, fields_line, fixed, html, line, text

MAX_EXACT_ENTRIES = 20_000
"""Games with more entries of the transition, over all steps, are not evaluated in rationals."""

BATCH = 16
"""4-cycles are tried in batches of this size; the largest of a batch is reported."""


class Verdict(Enum):
    """How the question ended.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game, spectrum
    >>> [check_potential(game, rng=0).verdict.name for game in (spectrum(), congestion_game(num_agents=2))]
    ['PROVEN', 'REFUTED']
    """

    PROVEN = "it is a Markov potential game"
    TESTED = "nothing speaks against a potential"
    REFUTED = "it is not a Markov potential game"


@dataclass(frozen=True, eq=False)
class FourCycle:
    """Two agents, the policy that all play, and the other policy of each of the two; and what the gains add up to.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game
    >>> witness = check_potential(congestion_game(num_agents=2), rng=0).witness
    >>> witness.agents, bool(witness.is_proof)
    ((0, 1), True)
    """

    agents: tuple[int, int]
    policy: JointPolicy
    deviations: tuple[FloatArray, FloatArray]  # [H, S_i, A_i] and [H, S_j, A_j]
    residual: float
    rounding: float  # |residual| above this is a proof that no potential exists
    values: FloatArray | None = None  # [4, 2]: what the two get at the corners, where it was computed

    @property
    def corners(self) -> tuple[JointPolicy, JointPolicy, JointPolicy, JointPolicy]:
        """The four joint policies, in the order in which i, j, i, j move."""
        (i, j), (new_i, new_j) = self.agents, self.deviations
        moved = self.policy.replace(i, new_i)
        return self.policy, moved, moved.replace(j, new_j), self.policy.replace(j, new_j)

    @property
    def is_proof(self) -> bool:
        """Whether the residual cannot be rounding."""
        return abs(self.residual) > self.rounding

    __repr__ = fields_line

    def description(self, names: Names) -> tuple[str | Table, ...]:
        """Return what the two gain around the cycle, in a sentence and a table of the corners."""
        one, other = (names.agent(agent) for agent in self.agents)
        rounding = f"rounding explains at most {self.rounding:.1g}" if self.rounding else "in exact numbers"
        gained = f"their gains add up to {_size(self.residual):.6g}"
        total = f"{one} and {other} move in turn, and around the cycle {gained}"
        sentence = f"witness: {total}, not 0 ({rounding})"
        if self.values is None:
            return (sentence,)
        corners = ("start", f"{one} moved", "both moved", f"{other} moved")
        rows = tuple((corner, fixed(a), fixed(b)) for corner, (a, b) in zip(corners, self.values, strict=True))
        return sentence, Table(("corner", f"value of {one}", f"value of {other}"), rows)


@dataclass(frozen=True, eq=False)
class PotentialCheck:
    """The verdict, in a sentence, with what stands behind it.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game
    >>> check = check_potential(congestion_game(num_agents=2), rng=0)
    >>> check.verdict.name, bool(abs(check.residual) > check.witness.rounding)
    ('REFUTED', True)
    """

    verdict: Verdict
    reason: str
    residual: float  # proven: no 4-cycle exceeds it; tested: the largest found; refuted: the witness's
    error_probability: float | None = None  # of a wrong TESTED; None where none can be stated
    witness: FourCycle | None = None  # of REFUTED
    names: Names = field(default_factory=Names)

    def summary(self) -> Summary:
        """Return what to show: the verdict, why, and the witness where there is one."""
        sentence = f"{self.verdict.value}. {self.reason}{self.residual_note}"
        parts = () if self.witness is None else self.witness.description(self.names)[1:]  # the reason says the sentence
        return Summary(self.verdict.name, sentence, parts, good=self.verdict is not Verdict.REFUTED)

    @property
    def residual_note(self) -> str:
        """What is proved of the tables as they are stored, where they are floats."""
        if self.verdict is not Verdict.PROVEN or not self.residual:
            return ""
        return f" Rounding of the tables apart: no 4-cycle adds up to more than {float(self.residual):.2g}."

    __repr__, __str__, _repr_html_ = line, text, html


@explains_keywords()
def check_potential(
    game: Game, *, rng: np.random.Generator | int = 0, trials: int = 3, cycles: int = 64
) -> PotentialCheck:
    """Say whether a game has a potential, and how that is known.

    Parameters
    ----------
    game
        Any game. What `potential_proof` says is believed; a joint game without one is tested exactly, and of other
        games 4-cycles are evaluated in floating point.
    rng
        Draws policies and primes; a generator or a seed.
    trials
        Independent tests modulo a prime; the stated probability falls with their number as its exponent.
    cycles
        How many 4-cycles are evaluated in the search for a witness.

    Examples
    --------
    >>> from cmpg.scenarios import spectrum
    >>> print(check_potential(spectrum(), rng=np.random.default_rng(0)))
    PROVEN: it is a Markov potential game. C2: no action moves the state, and every stage is an exact potential game...
    """
    if trials < 1 or cycles < 1:
        raise GameError(f"trials is {trials} and cycles is {cycles}; both must be at least 1.")
    rng = generator(rng)
    proof = _proof(game)
    if proof is not None:
        return PotentialCheck(Verdict.PROVEN, proof.reason, proof.residual, names=game.names)
    joint = None if game.horizon is None else joint_or_none(game)
    best = _search(game, rng=rng, cycles=cycles if joint is None else min(cycles, BATCH))
    if best.is_proof:
        return _refuted(best, game.names)
    if joint is not None:
        test = loop_test(joint, rng=rng, trials=trials)
        if test.passed:
            return _tested_exactly(best, test.trials, test.error_probability)
        pairs = game.num_agents * (game.num_agents - 1) // 2
        best = max(best, _search(game, rng=rng, cycles=max(cycles, 2 * pairs)), key=_excess)
        return _refuted(best, game.names) if best.is_proof else _refuted_exactly(joint, best, rng)
    if not best.is_proof and is_exact(game):
        best = in_exact_numbers(game, best) or best
    return _refuted(best, game.names) if best.is_proof else _tested_in_floats(best, cycles)


def recheck(game: Game, witness: FourCycle) -> float:
    """Compute the residual of a witness again, from the values at its four corners.

    On `game.exact()` the answer is a Fraction, and any that is not zero is a proof.

    Examples
    --------
    >>> from cmpg.scenarios import congestion_game
    >>> game = congestion_game(num_agents=2)
    >>> witness = check_potential(game, rng=0).witness
    >>> bool(abs(recheck(game, witness) - witness.residual) <= witness.rounding)
    True
    """
    if is_exact(game):
        exact = in_exact_numbers(game, witness)
        if exact is None:
            raise GameError("the witness is too large for exact arithmetic; check it on a game in floats.")
        return exact.residual
    return float(_residual(witness.agents, [game.at(corner).values for corner in witness.corners]))


def in_exact_numbers(game: Game, cycle: FourCycle) -> FourCycle | None:
    """Return a 4-cycle with its residual in rationals, by the kernel; None where that takes too long."""
    none = np.zeros((game.num_agents, len(game.thresholds)))
    try:
        values = [exact_values(claim_of(game, corner, none), max_work=MAX_EXACT_WORK) for corner in cycle.corners]
    except TooLarge:
        return None
    shown = np.array([[float(each[agent]) for agent in cycle.agents] for each in values])
    return replace(cycle, residual=_residual(cycle.agents, values), rounding=0.0, values=shown)


def _residual(agents: tuple[int, int], values: Sequence[Any]) -> Any:
    """Return what the movers i, j, i, j gain in all, from what all agents get at the corners."""
    i, j = agents
    return sum(values[(t + 1) % 4][mover] - values[t][mover] for t, mover in enumerate((i, j, i, j)))


def _proof(game: Game) -> PotentialProof | None:
    proof = game.potential_proof()
    if proof is None and game.num_agents == 1:
        return PotentialProof(PotentialKind.ONE_AGENT, "there is one agent, whose value is a potential.")
    return proof


def _search(game: Game, *, rng: np.random.Generator, cycles: int) -> FourCycle:
    """Return the 4-cycle of largest excess over rounding in the first batch that holds a proof, or of all."""
    pairs = _pairs(game.num_agents, rng)
    best = _four_cycle(game, next(pairs), deterministic=False, rng=rng)
    for number in range(1, cycles):
        if number % BATCH == 0 and best.is_proof:
            break
        best = max(best, _four_cycle(game, next(pairs), deterministic=number % 2 == 1, rng=rng), key=_excess)
    return best


def _excess(cycle: FourCycle) -> float:
    return abs(cycle.residual) - cycle.rounding


def _pairs(num_agents: int, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield all pairs of agents in random order, over and over."""
    pairs = list(combinations(range(num_agents), 2))
    while True:
        for index in rng.permutation(len(pairs)):
            yield pairs[index]


def _four_cycle(game: Game, pair: tuple[int, int], *, deterministic: bool, rng: np.random.Generator) -> FourCycle:
    """Draw a 4-cycle of a pair and evaluate it."""
    draw = _deterministic_policy if deterministic else _random_policy
    old, new = draw(game, rng), draw(game, rng)
    return four_cycle(game, pair, old, (new[pair[0]], new[pair[1]]))


def four_cycle(
    game: Game, agents: tuple[int, int], old: JointPolicy, moves: tuple[FloatArray, FloatArray]
) -> FourCycle:
    """Evaluate a 4-cycle, from what two agents get at its corners.

    Parameters
    ----------
    game
        Any game.
    agents
        i and j.
    old
        What all play at first.
    moves : [H, S_i, A_i] and [H, S_j, A_j]
        The other policies of the two.
    """
    i, j = agents
    start, new_i, new_j = game.at(old), game.at(old.replace(i, moves[0])), game.at(old.replace(j, moves[1]))
    # Four induced CMDPs, two policies in each: who moves where, and the corners before and after.
    walk = [(start, i, new_i, 1), (new_i, j, new_j, 1), (new_j, i, new_i, -1), (start, j, new_j, -1)]
    corners = [(0, 1), (1, 2), (3, 2), (0, 3)]
    residual, rounding = 0.0, 0.0
    values = np.zeros((4, 2))
    for (position, mover, moved, sign), (before, after) in zip(walk, corners, strict=True):
        cmdp = position.induced_cmdp(mover)
        new, now = _value(cmdp, moved, mover), _value(cmdp, start, mover)
        values[[before, after], agents.index(mover)] = now, new
        residual += sign * (new - now)
        rounding += 2 * _rounding(cmdp, float(game.reward_ranges[mover]))
    return FourCycle(agents, policy=old, deviations=moves, residual=residual, rounding=rounding, values=values)


def _random_policy(game: Game, rng: np.random.Generator) -> JointPolicy:
    return JointPolicy.random(game.policy_shapes, rng=rng)


def _deterministic_policy(game: Game, rng: np.random.Generator) -> JointPolicy:
    shapes = game.policy_shapes
    return JointPolicy(tuple(np.eye(shape[2])[rng.integers(shape[2], size=shape[:2])] for shape in shapes))


def _value(cmdp: CMDP, position: Position, agent: int) -> float:
    return evaluate(cmdp, position.policy[agent]).value


def _rounding(cmdp: CMDP, reward_range: float) -> float:
    """Bound the rounding error of one value, and of adding it up.

    `CMDP.rounding` is relative to the sum of |r| before averaging. An induced reward is an average of rewards, so no
    |r_h| exceeds max |r̃_h| by more than the range of r_h.
    """
    sizes = np.abs(cmdp.reward).max(axis=(1, 2))
    weight = 1 / (1 - cmdp.discount) if cmdp.discount is not None else cmdp.num_steps / len(sizes)
    relative = cmdp.rounding + 16 * UNIT_ROUNDOFF
    # Below the least normal number a rounding is not relative: each may take 2^−1074.
    return relative * (float(sizes.sum()) * weight + reward_range) + SMALLEST * (relative / UNIT_ROUNDOFF)


def _size(residual: float) -> float:
    """Return the absolute value of a float or Fraction as a float; infinity where it is beyond all of them."""
    return float(abs(residual)) if abs(residual) <= sys.float_info.max else math.inf


def _refuted(witness: FourCycle, names: Names) -> PotentialCheck:
    one, other = (names.agent(agent) for agent in witness.agents)
    reason = (
        f"Around a 4-cycle of policies of {one} and {other} the gains add up to {_size(witness.residual):.6g} "
        f"instead of 0; rounding explains at most {witness.rounding:.1g}."
    )
    return PotentialCheck(Verdict.REFUTED, reason, witness.residual, witness=witness, names=names)


def _refuted_exactly(game: JointGame, largest: FourCycle, rng: np.random.Generator) -> PotentialCheck:
    """Say that there is no potential where floats cannot show it, with a 4-cycle in rationals if one is found."""
    entries = game.num_steps * game.num_states**2 * prod(game.num_actions)
    if entries <= MAX_EXACT_ENTRIES:
        pairs = _pairs(game.num_agents, rng)
        for _ in range(BATCH):
            cycle = in_exact_numbers(game, _four_cycle(game, next(pairs), deterministic=True, rng=rng))
            if cycle is not None and cycle.is_proof:
                return _refuted(cycle, game.names)
    reason = (
        "In exact arithmetic modulo a random prime, the gains around a loop of policies do not add up to 0, which no "
        f"game with a potential allows; they are too small for floating point, where {BATCH} and more random 4-cycles "
        f"added up to at most {float(abs(largest.residual)):.1g}."
    )
    return PotentialCheck(Verdict.REFUTED, reason, largest.residual, names=game.names)


def _tested_exactly(largest: FourCycle, trials: int, probability: float) -> PotentialCheck:
    reason = (
        f"In exact arithmetic modulo random primes, the 4-cycles of all agents vanished in {trials} random trials; "
        f"were there no potential, that would happen with probability at most {probability:.1g}."
    )
    return PotentialCheck(Verdict.TESTED, reason, largest.residual, error_probability=probability)


def _tested_in_floats(largest: FourCycle, cycles: int) -> PotentialCheck:
    reason = (
        f"In floating point, {cycles} random 4-cycles added up to at most {float(abs(largest.residual)):.1g}, which "
        f"rounding can explain; no error probability can be stated."
    )
    return PotentialCheck(Verdict.TESTED, reason, largest.residual)
