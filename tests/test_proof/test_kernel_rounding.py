"""Every operation on balls must hold the exact result: compared with Fractions, also where floats underflow."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmpg.proof.rounding import (
    Ball,
    Csr,
    Mixtures,
    Rows,
    difference,
    exactly,
    gathered,
    probabilities,
)

SIZES = st.sampled_from([0.0, 5e-324, 3e-310, 1e-300, 1e-200, 1e-160, 1e-17, 0.1, 1 / 3, 0.5, 1.0, 3.0, 1e20, 1e150])
NUMBERS = st.one_of(SIZES, SIZES.map(lambda x: -x), st.floats(-1e3, 1e3))
RADII = st.one_of(st.just(0.0), SIZES)
WEIGHTS = st.lists(st.one_of(SIZES.filter(lambda x: x <= 1), st.floats(0, 1)), min_size=4, max_size=4)
BALLS = st.lists(st.tuples(NUMBERS, RADII), min_size=4, max_size=4).map(
    lambda pairs: Ball(*(np.array(column) for column in zip(*pairs, strict=True)))
)
ENDS = (-1, 1)


def held(ball, exact):
    """Whether a ball of one number holds it."""
    return Fraction(float(ball.lower)) <= exact <= Fraction(float(ball.upper))


def members(ball, end):
    """Numbers in a ball, at one of its ends."""
    return [Fraction(float(m)) + end * Fraction(float(r)) for m, r in zip(ball.mid, ball.rad, strict=True)]


def divided(rows):
    exact = [[Fraction(float(entry)) for entry in row] for row in rows]
    return [[entry / sum(row) for entry in row] for row in exact]


def usable(weights):
    """A row of probabilities with these sizes; the first entry makes up for the rest."""
    row = np.array(weights) / max(sum(weights), 1.0)
    row[0] += 1 - row.sum()
    return np.abs(row)


@given(BALLS, BALLS, st.sampled_from(ENDS), st.sampled_from(ENDS))
def test_sums_differences_and_products_hold_the_exact_ones(first, second, one, other):
    ends = list(zip(members(first, one), members(second, other), strict=True))
    for i, (a, b) in enumerate(ends):
        assert held((first + second)[i], a + b)
        assert held((first - second)[i], a - b)
        assert held((first * second)[i], a * b)
        assert held(
            difference(first.mid, second.mid)[i], Fraction(float(first.mid[i])) - Fraction(float(second.mid[i]))
        )


@given(BALLS, st.sampled_from(ENDS))
def test_sums_along_an_axis_hold_the_exact_ones(ball, end):
    exact = members(ball, end)
    assert held(ball.sum(), sum(exact))
    parts = gathered(ball, np.array([0, 1, 0, 1]), 3)
    assert held(parts[0], exact[0] + exact[2])
    assert held(parts[1], exact[1] + exact[3])
    assert parts.mid[2] == parts.rad[2] == 0


@given(WEIGHTS, WEIGHTS, BALLS, BALLS, st.sampled_from(ENDS))
def test_expectations_hold_the_exact_ones_of_rows_divided_by_their_sums(first, second, ahead, mass, end):
    rows = np.stack([usable(first), usable(second)])
    exact, values, masses = divided(rows), members(ahead, end), members(mass, end)
    starts = np.array([0, *np.cumsum((rows != 0).sum(axis=1))])
    sparse = Csr(starts, np.nonzero(rows)[1], rows[rows != 0], 4)
    for matrix in (rows, sparse):
        means, pushed = Rows(matrix).mean(ahead), Rows(matrix).push(mass[:2])
        for r in range(2):
            assert held(means[r], sum(p * v for p, v in zip(exact[r], values, strict=True)))
        for c in range(4):
            assert held(pushed[c], sum(masses[r] * exact[r][c] for r in range(2)))
    mixed = Mixtures(rows).over(Ball(np.stack([ahead.mid] * 2), np.stack([ahead.rad] * 2)))
    drawn = probabilities(rows.ravel(), np.array([0, 4]))
    for r in range(2):
        assert held(mixed[r], sum(p * v for p, v in zip(exact[r], values, strict=True)))
        for c in range(4):
            assert held(drawn[4 * r + c], exact[r][c])
            assert held(Mixtures(rows).ball[r, c], exact[r][c])


def test_a_row_is_certain_only_if_every_other_entry_is_exactly_zero():
    assert Mixtures(np.array([[1.0, 0.0], [0.0, 1.0]])).certain
    assert not Mixtures(np.array([[1.0, 5e-324], [0.0, 1.0]])).certain
    loaded = Mixtures(np.array([[1.0, 1e-17]])).over(exactly(np.array([[0.0, 1e20]])))
    assert loaded.lower[0] <= 1000 <= loaded.upper[0]
    assert loaded.lower[0] > 999


def test_what_is_zero_for_sure_stays_exactly_zero():
    nothing = Rows(np.array([[0.25, 0.75]])).mean(exactly(np.zeros(2)))
    assert nothing.lower[0] == nothing.upper[0] == 0
    assert (exactly(0.0) * exactly(1e-300)).upper == 0


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_is_at_most_nothing(value):
    with np.errstate(invalid="ignore"):
        total = exactly(np.array([value, 1.0])).sum()
        assert not total.upper <= 1e308
