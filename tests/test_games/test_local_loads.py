"""Loads against brute force, against each other, and against exact rationals."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmpg.games.local import loads
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
    pairs = rng.random((2, draw(st.sampled_from([1, steps])), resources, 1)) * loads * (loads - 1) / 2 + 0.1 * loads
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


@MODEST
@given(crowds())
def test_means_and_pairs_say_what_whole_distributions_say(crowd):
    usages, delay, costs, steps = crowd
    lean = load_tables(delay, costs, horizon=steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "FIT", -1.0)
        full = load_tables(delay, costs, horizon=steps)
    assert len(full.general) == delay.shape[1]
    thin, thick = LoadTree.grow(lean, usages), LoadTree.grow(full, usages)
    np.testing.assert_allclose(lean.costs(thin.total), full.costs(thick.total), rtol=1e-12, atol=1e-13)
    assert lean.total_delay(thin.total) == pytest.approx(full.total_delay(thick.total), rel=1e-12)
    for agent in range(len(usages)):
        one, other = lean.marginal_costs(thin.without(agent)), full.marginal_costs(thick.without(agent))
        np.testing.assert_allclose(one.delay, other.delay, rtol=1e-12)
        np.testing.assert_allclose(one.costs, other.costs, rtol=1e-12, atol=1e-13)


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
        (lambda m: 0 * m, lambda m: (m - 2.0) ** 2, False),
    ],
)
def test_tables_that_need_only_means_are_recognised(delay, cost, smooth):
    load = np.arange(41)
    tables = load_tables(
        np.array(delay(load) * 1.0)[None, None], np.array(cost(load) * 1.0)[None, None, None], horizon=3
    )
    assert (len(tables.general) == 0) == smooth


# --- Fits, sums and roundings, each by itself -------------------------------------------------------------------------


def test_a_sum_of_loads_has_as_many_values_as_it_can_have():
    one, other = np.array([[0.25], [0.75]]), np.array([[0.5], [0.25], [0.25]])
    for first, second in ((one, other), (other, one)):
        assert loads._convolve(first, second).tolist() == [[0.125], [0.4375], [0.25], [0.1875]]
    assert loads._convolve(one[:1] * 4, other).tolist() == other.tolist()
    assert loads._convolve(np.zeros((2, 0)), np.zeros((3, 0))).shape == (4, 0)


def test_delays_that_rise_evenly_are_affine():
    delay = np.array([[[1.0, 3.0, 5.0], [1.0, 3.0, 4.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0], [-1.0, -2.0, -3.0]]])
    first, slope, fits = loads._affine(delay)
    assert first.tolist() == [[1.0, 1.0, 0.0, -1.0, -1.0]]
    assert slope.tolist() == [[2.0, 1.5, 0.0, 1.0, -1.0]]
    assert fits.tolist() == [True, False, True, False, True]  # a delay of both signs would cancel
    alone = loads._affine(np.array([[[2.0]]]))
    assert (alone[0].tolist(), alone[1].tolist(), alone[2].tolist()) == ([[2.0]], [[0.0]], [True])
    steps = np.array([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 4.0]]])
    assert loads._affine(steps)[2].tolist() == [False]


def test_costs_of_pairs_are_quadratic():
    """idle + first·m + second·m(m − 1)/2."""
    m = np.arange(5.0)
    tables = [1 + 2 * m + 3 * m * (m - 1) / 2, 4 * m, 5 + 0 * m, m**3, 1 - m, -2 * m - m * (m - 1)]
    idle, first, second, fits = loads._quadratic(np.array(tables)[None, None])
    assert idle.tolist() == [[[1.0, 0.0, 5.0, 0.0, 1.0, 0.0]]]
    assert first.tolist() == [[[2.0, 4.0, 0.0, 1.0, -1.0, -2.0]]]
    assert second[0, 0, [0, 1, 2, 5]].tolist() == [3.0, 0.0, 0.0, -2.0]
    assert fits.tolist() == [True, True, True, False, False, True]
    one = loads._quadratic(np.array([[[[1.0, 3.0]]]]))
    assert [each.tolist() for each in one[:3]] == [[[[1.0]]], [[[2.0]]], [[[0.0]]]]


def test_a_second_difference_that_rounding_made_is_none():
    tenths = np.array([[[[0.0, 0.1, 0.2, 0.1 + 0.2, 0.4]]]])
    assert loads._quadratic(tenths)[2].tolist() == [[[0.0]]]
    assert loads._quadratic(tenths)[3].tolist() == [True]


def test_signs_are_the_same_where_no_two_differ():
    signs = loads._same_sign(np.array([1.0, -1.0, 0.0, 1.0, 0.0]), np.array([0.0, 0.0, 0.0, -1.0, -2.0]))
    assert signs.tolist() == [True, True, True, False, True]


def test_elasticity_is_how_many_times_a_relative_error_of_the_load_counts():
    linear, square = np.arange(4.0)[:, None], np.arange(4.0)[:, None] ** 2
    assert loads._elasticity(linear, limit=9) == pytest.approx(1.0)
    assert loads._elasticity(square, limit=9) == pytest.approx(max(1.0, 2 * 3 / 4, 3 * 5 / 9))
    assert loads._elasticity(np.array([[0.0], [0.0], [5.0]]), limit=9) == pytest.approx(2.0)
    assert loads._elasticity(np.array([[0.0], [0.0], [0.0], [0.0], [5.0]]), limit=3) == 3
    for rough in ([[1.0], [0.5]], [[-1.0], [2.0]]):
        assert loads._elasticity(np.array(rough), limit=9) == 9
    assert loads._elasticity(np.zeros((3, 1)), limit=9) == 0.0
    assert loads._elasticity(np.array([[1.0, 0.0], [1.0, 7.0]]), limit=9) == pytest.approx(1.0)


def test_roundings_grow_with_the_agents_and_with_what_is_added_up():
    smooth = load_tables(np.zeros((1, 3, 6)), np.zeros((1, 1, 3, 6)), horizon=7)
    assert (smooth.entry_roundings, smooth.total_roundings) == (24 + 3, 24 + 3 + 7 * 3)  # 5 agents have 3 bits
    assert smooth.order == 2.0
    rough = load_tables(np.zeros((1, 3, 6)), np.broadcast_to([0, 0, 0, 1.0, 1, 1], (1, 1, 3, 6)), horizon=7)
    assert (rough.entry_roundings, rough.total_roundings) == (24 + 4 * 5, 24 + 4 * 5 + 7 * 3)
    assert rough.order == 5.0  # the steps of the costs fall again


# --- Loads and trees, part by part ------------------------------------------------------------------------------------


def mixed_tables(*, steps=2, horizon=2):
    """Three agents; resources: smooth with a delay and pairs, rough with a delay alone, rough with costs."""
    delay = np.zeros((steps, 3, 4))
    delay[:, 0] = [9.0, 1.0, 1.5, 2.0]
    delay[:, 1] = [9.0, 1.0, 1.0, 7.0]
    costs = np.zeros((1, steps, 3, 4))
    costs[0, :, 0] = [0.25, 1.25, 3.25, 6.25]  # ¼ + m + m(m − 1)/2
    costs[0, :, 2] = [0.0, 0.0, 4.0, 5.0]
    if steps == 2:
        costs[0, 1, 0] *= 2
    return load_tables(delay, costs, horizon=horizon)


def test_tables_are_split_by_what_each_resource_needs():
    tables = mixed_tables()
    assert tables.general.tolist() == [2, 1]  # what has load costs comes first
    assert (tables.steps, tables.num_agents, tables.has_delay, tables.has_pairs) == (2, 3, True, True)
    assert tables.first_delay.tolist() == [[1.0, 0.0, 0.0]] * 2
    assert tables.slopes[0].tolist() == [[0.5, 0.0, 0.0]] * 2
    assert tables.slopes[1].tolist() == [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    assert tables.idle_costs.tolist() == [0.25 + 0.5]
    assert tables.first_costs.tolist() == [[[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]]
    assert tables.general_delay[:, 0].tolist() == [[0.0, 1.0], [0.0, 1.0], [0.0, 7.0]]
    assert tables.general_costs[0, :, 0, 0].tolist() == [0.0, 0.0, 4.0, 5.0]
    assert tables.general_steps[0, :, 0, 0].tolist() == [0.0, 4.0, 1.0]
    for horizon in (1, 5):
        assert mixed_tables(steps=1, horizon=horizon).idle_costs.tolist() == [0.25 * horizon]
    idle = load_tables(np.zeros((1, 2, 3)), np.zeros((0, 1, 2, 3)), horizon=4)
    assert (idle.has_delay, idle.has_pairs, idle.order) == (False, False, 2.0)
    first = np.zeros((1, 2, 3))
    first[..., 0] = 7.0  # nobody ever meets the delay of load zero
    assert not load_tables(first, np.zeros((0, 1, 2, 3)), horizon=4).has_delay
    linear = load_tables(np.zeros((1, 1, 3)), np.array([[[[0.0, 1.0, 2.0]]]]), horizon=4)
    assert not linear.has_pairs


def test_the_load_of_one_agent_is_its_usage():
    tables = mixed_tables()
    leaf = tables.leaf(np.array([[0.5, 0.25, 1.0], [0.0, 0.0, 0.125]]))
    assert leaf.users.tolist() == [[1, 1], [1, 0]]
    assert leaf.distribution.tolist() == [[[0.0, 0.75], [0.875, 1.0]], [[1.0, 0.25], [0.125, 0.0]]]
    assert leaf.pairs.tolist() == [0.0, 0.0]
    nobody = tables.no_load()
    assert nobody.distribution.tolist() == [[[1.0, 1.0], [1.0, 1.0]]]
    assert (nobody.mean.tolist(), nobody.users.tolist()) == ([[0.0] * 3] * 2, [[0, 0]] * 2)


def test_two_groups_have_the_pairs_of_each_and_those_between_them():
    tables = mixed_tables()
    one, other = tables.leaf(np.full((2, 3), 0.5)), tables.leaf(np.full((2, 3), 0.25))
    both = tables.union(one, other)
    assert both.mean.tolist() == [[0.75] * 3] * 2
    assert both.pairs.tolist() == [2 * 0.5 * 0.125, (1 + 2) * 0.125]
    assert both.users.tolist() == [[2, 2]] * 2
    assert both.distribution[:, 0, 0].tolist() == [0.375, 0.5, 0.125]
    more = tables.union(both, both)
    assert more.pairs.tolist() == [2 * both.pairs[0] + 2 * 0.5 * 0.75**2, 2 * both.pairs[1] + 3 * 0.75**2]
    alone = tables.union(both, tables.no_load())
    assert len(alone.distribution) == 3
    charged = tables.charged(both)
    assert (charged.distribution.shape, charged.users.shape) == ((3, 2, 1), (2, 1))
    burden = tables.marginal_costs(both)
    # One more user meets d(1 + N) and adds g(1 + N) − g(N), N being 0, 1 or 2 with 3/8, 1/2 and 1/8.
    assert burden.delay[0].tolist() == [1 + 0.5 * 0.75, 0.375 + 0.5 + 7 / 8, 0.0]
    assert burden.costs[0].tolist() == [[1 + 0.75, 0.0, 4 * 0.5 + 0.125], [2 + 2 * 0.75, 0.0, 4 * 0.5 + 0.125]]
    assert tables.costs(both).tolist() == [0.75 + 3 * 0.75 + both.pairs[1] + 2 * 4 * 0.125]
    assert tables.total_delay(both) == pytest.approx(2 * (0.75 + 0.5 * 0.125) + 2 * (0.625 + 0.125))


def test_a_game_without_delays_has_none():
    load = np.arange(4.0)
    tables = load_tables(np.zeros((1, 1, 4)), np.maximum(load - 1.5, 0.0)[None, None, None], horizon=1)
    leaf = tables.leaf(np.full((1, 1), 0.5))
    assert tables.marginal_costs(leaf).delay is None
    assert tables.total_delay(tables.union(leaf, leaf)) == 0.0


@pytest.mark.parametrize("agents", [1, 2, 3, 6])
def test_a_tree_knows_everybody_each_and_all_but_one(agents):
    tables = load_tables(
        np.broadcast_to(np.arange(agents + 1.0), (1, 1, agents + 1)),
        np.maximum(np.arange(agents + 1.0) - 0.5, 0)[None, None, None],
        horizon=1,
    )
    usages = [np.full((1, 1), (i + 1) / 16) for i in range(agents)]
    tree = LoadTree.grow(tables, usages)
    assert len(tree.nodes) == 2 * agents
    assert tree.mean.tolist() == tree.total.mean.tolist() == [[sum(range(1, agents + 1)) / 16]]
    assert tree.more_roundings == 0
    for agent in range(agents):
        assert tree.usage(agent).tolist() == usages[agent].tolist()
        assert tree.without(agent).mean[0, 0] == pytest.approx(tree.mean[0, 0] - (agent + 1) / 16)
        assert tree.marginal_costs(agent).costs[0, 0, 0] == tables.marginal_costs(tree.without(agent)).costs[0, 0, 0]
        assert tree.costs_without(agent).tolist() == tables.costs(tree.without(agent)).tolist()
        moved = tree.replace(agent, np.full((1, 1), 0.5))
        assert moved.usage(agent).tolist() == [[0.5]]
        assert moved.mean[0, 0] == pytest.approx(tree.mean[0, 0] - (agent + 1) / 16 + 0.5)


def test_fits_are_relative_and_up_to_sixteen_roundings():
    exact = np.array([[[0.0, 1.0, 2.0]]])
    for off, fits in ((16, True), (18, False)):
        table = exact.copy()
        table[..., 1] += off * np.finfo(float).eps / 2
        assert loads._reproduces(exact, table).tolist() == [[fits]]
    assert loads._reproduces(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]])).tolist() == [False]
    # What is as small as the rounding of the first difference is no second difference.
    for slope, second in ((1e-16, 0.0), (1e-12, 1e-12)):
        m = np.arange(5.0)
        found = loads._quadratic((m + slope * m * (m - 1) / 2)[None, None, None])
        assert found[2].item() == pytest.approx(second, rel=1e-2, abs=0)


def test_sums_over_steps_and_resources_take_a_stationary_table_for_every_step():
    weights = np.array([[1.0, 2.0], [4.0, 8.0]])
    assert loads._totals(np.array([[[1.0, 10.0]]]), weights).tolist() == [105.0]
    assert loads._totals(np.array([[[1.0, 10.0], [100.0, 1000.0]]]), weights).tolist() == [1 + 20 + 400 + 8000]
    assert loads._expect(np.array([[[1.0]], [[2.0]], [[9.0]]]), np.array([[[0.5]], [[0.5]]])).tolist() == [[1.5]]
