"""`cmpg solve`: from a game to a certified equilibrium, shown, and kept in a run folder if one is named.

Exit codes: 0 certified, or accepted by --allow-rounding; 1 ended without a certificate (the status says why); 2 bad
input; 130 interrupted before there was anything to keep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, cast

import typer

import cmpg
from cmpg import equilibrium, files, games, interop, report
from cmpg.cli.crowds import refuse_for_crowds, solve_crowd_target
from cmpg.cli.interrupts import on_interrupt, written
from cmpg.cli.options import (
    DEFAULT_EPSILON,
    AllowRounding,
    Backend,
    Epsilon,
    Exact,
    Json,
    Scheduler,
    Seed,
    changed,
    check_out,
    check_words,
    further,
    jobs_of,
    option,
)
from cmpg.cli.output import ProgressLine, progress_line, remark, rescaling_message, show, show_json
from cmpg.cli.risk import RiskBudgets, deliver_cvar, law_record, laws_of, with_budgets
from cmpg.cli.targets import GameArgument, Target, chosen, converted, finite, one_of, policy_of
from cmpg.deadline import limited, limited_work
from cmpg.errors import CMPGError, FileError, GameError, OutOfTimeError
from cmpg.scenarios import Origin
from cmpg.summaries import Summary, table_text

if TYPE_CHECKING:
    from cmpg.equilibrium.ascent import Ascent
    from cmpg.equilibrium.quality import OptimalityGap
    from cmpg.equilibrium.result import Result, Step
    from cmpg.equilibrium.runs import Restarts
    from cmpg.equilibrium.starts.pairs import PairMoves
    from cmpg.games.game import Game
    from cmpg.games.risk import CostLaw


NAMED: dict[str, dict[str, Callable[[], Any]]] = {
    "solver": {
        "exact": lambda: cmpg.Exact(),
        "lp": lambda: cmpg.LinearProgram(),
        "primal-dual": lambda: cmpg.PrimalDual(),
    },
    "schedule": {
        "auto": lambda: None,
        "greatest-gain": lambda: equilibrium.GreatestGain(),
        "round-robin": lambda: equilibrium.RoundRobin(),
    },
    "prefer": {
        "auto": lambda: None,
        "potential": lambda: equilibrium.by_potential,
        "welfare": lambda: equilibrium.by_welfare,
    },
    "start": {
        "auto": lambda: None,
        "planner": lambda: equilibrium.PlannerStart(),
        "min-cost": lambda: equilibrium.MinCostStart(),
        "common-price": lambda: equilibrium.CommonPrice(),
    },
    "concept": {
        "nash": lambda: cmpg.Concept.NASH,
        "rota": lambda: cmpg.Concept.ROTA,
        "correlated": lambda: cmpg.Concept.CORRELATED,
        "coarse": lambda: cmpg.Concept.COARSE,
    },
    "improve": {
        "auto": lambda: equilibrium.PairMoves(),
        "none": lambda: None,
        "thorough": lambda: equilibrium.PairMoves(trades=16, worth=1e-4, most=64),
    },
}
"""The names that the command line has for values of the library, by option; values are made on demand."""


@dataclass(frozen=True)
class ClaimOptions:
    """What is found, and what must be proved of it."""

    HEADING: ClassVar = "What to find"
    concept: Annotated[str, option("nash, rota, correlated or coarse.", words=NAMED["concept"])] = "nash"
    epsilon: Epsilon = DEFAULT_EPSILON
    exact: Exact = False
    allow_rounding: AllowRounding = 0.0


@dataclass(frozen=True)
class Search:
    """How a Nash policy is looked for."""

    HEADING: ClassVar = "How to find it"
    restarts: Annotated[int, option("Runs from different starts; the best is kept.", least=1)] = 1
    prefer: Annotated[
        str,
        further(
            "Which equilibrium is best: potential or welfare; auto is potential if the game is known to have one.",
            words=NAMED["prefer"],
        ),
    ] = "auto"
    solver: Annotated[
        str,
        further(
            "How best responses are computed: exact, lp or primal-dual; or NAME, NAME:option=value,… of a plugin.",
            words=lambda: [*NAMED["solver"], *_plugin_solvers()],
        ),
    ] = "exact"
    schedule: Annotated[
        str, further("Who moves next: auto, greatest-gain or round-robin.", words=NAMED["schedule"])
    ] = "auto"
    start: Annotated[
        str,
        further(
            "Where to begin: auto, planner, min-cost, common-price, or a policy file. Near a "
            "policy that breaks a threshold, a feasible start is sought.",
            words=NAMED["start"],
        ),
    ] = "auto"
    improve: Annotated[
        str,
        further(
            "Whether pairs of agents move together at the end if that is better: auto, none, or thorough.",
            words=NAMED["improve"],
        ),
    ] = "auto"
    max_iterations: Annotated[int | None, further("Most moves of a run; Theorem 1's bound if omitted.", least=0)] = None


@dataclass(frozen=True)
class Execution:
    """How long it may take, what is drawn, and where it runs."""

    HEADING: ClassVar = "Time, seed and processes"
    time_limit: Annotated[float | None, option("Most seconds, building the game included.")] = None
    seed: Seed = None
    workers: Annotated[int, further("Number of threads; the answer does not depend on it.", least=1)] = 1
    jobs: Annotated[int, further("Number of processes for restarts; -1 is all cores. Same answer.")] = 1
    backend: Backend = None
    scheduler: Scheduler = None


@dataclass(frozen=True)
class SolveOutput:
    """What is shown, and where it is kept."""

    HEADING: ClassVar = "Output"
    selfish: Annotated[bool, option("Also show what happens without the constraints.", "--selfish")] = False
    output: Annotated[Path | None, option("New folder for game, policy and certificate.", "--out")] = None
    tensorboard: Annotated[Path | None, further("Folder in which TensorBoard finds every step.")] = None
    as_json: Json = False


def solve(
    *,
    target: GameArgument,
    claim: ClaimOptions,
    budgets: RiskBudgets,
    search: Search,
    execution: Execution,
    wanted: SolveOutput,
) -> None:
    """Find a feasible policy that no agent gains by deviating from."""
    check_out(wanted.output, resume=False)
    # What only the search for a Nash policy of single agents understands
    special = [*changed(search), *changed(budgets), *changed(claim, "allow_rounding")]
    special += changed(wanted, "selfish", "tensorboard")
    is_nash = _named("concept", claim.concept) is cmpg.Concept.NASH
    if special and not is_nash:
        raise CMPGError(
            f"{', '.join(special)}: says how a Nash policy is found, and means nothing with --concept {claim.concept}."
        )
    on_interrupt(written(wanted.output))
    limit = inf if execution.time_limit is None else finite("time-limit", execution.time_limit)
    finite("epsilon", claim.epsilon, positive=True)
    if not is_nash:
        recommend_device(target, claim, wanted, limit=limit, seed=execution.seed)
    jobs, backend, scheduler = execution.jobs, execution.backend, execution.scheduler
    request = Request(
        target,
        claim,
        search,
        execution,
        method=cmpg.Ascent(
            solver=_solver(search.solver, claim.epsilon),
            schedule=_named("schedule", search.schedule),
            max_iterations=search.max_iterations,
            workers=execution.workers,
        ),
        restarts=cmpg.Restarts(
            search.restarts,
            prefer=_named("prefer", search.prefer),
            jobs=jobs if backend is None and scheduler is None else jobs_of(jobs, backend, scheduler),
        ),
        improve=_named("improve", search.improve),
        deadline=time.monotonic() + limit,
    )
    finite("allow-rounding", claim.allow_rounding)
    with ProgressLine("building the game") as progress:
        built: Any = _built(request, as_json=wanted.as_json)
        if isinstance(built, cmpg.CrowdGame):
            refuse_for_crowds([*special, *["--exact"] * claim.exact])
            progress.begin("looking for groups")
            solve_crowd_target(built, request, wanted, progress)
        risky = with_budgets(built, budgets)
        game = _shown(risky)
        reporter = _Reporter(progress, game, wanted.tensorboard)
        result, seconds = _solved(risky, request, reporter, selfish=wanted.selfish)
        progress.begin("computing the upper bound")
        every = wanted.as_json or wanted.output is not None
        gaps = _upper_bounds(result, time_limit=request.seconds_left, work=seconds / 2, all_objectives=every)
        progress.stop()
        known = {"restarts": search.restarts, "prefer": search.prefer, "max_iterations": search.max_iterations}
        known |= {"time_limit": execution.time_limit, "exact": claim.exact}
        known |= {} if search.start in NAMED["start"] else {"start": search.start}
        result = replace(result, settings={**result.settings, **known})
        laws = laws_of(risky, result) if budgets.words else ()
        delivery = Delivery(game, result, _origin(target, execution.seed, budgets.words), gaps, laws)
        if isinstance(risky, games.CVaRGame):
            deliver_cvar(risky, delivery, budgets, output=wanted.output, as_json=wanted.as_json)
        else:
            delivery.deliver(output=wanted.output, seed=request.seed, as_json=wanted.as_json)
    raise typer.Exit(0 if result.accepted else 1)


def _shown(game: Any) -> Game:
    """Return the game that is shown: with budgets on CVaR, one in which all that keep them may play."""
    if not isinstance(game, games.CVaRGame):
        return cast("Game", game)
    from cmpg.equilibrium.cvar import relaxed

    return relaxed(game)


def _origin(target: Target, seed: int | None, words: Sequence[str]) -> Origin:
    """Return where the game comes from; an augmented one is no longer the scenario, and has no picture of it."""
    origin = target.origin(seed=seed)
    return replace(origin, name=f"{origin.name} with {', '.join(words)}") if words else origin


def recommend_device(
    target: Target, claim: ClaimOptions, wanted: SolveOutput, *, limit: float, seed: int | None
) -> NoReturn:
    """Find a device, show it, and keep it in a folder if one is named."""
    gaps: list[OptimalityGap] = []
    with ProgressLine("building the game") as progress:
        game = target.build(seed=seed, exact=claim.exact)
        progress.begin("looking for a device")
        concept = _named("concept", claim.concept)
        found = cmpg.recommend(game, concept, epsilon=claim.epsilon, time_limit=limit, rng=seed)
        if found.device is not None:
            progress.begin("computing the upper bound")
            gaps = [found.quality(time_limit=min(limit, 10.0))]
    if wanted.output is not None:
        found.save(wanted.output)
    if wanted.as_json:
        show_json(files.devices.recommendation_record(found))
    else:
        show(report.recommendations.recommendation_summary(found, *gaps))
        if wanted.output is not None:
            name = f"device.{'json' if claim.exact else 'npz'}"
            check = check_words(wanted.output, name, exact=claim.exact, epsilon=claim.epsilon) if found.device else ""
            show(f"written to {wanted.output}/{check}")
    raise typer.Exit(0 if found.certified else 1)


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be solved, how, and by when."""

    target: Target
    claim: ClaimOptions
    search: Search
    execution: Execution
    method: Ascent
    restarts: Restarts
    improve: PairMoves | None
    deadline: float  # on the clock of time.monotonic

    @property
    def seed(self) -> int | None:
        """The seed; several runs have one in any case."""
        return 0 if self.execution.seed is None and self.search.restarts > 1 else self.execution.seed

    @property
    def rng(self) -> int | None:
        """The seed of starts and ties: none for one run of a game whose agents it has drawn already."""
        drawn = "seed" in self.target.origin(seed=self.execution.seed).options
        return None if drawn and self.search.restarts == 1 else self.seed

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return max(self.deadline - time.monotonic(), 0.0)

    def start(self, game: Game) -> Any:
        """Return the start that is named, or the policy of a file."""
        name = self.search.start
        if name not in NAMED["start"]:
            return policy_of(Path(name), game)[0]
        start = _named("start", name)
        return replace(start, workers=self.execution.workers) if name == "common-price" else start


def _named(option: str, name: str) -> Any:
    """Return the value that a name stands for, or raise with the names there are."""
    return chosen(option, name, NAMED[option])()


def _built(request: Request, *, as_json: bool) -> Game:
    """Build the game in time, or say that there was none."""
    from cmpg.arrays import counted_rescaling

    try:
        with counted_rescaling() as rescaling, limited(request.deadline):
            game = request.target.build(seed=request.execution.seed, exact=request.claim.exact)
    except OutOfTimeError:
        message = "the time limit was reached before a feasible policy was known. The game was still being built."
        if as_json:
            show_json({"format": "cmpg-result", "version": 1, "status": "FEASIBILITY_UNKNOWN", "message": message})
        else:
            show(Summary("FEASIBILITY_UNKNOWN", message, good=False))
        raise typer.Exit(1) from None
    if rescaling.rows:
        remark(rescaling_message(rescaling.rows))
    return game


def _solved(
    game: Game | games.CVaRGame, request: Request, reporter: _Reporter, *, selfish: bool
) -> tuple[Result, float]:
    """Solve the game, and say how many seconds that took; and the game without its constraints if that is wanted."""
    base = game.base if isinstance(game, games.CVaRGame) else game
    free = _without_constraints(base) if selfish else None
    start = request.start(base)
    began = time.process_time()
    reporter.progress.begin("looking for a feasible start")
    result = cmpg.solve(
        game,
        epsilon=request.claim.epsilon,
        start=start,
        method=request.method,
        restarts=request.restarts,
        improve=request.improve,
        time_limit=request.seconds_left,
        rng=request.rng,
        on_progress=reporter.show,
    )
    reporter.conclude(result)
    seconds, unbound = time.process_time() - began, None
    with suppress(KeyboardInterrupt):  # which must not lose the result of the game itself
        if free is not None and not result.interrupted:
            unbound = cmpg.solve(
                free,
                epsilon=request.claim.epsilon,
                method=replace(request.method, solver=cmpg.Exact()),
                improve=request.improve,
                time_limit=request.seconds_left,
                on_progress=reporter.show,
            )
    return replace(result, allow_rounding=request.claim.allow_rounding, selfish=unbound), seconds


MIN_BOUND_SECONDS = 0.5
"""The upper bound may take half as much work as the solve, but always this much: seconds of this process alone."""


def _upper_bounds(result: Result, *, time_limit: float, work: float, all_objectives: bool) -> list[OptimalityGap]:
    """Compute how good a result is, by welfare alone or by all objectives; nothing if it has no policy."""
    from cmpg.equilibrium.quality import known_gaps

    if result.incumbent is None or result.interrupted:
        return []
    with suppress(KeyboardInterrupt), limited_work(max(work, MIN_BOUND_SECONDS)):
        if all_objectives:
            return known_gaps(result, time_limit=time_limit)
        return [cmpg.quality(result, time_limit=time_limit)]
    return []


def _solver(name: str, epsilon: float) -> Any:
    """Return the solver that is named; a primal-dual method must be as precise as the claim needs."""
    if name not in NAMED["solver"]:
        return _plugin_solver(name)
    solver = _named("solver", name)
    return replace(solver, tolerance=epsilon / 4) if name == "primal-dual" else solver


def _plugin_solvers() -> list[str]:
    from cmpg import plugins

    return list(plugins.plugins(plugins.SOLVERS))


def _plugin_solver(word: str) -> Any:
    """Make the solver of another package, with the options that follow its name: `name:option=value,option=value`."""
    import inspect

    from cmpg import plugins

    name, _, text = word.partition(":")
    one_of("solver", name, (*NAMED["solver"], *_plugin_solvers()))
    if name in NAMED["solver"]:
        raise CMPGError(f"--solver is {word!r}; {name} takes no options here: give it to cmpg.solve in Python.")
    parameters = inspect.signature(plugins.plugins(plugins.SOLVERS)[name].load()).parameters
    options = {}
    for pair in text.split(",") if text else []:
        option, _, value = pair.partition("=")
        default = chosen(f"solver {name}", option, {each.name: each.default for each in parameters.values()})
        options[option] = converted(f"--solver {name}: {option}", value, type(default))
    return plugins.plugin_solver(name, **options)


def _without_constraints(game: Game) -> Game:
    from cmpg.games.constraints import without_constraints

    if len(game.thresholds) == 0:
        raise GameError("this game has no constraints, so play is selfish already. Leave --selfish out.")
    return without_constraints(game)


class _Reporter:
    """Shows the progress of a run, and writes it for TensorBoard if that is wanted."""

    def __init__(self, progress: ProgressLine, game: Game, tensorboard: Path | None) -> None:
        self.progress, self._game, self._watcher = progress, game, None
        if tensorboard is not None:
            self._watcher = interop.tensorboard_watcher(tensorboard, names=game.names)

    def show(self, step: Step) -> None:
        """Show one step."""
        self.progress.begin("looking for the next move")
        self.progress.show(progress_line(step, self._game.thresholds, self._game.names))
        if self._watcher is not None:
            self._watcher(step)

    def conclude(self, result: Result) -> None:
        """Write how the run ended; steps of a further run are shown alone."""
        if self._watcher is not None:
            self._watcher.conclude(result)
            self._watcher = None


@dataclass(frozen=True, eq=False)
class Delivery:
    """What there is to show and to keep."""

    game: Game
    result: Result
    origin: Origin
    gaps: Sequence[OptimalityGap]
    laws: Sequence[CostLaw] = ()  # of every cost, if there are budgets on risk

    def deliver(self, *, output: Path | None, seed: int | None, as_json: bool) -> None:
        """Write the run folder, and show the result, even if writing fails."""
        record, failure = None, None
        if output is not None:
            try:
                record = files.run_folder.save_run(
                    output, self.result, quality=self.gaps, seed=seed, origin=self.origin
                )
            except FileError as problem:
                failure = problem
        if as_json:
            known = record or files.records.result_record(self.result, self.game, quality=self.gaps, seed=seed)
            show_json({**known, "laws": [law_record(law) for law in self.laws]} if self.laws else known)
        else:
            self.show()
        if failure is not None:
            raise failure
        if output is not None and not as_json:
            show(f"written to {output}/{self.check(output) if self.result.incumbent is not None else ''}")

    def check(self, output: Path, *budgets: str) -> str:
        """Name the command that checks the folder as it was judged: same game, same arithmetic, same claim."""
        result = self.result
        allowed = ["--allow-rounding", f"{result.allow_rounding}"] if result.allow_rounding else []
        exact = result.certificate.arithmetic == "exact"
        return check_words(output, "policy.npz", *budgets, *allowed, exact=exact, epsilon=result.epsilon)

    def show(self) -> None:
        """Show the result, and the laws of its costs."""
        show(
            report.display.result_summary(self.result, *self.gaps[:1]),
            *report.display.translation_lines(self.game.names.legend),
        )
        if self.result.selfish is not None:
            show(report.display.selfish_line(self.result.selfish, self.result, self.game.thresholds))
        if self.laws:
            from cmpg.games.risk import law_rows

            show(table_text(law_rows(self.laws)))
