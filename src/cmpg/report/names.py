"""What agents and constraints are called where people read of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Names:
    """The names of a game; numbers, counted from 0, where it has none.

    Examples
    --------
    >>> Names(agents=("Ada", "Bo")).agent(1), Names().agent(1), Names().constraint(0)
    ('Bo', 'agent 1', 'constraint 0')
    """

    agents: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None

    @classmethod
    def of(cls, game: Any) -> Names:
        """Return the names that a game of any form has."""
        return cls(getattr(game, "agents", None), getattr(game, "constraints", None))

    def agent(self, i: int) -> str:
        """Return what agent i is called."""
        return f"agent {i}" if self.agents is None else self.agents[i]

    def constraint(self, j: int) -> str:
        """Return what constraint j is called."""
        return f"constraint {j}" if self.constraints is None else self.constraints[j]


def counted(number: int, noun: str) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> counted(1, "move"), counted(12_000, "move")
    ('1 move', '12,000 moves')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
