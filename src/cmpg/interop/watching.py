"""Runs in TensorBoard, MLflow or any other tracker, which are not needed otherwise.

Every run tells typed events as they happen: a `Step` of `solve`, `coordinate_ascent` and `learn` (`on_progress`), a
`Round` of `learn_shared` (`on_round`). `event_metrics` makes named numbers of one, and the watchers write them:

    cmpg.solve(game, on_progress=interop.tensorboard_watcher("runs/first", names=game.names))

A tracker that is not installed is an error when its watcher is made, and never before.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cmpg.arrays import FloatArray
from cmpg.equilibrium.result import Result, Step
from cmpg.errors import CMPGError
from cmpg.games.names import Names
from cmpg.learning.shared import Round

Event = Step | Round
"""What a run reports while it is under way."""


def event_metrics(event: Event, names: Names | None = None) -> dict[str, float]:
    """Return the numbers of an event by name; those that are unknown are left out.

    Examples
    --------
    >>> import cmpg
    >>> steps = []
    >>> result = cmpg.solve(cmpg.scenarios.counter_example(), on_progress=steps.append)
    >>> event_metrics(steps[-1])["cost/constraint 0"]
    0.0
    """
    called = names or Names()
    if isinstance(event, Round):
        metrics = {
            "gap": event.gap,
            "samples per entry": float(event.samples_per_entry),
            "feasible": float(event.feasible),
        }
        metrics |= _by_constraint("cost ceiling", event.cost_ceilings, called)
    else:
        metrics = {"gain": event.gain, "potential": event.potential, "seconds": event.seconds}
        metrics |= _by_constraint("cost", event.costs, called)
        if event.multipliers is not None:
            metrics |= _by_constraint("multiplier", event.multipliers, called)
    return {name: number for name, number in metrics.items() if np.isfinite(number)}


def result_metrics(result: Result, names: Names | None = None) -> dict[str, float]:
    """Return what a result proves, by name.

    Examples
    --------
    >>> import cmpg
    >>> result = cmpg.solve(cmpg.scenarios.counter_example())
    >>> result_metrics(result)["value/agent 0"], result_metrics(result)["certified"]
    (3.0, 1.0)
    """
    called = names or Names()
    metrics = {"certified": float(result.certified), "moves": float(result.moves)}
    if result.incumbent is not None:
        metrics["proved epsilon"] = float(result.certificate.epsilon)
    metrics |= {f"value/{called.agent(i)}": float(value) for i, value in enumerate(result.values)}
    return metrics | _by_constraint("proved cost", result.costs, called)


def _by_constraint(what: str, numbers: FloatArray, names: Names) -> dict[str, float]:
    return {f"{what}/{names.constraint(j)}": float(number) for j, number in enumerate(numbers)}


class Watcher:
    """Writes the numbers of each event, counted from 0 over the whole run, restarts included.

    Parameters
    ----------
    write
        Called with a name, a number and the count of the event.
    names
        `game.names`, so that agents and constraints have their names.

    Examples
    --------
    >>> import cmpg
    >>> game = cmpg.scenarios.counter_example()
    >>> watcher = Watcher(print, names=game.names)
    >>> watcher.conclude(cmpg.solve(game))
    certified 1.0 0
    moves 0.0 0
    proved epsilon 0.0 0
    value/agent 0 3.0 0
    value/agent 1 3.0 0
    proved cost/both play 2 0.0 0
    """

    def __init__(self, write: Callable[[str, float, int], Any], *, names: Names | None = None) -> None:
        self._write, self._names, self._events = write, names, 0

    def __call__(self, event: Event) -> None:
        """Write an event."""
        self._log(event_metrics(event, self._names))
        self._events += 1

    def conclude(self, result: Result) -> None:
        """Write what was proved."""
        self._log(result_metrics(result, self._names))

    def _log(self, metrics: dict[str, float]) -> None:
        for name, number in metrics.items():
            self._write(name, number, self._events)


def tensorboard_watcher(folder: str | Path, *, names: Names | None = None) -> Watcher:
    """Return a watcher that writes to a folder of TensorBoard; torch or tensorboardX must be installed.

    With a writer of your own: `Watcher(writer.add_scalar)`.

    Examples
    --------
    >>> import cmpg
    >>> watcher = tensorboard_watcher("runs/today")  # doctest: +SKIP
    >>> result = cmpg.solve(cmpg.scenarios.charging(), on_progress=watcher)  # doctest: +SKIP
    >>> watcher.conclude(result)  # doctest: +SKIP
    """
    writer = _first_of("torch.utils.tensorboard", "tensorboardX").SummaryWriter(str(folder))

    def write(name: str, number: float, count: int) -> None:
        writer.add_scalar(name, number, count)
        writer.flush()

    return Watcher(write, names=names)


def mlflow_watcher(*, names: Names | None = None) -> Watcher:
    """Return a watcher that writes to the active run of MLflow, which must be installed.

    Examples
    --------
    >>> import cmpg, mlflow  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     cmpg.solve(cmpg.scenarios.charging(), on_progress=mlflow_watcher())
    """
    mlflow = _first_of("mlflow")

    def write(name: str, number: float, count: int) -> None:
        mlflow.log_metric(re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII), number, step=count)

    return Watcher(write, names=names)


def _first_of(*modules: str) -> Any:
    """Import the first module that is installed."""
    for name in modules:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    wanted = " or ".join(name.partition(".")[0] for name in modules)
    raise CMPGError(f"{wanted} is required, and not installed. Install it, or write elsewhere: Watcher(print).")
