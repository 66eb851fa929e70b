"""How a computation of equilibria ends, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import Certificate, Feasibility, feasibility_text, proved_text, rounded_text
from cmpg.errors import InfeasibleError
from cmpg.games.game import Game, Objective
from cmpg.policy import JointPolicy
from cmpg.summaries import Summary, at_most, fields_line, headline_line, html, line, text

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from cmpg.equilibrium.infeasibility import InfeasibilityProof
    from cmpg.equilibrium.quality import OptimalityGap
    from cmpg.games.potential.check import FourCycle
    from cmpg.operation.plans import Replan


class Status(Enum):
    """The seven ways in which a computation ends; the value says what to do next.

    Examples
    --------
    >>> from cmpg import solve
    >>> from cmpg.scenarios import counter_example
    >>> solve(counter_example()).status.name, solve(counter_example(threshold=-1.0)).status.name
    ('CERTIFIED', 'INFEASIBLE')
    >>> print(Status.INFEASIBLE.value)
    no policy meets the thresholds: proved. Raise them, or give the agents cheaper actions
    """

    CERTIFIED = "the policy is feasible, and no agent gains more than epsilon by deviating: proved"
    TO_ROUNDING = "whether the thresholds are met is left open by rounding. Accept the excess, or lower the thresholds"
    INFEASIBLE = "no policy meets the thresholds: proved. Raise them, or give the agents cheaper actions"
    FEASIBILITY_UNKNOWN = "no feasible start was found, and none was ruled out. Pass `start`, or raise the thresholds"
    NOT_POTENTIAL = "the moves gain more than any potential allows: the game is not a Markov potential game"
    LIMIT = "it ended before epsilon was proved; the gap of the policy is known, and the message says what would help"
    INTERRUPTED = "interrupted; the policy is the last one reached, and its gap is known"


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration: who could gain how much, and who moved; or one round of the search for common multipliers.

    Examples
    --------
    >>> from cmpg import coordinate_ascent
    >>> from cmpg.scenarios import counter_example
    >>> game = counter_example()
    >>> for step in coordinate_ascent(game, game.uniform_policy(), epsilon=1e-3).trace:
    ...     print(step.mover, step.gain, step.costs)
    0 0.25 [0.25]
    None 0.0 [0.5]
    """

    iteration: int
    mover: int | None  # None if no agent gained enough, and for a round
    gain: float  # of the mover; the largest one if no agent moved; nan for a round
    gains: FloatArray  # [n]; nan where it was not computed
    costs: FloatArray  # [k], before the move; after it for a round
    potential: float  # sum of the gains so far: Φ(now) − Φ(start)
    seconds: float
    multipliers: FloatArray | None = None  # [k]: what all agents paid in a round of the search; None in the ascent
    moves: int = 0  # made in a round of the search

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Incumbent:
    """The best feasible policy that is known, and what is proved about it.

    Examples
    --------
    >>> from cmpg import solve
    >>> from cmpg.scenarios import counter_example
    >>> incumbent = solve(counter_example()).incumbent
    >>> incumbent.policy[0], incumbent.certificate.epsilon < 1e-12
    (array([[[1., 0.]]]), True)
    """

    policy: JointPolicy
    multipliers: FloatArray  # [n, k]
    certificate: Certificate

    __repr__ = fields_line


@dataclass(frozen=True, eq=False)
class Attempt:
    """One of the runs that a result was chosen from: where it began, how it ended, and what that is worth.

    Examples
    --------
    >>> from cmpg import Restarts, solve
    >>> from cmpg.scenarios import counter_example
    >>> found = solve(counter_example(), restarts=Restarts(2), rng=0)
    >>> [(attempt.start, attempt.status.name) for attempt in found.runs]
    [('PlannerStart(potential)', 'CERTIFIED'), ('random', 'CERTIFIED')]
    """

    start: str
    status: Status
    moves: int  # of the search and the ascent
    score: float | None  # by what the runs are compared by; None where it was not certified

    __repr__ = fields_line


class Equilibria(tuple["Result", ...]):
    """Distinct certified endings of restarts, best first: a tuple of results that prints as a table."""

    __slots__ = ()

    def summary(self) -> Summary:
        """Return what `print` shows: a row for each equilibrium."""
        from cmpg.report.display import equilibria_summary  # a room below: tables are made on demand

        return equilibria_summary(self)

    __repr__, __str__, _repr_html_ = line, text, html


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
    equilibria: Equilibria = field(
        default_factory=Equilibria
    )  # all distinct certified endings of the restarts, best first
    allow_rounding: float = 0.0  # by how much costs may exceed their thresholds in a result that is accepted
    score: tuple[str, float] | None = None  # what the runs are compared by, and how much of it this one has
    runs: tuple[Attempt, ...] = ()  # all that it was chosen from, in their order; none where there was one run
    interrupted: bool = False  # by the user; it may be certified all the same
    selfish: Result | None = None  # the same game without its constraints, where that was solved, too

    @property
    def certified(self) -> bool:
        """Whether the policy is proved to be an ε-Nash policy."""
        return self.status is Status.CERTIFIED

    @property
    def accepted(self) -> bool:
        """Whether it is certified, or would be but for an excess of at most `allow_rounding`."""
        if self.incumbent is None or self.status not in (Status.TO_ROUNDING, Status.LIMIT):
            return self.certified
        return self.incumbent.certificate.proves(self.epsilon, allow_rounding=self.allow_rounding)

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

    def quality(self, objective: Objective = Objective.WELFARE, *, time_limit: float = np.inf) -> OptimalityGap:
        """Compute how good the policy is: its value beside what no feasible policy exceeds; see `cmpg.quality`."""
        from cmpg.equilibrium.quality import quality  # which needs results

        return quality(self, objective, time_limit=time_limit)

    def replan(
        self,
        *,
        at: int,
        states: Any = None,
        game: Game | None = None,
        left: Collection[Any] = (),
        spent: Any = None,
        reserve: Any = None,
        release: Any = 0.0,
    ) -> Replan:
        """Plan again for the rest of the day, within what this plan promises; see `cmpg.operation.replan`."""
        from cmpg.operation.plans import replan  # a room below: few plans are made again

        return replan(self, at=at, states=states, game=game, left=left, spent=spent, reserve=reserve, release=release)

    @property
    def compared_by(self) -> str:
        """What the runs are compared by."""
        return "total value" if self.score is None else self.score[0]

    def summary(self) -> Summary:
        """Return what `print` shows: the status, the tables and the work; it formats what is here."""
        from cmpg.report.display import result_summary  # a room below: tables are made on demand

        return result_summary(self)

    def __repr__(self) -> str:
        """Return one line."""
        return headline_line(type(self).__name__, Summary(self.status.name, self.message))

    __str__, _repr_html_ = text, html

    def save(self, folder: str | Path) -> None:
        """Write a run folder, new or empty: game, policy with its multipliers, certificate, trace; see `load_run`."""
        from cmpg.files.run_folder import save_run  # a room below: files are written on demand

        save_run(folder, self)

    def to_frame(self, what: str = "schedule") -> pandas.DataFrame:
        """Return a table with names and units, as `cmpg export --what` names them; needs pandas."""
        from cmpg.report.tables import frame_of  # a room below: tables are made on demand

        return frame_of(self, what)

    def plot(self, what: str = "", *, ax: Axes | None = None) -> Axes:
        """Draw the result by matplotlib: potential, gains, schedule, loads or map; see `cmpg.plot`."""
        from cmpg.report.plots import plot  # a room below: figures are drawn on demand

        return plot(self, what, ax=ax)

    def report(self, path: str | Path) -> None:
        """Write one HTML page: what is proved, the policy, how it was found, what other thresholds would be worth."""
        from cmpg.equilibrium.sensitivity import sensitivity
        from cmpg.files.containers import as_path  # rooms below: pages are written on demand
        from cmpg.report.page import write_result_page

        write_result_page(self, as_path(path), sensitivity=sensitivity(self))


def certified_anew(result: Result, certificate: Certificate, *, epsilon: float, game: Any) -> Result:
    """Return what was found for a game that stands for another, with the certificate and the status about that one."""
    status, message = result.status, result.message
    if certificate.proves(epsilon):
        status, message = Status.CERTIFIED, proved_text(certificate)
    elif status in (Status.CERTIFIED, Status.TO_ROUNDING):
        if certificate.feasibility is Feasibility.TO_ROUNDING and certificate.epsilon <= epsilon:
            status, message = Status.TO_ROUNDING, rounded_text(certificate)
        else:
            limits = "" if certificate.feasible else f" {feasibility_text(certificate)}."
            status = Status.LIMIT
            message = f"a gain of up to {at_most(certificate.epsilon)} is not ruled out.{limits}"
    return replace(
        result,
        status=status,
        message=message,
        epsilon=epsilon,
        game=game,
        incumbent=Incumbent(result.policy, certificate.multipliers, certificate),
    )
