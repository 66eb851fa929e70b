"""A random test, in exact arithmetic modulo a prime, that every 4-cycle of a joint game vanishes.

The loop. Give every agent an old and a new policy. Agents 0, 1, …, n − 1 move in turn to their new policies, and then
in turn back to the old ones. The gains of the movers around that loop sum to
    F(old, new) = Σ_t V^{r_{t−1} − r_t}(position before move t),   agents counted modulo n,
one evaluation per position. F is a sum of 4-cycles; and if all agents but i and j have the same old and new policy, F
is the 4-cycle of i and j. So F is the zero polynomial in the entries of the policies exactly when all 4-cycles of all
pairs vanish.

The reading. Each number of the game is read as the simplest rational within `READING_ERROR` of it (0.1 is 1/10), so
that the rounding of a table does not refute a game that was meant to have a potential; the largest probability of each
row is read as what the others leave to one. Fractions are read as they are.

Guarantee. F has degree at most n·H. Cleared of denominators its coefficients are integers of at most B bits
(`_Tables.coefficient_bits`), so a non-zero one is divisible by at most B/30 of the more than 5·10⁷ primes between 2³⁰
and 2³¹. By the lemma of Schwartz and Zippel, one trial with a random prime and uniform policies finds a non-zero F to
be zero with probability at most n·H/2³⁰ + B/(30·5·10⁷); trials are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cmpg.arrays import FloatArray, IntArray, at_step
from cmpg.cmdp.evaluation import backward_induction
from cmpg.games.joint.game import JointGame
from cmpg.games.potential.structure import READING_ERROR
from cmpg.games.rationals import as_given

PRIME_BITS = 30
NUM_PRIMES = 5 * 10**7
"""There are 50,697,537 primes between 2³⁰ and 2³¹; the rest leaves room for those that divide a denominator."""

Residues = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class LoopTest:
    """Whether F was zero in every trial, and the probability of that if it is not the zero polynomial."""

    passed: bool
    trials: int
    error_probability: float


def loop_test(game: JointGame, *, rng: np.random.Generator, trials: int) -> LoopTest:
    """Evaluate F of a game with a finite horizon at random policies modulo random primes."""
    tables = _read(game)
    degree = game.num_agents * game.num_steps
    chance = degree / 2**PRIME_BITS + tables.coefficient_bits / (PRIME_BITS * NUM_PRIMES)
    passed = True
    for _ in range(trials):
        prime = _random_prime(rng, tables)
        if _loop_sum(tables, prime, rng):
            passed = False
            break
    return LoopTest(passed=passed, trials=trials, error_probability=min(1.0, chance) ** trials)


@dataclass(frozen=True, eq=False)
class _Rationals:
    """A table whose entries are given by their index in a list of different rationals."""

    different: list[Fraction]
    index: IntArray

    def modulo(self, prime: int) -> Residues:
        """Return the entries as residues."""
        residues = [each.numerator * pow(each.denominator, -1, prime) % prime for each in self.different]
        return np.array(residues, dtype=np.uint64)[self.index]

    @property
    def denominator_bits(self) -> int:
        """How long the least common denominator can be."""
        return sum(denominator.bit_length() for denominator in {each.denominator for each in self.different})

    @property
    def size(self) -> Fraction:
        """The largest absolute value."""
        return max(abs(each) for each in self.different)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of probabilities, stored sparsely; the largest entry of a row is what the others leave to one."""

    starts: IntArray  # [rows]
    columns: IntArray  # [entries]
    row: IntArray  # [entries]
    largest: IntArray  # [rows], positions among the entries
    entries: _Rationals

    def modulo(self, prime: int) -> Residues:
        """Return the entries as residues; every row sums to one."""
        modulus = np.uint64(prime)
        residues = self.entries.modulo(prime)
        residues[self.largest] = 0
        others = np.add.reduceat(residues, self.starts) % modulus
        residues[self.largest] = (modulus + np.uint64(1) - others) % modulus
        return residues


@dataclass(frozen=True, eq=False)
class _Tables:
    """A game in rationals."""

    policy_shapes: tuple[tuple[int, int, int], ...]
    rewards: _Rationals  # [n, H or 1, S, ΠA]
    transition: tuple[_Rows, ...]  # one per step, or one for all
    initial: _Rows  # one row

    @property
    def coefficient_bits(self) -> int:
        """How long a coefficient of F can be, cleared of denominators.

        The absolute coefficients of one value sum to at most H·max|r|·(ΠA)^H in the entries of the policies, and to
        (ΠA)^H times that in the free ones, all but the last of each row; F adds up 4n of them.
        """
        steps = self.policy_shapes[0][0]
        joint_actions = math.prod(shape[2] for shape in self.policy_shapes)
        largest = 4 * len(self.policy_shapes) * steps * math.ceil(self.rewards.size) * joint_actions ** (2 * steps)
        moves = [rows.entries.denominator_bits for rows in self.transition[: max(steps - 1, 1)]]
        per_loop = moves[0] * (steps - 1) if len(self.transition) == 1 else sum(moves)
        denominators = self.rewards.denominator_bits + self.initial.entries.denominator_bits + per_loop
        return int(largest).bit_length() + denominators


def _read(game: JointGame) -> _Tables:
    joint_actions = math.prod(game.num_actions)
    return _Tables(
        policy_shapes=game.policy_shapes,
        rewards=_rationals(as_given(game, "rewards").reshape(*game.rewards.shape[:3], joint_actions)),
        transition=tuple(_rows(game, step) for step in range(len(game.transition))),
        initial=_dense_rows(as_given(game, "initial")[None]),
    )


def _rows(game: JointGame, step: int) -> _Rows:
    matrix = as_given(game, "transition")[step]
    if not game.is_sparse:
        return _dense_rows(matrix.reshape(-1, game.num_states))
    coordinates = matrix.tocoo()
    order = np.lexsort((coordinates.col, coordinates.row))
    return _sparse_rows(coordinates.data[order], coordinates.row[order], coordinates.col[order])


def _dense_rows(matrix: FloatArray) -> _Rows:
    row, column = np.nonzero(matrix)
    return _sparse_rows(matrix[row, column], row, column)


def _sparse_rows(data: FloatArray, row: IntArray, column: IntArray) -> _Rows:
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    by_size = np.lexsort((data.astype(np.float64), row))
    largest = by_size[np.append(starts[1:], len(row)) - 1]
    return _Rows(starts=starts, columns=column, row=row, largest=largest, entries=_rationals(data))


def _rationals(table: FloatArray) -> _Rationals:
    different, index = np.unique(table, return_inverse=True)
    return _Rationals(different=[simplest_rational(each) for each in different], index=index.reshape(table.shape))


def simplest_rational(value: float | Fraction) -> Fraction:
    """Return the rational of least denominator within `READING_ERROR` of a float; a Fraction or an integer is itself.

    Examples
    --------
    >>> simplest_rational(0.1), simplest_rational(1 / 3), simplest_rational(-2.0)
    (Fraction(1, 10), Fraction(1, 3), Fraction(-2, 1))
    """
    exact = Fraction(value)
    if isinstance(value, Fraction) or exact.denominator == 1:
        return exact
    slack = abs(exact) * Fraction(READING_ERROR)
    simplest = _simplest_between(abs(exact) - slack, abs(exact) + slack)
    return simplest if exact > 0 else -simplest


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Walk down the common part of the continued fractions of 0 < low < high."""
    a, b, c, d = low.numerator, low.denominator, high.numerator, high.denominator
    numerator, denominator, last_numerator, last_denominator = 1, 0, 0, 1
    while True:
        whole, rest = divmod(a, b)
        if rest == 0 or whole < c // d:
            digit = whole if rest == 0 else whole + 1
            return Fraction(digit * numerator + last_numerator, digit * denominator + last_denominator)
        numerator, last_numerator = whole * numerator + last_numerator, numerator
        denominator, last_denominator = whole * denominator + last_denominator, denominator
        a, b, c, d = d, c - whole * d, b, rest


def _random_prime(rng: np.random.Generator, tables: _Tables) -> int:
    """Draw uniformly among the primes between 2³⁰ and 2³¹ that divide no denominator."""
    tables_read = (tables.rewards, tables.initial.entries, *(rows.entries for rows in tables.transition))
    while True:
        candidate = int(rng.integers(2**29, 2**30)) * 2 + 1
        if _is_prime(candidate) and all(
            each.denominator % candidate for some in tables_read for each in some.different
        ):
            return candidate


def _is_prime(odd: int) -> bool:
    """Miller and Rabin's test, which with the bases 2, 3, 5 and 7 is exact from 11 to 3,215,031,750."""
    shift = ((odd - 1) & -(odd - 1)).bit_length() - 1
    for base in (2, 3, 5, 7):
        power = pow(base, (odd - 1) >> shift, odd)
        if power in (1, odd - 1):
            continue
        if not any((power := power * power % odd) == odd - 1 for _ in range(shift - 1)):
            return False
    return True


def _loop_sum(tables: _Tables, prime: int, rng: np.random.Generator) -> int:
    """Return F at random policies, modulo the prime."""
    agents = len(tables.policy_shapes)
    old, new = ([_random_rows(shape, prime, rng) for shape in tables.policy_shapes] for _ in range(2))
    rewards, modulus = tables.rewards.modulo(prime), np.uint64(prime)
    flows = [rows.modulo(prime) for rows in tables.transition]
    playing, total = list(old), 0
    for move in range(2 * agents):
        mover = move % agents
        difference = (rewards[mover - 1] + (modulus - rewards[mover])) % modulus
        total += _value(tables, playing, difference=difference, flows=flows, prime=prime)
        playing[mover] = new[mover] if move < agents else old[mover]
    return total % prime


def _random_rows(shape: tuple[int, int, int], prime: int, rng: np.random.Generator) -> Residues:
    free = rng.integers(0, prime, size=(*shape[:2], shape[2] - 1), dtype=np.uint64)
    modulus = np.uint64(prime)
    # Rows sum to one modulo the prime; the free entries are uniform, as Schwartz and Zippel require.
    last = (modulus + np.uint64(1) - free.sum(axis=-1, keepdims=True, dtype=np.uint64) % modulus) % modulus
    return np.concatenate([free, last], axis=-1)


def _value(tables: _Tables, playing: list[Residues], *, difference: Residues, flows: list[Residues], prime: int) -> int:
    """Return the value [mod prime] of a reward [H or 1, S, ΠA], by backward evaluation."""
    modulus = np.uint64(prime)
    steps, states, _ = tables.policy_shapes[0]
    stages = ((h, at_step(difference, h).ravel().copy()) for h in reversed(range(steps)))

    def add_future(step: int, worth: Residues, to_go: Residues) -> None:
        which = 0 if len(flows) == 1 else step
        rows = tables.transition[which]
        worth += np.add.reduceat(flows[which] * to_go[rows.columns] % modulus, rows.starts) % modulus

    def average(step: int, worth: Residues) -> Residues:
        weights = playing[0][step]
        for policy in playing[1:]:
            weights = (weights[:, :, None] * policy[step][:, None, :] % modulus).reshape(states, -1)
        paid = weights * (worth % modulus).reshape(states, -1) % modulus
        return np.asarray(paid.sum(axis=1, dtype=np.uint64) % modulus)

    to_go = backward_induction(stages, add_future, average)
    start = tables.initial.modulo(prime) * to_go[tables.initial.columns] % modulus
    return int(start.sum(dtype=np.uint64)) % prime
