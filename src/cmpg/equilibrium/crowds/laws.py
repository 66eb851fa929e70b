"""Expectations over loads by Fourier inversion, for the search: what a member of each group meets, and what all cost.

The load of a cell is N = Σ_g Bin(n_g, p_g). With M points around its mean and ω_j = 2πj/M, P(N = m) is a sum of
φ(ω_j)·exp(−iω_j m) / M, in which all but some tens of frequencies are negligible, whatever the numbers. A curve is
affine but for its kinks, so only E (N − κ)⁺ and P(N ≥ κ) are needed, sums of a geometric series. A member is left out
by a division by 1 + p(exp(iω) − 1); a move of t members from p to q multiplies by powers of such factors. A power of
the load is expanded about the mean, by four moments: exactly, up to the fourth power.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import asin, ceil, floor, pi, sqrt
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, IntArray
from cmpg.games.crowd.game import CrowdGame, Curve, PowerCurve

EXPONENT = 42.0
"""Windows leave out about exp(−42)."""


def stack_of(game: CrowdGame, cell: int) -> list[Curve]:
    """Return the delay and the load costs of a cell h·E + e: 1 + k curves."""
    step, e = divmod(cell, game.num_resources)
    found = []
    for index in (game.delay, *game.load_costs):
        found.append(game.curves[int(index[0 if len(index) == 1 else step, e])])
    return found


@dataclass(frozen=True, eq=False)
class _Piece:
    """A curve about a window: its affine piece at the lower end, and the kinks inside."""

    load: int
    value: float
    slope: float
    kinks: IntArray
    bends: FloatArray  # by how much the slope changes at each kink

    @classmethod
    def of(cls, curve: Curve, low: int, high: int) -> _Piece:
        if isinstance(curve, PowerCurve):  # nothing but its constant: `Powers` has the rest
            return cls(0, curve.constant, 0.0, np.zeros(0, dtype=np.int64), np.zeros(0))
        loads, slopes = curve.loads, curve.slopes
        piece = int(np.clip(np.searchsorted(loads, low, "right") - 1, 0, len(slopes) - 1))
        last = int(np.clip(np.searchsorted(loads, high, "left") - 1, piece, len(slopes) - 1))
        bends = np.diff(slopes[piece : last + 1])
        real = np.flatnonzero(np.abs(bends) > 1e-12 * np.abs(slopes[piece : last + 1]).max(initial=0.0))
        kinks = loads[piece + 1 : last + 1][real]
        return cls(int(loads[piece]), float(curve.values[piece]), float(slopes[piece]), kinks, bends[real])

    def at(self, load: Any) -> Any:
        return self.value + self.slope * (load - self.load)


class Powers:
    """The parts factor·load^power of some curves of some cells, side by side."""

    def __init__(self, curves: list[Curve]) -> None:
        """Pick them out of the curves of all cells."""
        bent = [isinstance(curve, PowerCurve) and curve.factor > 0 for curve in curves]
        self.cells = np.flatnonzero(bent)
        some = [curve for curve in curves if isinstance(curve, PowerCurve) and curve.factor > 0]
        self._factor = np.array([curve.factor for curve in some])
        self._power = np.array([curve.power for curve in some], dtype=np.int64)

    def derivative(self, load: FloatArray, order: int) -> FloatArray:
        """Return a derivative at loads [..., cells]."""
        factor = self._factor.copy()
        for i in range(order):
            factor *= np.maximum(self._power - i, 0)
        return np.asarray(factor * np.maximum(load, 0.0) ** np.maximum(self._power - order, 0))

    def expected(self, load: FloatArray, moments: list[FloatArray]) -> FloatArray:
        """Return expectations about means [..., cells], given the second to the fourth moment about them."""
        found, divisor = self.derivative(load, 0), 1
        for order, moment in enumerate(moments, 2):
            divisor *= order
            if moment.any():
                found = found + self.derivative(load, order) * moment / divisor
        return found

    def rise(self, load: FloatArray, moments: list[FloatArray]) -> FloatArray:
        """Return by how much expectations rise with one more."""
        return self.expected(load + 1, moments) - self.expected(load, moments)


def _cumulants(used: FloatArray) -> list[FloatArray]:
    """Return the second to the fourth cumulant of draws with probabilities."""
    spread = used * (1 - used)
    return [spread, spread * (1 - 2 * used), spread * (1 - 6 * spread)]


def _moments(cumulants: list[FloatArray]) -> list[FloatArray]:
    """Return the second to the fourth moment about the mean."""
    return [cumulants[0], cumulants[1], cumulants[2] + 3 * cumulants[0] ** 2]


class _Cell:
    """The law of one load by its characteristic function, and what is to be known of it."""

    def __init__(
        self, pieces: list[_Piece], number: FloatArray, used: FloatArray, mean: float, variance: float
    ) -> None:
        spread = _window(variance)
        low = floor(mean - spread)
        points = 2 * ceil(spread) + 1
        count = points // 2
        if variance > 20:
            count = min(count, int(2 * asin(min(1.0, sqrt(19 / (variance - 0.25)))) * points / (2 * pi)) + 2)
        omega = 2 * pi * np.arange(count + 1) / points
        self.step = np.expm1(1j * omega)
        real = 0.5 * np.log1p(-np.minimum(4 * np.outer(used * (1 - used), np.sin(omega / 2) ** 2), 1 - 1e-300))
        turned = np.angle(1 + np.outer(used, self.step)) - np.outer(used, omega)
        self.law = np.exp(number @ (real + 1j * turned) + 1j * omega * (mean - low))  # about the lower end
        self.pieces, self._omega, self._points, self._low = pieces, omega, points, low
        self.tails = [self._tail(piece.kinks) for piece in pieces[1:]]
        self.overs = [self._over(piece.kinks) for piece in pieces[1:]]
        self.delayed = self._over(pieces[0].kinks - 1)

    def _series(self, first: IntArray) -> tuple[Any, Any]:
        """Return how many terms follow the first in the sums over m ≥ first, and the first term."""
        start = np.clip(np.asarray(first, dtype=np.float64) - self._low, 0, self._points)  # within the window
        weight = np.where(np.arange(len(self._omega)) == 0, 1.0, 2.0)[:, None] / self._points
        return self._points - 1 - start, weight * np.exp(-1j * np.outer(self._omega, start))

    def _tail(self, kinks: IntArray) -> Any:
        more, front = self._series(kinks)  # [J, kinks]
        down = -np.expm1(-1j * self._omega)[:, None]
        with np.errstate(all="ignore"):
            sums = -np.expm1(-1j * np.outer(self._omega, more + 1)) / down
        sums[0] = more + 1
        return front * sums

    def _over(self, kinks: IntArray) -> Any:
        more, front = self._series(kinks)
        down = -np.expm1(-1j * self._omega)[:, None]
        ratio = np.exp(-1j * self._omega)[:, None]
        power = np.exp(-1j * np.outer(self._omega, more))
        with np.errstate(all="ignore"):
            sums = ratio * (1 - (more + 1) * power + more * power * ratio) / down**2
        sums[0] = more * (more + 1) / 2
        # A kink below the window counts every load from there on.
        below = self._low - np.asarray(kinks, dtype=np.float64)
        offset = np.where(below > 0, below, 0.0)
        return front * sums + offset * self._tail(kinks)

    def without(self, kernel: Any, used: FloatArray) -> FloatArray:
        """Return sums of the law without a member of each group: [G, kinks]."""
        left_out = 1 / (1 + used[:, None] * self.step)
        return np.asarray(((left_out * self.law) @ kernel).real)

    def move(self, used: float, number: int) -> None:
        """Let this many more agents use the cell with a probability."""
        self.law = self.law * (1 + used * self.step) ** number


class Laws:
    """What the loads of all cells come to, while groups move."""

    def __init__(self, game: CrowdGame, number: IntArray, used: FloatArray) -> None:
        """Compute the laws of the loads of groups of these sizes, which use cells with probabilities [G, H·E]."""
        self.game, members = game, np.asarray(number, dtype=np.float64)
        self.mean = members @ used
        self.cumulants = [members @ each for each in _cumulants(used)]  # each [H·E]
        self._from, cells = self.mean.copy(), used.shape[1]
        self._pieces: list[list[_Piece]] = []
        self._hot: dict[int, _Cell] = {}
        drawn = (used > 0) & (used < 1)
        stacks = [stack_of(game, cell) for cell in range(cells)]
        self.powers = [Powers([stack[row] for stack in stacks]) for row in range(1 + game.num_constraints)]
        for cell in range(cells):
            spread = _window(self.variance[cell])
            low, high = (int(end) for end in (floor(self.mean[cell] - spread), ceil(self.mean[cell] + spread)))
            pieces = [_Piece.of(curve, max(low, 0), high) for curve in stacks[cell]]
            self._pieces.append(pieces)
            if any(len(piece.kinks) for piece in pieces):
                some = drawn[:, cell]
                self._hot[cell] = _Cell(
                    pieces, members[some], used[some, cell], self.mean[cell], max(float(self.variance[cell]), 0.0)
                )

    @property
    def variance(self) -> FloatArray:
        """σ² of every load: [H·E]."""
        return self.cumulants[0]

    @property
    def stale(self) -> bool:
        """Whether means have moved so far that the windows do not fit any more."""
        return bool((np.abs(self.mean - self._from) > 0.7 * np.sqrt(self.variance) + 5).any())

    def move(self, used: FloatArray, number: int) -> None:
        """Let this many more, or fewer, agents use cells with probabilities [H·E]."""
        for cell, law in self._hot.items():
            if used[cell]:
                law.move(float(used[cell]), number)
                # Agents that are sure to use it shift the law.
        self.mean = self.mean + number * used
        moved = [each + number * more for each, more in zip(self.cumulants, _cumulants(used), strict=True)]
        self.cumulants = [np.maximum(moved[0], 0.0), *moved[1:]]

    def costs(self) -> FloatArray:
        """Return what the loads cost: [k]."""
        total = np.zeros(self.game.num_constraints)
        for cell, pieces in enumerate(self._pieces):
            for j, piece in enumerate(pieces[1:]):
                total[j] += piece.at(self.mean[cell])
                if len(piece.kinks):
                    law = self._hot[cell]
                    total[j] += float(((law.law @ law.overs[j]).real) @ piece.bends)
        moments = _moments(self.cumulants)
        for j, power in enumerate(self.powers[1:]):
            if len(power.cells):
                total[j] += power.expected(self.mean[power.cells], [each[power.cells] for each in moments]).sum()
        return total

    def prices(self, used: FloatArray) -> FloatArray:
        """Return the delay and the rise of each cost that a member of each group meets: [1 + k, G, H·E]."""
        found = np.empty((1 + self.game.num_constraints, *used.shape))
        others = self.mean - used
        for cell, pieces in enumerate(self._pieces):
            found[0, :, cell] = pieces[0].at(1 + others[:, cell])
            for j, piece in enumerate(pieces[1:]):
                found[1 + j, :, cell] = piece.slope
            law = self._hot.get(cell)
            if law is None:
                continue
            if len(pieces[0].kinks):
                found[0, :, cell] += law.without(law.delayed, used[:, cell]) @ pieces[0].bends
            for j, piece in enumerate(pieces[1:]):
                if len(piece.kinks):
                    found[1 + j, :, cell] += law.without(law.tails[j], used[:, cell]) @ piece.bends
        for row, power in enumerate(self.powers):
            if len(power.cells):
                cells = power.cells
                left = zip(self.cumulants, _cumulants(used[:, cells]), strict=True)
                load, moments = others[:, cells], _moments([each[cells] - own for each, own in left])
                found[row][:, cells] += power.rise(load, moments) if row else power.expected(load + 1, moments)
        return found

    def stiffness(self, weights: FloatArray) -> FloatArray:
        """Return by about how much the price of a cell rises with one more user, costs weighed by λ: [H·E]."""
        slope = np.array([pieces[0].slope for pieces in self._pieces])
        for row, power in enumerate(self.powers):
            weight = weights[row - 1] if row else 1.0
            slope[power.cells] += weight * power.derivative(self.mean[power.cells], 1 + (row > 0))
        for cell, law in self._hot.items():
            spread = max(sqrt(float(self.variance[cell])), 0.5)
            for j, piece in enumerate(self._pieces[cell][1:]):
                if len(piece.kinks):
                    tail = np.clip((law.law @ law.tails[j]).real, 1e-12, 0.5)
                    slope[cell] += weights[j] * float(
                        np.abs(piece.bends) @ (tail * np.maximum(1.0, np.sqrt(-2 * np.log(tail))) / spread)
                    )
            bends = self._pieces[cell][0].bends
            slope[cell] += float(np.abs(bends).sum())
        return slope


def _window(variance: float) -> float:
    third, square = EXPONENT / 3, max(float(variance), 0.0)
    return third + sqrt(third * third + 2 * EXPONENT * square) + sqrt(square) + 10
