"""The table of claims: what the paper says, where, how it is computed again, and what must come out.

A claim is one function. Its name is the claim's key, its docstring is the statement, and the line above it is its row:

    @agrees("Proposition 3", paper="3.5 at λ = 1", expect=near(3.5, 1.0))
    def dual_value(evidence: Evidence) -> Finding:
        '''D* and λ*'''

`expect` has one interval for each number of the finding. `cmpg reproduce` and the tests read the same rows: a claim
whose numbers leave their intervals is marked "unexpected" on the page, ends the command with exit code 1, and fails
its test. No expected number stands anywhere else.

`Evidence` is what claims are computed from: how much is run, streams of random numbers, and studies that several claims
share. Every study has a stream of its own, named after it: the same seed gives the same evidence, bit for bit, in any
order and for any number of jobs. `run_many` is most of it: many runs of CA-CMPG. A cycle of the paper is one iteration:
all agents solve once, and the one who gains most moves. Runs end after different numbers of cycles; from there on a run
counts with gains of zero and with its last cost.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, SupportsFloat, TypeVar

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.ascent import Ascent, coordinate_ascent
from cmpg.equilibrium.loop import GreatestGain
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.runs import uninterrupted
from cmpg.errors import CMPGError
from cmpg.games.game import Game
from cmpg.policy import JointPolicy
from cmpg.runs.runner import Jobs, in_order, run_tasks
from cmpg.summaries import fields_line

Tick = Callable[[str, int, int], None]
"""A function that is called with what is being done, how much of it is done, and how much there is."""

Study = TypeVar("Study")

Start = Callable[[Game, np.random.Generator], JointPolicy]
"""Draws a feasible start."""

BEYOND_ROUNDING = 1e-12
"""A cost that exceeds its threshold by more than this is a violation, not rounding."""

REPOSITORY = "the authors' repository"
SOURCE = f"{REPOSITORY} (github.com/pragnya-alatur/provably-learning-nash-cmpgs)"
"""The source of settings of the published experiments that the paper does not give."""

NOT_STATED = "not stated"
"""The entry of the paper's column if the paper is silent."""

Computation = Callable[["Evidence"], "Finding"]

Intervals = tuple[tuple[float, float], ...]
"""Where numbers must lie, ends included."""

ANY: Intervals = ((-math.inf, math.inf),)
"""A number that is shown and may be anything."""


class Agreement(Enum):
    """What the numbers mean for the paper's claim, if they come out as expected."""

    AGREES = "agrees"
    DIFFERS = "differs"
    ADDED = "added"  # the paper gives nothing to compare with


@dataclass(frozen=True)
class Finding:
    """What a computation found: in words, and as the numbers behind them."""

    ours: str
    numbers: tuple[float, ...]

    @staticmethod
    def of(ours: str, *numbers: SupportsFloat) -> Finding:
        """Return a finding; truth values count as 1 and 0."""
        return Finding(ours, tuple(float(number) for number in numbers))


@dataclass(frozen=True)
class PaperClaim:
    """One row of the table.

    Examples
    --------
    >>> from cmpg.paper import CLAIMS
    >>> claim = next(each for each in CLAIMS if each.key == "dual-value")
    >>> claim.where, claim.paper, claim.agreement.name
    ('Section 4, Proposition 3', '3.5 at λ = 1', 'AGREES')
    """

    key: str
    where: str  # in the paper
    statement: str
    paper: str  # the value that the paper gives
    agreement: Agreement
    expect: Intervals
    why: str
    compute: Computation

    def check(self, evidence: Evidence) -> CheckedClaim:
        """Compute the claim."""
        return CheckedClaim(self, self.compute(evidence))


@dataclass(frozen=True)
class CheckedClaim:
    """A row, and what this run found.

    Examples
    --------
    >>> from cmpg.paper import CLAIMS
    >>> claim = next(each for each in CLAIMS if each.key == "dual-value")
    >>> checked = claim.check(Evidence())
    >>> checked.claim.key, checked.finding.ours
    ('dual-value', '3.5 at λ = 1')
    """

    claim: PaperClaim
    finding: Finding

    @property
    def as_expected(self) -> bool:
        """Whether every number lies in its interval."""
        pairs = zip(self.finding.numbers, self.claim.expect, strict=True)
        return all(low <= number <= high or (low, high) in ANY for number, (low, high) in pairs)

    @property
    def verdict(self) -> str:
        """Return one word for the page: what the row says, or that it came out otherwise."""
        return self.claim.agreement.value if self.as_expected else "unexpected"


def agrees(where: str, *, paper: str, expect: Intervals, why: str = "") -> Callable[[Computation], PaperClaim]:
    """Make a row out of a function: the paper is right."""
    return lambda compute: _row(where, paper, Agreement.AGREES, expect, why, compute)


def differs(where: str, *, paper: str, expect: Intervals, why: str) -> Callable[[Computation], PaperClaim]:
    """Make a row out of a function: the paper is wrong, and the numbers show it."""
    return lambda compute: _row(where, paper, Agreement.DIFFERS, expect, why, compute)


def added(where: str, *, expect: Intervals, why: str = "") -> Callable[[Computation], PaperClaim]:
    """Make a row out of a function: the paper gives no value."""
    return lambda compute: _row(where, NOT_STATED, Agreement.ADDED, expect, why, compute)


def _row(where: str, paper: str, agreement: Agreement, expect: Intervals, why: str, compute: Computation) -> PaperClaim:
    name = compute.__name__.replace("_", "-")
    statement = " ".join((compute.__doc__ or name).split()).removesuffix(".")
    return PaperClaim(name, where, statement, paper, agreement, expect, why, compute)


def near(*values: float, tolerance: float = 1e-9) -> Intervals:
    """Return an interval around each value."""
    return tuple((value - tolerance, value + tolerance) for value in values)


def rough(*values: float) -> Intervals:
    """Return an interval around each value that is given to two digits."""
    return tuple((0.97 * value, 1.03 * value) for value in values)


def between(low: float, high: float) -> Intervals:
    """Return one interval; rows are put together with `+`."""
    return ((low, high),)


def above(low: float) -> Intervals:
    """Return the interval of everything from `low` on."""
    return ((low, math.inf),)


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn when it is needed; `draw` returns a matplotlib Figure."""

    name: str  # of its files
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """What belongs together: claims, and the pictures that show them."""

    title: str
    note: str
    claims: tuple[PaperClaim, ...]
    pictures: Callable[[Evidence], tuple[Picture, ...]]


def rows_of(module: Mapping[str, Any]) -> tuple[PaperClaim, ...]:
    """Return the claims that a module defines, in its order."""
    return tuple(each for each in module.values() if isinstance(each, PaperClaim))


def written(number: SupportsFloat, *, digits: int = 10) -> str:
    """Write a number with this many significant digits, and rounding noise as zero.

    Examples
    --------
    >>> written(3.0857864376269046), written(1e-13), written(23.1), written(3.2e12, digits=2)
    ('3.085786438', '0', '23.1', '3.2e+12')
    """
    plain = float(number)
    if not math.isfinite(plain):
        return str(plain)
    return "0" if abs(plain) < 1e-11 else f"{plain:.{digits}g}"


def listed(numbers: Iterable[SupportsFloat], *, digits: int = 6) -> str:
    """Write several numbers, with commas."""
    return ", ".join(written(number, digits=digits) for number in numbers)


def share(part: int, whole: int) -> str:
    """Write a share in percent, with the counts.

    Examples
    --------
    >>> share(7, 20)
    '35 % (7 of 20)'
    """
    return f"{100 * part / whole:.3g} % ({part} of {whole})"


def at_most(number: float, bound: float) -> str:
    """Write that a number is noise by naming the bound that it keeps, or the number where it is more than that.

    Examples
    --------
    >>> at_most(3e-14, 1e-9), at_most(0.25, 1e-9)
    ('at most 1e-09', '0.25')
    """
    return f"at most {bound:.0e}" if number <= bound else written(number, digits=4)


# Evidence.


@dataclass(frozen=True)
class Effort:
    """Numbers of runs and draws; the defaults are the paper's, where it names any.

    Examples
    --------
    >>> from cmpg.paper import QUICK
    >>> QUICK.matrix_starts < Effort().matrix_starts
    True
    """

    dual_points: int = 1000
    matrix_starts: int = 2000  # starts of the counter-example
    grid_plots: int = 20  # runs of the grid world in the plots
    joint_runs: int = 200  # of each variant with joint-state policies, for shares
    own_cell_runs: int = 200  # of each variant with own-cell policies, for shares and for the best of ten
    deviation_checks: int = 60  # own-cell endings that are tried against joint-state deviations
    congestion_plots: int = 50  # runs of the congestion game in the plots
    congestion_runs: int = 200  # of each kind of start, for the shares of endings
    solver_runs: int = 20  # with each of the paper's own solvers
    cycle_proposals: int = 20_000  # in the search for the largest 4-cycle
    lemma_draws: int = 200
    coverage_seeds: int = 200  # of the learners; a tenth of it with safe exploration
    learn_large_games: bool = True  # those that take minutes


FULL = Effort()
QUICK = Effort(
    matrix_starts=100,
    grid_plots=3,
    joint_runs=5,
    own_cell_runs=20,
    deviation_checks=6,
    congestion_plots=6,
    congestion_runs=6,
    solver_runs=3,
    cycle_proposals=3000,
    lemma_draws=50,
    coverage_seeds=10,
    learn_large_games=False,
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What claims are computed from; a study that several claims share is made once.

    Parameters
    ----------
    seed
        Random seed for starts, tie-breaking and samples.
    effort
        How much to run: `FULL`, or `QUICK` for a first look with rough shares.
    jobs
        Processes, or a cluster; the evidence has the same bits for any number.
    tick
        Called with what is being done, how much is done, and how much there is.

    Examples
    --------
    >>> from cmpg.paper import CLAIMS
    >>> evidence = Evidence(seed=1)
    >>> [claim.check(evidence).finding.ours for claim in CLAIMS if claim.key == "dual-value"]
    ['3.5 at λ = 1']
    """

    seed: int = 1
    effort: Effort = FULL
    jobs: int | Jobs = 1
    tick: Tick = lambda *_: None
    _studies: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    __repr__ = fields_line

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise CMPGError(f"seed is {self.seed}; it must not be negative.")
        Jobs.of(self.jobs)  # which complains where it cannot be

    def of(self, study: Callable[[Evidence], Study]) -> Study:
        """Return what a study finds, from memory if it was made before."""
        if study not in self._studies:
            self._studies[study] = study(self)
        found: Study = self._studies[study]
        return found

    def streams(self, name: str, count: int) -> list[np.random.Generator]:
        """Return generators that depend on the seed and the name alone."""
        root = np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(name.encode()),))
        return [np.random.default_rng(child) for child in root.spawn(count)]

    def rng(self, name: str) -> np.random.Generator:
        """Return one such generator."""
        return self.streams(name, 1)[0]


@dataclass(frozen=True, eq=False)
class AscentRun:
    """One run of CA-CMPG: what each agent could gain, and what was spent, in each cycle; and how it ended."""

    result: Result
    gains: FloatArray  # [cycles, n]
    costs: FloatArray  # [cycles], before the cycle's move; the last cycle moves no agent
    potential: float  # of the last policy: the common value, or the sum of own values
    epsilon: float  # that was required

    @property
    def policy(self) -> JointPolicy:
        """The policy that it ended with."""
        return self.result.policy

    @property
    def settled(self) -> bool:
        """Whether it ended with a certificate of the required ε, after a cycle in which no agent gained ε/2."""
        last = self.result.trace[-1]
        proved = self.result.certified and self.result.certificate.epsilon <= self.epsilon
        return proved and last.mover is None and bool(last.gain <= self.epsilon / 2)

    def violations(self, threshold: float) -> int:
        """Count the iterates that exceed the threshold."""
        return int(np.count_nonzero(self.costs > threshold + BEYOND_ROUNDING))


PAPER_ASCENT = Ascent(schedule=GreatestGain())
"""Algorithm 1 with the paper's schedule, whatever the number of agents."""


def run_many(
    evidence: Evidence,
    game: Game,
    start: Start,
    *,
    count: int,
    what: str,
    random_ties: bool = True,
    common_value: bool = False,
    method: Ascent = PAPER_ASCENT,
    epsilon: float = 1e-6,
) -> tuple[AscentRun, ...]:
    """Run CA-CMPG from `count` random starts.

    Parameters
    ----------
    evidence
        Random streams, jobs, progress.
    game
        Any game.
    start
        Draws a feasible start.
    count
        How many runs.
    what
        What they are, in the progress line; also the name of their random stream.
    random_ties
        Whether ties between best responses are broken at random; otherwise the first action wins.
    common_value
        Whether all agents have the same reward, so that agent 0's value is the potential; otherwise the values add up.
    method, epsilon
        Passed on to `coordinate_ascent`.
    """

    def one(rng: np.random.Generator) -> AscentRun:
        drawn = start(game, rng)
        ties = rng if random_ties else None
        result = uninterrupted(coordinate_ascent(game, drawn, epsilon=epsilon, method=method, rng=ties))
        return AscentRun(
            result=result,
            gains=np.array([step.gains for step in result.trace]),
            costs=np.array([float(step.costs[0]) for step in result.trace]),
            potential=float(result.values[0] if common_value else result.values.sum()),
            epsilon=epsilon,
        )

    done = []
    for number, run in enumerate(in_order(run_tasks(one, evidence.streams(what, count), jobs=evidence.jobs)), 1):
        done.append(run)
        evidence.tick(what, number, count)
    return tuple(done)


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean over runs, and its standard error, by cycle."""

    mean: FloatArray  # [cycles, ...]
    error: FloatArray  # [cycles, ...]


def certified(runs: Sequence[AscentRun]) -> int:
    """Count the runs that ended with a certificate."""
    return sum(run.settled for run in runs)


def cycles_and_certified(runs: Sequence[AscentRun]) -> tuple[float, str]:
    """Return how many cycles runs took on average, and a sentence with that and how many were certified."""
    cycles = float(np.mean([len(run.costs) for run in runs]))
    return cycles, f"{certified(runs)} of {len(runs)} runs certified, after {cycles:.1f} cycles on average"


def costs_at_the_end(runs: Sequence[AscentRun], threshold: float) -> tuple[float, int]:
    """Return what the last policies cost on average, and how many of them cost what the threshold allows."""
    last = np.array([run.costs[-1] for run in runs])
    return float(last.mean()), int(np.count_nonzero(np.abs(last - threshold) <= 1e-6))


def gain_curve(runs: Sequence[AscentRun]) -> Curve:
    """Average the gains of every agent: [cycles, n]; a run that has ended gains nothing."""
    longest = max(len(run.gains) for run in runs)
    return _curve([np.pad(run.gains, ((0, longest - len(run.gains)), (0, 0))) for run in runs])


def cost_curve(runs: Sequence[AscentRun]) -> Curve:
    """Average the cost: [cycles]; a run that has ended keeps its last cost."""
    longest = max(len(run.costs) for run in runs)
    return _curve([np.pad(run.costs, (0, longest - len(run.costs)), mode="edge") for run in runs])


def _curve(rows: Sequence[FloatArray]) -> Curve:
    table = np.stack(rows)
    spread = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.zeros(table.shape[1:])
    return Curve(table.mean(axis=0), spread)
