"""How a computation of equilibria ends, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import MOST_PRICES, Certificate, InfeasibilityProof
from cmpg.errors import InfeasibleError
from cmpg.faces import Cell, Face, Table, counted, fields_line, fixed, html, line, text
from cmpg.games.contract import Game
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    from cmpg.games.potential.check import FourCycle


class Status(Enum):
    """The six ways in which a computation ends; the value says what to do next."""

    CERTIFIED = "the policy is feasible, and no agent gains more than epsilon by leaving: proved"
    INFEASIBLE = "no policy meets the thresholds: proved. Raise them, or give the agents cheaper actions"
    FEASIBILITY_UNKNOWN = "no feasible start was found, and none was ruled out. Pass `start`, or raise the thresholds"
    NOT_POTENTIAL = "the moves gain more than any potential allows: the game is not a Markov potential game"
    LIMIT = "a limit was reached first; the policy is feasible, and its gap is known. Allow more, or a larger epsilon"
    INTERRUPTED = "interrupted; the policy is the last one reached, and its gap is known"


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration: who could gain how much, and who moved; or one round of the search for common multipliers."""

    iteration: int
    mover: int | None  # None where nobody gained enough, and for a round
    gain: float  # of the mover; the largest one where nobody moved; nan for a round
    gains: FloatArray  # [n]; nan where nobody asked
    costs: FloatArray  # [k], before the move; after it for a round
    potential: float  # sum of the gains so far: Φ(now) − Φ(start)
    seconds: float
    multipliers: FloatArray | None = None  # [k]: what everybody paid in a round of the search; None in the ascent
    moves: int = 0  # made in a round of the search

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Incumbent:
    """The best feasible policy that is known, and what is proved about it."""

    policy: JointPolicy
    multipliers: FloatArray  # [n, k]
    certificate: Certificate

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Result:
    """The ending of `coordinate_ascent` or `solve`.

    `policy`, `multipliers` and `certificate` are those of the incumbent. A run that ended INFEASIBLE or
    FEASIBILITY_UNKNOWN has none, and asking for them raises.

    Examples
    --------
    >>> from cmpg.equilibrium.solve import solve
    >>> from cmpg.scenarios import counter_example
    >>> result = solve(counter_example())
    >>> result.certified, result.values, result.costs
    (True, array([3., 3.]), array([0.]))
    """

    status: Status
    message: str
    epsilon: float
    incumbent: Incumbent | None = None
    game: Game | None = None
    trace: tuple[Step, ...] = ()
    moves: int = 0  # of the ascent
    search_moves: int = 0  # of the search for a start
    max_iterations: int = 0
    refused: int = 0  # responses that the solver failed to give, or that broke a threshold
    start: JointPolicy | None = None
    proof: InfeasibilityProof | None = None
    witness: FourCycle | None = None  # refutes the potential property, where status says so
    settings: Mapping[str, Any] = field(default_factory=dict)
    equilibria: tuple[Result, ...] = ()  # all distinct certified endings of the restarts, best first
    score: tuple[str, float] | None = None  # what the equilibria are compared by, and how much of it this one has

    @property
    def certified(self) -> bool:
        """Whether the policy is proved to be an ε-Nash policy."""
        return self.status is Status.CERTIFIED

    @property
    def policy(self) -> JointPolicy:
        """The joint policy."""
        return self._found().policy

    @property
    def multipliers(self) -> FloatArray:
        """λ_i of every agent, which prove what it can gain at most: [n, k]."""
        return self._found().multipliers

    @property
    def certificate(self) -> Certificate:
        """What is proved about the policy."""
        return self._found().certificate

    def _found(self) -> Incumbent:
        if self.incumbent is None:
            raise InfeasibleError(f"the result has no policy, because it ended {self.status.name}: {self.message}")
        return self.incumbent

    @property
    def values(self) -> FloatArray:
        """V^{r_i} at the policy: [n]; empty where there is no policy."""
        return np.zeros(0) if self.incumbent is None else self.incumbent.certificate.values

    @property
    def costs(self) -> FloatArray:
        """V^{c_j} at the policy: [k]; empty where there is no policy."""
        return np.zeros(0) if self.incumbent is None else self.incumbent.certificate.costs

    def face(self) -> Face:
        """Return what to show: how it ended and what to do, agents, constraints, other equilibria, and the proof."""
        advice = f"{self.status.value[:1].upper()}{self.status.value[1:]}."
        parts: list[str | Table] = [] if self.certified else [advice]
        if self.proof is not None:
            parts.append(self.proof.told)
        if self.incumbent is not None:
            parts += self.certificate.tables()
            ascent = [step for step in self.trace if step.multipliers is None]
            work = f"{counted(self.moves, 'move')} in {counted(len(ascent), 'iteration')}"
            parts.append(f"{work}, of at most {counted(self.max_iterations, 'move')}")
            if self.search_moves:
                rounds, how = counted(len(self.trace) - len(ascent), "round"), self.settings.get("start", "a search")
                parts.append(f"before that, {counted(self.search_moves, 'move')} in {rounds}: {how}")
            if self.witness is not None:
                parts += self.witness.told(self.certificate.names)
        if len(self.equilibria) > 1:
            parts += ["distinct equilibria, best first:", _equilibria_table(self.equilibria)]
        return Face(self.status.name, self.message, tuple(parts), good=self.certified)

    __repr__, __str__, _repr_html_ = line, text, html

    def save(self, folder: str | Path) -> None:
        """Write a run folder, new or empty: game, policy with its multipliers, certificate, trace; see `load_run`."""
        from cmpg.files.run_folder import save_run  # a room below: files are written on demand

        save_run(folder, self)

    def report(self, path: str | Path) -> None:
        """Write one HTML page: what is proved, the policy, how it was found, what other thresholds would be worth."""
        from cmpg.equilibrium.sensitivity import sensitivity
        from cmpg.report.page import write_result_page  # a room below: pages are written on demand

        write_result_page(self, Path(path), sensitivity=sensitivity(self))


def _equilibria_table(equilibria: Sequence[Result]) -> Table:
    """List what the equilibria are compared by first, so that the order can be seen."""
    rows: list[tuple[Cell, ...]] = []
    scores = [each.score for each in equilibria if each.score is not None and each.score[0] != "total value"]
    for rank, each in enumerate(equilibria, 1):
        compared = [] if each.score is None or not scores else [fixed(each.score[1], 4)]
        costs = ", ".join(f"{cost:.4g}" for cost in each.costs[:MOST_PRICES])
        rows.append((str(rank), *compared, fixed(each.values.sum(), 4), _few(each.values), costs or "none"))
    return Table(("", *(name for name, _ in scores[:1]), "total value", "values", "costs"), tuple(rows))


def _few(values: FloatArray) -> str:
    if len(values) <= 4:
        return ", ".join(f"{value:.4f}" for value in values)
    return f"{values.min():.4f} to {values.max():.4f}"
