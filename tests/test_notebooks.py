"""The notebooks run from their first cell to their last, each in an empty name space, as a user would run it."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
MAX_BYTES = 20_000
"""A notebook is kept without outputs, so that its changes can be read."""


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
    assert path.stat().st_size < MAX_BYTES
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs"), cell["id"]
