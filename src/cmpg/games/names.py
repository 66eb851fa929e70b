"""What agents, constraints, states and actions are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from cmpg.errors import GameError
from cmpg.faces import fields_line


@dataclass(frozen=True)
class Names:
    """What agents, constraints, states and actions are called; numbers, counted from 0, where they have no names.

    Examples
    --------
    >>> Names(agents=("Ada", "Bo")).agent(1), Names().agent(1), Names().constraint(0)
    ('Bo', 'agent 1', 'constraint 0')
    """

    agents: tuple[str, ...] | None = None
    constraints: tuple[str, ...] | None = None
    states: tuple[tuple[str, ...], ...] | None = None  # of each agent
    actions: tuple[tuple[str, ...], ...] | None = None  # of each agent

    __repr__ = fields_line

    def agent(self, i: int) -> str:
        """Return what agent i is called."""
        return f"agent {i}" if self.agents is None else self.agents[i]

    def constraint(self, j: int) -> str:
        """Return what constraint j is called."""
        return f"constraint {j}" if self.constraints is None else self.constraints[j]

    def state(self, i: int, s: int) -> str:
        """Return what agent i calls state s."""
        return f"state {s}" if self.states is None else self.states[i][s]

    def action(self, i: int, a: int) -> str:
        """Return what agent i calls action a."""
        return f"action {a}" if self.actions is None else self.actions[i][a]

    def all_agents(self, count: int) -> tuple[str, ...]:
        """Return what the agents are called, of whom there are `count`."""
        return tuple(self.agent(i) for i in range(count))

    def all_constraints(self, count: int) -> tuple[str, ...]:
        """Return what the constraints are called, of which there are `count`."""
        return tuple(self.constraint(j) for j in range(count))

    def all_states(self, i: int, count: int) -> tuple[str, ...]:
        """Return what agent i calls its states, of which there are `count`."""
        return tuple(self.state(i, s) for s in range(count))

    def all_actions(self, i: int, count: int) -> tuple[str, ...]:
        """Return what agent i calls its actions, of which there are `count`."""
        return tuple(self.action(i, a) for a in range(count))


def checked_names(game: Any, **sizes: int | Sequence[int]) -> dict[str, Any]:
    """Return the named fields of a game as tuples of strings, or raise where there are more or fewer names than things.

    Parameters
    ----------
    game
        Has the fields, each None or a sequence of names.
    sizes
        By field, how many names it must have: a number, or one for each agent.
    """
    names: dict[str, Any] = {}
    for field, size in sizes.items():
        given, things = getattr(game, field), field.removesuffix("_names") + "s"
        if given is None or isinstance(size, int):
            names[field] = given if given is None else _strings(things, given, cast(int, size))
        else:
            _strings(things, given, len(size))
            pairs = enumerate(zip(given, size, strict=True))
            names[field] = tuple(_strings(f"{things}[{i}]", each, count) for i, (each, count) in pairs)
    return names


def _strings(things: str, names: Sequence[Any], count: int) -> tuple[str, ...]:
    if len(names) != count:
        raise GameError(f"{things} has {len(names)} names; {count} are required.")
    return tuple(str(name) for name in names)
