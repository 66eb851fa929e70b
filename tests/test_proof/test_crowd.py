"""The checker of crowds beside exact rationals, and what it must not believe."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from cmpg.proof.claim import AgentTables, ClaimError, Csr
from cmpg.proof.crowd import CrowdClaim, CrowdTables, Polyline, Power, binomial, check_crowd, convolved, sum_law
from cmpg.proof.rounding import exactly


def exact_law(groups: list[tuple[int, float]]) -> list[Fraction]:
    """Return the law of a sum of binomials in rationals."""
    law = [Fraction(1)]
    for number, share in groups:
        p = Fraction(share)
        each = [comb(number, k) * p**k * (1 - p) ** (number - k) for k in range(number + 1)]
        longer = [Fraction(0)] * (len(law) + number)
        for i, first in enumerate(law):
            for k, second in enumerate(each):
                longer[i + k] += first * second
        law = longer
    return law


def value_at(curve: Polyline | Power, load: int) -> Fraction:
    """Return a curve at a load in rationals."""
    if isinstance(curve, Power):
        return Fraction(curve.constant) + Fraction(curve.factor) * load**curve.power
    i = min(int(np.searchsorted(curve.loads, load, "right")) - 1, len(curve.loads) - 2)
    low, high = (int(each) for each in curve.loads[i : i + 2])
    first, last = (Fraction(float(each)) for each in curve.values[i : i + 2])
    return first + (last - first) * (load - low) / (high - low)


def one_step(
    groups: list[tuple[int, float]], delay: Polyline | Power, cost: Polyline | Power, prices: list[float]
) -> CrowdClaim:
    """A crowd of one kind, one step and one resource, whose groups use it with probabilities."""
    kind = AgentTables(
        initial=np.ones(1),
        transition=(Csr(np.array([0, 1, 2]), np.zeros(2, dtype=np.int64), np.ones(2), 1),),
        uses=(Csr(np.array([0, 0, 1]), np.zeros(1, dtype=np.int64), np.ones(1), 1),),
        reward=np.array([[[0.0, 0.0]]]),
        costs=None,
    )
    total = sum(number for number, _ in groups)
    tables = CrowdTables((kind,), np.array([total]), (delay, cost), np.array([[0]]), np.array([[[1]]]))
    return CrowdClaim(
        tables=tables,
        horizon=1,
        thresholds=np.array([1.0]),
        kind=np.zeros(len(groups), dtype=np.int64),
        number=np.array([number for number, _ in groups]),
        policy=tuple(np.array([[[1 - share, share]]]) for _, share in groups),
        multipliers=np.array(prices)[:, None],
    )


CROWDS = {
    "few": [(3, 0.5), (1, 0.25), (2, 1.0), (4, 0.0)],
    "a variance of 42, which the series serves": [
        (60, 0.5),
        (70, 0.25),
        (40, 0.75),
        (30, 1.0),
        (25, 0.40625),
        (1, 0.5),
    ],
    "many and rare": [(150, 2.0**-6), (60, 1 - 2.0**-6), (1, 2.0**-20)],
}


@pytest.mark.parametrize(("name", "kink"), [*((name, 0.55) for name in CROWDS), ("few", 0.2), ("few", 0.9)])
def test_costs_values_and_gains_hold_the_exact_ones(name: str, kink: float) -> None:
    groups = CROWDS[name]
    total = sum(number for number, _ in groups)
    load = max(1, round(kink * total))
    delay = Polyline(np.array([0, load, total]), np.array([0.0, 0.3, 2.7]))
    cost = Polyline(np.array([0, load, total]), np.array([0.0, 0.0, float(total - load)]))
    check_beside_rationals(groups, delay, cost)


@pytest.mark.parametrize("power", [1, 4, 6])
@pytest.mark.parametrize("name", CROWDS)
def test_powers_of_the_load_hold_the_exact_ones(name: str, power: int) -> None:
    total = float(sum(number for number, _ in CROWDS[name]))
    delay, cost = Power(0.3, 0.7 / (0.5 * total) ** power, power), Power(-0.1, 2.0 / total ** (7 - power), 7 - power)
    check_beside_rationals(CROWDS[name], delay, cost)


def check_beside_rationals(groups: list[tuple[int, float]], delay: Polyline | Power, cost: Polyline | Power) -> None:
    """Judge a claim, and what it is worth in rationals."""
    prices = [0.75] * len(groups)
    claim = one_step(groups, delay, cost, prices)
    found = check_crowd(claim)
    law = exact_law(groups)
    spent = sum(p * value_at(cost, m) for m, p in enumerate(law))
    assert abs(Fraction(float(found.costs.mid[0])) - spent) <= Fraction(float(found.costs.rad[0]))
    for g, (number, share) in enumerate(groups):
        p, price = Fraction(share), Fraction(prices[g])
        others = exact_law([*groups[:g], (number - 1, share), *groups[g + 1 :]])
        waits = sum(q * value_at(delay, m + 1) for m, q in enumerate(others))
        rises = sum(q * (value_at(cost, m + 1) - value_at(cost, m)) for m, q in enumerate(others))
        value = -p * waits
        bound = max(Fraction(0), -waits - price * rises) + price * (1 - spent + p * rises)
        assert abs(Fraction(float(found.values.mid[g])) - value) <= Fraction(float(found.values.rad[g]))
        assert Fraction(float(found.gains[g])) >= bound - value
        # The bound is right, and nothing is wasted.
        assert float(found.gains[g]) - max(float(bound - value), 0.0) <= 1e-10
        assert found.rounding[g] <= 1e-10


def test_every_entry_of_a_law_is_within_its_relative_error() -> None:
    groups = [(30, 0.5), (12, 0.125), (7, 0.75)]
    laws = [binomial(n, exactly(p), exactly(1 - p)) for n, p in groups]
    law, exact = sum_law(laws), exact_law(groups)
    assert law.low == 0
    assert len(law.mass) == len(exact)
    assert law.cut == 0
    for mass, true in zip(law.mass.tolist(), exact, strict=True):
        assert abs(Fraction(mass) - true) <= true * Fraction(law.error)
    assert convolved(laws[0], laws[1]).error < 1e-13


def test_what_is_cut_is_weighed_by_the_largest_value_over_all_loads() -> None:
    # All 3,000 of them meet once in a while: 1e-903 of the time, beyond every window, and at a load that costs 1e300.
    groups = [(3_000, 0.5)]
    flat = Polyline(np.array([0, 3_000]), np.zeros(2))
    cost = Polyline(np.array([0, 2_999, 3_000]), np.array([0.0, 0.0, 1e300]))
    found = check_crowd(one_step(groups, flat, cost, [0.0]))
    assert found.costs.rad[0] > 1e270  # nothing is proved of it
    small = check_crowd(one_step(groups, flat, Polyline(cost.loads, np.array([0.0, 0.0, 1.0])), [0.0]))
    assert small.costs.rad[0] < 1e-20


def test_what_is_cut_from_a_law_is_not_weighed_by_the_largest_value_in_its_window() -> None:
    # A kink within the window makes the law be computed; the largest value in there is 1,500, and beyond it 1e300.
    flat = Polyline(np.array([0, 3_000]), np.zeros(2))
    cost = Polyline(np.array([0, 1_500, 2_999, 3_000]), np.array([0.0, 0.0, 1_499.0, 1e300]))
    found = check_crowd(one_step([(3_000, 0.5)], flat, cost, [0.0]))
    assert found.laws == 1
    assert found.costs.rad[0] > 1e270  # nothing is proved of it
    small = check_crowd(one_step([(3_000, 0.5)], flat, Polyline(cost.loads, np.minimum(cost.values, 1_500.0)), [0.0]))
    assert small.costs.rad[0] < 1e-9


def test_a_million_agents_are_as_many_as_the_law_says() -> None:
    total, capacity = 1_000_000, 500_500
    flat = Polyline(np.array([0, total]), np.zeros(2))
    cost = Polyline(np.array([0, capacity, total]), np.array([0.0, 0.0, float(total - capacity)]))
    found = check_crowd(one_step([(total, 0.5)], flat, cost, [1.0]))
    # E (N − κ)⁺ = σ(φ(1) − Φ̄(1)) for a normal law with σ = 500, one σ above the mean, up to 1/σ.
    assert abs(found.costs.mid[0] - 500 * (0.24197072451914337 - 0.15865525393145707)) < 0.01
    assert found.costs.rad[0] < 1e-8
    assert found.laws == 1
    assert found.widest < 15_000


BASE = one_step(
    CROWDS["few"],
    Polyline(np.array([0, 10]), np.array([0.0, 1.0])),
    Polyline(np.array([0, 4, 10]), np.array([0.0, 0.0, 6.0])),
    [0.5] * 4,
)


@pytest.mark.parametrize(
    "change",
    [
        {"number": np.array([3, 1, 2, 5])},
        {"number": np.array([3, 1, 2, 4], dtype=np.int32)},
        {"number": np.array([4, 0, 2, 4])},
        {"kind": np.array([0, 0, 0, 1])},
        {"multipliers": np.full((4, 1), -0.5)},
        {"multipliers": np.full((4, 1), np.inf)},
        {"multipliers": np.full((3, 1), 0.5)},
        {"policy": (*BASE.policy[:3], np.array([[[0.5, 0.6]]]))},
        {"tables": replace(BASE.tables, numbers=np.array([11]))},
        {
            "tables": replace(
                BASE.tables, curves=(BASE.tables.curves[0], Polyline(np.array([0, 9]), np.array([0.0, 1.0])))
            )
        },
        {"tables": replace(BASE.tables, delay=np.array([[2]]))},
    ],
)
def test_what_does_not_fit_together_is_no_claim(change: dict[str, object]) -> None:
    with pytest.raises(ClaimError):
        check_crowd(replace(BASE, **change))  # type: ignore[arg-type]


def test_curves_below_the_normal_numbers_are_not_taken_for_zero() -> None:
    free, least = Polyline(np.array([0, 3]), np.zeros(2)), Polyline(np.array([0, 3]), np.array([0.0, 5e-324]))
    everyone = one_step([(3, 1.0)], free, least, [0.0])
    assert check_crowd(replace(everyone, thresholds=np.zeros(1))).costs.upper[0] >= 5e-324
    assert check_crowd(one_step([(3, 1.0)], least, free, [0.0])).gains[0] >= 5e-324  # by leaving


@pytest.mark.parametrize(("users", "load"), [([0, 0, 1, 1, 1], 0), ([0, 0, 1, 2, 3], 2)])
def test_probabilities_that_underflow_are_cut(users: list[int], load: int) -> None:
    """In one of two states an action of probability 5e-324 does not do what is done otherwise."""
    bent = Polyline(np.array([0, 1, 2]), np.array([0.0, 1.0, 4.0]))
    claim = one_step([(2, 0.5)], bent, bent, [0.0])
    kind = replace(
        claim.tables.kinds[0],
        initial=np.array([0.5, 0.5]),
        transition=(Csr(np.arange(5), np.zeros(4, dtype=np.int64), np.ones(4), 2),),
        uses=(Csr(np.array(users), np.zeros(users[-1], dtype=np.int64), np.ones(users[-1]), 1),),
        reward=np.zeros((1, 2, 2)),
    )
    row = [1.0, 5e-324] if load == 0 else [5e-324, 1.0]
    found = check_crowd(
        replace(claim, tables=replace(claim.tables, kinds=(kind,)), policy=(np.array([[row, row]]),))
    ).costs
    assert found.lower[0] <= load**2 <= found.upper[0]
    assert found.rad[0] < 1e-12
