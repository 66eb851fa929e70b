"""Evidence for the claims, computed once for all tests: few runs of everything."""

from dataclasses import replace

import pytest

from cmpg.paper import QUICK, Evidence

TINY = replace(
    QUICK,
    matrix_starts=60,
    grid_plots=2,
    joint_runs=2,
    own_cell_runs=10,
    deviation_checks=3,
    congestion_plots=2,
    congestion_runs=3,
    solver_runs=1,
    coverage_seeds=5,
)


@pytest.fixture(scope="session")
def evidence():
    return Evidence(seed=1, effort=TINY)
