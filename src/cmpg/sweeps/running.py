"""Running a sweep: every combination of the options is solved, certified and kept, in as many processes as one likes.

A run folder takes its name when it is whole, and results.csv is written from the rows that are there. So a sweep that
is killed and resumed does what is missing, and ends with the same results.csv, byte for byte, for any number of
workers.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.equilibrium.quality import OptimalityGap, quality
from cmpg.equilibrium.result import Result
from cmpg.equilibrium.runs import Restarts, uninterrupted
from cmpg.equilibrium.solve import solve
from cmpg.errors import CMPGError
from cmpg.files.containers import Fields, json_text, unwritable, write_text
from cmpg.files.long_runs import check_request, sole_writer, write_request
from cmpg.files.run_folder import save_run
from cmpg.games.game import Game
from cmpg.runs.runner import Jobs, run_tasks
from cmpg.scenarios import Origin, scenario
from cmpg.sweeps.grid import Grid, extends
from cmpg.sweeps.rows import (
    ERROR,
    SEED,
    Sweep,
    SweepRow,
    is_sweep,
    load_sweep,
    read_row,
    results_table,
    row_record,
)

Builder = Callable[..., Game]

SECONDS_TO_BEGIN = 3.0
"""Two processes take about as many seconds of the processor before they do anything."""


@dataclass(frozen=True)
class _Task:
    """What a worker needs to know."""

    builder: str | Builder
    options: Mapping[str, Any]
    swept: tuple[str, ...]
    run: int
    epsilon: float
    restarts: int
    steps: Mapping[str, Any]  # by axis of numbers, the next value

    @property
    def seed(self) -> int | None:
        drawn = self.options.get(SEED)
        return 0 if drawn is None and self.restarts > 1 else drawn

    @property
    def rng(self) -> int | None:
        """The seed of starts and ties: none for one run of a game whose agents it has drawn already."""
        return None if self.draws_agents and self.restarts == 1 else self.seed

    @property
    def draws_agents(self) -> bool:
        """Whether the game has a use for a seed."""
        if isinstance(self.builder, str):
            return SEED in scenario(self.builder).options
        parameters = inspect.signature(self.builder).parameters
        return SEED in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    def built(self, **changed: Any) -> Game:
        build = scenario(self.builder).build if isinstance(self.builder, str) else self.builder
        options = {**self.options, **changed}
        return build(**{name: value for name, value in options.items() if name != SEED or self.draws_agents})


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What comes back from a worker: a row, and the files of its run folder."""

    row: SweepRow
    files: Mapping[str, bytes]


def sweep(
    builder: str | Builder,
    grid: Mapping[str, Any],
    *,
    epsilon: float = 1e-6,
    restarts: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    jobs: int | Jobs = 1,
    on_row: Callable[[SweepRow, int], None] = lambda *_: None,
) -> Sweep:
    """Solve a scenario with all combinations of some options.

    Parameters
    ----------
    builder
        The name of a scenario, or a function that builds a game.
    grid
        Its options by name: a list, a range or an array is swept over, anything else is the same in all runs. `seed`
        is that of `solve`, too.
    epsilon, restarts
        As in `solve`.
    out
        New folder for results.csv and the run folders.
    resume
        Go on with what is in the folder, which must be of the same sweep; options may have more values than before.
    jobs
        How many runs at the same time, and where; the rows have the same bits for any number.
    on_row
        Called with each row as soon as it is there, and with the number of rows so far.

    Examples
    --------
    >>> found = sweep("spectrum", {"threshold": [0.1, 0.2], "num_agents": 2})
    >>> [(row.options, row.status) for row in found.rows]
    [({'threshold': 0.1}, 'CERTIFIED'), ({'threshold': 0.2}, 'CERTIFIED')]
    """
    made = Grid.of(grid)
    if not isinstance(builder, str) and not hasattr(builder, "__name__"):
        raise CMPGError(
            f"the builder is a {type(builder).__name__}; the name of a scenario, or a function that builds a game, is "
            "required."
        )
    name = builder if isinstance(builder, str) else builder.__name__
    folder = None if out is None else Path(out)
    tasks = [
        _Task(builder, options, tuple(made.axes), run, epsilon, restarts, _steps(made, options))
        for run, options in enumerate(made)
    ]
    with nullcontext() if folder is None else sole_writer(folder, resume=resume):
        kept = {} if folder is None else _begun(folder, _request(name, made, epsilon, restarts), made, tasks)
        missing = [task for task in tasks if task.run not in kept]
        table = _Table(name, made, folder, kept)
        try:
            for outcome in _outcomes(missing, Jobs.of(jobs)):
                table.add(outcome)
                on_row(outcome.row, len(table.rows))
        finally:
            table.write()
    return table.sweep()


def _outcomes(tasks: Sequence[_Task], jobs: Jobs) -> Iterator[_Outcome]:
    """Run the tasks, the first ones in this process where nothing says that workers are worth their beginning.

    A single long run there would hold up the others: so it is only done where there are several for each worker.
    """
    here = 0
    if not jobs.in_process and jobs.backend is None and len(tasks) > 2 * jobs.number:
        began = time.process_time()
        while here < len(tasks) and time.process_time() - began < SECONDS_TO_BEGIN:
            yield from (outcome for _, outcome in run_tasks(_run, tasks[here : here + 1]))
            here += 1
    yield from (outcome for _, outcome in run_tasks(_run, tasks[here:], jobs=jobs))


def _steps(grid: Grid, options: Mapping[str, Any]) -> dict[str, Any]:
    steps = {name: grid.next_value(name, options[name]) for name in grid.axes if name != SEED}
    return {name: value for name, value in steps.items() if value is not None}


def _request(name: str, grid: Grid, epsilon: float, restarts: int) -> Fields:
    """Return all that the rows depend on, with digests of the files that are read."""
    options = {**grid.fixed, **grid.axes}
    words = [value for each in options.values() for value in (each if isinstance(each, tuple) else (each,))]
    paths = sorted({str(word) for word in words if isinstance(word, (str, Path)) and os.path.isfile(word)})
    read = {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths}
    return {
        "command": "sweep",
        "scenario": name,
        "options": _request_options(grid),
        "epsilon": epsilon,
        "restarts": restarts,
        "files": read,
    }


def _request_options(grid: Grid) -> Fields:
    options = {**grid.fixed, **grid.axes}
    return {name: value if isinstance(value, (int, float, tuple)) else str(value) for name, value in options.items()}


def _begun(folder: Path, request: Fields, grid: Grid, tasks: Sequence[_Task]) -> dict[int, SweepRow]:
    """Begin a sweep in a folder of one's own, or read the rows that are there; what went wrong is tried again."""
    earlier = load_sweep(folder) if is_sweep(folder) else None
    if earlier is not None and earlier.rows and extends(grid, earlier.grid):
        check_request(folder, request | {"options": _request_options(earlier.grid)}, ignoring=("files",))
        _renumber(folder, earlier, tasks)
        write_request(folder, request)
    elif not check_request(folder, request):
        write_request(folder, request)
    (folder / "runs").mkdir(exist_ok=True)
    kept = {}
    for each in sorted((folder / "runs").iterdir()):
        row = read_row(each / "row.json") if each.name.isdecimal() else None
        if row is None or row.status == ERROR or row.run >= len(tasks):
            shutil.rmtree(each)
        else:
            kept[row.run] = row
    return kept


def _renumber(folder: Path, earlier: Sweep, tasks: Sequence[_Task]) -> None:
    """Give the runs of a smaller grid their numbers in a larger one; those that have another next value are removed."""
    numbers = {tuple(task.options[name] for name in task.swept): task for task in tasks}
    moved: list[tuple[Path, SweepRow]] = []
    for row in earlier.rows:
        here = folder / "runs" / f"{row.run:04d}"
        task = numbers[tuple(row.options[name] for name in tasks[0].swept)]
        if task.steps != _steps(earlier.grid, {**earlier.grid.fixed, **row.options}):
            shutil.rmtree(here)  # what one unit is worth is counted up to the next value
            continue
        moved.append((here.rename(here.with_name(f"moved-{row.run:04d}")), replace(row, run=task.run)))
    for here, row in moved:
        write_text(here / "row.json", json_text(row_record(row)))
        here.rename(here.with_name(f"{row.run:04d}"))


def _run(task: _Task) -> _Outcome:
    """Build, solve, judge how good it is, and pack the run folder: all that takes long, in a worker."""
    began = time.perf_counter()
    shown = {name: task.options[name] for name in task.swept}
    try:
        game = task.built()
        result = uninterrupted(solve(game, epsilon=task.epsilon, restarts=Restarts(task.restarts), rng=task.rng))
        with tempfile.TemporaryDirectory() as temporary:
            inside = Path(temporary) / "run"
            name = task.builder if isinstance(task.builder, str) else task.builder.__name__
            gap = None if result.incumbent is None else quality(result)
            found = () if gap is None else (gap,)
            save_run(inside, result, quality=found, seed=task.seed, origin=Origin(name, task.options))
            files = {path.name: path.read_bytes() for path in sorted(inside.iterdir())}
        row = _judged(task, result, gap, shown=shown, began=began)
    except CMPGError as problem:
        row = SweepRow(task.run, shown, ERROR, str(problem), seconds=time.perf_counter() - began)
        files = {}
    return _Outcome(row, files)


def _judged(task: _Task, result: Result, gap: OptimalityGap | None, *, shown: Fields, began: float) -> SweepRow:
    known, margins = result.incumbent, list(_margins(task, result))
    return SweepRow(
        run=task.run,
        options=shown,
        status=result.status.name,
        message=result.message,
        welfare=None if known is None else float(result.values.sum()),
        bound=None if gap is None or gap.bound is None else gap.bound.value,
        gap=None if known is None or not math.isfinite(result.certificate.epsilon) else result.certificate.epsilon,
        costs=tuple(map(float, result.costs)),
        thresholds=tuple(map(float, () if result.game is None else result.game.thresholds)),
        prices=() if known is None else tuple(map(float, known.multipliers.max(axis=0, initial=0.0))),
        envelopes={name: worth for name, worth, _ in margins if math.isfinite(worth)},
        carried={name: worth for name, _, worth in margins if math.isfinite(worth)},
        moves=result.moves + result.search_moves,
        seconds=time.perf_counter() - began,
    )


def _margins(task: _Task, result: Result) -> Iterator[tuple[str, float, float]]:
    """Yield what one unit more of each option is worth at the margin, by the envelope formula, and what the policy of
    this run is worth at the next value of the option; NaN if it is not feasible there.

    For an agent who moves alone, the best value changes with an option x as its Lagrangian does while the policy stays:
    d/dx [V_i + λ_i·(α − V^c)]. The agent for whom that is most is taken. Between x and the next value of the sweep it
    is a difference quotient, which is the derivative itself where values and costs are linear in between: thresholds,
    and capacities of whole users.
    """
    if not result.certified or result.game is None:
        return
    policy, multipliers = result.policy.floats(), result.multipliers
    here = result.game
    before = here.at(policy)
    for name, value in task.steps.items():
        try:
            there = task.built(**{name: value})
        except CMPGError:
            continue
        if there.policy_shapes != here.policy_shapes or len(there.thresholds) != len(here.thresholds):
            continue
        after = there.at(policy)
        with np.errstate(invalid="ignore"):  # an infinite multiplier: no price, and so no worth
            gained = after.values - before.values + multipliers @ (after.slacks - before.slacks)
        carried = float(after.values.sum()) if (after.slacks >= 0).all() else math.nan
        yield name, float(np.max(gained)) / float(value - task.options[name]), carried


class _Table:
    """The rows that are there, and the files that hold them."""

    PAUSE = 1.0  # seconds between two writings of results.csv, which is made of the rows anyway

    def __init__(self, name: str, grid: Grid, folder: Path | None, rows: dict[int, SweepRow]) -> None:
        self._name, self._grid, self._folder, self.rows = name, grid, folder, rows
        self._written = time.monotonic()

    def add(self, outcome: _Outcome) -> None:
        """Keep a run: its folder, whole or not at all, and its row."""
        row = outcome.row
        if self._folder is not None:
            files = {**outcome.files, "row.json": json_text(row_record(row)).encode()}
            _place_folder(self._folder / "runs" / f"{row.run:04d}", files)
        self.rows[row.run] = row
        if time.monotonic() - self._written > self.PAUSE:
            self.write()

    def write(self) -> None:
        """Write results.csv and timings.csv from the rows that are there."""
        if self._folder is not None:
            found = self.sweep()
            write_text(self._folder / "results.csv", results_table(found))
            times = [f"{row.run},{row.seconds!r}\r\n" for row in found.rows]
            write_text(self._folder / "timings.csv", "".join(["run,seconds\r\n", *times]))
            self._written = time.monotonic()

    def sweep(self) -> Sweep:
        """Return the rows in the order of the grid."""
        return Sweep(self._name, self._grid, tuple(self.rows[run] for run in sorted(self.rows)), self._folder)


def _place_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder under another name first: it takes its own when it is on the disk."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            temporary.mkdir()
            for name, content in files.items():
                with (temporary / name).open("xb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as problem:
        raise unwritable(target, problem, "What is there is whole: --resume goes on with it.") from None
