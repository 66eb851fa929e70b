"""How a computation of equilibria ends, what it leaves behind, and how good that is.

A certificate says that nobody gains by leaving; there may be other equilibria, and feasible policies that are none,
that are worth more to all. An upper bound over all feasible policies says how much more at most. The game can prove
one: by a planner who chooses all actions (`PlansFor`: joint and counting games), or by agents who plan alone and pay
common prices (`Bounded`: local games). docs/quality.md has the proofs. The bound is computed when it is asked for, or
printed: `solve` itself does not wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.certificate import MOST_PRICES, Certificate
from cmpg.errors import CMPGError, InfeasibleError, OutOfTimeError
from cmpg.faces import Cell, Face, Table, counted, fields_line, fixed, headline_line, html, significant, text
from cmpg.games.contract import Bounded, Game, Objective, Planner, PlansFor, UpperBound, in_floats
from cmpg.policy import JointPolicy

if TYPE_CHECKING:
    import pandas

    from cmpg.equilibrium.infeasibility import InfeasibilityProof
    from cmpg.games.potential.check import FourCycle


class Status(Enum):
    """The seven ways in which a computation ends; the value says what to do next."""

    CERTIFIED = "the policy is feasible, and no agent gains more than epsilon by leaving: proved"
    TO_ROUNDING = "whether the thresholds are met is left open by rounding. Accept the excess, or lower the thresholds"
    INFEASIBLE = "no policy meets the thresholds: proved. Raise them, or give the agents cheaper actions"
    FEASIBILITY_UNKNOWN = "no feasible start was found, and none was ruled out. Pass `start`, or raise the thresholds"
    NOT_POTENTIAL = "the moves gain more than any potential allows: the game is not a Markov potential game"
    LIMIT = "it ended before epsilon was proved; the gap of the policy is known, and the message says what would help"
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
class Attempt:
    """One of the runs that a result was chosen from: where it began, how it ended, and what that is worth."""

    start: str
    status: Status
    moves: int  # of the search and the ascent
    score: float | None  # by what the runs are compared by; None where it was not certified

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

    @cached_property
    def quality(self) -> Quality:
        """How good the policy is: what it is worth, beside what no feasible policy exceeds. Computed when asked for."""
        return Quality(self)

    @property
    def compared_by(self) -> str:
        """What the runs are compared by."""
        return "total value" if self.score is None else self.score[0]

    def face(self) -> Face:
        """Return what to show: how it ended and what to do, agents, constraints, how good it is, and the proof."""
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
            if pairs := int(self.settings.get("pairs_moved", 0)):
                parts.append(f"{counted(pairs, 'time')} two agents moved together, which is counted")
            if self.witness is not None:
                parts += self.witness.told(self.certificate.names)
            parts += self._how_good()
        if len(self.equilibria) > 1:
            parts += ["distinct equilibria, best first:", _equilibria_table(self.equilibria)]
        return Face(self.status.name, self.message, tuple(parts), good=self.accepted)

    def _how_good(self) -> list[str | Table]:
        """Say how the policy stands among all feasible ones, among the runs, and beside selfish play."""
        welfare, spread = self.quality.welfare, self.quality.spread
        parts: list[str | Table] = [] if welfare is None else [f"how good: {welfare.told}"]
        if len(self.runs) > 1 and len({run.start for run in self.runs}) == len(self.runs):
            ends = [f"{run.start} {run.status.name if run.score is None else f'{run.score:.6g}'}" for run in self.runs]
            parts.append(f"the best of {len(self.runs)} starts, by {self.compared_by}: {', '.join(ends)}")
        elif spread is not None:
            parts.append(f"spread: {spread.told}")
        table = None if self.selfish is None else self.quality.table(self.selfish)
        return [*parts, *([] if table is None else [table])]

    def __repr__(self) -> str:
        """Return one line, for which no bound is computed."""
        return headline_line(type(self).__name__, Face(self.status.name, self.message))

    __str__, _repr_html_ = text, html

    def save(self, folder: str | Path) -> None:
        """Write a run folder, new or empty: game, policy with its multipliers, certificate, trace; see `load_run`."""
        from cmpg.files.run_folder import save_run  # a room below: files are written on demand

        save_run(folder, self)

    def to_frame(self, what: str = "schedule") -> pandas.DataFrame:
        """Return a table with names and units: "schedule", "policy", "outcomes", "loads" or "trace"; needs pandas."""
        from cmpg.report.tables import frame_of  # a room below: tables are made on demand

        return frame_of(self, what)

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


# --- How good is it? -------------------------------------------------------------------------------------------------

BEST = 1e-6
"""A value this close to the bound, relative to both, is the best possible for all that matters."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What a policy is worth by one objective, and what no feasible policy exceeds.

    Examples
    --------
    >>> bound = UpperBound(80.0, np.zeros(0), "a planner who chooses all actions")
    >>> print(Standing(Objective.WELFARE, 60.0, bound).told)
    at least 75 % of the best possible total value, which is at most 80 (a planner who chooses all actions)
    """

    objective: Objective
    value: float
    bound: UpperBound | None  # None: unknown

    __repr__ = fields_line

    @property
    def gap(self) -> float:
        """No feasible policy is worth more than this much more; infinite where nothing is known."""
        return math.inf if self.bound is None else max(self.bound.value - self.value, 0.0)

    @property
    def share(self) -> float | None:
        """The value as a share of the bound, where both are positive; None elsewhere, and for a potential.

        A potential is defined up to a constant, so only its differences mean anything.
        """
        if self.bound is None or self.objective is Objective.POTENTIAL or self.value <= 0 or self.bound.value <= 0:
            return None
        return min(self.value / self.bound.value, 1.0)

    @property
    def told(self) -> str:
        """How good that is, in a sentence without its end."""
        noun = f"the best possible {self.objective.value}"
        if self.bound is None:
            return f"{noun} is unknown: no bound was affordable for this game"
        most = f"which is at most {self.bound.value:.6g} ({self.bound.proof})"
        size = abs(self.value) + abs(self.bound.value)
        if self.gap <= BEST * size:
            return f"{noun}: no feasible policy has more ({self.bound.proof})"
        if self.share is not None:
            return f"at least {_rounded_down(100 * self.share)} % of {noun}, {most}"
        if self.objective is Objective.WELFARE and self.value < 0 and self.bound.value < 0:
            more = _rounded_up(100 * self.gap / -self.bound.value)
            return f"within {more} % of {noun}, {most}"
        return f"at most {self.gap:.4g} below {noun}, {most}"


def _rounded_down(percent: float) -> str:
    """Return a percentage with one decimal where that says more, never above what is proved."""
    return f"{math.floor(percent * 10 + 1e-9) / 10:g}"


def _rounded_up(percent: float) -> str:
    return f"{math.ceil(percent * 10 - 1e-9) / 10:g}"


@dataclass(frozen=True, eq=False)
class Spread:
    """What the certified endings of several runs are worth, by what they are compared by."""

    objective: str
    scores: FloatArray  # [runs that were certified]

    __repr__ = fields_line

    @property
    def told(self) -> str:
        """The spread in a sentence without its end."""
        low, middle, high = np.quantile(self.scores, (0.0, 0.5, 1.0))
        if high - low <= BEST * (abs(low) + abs(high)):
            return f"all {len(self.scores)} certified runs end at the same {self.objective}, {high:.6g}"
        return (
            f"{len(self.scores)} certified runs: {self.objective} from {low:.6g} to {high:.6g}, the median {middle:.6g}"
        )


@dataclass(frozen=True, eq=False)
class Quality:
    """How good a result's policy is.

    Examples
    --------
    >>> from cmpg.equilibrium.solve import solve
    >>> from cmpg.scenarios import grid_world
    >>> quality = solve(grid_world()).quality
    >>> quality.welfare.told
    'the best possible total value: no feasible policy has more (a planner who chooses all actions)'
    """

    result: Result

    __repr__ = fields_line

    @cached_property
    def welfare(self) -> Standing | None:
        """The sum of the agents' values; None where there is no policy."""
        return self._standing(Objective.WELFARE)

    @cached_property
    def potential(self) -> Standing | None:
        """The potential, above that of the uniform policy; None where no potential is known, or time is up."""
        game = self._game
        try:
            known = game is not None and game.potential_proof() is not None
            return self._standing(Objective.POTENTIAL) if known else None
        except OutOfTimeError:
            return None

    @property
    def spread(self) -> Spread | None:
        """What the certified endings of all runs are worth; None where there was one run."""
        scores = [run.score for run in self.result.runs if run.score is not None]
        return Spread(self.result.compared_by, np.array(scores)) if len(scores) > 1 else None

    @property
    def _game(self) -> Game | None:
        found = self.result.incumbent
        return None if found is None or self.result.game is None else in_floats(self.result.game)

    def _standing(self, objective: Objective) -> Standing | None:
        game = self._game
        if game is None:
            return None
        policy = self.result.policy.floats()
        welfare = objective is Objective.WELFARE
        value = float(np.sum(self.result.values)) if welfare else float(game.potential(policy))
        multipliers = np.asarray(self.result.multipliers, dtype=np.float64)
        middle = np.median(np.where(np.isfinite(multipliers), multipliers, 0.0), axis=0)
        return Standing(objective, value, upper_bound(game, objective, policy, middle))

    def table(self, selfish: Result | None = None) -> Table | None:
        """Return the price of anarchy that was found: selfish play, this policy, and what is possible at most."""
        welfare = self.welfare
        if welfare is None:
            return None
        costs = [f"cost of {self.result.certificate.names.constraint(j)}" for j in range(len(self.result.costs))][:3]
        rows: list[tuple[Cell, ...]] = []
        if selfish is not None and selfish.incumbent is not None:
            rows.append(_row("selfish, no constraints", selfish, len(costs)))
        rows.append(_row("this policy", self.result, len(costs)))
        bound = "unknown" if welfare.bound is None else fixed(welfare.bound.value)
        limits = [significant(float(limit), 6) for limit in self.result.certificate.thresholds[: len(costs)]]
        rows.append(("no feasible policy exceeds", bound, *limits))
        return Table(("", "total value", *costs), tuple(rows))


def _row(name: str, result: Result, num_costs: int) -> tuple[Cell, ...]:
    return (name, fixed(float(np.sum(result.values))), *(significant(cost, 6) for cost in result.costs[:num_costs]))


def upper_bound(game: Game, objective: Objective, near: JointPolicy, multipliers: FloatArray) -> UpperBound | None:
    """Return what no feasible policy of a game in floats exceeds; None where that is unknown.

    Parameters
    ----------
    game
        Any game.
    objective
        What policies are compared by; a potential is counted as by `game.potential`.
    near
        A good feasible policy, where a bound may be sought.
    multipliers : [k]
        What all agents might pay there.
    """
    try:
        if isinstance(game, PlansFor):
            return planned_bound(game.planner(objective))
        return game.upper_bound(objective, near, multipliers) if isinstance(game, Bounded) else None
    except CMPGError:
        return None


def planned_bound(planner: Planner | None) -> UpperBound | None:
    """Return what a planner's optimum proves of all feasible policies; None where there is no planner or no policy."""
    from cmpg.cmdp.exact import proved_maximum  # on demand: results need no solver

    if planner is None:
        return None
    try:
        value, multipliers = proved_maximum(planner.cmdp)
    except InfeasibleError:
        return None
    return UpperBound(value, multipliers, planner.told)
