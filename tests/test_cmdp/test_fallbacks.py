"""Where the first way to solve a small problem fails, another one gives the same answer, or says so."""

import numpy as np
import pytest

from cmpg.cmdp import columns
from cmpg.cmdp.columns import MasterProgram, SmallProgram, best_corner
from cmpg.cmdp.planning import Plan
from cmpg.errors import SolverError


def master(plans, limits):
    made = [
        Plan(actions=np.zeros((1, 1), dtype=np.int64), value=value, costs=np.array(costs)) for value, costs in plans
    ]
    limits = np.asarray(limits, dtype=float)
    return MasterProgram(made, limits, units=np.ones(len(limits)), margins=np.full(len(limits), 1e-15))


PLANS = [(0.0, [0.0, 0.5]), (4.0, [1.0, 0.2]), (2.0, [0.3, 0.9])]


def test_highs_answers_where_the_small_simplex_method_is_at_a_loss(monkeypatch):
    usual = master(PLANS, [0.5, 0.6])
    multipliers = usual.maximise_value()
    monkeypatch.setattr(columns, "MAX_PIVOTS", 0)
    other = master(PLANS, [0.5, 0.6])
    widest, slack = other.maximise_slack()
    assert slack > 0
    assert widest.sum() == pytest.approx(1.0)
    assert other.maximise_value() == pytest.approx(multipliers, abs=1e-8)
    assert other.weights == pytest.approx(usual.weights, abs=1e-8)


def test_a_program_without_a_mixture_is_an_error():
    program = SmallProgram(np.zeros(2), np.ones((1, 2)), np.array([-1.0]), np.zeros(2, dtype=bool))
    with pytest.raises(SolverError, match="no mixture of plans meets thresholds that one of them meets"):
        columns._by_highs(program)


def test_pivots_come_to_an_end(monkeypatch):
    monkeypatch.setattr(columns, "MAX_PIVOTS", 0)
    program = SmallProgram(np.array([1.0, 0.0]), np.ones((1, 2)), np.ones(1), np.zeros(2, dtype=bool))
    with pytest.raises(SolverError, match="was not solved"):
        best_corner(program, np.array([1]))


def test_a_singular_basis_is_an_error():
    program = SmallProgram(np.array([1.0, 0.0]), np.zeros((1, 2)), np.ones(1), np.zeros(2, dtype=bool))
    with pytest.raises(SolverError, match="became singular"):
        best_corner(program, np.array([1]))
