"""The CMDP that an agent faces, as a PRISM model with its property, so that PRISM or Storm can solve it.

The model has a step `h` and a state `s`, begins at h = −1, where the first state is drawn, and ends at h = H; a
discounted CMDP has no steps, and ends with probability 1 − γ after each. Only what can be reached is written. The
property asks for the largest expected reward among policies that meet every threshold:

    multi(R{"reward"}max=? [ C ], R{"cost_0"}<=0.25 [ C ])

PRISM wants rewards of at least zero. Where there are negative ones, the same amount is added to every step that is
played; the model says in its first lines what to subtract from the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray, at_step
from cmpg.cmdp.model import CMDP
from cmpg.errors import GameError
from cmpg.games.play import entries

MAX_COMMANDS = 1_000_000
"""Models with more commands than this are refused."""


@dataclass(frozen=True)
class PrismProblem:
    """A model and the question about it, as texts.

    Examples
    --------
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> problem = to_prism(game.at(game.uniform_policy()).induced_cmdp(0))
    >>> problem.model.splitlines()[0], problem.reward_offset
    ('// the constrained Markov decision process of one agent', 0.0)
    """

    model: str
    properties: str
    reward_offset: float  # the value of the CMDP is the answer less this
    cost_offsets: tuple[float, ...]  # and a cost what is measured less this

    def __repr__(self) -> str:
        return f"<PrismProblem of {self.model.count(chr(10))} lines, reward offset {self.reward_offset:g}>"


def to_prism(cmdp: CMDP) -> PrismProblem:
    """Return a CMDP as a PRISM model.

    Examples
    --------
    >>> cmdp = CMDP(transition=[[[[1.0], [1.0]]]], reward=[[[0.0, 1.0]]], costs=[[[[0.0, 1.0]]]],
    ...             thresholds=[0.25], initial=[1.0], horizon=1)
    >>> print(to_prism(cmdp).properties.splitlines()[-1])
    multi(R{"reward"}max=? [ C ], R{"cost_0"}<=0.25 [ C ])
    """
    reached = _Reached(cmdp)
    tables = [cmdp.reward, *(table for table in cmdp.costs)]
    shifts = [max(0.0, -float(table.min())) for table in tables]
    length = 1 / (1 - cmdp.discount) if cmdp.discount is not None else float(cmdp.num_steps)
    offsets = [shift * length for shift in shifts]
    names = ["reward", *(f"cost_{j}" for j in range(cmdp.num_constraints))]
    offset_lines = [f"// {name}: subtract {offset!r}" for name, offset in zip(names, offsets, strict=True) if offset]
    lines = [
        "// the constrained Markov decision process of one agent",
        *offset_lines,
        "mdp",
        "module agent",
        f"  h : [-1..{1 if cmdp.horizon is None else cmdp.horizon}] init -1;",
        f"  s : [0..{cmdp.num_states - 1}] init 0;",
        f"  [] h=-1 -> {_drawn(enumerate(cmdp.initial), 0)};",
        *reached.commands(),
        "endmodule",
    ]
    for name, table, shift in zip(names, tables, shifts, strict=True):
        lines += [f'rewards "{name}"', *reached.rewards(table, shift), "endrewards"]
    limits = zip(map(float, cmdp.thresholds), offsets[1:], strict=True)
    bounds = [f'R{{"cost_{j}"}}<={limit + offset!r} [ C ]' for j, (limit, offset) in enumerate(limits)]
    objective = 'R{"reward"}max=? [ C ]'
    query = f"multi({', '.join([objective, *bounds])})" if bounds else objective
    properties = "\n".join([*offset_lines, query]) + "\n"
    return PrismProblem("\n".join(lines) + "\n", properties, offsets[0], tuple(offsets[1:]))


class _Reached:
    """The entries (step, state, action) that can be reached, and what PRISM reads about them."""

    def __init__(self, cmdp: CMDP) -> None:
        self.cmdp = cmdp
        self._transition = cmdp.transition
        self.rows = [
            (h, s, a) for h, layer in enumerate(self._layers()) for s in layer for a in range(cmdp.num_actions)
        ]

    def _layers(self) -> Iterator[list[int]]:
        """Yield the states that can be reached at each step; all at once if the sum is discounted."""
        present, written = set(np.flatnonzero(self.cmdp.initial > 0).tolist()), 0
        for h in range(self.cmdp.num_steps):
            ahead = self._after(h, present)
            while self.cmdp.horizon is None and not ahead <= present:
                present |= ahead
                ahead = self._after(h, present)
            written += len(present) * self.cmdp.num_actions
            if written > MAX_COMMANDS:
                raise GameError(f"the model would have more than {MAX_COMMANDS} commands. Take a shorter horizon.")
            yield sorted(present)
            present = ahead

    def _after(self, h: int, states: set[int]) -> set[int]:
        return {t for s in states for a in range(self.cmdp.num_actions) for t, _ in self._row(h, s, a)}

    def _row(self, h: int, s: int, a: int) -> list[tuple[int, float]]:
        """Return the next states of positive probability, and their probabilities."""
        matrix = at_step(self._transition, h)
        if self.cmdp.is_sparse:
            columns, probabilities = entries(matrix, s * self.cmdp.num_actions + a)
            return [(int(t), float(p)) for t, p in zip(columns, probabilities, strict=True) if p > 0]
        return [(t, float(p)) for t, p in enumerate(matrix[s, a]) if p > 0]

    def commands(self) -> Iterator[str]:
        """Write what each action does."""
        endless = self.cmdp.discount
        for h, s, a in self.rows:
            row, guard = self._row(h, s, a), f"  [a{a}] h={h} & s={s} ->"
            if endless is None:
                yield f"{guard} {_drawn(row, h + 1)};"
            else:
                goes_on = _drawn([(t, p * endless) for t, p in row], 0, whole=False)
                yield f"{guard} {goes_on} + {1 - endless!r}:(h'=1);"
        yield f"  [] h={self.cmdp.horizon or 1} -> true;"

    def rewards(self, table: FloatArray, shift: float) -> Iterator[str]:
        """Write what each action brings, or costs; what is zero is left out."""
        yield "  true : 0;"  # a structure without an entry is no PRISM
        for h, s, a in self.rows:
            value = float(at_step(table, h)[s, a]) + shift
            if value:
                yield f"  [a{a}] h={h} & s={s} : {value!r};"


def _drawn(row: Any, h: int, *, whole: bool = True) -> str:
    """Write a distribution over next states; PRISM wants its numbers to sum to one."""
    pairs = [(t, float(p)) for t, p in row if p > 0]
    total = math.fsum(p for _, p in pairs) if whole else 1.0
    return " + ".join(f"{p / total!r}:(h'={h}) & (s'={t})" for t, p in pairs)
