"""`cmpg sweep`: one scenario, many options, every answer certified and kept.

Exit codes: 0 if every run ended with a proof (of an equilibrium, or that there is no feasible policy), 1 if one did
not or is missing, 2 for bad input, 130 interrupted before the first run was kept.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmpg import files, report, sweeps
from cmpg.cli.interrupts import on_interrupt
from cmpg.cli.options import DEFAULT_EPSILON, Epsilon, Resume, Tasks, check_out, option
from cmpg.cli.output import ProgressLine, remark, show
from cmpg.cli.targets import GameArgument, converted, finite, option_types, spoken
from cmpg.errors import FileError
from cmpg.scenarios import scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cmpg.sweeps.rows import Sweep, SweepRow
    from cmpg.sweeps.running import Builder

PLAN = ".toml"


def sweep(
    *,
    target: GameArgument,
    output: Annotated[Path, option("New folder for results.csv, the page and all run folders.", "--out")],
    epsilon: Epsilon = DEFAULT_EPSILON,
    restarts: Annotated[int, option("Number of starts of every run.", least=1)] = 1,
    seed: Annotated[str | None, option("Random seeds, such as 1:20.", metavar="<numbers>")] = None,
    threshold: Annotated[
        str | None, option("Largest expected costs allowed, such as 0:1:0.25.", metavar="<numbers>")
    ] = None,
    resume: Resume = False,
    tasks: Tasks,
) -> None:
    """Solve a scenario with many options: ranges and lists.

    Options of the scenario take several values: 4:12, 0:1:0.25, 0,0.1,0.5, 2019-06-10..2019-06-14. Instead of a
    scenario, a .toml file may say all that. A game file, or a folder of them, is swept over its thresholds and seeds.
    With --resume, options may have more values than before.
    """
    check_out(output, resume=resume)
    words = {**target.options, **({} if threshold is None else {"threshold": threshold})}
    name, grid, epsilon, restarts = _asked(target.name, words, seed, finite("epsilon", epsilon), restarts)
    total = len(sweeps.Grid.of(grid))
    kept = partial(_kept_message, output, total)
    on_interrupt(kept)
    found: Sweep | None = None
    with suppress(KeyboardInterrupt), ProgressLine("building the games") as progress:

        def tell(row: SweepRow, count: int) -> None:
            progress.begin(f"{count} of {total} runs done")
            progress.show(f"run {row.run}: {_row_text(row)}  ({count} of {total})")

        found = sweeps.sweep(
            name, grid, epsilon=epsilon, restarts=restarts, out=output, resume=resume, jobs=tasks.where, on_row=tell
        )
    if found is None:
        found = _kept(output)
        remark(f"interrupted: {kept()}")

    show(*report.sweep_page.sweep_summaries(found))
    if found.complete:
        report.sweep_page.write_sweep_page(found, output / "report.html")
    page = ", and report.html, which opens in any browser" if found.complete else ""
    show(f"written to {output}/: results.csv, the run folders{page}")
    proved = all(row.status in ("CERTIFIED", "INFEASIBLE") for row in found.rows)
    raise typer.Exit(0 if proved and found.complete else 1)


def _kept(output: Path) -> Sweep:
    """Read what an interrupted sweep has kept, or raise the interrupt again where that is nothing."""
    from cmpg.sweeps.rows import is_sweep

    found = sweeps.load_sweep(output) if is_sweep(output) else None
    if found is None or not found.rows:
        raise KeyboardInterrupt
    return found


def _kept_message(output: Path, total: int) -> str:
    """Count the runs that are on the disk; each has a folder, which takes its name when it is whole."""
    if not files.long_runs.is_begun(output):
        return ""
    number = sum(each.name.isdecimal() for each in output.glob("runs/*"))
    return f"{number} of {total} runs are in {output}; --resume goes on"


def _row_text(row: SweepRow) -> str:
    options = ", ".join(f"{spoken(name)[2:]} {value}" for name, value in row.options.items())
    worth = "" if row.welfare is None else f", welfare {row.welfare:.6g}"
    return f"{options}: {row.status}{worth}"


def _asked(
    target: str, options: Mapping[str, Any], seed: str | None, epsilon: float, restarts: int
) -> tuple[str | Builder, dict[str, Any], float, int]:
    """Return the scenario, or what reads game files, the grid and the settings that a command line or a plan names."""
    from cmpg.sweeps.game_files import game_file
    from cmpg.sweeps.grid import read_plan, values_of, word_of

    words: dict[str, Any] = dict(options)
    if target.endswith(PLAN):
        plan = read_plan(Path(target))
        target, epsilon, restarts = plan.scenario, plan.epsilon, plan.restarts
        words = dict(plan.options)
        seed = str(words.pop("seed")) if isinstance(words.get("seed"), (str, int)) else seed
    elif Path(target).suffix or Path(target).is_dir():
        return game_file, _grid_of_files(Path(target), words, seed), epsilon, restarts
    named = scenario(target)
    types = option_types(named.function) | {"seed": int}
    grid: dict[str, Any] = {}
    for word, value in words.items():
        name = word if word == "seed" else named.option(word)
        read = partial(_read_value, name, types[name])
        if isinstance(value, str):
            grid[name] = values_of(spoken(name), value, read)
        else:
            grid[name] = [read(word_of(each)) for each in value] if isinstance(value, list) else read(word_of(value))
    if seed is not None:
        grid["seed"] = values_of("--seed", seed, partial(_read_value, "seed", int))
    return named.name, grid, epsilon, restarts


def _grid_of_files(target: Path, words: Mapping[str, Any], seed: str | None) -> dict[str, Any]:
    """Return what is swept over with game files: the files of a folder, their thresholds, and seeds."""
    from cmpg.sweeps.game_files import files_in
    from cmpg.sweeps.grid import values_of

    if not target.exists():
        raise FileError(f"{target}: there is no such file.")
    grid: dict[str, Any] = {"file": files_in(target) if target.is_dir() else str(target)}
    if "threshold" in words:
        grid["threshold"] = values_of("--threshold", words["threshold"], partial(_read_value, "threshold", float))
    if seed is not None:
        grid["seed"] = values_of("--seed", seed, partial(_read_value, "seed", int))
    return grid


def _read_value(name: str, kind: Any, word: str) -> Any:
    return converted(spoken(name), word, kind)
