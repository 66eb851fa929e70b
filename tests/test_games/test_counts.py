"""The distributions of counts, piece by piece, beside every joint action listed one by one."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest

from cmpg.games.counting.counts import (
    CHUNK,
    AlikeAgents,
    OthersCounts,
    PureAgents,
    Sums,
    Tally,
    all_counts,
    binomial,
    own_counts,
    split_counts,
)
from cmpg.policy import JointPolicy


def listed(tables, row, cells_of):
    """The law of whatever `cells_of` makes of a joint action, in one row of the agents' tables."""
    law = {}
    rows = [table.reshape(-1, table.shape[-1])[row] for table in tables]
    for actions in product(*(range(len(each)) for each in rows)):
        key = cells_of(actions)
        law[key] = law.get(key, 0.0) + float(np.prod([each[a] for each, a in zip(rows, actions, strict=True)]))
    return law


def random_tables(agents, actions, *, shape=(2, 2), seed=0):
    return [np.random.default_rng(seed + i).dirichlet(np.ones(actions), size=shape) for i in range(agents)]


def added(tally, tables):
    table = tally.empty_table(np.float64)
    for each in tables:
        scratch = np.full_like(table, np.nan)
        table = tally.add(table, each, scratch=scratch)
    return table


CELLS = {
    "own": lambda vector, b: (vector[b],),
    "all": lambda vector, _: vector[:-1],
    "split": lambda vector, b: (sum(vector[: b + 1]), vector[b + 1]),
}


@pytest.mark.parametrize("length", [2, 3, 5])
@pytest.mark.parametrize(("kind", "make"), [("own", own_counts), ("all", all_counts), ("split", split_counts)])
def test_tables_are_the_laws_of_all_joint_actions(kind, make, length):
    tables, rows = random_tables(4, 3), np.array([3, 1])
    tally = make(3, length, rows)
    vectors = {"own": 3, "all": 1, "split": 2}[kind]
    cells = {"own": 1, "all": 2, "split": 2}[kind]
    assert tally.num_cells == cells
    assert tally.table_shape == (2, vectors, *(length,) * cells)
    assert tally.num_entries == vectors * length**cells
    found = added(tally, tables)
    for r, row in enumerate(rows):
        for b in range(vectors):
            # A count of L − 1 stands for that many or more.
            def capped(actions, b=b):
                vector = tuple(actions.count(a) for a in range(3))
                return tuple(min(each, length - 1) for each in CELLS[kind](vector, b))

            expected = np.zeros((length,) * cells)
            for key, chance in listed(tables, row, capped).items():
                expected[key] = chance
            np.testing.assert_allclose(found[r, b], expected, rtol=1e-13, atol=1e-16)


def test_before_anybody_is_added_all_counts_are_zero():
    table = split_counts(3, 3, np.arange(2)).empty_table(np.float64)
    assert table.sum() == 4
    assert (table[:, :, 0, 0] == 1).all()
    exact = own_counts(2, 3, np.arange(1)).empty_table(object)
    assert exact.dtype == object
    assert (exact[0, 0, 0], exact[0, 0, 1]) == (1, 0)


def test_roundings_are_two_for_each_cell_and_one_for_each_action_of_each_other_agent():
    rows = np.arange(1)
    assert own_counts(3, 6, rows).roundings(6) == 5 * (3 + 2)
    assert all_counts(3, 6, rows).roundings(6) == 5 * (3 + 4)
    assert split_counts(4, 6, rows).roundings(3) == 2 * (4 + 4)


def test_counts_at_a_place_include_ones_own():
    counts = all_counts(3, 2, np.arange(1)).counts_with(1)
    assert counts.shape == (1, 2, 2, 2)
    for place in product(range(2), repeat=2):
        assert counts[0][place].tolist() == [place[0], place[1] + 1]
    assert all_counts(3, 2, np.arange(1)).counts_with(2)[0].tolist() == [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    own = own_counts(2, 3, np.arange(1)).counts_with(0)
    assert own[..., 0].tolist() == [[1, 2, 3], [0, 1, 2]]


# --- Agents who play one action for sure --------------------------------------------------------


def test_settled_agents_are_counted_and_the_others_named():
    sure, other = np.eye(3)[[[0, 2]]], np.eye(3)[[[1, 2]]]
    partly = np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]])
    pure = PureAgents.at(JointPolicy((sure, partly, other, sure)), 3)
    assert pure.actions.tolist() == [[0, 2], [-1, -1], [1, 2], [0, 2]]
    assert pure.mixing == (1,)
    assert pure.counts.tolist() == [[2, 1, 0], [0, 0, 3]]
    assert pure.counts_without(2).tolist() == [[2, 0, 0], [0, 0, 2]]
    assert pure.counts_without(0).tolist() == [[1, 1, 0], [0, 0, 2]]
    assert pure.counts_without(1).tolist() == pure.counts.tolist()
    pure.counts_without(1)[0, 0] = 99
    assert pure.counts[0, 0] == 2
    assert pure.mixing_without(1) == ()
    assert pure.mixing_without(0) == (1,)


def test_settled_agents_move_and_mix_and_settle_again():
    sure, other, partly = np.eye(2)[[[0, 0]]], np.eye(2)[[[1, 0]]], np.array([[[0.5, 0.5], [1.0, 0.0]]])
    first = PureAgents.at(JointPolicy((sure, sure, partly)), 2)
    moved = first.replace(0, other)
    assert (moved.counts.tolist(), moved.mixing) == ([[1, 1], [2, 0]], (2,))
    assert moved.actions.tolist() == [[1, 0], [0, 0], [-1, -1]]
    assert first.actions.tolist() == [[0, 0], [0, 0], [-1, -1]]
    mixing = moved.replace(0, partly)
    assert (mixing.counts.tolist(), mixing.mixing) == ([[1, 0], [1, 0]], (0, 2))
    pure = mixing.replace(2, other)
    assert (pure.counts.tolist(), pure.mixing) == ([[1, 1], [2, 0]], (0,))


# --- Agents who are alike -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5])
def test_alike_agents_have_binomial_counts_and_the_largest_of_them_has_its_law(count):
    rows = np.array([[0.2, 0.3, 0.5], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    alike = AlikeAgents(rows, count)
    own = alike.own()
    assert own.shape == (3, 3, count + 1)
    for row, action, k in product(range(3), range(3), range(count + 1)):
        p = rows[row, action]
        expected = comb(count, k) * p**k * (1 - p) ** (count - k)
        assert own[row, action, k] == pytest.approx(expected, rel=1e-13, abs=1e-16)
    shift, bounds = np.array([[0, 0, 0], [1, 0, 2], [0, 3, 0]]), np.array([-1, 1, 2, 4, 9])
    for row in range(3):
        found = alike.largest(row, shift, bounds)
        assert found.shape == (3, 4)
        for case, others in enumerate(shift):
            law = listed(
                [rows[row][None, None]] * count,
                0,
                lambda actions, others=others: max(actions.count(a) + others[a] for a in range(3)),
            )
            expected = [sum(p for k, p in law.items() if low < k <= high) for low, high in pairwise(bounds)]
            assert found[case] == pytest.approx(expected, rel=1e-13, abs=1e-15)
    assert alike.roundings() == 3 * count * (2 * 3 + 8) + 8


def test_binomials_of_any_odds_sum_to_one_and_keep_their_small_entries():
    inside, outside, counts = np.array([0.5, 3.0, 1e-9, 0.0, 1.0, 0.0]), np.array([0.5, 1.0, 1.0, 1.0, 0.0, 0.0]), 7
    found = binomial(inside, outside, np.array(counts))
    for row, (a, b) in enumerate(zip(inside.tolist(), outside.tolist(), strict=True)):
        p = Fraction(a) / (Fraction(a) + Fraction(b)) if a + b else Fraction(0)
        for k in range(counts + 1):
            exact = float(comb(counts, k) * p**k * (1 - p) ** (counts - k))
            assert found[row, k] == pytest.approx(exact, rel=1e-13, abs=0)
    several = binomial(np.array(0.25), np.array(0.75), np.array([0, 3, 2]))
    assert several[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert several[1].tolist() == pytest.approx([27 / 64, 27 / 64, 9 / 64, 1 / 64], rel=1e-14)
    assert several[2].tolist() == pytest.approx([9 / 16, 6 / 16, 1 / 16, 0.0], rel=1e-14)
    wide = binomial(np.array(0.5), np.array(0.5), np.array(2000))
    assert wide[1000] == pytest.approx(float(Fraction(comb(2000, 1000), 2**2000)), rel=1e-11)
    assert wide.sum() == pytest.approx(1.0, rel=1e-13)


# --- Everybody but one --------------------------------------------------------------------------


class Watched:
    """A tally that writes down whom it adds."""

    def __init__(self, tally, tables):
        self.tally, self.seen, self.tables = tally, [], tables

    def empty_table(self, dtype):
        return self.tally.empty_table(dtype)

    def add(self, table, policy, *, scratch):
        self.seen += [i for i, each in enumerate(self.tables) if each is policy]
        return self.tally.add(table, policy, scratch=scratch)


def test_everybody_but_one_is_counted_and_what_is_known_is_not_added_again():
    tables = random_tables(6, 2)
    policy = JointPolicy(tuple(tables))
    tally = own_counts(2, 6, np.arange(4))
    watched = Watched(tally, list(policy))
    others = OthersCounts(watched, policy)
    plain = {agent: added(tally, [each for i, each in enumerate(tables) if i != agent]) for agent in range(6)}
    whom = []
    for agent in (0, 0, 1, 2, 5, 3):
        watched.seen.clear()
        np.testing.assert_allclose(others.table(agent), plain[agent], rtol=1e-13)
        whom.append(tuple(watched.seen))
    # Halves: 0-2 and 3-5, then 0 and 1-2, 3 and 4-5.
    assert whom == [(3, 4, 5, 1, 2), (), (0, 2), (1,), (0, 1, 2, 3, 4), (4, 5)]


def test_after_a_move_the_blocks_that_hold_the_mover_stay():
    tables = random_tables(6, 2)
    policy = JointPolicy(tuple(tables))
    tally = own_counts(2, 6, np.arange(4))
    watched = Watched(tally, [])
    others = OthersCounts(watched, policy)
    others.table(1)
    table = random_tables(1, 2, seed=99)[0]
    for mover, whom in ((1, []), (2, [2]), (0, [0, 2]), (3, [3, 4, 5, 0, 2])):
        changed = policy.replace(mover, table)
        moved = others.replace(mover, changed)
        watched.tables, watched.seen = list(changed), []
        moved.table(1)
        assert watched.seen == whom
        for agent in (0, 2, 4):
            expected = added(tally, [table if i == mover else each for i, each in enumerate(tables) if i != agent])
            np.testing.assert_allclose(moved.table(agent), expected, rtol=1e-13)


# --- Sums -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "roundings"),
    [
        ([1, CHUNK], CHUNK),
        ([CHUNK + 1, 3], CHUNK + 2),
        ([2 * CHUNK, 0, 1], CHUNK + 2),
        ([2 * CHUNK + 1], CHUNK + 3),
        ([], 0),
    ],
)
def test_long_sums_are_taken_in_pieces(lengths, roundings):
    labels = np.array([np.repeat(np.arange(len(lengths)), lengths)], dtype=np.int64)
    order = np.random.default_rng(0).permutation(labels.shape[1])
    sums = Sums.by_label(labels[:, order], len(lengths))
    assert (sums.num_entries, sums.num_targets) == (sum(lengths), len(lengths))
    table = np.random.default_rng(1).integers(0, 1000, size=(2, sum(lengths))).astype(float)
    expected = (
        np.stack([table[:, labels[0, order] == t].sum(axis=1) for t in range(len(lengths))], axis=1)
        if lengths
        else np.zeros((2, 0))
    )
    assert sums(table).tolist() == expected.tolist()
    assert sums.roundings == roundings


def test_a_place_may_belong_to_several_sums_or_to_none():
    sums = Sums.by_label(np.array([[0, -1, 2, 0], [2, -1, -1, 3]]), 4)
    assert sums(np.array([[1.0, 10.0, 100.0, 1000.0]])).tolist() == [[1001.0, 0.0, 101.0, 1000.0]]
    assert sums.targets.tolist() == [0, 0, 2, 2, 3]
    assert sums.roundings == 2


def test_pieces_of_pieces_are_summed_where_a_sum_is_very_long():
    size = CHUNK**2 + 1
    sums = Sums.by_label(np.zeros((1, size), dtype=np.int64), 1)
    assert sums(np.arange(size, dtype=float)[None]).tolist() == [[size * (size - 1) / 2]]
    assert sums.roundings == CHUNK + CHUNK + 2
    assert isinstance(own_counts(2, 2, np.arange(1)), Tally)
