"""The rows of a sweep, and the folder that holds them: what writes a row stands beside what reads it.

    sweep/results.csv      a row for each run: its options, how it ended, values, costs, prices
    sweep/timings.csv      how long each run took: apart from the rest, which is the same however often it is broken off
    sweep/runs/0007/       the run folder of row 7, with the row itself in row.json
sweep/request.json     what was requested
    sweep/report.html      the page

Rows are not trusted: the page of a sweep proves every run again, and compares.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.cells import cell
from cmpg.equilibrium.result import Status
from cmpg.errors import FileError
from cmpg.files.containers import AGREEMENT, Fields, as_path, plain_fields, read_fields
from cmpg.files.fields import choice, mapping, names_of, reading, real_number, text_of, whole_number
from cmpg.files.policies import plain_multipliers, read_multipliers
from cmpg.files.run_folder import load_run
from cmpg.summaries import fields_line
from cmpg.sweeps.grid import Grid

ERROR = "ERROR"
"""The status of a run that could not be made, because its options do not fit together; the message says why."""

SEED = "seed"
"""The option that is handed to `solve`, and to a scenario that draws at random."""


@dataclass(frozen=True, eq=False)
class SweepRow:
    """One run: its options, how it ended, and what that is worth.

    Examples
    --------
    >>> from cmpg.sweeps import sweep
    >>> row = sweep("counter-example", {"threshold": [0.25, 0.5]}).rows[1]
    >>> row.options, row.certified, row.thresholds
    ({'threshold': 0.5}, True, (0.5,))
    """

    run: int
    options: Mapping[str, Any]  # that are swept over
    status: str
    message: str
    welfare: float | None = None  # the sum of the agents' values
    bound: float | None = None  # that no feasible policy exceeds
    gap: float | None = None  # what an agent could gain at most by deviating
    costs: tuple[float, ...] = ()  # [k]
    thresholds: tuple[float, ...] = ()  # [k]
    prices: tuple[float, ...] = ()  # [k]: the highest multiplier that an agent has
    envelopes: Mapping[str, float] = field(default_factory=dict)  # by option: what one unit more of it is worth
    carried: Mapping[str, float] = field(default_factory=dict)  # by option: what this policy is worth at its next value
    moves: int = 0
    seconds: float = 0.0

    __repr__ = fields_line

    @property
    def certified(self) -> bool:
        """Whether it ended with a proof of an equilibrium."""
        return self.status == Status.CERTIFIED.name


@dataclass(frozen=True, eq=False)
class Sweep:
    """All runs of a sweep that are there, in the order of the grid.

    Examples
    --------
    >>> from cmpg.sweeps import sweep
    >>> found = sweep("counter-example", {"threshold": [0.25, 0.5]})
    >>> found.complete, [row.welfare for row in found.rows]
    (True, [6.0, 6.0])
    """

    scenario: str
    grid: Grid
    rows: tuple[SweepRow, ...]
    folder: Path | None = None

    __repr__ = fields_line

    @property
    def complete(self) -> bool:
        """Whether no run is missing."""
        return len(self.rows) == len(self.grid)


def results_table(found: Sweep) -> str:
    """Return all rows as CSV; numbers have all their digits, and what is not known is left empty."""
    from cmpg.sweeps.worth import worth_of_options  # a circle: it reads rows

    text = io.StringIO()
    writer = csv.writer(text)
    constraints = range(max((len(row.thresholds) for row in found.rows), default=0))
    worth = worth_of_options(found)
    heads = [f"{name}_{j}" for j in constraints for name in ("cost", "threshold", "price")]
    heads += [f"{kind} of {name}" for name in worth for kind in ("worth", "envelope")]
    writer.writerow(["run", *found.grid.axes, "status", "welfare", "bound", "gap", *heads, "moves", "message"])
    for row in found.rows:
        by_constraint = [
            each[j] if j < len(each) else None for j in constraints for each in (row.costs, row.thresholds, row.prices)
        ]
        by_option = [cell for name in worth for cell in (worth[name].get(row.run), row.envelopes.get(name))]
        options = [cell(row.options[name]) for name in found.grid.axes]
        numbers = [row.welfare, row.bound, row.gap, *by_constraint, *by_option]
        cells = ["" if number is None else repr(float(number)) for number in numbers]
        writer.writerow([row.run, *options, row.status, *cells, row.moves, cell(row.message)])
    return text.getvalue()


def row_record(row: SweepRow) -> Fields:
    """Return a row as plain numbers and strings."""
    names = ("run", "options", "status", "message", "welfare", "bound", "gap", "costs", "thresholds", "prices")
    record = {name: getattr(row, name) for name in (*names, "envelopes", "carried", "moves", "seconds")}
    record["prices"] = plain_multipliers(list(row.prices))
    return {"format": "cmpg-sweep-row", "version": 1, **plain_fields(record)}


def read_row(path: Path) -> SweepRow:
    """Read a row, or raise FileError where it is not one of a sweep, or not that of its folder."""
    record = read_fields(path, kind="cmpg-sweep-row")
    with reading(path, "Remove its folder."):
        row = SweepRow(
            run=whole_number("run", record["run"], least=0),
            options={name: _one(value) for name, value in mapping("options", record["options"])},
            status=ERROR if record["status"] == ERROR else choice("status", record["status"], Status).name,
            message=" ".join(names_of("message", [record["message"]])),
            welfare=_number("welfare", record["welfare"]),
            bound=_number("bound", record["bound"]),
            gap=_number("gap", record["gap"]),
            costs=_numbers("costs", record["costs"]),
            thresholds=_numbers("thresholds", record["thresholds"]),
            prices=_numbers("prices", record["prices"]),
            envelopes={name: real_number(name, worth) for name, worth in mapping("envelopes", record["envelopes"])},
            carried={name: real_number(name, worth) for name, worth in mapping("carried", record.get("carried", {}))},
            moves=whole_number("moves", record["moves"], least=0),
            seconds=real_number("seconds", record["seconds"], least=0.0),
        )
    if path.parent.name != f"{row.run:04d}":
        raise FileError(f"{path}: is the row of run {row.run}. Remove its folder.")
    return row


def _number(name: str, value: Any) -> float | None:
    return None if value is None else real_number(name, value)


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """Read a list of numbers, of which prices may be infinite."""
    table = read_multipliers(name, value)
    if table.ndim != 1:
        raise FileError(f"{name} has shape {list(table.shape)}; a plain list of numbers is required.")
    return tuple(table.tolist())


def load_sweep(folder: str | Path) -> Sweep:
    """Read the folder of a sweep, as far as it has come.

    Raises
    ------
    FileError
        There is no sweep in it.

    Examples
    --------
    >>> import tempfile
    >>> from cmpg.sweeps import sweep
    >>> out = tempfile.mkdtemp()
    >>> _ = sweep("counter-example", {"seed": [1, 2]}, out=out)
    >>> load_sweep(out).complete
    True
    """
    source = as_path(folder)
    request = read_fields(source / "request.json", kind="cmpg-request")
    if request.get("command") != "sweep":
        raise FileError(f"{source}: holds no sweep. Write one with: cmpg sweep … --out {source}")
    rows = [read_row(each / "row.json") for each in sorted((source / "runs").glob("[0-9]*"))]
    with reading(source / "request.json", "Sweep again."):
        options = dict(mapping("options", request["options"]))
        swept = set(rows[0].options) if rows else set()
        grid = Grid.of({name: value if name in swept else _one(value) for name, value in options.items()})
        name = text_of(request["scenario"])
    for row in rows:
        complete = row.options.keys() == grid.axes.keys()
        if not complete or not all(value in grid.axes[option] for option, value in row.options.items()):
            raise FileError(f"{source}: run {row.run} is not in the grid of request.json. Sweep again.")
    return Sweep(name, grid, tuple(rows), source)


def proved_sweep(folder: str | Path) -> Sweep:
    """Read the folder of a sweep, and prove every run in it again; raise FileError if a row says something else."""
    found = load_sweep(folder)
    for row in found.rows:
        where = Path(folder) / "runs" / f"{row.run:04d}"
        if row.status == ERROR:
            continue
        result = load_run(where).result
        welfare = None if result.incumbent is None else float(result.values.sum())
        known = (welfare is None) == (row.welfare is None) and result.status.name == row.status
        if not known or not np.allclose(welfare or 0.0, row.welfare or 0.0, rtol=AGREEMENT, atol=AGREEMENT):
            raise FileError(f"{where}: its row.json is not what the run in it proves. Remove that folder, and resume.")
    return found


def _one(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def is_sweep(folder: Path) -> bool:
    """Whether a folder was written by `cmpg sweep`."""
    path = folder / "request.json"
    return path.is_file() and (folder / "runs").is_dir()
