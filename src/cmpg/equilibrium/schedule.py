"""Who moves next?

Two answers with the same guarantee: every move gains more than ε/2, and the end is quiet everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cmpg.arrays import FloatArray

Gains = Callable[[Iterable[int]], FloatArray]
"""The gains of the named agents at the current position; asking is what costs."""


class Schedule(Protocol):
    """Chooses the next mover."""

    def next_mover(self, gains: Gains, num_agents: int, *, last: int, enough: float) -> int | None:
        """Return an agent that gains more than `enough`, or None if none does; `last` is who moved last, or −1."""


@dataclass(frozen=True)
class GreatestGain:
    """The paper's rule: all agents are solved for, and the one who gains most moves.

    Examples
    --------
    >>> gains = np.array([0.1, 0.5, 0.3])
    >>> GreatestGain().next_mover(lambda agents: gains[list(agents)], 3, last=-1, enough=0.2)
    1
    """

    def next_mover(self, gains: Gains, num_agents: int, *, last: int, enough: float) -> int | None:  # noqa: ARG002
        """Return the agent of greatest gain, if that is enough."""
        all_gains = gains(range(num_agents))
        best = int(np.argmax(all_gains))
        return best if all_gains[best] > enough else None


@dataclass(frozen=True)
class RoundRobin:
    """Agents take turns, and whoever gains enough moves at once: often one solve per move instead of n.

    Examples
    --------
    >>> gains = np.array([0.1, 0.5, 0.3])
    >>> RoundRobin().next_mover(lambda agents: gains[list(agents)], 3, last=1, enough=0.2)
    2
    """

    def next_mover(self, gains: Gains, num_agents: int, *, last: int, enough: float) -> int | None:
        """Return the first agent after the last mover that gains enough."""
        for offset in range(1, num_agents + 1):
            agent = (last + offset) % num_agents
            if gains([agent])[0] > enough:
                return agent
        return None
