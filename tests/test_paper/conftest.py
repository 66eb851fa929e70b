"""Evidence for the claims, computed once for all tests: few runs of everything."""

from dataclasses import replace

import pytest

from cmpg.paper import QUICK, Evidence

TINY = replace(
    QUICK,
    matrix_starts=60,
    grid_runs=2,
    own_cell_runs=10,
    deviation_checks=3,
    congestion_runs=2,
    congestion_endings=3,
    safe_accuracy=2.0,
)


@pytest.fixture(scope="session")
def evidence():
    return Evidence(seed=1, effort=TINY, jobs=2)
