"""Discounted values, visits and optimal actions, beside linear algebra in rationals and beside brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.arrays import UNIT_ROUNDOFF
from cmpg.cmdp.discounted import discounted_values, discounted_visits, flow_of, optimum, with_exact_zeros
from cmpg.errors import SolverError

ROUNDING = 64 * UNIT_ROUNDOFF


def exact_solution(flow, right, discount):
    """Solve x = right + γ flow x in rationals, with rows of the flow divided by their exact sums: [S]."""
    rows = [[Fraction(float(p)) for p in row] for row in flow]
    rows = [[p / sum(row) for p in row] for row in rows]
    table = [
        [Fraction(int(s == t)) - Fraction(discount) * p for t, p in enumerate(row)] + [Fraction(float(right[s]))]
        for s, row in enumerate(rows)
    ]
    for pivot in range(len(table)):
        table[pivot] = [entry / table[pivot][pivot] for entry in table[pivot]]
        for other in range(len(table)):
            if other != pivot:
                factor = table[other][pivot]
                table[other] = [a - factor * b for a, b in zip(table[other], table[pivot], strict=True)]
    return [row[-1] for row in table]


def random_chain(rng, kind, states):
    """Return a chain [S, S] that forgets at once, hardly, never, or goes in circles."""
    if kind == "random":
        return rng.dirichlet(np.full(states, 0.5), size=states)
    if kind == "circle":
        return np.roll(np.eye(states), 1, axis=1)
    if kind == "apart":
        return np.eye(states)
    line = np.zeros((states, states))
    for s in range(states):
        line[s, max(s - 1, 0)] += 0.5
        line[s, min(s + 1, states - 1)] += 0.5
    return line


chains = st.tuples(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["random", "circle", "apart", "line"]),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.3, 0.9, 0.99, 0.9999]),
    st.booleans(),
)


@settings(max_examples=30, deadline=None)
@given(chains)
def test_values_are_those_of_linear_algebra_in_rationals(case):
    seed, kind, states, discount, sparse = case
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, kind, states)
    stage = rng.normal(size=(states, 2)) * [1.0, 1e6]
    found = discounted_values(sp.csr_array(chain) if sparse else chain, stage, discount, rounding=ROUNDING)
    for j in range(2):
        truth = exact_solution(chain, stage[:, j], discount)
        size = np.abs(stage[:, j]).max() + np.abs(found.relative[:, j]).max()
        allowed = 2 * ROUNDING * size / (1 - discount)
        assert max(abs(float(a - Fraction(b))) for a, b in zip(truth, found.absolute[:, j], strict=True)) <= allowed


@settings(max_examples=25, deadline=None)
@given(chains)
def test_visits_are_those_of_linear_algebra_in_rationals(case):
    seed, kind, states, discount, sparse = case
    rng = np.random.default_rng(seed)
    chain, initial = random_chain(rng, kind, states), rng.dirichlet(np.ones(states))
    found = discounted_visits(sp.csr_array(chain) if sparse else chain, initial, discount, rounding=ROUNDING)
    # Visits of s are what a prize of one in s is worth.
    truth = [
        sum(Fraction(float(p)) * v for p, v in zip(initial, exact_solution(chain, prize, discount), strict=True))
        for prize in np.eye(states)
    ]
    assert found.min() >= 0
    assert np.allclose(found, [float(each) for each in truth], rtol=0, atol=4 * ROUNDING * states / (1 - discount) ** 2)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 0.99]), st.booleans())
def test_no_policy_exceeds_the_bound_and_the_actions_found_reach_it(seed, discount, sparse):
    rng = np.random.default_rng(seed)
    states, actions = 3, 2
    matrix = rng.dirichlet(np.full(states, 0.4), size=states * actions)
    stage, initial = rng.normal(size=(states, actions)), rng.dirichlet(np.ones(states))
    best = optimum(
        sp.csr_array(matrix) if sparse else matrix, stage, discount, rounding=ROUNDING, tie=1e-12 / (1 - discount)
    )

    def worth(chosen):
        rows = np.arange(states) * actions + np.array(chosen)
        values = exact_solution(matrix[rows], stage.ravel()[rows], discount)
        return float(sum(Fraction(float(p)) * v for p, v in zip(initial, values, strict=True)))

    worths = {chosen: worth(chosen) for chosen in product(range(actions), repeat=states)}
    bound = best.bound(initial, discount)
    assert max(worths.values()) <= bound + 1e-12 / (1 - discount)
    assert worths[tuple(best.actions.argmax(axis=1))] == pytest.approx(bound, abs=1e-11 / (1 - discount))


def test_actions_that_are_not_allowed_are_not_taken():
    matrix, stage = np.tile(np.eye(2), (1, 1)).repeat(2, axis=0), np.array([[1.0, 5.0], [2.0, 7.0]])
    allowed = np.array([[True, False], [True, True]])
    found = optimum(matrix, stage, 0.5, rounding=ROUNDING, tie=1e-9, allowed=allowed)
    assert found.actions.tolist() == [[True, False], [False, True]]


def test_the_error_at_a_discount_near_one_grows_as_its_distance_to_one_and_not_as_the_square():
    rng = np.random.default_rng(0)
    chain, stage = rng.dirichlet(np.ones(30), size=30), rng.random((30, 1))
    found = discounted_values(sp.csr_array(chain), stage, 0.999999, rounding=ROUNDING)
    truth = exact_solution(chain, stage[:, 0], 0.999999)
    off = max(
        abs(float(a - Fraction(b) - Fraction(found.constant[0])))
        for a, b in zip(truth, found.relative[:, 0], strict=True)
    )
    assert off <= 3 * ROUNDING / 1e-6  # values are near 500,000, whose own rounding over 1 − γ would be 6e-5


@pytest.mark.parametrize("tables", [1, 2, 3])
def test_compiled_sweeps_and_their_twin_agree(monkeypatch, tables):
    rng = np.random.default_rng(3)
    matrix = sp.csr_array(rng.dirichlet(np.full(40, 0.1), size=120))
    rows, stage = np.arange(40) * 3 + rng.integers(3, size=40), rng.normal(size=(40, tables))
    answers = []
    for kernels in ("", "numpy"):
        monkeypatch.setenv("CMPG_KERNELS", kernels)
        answers.append(discounted_values(matrix, stage, 0.99, rounding=ROUNDING, rows=rows).absolute)
    assert np.allclose(*answers, rtol=0, atol=1e-11)
    assert np.allclose(answers[0], np.linalg.solve(np.eye(40) - 0.99 * matrix[rows].toarray(), stage), atol=1e-9)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_ends_in_words(sparse, number):
    chain = np.full((2, 2), 0.5)
    with np.errstate(all="ignore"), pytest.raises(SolverError, match="could not be computed"):
        discounted_values(sp.csr_array(chain) if sparse else chain, np.array([[number], [1.0]]), 0.9, rounding=ROUNDING)


@pytest.mark.parametrize("sparse", [True, False])
def test_visits_that_are_no_numbers_end_in_words(sparse):
    chain, initial = np.full((2, 2), 0.5), np.array([np.nan, 1.0])
    with np.errstate(all="ignore"), pytest.raises(SolverError, match="occupancy could not be computed"):
        discounted_visits(sp.csr_array(chain) if sparse else chain, initial, 0.9, rounding=ROUNDING)


def test_a_row_that_leads_nowhere_is_refused_by_the_kernel():
    from cmpg.cmdp.kernels.choice import compiled

    if (kernels := compiled()) is None:
        pytest.skip("the kernels are not compiled here")
    start, target, probability = np.array([0, 1], dtype=np.int32), np.array([5], dtype=np.int32), np.ones(1)
    with pytest.raises(ValueError, match="state 0 does not lie inside"):
        kernels.relative_sweeps(
            (start, target, probability),
            np.zeros(1, dtype=np.int64),
            np.ones(1),
            0.5,
            1e-15,
            0.0,
            np.zeros(1),
            np.zeros(1),
        )


def test_a_flow_is_the_average_of_the_rows_that_are_played():
    rng = np.random.default_rng(5)
    matrix, rows = rng.dirichlet(np.ones(4), size=12), rng.dirichlet(np.ones(3), size=4)
    brute = [[sum(rows[s, a] * matrix[3 * s + a, t] for a in range(3)) for t in range(4)] for s in range(4)]
    assert np.allclose(flow_of(matrix, rows), brute)
    assert np.allclose(flow_of(sp.csr_array(matrix), rows).toarray(), brute)


@pytest.mark.parametrize("sparse", [True, False])
def test_what_is_never_paid_is_exactly_zero(sparse):
    # From 0 one comes to 1, where one stays; 2 and 3 take turns, and 3 pays.
    chain = np.array([[0.1, 0.9, 0, 0], [0, 1, 0, 0], [0, 0, 0.3, 0.7], [0, 0, 0.6, 0.4]])
    stage = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, 0.0], [1.0, 1.0]])
    flow = sp.csr_array(chain) if sparse else chain
    found = with_exact_zeros(flow, stage, discounted_values(flow, stage, 0.97, rounding=ROUNDING).absolute)
    assert found[:2, 0].tolist() == [0.0, 0.0]
    assert np.allclose(found, np.linalg.solve(np.eye(4) - 0.97 * chain, stage))
