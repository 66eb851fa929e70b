"""The choice between compiled kernels and their NumPy twins, and what both must agree on."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cmpg
from cmpg.cmdp.kernels.choice import compiled, kernels_used
from cmpg.errors import SolverError
from cmpg.games.local.loads import _convolve

COMPILED = pytest.mark.skipif(compiled() is None, reason="there are no compiled kernels here, or they are not wanted")


def test_numpy_can_be_chosen(monkeypatch):
    monkeypatch.setenv("CMPG_KERNELS", "numpy")
    assert compiled() is None
    assert kernels_used() == "numpy"


def test_an_unknown_choice_is_an_error(monkeypatch):
    monkeypatch.setenv("CMPG_KERNELS", "fast")
    with pytest.raises(SolverError, match="'fast'; 'numpy' or 'compiled' is required"):
        compiled()


def test_compiled_kernels_that_are_not_there_are_an_error():
    code = (
        "import sys; sys.modules['cmpg.cmdp.kernels._compiled'] = None;"
        "from cmpg.cmdp.kernels.choice import kernels_used; print(kernels_used())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CMPG_KERNELS"}
    run = [sys.executable, "-c", code]
    without = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert without.stdout == "numpy\n"
    forced = subprocess.run(run, env=environment | {"CMPG_KERNELS": "compiled"}, capture_output=True, text=True)
    assert forced.returncode != 0
    assert "this installation has none" in forced.stderr


def test_an_extension_that_was_built_for_other_calls_is_not_used():
    code = (
        "import sys, types; old = types.ModuleType('old'); old.INTERFACE = 1;"
        "sys.modules['cmpg.cmdp.kernels._compiled'] = old;"
        "from cmpg.cmdp.kernels.choice import kernels_used; print(kernels_used())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CMPG_KERNELS"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "numpy\n"


def test_a_result_says_which_kernels_ran(monkeypatch):
    game = cmpg.scenarios.counter_example()
    assert cmpg.solve(game).settings["kernels"] == kernels_used()
    monkeypatch.setenv("CMPG_KERNELS", "numpy")
    assert cmpg.solve(game).settings["kernels"] == "numpy"


@COMPILED
@settings(deadline=None)
@given(
    lengths=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    shape=st.tuples(st.integers(0, 3), st.integers(0, 4)),
    seed=st.integers(0, 2**32 - 1),
)
def test_sums_of_loads_have_the_same_bits_as_the_twin(lengths, shape, seed):
    rng = np.random.default_rng(seed)
    one, other = (rng.dirichlet(np.ones(length), size=shape).transpose(2, 0, 1) for length in lengths)
    found = _convolve(one, other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMPG_KERNELS", "numpy")
        expected = _convolve(one, other)
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@COMPILED
@pytest.mark.parametrize(
    ("one", "width", "problem"),
    [
        (np.ones(2, dtype=np.float32), 1, "format f"),
        (np.ones((4, 2))[:, :1], 1, "contiguous"),
        (np.ones(3), 2, "same width"),
        (np.ones(0), 1, "same width"),
        (np.ones(2), 0, "same width"),
        (np.ones(2), -1, "same width"),
        (np.ones(4), 2, "total has 9 entries; 4 are required"),
        ([1.0, 2.0], 1, "bytes-like"),
    ],
)
def test_a_kernel_refuses_what_it_cannot_read(one, width, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        compiled().convolve(one, np.ones(2), width, np.empty(9))


@COMPILED
def test_a_kernel_does_not_write_what_is_read_only():
    total = np.zeros(3)
    total.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        compiled().convolve(np.ones(2), np.ones(2), 1, total)
