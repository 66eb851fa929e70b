"""`cmpg solve`: from a game to a certified equilibrium, shown, and kept in a run folder if one is named.

Exit codes: 0 certified, or accepted by --allow-rounding; 1 ended without a certificate (the status says why); 2 bad
input; 130 interrupted before there was anything to keep.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    check_out,
    jobs_of,
)
from cmpg.cli.output import ProgressLine, progress_line, remark, show, show_json, told_rescaling
from cmpg.cli.targets import GameArgument, chosen, converted, finite, policy_of

if TYPE_CHECKING:
    from cmpg.equilibrium.quality import OptimalityGap
    from cmpg.equilibrium.result import Result, Step
    from cmpg.games.contract import Game
    from cmpg.scenarios import Origin


SOLVERS = ("exact", "lp", "primal-dual")
"""The solvers of the library by their names."""


def solve(
    target: GameArgument,
    epsilon: Epsilon = DEFAULT_EPSILON,
    restarts: Annotated[
        int, typer.Option(min=1, metavar="<int>", help="Number of runs, from different starts; the best is kept.")
    ] = 1,
    prefer: Annotated[
        str,
        typer.Option(
            help="Which equilibrium is best: potential or welfare; auto is potential if the game is known to have one.",
            autocompletion=lambda: ["auto", "potential", "welfare"],
        ),
    ] = "auto",
    solver: Annotated[
        str,
        typer.Option(
            help="How best responses are computed: exact, lp or primal-dual; or NAME, NAME:option=value,… of a plugin.",
            autocompletion=lambda: [*SOLVERS, *_plugin_solvers()],
        ),
    ] = "exact",
    schedule: Annotated[
        str,
        typer.Option(
            help="Who moves next: auto, greatest-gain or round-robin.",
            autocompletion=lambda: ["auto", "greatest-gain", "round-robin"],
        ),
    ] = "auto",
    max_iterations: Annotated[
        int | None, typer.Option(min=0, metavar="<int>", help="Most moves of a run; Theorem 1's bound if omitted.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Most seconds for everything, building the game included.")
    ] = None,
    allow_rounding: AllowRounding = 0.0,
    workers: Annotated[
        int, typer.Option(min=1, metavar="<int>", help="Number of threads; the answer does not depend on it.")
    ] = 1,
    jobs: Annotated[
        int, typer.Option(metavar="<int>", help="Number of processes for restarts; -1 is all cores. Same answer.")
    ] = 1,
    backend: Backend = None,
    scheduler: Scheduler = None,
    seed: Seed = None,
    start: Annotated[
        str,
        typer.Option(
            help="Where to begin: auto, planned, cheapest, common-price, or the file of a feasible policy.",
            autocompletion=lambda: ["auto", *STARTS],
        ),
    ] = "auto",
    improve: Annotated[
        str,
        typer.Option(
            help="Whether two agents move together at the end where that is better: auto, none, or thorough.",
            autocompletion=lambda: ["auto", "none", "thorough"],
        ),
    ] = "auto",
    exact: Exact = False,
    selfish: Annotated[bool, typer.Option("--selfish", help="Also show what happens without the constraints.")] = False,
    output: Annotated[
        Path | None, typer.Option("--out", help="New folder for the game, the policy and the certificate.")
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder in which TensorBoard finds every step.")] = None,
    as_json: Json = False,
) -> None:
    """Find a feasible policy that no agent gains by leaving."""
    import numpy as np

    from cmpg.arrays import counted_rescaling
    from cmpg.deadline import limited
    from cmpg.equilibrium.solve import solve as find
    from cmpg.errors import OutOfTimeError

    check_out(output, resume=False)
    on_interrupt(written(output))
    settings: dict[str, Any] = {
        "prefer": _auto_or("prefer", prefer, "potential", "welfare"),
        "solver": _solver(solver, finite("epsilon", epsilon, positive=True)),
        "schedule": _auto_or("schedule", schedule, "greatest-gain", "round-robin"),
        "max_iterations": max_iterations,
        "time_limit": np.inf if time_limit is None else finite("time-limit", time_limit),
        "allow_rounding": finite("allow-rounding", allow_rounding),
        "workers": workers,
        "jobs": jobs if backend is None and scheduler is None else jobs_of(jobs, backend, scheduler),
        **_improve(improve),
    }
    drawn = 0 if seed is None and restarts > 1 else seed
    began = time.monotonic()
    with ProgressLine("building the game") as progress:
        try:
            with counted_rescaling() as rescaling, limited(began + settings["time_limit"]):
                game = target.build(seed=seed, exact=exact)
        except OutOfTimeError:
            _show_unbuilt(as_json=as_json)
            raise typer.Exit(1) from None
        settings["time_limit"] = max(began + settings["time_limit"] - time.monotonic(), 0.0)
        if exact and rescaling.rows:
            remark(told_rescaling(rescaling.rows))
        free = _unbound(game) if selfish else None
        first = _start(start, game, workers)
        course = _Course(progress, game, tensorboard)
        settings["on_progress"] = course.show
        asked = {"restarts": restarts, "prefer": prefer, "max_iterations": max_iterations, "time_limit": time_limit}
        asked |= {"exact": exact} | ({} if start in ("auto", *STARTS) else {"start": start})
        progress.begin("looking for a feasible start")
        solving = time.monotonic()
        result = find(game, epsilon=epsilon, start=first, restarts=restarts, seed=drawn, **settings)
        settings["on_progress"] = course.conclude(result)
        unbound = None
        # Ctrl-C while this runs must not lose what was asked for first.
        with suppress(KeyboardInterrupt):
            if free is not None and not result.interrupted:
                unbound = find(free, epsilon=epsilon, **(settings | {"solver": "exact"}))
        result = replace(result, settings={**result.settings, **asked}, selfish=unbound)
        progress.begin("computing the upper bound")
        seconds = max(MIN_BOUND_SECONDS, (time.monotonic() - solving) / 2)
        gaps: list[OptimalityGap] = []
        with suppress(KeyboardInterrupt), limited(began + (np.inf if time_limit is None else 1.1 * time_limit)):
            if not result.interrupted:
                gaps = _upper_bounds(result, seconds, all_objectives=as_json or output is not None)
        progress.stop()
        solved = _Solved(game, result, target.origin(seed=seed), gaps)
        solved.deliver(output=output, seed=drawn, as_json=as_json)
    raise typer.Exit(0 if result.accepted else 1)


MIN_BOUND_SECONDS = 0.5
"""The upper bound may take half as long as the solve, but always this long."""


def _upper_bounds(result: Result, seconds: float, *, all_objectives: bool) -> list[OptimalityGap]:
    """Compute how good a result is, by welfare alone or by all objectives; nothing where it has no policy."""
    from cmpg.equilibrium.quality import known_gaps, quality

    if result.incumbent is None:
        return []
    return known_gaps(result, time_limit=seconds) if all_objectives else [quality(result, time_limit=seconds)]


def _show_unbuilt(*, as_json: bool) -> None:
    """Say that time ran out before there was a game."""
    from cmpg.faces import Face

    told = "the time limit was reached before a feasible policy was known. The game was still being built."
    if as_json:
        show_json({"format": "cmpg-result", "version": 1, "status": "FEASIBILITY_UNKNOWN", "message": told})
    else:
        show(Face("FEASIBILITY_UNKNOWN", told, good=False))


STARTS = ("planned", "cheapest", "common-price")


def _start(word: str, game: Game, workers: int) -> Any:
    """Return a method that finds a start, or the policy of a file; None for `auto`."""
    if word not in ("auto", *STARTS):
        return policy_of(Path(word), game)[0]
    if word == "auto":
        return None
    from cmpg import equilibrium

    return {
        "planned": equilibrium.PlannerStart(),
        "cheapest": equilibrium.MinCostStart(),
        "common-price": equilibrium.CommonPrice(workers),
    }[word]


def _improve(word: str) -> dict[str, Any]:
    """Return what `solve` is told of moves of pairs: nothing where it decides."""
    chosen = _auto_or("improve", word, "none", "thorough")
    if chosen is None:
        return {}
    from cmpg.equilibrium.starts.pairs import PairMoves

    return {"improve": None if chosen == "none" else PairMoves(trades=16, swaps=200, worth=1e-4, most=64)}


def _auto_or(option: str, word: str, *others: str) -> str | None:
    """Return a word that solve understands; None for `auto`."""
    return chosen(option, word, {"auto": None, **{other: other for other in others}})


def _solver(word: str, epsilon: float) -> Any:
    """Return what solve understands; a primal-dual method must be as precise as the claim needs."""
    if word not in SOLVERS:
        return _plugin_solver(word)
    if word != "primal-dual":
        return word
    from cmpg.cmdp.primal_dual import PrimalDual

    return PrimalDual(tolerance=epsilon / 4)


def _plugin_solvers() -> list[str]:
    from cmpg import plugins

    return list(plugins.plugins(plugins.SOLVERS))


def _plugin_solver(word: str) -> Any:
    """Make the solver of another package, with the options that follow its name: `name:option=value,option=value`."""
    import inspect

    from cmpg import plugins
    from cmpg.errors import CMPGError

    name, _, text = word.partition(":")
    chosen("solver", name, {known: known for known in (*SOLVERS, *_plugin_solvers())})
    if name in SOLVERS:
        raise CMPGError(f"--solver is {word!r}; {name} takes no options here: give it to cmpg.solve in Python.")
    parameters = inspect.signature(plugins.plugins(plugins.SOLVERS)[name].load()).parameters
    options = {}
    for pair in text.split(",") if text else []:
        option, _, value = pair.partition("=")
        default = chosen(f"solver {name}", option, {each.name: each.default for each in parameters.values()})
        options[option] = converted(f"--solver {name}: {option}", value, type(default))
    return plugins.plugin_solver(name, **options)


def _unbound(game: Game) -> Game:
    from cmpg.errors import GameError
    from cmpg.games.constraints import without_constraints

    if len(game.thresholds) == 0:
        raise GameError("this game has no constraints, so play is selfish already. Leave --selfish out.")
    return without_constraints(game)


class _Course:
    """Tells the course of a run."""

    def __init__(self, progress: ProgressLine, game: Game, tensorboard: Path | None) -> None:
        import numpy as np

        self._progress, self._names, self._watcher = progress, game.names, None
        self._thresholds = np.asarray(game.thresholds, dtype=np.float64)
        if tensorboard is not None:
            from cmpg.interop.watching import tensorboard_watcher

            self._watcher = tensorboard_watcher(tensorboard, names=game.names)

    def show(self, step: Step) -> None:
        """Show one step."""
        self._progress.begin("looking for the next move")
        self._progress.show(progress_line(step, self._thresholds, self._names))
        if self._watcher is not None:
            self._watcher(step)

    def conclude(self, result: Result) -> Callable[[Step], None]:
        """Tell how the run ended, and return what shows a further one."""
        if self._watcher is not None:
            self._watcher.conclude(result)
            self._watcher = None
        return self.show


@dataclass(frozen=True, eq=False)
class _Solved:
    """What there is to show and to keep."""

    game: Game
    result: Result
    origin: Origin
    gaps: Sequence[OptimalityGap]

    def deliver(self, *, output: Path | None, seed: int | None, as_json: bool) -> None:
        """Write the run folder, and show the result, even if writing fails."""
        from cmpg.errors import FileError

        record, failure = None, None
        if output is not None:
            from cmpg.files.run_folder import save_run

            try:
                record = save_run(output, self.result, quality=self.gaps, seed=seed, origin=self.origin)
            except FileError as problem:
                failure = problem
        if as_json:
            from cmpg.files.records import result_record

            show_json(record or result_record(self.result, self.game, quality=self.gaps, seed=seed))
        else:
            self._show()
        if failure is not None:
            raise failure
        if output is not None and not as_json:
            show(f"written to {output}/{self._advice(output)}")

    def _show(self) -> None:
        from cmpg.report.display import result_summary, selfish_line

        show(result_summary(self.result, *self.gaps[:1]))
        if self.result.selfish is not None:
            show(selfish_line(self.result.selfish, self.result, self.game.thresholds))

    def _advice(self, output: Path) -> str:
        """Name the command that checks the folder as it was judged: same game, same arithmetic, same claim."""
        if self.result.incumbent is None:
            return ""
        exact = self.result.certificate.arithmetic == "exact"
        words = ["cmpg", "certify", f"{output}/game.{'json' if exact else 'npz'}", f"{output}/policy.npz"]
        words += ["--exact"] if exact else []
        words += [] if self.result.epsilon == DEFAULT_EPSILON else ["--epsilon", f"{self.result.epsilon}"]
        words += ["--allow-rounding", f"{self.result.allow_rounding}"] if self.result.allow_rounding else []
        return f"; check it with: {shlex.join(words)}"
