"""Amounts that a scenario cannot take below zero: budgets, capacities, penalties."""

from __future__ import annotations

from typing import Any

from cmpg.checks import GameError, first_index, numbers


def require_at_least_zero(**amounts: Any) -> None:
    """Raise unless every number is finite and at least zero.

    Examples
    --------
    >>> require_at_least_zero(threshold=0.5, capacity=[8, -1])
    Traceback (most recent call last):
    cmpg.checks.GameError: capacity[1] is -1; a number of at least 0 is required.
    """
    for name, value in amounts.items():
        given = numbers(name, value)
        if (given < 0).any():
            index = first_index(given < 0) if given.ndim else ()
            where = f"{name}[{', '.join(map(str, index))}]" if index else name
            raise GameError(f"{where} is {given[index]:g}; a number of at least 0 is required.")
