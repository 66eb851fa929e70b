"""The choice between compiled kernels and their NumPy twins."""

import os
import subprocess
import sys

import pytest

import cmpg
from cmpg.cmdp.kernels.choice import compiled, kernels_used
from cmpg.errors import SolverError

PACKAGES = pytest.mark.parametrize("package", ["cmpg.cmdp.kernels", "cmpg.games.local.kernels"])


def test_numpy_can_be_chosen(monkeypatch):
    monkeypatch.setenv("CMPG_KERNELS", "numpy")
    assert compiled() is None
    assert kernels_used() == "numpy"


def test_an_unknown_choice_is_an_error(monkeypatch):
    monkeypatch.setenv("CMPG_KERNELS", "fast")
    with pytest.raises(SolverError, match="'fast'; 'numpy' or 'compiled' is required"):
        compiled()


@PACKAGES
def test_compiled_kernels_that_are_not_there_are_an_error(package):
    code = (
        f"import sys; sys.modules['{package}._compiled'] = None;"
        f"from cmpg.cmdp.kernels.choice import compiled; print(compiled('{package}'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CMPG_KERNELS"}
    run = [sys.executable, "-c", code]
    without = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert without.stdout == "None\n"
    forced = subprocess.run(run, env=environment | {"CMPG_KERNELS": "compiled"}, capture_output=True, text=True)
    assert forced.returncode != 0
    assert "this installation has none" in forced.stderr


@PACKAGES
@pytest.mark.parametrize("constant", ["INTERFACE", "HEADERS"])
def test_an_extension_that_was_built_for_other_calls_or_tables_is_not_used(package, constant):
    pytest.importorskip(f"{package}._compiled")
    code = (
        f"import sys, types, {package}._compiled as now; old = types.ModuleType('old');"
        f"old.INTERFACE = now.INTERFACE; old.HEADERS = now.HEADERS; old.{constant} += 1;"
        f"sys.modules['{package}._compiled'] = old;"
        f"from cmpg.cmdp.kernels.choice import compiled; print(compiled('{package}'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CMPG_KERNELS"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "None\n"


def test_a_result_says_which_kernels_ran(monkeypatch):
    game = cmpg.scenarios.counter_example()
    assert cmpg.solve(game).settings["kernels"] == kernels_used()
    monkeypatch.setenv("CMPG_KERNELS", "numpy")
    assert cmpg.solve(game).settings["kernels"] == "numpy"
