"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> counted(1, "move"), counted(12_000, "move")
    ('1 move', '12,000 moves')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
