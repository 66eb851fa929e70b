"""Arrays of numbers with a bound on the error of each entry.

A `Ball` (mid, rad) stands for real numbers x with |x − mid| ≤ rad, entry by entry. Every operation here returns a ball
that holds the exact result for all numbers that its operands hold. With u = 2^−53 and γ_m = m·u / (1 − m·u):

- fl(a + b) = (a + b)(1 + δ), |δ| ≤ u, without exception: sums of subnormal numbers are exact.
- fl(a·b) = a·b·(1 + δ) + η, |η| ≤ 2^−1075, and η = 0 unless the product is below 2^−1022.
- A sum of m products in any order, with or without fused operations, is off by at most γ_m·Σ|a|·|b| + m·2^−1074.
  Products with zero are exact and do not count: m is the largest number of non-zero weights in a row.
- A row of probabilities stands for the row divided by its exact sum. `Rows` divides by the sum in floats, after which
  each entry has a relative error of at most γ_{m+2}; a row with a single entry becomes exactly one.

The radius is itself computed in floats, from non-negative terms in chains of fewer than 2^20 operations, so it is at
most a factor 1 − 2^−32 too small; `_SAFETY` makes up for that. Below 2^−900 none of these relative bounds is relied on:
wherever a non-zero factor, or the product of the least ones, is smaller, 2·m·2^−1074 times the largest number that is
weighed is added. A result that is not finite proves nothing: code that compares a
bound asks whether it is at most something, which is false for nan and for infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

UNIT = 2.0**-53
TINY = 2.0**-1074
NORMAL = 2.0**-900
"""Numbers of at least this size, and their products with `UNIT`, are held with all their digits."""

_SAFETY = 1.0 + 2.0**-30


def gamma(count: Any) -> Any:
    """Return γ_count, rounded up."""
    return count * UNIT * (1 + 2.0**-20)


@dataclass(frozen=True, eq=False)
class Ball:
    """Real numbers between mid − rad and mid + rad."""

    mid: Array
    rad: Array

    @property
    def upper(self) -> Array:
        """Floats that are at least every number in the ball."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid + self.rad, np.inf))

    @property
    def lower(self) -> Array:
        """Floats that are at most every number in the ball."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid - self.rad, -np.inf))

    def __add__(self, other: Ball) -> Ball:
        mid = self.mid + other.mid
        # A sum with an exact zero is exact.
        off = UNIT * np.abs(mid) * ((self.mid != 0) & (other.mid != 0))
        return Ball(mid, (self.rad + other.rad + off) * _SAFETY)

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __sub__(self, other: Ball) -> Ball:
        return self + -other

    def __mul__(self, other: Ball) -> Ball:
        mid, size, more = self.mid * other.mid, np.abs(self.mid), np.abs(other.mid)
        plain = (size == 1) | (more == 1) | (mid == 0)  # such a product is exact, unless zero stands for underflow
        rad = np.where(plain, 0.0, UNIT * np.abs(mid))
        # |(x + dx)(y + dy) − xy| ≤ |x||dy| + |dx||dy| + |y||dx|, of which the first two are added at once.
        if other.rad.any():
            rad = rad + (size + self.rad) * other.rad
        if self.rad.any():
            rad = rad + more * self.rad
        return Ball(mid, rad * _SAFETY + _hidden(1, least(self), other))

    def __getitem__(self, index: Any) -> Ball:
        return Ball(self.mid[index], self.rad[index])

    def reshape(self, *shape: int) -> Ball:
        """Return the same numbers in another shape."""
        return Ball(self.mid.reshape(*shape), self.rad.reshape(*shape))

    def moveaxis(self, source: int, target: int) -> Ball:
        """Return the same numbers with an axis elsewhere."""
        return Ball(np.moveaxis(self.mid, source, target), np.moveaxis(self.rad, source, target))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Ball:
        """Return sums along axes."""
        mid, sizes = self.mid.sum(axis=axis), np.abs(self.mid)
        terms = np.asarray(np.count_nonzero(self.mid, axis=axis))  # n numbers take n − 1 additions; zeros do not round
        hidden = TINY * (least(sizes) < NORMAL)
        off = np.where(terms > 1, gamma(terms - 1) * sizes.sum(axis=axis) + terms * hidden, 0.0)
        return Ball(mid, np.asarray((self.rad.sum(axis=axis) + off) * _SAFETY))


def exactly(values: Any) -> Ball:
    """Return floats as they stand."""
    mid = np.asarray(values, dtype=np.float64)
    return Ball(mid, np.zeros_like(mid))


def stacked(balls: Any, axis: int = 0) -> Ball:
    """Return balls of one shape along a new axis."""
    return Ball(np.stack([ball.mid for ball in balls], axis=axis), np.stack([ball.rad for ball in balls], axis=axis))


def split(ball: Ball) -> list[Ball]:
    """Return what stands along the first axis, each by itself."""
    return [Ball(mid, rad) for mid, rad in zip(ball.mid, ball.rad, strict=True)]


def joined(balls: Any) -> Ball:
    """Return balls one after the other along their first axis."""
    return Ball(np.concatenate([ball.mid for ball in balls]), np.concatenate([ball.rad for ball in balls]))


def gathered(terms: Ball, labels: Array, size: int) -> Ball:
    """Return the sums of terms [t] that have the same label [t]: [size]."""
    rad, many = terms.rad, np.bincount(labels[terms.mid != 0], minlength=size)[labels]
    if (many > 1).any():
        hidden = TINY * (least(terms.mid) < NORMAL)
        rad = rad + np.where(many > 1, gamma(many - 1) * np.abs(terms.mid) + hidden, 0.0)
    sums = [np.bincount(labels, weights=table, minlength=size) for table in (terms.mid, rad)]
    return Ball(sums[0], sums[1] * _SAFETY)


def probabilities(rows: Array, starts: Array) -> Ball:
    """Return rows of probabilities that follow each other, and begin at `starts`, each divided by its sum."""
    sums, counts = np.add.reduceat(rows, starts), np.add.reduceat(rows != 0, starts, dtype=np.int64)
    lengths = np.diff(np.append(starts, len(rows)))
    table = rows / np.repeat(sums, lengths)
    mixed = np.repeat(counts > 1, lengths) & (rows != 0)
    # m − 1 additions and one division; two more are ample for what is of second order.
    off = gamma(int(counts.max()) + 2) * table + TINY * (least(table) < NORMAL)
    return Ball(table, np.where(mixed, off * _SAFETY, 0.0))


def difference(high: Array, low: Array) -> Ball:
    """Return high − low of exact floats; where they are equal, or one is zero, it is exact."""
    return exactly(high) - exactly(low)


def least(table: Any) -> float:
    """Return the least positive size of anything in an array, or in a ball."""
    if isinstance(table, Ball):
        return min(least(table.mid), least(table.rad)) if table.rad.any() else least(table.mid)
    sizes = np.abs(table)
    smallest = float(sizes.min(initial=np.inf))
    return smallest if smallest != 0 else float(sizes.min(where=sizes != 0, initial=np.inf))


def _hidden(count: int, weight: float, values: Ball) -> float:
    """Return what underflow can hide in sums of so many products of values and of weights of at least this size."""
    size = least(values)
    if size == np.inf or weight == np.inf or min(weight * size, weight, size) >= NORMAL:
        return 0.0
    return 2 * count * TINY * (1 + float(np.max(np.abs(values.mid) + values.rad, initial=0.0)))


class Csr(NamedTuple):
    """A sparse matrix: row r has data[indptr[r] : indptr[r + 1]] in the columns indices[indptr[r] : indptr[r + 1]]."""

    indptr: Array
    indices: Array
    data: Array
    columns: int


def num_rows(matrix: Array | Csr) -> int:
    """Return how many rows a matrix has, dense or sparse."""
    return len(matrix.indptr) - 1 if isinstance(matrix, Csr) else len(matrix)


def dense(matrix: Array | Csr) -> Array:
    """Return a matrix of floats or Fractions with all its entries."""
    if not isinstance(matrix, Csr):
        return matrix
    table = np.full((num_rows(matrix), matrix.columns), Fraction(0) if matrix.data.dtype == object else 0.0)
    table[np.repeat(np.arange(len(table)), np.diff(matrix.indptr)), matrix.indices] = matrix.data
    return table


class Rows:
    """A matrix of probabilities whose rows are divided by their sums, or of zeros and ones that is used as it is."""

    def __init__(self, matrix: Array | Csr, *, divided: bool = True) -> None:
        """Read a matrix, dense [R, C] or sparse."""
        self.dense: Array | None = None
        if isinstance(matrix, Csr):
            kept = matrix.data != 0
            counts = np.diff(np.concatenate([[0], np.cumsum(kept)])[matrix.indptr])
            self.columns, data = matrix.columns, matrix.data[kept]
            self.indices = matrix.indices[kept]
        else:
            rows, self.indices = np.nonzero(matrix)
            counts, self.columns = np.bincount(rows, minlength=len(matrix)), matrix.shape[1]
            data = matrix[rows, self.indices]
        self.counts, self.row = counts, np.repeat(np.arange(len(counts)), counts)
        self.most = int(counts.max(initial=0))
        if divided:
            sums = np.bincount(self.row, weights=data, minlength=len(counts))
            data = data / sums[self.row]
        self.data, self.least = data, least(data)
        self.plain = bool((data == 1).all())  # sums of numbers as they stand
        self.error = gamma(self.most + 2) if divided and self.most > 1 else 0.0
        if not isinstance(matrix, Csr) and len(data) * 4 > matrix.size:
            self.dense = np.zeros(matrix.shape)
            self.dense[self.row, self.indices] = data
        self.single = self.plain and bool((counts == 1).all())
        self._starts = np.cumsum(counts) - counts
        self.column_counts = np.bincount(self.indices, minlength=self.columns)

    def mean(self, ahead: Ball) -> Ball:
        """Return Σ_c row[c]·ahead[c] of balls [C] or [C, m]: [R] or [R, m]."""
        if self.single:
            return ahead[self.indices]
        return self._weigh(self._of_rows, ahead, self.most)

    def push(self, mass: Ball, rows: Array | None = None) -> Ball:
        """Return Σ_r mass[r]·row_r[c] of balls [R] or [R, m]: [C] or [C, m]; of some rows alone, given by number."""
        most = int(self.column_counts.max(initial=0))
        if rows is None:
            return self._weigh(self._of_columns, mass, most)
        counts = self.counts[rows]
        begins = np.cumsum(counts) - counts
        entries = np.repeat(self._starts[rows] - begins, counts) + np.arange(counts.sum())
        source = np.repeat(np.arange(len(rows)), counts)
        targets, weights = self.indices[entries], self.data[entries]
        return self._weigh(lambda values: _sums(values, source, weights, targets, self.columns), mass, most)

    def _weigh(self, sums: Callable[[Array], Array], values: Ball, most: int) -> Ball:
        rounding = self.error + (0.0 if self.plain and most < 2 else gamma(most))
        return _weighed(sums, values, rounding, most * (not self.plain), self.least)

    def lowest(self, ahead: Array) -> Array:
        """Return the least of some numbers [C] over the entries of each row: [R]; comparisons do not round."""
        return np.minimum.reduceat(ahead[self.indices], self._starts)

    def highest(self, ahead: Array) -> Array:
        """Return the greatest of some numbers [C] over the entries of each row: [R]."""
        return np.maximum.reduceat(ahead[self.indices], self._starts)

    def entered(self, rows: Array) -> Array:
        """Return in how many of these rows, a mask [R], each column has an entry: [C]."""
        return np.bincount(self.indices[rows[self.row]], minlength=self.columns)

    def _of_rows(self, values: Array) -> Array:
        if self.dense is not None:
            return np.asarray(self.dense @ values)
        return _sums(values, self.indices, self.data, self.row, len(self.counts))

    def _of_columns(self, values: Array) -> Array:
        if self.dense is not None:
            return np.asarray(self.dense.T @ values)
        return _sums(values, self.row, self.data, self.indices, self.columns)


def _sums(values: Array, source: Array, weights: Array, target: Array, size: int) -> Array:
    """Add values[source]·weights, of [C] or [C, m], to so many targets."""
    if values.ndim == 1:
        return np.bincount(target, weights=values[source] * weights, minlength=size)
    return np.stack([_sums(column, source, weights, target, size) for column in values.T], axis=1)


def rows_of(matrices: Sequence[Array | Csr], *, support: bool = False) -> list[Rows]:
    """Return matrices of probabilities; with `support`, ones where there is a probability, floats or Fractions."""
    if not support:
        return [Rows(matrix) for matrix in matrices]
    masks: list[Any] = [
        each._replace(data=(each.data > 0).astype(np.float64)) if isinstance(each, Csr) else (each > 0) * 1.0
        for each in matrices
    ]
    return [Rows(mask, divided=False) for mask in masks]


class Mixtures:
    """Rows of probabilities [S, A], each divided by its sum: what an agent plays in each state."""

    def __init__(self, rows: Array) -> None:
        """Read the rows."""
        self.rows, self.possible = rows, rows > 0
        self.table: Array = rows / rows.sum(axis=1, keepdims=True)
        most = int(np.count_nonzero(rows, axis=1).max())
        self.certain = most == 1  # every other entry of each row is exactly zero
        self._rounding = 0.0 if self.certain else gamma(most + 2) + gamma(most)
        self._most, self._least = most, least(self.table)

    @property
    def ball(self) -> Ball:
        """The probabilities."""
        starts = np.arange(0, self.table.size, self.table.shape[1])
        return probabilities(self.rows.ravel(), starts).reshape(*self.table.shape)

    def over(self, values: Ball) -> Ball:
        """Return Σ_a row_s[a]·values[s, a, …] of balls [S, A, …]: [S, …]."""
        if self.certain:
            return values[np.arange(len(self.table)), self.table.argmax(axis=1)]

        def sums(table: Array) -> Array:
            flat = table.reshape(*self.table.shape, prod(table.shape[2:]))
            return np.asarray(np.matmul(self.table[:, None, :], flat)[:, 0].reshape(len(flat), *table.shape[2:]))

        return _weighed(sums, values, self._rounding, self._most, self._least)


def _weighed(sums: Callable[[Array], Array], values: Ball, rounding: float, most: int, lightest: float) -> Ball:
    """Return weighted sums of values; `most` weights in one sum that are not all one, none below `lightest`."""
    # Σ w(1 + δ)(x + dx), |δ| ≤ rounding: the error is a weighted sum, too, of |dx| + rounding·|x|.
    mid, spread = sums(values.mid), values.rad + rounding * np.abs(values.mid)
    hidden = _hidden(most, lightest, Ball(values.mid, spread)) if most else 0.0
    if not values.rad.any() and values.mid.min(initial=0.0) >= 0:  # then the sums of sizes are the sums themselves
        return Ball(mid, rounding * mid * _SAFETY + hidden)
    return Ball(mid, sums(spread) * _SAFETY + hidden)
