"""The small simplex method, beside SciPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from cmpg.cmdp.columns import MasterProgram, SmallProgram, best_corner
from cmpg.cmdp.planning import Plan
from cmpg.errors import SolverError

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True, params=["any", "numpy"], scope="module")
def _kernels(request):
    """Every test of this file twice: by the compiled kernel, if there is one, and by its twin."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CMPG_KERNELS", request.param)
        yield


def random_program(seed, rows, columns, *, degenerate):
    """Maximise c·x with A·x + s = b, s ≥ 0; bounded by a last row Σ x + s = 1. The slacks are a feasible basis."""
    rng = np.random.default_rng(seed)
    body = rng.integers(-3, 4, size=(rows, columns)) if degenerate else rng.normal(size=(rows, columns))
    limits = np.zeros(rows) if degenerate else rng.random(rows)
    matrix = np.vstack([np.hstack([body, np.eye(rows), np.zeros((rows, 1))]), np.ones((1, columns + rows + 1))])
    matrix[-1, columns : columns + rows] = 0.0
    objective = np.concatenate([rng.normal(size=columns), np.zeros(rows + 1)])
    return SmallProgram(objective, matrix, np.append(limits, 1.0), np.zeros(columns + rows + 1, dtype=bool))


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(1, 5), st.integers(1, 12), st.booleans())
def test_the_optimum_is_that_of_scipy(seed, rows, columns, degenerate):
    program = random_program(seed, rows, columns, degenerate=degenerate)
    corner = best_corner(program, np.arange(columns, columns + rows + 1))
    expected = linprog(-program.objective, A_eq=program.matrix, b_eq=program.right)
    assert program.objective @ corner.values == pytest.approx(-expected.fun, abs=1e-9)
    assert (corner.values >= -1e-12).all()
    assert program.matrix @ corner.values == pytest.approx(program.right, abs=1e-12)
    assert (program.objective - corner.duals @ program.matrix <= 1e-11).all()


def test_beale_does_not_make_it_cycle():
    """The classic program on which the steepest rule returns to its start for ever."""
    matrix = np.array(
        [[0.25, -60.0, -0.04, 9.0, 1.0, 0.0, 0.0], [0.5, -90.0, -0.02, 3.0, 0, 1, 0], [0, 0, 1.0, 0, 0, 0, 1]]
    )
    objective = np.array([0.75, -150.0, 0.02, -6.0, 0.0, 0.0, 0.0])
    program = SmallProgram(objective, matrix, np.array([0.0, 0.0, 1.0]), np.zeros(7, dtype=bool))
    corner = best_corner(program, np.array([4, 5, 6]))
    assert objective @ corner.values == pytest.approx(0.05)


def test_what_is_unbounded_is_an_error():
    program = SmallProgram(np.array([1.0, 0.0]), np.array([[-1.0, 1.0]]), np.array([1.0]), np.zeros(2, dtype=bool))
    with pytest.raises(SolverError, match="unbounded"):
        best_corner(program, np.array([1]))


# --- The master program -----------------------------------------------------------------------------------------------


def column(value, *costs):
    return Plan(actions=np.zeros((1, 1), dtype=np.int64), value=value, costs=np.array(costs))


def master(columns, limits):
    limits = np.asarray(limits, dtype=float)
    return MasterProgram(columns, limits, units=np.ones(len(limits)), margins=np.full(len(limits), 1e-15))


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.integers(1, 4), st.integers(1, 10))
def test_the_master_finds_what_scipy_finds(seed, constraints, plans):
    rng = np.random.default_rng(seed)
    columns = [column(rng.normal(), *rng.random(constraints)) for _ in range(plans)]
    costs, values = np.array([each.costs for each in columns]), np.array([each.value for each in columns])
    program = master(columns, costs[0] + 0.1 * rng.random(constraints))
    simplex = {"A_eq": np.ones((1, plans)), "b_eq": [1.0]}
    slack_rows = np.hstack([costs.T, np.ones((constraints, 1))])
    widest = linprog(
        np.append(np.zeros(plans), -1.0),
        A_ub=slack_rows,
        b_ub=program.thresholds,
        A_eq=np.append(np.ones(plans), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * plans + [(None, None)],
    )
    multipliers, slack = program.maximise_slack()
    assert slack == pytest.approx(-widest.fun, abs=1e-8)
    assert multipliers.sum() == pytest.approx(1.0)
    best = linprog(-values, A_ub=costs.T, b_ub=program.thresholds, **simplex)
    multipliers = program.maximise_value()
    assert program.weights @ values == pytest.approx(-best.fun, abs=1e-8)
    assert (program.weights @ costs <= program.thresholds + 1e-12).all()
    assert max(values - costs @ multipliers) + multipliers @ program.thresholds == pytest.approx(-best.fun, abs=1e-8)


def test_columns_that_only_rounding_holds_apart_are_one():
    program = master([column(1.0, 0.3), column(1.0, 0.1 + 0.2), column(1.0, 0.4)], [1.0])
    assert len(program.plans) == 2
    assert program.knows(column(1.0 + 1e-16, 0.4))
    assert not program.knows(column(1.1, 0.4))


def test_new_columns_and_new_limits():
    program = master([column(0.0, 0.0), column(4.0, 1.0)], [0.5])
    assert program.maximise_value() == pytest.approx([4.0])
    assert program.weights == pytest.approx([0.5, 0.5])
    assert program.improves(column(3.0, 0.5), np.array([4.0]))
    assert not program.improves(column(2.0, 0.5), np.array([4.0]))
    program.add(column(3.0, 0.5))
    assert program.maximise_value()[0] == pytest.approx(2.0) or program.weights[2] == pytest.approx(1.0)
    program.move_thresholds(np.array([0.25]))
    assert program.maximise_value() == pytest.approx([6.0])
    assert program.weights == pytest.approx([0.5, 0.0, 0.5])


def test_a_new_column_has_no_weight_until_it_is_solved_for():
    program = MasterProgram((column(0.0, 0.0),), np.array([0.5]), units=np.ones(1), margins=np.zeros(1))
    program.maximise_slack()
    program.add(column(4.0, 1.0))
    assert program.weights.tolist() == [1.0, 0.0]
