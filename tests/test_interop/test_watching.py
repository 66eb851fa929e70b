"""Runs as loggers, callbacks and trackers hear them."""

import logging
import subprocess
import sys
import types

import numpy as np
import pytest

import cmpg
import command_line
from cmpg import interop, learning
from cmpg.equilibrium import Step
from cmpg.errors import CMPGError
from cmpg.scenarios import grid_world_local, routing, spectrum


def test_nothing_is_printed_unless_somebody_listens():
    code = "import logging, cmpg; cmpg.solve(cmpg.scenarios.counter_example()); logging.getLogger('cmpg').error('told')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")


def test_a_run_is_logged_from_beginning_to_end(caplog):
    game = spectrum()
    with caplog.at_level(logging.DEBUG, logger="cmpg"):
        result = cmpg.solve(game)
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name.startswith("cmpg.")]
    assert told[0] == ("INFO", f"solving {game!r}, epsilon 1e-06")
    assert told[-1][0] == "INFO"
    assert told[-1][1].startswith("CERTIFIED after ")
    assert len([level for level, _ in told if level == "DEBUG"]) == len(result.trace)


def test_learning_is_logged(caplog):
    simulator = learning.GameSimulator(spectrum(), rng=np.random.default_rng(0))
    with caplog.at_level(logging.INFO, logger="cmpg"):
        learning.learn(simulator, epsilon=0.5, delta=0.1)
    assert caplog.records[-1].getMessage().startswith("CERTIFIED: ")


def test_events_are_the_trace_as_it_grows():
    events = []
    result = cmpg.solve(grid_world_local(), on_progress=events.append)
    assert all(type(event) is Step for event in events)
    # The search tells every decision, and the trace keeps its rounds.
    kept = [step for step in result.trace if step.multipliers is None]
    told = [event for event in events if event.multipliers is None]
    assert [(each.iteration, each.mover, each.gain) for each in told] == [
        (each.iteration, each.mover, each.gain) for each in kept
    ]
    assert any(event.multipliers is not None for event in events)


def test_a_callback_may_end_a_run_and_keep_what_it_has():
    def stop(step):
        if step.mover is not None:
            raise KeyboardInterrupt

    result = cmpg.solve(routing(), on_progress=stop, start=cmpg.MinCostStart())
    assert result.status.name == "INTERRUPTED"
    assert result.certificate.feasible
    with pytest.raises(ZeroDivisionError):
        cmpg.solve(spectrum(), on_progress=lambda _: 1 / 0)


def test_numbers_of_events_have_names_and_are_finite():
    game, written = spectrum(), []
    watcher = interop.Watcher(lambda *each: written.append(each), names=game.names)
    result = cmpg.solve(game, on_progress=watcher, restarts=cmpg.Restarts(2), rng=1)
    watcher.conclude(result)
    counts = [count for _, _, count in written]
    assert counts == sorted(counts)
    assert counts[-1] == 1 + max(count for name, _, count in written if name == "gain")
    assert all(np.isfinite(number) for _, number, _ in written)
    last = {name: number for name, number, _ in written}
    assert last["certified"] == 1.0
    assert [last[f"value/user {i}"] for i in range(3)] == result.values.tolist()
    (name,) = game.names.all_constraints(1)
    assert last[f"proved cost/{name}"] == result.costs[0]


def test_rounds_of_learning_have_numbers_too():
    rounds = []
    simulator = learning.GameSimulator(spectrum(), rng=np.random.default_rng(0))
    learning.learn_shared(simulator, epsilon=0.5, delta=0.1, on_round=rounds.append)
    told = interop.event_metrics(rounds[-1])
    assert told["gap"] <= 0.5
    assert told["feasible"] == 1.0
    assert "cost ceiling/constraint 0" in told


def test_prices_of_the_search_are_told():
    events = []
    cmpg.solve(grid_world_local(), on_progress=events.append)
    searched = next(event for event in events if event.multipliers is not None)
    assert interop.event_metrics(searched)["multiplier/constraint 0"] == searched.multipliers[0]


def test_trackers_are_written_to_as_they_want_it(monkeypatch, tmp_path):
    written = []

    class SummaryWriter:
        def __init__(self, folder):
            written.append(folder)

        def add_scalar(self, tag, scalar_value, global_step):
            written.append((tag, scalar_value, global_step))

        def flush(self):
            written.append("flushed")

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # not installed
    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=SummaryWriter))
    watcher = interop.tensorboard_watcher(tmp_path / "runs")
    cmpg.solve(cmpg.scenarios.counter_example(), on_progress=watcher)
    assert written[0] == str(tmp_path / "runs")
    assert ("cost/constraint 0", 0.0, 0) in written
    assert written[-1] == "flushed"
    written.clear()
    assert command_line.cmpg("solve", "spectrum", "--selfish", "--tensorboard", tmp_path / "more").code == 0
    assert written[0] == str(tmp_path / "more")
    assert ("certified", 1.0) in [each[:2] for each in written[-15:]]  # nothing of the selfish run follows

    metrics = {}
    fake = types.SimpleNamespace(log_metric=lambda key, value, step: metrics.update({key: (value, step)}))
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    names = cmpg.games.Names(constraints=("4×4: (a)",))
    cmpg.solve(cmpg.scenarios.counter_example(), on_progress=interop.mlflow_watcher(names=names))
    assert metrics["cost/4_4_ _a_"][0] == 0.0


def test_a_tracker_that_is_missing_is_named(monkeypatch, tmp_path):
    for name in ("torch.utils.tensorboard", "tensorboardX", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CMPGError, match="torch or tensorboardX is required, and not installed"):
        interop.tensorboard_watcher(tmp_path)
    with pytest.raises(CMPGError, match="mlflow is required, and not installed"):
        interop.mlflow_watcher()
    ran = command_line.cmpg("solve", "spectrum", "--tensorboard", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "torch or tensorboardX is required" in ran.err
