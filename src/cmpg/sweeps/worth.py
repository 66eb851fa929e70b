"""What a sweep says along one option: what one unit more is worth, and where more is hardly worth anything.

The worth of an option between two neighbouring runs is the difference quotient of the welfare, with a new equilibrium
for each run. The envelope formula says what one unit is worth at the margin (see `sweep`); it holds for an agent that
moves alone, and for all together only if the equilibrium is a maximum of the welfare. Both are in results.csv.

The knee is where the curve is farthest above the chord between its ends, both axes scaled to the unit interval: up to
there a unit brings more than on average, and behind it less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.sweeps.rows import SEED, Sweep, SweepRow

LEAST_BEND = 0.05
"""A curve that is nowhere farther than this above its chord has no knee."""


@dataclass(frozen=True, eq=False)
class SweepCurve:
    """The runs that differ in one option only, in its order; those without a policy are left out.

    Examples
    --------
    >>> from cmpg.sweeps import sweep
    >>> [curve] = curves(sweep("spectrum", {"threshold": [0.05, 0.1, 0.2]}), "threshold")
    >>> curve.x, curve.welfare == sorted(curve.welfare)
    ([0.05, 0.1, 0.2], True)
    """

    option: str
    others: Mapping[str, Any]
    rows: tuple[SweepRow, ...]

    @property
    def x(self) -> list[float]:
        """The values of the option."""
        return [float(row.options[self.option]) for row in self.rows]

    @property
    def welfare(self) -> list[float]:
        """The sum of the agents' values."""
        return [float(row.welfare) for row in self.rows if row.welfare is not None]

    @property
    def knee(self) -> int | None:
        """The index of the knee; None for fewer than three runs, and for a curve that does not bend."""
        if len(self.rows) < 3:
            return None
        x, y = np.array(self.x), np.array(self.welfare)
        if x[-1] == x[0] or np.ptp(y) <= 1e-9 * max(1.0, float(np.abs(y).max())):
            return None
        along, height = (x - x[0]) / (x[-1] - x[0]), (y - y.min()) / np.ptp(y)
        bend = height - (height[0] + (height[-1] - height[0]) * along)
        index = int(np.argmax(bend))
        return index if bend[index] > LEAST_BEND else None

    @property
    def falls(self) -> list[int]:
        """The indices of runs whose next one is worth less than the policy of this one would be worth there."""
        steps = enumerate(zip(self.rows, self.rows[1:], strict=False))
        return [
            index
            for index, (row, following) in steps
            if self.option in row.carried
            and following.welfare is not None
            and following.welfare < row.carried[self.option] - 1e-6 * max(1.0, abs(following.welfare))
        ]


def curves(found: Sweep, option: str) -> list[SweepCurve]:
    """Return the curves along one option of numbers.

    Examples
    --------
    >>> from cmpg.sweeps import sweep
    >>> [curve] = curves(sweep("spectrum", {"threshold": [0.2, 0.1]}), "threshold")
    >>> curve.x
    [0.1, 0.2]
    """
    groups: dict[tuple[Any, ...], list[SweepRow]] = {}
    others = [name for name in found.grid.axes if name != option]
    for row in found.rows:
        if row.welfare is not None:
            groups.setdefault(tuple(row.options[name] for name in others), []).append(row)
    return [
        SweepCurve(
            option, dict(zip(others, key, strict=True)), tuple(sorted(rows, key=lambda row: row.options[option]))
        )
        for key, rows in groups.items()
    ]


def numeric_options(found: Sweep) -> list[str]:
    """Return the options of numbers that are swept over; a seed is none."""
    return [name for name in found.grid.axes if name != SEED and found.grid.is_numeric(name)]


def worth_of_options(found: Sweep) -> dict[str, dict[int, float]]:
    """Return, by option and run, what the welfare rises by per unit up to the next value of the option."""
    worth: dict[str, dict[int, float]] = {}
    for option in numeric_options(found):
        worth[option] = {}
        for curve in curves(found, option):
            x, y = curve.x, curve.welfare
            for index in range(len(x) - 1):
                rise = x[index + 1] - x[index]  # zero if a value is given twice
                if rise > 0 and curve.rows[index].certified and curve.rows[index + 1].certified:
                    worth[option][curve.rows[index].run] = (y[index + 1] - y[index]) / rise
    return worth
