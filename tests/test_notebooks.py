"""The notebooks run from their first cell to their last, each in an empty name space, as a user would run it."""

import ast
import importlib.util
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("pandas")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    space = {"__name__": "__main__"}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}:{cell['id']}", "exec"), space)
    assert pyplot.get_fignums(), "it has no picture"
    pyplot.close("all")
    assert not list(tmp_path.iterdir()), "it leaves files behind"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    """So that its changes can be read."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs"), cell["id"]


class StandIn:
    """An `App` for machines without marimo: cells are called in order, each with what it asks for.

    `python -m checks notebooks` runs the notebook with marimo itself.
    """

    def __init__(self, **_):
        self.cells = []

    def cell(self, function):
        self.cells.append(function)
        return function

    def run(self):
        names = {}
        for function in self.cells:
            given = function(*(names[name] for name in inspect.signature(function).parameters))
            (body,) = ast.parse(inspect.getsource(function)).body
            returned = body.body[-1].value
            if returned is not None:
                names |= dict(zip((each.id for each in returned.elts), given, strict=True))
        return names


def marimo_stand_in():
    marimo = ModuleType("marimo")
    marimo.App, marimo.md, marimo.vstack = StandIn, str, list
    marimo.ui = SimpleNamespace(slider=lambda low, high, *, value, **_: SimpleNamespace(value=value, range=(low, high)))
    return marimo


def test_the_reactive_notebook_runs_and_draws(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    path = NOTEBOOKS[0].with_name("live_charging.py")
    monkeypatch.setitem(sys.modules, "marimo", marimo_stand_in())
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("live_charging", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pyplot.close("all")  # figures that other tests left open are not the notebook's
    names = module.app.run()
    assert names["result"].certified
    assert names["capacity"].value == 8
    assert len(pyplot.get_fignums()) == 2, "schedule and loads"
    pyplot.close("all")
    assert not list(tmp_path.iterdir()), "it leaves files behind"
