"""How a computation of equilibria ends, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, InfeasibilityProof
from cmpg.errors import InfeasibleError
from cmpg.policy import JointPolicy


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
    """One iteration: who could gain how much, and who moved."""

    iteration: int
    mover: int | None  # None where nobody gained enough
    gain: float  # of the mover; the largest one where nobody moved
    gains: FloatArray  # [n]; nan where the schedule did not ask
    costs: FloatArray  # [k], before the move
    potential: float  # sum of the gains so far: Φ(now) − Φ(start)
    seconds: float
    prices: FloatArray | None = None  # [k]: of the budgets, while a common price is sought before the first iteration


@dataclass(frozen=True, eq=False)
class Incumbent:
    """The best feasible policy that is known, and what is proved about it."""

    policy: JointPolicy
    multipliers: FloatArray  # [n, k]
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Result:
    """The ending of `coordinate_ascent` or `solve`."""

    status: Status
    message: str
    epsilon: float
    incumbent: Incumbent | None  # None where no feasible policy was found
    trace: tuple[Step, ...] = ()
    moves: int = 0
    max_iterations: int = 0
    start: JointPolicy | None = None
    proof: InfeasibilityProof | None = None
    witness: Any = None  # a 4-cycle that refutes the potential property, where status says so
    settings: Mapping[str, Any] = field(default_factory=dict)
    equilibria: tuple[Result, ...] = ()  # all distinct certified endings of the restarts, best first

    @property
    def certified(self) -> bool:
        """Whether the policy is proved to be an ε-Nash policy."""
        return self.status is Status.CERTIFIED

    @property
    def policy(self) -> JointPolicy:
        """The policy; an `InfeasibleError` where no feasible one was found."""
        return self._found.policy

    @property
    def multipliers(self) -> FloatArray:
        """λ, the witness of the certificate: [n, k]; an `InfeasibleError` where no feasible policy was found."""
        return self._found.multipliers

    @property
    def certificate(self) -> Certificate:
        """What is proved about the policy; an `InfeasibleError` where no feasible one was found."""
        return self._found.certificate

    @property
    def values(self) -> FloatArray:
        """V^{r_i} at the policy: [n]; empty where there is no policy."""
        return np.zeros(0) if self.incumbent is None else self.certificate.values

    @property
    def costs(self) -> FloatArray:
        """V^{c_j} at the policy: [k]; empty where there is no policy."""
        return np.zeros(0) if self.incumbent is None else self.certificate.costs

    @property
    def _found(self) -> Incumbent:
        if self.incumbent is None:
            raise InfeasibleError(f"the result has no policy, because it ended {self.status.name}: {self.message}")
        return self.incumbent

    def __str__(self) -> str:
        lines = [f"{self.status.name}: {self.message}"]
        if self.incumbent is not None:
            proof = self.certificate
            lines.append(f"{'agent':>6} {'value':>14} {'can get':>14} {'gain at most':>13}")
            rows = zip(proof.values, proof.bounds, proof.gains, strict=True)
            shown = [
                f"{i:>6} {value:>14.6f} {bound:>14.6f} {gain:>13.2e}" for i, (value, bound, gain) in enumerate(rows)
            ]
            lines += shown if len(shown) <= 12 else [*shown[:10], f"{'…':>6} ({len(shown) - 10} more agents)"]
            for j, (cost, limit) in enumerate(zip(proof.costs, proof.thresholds, strict=True)):
                lines.append(f"constraint {j}: cost {cost:.9g}, limit {limit:.9g}")
            lines.append(f"{proof.information}; moves {self.moves} of at most {self.max_iterations}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks."""
        opening = f"<p><b>{self.status.name}</b>: {escape(self.message)}</p>"
        if self.incumbent is None:
            return opening
        proof = self.certificate
        columns = zip(proof.values, proof.bounds, proof.gains, strict=True)
        agents = [
            [str(i), f"{value:.6f}", f"{best:.6f}", f"{gain:.2e}"] for i, (value, best, gain) in enumerate(columns)
        ]
        rest = [] if len(agents) <= 12 else [[f"… {len(agents) - 10} more", "", "", ""]]
        costs = enumerate(zip(proof.costs, proof.thresholds, proof.slacks, strict=True))
        limits = [[str(j), f"{cost:.9g}", f"{limit:.9g}", f"{slack:.2g}"] for j, (cost, limit, slack) in costs]
        shown = agents[:10] + rest if rest else agents
        tables = _html_table(["agent", "value", "can get at most", "gains at most"], shown)
        return opening + tables + (_html_table(["constraint", "cost", "limit", "slack"], limits) if limits else "")


def _html_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
