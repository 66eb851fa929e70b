"""Loads against brute force, against each other, and against exact rationals."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.games.local.loads import LoadTree, load_tables

MODEST = settings(deadline=None, max_examples=25)


def outcomes(usages):
    """Every set of users of one resource, as a load with its probability."""
    for used in product([0, 1], repeat=len(usages)):
        yield sum(used), np.prod([u if x else 1 - u for x, u in zip(used, usages, strict=True)])


def brute_force(table, usages):
    """E[table(N)]."""
    return sum(table[load] * chance for load, chance in outcomes(usages))


@st.composite
def crowds(draw):
    """Usages of n agents, a delay and two load costs, of random smooth and rough resources."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    agents, steps, resources = draw(st.integers(1, 7)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    usages = [rng.choice([0, 1, rng.random()], size=(steps, resources)) for _ in range(agents)]
    loads = np.arange(agents + 1)
    delay = np.where(rng.random((resources, 1)) < 0.6, 0.3 + 0.02 * loads, rng.random((1, resources, agents + 1)))
    pairs = (
        rng.random((2, draw(st.sampled_from([1, steps])), resources, 1)) * loads * (loads - 1) / 2 + 0.1 * loads + 0.2
    )
    costs = np.where(rng.random((resources, 1)) < 0.6, pairs, np.maximum(loads - 1.5, 0))
    return usages, delay, costs, steps


@MODEST
@given(crowds())
def test_expectations_are_those_of_brute_force(crowd):
    usages, delay, costs, steps = crowd
    tables = load_tables(delay, costs, horizon=steps)
    tree = LoadTree.grow(tables, usages)
    spent, waited = np.zeros(2), 0.0
    for h, e in np.ndindex(usages[0].shape):
        chances = [usage[h, e] for usage in usages]
        spent += [brute_force(cost[h % len(cost), e], chances) for cost in costs]
        waited += brute_force(np.concatenate([[0.0], np.cumsum(delay[0, e, 1:])]), chances)
    np.testing.assert_allclose(tables.costs(tree.total), spent, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(tree.costs, tables.costs(tree.total))
    assert tables.total_delay(tree.total) == pytest.approx(waited, rel=1e-12)
    for agent in range(len(usages)):
        burden = tables.marginal_costs(tree.without(agent))
        for h, e in np.ndindex(usages[0].shape):
            others = [usage[h, e] for i, usage in enumerate(usages) if i != agent]
            assert burden.delay[h, e] == pytest.approx(brute_force(delay[0, e, 1:], others), rel=1e-12)
            for j, cost in enumerate(costs):
                expected = brute_force(np.diff(cost[h % len(cost), e]), others)
                assert burden.costs[j, h, e] == pytest.approx(expected, rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_tree_is_the_direct_product_whatever_moved(agents, seed):
    rng = np.random.default_rng(seed)
    overload = np.maximum(np.arange(agents + 1) - 0.5, 0.0)
    tables = load_tables(np.zeros((1, 2, agents + 1)), np.broadcast_to(overload, (1, 1, 2, agents + 1)), horizon=1)
    usages = list(rng.random((agents, 1, 2)) * (rng.random((agents, 1, 2)) < 0.7))
    tree = LoadTree.grow(tables, usages)
    for _ in range(6):
        agent, watched = rng.integers(agents, size=2)
        tree.without(int(watched))
        usages[agent] = rng.random((1, 2))
        tree = tree.replace(int(agent), usages[agent])
        fresh = LoadTree.grow(tables, usages)
        for i in (int(watched), int(agent)):
            outside = tree.without(i)
            np.testing.assert_array_equal(outside.distribution, fresh.without(i).distribution)
            np.testing.assert_array_equal(outside.mean, fresh.without(i).mean)
            for e in range(2 if len(tables.general) else 0):
                chances = np.ones(1)
                for other in range(agents):
                    if other != i:
                        chances = np.convolve(chances, [1 - usages[other][0, e], usages[other][0, e]])
                found = outside.distribution[:, 0, e]
                np.testing.assert_allclose(found, chances[: len(found)], rtol=1e-12, atol=1e-300)
                assert not chances[len(found) :].any()


def test_rare_pairs_keep_all_their_digits():
    usages = [np.full((1, 1), u) for u in (1e-9, 0.75, 1e-12, 3e-11, 0.0)]
    count = np.arange(6)
    tables = load_tables(np.zeros((1, 1, 6)), (count * (count - 1) / 2)[None, None, None], horizon=1)
    exact = sum(Fraction(float(a[0, 0])) * Fraction(float(b[0, 0])) for a, b in combinations(usages, 2))
    found = tables.costs(LoadTree.grow(tables, usages).total)[0]
    assert abs(Fraction(float(found)) - exact) <= exact * Fraction(1, 10**15)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_order_bounds_how_errors_of_usages_grow(agents, seed):
    rng = np.random.default_rng(seed)
    cost = np.cumsum(rng.random(agents + 1) * (rng.random(agents + 1) < 0.7))[None, None, None]
    tables = load_tables(np.zeros((1, 1, agents + 1)), cost, horizon=1)
    usages = rng.random((agents, 1, 1)) / 2
    exact, error = tables.costs(LoadTree.grow(tables, list(usages)).total)[0], 1e-3
    high = tables.costs(LoadTree.grow(tables, list(usages * (1 + error))).total)[0]
    some = tables.costs(LoadTree.grow(tables, list(usages * (1 + error * rng.random((agents, 1, 1))))).total)[0]
    assert exact * (1 - 1e-12) <= some <= high * (1 + 1e-12) <= exact * (1 + error) ** tables.order * (1 + 1e-11)


def test_an_overload_has_the_order_of_its_first_load():
    load = np.arange(41)
    overload = load_tables(np.zeros((1, 1, 41)), np.maximum(load - 8.0, 0.0)[None, None, None], horizon=1)
    assert overload.order == pytest.approx(9.0)
    falling = load_tables(np.zeros((1, 1, 41)), np.maximum(8.0 - load, 0.0)[None, None, None], horizon=1)
    assert falling.order == 40


@pytest.mark.parametrize(
    ("delay", "cost", "smooth"),
    [
        (lambda m: 0 * m, lambda m: m * (m - 1) / 2, True),
        (lambda m: 0.17 + 0.02 * m, lambda m: 0.3 * m**2, True),
        (lambda m: np.where(m == 0, 5.0, 0.1 * m), lambda m: 0.7 * m, True),
        (lambda m: -0.1 * m, lambda m: -(m**2), True),
        (lambda m: 0.02 * m, lambda m: np.maximum(m - 8, 0), False),
        (lambda m: 0.1 * m**4, lambda m: 0 * m, False),
        (lambda m: 1.0 - 0.1 * m, lambda m: 0 * m, False),
        (lambda m: 8.5 - m, lambda m: 0 * m, False),  # fits, and would cancel
        (lambda m: 0 * m, lambda m: (m - 2.5) ** 2, False),
        (lambda m: 0 * m, lambda m: (m - 2.0) ** 2, False),
    ],
)
def test_tables_that_need_only_means_are_recognised(delay, cost, smooth):
    load = np.arange(41)
    tables = load_tables(
        np.array(delay(load) * 1.0)[None, None], np.array(cost(load) * 1.0)[None, None, None], horizon=3
    )
    assert (len(tables.general) == 0) == smooth


def test_tables_fit_up_to_sixteen_roundings_and_a_difference_that_rounding_made_is_none():
    for off, fits in ((16, True), (18, False)):
        delay = np.array([9.0, 1.0, 2.0 + off * np.finfo(float).eps, 3.0])
        assert (len(load_tables(delay[None, None], np.zeros((0, 1, 1, 4)), horizon=1).general) == 0) == fits
    linear = np.array([[[[0.0, 0.1, 0.2, 0.1 + 0.2]]]])
    assert not load_tables(np.zeros((1, 1, 4)), linear, horizon=1).has_pairs


def test_roundings_grow_with_the_agents_and_with_what_is_added_up():
    smooth = load_tables(np.zeros((1, 3, 6)), np.zeros((1, 1, 3, 6)), horizon=7)
    assert (smooth.entry_roundings, smooth.total_roundings) == (24 + 3, 24 + 3 + 7 * 3)  # 5 agents have 3 bits
    assert smooth.order == 2.0
    rough = load_tables(np.zeros((1, 3, 6)), np.broadcast_to([0, 0, 0, 1.0, 1, 1], (1, 1, 3, 6)), horizon=7)
    assert (rough.entry_roundings, rough.total_roundings) == (24 + 4 * 5, 24 + 4 * 5 + 7 * 3)
    assert rough.order == 5.0  # the steps of the costs fall again


def test_a_game_without_delays_has_none():
    load = np.arange(4.0)
    tables = load_tables(np.zeros((1, 1, 4)), np.maximum(load - 1.5, 0.0)[None, None, None], horizon=1)
    leaf = tables.leaf(np.full((1, 1), 0.5))
    assert tables.marginal_costs(leaf).delay is None
    assert tables.total_delay(tables.union(leaf, leaf)) == 0.0
